"""A bounded summary of a stream: rows merged into points, cheapest pair first.

`table` (capacity, n_features + 7) holds a point a row. Its columns: the mean of the
merged rows; their weight; the sum of their squared distances from it; the sums of
lambda, lambda h and lambda h^2 (h: the loss of the forecast that met the row, lambda:
the inverse temperature then); the sum of the losses between consecutive rows of the
stream that fell in one cluster, and the weight of those rows. `pair_costs`, `pairs`
(capacity,): each point's cheapest merger, as last computed. All in units of a power of
two kept by the caller.
"""

import math

from . import kernel


@kernel
def _merge_cost(table, i, j, n_features, manhattan, enough):
    """Loss that merging points i and j adds; above `enough` it is a lower bound."""
    weight = table[i, n_features] * table[j, n_features]
    factor = weight / (table[i, n_features] + table[j, n_features])
    if manhattan:
        factor *= 2.0
    total = 0.0
    for start in range(0, n_features, 8):
        part = 0.0
        for f in range(start, min(start + 8, n_features)):
            gap = table[i, f] - table[j, f]
            part += abs(gap) if manhattan else gap * gap
        total += part
        if factor * total > enough:
            break
    return factor * total


@kernel
def _merge(table, i, j, n_features):
    """Merge point j into point i, in place."""
    first = table[i, n_features]
    second = table[j, n_features]
    share = second / (first + second)
    for f in range(n_features):
        gap = table[j, f] - table[i, f]
        table[i, n_features + 1] += first * share * gap * gap
        table[i, f] += share * gap
    for column in range(n_features, n_features + 7):
        table[i, column] += table[j, column]


@kernel
def insert(table, n_points, n_features, manhattan, pair_costs, pairs):
    """Give the point in row `n_points` its place; returns the number of points.

    Row `n_points` of the table is the newcomer (the table has one row to spare). An
    equal point takes it in; else it becomes a point while there is room; else the
    cheapest merger of all is made: of the newcomer with a point, or of two points,
    whose free row the newcomer then takes.
    """
    kept, gone = -1, n_points
    lowest = math.inf
    for i in range(n_points):
        cost = _merge_cost(table, i, n_points, n_features, manhattan, lowest)
        if cost < lowest:
            lowest, kept = cost, i
            if cost == 0.0:
                break
    if lowest > 0.0 and n_points < table.shape[0] - 1:
        pair_costs[n_points] = -1.0  # not known yet
        return n_points + 1
    while lowest > 0.0:
        i, known = n_points, lowest
        for j in range(n_points):
            if pair_costs[j] < known:
                i, known = j, pair_costs[j]
        if i == n_points:
            break
        # What is known of a pair may be out of date: look again at the cheapest.
        pair_costs[i] = math.inf
        for j in range(n_points):
            if j != i:
                enough = max(pair_costs[i], pair_costs[j])
                cost = _merge_cost(table, i, j, n_features, manhattan, enough)
                if cost < pair_costs[i]:
                    pair_costs[i] = cost
                    pairs[i] = j
                if cost < pair_costs[j]:
                    pair_costs[j] = cost
                    pairs[j] = i
        if known >= 0.0 and pair_costs[i] <= known * (1.0 + 1e-9):
            kept, gone = i, pairs[i]
            break
    _merge(table, kept, gone, n_features)
    if gone < n_points:
        for column in range(table.shape[1]):
            table[gone, column] = table[n_points, column]
        pair_costs[kept] = -1.0
        pair_costs[gone] = -1.0
    return n_points


@kernel
def insert_all(incoming, table, n_points, n_features, manhattan, pair_costs, pairs):
    """Insert points (rows of the same columns as the table) one after the other."""
    for i in range(incoming.shape[0]):
        for column in range(incoming.shape[1]):
            table[n_points, column] = incoming[i, column]
        n_points = insert(table, n_points, n_features, manhattan, pair_costs, pairs)
    return n_points


@kernel
def nearest(points, i, centers, manhattan):
    """Nearest centre to point i, and its loss there."""
    best = 0
    lowest = math.inf
    for j in range(centers.shape[0]):
        total = 0.0
        for f in range(centers.shape[1]):
            gap = points[i, f] - centers[j, f]
            total += abs(gap) if manhattan else gap * gap
            if total >= lowest:
                break
        if total < lowest:
            best, lowest = j, total
    return best, lowest


@kernel
def advance(
    X,
    sample_weight,
    begin,
    inverse_unit,
    limit,
    manhattan,
    variance_term,
    temperature,
    forecast,
    centers,
    table,
    pair_costs,
    pairs,
    previous,
    clock,
):
    """Read rows of X from row `begin` until the next refresh is due; return the row.

    Every row meets the forecast's centres, pays its loss, and is inserted in the
    table; a weight of w counts as w copies of the row, the last one fractional.
    `previous` (n_features + 1,): the last row and its cluster (-1: none). `clock`:
    0 rows seen, 1 next refresh, 2 cumulative loss, 3 number of points, 4 largest
    squared norm, 5 sum of temperatures, 6 what is left of a row cut by a refresh, 7
    sum of squared steps from row to row, 8 the weight of those rows. Stops before a row
    that exceeds `limit`, which asks for another unit.
    """
    n_features = X.shape[1]
    points = int(clock[3])
    for i in range(begin, X.shape[0]):
        remaining = sample_weight[i] if sample_weight.shape[0] > 0 else 1.0
        if clock[6] > 0.0:
            remaining = clock[6]
            clock[6] = 0.0
        while remaining > 0.0:
            weight = min(1.0, remaining)
            square = 0.0
            step = 0.0
            jump = 0.0
            for f in range(n_features):
                value = X[i, f] * inverse_unit
                if not abs(value) <= limit:
                    clock[3] = points
                    clock[6] = remaining
                    return i
                table[points, f] = value
                square += value * value
                gap = value - previous[f]
                step += abs(gap) if manhattan else gap * gap
                jump += gap * gap
            loss = 0.0
            if forecast.shape[0] > 0:
                loss = nearest(table, points, forecast, manhattan)[1]
            cluster = 0
            if centers.shape[0] > 0:
                cluster = nearest(table, points, centers, manhattan)[0]
            held = variance_term * weight * temperature
            table[points, n_features] = weight
            table[points, n_features + 1] = 0.0
            table[points, n_features + 2] = held
            table[points, n_features + 3] = held * loss
            table[points, n_features + 4] = held * loss * loss
            together = previous[n_features] == cluster
            table[points, n_features + 5] = weight * step if together else 0.0
            table[points, n_features + 6] = weight if together else 0.0
            if previous[n_features] >= 0.0:
                clock[7] += weight * jump
                clock[8] += weight
            for f in range(n_features):
                previous[f] = table[points, f]
            previous[n_features] = cluster
            clock[0] += weight
            clock[2] += weight * loss
            clock[4] = max(clock[4], square)
            clock[5] += weight * temperature
            points = insert(table, points, n_features, manhattan, pair_costs, pairs)
            remaining -= weight
            if clock[0] >= clock[1]:
                clock[3] = points
                if remaining > 0.0:
                    clock[6] = remaining
                    return i
                return i + 1
    clock[3] = points
    return X.shape[0]
