"""Locks of an estimator, and what a fork makes of them.

A child that is forked while another thread holds a lock would wait for it forever. All
locks are therefore new in the child. No state is changed in place at the moment of the
fork, as half a change would be the child's state.
"""

import os
import threading
import time
import weakref

# A fork waits at most so long, in seconds, for changes that are made in place.
PATIENCE = 1.0

_ALL: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_FORKING = threading.local()


class Locks:
    """Two locks of an estimator; who holds both has taken `writing` first.

    Attributes
    ----------
    writing : RLock
        Held by who replaces the state, changes it, or computes an answer: for as long
        as a whole `fit`.
    changing : RLock
        Held by who changes arrays of the published state in place, for one compiled
        call, and by who copies these arrays.
    """

    __slots__ = ("__weakref__", "changing", "writing")

    def __init__(self):
        self.renew()
        _ALL[id(self)] = self

    def renew(self):
        """Make both locks anew; whoever holds the old ones may release them."""
        self.writing, self.changing = threading.RLock(), threading.RLock()


def _all_locks():
    return [locks for ref in _ALL.valuerefs() if (locks := ref()) is not None]


def _wait_for_changes():
    """Hold the lock `changing` of every estimator; none, if one is busy for too long.

    Whoever copies an estimator of estimators holds several: all are released before
    one is waited for.
    """
    _FORKING.held = []
    last = time.monotonic() + PATIENCE
    while not _hold_all() and time.monotonic() < last:
        time.sleep(1e-4)


def _hold_all():
    """Hold all of them if all are free; whether they were."""
    for changing in [locks.changing for locks in _all_locks()]:
        if not changing.acquire(blocking=False):
            _release()
            return False
        _FORKING.held.append(changing)
    return True


def _release():
    for changing in _FORKING.held:
        changing.release()
    _FORKING.held = []


def _renew():
    for locks in _all_locks():
        locks.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_for_changes, after_in_parent=_release, after_in_child=_renew
    )
