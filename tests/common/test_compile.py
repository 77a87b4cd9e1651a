"""`python -m skpacbayes.compile` leaves a first fit nothing to compile."""

import numba
import numpy as np
import pytest
from cases import ESTIMATORS, META, X, Y, cheap, learn
from processes import python
from sklearn.base import BaseEstimator, ClassifierMixin
from twins import called, signatures

from skpacbayes.compile import _FEW, compile_kernels, estimators, main

# Functions that Python calls in a first fit, each for its types of arguments: all that
# a first fit compiles, with what these call. More of them is more to wait for.
MOST_COMPILED = {
    "PACOClusterer.fit": 9,  # two of them of the one k-means of the package
    "PACOClusterer.partial_fit": 10,
    "DirichletProcessHMM.fit": 11,
    "OnlineVIClassifier.fit": 1,
    "OnlineVIRegressor.fit": 1,
    "EWARegressor.fit": 3,  # as one, the last two took a fifth longer
    "SparseAdditiveGibbsRegressor.fit": 1,
    "SparseAdditiveGibbsRanker.fit": 5,
}


# Print the kernels that a first fit compiles twice for the same types.
TWICE = """
import collections, sys, warnings
import numpy as np
from numba.core import event
from skpacbayes.compile import estimators

compiled = collections.Counter()

class Compilations(event.Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("skpacbayes"):
            compiled[kernel.__name__, event.data["args"]] += 1

    def on_end(self, event):
        pass

warnings.simplefilter("ignore")
X = np.random.default_rng(0).exponential(size=(150, 3))
estimator = estimators()[sys.argv[1]]()
with event.install_listener("numba:compile", Compilations()):
    getattr(estimator, sys.argv[2])(X, (X[:, 0] > 1).astype(int))
assert compiled
print(*(name for (name, _), n in compiled.items() if n > 1 and name[0] != "_"))
"""

compiling = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def forget():
    """Let each kernel be loaded, or compiled, when it is called again."""
    for kernel in called():
        kernel.dispatcher._reset_overloads()


@compiling
def test_the_command_fills_the_cache(tmp_path):
    said = python("-m", "skpacbayes.compile", "SSMCKMeansInit", cache=tmp_path)
    assert "SSMCKMeansInit" in said
    assert list(tmp_path.rglob("*.nbc"))


@pytest.mark.slow
@compiling
@pytest.mark.filterwarnings("ignore")  # of few iterations
@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_is_left_to_compile(name):
    forget()
    assert list(compile_kernels([name])) == [name]
    compiled = signatures()
    for method in ("fit", "partial_fit"):
        if hasattr(ESTIMATORS[name], method):
            model = learn(cheap(name), method, X, Y)
            if method == "partial_fit":
                learn(model, method, X[:1], Y[:1])
            if hasattr(model, "predict"):
                model.predict(X), model.predict(X[:1])
    for kernel, kinds in signatures().items():
        assert set(kinds) <= set(compiled[kernel]), kernel


@compiling
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MOST_COMPILED)
def test_first_fits_compile_few_functions(name):
    name, method = name.split(".")
    forget()
    learn(ESTIMATORS[name](), method, X, Y)
    compiled = sum(map(len, signatures().values()))
    assert 0 < compiled <= MOST_COMPILED[f"{name}.{method}"]


@pytest.mark.slow
@compiling
@pytest.mark.parametrize("name", [name for name, n in MOST_COMPILED.items() if n > 4])
def test_no_kernel_is_compiled_twice_in_a_first_fit(name, tmp_path):
    """For Python and for another kernel: its decorator is `shared`."""
    assert python("-c", TWICE, *name.split("."), cache=tmp_path).split() == []


@pytest.mark.slow
@compiling
@pytest.mark.filterwarnings("ignore")
def test_a_kernel_is_compiled_for_two_kinds_of_rows_at_most():
    """Writable and read-only: each further kind costs its user a compilation.

    Arguments that are None exclude code, for another estimator: a kernel of its own.
    """
    forget()
    X = np.random.default_rng(0).exponential(size=(60, 3))  # some take counts only
    y = (X[:, 0] > 1).astype(float)
    read_only = X.copy()
    read_only.setflags(write=False)
    forms = X, read_only, np.asfortranarray(X), X.astype(np.float32)
    for name in ESTIMATORS.keys() - META.keys():
        for rows in forms:
            estimator = cheap(name).fit(rows, y)
            for method in ("predict", "transform", "score_samples"):
                if hasattr(estimator, method):
                    getattr(estimator, method)(rows)
            if hasattr(estimator, "partial_fit"):
                learnt = learn(cheap(name), "partial_fit", rows, y, [0, 1])
                learnt.partial_fit(rows[:1], y[:1])
    for kernel, kinds in signatures().items():
        excluded = [tuple(str(kind) == "none" for kind in types) for types in kinds]
        assert all(excluded.count(one) <= 2 for one in excluded), (kernel, kinds)


def test_the_command_knows_every_estimator():
    assert estimators() == ESTIMATORS


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_options_that_exclude_each_other_end_no_compilation(monkeypatch, name):
    monkeypatch.setattr("skpacbayes.compile._ask", lambda model, X: None)
    fewer = {"n_chains": 1, "n_iter": 2, "burn_in": 2, "n_init": 1}
    for parameter, value in fewer.items():  # how many there are excludes no option
        monkeypatch.setitem(_FEW, parameter, value)
    assert list(compile_kernels([name], options=True)) == [name]


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
