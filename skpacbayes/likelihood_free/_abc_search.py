"""Search for the nearest rows, among all rows or those of near leaves only.

Both searches estimate a threshold on the distance of the nearest rows from a sample,
and collect the rows below it. If there are too few, they are repeated without a
threshold: the result does not depend on it.
"""

import numpy as np
from scipy.spatial import cKDTree

from .._kernels import likelihood_free as kernels
from ._abc_table import tiles

SAMPLED = 64  # the sample has one of this number of blocks, or rows
SAFETY = 3.0  # standard deviations of a count by which the threshold is increased
ROOM = 2**11  # number of additional rows that are collected before some are dropped
LEAF = 256  # largest number of rows of a leaf


class Scan:
    """Search of all rows.

    Parameters
    ----------
    columns : ndarray of shape (n_directions, capacity)
        Coordinates.
    precisions : ndarray of shape (n_directions,)
        Factors of the coordinates.
    n_rows : int
        Rows in use.
    first : int, default=0
        Number of the first row.
    """

    def __init__(self, columns, precisions, n_rows, first=0):
        self.columns, self.precisions = columns, precisions
        self.n_rows, self.first = n_rows, first

    def nearest(self, observations, n_wanted):
        """Return the nearest rows and squared distances, unordered.

        There may be more than `n_wanted` rows; ties are broken by the lower row.
        """
        n_wanted = min(n_wanted, self.n_rows)
        columns = self.columns, self.precisions
        starts = np.arange(0, self.n_rows, SAMPLED * kernels.BLOCK)
        stops = np.minimum(starts + kernels.BLOCK, self.n_rows)
        guesses = guess(*columns, starts, stops, observations, n_wanted / self.n_rows)
        every = np.array([0]), np.array([self.n_rows])
        found = collect(*columns, *every, observations, n_wanted, guesses)
        for q, (rows, _) in enumerate(found):
            if len(rows) < n_wanted:
                alone = observations[q : q + 1]
                (found[q],) = collect(*columns, *every, alone, n_wanted)
        return [(rows + self.first, squares) for rows, squares in found]


class Leaves:
    """Search of the near leaves of a k-d tree: rows in leaf order, and boxes.

    Parameters
    ----------
    table : Table
        The simulations.
    metric : Metric
        The distances.

    Attributes
    ----------
    n_rows : int
        Rows of the table when it was made.
    """

    def __init__(self, table, metric):
        self.n_rows, self.precisions = table.n_rows, metric.precisions
        self.rows, self.borders = leaves_of_tree(table, metric)
        self.columns = np.empty((len(self.precisions), self.n_rows))
        for some in tiles(self.n_rows):
            found = table.summaries.take(self.rows[some], axis=1)
            self.columns[:, some] = metric.project(found)
        self.lowest = np.minimum.reduceat(self.columns, self.borders[:-1], axis=1)
        self.highest = np.maximum.reduceat(self.columns, self.borders[:-1], axis=1)
        self.sample = self.columns[:, ::SAMPLED].copy()

    def nearest(self, observations, n_wanted):
        """Return the nearest rows and squared distances, unordered.

        There may be more than `n_wanted` rows; ties are broken by the lower row.
        """
        n_wanted = min(n_wanted, self.n_rows)
        sample = np.array([0]), np.array([self.sample.shape[1]])
        share = n_wanted / self.n_rows
        guesses = guess(self.sample, self.precisions, *sample, observations, share)
        found = []
        for q in range(len(observations)):
            observation, threshold = observations[q : q + 1], guesses[q : q + 1]
            near = ~(self._lower_bounds(observation) >= threshold)
            answer = self._collect(near, observation, n_wanted, threshold)
            if len(answer[0]) < n_wanted:
                every = np.ones(len(near), dtype=bool)
                answer = self._collect(every, observation, n_wanted)
            found.append(answer)
        return found

    def _lower_bounds(self, observation):
        """Return squared distances to the boxes, rounded as those to the rows."""
        x = observation.T
        with np.errstate(over="ignore"):
            gaps = np.clip(x, self.lowest, self.highest) - x
            squares = np.square(gaps * self.precisions[:, None]).sum(axis=0)
        return rounded(squares)

    def _collect(self, leaves, observation, n_wanted, threshold=None):
        edges = np.flatnonzero(np.diff(leaves, prepend=False, append=False))
        ((places, squares),) = collect(
            self.columns,
            self.precisions,
            self.borders[edges[::2]],
            self.borders[edges[1::2]],
            observation,
            n_wanted,
            threshold,
            self.rows,
        )
        return self.rows.take(places), squares


def leaves_of_tree(table, metric):
    """Return the rows in the order of the leaves of a tree, and the leaves' borders."""
    points = np.empty((table.n_rows, len(metric.scale)))
    for rows in tiles(table.n_rows):
        points[rows] = metric.project(table.summaries[:, rows]).T * metric.precisions
    tree = cKDTree(points, leafsize=LEAF, balanced_tree=False, compact_nodes=False)
    borders, nodes = [0], [tree.tree]
    while nodes:
        node = nodes.pop()
        if node.split_dim == -1:
            borders.append(node.end_idx)
        else:
            nodes += [node.greater, node.lesser]
    return np.array(tree.indices), np.array(borders)


def guess(columns, precisions, starts, stops, observations, share):
    """Return thresholds that at least a share of the rows passes, from a sample."""
    expected = share * (stops - starts).sum()
    n_wanted = int(expected + SAFETY * np.sqrt(expected) + SAFETY)
    if n_wanted > (stops - starts).sum():
        return np.full(len(observations), np.nan)
    found = collect(columns, precisions, starts, stops, observations, n_wanted)
    last = n_wanted - 1
    farthest = [np.partition(squares, last)[last] for _, squares in found]
    return np.nextafter(farthest, np.inf)


def collect(
    columns,
    precisions,
    starts,
    stops,
    observations,
    n_wanted,
    thresholds=None,
    labels=None,
):
    """Return the rows within a threshold of each observation, or the nearest rows.

    Parameters
    ----------
    columns : ndarray of shape (n_directions, capacity)
        Coordinates.
    precisions : ndarray of shape (n_directions,)
        Factors of the coordinates.
    starts, stops : ndarray of shape (n_ranges,)
        Ranges of rows to search.
    observations : ndarray of shape (n_observations, n_directions)
        Observations.
    n_wanted : int
        Number of nearest rows that are kept if there is no room for all.
    thresholds : ndarray of shape (n_observations,), default=None
        Thresholds on squared distances. None: all rows pass.
    labels : ndarray of shape (n_rows,), default=None
        Labels that break ties, lower ones first. None: the rows.

    Returns
    -------
    list of (rows, squared distances), the latter rounded
    """
    count, room = len(observations), 2 * n_wanted + ROOM
    thresholds = np.full(count, np.nan) if thresholds is None else thresholds.copy()
    counts, starts = np.zeros(count, dtype=np.int64), starts.copy()
    squares, rows = np.empty((count, room)), np.empty((count, room), dtype=np.int64)
    while not kernels.collect_nearer(
        columns,
        starts,
        stops,
        precisions,
        observations,
        thresholds,
        counts,
        squares,
        rows,
    ):
        for q in np.flatnonzero(counts > n_wanted):
            places = rows[q, : counts[q]]
            ranks = places if labels is None else labels[places]
            kept = smallest(squares[q, : counts[q]], ranks, n_wanted)
            squares[q, :n_wanted], rows[q, :n_wanted] = squares[q, kept], places[kept]
            thresholds[q] = np.nextafter(squares[q, :n_wanted].max(), np.inf)
            counts[q] = n_wanted
    return [(rows[q, :n], squares[q, :n]) for q, n in enumerate(counts)]


def rounded(squares):
    """Return squared distances, rounded as by `collect_nearer`."""
    with np.errstate(over="ignore", invalid="ignore"):
        large = squares * kernels.SPLITTER
        high = large - (large - squares)
    return np.where(np.isnan(high), squares, high)


def smallest(squares, ranks, count):
    """Return the indices of the `count` smallest, ties broken by rank."""
    last = np.partition(squares, count - 1)[count - 1]
    smaller, equal = np.flatnonzero(squares < last), np.flatnonzero(squares == last)
    n_equal = count - len(smaller)
    if len(equal) > n_equal:
        equal = equal[np.argsort(ranks[equal])[:n_equal]]
    return np.concatenate([smaller, equal])
