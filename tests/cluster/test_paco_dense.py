"""Dense groups of few rows in uniform noise of most rows."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer

PLACES = np.array([0.2, 0.5, 0.8])


def table(n_rows, n_features, n_groups, noise, scales, rng):
    """Normal groups, on a line through the unit cube, and uniform rows.

    Returns the rows and their groups, -1 for a uniform row.
    """
    labels = rng.integers(n_groups, size=n_rows)
    labels[: int(noise * n_rows)] = -1
    X = rng.uniform(size=(n_rows, n_features))
    inside = labels >= 0
    centers = np.tile(PLACES[labels[inside], None], n_features)
    X[inside] = centers + scales * rng.normal(size=(inside.sum(), n_features))
    order = rng.permutation(n_rows)
    return X[order], labels[order]


def fitted(X, stream=False):
    """Fit rows, or read them as a stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a background of most rows
        if stream:
            return PACOClusterer(n_iter=20, refresh=500, random_state=0).partial_fit(X)
        return PACOClusterer(n_iter=20, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("stream", "long", "unit", "origin"),
    [(False, False, 1.0, 0.0), (False, True, 1e-3, 1e4), (True, False, 1e3, 0.0)],
)
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_groups", "noise"),
    [(1000, 2, 3, 0.9), (1000, 3, 1, 0.95), (1000, 5, 3, 0.85), (5000, 3, 3, 0.9)],
)
def test_dense_groups_in_a_background_of_most_rows(
    n_rows, n_features, n_groups, noise, stream, long, unit, origin
):
    rng = np.random.default_rng([n_rows, n_features, n_groups, long])
    scales = np.full(n_features, 0.02)
    scales[0] *= 2.0 if long else 1.0
    X, labels = table(n_rows, n_features, n_groups, noise, scales, rng)
    model = fitted(origin + unit * X, stream)
    assert model.n_clusters_ == n_groups
    assert abs(model.background_share_ - noise) < 0.02
    inside = labels >= 0
    found = model.predict(origin + unit * X[inside])
    assert n_groups == 1 or adjusted_rand_score(labels[inside], found) > 0.95


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("n_rows", [200, 1000])
def test_uniform_rows_have_no_dense_groups(n_rows, n_features):
    rng = np.random.default_rng([n_rows, n_features])
    model = fitted(rng.uniform(size=(n_rows, n_features)))
    assert model.background_share_ == 0


def test_dense_groups_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(3)
    X, _ = table(1500, 2, 3, 0.9, 0.02, rng)
    first, second = fitted(X), fitted(rng.permutation(X))
    assert first.n_clusters_ == second.n_clusters_ == 3
    assert first.background_share_ == pytest.approx(second.background_share_, abs=1e-3)


def test_clusters_in_a_background_have_gaps_between_them():
    """Rows of the background between two clusters are no rows of theirs."""
    rng = np.random.default_rng(4)
    X, _ = table(1000, 5, 3, 0.9, 0.02, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PACOClusterer(n_iter=20, random_state=0).fit(X)
    messages = " ".join(str(each.message) for each in caught)
    assert "belong to no cluster" in messages
    assert "gap" not in messages


@pytest.mark.parametrize("wide", ["normal", "uniform"])
@pytest.mark.parametrize("n_features", [2, 4, 6])
def test_dense_cores_of_wide_clusters_are_no_groups_in_noise(n_features, wide):
    rng = np.random.default_rng(n_features)
    labels, core = rng.integers(2, size=1000), rng.random(1000) < 0.2
    gaps = rng.normal(size=(1000, n_features))
    if wide == "uniform":
        gaps[~core] = rng.uniform(-2, 2, size=((~core).sum(), n_features))
    X = 20.0 * labels[:, None] + np.where(core, 0.05, 1.0)[:, None] * gaps
    model = fitted(X)
    assert model.n_clusters_ == 2
    assert model.background_share_ == 0
    assert adjusted_rand_score(labels, model.predict(X)) == 1
