"""The simulations nearest to an observation, with or without an index."""

import numpy as np
from scipy.spatial import KDTree

from .._kernels import likelihood_free as kernels
from ._table import tiles

TOGETHER = 8  # observations for which the table is read once
# When "auto" takes an index: benchmarks/bench_abc.py compares the times.
INDEX_DIRECTIONS = 6
INDEX_ROWS = 20_000
INDEX_OBSERVATIONS = 100
INDEX_SHARE = 0.02  # of the rows that are wanted
INDEX_LAG = 0.1  # rows that are younger than the index, as a share of it


class Neighbours:
    """Search for the nearest rows of a table that may grow.

    Ties go to the earlier row. What is stored beside the metric is derived from the
    table, and is not pickled.

    Parameters
    ----------
    metric : Metric
        The distances.
    """

    def __init__(self, metric):
        self.metric = metric
        self._forget()

    def _forget(self):
        self._projected, self._n_projected = None, 0
        self._tree = None

    def __getstate__(self):
        return {"metric": self.metric}

    def __setstate__(self, state):
        self.metric = state["metric"]
        self._forget()

    def gaps(self, table, rows, observation):
        """Return simulated minus observed coordinates, in units of the scale.

        Returns an ndarray of shape (n_directions, n_rows).
        """
        found = self.metric.project(table.summaries[:, rows])
        return (found - observation[:, None]) / self.metric.scale[:, None]

    def nearest(self, table, observations, n_rows, algorithm="brute"):
        """Yield the rows nearest to each observation, the nearest first.

        Parameters
        ----------
        table : Table
            The simulations.
        observations : ndarray of shape (n_observations, n_directions)
            Projected by the metric.
        n_rows : int
            How many; all of the table if it has fewer.
        algorithm : {"brute", "kd_tree"}
            How to search; the answer is the same.

        Yields
        ------
        rows : ndarray of shape (n_rows,)
        gaps : ndarray of shape (n_rows, n_directions)
        squares : ndarray of shape (n_rows,)
            Squared distances.
        """
        n_rows = min(n_rows, table.n_rows)
        search = self._by_index if algorithm == "kd_tree" else self._by_scan
        for start in range(0, len(observations), TOGETHER):
            block = np.ascontiguousarray(observations[start : start + TOGETHER])
            for observation, rows in zip(
                block, search(table, block, n_rows), strict=True
            ):
                gaps = self.gaps(table, rows, observation)
                with np.errstate(over="ignore"):
                    squares = np.square(gaps[0])
                    for gap in gaps[1:]:  # in the order of the kernel
                        squares += np.square(gap)
                order = np.argsort(squares, kind="stable")[:n_rows]
                squares = np.minimum(squares[order], np.finfo(float).max)
                yield rows[order], np.ascontiguousarray(gaps[:, order].T), squares

    def prepared(self, table, n_observations, n_rows, algorithm):
        """Make what a search needs; return "brute" or "kd_tree", if "auto" which."""
        if algorithm == "auto":
            affordable = (
                len(self.metric.scale) <= INDEX_DIRECTIONS
                and n_rows <= INDEX_SHARE * table.n_rows
            )
            pays = n_observations >= INDEX_OBSERVATIONS and table.n_rows >= INDEX_ROWS
            wanted = affordable and (pays or self._index_is_fresh(table))
            algorithm = "kd_tree" if wanted else "brute"
        if algorithm == "brute":
            self._columns(table)
        elif not self._index_is_fresh(table):
            self._tree = self._index(table)
        return algorithm

    def _index_is_fresh(self, table):
        return self._tree is not None and (
            table.n_rows <= (1 + INDEX_LAG) * self._tree.n
        )

    def _index(self, table):
        """Return a tree of the rows; the columns of a scan make room for it."""
        self._projected, self._n_projected = None, 0
        scale = self.metric.scale[:, None]
        points = np.empty((table.n_rows, len(scale)))
        for rows in tiles(table.n_rows):
            points[rows] = (self.metric.project(table.summaries[:, rows]) / scale).T
        return KDTree(points, leafsize=64, balanced_tree=False, compact_nodes=False)

    def _columns(self, table):
        """Coordinates of the table, of shape (n_directions, at least n_rows)."""
        if self.metric.projection is None:
            return table.summaries
        if self._n_projected < table.n_rows:
            columns = np.empty((len(self.metric.scale), table.n_rows))
            for rows in tiles(table.n_rows):
                columns[:, rows] = self.metric.project(table.summaries[:, rows])
            self._projected, self._n_projected = columns, table.n_rows
        return self._projected

    def _by_scan(self, table, observations, n_rows, first=0):
        """Rows, ascending, nearest to each observation, by looking at all of them."""
        count = len(observations)
        room = 2 * n_rows + 8 * kernels.BLOCK
        distances = np.empty((count, room))
        rows = np.empty((count, room), dtype=np.int64)
        counts = np.zeros(count, dtype=np.int64)
        thresholds = np.full(count, np.nan)
        reached = first
        while reached < table.n_rows:
            reached = kernels.collect_nearer(
                self._columns(table),
                reached,
                table.n_rows,
                self.metric.scale,
                observations,
                thresholds,
                counts,
                distances,
                rows,
            )
            for q in np.flatnonzero(counts > n_rows):
                found = counts[q]
                kept, thresholds[q] = smallest(distances[q, :found], n_rows)
                distances[q, :n_rows] = distances[q, :found][kept]
                rows[q, :n_rows] = rows[q, :found][kept]
                counts[q] = n_rows
        return [found[:n] for found, n in zip(rows, counts, strict=True)]

    def _by_index(self, table, observations, n_rows):
        """Rows, ascending, nearest to each observation, by a tree and its tail."""
        wanted = min(n_rows + 1, self._tree.n)
        distances, indices = self._tree.query(
            observations / self.metric.scale, k=np.arange(1, wanted + 1)
        )
        tails = [np.empty(0, dtype=np.int64)] * len(observations)
        if self._tree.n < table.n_rows:
            tails = self._by_scan(table, observations, n_rows, first=self._tree.n)
        found = []
        for q, tail in enumerate(tails):
            tied = np.ptp(distances[q, -2:])
            if wanted > n_rows and tied <= 1e-12 * distances[q, -1]:
                # Equally far rows at the border: the tree does not keep the first.
                found += self._by_scan(table, observations[q : q + 1], n_rows)
            else:
                found.append(np.r_[np.sort(indices[q, :n_rows]), tail])
        return found


def smallest(values, count):
    """Mask of the `count` smallest, the earlier of equals, and the largest of them."""
    last = np.partition(values, count - 1)[count - 1]
    kept = values < last
    ties = np.flatnonzero(values == last)
    kept[ties[: count - np.count_nonzero(kept)]] = True
    return kept, last
