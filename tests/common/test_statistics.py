"""Arrays that carry the names of columns, in the functions of NumPy."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from skpacbayes._statistics import NamedStatistics, named_as

VALUES = np.arange(6.0).reshape(2, 3)


def named(*names):
    return named_as(VALUES.copy(), pd.DataFrame([[0.0] * len(names)], columns=names))


KEEP = {
    "sum": lambda one, other: sum([one, other]),
    "where": lambda one, other: np.add(one, other, where=one > -1.0, out=one.copy()),
    "in place": lambda one, other: np.add(one, other, out=named("c")),
    "vstack": lambda one, other: np.vstack([one, other]),
    "vstack by keyword": lambda one, other: np.vstack(tup=(one, other)),
    "append": lambda one, other: np.append(one, other, axis=0),
    "sum of a stack": lambda one, other: np.stack([one, other]).sum(axis=0),
    "concatenate into": lambda one, other: np.concatenate(
        [one, other], out=np.vstack([named("c")] * 2)
    ),
}


@pytest.mark.parametrize("merge", KEEP.values(), ids=KEEP)
def test_names_are_kept_and_compared(merge):
    """The values are those of plain arrays."""
    found = merge(named("a", "b"), named("a", "b"))
    assert list(found.feature_names) == ["a", "b"]
    plain = [VALUES, VALUES]
    expected = sum(plain) if len(found) == 2 else np.vstack(plain)
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert list(merge(named("a", "b"), VALUES).feature_names) == ["a", "b"]
    with pytest.raises(ValueError, match="have them in the order"):
        merge(named("a", "b"), named("b", "a"))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, np.copy, np.asarray])
def test_copies(again):
    """Those of NumPy that make plain arrays forget the names."""
    found = again(named("a", "b"))
    kept = again in (copy.copy, copy.deepcopy)
    assert isinstance(found, NamedStatistics) == kept
    assert not kept or list(pickle.loads(pickle.dumps(found)).feature_names)[1] == "b"


def test_functions_of_several_results():
    array = named("a", "b")
    whole = named("c")
    parts = np.modf(array, out=(np.empty((2, 3)), whole))
    np.testing.assert_array_equal(np.asarray(parts[1]), VALUES)
    assert list(whole.feature_names) == ["a", "b"]
