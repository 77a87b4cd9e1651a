"""Overlapping groups of one noise in any shape, and groups that only look like them."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

SHEARS = {"scaled": [[1.0, 0.0], [0.0, 20.0]], "sheared": [[3.0, 2.5], [0.0, 0.5]]}


def fitted(X):
    """Return a clusterer of the rows, whose number may be uncertain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PACOClusterer(n_iter=50, random_state=0).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("change", SHEARS)
def test_overlapping_groups_are_found_in_other_units(change):
    """Model 2 with 300 rows, whose number is right in its own units in 11 of 12 draws.

    By the completed likelihood alone, one and none of these four draws are right.
    """
    tables = (make_paco_model(2, 300, random_state=seed)[0] for seed in range(403, 407))
    found = [fitted(X @ np.array(SHEARS[change])).n_clusters_ for X in tables]
    assert found.count(4) >= 3


@pytest.mark.slow
def test_scales_that_are_learnt_cost_few_of_the_overlapping_groups():
    """Model 2 with 400 rows, rotated, in columns of other units.

    All of 50 draws are right in the units of the model, and 49 in these. By the
    quasi-likelihood with the shape that is best for each number, 43 are.
    """
    n_right = 0
    for seed in range(900, 910):
        X, _ = make_paco_model(2, 400, random_state=seed)
        axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(2, 2)))[0]
        n_right += fitted(X @ axes * [1.0, 10.0]).n_clusters_ == 4
    assert n_right >= 8  # fewer have probability .001 if 49 of 50 are right


@pytest.mark.parametrize("n_rows", [120, 300])
@pytest.mark.parametrize("kind", ["square", "disc", "diamond", "one axis"])
def test_uniform_groups_are_not_cut_into_normal_pieces(kind, n_rows):
    """One group of light tails is one cluster."""
    for seed in (20, 21):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(n_rows, 2))
        if kind == "disc":
            angles, radii = np.pi * X[:, :1], np.sqrt(np.abs(X[:, 1:]))
            X = radii * np.hstack([np.cos(angles), np.sin(angles)])
        elif kind == "diamond":
            X = X @ np.array([[1, 1], [-1, 1]])
        elif kind == "one axis":
            X[:, 1] = 0.5 * rng.normal(size=n_rows)
        assert fitted(X).n_clusters_ == 1


@pytest.mark.parametrize(("n_groups", "n_rows"), [(2, 120), (3, 120), (5, 400)])
def test_long_groups_side_by_side_are_found(n_groups, n_rows):
    """Their distance is small against their length, and six times their width."""
    rng = np.random.default_rng(n_groups)
    y = rng.integers(n_groups, size=n_rows)
    X = rng.normal(size=(n_rows, 3)) * [8.0, 5.0, 0.6]
    X[:, 2] += 3.6 * y
    model = fitted(X @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    assert model.n_clusters_ == n_groups
    assert adjusted_rand_score(y, model.labels_) > 0.95


@pytest.mark.parametrize("seed", [3, 5])
def test_sheared_groups_of_three_rows_are_found(seed):
    """There are more groups than a search by the noise of the rows has components."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(12), 3)
    cells = 8.0 * np.array([(a, b) for a in range(5) for b in range(4)])
    rows = cells[rng.permutation(20)[:12]][y] + rng.normal(size=(36, 2))
    model = fitted(rows @ np.array([[1.0, 0.9], [0.0, 0.3]]))
    assert adjusted_rand_score(y, model.labels_) == 1.0
