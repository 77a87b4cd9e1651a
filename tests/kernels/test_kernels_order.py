"""NumPy twin of the part that notes the order of targets and ends of features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from twins import twin_of

from skpacbayes._kernels import order


class State(order.NotedOrder):
    n_features = 2

    def __init__(self, n_labels):
        self.order = np.zeros(order.order_shape(self.n_features, n_labels))


@pytest.mark.parametrize("labels", ["numbers", "two", "five"])
@pytest.mark.parametrize("arranged", ["as drawn", "sorted"])
@twin_of(order.note_order)
def test_note_order(kernel, labels, arranged):
    """Counts, in calls of several sizes; rows of no weight are absent."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 60).astype(float)
    codes = y
    if labels == "two":
        codes = np.where(y > 1, 1.0, -1.0)
    codes = np.sort(codes) if arranged == "sorted" else codes
    weights = rng.choice([0.0, 0.5, 2.0], 60)
    X = np.column_stack([rng.integers(0, 3, 60), rng.integers(0, 2, 60)]) / 3.0
    state = State({"numbers": 0, "two": 2, "five": 5}[labels])
    for rows in np.split(np.arange(60), [1, 2, 17]):
        kernel(X[rows], codes[rows], weights[rows], state.order)
    own = codes[weights > 0]
    assert state.n_noted == len(own)
    assert state.noted_increases == np.count_nonzero(np.diff(own) > 0)
    changes = np.flatnonzero(np.diff(own, prepend=np.nan, append=np.nan) != 0)
    assert state.longest_run == np.diff(changes).max()
    assert state.noted_decreases == np.count_nonzero(np.diff(own) < 0)
    counts = np.unique(own, return_counts=True)[1]
    if labels != "numbers":
        assert_array_equal(state.label_counts, counts)
    if labels != "numbers" or arranged == "sorted":  # runs are then the labels
        assert state.noted_squares == counts @ counts
    rows = np.column_stack([X[weights > 0], own])
    later, first = rows[order.N_KEPT :], rows[: order.N_KEPT]
    waiting = first.tolist()
    for row in later.tolist():
        if row in waiting:
            waiting.remove(row)
    assert state.noted_repeats == (rows[1:] == rows[:-1]).all(axis=1).sum()
    assert state.noted_echoes == (later == rows[: len(later)]).all(axis=1).sum()
    assert state.noted_returns == len(first) - len(waiting) > 0
    columns = [*X[weights > 0].T, own]
    for column, noted in zip(columns, state.ends, strict=True):
        for values, (end, count, after) in zip((column, -column), noted, strict=True):
            distinct, counts = np.unique(values, return_counts=True)
            assert (end, after, count) == (*distinct[:2], counts[0])
    again = State(len(state.label_counts))
    kernel(X[weights > 0], own, np.empty(0), again.order)
    assert_array_equal(again.order, state.order)


@twin_of(order.remember)
def test_remember(kernel):
    """Rows of positive weight, evenly spaced, in calls of any size."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(77, 2)), rng.normal(size=77)
    weights = rng.choice([0.0, 0.5, 2.0], 77)
    for kept in (np.ones(77), weights):
        memory = np.zeros(order.memory_size(2, 8))
        for rows in np.split(np.arange(77), [1, 2, 17]):
            kernel(X[rows], y[rows], kept[rows], memory)
        some = np.flatnonzero(kept > 0)
        every = 1
        while len(some[::every]) > 8:
            every *= 2
        for found, given in zip(order.remembered(memory, 2), (X, y, kept), strict=True):
            assert_array_equal(found, given[some[::every]])
