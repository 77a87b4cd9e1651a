"""Observations in the tails of a table, that no simulation lies beyond."""

import numpy as np

from .._base import warn_user
from ._abc_table import tiles

FEWEST = 500  # simulations from which tails can be told from chance
NEAREST = 10  # simulations whose distance says how sparse a place is
MOST_AS_FAR = 2  # simulations at places as sparse, up to which we warn
OUTERMOST = 200  # simulations that are looked at, beside those near an observation


def on_one_side(gaps):
    """Return whether all neighbors of an observation lie on one side of it.

    gaps : (n_neighbors, n_directions), the neighbors minus the observation.
    """
    return bool((gaps @ gaps.mean(axis=0) > 0).all())


def as_far(table, neighbors, rows, squares, algorithm):
    """Return how many simulations are as far from the others as an observation.

    This compares the distance to the `NEAREST`-th other simulation. Places that are as
    sparse lie near the observation or far out, so only simulations there are compared;
    there are none elsewhere unless the table has holes.

    Parameters
    ----------
    table : Table
        The simulations.
    neighbors : Neighbors
        The search.
    rows : ndarray of shape (n_neighbors,)
        The rows nearest to the observation, the nearest first.
    squares : ndarray of shape (n_neighbors,)
        Their squared distances.
    algorithm : {"brute", "kd_tree"}
        Search algorithm.

    Returns
    -------
    int
        Their number, at most `MOST_AS_FAR` + 1.
    """
    near = min(NEAREST, len(rows)) - 1
    some = np.union1d(rows, _outermost(table, neighbors.metric))
    places = neighbors.metric.project(table.summaries.take(some, axis=1)).T
    found = neighbors.nearest(table, places, near + 2, algorithm)  # and itself
    n_as_far = 0
    for _, _, others in found:
        n_as_far += others[-1] >= squares[near]
        if n_as_far > MOST_AS_FAR:
            break
    return n_as_far


def _outermost(table, metric):
    """Return the rows that are farthest from the middle of the table."""
    step = max(table.n_rows // 1000, 1)
    used = table.summaries[:, : table.n_rows]
    middle = np.median(metric.project(used[:, ::step]), axis=1, keepdims=True)
    squares = np.empty(table.n_rows)
    for part in tiles(table.n_rows):
        gaps = (metric.project(used[:, part]) - middle).T * metric.precisions
        with np.errstate(over="ignore"):
            squares[part] = np.square(gaps).sum(axis=1)
    return np.argpartition(squares, -min(OUTERMOST, len(squares)))[-OUTERMOST:]


def warn_of_tails(n_as_far, table):
    """Warn of observations that no simulation lies beyond.

    n_as_far : (n_observations,), from `as_far`; more than `MOST_AS_FAR` elsewhere.
    """
    in_tails = np.flatnonzero(n_as_far <= MOST_AS_FAR)
    if not len(in_tails):
        return
    row = in_tails[n_as_far[in_tails].argmin()]
    warn_user(
        f"{len(in_tails)} of {len(n_as_far)} observations are in the tails of the "
        "simulations, with none beyond them, and their posteriors are unreliable: "
        f"row {row} is farther from its {NEAREST} nearest simulations than all but "
        f"{n_as_far[row]} of the {table.n_rows} simulations from theirs. Simulate "
        "more parameters with such summaries."
    )
