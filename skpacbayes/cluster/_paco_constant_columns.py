"""Columns that are constant in clusters."""

import numpy as np

# Least number of rows of a cluster whose one value in a column counts.
_FEWEST = 5
# Share of a column's range within which values count as equal.
_ONE_VALUE = 1e-9
# Distance of two normal groups, in standard deviations, up to which they have one mode.
_APART = 2.0


def values_of_clusters(columns, labels, n_clusters):
    """Return the value of each cluster of several rows that has only one in a column.

    Parameters
    ----------
    columns : ndarray of shape (n_points, n_columns)
    labels : ndarray of shape (n_points,)
    n_clusters : int

    Returns
    -------
    values : ndarray of shape (n_clusters, n_columns)
        Infinity where a cluster has several values, or few rows.
    """
    highest, lowest = np.full((2, n_clusters, columns.shape[1]), -np.inf)
    np.maximum.at(highest, labels, columns)
    np.maximum.at(lowest, labels, -columns)  # the maximum of -columns
    constant = highest + lowest <= _ONE_VALUE * np.ptp(columns, axis=0)
    several = np.bincount(labels, minlength=n_clusters) >= _FEWEST
    return np.where(constant & several[:, None], highest, np.inf)


def columns_constant_in_clusters(columns, labels, values):
    """Return the columns that are constant in some cluster of several rows.

    Only columns whose values hardly repeat elsewhere count: columns of counts, ratings
    or categories may well be constant in a cluster.

    Parameters
    ----------
    columns : ndarray of shape (n_points, n_columns)
    labels : ndarray of shape (n_points,)
    values : ndarray of shape (n_clusters, n_columns)
        From `values_of_clusters`.

    Returns
    -------
    found : list of int
    """
    found, constant = [], np.isfinite(values)
    for j in np.flatnonzero(constant.any(axis=0)):
        others = columns[~constant[labels, j], j]
        if len(others) and len(np.unique(others)) > len(others) / 2:
            found.append(int(j))
    return found


def columns_that_cut_groups(columns, values):
    """Return the columns with one value in most clusters, but few such values.

    Each of several values has two such clusters or more, in the mean: groups that do
    not differ in the column are cut at its values. Columns of two values do not count.
    Parameters are as in `columns_constant_in_clusters`.
    """
    found, n_clusters = [], len(values)
    for j, column in enumerate(columns.T):
        own = values[np.isfinite(values[:, j]), j]
        least = _ONE_VALUE * np.ptp(column)
        n_values = 1 + np.count_nonzero(np.diff(np.sort(own)) > least)
        many = len(own) > n_clusters / 2 and len(own) >= 2 * n_values > 2
        if many and np.ptp(column[column > column.min() + least]) > least:
            found.append(j)
    return found


def columns_between_alike_clusters(others, labels, values):
    """Return where two clusters have one value each, but are alike elsewhere.

    Parameters
    ----------
    others : ndarray of shape (n_points, n_other_columns)
        The columns in which clusters are compared.
    labels : ndarray of shape (n_points,)
    values : ndarray of shape (n_clusters, n_columns)
        From `values_of_clusters`.

    Returns
    -------
    cut : ndarray of bool of shape (n_columns,)
    """
    sizes = np.bincount(labels, minlength=len(values))
    centers = np.zeros((len(values), others.shape[1]))
    np.add.at(centers, labels, others)
    centers /= np.maximum(sizes, 1)[:, None]
    spreads = (others - centers[labels]).std(axis=0)
    apart = np.abs(centers[:, None] - centers) >= _APART * spreads
    alike = ~apart.any(axis=2)
    finite = np.isfinite(values)
    differ = (values[:, None] != values) & finite[:, None] & finite
    return (alike[:, :, None] & differ).any(axis=(0, 1))
