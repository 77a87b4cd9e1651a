"""Locks of an estimator, which are renewed in forked processes.

A child that is forked while another thread holds a lock would wait for it forever. All
locks are therefore new in the child. A fork waits for changes of states in place, as
the child would otherwise have a partly changed state.
"""

import os
import threading
import time
import weakref

# Largest time, in seconds, that a fork waits for changes in place.
PATIENCE = 1.0

_ALL: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_FORKING = threading.local()


class Locks:
    """Two locks of an estimator; to hold both, acquire `writing` first.

    Attributes
    ----------
    writing : RLock
        Held while the state is replaced or changed, or a result is computed: during a
        whole `fit`.
    changing : RLock
        Held while arrays of the published state are changed in place, by one compiled
        call, or copied.
    """

    __slots__ = ("__weakref__", "changing", "writing")

    def __init__(self):
        self.renew()
        _ALL[id(self)] = self

    def renew(self):
        """Replace both locks; holders of the old ones may still release them."""
        self.writing, self.changing = threading.RLock(), threading.RLock()


def _all_locks():
    return [locks for ref in _ALL.valuerefs() if (locks := ref()) is not None]


def _wait_for_changes():
    """Acquire the lock `changing` of every estimator, or none after a timeout.

    A copy of a meta-estimator acquires several locks: all are released before waiting
    for one.
    """
    _FORKING.held = []
    last = time.monotonic() + PATIENCE
    while not _hold_all() and time.monotonic() < last:
        time.sleep(1e-4)


def _hold_all():
    """Acquire all locks if all are free; return whether they were."""
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
