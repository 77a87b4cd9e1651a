"""Factors, gains and densities of Gaussian vectors, cached."""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import solve_triangular

LOG_2_PI = math.log(2 * math.pi)


def factored(covariance):
    """Return the upper factor of a covariance, its inverse transpose, half log det."""
    covariance = np.asarray(covariance, dtype=float)
    return _factor_of(covariance.tobytes(), len(covariance))


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
    weighed = np.linalg.solve(covariance, seen)
    posterior = np.linalg.inv(np.eye(shape[1]) + seen.T @ weighed)
    return weighed @ posterior, np.linalg.cholesky(posterior)[None]


def gaussian_log_density(gaps, covariance):
    """Return the log density of centred Gaussian vectors, the columns of `gaps`."""
    _, inverse, half_log_det = factored(covariance)
    scores = inverse @ gaps
    constant = -half_log_det - 0.5 * len(inverse) * LOG_2_PI
    return constant - 0.5 * np.einsum("ji,ji->i", scores, scores)
