"""Online Bayesian regression with a full covariance, row after row.

The state is that of `online_state`; the posterior is relative to the noise where that
is estimated. A covariance is symmetric, its diagonal the vector VARIANCE; panel p holds
PANEL of its columns, row after row.

`width` is the number of parameters rounded up to a multiple of LANES, so that a loop
along a row of the covariance is a loop over whole vectors of the processor; what is
beyond the parameters is 0, in Z too. The rows of a panel are PANEL numbers apart,
whatever the width, so that the compiler knows that they do not overlap.

Z holds rows in the coordinates of the parameters; where there is an intercept, it is
parameter 0 and the first column of Z is 1. `sample_weight` may be empty.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import SQUARED, aggregate
from .online_state import (
    AVERAGE,
    AVERAGING,
    CENTER,
    COUNT,
    FLAT,
    FORGETTING,
    HIGH,
    LANES,
    LOSS,
    LOW,
    MEAN,
    N_COEFFICIENTS,
    PANEL,
    PRIOR,
    PRIOR_SCALE,
    RESIDUALS,
    SCATTER,
    SMALLEST,
    START,
    STEPS,
    TEMPERATURE,
    VARIANCE,
    WEIGHT,
)
from .standardize import add_waves, first_refused, standardize

EPSILON = 2.0**-52


@kernel
def _dot(x, y):
    """Inner product: four sums, which the processor adds side by side."""
    s0 = s1 = s2 = s3 = 0.0
    for block in range(x.shape[0] // LANES):
        k = LANES * block
        s0 += x[k] * y[k]
        s1 += x[k + 1] * y[k + 1]
        s2 += x[k + 2] * y[k + 2]
        s3 += x[k + 3] * y[k + 3]
    return (s0 + s1) + (s2 + s3)


@kernel
def _settle(covariance, owed, growth):
    """Subtract the downdate that is owed, multiply by `growth`, and owe nothing."""
    width = owed.shape[0]
    for p in range(covariance.shape[0]):
        panel = covariance[p]
        first = PANEL * p
        n_columns = PANEL if width - first > PANEL else width - first
        for j in range(width):
            own = owed[j]
            for k in range(n_columns):
                entry = panel[PANEL * j + k] - own * owed[first + k]
                panel[PANEL * j + k] = growth * entry
    for j in range(width):
        owed[j] = 0.0


@kernel
def _condition(model, covariance, owed, gain, x, residual, precision):
    """Condition on a measurement of x'theta that exceeds x'mean by `residual`.

    The downdate owed is subtracted in the pass that gives gain = covariance x; that
    of this row, gain gain' / (1 / precision + v), is left owed. Returns v = x'gain.

    The covariance stays positive whatever the rounding. With X the sum of the
    |x[k]| standard deviation[k], which is at most the root of width * spread, v is off
    by at most EPSILON * width * X^2, which is added to the noise; then entry (j, k) by
    at most slack / width standard deviations j times k, and a share `slack` of
    the diagonal is added to it.
    """
    width = x.shape[0]
    mean, variance = model[MEAN], model[VARIANCE]
    for k in range(width):
        gain[k] = 0.0
    for p in range(covariance.shape[0]):
        panel = covariance[p]
        first = PANEL * p
        n_columns = PANEL if width - first > PANEL else width - first
        for block in range(width // LANES):  # so many rows at once: `gain` is read less
            j = LANES * block
            row = PANEL * j
            h0, h1, h2, h3 = owed[j], owed[j + 1], owed[j + 2], owed[j + 3]
            x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
            for k in range(n_columns):
                h = owed[first + k]
                u0 = panel[row + k] - h0 * h
                u1 = panel[row + PANEL + k] - h1 * h
                u2 = panel[row + 2 * PANEL + k] - h2 * h
                u3 = panel[row + 3 * PANEL + k] - h3 * h
                panel[row + k] = u0
                panel[row + PANEL + k] = u1
                panel[row + 2 * PANEL + k] = u2
                panel[row + 3 * PANEL + k] = u3
                gain[first + k] += (x0 * u0 + x1 * u1) + (x2 * u2 + x3 * u3)
        for k in range(n_columns):
            variance[first + k] = panel[PANEL * (first + k) + k]
    for k in range(width):  # nothing is owed now
        owed[k] = variance[k] * x[k]
    along = _dot(gain, x)
    along = along if along > 0.0 else 0.0
    spread = width * _dot(owed, x)
    total = 1.0 / precision + along + EPSILON * width * spread
    slack = EPSILON * width * (4.0 + width * math.sqrt(spread / total))
    step = residual / total
    root = 1.0 / math.sqrt(total)
    for k in range(width):
        mean[k] += step * gain[k]
        owed[k] = gain[k] * root
    for p in range(covariance.shape[0]):
        first = PANEL * p
        for k in range(PANEL if width - first > PANEL else width - first):
            kept = variance[first + k]
            covariance[p, PANEL * (first + k) + k] = kept + slack * kept
    return along


@part
def _follow(model, covariance, owed, gain, axis, growth, z, weight, numbers):
    """Count the row in the spread of the columns, which is the unit of the prior.

    The precision of a coefficient's prior is the mean square of its column over that of
    the prior's scale. Where the spread has grown by a fifth, the difference, written to
    `growth`, is added; a column that begins to vary gets its prior, and is without
    variance until then. axis : zeros.
    """
    center, scatter, prior = model[CENTER], model[SCATTER], model[PRIOR]
    total = numbers[WEIGHT] + weight
    share = weight / total
    unit = 1.0 / (total * numbers[PRIOR_SCALE] ** 2)
    grown = False
    for j in range(z.shape[0]):
        before = z[j] - center[j]
        center[j] += share * before
        scatter[j] += weight * before * (z[j] - center[j])
    for j in range(z.shape[0]):
        precision = scatter[j] * unit
        grown |= (precision > 1.2 * prior[j]) & (precision > SMALLEST)
    if grown:
        for j in range(z.shape[0]):
            precision = scatter[j] * unit
            growth[j] = 0.0
            if precision > SMALLEST and precision > 1.2 * prior[j]:
                if prior[j] == 0.0:
                    covariance[j // PANEL, PANEL * j + j % PANEL] = 1.0 / precision
                else:
                    growth[j] = precision - prior[j]
                prior[j] = precision
        for j in range(z.shape[0]):
            if growth[j] > 0.0:
                axis[j] = 1.0
                back = -model[MEAN, j]
                _condition(model, covariance, owed, gain, axis, back, growth[j])
                axis[j] = 0.0


@part
def _beyond(model, z):
    """Part of the prediction of row z that lies beyond the range of the rows so far.

    The row joins them.
    """
    mean, low, high = model[MEAN], model[LOW], model[HIGH]
    outside = False
    for j in range(z.shape[0]):
        outside |= (z[j] < low[j]) | (z[j] > high[j])
    part = 0.0
    if outside:
        for j in range(z.shape[0]):
            if z[j] < low[j]:
                part += mean[j] * (z[j] - low[j])
                low[j] = z[j]
            if z[j] > high[j]:
                part += mean[j] * (z[j] - high[j])
                high[j] = z[j]
    return part


@part
def _start_flat(model, covariance, z, y, precision):
    """First row under a flat prior of the intercept: it takes the intercept there."""
    model[MEAN, 0] = y
    covariance[0, 0] = 1.0 / precision
    for j in range(1, z.shape[0]):
        p, k = j // PANEL, j % PANEL
        shared = z[j] * covariance[p, PANEL * j + k]
        covariance[0, PANEL * j] = covariance[p, k] = -shared
        covariance[0, 0] += z[j] * shared


@part
def _forget_full(model, covariance, owed, gain, axis, numbers, stream):
    """Forget a share of what was learnt; one coordinate returns to the prior.

    axis : zeros.
    """
    start, keep = 1 if stream[FLAT] == 1.0 else 0, 1.0 - numbers[FORGETTING]
    _settle(covariance, owed, 1.0 / keep)
    n_returning = np.int64(stream[START]) + np.int64(stream[N_COEFFICIENTS]) - start
    j = start + np.int64(numbers[STEPS]) % n_returning
    more = (1.0 - keep) * n_returning * model[PRIOR, j]
    if more > 0.0:
        axis[j] = 1.0
        _condition(model, covariance, owed, gain, axis, -model[MEAN, j], more)
        axis[j] = 0.0


@part
def _learn_full(
    Z, y, sample_weight, follows, model, covariance, numbers, stream, predictions
):
    """Predict, suffer and learn each row with one model.

    follows : not None where the prior follows the spread of the features.
    With forgetting the prior returns one coordinate at a time.
    """
    width = Z.shape[1]
    mean = model[MEAN]
    start = 1 if stream[FLAT] == 1.0 else 0
    keep = 1.0 - numbers[FORGETTING]
    work = np.zeros((4, width))
    gain, axis, growth = work[0], work[1], work[2]
    owed = work[3]  # the last downdate, made along with the next product
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        beyond = 0.0
        if follows is not None:
            _follow(model, covariance, owed, gain, axis, growth, z, weight, numbers)
            beyond = _beyond(model, z)
        residual = y[i] - _dot(mean, z)
        predictions[i] = y[i] - residual - beyond
        numbers[LOSS] += weight * (residual + beyond) ** 2
        numbers[WEIGHT] += weight
        numbers[STEPS] += 1.0
        if stream[AVERAGING] == 1.0:
            for j in range(width):
                model[AVERAGE, j] += weight * mean[j]
        precision = weight
        if numbers[TEMPERATURE] > 0.0:
            precision *= 2.0 * numbers[TEMPERATURE]
        if start == 1 and numbers[STEPS] == 1.0:
            _start_flat(model, covariance, z, y[i], precision)
            continue
        if keep < 1.0:
            _forget_full(model, covariance, owed, gain, axis, numbers, stream)
            residual = y[i] - _dot(mean, z)
        v = _condition(model, covariance, owed, gain, z, residual, precision)
        squared = residual * residual / (1.0 + weight * v)
        numbers[RESIDUALS] = keep * numbers[RESIDUALS] + weight * squared
        numbers[COUNT] = keep * numbers[COUNT] + weight
    _settle(covariance, owed, 1.0)
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
    experts,
    predictions,
):
    """Implicit NGVI on the squared loss with a full covariance: exact Bayes.

    Each row is standardized, then each expert predicts, suffers and learns it, and the
    experts are aggregated. Returns whether the rows were learnt: False, and nothing is
    changed, where one is refused.

    moments, ..., experts : see `online_state`.
    predictions : (n_experts, n_rows), receives their predictions, made before the row
    was learnt; with several experts, row 0 the aggregate's.
    """
    if first_refused(X, y, sample_weight) >= 0:
        return False
    Z = np.empty((X.shape[0], models.shape[2]))
    standardize(X, sample_weight, moments, origin, stream, Z)
    if waves is not None:
        add_waves(Z, X.shape[1], *waves, stream)
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
            predictions[k],
        )
    if experts is not None:
        losses, totals = experts[0][0], experts[1][0]
        aggregate(y, -1, sample_weight, SQUARED, predictions, losses, totals)
    return True
