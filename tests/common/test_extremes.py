"""Tables with a far row, huge or tiny numbers: an answer without NaN, or one error.

Where the squares of the numbers are no numbers, an estimator refuses them or answers in
units of its own.
"""

import inspect
import re
import warnings

import numpy as np
import pytest
from cases import ESTIMATORS, METHODS, X, Y, cheap, fitted, learn, rows
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

ANSWERS = "predict", "predict_proba", "score_samples", "transform", "decision_function"


def far_row():
    return np.vstack([groups()[:-1], np.full((1, 3), 1e12)])


def groups():
    """Rows of two groups, alternating, of positive numbers."""
    rng = np.random.default_rng(0)
    return 10.0 + rng.normal(size=(40, 3)) + 4.0 * (np.arange(40)[:, None] % 2)


TABLES = {
    "a row far away": far_row(),
    "columns in other units": groups() * [1.0, 1e8, 1e-8],
    "columns that follow from others": np.column_stack([groups(), 2.0 * groups()]),
    "huge numbers": 1e200 * groups(),
    "tiny numbers": 1e-120 * groups(),
}
REFUSED = "huge numbers", "a row far away"
# By chains of a variance of about 1 whose particles do not follow the rows.
ALSO_REFUSED = [("tiny numbers", "ParticleMarginalMetropolis")]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("table", TABLES)
def test_no_table_gives_nan(table, name):
    X, y = TABLES[table], 1.0 + np.arange(40) % 2
    estimator = cheap(name)
    if get_tags(estimator).input_tags.positive_only:
        X = np.ceil(X) if X.max() < 1e15 else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forty rows, few iterations
        if refuses(estimator, X, y):
            assert table in REFUSED or (table, name) in ALSO_REFUSED
            return
        for method in ANSWERS:
            if hasattr(estimator, method):
                assert not np.isnan(np.asarray(getattr(estimator, method)(X))).any()
        for attribute, value in fitted_numbers(estimator):
            assert not np.isnan(value).any(), attribute


@pytest.mark.parametrize("unit", [2.0**-530, 2.0**515], ids=["tiny", "huge"])
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_an_extreme_unit_is_refused_named_or_without_effect(name, method, unit):
    """Of the columns, and of y: their squares are no numbers."""
    if not hasattr(cheap(name), "predict") or "Particle" in name or name == "SMC2":
        pytest.skip("its model has a unit")
    X, labels = np.ceil(groups()), np.arange(40) % 2
    of_numbers = is_regressor(cheap(name)) or name == "ABCPosteriorKDE"
    y = X[:, 0] if of_numbers else 1.0 + labels
    expected, _ = prediction(cheap(name), method, X, y)
    units = [(unit, 1.0), (1.0, unit)]
    for of_rows, of_targets in units[: 1 + (of_numbers and "Poisson" not in name)]:
        found, said = prediction(cheap(name), method, of_rows * X, of_targets * y)
        if found is None:
            same = re.search("squares|variance|needs counts", said)
        elif of_numbers or is_classifier(cheap(name)):
            gap = abs(found / of_targets - expected).max()
            same = gap < 1e-3 * np.ptp(expected)
        else:
            same = adjusted_rand_score(found, expected) == 1.0
        assert same or "underflow" in said or "constant" in said, said


def prediction(estimator, method, X, y):
    """Return the prediction for what was learnt, None if refused, and the messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            predicted = learn(estimator, method, X, y).predict(X)
        except ValueError as error:
            return None, str(error)
    return predicted, " ".join(str(warning.message) for warning in caught)


def refuses(estimator, X, y):
    """Whether `fit` says that it cannot take the rows."""
    try:
        learn(estimator, "fit", X, y)
    except ValueError:
        return True
    return False


def fitted_numbers(estimator):
    """Name and value of each fitted attribute that is a float or an array of floats."""
    for attribute in dir(estimator):
        if attribute[0] != "_" and attribute[-1] == "_":
            value = getattr(estimator, attribute, None)
            if not inspect.isroutine(value) and np.asarray(value).dtype.kind == "f":
                yield attribute, value


FAR = [1e8, -1e100, 1e200, -5e-324]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_no_far_row_gives_nan(name, method):
    """Asked of, or learnt by a stream: it is answered in numbers, or refused."""
    wrong = []
    for value in FAR:
        row = np.array([[value, 2.0]])
        estimator = fitted(name, method)
        asked = [(call, row) for call in ANSWERS if hasattr(estimator, call)]
        wrong += [(call, row.tolist()) for call in nan_of(estimator, asked)]
        if hasattr(estimator, "partial_fit") and learns(estimator, row):
            asked = [(call, X) for call, _ in asked]
            wrong += [
                (call, "after", row.tolist()) for call in nan_of(estimator, asked)
            ]
    assert wrong == []


def nan_of(estimator, asked):
    """Names of the methods, with rows, that answer NaN; those that refuse do not."""
    for call, some in asked:
        try:
            answer = np.asarray(getattr(estimator, call)(some))
        except ValueError:
            continue
        if np.isnan(answer).any():
            yield call


def learns(estimator, row):
    """Whether a stream takes the row."""
    try:
        estimator.partial_fit(row, Y[:1])
    except ValueError:
        return False
    return True


REGRESSORS = [
    *(
        pytest.param(name, {}, id=name)
        for name in ESTIMATORS
        if is_regressor(cheap(name))
    ),
    pytest.param(
        "OnlineVIRegressor", {"loss": "poisson"}, id="OnlineVIRegressor-counts"
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("unit", [0.0, 1e-12, 1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize(("name", "parameters"), REGRESSORS)
def test_predictions_are_of_the_size_of_the_targets(name, parameters, unit):
    """Up to a hundred times; counts of less than one in all may be taken for one."""
    y = unit * Y
    predicted = cheap(name, **parameters).fit(X, y).predict(X)
    assert (abs(predicted) <= 100.0 * y.max() + 1.0).all()


WEIGHTS = {  # of each of forty rows
    "subnormal": np.full(40, 5e-324),
    "tiny": np.full(40, 1e-300),
    "huge": np.full(40, 1e99),
    "too huge": np.full(40, 1e200),
    "of a likelihood": np.exp(np.linspace(-745.0, 0.0, 40)),
    "subnormal first": np.r_[5e-324, np.ones(39)],
    "zero": np.zeros(40),
    "a number that is NaN": np.nan,
    "an infinite number": np.inf,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name, method in METHODS
        if "sample_weight"
        in inspect.signature(getattr(ESTIMATORS[name], method)).parameters
    ],
)
def test_no_weights_give_nan(name, method, weights):
    """They are refused by their name, or the answers are numbers, or there are none."""
    X, y = np.ceil(groups()), 1.0 + np.arange(40) % 2
    estimator = cheap(name)
    arguments = {"sample_weight": WEIGHTS[weights]}
    if "classes" in inspect.signature(getattr(estimator, method)).parameters:
        arguments["classes"] = [1.0, 2.0]
    refusal = None
    try:
        getattr(estimator, method)(X, y, **arguments)
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert re.search(r"[Ww]eight|greater than one; got 1 class", refusal)
        return
    assert weights not in ("too huge", "a number that is NaN", "an infinite number")
    for answer in ANSWERS:
        if hasattr(estimator, answer):
            try:
                values = np.asarray(getattr(estimator, answer)(X))
            except NotFittedError:  # no row of positive weight
                assert weights in ("zero", "subnormal")
                return
            assert np.isfinite(values).all()


# A stream of simulations begins with one of them, and may get the others later.
TAKES_ANY = [("ABCPosteriorKDE", "partial_fit")]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        case
        for case in METHODS
        if has_fit_parameter(cheap(case[0]), "sample_weight")
        and hasattr(ESTIMATORS[case[0]], "predict")
        and case not in TAKES_ANY
    ],
)
def test_weights_that_leave_nothing_but_the_prior_are_named(name, method):
    """In a stream too, where every call brings a few rows; weights near 1 are not."""
    X, y = rows(200)
    near_one = np.random.default_rng(0).uniform(0.5, 1.5, 200)

    def sayings(weights):
        estimator, parts = cheap(name), [slice(None)]
        if method == "partial_fit":
            parts = [slice(start, start + 20) for start in range(0, 200, 20)]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                for part in parts:
                    learn(
                        estimator, method, X[part], y[part], sample_weight=weights[part]
                    )
                estimator.predict(X[:5])
            except ValueError as error:
                return str(error)
        return " ".join(str(warning.message) for warning in said)

    assert re.search("weight.*(sum|add up|count as only)", sayings(1e-3 * near_one))
    assert not re.search("weight.*(sum|add up|count as only)", sayings(near_one))
