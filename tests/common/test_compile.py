"""`python -m skpacbayes.compile` leaves a first fit nothing to compile."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from cases import ESTIMATORS
from sklearn.base import BaseEstimator, ClassifierMixin

import skpacbayes
from skpacbayes.compile import compile_kernels, estimators, main

USE = """
import sys, warnings
sys.path.insert(0, sys.argv[2])
from cases import ESTIMATORS, learn, rows
warnings.simplefilter("ignore")
X, y = rows(70)
for method in ("fit", "partial_fit"):
    model = learn(ESTIMATORS[sys.argv[1]](), method, X, y)
    model = learn(model, method, X[:1], y[:1]) if method == "partial_fit" else model
    model.predict(X), model.predict(X[:1])
"""


def run(cache, *arguments):
    """Run Python with a cache of kernels of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": str(Path(skpacbayes.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("name", ["OnlineVIRegressor", "SSMCKMeansInit"])
def test_nothing_is_left_to_compile(name, tmp_path):
    said = run(tmp_path, "-m", "skpacbayes.compile", name)
    assert name in said
    compiled = set(tmp_path.rglob("*.nbc"))
    assert compiled
    run(tmp_path, "-c", USE, name, str(Path(__file__).parent))
    assert set(tmp_path.rglob("*.nbc")) == compiled


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
