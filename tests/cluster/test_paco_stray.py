"""Groups of few rows beside large ones, in a thin uniform background."""

import numpy as np
import pytest

from skpacbayes.cluster import PACOClusterer


def unbalanced(n_features, share, seed):
    """Draw three dense groups, five of 30 rows that are wider, and uniform noise."""
    rng = np.random.default_rng([seed, n_features])
    centers = np.zeros((8, n_features))
    centers[:, :2] = [(0, 0), (12, 0), (6, 12)] + [(60, 20 * j) for j in range(-2, 3)]
    y = np.repeat(np.arange(8), [600] * 3 + [30] * 5)
    spreads = np.repeat([1.0, 2.5], [1800, 150])[:, None]
    X = centers[y] + spreads * rng.normal(size=(len(y), n_features))
    low, high = X.min(axis=0), X.max(axis=0)
    noise = rng.uniform(low, high, (int(share * len(X)), n_features))
    return np.vstack([X, noise])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("n_features", [2, 4])
def test_small_groups_are_not_lost_in_a_background(n_features, share):
    """Neither are small groups background, nor is noise a cluster."""
    X = unbalanced(n_features, share, 0)
    assert PACOClusterer(random_state=0).fit(X).n_clusters_ == 8


def test_noise_alone_has_no_small_groups():
    """A background adds no clusters to three groups."""
    X = unbalanced(2, 0.1, 1)
    X = np.vstack([X[:1800], X[1950:]])
    model = PACOClusterer(random_state=0).fit(X)
    assert model.n_clusters_ == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 6, 9])
def test_groups_with_background_rows_among_them_are_found(seed):
    """Five groups of 15 rows, with about four background rows in each of them."""
    rng = np.random.default_rng(seed)
    centers = [(0, 0), (15, 30), (0, 60), (90, 10), (70, 20), (95, 40), (75, 50)]
    sizes = [300] * 3 + [15] * 5
    centers = np.repeat([*centers, (60, 62)], sizes, axis=0)
    spreads = np.repeat([1.0] * 3 + [3.3] * 5, sizes)[:, None]
    X = centers + spreads * rng.normal(size=centers.shape)
    X = np.vstack([X, rng.uniform((-2, -2), (105, 70), (100, 2))])
    assert PACOClusterer(random_state=0).fit(X).n_clusters_ == 8
