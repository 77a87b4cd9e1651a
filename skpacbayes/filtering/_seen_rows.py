"""The ends of a stream, by which rows that were learnt are recognised."""

import numpy as np

from .._base import warn_user

N_KEPT = 64  # rows at each end
CHANCE = 1e-6  # below this probability rows are not alike by chance


def first_and_last(X, before=None):
    """Return the first and the last rows of a stream, at most `N_KEPT` of each.

    Parameters
    ----------
    X : ndarray of shape (n_timesteps, n_features)
        The latest rows.
    before : tuple of ndarray or None
        The ends before these rows. None: the stream starts with them.
    """
    if before is None:
        return X[:N_KEPT].copy(), X[-N_KEPT:].copy()
    first, last = before
    if len(first) < N_KEPT:
        first = np.concatenate([first, X[: N_KEPT - len(first)]])
    return first, np.concatenate([last, X[-N_KEPT:]])[-N_KEPT:]


def warn_of_seen_rows(ends, X, meaning):
    """Warn if rows that should follow a stream are those of one of its ends.

    Parameters
    ----------
    ends : tuple of ndarray or None
        Ends of the stream. None: unknown.
    X : ndarray of shape (n_timesteps, n_features)
        The rows.
    meaning : str
        For what the method takes the rows, and what to use instead.
    """
    if ends is None or len(X) < 2:
        return
    first, last = ends
    n = min(len(X), len(first))
    if _are_the_same(X[:n], first[:n]):
        warn_user(f"X begins with the first rows that were learnt, but {meaning}")
    elif _are_the_same(X[-n:], last[-n:]):
        warn_user(f"X ends with the last rows that were learnt, but {meaning}")


def _are_the_same(X, rows):
    """Whether rows are equal, and would hardly be so by chance.

    By chance: were each drawn independently with the frequencies of all.
    """
    if not np.array_equal(X, rows, equal_nan=True):
        return False
    values = np.nan_to_num(rows, nan=np.inf)
    _, found, counts = np.unique(
        values, axis=0, return_inverse=True, return_counts=True
    )
    shares = counts[found.ravel()] / len(rows)
    return bool(np.log(shares).sum() < np.log(CHANCE))
