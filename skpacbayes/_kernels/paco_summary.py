"""Reading a stream: losses at the forecast, and points of the summary.

The points, the `clock` and the `metric` are those of `paco_points`. `manhattan` is None
or True: what None excludes is not compiled.

Forgetting multiplies the weight of all earlier rows by the same factor after each row.
Instead the next row is given a larger weight, `clock[UNIT]`.
"""

import math

from . import kernel, part
from .paco_points import (
    DUE,
    EXPECTED,
    FAR,
    FOUND,
    HELD,
    HELD_LOSS,
    HELD_SQUARE,
    INTERVAL,
    KEPT,
    LOSS,
    N_STEPS,
    N_TIMES,
    REFRESHED,
    REMAINING,
    RUN,
    RUN_SQUARES,
    SCATTER,
    SEEN,
    SQUARE,
    STEP,
    STEP_WEIGHT,
    STEPS,
    TEMPERATURES,
    TIMES,
    UNIT,
    WEIGHT,
    in_metric,
    note_values,
    place,
    rescale,
)

# Largest weight of the latest row before all weights are rescaled.
LARGEST_UNIT = 2.0**40
# Rates of forgetting are compared by log densities of about the last 100 rows. A larger
# rate must be better by `_MARGIN`.
_SCORE_KEPT, _MARGIN = 0.99, 3.0
# Degrees of freedom of the density by which they are compared: outliers count little.
_DOF = 5.0
# Whether rows come in runs of a cluster: memory of the shares that they are compared
# with, and of the lengths of runs; weight of a row that repeats the cluster of the row
# before, beyond its share, in the alternative; and the log likelihood ratio from which
# they do, of a probability of 1e-6 in random order, and the largest one. They do until
# it is 0.
_RECENT_KEPT, _RUNS_KEPT, _REPEATED = 1 - 1 / 30, 1 - 1 / 1000, 0.5
_IN_RUNS, _MOST_EVIDENCE = 14.0, 30.0
# Whether consecutive rows of a cluster are correlated: memory of the sums that estimate
# it, standard errors from which the correlation is not chance, and from which it was
# none, and the largest one.
_LAGS_KEPT, _LEAST_ERRORS, _FEW_ERRORS, _MOST_ALIKE = 1 - 1 / 300, 4.0, 2.0, 0.95
# Entries of `order`: the cluster of the row before (-1: none), the log likelihood
# ratio, the numbers of pairs of consecutive rows and of changes of the cluster, and the
# probability of no change, 0 in random order. Then the correlation of consecutive rows
# of a cluster, 0 if it may be chance, of their steps the number, the mean square and
# the mean product with the step before, in sums, and the number of independent features
# whose sum of squares varies as that of all.
BEFORE, EVIDENCE, PAIRS, CHANGES, STAY, ALIKE, LAGS, SQUARES, PRODUCTS, FREE = range(10)
N_ORDER = 10
# Rows of `visits`: recent rows of each cluster, number of its runs, rows these took,
# and how many of its last rows, up to 2, are in `latest`.
RECENT, RUNS, SPANS, KNOWN = range(4)
N_VISITS = 4
# Excess of far rows over the expected number at which a refresh is due. Without
# forecasts that forget: so many rows, fewer than the least cluster has, and standard
# deviations of their number.
_MOST_FAR, _FEW_FAR, _FAR_DEVIATIONS = 6.0, 2.0, 3.0


@part
def _follow_order(cluster, at, counted, last, scores, order, visits):
    """Count whether a row repeats the cluster of the row before, and the runs.

    The log likelihood ratio compares runs with random order, in which the cluster of
    the row before has its share of the recent rows. The `scores` start again where rows
    begin to come in runs.
    """
    n_clusters = visits.shape[1]
    before = int(order[BEFORE])
    entered = 0.0
    if before >= 0:
        total = 0.0
        for j in range(n_clusters):
            total += visits[RECENT, j]
        repeated = cluster == before
        ratio = 1.0 - _REPEATED
        if repeated:
            ratio += _REPEATED * total / visits[RECENT, before]
        evidence = max(order[EVIDENCE] + counted * math.log(ratio), 0.0)
        order[EVIDENCE] = min(evidence, _MOST_EVIDENCE)
        order[PAIRS] = _RUNS_KEPT**counted * order[PAIRS] + counted
        entered = 0.0 if repeated else 1.0
        order[CHANGES] = _RUNS_KEPT**counted * order[CHANGES] + counted * entered
    if order[EVIDENCE] == 0.0:
        order[STAY] = 0.0
    elif order[STAY] > 0.0:
        order[STAY] = 1.0 - (order[CHANGES] + 1.0) / (order[PAIRS] + 2.0)
    elif order[EVIDENCE] > _IN_RUNS:  # what was counted before was of another order
        order[PAIRS], order[CHANGES], order[STAY] = 0.0, 0.0, 0.5
        for j in range(n_clusters):
            visits[RUNS, j] = 0.0
        for r in range(scores.shape[0]):
            scores[r] = 0.0
    for j in range(n_clusters):
        visits[RECENT, j] *= _RECENT_KEPT**counted
    gap = at - last[cluster]
    visits[RECENT, cluster] += counted
    visits[RUNS, cluster] = _RUNS_KEPT**gap * visits[RUNS, cluster] + entered
    visits[SPANS, cluster] = _RUNS_KEPT**gap * visits[SPANS, cluster] + gap
    order[BEFORE] = cluster


@part
def _follow_steps(
    row, n_features, cluster, counted, variances, scores, order, visits, latest
):
    """Estimate the correlation of consecutive rows of a cluster.

    The product of two consecutive steps is on average -(1 - r) / 2 times their square,
    where r is the correlation of consecutive rows of an autoregression about a fixed
    centre: a centre that moves slowly hardly changes the steps. A moving average has a
    product nearer to 0, so that r is at most what the length of the steps says, which
    is 2 (1 - r) variances on average. In random order, the standard error of the first
    estimate is the root of 2 over the number of steps and of independent features. The
    `scores` start again where the correlation is found.
    """
    known = visits[KNOWN, cluster]
    square, product = 0.0, 0.0
    for f in range(n_features):
        step = row[f] - latest[0, cluster, f]
        square += step * step
        product += step * latest[1, cluster, f]
        latest[0, cluster, f] = row[f]
        latest[1, cluster, f] = step
    if known >= 2.0:
        kept = _LAGS_KEPT**counted
        order[LAGS] = kept * order[LAGS] + counted
        order[SQUARES] = kept * order[SQUARES] + counted * square / variances[cluster]
        product *= counted / variances[cluster]
        order[PRODUCTS] = kept * order[PRODUCTS] + product
    visits[KNOWN, cluster] = min(known + 1.0, 2.0)
    alike = 0.0
    if order[SQUARES] > 0.0:
        alike = 1.0 + 2.0 * order[PRODUCTS] / order[SQUARES]
        alike = min(alike, 1.0 - 0.5 * order[SQUARES] / (n_features * order[LAGS]))
        error = math.sqrt(2.0 / (order[FREE] * order[LAGS]))
        least = _FEW_ERRORS if order[ALIKE] > 0.0 else _LEAST_ERRORS
        alike = min(alike, _MOST_ALIKE) if alike > least * error else 0.0
    if alike > 0.0 and order[ALIKE] == 0.0:
        for r in range(scores.shape[0]):
            scores[r] = 0.0
    order[ALIKE] = alike


@kernel
def watch(row, n_features, weight, counted, watched, clock):
    """Update the forecasts of several rates of forgetting; choose the rate.

    `counted`: the weight in the comparison; 0 for a copy of the row before, which the
    shortest memory forecasts best.
    `watched`: `rates` (n_rates,), increasing; `means` (n_rates, n_clusters,
    n_features), `masses` (n_rates, n_clusters) and `scores` (n_rates,) of their
    forecasts, mixtures whose means follow the rows with an exponential memory;
    `variances` (n_clusters,); `last` (n_clusters,), the position of the last row that
    each cluster explains, within `limit` (1,) squared distances in units of the
    variance; `patience` (n_clusters,), the longest gap without a row of a cluster
    before a refresh is due; `order` (10,) and `visits` (4, n_clusters), runs of rows of
    one cluster and the correlation of its consecutive rows, which the forecasts know
    of; `latest` (2, n_clusters, n_features), its last row and last step; `parts`
    (n_clusters,), a work space.
    """
    rates, means, masses, scores, variances, last, patience, limit = watched[:8]
    order, visits, latest, parts = watched[8:]
    before, stay, alike = int(order[BEFORE]), order[STAY], order[ALIKE]
    n_clusters = variances.shape[0]
    chosen, cluster, far, scored = 0, 0, False, counted
    margin = _MARGIN * (1.0 + alike) / (1.0 - alike)
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
            variance = variances[j]
            if alike > 0.0 and visits[KNOWN, j] > 0.0:
                ratio = 0.0
                for f in range(n_features):
                    gap = row[f] - means[r, j, f]
                    gap -= alike * (latest[0, j, f] - means[r, j, f])
                    ratio += gap * gap
                variance *= 1.0 - alike * alike
                ratio /= variance
            share = (masses[r, j] + 0.5) / (total + 0.5 * n_clusters)
            if before >= 0 and stay > 0.0:
                share = (1.0 - stay) * share + (stay if j == before else 0.0)
            height = math.log(share)
            height -= 0.5 * n_features * math.log(variance)
            height -= 0.5 * (_DOF + n_features) * math.log(1.0 + ratio / _DOF)
            parts[j] = height
            if height > highest:
                owner, highest = j, height
        density = 0.0
        for j in range(n_clusters):
            density += math.exp(parts[j] - highest)
        if r == 0:
            cluster, far = nearest, least > limit[0]
            scored = 0.0 if far and stay > 0.0 else counted
        scores[r] *= _SCORE_KEPT**scored
        scores[r] += scored * (highest + math.log(density))
        if stay == 0.0 or not far:  # in runs, many rows of a new group come in turn
            masses[r, owner] += weight
            for f in range(n_features):
                gap = row[f] - means[r, owner, f]
                means[r, owner, f] += weight / masses[r, owner] * gap
        if scores[r] > scores[chosen] + (margin if r > 0 else 0.0):
            chosen = r
    now = clock[SEEN] + weight
    if far:
        order[BEFORE] = -1.0
        clock[FAR] += counted
    else:
        if counted > 0.0:
            _follow_order(cluster, now, counted, last, scores, order, visits)
            _follow_steps(
                row, n_features, cluster, counted, variances, scores, order, visits,
                latest,
            )  # fmt: skip
        last[cluster] = now
    begins = alike == 0.0 and order[ALIKE] > 0.0
    if begins or (stay == 0.0 and order[STAY] > 0.0):
        chosen = 0
    clock[KEPT] = 1.0 - rates[chosen]
    late = clock[FAR] > _MOST_FAR + clock[EXPECTED] * (now - clock[REFRESHED])
    for j in range(n_clusters):
        late = late or now - last[j] > patience[j]
    if late and clock[DUE] > now + 1.0:
        clock[DUE] = now + 1.0


@part
def _read(X, i, inverse_unit, limit, manhattan, previous, here):
    """Read row i of X, in the unit, to `here`.

    Returns its squared norm, -1 if a value exceeds the limit, and the loss and the
    squared distance from the previous row.
    """
    square = 0.0
    step = 0.0
    jump = 0.0
    for f in range(X.shape[1]):
        value = X[i, f] * inverse_unit
        if not abs(value) <= limit:
            square = -1.0
            break
        here[f] = value
        square += value * value
        gap = value - previous[f]
        step += gap * gap if manhattan is None else abs(gap)
        jump += gap * gap
    return square, step, jump


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
def _is_far(row, n_features, manhattan, metric, strangers):
    """Return whether a row lies outside of all clusters, if there are any.

    `strangers`: centres (n_clusters, n_features) in the coordinates of the metric, and
    the squared distance (Manhattan: distance) up to which each of them has rows.
    """
    centers, limits = strangers
    place = row
    if metric is not None:
        in_metric(row, n_features, metric)
        place = metric[FOUND]
    far = centers.shape[0] > 0
    for j in range(centers.shape[0]):
        total = 0.0
        for f in range(n_features):
            gap = place[f] - centers[j, f]
            total += gap * gap if manhattan is None else abs(gap)
        if total < limits[j]:
            far = False
            break
    return far


@part
def _most_far(clock):
    """Return the largest expected number of far rows since the last refresh."""
    expected = clock[EXPECTED] * (clock[SEEN] - clock[REFRESHED])
    return expected + _FEW_FAR + _FAR_DEVIATIONS * math.sqrt(expected)


@part
def _write_sums(point, n_features, mass, held, loss, together, step, interval):
    """Write the contributions of a row to the sums of a point."""
    point[n_features + WEIGHT] = mass
    point[n_features + SCATTER] = 0.0
    point[n_features + HELD] = mass * held
    point[n_features + HELD_LOSS] = mass * held * loss
    point[n_features + HELD_SQUARE] = mass * held * loss * loss
    point[n_features + STEP] = together * step
    point[n_features + STEP_WEIGHT] = together
    for j in range(N_TIMES):
        point[n_features + TIMES + j] = 0.0
    last = N_TIMES - 1
    point[n_features + TIMES + (interval if interval < last else last)] = mass


@part
def _count(clock, weight, loss, square, temperature):
    """Count a row in the clock."""
    clock[SEEN] += weight
    clock[LOSS] += weight * loss
    clock[SQUARE] = square if square > clock[SQUARE] else clock[SQUARE]
    clock[TEMPERATURES] += weight * temperature


@kernel
def meet(
    X, sample_weight, begin, unit, manhattan, forecast, metric, watched, strangers,
    incoming, columns, previous, clock,
):  # fmt: skip
    """Read rows of X from row `begin` until the next refresh is due.

    The loss of each row at the forecast is counted, and the row becomes a point, a row
    of `incoming` (n_rows, n_features + 15). A weight of w counts as w copies of the
    row, the last one fractional. Stops where `incoming` is full, where weights must be
    rescaled, and before a row that exceeds the limit, which requires another unit.

    `unit`: a factor from the units of the data, and the largest absolute value there.
    `forecast`: the variance term's factor times the temperature; the temperature;
    places, of which the first are the forecast and the others the centres of the
    clusters; and how many are the forecast. `watched`: None, or the argument of
    `watch`. `strangers`: the argument of `_is_far`; a refresh is due after the next row
    if there are too many far rows. `columns`: the values and notes of `note_values`.
    `previous` (n_features + 1,): the last row and its cluster (-1: none).

    Returns the next row, and the number of incoming points.
    """
    inverse_unit, limit = unit
    held, temperature, places, n_forecast = forecast
    values, notes = columns
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
        here = incoming[n_incoming]
        square, step, jump = _read(X, i, inverse_unit, limit, manhattan, previous, here)
        if square < 0.0:
            clock[REMAINING] = remaining
            return i, n_incoming
        loss, cluster = _losses_of(here, n_features, places, n_forecast, manhattan)
        again = previous[n_features] >= 0.0 and jump == 0.0
        if watched is not None:
            changed = here
            if metric is not None:
                in_metric(here, n_features, metric)
                changed = metric[FOUND]
            counted = 0.0 if again else weight
            watch(changed, n_features, weight, counted, watched, clock)
        if clock[KEPT] < 1.0:
            clock[UNIT] /= clock[KEPT] ** weight
        mass = weight * clock[UNIT]
        together = 0.0 if again or previous[n_features] != cluster else mass
        interval = int(clock[SEEN] / clock[INTERVAL])
        _write_sums(here, n_features, mass, held, loss, together, step, interval)
        note_values(incoming, n_incoming, n_incoming + 1, values, notes, clock[UNIT])
        if not again:
            clock[RUN] = 0.0
        clock[RUN_SQUARES] += (2.0 * clock[RUN] + mass) * weight
        clock[RUN] += mass
        if previous[n_features] >= 0.0:
            clock[STEPS] += mass * jump
            clock[N_STEPS] += mass
        for f in range(n_features):
            previous[f] = here[f]
        previous[n_features] = cluster
        _count(clock, weight, loss, square, temperature)
        if _is_far(here, n_features, manhattan, metric, strangers):
            clock[FAR] += weight
            if clock[FAR] > _most_far(clock) and clock[DUE] > clock[SEEN] + 1.0:
                clock[DUE] = clock[SEEN] + 1.0
        n_incoming += 1
        clock[REMAINING] = remaining - weight
        if clock[REMAINING] <= 0.0:
            i += 1
        if clock[SEEN] >= clock[DUE] or clock[UNIT] > LARGEST_UNIT:
            break
    return i, n_incoming


@kernel
def learn(
    X, sample_weight, unit, manhattan, forecast, metric, watched, strangers, incoming,
    points, columns, previous, clock,
):  # fmt: skip
    """Read all rows of X and insert them in the table, unless a refresh is due.

    The arguments are those of `meet`; `points`: the table, the scatter and the pairs of
    `place`. Returns whether the rows were read. If a row requires another unit, or a
    refresh may be due before the last row, nothing is changed.
    """
    inverse_unit, limit = unit
    table, scatter, pairs = points
    n_features = X.shape[1]
    far = clock[FAR]
    for i in range(X.shape[0]):
        here = incoming[0]
        for f in range(n_features):
            here[f] = X[i, f] * inverse_unit
            if not abs(here[f]) <= limit:
                return False
        if X.shape[0] > 1 and _is_far(here, n_features, manhattan, metric, strangers):
            far += 1.0
            if far > _most_far(clock):
                return False
    begin = 0
    while begin < X.shape[0]:
        begin, n_incoming = meet(
            X, sample_weight, begin, unit, manhattan, forecast, metric, watched,
            strangers, incoming, columns, previous, clock,
        )  # fmt: skip
        place(incoming, n_incoming, table, scatter, metric, manhattan, pairs, clock)
        if clock[UNIT] > LARGEST_UNIT:
            rescale(table, scatter, metric, pairs[1], clock)
    return True
