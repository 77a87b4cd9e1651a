"""The adapters for river: its checks, its evaluators, categories and missing values."""

import datetime
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("river")
from river import checks, compose, datasets, evaluate, metrics, preprocessing
from sklearn.linear_model import Ridge

from skpacbayes import OnlineVIClassifier, OnlineVIMLPClassifier, OnlineVIRegressor
from skpacbayes.online.river import RiverClassifier, RiverRegressor, RowsOfDicts


@pytest.mark.filterwarnings("ignore:The errors of recent rows")
@pytest.mark.filterwarnings("ignore:The feature")  # some checks bring new features
@pytest.mark.filterwarnings("ignore:The values of column")  # or leave some out
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The model is linear")
def test_checks_of_river():
    """Random projections differ if columns change places, so there are none."""
    model = RiverRegressor(OnlineVIRegressor(n_fourier=0))
    names = []
    for check in checks.yield_checks(model):
        check(model.clone())
        names.append(getattr(check, "__name__", ""))
    assert len(names) > 5


@pytest.mark.filterwarnings("ignore:The errors of recent rows")
@pytest.mark.filterwarnings("ignore:The final model has a mean loss")  # rows in time
def test_progressive_validation_is_that_of_the_estimator():
    rows = [(list(x.values()), y) for x, y in datasets.TrumpApproval()]
    X, y = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    model = RiverRegressor(OnlineVIRegressor(random_state=0))
    mae = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    plain, total = OnlineVIRegressor(random_state=0), abs(y[0])
    for t in range(len(y)):
        if t:
            total += abs(y[t] - plain.predict(X[t : t + 1])[0])
        plain.partial_fit(X[t : t + 1], y[t : t + 1])
    assert_allclose(mae.get(), total / len(y))
    first, _ = next(iter(datasets.TrumpApproval()))
    quantiles = model.predict_quantiles_one(first, [0.1, 0.9])
    assert quantiles[0.1] < quantiles[0.9]


@pytest.mark.parametrize(
    "estimator",
    [OnlineVIClassifier(random_state=0), OnlineVIMLPClassifier(random_state=0)],
)
def test_in_a_pipeline_of_river(estimator):
    model = compose.Pipeline(preprocessing.StandardScaler(), RiverClassifier(estimator))
    accuracy = evaluate.progressive_val_score(
        datasets.Phishing(), model, metrics.Accuracy()
    )
    assert accuracy.get() > 0.87  # river's logistic regression has .888


def test_categories_and_missing_values():
    rng = np.random.default_rng(0)
    effects = {"red": 2.0, "green": 0.0, "blue": -2.0}
    model = RiverRegressor(OnlineVIRegressor(random_state=0))
    assert model.predict_one({"color": "red", "size": 1.0}) == 0.0
    assert model.predict_quantiles_one({"size": 1.0}, [0.9]) == {0.9: math.inf}
    for _ in range(2000):
        color, size = str(rng.choice(list(effects))), rng.normal(5.0)
        x = {"color": color, "size": size}
        y = effects[color] + size + 0.1 * rng.normal()
        missing = rng.random()
        if missing < 0.1:
            x["size"] = None
        elif missing < 0.2:
            del x["size"]
        elif missing < 0.3:
            x["size"] = math.nan
        else:
            model.learn_one(x, y)
    for color, effect in effects.items():
        found = model.predict_one({"color": color, "size": 6.0})
        assert_allclose(found, effect + 6.0, atol=0.1)
        expected = effect + 5.0  # a missing number is the mean of its column
        for gap in ({}, {"size": None}, {"size": math.nan}):
            found = model.predict_one({"color": color} | gap)
            assert_allclose(found, expected, atol=0.2)


def test_new_features_and_labels_are_named():
    model = RiverRegressor(OnlineVIRegressor(random_state=0))
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.warns(UserWarning, match="'b' was not in the first row"):
        model.learn_one({"a": 2.0, "b": 3.0}, 1.0)
    model.learn_one({"a": 2.0, "b": 3.0}, 1.0)  # once
    labels = RiverClassifier(
        OnlineVIClassifier(random_state=0), classes=["x", "y", "z"]
    )
    assert labels.predict_proba_one({"a": 1.0}) == dict.fromkeys("xyz", 1 / 3)
    assert labels.predict_one({"a": 1.0}) == "x"
    labels.learn_one({"a": 1.0}, "y")
    assert set(labels.predict_proba_one({"a": 1.0})) == set("xyz")
    with pytest.raises(ValueError, match="'w' is not in classes"):
        labels.learn_one({"a": 1.0}, "w")
    with pytest.raises(ValueError, match="no feature"):
        RiverRegressor(OnlineVIRegressor(random_state=0)).learn_one({}, 1.0)


def test_complete_rows_are_those_of_the_general_way():
    rows = RowsOfDicts({"a": 1.0, "b": 2, "c": True}, 4)
    plain = RowsOfDicts({"a": 1.0, "b": 2, "c": True}, 4)
    plain.values = None  # every row goes the way of rows with gaps
    for x in (
        {"a": 0.5, "b": 3, "c": False},
        {"c": True, "b": 1, "a": 2.5},  # another order
        {"a": None, "b": 7, "c": True},
        {"a": math.nan, "b": 7, "c": True},
        {"b": 7, "c": True},
        {"b": 7.0},
        {"a": 1e300, "b": 4, "c": False},
        {"a": 0.1, "b": np.float64(0.2), "c": np.bool_(True)},
    ):
        for one in (rows, plain):
            one.count(*one.row(x))
        assert_array_equal(rows.row(x)[0], plain.row(x)[0])
    with pytest.warns(UserWarning, match="'d' was not in the first row"):
        rows.row({"a": 1.0, "b": 2.0, "d": 3.0})


def test_new_features_warn_once_and_take_no_memory():
    """A bag of words has new words without end."""
    rows = RowsOfDicts({"a": 1.0}, 32)
    with pytest.warns(UserWarning, match="as are all others") as caught:
        rows.row({"a": 1.0, "w0": 1.0})
    assert len(caught) == 1
    size = len(pickle.dumps(rows))
    for i in range(1, 100):
        rows.row({"a": 1.0, f"w{i}": 1.0, f"v{i}": 1.0})
    assert len(pickle.dumps(rows)) == size


def test_new_numbers_are_hashed_if_the_first_row_has_a_text():
    """So a bag of words can be learnt: the guide says how."""
    rng = np.random.default_rng(0)
    model = RiverClassifier(OnlineVIClassifier(random_state=0), n_hashed=64)
    right = 0
    for i in range(400):
        y = bool(rng.random() < 0.5)
        x = {f"word{j}": 1 for j in rng.integers(0, 20, size=3)}
        x |= {"good" if y else "bad": 1, "source": "mail"}
        right += i >= 200 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 190


def test_hashed_numbers_are_added_in_the_order_of_the_row():
    """Not in that of a set, which differs between processes, and so does rounding."""

    def hashed(values):
        x = {f"n{i}": value for i, value in enumerate(values)}
        return RowsOfDicts({"word": "b"}, 1).row(x)[0].item()

    assert hashed([1e16, -1e16, 1.0]) == 1.0
    assert hashed([1.0, 1e16, -1e16]) == 0.0
    values = np.random.default_rng(0).normal(size=200)
    assert hashed(values) == np.cumsum(values)[-1]


@pytest.mark.parametrize("n_hashed", [1, 2, 32])
def test_rows_have_one_width_however_many_columns_are_hashed(n_hashed):
    first = {"a": 1.0, "b": 2.0} | {f"c{i}": "x" for i in range(n_hashed)}
    rows = RowsOfDicts(first, n_hashed)
    assert rows.row(first)[0].shape == (1, 2 + n_hashed)
    assert rows.row(first)[0][0, 2:].sum() == n_hashed
    assert rows.row({"a": None, "b": 2.0, "c0": "x"})[0].shape == (1, 2 + n_hashed)


@pytest.mark.parametrize(
    "kind", [Decimal, Fraction, int, np.int8, np.float32, np.float64, np.longdouble]
)
def test_numbers_of_every_kind_are_numbers(kind):
    for other in ({"b": 1.0}, {"b": "red"}):  # rows without and with categories
        plain, given = (RowsOfDicts({"a": f(0), **other}, 4) for f in (float, kind))
        for value in (3, -2):
            expected = plain.row({"a": float(value), **other})[0]
            assert_array_equal(given.row({"a": kind(value), **other})[0], expected)


@pytest.mark.parametrize("value", [True, False])
def test_booleans_of_numpy_are_booleans(value):
    plain = RowsOfDicts({"a": value}, 4).row({"a": value})[0]
    given = np.bool_(value)
    assert_array_equal(RowsOfDicts({"a": given}, 4).row({"a": given})[0], plain)


MISSING = [None, math.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT]


@pytest.mark.parametrize("gap", MISSING, ids=[f"{gap!r}" for gap in MISSING])
def test_missing_values_of_every_kind(gap):
    first = RowsOfDicts({"a": gap, "b": gap}, 4)  # numbers, in the first row too
    assert first.row({"a": 1.0, "b": 2.0})[0].tolist() == [[1.0, 2.0]]
    rows = RowsOfDicts({"a": 3.0, "b": 1.0, "color": "red"}, 4)
    rows.count(*rows.row({"a": 3.0, "b": 1.0, "color": "red"}))
    assert rows.row({"a": gap, "b": 2.0, "color": gap})[0].tolist() == [
        [3.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    ]


@pytest.mark.parametrize(
    "value", [[1.0], {"c": 1.0}, np.ones(1), np.ones(2), {1}, 1j], ids=repr
)
def test_values_that_are_no_number_and_no_category(value):
    model = RiverRegressor(OnlineVIRegressor(random_state=0))
    for first in ({"a": value}, {"a": value, "b": 1.0}):
        with pytest.raises(ValueError, match="The feature 'a' is"):
            model.learn_one(first, 1.0)
    for first in ({"a": 1.0}, {"b": 1.0, "color": "red"}):
        model = RiverRegressor(OnlineVIRegressor(random_state=0))
        model.learn_one(first, 1.0)
        for method in (lambda m, x: m.learn_one(x, 1.0), RiverRegressor.predict_one):
            with pytest.raises(ValueError, match="The feature 'a' is"):
                method(model, {"a": value})


@pytest.mark.parametrize(
    ("text", "warned"),
    [("3.5", True), ("-2", True), ("1e5", True), ("17", False), ("nan", False)],
)
def test_texts_that_are_numbers_are_named(text, warned, recwarn):
    """Texts of digits may be codes, and are categories without a warning."""
    RowsOfDicts({"a": text, "b": 1.0}, 4)
    assert bool(recwarn) == warned
    if warned:
        assert f"feature 'a' is the text {text!r}" in str(recwarn[0].message)


def test_what_the_adapters_refuse():
    regressor, classifier = OnlineVIRegressor(n_fourier=0), OnlineVIClassifier()
    row = {"a": 1.0}
    for adapter in (RiverRegressor(classifier), RiverClassifier(regressor)):
        with pytest.raises(TypeError, match="with partial_fit, got OnlineVI"):
            adapter.learn_one(row, True)
    with pytest.raises(TypeError, match=r"regressor with partial_fit, got Ridge\(\)"):
        RiverRegressor(Ridge()).learn_one(row, 1.0)
    with pytest.raises(TypeError, match="should be a dictionary"):
        RiverRegressor(regressor).learn_one([1.0], 1.0)
    for target in (None, math.nan, pd.NA):
        with pytest.raises(ValueError, match="y contains NaN"):
            RiverRegressor(regressor).learn_one(row, target)
    with pytest.raises(ValueError, match=r"n_hashed=0\.5 should be an integer"):
        RiverRegressor(regressor, n_hashed=0.5).learn_one({"color": "red"}, 1.0)
    model = RiverRegressor(regressor)
    model.learn_one(row, 1.0)
    with pytest.raises(TypeError, match="should be a dictionary"):
        model.predict_one([1.0])
    labels = RiverClassifier(classifier, classes={"x"})  # a set
    assert labels.predict_one(row) == "x"


BAD_ROWS = [
    ({"a": math.inf, "b": 1.0}, 1.0),
    ({"a": 1.0, "b": math.inf}, 1.0),
    ({"a": 2.0, "b": "Oslo"}, 1.0),
    ({"a": 2.0, "b": 1.0, "day": datetime.date(2020, 1, 1)}, 1.0),
    ({"a": 2.0, "b": 1.0}, math.nan),
]


@pytest.mark.parametrize(("x", "y"), BAD_ROWS, ids=str)
@pytest.mark.parametrize("n_before", [0, 1, 5])
def test_a_row_that_is_refused_changes_nothing(x, y, n_before):
    """Also as the first row, and in what stands for missing numbers."""
    models = [RiverRegressor(OnlineVIRegressor(random_state=0)) for _ in range(2)]
    rng = np.random.default_rng(0)
    good = [({"a": a, "b": b, "c": "red"}, a + b) for a, b in rng.normal(size=(9, 2))]
    for model in models:
        for pair in good[:n_before]:
            model.learn_one(*pair)
    if n_before or x["b"] != "Oslo":  # elsewhere a category
        with pytest.raises(ValueError, match=r"infinity|NaN|feature 'b'|feature 'day'"):
            models[0].learn_one(x, y)
    for model in models:
        for pair in good[n_before:]:
            model.learn_one(*pair)
    gaps = [{"a": 1.0}, {"b": 1.0}, {"a": 1.0, "b": None, "c": "red"}]
    first, second = ([m.predict_one(gap) for gap in gaps] for m in models)
    assert first == second
