"""The laws of the streaming contract, each a function of a `Stream`."""

import copy
import gc
import io
import itertools
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.validation import validate_data
from states import assert_same_state, changes, state_of


@dataclass(frozen=True)
class Stream:
    """An estimator, and the rows that its laws are tested on.

    `rows(n, seed)` draws (X,) or (X, y), the first n rows of a stream whose values are
    multiples of 1/64 (exact in float32). Laws 1, 2, 3, 5 and 6 run on `length` rows;
    law 4 compares `saturated` rows, where the state has reached its full size, with
    four times as many. `sparse`: whether sparse rows are welcome. `first` goes to the
    first call of `partial_fit`. `inexact` holds the exceptions that a family's
    specification names: {law: {attribute: relative tolerance}}; the attributes are
    compared to that (None: not at all), all others bit for bit. Where weights are of
    `importance`, one step of weight two is not two steps: law 5 then asks that zero be
    absence and one be no weight. Where the docstring says that the estimator `grows`
    with the stream, law 4 does not hold. `missing`: whether NaN is welcome, as a
    missing value.
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


def cuttings(length):
    """One row a call, then ever fewer calls, at random places."""
    rng = np.random.default_rng(0)
    for count in (length - 1, length // 2, length // 10, 3, 1):
        yield np.sort(rng.choice(np.arange(1, length), count, replace=False))


def assert_same(stream, law, actual, expected):
    """Same state bit for bit, but for the exceptions of the stream."""
    tolerances = stream.inexact.get(law, {})
    assert_same_state(actual, expected, apart_from=tolerances)
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
    """1. Any way of cutting the same rows into calls gives the same state."""
    data = stream.rows(stream.length, 0)
    drawn = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], stream.length)
    for weights in [None, drawn] if stream.weights else [None]:
        expected = fed(stream, data, (), weights)
        for cuts in cuttings(stream.length):
            actual = fed(stream, data, cuts, weights)
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
    """3. Copied mid-stream and gone on with, as if it had never stopped."""
    data = stream.rows(stream.length, 0)
    for stop in (1, stream.length // 2):
        cuts = [stop, (stop + stream.length) // 2]
        expected = fed(stream, data, cuts)
        begun = fed(stream, [part[:stop] for part in data])
        before = state_of(begun)
        for copied in (through_pickle, copy.deepcopy, through_joblib):
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

    From `saturated` rows to four times as many the state does not grow by a twentieth
    of the rows between, and the peak of the memory in use not by half of them (it
    varies with the rows, from one stretch of a stream to the next).
    """
    batch, estimator = 100, stream.make()
    between = 3 * stream.saturated * stream.rows(1, 0)[0].nbytes
    sizes, peaks = [], []
    gc.freeze()  # or each collection would look at the whole process
    try:
        for start in (0, stream.saturated):
            tracemalloc.start()
            before = len(pickle.dumps(estimator))  # what was allocated untraced
            for row in range(start, 4 * start or stream.saturated, batch):
                feed(stream, estimator, stream.rows(batch, row))
                gc.collect()
            peaks.append(before + tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            sizes.append(len(pickle.dumps(estimator)))
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    assert sizes[1] - sizes[0] < between / 20, f"pickled sizes {sizes}"
    assert peaks[1] - peaks[0] < between / 2, f"peaks of memory {peaks}"


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
    plain = fed(stream, data)
    ones = fed(stream, data, (), np.ones(stream.length))
    assert_same_state(ones, plain)
    rest = [part[:3] for part in data]
    assert_same_state(feed(stream, ones, rest, (), np.zeros(3)), plain)


def one_row(stream):
    """6. A row goes straight to the kernel, and it is the row that validation gives."""
    data = stream.rows(stream.length, 0)
    expected = fed(stream, data, range(1, stream.length))
    others = {
        "lists": np.ndarray.tolist,
        "float32": np.float32,
        "Fortran order": np.asfortranarray,
        "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        "read-only": read_only,
        "data frame": pd.DataFrame,
    }
    for change in others.values():
        for cuts in (range(1, stream.length), ()):
            actual = stream.make()
            for start, stop in itertools.pairwise([0, *cuts, stream.length]):
                rows = [change(data[0][start:stop]), *(y[start:stop] for y in data[1:])]
                actual.partial_fit(*rows, **({} if start else stream.first))
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


LAWS = [
    split_invariance,
    all_or_nothing,
    resume,
    fit_forgets,
    bounded_memory,
    integer_weights,
    one_row,
]
