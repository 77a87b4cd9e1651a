"""The log odds from which the ranker's walk sets out."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from skpacbayes.additive._chain import Prior
from skpacbayes.additive._pilot import BETA, at_least, logistic_pilot

PROBLEMS = [(0, 0.5), (1, 2.0), (2, 1.0)]  # seeds, slopes


def problem(seed=0, slope=2.0, n_samples=300, n_features=8):
    """Two of the variables matter, one by its second function alone."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n_features, n_samples))
    values = np.stack([3**0.5 * x, 5**0.5 * (1.5 * x**2 - 0.5)], axis=1)
    positive = rng.random(n_samples) < expit(slope * (values[1, 0] + values[4, 1]))
    return made(values, positive, np.ones(n_samples))


def made(values, positive, weights):
    functions = SimpleNamespace(orders=np.full(len(values), values.shape[1]))
    return SimpleNamespace(
        values=values, positive=positive, weights=weights, functions=functions
    )


def prior_of(found, most=5, variance=1.0):
    return Prior.of(found.functions.orders, BETA, most, variance=variance)


def test_finds_the_variables():
    found = problem()
    scores, orders = logistic_pilot(found, prior_of(found))
    assert_array_equal(np.flatnonzero(orders), [1, 4])
    assert orders[4] == 2
    truth = 2.0 * (found.values[1, 0] + found.values[4, 1])
    assert np.corrcoef(scores, truth)[0, 1] > 0.95


def test_one_function_has_the_mean_of_its_quadratic_bound():
    """Of one function the means are exact, given the rates: the gradient is zero."""
    found = problem(slope=0.8)
    found = made(found.values[1:2, :1], found.positive, found.weights)
    scores, _ = logistic_pilot(found, prior_of(found, most=1))
    x = found.values[0, 0]
    slope = np.polyfit(x, scores, 1)[0]
    assert_allclose(scores, scores[0] + slope * (x - x[0]))
    # The function is in almost surely; without it the gradient would be 45.
    gradient = x @ (found.positive - expit(scores)) - slope
    assert abs(gradient) < 0.5


@pytest.mark.parametrize(("seed", "slope"), PROBLEMS)
def test_rows_of_whole_weights_are_rows_repeated(seed, slope):
    found = problem(seed, slope)
    weights = np.random.default_rng(seed).integers(1, 4, size=300)
    places = np.repeat(np.arange(300), weights)
    weighted = made(found.values, found.positive, weights + 0.0)
    repeated = made(
        found.values[..., places], found.positive[places], np.ones(len(places))
    )
    scores, orders = logistic_pilot(weighted, prior_of(found))
    expected, same = logistic_pilot(repeated, prior_of(found))
    assert_allclose(scores[places], expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(orders, same)


@pytest.mark.parametrize(("seed", "slope"), PROBLEMS)
def test_the_order_of_the_variables_is_none(seed, slope):
    found = problem(seed, slope)
    order = np.random.default_rng(seed).permutation(8)
    scores, orders = logistic_pilot(found, prior_of(found))
    other = made(found.values[order], found.positive, found.weights)
    again, permuted = logistic_pilot(other, prior_of(other))
    assert_allclose(scores, again, rtol=1e-9, atol=1e-9)
    assert_array_equal(orders[order], permuted)


def test_at_most_so_many_variables():
    found = problem()
    _, orders = logistic_pilot(found, prior_of(found, most=1))
    assert np.count_nonzero(orders) == 1


@pytest.mark.parametrize("variance", [1e-300, 1e-10, 1e10, 1e300])
def test_extreme_slabs_and_copies(variance):
    """A variable and its copy, a function that is zero, and one of huge weight."""
    found = problem()
    values = np.concatenate([found.values, found.values[:5]])
    values[2, 1] = 0.0
    found = made(values, found.positive, np.where(np.arange(300) < 2, 1e20, 1.0))
    found.functions.orders[2] = 1
    scores, _ = logistic_pilot(found, prior_of(found, variance=variance))
    assert np.isfinite(scores).all()


def test_at_least():
    gains = np.array([-1.0, 800.0, 799.0, -2000.0])
    shares = softmax(np.append(0.0, gains))
    expected = [shares[k:].sum() for k in range(1, 5)]
    assert_allclose(at_least(gains), expected, rtol=1e-12)
    assert_allclose(at_least(np.full(2, -5.0)), [2, 1] / (2 + np.exp(5.0)))
