"""Copies are of one moment, wait for no update, and are made in a forked child, too."""

import copy
import os
import pickle
import select
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from cases import ESTIMATORS, METHODS, X, Y, cheap, fitted, learn
from states import changes, state_of

from skpacbayes import _locks
from skpacbayes._stream import StreamingEstimator

pytestmark = pytest.mark.filterwarnings("ignore")  # few rows; a fork beside threads

STREAMING = [name for name, method in METHODS if method == "partial_fit"]
# Those that can learn rows without a draft. For SMC2 a row costs far more than a draft.
AT_ONCE = [
    name
    for name in STREAMING
    if name != "SMC2"
    and ESTIMATORS[name]._learn_at_once is not StreamingEstimator._learn_at_once
]
COPIES = [lambda model: pickle.loads(pickle.dumps(model)), copy.copy, copy.deepcopy]


def learnt_at_once(name):
    """A stream whose last rows were learnt without a draft, where it is possible."""
    if name == "PACOClusterer":  # by default, any of the first rows may need a draft
        estimator = learn(cheap(name, refresh=100), "partial_fit", X, Y)
    else:
        estimator = fitted(name, "partial_fit")
    for row in range(2):
        estimator.partial_fit(X[row : row + 1], Y[row : row + 1])
    return estimator


@pytest.mark.parametrize("name", STREAMING)
def test_states_change_in_place_under_a_lock(name):
    """What is held under the lock stays as it is, and a copy as it was made."""
    estimator = learnt_at_once(name)
    copied = copy.copy(estimator)
    before = state_of(copied)
    with ThreadPoolExecutor(1) as another:
        with estimator._locks().changing:
            held = {
                key: vars(estimator)[key]
                for key in estimator.__getstate__()
                if key in vars(estimator)
            }
            state = state_of(held)
            learning = another.submit(estimator.partial_fit, X[:1], Y[:1])
            learnt, _ = wait([learning], timeout=0.05)
            assert not (learnt and estimator._changed_in_place)
            assert not changes(state, state_of(held))
        learning.result(timeout=60)
    assert not changes(before, state_of(copied)), "a copy shares its state"


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_copies_wait_for_no_draft(method, monkeypatch):
    """During an update, threads copy the state before, and the draft."""
    estimator = learnt_at_once("OnlineVIRegressor")
    before, found = state_of(estimator), []

    def copy_in_another_thread(draft):
        found.extend(another.submit(copied, estimator) for copied in COPIES)
        found.append(another.submit(pickle.dumps, draft))
        for result in found:
            result.result(timeout=10)

    with ThreadPoolExecutor(1) as another:
        weights = {} if method == "fit" else {"sample_weight": Y}  # which need a draft
        with monkeypatch.context() as patch:
            kind = type(estimator)
            end = kind._before_publication
            patch.setattr(
                kind,
                "_before_publication",
                lambda draft: (copy_in_another_thread(draft), end(draft)),
            )
            getattr(estimator, method)(X, Y, **weights)
    assert changes(before, state_of(estimator))
    for result in found[:-1]:
        assert not changes(before, state_of(result.result()))


def test_a_deep_copy_copies_once(monkeypatch):
    estimator, count = fitted("OnlineVIRegressor"), []
    kind = type(estimator._state)
    original = kind.copy
    monkeypatch.setattr(
        kind, "copy", lambda state: (count.append(1), original(state))[1]
    )
    copied = copy.deepcopy([estimator, estimator])
    assert len(count) == 1
    assert copied[0] is copied[1]
    assert not changes(state_of(estimator), state_of(copied[0]))


def in_a_child(call, timeout=20):
    """Return what a call returns in a forked child, through pickle."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writing, "wb") as file:
                pickle.dump(call(), file)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        ready, _, _ = select.select([file], [], [], timeout)
        if not ready:
            os.kill(child, signal.SIGKILL)
        saved = file.read()
    os.waitpid(child, 0)
    assert saved, "the child hangs, or failed"
    return pickle.loads(saved)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@forks
@pytest.mark.parametrize("name", ["OnlineVIRegressor", "SSMCKMeansInit"])
def test_a_forked_child_may_copy_learn_and_ask(name, monkeypatch):
    """Even if a thread of the parent never releases its locks."""
    monkeypatch.setattr(_locks, "PATIENCE", 0.01)
    estimator = learnt_at_once(name)
    taken, over = threading.Event(), threading.Event()

    def update():
        with estimator._locks().writing, estimator._locks().changing:
            taken.set()
            over.wait(60)

    def work():
        copied = copy.deepcopy(estimator)
        return copied, estimator.partial_fit(X, Y).predict(X), estimator

    with ThreadPoolExecutor(1) as another:
        another.submit(update)
        taken.wait(60)
        try:
            copied, _, learnt = in_a_child(work)
        finally:
            over.set()
    assert not changes(state_of(estimator), state_of(copied))
    estimator.partial_fit(X, Y).predict(X)
    assert not changes(state_of(estimator), state_of(learnt))


@forks
def test_a_fork_waits_for_a_change_in_place():
    """Else half a change would be the state of the child."""
    estimator = learnt_at_once("OnlineVIRegressor")
    begun = threading.Event()

    def change_slowly():
        with estimator._locks().writing, estimator._locks().changing:
            estimator._state._memory[:5] += 1.0
            begun.set()
            time.sleep(0.05)
            estimator._state._memory[:5] += 1.0

    with ThreadPoolExecutor(1) as another:
        changed = another.submit(change_slowly)
        begun.wait(60)
        copied = in_a_child(lambda: estimator)
        changed.result(timeout=60)
    assert not changes(state_of(estimator), state_of(copied))
    estimator.partial_fit(X, Y)  # the parent's locks are free again


@pytest.mark.parametrize("name", AT_ONCE)
def test_few_rows_of_a_long_stream_need_a_draft(name, monkeypatch):
    """A row is learnt without a copy of the state, whatever number of rows came before.

    Only refreshes of a chain, a table that grows, and doublings of the rows need one.
    """
    own = {"refresh": 400} if name == "PACOClusterer" else {}
    estimator = cheap(name, **own)
    rows = [i % len(X) for i in range(540)]
    learn(estimator, "partial_fit", X[rows[:500]], Y[rows[:500]])
    drafts, draft = [], type(estimator)._draft
    monkeypatch.setattr(
        type(estimator),
        "_draft",
        lambda *args, **own: drafts.append(1) or draft(*args, **own),
    )
    for row in rows[500:]:
        estimator.partial_fit(X[row : row + 1], Y[row : row + 1])
    assert len(drafts) <= 3
