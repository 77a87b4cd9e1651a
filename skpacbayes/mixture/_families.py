"""Families of Gaussian components, each with its prior and its exact update.

A family knows: `update` (its posterior, given tempered statistics, with E log q_k(x)
as a quadratic form in x), `divergence` (from the prior), `log_predictive` and `draw`
(the law of a new row, component by component), and `attributes` (the results under
scikit-learn's names). A posterior is a NamedTuple; its `origins` are the points about
which its next statistics are taken.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ._divergences import gamma_divergence
from ._rows import (
    QuadraticDensity,
    SeparatedDiagonalDensity,
    SeparatedFullDensity,
    product_pairs,
)

LOG_2_PI = np.log(2 * np.pi)
FAR = 1e3  # widths from the origin beyond which a component needs its own
N_VARIANCES = 160  # nodes of the quadrature over a variance


class Posterior(NamedTuple):
    """Law of the parameters of the components; which fields, a family says.

    origins : (1 or n_components, n_features)
    means : (n_components, n_features)
    mean_precision : (n_components,), pseudo-observations of the mean; for families
        with independent means, their variances: (n_components, 1 or n_features)
    degrees : (n_components,), shape of the inverse Gamma or degrees of the Wishart
    scale : the scale of the inverse Gamma, (n_components, 1 or n_features), or the
        inverse scale of the Wishart, (n_components or 1, n_features, n_features)
    constants, precisions : E log q_k(x) as a quadratic form, (n_components,) and
        (n_components, n_features) or (n_components, n_features, n_features)
    factors : of the precisions that are matrices, F F' each; in the shape of scale
    """

    origins: np.ndarray
    means: np.ndarray
    mean_precision: np.ndarray
    degrees: np.ndarray | None = None
    scale: np.ndarray | None = None
    constants: np.ndarray | None = None
    precisions: np.ndarray | None = None
    factors: np.ndarray | None = None


class GaussianFamily:
    """What the families share: moments, densities, expectations.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Prior mean of the means.
    mean_precision : float
        Prior pseudo-observations of each mean.
    """

    full = False
    scale_range = None  # within which the bound chooses the prior scale
    scale_factor = 1.0  # what it has chosen, in units of the first

    def __init__(self, mean, mean_precision):
        self.mean = mean
        self.mean_precision = mean_precision
        self.n_features = len(mean)
        self.pairs = product_pairs(self.n_features, self.full)

    def adapted(self, posterior):
        """Return the family with the prior scale that is best for the posterior.

        The prior spread of the means is not that of the rows of a component: it stays,
        so that their prior precision, in rows, is rescaled too.
        """
        if self.scale_range is None:
            return self
        best = self.scale_factor * self.rescaling(posterior)
        return self.rescaled(np.clip(best, *self.scale_range))

    def spread_of_means(self, posterior):
        """Return a, b: the divergence is -a log r + b r in a factor r of their prior.

        The factor is that of the prior precision of the means.
        """
        gaps = posterior.means - self.mean
        subscripts = "ki,kij,kj->" if self.full else "ki,ki,ki->"
        squares = np.einsum(subscripts, gaps, posterior.precisions, gaps)
        squares += self.n_features * (1 / posterior.mean_precision).sum()
        return 0.5 * gaps.size, 0.5 * self.mean_precision * squares

    def blank(self, n_components, origin):
        """Posterior of `n_components` components that have seen no row."""
        n_columns = 2 + self.n_features + len(self.pairs[0])
        means = np.tile(self.mean, (n_components, 1))
        return self.update(
            np.zeros((n_components, n_columns)),
            Posterior(origin[None], means, np.ones(n_components)),
        )

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        constants, precisions = posterior.constants + log_weights, posterior.precisions
        means, origins = posterior.means, posterior.origins
        if len(origins) == 1:
            return QuadraticDensity(constants, means, precisions, origins[0])
        if not self.full:
            return SeparatedDiagonalDensity(constants, means, precisions, origins)
        factors = np.broadcast_to(posterior.factors, precisions.shape)
        return SeparatedFullDensity(constants, means, factors, origins)

    def expected_log_likelihood(self, posterior, statistics):
        """Sum over components of E log q_k, for rows known by their statistics."""
        counts, gaps, scatter = self.moments(statistics, posterior.origins)
        precisions = posterior.precisions
        gaps = gaps + posterior.origins - posterior.means
        if self.full:
            scatter = scatter + counts[:, None, None] * gaps[:, :, None] * gaps[:, None]
            squares = (precisions * scatter).sum(axis=(1, 2))
        else:
            squares = (precisions * (scatter + counts[:, None] * gaps**2)).sum(axis=1)
        return counts @ posterior.constants - 0.5 * squares.sum()

    def moments(self, statistics, origins):
        """Return counts, mean gaps from the origins, scatter about the means."""
        d = self.n_features
        counts, sums = statistics[:, 0], statistics[:, 1 : 1 + d]
        gaps = sums / np.maximum(counts, np.finfo(float).tiny)[:, None]
        first, second = self.pairs
        scatter = statistics[:, 1 + d : -1] - sums[:, first] * gaps[:, second]
        if not self.full:
            return counts, gaps, np.maximum(scatter, 0)
        matrix = np.empty((len(counts), d, d))
        matrix[:, first, second] = matrix[:, second, first] = scatter
        return counts, gaps, matrix

    def recentred(self, posterior):
        """Return the posterior, with its means for origins if one is far away."""
        precisions = posterior.precisions
        if self.full:
            precisions = np.diagonal(precisions, axis1=1, axis2=2)
        gaps = posterior.means - posterior.origins
        if (precisions * gaps**2).sum(axis=1).max() < FAR**2:
            return posterior
        return posterior._replace(origins=posterior.means)

    def aligned(self, statistics, posterior, gone, kept):
        """Return the row `gone` of the statistics, about the origin of `kept`."""
        row, d = statistics[gone].copy(), self.n_features
        if len(posterior.origins) == 1:
            return row
        count, sums = row[0], row[1 : 1 + d].copy()
        shift = posterior.origins[gone] - posterior.origins[kept]
        first, second = self.pairs
        row[1 : 1 + d] += count * shift
        row[1 + d : -1] += sums[first] * shift[second] + shift[first] * sums[second]
        row[1 + d : -1] += count * shift[first] * shift[second]
        return row


class KnownVariance(GaussianFamily):
    """mu ~ N(m0, s2 / l0), s2 known: the paper's Algorithm 3 when s2 is 1."""

    def __init__(self, mean, mean_precision, variance):
        super().__init__(mean, mean_precision)
        self.variance = variance

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, gaps, _ = self.moments(statistics, previous.origins)
        precision = self.mean_precision + counts
        pull = counts[:, None] * (gaps + previous.origins - self.mean)
        means = self.mean + pull / precision[:, None]
        d, s2 = self.n_features, self.variance
        constants = -0.5 * d * (LOG_2_PI + np.log(s2) + 1 / precision)
        return Posterior(
            previous.origins,
            means,
            precision,
            constants=constants,
            precisions=np.full(means.shape, 1 / s2),
        )

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        ratio = self.mean_precision / posterior.mean_precision
        gaps = ((posterior.means - self.mean) ** 2).sum(axis=1)
        return 0.5 * (
            self.n_features * (ratio - 1 - np.log(ratio)).sum()
            + self.mean_precision / self.variance * gaps.sum()
        )

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        variances = self.variance * (1 + 1 / posterior.mean_precision)
        squares = squared_gaps(X, posterior.means)
        constants = self.n_features * (LOG_2_PI + np.log(variances))
        return -0.5 * (constants + squares / variances)

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        sd = np.sqrt(self.variance * (1 + 1 / posterior.mean_precision[k]))
        return generator.normal(posterior.means[k], sd, (size, self.n_features))

    def attributes(self, posterior):
        """Fitted attributes, under scikit-learn's names."""
        covariances = np.full(len(posterior.means), float(self.variance))
        degrees = np.full(len(covariances), np.inf)
        return diagonal_attributes(posterior, covariances, degrees)


class InverseGammaFamily(GaussianFamily):
    """Diagonal families with an inverse Gamma law on the variances.

    `pooled` components have one variance for all their features, others one each.
    """

    def __init__(self, mean, mean_precision, shape, scale, pooled):
        super().__init__(mean, mean_precision)
        self.shape = shape
        self.scale = np.atleast_1d(scale)
        self.pooled = pooled
        self.size = self.n_features if pooled else 1  # features that share a variance

    def pool(self, values):
        """Sum over the features that share a variance."""
        return values.sum(axis=1, keepdims=True) if self.pooled else values

    def variance_divergence(self, posterior):
        """Divergence of the laws of the variances, summed."""
        degrees = posterior.degrees[:, None]
        return gamma_divergence(degrees, posterior.scale, self.shape, self.scale).sum()

    def completed(self, posterior):
        """Add to the posterior its quadratic form."""
        shape, precisions = posterior.degrees[:, None], np.empty_like(posterior.means)
        precisions[:] = shape / posterior.scale
        log_variances = np.log(posterior.scale) - digamma(shape)
        spread = precisions * self.mean_variances(posterior)
        constants = -0.5 * (LOG_2_PI + log_variances + spread).sum(axis=1)
        return posterior._replace(constants=constants, precisions=precisions)

    def attributes(self, posterior):
        """Fitted attributes, under scikit-learn's names."""
        covariances = posterior.scale / posterior.degrees[:, None]
        if self.pooled:
            covariances = covariances[:, 0]
        return diagonal_attributes(posterior, covariances, 2 * posterior.degrees)


class NormalInverseGamma(InverseGammaFamily):
    """s2 ~ IG(a0, b0), mu given s2 ~ N(m0, s2 / l0): conjugate."""

    def rescaling(self, posterior):
        """Factor of the prior scale that maximises the bound."""
        ratios = self.scale * posterior.degrees[:, None] / posterior.scale
        n_means, spread = self.spread_of_means(posterior)
        return (ratios.size * self.shape + n_means) / (ratios.sum() + spread)

    def rescaled(self, factor):
        """Family whose prior scale is `factor` times the first."""
        family, ratio = copy(self), factor / self.scale_factor
        family.scale = ratio * self.scale
        family.mean_precision = ratio * self.mean_precision
        family.scale_factor = factor
        return family

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, gaps, scatter = self.moments(statistics, previous.origins)
        precision = self.mean_precision + counts
        pull = gaps + previous.origins - self.mean
        means = self.mean + counts[:, None] / precision[:, None] * pull
        shrink = (self.mean_precision * counts / precision)[:, None]
        shape = self.shape + 0.5 * self.size * counts
        scale = self.scale + 0.5 * self.pool(scatter + shrink * pull**2)
        return self.completed(
            Posterior(previous.origins, means, precision, shape, scale)
        )

    def mean_variances(self, posterior):
        """Variances of the means: E log q_k subtracts precision * variance / 2."""
        precisions = posterior.degrees[:, None] / posterior.scale
        return 1 / (precisions * posterior.mean_precision[:, None])

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        ratio = self.mean_precision / posterior.mean_precision
        gaps = (posterior.precisions * (posterior.means - self.mean) ** 2).sum()
        return (
            0.5 * self.n_features * (ratio - 1 - np.log(ratio)).sum()
            + 0.5 * self.mean_precision * gaps
            + self.variance_divergence(posterior)
        )

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        result = np.empty((len(X), len(posterior.means)))
        for k, mean in enumerate(posterior.means):
            shape = posterior.degrees[k]
            scale = 2 * posterior.scale[k] * (1 + 1 / posterior.mean_precision[k])
            top = shape + 0.5 * self.size
            constants = gammaln(top) - gammaln(shape)
            constants = constants - 0.5 * self.size * np.log(np.pi * scale)
            squares = self.pool((X - mean) ** 2) / scale
            result[:, k] = (constants - top * np.log1p(squares)).sum(axis=1)
        return result

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape = (size, len(posterior.scale[k]))
        variances = posterior.scale[k] / generator.gamma(posterior.degrees[k], 1, shape)
        sd = np.sqrt(variances * (1 + 1 / posterior.mean_precision[k]))
        return posterior.means[k] + sd * generator.normal(size=(size, self.n_features))


class IndependentNormalInverseGamma(InverseGammaFamily):
    """mu ~ N(m0, V), s2 ~ IG(a0, b0), independent: Corollary 3.5, second part.

    V = b0 / (a0 l0). The posterior is restricted to products of the same form; an
    update is one sweep from the previous posterior, which increases the bound.
    `mean_precision` of the posterior holds the variances of the means.
    """

    @property
    def prior_variances(self):
        """Prior variances of the means."""
        return self.scale / (self.shape * self.mean_precision)

    def blank(self, n_components, origin):
        """Posterior of `n_components` components that have seen no row."""
        return self.completed(
            Posterior(
                origin[None],
                np.tile(self.mean, (n_components, 1)),
                np.tile(self.prior_variances, (n_components, 1)),
                np.full(n_components, float(self.shape)),
                np.tile(self.scale, (n_components, 1)),
            )
        )

    def update(self, statistics, previous):
        """One sweep: the variances given the means, then the means."""
        counts, gaps, scatter = self.moments(statistics, previous.origins)
        counts = counts[:, None]
        centres = gaps + previous.origins
        squares = (centres - previous.means) ** 2 + previous.mean_precision
        shape = self.shape + 0.5 * self.size * counts
        scale = self.scale + 0.5 * self.pool(scatter + counts * squares)
        evidence = counts * shape / scale
        variances = 1 / (1 / self.prior_variances + evidence)
        means = self.mean + variances * evidence * (centres - self.mean)
        return self.completed(
            Posterior(previous.origins, means, variances, shape[:, 0], scale)
        )

    def mean_variances(self, posterior):
        """Variances of the means."""
        return posterior.mean_precision

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        ratio = np.broadcast_to(
            posterior.mean_precision / self.prior_variances, posterior.means.shape
        )
        gaps = (posterior.means - self.mean) ** 2 / self.prior_variances
        return 0.5 * (
            (ratio - 1 - np.log(ratio)).sum() + gaps.sum()
        ) + self.variance_divergence(posterior)

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components).

        The mean integrates out; the variance by the trapezoidal rule on its
        logarithm, whose error is below 1e-8 of the density.
        """
        result = np.empty((len(X), len(posterior.means)))
        for k, mean in enumerate(posterior.means):
            shape, squares = posterior.degrees[k], self.pool((X - mean) ** 2)
            root = np.sqrt(shape)
            low = -np.log(shape + 12 * root + 40)
            high = -np.log(shape) + 12 / root + 40 / shape
            nodes, step = np.linspace(low, high, N_VARIANCES, retstep=True)
            log_law = -shape * nodes - np.exp(-nodes) - gammaln(shape) + np.log(step)
            total = np.full(squares.shape, -np.inf)
            for node, log_mass in zip(nodes, log_law, strict=True):
                variances = (
                    posterior.mean_precision[k] + np.exp(node) * posterior.scale[k]
                )
                term = log_mass - 0.5 * (
                    self.size * (LOG_2_PI + np.log(variances)) + squares / variances
                )
                np.logaddexp(total, term, out=total)
            result[:, k] = total.sum(axis=1)
        return result

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape = (size, len(posterior.scale[k]))
        variances = posterior.scale[k] / generator.gamma(posterior.degrees[k], 1, shape)
        sd = np.sqrt(variances + posterior.mean_precision[k])
        return posterior.means[k] + sd * generator.normal(size=(size, self.n_features))

    def attributes(self, posterior):
        """Fitted attributes, under scikit-learn's names."""
        attributes = super().attributes(posterior)
        covariances = posterior.scale / posterior.degrees[:, None]
        precision = covariances / posterior.mean_precision
        attributes["mean_precision_"] = precision[:, 0] if self.pooled else precision
        return attributes


def diagonal_attributes(posterior, covariances, degrees):
    """Fitted attributes of the families without covariances between features."""
    return {
        "means_": posterior.means,
        "mean_precision_": posterior.mean_precision,
        "degrees_of_freedom_": degrees,
        "covariances_": covariances,
        "precisions_": 1 / covariances,
        "precisions_cholesky_": 1 / np.sqrt(covariances),
    }


def squared_gaps(X, means):
    """Squared distances of the rows to the means, without cancellation."""
    return np.column_stack([((X - mean) ** 2).sum(axis=1) for mean in means])
