"""Online variational inference for one linear model, row after row.

The posterior is Gaussian with a diagonal covariance. Its state is a few rows of one
array and some numbers:

model : (N_VECTORS, n_parameters), the rows MEAN, ..., AVERAGE;
scalars : (N_SCALARS,), the numbers WEIGHT, ..., COUNT.

Z holds rows in the coordinates of the parameters; where there is an intercept, it is
parameter 0 and the first column of Z is 1. `sample_weight` may be empty. The
prediction of each row, made before it is learnt, is written to `predictions`, which
may be empty. Labels are -1 and 1.
"""

import math

import numpy as np

from . import kernel

# Methods, losses and kinds of step sizes, by number.
NGVI, NGVI_EXPLICIT, SVA, SVB, OGA, OGA_EL = range(6)
SQUARED, ABSOLUTE, HINGE, LOG = range(4)
CONSTANT, INVSQRT, ADAGRAD = range(3)

N_VECTORS = 6
MEAN, VARIANCE, PRIOR, GRADIENT_MEAN, GRADIENT_SCALE, AVERAGE = range(N_VECTORS)
N_SCALARS = 7
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions
    SQUARES,  # sum of |g_t|^2
    SCALED_SQUARES,  # sum of |g_t|^2 / sqrt(t)
    RESIDUALS,  # weighted sum of the scaled squared (or absolute) residuals
    COUNT,  # sum of the weights behind RESIDUALS
) = range(N_SCALARS)
N_SETTINGS = 10
(
    TEMPERATURE,  # inverse temperature, or 0 where the noise is estimated
    FORGETTING,
    PRIOR_SCALE,
    MEAN_BOUND,
    SCALE_BOUND,
    RATE_KIND,
    RATE,
    FLAT,  # whether the intercept's prior is flat
    AVERAGING,
    RELATIVE,  # used by the full covariance alone
) = range(N_SETTINGS)

SMALLEST = 1e-300  # of a variance that is not 0: one over it is a number
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@kernel
def _normal_cdf(u):
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-u * 0.7071067811865476)


@kernel
def _normal_pdf(u):
    """Return the standard normal density."""
    return 0.3989422804014327 * math.exp(-0.5 * u * u)


@kernel
def _point_loss(loss, y, a):
    """Loss of the prediction a."""
    if loss == SQUARED:
        return (y - a) ** 2
    if loss == ABSOLUTE:
        return abs(y - a)
    if loss == HINGE:
        return 1.0 - y * a if y * a < 1.0 else 0.0
    return (-y * a if y * a < 0.0 else 0.0) + math.log1p(math.exp(-abs(a)))


@kernel
def _logistic_gradients(y, a, v):
    """`_expected_gradients` of the logistic loss, by Gauss-Hermite quadrature."""
    sd = math.sqrt(v)
    slope = 0.0
    curvature = 0.0
    for k in range(_NODES.shape[0]):
        p = 1.0 / (1.0 + math.exp(y * (a + sd * _NODES[k])))
        slope += _WEIGHTS[k] * p
        curvature += _WEIGHTS[k] * p * (1.0 - p)
    return -y * slope, 0.5 * curvature


@kernel
def _expected_gradients(loss, y, a, v):
    """Return the derivatives in a and v of the loss expected under f ~ N(a, v)."""
    if loss == SQUARED:
        return -2.0 * (y - a), 1.0
    if loss == LOG:
        return _logistic_gradients(y, a, v)
    margin = 1.0 - y * a if loss == HINGE else y - a
    if v > SMALLEST:
        sd = math.sqrt(v)
        cdf = _normal_cdf(margin / sd)
        pdf = _normal_pdf(margin / sd) / sd
    else:
        cdf = 1.0 if margin > 0.0 else 0.0
        if loss == ABSOLUTE and margin == 0.0:
            cdf = 0.5
        pdf = 0.0
    if loss == HINGE:
        return -y * cdf, 0.5 * pdf
    return 1.0 - 2.0 * cdf, pdf


@kernel
def _solve_probit(target, slope, cdf, pdf):
    """Phi at the root q of q + slope * Phi(q) = target.

    cdf, pdf : Phi(target), and its derivative. Halley's method from there; a bisection
    where it leaves the bracket or does not converge.
    """
    low, high = target - slope, target
    if high < -9.0:  # Phi(q) < 2e-19
        return 0.0
    q = target
    step = 0.0
    last = math.inf
    for i in range(200):
        if i > 0:
            cdf = _normal_cdf(q)
            pdf = _normal_pdf(q)
        excess = q - target + slope * cdf
        if excess > 0.0:
            high = q
        else:
            low = q
        first = 1.0 + slope * pdf
        step = excess / (first + 0.5 * excess * q * slope * pdf / first)
        if not low <= q - step <= high or abs(step) > 0.5 * last:
            step = q - 0.5 * (low + high)
        last = abs(step)
        q -= step
        if abs(step) <= 1e-5 / (1.0 + abs(q)):
            break  # the next step would be of the order of its cube
    if slope > 1.0:
        return (target - q) / slope
    return cdf - step * pdf * (1.0 + 0.5 * step * q)


@kernel
def _solve_logistic(y, a, v, strength):
    """Return dL/da at the root a' of a' = a - strength * v * dL(a', v)/da."""
    low, high = a - strength * v, a + strength * v
    point = a
    slope = half_curvature = step = 0.0
    last = math.inf
    for _ in range(200):
        slope, half_curvature = _logistic_gradients(y, point, v)
        excess = point - a + strength * v * slope
        if excess > 0.0:
            high = point
        else:
            low = point
        step = excess / (1.0 + 2.0 * strength * v * half_curvature)
        if not low <= point - step <= high or abs(step) > 0.5 * last:
            step = point - 0.5 * (low + high)
        last = abs(step)
        point -= step
        if abs(step) <= 1e-8 * (1.0 + abs(point)):
            break  # the next step would be of the order of its square
    if strength * v > 1.0:
        return (a - point) / (strength * v)
    return slope - 2.0 * half_curvature * step


@kernel
def _implicit_gradients(loss, y, a, v, strength):
    """`_expected_gradients`, that in a taken where the step of the mean ends.

    That is at the root a' of a' = a - strength * v * dL(a', v)/da.
    """
    if loss == SQUARED:
        return -2.0 * (y - a) / (1.0 + 2.0 * strength * v), 1.0
    da, dv = _expected_gradients(loss, y, a, v)
    if loss == LOG:
        return _solve_logistic(y, a, v, strength), dv
    sd = math.sqrt(v)
    if loss == HINGE:
        margin, pdf = (1.0 - y * a) / sd, 2.0 * sd * dv
        return -y * _solve_probit(margin, strength * sd, -y * da, pdf), dv
    target, slope = (y - a) / sd + strength * sd, 2.0 * strength * sd
    cdf = _solve_probit(target, slope, _normal_cdf(target), _normal_pdf(target))
    return 1.0 - 2.0 * cdf, dv


@kernel
def _unit_and_temperature(loss, scalars, settings):
    """Return the unit of y and the inverse temperature in that unit.

    Where the noise is estimated the posterior variance is held relative to it: the
    squared loss then needs no unit, the absolute loss that of the mean residual.
    """
    if settings[TEMPERATURE] > 0.0:
        return 1.0, settings[TEMPERATURE]
    if loss == SQUARED:
        return 1.0, 0.5
    unit = scalars[RESIDUALS] / scalars[COUNT]
    return (unit if unit > 0.0 else 1.0), 1.0


@kernel
def _observe_residual(loss, y, a, v, weight, scalars, settings):
    """Count a residual in the estimate of the noise."""
    keep = 1.0 - settings[FORGETTING]
    scaled = abs(y - a)
    if loss == SQUARED:
        scaled *= scaled / (1.0 + weight * v)
    scalars[RESIDUALS] = keep * scalars[RESIDUALS] + weight * scaled
    scalars[COUNT] = keep * scalars[COUNT] + weight


@kernel
def _suffer(model, y, a, weight, loss, scalars, settings):
    """Count the row, and the loss of its prediction a."""
    scalars[WEIGHT] += weight
    scalars[STEPS] += 1.0
    scalars[LOSS] += weight * _point_loss(loss, y, a)
    if settings[AVERAGING] == 1.0:
        for j in range(model.shape[1]):
            model[AVERAGE, j] += weight * model[MEAN, j]


@kernel
def _start_flat(model, y, weight, settings):
    """First row under a flat prior of the intercept: it takes the intercept there."""
    temperature = settings[TEMPERATURE]
    model[MEAN, 0] = y
    model[VARIANCE, 0] = 1.0 / (weight * (2.0 * temperature if temperature else 1.0))


@kernel
def _project(model, settings):
    """Project means on [-mean_bound, mean_bound], deviations on [0, scale_bound]."""
    bound = settings[MEAN_BOUND]
    highest = settings[SCALE_BOUND] ** 2
    if bound < math.inf or highest < math.inf:
        for j in range(model.shape[1]):
            mean, variance = model[MEAN, j], model[VARIANCE, j]
            mean = -bound if mean < -bound else mean
            model[MEAN, j] = bound if mean > bound else mean
            model[VARIANCE, j] = highest if variance > highest else variance


@kernel
def _forget(model, z, rate):
    """Move the posterior towards the prior; return the prediction and variance."""
    a = 0.0
    v = 0.0
    keep = 1.0 - rate
    for j in range(model.shape[1]):
        total = keep + rate * model[PRIOR, j] * model[VARIANCE, j]
        model[MEAN, j] *= keep / total
        model[VARIANCE, j] /= total
        a += model[MEAN, j] * z[j]
        v += model[VARIANCE, j] * z[j] * z[j]
    return a, v


@kernel
def learn_natural(Z, y, sample_weight, model, scalars, settings, loss, predictions):
    """Implicit NGVI: equation (8) with the loss exact in the mean, diagonal V."""
    n_parameters = Z.shape[1]
    mean = model[MEAN]
    variance = model[VARIANCE]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        a = v = 0.0
        for j in range(n_parameters):
            a += mean[j] * z[j]
            v += variance[j] * z[j] * z[j]
        _suffer(model, y[i], a, weight, loss, scalars, settings)
        if predictions.shape[0]:
            predictions[i] = a
        if settings[FLAT] == 1.0 and scalars[STEPS] == 1.0:
            _start_flat(model, y[i], weight, settings)
            continue
        if settings[FORGETTING] > 0.0:
            a, v = _forget(model, z, settings[FORGETTING])
        _observe_residual(loss, y[i], a, v, weight, scalars, settings)
        if v <= SMALLEST:
            continue
        unit, temperature = _unit_and_temperature(loss, scalars, settings)
        strength = temperature * weight
        da, dv = _implicit_gradients(loss, y[i] / unit, a / unit, v, strength)
        shift = -unit * strength * da
        curve = 2.0 * strength * dv
        for j in range(n_parameters):
            spread = variance[j] * z[j]
            mean[j] += shift * spread
            variance[j] /= 1.0 + curve * spread * z[j]
        _project(model, settings)


@kernel
def _step_size(model, z, da, dv, scalars, settings):
    """Count the gradient (da z, 2 dv sigma z^2); return the size of the step."""
    squares = 0.0
    for j in range(z.shape[0]):
        square = z[j] * z[j]
        squares += da * da * square
        squares += 4.0 * dv * dv * model[VARIANCE, j] * square * square
    scalars[SQUARES] += squares
    scalars[SCALED_SQUARES] += squares / math.sqrt(scalars[STEPS])
    if settings[RATE_KIND] == CONSTANT:
        return settings[RATE]
    if settings[RATE_KIND] == INVSQRT:
        return 1.0 / math.sqrt(scalars[STEPS])
    if scalars[SQUARES] == 0.0:
        return 0.0
    return settings[PRIOR_SCALE] / math.sqrt(scalars[SQUARES])


@kernel
def _explicit_step(model, z, strength, unit, da, dv, rate):
    """Equation (8), solved exactly: the loss linearised at the current posterior."""
    for j in range(z.shape[0]):
        prior = model[PRIOR, j]
        precision = (1.0 - rate) / model[VARIANCE, j] + rate * prior
        precision += 2.0 * strength * dv * z[j] * z[j]
        slope = strength * unit * da * z[j] + rate * prior * model[MEAN, j]
        model[MEAN, j] -= slope / precision
        model[VARIANCE, j] = 1.0 / precision


@kernel
def _sva_step(model, z, da, dv, rate, settings):
    """Sequential variational approximation, equations (6) and (9), in dual form."""
    scale = settings[PRIOR_SCALE]
    if settings[RATE_KIND] == ADAGRAD:  # the step of the mean is rate * scale^2
        rate /= scale * scale
    for j in range(z.shape[0]):
        model[GRADIENT_MEAN, j] += da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        model[GRADIENT_SCALE, j] += 2.0 * dv * sd * z[j] * z[j]
        model[MEAN, j] = -rate * scale * scale * model[GRADIENT_MEAN, j]
        u = 0.5 * rate * scale * model[GRADIENT_SCALE, j]
        model[VARIANCE, j] = (scale / (math.sqrt(1.0 + u * u) + u)) ** 2


@kernel
def _svb_step(model, z, da, dv, rate, settings):
    """Streaming variational Bayes, equations (7) and (10).

    Where the step varies it is that of Theorem 3, divided by the variance.
    """
    natural = settings[RATE_KIND] == CONSTANT
    for j in range(z.shape[0]):
        variance = model[VARIANCE, j]
        step = rate * variance if natural else rate
        u = step * dv * math.sqrt(variance) * z[j] * z[j]
        model[MEAN, j] -= step * da * z[j]
        root = math.sqrt(variance + u * u) + u
        model[VARIANCE, j] = (variance / root) ** 2 if root > 0.0 else 0.0


@kernel
def _gradient_step(model, z, da, dv, rate):
    """Gradient descent in (m, sigma): OGA-EL, or OGA where dv is 0."""
    for j in range(z.shape[0]):
        model[MEAN, j] -= rate * da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        sd -= rate * 2.0 * dv * sd * z[j] * z[j]
        sd = sd if sd > 0.0 else 0.0
        model[VARIANCE, j] = sd * sd


@kernel
def learn_published(
    Z, y, sample_weight, model, scalars, settings, loss, method, predictions
):
    """Learn by the paper's methods as published, or by gradient descent."""
    n_parameters = Z.shape[1]
    mean = model[MEAN]
    variance = model[VARIANCE]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        a = v = 0.0
        for j in range(n_parameters):
            a += mean[j] * z[j]
            v += variance[j] * z[j] * z[j]
        _suffer(model, y[i], a, weight, loss, scalars, settings)
        if predictions.shape[0]:
            predictions[i] = a
        if settings[FLAT] == 1.0 and scalars[STEPS] == 1.0:
            _start_flat(model, y[i], weight, settings)
            continue
        if method == NGVI_EXPLICIT:
            _observe_residual(loss, y[i], a, v, weight, scalars, settings)
            unit, temperature = _unit_and_temperature(loss, scalars, settings)
            da, dv = _expected_gradients(loss, y[i] / unit, a / unit, v)
            strength = temperature * weight
            _explicit_step(model, z, strength, unit, da, dv, settings[FORGETTING])
        else:
            da, dv = _expected_gradients(loss, y[i], a, 0.0 if method == OGA else v)
            da, dv = weight * da, (0.0 if method == OGA else weight * dv)
            rate = _step_size(model, z, da, dv, scalars, settings)
            if method == SVA:
                _sva_step(model, z, da, dv, rate, settings)
            elif method == SVB:
                _svb_step(model, z, da, dv, rate, settings)
            else:
                _gradient_step(model, z, da, dv, rate)
        _project(model, settings)
