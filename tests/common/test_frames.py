"""Data frames of every kind come in with their names, and go out on request."""

import functools
import inspect
import re
import warnings

import numpy as np
import pytest
from cases import ESTIMATORS, META, METHODS, X, Y, cheap, fitted, learn, rows
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, is_classifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from states import changes, state_of

from skpacbayes import _validation

pytestmark = pytest.mark.filterwarnings("ignore")  # chains of twenty sweeps
KINDS = ["pandas", "polars", "pyarrow"]
TAKING_MISSING = [
    name for name in ESTIMATORS if get_tags(cheap(name)).input_tags.allow_nan
]
WEIGHTED = [
    name for name in ESTIMATORS if has_fit_parameter(cheap(name), "sample_weight")
]
OF_LABELS = [
    (name, method)
    for name, method in METHODS
    if is_classifier(cheap(name)) or name == "SparseAdditiveGibbsRanker"
]
TRANSFORMERS = [name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "transform")]


def frame(kind, columns):
    """A table with named columns, of one of the libraries."""
    library = pytest.importorskip(kind, reason=f"{kind} is not installed")
    if kind == "pyarrow":
        return library.table(columns)
    return library.DataFrame(columns)


def answers(estimator, X):
    """What an estimator says of rows."""
    methods = ("predict", "score_samples", "transform")
    return [getattr(estimator, m)(X) for m in methods if hasattr(estimator, m)]


@functools.cache
def answers_of_array(name, method):
    """What an estimator says of the rows that it learnt, all plain arrays."""
    return answers(fitted(name, method), X)


@pytest.mark.parametrize(
    ("name", "method", "kind"),
    [(*case, KINDS[place % 3]) for place, case in enumerate(METHODS)],
)
def test_a_frame_is_its_array_with_names(name, method, kind):
    """All estimators read frames alike, whatever their kind."""
    table = frame(kind, {"dose": X[:, 0], "age": X[:, 1]})
    if not hasattr(StandardScaler().fit(table), "feature_names_in_"):
        pytest.skip(f"this scikit-learn reads no names of this {kind}")
    of_frame = learn(cheap(name), method, table, Y)
    assert list(of_frame.feature_names_in_) == ["dose", "age"]
    of_array = answers_of_array(name, method)
    for ours, expected in zip(answers(of_frame, table), of_array, strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - META.keys()))
def test_a_pandas_frame_without_names_is_its_array(name, monkeypatch):
    """Also for a stream row by row, without the detour by `validate_data`."""
    pandas = pytest.importorskip("pandas")
    estimators = [fitted(name), fitted(name)]
    checked = []
    monkeypatch.setattr("skpacbayes._base.validate_data", checked.append)
    for method in ("partial_fit", "predict", "transform", "score_samples"):
        if not hasattr(estimators[0], method):
            continue
        for size in (1, 3):
            found = [
                learn(estimator, method, form(X[:size]), Y[:size])
                if method == "partial_fit"
                else getattr(estimator, method)(form(X[:size]))
                for estimator, form in zip(
                    estimators, (pandas.DataFrame, np.copy), strict=True
                )
            ]
            assert not changes(*map(state_of, found)), (method, size)
    assert checked == []


@pytest.mark.parametrize("by", [None, "target", "feature"])
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_what_a_fit_asks_itself_needs_no_names(name, method, by):
    """Of rows in random order, or sorted, so that their order is checked."""
    n = 40 if name in META else 100  # many filters take long
    array, y = rows(n)
    y = np.where(np.arange(n) % 5, y, 3.0 - y)  # some rows are hard to predict
    order = {
        None: np.arange(n),
        "target": y.argsort(),
        "feature": array[:, 0].argsort(),
    }
    array, y = array[order[by]], y[order[by]]
    table = frame("pandas", {"dose": array[:, 0], "age": array[:, 1]})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X does not have valid feature names")
        learnt = learn(cheap(name), method, table, y)
        answers(learnt, table[:40])
        learnt.score(table[:40], y[:40])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SubspaceMixture", "OnlineVIRegressor"])
def test_columns_may_have_any_name(name, kind):
    """Also those of attributes that other kinds of arrays and tables have."""
    expected = answers_of_array(name, "fit")
    for pair in (("_mask", "column_names"), ("columns", "dtype"), ("mask", "rows")):
        table = frame(kind, dict(zip(pair, X.T, strict=True)))
        for ours, theirs in zip(
            answers(cheap(name).fit(table, Y), table), expected, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", [*KINDS, "array", "list"])
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_words_are_refused_by_column(name, method, kind):
    columns = {"dose": X[:, 0], "town": ["1.5", "Oslo", *["Rome"] * 38]}
    if kind in KINDS:
        table, column = frame(kind, columns), "town"
    else:
        table = np.array(list(columns.values()), dtype=object).T
        table, column = (table, 1) if kind == "array" else (table.tolist(), 1)
    with pytest.raises(ValueError, match="Oslo") as raised:
        learn(cheap(name), method, table, Y)
    said = f"Column {column!r} of X has 'Oslo', but {name} needs numbers: drop the"
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ClusteredParticleFilter", "OnlineVIRegressor"])
def test_dates_are_refused_by_column(name, kind):
    days = np.datetime64("2020-01-01") + np.arange(40)
    table = frame(kind, {"dose": X[:, 0], "day": days.astype("datetime64[us]")})
    with pytest.raises(
        ValueError,
        match=r"Column 'day' of X has .*2020.* needs numbers.*convert it to numbers",
    ):
        learn(cheap(name), "fit", table, Y)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([b"red"] * 40, r"1 of X has b'red', .* encode it"),
        ([10**400] * 40, r"1 of X has an integer above 1\.8e308 .* divide it"),
    ],
)
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_bytes_and_huge_integers_are_refused_by_column(name, method, column, said):
    table = np.array([X[:, 0], column], dtype=object).T
    with pytest.raises(ValueError, match=said):
        learn(cheap(name), method, table, Y)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_huge_integers_are_refused_by_argument(argument, sign):
    given = {"y": Y, "sample_weight": None} | {argument: [sign * 10**400] * 40}
    with pytest.raises(ValueError, match=f"{argument} has an integer above .* divide"):
        cheap("OnlineVIRegressor").fit(X, **given)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_dictionaries_are_refused_with_a_remedy(name, method):
    with pytest.raises(TypeError, match=r"X is a list of dictionaries, .* convert it"):
        learn(cheap(name), method, [{"dose": 1.0}] * 40, Y)


def test_periods_are_refused_by_column():
    pandas = pytest.importorskip("pandas")
    months = pandas.period_range("2020-01", periods=40, freq="M")
    table = pandas.DataFrame({"dose": X[:, 0], "month": months})
    with pytest.raises(ValueError, match="Column 'month' of X has Period"):
        cheap("OnlineVIRegressor").fit(table, Y)


@pytest.mark.parametrize("name", ["OnlineVIRegressor", *TRANSFORMERS])
def test_words_are_refused_in_a_question(name):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["dose", "town"])
    estimator: BaseEstimator = cheap(name).fit(table, Y)
    with pytest.raises(ValueError, match="Column 'town' of X has 'Oslo'"):
        estimator.predict(table.assign(town="Oslo"))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_mask_is_refused_where_it_hides_something(name, method):
    nothing_hidden = np.ma.masked_array(X)
    learnt = learn(cheap(name), method, nothing_hidden, Y)
    expected = answers_of_array(name, method)
    for ours, theirs in zip(answers(learnt, nothing_hidden), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    table = np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) % 7 == 0)
    for hidden in table, list(table):
        with pytest.raises(ValueError, match="12 masked values"):
            learn(cheap(name), method, hidden, Y)
        for question in ("predict", "score_samples", "transform", "inverse_transform"):
            if hasattr(learnt, question):
                with pytest.raises(ValueError, match="12 masked values"):
                    getattr(learnt, question)(hidden)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_lazy_table_is_collected_by_its_user(name, method):
    table = frame("polars", {"dose": X[:, 0], "age": X[:, 1]})
    with pytest.raises(TypeError, match=r"LazyFrame.* call its method collect first"):
        learn(cheap(name), method, table.lazy(), Y)
    for question in ("predict", "score_samples", "sufficient_statistics"):
        estimator = fitted(name, method)
        if hasattr(estimator, question):
            with pytest.raises(TypeError, match="call its method collect first"):
                getattr(estimator, question)(table.lazy(), *[Y] * ("suff" in question))


class Elsewhere:
    """An array of another library, as those of the array API, on some device."""

    def __init__(self, values, device):
        self.values, self.device, self.shape = values, device, values.shape

    def __dlpack__(self):
        raise NotImplementedError

    def __array__(self, dtype=None, copy=None):
        if self.device != "cpu":
            raise RuntimeError(f"no conversion from {self.device}")
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_an_array_that_numpy_does_not_read_is_passed_by_its_user(
    name, method, monkeypatch
):
    """It is on another device, or scikit-learn would compute in its library."""
    far, near = Elsewhere(X, "cuda:0"), Elsewhere(X, "cpu")
    wanted = r"Elsewhere on device cuda:0, .*: copy it to the CPU and pass a NumPy arr"
    with pytest.raises(TypeError, match=wanted):
        learn(cheap(name), method, far, Y)
    learnt = fitted(name, method)
    questions = [q for q in ("predict", "transform") if hasattr(learnt, q)]
    for question in questions:
        with pytest.raises(TypeError, match=wanted):
            getattr(learnt, question)(far)
        getattr(learnt, question)(near)
    monkeypatch.setattr(_validation, "get_config", lambda: {"array_api_dispatch": True})
    wanted = "Elsewhere while array_api_dispatch is on.*: pass numpy.asarray of it"
    with pytest.raises(TypeError, match=wanted):
        learn(cheap(name), method, near, Y)
    for question in questions:
        with pytest.raises(TypeError, match=wanted):
            getattr(learnt, question)(near)


@pytest.mark.parametrize(("name", "method"), OF_LABELS)
def test_a_missing_label_is_named(name, method):
    """None and its kin among words, dates or objects, in `y` and in `classes`."""
    pandas = pytest.importorskip("pandas")
    words = np.array(["healthy", "ill"] * 20, dtype=object)
    days = np.array(["2020-01-01", "2020-01-02"] * 20, dtype="datetime64[D]")
    for labels, missing in (
        (words, None),
        (words, np.nan),
        (words, pandas.NA),
        (days, np.datetime64("NaT")),
    ):
        holes = labels.copy()
        holes[7] = missing
        tries = [(holes, labels[:2])]
        if method == "partial_fit":
            tries += [(labels, holes[6:9])]
        for y, classes in tries:
            known = {"classes": classes} if method == "partial_fit" else {}
            # NumPy makes strings of a list of words with NaN.
            for given in [y, y.tolist()] if labels is words else [y]:
                with pytest.raises(ValueError, match="which is not a label: remove"):
                    getattr(cheap(name), method)(X, given, **known)


@pytest.mark.parametrize(("name", "method"), OF_LABELS)
def test_words_beside_other_labels_are_named(name, method):
    """Else NumPy would make strings of the numbers of a list, and 1 never be learnt."""
    for other in 1, True, 2.5, b"ill":
        labels = ["healthy", other]
        known = {"classes": labels} if method == "partial_fit" else {}
        for y in labels * 30, np.array(labels * 30, dtype=object):
            estimator = cheap(name)
            before = state_of(estimator)
            with pytest.raises(ValueError, match=f"'healthy' and {other!r}: make all"):
                getattr(estimator, method)(X, y, **known)
            assert not changes(before, state_of(estimator))


# `ABCPosteriorKDE` refuses an integer, which may be the third part of a table.
@pytest.mark.parametrize("name", WEIGHTED)
def test_one_number_is_the_weight_of_every_row(name):
    kinds = [X, csr_array(X)] if get_tags(cheap(name)).input_tags.sparse else [X]
    for given in kinds:
        of_number = cheap(name).fit(given, Y, sample_weight=2.0)
        of_array = cheap(name).fit(given, Y, sample_weight=np.full(len(X), 2.0))
        assert not changes(state_of(of_number), state_of(of_array))


@pytest.mark.parametrize("name", TAKING_MISSING)
def test_a_column_without_a_value_is_named(name):
    """Refused or named, except by a filter: its state is then that of the model."""
    array, y = rows(60)
    table = frame("pandas", {"dose": array[:, 0], "age": np.full(60, np.nan)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            cheap(name).fit(table, y)
            said = " ".join(str(w.message) for w in caught)
        except ValueError as error:
            said = str(error)
    named = re.search(
        r"features \[('age'|1)\] \(NaN in all rows|1 of X has no value", said
    )
    assert named or "Particle" in name or name == "SMC2", said


@pytest.mark.parametrize("name", TAKING_MISSING)
def test_missing_values_of_nullable_columns_are_missing_values(name):
    pandas = pytest.importorskip("pandas")
    holes = X.copy()
    holes[4, 0] = holes[9, 1] = np.nan
    table = pandas.DataFrame(holes, columns=["dose", "age"])
    of_array = cheap(name).fit(table, Y)
    of_frame = cheap(name).fit(table.astype("Int64"), Y)
    for ours, expected in zip(
        answers(of_frame, table.astype("Float64")),
        answers(of_array, table),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_na_among_objects_is_read_as_none(name, method):
    """In rows, targets and weights, scikit-learn says that NA is no number."""
    pandas = pytest.importorskip("pandas")

    def outcome(missing, part, form):
        given = {"X": X.astype(object), "y": Y.astype(object)}
        if name in WEIGHTED:
            given["sample_weight"] = np.ones(len(X), dtype=object)
        values = given[part]
        values[4] = missing
        forms = {"list": values.tolist(), "array": values}
        if form == "table":
            make = pandas.DataFrame if values.ndim > 1 else pandas.Series
            forms["table"] = make(values)
        given[part] = forms[form]
        estimator = fitted(name, method) if form == "array" else cheap(name)
        try:
            learn(estimator, method, **given)
        except (ValueError, TypeError) as error:
            return re.sub("None|<NA>", "", str(error))
        return state_of(estimator)

    parts = ["X", "y", *(["sample_weight"] if name in WEIGHTED else [])]
    for form, part in zip(["list", "array", "table"], 2 * parts, strict=False):
        found, expected = (outcome(m, part, form) for m in (pandas.NA, None))
        assert type(found) is type(expected), (form, part, found)
        if isinstance(expected, str):
            assert found == expected
            assert "NAType" not in found
            assert "ambiguous" not in found
        else:
            assert not changes(found, expected)


@pytest.mark.parametrize("name", TAKING_MISSING)
def test_a_stream_whose_columns_have_no_value_so_far_can_be_looked_at(name):
    """And learns them from the rows that come."""
    estimator = cheap(name)
    if not hasattr(estimator, "partial_fit"):
        pytest.skip(f"{name} has no partial_fit")
    holes = X.copy()
    holes[:3, 0] = np.nan
    learn(estimator, "partial_fit", holes[:3], Y[:3])
    assert estimator._repr_html_()
    inspect.getmembers(estimator)
    learn(estimator, "partial_fit", holes[3:], Y[3:])
    assert all(np.isfinite(values).all() for values in answers(estimator, X))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_set_output(name, kind):
    table = frame(kind, {"dose": X[:, 0], "age": X[:, 1]})
    estimator = cheap(name).fit(table, Y)
    expected = estimator.transform(table)
    out = estimator.set_output(transform=kind).transform(table)
    assert type(out) is type(table)
    assert list(out.columns) == list(estimator.get_feature_names_out())
    np.testing.assert_array_equal(np.asarray(out), expected)
