"""Hidden Markov models: moves of the rows among the atoms of their shape.

Weights, means and covariances of the atoms are summed out. Numbers of rows have the
probability that pieces of a broken stick give them; rows of an atom have Student's
predictive density given those before. Features come in blocks that are independent
given the atom: all features with full covariances, else each feature by itself, a
value of which may be missing. What is known of three groups of rows is `counts` and
`means` (3, n_features), and `factors` (3, n_features, n_features): Cholesky factors of
the scatters of the blocks, the prior's included. `size` is the number of features of a
block, `mean_count` the number of rows that the prior mean counts for, `shape` that of
the inverse gamma distribution, and `rounding` (n_features,) what rounding adds to the
square of a value.
"""

import math

import numpy as np

from . import kernel, part


@part
def _log_predictive(
    row, which, mean_count, shape, table, size, counts, means, factors, work
):
    """Log density of a row given a group, but for a constant of the row."""
    total = 0.0
    for start in range(0, row.shape[0], size):
        n = counts[which, start]
        weight = (mean_count + n) / (mean_count + n + 1.0)
        square, log_scale = 0.0, 0.5 * size * math.log(weight)
        for f in range(start, start + size):
            value = row[f] - means[which, f]
            for g in range(start, f):
                value -= factors[which, f, g] * work[g]
            diagonal = factors[which, f, f]
            value /= diagonal
            work[f] = value
            square += value * value
            log_scale -= math.log(diagonal)
        if not math.isnan(square):
            total += table[np.int64(n)] + log_scale
            total -= (shape + 0.5 * (n + size)) * math.log1p(weight * square)
    return total


@part
def _join(row, which, mean_count, rounding, size, counts, means, factors, work):
    """Add a row to a group.

    The Cholesky factor is updated by the gap from the mean, then by what rounding adds
    to each feature: one vector after the other, all zero before feature `first`.
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
    work,
):
    """Share rows out between two groups; log probability of the shares.

    The first row goes to the first group, the second to the other, and the rest one
    after the other by their predictive densities: in a `split` as ``uniforms[t]`` says,
    else as ``to_first[t]`` says. All rows go to the third group as well.

    `rows` (n_rows, n_features); `to_first` (n_rows,): whether a row goes to the first
    group, receives that in a split. ``table[n]``: log ratio of the gamma functions of
    Student's density given n rows. `counts`, `means` and `factors` of empty groups
    receive those of the groups; `work` (n_features + 2,) is work space.
    """
    n_first, last = 0.0, rows.shape[1]
    log_probability = 0.0
    for t in range(rows.shape[0]):
        row, here = rows[t], to_first[t]
        if t > 1:
            for g in range(2):
                work[last + g] = _log_predictive(
                    row, g, mean_count, shape, table, size, counts, means, factors, work
                )
            odds = math.log((t - n_first) / n_first) + work[last + 1] - work[last]
            chance = 1.0 / (1.0 + math.exp(min(odds, 700.0)))
            if split:
                here = uniforms[t] < chance
                to_first[t] = here
            log_probability += math.log((chance if here else 1.0 - chance) + 1e-300)
        n_first += 1.0 if here else 0.0
        for step in range(2):
            g = 2 if step == 1 else (0 if here else 1)
            _join(row, g, mean_count, rounding, size, counts, means, factors, work)
    return log_probability
