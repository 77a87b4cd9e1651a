"""Mixtures of one common shape, on weighted points: EM.

Components are round in the coordinates of the points, normal or Student, with a common
variance or their own. For a diagonal or tied shape the covariance within components is
summed up too, by which the caller changes the coordinates.
"""

import math

from . import kernel, part

ROUND, DIAGONAL, TIED = 0, 1, 2
# Share of a point, over the largest, below which a component is skipped; its log.
_LEAST_SHARE, _LEAST_LOG_SHARE = 1e-6, math.log(1e-6)
# Largest difference of log densities at centres that Student components may have.
_DIFFERENT = 600.0
# One iteration in so many changes the coordinates.
_EVERY = 3


@part
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
        share = shares[j]
        height += math.log(share if share > 1e-100 else 1e-100)
        heights[j], inverses[j] = height, 1.0 / scales[j]
        lowest = height if height < lowest else lowest
        highest = height if height > highest else highest
    for j in range(k):
        fronts[j] = math.exp(heights[j] - highest)
    return highest, highest - lowest < _DIFFERENT


@part
def _student_parts(k, d, dof, top, moments):
    """Share of each component in a point, Student tails.

    Returns the logs of the largest and of the sum of the densities, and the component
    of the largest.
    """
    fronts, ratios, parts, near = moments[1], moments[3], moments[4], moments[5]
    least = math.inf
    for j in range(k):
        least = ratios[j] if ratios[j] < least else least
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


@part
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


@part
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


@part
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
        rest = square[j] - thick[j] * moved
        square[j] = rest if rest > 0.0 else 0.0
        everything += square[j]
        all_mass += masses[j]
    for j in range(k):
        if own:
            scale = (square[j] / d + pull / harmonic) / (masses[j] + pull)
        else:
            scale = everything / (d * all_mass)
        scales[j] = scale if scale > smallest else smallest


@kernel
def run_em(
    points, weights, spreads, shape, own, dof, pull, smallest, begin, max_iter,
    previous, tolerance, k, centers, scales, shares, masses, labels, robust, sums,
    moments, covariance,
):  # fmt: skip
    """EM from the first `k` of `centers`, `scales` (variances) and `shares`, in place.

    Iterations from `begin` until there are `max_iter`, or until the log-likelihood
    rises by less than `tolerance`, over the `previous` one at first; or, if the `shape`
    is not ROUND, until the coordinates have to change.

    `spreads` (n_points,): mean squared distances of the rows that were merged into a
    point. `centers` and `sums` are (n_features, n_clusters), so that loops over the
    clusters vectorise. `dof`: a whole number; 0 for normal components. `pull`: rows'
    worth of pull of own variances towards their harmonic mean. Receive results:
    `masses` (k,), `labels` and `robust` (n_points,), the component and the Student
    weight of each point; where the coordinates have to change, `moments[2]`, the
    inverse variances of the last E step, and `covariance` (n_features, n_features), the
    sum of squares within the components in their units: the lower triangle if the
    shape is TIED, else the diagonal. `sums` and `moments` (8, k) are work space.
    Returns the log-likelihood of the mixture and that of the classification at the last
    E step, the number of iterations, and whether the coordinates have to change.
    """
    total = 0.0
    for i in range(len(points)):
        total += weights[i]
    iteration, pooling, mixture, classified = begin, ROUND, 0.0, 0.0
    while pooling == ROUND:
        if iteration % _EVERY == 1 and iteration < max_iter:
            pooling = shape
        mixture, classified = _expect(
            points, weights, spreads, dof, pooling, k, centers, scales, shares, masses,
            labels, robust, sums, moments, covariance,
        )  # fmt: skip
        if iteration == max_iter or mixture - previous < tolerance:
            return mixture, classified, iteration, False
        previous = mixture
        _maximise(
            total, own, pull, smallest, pooling, k, centers, scales, shares, masses,
            sums, moments, covariance,
        )  # fmt: skip
        iteration += 1
    return mixture, classified, iteration, True
