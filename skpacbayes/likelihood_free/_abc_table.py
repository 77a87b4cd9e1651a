"""A growing table of simulations."""

import numpy as np

from .._base import warn_user

FAR = 0.5  # distance outside of the range of a summary, in ranges, from which we warn
FARTHEST = 1e100  # distance to which observations are moved, as squares would overflow
MOST = 1e10  # largest total weight of the simulations

GROWTH = 1.25  # factor of the capacity when it is exhausted
TILE = 2**14  # number of rows


class Table:
    """Simulated summaries, parameters on the scale of smoothing, and weights.

    A table is immutable: `appended` returns a longer one, which may share its arrays.
    New rows are then written after those in use.

    Parameters
    ----------
    n_summaries, n_parameters : int
        Widths of the table.

    Attributes
    ----------
    summaries : ndarray of shape (n_summaries, capacity)
    parameters : ndarray of shape (capacity, n_parameters)
    weights : ndarray of shape (capacity,) or None
        None if all weights are 1.
    n_rows : int
        Rows in use.
    lowest, highest : ndarray of shape (n_summaries,)
        Range of the summaries.
    least, most : ndarray of shape (n_parameters,)
        Range of the parameters.
    """

    def __init__(self, n_summaries, n_parameters):
        self.summaries = np.empty((n_summaries, 0))
        self.parameters = np.empty((0, n_parameters))
        self.weights = None
        self.n_rows = 0
        self.lowest = np.full(n_summaries, np.inf)
        self.highest = np.full(n_summaries, -np.inf)
        self.least = np.full(n_parameters, np.inf)
        self.most = np.full(n_parameters, -np.inf)
        self._claimed = [0]  # rows written by any table that shares these arrays

    def appended(self, X, parameters, weights):
        """Return the table with more rows; rows of weight zero are absent."""
        if weights is not None and (weights == 0).any():
            X, parameters = X[weights > 0], parameters[weights > 0]
            weights = weights[weights > 0]
        if len(X) == 0:
            return self
        rows = slice(self.n_rows, self.n_rows + len(X))
        weighted = weights is not None and (weights != 1).any()
        table = self._with_room(rows.stop, weighted)
        table.summaries[:, rows] = X.T
        table.parameters[rows] = parameters
        if table.weights is not None:
            table.weights[rows] = 1.0 if weights is None else weights
        table.lowest = np.minimum(self.lowest, X.min(axis=0))
        table.highest = np.maximum(self.highest, X.max(axis=0))
        table.least = np.minimum(self.least, parameters.min(axis=0))
        table.most = np.maximum(self.most, parameters.max(axis=0))
        table.n_rows = rows.stop
        return table

    def _with_room(self, n_rows, weighted):
        """Return a copy with room for `n_rows` rows, in the same arrays if possible."""
        table = self.head(self.n_rows)
        capacity = self.summaries.shape[1]
        if n_rows > capacity or self._claimed[0] != self.n_rows:
            capacity = max(n_rows, int(GROWTH * capacity))
            used = self.n_rows
            table.summaries = _resized(self.summaries, used, capacity, axis=1)
            table.parameters = _resized(self.parameters, used, capacity)
            if self.weights is not None:
                table.weights = _resized(self.weights, used, capacity)
            table._claimed = [n_rows]
        else:
            self._claimed[0] = n_rows
        if weighted and table.weights is None:
            table.weights = np.ones(capacity)
        return table

    def total(self):
        """Sum of the weights: the number of simulations."""
        return self.n_rows if self.weights is None else float(self.counts().sum())

    def counts(self, rows=slice(None)):
        """Return the weights of these rows, or of all."""
        if self.weights is None:
            return np.ones(self.n_rows)[rows]
        return self.weights[: self.n_rows][rows]

    def head(self, n_rows):
        """Return a table of the first rows, which shares their memory."""
        table = Table.__new__(Table)
        table.__dict__.update(self.__dict__, n_rows=min(n_rows, self.n_rows))
        return table

    def __getstate__(self):
        """Return the state without unused capacity, which depends on the calls."""
        state = self.__dict__.copy()
        state["summaries"] = self.summaries[:, : self.n_rows].copy()
        state["parameters"] = self.parameters[: self.n_rows].copy()
        if self.weights is not None:
            state["weights"] = self.weights[: self.n_rows].copy()
        state["_claimed"] = [self.n_rows]
        return state


def _resized(array, n_used, capacity, axis=0):
    """Return a copy of the `n_used` entries along `axis`, with another capacity."""
    shape = list(array.shape)
    shape[axis] = capacity
    larger = np.empty(shape)
    used = (slice(None),) * axis + (slice(n_used),)
    larger[used] = array[used]
    return larger


def tiles(n_rows):
    """Yield slices of rows that are processed together."""
    return (slice(start, min(start + TILE, n_rows)) for start in range(0, n_rows, TILE))


def within_reach(X, table):
    """Warn of observations far outside of a table, and clip extreme ones.

    Parameters
    ----------
    X : ndarray of shape (n_observations, n_summaries)
        Observations.
    table : Table
        The simulations.

    Returns
    -------
    X : ndarray of shape (n_observations, n_summaries)
        The observations, clipped to 1e100 ranges of the table.
    far : ndarray of shape (n_observations,)
        Whether each observation is far outside.
    """
    ratio, ranges = ranges_outside(X, table), table.highest - table.lowest
    far = (ratio > FAR).any(axis=1)
    if far.any():
        row, column = np.unravel_index(ratio.argmax(), ratio.shape)
        warn_user(
            f"{np.count_nonzero(far)} of {len(X)} "
            "observations are far outside the simulations, and their posteriors "
            f"are extrapolated: at row {row}, summary {column} is "
            f"{X[row, column]:.6g}, {ratio[row, column]:.3g} times the simulated "
            f"range outside [{table.lowest[column]:.6g}, "
            f"{table.highest[column]:.6g}]."
        )
    margin = FARTHEST * np.maximum(1.0, ranges)
    return np.clip(X, table.lowest - margin, table.highest + margin), far


def ranges_outside(X, table):
    """Return the distance of summaries outside of a table's range, in ranges."""
    if table.n_rows < 2:
        return np.zeros(X.shape)
    beyond = np.maximum(table.lowest - X, X - table.highest)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(beyond > 0, beyond / (table.highest - table.lowest), 0.0)


def refuse_counts(weights, least):
    """Raise ValueError if the total weight is too small or too large.

    least : number of simulations that a fit needs.
    """
    if weights.sum() > MOST:
        raise ValueError(
            f"sample_weight sums to {weights.sum():g}, but should sum to at most "
            f"{MOST:g}: a weight is the number of simulations of a row."
        )
    if np.count_nonzero(weights) < least > 1:
        raise ValueError(
            f"sample_weight is positive for {np.count_nonzero(weights)} "
            f"simulations, while {least} are required."
        )
    if weights.sum() < least > 1:
        raise ValueError(
            f"sample_weight sums to {weights.sum():.6g}, while {least} "
            "simulations are required: a weight is the number of simulations of "
            "a row."
        )
