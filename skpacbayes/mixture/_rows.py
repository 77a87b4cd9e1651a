"""The E-step: one pass over the rows, in batches ("tiles").

A *density* evaluates E log p_k + E log q_k(x) for a tile of rows, and adds the
moments of the tile. There is one class per kind of moments: quadratic about one origin,
diagonal or full about an origin per component, counts, linear. No array made here has
one row per observation.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.sparse import issparse

from .._kernels.mixture import (
    add_diagonal_moments,
    diagonal_log_joint,
    quadratic_features,
    turn_into_shares,
)
from ._missing import IncompleteRows

TILE_DOUBLES = 50_000  # largest size of a tile, which should stay in the cache
SMALLEST_TILE = 64


class Responsibilities:
    """The posterior probabilities of the components, a tile of rows at a time.

    After the last tile, `counts` holds the sums over the rows of the responsibilities
    w_ik, and `log_sums` those of w_ik log sum_k exp(joint_ik).
    """

    def __init__(self, density):
        self.density = density
        self.n_components = len(density.constants)
        self.counts, self.log_sums = self.sums = np.zeros((2, self.n_components))

    def tiles(self, X, sample_weight=None):
        """Yield (slice, rows, responsibilities); the last array is overwritten.

        The responsibilities of a row sum to its weight.
        """
        n_rows = X.shape[0]
        room = TILE_DOUBLES // (self.density.width + self.n_components)
        size = min(max(SMALLEST_TILE, room), n_rows)
        shares = np.empty((size, self.n_components))
        ones, log_totals = ones_and_logs = np.ones((2, size))
        for start in range(0, n_rows, size):
            tile = slice(start, min(start + size, n_rows))
            m = tile.stop - start
            rows, w, logs = X[tile], shares[:m], log_totals[:m]
            self.density.log_joint(rows, w)
            weight = ones[:m] if sample_weight is None else sample_weight[tile]
            turn_into_shares(w, weight, logs)
            self.sums += ones_and_logs[:, :m] @ w
            yield tile, rows, w


def expect(density, X, sample_weight=None):
    """Return the expected statistics of X and the log-normaliser: the E-step.

    Returns
    -------
    statistics : ndarray of shape (n_components, n_columns)
        The columns hold the counts, the moments and the entropies, which are
        sum_i w_ik (log sum_k exp(joint_ik) - joint_ik).
    log_normalizer : float
        The sum over the rows of weight_i log sum_k exp(joint_ik).
    """
    step = Responsibilities(density)
    moments = density.no_moments()
    for _, rows, shares in step.tiles(X, sample_weight):
        density.add(rows, shares, moments)
    entropies = step.log_sums - density.total(step.counts, moments)
    columns = step.counts[:, None], density.columns(moments), entropies[:, None]
    return np.concatenate(columns, axis=1), step.log_sums.sum()


def as_slice(columns):
    """Return consecutive columns as a slice, which selects them without a copy."""
    columns = list(columns)
    if columns and columns == list(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[-1] + 1) if columns[0] >= 0 else columns
    return columns


def column_indices(columns, names, n_features, asked):
    """Return the indices of columns that are given by index, name, mask or slice.

    A slice of names includes its last column. The error message for a missing column
    begins with `asked`.
    """
    there = f", but X has {n_features} columns"
    indices = {name: index for index, name in enumerate(names)}
    indices |= {index: index % n_features for index in range(-n_features, n_features)}

    def index_of(column):
        if column not in indices:
            listed = f": {', '.join(names)}" if len(names) else ""
            raise ValueError(f"{asked} the column {column!r}{there}{listed}.")
        return indices[column]

    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        if isinstance(first, str):
            first = index_of(first)
        if isinstance(last, str):  # included, as in ColumnTransformer
            last = index_of(last) + 1
        columns = np.arange(n_features)[first : last : columns.step]
    wanted = np.atleast_1d(columns)
    if wanted.dtype == bool:
        if wanted.shape != (n_features,):
            raise ValueError(f"{asked} a mask of {wanted.size} columns{there}.")
        wanted = np.flatnonzero(wanted)
    return [index_of(column) for column in wanted.tolist()]


def variances_of(points, weight=None):
    """Return the variances of columns, in which a weight counts a row several times."""
    if weight is None or (weight == weight[0]).all():
        return points.var(axis=0)
    share = weight / weight.sum()
    return share @ (points - share @ points) ** 2


def have_gaps(X):
    """Return whether a value is NaN, by the sum of squares, which is fast."""
    return math.isnan(np.vdot(X, X))


@lru_cache(maxsize=64)
def product_pairs(n_features, full):
    """Return read-only indices of the two factors of each product of features."""
    pairs = np.triu_indices(n_features) if full else (np.arange(n_features),) * 2
    for indices in pairs:
        indices.flags.writeable = False
    return pairs


@lru_cache(maxsize=64)
def product_indices(n_features):
    """Return read-only indices of the product of each pair of features."""
    first, second = product_pairs(n_features, full=True)
    indices = np.empty((n_features, n_features), dtype=np.intp)
    indices[first, second] = indices[second, first] = np.arange(len(first))
    indices.flags.writeable = False
    return indices


@lru_cache(maxsize=64)
def upper_triangle(n_features):
    """Return read-only indices of the products in a flat matrix, and coefficients.

    The sum of the products of features times these coefficients is -1/2 x' P x, where
    P is symmetric.
    """
    first, second = product_pairs(n_features, full=True)
    flat, times = n_features * first + second, np.where(first == second, -0.5, -1.0)
    flat.flags.writeable = times.flags.writeable = False
    return flat, times


class QuadraticDensity:
    """c_k - 1/2 (x - mean_k)' P_k (x - mean_k), as a product with (1, x, xx').

    `precisions` is (n_components, n_features), a diagonal, or (n_components,
    n_features, n_features). The moments are sums about `origin`, (n_features,). Two
    matrix products do it, in half the time of a triangular solve. They are accurate if
    components are at most some thousand standard deviations from the origin.
    """

    def __init__(self, constants, means, precisions, origin):
        self.constants = constants
        self.origin = origin
        self.means, self.precisions = means, precisions
        self.incomplete = None
        n_components, d = means.shape
        full = precisions.ndim == 3
        self.first, self.second = product_pairs(d, full)
        gaps, times = means - origin, -0.5
        if full:
            linear = (precisions @ gaps[:, :, None])[:, :, 0]
            flat, times = upper_triangle(d)
            products = precisions.reshape(n_components, d * d).take(flat, axis=1)
        else:
            linear, products = precisions * gaps, precisions
        self.width = 1 + d + len(self.first)
        self.coefficients = np.empty((n_components, self.width))
        self.coefficients[:, 0] = constants - 0.5 * (linear * gaps).sum(axis=1)
        self.coefficients[:, 1 : 1 + d] = linear
        np.multiply(times, products, out=self.coefficients[:, 1 + d :])
        self.n_losses = 2 if full else 0
        self._features = np.empty((self.width, 0))

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        if self._features.shape[1] != len(rows):
            self._features = np.empty((self.width, len(rows)))
        quadratic_features(rows, self.origin, self.first, self.second, self._features)
        np.matmul(self._features.T, self.coefficients.T, out=out)
        self.incomplete = None
        if np.isnan(out[:, 0]).any():
            self.incomplete = IncompleteRows(rows, self.means, self.precisions)
            self.incomplete.write(self.constants, out)
            self.incomplete.leave_out(self._features)

    def no_moments(self):
        """Return the moments of no rows."""
        return np.zeros((self.width + self.n_losses, len(self.constants)))

    def add(self, rows, shares, moments):
        """Add the moments of the rows of which `log_joint` was just computed."""
        moments[: self.width] += self._features @ shares
        if self.incomplete is not None:
            counts, sums, products = self.incomplete.moments(shares, self.origin)
            products = products[:, self.first, self.second]
            moments[: self.width] += np.column_stack([counts, sums, products]).T
            moments[self.width :] += self.incomplete.losses(shares)

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        return np.einsum("ki,ik->k", self.coefficients, moments[: self.width])

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return moments[1:].T


class SeparatedDiagonalDensity:
    """`QuadraticDensity` for diagonals, with one origin per component.

    It is slower, but accurate if components are narrow and far from each other.
    """

    def __init__(self, constants, means, precisions, origins):
        self.constants = constants
        self.means = np.ascontiguousarray(means.T)
        self.precisions = np.ascontiguousarray(precisions.T)
        self.origins = np.ascontiguousarray(origins.T)
        self.width = len(self.means)

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        diagonal_log_joint(rows, self.constants, self.means, self.precisions, out)

    def no_moments(self):
        """Return the moments of no rows."""
        return np.zeros((2, *self.means.shape))

    def add(self, rows, shares, moments):
        """Add the moments of the rows."""
        add_diagonal_moments(rows, shares, self.origins, moments[0], moments[1])

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        gaps = self.means - self.origins
        squares = moments[1] - 2 * gaps * moments[0] + counts * gaps**2
        return counts * self.constants - 0.5 * (self.precisions * squares).sum(axis=0)

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return np.hstack([moments[0].T, moments[1].T])


class SeparatedFullDensity:
    """`QuadraticDensity` for full precisions F F', with one origin per component.

    All arrays of rows have the shape (n_components, n_features, n_rows).
    """

    def __init__(self, constants, means, factors, origins):
        self.constants = constants
        self.means = means
        self.origins = origins
        self.factors = factors
        self.incomplete = None
        self.width = means.size // 2

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        self._columns = np.ascontiguousarray(rows.T)
        self._gaps = self._columns - self.means[:, :, None]
        scaled = self.factors.mT @ self._gaps
        squares = np.einsum("kji,kji->ki", scaled, scaled)
        np.subtract(self.constants, 0.5 * squares.T, out=out)
        self.incomplete = None
        if np.isnan(out[:, 0]).any():
            precisions = self.factors @ self.factors.mT
            self.incomplete = IncompleteRows(rows, self.means, precisions)
            self.incomplete.write(self.constants, out)

    def no_moments(self):
        """Return the moments of no rows."""
        n_components, d = self.means.shape
        return np.zeros((n_components, 1 + d, d)), np.zeros((2, n_components))

    def add(self, rows, shares, moments):
        """Add the moments of the rows of which `log_joint` was just computed."""
        moments, losses = moments
        gaps = self._gaps
        if self.origins is not self.means:
            gaps = self._columns - self.origins[:, :, None]
        if self.incomplete is not None:
            losses += self.incomplete.losses(shares)
            _, sums, products = self.incomplete.moments(shares, self.origins)
            moments += np.concatenate([sums[:, None], products], axis=1)
            self.incomplete.leave_out(gaps)
        weighted = gaps * np.ascontiguousarray(shares.T)[:, None]
        moments[:, 0] += weighted.sum(axis=2)
        moments[:, 1:] += weighted @ gaps.mT

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        moments, _ = moments
        gaps, sums = self.means - self.origins, moments[:, 0]
        crossed = gaps[:, :, None] * (sums - 0.5 * counts[:, None] * gaps)[:, None]
        squares = moments[:, 1:] - crossed - crossed.mT
        squares = np.einsum("kij,kji->k", self.factors.mT @ squares, self.factors)
        return counts * self.constants - 0.5 * squares

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        moments, losses = moments
        n_components, d = self.means.shape
        products = moments[:, 1:].reshape(n_components, d * d)
        products = products.take(upper_triangle(d)[0], axis=1)
        return np.concatenate([moments[:, 0], products, losses.T], axis=1)


class CountDensity:
    """c_k + sum_v x_v log_components_kv for rows of counts, dense or sparse."""

    def __init__(self, constants, log_components):
        self.constants = constants
        self.log_components = log_components
        self.width = 0

    def log_joint(self, rows, out):
        """Write the expected log joint probability of the rows and the components."""
        np.add(rows @ self.log_components.T, self.constants, out=out)

    def no_moments(self):
        """Return the moments of no rows."""
        return np.zeros(self.log_components.shape)

    def add(self, rows, shares, moments):
        """Add the counts of the rows."""
        moments += (rows.T @ shares).T if issparse(rows) else shares.T @ rows

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        return counts * self.constants + (self.log_components * moments).sum(axis=1)

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return moments


class LinearDensity:
    """c_k + sum_j t_j(x) coefficients_kj, where `statistics` maps rows to t.

    Tiles without missing values cost less. Some statistics are the same for all such
    rows: the values of `common` that are not NaN. `write_varying` writes the others,
    (n_others, n_rows).
    """

    def __init__(self, constants, coefficients, statistics, common, write_varying):
        self.constants = constants
        self.coefficients = coefficients
        self.statistics = statistics
        self.write_varying = write_varying
        fixed = ~np.isnan(common)
        self.fixed, self.others = map(as_slice, map(np.flatnonzero, [fixed, ~fixed]))
        self.common = common[self.fixed]
        offset = constants + coefficients[:, self.fixed] @ self.common
        self.of_complete = np.column_stack([offset, coefficients[:, self.others]])
        self.width = self.of_complete.shape[1]
        self._features = np.empty((self.width, 0))

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        self.complete = not have_gaps(rows)
        if not self.complete:
            self._last = self.statistics(rows)
            np.matmul(self._last, self.coefficients.T, out=out)
            out += self.constants
            return
        if self._features.shape[1] != len(rows):
            self._features = np.ones((self.width, len(rows)))
        self.write_varying(rows, self._features[1:])
        np.matmul(self._features.T, self.of_complete.T, out=out)

    def no_moments(self):
        """Return the sums over no rows."""
        return np.zeros(self.coefficients.shape)

    def add(self, rows, shares, moments):
        """Add the statistics of the rows of which `log_joint` was just computed."""
        if not self.complete:
            moments += shares.T @ self._last
            return
        sums = self._features @ shares
        moments[:, self.fixed] += np.outer(sums[0], self.common)
        moments[:, self.others] += sums[1:].T

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        return counts * self.constants + (self.coefficients * moments).sum(axis=1)

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return moments
