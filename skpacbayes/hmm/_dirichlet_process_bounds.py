"""Draws of rows of transitions whose entries have a lower bound.

If the prior is of less than one move, most rows with a move that is not made have an
entry below the bound when they are drawn without it.
"""

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from .._kernels.random import slice_pairs_of
from ._dirichlet_process_random import draw_bounded, draw_dirichlet, state_of

_N_FREE = 16  # draws without the bound, if they are likely to satisfy it
_N_TRIES = 64  # tries of rejection sampling of a row, before slice sampling
_MOST_STATES = 20  # largest number for which rejection is tried: it fails with more
_N_SLICES = 4  # slice-sampling steps per state


def bounded_row(row, alphas, least, rng, rates=None, pulls=None):
    """Draw a row from a Dirichlet distribution given that no entry is below `least`.

    By rejection sampling or, if that fails, by slice-sampling steps from `row`. With
    `rates`, a row of normalised gamma variables; `pulls` as in `slice_pairs`.
    """
    if alphas.min() >= 1.0:  # most draws suffice, and compile no other kernel
        free = draw_dirichlet(
            np.tile(alphas, (_N_FREE, 1)),
            rng,
            None if rates is None else np.tile(rates, (_N_FREE, 1)),
        )
        legal = free[free.min(axis=1) >= least]
        if len(legal):
            return legal[0]
    if len(alphas) <= _MOST_STATES:
        drawn = draw_bounded(alphas, least, _N_TRIES, rng, rates)
        if not np.isnan(drawn[0]):
            return drawn
    return slice_pairs(row, alphas, least, rng, pulls)


def update_bounded(row, alphas, least, place, onward, rng):
    """Update a row of a state whose transitions to the next stage are given.

    Its density is that of `bounded_row` times the probability of leaving ``place``, to
    the power of ``onward``. The probability to leave, the shares of the others, and the
    probability to leave again are drawn given the rest, so that the step is reversible.
    """
    others = np.arange(len(row)) != place
    shares = row[others] / row[others].sum()
    parameters = alphas[others].sum() + onward, alphas[place]

    def leaving():
        """Draw the probability to leave, given the shares of the others."""
        bounds = np.array([least / shares.min(), 1.0 - least])
        if bounds[0] >= bounds[1]:  # all entries are the least one
            return bounds[1]
        rare = bounds[0] > parameters[0] / sum(parameters)  # where 1 - cdf is exact
        cdf, inverse = (betaincc, betainccinv) if rare else (betainc, betaincinv)
        ends = np.sort(cdf(*parameters, bounds))
        if ends[1] > ends[0]:
            return np.clip(inverse(*parameters, rng.uniform(*ends)), *bounds)
        # Both underflow: the density falls from the bound near the mode exponentially.
        bound, (first, second) = bounds[0 if rare else 1], parameters
        slope = (first - 1) / bound - (second - 1) / (1 - bound)
        return np.clip(bound - rng.standard_exponential() / slope, *bounds)

    leave = leaving()
    shares = bounded_row(shares, alphas[others], least / leave, rng)
    leave = leaving()
    row = row.copy()
    row[others], row[place] = leave * shares, 1.0 - leave
    return row


def slice_pairs(row, alphas, least, rng, pulls=None):
    """Update random pairs of entries with a fixed sum, by slice sampling.

    `row` has entries of at least `least`, and so has the result. The log density falls
    linearly with `pulls`, if any.
    """
    row = row.copy()
    if len(row) > 1:
        pulls = np.zeros(len(row)) if pulls is None else pulls
        n_pairs = _N_SLICES * len(row)
        slice_pairs_of(row, alphas, pulls, least, n_pairs, state_of(rng))
    return row
