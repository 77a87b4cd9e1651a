"""Online variational inference for counts: a Poisson distribution of log-linear rate.

The score f of a row is the log of its rate; the loss of a count y is half its deviance,
exp(f) - y f - y + y log(y), and E exp(f) = exp(a + v / 2) under f ~ N(a, v).

Where v is large, that expectation is much larger before the step than after it: a step
with the curvature from before would stop all learning at the first row. Here the step
is implicit in the variance too. It gives the Gaussian, of full or diagonal covariance,
that minimises the expected loss of the row, times the inverse temperature, plus the
divergence from the previous posterior.

The state is that of `online_state`.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import COUNTS, aggregate, point_loss
from .online_covariance import (
    MEMORIES,
    beyond_range,
    condition,
    follow,
    forget_covariance,
    settle,
)
from .online_parts import (
    deviation_along,
    enter,
    forget,
    inner_product,
    project,
    scale_row,
    suffer,
    take_units,
)
from .online_state import (
    EVENTS,
    FORGETTING,
    MEAN,
    MOST_EVENTS,
    N_WORK,
    PANEL,
    PRIOR,
    SIZE,
    SMALLEST,
    TEMPERATURE,
    VARIANCE,
)


@kernel
def implicit_log_rate(y, a, v, strength, spread):
    """Return the log of the expected rate after the step, and the variance v'.

    Under the new score N(a', v') the expected rate is r = exp(a' + v' / 2), with
    a' = a + strength v (y - r) and v' = sum_j spread_j / (1 + strength r spread_j).
    The log x of r is the root of x - a' - v' / 2, which grows with x: Newton's method,
    and a bisection where it leaves the bracket or does not converge.

    spread : (n_parameters,), variance times squared entry of the row, where the
    covariance is diagonal; (1,), their sum v, where it is full. Returns x and v'.
    """
    start = a + strength * v * y
    high = start + 0.5 * v
    if high > 0.0:  # at x >= 0, strength v exp(x) is at most that
        high = min(high, max(0.0, math.log(high / (strength * v))))
    low = min(start - 1.0, -math.log(strength * v), high)
    x = min(max(a, low), high)
    last = math.inf
    for _ in range(200):
        rate = strength * math.exp(x)
        after, change = 0.0, 0.0
        for j in range(spread.shape[0]):
            own = spread[j] / (1.0 + rate * spread[j])
            after += own
            change += own * own
        excess = x - start + v * rate - 0.5 * after
        if excess > 0.0:
            high = x
        else:
            low = x
        step = excess / (1.0 + rate * (v + 0.5 * change))
        if not low <= x - step <= high or abs(step) > 0.5 * last:
            step = x - 0.5 * (low + high)
        last = abs(step)
        x -= step
        if abs(step) <= 1e-8 * (1.0 + abs(x)):
            break  # the next step would be of the order of its square
    rate, after = strength * math.exp(x), 0.0
    for j in range(spread.shape[0]):
        after += spread[j] / (1.0 + rate * spread[j])
    return x, after


@part
def _note_events(count, numbers):
    """Note a count: the target of a row, a rate, times its weight, an exposure."""
    numbers[EVENTS] += count
    numbers[MOST_EVENTS] = max(numbers[MOST_EVENTS], count)


@kernel
def _learn_counts(Z, kept, y, sample_weight, model, numbers, stream, work, predictions):
    """Predict, then learn each row with one model; add up its losses."""
    n_parameters = np.int64(numbers[SIZE])
    mean, variance = model[MEAN], model[VARIANCE]
    spread = work[0, :n_parameters]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i, :n_parameters]
        take_units(model, kept[i], stream)
        a = v = 0.0
        for j in range(n_parameters):
            a += mean[j] * z[j]
        suffer(model, point_loss(COUNTS, y[i], a), weight, numbers, stream)
        _note_events(weight * y[i], numbers)
        predictions[i] = a
        if numbers[FORGETTING] > 0.0:
            a, _ = forget(model, z, numbers[FORGETTING])
        for j in range(n_parameters):
            spread[j] = variance[j] * z[j] * z[j]
            v += spread[j]
        if v <= SMALLEST:
            continue
        strength = numbers[TEMPERATURE] * weight
        log_rate, after = implicit_log_rate(y[i], a, v, strength, spread)
        curve = strength * math.exp(log_rate)
        shift = (log_rate - 0.5 * after - a) / v
        for j in range(n_parameters):
            own = variance[j] * z[j]
            mean[j] += shift * own
            variance[j] /= 1.0 + curve * own * z[j]
        project(model, stream)


@part
def _widest(model, z):
    """Return the largest variance of the score of z that is not due to rounding.

    It is that of the prior, or of what waits for its return to the prior. Where an
    entry of z exceeds all earlier ones by a factor of 1e16 or more, the variance of
    its coefficient is mostly rounding.
    """
    widest = 0.0
    for j in range(z.shape[0]):
        precision = model[PRIOR, j]
        widest += z[j] * z[j] / precision if precision > 0.0 else 0.0
    return math.exp(MEMORIES) * widest


@kernel
def _learn_counts_full(
    Z,
    y,
    sample_weight,
    origin,
    model,
    covariances,
    k,
    numbers,
    stream,
    work,
    predictions,
):
    """Predict, then learn each row with model k, of full covariance; add up losses.

    origin : where it is not empty, the prior follows the spread of the features.
    """
    width, covariance = np.int64(numbers[SIZE]), covariances[k]
    gain, axis, owed = work[0, :width], work[1, :width], work[2, :width]
    scratch, spread = work[3, :width], work[4, :1]
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
            follow(model, covariance, owed, gain, axis, scratch, z, weight, numbers)
            beyond = beyond_range(model, z, stream)
        a = inner_product(model[MEAN], row)
        suffer(model, point_loss(COUNTS, y[i], a - beyond), weight, numbers, stream)
        _note_events(weight * y[i], numbers)
        predictions[i] = a - beyond
        if numbers[FORGETTING] > 0.0:
            forget_covariance(model, covariance, owed, gain, axis, numbers, stream)
            a = inner_product(model[MEAN], row)
        settle(covariance, owed, 1.0)
        size = scale_row(z, gain)
        v = (size * deviation_along(model, covariances, k, gain, scratch)) ** 2
        v = min(v, _widest(model, z))
        if v <= SMALLEST:
            continue
        spread[0] = v
        strength = numbers[TEMPERATURE] * weight
        log_rate, after = implicit_log_rate(y[i], a, v, strength, spread)
        curve = max(1e-100, strength * math.exp(log_rate))
        # a measurement of the score, of this precision, which moves its mean so far
        residual = (log_rate - 0.5 * after - a) * (1.0 / curve + v) / v
        condition(model, covariance, owed, gain, z, residual, curve)
    settle(covariance, owed, 1.0)
    for j in range(width):
        model[VARIANCE, j] = covariance[j // PANEL, PANEL * j + j % PANEL]


@kernel
def learn_counts(
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
    """Learn by implicit NGVI on half the Poisson deviance, V full or diagonal.

    See `learn_natural`. Rows of negative counts are refused.
    predictions : (n_experts, n_rows), receives the logs of the rates; with several
    experts, row 0 the aggregate's.
    """
    for i in range(y.shape[0]):
        if y[i] < 0.0:
            return False
    kept, Z = work[N_WORK:, : 1 + X.shape[1]], work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, origin, waves, stream, Z, kept):
        return False
    for k in range(models.shape[0]):
        model, counts, own = models[k], numbers[k], predictions[k]
        if covariances is None:
            _learn_counts(Z, kept, y, sample_weight, model, counts, stream, work, own)
        else:
            _learn_counts_full(
                *(Z, y, sample_weight, origin, model, covariances, k),
                *(counts, stream, work, own),
            )
    if losses is not None:
        own = losses[0], totals[0]
        aggregate(y, -1, sample_weight, COUNTS, predictions, *own, work)
    return True
