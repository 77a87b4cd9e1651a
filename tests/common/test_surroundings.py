"""Answers do not depend on what surrounds an estimator: settings, types of parameters.

Nor on the class: a subclass may have parameters of its own. Nor on parameters that are
set after the fit.
"""

import functools
import inspect
import pickle
from copy import deepcopy

import numpy as np
import pytest
import sklearn
from cases import ESTIMATORS, METHODS, X, Y, cheap, fitted, learn
from scipy.sparse import csr_array, issparse
from sklearn.base import clone, is_regressor
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from states import changes, state_of
from streaming_laws import other_values

from skpacbayes import OnlineVIRegressor

pytestmark = pytest.mark.filterwarnings("ignore")  # of few iterations
SETTINGS = {
    "assume_finite": True,
    "enable_metadata_routing": True,
    "transform_output": "pandas",
    "working_memory": 1,
}
ANSWERS = "predict", "predict_proba", "score_samples", "transform", "decision_function"
NUMPY = {bool: np.bool_, int: np.int64, float: np.float64, str: np.str_}


def assert_same_answers(estimator, expected):
    """Two fitted estimators say the same of the rows that they learnt."""
    for method in ANSWERS:
        if hasattr(expected, method):
            ours, theirs = (getattr(e, method)(X) for e in (estimator, expected))
            np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=method)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_settings_and_scalars_of_numpy_change_nothing(name, method):
    """As a grid over `np.arange` sets parameters, and a careful user's `np.seterr`."""
    estimator = cheap(name)
    parameters = estimator.get_params(deep=False)
    estimator.set_params(
        **{
            key: NUMPY[type(value)](value)
            for key, value in parameters.items()
            if type(value) in NUMPY
        }
    )
    expected = fitted(name, method)
    with sklearn.config_context(**SETTINGS), np.errstate(all="raise"):
        learn(estimator, method, X, Y)
        assert_same_answers(estimator, expected)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_narrow_numbers_of_numpy_are_those_of_python(name, method):
    """As parameters, of an estimator and of one within, in fits and in answers.

    Their own arithmetic overflows, as int8(100) + 100 does, or has three digits.
    """
    narrow = narrow_numbers(cheap(name))
    plain = {key: value.item() for key, value in narrow.items()}
    ours, expected = (
        learn(deepcopy(cheap(name)).set_params(**given), method, X, Y)
        for given in (narrow, plain)
    )
    if method == "partial_fit":
        for estimator in (ours, expected):
            estimator.partial_fit(X[:1], Y[:1])
    assert_same_answers(ours, expected)
    kept = ours.get_params()
    assert all(kept[key] is value for key, value in narrow.items())


def test_wide_numbers_of_numpy_continue_a_stream():
    """Their digits beyond those of Python are no change of a parameter."""
    forgetting = np.longdouble(1) / 100
    model = OnlineVIRegressor(forgetting=forgetting, n_fourier=0)
    for _ in range(2):
        model.partial_fit(X, X[:, 0])
    assert model.forgetting is forgetting


def test_a_complex_number_is_no_parameter():
    with pytest.raises(ValueError, match="'forgetting' parameter"):
        OnlineVIRegressor(forgetting=np.complex64(0.1 + 2j)).fit(X, X[:, 0])


def narrow_numbers(estimator):
    """Return the numbers among parameters, in NumPy's types of the fewest digits."""
    parameters = estimator.get_params()
    narrow = {}
    for key, value in parameters.items():
        if type(value) is float:
            narrow[key] = np.float16(value)
        elif type(value) is int:
            narrow[key] = np.min_scalar_type(-value - 1).type(value)
    return narrow


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_rows_may_be_overwritten_after_the_call(name, method):
    """By a user who reads all batches into the same arrays."""
    weighted = has_fit_parameter(cheap(name), "sample_weight")
    sparse = get_tags(cheap(name)).input_tags.sparse
    for form in [np.array, csr_array] if sparse else [np.array]:
        states = []
        for overwritten in False, True:
            estimator, weights = cheap(name), np.ones(len(X))
            rows, targets = form(X), Y.copy()
            given = {"sample_weight": weights} if weighted else {}
            learn(estimator, method, rows, targets, **given)
            for count in (7, 1) if method == "partial_fit" else ():  # at once
                estimator.partial_fit(rows[:count], targets[:count])
            if overwritten:  # before a copy is made
                (rows.data if issparse(rows) else rows)[:] = 77.0
                targets[:], weights[:] = 1.0, 9.0
            states.append(state_of(estimator))
        assert not changes(*states)


def arrays_of(value):
    """Yield the arrays that a user reaches in an answer by public names."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_of(part)
    elif hasattr(value, "__dict__"):
        for key, part in vars(value).items():
            if not key.startswith("_"):
                yield from arrays_of(part)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_answers_and_their_rows_may_be_overwritten(name, method):
    """An answer is the user's, and no part of the state nor of the rows asked about."""
    expected = answers_of_fitted(name, method)
    estimator, rows = fitted(name, method), X.copy()
    questions = dict(questions_to(estimator, rows))
    for asked, question in questions.items():
        answer = answer_of(question)
        before = state_of(answer)
        rows[:] = 77.0
        assert not changes(before, state_of(answer)), asked
        rows[:] = X
        for array in arrays_of(answer):
            if array.flags.writeable and array.dtype.kind in "fiu":
                array[:] = 77
        np.testing.assert_array_equal(rows, X, err_msg=asked)
        assert not changes(expected[asked], state_of(answer_of(question))), asked


# Parameters that are arrays or lists, by the estimators that have them.
IN_PLACE = [
    ("TemperedVBGaussianMixture", {"mean_prior": np.array([1.0, 2.0])}),
    ("TemperedVBGaussianMixture", {"covariance_prior": 9.0 * np.eye(2)}),
    ("TemperedVBMixture", {"family": ["normal", "poisson"]}),
    ("SparseAdditiveGibbsClassifier", {"categorical_features": np.array([0])}),
    ("SparseAdditiveGibbsClassifier", {"class_weight": {1.0: 2.0, 2.0: 1.0}}),
    ("SparseAdditiveGibbsPoissonRegressor", {"feature_range": [0.0, 30.0]}),
    ("SparseAdditiveGibbsRanker", {"feature_range": [0.0, 30.0]}),
    ("SparseAdditiveGibbsRegressor", {"categorical_features": np.array([0])}),
    ("ABCPosteriorKDE", {"bounds": np.array([[0.0, 3.0]])}),
]


@pytest.mark.parametrize(
    ("name", "parameter", "method"),
    [
        (name, parameter, method)
        for name, parameter in IN_PLACE
        for method in ("fit", "partial_fit")
        if (name, method) in METHODS
    ],
)
def test_parameters_changed_in_place_after_the_fit_change_no_answer(
    name, parameter, method
):
    """Many answers are computed when they are first asked for."""
    expected = all_answers(learn(cheap(name, **deepcopy(parameter)), method, X, Y))
    own = deepcopy(parameter)
    estimator = learn(cheap(name, **own), method, X, Y)
    loaded = pickle.loads(pickle.dumps(estimator))
    for other in own, loaded.get_params(deep=False):
        for values in (other[key] for key in parameter):
            if isinstance(values, np.ndarray):
                values[...] = 1
            elif isinstance(values, dict):
                values.clear()
            else:
                values[:] = values[:1]
    for changed in estimator, loaded:
        found = all_answers(changed)
        for answer in expected.keys() & found.keys():
            assert not changes(expected[answer], found[answer]), answer


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_assume_finite_lets_no_infinity_in(name, method):
    """One row would spoil a stream: neither by rows, targets, weights nor questions."""
    estimator, table, numbers = fitted(name, method), X.copy(), Y.copy()
    before = state_of(estimator)
    table[7, 1] = numbers[7] = np.inf
    learns = getattr(estimator, method)
    tries = [(table, Y, {}), (table[7:8], Y[7:8], {})]
    if is_regressor(estimator):
        tries += [(X, numbers, {}), (X[7:8], numbers[7:8], {})]
    if has_fit_parameter(estimator, "sample_weight"):
        tries += [(X, Y, {"sample_weight": numbers})]
    with sklearn.config_context(assume_finite=True):
        for rows, targets, weights in tries:
            with pytest.raises(ValueError, match=r"infinity|minimum of 2|least 2"):
                learns(rows, targets, **weights)
        assert not changes(before, state_of(estimator))
        for answer in ANSWERS:
            selects = answer == "transform" and isinstance(estimator, SelectorMixin)
            if hasattr(estimator, answer) and not selects:
                with pytest.raises(ValueError, match="infinity"):
                    getattr(estimator, answer)(table)


@pytest.mark.parametrize(("name", "method"), METHODS)
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_probabilities_too_small_for_a_float_are_zero(name, method, scale):
    """As an underflow is, unless a user asks NumPy to raise at it."""
    rows = scale * np.vstack([X[:3], 30.0 * X[:3], X[:3] + 1e4])
    with np.errstate(all="raise"):
        estimator = learn(cheap(name), method, scale * X, Y)
        for answer in (*ANSWERS, "score"):
            given = {"y": Y[:9]} if answer == "score" else {}
            if hasattr(estimator, answer):
                getattr(estimator, answer)(rows, **given)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_subclass_with_parameters_of_its_own(name, method):
    class Mine(ESTIMATORS[name]):
        def __init__(self, note="a"):
            self.note = note
            super().__init__(**cheap(name).get_params(deep=False))

    estimator = learn(clone(Mine(note="b")), method, X, Y)
    assert estimator.get_params(deep=False) == {"note": "b"}
    assert_same_answers(estimator, fitted(name, method))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_subclass_whose_parameters_are_properties(name, method):
    """As those that are checked when they are set, or have an older name."""

    class Mine(ESTIMATORS[name]):
        pass

    def hold(parameter):
        hidden = f"_own_{parameter}"
        return property(
            lambda self: getattr(self, hidden),
            lambda self, value: setattr(self, hidden, value),
        )

    parameters = cheap(name).get_params(deep=False)
    for parameter in parameters:
        setattr(Mine, parameter, hold(parameter))
    estimator = learn(clone(Mine(**parameters)), method, X, Y)
    others = {
        key: value
        for key, value in other_values(fitted(name, method))
        if key not in ("random_state", *Mine._may_change)
    }
    estimator = deepcopy(estimator).set_params(**others)
    assert all(getattr(estimator, key) is value for key, value in others.items())
    assert_same_answers(estimator, fitted(name, method))


# What a method may be given beside rows; one that needs more is not asked.
GIVEN = {"X": X, "y": Y, "h": 3, "n_samples": 3, "random_state": 0}
GIVEN |= {"n_iter": 3, "n_repeats": 2}  # of the evidence of a number of states
CHANGING = "absorb", "fit", "partial_fit", "set_", "get_", "warm", "to_arviz"


def questions_to(estimator, rows=X):
    """Yield names of methods that change nothing, and calls of them, for rows."""
    for name in dir(estimator):
        if name.startswith(("_", *CHANGING)) or not hasattr(estimator, name):
            continue
        method = getattr(estimator, name)
        if not inspect.ismethod(method):
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty]
        if not GIVEN.keys() >= set(needed) or not parameters:
            continue
        given = GIVEN | {"X": rows}
        asked = {p.name: given[p.name] for p in parameters if p.name in given}
        if name == "certificate":  # of the rows that were learnt
            asked = {key: asked[key] for key in needed}
        yield name, functools.partial(method, **asked)


def answer_of(question):
    """What a call returns, or the words of its refusal."""
    try:
        return question()
    except (NotImplementedError, ValueError) as refusal:
        return str(refusal)


def all_answers(estimator):
    """States of the fitted attributes and of the answers for rows, by name."""
    questions = dict(questions_to(estimator))
    found = {
        name: state_of(getattr(estimator, name))
        for name in dir(estimator)
        if name.endswith("_")
        and not name.startswith(("_", *CHANGING))
        and hasattr(estimator, name)
    }
    return found | {name: state_of(answer_of(ask)) for name, ask in questions.items()}


@functools.cache
def answers_of_fitted(name, method):
    return all_answers(fitted(name, method))


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_parameters_set_after_the_fit_change_no_answer(name, method):
    """But for those that may change within a stream, as the docstring says."""
    expected = answers_of_fitted(name, method)
    estimator = fitted(name, method)
    others = dict(other_values(estimator))
    for known in ("random_state", *getattr(estimator, "_may_change", ())):
        others.pop(known, None)
    estimator = pickle.loads(pickle.dumps(estimator))
    assert estimator._as_fitted() is estimator
    estimator.set_params(**others)
    for now in estimator, deepcopy(estimator):
        found = all_answers(now)
        for answer in expected.keys() & found.keys():  # parameters may hide a method
            assert not changes(expected[answer], found[answer]), answer
