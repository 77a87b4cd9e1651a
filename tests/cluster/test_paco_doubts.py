"""Warnings of clusters that have no gap between them, or no width of their own."""

import warnings

import numpy as np
import pytest
from designs import every_two
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import PACOClusterer
from skpacbayes.cluster._paco_constant_columns import (
    columns_that_cut_groups,
    values_of_clusters,
)
from skpacbayes.cluster._paco_gaps import n_groups_with_gaps, places_of_clusters
from skpacbayes.datasets import make_paco_model


def messages_of(X, **parameters):
    model = PACOClusterer(random_state=0, n_iter=20, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return model, " ".join(str(warning.message) for warning in caught)


def banana(rng):
    x = rng.normal(size=600)
    return np.column_stack([x, x**2 + 0.3 * rng.normal(size=600)])


def ring(rng):
    angle = rng.uniform(0, 2 * np.pi, 600)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(
        scale=0.05, size=(600, 2)
    )


def long_group(rng):
    return np.column_stack([30.0 * rng.normal(size=600), rng.normal(size=600)])


@pytest.mark.parametrize(("distance", "n_groups"), [(0.0, 1), (2.0, 1), (4.0, 2)])
@pytest.mark.parametrize("n_features", [1, 5])
def test_normal_groups_have_a_gap_if_they_are_far_apart(distance, n_groups, n_features):
    """Midway over at a centre, 2 exp(-d^2 / 8) / (1 + exp(-d^2 / 2)): 1.07 and .27.

    Counts of hundreds of rows; .75 is six of their standard deviations away.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, n_features))
    X[:2000, 0] += distance
    labels = (X[:, 0] < distance / 2).astype(int)
    centers = np.array([X[labels == j].mean(axis=0) for j in range(2)])
    assert n_groups_with_gaps(X, np.ones(4000), labels, centers) == n_groups


@pytest.mark.parametrize("seed", range(3))
def test_halves_of_one_group_are_warned_of(seed):
    """Of rows that are uniform along one column, which a cut explains better."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 600)
    model, messages = messages_of(np.column_stack([angle, rng.normal(size=(600, 2))]))
    assert model.n_clusters_ == 1 or "there is no gap between them" in messages


def bent(rng, corners, n_rows):
    """Rows spread evenly along the lines between corners, 10 apart."""
    corners = np.array(corners, dtype=float)
    place = rng.uniform(0, len(corners) - 1, size=n_rows)
    first = place.astype(int)
    along = (place - first)[:, None] * (corners[first + 1] - corners[first])
    return corners[first] + along + 0.3 * rng.normal(size=(n_rows, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    "corners",
    [[[0, 10], [0, 0], [10, 0]], [[0, 10], [0, 0], [10, 0], [10, 10]]],
    ids="LU",
)
def test_pieces_of_a_bent_group_are_warned_of_beside_whole_groups(corners):
    """Most clusters have gaps between them, but the pieces have none."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        others = rng.normal((30, 5), size=(200, 2))
        others[::2] += [0, 12]
        model, messages = messages_of(np.vstack([bent(rng, corners, 400), others]))
        assert model.n_clusters_ > 3
        assert "there may be 3 groups" in messages


@pytest.mark.parametrize(("even", "n_groups"), [(False, 1), (True, 2)])
def test_halves_of_normal_groups_are_not_spread_evenly(even, n_groups):
    """The kurtosis of half of 4,000 rows, cut anywhere, is 3 along the longer axis.

    Its standard error is .08; that of a uniform group would be 1.8.
    """
    X = np.random.default_rng(0).normal(size=(4000, 2)) * [1, 3]
    labels = (X[:, 0] > 0).astype(int)
    centers = np.array([X[labels == j].mean(axis=0) for j in range(2)])
    assert n_groups_with_gaps(X, np.ones(4000), labels, centers, even) == n_groups


@pytest.mark.slow
def test_pieces_of_handwritten_digits_are_warned_of():
    X = PCA(5, random_state=0).fit_transform(load_digits().data)
    model, messages = messages_of(X, shape="round")
    assert model.n_clusters_ > 10
    assert "groups have gaps between them" in messages


@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 3, 8])
def test_groups_apart_are_not_warned_of(k, seed, loss):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=400)
    centers = 6 * np.column_stack([np.arange(k) % 3, np.arange(k) // 3])
    X = centers[y] + rng.normal(size=(400, 2))
    model, messages = messages_of(X, loss=loss)
    assert model.n_clusters_ == k
    assert messages == ""


def test_single_rows_and_copies_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 8.0 * rng.integers(2, size=(300, 1))
    far = np.vstack([X, [[1e6, 0.0]]])
    model, messages = messages_of(far)
    assert model.n_clusters_ == 3
    assert "of which 1 are a single row" in messages
    nearly = np.repeat(X[:40], 20, axis=0) + 1e-9 * rng.normal(size=(800, 2))
    assert "one row each, repeated" in messages_of(nearly)[1]
    assert messages_of(np.repeat(X[[0, 150, 299]], 9, axis=0))[1] == ""


@pytest.mark.parametrize("error", [1e-7, 1e-5, 1e-3])
def test_rows_that_nearly_repeat_are_warned_of(error):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 3))[rng.integers(60, size=240)]
    model, messages = messages_of(rows + error * rng.normal(size=(240, 3)))
    assert model.n_clusters_ > 30
    assert "nearly equal" in messages or "one row each, repeated" in messages


@pytest.mark.parametrize("make", [banana, ring, long_group])
@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e-3, 1e4)])
def test_pieces_under_the_manhattan_loss_are_warned_of(make, unit, origin):
    X = origin + unit * make(np.random.default_rng(2))
    model, messages = messages_of(X, loss="manhattan")
    assert model.n_clusters_ > 2
    assert "gap" in messages or "all max_clusters=20 clusters are in use" in messages


def test_columns_in_other_units_under_the_manhattan_loss_are_warned_of():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2)) + 8.0 * rng.integers(2, size=(600, 1))
    messages = messages_of(X * [1e6, 1.0], loss="manhattan")[1]
    assert "gap" in messages or "if their units differ" in messages


NOISES = {
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.uniform(-1.7, 1.7, size=size),
    "skewed": lambda rng, size: np.exp(0.8 * rng.normal(size=size)),
    "heavy": lambda rng, size: rng.standard_t(3, size=size),
}


@pytest.mark.parametrize(
    ("table", "stream", "noise"),
    every_two([(1, 1.0, 0.0), (2, 1e-3, 1e4), (5, 1e3, 1e4)], [False, True], NOISES),
)
def test_two_groups_taken_as_one_under_the_manhattan_loss_are_warned_of(
    table, stream, noise
):
    """A penalty makes them one; one group is not named, but pieces of a flat one."""
    n_features, unit, origin = table
    rng = np.random.default_rng([n_features, stream])
    y = rng.integers(2, size=600)
    for distance in (0.0, 9.0):
        X = NOISES[noise](rng, (600, n_features))
        X = origin + unit * (X + distance * np.eye(n_features)[0] * y[:, None])
        model = PACOClusterer(
            loss="manhattan", cluster_penalty=1e4, random_state=0, n_iter=20
        ).set_params(refresh=200)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X) if stream else model.fit(X)
        messages = " ".join(str(each.message) for each in caught)
        assert model.n_clusters_ == 1
        named = "a mixture of " in messages
        if distance > 0 or noise != "uniform":
            assert named == (distance > 0)


@pytest.mark.parametrize(("seed", "unit"), [(0, 1e-3), (1, 1.0), (2, 1e-3), (3, 1.0)])
def test_a_number_under_the_manhattan_loss_is_right_or_doubted(seed, unit):
    """Groups that overlap, and groups of unequal sizes with heavy tails."""
    rng = np.random.default_rng(seed)
    places = 8.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    y = rng.choice(5, size=400, p=[0.5, 0.3, 0.1, 0.06, 0.04])
    heavy = places[y] + 0.6 * rng.standard_t(3, size=(400, 2))
    for X, k in ((make_paco_model(2, random_state=seed)[0], 4), (heavy, 5)):
        model, messages = messages_of(unit * X, loss="manhattan")
        assert model.n_clusters_ == k or "a mixture of" in messages
    _, messages = messages_of(unit * heavy, loss="manhattan", max_clusters=1)
    assert "a mixture of" not in messages  # the number was given


@pytest.mark.parametrize(("n_features", "n_rows"), [(10, 300), (30, 200), (30, 480)])
def test_a_covariance_that_may_hide_clusters_is_named(n_features, n_rows):
    """If it has more parameters than there are rows, and is the given shape."""
    X = np.random.default_rng(4).normal(size=(n_rows, n_features))
    model, messages = messages_of(X, shape="tied")
    assert model.n_clusters_ == 1
    n_parameters = n_features * (n_features + 1) // 2
    assert (f"has {n_parameters} parameters" in messages) == (n_rows < n_parameters)
    assert "parameters" not in messages_of(X)[1]


@pytest.mark.parametrize("code", [-999.0, 0.0])
def test_codes_of_missing_values_are_named(code):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) + 9.0 * rng.integers(2, size=(400, 1)) + 30
    X[rng.random(400) < 0.1, 1] = code
    model, messages = messages_of(X)
    assert model.n_clusters_ > 2
    assert "one value each in column 1," in messages


@pytest.mark.parametrize("stream", [False, True])
def test_levels_that_cut_groups_are_named(stream):
    """Terms of days that do not depend on the groups; not levels that tell groups."""
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=400)
    X = np.array([[0, 0], [7, 0], [3.5, 6]])[y] + rng.normal(size=(400, 2))
    terms = rng.choice([1, 3, 7, 30, 90, 365], 400)
    for levels, named in [(terms, True), (np.array([1, 30, 365])[y], False)]:
        model = PACOClusterer(refresh=200, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (model.partial_fit if stream else model.fit)(np.column_stack([X, levels]))
        messages = [str(warning.message) for warning in caught]
        assert any("the same value of column 2" in one for one in messages) == named
        assert (model.n_clusters_ > 3) == named


def test_columns_that_cut_groups():
    labels = np.repeat(np.arange(6), 10)
    flag, level, own = labels % 2, labels % 3, labels
    measure = np.random.default_rng(0).normal(size=60)
    mostly = np.where(labels < 3, level, measure)
    columns = np.column_stack([flag, level, own, measure, mostly]).astype(float)
    values = values_of_clusters(columns, labels, 6)
    assert columns_that_cut_groups(columns, values) == [1]


def test_weight_of_places():
    points = np.array([[0.0, 1.0], [0.0, 1.0 + 1e-9], [5.0, 0.0], [7.0, 1.0]])
    labels, weights = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 1.0, 1.0])
    centers = np.array([[0.0, 1.0], [6.0, 0.5]])
    found = places_of_clusters(points, weights, labels, centers)
    np.testing.assert_array_equal(found, [3.0, 0.0])


@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
def test_weights_too_small_to_show_clusters_are_named(loss):
    """Weights that sum to 1 made three groups one cluster in silence."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 20 * rng.integers(3, size=(300, 1))
    model = PACOClusterer(random_state=0, n_iter=20, loss=loss)
    with pytest.warns(ConvergenceWarning, match="300 rows count as only 1 rows"):
        model.fit(X, sample_weight=np.full(300, 1 / 300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, sample_weight=np.full(300, 0.5)).n_clusters_ == 3
