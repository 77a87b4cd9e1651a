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
    """Background, numbers and table, as the kernels take them."""
    mean = np.linspace(-0.5, 0.5, n_features)
    variance = np.linspace(0.7, 1.6, n_features)
    background = np.array([mean, variance, np.log(variance)])
    numbers = np.array([np.log(1 - THETA), np.log(THETA), ETA])
    n = np.arange(n_samples + 1)
    shape = subspace.PRIOR_SHAPE
    table = 0.5 * np.log(subspace.PRIOR_COUNT / (subspace.PRIOR_COUNT + n))
    table += shape * np.log(subspace.PRIOR_SCALE)
    table += gammaln(shape + n / 2) - gammaln(shape)
    if shared:
        table = -0.5 * np.log1p(ETA * n)
    return background, numbers, table


def gain(shared, values, f, background):
    """Log evidence of the values of a cluster, over that of the background.

    As densities of all values at once: Student's where mean and variance are
    integrated out, normal where the shift of the mean is.
    """
    n = len(values)
    if n == 0:
        return 0.0
    mean, variance, _ = background[:, f]
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
@twin_of(subspace.gains)
def test_gains(kernel, shared):
    X, labels = rows(), np.array([0, 2] * 6)
    background, numbers, table = model(shared, *X.shape)
    out = np.empty((3, 3))
    kernel(shared, *statistics(X, labels, 3), background, numbers, table, out)
    assert_allclose(out, gains_of(shared, X, labels, 3, background), rtol=1e-9)
    assert_array_equal(out[1], 0)  # it has no rows


@both
@twin_of(subspace.gains)
def test_gains_so_large_that_one_is_lost(kernel, shared):
    """A hundred rows far from the background: the log of 1 + exp(-thousands)."""
    X = np.full((100, 1), 30.0)
    background, numbers, table = model(shared, *X.shape)
    out = np.empty((1, 1))
    labels = np.zeros(100, dtype=int)
    kernel(shared, *statistics(X, labels, 1), background, numbers, table, out)
    assert_allclose(out, gains_of(shared, X, labels, 1, background), rtol=1e-9)
    assert out[0, 0] > 1000


@both
@twin_of(subspace.sweep)
def test_sweep(kernel, shared):
    """Each label in turn from its law given the others, by inversion."""
    X, n_clusters, concentration = rows(), 3, 0.7
    rng = np.random.default_rng(1)
    labels = rng.integers(n_clusters, size=len(X))
    order, uniforms = rng.permutation(len(X)), rng.random(len(X))
    background, numbers, table = model(shared, *X.shape)
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

    moved = statistics(X, labels, n_clusters)
    known = gains_of(shared, X, labels, n_clusters, background).sum(axis=1)
    chances = np.empty_like(laws)
    kernel(
        X,
        order,
        uniforms,
        concentration,
        shared,
        labels,
        *moved,
        background,
        numbers,
        table,
        known,
        np.empty(n_clusters),
        chances,
    )
    assert_array_equal(labels, expected)
    assert_allclose(chances, laws, rtol=1e-8)
    for actual, wanted in zip(moved, statistics(X, labels, n_clusters), strict=True):
        assert_allclose(actual, wanted, atol=1e-12)
    gained = gains_of(shared, X, labels, n_clusters, background)
    assert_allclose(known, gained.sum(axis=1), rtol=1e-8)


@twin_of(subspace.sweep)
def test_sweep_over_very_many_features(kernel):
    """The product whose logarithm is a sum of logarithms must not overflow."""
    X, labels = np.tile(rows(4, 1), 3000), np.array([0, 1, 1, 1])
    _, numbers, table = model(False, *X.shape)
    background = np.array([[0.1], [0.9], [np.log(0.9)]]).repeat(3000, axis=1)
    found, known = statistics(X, labels, 2), np.empty(2)
    known[:] = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    order, uniforms, chances = np.arange(4), np.full(4, 0.5), np.empty((4, 2))
    fixed = numbers, table, known, np.empty(2), chances
    kernel(X, order, uniforms, 1.0, False, labels, *found, background, *fixed)
    expected = 3000 * gains_of(False, X[:, :1], labels, 2, background)[:, 0]
    assert_allclose(known, expected, rtol=1e-8)


@twin_of(subspace.fill_boxes)
def test_fill_boxes(kernel):
    X, free = rows(), np.array([0, 1, 2, 3, 5, 6, 8, 11])
    triples = np.array([[0, 1, 2], [0, 5, 5], [3, 3, 3], [6, 8, 11], [2, 0, 11]])
    widths = np.array([0.4, 0.3, 1e-9, 0.01, 0.8])
    members = np.zeros((5, len(X)), dtype=bool)
    kernel(X, free, triples, widths, np.empty(3, dtype=np.int64), members)
    for t, (middle, *others) in enumerate(triples):
        near = np.abs(X[others] - X[middle]).max(axis=0) <= widths[t]
        expected = np.zeros(len(X), dtype=bool)
        if near.any():
            inside = np.abs(X - X[middle])[:, near].max(axis=1) <= widths[t]
            expected[free] = inside[free]
        assert_array_equal(members[t], expected)
    assert_array_equal(members.any(axis=1), [True, True, True, False, True])


def grown(shared, X, free, members, n_sweeps, background):
    """Members and gains of one group, by the plain definition."""

    def gains():
        return gains_of(shared, X, np.where(members, 0, 1), 1, background)[0]

    def score():
        return gains().sum() - PRICE * members.sum()

    for _ in range(n_sweeps):
        for i in free:
            before = score()
            members[i] ^= True
            if not score() > before:
                members[i] ^= True
    return members, gains()


@both
@pytest.mark.parametrize("n_sweeps", [1, 5])
@twin_of(subspace.grow)
def test_grow(kernel, n_sweeps, shared):
    X, free = rows(), np.array([0, 1, 2, 3, 5, 6, 8, 11])
    background, numbers, table = model(shared, *X.shape)
    members = np.zeros((4, len(X)), dtype=bool)
    members[[0, 0, 1, 1, 2], [0, 1, 5, 8, 3]] = True
    starts = members.copy()
    counts = np.array([statistics(X, np.where(m, 0, 1), 2)[0][0] for m in members])
    sums, squares = members @ X, members @ X**2
    known = np.array(
        [gains_of(shared, X, np.where(m, 0, 1), 1, background).sum() for m in members]
    )
    kernel(
        X,
        free,
        n_sweeps,
        PRICE,
        shared,
        background,
        numbers,
        table,
        members,
        counts,
        sums,
        squares,
        known,
    )
    for t in range(4):
        expected, gained = grown(
            shared, X, free, starts[t].copy(), n_sweeps, background
        )
        assert_array_equal(members[t], expected)
        assert_allclose(known[t], gained.sum(), rtol=1e-8, atol=1e-10)
        assert counts[t] == expected.sum()
        assert_allclose(sums[t], expected @ X, atol=1e-12)
        assert_allclose(squares[t], expected @ X**2, atol=1e-12)
    assert (members != starts).any(axis=1).sum() >= 2
