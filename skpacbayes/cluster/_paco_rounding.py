"""Columns of rounded values: ratings, counts, lengths to the next millimetre."""

import math
from dataclasses import dataclass, replace

import numpy as np

from .._kernels.paco_points import EQUAL, LEAST_GAP, N_VALUES, REPEATED, ROWS
from ._units import scaled

# Variance of what rounding took, in squares of the least gap: uniform. Of a column of
# two values, the least with which no cut between these gains likelihood, whatever the
# shares p, q: 1/2 log(1 + p q / variance) <= -p log p - q log q. The same for columns
# that code a category, one of them 1: m categories have entropy log m at most, and
# (m - 1) / 2 log(1 + 1 / (m variance)) is less.
_OF_ROUNDING, _OF_TWO_VALUES, _OF_CATEGORY = 1 / 12, 1 / 10, 1 / 5
# Distinct rows that may be places put in by hand, each a cluster, where two values are.
FEW_PLACES = 4
# Rows for each value, at least.
_ROWS_OF_VALUE = 2.0
# What rounding may leave of the difference between shares.
_ROUGHLY = 1e-6
# Share of a column's variance below which rounding is neglected.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class ColumnValues:
    """What is known of the values of each column.

    `lowest` (n_features,); `gaps` (n_features,): the least gap between two values, 0
    where values do not repeat; `counts` (n_features,): their numbers.
    """

    lowest: np.ndarray
    gaps: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, rows):
        """Return those of `Rows` that have not been merged."""
        points = rows.points
        n_rows, ranges = rows.weights.sum(), np.ptp(points, axis=0)
        gaps, counts = np.zeros((2, points.shape[1]))
        for j in np.flatnonzero(ranges > 0):
            column = points[:, j]
            values = np.unique(np.rint((column - column.min()) / (EQUAL * ranges[j])))
            counts[j] = len(values)
            if 2 <= len(values) <= n_rows / _ROWS_OF_VALUE:
                gaps[j] = np.diff(values).min() * EQUAL * ranges[j]
        return cls(points.min(axis=0), gaps, counts)

    @classmethod
    def noted(cls, values, notes, n_rows):
        """Return those that `paco_points.note_values` noted, along a stream.

        Nothing is known where fewer than half of the `n_rows` were read as rows.
        """
        gaps, counts = np.zeros((2, len(values)))
        read, repeated = notes[:, ROWS], notes[:, REPEATED]
        known = (read >= n_rows / 2) & (repeated >= (1 - 1 / _ROWS_OF_VALUE) * read)
        for j in np.flatnonzero(known & (notes[:, N_VALUES] > 1)):
            column = values[j, : int(notes[j, N_VALUES])]
            steps = np.diff(column)
            steps = steps[steps > EQUAL * (column[-1] - column[0])]
            if not len(steps):  # too small for the unit of the summary
                continue
            counts[j] = len(steps) + 1 + math.isfinite(notes[j, LEAST_GAP])
            gaps[j] = min(steps.min(), notes[j, LEAST_GAP])
        return cls(values[:, 0].copy(), gaps, counts)

    def about(self, offset, exponent, columns):
        """Those of some columns, less `offset`, in units of 2^exponent."""
        return ColumnValues(
            scaled(self.lowest - offset, -exponent)[columns],
            scaled(self.gaps, -exponent)[columns],
            self.counts[columns],
        )


def rounding_of(rows, values):
    """Return the variance of what rounding took from each column.

    A column in which values repeat is known to within half of the least gap between
    them, and what it took is uniform there. Without that, a cluster for each value, or
    each cell of a grid, would explain rounded rows without error. A column of two
    values is a category: alone it makes no clusters, with others it can.

    Parameters
    ----------
    rows : Rows
    values : ColumnValues

    Returns
    -------
    variances : ndarray of shape (n_features,)
        Zero where values do not repeat, or rounding is too fine to matter.
    """
    two = (values.counts == 2) & (values.gaps > 0)
    if len(rows.points) <= FEW_PLACES:
        two, values = np.zeros_like(two), replace(values, gaps=~two * values.gaps)
    total = rows.weights @ ((rows.points - rows.mean) ** 2 + rows.spreads[:, None])
    hidden = values.gaps**2 * np.where(two, _OF_TWO_VALUES, _OF_ROUNDING)
    variances = np.where(hidden > _NEGLIGIBLE * total / rows.weights.sum(), hidden, 0.0)
    variances[_codes_of_categories(rows.points, values, two)] *= (
        _OF_CATEGORY / _OF_TWO_VALUES
    )
    return variances


def _codes_of_categories(points, values, two):
    """Return the columns of two values of which one alone is the larger in each row.

    Of merged rows the shares of those with the larger value add up to one.
    """
    free, coded = list(np.flatnonzero(two)), []
    while len(free) > 1:
        group, covered = [], np.zeros(len(points))
        for j in free:
            ones = (points[:, j] - values.lowest[j]) / values.gaps[j]
            if not group or (covered + ones).max() < 1 + _ROUGHLY:
                group.append(j)
                covered += ones
        free = [j for j in free if j not in group[:1]]
        if covered.min() > 1 - _ROUGHLY:
            coded += group
            free = [j for j in free if j not in group]
    return coded


def only_two_values(rows, values):
    """Return whether all columns have two values, and rows are more than few places."""
    return len(rows.points) > FEW_PLACES and bool((values.counts == 2).all())


def spread_by(rows, covariance):
    """Return rows that differ from their values by what has that covariance."""
    return replace(
        rows,
        spreads=rows.spreads + np.trace(covariance),
        scatter=rows.scatter + rows.weights.sum() * covariance,
    )
