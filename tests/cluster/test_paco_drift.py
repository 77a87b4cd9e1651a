"""A stream whose clusters move is warned of, and one with new clusters is not."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_drift import share_of_drift, share_of_steps
from skpacbayes.cluster._paco_rows import Rows

PLACES = 8.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])


def ring(n_rows, seed):
    """Four groups on a ring that turns by 2 spreads in 100 rows."""
    rng = np.random.default_rng(seed)
    angles = np.pi / 2 * rng.integers(4, size=n_rows) + np.arange(n_rows) / 300
    return 6 * np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(
        size=(n_rows, 2)
    )


def walk(n_rows, seed):
    """Four groups in random walks."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n_rows)
    steps = rng.normal(size=(n_rows, 4, 2)).cumsum(axis=0)[np.arange(n_rows), y]
    return PLACES[y] + 0.2 * steps + rng.normal(size=(n_rows, 2))


def arriving(n_rows, seed):
    """Groups that stay where they are, three of which appear later."""
    rng = np.random.default_rng(seed)
    last = 1 + np.arange(n_rows) * 4 // n_rows
    return PLACES[rng.integers(last)] + rng.normal(size=(n_rows, 2))


def messages_of(X, **parameters):
    model = PACOClusterer(n_iter=20, refresh=40, random_state=0, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for begin in range(0, len(X), 40):
            model.partial_fit(X[begin : begin + 40])
    return [str(each.message) for each in caught if "move along" in str(each.message)]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "unit"), [(ring, 1e-150), (walk, 1.0)])
def test_clusters_that_move_are_named(make, unit):
    assert messages_of(unit * make(320, 0))
    assert not messages_of(unit * np.random.default_rng(0).permutation(make(320, 0)))


def test_clusters_of_the_manhattan_loss_that_move_are_named():
    assert messages_of(walk(320, 1), loss="manhattan")


def test_a_longer_stream_than_the_summary_holds():
    assert messages_of(ring(320, 1), summary_size=50)


@pytest.mark.slow
def test_clusters_that_appear_later_do_not_move():
    for seed in range(3):
        assert not messages_of(arriving(320, seed))


def test_a_stream_that_forgets_is_not_named():
    assert not messages_of(walk(320, 0), forgetting="auto")


def test_a_stream_after_fit():
    X = ring(320, 2)
    model = PACOClusterer(n_iter=20, refresh=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.random.default_rng(0).permutation(X[:100]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X[100:])
    assert any("move along" in str(each.message) for each in caught)


def test_pieces_of_a_walk_are_named_before_100_rows():
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(96, 2)).cumsum(axis=0)
        assert messages_of(X)


def in_order(X, weight=1.0):
    """The rows, and the sum and the number of the steps between them."""
    rows = Rows.single(X, np.full(len(X), weight))
    return rows, (np.diff(X, axis=0) ** 2).sum(), len(X) - 1


def test_share_of_steps():
    """Rows of correlation r to the next have steps of 2 (1 - r) variances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    for i in range(1, len(X)):
        X[i] = 0.3 * X[i - 1] + np.sqrt(1 - 0.3**2) * X[i]
    labels = np.zeros(len(X), dtype=int)
    rows, *steps = in_order(X)
    assert_allclose(share_of_steps(rows, labels, *steps), 0.3, atol=0.02)
    rows, *steps = in_order(X, weight=2.0)
    assert share_of_steps(rows, labels, *steps) == 0
    rows, *steps = in_order(rng.permutation(X))
    assert share_of_steps(rows, labels, *steps) == 0


@pytest.mark.parametrize("kind", ["normal", "cauchy", "skewed", "rounded"])
def test_chance_is_no_drift(kind):
    """Of 300 streams in random order, none is named; the law has no shape.

    By their steps as one cluster, 3 or fewer: 0.3 on average, 4 with probability 3e-4.
    """
    rng, n_by_steps = np.random.default_rng(0), 0
    for _ in range(300):
        n_rows, d = rng.integers(20, 300), rng.integers(1, 5)
        X = rng.standard_cauchy((n_rows, d)) if kind == "cauchy" else None
        X = rng.normal(size=(n_rows, d)) if X is None else X
        X = np.exp(X) if kind == "skewed" else np.round(X) if kind == "rounded" else X
        labels = np.minimum(rng.poisson(1.0, n_rows), 2)
        times = np.eye(8)[np.arange(n_rows) * 7 // n_rows]
        assert share_of_drift(X, times, labels) == 0
        rows, *steps = in_order(X)
        n_by_steps += share_of_steps(rows, 0 * labels, *steps) > 0
    assert n_by_steps <= 3


def test_share_of_drift():
    """A step of h spreads between halves explains h^2 / (h^2 + 4) of the variance."""
    rng = np.random.default_rng(0)
    late = np.arange(20_000) >= 10_000
    X = rng.normal(size=(20_000, 1)) + 1.5 * late[:, None]
    times = np.eye(8)[2 * late.astype(int)]
    labels = np.zeros(20_000, dtype=int)
    share = 1.5**2 / (1.5**2 + 4)
    assert_allclose(share_of_drift(X, times, labels), share, atol=0.01)
    assert share_of_drift(X, times, late.astype(int)) == 0


def test_intervals_of_the_stream_are_joined():
    """All rows keep an interval each, in their order, however long the stream is."""
    model = PACOClusterer(n_iter=5, refresh=50, summary_size=None, random_state=0)
    X = np.random.default_rng(0).normal(size=(500, 1))
    for n_rows in (50, 450):
        model.partial_fit(X[:n_rows])
        X = X[n_rows:]
    points = model._stream.summary.held_points
    assert_allclose(points.times.sum(axis=0), points.weights)
    first = np.argmax(points.times, axis=0)
    assert (np.diff(first) >= 0).all()
    assert set(first) == set(range(first.max() + 1))
    assert 4 <= first.max() + 1 <= 8
