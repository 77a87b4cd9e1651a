"""The fewest variables that say what a posterior says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, rel_entr

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._selection import project, projected_support


def functions(n=200, d=4, width=2, seed=0):
    return np.random.default_rng(seed).normal(size=(d, width, n))


@pytest.mark.parametrize("logistic", [True, False])
def test_a_projection_is_the_closest(logistic):
    """No additive function of the variables is closer, by a general minimiser."""
    values = functions()
    scores = 0.5 + np.sin(values[0, 0]) + values[1].sum(axis=0)
    targets = expit(scores) if logistic else scores
    divergence, found = project(list(values), [1, 3], targets, logistic)
    design = np.vstack([np.ones(200), values[1], values[3]])

    def distance(beta):
        fitted = beta @ design
        if not logistic:
            return 0.5 * np.mean((targets - fitted) ** 2)
        p, q = targets, expit(fitted)
        return np.mean(rel_entr(p, q) + rel_entr(1 - p, 1 - q))

    best = minimize(distance, np.zeros(5), tol=1e-10)
    assert_allclose(divergence, best.fun, rtol=1e-5)
    assert_allclose(found, best.x @ design, atol=1e-2)
    assert divergence <= best.fun + 1e-8


@pytest.mark.parametrize("logistic", [True, False])
def test_variables_come_in_until_they_explain_enough(logistic):
    values = functions(d=5)
    scores = 3 * values[2, 0] + values[4, 1] + 0.3 * values[0, 0]
    targets = expit(scores) if logistic else scores
    orders = np.array([2, 0, 2, 2, 2])
    wanted = ((0.0, []), (0.5, [2]), (0.95, [2, 4]), (1 - 1e-4, [2, 4, 0]))
    for explained, expected in wanted:
        chosen, share = projected_support(
            values, orders, targets, logistic=logistic, explained=explained
        )
        assert chosen == expected
        assert explained <= share <= 1.0
    constant = np.full(200, 0.3)
    assert projected_support(
        values, orders, constant, logistic=logistic, explained=0.9
    ) == ([], 1.0)


@pytest.mark.filterwarnings("ignore:A linear regression on all variables")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        SparseAdditiveGibbsClassifier,
        SparseAdditiveGibbsRanker,
        SparseAdditiveGibbsRegressor,
    ],
)
def test_one_of_many_that_say_the_same_is_enough(estimator):
    """Ten noisy copies of one number: most are in the posterior, few are needed."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, size=(300, 2))
    X = np.repeat(truth, [10, 1], axis=1) + 0.3 * rng.normal(size=(300, 11))
    y = 3 * truth.sum(axis=1) + 0.3 * rng.normal(size=300)
    if estimator is not SparseAdditiveGibbsRegressor:
        y = y > 0
    model = estimator(n_iter=100, burn_in=50, max_order=3, random_state=0).fit(X, y)
    before = model.predict(X)
    chosen = model.projected_support(X, indices=True)
    few = model.projected_support(X, explained=0.7, indices=True)
    assert np.array_equal(few, chosen[: len(few)])
    assert len(few) < len(chosen) <= model.get_support(threshold=0.05).sum()
    assert 10 in chosen
    assert np.array_equal(np.sort(chosen), np.flatnonzero(model.projected_support(X)))
    assert np.array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="explained"):
        model.projected_support(X, explained=1.5)
