"""Groups of many correlated columns are found, and one group of them stays whole."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_pieces import all_apart

NOISES = {
    "normal": lambda rng, size: rng.normal(size=size),
    "Student": lambda rng, size: (
        rng.normal(size=size) / np.sqrt(rng.chisquare(5, size=(size[0], 1)) / 5)
    ),
    "skewed": lambda rng, size: rng.gamma(2, size=size) - 2,
    "uniform": lambda rng, size: rng.uniform(-1.7, 1.7, size=size),
}


def factors(rng, d):
    loadings = rng.normal(size=(d, 3))
    return loadings @ loadings.T + 0.3 * np.eye(d)


COVARIANCES = {
    "random": lambda rng, d: np.cov(rng.normal(size=(d, d + 1))),
    "factors": factors,
    "autoregressive": lambda _, d: (
        0.9 ** np.abs(np.subtract.outer(*2 * [np.arange(d)]))
    ),
    "equal": lambda _, d: 0.8 + 0.2 * np.eye(d),
}


def table(covariance, noise, n_groups, n_rows=300, d=40, distance=8.0, seed=0):
    """Groups at equal Mahalanobis distances from each other."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(COVARIANCES[covariance](rng, d))
    centers = np.linalg.qr(rng.normal(size=(d, n_groups)))[0].T * distance / np.sqrt(2)
    labels = rng.integers(n_groups, size=n_rows)
    rows = centers[labels] * (n_groups > 1) + NOISES[noise](rng, (n_rows, d))
    return rows @ root.T, labels


def fit(X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(random_state=0, n_iter=20).fit(X)
    return model, [str(one.message) for one in caught]


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_groups_of_correlated_columns_are_found(covariance):
    X, labels = table(covariance, "normal", 3)
    model, messages = fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    assert not messages


def table_of_factors(seed, n_rows=500, d=50, n_factors=4, n_groups=5):
    """Groups of a few factors, at least seven standard deviations apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_groups, size=n_rows)
    loadings = rng.normal(size=(n_factors, d))
    reach, centers = 7 * n_groups ** (1 / n_factors), np.zeros((0, n_factors))
    while len(centers) < n_groups:
        center = rng.uniform(-reach, reach, n_factors)
        if (np.linalg.norm(centers - center, axis=1) > 7).all():
            centers = np.vstack([centers, center])
        else:
            reach *= 1.02
    factors = centers[labels] + rng.normal(size=(n_rows, n_factors))
    return factors @ loadings + 1.5 * rng.normal(size=(n_rows, d)), labels


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1017, 2017, 3017, 4017])
def test_several_groups_of_few_factors_are_all_found(seed):
    """Fits of many columns converge before numbers of clusters are compared."""
    X, labels = table_of_factors(seed)
    model, _ = fit(X)
    assert model.n_clusters_ == 5
    assert adjusted_rand_score(labels, model.labels_) > 0.98


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("covariance", ["random", "factors"])
def test_one_group_of_correlated_columns_stays_whole(covariance, noise):
    X, _ = table(covariance, noise, 1)
    assert fit(X)[0].n_clusters_ == 1


@pytest.mark.parametrize("n_rows", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_rows_than_columns(n_rows):
    """They do not vary along most axes, in some tables by not even a rounding error."""
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(n_rows, 6))
        model = PACOClusterer(n_iter=5, shape="tied", random_state=0).fit(X)
        assert model.n_clusters_ <= n_rows


@pytest.mark.parametrize("noise", ["normal", "uniform"])
def test_one_group_of_two_rows_per_column_stays_whole(noise):
    """Coordinates fitted to a partition show gaps in it, wherever it is."""
    X, _ = table("random", noise, 1, n_rows=130, d=60, seed=230)
    assert fit(X)[0].n_clusters_ == 1


@pytest.mark.parametrize(("n_groups", "warned"), [(1, False), (2, True)])
def test_groups_that_few_rows_hide_are_warned_of(n_groups, warned):
    """Two rows for each column: gaps along principal components are evidence."""
    for seed in (70, 71):
        X, _ = table("factors", "normal", n_groups, n_rows=120, d=60, seed=seed)
        model, messages = fit(X)
        assert model.n_clusters_ == 1
        named = [f"{n_groups} groups with gaps" in one for one in messages]
        assert any(named) == warned


def test_principal_components_do_not_depend_on_units():
    X, _ = table("factors", "normal", 3, d=12)
    units = np.geomspace(1e-3, 1e3, 12)
    first, second = (
        MixtureProblem(
            rows - rows.mean(axis=0),
            np.ones(len(rows)),
            np.zeros(len(rows)),
            np.zeros((12, 12)),
        ).leading_components(4)
        for rows in (X, X * units)
    )
    np.testing.assert_allclose(np.abs(first), np.abs(second), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first.T @ first / len(X), np.eye(4), atol=1e-6)


@pytest.mark.parametrize(("distance", "apart"), [(1.5, False), (6.0, True)])
def test_groups_are_apart_where_rows_midway_are_few(distance, apart):
    """Pieces of one normal group have no gap, nor have groups near each other."""
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 150)
    points = rng.normal(size=(300, 3))
    points[:, 0] += distance * labels
    points -= points.mean(axis=0)
    problem = MixtureProblem(points, np.ones(300), np.zeros(300), np.zeros((3, 3)))
    assert all_apart(problem, problem.partition(labels)) == apart
    halves = (rng.normal(size=300) > 0).astype(int)
    assert not all_apart(problem, problem.partition(halves))
