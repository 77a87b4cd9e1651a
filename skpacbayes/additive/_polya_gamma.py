"""Draws and moments of Pólya-Gamma variables of any shape."""

import numpy as np
from scipy.special import expit, ndtr

from .._kernels.polya_gamma import CUT, RIGHT_RATE, add_polya_gamma

N_TERMS = 8  # of the series of gammas, where the shape is not whole
LARGEST_COUNT = 64  # beyond this shape the series is faster, and as accurate
FAR = 30.0  # half tilt from which the probability beyond the cut is below 1e-110


def polya_gamma(shapes, tilts, rng, largest_count=LARGEST_COUNT):
    """Draw from PG(shape, tilt), element by element.

    Draws are exact for integer shapes up to `largest_count`, as sums of PG(1, tilt).
    Fractional parts, and larger shapes, are drawn as the defining series of gammas,
    with the terms after `N_TERMS` replaced by one gamma of the same mean and variance.
    The relative error of the third cumulant is then less than 5e-5 for tilts up to 10,
    and less than 2e-3 for tilts up to 20.

    Parameters
    ----------
    shapes : ndarray of shape (n,)
        Shapes, at least 0. A shape of 0 gives 0.
    tilts : ndarray of shape (n,)
        Tilts, of any sign.
    rng : numpy.random.Generator
        Source of random numbers.
    largest_count : int
        See above.

    Returns
    -------
    draws : ndarray of shape (n,)
        Draws.

    References
    ----------
    .. [1] N. G. Polson, J. G. Scott and J. Windle (2013). Bayesian inference for
       logistic models using Pólya-Gamma latent variables. JASA 108.
    """
    counts = np.where(shapes <= largest_count, np.floor(shapes), 0).astype(np.int64)
    draws = np.zeros(len(shapes))
    rest = shapes - counts
    some = np.flatnonzero(rest > 0)
    if len(some):
        draws[some] = _series(rest[some], tilts[some], rng)
    add_polya_gamma(counts, tilts, right_shares(tilts), rng, draws)
    return draws


def polya_gamma_moments(shapes, tilts):
    """Return mean and variance of PG(shape, tilt)."""
    c = np.abs(tilts)
    small = c < 1e-2
    safe = np.where(small, 1.0, c)
    tanh = np.tanh(safe / 2)
    mean = np.where(small, 0.25 - c**2 / 48, tanh / (2 * safe))
    # sech(c / 2)^2 = 1 - tanh^2 would lose all digits for large c.
    sech2 = 4 * expit(safe) * expit(-safe)
    variance = np.where(
        small, 1 / 24 - c**2 / 120, (2 * tanh - safe * sech2) / (4 * safe**3)
    )
    return shapes * mean, shapes * variance


def right_shares(tilts):
    """Return the probability of the right part of Devroye's proposal."""
    z = np.minimum(0.5 * np.abs(tilts), FAR)  # larger ones would overflow
    rate = RIGHT_RATE + 0.5 * z * z
    root, growth = np.sqrt(CUT), np.exp(z)
    left = ndtr(root * z - 1 / root) / growth + ndtr(-root * z - 1 / root) * growth
    return 1 / (1 + 4 / np.pi * rate * np.exp(rate * CUT) * left)


def _series(shapes, tilts, rng):
    """Draw from the defining series of gammas, with its tail as one gamma."""
    halves = np.arange(N_TERMS) + 0.5
    scales = 0.5 / ((np.pi * halves) ** 2 + (tilts[:, None] / 2) ** 2)
    if (shapes == 0.5).all():  # half a squared normal, ten times as fast
        gammas = 0.5 * rng.standard_normal(scales.shape) ** 2
    else:
        gammas = rng.standard_gamma(shapes[:, None], size=scales.shape)
    mean, variance = polya_gamma_moments(shapes, tilts)
    mean = mean - shapes * scales.sum(axis=1)
    variance = variance - shapes * (scales**2).sum(axis=1)
    tail = rng.standard_gamma(mean**2 / variance) * (variance / mean)
    return (gammas * scales).sum(axis=1) + tail
