"""Rounded rows, ratings and counts have the clusters of what was rounded."""

import warnings

import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes._kernels.paco_points import ROWS
from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_rows import ColumnValues, Rows, rounding_of
from skpacbayes.cluster._paco_summary import StreamSummary

pytestmark = pytest.mark.filterwarnings("ignore:n_clusters_=")  # others are close


def in_a_batch(X, weights=None):
    return PACOClusterer(random_state=0).fit(X, sample_weight=weights)


def in_a_stream(X):
    estimator = PACOClusterer(random_state=0, refresh=50)
    for part in np.array_split(X, 6):
        estimator.partial_fit(part)
    return estimator


def in_rows(X):
    estimator = PACOClusterer(random_state=0)
    for row in X[:120]:
        estimator.partial_fit(row[None])
    return estimator


def counts(n, rate, d, seed):
    return np.random.default_rng(seed).poisson(rate, (n, d)).astype(float)


def ratings(n, d, seed):
    """Two kinds of people answer from 1 to 5."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    answers = np.where(kind == 0, 1.8, 4.0)[:, None] + 0.8 * rng.normal(size=(n, d))
    return np.clip(np.round(answers), 1, 5), kind


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("n_features", "n_groups"), [(1, 1), (2, 1), (4, 1), (2, 3)])
def test_rounding_makes_no_clusters(step, n_features, n_groups):
    assert number_found(in_a_batch, step, n_features, n_groups) == n_groups


@pytest.mark.parametrize("learn", [in_a_stream, in_rows])
@pytest.mark.parametrize(("n_features", "n_groups"), [(2, 1), (2, 3)])
def test_rounding_makes_no_clusters_along_a_stream(learn, n_features, n_groups):
    assert number_found(learn, 1.0, n_features, n_groups) == n_groups


def number_found(learn, step, n_features, n_groups):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, n_features))
    X += 9.0 * (np.arange(300) % n_groups)[:, None]
    return learn(step * np.round(X / step)).n_clusters_


@pytest.mark.parametrize(("shift", "unit"), [(0.0, 1.0), (1e4, 1.0), (3.0, 1e-3)])
@pytest.mark.parametrize(("rate", "n_features"), [(1.0, 2), (1.0, 3), (4.0, 1)])
def test_counts_of_one_rate_are_one_cluster(shift, unit, rate, n_features):
    X = shift + unit * counts(400, rate, n_features, 3)
    assert in_a_batch(X).n_clusters_ == 1


def test_counts_along_a_stream_are_one_cluster():
    assert in_a_stream(1e4 + counts(300, 1.0, 2, 3)).n_clusters_ == 1


@pytest.mark.parametrize(
    ("learn", "unit", "change"),
    every_two([in_a_batch, in_a_stream], [1e-3, -1e3], [np.log1p, np.sqrt]),
)
def test_functions_of_counts_are_not_cut_at_their_values(learn, unit, change):
    """The gaps of log(1 + count) are .69, .41, .29, ...; those of measures are 0."""
    rng = np.random.default_rng(6)
    y = rng.integers(3, size=600)
    visits = rng.poisson(np.array([1, 5, 25])[y])
    spent = 4.0 * np.array([0, 1, 0])[y] + 0.5 * rng.normal(size=600)
    X = unit * np.column_stack([change(visits), spent])
    estimator = learn(X)
    assert estimator.n_clusters_ == 3
    assert adjusted_rand_score(y, estimator.predict(X)) > 0.9


@pytest.mark.parametrize("learn", [in_a_batch, in_a_stream])
def test_a_log_of_counts_beside_groups_adds_none(learn):
    rng = np.random.default_rng(7)
    y = rng.integers(3, size=400)
    X = np.array([[0, 0], [7, 0], [3.5, 6]])[y] + rng.normal(size=(400, 2))
    X = np.column_stack([X, np.log1p(rng.poisson(1, 400))])
    assert learn(X).n_clusters_ == 3


@pytest.mark.parametrize("learn", [in_a_batch, in_a_stream])
@pytest.mark.parametrize("n_features", [4, 8])
def test_ratings_have_the_kinds_of_people(learn, n_features):
    X, kind = ratings(400, n_features, 5)
    estimator = learn(X)
    assert estimator.n_clusters_ == 2
    assert adjusted_rand_score(kind, estimator.predict(X)) > 0.85


def test_rounding_of_one_column_does_not_cut_the_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    X[:, 1] = np.round(X[:, 1])
    assert in_a_batch(X).n_clusters_ == 1


def test_petals_are_measured_to_a_millimetre():
    """Widths of .1 to .4 cm in whole millimetres: no fourth kind of iris."""
    X, y = load_iris(return_X_y=True)
    estimator = in_a_batch(X)
    assert estimator.n_clusters_ == 3
    assert adjusted_rand_score(y, estimator.labels_) > 0.85


@pytest.mark.parametrize("n_copies", [20, 200])
def test_few_places_far_apart_are_clusters(n_copies):
    places = np.array([[0.0, 0.0], [1.0, 9.0], [8.0, 2.0], [20.0, 20.0]])
    assert in_a_batch(np.repeat(places, n_copies, axis=0)).n_clusters_ == 4


def groups_and_categories(n, seed):
    """Draw three groups, a column of two values and codes of three categories."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[y] + rng.normal(size=(n, 2))
    codes = 7.0 * np.eye(3)[rng.integers(3, size=n)]
    return np.column_stack([X, rng.integers(2, size=n), codes]), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learn", "columns"),
    [
        (in_a_stream, [0, 1, 2]),
        (in_a_batch, [0, 1, 3, 4, 5]),
        (in_a_stream, [0, 1, 2, 4, 5]),
    ],
)
def test_categories_beside_numbers_multiply_no_clusters(learn, columns):
    """A column of 0 and 1, all codes of a category, and all but one of them."""
    X, y = groups_and_categories(400, 4)
    estimator = learn(X[:, columns])
    assert estimator.n_clusters_ == 3
    assert adjusted_rand_score(y, estimator.predict(X[:, columns])) > 0.95


def test_categories_are_known_as_such_when_rows_have_been_merged():
    X, _ = groups_and_categories(400, 5)
    estimator = PACOClusterer(summary_size=60, refresh=50, random_state=0)
    estimator.partial_fit(X[:, :3])
    assert not estimator._stream.summary.exact
    assert estimator.n_clusters_ == 3


def late_columns(kind, n, rng):
    """Draw columns whose values tell nothing, and which are constant at first.

    By then the rows that a summary holds one by one are few.
    """
    late = np.arange(n) >= n / 3
    if kind == "rare":
        return (late & (rng.random(n) < 0.03))[:, None]
    if kind == "several":
        return late[:, None] & (rng.random((n, 3)) < [0.02, 0.1, 0.5])
    if kind == "codes":
        return np.eye(4)[np.where(late, rng.integers(4, size=n), rng.integers(2))]
    if kind == "counts":
        return np.where(late, rng.binomial(4, 0.1, n), 0)[:, None]
    return np.round(np.where(late, 2.0, 0.1) * rng.normal(size=n))[:, None]


@pytest.mark.parametrize(
    ("kind", "way", "place"),
    every_two(
        ["rare", "several", "codes", "counts", "rounded"],
        ["batch", "stream", "stream after fit"],
        [(0.0, 1.0), (1e4, 1e-3)],
    ),
)
def test_columns_of_few_values_are_known_as_such_when_they_come_late(kind, way, place):
    """In any unit and about any origin; the other columns have the groups."""
    rng, n = np.random.default_rng(3), 600
    y = rng.integers(3, size=n)
    X = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[y] + rng.normal(size=(n, 2))
    shift, unit = place
    X = shift + unit * np.column_stack([X, late_columns(kind, n, rng)])
    model = PACOClusterer(summary_size=100, refresh=100, n_iter=50, random_state=0)
    if way != "stream":
        model.fit(X if way == "batch" else X[:200])
    if way != "batch":
        for part in np.array_split(X[200 * (way == "stream after fit") :], 5):
            model.partial_fit(part)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


def test_a_stream_knows_the_values_of_its_columns_as_a_table_does():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.integers(2, size=800),
            np.round(rng.normal(size=800), 1),
            rng.normal(size=800),
            np.round(10 * rng.standard_t(2, size=800)),
            np.eye(3)[rng.integers(3, size=800)],
        ]
    )
    model = PACOClusterer(summary_size=50, refresh=400, n_iter=5, random_state=0)
    summary = model.partial_fit(X)._stream.summary
    streamed = summary.column_values().about(0.0, -summary.exponent, slice(None))
    table = ColumnValues.of(Rows.single(X, np.ones(800)))
    np.testing.assert_allclose(streamed.gaps, table.gaps, rtol=1e-6)
    assert (streamed.counts[[0, 4, 5, 6]] == 2).all()


@pytest.mark.parametrize("forgetting", [0.0, 0.02, "auto"])
def test_values_are_noted_alike_in_whatever_parts_the_rows_come(forgetting):
    """Every row counts as one, also where earlier ones are forgotten."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(5, size=240), np.round(rng.normal(size=240), 1)])
    found = []
    for size in (1, 7, 120):
        model = PACOClusterer(
            forgetting=forgetting,
            summary_size=60,
            refresh=100,
            n_iter=5,
            random_state=0,
        )
        for begin in range(0, len(X), size):
            model.partial_fit(X[begin : begin + size])
        summary = model._stream.summary
        found.append(summary.notes)
        assert (summary.column_values().gaps > 0).all()
        np.testing.assert_array_equal(summary.notes[:, ROWS], len(X))
    for notes in found:
        np.testing.assert_array_equal(notes, found[0])


@pytest.mark.filterwarnings("ignore:the mixture that calibrates")  # n_iter is small
@pytest.mark.parametrize(("small", "large"), [(1e-200, 1e200), (1e-250, 1e100)])
def test_values_that_a_later_unit_makes_equal_are_none(small, large):
    """Two columns of few values, and another whose unit outgrows theirs."""
    rng = np.random.default_rng(0)
    few = small * rng.integers(3, size=(120, 2))
    wide = rng.normal(size=120) * np.repeat([small, large], 60)
    model = PACOClusterer(summary_size=50, refresh=20, n_iter=5, random_state=0)
    for part in np.array_split(np.column_stack([wide, few]), 6):
        model.partial_fit(part)
    assert np.isfinite(model.cluster_centers_).all()


def test_categories_that_go_with_the_groups_help():
    """Six answers, yes or no: in one group mostly yes, in the other mostly no."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=500)
    answers = rng.random((500, 6)) < np.where(y == 0, 0.1, 0.9)[:, None]
    estimator = in_a_batch(np.column_stack([rng.normal(size=500), answers]))
    assert estimator.n_clusters_ == 2
    assert adjusted_rand_score(y, estimator.labels_) > 0.9


def test_independent_categories_alone_are_one_cluster():
    X = np.random.default_rng(0).integers(2, size=(400, 6)).astype(float)
    assert in_a_batch(X).n_clusters_ == 1


def test_clusters_of_categories_alone_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.random((500, 8)) < rng.choice([0.1, 0.9], size=(500, 1))
    with pytest.warns(ConvergenceWarning, match="all columns have two values"):
        assert in_a_batch(X.astype(float)).n_clusters_ == 2


def nearly_repeated():
    """Forty rows, twenty times each, with an error that is no rounding."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 2)), 20, axis=0)
    return X + 1e-9 * rng.normal(size=X.shape)


def test_clusters_of_one_row_repeated_are_warned_of():
    """As copies of a few rows, all alike to the model: one cluster has no noise."""
    with pytest.warns(ConvergenceWarning, match="clusters are one row each, repeated"):
        assert in_a_batch(nearly_repeated()).n_clusters_ > 4


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_copies_of_rows_and_unequal_weights_are_no_clusters(seed, unit):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=150)
    X = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])[y] + rng.normal(size=(150, 2))
    X, places, drawn = unit * X + unit, np.arange(150), rng.integers(150, size=450)
    copies = places.repeat(3), places.repeat(rng.integers(1, 12, size=150)), drawn
    for rows in copies:
        model = in_a_batch(X[rows])
        assert model.n_clusters_ == 3
        assert adjusted_rand_score(y[rows], model.labels_) > 0.95
    weights = 10 ** rng.uniform(-1, 1, size=150)
    assert in_a_batch(X, weights).n_clusters_ == 3
    alone, thrice = in_a_batch(X), in_a_batch(X, np.full(150, 3.0))
    assert_allclose(thrice.cluster_centers_, alone.cluster_centers_)
    assert_allclose(3 * thrice.inverse_temperature_, alone.inverse_temperature_)


@pytest.mark.slow
def test_a_stream_of_copies_has_the_clusters_of_the_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    X = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])[y] + rng.normal(size=(120, 2))
    rows = X.repeat(rng.integers(1, 12, size=120), axis=0)
    model = PACOClusterer(random_state=0, n_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        for block in np.array_split(rows, 6):
            model.partial_fit(block)
    assert model.n_clusters_ == 3


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e-3, 1e4), (1e3, 0.0)])
def test_a_stream_of_unequal_weights_has_the_clusters_of_the_rows(unit, origin):
    """Also where rows of large weight are merged with others; in a batch, too."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=1000)
    X = np.array([[0.0, 0.0], [8.0, 0.0], [4.0, 7.0]])[y] + rng.normal(size=(1000, 2))
    X, weights = origin + unit * X, np.exp(2.0 * rng.normal(size=1000))
    weights /= weights.mean()
    model = PACOClusterer(random_state=0, n_iter=50, summary_size=200, refresh=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        for rows in np.array_split(np.arange(1000), 10):
            model.partial_fit(X[rows], sample_weight=weights[rows])
        batch = PACOClusterer(random_state=0, n_iter=50).fit(X, sample_weight=weights)
    assert model.n_clusters_ == batch.n_clusters_ == 3
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stream", [False, True])
def test_unequal_weights_are_no_clusters_under_the_manhattan_loss(stream, seed):
    rng = np.random.default_rng(seed)
    y, weights = rng.integers(3, size=300), rng.lognormal(0, 1.2, size=300)
    X = np.array([[0.0, 0.0], [9.0, 0.0], [4.0, 8.0]])[y] + rng.normal(size=(300, 2))
    model = PACOClusterer(loss="manhattan", n_iter=50, refresh=100, random_state=0)
    (model.partial_fit if stream else model.fit)(X, sample_weight=weights)
    assert model.n_clusters_ == 3


def test_copies_one_after_the_other_are_known_when_merged():
    """As one weight or as several rows, in any blocks."""
    rng = np.random.default_rng(0)
    X, copies = rng.normal(size=(300, 2)), rng.integers(1, 9, size=300)
    again = StreamSummary(2, 20, False)
    again.schedule(np.inf)
    for rows in np.array_split(X.repeat(copies, axis=0), 7):
        again.read(rows, np.ones(len(rows)), 0)
    weighted = StreamSummary(2, 20, False)
    weighted.schedule(np.inf)
    for part in np.array_split(np.arange(300), 3):
        weighted.read(X[part], copies[part].astype(float), 0)
    for summary in (again, weighted):
        assert summary.rows().run_squares == copies @ copies
    other = StreamSummary(2, 20, False)
    other.absorb(np.column_stack([X, copies, np.zeros(300)]))
    assert other.rows().run_squares == copies @ copies


def test_clusters_that_may_not_be_more_are_warned_of_as_such():
    with pytest.warns(ConvergenceWarning) as caught:
        PACOClusterer(max_clusters=5, random_state=0).fit(nearly_repeated())
    messages = [str(warning.message) for warning in caught]
    assert any(message.startswith("all max_clusters=5") for message in messages)
    assert not any("one row each" in message for message in messages)


def rounding_in(X):
    rows = Rows.single(X, np.ones(len(X)))
    return rounding_of(rows, ColumnValues.of(rows))


def test_variance_of_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    X[:, 1] = np.round(X[:, 1] * 2) / 2  # known to .25
    X[:, 2] = X[:, 2] > 0  # two values
    X[:, 3] = np.round(X[:, 3] * 2e3) / 2e3  # too fine for values to repeat
    X[:100, 4] = 0.0  # one value repeats, the others do not
    X[:, 5:] = 3 * np.eye(3)[rng.integers(3, size=200)]  # codes of a category
    found = rounding_in(X)
    np.testing.assert_allclose(found[1], 0.25 / 12, rtol=1e-6)
    np.testing.assert_allclose(found[2], 0.1, rtol=1e-6)
    np.testing.assert_allclose(found[5:], 9 * 0.2, rtol=1e-6)
    assert not found[[0, 3]].any()
    assert found[4] < 1e-4


def test_rounding_of_functions_of_counts():
    """That of the coarsest value of many rows: few far rows of a tail say nothing."""
    rng = np.random.default_rng(0)
    n = rng.poisson(1.5, 600)
    tail = n.copy()
    tail[:5] = [30, 22, 17, 14, 12]
    code = np.where(np.arange(600) < 200, -90, n)
    X = np.column_stack([np.log1p(n), -np.sqrt(n), tail, code])
    gaps = [np.log(2), 1.0, 1.0, 1.0]
    np.testing.assert_allclose(rounding_in(X), np.square(gaps) / 12, rtol=1e-6)


def test_no_cut_between_two_values_gains_likelihood():
    """Of a column at any shares, and of a category that is coded at equal shares."""
    shares = np.linspace(1e-3, 0.5, 500)
    entropy = -shares * np.log(shares) - (1 - shares) * np.log(1 - shares)
    X = np.zeros((200, 1))
    X[:80] = 1.0
    X = np.column_stack([X, np.random.default_rng(0).normal(size=200)])
    variance = rounding_in(X)[0]
    gains = 0.5 * np.log1p(shares * (1 - shares) / variance)
    assert (gains <= entropy).all()
    sizes = np.arange(2, 50)
    gains = (sizes - 1) / 2 * np.log1p(1 / (sizes * 2 * variance))
    assert (gains < np.log(sizes)).all()


def test_one_value_for_many_rows_is_no_rounding():
    """The gaps between the others say how well they are known."""
    rng = np.random.default_rng(1)
    X = rng.exponential(size=(600, 1))
    X[:300] = 0.0
    assert rounding_in(X)[0] == 0.0
