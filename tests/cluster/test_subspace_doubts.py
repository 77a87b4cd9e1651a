"""Rows of which `n_clusters="auto"` finds more clusters than there are groups."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.cluster import SubspaceMixture

COPIES = "nearly all rows are there twice or more often"
PATH = "Rows depend on their order"
VALUES = "the rows better as counts or categories"


def said(rows, **parameters):
    """Fit, and return which of the three warnings were given, and the fit."""
    model = SubspaceMixture("auto", n_init=4, random_state=0, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    texts = [str(each.message) for each in caught]
    kinds = [kind for kind in (COPIES, PATH, VALUES) if any(kind in t for t in texts)]
    return kinds, model


def groups(seed, n_rows=150, n_features=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n_rows)
    return 8.0 * rng.permuted(np.eye(3, n_features))[labels] + rng.normal(
        size=(n_rows, n_features)
    )


@pytest.mark.slow
@pytest.mark.parametrize("variance", ["cluster", "shared"])
@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e-6, 1e-3), (1e8, 1e12)])
def test_copies_and_walks_are_named_in_any_unit(unit, origin, variance):
    rng = np.random.default_rng(1)
    copied = np.repeat(rng.normal(size=(60, 4)), 4, axis=0)
    walk = rng.normal(size=(300, 3)).cumsum(axis=0)
    for rows, kind in ((rng.permutation(copied), COPIES), (walk, PATH)):
        kinds, model = said(origin + unit * rows, variance=variance)
        assert model.n_clusters_ > 1
        assert kinds == [kind]
    assert said(rng.permutation(walk), variance=variance)[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_counts_of_one_group_are_named(seed):
    rng = np.random.default_rng(seed)
    kinds, model = said(rng.poisson(2.0, size=(300, 6)))
    assert kinds == [VALUES]
    assert model.n_clusters_ > 1
    answers = rng.integers(0, 5, size=(300, 6))
    kinds, model = said(10.0 * answers)
    assert kinds == [VALUES] * (model.n_clusters_ > 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_groups_are_not_named(seed):
    """Rows in random order, sorted by group, rounded, or of counts that differ."""
    rows = groups(seed)
    rng = np.random.default_rng([seed, 1])
    labels = np.repeat([0, 1, 2], 80)
    rates = np.where(rng.permuted(np.eye(3, 6), axis=1) > 0, 5.0, 0.3)
    counts = np.minimum(rng.poisson(rates[labels]), 9)
    for table in (rows, np.sort(rows, axis=0), rows.round(1), rng.permutation(counts)):
        kinds, model = said(table)
        assert kinds == [] or (kinds == [VALUES] and model.n_clusters_ > 3)


@pytest.mark.filterwarnings("ignore:.*each counts as evidence of its own")
def test_columns_of_a_path_have_their_names():
    rng = np.random.default_rng(2)
    walk = rng.normal(size=(300, 2)).cumsum(axis=0)
    x, y = walk.T
    noise = rng.normal(size=300)
    table = pd.DataFrame({"one": 1.0, "noise": noise, "x": x, "y": y})
    with pytest.warns(ConvergenceWarning, match=r"columns \['x', 'y'\]"):
        SubspaceMixture("auto", n_init=4, random_state=0).fit(table)


def test_a_given_number_is_not_in_doubt():
    rng = np.random.default_rng(3)
    walk = rng.normal(size=(100, 3)).cumsum(axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SubspaceMixture(3, n_init=4, random_state=0).fit(np.repeat(walk, 2, axis=0))
    assert not any(PATH in str(w.message) or COPIES in str(w.message) for w in caught)
