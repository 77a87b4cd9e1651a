"""Losses of a score, their expectations, and the weights of experts, against NumPy."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from online_reference import loss_of, slopes
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax
from twins import twin_of

from skpacbayes._kernels import aggregation, online_losses

LOSSES = ["squared_error", "absolute_error", "hinge", "log_loss"]
SCORES = [
    (1.0, 0.3, 0.5),
    (-1.0, 2.0, 0.1),
    (1.0, -1.5, 2.0),
    (-1.0, 0.0, 1.0),
    (1.0, 4.0, 0.05),
]


@pytest.mark.parametrize("loss", LOSSES)
@twin_of(aggregation.point_loss)
def test_point_loss(kernel, loss):
    for y, a, _ in SCORES:
        expected = loss_of(loss, y, a)
        assert_allclose(kernel(LOSSES.index(loss), y, a), expected, rtol=1e-12)


@twin_of(aggregation.target_of)
def test_target_of(kernel):
    assert kernel(3.5, -1) == 3.5
    assert [kernel(float(label), 2) for label in range(4)] == [-1.0, -1.0, 1.0, -1.0]


@pytest.mark.parametrize("rate", [0.0, 1e-3, 2.0, 1e6])
@twin_of(aggregation.soft_minimum)
def test_soft_minimum(kernel, rate):
    losses = np.random.default_rng(0).exponential(size=5)
    expected = losses.mean()
    if rate > 0.0:
        expected = -(logsumexp(-rate * losses) - math.log(5)) / rate
    assert_allclose(kernel(losses, rate), expected, rtol=1e-9)


@pytest.mark.parametrize("rate", [0.0, 0.7, 1e4])
@twin_of(aggregation.weigh)
def test_weigh(kernel, rate):
    losses = np.random.default_rng(0).exponential(size=5)
    totals = np.zeros(aggregation.N_TOTALS)
    totals[aggregation.KIND] = aggregation.FIXED
    totals[aggregation.TEMPERATURE] = rate
    shares = np.empty(5)
    found, total, lowest = kernel(losses, totals, shares)
    assert (found, lowest) == (rate, losses.min())
    assert_allclose(total, np.exp(-rate * (losses - losses.min())).sum())
    assert_allclose(shares, softmax(-rate * losses), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", ["FIXED", "ANYTIME", "NOISE"])
@twin_of(aggregation.aggregate_squares)
def test_aggregate_squares(kernel, kind):
    """The aggregate of the squared loss."""
    rng = np.random.default_rng(2)
    y, predictions = rng.normal(size=30), rng.normal(size=(4, 30))
    weights, totals = rng.integers(3, size=30) / 2.0, np.zeros(aggregation.N_TOTALS)
    totals[aggregation.KIND] = getattr(aggregation, kind)
    totals[[aggregation.TEMPERATURE, aggregation.IN_RANGE]] = 0.5, 1.0
    totals[[aggregation.LOWEST_TARGET, aggregation.HIGHEST_TARGET]] = np.inf, -np.inf
    found, expected = (
        (predictions.copy(), np.zeros(4), totals.copy(), np.empty((2, 4)))
        for _ in range(2)
    )
    kernel(y, weights, *found)
    aggregation.aggregate.py_func(y, -1, weights, aggregation.SQUARED, *expected)
    for ours, theirs in zip(found[:3], expected[:3], strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-300)


@twin_of(aggregation.average)
def test_average(kernel):
    rng = np.random.default_rng(1)
    losses, predictions = rng.exponential(size=5), 3.0 * rng.normal(size=(5, 7))
    totals = np.zeros(aggregation.N_TOTALS)
    totals[[aggregation.KIND, aggregation.TEMPERATURE]] = aggregation.FIXED, 0.7
    expected = softmax(-0.7 * losses) @ np.clip(predictions, -2.0, 2.0)
    kernel(losses, totals, 2.0, predictions)
    assert_allclose(predictions[0], expected, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@twin_of(online_losses.expected_gradients)
def test_expected_gradients(kernel, loss):
    """Logistic: by the same quadrature, whose error the reference has, too."""
    for y, a, v in SCORES:
        actual = kernel(LOSSES.index(loss), y, a, v)
        assert_allclose(actual, slopes(loss, y, a, v), rtol=1e-9, atol=1e-12)


@twin_of(online_losses.expected_gradients)
def test_logistic_gradients_with_few_nodes(kernel):
    """Of the posterior of a long stream, whose scores vary little, as with many."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    for v in (0.0, 1e-6, 0.01, online_losses.SMALL_DEVIATION**2, 0.1):
        for a in (-20.0, -3.0, -0.2, 0.0, 1.0, 5.0):
            p = 1.0 / (1.0 + np.exp(a + np.sqrt(v) * nodes))
            mean = np.stack([-p, 0.5 * p * (1.0 - p)]) @ weights / weights.sum()
            actual = kernel(LOSSES.index("log_loss"), 1.0, a, v)
            assert_allclose(actual, mean, rtol=3e-11, atol=1e-16)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strength", [0.1, 3.0])
@twin_of(online_losses.implicit_gradients)
def test_implicit_gradients(kernel, loss, strength):
    """The derivative at the root of a' = a - strength v dL(a', v)/da (brentq)."""
    number = LOSSES.index(loss)
    for y, a, v in SCORES:
        if loss == "squared_error":  # a step is strength, with the variance inside
            root = a + 2.0 * strength * v * (y - a) / (1.0 + 2.0 * strength * v)
        else:

            def excess(point, y=y, a=a, v=v):
                return point - a + strength * v * slopes(loss, y, point, v)[0]

            reach = strength * v + 1.0
            root = brentq(excess, a - reach, a + reach, xtol=1e-13, rtol=1e-13)
        expected = slopes(loss, y, root, v)[0], slopes(loss, y, a, v)[1]
        actual = kernel(number, y, a, v, strength)
        assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)
