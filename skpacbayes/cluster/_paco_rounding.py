"""Columns of rounded values: ratings, counts, lengths to the next millimetre."""

from dataclasses import replace

import numpy as np

# Share of a column's range within which values are equal: what merging them leaves;
# as a variance, what merging equal rows leaves of theirs.
_EQUAL = 1e-9
# Fewest values of a rounded column: of two, the gap may be that between two clusters.
_FEWEST_VALUES = 3
# Rows for each value, at least, and share of the rows that have not been merged.
_ROWS_OF_VALUE, _LEAST_SHARE = 2.0, 0.5
# Share of a column's variance below which rounding is neglected.
_NEGLIGIBLE = 1e-6


def rounding_of(rows):
    """Return the variance of what rounding took from each column.

    A column in which values repeat is known to within half of the least gap between
    them, and what it took is uniform there. Without that, a cluster for each value, or
    each cell of a grid, would explain rounded rows without error.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    variances : ndarray of shape (n_features,)
        Zero where values do not repeat, or rounding is too fine to matter.
    """
    variances = np.zeros(rows.points.shape[1])
    ranges, whole = np.ptp(rows.points, axis=0), are_whole(rows)
    n_rows = rows.weights[whole].sum()
    if n_rows < _LEAST_SHARE * rows.weights.sum():
        return variances
    mean = rows.mean
    for j in np.flatnonzero(ranges > 0):
        column = rows.points[:, j]
        places = (column[whole] - column.min()) / (_EQUAL * ranges[j])
        values = np.unique(np.rint(places))
        if not _FEWEST_VALUES <= len(values) <= n_rows / _ROWS_OF_VALUE:
            continue
        step = np.diff(values).min() * _EQUAL * ranges[j]
        variance = rows.weights @ (column - mean[j]) ** 2 / rows.weights.sum()
        if step**2 / 12 > _NEGLIGIBLE * variance:
            variances[j] = step**2 / 12
    return variances


def mostly_of_two_values(rows):
    """Return whether more than half of the columns have two values."""
    n_values = np.array([len(np.unique(column)) for column in rows.points.T])
    return np.count_nonzero(n_values == 2) > len(n_values) / 2


def are_whole(rows):
    """Return whether points are rows, or equal rows that were merged."""
    return rows.spreads <= _EQUAL * np.ptp(rows.points, axis=0).max() ** 2


def spread_by(rows, covariance):
    """Return rows that differ from their values by what has that covariance."""
    return replace(
        rows,
        spreads=rows.spreads + np.trace(covariance),
        scatter=rows.scatter + rows.weights.sum() * covariance,
    )
