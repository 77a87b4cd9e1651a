"""The laws of the streaming contract, each a function of a `Stream`."""

import contextlib
import copy
import gc
import io
import itertools
import pickle
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils._param_validation import generate_valid_param, make_constraint
from sklearn.utils.validation import validate_data
from states import assert_same_state, changes, state_of


@dataclass(frozen=True)
class Stream:
    """An estimator, and the rows that its laws are tested on.

    `rows(n, seed)` draws (X,) or (X, y), the first n rows of a stream whose values are
    multiples of 1/64 (exact in float32). Laws 1, 2, 3, 5 and 6 run on `length` rows;
    law 4 compares `saturated` rows, where the state has reached its full size, with
    three times as many. `sparse`: whether sparse rows are welcome. `first` goes to the
    first call of `partial_fit`. `inexact` holds the exceptions that a family's
    specification names: {law: {attribute: relative tolerance}}; the attributes are
    compared to that (None: not at all), all others bit for bit. Where weights are of
    `importance`, one step of weight two is not two steps: law 5 then asks that zero be
    absence and one be no weight. Where the docstring says that the estimator `grows`
    with the stream, law 4 does not hold. `missing`: whether NaN is welcome, as a
    missing value. `places`: origins and units that the rows may have (counts have none
    but their own). `asks`: methods of rows, the answers of many threads. `count`: the
    attribute that counts rows. `rounds`: how often threads ask a new copy; once is
    enough where an answer takes so long that all of them meet in it. `traced`: whether
    law 4 looks at working memory, too, which one setting of an estimator shows of all.
    `moments`: how many of a call are interrupted, anywhere and at its end; few do where
    another setting of the estimator, with the same update, is interrupted often.
    `elsewhere`: whether the rows were moved; the laws then leave out what does not
    depend on where the rows are. `known`: what `fed_once` has made, by place.
    """

    make: Callable
    rows: Callable
    length: int = 120
    saturated: int = 2000
    weights: bool = True
    sparse: bool = False
    first: dict = field(default_factory=dict)
    inexact: dict = field(default_factory=dict)
    importance: bool = False
    grows: bool = False
    missing: bool = False
    places: tuple = ("shifted", "small", "large")
    asks: tuple = ("predict", "predict_proba", "score_samples", "transform")
    count: str = "n_samples_seen_"
    rounds: int = 3
    traced: bool = True
    moments: tuple = (9, 6)
    elsewhere: bool = False
    known: dict = field(default_factory=dict)

    def placed(self, place):
        """Return the stream with its rows about another origin, or in another unit.

        Powers of two, and an origin of fourteen bits, keep the values exact in float32.
        """
        shift, unit = PLACES[place]

        def rows(n, seed):
            X, *targets = self.rows(n, seed)
            moved = (y if is_discrete(y) else shift + unit * y for y in targets)
            return (shift + unit * X, *moved)

        known = self.known.setdefault(place, {})
        return replace(self, rows=rows, elsewhere=bool(place), known=known)


PLACES = {
    "": (0.0, 1.0),
    "shifted": (1e4, 1.0),
    "small": (0.0, 2.0**-10),
    "large": (0.0, 2.0**10),
}


def is_discrete(y):
    """Whether targets are classes."""
    return len(np.unique(y)) < 5


def rounded(X):
    return np.round(64 * X) / 64


# What the laws are written with.


def feed(stream, estimator, data, cuts=(), weights=None):
    """Pass the rows of data to `partial_fit`, cut before the rows `cuts`."""
    for start, stop in itertools.pairwise([0, *cuts, len(data[0])]):
        first = {} if hasattr(estimator, "n_features_in_") else stream.first
        if weights is not None:
            first = {**first, "sample_weight": weights[start:stop]}
        estimator.partial_fit(*(part[start:stop] for part in data), **first)
    return estimator


def fed(stream, data, cuts=(), weights=None):
    return feed(stream, stream.make(), data, cuts, weights)


def fed_once(stream, data, cuts=()):
    """Return a copy of what `fed` gives without weights, the same for several laws."""
    key = (len(data[0]), *cuts)
    if key not in stream.known:
        stream.known[key] = pickle.dumps(fed(stream, data, cuts))
    return pickle.loads(stream.known[key])


def cuttings(length, *, few=False):
    """One row a call, then ever fewer calls, at random places."""
    rng = np.random.default_rng(0)
    counts = (length - 1, 3) if few else (length - 1, length // 2, length // 10, 3, 1)
    for count in counts:
        yield np.sort(rng.choice(np.arange(1, length), count, replace=False))


def assert_same(stream, law, actual, expected):
    """Same state bit for bit, but for the exceptions of the stream."""
    tolerances = stream.inexact.get(law, {})
    assert_same_state(actual, expected, apart_from=tolerances)
    if not tolerances:
        return
    actual, expected = copy.deepcopy((actual, expected))  # some compute when looked at
    for name, rtol in tolerances.items():
        if rtol is None:
            continue
        np.testing.assert_allclose(
            getattr(actual, name), getattr(expected, name), rtol=rtol, err_msg=name
        )


def assert_refused(estimator, call, data, arguments, error=None):
    """The call raises (exactly `error`, if given) and changes nothing."""
    before = state_of(estimator)
    with pytest.raises((ValueError, TypeError)) as raised:
        call(*data, **arguments)
    paths = changes(before, state_of(estimator))
    assert not paths, f"a refused call changed {', '.join(paths[:8])}"
    if error is not None:
        said = f"scikit-learn says: {error}\nthe estimator: {raised.value}"
        assert type(raised.value) is type(error), said
        assert str(raised.value) == str(error), said


def error_of_scikit_learn(estimator, X, **options):
    """What `validate_data` has to say of X."""
    with pytest.raises((ValueError, TypeError)) as raised:
        validate_data(copy.deepcopy(estimator), X, dtype=np.float64, **options)
    return raised.value


def bad_rows(X):
    """Rows that scikit-learn refuses after rows like X, by name."""
    for name, value in {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}.items():
        for count in (1, len(X)):
            bad = X[:count].copy()
            bad[-1, -1] = value
            yield f"{name}, {count} rows", bad
            yield f"{name}, {count} rows, float32", bad.astype(np.float32)
    yield "a column too many", np.column_stack([X, X[:, 0]])
    yield "a row with a column too many", np.append(X[0], 0.0)[None]
    yield "a column missing", X[:, :-1]
    yield "one dimension", X[0]
    yield "three dimensions", X[None]
    yield "no rows", X[:0]
    yield "strings", np.full(X.shape, "a")
    yield "complex numbers", X + 1j
    yield "sparse", sparse.csr_array(X)
    yield "None", [[None] * X.shape[1]]


def bad_weights(length):
    yield "negative", np.r_[np.ones(length - 1), -1.0]
    yield "nan", np.r_[np.ones(length - 1), np.nan]
    yield "inf", np.r_[np.ones(length - 1), np.inf]
    yield "too short", np.ones(length - 1)
    yield "two columns", np.ones((length, 2))


# The laws.


def split_invariance(stream):
    """1. Any way of cutting the same rows into calls gives the same state.

    Weights of rows that were moved are left to law 5, which cuts them, too.
    """
    data = stream.rows(stream.length, 0)
    drawn = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], stream.length)
    weighted = stream.weights and not stream.elsewhere
    for weights in [None, drawn] if weighted else [None]:
        make = fed_once if weights is None else partial(fed, weights=weights)
        expected = make(stream, data)
        few = stream.elsewhere or weights is not None
        for cuts in cuttings(stream.length, few=few):
            actual = make(stream, data, cuts)
            assert_same(stream, "split_invariance", actual, expected)


def all_or_nothing(stream):
    """2. What scikit-learn refuses is refused in its words and changes nothing."""
    data = stream.rows(stream.length, 0)
    targets = data[1:]
    begun = fed(stream, [part[:-5] for part in data])
    for estimator in (begun, stream.make()):
        options = {"reset": estimator is not begun}
        if stream.missing:
            options["ensure_all_finite"] = "allow-nan"
        first = stream.first if options["reset"] else {}
        for name, bad in bad_rows(data[0][-5:]):
            if stream.sparse and name == "sparse":
                continue
            if stream.missing and name.startswith(("nan", "None")):
                continue
            if options["reset"] and "column" in name:
                continue
            error = None  # strings: test_frames asks for the name of the column
            if name != "strings":
                error = error_of_scikit_learn(estimator, bad, **options)
            count = bad.shape[0] if hasattr(bad, "shape") else len(bad)
            few = [part[-count:] if count else part[:0] for part in targets]
            assert_refused(estimator, estimator.partial_fit, (bad, *few), first, error)
        last = [part[-5:] for part in data]
        for _, weights in bad_weights(5) if stream.weights else ():
            arguments = {**first, "sample_weight": weights}
            assert_refused(estimator, estimator.partial_fit, last, arguments)
        for bad in targets and (targets[0][-4:], None):
            assert_refused(estimator, estimator.partial_fit, (last[0], bad), first)
    expected = fed(stream, data, [stream.length - 5])
    assert_same(stream, "all_or_nothing", feed(stream, begun, last), expected)
    names = [f"column {j}" for j in range(data[0].shape[1])]
    begun = fed(stream, [pd.DataFrame(data[0], columns=names), *targets])
    bad = pd.DataFrame(last[0], columns=["another", *names[1:]])
    error = error_of_scikit_learn(begun, bad, reset=False)
    assert_refused(begun, begun.partial_fit, (bad, *last[1:]), {}, error)


def resume(stream):
    """3. Copied mid-stream and gone on with, as if it had never stopped.

    Of rows that were moved only pickles are made.
    """
    data = stream.rows(stream.length, 0)
    for stop, copies in (
        (1, [through_pickle]),
        (
            stream.length // 2,
            [through_pickle, copy.copy, copy.deepcopy, through_joblib],
        ),
    ):
        cuts = [stop, (stop + stream.length) // 2]
        expected = fed(stream, data, cuts)
        begun = fed(stream, [part[:stop] for part in data])
        before = state_of(begun)
        for copied in copies[:1] if stream.elsewhere else copies:
            rest = [part[stop:] for part in data]
            actual = feed(stream, copied(begun), rest, [cuts[1] - stop])
            assert_same(stream, "resume", actual, expected)
            assert not changes(before, state_of(begun)), "a copy shares its state"


def through_pickle(estimator):
    return pickle.loads(pickle.dumps(estimator))


def through_joblib(estimator):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    return joblib.load(file)


def fit_forgets(stream):
    """3. `fit` after `partial_fit` is `fit` alone, also for what comes after it."""
    data, other = stream.rows(stream.length, 0), stream.rows(stream.length, 1)
    used = fed(stream, other, [stream.length // 2])
    fresh = stream.make()
    assert_same(stream, "fit_forgets", used.fit(*data), fresh.fit(*data))
    feed(stream, used, other)
    assert_same(stream, "fit_forgets", used, feed(stream, fresh, other))


def bounded_memory(stream):
    """4. State and working memory do not grow with the stream.

    From `saturated` rows to three times as many the state does not grow by a twentieth
    of the rows between, and the memory in use not by half of them (it varies with the
    rows, from one stretch of a stream to the next).
    """
    between = 2 * stream.saturated * stream.rows(1, 0)[0].nbytes
    sizes, used = memory_of(stream)
    if used[1] - used[0] >= between / 2:  # without what was compiled on the way
        sizes, used = memory_of(stream)
    assert sizes[1] - sizes[0] < between / 20, f"pickled sizes {sizes}"
    assert used[1] - used[0] < between / 2, f"memory in use {used}"


def memory_of(stream):
    """Return pickled sizes and the memory in use, early in a stream and later.

    Early are the `saturated` first rows, later the next ones, twice as many. The
    memory in use is the median of the peaks of batches.
    """
    batch, estimator = 100, stream.make()
    sizes, used = [], []
    gc.collect()
    gc.freeze()  # or each collection would look at the whole process
    if stream.traced:
        tracemalloc.start()
    try:
        for start in (0, stream.saturated):
            peaks = []
            for row in range(start, 3 * start or stream.saturated, batch):
                gc.collect()
                tracemalloc.reset_peak()
                feed(stream, estimator, stream.rows(batch, row))
                peaks.append(tracemalloc.get_traced_memory()[1])
            used.append(np.median(peaks))
            sizes.append(len(pickle.dumps(estimator)))
    finally:
        tracemalloc.stop()
    return sizes, used


def integer_weights(stream):
    """5. A weight of two is the row twice, zero is its absence, one is no weight."""
    data = stream.rows(stream.length, 0)
    counts = np.random.default_rng(2).integers(0, 3, stream.length)
    counts[0] = 1
    if stream.importance:
        counts = counts.clip(max=1)
    repeated = fed(stream, [np.repeat(part, counts, axis=0) for part in data])
    for cuts in ((), range(1, stream.length)):
        weighted = fed(stream, data, cuts, counts.astype(float))
        assert_same(stream, "integer_weights", weighted, repeated)
    plain = fed_once(stream, data)
    ones = fed(stream, data, (), np.ones(stream.length))
    assert_same_state(ones, plain)
    rest = [part[:3] for part in data]
    assert_same_state(feed(stream, ones, rest, (), np.zeros(3)), plain)


def one_row(stream):
    """6. A row goes straight to the kernel, and it is the row that validation gives.

    The other forms of rows come as a first table each, and row by row in turns.
    """
    data = stream.rows(stream.length, 0)
    expected = fed_once(stream, data, range(1, stream.length))
    others = {
        "lists": np.ndarray.tolist,
        "float32": np.float32,
        "Fortran order": np.asfortranarray,
        "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        "read-only": read_only,
        "data frame": pd.DataFrame,
    }
    if stream.elsewhere:  # the conversion that rounds
        others = {"float32": others["float32"]}
    first = [part[: stream.length // 4] for part in data]
    of_first = fed_once(stream, first)
    for change in others.values():
        actual = feed(stream, stream.make(), [change(first[0]), *first[1:]])
        assert_same(stream, "split_invariance", actual, of_first)
    actual, turns = stream.make(), itertools.cycle(others.values())
    for row, change in zip(range(stream.length), turns, strict=False):
        rows = [change(data[0][row : row + 1]), *(y[row : row + 1] for y in data[1:])]
        actual.partial_fit(*rows, **({} if row else stream.first))
    assert_same(stream, "split_invariance", actual, expected)
    begun = fed(stream, [part[:-1] for part in data])
    with pytest.MonkeyPatch.context() as patch:  # behind every `validate_data`
        patch.setattr("sklearn.utils.validation.check_array", refuse)
        feed(stream, begun, [part[-1:] for part in data])
    assert_same(stream, "split_invariance", begun, expected)


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def refuse(*args, **kwargs):
    raise AssertionError("a row that needs no validation was validated")


def interrupts(stream):
    """2. An exception at any bytecode leaves the state before the call or after it.

    At moments of each of three calls, drawn at random, and others of the last
    twentieth, in which the state is replaced. The calls: the first of a stream, one
    row, and many rows.
    """
    tries, late_tries = stream.moments
    data = stream.rows(stream.length, 0)
    half, many = stream.length // 2, stream.length // 7
    begun = fed(stream, [part[:half] for part in data])
    rng = np.random.default_rng(zlib.crc32(repr(begun).encode()))  # others elsewhere
    for estimator, rows in (
        (stream.make(), slice(many)),
        (begun, slice(half, half + 1)),
        (begun, slice(half, half + many)),
    ):
        first = {} if estimator is begun else stream.first
        arguments = [part[rows] for part in data]
        saved = pickle.dumps(estimator)
        before = state_of(pickle.loads(saved))
        pickle.loads(saved).partial_fit(*arguments, **first)  # imports and compiles
        whole = pickle.loads(saved)
        n_steps = interrupted_at(None, whole, arguments, first)
        after = state_of(whole)
        late = rng.integers(n_steps - n_steps // 20 - 1, n_steps, late_tries)
        for step in np.unique([*rng.integers(n_steps, size=tries), *late]):
            other = pickle.loads(saved)
            with pytest.raises(Interrupt):
                interrupted_at(step, other, arguments, first)
            state = state_of(other)
            paths = [changes(before, state), changes(after, state)]
            assert not all(paths), (
                f"interrupted at step {step} of {n_steps}: not as before, "
                f"{', '.join(paths[0][:4])}; not as after, {', '.join(paths[1][:4])}"
            )
        other = pickle.loads(saved)  # and a call that is tried again is made once
        with pytest.raises(Interrupt):
            interrupted_at(n_steps // 2, other, arguments, first)
        if not changes(before, state_of(other)):
            other.partial_fit(*arguments, **first)
        assert not changes(after, state_of(other)), "tried again: not as after"


# Modules with a part in an update, and that of the example of an estimator.
TRACED = "skpacbayes", "sklearn.base", "sklearn.utils.valid", "running_gaussian"


class Interrupt(BaseException):
    """What a user's Ctrl-C, or a time limit, raises."""


def interrupted_at(step, estimator, arguments, keywords):
    """Call `partial_fit`, raising before one bytecode of ours; count the bytecodes."""
    counter = itertools.count()

    def trace(frame, event, argument):
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(TRACED):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return trace_opcodes

    def trace_opcodes(frame, event, argument):
        if event == "opcode" and next(counter) == step:
            raise Interrupt
        return trace_opcodes

    tracing = sys.gettrace()
    # Python 3.12 tells of bytecodes only where a frame has asked before `settrace`.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        estimator.partial_fit(*arguments, **keywords)
    finally:
        sys.settrace(tracing)
    return next(counter)


def any_thread_may_ask(stream, n_threads=4):
    """8. Threads that ask a state at rest get the answers that one would."""
    data = stream.rows(stream.length, 0)
    saved = pickle.dumps(fed_once(stream, data))
    rows = data[0][:5]
    expected = answers(stream, pickle.loads(saved), rows)
    with often_switched():
        for _ in range(stream.rounds):
            estimator, found = pickle.loads(saved), []
            in_step = threading.Barrier(n_threads)

            def ask(estimator=estimator, found=found, in_step=in_step):
                in_step.wait()
                try:
                    found.append(answers(stream, estimator, rows))
                except Exception as error:
                    found.append(error)

            run_together([ask] * n_threads)
            for answer in found:
                assert not isinstance(answer, Exception), repr(answer)
                assert answer.keys() == expected.keys()
                for name, value in answer.items():
                    np.testing.assert_array_equal(value, expected[name], err_msg=name)


def answers(stream, estimator, rows):
    """Fitted numbers and answers for rows, by name."""
    found = {
        name: value
        for name in dir(estimator)
        if name.endswith("_")
        and not name.startswith("_")
        and isinstance(
            value := getattr(estimator, name, None), np.ndarray | float | int
        )
    }
    for name in stream.asks:
        if hasattr(estimator, name):
            found[name] = getattr(estimator, name)(rows)
    return found


def writers_take_turns(stream, n_threads=4):
    """8. Rows that several threads pass to one estimator are all learnt, or refused."""
    data = stream.rows(stream.length, 0)
    first = stream.length // 4
    begun = fed(stream, [part[:first] for part in data])
    parts = np.array_split(np.arange(first, stream.length), 4 * n_threads)
    refused = []

    def write(number):
        for part in parts[number::n_threads]:
            try:
                feed(stream, begun, [column[part] for column in data])
            except RuntimeError:
                refused.extend(part)

    with often_switched():
        run_together([lambda k=k: write(k) for k in range(n_threads)])
    assert getattr(begun, stream.count) == stream.length - len(refused)


@contextlib.contextmanager
def often_switched():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_together(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def parameters_are_kept(stream):
    """7. A change within a stream is refused, or documented as one that may be made."""
    data = stream.rows(stream.length, 0)
    begun = fed(stream, [part[:-5] for part in data])
    last = [part[-5:] for part in data]
    for name, value in other_values(begun):
        estimator = copy.deepcopy(begun).set_params(**{name: value})
        if name in estimator._may_change:
            estimator.partial_fit(*last)
            continue
        before = state_of(estimator)
        if not hasattr(estimator, "partial_fit"):  # a value that excludes streams
            continue
        with pytest.raises(ValueError, match=f"^{name} changed"):
            estimator.partial_fit(*last)
        assert not changes(before, state_of(estimator)), name


def other_values(estimator):
    """Name and another valid value of each parameter."""
    for name, constraints in type(estimator)._parameter_constraints.items():
        for constraint in map(make_constraint, constraints):
            try:
                value = generate_valid_param(constraint)
            except NotImplementedError:
                continue
            now = getattr(estimator, name)
            equal = isinstance(value, int | float) and value == now
            if repr(value) != repr(now) and not equal and not callable(value):
                yield name, value
                break


LAWS = [
    split_invariance,
    all_or_nothing,
    resume,
    fit_forgets,
    bounded_memory,
    integer_weights,
    one_row,
    interrupts,
    any_thread_may_ask,
    writers_take_turns,
    parameters_are_kept,
]
LAWS_OF_PLACE = [split_invariance, resume, fit_forgets, integer_weights, one_row]
LAWS_OF_ONE_PLACE = [resume, fit_forgets]  # of copies and of fits: no sum is made
