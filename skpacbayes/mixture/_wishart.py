"""Gaussian components with full covariances, separate or shared (tied)."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from ._divergences import wishart_log_determinant, wishart_log_normalizer
from ._gaussian_families import LOG_2_PI, GaussianFamily, Posterior
from ._scorers import FullScorer


class NormalWishart(GaussianFamily):
    """Lambda ~ W(W0, nu0), mu given Lambda ~ N(m0, (l0 Lambda)^-1): conjugate.

    A `tied` mixture has one Lambda for all its components.
    """

    full = True
    allows_missing = completes_rows = True
    n_losses = 2

    def __init__(self, mean, mean_precision, degrees, inverse_scale, tied):
        super().__init__(mean, mean_precision)
        self.degrees = degrees
        self.inverse_scale = inverse_scale
        self.tied = self.shared = tied
        self.log_normalizer = wishart_log_normalizer(
            degrees, -np.linalg.slogdet(inverse_scale)[1], self.n_features
        )

    @property
    def covariance_type(self):
        """Name of the type, a parameter of the estimator."""
        return "tied" if self.tied else "full"

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, means, precision, scatter = self.shrunk(statistics, previous)
        if self.tied:
            counts, scatter = counts.sum(keepdims=True), scatter.sum(0, keepdims=True)
        degrees, scale = self.degrees + counts, self.inverse_scale + scatter
        inverses = np.linalg.inv(np.linalg.cholesky(scale))
        factors = np.sqrt(degrees)[:, None, None] * inverses.mT
        d, shape = self.n_features, (len(means), *self.inverse_scale.shape)
        log_determinant = wishart_log_determinant(
            degrees, log_determinants(inverses), d
        )
        return Posterior(
            previous.origins,
            means,
            precision,
            degrees,
            scale,
            constants=0.5 * (log_determinant - d * LOG_2_PI - d / precision),
            precisions=np.broadcast_to(factors @ factors.mT, shape),
            factors=factors,
            lost=self.losses(statistics),
        )

    def losses(self, statistics):
        """Return the columns of information lost to missing values, or None."""
        if self.n_losses == 0:
            return None
        return statistics[:, -1 - self.n_losses : -1]

    def observed_information(self, posterior):
        """Return the posterior with the information of the observed values only.

        The ascent treats completed rows as observed, as if the missing values did not
        depend on the parameters. With the missing values integrated out given
        the parameters, the bound has its maximum near the same expected precision,
        where the means count the observed values, and the scales the observed pairs of
        values, up to a relative error of n_features / degrees.
        """
        if posterior.lost is None:
            return posterior
        of_means, of_scales = posterior.lost.T
        if self.tied:
            of_scales = of_scales.sum(keepdims=True)
        degrees = posterior.degrees - of_scales
        scale = posterior.scale * (degrees / posterior.degrees)[:, None, None]
        return posterior._replace(
            mean_precision=posterior.mean_precision - of_means,
            degrees=degrees,
            scale=scale,
        )

    def missing_gains(self, posterior):
        """Return the rise of the bound if missing values are integrated out.

        They are integrated out given the parameters, to first order. As in BIC, a
        parameter costs half the logarithm of its number of observed rows, which is
        smaller.
        """
        if posterior.lost is None or not posterior.lost.any():
            return np.zeros(len(posterior.means))
        information, d = self.observed_information(posterior), self.n_features
        means = np.log(posterior.mean_precision / information.mean_precision)
        scales = np.log(posterior.degrees / information.degrees)
        scales = scales / len(means) if self.tied else scales
        return 0.5 * (d * means + 0.5 * d * (d + 1) * scales)

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        super().check_statistics(statistics, posterior)
        losses, slack = self.losses(statistics), 1e-9 * (1 + statistics[:, :1])
        if (losses < -slack).any() or (losses > statistics[:, :1] + slack).any():
            raise ValueError(
                "The numbers of missing values and pairs in statistics, in rows, must "
                "be between 0 and the counts."
            )

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        ratio = self.mean_precision / posterior.mean_precision
        gaps = posterior.means - self.mean
        squares = np.einsum("ki,kij,kj->", gaps, posterior.precisions, gaps)
        return (
            0.5 * self.n_features * (ratio - 1 - np.log(ratio)).sum()
            + 0.5 * self.mean_precision * squares
            + self.wishart_divergence(posterior).sum()
        )

    def wishart_divergence(self, posterior):
        """Return the Kullback-Leibler divergences of the precisions from the prior."""
        degrees, d = posterior.degrees, self.n_features
        scaled = posterior.factors / np.sqrt(degrees)[:, None, None]
        log_scale = log_determinants(scaled)
        traces = (scaled * (self.inverse_scale @ scaled)).sum(axis=(1, 2))
        return (
            self.log_normalizer
            - wishart_log_normalizer(degrees, log_scale, d)
            + 0.5
            * (degrees - self.degrees)
            * wishart_log_determinant(degrees, log_scale, d)
            + 0.5 * degrees * (traces - d)
        )

    def of(self, posterior, k):
        """Return degrees and root of the scale of component k's predictive density."""
        posterior, k_scale = self.observed_information(posterior), 0 if self.tied else k
        degrees = posterior.degrees[k_scale] + 1 - self.n_features
        spread = 1 + 1 / posterior.mean_precision[k]
        return degrees, triangular_roots(posterior, spread)[k_scale]

    def inverse_factors(self, posterior):
        """Return the inverse triangular factors of the scales, for each component."""
        factors = triangular_roots(posterior)
        identity = np.eye(self.n_features)
        inverses = [solve_triangular(each, identity, lower=True) for each in factors]
        shape = (len(posterior.means), *identity.shape)
        return np.broadcast_to(np.array(inverses), shape)

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        return FullScorer(
            posterior.constants + log_weights,
            posterior.means,
            self.inverse_factors(posterior),
            np.broadcast_to(posterior.degrees, len(log_weights)),
            np.zeros(len(log_weights)),
        )

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities: Student distributions."""
        posterior = self.observed_information(posterior)
        d, factors = self.n_features, self.inverse_factors(posterior)
        spread = 1 + 1 / posterior.mean_precision
        degrees = np.broadcast_to(posterior.degrees + 1 - d, len(spread))
        log_roots = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        constants = gammaln(0.5 * (degrees + d)) - gammaln(0.5 * degrees)
        constants += log_roots - 0.5 * d * np.log(np.pi * spread)
        tops = 0.5 * (degrees + d)
        return FullScorer(constants, posterior.means, factors, 1 / spread, tops)

    def conditional_scorer(self, posterior):
        """Return `predictive_scorer`, which integrates missing values out."""
        return self.predictive_scorer(posterior)

    def draw(self, posterior, k, size, generator):
        """Return rows drawn from component k."""
        degrees, factor = self.of(posterior, k)
        normal = generator.normal(size=(size, self.n_features))
        radius = np.sqrt(generator.chisquare(degrees, (size, 1)))
        return posterior.means[k] + normal @ factor.T / radius

    def attributes(self, posterior):
        """Return the fitted attributes, with scikit-learn's names."""
        degrees = posterior.degrees[:, None, None]
        covariances, roots = (
            posterior.scale / degrees,
            triangular_roots(posterior, 1 / degrees),
        )
        posterior = self.observed_information(posterior)
        identity = np.eye(self.n_features)
        choleskys = np.array(
            [solve_triangular(factor, identity, lower=True).T for factor in roots]
        )
        precisions, degrees = choleskys @ choleskys.mT, posterior.degrees
        if self.tied:
            covariances, precisions = covariances[0], precisions[0]
            choleskys, degrees = choleskys[0], degrees[0]
        return {
            "means_": posterior.means,
            "mean_precision_": posterior.mean_precision,
            "degrees_of_freedom_": degrees,
            "covariances_": covariances,
            "precisions_": precisions,
            "precisions_cholesky_": choleskys,
        }


def triangular_roots(posterior, times=1.0):
    """Return lower triangular roots of the scales, times a positive number.

    If a component is degenerate in a direction, the scales are too ill-conditioned for
    a Cholesky decomposition; the roots are then computed from the factors.
    """
    try:
        return np.linalg.cholesky(posterior.scale * times)
    except np.linalg.LinAlgError:
        roots = np.sqrt(posterior.degrees[:, None, None] * times)
        upper = np.linalg.qr(np.linalg.inv(posterior.factors) * roots, mode="r")
        signs = np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1.0, 1.0)
        return (upper * signs[:, :, None]).mT


def log_determinants(factors):
    """Return log |F F'| for triangular F."""
    return 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
