"""Distances between summaries: their scale and their directions."""

import numpy as np

from ._abc_table import tiles

SINGULAR = 1e-10  # share of the largest eigenvalue that counts as zero
CONSISTENT = 1.482602218505602  # standard deviation of a normal variable over its MAD


class Metric:
    """Euclidean distance between projected and scaled summaries.

    Parameters
    ----------
    scale : ndarray of shape (n_directions,)
        Units of the directions.
    projection : ndarray of shape (n_summaries, n_directions) or None
        The directions; None: the summaries themselves.
    """

    def __init__(self, scale, projection=None):
        self.scale, self.projection = scale, projection

    @classmethod
    def learned(cls, kind, table):
        """Return a metric of a kind, fitted to the rows of the table."""
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
        """Factors of differences: one over the scale, finite."""
        return 1.0 / np.maximum(self.scale, np.finfo(float).tiny)

    def project(self, columns):
        """Return the coordinates of summaries of shape (n_summaries, n_rows)."""
        return columns if self.projection is None else self.projection.T @ columns


def covariances(table, unit):
    """Return covariances of scaled summaries, and of these with the parameters."""
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


def robust_scale(columns, weights=None):
    """Return 1.4826 MAD of each row; if zero, its standard deviation, or 1."""
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
    """Return the weighted median; an integer weight counts repetitions."""
    if weights is None:
        return np.median(values)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    half = reached[-1] / 2
    first = np.searchsorted(reached, half)
    last = min(np.searchsorted(reached, half, side="right"), len(values) - 1)
    return 0.5 * (values[order[first]] + values[order[last]])
