"""Mixtures of one common shape, on weighted points: EM, and merging from many to one.

Components are round in the coordinates of the points, normal or Student, with a common
variance or their own. With a diagonal or tied shape the coordinates are whitened in
place by the pooled covariance within components, its determinant kept, so that
densities in different coordinates compare.
"""

import math

import numpy as np

from . import kernel

ROUND, DIAGONAL, TIED = 0, 1, 2
# Share of a point, over the largest, below which a component is skipped; its log.
_LEAST_SHARE, _LEAST_LOG_SHARE = 1e-6, math.log(1e-6)
# Largest difference of log densities at centres that Student components may have.
_DIFFERENT = 600.0
# One iteration in so many changes the coordinates.
_EVERY = 3


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
def _set_heights(k, d, dof, scales, shares, moments):
    """Log of share and density at the centres, and whether the differences fit exp."""
    heights, fronts, inverses = moments[0], moments[1], moments[2]
    constant = -0.5 * d * math.log(2.0 * math.pi)
    if dof > 0:
        constant = math.lgamma(0.5 * (dof + d)) - math.lgamma(0.5 * dof)
        constant -= 0.5 * d * math.log(dof * math.pi)
    lowest, highest = math.inf, -math.inf
    for j in range(k):
        height = constant - 0.5 * d * math.log(scales[j])
        height += math.log(max(shares[j], 1e-100))
        heights[j], inverses[j] = height, 1.0 / scales[j]
        lowest, highest = min(lowest, height), max(highest, height)
    for j in range(k):
        fronts[j] = math.exp(heights[j] - highest)
    return highest, highest - lowest < _DIFFERENT


@kernel
def _student_parts(k, d, dof, top, moments):
    """Share of each component in a point, Student tails.

    Returns the logs of the largest and of the sum of the densities, and the component
    of the largest.
    """
    fronts, ratios, parts, near = moments[1], moments[3], moments[4], moments[5]
    least = math.inf
    for j in range(k):
        least = min(least, ratios[j])
    twice = dof + d  # minus twice the power
    for j in range(k):
        near[j] = (dof + least) / (dof + ratios[j])
        parts[j] = fronts[j]
    if twice % 2:
        for j in range(k):
            parts[j] *= math.sqrt(near[j])
    power = twice // 2
    while power:
        if power % 2:
            for j in range(k):
                parts[j] *= near[j]
        for j in range(k):
            near[j] *= near[j]
        power //= 2
    density, highest, best = 0.0, 0.0, 0
    for j in range(k):
        density += parts[j]
        if parts[j] > highest:
            highest, best = parts[j], j
    for j in range(k):
        parts[j] = parts[j] / density if parts[j] > _LEAST_SHARE * highest else 0.0
    top -= 0.5 * twice * math.log(1.0 + least / dof)
    return top + math.log(highest), top + math.log(density), best


@kernel
def _normal_parts(k, moments):
    """Share of each component in a point, normal tails; returns as for Student's."""
    heights, ratios, parts = moments[0], moments[3], moments[4]
    highest, best, density = -math.inf, 0, 0.0
    for j in range(k):
        parts[j] = heights[j] - 0.5 * ratios[j]
        if parts[j] > highest:
            highest, best = parts[j], j
    for j in range(k):
        if parts[j] > highest + _LEAST_LOG_SHARE:
            parts[j] = math.exp(parts[j] - highest)
            density += parts[j]
        else:
            parts[j] = 0.0
    for j in range(k):
        parts[j] /= density
    return highest, highest + math.log(density), best


@kernel
def _expect(
    points, weights, spreads, dof, pooling, k, centers, scales, shares, masses,
    labels, robust, sums, moments, covariance,
):  # fmt: skip
    """E step: sums over the points by component; both log-likelihoods.

    `pooling`: ROUND, or the shape of the pooled covariance that is summed up too.
    """
    n_points, d = points.shape
    inverses, ratios, parts = moments[2], moments[3], moments[4]
    square, thick = moments[6], moments[7]
    top, alike = _set_heights(k, d, dof, scales, shares, moments)
    mixture, classified = 0.0, 0.0
    masses[:k], square[:k], thick[:k], sums[:, :k] = 0.0, 0.0, 0.0, 0.0
    if pooling:
        covariance[:] = 0.0
    for i in range(n_points):
        weight = weights[i]
        for j in range(k):
            ratios[j] = spreads[i]
        for f in range(d):
            place = points[i, f]
            for j in range(k):
                gap = place - centers[f, j]
                ratios[j] += gap * gap
        for j in range(k):
            ratios[j] *= inverses[j]
        if dof > 0:
            highest, density, best = _student_parts(k, d, dof, top, moments)
            robust[i] = (dof + d) / (dof + ratios[best])
        else:
            highest, density, best = _normal_parts(k, moments)
        labels[i] = best
        classified += weight * highest
        mixture += weight * density
        for j in range(k):
            if parts[j] == 0.0:
                continue
            part = weight * parts[j]
            masses[j] += part
            if dof > 0:
                part *= (dof + d) / (dof + ratios[j])
            thick[j] += part
            square[j] += part * ratios[j] * scales[j]
            for f in range(d):
                sums[f, j] += part * (points[i, f] - centers[f, j])
            if pooling and parts[j] > 1e-3:
                for f in range(d):
                    side = part * inverses[j] * (points[i, f] - centers[f, j])
                    for g in range(0 if pooling == TIED else f, f + 1):
                        gap = points[i, g] - centers[g, j]
                        covariance[f, g] += side * gap
    if dof > 0 and not alike:
        mixture = -math.inf
    return mixture, classified


@kernel
def _maximise(
    total, own, pull, smallest, pooling, k, centers, scales, shares, masses, sums,
    moments, covariance,
):  # fmt: skip
    """M step: shares, centres and variances; the covariance about the new centres."""
    d = len(centers)
    inverses, square, thick = moments[2], moments[6], moments[7]
    harmonic, everything, all_mass = 0.0, 0.0, 0.0
    for j in range(k):
        harmonic += inverses[j] / k
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
        for f in range(d if pooling else 0):
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


@kernel
def _cholesky(matrix, shape, trace, factor):
    """Cholesky factor of a matrix of some trace; the mean log of its diagonal.

    Reads the lower triangle, or the diagonal alone if the shape is not TIED.
    """
    d = len(matrix)
    log_root = 0.0
    for f in range(d):
        for g in range(f + 1):
            value = matrix[f, g] if f == g or shape == TIED else 0.0
            smallest = max(1e-12 * value, 1e-30 * trace)
            for h in range(g):
                value -= factor[f, h] * factor[g, h]
            if f == g:
                factor[f, f] = math.sqrt(max(value, smallest))
                log_root += math.log(factor[f, f]) / d
            else:
                factor[f, g] = value / factor[g, g]
    return log_root


@kernel
def _mean_ratio(covariance, overall, shape, factor):
    """Mean eigenvalue of one covariance, the other the unit; `factor` is work space."""
    d = len(covariance)
    ratio = np.empty((d, d))
    trace = 0.0
    for f in range(d):
        trace += overall[f, f]
        for g in range(f + 1):
            ratio[f, g] = ratio[g, f] = covariance[f, g]
    if not trace > 0.0:
        return 0.0
    _cholesky(overall, shape, trace, factor)
    for f in range(d if shape != TIED else 0):
        for g in range(f):
            ratio[f, g] = ratio[g, f] = factor[f, g] = 0.0
    _change_coordinates(ratio, factor)
    mean = 0.0
    for f in range(d):
        mean += ratio[f, f] / d
    return mean


@kernel
def _factorise(total, shape, inverse, scatter, overall, covariance, factor):
    """Cholesky factor, of determinant 1, of the pooled covariance; False if it is 0.

    `covariance` is the sum over the rows in units of the variances; `inverse` times
    the `scatter` of what was merged is added, and n_features rows' worth of the
    `overall` covariance.
    """
    d = len(covariance)
    trace = 0.0
    for f in range(d):
        for g in range(f + 1):
            covariance[f, g] += inverse / total * scatter[f, g]
        trace += covariance[f, f]
    if not trace > 1e-3 * total:
        return False
    share = _mean_ratio(covariance, overall, shape, factor) * (d / total + 1e-9)
    for f in range(d):
        for g in range(f + 1):
            covariance[f, g] += share * overall[f, g]
    root = math.exp(_cholesky(covariance, shape, trace, factor))
    for f in range(d):
        for g in range(f + 1):
            factor[f, g] /= root
    return True


@kernel
def _whiten(points, spreads, scatter, overall, coordinates, k, centers, factor):
    """Change to the coordinates in which the factored covariance is round."""
    n_points, d = points.shape
    before, after = 0.0, 0.0
    for f in range(d):
        before += scatter[f, f]
    for i in range(n_points + d):
        row = points[i] if i < n_points else coordinates[i - n_points]
        for f in range(d):
            value = row[f]
            for g in range(f):
                value -= factor[f, g] * row[g]
            row[f] = value / factor[f, f]
    for f in range(d):
        for j in range(k):
            for g in range(f):
                centers[f, j] -= factor[f, g] * centers[g, j]
            centers[f, j] /= factor[f, f]
    _change_coordinates(scatter, factor)
    _change_coordinates(overall, factor)
    for f in range(d):
        after += scatter[f, f]
    if before > 0.0:
        for i in range(n_points):
            spreads[i] *= after / before


@kernel
def fit_mixture(
    points, weights, spreads, scatter, overall, coordinates, shape, own, dof, pull,
    smallest, max_iter, tolerance, k, centers, scales, shares, masses, labels, robust,
    sums, moments, pooled,
):  # fmt: skip
    """EM from the first `k` of `centers`, `scales` (variances) and `shares`, in place.

    `spreads` (n_points,): mean squared distances of the rows that were merged into a
    point, `scatter` (n_features, n_features) their sum of outer products, and `overall`
    the covariance of all rows, towards which the pooled one is shrunk. `coordinates`
    (n_features, n_features) maps rows to the points' coordinates. `centers` and `sums`
    are (n_features, n_clusters), so that loops over the clusters vectorise. `dof`: a
    whole number; 0 for normal components. `pull`: rows' worth of pull of own variances
    towards their harmonic mean. Receive results: `masses` (k,), `labels` and `robust`
    (n_points,), the component and the Student weight of each point. `sums`, `moments`
    (8, k) and `pooled` (2, n_features, n_features) are work space. Returns the
    log-likelihood of the mixture and that of the classification.
    """
    total = 0.0
    for i in range(len(points)):
        total += weights[i]
    covariance, factor = pooled[0], pooled[1]
    previous = -math.inf
    for iteration in range(max_iter + 1):
        change = iteration % _EVERY == 1 and iteration < max_iter
        pooling = shape if change else ROUND
        mixture, classified = _expect(
            points, weights, spreads, dof, pooling, k, centers, scales, shares, masses,
            labels, robust, sums, moments, covariance,
        )  # fmt: skip
        if iteration == max_iter or mixture - previous < tolerance:
            break
        previous, inverse = mixture, 0.0
        for j in range(k):
            inverse += masses[j] * moments[2, j]
        _maximise(
            total, own, pull, smallest, pooling, k, centers, scales, shares, masses,
            sums, moments, covariance,
        )  # fmt: skip
        if pooling and _factorise(
            total, shape, inverse, scatter, overall, covariance, factor
        ):
            _whiten(points, spreads, scatter, overall, coordinates, k, centers, factor)
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
