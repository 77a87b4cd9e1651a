"""Online variational inference for linear models with diagonal covariances.

The state is that of `online_state`; `model` is the posterior of one model there, and
`numbers` its counts and settings. Z holds rows in the coordinates of the parameters;
where there is an intercept, it is parameter 0 and the first column of Z is 1.
`sample_weight` may be empty.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import LOG, SQUARED, aggregate, point_loss, target_of
from .online_errors import note_cell
from .online_losses import expected_gradients, implicit_gradients
from .online_parts import (
    enter,
    forget,
    is_to_forget,
    moderate,
    project,
    score_moments,
    suffer,
    take_units,
)
from .online_state import (
    ADAGRAD,
    AVERAGE,
    CONSTANT,
    COUNT,
    DOWN,
    FLAT,
    FORGETTING,
    GRADIENT_MEAN,
    GRADIENT_SCALE,
    INVSQRT,
    LOSS_KIND,
    MEAN,
    METHOD,
    N_WORK,
    NGVI_EXPLICIT,
    OGA,
    PRIOR,
    PRIOR_SCALE,
    RATE,
    RATE_KIND,
    RESIDUALS,
    SCALED_SQUARES,
    SIZE,
    SMALLEST,
    SQUARES,
    STEPS,
    SVA,
    SVB,
    TEMPERATURE,
    UP,
    VARIANCE,
)


@part
def _unit_and_temperature(loss, numbers, up, down):
    """Return the unit of y and the inverse temperature in that unit.

    Where the noise is estimated the posterior variance is held relative to it: the
    squared loss then needs no unit, the absolute loss that of the mean residual, which
    is the mean loss at slopes of one. It is 0 as long as all residuals are 0.
    """
    if numbers[TEMPERATURE] > 0.0:
        return 1.0, numbers[TEMPERATURE]
    if loss == SQUARED:
        return 1.0, 0.5
    temperature = 2.0 / (up + down)
    return temperature * numbers[RESIDUALS] / numbers[COUNT], temperature


@part
def _in_unit(target, a, unit):
    """Return target and prediction in the unit of y; they are equal where it is 0."""
    return (target / unit, a / unit) if unit > 0.0 else (0.0, 0.0)


@part
def _observe_residual(loss, y, a, v, weight, numbers, up, down):
    """Count a residual in the estimate of the noise."""
    keep = 1.0 - numbers[FORGETTING]
    scaled = abs(y - a)
    if loss == SQUARED:
        note_cell(y - a, v, weight, numbers)
        scaled *= scaled / (1.0 + weight * v)
    else:
        scaled *= up if y > a else down
    numbers[RESIDUALS] = keep * numbers[RESIDUALS] + weight * scaled
    numbers[COUNT] = keep * numbers[COUNT] + weight


@part
def _start_flat(model, y, weight, numbers):
    """Fit the first row exactly, under a flat prior of the intercept."""
    temperature = numbers[TEMPERATURE]
    model[MEAN, 0] = y
    model[AVERAGE, 0] = weight * y  # the mean before this row has no value
    model[VARIANCE, 0] = 1.0 / (weight * (2.0 * temperature if temperature else 1.0))


@kernel
def _learn_natural(
    Z, kept, y, output, sample_weight, model, numbers, stream, predictions
):
    """Predict, then learn each row with one model; add up its losses."""
    n_parameters = np.int64(numbers[SIZE])
    loss, up, down = np.int64(stream[LOSS_KIND]), stream[UP], stream[DOWN]
    mean = model[MEAN]
    variance = model[VARIANCE]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z, target = Z[i, :n_parameters], target_of(y[i], output)
        take_units(model, kept[i], stream)
        a, v = score_moments(mean, variance, z)
        predictions[i] = moderate(a, v) if loss == LOG else a
        suffered = point_loss(loss, target, predictions[i], up, down)
        suffer(model, suffered, weight, numbers, stream)
        if stream[FLAT] == 1.0 and numbers[STEPS] == 1.0:
            _start_flat(model, target, weight, numbers)
            continue
        if is_to_forget(target, numbers):
            a, v = forget(model, z, numbers[FORGETTING])
        _observe_residual(loss, target, a, v, weight, numbers, up, down)
        if v <= SMALLEST:
            continue
        unit, temperature = _unit_and_temperature(loss, numbers, up, down)
        strength = temperature * weight
        target, a = _in_unit(target, a, unit)
        da, dv = implicit_gradients(loss, target, a, v, strength, up, down)
        shift = -unit * strength * da
        curve = 2.0 * strength * dv
        for j in range(n_parameters):
            spread = variance[j] * z[j]
            mean[j] += shift * spread
            variance[j] /= 1.0 + curve * spread * z[j]
        project(model, stream)


@kernel
def learn_natural(
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
    """Learn by implicit NGVI: equation (8), the loss exact in the mean.

    Covariances are diagonal. Each row is standardized, then each model predicts and
    learns it, and the experts of an output are aggregated. Returns whether the rows
    were learnt. If a row is refused, returns False and changes nothing.

    moments, ..., work : see `online_state`.
    predictions : (n_experts, n_rows), receives the predictions of the last output,
    made before the row was learnt; with several experts, row 0 the aggregate's.
    """
    kept, Z = work[N_WORK:, : 1 + X.shape[1]], work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, None, waves, stream, Z, kept):
        return False
    n_experts = predictions.shape[0]
    for k in range(models.shape[0]):
        output = k // n_experts if models.shape[0] > n_experts else -1
        own = predictions[k % n_experts]
        _learn_natural(
            Z, kept, y, output, sample_weight, models[k], numbers[k], stream, own
        )
        if losses is not None and k % n_experts == n_experts - 1:
            own_losses, own_totals = losses[k // n_experts], totals[k // n_experts]
            loss, up, down = np.int64(stream[LOSS_KIND]), stream[UP], stream[DOWN]
            aggregate(
                y,
                output,
                sample_weight,
                loss,
                predictions,
                own_losses,
                own_totals,
                work,
                up,
                down,
            )
    return True


@kernel
def _step_size(model, z, da, dv, numbers, stream):
    """Count the gradient (da z, 2 dv sigma z^2); return the size of the step."""
    squares = 0.0
    for j in range(z.shape[0]):
        square = z[j] * z[j]
        squares += da * da * square
        squares += 4.0 * dv * dv * model[VARIANCE, j] * square * square
    numbers[SQUARES] += squares
    numbers[SCALED_SQUARES] += squares / math.sqrt(numbers[STEPS])
    if stream[RATE_KIND] == CONSTANT:
        return stream[RATE]
    if stream[RATE_KIND] == INVSQRT:
        return 1.0 / math.sqrt(numbers[STEPS])
    if numbers[SQUARES] == 0.0:
        return 0.0
    return numbers[PRIOR_SCALE] / math.sqrt(numbers[SQUARES])


@part
def _explicit_step(model, z, strength, unit, da, dv, rate):
    """Solve equation (8) exactly, the loss linearised at the current posterior."""
    for j in range(z.shape[0]):
        prior = model[PRIOR, j]
        precision = (1.0 - rate) / model[VARIANCE, j] + rate * prior
        precision += 2.0 * strength * dv * z[j] * z[j]
        slope = strength * unit * da * z[j] + rate * prior * model[MEAN, j]
        model[MEAN, j] -= slope / precision
        model[VARIANCE, j] = 1.0 / precision


@part
def _sva_step(model, z, da, dv, rate, numbers, stream):
    """Step of sequential variational approximation, equations (6), (9), dual form."""
    scale = numbers[PRIOR_SCALE]
    if stream[RATE_KIND] == ADAGRAD:  # the step of the mean is rate * scale^2
        rate /= scale * scale
    for j in range(z.shape[0]):
        model[GRADIENT_MEAN, j] += da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        model[GRADIENT_SCALE, j] += 2.0 * dv * sd * z[j] * z[j]
        model[MEAN, j] = -rate * scale * scale * model[GRADIENT_MEAN, j]
        u = 0.5 * rate * scale * model[GRADIENT_SCALE, j]
        model[VARIANCE, j] = (scale / (math.sqrt(1.0 + u * u) + u)) ** 2


@part
def _svb_step(model, z, da, dv, rate, stream):
    """Step of streaming variational Bayes, equations (7) and (10).

    A varying step size is that of Theorem 3, divided by the variance.
    """
    natural = stream[RATE_KIND] == CONSTANT
    for j in range(z.shape[0]):
        variance = model[VARIANCE, j]
        step = rate * variance if natural else rate
        u = step * dv * math.sqrt(variance) * z[j] * z[j]
        model[MEAN, j] -= step * da * z[j]
        root = math.sqrt(variance + u * u) + u
        model[VARIANCE, j] = (variance / root) ** 2 if root > 0.0 else 0.0


@part
def _gradient_step(model, z, da, dv, rate):
    """Step of gradient descent in (m, sigma): OGA-EL, or OGA where dv is 0."""
    for j in range(z.shape[0]):
        model[MEAN, j] -= rate * da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        sd -= rate * 2.0 * dv * sd * z[j] * z[j]
        sd = sd if sd > 0.0 else 0.0
        model[VARIANCE, j] = sd * sd


@kernel
def _learn_published(Z, y, output, sample_weight, model, numbers, stream, predictions):
    """Predict, then learn each row with one model; add up its losses."""
    loss, method = np.int64(stream[LOSS_KIND]), np.int64(stream[METHOD])
    up, down = stream[UP], stream[DOWN]
    mean = model[MEAN]
    variance = model[VARIANCE]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z, target = Z[i, : model.shape[1]], target_of(y[i], output)
        a, v = score_moments(mean, variance, z)
        suffered = point_loss(loss, target, a, up, down)
        suffer(model, suffered, weight, numbers, stream)
        predictions[i] = a
        if stream[FLAT] == 1.0 and numbers[STEPS] == 1.0:
            _start_flat(model, target, weight, numbers)
            continue
        if method == NGVI_EXPLICIT:
            _observe_residual(loss, target, a, v, weight, numbers, up, down)
            unit, temperature = _unit_and_temperature(loss, numbers, up, down)
            target, a = _in_unit(target, a, unit)
            da, dv = expected_gradients(loss, target, a, v, up, down)
            strength = temperature * weight
            _explicit_step(model, z, strength, unit, da, dv, numbers[FORGETTING])
        else:
            spread = 0.0 if method == OGA else v
            da, dv = expected_gradients(loss, target, a, spread, up, down)
            da, dv = weight * da, (0.0 if method == OGA else weight * dv)
            rate = _step_size(model, z, da, dv, numbers, stream)
            if method == SVA:
                _sva_step(model, z, da, dv, rate, numbers, stream)
            elif method == SVB:
                _svb_step(model, z, da, dv, rate, stream)
            else:
                _gradient_step(model, z, da, dv, rate)
        project(model, stream)


@kernel
def learn_published(
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
    """Learn by the paper's methods as published, or by gradient descent.

    As `learn_natural`, with one expert.
    """
    Z = work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, origin, waves, stream, Z, None):
        return False
    for k in range(models.shape[0]):
        output = k if models.shape[0] > 1 else -1
        _learn_published(
            Z, y, output, sample_weight, models[k], numbers[k], stream, predictions[0]
        )
    return True
