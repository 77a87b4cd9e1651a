"""A growing table of simulations."""

import numpy as np

from .._base import warn_user

FAR = 0.5  # distance outside of the range of a summary, in ranges, from which we warn
FAR_TOGETHER = 1.0  # of a combination of summaries, whose tails may be longer
MOST_OF_AXES = 10_000  # about the largest number of rows that the axes are those of
LEAST_RANGE = 2e-3  # of a combination, in ranges of summaries: observations are rounded
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

    def of_summaries(self, kept):
        """Return a table of some of the summaries."""
        table = self.head(self.n_rows)
        table.summaries = self.summaries[kept]
        table.lowest, table.highest = self.lowest[kept], self.highest[kept]
        table._claimed = [self.n_rows]
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
    with np.errstate(over="ignore"):  # an infinite margin clips nothing
        margin = FARTHEST * np.maximum(1.0, ranges)
        return np.clip(X, table.lowest - margin, table.highest + margin), far


def warn_of_impossible(X, far, axes):
    """Warn of observations whose summaries are possible one by one, but not together.

    Parameters
    ----------
    X : ndarray of shape (n_observations, n_summaries)
        Observations.
    far : ndarray of shape (n_observations,)
        Observations of which a warning was given.
    axes : Axes
        Principal axes of the simulations.

    Returns
    -------
    far : ndarray of shape (n_observations,)
        Whether a warning was given.
    """
    ratio = axes.ranges_outside(X)
    ratio[far] = 0.0
    impossible = (ratio > FAR_TOGETHER).any(axis=1)
    if impossible.any():
        row, axis = np.unravel_index(ratio.argmax(), ratio.shape)
        i, j = np.sort(np.argsort(-abs(axes.directions[:, axis]))[:2])
        warn_user(
            f"{np.count_nonzero(impossible)} of {len(X)} "
            "observations are far outside the simulations, and their posteriors "
            "are extrapolated: their summaries are simulated one by one, but not "
            f"together. At row {row} a combination of summaries {i} and {j} is "
            f"{ratio[row, axis]:.3g} times its simulated range outside of this range."
        )
    return far | impossible


class Axes:
    """Principal axes of the summaries, in units of their ranges, and ranges along them.

    Parameters
    ----------
    table : Table
        The simulations, two or more.
    """

    def __init__(self, table):
        unit = table.highest - table.lowest
        varies = (unit > 0) & np.isfinite(unit)
        self.precisions = np.where(varies, 1 / np.where(varies, unit, 1.0), 0.0)
        self.center, self.array, self.n_rows = table.lowest, table.summaries, 0
        step = -(-table.n_rows // MOST_OF_AXES)
        some = self._scaled(table.summaries[:, : table.n_rows : step])
        self.directions = np.linalg.eigh(np.cov(some))[1]
        self.lowest = np.full(len(unit), np.inf)
        self.highest = -self.lowest
        self.extended(table)

    def _scaled(self, columns):
        gaps = columns - self.center[:, None]
        return gaps * self.precisions[:, None]

    def covers(self, table):
        """Return whether all rows of the axes are the first rows of the table."""
        return self.array is table.summaries and self.n_rows <= table.n_rows

    def extended(self, table):
        """Extend the ranges by further rows of the table."""
        for rows in tiles(table.n_rows - self.n_rows):
            some = table.summaries[:, self.n_rows : table.n_rows][:, rows]
            places = self.directions.T @ self._scaled(some)
            self.lowest = np.minimum(self.lowest, places.min(axis=1))
            self.highest = np.maximum(self.highest, places.max(axis=1))
        self.n_rows = table.n_rows
        return self

    def ranges_outside(self, X):
        """Return the distance of observations outside of the ranges, in ranges."""
        places = (self.directions.T @ self._scaled(X.T)).T
        beyond = np.maximum(self.lowest - places, places - self.highest)
        ranges = np.maximum(self.highest - self.lowest, LEAST_RANGE)
        return np.maximum(beyond, 0.0) / ranges


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
