"""NumPy twins of the kernels of PACO: its quasi-posterior, its chain, its k-means."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from twins import twin_of

from skpacbayes._kernels import kmeans, paco

both_losses = pytest.mark.parametrize("manhattan", [False, True])
NO_FORECASTS = np.zeros((0, 3))


def losses_at(points, centers, manhattan):
    return cdist(points, centers, "cityblock" if manhattan else "sqeuclidean")


def columns_of(points):
    return np.ascontiguousarray(points.T)


def order_of(points):
    return np.ascontiguousarray(np.argsort(points, axis=0).T)


def blobs(n_points=30, n_features=3, seed=0):
    """Weighted points about three places, and a start near each of them."""
    rng = np.random.default_rng(seed)
    places = 6.0 * np.eye(3, n_features)
    points = places[np.arange(n_points) % 3] + rng.normal(size=(n_points, n_features))
    weights = rng.integers(1, 5, n_points).astype(float)
    return points, weights, places + rng.normal(size=places.shape)


@both_losses
@twin_of(paco.cumulative_loss)
def test_cumulative_loss(kernel, manhattan):
    points, weights, centers = blobs()
    centers[2] = 100.0  # owns nothing
    spare = np.vstack([centers, points[:1]])  # centres past n_clusters do not count
    losses = losses_at(points, centers, manhattan)
    total, n_owners = kernel(
        columns_of(points), weights, np.zeros(30), NO_FORECASTS, spare, 3, manhattan
    )
    assert_allclose(total, weights @ losses.min(axis=1), rtol=1e-12)
    assert n_owners == len(np.unique(losses.argmin(axis=1))) == 2


@both_losses
@twin_of(paco.cumulative_loss)
def test_variance_term(kernel, manhattan):
    """Half of lambda (loss - h)^2 a row; rows at one place make one point."""
    rng = np.random.default_rng(1)
    points, _, centers = blobs()
    copies = rng.integers(1, 4, 30)
    met, temperature = rng.exponential(size=(2, copies.sum()))
    rows = np.repeat(np.arange(30), copies)
    forecasts = np.zeros((30, 3))
    for power in range(3):
        np.add.at(forecasts[:, power], rows, temperature * met**power)
    loss = losses_at(points, centers, manhattan).min(axis=1)[rows]
    total, _ = kernel(
        columns_of(points),
        copies.astype(float),
        np.zeros(30),
        forecasts,
        centers,
        3,
        manhattan,
    )
    expected = np.sum(loss + 0.5 * temperature * (loss - met) ** 2)
    assert_allclose(total, expected, rtol=1e-12)


def mean_minimum(point, spread, centers, manhattan):
    """Mean of the loss over a normal cloud in the plane, by the trapezoidal rule."""
    z = np.linspace(-8.0, 8.0, 321)
    mass = stats.norm.pdf(z)
    mass = np.outer(mass, mass).ravel()
    steps = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    cloud = point + math.sqrt(spread / 2) * steps
    return mass @ losses_at(cloud, centers, manhattan).min(axis=1) / mass.sum()


@pytest.mark.parametrize("spread", [0.02, 0.5, 8.0, 50.0])
@twin_of(paco.cumulative_loss)
def test_squared_loss_of_merged_rows(kernel, spread):
    """Exact with two centres: the difference of their losses is normal."""
    points = np.array([[0.2, 0.1], [1.0, -1.0], [3.0, 0.0]])
    centers = np.array([[-1.0, 0.0], [1.5, 0.5]])
    weights = np.array([1.0, 3.0, 2.5])
    spreads = np.full(3, spread)
    total, _ = kernel(
        columns_of(points), weights, spreads, NO_FORECASTS, centers, 2, False
    )
    means = [mean_minimum(point, spread, centers, False) for point in points]
    assert_allclose(total, weights @ means, rtol=1e-4)


@twin_of(paco.cumulative_loss)
def test_manhattan_loss_of_merged_rows(kernel):
    """Exact with one centre; with two, for clouds that meet no kink of a distance.

    Of wider clouds the kernel takes a normal difference, which is not exact: there, it
    is no dearer than the nearest centre for all rows.
    """
    points = np.array([[0.2, 0.05], [0.25, 0.3], [0.7, 0.2]])
    centers = np.array([[-1.0, -3.0], [1.5, 3.0]])
    weights = np.array([1.0, 3.0, 2.5])
    for spread in (0.02, 0.05, 8.0):
        spreads = np.full(3, spread)
        for n_clusters in (1, 2):
            total, _ = kernel(
                columns_of(points),
                weights,
                spreads,
                NO_FORECASTS,
                centers,
                n_clusters,
                True,
            )
            known = centers[:n_clusters]
            means = [mean_minimum(point, spread, known, True) for point in points]
            if n_clusters == 1 or spread < 1.0:
                assert_allclose(total, weights @ means, rtol=1e-4)
            else:
                assert total < weights @ np.min(
                    [
                        [mean_minimum(point, spread, c[None], True) for c in centers]
                        for point in points
                    ],
                    axis=1,
                )


@pytest.mark.parametrize("scale", [0.5, math.inf])
@twin_of(paco.log_prior)
def test_log_prior(kernel, scale):
    """Uniform in the ball, or in shape a Student law of 3 degrees of freedom."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-1, 1, (4, 3))
    sizes = np.log([0.4, 0.3, 0.2, 0.1])
    radius, constant = 2.0, -1.3
    expected = sizes[2] + 3 * constant
    if scale < math.inf:
        law = stats.multivariate_t(np.zeros(3), 2 * scale**2 * np.eye(3), df=3)
        expected += np.sum(law.logpdf(centers[:3]) - law.logpdf(np.zeros(3)))
    assert_allclose(
        kernel(centers, 3, sizes, constant, radius, scale), expected, rtol=1e-12
    )
    centers[3] = 2.0  # outside, and not among the first three
    assert kernel(centers, 3, sizes, constant, radius, scale) > -math.inf
    assert kernel(centers, 4, sizes, constant, radius, scale) == -math.inf


def chain(kernel, n_iter, temperature=0.2, moves=(0.4, 0.3), seed=0, symmetric=True):
    """A chain of up to three centres in the plane from one; what it leaves behind."""
    points, weights, _ = blobs(n_features=2)
    slots = np.zeros((3, 3, 2))
    for k in range(3):
        slots[k, : k + 1] = points[: k + 1]
    law = {
        "log_sizes": np.log([0.5, 0.3, 0.2]),
        "constant": -math.log(math.pi * 10.0**2),
        "radius": 10.0,
        "scale": math.inf,
    }
    data = (columns_of(points), weights, np.zeros(30), NO_FORECASTS)
    centers = np.zeros((3, 2))
    trace = np.zeros((n_iter, 2), dtype=np.int64)
    trace[0, 0] = 1
    tally = np.zeros((2, 2), dtype=np.int64)
    log_target = kernel(
        *data,
        False,
        temperature,
        *law.values(),
        slots,
        np.full((3, 3), 6.0),  # wide: the independent proposals reach the whole ball
        5.0,
        symmetric,
        np.array(moves),
        centers,
        trace,
        tally,
        np.random.default_rng(seed),
    )
    return data, law, centers, trace, tally, log_target


@pytest.mark.parametrize("symmetric", [False, True])
@twin_of(paco.run_chain)
def test_run_chain(kernel, symmetric):
    temperature = 0.02
    data, law, centers, trace, tally, log_target = chain(
        kernel, 300, temperature, symmetric=symmetric
    )
    k = trace[-1, 0]
    assert np.all((trace[:, 1] >= 1) & (trace[:, 1] <= trace[:, 0]))
    assert np.all(trace[:, 0] <= 3)
    expected = law["log_sizes"][k - 1] + k * law["constant"]  # uniform in the ball
    losses = losses_at(data[0].T, centers[:k], False)
    expected -= temperature * (data[1] @ losses.min(axis=1))
    assert_allclose(log_target, expected, rtol=1e-10)
    assert trace[-1, 1] == len(np.unique(losses.argmin(axis=1)))
    assert np.all(np.linalg.norm(centers[:k], axis=1) <= law["radius"])
    assert tally[:, 1].sum() == 300
    assert np.all(tally[:, 0] <= tally[:, 1])
    sizes = np.concatenate([[1], trace[:, 0]])
    assert tally[1, 0] == np.count_nonzero(np.diff(sizes))
    again = chain(paco.run_chain, 300, temperature, symmetric=symmetric)
    assert_array_equal(again[3], trace)
    assert_array_equal(again[4], tally)
    assert_allclose(again[2], centers, rtol=1e-9)


@pytest.mark.parametrize("moves", [(1.0, 0.0), (0.0, 0.5), (0.4, 0.3)])
@twin_of(paco.run_chain)
def test_run_chain_without_data_draws_from_the_prior(kernel, moves):
    """Shares of the numbers of centres, within 5 standard errors by batch means."""
    n_iter = 20_000 if kernel is paco.run_chain else 4000
    _, law, _, trace, _, _ = chain(kernel, n_iter, 0.0, moves)
    for k in (1, 2, 3):
        batches = np.mean(trace[:, 0].reshape(20, -1) == k, axis=1)
        error = batches.std(ddof=1) / math.sqrt(20)
        assert abs(batches.mean() - math.exp(law["log_sizes"][k - 1])) < 5 * error


@both_losses
@twin_of(kmeans.distance)
def test_distance(kernel, manhattan):
    rng = np.random.default_rng(0)
    for n_features in (1, 8, 19):
        points = rng.normal(size=(3, n_features))
        centers = rng.normal(size=(2, n_features))
        expected = losses_at(points, centers, manhattan)
        for i, j in itertools.product(range(3), range(2)):
            found = kernel(points, i, centers, j, manhattan, math.inf)
            assert_allclose(found, expected[i, j], rtol=1e-12)
            enough = 0.3 * expected[i, j]
            bound = kernel(points, i, centers, j, manhattan, enough)
            assert enough < bound <= expected[i, j] * (1 + 1e-12)


@both_losses
@twin_of(kmeans.assign)
def test_assign(kernel, manhattan):
    points, weights, centers = blobs()
    losses = losses_at(points, centers[:2], manhattan)
    labels = np.arange(30) % 3  # some name a centre that is not among the two
    distances = np.empty(30)
    loss = kernel(points, weights, centers, 2, manhattan, labels, distances)
    assert_array_equal(labels, losses.argmin(axis=1))
    assert_allclose(distances, losses.min(axis=1), rtol=1e-12)
    assert_allclose(loss, weights @ distances, rtol=1e-12)


def moved(points, weights, labels, manhattan, centers):
    """Means, or lower medians, of the rows that the points stand for."""
    copies = weights.astype(int)
    rows, labels = np.repeat(points, copies, axis=0), np.repeat(labels, copies)
    centers = centers.copy()
    for j in np.unique(labels):
        cell = rows[labels == j]
        if manhattan:
            centers[j] = np.quantile(cell, 0.5, axis=0, method="inverted_cdf")
        else:
            centers[j] = cell.mean(axis=0)
    return centers


@both_losses
@twin_of(kmeans.update_centers)
def test_update_centers(kernel, manhattan):
    points, weights, centers = blobs()
    weights[:5] = 0.0
    labels = np.random.default_rng(0).integers(0, 2, 30)  # nothing in the last cell
    expected = moved(points, weights, labels, manhattan, centers)
    last = centers[2].copy()
    kernel(points, weights, order_of(points), labels, 3, manhattan, centers)
    assert_allclose(centers, expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(centers[2], last)
    if manhattan:
        odd = np.ones(25)
        where = np.zeros(25, dtype=np.int64)
        kernel(points[:25], odd, order_of(points[:25]), where, 1, True, centers)
        assert_array_equal(centers[0], np.median(points[:25], axis=0))


def lloyds(kernel, points, weights, centers, manhattan, max_iter=100):
    labels = np.zeros(len(points), dtype=np.int64)
    distances = np.empty(len(points))
    order, k = order_of(points), len(centers)
    loss = kernel(
        points, weights, order, k, manhattan, max_iter, centers, labels, distances
    )
    return loss, labels


@twin_of(kmeans.lloyd)
def test_lloyd_of_means(kernel):
    points, weights, centers = blobs(60)
    start = points[:3] + 0.5
    peer = KMeans(3, init=start, n_init=1, tol=0.0, algorithm="lloyd")
    peer.fit(points, sample_weight=weights)
    centers = start.copy()
    loss, labels = lloyds(kernel, points, weights, centers, False)
    assert_allclose(centers, peer.cluster_centers_, rtol=1e-10, atol=1e-10)
    assert_allclose(loss, peer.inertia_, rtol=1e-10)
    assert_array_equal(labels, peer.labels_)


@both_losses
@pytest.mark.parametrize("max_iter", [0, 1, 2, 50])
@twin_of(kmeans.lloyd)
def test_lloyd(kernel, max_iter, manhattan):
    points, weights, _ = blobs()
    centers = points[[0, 3, 6]]  # of one blob
    expected = centers.copy()
    for _ in range(max_iter):
        nearest = losses_at(points, expected, manhattan).argmin(axis=1)
        expected = moved(points, weights, nearest, manhattan, expected)
    loss, _ = lloyds(kernel, points, weights, centers, manhattan, max_iter)
    least = losses_at(points, expected, manhattan).min(axis=1)
    assert_allclose(centers, expected, rtol=1e-10, atol=1e-12)
    assert_allclose(loss, weights @ least, rtol=1e-10)


@both_losses
@twin_of(kmeans.kmeans_plus_plus)
def test_kmeans_plus_plus(kernel, manhattan):
    """Pairs of seeds: chi-square test of their law, at a level of 1e-6."""
    points = np.array([[0.0, 0], [1, 0], [0, 2], [3, 3], [5, 1]])
    weights = np.array([1.0, 2, 1, 3, 0])
    losses = weights * losses_at(points, points, manhattan)
    law = weights[:, None] / weights.sum() * losses / losses.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    counts = np.zeros((5, 5))
    centers = np.zeros((2, 2))
    labels, distances = np.zeros(5, dtype=np.int64), np.empty(5)
    for _ in range(2000):
        kernel(points, weights, 2, manhattan, centers, labels, distances, rng)
        first, second = losses_at(centers, points, manhattan).argmin(axis=1)
        counts[first, second] += 1
    assert np.all(counts[law == 0] == 0)
    assert stats.chisquare(counts[law > 0], 2000 * law[law > 0]).pvalue > 1e-6


def path_of(kernel, points, weights, manhattan, max_clusters, starts=None):
    n_features = points.shape[1]
    if starts is None:
        starts = np.zeros((0, max_clusters, n_features))
    sizes = np.full(len(starts), max_clusters, dtype=np.int64)
    path = np.zeros((max_clusters, max_clusters, n_features))
    losses = np.zeros(max_clusters)
    found = kernel(
        points,
        weights,
        order_of(points),
        manhattan,
        starts,
        sizes,
        path,
        losses,
        np.random.default_rng(0),
    )
    return found, path, losses


def optimum(points, weights, manhattan, k):
    """Least loss over all partitions in at most k cells."""
    best = math.inf
    for labels in itertools.product(range(k), repeat=len(points) - 1):
        labels = np.array((0, *labels))
        centers = moved(points, weights, labels, manhattan, np.zeros((k, 2)))
        own = losses_at(points, centers, manhattan)[np.arange(len(points)), labels]
        best = min(best, weights @ own)
    return best


@both_losses
@twin_of(kmeans.kmeans_path)
def test_kmeans_path(kernel, manhattan):
    points, weights, _ = blobs(40, 2)
    found, path, losses = path_of(kernel, points, weights, manhattan, 6)
    assert found == 6
    assert np.all(np.diff(losses) < 0)
    for k in range(1, 7):
        least = losses_at(points, path[k - 1, :k], manhattan).min(axis=1)
        assert_allclose(losses[k - 1], weights @ least, rtol=1e-10)
    start = path[:1].copy()
    start[0] = points[:6]
    _, _, helped = path_of(kernel, points, weights, manhattan, 6, start)
    reached, _ = lloyds(kmeans.lloyd, points, weights, start[0], manhattan, 4)
    assert helped[-1] <= reached * (1 + 1e-12)


@both_losses
@twin_of(kmeans.kmeans_path)
def test_kmeans_path_of_few_points_is_optimal(kernel, manhattan):
    points, weights, _ = blobs(7, 2)
    found, _, losses = path_of(kernel, points, weights, manhattan, 3)
    assert found == 3
    expected = [optimum(points, weights, manhattan, k) for k in (1, 2, 3)]
    assert_allclose(losses, expected, rtol=1e-10)


@both_losses
@twin_of(kmeans.kmeans_path)
def test_kmeans_path_ends_when_each_point_is_a_centre(kernel, manhattan):
    points = np.array([[0.0, 0], [0, 0], [1, 0], [5, 5], [9, 9]])
    weights = np.array([1.0, 2, 3, 1, 0])  # three places that have weight
    found, path, losses = path_of(kernel, points, weights, manhattan, 5)
    assert found == 3
    assert losses[2] == 0.0
    assert_array_equal(np.unique(path[2, :3], axis=0), [[0, 0], [1, 0], [5, 5]])


@both_losses
@twin_of(kmeans.describe_cells)
def test_describe_cells(kernel, manhattan):
    points, weights, _ = blobs(n_features=2)
    _, path, losses = path_of(kmeans.kmeans_path, points, weights, manhattan, 4)
    masses, cell_losses = np.zeros((2, 4, 4))
    kernel(points, weights, path, manhattan, masses, cell_losses)
    for k in range(1, 5):
        at = losses_at(points, path[k - 1, :k], manhattan)
        labels = at.argmin(axis=1)
        own = weights * at.min(axis=1)
        assert_allclose(masses[k - 1], np.bincount(labels, weights, 4), rtol=1e-12)
        assert_allclose(cell_losses[k - 1], np.bincount(labels, own, 4), rtol=1e-10)
    assert_allclose(cell_losses.sum(axis=1), losses, rtol=1e-10)
