"""Kernels of the logistic likelihood against NumPy, and draws against quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_expit
from twins import twin_of

from skpacbayes._kernels import logistic as kernels


@twin_of(kernels.log_likelihood)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_log_likelihood(kernel, scale):
    """Also of more rows of one weight than one product has room for."""
    rng = np.random.default_rng(0)
    start, direction = scale * rng.normal(size=(2, 2500))
    signs = np.where(rng.random(2500) < 0.5, 1.0, -1.0)
    for weights in (np.ones(2500), rng.integers(0, 3, size=2500) + 0.0):
        expected = weights @ log_expit(signs * (start + 0.3 * direction))
        found = kernel(start, direction, 0.3, signs, weights)
        assert_allclose(found, expected, rtol=1e-12)
    assert kernel(*np.zeros((2, 2000)), 0.0, signs, np.ones(2000)) == pytest.approx(
        -2000 * np.log(2)
    )


@twin_of(kernels.move_along_lines)
def test_move_along_lines(kernel):
    """Intercept and coefficient have their posterior, a sum over a fine grid.

    Means of 40 batches; each of the four scores is below 5 in absolute value with
    probability above 1 - 2e-5, by Student's law with 39 degrees of freedom.
    """
    rng = np.random.default_rng(0)
    rows = np.array([[-1.5, -0.5, 0.1, 0.6, 1.3]])
    signs = np.array([-1.0, -1.0, 1.0, -1.0, 1.0])
    weights = np.array([2.0, 1.0, 1.0, 0.5, 1.0])
    ridges = np.array([0.5, 0.1])
    grid = np.linspace(-12, 20, 641)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_values = -0.5 * (ridges[0] * first**2 + ridges[1] * second**2)
    for value, sign, weight in zip(rows[0], signs, weights, strict=True):
        log_values += weight * log_expit(sign * (first + value * second))
    shares = np.exp(log_values - log_values.max())
    shares /= shares.sum()
    point, scores, change = np.zeros(2), np.zeros(5), np.empty(5)
    found = np.empty((2000, 2))
    for draw in found:
        turns = rng.standard_normal((4, 2))
        arguments = turns, point, ridges, rows, scores, change, 1.0, (signs, weights)
        kernel(*arguments, rng)
        draw[:] = point
    assert_allclose(scores, point[0] + point[1] * rows[0], atol=1e-9)
    for expected, values in (
        ((shares * first).sum(), found[:, 0]),
        ((shares * second).sum(), found[:, 1]),
        ((shares * second**2).sum(), found[:, 1] ** 2),
        ((shares * first * second).sum(), found.prod(axis=1)),
    ):
        means = values.reshape(40, -1).mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(40)
        assert abs(means.mean() - expected) < 5 * error
