"""Zeros of amounts, limits and replaced values do not cut groups into pieces."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_rows import Rows
from skpacbayes.cluster._paco_shared_values import SharedValues

pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")  # others are close

N_ROWS = 600


def groups(rng, n_groups=3):
    """Return rows of groups seven standard deviations apart, and the groups."""
    y = rng.integers(n_groups, size=N_ROWS)
    return 7.0 * np.eye(n_groups, 3)[y] + rng.normal(size=(N_ROWS, 3)), y


def with_zeros(rng, share, amounts):
    return np.where(rng.random(N_ROWS) < share, 0.0, amounts)


def amounts(X, rng):
    return np.column_stack([X, with_zeros(rng, 0.7, rng.exponential(10, N_ROWS))])


def lognormal_amounts(X, rng):
    return np.column_stack([X, with_zeros(rng, 0.6, rng.lognormal(2, 0.5, N_ROWS))])


def amounts_in_tens(X, rng):
    tens = 10.0 * np.round(rng.exponential(20, N_ROWS))
    return np.column_stack([X, with_zeros(rng, 0.6, tens)])


def two_amounts(X, rng):
    return amounts(lognormal_amounts(X, rng), rng)


def limited(X, rng):
    return np.column_stack([X, np.maximum(rng.normal(-0.3, 1, N_ROWS), 0)])


def replaced_by_mean(X, rng):
    X[rng.random(N_ROWS) < 0.3, 0] = X[:, 0].mean()
    return X


COLUMNS = {
    made.__name__: made
    for made in (
        amounts,
        lognormal_amounts,
        amounts_in_tens,
        two_amounts,
        limited,
        replaced_by_mean,
    )
}


def table(name, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    X, y = groups(rng, n_groups)
    return COLUMNS[name](X, rng), y


def in_a_batch(X, **parameters):
    return PACOClusterer(random_state=0, **parameters).fit(X)


def in_a_stream(X, **parameters):
    clusterer = PACOClusterer(random_state=0, refresh=100, **parameters)
    for part in np.array_split(X, 6):
        clusterer.partial_fit(part)
    return clusterer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "learn"),
    [
        ("amounts", in_a_batch),
        ("lognormal_amounts", in_a_batch),
        ("amounts_in_tens", in_a_batch),
        ("limited", in_a_batch),
        ("replaced_by_mean", in_a_batch),
        ("lognormal_amounts", in_a_stream),
        ("amounts_in_tens", in_a_stream),
    ],
)
def test_shared_values_do_not_cut_groups(name, learn):
    X, y = table(name)
    clusterer = learn(X)
    assert clusterer.n_clusters_ == 3
    assert adjusted_rand_score(y, clusterer.predict(X)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lognormal_amounts", "two_amounts", "limited"])
def test_shared_values_do_not_cut_one_group(name):
    X, _ = table(name, n_groups=1)
    assert in_a_batch(X).n_clusters_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["diagonal", "tied"])
@pytest.mark.parametrize("name", list(COLUMNS))
def test_shared_values_do_not_cut_groups_of_a_shape(name, shape):
    X, y = table(name, seed=1)
    clusterer = in_a_batch(X, shape=shape)
    assert clusterer.n_clusters_ == 3
    assert adjusted_rand_score(y, clusterer.labels_) > 0.9


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_shared_values_have_no_unit_and_no_origin(unit):
    X, _ = table("two_amounts")
    expected = SharedValues(Rows.single(X, np.ones(N_ROWS)))
    found = SharedValues(Rows.single(unit * X + 1e4 * unit, np.ones(N_ROWS)))
    assert found.where.keys() == expected.where.keys() == {3, 4}
    for j, shared in expected.where.items():
        assert_array_equal(found.where[j], shared)
    np.testing.assert_allclose(found.variances, unit**2 * expected.variances, rtol=1e-6)


def test_the_error_is_that_of_the_other_values():
    """Or of all values, whichever is smaller."""
    near, far = np.r_[np.zeros(70), np.arange(1, 31)], np.r_[np.zeros(70), 200:230]
    shared = SharedValues(Rows.single(np.column_stack([near, far]), np.ones(100)))
    assert_array_equal(shared.where[0], near == 0)
    expected = 0.7 * np.array([near.var(), np.arange(30).var()])
    assert shared.variances == pytest.approx(expected)


def test_clusters_are_cut_if_one_is_the_shared_value():
    rng = np.random.default_rng(0)
    zero = rng.random(N_ROWS) < 0.6
    X = np.column_stack([np.where(zero, 0, rng.exponential(size=N_ROWS)), ~zero])
    rows = Rows.single(X + rng.normal(size=X.shape) * [0, 1], np.ones(N_ROWS))
    shared = SharedValues(rows)
    assert shared.cut(rows, np.where(zero, 1, 0))
    assert shared.cut(rows, np.where(zero & (X[:, 1] == 0), 1, 0))
    assert not shared.cut(rows, rng.integers(3, size=N_ROWS))
    assert not shared.cut(rows, np.zeros(N_ROWS, dtype=int))


def test_rows_with_a_shared_value_that_are_far_from_the_others_are_not_alike():
    rng = np.random.default_rng(0)
    zero, one = rng.random(N_ROWS) < 0.6, np.zeros(N_ROWS, dtype=int)
    column = np.where(zero, 0, rng.exponential(size=N_ROWS))
    for apart, alike in ((0.0, True), (1.0, True), (4.0, False)):
        other = 1e6 * (apart * zero + rng.normal(size=N_ROWS))
        rows = Rows.single(np.column_stack([column, other]), np.ones(N_ROWS))
        shared = SharedValues(rows)
        assert shared.alike(rows, one) == alike
        assert shared.alike(rows, zero.astype(int))


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(0).normal(size=N_ROWS),
        np.round(np.random.default_rng(0).normal(size=N_ROWS), 1),
        np.random.default_rng(0).poisson(1.0, N_ROWS),
        np.random.default_rng(0).integers(1, 6, N_ROWS),
        np.random.default_rng(0).integers(2, size=N_ROWS),
        np.r_[np.zeros(4), np.random.default_rng(0).normal(size=N_ROWS - 4)],
    ],
    ids=["continuous", "rounded", "counts", "ratings", "two values", "few copies"],
)
def test_other_columns_have_no_shared_values(column):
    rows = Rows.single(np.column_stack([column, column]), np.ones(N_ROWS))
    assert not SharedValues(rows).where


@pytest.mark.slow
def test_zeros_that_show_the_groups_count():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=N_ROWS)
    rates = rng.gamma(0.3, 1.0, size=(3, 30))
    counts = rng.poisson(4 * rates[y]).astype(float)
    X = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    rows = Rows.single(X, np.ones(N_ROWS))
    shared = SharedValues(rows)
    assert shared.where
    assert not shared.alike(rows, np.zeros(N_ROWS, dtype=int))
    assert adjusted_rand_score(y, in_a_batch(X).labels_) > 0.9
