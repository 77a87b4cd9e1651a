"""How consecutive rows resemble each other, within their groups."""

import numpy as np
from scipy.stats import norm, rankdata

ROWS_A_BLOCK = 100  # consecutive rows that are checked, in blocks over the table
FEWEST_BLOCKS, MOST_BLOCKS, VALUES = 4, 40, 2_000_000
FEWEST = 8  # least number of rows of a component, and of steps of a sorted column
IN_ORDER = 0.1  # largest share of the steps of a sorted column that go back
EVEN = 1e-3  # relative tolerance for equal steps
# Least autocorrelation of ranks within components. In 120 tables of 3 to 15 overlapping
# groups, one after the other, 9 had more: 8 or more groups in two or three components.
NEAR = 0.4
BY_CHANCE = 1e-4  # and largest probability of it in random order


def in_blocks(X):
    """Return all rows, or blocks of consecutive rows if there are many."""
    n_rows, n_features = X.shape
    most = VALUES // (ROWS_A_BLOCK * n_features)
    n_blocks = int(np.clip(most, FEWEST_BLOCKS, MOST_BLOCKS))
    if n_rows <= n_blocks * ROWS_A_BLOCK:
        return X
    starts = np.linspace(0, n_rows - ROWS_A_BLOCK, n_blocks).astype(int)
    return X[(starts[:, None] + np.arange(ROWS_A_BLOCK)).ravel()]


def are_sorted(rows):
    """Return whether nearly all values of a column increase, or decrease."""
    ups, downs = (
        np.count_nonzero(sign * rows[1:] > sign * rows[:-1], axis=0) for sign in (1, -1)
    )
    back, steps = np.minimum(ups, downs), ups + downs
    return (steps >= FEWEST) & (back <= IN_ORDER * steps)


def counts_rows(column):
    """Return whether a column increases by the same step from row to row."""
    steps = np.diff(column)
    return bool((np.abs(steps - steps.mean()) <= EVEN * np.abs(steps.mean())).all())


def autocorrelations(rows, owners):
    """Return the autocorrelation of the ranks of each column within components.

    It is 0 where it may be chance. Ranks are unchanged by units, and have no far
    values. Each component is first cut in two where its ranks change most: it may hold
    two groups, one after the other. In random order, with n rows, the cut lowers the
    autocorrelation, whose standard error is at most one over the root of n.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        NaN is ignored.
    owners : ndarray of shape (n_rows,)
        Components of the rows.

    Returns
    -------
    autocorrelations : ndarray of shape (n_features,)
    """
    n_features = rows.shape[1]
    total, n_rows = np.zeros(n_features), np.zeros(n_features)
    for k in np.unique(owners):
        own = rows[owners == k]
        if len(own) < FEWEST:
            continue
        present = ~np.isnan(own)
        counts = present.sum(axis=0)
        ranks = rankdata(np.where(present, own, np.inf), axis=0)
        ranks = np.where(present, ranks - (counts + 1) / 2, 0.0)
        before = np.arange(1, len(own))[:, None]
        sums = ranks.cumsum(axis=0)[:-1]
        cuts = (sums**2 / (before * (len(own) - before))).argmax(axis=0)
        first = np.arange(len(own))[:, None] <= cuts
        for part in (first & present, ~first & present):
            means = (ranks * part).sum(axis=0) / np.maximum(part.sum(axis=0), 1)
            ranks -= means * part
        inside = first[1:] == first[:-1]
        squares = (ranks**2).sum(axis=0)
        products = (ranks[1:] * ranks[:-1] * inside).sum(axis=0)
        total += counts * products / np.where(squares > 0, squares, 1.0)
        n_rows += counts
    n_rows = np.maximum(n_rows, 1)
    least = norm.isf(BY_CHANCE / n_features) / np.sqrt(n_rows)
    found = total / n_rows
    return np.where(found >= least, found, 0.0)
