"""The k-means path of PACO, and the noise that it leaves: against exact answers."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from skpacbayes.cluster._paco_path import NoiseCells, Path, scale_of, unit

both_losses = pytest.mark.parametrize("manhattan", [False, True])


def losses_at(points, centers, manhattan):
    return cdist(points, centers, "cityblock" if manhattan else "sqeuclidean")


def blobs(n_points, seed=0):
    """Weighted points about three places in the plane."""
    rng = np.random.default_rng(seed)
    places = np.array([[0.0, 0], [6, 0], [0, 6]])
    points = places[np.arange(n_points) % 3] + rng.normal(size=(n_points, 2))
    return points, rng.integers(1, 5, n_points).astype(float)


def find(points, weights, max_clusters, manhattan, starts=(), seed=0):
    rng = np.random.default_rng(seed)
    return Path.find(points, weights, max_clusters, manhattan, rng, starts)


@both_losses
def test_losses_fall_and_are_those_of_the_centres(manhattan):
    points, weights = blobs(40)
    path = find(points, weights, 6, manhattan)
    assert path.n_found == 6
    assert np.all(np.diff(path.losses) < 0)
    for k in range(1, 7):
        at = losses_at(points, path.centers[k - 1, :k], manhattan)
        labels, own = at.argmin(axis=1), weights * at.min(axis=1)
        assert_allclose(path.losses[k - 1], own.sum(), rtol=1e-10)
        assert_array_equal(path.cell_weights[k - 1], np.bincount(labels, weights, 6))
        cell_losses = np.bincount(labels, own, 6)
        assert_allclose(path.cell_losses[k - 1], cell_losses, rtol=1e-10)
        assert_array_equal(path.solution(k), path.centers[k - 1, :k])


def optimum(points, weights, manhattan, k):
    """Least loss over all partitions in at most k cells."""
    best = math.inf
    for labels in itertools.product(range(k), repeat=len(points) - 1):
        labels = np.array((0, *labels))
        loss = 0.0
        for j in np.unique(labels):
            cell = np.repeat(points, weights.astype(int) * (labels == j), axis=0)
            center = np.median(cell, axis=0) if manhattan else cell.mean(axis=0)
            loss += losses_at(cell, center[None], manhattan).sum()
        best = min(best, loss)
    return best


@both_losses
def test_few_points_have_the_optimal_path(manhattan):
    points, weights = blobs(7)
    expected = [optimum(points, weights, manhattan, k) for k in (1, 2, 3)]
    path = find(points, weights, 3, manhattan)
    assert_allclose(path.losses, expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_near_that_of_many_restarts(seed):
    """One pass over all k: within 8 % of ten starts of scikit-learn for each k."""
    points, weights = blobs(200, seed)
    path = find(points, weights, 12, False, seed=seed)
    for k in range(2, 13):
        peer = KMeans(k, n_init=10, random_state=seed).fit(points, None, weights)
        assert path.losses[k - 1] < 1.08 * peer.inertia_


@both_losses
def test_the_path_ends_when_each_point_is_a_centre(manhattan):
    points = np.array([[0.0, 0], [0, 0], [1, 0], [5, 5], [9, 9]])
    weights = np.array([1.0, 2, 3, 1, 0])  # three places that have weight
    path = find(points, weights, 5, manhattan)
    assert path.n_found == 3
    assert_array_equal(path.losses[2:], 0.0)
    places = [[0, 0], [1, 0], [5, 5]]
    for k in (3, 4, 5):
        assert_array_equal(np.unique(path.solution(k), axis=0), places)


@both_losses
def test_a_good_start_is_taken(manhattan):
    """A start at the very points cannot be improved upon."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(12, 2))
    points = np.repeat(places, 5, axis=0) + 1e-6 * rng.normal(size=(60, 2))
    path = find(points, np.ones(60), 12, manhattan, [places])
    assert path.losses[11] < 60 * 1e-5


@both_losses
def test_noise_that_stays_in_its_cell(manhattan):
    """Two centres on a line: half the noise law and the half-space, within 5 errors.

    The 128 draws for each centre are fixed, so the error is that of a share.
    """
    law = stats.laplace if manhattan else stats.norm
    cells = NoiseCells(np.array([[-1.0], [1.0]]), manhattan, 100.0)
    for scale in (0.05, 0.5, 1.0, 3.0, 30.0):
        share = law.cdf(1 / scale)
        error = math.sqrt(2 * share * (1 - share) / 128) + 1e-9
        assert abs(cells.stay(scale) - 2 * share) < 5 * error
    lone = NoiseCells(np.zeros((1, 3)), manhattan, 10.0)
    whole = 3 * math.log(2 * 0.7 if manhattan else math.sqrt(2 * math.pi) * 0.7)
    assert_allclose(lone.log_normaliser(0.7), whole)


@both_losses
def test_the_scale_of_noise_is_found(manhattan):
    """Also where the cells cut it off, which the mean loss alone would not see.

    The estimate of a scale from 4,000 rows has a relative error of at most 2.5 %,
    and the 256 fixed draws of the cells add that of a share, so 10 % is four errors.
    """
    rng = np.random.default_rng(0)
    centers = np.array([[-1.0, 0], [1.0, 0]])
    noise = rng.laplace(size=(4000, 2)) if manhattan else rng.normal(size=(4000, 2))
    for scale in (0.1, 0.8):
        rows = centers[np.arange(4000) % 2] + scale * noise
        loss = losses_at(rows, centers, manhattan).min(axis=1).sum()
        found, fit = scale_of(centers, loss, 4000.0, manhattan, 1e-9)
        assert abs(found / scale - 1) < 0.1
        cells = NoiseCells(centers, manhattan, found)
        expected = -loss / unit(found, manhattan) - 4000 * cells.log_normaliser(found)
        assert_allclose(fit, expected)
