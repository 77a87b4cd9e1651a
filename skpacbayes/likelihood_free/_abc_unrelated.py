"""Summaries without a relation to the parameters, whose noise hides the others."""

from itertools import combinations_with_replacement

import numpy as np
from scipy.stats import norm, rankdata

from .._base import first_named, warn_user

LEVEL = 1e-3  # of the joint test of all summaries
MOST_ROWS = 10_000  # rows by which summaries are tested
MOST_PAIRS = 100  # held-out pairs by which a posterior without summaries is judged
LEAST_GAIN = 0.1  # in the mean log density of a pair, in nats
NAMED = 5  # largest number of summaries that are named


def related_summaries(table):
    """Return the summaries that are clearly related to the parameters.

    Ranks of a summary, and the squares of centred ranks, are correlated with those of
    the parameters and with their products.

    Parameters
    ----------
    table : Table
        The simulations.

    Returns
    -------
    related : ndarray of bool of shape (n_summaries,)
        Whether a correlation is significant.
    """
    rows = slice(0, table.n_rows, -(-table.n_rows // MOST_ROWS))
    parameters = _centred_ranks(table.parameters[rows].T)
    pairs = combinations_with_replacement(parameters, 2)
    targets = _standard([*parameters, *(first * second for first, second in pairs)])
    summaries = _centred_ranks(table.summaries[:, rows])
    largest = [
        abs(_standard([own, own**2]) @ targets.T).max() / np.sqrt(targets.shape[1])
        for own in summaries
    ]
    if table.total() < table.n_rows:  # each weight is a number of simulations
        largest = np.array(largest) * np.sqrt(table.total() / table.n_rows)
    n_tests = 2 * len(targets) * len(summaries)
    return np.array(largest) > norm.isf(0.5 * LEVEL / n_tests)


def warn_of_unrelated(related, gain, names):
    """Warn of the other summaries, if held-out pairs are more probable without them.

    Parameters
    ----------
    related : ndarray of bool of shape (n_summaries,)
        Summaries that are related to the parameters.
    gain : Gain
        Gain in the log density of held-out pairs without the other summaries.
    names : sequence of str
        Names of the summaries; empty if there are none.
    """
    if not gain.exceeds(LEAST_GAIN):
        return
    others = first_named(np.flatnonzero(~related).tolist(), names, NAMED)
    warn_user(
        f"The summaries {others} show no relation to the parameters, and "
        "their noise hides the others: without them the log density of a held-out "
        f"pair is {gain.mean:.2g} higher in the mean. Leave them out."
    )


def _centred_ranks(values):
    """Return the ranks of each row, between -1/2 and 1/2."""
    return rankdata(values, axis=1) / (values.shape[1] + 1) - 0.5


def _standard(rows):
    """Return rows of mean 0 and variance 1; of zeros where all values are equal."""
    rows = np.array(rows)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.maximum(rows.std(axis=1, keepdims=True), 1e-12)
