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
    regression : GlobalRegression or None
        The regression whose slopes are the projection, if they are.
    """

    def __init__(self, scale, projection=None, regression=None):
        self.scale, self.projection = scale, projection
        self.regression = regression

    @classmethod
    def learned(cls, kind, table):
        """Return a metric of a kind, fitted to the rows of the table."""
        columns = table.summaries[:, : table.n_rows]
        if kind is None:
            return cls(np.ones(len(columns)))
        unit = robust_scale(columns, table.weights)
        if kind == "mad":
            return cls(unit)
        middle, mean = means(table)
        among, with_parameters = covariances(table, unit, middle, mean)
        values, vectors = np.linalg.eigh(among)
        kept = values > SINGULAR * max(values.max(), 0.0)
        if not kept.any():
            return cls(unit)
        values, vectors = values[kept], vectors[:, kept]
        if kind == "whiten":
            return cls(np.sqrt(values), vectors / unit[:, None])
        if len(values) + 1 >= table.total():  # slopes that reproduce the parameters
            return cls(unit)
        slopes = (vectors / values) @ (vectors.T @ with_parameters) / unit[:, None]
        whitening = vectors / np.sqrt(values) / unit[:, None]
        regression = GlobalRegression(table, middle, mean, slopes, whitening)
        scale = robust_scale(slopes.T @ columns, table.weights)
        return cls(scale, slopes, regression)

    @property
    def precisions(self):
        """Factors of differences: one over the scale, finite."""
        return 1.0 / np.maximum(self.scale, np.finfo(float).tiny)

    @property
    def share(self):
        """Coefficients over simulations of the regression; 0 if there is none."""
        return 0.0 if self.regression is None else self.regression.share

    def project(self, columns):
        """Return the coordinates of summaries of shape (n_summaries, n_rows)."""
        return columns if self.projection is None else self.projection.T @ columns

    def of_held_out(self, table, pairs, one_copy):
        """Return the coordinates (n_pairs, n_directions) of pairs that are held out.

        A regression would predict parameters that it was fitted to too well: its slopes
        are then those of a fit without the pair, and without its copies unless
        `one_copy`.
        """
        coordinates = self.project(table.summaries[:, pairs]).T
        if self.regression is None:
            return coordinates
        return coordinates - self.regression.gains(table, pairs, one_copy)


class GlobalRegression:
    """A linear regression of the parameters on the summaries of a table.

    Parameters
    ----------
    table : Table
        The simulations.
    middle, mean : ndarray of shape (n_summaries,), (n_parameters,)
        Means of the summaries and of the parameters.
    slopes : ndarray of shape (n_summaries, n_parameters)
    whitening : ndarray of shape (n_summaries, rank)
        Factor by which summaries get the identity as their covariance.
    """

    def __init__(self, table, middle, mean, slopes, whitening):
        self.middle, self.mean = middle, mean
        self.slopes, self.whitening = slopes, whitening
        self.n_rows, self.total = table.n_rows, table.total()
        self.share = (whitening.shape[1] + 1) / self.total

    def gains(self, table, pairs, one_copy):
        """Return what pairs add to their own predictions (n_pairs, n_parameters).

        Without a pair of leverage h and residual e, its prediction is smaller by
        h / (1 - h) e. The pairs are rows of the table of the fit, or later ones, on
        which the slopes do not depend.
        """
        gaps = table.summaries[:, pairs] - self.middle[:, None]
        residuals = table.parameters[pairs] - self.mean - gaps.T @ self.slopes
        counts = np.array([self._count(table, pair, one_copy) for pair in pairs])
        leverages = (1.0 + np.square(self.whitening.T @ gaps).sum(axis=0)) / self.total
        leverages = np.minimum(counts * leverages, 1.0 - SINGULAR)
        return (leverages / (1.0 - leverages))[:, None] * residuals

    def _count(self, table, pair, one_copy):
        """Return the weight of a pair and its copies in the fit."""
        if pair >= self.n_rows:
            return 0.0
        if one_copy:
            return min(table.counts([pair])[0], 1.0)
        rows = np.arange(self.n_rows)
        for column in (*table.parameters.T, *table.summaries):
            rows = rows[column[rows] == column[pair]]
            if len(rows) == 1:
                break
        return table.counts(rows).sum()


def covariances(table, unit, middle, mean):
    """Return covariances of scaled summaries, and of these with the parameters.

    `middle`, `mean`: of the summaries, and of the parameters.
    """
    n_summaries, n_rows = len(unit), table.n_rows
    parameters = table.parameters[:n_rows]
    weights = None if table.weights is None else table.counts()
    among = np.zeros((n_summaries, n_summaries))
    with_parameters = np.zeros((n_summaries, parameters.shape[1]))
    for rows in tiles(n_rows):
        gaps = (table.summaries[:, rows] - middle[:, None]) / unit[:, None]
        weighted = gaps if weights is None else gaps * weights[rows]
        among += weighted @ gaps.T
        with_parameters += weighted @ (parameters[rows] - mean)
    return among / table.total(), with_parameters / table.total()


def means(table):
    """Return the means of the summaries and of the parameters."""
    weights = None if table.weights is None else table.counts()
    middle = np.average(table.summaries[:, : table.n_rows], axis=1, weights=weights)
    return middle, np.average(table.parameters[: table.n_rows], axis=0, weights=weights)


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
