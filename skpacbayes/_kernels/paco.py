"""The quasi-posterior of PACO on weighted points, and its reversible-jump chain.

A *point* stands for the rows that were merged into it: `columns` (n_features,
n_points) their means, by columns so that the loops over them vectorise; `weights` their
number; `spreads` their mean squared distance from the mean; the columns of `forecasts`
the sums over them of lambda, lambda h and lambda h^2, with h the loss of the forecast
that met the row and lambda the inverse temperature of that time (no rows where the
variance term is off).
"""

import math

import numpy as np

from . import kernel

_ROOT_2 = math.sqrt(2.0)
_ROOT_2_PI = math.sqrt(2.0 * math.pi)


@kernel
def _overlap(gap, deviation):
    """E[min(0, G)] for G normal with mean `gap` >= 0: what a split point saves."""
    z = gap / deviation
    if z > 6.0:
        return 0.0
    tail = 0.5 * math.erfc(z / _ROOT_2)
    return gap * tail - deviation * math.exp(-0.5 * z * z) / _ROOT_2_PI


@kernel
def _mean_distance(gap, deviation):
    """E|gap + deviation * Z| for Z standard normal."""
    z = abs(gap) / deviation
    if z > 6.0:
        return abs(gap)
    return abs(gap) + 2.0 * deviation * (
        math.exp(-0.5 * z * z) / _ROOT_2_PI - 0.5 * z * math.erfc(z / _ROOT_2)
    )


@kernel
def _saving(columns, i, spread, margin, centers, first, runner_up, manhattan):
    """Mean change of the loss of the rows behind point i by the second nearest centre.

    `margin`: by how much that centre is worse for the point itself. The difference of
    the two losses varies over the normal cloud of rows by its gradient.
    """
    n_features = columns.shape[0]
    slope = 0.0
    for f in range(n_features):
        if not manhattan:
            gap = centers[first, f] - centers[runner_up, f]
            slope += 4.0 * gap * gap
        elif (columns[f, i] > centers[first, f]) != (
            columns[f, i] > centers[runner_up, f]
        ):
            slope += 4.0
    if slope <= 0.0:
        return 0.0
    return _overlap(margin, math.sqrt(slope * spread / n_features))


@kernel
def cumulative_loss(
    columns, weights, spreads, forecasts, centers, n_clusters, manhattan
):
    """S(c) = sum of losses, plus the variance term where `forecasts` has rows.

    A single row has `spreads` 0 and the loss at its nearest centre. Merged rows are
    taken as an isotropic normal cloud of that mean squared distance from its mean:
    theirs is the mean of the minimum over its two nearest centres. Also returns the
    number of centres that are nearest to some point.
    """
    n_features, n_points = columns.shape
    current = np.empty(n_points)
    lowest = np.full(n_points, math.inf)
    second = np.full(n_points, math.inf)
    first = np.zeros(n_points, dtype=np.int64)
    runner_up = np.zeros(n_points, dtype=np.int64)
    for j in range(n_clusters):
        for i in range(n_points):
            current[i] = 0.0
        for f in range(n_features):
            place = centers[j, f]
            if manhattan:
                for i in range(n_points):
                    current[i] += abs(columns[f, i] - place)
            else:
                for i in range(n_points):
                    gap = columns[f, i] - place
                    current[i] += gap * gap
        if manhattan:
            for i in range(n_points):
                if spreads[i] > 0.0 and current[i] < second[i]:
                    deviation = math.sqrt(spreads[i] / n_features)
                    current[i] = 0.0
                    for f in range(n_features):
                        gap = columns[f, i] - centers[j, f]
                        current[i] += _mean_distance(gap, deviation)
        for i in range(n_points):  # selections, no branches: this loop vectorises too
            loss = current[i]
            closest = loss < lowest[i]
            close = loss < second[i]
            runner_up[i] = first[i] if closest else (j if close else runner_up[i])
            second[i] = lowest[i] if closest else (loss if close else second[i])
            first[i] = j if closest else first[i]
            lowest[i] = loss if closest else lowest[i]
    owns = np.zeros(n_clusters, dtype=np.bool_)
    n_owners = 0
    total = 0.0
    for i in range(n_points):
        loss = lowest[i]
        if spreads[i] > 0.0:
            if second[i] < math.inf:
                loss += _saving(
                    columns,
                    i,
                    spreads[i],
                    second[i] - loss,
                    centers,
                    first[i],
                    runner_up[i],
                    manhattan,
                )
            if not manhattan:
                loss = max(loss + spreads[i], 0.0)
        total += weights[i] * loss
        if not owns[first[i]]:
            owns[first[i]] = True
            n_owners += 1
        if forecasts.shape[0] > 0:
            total += 0.5 * (
                forecasts[i, 0] * loss * loss
                - 2.0 * forecasts[i, 1] * loss
                + forecasts[i, 2]
            )
    return total, n_owners


@kernel
def log_prior(centers, n_clusters, log_sizes, constant, radius, scale):
    """Log quasi-prior density of an ordered tuple of centres, -inf off its support.

    `log_sizes`: log q(k). Each centre has density exp(constant) on the ball of that
    `radius` (eq. 7), times the Student kernel of eq. 22 if `scale` is finite.
    """
    n_features = centers.shape[1]
    total = log_sizes[n_clusters - 1] + n_clusters * constant
    for j in range(n_clusters):
        square = 0.0
        for f in range(n_features):
            square += centers[j, f] ** 2
        if not square <= radius * radius:
            return -math.inf
        if scale < math.inf:
            total -= 0.5 * (3 + n_features) * math.log1p(square / (6.0 * scale * scale))
    return total


@kernel
def _log_slot_densities(centers, n_clusters, slots, scales, dof, densities):
    """Log densities (slot, centre) of the proposal of each slot at each centre.

    They leave out the Student laws' common constant, which `_log_constant` adds.
    """
    n_features = centers.shape[1]
    for j in range(n_clusters):
        for i in range(n_clusters):
            square = 0.0
            for f in range(n_features):
                gap = centers[i, f] - slots[j, f]
                square += gap * gap
            densities[j, i] = -n_features * math.log(scales[j]) - 0.5 * (
                dof + n_features
            ) * math.log1p(square / (dof * scales[j] * scales[j]))


@kernel
def _log_constant(n_features, dof):
    """Log of the normalising constant of a unit-scale Student law."""
    return (
        math.lgamma(0.5 * (dof + n_features))
        - math.lgamma(0.5 * dof)
        - 0.5 * n_features * math.log(dof * math.pi)
    )


@kernel
def _log_labelling(densities, n_clusters, identity, rng):
    """Draw the centres' slots (or take the identity); log of the sums passed.

    Slot after slot, one of the free centres is drawn in proportion to the slot's
    density. The product of the sums over the free centres is what the labels
    contribute to the acceptance ratio: product of densities / probability of draw.
    """
    taken = np.zeros(n_clusters, dtype=np.bool_)
    total = 0.0
    for j in range(n_clusters):
        highest = -math.inf
        for i in range(n_clusters):
            if not taken[i]:
                highest = max(highest, densities[j, i])
        mass = 0.0
        for i in range(n_clusters):
            if not taken[i]:
                mass += math.exp(densities[j, i] - highest)
        total += highest + math.log(mass)
        chosen = j
        if not identity:
            threshold = rng.random() * mass
            passed = 0.0
            for i in range(n_clusters):
                if not taken[i]:
                    chosen = i
                    passed += math.exp(densities[j, i] - highest)
                    if passed >= threshold:
                        break
        taken[chosen] = True
    return total


@kernel
def _log_proposal(
    centers, n_clusters, slots, scales, dof, symmetric, identity, densities, rng
):
    """Log density of the independence proposal at `centers`, labels included."""
    _log_slot_densities(centers, n_clusters, slots, scales, dof, densities)
    total = n_clusters * _log_constant(centers.shape[1], dof)
    if symmetric:
        labelling = _log_labelling(densities, n_clusters, identity, rng)
        return total + labelling - math.lgamma(n_clusters + 1.0)
    for j in range(n_clusters):
        total += densities[j, j]
    return total


@kernel
def _draw_chi_square(dof, rng):
    """Chi-square draw for dof >= 2, after Marsaglia and Tsang (2000)."""
    shape = 0.5 * dof - 1.0 / 3.0
    while True:
        z = rng.standard_normal()
        root = 1.0 + z / math.sqrt(9.0 * shape)
        if root > 0.0:
            cube = root * root * root
            bound = 0.5 * z * z + shape * (1.0 - cube + math.log(cube))
            if math.log(1.0 - rng.random()) < bound:
                return 2.0 * shape * cube


@kernel
def _draw_student(n_clusters, slots, scales, dof, trial, rng):
    """One centre a slot: multivariate Student laws."""
    for j in range(n_clusters):
        step = scales[j] * math.sqrt(dof / _draw_chi_square(dof, rng))
        for f in range(slots.shape[1]):
            trial[j, f] = slots[j, f] + step * rng.standard_normal()


@kernel
def _draw_in_ball(radius, trial, j, rng):
    """Draw centre j uniformly in the ball."""
    n_features = trial.shape[1]
    square = 0.0
    for f in range(n_features):
        trial[j, f] = rng.standard_normal()
        square += trial[j, f] ** 2
    step = radius * rng.random() ** (1.0 / n_features) / math.sqrt(square)
    for f in range(n_features):
        trial[j, f] *= step


@kernel
def _copy(source, target, begin, place, n_rows):
    """Copy rows; slices would take numba ten times as long to compile."""
    for j in range(n_rows):
        for f in range(target.shape[1]):
            target[place + j, f] = source[begin + j, f]


@kernel
def run_chain(
    columns,
    weights,
    spreads,
    forecasts,
    manhattan,
    temperature,
    log_sizes,
    constant,
    radius,
    scale,
    slots,
    scales,
    dof,
    symmetric,
    moves,
    centers,
    trace,
    tally,
    rng,
):
    """Reversible-jump chain on the quasi-posterior, from `centers`, in place.

    Three moves, chosen with the probabilities (`moves[0]`, `moves[1]`, the rest):
    all centres anew from Student laws round the `slots` (max_clusters, max_clusters,
    n_features) of a neighbouring number of clusters (Algorithm 3; with `symmetric`,
    the centres' slots are drawn too, so that relabelled centres are recognised); a
    random walk of one centre; the birth of a centre anywhere in the ball, or the
    death of one. `trace` (n_iter, 2) receives the number of centres and of those that
    own a point after each iteration; trace[0, 0] holds the number before. `tally`
    (2, 2): accepted and proposed moves within and between numbers of clusters.
    """
    max_clusters, n_features = centers.shape
    log_volume = (
        0.5 * n_features * math.log(math.pi)
        - math.lgamma(0.5 * n_features + 1.0)
        + n_features * math.log(radius)
    )
    states = np.empty((2, max_clusters, n_features))
    densities = np.empty((max_clusters, max_clusters))
    now = 0
    k = trace[0, 0]
    n_owners = 0
    log_target = 0.0
    _copy(centers, states[now], 0, 0, k)
    for iteration in range(-1, trace.shape[0]):  # -1: what the start is worth
        present, trial = states[now], states[1 - now]
        kind = rng.random() if iteration >= 0 else moves[0]
        new = k
        log_ratio = 0.0
        if kind < moves[0]:
            new = k - 1 + int(3.0 * rng.random())
        elif kind >= moves[0] + moves[1]:
            new = k - 1 if rng.random() < 0.5 else k + 1
        proposed = -math.inf
        if 1 <= new <= max_clusters:
            if iteration < 0:
                _copy(present, trial, 0, 0, k)
            elif kind < moves[0]:
                _draw_student(new, slots[new - 1], scales[new - 1], dof, trial, rng)
                for side in range(2):
                    size = k if side == 0 else new
                    log_proposal = _log_proposal(
                        states[now if side == 0 else 1 - now],
                        size,
                        slots[size - 1],
                        scales[size - 1],
                        dof,
                        symmetric,
                        side == 1,
                        densities,
                        rng,
                    )
                    log_ratio += log_proposal if side == 0 else -log_proposal
            else:
                j = int(max(k, new) * rng.random())
                _copy(present, trial, 0, 0, j)
                if new == k:
                    _copy(present, trial, j, j, k - j)
                    step = scales[k - 1, 0]
                    for other in range(1, k):
                        step = min(step, scales[k - 1, other])
                    step *= 4.0 ** (2.0 * rng.random() - 0.5) / math.sqrt(n_features)
                    for f in range(n_features):
                        trial[j, f] += step * rng.standard_normal()
                elif new > k:
                    _copy(present, trial, j, j + 1, k - j)
                    _draw_in_ball(radius, trial, j, rng)
                else:
                    _copy(present, trial, j + 1, j, new - j)
                log_ratio = (new - k) * log_volume
            proposed = log_prior(trial, new, log_sizes, constant, radius, scale)
        trial_owners = 0
        if proposed > -math.inf:
            loss, trial_owners = cumulative_loss(
                columns, weights, spreads, forecasts, trial, new, manhattan
            )
            proposed -= temperature * loss
        if iteration < 0:
            log_target, n_owners = proposed, trial_owners
            continue
        log_ratio += proposed - log_target
        between = 1 if new != k else 0
        tally[between, 1] += 1
        if proposed > -math.inf and math.log(1.0 - rng.random()) < log_ratio:
            tally[between, 0] += 1
            now = 1 - now
            k, n_owners, log_target = new, trial_owners, proposed
        trace[iteration, 0] = k
        trace[iteration, 1] = n_owners
    _copy(states[now], centers, 0, 0, k)
    return log_target
