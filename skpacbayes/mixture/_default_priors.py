"""The default prior of Gaussian components, whose scale is estimated; diagonal ones.

The precision L of a component is Wishart with `degrees` degrees of freedom and an
inverse scale B that is Wishart too, of scale R: a matrix-F distribution [1]_. Its tails
are polynomial in every direction, so that a component may be thin in some directions
and not in others. The more degrees of freedom B has (the `likeness` of the components),
the more the components are similar a priori; the bound chooses it, and R. The mean is
N(m0, (l L)^-1) given L and l, and l has a Gamma distribution. B and l are integrated
out by factors of their own in the product rho: J is still a lower bound, with all
constants. Components with full and tied covariances are in `_matrix_f`.

.. [1] J. Mulder and L. R. Pericchi (2018). The matrix-F prior for estimating and
   testing covariance matrices. Bayesian Analysis 13, 1193-1214.
"""

from copy import copy
from math import lgamma, log

import numpy as np
from scipy.special import digamma, expit

from ._diagonal_families import NormalInverseGamma
from ._divergences import matrix_f_divergence
from ._gaussian_families import LOG_2_PI, TINY, Posterior

MEAN_SHAPE = 0.5  # of the Gamma distribution of the prior precision of a mean
NEWTON_STEPS = 30
NEWTON_STEP = 1e-3  # size of the last step: the error is about its square
LIKENESS_STEP, LARGEST_LIKENESS = 4.0, 256.0
BLUR = 1e-12  # variance added to each row, as a share of that of the feature
SCALES = 1e-12, 1.0  # smallest and largest `scale_factor`


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
    linear = scatter + (counts - scale_degrees)
    product = (2 * (scale_degrees + prior_degrees)) * scatter
    root = np.sqrt(linear**2 + 2 * product) + np.abs(linear)
    below = product / np.maximum(root, TINY)
    return np.maximum(np.where(linear > 0, below, 0.5 * root), 1e-30)


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
        precision, d, diagonal = posterior.mean_precision, self.n_features, posterior.precisions
        squares = self.squares(posterior.means - self.mean, diagonal)
        if self.full:
            diagonal = diagonal.diagonal(axis1=1, axis2=2)
        lost = d * LOG_2_PI + d / precision + diagonal @ self.blur
        return posterior._replace(
            constants=0.5 * (expected_log - lost),
            prior_precision=(MEAN_SHAPE + 0.5 * d) / self.rates(precision, squares),
        )

    def rates(self, precision, squares):
        """Return the optimal rates of the distributions of the prior precisions l."""
        own = MEAN_SHAPE / self.mean_precision
        return own + 0.5 * (squares + self.n_features / precision)

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
        """Return `mean_divergences`, given the squared lengths of the means.

        The expectations of log l in both of their terms cancel.
        """
        d, expected = self.n_features, posterior.prior_precision
        precision, shape = posterior.mean_precision, MEAN_SHAPE + 0.5 * d
        own_rate = MEAN_SHAPE / self.mean_precision
        constant = lgamma(MEAN_SHAPE) - MEAN_SHAPE * log(own_rate) - 0.5 * d
        constant += shape * (log(shape) - 1) - lgamma(shape)
        logs = 0.5 * d * np.log(precision) - shape * np.log(expected)
        return expected * self.rates(precision, squares) + logs + constant

    def precision_divergences(self, posterior):
        """Return the divergences of the precisions L; a single one if L is shared."""
        logs, size = self.log_determinants(posterior), posterior.spectrum.shape[-1]
        degrees = self.wishart_degrees(posterior)[:, None]
        scales = self.likeness * size
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
        log_spectrum = np.log(posterior.spectrum).ravel()
        target = self.degrees / (
            self.degrees + self.likeness * posterior.spectrum.shape[-1]
        )
        target, u = target * log_spectrum.size, np.log(self.scale_factor)
        for _ in range(NEWTON_STEPS):
            shares = expit(u + log_spectrum)
            step = (target - shares.sum()) / (shares @ (1 - shares))
            u += min(max(step, -2.0), 2.0)
            if abs(step) < NEWTON_STEP:
                break
        return self.rescaled(np.exp(u))

    def rescaled(self, factor):
        """Return the family with another scale R."""
        family = copy(self)
        if not self.shape_follows:
            factor = min(max(factor, SCALES[0]), SCALES[1])
        family.scale_factor = factor
        return family

    @property
    def prior_choice(self):
        """The likeness, in which the alternatives differ."""
        return self.likeness

    def alternatives(self):
        """Return families whose components are more, or less, similar a priori.

        The least likeness is tried from any other: the bound may have a maximum there
        and one at large likenesses, with smaller values in between.
        """
        own, least = self.likeness, 1.0
        near = LIKENESS_STEP * own, own / LIKENESS_STEP
        tried = [each for each in near if least <= each <= LARGEST_LIKENESS]
        tried += [least] * (own > LIKENESS_STEP)
        return [self.of_likeness(likeness) for likeness in tried]

    def of_likeness(self, likeness):
        """Return the family with another likeness, and the same prior mean of B."""
        family = copy(self)
        family.likeness = likeness
        return family.rescaled(self.scale_factor * self.likeness / likeness)

    def chosen_as(self, other):
        """Return the family with the likeness of another one."""
        return self.of_likeness(other.likeness)


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
