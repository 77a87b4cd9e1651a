"""Groups whose spreads and distances are far smaller than those of other groups."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_fitting import MixtureProblem
from skpacbayes.cluster._paco_within import _with_clusters_within

N_NARROW, N_WIDE = 4, 2


def near_and_far(n_features, ratio, seed, n_first=0):
    """Draw four narrow groups, and two that are wider and farther apart by a ratio.

    The first `n_first` rows are of narrow groups; the others are in random order.
    """
    rng = np.random.default_rng([n_features, seed])
    axes = np.vstack([np.eye(n_features)[:2], -np.eye(n_features)[:2]])
    places = np.vstack([6.0 * axes, 8.0 * ratio * axes[:N_WIDE]])
    spreads = np.repeat([1.0, ratio], [N_NARROW, N_WIDE])
    later = np.concatenate([np.arange(4).repeat(30), np.array([4, 5]).repeat(120)])
    y = np.concatenate([rng.integers(N_NARROW, size=n_first), rng.permutation(later)])
    noise = rng.normal(size=(len(y), n_features))
    return places[y] + spreads[y, None] * noise, y


@pytest.mark.parametrize("n_features", [2, 4])
@pytest.mark.parametrize("ratio", [20.0, 80.0])
def test_narrow_groups_beside_wide_ones_are_separated(n_features, ratio):
    """A tree of all rows merges them before it joins two rows of a wide group."""
    X, y = near_and_far(n_features, ratio, 0)
    for table in (X, 1e4 + 1e-3 * X):
        model = PACOClusterer(n_iter=20, random_state=0).fit(table)
        assert model.n_clusters_ == N_NARROW + N_WIDE
        assert adjusted_rand_score(y, model.labels_) > 0.97


@pytest.mark.parametrize("n_features", [2, 3])
@pytest.mark.parametrize("ratio", [20.0, 60.0])
def test_narrow_groups_are_separated_among_single_rows(n_features, ratio):
    """Three rows of noise beside them are no clusters, and hide none."""
    X, y = near_and_far(n_features, ratio, 3)
    noise = np.random.default_rng(n_features).uniform(-25, 25, size=(3, n_features))
    model = PACOClusterer(n_iter=20, random_state=0).fit(np.vstack([X, noise]))
    assert model.n_clusters_ == N_NARROW + N_WIDE
    assert adjusted_rand_score(y, model.labels_[: len(y)]) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 4])
def test_a_stream_finds_later_groups_that_are_much_wider(n_features):
    """Their first rows are few and scattered; they do not stay in the background."""
    X, y = near_and_far(n_features, 60.0, 1, n_first=300)
    model = PACOClusterer(n_iter=20, random_state=0)
    for rows in np.array_split(1e4 + 1e-3 * X, 6):
        model.partial_fit(rows)  # a warning would be an error
    assert model.n_clusters_ == N_NARROW + N_WIDE
    assert model.background_share_ < 0.01
    assert adjusted_rand_score(y, model.predict(1e4 + 1e-3 * X)) > 0.97


@pytest.mark.parametrize("shape", ["round", "tied"])
def test_one_wide_cluster_is_not_cut_within(shape):
    """Heavy tails of own scale are no clusters within a cluster."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [200, 400])
    X = np.array([[0.0, 0.0], [60.0, 0.0]])[y]
    X += np.array([1.0, 8.0])[y, None] * rng.standard_t(5, size=(600, 2))
    model = PACOClusterer(n_iter=20, shape=shape, random_state=0).fit(X)
    assert model.n_clusters_ == 2


def test_a_cluster_without_the_label_of_a_point_stays():
    """The last of three, whose density is nowhere the largest; there are no pieces."""
    points = np.random.default_rng(0).normal(size=(200, 2))
    points[:100] += 20.0
    points -= points.mean(axis=0)
    problem = MixtureProblem(points, np.ones(200), np.zeros(200), np.zeros((2, 2)))
    two = problem.cut(problem.single("round"), np.repeat([0, 1], 100))
    three = replace(
        two,
        centers=two.centers[[0, 1, 0]],
        scales=two.scales[[0, 1, 0]],
        shares=np.array([0.45, 0.5, 0.05]),
        masses=np.array([90.0, 100.0, 10.0]),
    )
    assert _with_clusters_within(problem, three) is three
