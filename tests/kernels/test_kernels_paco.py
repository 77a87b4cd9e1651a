"""NumPy twins of the kernels of PACO: its quasi-posterior, its chain, its k-means."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist
from twins import twin_of

from skpacbayes._kernels import kmeans, paco, paco_noise
from skpacbayes.cluster._paco_chain import CenterPrior, Proposal

both_losses = pytest.mark.parametrize("manhattan", [False, True])


def loss_of(
    kernel,
    points,
    spreads,
    linear,
    quadratic,
    centers,
    n_clusters,
    manhattan,
    merged=True,
):
    """What `cumulative_loss` returns where half of the centres have moved."""
    work = work_space(len(points), len(centers))
    columns = np.vstack([columns_of(points), spreads, linear, quadratic])
    loss = manhattan or None, merged, *work
    half = n_clusters // 2
    elsewhere = centers.copy()
    elsewhere[half:] += 1.0
    kernel(columns, elsewhere[None], 0, n_clusters, 0, n_clusters, *loss)
    return kernel(columns, centers[None], 0, n_clusters, half, n_clusters - half, *loss)


def work_space(n_points, n_clusters, n_states=1):
    return (
        np.full((n_states, n_clusters, n_points), np.nan),
        np.full((3, n_points), np.nan),
        np.full((2, n_points), -7),
        np.full((n_clusters, n_clusters), np.nan),
    )


def losses_at(points, centers, manhattan):
    return cdist(points, centers, "cityblock" if manhattan else "sqeuclidean")


def columns_of(points):
    return np.ascontiguousarray(points.T)


def blobs(n_points=30, n_features=3, seed=0):
    """Weighted points about three places, and a start near each of them."""
    rng = np.random.default_rng(seed)
    places = 6.0 * np.eye(3, n_features)
    points = places[np.arange(n_points) % 3] + rng.normal(size=(n_points, n_features))
    weights = rng.integers(1, 5, n_points).astype(float)
    return points, weights, places + rng.normal(size=places.shape)


@both_losses
@twin_of(paco.add_losses)
def test_add_losses(kernel, manhattan):
    points, _, centers = blobs()
    columns = np.vstack([points.T, np.ones((2, 30))])  # two entries more
    losses = np.random.default_rng(2).random((3, 30))
    expected = losses.copy()
    expected[1] += losses_at(points, centers, manhattan)[:, 1]
    kernel(columns, points.shape[1], centers, 1, manhattan or None, losses)
    assert_allclose(losses, expected, rtol=1e-12)


@both_losses
@twin_of(paco.cumulative_loss)
def test_cumulative_loss(kernel, manhattan):
    """Sum of linear l + quadratic l^2."""
    points, linear, centers = blobs()
    quadratic = np.random.default_rng(1).exponential(size=30)
    centers[2] = 100.0  # owns nothing
    spare = np.vstack([centers, points[:1]])  # centres past n_clusters do not count
    losses = losses_at(points, centers, manhattan)
    data = points, np.zeros(30), linear, quadratic
    total, n_owners = loss_of(kernel, *data, spare, 3, manhattan, merged=None)
    assert loss_of(kernel, *data, spare, 3, manhattan) == (total, n_owners)
    least = losses.min(axis=1)
    assert_allclose(total, linear @ least + quadratic @ least**2, rtol=1e-12)
    assert n_owners == len(np.unique(losses.argmin(axis=1))) == 2


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
    data = points, np.full(3, spread), weights, np.zeros(3)
    total, _ = loss_of(kernel, *data, centers, 2, False)
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
        data = points, np.full(3, spread), weights, np.zeros(3)
        for n_clusters in (1, 2):
            total, _ = loss_of(kernel, *data, centers, n_clusters, True)
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


LAW = CenterPrior(np.log([0.5, 0.3, 0.2]), 10.0)


def chain(kernel, n_iter, temperature=0.2, moves=(0.4, 0.3), seed=0, symmetric=True):
    """A chain of up to three centres in the plane from one; what it leaves behind."""
    points, weights, _ = blobs(n_features=2)
    slots = np.zeros((3, 3, 2))
    for k in range(3):
        slots[k, : k + 1] = points[: k + 1]
    scales = np.full((3, 3), 6.0)  # wide: the proposals reach the whole ball
    proposal = Proposal(slots, scales, 5.0, symmetric, moves)
    none = np.zeros(30)
    log_sizes = LAW.log_sizes + np.arange(1, 4) * LAW.log_constant(2)
    states = np.zeros((2, 3, 2))
    trace = np.zeros((n_iter, 3), dtype=np.int64)
    trace[0] = 1, 1, 0
    gaps, *work = work_space(30, 3, 2)
    gaps[0, 0] = losses_at(points, states[0, :1], False)[:, 0]
    draws = proposal.draws(n_iter, 10.0, np.random.default_rng(seed))
    order = np.empty(3, dtype=np.int64)
    log_target, now = kernel(
        np.vstack([columns_of(points), none, weights, none]),
        None,
        None,
        LAW.target(temperature, 2),
        proposal.kernel_slots(),
        draws,
        paco.Work(states, np.empty(3), order, gaps, *work),
        0,
        log_sizes[0] - temperature * (weights @ gaps[0, 0]),
        trace,
    )
    return points, weights, states[now], draws.moves, trace, log_target


@pytest.mark.parametrize("symmetric", [False, True])
@twin_of(paco.run_chain)
def test_run_chain(kernel, symmetric):
    temperature = 0.02
    points, weights, centers, choices, trace, log_target = chain(
        kernel, 300, temperature, symmetric=symmetric
    )
    k, n_owners, _ = trace[-1]
    assert np.all((trace[:, 1] >= 1) & (trace[:, 1] <= trace[:, 0]))
    assert np.all(trace[:, 0] <= 3)
    expected = LAW.log_sizes[k - 1] + k * LAW.log_constant(2)  # uniform in the ball
    losses = losses_at(points, centers[:k], False)
    expected -= temperature * (weights @ losses.min(axis=1))
    assert_allclose(log_target, expected, rtol=1e-10)
    assert n_owners == len(np.unique(losses.argmin(axis=1)))
    assert np.all(np.linalg.norm(centers[:k], axis=1) <= 10.0)
    sizes = np.concatenate([[1], trace[:, 0]])
    assert_array_equal(np.diff(sizes), np.where(trace[:, 2] == 1, choices[:, 1], 0))
    again = chain(paco.run_chain, 300, temperature, symmetric=symmetric)
    assert_array_equal(again[4], trace)
    assert_allclose(again[2], centers, rtol=1e-9)


@pytest.mark.parametrize("moves", [(1.0, 0.0), (0.0, 0.5), (0.4, 0.3)])
@twin_of(paco.run_chain)
def test_run_chain_without_data_draws_from_the_prior(kernel, moves):
    """Shares of the numbers of centres, within 5 standard errors by batch means."""
    n_iter = 20_000 if kernel is paco.run_chain else 4000
    *_, trace, _ = chain(kernel, n_iter, 0.0, moves)
    for k in (1, 2, 3):
        batches = np.mean(trace[:, 0].reshape(20, -1) == k, axis=1)
        error = batches.std(ddof=1) / math.sqrt(20)
        assert abs(batches.mean() - math.exp(LAW.log_sizes[k - 1])) < 5 * error


@twin_of(kmeans.move_to_means)
def test_move_to_means(kernel):
    """Weighted means of the cells; one without weight, or empty, stays."""
    points, weights, _ = blobs()
    labels = np.random.default_rng(1).integers(0, 3, 30)
    weights[labels == 2] = 0.0
    centers, masses = np.full((4, 3), 7.0), np.zeros(4)
    kernel(points, weights, labels, masses, centers)
    for j in range(2):
        own = labels == j
        means = np.average(points[own], axis=0, weights=weights[own])
        assert_allclose(centers[j], means, rtol=1e-12)
    assert_array_equal(centers[2:], 7.0)
    assert_allclose(masses, np.bincount(labels, weights, minlength=4))


@twin_of(kmeans.move_to_medians)
def test_move_to_medians(kernel):
    """Lower medians of the rows that the points stand for; an empty cell stays."""
    points, weights, _ = blobs()
    labels = np.random.default_rng(1).integers(0, 3, 30)
    weights[labels == 2] = 0.0
    centers = np.full((4, 3), 7.0)
    masses = np.bincount(labels, weights, minlength=4)
    order = np.argsort(points.T, axis=1)
    kernel(points, weights, labels, order, masses, np.empty(4), centers)
    rows, cells = (np.repeat(v, weights.astype(int), axis=0) for v in (points, labels))
    for j in range(2):
        medians = np.quantile(rows[cells == j], 0.5, axis=0, method="inverted_cdf")
        assert_array_equal(centers[j], medians)
    assert_array_equal(centers[2:], 7.0)


@twin_of(paco_noise.leaving_scales)
def test_leaving_scales(kernel):
    """A noisy copy is nearest to its centre below the scale, and not above."""
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(5, 3))
    centers[4] = centers[3]  # one place: neither is nearer
    noise = rng.laplace(size=(40, 3))
    scales = np.empty((40, 5))
    kernel(noise, centers, losses_at(centers, centers, True), 4.0, scales)
    leave = scales < 4.0
    assert 0.2 < leave.mean() < 0.8
    for factor in (1 - 1e-6, 1 + 1e-6):
        copies = centers + factor * scales[:, :, None] * noise[:, None]
        own = np.abs(copies - centers).sum(axis=2)
        at = [losses_at(copy, centers, True).min(axis=1) for copy in copies]
        stays = own <= np.array(at) + 1e-12
        if factor < 1:
            assert np.all(stays)
        else:
            assert not np.any(stays[leave])
