"""Experts of several kinds: fitted or learning, with names of columns or without."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from states import assert_same_state, state_of

from skpacbayes import EWARegressor, OnlineVIMLPRegressor, OnlineVIRegressor


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n)


def of_both_kinds(X, y):
    """Return experts that learn, and experts fitted to the first 50 rows."""
    return [
        ("line", OnlineVIRegressor(random_state=0)),
        ("network", OnlineVIMLPRegressor(random_state=0)),
        (
            "frozen",
            FrozenEstimator(OnlineVIRegressor(random_state=0).fit(X[:50], y[:50])),
        ),
        ("mean", DummyRegressor().fit(X[:50], y[:50])),
        ("pipeline", make_pipeline(StandardScaler(), Ridge()).fit(X[:50], y[:50])),
    ]


def weighted_means(predictions, y, weights, loss, bound):
    """Return Algorithm 1 in NumPy: predictions, losses, and the next weights."""
    losses, n_rows, means = np.zeros(len(predictions)), 0, []

    def shares():
        rate = math.sqrt(8 * math.log(len(losses)) / (n_rows + 1)) / bound
        relative = np.exp(-rate * (losses - losses.min()))
        return relative / relative.sum()

    for own, target, weight in zip(predictions.T, y, weights, strict=True):
        means.append(shares() @ own if bound else own.mean())
        if weight:
            errors = np.abs(own - target)
            suffered = errors**2 if loss == "squared_error" else errors
            losses, n_rows = losses + weight * suffered, n_rows + 1
            bound = max(bound, np.ptp(suffered))
    return np.array(means), losses, shares()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("bound", [None, 9.0])
def test_fifty_experts_of_very_different_losses(loss, bound):
    X, y = rows()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    experts = []
    for k, scale in enumerate(np.geomspace(1e-3, 1e3, 50)):
        expert = Ridge().fit(X, y)
        expert.coef_ *= scale
        experts.append((f"expert {k}", expert))
    predictions = np.array([expert.predict(X) for _, expert in experts])
    means, losses, shares = weighted_means(predictions, y, weights, loss, bound or 0.0)
    model = EWARegressor(experts, loss=loss, loss_bound=bound)
    with pytest.warns(UserWarning, match="Leave the expert 'expert 49' out"):
        model.fit(X, y, sample_weight=weights)
    assert_allclose(model.weights_, shares, rtol=1e-9)
    assert_allclose(model.cumulative_losses_, losses, rtol=1e-12)
    assert_allclose(model.predict(X), shares @ predictions, rtol=1e-9)
    errors = np.abs(means - y)
    suffered = errors**2 if loss == "squared_error" else errors
    assert_allclose(model.cumulative_loss_, weights @ suffered, rtol=1e-9)
    certificate = model.certificate()
    assert losses.min() <= certificate.observed <= certificate.bound


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_the_origin_of_the_targets_does_not_matter(loss):
    X, y = rows()
    models = [
        EWARegressor(of_both_kinds(X, y + shift), loss=loss).fit(X, y + shift)
        for shift in (0.0, 1e4)
    ]
    here, there = (
        np.array([*model.weights_, *model.cumulative_losses_, model.cumulative_loss_])
        for model in models
    )
    assert_allclose(there, here, rtol=1e-4)
    assert_allclose(models[1].predict(X) - 1e4, models[0].predict(X), atol=1e-3)


@pytest.mark.parametrize("n_absent", [0, 3])
def test_before_its_first_row_an_expert_predicts_the_mean_of_the_others(n_absent):
    X, y = rows()
    y = y + 100.0
    experts = of_both_kinds(X, y)
    weights = np.ones(len(y))
    weights[:n_absent] = 0.0
    model = EWARegressor(experts)
    if n_absent:
        model.partial_fit(X[:n_absent], y[:n_absent], sample_weight=weights[:n_absent])
        others = np.mean([expert.predict(X) for _, expert in experts[2:]], axis=0)
        assert_allclose(model.predict(X), others)
    expected = EWARegressor(experts).fit(X[n_absent:], y[n_absent:])
    assert_same_state(EWARegressor(experts).fit(X, y, weights), expected)
    assert expected.cumulative_losses_.max() < 1e4


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_experts_that_were_fitted_with_names(kind):
    """Nothing warns of missing names, and columns in another order are refused."""
    X, y = rows()

    def frame(values):
        return kind(dict(zip("abc", values.T, strict=True)))

    some = make_pipeline(make_column_transformer((StandardScaler(), ["c"])), Ridge())
    named = [
        ("line", OnlineVIRegressor(random_state=0)),
        ("ridge", Ridge().fit(frame(X[:50]), y[:50])),
        ("some", some.fit(frame(X[:50]), y[:50])),
        (
            "ours",
            FrozenEstimator(
                OnlineVIRegressor(random_state=0).fit(frame(X[:50]), y[:50])
            ),
        ),
    ]
    model = EWARegressor(named).partial_fit(frame(X[:150]), y[:150])
    for row in range(150, 200):
        model.partial_fit(frame(X[row : row + 1]), y[row : row + 1])
    for (name, expert), total in zip(named, model.cumulative_losses_, strict=True):
        if name != "line":
            assert_allclose(((expert.predict(frame(X)) - y) ** 2).sum(), total)
    predictions = [expert.predict(frame(X)) for _, expert in named[1:]]
    line = model.estimators_[0].predict(X)
    mean = model.weights_ @ [line, *predictions]
    assert_allclose(model.predict(frame(X)), mean)
    before = state_of(model)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="feature names should match"):
            method(frame(X)[["c", "a", "b"]], y)
    assert state_of(model) == before


@pytest.mark.parametrize(
    "expert",
    [Ridge(), make_pipeline(StandardScaler(), Ridge()), OnlineVIRegressor()],
    ids=["line", "pipeline", "learning"],
)
def test_frozen_experts_keep_their_fit_in_clones(expert):
    """In cross-validation, searches and ensembles; the error names the wrapper."""
    X, y = rows()
    expert.fit(X[:50], y[:50])
    frozen = EWARegressor([("frozen", FrozenEstimator(expert))])
    assert cross_val_score(frozen, X, y).min() > 0.9
    search = GridSearchCV(frozen, {"loss": ["squared_error", "absolute_error"]})
    assert search.fit(X, y).best_score_ > 0.9
    assert_allclose(clone(frozen).fit(X, y).predict(X), expert.predict(X))
    if not hasattr(expert, "partial_fit"):
        with pytest.raises(NotFittedError, match=r"wrap it in sklearn\.frozen"):
            clone(EWARegressor([("line", expert)])).fit(X, y)
