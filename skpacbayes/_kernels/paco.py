"""The quasi-posterior of PACO on weighted points, and its reversible-jump chain.

A *point* stands for the rows that were merged into it. It is a column of `points`
(n_features + 3, n_points), so that the loops over points vectorise: the rows' mean;
their mean squared distance from it (0 for a single row); and the factors of the loss l
and of l^2 in the cumulative loss. `manhattan` is True for the Manhattan distance as the
loss and None for the squared Euclidean distance; `merged` is None where every point is
a single row, else True: what None excludes is not compiled.
"""

import math

import numpy as np

from . import kernel

# E[max(0, Z - z)], Z standard normal, is density(z) - z tail(z), with the derivatives
# -tail(z) and density(z): a table of its quintic Hermite interpolation on [0, 6]. A row
# holds the coefficients of the powers 5, ..., 0 of the place between two nodes.
_STEPS = 64  # nodes in a unit
_END = 6  # the tail beyond is below 1e-10
_Z = np.arange(_STEPS * _END + 1) / _STEPS
_TAIL = np.array([0.5 * math.erfc(z / math.sqrt(2.0)) for z in _Z])
_DENSITY = np.exp(-0.5 * _Z * _Z) / math.sqrt(2.0 * math.pi)
_VALUE, _SLOPE = _DENSITY - _Z * _TAIL, -_TAIL / _STEPS
_BEND = 0.5 * _DENSITY / _STEPS**2
_RISES = np.column_stack(
    [
        np.diff(_VALUE) - _SLOPE[:-1] - _BEND[:-1],
        np.diff(_SLOPE) - 2.0 * _BEND[:-1],
        np.diff(_BEND),
    ]
)
_TABLE = np.column_stack(
    [
        _RISES @ [6.0, -3.0, 1.0],
        _RISES @ [-15.0, 7.0, -2.0],
        _RISES @ [10.0, -4.0, 1.0],
        _BEND[:-1],
        _SLOPE[:-1],
        _VALUE[:-1],
    ]
)


@kernel
def _overlap(gap, deviation):
    """E[max(0, -G)] for G normal with mean `gap` >= 0; E|G| = gap + 2 E[max(0, -G)]."""
    place = gap * (_STEPS / deviation)
    if not place < _STEPS * _END:
        return 0.0
    i = int(place)
    value = 0.0
    for power in range(6):
        value = value * (place - i) + _TABLE[i, power]
    return value * deviation


@kernel
def cumulative_loss(
    points, centers, n_clusters, manhattan, merged, losses, owners, slopes
):
    """Sum of the losses of the points, and how many centres own one.

    A single row has the loss l at its nearest centre. Merged rows are taken as an
    isotropic normal cloud: l is the mean of the minimum over the two nearest centres.
    `losses` (3, n_points), the integers `owners` (2, n_points) and `slopes`
    (max_clusters, max_clusters) are work space.
    """
    n_features, n_points = points.shape[0] - 3, points.shape[1]
    for i in range(n_points):  # nearest, runner-up; the loss at this centre
        losses[0, i] = math.inf
        owners[0, i] = 0
        if merged is not None:
            losses[1, i] = math.inf
            owners[1, i] = 0
    for j in range(n_clusters):
        for other in range(n_clusters):
            slopes[j, other] = -1.0  # not known yet, or no point is owned
        for i in range(n_points):
            losses[2, i] = 0.0
        for f in range(n_features):
            place = centers[j, f]
            for i in range(n_points):
                gap = points[f, i] - place
                losses[2, i] += gap * gap if manhattan is None else abs(gap)
        if merged is not None and manhattan is not None:
            for i in range(n_points):
                spread = points[n_features, i]
                if spread > 0.0 and losses[2, i] < losses[1, i]:
                    deviation = math.sqrt(spread / n_features)
                    for f in range(n_features):
                        gap = abs(points[f, i] - centers[j, f])
                        losses[2, i] += 2.0 * _overlap(gap, deviation)
        for i in range(n_points):  # without a branch: LLVM vectorises it
            loss, low = losses[2, i], losses[0, i]
            closer = loss < low
            if merged is not None:
                close, second = loss < losses[1, i], owners[1, i]
                owners[1, i] = owners[0, i] if closer else (j if close else second)
                losses[1, i] = low if closer else (loss if close else losses[1, i])
            owners[0, i] = j if closer else owners[0, i]
            losses[0, i] = loss if closer else low
    total = 0.0
    n_owners = 0
    for i in range(n_points):
        j = owners[0, i]
        if slopes[j, j] < 0.0:
            slopes[j, j] = 0.0
            n_owners += 1
        loss, spread = losses[0, i], points[n_features, i]
        if merged is not None and spread > 0.0:
            # The difference of the two losses varies over the cloud by its gradient.
            other = owners[1, i]
            margin = losses[1, i] - loss
            if manhattan is not None or slopes[j, other] < 0.0:
                slope = 0.0
                for f in range(n_features):
                    gap = 2.0 * (centers[j, f] - centers[other, f])
                    if manhattan is not None:
                        left = points[f, i] < centers[j, f]
                        gap = 2.0 * (left != (points[f, i] < centers[other, f]))
                    slope += gap * gap
                slopes[j, other] = slope
            variance = slopes[j, other] * spread / n_features
            if margin * margin < _END * _END * variance:
                loss -= _overlap(margin, math.sqrt(variance))
            if manhattan is None:
                loss = max(loss + spread, 0.0)
        total += loss * (points[n_features + 1, i] + points[n_features + 2, i] * loss)
    return total, n_owners


@kernel
def log_prior(centers, n_clusters, log_sizes, radius, scale):
    """Log quasi-prior density of an ordered tuple of centres, -inf off its support.

    `log_sizes` (max_clusters,): log q(k) and the k centres' constants. Centres live on
    the ball of that `radius` (eq. 7), with the Student kernel of eq. 22 if `scale` is
    finite.
    """
    n_features = centers.shape[1]
    total = log_sizes[n_clusters - 1]
    width = 6.0 * scale * scale
    for j in range(n_clusters):
        square = 0.0
        for f in range(n_features):
            square += centers[j, f] * centers[j, f]
        if not square <= radius * radius:
            return -math.inf
        total -= 0.5 * (3 + n_features) * math.log(1.0 + square / width)
    return total


@kernel
def _log_proposal(
    centers,
    n_clusters,
    slots,
    scales,
    dof,
    symmetric,
    known,
    densities,
    uniforms,
    drawn,
    order,
):
    """Log density of the independence proposal at `centers`, constants apart.

    With `symmetric` the centres' slots are drawn too: slot after slot takes one of the
    free centres in proportion to its density there (unless `drawn`, slot j takes centre
    j). The product of the sums over the free centres is what the labels contribute to
    the acceptance ratio: product of densities / probability of the draw. `densities`
    (slots, centres) are filled unless `known`.
    """
    n_features = centers.shape[1]
    total = 0.0
    for j in range(n_clusters):
        order[j] = j
        width = dof * scales[j] * scales[j]
        log_width = n_features * math.log(width)
        for i in range(n_clusters):
            if not known and (symmetric or i == j):
                square = 0.0
                for f in range(n_features):
                    gap = centers[i, f] - slots[j, f]
                    square += gap * gap
                log_tail = (dof + n_features) * math.log(1.0 + square / width)
                densities[j, i] = -0.5 * (log_tail + log_width)
        total += densities[j, j]
    if not symmetric:
        return total
    total = 0.0
    for j in range(n_clusters):
        highest = -math.inf
        for i in range(j, n_clusters):
            log_density = densities[j, order[i]]
            highest = log_density if log_density > highest else highest
        mass = 0.0
        for i in range(j, n_clusters):
            mass += math.exp(densities[j, order[i]] - highest)
        total += highest + math.log(mass)
        left = mass * (uniforms[j] if drawn else -1.0)
        chosen = j
        for i in range(j, n_clusters):
            chosen = i
            left -= math.exp(densities[j, order[i]] - highest)
            if left < 0.0:
                break
        order[j], order[chosen] = order[chosen], order[j]
    return total


@kernel
def run_chain(
    points,
    manhattan,
    merged,
    temperature,
    log_sizes,
    radius,
    scale,
    log_volume,
    slots,
    scales,
    walk_scales,
    dof,
    symmetric,
    log_constants,
    moves,
    uniforms,
    students,
    labels,
    jumps,
    states,
    densities,
    order,
    losses,
    owners,
    slopes,
    trace,
    log_target,
):
    """Reversible-jump chain on the quasi-posterior, from the centres `states[0]`.

    Three moves: all centres anew, from Student laws round the `slots` (max_clusters,
    max_clusters, n_features) of a neighbouring number of clusters (Algorithm 3; with
    `symmetric`, the centres' slots are drawn too, so that relabelled centres are
    recognised); a random walk of one centre; the birth of a centre anywhere in the
    ball, or the death of one.

    The randomness comes from outside. An iteration reads from `moves` (n_iter, 2)
    whether the move is of the first kind (0) and how many centres it adds, and from
    `uniforms` (n_iter, 2) which centre moves and the log of a uniform variable, for the
    acceptance. Moves of the first kind read in turn `students` (n_anew, max_clusters,
    n_features), unit Student variables, and uniform `labels` (n_anew, max_clusters);
    the others `jumps` (n_other, n_features): a step in units of `walk_scales`
    (max_clusters,), or the centre that is born.

    `states` (2, max_clusters, n_features), `densities` (2, max_clusters, max_clusters),
    `order` (max_clusters,) and what `cumulative_loss` asks for are work space. trace[0]
    holds the numbers of centres, and of those that own a point, before; `trace`
    (n_iter, 3) receives both after each iteration, and whether it accepted. Returns the
    log of the target density at the last state, and which of `states` that is.
    """
    n_features = states.shape[2]
    k, n_owners = trace[0, 0], trace[0, 1]
    now = 0
    n_anew = 0
    known = False  # whether the densities are those of the present centres
    for iteration in range(trace.shape[0]):
        anew = moves[iteration, 0] == 0
        new = k + moves[iteration, 1]
        proposed = -math.inf
        log_ratio = 0.0
        if 1 <= new <= states.shape[1]:
            trial = states[1 - now]
            if anew:
                for j in range(new):
                    for f in range(n_features):
                        step = scales[new - 1, j] * students[n_anew, j, f]
                        trial[j, f] = slots[new - 1, j, f] + step
                for side in range(2):
                    size = k if side == 0 else new
                    place = now if side == 0 else 1 - now
                    log_proposal = log_constants[size - 1] + _log_proposal(
                        states[place],
                        size,
                        slots[size - 1],
                        scales[size - 1],
                        dof,
                        symmetric,
                        known and side == 0,
                        densities[place],
                        labels[n_anew],
                        side == 0,
                        order,
                    )
                    log_ratio += log_proposal if side == 0 else -log_proposal
                known = True
            else:
                chosen = int(max(k, new) * uniforms[iteration, 0])
                for j in range(new):
                    source = j if j < chosen else max(j + k - new, 0)
                    for f in range(n_features):
                        trial[j, f] = states[now, source, f]
                if new >= k:
                    for f in range(n_features):
                        jump = jumps[iteration - n_anew, f]
                        if new == k:
                            jump = trial[chosen, f] + walk_scales[k - 1] * jump
                        trial[chosen, f] = jump
                log_ratio = (new - k) * log_volume
            proposed = log_prior(trial, new, log_sizes, radius, scale)
        accepted = False
        if proposed > -math.inf:
            loss, trial_owners = cumulative_loss(
                points,
                states[1 - now],
                new,
                manhattan,
                merged,
                losses,
                owners,
                slopes,
            )
            proposed -= temperature * loss
            accepted = uniforms[iteration, 1] < log_ratio + proposed - log_target
        n_anew += anew
        if accepted:
            now = 1 - now
            k, n_owners, log_target, known = new, trial_owners, proposed, anew
        trace[iteration, 0] = k
        trace[iteration, 1] = n_owners
        trace[iteration, 2] = accepted
    return log_target, now
