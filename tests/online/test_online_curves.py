"""Warnings of relations that a linear model cannot follow."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from skpacbayes.online import EWARegressor, OnlineVIRegressor
from skpacbayes.online._curves import RIDGES, SCALE, curved_share

CURVED = "^The model is linear, and a smooth function"
MODELS = [
    OnlineVIRegressor(n_fourier=0),
    OnlineVIRegressor(n_fourier=0, covariance="diagonal"),
    OnlineVIRegressor(n_fourier=0, loss="absolute_error"),
    OnlineVIRegressor(n_fourier=0, loss="quantile"),
    OnlineVIRegressor(n_fourier=0, loss="poisson"),
    OnlineVIRegressor(n_fourier=0, method="sva"),
    OnlineVIRegressor(n_fourier=0, prior_scale="auto"),
]


def learn_in_cuts(model, X, y):
    for start in range(0, len(y), 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])


def relation(model, curved, n=600):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 3))
    score = (X[:, 0] ** 2 if curved else X[:, 0]) + X[:, 1]
    if model.loss == "poisson":
        return X, rng.poisson(np.exp(score)).astype(float)
    return X, score + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e3, 1e4), (1e-3, -7.0)])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_curve_is_named_and_a_line_is_not(model, unit, origin):
    for curved in (True, False):
        X, y = relation(model, curved)
        X = unit * X + origin
        if model.loss != "poisson":
            y = unit * y + origin
        if not curved:
            clone(model).fit(X, y)  # a warning is an error
            continue
        with pytest.warns(UserWarning, match=CURVED):
            clone(model).fit(X, y)
        with pytest.warns(UserWarning, match=CURVED):
            learn_in_cuts(clone(model), X, y)


LINE = OnlineVIRegressor(n_fourier=0)
CURVES = OnlineVIRegressor(random_state=0)
AGGREGATES = {
    "default": EWARegressor(),
    "absolute error": EWARegressor(loss="absolute_error"),
    "with a gradient": EWARegressor([("line", LINE), ("sgd", SGDRegressor())]),
    "gradients": EWARegressor([("sgd", SGDRegressor(random_state=0))]),
}


@pytest.mark.parametrize("kind", AGGREGATES)
def test_an_average_of_lines_cannot_follow_a_curve(kind):
    """Of lines that a stream learns row by row, some must remember rows."""
    model = AGGREGATES[kind]
    X, y = relation(LINE, curved=False)
    clone(model).fit(X, y)  # a warning is an error
    learn_in_cuts(clone(model), X, y)
    X, y = relation(LINE, curved=True)
    with pytest.warns(UserWarning, match=CURVED):
        clone(model).fit(X, y)
    if kind != "gradients":
        with pytest.warns(UserWarning, match=CURVED):
            learn_in_cuts(clone(model), X, y)


def test_an_average_that_follows_a_curve_is_no_line():
    X, y = relation(LINE, curved=True)
    EWARegressor([("line", LINE), ("curves", CURVES)]).fit(X, y)
    frozen = FrozenEstimator(clone(CURVES).fit(X, y))
    EWARegressor([("curves", frozen)]).fit(X, y)
    frozen = FrozenEstimator(Ridge().fit(X, y))
    EWARegressor([("line", frozen), ("curves", CURVES)]).fit(X, y)
    with pytest.warns(UserWarning, match=CURVED):
        EWARegressor([("line", frozen)]).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_curves_that_are_learnt_slowly_are_told_as_such(seed):
    """The noise is small, so that coefficients are many times as large as it is."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (3000, 2))
    noise, time = 0.1 * rng.normal(size=3000), np.linspace(0, 1, 3000)
    with pytest.warns(UserWarning, match="follow a curve slowly"):
        slow = clone(CURVES).fit(X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + noise)
    with warnings.catch_warnings(action="ignore"):
        wide = clone(CURVES).set_params(prior_scale="auto")
        wide.fit(X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + noise)
    new = rng.uniform(-3, 3, (500, 2))
    truth = np.sin(2 * new[:, 0]) + new[:, 1] ** 2
    errors = [np.square(m.predict(new) - truth).mean() for m in (slow, wide)]
    assert errors[1] < 0.7 * errors[0]
    for y in (np.sin(2 * X[:, 0] + 3 * time), X[:, 0] ** 2 * (1 + 2 * time)):
        with pytest.warns(UserWarning, match="Either the relation changes") as caught:
            clone(CURVES).fit(X, y + noise)
        assert "a smooth function" not in str(caught[0].message)


@pytest.mark.slow
def test_the_share_is_that_of_a_gaussian_process():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=120)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    errors = y - y.mean()
    errors -= Z @ np.linalg.lstsq(Z, errors, rcond=None)[0]
    left = []
    for ridge in RIDGES:
        process = GaussianProcessRegressor(
            RBF(np.sqrt(2) / SCALE), alpha=ridge, optimizer=None
        )
        predicted = cross_val_predict(process, Z, errors, cv=LeaveOneOut())
        left.append(np.square(errors - predicted).sum())
    expected = 1 - min(left) / np.square(errors).sum()
    assert expected > 0.5
    np.testing.assert_allclose(curved_share(X, y)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 5, 30])
def test_noise_is_no_curve(d):
    """Also where it has heavy tails, and where rows are there several times.

    The share is below 3.5 standard deviations of that of normal noise: 2e-4 each.
    """
    for seed in range(5):
        rng = np.random.default_rng([d, seed])
        for n in (130, 500):
            X = rng.normal(size=(n, d))
            for noise in (rng.normal(size=n), rng.standard_t(2, size=n)):
                copies = rng.integers(n, size=n)
                for rows in (slice(None), copies):
                    assert curved_share(X[rows], noise[rows]) == (0.0, 0.0)


def test_noise_that_is_too_small_to_matter_may_be_a_curve():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (300, 2))
    y = X @ [5.0, 1.0] + 0.1 * X[:, 0] ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineVIRegressor(n_fourier=0).fit(X, y)


@pytest.mark.parametrize("rate", [0.001, 0.002, 0.01])
def test_rare_counts_are_no_curve(rate):
    """The rows that are looked at may have no event, and errors that are a curve."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3000, 3))
        y = rng.poisson(rate * np.exp(0.3 * X[:, 0])).astype(float)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            OnlineVIRegressor(loss="poisson", n_fourier=0).fit(X, y)
