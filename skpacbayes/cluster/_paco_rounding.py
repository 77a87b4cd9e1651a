"""Columns of rounded values: ratings, counts, lengths to the next millimetre."""

from dataclasses import replace

import numpy as np

# Share of a column's range within which values are equal: what merging them leaves;
# as a variance, what merging equal rows leaves of theirs.
_EQUAL = 1e-9
# Variance of what rounding took, in squares of the least gap: uniform. Of a column of
# two values, the least with which no cut between these gains likelihood, whatever the
# shares p, q: 1/2 log(1 + p q / variance) <= -p log p - q log q. The same for columns
# that code a category, one of them 1: m categories have entropy log m at most, and
# (m - 1) / 2 log(1 + 1 / (m variance)) is less.
_OF_ROUNDING, _OF_TWO_VALUES, _OF_CATEGORY = 1 / 12, 1 / 10, 1 / 5
# Distinct rows that may be places put in by hand, each a cluster, where two values are.
FEW_PLACES = 4
# Rows for each value, at least, and share of the rows that have not been merged.
_ROWS_OF_VALUE, _LEAST_SHARE = 2.0, 0.5
# Share of a column's variance below which rounding is neglected.
_NEGLIGIBLE = 1e-6


def rounding_of(rows):
    """Return the variance of what rounding took from each column.

    A column in which values repeat is known to within half of the least gap between
    them, and what it took is uniform there. Without that, a cluster for each value, or
    each cell of a grid, would explain rounded rows without error. A column of two
    values is a category: alone it makes no clusters, with others it can.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    variances : ndarray of shape (n_features,)
        Zero where values do not repeat, or rounding is too fine to matter.
    """
    variances = np.zeros(rows.points.shape[1])
    if not mostly_whole(rows):
        return variances
    ranges, whole = np.ptp(rows.points, axis=0), are_whole(rows)
    n_rows, mean = rows.weights[whole].sum(), rows.mean
    for j in np.flatnonzero(ranges > 0):
        column = rows.points[:, j]
        places = (column[whole] - column.min()) / (_EQUAL * ranges[j])
        values = np.unique(np.rint(places))
        if not 2 <= len(values) <= n_rows / _ROWS_OF_VALUE:
            continue
        two = len(values) == 2
        if two and len(column) <= FEW_PLACES:
            continue
        step = np.diff(values).min() * _EQUAL * ranges[j]
        variance = rows.weights @ (column - mean[j]) ** 2 / rows.weights.sum()
        hidden = step**2 * (_OF_TWO_VALUES if two else _OF_ROUNDING)
        if hidden > _NEGLIGIBLE * variance:
            variances[j] = hidden
    coded = _codes_of_categories(rows.points)
    variances[coded] *= _OF_CATEGORY / _OF_TWO_VALUES
    return variances


def _codes_of_categories(points):
    """Return the columns of two values of which one alone is the larger in each row."""
    largest, smallest = points.max(axis=0), points.min(axis=0)
    ones = points == largest
    two = (ones | (points == smallest)).all(axis=0) & (largest > smallest)
    free, coded = list(np.flatnonzero(two)), []
    while len(free) > 1:
        group = [free.pop(0)]
        covered = ones[:, group[0]].copy()
        for j in free:
            if not (covered & ones[:, j]).any():
                group.append(j)
                covered |= ones[:, j]
        if covered.all():
            coded += group
            free = [j for j in free if j not in group]
    return coded


def mostly_whole(rows):
    """Return whether enough points are rows for their values to be compared."""
    return rows.weights[are_whole(rows)].sum() >= _LEAST_SHARE * rows.weights.sum()


def only_two_values(rows):
    """Return whether all columns have two values, and rows are more than few places."""
    points = rows.points
    ends = (points == points.min(axis=0)) | (points == points.max(axis=0))
    return len(points) > FEW_PLACES and bool(ends.all())


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
