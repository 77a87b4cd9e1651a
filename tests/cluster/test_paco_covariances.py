"""Clusters that are not of one shape are not cut into pieces that are."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from designs import every_two
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_covariances import _merged, fit_with_covariances
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_tree import Tree
from skpacbayes.datasets import make_paco_model


def long_groups(rng):
    """Three groups, long along axes of their own."""
    y = rng.integers(3, size=600)
    widths = np.array([[2.5, 0.4], [0.4, 2.5], [1.0, 1.0]])[y]
    return np.array([[0, 0], [10, 0], [0, 10]])[y] + widths * rng.normal(
        size=(600, 2)
    ), y


def counts(rng):
    """Counts whose variances are their means."""
    y = rng.integers(3, size=600)
    rates = np.array([[2, 2, 20], [20, 2, 2], [8, 20, 8]])
    return rng.poisson(rates[y]).astype(float), y


def lognormal(rng):
    y = rng.integers(3, size=600)
    centers = 2.5 * np.array([[0, 0], [1, 0], [0, 1]])
    return np.exp(centers[y] + 0.4 * rng.normal(size=(600, 2))), y


@pytest.mark.parametrize(
    ("make", "unit", "stream"),
    every_two([long_groups, counts, lognormal], [1e-3, 1e3], [False, True]),
)
def test_groups_of_own_covariances_are_not_cut(make, unit, stream):
    rng = np.random.default_rng(20)
    X, y = make(rng)
    X = unit * X + 7 * unit
    model = PACOClusterer(random_state=0, n_iter=20, refresh=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if stream:
            order = rng.permutation(len(X))
            for block in np.array_split(X[order], 6):
                model.partial_fit(block)
        else:
            model.fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.predict(X)) > 0.9


@pytest.mark.parametrize("n_features", [2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_one_normal_cluster_do_not_pay(n_features, seed):
    """A covariance for each piece of a normal cluster costs more than it gains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, n_features)) @ rng.normal(size=(n_features, n_features))
    problem = MixtureProblem(
        X - X.mean(axis=0), np.ones(600), np.zeros(600), np.zeros((n_features,) * 2)
    )
    single = problem.fit(problem.single("tied"), "tied", False, np.inf, 20)
    for k in (2, 3, 5):
        pieces = problem.fit(
            Tree(problem, "tied").mixture(k), "tied", False, np.inf, 20
        )
        separate = fit_with_covariances(problem, pieces, pieces.labels)
        assert separate.n_clusters == 1 or separate.evidence < single.evidence


def test_mergers_join_the_pieces_of_long_groups():
    """Pieces cut along two long groups are merged to these, one pair at a time."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = (
        rng.normal(size=(600, 2)) * np.array([[9, 0.5], [0.5, 9]])[y]
        + 32.0 * y[:, None]
    )
    X -= X.mean(axis=0)
    problem = MixtureProblem(X, np.ones(600), np.zeros(600), np.zeros((2, 2)))
    start = problem.fit(Tree(problem, "round").mixture(8), "round", False, np.inf, 20)
    sizes = [len(np.unique(labels)) for labels in _merged(problem, start)]
    assert sizes == list(range(start.n_clusters - 1, 1, -1))
    *_, last = _merged(problem, start)
    assert adjusted_rand_score(y, last) > 0.95


def radii(rng):
    """Four round groups, of radii of their own."""
    y = rng.integers(4, size=600)
    noise = np.array([1.0, 2, 4, 0.3])[y, None] * rng.normal(size=(600, 2))
    return np.array([[0, 0], [16, 0], [0, 16], [-16, 0]])[y] + noise, y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_clusters_=")
@pytest.mark.parametrize(("make", "seed"), [(radii, 2), (lognormal, 0), (lognormal, 3)])
def test_a_column_of_sums_hides_no_group(make, seed):
    X, y = make(np.random.default_rng(seed))
    X = np.column_stack([X, X.sum(axis=1)])
    model = PACOClusterer(random_state=0, n_iter=20).fit(X)
    assert model.n_clusters_ == len(np.unique(y))
    assert adjusted_rand_score(y, model.labels_) > 0.85


@pytest.mark.parametrize(("unit", "stretch"), [(1e-3, 1.0), (1e3, 10.0)])
def test_overlapping_normal_groups_are_not_fewer_clusters_of_another_shape(
    unit, stretch
):
    """Model 2 with 1,000 rows: 39 of 40 draws not used here were right."""
    for draw in range(2):
        X, y = make_paco_model(2, 1000, random_state=700 + draw)
        turned = X @ np.array([[0.8, -0.6], [0.6, 0.8]]) * [1.0, stretch]
        estimator = PACOClusterer(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(unit * turned + unit * 1e4)
        assert estimator.n_clusters_ == 4
        assert adjusted_rand_score(y, estimator.labels_) > 0.65


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [1000, 3000])
def test_groups_that_are_not_normal_are_no_overlapping_groups(n_rows):
    """More normal clusters describe the density of uniform rectangles better."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n_rows)
    centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y]
    uniform = [1.4, 0.4] * rng.uniform(-1, 1, size=(n_rows, 2))
    estimator = PACOClusterer(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(centers + uniform)
    assert estimator.n_clusters_ == 3
    for noise, normal in (
        (uniform, False),
        (0.3 * rng.normal(size=uniform.shape), True),
    ):
        X = centers + noise
        problem = MixtureProblem(
            X - X.mean(axis=0), np.ones(n_rows), np.zeros(n_rows), np.zeros((2, 2))
        )
        assert problem.normal(from_groups(problem, y)) is normal


def from_groups(problem, groups):
    """Round normal clusters of one size, fitted to groups."""
    parts = np.eye(groups.max() + 1)[groups]
    single = problem.single("round")
    start = replace(
        single,
        centers=parts.T @ problem.points / parts.sum(axis=0)[:, None],
        masses=parts.sum(axis=0),
        shares=parts.mean(axis=0),
        scales=np.repeat(single.scales / 10, parts.shape[1]),
        labels=groups,
    )
    return problem.fit(start, "round", False, np.inf, 50)
