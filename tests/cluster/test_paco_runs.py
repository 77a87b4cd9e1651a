"""Streams whose rows come in runs of one group: "auto" takes no pause for an end."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes import PACOClusterer


def in_runs(n_groups, n_features, length, n_rows, seed, unit=1.0):
    """Groups that lie at least 6 deviations apart, in runs of about `length` rows."""
    rng = np.random.default_rng([seed, n_groups, n_features, length])
    places = np.empty((0, n_features))
    while len(places) < n_groups:
        place = rng.normal(size=(1, n_features)) * (4 + len(places))
        if (np.linalg.norm(places - place, axis=1) >= 6).all():
            places = np.vstack([places, place])
    lengths = rng.integers(max(length // 2, 1), 3 * length // 2 + 1, size=n_rows)
    y = np.repeat(rng.integers(n_groups, size=n_rows), lengths)[:n_rows]
    X = places[y] + rng.normal(size=(n_rows, n_features))
    return unit * (X + 100), y


def follow(X, **parameters):
    """Return the model after the rows, in calls of 50, and its numbers of clusters."""
    model = PACOClusterer(forgetting="auto", random_state=0, n_iter=20, **parameters)
    numbers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of overlapping groups
        for i in range(0, len(X), 50):
            numbers.append(model.partial_fit(X[i : i + 50]).n_clusters_)
    return model, np.array(numbers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_groups", "n_features", "length", "unit"),
    [
        (6, 4, 3, 1.0),
        (6, 4, 10, 1e-3),
        (6, 4, 30, 1.0),
        (6, 4, 100, 1e3),
        (3, 2, 30, 1.0),
        (5, 10, 10, 1.0),
        (5, 10, 30, 1.0),
        (12, 6, 10, 1.0),
    ],
)
def test_all_groups_seen_are_kept(n_groups, n_features, length, unit):
    """From 300 rows on, at most one call in ten ends with another number."""
    X, y = in_runs(n_groups, n_features, length, 1000, seed=1, unit=unit)
    model, numbers = follow(X)
    seen = [len(set(y[:stop])) for stop in range(50, 1001, 50)]
    assert np.mean((numbers == seen)[6:]) >= 0.9
    assert adjusted_rand_score(y, model.predict(X)) > 0.97


def test_a_short_stream_in_runs():
    X, y = in_runs(3, 2, 20, 300, seed=0)
    model, _ = follow(X, refresh=25)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.predict(X)) > 0.97


@pytest.mark.slow
def test_runs_after_random_order():
    """100 rows after the runs begin, all groups are known, and are not forgotten."""
    X, _ = in_runs(5, 3, 20, 900, seed=2)
    first = np.random.default_rng(0).permutation(900)[:400]
    _, numbers = follow(np.vstack([X[first], X]))
    assert (numbers[-14:] == 5).all()


@pytest.mark.slow
def test_a_group_that_leaves_a_stream_in_runs():
    """A group that came in many runs is dropped once its pause is too long for them."""
    X, y = in_runs(4, 2, 5, 2400, seed=0)
    stays = (np.arange(2400) < 600) | (y > 0)
    _, numbers = follow(X[stays])
    assert numbers[11] == 4
    assert numbers[-1] == 3


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [2, 4, 8])
def test_random_order_is_no_run(n_groups):
    """Nor where shares differ and groups overlap, in 8 streams each."""
    n_in_runs = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, n_groups])
        places = 4 * rng.normal(size=(n_groups, 2))
        y = rng.choice(n_groups, p=rng.dirichlet(np.ones(n_groups)), size=400)
        model, _ = follow(places[y] + rng.normal(size=(400, 2)), refresh=50)
        n_in_runs += model._stream.summary.watch.in_runs
    assert n_in_runs == 0
