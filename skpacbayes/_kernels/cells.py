"""Spherical mixtures whose cells have scales of their own, by penalised EM.

Gaussian cells with variances for the squared Euclidean loss, Laplace cells with scales
for the Manhattan loss. Points stand for `weights` rows each, spread about the point
with mean squared distance `spreads` (mean absolute distance for the Manhattan loss).
"""

import math

import numpy as np

from . import kernel


@kernel
def _expect(points, weights, spreads, centers, scales, shares, manhattan, resp, logs):
    """Responsibilities of the cells, in place; `logs`: each point's log density."""
    n_clusters = centers.shape[0]
    n_features = points.shape[1]
    half = 1.0 if manhattan else 0.5
    total = 0.0
    for i in range(points.shape[0]):
        highest = -math.inf
        for j in range(n_clusters):
            loss = spreads[i]
            for f in range(n_features):
                gap = points[i, f] - centers[j, f]
                loss += abs(gap) if manhattan else gap * gap
            resp[i, j] = (
                math.log(shares[j])
                - half * n_features * math.log(scales[j])
                - half * loss / scales[j]
            )
            highest = max(highest, resp[i, j])
        mass = 0.0
        for j in range(n_clusters):
            resp[i, j] = math.exp(resp[i, j] - highest)
            mass += resp[i, j]
        for j in range(n_clusters):
            resp[i, j] /= mass
        logs[i] = highest + math.log(mass)
        total += weights[i] * logs[i]
    return total


@kernel
def _maximize(
    points,
    weights,
    spreads,
    order,
    manhattan,
    prior_size,
    resp,
    centers,
    scales,
    shares,
):
    """Move centres, scales and shares of the cells to their penalised optimum."""
    n_points, n_features = points.shape
    n_clusters = centers.shape[0]
    mass = np.zeros(n_clusters)
    for i in range(n_points):
        for j in range(n_clusters):
            mass[j] += weights[i] * resp[i, j]
    total = 0.0
    for j in range(n_clusters):
        mass[j] = max(mass[j], 1e-12)
        total += mass[j]
    if manhattan:
        passed = np.empty(n_clusters)
        for f in range(n_features):
            for j in range(n_clusters):
                passed[j] = 0.0
            for rank in range(n_points):
                i = order[f, rank]
                for j in range(n_clusters):
                    part = weights[i] * resp[i, j]
                    half = 0.5 * mass[j]
                    if passed[j] < half and passed[j] + part >= half:
                        centers[j, f] = points[i, f]
                    passed[j] += part
    else:
        for j in range(n_clusters):
            for f in range(n_features):
                centers[j, f] = 0.0
        for i in range(n_points):
            for j in range(n_clusters):
                part = weights[i] * resp[i, j] / mass[j]
                for f in range(n_features):
                    centers[j, f] += part * points[i, f]
    losses = np.zeros(n_clusters)
    for i in range(n_points):
        for j in range(n_clusters):
            part = weights[i] * resp[i, j]
            if part > 1e-12:
                loss = spreads[i]
                for f in range(n_features):
                    gap = points[i, f] - centers[j, f]
                    loss += abs(gap) if manhattan else gap * gap
                losses[j] += part * loss
    common = 0.0
    for j in range(n_clusters):
        common += 1.0 / scales[j] / n_clusters
    common = 1.0 / common
    for j in range(n_clusters):
        shares[j] = mass[j] / total
        scales[j] = (losses[j] / n_features + prior_size * common) / (
            mass[j] + prior_size
        )


@kernel
def fit_cells(
    points,
    weights,
    spreads,
    order,
    manhattan,
    prior_size,
    tempering,
    smallest,
    max_iter,
    centers,
    scales,
    shares,
    logs,
):
    """Penalised EM from `centers`, `scales` and `shares`, in place; the objective.

    The objective is the log-likelihood times `tempering`, less half a log of each
    cell's mass per parameter, less the pull (of `prior_size` rows) of the scales
    towards their harmonic mean.
    """
    n_clusters, n_features = centers.shape
    resp = np.empty((points.shape[0], n_clusters))
    half = 1.0 if manhattan else 0.5
    n_rows = 0.0
    for i in range(weights.shape[0]):
        n_rows += weights[i]
    log_likelihood = _expect(
        points, weights, spreads, centers, scales, shares, manhattan, resp, logs
    )
    for _ in range(max_iter):
        previous = log_likelihood
        _maximize(
            points,
            weights,
            spreads,
            order,
            manhattan,
            prior_size,
            resp,
            centers,
            scales,
            shares,
        )
        for j in range(n_clusters):
            scales[j] = max(scales[j], smallest)
        log_likelihood = _expect(
            points, weights, spreads, centers, scales, shares, manhattan, resp, logs
        )
        if log_likelihood - previous < 1e-3:
            break
    constant = math.log(2.0) if manhattan else 0.5 * math.log(2.0 * math.pi)
    objective = tempering * (log_likelihood - n_rows * n_features * constant)
    common = 0.0
    for j in range(n_clusters):
        common += 1.0 / scales[j] / n_clusters
    for j in range(n_clusters):
        ratio = 1.0 / (common * scales[j])
        objective -= 0.5 * (n_features + 2) * math.log(20.0 + shares[j] * n_rows)
        objective -= half * prior_size * n_features * (ratio - 1.0 - math.log(ratio))
    return objective
