"""Rows that are there several times, and columns in which rows may be equal."""

import numpy as np
from scipy.sparse import issparse

FEWEST = 8  # gaps between values, below which they are few
FINE = 0.1  # least gap over the median gap, below which values are not evenly spaced


def distinct_rows(X):
    """Return a number for each row that is the same for equal rows.

    Rows are compared by a 64-bit hash, which zeros do not change.
    """
    values = X.data if issparse(X) else X + 0.0  # no negative zeros
    parts = values.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    parts ^= parts >> np.uint64(32)
    random = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64)
    if issparse(X):
        sums = np.zeros(len(parts) + 1, dtype=np.uint64)
        np.cumsum(parts * random[X.indices], out=sums[1:])
        hashes = np.diff(sums[X.indptr])
    else:
        hashes = parts @ random
    return np.unique(hashes, return_inverse=True)[1]


def is_coarse(column):
    """Return whether the values of a column are few, or evenly spaced."""
    gaps = np.diff(np.unique(column[~np.isnan(column)]))
    return len(gaps) < FEWEST or gaps.min() > FINE * np.median(gaps)
