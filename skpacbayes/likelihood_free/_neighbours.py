"""The simulations nearest to an observation, with or without an index."""

import numpy as np

from ._search import Leaves, Scan
from ._table import tiles

TOGETHER = 8  # observations for which the table is read once
# When "auto" takes an index: benchmarks/bench_abc_speed.py compares the times.
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
        self._leaves = self._rest = None

    def __getstate__(self):
        return {"metric": self.metric}

    def __setstate__(self, state):
        self.metric = state["metric"]
        self._forget()

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
            Simulated minus observed coordinates, in units of the scale.
        squares : ndarray of shape (n_rows,)
            Squared distances.
        """
        n_rows = min(n_rows, table.n_rows)
        parts = self._parts(table, algorithm)
        for start in range(0, len(observations), TOGETHER):
            block = np.ascontiguousarray(observations[start : start + TOGETHER])
            answers = [part.nearest(block, n_rows) for part in parts]
            for observation, *pieces in zip(block, *answers, strict=True):
                rows, squares = map(np.concatenate, zip(*pieces, strict=True))
                order = nearest_first(rows, squares)[:n_rows]
                rows, squares = rows[order], squares[order]
                found = self.metric.project(table.summaries.take(rows, axis=1))
                gaps = (found.T - observation) * self.metric.precisions
                yield rows, gaps, np.minimum(squares, np.finfo(float).max)

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
        self._parts(table, algorithm)
        return algorithm

    def _parts(self, table, algorithm):
        """Return searches that cover the table."""
        if algorithm == "brute":
            return [self._scan(table, 0)]
        if not self._index_is_fresh(table):
            self._forget()  # makes room
            self._leaves = Leaves(table, self.metric)
        if self._leaves.n_rows == table.n_rows:
            return [self._leaves]
        return [self._leaves, self._scan(table, self._leaves.n_rows)]

    def _index_is_fresh(self, table):
        return self._leaves is not None and (
            table.n_rows <= (1 + INDEX_LAG) * self._leaves.n_rows
        )

    def _scan(self, table, first):
        """Return a search of the rows from `first` on."""
        precisions, n_rows = self.metric.precisions, table.n_rows - first
        if first == 0 and self.metric.projection is None:
            return Scan(table.summaries, precisions, n_rows)
        known = self._rest
        if known is None or (known.first, known.n_rows) != (first, n_rows):
            columns = np.empty((len(precisions), n_rows))
            for rows in tiles(n_rows):
                some = table.summaries[:, first : table.n_rows][:, rows]
                columns[:, rows] = self.metric.project(some)
            self._rest = Scan(columns, precisions, n_rows, first)
        return self._rest


def nearest_first(rows, squares):
    """Return the order of the squares; of equals, the order of the rows."""
    order = np.argsort(squares)
    ascending = squares[order]
    ties = (ascending[1:] == ascending[:-1]).any()
    return np.lexsort((rows, squares)) if ties else order
