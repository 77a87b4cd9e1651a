"""The prior takes the scale of the largest evidence: small differences are learnt."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression
from states import assert_same_state

from skpacbayes import EWARegressor, OnlineVIRegressor
from skpacbayes.online import _prior_by_evidence as by_evidence


def parts_and_total(n_rows, seed=0, n_others=0, noise=0.3):
    """Rows of parts, their total and other columns; y is what the total has more."""
    rng = np.random.default_rng(seed)
    parts, more = rng.gamma(4.0, size=(n_rows, 3)), 0.05 * rng.normal(size=n_rows)
    total, others = parts.sum(axis=1) + more, rng.normal(size=(n_rows, n_others))
    X = np.column_stack([parts, total, others])
    return X, more / 0.05 + noise * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    ("n_others", "n_rows", "options"),
    [
        (0, 64, {}),
        (16, 600, {}),
        (16, 300, {"prior_scale": "auto"}),
        (70, 1100, {}),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_a_small_difference_is_learnt(n_others, n_rows, options, shift):
    """Nearly as by least squares, also on rows beyond the range of a column.

    Several scales clip such rows column by column, and to the range of the targets.
    """
    X, y = parts_and_total(n_rows + 2000, n_others=n_others)
    X = shift + X
    learnt, new = slice(n_rows), slice(n_rows, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineVIRegressor(n_fourier=0, **options).fit(X[learnt], y[learnt])
    assert model.prior_scales_[-1] >= 10.0
    errors = y[new] - model.predict(X[new])
    least = y[new] - LinearRegression().fit(X[learnt], y[learnt]).predict(X[new])
    more = 0.02 if len(model.prior_scales_) == 1 else 0.2
    assert np.square(errors).mean() < 1.2 * np.square(least).mean() + more
    low, high = model.predict_quantiles(X[new], [0.05, 0.95]).T
    assert 0.82 < np.mean((low < y[new]) & (y[new] < high)) < 0.97
    if n_others:
        certificate = model.certificate()
        assert certificate.observed == model.cumulative_loss_ <= certificate.bound


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [1.0, np.array([1e-3, 1e3, 1.0, 1e3])])
def test_the_posterior_is_that_of_the_other_prior(fit_intercept, scale):
    X, y = parts_and_total(150)
    X[0], y[0] = [4.0, 4.0, 4.0, 12.0], 0.0  # without an intercept, 0 is predicted here
    X = scale * X
    model = OnlineVIRegressor(n_fourier=0, fit_intercept=fit_intercept).fit(X, y)
    (wide,) = model.prior_scales_
    assert wide > 1.0
    same = OnlineVIRegressor(
        n_fourier=0, fit_intercept=fit_intercept, prior_scale=wide
    ).fit(X, y)
    assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    assert_allclose(model.coef_std_, same.coef_std_, rtol=1e-6)
    assert_allclose(model.noise_variance_, same.noise_variance_, rtol=1e-6)
    for found, expected in zip(
        model.predict(X, return_std=True), same.predict(X, return_std=True), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def evidence_of(X, y, scale, prior):
    """Return the log evidence of a scale but for a constant, from the covariance of y.

    prior : precisions of the coefficients at scale 1. The noise is integrated out; the
    flat intercept by contrasts.
    """
    n_rows = len(y)
    contrasts = np.linalg.qr(np.column_stack([np.ones(n_rows), np.eye(n_rows)]))[0]
    Z, y = contrasts[:, 1:].T @ X, contrasts[:, 1:].T @ y
    covariance = np.eye(n_rows - 1) + scale**2 * (Z / prior) @ Z.T
    squares = y @ np.linalg.solve(covariance, y)
    return -0.5 * (np.linalg.slogdet(covariance)[1] + (n_rows - 1) * np.log(squares))


@pytest.mark.parametrize("noise", [0.03, 0.3, 1.0, 2.0, 4.0])
def test_the_scale_has_the_largest_evidence(noise):
    X, y = parts_and_total(32, noise=noise)
    before = OnlineVIRegressor(n_fourier=0, prior_scale=1.0).fit(X, y)
    prior = before._state.precisions[0, 1:]
    scales = np.append(by_evidence.SCALES, 1.0)
    evidence = np.array([evidence_of(X, y, scale, prior) for scale in scales])
    best = evidence.argmax()
    clear = evidence[best] > evidence[-1] + by_evidence.CLEAR
    model = OnlineVIRegressor(n_fourier=0).fit(X, y)
    assert model.prior_scales_.tolist() == [scales[best] if clear else 1.0]
    assert clear or noise > 0.3


@pytest.mark.filterwarnings("ignore:.* predictions do not extrapolate")
def test_however_rows_are_split_and_kept():
    X, y = parts_and_total(200)
    whole, pieces, single = (OnlineVIRegressor(n_fourier=0) for _ in range(3))
    whole.fit(X, y)
    for rows in np.array_split(np.arange(200), 9):
        pieces = pickle.loads(pickle.dumps(pieces.partial_fit(X[rows], y[rows])))
    for t in range(200):
        single.partial_fit(X[t : t + 1], y[t : t + 1])
    assert whole.prior_scales_ > 1.0
    assert_same_state(pieces, whole)
    assert_same_state(single, whole)
    far = 1.2 * X
    assert_array_equal(pieces.predict(far), whole.predict(far))


@pytest.mark.parametrize(
    "options",
    [
        {"prior_scale": 1.0},
        {"forgetting": 0.001},
        {"inverse_temperature": 1.0},
        {"standardize": False},
    ],
)
def test_where_it_is_not_chosen(options):
    X, y = parts_and_total(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OnlineVIRegressor(n_fourier=0, **options).fit(X, y)
    assert model.prior_scales_.tolist() == [1.0]


def test_ordinary_columns_keep_the_prior():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 6)) + rng.normal(size=(150, 1))
        y = X @ rng.normal(size=6) + rng.choice([1.0, 3.0]) * rng.normal(size=150)
        assert OnlineVIRegressor(n_fourier=0).fit(X, y).prior_scales_.tolist() == [1.0]


def test_targets_without_noise():
    """Intervals contain the targets, and are as narrow as these are exact."""
    X, y = parts_and_total(400, noise=0.0)
    X += np.array([0.0, 5.0, 0.0, -1e3])
    model = OnlineVIRegressor(n_fourier=0).fit(X[:200], y[:200])
    low, high = model.predict_quantiles(X[200:], [0.05, 0.95]).T
    assert np.mean((low <= y[200:]) & (y[200:] <= high)) > 0.8
    assert np.median(high - low) < 0.01


@pytest.mark.parametrize("n_rows", [40, 120, 300])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("first", [1.0, 100.0])
def test_intervals_of_targets_nearly_without_noise(n_rows, noise, first):
    """Whatever the errors of rounding; rows beyond the range of a column included."""
    for seed in range(6):
        rng = np.random.default_rng([seed, 8, n_rows])
        X = rng.normal(size=(n_rows + 500, 8))
        X[0] *= first
        y = X @ rng.normal(size=8) + noise * rng.normal(size=len(X))
        model = OnlineVIRegressor(n_fourier=0).fit(X[:n_rows], y[:n_rows])
        assert model.prior_scales_ > 1.0
        low, high = model.predict_quantiles(X[n_rows:], [0.05, 0.95]).T
        assert np.mean((low <= y[n_rows:]) & (y[n_rows:] <= high)) > 0.75


def test_an_average_begins_anew_with_the_other_prior():
    """Intervals are those of the posterior, which contains all later means."""
    covered = []
    for seed in range(4):
        X, y = parts_and_total(564, seed)
        model = OnlineVIRegressor(n_fourier=0, average=True).fit(X[:64], y[:64])
        low, high = model.predict_quantiles(X[64:], [0.05, 0.95]).T
        covered.append(np.mean((low <= y[64:]) & (y[64:] <= high)))
    assert 0.8 < np.mean(covered) < 0.97


def test_copies_of_columns():
    """Their coefficients are shared, whatever the scale."""
    X, y = parts_and_total(300)
    X = X[:, [0, 1, 2, 3, 3, 0]]
    X = np.column_stack([X, np.full(len(X), 5.0)])
    model = OnlineVIRegressor(n_fourier=0).fit(X, y)
    assert model.prior_scales_ > 1.0
    assert_allclose(model.coef_[3], model.coef_[4], rtol=1e-4)
    assert model.coef_[6] == 0.0
    assert np.square(y - model.predict(X)).mean() < 0.15


def test_experts_of_an_aggregate_keep_their_prior():
    X, y = parts_and_total(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EWARegressor([("line", OnlineVIRegressor(n_fourier=0))]).fit(X, y)
    assert model.estimators_[0].prior_scales_.tolist() == [1.0]
