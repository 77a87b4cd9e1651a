"""A bounded summary of a stream: rows merged into points, cheapest pair first.

A point has n_features + 7 entries: the mean of the merged rows; their weight; the sum
of their squared distances from it; the sums of lambda, lambda h and lambda h^2 (h: the
loss of the forecast that met the row, lambda: the inverse temperature then); the sum of
the losses between consecutive rows of the stream that fell in one cluster, and the
weight of those rows. All in units of a power of two kept by the caller. `manhattan` is
None or True: what None excludes is not compiled.
"""

import math

from . import kernel


@kernel
def meet(
    X,
    sample_weight,
    begin,
    inverse_unit,
    limit,
    manhattan,
    held,
    temperature,
    places,
    n_forecast,
    incoming,
    previous,
    clock,
):
    """Read rows of X from row `begin` until the next refresh is due.

    Every row meets the forecast, the first `n_forecast` of the `places`, pays its loss
    there, and becomes a row of `incoming` (n_rows, n_features + 7), a point; a weight
    of w counts as w copies of the row, the last one fractional. The other places are
    the centres of the clusters. `held`: the variance term's factor times `temperature`.
    `previous` (n_features + 1,): the last row and its cluster (-1: none). `clock`: 0
    rows seen, 1 next refresh, 2 cumulative loss, 3 largest squared norm, 4 sum of
    temperatures, 5 what is left of a row that was cut, 6 sum of squared steps from row
    to row, 7 the weight of those rows, 8 the number of points. Stops where `incoming`
    is full, and before a row that exceeds `limit`, which asks for another unit. Returns
    the row to go on from, and the number of incoming points.
    """
    n_features = X.shape[1]
    n_incoming = 0
    i = begin
    while i < X.shape[0] and n_incoming < incoming.shape[0]:
        remaining = sample_weight[i] if sample_weight.shape[0] > 0 else 1.0
        if clock[5] > 0.0:
            remaining = clock[5]
            clock[5] = 0.0
        weight = remaining if remaining < 1.0 else 1.0
        if weight <= 0.0:
            i += 1
            continue
        square = 0.0
        step = 0.0
        jump = 0.0
        for f in range(n_features):
            value = X[i, f] * inverse_unit
            if not abs(value) <= limit:
                clock[5] = remaining
                return i, n_incoming
            incoming[n_incoming, f] = value
            square += value * value
            gap = value - previous[f]
            step += gap * gap if manhattan is None else abs(gap)
            jump += gap * gap
        loss = math.inf
        nearest = math.inf
        cluster = 0
        for j in range(places.shape[0]):
            lowest = loss if j < n_forecast else nearest
            total = 0.0
            for f in range(n_features):
                gap = incoming[n_incoming, f] - places[j, f]
                total += gap * gap if manhattan is None else abs(gap)
                if total >= lowest:
                    break
            if j < n_forecast:
                loss = total if total < loss else loss
            elif total < nearest:
                nearest = total
                cluster = j - n_forecast
        if n_forecast == 0:
            loss = 0.0
        together = weight if previous[n_features] == cluster else 0.0
        incoming[n_incoming, n_features] = weight
        incoming[n_incoming, n_features + 1] = 0.0
        incoming[n_incoming, n_features + 2] = weight * held
        incoming[n_incoming, n_features + 3] = weight * held * loss
        incoming[n_incoming, n_features + 4] = weight * held * loss * loss
        incoming[n_incoming, n_features + 5] = together * step
        incoming[n_incoming, n_features + 6] = together
        if previous[n_features] >= 0.0:
            clock[6] += weight * jump
            clock[7] += weight
        for f in range(n_features):
            previous[f] = incoming[n_incoming, f]
        previous[n_features] = cluster
        clock[0] += weight
        clock[2] += weight * loss
        clock[3] = square if square > clock[3] else clock[3]
        clock[4] += weight * temperature
        n_incoming += 1
        clock[5] = remaining - weight
        if clock[5] <= 0.0:
            i += 1
        if clock[0] >= clock[1]:
            break
    return i, n_incoming


@kernel
def place(
    incoming, n_incoming, table, n_features, manhattan, costs, pair_costs, pairs, clock
):
    """Give the first rows of `incoming` places in a table, one by one.

    `table` (n_features + 7, capacity + 1) holds a point a column, so that the loops
    over them vectorise; the last column is to spare, and clock[8] the number of points.
    An equal point takes the newcomer in. Else it takes a free column; if there is none
    the cheapest merger of all is made: of the newcomer with a point, or of two points,
    and the newcomer takes the column that is free then. `pair_costs`, `pairs`
    (capacity + 1,): each point's cheapest merger, as last computed (-1: never). A
    merger costs the loss that it adds (half of it, for the Manhattan loss). `costs`
    (capacity + 1,): zeros, before and after.
    """
    n_points = table.shape[1] - 1
    for row in range(n_incoming):
        held = int(clock[8])
        if held < n_points:
            equal = -1
            for j in range(held):
                same = True
                for f in range(n_features):
                    if table[f, j] != incoming[row, f]:
                        same = False
                        break
                if same:
                    equal = j
                    break
            column = equal if equal >= 0 else held
            for entry in range(table.shape[0]):
                if equal < 0:
                    table[entry, column] = incoming[row, entry]
                elif entry >= n_features:
                    table[entry, column] += incoming[row, entry]
            if equal < 0:
                pair_costs[column] = -1.0
                clock[8] += 1.0
            continue
        for entry in range(table.shape[0]):
            table[entry, n_points] = incoming[row, entry]
        point, kept, gone = n_points, -1, n_points
        home, lowest = -1, math.inf
        while kept < 0:
            for f in range(n_features):
                place = table[f, point]
                for j in range(n_points):
                    gap = table[f, j] - place
                    costs[j] += gap * gap if manhattan is None else abs(gap)
            weight = table[n_features, point]
            cheapest, other = math.inf, -1
            least, following = math.inf, -1  # of what is known of the others
            for j in range(n_points):
                both = table[n_features, j] + weight
                cost = costs[j] * table[n_features, j] * weight / both
                costs[j] = 0.0
                if j != point:
                    if cost < cheapest:
                        cheapest, other = cost, j
                    if point < n_points and cost < pair_costs[j]:
                        pair_costs[j] = cost
                        pairs[j] = point
                    if pair_costs[j] < least:
                        least, following = pair_costs[j], j
            if point == n_points:
                home, lowest = other, cheapest
            else:
                pair_costs[point] = cheapest
                pairs[point] = other
                if cheapest <= least:
                    least, following = cheapest, point
            if lowest == 0.0 or least >= lowest:
                kept = home
            elif following == point:
                kept, gone = point, other
            point = following  # what is known of it may be out of date
        first, second = table[n_features, kept], table[n_features, gone]
        scatter = 0.0
        for entry in range(table.shape[0]):
            gap = table[entry, gone] - table[entry, kept]
            if entry < n_features:
                table[entry, kept] += second / (first + second) * gap
                scatter += gap * gap
            else:
                table[entry, kept] += table[entry, gone]
            if gone < n_points:
                table[entry, gone] = table[entry, n_points]
        table[n_features + 1, kept] += first * second / (first + second) * scatter
        if gone < n_points:
            pair_costs[kept] = -1.0
            pair_costs[gone] = -1.0


@kernel
def learn(
    X,
    sample_weight,
    inverse_unit,
    limit,
    manhattan,
    held,
    temperature,
    places,
    n_forecast,
    incoming,
    table,
    costs,
    pair_costs,
    pairs,
    previous,
    clock,
):
    """Read all rows of X and give them their places, if no refresh is due before.

    The arguments are those of `meet` and `place`. Returns whether the rows were read;
    where one of them asks for another unit nothing is changed.
    """
    n_features = X.shape[1]
    for i in range(X.shape[0]):
        for f in range(n_features):
            if not abs(X[i, f] * inverse_unit) <= limit:
                return False
    begin = 0
    while begin < X.shape[0]:
        begin, n_incoming = meet(
            X,
            sample_weight,
            begin,
            inverse_unit,
            limit,
            manhattan,
            held,
            temperature,
            places,
            n_forecast,
            incoming,
            previous,
            clock,
        )
        place(
            incoming,
            n_incoming,
            table,
            n_features,
            manhattan,
            costs,
            pair_costs,
            pairs,
            clock,
        )
    return True
