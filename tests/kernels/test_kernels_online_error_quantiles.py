"""NumPy twins of the quantiles of an online regression's errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri
from twins import twin_of

from skpacbayes._kernels import online_error_quantiles as kernels
from skpacbayes._kernels import online_state as names

EDGES = kernels.EDGES
LEVELS = np.concatenate([[1e-12], np.linspace(0.005, 0.995, 67), [1.0 - 1e-9]])


@twin_of(kernels.normal_quantile)
def test_normal_quantile(kernel):
    tail = 10.0 ** -np.linspace(0.5, 300.0, 200)
    shares = np.concatenate([tail, np.linspace(0.01, 0.99, 99), 1.0 - tail[:10]])
    found = [kernel(share) for share in shares]
    assert_allclose(found, ndtri(shares), rtol=1e-14, atol=1e-16)


def observed(shares, n_rows, levels):
    """Return quantiles, linear in normal scores between and beyond the edges."""
    rare = 0.5 / n_rows
    first, last = np.searchsorted(shares, [rare, 1.0 - rare], side="left")
    own = slice(max(first - 1, 0), min(last, len(shares) - 1) + 1)
    scores = ndtri(np.clip(shares[own], rare, 1.0 - rare))
    edges, wanted = EDGES[own], ndtri(levels)
    beyond = [max(edges[k] / scores[k], 0.0) * (wanted - scores[k]) for k in (0, -1)]
    found = np.interp(wanted, scores, edges)
    found = np.where(wanted < scores[0], edges[0] + beyond[0], found)
    return np.where(wanted > scores[-1], edges[-1] + beyond[1], found)


ERRORS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "few": lambda rng, n: rng.exponential(size=20),
    "gross": lambda rng, n: rng.normal(size=n) * 1e5,
}


@pytest.mark.parametrize("errors", ERRORS)
@twin_of(kernels.move_to_observed)
def test_move_to_observed(kernel, errors):
    rng = np.random.default_rng(0)
    errors = ERRORS[errors](rng, 500)
    cells = np.searchsorted(EDGES, errors)
    numbers = np.zeros(names.N_NUMBERS + 2 * names.N_SIDE)
    counts = np.bincount(cells, np.arange(len(errors)), 2 * names.N_SIDE)
    numbers[names.N_NUMBERS :] = counts
    numbers[names.ERROR_UNIT] = 0.9
    unit = 0.9 / np.sqrt(1.5)
    normal = 1.01 * ndtri(LEVELS)
    expected, total = normal, counts.sum()
    n_rows = kernels.EFFECTIVE * np.sqrt(2.0 * total)
    shares = counts[:-1].cumsum() / total
    distance = np.sqrt(n_rows) * np.abs(shares - ndtr(unit * EDGES)).max()
    if n_rows >= kernels.FEWEST and distance > kernels.DISTANCE:
        trust = 1.0 - (kernels.DISTANCE / distance) ** 4
        expected = normal + trust * (unit * observed(shares, n_rows, LEVELS) - normal)
    found = normal.copy()
    kernel(numbers, 1.5, LEVELS, found)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    for nothing in (numbers[: names.N_NUMBERS], 0.0 * numbers):  # no counts, no rows
        found = normal.copy()
        kernel(nothing, 1.5, LEVELS, found)
        assert_array_equal(found, normal)
