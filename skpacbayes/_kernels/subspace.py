"""Mixtures whose clusters have their own relevant features: a Gibbs sweep, seeds.

A cluster and a feature have three statistics: the number of rows, their sum and that of
their squares, in standard units. The *gain* of a feature of a cluster is the log
evidence of its values, relevant or not, over that of the feature's background.

A row changes the statistics of a few clusters, but needs the gains of all clusters. So
the loops run over all features of all clusters at once, in arrays of n_clusters times
n_features numbers, and vectorise. Logarithm and exponential are series, as a call of a
library function in the loop would prevent vectorisation.
"""

import math
from collections import namedtuple

import numpy as np

from . import kernel, part

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

# Rows of the array `terms`, each of one number for every feature of every cluster. What
# depends on how many rows there are after one more joins (or one leaves): the sign of
# the change, that number, the part of the log evidence that depends on it alone, its
# weight in the mean, the exponent of the evidence. Then the background.
SIGN, COUNT, BASE, WEIGHT, SHAPE, MEAN, PRECISION, LOG_VARIANCE = range(8)

# The arguments that kernels take from `Clusters`: model, statistics, and work space:
# `terms` (8, size) and `parts` (4, size), where size is n_clusters * n_features, the
# `bits` of `parts`, and `after` (n_clusters,).
State = namedtuple(
    "State", "numbers table shared counts sums squares gains terms parts bits after"
)


class Clusters:
    """Statistics of clusters, and the model, as the kernels take them.

    Parameters
    ----------
    n_clusters, n_features : int
        Their numbers.

    Attributes
    ----------
    counts, gains : ndarrays of shape (n_clusters,)
        Number of rows, and the gains, summed over the features.
    sums, squares : ndarrays of shape (n_clusters, n_features)
        Sums of the rows and of their squares.
    """

    def __init__(self, n_clusters, n_features):
        shape, size = (n_clusters, n_features), n_clusters * n_features
        self.counts = np.zeros(n_clusters, dtype=np.int64)
        self.gains, self._after = np.zeros((2, n_clusters))
        self.sums, self.squares = np.zeros((2, *shape))
        self._terms, self._parts = np.zeros((8, size)), np.zeros((4, size))
        self._bits = self._parts.view(np.int64)

    def use(self, mean, variance, log_odds, factor, table):
        """Take over a model.

        Parameters
        ----------
        mean, variance : ndarrays of shape (n_features,)
            The background.
        log_odds : pair of floats
            Prior log probabilities that a feature is not relevant, and that it is.
        factor : float or None
            That of the prior variance of a shift, if a relevant feature has the
            background's variance; None if it has its own variance.
        table : ndarray of shape (n_samples + 2,)
            The part of the log evidence of a feature that depends on a count alone.
        """
        self._terms[MEAN:] = np.tile([mean, 1 / variance, np.log(variance)], len(self))
        shared = factor is not None
        self._numbers = np.array([*log_odds, factor if shared else 0.0]), table, shared

    def __len__(self):
        return len(self.counts)

    def select(self, chosen):
        """Return some of the clusters, under the same model."""
        some = Clusters(len(chosen), self.sums.shape[1])
        for name in ("counts", "gains", "sums", "squares"):
            getattr(some, name)[:] = getattr(self, name)[chosen]
        some._terms[:] = self._terms.reshape(8, len(self), -1)[:, chosen].reshape(8, -1)
        some._numbers = self._numbers
        return some

    def state(self):
        """Return the arguments of the kernels."""
        statistics = self.counts, self.sums, self.squares, self.gains
        work = self._terms, self._parts, self._bits, self._after
        return State(*self._numbers, *statistics, *work)

    def find_gains(self):
        """Set `gains`; return those of each feature, of the shape of `sums`."""
        (irrelevant, relevant, factor), table, shared = self._numbers
        n, shape = self.counts[:, None], self.sums.shape
        mean, precision, log_variance = self._terms[MEAN:].reshape(3, *shape)
        if shared:
            shift = self.sums - n * mean
            own = 0.5 * factor * shift**2 * precision / (1 + factor * n)
        else:
            spread = self.squares - self.sums**2 / (PRIOR_COUNT + n)
            about_mean = self.squares - mean * (2 * self.sums - n * mean)
            own = 0.5 * (n * log_variance + about_mean * precision)
            own -= (PRIOR_SHAPE + 0.5 * n) * np.log(
                PRIOR_SCALE + 0.5 * np.maximum(spread, 0)
            )
        own += relevant + table[n]
        found = np.where(n > 0, np.logaddexp(irrelevant, own), 0.0)
        self.gains[:] = found.sum(axis=1)
        return found


@part
def _charge_variances(size, terms, parts, bits):
    """Subtract the shapes times the logs of the scales, parts[1], from parts[0].

    A value is m 2^k with m between 1 / sqrt(2) and sqrt(2); log(m) is twice the series
    of the inverse hyperbolic tangent at (m - 1) / (m + 1).
    """
    for q in range(size):
        bits[2, q] = (bits[1, q] >> 52) | _BITS_OF_2_52
        bits[3, q] = (bits[1, q] & _FRACTION) | _BITS_OF_1
    for q in range(size):
        large = parts[3, q] > _ROOT_2
        m = 0.5 * parts[3, q] if large else parts[3, q]
        k = parts[2, q] - (_BIAS - 1.0 if large else _BIAS)
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
        log = k * _LOG_2 + 2.0 * s * (z * series + 1.0)
        parts[0, q] -= terms[SHAPE, q] * log


@part
def _relevant_or_not(size, irrelevant, parts):
    """Write the larger of two log terms to parts[0], 1 + exp(-their gap) to parts[1].

    parts[0]: the log term of each feature of each cluster if it is relevant. exp(gap)
    is the 64th power of Taylor's series at gap / 64.
    """
    for q in range(size):
        relevant = parts[0, q]
        higher = relevant if relevant > irrelevant else irrelevant
        gap = (relevant if relevant < irrelevant else irrelevant) - higher
        parts[0, q] = higher
        y = (gap if gap > -40.0 else -40.0) / 64.0
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
        parts[1, q] = 1.0 + series * series


@kernel
def _gains_after(x, numbers, shared, sums, squares, terms, parts, bits, after):
    """Write each cluster's gains if row x joins or leaves to `after` (n_clusters,).

    `parts` (4, n_clusters * n_features) is work space; `bits`, its bits.
    """
    n_clusters, n_features = sums.shape
    size = n_clusters * n_features
    irrelevant, factor = numbers[0], numbers[2]
    for j in range(n_clusters):
        for f in range(n_features):
            q = j * n_features + f
            moved = terms[SIGN, q] * x[f]
            parts[0, q] = sums[j, f] + moved
            parts[1, q] = squares[j, f] + moved * x[f]
    for q in range(size):
        total, square, count = parts[0, q], parts[1, q], terms[COUNT, q]
        shift = total - count * terms[MEAN, q]
        if shared:
            own = factor / (1.0 + factor * count) * shift * shift
            own *= terms[PRECISION, q]
        else:
            spread = square - total * total * terms[WEIGHT, q]
            parts[1, q] = PRIOR_SCALE + 0.5 * (spread if spread > 0.0 else 0.0)
            about_mean = square - terms[MEAN, q] * (total + shift)
            own = about_mean * terms[PRECISION, q] + count * terms[LOG_VARIANCE, q]
        parts[0, q] = terms[BASE, q] + 0.5 * own
    if not shared:
        _charge_variances(size, terms, parts, bits)
    _relevant_or_not(size, irrelevant, parts)
    for j in range(n_clusters):
        gain = 0.0
        product = 1.0  # of factors up to 2: one logarithm for many features
        for q in range(j * n_features, (j + 1) * n_features):
            gain += parts[0, q]
            product *= parts[1, q]
            if product > 1e300:
                gain += math.log(product)
                product = 1.0
        after[j] = gain + math.log(product)


@kernel
def _expect(j, sign, numbers, table, counts, n_features, terms):
    """Prepare `terms` for a row that joins (sign 1) or leaves (-1) cluster j."""
    count = counts[j] + sign
    for q in range(j * n_features, (j + 1) * n_features):
        terms[SIGN, q] = sign
        terms[COUNT, q] = count
        terms[BASE, q] = numbers[1] + table[count]
        terms[WEIGHT, q] = 1.0 / (PRIOR_COUNT + count)
        terms[SHAPE, q] = PRIOR_SHAPE + 0.5 * count


@kernel
def _move(x, j, sign, gain, counts, sums, squares, gains):
    """Let row x join or leave cluster j, whose gains are then `gain`."""
    counts[j] += sign
    gains[j] = gain if counts[j] > 0 else 0.0
    for f in range(x.shape[0]):
        sums[j, f] += sign * x[f]
        squares[j, f] += sign * x[f] * x[f]


@kernel
def count_rows(X, labels, counts, sums, squares):
    """Count and sum the rows of each cluster."""
    for j in range(counts.shape[0]):
        counts[j] = 0
        for f in range(X.shape[1]):
            sums[j, f] = 0.0
            squares[j, f] = 0.0
    for i in range(X.shape[0]):
        counts[labels[i]] += 1
        for f in range(X.shape[1]):
            sums[labels[i], f] += X[i, f]
            squares[labels[i], f] += X[i, f] * X[i, f]


@kernel
def sweep(X, order, uniforms, concentration, labels, chances, state):
    """Draw the label of each row given those of the others, in this order.

    Weights of clusters, relevance and relevant moments are integrated out. Updates
    labels and clusters, the `state`; `chances` (n_samples, n_clusters)
    are filled with the distribution of each label as it was drawn.
    """
    numbers, table, shared, counts, sums, squares, gains, terms, parts, bits, after = (
        state
    )
    n_clusters, n_features = sums.shape
    for j in range(n_clusters):
        _expect(j, 1, numbers, table, counts, n_features, terms)
    for rank in range(order.shape[0]):
        i = order[rank]
        x = X[i]
        own = labels[i]
        _expect(own, -1, numbers, table, counts, n_features, terms)
        _gains_after(x, numbers, shared, sums, squares, terms, parts, bits, after)
        if counts[own] == 1:
            after[own] = 0.0
        highest = -math.inf
        for j in range(n_clusters):
            n_others = counts[j] - 1 if j == own else counts[j]
            change = gains[j] - after[j] if j == own else after[j] - gains[j]
            chances[i, j] = math.log(n_others + concentration) + change
            highest = chances[i, j] if chances[i, j] > highest else highest
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
            _move(x, own, -1, after[own], counts, sums, squares, gains)
            _move(x, drawn, 1, after[drawn], counts, sums, squares, gains)
            _expect(drawn, 1, numbers, table, counts, n_features, terms)
        _expect(own, 1, numbers, table, counts, n_features, terms)


@kernel
def fill_boxes(
    columns, triples, widths, limits, orders, members, counts, sums, squares
):
    """Find the rows in each box; count and sum them.

    `columns` (n_features, n_rows) are rows, as columns. Box t holds the rows within
    `widths[t]` of row `triples[t, 0]`, in the first `limits[t]` features, in the order
    `orders[t]`, in which rows `triples[t, 1]` and `triples[t, 2]` are, too; none
    without such features. Fills `members` (n_boxes, n_rows), and the statistics of the
    boxes.
    """
    n_features, n_rows = columns.shape
    for t in range(triples.shape[0]):
        first, second, third = triples[t, 0], triples[t, 1], triples[t, 2]
        width = widths[t]
        inside = members[t]
        n_bounds = 0
        for f in orders[t]:
            middle = columns[f, first]
            near = abs(columns[f, second] - middle) <= width
            if near and abs(columns[f, third] - middle) <= width:
                for i in range(n_rows):  # without a branch: LLVM vectorises it
                    within = abs(columns[f, i] - middle) <= width
                    inside[i] = within & (inside[i] | (n_bounds == 0))
                n_bounds += 1
                if n_bounds == limits[t]:
                    break
        counts[t] = 0
        for f in range(n_features):
            sums[t, f] = 0.0
            squares[t, f] = 0.0
        for i in range(n_rows):
            inside[i] = inside[i] and n_bounds > 0
            if inside[i]:
                counts[t] += 1
                for f in range(n_features):
                    sums[t, f] += columns[f, i]
                    squares[t, f] += columns[f, i] * columns[f, i]


@kernel
def grow(X, n_passes, price, members, state):
    """Grow each of several clusters separately, against the background.

    Each row in turn joins or leaves, at most `n_passes` times, wherever that raises the
    score: the gains of the features minus `price` per row. Updates `members`
    (n_clusters, n_rows) and the clusters, the `state`.
    """
    numbers, table, shared, counts, sums, squares, gains, terms, parts, bits, after = (
        state
    )
    n_clusters, n_features = sums.shape
    for _ in range(n_passes):
        n_changes = 0
        for i in range(X.shape[0]):
            for t in range(n_clusters):
                sign = -1 if members[t, i] else 1
                _expect(t, sign, numbers, table, counts, n_features, terms)
            _gains_after(
                X[i], numbers, shared, sums, squares, terms, parts, bits, after
            )
            for t in range(n_clusters):
                sign = -1 if members[t, i] else 1
                gain = 0.0 if counts[t] + sign == 0 else after[t]
                if gain - gains[t] > sign * price:
                    members[t, i] = sign == 1
                    n_changes += 1
                    _move(X[i], t, sign, gain, counts, sums, squares, gains)
        if n_changes == 0:
            break
