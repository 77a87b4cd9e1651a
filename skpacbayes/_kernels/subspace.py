"""Mixtures whose clusters have relevant features of their own: a Gibbs sweep, seeds.

A cluster and a feature have three statistics: the number of rows, their sum and that of
their squares, in standard units. The *gain* of a feature of a cluster is the log
evidence of its values, relevant or not, over that of the feature's background.

One row changes the statistics of a few clusters, and asks for the gains of all: so the
loops run over all features of all clusters at once, in arrays of n_clusters times
n_features numbers, which the processor takes several at a time. Logarithm and
exponential are series, as a call of a library's function in the loop would forbid that.
"""

import math
from typing import NamedTuple

import numpy as np

from . import kernel

# The prior of a cluster's own mean and variance: mean 0 with the weight of so many
# rows, and an inverse gamma distribution of this shape and scale.
PRIOR_COUNT = 0.05
PRIOR_SHAPE = 1.5
PRIOR_SCALE = 0.3

_LOG_2 = math.log(2.0)
_ROOT_2 = math.sqrt(2.0)
# Bits of 2^52, of 1, and of the fraction of a float; 2^52 and the bias of an exponent.
_BITS_OF_2_52, _BITS_OF_1, _FRACTION = 0x433 << 52, 0x3FF << 52, (1 << 52) - 1
_BIAS = 2.0**52 + 1023.0


class Model(NamedTuple):
    """The background of each feature, and the prior of relevance and shifts.

    `mean`, `precision` and `log_variance` (n_features,); `log_irrelevant` and
    `log_relevant`, prior log probabilities; `factor`, of the prior variance of a
    shift; `table` (n_samples + 2,), what of the log evidence depends on a count alone.
    """

    mean: np.ndarray
    precision: np.ndarray
    log_variance: np.ndarray
    log_irrelevant: float
    log_relevant: float
    factor: float
    table: np.ndarray


class Clusters(NamedTuple):
    """Statistics of clusters, and the gains of each, summed over the features.

    `counts` and `gains` (n_clusters,); `sums` and `squares` (n_clusters, n_features).
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    gains: np.ndarray

    @classmethod
    def empty(cls, n_clusters, n_features):
        """Return clusters without rows."""
        shape = n_clusters, n_features
        counts = np.zeros(n_clusters, dtype=np.int64)
        return cls(counts, np.zeros(shape), np.zeros(shape), np.zeros(n_clusters))

    def work_space(self):
        """Return scratch arrays for the kernels."""
        n_clusters, n_features = self.sums.shape
        size = n_clusters * n_features
        return Work(
            np.empty((8, size)),
            np.empty((2, size)),
            np.empty((2, size), dtype=np.int64),
            np.empty(n_clusters),
        )


class Work(NamedTuple):
    """Scratch: numbers of each feature of each cluster, with one row more or less.

    Rows of `terms`: the sign of the change, the number of rows after it, what of the
    log evidence depends on that number, its weight in the mean, the exponent of the
    evidence; then mean, precision and log variance of the background.
    """

    terms: np.ndarray
    parts: np.ndarray
    bits: np.ndarray
    after: np.ndarray


@kernel
def _take_logs(values, bits):
    """Replace positive values by their logarithms, to 2e-16 of the largest.

    A value is m 2^k with m between 1 / sqrt(2) and sqrt(2), and log(m) is twice the
    series of the inverse hyperbolic tangent at (m - 1) / (m + 1).
    """
    whole = values.view(np.int64)
    for q in range(values.shape[0]):
        bits[0, q] = (whole[q] >> 52) | _BITS_OF_2_52
        bits[1, q] = (whole[q] & _FRACTION) | _BITS_OF_1
    exponents = bits[0].view(np.float64)
    fractions = bits[1].view(np.float64)
    for q in range(values.shape[0]):
        large = fractions[q] > _ROOT_2
        m = 0.5 * fractions[q] if large else fractions[q]
        k = exponents[q] - (_BIAS - 1.0 if large else _BIAS)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = z / 19.0 + 1.0 / 17.0
        series = z * series + 1.0 / 15.0
        series = z * series + 1.0 / 13.0
        series = z * series + 1.0 / 11.0
        series = z * series + 1.0 / 9.0
        series = z * series + 1.0 / 7.0
        series = z * series + 1.0 / 5.0
        series = z * series + 1.0 / 3.0
        values[q] = k * _LOG_2 + 2.0 * s * (z * series + 1.0)


@kernel
def _exp(x):
    """Exponential of a number from -40 to 0, to 1e-14: Taylor's series at x / 64."""
    y = x / 64.0
    series = y / 479001600.0 + 1.0 / 39916800.0
    series = y * series + 1.0 / 3628800.0
    series = y * series + 1.0 / 362880.0
    series = y * series + 1.0 / 40320.0
    series = y * series + 1.0 / 5040.0
    series = y * series + 1.0 / 720.0
    series = y * series + 1.0 / 120.0
    series = y * series + 1.0 / 24.0
    series = y * series + 1.0 / 6.0
    series = y * series + 0.5
    series = y * series + 1.0
    series = y * series + 1.0
    series *= series
    series *= series
    series *= series
    series *= series
    series *= series
    return series * series


@kernel
def _expect(j, sign, model, clusters, work):
    """Prepare `work` for a row that joins (sign 1) or leaves (-1) cluster j, or 0."""
    n_features = clusters.sums.shape[1]
    count = clusters.counts[j] + sign
    base = model.log_relevant + model.table[count]
    for q in range(j * n_features, (j + 1) * n_features):
        work.terms[0, q] = sign
        work.terms[1, q] = count
        work.terms[2, q] = base
        work.terms[3, q] = 1.0 / (PRIOR_COUNT + count)
        work.terms[4, q] = PRIOR_SHAPE + 0.5 * count


@kernel
def _repeat_background(model, clusters, work):
    """Write the background of the features beside each cluster."""
    n_clusters, n_features = clusters.sums.shape
    for j in range(n_clusters):
        for f in range(n_features):
            work.terms[5, j * n_features + f] = model.mean[f]
            work.terms[6, j * n_features + f] = model.precision[f]
            work.terms[7, j * n_features + f] = model.log_variance[f]


@kernel
def _gains_after(x, shared, model, clusters, work):
    """Gains of each feature of each cluster if row x joins or leaves it.

    As two numbers a feature, `work.parts`: the gain is the first, plus the log of the
    second, which lies between 1 and 2.
    """
    n_clusters, n_features = clusters.sums.shape
    size = n_clusters * n_features
    larger, smaller = work.parts[0], work.parts[1]
    sums = clusters.sums.reshape(size)
    squares = clusters.squares.reshape(size)
    sign, count, base = work.terms[0], work.terms[1], work.terms[2]
    weight, shape = work.terms[3], work.terms[4]
    mean, precision, log_variance = work.terms[5], work.terms[6], work.terms[7]
    for j in range(n_clusters):
        for f in range(n_features):
            smaller[j * n_features + f] = x[f]
    if shared is None:
        for q in range(size):
            moved = sign[q] * smaller[q]
            total = sums[q] + moved
            square = squares[q] + moved * smaller[q]
            spread = square - total * total * weight[q]
            spread = spread if spread > 0.0 else 0.0
            about_mean = square - mean[q] * (2.0 * total - count[q] * mean[q])
            own = count[q] * log_variance[q] + about_mean * precision[q]
            larger[q] = base[q] + 0.5 * own
            smaller[q] = PRIOR_SCALE + 0.5 * spread
        _take_logs(smaller, work.bits)
        for q in range(size):
            larger[q] -= shape[q] * smaller[q]
    else:
        for q in range(size):
            shift = sums[q] + sign[q] * smaller[q] - count[q] * mean[q]
            share = 0.5 * model.factor / (1.0 + model.factor * count[q])
            larger[q] = base[q] + share * precision[q] * shift * shift
    for q in range(size):
        relevant = larger[q]
        irrelevant = model.log_irrelevant
        higher = relevant if relevant > irrelevant else irrelevant
        gap = (relevant if relevant < irrelevant else irrelevant) - higher
        larger[q] = higher
        smaller[q] = 1.0 + _exp(gap if gap > -40.0 else -40.0)


@kernel
def _sum_gains(clusters, work):
    """Sum the gains of `_gains_after` over the features, into `work.after`."""
    n_clusters, n_features = clusters.sums.shape
    for j in range(n_clusters):
        gain = 0.0
        product = 1.0  # of factors up to 2: one logarithm for many features
        for q in range(j * n_features, (j + 1) * n_features):
            gain += work.parts[0, q]
            product *= work.parts[1, q]
            if product > 1e300:
                gain += math.log(product)
                product = 1.0
        work.after[j] = gain + math.log(product)


@kernel
def find_gains(shared, model, clusters, work, out):
    """Fill `out` (n_clusters, n_features) with gains; `clusters.gains`, their sums.

    `shared`: True if a relevant feature has the background's variance about a mean of
    its own; None if it has its own variance, too.
    """
    n_clusters, n_features = clusters.sums.shape
    _repeat_background(model, clusters, work)
    for j in range(n_clusters):
        _expect(j, 0, model, clusters, work)
    _gains_after(model.mean, shared, model, clusters, work)
    for j in range(n_clusters):
        clusters.gains[j] = 0.0
        for f in range(n_features):
            q = j * n_features + f
            out[j, f] = 0.0
            if clusters.counts[j] > 0:
                out[j, f] = work.parts[0, q] + math.log(work.parts[1, q])
            clusters.gains[j] += out[j, f]


@kernel
def _move(x, j, sign, gain, clusters):
    """Let row x join or leave cluster j, whose gains are then `gain`."""
    clusters.counts[j] += sign
    clusters.gains[j] = gain if clusters.counts[j] > 0 else 0.0
    for f in range(clusters.sums.shape[1]):
        clusters.sums[j, f] += sign * x[f]
        clusters.squares[j, f] += sign * x[f] * x[f]


@kernel
def count_rows(X, labels, clusters):
    """Count and sum the rows of each cluster: fills `clusters`, but for the gains."""
    for j in range(clusters.counts.shape[0]):
        clusters.counts[j] = 0
        for f in range(X.shape[1]):
            clusters.sums[j, f] = 0.0
            clusters.squares[j, f] = 0.0
    for i in range(X.shape[0]):
        _move(X[i], labels[i], 1, 0.0, clusters)


@kernel
def sweep(
    X,
    order,
    uniforms,
    concentration,
    shared,
    labels,
    model,
    clusters,
    work,
    chances,
):
    """Draw the label of each row given those of the others, in this order.

    Weights of clusters, relevance and relevant moments are integrated out. Updates
    labels and clusters; `chances` (n_samples, n_clusters) are filled with the
    distribution of each label as it was drawn.
    """
    n_clusters = clusters.counts.shape[0]
    counts, gains, after = clusters.counts, clusters.gains, work.after
    _repeat_background(model, clusters, work)
    for j in range(n_clusters):
        _expect(j, 1, model, clusters, work)
    for rank in range(order.shape[0]):
        i = order[rank]
        x = X[i]
        own = labels[i]
        _expect(own, -1, model, clusters, work)
        _gains_after(x, shared, model, clusters, work)
        _sum_gains(clusters, work)
        if counts[own] == 1:
            after[own] = 0.0
        highest = -math.inf
        for j in range(n_clusters):
            score = math.log(counts[j] + concentration) + after[j] - gains[j]
            if j == own:
                score = math.log(counts[j] - 1 + concentration) + gains[j] - after[j]
            chances[i, j] = score
            highest = score if score > highest else highest
        total = 0.0
        for j in range(n_clusters):
            chances[i, j] = math.exp(chances[i, j] - highest)
            total += chances[i, j]
        for j in range(n_clusters):
            chances[i, j] /= total
        threshold = uniforms[rank]
        drawn = 0
        while drawn < n_clusters - 1 and threshold >= chances[i, drawn]:
            threshold -= chances[i, drawn]
            drawn += 1
        if drawn != own:
            labels[i] = drawn
            _move(x, own, -1, after[own], clusters)
            _move(x, drawn, 1, after[drawn], clusters)
            _expect(drawn, 1, model, clusters, work)
        _expect(own, 1, model, clusters, work)


@kernel
def fill_boxes(columns, triples, widths, inside, clusters, members):
    """Count and sum the rows in each box; note which they are, if asked for.

    `columns` (n_features, n_rows) are rows, as columns. Box t holds the rows within
    `widths[t]` of row `triples[t, 0]`, in the features in which rows `triples[t, 1]`
    and `triples[t, 2]` are, too; none without such features. Fills `clusters`, but for
    the gains, and `members` (n_boxes, n_rows), if it is not None. The booleans `inside`
    (n_rows,) are scratch.
    """
    n_features, n_rows = columns.shape
    for t in range(triples.shape[0]):
        first, second, third = triples[t]
        width = widths[t]
        bounded = False
        for f in range(n_features):
            middle = columns[f, first]
            near = abs(columns[f, second] - middle) <= width
            if near and abs(columns[f, third] - middle) <= width:
                for i in range(n_rows):  # without a branch: LLVM vectorises it
                    within = abs(columns[f, i] - middle) <= width
                    inside[i] = within & (inside[i] | (not bounded))
                bounded = True
        clusters.counts[t] = 0
        for f in range(n_features):
            clusters.sums[t, f] = 0.0
            clusters.squares[t, f] = 0.0
        for i in range(n_rows):
            within = bounded and inside[i]
            if members is not None:
                members[t, i] = within
            if within:
                clusters.counts[t] += 1
                for f in range(n_features):
                    clusters.sums[t, f] += columns[f, i]
                    clusters.squares[t, f] += columns[f, i] * columns[f, i]


@kernel
def grow(X, n_passes, price, shared, model, clusters, work, members):
    """Grow each of several clusters by itself, against the background.

    Each row in turn joins or leaves, at most `n_passes` times, wherever that raises the
    score: the gains of the features, less `price` a row. Updates `clusters` and
    `members` (n_clusters, n_rows).
    """
    n_clusters = clusters.counts.shape[0]
    after = work.after
    _repeat_background(model, clusters, work)
    for t in range(n_clusters):
        _expect(t, 1, model, clusters, work)
    for _ in range(n_passes):
        n_changes = 0
        for i in range(X.shape[0]):
            for t in range(n_clusters):
                if members[t, i]:
                    _expect(t, -1, model, clusters, work)
            _gains_after(X[i], shared, model, clusters, work)
            _sum_gains(clusters, work)
            for t in range(n_clusters):
                sign = -1 if members[t, i] else 1
                gain = 0.0 if clusters.counts[t] + sign == 0 else after[t]
                changes = gain - clusters.gains[t] > sign * price
                if changes:
                    members[t, i] = sign == 1
                    n_changes += 1
                    _move(X[i], t, sign, gain, clusters)
                if changes or sign == -1:
                    _expect(t, 1, model, clusters, work)
        if n_changes == 0:
            break
