"""Families: holes, values that they refuse, columns by name."""

import pickle
import warnings

import numpy as np
import pytest
from mixed_columns import MIXED, mixed
from numpy.testing import assert_allclose
from scipy import special
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.model_selection import GridSearchCV
from states import state_of

from skpacbayes.mixture import (
    Categorical,
    Normal,
    ProductFamily,
    Student,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._product import FAMILIES


def mixed_rows(n):
    return mixed(n, np.random.default_rng(0))


def test_a_missing_value_is_left_out():
    """The other columns alone decide, and the density is that of these."""
    X = mixed_rows(300)
    mixture = TemperedVBMixture(MIXED, 2, random_state=0).fit(X)
    holes = X[:50].copy()
    holes[:, 2] = np.nan
    alone = TemperedVBMixture(MIXED, 2, random_state=0).fit(X)
    engine, state = alone._stream.learned.mixture, alone._stream.state
    joint = np.log(0 * joint_of(engine, state, holes) + 1) + state.log_weights
    for (_, family, columns), part in zip(
        engine.family.families[:2], state.components, strict=False
    ):
        own = np.empty((50, 2))
        family.density(part, np.zeros(2)).log_joint(X[:50][:, columns], own)
        joint += own
    assert_allclose(mixture.predict_proba(holes), special.softmax(joint, axis=1))
    empty = np.full((1, 3), np.nan)
    weights = special.softmax(state.log_weights)
    assert_allclose(mixture.predict_proba(empty)[0], weights)
    assert_allclose(mixture.score_samples(empty), 0, atol=1e-12)


def joint_of(engine, state, X):
    out = np.empty((len(X), len(state.concentration)))
    engine.density(state).log_joint(X, out)
    return out


REFUSING = {
    "diag": (TemperedVBGaussianMixture(covariance_type="diag"), "'full' or 'tied'."),
    "spherical": (
        TemperedVBGaussianMixture(covariance_type="spherical", outliers=True),
        "'full' or 'tied' with outliers=False.",
    ),
    "full": (TemperedVBGaussianMixture(outliers=True), "set outliers=False."),
    "normal": (TemperedVBMixture(outliers=True), "set outliers=False."),
    "student": (TemperedVBMixture("student"), "family that leaves them out"),
    "directions": (TemperedVBMixture("von_mises_fisher"), "family that leaves them"),
    "counts": (TemperedVBMultinomialMixture(), "family that leaves them out"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score_samples"])
@pytest.mark.parametrize("name", REFUSING)
def test_refused_missing_values_have_a_remedy(name, method):
    """The error is that of scikit-learn, with a note that says what to do."""
    mixture, remedy = clone(REFUSING[name][0]), REFUSING[name][1]
    X = np.eye(3)[np.arange(30) % 3]
    holes = np.where(np.arange(90).reshape(30, 3) == 7, np.nan, X)
    if method in ("predict", "score_samples"):
        mixture.fit(X)
    with pytest.raises(ValueError, match=r"^Input X contains NaN\.\n") as raised:
        getattr(mixture, method)(holes)
    (note,) = raised.value.__notes__
    assert "takes no missing values: leave out these rows, or" in note
    assert remedy in note


def test_rows_with_holes_cost_little_density():
    """A fifth of the values missing at random: held-out density nearly that of all."""
    generator = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0, 0], [4, 4, 0, 0], [0, 4, 4, 4]])
    X = centers[generator.integers(0, 3, 2500)] + generator.normal(size=(2500, 4))
    train, test = X[:1500], X[1500:]
    holes = np.where(generator.random(train.shape) < 0.2, np.nan, train)
    complete = TemperedVBMixture("normal", 3, random_state=0).fit(train).score(test)
    missing = TemperedVBMixture("normal", 3, random_state=0).fit(holes).score(test)
    assert abs(missing - complete) < 0.05


@pytest.mark.parametrize(
    ("family", "value", "message"),
    [
        ("poisson", 1.5, r"Poisson needs whole numbers >= 0, but column 1 .* 1.5"),
        ("poisson", 1 + 1e-9, r"Poisson needs whole numbers .* value 1\.000000001\."),
        ("poisson", -1.0, r"Poisson needs whole numbers >= 0, but column 1 .* -1"),
        ("exponential", 0.0, r"Gamma needs numbers > 0, but column 1 .* 0"),
        ("bernoulli", 2.0, r"Binomial needs whole numbers from 0 to n_trials=1"),
        ("von_mises_fisher", 0.0, r"needs rows of length 1.* row 0 of X"),
    ],
)
def test_values_that_a_family_cannot_take_are_refused(family, value, message):
    X = np.ones((10, 2))
    X[0] = [0 if family == "von_mises_fisher" else 1, value]
    with pytest.raises(ValueError, match=message):
        TemperedVBMixture(family).fit(X)


@pytest.mark.parametrize("name", [*FAMILIES, "product"])
def test_parameters_that_no_family_has_are_refused(name):
    """They would give NaN, or numbers of no distribution."""
    values = {name: family().get_params() for name, family in FAMILIES.items()}
    own = "gamma" if name == "product" else name
    for parameter in values[own]:
        for wrong in (-1.0, 0.0, np.nan, np.inf, "word", None):
            family = FAMILIES[own]().set_params(**{parameter: wrong})
            family = [("a", family, [0])] if name == "product" else family
            message = f"The '{parameter}' parameter of .* must be a"
            mixture = TemperedVBMixture(family)
            for learn in (mixture.fit, mixture.partial_fit):
                with pytest.raises(ValueError, match=message):
                    learn(np.ones((10, 2)))


POSITIVE = np.random.default_rng(0).integers(1, 3, (30, 3)).astype(float)


@pytest.mark.parametrize(
    "family", [name for name in FAMILIES if name != "von_mises_fisher"] + ["product"]
)
def test_columns_without_a_value_are_refused(family):
    """They had NaN as the bound, or a density of values never seen."""
    X, all_missing = POSITIVE.copy(), np.full((30, 3), np.nan)
    X[:, 1] = np.nan
    if family == "bernoulli":
        X = X - 1
    product = [("a", "normal", [0]), ("b", "gamma", [1]), ("c", "categorical", [2])]
    mixture = TemperedVBMixture(product if family == "product" else family, 2)
    message = "Column . of X has no value|NaN|Regression needs inputs"
    for rows in (X, all_missing):
        with pytest.raises(ValueError, match=message):
            mixture.fit(rows)
        with pytest.raises(ValueError, match=message):
            mixture.set_params(block_size=30).partial_fit(rows)


@pytest.mark.parametrize("constants", [1, 2, 3])
@pytest.mark.parametrize(
    "family", [name for name in FAMILIES if name != "von_mises_fisher"] + ["product"]
)
def test_constant_columns_are_quiet(family, constants):
    """Several constants are no shares with a common sum: that check ended the fit."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (80, 4)).astype(float)
    X[:40, 0] += 20.0 * (family not in ("bernoulli", "categorical"))
    X[:, 1 : 1 + constants] = 1.0
    if family in ("exponential", "gamma", "lognormal"):
        X[X == 0] = 0.5
    parts = [("a", "poisson", [0]), ("b", "normal", [1, 2]), ("c", "normal", [3])]
    mixture = TemperedVBMixture(
        parts if family == "product" else family,
        "auto",
        max_components=3,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # those of shapes and numbers
        assert np.isfinite(mixture.fit(X).score(X))


def test_other_refusals():
    X = mixed_rows(30)
    mixture = TemperedVBMixture(MIXED, 2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="category 7, which the first rows"):
        mixture.predict([[0.0, 1.0, 7.0]])
    with pytest.raises(ValueError, match=r"In the columns of 'number': .* 0\.5"):
        mixture.predict([[0.0, 0.5, 1.0]])
    twice = [("a", "normal", [0, 1]), ("b", "normal", [1])]
    with pytest.raises(ValueError, match="Column 1 of X is in more than one family"):
        TemperedVBMixture(twice).fit(X)
    with pytest.raises(ValueError, match="it is no ExponentialFamily"):
        TemperedVBMixture([("a", Student(), [0])]).fit(X)
    named_twice = [("a", "normal", [0]), ("a", "normal", [1])]
    for wrong in (
        [],
        [("a", "normal")],
        named_twice,
        [Normal()],
        ["poisson", Normal()],
    ):
        with pytest.raises(ValueError, match=r"triples .* with different names"):
            TemperedVBMixture(wrong).fit(X)
    with pytest.raises(ValueError, match="'a' has no column"):
        TemperedVBMixture([("a", "normal", [])]).fit(X)
    with pytest.raises(ValueError, match="'a' has a mask of 2 columns, but X has 3"):
        TemperedVBMixture([("a", "normal", [True, False])]).fit(X)
    with pytest.raises(ValueError, match="no family 'norml': choose one of"):
        TemperedVBMixture([("a", "norml", [0])]).fit(X)
    with pytest.raises(ValueError, match=r"family must be an instance: Normal\("):
        TemperedVBMixture(Normal).fit(X)
    with pytest.raises(ValueError, match=r"the class Normal: give an object, Normal\("):
        TemperedVBMixture([("a", Normal, [0])]).fit(X)
    with pytest.warns(UserWarning, match="n_components=40 is more than the 30 rows"):
        TemperedVBMixture("normal", 40, tol=0.1, random_state=0).fit(X)


@pytest.mark.parametrize("names", [("normal", "poisson", "normal"), ("poisson",) * 3])
def test_a_list_of_names_has_one_for_each_column(names):
    """It is the product of one family for all columns of each name."""
    X = np.random.default_rng(0).poisson([[1.0, 5.0, 9.0]] * 20).astype(float)
    products = [
        (name, name, np.flatnonzero([own == name for own in names]).tolist())
        for name in dict.fromkeys(names)
    ]
    listed, product = (
        TemperedVBMixture(family, 2, random_state=0, max_iter=5, tol=1.0).fit(X)
        for family in (list(names), products)
    )
    assert listed.elbo_ == product.elbo_
    assert listed.parameters_.keys() == product.parameters_.keys()
    assert (listed.score_samples(X) == product.score_samples(X)).all()
    with pytest.raises(ValueError, match=r"each of 3 columns, but X has 2\."):
        listed.fit(X[:, :2])
    with pytest.raises(ValueError, match="no family 'norml': choose one of"):
        TemperedVBMixture(["norml"] * 3).fit(X)


def test_columns_of_a_frame_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=60), "kind": rng.integers(0, 2, 60)})
    by_name, by_index = (
        TemperedVBMixture(
            [("a", "normal", [size]), ("b", "categorical", [kind])], 2, random_state=0
        ).fit(frame)
        for size, kind in (("size", "kind"), (0, 1))
    )
    assert by_name.elbo_ == by_index.elbo_
    with pytest.raises(ValueError, match="'a' has the column 'seize', but X has 2"):
        TemperedVBMixture([("a", "normal", ["seize"])]).fit(frame)
    with pytest.raises(ValueError, match="'a' has the column 2, but X has 2 columns"):
        TemperedVBMixture([("a", "normal", [2])]).fit(frame.to_numpy())
    texts = frame.assign(kind=["yes", "no"] * 30)
    with pytest.raises(ValueError, match="Column 'kind' of X has 'yes'"):
        TemperedVBMixture([("a", "poisson", ["kind"])]).fit(texts)


def test_columns_of_a_frame_by_selector():
    """As by name, in `fit`, in a stream of frames, in a copy, and after a pickle."""
    pd = pytest.importorskip("pandas")
    X = mixed_rows(120)
    frame = pd.DataFrame(X, columns=["size", "number", "kind"])
    frame = frame.astype({"number": np.int64, "kind": np.int8})
    selectors = [
        ("size", "normal", make_column_selector(dtype_include=float)),
        ("number", "poisson", make_column_selector("^n")),
        ("kind", "categorical", by_last_name),
    ]
    names = [(name, family, [name]) for name, family, _ in selectors]
    chosen, named = (
        TemperedVBMixture(family, 2, random_state=0) for family in (selectors, names)
    )
    expected = named.fit(frame).predict_proba(frame)
    assert (chosen.fit(frame).predict_proba(frame) == expected).all()
    chosen, named = clone(chosen), clone(named)
    for block in np.split(np.arange(120), 6):
        chosen.partial_fit(frame.iloc[block])
        named.partial_fit(frame.iloc[block])
        chosen = pickle.loads(pickle.dumps(chosen))
    expected = named.predict_proba(frame)
    assert (chosen.predict_proba(frame) == expected).all()
    with pytest.raises(ValueError, match="applied to pandas dataframes"):
        clone(chosen).fit(X)
    others = frame.rename(columns={"number": "count"})
    with pytest.raises(ValueError, match="The family 'number' has no column"):
        clone(chosen).fit(others)


def by_last_name(frame):
    return frame.columns[-1:]


@pytest.mark.parametrize("wrap", [list, ProductFamily])
@pytest.mark.parametrize(
    "columns",
    [
        lambda frame: slice(1, 3),
        lambda frame: [False, True, True],
        lambda frame: frame.columns != "size",
        lambda frame: np.array(["number", "kind"]),
        lambda frame: frame.columns[1:],
        lambda frame: slice("number", "kind"),
        [-2, -1],
        slice(1, None),
        slice("number", None),
        slice("number", "kind"),
    ],
)
def test_a_selector_may_return_what_columns_may_be(columns, wrap):
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["size", "number", "kind"])
    few = {"random_state": 0, "max_iter": 5, "tol": 1.0}
    given, expected = (
        TemperedVBMixture(wrap([("a", "normal", own)]), 2, **few).fit(frame).elbo_
        for own in (columns, [1, 2])
    )
    assert given == expected


def test_a_slice_of_names_that_are_no_columns():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for columns in (slice("a", None), slice(None, "b")):
        mixture = TemperedVBMixture([("a", "normal", columns)])
        with pytest.raises(
            ValueError, match=r"'a' has the column '.', but X has 2 col"
        ):
            mixture.fit(X)


@pytest.mark.parametrize("wrap", [list, ProductFamily])
@pytest.mark.parametrize("columns", [[0, 0], [1, -1], lambda X: [1, 1]])
def test_a_column_counts_once(columns, wrap):
    """Twice, it would have twice its weight among the columns."""
    mixture = TemperedVBMixture(wrap([("a", "normal", columns)]))
    with pytest.raises(ValueError, match="'a' has a column more than once"):
        mixture.fit(np.random.default_rng(0).normal(size=(20, 2)))


def test_lognormal_is_normal_of_the_logarithms():
    """The same posterior; the bound has the slopes of the logarithm too."""
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(200, 2)) + 4.0 * rng.integers(0, 2, (200, 1))
    logs[::7, 1] = np.nan
    X, alpha = np.exp(logs), 0.5
    fits = [
        TemperedVBMixture(name, 2, inverse_temperature=alpha, random_state=0).fit(rows)
        for name, rows in (("lognormal", X), ("normal", logs))
    ]
    slopes = -np.nansum(logs)
    assert_allclose(fits[0].elbo_, fits[1].elbo_ + alpha * slopes, rtol=1e-9)
    medians = np.exp(fits[1].parameters_["means"])
    assert_allclose(fits[0].parameters_["medians"], medians, rtol=1e-6)
    found = fits[0].score_samples(X)
    expected = fits[1].score_samples(logs) - np.nansum(logs, axis=1)
    assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="LogNormal needs numbers > 0, but column 1"):
        TemperedVBMixture("lognormal").fit([[1.0, 0.0], [1.0, 2.0]])


def test_categories_that_are_measurements_are_told():
    """By column and number; not codes, in whatever type, nor other columns."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, 60).astype(float)
    X = np.column_stack([kinds, rng.normal(size=60).round(2), np.arange(60.0)])
    X[5, 1] = np.nan
    mixture = TemperedVBMixture("categorical", n_init=1, random_state=0)
    message = (
        rf"^Column 1 of X has {len(np.unique(X[:, 1])) - 1} values in 59 rows, among "
        r"them -.*, column 2 of X has 60 values in 60 rows: each .* is learnt as a cat"
    )
    with pytest.warns(UserWarning, match=message):
        mixture.fit(X)
    with pytest.warns(UserWarning, match=message):
        mixture.__sklearn_clone__().set_params(block_size=60).partial_fit(X)
    parts = [("a", "normal", [1, 2]), ("b", "categorical", [0])]
    TemperedVBMixture(parts, n_init=1, random_state=0).fit(X)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["kind", "size"])
    parts = [("a", "categorical", ["size"]), ("b", "poisson", ["kind"])]
    with pytest.warns(UserWarning, match=r"Column 1 of X \('size'\) has .* among them"):
        TemperedVBMixture(parts, n_init=1, random_state=0).fit(frame)
    towns = np.minimum(rng.zipf(1.3, (60, 2)), 10**6)  # most are there once or twice
    for codes in (towns, kinds[:, None] + [[0.0, -7.0]], (kinds > 1)[:, None]):
        mixture.__sklearn_clone__().fit(codes)


def test_a_stream_refuses_unknown_categories_at_once():
    """Not when their block is full: the stream goes on without them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100), rng.integers(0, 3, 100)])
    parts = [("a", "normal", [0]), ("b", "categorical", [1])]
    options = {"block_size": 40, "n_init": 1, "random_state": 0}
    bad = X[:3] + np.array([0.0, 9.0])
    message = "Column 1 of X has the category .*, which the first rows did not have"
    stream = TemperedVBMixture(parts, 2, **options)
    for seen, rows in ((40, bad), (60, bad), (60, bad[:1]), (60, bad.tolist())):
        stream = stream.__sklearn_clone__().partial_fit(X[:seen])
        before = state_of(stream)
        with pytest.raises(ValueError, match=message):
            stream.partial_fit(rows)
        assert state_of(stream) == before
    with pytest.raises(ValueError, match=message):
        stream.__sklearn_clone__().partial_fit(np.vstack([X[:45], bad]))
    stream.partial_fit(X[60:])
    with pytest.raises(ValueError, match=message):
        stream.predict(bad)
    assert stream.elbo_ == stream.__sklearn_clone__().partial_fit(X).elbo_


@pytest.mark.parametrize(
    ("family", "value"),
    [("poisson", 0.5), ("gamma", -1.0), ("bernoulli", 2.0), ("regression", np.nan)],
)
def test_an_error_of_a_part_names_the_column_of_the_table(family, value):
    X = np.random.default_rng(0).integers(0, 2, (20, 4)) + 0.0
    X[:, 2:] += family == "gamma"
    parts = [("a", "normal", [1]), ("b", family, [3, 2])]
    mixture = TemperedVBMixture(parts, n_init=1, random_state=0)
    bad = X.copy()
    bad[:, 3] = value
    with pytest.raises(ValueError, match=r"In the columns of 'b': .*column 3 of X"):
        mixture.fit(bad)
    with pytest.raises(ValueError, match=r"In the columns of 'b': .*column 3 of X"):
        mixture.partial_fit(X).predict(bad)
    empty = X.copy()
    number = 3 if family == "regression" else 2
    empty[:, number] = np.nan
    with pytest.raises(ValueError, match=f"columns of 'b': .*olumn {number} of X"):
        mixture.fit(empty)


CODES = np.random.default_rng(0).integers(0, 3, (60, 2)).astype(float)


@pytest.mark.parametrize("given", [3, [[2, 0, 1], [0.0, 1.0, 2.0]]])
def test_categories_that_all_occur_may_be_given(given):
    mixture = TemperedVBMixture("categorical", 2, random_state=0).fit(CODES)
    same = clone(mixture).set_params(family=Categorical(categories=given)).fit(CODES)
    assert same.elbo_ == mixture.elbo_
    assert_allclose(same.predict_proba(CODES), mixture.predict_proba(CODES), rtol=0)


@pytest.mark.parametrize("whole", [True, False])
def test_rare_categories_may_come_later(whole):
    """In a stream, in new rows, and in the folds of a search."""
    family = Categorical(categories=[[0, 1, 2, 7], [0, 1, 2]])
    if not whole:
        family = [("kind", family, [0, 1])]
    mixture = TemperedVBMixture(family, random_state=0, block_size=20)
    later = np.where(np.arange(120).reshape(60, 2) == 118, 7.0, CODES)
    stream = clone(mixture).partial_fit(CODES).partial_fit(later)
    assert_allclose(stream.elbo_, mixture.fit(np.vstack([CODES, later])).elbo_)
    assert np.isfinite(mixture.fit(CODES).score_samples(later)).all()
    search = GridSearchCV(mixture, {"n_components": [1, 2]}, cv=3).fit(later)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    later[3, 1] = 7.0
    for refusing in (mixture.fit, stream.partial_fit, stream.predict):
        with pytest.raises(ValueError, match="column 1 of X has the value 7"):
            refusing(later)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "categories"),
        ("all", "categories"),
        ([[0, 1, 2]], "1 lists, but the family Categorical has 2 columns"),
        ([[0, 1, 1], [0, 1, 2]], "should be a list of different numbers"),
        ([[], [0, 1, 2]], "should be a list of different numbers"),
        ([["a", "b"], [0, 1, 2]], "categories"),
    ],
)
def test_wrong_categories_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        TemperedVBMixture(Categorical(categories=given)).fit(CODES)
