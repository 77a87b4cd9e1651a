"""Warnings of sorted rows and of weights that outweigh, for every estimator."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from online_cases import DEPEND_ON_ORDER
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyRegressor
from sklearn.metrics import log_loss, mean_poisson_deviance
from states import state_of

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)


def rows_for(model, n=300, classes=2):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    y = X @ [1.0, 2.0, 3.0, 0.0] + rng.normal(size=n)
    if getattr(model, "loss", "") == "poisson":
        y = rng.poisson(np.exp(0.3 * y)).astype(float)
    return X, (rng.permutation(n) % classes if is_classifier(model) else y)


@pytest.mark.parametrize("model", DEPEND_ON_ORDER, ids=repr)
def test_sorted_rows_are_named(model):
    """Every other model has rows in another unit, about another origin."""
    X, y = rows_for(model)
    elsewhere = DEPEND_ON_ORDER.index(model) % 2

    def change(x):
        return 1e-3 * x + 1e4 if elsewhere else x

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
    X, y = rows_for(OnlineVIRegressor(random_state=0), 600)
    order = np.argsort(y)
    first, later = np.split(order, 2)
    model = OnlineVIRegressor(random_state=0, covariance="diagonal")
    with pytest.warns(UserWarning, match="sorted by y"):
        model.fit(X[first], y[first])
    weights = np.repeat([1.0, 0.0], 300)
    rows = np.concatenate([later, first])  # the second half is absent
    with pytest.warns(UserWarning, match="sorted by y"):
        model.partial_fit(X[rows], y[rows], sample_weight=weights)


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_labels_in_long_runs_are_named_and_random_ones_are_not(classes):
    model = OnlineVIClassifier(forgetting=0.01, random_state=0)
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
            OnlineVIClassifier(random_state=0).fit(X, y)


def test_few_rows_show_no_order_and_a_rare_class_at_the_end_is_none():
    for y in (np.repeat([0, 1], 15), np.repeat([0, 1], [300, 5])):
        X = np.random.default_rng(0).normal(size=(len(y), 2))
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "The rows are nearly sorted")
            warnings.filterwarnings("ignore", "The final model has a mean loss")
            OnlineVIClassifier(random_state=0).fit(X, y)


def test_a_full_covariance_hardly_depends_on_the_order():
    X, y = rows_for(OnlineVIRegressor(n_fourier=0))
    order = np.argsort(y)
    as_given = OnlineVIRegressor(n_fourier=0).fit(X, y)
    in_order = OnlineVIRegressor(n_fourier=0).fit(X[order], y[order])
    apart = as_given.predict(X) - in_order.predict(X)
    assert abs(apart).max() < 0.05 * np.sqrt(as_given.noise_variance_)


@pytest.mark.filterwarnings("ignore:The errors of recent rows")
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
    X, y = rows_for(OnlineVIRegressor(random_state=0, loss="poisson"))
    order, model = np.argsort(y, kind="stable"), OnlineVIRegressor(loss="poisson")
    as_given = np.log(model.fit(X, y).predict(X))
    with pytest.warns(UserWarning, match="sorted by y"):
        model.fit(X[order], y[order])
    assert abs(np.log(model.predict(X)) - as_given).max() > 0.5
    X, y = rows_for(OnlineVIRegressor(random_state=0))
    order, model = np.argsort(y), OnlineVIRegressor(random_state=0, forgetting="auto")
    as_given = model.fit(X, y).score(X, y)
    with pytest.warns(UserWarning, match="sorted by y"):
        assert model.fit(X[order], y[order]).score(X, y) < as_given - 0.3


CHANGES = {
    "turns": lambda X, t: 2 * X[:, 0] * np.cos(3 * t) + 2 * X[:, 1] * np.sin(3 * t),
    "flips": lambda X, t: X[:, 0] * np.where(t < 0.5, 1.0, -1.0),
    "comes again": lambda X, t: X[:, 0] * np.where(6 * t % 2 < 1, 1.0, -1.0),
    "jumps": lambda X, t: X[:, 0] + 4 * (t > 0.6),
    "rises": lambda X, t: X[:, 0] + 6 * t,
}
NETWORKS = [
    OnlineVIMLPRegressor(random_state=0),
    OnlineVIMLPClassifier(random_state=0),
    OnlineVIMLPClassifier(hidden_units=10, random_state=1),
]


@pytest.mark.parametrize("model", NETWORKS, ids=repr)
def test_a_network_that_forgets_too_slowly_is_named(model):
    """Where one with the forgetting that the warning asks for predicts better."""
    rng = np.random.default_rng(2)
    n = 2000
    X = rng.normal(size=(n, 5))
    turn = np.cos(2 * np.pi * np.arange(n)[:, None] / 600 + np.arange(5))
    signals = {
        "a line that turns": np.sum(X * turn, axis=1),
        "a line": X.sum(axis=1),
        "no line": np.abs(X).sum(axis=1) - 4,
        "nothing": np.zeros(n),
    }
    for name, signal in signals.items():
        y = signal + 0.3 * rng.normal(size=n)
        if is_classifier(model):
            y = (y > 0) + (y > 1.0) * (model.hidden_units == 10)  # two classes or three
        if name == "a line that turns":
            with pytest.warns(
                UserWarning, match="faster than forgetting=0.001 forgets"
            ):
                slow = clone(model).fit(X, y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fast = clone(model).set_params(forgetting=0.01).fit(X, y)
            assert fast.cumulative_loss_ < slow.cumulative_loss_
        else:
            clone(model).fit(X, y)  # a warning is an error


STANDS_STILL = [
    OnlineVIRegressor(n_fourier=0),
    OnlineVIRegressor(n_fourier=0, covariance="diagonal"),
    OnlineVIRegressor(n_fourier=0, loss="quantile", quantile=0.2),
    OnlineVIRegressor(n_fourier=0, loss="poisson"),
    OnlineVIRegressor(n_fourier=0, loss="poisson", covariance="diagonal"),
]


@pytest.mark.parametrize("model", STANDS_STILL, ids=repr)
def test_a_target_that_stood_still_is_named(model):
    """And one that forgets predicts better; zeros in between are no standstill."""
    X, y = rows_for(model, 3000)
    rng = np.random.default_rng(1)
    for share in (0.0, 0.5, 0.9, 0.99):
        clone(model).fit(X, np.where(rng.random(3000) < share, 0.0, y))  # no warning
    y[:2000] = 5.0
    with pytest.warns(UserWarning, match="forgetting='auto'"):
        stays = clone(model).fit(X, y)
    forgets = clone(model).set_params(forgetting="auto").fit(X, y)
    assert stays.score(X[2000:], y[2000:]) < forgets.score(X[2000:], y[2000:]) - 0.1


NOISES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_t(2, size=n),
    "skewed": lambda rng, n: rng.lognormal(0.0, 1.0, size=n),
}


def learn_in_cuts(model, X, y):
    for start in range(0, len(y), 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e-3, 1e4)])
def test_a_stream_that_changes_is_named(unit, origin):
    """And one that forgets is better there, by more than a tenth of the loss."""
    rng = np.random.default_rng(0)
    n = 1200
    X, t = rng.normal(size=(n, 5)), np.linspace(0.0, 1.0, n)
    for change in CHANGES.values():
        y = unit * (change(X, t) + rng.normal(size=n)) + origin
        Z = unit * X + origin
        model = OnlineVIRegressor(random_state=0)
        with pytest.warns(UserWarning, match="predict the next error"):
            model.fit(Z, y)
        forgets = clone(model).set_params(forgetting="auto").fit(Z, y)
        losses = [m.cumulative_loss_ - y[0] ** 2 for m in (forgets, model)]
        assert losses[0] < 0.9 * losses[1]
        with pytest.warns(UserWarning, match="predict the next error"):
            learn_in_cuts(clone(model), Z, y)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_a_stream_that_does_not_change_is_not(noise):
    """Whatever its features and noise, and where a line does not fit it.

    An error of a right model has mean zero given those before, so that each of the 81
    sums passes five standard errors with a probability of 3e-7, if it is normal.
    """
    for seed in range(3):
        rng = np.random.default_rng([seed, 1])
        for n, d in ((150, 3), (800, 3), (800, 25)):
            features = {
                "normal": rng.normal(size=(n, d)),
                "heavy": rng.standard_t(2, size=(n, d)),
                "rare": (rng.random((n, d)) < 0.1).astype(float),
                "walks": np.cumsum(rng.normal(size=(n, d)), axis=0),
            }
            for name, X in features.items():
                line = X @ rng.normal(size=d)
                targets = [3 * line + NOISES[noise](rng, n)]
                if name != "walks":  # elsewhere the tangent changes with the features
                    targets.append(np.abs(X[:, 0]) + NOISES[noise](rng, n))
                for y in targets:
                    OnlineVIRegressor(random_state=0).fit(X, y)  # a warning is an error
                if name == "normal":  # a diagonal covariance learns slowly, in silence
                    clear = line + 0.03 * NOISES[noise](rng, n)
                    OnlineVIRegressor(random_state=0, covariance="diagonal").fit(
                        X, clear
                    )


@pytest.mark.parametrize("model", [*DEPEND_ON_ORDER, OnlineVIRegressor()], ids=repr)
@pytest.mark.parametrize("where", ["column 1 of X", "y"])
def test_a_row_that_is_far_from_all_others_is_named(model, where):
    """In any unit, in `fit` and row by row; heavy tails alone are not."""
    if where == "y" and is_classifier(model):
        pytest.skip("labels are not far from each other")
    rng = np.random.default_rng(0)
    X, y = rows_for(model)
    X[:, 0] = rng.standard_t(2, size=len(X))
    X[:, 2] = rng.lognormal(0.0, 2.0, size=len(X))
    clone(model).fit(X, y)  # a warning is an error
    unit = 1e6 if getattr(model, "loss", "") == "poisson" else -1e6
    target = X[:, 1] if where == "column 1 of X" else y
    target[50] = unit * np.abs(target).max()
    for scale in (1e-3, 1e3):
        with pytest.warns(UserWarning, match=f"A row has the value .* in {where}, and"):
            clone(model).fit(scale * X, y if is_classifier(model) else scale * y)
    stream = clone(model).fit(X[:40], y[:40])
    for t in range(40, 63):
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
    with pytest.warns(UserWarning, match=f"A row has the value .* in {where}, and"):
        stream.partial_fit(X[63:64], y[63:64])


def test_a_first_block_with_rows_of_no_weight_is_looked_at():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(100, 2)), (np.arange(100) < 64).astype(float)
    X[3, 1] = 1e9
    for model in (OnlineVIRegressor(), OnlineVIClassifier(random_state=0)):
        known = {"classes": [0, 1]} if is_classifier(model) else {}
        y = rng.integers(2, size=100)
        with pytest.warns(UserWarning, match="A row has the value 1e.09"):
            model.partial_fit(X, y, sample_weight=weights, **known)


class Diverging(RegressorMixin, BaseEstimator):
    """Predicts 0, and once a huge number."""

    def __init__(self, at=100, value=1e9):
        self.at, self.value = at, value

    def partial_fit(self, X, y):
        self.count_ = getattr(self, "count_", 0) + len(X)
        return self

    def predict(self, X):
        return np.full(len(X), self.value if self.count_ == self.at else 0.0)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("value", [1e9, np.inf])
def test_an_expert_that_diverges_is_named(loss, value):
    X, y = rows_for(EWARegressor())
    linear = ("linear", OnlineVIRegressor())
    model = EWARegressor([linear, ("wild", Diverging(value=value))], loss=loss)
    with pytest.warns(UserWarning, match="Leave the expert 'wild' out"):
        model.fit(X, y)
    with pytest.warns(UserWarning, match="Leave the expert 'wild' out"):
        learn_in_cuts(clone(model), X, y)
    assert model.cumulative_loss_ > 3 * model.cumulative_losses_[0]
    # Neither experts that are bad all along nor the default ones are.
    EWARegressor([linear, ("zero", Diverging(at=-1))], loss=loss).fit(X, y)
    EWARegressor(loss=loss).fit(X, y)


class Constant(RegressorMixin, BaseEstimator):
    """Predicts a number, or a line of the features plus that number."""

    def __init__(self, value=0.0, line=None):
        self.value, self.line = value, line

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.value + (0.0 if self.line is None else X @ self.line)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("origin", [0.0, 1e4])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_an_expert_is_named_as_long_as_it_moves_the_average(loss, origin, noise):
    """That is: while the average is further from targets than a constant forecast."""
    rng = np.random.default_rng(0)
    X, line = rng.normal(size=(1500, 3)), np.array([1.0, 2.0, 3.0])
    y = origin + X @ line + noise * rng.normal(size=len(X))
    exact = ("exact", Constant(origin, line).fit(X))
    learns = ("learns", OnlineVIRegressor(covariance="diagonal"))
    near = [("near", Constant(origin + 10).fit(X)), ("zero", Constant().fit(X))]
    huge = ("huge", Constant(1e30).fit(X))
    for good in (
        [learns],
        [exact],
        [learns, exact],
        [exact, near[0]],
        [exact, near[1]],
    ):
        learn_in_cuts(EWARegressor(good, loss=loss), X, y)  # a warning is an error
        told = []
        model = EWARegressor([*good, huge], loss=loss)
        for t in range(len(X)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.partial_fit(X[t : t + 1], y[t : t + 1])
            told += [t + 1 for w in caught if "expert 'huge' out" in str(w.message)]
        assert told[:5] == [32, 64, 128, 256, 512]
        if told == [32, 64, 128, 256, 512]:
            assert abs(model.predict(X) - y).std() < y.std()
    assert model.weights_[2] < 1e-30


def test_an_expert_that_predicts_nan_is_refused():
    X, y = rows_for(EWARegressor())
    experts = [("linear", OnlineVIRegressor()), ("lost", Diverging(40, np.nan))]
    model = EWARegressor(experts).partial_fit(X[:40], y[:40])
    before = state_of(model)
    for call in (model.partial_fit, lambda X, y: model.predict(X)):
        with pytest.raises(ValueError, match="The expert 'lost' predicts NaN"):
            call(X[40:], y[40:])
    assert state_of(model) == before


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize(
    "shape", [lambda n: (n, 1), lambda n: (1, n), lambda n: (n + 1,)]
)
def test_an_expert_predicts_one_number_for_each_row(shape, learns):
    """Anything else would be refused in NumPy's words, or repeated for all rows."""

    class Odd(DummyRegressor):
        def predict(self, X):
            return np.ones(shape(len(X)))

        if learns:
            partial_fit = DummyRegressor.fit

    X, y = rows_for(EWARegressor())
    expert = Odd().fit(X, y)
    model = EWARegressor([("odd", expert)])
    with pytest.raises(
        ValueError, match=r"predict an array of shape .*Odd\(\) predicts"
    ):
        model.fit(X, y)


LOSSES = [
    {"loss": "squared_error"},
    {"loss": "squared_error", "covariance": "diagonal"},
    {"loss": "absolute_error"},
    {"loss": "quantile", "quantile": 0.8},
    {"loss": "poisson"},
    {"loss": "poisson", "covariance": "diagonal"},
    {"loss": "squared_error", "method": "sva"},
    {"loss": "squared_error", "method": "oga"},
    {"loss": "log_loss"},
    {"loss": "log_loss", "multi_class": "one_vs_rest"},
    {"loss": "hinge"},
]
HARDLY_SPOILT = [
    {"loss": "squared_error"},
    {"loss": "absolute_error"},
    {"loss": "squared_error", "method": "sva"},
]


@pytest.mark.parametrize("change", [lambda x: x, lambda x: 1e-3 * x + 1e4])
@pytest.mark.parametrize("parameters", LOSSES, ids=str)
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_a_fit_that_persons_in_turn_have_spoilt_is_named(parameters, change):
    """Whatever the loss: where rows in random order give a better fit by a third.

    Rows of one person follow each other, and persons differ in their effects. Rows of
    weight zero change no warning.
    """
    n_persons, n_spoilt = 30, 0
    labels = parameters["loss"] in ("hinge", "log_loss")
    online = OnlineVIClassifier if labels else OnlineVIRegressor
    for seed in range(6):
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(n_persons), 20)
        age = rng.normal(size=n_persons)[who]
        X = np.column_stack([age, rng.normal(size=len(who)) + age, np.eye(8)[who % 8]])
        score = age + (1 + seed % 3) * rng.normal(size=n_persons)[who]
        y = score + 0.3 * rng.normal(size=len(who))
        if labels:
            y = np.digitize(y, [-0.5, 0.5][: 1 + seed % 2])
        elif parameters["loss"] == "poisson":
            y = rng.poisson(np.exp(np.minimum(score - 1.0, 3.0)))
        model = online(forgetting=0.0, random_state=0, **parameters)
        order = rng.permutation(len(who))
        best = loss_on(clone(model).fit(change(X[order]), y[order]), change(X), y)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            model.fit(change(X), y)
        said = " ".join(str(warning.message) for warning in given)
        if loss_on(model, change(X), y) > 4 / 3 * best:
            n_spoilt += 1
            assert (
                "The final model has a mean" in said or "predict the next error" in said
            )
        absent = np.arange(0, 2 * len(y), 2)  # rows of no weight, in between
        rows, targets = np.insert(X, absent // 2, 9.0, 0), np.insert(y, absent // 2, 0)
        with warnings.catch_warnings(record=True) as again:
            warnings.simplefilter("always")
            model.fit(change(rows), targets, np.arange(2 * len(y)) % 2.0)
        assert said == " ".join(str(warning.message) for warning in again)
    assert n_spoilt or parameters in HARDLY_SPOILT


@pytest.mark.parametrize(
    "model",
    [
        OnlineVIRegressor(random_state=0, covariance="diagonal"),
        OnlineVIRegressor(random_state=0, loss="absolute_error"),
        OnlineVIClassifier(random_state=0),
        OnlineVIMLPRegressor(random_state=0),
        OnlineVIMLPClassifier(random_state=0),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_a_fit_that_rows_sorted_by_a_feature_have_spoilt_is_named(model):
    """A bent relation; in random order nothing is said."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3))
        y = X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=400)
        y = (y > 1.0).astype(int) if is_classifier(model) else y
        order = np.argsort(X[:, 0])
        clone(model).fit(X, y)  # warnings are errors
        with pytest.warns(UserWarning, match="The final model has a mean loss"):
            clone(model).fit(X[order], y[order])


def loss_on(model, X, y):
    """Mean loss of the model's predictions."""
    if is_classifier(model):
        return np.mean(model.predict(X) != y)
    predicted = model.predict(X)
    if model.loss == "squared_error":
        return np.mean(np.square(y - predicted))
    if model.loss == "poisson":
        return mean_poisson_deviance(y, np.maximum(predicted, 1e-300))
    level = model.quantile
    return np.mean(np.maximum(level * (y - predicted), (1 - level) * (predicted - y)))


def test_a_table_whose_order_has_spoilt_the_fit_of_labels_is_named():
    """Where its final loss is a half above that in random order; else it is not."""
    X, y = load_breast_cancer(return_X_y=True)
    rng, n_spoilt = np.random.default_rng(0), 0
    orders = [np.arange(len(y)), *np.argsort(X[:, :9], axis=0, kind="stable").T]

    def final_loss(order):
        model = OnlineVIClassifier(n_fourier=0)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            model.fit(X[order], y[order])
        said = any("The final model" in str(warning.message) for warning in given)
        return log_loss(y, model.predict_proba(X)), said

    shuffled = [final_loss(rng.permutation(len(y))) for _ in range(10)]
    assert not any(said for _, said in shuffled)
    highest = max(loss for loss, _ in shuffled)
    for loss, said in map(final_loss, orders):
        if loss > 1.5 * highest:
            n_spoilt += 1
            assert said
    assert n_spoilt > 1


@pytest.mark.parametrize("size", [1, 50])
def test_a_stream_whose_order_has_spoilt_the_fit_is_named(size):
    """As in `fit`, of rows that are remembered: no more than a bounded number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = (X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=1200) > 1.0).astype(int)

    def learn(X, y):
        model = OnlineVIClassifier(random_state=0).partial_fit(X[:1], y[:1], [0, 1])
        for start in range(1, len(y), size):
            rows = slice(start, start + size)
            model.partial_fit(X[rows], y[rows])
        return model

    model = learn(X, y)  # warnings are errors
    remembered = model._state.remembered()[0]
    assert_array_equal(remembered, X[::4])
    order = np.argsort(X[:, 0])
    with pytest.warns(UserWarning, match="The final model has a mean loss"):
        learn(X[order], y[order])


TIMES = [
    OnlineVIRegressor(random_state=0),
    OnlineVIRegressor(random_state=0, inverse_temperature=0.5),
    OnlineVIRegressor(random_state=0, forgetting="auto"),
    OnlineVIRegressor(n_fourier="auto", random_state=0),
    OnlineVIRegressor(random_state=0, loss="poisson"),
    EWARegressor([("expert", OnlineVIRegressor())]),
]


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("model", TIMES, ids=repr)
def test_predictions_of_later_rows_are_named_where_time_is_a_feature(model, unit):
    """Time goes on beyond its range, at which predictions stand still."""
    rng = np.random.default_rng(0)
    time = np.arange(400.0)
    X = np.column_stack([1e4 + time, rng.normal(size=(400, 2))])
    y = 0.05 * time + X[:, 1] + rng.normal(size=400)
    if getattr(model, "loss", "") == "poisson":
        y = rng.poisson(np.exp(0.2 * y)).astype(float)
    order = rng.permutation(300)
    X = unit * X
    model = clone(model).fit(X[order], y[order])
    model.predict(X[:300])  # rows that were learnt
    model.predict(X[300:305])  # the next ones: no further than the noise
    for late in (X[300:], X[300:] * [1.0, 1.0, 0.0], 2 * X[0] - X[300:]):
        with pytest.warns(UserWarning, match="column 0 .* predictions do not extra"):
            model.predict(late)


@pytest.mark.slow
def test_rows_in_random_order_are_not_taken_for_later_ones():
    """Warnings are errors. Each of 100 calls fails with probability 2e-6 per column."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n_rows, n_new = rng.choice([8, 30, 300]), rng.choice([5, 30, 300])
        kind = [rng.normal, rng.standard_cauchy, rng.exponential][seed % 3]
        X = kind(size=(n_rows + n_new, 3))
        y = X @ [1.0, 2.0, 3.0] + 0.01 * rng.normal(size=len(X))
        with warnings.catch_warnings(action="ignore"):  # of far rows of Cauchy
            model = OnlineVIRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
        model.predict_quantiles(X[n_rows:])


@pytest.mark.parametrize("setting", [{}, {"covariance": "diagonal"}], ids=str)
@pytest.mark.parametrize("forgetting", [0.0, "auto"])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-3, 1e4)])
@pytest.mark.parametrize("way", ["fit", "stream"])
def test_errors_that_grow_along_a_stream_are_told_of(
    setting, forgetting, scale, shift, way
):
    """Of a sudden or a slow growth, and not of a fall, heavy tails, or short memory."""
    rng = np.random.default_rng(0)
    t, X = np.arange(1100), scale * rng.normal(size=(1100, 3)) + shift
    growing = [np.where(t < 512, 1.0, 3.0), np.exp(t / 400)]
    usual = [1.0 / growing[0], np.where(t // 50 % 2, 1.0, 9.0), np.ones(1100)]
    model = OnlineVIRegressor(random_state=0, forgetting=forgetting, **setting)
    for k, unit in enumerate(growing + usual):
        noise = rng.standard_cauchy(1100) if k == 4 else rng.normal(size=1100)
        y = X.sum(axis=1) + scale * unit * noise
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if way == "fit":
                model.fit(X, y)
            else:
                model = clone(model)
                for rows in np.array_split(np.arange(1100), 9):
                    model.partial_fit(X[rows], y[rows])
        told = any("times as large as those before" in str(w.message) for w in caught)
        assert told == (k < 2)
    y = X.sum(axis=1) + scale * growing[0] * rng.normal(size=1100)
    model.set_params(forgetting=0.05).fit(X, y)


@pytest.mark.parametrize("n_samples", [80, 300])
@pytest.mark.parametrize("method", ["sva", "oga"])
@pytest.mark.parametrize("unit", [1.0, 1e120])
def test_steps_that_are_too_long_are_named(method, n_samples, unit):
    """On rows that are not standardized; in large units the losses overflow.

    One warning, not of a curve that their huge errors are: steps in the units of the
    rows' squares have no scale to be small against.
    """
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(n_samples, 3))
    y = unit * (X @ [1.0, 2.0, 0.0] + rng.normal(size=n_samples))
    model = OnlineVIRegressor(method, learning_rate=0.1, standardize=False)
    with pytest.warns(UserWarning, match=r"learning_rate=0\.1 are too long") as said:
        model.fit(X, y)
    assert len(said) == 1
    steady = OnlineVIRegressor(method, learning_rate=1e-3).fit(X, y)  # no warning
    assert steady.score(X, y) > 0.0
