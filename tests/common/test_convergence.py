"""R-hat against closed forms."""

import numpy as np
import pytest
from scipy.stats import norm

from skpacbayes._convergence import rank_normalised, split_r_hat


@pytest.mark.parametrize("half", [2, 10, 250])
@pytest.mark.parametrize("gap", [0.0, 0.3, 5.0])
def test_split_r_hat_of_alternating_chains(half, gap):
    """Values m - 1, m + 1, m - 1, ...: all variances are known.

    With h draws in a half (h even) the variance within is h / (h - 1); four halves have
    their means at 0, 0, gap, gap, whose variance is gap^2 / 3.
    """
    draws = np.tile([-1.0, 1.0], half)
    series = np.array([draws, draws + gap])
    expected = np.sqrt((half - 1) / half * (1 + gap**2 / 3))
    assert split_r_hat(series) == pytest.approx(expected, rel=1e-12)
    assert split_r_hat(1e9 * series) == pytest.approx(expected, rel=1e-12)


def test_split_r_hat_sees_one_chain_that_wanders():
    """The halves of 0, ..., 2h - 1 have variance h (h + 1) / 12, means h apart."""
    h = 50
    expected = np.sqrt((h - 1) / h + (h**2 / 2) / (h * (h + 1) / 12))
    assert split_r_hat(np.arange(2.0 * h)[None]) == pytest.approx(expected, rel=1e-12)


def test_split_r_hat_of_many_series_is_that_of_each():
    series = np.random.default_rng(0).normal(size=(2, 3, 4, 11))
    together = split_r_hat(series)
    assert together.shape == (2, 3)
    for index in np.ndindex(2, 3):
        assert together[index] == split_r_hat(series[index])


def test_limits_of_split_r_hat():
    stuck = np.repeat([[0.1], [0.7]], 10, axis=1)
    assert split_r_hat(stuck) == np.inf
    assert split_r_hat(np.zeros((2, 10))) == 1.0
    assert split_r_hat(np.full((2, 10), 0.1)) == 1.0
    # The same value, as two chains have rounded it.
    rounded = np.repeat([[123.4], [123.4 * (1 + 4e-16)]], 10, axis=1)
    assert rounded[0, 0] != rounded[1, 0]
    assert split_r_hat(rounded) == 1.0
    assert split_r_hat(np.zeros((2, 3))) == np.inf


def test_rank_normalised():
    values = np.random.default_rng(0).standard_cauchy((3, 7))
    scores = rank_normalised(values)
    expected = norm.ppf((np.arange(1, 22) - 3 / 8) / (21 + 1 / 4))
    np.testing.assert_allclose(np.sort(scores.ravel()), expected, rtol=1e-12)
    np.testing.assert_array_equal(scores.argsort(axis=None), values.argsort(axis=None))
    # Of equal values each has the rank in their middle.
    np.testing.assert_allclose(
        rank_normalised(np.array([[2.0, 1.0, 2.0]])),
        norm.ppf((np.array([[2.5, 1.0, 2.5]]) - 3 / 8) / 3.25),
        rtol=1e-12,
    )
