"""Warnings of sorted rows and of weights that outweigh, for every estimator."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)

DEPEND_ON_ORDER = [
    OnlineVIClassifier(),
    OnlineVIClassifier(forgetting="auto"),
    OnlineVIClassifier(loss="hinge"),
    OnlineVIMLPClassifier(random_state=0),
    OnlineVIMLPRegressor(random_state=0),
    OnlineVIRegressor(forgetting="auto"),
    OnlineVIRegressor(forgetting=0.01),
    OnlineVIRegressor(covariance="diagonal"),
    OnlineVIRegressor(loss="quantile"),
    OnlineVIRegressor(loss="poisson"),
    OnlineVIRegressor(n_fourier=8, random_state=0),
    EWARegressor(),
]


def rows_for(model, n=300, classes=2):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    y = X @ [1.0, 2.0, 3.0, 0.0] + rng.normal(size=n)
    if getattr(model, "loss", "") == "poisson":
        y = rng.poisson(np.exp(0.3 * y)).astype(float)
    return X, (rng.permutation(n) % classes if is_classifier(model) else y)


@pytest.mark.parametrize("model", DEPEND_ON_ORDER, ids=repr)
@pytest.mark.parametrize("change", [lambda x: x, lambda x: 1e-3 * x + 1e4])
def test_sorted_rows_are_named(model, change):
    X, y = rows_for(model)
    model.fit(change(X), y)  # no warning: the order is random
    order = np.argsort(y, kind="stable")
    for rows in (order, order[::-1]):
        with pytest.warns(UserWarning, match="sorted by"):
            model.fit(change(X[rows]), y[rows])
    absent = np.concatenate([order, np.arange(len(y))])  # rows of no weight
    weights = np.repeat([1.0, 0.0], len(y))
    with pytest.warns(UserWarning, match="sorted by"):
        model.fit(X[absent], y[absent], sample_weight=weights)


@pytest.mark.parametrize("model", DEPEND_ON_ORDER, ids=repr)
def test_sorted_streams_are_named_however_they_are_cut(model):
    X, y = rows_for(model)
    classes = {"classes": np.unique(y)} if is_classifier(model) else {}
    order = np.argsort(y, kind="stable")

    def learn(X, y, size):
        stream = clone(model)
        for i in range(0, 300, size):
            stream.partial_fit(X[i : i + size], y[i : i + size], **classes)

    for size in (1, 7, 100, 300):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the order is random
            learn(X, y, size)
        with pytest.warns(UserWarning, match="sorted by") as said:
            learn(X[order], y[order], size)
        assert len(said) <= 5  # rows have doubled so often since there were 16


def test_a_sorted_stream_is_named_across_a_fit_and_weights_of_zero():
    X, y = rows_for(OnlineVIRegressor(), 600)
    order = np.argsort(y)
    first, later = np.split(order, 2)
    model = OnlineVIRegressor(covariance="diagonal")
    with pytest.warns(UserWarning, match="sorted by y"):
        model.fit(X[first], y[first])
    weights = np.repeat([1.0, 0.0], 300)
    rows = np.concatenate([later, first])  # the second half is absent
    with pytest.warns(UserWarning, match="sorted by y"):
        model.partial_fit(X[rows], y[rows], sample_weight=weights)


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_labels_in_long_runs_are_named_and_random_ones_are_not(classes):
    model = OnlineVIClassifier(forgetting=0.01)
    X, y = rows_for(model, 600, classes)
    y = np.array([f"class {k:02}" for k in y])
    for seed in range(8):
        rows = np.random.default_rng(seed).permutation(600)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X[rows], y[rows])
    with pytest.warns(UserWarning, match=f"labels change {classes - 1} times"):
        model.fit(X[np.argsort(y)], np.sort(y))


@pytest.mark.parametrize("classes", [40, 35, 20])
def test_classes_of_few_rows_are_in_no_order(classes):
    """Where each class has a row or two, labels change often in any order."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    for seed in range(20):
        y = np.random.default_rng(seed).permutation(40) % classes
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "The rows are nearly sorted")
            warnings.filterwarnings("ignore", "The number of unique classes")
            OnlineVIClassifier().fit(X, y)


def test_few_rows_show_no_order_and_a_rare_class_at_the_end_is_none():
    for y in (np.repeat([0, 1], 15), np.repeat([0, 1], [300, 5])):
        OnlineVIClassifier().fit(np.random.default_rng(0).normal(size=(len(y), 2)), y)


def test_a_full_covariance_hardly_depends_on_the_order():
    X, y = rows_for(OnlineVIRegressor())
    order = np.argsort(y)
    as_given = OnlineVIRegressor().fit(X, y)
    in_order = OnlineVIRegressor().fit(X[order], y[order])
    apart = as_given.predict(X) - in_order.predict(X)
    assert abs(apart).max() < 0.05 * np.sqrt(as_given.noise_variance_)


@pytest.mark.parametrize("model", [*DEPEND_ON_ORDER, OnlineVIRegressor()], ids=repr)
def test_a_row_that_outweighs_the_others_is_named(model):
    X, y = rows_for(model)
    weights = np.random.default_rng(1).uniform(0.5, 20.0, len(y))
    model.fit(X, y, sample_weight=weights)  # no warning
    weights[150] = 1e8
    with pytest.warns(UserWarning, match="One row has a weight of 1e\\+08, 100%"):
        model.fit(X, y, sample_weight=weights)
    model.fit(X, y)
    with pytest.warns(UserWarning, match="One row has a weight of 1e\\+06"):
        model.partial_fit(X[:1], y[:1], sample_weight=[1e6])


def test_the_warning_of_order_is_true():
    X, y = rows_for(OnlineVIRegressor(loss="poisson"))
    order, model = np.argsort(y, kind="stable"), OnlineVIRegressor(loss="poisson")
    as_given = np.log(model.fit(X, y).predict(X))
    with pytest.warns(UserWarning, match="sorted by y"):
        model.fit(X[order], y[order])
    assert abs(np.log(model.predict(X)) - as_given).max() > 0.5
    X, y = rows_for(OnlineVIRegressor())
    order, model = np.argsort(y), OnlineVIRegressor(forgetting="auto")
    as_given = model.fit(X, y).score(X, y)
    with pytest.warns(UserWarning, match="sorted by y"):
        assert model.fit(X[order], y[order]).score(X, y) < as_given - 0.3
