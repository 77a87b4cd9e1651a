"""What is passed to a method is checked: an error names it, and there is no answer."""

import datetime
import inspect
import pickle
import time

import numpy as np
import pytest
from cases import ESTIMATORS, META, X, Y, cheap, fitted, learn, rows
from cases import METHODS as CASES
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import InvalidParameterError
from states import changes, state_of
from streaming_laws import read_only

from skpacbayes import PACOClusterer

try:
    import resource
except ImportError:  # Windows
    resource = None

NAN = float("nan")
BAD = {
    "confidence": (0, 95, NAN, "high"),
    "explained": (-1, 98, NAN),
    "false_alarm_rate": (-0.1, 5, NAN, "low"),
    "feature": (-1, 9, 0.5),
    "h": (0, -1, 1.5),
    "horizon": (0, 1.5),
    "labels": (-1, 50, 0.5),
    "level": (0, 90, NAN),
    "memory": (-1, 5, NAN, "1"),
    "n_iter": (0, 1.5),
    "n_neighbors": (0, 10**6),
    "n_repeats": (0, 1, 1.5),
    "n_samples": (0, -1, 1.5),
    "n_states": ([], [0], [1.5], [2, 2], [10**6]),
    "n_steps": (0, 1.5),
    "n_tokens": (-1, 1.5),
    "n_trajectories": (0, 1.5),
    "of": ("rows",),
    "quantiles": ([-0.1], [50], [NAN]),
    "state": (-1, 9),
    "threshold": (-1, 50, NAN),
}
GIVEN = {"X", "y", "grid", "statistics"}
FREE = {  # rows, seeds, and what is true or false
    *("sample_weight", "inputs", "lengths", "groups", "columns", "input_features"),
    *("random_state", "return_std", "return_distance", "indices", "deep"),
}


def methods_of(public):
    """Names and parameters of the public methods of the package that do not fit."""
    for name in dir(public):
        if name.startswith(("_", "fit", "set_", "get_metadata", "partial_fit")):
            continue
        function = getattr(public, name, None)
        ours = getattr(function, "__module__", "").startswith("skpacbayes")
        if ours and callable(function):
            parameters = dict(inspect.signature(function).parameters)
            del parameters["self"]
            yield name, parameters


METHODS = {name: dict(methods_of(public)) for name, public in ESTIMATORS.items()}
ARGUMENTS = {name: set().union(*own.values()) for name, own in METHODS.items()}
OF_NUMBERS = [name for name in ESTIMATORS if is_regressor(cheap(name))]
CHECKED = [name for name in ESTIMATORS if ARGUMENTS[name] & BAD.keys()]


WITHIN = [("ClusteredParticleFilter", "clusterer"), *((n, "estimator") for n in META)]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("name", "part"), WITHIN)
def test_parameters_of_an_estimator_within_are_validated(name, part, method):
    """By us: scikit-learn leaves out validation within a fit."""
    within = clone(getattr(cheap(name), part) or cheap("PACOClusterer"))
    whole = cheap(name, **{part: within.set_params(random_state="none")})
    if hasattr(whole, method):
        match = f"'random_state' parameter of {type(within).__name__}"
        with pytest.raises(InvalidParameterError, match=match):
            getattr(whole, method)(rows(5)[0])


@pytest.mark.parametrize(("name", "method"), CASES)
def test_a_class_is_no_parameter(name, method):
    """Where an object is needed: the message names the parameter, or its constraint."""
    for parameter, value in cheap(name).get_params(deep=False).items():
        if parameter != "random_state":
            public = type(value) if hasattr(value, "get_params") else PACOClusterer
            estimator = cheap(name, **{parameter: public})
            if not hasattr(estimator, method):  # its value decides
                continue
            with pytest.raises((ValueError, TypeError), match=parameter):
                learn(estimator, method, *rows(20))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_argument_is_known_here(name):
    assert ARGUMENTS[name] <= {*BAD, *GIVEN, *FREE}


def test_quantiles_have_one_default():
    """An interval of 90 %, with the median."""
    defaults = {
        (name, method): parameters["quantiles"].default
        for name in ESTIMATORS
        for method, parameters in METHODS[name].items()
        if "quantiles" in parameters and method != "emission_density"  # optional
    }
    assert len(defaults) > 3
    assert set(defaults.values()) == {(0.05, 0.5, 0.95)}, defaults


COUNTS = {"h": 100, "horizon": 3, "n_neighbors": 20, "n_samples": 100}
COUNTS |= {"n_steps": 100, "n_tokens": 100, "n_trajectories": 100}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X begins with the first rows that were learnt")
@pytest.mark.parametrize(
    "name", [n for n in ESTIMATORS if ARGUMENTS[n] & COUNTS.keys()]
)
def test_a_count_may_be_an_integer_of_eight_bits(name):
    """Its sum with another number above 127 would overflow, in silence in arrays."""
    many = np.resize(X, (150, X.shape[1]))
    values = {"X": many, "y": many, "grid": X[:3, :1], "random_state": 0}
    for method, parameters in METHODS[name].items():
        for count in COUNTS.keys() & parameters if method != "to_arviz" else ():
            given = {key: values[key] for key in parameters if key in values}
            ours, expected = (
                getattr(fitted(name), method)(**{**given, count: number})
                for number in (np.int8(COUNTS[count]), COUNTS[count])
            )
            assert not changes(state_of(ours), state_of(expected)), method


ALLOCATED = {"h", "n_samples", "n_steps", "n_trajectories"}  # an answer's axes


@pytest.mark.skipif(resource is None, reason="no limit of the memory of a process")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if ARGUMENTS[n] & ALLOCATED])
def test_an_answer_larger_than_the_memory_is_refused_before_it_is_computed(name):
    """Whose shape or argument the error gives; nothing is drawn from the generator.

    The limit of the addresses makes the test safe: without it, some systems give the
    memory of 10^9 numbers, and end the process when they are written.
    """
    model = fitted(name)
    values = {"X": X, "y": X[:, 0], "grid": X[:3, :1]}
    limits = resource.getrlimit(resource.RLIMIT_AS)
    for method, parameters in METHODS[name].items():
        given = {key: values[key] for key in parameters if key in values}
        counts = ALLOCATED & parameters.keys() if method != "to_arviz" else ()
        for count in counts:
            getattr(model, method)(**given, **{count: 2})  # compiles, imports, caches
            before = state_of(model)
            for number in (10**9, 10**12, 10**30):
                resource.setrlimit(resource.RLIMIT_AS, (7 * 10**9, limits[1]))
                began = time.process_time()
                try:
                    with pytest.raises((MemoryError, ValueError)) as refusal:
                        getattr(model, method)(**given, **{count: number})
                finally:
                    resource.setrlimit(resource.RLIMIT_AS, limits)
                assert time.process_time() - began < 1.0
                named = number > 2**48 or method == "forecast"
                said = f"{count}=1" if named else str(number)
                assert said in str(refusal.value)
                assert not changes(before, state_of(model))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHECKED)
def test_a_wrong_argument_is_refused_by_its_name(name):
    X, y = rows(20)
    answered, estimator = [], learn(cheap(name), "fit", X, y)
    values = {"X": X, "y": y, "grid": X[:3], "feature": 0, "n_steps": 2, "h": 2}
    if "absorb" in METHODS[name]:
        statistics = estimator.sufficient_statistics
        targets = (y,) if "y" in METHODS[name]["sufficient_statistics"] else ()
        values["statistics"] = statistics(X, *targets)
    for method, parameters in METHODS[name].items():
        required = {
            key: values[key]
            for key, parameter in parameters.items()
            if parameter.default is parameter.empty and key in values
        }
        for wrong in BAD.keys() & parameters if hasattr(estimator, method) else ():
            for value in BAD[wrong]:
                call = f"{method}({wrong}={value!r})"
                try:
                    getattr(estimator, method)(**{**required, wrong: value})
                except (ValueError, TypeError) as error:
                    if wrong not in str(error):
                        answered.append(f"{call}: {error}")
                else:
                    answered.append(call)
    assert answered == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_targets_that_are_no_numbers_are_refused_in_every_call(name):
    """Also where they are among objects, which a list with None becomes."""
    X, y = rows(20)
    begun = [cheap(name)]
    if hasattr(begun[0], "partial_fit"):
        begun.append(learn(cheap(name), "partial_fit", X, y))
    for bad in None, NAN, float("inf"), -float("inf"), np.float64(NAN), np.float32(NAN):
        for count in 20, 1:
            targets = [*y[: count - 1].tolist(), bad]
            for estimator in begun if count > 1 else begun[1:]:
                method = "partial_fit" if hasattr(estimator, "partial_fit") else "fit"
                before = state_of(estimator)
                for given in targets, np.array(targets, dtype=object):
                    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
                        learn(estimator, method, X[:count], given)
                assert not changes(before, state_of(estimator))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_dates_and_words_are_refused_as_targets(name):
    X, y = rows(40)
    estimator = learn(cheap(name), "fit", X, y)
    learns = [method for method in ("fit", "partial_fit") if hasattr(estimator, method)]
    span = datetime.timedelta(hours=2)
    targets = {
        "1970": np.arange(1).astype("datetime64[D]"),
        "delta": np.arange(1).astype("m8[s]"),
        "Oslo": np.array(["Oslo"]),
        "0.25": np.array(["0.25"]),
        "b'0.75'": np.array([b"0.75"]),
        "'0.5'": np.array(["0.5"], dtype=object),
        "timedelta.*7200": np.array([span]),
    }
    for said, strange in targets.items():
        for target in strange, list(strange):
            for method in learns:
                wanted = f"y has .*{said}.* needs numbers"
                with pytest.raises(ValueError, match=wanted):
                    learn(estimator, method, X[:1], target)


TABLE, TARGETS = rows(20)
ARRAYS = {  # a valid value of each argument that is an array
    "X": TABLE,
    "classes": np.array([1.0, 2.0]),
    "grid": TABLE[:3],
    "groups": np.repeat([0.0, 1.0], 10),
    "inputs": TABLE[:, :1],
    "labels": np.array([0, 0]),
    "lengths": np.array([10, 10]),
    "quantiles": np.array([0.25, 0.5]),
    "sample_weight": np.ones(20),
    "y": TARGETS,
}
SCALARS = {"feature": 0, "n_steps": 20, "h": 20, "n_clusters": 2}


def forms_of(values, *, labels):
    """Arrays that NumPy reads as numbers: without masks, imaginary parts, units.

    Labels may be anything but missing.
    """
    hidden = np.arange(values.size).reshape(values.shape) == 0
    yield np.ma.masked_array(values, mask=hidden)
    if not labels:
        spans = values.astype("m8[s]")
        objects = np.array([*spans.ravel(), None], dtype=object)
        yield from (values + 1j, spans, spans + np.datetime64("2020-01-01"))
        yield objects[:-1].reshape(values.shape)


def calls_with_arrays(name):
    """Calls of a fitted and of a new estimator, and which argument is an array."""
    fitted, new = learn(cheap(name), "fit", TABLE, TARGETS), cheap(name)
    own = ARRAYS | ({"grid": TARGETS} if name == "ABCPosteriorKDE" else {})
    if "absorb" in METHODS[name]:
        targets = (TARGETS,) if is_regressor(fitted) else ()
        own = own | {"statistics": fitted.sufficient_statistics(TABLE, *targets)}
    learning = {
        method: dict(inspect.signature(getattr(new, method)).parameters)
        for method in ("fit", "partial_fit", "__call__")
        if hasattr(new, method)
    }
    for method, parameters in (METHODS[name] | learning).items():
        needed = {"X", "y"} if method in ("fit", "partial_fit") else set()
        needed |= {key for key, p in parameters.items() if p.default is p.empty}
        if method == "partial_fit" and "classes" in parameters:
            needed |= {"classes"}
        given = {key: (own | SCALARS)[key] for key in needed & {*own, *SCALARS}}
        of_targets = is_regressor(new) or is_classifier(new) or "Ranker" in name
        for array in own.keys() & parameters:
            if (array == "y" and not of_targets) or method == "certificate":
                continue  # not used
            for estimator in (fitted, new):
                if hasattr(estimator, method):
                    yield estimator, method, given, array, own[array]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_no_number_is_not_read_as_one(name):
    """In every array of every method: rows, weights, statistics, grids and others."""
    answered = []
    for estimator, method, given, array, values in calls_with_arrays(name):
        of_labels = array == "y" and not is_regressor(estimator)
        labels = of_labels or array in ("groups", "classes")
        # A selector returns columns as they are, and reads no number.
        labels |= isinstance(estimator, SelectorMixin) and "transform" in method
        before = state_of(estimator)
        for wrong in forms_of(values, labels=labels):
            try:
                getattr(estimator, method)(**{**given, array: wrong})
            except (ValueError, TypeError, NotFittedError):
                continue
            answered.append(f"{method}({array}={wrong!r:.60})")
            break
        assert not changes(before, state_of(estimator)), (method, array)
    assert answered == []


WEIGHTS_OF_NONE = {  # what is no weight, of the last of 20 rows
    "negative": -1.0,
    "-1e-300": -1e-300,
    "NaN": NAN,
    "infinite": float("inf"),
    "above 1e100": 1e101,
    "a string": "2",
    "a date": datetime.date(2020, 1, 1),
    "complex": 1j,
}
NEEDS_SOME = ("fit", "score", "certificate")  # others: rows without weight are absent
WEIGHTED = [
    (name, method)
    for name, public in ESTIMATORS.items()
    for method in dir(public)
    if not method.startswith(("_", "set_", "get_"))
    and callable(getattr(public, method, None))
    and "sample_weight" in inspect.signature(getattr(public, method)).parameters
    # Only with options, which the tests of the family have:
    and method != "certificate"
]


def test_every_score_has_its_weights_checked_by_us():
    for name, method in WEIGHTED:
        assert getattr(ESTIMATORS[name], method).__module__.startswith("skpacbayes")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "method"), WEIGHTED)
def test_what_is_no_weight_is_refused_by_every_method(name, method):
    """The error says so, and nothing is learnt."""
    X, y = rows(20)
    fresh = method in ("fit", "partial_fit")
    estimator = cheap(name) if fresh else learn(cheap(name), "fit", X, y)
    function, before = getattr(estimator, method), state_of(estimator)
    known = inspect.signature(function).parameters
    given = {"X": X, "y": y} if "y" in known else {"X": X}
    given |= {"classes": [1.0, 2.0]} if "classes" in known else {}
    wrong = {key: [*[1.0] * 19, value] for key, value in WEIGHTS_OF_NONE.items()}
    wrong |= {"a row short": np.ones(19), "of two columns": np.ones((20, 2))}
    wrong["masked"] = np.ma.masked_array(np.ones(20), np.arange(20) == 3)
    wrong |= {"a negative number": -1.0, "a number that is NaN": NAN}
    if method in NEEDS_SOME:
        wrong["zero"] = np.zeros(20)
    for weights in wrong.values():
        with pytest.raises((ValueError, TypeError), match=r"[Ww]eight|complex"):
            function(**given, sample_weight=weights)
        assert not changes(before, state_of(estimator))


@pytest.mark.parametrize("name", [n for n, method in WEIGHTED if method == "score"])
def test_weights_of_a_score_count_rows(name):
    """A weight of 2 is two rows, and a weight of 0 no row; so is a constant weight."""
    model, (X, y) = fitted(name), rows(30, seed=1)
    counts = np.arange(30) % 3
    repeated = model.score(X.repeat(counts, axis=0), y.repeat(counts))
    for weights in (counts, counts / 64.0, counts.tolist()):
        found = model.score(X, y, sample_weight=weights)
        np.testing.assert_allclose(found, repeated, rtol=1e-10)
    np.testing.assert_allclose(model.score(X, y, sample_weight=2), model.score(X, y))


@pytest.mark.parametrize("name", [n for n, method in WEIGHTED if method == "score"])
@pytest.mark.filterwarnings("ignore")
def test_a_score_refuses_targets_of_another_number(name):
    """Fewer than the rows, or more, with weights and without, as scikit-learn does."""
    model, (X, y) = fitted(name), rows(30, seed=1)
    for weights in (None, np.ones(len(X))):
        for targets in (y[:-1], np.append(y, y[-1])):
            with pytest.raises(ValueError, match="inconsistent numbers of samples"):
                model.score(X, targets, sample_weight=weights)


@pytest.mark.filterwarnings("ignore")  # a rank needs two classes
@pytest.mark.parametrize("name", [n for n, method in WEIGHTED if method == "score"])
def test_a_score_of_equal_targets_needs_no_others_of_weight_zero(name):
    """As in a fold of a cross-validation, where D^2 would divide by zero."""
    model, present = fitted(name), Y == 1.0
    found = model.score(X, Y, sample_weight=present.astype(float))
    np.testing.assert_allclose(found, model.score(X[present], Y[present]), rtol=1e-10)


SUMMED = [name for name in ESTIMATORS if "absorb" in METHODS[name]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUMMED)
def test_statistics_of_no_rows_are_zero_and_change_nothing(name):
    """Of a partition without rows, or without weight; also where nothing was learnt."""
    estimator = learn(cheap(name), "fit", TABLE, TARGETS)
    data = (TABLE, TARGETS) if is_regressor(estimator) else (TABLE,)
    empty = [part[:0] for part in data]
    for each in (estimator, cheap(name)):
        before = state_of(each)
        for partition in (empty, [*empty, np.ones(0)], [*data, np.zeros(20)]):
            try:
                nothing = each.sufficient_statistics(*partition)
            except NotFittedError:
                continue
            assert not nothing.any()
            assert each.absorb(nothing) is each
            assert not changes(before, state_of(each))
    with pytest.raises(ValueError, match="has 1 features, but"):
        estimator.sufficient_statistics(TABLE[:0, :1], *empty[1:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUMMED)
def test_statistics_carry_the_names_of_the_columns(name):
    """Sums, stacks and pickles too; columns in another order are refused."""
    pd = pytest.importorskip("pandas")
    names = [f"column {j}" for j in range(TABLE.shape[1])]
    frame = pd.DataFrame(TABLE, columns=names)
    estimator, plain = (learn(cheap(name), "fit", X, TARGETS) for X in (frame, TABLE))
    own = (TARGETS,) if is_regressor(estimator) else ()
    statistics = estimator.sufficient_statistics(frame, *own)
    assert type(plain.sufficient_statistics(TABLE, *own)) is np.ndarray
    merged = pickle.loads(pickle.dumps(statistics)), sum([statistics, statistics])
    merged += np.vstack([statistics, statistics]), np.concatenate([statistics])
    turned = plain.sufficient_statistics(frame[names[::-1]], *own)
    saved = pickle.dumps(estimator)
    for each in (statistics, *merged):
        assert list(each.feature_names) == names
        with pytest.raises(ValueError, match="have them in the order"):
            np.vstack([each, turned])
    for wrong in (turned, 2 * turned):
        with pytest.raises(ValueError, match="the rows that were learnt have them in"):
            estimator.absorb(wrong)
    with pytest.raises(ValueError, match="have them in the order"):
        statistics + turned
    after = state_of(pickle.loads(saved).absorb(statistics))
    assert not changes(after, state_of(estimator.absorb(np.asarray(statistics))))
    try:
        begun = cheap(name).absorb(statistics)
    except NotFittedError:
        return
    assert list(begun.feature_names_in_) == names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUMMED)
def test_absorb_refuses_what_is_not_the_sum_of_rows(name):
    estimator = learn(cheap(name), "fit", TABLE, TARGETS)
    data = (TABLE, TARGETS) if is_regressor(estimator) else (TABLE,)
    statistics = estimator.sufficient_statistics(*data)
    saved, before = pickle.dumps(estimator), state_of(estimator)
    for wrong in (np.nan, np.inf, -np.inf):
        spoiled = statistics.copy()
        spoiled[0, 0] = wrong
        with pytest.raises(ValueError, match=r"statistics|dim 3|2D array"):
            estimator.absorb(spoiled)
    for spoiled in (-statistics, statistics[:, 1:], statistics[0], statistics[None]):
        with pytest.raises(ValueError, match=r"statistics|dim 3|2D array"):
            estimator.absorb(spoiled)
    assert not changes(before, state_of(estimator))
    after = state_of(pickle.loads(saved).absorb(statistics))
    for form in (np.ndarray.tolist, np.asfortranarray, as_objects, read_only):
        again = pickle.loads(saved).absorb(form(statistics))
        assert not changes(after, state_of(again)), form.__name__


def as_objects(values):
    return values.astype(object)
