"""The effect of a small difference of two columns is learnt, or named by a warning."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)
from skpacbayes.online._dependent_columns import warn_of_dependent_columns

ESTIMATORS = {
    "full": OnlineVIRegressor(prior_scale=1.0),
    "full, forgets": OnlineVIRegressor(forgetting="auto"),
    "full, raw": OnlineVIRegressor(standardize=False),
    "full, Fourier": OnlineVIRegressor(n_fourier=10, random_state=0),
    "counts": OnlineVIRegressor(loss="poisson"),
    "diagonal": OnlineVIRegressor(covariance="diagonal"),
    "median": OnlineVIRegressor(loss="absolute_error"),
    "quantile": OnlineVIRegressor(loss="quantile", quantile=0.8),
    "gradient descent": OnlineVIRegressor(method="oga"),
    "network": OnlineVIMLPRegressor(random_state=0),
    "average": EWARegressor(),
    "labels": OnlineVIClassifier(prior_scale=1.0, random_state=0),
    "labels, hinge": OnlineVIClassifier(loss="hinge", n_fourier=0),
    "labels, network": OnlineVIMLPClassifier(random_state=0),
}
REMEMBER = ("full", "counts", "diagonal", "quantile", "labels", "labels, hinge")
MESSAGE = "nearly dependent"


def rows_and_targets(kind, model, n_rows=600, seed=0):
    """Return rows of four columns, of which two are nearly equal, and a target.

    kind : "difference", whose effect is large, "sum" or "none": what it depends on.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    X[:, 3] = X[:, 1] + 0.01 * X[:, 3]
    score = {"difference": 100.0 * (X[:, 3] - X[:, 1]), "sum": X[:, 1], "none": 0.0}
    score = score[kind] + np.zeros(n_rows)
    if is_classifier(model):
        y = (2.0 * score + rng.logistic(size=n_rows) > 0.0).astype(int)
        return X, y if "network" in str(model) else y + (score > 1.0)
    if getattr(model, "loss", None) == "poisson":
        return X, rng.poisson(np.exp(score)).astype(float)
    return X, score + 0.5 * rng.standard_t(3, n_rows)


def messages_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(found.message) for found in caught if MESSAGE in str(found.message)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_difference_that_is_not_learnt_is_named(name):
    model = ESTIMATORS[name]
    X, y = rows_and_targets("difference", model)
    for shift, scale in ((0.0, 1.0), (1e4, 1.0), (0.0, [1e-3, 1e3, 1.0, 1e3])):
        if name == "full, raw" and np.ndim(scale):
            continue  # its prior depends on the units
        Z = shift + scale * X
        (message,) = messages_of(lambda Z=Z: model.fit(Z, y))
        assert "column 1 of X and column 3 of X" in message


def test_wide_priors_of_labels_learn_a_difference():
    """By default; so there is nothing to name."""
    model = OnlineVIClassifier(random_state=0)
    for seed in range(3):
        X, y = rows_and_targets("difference", model, seed=seed)
        assert not messages_of(lambda X=X, y=y: model.fit(X, y))
        whitened = PCA(whiten=True).fit_transform(X)
        loss = clone(model).fit(whitened, y).cumulative_loss_
        assert model.cumulative_loss_ < 1.3 * loss


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_remedies_that_the_message_names(name):
    model = ESTIMATORS[name]
    X, y = rows_and_targets("difference", model)
    other = X.copy()
    other[:, 3] -= X[:, 1]
    if name == "full, raw":
        other *= [1.0, 1.0, 1.0, 100.0]
    for Z in (PCA(whiten=True).fit_transform(X), other):
        assert not messages_of(lambda Z=Z: model.fit(Z, y))
    if name in ("full", "counts"):
        wide = OnlineVIRegressor(random_state=0, loss=model.loss, prior_scale=100.0)
        assert not messages_of(lambda: wide.fit(X, y))


def test_a_stream_of_an_average_names_it_too():
    """By the rows that an expert remembers."""
    model = clone(ESTIMATORS["average"])
    X, y = rows_and_targets("difference", model)
    (first, *_) = messages_of(lambda: [model.partial_fit(X, y)])
    assert "column 1 of X and column 3 of X" in first


@pytest.mark.parametrize("kind", ["sum", "none"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_is_named_that_could_not_be_learnt(name, kind):
    model = ESTIMATORS[name]
    for seed in range(3):
        X, y = rows_and_targets(kind, model, n_rows=200, seed=seed)
        assert not messages_of(lambda X=X, y=y: model.fit(X, y))


@pytest.mark.parametrize("name", REMEMBER)
def test_a_stream_is_checked_too(name):
    """The message does not change, so that Python shows it once."""
    model = ESTIMATORS[name]
    X, y = rows_and_targets("difference", model)
    known = {"classes": np.unique(y)} if is_classifier(model) else {}
    model = type(model)(**model.get_params())

    def learn():
        for rows in np.array_split(np.arange(len(X)), 5):
            model.partial_fit(X[rows], y[rows], **known)

    assert len(set(messages_of(learn))) == 1


def test_weights_are_numbers_of_rows():
    model = ESTIMATORS["full"]
    X, y = rows_and_targets("difference", model, n_rows=100)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = messages_of(lambda: model.fit(X, y, sample_weight=weights))
    copies = np.repeat(np.arange(len(X)), weights)
    assert weighted == messages_of(lambda: model.fit(X[copies], y[copies])) != []
    small = np.full(len(X), 0.01)
    assert not messages_of(lambda: model.fit(X, y, sample_weight=small))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_without_weight_hide_nothing(name):
    model = ESTIMATORS[name]
    X, y = rows_and_targets("difference", model)
    weights = np.ones(len(X))
    found = messages_of(lambda: model.fit(X, y, sample_weight=weights))
    far = np.random.default_rng(1).normal(size=(len(X), 4)) + 1e14
    X, y, weights = np.r_[far, X], np.r_[y, y], np.r_[0.0 * weights, weights]
    assert found == messages_of(lambda: model.fit(X, y, sample_weight=weights)) != []


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X, y = rows_and_targets("difference", OnlineVIRegressor())
    frame = pandas.DataFrame(X, columns=["a", "bid", "c", "ask"])
    for model in (ESTIMATORS["full"], EWARegressor()):
        (message,) = messages_of(lambda model=model: model.fit(frame, y))
        assert "the column 'bid' and the column 'ask'" in message


@pytest.mark.parametrize("n_columns", [500, 501])
def test_many_columns_are_not_compared(n_columns):
    """The time would grow with the cube of the columns: for 2,500, twenty fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, n_columns))
    X[:, 1] = X[:, 0] + 0.01 * X[:, 1]
    y = 100.0 * (X[:, [1]] - X[:, [0]])
    names = [f"column {j}" for j in range(n_columns)]
    rows = X, y, lambda: y, np.empty(0), names
    assert len(messages_of(lambda: warn_of_dependent_columns(*rows))) == 501 - n_columns
