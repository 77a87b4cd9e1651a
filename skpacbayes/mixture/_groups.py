"""Groups of components, and their comparison by BIC."""

import numpy as np
from scipy.special import logsumexp

from ._gaussian_families import LOG_2_PI

LOOKED_AT = 2000  # largest number of rows used
NEAREST = 6  # pairs of groups that are compared before each merge
DECISIVE = 3.0  # nats: odds of 20 to 1
MOST_COLUMNS = 50  # largest number of columns of real numbers
MOST = 0.99  # largest probability, and largest correlation of trials
OVER = 1.05  # least ratio of variances of an overdispersed column and its family


class Groups:
    """Groups of components: log densities of the rows, and numbers of parameters.

    A subclass has `takes(family)`, whether it is made for the columns of a family;
    `described(share, component=False)`; and `complaint(best, K, gain)`, the warning. It
    comes `instead` of the warnings of other subclasses if its gain is larger.

    Parameters
    ----------
    X, weight : rows of these columns, and their weights
    parts : list of (family, columns)
        The families of the columns of X, in this order.
    shares : ndarray of shape (n_rows, n_components)
        Responsibilities times weights.
    others : OtherColumns, default=None
        The columns of other families.
    """

    instead = False
    names = ()  # of the columns of all families

    def __init__(self, X, weight, parts, shares, others=None):
        self.weight, self.others = weight, others
        self.read(X, parts)
        described = [self.described(each, component=True) for each in shares.T]
        # Of each group: responsibilities, log densities, n_parameters, and a point.
        self.groups = list(shares.T), *map(list, zip(*described, strict=True))

    @staticmethod
    def most_rows(parts):
        """Return the largest number of rows used, given the families."""
        return LOOKED_AT

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        return True

    @staticmethod
    def suits(parts):
        """Return whether the groups are made for these families together."""
        return True

    def with_others(self, share, log_densities, size, point):
        """Return the description of a group, with the other columns included."""
        if self.others is None:
            return log_densities, size, point
        own, place = self.others.described(share)
        return log_densities + own, size, np.append(point, place)

    def best_merge(self):
        """Merge down to one group; return the best number, and its gain in BIC."""
        before, found = self.criterion(*self.groups[:3]), {}
        for left in range(len(self.groups[0]) - 1, 0, -1):
            found[left] = self.merge()
        best = max(found, key=found.get)
        return best, found[best] - before

    def criterion(self, shares, log_densities, sizes):
        """Return log likelihood - n_parameters / 2 * log(n_rows), as BIC does."""
        log_total = np.log(self.weight.sum())
        masses = np.log([max(share.sum(), 1e-300) for share in shares]) - log_total
        joint = np.column_stack(log_densities) + masses
        likelihood = self.weight @ logsumexp(joint, axis=1)
        return likelihood - 0.5 * (sum(sizes) + len(sizes) - 1) * log_total

    def nearest(self):
        """Return the nearest pairs of groups."""
        points = np.array(self.groups[-1])
        first, second = np.triu_indices(len(points), 1)
        gaps = ((points[first] - points[second]) ** 2).sum(axis=1)
        return [(first[i], second[i]) for i in np.argsort(gaps)[:NEAREST]]

    def merge(self):
        """Merge the near pair with the largest criterion, and return the criterion."""
        tries = []
        for pair in self.nearest():
            share = self.groups[0][pair[0]] + self.groups[0][pair[1]]
            new = share, *self.described(share)
            groups = [
                [*without(old, pair), own]
                for old, own in zip(self.groups, new, strict=True)
            ]
            tries.append((self.criterion(*groups[:3]), groups))
        value, self.groups = max(tries, key=lambda each: each[0])
        return value


class OtherColumns:
    """Columns of a product whose families do not change in a merge.

    BIC does not count their parameters, so that it underestimates the gain of a merge.

    Parameters
    ----------
    family : ProductFamily
        The families of these columns.
    X : ndarray of shape (n_rows, n_features)
    inverse_temperature : float
    """

    def __init__(self, family, X, inverse_temperature):
        self.family, self.X = family, X
        self.inverse_temperature = inverse_temperature
        self.statistics = family.statistics(X)
        points = family.profile(X)
        self.points = points - points.mean(axis=0)

    def described(self, share):
        """Return log densities of the rows in a group, and its point."""
        total = max(share.sum(), 1e-300)
        statistics = np.hstack([total, share @ self.statistics, 0.0])[None]
        posterior = self.family.update(self.inverse_temperature * statistics, None)
        place = share @ self.points / total
        return self.family.log_predictive(posterior, self.X)[:, 0], place


def normal_log_densities(X, share, full=True):
    """Return log densities of the rows under a normal fitted to weighted rows.

    Correlations are shrunk, noticeably if the rows are few, or zero if not `full`.
    """
    d, total = X.shape[1], max(share.sum(), 1e-300)
    gaps = X - share @ X / total
    variances = share @ gaps**2 / total + 1e-9 * X.var(axis=0)
    covariance = (gaps * share[:, None]).T @ gaps
    covariance += (d + 2) * np.diag(variances)
    covariance /= total + d + 2
    factor = np.linalg.cholesky(covariance if full else np.diag(variances))
    squares = (np.linalg.solve(factor, gaps.T) ** 2).sum(axis=0)
    log_determinant = 2 * np.log(np.diag(factor)).sum()
    return -0.5 * (d * LOG_2_PI + log_determinant + squares)


def without(values, pair):
    """Return the values without the two at the indices `pair`."""
    return [value for i, value in enumerate(values) if i not in pair]


def varies(X):
    """Return whether no column is constant, and no value is missing."""
    return (np.ptp(X, axis=0) > 0).all()
