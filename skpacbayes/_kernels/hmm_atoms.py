"""Hidden Markov models: moves of the rows among the atoms of their shape.

Weights, means and covariances of the atoms are summed out. Numbers of rows have the
probability that pieces of a broken stick give them; rows of an atom have Student's
predictive density given those before. `prior` is, everywhere, the number of rows that
the prior mean counts for, the shape of the inverse gamma law, and (n_features,) what
rounding adds to the square of a value. `members` are three groups of rows: counts and
means (3, n_features); scatters (3, n_features, n_features), the prior's included: the
Cholesky factor if `full`, else the diagonal; and (n_features,) work space.
"""

import math

import numpy as np

from . import kernel


@kernel
def _begin(which, origin, scale, full, members):
    """Empty a group."""
    counts, means, scatters, _ = members
    for f in range(origin.shape[0]):
        counts[which, f] = 0.0
        means[which, f] = origin[f]
        for g in range(origin.shape[0]):
            scatters[which, f, g] = 0.0
        scatters[which, f, f] = math.sqrt(2.0 * scale[f]) if full else scale[f]


@kernel
def _log_predictive(row, which, prior, table, full, members):
    """Log density of a row given a group, but for a constant of the row."""
    counts, means, scatters, work = members
    mean_count, shape, _ = prior
    d = row.shape[0]
    if full:
        n = counts[which, 0]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        square, total = 0.0, table[np.int64(n)] + 0.5 * d * math.log(weight)
        for f in range(d):
            value = row[f] - means[which, f]
            for g in range(f):
                value -= scatters[which, f, g] * work[g]
            work[f] = value / scatters[which, f, f]
            square += work[f] * work[f]
            total -= math.log(scatters[which, f, f])
        return total - (shape + 0.5 * (n + d)) * math.log1p(weight * square)
    total = 0.0
    for f in range(d):
        gap = row[f] - means[which, f]
        if math.isnan(gap):
            continue
        n, scatter = counts[which, f], scatters[which, f, f]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        total += table[np.int64(n)] + 0.5 * math.log(weight / scatter)
        half = shape + 0.5 * n + 0.5
        total -= half * math.log1p(0.5 * weight * gap * gap / scatter)
    return total


@kernel
def _update(factor, work, first):
    """Cholesky factor of a matrix to which `work`, zero before `first`, is added."""
    d = work.shape[0]
    for f in range(first, d):
        root = math.hypot(factor[f, f], work[f])
        cosine, sine = root / factor[f, f], work[f] / factor[f, f]
        factor[f, f] = root
        for g in range(f + 1, d):
            factor[g, f] = (factor[g, f] + sine * work[g]) / cosine
            work[g] = cosine * work[g] - sine * factor[g, f]


@kernel
def _join(row, which, prior, full, members):
    """Add a row to a group."""
    counts, means, scatters, work = members
    mean_count, _, rounding = prior
    d = row.shape[0]
    for f in range(d):
        gap = row[f] - means[which, f]
        if math.isnan(gap):
            continue
        total = mean_count + counts[which, f] + 1.0
        weight = (total - 1.0) / total
        means[which, f] += gap / total
        counts[which, f] += 1.0
        if full:
            work[f] = math.sqrt(weight) * gap
        else:
            scatters[which, f, f] += 0.5 * (weight * gap * gap + rounding[f])
    if full:
        _update(scatters[which], work, 0)
        for f in range(d):
            for g in range(d):
                work[g] = 0.0
            work[f] = math.sqrt(rounding[f])
            _update(scatters[which], work, f)


@kernel
def _log_marginal(which, scale, prior, full, members):
    """Log density of the rows of a group, its parameters summed out; plus a constant.

    The constant is of the rows, the same in whichever groups they are.
    """
    counts, _, scatters, _ = members
    mean_count, shape, _ = prior
    d = scale.shape[0]
    total = 0.0
    if full:
        n, degrees = counts[which, 0], 2.0 * shape + d - 1.0
        for f in range(d):
            total += math.lgamma(0.5 * (degrees + n - f))
            total -= math.lgamma(0.5 * (degrees - f))
            total += 0.5 * degrees * math.log(2.0 * scale[f])
            total -= (degrees + n) * math.log(scatters[which, f, f])
        return total + 0.5 * d * math.log(mean_count / (mean_count + n))
    for f in range(d):
        n = counts[which, f]
        total += math.lgamma(shape + 0.5 * n) - math.lgamma(shape)
        total += shape * math.log(scale[f])
        total -= (shape + 0.5 * n) * math.log(scatters[which, f, f])
        total += 0.5 * math.log(mean_count / (mean_count + n))
    return total


@kernel
def _log_stick(n_here, n_after, concentration):
    """Log probability of the numbers of rows in a piece of the stick and after it."""
    return (
        math.lgamma(1.0 + n_here)
        + math.lgamma(concentration + n_after)
        - math.lgamma(1.0 + concentration + n_here + n_after)
    )


@kernel
def _log_sticks(sizes, concentration):
    """Log probability of the numbers of rows of all atoms, but for a constant."""
    last = sizes.shape[0] - 1
    n_after, total = sizes[last], 0.0
    for a in range(last - 1, -1, -1):
        total += _log_stick(sizes[a], n_after, concentration)
        n_after += sizes[a]
    return total


@kernel
def split_or_merge(
    rows,
    shapes,
    atoms,
    sizes,
    base,
    prior,
    concentration,
    full,
    table,
    order,
    uniforms,
    members,
):
    """Split an atom of a shape or merge two, by a Metropolis step; whether it was done.

    Two rows of one shape are chosen: the first of `order`, and the next of its shape.
    If they have the same atom, the step proposes to split it, else to merge theirs. In
    a split the other rows are shared out one after the other by their predictive
    densities (sequentially allocated, Dahl and Newcomb 2022).

    `rows` (n_rows, n_features), about the locations of their states; `shapes` and
    `atoms` (n_rows,), of which the latter is changed and is negative for a row to leave
    out; `sizes` (n_shapes, n_atoms): rows of each atom, changed; `base`: origins and
    scales, each (n_shapes, n_features). ``table[n]``: log ratio of the gamma functions
    of Student's density given n rows. `order` permutes the rows; ``uniforms[t]``
    decides about row t, the last two about the new atom and the step.
    """
    n_rows, n_atoms = rows.shape[0], sizes.shape[1]
    first, second, start = -1, -1, 0
    for position in range(n_rows):
        t = order[position]
        if atoms[t] >= 0 and first < 0:
            first = t
        elif atoms[t] >= 0 and shapes[t] == shapes[first]:
            second, start = t, position + 1
            break
    if second < 0:
        return False
    g, here, there = shapes[first], atoms[first], atoms[second]
    split = here == there
    n_empty = 0
    for a in range(n_atoms):
        n_empty += sizes[g, a] == 0.0
    if split:
        if n_empty == 0:
            return False
        left = np.int64(uniforms[n_rows] * n_empty)
        for a in range(n_atoms):
            if sizes[g, a] == 0.0:
                here = a if left == 0 else here
                left -= 1
    for which in range(3):
        _begin(which, base[0][g], base[1][g], full, members)
    log_choice, n_here, n_there = 0.0, 1.0, 1.0
    for step in range(2):
        row = rows[first if step == 0 else second]
        _join(row, step, prior, full, members)
        _join(row, 2, prior, full, members)
    for position in range(start, n_rows):
        t = order[position]
        if shapes[t] != g or (atoms[t] != there and (split or atoms[t] != here)):
            continue
        row = rows[t]
        log_here = _log_predictive(row, 0, prior, table, full, members)
        log_there = _log_predictive(row, 1, prior, table, full, members)
        odds = math.log(n_there / n_here) + log_there - log_here
        chance = 1.0 / (1.0 + math.exp(min(odds, 700.0)))
        to_here = uniforms[t] < chance if split else atoms[t] == here
        if to_here:
            n_here += 1.0
            log_choice += math.log(max(chance, 1e-300))
        else:
            n_there += 1.0
            log_choice += math.log(max(1.0 - chance, 1e-300))
        if split and to_here:
            atoms[t] = here
        _join(row, 0 if to_here else 1, prior, full, members)
        _join(row, 2, prior, full, members)
    log_before = _log_sticks(sizes[g], concentration)
    sizes[g, here] = n_here if split else 0.0
    sizes[g, there] = n_there if split else n_here + n_there
    log_ratio = math.log(n_empty + (0.0 if split else 1.0)) - log_choice
    for which in range(3):
        log_marginal = _log_marginal(which, base[1][g], prior, full, members)
        log_ratio += log_marginal if which < 2 else -log_marginal
    log_ratio = log_ratio if split else -log_ratio
    log_ratio += _log_sticks(sizes[g], concentration) - log_before
    accepted = math.log(max(uniforms[n_rows + 1], 1e-300)) < log_ratio
    if accepted and split:
        atoms[first] = here
    elif not accepted:
        sizes[g, here] = 0.0 if split else n_here
        sizes[g, there] = n_here + n_there if split else n_there
    if accepted != split:
        for t in range(n_rows):
            if shapes[t] == g and atoms[t] == here:
                atoms[t] = there
    return accepted


@kernel
def swap_neighbors(shapes, atoms, sizes, concentration, thresholds):
    """Exchange the places of neighbouring atoms on the stick, by Metropolis steps.

    `shapes`, `atoms` (n_rows,) and `sizes` (n_shapes, n_atoms) as in `split_or_merge`;
    `thresholds` (n_shapes, n_atoms - 1): logarithms of uniform variables.
    """
    n_shapes, n_atoms = sizes.shape
    place = np.empty((n_shapes, n_atoms), dtype=np.int64)
    content = np.empty(n_atoms, dtype=np.int64)
    for g in range(n_shapes):
        n_after = 0.0
        for a in range(n_atoms):
            n_after += sizes[g, a]
            content[a] = a
        for a in range(n_atoms - 1):
            one, other = sizes[g, a], sizes[g, a + 1]
            n_after -= one
            rest = n_after - other
            log_ratio = _log_stick(other, one + rest, concentration)
            log_ratio -= _log_stick(one, n_after, concentration)
            if a < n_atoms - 2:
                log_ratio += _log_stick(one, rest, concentration)
                log_ratio -= _log_stick(other, rest, concentration)
            if thresholds[g, a] < log_ratio:
                sizes[g, a], sizes[g, a + 1] = other, one
                content[a], content[a + 1] = content[a + 1], content[a]
                n_after = one + rest
        for a in range(n_atoms):
            place[g, content[a]] = a
    for t in range(atoms.shape[0]):
        if atoms[t] >= 0:
            atoms[t] = place[shapes[t], atoms[t]]
