"""Hidden Markov models: densities of emissions, filter, states drawn and decoded.

Rows come by columns, (n_features, n_rows), so that the loops over them vectorise. A
component is an atom of a state: component ``j * n_atoms + l`` is atom l of state j.
"""

import math

import numpy as np

from . import allocating, kernel, part, shared

_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
LOWEST = -600.0  # exponents of densities are raised to it
_FEW = 1e-6  # least total that waits: times exp(LOWEST), it must not underflow
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer
_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2_HIGH, _LOG_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


@part
def _exp(x):
    """Exponential of x in [-700, 0]: math.exp is a call, and calls do not vectorise.

    With n the integer nearest to x / log(2), it is 2^n times the Taylor polynomial
    at the remainder, whose error is below the rounding error.
    """
    shifted = x * _PER_LOG_2 + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    # By pairs of terms, not one after the other: most of them do not wait.
    r2 = r * r
    r4 = r2 * r2
    p = (1.0 / 479001600.0 + r * (1.0 / 6227020800.0)) * r4
    p += (1.0 / 40320.0 + r * (1.0 / 362880.0)) + (
        1.0 / 3628800.0 + r * (1.0 / 39916800.0)
    ) * r2
    p *= r4
    p += (1.0 / 24.0 + r * (1.0 / 120.0)) + (1.0 / 720.0 + r * (1.0 / 5040.0)) * r2
    p *= r4
    p += (1.0 + r) + (0.5 + r * (1.0 / 6.0)) * r2
    bits = np.float64(shifted).view(np.int64) + np.int64(1023)
    return p * np.int64(bits << np.int64(52)).view(np.float64)


@part
def _squares_by_variances(
    columns, factor, mean, locations, start, stop, a, n_atoms, work
):
    """Fill in |F (y - c)|^2 for atom a of states `start` to `stop` - 1; F is diagonal.

    Component c receives ``work[c]``.
    """
    n_features, size = mean.shape[0], columns.shape[1]
    for j in range(start, stop):
        squares = work[j * n_atoms + a]
        for f in range(n_features):
            own = factor[f, f]
            shift = own * (locations[j, f] + mean[f])
            for t in range(size):
                value = own * columns[f, t] - shift
                squares[t] = value * value + (squares[t] if f > 0 else 0.0)


@part
def _squares_by_covariances(
    columns, factor, mean, locations, start, stop, a, n_atoms, work
):
    """Fill in |F (y - c)|^2 for atom a of states `start` to `stop` - 1.

    F y is computed once for all of them. Features are taken two by two, as most of the
    time is that of loads and stores; an odd last one is taken twice, and counted once.
    """
    n_features, size = mean.shape[0], columns.shape[1]
    ahead, next_ahead = work[-2], work[-1]  # two entries of F y
    for f in range(0, n_features, 2):
        next_f = f if f + 1 == n_features else f + 1
        share = 1.0 if next_f > f else 0.0
        row, next_row = factor[f], factor[next_f]
        own, below, beside = row[f], next_row[f], next_row[next_f]
        for t in range(size):
            value = columns[f, t]
            ahead[t] = own * value
            next_ahead[t] = below * value + beside * columns[next_f, t]
        for g in range(0, f, 2):
            own, other = row[g], row[g + 1]
            below, beside = next_row[g], next_row[g + 1]
            for t in range(size):
                value, next_value = columns[g, t], columns[g + 1, t]
                ahead[t] += own * value + other * next_value
                next_ahead[t] += below * value + beside * next_value
        for j in range(start, stop):
            squares, shift, next_shift = work[j * n_atoms + a], 0.0, 0.0
            for g in range(next_f + 1):  # the entry above the diagonal is zero
                center = locations[j, g] + mean[g]
                shift += row[g] * center
                next_shift += next_row[g] * center
            for t in range(size):
                value, next_value = ahead[t] - shift, next_ahead[t] - next_shift
                square = value * value + share * (next_value * next_value)
                squares[t] = square + (squares[t] if f > 0 else 0.0)


@part
def _add_up_densities(log_densities, highest, total):
    """Fill in densities over exp(highest), and their partial sums over the atoms."""
    for a in range(log_densities.shape[0]):
        own = log_densities[a]
        for t in range(total.shape[0]):
            exponent = own[t] - highest[t]
            density = _exp(exponent if exponent > LOWEST else LOWEST)
            total[t] = own[t] = density + (total[t] if a > 0 else 0.0)


@part
def _draw_atoms(sums, uniforms, atoms):
    """Draw the atom of each row, by the partial sums of their densities."""
    last = sums.shape[0] - 1
    total = sums[last]
    for t in range(atoms.shape[0]):
        atoms[t] = 0
    for a in range(last):
        own = sums[a]
        for t in range(atoms.shape[0]):
            atoms[t] += 1 if own[t] <= total[t] * uniforms[t] else 0


@shared
def emission_densities(
    columns,
    factors,
    means,
    locations,
    log_weights,
    rounding,
    full,
    chosen,
    uniforms,
    highest,
    densities,
    atoms,
    work,
):
    """Fill in densities of rows in each state, and an atom for each row and state.

    Atom a of state j has the log density ``log_weights[g, a] + log(det(F)) - 0.5 *
    |F (y - c)|^2`` at row y, without the constant of the normal distribution, with F =
    ``factors[g, a]``, lower triangular (diagonal unless `full`), and c =
    ``locations[j] + means[g, a]``. The shape g is j, or 0 if all states share one:
    `factors` (n_shapes, n_atoms, n_features, n_features), `means` (n_shapes, n_atoms,
    n_features), `locations` (n_states, n_features), `log_weights` (n_shapes, n_atoms).
    Mixtures consist of the atoms ``chosen`` (n_chosen,), which components number.
    A value that was rounded by an unknown error has the geometric mean of its density
    over the error, whose variance is `rounding` (n_features,). `highest` (n_rows,)
    receives the largest log density of a row, `densities` (n_states, n_rows) the
    density in each state divided by the exponential of that; none is below exp(-600).
    If `atoms` (n_states, n_rows) is not empty it receives, for each state, the place in
    `chosen` of the atom at the quantile `uniforms` (n_rows,) of its distribution given
    the row and the state. `work` (at least n_components + 2, any) is work space.
    `columns` may have more rows, and all arrays but `uniforms` more columns.
    """
    n_features, n_rows = means.shape[2], uniforms.shape[0]
    n_states, block = densities.shape[0], work.shape[1]
    n_shapes, n_atoms = log_weights.shape[0], chosen.shape[0]
    for first in range(0, n_rows, block):
        size = block if n_rows - first > block else n_rows - first
        # An index into these slices is not negative, which costs no test.
        of_rows = slice(first, first + size)
        own, best = columns[:, of_rows], highest[of_rows]
        for t in range(size):
            best[t] = -math.inf
        for c in range(n_shapes * n_atoms):
            shape, a = c // n_atoms, c % n_atoms
            start, stop = (0, n_states) if n_shapes == 1 else (shape, shape + 1)
            factor, mean = factors[shape, chosen[a]], means[shape, chosen[a]]
            if full and n_features > 1:
                _squares_by_covariances(
                    own, factor, mean, locations, start, stop, a, n_atoms, work
                )
            else:
                _squares_by_variances(
                    own, factor, mean, locations, start, stop, a, n_atoms, work
                )
            constant = log_weights[shape, chosen[a]] - n_features * _HALF_LOG_2_PI
            for f in range(n_features):
                constant += math.log(factor[f, f])
                for g in range(0 if full else f, f + 1):
                    constant -= 0.5 * factor[f, g] * factor[f, g] * rounding[g]
            for j in range(start, stop):
                exponents = work[j * n_atoms + a]
                for t in range(size):
                    exponent = constant - 0.5 * exponents[t]
                    exponents[t] = exponent
                    best[t] = exponent if exponent > best[t] else best[t]
        for j in range(n_states):
            of_state = work[j * n_atoms : (j + 1) * n_atoms]
            _add_up_densities(of_state, best, densities[j, of_rows])
            if atoms.shape[1] > 0:
                _draw_atoms(of_state, uniforms[of_rows], atoms[j, of_rows])


@kernel
def forward_filter(densities, ends, sources, chances, start, bounds, evidence):
    """Replace densities by the probabilities of the states given the rows up to theirs.

    `densities` (n_states, n_rows), changed in place. State j is reached from each state
    ``sources[p]``, with probability ``chances[p]``, for p from ``ends[j]`` to ``ends[j
    + 1] - 1``, and the end of a sequence, n_states, from each state; both are unsigned,
    as a signed index costs a test. `start` (n_states,): distribution of the first state
    of a sequence. Sequence s consists of rows ``bounds[s]`` to ``bounds[s + 1] - 1``.
    `evidence` (n_rows,) receives the density of each row given those before it. It is
    positive also if a row has its least density, exp(-600) relative to the largest, in
    each state that can be reached.
    """
    n_states = start.shape[0]
    for s in range(bounds.shape[0] - 1):
        # The next row does not wait for the division by the total of this one: rows are
        # normalised one row later, or at once if their total is far from 1.
        before, inverse = 1.0, 1.0
        for t in range(bounds[s], bounds[s + 1]):
            total = 0.0
            for j in range(n_states):
                ahead = start[j]
                if t > bounds[s]:
                    ahead = 0.0
                    for p in range(ends[j], ends[j + 1]):
                        ahead += densities[sources[p], t - 1] * chances[p]
                densities[j, t] *= ahead
                total += densities[j, t]
            if t > bounds[s]:
                for j in range(n_states):
                    densities[j, t - 1] *= inverse
            evidence[t] = total / before
            if not _FEW < total < 1.0 / _FEW:
                for j in range(n_states):
                    densities[j, t] /= total
                total = 1.0
            before, inverse = total, 1.0 / total
        if bounds[s + 1] > bounds[s]:
            for j in range(n_states):
                densities[j, bounds[s + 1] - 1] *= inverse


@kernel
def draw_states(
    filtered, ends, sources, chances, bounds, uniforms, states, moves, firsts
):
    """Draw the states of each sequence backwards, and count their moves.

    `filtered` (n_states, n_rows), of `forward_filter`, as are `ends`, `sources` and
    `chances`; ``uniforms[t]`` in [0, 1) decides ``states[t]``. `moves` (n_states,
    n_states) and `firsts` (n_states,) receive the numbers of transitions and of first
    states.
    """
    n_states = filtered.shape[0]
    for i in range(n_states):
        firsts[i] = 0.0
        for j in range(n_states):
            moves[i, j] = 0.0
    for s in range(bounds.shape[0] - 1):
        after = n_states
        for t in range(bounds[s + 1] - 1, bounds[s] - 1, -1):
            total = 0.0
            for p in range(ends[after], ends[after + 1]):
                total += filtered[sources[p], t] * chances[p]
            threshold = uniforms[t] * total
            passed, state = 0.0, -1
            for p in range(ends[after], ends[after + 1]):
                if passed > threshold:
                    break
                state = np.int64(sources[p])
                passed += filtered[state, t] * chances[p]
            states[t] = state
            if after < n_states:
                moves[state, after] += 1.0
            after = state
        if after < n_states:
            firsts[after] += 1.0


@kernel
def add_moments(
    rows, states, atoms, locations, near, full, sizes, counts, sums, products
):
    """Add the moments of rows about the centre of their component.

    `rows` (n_rows, n_features), NaN where missing; `states` and `atoms` (n_rows,), of
    which the latter is negative for a row to leave out. A centre is the location of the
    state, of `locations` (n_states, n_features), and the mean of the rows of the atom
    about their locations, which `near` (n_shapes, n_atoms, n_features) receives: one
    shape is shared by all states, or each has its own. Arrays that receive are zero
    before. `sizes` (n_states, n_atoms): rows; `counts`: values, and `sums` (n_states,
    n_atoms, n_features); `products` (n_states, n_atoms, n_features, n_features), of
    which the lower triangle is filled if `full`, else the diagonal. If `full`, rows
    that are not left out have no missing values.
    """
    n_features = rows.shape[1]
    shared = near.shape[0] == 1
    for t in range(rows.shape[0]):
        if atoms[t] < 0:
            continue
        j, a = states[t], atoms[t]
        sizes[j, a] += 1.0
        shape = 0 if shared else j
        for f in range(n_features):
            value = rows[t, f] - locations[j, f]
            if not math.isnan(value):
                counts[j, a, f] += 1.0
                near[shape, a, f] += value
    for shape in range(near.shape[0]):
        for a in range(near.shape[1]):
            for f in range(n_features):
                total = 0.0
                for j in range(sizes.shape[0]):
                    total += counts[j, a, f] if shared or j == shape else 0.0
                near[shape, a, f] /= total if total > 1.0 else 1.0
    for t in range(rows.shape[0]):
        if atoms[t] < 0:
            continue
        j, a = states[t], atoms[t]
        shape = 0 if shared else j
        for f in range(n_features):
            gap = rows[t, f] - (locations[j, f] + near[shape, a, f])
            if math.isnan(gap):
                continue
            sums[j, a, f] += gap
            for g in range(0 if full else f, f + 1):
                other = rows[t, g] - (locations[j, g] + near[shape, a, g])
                products[j, a, f, g] += gap * other


@kernel
def stationary_distribution(transitions, distribution):
    """Fill in the stationary distribution of `transitions`, which are overwritten.

    The elimination of Grassmann, Taksar and Heyman has no subtractions: it is
    accurate also where states hardly communicate. `transitions` (n_states, n_states),
    `distribution` (n_states,).
    """
    k = distribution.shape[0]
    for n in range(k - 1, 0, -1):
        leaving = 1e-300
        for j in range(n):
            leaving += transitions[n, j]
        for i in range(n):
            transitions[i, n] /= leaving
            for j in range(n):
                transitions[i, j] += transitions[i, n] * transitions[n, j]
    total = 0.0
    for n in range(k):
        distribution[n] = 0.0 if n > 0 else 1.0
        for i in range(n):
            distribution[n] += distribution[i] * transitions[i, n]
        total += distribution[n]
    for n in range(k):
        distribution[n] /= total


@kernel
def accept_transitions(
    proposed, staged, stages, firsts, thresholds, transitions, start, matrix, work
):
    """Replace rows of transitions by those proposed, by Metropolis steps.

    A step is taken if the log ratio of the stationary probabilities of the first
    states, ``firsts[j]`` of them j, is larger than its threshold. `proposed` and
    `transitions` (n_states, n_states), of stages if `staged`, of which a state passes
    through ``stages[j]``; `start` (n_states,): the stationary distribution. The latter
    two are changed; `matrix` and `work`, of their shapes, are work space.
    """
    k = start.shape[0]
    for i in range(k):
        for a in range(k):
            for b in range(k):
                value = proposed[a, b] if a == i else transitions[a, b]
                if staged and a == b:
                    value = 1.0 - (1.0 - value) / stages[a]
                elif staged:
                    value /= stages[a]
                matrix[a, b] = value
        stationary_distribution(matrix, work)
        gain = 0.0
        for j in range(k):
            if firsts[j] > 0.0:
                gain += firsts[j] * np.log(work[j] / start[j])
        if gain > thresholds[i]:
            for j in range(k):
                transitions[i, j] = proposed[i, j]
                start[j] = work[j]


@allocating
def smooth(filtered, ends, sources, chances, stops, targets, odds, bounds):
    """Replace filtered probabilities of states by those given the whole sequence.

    `filtered` (n_states, n_rows), of `forward_filter`, is changed in place; `ends`,
    `sources` and `chances` are those that it was given. `stops`, `targets` and `odds`
    say the same of the ways out of a state.
    """
    n_states = filtered.shape[0]
    ratio = np.empty(n_states)
    for s in range(bounds.shape[0] - 1):
        for t in range(bounds[s + 1] - 2, bounds[s] - 1, -1):
            for j in range(n_states):
                ahead = 0.0
                for p in range(ends[j], ends[j + 1]):
                    ahead += filtered[sources[p], t] * chances[p]
                ratio[j] = filtered[j, t + 1] / ahead if ahead > 0.0 else 0.0
            total = 0.0
            for i in range(n_states):
                weight = 0.0
                for p in range(stops[i], stops[i + 1]):
                    weight += odds[p] * ratio[targets[p]]
                filtered[i, t] *= weight
                total += filtered[i, t]
            for i in range(n_states):
                filtered[i, t] /= total


@allocating
def viterbi(
    log_densities, ends, sources, log_chances, log_start, bounds, previous, states
):
    """Fill in the most probable states; return the sum of joint log densities.

    `log_densities` (n_states, n_rows); `ends`, `sources` and `log_chances` as in
    `forward_filter`; `previous` (n_states, n_rows) is work space; `states` (n_rows,)
    receives the states.
    """
    n_states = log_start.shape[0]
    score, before = np.empty(n_states), np.empty(n_states)
    total = 0.0
    for s in range(bounds.shape[0] - 1):
        if bounds[s] == bounds[s + 1]:
            continue
        for t in range(bounds[s], bounds[s + 1]):
            for j in range(n_states):
                before[j] = score[j]
            for j in range(n_states):
                score[j] = log_start[j]
                if t > bounds[s]:
                    score[j] = -math.inf
                    previous[j, t] = 0
                    for p in range(ends[j], ends[j + 1]):
                        through = before[sources[p]] + log_chances[p]
                        if through > score[j]:
                            score[j] = through
                            previous[j, t] = sources[p]
                score[j] += log_densities[j, t]
        state = 0
        for j in range(1, n_states):
            if score[j] > score[state]:
                state = j
        total += score[state]
        for t in range(bounds[s + 1] - 1, bounds[s] - 1, -1):
            states[t] = state
            if t > bounds[s]:
                state = previous[state, t]
    return total
