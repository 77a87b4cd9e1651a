"""Normal groups three standard deviations apart, and flat ones that look like them."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_overlap import neighbours, p_value_of_fewer
from skpacbayes.cluster._paco_tree import Tree

SHEAR = np.array([[3.0, 2.5], [0.0, 0.5]])


def grid(side, n_features, n_rows, seed, distance=3.0):
    """Groups whose neighbouring centres are so many standard deviations apart."""
    rng = np.random.default_rng([seed, side, n_features])
    places = np.array(list(itertools.product(range(side), repeat=n_features)))
    y = rng.integers(len(places), size=n_rows)
    return distance * places[y] + rng.normal(size=(n_rows, n_features)), y


def fitted(X, *, stream=False):
    model = PACOClusterer(n_iter=50, refresh=1000, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X) if stream else model.fit(X)
    return model, " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize(
    ("side", "n_features", "n_rows", "change"),
    [
        (2, 2, 3000, np.eye(2)),
        (3, 2, 3000, SHEAR),
        (4, 2, 3000, np.eye(2)),
        (2, 3, 3000, np.eye(3)),
    ],
)
def test_groups_three_standard_deviations_apart_are_found(
    side, n_features, n_rows, change
):
    """Each has a mode; all were one cluster, by the completed likelihood."""
    X, y = grid(side, n_features, n_rows, seed=0)
    model, messages = fitted(X @ change)
    assert model.n_clusters_ == side**n_features
    assert adjusted_rand_score(y, model.labels_) > 0.55  # of the true centres: .6 to .7
    assert "gap" not in messages


def test_they_are_found_along_a_stream():
    X, _ = grid(2, 2, 3000, seed=1)
    assert fitted(X, stream=True)[0].n_clusters_ == 4


@pytest.mark.slow
def test_overlapping_groups_are_found_or_warned_of():
    """Of 600 rows of four groups, the modes are not always certain."""
    sure = 0
    for seed in range(8):
        model, messages = fitted(grid(2, 2, 600, seed)[0])
        sure += model.n_clusters_ == 4 or "density of 4 clusters" in messages
    assert sure >= 6


def test_pieces_of_two_groups_are_counted():
    """One group of several has modes of its own."""
    X, _ = grid(2, 2, 2000, seed=0)
    rng = np.random.default_rng(0)
    far = np.array([25.0, 0.0]) + rng.normal(size=(500, 2))
    assert fitted(np.vstack([X, far]))[0].n_clusters_ == 5


def flat_disc(rng, n_rows):
    angles, radii = rng.uniform(0, 2 * np.pi, n_rows), np.sqrt(rng.random(n_rows))
    return (radii * [np.cos(angles), np.sin(angles)]).T


LOG_CONCAVE = {
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
    "square": lambda rng, n: rng.uniform(size=(n, 2)),
    "disc": flat_disc,
    "smooth": lambda rng, n: rng.uniform(-3, 3, size=(n, 2)) + rng.normal(size=(n, 2)),
    "exponential": lambda rng, n: rng.exponential(size=(n, 2)),
    "near": lambda rng, n: grid(2, 2, n, rng.integers(99), distance=2.0)[0],
}


@pytest.mark.slow
def test_p_values_of_log_concave_groups_are_valid():
    """Cut in normal pieces, small p-values are as rare as they should be."""
    p_values = []
    for make, seed in itertools.product(LOG_CONCAVE.values(), range(10)):
        rng = np.random.default_rng(seed)
        X = make(rng, 400)
        problem = MixtureProblem(
            X - X.mean(axis=0), np.ones(400), np.zeros(400), np.zeros((2, 2))
        )
        pieces = problem.fit(
            Tree(problem, "round").mixture(6), "round", False, np.inf, 20
        )
        p_values.append(p_value_of_fewer(problem, pieces, problem.single("round")))
    n_small = np.sum(np.array(p_values) < 0.05)
    assert n_small <= binom.ppf(0.999, len(p_values), 0.05)
    assert min(p_values) > 1e-5


def test_a_test_of_modes_finds_them():
    X, _ = grid(2, 2, 1500, seed=3)
    problem = MixtureProblem(
        X - X.mean(axis=0), np.ones(1500), np.zeros(1500), np.zeros((2, 2))
    )
    pieces = problem.fit(Tree(problem, "round").mixture(4), "round", False, np.inf, 20)
    assert p_value_of_fewer(problem, pieces, problem.single("round")) < 1e-3
    assert p_value_of_fewer(problem, pieces, pieces) == 0.5  # nothing to compare


@pytest.mark.parametrize("n_features", [1, 3])
def test_neighbours_have_no_other_centre_between_them(n_features):
    centers = np.random.default_rng(0).normal(size=(9, n_features))
    pairs = []
    for i, j in itertools.combinations(range(9), 2):
        middle = centers[[i, j]].mean(axis=0)
        radius = np.linalg.norm(centers[i] - middle)
        others = np.delete(centers, [i, j], axis=0)
        if (np.linalg.norm(others - middle, axis=1) > radius).all():
            pairs.append([i, j])
    assert neighbours(centers).tolist() == pairs
    assert neighbours(centers[:2]).tolist() == [[0, 1]]
