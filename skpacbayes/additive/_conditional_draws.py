"""Draws of single quantities given all else: rates, the slab's scale, the length.

Rates are Pólya-Gamma variables; scales and factors are drawn by slice sampling.
"""

import math

import numpy as np
from scipy.special import expit, ndtr

from .._kernels.polya_gamma import CUT, RIGHT_RATE, add_polya_gamma

INTERCEPT_VARIANCE = 100.0  # of the prior of the intercept, a log odds
SLAB_TAIL = 2  # of the prior of the slab's scale, whose mean is 2
# Of Pólya-Gamma variables.
N_TERMS = 8  # of the series of gammas, where the shape is not whole
LARGEST_COUNT = 64  # beyond this shape the series is faster, and as accurate
FAR = 30.0  # half tilt from which the probability beyond the cut is below 1e-110
STEP = 0.5  # first interval of slice sampling, of a log or, on a line, over the slab
# Largest number of slice-sampling steps to each side. Slices of the posterior are far
# shorter; the limit prevents an endless loop from a start of nearly zero density.
MOST_STEPS = 200


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


def log_slab_prior(log_scale):
    """Return the log prior of the log slab scale: Pareto's, of density 2 / scale^3.

    The scale is at least 1: a smaller one would put variables without effects in the
    model. The tail must not be heavier: with separable classes, the posterior mean of
    the coefficients would not exist under a half-Cauchy scale.
    """
    return -SLAB_TAIL * log_scale if log_scale >= 0.0 else -math.inf


def draw_slab(chains, rng):
    """Draw the common slab scale of chains, given their coefficients.

    Parameters
    ----------
    chains : list of RatedChain
        The chains, whose scale is set.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    coefficients = np.concatenate([chain.draw.coefficients for chain in chains])
    square, count = 0.5 * (coefficients @ coefficients), len(coefficients)

    def log_density(log_scale):
        fit = square * math.exp(-2 * log_scale) + count * log_scale
        return log_slab_prior(log_scale) - fit

    start = math.log(chains[0].slab_scale)
    variance = math.exp(2 * slice_draw(log_density, start, STEP, rng))
    for chain in chains:
        chain.prior = chain.prior.rescaled(variance)


def most_probable_slab(chain, n_sweeps):
    """Return the most probable slab scale, by a short run of a chain.

    Stochastic EM [1]_: after each sweep, the log scale maximises its posterior given
    averages of the draws so far, recent ones mostly. It is 0 where the coefficients are
    smaller than that, or there are none.

    Parameters
    ----------
    chain : RatedChain
        The chain, whose scale is changed.
    n_sweeps : int
        Number of sweeps.

    References
    ----------
    .. [1] B. Delyon, M. Lavielle and E. Moulines (1999). Convergence of a stochastic
       approximation version of the EM algorithm. Annals of Statistics 27.
    """
    averages = np.zeros(2)  # of the number of coefficients, and of their squares' sum
    for sweep in range(1, n_sweeps + 1):
        chain.sweep()
        coefficients = chain.draw.coefficients
        current = np.array([len(coefficients), coefficients @ coefficients])
        averages += (current - averages) * min(1.0, 2 / sweep)
        count, square = averages
        scale = max(1.0, math.sqrt(square / (count + SLAB_TAIL)))
        chain.prior = chain.prior.rescaled(scale**2)
    return float(scale)


def multiply(chains, log_likelihood, rng, *, with_slab=False):
    """Multiply the draws of chains by a common factor, drawn given all else.

    Parameters
    ----------
    chains : list of RatedChain
        Chains with the same prior, whose coefficients and intercepts are multiplied.
    log_likelihood : callable
        Log-likelihood of a factor.
    rng : numpy.random.Generator
        Source of random numbers.
    with_slab : bool, default=False
        Whether the slab's scale is multiplied too.
    """
    draws, ridge = [chain.draw for chain in chains], chains[0].prior.ridge
    dimension, square = len(chains), 0.0
    if not with_slab:  # otherwise the prior of the coefficients does not change
        dimension += sum(len(draw.columns) for draw in draws)
        square = ridge * sum(draw.coefficients @ draw.coefficients for draw in draws)
    square += sum(draw.intercept**2 for draw in draws) / INTERCEPT_VARIANCE

    def log_density(log_factor):
        factor = math.exp(log_factor)
        change = log_likelihood(factor) - 0.5 * factor**2 * square
        change += dimension * log_factor
        if with_slab:
            change += log_slab_prior(log_factor - 0.5 * math.log(ridge))
        return change

    factor = math.exp(slice_draw(log_density, 0.0, STEP, rng))
    for chain, draw in zip(chains, draws, strict=True):
        chain.draw = draw.multiplied(factor)
        chain.effects = factor * chain.effects
        if with_slab:
            chain.prior = chain.prior.rescaled(factor**2 / ridge)


def slice_draw(log_density, start, step, rng):
    """Make one step of slice sampling, by stepping out and shrinking [1]_.

    Parameters
    ----------
    log_density : callable
        Log density of a number, up to a constant.
    start : float
        The current number.
    step : float
        Width of the first interval.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    number : float
        The next number.

    References
    ----------
    .. [1] R. M. Neal (2003). Slice sampling. Annals of Statistics 31.
    """
    level = log_density(start) - rng.standard_exponential()
    low = start - step * rng.random()
    high = low + step
    for _ in range(MOST_STEPS):
        if not log_density(low) > level:
            break
        low -= step
    for _ in range(MOST_STEPS):
        if not log_density(high) > level:
            break
        high += step
    while True:
        number = low + (high - low) * rng.random()
        if log_density(number) > level or number == start:
            return number
        low, high = (number, high) if number < start else (low, number)
