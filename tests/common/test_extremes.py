"""Tables with a far row, huge or tiny numbers: an answer that is finite, or one error.

Where the squares of the numbers are no numbers, an estimator refuses them by one sentence
or answers in its own units; in no case does it answer NaN.
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


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("table", TABLES)
def test_no_table_gives_nan(table, name):
    X, y = TABLES[table], 1.0 + np.arange(40) % 2
    estimator = cheap(name)
    if get_tags(estimator).input_tags.positive_only:
        X = np.ceil(X) if X.max() < 1e15 else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forty rows, few iterations
        try:
            learn(estimator, "fit", X, y)
        except ValueError as error:
            assert table in ("huge numbers", "a row far away"), error
            assert len(str(error).split(". ")) <= 2
            return
        for method in ANSWERS:
            if hasattr(estimator, method):
                assert not np.isnan(np.asarray(getattr(estimator, method)(X))).any()
        for attribute in dir(estimator):
            if attribute[0] != "_" and attribute[-1] == "_":
                value = getattr(estimator, attribute, None)
                if inspect.isroutine(value) or np.asarray(value).dtype.kind != "f":
                    continue
                assert not np.isnan(value).any(), attribute
