"""Rates of counts of any size, against the maximum of the posterior."""

import warnings

import numpy as np
import pytest

from skpacbayes import OnlineVIRegressor

MEANS = (1e-3, 1e-1, 1.0, 1e2, 1e4, 1e6, 1e7)
LINE = {"loss": "poisson", "n_fourier": 0}


def rows_of(mean, seed=0, exposed=False, overdispersion=0.0, effects=(0.3, -0.2)):
    """Rows, counts over exposures, and exposures: 1, or of about 10 or a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 2))
    exposures = np.exp(2.0 * rng.normal(size=2000)) if exposed else np.ones(2000)
    expected = mean * exposures * np.exp(X @ effects)
    if overdispersion:
        expected *= rng.gamma(1.0 / overdispersion, overdispersion, 2000)
    return X, rng.poisson(expected) / exposures, exposures


def best_scores(X, y, exposures):
    """Log rates of the maximum of the posterior, and their standard deviations."""
    Z = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])
    prior = np.r_[0.01, np.ones(X.shape[1])]
    mean = np.zeros(Z.shape[1])
    mean[0] = np.log(exposures @ y / exposures.sum())
    for _ in range(50):
        expected = exposures * np.exp(Z @ mean)
        information = (Z.T * expected) @ Z + np.diag(prior)
        gradient = Z.T @ (exposures * y - expected) - prior * mean
        mean = mean + np.linalg.solve(information, gradient)
    assert abs(gradient).max() < 1e-6 * expected.sum()
    variances = np.einsum("ij,ij->i", Z @ np.linalg.inv(information), Z)
    return Z @ mean, np.sqrt(variances)


def distance(model, X, best, deviations):
    """Root mean square of the distance of log rates, in standard deviations."""
    return np.sqrt(np.square((np.log(model.predict(X)) - best) / deviations).mean())


@pytest.mark.parametrize("exposed", [False, True], ids=["rows", "exposures"])
@pytest.mark.parametrize("mean", MEANS)
def test_rates_are_those_of_the_posterior(mean, exposed):
    """One pass is within a tenth of a standard deviation, and 3 / sqrt(events).

    The latter is by how much the mean of a skew posterior differs from its mode.
    """
    X, y, exposures = rows_of(mean, exposed=exposed)
    best, deviations = best_scores(X, y, exposures)
    near = 0.1 + 3.0 / np.sqrt(max(exposures @ y, 1.0))
    for rows in (X, X + 1e4, 1e-3 * X, 1e3 * X):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The weights")  # a row of large exposure
            warnings.filterwarnings("ignore", "One row has")
            model = OnlineVIRegressor(**LINE).fit(rows, y, sample_weight=exposures)
        assert distance(model, rows, best, deviations) < near


@pytest.mark.parametrize("mean", MEANS)
def test_rate_without_features_is_that_of_the_gamma_posterior(mean):
    """Within 3 / events of the posterior mean of the log rate, which is about that."""
    _, y, exposures = rows_of(mean, exposed=True, effects=(0.0, 0.0))
    events = y @ exposures
    for column in (0.0, 1.0, 1e6):
        X = np.full((2000, 1), column)
        model = OnlineVIRegressor(**LINE).fit(X, y, sample_weight=exposures)
        error = np.log(model.predict(X[:1])[0] * exposures.sum() / events)
        assert abs(error) < 3.0 / events + 1e-8


@pytest.mark.parametrize("exposed", [False, True], ids=["rows", "exposures"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("mean", [1.0, 1e2, 1e4, 1e6, 1e7])
def test_rough_rates_are_told(mean, covariance, exposed):
    """Of 1 % that matters a warning tells, and only of what is rough."""
    X, y, exposures = rows_of(mean, exposed=exposed)
    best, deviations = best_scores(X, y, exposures)
    model = OnlineVIRegressor(**LINE, covariance=covariance)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=exposures)
    told = any("The predicted rates are off" in str(w.message) for w in caught)
    error = np.sqrt(np.square(np.log(model.predict(X)) - best).mean())
    apart = distance(model, X, best, deviations)
    if told:
        assert error > 0.0025
        assert apart > 4.0
    else:
        assert error < 0.01 or apart < 12.0


def test_rough_rates_are_told_on_a_stream():
    X, y, _ = rows_of(1e6)
    model = OnlineVIRegressor(**LINE, covariance="diagonal")
    told = []
    for start in range(0, 2000, 100):
        some = slice(start, start + 100)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X[some], y[some])
        told += [str(w.message) for w in caught]
    assert any("The predicted rates are off by" in message for message in told)


def test_overdispersed_rates_are_not_called_rough():
    """Counts that vary by 30 % determine the rates less well than Poisson counts."""
    for seed in range(3):
        X, y, _ = rows_of(1e6, seed, overdispersion=0.1)
        OnlineVIRegressor(**LINE, covariance="diagonal").fit(X, y)  # without a warning
