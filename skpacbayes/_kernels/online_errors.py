"""Distribution of the errors of an online regression.

Errors of predictions, made before their rows were learnt, are counted in cells, in each
direction: those up to LOWEST, four for each doubling from LOWEST to HIGHEST, and those
beyond. Their unit is the deviation that the noise and the posterior give the row, with
the noise of ERROR_UNIT; if the model forgets, with its noise at that row. The counts
follow the N_NUMBERS numbers of a model, from the most negative errors to the most
positive ones. A row counts in proportion to the weight of all rows up to it, because
the errors of the first rows are larger.
"""

import math

import numpy as np

from . import kernel, part
from .online_state import (
    COUNT,
    ERROR_UNIT,
    FORGETTING,
    GROWTH,
    HALF_LOG_SIZES,
    HALF_N_SIZES,
    LOG_SIZES,
    N_LARGE,
    N_NUMBERS,
    N_SIDE,
    N_SIZES,
    RESIDUALS,
    SMALLEST,
    STEPS,
    WEIGHT,
)

PER_OCTAVE = 4.0
LOWEST = 2.0**-8
HIGHEST = LOWEST * 2.0 ** ((N_SIDE - 2) / PER_OCTAVE)
FEWEST = 10.0  # rows behind the first noise that is trusted
USUALLY_LARGE = 0.3  # share of normal errors above their deviation, about


@kernel
def change_unit(deviation, numbers):
    """Choose a unit of the errors near a deviation, and move the counts accordingly.

    Errors in the first and the last cell of a direction stay there.
    """
    octaves = math.log2(deviation / numbers[ERROR_UNIT])
    n_cells = math.floor(PER_OCTAVE * octaves + 0.5)
    numbers[ERROR_UNIT] *= 2.0 ** (n_cells / PER_OCTAVE)
    numbers[LOG_SIZES] -= n_cells * numbers[N_SIZES]
    numbers[HALF_LOG_SIZES] -= n_cells * numbers[HALF_N_SIZES]
    for i in range(1, N_SIDE - 1):
        cell = i if n_cells > 0 else N_SIDE - 1 - i
        moved = cell - n_cells if cell > n_cells else 0
        moved = moved if moved < N_SIDE else N_SIDE - 1
        for side in range(2):
            first, sign = N_NUMBERS + N_SIDE - side, 1 - 2 * side
            count = numbers[first + sign * cell]
            numbers[first + sign * cell] = 0.0
            numbers[first + sign * moved] += count


@part
def _note_size(place, large, numbers):
    """Compare the sizes of errors before and after half of the rows.

    Each time the number of rows is a power of two: the difference of the means of the
    logs, which a few large errors do not change much; 0 if fewer of the later errors
    than of normal ones exceed their deviation, which a far row may have raised. place :
    log of the size of the error of this row over LOWEST, in cells; large : whether it
    exceeds its deviation.
    """
    numbers[LOG_SIZES] += place
    numbers[N_SIZES] += 1.0
    numbers[N_LARGE] += large
    n_rows = np.int64(numbers[STEPS])
    if n_rows & (n_rows - 1) == 0:
        n_before = numbers[HALF_N_SIZES]
        n_after = numbers[N_SIZES] - n_before
        if n_before > 0.0:
            before = numbers[HALF_LOG_SIZES] / n_before
            after = (numbers[LOG_SIZES] - numbers[HALF_LOG_SIZES]) / n_after
            wide = numbers[N_LARGE] < USUALLY_LARGE * n_after
            numbers[GROWTH] = 0.0 if wide else (after - before) / PER_OCTAVE
        numbers[N_LARGE] = 0.0
        numbers[HALF_LOG_SIZES] = numbers[LOG_SIZES]
        numbers[HALF_N_SIZES] = numbers[N_SIZES]


@part
def note_cell(residual, v, weight, numbers):
    """Count the error of a row, before the estimate of the noise includes it.

    v : variance of the prediction, in units of the noise.
    """
    if numbers.shape[0] == N_NUMBERS or numbers[COUNT] < FEWEST:
        return
    noise = numbers[RESIDUALS] / numbers[COUNT]
    if noise <= SMALLEST:
        return
    deviation = math.sqrt(noise)
    if numbers[FORGETTING] > 0.0 or numbers[ERROR_UNIT] == 0.0:
        numbers[ERROR_UNIT] = deviation
    elif not 0.5 < deviation / numbers[ERROR_UNIT] < 2.0:
        change_unit(deviation, numbers)
    size, cell = abs(residual) / math.sqrt(1.0 / weight + v) / numbers[ERROR_UNIT], 0
    place = 0.0
    if size > HIGHEST:
        place, cell = N_SIDE - 2.0, N_SIDE - 1
    elif size > LOWEST:
        place = PER_OCTAVE * math.log2(size / LOWEST)
        cell = 1 + np.int64(place)
        cell = cell if cell < N_SIDE else N_SIDE - 1
    if numbers[FORGETTING] == 0.0:
        _note_size(place, size * numbers[ERROR_UNIT] > deviation, numbers)
    middle, count = N_NUMBERS + N_SIDE, weight * numbers[WEIGHT]
    if residual == 0.0:
        count *= 0.5
    if residual >= 0.0:
        numbers[middle + cell] += count
    if residual <= 0.0:
        numbers[middle - 1 - cell] += count
