"""NumPy twins of the kernels of tuples of centres."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from twins import twin_of

from skpacbayes._kernels import swap

SIZES = ("n_samples", "n_features", "n_clusters")
SEVERAL = [(40, 1, 3), (60, 3, 2), (50, 4, 7), (30, 9, 12), (5, 2, 5)]
MEMORY = pytest.mark.parametrize("remember", [False, True])
CASES = pytest.mark.parametrize(SIZES, [*SEVERAL, (20, 6, 1)])


def columns(n_samples, n_features, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_samples, n_features))
    return np.ascontiguousarray(X.T)


def state(n_samples, n_clusters=0):
    """Memory, first, second, near, next_near: before anything is known of them."""
    memory = np.full((n_clusters, n_samples if n_clusters else 0), np.nan)
    indices = np.zeros((2, n_samples), dtype=np.int64)
    squares = np.full((2, n_samples), np.nan)
    return memory, *indices, *squares


def assert_nearest(X, centers, memory, first, second, near, next_near):
    squares = cdist(X, centers, "sqeuclidean")
    if len(memory):
        assert_allclose(memory, squares.T, rtol=1e-12, atol=1e-15)
    assert_array_equal(first, squares.argmin(axis=1))
    assert_allclose(near, squares.min(axis=1), rtol=1e-12, atol=1e-15)
    if len(centers) == 1:
        assert np.isinf(next_near).all()
        return
    order = squares.argsort(axis=1)
    assert_array_equal(second, order[:, 1])
    assert_allclose(next_near, np.sort(squares)[:, 1], rtol=1e-12)


def drawn(squares, uniform):
    """Row drawn in proportion to its square, by inversion."""
    return np.searchsorted(np.cumsum(squares), uniform * squares.sum(), side="right")


@MEMORY
@CASES
@twin_of(swap.draw_tuple)
def test_draw_tuple(kernel, n_samples, n_features, n_clusters, remember):
    data = columns(n_samples, n_features)
    uniforms = np.random.default_rng(1).random(n_clusters)
    centers, nearest = (
        np.empty((n_features, n_clusters)),
        state(n_samples, remember * n_clusters),
    )
    kernel(data, uniforms, centers, *nearest)

    X = data.T
    chosen = [int(uniforms[0] * n_samples)]
    for uniform in uniforms[1:]:
        squares = cdist(X, X[chosen], "sqeuclidean").min(axis=1)
        chosen.append(drawn(squares, uniform))
    assert_array_equal(centers.T, X[chosen])
    assert_nearest(X, X[chosen], *nearest)


@twin_of(swap.draw_tuple)
def test_draw_tuple_of_too_few_rows(kernel):
    """Every distinct row is a centre once before any comes twice."""
    data = np.repeat([[0.0, 1.0, 5.0]], 4, axis=1)
    for uniforms in np.random.default_rng(0).random((50, 5)):
        centers = np.empty((1, 5))
        kernel(data, uniforms, centers, *state(12))
        assert_array_equal(np.unique(centers[0, :3]), [0, 1, 5])
        assert_array_equal(centers[0, 3:], [0, 0])


@MEMORY
@CASES
@twin_of(swap.find_nearest)
def test_find_nearest(kernel, n_samples, n_features, n_clusters, remember):
    data, centers = columns(n_samples, n_features), columns(n_clusters, n_features, 1)
    nearest = state(n_samples, remember * n_clusters)
    kernel(data, centers, *nearest)
    assert_nearest(data.T, centers.T, *nearest)


@MEMORY
@pytest.mark.parametrize(SIZES, SEVERAL)
@twin_of(swap.swap_moves)
def test_swap_moves(kernel, n_samples, n_features, n_clusters, remember):
    """Each move by brute force: the inertia without each of the centres in turn."""
    data, centers = columns(n_samples, n_features), columns(n_clusters, n_features, 1)
    X, expected = data.T, centers.T.copy()
    uniforms = np.random.default_rng(2).random(30)
    nearest, n_expected = state(n_samples, remember * n_clusters), 0
    swap.find_nearest(data, centers, *nearest)
    n_accepted = kernel(data, uniforms, centers, *nearest)

    def inertia(centers):
        return cdist(X, centers, "sqeuclidean").min(axis=1).sum()

    for uniform in uniforms:
        squares = cdist(X, expected, "sqeuclidean").min(axis=1)
        if not squares.sum() > 0:
            break
        new = X[drawn(squares, uniform)]
        swapped = np.repeat(expected[None], n_clusters, axis=0)
        swapped[range(n_clusters), range(n_clusters)] = new
        inertias = [inertia(centers) for centers in swapped]
        if min(inertias) < squares.sum():
            expected = swapped[np.argmin(inertias)]
            n_expected += 1
    assert n_accepted == n_expected > 0
    assert_array_equal(centers.T, expected)
    assert_nearest(X, expected, *nearest)
