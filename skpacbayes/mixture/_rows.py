"""What one pass over the rows gives: the E-step, tile by tile.

A *density* evaluates E log p_k + E log q_k(x) for a tile of rows, and adds the
moments of the tile. There is one per kind of moments: quadratic about one origin,
diagonal or full about an origin per component, counts. No array made here has one row
per observation.
"""

import numpy as np
from scipy.sparse import issparse

from .._kernels.mixture import (
    add_diagonal_moments,
    diagonal_log_joint,
    quadratic_features,
    scale_rows,
    subtract_row_maximum,
)

TILE_DOUBLES = 50_000  # what a tile may take: it should stay in the cache
SMALLEST_TILE = 64


class Responsibilities:
    """The posterior probabilities of the components, a tile of rows at a time.

    After the last tile `log_normaliser` holds the sum over the rows of weight_i
    log sum_k exp(joint_ik), and `counts` and `entropies` those of w_ik and of
    -w_ik log(w_ik / weight_i).
    """

    def __init__(self, density):
        self.density = density
        self.n_components = len(density.constants)
        self.log_normaliser = 0.0
        self.counts, self.entropies = self.sums = np.zeros((2, self.n_components))

    def tiles(self, X, sample_weight=None):
        """Yield (slice, rows, responsibilities); the arrays are used again and again.

        The responsibilities of a row sum to its weight.
        """
        n_rows = X.shape[0]
        room = TILE_DOUBLES // (self.density.width + 2 * self.n_components)
        size = min(max(SMALLEST_TILE, room), n_rows)
        joint, shares = np.empty((2, size, self.n_components))
        highest, totals, log_totals, scales = np.empty((4, size))
        ones = np.ones(self.n_components)
        for start in range(0, n_rows, size):
            tile = slice(start, min(start + size, n_rows))
            m = tile.stop - start
            rows, s, total = X[tile], shares[:m], totals[:m]
            self.density.log_joint(rows, joint[:m])
            subtract_row_maximum(joint[:m], highest[:m])
            np.exp(joint[:m], out=s)
            np.matmul(s, ones, out=total)
            np.log(total, out=log_totals[:m])
            weight = 1.0 if sample_weight is None else sample_weight[tile]
            np.divide(weight, total, out=scales[:m])
            self.log_normaliser += ((log_totals[:m] + highest[:m]) * weight).sum()
            scale_rows(joint[:m], log_totals[:m], scales[:m], s, self.sums)
            yield tile, rows, s


def expect(density, X, sample_weight=None):
    """E-step: the expected statistics of X, and its log-normaliser.

    Returns
    -------
    statistics : ndarray of shape (n_components, n_columns)
        The columns hold the counts, the moments and the entropies
        -sum_i w_ik log w_ik.
    log_normaliser : float
        The sum over the rows of weight_i log sum_k exp(joint_ik).
    """
    step = Responsibilities(density)
    moments = density.no_moments()
    for _, rows, shares in step.tiles(X, sample_weight):
        density.add(rows, shares, moments)
    columns = density.columns(moments)
    return np.column_stack([step.counts, columns, step.entropies]), step.log_normaliser


def product_pairs(n_features, full):
    """Return the indices of both factors of each product of features."""
    if full:
        return np.triu_indices(n_features)
    return (np.arange(n_features),) * 2


class QuadraticDensity:
    """c_k - 1/2 (x - mean_k)' P_k (x - mean_k), as a product with (1, x, xx').

    `precisions` is (n_components, n_features), a diagonal, or (n_components,
    n_features, n_features). The moments are sums about `origin`, (n_features,). Half
    the work of a triangular solve, all of it in two matrix products; accurate while
    the components lie within some thousand of their widths from the origin.
    """

    def __init__(self, constants, means, precisions, origin):
        self.constants = constants
        self.origin = origin
        full = precisions.ndim == 3
        self.first, self.second = product_pairs(len(origin), full)
        gaps = means - origin
        if full:
            linear = np.einsum("kij,kj->ki", precisions, gaps)
            products = precisions[:, self.first, self.second]
        else:
            linear, products = precisions * gaps, precisions
        twice = np.where(self.first == self.second, 0.5, 1.0)
        offset = constants - 0.5 * (linear * gaps).sum(axis=1)
        self.coefficients = np.column_stack([offset, linear, -twice * products])
        self.width = self.coefficients.shape[1]
        self._features = np.empty((self.width, 0))

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        if self._features.shape[1] != len(rows):
            self._features = np.empty((self.width, len(rows)))
        quadratic_features(rows, self.origin, self.first, self.second, self._features)
        np.matmul(self._features.T, self.coefficients.T, out=out)

    def no_moments(self):
        """Return the moments of no row."""
        return np.zeros((self.width, len(self.constants)))

    def add(self, rows, shares, moments):
        """Add the moments of the rows of which `log_joint` was just computed."""
        moments += self._features @ shares

    def columns(self, moments):
        """Columns of the statistics between the counts and the entropies."""
        return moments[1:].T


class SeparatedDiagonalDensity:
    """`QuadraticDensity` for diagonals, with one origin per component.

    Slower, and exact where the spread of the components dwarfs their widths.
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
        """Return the moments of no row."""
        return np.zeros((2, *self.means.shape))

    def add(self, rows, shares, moments):
        """Add the moments of the rows."""
        add_diagonal_moments(rows, shares, self.origins, moments[0], moments[1])

    def columns(self, moments):
        """Columns of the statistics between the counts and the entropies."""
        return np.hstack([moments[0].T, moments[1].T])


class SeparatedFullDensity:
    """`QuadraticDensity` for full precisions F F', with one origin per component."""

    def __init__(self, constants, means, factors, origins):
        self.constants = constants
        self.means = means
        self.origins = origins
        self.factors = factors
        self.width = 2 * means.shape[1]

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        for k, mean in enumerate(self.means):
            scaled = (rows - mean) @ self.factors[k]
            out[:, k] = self.constants[k] - 0.5 * np.einsum("ij,ij->i", scaled, scaled)

    def no_moments(self):
        """Return the moments of no row."""
        n_components, n_features = self.means.shape
        return np.zeros((n_components, 1 + n_features, n_features))

    def add(self, rows, shares, moments):
        """Add the moments of the rows."""
        for k, origin in enumerate(self.origins):
            gaps = rows - origin
            weighted = gaps * shares[:, k, None]
            moments[k, 0] += weighted.sum(axis=0)
            moments[k, 1:] += weighted.T @ gaps

    def columns(self, moments):
        """Columns of the statistics between the counts and the entropies."""
        first, second = product_pairs(self.means.shape[1], full=True)
        return np.hstack([moments[:, 0], moments[:, 1 + first, second]])


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
        """Return the moments of no row."""
        return np.zeros(self.log_components.shape)

    def add(self, rows, shares, moments):
        """Add the counts of the rows."""
        moments += (rows.T @ shares).T if issparse(rows) else shares.T @ rows

    def columns(self, moments):
        """Columns of the statistics between the counts and the entropies."""
        return moments
