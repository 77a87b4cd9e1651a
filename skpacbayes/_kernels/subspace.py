"""Mixtures whose clusters have relevant features of their own: a Gibbs sweep, seeds.

A cluster and a feature have three statistics, `counts` (n_clusters,), `sums` and
`squares` (n_clusters, n_features), of rows in standard units. A feature has a
background: `background` (3, n_features) holds its mean, its variance and the log of it.
`numbers` holds, in this order, the log probabilities that a feature is not relevant
and that it is, and the factor of the prior variance of a shift. `table`
(n_samples + 1,) holds what of the log evidence depends on a count alone.
"""

import math

from . import kernel

# The prior of a cluster's own mean and variance: mean 0 with the weight of so many
# rows, and an inverse gamma law of this shape and scale.
PRIOR_COUNT = 0.05
PRIOR_SHAPE = 1.5
PRIOR_SCALE = 0.3


@kernel
def _gain(shared, count, total, square, background, f, numbers, base):
    """Log evidence of one feature of a cluster, relevant or not, over the background.

    As a pair (larger, ratio), the gain being larger + log(1 + ratio). `shared`: a
    relevant feature has the background's variance about a mean of its own; else it has
    its own variance, too. `base` is the entry of `table`.
    """
    mean, variance = background[0, f], background[1, f]
    without, relevant = numbers[0], numbers[1]
    if count == 0:
        return 0.0, 0.0
    if shared:
        shift = total - count * mean
        scatter = variance * (1.0 + numbers[2] * count)
        relevant += base + 0.5 * numbers[2] * shift * shift / scatter
    else:
        spread = square - total * total / (PRIOR_COUNT + count)
        spread = spread if spread > 0.0 else 0.0
        about_mean = square - mean * (2.0 * total - count * mean)
        relevant += base + 0.5 * (count * background[2, f] + about_mean / variance)
        relevant -= (PRIOR_SHAPE + 0.5 * count) * math.log(PRIOR_SCALE + 0.5 * spread)
    larger = without if without > relevant else relevant
    smaller = relevant if without > relevant else without
    if smaller < larger - 40.0:
        return larger, 0.0
    return larger, math.exp(smaller - larger)


@kernel
def gains(shared, counts, sums, squares, background, numbers, table, out):
    """Fill `out` (n_clusters, n_features) with the gains of clusters."""
    for j in range(sums.shape[0]):
        for f in range(sums.shape[1]):
            larger, ratio = _gain(
                shared,
                counts[j],
                sums[j, f],
                squares[j, f],
                background,
                f,
                numbers,
                table[counts[j]],
            )
            out[j, f] = larger + math.log(1.0 + ratio)


@kernel
def sweep(
    X,
    order,
    uniforms,
    concentration,
    shared,
    labels,
    counts,
    sums,
    squares,
    background,
    numbers,
    table,
    known,
    after,
    chances,
):
    """Draw the label of each row given those of the others, in this order.

    Weights of clusters, relevance and relevant moments are integrated out. Updates
    labels, statistics, and the summed gains of all clusters, `known` (n_clusters,);
    `chances` (n_samples, n_clusters) are filled with the law of each label as it was
    drawn. `after` (n_clusters,) is work space.
    """
    n_clusters = counts.shape[0]
    for rank in range(order.shape[0]):
        i = order[rank]
        for sign in range(-1, 2, 2):  # out of its cluster, then into the one drawn
            first = labels[i] if sign == -1 else 0
            last = labels[i] if sign == -1 else n_clusters - 1
            for j in range(first, last + 1):
                count = counts[j] + sign
                gain = 0.0
                product = 1.0  # of factors up to 2: one logarithm for many features
                for f in range(X.shape[1]):
                    x = X[i, f]
                    larger, ratio = _gain(
                        shared,
                        count,
                        sums[j, f] + sign * x,
                        squares[j, f] + sign * x * x,
                        background,
                        f,
                        numbers,
                        table[count],
                    )
                    gain += larger
                    product *= 1.0 + ratio
                    if product > 1e300:
                        gain += math.log(product)
                        product = 1.0
                after[j] = gain + math.log(product)
            if sign == 1:
                highest = -math.inf
                for j in range(n_clusters):
                    score = math.log(counts[j] + concentration) + after[j] - known[j]
                    chances[i, j] = score
                    highest = score if score > highest else highest
                total = 0.0
                for j in range(n_clusters):
                    chances[i, j] = math.exp(chances[i, j] - highest)
                    total += chances[i, j]
                for j in range(n_clusters):
                    chances[i, j] /= total
                threshold = uniforms[rank]
                labels[i] = 0
                while labels[i] < n_clusters - 1 and threshold >= chances[i, labels[i]]:
                    threshold -= chances[i, labels[i]]
                    labels[i] += 1
            j = labels[i]
            counts[j] += sign
            known[j] = after[j]
            for f in range(X.shape[1]):
                sums[j, f] += sign * X[i, f]
                squares[j, f] += sign * X[i, f] * X[i, f]


@kernel
def fill_boxes(X, free, triples, widths, bounded, members):
    """Note which free rows lie in each box, in `members` (n_boxes, n_samples).

    Box t holds the rows within `widths[t]` of row `triples[t, 0]`, in the features in
    which rows `triples[t, 1]` and `triples[t, 2]` are, too; none without such features.
    The integers `bounded` (n_features,) are work space.
    """
    n_features = X.shape[1]
    for t in range(triples.shape[0]):
        n_bounded = 0
        for f in range(n_features):
            middle = X[triples[t, 0], f]
            other = abs(X[triples[t, 1], f] - middle)
            third = abs(X[triples[t, 2], f] - middle)
            if other <= widths[t] and third <= widths[t]:
                bounded[n_bounded] = f
                n_bounded += 1
        for rank in range(free.shape[0]):
            inside = n_bounded > 0
            for b in range(n_bounded):
                f = bounded[b]
                if abs(X[free[rank], f] - X[triples[t, 0], f]) > widths[t]:
                    inside = False
                    break
            members[t, free[rank]] = inside


@kernel
def grow(
    X,
    free,
    n_sweeps,
    price,
    shared,
    background,
    numbers,
    table,
    members,
    counts,
    sums,
    squares,
    known,
):
    """Grow each of several clusters by itself, against the background.

    Each free row in turn joins or leaves, at most `n_sweeps` times, wherever that
    raises the score: the gains of the features, less `price` a row. Updates `members`
    (n_groups, n_samples), the statistics and the summed gains, `known` (n_groups,).
    """
    for t in range(members.shape[0]):
        for _ in range(n_sweeps):
            n_changes = 0
            for rank in range(free.shape[0]):
                i = free[rank]
                sign = -1 if members[t, i] else 1
                after = 0.0
                product = 1.0
                for f in range(X.shape[1]):
                    x = X[i, f]
                    larger, ratio = _gain(
                        shared,
                        counts[t] + sign,
                        sums[t, f] + sign * x,
                        squares[t, f] + sign * x * x,
                        background,
                        f,
                        numbers,
                        table[counts[t] + sign],
                    )
                    after += larger
                    product *= 1.0 + ratio
                    if product > 1e300:
                        after += math.log(product)
                        product = 1.0
                after += math.log(product)
                if after - known[t] > sign * price:
                    members[t, i] = sign == 1
                    n_changes += 1
                    counts[t] += sign
                    known[t] = after
                    for f in range(X.shape[1]):
                        sums[t, f] += sign * X[i, f]
                        squares[t, f] += sign * X[i, f] * X[i, f]
            if n_changes == 0:
                break
