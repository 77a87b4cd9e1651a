"""Random numbers of kernels, against the definition of the generator and of laws.

With probability 1e-4 a comparison of laws fails on a right kernel, were the seed new.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from twins import twin_of

from skpacbayes._kernels import random

SEED, NO_RATES = 2**63 - 25, np.empty((0, 0))


def state_of(seed):
    return np.array([seed], dtype=np.uint64)


def fits(drawn, law):
    return stats.kstest(drawn, law.cdf).pvalue > 1e-4


@twin_of(random.uniform)
def test_uniform(kernel):
    """Against integers of any size; successive numbers are independent."""
    state, number, drawn = state_of(SEED), SEED, []
    for _ in range(2000):
        low, carry = number % 2**32, number // 2**32
        number = low * 4294883355 + carry
        drawn.append(kernel(state))
        assert drawn[-1] == ((low ^ carry) * 2**21 + low // 2**11) / 2**53
    assert fits(drawn, stats.uniform)
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 3.9 / np.sqrt(2000)


@twin_of(random.gamma)
def test_gamma(kernel):
    state = state_of(7)
    for shape in (0.02, 0.5, 1.0, 7.5, 4e3):
        assert fits([kernel(shape, state) for _ in range(2000)], stats.gamma(shape))
    assert kernel(np.inf, state) == np.inf
    assert np.isnan(kernel(np.nan, state))  # it comes to an end


@twin_of(random.draw_gammas)
def test_draw_gammas(kernel):
    """Each call has a seed, as calls have in a sampler."""
    seeds = np.random.default_rng(0)
    shapes, drawn = np.array([[0.3, 2.0, 30.0]]), np.empty((500, 1, 3))
    for own in drawn:
        kernel(shapes, NO_RATES, state_of(seeds.integers(2**63)), False, own)
    for shape, own in zip(shapes[0], drawn.reshape(-1, 3).T, strict=True):
        assert fits(own, stats.gamma(shape))


@pytest.mark.parametrize("small", [False, True])
@twin_of(random.draw_gammas)
def test_draw_shares(kernel, small):
    """Dirichlet variables, also of parameters whose gamma variables underflow.

    With rates, the odds of two shares are those without, over the ratio of the rates.
    """
    seeds = np.random.default_rng(1)
    alphas = np.array([[2e-4, 1e-4, 3e-4], [1.0, 4.0, 0.5]])[: 1 if small else 2]
    drawn, driven = np.empty((2, 1500, *alphas.shape))
    rates = np.array([[1.0, 5.0, 0.2]]).repeat(len(alphas), axis=0)
    for own, other in zip(drawn, driven, strict=True):
        seed = int(seeds.integers(2**63))
        kernel(alphas, NO_RATES, state_of(seed), True, own)
        kernel(alphas, np.log(rates), state_of(seed), True, other)
    assert_allclose(drawn.sum(axis=-1), 1.0)
    expected = drawn / rates
    expected /= expected.sum(axis=-1, keepdims=True)
    assert_allclose(driven, expected, rtol=1e-9, atol=1e-300)
    if small:
        # One share is nearly all.
        frequencies = (drawn[:, 0] > 0.5).mean(axis=0)
        assert_allclose(frequencies, alphas[0] / alphas.sum(), atol=3.9 * 0.5 / 38)
        return
    for j in range(3):
        law = stats.beta(alphas[1, j], alphas[1].sum() - alphas[1, j])
        assert fits(drawn[:, 1, j], law)


@pytest.mark.parametrize(
    ("shape", "bound"),
    [
        *((0.14, 1e-4), (1e-6, 1e-3), (0.5, 0.9), (0.5, 4.0), (1.0, 0.7), (3.0, 2.0)),
        *((0.2, 60.0), (3.0, 9.0), (40.0, 41.0), (40.0, 90.0)),
    ],
)
@twin_of(random.gamma_above)
def test_gamma_above(kernel, shape, bound):
    """By the survival function of the gamma distribution, also far in its tail."""
    state, law = state_of(11), stats.gamma(shape)
    drawn = np.array([kernel(shape, bound, state) for _ in range(2000)])
    assert drawn.min() >= bound
    shares = np.exp(law.logsf(drawn) - law.logsf(bound))
    assert stats.kstest(shares, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("shape", [0.1, 3.0, np.nan])
@twin_of(random.gamma_above)
def test_gamma_above_comes_to_an_end(kernel, shape):
    assert np.isnan(kernel(shape, np.nan, state_of(3))) or shape >= 1.0
    assert np.isnan(kernel(np.nan, 0.5, state_of(3)))


@pytest.mark.parametrize("driven", [False, True])
@twin_of(random.draw_bounded_shares)
def test_draw_bounded_shares(kernel, driven):
    """Against rejection sampling; NaN after too many tries."""
    rng, least, n = np.random.default_rng(2), 0.02, 4000
    alphas, rates = np.array([0.3, 2.0, 0.6]), np.array([1.0, 4.0, 0.5])
    rates = rates if driven else np.ones(3)
    free = rng.gamma(alphas, 1.0 / rates, (100_000, 3))
    free /= free.sum(axis=1, keepdims=True)
    expected, rows = free[free.min(axis=1) >= least], np.empty((n, 3))
    state = state_of(5)
    for row in rows:
        kernel(alphas, rates, least, 99, state, row)
    assert_allclose(rows.sum(axis=1), 1.0)
    assert rows.min() >= least
    for found, law in zip(rows.T, expected.T, strict=True):
        assert stats.ks_2samp(found, law).pvalue > 1e-4
    for row in rows:
        kernel(alphas, rates, 0.332, 1, state, row)
    assert np.isnan(rows).mean() > 0.9


@twin_of(random.slice_pairs_of)
def test_slice_pairs_of(kernel):
    """Two entries with a pull, against the density on a grid; the law of others."""
    alphas, pulls, least = np.array([0.4, 2.5]), np.array([3.0, 0.0]), 0.02
    state, row, draws = state_of(3), np.array([0.5, 0.5]), np.empty(2000)
    for number in range(len(draws)):
        kernel(row, alphas, pulls, least, 8, state)
        draws[number] = row[0]
        assert row.min() >= least * (1 - 1e-12)
    assert_allclose(row.sum(), 1.0)
    grid = np.linspace(least, 1 - least, 4001)
    density = grid**-0.6 * (1 - grid) ** 1.5 * np.exp(-3.0 * grid)
    law = np.cumsum(density) / density.sum()
    assert stats.kstest(np.interp(draws, grid, law), "uniform").pvalue > 1e-4
    row = np.array([0.3, 0.3, 0.4])
    kernel(row, np.ones(3), np.zeros(3), 0.3, 1, state)
    assert sorted(row != [0.3, 0.3, 0.4]) in ([False] * 3, [False, True, True])
