"""The loop of approximate Bayesian computation: a search for near simulations.

The innermost loops run over consecutive rows of one column and carry no
reduction, so that the compiler vectorises them; the table is read once for all the
observations of a call.
"""

import numpy as np

from . import kernel

BLOCK = 512  # rows whose distances are computed together
STRIDE = 64  # rows that are passed over together if none is near


@kernel
def collect_nearer(
    columns, row, n_rows, scales, observations, thresholds, counts, distances, rows
):
    """Collect the rows that are nearer to each observation than its threshold.

    Goes over the rows from `row` on, in blocks, and stops where a further block might
    not find room; returns the row reached. A threshold of NaN is passed by every row.

    columns : (n_directions, capacity), of which the first `n_rows` rows count;
    scales : (n_directions,); observations : (n_observations, n_directions);
    thresholds : (n_observations,), of the squared distance; counts :
    (n_observations,), rows collected so far; distances, rows : (n_observations,
    room), what is collected: squared distances, in units of the scales, and rows.
    """
    squares = np.empty(BLOCK)
    while row < n_rows:
        width = min(BLOCK, n_rows - row)
        for q in range(observations.shape[0]):
            if counts[q] + width > distances.shape[1]:
                return row
        for q in range(observations.shape[0]):
            for i in range(width):
                squares[i] = 0.0
            j = 0
            while j < columns.shape[0]:
                column = columns[j, row : row + width]
                x = observations[q, j]
                precision = 1.0 / scales[j]
                if j + 1 < columns.shape[0]:  # two at a time: half the stores
                    other = columns[j + 1, row : row + width]
                    other_x = observations[q, j + 1]
                    other_precision = 1.0 / scales[j + 1]
                    for i in range(width):
                        gap = (column[i] - x) * precision
                        other_gap = (other[i] - other_x) * other_precision
                        squares[i] = squares[i] + gap * gap + other_gap * other_gap
                else:
                    for i in range(width):
                        gap = (column[i] - x) * precision
                        squares[i] += gap * gap
                j += 2
            threshold = thresholds[q]
            for start in range(0, width, STRIDE):
                tile = squares[start : min(start + STRIDE, width)]
                n_nearer = 0
                for i in range(tile.shape[0]):
                    n_nearer += not tile[i] >= threshold
                if n_nearer == 0:
                    continue
                count = counts[q]
                for i in range(tile.shape[0]):
                    if not tile[i] >= threshold:
                        distances[q, count] = tile[i]
                        rows[q, count] = row + start + i
                        count += 1
                counts[q] = count
        row += width
    return row
