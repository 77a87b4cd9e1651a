"""Columns that copy each other: named wherever columns are taken as independent."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfTransformer

from skpacbayes.mixture import (
    Binomial,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)

N = 300


def said_of_copies(mixture, X, **given):
    """Return the texts of the warnings of copies."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X, **given)
    texts = [str(each.message) for each in caught]
    return [each for each in texts if each.startswith("Columns are nearly copies")]


def groups(rng):
    return rng.integers(0, 2, (N, 1))


def normal(rng):
    return rng.normal(3 * groups(rng), 1, (N, 3))


def counts(rng):
    return rng.poisson(np.where(groups(rng), 9.0, 2.0), (N, 3)).astype(float)


def chances(rng, n_trials=1):
    return rng.binomial(n_trials, np.where(groups(rng), 0.7, 0.2), (N, 3)).astype(float)


def categories(rng):
    values = np.where(
        groups(rng), rng.choice([1, 2, 5], (N, 3), p=[0.6, 0.2, 0.2]), 5.0
    )
    kept = rng.random((N, 3)) < 0.5
    return np.where(kept, values, rng.choice([1.0, 2.0, 5.0], (N, 3)))


ROWS = {
    "normal": normal,
    "lognormal": lambda rng: np.exp(normal(rng)),
    "poisson": counts,
    "exponential": lambda rng: rng.exponential(np.where(groups(rng), 9.0, 1.0), (N, 3)),
    "gamma": lambda rng: rng.gamma(3.0, np.where(groups(rng), 9.0, 1.0), (N, 3)),
    "bernoulli": chances,
    "binomial": lambda rng: chances(rng, 7),
    "categorical": categories,
    "diag": normal,
    "spherical": normal,
    "known": normal,
    "factorized": normal,
    "outliers": normal,
    "product": lambda rng: np.column_stack([normal(rng)[:, :2], counts(rng)[:, 0]]),
}
PRODUCT = [("a", "normal", [0]), ("b", "normal", [1, 3]), ("c", "poisson", [2])]


def mixture_of(name, **options):
    options = {"n_init": 1, "random_state": 0, **options}
    K = options.pop("n_components", 2)
    if name in ("diag", "spherical"):
        return TemperedVBGaussianMixture(K, covariance_type=name, **options)
    if name == "known":
        own = {"covariance_type": "known", "known_covariance": 1.0}
        return TemperedVBGaussianMixture(K, **own, **options)
    if name == "factorized":
        own = {"covariance_type": "diag", "prior": "factorized"}
        return TemperedVBGaussianMixture(K, **own, **options)
    if name == "outliers":
        return TemperedVBMixture("normal", K, outliers=True, **options)
    family = {"binomial": Binomial(7), "product": PRODUCT}.get(name, name)
    return TemperedVBMixture(family, K, **options)


def with_copy(X, name):
    """Rows with a copy of their first column, of other names if it has categories."""
    copy = X[:, 0]
    if name == "categorical":
        names = {1.0: 3.0, 2.0: 0.0, 5.0: 8.0}
        copy = np.array([names.get(value, np.nan) for value in copy])
    return np.column_stack([X, copy])


@pytest.mark.parametrize(
    ("name", "n_components"),
    [(name, (2, "auto")[number % 2]) for number, name in enumerate(ROWS)],
)
def test_a_copied_column_is_named_and_other_columns_are_not(name, n_components):
    X = ROWS[name](np.random.default_rng(1))
    own = {"n_components": n_components, "max_components": 4}
    (message,) = said_of_copies(mixture_of(name, **own), with_copy(X, name))
    assert "columns 0 and 3 of X (" in message
    assert "columns 1 and" not in message
    if name == "product":
        X = np.column_stack([X, np.random.default_rng(2).normal(size=N)])
    assert said_of_copies(mixture_of(name, **own), X) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "lognormal", "poisson", "bernoulli"])
def test_copies_on_which_components_form_are_named(name):
    """Then they have hardly a second value within a component."""
    for seed in range(2):
        X = np.repeat(ROWS[name](np.random.default_rng(seed)), 4, axis=1)
        mixture = mixture_of(name, n_components="auto", max_components=8)
        assert len(said_of_copies(mixture, X)) == 1


@pytest.mark.parametrize("name", ["normal", "diag", "poisson", "bernoulli"])
def test_columns_that_groups_explain_are_no_copies(name):
    """Among all rows their correlation is .95 to 1."""
    for seed in range(3):
        rng = np.random.default_rng([12, seed])
        groups, X = rng.integers(0, 6, N), np.empty((N, 4))
        X[:] = rng.normal(9.0 * groups[:, None], 1.0, (N, 4))
        if name == "poisson":
            X = rng.poisson(np.exp(0.8 * groups[:, None]), (N, 4)).astype(float)
        if name == "bernoulli":
            X = np.repeat(groups[:, None] // 3, 5, axis=1).astype(float)
            X[:, :3] = np.where(rng.random((N, 3)) < 0.03, 1 - X[:, :3], X[:, :3])
        assert said_of_copies(mixture_of(name, n_components=6), X) == []


@pytest.mark.parametrize("name", ["normal", "poisson", "categorical"])
def test_copies_weigh_nothing_where_values_are_missing(name):
    X = ROWS[name](np.random.default_rng(3))
    holes = np.random.default_rng(4).random(X.shape) < 0.2
    X = np.where(holes, np.nan, X)
    assert said_of_copies(mixture_of(name), X) == []
    assert len(said_of_copies(mixture_of(name), with_copy(X, name))) == 1


@pytest.mark.parametrize("name", ["normal", "diag", "spherical"])
@pytest.mark.parametrize(("shift", "scale"), [(1e4, 1.0), (0.0, 1e-3), (0.0, 1e3)])
def test_rows_may_be_shifted_and_scaled_and_copies_too(name, shift, scale):
    """A copy in another unit, turned around, or with an error of a tenth."""
    rng = np.random.default_rng(5)
    X = shift + scale * normal(rng)
    assert said_of_copies(mixture_of(name), X) == []
    error = 0.1 * scale * rng.normal(size=N)
    for copy in (X[:, 0], 7 - 2 * X[:, 0], X[:, 0] + error):
        found = said_of_copies(mixture_of(name), np.column_stack([X, copy]))
        assert "columns 0 and 3 of X (" in found[0]


def test_weights_warn_as_repeated_rows():
    X = with_copy(normal(np.random.default_rng(6))[:60], "normal")
    counts = np.arange(60) % 3
    weighted = said_of_copies(mixture_of("normal"), X, sample_weight=counts)
    assert len(weighted) == 1
    assert weighted == said_of_copies(
        mixture_of("normal"), np.repeat(X, counts, axis=0)
    )
    assert said_of_copies(mixture_of("normal"), X[:20]) == []  # too few rows to know


def test_families_with_covariances_do_not_warn():
    X = with_copy(normal(np.random.default_rng(7)), "normal")
    X[:, 3] += 0.1 * np.random.default_rng(8).normal(size=N)
    for mixture in (
        TemperedVBGaussianMixture(2, random_state=0),
        TemperedVBGaussianMixture(2, covariance_type="tied", random_state=0),
        TemperedVBMixture("student", 2, random_state=0),
        TemperedVBMixture("regression", 2, random_state=0),
    ):
        assert said_of_copies(mixture, X) == []


@pytest.mark.slow
def test_rare_values_that_agree_by_chance_are_no_copies():
    """Of 400 columns with a 1 in a row or two, many are equal."""
    rng = np.random.default_rng(9)
    X = np.zeros((200, 400))
    X[rng.integers(0, 200, 400), np.arange(400)] = 1
    for family in ("bernoulli", "poisson", "categorical"):
        assert said_of_copies(TemperedVBMixture(family, 2, random_state=0), X) == []


def test_the_first_block_of_a_stream_warns_with_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    X = with_copy(normal(np.random.default_rng(10)), "normal")
    frame = pd.DataFrame(X, columns=["height", "length", "width", "inches"])
    stream = mixture_of("diag", block_size=100)
    stream.partial_fit(frame[:60])
    with pytest.warns(UserWarning, match=r"columns 0 \('height'\) and 3 \('inches'\)"):
        stream.partial_fit(frame[60:])
    with pytest.warns(UserWarning, match='or use covariance_type="full"'):
        mixture_of("diag").fit(frame)
    with pytest.warns(UserWarning, match="or use TemperedVBGaussianMixture"):
        mixture_of("normal").fit(frame)


@pytest.mark.slow
def test_real_tables_warn_where_columns_measure_the_same():
    """Radius, perimeter and area of cells; not the columns of iris and wine."""
    for load in (load_iris, load_wine):
        assert said_of_copies(mixture_of("diag", n_components=3), load().data) == []
    table = load_breast_cancer(as_frame=True).data
    (message,) = said_of_copies(mixture_of("diag", n_components=5), table)
    assert "('mean radius') and 3 ('mean area')" in message


def names_of_groups(n, generator):
    """Return names in five columns, from three groups."""
    chances = np.full((3, 4), 0.1) + 0.6 * np.eye(3, 4)
    group = generator.integers(0, 3, n)
    draws = [[generator.choice(4, p=chances[k]) for k in group] for _ in range(5)]
    return np.array(draws, dtype=float).T


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["coarser", "nearly equal", "none", "another draw"])
def test_names_that_tell_other_names_are_named(kind, seed):
    """Also if they are coarser; columns that the groups alone explain are not."""
    rng = np.random.default_rng(seed)
    X = names_of_groups(400, rng)
    changed = rng.random(X.shape) < 0.03
    copy = {
        "coarser": 5.0 + (X > 1),
        "nearly equal": np.where(changed, rng.integers(0, 4, X.shape), X),
        "none": np.empty((400, 0)),
        "another draw": np.roll(X, 1, axis=1)[:, :2] % 2,
    }[kind]
    mixture = TemperedVBMixture("categorical", 3, random_state=0, n_init=1)
    if kind == "another draw":  # of columns that are not there
        X = np.delete(X, [0, 4], axis=1)
    warned = said_of_copies(mixture, np.hstack([X, copy]))
    assert bool(warned) == (kind in ("coarser", "nearly equal"))


def test_many_names_in_few_rows_do_not_tell_others_by_chance():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 18, (150, 8)).astype(float)
    assert not said_of_copies(TemperedVBMixture("categorical", 2, random_state=0), X)


@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("factor", "part", "warns"), [(1.0, 1.0, True), (3.0, 1.0, True), (1.0, 0.1, False)]
)
def test_copied_columns_of_counts_are_named(as_rows, factor, part, warns):
    """If they have a tenth of all counts or more."""
    rng = np.random.default_rng(0)
    means = np.where(rng.integers(0, 2, (200, 1)), [5, 1, 2], [1, 5, 2])
    X = rng.poisson(means).astype(float)
    copied = X[:, :1] if part == 1.0 else rng.poisson(0.3, (200, 1)).astype(float)
    X = np.hstack([X, copied, factor * copied])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows(X))
    found = [str(w.message) for w in caught if "multiples" in str(w.message)]
    assert bool(found) == warns
    assert not warns or "columns 0 and 3" in found[0]


@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
def test_counts_of_zeros_are_no_copies(as_rows):
    TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows(np.zeros((40, 5))))


@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
def test_rows_of_length_one_are_no_counts(as_rows):
    """Those of `TfidfVectorizer`: "auto" finds one topic, where counts have two."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.5), 2)
    counts = np.stack([rng.multinomial(60, topics[i % 2]) for i in range(100)])
    auto = TemperedVBMultinomialMixture("auto", max_components=3, random_state=0)
    counts[-1] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert auto.fit(as_rows(counts)).n_components_ == 2
        one_each = np.eye(300)[rng.integers(0, 300, 100)]
        auto.fit(as_rows(one_each))
    weighted = TfidfTransformer().fit_transform(counts).toarray()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert auto.fit(as_rows(weighted)).n_components_ == 1
    said = [str(each.message) for each in caught]
    assert (
        sum("rows of X have length 1, as those of Tfidf" in each for each in said) == 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("as_rows", [np.asarray, csr_array])
def test_shares_are_no_counts(as_rows):
    X = np.random.default_rng(0).dirichlet(np.ones(4), 100)
    for factor, total in [(1, "1"), (100, "100"), (1e4, "10,000"), (1e6, "1,000,000")]:
        with pytest.warns(UserWarning, match=f"The rows of X sum to {total}: "):
            TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows(factor * X))
    counts = np.random.default_rng(0).multinomial(100, np.ones(4) / 4, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows(30 * X))
        shares = counts / 100  # of 100 draws each
        TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows(100 * shares))
        TemperedVBMultinomialMixture(2, random_state=0).fit(as_rows((X > 0.9) * 1.0))
