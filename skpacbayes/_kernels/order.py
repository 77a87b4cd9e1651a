"""Notes on the rows of a stream: the order of the targets, and extreme values.

`order` holds N_ORDER counts; N_ENDS numbers for each feature, then for the target; the
first N_KEPT rows and the last N_KEPT, with their targets; and one count for each label,
none where targets are numbers.
"""

import math

import numpy as np

from . import kernel, part
from .state import named

N_ORDER = 10
(
    ROWS,  # of positive weight
    LAST,  # target
    RUN,  # length of its current run
    SQUARES,  # sum over the labels, or over runs of numbers, of the squared counts
    INCREASES,  # from one row to the next
    DECREASES,
    LONGEST,  # run
    REPEATS,  # rows that equal the one before, target included
    ECHOES,  # rows that equal the one N_KEPT before
    RETURNS,  # of the first N_KEPT rows, those that a later row equals
) = range(N_ORDER)
# Of x and of -x: the least value, its rows, and the least of the other values.
N_ENDS = 6
END, END_COUNT, NEXT = range(N_ENDS // 2)
N_KEPT = 16
N_COLUMN = N_ENDS + 2 * N_KEPT  # numbers of a feature, or of the target


def order_shape(n_features, n_labels):
    """Shape of `order`."""
    return (N_ORDER + N_COLUMN * (n_features + 1) + n_labels,)


# A memory of rows that spans the stream holds each row, its target and its weight.
N_BESIDE = 2
# At the start of the memory: rows read, and the distance of the rows that are kept.
N_MEMORY = 2
READ, EVERY = range(N_MEMORY)


def memory_size(n_features, room):
    """Size of a memory of `room` rows; of an even number, or none."""
    return N_MEMORY + room * (n_features + N_BESIDE) if room else 0


def remembered(memory, n_features):
    """Return rows, targets and weights in a memory, in the order of the stream."""
    rows = memory[N_MEMORY:].reshape(-1, n_features + N_BESIDE)
    kept = rows[: int(-(-memory[READ] // max(memory[EVERY], 1.0)))]
    return kept[:, :n_features].copy(), kept[:, -2].copy(), kept[:, -1].copy()


class NotedOrder:
    """Names for the entries of `order`, of rows of `n_features` features."""

    n_memory = 0  # size of a memory of rows that follows the labels

    noted_squares = named("order", SQUARES)
    noted_increases = named("order", INCREASES)
    noted_decreases = named("order", DECREASES)
    longest_run = named("order", LONGEST)
    noted_repeats = named("order", REPEATS)
    noted_echoes = named("order", ECHOES)
    noted_returns = named("order", RETURNS)

    @property
    def n_noted(self):
        """Rows of positive weight."""
        return int(self.order.item(ROWS))

    @property
    def label_counts(self):
        """Rows of each label; empty where targets are numbers."""
        start = order_shape(self.n_features, 0)[0]
        return self.order[start : len(self.order) - self.n_memory]

    @property
    def ends(self):
        """END, END_COUNT and NEXT of x, then of -x, (n_features + 1, 2, 3)."""
        stop = N_ORDER + N_ENDS * (self.n_features + 1)
        return self.order[N_ORDER:stop].reshape(-1, 2, N_ENDS // 2)


@part
def _note_end(value, weight, ends, p):
    """Update the least value, its count, and the next, in `ends` from place p on."""
    if value < ends[p + NEXT]:  # rare
        if value < ends[p + END]:
            ends[p + NEXT] = ends[p + END]
            ends[p + END], ends[p + END_COUNT] = value, weight
        elif value == ends[p + END]:
            ends[p + END_COUNT] += weight
        else:
            ends[p + NEXT] = value


@part
def _note_ends(x, y, order):
    """Update the ends of each column, and the number of rows with each."""
    begins, p = order[ROWS] == 0.0, N_ORDER
    for j in range(x.shape[0] + 1):
        value = x[j] if j < x.shape[0] else y
        for _ in range(2):
            if begins:
                order[p + END] = order[p + NEXT] = math.inf
            _note_end(value, 1.0, order, p)
            value = -value
            p += N_ENDS // 2


@kernel
def _differ(x, y, order, p):
    """Return whether a row or its target differs from the row kept at place p."""
    for j in range(x.shape[0]):
        if x[j] != order[p + j]:
            return True
    return y != order[p + x.shape[0]]


@part
def _note_repeats(x, y, order):
    """Compare a row with earlier ones, and keep it: see REPEATS, ECHOES, RETURNS."""
    d, n_rows = x.shape[0], np.int64(order[ROWS])
    width, first = d + 1, N_ORDER + N_ENDS * (d + 1)
    last = first + N_KEPT * width
    own = last + (n_rows & (N_KEPT - 1)) * width  # N_KEPT is a power of two
    before = last + ((n_rows - 1) & (N_KEPT - 1)) * width
    if n_rows > 0 and not _differ(x, y, order, before):
        order[REPEATS] += 1.0
    if n_rows >= N_KEPT:
        if not _differ(x, y, order, own):
            order[ECHOES] += 1.0
        for k in range(N_KEPT):
            p = first + k * width
            likely = x[0] == order[p] and y == order[p + d]
            if likely and not _differ(x, y, order, p):
                order[RETURNS] += 1.0
                order[p + d] = math.nan  # it has returned
                break
        first = own  # the first rows stay
    else:
        first += n_rows * width
    order[first + d] = order[own + d] = y
    for j in range(d):
        order[first + j] = order[own + j] = x[j]


@kernel
def remember(X, y, sample_weight, memory):
    """Keep every k-th row of positive weight, where k doubles if the memory is full."""
    d = X.shape[1]
    width = d + N_BESIDE
    room = (memory.shape[0] - N_MEMORY) // width
    every = np.int64(memory[EVERY]) if memory[EVERY] > 0.0 else 1
    read = np.int64(memory[READ])
    for i in range(X.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        if read == room * every:
            every *= 2
            for k in range(room // 2):
                p = N_MEMORY + k * width
                for j in range(width):
                    memory[p + j] = memory[p + k * width + j]
        if read % every == 0:
            p = N_MEMORY + read // every * width
            for j in range(d):
                memory[p + j] = X[i, j]
            memory[p + d], memory[p + d + 1] = y[i], weight
        read += 1
    memory[READ], memory[EVERY] = read, every


@kernel
def note_order(X, y, sample_weight, order):
    """Count rows and their targets, except rows of zero weight.

    Labels are -1 and 1, or numbers from 0.
    """
    before_labels = N_ORDER + N_COLUMN * (X.shape[1] + 1)
    labels = order.shape[0] > before_labels
    for i in range(y.shape[0]):
        if sample_weight.shape[0] and sample_weight[i] == 0.0:
            continue
        target = y[i]
        last = order[LAST] if order[ROWS] > 0.0 else target
        place, run = RUN, order[RUN] if target == last else 0.0
        order[RUN] = run
        if labels:
            place = before_labels + (np.int64(target) if target > 0.0 else 0)
        _note_ends(X[i], target, order)
        _note_repeats(X[i], target, order)
        order[SQUARES] += 2.0 * order[place] + 1.0
        order[place] += 1.0
        order[RUN] = run + 1.0
        order[LONGEST] = run + 1.0 if run >= order[LONGEST] else order[LONGEST]
        order[INCREASES] += target > last
        order[DECREASES] += target < last
        order[LAST] = target
        order[ROWS] += 1.0
