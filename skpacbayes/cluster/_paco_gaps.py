"""Gaps between clusters: clusters that are pieces of a group, or single places."""

import math

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ._paco_pieces import counts_between

# Number of neighbours of each cluster that are compared.
_NEIGHBORS = 3
# Rows midway over the smaller number at one of the centres, from which on there is no
# gap: the value of normal groups 2.7 standard deviations apart.
_DENSE = 0.75
# Least number of rows midway from which there may be no gap.
_FEWEST = 5.0
# A cluster is one place if its width over the distance to the next is below this.
_NO_WIDTH = 1e-6
# Standard errors by which the kurtosis of the rows of two clusters, each along its
# longest axis, is below that of normal ones if they are pieces of a group.
_FLAT = 2.0


def n_groups_with_gaps(points, weights, labels, centers, even=False):
    """Return the number of groups of clusters with gaps between them.

    Two clusters are in one group if their rows, along the line through both centres,
    are about as dense midway as at one of the centres. This is so for pieces of a group
    that does not have the shape of the clusters.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
    labels : ndarray of shape (n_points,)
    centers : ndarray of shape (n_clusters, n_features)
    even : bool, default=False
        Whether rows must also be spread evenly along the longest axes of two clusters
        of one group, as in pieces of a bent group, and not in normal groups that
        overlap.

    Returns
    -------
    n_groups : int
    """
    k = len(centers)
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : min(_NEIGHBORS, k - 1)]
    pairs = {(min(i, j), max(i, j)) for i, row in enumerate(nearest) for j in row}
    members = [np.flatnonzero(labels == j) for j in range(k)]
    joined = [
        pair
        for pair in sorted(pairs)
        if distances[pair] > 0
        and not _gap(
            points,
            weights,
            np.concatenate([members[j] for j in pair]),
            centers[list(pair)],
        )
        and not (even and not _flat(points, weights, [members[j] for j in pair]))
    ]
    if not joined:
        return k
    first, second = np.transpose(joined)
    graph = coo_array((np.ones(len(joined)), (first, second)), shape=(k, k))
    return int(connected_components(graph, directed=False)[0])


def _gap(points, weights, rows, ends):
    """Return whether rows are sparser midway between two centres than at both."""
    line = ends[1] - ends[0]
    places = (points[rows] - ends[0]) @ line / (line @ line)
    left, middle, right = counts_between(places, weights[rows], 0.0, 1.0)
    return middle < max(_FEWEST, _DENSE * min(left, right))


def _flat(points, weights, clusters):
    """Return whether rows are spread evenly along the longest axes of clusters."""
    places, masses = [], []
    for rows in clusters:
        mass, inside = weights[rows], points[rows]
        gaps = inside - mass @ inside / mass.sum()
        longest = np.linalg.eigh((gaps * mass[:, None]).T @ gaps)[1][:, -1]
        along = gaps @ longest
        places.append(along / math.sqrt(max(mass @ along**2 / mass.sum(), 1e-300)))
        masses.append(mass)
    places, masses = np.concatenate(places), np.concatenate(masses)
    kurtosis = masses @ places**4 / masses.sum()
    n_rows = masses.sum() ** 2 / (masses**2).sum()
    return kurtosis < 3 - _FLAT * math.sqrt(24 / n_rows)


def places_of_clusters(points, weights, labels, centers, width=_NO_WIDTH):
    """Return the weight of each cluster that is a single place; 0 for the others.

    `width`: largest width of a place over the distance to the next centre. Other
    parameters as in `n_groups_with_gaps`.
    """
    k = len(centers)
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    masses = np.bincount(labels, weights, minlength=k)
    highest, lowest = np.full((2, k, points.shape[1]), -np.inf)
    np.maximum.at(highest, labels, points)
    np.maximum.at(lowest, labels, -points)
    widths = (highest + lowest).max(axis=1)  # `lowest` is the maximum of -points
    return np.where(widths <= width * distances.min(axis=1), masses, 0.0)
