"""Groups that differ in which columns are zero, and summaries of few points."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_zeros import classes_by_zeros

ZEROS, SUMMARY = "do not tell apart", "points cannot show"


def messages_of(X, *, n_blocks=0, **parameters):
    """Messages of a fit, or of a stream in blocks, and the number of clusters."""
    model = PACOClusterer(random_state=0, n_iter=50, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if n_blocks:
            for rows in np.array_split(X, n_blocks):
                model.partial_fit(rows)
        else:
            model.fit(X)
    assert all(issubclass(one.category, ConvergenceWarning) for one in caught)
    return [str(one.message) for one in caught], model.n_clusters_


def sparse_counts(rng, n_rows=400):
    y = rng.integers(4, size=n_rows)
    return rng.poisson(rng.gamma(0.5, size=(4, 30))[y]).astype(float), 4


def other_zeros(rng, n_rows=450):
    """Exponential amounts: each group has two of six columns."""
    y = rng.integers(3, size=n_rows)
    present = np.where(np.arange(6) // 2 == y[:, None], 0.95, 0.05)
    amounts = rng.exponential(size=(n_rows, 6))
    return np.where(rng.random((n_rows, 6)) < present, amounts, 0.0), 3


def severities(rng, n_rows=500):
    """One group: rows have more or less of everything."""
    return rng.poisson(rng.gamma(2, 0.5, size=(n_rows, 1)), (n_rows, 12)) * 1.0, 1


def independent_zeros(rng, n_rows=500):
    amounts = rng.gamma(1, size=(n_rows, 8))
    return np.where(rng.random((n_rows, 8)) < 0.6, amounts, 0.0), 1


def crossed_counts(rng, n_rows=500):
    """Two groups that clusters tell apart."""
    y = rng.integers(2, size=n_rows)
    means = np.where(np.arange(12) // 6 == y[:, None], 2.0, 0.3)
    return rng.poisson(means).astype(float), 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [sparse_counts, other_zeros])
def test_a_wrong_number_is_not_silent_where_zeros_tell_groups_apart(make):
    for seed in range(6):
        X, n_groups = make(np.random.default_rng(seed))
        messages, n_clusters = messages_of(X)
        named = [one for one in messages if ZEROS in one]
        assert n_clusters == n_groups or named
        assert all(f"{ZEROS} {n_groups} groups" in one for one in named)


@pytest.mark.slow
def test_a_stream_is_checked_for_zeros():
    X, _ = other_zeros(np.random.default_rng(0))
    messages, n_clusters = messages_of(X, n_blocks=4, refresh=100)
    assert n_clusters == 3 or any(ZEROS in one for one in messages)


@pytest.mark.slow
@pytest.mark.parametrize("make", [severities, independent_zeros, crossed_counts])
def test_zeros_are_no_doubt_where_they_tell_no_groups_apart(make):
    for seed in range(4):
        messages, _ = messages_of(make(np.random.default_rng(seed))[0])
        assert not any(ZEROS in one for one in messages)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_classes_do_not_depend_on_units_weights_or_order(scale):
    rng = np.random.default_rng(1)
    X, n_groups = other_zeros(rng, 300)
    one = np.zeros(300, dtype=int)
    n_classes, columns = classes_by_zeros(X, np.ones(300), one, 1)
    assert n_classes == n_groups
    np.testing.assert_array_equal(columns, np.arange(6))
    moved = scale * rng.permutation(X) - 5 * scale
    assert classes_by_zeros(moved, np.ones(300), one, 1)[0] == n_groups
    twice = np.vstack([X[:150], X[:150]])
    weighted = classes_by_zeros(X[:150], np.full(150, 2.0), one[:150], 1)
    assert classes_by_zeros(twice, np.ones(300), one, 1)[0] == weighted[0]


def test_summaries_of_few_points_are_not_silent():
    rng = np.random.default_rng(0)
    places = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    X = places[rng.integers(5, size=120)] + rng.normal(size=(120, 2))
    messages, n_clusters = messages_of(X, n_blocks=2, summary_size=2, refresh=40)
    assert n_clusters < 5
    assert any(SUMMARY in one and "to 10 or more" in one for one in messages)
    messages, n_clusters = messages_of(X, n_blocks=2, summary_size=60, refresh=40)
    assert n_clusters == 5
    assert not any(SUMMARY in one for one in messages)
    messages, _ = messages_of(X, summary_size=2)  # fit keeps all rows
    assert not any(SUMMARY in one for one in messages)
