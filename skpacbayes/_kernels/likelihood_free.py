"""The loop of approximate Bayesian computation: a search for near simulations.

The innermost loops run over consecutive rows of one column and carry no
reduction, so that the compiler vectorises them; the table is read once for all the
observations of a call. Blocks are small, so that the columns are read side by side:
each is one stream to the processor, which fetches ahead.
"""

import numpy as np

from . import kernel

# Rows whose distances are computed together, and passed over if none is near.
BLOCK = 64


@kernel
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

    Goes over ranges of rows in blocks, moves their starts along, and stops where a
    further block might not find room. Returns whether all rows have been seen. A
    threshold of NaN is passed by every row.

    columns : (n_directions, capacity); starts, stops : (n_ranges,), rows to look at;
    precisions : (n_directions,); observations : (n_observations, n_directions);
    thresholds : (n_observations,), of the squared distance; counts :
    (n_observations,), rows collected so far; distances, rows : (n_observations,
    room), what is collected: squared distances and rows.
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
