"""The fast paths for plain rows learn and refuse what validated rows do."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import METHODS, X, Y, cheap, fitted, learn
from sklearn.utils.validation import has_fit_parameter
from states import changes, state_of
from test_surroundings import assert_same_answers

pytestmark = pytest.mark.filterwarnings("ignore")
STREAMS = [name for name, method in METHODS if method == "partial_fit"]
WEIGHTED = [n for n in STREAMS if has_fit_parameter(cheap(n), "sample_weight")]
SLOW = [pytest.param(n, marks=[pytest.mark.slow] * (n == "SMC2")) for n in STREAMS]
MASKED = np.ma.array(X[:1], mask=[[True, False]])
ROWS = {
    "integers": [[2, 0]],
    "tuples": ((2, 0),),
    "booleans": [[True, False]],
    "digits": [["2", "0"]],
    "words": [["a", "b"]],
    "None": [[None, 0.0]],
    "masked": MASKED,
    "masked in a list": [MASKED[0]],
    "complex": [[2 + 1j, 0.0]],
    "decimals": [[Decimal(2), Decimal(0)]],
    "fractions": [[Fraction(2), 0]],
    "huge integers": [[2**70, 0]],
    "unsigned integers": [[2**63 + 1, 0]],
    "dates": np.array([["2020-01-01", "2020-01-01"]], dtype="M8[D]"),
    "a date": [[datetime.date(2020, 1, 1), 0.0]],
    "one dimension": [2.0, 0.0],
    "three dimensions": [[[2.0, 0.0]]],
    "two lengths": [[2.0, 0.0], [1.0]],
    "three columns": [[2.0, 0.0, 1.0]],
    "no rows": np.zeros((0, 2)),
    "float16": X[:1].astype(np.float16),
    "long": X[:1].astype(np.longdouble),
    "too long": np.array([[np.longdouble("1e400"), 1.0]]),
    "other end": X[:1].astype(">f8"),
    "strided": np.repeat(X[:1], 2, axis=1)[:, ::2],
    "ranges": [range(2)],
    "NaN": [[np.nan, 1.0]],
    "infinity": [[np.inf, 1.0]],
}
NUMBERS = {  # targets, or weights
    "list": [2],
    "number": 2.0,
    "no dimension": np.array(2.0),
    "column": [[2.0]],
    "two columns": [[1.0, 2.0]],
    "digits": ["2"],
    "booleans": np.array([True]),
    "objects": np.array([2.0], dtype=object),
    "None": [None],
    "NaN": [np.nan],
    "infinity": [np.inf],
    "negative": [-1.0],
    "complex": [2 + 1j],
    "spans of time": np.array([2], dtype="m8[s]"),
    "decimal": [Decimal(2)],
    "masked": np.ma.array([2.0], mask=[True]),
    "masked in a list": [np.ma.masked],
    "two": [1.0, 2.0],
    "none": [],
    "huge integer": [2**70],
    "huge": [1e101],
    "subnormal": [1e-310],
    "zero": [0.0],
    "float16": np.array([2], dtype=np.float16),
    "other end": np.array([2.0]).astype(">f8"),
}


def validating(estimator):
    """Return the estimator, without its fast paths."""
    slow = {
        "__module__": type(estimator).__module__,
        "_learn_at_once": lambda self, *args, **given: False,
        "_plain": lambda self, X: None,
    }
    kind = type(estimator)
    estimator.__class__ = type(kind.__name__, (kind,), slow)
    return estimator


def outcome(estimator, **given):
    """Return the state after learning, or the type of the error."""
    try:
        estimator.partial_fit(**given)
    except (ValueError, TypeError) as error:
        return type(error)
    return state_of(estimator)


def same(name, **given):
    """Whether both paths learn the same state, or raise errors of the same type."""
    fast = outcome(fitted(name, "partial_fit"), **given)
    slow = outcome(validating(fitted(name, "partial_fit")), **given)
    if isinstance(fast, type) or isinstance(slow, type):
        return fast is slow
    return not changes(fast, slow)


@pytest.mark.parametrize("name", SLOW)
def test_rows_of_any_form(name):
    wrong = [form for form, rows in ROWS.items() if not same(name, X=rows, y=Y[:1])]
    assert wrong == []


@pytest.mark.parametrize("name", SLOW)
def test_targets_of_any_form(name):
    wrong = [form for form, y in NUMBERS.items() if not same(name, X=X[:1], y=y)]
    assert wrong == []


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_any_form(name):
    wrong = [
        form
        for form, weights in NUMBERS.items()
        if not same(name, X=X[:1], y=Y[:1], sample_weight=weights)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", WEIGHTED)
def test_subnormal_weights_are_those_of_absent_rows(name):
    """As likelihoods underflow: such a weight is zero, alone or beside others."""
    weights = np.array([1.0, 1e-310, 0.0, 5e-324, 2.0])
    present = [0, 4]
    expected = fitted(name, "partial_fit")
    learn(expected, "partial_fit", X[present], Y[present], sample_weight=[1.0, 2.0])
    for parts in [slice(0, 5)], [slice(row, row + 1) for row in range(5)]:
        estimator = fitted(name, "partial_fit")
        for part in parts:
            estimator.partial_fit(X[part], Y[part], sample_weight=weights[part])
        if hasattr(expected, "n_samples_seen_"):
            assert estimator.n_samples_seen_ == expected.n_samples_seen_
        assert_same_answers(estimator, expected)
