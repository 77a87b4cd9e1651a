"""Intervals of online regressions whose errors are not normal."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone

from skpacbayes import OnlineVIMLPRegressor, OnlineVIRegressor
from skpacbayes._kernels import online_state as names
from skpacbayes._kernels.online_error_quantiles import move_to_observed

LEVELS = [0.05, 0.25, 0.75, 0.95]
NOISES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "Student": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "counts with zeros": lambda rng, n: rng.poisson(9.0, n) * (rng.random(n) < 0.3),
    "outliers": lambda rng, n: (
        rng.normal(size=n) * rng.choice([1, 30], n, p=[0.97, 0.03])
    ),
    "two values": lambda rng, n: rng.choice([-1.0, 1.0], n) + 0.1 * rng.normal(size=n),
}
SETTINGS = [
    {},
    {"covariance": "diagonal"},
    {"method": "ngvi_explicit"},
    {"prior_scale": "auto"},
    {"forgetting": "auto"},
]


def table(noise, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + NOISES[noise](rng, n)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_coverage_of_other_errors(noise, setting):
    """Intervals of 50 and 90 % of new rows."""
    X, y = table(noise)
    model = OnlineVIRegressor(random_state=0, **setting).fit(X[:3000], y[:3000])
    q = model.predict_quantiles(X[3000:], LEVELS)
    y = y[3000:]
    assert np.mean((q[:, 0] <= y) & (y <= q[:, 3])) == pytest.approx(0.9, abs=0.06)
    assert np.mean((q[:, 1] <= y) & (y <= q[:, 2])) == pytest.approx(0.5, abs=0.09)


def conjugate(model, X, y):
    """Return the noise variance of an exact posterior, and its degrees of freedom."""
    Z = np.column_stack([np.ones(len(X)), X - X[0]])
    precision = Z.T @ Z
    used = np.linalg.solve(precision + np.diag(model._state.precisions[0]), precision)
    degrees = len(X) - np.trace(used)
    residuals = y - model.intercept_ - X @ model.coef_
    return residuals @ residuals / degrees, degrees


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-4, 1e3)])
@pytest.mark.parametrize("prior_scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(("n", "n_features"), [(3, 1), (6, 12), (12, 6), (300, 2)])
def test_noise_has_the_degrees_of_freedom_of_the_posterior(
    n, n_features, prior_scale, scale, shift
):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, n_features))
    y = scale * (X[:, 0] + rng.normal(size=n)) + shift
    X = (X - shift) / scale
    model = OnlineVIRegressor(n_fourier=0, prior_scale=prior_scale).fit(X, y)
    noise, _ = conjugate(model, X, y)
    assert_allclose(model.noise_variance_, noise, rtol=1e-3)


@pytest.mark.parametrize("n", [3, 15, 200, 3000])
def test_normal_errors_have_students_quantiles(n):
    X, y = table("normal", n, seed=1)
    model = OnlineVIRegressor(n_fourier=0).fit(X, y)
    mean, std = model.predict(X[:5], return_std=True)
    degrees = max(conjugate(model, X, y)[1], min(n - 1, 1.5))
    quantiles = student.ppf(LEVELS, degrees)
    expected = mean[:, None] + std[:, None] * quantiles
    assert_allclose(model.predict_quantiles(X[:5], LEVELS), expected, rtol=1e-6)


@pytest.mark.parametrize("noise", ["Student", "exponential"])
def test_quantiles_follow_the_units_and_the_direction_of_the_target(noise):
    X, y = table(noise)
    found = OnlineVIRegressor(random_state=0).fit(X, y).predict_quantiles(X[:5], LEVELS)
    other = (
        OnlineVIRegressor(random_state=0)
        .fit(X, 3.0 - 1e3 * y)
        .predict_quantiles(X[:5], LEVELS)
    )
    assert_allclose(other[:, ::-1], 3.0 - 1e3 * found, rtol=1e-6)


@pytest.mark.parametrize("noise", NOISES)
def test_quantiles_increase_with_the_level(noise):
    X, y = table(noise)
    levels = np.concatenate([[1e-12, 1e-6], np.linspace(0.001, 0.999, 999), [1 - 1e-9]])
    asked = np.vstack([X[:2], 3.0 * X[:2], 30.0 * X[:2]])
    found = OnlineVIRegressor(random_state=0).fit(X, y).predict_quantiles(asked, levels)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0.0).all()


@pytest.mark.parametrize("noise", NOISES)
def test_quantiles_far_beyond_the_range_are_not_those_of_errors_within(noise):
    """What the line would add there has no part in the errors."""
    X, y = table(noise)
    model, far = OnlineVIRegressor(random_state=0).fit(X, y), 1e6 * X[:2]
    mean, std = model.predict(far, return_std=True)
    share = np.square((far @ model.coef_ + model.intercept_ - mean) / std)
    within, found = (model.predict_quantiles(asked, LEVELS) for asked in (X[:2], far))
    errors = (within.T - model.predict(X[:2])) / model.predict(X[:2], return_std=True)[
        1
    ]
    expected = share * norm.ppf(LEVELS)[:, None] + (1.0 - share) * errors
    assert_allclose((found.T - mean) / std, expected, rtol=0.02, atol=0.01)
    assert (share > 0.3).all()


@pytest.mark.parametrize("n_features", [3, 10, 25, 60])
@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("n_fourier", [0, "auto"])
def test_coverage_with_few_rows_for_each_feature(n_features, strength, n_fourier):
    """Of new rows, by models of one to four rows for each of some features."""
    covered = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = n_features * (1 + seed % 4) + 1
        X = rng.normal(size=(n + 200, n_features))
        y = strength * X @ rng.normal(size=n_features) + rng.normal(size=n + 200)
        low, high = (
            OnlineVIRegressor(n_fourier=n_fourier, random_state=0)
            .fit(X[:n], y[:n])
            .predict_quantiles(X[n:])
            .T[::2]
        )
        covered.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    assert 0.86 < np.mean(covered) < (0.99 if n_fourier == 0 else 1.0)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e3, -1e6)])
def test_noise_of_a_network_is_that_of_late_rows(scale, shift):
    """Its early errors are those of weights that were not learnt yet."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 8))
    y = scale * (X.sum(axis=1) + 0.2 * rng.normal(size=2400)) + shift
    model = OnlineVIMLPRegressor(random_state=0).fit(X[:2000], y[:2000])
    mean, std = model.predict(X[2000:], return_std=True)
    assert 0.8 < np.sqrt(np.mean(std**2) / np.mean((y[2000:] - mean) ** 2)) < 1.2


@pytest.mark.filterwarnings("ignore:.*predictions do not extrapolate")
@pytest.mark.parametrize("setting", [{}, *SETTINGS[3:]], ids=str)
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-3, 1e4)])
def test_intervals_beyond_the_range_of_the_rows_reach_to_the_line(
    setting, scale, shift
):
    """Of later rows, if a feature is a time."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(600.0), rng.normal(size=600)])
    y = 0.05 * X[:, 0] + X[:, 1] + rng.normal(size=600)
    X, y = scale * X + shift, scale * y - shift
    model = OnlineVIRegressor(random_state=0, **setting).fit(X[:400], y[:400])
    low, high = model.predict_quantiles(X[400:], [0.05, 0.95]).T
    assert np.mean((low <= y[400:]) & (y[400:] <= high)) > 0.85
    inside = model.predict(X[300:400], return_std=True)[1]
    assert np.all(inside < 1.3 * scale)


def test_a_given_noise_is_kept():
    X, y = table("Cauchy")
    model = OnlineVIRegressor(random_state=0, inverse_temperature=0.5).fit(X, y)
    mean, std = model.predict(X[:1], return_std=True)
    found = model.predict_quantiles(X[:1], [0.1586552539])
    assert_allclose(found, [mean - std], rtol=1e-6)


@pytest.mark.parametrize(
    "cell", [0, names.N_SIDE - 1, names.N_SIDE, 2 * names.N_SIDE - 1]
)
def test_errors_in_one_cell(cell):
    """Quantiles are finite and increase, even if all errors are gross or zero."""
    numbers = np.zeros(names.N_NUMBERS + 2 * names.N_SIDE)
    numbers[names.N_NUMBERS + cell] = 1e6
    numbers[names.ERROR_UNIT] = 0.5
    levels = np.linspace(0.01, 0.99, 99)
    normal = student.ppf(levels, 1000)
    found = normal.copy()
    move_to_observed(numbers, 1.0, levels, found)
    assert (found != normal).all()
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0.0).all()


def test_quantiles_are_those_of_the_rows_learnt_and_the_levels_asked_for():
    """They are kept from one call to the next, but not beyond a row or other levels."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + rng.exponential(size=400)
    model = OnlineVIRegressor(random_state=0).fit(X[:200], y[:200])
    for row in range(200, 210):
        for levels in ([0.05, 0.95], [0.1, 0.9], 0.5, [0.05, 0.95]):
            found = model.predict_quantiles(X[:5], levels)
            fresh = pickle.loads(pickle.dumps(model)).predict_quantiles(X[:5], levels)
            assert_array_equal(found, fresh)
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    model.predict_quantiles(X, [0.05, 0.95])
    X, y = -X[:210], 3.0 * y[:210]  # as many rows as the model has learnt
    other = clone(model).fit(X, y)
    model.fit(X, y)
    same = model.predict_quantiles(X, [0.05, 0.95])
    assert_array_equal(same, other.predict_quantiles(X, [0.05, 0.95]))
