"""Quantiles of the errors of an online regression, normal or as they were observed."""

import math
from bisect import bisect_left, bisect_right

import numpy as np
from scipy.special import ndtr, ndtri

from .._kernels.online_errors import LOWEST, PER_OCTAVE
from .._kernels.online_state import N_SIDE

_SIZES = LOWEST * 2.0 ** (np.arange(N_SIDE - 1) / PER_OCTAVE)
EDGES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])  # between the cells of counts
_EDGES = EDGES.tolist()
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
    through 0 and the last edge continues. For few levels, lists are faster than arrays.
    """
    rare, shares = 0.5 / n_rows, below.tolist()
    first = min(max(bisect_left(shares, rare) - 1, 0), len(shares) - 2)
    last = max(bisect_right(shares, 1.0 - rare) + 1, first + 2)
    shares, edges = shares[first:last], _EDGES[first:last]
    for end in (0, -1):  # the others are within these bounds
        shares[end] = min(max(shares[end], rare), 1.0 - rare)
    wanted, most = levels.tolist(), len(edges) - 1
    rights = [min(max(bisect_left(shares, level), 1), most) for level in wanted]
    known = [shares[k] for right in rights for k in (right - 1, right)]
    scores, found = ndtri(known + wanted).tolist(), []
    for i, (level, right) in enumerate(zip(wanted, rights, strict=True)):
        low, high, score = scores[2 * i], scores[2 * i + 1], scores[len(known) + i]
        if level < shares[0]:
            slope = edges[0] / low if low else 0.0
            found.append(edges[0] + max(slope, 0.0) * (score - low))
        elif level > shares[-1]:
            slope = edges[-1] / high if high else 0.0
            found.append(edges[-1] + max(slope, 0.0) * (score - high))
        else:
            slope = (edges[right] - edges[right - 1]) / max(high - low, 1e-9)
            found.append(edges[right - 1] + slope * (score - low))
    return np.array(found)
