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


def model(shared, n_samples, n_features):
    """Background, and the model as the kernels take it."""
    mean = np.linspace(-0.5, 0.5, n_features)
    variance = np.linspace(0.7, 1.6, n_features)
    n = np.arange(n_samples + 2)
    shape = subspace.PRIOR_SHAPE
    table = 0.5 * np.log(subspace.PRIOR_COUNT / (subspace.PRIOR_COUNT + n))
    table += shape * np.log(subspace.PRIOR_SCALE)
    table += gammaln(shape + n / 2) - gammaln(shape)
    if shared:
        table = -0.5 * np.log1p(ETA * n)
    odds = np.log(1 - THETA), np.log(THETA)
    numbers = subspace.Model(mean, 1 / variance, np.log(variance), *odds, ETA, table)
    return np.array([mean, variance]), numbers


def gain(shared, values, f, background):
    """Log evidence of the values of a cluster, over that of the background.

    As densities of all values at once: Student's where mean and variance are
    integrated out, normal where the shift of the mean is.
    """
    n = len(values)
    if n == 0:
        return 0.0
    mean, variance = background[:, f]
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


def clusters_of(X, labels, n_clusters, gains=0.0):
    counts, sums, squares = statistics(X, labels, n_clusters)
    sums, squares = np.ascontiguousarray(sums), np.ascontiguousarray(squares)
    return subspace.Clusters(counts, sums, squares, np.zeros(n_clusters) + gains)


def assert_clusters(actual, X, labels, gains, rtol=1e-8):
    expected = clusters_of(X, labels, len(actual.counts))
    assert_array_equal(actual.counts, expected.counts)
    assert_allclose(actual.sums, expected.sums, atol=1e-12)
    assert_allclose(actual.squares, expected.squares, atol=1e-12)
    assert_allclose(actual.gains, gains, rtol=rtol, atol=1e-10)


@both
@twin_of(subspace.find_gains)
def test_find_gains(kernel, shared):
    X, labels = rows(), np.array([0, 2] * 6)
    background, numbers = model(shared, *X.shape)
    clusters, out = clusters_of(X, labels, 3), np.empty((3, 3))
    kernel(shared or None, numbers, clusters, clusters.work_space(), out)
    expected = gains_of(shared, X, labels, 3, background)
    assert_allclose(out, expected, rtol=1e-9)
    assert_allclose(clusters.gains, expected.sum(axis=1), rtol=1e-9)
    assert_array_equal(out[1], 0)  # it has no rows


@both
@twin_of(subspace.find_gains)
def test_gains_so_large_that_one_is_lost(kernel, shared):
    """A hundred rows far from the background: the log of 1 + exp(-thousands)."""
    X, labels = np.full((100, 1), 30.0), np.zeros(100, dtype=int)
    background, numbers = model(shared, *X.shape)
    clusters, out = clusters_of(X, labels, 1), np.empty((1, 1))
    kernel(shared or None, numbers, clusters, clusters.work_space(), out)
    assert_allclose(out, gains_of(shared, X, labels, 1, background), rtol=1e-9)
    assert out[0, 0] > 1000


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1.0, 1e3, 1e150])
@twin_of(subspace.find_gains)
def test_gains_of_values_of_any_size(kernel, unit):
    """The series of the logarithm is that of NumPy from 1e-300 to 1e300."""
    X, labels = unit * rows(), np.zeros(12, dtype=int)
    _, numbers = model(False, *X.shape)
    background = np.array([np.zeros(3), np.full(3, unit**2)])
    numbers = numbers._replace(
        mean=background[0], precision=1 / background[1], log_variance=np.full(3, 0.0)
    )
    clusters, out = clusters_of(X, labels, 1), np.empty((1, 3))
    kernel(None, numbers, clusters, clusters.work_space(), out)
    n, shape = 12, subspace.PRIOR_SHAPE
    total, square = X.sum(axis=0), (X**2).sum(axis=0)
    spread = square - total**2 / (n + subspace.PRIOR_COUNT)
    own = np.log(THETA) + numbers.table[n] + 0.5 * square / unit**2
    own -= (shape + n / 2) * np.log(subspace.PRIOR_SCALE + spread / 2)
    assert_allclose(out[0], np.logaddexp(np.log(1 - THETA), own), rtol=1e-12)


@twin_of(subspace.count_rows)
def test_count_rows(kernel):
    X, labels = rows(), np.array([0, 2] * 6)
    clusters = clusters_of(X, labels[::-1].copy(), 3, gains=7.0)
    kernel(X, labels, clusters)
    assert_clusters(clusters, X, labels, 7.0 * (clusters.counts == 0))


@both
@twin_of(subspace.sweep)
def test_sweep(kernel, shared):
    """Each label in turn from its distribution given the others, by inversion."""
    X, n_clusters, concentration = rows(), 3, 0.7
    rng = np.random.default_rng(1)
    labels = rng.integers(n_clusters, size=len(X))
    order, uniforms = rng.permutation(len(X)), rng.random(len(X))
    background, numbers = model(shared, *X.shape)
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
    clusters = clusters_of(X, labels, n_clusters, known)
    work, chances = clusters.work_space(), np.empty_like(laws)
    draws = order, uniforms, concentration, shared or None
    kernel(X, *draws, labels, numbers, clusters, work, chances)
    assert_array_equal(labels, expected)
    assert_allclose(chances, laws, rtol=1e-8)
    gained = gains_of(shared, X, labels, n_clusters, background)
    assert_clusters(clusters, X, labels, gained.sum(axis=1))


@both
@twin_of(subspace.sweep)
def test_sweep_of_one_cluster(kernel, shared):
    """It has all rows, before and after."""
    X, labels = rows(), np.zeros(12, dtype=int)
    background, numbers = model(shared, *X.shape)
    gains = gains_of(shared, X, labels, 1, background).sum(axis=1)
    clusters, chances = clusters_of(X, labels, 1, gains), np.zeros((12, 1))
    draws = np.arange(12), np.full(12, 0.5), 1.0, shared or None
    kernel(X, *draws, labels, numbers, clusters, clusters.work_space(), chances)
    assert_array_equal(chances, 1.0)
    assert_clusters(clusters, X, labels, gains)


@twin_of(subspace.sweep)
def test_sweep_over_very_many_features(kernel):
    """The product whose logarithm is a sum of logarithms must not overflow."""
    X, labels = np.tile(rows(4, 1), 3000), np.array([0, 1, 1, 1])
    _, numbers = model(False, *X.shape)
    background = np.array([[0.1], [0.9]]).repeat(3000, axis=1)
    numbers = numbers._replace(
        mean=background[0],
        precision=1 / background[1],
        log_variance=np.log(background[1]),
    )
    known = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    clusters = clusters_of(X, labels, 2, known)
    draws = np.arange(4), np.full(4, 0.5), 1.0, None
    chances, work = np.empty((4, 2)), clusters.work_space()
    kernel(X, *draws, labels, numbers, clusters, work, chances)
    expected = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    assert_allclose(clusters.gains, expected, rtol=1e-8)


@pytest.mark.parametrize("noted", [False, True])
@twin_of(subspace.fill_boxes)
def test_fill_boxes(kernel, noted):
    X = rows()
    triples = np.array([[0, 1, 2], [0, 5, 5], [3, 3, 3], [6, 8, 11], [2, 0, 11]])
    widths = np.array([0.4, 0.3, 1e-9, 0.01, 0.8])
    members = np.ones((5, len(X)), dtype=bool) if noted else None
    clusters = clusters_of(X, np.arange(12) % 5, 5)
    inside = np.empty(len(X), dtype=bool)
    kernel(np.ascontiguousarray(X.T), triples, widths, inside, clusters, members)
    for t, (middle, *others) in enumerate(triples):
        near = np.abs(X[others] - X[middle]).max(axis=0) <= widths[t]
        expected = np.zeros(len(X), dtype=bool)
        if near.any():
            expected = np.abs(X - X[middle])[:, near].max(axis=1) <= widths[t]
        assert clusters.counts[t] == expected.sum()
        assert_allclose(clusters.sums[t], X[expected].sum(axis=0), atol=1e-12)
        assert_allclose(clusters.squares[t], (X[expected] ** 2).sum(axis=0))
        if noted:
            assert_array_equal(members[t], expected)
    assert_array_equal(clusters.counts > 0, [True, True, True, False, True])


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
    X = rows()
    background, numbers = model(shared, *X.shape)
    members = np.zeros((4, len(X)), dtype=bool)
    members[[0, 0, 1, 1, 2], [0, 1, 5, 8, 3]] = True
    starts = members.copy()
    known = [
        gains_of(shared, X, np.where(m, 0, 1), 1, background).sum() for m in members
    ]
    clusters = subspace.Clusters(
        members.sum(axis=1), members @ X, members @ X**2, np.array(known)
    )
    work = clusters.work_space()
    kernel(X, n_passes, PRICE, shared or None, numbers, clusters, work, members)
    for t in range(4):
        expected, gained = grown(shared, X, starts[t].copy(), n_passes, background)
        assert_array_equal(members[t], expected)
        assert_allclose(clusters.gains[t], gained.sum(), rtol=1e-8, atol=1e-10)
        assert clusters.counts[t] == expected.sum()
        assert_allclose(clusters.sums[t], expected @ X, atol=1e-12)
        assert_allclose(clusters.squares[t], expected @ X**2, atol=1e-12)
    assert (members != starts).any(axis=1).sum() >= 2
