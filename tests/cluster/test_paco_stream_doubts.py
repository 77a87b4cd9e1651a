"""Streams warn as `fit` does: at a call that passes 100 rows, 200, and so on.

In between they warn of another number of clusters than the one checked last. At 20, 40
and 80 rows they warn only if larger numbers describe few rows better.
"""

import copy
import itertools
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer


def banana(n_rows, seed=0):
    """One group that no shape fits: it is cut into pieces."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    return np.column_stack([x, x**2 + 0.3 * rng.normal(size=n_rows)])


def warned_at(X, n_at_once):
    """Stream the rows; return after which of them there were warnings."""
    model, found = PACOClusterer(n_iter=50, refresh=50, random_state=0), []
    for begin in range(0, len(X), n_at_once):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X[begin : begin + n_at_once])
        assert all(each.category is ConvergenceWarning for each in caught)
        found += [min(begin + n_at_once, len(X))] * bool(caught)
    return found, model


@pytest.mark.slow
def test_a_group_that_is_cut_is_named_whenever_the_rows_double():
    X = banana(450)
    found, model = warned_at(X, 50)
    assert model.n_clusters_ > 2
    found = [at for at in found if at >= 100]
    for expected in (100, 200, 400):  # chains run at some positions
        assert any(expected <= at <= 1.1 * expected + 50 for at in found)
    assert all(next_at >= 1.25 * at for at, next_at in itertools.pairwise(found))
    assert len(warned_at(X, 225)[0]) == 2


@pytest.mark.slow
def test_another_number_than_the_one_checked_is_checked():
    """A group that comes after the check at 200 rows, and is cut into pieces."""
    rng, unit, origin = np.random.default_rng(3), 1e3, 1e4
    early, late = rng.normal(size=(210, 2)), 3.0 * banana(170, seed=3) + [25.0, 0.0]
    model = PACOClusterer(n_iter=50, refresh=10, random_state=0)
    model.partial_fit(origin + unit * early)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in np.array_split(late, 17):
            model.partial_fit(origin + unit * rows)
    numbers = [str(each.message).split(",")[0] for each in caught]
    assert any(f"n_clusters_={k}" in numbers for k in range(3, 20))


@pytest.mark.slow
def test_groups_that_are_right_are_not_named():
    for seed in range(2):
        X, _ = make_blobs(450, 3, centers=4, cluster_std=0.6, random_state=seed)
        found, model = warned_at(X, 100)
        assert model.n_clusters_ == 4
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PACOClusterer(random_state=0).fit(X[:100])
        assert found == [100] * len(caught)  # a hundred rows do not decide each time
        assert warned_at(X, 450)[0] == []


@pytest.mark.slow
def test_of_several_chains_in_a_call_the_last_one_warns():
    """A group of which a chain in between saw a single row is no doubt at the end."""
    rng = np.random.default_rng(0)
    early = rng.normal(size=(200, 2)) + rng.choice([0, 8], size=(200, 1))
    late = rng.normal((16, -4), size=(60, 2))
    begun = PACOClusterer(random_state=0, n_iter=50).partial_fit(early[:199])
    for blocks in ([early[199:], late], [np.vstack([early[199:], late])]):
        model = copy.deepcopy(begun)
        for block in blocks:  # a warning would be an error
            model.partial_fit(block)
        assert model.n_clusters_ == 3
    model = begun
    with pytest.warns(ConvergenceWarning, match="of which 1 are a single row"):
        model.partial_fit(late[:1])


def groups_of_few_rows(n_groups, n_rows, seed):
    """Groups whose centres are 30 times as far apart as their rows, in turn."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(n_groups), n_rows)
    rows = 30 * rng.normal(size=(n_groups, 5))[y] + rng.normal(size=(len(y), 5))
    return rows, y


@pytest.mark.parametrize(("n_groups", "n_rows"), [(12, 2), (20, 3), (40, 2)])
def test_groups_of_two_or_three_rows_are_found_by_fit(n_groups, n_rows):
    X, y = groups_of_few_rows(n_groups, n_rows, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rivals: rows are few
        for table in (X, 1e4 + 1e-3 * X):
            model = PACOClusterer(random_state=0, n_iter=50).fit(table)
            assert model.n_clusters_ == n_groups
            assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.parametrize(("n_groups", "n_rows"), [(12, 2), (12, 3), (20, 2)])
def test_a_stream_of_groups_of_few_rows_is_right_or_warns(n_groups, n_rows):
    X, _ = groups_of_few_rows(n_groups, n_rows, seed=2)
    model = PACOClusterer(random_state=0, n_iter=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for begin in range(0, len(X), 4):
            model.partial_fit(X[begin : begin + 4])
    warned = any("too few to decide" in str(each.message) for each in caught)
    assert warned or model.n_clusters_ >= n_groups - 1  # the chain ran a row earlier


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_wide_groups_are_no_groups_of_few_rows(seed):
    """Of groups whose spreads differ tenfold, a common one makes rows of wide ones."""
    rng = np.random.default_rng(seed)
    y = np.arange(100) % 10
    spreads = np.geomspace(0.3, 3.0, 10)[y][:, None]
    X = 20 * rng.normal(size=(10, 8))[y] + spreads * rng.normal(size=(100, 8))
    model = PACOClusterer(random_state=0, n_iter=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.partial_fit(X)
    assert model.n_clusters_ == 10
    assert not any("too few to decide" in str(each.message) for each in caught)


def test_a_mixture_that_merges_a_new_group_is_no_doubt():
    """Three groups, the last of five rows, of which the mixture finds two."""
    rng = np.random.default_rng(7)
    shapes = (0, 1, 18), (5, 3, 17), (10, 1, 5)
    X = np.vstack([rng.normal(at, width, size=(n, 2)) for at, width, n in shapes])
    model = PACOClusterer(random_state=0, n_iter=50).partial_fit(X)  # does not warn
    assert model.n_clusters_ == 3


@pytest.mark.slow
def test_a_copy_of_a_stream_warns_where_the_stream_does():
    X = banana(250, seed=1)
    model = PACOClusterer(n_iter=50, refresh=50, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X)
    other = PACOClusterer(n_iter=50, refresh=50, random_state=0)
    with pytest.warns(ConvergenceWarning):
        other.partial_fit(X[:150])
    with pytest.warns(ConvergenceWarning):
        other.partial_fit(X[150:])
    assert model.n_clusters_ == other.n_clusters_


@pytest.mark.slow
def test_a_warning_that_is_an_error_leaves_the_stream_as_it_was():
    X = banana(250, seed=2)
    model = PACOClusterer(n_iter=50, refresh=50, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X[:150])
    before = model.cluster_centers_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.partial_fit(X[150:])
    np.testing.assert_array_equal(model.cluster_centers_, before)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X[150:])
