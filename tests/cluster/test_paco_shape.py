"""The common shape of the clusters: what does not change with the coordinates."""

import functools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skpacbayes import PACOClusterer, make_paco_model

# Few rows, or pieces of a shape, do not decide the number of clusters.
pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")


def paco(**parameters):
    return PACOClusterer(**{"random_state": 0, "n_iter": 50} | parameters)


def separated(n_features=3, n_rows=240, seed=0):
    """Four round groups, eight standard deviations apart."""
    rng = np.random.default_rng(seed)
    centers = (
        8 * ortho_group.rvs(max(4, n_features), random_state=seed)[:4, :n_features]
    )
    centers += 8 * np.arange(4)[:, None]
    y = rng.integers(4, size=n_rows)
    return centers[y] + rng.normal(size=(n_rows, n_features)), y


def mapping(condition, n_features, seed):
    """A matrix of this condition number, and a shift."""
    rng = np.random.default_rng(seed)
    left, right = ortho_group.rvs(n_features, size=2, random_state=seed)
    values = np.geomspace(1, condition, n_features)
    return left * values @ right, 1e3 * rng.normal(size=n_features)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("seed", range(2))
def test_tied_clusters_do_not_depend_on_the_coordinates(condition, seed):
    """The partition of X A + b is that of X; also with groups that overlap."""
    X, _ = separated(seed=seed) if seed % 2 else make_paco_model(2, random_state=seed)
    A, b = mapping(condition, X.shape[1], seed)
    model, mapped = paco(shape="tied").fit(X), paco(shape="tied").fit(X @ A + b)
    assert model.n_clusters_ == mapped.n_clusters_
    assert adjusted_rand_score(model.labels_, mapped.labels_) == 1.0
    assert_allclose(
        mapped.covariance_ / np.abs(mapped.covariance_).max(),
        A.T @ model.covariance_ @ A / np.abs(A.T @ model.covariance_ @ A).max(),
        atol=1e-3,
    )


def test_more_rows_than_the_search_reads_are_mapped_too():
    X, _ = separated(n_rows=3000)
    A, b = mapping(1e4, 3, 0)
    model, mapped = paco(shape="tied").fit(X), paco(shape="tied").fit(X @ A + b)
    assert adjusted_rand_score(model.labels_, mapped.labels_) == 1.0


@pytest.mark.parametrize("shape", ["auto", "round", "diagonal", "tied"])
def test_no_shape_depends_on_unit_and_origin(shape):
    X, _ = separated()
    sheared = X @ np.array([[3, 2, 0], [0, 1, 0], [0, 0, 1.0]])
    labels = paco(shape=shape).fit(sheared).labels_
    for factor, shift in ((2.0**20, 0.0), (2.0**-20, 0.0), (1.0, 1e4), (1e-3, 7.0)):
        moved = paco(shape=shape).fit(factor * sheared + shift).labels_
        assert adjusted_rand_score(labels, moved) == 1.0


@pytest.mark.parametrize("shape", ["auto", "diagonal", "tied"])
def test_diagonal_clusters_do_not_depend_on_the_units_of_the_columns(shape):
    X, y = separated()
    units = np.array([1.0, 1e8, 1e-4])
    model = paco(shape=shape).fit(X * units)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.shape_ != "round"


def unequal_groups(seed):
    """Groups of unequal widths, at random places: some overlap, some are correlated."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.choice([2, 3, 4, 6])), int(rng.integers(1, 8))
    centers = rng.uniform(2, 5) * rng.normal(size=(k, d))
    rows = centers[rng.integers(k, size=250)] + rng.standard_t(4 + seed % 9, (250, d))
    if seed % 2:
        rows = rows @ ortho_group.rvs(d, random_state=seed) * np.exp(rng.normal(size=d))
    return rows * np.exp(rng.normal(size=d))


ANY_UNITS = {
    f"groups {seed}": functools.partial(unequal_groups, seed) for seed in range(4)
}
ANY_UNITS |= {"iris": lambda: load_iris().data, "wine": lambda: load_wine().data}


@pytest.mark.slow
@pytest.mark.parametrize("table", ANY_UNITS)
def test_the_units_of_the_columns_decide_nothing_but_whether_clusters_are_round(table):
    """With "auto": which shape, how many clusters, which rows; also of real tables."""
    X = ANY_UNITS[table]()
    rng = np.random.default_rng(1)
    units = np.exp(rng.uniform(-5, 5, X.shape[1]))
    forms = (
        X,
        StandardScaler().fit_transform(X),
        X * units + rng.normal(size=len(units)),
    )
    models = [paco().fit(rows) for rows in forms]
    models = [model for model in models if model.shape_ != "round"]
    assert models
    for model in models[1:]:
        assert model.shape_ == models[0].shape_
        assert adjusted_rand_score(model.labels_, models[0].labels_) == 1.0


@pytest.mark.parametrize("shape", ["auto", "round", "diagonal", "tied"])
def test_no_shape_depends_on_the_order_of_the_rows(shape):
    X, _ = separated()
    order = np.random.default_rng(1).permutation(len(X))
    model, other = paco(shape=shape).fit(X), paco(shape=shape).fit(X[order])
    assert_array_equal(model.labels_[order], other.labels_)


def test_the_shape_is_that_of_the_clusters():
    """Of each kind of clusters, the parsimonious shape that has them."""
    X, y = separated(n_rows=400)
    maps = {
        "round": np.eye(3),
        "diagonal": np.diag([1.0, 5.0, 0.3]),
        "tied": np.array([[3, 2, 0], [0, 0.7, 1], [0, 0, 1.0]]),
    }
    for shape, A in maps.items():
        model = paco().fit(X @ A)
        assert model.shape_ == shape
        assert adjusted_rand_score(y, model.labels_) == 1.0
        within = model.covariance_ / np.trace(model.covariance_)
        assert_allclose(within, A.T @ A / np.trace(A.T @ A), atol=0.1)


RNG = np.random.default_rng(0)
GROUPS = np.repeat([[0.0, 0, 0], [9, 0, 0], [0, 9, 0]], 20, axis=0)
NOISY = GROUPS + RNG.normal(size=GROUPS.shape)
BAD = {
    "more columns than rows": np.hstack([NOISY[::4]] * 10 + [RNG.normal(size=(15, 9))]),
    "collinear columns": np.column_stack([NOISY, NOISY @ [1, 2, 3], NOISY[:, 0]]),
    "a constant column": np.column_stack([NOISY, np.full(60, 3.0)]),
    "a column in other units": NOISY * [1.0, 1e8, 1.0],
    "two rows a cluster": NOISY[::10],
    "all rows equal": np.ones((20, 3)),
    "equal rows but one": np.vstack([np.ones((20, 3)), [[2.0, 1, 1]]]),
    "heavy duplicates": np.repeat(NOISY[::6], 40, axis=0),
    "levels without noise": GROUPS,
    "rounded": NOISY.round(),
}


@pytest.mark.parametrize("shape", ["auto", "diagonal", "tied"])
@pytest.mark.parametrize("rows", BAD)
def test_bad_rows_have_an_answer(rows, shape):
    """No error, no NaN, and no warning but that the data do not decide."""
    X = BAD[rows]
    with warnings.catch_warnings():
        told = "the mixture that calibrates|n_clusters_=|.* are one row each"
        warnings.filterwarnings("ignore", told)
        model = paco(shape=shape).fit(X)
        weighted = paco(shape=shape).fit(X, sample_weight=np.arange(len(X)) % 3)
    for fitted in (model, weighted):
        for name in ("cluster_centers_", "cluster_scales_", "covariance_", "scale_"):
            assert np.isfinite(getattr(fitted, name)).all(), name
        assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
        assert not np.isnan(fitted.score_samples(X)).any()
        assert not np.isnan(fitted.outlier_scores(X)).any()
        assert np.linalg.eigvalsh(fitted.covariance_).min() >= 0
        assert fitted.n_clusters_ <= len(np.unique(X, axis=0))


@pytest.mark.parametrize("rows", ["collinear columns", "a constant column"])
@pytest.mark.parametrize("shape", ["auto", "tied"])
def test_columns_that_say_nothing_hide_no_group(rows, shape):
    model = paco(shape=shape).fit(BAD[rows])
    assert adjusted_rand_score(np.repeat([0, 1, 2], 20), model.labels_) == 1.0


@pytest.mark.parametrize("shape", ["auto", "round", "tied"])
def test_the_certificate_says_that_the_shape_was_learnt(shape):
    X, _ = separated()
    assumptions = paco(shape=shape, refresh=60).partial_fit(X).certificate().assumptions
    fixed = assumptions["the distance was fixed before the rows came"]
    assert fixed is (shape == "round")


def flowers():
    return load_iris(return_X_y=True)


def wines():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def sheared_groups():
    X, y = separated(n_rows=150)
    return X @ np.array([[3, 2, 0], [0, 0.7, 1], [0, 0, 1.0]]), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "ordered"),
    [(flowers, "by label"), (wines, "by chance"), (sheared_groups, "by label")],
)
def test_a_stream_has_the_clusters_of_the_batch(table, ordered):
    """In any order of the rows, within .1 of the adjusted Rand index."""
    X, y = table()
    order = np.random.default_rng(0).permutation(len(X))
    if ordered == "by label":
        order = order[np.argsort(y[order], kind="stable")]
    batch = paco().fit(X)
    stream = paco(refresh=10).partial_fit(X[order])
    assert stream.n_clusters_ == batch.n_clusters_
    found = (adjusted_rand_score(y, model.predict(X)) for model in (batch, stream))
    assert np.ptp(list(found)) < 0.1


@functools.cache
def two_groups_of_three_columns(seed, method):
    """Rows, and a model of them that no test changes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)) + 4.0 * rng.integers(2, size=(200, 1))
    return X, getattr(paco(refresh=20), method)(X)


@pytest.mark.parametrize(
    ("kind", "seed", "method"),
    [
        ("doubled", 0, "fit"),
        ("mixed", 0, "fit"),
        ("shares", 0, "fit"),
        ("almost doubled", 0, "fit"),
        ("mixed", 1, "partial_fit"),
        ("almost doubled", 1, "partial_fit"),
    ],
)
def test_columns_that_follow_from_others_change_nothing(kind, seed, method):
    """Whatever rounding leaves of a linear dependence is no cluster."""
    X, model = two_groups_of_three_columns(seed, method)
    rng = np.random.default_rng(100 + seed)
    if kind == "mixed":
        Z = np.column_stack([X, X @ rng.normal(size=(3, 4))])
    elif kind == "shares":
        Z = np.column_stack([X, -X.sum(axis=1)])
    else:
        noise = 1e-9 * rng.normal(size=X.shape) if "almost" in kind else 0.0
        Z = np.column_stack([X, X + noise])
    wider = getattr(paco(refresh=20), method)(Z)
    assert model.n_clusters_ == wider.n_clusters_ == 2
    assert adjusted_rand_score(model.predict(X), wider.predict(Z)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n_rows"), [(0, 30), (1, 60), (0, 120)])
def test_a_short_stream_sees_what_a_table_sees_in_any_units(seed, n_rows):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_rows) % 2)
    X = rng.normal(size=(n_rows, 3)) + 5.0 * y[:, None]
    Z = X * [1e-2, 1.0, 1e6]
    for model in (paco().fit(Z), paco().partial_fit(Z)):
        assert adjusted_rand_score(y, model.predict(Z)) > 0.9


def few_columns_tell(seed, n_features=30, n_groups=3):
    """Groups in two standardised columns, among others that are noise."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * (np.arange(n_groups) + rng.random()) / n_groups
    labels = rng.integers(n_groups, size=150 * n_groups)
    centers = 6 / np.sqrt(2 - 2 * np.cos(2 * np.pi / n_groups))
    centers = centers * np.column_stack([np.cos(angles), np.sin(angles)])
    X = rng.normal(size=(len(labels), n_features))
    X[:, :2] += centers[labels]
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [3, 4])
@pytest.mark.parametrize("n_features", [15, 30])
def test_few_columns_of_many_tell_the_groups(n_features, n_groups):
    """Distances between rows are those of the other columns; no group is missed.

    The groups are six standard deviations apart.
    In other units and another order of columns, the groups are the same.
    """
    rng = np.random.default_rng(0)
    X, labels = few_columns_tell(1, n_features, n_groups)
    found = PACOClusterer(random_state=0).fit(X).labels_
    assert found.max() + 1 == n_groups
    assert adjusted_rand_score(labels, found) > 0.95
    order = rng.permutation(n_features)
    moved = X[:, order] * rng.uniform(0.5, 2.0, n_features) + 10.0
    again = PACOClusterer(random_state=0).fit(moved).labels_
    assert adjusted_rand_score(found, again) > 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:all max_clusters", "ignore:the mixture that calib")
@pytest.mark.parametrize("shape", ["auto", "round", "diagonal", "tied"])
@pytest.mark.parametrize("scale", ["auto", 1.0])
def test_fewer_clusters_than_groups_may_be_asked_for(shape, scale):
    """Of nine sheared groups; no mixture need have been fitted with so few clusters."""
    rng = np.random.default_rng(1)
    places = 6 * np.stack(np.mgrid[:3, :3], axis=-1).reshape(9, 2)
    rows = places[rng.integers(9, size=300)] + rng.normal(size=(300, 2))
    X = rows @ np.array([[1.0, 0.8], [0.0, 0.4]])
    for most in (1, 3, 4):
        model = paco(shape=shape, scale=scale, max_clusters=most)
        for method in (model.fit, model.partial_fit):
            method(X)
            assert 1 <= model.n_clusters_ <= most
            assert len(model.cluster_centers_) == model.n_clusters_


def test_fewer_clusters_than_groups_are_told_of():
    X, _ = separated()
    for rows in (X, X @ mapping(10.0, 3, 0)[0]):
        with pytest.warns(UserWarning, match="all max_clusters=2 clusters are in use"):
            paco(max_clusters=2).fit(rows)
