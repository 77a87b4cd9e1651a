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
from math import exp, lgamma, log

import numpy as np
from scipy.special import digamma

from .._kernels import matrix_f
from ._diagonal_families import NormalInverseGamma
from ._divergences import matrix_f_divergence
from ._gaussian_families import Posterior

MEAN_SHAPE = 0.5  # of the Gamma distribution of the prior precision of a mean
LIKENESS_STEP, LARGEST_LIKENESS = 4.0, 256.0
BLUR = 1e-12  # variance added to each row, as a share of that of the feature
SCALES = 1e-12, 1.0  # smallest and largest `scale_factor`


def inverse_scales(scatter, counts, prior_degrees, scale_degrees):
    """Return E B + S where B and the precision L are jointly optimal, as eigenvalues.

    Parameters
    ----------
    scatter : ndarray
        Eigenvalues of the scatter matrix S in units of the prior scale R.
    counts : ndarray
        Tempered numbers of rows, in a shape that broadcasts.
    prior_degrees : float
        Degrees of freedom of the precision given B.
    scale_degrees : float
        Degrees of freedom of B.
    """
    rows, values = np.empty((2, *scatter.shape))
    rows[...] = counts
    degrees = float(prior_degrees), float(scale_degrees)
    matrix_f.inverse_scales(scatter.ravel(), rows.ravel(), *degrees, values.ravel())
    return values


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
        gaps, constants = posterior.means - self.mean, np.empty(len(posterior.means))
        precisions, expected = posterior.precisions, np.empty_like(constants)
        precisions = precisions if self.full else precisions[:, None]
        prior = MEAN_SHAPE, float(MEAN_SHAPE / self.mean_precision)
        given = precisions, self.blur, posterior.mean_precision, expected_log
        matrix_f.complete(gaps, *given, *prior, constants, expected)
        return posterior._replace(constants=constants, prior_precision=expected)

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
        """Return the divergences of the means and of their prior precisions l.

        The distribution of l is the best one given the others, as after an update:
        most terms cancel.
        """
        d, shape = self.n_features, MEAN_SHAPE + 0.5 * self.n_features
        rate = MEAN_SHAPE / self.mean_precision
        constant = lgamma(MEAN_SHAPE) - MEAN_SHAPE * log(rate) - 0.5 * d
        constant += shape * log(shape) - lgamma(shape)
        logs = 0.5 * d * np.log(posterior.mean_precision)
        return logs - shape * np.log(posterior.prior_precision) + constant

    def precision_divergences(self, posterior):
        """Return the divergences of the precisions L; a single one if L is shared."""
        degrees, spectrum = self.wishart_degrees(posterior), self.scaled(posterior)
        scales = self.likeness * spectrum.shape[-1]
        return matrix_f_divergence(degrees, spectrum, self.degrees, scales)

    def scaled(self, posterior):
        """Return eigenvalues of R E L, (n_components or 1, n_scales, size)."""
        return self.scale_factor * posterior.spectrum

    def adapted(self, posterior):
        """Return the family with the scale R that maximises the bound.

        At log R = u the derivative is zero where the mean of the shares
        R E L / (1 + R E L) is nu / (m + nu).
        """
        spectrum, m = posterior.spectrum, self.likeness * posterior.spectrum.shape[-1]
        target = self.degrees / (self.degrees + m) * spectrum.size
        u = matrix_f.best_log_factor(spectrum.ravel(), target, log(self.scale_factor))
        return self.rescaled(exp(u))

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
        counts, means, precision, scatter = self.shrunk(statistics, previous)
        scatter += counts[:, None] * self.blur
        scaled = self.pool(scatter) / (self.scale_factor * self.scale)
        rows = self.size * counts[:, None]
        values = inverse_scales(scaled, rows, self.degrees, self.likeness)
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
