"""Clusters whose noise has a core and a halo are one cluster each."""

import warnings

import numpy as np
import pytest
from designs import every_two
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_radial import log_densities_at


def laplace(rng, n_rows, d):
    """Noise whose variance has an exponential distribution."""
    return rng.normal(size=(n_rows, d)) * np.sqrt(rng.exponential(size=(n_rows, 1)))


def two_variances(rng, n_rows, d):
    """Normal noise, five times as wide for half of the rows."""
    wide = rng.random((n_rows, 1)) < 0.5
    return rng.normal(size=(n_rows, d)) * np.where(wide, 5.0, 1.0)


def hub(rng, n_rows, d):
    """Noise of any direction whose distances are absolute values of normal numbers."""
    noise = rng.normal(size=(n_rows, d))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return 3.0 * noise * np.abs(rng.normal(size=(n_rows, 1)))


SCALES = {"one scale": np.ones(4), "own scales": np.array([1.0, 3.0, 0.5, 2.0])}


def n_clusters_of(X):
    """Return the number of clusters of a fit, whatever its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PACOClusterer(random_state=0).fit(X).n_clusters_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "d", "form"),
    every_two(
        [laplace, two_variances, hub],
        [3, 10],
        [("one scale", False), ("own scales", False), ("one scale", True)],
    ),
)
def test_cores_and_halos_are_one_cluster(noise, d, form):
    scales, oblique = form
    rng = np.random.default_rng(d)
    y = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=1500)
    centers = 60.0 * np.eye(4, d)
    X = centers[y] + noise(rng, len(y), d) * SCALES[scales][y, None]
    if oblique:
        X = X @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    assert n_clusters_of(X) == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("noise", [two_variances, hub])
def test_rows_of_no_cluster_beside_cores_and_halos_are_no_cluster(noise, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=1200)
    X = 60.0 * np.eye(4, 6)[y] + noise(rng, len(y), 6)
    stray = rng.random(len(X)) < 0.02
    X[stray] = rng.uniform(-20, 80, size=(stray.sum(), 6))
    assert n_clusters_of(X) == 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [2, 5])
def test_two_groups_with_one_centre_beside_another_are_two(d, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=900)
    scales = np.array([1.0, 6.0, 1.0])
    X = 25.0 * np.eye(1, d) * (y == 2)[:, None]
    X = X + rng.normal(size=X.shape) * scales[y, None]
    assert n_clusters_of(X) == 3


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_log_densities_are_those_of_normal_noise(d):
    """A distribution of any form costs little: parameters fit chance by 4 nats.

    Three normal parts describe the log of a chi distribution but for .003 nats a row,
    with the constant density of the nearest rows; the error of the mean is smaller.
    """
    rng = np.random.default_rng(d)
    squares = rng.chisquare(d, size=20_000)
    true = -0.5 * (squares + d * np.log(2 * np.pi))
    found = log_densities_at(np.sqrt(squares), np.ones(len(squares)), d)
    assert abs((found - true).mean()) < 0.005


def test_weights_are_copies():
    rng = np.random.default_rng(0)
    distances, weights = rng.exponential(size=201), rng.integers(1, 4, size=201)
    weighted = log_densities_at(distances, weights.astype(float), 3)
    copied = log_densities_at(np.repeat(distances, weights), np.ones(weights.sum()), 3)
    np.testing.assert_allclose(np.repeat(weighted, weights), copied)


@pytest.mark.parametrize("d", [1, 3, 50])
def test_equal_distances_gain_a_bounded_number_of_nats(d):
    """Pairs of rows have equal distances from their centres, which is no evidence."""
    rows = np.ones(20)
    normal = -0.5 * (d * rows + d * np.log(2 * np.pi))
    gains = log_densities_at(np.sqrt(d) * rows, rows, d) - normal
    assert gains.max() < np.log(10) + 0.2
