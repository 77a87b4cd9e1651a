"""Base class of families of independent columns; missing values are ignored."""

from copy import copy
from functools import partial

import numpy as np

from .._base import shown
from .._kernels.mixture import linear_log_densities
from ._family import (
    ExponentialFamily,
    PreparedFamily,
    are_all,
    defines_last,
    n_components_of,
)
from ._gaussian_families import variances
from ._rows import have_gaps
from ._scorers import KernelScorer, contiguous, tabulated

LARGEST_TABLE = 4096  # largest number of precomputed log densities
FEWEST_VALUES = 2
# Methods that the general scorer uses: a subclass may override one of them.
SCORED_BY = "statistics", "parts", "expected", "coefficients"


class ColumnFamily(PreparedFamily):
    """A family whose columns are independent; missing values, NaN, are ignored.

    A subclass implements `parts(X)`, which returns the statistics of each value as
    arrays like X (an indicator of observed values is put before them), and
    `marginals(posterior)`, which returns a function of rows (n_rows, 1, n_features):
    the log predictive density of each value, (n_rows, n_components, n_features).
    """

    allows_missing = True
    independent = True

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which may depend on the rows."""
        refuse_empty_columns(X)
        family = copy(self)
        family.n_features = X.shape[1]
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        there = ~np.isnan(X)
        counts = np.maximum(weight @ there, np.finfo(float).tiny)
        family.centers = weight @ np.where(there, X, 0.0) / counts
        filled = np.where(there, X, family.centers)
        family.spreads = np.sqrt(variances(filled, sample_weight))
        family.set_prior(filled, weight)
        return family

    def set_prior(self, X, weight):
        """Set the parameters of the prior; missing values are the columns' means."""

    def origin(self, X, sample_weight=None):
        """Means of the first rows."""
        return self.centers

    def profile(self, X, sample_weight=None):
        """Standardise the features; a missing value is the mean."""
        return np.nan_to_num((X - self.centers) / self.spreads)

    def statistics(self, X):
        """Statistics of each value, zero where it is missing."""
        there, d = 1.0, X.shape[1]
        if not have_gaps(X):
            parts = self.parts(X)
        else:
            there = ~np.isnan(X)
            parts = [part * there for part in self.parts(self.filled(X, there))]
        result = np.empty((len(X), (1 + len(parts)) * d))
        result[:, :d] = there
        for i, part in enumerate(parts, 1):
            result[:, i * d : (i + 1) * d] = part
        return result

    def statistics_of_complete_rows(self, width):
        """Return `common_statistics`, and what writes those that vary.

        A subclass may override `parts` without overriding `write_varying`.
        """
        general = type(self).write_varying is ColumnFamily.write_varying
        if general or defines_last(self, "write_varying", "statistics", "parts"):
            return super().statistics_of_complete_rows(width)
        return np.full(width, np.nan), partial(ExponentialFamily.write_varying, self)

    def common_statistics(self, width):
        """Return what all rows without missing values have; NaN where they differ."""
        return np.where(np.arange(width) < self.n_features, 1.0, np.nan)

    def write_varying(self, X, out):
        """Write the other statistics of such rows, (n_others, n_rows)."""
        columns = np.asfortranarray(X)
        for i, part in enumerate(self.parts(columns)):
            out[i * self.n_features : (i + 1) * self.n_features] = part.T

    def filled(self, X, there):
        """Return rows with the means of the columns for missing values."""
        return np.where(there, X, self.origin(X))

    def split(self, statistics):
        """Return the sums of each statistic, (n_components, n_features) each."""
        n_parts = (statistics.shape[1] - 2) // self.n_features
        return np.split(statistics[:, 1:-1], n_parts, axis=1)

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        coefficients = np.hstack(self.coefficients(posterior))
        return np.zeros(len(coefficients)), coefficients

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows.

        `linear` families: up to a function of x, so that complete rows need no
        statistics.
        """
        general = super().scorer(posterior, log_weights)
        if not (self.linear and defines_last(self, "linear", *SCORED_BY)):
            return general
        ones, slopes, *_ = self.coefficients(posterior)
        parameters = contiguous(log_weights + ones.sum(axis=1), slopes)
        return KernelScorer(
            linear_log_densities, parameters, len(log_weights), general.of
        )

    def tabulated_density(self, posterior, n_values):
        """Return `log_predictive` as a function of rows, with a table of log densities.

        The table is for integers below `n_values`; `marginals` computes all others.
        """
        general = ColumnFamily.predictive_density(self, posterior)
        n_components = n_components_of(posterior)
        n_values = min(n_values, LARGEST_TABLE // (n_components * self.n_features))
        if n_values < FEWEST_VALUES:
            return general
        grid = np.arange(float(n_values))[:, None, None]
        grid = np.broadcast_to(grid, (n_values, 1, self.n_features))
        table = self.marginals(posterior)(grid).transpose(2, 0, 1)
        return tabulated(np.zeros(n_components), table, general).of

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        log_marginals = self.marginals(posterior)

        def log_densities(X):
            if not have_gaps(X):
                return np.add.reduce(log_marginals(X[:, None]), axis=2)
            there = ~np.isnan(X)
            filled = self.filled(X, there)[:, None]
            return (log_marginals(filled) * there[:, None]).sum(axis=2)

        return log_densities

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        counts = self.split(statistics)[0]
        slack = 1e-9 * (1 + statistics[:, :1])
        if (counts < -slack).any() or (counts > statistics[:, :1] + slack).any():
            raise ValueError(
                "The numbers of values in statistics must be between 0 and the count."
            )

    def check_values(self, X, right, needed):
        """Raise a ValueError that names a column where values are not `right`."""
        if are_all(right):
            return
        wrong = ~(right | np.isnan(X)).all(axis=0)
        if wrong.any():
            column = int(wrong.argmax())
            value = X[~(right | np.isnan(X))[:, column], column][0]
            raise ValueError(
                f"The family {type(self).__name__} needs {needed}, but column {column} "
                f"of X has the value {shown(value)}."
            )


class EmptyColumnError(ValueError, AttributeError):
    """A column has no value; an AttributeError as well, for attributes of a stream."""


def refuse_empty_columns(X):
    """Raise an EmptyColumnError that names the first column without a value."""
    empty = np.isnan(X).all(axis=0)
    if empty.any():
        raise EmptyColumnError(
            f"Column {empty.argmax()} of X has no value in {len(X)} rows: leave it "
            "out, or learn rows that have one."
        )
