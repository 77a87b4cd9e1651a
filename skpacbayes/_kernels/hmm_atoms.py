"""Hidden Markov models: updates of the atoms of the emission mixtures.

`share_out` divides the rows of an atom, for a split or a merge: weights, means and
covariances are integrated out, so that a row has Student's predictive density given the
rows before it. `exchange_neighbors` changes the stick-breaking order. The other kernels
draw weights, means and covariances.

Features come in blocks that are independent given the atom: all features with full
covariances, else each feature by itself, of which values may be missing. `share_out`
summarises three groups of rows (the first part, the second part, and both) by `counts`
and `means` (3, n_features), and `factors` (3, n_features, n_features), the Cholesky
factors of the scatters of the blocks, including the prior's. `size` is the number of
features of a block, `mean_count` the number of rows that the prior mean counts for,
`shape` that of the inverse gamma distribution, and `rounding` (n_features,) the
variance of rounding errors, which is added to the square of each value.
"""

import math

import numpy as np

from . import allocating, kernel, part
from .hmm import emission_densities

_ROUNDING = 1e-10  # share of a variance that keeps a matrix positive definite


@part
def _log_predictive(
    row, which, mean_count, shape, size, counts, means, factors, constants, work
):
    """Return the log density of a row given a group, without a constant of the row.

    `constants` holds the terms that do not depend on the row.
    """
    total = 0.0
    for start in range(0, row.shape[0], size):
        n = counts[which, start]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        square = 0.0
        for f in range(start, start + size):
            value = row[f] - means[which, f]
            for g in range(start, f):
                value -= factors[which, f, g] * work[g]
            value /= factors[which, f, f]
            work[f] = value
            square += value * value
        if not math.isnan(square):
            total += constants[which, start]
            total -= (shape + 0.5 * (n + size)) * math.log1p(weight * square)
    return total


@part
def _join(
    row,
    which,
    mean_count,
    rounding,
    table,
    size,
    counts,
    means,
    factors,
    constants,
    work,
):
    """Add a row to a group.

    The Cholesky factor is updated by the gap from the mean, then by the rounding error
    of each feature: one vector after the other, all zero before feature `first`. The
    constants of the predictive density are updated for the first two groups only, as
    the third has none.
    """
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
                if rounding[first] == 0.0:
                    continue
                for g in range(start, stop):
                    work[g] = 0.0
                work[first] = math.sqrt(rounding[first])
            for f in range(max(first, start), stop):
                before, value = factors[which, f, f], work[f]
                root = math.sqrt(before * before + value * value)
                factors[which, f, f] = root
                cosine, sine = root / before, value / before
                for g in range(f + 1, stop):
                    below = (factors[which, g, f] + sine * work[g]) / cosine
                    factors[which, g, f] = below
                    work[g] = cosine * work[g] - sine * below
        if which < 2:
            log_scale = 0.5 * size * math.log(total / (total + 1.0))
            for f in range(start, stop):
                log_scale -= math.log(factors[which, f, f])
            constants[which, start] = table[np.int64(counts[which, start])] + log_scale


@kernel
def share_out(
    rows,
    to_first,
    split,
    uniforms,
    mean_count,
    shape,
    rounding,
    table,
    size,
    counts,
    means,
    factors,
    constants,
    work,
):
    """Divide rows into two groups; return the log density ratio of split over merged.

    The first row goes to the first group, the second row to the second group. Each
    further row is assigned given the rows before it: in a `split` at random, by its
    predictive densities and ``uniforms[t]``, else as `to_first` prescribes. All rows
    are also added to the third group. The ratio is divided by the probability of the
    assignment.

    `rows` (n_rows, n_features); `to_first` (n_rows,): whether each row is in the first
    group, which a split overwrites. ``table[n]``: log ratio of the gamma functions of
    Student's density given n rows. `counts`, `means` and `factors` are those of empty
    groups, and are overwritten by those of the groups. `constants` (2, n_features) and
    `work` (n_features + 2,) are work space.
    """
    n_first, last = 0.0, rows.shape[1]
    degrees = 2.0 * shape + size - 1.0
    log_ratio = 0.0
    for f in range(last):
        log_ratio += degrees * math.log(factors[2, f, f])
        log_ratio -= math.lgamma(0.5 * (degrees - f % size))
        # Of an empty group, which has densities of single features only.
        log_scale = 0.5 * size * math.log(mean_count / (mean_count + 1.0))
        log_scale -= math.log(factors[2, f, f])
        constants[0, f] = constants[1, f] = table[0] + log_scale
    for t in range(rows.shape[0]):
        row, here = rows[t], to_first[t]
        if t > 1:
            for g in range(2):
                work[last + g] = _log_predictive(
                    row,
                    g,
                    mean_count,
                    shape,
                    size,
                    counts,
                    means,
                    factors,
                    constants,
                    work,
                )
            odds = math.log((t - n_first) / n_first) + work[last + 1] - work[last]
            chance = 1.0 / (1.0 + math.exp(min(odds, 700.0)))
            if split:
                here = uniforms[t] < chance
                to_first[t] = here
            log_ratio -= math.log((chance if here else 1.0 - chance) + 1e-300)
        n_first += 1.0 if here else 0.0
        for step in range(2):
            _join(
                row,
                2 if step == 1 else (0 if here else 1),
                mean_count,
                rounding,
                table,
                size,
                counts,
                means,
                factors,
                constants,
                work,
            )
    for g in range(3):
        sign = -1.0 if g == 2 else 1.0
        for f in range(last):
            n = counts[g, f]
            log_density = math.lgamma(0.5 * (degrees - f % size + n))
            log_density -= (degrees + n) * math.log(factors[g, f, f])
            log_density -= 0.5 * math.log(1.0 + n / mean_count)
            log_ratio += sign * log_density
    return log_ratio


@kernel
def exchange_neighbors(sizes, thresholds, concentration, order):
    """Exchange neighbouring atoms in the stick-breaking order, by Metropolis steps.

    `sizes` (n_shapes, n_atoms): rows of each atom, and `order`: the atom in each
    place; both are changed. `thresholds` (n_shapes, n_atoms - 1): a step is taken
    if the log ratio of probabilities is larger. Returns whether an atom has moved.
    """
    last = sizes.shape[1] - 1
    moved = False
    for shape in range(sizes.shape[0]):
        n_rows = 0.0
        for a in range(last + 1):
            n_rows += sizes[shape, a]
        for a in range(last):
            own, other = sizes[shape, a], sizes[shape, a + 1]
            if own == 0.0 and other == 0.0:
                continue
            log_ratio = math.log(concentration + (n_rows - own))
            log_ratio -= math.log(concentration + (n_rows - other))
            if a + 1 == last:
                log_ratio = math.lgamma(concentration + own) - math.lgamma(1.0 + own)
                log_ratio -= math.lgamma(concentration + other)
                log_ratio += math.lgamma(1.0 + other)
            if thresholds[shape, a] < log_ratio:
                sizes[shape, a], sizes[shape, a + 1] = other, own
                before = order[shape, a]
                order[shape, a] = order[shape, a + 1]
                order[shape, a + 1] = before
                moved = True
            n_rows -= sizes[shape, a]
            if n_rows == 0.0:  # the other atoms are all empty
                break
    return moved


@kernel
def stick_log_weights(taken, left, log_weights):
    """Fill in the logarithms of stick-breaking weights.

    Each weight is the share ``taken / (taken + left)`` of the remaining stick of its
    shape, both (n_shapes, n_atoms - 1); the last weight is all that remains.
    `log_weights` (n_shapes, n_atoms).
    """
    last = taken.shape[1]
    for shape in range(taken.shape[0]):
        passed = 0.0
        for a in range(last):
            log_sum = np.log(taken[shape, a] + left[shape, a])
            log_weights[shape, a] = passed + (np.log(taken[shape, a]) - log_sum)
            passed += np.log(left[shape, a]) - log_sum
        log_weights[shape, last] = passed


@kernel
def draw_gaussians(
    counts, sums, products, origins, scales, mean_count, noise, means, factors, work
):
    """Draw means and factors of atoms with full covariances, given their rows.

    The moments `counts`, `sums` (n_shapes, n_atoms, n_features) and `products`, of
    which the lower triangles are read, are about `means`, which the draws replace;
    `origins` and `scales` (n_shapes, n_features): the prior. `noise` (n_shapes,
    n_atoms, n_features): normal variables. `factors` (n_shapes, n_atoms, n_features,
    n_features): Bartlett's lower triangles, of normal variables under roots of
    chi-squares; they are multiplied by the inverse of the Cholesky factor of the
    scatter. `work` (n_features + 3, n_features) is work space.
    """
    n_shapes, n_atoms, n_features = means.shape
    step, gaps, move = work[n_features], work[n_features + 1], work[n_features + 2]
    for shape in range(n_shapes):
        for a in range(n_atoms):
            factor, n = factors[shape, a], counts[shape, a, 0]
            for f in range(n_features):
                total, gap = sums[shape, a, f], means[shape, a, f] - origins[shape, f]
                step[f] = (total - mean_count * gap) / (mean_count + n)
                gaps[f] = gap + step[f]
                move[f] = noise[shape, a, f]
                for g in range(f + 1):
                    # The scatter about the new mean, and about the origin.
                    value = products[shape, a, f, g] + n * step[f] * step[g]
                    value -= step[f] * sums[shape, a, g] + step[g] * total
                    value += mean_count * gaps[f] * gaps[g]
                    if g == f:
                        value = (value + 2.0 * scales[shape, f]) * (1.0 + _ROUNDING)
                    least = _ROUNDING * value
                    for h in range(g):
                        value -= work[f, h] * work[g, h]
                    if g == f:
                        work[f, f] = math.sqrt(value if value > least else least)
                    else:
                        work[f, g] = value / work[g, g]
            for f in range(n_features):
                for g in range(f, -1, -1):
                    value = factor[f, g]
                    for h in range(g + 1, f + 1):
                        value -= factor[f, h] * work[h, g]
                    factor[f, g] = value / work[g, g]
                for g in range(f):
                    move[f] -= factor[f, g] * move[g]
                move[f] /= factor[f, f]
                means[shape, a, f] += step[f] + move[f] / math.sqrt(mean_count + n)


@part
def _gamma(shape, rng):
    """Draw a gamma variable by the method of Marsaglia and Tsang (2000).

    Normals are computed from uniforms, as those of the generator take long to compile.
    """
    factor = 1.0
    if shape < 1.0:
        factor = (1.0 - rng.random()) ** (1.0 / shape)
        shape += 1.0
    least = shape - 1.0 / 3.0
    spread = 1.0 / math.sqrt(9.0 * least)
    while True:
        x = math.sqrt(-2.0 * math.log(1.0 - rng.random()))
        x *= math.cos(2.0 * math.pi * rng.random())
        root = 1.0 + spread * x
        if root > 0.0:
            v = root * root * root
            log_height = 0.5 * x * x + least * (1.0 - v + math.log(v))
            if math.log(1.0 - rng.random()) < log_height:
                return factor * least * v


@part
def _update_mixture(
    columns,
    atoms,
    rounding,
    prior,
    full,
    uniforms,
    noise,
    triangles,
    log_weights,
    factors,
    means,
    origins,
    scales,
    rng,
):
    """Update one mixture, see `update_mixtures`; `uniforms` (n_updates, n_rows)."""
    n_features, n_rows = columns.shape
    n_atoms = log_weights.shape[1]
    mean_count, shape, scale_shape, scale_rate, concentration, rigidity = prior
    highest, densities = np.empty(n_rows), np.empty((1, n_rows))
    nowhere, work = np.zeros((1, n_features)), np.empty((n_atoms + 3, 256))
    of_factors = np.empty((n_features + 3, n_features))
    counts, sums = (
        np.zeros((1, n_atoms, n_features)),
        np.zeros((1, n_atoms, n_features)),
    )
    products = np.zeros((1, n_atoms, n_features, n_features))
    per_atom = shape + (0.5 * (n_features - 1) if full else 0.0)
    for u in range(uniforms.shape[0]):
        if u > 0:
            emission_densities(
                columns,
                factors,
                means,
                nowhere,
                log_weights,
                rounding,
                full,
                uniforms[u],
                highest,
                densities,
                atoms,
                work,
            )
        counts[:], sums[:], products[:] = 0.0, 0.0, 0.0
        for t in range(n_rows):
            for f in range(n_features):
                counts[0, atoms[0, t], f] += 1.0
                sums[0, atoms[0, t], f] += columns[f, t]
        for f in range(n_features):
            n_known, total, pull = 0.0, 0.0, 0.0
            for a in range(n_atoms):
                if counts[0, a, f] == 0.0:
                    continue
                precision = 0.0
                for g in range(f, n_features if full else f + 1):
                    precision += factors[0, a, g, f] * factors[0, a, g, f]
                n_known += 1.0
                total += precision
                pull += precision * means[0, a, f]
                # Moments are about the mean of the rows, for accuracy.
                means[0, a, f] = sums[0, a, f] / counts[0, a, f]
            if u == 0:
                continue
            drawn = _gamma(scale_shape + n_known * per_atom, rng)
            scales[0, f] = drawn / (scale_rate + total)
            if rigidity > 0.0:
                precision = rigidity + mean_count * total
                origins[0, f] = mean_count * pull / precision
                origins[0, f] += noise[u, 0, n_atoms, f] / math.sqrt(precision)
        sums[:] = 0.0
        for t in range(n_rows):
            a = atoms[0, t]
            for f in range(n_features):
                gap = columns[f, t] - means[0, a, f]
                sums[0, a, f] += gap
                for g in range(0 if full else f, f + 1):
                    other = columns[g, t] - means[0, a, g]
                    products[0, a, f, g] += gap * other
        passed, rest = 0.0, float(n_rows)
        for a in range(n_atoms):
            log_weights[0, a] = passed
            if a + 1 < n_atoms:
                rest -= counts[0, a, 0]
                taken = _gamma(1.0 + counts[0, a, 0], rng)
                left = _gamma(concentration + rest, rng)
                log_weights[0, a] += np.log(taken) - np.log(taken + left)
                passed += np.log(left) - np.log(taken + left)
            for f in range(n_features):
                n = counts[0, a, f]
                products[0, a, f, f] += n * rounding[f]
                chi = _gamma(shape + 0.5 * (n + (f if full else 0.0)), rng)
                if full:
                    for g in range(f):
                        factors[0, a, f, g] = triangles[u, 0, a, f, g]
                    factors[0, a, f, f] = math.sqrt(2.0 * chi)
                    continue
                total, gap = mean_count + n, means[0, a, f] - origins[0, f]
                step = (sums[0, a, f] - mean_count * gap) / total
                square = products[0, a, f, f]
                square += step * (n * step - 2.0 * sums[0, a, f])
                square = max(square, 0.0) + mean_count * (gap + step) ** 2
                root = math.sqrt(chi / (scales[0, f] + 0.5 * square))
                factors[0, a, f, f] = root
                means[0, a, f] += step + noise[u, 0, a, f] / (root * math.sqrt(total))
        if full:
            draw_gaussians(
                counts,
                sums,
                products,
                origins,
                scales,
                mean_count,
                noise[u],
                means,
                factors,
                of_factors,
            )


@allocating
def update_mixtures(
    columns,
    stops,
    atoms,
    rounding,
    prior,
    full,
    uniforms,
    noise,
    triangles,
    log_weights,
    factors,
    means,
    origins,
    scales,
    rng,
):
    """Draw the parameters of mixtures and the atoms of rows, in turn.

    The first update draws weights, means and factors given the atoms. Each further
    update begins with the atoms of the rows, the scales and, unless `full`, the origin.
    The conditionals are those of `_dirichlet_process_conditionals`.

    `columns` (n_features, n_rows), without missing values, ordered by mixture: the rows
    of mixture g end before ``stops[g]``. `atoms` (n_rows,) is changed.
    `rounding` (n_features,): variances of rounding errors. `prior`: mean count, shape,
    shape and rate of the scales, concentration, and the precision of the origin, which
    is not drawn if that is 0. Each update uses its own uniform variables, `uniforms`
    (n_updates, n_rows), and normal variables, `noise` (n_shapes, n_updates, 1, n_atoms
    + 1, n_features) and, if `full`, `triangles` (n_shapes, n_updates, 1, n_atoms,
    n_features, n_features).

    The other arrays are overwritten: `log_weights` (n_shapes, n_atoms), `factors`
    (n_shapes, n_atoms, n_features, n_features), `means` (n_shapes, n_atoms,
    n_features), `origins` and `scales` (n_shapes, n_features).
    """
    start = 0
    for g in range(stops.shape[0]):
        stop = stops[g]
        n_rows = stop - start
        own, known = (
            np.empty((columns.shape[0], n_rows)),
            np.empty((1, n_rows), np.int64),
        )
        drawn = np.empty((uniforms.shape[0], n_rows))
        for t in range(n_rows):
            known[0, t] = atoms[start + t]
            for f in range(columns.shape[0]):
                own[f, t] = columns[f, start + t]
            for u in range(uniforms.shape[0]):
                drawn[u, t] = uniforms[u, start + t]
        _update_mixture(
            own,
            known,
            rounding,
            prior,
            full,
            drawn,
            noise[g],
            triangles[g],
            log_weights[g : g + 1],
            factors[g : g + 1],
            means[g : g + 1],
            origins[g : g + 1],
            scales[g : g + 1],
            rng,
        )
        for t in range(n_rows):
            atoms[start + t] = known[0, t]
        start = stop
