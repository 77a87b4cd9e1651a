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
    points,
    states,
    state,
    n_clusters,
    moved,
    n_moved,
    manhattan,
    merged,
    gaps,
    losses,
    owners,
    slopes,
):
    """Sum of the losses of the points at `states[state]`, and how many centres own one.

    A single row has the loss l at its nearest centre. Merged rows are taken as an
    isotropic normal cloud: l is the mean of the minimum over the two nearest centres.
    `gaps` (n_states, max_clusters, n_points), the loss of each point at each centre,
    are computed for the `n_moved` centres from `moved` on; those of the others stand.
    `losses` (3, n_points) and the integers `owners` (2, n_points) receive in their
    first rows each point's loss at its nearest centre, and that centre; the rest and
    `slopes` (max_clusters, max_clusters) are work space.
    """
    n_features, n_points = points.shape[0] - 3, points.shape[1]
    for i in range(n_points):  # nearest, runner-up
        losses[0, i] = math.inf
        owners[0, i] = 0
        if merged is not None:
            losses[1, i] = math.inf
            owners[1, i] = 0
    for j in range(n_clusters):
        for other in range(n_clusters):
            slopes[j, other] = -1.0  # not known yet, or no point is owned
        if moved <= j < moved + n_moved:
            for i in range(n_points):
                gaps[state, j, i] = 0.0
            for f in range(n_features):
                place = states[state, j, f]
                for i in range(n_points):
                    gap = points[f, i] - place
                    gaps[state, j, i] += gap * gap if manhattan is None else abs(gap)
        if merged is not None and manhattan is not None:
            for i in range(n_points):
                spread = points[n_features, i]
                losses[2, i] = gaps[state, j, i]
                if spread > 0.0 and losses[2, i] < losses[1, i]:
                    deviation = math.sqrt(spread / n_features)
                    for f in range(n_features):
                        gap = abs(points[f, i] - states[state, j, f])
                        losses[2, i] += 2.0 * _overlap(gap, deviation)
        for i in range(n_points):  # without a branch: LLVM vectorises it
            loss, low = gaps[state, j, i], losses[0, i]
            if merged is not None and manhattan is not None:
                loss = losses[2, i]
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
                    here, there = states[state, j, f], states[state, other, f]
                    gap = 2.0 * (here - there)
                    if manhattan is not None:
                        left = points[f, i] < here
                        gap = 2.0 * (left != (points[f, i] < there))
                    slope += gap * gap
                slopes[j, other] = slope
            variance = slopes[j, other] * spread / n_features
            if margin * margin < _END * _END * variance:
                loss -= _overlap(margin, math.sqrt(variance))
            if manhattan is None:
                loss = loss + spread if loss + spread > 0.0 else 0.0
        total += loss * (points[n_features + 1, i] + points[n_features + 2, i] * loss)
    return total, n_owners


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
    now,
    densities,
    order,
    gaps,
    losses,
    owners,
    slopes,
    trace,
    log_target,
):
    """Reversible-jump chain on the quasi-posterior, from the centres `states[now]`.

    Prior: `log_sizes` (max_clusters,) are log q(k) and the k centres' constants.
    Centres live on the ball of that `radius` (eq. 7), with the Student kernel of eq. 22
    if `scale` is finite.

    Three moves: all centres anew, from Student laws round the `slots` (max_clusters,
    max_clusters, n_features) of a neighbouring number of clusters (Algorithm 3); a
    random walk of one centre; the birth of a centre anywhere in the ball, or the death
    of one. With `symmetric`, the slots of the present centres are drawn too, so that
    relabelled centres are recognised: slot after slot takes one of the free centres in
    proportion to its density there. The product of the sums over the free centres is
    what the labels contribute to the acceptance ratio: product of densities /
    probability of the draw. Where the centres were drawn, each has its slot.

    The randomness comes from outside. An iteration reads from `moves` (n_iter, 2)
    whether the move is of the first kind (0) and how many centres it adds, and from
    `uniforms` (n_iter, 2) which centre moves and the log of a uniform variable, for the
    acceptance. Moves of the first kind read in turn `students` (n_anew, max_clusters,
    n_features), unit Student variables, and uniform `labels` (n_anew, max_clusters);
    the others `jumps` (n_other, n_features): a step in units of `walk_scales`
    (max_clusters,), or the centre that is born.

    `states` (2, max_clusters, n_features), `densities` and `order` (max_clusters,) and
    what `cumulative_loss` asks for are work space; it has filled the `gaps` of
    `states[now]`. trace[0] holds the numbers of centres, and of those that own a point,
    before; `trace` (n_iter, 3) receives both after each iteration, and whether it
    accepted. Returns the log of the target density at the last state, and which of
    `states` that is.
    """
    n_features, n_points = states.shape[2], points.shape[1]
    k, n_owners = trace[0, 0], trace[0, 1]
    n_anew = 0
    for iteration in range(trace.shape[0]):
        anew = moves[iteration, 0] == 0
        new = k + moves[iteration, 1]
        chosen = np.int64((new if new > k else k) * uniforms[iteration, 0])
        trial = 1 - now
        proposed = -math.inf
        log_ratio = (new - k) * log_volume
        if 1 <= new <= states.shape[1]:
            proposed = log_sizes[new - 1]
            for j in range(new):
                before = j < chosen or (j == chosen and new > k)
                source = j if before else j + k - new
                square = 0.0
                for f in range(n_features):
                    place = states[now, source, f]
                    if anew:
                        step = scales[new - 1, j] * students[n_anew, j, f]
                        place = slots[new - 1, j, f] + step
                    elif j == chosen and new == k:
                        place += walk_scales[k - 1] * jumps[iteration - n_anew, f]
                    elif j == chosen and new > k:
                        place = jumps[iteration - n_anew, f]
                    states[trial, j, f] = place
                    square += place * place
                log_tail = math.log(1.0 + square / (6.0 * scale * scale))
                log_density = -0.5 * (3 + n_features) * log_tail
                proposed += log_density if square <= radius * radius else -math.inf
                for i in range(0 if anew else n_points):
                    gaps[trial, j, i] = gaps[now, source, i]
        if anew and proposed > -math.inf:
            log_ratio = 0.0
            for side in range(2):
                drawn = side == 1  # the centres were drawn from the slots
                size, state = (new, trial) if drawn else (k, now)
                log_proposal = log_constants[size - 1]
                for j in range(size):
                    order[j] = j
                for j in range(size):
                    width = dof * scales[size - 1, j] * scales[size - 1, j]
                    highest = -math.inf
                    last = size if symmetric else j + 1
                    for i in range(j, last):
                        square = 0.0
                        for f in range(n_features):
                            gap = states[state, order[i], f] - slots[size - 1, j, f]
                            square += gap * gap
                        log_tail = (dof + n_features) * math.log(1.0 + square / width)
                        log_density = -0.5 * (log_tail + n_features * math.log(width))
                        highest = log_density if log_density > highest else highest
                        densities[i] = log_density
                    mass = 0.0
                    for i in range(j, last):
                        densities[i] = math.exp(densities[i] - highest)
                        mass += densities[i]
                    log_proposal += highest + math.log(mass)
                    left = -1.0 if drawn else mass * labels[n_anew, j]
                    taken = j
                    while taken < last - 1 and left >= densities[taken]:
                        left -= densities[taken]
                        taken += 1
                    order[j], order[taken] = order[taken], order[j]
                log_ratio += -log_proposal if drawn else log_proposal
        accepted = False
        if proposed > -math.inf:
            loss, trial_owners = cumulative_loss(
                points,
                states,
                trial,
                new,
                0 if anew else chosen,
                new if anew else (1 if new >= k else 0),
                manhattan,
                merged,
                gaps,
                losses,
                owners,
                slopes,
            )
            proposed -= temperature * loss
            accepted = uniforms[iteration, 1] < log_ratio + proposed - log_target
        n_anew += anew
        if accepted:
            now = trial
            k, n_owners, log_target = new, trial_owners, proposed
        trace[iteration, 0] = k
        trace[iteration, 1] = n_owners
        trace[iteration, 2] = accepted
    return log_target, now
