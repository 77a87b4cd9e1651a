"""Numbers that stand for missing values are named, in a table and on a stream."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from states import changes, state_of

from skpacbayes import (
    ABCPosteriorKDE,
    ClusteredParticleFilter,
    DirichletProcessHMM,
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
    PACOClusterer,
    ParticleMarginalMetropolis,
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
    SSMCKMeansInit,
    SubspaceMixture,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    _sentinels,
)
from skpacbayes._sentinels import (
    TURNS,
    ends_of,
    warn_of_angles,
    warn_of_sentinels,
    warn_of_sentinels_in_stream,
)
from skpacbayes.filtering.models import LocalLevel

SHORT = {"n_iter": 30, "burn_in": 10, "random_state": 0}
ONLINE = [
    EWARegressor(),
    OnlineVIClassifier(),
    OnlineVIMLPClassifier(random_state=0),
    OnlineVIMLPRegressor(random_state=0),
    OnlineVIRegressor(random_state=0),
    OnlineVIRegressor(loss="poisson", random_state=0),
]
CLUSTERS = PACOClusterer(n_iter=30, refresh=50, random_state=0)
TABLE = ABCPosteriorKDE(random_state=0, n_validation=20)
STATES = DirichletProcessHMM(n_iter=4, burn_in=2, n_atoms=2, random_state=0)
FILTER = ClusteredParticleFilter(n_particles=64, random_state=0)
STREAMS = [*ONLINE, CLUSTERS, TABLE, STATES]
ADDITIVE = [
    SparseAdditiveGibbsClassifier(**SHORT),
    SparseAdditiveGibbsPoissonRegressor(**SHORT),
    SparseAdditiveGibbsRanker(**SHORT),
    SparseAdditiveGibbsRegressor(**SHORT),
]
UNWEIGHTED = [
    SSMCKMeansInit(2, random_state=0),
    SubspaceMixture(2, n_init=2, n_iter=5, random_state=0),
]
COUNTS_AND_NUMBERS = [("c", "poisson", [0, 2]), ("n", "normal", [1])]
MIXTURES = [
    *(
        TemperedVBGaussianMixture(2, covariance_type=c, n_init=1)
        for c in ("full", "diag")
    ),
    TemperedVBGaussianMixture(2, outliers=True, n_init=1),
    *(TemperedVBMixture(f, 2, n_init=1) for f in ("normal", "student", "regression")),
    TemperedVBMixture(COUNTS_AND_NUMBERS, 2, n_init=1),
]


def rows_for(model, n=200):
    rng = np.random.default_rng(3)
    X = rng.normal(10.0, 3.0, size=(n, 3))
    if COUNTS_AND_NUMBERS is vars(model).get("family"):
        X[:, [0, 2]] = rng.poisson(8.0, size=(n, 2))
    y = rng.permutation(n) % 2  # of all kinds: numbers, counts, labels
    return X, y if is_classifier(model) or "Ranker" in repr(model) else y.astype(float)


def said(model, method, X, y, **options):
    """Return what the warnings of missing values say."""
    return said_of(getattr(clone(model), method), X, y, **options)


def said_of(learn, *rows, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = learn(*rows, **options)
        if hasattr(fitted, "n_components"):
            assert len(fitted.weights_) == 2  # an unfinished block is fitted now
    return [str(w.message) for w in caught if "is a code for a" in str(w.message)]


@pytest.mark.filterwarnings("ignore:The two best of")
@pytest.mark.parametrize(
    "model", [*STREAMS, *ADDITIVE, *MIXTURES, *UNWEIGHTED, FILTER], ids=repr
)
def test_a_number_for_missing_values_is_named(model):
    X, y = rows_for(model)
    assert not said(model, "fit", X, y)
    X[::20, 1] = -999.0
    (text,) = said(model, "fit", pd.DataFrame(X, columns=["a", "age", "c"]), y)
    assert text.startswith("Column 1 of X ('age') has the value -999 in 5 % of the")
    Z = np.column_stack([X[:, 0], 1e4 - 1e-3 * X[:, 1], X[:, 2]])
    assert len(said(model, "fit", Z, y)) == 1
    if model in STREAMS + MIXTURES:
        classes = {"classes": [0, 1]} if is_classifier(model) else {}
        assert len(said(model, "partial_fit", X, y, **classes)) == 1
    known = X[:, 1] != -999.0
    if model in UNWEIGHTED:
        assert not said(model, "fit", X[known], y[known])
    elif model in (STATES, FILTER):
        assert not said(model, "fit", np.where(known[:, None], X, np.nan), y)
    else:  # rows of no weight are absent
        assert not said(model, "fit", X, y, sample_weight=known.astype(float))


@pytest.mark.slow
def test_a_stream_of_clusters_is_looked_at_row_by_row():
    """Whatever rows have been merged into points."""
    X, _ = rows_for(CLUSTERS, 1100)
    X[::20, 1] = -999.0
    stream, told = clone(CLUSTERS), []
    for row in X:
        told += said_of(stream.partial_fit, row[None])
    assert len(told) >= 5
    assert told[-1].startswith("Column 1 of X has the value -999 in 5 % of the rows")


@pytest.mark.parametrize("model", [CLUSTERS, MIXTURES[0]], ids=repr)
def test_one_row_of_a_large_weight_is_not_several_rows(model):
    X, y = rows_for(model, 300)
    for n_far, weight in ((1, 1.0), (1, 2.5), (1, 6.0), (3, 1.0), (3, 4.0)):
        Z = np.where((np.arange(300) < n_far)[:, None], [0.0, -999.0, 0.0], X)
        found = said(model, "fit", Z, y, sample_weight=np.full(300, weight))
        assert len(found) == (n_far > 1)
        assert all("-999 in 1 % of the" in each for each in found)


@pytest.mark.parametrize("summary_size", [30, 150])
@pytest.mark.parametrize("begun", [False, True])
def test_merged_rows_of_a_stream_of_clusters_share_no_value(summary_size, begun):
    """Few rows far away, nearly equal or with one value; the first is no sentinel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 2))
    far = rng.choice(np.arange(100, 1000), 5, replace=False)
    for value in 300.0 + 0.1 * rng.normal(size=5), np.full(5, -999.0):
        X[far, 0] = value
        stream = clone(CLUSTERS).set_params(summary_size=summary_size, refresh=500)
        told = said_of(stream.fit, X[:100]) if begun else []
        for part in np.array_split(X[100 * begun :], 4):
            told += said_of(stream.partial_fit, part)
        if np.ptp(value) > 0:
            assert not told
        else:
            assert told[-1].startswith("Column 0 of X has the value -999 in 0.45 %")


@pytest.mark.parametrize("model", [*STREAMS, ADDITIVE[3], *MIXTURES], ids=repr)
def test_a_stream_is_looked_at_whenever_its_rows_have_doubled(model):
    """From 500 rows to 600, beyond 512; mixtures count blocks, here of 50 rows.

    The window of mixtures is given, so that it does not grow and all rows are not
    fitted, and looked at, once more.
    """
    X, y = rows_for(model, 800)
    X[300:, 1] = np.where(np.arange(500) % 20, X[300:, 1], -999.0)
    stream, told = clone(model), []
    if model in MIXTURES:
        stream.set_params(block_size=50, window=200)
    for start in range(0, 800, 100):
        part = slice(start, start + 100)
        first = {"classes": [0, 1]} if is_classifier(model) and not start else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stream.partial_fit(X[part], y[part], **first)
        told += [start for w in caught if "is a code for a" in str(w.message)]
    assert told == ([300, 700] if model in MIXTURES else [500])


@pytest.mark.parametrize("model", [*ONLINE, TABLE, STATES], ids=repr)
def test_rows_that_are_learnt_one_at_a_time_are_looked_at(model):
    X, y = rows_for(model, 300)
    X[::40, 1] = -999.0
    told = []
    stream = clone(model)
    for t in range(300):
        first = {"classes": [0, 1]} if is_classifier(model) and not t else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stream.partial_fit(X[t : t + 1], y[t : t + 1], **first)
        told += [
            (t, str(w.message)) for w in caught if "is a code for a" in str(w.message)
        ]
    assert [t + 1 for t, _ in told] == [128, 256]  # at 64 rows two had it
    assert told[0][1].startswith("Column 1 of X has the value -999 in 3.1 % of the")


@pytest.mark.parametrize("model", [*STREAMS, ADDITIVE[3]], ids=repr)
def test_rows_whose_warning_is_an_error_are_not_learnt(model):
    """Up to row 512, at which the rows have doubled; without the error they are."""
    X, y = rows_for(model, 600)
    X[300::20, 1] = -999.0
    first = {"classes": [0, 1]} if is_classifier(model) else {}
    stop = 512 if model in ONLINE else 600
    rest = X[511:stop], y[511:stop]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = clone(model).partial_fit(X[:511], y[:511], **first)
        before = state_of(stream)
        warnings.filterwarnings("error", ".*is a code for a")
        with pytest.raises(UserWarning, match="is a code for a"):
            stream.partial_fit(*rest)
        assert not changes(before, state_of(stream))
        warnings.simplefilter("ignore")
        assert changes(before, state_of(stream.partial_fit(*rest)))


@pytest.mark.slow
def test_the_ends_of_a_stream_are_those_of_its_table():
    """What is noted row by row gives the same warnings as all rows at once."""
    n_told = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 6, size=(40, 4)) * rng.choice([1.0, 1e-3, 30.0], size=4)
        X *= rng.choice([-1.0, 1.0, 1e6], size=X.shape, p=[0.1, 0.8, 0.1])
        X = rng.permuted(np.where(rng.random(X.shape) < 0.1, X.max(0), X), axis=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            model = OnlineVIRegressor(n_fourier=0).fit(X, X[:, 0] + rng.normal(size=40))
            warnings.simplefilter("always")
            warn_of_sentinels(X)
            warn_of_sentinels_in_stream(model._state.ends[:-1], 40)
        texts = [str(w.message) for w in caught]
        assert texts[::2] == texts[1::2]
        n_told += len(texts) // 2
    assert 50 < n_told < 250


@pytest.mark.parametrize("value", [3e3, 9.96921e36])
@pytest.mark.parametrize("model", [*ONLINE, FILTER], ids=repr)
def test_one_row_far_from_all_others_is_named(model, value):
    """A gross error, and a value by which a file format fills gaps."""
    X, y = rows_for(model)
    X[50, 1] = value
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(model).fit(pd.DataFrame(X, columns=["a", "age", "c"]), y)
    told = [str(w.message) for w in caught]
    (text,) = (t for t in told if t.startswith(f"A row has the value {value:g} in "))
    assert "'age'" in text


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_clusters_are_found_beside_a_value_near_the_largest_float(method):
    """From where the row hides them it is named: there is no error.

    Before, the row is a cluster of its own or background, which is named as well.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 8.0 * rng.integers(3, size=(300, 1))
    X[3, 1] = 1e9
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_clusters_=4, of which 1 are a single row")
        warnings.filterwarnings("ignore", "n_clusters_=3, but 4 describe the data")
        assert getattr(clone(CLUSTERS), method)(X).n_clusters_ in (3, 4)
    X[3, 1] = 1e300
    with pytest.warns(UserWarning, match="hides clusters of the other rows"):
        getattr(clone(CLUSTERS), method)(X)


def test_parameters_of_a_filter_are_learnt_with_one_warning():
    X, _ = rows_for(FILTER, 60)
    X[::20, 1] = -999.0
    priors = {"model__transition_variance": stats.gamma(2)}
    sampler = ParticleMarginalMetropolis(
        clone(FILTER).set_params(model=LocalLevel()),
        priors,
        n_chains=1,
        n_iter=2,
        burn_in=0,
    )
    assert len(said(sampler, "fit", X, None)) == 1


def test_a_category_has_no_order():
    X, y = rows_for(ADDITIVE[3])
    X[:, 1] = np.where(np.arange(len(X)) % 5, np.arange(len(X)) % 5, 999.0)
    assert said(ADDITIVE[3], "fit", X, y)
    told = ADDITIVE[3].__class__(**SHORT, categorical_features=[1])
    assert not said(told, "fit", X, y)


def test_a_window_of_a_stream_of_states_is_looked_at():
    """Whenever the rows of the stream have doubled, and nothing but the window."""
    X, _ = rows_for(STATES, 1100)
    X[:300:20, 1] = -999.0
    stream, told = clone(STATES).set_params(window=100), []
    for start in range(0, 1100, 50):
        told += [start for _ in said_of(stream.partial_fit, X[start : start + 50])]
    assert told == [0, 50, 100, 250]
    X[:, 1] = np.where(np.arange(len(X)) % 20, X[:, 1] // 5, 999.0)
    kinds = ["normal", "categorical", "normal"]
    stream = clone(STATES).set_params(emission=kinds)
    assert not said_of(stream.partial_fit, X)


def test_values_that_many_rows_share_are_no_missing_ones():
    """Counts, zeros, caps, levels, heavy tails, and zeros beside a narrow range.

    So are ones that rounding has made several numbers, and numbers near the largest.
    """
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 2000))
        zero, size = rng.random(n) < 0.3, rng.uniform(1.0, 2.0, n)
        X = np.column_stack(
            [
                rng.poisson(rng.uniform(0.1, 5.0), n),
                rng.zipf(2.2, n),
                rng.integers(0, 2, n),
                np.minimum(rng.lognormal(0.0, 2.0, n), 3.0),
                np.where(zero, 0.0, rng.lognormal(3.0, 0.3, n)),
                np.where(zero, 0.0, np.log(rng.lognormal(10.0, 0.5, n))),
                np.round(rng.standard_t(1.5, n), 1),
                np.where(zero, np.nan, rng.geometric(0.05, n)),
                np.full(n, 7.0),
                np.full(n, np.nan),
                np.where(zero, 0.0, size * 3 / size / 3),
                np.where(zero, -1e308, 1e308 * (size - 1)),
            ]
        )
        warn_of_sentinels(X.astype(float))  # a warning is an error


def test_a_flag_with_imputed_means_has_no_missing_value():
    """As a limitation in the table randhie of statsmodels; -1 for missing is a code."""
    rng = np.random.default_rng(0)
    for n in (60, 600):
        flags = rng.binomial(1, 0.2, n).astype(float)
        flags[:9] = np.repeat([0.02, 0.03, 0.04], 3)
        for Z, known in ((flags, True), (np.where(flags == 1.0, -1.0, flags), False)):
            Z, told = Z[:, None], []
            told += said_of(warn_of_sentinels, Z)
            told += said_of(warn_of_sentinels_in_stream, ends_of(Z), n)
            assert len(told) == (0 if known else 2)


@pytest.mark.parametrize("n_words", [8, 25])
def test_a_word_that_few_texts_have_is_no_missing_value(n_words):
    """Weights of rare words are nearly equal where all texts have the same length."""
    rng = np.random.default_rng(n_words)
    words = 1.0 / np.arange(1, 601)
    drawn = rng.choice(600, size=(500, n_words), p=words / words.sum())
    texts = [" ".join(f"w{word}" for word in row) for row in drawn]
    for binary in (False, True):
        X = TfidfVectorizer(binary=binary).fit_transform(texts).toarray()
        for Z in (X, 3.0 - 2.0 * X, X[:30]):
            warn_of_sentinels(Z)  # a warning is an error
            warn_of_sentinels_in_stream(ends_of(Z), len(Z))


# Angles.


def angles(start, end, seed, n=400):
    """Draw angles of two groups, one of which is on both sides of the jump."""
    rng = np.random.default_rng(seed)
    groups = rng.choice((-0.03, 0.35), n) + 0.05 * rng.normal(size=n)
    return np.column_stack([rng.normal(size=n), start + (end - start) * (groups % 1.0)])


def told_of_angles(*given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert warn_of_angles(*given) == bool(caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("ends", "turn"), TURNS, ids=str)
def test_an_angle_whose_jump_is_in_a_group(ends, turn):
    """A warning names it; its advice, followed, leaves nothing to warn of."""
    n_told = 0
    for seed in range(20):
        X = angles(*ends, seed)
        X[::50, 1] = np.nan
        assert not told_of_angles(X, (), [1])
        if told := told_of_angles(X, ["age", "wind"]):
            (text,), n_told = told, n_told + 1
            assert text.startswith("Many values in column 1 of X ('wind') are near ")
            advice = re.search(r"Give (.*), which jumps", text).group(1)
            X[:, 1] = eval(advice, {"x": X[:, 1], "pi": np.pi})
            assert turn in advice
            assert np.ptp(X[~np.isnan(X[:, 1]), 1]) < 0.8 * (ends[1] - ends[0])
            assert not told_of_angles(X)
    assert n_told >= 15


def test_other_columns_are_no_angles():
    """Real tables in several units, and columns that fill a turn or a percentage."""
    rng = np.random.default_rng(0)
    tables = []
    for load in (load_breast_cancer, load_diabetes, load_iris, load_wine):
        X = load().data
        units = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        tables += [X, units, 100.0 * units, (X - X.mean(axis=0)) / X.std(axis=0)]
    for _ in range(50):
        n = rng.integers(40, 1000)
        U = rng.random((n, 4))
        tables += [U, 100.0 * U, 360.0 * U, np.pi * (2.0 * U - 1.0)]
        tables.append(np.clip(rng.normal(50.0, 15.0, (n, 4)), 0.0, 100.0))
        two = rng.choice((-2.5, 2.5), (n, 4)) + rng.uniform(0.1, 0.8) * U
        tables.append(3.1 * two / np.abs(two).max(axis=0))
        tables.append(np.repeat([[0.0], [90.0], [180.0], [359.9]], n, axis=0))
    assert len(tables) > 300
    assert not any(told_of_angles(X) for X in tables)


@pytest.mark.parametrize("model", [STATES, CLUSTERS, *MIXTURES[:4]], ids=repr)
def test_estimators_warn_of_angles(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(model).fit(angles(0.0, 360.0, 0))
    told = [str(w.message) for w in caught]
    assert sum("If it is an angle" in text for text in told) == 1


@pytest.mark.parametrize("at_a_time", [1, 2, 3, 7, 40])
def test_ends_of_columns_whatever_the_blocks(monkeypatch, at_a_time):
    rng = np.random.default_rng(at_a_time)
    for n_rows in range(1, 41):
        X = rng.integers(4, size=(n_rows, 3)).astype(float)
        X[rng.random(X.shape) < 0.2] = np.nan
        whole = ends_of(X)
        with monkeypatch.context() as patch:
            patch.setattr(_sentinels, "ROWS_AT_A_TIME", at_a_time)
            np.testing.assert_array_equal(ends_of(X), whole)
