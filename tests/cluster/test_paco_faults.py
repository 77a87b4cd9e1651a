"""`PACOClusterer` on bad, extreme and odd input: an answer or a clear error, no NaN."""

import copy
import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from designs import every_two
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from states import assert_same_state, changes, state_of

from skpacbayes import PACOClusterer, make_paco_model
from skpacbayes.cluster._paco_chain import QuasiPosterior

# Few rows, or pieces of a shape, do not decide the number of clusters.
pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")
X, _ = make_paco_model(3, 40, random_state=0)
# Losses of such rows leave the range of floats: then these are infinite.
MAY_BE_INFINITE = {"inertia_", "cumulative_loss_", "inverse_temperature_"}
SETTINGS = {
    "clusters": {},
    "manhattan": {"loss": "manhattan"},
    "regret": {"calibration": "regret"},
    "regret, manhattan": {"calibration": "regret", "loss": "manhattan"},
    "student": {"prior": "student", "proposal": "student"},
}
ROWS = {
    "one row": np.array([[3.0, -1.0]]),
    "a row of zeros": np.zeros((1, 2)),
    "two equal rows": np.ones((2, 3)),
    "equal rows": np.full((9, 2), 0.1),
    "one feature": X[:, :1],
    "a constant column": np.column_stack([X, np.full(40, 7.3)]),
    "fewer distinct rows than clusters": np.repeat(X[:3], 9, axis=0),
    "rows of 1e300": X * 1e299,
    "rows of 1e-300": X * 1e-301,
    "rows of 1e-310": X * 1e-311,
    "1e-300, then 1e300": np.vstack([X[:9] * 1e-300, X[:9] * 1e299]),
    "1e300, then 1e-300": np.vstack([X[:9] * 1e299, X[:9] * 1e-300]),
    "1e300 and 1e-300 in one row": np.array([[1e300, 1e-300], [1e-300, 1e300]] * 5),
    "one value of 1e300": np.vstack([X[:30], [[1e300, 0.0]], X[30:]]),
    "an outlier last": np.vstack([X, [[1e6, -1e6]]]),
    "an outlier first": np.vstack([[[1e6, -1e6]], X]),
    "400 features": np.random.default_rng(0).normal(size=(6, 400)),
    "integers": np.round(X).astype(int),
    "booleans": X > 3,
    "far from the origin": X + 1e12,
}

WAYS = ["fit", "partial_fit", "row by row", "absorb"]


def paco(**parameters):
    return PACOClusterer(**{"random_state": 0, "n_iter": 20} | parameters)


def fitted(model, X, way):
    if way == "fit":
        return model.fit(X)
    if way == "partial_fit":
        return model.partial_fit(X)
    if way == "row by row":
        for row in X:
            model.partial_fit(row[None])
        return model
    return model.absorb(model.sufficient_statistics(X))


def assert_sound(model, X):
    """No NaN anywhere, infinities only where the docstring of this file says."""
    for name, value in vars(model).items():
        if name.endswith("_") and not isinstance(value, str) and name[0] != "_":
            numbers = np.asarray(value, dtype=float)
            assert not np.isnan(numbers).any(), name
            assert name in MAY_BE_INFINITE or np.isfinite(numbers).all(), name
    assert model.n_clusters_ == len(model.cluster_centers_) >= 1
    assert model.n_clusters_ <= len(np.unique(X, axis=0))
    assert model.scale_ > 0
    assert model.radius_ > 0
    assert model.n_clusters_posterior_.sum() == pytest.approx(1)
    if model.max_clusters is not None:
        assert model.n_clusters_posterior_.shape == (model.max_clusters,)
    assert set(model.predict(X)) <= set(model.cluster_labels_)
    assert np.isfinite(model.transform(X)).all()
    assert not np.isnan(model.score_samples(X)).any()
    low, high = X.min(axis=0), X.max(axis=0)
    slack = 1e-9 * np.maximum(np.abs(low), np.abs(high))
    assert (model.cluster_centers_ >= low - slack).all()
    assert (model.cluster_centers_ <= high + slack).all()


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("unit", [1e-290, 1e160, 1e298])
def test_an_extreme_unit_changes_no_number_and_overflows_nowhere(unit, way):
    rows, _ = make_paco_model(3, 100, random_state=0)  # warnings are errors
    found = fitted(paco(), rows * unit, way).n_clusters_
    assert found == number_in_unit_one(way)


@functools.cache
def number_in_unit_one(way):
    rows, _ = make_paco_model(3, 100, random_state=0)
    return fitted(paco(), rows, way).n_clusters_


@pytest.mark.filterwarnings("ignore:all max_clusters=6 clusters are in use")
@pytest.mark.filterwarnings("ignore:A row has the value 1e.300")
@pytest.mark.filterwarnings("ignore:the mixture that calibrates")  # a narrow prior
@pytest.mark.parametrize(("rows", "setting", "way"), every_two(ROWS, SETTINGS, WAYS))
def test_odd_rows_have_a_sound_answer(rows, setting, way):
    model = paco(max_clusters=6, refresh=4, **SETTINGS[setting])
    assert_sound(fitted(model, ROWS[rows], way), ROWS[rows].astype(float))
    pickle.loads(pickle.dumps(model)).partial_fit(ROWS[rows][:1])


def test_fit_says_that_all_clusters_are_in_use():
    rows, _ = make_paco_model(3, 100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="all max_clusters=3 clusters"):
        assert paco(max_clusters=3).fit(rows).n_clusters_ == 3
    assert paco(max_clusters=5).fit(rows).n_clusters_ == 4  # warnings are errors
    paco(max_clusters=3).fit(rows[:3])  # not more clusters than rows
    paco(max_clusters=1).fit(rows)
    paco(max_clusters=3, inverse_temperature=0.1).fit(rows)  # the user's own choice


def test_an_outlier_does_not_hide_the_groups():
    rows, groups = make_paco_model(3, 100, random_state=0)
    clean = paco().fit(rows)
    model = paco().fit(np.vstack([rows, [[1e6, -1e6]]]))
    assert clean.n_clusters_ == 4
    assert model.n_clusters_ in (4, 5)  # the outlier: of a heavy tail, or alone
    assert adjusted_rand_score(groups, model.labels_[:-1]) > 0.9


@pytest.mark.slow
def test_an_outlier_as_the_first_row_of_a_stream_does_not_hide_the_groups():
    rows, _ = make_paco_model(3, 200, random_state=0)
    rows = np.vstack([np.full(rows.shape[1], 1e6), rows])
    model = paco(n_iter=300).partial_fit(rows)
    assert model.n_clusters_ == 5


@pytest.mark.parametrize("sizes", [(500, 100), (500, 20), (200, 200, 20)])
def test_groups_of_unequal_sizes_stay_whole(sizes):
    centers = 8 * np.eye(len(sizes))
    rows, groups = make_blobs(sizes, centers=centers, random_state=0)
    model = paco(n_iter=300).fit(rows)
    assert adjusted_rand_score(groups, model.labels_) > 0.98
    cut = paco(n_iter=300, inverse_temperature=9 * model.inverse_temperature_).fit(rows)
    assert cut.n_clusters_ > model.n_clusters_  # which held-out rows do not like
    others, _ = make_blobs(sizes, centers=centers, random_state=1)
    assert model.score(others) > cut.score(others)


@pytest.mark.parametrize("setting", ["clusters", "manhattan"])
def test_a_constant_column_changes_no_label(setting):
    rows, _ = make_paco_model(3, 100, random_state=0)
    plain = paco(**SETTINGS[setting]).fit(rows)
    flat = np.column_stack([rows, np.full(100, 7.3)])
    model = paco(**SETTINGS[setting]).fit(flat)
    assert plain.n_clusters_ == model.n_clusters_ == 4
    assert np.array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_[:, 2], 7.3)


@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
def test_levels_without_noise_are_clusters_on_a_stream(loss):
    """A signal that stays at a level, then jumps to another."""
    rows = np.repeat([[0.0], [1.0], [9.0], [4.0]], 30, axis=0)
    model = paco(loss=loss, refresh=10)
    for level, block in enumerate(np.split(rows, 4), start=1):
        assert model.partial_fit(block).n_clusters_ == level
    np.testing.assert_allclose(model.cluster_centers_[:, 0], [0, 1, 9, 4], atol=1e-9)


def test_fewer_distinct_rows_than_clusters_are_the_clusters():
    model = paco().fit(np.repeat([[0.0], [1.0], [9.0]], 8, axis=0))
    centers = np.sort(model.cluster_centers_, axis=0)
    np.testing.assert_allclose(centers, [[0], [1], [9]], atol=1e-12)


@pytest.mark.filterwarnings("ignore:n_clusters_=")
@pytest.mark.parametrize(("n_rows", "seed"), [(2, 0), (3, 1), (4, 3)])
def test_fewer_than_five_rows_of_many_columns_have_an_answer(n_rows, seed):
    rows = np.random.default_rng(seed).normal(size=(n_rows, [10, 10, 40][n_rows - 2]))
    assert_sound(PACOClusterer(random_state=0).fit(rows), rows)


def test_more_clusters_than_rows_may_be_asked_for():
    for model in (paco(max_clusters=300).fit(X), paco(max_clusters=300, refresh=20)):
        model.partial_fit(X)
        assert_sound(model, X)


@pytest.mark.parametrize("way", ["fit", "partial_fit", "absorb"])
def test_one_cluster_at_most_is_the_mean(way):
    model = fitted(paco(max_clusters=1, refresh=1), X, way)
    np.testing.assert_allclose(model.cluster_centers_, [X.mean(axis=0)])
    np.testing.assert_array_equal(model.n_clusters_posterior_, [1])


def test_two_points_summarise_two_groups():
    rows = np.arange(40)[:, None] % 2 * 100 + X
    model = paco(summary_size=2, refresh=5).partial_fit(rows)
    assert_sound(model, rows)
    assert model._stream.summary.n_points == 2
    np.testing.assert_allclose(
        np.sort(model.cluster_centers_, axis=0),
        [rows[::2].mean(axis=0), rows[1::2].mean(axis=0)],
    )


# Kinds of input.


@pytest.mark.slow
def test_kinds_of_arrays_are_the_same_rows():
    rows = np.round(64 * X) / 64
    expected = paco().fit(rows)
    for kind in (np.ndarray.tolist, np.float32, np.asfortranarray, pd.DataFrame):
        assert_same_state(paco().fit(kind(rows)), expected)
    integers = np.round(X) + 0.0  # no negative zero
    same = paco(loss="manhattan").fit(integers.astype(int))
    assert_same_state(same, paco(loss="manhattan").fit(integers))
    frame = pd.DataFrame(rows, columns=["length", "width"])
    named = paco().fit(frame)
    assert_same_state(named, expected, apart_from=["feature_names_in_", "_fitted"])
    assert list(named.feature_names_in_) == ["length", "width"]
    assert_same_state(
        paco(refresh=9).partial_fit(frame).partial_fit(frame),
        paco(refresh=9).partial_fit(rows).partial_fit(rows),
        apart_from=["feature_names_in_", "_fitted"],
    )


# Errors and interruptions.


def test_radius_smaller_than_the_data_names_both():
    largest = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    words = f"radius=0.5 .* from the mean, {largest:.6g}"
    with pytest.raises(ValueError, match=words):
        paco(radius=0.5).fit(X)
    largest = np.linalg.norm(X, axis=1).max()
    words = f"radius=0.5 .* from the origin, {largest:.6g}"
    model = paco(radius=0.5, calibration="regret")
    before = state_of(model)
    with pytest.raises(ValueError, match=words):
        model.fit(X)
    assert not changes(before, state_of(model))


@pytest.mark.parametrize("calibration", ["clusters", "regret"])
def test_a_stream_goes_on_beyond_its_radius(calibration):
    model = paco(radius=0.5, calibration=calibration, refresh=3, shape="round")
    with pytest.warns(UserWarning, match=r"more than radius=0\.5") as caught:
        model.partial_fit(X[:20])
    caught = [each for each in caught if "radius" in str(each.message)]
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the user's line, not ours
    model.partial_fit(X[20:])
    assert_sound(model, X)
    assert model.n_samples_seen_ == 40
    origin = X[:39].mean(axis=0) if calibration == "clusters" else 0.0
    assert np.linalg.norm(model.draw_ - origin, axis=1).max() <= 1.0 + 1e-9  # the ball


def test_an_endless_penalty_leaves_one_cluster():
    model = paco(cluster_penalty=1e308, inverse_temperature=1.0).fit(X)
    assert model.n_clusters_ == 1
    assert_sound(model, X)


@functools.cache
def streamed(refresh, stop):
    """Model of the first rows, which no test changes."""
    return paco(refresh=refresh).partial_fit(X[:stop])


@pytest.mark.parametrize("call", ["fit", "partial_fit", "sufficient_statistics"])
@pytest.mark.parametrize("place", [0, 20, 39])
def test_nan_changes_nothing(call, place):
    model = copy.deepcopy(streamed(refresh=3, stop=40))
    before = state_of(model)
    bad = X.copy()
    bad[place, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        getattr(model, call)(bad)
    assert not changes(before, state_of(model))


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("call", ["fit", "partial_fit", "absorb"])
def test_an_interruption_changes_nothing(monkeypatch, call, error):
    model, expected = (
        copy.deepcopy(streamed(refresh=5, stop=stop)) for stop in (12, 40)
    )
    argument = model.sufficient_statistics(X) if call == "absorb" else X
    before, n_calls = state_of(model), []

    def interrupted(*args, **kwargs):
        n_calls.append(1)
        if len(n_calls) == (3 if call == "partial_fit" else 1):
            raise error
        return run(*args, **kwargs)

    with monkeypatch.context() as patch:
        run = QuasiPosterior.run
        patch.setattr(QuasiPosterior, "run", interrupted)
        with pytest.raises(error):
            getattr(model, call)(argument)
    assert not changes(before, state_of(model))
    assert_same_state(model.partial_fit(X[12:]), expected)


def test_an_interrupted_first_call_leaves_no_fit(monkeypatch):
    model = paco()
    with monkeypatch.context() as patch:
        patch.setattr(PACOClusterer, "_sample", interrupt)
        for call in (model.fit, model.partial_fit):
            with pytest.raises(KeyboardInterrupt):
                call(X)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert_same_state(model.fit(X), paco().fit(X))


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


# Before there is anything to say.


@pytest.mark.parametrize(
    "call", ["predict", "transform", "score_samples", "score", "certificate"]
)
@pytest.mark.parametrize("weightless", [False, True])
def test_unfitted_estimators_say_so(call, weightless):
    model = paco()
    if weightless:  # rows of no weight are absent
        model.partial_fit(X, sample_weight=np.zeros(40))
    with pytest.raises(NotFittedError):
        getattr(model, call)(*([] if call == "certificate" else [X]))


def test_weights_must_not_all_be_zero_in_fit():
    with pytest.raises(ValueError, match="at least one non-zero"):
        paco().fit(X, sample_weight=np.zeros(40))


@pytest.mark.parametrize("setting", SETTINGS)
def test_before_the_first_refresh_there_is_one_cluster(setting):
    model = paco(refresh=30, max_clusters=6, **SETTINGS[setting])
    for row in X[:29]:
        model.partial_fit(row[None])
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.cluster_centers_, X[:1])
    np.testing.assert_array_equal(model.predict(X), 0)
    assert_sound(model, X)
    assert model.partial_fit(X[29:30]).n_iter_ == 20


def test_the_first_row_of_all_weights():
    model = paco(refresh=3).partial_fit(X[:4], sample_weight=[0, 0, 0.5, 0])
    np.testing.assert_array_equal(model.cluster_centers_, X[2:3])
    assert model.n_samples_seen_ == 0.5


def test_no_certificate_before_the_chain_has_run():
    model = paco(refresh=50).partial_fit(X[:3])
    with pytest.raises(ValueError, match=r"runs at row 50 .* 3 were read"):
        model.certificate()


@pytest.mark.parametrize("shape", ["auto", "round", "diagonal", "tied"])
def test_a_stream_may_stay_at_one_place_for_long(shape):
    """Its mean is the place up to rounding: of one place no shape is learnt."""
    places = np.random.default_rng(0).normal(size=(4, 3))
    stream = PACOClusterer(shape=shape, random_state=0)
    assert stream.partial_fit(np.repeat(places[:1], 60, axis=0)).n_clusters_ == 1
    stream.partial_fit(np.repeat(places[1:], 60, axis=0))
    assert stream.n_clusters_ == 4 or shape in ("diagonal", "tied")
    assert np.isfinite(stream.covariance_).all()
