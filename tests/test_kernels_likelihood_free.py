"""NumPy twin of the kernel of approximate Bayesian computation."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from twins import twin_of

from skpacbayes._kernels import likelihood_free


@twin_of(likelihood_free.collect_nearer)
def test_collect_nearer(kernel):
    """In the order of the rows, what is nearer, until there might be no room."""
    rng = np.random.default_rng(0)
    block, first = likelihood_free.BLOCK, 7
    n_rows = first + 4 * block - 50  # the rows beyond are room
    columns, scales = rng.normal(size=(3, n_rows + 100)), np.array([0.5, 1.0, 2.0])
    observations = rng.normal(size=(2, 3))
    gaps = (columns[:, first:n_rows] - observations[:, :, None]) / scales[:, None]
    squares = (gaps**2).sum(axis=1)
    thresholds = np.array([np.quantile(squares[0], 0.1), np.nan])
    counts = np.zeros(2, dtype=np.int64)
    distances, rows = np.empty((2, 3 * block - 1)), np.empty((2, 3 * block - 1), int)
    arguments = (scales, observations, thresholds, counts, distances, rows)

    reached = kernel(columns, first, n_rows, *arguments)
    assert reached == first + 2 * block  # NaN: all were collected
    assert kernel(columns, reached, n_rows, *arguments) == reached
    counts[1] = 0  # make room
    assert kernel(columns, reached, n_rows, *arguments) == n_rows

    expected = np.flatnonzero(squares[0] < thresholds[0])
    assert_array_equal(rows[0, : counts[0]], first + expected)
    assert_allclose(distances[0, : counts[0]], squares[0, expected], rtol=1e-14)
    assert_array_equal(rows[1, : counts[1]], np.arange(reached, n_rows))
