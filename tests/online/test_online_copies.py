"""Warnings of copies of rows, of weights that are too small, and of fast changes."""

import re
import warnings

import numpy as np
import pytest
from online_cases import DEPEND_ON_ORDER
from sklearn.base import clone, is_classifier
from sklearn.metrics import log_loss

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)

MODELS = [*DEPEND_ON_ORDER, OnlineVIClassifier(loss="hinge", n_fourier=0)]
WITH_CURVES = [
    OnlineVIClassifier(random_state=0),
    OnlineVIClassifier(loss="hinge", random_state=0),
    OnlineVIRegressor(n_fourier="auto", random_state=0),
]
COPIES, PASSES = "of the rows equal the row before", "Rows are learnt again"


def rows_for(model, n=150, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X @ [1.0, 2.0, 3.0, 0.0] + rng.normal(size=n)
    if getattr(model, "loss", "") == "poisson":
        y = rng.poisson(np.exp(0.3 * y)).astype(float)
    return X, (y > 0).astype(int) if is_classifier(model) else y


def learn(model, X, y, size, weights=None):
    """Learn a stream in calls of some rows; return the messages of its warnings."""
    model = clone(model)
    known = {"classes": np.unique(y)} if is_classifier(model) else {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            own = None if weights is None else weights[rows]
            model.partial_fit(X[rows], y[rows], sample_weight=own, **known)
    return [str(one.message) for one in said]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_copies_of_the_row_before_are_named(model):
    """In any unit, and however a stream is cut; also with absent rows between them."""
    X, y = rows_for(model)
    for unit, origin in ((1.0, 0.0), (1e-3, 1e4)):
        copies = np.repeat(np.arange(len(y)), 2)
        own = unit * X + origin
        for size in (1, 7, 300):
            said = learn(model, own[copies], y[copies], size)
            assert any(COPIES in message for message in said)
        with pytest.warns(UserWarning, match=COPIES):
            clone(model).fit(own[copies], y[copies])
    with_others = np.stack([copies, (copies + 77) % len(y)], axis=1).ravel()
    weights = np.tile([1.0, 0.0], len(copies))
    with pytest.warns(UserWarning, match=COPIES):
        clone(model).fit(X[with_others], y[with_others], sample_weight=weights)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_weights_instead_of_copies_are_not_named(model):
    X, y = rows_for(model)
    clone(model).fit(X, y, sample_weight=np.full(len(y), 2.0))  # a warning is an error


def test_rows_that_are_equal_by_chance_are_no_copies():
    """Rows of one column with two values: a third of the rows equal the row before."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.integers(2, size=(1000, 1)).astype(float)
        y = np.where(rng.random(1000) < 0.1, 1.0 - X[:, 0], X[:, 0]).astype(int)
        assert ((np.diff(X[:, 0]) == 0) & (np.diff(y) == 0)).mean() > 0.3
        for model in (OnlineVIClassifier(n_fourier=0), OnlineVIMLPClassifier()):
            for size in (50, 1000):
                assert not any(COPIES in one for one in learn(model, X, y, size))


def test_the_warning_of_copies_is_true():
    rng = np.random.default_rng(0)
    X, line = rng.normal(size=(300, 5)), rng.normal(size=5)
    X_new = rng.normal(size=(1000, 5))
    y = X @ line + rng.normal(size=300)
    copies = np.repeat(np.arange(300), 10)
    model = OnlineVIRegressor(random_state=0, forgetting="auto")
    with pytest.warns(UserWarning, match=COPIES):
        spoilt = model.fit(X[copies], y[copies]).score(X_new, X_new @ line)
    model.fit(X, y, sample_weight=np.full(300, 10.0))  # as the warning asks for
    assert model.score(X_new, X_new @ line) > 0.98 > 0.95 > spoilt


@pytest.mark.parametrize("model", WITH_CURVES, ids=repr)
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_second_pass_over_the_rows_is_named(model, shuffled):
    X, y = rows_for(model)
    y = y + (0 if is_classifier(model) else 1e4)
    rng = np.random.default_rng(1)
    passes = [rng.permutation(150) if shuffled else np.arange(150) for _ in range(4)]
    for unit in (1.0, 1e3):
        once = learn(model, unit * X, y, 50)
        assert not any(PASSES in message for message in once)
        for size in (1, 50, 300):  # two passes at once: later the curves are dropped
            rows = np.concatenate(passes)
            said = learn(model, unit * X[rows], y[rows], size)
            assert any(PASSES in message for message in said)
    straight = clone(model).set_params(n_fourier=0)
    assert not any(PASSES in one for one in learn(straight, X[rows], y[rows], 50))


def test_few_distinct_rows_are_not_learnt_again():
    """Each of 32 distinct rows returns, and soon also after 16 rows."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.integers(2, size=(1000, 4)).astype(float)
        y = (X.sum(axis=1) + rng.logistic(size=1000) > 2).astype(int)
        model = OnlineVIClassifier(random_state=0)
        assert not any(PASSES in one for one in learn(model, X, y, 100))


def test_the_warning_of_a_second_pass_is_true():
    rng = np.random.default_rng(0)
    X, line = rng.normal(size=(1300, 5)), rng.normal(size=5)
    y = (X @ line + 3 * rng.logistic(size=1300) > 0).astype(int)
    model = OnlineVIClassifier(random_state=0).fit(X[:300], y[:300])
    once = log_loss(y[300:], model.predict_proba(X[300:]))
    with pytest.warns(UserWarning, match=PASSES):
        model.fit(np.tile(X[:300], (4, 1)), np.tile(y[:300], 4))
    assert log_loss(y[300:], model.predict_proba(X[300:])) > once + 0.05


@pytest.mark.parametrize("model", [*MODELS, OnlineVIRegressor()], ids=repr)
def test_weights_that_add_up_to_one_row_are_named(model):
    """In `fit`, and in a stream; relative weights of mean 1 are not."""
    X, y = rows_for(model)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    asked = "add up to 1: .* multiply them by 150"
    with pytest.warns(UserWarning, match=asked):
        clone(model).fit(X, y, sample_weight=weights / weights.sum())
    light = learn(model, X, y, 10, weights / weights.sum())
    assert any("add up to" in message for message in light)
    for total in (100.0, 1e4):  # few rows, or many
        own = total / weights.sum() * weights
        assert not any("add up to" in one for one in learn(model, X, y, 10, own))


def test_the_warning_of_light_rows_is_true():
    for model in (OnlineVIRegressor(), OnlineVIClassifier(random_state=0)):
        X, y = rows_for(model)
        light = clone(model)
        with pytest.warns(UserWarning, match="stays near its prior"):
            light.fit(X, y, sample_weight=np.full(150, 1 / 150))
        scores = getattr(light, "decision_function", light.predict)(X)
        heavy = clone(model).fit(X, y)
        fitted = getattr(heavy, "decision_function", heavy.predict)(X)
        assert np.std(scores) < 0.8 * np.std(fitted)


MADE_HEAVY = [  # a model, and the mean weight from which a warning is given
    (OnlineVIMLPRegressor(random_state=0), 100.0),
    (OnlineVIMLPClassifier(random_state=0), 100.0),
    (OnlineVIClassifier(random_state=0), 1e6),
    (OnlineVIRegressor(random_state=0, loss="absolute_error"), 1e6),
    (OnlineVIRegressor(random_state=0), np.inf),
]


@pytest.mark.parametrize(("model", "most"), MADE_HEAVY, ids=repr)
def test_weights_that_are_many_copies_are_named(model, most):
    """In `fit` and in a stream, without a further warning of what they bring about."""
    X, y = rows_for(model)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    for mean in (1.0, 50.0, 150.0, 1e4, 1e7, 1e12):
        own = mean / weights.mean() * weights
        for size in (10, len(y)):
            said = learn(model, X, y, size, own)
            if mean > most:
                assert said
                assert all("each row counts as that many copies" in one for one in said)
            else:
                assert not any("copies, is learnt" in one for one in said)


def test_the_warning_of_heavy_rows_is_true():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = X @ rng.normal(size=20) + 2.0 * rng.normal(size=1000)
    weights = rng.uniform(500.0, 1500.0, 1000)
    heavy = OnlineVIMLPRegressor(random_state=0)
    with pytest.warns(UserWarning, match="each row counts as that many copies") as said:
        heavy.fit(X, y, sample_weight=weights)
    factor = float(re.search("multiply them by (.*?),", str(said[0].message))[1])
    light = clone(heavy).fit(X, y, sample_weight=factor * weights)
    assert heavy.score(X, y) < 0.2 < 0.7 < light.score(X, y)


EXPOSURES = {
    "equal": lambda rng, n: np.ones(n),
    "unequal": lambda rng, n: rng.gamma(2.0, 0.5, n),
    "skewed": lambda rng, n: rng.lognormal(0.0, 1.0, n),
}


@pytest.mark.parametrize("kind", EXPOSURES)
def test_exposures_in_any_unit_are_no_doubtful_weights(kind):
    """An exposure in hours or in years gives the same warnings: none."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(400, 2)), 400
    time, rate = EXPOSURES[kind](rng, n), np.exp(0.5 * X[:, 0])
    y = rng.poisson(rate * time)
    for options in ({}, {"covariance": "diagonal"}, {"forgetting": "auto"}):
        model = OnlineVIRegressor(loss="poisson", n_fourier=0, **options)
        for unit in (1e-8, 1e-4, 1.0, 1e4, 1e8):
            own = unit * time
            for size in (50, n):
                assert learn(model, X, y / own, size, own) == []


@pytest.mark.parametrize("kind", EXPOSURES)
def test_events_are_counted_without_the_growth_of_columns(kind):
    """The sum and the largest of the counts, also where the unit of a column grows."""
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(400, 2)), EXPOSURES[kind](rng, 400)
    y = rng.poisson(np.exp(0.5 * X[:, 0]) * time)
    X[200:] *= 1.5
    for options in ({}, {"covariance": "diagonal"}, {"forgetting": "auto"}):
        model = OnlineVIRegressor(loss="poisson", n_fourier=0, **options)
        for start in range(0, 400, 50):
            rows = slice(start, start + 50)
            model.partial_fit(X[rows], y[rows] / time[rows], time[rows])
        np.testing.assert_allclose(model._state.events, y.sum(), rtol=1e-12)
        np.testing.assert_allclose(model._state.most_events, y.max(), rtol=1e-12)


def test_heavy_exposures_are_learnt_as_light_ones():
    """Also of counts that vary more than Poisson ones, whose rate is no exponential."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    rate = np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1] * X[:, 2]) * rng.gamma(2.0, 0.5, 500)
    errors = []
    for exposure in (1e2, 1e5, 1e10):
        model = OnlineVIRegressor(loss="poisson", n_fourier=0)
        own = np.full(500, exposure)
        model.fit(X, rng.poisson(rate * own) / own, sample_weight=own)
        errors.append(np.std(np.log(model.predict(X) / rate)))
    assert max(errors) < 1.05 * errors[0]


def test_an_event_after_a_very_short_exposure_is_no_far_row():
    """But the same rate over an ordinary exposure is."""
    rng = np.random.default_rng(0)
    X, y, time = rng.normal(size=(300, 2)), rng.poisson(1.0, 300) * 1.0, np.ones(300)
    y[7] = 1e4
    for size in (7, 300):
        for short, warns in ((1e-4, False), (1.0, True)):
            time[7] = short
            model = OnlineVIRegressor(loss="poisson", n_fourier=0)
            said = learn(model, X, y, size, time)
            assert any("has the value 10000 in y" in one for one in said) == warns


SEASON = {"fast": 100, "slow": 1000}


@pytest.mark.parametrize("season", SEASON)
@pytest.mark.parametrize(
    "model",
    [
        OnlineVIRegressor(random_state=0),
        OnlineVIRegressor(random_state=0, forgetting=1e-3),
        EWARegressor([("never", OnlineVIRegressor())]),
        EWARegressor(
            [
                (str(f), OnlineVIRegressor(random_state=0, forgetting=f))
                for f in (0.0, 1e-3, 1e-2)
            ]
        ),
    ],
    ids=["never", "slowly", "an expert that never does", "three experts"],
)
def test_a_change_that_is_faster_than_forgetting_is_named(model, season):
    """And "auto", which the warning asks for, has less than half of the loss."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(2000, 3)), np.arange(2000)
    turning = X[:, 0] * np.sin(2 * np.pi * t / SEASON[season])
    noise = 0.1 * rng.normal(size=2000)
    for unit, origin in ((1.0, 0.0), (1e-3, 1e4)):
        clone(model).fit(unit * X + origin, X[:, 0] + noise)  # a warning is an error
        y = unit * (turning + 0.5 * X[:, 1] + noise) + origin
        with pytest.warns(UserWarning, match="errors of recent rows predict") as said:
            clone(model).fit(unit * X + origin, y)
        assert "forgetting='auto'" in str(said[0].message)
    y = turning + 0.5 * X[:, 1] + noise
    with pytest.warns(UserWarning, match="errors of recent rows predict"):
        own = clone(model).fit(X, y)
    best = OnlineVIRegressor(random_state=0, forgetting="auto").fit(X, y)
    assert best.cumulative_loss_ < 0.5 * own.cumulative_loss_


RUNS = [
    OnlineVIClassifier(forgetting="auto", random_state=0),
    OnlineVIClassifier(forgetting="auto", n_fourier=0, clip=5),
    OnlineVIMLPClassifier(random_state=0),
]


@pytest.mark.parametrize("model", RUNS, ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_label_that_stays_the_same_is_named(model, classes):
    """First, or in the middle; a frequent label in random order is not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    y = (X[:, 0] + rng.logistic(size=1000) > 0) + (X[:, 1] > 1) * (classes == 3)
    alone = np.flatnonzero(y == 0)[:300]
    others = rng.permutation(np.setdiff1d(np.arange(1000), alone))
    for order in (
        np.concatenate([alone, others]),
        np.concatenate([others[:300], alone, others[300:]]),
    ):
        for unit in (1.0, 1e4):
            said = learn(model, unit * X[order], y[order], 100)
            assert any("A label stays the same for" in message for message in said)
    rare = (rng.random(1000) < 0.003).astype(int)
    for labels in (y, rare):
        assert not learn(model, X, labels, 100)


def test_a_level_that_is_missed_is_named():
    """With noise that ends; not with normal noise, nor for the upper quantile."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    line, edge, normal = (
        X.sum(axis=1),
        rng.exponential(size=3000),
        rng.normal(size=3000),
    )
    low = OnlineVIRegressor(random_state=0, loss="quantile", quantile=0.05)
    for unit, origin in ((1.0, 0.0), (1e-3, 1e4)):
        for noise in (normal, -edge):
            clone(low).fit(unit * X, unit * (line + noise) + origin)  # no warning
        y = unit * (line + edge) + origin
        clone(low).set_params(quantile=0.9).fit(unit * X, y)
        with pytest.warns(UserWarning, match="are below their predicted quantile"):
            fitted = clone(low).fit(unit * X, y)
        assert np.mean(y < fitted.predict(unit * X)) < 0.03
