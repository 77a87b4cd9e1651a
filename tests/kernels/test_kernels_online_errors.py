"""NumPy twin of the counts of an online regression's errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from twins import twin_of

from skpacbayes._kernels import online_errors
from skpacbayes._kernels import online_state as names

SIZES = online_errors.LOWEST * 2.0 ** (np.arange(names.N_SIDE - 1) / 4.0)
EDGES = np.concatenate([[-np.inf], -SIZES[::-1], [0.0], SIZES, [np.inf]])


@pytest.mark.parametrize("forgetting", [0.0, 0.1])
@twin_of(online_errors.note_cell)
def test_note_cell(kernel, forgetting):
    """A histogram of errors over their deviations, without the first rows."""
    rng = np.random.default_rng(0)
    n_rows, start, noise = 400, 20, 0.7
    residuals = rng.standard_cauchy(n_rows) * rng.choice([0.01, 1.0], n_rows)
    residuals[[50, 51]] = 0.0, 1e9
    v, weights = rng.exponential(size=(2, n_rows)) + 0.1
    noises = np.where(np.arange(n_rows) < 200, noise, 1.2 * noise)
    numbers = np.zeros(names.N_NUMBERS + 2 * names.N_SIDE)
    numbers[names.FORGETTING] = forgetting
    counts = numbers[names.N_NUMBERS :]
    kernel(1.0, 1.0, 1.0, numbers)
    for t in range(n_rows):
        numbers[names.COUNT] = 0.5 * t
        numbers[names.RESIDUALS], numbers[names.WEIGHT] = 0.5 * t * noises[t], t
        kernel(residuals[t], v[t], weights[t], numbers)
        if t < start:
            assert not counts.any()
    kernel(1.0, 1.0, 1.0, numbers[: names.N_NUMBERS])  # of a model that does not count

    units = noises if forgetting else noise  # changes by less than a factor of 2
    errors = residuals / np.sqrt(units * (1.0 / weights + v))
    kept = (np.arange(n_rows) >= start) & (errors != 0.0)
    expected, _ = np.histogram(
        errors[kept], EDGES, weights=(weights * np.arange(n_rows))[kept]
    )
    middle = expected[names.N_SIDE - 1 : names.N_SIDE + 1]
    middle += 0.5 * weights[50] * 50  # no error is half of each sign
    assert_allclose(counts, expected)
    unit = np.sqrt(noises[-1] if forgetting else noise)
    assert_allclose(numbers[names.ERROR_UNIT], unit)


@twin_of(online_errors.note_cell)
def test_growth_of_errors(kernel):
    """The ratio of geometric means, in octaves, in whatever units errors are counted.

    Of the halves of 256 rows, when there are more; errors of 0 count as LOWEST.
    """
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=300) * np.where(np.arange(300) < 128, 1.0, 6.0)
    residuals[[40, 200]] = 0.0
    numbers = np.zeros(names.N_NUMBERS + 2 * names.N_SIDE)
    squares = 1.0
    for t in range(300):
        numbers[[names.STEPS, names.COUNT, names.WEIGHT]] = t + 1, 20.0 + t, t + 1.0
        numbers[names.RESIDUALS] = squares * (20.0 + t) / (t + 1.0)
        kernel(residuals[t], 0.0, 1.0, numbers)
        squares += residuals[t] ** 2
    assert numbers[names.ERROR_UNIT] > 1.9  # it has changed
    sizes = np.maximum(abs(residuals), online_errors.LOWEST)
    logs = np.log2(sizes)
    expected = logs[128:256].mean() - logs[:128].mean()
    assert_allclose(numbers[names.GROWTH], expected, atol=0.02)


@pytest.mark.parametrize("factor", [3.1, 0.2, 1e6, 1e-9])
@twin_of(online_errors.change_unit)
def test_change_unit(kernel, factor):
    """The cells of the errors in the new unit, up to the width of a cell."""
    rng = np.random.default_rng(0)
    numbers = np.zeros(names.N_NUMBERS + 2 * names.N_SIDE)
    counts = numbers[names.N_NUMBERS :]
    counts[:] = rng.exponential(size=len(counts))
    numbers[names.ERROR_UNIT] = 0.3
    before = counts.copy()
    kernel(0.3 * factor, numbers)
    change = numbers[names.ERROR_UNIT] / 0.3
    assert abs(np.log2(change / factor)) <= 0.125 + 1e-9
    middles = np.sqrt(SIZES[1:] * SIZES[:-1])
    middles = np.concatenate([-middles[::-1], middles])
    ends = np.array([0, names.N_SIDE - 1, names.N_SIDE, len(counts) - 1])
    moving = np.delete(np.arange(len(counts)), ends)
    expected, _ = np.histogram(middles / change, EDGES, weights=before[moving])
    expected[ends] += before[ends]
    assert_allclose(counts, expected)
