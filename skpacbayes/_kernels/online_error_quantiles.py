"""Quantiles of the errors of an online regression, normal or as they were observed.

The counts of the errors are those of `online_errors`, in the state of `online_state`.
"""

import math

import numpy as np

from . import kernel
from .online_errors import LOWEST, PER_OCTAVE
from .online_state import ERROR_UNIT, N_NUMBERS, N_SIDE, SMALLEST

_SIZES = LOWEST * 2.0 ** (np.arange(N_SIDE - 1) / PER_OCTAVE)
EDGES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])  # between the cells of counts
# Kolmogorov's distance between the observed and the normal shares below EDGES, times
# the root of the number of rows: normal errors exceed it in 2 % of cases.
DISTANCE = 1.5
# Effective number of rows over their number: the i-th row counts i times.
EFFECTIVE = 0.75
FEWEST = 20.0

# Coefficients of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), numerator
# and denominator, from the highest power: for shares near one half, and for the tails.
_CENTRE = np.array(
    [
        [2509.0809287301226727, 5226.495278852854561],
        [33430.575583588128105, 28729.085735721942674],
        [67265.770927008700853, 39307.89580009271061],
        [45921.953931549871457, 21213.794301586595867],
        [13731.693765509461125, 5394.1960214247511077],
        [1971.5909503065514427, 687.1870074920579083],
        [133.14166789178437745, 42.313330701600911252],
        [3.387132872796366608, 1.0],
    ]
)
_TAIL = np.array(
    [
        [7.7454501427834140764e-4, 1.05075007164441684324e-9],
        [0.0227238449892691845833, 5.475938084995344946e-4],
        [0.24178072517745061177, 0.0151986665636164571966],
        [1.27045825245236838258, 0.14810397642748007459],
        [3.64784832476320460504, 0.68976733498510000455],
        [5.7694972214606914055, 1.6763848301838038494],
        [4.6303378461565452959, 2.05319162663775882187],
        [1.42343711074968357734, 1.0],
    ]
)
_FAR_TAIL = np.array(
    [
        [2.01033439929228813265e-7, 2.04426310338993978564e-15],
        [2.71155556874348757815e-5, 1.4215117583164458887e-7],
        [0.0012426609473880784386, 1.8463183175100546818e-5],
        [0.026532189526576123093, 7.868691311456132591e-4],
        [0.29656057182850489123, 0.0148753612908506148525],
        [1.7848265399172913358, 0.13692988092273580531],
        [5.4637849111641143699, 0.59983220655588793769],
        [6.6579046435011037772, 1.0],
    ]
)


@kernel
def _ratio(coefficients, x):
    """Return the ratio of two polynomials of x."""
    above = below = 0.0
    for k in range(coefficients.shape[0]):
        above = above * x + coefficients[k, 0]
        below = below * x + coefficients[k, 1]
    return above / below


@kernel
def normal_quantile(share):
    """Return the standard normal quantile of a share in (0, 1)."""
    apart = share - 0.5
    if abs(apart) <= 0.425:
        return apart * _ratio(_CENTRE, 0.180625 - apart * apart)
    depth = math.sqrt(-math.log(share if apart < 0.0 else 1.0 - share))
    if depth <= 5.0:
        size = _ratio(_TAIL, depth - 1.6)
    else:
        size = _ratio(_FAR_TAIL, depth - 5.0)
    return -size if apart < 0.0 else size


@kernel
def _observed(counts, total, rare, level):
    """Return a quantile interpolated between EDGES, on the scale of normal scores.

    There, normal errors are a straight line. Shares are kept within [rare, 1 - rare].
    Beyond the outermost errors, the line through 0 and the last edge continues.
    """
    right, below, common = 0, counts[0], 1.0 - rare
    low = high = min(max(below / total, rare), common)
    while right < EDGES.shape[0] - 1 and (
        right == 0 or high <= rare or (high < level and high < common)
    ):
        right += 1
        low, below = high, below + counts[right]
        high = min(max(below / total, rare), common)
    left_edge, right_edge, score = (
        EDGES[right - 1],
        EDGES[right],
        normal_quantile(level),
    )
    low_score, high_score = normal_quantile(low), normal_quantile(high)
    if level < low:
        slope = left_edge / low_score if low_score != 0.0 else 0.0
        return left_edge + max(slope, 0.0) * (score - low_score)
    if level > high:
        slope = right_edge / high_score if high_score != 0.0 else 0.0
        return right_edge + max(slope, 0.0) * (score - high_score)
    slope = (right_edge - left_edge) / max(high_score - low_score, 1e-9)
    return left_edge + slope * (score - low_score)


@kernel
def move_to_observed(numbers, noise, levels, quantiles):
    """Move normal quantiles of standardised errors towards those that were observed.

    They do not change unless the errors that were observed contradict them. The more
    they do, the nearer are the quantiles to the observed ones; the observed ones alone
    would be noisier where errors are normal.

    numbers : of one model; noise : its estimated variance; levels : (n_levels,);
    quantiles : (n_levels,), those of these levels if errors are normal, which are
    replaced.
    """
    counts = numbers[N_NUMBERS:]
    total = 0.0
    for k in range(counts.shape[0]):
        total += counts[k]
    n_rows = EFFECTIVE * math.sqrt(2.0 * total)
    if n_rows < FEWEST or noise <= SMALLEST:
        return
    unit = numbers[ERROR_UNIT] / math.sqrt(noise)
    below = distance = 0.0
    for k in range(EDGES.shape[0]):
        below += counts[k]
        normal = 0.5 * math.erfc(-unit * EDGES[k] * 0.7071067811865476)
        distance = max(distance, abs(below / total - normal))
    distance *= math.sqrt(n_rows)
    if distance <= DISTANCE:
        return
    trust = 1.0 - (DISTANCE / distance) ** 4
    for i in range(levels.shape[0]):
        observed = unit * _observed(counts, total, 0.5 / n_rows, levels[i])
        quantiles[i] = (1.0 - trust) * quantiles[i] + trust * observed
