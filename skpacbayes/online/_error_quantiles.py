"""Quantiles of the errors of an online regression, normal or as they were observed."""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from .._kernels.online_errors import LOWEST, PER_OCTAVE
from .._kernels.online_state import N_SIDE

_SIZES = LOWEST * 2.0 ** (np.arange(N_SIDE - 1) / PER_OCTAVE)
EDGES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])  # between the cells of counts
# Kolmogorov's distance between the observed and the normal shares below EDGES, times
# the root of the number of rows: normal errors exceed it in 2 % of cases.
DISTANCE = 1.5
# Effective number of rows over their number: the i-th row counts i times.
EFFECTIVE = 0.75
FEWEST = 20


def error_quantiles(counts, unit, levels, normal):
    """Return quantiles of standardised errors, (n_levels,).

    They are the normal ones, unless the errors that were observed contradict them. The
    more they do, the nearer are the quantiles to the observed ones; the observed ones
    alone would be noisier where errors are normal.

    counts : of the errors in each cell, see `_kernels.online_errors`; unit : that of
    the cells; normal : quantiles of these levels if errors are normal.
    """
    total = counts.sum()
    n_rows = EFFECTIVE * math.sqrt(2.0 * total)
    if n_rows < FEWEST:
        return normal
    below = counts[:-1].cumsum() / total
    gaps = below - ndtr(unit * EDGES)
    distance = max(gaps.max(), -gaps.min()) * math.sqrt(n_rows)
    if distance <= DISTANCE:
        return normal
    trust = 1.0 - (DISTANCE / distance) ** 4
    return (1.0 - trust) * normal + trust * unit * _observed(below, n_rows, levels)


def _observed(below, n_rows, levels):
    """Return quantiles interpolated between EDGES, on the scale of normal scores.

    There, normal errors are a straight line. Beyond the outermost errors, the line
    through 0 and the last edge continues.
    """
    rare = 0.5 / n_rows
    first = min(max(np.searchsorted(below, rare) - 1, 0), len(below) - 2)
    last = max(np.searchsorted(below, 1.0 - rare, "right") + 1, first + 2)
    below, edges = below[first:last].clip(rare, 1.0 - rare), EDGES[first:last]
    right = below.searchsorted(levels).clip(1, len(edges) - 1)
    scores, wanted = ndtri(below[[right - 1, right]]), ndtri(levels)
    low, high = edges[right - 1], edges[right]
    slope = (high - low) / np.maximum(scores[1] - scores[0], 1e-9)
    found = low + slope * (wanted - scores[0])
    for end, beyond in ((0, levels < below[0]), (-1, levels > below[-1])):
        if beyond.any():
            score = ndtri(below[end])
            line = edges[end] + max(edges[end] / score, 0.0) * (wanted - score)
            found = np.where(beyond, line, found)
    return found
