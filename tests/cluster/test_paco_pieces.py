"""Clusters of two modes: no shape with one mode fails the test; what is found.

In a stream, rows are merged into points.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.stats import binom

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_pieces import (
    counts_between,
    pieces_of_clusters,
    rows_of_points,
)
from skpacbayes.cluster._paco_summary import StreamSummary

ONE_MODE = {
    "uniform": lambda rng, size: rng.uniform(size=size),
    "long boxes": lambda rng, size: rng.uniform(size=size) * [3, 1, 1],
    "normal": lambda rng, size: rng.normal(size=size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "log-normal": lambda rng, size: np.exp(rng.normal(size=size)),
    "Student": lambda rng, size: rng.standard_t(2, size=size),
}


def test_the_p_value_of_one_cluster_is_binomial():
    """Of 12 rows, 6 are at one end, 4 at the other, and 2 midway: the fewer count."""
    points = np.repeat([[-1.0], [1.0], [0.1], [-0.1]], [6, 4, 1, 1], axis=0)
    low, high = (
        points[points[:, 0] < 0].mean(),
        points[points[:, 0] > 0].mean(),
    )
    places = points[:, 0] - points.mean()
    labels = np.zeros(12, dtype=int)
    p_value, depth, above = pieces_of_clusters(points, np.ones(12), labels, 1, False)
    centers = low - points.mean(), high - points.mean()
    left, middle, right = counts_between(places, np.ones(12), *centers)
    assert (left, middle, right) == (6, 2, 4)
    assert_allclose(p_value, binom.cdf(2, 6, 0.5))
    assert_allclose(depth, 2 / 5)
    assert above.sum() in (5, 7)  # the sign of the axis is free


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("shape", ONE_MODE)
def test_clusters_of_one_mode_are_not_cut(shape, common):
    """The density midway is never below both ends: p-values are not too small.

    40 draws of a valid p-value are all above 1e-3 with probability 0.96.
    """
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n_clusters, size = [(3, 150), (20, 20), (40, 12)][seed % 3]
        labels = np.repeat(np.arange(n_clusters), size)
        points = ONE_MODE[shape](rng, (len(labels), 3))
        weights = np.ones(len(labels))
        found = pieces_of_clusters(points, weights, labels, n_clusters, common)
        assert found[0] > 1e-3


def test_merged_rows_are_no_modes():
    """3,000 rows of 40 boxes, in 400 points: gaps between points are none of the rows.

    Without the rows that are drawn, the p-value along the common axis is below 1e-20.
    """
    rng = np.random.default_rng(0)
    places, n_rows = 20.0 * np.argwhere(np.ones((8, 5))), 3000
    X = places[rng.integers(40, size=n_rows)]
    X += rng.uniform(-0.5, 0.5, size=X.shape) * [2, 1]
    summary = StreamSummary(2, 400, False)
    summary.absorb(np.column_stack([X, np.ones(n_rows), np.zeros(n_rows)]))
    points = summary.rows()
    problem = MixtureProblem.of(points, np.zeros((2, 2)))
    rows, weights, which = rows_of_points(problem)
    assert_allclose(weights.sum(), n_rows)
    squares = ((rows - points.points[which]) ** 2).sum()
    assert_allclose(squares, problem.scatter.trace(), rtol=0.1)
    gaps = cdist(points.points, summary.into(places))
    labels = gaps.argmin(axis=1)
    for common in (False, True):
        merged = points.points, points.weights, labels, 40, common
        drawn = rows, weights, labels[which], 40, common
        assert pieces_of_clusters(*drawn)[0] > 1e-3
    assert pieces_of_clusters(*merged)[0] < 1e-20


def pairs(n_rows, apart, seed):
    """20 places far from each other, each with two groups side by side."""
    rng = np.random.default_rng(seed)
    places = 20.0 * np.argwhere(np.ones((5, 4)))
    y = rng.integers(40, size=n_rows)
    centers = places[y // 2] + apart * np.outer(y % 2, [1, 0])
    return centers + rng.normal(size=(n_rows, 2)), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "apart", "stream"),
    [(400, 5.0, False), (700, 4.5, False), (1000, 4.0, True)],
)
def test_pairs_of_groups_are_not_counted_as_one_in_silence(n_rows, apart, stream):
    X = pairs(n_rows, apart, 1)[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(refresh=n_rows // 2, random_state=0)
        model = model.partial_fit(X) if stream else model.fit(X)
    messages = " ".join(str(one.message) for one in caught)
    assert abs(model.n_clusters_ - 40) <= 1 or "two modes" in messages
