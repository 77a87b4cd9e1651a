"""What speaks against clusters: no gap between them, or no width of their own."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

# Neighbours of each cluster that are looked at.
_NEIGHBORS = 3
# Half of the width of the windows in which rows are counted, in distances of centres.
_HALF = 0.15
# Rows between two clusters, over the fewer at one of the centres, from which on there
# is no gap: normal groups 2.7 standard deviations apart have so many.
_DENSE = 0.75
# Fewest rows between two clusters that tell.
_FEWEST = 5.0
# Width of a cluster, over the distance to the next one, that is none.
_NO_WIDTH = 1e-6
# Share of a column's range within which values are one.
_ONE_VALUE = 1e-9


def n_groups_with_gaps(points, weights, labels, centers):
    """Return the number of groups of clusters with gaps between them.

    Two clusters are in one group if their rows, along the line through both centres,
    are about as dense midway as at one of the centres at least. So are the pieces of a
    group that is not of the shape of the clusters.

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
    """Whether rows are sparser midway between two centres than at either."""
    line = ends[1] - ends[0]
    places = (points[rows] - ends[0]) @ line / (line @ line)
    counts = [
        weights[rows][np.abs(places - middle) < _HALF].sum() for middle in (0, 0.5, 1)
    ]
    return counts[1] < max(_FEWEST, _DENSE * min(counts[0], counts[2]))


def places_of_clusters(points, weights, labels, centers):
    """Return the weight of each cluster that is one place; 0 for the others.

    Parameters and shapes as in `n_groups_with_gaps`.
    """
    k = len(centers)
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    masses = np.bincount(labels, weights, minlength=k)
    highest, lowest = np.full((2, k, points.shape[1]), -np.inf)
    np.maximum.at(highest, labels, points)
    np.maximum.at(lowest, labels, -points)
    widths = (highest + lowest).max(axis=1)  # lowest: of minus the points
    return np.where(widths <= _NO_WIDTH * distances.min(axis=1), masses, 0.0)


def columns_constant_in_clusters(columns, labels, n_clusters):
    """Return the columns that have one value in some cluster of several rows.

    Only columns whose values hardly repeat elsewhere: of counts, ratings and categories
    a cluster may well have one.

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
