"""Rows far from all clusters, of which a part of the rows has too few to explain."""

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_background import CHANCE, OUTSIDE, chance_groups, log_volume, without_small
from ._paco_mixture import LEAST_GAIN, squared_radius

# Expected number of rows of the clusters that are far from all of them.
_EXPECTED = 0.01
# Largest number of far rows that are compared, and least number of rows of a cluster.
_MOST_FAR, FEWEST = 1000, 3
# Largest number of new clusters, and of iterations of EM with each.
_MOST_MORE, _MAX_ITER = 20, 12


def far_points(points, mixture):
    """Return the indices of points that are far from all clusters of a mixture.

    `points` (n_points, n_features): in the coordinates of the mixture.
    """
    squares = cdist(points, mixture.centers, "sqeuclidean") / mixture.scales
    share = _EXPECTED / len(points)
    limit = squared_radius(share, points.shape[1], mixture.dof)
    return np.flatnonzero(squares.min(axis=1) > limit)


def explaining_far_rows(problem, mixture, gain):
    """Return the mixture, or a better one for rows that are far from its clusters.

    It has more clusters, of such rows, or a background.

    Parameters
    ----------
    problem : MixtureProblem
        All points.
    mixture : Mixture
        Fitted to all points, after a search of a part of them.
    gain : float
        Log evidence that its clusters gain by being skewed: a far row skews them.

    Returns
    -------
    mixture : Mixture
    """
    for _ in range(_MOST_MORE):
        far = far_points(problem.points @ mixture.coordinates, mixture)
        if mixture.background or len(far) < FEWEST:
            break
        share = problem.weights[far].sum() / problem.n_rows
        found = [
            _with_far_cluster(problem, mixture, far),
            without_small(problem, mixture, share),
        ]
        found = [one for one in found if one is not None]
        best = max(found, key=lambda one: one.evidence, default=mixture)
        if best.evidence < mixture.evidence + gain + LEAST_GAIN:
            break
        mixture, gain = best, 0.0
    return mixture


def _with_far_cluster(problem, mixture, far):
    """Return the mixture with a cluster where far rows are densest, or None."""
    points, d = problem.points @ mixture.coordinates, problem.d
    far = far[:: math.ceil(len(far) / _MOST_FAR)]
    scale = mixture.masses @ mixture.scales / mixture.masses.sum()
    reach = squared_radius(OUTSIDE, d, mixture.dof) * scale
    near = cdist(points[far], points[far], "sqeuclidean") <= reach
    inside = far[near[near.sum(axis=1).argmax()]]
    numbers = np.array([float(len(inside))]), np.array([float(len(far))])
    uniform = -log_volume(problem, mixture.shape)
    like = np.array([scale]), mixture.dof, uniform, d
    if len(inside) < FEWEST or chance_groups(*numbers, *like)[0] > CHANCE:
        return None
    weights = problem.weights[inside]
    mass = weights.sum()
    share = mass / problem.n_rows
    start = replace(
        mixture,
        centers=np.vstack([mixture.centers, weights @ points[inside] / mass]),
        scales=np.append(mixture.scales, scale),
        shares=np.append(mixture.shares * (1.0 - share), share),
        masses=np.append(mixture.masses, mass),
    )
    more = problem.fit(start, *mixture.kind, _MAX_ITER)
    return more if more is not None and more.n_clusters > mixture.n_clusters else None
