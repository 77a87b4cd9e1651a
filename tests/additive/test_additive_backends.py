"""The fits of the family do not depend on joblib's backend."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
)

SMALL = {"n_iter": 40, "burn_in": 20, "max_order": 3, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(80, 5))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=80)


@pytest.mark.parametrize(
    ("kind", "n_chains"),
    [
        (SparseAdditiveGibbsClassifier, 3),
        (SparseAdditiveGibbsPoissonRegressor, 3),
        (SparseAdditiveGibbsRanker, 3),
        (SparseAdditiveGibbsRegressor, 1),
        (SparseAdditiveGibbsRegressor, 3),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fit_is_the_same_alone_in_threads_in_processes_and_in_a_search(
    kind, n_chains, data
):
    """Bit for bit: the moves of the chains reach the estimator in every case."""
    X, y = data
    if kind is SparseAdditiveGibbsPoissonRegressor:
        y = np.round(np.exp(y))
    elif kind is not SparseAdditiveGibbsRegressor:
        y = y > np.median(y)
    estimator = kind(n_chains=n_chains, **SMALL)
    alone = clone(estimator).fit(X, y)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            found = clone(estimator).fit(X, y)
        np.testing.assert_array_equal(found.coefficients_, alone.coefficients_)
        np.testing.assert_array_equal(found.models_, alone.models_)
    search = GridSearchCV(estimator, {"beta": [estimator.beta]}, cv=2, n_jobs=2)
    found = search.fit(X, y).best_estimator_
    np.testing.assert_array_equal(found.coefficients_, alone.coefficients_)
    serial = GridSearchCV(estimator, {"beta": [estimator.beta]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"]
    )
