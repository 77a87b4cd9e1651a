"""NumPy twin of the part that notes in which order targets come."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from twins import twin_of

from skpacbayes._kernels import order


class State(order.NotedOrder):
    def __init__(self, n_labels):
        self.order = np.zeros(order.N_ORDER + n_labels)


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
    state = State({"numbers": 0, "two": 2, "five": 5}[labels])
    for rows in np.split(np.arange(60), [1, 2, 17]):
        kernel(codes[rows], weights[rows], state.order)
    own = codes[weights > 0]
    assert state.n_noted == len(own)
    assert state.noted_increases == np.count_nonzero(np.diff(own) > 0)
    assert state.noted_decreases == np.count_nonzero(np.diff(own) < 0)
    counts = np.unique(own, return_counts=True)[1]
    if labels != "numbers":
        assert_array_equal(state.label_counts, counts)
    if labels != "numbers" or arranged == "sorted":  # runs are then the labels
        assert state.noted_squares == counts @ counts
    again = State(len(state.label_counts))
    kernel(own, np.empty(0), again.order)
    assert_array_equal(again.order, state.order)
