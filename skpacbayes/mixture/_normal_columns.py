"""Independent normal columns, with the default prior of the Gaussian mixtures."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from .._kernels.mixture import column_log_densities, diagonal_log_joint
from ._column_family import SCORED_BY, ColumnFamily
from ._default_priors import BLUR, MEAN_SHAPE, SCALES, inverse_scales
from ._divergences import gamma_divergence, matrix_f_divergence
from ._family import POSITIVE, ExponentialFamily, defines_last
from ._gaussian_families import LOG_2_PI
from ._scorers import KernelScorer, contiguous

DEGREES = 3  # prior degrees of freedom of the precisions of normal columns


class NormalColumns(NamedTuple):
    """Posterior of means and precisions of the standardised columns, (K, d) each."""

    means: np.ndarray
    precision: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    prior_precision: np.ndarray


class Normal(ColumnFamily):
    """Independent normal columns, with a mean and a variance for each component.

    Parameters
    ----------
    mean_precision_prior : float, default=0.05
        Prior mean of the pseudo-observations of a mean.

    Notes
    -----
    The prior is that of :class:`TemperedVBGaussianMixture` with
    ``covariance_type="diag"``, but for the prior precision of the means, which each
    column has for its own; missing values are left out. The moments are about
    the mean of the first rows: components should lie within some million of their
    widths from it.
    """

    continuous = squared = True

    _parameter_constraints: dict = {"mean_precision_prior": [POSITIVE]}

    def __init__(self, mean_precision_prior=0.05):
        self.mean_precision_prior = mean_precision_prior

    def set_prior(self, X, weight):
        """Begin with components as wide as the rows."""
        self.factor = np.ones(self.n_features)

    def write_varying(self, X, out):
        """Write gaps and squares about the centers, (n_others, n_rows)."""
        gaps, squares = out[: self.n_features], out[self.n_features :]
        gaps[:] = X.T
        gaps -= self.centers[:, None]
        np.multiply(gaps, gaps, out=squares)

    def parts(self, X):
        """Gap from the center, and its square."""
        gaps = X - self.centers
        return gaps, gaps**2

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, squares = self.split(statistics)
        sums, squares = sums / self.spreads, squares / self.spreads**2
        if previous is None:
            prior = np.full(counts.shape, float(self.mean_precision_prior))
        else:
            prior = previous.prior_precision
        precision = prior + counts
        means = sums / precision
        averages = sums / np.maximum(counts, np.finfo(float).tiny)
        scatter = np.maximum(squares - sums * averages, 0.0) + BLUR * counts
        scatter += prior * counts / precision * averages**2
        scaled = scatter / self.factor
        values = inverse_scales(scaled, counts, DEGREES, 1)
        shape, scale = 0.5 * (DEGREES + counts), 0.5 * self.factor * values
        rate = MEAN_SHAPE / self.mean_precision_prior
        rate = rate + 0.5 * (shape / scale * means**2 + 1 / precision)
        prior = (MEAN_SHAPE + 0.5) / rate
        return NormalColumns(means, precision, shape, scale, prior)

    def coefficients(self, posterior):
        """Coefficients of one, the gap and its square."""
        means, expected = posterior.means, posterior.shape / posterior.scale
        return (
            self.constants(posterior) - 0.5 * expected * means**2,
            expected * means / self.spreads,
            -0.5 * expected / self.spreads**2,
        )

    def constants(self, posterior):
        """E log q_k at the mean of each column."""
        _, precision, shape, scale, _ = posterior
        constants = digamma(shape) - np.log(scale) - LOG_2_PI - 1 / precision
        return 0.5 * (constants - BLUR * shape / scale) - np.log(self.spreads)

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        general = super().scorer(posterior, log_weights)
        if not defines_last(self, "scorer", "constants", *SCORED_BY):
            return general
        parameters = contiguous(
            log_weights + self.constants(posterior).sum(axis=1),
            self.centers + self.spreads * posterior.means,
            posterior.shape / posterior.scale / self.spreads**2,
        )
        return KernelScorer(
            diagonal_log_joint, parameters, len(log_weights), general.of
        )

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        means, precision, shape, scale, prior = posterior
        expected, top = shape / scale, MEAN_SHAPE + 0.5
        rate = top / prior
        log_ratio = digamma(top) - np.log(rate * precision)
        squares = prior * expected * means**2
        degrees, scaled = 2 * shape.ravel(), (self.factor * expected).reshape(-1, 1, 1)
        precisions = matrix_f_divergence(degrees, scaled, DEGREES, 1)
        divergences = 0.5 * (
            prior / precision - 1 - log_ratio + squares
        ) + gamma_divergence(
            top, rate, MEAN_SHAPE, MEAN_SHAPE / self.mean_precision_prior
        )
        return divergences.sum() + precisions.sum()

    def adapted(self, posterior):
        """Return the family with prior scales that raise the bound."""
        halves = (1 + DEGREES) / (1 + self.factor * posterior.shape / posterior.scale)
        family = copy(self)
        family.factor = np.clip(self.factor * halves.mean(axis=0), *SCALES)
        return family

    def tails(self, posterior):
        """Constants, exponents and squared widths of the Student predictive densities.

        The squared widths are those of the standardised columns.
        """
        shape = posterior.shape
        scale = 2 * posterior.scale * (1 + 1 / posterior.precision)
        constants = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(np.pi * scale)
        return constants - np.log(self.spreads), shape + 0.5, scale

    def marginals(self, posterior):
        """Return the log predictive density of each value, a function of rows."""
        means = posterior.means
        constants, tops, scale = self.tails(posterior)

        def log_marginals(X):
            z = (X - self.centers) / self.spreads
            return constants - tops * np.log1p((z - means) ** 2 / scale)

        return log_marginals

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        if not defines_last(self, "predictive_density", "marginals"):
            return super().predictive_density(posterior)
        constants, tops, scale = self.tails(posterior)
        centers, spreads = self.centers.copy(), self.spreads.copy()
        constants, *parameters = contiguous(constants, posterior.means, scale, tops)
        parameters = constants, centers, spreads, *parameters
        return KernelScorer(column_log_densities, parameters, len(scale)).of

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape = posterior.shape[k]
        variances_ = posterior.scale[k] / generator.gamma(shape, 1, (size, len(shape)))
        variances_ *= 1 + 1 / posterior.precision[k]
        z = posterior.means[k] + np.sqrt(variances_) * generator.normal(
            size=variances_.shape
        )
        return self.centers + self.spreads * z

    def attributes(self, posterior):
        """Means and variances, in the units of the rows."""
        return {
            "means": self.centers + self.spreads * posterior.means,
            "variances": self.spreads**2 * posterior.scale / posterior.shape,
        }


class LogNormal(Normal):
    """Independent log-normal columns: positive numbers whose logarithms are normal.

    Parameters
    ----------
    mean_precision_prior : float, default=0.05
        Prior mean of the pseudo-observations of the mean of the logarithms.

    Notes
    -----
    The prior is that of :class:`Normal` for the logarithms. Densities are those of the
    rows, not of their logarithms, so that `elbo_` may be compared with that of other
    families.
    """

    squared = False

    def check_rows(self, X):
        """Refuse values that are not positive."""
        self.check_values(X, X > 0, "numbers > 0")

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which follows the logarithms."""
        return super().begin(np.log(X), sample_weight)

    def origin(self, X, sample_weight=None):
        """Geometric means of the first rows."""
        return np.exp(self.centers)

    def profile(self, X, sample_weight=None):
        """Standardise the logarithms."""
        return super().profile(np.log(X))

    def write_varying(self, X, out):
        """Write gaps of the logarithms and their squares, (n_others, n_rows)."""
        super().write_varying(np.log(X), out)

    def parts(self, X):
        """Gap of the logarithm from the center, and its square."""
        return super().parts(np.log(X))

    def coefficients(self, posterior):
        """Coefficients of one, the logarithm's gap and its square.

        The logarithm of the slope of log x is minus log x.
        """
        one, linear, square = super().coefficients(posterior)
        return one - self.centers, linear - 1.0, square

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        return ExponentialFamily.scorer(self, posterior, log_weights)

    def marginals(self, posterior):
        """Return the log predictive density of each value, a function of rows."""
        of_logs = super().marginals(posterior)

        def log_marginals(X):
            logs = np.log(X)
            return of_logs(logs) - logs

        return log_marginals

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        return np.exp(super().draw(posterior, k, size, generator))

    def attributes(self, posterior):
        """Medians, in the units of the rows, and variances of the logarithms."""
        found = super().attributes(posterior)
        return {"medians": np.exp(found["means"]), "log_variances": found["variances"]}
