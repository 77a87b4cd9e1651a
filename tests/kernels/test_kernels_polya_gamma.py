"""Pólya-Gamma draws follow the law that defines them.

Every comparison of means is a z-score below 5 in absolute value, every comparison of
distributions a Kolmogorov-Smirnov test at level 1e-6: with fixed seeds, and less than
150 comparisons, chance alone would fail the file with probability below 3e-4.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import erfc
from scipy.stats import ks_2samp, kstest
from twins import twin_of

from skpacbayes._kernels import polya_gamma as kernels
from skpacbayes.additive._rated_chain import (
    N_TERMS,
    polya_gamma,
    polya_gamma_moments,
    right_shares,
)

TILTS = (0.0, 0.5, 3.0, 3.3, -8.0, 120.0)


def laplace(shape, tilt, t):
    """E exp(-t X) = (cosh(c / 2) / cosh(sqrt(c^2 / 4 + t / 2)))^b."""
    c, d = abs(tilt) / 2, np.sqrt(tilt**2 / 4 + t / 2)
    # log cosh(x) = x + log1p(exp(-2 x)) - log 2
    log_ratio = c - d + np.log1p(np.exp(-2 * c)) - np.log1p(np.exp(-2 * d))
    return np.exp(shape * log_ratio)


def cdf_of_untilted(x):
    """P(X <= x) for PG(1, 0): the density's series on the left, term by term.

    The density of J*(1, 0) is sum_n (-1)^n pi (n + 1/2) (2 / (pi x))^(3/2)
    exp(-2 (n + 1/2)^2 / x), whose integral is 2 sum_n (-1)^n erfc((n + 1/2) sqrt(2/x)).
    """
    n = np.arange(200)
    arguments = (n + 0.5) * np.sqrt(2 / (4 * np.asarray(x)[:, None]))
    return 2 * ((-1.0) ** n * erfc(arguments)).sum(axis=1)


def direct(shape, tilt, size, rng, n_terms=400):
    """Draw from the definition, cut after many terms, whose mean is put back."""
    halves = np.arange(n_terms) + 0.5
    scales = 0.5 / ((np.pi * halves) ** 2 + (tilt / 2) ** 2)
    draws = rng.standard_gamma(shape, size=(size, n_terms)) @ scales
    mean, _ = polya_gamma_moments(shape, tilt)
    return draws + (mean - shape * scales.sum())


def z_score(sample, expected):
    return (sample.mean() - expected) / (sample.std() / np.sqrt(len(sample)))


@twin_of(kernels.add_polya_gamma)
def test_add_polya_gamma(kernel):
    """As the definition: a sum of gammas, in NumPy."""
    rng = np.random.default_rng(0)
    size = 2000
    for tilt in (0.0, 2.0, -5.0):
        counts = np.full(size, 2)
        tilts = np.full(size, tilt)
        out = np.full(size, 1.0)
        kernel(counts, tilts, right_shares(tilts), rng, out)
        twin = 1.0 + direct(2, tilt, size, rng)
        assert ks_2samp(out, twin).pvalue > 1e-6


def test_a_count_of_zero_draws_nothing():
    out = np.array([3.0, 0.0])
    rng = np.random.default_rng(0)
    tilts = np.ones(2)
    kernels.add_polya_gamma(np.array([0, 1]), tilts, right_shares(tilts), rng, out)
    assert out[0] == 3.0
    assert out[1] > 0


def test_distribution_of_the_untilted_law():
    draws = polya_gamma(np.ones(50_000), np.zeros(50_000), np.random.default_rng(1))
    assert kstest(draws, cdf_of_untilted).pvalue > 1e-6


def test_tilting_reweights_the_law():
    """The density of PG(1, c) is that of PG(1, 0) times exp(-c^2 x / 2), normalised."""
    rng = np.random.default_rng(2)
    plain = polya_gamma(np.ones(100_000), np.zeros(100_000), rng)
    weights = np.exp(-0.5 * 2.0**2 * plain)
    kept = plain[rng.random(len(plain)) < weights]  # rejection: an exact draw
    tilted = polya_gamma(np.ones(50_000), np.full(50_000, 2.0), rng)
    assert ks_2samp(kept, tilted).pvalue > 1e-6


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0, 0.2, 2.5, 90.0])
@pytest.mark.parametrize("tilt", TILTS)
def test_laplace_transform_and_moments(shape, tilt):
    size = 20_000
    rng = np.random.default_rng([int(10 * shape), int(abs(tilt))])
    draws = polya_gamma(np.full(size, shape), np.full(size, tilt), rng)
    mean, variance = polya_gamma_moments(shape, tilt)
    assert abs(z_score(draws, mean)) < 5
    assert abs(z_score((draws - mean) ** 2, variance)) < 5
    for t in np.array([0.3, 1.0, 3.0]) / mean:
        assert abs(z_score(np.exp(-t * draws), laplace(shape, tilt, t))) < 5


@pytest.mark.parametrize("tilt", TILTS)
def test_the_series_and_the_exact_draws_agree(tilt):
    """Shape 64.0 is a sum of exact draws; 64 + 1e-9 is a series of gammas."""
    rng = np.random.default_rng(4)
    tilts = np.full(4000, tilt)
    exact = polya_gamma(np.full(4000, 64.0), tilts, rng)
    series = polya_gamma(np.full(4000, 64.0 + 1e-9), tilts, rng)
    assert ks_2samp(exact, series).pvalue > 1e-6


def test_third_cumulant_of_the_series():
    """What the docstring claims of its error."""
    for tilt, claim in ((0.0, 1e-6), (3.0, 1e-6), (10.0, 5e-5), (20.0, 2e-3)):
        halves = np.arange(2_000_000) + 0.5
        scales = 0.5 / ((np.pi * halves) ** 2 + (tilt / 2) ** 2)
        tail = scales[N_TERMS:]
        mean, variance = polya_gamma_moments(1.0, tilt)
        mean, variance = (
            mean - scales[:N_TERMS].sum(),
            variance - (scales[:N_TERMS] ** 2).sum(),
        )
        third = 2 * (tail**3).sum()
        of_gamma = 2 * variance**2 / mean
        assert abs(third - of_gamma) < claim * 2 * (scales**3).sum()


def test_moments_match_the_derivatives_of_the_transform():
    tilts = np.array([0.0, 1e-3, 0.0099, 0.0101, 0.7, 4.0, 30.0, 800.0])
    mean, variance = polya_gamma_moments(1.5, tilts)
    step = 1e-3 / mean
    low = np.log(laplace(1.5, tilts, step))
    high = np.log(laplace(1.5, tilts, 2 * step))
    assert_allclose((high - 4 * low) / (2 * step), mean, rtol=1e-6)
    assert_allclose((high - 2 * low) / step**2, variance, rtol=1e-2)


def test_right_share_is_that_of_the_two_integrals():
    """Mass of the first term beyond the cut and before it, by quadrature."""
    cut = kernels.CUT
    for z in (0.0, 0.4, 1.5, 1.6, 4.0):

        def left(x, z=z):
            first = np.pi / 2 * (2 / (np.pi * x)) ** 1.5 * np.exp(-0.5 / x)
            return first * np.exp(-0.5 * z * z * x)

        def right(x, z=z):
            return np.pi / 2 * np.exp(-(np.pi**2 / 8 + 0.5 * z * z) * x)

        masses = quad(left, 0, cut)[0], quad(right, cut, np.inf)[0]
        share = right_shares(np.array([2 * z]))[0]
        assert_allclose(share, masses[1] / sum(masses), rtol=1e-7)


def test_extreme_tilts_are_finite():
    tilts = np.array([1e-300, 1e-8, 1e3, -1e6, 1e12])
    draws = polya_gamma(np.ones(5), tilts, np.random.default_rng(0))
    assert np.isfinite(draws).all()
    assert (draws > 0).all()
    assert_allclose(draws[2:] * abs(tilts[2:]), 0.5, rtol=0.5)


def test_shape_zero_draws_zero():
    assert polya_gamma(np.zeros(1), np.ones(1), np.random.default_rng(0)) == [0.0]
