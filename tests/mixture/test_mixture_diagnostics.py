"""What a fit says of values that many rows share, and of outliers as a component."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import (
    Gamma,
    Student,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._diagnostics import warn_of_far_values


def said(mixture, X, sample_weight=None):
    """Fit, and return the texts of warnings but those of convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X, sample_weight=sample_weight)
    return [str(w.message) for w in caught if w.category is not ConvergenceWarning]


def mixtures(n_components=2):
    normal = [("a", "normal", [0, 1]), ("b", "normal", [2])]
    options = {"n_init": 1, "random_state": 0}
    return [
        TemperedVBGaussianMixture(n_components, **options),
        TemperedVBGaussianMixture(n_components, covariance_type="diag", **options),
        TemperedVBMixture("normal", n_components, **options),
        TemperedVBMixture(normal, n_components, **options),
    ]


@pytest.mark.parametrize("number", range(4))
def test_weights_warn_as_repeated_rows(number):
    """Of an aggregated table: a shared value, and a component without width."""
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(60, 3)), np.ones(60)
    X[:4, 1], counts[:4] = 0.0, 10
    (message,) = said(mixtures()[number], X, counts)
    assert message.startswith("Column 1 of X has the value 0 in 40 of 96 rows:")
    repeated = said(mixtures()[number], np.repeat(X, counts.astype(int), axis=0))
    assert repeated == [message]
    X[:, 1] = np.repeat([0.0, 9.0], 30)  # two values, no atom
    X = X[[*range(6), *range(30, 60)]]
    for rows, weight in ((X, np.full(36, 3)), (np.repeat(X, 3, axis=0), None)):
        (message,) = said(mixtures()[number], rows, weight)
        assert "which has no width" in message


@pytest.mark.parametrize("number", range(4))
def test_a_value_that_many_rows_share_is_named(number):
    """As zeros that stand for missing values, in any mixture of real numbers."""
    rng = np.random.default_rng(0)
    X = 50 + 10 * rng.normal(size=(300, 3))
    X[rng.random(300) < 0.3, 1] = 0.0
    zeros = (X[:, 1] == 0).sum()
    (message,) = said(mixtures()[number], X)
    assert message.startswith(f"Column 1 of X has the value 0 in {zeros} of 300 rows:")
    takes_missing = number != 1  # diagonal Gaussians take no NaN
    assert ("replace it by NaN" in message) == takes_missing
    X[:100, 2] = -1.5
    both = (
        f"in {zeros} of 300 rows, column 2 of X has the value -1.5 in 100 of 300 rows:"
    )
    assert both in said(mixtures()[number], X)[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 28, 34, 48])
def test_a_number_that_depends_on_shared_values_may_be_another(seed):
    """Also where the searches agree: other seeds find narrow components of more values.

    A promise of all seeds, kept by a warning: these four warned of the value alone.
    """
    with pytest.warns(ConvergenceWarning, match="may choose another number of them"):
        TemperedVBGaussianMixture("auto", random_state=seed).fit(load_diabetes().data)


@pytest.mark.slow
def test_a_component_without_width_is_named():
    """As on coded columns; by the name of the column where there is one."""
    pd = pytest.importorskip("pandas")
    table = load_diabetes(scaled=False)
    frame = pd.DataFrame(table.data, columns=table.feature_names)[["age", "sex", "bmi"]]
    (message,) = said(TemperedVBGaussianMixture(2, random_state=0), frame)
    assert message.startswith("Column 1 of X ('sex') has the value ")
    assert "which has no width" in message
    unsure = "another random_state may choose another number"
    assert unsure not in message
    with pytest.warns(ConvergenceWarning, match=unsure):
        TemperedVBGaussianMixture("auto", random_state=0).fit(frame)
    families = [("numbers", "normal", ["age", "bmi"]), ("sex", "categorical", ["sex"])]
    frame["sex"] -= 1
    assert said(TemperedVBMixture(families, 2, random_state=0), frame) == []


def test_rounded_values_constants_and_counts_are_no_atoms():
    rng = np.random.default_rng(0)
    X = rng.normal([40, 5, 0], [12, 2, 1], (400, 3))
    X[:, 0] = X[:, 0].round()  # as ages
    X[:, 1] = X[:, 1].round()  # as rooms
    for mixture in mixtures(1):
        assert said(mixture, X) == []
    X[:, 2] = 3.0
    assert said(mixtures(1)[0], X) == []
    assert said(TemperedVBMixture("poisson", random_state=0), np.abs(X).round()) == []


@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_a_row_that_may_hide_groups_is_named(number, outliers):
    """Groups that count as one, also if outliers are told apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 6.0 * np.repeat([[0.0], [1.0]], 100, axis=0)
    student = TemperedVBMixture("student", 2, n_init=1, random_state=0)
    mixture = [*mixtures(), student][number]
    if number != 3:  # a product of families has no outliers
        mixture.set_params(outliers=outliers)
    assert not said(mixture, X)
    X[7, 1] = 1e9
    texts = [text for text in said(mixture, X) if "may hide groups" in text]
    (text,) = texts
    assert text.startswith("A row has the value 1e+09 in column 1 of X, and all others")


def test_far_rows_of_heavy_tails_are_rarely_named():
    """In at most 3 of 1,200 tables, of distributions without a mean or variance."""
    some = np.random.default_rng(0).normal(size=(9, 4))
    family = TemperedVBMixture("normal", 1).fit(some)._family()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(300):
            rng = np.random.default_rng(seed)
            shape = int(rng.choice([25, 60, 200, 1000])), 4
            for X in (
                rng.standard_t(1, shape),
                rng.pareto(1, shape),
                np.exp(3 * rng.normal(size=shape)),
                np.where(rng.random(shape) < 0.05, rng.normal(size=shape), 0.0),
            ):
                warn_of_far_values(family, X, ())
    assert len(caught) <= 3


def found(shape, seed, **options):
    X, _ = make_mixture(
        shape, 600, n_components=3, n_features=2, separation=6.0, random_state=seed
    )
    mixture = TemperedVBGaussianMixture(
        "auto", max_components=6, n_init=1, random_state=0, **options
    )
    return mixture, said(mixture, X)


@pytest.mark.slow
def test_outliers_that_a_component_takes_are_named_and_clean_rows_are_not():
    """With outliers=True the number is right, in silence."""
    for seed in range(2):
        assert found("gaussian", seed)[1] == []
    mixture, (message,) = found("outliers", 0)
    assert mixture.n_components_ > 3
    assert "seems to be outliers" in message
    assert "Set outliers=True" in message
    mixture, messages = found("outliers", 0, outliers=True)
    assert (mixture.n_components_, messages) == (3, [])


def test_a_student_mixture_is_not_told_to_use_student():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), rng.uniform(-40, 40, (40, 2))])
    advice = {"student": 0, "gaussian": 0}
    for family in advice:
        mixture = (
            TemperedVBMixture(Student(50.0), 2, n_init=1, random_state=0)
            if family == "student"
            else TemperedVBGaussianMixture(2, n_init=1, random_state=0)
        )
        (message,) = said(mixture, X)
        assert "Set outliers=True" in message
        advice[family] = "'student'" in message
    assert advice == {"student": False, "gaussian": True}


def test_a_component_too_many_is_not_taken_for_outliers():
    X = np.random.default_rng(0).normal(size=(300, 2))
    for K in (2, 4):
        mixture = TemperedVBGaussianMixture(K, n_init=2, random_state=0)
        assert said(mixture, X) == []


def draws_of_shape(shape, seed):
    rng, z = np.random.default_rng([11, seed]), np.arange(400) % 2
    return rng.gamma(shape, np.array([1.0, 60.0])[z][:, None], (400, 3))


@pytest.mark.parametrize("n_components", [2, "auto"])
def test_gamma_columns_of_another_shape_are_named_and_exponential_ones_are_not(
    n_components,
):
    """Also in a product and beside outliers; nor are those whose shape is learnt."""
    options = {"max_components": 3, "n_init": 1, "random_state": 0}
    product = [("a", "exponential", [0, 2]), ("b", "lognormal", [1])]
    for family, shape, seed in (
        ("exponential", 0.3, 0),
        ("exponential", 4.0, 1),
        (Gamma(1.0), 4.0, 1),
        (product, 0.3, 0),
    ):
        mixture = TemperedVBMixture(family, n_components, **options)
        messages = said(mixture, draws_of_shape(shape, seed))
        told = "Gamma columns do not", "Other families describe the positive columns"
        named = [each for each in messages if any(text in each for text in told)]
        assert len(named) == 1
        assert '"gamma"' in named[0]
    mixture = TemperedVBMixture("exponential", 2, outliers=True, **options)
    messages = said(mixture, draws_of_shape(4.0, 2))
    assert any("Gamma columns do not" in each for each in messages)
    mixture = TemperedVBMixture("exponential", n_components, **options)
    for seed in range(2):
        messages = said(mixture, draws_of_shape(1.0, seed))
        assert not any("Gamma" in each for each in messages)
    mixture = TemperedVBMixture("gamma", n_components, **options)
    assert not any("Gamma" in each for each in said(mixture, draws_of_shape(0.3, 0)))


@pytest.mark.parametrize("number", range(3))
def test_weights_that_sum_to_one_are_named(number):
    """They count as one row, so that three groups would be one, in silence."""
    rng, z = np.random.default_rng(0), np.arange(300) % 3
    X = np.exp(2.0 * z[:, None] + 0.3 * rng.normal(size=(300, 3)))
    X[:, 2] = X[:, 2].round()
    weight = rng.uniform(0.5, 1.5, 300)
    (message,) = said(mixtures()[number], X, weight / weight.sum())
    assert message.startswith("The sample_weight of 300 rows sum to 1: ")
    messages = said(mixtures()[number], X, weight / weight.mean())
    assert not any("sample_weight" in each for each in messages)


@pytest.mark.parametrize(
    "family", ["full", "normal", "student", "poisson", "bernoulli", "categorical"]
)
@pytest.mark.parametrize("heavy", [60.0, 1e3, 1e6])
def test_a_row_that_outweighs_all_others_is_named(family, heavy):
    """It counts as so many equal rows; groups of the other rows are merged or cut."""
    rng, weight = np.random.default_rng(0), np.ones(200)
    z = 6.0 * rng.integers(0, 2, (200, 1))
    X = rng.poisson(2 + z, (200, 3)).astype(float)
    if family in ("full", "normal", "student"):
        X = rng.normal(z, 1.0, (200, 3))
    if family == "bernoulli":
        X = (X > 4).astype(float)
    mixture = TemperedVBMixture(family, 2, n_init=1, random_state=0)
    if family == "full":
        mixture = TemperedVBGaussianMixture(2, n_init=1, random_state=0)
    weight[7] = heavy
    text = f"One row has the sample_weight {heavy:g}, "
    assert any(each.startswith(text) for each in said(mixture, X, weight))
    numbers = rng.integers(1, 20, 200)
    for usual in (numbers, numbers / 10, rng.lognormal(0.0, 1.0, 200)):
        messages = said(mixture, X, usual)
        assert not any("One row" in each for each in messages)


def test_a_gamma_shape_at_the_end_of_the_grid_is_named():
    rng = np.random.default_rng(0)
    mixture = TemperedVBMixture("gamma", random_state=0)
    (message,) = said(mixture, rng.normal(1e4, 1.0, (200, 2)))
    assert "is the largest of those that are tried, from 0.02 to 2000" in message
    (message,) = said(mixture, np.exp(rng.normal(0.0, 99.0, (200, 2))))
    assert "is the smallest" in message
    assert said(mixture, rng.gamma(100.0, 1.0, (200, 2))) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_copies_of_rows_are_named_and_rounded_rows_are_not(number):
    """With "auto", where copies make components; weights are copies."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 3))
    mixture = mixtures("auto")[number].set_params(max_components=3)
    for rows, weight in ((X, np.full(100, 2)), (np.repeat(X, 2, axis=0), None)):
        (message,) = said(mixture, rows, weight)
        assert message.startswith("Rows are there twice or more often")
    many = (np.repeat(X, 4, axis=0) + rng.normal(size=(400, 3))).round()
    for rows in (X, np.r_[X, X[:60]], many):
        assert not any("twice" in each for each in said(mixture, rows))
    mixture.set_params(inverse_temperature="auto")
    assert said(mixture, np.repeat(X, 2, axis=0)) == []


@pytest.mark.parametrize(("number", "as_weight"), [(0, False), (1, True)])
@pytest.mark.filterwarnings("ignore")
def test_a_bootstrap_sample_that_makes_components_is_named(number, as_weight):
    """Its distinct rows are not, nor is a sample that does not make components."""
    rng = np.random.default_rng(5)
    distinct, times = np.unique(rng.integers(0, 40, 40), return_counts=True)
    for n_columns, most in ((1, 8), (12, 4)):
        mixture = mixtures("auto")[number].set_params(max_components=most)
        X = rng.normal(size=(40, n_columns))[distinct]
        rows = (X, times) if as_weight else (np.repeat(X, times, axis=0), None)
        named = any("twice or more often, " in each for each in said(mixture, *rows))
        assert named == (n_columns == 12)
        assert not any("twice" in each for each in said(mixture, X))


@pytest.mark.parametrize(
    ("kind", "n_columns"),
    [("poisson", 5), ("categorical", 8), ("words", 5), ("sparse", 8), ("mixed", 5)],
)
def test_copies_of_counts_and_names_are_named_and_equal_rows_are_not(kind, n_columns):
    """Equal rows of few values are no copies, however often; each thrice they are.

    With five columns, nearly all rows are there several times by chance.
    """
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, size=(300, n_columns)).astype(float)
    family = {"mixed": [("n", "poisson", [0, 1]), ("c", "categorical", [2, 3])]}
    options = {"max_components": 2, "n_init": 1, "random_state": 0}
    if kind in ("words", "sparse"):
        mixture = TemperedVBMultinomialMixture("auto", **options)
    else:
        mixture = TemperedVBMixture(family.get(kind, kind), "auto", **options)
    for times in (1, 3):
        rows, weight = np.repeat(X, times, axis=0), np.full(300, times)
        for table, w in ((rows, None), (X, weight)):
            table = csr_array(table) if kind == "sparse" else table
            messages = said(mixture, table, w)
            found = [each for each in messages if each.startswith("Rows are there")]
            assert len(found) == (times > 1)
            assert all(f"a multiple of {times} times" in each for each in found)


@pytest.mark.filterwarnings("ignore:n_components='auto' chose")
@pytest.mark.parametrize("unit", [1.0, 22.0])
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_an_indicator_with_few_ones_is_told_on_streams(kind, unit):
    """Also where the first block has none; what has no width has finite answers."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 1000)
    X = np.zeros((1000, 3))
    centers = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
    X[:, :2] = rng.normal(centers[group], 1.0)
    X[200::30, 2] = 1.0
    X[:, 2] = unit * (X[:, 2] - X[:, 2].mean())
    options = {"max_components": 6, "n_init": 1, "block_size": 200, "random_state": 0}
    stream = TemperedVBGaussianMixture("auto", covariance_type=kind, **options)
    stream.partial_fit(X[:200])
    with pytest.warns(UserWarning, match="Column 2 of X has the value"):
        stream.partial_fit(X[200:])
    for answer in (
        stream.score_samples(X),
        stream.predict_proba(X),
        stream.sample()[0],
    ):
        assert np.isfinite(answer).all()
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        assert np.isfinite(getattr(stream, name)).all()


def test_a_value_that_a_sample_misses_is_told():
    """Rows are looked at in part where they are many; constant columns are quiet."""
    rng = np.random.default_rng(0)
    X = np.zeros((12_000, 3))
    X[:, 0] = rng.normal(size=12_000)
    mixture = TemperedVBGaussianMixture(2, n_init=1, tol=1e-3, random_state=0).fit(X)
    X[5000:5002, 2] = 1.0
    with pytest.warns(UserWarning, match="Column 2 of X has the value 0 in 11998 of"):
        mixture.fit(X)


@pytest.mark.parametrize("family", ["normal", "poisson"])
def test_zeros_of_their_own_are_described_by_a_column_that_says_where(family):
    """What the warnings advise finds the groups that zero-inflated columns hide."""
    rng = np.random.default_rng(0)
    means = np.array([[4.0, 8, 15], [13, 4, 6], [6, 15, 4]])[rng.integers(0, 3, 600)]
    X = rng.normal(means) if family == "normal" else rng.poisson(means).astype(float)
    zero = rng.random(X.shape) < 0.3
    X[zero] = 0.0
    options = {"max_components": 8, "n_init": 2, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TemperedVBMixture(family, "auto", **options).fit(X)
    assert any('"bernoulli"' in str(warning.message) for warning in caught)
    parts = [("value", family, [0, 1, 2]), ("zero", "bernoulli", [3, 4, 5])]
    advised = TemperedVBMixture(parts, "auto", **options)
    assert said(advised, np.hstack([np.where(X == 0, np.nan, X), X == 0])) == []
    assert advised.n_components_ == 3


@pytest.mark.parametrize("exponent", [-160, -200, -310])
def test_columns_whose_variance_underflows_are_told(exponent):
    """They were taken for constant in silence; logarithms do not care."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 8.0 * (np.arange(60) % 2)[:, None]
    X[:, 1] *= 10.0**exponent
    for mixture in mixtures():
        assert any("Column 1 of X has values from" in text for text in said(mixture, X))
    stream = mixtures()[0].set_params(block_size=60)
    with pytest.warns(UserWarning, match="Column 1 of X has values from"):
        stream.partial_fit(X)
    X[:, 1] *= 10.0 ** (-exponent - 140)
    positive = TemperedVBMixture("lognormal", 2, n_init=1, random_state=0)
    for mixture, rows in ((mixtures()[0], X), (positive, np.exp(X) * 10.0**-250)):
        assert not any("has values from" in text for text in said(mixture, rows))


def test_a_stream_says_that_a_warning_is_about_its_first_rows():
    """Sorted rows: the first block hardly shows the groups, later blocks do."""
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(0, scale, (300, 2)) for scale in (0.3, 4.0)])
    X = X[np.argsort(X[:, 0])]
    options = {"max_components": 3, "n_init": 1, "random_state": 0}
    with warnings.catch_warnings(record=True) as of_stream:
        warnings.simplefilter("always")
        TemperedVBGaussianMixture("auto", block_size=60, **options).partial_fit(X)
    with warnings.catch_warnings(record=True) as of_fit:
        warnings.simplefilter("always")
        TemperedVBGaussianMixture("auto", **options).fit(X[:60])
    assert len(of_stream) == len(of_fit) == 3
    for warning in of_stream:
        assert "first rows" in str(warning.message)
        assert "Later rows may" in str(warning.message)
    assert not any("block" in str(warning.message) for warning in of_fit)


@pytest.mark.parametrize("case", ["many rows", "a component", "all but one"])
def test_messages_say_no_minus_zero(case):
    """Rounding makes it: it is the value 0."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[::2] += 20
    zeros = {"many rows": slice(0, 60), "a component": slice(1, 200, 2)}
    X[zeros.get(case, slice(0, 199)), 0] = -0.0
    mixture = TemperedVBMixture("normal", 2, n_init=1, random_state=0)
    with pytest.warns(UserWarning, match="has the value 0 in"):
        mixture.fit(X)
