"""NumPy twin of what the errors of a stream's rows foretell."""

import numpy as np
from numpy.testing import assert_allclose
from twins import twin_of

from skpacbayes._kernels import online_change
from skpacbayes._kernels import online_state as names

N_ROWS, D = 12, 3


@twin_of(online_change.note_standard_error)
def test_note_standard_error(kernel):
    """Errors are cut at so many deviations; the sums wait for twice as many rows."""
    rng = np.random.default_rng(0)
    Z, gains = rng.normal(size=(2, N_ROWS, D))
    errors, steps = rng.normal(size=N_ROWS), np.arange(N_ROWS) + 3.0
    errors[[4, 7]] = 1e6, -np.inf
    scores, sums = np.zeros(D), np.zeros(4)
    expected_scores, expected = np.zeros(D), np.zeros(4)
    for t in range(N_ROWS):
        kernel(Z[t], gains[t], 0.3, errors[t], steps[t], scores, sums)
        error = np.clip(errors[t], -100.0, 100.0)
        foretold = 0.3 * gains[t] @ expected_scores
        expected_scores = online_change.MEMORY * expected_scores + error * Z[t]
        if steps[t] > 2 * D:
            own = error * foretold
            expected *= 1 - online_change.RECENT / steps[t]
            expected += own, own**2, foretold**2, error**2
        assert_allclose(scores, expected_scores, rtol=1e-12)
        assert_allclose(sums, expected, rtol=1e-10)


@twin_of(online_change.note_error)
def test_note_error(kernel):
    """Products of errors and corrections are summed, the earlier ones for less."""
    rng = np.random.default_rng(0)
    Z, gains = rng.normal(size=(2, N_ROWS, D))
    residuals, v = rng.normal(size=N_ROWS), rng.exponential(size=N_ROWS)
    residuals[7] = 1e6  # counted as so many deviations
    weights, shifts = rng.exponential(size=(2, N_ROWS))
    model = np.zeros((names.N_VECTORS_FULL, D))
    model[names.MEAN], model[names.PRIOR] = rng.normal(size=(2, D)) ** 2
    numbers = np.zeros(names.N_NUMBERS)
    steps, noise = np.arange(N_ROWS) + 3.0, 0.7
    kernel(Z[0], gains[0], 1.0, 1.0, 1.0, 1.0, model, numbers)
    assert not numbers.any()  # the noise is not known
    assert not model[names.SCORES].any()
    for t in range(N_ROWS):
        numbers[names.COUNT] = numbers[names.STEPS] = steps[t]
        numbers[names.RESIDUALS] = noise * steps[t]
        row = Z[t], gains[t], residuals[t], v[t], weights[t], shifts[t]
        kernel(*row, model, numbers)

    # The posterior mean before each row, and what the prior pulls of its prediction.
    means = model[names.MEAN] - (shifts * residuals)[:, None] * gains
    errors = residuals - (gains * means) @ model[names.PRIOR]
    errors = (errors / np.sqrt(noise * (1 / weights + v))).clip(-100.0, 100.0)
    decay = online_change.MEMORY ** np.subtract.outer(steps, steps + 1)
    decay = np.where(np.tri(N_ROWS, k=-1), decay, 0.0)
    foretold = steps * ((decay * (gains @ Z.T)) @ errors)
    counted = np.flatnonzero(steps > 2 * D)
    sums = np.zeros(4)
    for t in counted:
        own = errors[t] * foretold[t]
        sums *= 1 - online_change.RECENT / steps[t]
        sums += own, own**2, foretold[t] ** 2, errors[t] ** 2
    places = slice(names.PRODUCTS, names.SQUARED_ERRORS + 1)
    assert_allclose(numbers[places], sums, rtol=1e-10)
    scores = (errors * online_change.MEMORY ** (steps[-1] - steps)) @ Z
    assert_allclose(model[names.SCORES], scores, rtol=1e-10)
