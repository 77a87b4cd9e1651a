"""A column whose unit changes along the stream is named, and others are not."""

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

ESTIMATORS = {
    "full": OnlineVIRegressor(),
    "full, forgets": OnlineVIRegressor(forgetting="auto"),
    "diagonal": OnlineVIRegressor(covariance="diagonal"),
    "quantile": OnlineVIRegressor(loss="quantile"),
    "counts": OnlineVIRegressor(loss="poisson"),
    "network": OnlineVIMLPRegressor(random_state=0),
    "average": EWARegressor(),
    "labels": OnlineVIClassifier(random_state=0),
    "labels, hinge": OnlineVIClassifier(loss="hinge", n_fourier=0),
    "labels, network": OnlineVIMLPClassifier(random_state=0),
}
REMEMBER = ("full", "diagonal", "quantile", "counts", "labels", "labels, hinge")


def messages_of(learn, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learn(*arguments, **options)
    messages = [str(found.message) for found in caught]
    return [message for message in messages if "last quarter" in message]


def rows_and_targets(model, n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    score = X[:, 0] - X[:, 1]
    if is_classifier(model):
        return X, (score + rng.logistic(size=n_rows) > 0.0).astype(int)
    return X, rng.poisson(np.exp(0.5 * score)).astype(float)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_change_of_unit_is_named(name):
    model = ESTIMATORS[name]
    X, y = rows_and_targets(model)
    for factor, n_before in ((1000.0, 200), (1e-3, 200), (100.0, 120), (0.01, 280)):
        for shift, scale in ((0.0, 1.0), (1e4, 1.0), (0.0, 1e-3), (0.0, 1e3)):
            Z = X.copy()
            Z[n_before:, 1] *= factor
            (message,) = messages_of(model.fit, shift + scale * Z, y)
            assert message.startswith("The values of column 1 of X have a spread")
            assert ("larger" if factor > 1.0 else "smaller") in message


@pytest.mark.parametrize("n_before", [120, 200, 280])
@pytest.mark.parametrize(
    "name", ["full", "full, forgets", "quantile", "network", "average"]
)
def test_a_change_of_the_unit_of_y_is_named(name, n_before):
    model = ESTIMATORS[name]
    X, y = rows_and_targets(model)
    y = y + 0.1 * X[:, 2]
    assert not messages_of(model.fit, X, y)
    for factor in (1000.0, 1e-3):
        for shift, scale in ((0.0, 1.0), (1e4, 1.0), (0.0, 1e-3), (0.0, 1e3)):
            z = scale * np.where(np.arange(400) < n_before, y, factor * y) + shift
            (message,) = messages_of(model.fit, X, z)
            assert message.startswith("The values of y have a spread")


def test_sorted_targets_and_growing_counts_are_not_named():
    """Sorted rows have a warning of their own, and counts have no unit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.sort(np.exp(3.0 * rng.normal(size=400)))
    assert not messages_of(OnlineVIRegressor(random_state=0).fit, X, y)
    X[:, 0] = np.linspace(-3.0, 3.0, 400)
    counts = rng.poisson(np.exp(3.0 + X[:, 0])).astype(float)
    model = OnlineVIRegressor(loss="poisson", random_state=0)
    assert not messages_of(model.fit, X, counts)


@pytest.mark.parametrize("name", REMEMBER)
def test_a_change_of_unit_is_named_in_a_stream(name):
    model = clone(ESTIMATORS[name])
    X, y = rows_and_targets(model, n_rows=512)
    X[256:, 1] *= 1000.0
    known = {"classes": [0, 1]} if is_classifier(model) else {}
    found = []
    for rows in np.split(np.arange(512), 8):
        found += messages_of(model.partial_fit, X[rows], y[rows], **known)
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_rows", [80, 2000])
def test_other_columns_are_not_named(seed, n_rows):
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=n_rows)
    columns = {
        "normal": normal,
        "heavy": rng.standard_cauchy(n_rows),
        "skewed": np.exp(5.0 * normal),
        "walk": normal.cumsum(),
        "time": np.arange(n_rows) + 2000.0,
        "sparse": normal * (rng.random(n_rows) < 0.1),
        "labels": rng.integers(0, 2, n_rows).astype(float),
        "late": normal * (np.arange(n_rows) > n_rows // 2),
        "constant": np.full(n_rows, 3.0),
        "volatile": normal * np.exp(0.5 * np.sin(np.arange(n_rows) / 50.0)),
        "celsius, then fahrenheit": np.where(
            np.arange(n_rows) < n_rows // 2, normal, 32.0 + 1.8 * normal
        ),
    }
    X = np.column_stack(list(columns.values()))
    assert not messages_of(
        OnlineVIRegressor(random_state=0).fit, X, rng.normal(size=n_rows)
    )


def test_rows_of_no_weight_do_not_count():
    X, y = rows_and_targets(OnlineVIRegressor(random_state=0))
    X[200:, 1] *= 1000.0
    weights = (np.arange(400) < 200).astype(float)
    assert not messages_of(
        OnlineVIRegressor(random_state=0).fit, X, y, sample_weight=weights
    )
