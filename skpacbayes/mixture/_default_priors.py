"""Gaussian components under the default prior, whose scale is estimated.

The precision L of a component is Wishart with `degrees` degrees of freedom and an
inverse scale B that is Wishart too, of scale R: a matrix-F distribution [1]_. Its tails
are polynomial in every direction, so that a component may be thin in some directions
and not in others. The more degrees of freedom B has (the `likeness` of the components),
the more the components are similar a priori; the bound chooses it, and R. The mean is
N(m0, (l L)^-1) given L and l, and l has a Gamma distribution. B and l are integrated
out by factors of their own in the product rho: J is still a lower bound, with all
constants.

A number of components is compared with others at the best R of each. If the shape of R
were that of the covariance of all rows, it would suit one component only: where groups
are apart, several components would pay for a wrong prior. A Wishart factor of R in rho
would be so far from independent of the B that it costs more than it gains.

.. [1] J. Mulder and L. R. Pericchi (2018). The matrix-F prior for estimating and
   testing covariance matrices. Bayesian Analysis 13, 1193-1214.
"""

from copy import copy

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.special import digamma, expit

from ._diagonal_families import NormalInverseGamma
from ._divergences import (
    gamma_divergence,
    matrix_f_divergence,
    wishart_log_determinant,
)
from ._gaussian_families import LOG_2_PI, Posterior
from ._wishart import NormalWishart

MEAN_SHAPE = 0.5  # of the Gamma distribution of the prior precision of a mean
NEWTON_STEPS = 30
LIKENESS_STEP, LARGEST_LIKENESS = 4.0, 256.0
BLUR = 1e-12  # variance added to each row, as a share of that of the feature
SCALES = 1e-12, 1.0  # smallest and largest `scale_factor`
MANY_COLUMNS = 40  # from which scatter matrices of low rank have a faster update,
LOW_RANK = 0.75  # if their rank and tempered rows are at most this share of them
SHAPE_DEGREES = 1.0  # of the penalty for the shape of the prior scale, per feature
STEEPEST = 1e6  # for which the inverse prior correlations are at most this on average


def half_scales(scatter, counts, prior_degrees, scale_degrees):
    """Return E B where B and the precision L are jointly optimal, as eigenvalues.

    Parameters
    ----------
    scatter : ndarray
        Eigenvalues of the scatter matrix in units of the prior scale R.
    counts : ndarray
        Tempered numbers of rows, in a shape that broadcasts.
    prior_degrees : float
        Degrees of freedom of the precision given B.
    scale_degrees : float
        Degrees of freedom of B.

    Returns
    -------
    scales : ndarray like scatter
        The positive root of b^2 + (s + N - m) b = (m + nu) s, or for no row b = m:
        where E B = (m + nu) (R^-1 + E L)^-1 and E L = (nu + N) (E B + S)^-1 hold at
        once.
    """
    linear = scatter + counts - scale_degrees
    product = (scale_degrees + prior_degrees) * scatter
    root = np.sqrt(linear**2 + 4 * product)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = 2 * product / (linear + root)
    return np.maximum(np.where(linear > 0, below, 0.5 * (root - linear)), 1e-30)


class FollowsTheData:
    """Base class of both default families: the distribution of l, the scale R of B.

    Parameters of the families
    --------------------------
    mean : ndarray of shape (n_features,)
        Prior mean of the means.
    mean_precision : float
        Prior mean of l.
    degrees : float
        Degrees of freedom of the precisions given B.
    scale : ndarray
        The scale R at which the ascent begins, in units of which `scale_factor`
        counts: a matrix, or a variance for each feature or for all.
    blur : ndarray of shape (n_features,)
        Variance added to each row, without which the density of rows that are equal
        in a feature would be unbounded.
    """

    scale_factor = 1.0
    shape_follows = False  # whether the shape of R is estimated too
    likeness = 1.0  # degrees of freedom of B, in units of its dimension

    def initial(self, n_components, origin):
        """Return a posterior to start `update`, which reads its prior precision."""
        return Posterior(
            origin[None],
            np.tile(self.mean, (n_components, 1)),
            np.ones(n_components),
            prior_precision=np.full(n_components, float(self.mean_precision)),
        )

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components before any data."""
        nothing = np.zeros((n_components, self.n_columns))
        return self.update(nothing, self.initial(n_components, origin))

    def completed(self, posterior, expected_log):
        """Add the quadratic form and the distribution of l, given E log |L|."""
        means, precision, d = posterior.means, posterior.mean_precision, self.n_features
        gaps, diagonal = means - self.mean, posterior.precisions
        squares = self.squares(gaps, posterior.precisions)
        if self.full:
            diagonal = np.diagonal(diagonal, axis1=1, axis2=2)
        lost = d * LOG_2_PI + d / precision + (diagonal * self.blur).sum(axis=1)
        rate = MEAN_SHAPE / self.mean_precision + 0.5 * (squares + d / precision)
        return posterior._replace(
            constants=0.5 * (expected_log - lost),
            prior_precision=(MEAN_SHAPE + 0.5 * d) / rate,
        )

    def squares(self, gaps, precisions):
        """Return the squared Mahalanobis lengths of the gaps."""
        return np.einsum(
            "ki,kij,kj->k" if self.full else "ki,ki,ki->k", gaps, precisions, gaps
        )

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        precisions = self.precision_divergences(posterior)
        return self.mean_divergences(posterior).sum() + precisions.sum()

    def divergences(self, posterior):
        """Kullback-Leibler divergences from the prior, one for each component."""
        precisions = self.precision_divergences(posterior)
        return self.mean_divergences(posterior) + precisions

    def mean_divergences(self, posterior):
        """Return the divergences of the means and of their prior precisions l."""
        squares = self.squares(posterior.means - self.mean, posterior.precisions)
        return self.divergences_of_means(posterior, squares)

    def divergences_of_means(self, posterior, squares):
        """Return `mean_divergences`, given the squared lengths of the means."""
        d, expected = self.n_features, posterior.prior_precision
        shape = MEAN_SHAPE + 0.5 * d
        rate = shape / expected
        ratio = expected / posterior.mean_precision
        log_ratio = digamma(shape) - np.log(rate * posterior.mean_precision)
        means = 0.5 * (d * (ratio - 1 - log_ratio) + expected * squares)
        distributions = gamma_divergence(
            shape, rate, MEAN_SHAPE, MEAN_SHAPE / self.mean_precision
        )
        return means + distributions

    def precision_divergences(self, posterior):
        """Return the divergences of the precisions L; a single one if L is shared."""
        logs, size = self.log_determinants(posterior), posterior.spectrum.shape[-1]
        degrees = self.wishart_degrees(posterior)[:, None]
        degrees, scales = np.broadcast_to(degrees, logs[0].shape), self.likeness * size
        each = matrix_f_divergence(degrees, size, *logs, self.degrees, scales)
        return each.sum(axis=1)

    def log_determinants(self, posterior):
        """Return log |R E L| and log |I + R E L|, (n_components or 1, n_scales)."""
        scaled = self.scale_factor * posterior.spectrum
        return np.log(scaled).sum(axis=2), np.log1p(scaled).sum(axis=2)

    def adapted(self, posterior):
        """Return the family with the scale R that maximises the bound.

        At log R = u the derivative is zero where the mean of the shares
        R E L / (1 + R E L) is nu / (m + nu); Newton's method, safeguarded.
        """
        log_spectrum = np.log(posterior.spectrum)
        target = self.degrees / (
            self.degrees + self.likeness * posterior.spectrum.shape[-1]
        )
        target, u = target * log_spectrum.size, np.log(self.scale_factor)
        for _ in range(NEWTON_STEPS):
            shares = expit(u + log_spectrum)
            step = (target - shares.sum()) / (shares * (1 - shares)).sum()
            u += min(max(step, -2.0), 2.0)
            if abs(step) < 1e-6:
                break
        return self.rescaled(np.exp(u))

    def rescaled(self, factor):
        """Return the family with another scale R."""
        family = copy(self)
        if not self.shape_follows:
            factor = min(max(factor, SCALES[0]), SCALES[1])
        family.scale_factor = factor
        return family

    def alternatives(self):
        """Return families whose components are more, or less, similar a priori."""
        families = []
        for likeness in (LIKENESS_STEP * self.likeness, self.likeness / LIKENESS_STEP):
            if 1 <= likeness <= LARGEST_LIKENESS:
                family = copy(self)
                family.likeness = likeness
                families.append(
                    family.rescaled(self.scale_factor * self.likeness / likeness)
                )
        return families


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
        self.prior_precision = self.inverse_root.T @ self.inverse_root
        steepness = np.diagonal(self.prior_precision) @ self.deviations**2
        self.steepness = steepness / self.n_features

    @property
    def prior_penalty(self):
        """Penalty for the shape S, whose squares have the sum `n_features`: -c log |S|.

        It is zero for the identity, and else positive.
        """
        return -SHAPE_DEGREES * self.n_features * np.log(np.diag(self.shape)).sum()

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, plus its `prior_penalty`."""
        return super().divergence(posterior) + self.prior_penalty

    def log_determinants(self, posterior):
        """Return log |R E L| and log |I + R E L|, (n_components or 1, 1).

        The posterior may have been computed with a scale of another shape.
        """
        if (posterior.log_units == self.log_root).all():  # it has not
            return super().log_determinants(posterior)
        scaled, sums = self.in_units_of_scale(posterior)
        logs = 2 * np.linalg.slogdet(scaled)[1], np.linalg.slogdet(sums)[1]
        return tuple(each[:, None] for each in logs)

    def in_units_of_scale(self, posterior):
        """Return factors of the E L, and the sums I + E L, in units of R^-1."""
        scaled = np.sqrt(self.scale_factor) * (self.root.T @ posterior.factors)
        return scaled, np.eye(self.n_features) + scaled @ scaled.mT

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
        _, sums = self.in_units_of_scale(posterior)
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

    def numbers(self, statistics):
        """Return the numbers of rows, which are added to the degrees of freedom."""
        return statistics[:, 0]

    def wishart_degrees(self, posterior):
        """Degrees of freedom of the precisions."""
        return posterior.degrees

    def update(self, statistics, previous):
        """Posterior given tempered statistics and the last distribution of l."""
        counts, means, precision, scatter, shrink, pull = self.shrunk(
            statistics, previous
        )
        scatter = scatter + shrink[:, None, None] * pull[:, :, None] * pull[:, None]
        blurred = counts
        counts = self.numbers(statistics)
        if self.tied:
            scatter, blurred = scatter.sum(0, keepdims=True), blurred.sum(keepdims=True)
            counts = counts.sum(keepdims=True)
        degrees, d = self.degrees + counts, self.n_features
        values, scale, factors, precisions = self.solved(scatter, counts, blurred)
        log_scale = -2 * self.log_root - np.log(values).sum(axis=1)
        if self.tied:
            precisions = np.broadcast_to(precisions, (len(means), d, d))
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
        return self.completed(posterior, wishart_log_determinant(degrees, log_scale, d))

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
        may_be_low = many and self.steepness <= STEEPEST * self.scale_factor
        roots = [
            self.low_root(*each) if may_be_low else None
            for each in zip(scatter, counts, blurred, strict=True)
        ]
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
        eigenvalues, vectors = np.linalg.eigh(scaled)
        factors = self.inverse_root.T @ vectors
        least = (self.blur[:, None] * factors**2).sum(axis=1)  # of the blur alone
        least *= blurred[:, None]  # it may be lost by rounding
        eigenvalues = np.maximum(eigenvalues, least) / factor
        halves = half_scales(eigenvalues, counts[:, None], self.degrees, scales)
        values = factor * (halves + eigenvalues)
        axes = self.root @ vectors
        factors *= np.sqrt((self.degrees + counts)[:, None] / values)[:, None]
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
        values += half_scales(values, count, self.degrees, scales)
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


class NormalF(FollowsTheData, NormalInverseGamma):
    """Diagonal covariances, or one variance for all features (`pooled`)."""

    def __init__(self, mean, mean_precision, degrees, scale, blur, pooled):
        super().__init__(mean, mean_precision, 0.5 * degrees, scale, pooled)
        self.degrees = degrees
        self.blur = blur

    def other_types(self, degrees=None):
        """Return the family of a variance for each feature, if this one pools them."""
        spread = self.blur / BLUR
        prior = self.mean, self.mean_precision, self.degrees
        return [NormalF(*prior, spread, self.blur, pooled=False)] if self.pooled else []

    def wishart_degrees(self, posterior):
        """Degrees of freedom of the precisions: twice the shapes."""
        return 2 * posterior.degrees

    def update(self, statistics, previous):
        """Posterior given tempered statistics and the last distribution of l."""
        counts, means, precision, scatter, shrink, pull = self.shrunk(
            statistics, previous
        )
        scatter = scatter + shrink[:, None] * pull**2 + counts[:, None] * self.blur
        scaled = self.pool(scatter) / (self.scale_factor * self.scale)
        rows = self.size * counts[:, None]
        values = scaled + half_scales(scaled, rows, self.degrees, self.likeness)
        shape = 0.5 * (self.degrees + rows)
        scale = 0.5 * self.scale_factor * self.scale * values
        precisions = np.empty_like(means)
        precisions[:] = shape / scale
        log_variances = np.empty_like(means)
        log_variances[:] = np.log(scale) - digamma(shape)
        posterior = Posterior(
            previous.origins,
            means,
            precision,
            shape[:, 0],
            scale,
            precisions=precisions,
            spectrum=(shape / scale * self.scale)[:, :, None],
        )
        return self.completed(posterior, -log_variances.sum(axis=1))
