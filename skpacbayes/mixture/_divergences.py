"""Kullback-Leibler divergences and related constants of standard distributions."""

from functools import lru_cache

import numpy as np
from scipy.special import betaln, digamma, gammaln, multigammaln

from .._kernels.matrix_f import divergences

LOG_2 = np.log(2)


def gamma_divergence(shape, rate, prior_shape, prior_rate):
    """Return KL divergences of Gamma, or inverse Gamma, distributions, elementwise."""
    return (
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * (np.log(rate) - np.log(prior_rate))
        + shape * (prior_rate / rate - 1)
    )


def dirichlet_divergence(concentration, prior):
    """Return KL divergences between Dirichlet distributions, over the last axis."""
    total, prior_total = concentration.sum(-1), prior.sum(-1)
    expected_log = digamma(concentration) - digamma(total)[..., None]
    return (
        gammaln(total)
        - gammaln(prior_total)
        - (gammaln(concentration) - gammaln(prior)).sum(-1)
        + ((concentration - prior) * expected_log).sum(-1)
    )


def wishart_log_determinant(degrees, log_scale, d):
    """Return E log |L| under d x d Wishart distributions, with log_scale = log |W|."""
    halves = 0.5 * degrees[..., None] - half_steps(d)
    return digamma(halves).sum(axis=-1) + (d * LOG_2 + log_scale)


@lru_cache(maxsize=64)
def half_steps(d):
    """Return read-only (0, 1, ..., d - 1) / 2."""
    steps = 0.5 * np.arange(d)
    steps.flags.writeable = False
    return steps


def wishart_log_normalizer(degrees, log_scale, d):
    """Return the log integral of |L|^((nu-d-1)/2) exp(-tr(W^-1 L)/2)."""
    return 0.5 * degrees * (log_scale + d * LOG_2) + multigammaln(degrees / 2, d)


def matrix_f_divergence(degrees, spectrum, prior_degrees, scale_degrees):
    """Return upper bounds on KL(Wishart, matrix-F), summed over some precisions.

    The matrix-F density of a precision L is proportional to
    |L|^((nu-d-1)/2) / |I + R L|^((nu+m)/2), with nu = `prior_degrees`: that of
    Wishart precisions whose inverse scale is Wishart too, with m degrees and scale R.
    The expectation of log |I + R L| is replaced by log |I + R E L|, which is not less
    and is what an independent distribution of the inverse scale gives.

    Parameters
    ----------
    degrees : ndarray of shape (n_sums,)
        Degrees of freedom of the Wishart distributions.
    spectrum : ndarray of shape (n_sums, n_precisions, d)
        Eigenvalues of R E L.
    prior_degrees, scale_degrees : float
        The nu and the m of the matrix-F distribution.
    """
    result, nu, m = np.empty(len(spectrum)), float(prior_degrees), float(scale_degrees)
    constant = matrix_f_constant(nu, m, spectrum.shape[2])
    divergences(degrees, spectrum, nu, m, constant, result)
    return result


@lru_cache(maxsize=64)
def matrix_f_constant(prior_degrees, scale_degrees, d):
    """Return the log constant of the matrix-F density, plus log pi^(d(d-1)/4)."""
    return float(
        multigammaln(0.5 * (prior_degrees + scale_degrees), d)
        - multigammaln(0.5 * prior_degrees, d)
        - multigammaln(0.5 * scale_degrees, d)
        + 0.25 * d * (d - 1) * np.log(np.pi)
    )


def log_rising(shape, count):
    """Return log Gamma(shape + count) / (Gamma(shape) count!), for integer counts.

    The beta function is accurate for large shapes, where the difference of two log
    Gamma functions loses all digits (shapes above 1e14 times the count).
    """
    positive = np.maximum(count, 1.0)
    return np.where(count > 0, -(betaln(shape, positive) + np.log(positive)), 0.0)
