"""Few rows far from large clusters, where a part of the rows is searched."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from designs import every_two
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_doubts import _doubts_of_noise
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_rows import Rows


def large_groups(n_rows, n_features, rng):
    """Two groups, ten apart."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, 0] += 10.0 * rng.integers(2, size=n_rows)
    return X


def fitted(X, rng):
    """Fit shuffled rows; return the estimator and its messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(n_iter=20, random_state=0).fit(rng.permutation(X))
    assert all(each.category is ConvergenceWarning for each in caught)
    return model, " ".join(str(each.message) for each in caught)


@pytest.mark.parametrize(
    ("n_features", "n_rows", "n_small", "unit", "origin"),
    [(2, 12_000, 12, 1.0, 0.0), (2, 40_000, 80, 1e3, 1e4), (5, 9000, 9, 1e-3, 1e4)],
)
def test_a_group_of_one_row_in_a_thousand_is_found(
    n_features, n_rows, n_small, unit, origin
):
    rng = np.random.default_rng([1, n_rows, n_features])
    small = rng.normal(size=(n_small, n_features))
    small[:, 1] += 10.0
    X = origin + unit * np.vstack([large_groups(n_rows, n_features, rng), small])
    model, _ = fitted(X, rng)
    assert model.n_clusters_ == 3
    labels = model.predict(origin + unit * small)
    assert np.bincount(labels).max() >= 0.8 * n_small


@pytest.mark.parametrize(
    ("n_rows", "n_far", "unit", "origin"),
    [(6000, 5, 1e3, 1e4), (20_000, 20, 1.0, 0.0)],
)
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_a_few_far_rows_are_background(n_features, n_rows, n_far, unit, origin):
    rng = np.random.default_rng([2, n_features, n_far])
    far = rng.uniform(-100.0, 110.0, size=(n_far, n_features))
    X = origin + unit * np.vstack([large_groups(n_rows, n_features, rng), far])
    model, messages = fitted(X, rng)
    assert model.n_clusters_ == 2
    assert 0 < model.background_share_ < 3e-3
    assert messages == ""


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_rows_of_clusters_are_not_far(n_features):
    """The probability of three far rows is 2e-7, if the noise is normal."""
    rng = np.random.default_rng([3, n_features])
    model, messages = fitted(large_groups(6000, n_features, rng), rng)
    assert model.n_clusters_ == 2
    assert messages == ""


@pytest.mark.slow
def test_a_cluster_may_lose_its_rows_among_all_rows():
    """Clusters of single rows, of those searched: they cannot be fitted to all rows."""
    rng = np.random.default_rng([11, 2, 4000, 120, 30])
    labels = rng.integers(4, size=4000)
    X = 9.0 * np.outer(labels, [1.0, 0.0]) + rng.normal(size=(4000, 2))
    far = 30.0 * rng.standard_t(3, size=(120, 1)) * rng.normal(size=(120, 2))
    model, messages = fitted(np.vstack([X, far]), rng)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95
    if model.n_clusters_ != 4:  # far rows are named, as clusters or as rows
        single = " are a single row or copies of one" in messages
        assert single or "covers all others" in messages
        assert "describe the data almost as well" in messages


@pytest.mark.parametrize(
    ("n_features", "n_others", "spread", "unit"),
    every_two([2, 4], [0, 3], [0.05, 1.0], [1e-3, 1.0]),
)
def test_a_small_group_of_many_rows_is_found_or_named(
    n_features, n_others, spread, unit
):
    """Seven of 20,000 rows; without them, other far rows are not named."""
    rng = np.random.default_rng([n_features, n_others])
    X = rng.normal(size=(20_000, n_features))
    X[:, 0] += 8.0 * rng.integers(2, size=len(X))
    directions = rng.normal(size=(8, n_features))
    directions *= 50.0 / np.linalg.norm(directions, axis=1)[:, None]
    group = directions[0] + spread * rng.normal(size=(7, n_features))
    for small in (group, group[:0]):
        model = PACOClusterer(random_state=0, n_iter=20)
        rows = unit * np.vstack([X, small, directions[1 : 1 + n_others]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(rows)
        named = any("near each other and far" in str(one.message) for one in caught)
        assert named == (len(small) > 0 and model.n_clusters_ == 2)


@pytest.mark.parametrize(("weight", "n_named"), [(1.0, 1), (0.03, 0)])
def test_far_rows_that_are_forgotten_are_not_named(weight, n_named):
    """Five far rows of a stream are no small group once they weigh less than a row."""
    points = np.random.default_rng(0).normal(size=(205, 2))
    points[200:] = [[0, 90], [50, -70], [-80, 0], [90, 60], [-60, -90]]
    weights = np.repeat([1.0, weight], [200, 5])
    no_spread = np.zeros(205), np.zeros((2, 2))
    single = MixtureProblem(points, weights, *no_spread).single("round")
    mixture = replace(single, scales=np.ones(1))
    problem = SimpleNamespace(
        rows=Rows.single(points, weights), n_rows=weights.sum(), out=float
    )
    found = SimpleNamespace(mixture=mixture, skewed=False)
    assert len(list(_doubts_of_noise(problem, found, 1))) == n_named
