"""Tables with a far row, huge or tiny numbers: an answer without NaN, or one error.

Where the squares of the numbers are no numbers, an estimator refuses them or answers in
units of its own.
"""

import inspect
import warnings

import numpy as np
import pytest
from cases import ESTIMATORS, cheap, learn
from sklearn.utils import get_tags

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
            assert table in REFUSED
            return
        for method in ANSWERS:
            if hasattr(estimator, method):
                assert not np.isnan(np.asarray(getattr(estimator, method)(X))).any()
        for attribute, value in fitted_numbers(estimator):
            assert not np.isnan(value).any(), attribute


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
