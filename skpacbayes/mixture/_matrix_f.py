"""Gaussian components with full or tied covariances under the default prior.

A number of components is compared with others at the best R of each. If the shape of R
were that of the covariance of all rows, it would suit one component only: where groups
are apart, several components would pay for a wrong prior. A Wishart factor of R in rho
would be so far from independent of the B that it costs more than it gains.
"""

from copy import copy
from math import log

import numpy as np
from scipy.linalg.lapack import dpstrf

from .._kernels.matrix_f import log_determinants, weigh_axes
from ._default_priors import BLUR, FollowsTheData, NormalF, inverse_scales
from ._gaussian_families import Posterior
from ._wishart import NormalWishart

MANY_COLUMNS = 40  # from which scatter matrices of low rank have a faster update,
LOW_RANK = 0.75  # if their rank and tempered rows are at most this share of them
SHAPE_DEGREES = 1.0  # of the penalty for the shape of the prior scale, per feature
STEEPEST = 1e6  # for which the inverse prior correlations are at most this on average


class NormalMatrixF(FollowsTheData, NormalWishart):
    """Full covariances, each component's own or one for all (`tied`).

    If `shape_follows`, the bound chooses the scale R of the prior with its shape, less
    a penalty for the difference from the shape of the `scale` that is given: where
    groups are apart, the covariance of all rows is too wide in these directions.
    """

    def __init__(self, mean, mean_precision, degrees, scale, blur, tied):
        super().__init__(mean, mean_precision, degrees, scale, tied)
        self.blur, self.blur_matrix = blur, np.diag(blur)
        self.deviations = np.sqrt(blur / BLUR)
        self.first_root = np.linalg.cholesky(scale)
        self._set_shape(np.eye(self.n_features))

    def _set_shape(self, shape):
        """Set the triangular S of the scale R = `scale_factor` * T S (T S)'.

        T is the root of the scale that is given.
        """
        self.shape, self.root = shape, self.first_root @ shape
        self.inverse_scale = self.root @ self.root.T
        self.inverse_root = np.linalg.inv(self.root)
        self.log_root = np.log(np.diag(self.root)).sum()
        self.log_shape = np.log(np.diag(shape)).sum()
        self.prior_precision = self.inverse_root.T @ self.inverse_root
        steepness = np.diagonal(self.prior_precision) @ self.deviations**2
        self.steepness = steepness / self.n_features

    @property
    def prior_penalty(self):
        """Penalty for the scale R that follows the components.

        For its shape S, whose squares have the sum `n_features`, it is -c log |S|: zero
        for the identity, and else positive. The likeness has a price, too.
        """
        if not self.shape_follows:
            return 0.0
        d = self.n_features
        return self.likeness_price - SHAPE_DEGREES * d * self.log_shape

    @property
    def likeness_price(self):
        """Part of `prior_penalty` for components that are similar a priori.

        They determine R more precisely, and so the prior knows more of the rows: as in
        a Laplace approximation, each number of R costs half the logarithm of the
        precision. The least likeness costs nothing.
        """
        if not self.shape_follows:
            return 0.0
        d, least = self.n_features, joint_degrees(self.degrees, self.n_features)
        precise = joint_degrees(self.degrees, self.likeness * d) / least
        return 0.25 * d * (d + 1) * log(precise)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, plus its `prior_penalty`."""
        return super().divergence(posterior) + self.prior_penalty

    def scaled(self, posterior):
        """Return eigenvalues of R E L, (n_components or 1, 1, n_features).

        The posterior may have been computed with a scale of another shape.
        """
        if (posterior.log_units == self.log_root).all():  # it has not
            return super().scaled(posterior)
        factors = self.in_units_of_scale(posterior)
        return np.linalg.svd(factors, compute_uv=False)[:, None] ** 2

    def in_units_of_scale(self, posterior):
        """Return factors of the E L in units of R^-1."""
        return np.sqrt(self.scale_factor) * (self.root.T @ posterior.factors)

    def reshaped(self, posterior):
        """Return the family with a scale R of another shape, and a larger bound.

        With the penalty, and m, nu and c the degrees of freedom of B, of L and of the
        shape, twice the bound is a constant plus

            (n_components nu + c) log |R| - (m + nu) sum_k log |I + R E L_k|
            - c n_features log tr(R R0^-1)

        where R0 is the scale that is given. The last two terms are convex in R: they
        are above their tangents. With tangents in their place, the maximum is explicit.
        """
        if not self.shape_follows:
            return self
        d = self.n_features
        c = SHAPE_DEGREES * d
        scaled = self.in_units_of_scale(posterior)
        sums = np.eye(d) + scaled @ scaled.mT
        K, nu, m = len(sums), self.degrees, self.likeness * d
        slope = (nu + m) * (K * np.eye(d) - np.linalg.inv(sums).sum(axis=0))
        slope += c * self.shape.T @ self.shape
        step = np.linalg.cholesky((K * nu + c) * np.linalg.inv(slope))
        shape, family = np.sqrt(self.scale_factor) * self.shape @ step, copy(self)
        family.scale_factor = (shape**2).sum() / d
        family._set_shape(shape / np.sqrt(family.scale_factor))
        return family

    def other_types(self, degrees=None):
        """Return families of other types of covariances, with their default priors.

        The prior of the tied one keeps the shape of this family's scale. `degrees` are
        their prior degrees of freedom; None for the default.
        """
        spread, tied = self.blur / BLUR, copy(self)
        tied.tied = tied.shared = True
        prior = self.mean, self.mean_precision, 3 if degrees is None else degrees
        return [
            tied.rescaled(1.0),
            NormalF(*prior, spread, self.blur, pooled=False),
            NormalF(*prior, spread.mean(), self.blur, pooled=True),
        ]

    def alternatives(self):
        """Return the family, whose shape may change, and others."""
        own = [copy(self)] if self.shape_follows else []
        return super().alternatives() + own

    def row_counts(self, statistics):
        """Return the numbers of rows, which are added to the degrees of freedom."""
        return statistics[:, 0].copy()

    def wishart_degrees(self, posterior):
        """Degrees of freedom of the precisions."""
        return posterior.degrees

    def update(self, statistics, previous):
        """Posterior given tempered statistics and the last distribution of l."""
        counts, means, precision, scatter = self.shrunk(statistics, previous)
        blurred = counts
        counts = self.row_counts(statistics)
        if self.tied:
            scatter, blurred = scatter.sum(0, keepdims=True), blurred.sum(keepdims=True)
            counts = counts.sum(keepdims=True)
        degrees = self.degrees + counts
        values, scale, factors, precisions = self.solved(scatter, counts, blurred)
        expected_log = np.empty_like(degrees)
        log_determinants(degrees, values, expected_log)
        expected_log -= 2 * self.log_root
        if self.tied:
            precisions = np.repeat(precisions, len(means), axis=0)
            expected_log = np.repeat(expected_log, len(means))
        posterior = Posterior(
            previous.origins,
            means,
            precision,
            degrees,
            scale,
            precisions=precisions,
            factors=factors,
            spectrum=(degrees[:, None] / values)[:, None],
            lost=self.losses(statistics),
            log_units=np.full(len(degrees), self.log_root),
        )
        return self.completed(posterior, expected_log)

    def solved(self, scatter, counts, blurred):
        """Return the posteriors of the precisions for scatter matrices.

        A component with fewer rows than features has a scatter matrix C C' of low rank,
        for which d^2 r operations are enough instead of some 20 d^3.

        Parameters
        ----------
        scatter : ndarray of shape (n_components, n_features, n_features)
        counts : ndarray of shape (n_components,)
            Tempered numbers of rows.
        blurred : ndarray of shape (n_components,)
            How many times the blur is added to the scatter.

        Returns
        -------
        values : ndarray of shape (n_components, n_features)
            Eigenvalues of the inverse scales, in units of the prior scale R.
        scale, factors, precisions : ndarrays of the shape of scatter
            The inverse scales, factors of the expected precisions, and these.
        """
        many = self.n_features >= MANY_COLUMNS
        if not many or self.steepness > STEEPEST * self.scale_factor:
            return self.solved_whole(scatter, counts, blurred)
        each_matrix = zip(scatter, counts, blurred, strict=True)
        roots = [self.low_root(*each) for each in each_matrix]
        whole = [k for k, root in enumerate(roots) if root is None]
        if len(whole) == len(roots):
            return self.solved_whole(scatter, counts, blurred)
        results = np.empty(scatter.shape[:2]), *np.empty((3, *scatter.shape))
        if whole:
            found = self.solved_whole(
                *(each[whole] for each in (scatter, counts, blurred))
            )
            for result, own in zip(results, found, strict=True):
                result[whole] = own
        for k, root in enumerate(roots):
            if root is not None:
                found = self.solved_low(root, counts[k])
                for result, own in zip(results, found, strict=True):
                    result[k] = own
        return results

    def solved_whole(self, scatter, counts, blurred):
        """Return the results of `solved` by eigenvectors."""
        factor, scales = self.scale_factor, self.likeness * self.n_features
        scatter = scatter + blurred[:, None, None] * self.blur_matrix
        scaled = self.inverse_root @ scatter @ self.inverse_root.T
        values, vectors = np.linalg.eigh(scaled)
        factors, axes = self.inverse_root.T @ vectors, self.root @ vectors
        weights = np.empty_like(values)
        priors = map(float, (self.degrees, scales, factor))
        weigh_axes(values, factors, counts, blurred, self.blur, *priors, weights)
        factors *= weights[:, None]
        return values, (axes * values[:, None]) @ axes.mT, factors, factors @ factors.mT

    def low_root(self, scatter, count, blurred):
        """Return C with C C' equal to a scatter matrix of low rank, or None.

        By Cholesky's method with pivots. It leaves out the blur, and as much of the
        rows at most: with few rows, both are little beside the prior.
        """
        most = LOW_RANK * self.n_features
        if count > most:
            return None
        scaled = scatter / self.deviations / self.deviations[:, None]
        tol = BLUR * max(blurred, np.diagonal(scaled).max())
        root, pivots, rank, _ = dpstrf(scaled, tol=tol, lower=1, overwrite_a=1)
        if rank > most:
            return None
        result = np.empty((self.n_features, rank))
        result[pivots - 1] = np.tril(root)[:, :rank]
        return result * self.deviations[:, None]

    def solved_low(self, root, count):
        """Return the results of `solved` for a scatter matrix C C', given C.

        With A = R^(-1/2) C and the eigenvectors V of A'A, each result is a multiple of
        a matrix of the prior plus a matrix of the rank of C.
        """
        factor, scales = self.scale_factor, self.likeness * self.n_features
        scaled = self.inverse_root @ root
        eigenvalues, vectors = np.linalg.eigh(scaled.T @ scaled)
        there = eigenvalues > np.finfo(float).eps * eigenvalues.max(initial=0.0)
        squares, vectors = eigenvalues[there], vectors[:, there]
        values = np.zeros(self.n_features)
        values[: len(squares)] = squares / factor
        values = inverse_scales(values, count, self.degrees, scales)
        values *= factor
        own, other = values[: len(squares)], values[-1]
        degrees, along = self.degrees + count, scaled @ vectors
        outside, inside = self.inverse_root.T @ along, root @ vectors
        gaps = own - other
        scale = other * self.inverse_scale + (inside * (gaps / squares)) @ inside.T
        rates = degrees * (1 / own - 1 / other) / squares
        precision = degrees / other * self.prior_precision
        precision += (outside * rates) @ outside.T
        rates = np.sqrt(degrees) * (own**-0.5 - other**-0.5) / squares
        factors = np.sqrt(degrees / other) * self.inverse_root.T
        factors += (outside * rates) @ along.T
        return values, scale, factors, precision


def joint_degrees(first, second):
    """Return the degrees of freedom that two Wishart factors leave for their scale."""
    return first * second / (first + second)
