"""Gaussian components without covariances: variances known, or with a prior."""

import numpy as np
from scipy.special import digamma, gammaln

from ._divergences import gamma_divergence
from ._family import Family
from ._gaussian_families import LOG_2_PI, GaussianFamily, Posterior
from ._scorers import (
    DiagonalScorer,
    FullScorer,
    IndependentStudents,
    StudentScorer,
)

N_VARIANCES = 160  # nodes of the quadrature over a variance


class KnownVariance(GaussianFamily):
    """mu ~ N(m0, s2 / l0), s2 known: the paper's Algorithm 3 when s2 is 1."""

    covariance_type = "known"

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

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components."""
        variances = self.variance * (1 + 1 / posterior.mean_precision)
        precisions = np.tile(1 / variances[:, None], (1, self.n_features))
        constants = -0.5 * self.n_features * (LOG_2_PI + np.log(variances))
        return DiagonalScorer(constants, posterior.means, precisions)

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
    """Diagonal families with an inverse Gamma distribution on the variances.

    If `pooled`, a component has one variance for all features, otherwise one for each.
    """

    def __init__(self, mean, mean_precision, shape, scale, pooled):
        super().__init__(mean, mean_precision)
        self.shape = shape
        self.scale = np.atleast_1d(scale)
        self.pooled = pooled
        self.size = self.n_features if pooled else 1  # features per variance

    @property
    def covariance_type(self):
        """Name of the type, a parameter of the estimator."""
        return "spherical" if self.pooled else "diag"

    def pool(self, values):
        """Return the sums over the features that share a variance."""
        return values.sum(axis=1, keepdims=True) if self.pooled else values

    def variance_divergence(self, posterior):
        """Return the divergence of the variances, summed over components."""
        degrees = posterior.degrees[:, None]
        return gamma_divergence(degrees, posterior.scale, self.shape, self.scale).sum()

    def completed(self, posterior):
        """Return the posterior with E log q_k(x) as a quadratic form."""
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

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, means, precision, scatter = self.shrunk(statistics, previous)
        shape = self.shape + 0.5 * self.size * counts
        scale = self.scale + 0.5 * self.pool(scatter)
        return self.completed(
            Posterior(previous.origins, means, precision, shape, scale)
        )

    def mean_variances(self, posterior):
        """Return the variances of the means: E log q_k has - precision * var / 2."""
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

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components."""
        shapes = posterior.degrees
        spread = (1 + 1 / posterior.mean_precision)[:, None]
        scales = np.empty_like(posterior.means)
        scales[:] = 2 * posterior.scale * spread
        tops = shapes + 0.5 * self.size
        constants = 0.5 * np.log(np.pi * scales).sum(axis=1)
        distributions = self.n_features // self.size
        constants = distributions * (gammaln(tops) - gammaln(shapes)) - constants
        return StudentScorer(constants, posterior.means, scales, tops, self.pooled)

    def conditional_scorer(self, posterior):
        """Return what writes log predictive densities and integrates missing values."""
        scorer = self.predictive_scorer(posterior)
        constants, means, scales, tops = (each.T for each in scorer.parameters)
        if not self.pooled:
            return IndependentStudents(means, scales, tops)
        factors = np.eye(self.n_features) / np.sqrt(scales)[:, None]
        return FullScorer(constants, means, factors, np.ones(len(means)), tops)

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
        """Return the posterior of `n_components` components before any data."""
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
        centers = gaps + previous.origins
        squares = (centers - previous.means) ** 2 + previous.mean_precision
        shape = self.shape + 0.5 * self.size * counts
        scale = self.scale + 0.5 * self.pool(scatter + counts * squares)
        evidence = counts * shape / scale
        variances = 1 / (1 / self.prior_variances + evidence)
        means = self.mean + variances * evidence * (centers - self.mean)
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

        The mean is integrated out exactly, the log variance by the trapezoidal rule,
        with a relative error below 1e-8.
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

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components."""
        return Family.predictive_scorer(self, posterior)

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
    """Return the fitted attributes of families without covariances."""
    return {
        "means_": posterior.means,
        "mean_precision_": posterior.mean_precision,
        "degrees_of_freedom_": degrees,
        "covariances_": covariances,
        "precisions_": 1 / covariances,
        "precisions_cholesky_": 1 / np.sqrt(covariances),
    }
