"""The table of simulations, which grows, and the scale of its distances."""

import numpy as np

GROWTH = 1.25  # of the room, when it is full
TILE = 2**14  # rows
SINGULAR = 1e-10  # share of the largest eigenvalue that counts as zero
CONSISTENT = 1.482602218505602  # standard deviation of a normal law over its MAD


class Table:
    """Simulated summaries, transformed parameters and weights.

    Parameters
    ----------
    n_summaries, n_parameters : int
        Widths of the table.

    Attributes
    ----------
    summaries : ndarray of shape (n_summaries, capacity)
    parameters : ndarray of shape (capacity, n_parameters)
    weights : ndarray of shape (capacity,) or None
        None as long as all are 1.
    n_rows : int
        Rows in use.
    lowest, highest : ndarray of shape (n_summaries,)
        Range of the summaries.
    """

    def __init__(self, n_summaries, n_parameters):
        self.summaries = np.empty((n_summaries, 0))
        self.parameters = np.empty((0, n_parameters))
        self.weights = None
        self.n_rows = 0
        self.lowest = np.full(n_summaries, np.inf)
        self.highest = np.full(n_summaries, -np.inf)

    def append(self, X, parameters, weights):
        """Copy rows to the end; rows of weight zero are absent."""
        if weights is not None and (weights == 0).any():
            X, parameters = X[weights > 0], parameters[weights > 0]
            weights = weights[weights > 0]
        if len(X) == 0:
            return
        rows = slice(self.n_rows, self.n_rows + len(X))
        self._make_room(rows.stop)
        if weights is not None and self.weights is None and (weights != 1).any():
            self.weights = np.ones(self.summaries.shape[1])
        self.summaries[:, rows] = X.T
        self.parameters[rows] = parameters
        if self.weights is not None:
            self.weights[rows] = 1.0 if weights is None else weights
        self.lowest = np.minimum(self.lowest, X.min(axis=0))
        self.highest = np.maximum(self.highest, X.max(axis=0))
        self.n_rows = rows.stop

    def _make_room(self, n_rows):
        capacity = self.summaries.shape[1]
        if n_rows > capacity:
            capacity = max(n_rows, int(GROWTH * capacity))
            self.summaries = _resized(self.summaries, self.n_rows, capacity, axis=1)
            self.parameters = _resized(self.parameters, self.n_rows, capacity)
            if self.weights is not None:
                self.weights = _resized(self.weights, self.n_rows, capacity)

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
        """Keep the rows in use: the room beyond depends on how they came."""
        state = self.__dict__.copy()
        state["summaries"] = self.summaries[:, : self.n_rows].copy()
        state["parameters"] = self.parameters[: self.n_rows].copy()
        if self.weights is not None:
            state["weights"] = self.weights[: self.n_rows].copy()
        return state


def _resized(array, n_used, capacity, axis=0):
    """Return a copy with another capacity along `axis`, of which `n_used` is filled."""
    shape = list(array.shape)
    shape[axis] = capacity
    larger = np.empty(shape)
    used = (slice(None),) * axis + (slice(n_used),)
    larger[used] = array[used]
    return larger


class Metric:
    """Distances between summaries: along which directions, in which units.

    Parameters
    ----------
    scale : ndarray of shape (n_directions,)
        Units of the directions.
    projection : ndarray of shape (n_summaries, n_directions) or None
        The directions; None for the summaries themselves.
    """

    def __init__(self, scale, projection=None):
        self.scale, self.projection = scale, projection

    @classmethod
    def learned(cls, kind, table):
        """Return the metric of this kind that fits the rows of the table."""
        columns = table.summaries[:, : table.n_rows]
        if kind is None:
            return cls(np.ones(len(columns)))
        unit = robust_scale(columns, table.weights)
        if kind == "mad":
            return cls(unit)
        among, with_parameters = covariances(table, unit)
        values, vectors = np.linalg.eigh(among)
        kept = values > SINGULAR * max(values.max(), 0.0)
        if not kept.any():
            return cls(unit)
        values, vectors = values[kept], vectors[:, kept]
        if kind == "whiten":
            return cls(np.sqrt(values), vectors / unit[:, None])
        slopes = (vectors / values) @ (vectors.T @ with_parameters)
        metric = cls(None, slopes / unit[:, None])
        metric.scale = robust_scale(metric.project(columns), table.weights)
        return metric

    @property
    def precisions(self):
        """What differences are multiplied by: one over the scale, finite."""
        return 1.0 / np.maximum(self.scale, np.finfo(float).tiny)

    def project(self, columns):
        """Return the coordinates of summaries, of shape (n_summaries, n_rows)."""
        return columns if self.projection is None else self.projection.T @ columns


def covariances(table, unit):
    """Covariance of the summaries, in these units, and theirs with the parameters."""
    n_summaries, n_rows = len(unit), table.n_rows
    parameters = table.parameters[:n_rows]
    weights = None if table.weights is None else table.counts()
    middle = np.average(table.summaries[:, :n_rows], axis=1, weights=weights)
    mean = np.average(parameters, axis=0, weights=weights)
    among = np.zeros((n_summaries, n_summaries))
    with_parameters = np.zeros((n_summaries, parameters.shape[1]))
    for rows in tiles(n_rows):
        gaps = (table.summaries[:, rows] - middle[:, None]) / unit[:, None]
        weighted = gaps if weights is None else gaps * weights[rows]
        among += weighted @ gaps.T
        with_parameters += weighted @ (parameters[rows] - mean)
    return among / table.total(), with_parameters / table.total()


def tiles(n_rows):
    """Slices of rows that are worked on together."""
    return (slice(start, min(start + TILE, n_rows)) for start in range(0, n_rows, TILE))


def robust_scale(columns, weights=None):
    """1.4826 MAD of each row of `columns`; where zero, its deviation, then 1."""
    scale = np.ones(len(columns))
    weights = None if weights is None else weights[: columns.shape[1]]
    for j, column in enumerate(columns):
        middle = median(column, weights)
        spread = CONSISTENT * median(np.abs(column - middle), weights)
        if spread == 0 and column.min() < column.max():
            mean = np.average(column, weights=weights)
            spread = np.sqrt(np.average((column - mean) ** 2, weights=weights))
        if spread > 0:
            scale[j] = spread
    return scale


def median(values, weights=None):
    """Weighted median: an integer weight is so many repetitions."""
    if weights is None:
        return np.median(values)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    half = reached[-1] / 2
    first = np.searchsorted(reached, half)
    last = min(np.searchsorted(reached, half, side="right"), len(values) - 1)
    return 0.5 * (values[order[first]] + values[order[last]])
