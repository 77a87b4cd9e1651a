"""Online variational inference: laws, exact answers, coverage, drift, bad input."""

import contextlib
import copy
import datetime
import itertools
import math
import pickle
import re
from decimal import Decimal

import numba
import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose
from online_reference import Reference, kept_shares, standardised
from scipy.stats import binom
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle
from sklearn.utils._param_validation import InvalidParameterError
from states import assert_same_state, changes, state_of

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
    online,
)
from skpacbayes._kernels import online_full, online_predict
from skpacbayes._kernels.online_state import N_ROWS_BEFORE, UNIT_OF, UNITS
from skpacbayes.certificates import exponential_weights_terms
from skpacbayes.certificates.online import best_gaussian, expected_losses
from skpacbayes.online._expert_choice import FIRST_DROP, N_FOURIER, VANISHED

METHODS = ("ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el")
REGRESSORS = [OnlineVIRegressor, OnlineVIMLPRegressor]


def linear(n=300, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.logspace(-2, 3, d) + np.arange(d)
    return X, (X - np.arange(d)) @ (1 / np.logspace(-2, 3, d)) + noise * rng.normal(
        size=n
    )


# The estimators are the reference on standardised rows.


@pytest.mark.slow
def test_diagonal_is_the_reference():
    X, y = linear()
    Z = np.column_stack([np.ones(len(X)), standardised(X, np.ones(len(X)), math.inf)])
    reference = Reference("ngvi", "squared_error", 5, intercept=True)
    kept = kept_shares(X, np.ones(len(X)))
    assert np.any(kept < 1.0)
    for z, target, share in zip(Z, y, kept, strict=True):
        reference.learn(z, target, kept=share)
    model = OnlineVIRegressor(n_fourier=0, covariance="diagonal").fit(X, y)
    assert_allclose(model.cumulative_loss_, reference.loss_sum, rtol=1e-9)
    assert_allclose(model.coef_ * X.std(axis=0), reference.m[1:], rtol=1e-8)
    noise = reference.residuals / reference.count
    assert_allclose(model.noise_variance_, noise, rtol=1e-9)
    new = 2 * X[:50] - 1  # each as it would be if the stream ended with it
    mean, std = model.predict(new, return_std=True)
    with_new = [standardised(np.vstack([X, x]), np.ones(301), math.inf) for x in new]
    now = np.column_stack([np.ones(50), [Z[-1] for Z in with_new]])
    assert_allclose(mean, now @ reference.m, rtol=1e-8, atol=1e-9)
    assert_allclose(std, np.sqrt(noise * (1 + now**2 @ (1 / reference.P))), rtol=1e-8)
    assert_allclose(
        model.coef_std_ * X.std(axis=0), np.sqrt(noise / reference.P[1:]), rtol=1e-8
    )


def test_default_is_ridge_on_standardised_features():
    """The penalty is that of the running scale, which may lag behind by a fifth."""
    X, y = linear()
    scale = X.std(axis=0)
    model = OnlineVIRegressor(random_state=0).fit(X, y)
    penalties = [Ridge(alpha=a).fit(X / scale, y).coef_ for a in (1 / 1.2, 1.0, 1.3)]
    low, high = np.min(penalties, axis=0), np.max(penalties, axis=0)
    assert np.all(
        (low - 1e-3 <= model.coef_ * scale) & (model.coef_ * scale <= high + 1e-3)
    )
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-9)
    far = X.max(axis=0) + 1000 * scale
    assert_allclose(model.predict([far]), model.predict([X.max(axis=0)]))
    _, std = model.predict([far, X.max(axis=0)], return_std=True)
    assert std[0] > 10 * std[1]


def test_cumulative_loss_is_that_of_predict():
    X, y = linear(60)
    for options in (
        {},
        {"clip": 1.0},
        {"forgetting": 0.01},
        {"covariance": "diagonal"},
        {"covariance": "diagonal", "clip": 1.0},
    ):
        model, total = (
            OnlineVIRegressor(random_state=0, **options).partial_fit(X[:1], y[:1]),
            y[0] ** 2,
        )
        for t in range(1, 60):
            before = model._state.precisions[0, 1:].copy()
            guess = model.predict(X[t : t + 1])[0]
            model.partial_fit(X[t : t + 1], y[t : t + 1])
            loss = model.cumulative_loss_ - total
            # a row may change the scale of the prior, or of the clip, before its loss
            full = "covariance" not in options
            if np.array_equal(before, model._state.precisions[0, 1:]) and not (
                full and "clip" in options
            ):
                assert_allclose(loss, (guess - y[t]) ** 2, rtol=1e-7, atol=1e-9)
            total += loss


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("method", METHODS)
def test_classifier_is_one_against_the_others(method, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = rng.integers(3, size=80)
    weights = rng.choice([0.0, 1.0, 2.0], 80)
    Z = np.column_stack([np.ones(80), standardised(X, weights, 1.0)])
    kept = kept_shares(X, weights)
    natural = method.startswith("ngvi")
    rate = "auto" if natural else 0.1
    options = {"learning_rate": rate, "prior_scale": 1.0, "clip": 1.0}
    options |= {"multi_class": "one_vs_rest", "forgetting": 0.0}
    model = OnlineVIClassifier(method, loss=loss, **options, n_fourier=0)
    model.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    total = 0.0
    for k in range(3):
        reference = Reference(method, loss, 4, learning_rate=rate)
        for z, label, weight, share in zip(Z, y, weights, kept, strict=True):
            reference.learn(z, 1.0 if label == k else -1.0, weight, share)
        centre = np.average(X, axis=0, weights=weights)
        scale = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights))
        assert_allclose(model.coef_[k] * scale, reference.m[1:], rtol=1e-8, atol=1e-10)
        total += reference.loss_sum
    assert_allclose(model.cumulative_loss_, total, rtol=1e-9)


# Exact answers.


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_full_covariance_is_ridge(fit_intercept):
    X, y = load_diabetes(return_X_y=True)
    X = 30 * X
    model = OnlineVIRegressor(
        standardize=False, prior_scale=0.5, fit_intercept=fit_intercept
    ).fit(X, y)
    ridge = Ridge(alpha=4.0, fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    assert_allclose(model.coef_, ridge.coef_, rtol=1e-8)
    assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-8)


def test_known_noise_is_exact_bayes():
    """One parameter, noise variance 1/2: the posterior and the paper's temperature."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    options = {"standardize": False, "fit_intercept": False, "inverse_temperature": 1.0}
    precision = 1 + 2 * (x**2).sum()
    for covariance in ("full", "diagonal"):
        model = OnlineVIRegressor(random_state=0, covariance=covariance, **options).fit(
            x, y
        )
        assert_allclose(model.coef_, 2 * x[:, 0] @ y / precision, rtol=1e-10)
        assert_allclose(model.coef_std_, precision**-0.5, rtol=1e-10)
        assert model.noise_variance_ == 0.5


def test_integer_weights_are_repeated_rows_where_bayes_is_exact():
    X, y = linear(100)
    counts = np.random.default_rng(0).integers(0, 4, 100)
    counts[0] = 1  # the row that the flat prior of the intercept takes
    options = {"standardize": False, "prior_scale": 0.01}
    weighted = OnlineVIRegressor(n_fourier=0, **options).fit(X, y, sample_weight=counts)
    repeated = OnlineVIRegressor(n_fourier=0, **options).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8, atol=1e-8)
    assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-8)


def test_invariants_of_the_paper():
    X, y = linear(200, d=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    plain = {"standardize": False, "fit_intercept": False}
    box = {"mean_bound": 20.0, "scale_bound": 1.0}

    def run(method, **options):
        return (
            OnlineVIRegressor(method, random_state=0, **plain, **options)
            .fit(X, y)
            .coef_
        )

    gradient = run("oga", learning_rate=0.01)
    assert_allclose(run("oga_el", learning_rate=0.01), gradient, rtol=1e-10)
    assert_allclose(run("sva", learning_rate=0.01), gradient, rtol=1e-10)
    anytime = run("oga", learning_rate="invsqrt", **box)
    assert_allclose(run("svb", learning_rate="invsqrt", **box), anytime, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize("method", ["ngvi", "ngvi_explicit", "sva", "svb"])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_uncertainty_only_shrinks_without_forgetting(method, loss):
    X, y = load_breast_cancer(return_X_y=True)
    rate = "auto" if method.startswith("ngvi") else 0.05
    model = OnlineVIClassifier(method, loss=loss, learning_rate=rate, n_fourier=0)
    if method == "ngvi" and loss == "log_loss":
        model.set_params(prior_scale=1.0, forgetting=0.0)  # one joint posterior
    last = np.full(31, np.inf)
    for start in range(0, 569, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
        variances = model._state.variances[0].copy()
        if method == "ngvi" and loss == "log_loss":  # in the units of X
            # in the units of X, without the prior, whose precision follows the columns
            posterior = model._state.covariances[0]
            precision = np.linalg.inv(posterior[N_ROWS_BEFORE:])
            precision[np.diag_indices(31)] -= posterior[UNITS]
            variances = (1 - 1e-6) / precision.diagonal()
        elif method == "ngvi":  # in one unit: that of a feature may grow
            variances[1:] /= model._state.moments[UNIT_OF]
        assert np.all(variances <= last)
        last = variances


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_equivariance(covariance, loss):
    """X -> a X + b and y -> a y + b leave the predictions what they are, to 1e-9."""
    if loss == "absolute_error" and covariance == "full":
        pytest.skip("a full covariance needs the squared loss")
    X, y = linear()
    options = {"covariance": covariance, "loss": loss}
    plain = OnlineVIRegressor(random_state=0, **options).fit(X, y)
    a, b = np.array([1e3, -1e-3, 2.0, 0.5]), np.array([1.0, -5.0, 100.0, 0.0])
    moved = OnlineVIRegressor(random_state=0, **options).fit(a * X + b, y)
    span = np.ptp(y)
    expected = plain.predict(X)
    assert_allclose(moved.predict(a * X + b), expected, rtol=0, atol=1e-9 * span)
    scaled = OnlineVIRegressor(random_state=0, **options).fit(X, 1e3 * y - 1e4)
    assert_allclose((scaled.predict(X) + 1e4) / 1e3, expected, atol=1e-9 * span)
    if loss == "squared_error":
        _, std = plain.predict(X, return_std=True)
        assert_allclose(scaled.predict(X, return_std=True)[1] / 1e3, std, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The values of column")
@pytest.mark.filterwarnings("ignore:The errors of recent rows")
@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize("change", ["begins late", "grows", "grows again and again"])
def test_a_feature_whose_scale_grows_is_learnt(change):
    """What it said in a small unit does not outweigh what it says in a large one."""
    rng = np.random.default_rng(0)
    before, known, n = 2000, 2500, 4000
    X = rng.normal(size=(n, 3))
    X[:before, 2] *= {"begins late": 0.0, "grows": 1e-2}.get(change, 1e-6)
    if change == "grows again and again":
        X[before : before + 100, 2] *= 1e-3
    target = X @ [1.0, 2.0, 5.0]
    model = OnlineVIRegressor(random_state=0, covariance="diagonal").fit(
        X[:known], target[:known]
    )
    assert model.score(X[known:], target[known:]) > 0.9
    y = (target + rng.logistic(size=n) > 0).astype(int)
    best = np.logaddexp(0.0, np.where(y == 1, -target, target))[known:].mean()
    for loss in ("hinge", "log_loss"):
        model = OnlineVIClassifier(loss=loss, random_state=0).fit(X[:known], y[:known])
        found = model.predict_proba(X[known:])[np.arange(n - known), y[known:]]
        assert -np.log(found).mean() - best < 0.1


def test_average_is_the_average_of_the_means():
    X, y = linear(60)
    Z = np.column_stack([np.ones(60), standardised(X, np.ones(60), math.inf)])
    reference = Reference("sva", "squared_error", 5, learning_rate="auto")
    means = []
    for z, target in zip(Z, y, strict=True):
        means.append(reference.m.copy())
        reference.learn(z, target)
    model = OnlineVIRegressor("sva", average=True).fit(X, y)
    mean = np.mean(means, axis=0)
    assert_allclose(model.coef_, mean[1:] / X.std(axis=0), rtol=1e-9)
    at_centre = model.predict([X.mean(axis=0)])
    assert_allclose(at_centre, mean[0], rtol=1e-9)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("method", ["ngvi", "ngvi_explicit"])
def test_an_average_follows_the_origin_of_the_target(method, covariance):
    """Before the first row an intercept of a flat prior has no mean to average."""
    if (method, covariance) == ("ngvi_explicit", "full"):
        return
    X, y = linear(60)
    model = OnlineVIRegressor(
        method, covariance=covariance, average=True, n_fourier=0, random_state=0
    )
    expected = model.fit(X, y).predict(X) + 1e4
    assert_allclose(model.fit(X, y + 1e4).predict(X), expected, atol=1e-7)


# Statistics.


@pytest.mark.slow
def test_coverage_of_the_intervals():
    """200 replicates of 20 rows and a new one: 90 % intervals that hold 90 %.

    The count is binomial, by the exactness of the normal-gamma posterior up to the
    running standardisation; the test fails by chance with probability 1e-4.
    """
    inside = 0
    for seed in range(400):
        X, y = linear(40, d=2, seed=seed)
        model = OnlineVIRegressor(random_state=0, prior_scale=3.0).fit(X[:-1], y[:-1])
        low, high = model.predict_quantiles(X[-1:], [0.05, 0.95])[0]
        inside += low < y[-1] < high
    assert binom.ppf(5e-5, 400, 0.88) <= inside <= binom.isf(5e-5, 400, 0.96)


def test_one_pass_is_as_good_as_bayesian_ridge():
    X, y = load_diabetes(return_X_y=True)
    mean, std = OnlineVIRegressor(random_state=0).fit(X, y).predict(X, return_std=True)
    batch, batch_std = BayesianRidge().fit(X, y).predict(X, return_std=True)
    assert np.mean((y - mean) ** 2) < 1.05 * np.mean((y - batch) ** 2)
    assert_allclose(std.mean(), batch_std.mean(), rtol=0.05)


def flipping(n=4000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, d)), rng.normal(size=d)
    sign = np.where(np.arange(n) < n // 2, 1, -1)
    return X, sign * (X @ theta) + rng.normal(size=n)


@pytest.mark.filterwarnings("ignore:The errors of recent rows")
def test_forgetting_chooses_itself():
    """At most 10 % worse than the best fixed rate, with drift and without."""
    for X, y in (flipping(), linear(4000)):
        fixed = [
            OnlineVIRegressor(random_state=0, forgetting=rate)
            .fit(X, y)
            .cumulative_loss_
            for rate in (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
        ]
        model = OnlineVIRegressor(random_state=0, forgetting="auto").fit(X, y)
        assert model.cumulative_loss_ < 1.1 * min(fixed)
        assert_allclose(model.forgetting_weights_.sum(), 1.0)
    assert model.forgetting_weights_[:2].sum() > 0.9  # no drift in the last stream
    assert OnlineVIRegressor(random_state=0).fit(X, y).cumulative_loss_ == fixed[0]


AVERAGES = [
    OnlineVIRegressor(random_state=0, forgetting="auto"),
    OnlineVIRegressor(random_state=0, forgetting="auto", covariance="diagonal"),
    OnlineVIRegressor(random_state=0, prior_scale="auto"),
    OnlineVIRegressor(n_fourier="auto", random_state=0),
    OnlineVIRegressor(random_state=0, loss="absolute_error", forgetting="auto"),
    OnlineVIRegressor(random_state=0, loss="quantile", prior_scale="auto"),
    EWARegressor(),
    EWARegressor(loss="absolute_error"),
]


@pytest.mark.filterwarnings("ignore:The errors of recent rows predict")
@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize("model", AVERAGES, ids=repr)
def test_an_average_does_not_depend_on_the_origin(model):
    """What all models lose on row 1, before any is learnt, says nothing of them."""
    rng = np.random.default_rng(0)
    X, change = rng.normal(size=(600, 5)), np.arange(600)[:, None] < 300
    y = np.where(change, X, -X) @ [1.0, 2.0, 3.0, 0.0, 0.0] + rng.normal(size=600)
    expected = clone(model).fit(X, y).predict(X)
    for origin in (1e2, 1e4, -1e6):
        found = clone(model).fit(X, y + origin).predict(X)
        assert_allclose(found - origin, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_whose_meaning_changes_are_learnt_anew(loss, classes):
    """By default; where nothing changes, the loss is that of remembering."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 4))
    scores = X @ rng.normal(size=(4, classes)) + 0.5 * rng.gumbel(size=(1500, classes))
    still = scores.argmax(axis=1)
    turned = np.where(np.arange(1500) < 750, still, (still + 1) % classes)
    for y, factor in ((still, 1.01), (turned, 0.95)):
        model = OnlineVIClassifier(loss=loss, random_state=0).fit(X, y)
        remembers = clone(model).set_params(forgetting=0.0).fit(X, y)
        assert model.cumulative_loss_ < factor * remembers.cumulative_loss_
    assert model.score(X[-300:], y[-300:]) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The rows are nearly sorted by class")
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("classes", [2, 4])
def test_sorted_by_class_the_default_forgets_little_more_than_without(loss, classes):
    """As a table: a line predicts rows of all classes as without forgetting."""
    X, y = sorted_by_class(classes)
    line = {"loss": loss, "n_fourier": 0}
    model = OnlineVIClassifier(**line).fit(X[:1200], y[:1200])
    remembers = OnlineVIClassifier(**line, forgetting=0.0).fit(X[:1200], y[:1200])
    accuracy = model.score(X[1200:], y[1200:])
    assert accuracy > remembers.score(X[1200:], y[1200:]) - 0.02
    assert accuracy > 0.75


def sorted_by_class(classes):
    """Rows of which the first 1,200 come sorted by class."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 5))
    scores = X @ rng.normal(size=(5, classes))
    y = scores.argmax(axis=1)
    order = np.argsort(y[:1200], kind="stable")
    X[:1200], y[:1200] = X[:1200][order], y[:1200][order]
    return X, y


@pytest.mark.filterwarnings("ignore:.* predictions do not extrapolate")  # rows far away
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_forgetting_chooses_itself_under_heavy_tails(covariance):
    """A rate predicts within the range of the targets before the row.

    Without that an outlier among the features, met by a short memory, costs as much as
    a thousand rows: shown by the fixed rates.
    """
    rng = np.random.default_rng(0)
    X, outlier = rng.normal(size=(4000, 4)), rng.random(4000) < 0.004
    y = X.sum(axis=1) + rng.normal(size=4000)
    X[outlier, 0] *= 50
    fixed = [
        OnlineVIRegressor(n_fourier=0, forgetting=rate, covariance=covariance)
        .fit(X, y)
        .cumulative_loss_
        for rate in (0.0, 1e-3, 1e-2)
    ]
    assert max(fixed) > 1.3 * min(fixed)
    model = OnlineVIRegressor(forgetting="auto", covariance=covariance, random_state=0)
    total = 0.0
    weights = rng.choice([0.0, 1.0], 4000, p=[0.1, 0.9])
    model.partial_fit(X[:50], y[:50], sample_weight=weights[:50])
    for t in range(50, 200):  # the loss is that of the predictions
        before, guess = model.cumulative_loss_, model.predict(X[t : t + 1])[0]
        model.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
        total += model.cumulative_loss_ - before
        total -= weights[t] * (guess - y[t]) ** 2
    assert abs(total) < 0.05 * model.cumulative_loss_  # the prior's scale may move
    whole = clone(model)
    assert_same_state(whole.fit(X[:200], y[:200], sample_weight=weights[:200]), model)
    seen = y[:200][weights[:200] > 0]
    far = model.predict(1e6 * X[:50])
    assert_allclose(far, far.clip(seen.min(), seen.max()), rtol=1e-12)
    assert np.ptp(far) > 0
    assert model.fit(X, y).cumulative_loss_ < 1.05 * min(fixed)


@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
def test_forgetting_chooses_itself_among_labels():
    X, y = flipping()
    labels = (y > 0).astype(int)
    auto = (
        OnlineVIClassifier(forgetting="auto", random_state=0)
        .fit(X, labels)
        .cumulative_loss_
    )
    fixed = [
        OnlineVIClassifier(forgetting=rate, random_state=0)
        .fit(X, labels)
        .cumulative_loss_
        for rate in (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
    ]
    assert auto < 1.1 * min(fixed)


@pytest.mark.filterwarnings("ignore:The model is linear")
def test_network_learns_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(4000, 2))
    y = np.abs(X[:, 0]) - np.abs(X[:, 1]) + 0.1 * rng.normal(size=4000)
    line = OnlineVIRegressor(n_fourier=0).fit(X, y).score(X, y)
    for seed in range(3):
        network = OnlineVIMLPRegressor(random_state=seed).fit(X, y)
        assert network.score(X, y) > 0.8 > 0.2 > line
        assert network.noise_variance_ < 0.2
        _, std = network.predict(X, return_std=True)
        assert np.all(std > 0)


@pytest.mark.filterwarnings("ignore:The errors of recent rows predict")
@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize("network", [OnlineVIMLPRegressor, OnlineVIMLPClassifier])
def test_networks_forget(network):
    """By default they follow a change, and lose next to nothing where there is none."""
    rng = np.random.default_rng(4)
    X, noise = rng.normal(size=(4000, 4)), 0.3 * rng.normal(size=4000)
    waves, t = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], np.linspace(0.0, 1.0, 4000)
    turning = 2 * X[:, 0] * np.cos(6 * t) + 2 * X[:, 1] * np.sin(6 * t)
    for bound, y in (
        (0.97, np.where(t < 0.5, waves, -waves)),
        (0.9, turning),
        (1.01, waves),
    ):
        y = y + noise
        if network is OnlineVIMLPClassifier:
            y = (y > 0).astype(int)
        losses = [
            network(random_state=0, **options).fit(X, y).cumulative_loss_
            for options in ({}, {"forgetting": 0.0})
        ]
        assert losses[0] < bound * losses[1]


@pytest.mark.filterwarnings("ignore:The final model has a mean loss")
@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e-3, 1e4)])
@pytest.mark.parametrize("n_same", [2, 40, 800])
def test_a_network_learns_after_targets_that_were_all_the_same(n_same, unit, origin):
    """Their number is not taken for the unit of those that follow."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_same + 600, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=len(X))
    y[:n_same] = 5.0
    model = OnlineVIMLPRegressor(random_state=0)
    model.fit(unit * X[:-300] + origin, unit * y[:-300] + origin)
    assert model.score(unit * X[-300:] + origin, unit * y[-300:] + origin) > 0.8


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_scale_of_the_prior_chooses_itself(loss):
    """Close to the best scale, whatever that is; Theorem 1 holds."""
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(1500, 20)), rng.normal(size=20)
    scales = (0.3, 1.0, 3.0) if loss == "hinge" else (20**-0.5, 1.0, 10.0, 100.0)
    sparse = theta * (np.arange(20) < 2)
    for score in (X @ theta, 0.3 * X @ theta + 2 * rng.normal(size=1500), X @ sparse):
        y = (score > 0).astype(int)
        fixed = [
            OnlineVIClassifier(loss=loss, prior_scale=scale, random_state=0)
            .fit(X, y)
            .cumulative_loss_
            for scale in scales
        ]
        model = OnlineVIClassifier(loss=loss, random_state=0).fit(X, y)
        assert max(fixed) > 1.1 * min(fixed)
        assert model.cumulative_loss_ < 1.01 * min(fixed) + 2 * math.log(4)
        assert_allclose(model.prior_scale_weights_.sum(axis=1), 1.0)
        chosen = model.prior_scales_[model.prior_scale_weights_.argmax()]
        best = scales[np.argmin(fixed)]
        if loss == "hinge":
            assert chosen == best
        else:  # diagonal models have other scales besides
            assert best / 1.5 < chosen < 1.5 * best
        certificate = model.certificate()
        assert certificate.observed == model.cumulative_loss_ <= certificate.bound
        assert certificate.bound < 1.05 * certificate.observed  # it says something


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_rates_that_rise_with_the_first_loss_are_covered(loss):
    """No bound of the losses is known: the rate is 0 until an expert has lost.

    Where one expert never loses, until a sudden change, the rate falls by much.
    """
    X = np.arange(60.0)[:, None] % 7
    y = np.where(np.arange(60) < 40, X[:, 0], -1e3)
    y[:3] = 0.0
    X[:3] = 0.0
    line, twice = (Ridge(alpha=1e-12).fit(X[3:20], k * y[3:20]) for k in (1.0, 2.0))
    model = EWARegressor([("line", line), ("twice", twice)], loss=loss)
    for start in range(0, 60, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])
        certificate = model.certificate()
        assert certificate.observed == model.cumulative_loss_ <= certificate.bound
    assert certificate.terms["rises of the rate"] >= 0.0


@pytest.mark.slow
def test_scale_of_the_prior_chooses_itself_among_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 40))
    for noise in (0.1, 30.0):
        y = X.sum(axis=1) + noise * rng.normal(size=400)
        fixed = [
            OnlineVIRegressor(random_state=0, prior_scale=scale)
            .fit(X, y)
            .cumulative_loss_
            for scale in (40**-0.5, 0.3, 3.0)
        ]
        model = OnlineVIRegressor(random_state=0, prior_scale="auto").fit(X, y)
        assert max(fixed) > 1.1 * min(fixed)
        assert model.cumulative_loss_ < 1.1 * min(fixed)
        certificate = model.certificate()
        assert set(certificate.terms) >= {"rises of the rate", "complexity"}
        assert certificate.observed <= certificate.bound
    three = OnlineVIClassifier(forgetting="auto", random_state=0).fit(
        X, np.arange(400) % 3
    )
    certificate = three.certificate()
    assert certificate.observed == three.cumulative_loss_ <= certificate.bound
    assert_allclose(three.forgetting_weights_.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore:.* predictions do not extrapolate")  # rows far away
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e3, 1e4)])
def test_many_features_have_several_scales(loss, scale, shift):
    """The default is "auto" there, else 1; no prediction is beyond the targets.

    With few rows for each feature, a full covariance has a further scale, 1, up to 64
    features. One of the scales makes the variance of the score of a standardized row
    one.
    """
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((90, 80)) < 0.1, rng.normal(size=(90, 5))])
    X, y = scale * X + shift, scale * (X[:, :9].sum(axis=1) + rng.normal(size=90)) - 7
    for n_features in (3, 16, 17, 64, 65):
        for covariance in ("auto", "diagonal"):
            if covariance == "auto" and loss == "squared_error":
                several = n_features > 64
            else:
                several = n_features > 16
            Z = np.ascontiguousarray(X[:, -n_features:])
            model = OnlineVIRegressor(
                n_fourier=0, loss=loss, covariance=covariance
            ).fit(Z, y)
            same = clone(model).set_params(prior_scale="auto" if several else 1.0)
            same.fit(Z, y)
            settles = n_features > 16 and not several
            if settles:
                assert model.prior_scales_.tolist()[1:] == [0.3, 1.0, 3.0]
            else:
                np.testing.assert_array_equal(model.predict(Z), same.predict(Z))
                assert len(model.prior_scales_) == (3 if several else 1)
            if several or settles:
                assert_allclose(model.prior_scales_[0] ** 2 * n_features, 1.0)
                far = model.predict(1e3 * Z)
                rounding = 1e-12 * np.abs(y).max()
                assert far.min() >= y.min() - rounding
                assert far.max() <= y.max() + rounding
                assert model.certificate().observed <= model.certificate().bound
            for forgetting in ("auto", 0.1) if settles else ("auto",):
                model.set_params(forgetting=forgetting).fit(Z, y)
                assert model.prior_scales_.tolist() == [1.0]


@pytest.mark.slow
def test_scales_of_the_prior_are_averaged_until_there_are_ten_rows_for_each_feature():
    """Then the best is used alone, bit for bit, however rows are split."""
    rng, n_features = np.random.default_rng(0), 20
    X = rng.normal(size=(300, n_features))
    y = X[:, :3].sum(axis=1) + rng.normal(size=300)
    whole, pieces = (
        OnlineVIRegressor(n_fourier=0).fit(X, y),
        OnlineVIRegressor(n_fourier=0),
    )
    several = OnlineVIRegressor(n_fourier=0, prior_scale="auto").fit(X, y)
    for part in np.array_split(np.arange(300), 23):
        pieces.partial_fit(X[part], y[part])
        settled = pieces.n_samples_seen_ > 256
        assert len(pieces.prior_scales_) == (1 if settled else 4)
        certificate = pieces.certificate()
        assert certificate.observed == pieces.cumulative_loss_ <= certificate.bound
    assert_same_state(pieces, whole)
    (scale,) = whole.prior_scales_
    alone = OnlineVIRegressor(n_fourier=0, prior_scale=scale).fit(X, y)
    far = 1e3 * X[:5]
    np.testing.assert_array_equal(whole.predict(far), alone.predict(far))
    np.testing.assert_array_equal(
        whole.predict_quantiles(X), alone.predict_quantiles(X)
    )
    np.testing.assert_array_equal(whole.coef_std_, alone.coef_std_)
    assert len(several.prior_scales_) == 3
    before = OnlineVIRegressor(n_fourier=0).fit(X[:256], y[:256])
    after = copy.deepcopy(before).partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    assert_same_state(after, before)
    resumed = pickle.loads(pickle.dumps(pieces)).partial_fit(X[:9], y[:9])
    assert_same_state(resumed, whole.partial_fit(X[:9], y[:9]))


def ring(n=3000, seed=0):
    """Labels, and a number, which no line predicts."""
    X = np.random.default_rng(seed).normal(size=(n, 2)) * [1.0, 1e3] + [50.0, 0.0]
    radius = np.hypot(X[:, 0] - 50, X[:, 1] / 1e3)
    return X, (radius > 1.2).astype(int), radius


def test_fourier_features_learn_what_a_line_cannot():
    X, labels, radius = ring()
    line = OnlineVIClassifier(loss="log_loss", n_fourier=0).fit(X, labels)
    assert line.score(X, labels) < 0.65
    fixed = {"n_fourier": 60, "prior_scale": "auto", "random_state": 0}
    for options in (fixed, {"n_fourier": "auto", "random_state": 1}):
        model = OnlineVIClassifier(loss="log_loss", **options).fit(X, labels)
        assert model.score(X, labels) > 0.95
        assert_allclose(model.fourier_weight_, 1.0)
        for covariance in ("full", "diagonal"):
            model = OnlineVIRegressor(covariance=covariance, **options)
            assert model.fit(X, radius).score(X, radius) > 0.9
            mean, std = model.predict(X, return_std=True)
            assert np.mean(abs(radius - mean) < 2 * std) > 0.9
            assert_allclose(model.fourier_weight_, 1.0)
        for name in ("coef_", "coef_std_"):
            assert hasattr(model, name) == (options is not fixed)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_among_the_fourier_experts_one_is_the_linear_model(covariance):
    """Bit for bit: Fourier features are free to be of no use.

    On a line the linear expert has all the weight, and the loss is its own; the
    certificate says so on any stream. Its coefficients are the model's.
    """
    X, y = linear(400, d=3, noise=1.0)
    X[200:] += [0.0, 30.0, 0.0]  # the moments of a column change
    line = OnlineVIRegressor(n_fourier=0, covariance=covariance).fit(X, y)
    model = OnlineVIRegressor(n_fourier="auto", covariance=covariance, random_state=0)
    model.fit(X, y)
    n_linear = line._state.means.shape[1]
    found, width = model._state.means[0], model._state.means.shape[1]
    assert np.array_equal(found[:n_linear], line._state.means[0])
    for name in ("coef_", "intercept_", "coef_std_"):
        assert np.array_equal(getattr(model, name), getattr(line, name))
    assert not found[n_linear:].any()
    assert width == n_linear + N_FOURIER[covariance]
    assert model.fourier_weight_ < 1e-6
    assert model.cumulative_loss_ < 1.02 * line.cumulative_loss_
    certificate = model.certificate()
    assert certificate.observed <= certificate.bound
    fixed = OnlineVIRegressor(
        n_fourier=5, covariance=covariance, prior_scale="auto"
    ).fit(X, y)
    assert line.fourier_weight_ == 0.0
    assert_allclose(fixed.fourier_weight_, 1.0, rtol=1e-14)


def test_network_learns_labels_that_a_line_cannot():
    X, labels, radius = ring()
    three = np.digitize(radius, [0.8, 1.6])
    for loss in ("log_loss", "hinge"):
        model = OnlineVIMLPClassifier(loss=loss, random_state=0).fit(X, labels)
        assert model.score(X, labels) > 0.9
        probabilities = model.predict_proba(X)
        assert_allclose(probabilities.sum(axis=1), 1.0)
        assert np.array_equal(probabilities.argmax(axis=1), model.predict(X))
        several = OnlineVIMLPClassifier(loss=loss, random_state=0).fit(X, three)
        assert several.score(X, three) > 0.75
        assert_allclose(several.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "model",
    [
        OnlineVIRegressor(random_state=0),
        OnlineVIRegressor(random_state=0, forgetting="auto", prior_scale="auto"),
        OnlineVIRegressor(random_state=0, covariance="diagonal", clip=2.0),
        OnlineVIRegressor(n_fourier="auto", random_state=0),
        OnlineVIClassifier(random_state=0),
        OnlineVIMLPRegressor(random_state=0),
        OnlineVIMLPClassifier(random_state=0),
    ],
)
def test_a_row_is_answered_as_in_its_block(model):
    """Bit for bit."""
    X, y = linear(200, d=11)
    model = clone(model).fit(X, y > 0 if is_classifier(model) else y)
    answers = [getattr(model, name) for name in ANSWERS if hasattr(model, name)]
    if hasattr(model, "noise_variance_"):
        answers.append(lambda X: np.column_stack(model.predict(X, return_std=True)))
    for answer in answers:
        block = answer(X)
        for t in range(0, 200, 9):
            assert np.array_equal(answer(X[t : t + 1])[0], block[t])


@pytest.mark.parametrize("family", [getattr(online, name) for name in online.__all__])
def test_a_plain_row_and_target_need_no_validation(family):
    """Whatever plain form they have: the state is that of arrays, bit for bit."""
    X = np.random.default_rng(0).integers(-3, 4, size=(60, 3)).astype(float)
    y = (X[:, 0] > 0).astype(float)
    kinds = [np.float64, float, int, bool, np.int64, np.bool_]
    names = {0.0: "no", 1.0: "yes"}
    words = [names.get, lambda v: np.str_(names[v])]
    for kinds_of_y in (kinds, words) if is_classifier(family()) else (kinds,):
        begun, first = family(), kinds_of_y[0]
        more = {"classes": [first(0.0), first(1.0)]} if is_classifier(begun) else {}
        for start, stop in ((0, 50), (50, 51)):  # one row, as kernels are compiled then
            begun.partial_fit(X[start:stop], [*map(first, y[start:stop])], **more)
        expected = copy.deepcopy(begun).partial_fit(X[51:52], [first(y[51])])
        for kind in kinds_of_y:
            forms_of_y = [[kind(y[51])], (kind(y[51]),), np.array([kind(y[51])])]
            forms_of_x = [X[51:52].tolist(), (tuple(X[51].tolist()),), [X[51]]]
            for row, target in itertools.product(forms_of_x, forms_of_y):
                actual = copy.deepcopy(begun)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("sklearn.utils.validation.check_array", refused)
                    actual.partial_fit(row, target)
                assert_same_state(actual, expected)


def begun_with_weights(family, n_rows=60):
    X, y = linear(n_rows, d=3)
    first = {}
    if issubclass(family, ClassifierMixin):
        y, first = (y > 0).astype(float), {"classes": [0.0, 1.0]}
    model = family()
    for rows in (slice(n_rows - 2), slice(n_rows - 2, n_rows - 1)):
        weights = np.linspace(0.5, 1.5, len(X[rows]))
        model.partial_fit(X[rows], y[rows], sample_weight=weights, **first)
    return model, X[-1:], y[-1:]


@pytest.mark.parametrize("family", [getattr(online, name) for name in online.__all__])
def test_a_plain_weight_needs_no_validation(family):
    """Whatever plain form it has: the state is that of validated rows, bit for bit."""
    begun, row, target = begun_with_weights(family)
    forms = [[2.0], (2,), [2], np.array([2.0]), np.array([2]), [True], [0.0]]
    for weight in forms:
        expected, actual = copy.deepcopy(begun), copy.deepcopy(begun)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(family, "_learn_at_once", lambda *args, **kwargs: False)
            expected.partial_fit(row, target, sample_weight=weight)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sklearn.utils.validation.check_array", refused)
            actual.partial_fit(row, target, sample_weight=weight)
        assert_same_state(actual, expected)


@pytest.mark.parametrize("family", [getattr(online, name) for name in online.__all__])
def test_a_plain_weight_is_refused_or_named_as_in_a_block(family):
    begun, row, target = begun_with_weights(family)
    seen = state_of(begun)
    for wrong in ([-1.0], [np.nan], [np.inf], [1.0, 1.0], ["one"]):
        with pytest.raises(ValueError, match=r"weight"):
            begun.partial_fit(row, target, sample_weight=wrong)
        assert state_of(begun) == seen
    with pytest.warns(UserWarning, match="One row has a weight of 1000"):
        begun.partial_fit(row, target, sample_weight=[1e3])


def refused(*args, **kwargs):
    raise AssertionError("a row that needs no validation was validated")


ANSWERS = ["predict", "predict_quantiles", "decision_function", "predict_proba"]


def test_deviations_of_coefficients_of_labels():
    X, y = linear(300, noise=3.0)
    for method in METHODS:
        model = OnlineVIClassifier(method, random_state=0).fit(X, y > 0)
        assert hasattr(model, "coef_std_") == (method != "oga")
    alone = {"prior_scale": 1.0, "forgetting": 0.0, "n_fourier": 0}
    model = OnlineVIClassifier(**alone).fit(X, y > 0)
    expected = np.sqrt(model._state.variances[0, 1:]) / X.std(axis=0)
    assert_allclose(model.coef_std_, expected[None], rtol=1e-9)
    mixed = OnlineVIClassifier(loss="log_loss", random_state=0).fit(X, y > 0)
    assert mixed.coef_std_.shape == mixed.coef_.shape
    three = OnlineVIClassifier(random_state=0).fit(X, np.arange(300) % 3)
    assert three.coef_std_.shape == (3, 4)


# Certificates.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
def test_certificates_hold_for_regression(loss, seed):
    X, y = linear(200, seed=seed)
    assert_certified(OnlineVIRegressor, X, y, loss)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_certificates_hold_for_labels(loss):
    X, y = load_breast_cancer(return_X_y=True)
    certificate = assert_certified(OnlineVIClassifier, X[::2], y[::2], loss)
    assert certificate.bound < 1.0 * len(X[::2])  # says something: chance loses 1 a row


def assert_certified(estimator, X, y, loss):
    options = {"loss": loss, "mean_bound": 20.0, "scale_bound": 1.0, "clip": 5.0}
    svb = estimator("svb", learning_rate="invsqrt", **options).fit(X, y)
    sva = estimator("sva", learning_rate=len(X) ** -0.5, **options).fit(X, y)
    for model in (svb, sva):
        certificate = model.certificate(X, y)
        assert certificate.verdict.startswith("The bound holds: ")
        assert certificate.observed == model.cumulative_loss_
        assert certificate.observed <= certificate.bound
        assert_allclose(certificate.bound, sum(certificate.terms.values()))
    return certificate


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "hinge", "log_loss"]
)
def test_best_gaussian_is_stationary(loss):
    """No perturbation of the posterior has a smaller bound."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(40, 2)), np.sign(rng.normal(size=40))
    problem = {"loss": loss, "Z": Z, "y": y, "sample_weight": np.ones(40)}
    bounds = {"mean_bound": math.inf, "scale_bound": math.inf}
    mean, scale, expected = best_gaussian(
        **problem, **bounds, penalty=2.0, prior_scale=1.0
    )

    def bound(m, s):
        values, _, _ = expected_losses(loss, y, Z @ m, Z**2 @ s**2)
        kl = 0.5 * np.sum(s**2 + m**2 - 1 - np.log(s**2))
        return values.sum() + 2.0 * kl

    draws = mean + scale * rng.normal(size=(200_000, 2))
    sampled = np.mean([expected_at(loss, y, Z @ draw) for draw in draws[:2000]])
    assert_allclose(expected, sampled, rtol=0.2)
    for _ in range(50):
        other = bound(
            mean + 0.01 * rng.normal(size=2), scale * 1.01 ** rng.normal(size=2)
        )
        assert other >= bound(mean, scale) - 1e-5


def expected_at(loss, y, a):
    return {
        "squared_error": (y - a) ** 2,
        "absolute_error": abs(y - a),
        "hinge": np.maximum(0, 1 - y * a),
        "log_loss": np.logaddexp(0, -y * a),
    }[loss].sum()


@pytest.mark.parametrize("temperature", ["auto", 0.05])
def test_aggregation_keeps_its_promise(temperature):
    """Theorem 1 on an adversary that follows whoever is not leading."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 2))
    y = np.sign(np.sin(np.arange(200) / 7)) * X[:, 0].clip(-1, 1)
    experts = [
        (
            f"step {rate}",
            OnlineVIRegressor(
                "oga", learning_rate=rate, mean_bound=1.0, standardize=False
            ),
        )
        for rate in (0.01, 0.3)
    ] + [("ridge", Ridge().fit(X[:20], y[:20]))]
    model = EWARegressor(experts, inverse_temperature=temperature, loss_bound=25.0)
    model.fit(X, y)
    certificate = model.certificate()
    assert all(certificate.assumptions.values())
    assert certificate.observed <= certificate.bound
    rates = np.full(200, 0.05)
    if temperature == "auto":
        rates = np.sqrt(8 * math.log(3) / np.arange(1, 201)) / 25.0
    published = exponential_weights_terms(
        model.cumulative_losses_,
        last_inverse_temperature=rates[-1],
        rate_sum=rates.sum(),
        loss_bound=25.0,
    )
    assert certificate.bound <= sum(published.values())
    if temperature == "auto":  # the order of the regret: no more than sqrt(T log K)
        regret = 25.0 * math.sqrt(200 * math.log(3)) * (8**-0.5 + 2**-0.5)
        assert certificate.bound <= model.cumulative_losses_.min() + regret
    ridge = ((experts[2][1].predict(X) - y) ** 2).sum()
    assert_allclose(model.cumulative_losses_[2], ridge)
    alone = experts[1][1].fit(X, y)  # it predicts 0 before the first row
    first = (experts[2][1].predict(X[:1])[0] - y[0]) ** 2
    loss = alone.cumulative_loss_ - y[0] ** 2 + first
    assert_allclose(model.cumulative_losses_[1], loss, rtol=1e-9)
    assert_allclose(model.weights_.sum(), 1.0)


@pytest.mark.filterwarnings("ignore:.*twice")
@pytest.mark.parametrize("estimator", [OnlineVIRegressor, OnlineVIClassifier])
def test_the_certificate_refuses_other_rows_than_were_learnt(estimator):
    X, y = linear(60)
    y = np.where(y > 0, "b", "a") if estimator is OnlineVIClassifier else y
    model = estimator("sva", learning_rate=0.1).fit(X, y)
    bound = model.certificate(X.tolist(), y.tolist()).bound
    more = {"classes": ["a", "b"]} if estimator is OnlineVIClassifier else {}
    split = clone(model).partial_fit(X[:7], y[:7], **more).partial_fit(X[7:], y[7:])
    assert split.certificate(X, y).bound == bound
    for rows, targets in ((X[::-1], y[::-1]), (2 * X, y), (X, np.roll(y, 1))):
        with pytest.raises(ValueError, match="rows that were learnt, in their order"):
            model.certificate(rows, targets)
    if more:
        with pytest.raises(ValueError, match="not in classes"):
            model.certificate(X, np.where(y == "a", "a", "c"))
    twice = clone(model).fit(np.tile(X, (2, 1)), np.tile(y, 2))  # rows that return
    assert twice.certificate(np.tile(X, (2, 1)), np.tile(y, 2)).bound > bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 0, np.random.RandomState(0)])
def test_a_certificate_is_for_the_fourier_features_that_were_drawn(seed):
    """It learns the rows again, and draws no others; nor does it advance `seed`."""
    X, y = linear(60)
    settings = {"learning_rate": 0.01, "n_fourier": 5, "random_state": seed}
    model = OnlineVIRegressor("sva", **settings).fit(X, y)
    certificates = [model.certificate(X, y) for _ in range(2)]
    assert certificates[0].bound == certificates[1].bound
    if isinstance(seed, np.random.RandomState):
        unused = np.random.RandomState(0)
        clone(model).set_params(random_state=unused).fit(X, y)
        assert seed.randint(2**31) == unused.randint(2**31)


@pytest.mark.filterwarnings("ignore:sample_weight", "ignore:The steps of")
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("method", ["ngvi", "sva", "svb"])
@pytest.mark.parametrize("estimator", [OnlineVIRegressor, OnlineVIClassifier])
def test_the_certificate_of_a_weighted_stream_is_for_its_weights(
    estimator, method, standardize
):
    """Any weights give losses w l, convex as l, and their gradients.

    So the theorems hold for the weighted sum of the losses. Other weights are refused
    where they are needed; scikit-learn's default, no weights, is one of them.
    """
    X, y = linear(80)
    y = y > 0 if estimator is OnlineVIClassifier else y
    weights = np.random.default_rng(0).exponential(size=80)
    weights[::5] = 0.0
    options = {
        "ngvi": {},
        "sva": {"learning_rate": 1e-3},
        "svb": {"learning_rate": "invsqrt", "mean_bound": 20.0, "scale_bound": 1.0},
    }[method]
    model = estimator(method, standardize=standardize, random_state=0, **options)
    model.fit(X, y, sample_weight=weights)
    certificate = model.certificate(X, y, sample_weight=weights)
    assert certificate.observed == model.cumulative_loss_ <= certificate.bound
    some = weights > 0
    own = model.certificate(X[some], y[some], weights[some])
    assert own.bound == certificate.bound
    if method == "ngvi":
        assert model.certificate().bound == certificate.bound
        return
    for other in (None, np.where(some, weights[::-1] + 0.1, 0.0), 2.0 * weights):
        given = (X[some], y[some]) if other is None else (X, y, other)
        with pytest.raises(ValueError, match="with their weights"):
            model.certificate(*given)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (1.0, 1e4), (1e3, 0.0)])
def test_rounding_does_not_break_the_bound_of_an_aggregate(scale, shift, seed):
    """With a fixed rate and heavy tails, observed losses and bound nearly agree."""
    rng = np.random.default_rng(seed)
    for loss, n_samples in itertools.product(
        ("absolute_error", "squared_error"), (5, 20)
    ):
        X = scale * rng.standard_t(2, size=(n_samples, 3)) + shift
        y = scale * rng.standard_t(1.5, size=n_samples) + shift
        model = EWARegressor(loss=loss, inverse_temperature=0.3).fit(X, y)
        assert model.certificate().verdict.startswith("The bound holds")


@pytest.mark.filterwarnings("ignore:The steps of")
def test_no_certificate_without_a_theorem():
    X, y = linear(30)
    for model in (
        OnlineVIRegressor(n_fourier=0),
        OnlineVIRegressor("sva"),
        OnlineVIRegressor("svb", learning_rate="invsqrt"),
    ):
        with pytest.raises(NotImplementedError, match="A theorem covers"):
            model.fit(X, y).certificate(X, y)
    with pytest.raises(ValueError, match="needs the 30 rows"):
        OnlineVIRegressor("sva", learning_rate=0.1).fit(X, y).certificate(X[1:], y[1:])
    labels = np.arange(30) % 3
    three = OnlineVIClassifier("sva", learning_rate=0.1, random_state=0).fit(X, labels)
    with pytest.raises(NotImplementedError, match="two classes"):
        three.certificate(X, labels)


# Bad input.


@pytest.mark.parametrize("classes", [["a", "b"], [1, 2], [True, False]])
def test_a_label_of_another_type_is_not_in_classes(classes):
    """Also on the quick path of a row, where an array of objects is looked up."""
    X = np.ones((1, 2))
    model = OnlineVIClassifier(random_state=0).partial_fit(
        X, classes[:1], classes=classes
    )
    for label in ("c", 3, 2.5, b"c", "1"):
        for y in ([label], np.array([label], dtype=object)):
            with pytest.raises(ValueError, match="labels that are not in classes"):
                model.partial_fit(X, y)
    new = OnlineVIClassifier(random_state=0)
    for mixed in ["a", 1], np.array(["a", 1], dtype=object):
        with pytest.raises(ValueError, match="classes has the labels 'a' and 1: make"):
            new.partial_fit(X, ["a"], classes=mixed)
    with pytest.raises(ValueError, match="classes must be of one type"):
        new.partial_fit(X, [1], classes=np.array([datetime.date(2020, 1, 1), 1]))


@pytest.mark.filterwarnings("error")  # of scikit-learn, if labels hardly repeat
@pytest.mark.parametrize("kind", [OnlineVIClassifier, OnlineVIMLPClassifier])
@pytest.mark.parametrize(
    "classes",
    [[b"a", b"b"], [0.5, 1.0], [0.0, 1.0], [(1,), (2,)], ["a", "b"], list(range(30))],
)
def test_a_stream_takes_the_classes_that_fit_takes(kind, classes):
    """And refuses the others by the same error, also as objects."""
    X = np.random.default_rng(0).normal(size=(3 * len(classes), 2))
    objects = np.empty(len(classes), dtype=object)
    objects[:] = classes
    forms = [objects] if isinstance(classes[0], tuple) else [objects, np.array(classes)]
    for form in forms:
        y, own = np.tile(form, 3), kind(random_state=0)
        try:
            expected = kind(random_state=0).fit(X, y).classes_
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error), match=re.escape(str(error)[:25])):
                own.partial_fit(X[:1], y[:1], classes=form)
            assert not hasattr(own, "classes_")
            continue
        own.partial_fit(X[:1], y[:1], classes=form)
        np.testing.assert_array_equal(own.classes_, expected)


@pytest.mark.parametrize("kind", [OnlineVIClassifier, OnlineVIMLPClassifier])
@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_stream_takes_the_labels_that_fit_takes(kind, count):
    """Whatever the classes: 1 equals True, 1.0, Decimal(1), 1 + 0j and one second."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    for classes in ([0, 1], [0.0, 1.0], [False, True]):
        begun = kind(random_state=0).partial_fit(X, [*classes] * 10, classes=classes)
        times = "m8[s]", "M8[s]", "m8[ns]", "M8[ns]"
        for form in (int, bool, float, np.int8, Decimal, complex, *times):
            plain = np.array([0, 1] * 10)
            labels = np.array([form(int(v)) for v in plain]) if callable(form) else None
            labels = plain.astype(form) if labels is None else labels
            for y in (labels, labels.astype(object), plain.astype(float).astype("O")):
                takes, before = True, state_of(begun)
                try:
                    kind(random_state=0).fit(X, y)
                except (TypeError, ValueError):
                    takes = False
                if takes and y.dtype.kind not in "mM":
                    clone(begun).partial_fit(X[:count], y[:count], classes=classes)
                    continue
                with pytest.raises(ValueError, match=r"label|Complex"):
                    begun.partial_fit(X[:count], y[:count])
                assert not changes(before, state_of(begun))


@pytest.mark.parametrize("kind", [OnlineVIClassifier, OnlineVIMLPClassifier])
@pytest.mark.parametrize("unit", ["D", "ns"])
def test_a_number_is_no_date(kind, unit):
    """An item of nanoseconds is an integer."""
    X, dates = np.random.default_rng(0).normal(size=(2, 2)), np.array([1, 2], "M8[s]")
    dates = dates.astype(f"M8[{unit}]") + np.array([0, 1], f"m8[{unit}]")
    model = kind(random_state=0).partial_fit(X, dates, classes=dates)
    for count in (1, 1, 1, 2):
        with pytest.raises(ValueError, match="labels that are not in classes"):
            model.partial_fit(X[:count], dates[:count].astype(int))
        model.partial_fit(X[:count], dates[:count])


@pytest.mark.parametrize("kind", [OnlineVIClassifier, OnlineVIMLPClassifier])
def test_classes_may_be_a_set(kind):
    """As `set(y)` is, of which NumPy makes one object; other objects are refused."""
    X, counts = np.ones((1, 2)), {"b": 3, "a": 5}
    for classes in set(counts), frozenset(counts), counts.keys():
        model = kind(random_state=0).partial_fit(X, ["a"], classes=classes)
        model.partial_fit(X, ["b"], classes=classes)
        assert model.classes_.tolist() == ["a", "b"]
    for wrong in counts, iter(counts), "a", [["a", "b"]], [["a"], ["b"]]:
        with pytest.raises(ValueError, match="classes should be a list of labels, got"):
            kind(random_state=0).partial_fit(X, ["a"], classes=wrong)


def test_raw_features_do_not_overflow():
    X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    for scale in (1.0, 1e12):
        model = OnlineVIClassifier(random_state=0).fit(scale * X, y)
        assert model.score(scale * X, y) > 0.9
        regressor = OnlineVIRegressor(random_state=0).fit(scale * X, scale * y)
        assert regressor.score(scale * X, scale * y) > 0.6
        network = OnlineVIMLPRegressor(random_state=0).fit(scale * X, scale * y)
        assert network.score(scale * X, scale * y) > 0.5
    plain = OnlineVIRegressor(random_state=0, standardize=False).fit(X, y)
    assert plain.score(X, y) > 0.6  # full covariance, raw


FAMILY = [getattr(online, name) for name in online.__all__]
VARIANTS = [
    {},
    *({"method": method} for method in METHODS),
    {"forgetting": 0.9},
    {"forgetting": "auto"},
    {"covariance": "diagonal"},
    {"loss": "absolute_error"},
    {"loss": "log_loss"},
    {"standardize": False},
    {"clip": None},
    {"clip": 2.0},
    {"n_fourier": "auto", "random_state": 0},
]


def variants(estimator):
    """Yield an estimator of the family by default, then with each option it has."""
    for options in VARIANTS:
        model = estimator()
        if options.keys() <= model.get_params().keys():
            model.set_params(**options)
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
            with contextlib.suppress(InvalidParameterError):
                model._validate_params()
                yield model


def forecasts(model, X):
    """Whatever is predicted: the mean or score, and the deviation if there is one."""
    score = model.decision_function(X) if is_classifier(model) else model.predict(X)
    with contextlib.suppress(TypeError, NotImplementedError):
        return np.stack(model.predict(X, return_std=True))
    return score


@pytest.mark.filterwarnings("ignore:The values of .* may underflow")
@pytest.mark.filterwarnings("ignore:.* predictions do not extrapolate")  # rows far away
@pytest.mark.parametrize(
    ("estimator", "unit", "place"),
    every_two(
        FAMILY,
        [2.0**480, 2.0**-480, 1e155, 1e300, 1e-155, 1e-300],
        ["X", "y", "X and y"],
    ),
)
def test_ends_of_the_floats(estimator, unit, place):
    """Numbers beyond 1e150 are refused, others teach, and NumPy never warns.

    By default all is in units of the rows so far, to 1e-9; a column whose squares are
    below 1e-300 is constant.
    """
    X, y = linear(60, d=3)
    X_unit, y_unit = unit if "X" in place else 1.0, unit if "y" in place else 1.0
    first = {}
    if issubclass(estimator, ClassifierMixin):
        y, y_unit, first = (y > 0).astype(int), 1, {"classes": [0, 1]}
    rows, targets = X_unit * X, y_unit * y
    for k, model in enumerate(variants(estimator)):
        plain = clone(model).partial_fit(X, y, **first)
        expected = forecasts(plain, X)
        if max(abs(rows).max(), abs(targets).max()) > 1e150:
            seen, new = state_of(plain), state_of(model)
            for n in (1, 60):
                with pytest.raises(ValueError, match=r"must be at most 1e\+150 in"):
                    plain.partial_fit(rows[:n], targets[:n])
                with pytest.raises(ValueError, match=r"must be at most 1e\+150 in"):
                    model.partial_fit(rows[:n], targets[:n], **first)
                if X_unit == unit:
                    with pytest.raises(ValueError, match=r"X must be at most 1e\+150"):
                        plain.predict(rows[:n])
            assert state_of(plain) == seen
            assert state_of(model) == new
            continue
        assert np.isfinite(forecasts(plain, rows)).all()
        model.partial_fit(rows[:30], targets[:30], **first)
        found = forecasts(model.partial_fit(rows[30:], targets[30:]), rows)
        assert np.isfinite(found).all()
        if k == 0 and X_unit in (1.0, 2.0**480, 2.0**-480):
            smallest = 0.0 if y_unit > 1e-150 else 1e-150
            assert_allclose(found, y_unit * expected, rtol=1e-9, atol=smallest)
        elif k == 0:
            assert_allclose(found.T, found.T[:1].repeat(60, axis=0), rtol=1e-12)


def test_a_constant_column_is_never_forgotten():
    """No more than it is learnt: its variance does not grow without end."""
    X, y = linear(1000, d=2)
    X[:, 1] = 7.0
    model = OnlineVIRegressor(random_state=0, forgetting=0.9).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert model.coef_std_[0] > 0.0 == model.coef_std_[1]


def test_columns_that_do_not_vary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:, 1], X[:, 2] = 7.1, 0.0
    X[1000:, 1] += rng.normal(size=1000)
    y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=2000)
    without = Ridge().fit(X[1500:, :1], y[1500:]).score(X[1500:, :1], y[1500:])
    for model in (OnlineVIRegressor(), OnlineVIMLPRegressor(random_state=0)):
        model.partial_fit(X[:1000], y[:1000])
        assert np.isfinite(model.predict(X)).all()
        model.partial_fit(X[1000:], y[1000:])
        assert model.score(X[1500:], y[1500:]) > without + 0.2  # it learnt the column
    only_zero = OnlineVIRegressor(random_state=0).fit(
        np.zeros((10, 2)), np.arange(10.0)
    )
    assert_allclose(only_zero.coef_, 0.0)
    assert_allclose(only_zero.predict(np.zeros((1, 2))), 4.5)


def test_labels():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.array(["b", "a"] * 15)
    model = OnlineVIClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="number of classes"):
        OnlineVIClassifier(random_state=0).fit(X, ["a"] * 30)
    model.partial_fit(X[:1], y[:1], classes=["c", "b", "a"])  # one class of three seen
    assert list(model.classes_) == ["a", "b", "c"]
    before = state_of(model)
    with pytest.raises(ValueError, match=r"not in classes.*'d'"):
        model.partial_fit(X[:2], ["a", "d"])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit(X, y, classes=["a", "b"])
    assert state_of(model) == before
    model.partial_fit(X, y)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert set(model.predict(X)) <= {"a", "b", "c"}


@pytest.mark.parametrize("estimator", [*REGRESSORS, OnlineVIClassifier, EWARegressor])
def test_rows_of_zero_weight_are_absent(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60).astype(float)
    weights = np.ones(60)
    weights[::3] = 0.0
    random = "random_state" in estimator().get_params()
    options = {"random_state": 0} if random else {}
    some = estimator(**options).fit(X, y, sample_weight=weights)
    kept = weights > 0
    fewer = estimator(**options).fit(X[kept], y[kept], sample_weight=np.ones(40))
    assert_same_state(some, fewer)
    assert some.n_samples_seen_ == 40
    assert_same_state(fewer, estimator(**options).fit(X[kept], y[kept]))


@pytest.mark.parametrize("count", [1000, 400])
def test_nan_in_a_block_teaches_nothing(count):
    X, y = linear(1000)
    model = OnlineVIRegressor(random_state=0).fit(X, y)
    before = state_of(model)
    X[500 if count == 1000 else 300, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.partial_fit(X[:count], y[:count])
    y[3] = np.inf
    with pytest.raises(ValueError, match="Input y contains infinity"):
        model.partial_fit(X[:10], y[:10])
    assert state_of(model) == before


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_rows_that_are_read_only_compile_nothing():
    """A memory map, or a frame's values: each costs a copy, not a compilation."""
    X, y = linear(100)
    kernels = [online_full.learn_full, online_predict.predict_scores]

    def learn_and_answer(X, y):
        model = OnlineVIRegressor(n_fourier=0).fit(X, y, sample_weight=np.abs(y))
        return model.partial_fit(X[:1], y[:1]).partial_fit(X, y).predict(X)

    expected = learn_and_answer(X, y)
    compiled = [len(kernel.dispatcher.signatures) for kernel in kernels]
    frozen = X.copy(), y.copy()
    for array in frozen:
        array.setflags(write=False)
    assert np.array_equal(learn_and_answer(*frozen), expected)
    assert [len(kernel.dispatcher.signatures) for kernel in kernels] == compiled


def test_parameters_are_those_of_the_stream():
    X, y = linear(30)
    model = OnlineVIRegressor(random_state=0).partial_fit(X, y)
    model.set_params(forgetting=0.1)
    with pytest.raises(ValueError, match=r"forgetting changed from 0.0 to 0.1 within"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="forgetting changed"):
        model.partial_fit(X.tolist(), y)
    assert_same_state(
        model.fit(X, y), OnlineVIRegressor(random_state=0, forgetting=0.1).fit(X, y)
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "ngvi", "learning_rate": 0.1}, "learning_rate=0.1 has no effect"),
        ({"method": "sva", "forgetting": 0.1}, "forgetting=0.1 has no effect"),
        ({"method": "oga", "inverse_temperature": 1.0}, "inverse_temperature=1.0 has"),
        ({"method": "ngvi_explicit", "forgetting": "auto"}, "needs method='ngvi'"),
        ({"method": "svb", "covariance": "full"}, "covariance='full' needs"),
        ({"loss": "absolute_error", "covariance": "full"}, "covariance='full' needs"),
        ({"covariance": "full", "mean_bound": 1.0}, "covariance='full' needs"),
        ({"scale_bound": 1.0}, "scale_bound needs a fixed inverse_temperature"),
    ],
)
def test_parameters_that_do_not_agree(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        OnlineVIRegressor(random_state=0, **options).fit(*linear(20))


def test_deviations_of_coefficients_after_one_row():
    """0 for a feature that has not varied, infinite while the noise is unknown."""
    for standardize, expected in ((True, 0.0), (False, np.inf)):
        model = OnlineVIRegressor(random_state=0, standardize=standardize)
        model.partial_fit([[1.0, 2.0]], [3.0])
        np.testing.assert_array_equal(model.coef_std_, [expected, expected])
    model = OnlineVIRegressor(random_state=0).fit(
        [[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]], [3, 4, 4.5]
    )
    assert model.coef_std_[0] > 0 == model.coef_std_[1]


def test_no_predictive_distribution_without_a_noise():
    X, y = linear(20)
    for options in ({"method": "sva"}, {"loss": "absolute_error"}):
        model = OnlineVIRegressor(random_state=0, **options).fit(X, y)
        with pytest.raises(
            NotImplementedError, match="A predictive distribution needs"
        ):
            model.predict(X, return_std=True)
    with pytest.raises(NotImplementedError, match="needs method='ngvi'"):
        OnlineVIMLPRegressor(method="oga").fit(X, y).predict(X, return_std=True)
    with pytest.raises(ValueError, match="no effect"):
        OnlineVIMLPRegressor(learning_rate=0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"forgetting=0\.1 has no effect"):
        OnlineVIMLPRegressor(method="sva", forgetting=0.1).fit(X, y)
    with pytest.raises(
        ValueError, match="should be one or more numbers between 0 and 1"
    ):
        OnlineVIRegressor(random_state=0).fit(X, y).predict_quantiles(X, [0.5, 1.0])
    one = OnlineVIRegressor(random_state=0).partial_fit(X[:1], y[:1])
    mean, std = one.predict(X[:2], return_std=True)
    assert_allclose(mean, y[0])
    assert np.isinf(std).all()
    assert_allclose(
        one.predict_quantiles(X[:1], [0.05, 0.5, 0.95]), [[-np.inf, y[0], np.inf]]
    )


@pytest.mark.parametrize("model", [OnlineVIRegressor, OnlineVIMLPRegressor])
@pytest.mark.parametrize("weights", [None, [7.0, 0.0]])
def test_one_row_shows_no_noise(model, weights):
    """Not that there is none: deviations are infinite, and finite after the second."""
    X, y = linear(20)
    n_rows = 1 if weights is None else 2
    one = model(random_state=0).partial_fit(X[:n_rows], y[:n_rows], weights)
    mean, std = one.predict(X, return_std=True)
    assert np.isinf(std).all()
    assert one.noise_variance_ == np.inf
    assert_allclose(mean, y[0])
    mean, std = one.partial_fit(X[2:4], y[2:4]).predict(X, return_std=True)
    assert np.isfinite(std).all()
    assert std.min() > 0.0


def test_experts_have_parameters_by_their_names():
    X, y = linear(40)
    model = EWARegressor([("a", OnlineVIRegressor()), ("b", OnlineVIRegressor(clip=5))])
    grid = {"a__clip": [None, 3.0], "loss": ["absolute_error"]}
    assert set(GridSearchCV(model, grid, cv=2).fit(X, y).best_params_) == set(grid)
    model.set_params(a__clip=2.0, b=OnlineVIMLPRegressor())
    assert clone(model).get_params()["a__clip"] == 2.0
    assert isinstance(model.fit(X, y).estimators_[1], OnlineVIMLPRegressor)
    with pytest.raises(ValueError, match="estimators changed within a stream"):
        model.set_params(a__clip=3.0).partial_fit(X, y)
    for name in ("a__b", "loss"):
        with pytest.raises(ValueError, match=f"Estimator names .*{name}"):
            EWARegressor([(name, OnlineVIRegressor(random_state=0))]).fit(X, y)


def test_experts():
    X, y = linear(20)
    with pytest.raises(ValueError, match=r"tuple \(name, estimator\): a string"):
        EWARegressor([OnlineVIRegressor(random_state=0)]).fit(X, y)
    with pytest.raises(ValueError, match="different names"):
        EWARegressor([("a", Ridge()), ("a", Ridge())]).fit(X, y)
    frozen = FrozenEstimator(SGDRegressor())
    for expert in (Ridge(), make_pipeline(StandardScaler(), SGDRegressor()), frozen):
        match = r"expert 'a' does not learn, as it has no partial_fit .* not fitted"
        with pytest.raises(NotFittedError, match=match):
            EWARegressor([("a", expert)]).fit(X, y)
    wild = Ridge().fit(X, y)
    wild.coef_ *= 1e200
    model = EWARegressor([("a", OnlineVIRegressor()), ("b", wild)])
    with pytest.warns(UserWarning, match="Leave the expert 'b' out"):
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.weights_[0] > 0.99
    model = EWARegressor([("a", OnlineVIRegressor()), ("b", SGDRegressor())])
    with pytest.warns(UserWarning, match="Leave the expert 'b' out"):  # it diverges
        model.fit(X, y)
    before = state_of(model)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.partial_fit(X * np.nan, y)
    assert state_of(model) == before


@pytest.mark.slow
def test_two_million_steps():
    """The state stays in range: a block that is learnt 4,000 times.

    Two million rows of two parameters; the precisions are what they are in exact
    arithmetic, to 1e-13 a row.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
    exact = np.linalg.inv(np.eye(2) + 4_000 * X.T @ X)
    for covariance in ("full", "diagonal"):
        model = OnlineVIRegressor(
            n_fourier=0, covariance=covariance, standardize=False, fit_intercept=False
        )
        for _ in range(4_000):
            model.partial_fit(X, y)
        assert model.n_samples_seen_ == 2_000_000
        directions = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
        expected = ((directions @ exact) * directions).sum(axis=1)
        if covariance == "diagonal":
            expected = directions**2 @ (1 / (1 + 4_000 * (X**2).sum(axis=0)))
        _, deviations = model.predict(directions, return_std=True)
        variances = deviations**2 / model.noise_variance_ - 1.0
        assert_allclose(variances, expected, rtol=2e-7, atol=1e-14)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_of_frames_are_rows_of_arrays(library):
    """And a row of other columns is refused, whichever names were met before."""
    frame_of = pytest.importorskip(library).DataFrame
    X, y = linear(40)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    frame = frame_of(columns)
    if not hasattr(StandardScaler().fit(frame), "feature_names_in_"):
        pytest.skip(f"this scikit-learn reads no names of this {library}")
    of_frame, of_array = (
        OnlineVIRegressor(random_state=0).fit(x[:20], y[:20]) for x in (frame, X)
    )
    for t in range(20, 40):
        assert of_frame.predict(frame[t : t + 1]) == of_array.predict(X[t : t + 1])
        of_frame.partial_fit(frame[t : t + 1], y[t : t + 1])
        of_array.partial_fit(X[t : t + 1], y[t : t + 1])
    assert_allclose(of_frame.coef_, of_array.coef_, rtol=0)
    whole = frame_of({name: [7] for name in columns})  # numbers of another type
    assert of_frame.predict(whole) == of_array.predict(np.full((1, 4), 7.0))
    before = state_of(of_frame)
    turned = frame_of(dict(reversed(columns.items())))
    renamed = frame_of({f"y{j}": X[:, j] for j in range(4)})
    missing = frame_of({name: [math.nan] for name in columns})
    for table in (turned[:1], renamed[:1], missing[:1]):
        with pytest.raises(ValueError, match=r"feature names|NaN"):
            of_frame.partial_fit(table, y[:1])
        with pytest.raises(ValueError, match=r"feature names|NaN"):
            of_frame.predict(table)
    assert_same_state(before, state_of(of_frame))


def test_aggregate_of_a_row_is_the_weighted_mean():
    X, y = linear(60)
    pairs = [("a", OnlineVIRegressor()), ("b", SGDRegressor(random_state=0))]
    scaled = X / X.std(axis=0)
    model = EWARegressor(pairs).fit(scaled[:50], y[:50])
    alone = np.array([expert.predict(scaled[50:]) for expert in model.estimators_])
    assert_allclose(model.predict(scaled[50:]), model.weights_ @ alone, rtol=1e-12)
    rows = [model.predict(scaled[t : t + 1])[0] for t in range(50, 60)]
    assert_allclose(model.predict(scaled[50:]), rows, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The rows are nearly sorted")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_fourier_features_are_dropped_where_rows_are_sorted_by_class(n_classes):
    """However rows are split: they would remember the last class alone."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(150 * n_classes, 4))
    size = np.linalg.norm(X, axis=1)  # no line tells the classes apart
    y = np.digitize(size, np.quantile(size, np.arange(1, n_classes) / n_classes))
    order = np.argsort(y, kind="stable")
    model = OnlineVIClassifier(random_state=0)
    shuffled = clone(model).fit(X, y)
    assert shuffled.fourier_weight_.max() > VANISHED
    whole, pieces = clone(model).fit(X[order], y[order]), clone(model)
    for part in np.array_split(order, 11):
        pieces.partial_fit(X[part], y[part], classes=range(n_classes))
        certificate = pieces.certificate()
        assert certificate.observed <= certificate.bound
    assert_same_state(pieces, whole)
    assert not whole.fourier_weight_.any()
    line = OnlineVIClassifier(n_fourier=0).fit(X[order], y[order])
    assert_same_experts(whole._state, line._state)


def assert_same_experts(learnt, fewer):
    """Compare the models of experts; some of `fewer` were left out earlier."""
    both = []
    for state in (learnt, fewer):
        joint = np.arange(state.n_experts) < state.n_joint
        experts = zip(joint, state.prior_scales, state.forgetting_rates, strict=True)
        outputs = np.split(state.models, len(state.models) // state.n_experts)
        both.append(dict(zip(experts, np.stack(outputs, axis=1), strict=True)))
    assert all(np.array_equal(both[0][k], both[1][k]) for k in both[1])


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("joint", ["auto", "one_vs_rest"])
def test_fourier_features_of_no_use_are_dropped(loss, joint, several):
    """However rows are split, and the certificate covers all models until then.

    The linear models are those of n_fourier=0, bit for bit; rows of zero weight do not
    count.
    """
    n, most = 700, FIRST_DROP["labels"]
    X, y = linear(n, d=3, noise=9.0)
    y = np.digitize(y, np.quantile(y, [0.4, 0.7])) if several else (y > 0).astype(int)
    options = {"loss": loss, "multi_class": joint, "n_fourier": "auto"}
    model = OnlineVIClassifier(**options, random_state=0)
    whole, pieces = clone(model).fit(X, y), clone(model)
    for stop in range(13, n + 13, 13):
        pieces.partial_fit(
            X[stop - 13 : stop], y[stop - 13 : stop], classes=np.unique(y)
        )
        weights = whole.fourier_weight_
        certificate = pieces.certificate()
        assert certificate.observed <= certificate.bound
    assert_same_state(pieces, whole)
    assert not whole._state.phases.size
    before = clone(model).fit(X[:most], y[:most])
    assert before._state.phases.size  # not before there is a row to be learnt
    zero = np.zeros(5)
    after = copy.deepcopy(before).partial_fit(X[:5], y[:5], sample_weight=zero)
    assert_same_state(after, before)
    assert before.fourier_weight_.max() < VANISHED
    assert not weights.any()
    line = OnlineVIClassifier(**{**options, "n_fourier": 0}).fit(X, y)
    assert_same_experts(whole._state, line._state)
    assert_allclose(whole.coef_, line.coef_, rtol=1e-12)
    if loss == "log_loss":
        assert whole.cumulative_loss_ < line.cumulative_loss_ + 3 * math.log(7)
