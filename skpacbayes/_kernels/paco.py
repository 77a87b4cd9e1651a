"""The quasi-posterior of PACO on weighted points, and its reversible-jump chain.

A *point* stands for the rows that were merged into it. It is a column of `points`
(n_features + 3, n_points), so that the loops over points vectorise: the rows' mean;
their mean squared distance from it (0 for a single row); and the factors of the loss l
and of l^2 in the cumulative loss. `manhattan` is True for the Manhattan distance as the
loss and None for the squared Euclidean distance; `merged` is None where every point is
a single row, else True: what None excludes is not compiled.
"""

import math
from collections import namedtuple

import numpy as np

from . import kernel, part

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
    """Return E[max(0, -G)], G normal with mean `gap` >= 0: (E|G| - gap) / 2."""
    place = gap * (_STEPS / deviation)
    if not place < _STEPS * _END:
        return 0.0
    i = int(place)
    value = 0.0
    for power in range(6):
        value = value * (place - i) + _TABLE[i, power]
    return value * deviation


@part
def add_losses(points, n_features, places, j, manhattan, losses):
    """Add to losses[j] the loss of each point at centre j of `places`.

    The first `n_features` of `points` (n_features or more, n_points) are the places of
    the points.
    """
    for f in range(n_features):
        place = places[j, f]
        for i in range(points.shape[1]):
            gap = points[f, i] - place
            losses[j, i] += gap * gap if manhattan is None else abs(gap)


@part
def _widen(points, places, j, gaps, losses):
    """Write the mean Manhattan losses of merged rows at centre j to losses[2]."""
    n_features = points.shape[0] - 3
    for i in range(points.shape[1]):
        spread = points[n_features, i]
        losses[2, i] = gaps[j, i]
        if spread > 0.0 and losses[2, i] < losses[1, i]:
            deviation = math.sqrt(spread / n_features)
            for f in range(n_features):
                gap = abs(points[f, i] - places[j, f])
                losses[2, i] += 2.0 * _overlap(gap, deviation)


@part
def _slope(points, i, here, there, manhattan):
    """Return the squared gradient, at point i, of a difference of two losses."""
    slope = 0.0
    for f in range(points.shape[0] - 3):
        gap = 2.0 * (here[f] - there[f])
        if manhattan is not None:
            left = points[f, i] < here[f]
            gap = 2.0 * (left != (points[f, i] < there[f]))
        slope += gap * gap
    return slope


@part
def _add_up(points, places, manhattan, merged, losses, owners, slopes):
    """Return the sum of the points' losses, and the number of centres that own one.

    `losses` and `owners` of the two nearest centres; `slopes` of -1 are not known yet.
    """
    n_features, n_points = points.shape[0] - 3, points.shape[1]
    total = 0.0
    n_owners = 0
    for i in range(n_points):
        j = owners[0, i]
        if slopes[j, j] < 0.0:
            slopes[j, j] = 0.0
            n_owners += 1
        loss, spread = losses[0, i], points[n_features, i]
        if merged is not None and spread > 0.0:
            # Over the cloud, the difference of the two losses is linearised by its
            # gradient.
            other = owners[1, i]
            margin = losses[1, i] - loss
            if manhattan is not None or slopes[j, other] < 0.0:
                slopes[j, other] = _slope(
                    points, i, places[j], places[other], manhattan
                )
            variance = slopes[j, other] * spread / n_features
            if margin * margin < _END * _END * variance:
                loss -= _overlap(margin, math.sqrt(variance))
            if manhattan is None:
                loss = loss + spread if loss + spread > 0.0 else 0.0
        total += loss * (points[n_features + 1, i] + points[n_features + 2, i] * loss)
    return total, n_owners


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
    """Return the total loss at `states[state]`, and the number of centres in use.

    A single row has the loss l at its nearest centre. Merged rows are taken as an
    isotropic normal cloud: l is the mean of the minimum over the two nearest centres.
    `gaps` (n_states, max_clusters, n_points), the loss of each point at each centre,
    are computed for the `n_moved` centres from `moved` on, and kept for the others.
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
            add_losses(points, n_features, states[state], j, manhattan, gaps[state])
        if merged is not None and manhattan is not None:
            _widen(points, states[state], j, gaps[state], losses)
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
    return _add_up(points, states[state], manhattan, merged, losses, owners, slopes)


# The prior of the centres, and the inverse temperature of the cumulative loss.
# `log_sizes` (max_clusters,): log q(k) and the constants of the k centres. Centres live
# on the ball of that `radius` (eq. 7), whose log volume is `log_volume`, with the
# Student density of eq. 22 if `scale` is finite.
Target = namedtuple("Target", "temperature log_sizes radius scale log_volume")

# Where the independence move draws centres: Student distributions with `dof` degrees of
# freedom round the `slots` (max_clusters, max_clusters, n_features), of `scales`
# (max_clusters, max_clusters); `log_constants` (max_clusters,) of their densities; the
# unit `walk_scales` (max_clusters,) of the random walk. With `symmetric`, the slots of
# the current centres are drawn too, so that relabelled centres are recognised.
Slots = namedtuple("Slots", "places scales walk_scales dof symmetric log_constants")

# The random numbers of a run. `moves` (n_iter, 2): 0 for the independence move, else 1,
# and how many centres the move adds; `uniforms` (n_iter, 2): which centre moves, and
# the log of a uniform variable, for the acceptance. Independence moves read in turn
# `students` (n_independent, max_clusters, n_features), unit Student variables, and
# uniform `labels` (n_independent, max_clusters); the others `jumps` (n_other,
# n_features): a step in units of `walk_scales`, or the centre that is born.
Draws = namedtuple("Draws", "moves uniforms students labels jumps")

# Work space: `states` (2, max_clusters, n_features), the current centres and the
# proposed ones; `densities` and `order` (max_clusters,); the rest is what
# `cumulative_loss` asks for.
Work = namedtuple("Work", "states densities order gaps losses owners slopes")


@part
def _propose(target, slots, draws, work, now, k, iteration, n_independent):
    """Write the proposed centres into `states[1 - now]`.

    Returns their number, the first one that moved (that was born, or died), and the log
    of their prior density, -inf off its support. The `gaps` of the centres that did not
    move are copied.
    """
    states, gaps = work.states, work.gaps
    max_clusters, n_features = states.shape[1:]
    independent = draws.moves[iteration, 0] == 0
    jump = iteration - n_independent
    new = k + draws.moves[iteration, 1]
    chosen = np.int64((new if new > k else k) * draws.uniforms[iteration, 0])
    if new < 1 or new > max_clusters:
        return new, chosen, -math.inf
    log_prior = target.log_sizes[new - 1]
    for j in range(new):
        before = j < chosen or (j == chosen and new > k)
        source = j if before else j + k - new
        square = 0.0
        for f in range(n_features):
            place = states[now, source, f]
            if independent:
                step = slots.scales[new - 1, j] * draws.students[n_independent, j, f]
                place = slots.places[new - 1, j, f] + step
            elif j == chosen and new == k:
                place += slots.walk_scales[k - 1] * draws.jumps[jump, f]
            elif j == chosen and new > k:
                place = draws.jumps[jump, f]
            states[1 - now, j, f] = place
            square += place * place
        log_tail = math.log(1.0 + square / (6.0 * target.scale * target.scale))
        log_density = -0.5 * (3 + n_features) * log_tail
        inside = square <= target.radius * target.radius
        log_prior += log_density if inside else -math.inf
        for i in range(0 if independent else gaps.shape[2]):
            gaps[1 - now, j, i] = gaps[now, source, i]
    return new, chosen, log_prior


@kernel
def _log_proposal(slots, labels, work, state, size, drawn):
    """Return the log density of the independence move at `states[state]`.

    Each slot in turn takes one of the free centres, of `size`, in proportion to its
    density there.
    The product of the sums over the free centres is what the labels contribute to the
    acceptance ratio: product of densities / probability of the choice. With `drawn`,
    the centres were drawn from the slots: each has its own. Otherwise the uniform
    `labels` (max_clusters,) choose.
    """
    n_features = work.states.shape[2]
    densities, order = work.densities, work.order
    log_density = slots.log_constants[size - 1]
    for j in range(size):
        order[j] = j
    for j in range(size):
        scale = slots.scales[size - 1, j]
        width = slots.dof * scale * scale
        highest = -math.inf
        last = size if slots.symmetric else j + 1
        for i in range(j, last):
            square = 0.0
            for f in range(n_features):
                place = slots.places[size - 1, j, f]
                gap = work.states[state, order[i], f] - place
                square += gap * gap
            log_tail = (slots.dof + n_features) * math.log(1.0 + square / width)
            density = -0.5 * (log_tail + n_features * math.log(width))
            highest = density if density > highest else highest
            densities[i] = density
        mass = 0.0
        for i in range(j, last):
            densities[i] = math.exp(densities[i] - highest)
            mass += densities[i]
        log_density += highest + math.log(mass)
        remaining = -1.0 if drawn else mass * labels[j]
        taken = j
        while taken < last - 1 and remaining >= densities[taken]:
            remaining -= densities[taken]
            taken += 1
        order[j], order[taken] = order[taken], order[j]
    return log_density


@kernel
def run_chain(
    points, manhattan, merged, target, slots, draws, work, now, log_target, trace
):
    """Run a reversible-jump chain on the quasi-posterior from `states[now]`.

    Three moves: new centres, all drawn from the `slots` of the same or a neighbouring
    number of clusters (the independence move, Algorithm 3); a random walk of one
    centre; the birth of a centre anywhere in the ball, or the death of one. All random
    numbers are in `draws`. `target`, `slots`, `draws`, `work`: see these tuples.

    `cumulative_loss` has filled the `gaps` of `states[now]`. trace[0] holds the numbers
    of centres, and of those that own a point, before; `trace` (n_iter, 3) receives both
    after each iteration, and whether it accepted. Returns the log of the target density
    at the last state, and which of `states` that is.
    """
    k, n_owners = trace[0, 0], trace[0, 1]
    n_independent = 0
    for iteration in range(trace.shape[0]):
        independent = draws.moves[iteration, 0] == 0
        new, chosen, proposed = _propose(
            target, slots, draws, work, now, k, iteration, n_independent
        )
        trial, trial_owners, accepted = 1 - now, n_owners, False
        if proposed > -math.inf:
            log_ratio = (new - k) * target.log_volume
            if independent:
                labels = draws.labels[n_independent]
                log_ratio = _log_proposal(slots, labels, work, now, k, False)
                log_ratio -= _log_proposal(slots, labels, work, trial, new, True)
            loss, trial_owners = cumulative_loss(
                points,
                work.states,
                trial,
                new,
                0 if independent else chosen,
                new if independent else (1 if new >= k else 0),
                manhattan,
                merged,
                work.gaps,
                work.losses,
                work.owners,
                work.slopes,
            )
            proposed -= target.temperature * loss
            accepted = draws.uniforms[iteration, 1] < log_ratio + proposed - log_target
        n_independent += independent
        if accepted:
            now = trial
            k, n_owners, log_target = new, trial_owners, proposed
        trace[iteration, 0] = k
        trace[iteration, 1] = n_owners
        trace[iteration, 2] = accepted
    return log_target, now
