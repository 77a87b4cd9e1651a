"""Loops of approximate Bayesian computation: near simulations, and densities.

In the search, the innermost loops run over consecutive rows of one column and carry no
reduction, so that the compiler vectorises them; the table is read once for all the
observations of a call. Blocks are small, so that the columns are read side by side
and the processor prefetches each of them.
"""

import math

import numpy as np

from . import allocating, kernel

# Rows whose distances are computed together, and skipped if none is near.
BLOCK = 64
# Squared distances are rounded to 30 bits, the high part by this factor: equal ones
# then tie in any unit, and the last bits of differences do not decide.
SPLITTER = 2.0**23 + 1.0

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
NEGLIGIBLE = 37.0  # a kernel this many nats below the nearest one is left out
EDGE = 5.0  # bandwidths beyond which a kernel loses nothing at a bound


@allocating
def collect_nearer(
    columns,
    starts,
    stops,
    precisions,
    observations,
    thresholds,
    counts,
    distances,
    rows,
):
    """Collect the rows that are nearer to each observation than its threshold.

    Reads ranges of rows in blocks, advances their starts, and stops where a further
    block might not fit. Returns whether all rows have been read. Every row passes a
    threshold of NaN.

    columns : (n_directions, capacity); starts, stops : (n_ranges,), rows to look at;
    precisions : (n_directions,); observations : (n_observations, n_directions);
    thresholds : (n_observations,), of the squared distance; counts :
    (n_observations,), rows collected so far; distances, rows : (n_observations,
    room), what is collected: squared distances, rounded by SPLITTER, and rows.
    """
    squares = np.empty(BLOCK)
    for r in range(starts.shape[0]):
        while starts[r] < stops[r]:
            row = starts[r]
            width = min(BLOCK, stops[r] - row)
            for q in range(observations.shape[0]):
                if counts[q] + width > distances.shape[1]:
                    return False
            for q in range(observations.shape[0]):
                for i in range(width):
                    squares[i] = 0.0
                j = 0
                while j < columns.shape[0]:
                    column = columns[j, row : row + width]
                    x = observations[q, j]
                    precision = precisions[j]
                    if j + 1 < columns.shape[0]:  # two at a time: half the stores
                        other = columns[j + 1, row : row + width]
                        other_x = observations[q, j + 1]
                        other_precision = precisions[j + 1]
                        for i in range(width):
                            gap = (column[i] - x) * precision
                            other_gap = (other[i] - other_x) * other_precision
                            squares[i] = squares[i] + gap * gap + other_gap * other_gap
                    else:
                        for i in range(width):
                            gap = (column[i] - x) * precision
                            squares[i] += gap * gap
                    j += 2
                for i in range(width):
                    large = squares[i] * SPLITTER
                    high = large - (large - squares[i])
                    squares[i] = high if high == high else squares[i]  # overflow
                n_nearer = 0
                for i in range(width):
                    n_nearer += not squares[i] >= thresholds[q]
                if n_nearer == 0:
                    continue
                count = counts[q]
                for i in range(width):
                    if not squares[i] >= thresholds[q]:
                        distances[q, count] = squares[i]
                        rows[q, count] = row + i
                        count += 1
                counts[q] = count
            starts[r] = row + width
    return True


@kernel
def log_kernel_densities(
    draws, weights, point, unit, multipliers, low, high, squares, log_densities
):
    """Compute a kernel density at one point, for several bandwidths.

    Each normal kernel is truncated to the bounds, and scaled up to mass one.

    draws : (n_draws, n_parameters); weights : (n_draws,), they sum to 1; point, unit :
    (n_parameters,), the bandwidths are `multipliers`, (n_multipliers,), times `unit`;
    low, high : (n_parameters,); squares : (n_draws,), room for squared distances;
    log_densities : (n_multipliers,), filled.
    """
    n_draws, n_parameters = draws.shape
    least, log_unit = math.inf, 0.0
    for j in range(n_parameters):
        log_unit += math.log(unit[j])
    for i in range(n_draws):
        square = 0.0
        for j in range(n_parameters):
            gap = (point[j] - draws[i, j]) / unit[j]
            square += gap * gap
        squares[i] = min(square, 1e300)
        least = min(least, squares[i])
    for c in range(multipliers.shape[0]):
        precision = 0.5 / (multipliers[c] * multipliers[c])
        total = 0.0
        for i in range(n_draws):
            nats = (squares[i] - least) * precision
            if nats > NEGLIGIBLE or weights[i] == 0.0:
                continue
            mass = 1.0
            for j in range(n_parameters):
                if low[j] == -math.inf and high[j] == math.inf:
                    continue
                bandwidth = multipliers[c] * unit[j]
                below = (draws[i, j] - low[j]) / bandwidth
                above = (high[j] - draws[i, j]) / bandwidth
                if below < EDGE or above < EDGE:
                    mass *= 0.5 * (
                        math.erf(below / math.sqrt(2.0))
                        + math.erf(above / math.sqrt(2.0))
                    )
            total += weights[i] / mass * math.exp(-nats)
        log_densities[c] = -math.inf
        if total > 0.0:
            log_densities[c] = (
                math.log(total)
                - least * precision
                - log_unit
                - n_parameters * (math.log(multipliers[c]) + HALF_LOG_2PI)
            )
