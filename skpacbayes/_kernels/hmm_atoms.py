"""Hidden Markov models: moves of the rows among the atoms of their shape.

Weights, means and covariances of the atoms are summed out. Numbers of rows have the
probability that pieces of a broken stick give them; rows of an atom have Student's
predictive density given those before. `prior` is, everywhere, the number of rows that
the prior mean counts for, the shape of the inverse gamma distribution, and
(n_features,) what rounding adds to the square of a value. `members` are three groups of
rows: counts and means (3, n_features); scatters (3, n_features, n_features), the
prior's included: the Cholesky factor if `full`, else the diagonal; and (n_features,)
work space.
"""

import math

import numpy as np

from . import kernel


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
def _join(row, which, prior, full, members):
    """Add a row to a group.

    The Cholesky factor is updated by the gap from the mean, then by what rounding adds
    to each feature: one vector after the other, all zero before feature `first`.
    """
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
    for vector in range(d + 1 if full else 0):
        first = 0
        if vector > 0:
            first = vector - 1
            for g in range(d):
                work[g] = 0.0
            work[first] = math.sqrt(rounding[first])
        for f in range(first, d):
            root = math.hypot(scatters[which, f, f], work[f])
            cosine, sine = root / scatters[which, f, f], work[f] / scatters[which, f, f]
            scatters[which, f, f] = root
            for g in range(f + 1, d):
                scatters[which, g, f] = (
                    scatters[which, g, f] + sine * work[g]
                ) / cosine
                work[g] = cosine * work[g] - sine * scatters[which, g, f]


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
def _log_sticks(sizes, concentration):
    """Log probability of the numbers of rows of all atoms, but for a constant."""
    last = sizes.shape[0] - 1
    n_after, total = sizes[last], 0.0
    for a in range(last - 1, -1, -1):
        total += math.lgamma(1.0 + sizes[a]) + math.lgamma(concentration + n_after)
        n_after += sizes[a]
        total -= math.lgamma(1.0 + concentration + n_after)
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
    counts, means, scatters, _ = members
    for which in range(3):
        for f in range(rows.shape[1]):
            counts[which, f], means[which, f] = 0.0, base[0][g, f]
            scale = base[1][g, f]
            for h in range(rows.shape[1]):
                scatters[which, f, h] = 0.0
            scatters[which, f, f] = math.sqrt(2.0 * scale) if full else scale
    log_choice, n_here, n_there, logs = 0.0, 0.0, 0.0, np.empty(2)
    for position in range(start - 2, n_rows):
        t = first if position == start - 2 else order[position]
        chosen, to_here = position < start, position == start - 2
        if not chosen:
            if shapes[t] != g or (atoms[t] != there and (split or atoms[t] != here)):
                continue
            for which in range(2):
                logs[which] = _log_predictive(
                    rows[t], which, prior, table, full, members
                )
            odds = math.log(n_there / n_here) + logs[1] - logs[0]
            chance = 1.0 / (1.0 + math.exp(odds if odds < 700.0 else 700.0))
            to_here = uniforms[t] < chance if split else atoms[t] == here
            chosen_chance = chance if to_here else 1.0 - chance
            log_choice += math.log(chosen_chance + 1e-300)
            if split and to_here:
                atoms[t] = here
        n_here += 1.0 if to_here else 0.0
        n_there += 0.0 if to_here else 1.0
        for step in range(2):
            which = 2 if step == 1 else (0 if to_here else 1)
            _join(rows[t], which, prior, full, members)
    log_ratio = math.log(n_empty + (0.0 if split else 1.0)) - log_choice
    for which in range(3):
        log_marginal = _log_marginal(which, base[1][g], prior, full, members)
        log_ratio += log_marginal if which < 2 else -log_marginal
    log_ratio = log_ratio if split else -log_ratio
    for step in range(2):
        log_sticks = _log_sticks(sizes[g], concentration)
        log_ratio += log_sticks if step == 1 else -log_sticks
        sizes[g, here] = n_here if split else 0.0
        sizes[g, there] = n_there if split else n_here + n_there
    accepted = math.log(uniforms[n_rows + 1] + 1e-300) < log_ratio
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
        log_before = 0.0
        for a in range(n_atoms):
            content[a] = a
        for a in range(-1, n_atoms - 1):
            if a >= 0:
                sizes[g, a], sizes[g, a + 1] = sizes[g, a + 1], sizes[g, a]
            log_now = _log_sticks(sizes[g], concentration)
            if a < 0 or thresholds[g, a] < log_now - log_before:
                log_before = log_now
                if a >= 0:
                    content[a], content[a + 1] = content[a + 1], content[a]
            else:
                sizes[g, a], sizes[g, a + 1] = sizes[g, a + 1], sizes[g, a]
        for a in range(n_atoms):
            place[g, content[a]] = a
    for t in range(atoms.shape[0]):
        if atoms[t] >= 0:
            atoms[t] = place[shapes[t], atoms[t]]
