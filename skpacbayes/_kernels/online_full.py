"""Online Bayesian regression with a full covariance, row after row.

The state is that of `online_state`, and the covariance that of `online_covariance`; the
posterior is relative to the noise where that is estimated.
"""

import numpy as np

from . import kernel, part
from .aggregation import aggregate_squares
from .online_change import note_error
from .online_covariance import (
    beyond_range,
    condition,
    follow,
    forget_covariance,
    settle,
)
from .online_errors import note_cell
from .online_parts import enter, inner_product
from .online_state import (
    AVERAGE,
    AVERAGING,
    COUNT,
    FLAT,
    FORGETTING,
    LOSS,
    MEAN,
    N_WORK,
    PANEL,
    RESIDUALS,
    SIZE,
    STEPS,
    TEMPERATURE,
    VARIANCE,
    WEIGHT,
)

# Least precision of the first row, so that products of variances do not overflow.
LEAST_PRECISION = 1e-150


@part
def _start_flat(model, covariance, z, y, weight, precision):
    """Fit the first row exactly, under a flat prior of the intercept."""
    model[MEAN, 0] = y
    model[AVERAGE, 0] = weight * y  # the mean before this row has no value
    slight = precision < LEAST_PRECISION
    covariance[0, 0] = 1.0 / (LEAST_PRECISION if slight else precision)
    for j in range(1, z.shape[0]):
        p, k = j // PANEL, j % PANEL
        shared = z[j] * covariance[p, PANEL * j + k]
        covariance[0, PANEL * j] = covariance[p, k] = -shared
        covariance[0, 0] += z[j] * shared


@kernel
def _learn_full(
    Z, y, sample_weight, origin, model, covariance, numbers, stream, work, predictions
):
    """Predict, then learn each row with one model; add up its losses.

    origin : where it is not empty, the prior follows the spread of the features.
    With forgetting the prior returns one coordinate at a time.
    """
    width = np.int64(numbers[SIZE])
    mean = model[MEAN]
    start = 1 if stream[FLAT] == 1.0 else 0
    keep = 1.0 - numbers[FORGETTING]
    gain, axis, growth = work[0, :width], work[1, :width], work[2, :width]
    owed = work[3, :width]  # the pending downdate, applied with the next product
    for j in range(width):
        axis[j] = owed[j] = 0.0
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        row = Z[i]  # with columns of other models, whose coefficients are 0
        z = row[:width]
        beyond = 0.0
        if origin.shape[0] > 0:
            follow(model, covariance, owed, gain, axis, growth, z, weight, numbers)
            beyond = beyond_range(model, z, stream)
        residual = y[i] - inner_product(mean, row)
        predictions[i] = y[i] - residual - beyond
        error = residual + beyond
        numbers[LOSS] += weight * (error * error)
        numbers[WEIGHT] += weight
        numbers[STEPS] += 1.0
        if stream[AVERAGING] == 1.0:
            for j in range(width):
                model[AVERAGE, j] += weight * mean[j]
        precision = weight
        if numbers[TEMPERATURE] > 0.0:
            precision *= 2.0 * numbers[TEMPERATURE]
        if start == 1 and numbers[STEPS] == 1.0:
            _start_flat(model, covariance, z, y[i], weight, precision)
            continue
        if keep < 1.0:
            forget_covariance(model, covariance, owed, gain, axis, numbers, stream)
            residual = y[i] - inner_product(mean, row)
        v = condition(model, covariance, owed, gain, z, residual, precision)
        if numbers[TEMPERATURE] == 0.0:
            shift = 1.0 / (1.0 / weight + v)
            note_error(z, gain, residual, v, weight, shift, model, numbers)
            note_cell(residual, v, weight, numbers)
        squared = residual * residual / (1.0 + weight * v)
        numbers[RESIDUALS] = keep * numbers[RESIDUALS] + weight * squared
        numbers[COUNT] = keep * numbers[COUNT] + weight
    settle(covariance, owed, 1.0)
    for k in range(width):
        model[VARIANCE, k] = covariance[k // PANEL, PANEL * k + k % PANEL]


@kernel
def learn_full(
    X,
    y,
    sample_weight,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    work,
    predictions,
):
    """Learn by NGVI on the squared loss with a full covariance: exact Bayes.

    Each row is standardized, then each expert predicts and learns it, and the
    experts are aggregated. Returns whether the rows were learnt. If a row is refused,
    returns False and changes nothing.

    moments, ..., work : see `online_state`.
    predictions : (n_experts, n_rows), receives their predictions, made before the row
    was learnt; with several experts, row 0 the aggregate's.
    """
    Z = work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, origin, waves, stream, Z, None):
        return False
    for k in range(models.shape[0]):
        _learn_full(
            Z,
            y,
            sample_weight,
            origin,
            models[k],
            covariances[k],
            numbers[k],
            stream,
            work,
            predictions[k],
        )
    if losses is not None:
        aggregate_squares(y, sample_weight, predictions, losses[0], totals[0], work)
    return True
