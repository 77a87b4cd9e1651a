"""Hidden Markov models: moves of rows between the atoms of the emission mixtures.

`share_out` divides the rows of an atom, for a split or a merge: weights, means and
covariances are integrated out, so that a row has Student's predictive density given the
rows before it. `exchange_neighbors` changes the stick-breaking order.

Features come in blocks that are independent given the atom: all features with full
covariances, else each feature by itself, of which values may be missing. `share_out`
summarises groups of rows (the parts so far, then the first part, the second part, and
both) by `counts` and `means` (5, n_features), and `factors` (5, n_features,
n_features), the Cholesky factors of the scatters of the blocks, including the prior's.
`size` is the number of features of a block, `mean_count` the number of rows that the
prior mean counts for, `shape` that of the inverse gamma distribution, and `rounding`
(n_features,) the variance of rounding errors, which is added to the square of each
value. The predictive densities by which rows are assigned leave the errors out in
blocks of several features: there each would be one more update of the Cholesky factor.
"""

import math

import numpy as np

from . import kernel, part

_ROUNDING = 1e-14  # least share of a scatter that the other features do not explain


@part
def _log_predictive(row, mean_count, shape, size, count, mean, factor, constant, work):
    """Return the log density of a row given a group, without a constant of the row.

    `constant` holds the terms that do not depend on the row.
    """
    total = 0.0
    for start in range(0, row.shape[0], size):
        n = count[start]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        square = 0.0
        for f in range(start, start + size):
            value, own = row[f] - mean[f], factor[f]
            for g in range(start, f):
                value -= own[g] * work[g]
            value /= own[f]
            work[f] = value
            square += value * value
        if not math.isnan(square):
            total += constant[start]
            total -= (shape + 0.5 * (n + size)) * math.log1p(weight * square)
    return total


@part
def _join(
    row,
    mean_count,
    rounding,
    table,
    size,
    count,
    mean,
    factor,
    constant,
    work,
):
    """Add a row to a group."""
    for start in range(0, row.shape[0], size):
        if math.isnan(row[start]):
            continue
        stop = start + size
        total = mean_count + count[start] + 1.0
        for f in range(start, stop):
            gap = row[f] - mean[f]
            mean[f] += gap / total
            count[f] += 1.0
            work[f] = math.sqrt((total - 1.0) / total) * gap
        log_scale = 0.5 * size * math.log(total / (total + 1.0))
        for f in range(start, stop):
            before, value = factor[f, f], work[f]
            square = before * before + value * value
            root = math.sqrt(square + (rounding[f] if size == 1 else 0.0))
            factor[f, f] = root
            log_scale -= math.log(root)
            cosine, sine = root / before, value / before
            for g in range(f + 1, stop):
                below = (factor[g, f] + sine * work[g]) / cosine
                factor[g, f] = below
                work[g] = cosine * work[g] - sine * below
        constant[start] = table[np.int64(count[start])] + log_scale


@part
def _log_ratio_of_parts(
    rows,
    to_first,
    mean_count,
    shape,
    rounding,
    size,
    counts,
    means,
    factors,
    gaps,
):
    """Return the log density ratio of the two parts over both, and summarise them.

    They are the last three groups: the first part, the second part, and both. They have
    the prior mean and, as diagonals of `factors`, the roots of the prior scatters,
    before. Scatters are updated row by row. `gaps` (n_features,) is work space.
    """
    degrees, log_ratio = 2.0 * shape + size - 1.0, 0.0
    for f in range(rows.shape[1]):
        root = factors[4, f, f]
        log_ratio += degrees * math.log(root)
        log_ratio -= math.lgamma(0.5 * (degrees - f % size))
        for which in range(2, 5):
            factors[which, f, f] = root * root
    for t in range(rows.shape[0]):
        row = rows[t]
        for step in range(2):
            which = 4 if step == 1 else (2 if to_first[t] else 3)
            count, mean = counts[which], means[which]
            for f in range(rows.shape[1]):
                gap, own = row[f] - mean[f], factors[which, f]
                if math.isnan(gap):
                    continue
                count[f] += 1.0
                share = 1.0 / (mean_count + count[f])
                mean[f] += share * gap
                gaps[f] = gap
                own[f] += rounding[f]
                for h in range(f - f % size, f + 1):
                    own[h] += (1.0 - share) * gap * gaps[h]
    for which in range(2, 5):
        factor = factors[which]
        for f in range(rows.shape[1]):
            own, n = factor[f], counts[which, f]
            least = _ROUNDING * own[f]
            for h in range(f - f % size, f + 1):
                value = own[h]
                for i in range(f - f % size, h):
                    value -= own[i] * factor[h, i]
                if h < f:
                    own[h] = value / factor[h, h]
                else:
                    own[f] = math.sqrt(value if value > least else least)
            log_density = math.lgamma(0.5 * (degrees - f % size + n))
            log_density -= (degrees + n) * math.log(own[f])
            log_density -= 0.5 * math.log(1.0 + n / mean_count)
            log_ratio += -log_density if which == 4 else log_density
    return log_ratio


@kernel
def share_out(
    rows,
    to_first,
    split,
    ceiling,
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
    predictive densities and ``uniforms[t]``, else as `to_first` prescribes. The ratio
    is divided by the probability of the assignment; if that is prescribed, and the
    ratio is known to be at least `ceiling`, a lower bound of it is returned.

    `rows` (n_rows, n_features); `to_first` (n_rows,): whether each row is in the first
    group, which a split overwrites. ``table[n]``: log ratio of the gamma functions of
    Student's density given n rows. `counts`, `means` and `factors` are those of empty
    groups, and are overwritten. `constants` (2, n_features) and `work` (n_features +
    2,) are work space.
    """
    n_first, last = 0.0, rows.shape[1]
    log_ratio = 0.0
    for step in range(2):
        # The ratio of the parts is cheap: most proposals to merge end with it.
        if split == (step == 1):
            log_ratio += _log_ratio_of_parts(
                rows,
                to_first,
                mean_count,
                shape,
                rounding,
                size,
                counts,
                means,
                factors,
                work,
            )
            continue
        for f in range(last):
            # Of an empty group, which has densities of single features only.
            log_scale = 0.5 * size * math.log(mean_count / (mean_count + 1.0))
            log_scale -= math.log(factors[0, f, f])
            constants[0, f] = constants[1, f] = table[0] + log_scale
        for t in range(rows.shape[0]):
            if not split and log_ratio >= ceiling:
                return log_ratio
            row, here = rows[t], to_first[t]
            if t > 1:
                for g in range(2):
                    work[last + g] = _log_predictive(
                        row,
                        mean_count,
                        shape,
                        size,
                        counts[g],
                        means[g],
                        factors[g],
                        constants[g],
                        work,
                    )
                odds = math.log((t - n_first) / n_first) + work[last + 1] - work[last]
                chance = 1.0 / (1.0 + math.exp(odds if odds < 700.0 else 700.0))
                if split:
                    here = uniforms[t] < chance
                    to_first[t] = here
                log_ratio -= math.log((chance if here else 1.0 - chance) + 1e-300)
            n_first += 1.0 if here else 0.0
            g = 0 if here else 1
            _join(
                row,
                mean_count,
                rounding,
                table,
                size,
                counts[g],
                means[g],
                factors[g],
                constants[g],
                work,
            )
    return log_ratio


@kernel
def exchange_neighbors(shapes, atoms, sizes, thresholds, concentration, places):
    """Exchange neighbouring atoms in the stick-breaking order, by Metropolis steps.

    `shapes` and `atoms` (n_rows,), of which the latter is negative for a row to leave
    out, and `sizes` (n_shapes, n_atoms), rows of each atom; the last two are changed.
    `thresholds` (n_shapes, n_atoms - 1): a step is taken if the log ratio of
    probabilities is larger. `places` (n_shapes, n_atoms) is work space.
    """
    last = sizes.shape[1] - 1
    moved = False
    for shape in range(sizes.shape[0]):
        n_rows, current = 0.0, 0  # the atom in place a: later atoms are in their own
        for a in range(last + 1):
            n_rows += sizes[shape, a]
        for a in range(last):
            own, other = sizes[shape, a], sizes[shape, a + 1]
            log_ratio = -math.inf
            if own > 0.0 or other > 0.0:
                log_ratio = math.log(concentration + (n_rows - own))
                log_ratio -= math.log(concentration + (n_rows - other))
                if a + 1 == last:
                    log_ratio = math.lgamma(concentration + own)
                    log_ratio -= math.lgamma(1.0 + own)
                    log_ratio -= math.lgamma(concentration + other)
                    log_ratio += math.lgamma(1.0 + other)
            if thresholds[shape, a] < log_ratio:
                sizes[shape, a], sizes[shape, a + 1] = other, own
                places[shape, a + 1] = a
                moved = True
            else:
                places[shape, current] = a
                current = a + 1
            n_rows -= sizes[shape, a]
            if n_rows == 0.0:  # the other atoms are all empty
                break
        places[shape, current] = last
    if moved:
        for t in range(atoms.shape[0]):
            if atoms[t] >= 0:
                atoms[t] = places[shapes[t], atoms[t]]
