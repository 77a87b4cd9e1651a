"""Mixtures of one common shape, on weighted points: EM, and merging from many to one.

Components are round in the coordinates of the points, normal or Student, with a common
variance or their own. With a diagonal or tied shape the coordinates are whitened in
place by the pooled covariance within components, its determinant kept, so that
densities in different coordinates compare.
"""

import math

from . import kernel

ROUND, DIAGONAL, TIED = 0, 1, 2
# Components whose share of a point is below about 1e-6 are skipped.
_FARTHER, _BEYOND = 30.0, 60.0


@kernel
def _change_coordinates(matrix, factor):
    """Multiply a symmetric matrix by the inverse of factor, and its transpose."""
    d = matrix.shape[0]
    for f in range(d):
        for g in range(f):
            for h in range(d):
                matrix[h, f] -= factor[f, g] * matrix[h, g]
        for h in range(d):
            matrix[h, f] /= factor[f, f]
    for f in range(d):
        for g in range(f):
            for h in range(d):
                matrix[f, h] -= factor[f, g] * matrix[g, h]
        for h in range(d):
            matrix[f, h] /= factor[f, f]


@kernel
def fit_mixture(
    points,
    weights,
    spreads,
    scatter,
    overall,
    coordinates,
    shape,
    own,
    dof,
    pull,
    smallest,
    max_iter,
    tolerance,
    k,
    centers,
    scales,
    shares,
    masses,
    labels,
    robust,
    sums,
    moments,
    pooled,
):
    """EM from the first `k` of `centers`, `scales` (variances) and `shares`, in place.

    `spreads` (n_points,): mean squared distances of the rows that were merged into a
    point, `scatter` (n_features, n_features) their sum of outer products, and `overall`
    the covariance of all rows, towards which the pooled one is shrunk. `coordinates`
    (n_features, n_features) maps rows to the points' coordinates. `centers` and `sums`
    are (n_features, n_clusters), so that loops over the clusters vectorise. `dof`:
    infinity for normal components. `pull`: rows' worth of pull of own variances towards
    their harmonic mean. Receive results: `masses` (k,), `labels` and `robust`
    (n_points,), the component and the Student weight of each point. `sums`, `moments`
    (6, k) and `pooled` (2, n_features, n_features) are work space. Returns the
    log-likelihood of the mixture and that of the classification.
    """
    n_points, d = points.shape
    student = dof < 1e6
    constant = -0.5 * d * math.log(2.0 * math.pi)
    if student:
        constant = math.lgamma(0.5 * (dof + d)) - math.lgamma(0.5 * dof)
        constant -= 0.5 * d * math.log(dof * math.pi)
    total = 0.0
    for i in range(n_points):
        total += weights[i]
    heights, square, thick, inverses = moments[0], moments[1], moments[2], moments[3]
    ratios, parts = moments[4], moments[5]
    covariance, factor = pooled[0], pooled[1]
    mixture, classified = -math.inf, 0.0
    for iteration in range(max_iter + 1):
        whiten = shape > 0 and iteration % 3 == 2 and iteration < max_iter
        previous, mixture, classified = mixture, 0.0, 0.0
        for j in range(k):
            masses[j], square[j], thick[j] = 0.0, 0.0, 0.0
            heights[j] = constant - 0.5 * d * math.log(scales[j])
            heights[j] += math.log(max(shares[j], 1e-300))
            inverses[j] = 1.0 / scales[j]
            for f in range(d):
                sums[f, j] = 0.0
        for f in range(d if whiten else 0):
            for g in range(d):
                covariance[f, g] = 0.0
        for i in range(n_points):
            for j in range(k):
                ratios[j] = spreads[i]
            for f in range(d):
                place = points[i, f]
                for j in range(k):
                    gap = place - centers[f, j]
                    ratios[j] += gap * gap
            least = math.inf
            for j in range(k):
                ratios[j] *= inverses[j]
                least = min(least, ratios[j])
            limit = _FARTHER * (dof + least) - dof if student else least + _BEYOND
            highest = -math.inf
            for j in range(k):
                if ratios[j] <= limit:
                    height = heights[j]
                    if student:
                        height -= 0.5 * (dof + d) * math.log(1.0 + ratios[j] / dof)
                    else:
                        height -= 0.5 * ratios[j]
                    parts[j] = height
                    if height > highest:
                        highest = height
                        labels[i] = j
            density = 0.0
            for j in range(k):
                if ratios[j] <= limit:
                    parts[j] = math.exp(parts[j] - highest)
                    density += parts[j]
            classified += weights[i] * highest
            mixture += weights[i] * (highest + math.log(density))
            for j in range(k):
                if not ratios[j] <= limit:
                    continue
                part = weights[i] * parts[j] / density
                masses[j] += part
                bounded = (dof + d) / (dof + ratios[j]) if student else 1.0
                if j == labels[i]:
                    robust[i] = bounded
                part *= bounded
                thick[j] += part
                square[j] += part * ratios[j] * scales[j]
                for f in range(d):
                    sums[f, j] += part * (points[i, f] - centers[f, j])
                if whiten and part > 1e-3 * weights[i]:
                    for f in range(d):
                        side = part * inverses[j] * (points[i, f] - centers[f, j])
                        for g in range(0 if shape == 2 else f, f + 1):
                            gap = points[i, g] - centers[g, j]
                            covariance[f, g] += side * gap
        if iteration == max_iter or mixture - previous < tolerance:
            break
        harmonic, everything, all_mass, inverse = 0.0, 0.0, 0.0, 0.0
        for j in range(k):
            harmonic += inverses[j] / k
            inverse += masses[j] * inverses[j]
        for j in range(k):
            shares[j] = masses[j] / total
            if thick[j] <= 0.0:
                square[j] = 0.0
                continue
            moved = 0.0
            for f in range(d):
                step = sums[f, j] / thick[j]
                moved += step * step
                sums[f, j] = step
                centers[f, j] += step
            for f in range(d if whiten else 0):
                for g in range(f + 1):
                    covariance[f, g] -= thick[j] * inverses[j] * sums[f, j] * sums[g, j]
            square[j] = max(square[j] - thick[j] * moved, 0.0)
            everything += square[j]
            all_mass += masses[j]
        for j in range(k):
            if own:
                scale = (square[j] / d + pull / harmonic) / (masses[j] + pull)
            else:
                scale = everything / (d * all_mass)
            scales[j] = max(scale, smallest)
        if not whiten:
            continue
        # The pooled covariance, shrunk by n_features rows' worth of the overall one,
        # and its Cholesky factor of determinant 1.
        trace, share = 0.0, 0.0
        for f in range(d):
            for g in range(f + 1):
                covariance[f, g] += inverse / total * scatter[f, g]
            trace += covariance[f, f]
            if overall[f, f] > 0.0:
                share += covariance[f, f] / overall[f, f] / d
        if not trace > 1e-3 * total:  # no noise: nothing to whiten by
            continue
        share *= d / total + 1e-9
        log_root = 0.0
        for f in range(d):
            for g in range(f + 1):
                covariance[f, g] += share * overall[f, g]
                value = covariance[f, g] if f == g or shape == 2 else 0.0
                for h in range(g):
                    value -= factor[f, h] * factor[g, h]
                if f == g:
                    factor[f, f] = math.sqrt(max(value, 1e-14 * trace))
                    log_root += math.log(factor[f, f]) / d
                else:
                    factor[f, g] = value / factor[g, g]
        root = math.exp(log_root)
        before, after = 0.0, 0.0
        for f in range(d):
            for g in range(f + 1):
                factor[f, g] /= root
            before += scatter[f, f]
        for f in range(d):
            for g in range(f):
                for i in range(n_points):
                    points[i, f] -= factor[f, g] * points[i, g]
                for j in range(k):
                    centers[f, j] -= factor[f, g] * centers[g, j]
                for h in range(d):
                    coordinates[h, f] -= factor[f, g] * coordinates[h, g]
            for i in range(n_points):
                points[i, f] /= factor[f, f]
            for j in range(k):
                centers[f, j] /= factor[f, f]
            for h in range(d):
                coordinates[h, f] /= factor[f, f]
        _change_coordinates(scatter, factor)
        _change_coordinates(overall, factor)
        for f in range(d):
            after += scatter[f, f]
        for i in range(n_points if before > 0.0 else 0):
            spreads[i] *= after / before
    return mixture, classified


@kernel
def merge_once(d, k, own, shape, total, masses, centers, scales, shares, table):
    """Merge the two of `k` components whose merger costs the likelihood least.

    `table` (2, k): each component's best partner and its gain, as last computed; a
    partner of -1 asks for it again. The last component takes the place of the second.
    """
    partner, gain = table[0], table[1]
    for a in range(k):
        if partner[a] >= 0.0:
            continue
        gain[a] = -math.inf
        for b in range(k):
            if a == b:
                continue
            first, second = max(masses[a], 1e-9), max(masses[b], 1e-9)
            both = first + second
            square = 0.0
            for f in range(d):
                gap = centers[f, a] - centers[f, b]
                square += gap * gap
            added = square * first * second / both
            value = both * math.log(both)
            value -= first * math.log(first) + second * math.log(second)
            if own:
                scale = (first * scales[a] + second * scales[b] + added / d) / both
                value -= 0.5 * d * both * math.log(scale)
                value += 0.5 * d * first * math.log(scales[a])
                value += 0.5 * d * second * math.log(scales[b])
            elif shape == 2:
                value -= 0.5 * total * math.log(1.0 + added / (scales[0] * total))
            else:
                ratio = added / (scales[0] * total * d)
                value -= 0.5 * total * d * math.log(1.0 + ratio)
            if value > gain[a]:
                gain[a], partner[a] = value, b
    best = 0
    for a in range(k):
        if gain[a] > gain[best]:
            best = a
    other = int(partner[best])
    a, b = min(best, other), max(best, other)
    first, second = max(masses[a], 1e-9), max(masses[b], 1e-9)
    both = first + second
    square = 0.0
    for f in range(d):
        gap = centers[f, b] - centers[f, a]
        square += gap * gap
        centers[f, a] += second / both * gap
    if own:
        scales[a] = (
            first * scales[a]
            + second * scales[b]
            + first * second / both * (square / d)
        )
        scales[a] /= both
    shares[a] += shares[b]
    masses[a] = both
    last = k - 1
    scales[b], shares[b], masses[b] = scales[last], shares[last], masses[last]
    for f in range(d):
        centers[f, b] = centers[f, last]
    partner[b], gain[b] = partner[last], gain[last]
    for c in range(last):
        met = int(partner[c])
        if c == a or met in (a, b):
            partner[c] = -1.0
        elif met == last:
            partner[c] = b
    return last
