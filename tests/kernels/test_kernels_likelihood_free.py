"""NumPy twins of the kernels of approximate Bayesian computation."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import truncnorm
from twins import twin_of

from skpacbayes._kernels import likelihood_free


@twin_of(likelihood_free.collect_nearer)
def test_collect_nearer(kernel):
    """In the order of the rows, what is nearer, until there might be no room."""
    rng = np.random.default_rng(0)
    block, first = likelihood_free.BLOCK, 7
    n_rows = first + 4 * block - 50  # the rows beyond are room
    columns, precisions = rng.normal(size=(3, n_rows + 100)), np.array([2.0, 1.0, 0.5])
    observations = rng.normal(size=(2, 3))
    gaps = columns[:, first:n_rows] - observations[:, :, None]
    squares = ((gaps * precisions[:, None]) ** 2).sum(axis=1)
    thresholds = np.array([np.quantile(squares[0], 0.1), np.nan])
    starts = np.array([first, first, first + 2 * block + 9])
    stops = np.array([first, first + 2 * block + 9, n_rows])  # the first is empty
    counts = np.zeros(2, dtype=np.int64)
    distances, rows = np.empty((2, 3 * block - 1)), np.empty((2, 3 * block - 1), int)

    def call():
        near = counts, distances, rows
        given = columns, starts, stops, precisions, observations, thresholds
        return kernel(*given, *near)

    assert not call()  # NaN: all were collected, and no further block has room
    assert_array_equal(starts, [first, stops[1], stops[1]])
    collected = counts[1]
    assert_array_equal(rows[1, :collected], np.arange(first, starts[1]))
    assert_allclose(distances[1, :collected], squares[1, :collected], rtol=1e-9)
    assert not call()
    counts[1] = 0  # make room
    assert call()
    assert_array_equal(starts, stops)

    expected = np.flatnonzero(squares[0] < thresholds[0])
    assert_array_equal(rows[0, : counts[0]], first + expected)
    assert_allclose(distances[0, : counts[0]], squares[0, expected], rtol=1e-9)
    assert_array_equal(rows[1, : counts[1]], np.arange(stops[1], n_rows))
    # of 30 bits, the nearest to the squares
    mantissas = np.frexp(distances[0, : counts[0]])[0] * 2.0**30
    assert_array_equal(mantissas, np.round(mantissas))


@twin_of(likelihood_free.log_kernel_densities)
def test_log_kernel_densities(kernel):
    """A weighted mixture of truncated normal densities; a bound may be infinite."""
    rng = np.random.default_rng(0)
    low, high = np.array([-np.inf, 0.0, -1.0]), np.array([np.inf, np.inf, 1.0])
    draws = np.column_stack(
        [rng.normal(size=40), rng.exponential(size=40), rng.uniform(-1, 1, size=40)]
    )
    weights = rng.random(40)
    weights[3] = 0.0
    weights /= weights.sum()
    point, unit = np.array([0.2, 0.1, 0.9]), np.array([0.4, 0.3, 0.5])
    multipliers, found = np.array([1.0, 0.5, 0.1]), np.empty(3)
    kernel(draws, weights, point, unit, multipliers, low, high, np.empty(40), found)
    for multiplier, actual in zip(multipliers, found, strict=True):
        h = multiplier * unit
        a, b = (low - draws) / h, (high - draws) / h
        parts = truncnorm.logpdf(point, a, b, loc=draws, scale=h).sum(axis=1)
        # A kernel beyond five bandwidths of a bound keeps all but 3e-7 of its mass.
        assert_allclose(actual, logsumexp(parts, b=weights), rtol=1e-6, atol=1e-6)
