"""Rows of which more clusters are found than there are groups."""

import math

import numpy as np
from scipy.special import logsumexp

from .._repeated_rows import distinct_rows, is_coarse
from .._row_order import NEAR, are_sorted, autocorrelations, in_blocks

_COPIED = 0.9  # share of rows that equal another one, from which rows are copies,
_FEWEST_COPIED = 8  # and least number of distinct ones
_PRIOR = 0.5  # rows added to each value of a column in a group


def times_copied(rows):
    """Return the mean number of copies of a row; 1 if rows are equal by chance, or not.

    Nearly all rows must be there twice or more often, and a column have real values.
    """
    counts = np.bincount(distinct_rows(np.ascontiguousarray(rows)))
    copied = counts[counts > 1].sum() >= _COPIED * len(rows)
    if not copied or len(counts) < _FEWEST_COPIED:
        return 1.0
    coarse = all(map(is_coarse, rows.T))
    return 1.0 if coarse else len(rows) / len(counts)


def columns_of_a_path(rows, labels):
    """Return columns in which consecutive rows of a cluster are close to each other.

    With them, their largest autocorrelation of ranks. Independent rows that were sorted
    by a column cannot be told from rows with a column of times: there are none then.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)

    Returns
    -------
    columns : ndarray of int
    largest : float
    """
    numbered = in_blocks(np.column_stack([rows, labels]))
    rows, labels = numbered[:, :-1], numbered[:, -1]
    near = autocorrelations(rows, labels)
    columns = np.flatnonzero(near >= NEAR)
    if not len(columns) or are_sorted(rows).any():
        return columns[:0], 0.0
    return columns, near.max()


def n_groups_of_values(codes, labels):
    """Return the number of groups that describe columns of few values better.

    In a group each value of a column has a probability. Clusters are merged pair by
    pair, at each step the pair that costs the least likelihood. The BIC compares these
    groups with the mixture of the clusters, as `n_skewed_groups` does.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples, n_features)
        Numbers of the values, from 0.
    labels : ndarray of int of shape (n_samples,)

    Returns
    -------
    n_groups : int or None
        None if the clusters describe the rows better.
    """
    n_rows = len(codes)
    starts = np.append(0, np.cumsum(codes.max(axis=0) + 1))
    places = codes + starts[:-1]
    labels = np.unique(labels, return_inverse=True)[1]
    counts = np.zeros((labels.max() + 1, starts[-1]))
    np.add.at(counts, (labels[:, None], places), 1.0)
    sizes = np.bincount(labels).astype(float)
    penalty = (starts[-1] - codes.shape[1] + 1) * math.log(n_rows) / 2
    logs = _log_probabilities(counts, starts)
    joint = logs[:, places].sum(axis=2) + np.log(sizes / n_rows)[:, None]
    best = logsumexp(joint, axis=0).sum() - penalty * len(sizes)
    evidence = (counts * logs).sum(axis=1) + sizes * np.log(sizes / n_rows)
    n_groups = None
    while len(sizes) > 1:
        first, second = np.triu_indices(len(sizes), 1)
        together, size = counts[first] + counts[second], sizes[first] + sizes[second]
        merged = (together * _log_probabilities(together, starts)).sum(axis=1)
        merged += size * np.log(size / n_rows)
        k = (merged - evidence[first] - evidence[second]).argmax()
        i, j = first[k], second[k]
        counts[i], sizes[i], evidence[i] = together[k], size[k], merged[k]
        counts, sizes, evidence = (
            np.delete(each, j, axis=0) for each in (counts, sizes, evidence)
        )
        if (total := evidence.sum() - penalty * len(sizes)) > best:
            best, n_groups = total, len(sizes)
    return n_groups


def _log_probabilities(counts, starts):
    """Return logs of the shares of the values of each column, in each group."""
    counts = counts + _PRIOR
    totals = np.add.reduceat(counts, starts[:-1], axis=1)
    return np.log(counts / np.repeat(totals, np.diff(starts), axis=1))
