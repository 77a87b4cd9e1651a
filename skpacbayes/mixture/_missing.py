"""Missing values of Gaussian components: integrated out exactly, pattern by pattern.

Where E log q_k(x) is a quadratic form, the optimal distribution of the missing values
given the observed ones is Gaussian. It is one more factor of the variational posterior:
J is still a lower bound, and no step decreases it.
"""

from functools import cached_property

import numpy as np
from scipy.special import gammaln


class Patterns:
    """Quadratic forms c_k - 1/2 (x - mean_k)' P_k (x - mean_k) with missing features.

    Arrays have an axis of patterns of missing values after that of the components.
    All patterns have the same number of missing features.

    Parameters
    ----------
    holes : ndarray of shape (n_patterns, n_features)
        Whether the feature is missing.
    means : ndarray of shape (n_components, n_features)
    precisions : ndarray of shape (n_components, n_features, n_features)
    tops : ndarray of shape (n_components,), default=None
        Exponents of predictive densities, proportional to (1 + square)^-top.

    Attributes
    ----------
    missing : ndarray of shape (n_patterns, n_missing)
        Indices of the missing features.
    covariances : ndarray of shape (n_components, n_patterns, n_missing, n_missing)
        Conditional covariances of the missing features, given the others.
    """

    n_chances = 1

    def __init__(self, holes, means, precisions, tops=None):
        self.missing = np.nonzero(holes)[1].reshape(len(holes), -1)
        self.holes, self.means, self.tops = holes, means, tops
        self.precisions = precisions[:, None]
        pairs = self.missing[:, :, None], self.missing[:, None]
        self.inner = precisions[:, *pairs]
        self.covariances = np.linalg.inv(self.inner)

    @cached_property
    def log_determinants(self):
        """Log determinants of the precisions of the missing features."""
        return np.linalg.slogdet(self.inner)[1]

    def completed(self, rows):
        """Return rows minus means, with the expected values of missing features.

        Parameters
        ----------
        rows : ndarray of shape (n_patterns, n_rows, n_features)

        Returns
        -------
        gaps : ndarray of shape (n_components, n_patterns, n_rows, n_features)
        squares : ndarray of shape (n_components, n_patterns, n_rows)
            Values of the forms x' P_k x, which these values minimise.
        """
        gaps = rows - self.means[:, None, None]
        gaps[:, np.broadcast_to(self.holes[:, None], rows.shape)] = 0.0
        observed, at = gaps.copy(), self.missing[None, :, None]
        slopes = np.take_along_axis(gaps @ self.precisions, at, axis=3)
        np.put_along_axis(gaps, at, -slopes @ self.covariances, axis=3)
        return gaps, ((gaps @ self.precisions) * observed).sum(axis=3)

    def students(self, rows):
        """Return the Student distributions of missing values, for each component.

        The density of the row is proportional to (1 + s + u' Q u)^-t, where s is the
        square of the observed values, and u are the missing values minus their
        conditional means.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Rows of the one pattern there is.

        Returns
        -------
        locations : ndarray of shape (n_components, n_rows, n_missing)
        scales : ndarray of shape (n_components, n_rows)
            Multipliers of the pattern's covariances Q^-1.
        degrees : ndarray of shape (n_components,)
        """
        gaps, squares = self.completed(rows[None])
        degrees = 2 * self.tops - self.missing.shape[1]
        locations = (gaps[:, 0] + self.means[:, None])[:, :, self.missing[0]]
        return locations, (1 + squares[:, 0]) / degrees[:, None], degrees

    def log_integrals(self, constants, squares):
        """Return log integrals of exp of the forms over the missing values."""
        factor = self.missing.shape[1] * np.log(2 * np.pi) - self.log_determinants
        return constants[:, None, None] + 0.5 * (factor[:, :, None] - squares)

    def log_student_integrals(self, constants, squares):
        """Return log integrals of exp(c_k) (1 + square)^(-top_k)."""
        size, tops = self.missing.shape[1], self.tops[:, None]
        rest = tops - 0.5 * size
        factor = constants[:, None] + gammaln(rest) - gammaln(tops)
        factor = factor + 0.5 * (size * np.log(np.pi) - self.log_determinants)
        return factor[:, :, None] - rest[:, :, None] * np.log1p(squares)


class IndependentPattern:
    """Missing features that are independent of each other and of the observed ones.

    `holes` has one pattern. Attributes are those of `Patterns`. Each missing feature
    has a chi-squared variable of its own: `n_chances` is their number.
    """

    def __init__(self, holes, means, scales, tops):
        self.missing = np.nonzero(holes)[1][None]
        self.n_chances = self.missing.size
        self.means, own = means[:, self.missing[0]], scales[:, self.missing]
        self.covariances = own[..., None] * np.eye(self.n_chances)
        self.degrees = 2 * tops - 1

    def students(self, rows):
        """Return Student distributions of missing values, the same for all rows."""
        shape = len(self.means), len(rows)
        locations = np.broadcast_to(self.means[:, None], (*shape, self.n_chances))
        scales = np.broadcast_to(1 / self.degrees[:, None], shape)
        return locations, scales, self.degrees


def patterns_of(rows):
    """Return the patterns of missing values, and the rows of each.

    Returns
    -------
    patterns : ndarray of shape (n_patterns, n_features)
        Whether the feature is missing.
    at : ndarray of shape (n_incomplete_rows,)
        Indices of the rows: those of the first pattern, of the second, ...
    sizes : ndarray of shape (n_patterns,)
        Number of rows of each.
    """
    holes = np.isnan(rows)
    at = np.flatnonzero(holes.any(axis=1))
    patterns, which, sizes = np.unique(
        holes[at], axis=0, return_inverse=True, return_counts=True
    )
    return patterns, at[np.argsort(which.ravel(), kind="stable")], sizes


def alike(rows):
    """Yield patterns with equally many missing values and about as many rows.

    Yields
    ------
    holes : ndarray of shape (n_patterns, n_features)
    at : ndarray of shape (n_patterns, n_rows)
        Indices of the rows of each pattern.
    real : ndarray of shape (n_patterns, n_rows)
        Zero where an index fills up a pattern of fewer rows; otherwise one.
    """
    patterns, at, sizes = patterns_of(rows)
    ends = sizes.cumsum()
    kinds = np.column_stack([patterns.sum(axis=1), np.frexp(sizes)[1]])
    for kind in np.unique(kinds, axis=0):
        own = np.flatnonzero((kinds == kind).all(axis=1))
        steps, size = np.arange(sizes[own].max()), sizes[own, None]
        indices = at[ends[own, None] - size + np.minimum(steps, size - 1)]
        yield patterns[own], indices, (steps < size).astype(float)


class IncompleteRows:
    """Incomplete rows of a tile: log joint densities, and moments when completed."""

    def __init__(self, rows, means, precisions):
        self.n_features, self.parts = rows.shape[1], []
        for holes, at, real in alike(rows):
            patterns = Patterns(holes, means, precisions)
            self.parts.append((patterns, at, real, *patterns.completed(rows[at])))

    def write(self, constants, out):
        """Write the log joint densities of the observed values."""
        for patterns, at, _, _, squares in self.parts:
            out[at] = np.moveaxis(patterns.log_integrals(constants, squares), 0, -1)

    def leave_out(self, values):
        """Set the contributions of incomplete rows to zero, on the last axis."""
        for _, at, *_ in self.parts:
            values[..., at] = 0.0

    def losses(self, shares):
        """Return the rows lost to missing values, for the means and for the scales.

        A row of d values of which o are observed lacks 1 - o / d of the information
        about the mean, and 1 - o (o + 1) / (d (d + 1)) of that about the scale.

        Returns
        -------
        losses : ndarray of shape (2, n_components)
        """
        d, result = self.n_features, np.zeros((2, shares.shape[1]))
        for patterns, at, real, *_ in self.parts:
            there = d - patterns.missing.shape[1]
            pairs = there * (there + 1) / (d * (d + 1))
            own = np.tensordot(real, shares[at], axes=2)
            result += np.outer([1 - there / d, 1 - pairs], own)
        return result

    def moments(self, shares, origins):
        """Return counts, sums and products of the completed rows about origins.

        Returns
        -------
        counts : ndarray of shape (n_components,)
        sums : ndarray of shape (n_components, n_features)
        products : ndarray of shape (n_components, n_features, n_features)
        """
        n_components, d = shares.shape[1], self.n_features
        counts, sums = np.zeros(n_components), np.zeros((n_components, d))
        products = np.zeros((n_components, d, d))
        for patterns, at, real, gaps, _ in self.parts:
            weights = np.moveaxis(shares[at], -1, 0) * real
            shift = np.reshape(patterns.means - origins, (n_components, 1, d))
            rows = gaps.reshape(n_components, -1, d) + shift
            weighted = rows * weights.reshape(n_components, -1, 1)
            counts += weights.sum(axis=(1, 2))
            sums += weighted.sum(axis=1)
            products += weighted.mT @ rows
            spread = patterns.covariances * weights.sum(axis=2)[:, :, None, None]
            missing = patterns.missing
            at = slice(None), missing[:, :, None], missing[:, None]
            np.add.at(products, at, spread)
        return counts, sums, products


def column_means(X, sample_weight):
    """Return the means of the observed values; zero for columns without any."""
    if not np.isnan(X).any():
        return np.average(X, axis=0, weights=sample_weight)
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    there = ~np.isnan(X)
    totals = np.maximum(weight @ there, np.finfo(float).tiny)
    return weight @ np.where(there, X, 0.0) / totals
