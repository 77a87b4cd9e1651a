"""Points of the summary of a stream: rows merged into points, cheapest pair first.

A point has n_features + 15 entries: the mean of the merged rows; their weight; the sum
of their squared distances from it; the sums of lambda, lambda h and lambda h^2 (h: the
loss of the row at its forecast, lambda: the inverse temperature then); the sum of the
losses between consecutive rows of the stream in the same cluster, and the weight
of those rows; and the weight of its rows in each of `N_TIMES` intervals of the stream.
All are in units of a power of two kept by the caller. `manhattan` is
None or True: what None excludes is not compiled.

Weights and sums are in units of the weight of the latest row, `clock[UNIT]`, which
forgetting raises from row to row, and which `rescale` brings back to about 1.

A `metric` is None, or holds the coordinates in which mergers are decided: places
(n_features, capacity + 1), those of the points; a matrix (n_features, n_features) from
rows about the anchor (n_features,) to these coordinates; and a work space
(n_features,).
"""

import math

import numpy as np

from . import kernel, part
from .order import END, N_ENDS, NEXT, _note_end

# Entries of the clock: rows seen, position of the next refresh, cumulative loss,
# largest squared norm, sum of temperatures, what remains of a row that was cut, sum of
# squared steps from row to row, weight of those rows, number of points; the weight of
# the latest row, and the factor by which the weight of earlier rows falls; rows since
# the last refresh that lie outside of all clusters, their number that is expected of a
# row, and the position of that refresh; the length of an interval of the stream; the
# sum of the squared weights of runs of equal rows, each forgotten like one row, and the
# weight of the last run.
SEEN, DUE, LOSS, SQUARE, TEMPERATURES, REMAINING, STEPS, N_STEPS = range(8)
POINTS, UNIT, KEPT, FAR, EXPECTED, REFRESHED, INTERVAL = range(8, 15)
RUN_SQUARES, RUN = range(15, 17)
N_ENTRIES = 17
# Entries of a point after the mean of its rows.
WEIGHT, SCATTER, HELD, HELD_LOSS, HELD_SQUARE, STEP, STEP_WEIGHT, TIMES = range(8)
N_TIMES = 8
N_SUMS = TIMES + N_TIMES
# Entries of a metric, and of the `pairs` of `place`.
PLACES, MATRIX, ANCHOR, FOUND = range(4)
PAIR_COSTS = 1
# Points of less than this share of a row, and of the heaviest point, are dropped where
# weights are rescaled.
_GONE = 0.01
# Number of stored values of a column; its notes: their number, the rows read, those
# whose value was stored before, the least gap from a stored to another value, and the
# ends of x and of -x.
MOST_VALUES = 100
N_VALUES, ROWS, REPEATED, LEAST_GAP, ENDS = range(5)
N_NOTES = ENDS + N_ENDS
# Notes that change with the unit, and are infinite before any row.
LENGTHS = [
    LEAST_GAP,
    *(ENDS + side + n for side in (0, N_ENDS // 2) for n in (END, NEXT)),
]
# Share of a column's range within which values are equal.
EQUAL = 1e-9
# Rows after which a column whose values hardly repeat is no longer checked.
_ENOUGH_ROWS = 10 * MOST_VALUES


def new_notes(n_features):
    """Return the values and notes of columns before any row."""
    notes = np.zeros((n_features, N_NOTES))
    notes[:, LENGTHS] = math.inf
    return np.zeros((n_features, MOST_VALUES)), notes


class Points:
    """The columns of a table, a point each, by name: views.

    Parameters
    ----------
    table : ndarray of shape (n_features + 15, n_points)

    Attributes
    ----------
    means : ndarray of shape (n_features, n_points)
        Means of the merged rows.
    sums : ndarray of shape (15, n_points)
        All other entries.
    weights, squares, steps, step_weights : ndarrays of shape (n_points,)
        Weights; sums of squared distances from the mean; sums of the losses between
        consecutive rows, and their weights.
    forecasts : ndarray of shape (3, n_points)
        Sums of lambda, lambda h and lambda h^2.
    times : ndarray of shape (8, n_points)
        Weights of the rows in each interval of the stream.
    """

    def __init__(self, table):
        self.means, self.sums = table[:-N_SUMS], table[-N_SUMS:]
        self.weights, self.squares = self.sums[WEIGHT], self.sums[SCATTER]
        self.forecasts = self.sums[HELD : HELD_SQUARE + 1]
        self.steps, self.step_weights = self.sums[STEP], self.sums[STEP_WEIGHT]
        self.times = self.sums[TIMES:]

    @staticmethod
    def exponents(n_features, step, loss_step):
        """Return exponents of two by which entries change with the unit.

        Lengths gain the factor 2^step, losses 2^loss_step.
        """
        sums = [0] * N_SUMS
        sums[SCATTER] = 2 * step
        sums[HELD], sums[HELD_SQUARE] = -loss_step, loss_step
        sums[STEP] = loss_step
        return [step] * n_features + sums


@kernel
def in_metric(row, n_features, metric):
    """Write the coordinates of a row into the work space of the metric."""
    _, matrix, anchor, found = metric
    for f in range(n_features):
        found[f] = 0.0
    for h in range(n_features):
        gap = row[h] - anchor[h]
        for f in range(n_features):
            found[f] += gap * matrix[h, f]


@kernel
def rescale(table, scatter, metric, pair_costs, clock):
    """Bring the weight of the latest row to between 1 and 2, by a power of two.

    Points of negligible weight are dropped.
    """
    n_features = scatter.shape[0]
    factor = 2.0 ** -math.floor(math.log(clock[UNIT]) / math.log(2.0))
    clock[UNIT] *= factor
    clock[STEPS] *= factor
    clock[N_STEPS] *= factor
    clock[RUN_SQUARES] *= factor
    clock[RUN] *= factor
    held = int(clock[POINTS])
    largest = 0.0
    for j in range(held):
        largest = max(largest, table[n_features + WEIGHT, j] * factor)
    least = _GONE * min(clock[UNIT], largest)
    j, before, after = 0, 0.0, 0.0
    while j < held:
        before += table[n_features + SCATTER, j]
        if table[n_features + WEIGHT, j] * factor < least:
            held -= 1
            for entry in range(table.shape[0]):
                table[entry, j] = table[entry, held]
                if metric is not None and entry < n_features:
                    metric[0][entry, j] = metric[0][entry, held]
            continue
        after += table[n_features + SCATTER, j]
        for entry in range(n_features, table.shape[0]):
            table[entry, j] *= factor
        j += 1
    for f in range(n_features if before > 0.0 else 0):
        for g in range(n_features):
            scatter[f, g] *= factor * (after / before)
    for j in range(pair_costs.shape[0]):
        pair_costs[j] = -1.0
    clock[POINTS] = held


@kernel
def note_values(incoming, begin, end, values, notes, unit):
    """Update the values and notes of columns by rows `begin` to `end` - 1.

    `values` (n_features, MOST_VALUES): the first distinct values, sorted; `notes`
    (n_features, N_NOTES). `unit`: the weight of a single row. Merged points add no
    values; their ends count as those of one row.
    """
    n_features = values.shape[0]
    for f in range(n_features):
        for i in range(begin, end):
            merged = incoming[i, n_features + SCATTER] > 0.0
            weight = 1.0 if merged else incoming[i, n_features + WEIGHT] / unit
            _note_end(incoming[i, f], weight, notes[f], ENDS)
            _note_end(-incoming[i, f], weight, notes[f], ENDS + N_ENDS // 2)
        held = int(notes[f, N_VALUES])
        if notes[f, ROWS] >= _ENOUGH_ROWS and notes[f, REPEATED] < 0.5 * notes[f, ROWS]:
            continue
        for i in range(begin, end):
            if incoming[i, n_features + SCATTER] > 0.0:
                continue
            value, low, high = incoming[i, f], 0, held
            while low < high:
                middle = (low + high) // 2
                if values[f, middle] < value:
                    low = middle + 1
                else:
                    high = middle
            gap = values[f, low] - value if low < held else math.inf
            if low > 0 and value - values[f, low - 1] < gap:
                gap = value - values[f, low - 1]
            weight = incoming[i, n_features + WEIGHT] / unit
            notes[f, ROWS] += weight
            if held > 0 and gap <= EQUAL * (values[f, held - 1] - values[f, 0]):
                notes[f, REPEATED] += weight
            elif held < MOST_VALUES:
                for j in range(held, low, -1):
                    values[f, j] = values[f, j - 1]
                values[f, low] = value
                notes[f, REPEATED] += weight - 1.0 if weight > 1.0 else 0.0
                held += 1
            elif gap < notes[f, LEAST_GAP]:
                notes[f, LEAST_GAP] = gap
        notes[f, N_VALUES] = held


@part
def _place_freely(newcomer, n_features, table, places, metric, pair_costs, clock):
    """Insert a row in the column of an equal point, or in a free one."""
    held = int(clock[POINTS])
    equal = -1
    for j in range(held):
        same = True
        for f in range(n_features):
            if table[f, j] != newcomer[f]:
                same = False
                break
        if same:
            equal = j
            break
    column = equal if equal >= 0 else held
    for entry in range(table.shape[0]):
        if equal < 0:
            table[entry, column] = newcomer[entry]
        elif entry >= n_features:
            table[entry, column] += newcomer[entry]
    if equal < 0:
        pair_costs[column] = -1.0
        clock[POINTS] += 1.0
        if metric is not None:
            in_metric(newcomer, n_features, metric)
            for f in range(n_features):
                places[f, column] = metric[FOUND][f]


@part
def _merger_of(point, n_features, table, places, manhattan, pairs):
    """Return the merger of lowest cost of a point, and of the other points.

    Each is a cost and a point. The costs of the others are updated.
    """
    costs, pair_costs, partners = pairs
    n_points = table.shape[1] - 1
    for f in range(n_features):
        here = places[f, point]
        for j in range(n_points):
            gap = places[f, j] - here
            costs[j] += gap * gap if manhattan is None else abs(gap)
    weight = table[n_features + WEIGHT, point]
    cheapest, other = math.inf, -1
    least, following = math.inf, -1
    for j in range(n_points):
        of_other = table[n_features + WEIGHT, j]
        both = of_other + weight
        cost = costs[j] * of_other * weight / both
        costs[j] = 0.0
        if j != point:
            if cost < cheapest:
                cheapest, other = cost, j
            if point < n_points and cost < pair_costs[j]:
                pair_costs[j] = cost
                partners[j] = point
            if pair_costs[j] < least:
                least, following = pair_costs[j], j
    return cheapest, other, least, following


@part
def _cheapest_pair(n_features, table, places, manhattan, pairs):
    """Return the points of the merger of lowest cost: the kept and the removed one.

    The newcomer is in the last column.
    """
    _, pair_costs, partners = pairs
    n_points = table.shape[1] - 1
    point, kept, gone = n_points, -1, n_points
    home, lowest = -1, math.inf
    while kept < 0:
        cheapest, other, least, following = _merger_of(
            point, n_features, table, places, manhattan, pairs
        )
        if point == n_points:
            home, lowest = other, cheapest
        else:
            pair_costs[point] = cheapest
            partners[point] = other
            if cheapest <= least:
                least, following = cheapest, point
        if lowest == 0.0 or least >= lowest:
            kept = home
        elif following == point:
            kept, gone = point, other
        point = following  # its stored merger may be out of date
    return kept, gone


@part
def _merge(kept, gone, n_features, table, places, scatter, metric):
    """Merge a point into another; the newcomer takes its column if that is free."""
    n_points = table.shape[1] - 1
    first, second = table[n_features + WEIGHT, kept], table[n_features + WEIGHT, gone]
    both = first + second
    for f in range(n_features):
        gap = table[f, gone] - table[f, kept]
        for g in range(f + 1):
            added = first * second / both * gap * (table[g, gone] - table[g, kept])
            scatter[f, g] += added
            if g < f:
                scatter[g, f] += added
            else:
                table[n_features + SCATTER, kept] += added
    for entry in range(table.shape[0]):
        if entry < n_features:
            gap = table[entry, gone] - table[entry, kept]
            table[entry, kept] += second / both * gap
            if metric is not None:
                gap = places[entry, gone] - places[entry, kept]
                places[entry, kept] += second / both * gap
        else:
            table[entry, kept] += table[entry, gone]
        if gone < n_points:
            table[entry, gone] = table[entry, n_points]
            if metric is not None and entry < n_features:
                places[entry, gone] = places[entry, n_points]


@kernel
def place(incoming, n_incoming, table, scatter, metric, manhattan, pairs, clock):
    """Insert the first rows of `incoming` in a table, one by one.

    `table` (n_features + 15, capacity + 1) holds a point a column, so that the loops
    over them vectorise; the last column is spare. A row is added to an equal point, or
    put in a free column; if there is none, the merger of lowest cost is made: of the
    row with a point, or of two points, whose free column the row takes. `scatter`
    (n_features, n_features) gains what the merged points scatter about their mean. A
    merger costs the loss that it adds, in the coordinates of the `metric` (half of it,
    for the Manhattan loss). `pairs`: a work space of zeros, and each point's cheapest
    merger as last computed (-1: never) and with which point, each (capacity + 1,).
    """
    n_features = scatter.shape[0]
    places = table
    if metric is not None:
        places = metric[0]
    n_points = table.shape[1] - 1
    for row in range(n_incoming):
        if int(clock[POINTS]) < n_points:
            _place_freely(
                incoming[row], n_features, table, places, metric, pairs[1], clock
            )
            continue
        for entry in range(table.shape[0]):
            table[entry, n_points] = incoming[row, entry]
        if metric is not None:
            in_metric(incoming[row], n_features, metric)
            for f in range(n_features):
                places[f, n_points] = metric[FOUND][f]
        kept, gone = _cheapest_pair(n_features, table, places, manhattan, pairs)
        _merge(kept, gone, n_features, table, places, scatter, metric)
        if gone < n_points:
            pairs[1][kept] = -1.0
            pairs[1][gone] = -1.0
