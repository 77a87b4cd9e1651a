"""`python -m skpacbayes.compile` leaves a first fit nothing to compile."""

from pathlib import Path

import numba
import pytest
from cases import ESTIMATORS
from processes import python
from sklearn.base import BaseEstimator, ClassifierMixin

from skpacbayes.compile import compile_kernels, estimators, main

USE = """
import sys, warnings
folder, *names = sys.argv[1:]
sys.path.insert(0, folder)
from cases import ESTIMATORS, learn, rows
warnings.simplefilter("ignore")
X, y = rows(70)
for name in names:
    for method in ("fit", "partial_fit"):
        model = learn(ESTIMATORS[name](), method, X, y)
        model = learn(model, method, X[:1], y[:1]) if method == "partial_fit" else model
        model.predict(X), model.predict(X[:1])
"""
COMPILED = ["OnlineVIRegressor", "SSMCKMeansInit"]

COUNT = """
import sys, warnings
folder = sys.argv[1]
sys.path[:0] = [folder, folder + "/../kernels"]
from cases import ESTIMATORS, learn, rows
from twins import kernels
warnings.simplefilter("ignore")
X, y = rows(70)
for entry in sys.argv[2:]:
    called = [one for one in kernels().values() if "dispatcher" in vars(one)]
    for kernel in called:
        kernel.dispatcher._reset_overloads()
    name, method = entry.split(".")
    learn(ESTIMATORS[name](), method, X, y)
    called = [one for one in kernels().values() if "dispatcher" in vars(one)]
    print(sum(len(kernel.dispatcher.overloads) for kernel in called))
"""
# Functions that Python calls in a first fit, each for its types of arguments: all that
# a first fit compiles, with what these call. More of them is more to wait for.
MOST_COMPILED = {
    "PACOClusterer.fit": 8,
    "PACOClusterer.partial_fit": 9,
    "DirichletProcessHMM.fit": 9,
    "OnlineVIClassifier.fit": 1,
    "OnlineVIRegressor.fit": 1,
    "EWARegressor.fit": 3,  # as one, the last two took a fifth longer
    "SparseAdditiveGibbsRegressor.fit": 1,
    "SparseAdditiveGibbsRanker.fit": 4,
}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_nothing_is_left_to_compile(tmp_path):
    said = python("-m", "skpacbayes.compile", *COMPILED, cache=tmp_path)
    assert all(name in said for name in COMPILED)
    compiled = set(tmp_path.rglob("*.nbc"))
    assert compiled
    python("-c", USE, str(Path(__file__).parent), *COMPILED, cache=tmp_path)
    assert set(tmp_path.rglob("*.nbc")) == compiled


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_first_fits_compile_few_functions():
    folder = str(Path(__file__).parent)
    said = python("-c", COUNT, folder, *MOST_COMPILED)
    compiled = dict(zip(MOST_COMPILED, map(int, said.split()), strict=True))
    assert all(0 < compiled[one] <= most for one, most in MOST_COMPILED.items()), (
        compiled
    )


def test_the_command_knows_every_estimator():
    assert estimators() == ESTIMATORS


def test_options_compile_more():
    assert list(compile_kernels(["SSMCKMeansInit"], options=True)) == ["SSMCKMeansInit"]


def test_classifiers_learn_two_classes_and_three(monkeypatch):
    """Several classes may have kernels of their own, as a softmax has."""
    learnt = set()

    class Recorder(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            learnt.add(len(set(y)))
            return self

    monkeypatch.setattr("skpacbayes.compile.estimators", lambda: {"Recorder": Recorder})
    Recorder._parameter_constraints = {}
    compile_kernels(["Recorder"])
    assert learnt == {2, 3}


def test_an_unknown_name_is_named(capsys):
    with pytest.raises(ValueError, match=r"no estimator 'Paco'\. There are ABCPost"):
        compile_kernels(["Paco"])
    with pytest.raises(SystemExit):
        main(["Paco"])
    assert "no estimator 'Paco'" in capsys.readouterr().err
