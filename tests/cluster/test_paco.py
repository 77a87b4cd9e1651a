"""What `PACOClusterer` promises of its results: invariance, weights, labels, scores.

The laws of the chain are in test_paco_law.py, those of streaming in test_streaming.py.
Data and seeds are fixed; where a test rests on chance, it says how.
"""

import functools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from states import assert_same_state

from skpacbayes import PACOClusterer, make_paco_model

# Few rows do not decide the number of clusters.
pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")
LOSSES = ["squared_euclidean", "manhattan"]
METRIC = {"squared_euclidean": "euclidean", "manhattan": "cityblock"}
MODEL_3, _ = make_paco_model(3, 120, random_state=0)


def paco(**parameters):
    return PACOClusterer(**{"random_state": 0, "n_iter": 100} | parameters)


def three_groups(n_rows, seed=0):
    """Rows of three groups far apart, in turn."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 3
    return rng.normal(size=(n_rows, 2)) + np.array([[0, 0], [12, 0], [0, 12]])[truth]


# Invariance. Rounding changes the rows by at most 2^-53 |b| / a of their spread.


@functools.cache
def plain_model(method, **parameters):
    """Model of the rows as they are, which no test changes."""
    return getattr(paco(**parameters), method)(MODEL_3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", [1e-3, 37.0, 1e3])
@pytest.mark.parametrize("shift", [0.0, -4.7, 1e4])
def test_fit_does_not_depend_on_unit_and_origin(loss, factor, shift):
    plain = plain_model("fit", loss=loss)
    moved = paco(loss=loss).fit(factor * MODEL_3 + shift)
    assert_same_answer(moved, plain, factor, shift)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 10.0), (37.0, -4.7), (1e3, 0.0)])
def test_partial_fit_does_not_depend_on_unit_and_origin(loss, factor, shift):
    parameters = {"loss": loss, "refresh": 9, "summary_size": 50}
    plain = plain_model("partial_fit", **parameters)
    moved = paco(**parameters).partial_fit(factor * MODEL_3 + shift)
    assert_same_answer(moved, plain, factor, shift)
    moved_labels = moved.predict(factor * MODEL_3 + shift)
    np.testing.assert_array_equal(moved_labels, plain.predict(MODEL_3))


def assert_same_answer(moved, plain, factor, shift):
    power = 1 if plain.loss == "manhattan" else 2
    rtol = 1e-6 + 1e-14 * abs(shift) / factor
    for name, ratio in {
        "scale_": factor,
        "radius_": factor,
        "inverse_temperature_": factor**-power,
    }.items():
        expected = ratio * getattr(plain, name)
        np.testing.assert_allclose(getattr(moved, name), expected, rtol, err_msg=name)
    assert moved.n_clusters_ == plain.n_clusters_
    np.testing.assert_array_equal(moved.cluster_labels_, plain.cluster_labels_)
    np.testing.assert_allclose(
        moved.n_clusters_posterior_, plain.n_clusters_posterior_, atol=1e-12
    )
    np.testing.assert_allclose(
        moved.cluster_centers_,
        factor * plain.cluster_centers_ + shift,
        atol=10 * factor * rtol,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_an_origin_a_billion_spreads_away(loss):
    """Multiples of 1/64 moved by 2^33: every sum of two is exact."""
    X = np.round(64 * MODEL_3) / 64
    near, far = paco(loss=loss).fit(X), paco(loss=loss).fit(X + 2.0**33)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_allclose(
        far.cluster_centers_ - 2.0**33, near.cluster_centers_, atol=1e-5
    )
    np.testing.assert_allclose(far.scale_, near.scale_, rtol=1e-5)


# Rows are a weighted set.


@pytest.mark.parametrize("loss", LOSSES)
def test_fit_does_not_depend_on_the_order_of_the_rows(loss):
    order = np.random.default_rng(0).permutation(len(MODEL_3))
    first, second = paco(loss=loss).fit(MODEL_3), paco(loss=loss).fit(MODEL_3[order])
    assert_same_state(second, first, apart_from=["labels_"])
    np.testing.assert_array_equal(second.labels_, first.labels_[order])


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_rows_are_weights_and_no_weight_is_absence(loss):
    counts = np.random.default_rng(0).integers(0, 3, len(MODEL_3))
    weighted = paco(loss=loss).fit(MODEL_3, sample_weight=counts)
    repeated = paco(loss=loss).fit(np.repeat(MODEL_3, counts, axis=0))
    assert_same_state(weighted, repeated, apart_from=["labels_"])
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert weighted.n_samples_seen_ == counts.sum()


def test_weights_move_the_centers():
    X = np.array([[0.0], [1.0]])
    center = paco(max_clusters=1).fit(X, sample_weight=[3, 1]).cluster_centers_
    np.testing.assert_allclose(center, [[0.25]])


# Labels.


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_distances_and_names_agree(loss):
    X = three_groups(60)
    model = paco(loss=loss).fit(X)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.cluster_labels_, np.arange(3))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, clone(model).fit_predict(X))
    distances = model.transform(X)
    np.testing.assert_allclose(
        distances, cdist(X, model.cluster_centers_, METRIC[loss])
    )
    np.testing.assert_array_equal(
        model.cluster_labels_[distances.argmin(axis=1)], model.labels_
    )
    names = [f"pacoclusterer{j}" for j in range(3)]
    assert list(model.get_feature_names_out()) == names
    frame = model.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == names
    np.testing.assert_array_equal(frame, distances)


def test_columns_of_transform_follow_the_stream():
    model = paco().partial_fit(three_groups(60))
    assert model.transform(np.zeros((1, 2))).shape == (1, model.n_clusters_)
    model.partial_fit(np.random.default_rng(1).normal(30, 1, size=(30, 2)))
    assert model.n_clusters_ == 4
    assert len(model.get_feature_names_out()) == 4
    assert model.transform(np.zeros((1, 2))).shape == (1, 4)


@pytest.mark.slow
def test_a_cluster_keeps_its_label_while_it_lives():
    """After each row: clusters that share most rows share labels; new ones, the lowest.

    Most rows in all: the best assignment of old to new clusters.
    """
    X, _ = make_paco_model(3, 80, random_state=3)
    model, changes = paco(n_iter=30, refresh=1), 0
    model.partial_fit(X[:1])
    for row in range(1, len(X)):
        seen = X[: row + 1]
        old, old_names = model.predict(seen), model.cluster_labels_
        new = model.partial_fit(X[row : row + 1]).predict(seen)
        names = model.cluster_labels_
        assert list(names) == sorted(set(names)) == sorted(set(new))
        shared = np.array([[np.sum((old == i) & (new == j)) for j in names]
                           for i in old_names])  # fmt: skip
        pairs = linear_sum_assignment(-shared)
        assert np.sum(old == new) == shared[pairs].sum()
        kept = {i for i in old_names if np.any((old == i) & (new == i))}
        free = (label for label in range(100) if label not in kept)
        assert set(names) - kept == {next(free) for _ in set(names) - kept}
        changes += set(names) != set(old_names)
    assert changes > 3  # or the test has seen nothing


def test_groups_that_appear_take_the_next_label():
    rng = np.random.default_rng(0)
    model = paco()
    for label, place in enumerate([0, 20, -20, 40]):
        rows = place + rng.normal(size=(25, 2))
        model.partial_fit(rows)
        assert model.n_clusters_ == label + 1
        np.testing.assert_array_equal(model.predict(rows), label)
    np.testing.assert_array_equal(model.predict([[0, 0], [20, 20]]), [0, 1])


# Scores.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("sizes", [(9, 9, 9), (40, 40, 9)])
def test_score_samples_is_a_density(loss, n_features, sizes):
    """Its integral is 1 up to the error of the 128 draws that estimate Z.

    Z is a mean, over draws of the noise, of the share of the rows whose cell keeps the
    draw. Its standard error comes from 20,000 other draws; 4.5 of them are allowed
    (a correct Z fails with probability 6e-5, in sixteen cases), and one per cent for
    the grid. Without that share the integral would miss 1 by more.
    """
    centers = np.zeros((3, n_features))
    centers[:, 0] = [0, 2, 7]
    step = 0.05
    axes = [np.arange(-10, 17, step) + step / 2, np.arange(-10, 10, step) + step / 2]
    grid = np.stack(np.meshgrid(*axes[:n_features]), -1).reshape(-1, n_features)
    for scale, apart in [(0.2, True), (1.0, False)]:
        model = paco(loss=loss, scale=scale, inverse_temperature=50.0)
        model.fit(np.repeat(centers, sizes, axis=0))
        order = model.cluster_centers_[:, 0].argsort()
        shares = np.divide(sizes, sum(sizes))
        np.testing.assert_allclose(model.cluster_shares_[order], shares)
        share, deviation = share_kept(centers, shares, scale, loss)
        allowed = 4.5 * deviation / share / 128**0.5 + 0.01
        integral = np.exp(model.score_samples(grid)).sum() * step**n_features
        assert integral == pytest.approx(1, abs=allowed)
        assert apart or 1 - share > allowed


def share_kept(centers, shares, scale, loss):
    """Mean and deviation, over the noise, of the share of rows that keep it."""
    rng = np.random.default_rng(1)
    draw = rng.laplace if loss == "manhattan" else rng.normal
    noise = draw(scale=scale, size=(20000, centers.shape[1]))
    kept = [
        cdist(center + noise, centers, METRIC[loss]).argmin(axis=1) == j
        for j, center in enumerate(centers)
    ]
    kept = shares @ np.array(kept)
    return kept.mean(), kept.std()


def test_score_is_the_mean_log_density_and_of_each_row_alone():
    model = paco().fit(MODEL_3)
    densities = model.score_samples(MODEL_3)
    assert model.score(MODEL_3) == pytest.approx(densities.mean())
    far = np.vstack([MODEL_3, [[1e300, -1e300]], [[1e150, 0]]])
    beside = model.score_samples(far)
    np.testing.assert_allclose(beside[:-2], densities, rtol=1e-9)
    assert beside[-2] == -np.inf  # -1e600 or so
    assert beside[-1] < -1e290


@pytest.mark.parametrize(
    ("parameter", "values", "coarsest"),
    [
        ("inverse_temperature", [0.003, 0.01, 0.1, 1.0, 30.0], 30.0),
        ("cluster_penalty", [0.0, 3.0, 1e6], None),
    ],
)
@pytest.mark.parametrize(("model", "n_clusters"), [(2, 4), (3, 4), (4, 7)])
def test_grid_search_chooses_the_number_of_clusters(
    parameter, values, coarsest, model, n_clusters
):
    """Within one of the truth, and never the largest on offer, on one fixed draw.

    The choice is exact on most draws, not on all: see the benchmark.
    """
    X, _ = make_paco_model(model, 150, random_state=0)
    search = GridSearchCV(paco(n_iter=20), {parameter: values}, cv=3).fit(X)
    assert abs(search.best_estimator_.n_clusters_ - n_clusters) <= 1
    numbers = [
        paco(n_iter=20, **{parameter: value}).fit(X).n_clusters_
        for value in (values[0], values[-1])
    ]
    assert numbers[0] != numbers[1]  # there is something to choose
    if coarsest:
        assert numbers[1] > n_clusters + 2
        assert search.best_params_[parameter] < coarsest
