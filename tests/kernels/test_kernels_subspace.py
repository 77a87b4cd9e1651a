"""NumPy twins of the kernels of mixtures whose clusters choose their features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln, softmax
from scipy.stats import multivariate_normal, multivariate_t
from twins import twin_of

from skpacbayes._kernels import subspace

both = pytest.mark.parametrize("shared", [False, True])
THETA, ETA, PRICE = 0.3, 4.0, 0.5


def rows(n_samples=12, n_features=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_samples, n_features))
    X[: n_samples // 2, 0] = 1 + 0.1 * X[: n_samples // 2, 0]
    return X


def background_of(n_features):
    return np.linspace(-0.5, 0.5, n_features), np.linspace(0.7, 1.6, n_features)


def clusters_of(shared, X, labels, n_clusters, background, gains=0.0):
    """Clusters of the rows, under the model."""
    n = np.arange(len(X) + 2)
    shape = subspace.PRIOR_SHAPE
    table = 0.5 * np.log(subspace.PRIOR_COUNT / (subspace.PRIOR_COUNT + n))
    table += shape * np.log(subspace.PRIOR_SCALE)
    table += gammaln(shape + n / 2) - gammaln(shape)
    if shared:
        table = -0.5 * np.log1p(ETA * n)
    clusters = subspace.Clusters(n_clusters, X.shape[1])
    odds = np.log(1 - THETA), np.log(THETA)
    clusters.use(*background, odds, ETA if shared else None, table)
    counts, sums, squares = statistics(X, labels, n_clusters)
    clusters.counts[:], clusters.gains[:] = counts, gains
    clusters.sums[:], clusters.squares[:] = sums, squares
    return clusters


def assert_clusters(actual, X, labels, gains):
    counts, sums, squares = statistics(X, labels, len(actual))
    assert_array_equal(actual.counts, counts)
    assert_allclose(actual.sums, sums, atol=1e-12)
    assert_allclose(actual.squares, squares, atol=1e-12)
    assert_allclose(actual.gains, gains, rtol=1e-8, atol=1e-10)


def gain(shared, values, f, background):
    """Log evidence of the values of a cluster, over that of the background.

    As densities of all values at once: Student's where mean and variance are
    integrated out, normal where the shift of the mean is.
    """
    n = len(values)
    if n == 0:
        return 0.0
    mean, variance = background[0][f], background[1][f]
    plain = multivariate_normal(np.full(n, mean), variance * np.eye(n)).logpdf(values)
    if shared:
        scatter = variance * (np.eye(n) + ETA)
        own = multivariate_normal(np.full(n, mean), scatter).logpdf(values)
    else:
        scale = subspace.PRIOR_SCALE / subspace.PRIOR_SHAPE
        scatter = scale * (np.eye(n) + 1 / subspace.PRIOR_COUNT)
        df = 2 * subspace.PRIOR_SHAPE
        own = multivariate_t(np.zeros(n), scatter, df=df).logpdf(values)
    return np.logaddexp(np.log(1 - THETA), np.log(THETA) + own - plain)


def gains_of(shared, X, labels, n_clusters, background):
    return np.array(
        [
            [gain(shared, X[labels == j, f], f, background) for f in range(X.shape[1])]
            for j in range(n_clusters)
        ]
    )


def statistics(X, labels, n_clusters):
    own = np.eye(n_clusters)[labels].T
    return own.sum(axis=1).astype(np.int64), own @ X, own @ X**2


@both
def test_find_gains(shared):
    X, labels = rows(), np.array([0, 2] * 6)
    background = background_of(3)
    clusters = clusters_of(shared, X, labels, 3, background)
    found = clusters.find_gains()
    expected = gains_of(shared, X, labels, 3, background)
    assert_allclose(found, expected, rtol=1e-9)
    assert_allclose(clusters.gains, expected.sum(axis=1), rtol=1e-9)
    assert_array_equal(found[1], 0)  # it has no rows


@both
def test_gains_so_large_that_one_is_lost(shared):
    """A hundred rows far from the background: the log of 1 + exp(-thousands)."""
    X, labels = np.full((100, 1), 30.0), np.zeros(100, dtype=int)
    background = background_of(1)
    found = clusters_of(shared, X, labels, 1, background).find_gains()
    assert_allclose(found, gains_of(shared, X, labels, 1, background), rtol=1e-9)
    assert found[0, 0] > 1000


@both
def test_selected_clusters(shared):
    X, labels = rows(), np.arange(12) % 4
    clusters = clusters_of(shared, X, labels, 4, background_of(3))
    expected = clusters.find_gains()[[3, 1]]
    some = clusters.select(np.array([3, 1]))
    assert_array_equal(some.gains, clusters.gains[[3, 1]])
    assert_array_equal(some.counts, clusters.counts[[3, 1]])
    assert_array_equal(some.find_gains(), expected)


@twin_of(subspace.count_rows)
def test_count_rows(kernel):
    X, labels = rows(), np.array([0, 2] * 6)
    clusters = clusters_of(False, X, labels[::-1].copy(), 3, background_of(3), 7.0)
    kernel(X, labels, clusters.counts, clusters.sums, clusters.squares)
    assert_clusters(clusters, X, labels, 7.0)


@both
@twin_of(subspace.sweep)
def test_sweep(kernel, shared):
    """Each label in turn from its distribution given the others, by inversion."""
    X, n_clusters, concentration = rows(), 3, 0.7
    rng = np.random.default_rng(1)
    labels = rng.integers(n_clusters, size=len(X))
    order, uniforms = rng.permutation(len(X)), rng.random(len(X))
    background = background_of(3)
    expected, laws = labels.copy(), np.empty((len(X), n_clusters))
    for i, uniform in zip(order, uniforms, strict=True):
        expected[i] = -1
        before = gains_of(shared, X, expected, n_clusters, background).sum()
        scores = np.empty(n_clusters)
        for j in range(n_clusters):
            count = (expected == j).sum()
            expected[i] = j
            after = gains_of(shared, X, expected, n_clusters, background).sum()
            scores[j] = np.log(count + concentration) + after - before
            expected[i] = -1
        laws[i] = softmax(scores)
        expected[i] = np.searchsorted(laws[i].cumsum(), uniform, side="right")

    known = gains_of(shared, X, labels, n_clusters, background).sum(axis=1)
    clusters = clusters_of(shared, X, labels, n_clusters, background, known)
    chances = np.empty_like(laws)
    kernel(X, order, uniforms, concentration, labels, chances, clusters.state())
    assert_array_equal(labels, expected)
    assert_allclose(chances, laws, rtol=1e-8)
    gained = gains_of(shared, X, labels, n_clusters, background)
    assert_clusters(clusters, X, labels, gained.sum(axis=1))


@both
@twin_of(subspace.sweep)
def test_sweep_of_one_cluster(kernel, shared):
    """It has all rows, before and after."""
    X, labels, background = rows(), np.zeros(12, dtype=int), background_of(3)
    gains = gains_of(shared, X, labels, 1, background).sum(axis=1)
    clusters = clusters_of(shared, X, labels, 1, background, gains)
    chances = np.zeros((12, 1))
    draws = np.arange(12), np.full(12, 0.5), 1.0
    kernel(X, *draws, labels, chances, clusters.state())
    assert_array_equal(chances, 1.0)
    assert_clusters(clusters, X, labels, gains)


@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e3, 1e100])
@twin_of(subspace.sweep)
def test_sweep_over_values_of_any_size(kernel, unit):
    """The series of the logarithm is that of NumPy: the last row joins a cluster."""
    X = unit * np.array([[1.0, 2.0, -1.5], [1.2, 2.5, -1.0], [0.1, 9.0, 0.0]])
    labels = np.array([0, 0, 1])
    background = np.zeros(3), np.full(3, unit**2)
    known = clusters_of(False, X, labels, 2, background)
    known.find_gains()
    chances = np.empty((3, 2))
    last = np.array([2]), np.array([0.5]), 1.0
    own = labels.copy()
    kernel(X, *last, own, chances, known.state())
    scores = []
    for j in range(2):
        moved = np.array([0, 0, j])
        clusters = clusters_of(False, X, moved, 2, background)
        count = 2 if j == 0 else 0
        scores.append(clusters.find_gains().sum() + np.log(count + 1.0))
    assert_allclose(chances[2], softmax(scores), rtol=1e-9)


@twin_of(subspace.sweep)
def test_sweep_over_very_many_features(kernel):
    """The product whose logarithm is a sum of logarithms must not overflow."""
    X, labels = np.tile(rows(4, 1), 3000), np.array([0, 1, 1, 1])
    background = np.full(3000, 0.1), np.full(3000, 0.9)
    known = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    clusters = clusters_of(False, X, labels, 2, background, known)
    draws, chances = (np.arange(4), np.full(4, 0.5), 1.0), np.empty((4, 2))
    kernel(X, *draws, labels, chances, clusters.state())
    expected = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    assert_allclose(clusters.gains, expected, rtol=1e-8)


@twin_of(subspace.fill_boxes)
def test_fill_boxes(kernel):
    X = rows()
    triples = np.array([[0, 1, 2], [0, 5, 5], [3, 3, 3], [6, 8, 11], [2, 0, 11]])
    widths = np.array([0.4, 0.3, 1e-9, 0.01, 0.8])
    limits, orders = np.array([3, 3, 2, 3, 1]), np.array([[0, 1, 2], [2, 0, 1]] * 3)[:5]
    members = np.ones((5, len(X)), dtype=bool)
    boxes = clusters_of(False, X, np.arange(12) % 5, 5, background_of(3))
    statistics = boxes.counts, boxes.sums, boxes.squares
    kernel(
        np.ascontiguousarray(X.T), triples, widths, limits, orders, members, *statistics
    )
    for t, (middle, *others) in enumerate(triples):
        near = np.abs(X[others] - X[middle]).max(axis=0) <= widths[t]
        near[orders[t][near[orders[t]]][limits[t] :]] = False
        expected = np.zeros(len(X), dtype=bool)
        if near.any():
            expected = np.abs(X - X[middle])[:, near].max(axis=1) <= widths[t]
        assert_array_equal(members[t], expected)
        assert boxes.counts[t] == expected.sum()
        assert_allclose(boxes.sums[t], X[expected].sum(axis=0), atol=1e-12)
        assert_allclose(boxes.squares[t], (X[expected] ** 2).sum(axis=0))
    assert_array_equal(boxes.counts > 0, [True, True, True, False, True])


def grown(shared, X, members, n_passes, background):
    """Members and gains of one group, by the plain definition."""

    def gains():
        return gains_of(shared, X, np.where(members, 0, 1), 1, background)[0]

    def score():
        return gains().sum() - PRICE * members.sum()

    for _ in range(n_passes):
        for i in range(len(X)):
            before = score()
            members[i] ^= True
            if not score() > before:
                members[i] ^= True
    return members, gains()


@both
@pytest.mark.parametrize("n_passes", [1, 5])
@twin_of(subspace.grow)
def test_grow(kernel, n_passes, shared):
    X, background = rows(), background_of(3)
    members = np.zeros((4, len(X)), dtype=bool)
    members[[0, 0, 1, 1, 2], [0, 1, 5, 8, 3]] = True
    starts = members.copy()
    known = [
        gains_of(shared, X, np.where(m, 0, 1), 1, background).sum() for m in members
    ]
    clusters = clusters_of(shared, X, np.zeros(12, dtype=int), 4, background, known)
    clusters.counts[:] = members.sum(axis=1)
    clusters.sums[:], clusters.squares[:] = members @ X, members @ X**2
    kernel(X, n_passes, PRICE, members, clusters.state())
    for t in range(4):
        expected, gained = grown(shared, X, starts[t].copy(), n_passes, background)
        assert_array_equal(members[t], expected)
        assert_allclose(clusters.gains[t], gained.sum(), rtol=1e-8, atol=1e-10)
        assert clusters.counts[t] == expected.sum()
        assert_allclose(clusters.sums[t], expected @ X, atol=1e-12)
        assert_allclose(clusters.squares[t], expected @ X**2, atol=1e-12)
    assert (members != starts).any(axis=1).sum() >= 2
