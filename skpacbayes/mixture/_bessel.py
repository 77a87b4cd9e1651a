"""Logarithms of modified Bessel functions, of any order and without underflow."""

from functools import lru_cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import ive

LARGE = 25.0  # size of (order, x) from which the expansion is used
N_TERMS = 10


def log_bessel(order, x):
    """Return log I_order(x), the modified Bessel function of the first kind.

    For large orders or arguments by Debye's uniform expansion, where the function
    itself underflows or is not defined by `scipy.special`: DLMF 10.41.3 [1]_. With
    s = sqrt(order^2 + x^2) and p = order / s, it is

        exp(s) (x / (order + s))^order / sqrt(2 pi s) sum_k u_k(p) / order^k.

    Parameters
    ----------
    order : float
        At least 0.
    x : ndarray
        Positive.

    Returns
    -------
    ndarray like x

    References
    ----------
    .. [1] NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov/10.41
    """
    return log_scaled_bessel(order, x) + x


def log_scaled_bessel(order, x):
    """Return log I_order(x) - x, which keeps its digits where x is large."""
    exact = np.hypot(order, x)
    size = np.maximum(exact, LARGE)
    coefficients, square = debye_coefficients(), (order / size) ** 2
    values = np.zeros((N_TERMS, *size.shape))
    for own in coefficients.reshape(*coefficients.shape, *[1] * size.ndim):
        values *= square
        values += own
    series = np.zeros_like(size)
    for value in values[::-1]:
        series = series / size + value
    large = order**2 / (size + x) + order * np.log(x / (order + size))
    large -= 0.5 * np.log(2 * np.pi * size)
    large += np.log(series)
    small = exact < LARGE
    if small.any():
        large[small] = np.log(ive(order, x[small]))
    return large


@lru_cache(maxsize=1)
def debye_coefficients():
    """Coefficients of v_k with u_k(p) = p^k v_k(p^2), of DLMF 10.41.9 and 10.41.10.

    One column for each k, the coefficient of the highest power first.
    """
    p, u = Polynomial([0, 1]), Polynomial([1.0])
    result = np.zeros((N_TERMS, N_TERMS))
    for k in range(N_TERMS):
        own = u.coef[k::2]
        result[N_TERMS - len(own) :, k] = own[::-1]
        u = p**2 * (1 - p**2) * u.deriv() / 2 + ((1 - 5 * p**2) * u).integ() / 8
    return result
