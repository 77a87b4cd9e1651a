"""Columns in which all clusters have one centre."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import comb
from scipy.stats import norm

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_mixture import CommonColumns


def mixture_of(n_rows, n_features, n_groups, seed=0):
    """A problem whose first two columns differ, and the mixture of its groups."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_groups
    X = rng.normal(size=(n_rows, n_features))
    X[:, :2] += 5.0 * rng.normal(size=(n_groups, 2))[labels]
    X -= X.mean(axis=0)
    scatter = np.zeros((n_features, n_features))
    problem = MixtureProblem(X, np.ones(n_rows), np.zeros(n_rows), scatter)
    start = problem.single("diagonal")
    means = np.array([X[labels == j].mean(axis=0) for j in range(n_groups)])
    masses = np.bincount(labels).astype(float)
    kept = {"labels": labels, "masses": masses, "shares": masses / n_rows}
    kept |= {"centers": means @ start.coordinates, "scales": np.ones(n_groups)}
    return problem, type(start)(**{**vars(start), **kept}), X, labels


@pytest.mark.parametrize(("n_rows", "n_groups"), [(120, 2), (300, 3), (300, 5)])
def test_gain_is_the_criterion_of_the_best_columns(n_rows, n_groups):
    """Against log-likelihoods of normal columns, for every number of columns."""
    n_features = 7
    problem, mixture, X, labels = mixture_of(n_rows, n_features, n_groups)
    centers = np.array([X[labels == j].mean(axis=0) for j in range(n_groups)])
    own = X - centers[labels]
    fits = [norm.logpdf(gaps, scale=gaps.std(axis=0)).sum(axis=0) for gaps in (own, X)]
    share, n_evidence = problem.n_evidence / n_rows, problem.n_evidence
    charge = (n_groups - 1) * math.log(n_evidence) / 2
    saved = np.sort(charge - share * (fits[0] - fits[1]))[::-1]
    gains = [
        saved[:m].sum() - math.log(comb(n_features, m)) for m in range(n_features + 1)
    ]
    assert np.argmax(gains) == n_features - 2
    assert_allclose(CommonColumns(problem).gain(mixture), max(gains), rtol=1e-6)


def test_no_gain_where_every_column_differs_or_none_can():
    problem, mixture, _, _ = mixture_of(300, 2, 3)
    assert CommonColumns(problem).gain(mixture) == 0.0
    for shape in ("round", "tied"):
        kept = {**vars(mixture), "shape": shape}
        kept.pop("evidence", None)
        assert CommonColumns(problem).gain(type(mixture)(**kept)) == 0.0
    assert CommonColumns(problem).gain(problem.single("diagonal")) == 0.0


def warning_of_columns(X):
    """Number of clusters, and the warning of columns that show more of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(random_state=0, n_iter=20).fit(X)
    messages = [str(warning.message) for warning in caught]
    return model.n_clusters_, [one for one in messages if "low kurtosis" in one]


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-4, 30.0)])
def test_columns_that_alone_show_more_clusters_are_named(scale, shift):
    """Four groups near each other in 3 of 51 columns; others are correlated."""
    rng = np.random.default_rng(4)
    labels = rng.integers(4, size=400)
    others = rng.normal(size=(400, 47))
    others @= np.eye(47) + 0.3 * rng.normal(size=(47, 47))
    centers = 4.5 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    telling = centers[labels] + rng.normal(size=(400, 3))
    X = np.column_stack([telling, np.zeros((400, 1)), others])  # one is constant
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    n_clusters, found = warning_of_columns(shift + scale * X)
    assert n_clusters < 4
    assert len(found) == 1
    assert "(2, 13) alone have at least 2 clusters" in found[0]


@pytest.mark.parametrize("seed", range(2))
def test_flat_columns_without_clusters_are_not_named(seed):
    """Uniform columns, two values, ratings: flat, without groups of their own."""
    rng = np.random.default_rng(seed)
    flat = [rng.uniform(size=400), rng.integers(2, size=400), rng.integers(5, size=400)]
    X = np.column_stack([*flat, rng.normal(size=(400, 12))])
    assert warning_of_columns(X) == (1, [])
