"""Checks of clusters: gaps in density between them, and their widths."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

# Number of neighbours of each cluster that are compared.
_NEIGHBORS = 3
# Half-width of the windows in which rows are counted, over the distance of the centres.
_HALF = 0.15
# Rows midway over the smaller number at one of the centres, from which on there is no
# gap: the value of normal groups 2.7 standard deviations apart.
_DENSE = 0.75
# Least number of rows midway from which there may be no gap.
_FEWEST = 5.0
# A cluster is one place if its width over the distance to the next is below this.
_NO_WIDTH = 1e-6
# Share of a column's range within which values count as equal.
_ONE_VALUE = 1e-9


def n_groups_with_gaps(points, weights, labels, centers):
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
    counts = [
        weights[rows][np.abs(places - middle) < _HALF].sum() for middle in (0, 0.5, 1)
    ]
    return counts[1] < max(_FEWEST, _DENSE * min(counts[0], counts[2]))


def places_of_clusters(points, weights, labels, centers):
    """Return the weight of each cluster that is a single place; 0 for the others.

    Parameters and shapes as in `n_groups_with_gaps`.
    """
    k = len(centers)
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    masses = np.bincount(labels, weights, minlength=k)
    highest, lowest = np.full((2, k, points.shape[1]), -np.inf)
    np.maximum.at(highest, labels, points)
    np.maximum.at(lowest, labels, -points)
    widths = (highest + lowest).max(axis=1)  # `lowest` is the maximum of -points
    return np.where(widths <= _NO_WIDTH * distances.min(axis=1), masses, 0.0)


def columns_constant_in_clusters(columns, labels, n_clusters):
    """Return the columns that are constant in some cluster of several rows.

    Only columns whose values hardly repeat elsewhere count: columns of counts, ratings
    or categories may well be constant in a cluster.

    Parameters
    ----------
    columns : ndarray of shape (n_points, n_columns)
    labels : ndarray of shape (n_points,)
    n_clusters : int

    Returns
    -------
    found : list of int
    """
    ranges, found = np.ptp(columns, axis=0), []
    for j in range(columns.shape[1]):
        highest, lowest = np.full((2, n_clusters), -np.inf)
        np.maximum.at(highest, labels, columns[:, j])
        np.maximum.at(lowest, labels, -columns[:, j])
        constant = highest + lowest <= _ONE_VALUE * ranges[j]
        inside = constant[labels] & (np.bincount(labels)[labels] >= _FEWEST)
        n_others = np.count_nonzero(~inside)
        several = len(np.unique(columns[~inside, j])) > n_others / 2
        if inside.any() and n_others and several:
            found.append(j)
    return found
