"""Online Bayesian regression with a full covariance, row after row.

The posterior is Gaussian, relative to the noise where that is estimated:

model : (N_VECTORS, width), the rows MEAN, ..., HIGH;
covariance : (width, width), symmetric, VARIANCE its diagonal;
scalars : (N_SCALARS,), the numbers WEIGHT, ..., COUNT.

`width` is the number of parameters rounded up to a multiple of LANES, so that a loop
along a row of the covariance is a loop over whole vectors of the processor; what is
beyond the parameters is 0, in Z too. Z holds rows in the coordinates of the parameters;
where there is an intercept, it is parameter 0 and the first column of Z is 1.
`sample_weight` may be empty. The prediction of each row, made before it is learnt, is
written to `predictions`, which may be empty.
"""

import math

import numpy as np

from . import kernel

LANES = 4
N_VECTORS = 8
MEAN, VARIANCE, PRIOR, CENTRE, SCATTER, AVERAGE, LOW, HIGH = range(N_VECTORS)
# Numbers and settings are those of the diagonal model, of which some are not used.
WEIGHT, STEPS, LOSS, _, _, RESIDUALS, COUNT = range(7)
TEMPERATURE, FORGETTING, PRIOR_SCALE, _, _, _, _, FLAT, AVERAGING, RELATIVE = range(10)
EPSILON = 2.0**-52


@kernel
def _settle(covariance, owed, growth):
    """Subtract the downdate that is owed, multiply by `growth`, and owe nothing."""
    width = owed.shape[0]
    for j in range(width):
        row = covariance[j]
        own = owed[j]
        for k in range(width):
            row[k] = growth * (row[k] - own * owed[k])
    for j in range(width):
        owed[j] = 0.0


@kernel
def _settle_and_multiply(covariance, owed, x, out):
    """`_settle`, and write the product of the covariance and x to `out`."""
    width = owed.shape[0]
    for k in range(width):
        out[k] = 0.0
    for j in range(0, width, 2):  # two rows at a time: half the traffic of `out`
        first, second = covariance[j], covariance[j + 1]
        own_first, own_second = owed[j], owed[j + 1]
        x_first, x_second = x[j], x[j + 1]
        for k in range(width):
            other = owed[k]
            u = first[k] - own_first * other
            v = second[k] - own_second * other
            first[k] = u
            second[k] = v
            out[k] += x_first * u + x_second * v
    for j in range(width):
        owed[j] = 0.0


@kernel
def _read_diagonal(covariance, model):
    """Copy the diagonal of the covariance to `model`."""
    for k in range(model.shape[1]):
        model[VARIANCE, k] = covariance[k, k]


@kernel
def _along(model, covariance, gain, x):
    """Return x'mean, x'gain, and the variance along x of the diagonal, which is read.

    Two sums of each, which the processor adds side by side.
    """
    mean, variance = model[MEAN], model[VARIANCE]
    a0 = a1 = v0 = v1 = s0 = s1 = 0.0
    for k in range(0, x.shape[0], 2):
        variance[k] = covariance[k, k]
        variance[k + 1] = covariance[k + 1, k + 1]
        a0 += mean[k] * x[k]
        a1 += mean[k + 1] * x[k + 1]
        v0 += gain[k] * x[k]
        v1 += gain[k + 1] * x[k + 1]
        s0 += variance[k] * x[k] * x[k]
        s1 += variance[k + 1] * x[k + 1] * x[k + 1]
    return a0 + a1, max(0.0, v0 + v1), s0 + s1


@kernel
def _condition(model, covariance, gain, owed, residual, precision, v, spread):
    """Condition on a measurement x'theta that exceeds x'mean by `residual`.

    gain : the covariance times x; v, spread : its product with x, and that of its
    diagonal. The downdate gain gain' / (1 / precision + v) is left owed.

    The covariance stays positive whatever the rounding. With X the sum of the
    |x[k]| standard deviation[k], which is at most the root of width * spread, v is off
    by at most EPSILON * width * X^2, which is added to the noise; then entry (j, k) by
    at most slack / width standard deviations j times k, and a share `slack` of
    the diagonal is added to it.
    """
    width = owed.shape[0]
    mean, variance = model[MEAN], model[VARIANCE]
    total = 1.0 / precision + v + EPSILON * width * width * spread
    slack = EPSILON * width * (4.0 + width * math.sqrt(width * spread / total))
    step = residual / total
    root = 1.0 / math.sqrt(total)
    for k in range(width):
        mean[k] += step * gain[k]
        owed[k] = gain[k] * root
    for k in range(width):
        covariance[k, k] = variance[k] + slack * variance[k]


@kernel
def _condition_coordinate(model, covariance, gain, owed, j, value, precision):
    """Condition on a measurement of parameter j that gives `value`."""
    _settle(covariance, owed, 1.0)
    _read_diagonal(covariance, model)
    for k in range(owed.shape[0]):
        gain[k] = covariance[j, k]
    variance = gain[j] = model[VARIANCE, j]
    residual = value - model[MEAN, j]
    measured = residual, precision, variance, variance
    _condition(model, covariance, gain, owed, *measured)


@kernel
def _follow_scales(model, covariance, z, weight, gain, owed, scalars, settings):
    """Count the row in the spread of the columns, which is the unit of the prior.

    The precision of a coefficient's prior is the mean square of its column over that of
    the prior's scale. Where the spread has grown by a fifth, the difference is added
    as a measurement; a column that begins to vary gets its prior then.
    """
    centre, scatter, prior = model[CENTRE], model[SCATTER], model[PRIOR]
    total = scalars[WEIGHT] + weight
    share = weight / total
    unit = 1.0 / (total * settings[PRIOR_SCALE] ** 2)
    grown = False
    for j in range(z.shape[0]):
        before = z[j] - centre[j]
        centre[j] += share * before
        scatter[j] += weight * before * (z[j] - centre[j])
    for j in range(z.shape[0]):
        grown |= scatter[j] * unit > 1.2 * prior[j]
    if not grown:
        return
    for j in range(z.shape[0]):
        precision = scatter[j] * unit
        if precision <= 1.2 * prior[j]:
            continue
        if prior[j] == 0.0:
            covariance[j, j] = 1.0 / precision
        else:
            more = precision - prior[j]
            _condition_coordinate(model, covariance, gain, owed, j, 0.0, more)
        prior[j] = precision


@kernel
def _within(model, z, a):
    """Prediction of the row z, which is a if all its columns are in their ranges.

    The ranges are those of the rows so far, which the row joins.
    """
    mean, low, high = model[MEAN], model[LOW], model[HIGH]
    outside = False
    for j in range(z.shape[0]):
        outside |= (z[j] < low[j]) | (z[j] > high[j])
    if not outside:
        return a
    for j in range(z.shape[0]):
        inside = min(max(z[j], low[j]), high[j])
        a -= mean[j] * (z[j] - inside)
        low[j] = min(z[j], low[j])
        high[j] = max(z[j], high[j])
    return a


@kernel
def _suffer(model, y, prediction, weight, scalars, settings):
    """Count the row, and the loss of its prediction."""
    scalars[WEIGHT] += weight
    scalars[STEPS] += 1.0
    scalars[LOSS] += weight * (y - prediction) ** 2
    if settings[AVERAGING] == 1.0:
        for j in range(model.shape[1]):
            model[AVERAGE, j] += weight * model[MEAN, j]


@kernel
def _start_flat(model, covariance, z, y, precision):
    """First row under a flat prior of the intercept: it takes the intercept there."""
    model[MEAN, 0] = y
    covariance[0, 0] = 1.0 / precision
    for j in range(1, z.shape[0]):
        shared = z[j] * covariance[j, j]
        covariance[0, j] = covariance[j, 0] = -shared
        covariance[0, 0] += z[j] * shared


@kernel
def _forget(model, covariance, gain, owed, scalars, settings, n_parameters):
    """Exponential forgetting; the prior returns, one coordinate at a time."""
    rate = settings[FORGETTING]
    growth = 1.0 / (1.0 - rate)
    _settle(covariance, owed, growth)
    start = int(settings[FLAT])
    n_features = n_parameters - start
    j = start + int(scalars[STEPS]) % n_features
    precision = rate * n_features * model[PRIOR, j]
    if precision > 0.0:
        _condition_coordinate(model, covariance, gain, owed, j, 0.0, precision)


@kernel
def learn_full(
    Z,
    y,
    sample_weight,
    covariance,
    model,
    scalars,
    settings,
    n_parameters,
    predictions,
):
    """Implicit NGVI on the squared loss with a full covariance: exact Bayes."""
    width = Z.shape[1]
    gain = np.zeros(width)
    owed = np.zeros(width)  # the last downdate, made along with the next product
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        if settings[RELATIVE] == 1.0:
            _follow_scales(model, covariance, z, weight, gain, owed, scalars, settings)
        _settle_and_multiply(covariance, owed, z, gain)
        a, v, spread = _along(model, covariance, gain, z)
        seen = _within(model, z, a) if settings[RELATIVE] == 1.0 else a
        _suffer(model, y[i], seen, weight, scalars, settings)
        if predictions.shape[0]:
            predictions[i] = seen
        precision = weight
        if settings[TEMPERATURE] > 0.0:
            precision *= 2.0 * settings[TEMPERATURE]
        if settings[FLAT] == 1.0 and scalars[STEPS] == 1.0:
            _start_flat(model, covariance, z, y[i], precision)
            continue
        if settings[FORGETTING] > 0.0:
            _forget(model, covariance, gain, owed, scalars, settings, n_parameters)
            _settle_and_multiply(covariance, owed, z, gain)
            a, v, spread = _along(model, covariance, gain, z)
        _condition(model, covariance, gain, owed, y[i] - a, precision, v, spread)
        keep = 1.0 - settings[FORGETTING]
        squared = (y[i] - a) ** 2 / (1.0 + weight * v)
        scalars[RESIDUALS] = keep * scalars[RESIDUALS] + weight * squared
        scalars[COUNT] = keep * scalars[COUNT] + weight
    _settle(covariance, owed, 1.0)
    _read_diagonal(covariance, model)
