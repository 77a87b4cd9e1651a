"""Operations on a full covariance in the online kernels.

The state is that of `online_state`. A covariance is symmetric, its diagonal the vector
VARIANCE; panel p holds PANEL of its columns, row after row. `owed` is a downdate that
has not been subtracted yet: owed owed'.

`width` is the number of parameters rounded up to a multiple of LANES, so that a loop
along a row of the covariance is a loop over whole vectors of the processor; what is
beyond the parameters is 0, in Z too. The rows of a panel are PANEL numbers apart,
whatever the width, so that the compiler knows that they do not overlap.
"""

import math

import numpy as np

from . import kernel, part
from .online_parts import bring_within, inner_product
from .online_state import (
    CENTER,
    FLAT,
    FORGETTING,
    HIGH,
    LANES,
    LOW,
    MEAN,
    N_COEFFICIENTS,
    PANEL,
    PRIOR,
    PRIOR_SCALE,
    RESIDUALS,
    SCATTER,
    SIZE,
    SMALLEST,
    START,
    STEPS,
    VARIANCE,
    WEIGHT,
)

EPSILON = 2.0**-52
MEMORIES = 8  # within which every coordinate returns to the prior once


@kernel
def settle(covariance, owed, growth):
    """Apply the pending downdate, and multiply by `growth`."""
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
def condition(model, covariance, owed, gain, x, residual, precision):
    """Condition on a measurement of x'theta that exceeds x'mean by `residual`.

    The pending downdate is subtracted in the pass that computes gain = covariance x;
    that of this row, gain gain' / (1 / precision + v), is then pending in `owed`.
    Returns v = x'gain.

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
        for block in range(width // LANES):  # LANES rows at once: fewer reads of `gain`
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
    for k in range(width):  # no downdate is pending now
        owed[k] = variance[k] * x[k]
    along = inner_product(gain, x)
    along = along if along > 0.0 else 0.0
    spread = width * inner_product(owed, x)
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
def follow(model, covariance, owed, gain, axis, growth, z, weight, numbers):
    """Update the spread of the columns, which is the unit of the prior, by the row.

    The precision of a coefficient's prior is the mean square of its column over that of
    the prior's scale. Where the spread has grown by a fifth, the difference, written to
    `growth`, is added; a column that begins to vary gets its prior, and is without
    variance until then. axis : zeros.
    """
    center, scatter, prior = model[CENTER], model[SCATTER], model[PRIOR]
    total = numbers[WEIGHT] + weight
    share = weight / total
    unit = 1.0 / (total * (numbers[PRIOR_SCALE] * numbers[PRIOR_SCALE]))
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
                v = condition(model, covariance, owed, gain, axis, back, growth[j])
                square = growth[j] * back * back / (1.0 + growth[j] * v)
                numbers[RESIDUALS] += square
                axis[j] = 0.0


@part
def beyond_range(model, z, stream):
    """Return the part of the prediction of row z that is beyond the range so far.

    Updates the range by the row.
    """
    low, high = model[LOW], model[HIGH]
    outside = False
    for j in range(z.shape[0]):
        outside |= (z[j] < low[j]) | (z[j] > high[j])
    part = 0.0
    if outside:
        part = bring_within(model, z, stream)[0]
        for j in range(z.shape[0]):
            low[j] = z[j] if z[j] < low[j] else low[j]
            high[j] = z[j] if z[j] > high[j] else high[j]
    return part


@part
def forget_covariance(model, covariance, owed, gain, axis, numbers, stream):
    """Forget a share of the evidence; one coordinate returns to the prior.

    Several do where the memory is much shorter than the number of coordinates: what has
    not returned for long has a variance beyond the precision of a float.

    axis : zeros.
    """
    start, keep = 1 if stream[FLAT] == 1.0 else 0, 1.0 - numbers[FORGETTING]
    settle(covariance, owed, 1.0 / keep)
    n_parameters = stream[START] + stream[N_COEFFICIENTS]
    n_parameters = numbers[SIZE] if numbers[SIZE] < n_parameters else n_parameters
    n_returning = np.int64(n_parameters) - start
    n_memories = -n_returning * math.log(keep) / MEMORIES
    n_back = np.int64(n_memories) + 1 if n_memories < n_returning else n_returning
    first = np.int64(numbers[STEPS]) * n_back
    for k in range(n_back):
        j = start + (first + k) % n_returning
        more = (1.0 - keep) * n_returning / n_back * model[PRIOR, j]
        if more > 0.0:
            axis[j] = 1.0
            condition(model, covariance, owed, gain, axis, -model[MEAN, j], more)
            axis[j] = 0.0
