"""NumPy twins of k-means: seeding, Lloyd's algorithm, swap moves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from twins import twin_of

from skpacbayes._kernels import kmeans, kmeans_swaps
from skpacbayes._kernels.kmeans import WeightedPoints
from skpacbayes._kernels.kmeans_swaps import TwoNearest

SIZES = ("n_points", "n_features", "n_clusters")
SEVERAL = [(40, 1, 3), (60, 3, 2), (50, 4, 7), (30, 9, 12), (5, 2, 5)]
MEMORY = pytest.mark.parametrize("remember", [False, True])
WEIGHTS = pytest.mark.parametrize("weighted", [False, True])
BOTH_LOSSES = pytest.mark.parametrize("manhattan", [False, True])
CASES = pytest.mark.parametrize(SIZES, [*SEVERAL, (20, 6, 1)])


def columns_of(n_points, n_features, seed=0):
    points = np.random.default_rng(seed).normal(size=(n_points, n_features))
    return np.ascontiguousarray(points.T)


def weights_of(n_points, weighted):
    """Return ones, or numbers of copies, some of them zero."""
    if not weighted:
        return np.ones(n_points)
    copies = np.random.default_rng(7).integers(4, size=n_points)
    copies[0] = 1
    return copies.astype(float)


def losses_at(points, centers, manhattan=False):
    return cdist(points, centers, "cityblock" if manhattan else "sqeuclidean")


def state(n_points, n_clusters=0):
    """Memory, first, second, near, next_near: before anything is known of them."""
    memory = np.full((n_clusters, n_points if n_clusters else 0), np.nan)
    indices = np.zeros((2, n_points), dtype=np.int64)
    squares = np.full((2, n_points), np.nan)
    return memory, *indices, *squares


def assert_nearest(points, centers, memory, first, second, near, next_near):
    squares = losses_at(points, centers)
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


def drawn_of(costs, uniform):
    """Point drawn in proportion to its cost, by inversion."""
    return np.searchsorted(np.cumsum(costs), uniform * costs.sum(), side="right")


def seeding(points, weights, uniforms, manhattan=False):
    """Draw one point after another by the plain definition."""
    chosen = [drawn_of(weights, uniforms[0])]
    for uniform in uniforms[1:]:
        losses = losses_at(points, points[chosen], manhattan).min(axis=1)
        chosen.append(drawn_of(weights * losses, uniform))
    return chosen


@BOTH_LOSSES
@twin_of(kmeans.losses_at)
@pytest.mark.parametrize("n_features", [1, 4, 5])
def test_losses_at(kernel, n_features, manhattan):
    columns, others = columns_of(9, n_features), columns_of(3, n_features, 1)
    found = np.empty(9)
    kernel(columns, others, 2, found, manhattan or None)
    assert_allclose(found, losses_at(columns.T, others.T, manhattan)[:, 2])


@twin_of(kmeans.total_of)
def test_total_of(kernel):
    weights, values = np.random.default_rng(0).random((2, 1001))
    assert_allclose(kernel(weights, values), weights @ values, rtol=1e-13)


@twin_of(kmeans.draw_index)
def test_draw_index(kernel):
    """Each index at the uniforms of its share, none of share zero."""
    weights, values = np.array([1.0, 0.0, 2.0, 1.0]), np.array([2.0, 9.0, 2.0, 4.0])
    uniforms = (np.arange(1000) + 0.5) / 1000
    drawn = [kernel(weights, values, 10.0, uniform) for uniform in uniforms]
    assert_array_equal(np.bincount(drawn), [200, 0, 400, 400])


@twin_of(kmeans.remember)
def test_remember(kernel):
    memory, squares = np.zeros((2, 3)), np.arange(3.0)
    kernel(1, squares, memory)
    kernel(1, squares, np.empty((0, 0)))  # nothing is kept
    assert_array_equal(memory, [np.zeros(3), squares])


@WEIGHTS
@CASES
@twin_of(kmeans.draw_centers)
def test_draw_centers(kernel, n_points, n_features, n_clusters, weighted):
    columns, weights = columns_of(n_points, n_features), weights_of(n_points, weighted)
    if weighted:
        n_clusters = min(n_clusters, np.count_nonzero(weights))
    uniforms = np.random.default_rng(1).random(n_clusters)
    drawn, losses = np.empty(n_clusters, dtype=np.int64), np.empty((2, n_points))
    nones = None, None, None, None
    kernel(columns, weights, uniforms, drawn, *losses, *nones)
    expected = seeding(columns.T, weights, uniforms)
    assert_array_equal(drawn, expected)
    at_centers = losses_at(columns.T, columns.T[expected])
    assert_allclose(losses[0], at_centers.min(axis=1), rtol=1e-12, atol=1e-15)


@MEMORY
@CASES
@twin_of(kmeans.draw_centers)
def test_draw_centers_and_find_the_two_nearest(
    kernel, n_points, n_features, n_clusters, remember
):
    columns, weights = columns_of(n_points, n_features), np.ones(n_points)
    uniforms = np.random.default_rng(1).random(n_clusters)
    drawn, scratch = np.empty(n_clusters, dtype=np.int64), np.empty(n_points)
    memory, first, second, near, next_near = state(n_points, remember * n_clusters)
    found = drawn, near, scratch, first, second, next_near, memory
    kernel(columns, weights, uniforms, *found)
    expected = columns.T[seeding(columns.T, weights, uniforms)]
    assert_array_equal(columns.T[drawn], expected)
    assert_nearest(columns.T, expected, memory, first, second, near, next_near)


@twin_of(kmeans.draw_centers)
def test_draw_centers_of_too_few_points(kernel):
    """Every distinct point with weight is a centre once; then point 0 comes again."""
    columns = np.repeat([[0.0, 1.0, 5.0, 9.0]], 4, axis=1)
    weights = np.where(columns[0] == 9.0, 0.0, 0.5)
    for uniforms in np.random.default_rng(0).random((50, 5)):
        drawn, losses = np.empty(5, dtype=np.int64), np.empty((2, 16))
        kernel(columns, weights, uniforms, drawn, *losses, None, None, None, None)
        assert_array_equal(np.unique(columns[0, drawn[:3]]), [0, 1, 5])
        assert_array_equal(drawn[3:], 0)


def lloyd(kernel, points, weights, centers, max_iter, manhattan=False):
    """Loss, labels and losses after Lloyd's iterations, which move the centres."""
    columns = np.ascontiguousarray(points.T)
    labels, losses = np.zeros(len(points), dtype=np.int64), np.empty((2, len(points)))
    found = centers, labels, losses, np.empty((2, len(centers)))
    order = np.argsort(columns, axis=1) if manhattan else None
    loss = kernel(points, columns, weights, max_iter, *found, order)
    return loss, labels, losses[0]


@twin_of(kmeans.run_lloyd)
def test_lloyd_is_that_of_scikit_learn(kernel):
    points, weights = columns_of(60, 3).T.copy(), weights_of(60, True)
    centers = points[:4] + 0.5
    peer = KMeans(4, init=centers, n_init=1, tol=0.0, algorithm="lloyd")
    peer.fit(points, sample_weight=weights)
    loss, labels, _ = lloyd(kernel, points, weights, centers, 100)
    assert_allclose(centers, peer.cluster_centers_, rtol=1e-10, atol=1e-10)
    assert_allclose(loss, peer.inertia_, rtol=1e-10)
    assert_array_equal(labels, peer.labels_)


@BOTH_LOSSES
@pytest.mark.parametrize("max_iter", [0, 1, 3, 50])
@twin_of(kmeans.run_lloyd)
def test_lloyd_step_by_step(kernel, max_iter, manhattan):
    """Centres move to the means, or lower medians, of the rows of their points."""
    points, weights = columns_of(50, 3).T.copy(), weights_of(50, True)
    centers = points[[0, 1, 2]] + 0.1
    expected = centers.copy()
    found = lloyd(kernel, points, weights, centers, max_iter, manhattan)
    loss, labels, losses = found
    rows = np.repeat(points, weights.astype(int), axis=0)
    for _ in range(max_iter):
        cells = losses_at(rows, expected, manhattan).argmin(axis=1)
        for j in range(3):
            own = rows[cells == j]
            middle = np.quantile(own, 0.5, axis=0, method="inverted_cdf")
            expected[j] = middle if manhattan else own.mean(axis=0)
    assert_allclose(centers, expected, rtol=1e-12)
    at_centers = losses_at(points, expected, manhattan)
    assert_array_equal(labels, at_centers.argmin(axis=1))
    assert_allclose(losses, at_centers.min(axis=1), rtol=1e-10)
    assert_allclose(loss, weights @ losses, rtol=1e-12)


@BOTH_LOSSES
@twin_of(kmeans.run_lloyd)
def test_lloyd_leaves_centers_without_weight_where_they_are(kernel, manhattan):
    points = np.array([[0.0, 1], [2, 3], [4, 2], [90, 90]])
    centers = np.array([[1.0, 1], [91, 91], [-50, -50]])
    weights = np.array([1.0, 1, 1, 0])
    loss, *_ = lloyd(kernel, points, weights, centers, 9, manhattan)
    middle = [2, 2]  # mean and median
    assert_allclose(centers, [middle, [91, 91], [-50, -50]], rtol=1e-15)
    assert_allclose(loss, losses_at(points[:3], [middle], manhattan).sum())


@MEMORY
@CASES
@twin_of(kmeans_swaps.find_nearest)
def test_find_nearest(kernel, n_points, n_features, n_clusters, remember):
    columns, centers = (
        columns_of(n_points, n_features),
        columns_of(n_clusters, n_features, 1),
    )
    nearest = state(n_points, remember * n_clusters)
    kernel(columns, centers, *nearest)
    assert_nearest(columns.T, centers.T, *nearest)


@WEIGHTS
@MEMORY
@pytest.mark.parametrize(SIZES, SEVERAL)
@twin_of(kmeans_swaps.swap_moves)
def test_swap_moves(kernel, n_points, n_features, n_clusters, remember, weighted):
    """Each move by brute force: the inertia without each of the centres in turn."""
    columns, weights = columns_of(n_points, n_features), weights_of(n_points, weighted)
    centers = columns_of(n_clusters, n_features, 1)
    points, expected = columns.T, centers.T.copy()
    uniforms = np.random.default_rng(2).random(30)
    nearest, n_expected = state(n_points, remember * n_clusters), 0
    kmeans_swaps.find_nearest(columns, centers, *nearest)
    n_accepted = kernel(columns, weights, uniforms, centers, *nearest)

    def inertia(centers):
        return weights @ losses_at(points, centers).min(axis=1)

    for uniform in uniforms:
        costs = weights * losses_at(points, expected).min(axis=1)
        if not costs.sum() > 0:
            break
        new = points[drawn_of(costs, uniform)]
        swapped = np.repeat(expected[None], n_clusters, axis=0)
        swapped[range(n_clusters), range(n_clusters)] = new
        inertias = [inertia(centers) for centers in swapped]
        if min(inertias) < costs.sum():
            expected = swapped[np.argmin(inertias)]
            n_expected += 1
    assert n_accepted == n_expected > 0
    assert_array_equal(centers.T, expected)
    assert_nearest(points, expected, *nearest)


# The classes through which families use the kernels.


@BOTH_LOSSES
def test_weighted_points(manhattan):
    points, weights = columns_of(80, 3).T, weights_of(80, True)
    found = WeightedPoints(points, weights, manhattan)
    centers = found.draw_centers(6, np.random.default_rng(3))
    uniforms = np.random.default_rng(3).random(6)
    expected = points[seeding(points, weights, uniforms, manhattan)]
    assert_array_equal(centers, expected)
    few = found.draw_centers(3, np.random.default_rng(3))
    assert_array_equal(few, centers[:3])
    before = weights @ losses_at(points, centers, manhattan).min(axis=1)
    loss = found.run_lloyd(centers, 100)
    at_centers = losses_at(points, centers, manhattan)
    assert loss < before
    assert_allclose(loss, weights @ at_centers.min(axis=1), rtol=1e-12)
    assert_array_equal(found.labels, at_centers.argmin(axis=1))


def test_weights_of_points_are_copies():
    points, weights = columns_of(50, 2).T, weights_of(50, True)
    rows = np.repeat(points, weights.astype(int), axis=0)
    centers = points[:4].copy()
    of_copies = centers.copy()
    loss = WeightedPoints(points, weights).run_lloyd(centers, 50)
    copies = WeightedPoints(rows)
    assert_allclose(copies.run_lloyd(of_copies, 50), loss, rtol=1e-12)
    assert_allclose(of_copies, centers, rtol=1e-12, atol=1e-12)


@WEIGHTS
def test_two_nearest(weighted):
    """Swap moves find the groups that the seeding missed."""
    rng = np.random.default_rng(0)
    means = rng.uniform(-50, 50, size=(9, 2))
    points = np.repeat(means, 20, axis=0) + rng.normal(size=(180, 2))
    weights = weights_of(180, weighted)
    found = TwoNearest(np.ascontiguousarray(points.T), weights, 9)
    found.draw_centers(rng.random(9))
    seeded = found.centers.T.copy()
    assert_allclose(found.losses, losses_at(points, seeded).min(axis=1))
    assert found.swap_moves(rng.random(100)) > 0
    at_centers = losses_at(points, found.centers.T)
    assert_array_equal(found.labels, at_centers.argmin(axis=1))
    assert_allclose(found.losses, at_centers.min(axis=1))
    assert len(np.unique(found.labels[::20])) == 9
    assert weights @ found.losses < weights @ losses_at(points, seeded).min(axis=1)
    found.place_centers(seeded)
    assert_allclose(found.losses, losses_at(points, seeded).min(axis=1))


def test_one_center_cannot_be_swapped():
    found = TwoNearest(columns_of(30, 2), np.ones(30), 1)
    found.draw_centers(np.array([0.5]))
    assert found.swap_moves(np.random.default_rng(0).random(9)) == 0


@twin_of(kmeans.append_rows)
def test_append_rows(kernel):
    rows = columns_of(7, 3).T.copy()
    batch, counts = np.zeros((9, 3)), np.array([2, 30])
    kernel(rows, batch, counts)
    assert_array_equal(batch[2:], rows)
    assert_array_equal(batch[:2], 0)
    assert_array_equal(counts, [9, 37])
