"""Missing values of Gaussian components: integrated out exactly, pattern by pattern.

Where E log q_k(x) is a quadratic form, the optimal distribution of the missing values
given the observed ones is Gaussian. It is one more factor of the variational posterior:
J is still a lower bound, and no step decreases it.
"""

from functools import cached_property

import numpy as np
from scipy.special import gammaln


class Pattern:
    """Quadratic forms c_k - 1/2 (x - mean_k)' P_k (x - mean_k) with missing features.

    Parameters
    ----------
    missing : ndarray of shape (n_features,)
        Whether the feature is missing.
    means : ndarray of shape (n_components, n_features)
    precisions : ndarray of shape (n_components, n_features, n_features)
    tops : ndarray of shape (n_components,), default=None
        Exponents of predictive densities, proportional to (1 + square)^-top.

    Attributes
    ----------
    covariances : ndarray of shape (n_components, n_missing, n_missing)
        Conditional covariances of the missing features, given the others.
    """

    def __init__(self, missing, means, precisions, tops=None):
        self.missing, self.there = np.flatnonzero(missing), np.flatnonzero(~missing)
        self.tops, self.n_chances = tops, 1
        of_missing = precisions[:, self.missing]
        mixed = of_missing[:, :, self.there]
        self.means = means
        self.inner = of_missing[:, :, self.missing]
        self.covariances = np.linalg.inv(self.inner)
        self.slopes = -self.covariances @ mixed
        rest = precisions[:, self.there][:, :, self.there]
        self.schur = rest + mixed.mT @ self.slopes

    @cached_property
    def log_determinants(self):
        """Log determinants of the precisions of the missing features."""
        return np.linalg.slogdet(self.inner)[1]

    def gaps(self, rows):
        """Return observed values minus means, (n_components, n_rows, n_observed)."""
        return rows[:, self.there] - self.means[:, None, self.there]

    def squares(self, rows):
        """Return squares minimised over missing values, (n_rows, n_components)."""
        gaps = self.gaps(rows)
        return ((gaps @ self.schur) * gaps).sum(axis=2).T

    def expected(self, rows):
        """Return the means of missing values, (n_components, n_rows, n_missing)."""
        return self.means[:, None, self.missing] + self.gaps(rows) @ self.slopes.mT

    def students(self, rows):
        """Return the Student distributions of missing values, for each component.

        The density of the row is proportional to (1 + s + u' Q u)^-t, where s is the
        square of the observed values, and u are the missing values minus their
        conditional means.

        Returns
        -------
        locations : ndarray of shape (n_components, n_rows, n_missing)
        scales : ndarray of shape (n_components, n_rows)
            Multipliers of the pattern's covariances Q^-1.
        degrees : ndarray of shape (n_components,)
        """
        degrees = 2 * self.tops - len(self.missing)
        scales = (1 + self.squares(rows).T) / degrees[:, None]
        return self.expected(rows), scales, degrees

    def log_integrals(self, constants, squares):
        """Return log integrals of exp of the forms over the missing values."""
        factor = len(self.missing) * np.log(2 * np.pi) - self.log_determinants
        return constants + 0.5 * (factor - squares)

    def log_student_integrals(self, constants, tops, squares):
        """Return log integrals of exp(c_k) (1 + square)^(-top_k)."""
        size = len(self.missing)
        rest = tops - 0.5 * size
        factor = gammaln(rest) - gammaln(tops)
        factor += 0.5 * (size * np.log(np.pi) - self.log_determinants)
        return constants + factor - rest * np.log1p(squares)


class IndependentPattern:
    """Missing features that are independent of each other and of the observed ones.

    Attributes are those of `Pattern`. Each missing feature has a chi-squared variable
    of its own: `n_chances` is their number.
    """

    def __init__(self, missing, means, scales, tops):
        self.missing = np.flatnonzero(missing)
        self.means, self.n_chances = means[:, self.missing], len(self.missing)
        self.covariances = scales[:, self.missing, None] * np.eye(self.n_chances)
        self.degrees = 2 * tops - 1

    def students(self, rows):
        """Return Student distributions of missing values, the same for all rows."""
        shape = len(self.means), len(rows)
        locations = np.broadcast_to(self.means[:, None], (*shape, self.n_chances))
        scales = np.broadcast_to(1 / self.degrees[:, None], shape)
        return locations, scales, self.degrees


def patterns_of(rows):
    """Yield each pattern of missing values, and the indices of its rows."""
    holes = np.isnan(rows)
    at = np.flatnonzero(holes.any(axis=1))
    patterns, which = np.unique(holes[at], axis=0, return_inverse=True)
    for number, missing in enumerate(patterns):
        yield missing, at[which.ravel() == number]


class IncompleteRows:
    """Incomplete rows of a tile: log joint densities, and moments when completed."""

    def __init__(self, rows, means, precisions):
        self.rows = rows
        self.parts = [
            (Pattern(missing, means, precisions), at)
            for missing, at in patterns_of(rows)
        ]

    def write(self, constants, out):
        """Write the log joint densities of the observed values."""
        for pattern, at in self.parts:
            squares = pattern.squares(self.rows[at])
            out[at] = pattern.log_integrals(constants, squares)

    def leave_out(self, values):
        """Set the contributions of incomplete rows to zero, on the last axis."""
        for _, at in self.parts:
            values[..., at] = 0.0

    def losses(self, shares):
        """Return the rows lost to missing values, for the means and for the scales.

        A row of d values of which o are observed lacks 1 - o / d of the information
        about the mean, and 1 - o (o + 1) / (d (d + 1)) of that about the scale.

        Returns
        -------
        losses : ndarray of shape (2, n_components)
        """
        d, result = self.rows.shape[1], np.zeros((2, shares.shape[1]))
        for pattern, at in self.parts:
            there = len(pattern.there)
            pairs = there * (there + 1) / (d * (d + 1))
            result += np.outer([1 - there / d, 1 - pairs], shares[at].sum(axis=0))
        return result

    def moments(self, shares, origins):
        """Return counts, sums and products of the completed rows about origins.

        Returns
        -------
        counts : ndarray of shape (n_components,)
        sums : ndarray of shape (n_components, n_features)
        products : ndarray of shape (n_components, n_features, n_features)
        """
        n_components, d = shares.shape[1], self.rows.shape[1]
        counts, sums = np.zeros(n_components), np.zeros((n_components, d))
        products = np.zeros((n_components, d, d))
        for pattern, at in self.parts:
            weights = shares[at].T
            completed = np.repeat(self.rows[None, at], n_components, axis=0)
            completed[:, :, pattern.missing] = pattern.expected(self.rows[at])
            completed -= np.reshape(origins, (-1, 1, d))
            weighted, own = completed * weights[:, :, None], weights.sum(axis=1)
            counts += own
            sums += weighted.sum(axis=1)
            products += weighted.mT @ completed
            block = np.ix_(range(n_components), pattern.missing, pattern.missing)
            products[block] += own[:, None, None] * pattern.covariances
        return counts, sums, products


def column_means(X, sample_weight):
    """Return the means of the observed values; zero for columns without any."""
    if not np.isnan(X).any():
        return np.average(X, axis=0, weights=sample_weight)
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    there = ~np.isnan(X)
    totals = np.maximum(weight @ there, np.finfo(float).tiny)
    return weight @ np.where(there, X, 0.0) / totals
