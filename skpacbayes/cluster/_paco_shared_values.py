"""Values that many rows share in a column of many other values.

Such are the zeros of amounts, the limits of an instrument or of a percentage, and
values that replace missing ones.
"""

import numpy as np
from scipy.special import xlogy

# Least share of the rows that have a shared value, its number of rows over that of the
# most common other value, least number of distinct rows that have it, and largest
# number of shared values of a column.
_SHARE, _TIMES, _FEWEST, _MOST = 0.05, 4.0, 5, 3
# Least number of other values of the column: of fewer, the error of rounding is large.
_OTHERS = 20
# Share of the range of a column within which values count as equal.
_EQUAL = 1e-9
# Clusters are cut at a shared value if they explain this share of its entropy, or if
# this share of the rows of one of them have it.
_EXPLAINED, _PURE = 0.35, 0.99
_MOST_COLUMNS = 100
# Distance in standard deviations up to which two normal groups have one mode.
_APART = 2.0


class SharedValues:
    """The shared values of the columns.

    The density of a column is infinite at a shared value, so that clusters that are
    narrow in this column would gain any amount of likelihood. A shared value is
    therefore taken as known only to within the standard deviation of the other values,
    or of all values if that is smaller. This is done if clusters are cut at shared
    values, and if these do not tell groups apart: see `cut` and `alike`.

    Attributes
    ----------
    where : dict
        By column: the points with a shared value, an ndarray of bool.
    variances : ndarray of shape (n_features,)
        Variance of the error of each column, as the mean over its rows; zero for
        columns without shared values.
    """

    def __init__(self, rows):
        self.where, self.variances = {}, np.zeros(rows.points.shape[1])
        for j, column in enumerate(rows.points.T):
            shared = _is_shared(column, rows.weights)
            if shared.any():
                variance = min(
                    np.cov(one, aweights=weights, ddof=0)
                    for one, weights in (
                        (column, rows.weights),
                        (column[~shared], rows.weights[~shared]),
                    )
                )
                share = rows.weights @ shared / rows.weights.sum()
                self.where[j], self.variances[j] = shared, share * variance

    def cut(self, rows, labels):
        """Return whether clusters are cut at shared values.

        The rows of a cluster then have little but the shared value, or the clusters of
        the rows tell most of which rows have it.

        Parameters
        ----------
        rows : Rows
        labels : ndarray of shape (n_points,)
            Clusters of the points; one more for those that belong to none.

        Returns
        -------
        cut : bool
        """
        weights = rows.weights / rows.weights.sum()
        total = np.bincount(labels, weights)
        for shared in self.where.values():
            share = weights @ shared
            parts = np.bincount(labels, weights * shared)
            explained = _entropy(share, 1.0) - _entropy(parts, total).sum()
            pure = parts >= _PURE * total
            pure &= np.bincount(labels, shared) >= _FEWEST
            if pure.any() or explained >= _EXPLAINED * _entropy(share, 1.0):
                return True
        return False

    def alike(self, rows, labels):
        """Return whether shared values tell no groups apart within the clusters.

        In each cluster, the rows with a shared value of a column and the other rows
        must differ by less than two standard deviations along each direction of the
        other columns. Where they differ by more, as in tables of many amounts of which
        most are zero, it is the zeros that show the groups. So they do where more than
        `_MOST_COLUMNS` columns have shared values, which takes too long to compare.

        Parameters
        ----------
        rows : Rows
        labels : ndarray of shape (n_points,)
            Clusters of the points.

        Returns
        -------
        alike : bool
        """
        return len(self.where) <= _MOST_COLUMNS and not any(
            _differ(np.delete(rows.points, j, axis=1), rows.weights, labels, shared)
            for j, shared in self.where.items()
        )


def _entropy(parts, total):
    """Return the entropy of parts of a total, times that total."""
    others = np.maximum(total - parts, 0)
    return xlogy(total, total) - xlogy(parts, parts) - xlogy(others, others)


def _is_shared(column, weights):
    """Return where the values of a column are shared: far more common than others."""
    none = np.zeros(len(column), dtype=bool)
    least = _EQUAL * np.ptp(column)
    if least == 0 or len(column) < _OTHERS + _FEWEST:
        return none
    order = np.argsort(column, kind="stable")
    starts = np.diff(column[order], prepend=-np.inf) > least
    which = np.empty(len(column), dtype=np.int64)
    which[order] = np.cumsum(starts) - 1
    ranked = np.argsort(-np.bincount(which, weights), kind="stable")
    masses = np.bincount(which, weights)[ranked]
    if len(masses) <= _OTHERS:
        return none
    stands_out = masses[:-1] >= np.maximum(_TIMES * masses[1:], _SHARE * masses.sum())
    n_shared = 1 + np.flatnonzero(stands_out[: min(_MOST, len(masses) - _OTHERS)])
    if not len(n_shared):
        return none
    found = ranked[: n_shared[-1]]
    several = np.bincount(which)[found].min() >= _FEWEST
    return np.isin(which, found) if several else none


def _differ(points, weights, labels, shared):
    """Return whether the two halves of some cluster are far apart in some direction."""
    if points.shape[1] == 0:
        return False
    halves, labels = np.unique(2 * labels + shared, return_inverse=True)
    sizes = np.bincount(labels)
    masses = np.bincount(labels, weights)
    centers = np.zeros((len(halves), points.shape[1]))
    np.add.at(centers, labels, weights[:, None] * points)
    centers /= masses[:, None]
    gaps = points - centers[labels]
    units = np.sqrt(weights @ gaps**2 / weights.sum())
    units[units == 0] = 1.0
    gaps, centers = gaps / units, centers / units
    covariance = (gaps * weights[:, None]).T @ gaps / weights.sum()
    inverse = np.linalg.pinv(covariance, 1e-10, hermitian=True)
    for half in np.flatnonzero(halves[:-1] + 1 == halves[1:]):
        two = slice(half, half + 2)
        if halves[half] % 2 or sizes[two].min() < _FEWEST:
            continue
        gap = centers[half + 1] - centers[half]
        chance = points.shape[1] * (1 / sizes[two]).sum()
        if gap @ inverse @ gap - chance > _APART**2:
            return True
    return False
