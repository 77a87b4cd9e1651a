"""Factors, gains and densities of Gaussian vectors, cached."""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack, solve_triangular

LOG_2_PI = math.log(2 * math.pi)
ROUNDING = 10 * np.finfo(float).eps  # of eigenvalues of correlations, by column


def matrix_of(value, dtype=None):
    """Return a parameter as an array, a number as a matrix of size one."""
    value = np.asarray(value, dtype=dtype)
    return value if value.ndim == 2 else np.atleast_2d(value)


def factored(covariance):
    """Return the upper factor of a covariance, its inverse transpose, half log det."""
    covariance = matrix_of(covariance, float)
    return _factor_of(covariance.tobytes(), len(covariance))


def noise_factor(covariance):
    """Return a factor U of a covariance that may be singular, and whether it is not.

    ``U.T @ U`` is the covariance: the upper Cholesky factor, or, if the covariance is
    singular, one whose last rows are zero.

    Parameters
    ----------
    covariance : array-like of shape (n, n)
        A positive semi-definite matrix.

    Returns
    -------
    factor : ndarray of shape (n, n)
        The factor.
    full_rank : bool
        Whether the covariance is positive definite, beyond rounding errors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive semi-definite.
    """
    covariance = matrix_of(covariance, float)
    return _noise_factor_of(covariance.tobytes(), len(covariance))


@lru_cache(maxsize=32)
def _noise_factor_of(data, n):
    covariance, tolerance = np.frombuffer(data).reshape(n, n), n * ROUNDING
    if not np.isfinite(covariance).all():
        raise np.linalg.LinAlgError("The matrix is not finite.")
    # Correlations, as columns may have units of their own.
    scales = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    correlations = np.zeros((n, n))
    vary = scales > 0.0
    both = np.ix_(vary, vary)
    correlations[both] = covariance[both] / scales[vary] / scales[vary, None]
    rank = np.count_nonzero(np.linalg.eigvalsh(correlations) > tolerance)
    if rank == n:
        return _factor_of(data, n)[0], True
    turned, places, _, _ = lapack.dpstrf(correlations, tol=0.0)
    turned = np.triu(turned)
    turned[rank:] = 0.0
    factor = np.empty((n, n))
    factor[:, places - 1] = turned
    error = np.abs(factor.T @ factor - correlations).max()
    if not error <= 100 * tolerance or covariance[~vary].any():
        raise np.linalg.LinAlgError("The matrix is not positive semi-definite.")
    return factor * scales, False


@lru_cache(maxsize=32)
def _factor_of(data, n):
    """Factor a covariance, cached, as a model's functions need it at every row."""
    upper = np.linalg.cholesky(np.frombuffer(data).reshape(n, n)).T.copy()
    inverse = solve_triangular(upper, np.eye(n))
    return upper, inverse.T.copy(), float(np.log(np.diag(upper)).sum())


@lru_cache(maxsize=32)
def gain_of(seen, covariance, shape):
    """Return gain and scale of the noise given a row, whose loading is `seen`."""
    seen = np.frombuffer(seen).reshape(shape)
    covariance = np.frombuffer(covariance).reshape(shape[0], shape[0])
    gains, scales = gains_of(seen[None], covariance)
    return gains[0], scales


def gains_of(seen, covariance):
    """Return gains and scales of the noise given a row, for several loadings.

    Parameters
    ----------
    seen : ndarray of shape (n, n_features, n_noise)
        Loadings of the row on the noise.
    covariance : ndarray of shape (n_features, n_features)
        Covariance of the row given the noise.

    Returns
    -------
    gains : ndarray of shape (n, n_features, n_noise)
        Mean noise by the difference of the row from its mean.
    scales : ndarray of shape (n, n_noise, n_noise)
        Lower factors of the covariance of the noise.
    """
    whitening = factored(covariance)[1]
    seen = whitening @ seen
    # The noise is a least squares solution. By QR it has the rounding errors of a
    # factor of its precision, not those of the inverse: a row may be very precise.
    unit = np.broadcast_to(np.eye(seen.shape[2]), (len(seen), *2 * seen.shape[2:]))
    stacked = np.concatenate([seen, unit], axis=1)[:, :, ::-1]
    turned, upper = np.linalg.qr(stacked)
    scales = np.linalg.inv(upper)[:, ::-1, ::-1]
    gains = turned[:, : seen.shape[1], ::-1] @ scales.swapaxes(1, 2)
    scales = scales * np.sign(np.diagonal(scales, axis1=1, axis2=2))[:, None]
    return whitening.T @ gains, np.tril(scales)


def gaussian_log_density(gaps, covariance):
    """Return the log density of centred Gaussian vectors, the columns of `gaps`."""
    _, inverse, half_log_det = factored(covariance)
    scores = inverse @ gaps
    constant = -half_log_det - 0.5 * len(inverse) * LOG_2_PI
    return constant - 0.5 * np.einsum("ji,ji->i", scores, scores)


def gaussian_log_densities(gaps, covariances):
    """Return the same with a covariance for each vector."""
    lower = np.linalg.cholesky(covariances)
    scores = np.linalg.solve(lower, gaps.T[:, :, None])[:, :, 0]
    half_log_dets = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    squares = np.einsum("ij,ij->i", scores, scores)
    return -half_log_dets - 0.5 * (len(gaps) * LOG_2_PI + squares)
