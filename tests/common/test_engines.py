"""Results are bit-identical alone, in threads, and inside any backend of joblib."""

import functools
import inspect
import pickle

import joblib
import numpy as np
import pytest
from cases import ESTIMATORS, X, Y, cheap
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from states import changes, state_of

# Settings in which an estimator has work for several threads.
SEVERAL = {
    "DirichletProcessHMM": {"n_chains": 2, "emission": "auto"},
    "PACOClusterer": {"n_chains": 4},
    "ParticleMarginalMetropolis": {"n_chains": 2},
    "ParticleMaximumLikelihood": {},  # several seeds
    "SparseAdditiveGibbsClassifier": {"n_chains": 3},
    "SparseAdditiveGibbsPoissonRegressor": {"n_chains": 3},
    "SparseAdditiveGibbsRanker": {"n_chains": 3},
    "SparseAdditiveGibbsRegressor": {"n_chains": 3},
    "SubspaceMixture": {"n_init": 3},
    "TemperedVBGaussianMixture": {"n_init": 3},
    "TemperedVBMixture": {"n_init": 3},
    "TemperedVBMultinomialMixture": {"n_init": 3},
}
CASES = [pytest.param(name, {}, id=name) for name in ESTIMATORS] + [
    pytest.param(name, {**settings, "n_jobs": 2}, id=f"{name}-{settings}")
    for name, settings in SEVERAL.items()
]
ONE_SPLIT = [(np.arange(20), np.arange(20, 40))]

pytestmark = pytest.mark.filterwarnings("ignore")  # chains of twenty sweeps


def fitted(estimator):
    return state_of(clone(estimator).fit(X, Y))


def apart_from_n_jobs(state):
    return {path: leaf for path, leaf in state.items() if "n_jobs" not in path}


def test_every_estimator_with_threads_has_several():
    threaded = {
        name
        for name, public in ESTIMATORS.items()
        if "n_jobs" in inspect.signature(public).parameters
    }
    assert threaded - {"ABCPosteriorKDE"} <= set(SEVERAL)  # its threads are asked


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "dask"])
@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_same_under_every_backend(name, parameters, backend, request):
    if backend == "dask":
        request.getfixturevalue("dask_client")
    expected = alone(name, tuple(parameters.items()))
    estimator = cheap(name, **parameters)
    with joblib.parallel_config(backend=backend, **workers(backend)):
        actual = apart_from_n_jobs(fitted(estimator))
    assert not changes(expected, actual)


@functools.cache
def alone(name, parameters):
    """State of a fit by one thread, outside any backend."""
    parameters = {key: value for key, value in parameters if key != "n_jobs"}
    return apart_from_n_jobs(fitted(cheap(name, **parameters)))


def workers(backend):
    return {} if backend == "dask" else {"n_jobs": 2}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [case for case in CASES if case.values[0] not in SEVERAL or case.values[1]],
)
def test_same_within_a_search_in_processes(name, parameters):
    """The searches' workers fit, score and refit what a serial search does."""
    estimator = cheap(name, **parameters)
    grid, found = {}, []
    if "random_state" in estimator.get_params():
        grid = {"random_state": [0, 1]}
    for n_jobs in (1, 2):
        with joblib.parallel_config(backend="loky"):
            search = GridSearchCV(
                clone(estimator), grid, cv=ONE_SPLIT, n_jobs=n_jobs, error_score="raise"
            )
            found.append(search.fit(X, Y))
    serial, parallel = found
    np.testing.assert_array_equal(
        serial.cv_results_["mean_test_score"], parallel.cv_results_["mean_test_score"]
    )
    states = [state_of(search.best_estimator_) for search in found]
    assert not changes(*states)
    assert pickle.dumps(parallel.best_estimator_)
