"""Streams of many blocks: the laws again, and what windowed streaming finds."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from states import assert_same_state, changes, state_of
from streaming_laws import (
    Stream,
    fit_forgets,
    one_row,
    resume,
    rounded,
    split_invariance,
)

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    Student,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
    _stream,
)

# The windows are short on purpose: rows leave them soon.
pytestmark = pytest.mark.filterwarnings("ignore:window=[0-9]+ and block_size=")

MANY_BLOCKS = {"block_size": 25, "window": 40, "n_sweeps": 2, "random_state": 0}


def answers(mixture):
    """What the fitted attributes are."""
    kind = type(mixture)
    return {
        name: getattr(mixture, name)
        for name in dir(kind)
        if name[0] != "_"
        and name[-1] == "_"
        and isinstance(getattr(kind, name), property)
    }


class Summing:
    """A mixture whose state holds what it finds, to be compared bit for bit."""

    def __getstate__(self):
        state = super().__getstate__()
        if getattr(self, "n_samples_seen_", 0):
            state["found_by_it"] = answers(self)
        return state


class Gaussian(Summing, TemperedVBGaussianMixture):
    pass


class Multinomial(Summing, TemperedVBMultinomialMixture):
    pass


def normal_rows(n, seed):
    generator = np.random.default_rng(seed)
    centers = 3.0 * generator.integers(0, 2, (n, 1))
    return (rounded(generator.normal(size=(n, 2)) + centers),)


def count_rows(n, seed):
    return (np.random.default_rng(seed).poisson(2.0, size=(n, 4)).astype(float),)


ONE_START = {"n_init": 1, "tol": 1e-3}  # `full` begins several times
STREAMS = {
    "full": Stream(lambda: Gaussian(2, **MANY_BLOCKS), normal_rows, missing=True),
    "no window": Stream(
        lambda: Gaussian(
            2,
            covariance_type="diag",
            block_size=25,
            window=0,
            random_state=0,
            **ONE_START,
        ),
        normal_rows,
    ),
    "factorized": Stream(
        lambda: Gaussian(
            2,
            covariance_type="spherical",
            prior="factorized",
            **MANY_BLOCKS,
            **ONE_START,
        ),
        normal_rows,
    ),
    "exchanges": Stream(
        lambda: Gaussian(3, covariance_type="diag", **MANY_BLOCKS, **ONE_START),
        normal_rows,
    ),
    "auto": Stream(
        lambda: Gaussian("auto", max_components=3, **MANY_BLOCKS, **ONE_START),
        normal_rows,
        missing=True,
    ),
    "counts": Stream(
        lambda: Multinomial(2, **MANY_BLOCKS, **ONE_START), count_rows, sparse=True
    ),
}


@pytest.mark.parametrize(
    "law",
    [split_invariance, resume, fit_forgets, one_row],
    ids=lambda law: law.__name__,
)
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.filterwarnings(
    "ignore:n_components='auto':sklearn.exceptions.ConvergenceWarning"
)
def test_law_on_many_blocks(name, law):
    law(replace(STREAMS[name], length=80))  # three blocks, and the start of one


@pytest.mark.parametrize("n_samples", [7, 99, 100])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_one_call_within_a_block_equals_fit(kind, n_samples):
    (X,) = normal_rows(n_samples, 0)
    options = {"covariance_type": kind, "block_size": 100, "random_state": 0}
    fitted = TemperedVBGaussianMixture(3, **options).fit(X)
    streamed = TemperedVBGaussianMixture(3, **options).partial_fit(X)
    assert_same_state(answers(streamed), answers(fitted))
    assert streamed.n_samples_seen_ == fitted.n_samples_seen_


def test_one_growing_block_equals_fit_at_any_time():
    (X,) = normal_rows(90, 0)
    stream = TemperedVBGaussianMixture(2, block_size=None, random_state=0)
    for stop in (30, 60, 90):
        stream.partial_fit(X[stop - 30 : stop])
        fitted = TemperedVBGaussianMixture(2, random_state=0).fit(X[:stop])
        assert stream.elbo_ == fitted.elbo_
        assert_array_equal(stream.means_, fitted.means_)


def test_all_rows_count_at_any_time():
    """Each prefix: weights, bound and statistics are about all rows so far."""
    (X,) = normal_rows(120, 0)
    stream = TemperedVBGaussianMixture(2, **MANY_BLOCKS)
    for stop in range(10, 121, 10):
        stream.partial_fit(X[stop - 10 : stop])
        assert_allclose(stream.statistics_[:, 0].sum(), stop)
        sums = stream.statistics_[:, 1:3].sum(axis=0)
        origin = stream._answer().state.components.origins[0]
        assert_allclose(sums, (X[:stop] - origin).sum(axis=0), atol=1e-9)
        assert_allclose(stream.weight_concentration_.sum(), 2 + 0.9 * stop)


@pytest.mark.slow
def test_looking_does_not_change_the_stream():
    (X,) = normal_rows(30, 0)
    watched = TemperedVBGaussianMixture(2, **MANY_BLOCKS)
    blind = TemperedVBGaussianMixture(2, **MANY_BLOCKS)
    for row in X:
        watched.partial_fit(row[None])
        blind.partial_fit(row[None])
        watched.predict(row[None])
    assert watched.elbo_ == blind.elbo_
    assert_array_equal(watched.means_, blind.means_)


def test_partial_fit_goes_on_from_fit_and_from_absorb():
    (X,) = normal_rows(200, 0)
    whole = TemperedVBGaussianMixture(2, random_state=0).fit(X)
    mixture = TemperedVBGaussianMixture(2, **MANY_BLOCKS).fit(X[:100])
    mixture.partial_fit(X[100:150])
    mixture.absorb(mixture.sufficient_statistics(X[150:]))
    assert mixture.n_samples_seen_ == 200
    assert abs(mixture.elbo_ - whole.elbo_) < 0.02 * len(X)


def test_a_distributed_fit_is_a_fit():
    """Sweeps over three parts, the first fitted alone to begin with."""
    (X,) = normal_rows(600, 0)
    prior = {
        "mean_prior": [0, 0],
        "covariance_prior": np.eye(2),
        "random_state": 0,
        "inverse_temperature": 0.7,
    }
    parts = np.split(X, 3)
    mixture = TemperedVBGaussianMixture(2, **prior).fit(parts[0])
    for _ in range(60):
        mixture.absorb(sum(map(mixture.sufficient_statistics, parts)), memory=0)
    whole = TemperedVBGaussianMixture(2, tol=1e-12, **prior).fit(X)
    assert_allclose(mixture.elbo_, whole.elbo_, rtol=1e-9)
    order, expected = mixture.means_[:, 0].argsort(), whole.means_[:, 0].argsort()
    assert_allclose(mixture.means_[order], whole.means_[expected], rtol=1e-4)


def test_memory_forgets():
    (X,) = normal_rows(300, 0)
    prior = {"covariance_prior": np.eye(2)}  # the mean's is worth 0.05 rows
    mixture = TemperedVBGaussianMixture(1, random_state=0, **prior).fit(X)
    statistics = mixture.sufficient_statistics(X + 5)
    mixture.absorb(statistics, memory=0.25)
    assert mixture.n_samples_seen_ == 375
    assert_allclose(mixture.statistics_[0, 0], 375)
    expected = (0.25 * X.sum(axis=0) + (X + 5).sum(axis=0)) / 375
    assert_allclose(mixture.means_[0], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda S: S[:, :-1], r"statistics have shape \(2, 8\).*\(2, 9\)"),
        (lambda S: S * np.nan, "statistics must be finite, with counts >= 0"),
        (lambda S: -S, "statistics must be finite, with counts >= 0"),
    ],
)
def test_bad_statistics_are_refused(change, message):
    (X,) = normal_rows(60, 0)
    mixture = TemperedVBGaussianMixture(2, random_state=0).fit(X)
    before = state_of(mixture)
    with pytest.raises(ValueError, match=message):
        mixture.absorb(change(mixture.statistics_))
    with pytest.raises(ValueError, match=r"memory=2 should be a number from 0 to 1"):
        mixture.absorb(mixture.statistics_, memory=2)
    assert not changes(before, state_of(mixture))


@pytest.mark.parametrize("step", ["_begin", "_sweep", "_settle_old_rows"])
def test_an_interrupted_call_changes_nothing(step, monkeypatch):
    (X,) = normal_rows(200, 0)
    begun = TemperedVBGaussianMixture(2, **MANY_BLOCKS)
    if step != "_begin":
        begun.partial_fit(X[:80])
    before = state_of(begun)
    real, calls = getattr(_stream.Stream, step), []

    def interrupted(stream, *arguments):
        real(stream, *arguments)
        calls.append(stream)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_stream.Stream, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            begun.partial_fit(X[80:])
    assert not changes(before, state_of(begun))


def test_rows_of_weight_zero_begin_nothing():
    stream = TemperedVBGaussianMixture(2, **MANY_BLOCKS)
    (X,) = normal_rows(30, 0)
    stream.partial_fit(X, sample_weight=np.zeros(30))
    assert stream.n_samples_seen_ == 0
    assert not hasattr(stream, "means_")
    with pytest.raises(NotFittedError, match="has seen no row yet"):
        stream.predict(X)
    stream.partial_fit(X)
    fitted = TemperedVBGaussianMixture(2, **MANY_BLOCKS).fit(X[:25])
    assert stream.means_.shape == fitted.means_.shape


def in_order(components):
    """Components by their first number: which is called which, rounding may decide."""
    components = components.reshape(len(components), -1)
    return components[components[:, 0].argsort()]


@pytest.mark.parametrize("name", ["full", "counts"])
def test_integer_weights_equal_repeated_rows_in_one_growing_block(name):
    """Blocks hold rows, so repeated rows would fill them sooner: here they cannot."""
    stream = STREAMS[name]
    (X,) = stream.rows(90, 0)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = stream.make().set_params(block_size=None)
    repeated = stream.make().set_params(block_size=None)
    for part in np.array_split(np.arange(len(X)), 4):
        weighted.partial_fit(X[part], sample_weight=weight[part])
        repeated.partial_fit(np.repeat(X[part], weight[part], axis=0))
        assert_allclose(
            in_order(weighted.statistics_), in_order(repeated.statistics_), rtol=1e-7
        )
        assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-9)
        assert weighted.n_samples_seen_ == repeated.n_samples_seen_


@pytest.mark.parametrize("name", ["full", "no window", "exchanges", "counts"])
def test_rows_of_weight_three_equal_rows_three_times_in_blocks_three_times_as_long(
    name,
):
    """Ten blocks: where the blocks hold the same rows, weights are repetitions."""
    stream = STREAMS[name]
    (X,) = stream.rows(250, 0)
    weighted = stream.make().partial_fit(X, sample_weight=np.full(250, 3))
    repeated = stream.make()
    three = {"block_size": 3 * repeated.block_size, "window": 3 * repeated.window}
    repeated.set_params(**three)
    repeated.partial_fit(np.repeat(X, 3, axis=0))
    assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-9)
    assert_allclose(
        in_order(weighted.weight_concentration_),
        in_order(repeated.weight_concentration_),
        rtol=1e-6,
    )
    assert weighted.n_samples_seen_ == repeated.n_samples_seen_ == 750


@pytest.mark.slow
def test_sparse_and_dense_streams_agree():
    (X,) = count_rows(120, 0)
    streams = [
        TemperedVBMultinomialMixture(2, **MANY_BLOCKS).partial_fit(rows)
        for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X))
    ]
    for stream in streams[1:]:
        assert_allclose(stream.elbo_, streams[0].elbo_, rtol=1e-10)
        assert_allclose(stream.components_, streams[0].components_, rtol=1e-7)


@pytest.mark.slow
def test_one_pass_is_close_to_the_best_batch_fit_on_digits():
    """At most 0.1 nat a row below 8 batch starts, over two orders of the rows."""
    X = PCA(10, random_state=0).fit_transform(load_digits().data)
    prior = {
        "mean_prior": X.mean(axis=0),
        "covariance_prior": np.cov(X.T) / 4 ** (2 / 10),
        "inverse_temperature": 1.0,
    }
    batch = TemperedVBGaussianMixture(10, n_init=8, random_state=0, **prior)
    best = batch.fit(X).elbo_
    for seed, block_size in enumerate([500, "auto"]):
        rows = np.random.default_rng(seed).permutation(X)
        stream = TemperedVBGaussianMixture(
            10, block_size=block_size, random_state=seed, **prior
        )
        assert (best - stream.partial_fit(rows).elbo_) / len(X) < 0.1


def three_groups(name, rng):
    """Rows of three groups in turn, and the family; a block is half a group."""
    group = np.repeat(np.arange(3), 200)
    noise = rng.normal(size=(600, 2))
    rates = np.array([[2.0, 20, 9], [9, 2, 20], [20, 9, 2]])[group]
    if name == "poisson":
        return rng.poisson(rates).astype(float), group, name
    if name == "regression":
        slopes = np.array([3.0, -3.0, 0.0])[group]
        heights = np.array([0.0, 0.0, 9.0])[group]
        lines = slopes * noise[:, 0] + heights + 0.3 * noise[:, 1]
        return np.column_stack([noise[:, 0], lines]), group, name
    X = noise + np.array([[0, 0], [8, 0], [4, 7]])[group]
    if name == "student":
        return X / np.sqrt(rng.chisquare(5, (600, 1)) / 5), group, name
    product = [("normal", "normal", [0, 1]), ("counts", "poisson", [2, 3, 4])]
    return np.hstack([X, rng.poisson(rates)]), group, product


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A block of the stream shows a new group")
@pytest.mark.parametrize(
    ("name", "window"),
    [("student", "auto"), ("regression", 0), ("poisson", "auto"), ("columns", 0)],
)
def test_a_stream_sorted_by_group_finds_the_groups(name, window):
    """As the batch does, however the calls cut it; no exchange comes at block five."""
    X, group, family = three_groups(name, np.random.default_rng(0))
    options = {"block_size": 100, "window": window, "n_init": 2, "random_state": 0}
    stream = TemperedVBMixture(family, 3, **options).partial_fit(X)
    batch = stream.__sklearn_clone__().fit(X)
    found = [adjusted_rand_score(group, each.predict(X)) for each in (stream, batch)]
    assert found[0] > found[1] - 0.02 > 0.8
    assert stream.score(X) > batch.score(X) - 0.05
    other = stream.__sklearn_clone__()
    for start in range(0, 600, 70):
        other.partial_fit(X[start : start + 70])
    assert_array_equal(other.weight_concentration_, stream.weight_concentration_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A block of the stream shows a new group")
@pytest.mark.filterwarnings("ignore:Component ., with .* seems to be outliers")
@pytest.mark.parametrize("name", ["student", "gaussian", "number"])
def test_a_sorted_stream_without_a_window_finds_the_groups(name):
    """A new group takes the nearest component, whose settled rows are then freed."""
    shares = []
    for seed in range(400, 403):
        X, group, _ = three_groups(name, np.random.default_rng(seed))
        options = {"block_size": 100, "window": 0, "n_init": 1, "random_state": 0}
        if name == "student":
            stream = TemperedVBMixture(Student(4.0), 3, **options)
        else:
            K = "auto" if name == "number" else 3
            stream = TemperedVBGaussianMixture(K, max_components=5, **options)
            X = X[:, :2]
        found = stream.partial_fit(X).predict(X)
        shares.append(adjusted_rand_score(group, found))
    assert np.mean(shares) > (0.9 if name == "student" else 0.98)


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [3, "auto"])
@pytest.mark.parametrize("n_words", [8, 300])
def test_texts_sorted_by_topic_show_their_topics(n_components, n_words):
    """The prior of the first block, of one topic alone, must not rule out others.

    The bound chooses a huge total of the concentrations there. A block of any topics
    is one group if they are the same.
    """
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(n_words, 0.4), 3)
    group = np.repeat(np.arange(3), 200)
    options = {"max_components": 6, "n_init": 2, "block_size": 100, "random_state": 0}
    stream = TemperedVBMultinomialMixture(n_components, **options)
    found = stream.partial_fit(rng.multinomial(40, topics[group])).predict(
        rng.multinomial(40, topics[group])
    )
    assert adjusted_rand_score(group, found) > 0.95
    if n_components == "auto":
        alike = rng.multinomial(40, topics[np.zeros(600, dtype=int)])
        assert stream.__sklearn_clone__().partial_fit(alike).n_components_ == 1


def test_new_starts_are_tried_before_rows_settle():
    """Where the window is shorter than four blocks: the last time to tell groups."""
    rng = np.random.default_rng(3)
    group, centers = rng.integers(0, 4, 1500), 6 * rng.normal(size=(4, 3))
    X = centers[group] + rng.normal(size=(1500, 3))
    options = {"block_size": 100, "window": 200, "random_state": 0}
    stream = TemperedVBMixture("normal", 4, **options).partial_fit(X)
    assert adjusted_rand_score(group, stream.predict(X)) > 0.85


@functools.cache
def sorted_student_groups(seed):
    """Rows of two to four Student groups, one after the other; a mixture for them.

    And the score of its fit to all rows.
    """
    rng = np.random.default_rng(seed)
    K, d, n = (int(rng.integers(*ends)) for ends in [(2, 5), (2, 4), (600, 1000)])
    centers = 8 * rng.normal(size=(K, d))
    X = centers[np.sort(rng.integers(0, K, n))] + rng.standard_t(4, size=(n, d))
    mixture = TemperedVBMixture(Student(4.0), K, n_init=1, random_state=0)
    return X, mixture, clone(mixture).fit(X).score(X)


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 200])
def test_sorted_student_streams_warn_of_groups_that_they_miss(window):
    """Once, and of few streams that score as the batch does."""
    missed, found = [], []
    for seed in range(100, 105):
        X, mixture, score_of_batch = sorted_student_groups(seed)
        stream = clone(mixture).set_params(block_size=100, window=window)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stream.partial_fit(X[:450]).partial_fit(X[450:])
        said = sum("shows a new group" in str(each.message) for each in caught)
        lost = score_of_batch - stream.score(X)
        (missed if lost > 0.02 else found).append(said)
    assert set(missed) <= {1}
    assert np.mean(found) < 0.5
    assert missed


@pytest.mark.slow
def test_the_number_of_components_follows_the_stream():
    """A fourth group is born when it comes; without one, the number stays."""
    X, _ = make_mixture(n_samples=1200, n_components=3, random_state=0)
    options = {"max_components": 6, "block_size": 100, "window": 200, "random_state": 0}
    stream = TemperedVBGaussianMixture("auto", **options).partial_fit(X[:100])
    first = TemperedVBGaussianMixture("auto", max_components=6, random_state=0)
    assert stream.n_components_ == first.fit(X[:100]).n_components_ == 3
    assert stream.elbo_path_ == first.elbo_path_
    assert stream.partial_fit(X[100:600]).n_components_ == 3
    late = X[600:].copy()
    late[::4] = np.random.default_rng(0).normal(X.max(axis=0) + 5, 1.0, (150, 2))
    stream.partial_fit(late)
    assert stream.n_components_ == 4
    assert_allclose(stream.statistics_[:, 0].sum(), 1200)
    of_late = stream.predict(late)
    assert len(set(of_late[::4])) == 1
    assert of_late[0] not in stream.predict(X[:600])
    assert stream.weights_[of_late[0]] == pytest.approx(150 / 1200, rel=0.1)
    parts = TemperedVBGaussianMixture("auto", **options).partial_fit(X[:600])
    for start in range(0, 600, 70):
        parts.partial_fit(late[start : start + 70])
    assert parts.elbo_ == stream.elbo_
    current = stream._answer()
    best = current.mixture.bound(
        current.state,
        current.mixture.e_step(current.state, np.vstack([X[:600], late]))[1],
    )
    assert stream.elbo_ <= best + 1e-9 * abs(best)


@pytest.mark.slow
def test_components_that_the_stream_joins_are_merged():
    """The first block shows the two sides of one group, later blocks all of it."""
    X = np.random.default_rng(0).normal(size=(1000, 1))
    sides = X[np.abs(X[:, 0]) > 1][:60]
    X = np.vstack([sides, X])
    options = {"max_components": 4, "block_size": 60, "random_state": 0}
    stream = TemperedVBGaussianMixture("auto", **options).partial_fit(X[:60])
    assert stream.n_components_ > 1
    assert stream.partial_fit(X[60:]).n_components_ == 1
    assert_allclose(stream.statistics_[:, 0], [len(X)])
    batch = TemperedVBGaussianMixture("auto", max_components=4, random_state=0).fit(X)
    assert batch.n_components_ == 1
    assert stream.score(X) > batch.score(X) - 0.01


def test_more_components_than_the_rows_of_a_block_are_told_once():
    """When the stream begins; a stream that is only short of rows yet is quiet."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    options = {"n_init": 1, "max_iter": 5, "tol": 1.0, "random_state": 0}
    mixture = TemperedVBGaussianMixture(20, **options).partial_fit(X[:10])
    assert mixture.n_components_ == 20
    small = TemperedVBGaussianMixture(20, block_size=15, **options)
    with pytest.warns(ConvergenceWarning, match="n_components=20 is more than the 15"):
        small.partial_fit(X[:1])
    assert small.partial_fit(X[1:]).n_components_ == 20
