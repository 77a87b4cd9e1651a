"""Test whether errors of recent rows predict the next error.

If a model with the squared loss is correct and stationary, its errors are uncorrelated
with all earlier rows, whatever their distribution. If the relation changes, the errors
of a model that does not forget enough are correlated over many rows.
"""

import math

from . import part
from .online_state import (
    COUNT,
    MEAN,
    PRIOR,
    PRODUCTS,
    RESIDUALS,
    SCORES,
    SMALLEST,
    SQUARED_ERRORS,
    STEPS,
)

MEMORY = 0.96  # decay of the sums of errors: 25 rows
RECENT = 2.0  # the sums are over the last 1 / RECENT of the rows
FARTHEST = 100.0  # standard deviations to which errors are clipped


@part
def note_standard_error(z, gain, scale, error, steps, scores, sums):
    """Compare the error of row z with its prediction by the decaying sum of errors.

    The prediction is `scale` times <gain, scores>; its products with the errors are
    summed, after the first rows, from which the coefficients are learnt.

    error : in deviations; scores : (n_parameters,); sums : (4,), of the products, of
    their squares, of the squared predictions, and of the squared errors.
    """
    error = error if error < FARTHEST else FARTHEST
    error = error if error > -FARTHEST else -FARTHEST
    foretold = 0.0
    for j in range(z.shape[0]):
        foretold += gain[j] * scores[j]
        scores[j] = MEMORY * scores[j] + error * z[j]
    foretold *= scale
    if steps > 2.0 * z.shape[0]:
        keep = 1.0 - RECENT / steps
        product = error * foretold
        sums[0] = keep * sums[0] + product
        sums[1] = keep * sums[1] + product * product
        sums[2] = keep * sums[2] + foretold * foretold
        sums[3] = keep * sums[3] + error * error


@part
def note_error(z, gain, residual, v, weight, shift, model, numbers):
    """Compare the error of row z with its prediction by earlier errors.

    With V the posterior covariance, about 1 / n times the inverse second moment of the
    n rows that are not forgotten, and S the decaying sum of their errors times them,
    n z'V S is, but for a constant, the correction of this row's prediction by a step of
    Newton's method on the recent rows. The products of errors and corrections have mean
    zero where the model is right, and with forgetting at most zero. The error is that
    of least squares, to first order: the error of the posterior mean m minus z'V P m,
    where P holds the prior precisions, which shrink m.

    gain : V z; v : z'V z, in units of the noise, whose estimate does not yet include
    the row; shift : the step of the mean along V z since, as a multiple of the
    residual.
    """
    noise = numbers[RESIDUALS] / numbers[COUNT] if numbers[COUNT] > 0.0 else 0.0
    mean, prior = model[MEAN], model[PRIOR]
    if noise <= SMALLEST:
        return
    pull, step = 0.0, shift * residual
    for j in range(z.shape[0]):
        pull += gain[j] * prior[j] * (mean[j] - step * gain[j])
    residual -= pull
    error = residual / math.sqrt(noise * (1.0 / weight + v))
    sums, steps = numbers[PRODUCTS : SQUARED_ERRORS + 1], numbers[STEPS]
    note_standard_error(z, gain, numbers[COUNT], error, steps, model[SCORES], sums)
