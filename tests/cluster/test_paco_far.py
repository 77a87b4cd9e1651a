"""Few rows far from large clusters, where a part of the rows is searched."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.cluster import PACOClusterer


def large_groups(n_rows, n_features, rng):
    """Two groups, ten apart."""
    X = rng.normal(size=(n_rows, n_features))
    X[:, 0] += 10.0 * rng.integers(2, size=n_rows)
    return X


def fitted(X, rng):
    """Fit shuffled rows; return the estimator and its messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PACOClusterer(n_iter=20, random_state=0).fit(rng.permutation(X))
    assert all(each.category is ConvergenceWarning for each in caught)
    return model, " ".join(str(each.message) for each in caught)


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e3, 1e4)])
@pytest.mark.parametrize("n_features", [2, 5])
@pytest.mark.parametrize(("n_rows", "n_small"), [(6000, 8), (9000, 12), (30_000, 40)])
def test_a_group_of_one_row_in_750_is_found_or_named(
    n_rows, n_small, n_features, unit, origin
):
    rng = np.random.default_rng([1, n_rows, n_features])
    small = rng.normal(size=(n_small, n_features))
    small[:, 1] += 15.0
    X = origin + unit * np.vstack([large_groups(n_rows, n_features, rng), small])
    model, messages = fitted(X, rng)
    if model.n_clusters_ == 3:
        assert np.ptp(model.predict(origin + unit * small)) == 0
    else:
        assert "too far from all clusters" in messages or "3 describe" in messages


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_a_few_far_rows_are_no_group(n_features):
    rng = np.random.default_rng([2, n_features])
    far = rng.uniform(-100.0, 110.0, size=(5, n_features))
    model, messages = fitted(np.vstack([large_groups(6000, n_features, rng), far]), rng)
    assert model.n_clusters_ == 2
    assert model.background_share_ > 0 or "too far from all clusters" in messages


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_rows_of_clusters_are_not_far(n_features):
    """The probability of three far rows is 2e-7, if the noise is normal."""
    rng = np.random.default_rng([3, n_features])
    model, messages = fitted(large_groups(6000, n_features, rng), rng)
    assert model.n_clusters_ == 2
    assert messages == ""
