"""Clusters that are not round, on streams whose rows are merged into points."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skpacbayes import PACOClusterer

TURN = np.array([[0.8, -0.6], [0.6, 0.8]])


def thin_groups(n, n_groups, length):
    """Groups 8 spreads apart along their short axis, `length` times as long."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_groups, size=n)
    round_ = np.column_stack([8.0 * y, np.zeros(n)]) + rng.normal(size=(n, 2))
    return round_ * [1.0, length] @ TURN, y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_groups", "length", "way"),
    [(2, 300.0, "stream after fit"), (3, 1000.0, "stream")],
)
def test_thin_clusters_are_not_merged_across_their_short_axis(n_groups, length, way):
    """1,500 rows in 200 points: most points are 1,500 spreads apart or more."""
    X, y = thin_groups(1500, n_groups, length)
    model = PACOClusterer(summary_size=200, refresh=100, n_iter=50, random_state=0)
    first = 0
    if way == "stream after fit":
        model.fit(X[:300])
        first = 300
    model.partial_fit(X[first:])
    assert model.n_clusters_ == n_groups
    assert model.shape_ == "tied"
    assert adjusted_rand_score(y, model.predict(X)) > 0.99


@pytest.mark.slow
def test_the_covariance_of_merged_rows_is_not_taken_for_round():
    """It is that of the rows about their centres, in 20 points, up to a twentieth."""
    X, y = thin_groups(1500, 3, 5.0)
    model = PACOClusterer(summary_size=20, refresh=100, n_iter=50, random_state=0)
    found = model.partial_fit(X).covariance_
    within = X - np.array([X[y == j].mean(axis=0) for j in range(3)])[y]
    values = np.linalg.eigvals(np.linalg.solve(within.T @ within / len(X), found))
    assert np.abs(np.log(values)).max() < np.log(1.05)
