"""Penalised EM for spherical mixtures whose cells have their own scales.

Gaussian cells with variances for the squared Euclidean loss, Laplace cells with scales
for the Manhattan loss. Points stand for `weights` rows each, spread about the point
with mean squared distance `spreads` (mean absolute distance for the Manhattan loss).
`manhattan` is None or True: what None excludes is not compiled.
"""

import math

from . import kernel, part
from .paco import add_losses

# Just below a half: the lower of two medians, however the sums are rounded.
HALF = 0.5 * (1.0 - 1e-12)


@part
def _move(j, points, columns, order, manhattan, parts, masses, centers):
    """Move the centre of a cell to the mean or the medians of its shares of points."""
    n_features, n_points = columns.shape
    if manhattan is None:
        passed = 0.0
        for i in range(n_points):
            passed += parts[j, i]
            share = parts[j, i] / passed if parts[j, i] > 0.0 else 0.0
            for f in range(n_features if share > 1e-18 else 0):  # running means
                centers[j, f] += share * (points[i, f] - centers[j, f])
    else:
        for f in range(n_features):
            passed = 0.0
            for rank in range(n_points):
                i = order[f, rank]
                passed += parts[j, i]
                if passed >= HALF * masses[j]:
                    centers[j, f] = points[i, f]
                    break


@part
def _share_points(weights, half, scales, heights, logs, losses, parts, masses):
    """Give each cell its share of each point; return the log-likelihood and the rows.

    `masses` (n_clusters,) gain the shares.
    """
    n_clusters, n_points = parts.shape
    log_likelihood, n_rows = 0.0, 0.0
    for i in range(n_points):
        highest = -math.inf
        for j in range(n_clusters):
            height = heights[j] - half / scales[j] * losses[j, i]
            highest = height if height > highest else highest
            parts[j, i] = height
        density = 0.0
        for j in range(n_clusters):
            parts[j, i] = math.exp(parts[j, i] - highest)
            density += parts[j, i]
        for j in range(n_clusters):
            parts[j, i] *= weights[i] / density
            masses[j] += parts[j, i]
        logs[i] = highest + math.log(density)
        log_likelihood += weights[i] * logs[i]
        n_rows += weights[i]
    return log_likelihood, n_rows


@kernel
def fit_cells(rows, manhattan, pull, max_iter, cells, logs, work):
    """Run penalised EM from `cells`, in place; return the objective.

    The objective is the sum of the log densities over the rows times the tempering,
    minus half the log of each cell's mass per parameter, minus the penalty that pulls
    the scales towards their harmonic mean.

    `rows`: points (n_points, n_features), and transposed; weights; spreads; and the
    order (n_features, n_points) of the points along each feature, for the medians.
    `pull`: the number of pseudo-rows of the penalty; the tempering; the smallest scale.
    `cells`: centres, scales, shares. `logs` (n_points,) receives the log densities,
    less a constant. `work`: losses and parts (n_clusters, n_points); heights and masses
    (n_clusters,).
    """
    points, columns, weights, spreads, order = rows
    prior_size, tempering, smallest = pull
    centers, scales, shares = cells
    losses, parts, heights, masses = work
    n_features, n_points = columns.shape
    n_clusters = centers.shape[0]
    half = 0.5 if manhattan is None else 1.0
    n_rows = 0.0
    harmonic = 1.0  # mean of the inverse scales, from the first iteration on
    log_likelihood = -math.inf
    for iteration in range(max_iter + 1):
        pulled = prior_size / harmonic
        harmonic = 0.0
        for j in range(n_clusters):
            if iteration > 0:
                _move(j, points, columns, order, manhattan, parts, masses, centers)
            for i in range(n_points):
                losses[j, i] = spreads[i]
            add_losses(columns, n_features, centers, j, manhattan, losses)
            if iteration > 0:
                total = 0.0
                for i in range(n_points):
                    total += parts[j, i] * losses[j, i]
                scale = (total / n_features + pulled) / (masses[j] + prior_size)
                scales[j] = scale if scale > smallest else smallest
                shares[j] = masses[j] / n_rows
            harmonic += 1.0 / (n_clusters * scales[j])
            heights[j] = math.log(shares[j]) - half * n_features * math.log(scales[j])
            masses[j] = 1e-12
        previous = log_likelihood
        log_likelihood, n_rows = _share_points(
            weights, half, scales, heights, logs, losses, parts, masses
        )
        if log_likelihood - previous < 1e-3:
            break
    objective = tempering * log_likelihood
    for j in range(n_clusters):
        ratio = 1.0 / (harmonic * scales[j])
        objective -= 0.5 * (n_features + 2) * math.log(20.0 + shares[j] * n_rows)
        objective -= half * prior_size * n_features * (ratio - 1.0 - math.log(ratio))
    return objective
