"""Skewed columns, for which several normal components fit one group.

Normal components divide a group along its longer tail. Here they are merged into groups
whose columns may be shifted lognormal variables, and BIC compares these groups with the
components.
"""

import numpy as np
from scipy.special import softmax

from ._gaussian_families import GaussianFamily
from ._groups import DECISIVE, MOST_COLUMNS, Groups, normal_log_densities, varies
from ._normal_columns import LogNormal, Normal
from ._student import StudentComponents

EM_STEPS = 2
SLIGHTLY = 0.01  # nats per row that skewed groups must gain
HOPELESS = 20.0  # nats below the components where no more groups are merged
ENOUGH = 5.0  # least number of rows for each parameter of normal components
FEWEST_ROWS = 20  # of a group that may be skewed
NARROW = 1e-6  # least width, in standard deviations of a column
LITTLE = 1e-3  # of the largest responsibility: rows that hardly matter for a shape
NOTABLE = 2.0  # standard errors of a skewness that is not zero
STEPS = 0.15 * 2 ** np.linspace(0, 4, 9)  # deviations in distances of mean from end
NEAR_END = 1e-3  # least distance from the end, in distances of the mean from it
OUTSIDE = 100.0  # nats that are lost by rows beyond the end


class SkewedGroups(Groups):
    """Groups with skewed columns, of normal components, which are symmetric.

    A column, or a principal axis of a group, is normal or a shifted lognormal variable,
    or one times -1. Correlations are those of the logarithms. The components before any
    merge are normal.
    """

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        if isinstance(family, GaussianFamily):
            plain = not isinstance(family, StudentComponents)
            return plain and family.covariance_type in ("full", "diag")
        return isinstance(family, Normal) and not isinstance(family, LogNormal)

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        return varies(X) and X.shape[1] <= MOST_COLUMNS

    def read(self, X, parts):
        """Keep the standardised numbers, and where zero is in columns above zero."""
        d = X.shape[1]
        self.full = all(getattr(part, "full", False) for part, _ in parts)
        self.size = d + (d * (d + 1) // 2 if self.full else d)
        self.X = (X - X.mean(axis=0)) / X.std(axis=0)
        zeros = -X.mean(axis=0) / X.std(axis=0)
        self.zeros = np.where((X > 0).all(axis=0), zeros, np.nan)

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        total, size = max(share.sum(), 1e-300), self.size
        mean = share @ self.X / total
        found = [(self.normal(self.X, share), size)]
        if total >= FEWEST_ROWS and (self.full or not component):
            gaps = self.X - mean
            axes = np.linalg.eigh((gaps * share[:, None]).T @ gaps)[1]
            if self.full:  # shrunk correlations would widen a thin group
                found.append((self.normal(self.X @ axes, share), size))
        if total >= FEWEST_ROWS and not component:
            for rows, zeros in ((self.X, self.zeros), (self.X @ axes, mean * np.nan)):
                scores, log_slopes, n_skewed = unskewed(rows, share, zeros)
                if n_skewed:
                    log_densities = log_slopes + self.normal(scores, share)
                    found.append((log_densities, size + n_skewed))
        cost = 0.5 * np.log(self.weight.sum())
        best = max(found, key=lambda each: share @ each[0] - cost * each[1])
        return self.with_others(share, *best, mean)

    def best_merge(self):
        """Merge down to few groups; return the best number, and its gain.

        BIC counts all rows for the parameters of each group, and so prefers to merge
        groups that overlap. The gain is the lesser of two: of BIC, and of a criterion
        that counts the rows of each group. Neither is the evidence where the rows are
        few for the parameters, and there is none then.
        """
        before, found = np.array(self.criteria()), {}
        enough = self.weight.sum() >= ENOUGH * self.size * len(self.groups[0])
        while enough and len(self.groups[0]) > 1:
            self.merge()
            gains = found[len(self.groups[0])] = self.criteria() - before
            if max(gains) < -HOPELESS:
                break
        least = max(DECISIVE, SLIGHTLY * self.weight.sum())
        found = {each: gains for each, gains in found.items() if min(gains) > least}
        if not found:
            return len(self.groups[0]), 0.0
        best = max(found, key=lambda number: found[number][0])
        return best, min(found[best])

    def criteria(self):
        """Return BIC, and what it is if parameters count the rows of their group."""
        shares, log_densities, sizes = self.groups[:3]
        rows = self.weight.sum() / np.array([max(each.sum(), 2.0) for each in shares])
        bic = self.criterion(shares, log_densities, sizes)
        return bic, bic + 0.5 * np.dot(sizes, np.log(rows))

    def merge(self):
        """Merge the near pair with the largest criterion, and improve the groups."""
        super().merge()
        for _ in range(EM_STEPS):
            joint = np.column_stack(self.groups[1]) + np.log(
                [max(share.sum(), 1e-300) for share in self.groups[0]]
            )
            shares = self.weight[:, None] * softmax(joint, axis=1)
            described = [self.described(each) for each in shares.T]
            self.groups = list(shares.T), *map(list, zip(*described, strict=True))

    def normal(self, X, share):
        """Return log densities under normal columns, dependent if "full"."""
        return normal_log_densities(X, share, self.full)

    def complaint(self, best, K, gain):
        """Return a warning of columns that are skewed."""
        return (
            f"Groups seem skewed: {best} component{'s' * (best > 1)} with shifted "
            f"lognormal columns would explain the rows better than the {K} normal "
            f"components that n_components='auto' chose, by {gain:.3g} nats (BIC). "
            f"Components then cut groups in parts. Use n_components={best} for the "
            "groups, or fit logarithms of skewed columns."
        )


def unskewed(X, share, zeros):
    """Return normal scores of skewed columns, log slopes of the rows, and their number.

    A score is the logarithm of the distance from a lower end (from an upper end if the
    skewness is negative), as a shifted lognormal distribution has it. The end is 0 for
    a column above 0, or so many standard deviations from the mean that the likelihood
    is largest.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    share : ndarray of shape (n_rows,)
        Responsibilities times weights.
    zeros : ndarray of shape (n_features,)
        Where a column has the value 0, if this is a lower end; else NaN.
    """
    own = share > LITTLE * share.max()
    weight = share[own] / share[own].sum()
    noise = np.sqrt(6 / share.sum())  # standard error of a skewness
    scores, log_slopes, n_skewed = X.copy(), np.zeros(len(X)), 0
    for values, score, zero in zip(X.T, scores.T, zeros, strict=True):
        mean = weight @ values[own]
        gaps = values - mean
        width = max(np.sqrt(weight @ gaps[own] ** 2), NARROW)
        skewness = weight @ (gaps[own] / width) ** 3
        if abs(skewness) <= NOTABLE * noise:
            continue
        steps = np.sign(skewness) * STEPS / width
        if skewness > 0 and not np.isnan(zero):
            steps = np.append(steps, 1 / (mean - zero))
        logs = np.log(np.maximum(1 + np.outer(steps, gaps[own]), NEAR_END))
        centers = logs @ weight
        spreads = np.sqrt((logs - centers[:, None]) ** 2 @ weight) + NARROW
        likely = np.log(np.abs(steps)) - np.log(spreads) - centers
        likely[(1 + np.outer(steps, gaps[own]) <= NEAR_END) @ weight > LITTLE] = -np.inf
        best = likely.argmax()
        if likely[best] > -np.log(width):
            inside = 1 + steps[best] * gaps
            score[:] = np.log(np.maximum(inside, NEAR_END))
            log_slopes += np.log(np.abs(steps[best])) - score
            log_slopes -= OUTSIDE * (inside <= NEAR_END)
            n_skewed += 1
    return scores, log_slopes, n_skewed
