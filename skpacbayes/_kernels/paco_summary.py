"""A bounded summary of a stream: rows merged into points, cheapest pair first.

A point has n_features + 7 entries: the mean of the merged rows; their weight; the sum
of their squared distances from it; the sums of lambda, lambda h and lambda h^2 (h: the
loss of the forecast that met the row, lambda: the inverse temperature then); the sum of
the losses between consecutive rows of the stream that fell in one cluster, and the
weight of those rows. All in units of a power of two kept by the caller. `manhattan` is
None or True: what None excludes is not compiled.

Forgetting multiplies the weight of all earlier rows by the same factor after each row.
Instead the next row is given a larger weight: all weights and sums are in units of the
weight of the latest row, `clock[UNIT]`, which `rescale` brings back to about 1.

A `metric` is None, or says in which coordinates mergers are decided: places
(n_features, capacity + 1), those of the points; a matrix (n_features, n_features) from
rows about the anchor (n_features,) to these coordinates; and a work space
(n_features,).
"""

import math

from . import kernel, part

# Entries of the clock: rows seen, position of the next refresh, cumulative loss,
# largest squared norm, sum of temperatures, what remains of a row that was cut, sum of
# squared steps from row to row, weight of those rows, number of points; the weight of
# the latest row, and the factor by which the weight of earlier rows falls; rows since
# the last refresh that lie outside of all clusters, their number that is expected of a
# row, and the position of that refresh.
SEEN, DUE, LOSS, SQUARE, TEMPERATURES, REMAINING, STEPS, N_STEPS = range(8)
POINTS, UNIT, KEPT, FAR, EXPECTED, REFRESHED = range(8, 14)
N_ENTRIES = 14
# Entries of a point after the mean of its rows.
WEIGHT, SCATTER, HELD, HELD_LOSS, HELD_SQUARE, STEP, STEP_WEIGHT = range(7)
N_SUMS = 7
# Largest weight of the latest row before all weights are rescaled.
LARGEST_UNIT = 2.0**40
# Points of less than this share of a row are dropped where weights are rescaled.
_GONE = 0.01
# Rates of forgetting are compared by log densities of about the last 100 rows. A larger
# rate must be better by `_MARGIN`.
_SCORE_KEPT, _MARGIN = 0.99, 3.0
# Degrees of freedom of the density by which they are compared: far rows count little.
_DOF = 5.0
# Far rows beyond the number expected, at which a refresh is due.
_MOST_FAR = 6.0


@kernel
def _change(row, n_features, metric):
    """Coordinates of a row, in the work space of the metric."""
    _, matrix, anchor, found = metric
    for f in range(n_features):
        found[f] = 0.0
    for h in range(n_features):
        gap = row[h] - anchor[h]
        for f in range(n_features):
            found[f] += gap * matrix[h, f]
    return found


@kernel
def watch(row, n_features, weight, watched, clock):
    """Let forecasts of several rates of forgetting meet a row; choose the rate.

    `watched`: `rates` (n_rates,), increasing; `means` (n_rates, n_clusters,
    n_features), `masses` (n_rates, n_clusters) and `scores` (n_rates,) of their
    forecasts, mixtures whose means follow the rows with an exponential memory;
    `variances` (n_clusters,); `last` (n_clusters,), the position of the last row that
    each cluster explains, within `limit` (1,) squared distances in units of the
    variance; `patience` (n_clusters,), how long a cluster may go without one before a
    refresh is due; `parts` (n_clusters,), a work space.
    """
    rates, means, masses, scores, variances, last, patience, limit, parts = watched
    n_clusters = variances.shape[0]
    chosen = 0
    for r in range(rates.shape[0]):
        kept = (1.0 - rates[r]) ** weight
        total = 0.0
        for j in range(n_clusters):
            masses[r, j] *= kept
            total += masses[r, j]
        nearest, highest, owner, least = 0, -math.inf, 0, math.inf
        for j in range(n_clusters):
            ratio = 0.0
            for f in range(n_features):
                gap = row[f] - means[r, j, f]
                ratio += gap * gap
            ratio /= variances[j]
            if ratio < least:
                nearest, least = j, ratio
            height = math.log((masses[r, j] + 0.5) / (total + 0.5 * n_clusters))
            height -= 0.5 * n_features * math.log(variances[j])
            height -= 0.5 * (_DOF + n_features) * math.log(1.0 + ratio / _DOF)
            parts[j] = height
            if height > highest:
                owner, highest = j, height
        density = 0.0
        for j in range(n_clusters):
            density += math.exp(parts[j] - highest)
        scores[r] *= _SCORE_KEPT**weight
        scores[r] += weight * (highest + math.log(density))
        masses[r, owner] += weight
        for f in range(n_features):
            gap = row[f] - means[r, owner, f]
            means[r, owner, f] += weight / masses[r, owner] * gap
        if scores[r] > scores[chosen] + (_MARGIN if r > 0 else 0.0):
            chosen = r
        if r == 0:
            if least <= limit[0]:
                last[nearest] = clock[SEEN] + weight
            else:
                clock[FAR] += weight
    clock[KEPT] = 1.0 - rates[chosen]
    now = clock[SEEN] + weight
    late = clock[FAR] > _MOST_FAR + clock[EXPECTED] * (now - clock[REFRESHED])
    for j in range(n_clusters):
        late = late or now - last[j] > patience[j]
    if late and clock[DUE] > now + 1.0:
        clock[DUE] = now + 1.0


@part
def _losses_of(row, n_features, places, n_forecast, manhattan):
    """Return the loss of a row at the forecast, and the cluster of nearest centre."""
    loss = math.inf
    nearest = math.inf
    cluster = 0
    for j in range(places.shape[0]):
        lowest = loss if j < n_forecast else nearest
        total = 0.0
        for f in range(n_features):
            gap = row[f] - places[j, f]
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
    return loss, cluster


@part
def _write_sums(point, n_features, mass, held, loss, together, step):
    """Write what a row adds to the sums of a point."""
    point[n_features + WEIGHT] = mass
    point[n_features + SCATTER] = 0.0
    point[n_features + HELD] = mass * held
    point[n_features + HELD_LOSS] = mass * held * loss
    point[n_features + HELD_SQUARE] = mass * held * loss * loss
    point[n_features + STEP] = together * step
    point[n_features + STEP_WEIGHT] = together


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
    metric,
    watched,
    incoming,
    previous,
    clock,
):
    """Read rows of X from row `begin` until the next refresh is due.

    Every row meets the forecast, the first `n_forecast` of the `places`, pays its loss
    there, and becomes a row of `incoming` (n_rows, n_features + 7), a point; a weight
    of w counts as w copies of the row, the last one fractional. The other places are
    the centres of the clusters. `held`: the variance term's factor times `temperature`.
    `watched`: None, or what `watch` compares rates of forgetting by. `previous`
    (n_features + 1,): the last row and its cluster (-1: none). Stops where `incoming`
    is full, where weights must be rescaled, and before a row that exceeds `limit`,
    which asks for another unit. Returns the row to go on from, and the number of
    incoming points.
    """
    n_features = X.shape[1]
    n_incoming = 0
    i = begin
    while i < X.shape[0] and n_incoming < incoming.shape[0]:
        remaining = sample_weight[i] if sample_weight.shape[0] > 0 else 1.0
        if clock[REMAINING] > 0.0:
            remaining = clock[REMAINING]
            clock[REMAINING] = 0.0
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
                clock[REMAINING] = remaining
                return i, n_incoming
            incoming[n_incoming, f] = value
            square += value * value
            gap = value - previous[f]
            step += gap * gap if manhattan is None else abs(gap)
            jump += gap * gap
        here = incoming[n_incoming]
        loss, cluster = _losses_of(here, n_features, places, n_forecast, manhattan)
        if watched is not None:
            changed = here
            if metric is not None:
                changed = _change(here, n_features, metric)
            watch(changed, n_features, weight, watched, clock)
        if clock[KEPT] < 1.0:
            clock[UNIT] /= clock[KEPT] ** weight
        mass = weight * clock[UNIT]
        together = mass if previous[n_features] == cluster else 0.0
        _write_sums(here, n_features, mass, held, loss, together, step)
        if previous[n_features] >= 0.0:
            clock[STEPS] += mass * jump
            clock[N_STEPS] += mass
        for f in range(n_features):
            previous[f] = here[f]
        previous[n_features] = cluster
        clock[SEEN] += weight
        clock[LOSS] += weight * loss
        clock[SQUARE] = square if square > clock[SQUARE] else clock[SQUARE]
        clock[TEMPERATURES] += weight * temperature
        n_incoming += 1
        clock[REMAINING] = remaining - weight
        if clock[REMAINING] <= 0.0:
            i += 1
        if clock[SEEN] >= clock[DUE] or clock[UNIT] > LARGEST_UNIT:
            break
    return i, n_incoming


@kernel
def rescale(table, scatter, metric, pair_costs, clock):
    """Bring the weight of the latest row to between 1 and 2, by a power of two.

    Points that weigh next to nothing are dropped.
    """
    n_features = scatter.shape[0]
    factor = 2.0 ** -math.floor(math.log(clock[UNIT]) / math.log(2.0))
    clock[UNIT] *= factor
    clock[STEPS] *= factor
    clock[N_STEPS] *= factor
    held = int(clock[POINTS])
    j, before, after = 0, 0.0, 0.0
    while j < held:
        before += table[n_features + SCATTER, j]
        if table[n_features + WEIGHT, j] * factor < _GONE * clock[UNIT]:
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


@part
def _place_freely(newcomer, n_features, table, places, metric, pair_costs, clock):
    """Give a row the column of an equal point, or a free one."""
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
            changed = _change(newcomer, n_features, metric)
            for f in range(n_features):
                places[f, column] = changed[f]


@part
def _merger_of(point, n_features, table, places, manhattan, pairs):
    """Return the cheapest merger of a point, and the cheapest known of the others.

    The cost and the other point of the first, the cost and a point of the second. What
    is known of the others is brought up to date.
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
    """Return the points of the cheapest merger: the one kept, and the one that goes.

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
        point = following  # what is known of it may be out of date
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
    """Give the first rows of `incoming` places in a table, one by one.

    `table` (n_features + 7, capacity + 1) holds a point a column, so that the loops
    over them vectorise; the last column is to spare. An equal point takes the newcomer
    in. Else it takes a free column; if there is none the cheapest merger of all is
    made: of the newcomer with a point, or of two points, and the newcomer takes the
    column that is free then. `scatter` (n_features, n_features) gains what the merged
    points scatter about their mean. A merger costs the loss that it adds, in the
    coordinates of the `metric` (half of it, for the Manhattan loss). `pairs`: a work
    space of zeros, and each point's cheapest merger as last computed (-1: never) and
    with which point, each (capacity + 1,).
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
            changed = _change(incoming[row], n_features, metric)
            for f in range(n_features):
                places[f, n_points] = changed[f]
        kept, gone = _cheapest_pair(n_features, table, places, manhattan, pairs)
        _merge(kept, gone, n_features, table, places, scatter, metric)
        if gone < n_points:
            pairs[1][kept] = -1.0
            pairs[1][gone] = -1.0


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
    metric,
    watched,
    incoming,
    table,
    scatter,
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
            metric,
            watched,
            incoming,
            previous,
            clock,
        )
        place(incoming, n_incoming, table, scatter, metric, manhattan, pairs, clock)
        if clock[UNIT] > LARGEST_UNIT:
            rescale(table, scatter, metric, pairs[1], clock)
    return True
