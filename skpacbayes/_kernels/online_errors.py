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

from . import kernel, part
from .online_state import (
    COUNT,
    ERROR_UNIT,
    FORGETTING,
    N_NUMBERS,
    N_SIDE,
    RESIDUALS,
    SMALLEST,
    WEIGHT,
)

PER_OCTAVE = 4.0
LOWEST = 2.0**-8
HIGHEST = LOWEST * 2.0 ** ((N_SIDE - 2) / PER_OCTAVE)
FEWEST = 10.0  # rows behind the first noise that is trusted


@kernel
def change_unit(deviation, numbers):
    """Choose a unit of the errors near a deviation, and move the counts accordingly.

    Errors in the first and the last cell of a direction stay there.
    """
    middle = N_NUMBERS + N_SIDE
    octaves = math.log2(deviation / numbers[ERROR_UNIT])
    n_cells = math.floor(PER_OCTAVE * octaves + 0.5)
    numbers[ERROR_UNIT] *= 2.0 ** (n_cells / PER_OCTAVE)
    for i in range(1, N_SIDE - 1):
        cell = i if n_cells > 0 else N_SIDE - 1 - i
        moved = min(max(cell - n_cells, 0), N_SIDE - 1)
        for p, q in (
            (middle + cell, middle + moved),
            (middle - 1 - cell, middle - 1 - moved),
        ):
            count = numbers[p]
            numbers[p] = 0.0
            numbers[q] += count


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
    if size > HIGHEST:
        cell = N_SIDE - 1
    elif size > LOWEST:
        cell = min(1 + int(PER_OCTAVE * math.log2(size / LOWEST)), N_SIDE - 1)
    middle, count = N_NUMBERS + N_SIDE, weight * numbers[WEIGHT]
    if residual == 0.0:
        count *= 0.5
    if residual >= 0.0:
        numbers[middle + cell] += count
    if residual <= 0.0:
        numbers[middle - 1 - cell] += count
