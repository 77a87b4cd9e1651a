"""Scores of rows under each component, row by row.

Sums are taken in the same order whether one row is scored or many, so that the scores
of a row do not depend on the other rows. Scorers store nothing about the rows.
"""

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from .._kernels import mixture as kernels
from ._missing import IndependentPattern, Patterns

MOST_VALUES = 2**20  # of arrays, where rows with missing values are scored together


class Scorer:
    """Base class of scorers with a method `of`, which returns a new array."""

    def of(self, X):
        """Return the scores."""
        scores = np.empty((len(X), self.n_components))
        self.write(X, scores)
        return scores


class FunctionScorer:
    """Scores that a function writes."""

    def __init__(self, write, n_components):
        self.write = write
        self.n_components = n_components


class DiagonalScorer:
    """c_k - 1/2 sum_j precision_kj (x_j - mean_kj)^2."""

    def __init__(self, constants, means, precisions):
        self.n_components = len(constants)
        self.parameters = contiguous(constants, means, precisions)

    def write(self, X, out):
        """Write the scores."""
        kernels.diagonal_log_joint(X, *self.parameters, out)


class FullScorer:
    """c_k - s_k / 2, or c_k - t_k log(1 + s_k) where t_k > 0.

    s_k is m_k |A_k (x - mean_k)|^2. The A_k are lower triangular, (n_components,
    n_features, n_features). Missing values are integrated out.
    """

    def __init__(self, constants, means, factors, multipliers, tops):
        self.n_components = len(constants)
        self.forms = constants, means, factors, multipliers, tops
        order = np.tril_indices(means.shape[1])
        self.parameters = contiguous(
            constants, means, factors[:, *order], multipliers, tops
        )

    def write(self, X, out):
        """Write the scores."""
        kernels.full_log_densities(
            X, *self.parameters, np.empty(self.n_components * 2), out
        )
        if np.isnan(out[:, 0]).any():
            self.write_incomplete(X, out)

    def write_incomplete(self, X, out):
        """Write the scores of incomplete rows: integrals over the missing values."""
        constants, _, _, _, tops = self.forms
        holes = np.isnan(X)
        n_missing = holes.sum(axis=1)
        for number in np.unique(n_missing[n_missing > 0]):
            at = np.flatnonzero(n_missing == number)
            size = max(MOST_VALUES // (self.n_components * X.shape[1] * number), 1)
            for some in np.array_split(at, -(-len(at) // size)):
                patterns = self.patterns(holes[some])
                squares = patterns.completed(X[some, None])[1]
                if tops[0] > 0:
                    scores = patterns.log_student_integrals(constants, squares)
                else:
                    scores = patterns.log_integrals(constants, squares)
                out[some] = scores[:, :, 0].T

    def patterns(self, holes):
        """Return the quadratic forms with these features missing, row by row."""
        _, means, factors, multipliers, tops = self.forms
        precisions = multipliers[:, None, None] * (factors.mT @ factors)
        return Patterns(holes, means, precisions, tops)


class StudentScorer:
    """c_k - t_k sum_j log(1 + (x_j - mean_kj)^2 / scale_kj), or the log of the sum."""

    def __init__(self, constants, means, scales, tops, pooled):
        self.n_components = len(constants)
        self.parameters = contiguous(constants, means, scales, tops)
        self.pooled = pooled

    def write(self, X, out):
        """Write the scores."""
        kernels.student_log_densities(X, *self.parameters, self.pooled, out)


class IndependentStudents:
    """Products of densities (1 + (x_j - mean_kj)^2 / scale_kj)^-top_k, normalised.

    Missing values are integrated out.
    """

    def __init__(self, means, scales, tops):
        self.n_components = len(means)
        self.means, self.scales, self.tops = means, scales, tops

    def write(self, X, out):
        """Write the scores."""
        for k, top in enumerate(self.tops):
            constants = gammaln(top) - gammaln(top - 0.5)
            constants = constants - 0.5 * np.log(np.pi * self.scales[k])
            squares = (X - self.means[k]) ** 2 / self.scales[k]
            out[:, k] = np.nansum(constants - top * np.log1p(squares), axis=1)

    def patterns(self, holes):
        """Return the distributions of these missing features."""
        return IndependentPattern(holes, self.means, self.scales, self.tops)


class LinearScorer(Scorer):
    """c_k + sum_j t_j coefficient_kj, where t are statistics of the row."""

    def __init__(self, constants, coefficients, statistics=None):
        self.n_components = len(constants)
        self.parameters = contiguous(constants, coefficients)
        self.statistics = statistics

    def write(self, X, out):
        """Write the scores."""
        constants, coefficients = self.parameters
        if self.statistics is not None:
            X = np.ascontiguousarray(self.statistics(X), dtype=np.float64)
        elif issparse(X):
            np.add(X @ coefficients, constants, out=out)
            return
        kernels.linear_log_densities(X, constants, coefficients, out)


class KernelScorer(Scorer):
    """Scores that a kernel writes, except for rows whose scores are NaN.

    Parameters
    ----------
    kernel : callable
        Takes the rows, the `parameters`, and the array to write to.
    parameters : tuple of ndarray
    n_components : int
    otherwise : callable
        Returns the scores of the rows for which the kernel writes NaN: those with
        missing values, or with values that are not in its tables.
    """

    def __init__(self, kernel, parameters, n_components, otherwise=None):
        self.kernel = kernel
        self.parameters = parameters
        self.n_components = n_components
        self.otherwise = otherwise

    def write(self, X, out):
        """Write the scores."""
        self.kernel(np.ascontiguousarray(X), *self.parameters, out)
        first = out[:, 0]
        if self.otherwise is not None and np.isnan(np.add.reduce(first)):
            rows = np.isnan(first)
            out[rows] = self.otherwise(X[rows])


def tabulated(constants, table, otherwise):
    """Return a scorer c_k + sum_j table[j, x_j, k]; `otherwise` if not in the table."""
    parameters = np.array(constants, dtype=float), np.array(table, order="C")
    kernel = kernels.tabulated_log_densities
    return KernelScorer(kernel, parameters, len(constants), otherwise)


class SumScorer:
    """The sum of the scores of several parts of the columns.

    Parameters
    ----------
    parts : list of (scorer, columns)
    """

    def __init__(self, parts):
        self.parts = parts
        self.n_components = parts[0][0].n_components

    def write(self, X, out):
        """Write the scores."""
        (scorer, columns), *others = self.parts
        scorer.write(X[:, columns], out)
        own = np.empty(out.shape)
        for scorer, columns in others:
            scorer.write(X[:, columns], own)
            out += own


class DirichletMultinomialScorer:
    """Dirichlet-multinomial log probabilities of counts, given their total."""

    def __init__(self, concentration):
        self.n_components = len(concentration)
        topics = np.ascontiguousarray(concentration.T)
        totals = concentration.sum(axis=1)
        self.parameters = topics, gammaln(topics), totals, gammaln(totals)

    def write(self, X, out):
        """Write the scores."""
        if issparse(X):
            X = csr_array(X, copy=True)
            X.sum_duplicates()
            rows = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
        else:
            n_rows, width = X.shape
            rows = (
                X.ravel(),
                np.tile(np.arange(width), n_rows),
                np.arange(n_rows + 1) * width,
            )
        kernels.count_log_probabilities(*rows, *self.parameters, out)


def contiguous(*arrays):
    """Return writable copies with the components on the last axis."""
    return tuple(np.array(array.T, order="C") for array in arrays)
