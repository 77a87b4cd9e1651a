"""Hidden Markov models: moves of the rows among the atoms of their shape.

Weights, means and covariances of the atoms are summed out. Numbers of rows have the
probability that pieces of a broken stick give them; rows of an atom have Student's
predictive density given those before. Features come in blocks that are independent
given the atom: all features with full covariances, else each feature by itself, a
value of which may be missing. `prior` is, everywhere, the number of rows that
the prior mean counts for, the shape of the inverse gamma distribution, and
(n_features,) what rounding adds to the square of a value. `members` are three groups of
rows: counts and means (3, n_features); Cholesky factors of the scatters of the blocks,
the prior's included, (3, n_features, n_features); and (n_features,) work space.
"""

import math

import numpy as np

from . import kernel, part


@part
def _log_predictive(row, which, prior, table, size, members):
    """Log density of a row given a group, but for a constant of the row.

    `size`: number of features of a block.
    """
    counts, means, factors, work = members
    mean_count, shape, _ = prior
    total = 0.0
    for start in range(0, row.shape[0], size):
        n = counts[which, start]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        square, log_scale = 0.0, 0.5 * size * math.log(weight)
        for f in range(start, start + size):
            value = row[f] - means[which, f]
            for g in range(start, f):
                value -= factors[which, f, g] * work[g]
            work[f] = value / factors[which, f, f]
            square += work[f] * work[f]
            log_scale -= math.log(factors[which, f, f])
        if not math.isnan(square):
            total += table[np.int64(n)] + log_scale
            total -= (shape + 0.5 * (n + size)) * math.log1p(weight * square)
    return total


@part
def _join(row, which, prior, size, members):
    """Add a row to a group.

    The Cholesky factor is updated by the gap from the mean, then by what rounding adds
    to each feature: one vector after the other, all zero before feature `first`.
    """
    counts, means, factors, work = members
    mean_count, _, rounding = prior
    for start in range(0, row.shape[0], size):
        if math.isnan(row[start]):
            continue
        stop = start + size
        total = mean_count + counts[which, start] + 1.0
        for f in range(start, stop):
            gap = row[f] - means[which, f]
            means[which, f] += gap / total
            counts[which, f] += 1.0
            work[f] = math.sqrt((total - 1.0) / total) * gap
        for first in range(start - 1, stop):
            if first >= start:
                for g in range(start, stop):
                    work[g] = 0.0
                work[first] = math.sqrt(rounding[first])
            for f in range(max(first, start), stop):
                before = factors[which, f, f]
                root = math.sqrt(before * before + work[f] * work[f])
                factors[which, f, f] = root
                cosine, sine = root / before, work[f] / before
                for g in range(f + 1, stop):
                    below = (factors[which, g, f] + sine * work[g]) / cosine
                    factors[which, g, f] = below
                    work[g] = cosine * work[g] - sine * below


@part
def _log_marginal(which, scale, prior, size, members):
    """Log density of the rows of a group, its parameters summed out; plus a constant.

    The constant is of the rows, the same in whichever groups they are.
    """
    counts, _, factors, _ = members
    mean_count, shape, _ = prior
    degrees = 2.0 * shape + size - 1.0
    total = 0.0
    for f in range(scale.shape[0]):
        n, place = counts[which, f], f % size
        total += math.lgamma(0.5 * (degrees + n - place))
        total -= math.lgamma(0.5 * (degrees - place))
        total += 0.5 * degrees * math.log(2.0 * scale[f])
        total -= (degrees + n) * math.log(factors[which, f, f])
        total += 0.5 * math.log(mean_count / (mean_count + n))
    return total


@part
def _first_two(shapes, atoms, order):
    """Return the first row of `order`, the next of its shape, and the place after it.

    The second is -1 where there is none. Rows with a negative atom are left out.
    """
    first, second, start = -1, -1, 0
    for position in range(order.shape[0]):
        t = order[position]
        if atoms[t] >= 0 and first < 0:
            first = t
        elif atoms[t] >= 0 and shapes[t] == shapes[first]:
            second, start = t, position + 1
            break
    return first, second, start


@part
def _begin_groups(base, g, members):
    """Let all groups be empty: the prior's origins and scales of shape g."""
    counts, means, factors, _ = members
    for which in range(counts.shape[0]):
        for f in range(counts.shape[1]):
            counts[which, f], means[which, f] = 0.0, base[0][g, f]
            for h in range(counts.shape[1]):
                factors[which, f, h] = 0.0
            factors[which, f, f] = math.sqrt(2.0 * base[1][g, f])


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
    size = rows.shape[1] if full else 1  # features of a block
    first, second, start = _first_two(shapes, atoms, order)
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
    _begin_groups(base, g, members)
    log_choice, n_here, n_there, logs = 0.0, 0.0, 0.0, np.empty(2)
    for position in range(start - 2, n_rows):
        t = first if position == start - 2 else order[position]
        chosen, to_here = position < start, position == start - 2
        if not chosen:
            if shapes[t] != g or (atoms[t] != there and (split or atoms[t] != here)):
                continue
            for which in range(2):
                logs[which] = _log_predictive(
                    rows[t], which, prior, table, size, members
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
            _join(rows[t], which, prior, size, members)
    log_ratio = math.log(n_empty + (0.0 if split else 1.0)) - log_choice
    for which in range(3):
        log_marginal = _log_marginal(which, base[1][g], prior, size, members)
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
