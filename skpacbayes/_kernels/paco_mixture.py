"""EM for mixtures of one common shape, on weighted points.

Components are round in the coordinates of the points, normal or Student, with a common
variance or their own. A background of uniform density may take rows of no component.
For a diagonal or tied shape the kernel stops where the caller changes the coordinates.
"""

import math
from collections import namedtuple

from . import kernel, part

# Share of a point, over the largest, below which a component is skipped; its log.
_LEAST_SHARE, _LEAST_LOG_SHARE = 1e-6, math.log(1e-6)
# Share of a point from which it counts for the covariance within a component.
_COUNTED = 1e-3
# Largest difference of log densities at centres that Student components may have.
_DIFFERENT = 600.0
# Number of iterations between two changes of the coordinates.
EVERY = 3
# Least share of a background.
_LEAST_BACKGROUND = 1e-9

# Weighted points: `places` (n_points, n_features); `weights`, of sum `total`; `spreads`
# (n_points,), mean squared distances of the rows that were merged into a point.
Cloud = namedtuple("Cloud", "places weights spreads total")

# Which mixture: whether coordinates change, and whether variances are the components'
# `own`; `dof`, a whole number, 0 for normal components; rows' worth of `pull` of own
# variances towards their harmonic mean; the weight of one `row`; the `smallest`
# variance; the log density of the background, if there is one.
Kind = namedtuple("Kind", "changing own dof pull row smallest log_uniform")

# Parameters, changed in place: `centers` (n_features, n_clusters), so that loops over
# the clusters vectorise, `scales` (variances), `shares` and `masses` (n_clusters,).
Components = namedtuple("Components", "centers scales shares masses")

# Results: `labels` and `robust` (n_points,), the component and the weight of each point
# in its moments over its share. Where the coordinates have to change: `sums`
# (n_clusters, n_features), the last steps of the centres; `moments[2]` and
# `moments[7]`, the inverse variances before the step, and the components' weights; and
# `within` (n_points, n_clusters), zeros before, the weight of each point over the
# variance of the component. `moments` (8, n_clusters) is work space, too. `origins`
# (n_clusters, n_features) are the centres before the last step, of which one component
# is contiguous.
Found = namedtuple("Found", "labels robust sums moments within origins")


@part
def _set_heights(k, d, dof, components, found, moments):
    """Write log(share * density) at the centres; set sums over the points to 0.

    Returns the largest of these logs, and whether exp of their differences is in range.
    """
    centers, scales, shares, masses = components
    heights, fronts, inverses, _, _, _, square, thick = moments
    constant = -0.5 * d * math.log(2.0 * math.pi)
    if dof > 0:
        constant = math.lgamma(0.5 * (dof + d)) - math.lgamma(0.5 * dof)
        constant -= 0.5 * d * math.log(dof * math.pi)
    lowest, highest = math.inf, -math.inf
    for j in range(k):
        share = shares[j]
        height = constant - 0.5 * d * math.log(scales[j])
        height += math.log(share if share > 1e-100 else 1e-100)
        heights[j], inverses[j] = height, 1.0 / scales[j]
        lowest = height if height < lowest else lowest
        highest = height if height > highest else highest
        masses[j] = square[j] = thick[j] = 0.0
        for f in range(d):
            found.sums[j, f] = 0.0
            found.origins[j, f] = centers[f, j]
    for j in range(k):
        fronts[j] = math.exp(heights[j] - highest)
    return highest, highest - lowest < _DIFFERENT


@part
def _student_parts(k, d, dof, least, moments):
    """Write Student densities of the components at a point, over a common factor.

    Returns the log of that factor, less the largest of the logs at the centres.
    """
    _, fronts, _, ratios, parts, near, _, _ = moments
    for j in range(k):
        near[j] = math.sqrt((dof + least) / (dof + ratios[j]))
        parts[j] = fronts[j]
    power = dof + d
    while power:
        for j in range(k):
            base = near[j]
            parts[j] *= base if power % 2 else 1.0
            near[j] = base * base
        power //= 2
    return -0.5 * (dof + d) * math.log(1.0 + least / dof)


@part
def _normal_parts(k, moments):
    """Write normal densities of the components at a point, over the largest.

    Returns the log of the largest.
    """
    heights, _, _, ratios, parts, _, _, _ = moments
    highest = -math.inf
    for j in range(k):
        parts[j] = heights[j] - 0.5 * ratios[j]
        highest = parts[j] if parts[j] > highest else highest
    for j in range(k):
        gap = parts[j] - highest
        parts[j] = math.exp(gap) if gap > _LEAST_LOG_SHARE else 0.0
    return highest


@part
def _expect(cloud, dof, pooling, k, components, log_background, found, moments):
    """Make an E step: sum over the points by component; return both log-likelihoods.

    With `pooling`, the factors of the covariance within the components go to `within`.
    Also returns the rows of the background, whose density is exp(`log_background`).
    """
    points, weights, spreads, _ = cloud
    centers, scales, _, masses = components
    labels, robust, sums, _, within, origins = found
    n_points, d = points.shape
    _, _, inverses, ratios, parts, _, square, thick = moments
    top, alike = _set_heights(k, d, dof, components, found, moments)
    mixture, classified, outside = 0.0, 0.0, 0.0
    for i in range(n_points):
        weight = weights[i]
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
            least = ratios[j] if ratios[j] < least else least
        if dof > 0:
            log_factor = top + _student_parts(k, d, dof, least, moments)
        else:
            log_factor = _normal_parts(k, moments)
        density, highest, best, inside = 0.0, 0.0, 0, 1.0
        for j in range(k):
            density += parts[j]
            if parts[j] > highest:
                highest, best = parts[j], j
        log_highest = log_factor + math.log(highest)
        log_density = log_factor + math.log(density)
        if log_background > -math.inf:
            gap = log_background - log_density
            inside = 1.0 / (1.0 + math.exp(min(gap, _DIFFERENT)))
            log_density = max(log_density - math.log(inside), log_background)
            log_highest = max(log_highest, log_background)
        labels[i], robust[i] = best, inside
        classified += weight * log_highest
        mixture += weight * log_density
        outside += weight * (1.0 - inside)
        for j in range(k):
            if parts[j] <= _LEAST_SHARE * highest:
                continue
            share = inside * parts[j] / density
            part = weight * share
            masses[j] += part
            if dof > 0:
                factor = (dof + d) / (dof + ratios[j])
                part *= factor
                if j == best:
                    robust[i] *= factor
            thick[j] += part
            square[j] += part * ratios[j] * scales[j]
            for f in range(d):
                sums[j, f] += part * (points[i, f] - origins[j, f])
            if pooling and share > _COUNTED:
                within[i, j] = part * inverses[j]
    if dof > 0 and not alike:
        mixture = -math.inf
    return mixture, classified, outside


@part
def _maximise(total, kind, k, components, sums, moments):
    """Make an M step: shares, centres, variances; write steps of centres to `sums`."""
    centers, scales, shares, masses = components
    d = len(centers)
    _, _, inverses, _, _, _, square, thick = moments
    harmonic, everything, all_mass = 0.0, 0.0, 0.0
    for j in range(k):
        # Variances without the degree of freedom that the centre takes: otherwise those
        # of clusters of single rows, if there are many, would vanish with their mean.
        free = max(masses[j] - kind.row, 0.0) + kind.pull
        harmonic += inverses[j] * free / (masses[j] + kind.pull) / k
        shares[j] = masses[j] / total
        if thick[j] > 0.0:
            moved = 0.0
            for f in range(d):
                step = sums[j, f] / thick[j]
                moved += step * step
                sums[j, f] = step
                centers[f, j] += step
            rest = square[j] - thick[j] * moved
            square[j] = rest if rest > 0.0 else 0.0
            everything += square[j]
            all_mass += masses[j]
    for j in range(k):
        scale = everything / (d * all_mass)
        if kind.own:
            scale = square[j] / d + kind.pull / harmonic
            scale /= masses[j] + kind.pull
        scales[j] = scale if scale > kind.smallest else kind.smallest


@kernel
def run_em(
    cloud, kind, begin, max_iter, previous, tolerance, k, background, components, found
):
    """Run EM from the first `k` of the components, in place.

    Iterations are numbered from `begin`. Stops at iteration `max_iter`; when the rise
    of the log-likelihood, at first over `previous`, is below `tolerance`; or, if they
    are changing, where the coordinates have to change. `background`: its share of the
    rows, 0 for no background. `cloud`, `kind`, `components`, `found`: see these tuples.

    Returns the log-likelihood of the mixture and that of the classification at the last
    E step, the number of iterations, whether the coordinates have to change, and the
    share of the background.
    """
    moments = found.moments
    rows = (
        moments[0], moments[1], moments[2], moments[3],
        moments[4], moments[5], moments[6], moments[7],
    )  # fmt: skip
    iteration, pooling, mixture, classified = begin, False, 0.0, 0.0
    while not pooling:
        pooling = kind.changing and iteration % EVERY == 1 and iteration < max_iter
        log_background = -math.inf
        if background > 0.0:
            log_background = math.log(background) + kind.log_uniform
        mixture, classified, outside = _expect(
            cloud, kind.dof, pooling, k, components, log_background, found, rows
        )
        if background > 0.0:
            background = max(outside / cloud.total, _LEAST_BACKGROUND)
        if iteration == max_iter or mixture - previous < tolerance:
            return mixture, classified, iteration, False, background
        previous = mixture
        _maximise(cloud.total, kind, k, components, found.sums, rows)
        iteration += 1
    return mixture, classified, iteration, True, background
