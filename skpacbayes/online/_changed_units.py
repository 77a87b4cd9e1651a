"""Columns whose spread changes by a large factor along the stream, as units do."""

import numpy as np

from .._base import warn_user

FACTOR = 30.0  # from which it is a change of unit, or growth by itself a fault
SURE = 6.0  # standard errors of the log of the factor
FEWEST = 20  # rows of a quarter
MOST, MOST_VALUES = 1000, 2**17  # rows that are looked at, and their values


def warn_of_changed_units(X, columns):
    """Warn if the last rows of a column have a much larger or smaller spread.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows in the order of the stream.
    columns : list of str
        Names of the columns.
    """
    most = min(MOST, max(4 * FEWEST, MOST_VALUES // X.shape[1]))
    X = X[:: -(-len(X) // most)]
    n_rows = len(X) // 4
    if n_rows < FEWEST:
        return
    first, last = _log_deviations(X[:n_rows]), _log_deviations(X[-n_rows:])
    factors = last[0] - first[0]
    changed = np.abs(factors) > np.maximum(
        np.log(FACTOR), SURE * np.hypot(first[1], last[1])
    )
    if not changed.any():
        return
    found = np.flatnonzero(changed)
    j = found[np.abs(factors[found]).argmax()]
    size, times = "larger" if factors[j] > 0.0 else "smaller", abs(factors[j])
    others = f" (and of {len(found) - 1} others)" if len(found) > 1 else ""
    warn_user(
        f"The values of {columns[j]}{others} have a spread {np.exp(times):.2g} times "
        f"{size} in the last quarter of the rows than in the first. If the unit "
        "changed, convert the values: all rows are learnt by one scale. If the column "
        "grows by a factor, give its logarithm. Shuffle rows that are sorted by groups."
    )


def _log_deviations(X):
    """Return the mean log deviations of columns from their medians, and its errors.

    NaN where half of the values are equal.
    """
    deviations = np.abs(X - np.median(X, axis=0))
    some = deviations > 0.0
    counts = some.sum(axis=0)
    logs = np.log(np.where(some, deviations, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = logs.sum(axis=0) / np.where(2 * counts > len(X), counts, np.nan)
        squares = (np.square(logs - means) * some).sum(axis=0)
        return means, np.sqrt(squares) / counts
