"""The simulations nearest to an observation, with or without an index."""

from copy import copy

import numpy as np

from ._abc_search import Leaves, Scan
from ._abc_table import Axes, tiles

# When combinations of summaries are compared with their ranges.
FEWEST_ROWS, ROWS_EACH, MOST_SUMMARIES = 200, 50, 100
TOGETHER = 8  # number of observations per pass over the table
# When "auto" uses an index; timings are in benchmarks/bench_abc_speed.py.
INDEX_DIRECTIONS = 6
INDEX_ROWS = 20_000
INDEX_OBSERVATIONS = 100
INDEX_SHARE = 0.02  # largest share of the rows that are requested
INDEX_LAG = 0.1  # largest share of rows added after the index was built


class Neighbors:
    """Search for the nearest rows of a table that may grow.

    Distances that differ by less than about 1e-9 of their size tie, so that rounding
    does not decide, and ties are broken by the lower row. The index and the axes are
    derived from the table, replaced in one assignment, and not pickled.

    Parameters
    ----------
    metric : Metric
        The distances.
    """

    def __init__(self, metric):
        self.metric = metric
        self._index, self._axes = Index(), None

    def __getstate__(self):
        return {"metric": self.metric}

    def __setstate__(self, state):
        self.__init__(state["metric"])

    def axes(self, table):
        """Return the axes of a table; None of one or many summaries, or few rows."""
        n_summaries = len(table.summaries)
        few = table.n_rows < max(FEWEST_ROWS, ROWS_EACH * n_summaries)
        if few or not 2 <= n_summaries <= MOST_SUMMARIES:
            return None
        axes = self._axes
        if axes is None or not axes.covers(table):
            axes = Axes(table)
        elif axes.n_rows < table.n_rows:
            axes = copy(axes).extended(table)
        self._axes = axes
        return axes

    def nearest(self, table, observations, n_rows, algorithm="brute"):
        """Yield the rows nearest to each observation, the nearest first.

        Parameters
        ----------
        table : Table
            The simulations.
        observations : ndarray of shape (n_observations, n_directions)
            Observations, projected by the metric.
        n_rows : int
            Number of rows; all if the table has fewer.
        algorithm : {"brute", "kd_tree"}
            Search algorithm; the results are equal.

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
                rows = rows[order]
                found = self.metric.project(table.summaries.take(rows, axis=1))
                gaps = (found.T - observation) * self.metric.precisions
                with np.errstate(over="ignore"):
                    squares = np.square(gaps).sum(axis=1)
                yield rows, gaps, np.minimum(squares, np.finfo(float).max)

    def prepared(self, table, n_observations, n_rows, algorithm):
        """Prepare a search; return its algorithm, "brute" or "kd_tree"."""
        if algorithm == "auto":
            affordable = (
                len(self.metric.scale) <= INDEX_DIRECTIONS
                and n_rows <= INDEX_SHARE * table.n_rows
            )
            pays = n_observations >= INDEX_OBSERVATIONS and table.n_rows >= INDEX_ROWS
            fresh = self._index.covers(table)
            algorithm = "kd_tree" if affordable and (pays or fresh) else "brute"
        self._parts(table, algorithm)
        return algorithm

    def _parts(self, table, algorithm):
        """Return searches that cover the table."""
        if algorithm == "brute":
            return [self._scan(table, 0)]
        index = self._index
        if not index.covers(table):
            self._index = Index()  # frees the memory of the old one
            index = self._index = Index(table, leaves=Leaves(table, self.metric))
        leaves = index.leaves
        if leaves.n_rows == table.n_rows:
            return [leaves]
        return [leaves, self._scan(table, leaves.n_rows)]

    def _scan(self, table, first):
        """Return a search of the rows from `first` on."""
        precisions, n_rows = self.metric.precisions, table.n_rows - first
        if first == 0 and self.metric.projection is None:
            return Scan(table.summaries, precisions, n_rows)
        index = self._index
        known = index.rest if index.array is table.summaries else None
        if known is not None and (known.first, known.n_rows) == (first, n_rows):
            return known
        columns = np.empty((len(precisions), n_rows))
        for rows in tiles(n_rows):
            some = table.summaries[:, first : table.n_rows][:, rows]
            columns[:, rows] = self.metric.project(some)
        rest = Scan(columns, precisions, n_rows, first)
        leaves = index.leaves if index.array is table.summaries else None
        self._index = Index(table, leaves=leaves, rest=rest)
        return rest


class Index:
    """An index of the rows of a table.

    Parameters
    ----------
    table : Table, default=None
        The table, identified by the array of its summaries.
    leaves : Leaves, default=None
        A tree of the first rows.
    rest : Scan, default=None
        Projected coordinates of the other rows.
    """

    def __init__(self, table=None, *, leaves=None, rest=None):
        self.array = None if table is None else table.summaries
        self.leaves, self.rest = leaves, rest

    def covers(self, table):
        """Return whether there is a tree of nearly all rows of the table."""
        return (
            self.leaves is not None
            and self.array is table.summaries
            and self.leaves.n_rows <= table.n_rows
            and table.n_rows <= (1 + INDEX_LAG) * self.leaves.n_rows
        )


def nearest_first(rows, squares):
    """Return the order of the squares, ties broken by the rows."""
    order = np.argsort(squares)
    ascending = squares[order]
    ties = (ascending[1:] == ascending[:-1]).any()
    return np.lexsort((rows, squares)) if ties else order
