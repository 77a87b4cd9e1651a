"""Kullback-Leibler divergences of the laws that the families are made of."""

import numpy as np
from scipy.special import digamma, gammaln, multigammaln


def gamma_divergence(shape, rate, prior_shape, prior_rate):
    """KL divergence between Gamma laws, or inverse Gamma laws, elementwise."""
    return (
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * (np.log(rate) - np.log(prior_rate))
        + shape * (prior_rate / rate - 1)
    )


def dirichlet_divergence(concentration, prior):
    """KL divergence between Dirichlet laws, over the last axis."""
    total, prior_total = concentration.sum(-1), prior.sum(-1)
    expected_log = digamma(concentration) - digamma(total)[..., None]
    return (
        gammaln(total)
        - gammaln(prior_total)
        - (gammaln(concentration) - gammaln(prior)).sum(-1)
        + ((concentration - prior) * expected_log).sum(-1)
    )


def wishart_log_determinant(degrees, inverse_scale):
    """E log |Lambda| under Wishart laws."""
    d = inverse_scale.shape[-1]
    halves = (degrees[:, None] + 1 - np.arange(1, d + 1)) / 2
    log_determinant = np.linalg.slogdet(inverse_scale)[1]
    return digamma(halves).sum(axis=1) + d * np.log(2) - log_determinant


def wishart_divergence(degrees, inverse_scale, prior_degrees, prior_inverse_scale):
    """KL divergence between Wishart laws, given the inverses of their scales."""
    d = inverse_scale.shape[-1]

    def log_normaliser(degrees, inverse_scale):
        log_determinant = np.linalg.slogdet(inverse_scale)[1]
        return 0.5 * degrees * (log_determinant - d * np.log(2)) - multigammaln(
            degrees / 2, d
        )

    log_determinant = wishart_log_determinant(degrees, inverse_scale)
    trace = np.trace(
        np.linalg.solve(
            inverse_scale, np.broadcast_to(prior_inverse_scale, inverse_scale.shape)
        ),
        axis1=1,
        axis2=2,
    )
    return (
        log_normaliser(degrees, inverse_scale)
        - log_normaliser(prior_degrees, prior_inverse_scale)
        + 0.5 * (degrees - prior_degrees) * log_determinant
        + 0.5 * degrees * (trace - d)
    )
