"""Small clusters, of which a part of the rows has too few to find them."""

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_background import chance_groups, fit_with_background, log_volume
from ._paco_mixture import LEAST_GAIN, squared_radius

# Expected number of rows of the clusters that are far from all of them.
_EXPECTED = 0.01
# Largest number of far rows that are compared, and least number of rows of a cluster.
_MOST_FAR, FEWEST = 1000, 3
# Share of the rows of a new cluster that are outside its radius; largest expected
# number of such groups by chance.
_OUTSIDE, _CHANCE = 0.01, 0.01
# Largest number of iterations of EM with a new cluster.
_MAX_ITER = 12


def with_small_clusters(problem, mixture):
    """Return a better mixture with more clusters, of rows far from all others.

    Parameters
    ----------
    problem : MixtureProblem
        All points.
    mixture : Mixture
        Fitted to all points, after a search of a part of them.

    Returns
    -------
    mixture : Mixture
        `mixture` itself if there are no such clusters.
    """
    while True:
        start = _with_far_cluster(problem, mixture)
        if start is None:
            return mixture
        if mixture.background:
            more = fit_with_background(problem, start, *mixture.kind)
        else:
            more = problem.fit(start, *mixture.kind, _MAX_ITER)
        if more is None or more.n_clusters <= mixture.n_clusters:
            return mixture
        if more.evidence < mixture.evidence + LEAST_GAIN:
            return mixture
        mixture = more


def far_points(points, mixture):
    """Return the indices of points that are far from all clusters of a mixture.

    `points` (n_points, n_features): in the coordinates of the mixture.
    """
    squares = cdist(points, mixture.centers, "sqeuclidean") / mixture.scales
    share = _EXPECTED / len(points)
    limit = squared_radius(share, points.shape[1], mixture.dof)
    return np.flatnonzero(squares.min(axis=1) > limit)


def _with_far_cluster(problem, mixture):
    """Return the mixture with one more cluster, where far rows are densest, or None."""
    d, dof = problem.d, mixture.dof
    points = problem.points @ mixture.coordinates
    far = far_points(points, mixture)
    if len(far) < FEWEST:
        return None
    far = far[:: math.ceil(len(far) / _MOST_FAR)]
    scale = mixture.masses @ mixture.scales / mixture.masses.sum()
    reach = squared_radius(_OUTSIDE, d, dof) * scale
    near = cdist(points[far], points[far], "sqeuclidean") <= reach
    inside = far[near[near.sum(axis=1).argmax()]]
    numbers = np.array([float(len(inside))]), np.array([float(len(far))])
    uniform = -log_volume(problem, mixture.shape)
    expected = chance_groups(*numbers, np.array([scale]), dof, uniform, d)
    if len(inside) < FEWEST or expected[0] > _CHANCE:
        return None
    weights = problem.weights[inside]
    mass = weights.sum()
    share = mass / problem.n_rows
    return replace(
        mixture,
        centers=np.vstack([mixture.centers, weights @ points[inside] / mass]),
        scales=np.append(mixture.scales, scale),
        shares=np.append(mixture.shares * (1.0 - share), share),
        masses=np.append(mixture.masses, mass),
    )
