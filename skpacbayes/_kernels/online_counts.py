"""Online variational inference for counts: a Poisson distribution of log-linear rate.

The score f of a row is the log of its rate; the loss of a count y is half its deviance,
exp(f) - y f - y + y log(y), and E exp(f) = exp(a + v / 2) under f ~ N(a, v).

Where v is large that expectation is far from what the row will leave of it: a step
whose curvature is that from before would end all learning at the first row. Here the
step is implicit in the variance too: it gives the Gaussian, of full or of diagonal
covariance, which minimises the expected loss of the row, times the inverse temperature,
plus the divergence from the posterior before.

The state is that of `online_state`.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import (
    HIGHEST_TARGET,
    LOWEST_TARGET,
    STEPS,
    _count_losses,
    _weigh_next,
)
from .online import _forget, _project, _suffer
from .online_full import _beyond, _condition, _dot, _follow, _forget_full, _settle
from .online_predict import _deviation_along
from .online_state import FORGETTING, MEAN, PANEL, SMALLEST, TEMPERATURE, VARIANCE
from .standardize import add_waves, first_refused, standardize

HIGHEST = 345.0  # log of the largest rate, about that of the largest number learnt


@kernel
def _half_deviance(y, f):
    """Half the Poisson deviance of the count y from the rate exp(f), at least 0."""
    known = y * math.log(y) - y if y > 0.0 else 0.0
    return max(0.0, math.exp(min(f, HIGHEST)) - y * f + known)


@kernel
def implicit_log_rate(y, a, v, strength, spread):
    """Log of the expected rate where the step ends.

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
def _learn_counts(Z, y, sample_weight, model, numbers, stream, predictions):
    """Predict, suffer and learn each row with one model."""
    n_parameters = Z.shape[1]
    mean, variance = model[MEAN], model[VARIANCE]
    spread = np.empty(n_parameters)
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        a = v = 0.0
        for j in range(n_parameters):
            a += mean[j] * z[j]
        _suffer(model, _half_deviance(y[i], a), weight, numbers, stream)
        predictions[i] = a
        if numbers[FORGETTING] > 0.0:
            a, _ = _forget(model, z, numbers[FORGETTING])
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
        _project(model, stream)


@part
def _learn_counts_full(
    Z, y, sample_weight, follows, model, covariances, k, numbers, stream, predictions
):
    """Predict, suffer and learn each row with model k, of full covariance.

    follows : not None where the prior follows the spread of the features.
    """
    width, covariance, spread = Z.shape[1], covariances[k], np.empty(1)
    work = np.zeros((4, width))
    gain, axis, owed, scratch = work[0], work[1], work[2], work[3]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        beyond = 0.0
        if follows is not None:
            _follow(model, covariance, owed, gain, axis, scratch, z, weight, numbers)
            beyond = _beyond(model, z)
        a = _dot(model[MEAN], z)
        _suffer(model, _half_deviance(y[i], a - beyond), weight, numbers, stream)
        predictions[i] = a - beyond
        if numbers[FORGETTING] > 0.0:
            _forget_full(model, covariance, owed, gain, axis, numbers, stream)
            a = _dot(model[MEAN], z)
        _settle(covariance, owed, 1.0)
        v = _deviation_along(model, covariances, k, z, gain, scratch) ** 2
        if v <= SMALLEST:
            continue
        spread[0] = v
        strength = numbers[TEMPERATURE] * weight
        log_rate, after = implicit_log_rate(y[i], a, v, strength, spread)
        curve = max(1e-100, strength * math.exp(log_rate))
        # a measurement of the score, of this precision, which moves its mean so far
        residual = (log_rate - 0.5 * after - a) * (1.0 / curve + v) / v
        _condition(model, covariance, owed, gain, z, residual, curve)
    _settle(covariance, owed, 1.0)
    for j in range(width):
        model[VARIANCE, j] = covariance[j // PANEL, PANEL * j + j % PANEL]


@part
def _aggregate(y, sample_weight, predictions, losses, totals):
    """Algorithm 1; no expert predicts a rate above the largest count so far plus 1."""
    n_experts = losses.shape[0]
    shares, own = np.empty(n_experts), np.empty(n_experts)
    for i in range(predictions.shape[1]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        _weigh_next(losses, totals, shares)
        highest = totals[HIGHEST_TARGET]
        prediction = 0.0
        for k in range(n_experts):
            score = predictions[k, i]
            score = min(score, highest) if totals[STEPS] > 0.0 else score
            prediction += shares[k] * score
            own[k] = _half_deviance(y[i], score)
        totals[LOWEST_TARGET] = -math.inf
        totals[HIGHEST_TARGET] = max(highest, math.log1p(y[i]))
        suffered = _half_deviance(y[i], prediction)
        _count_losses(suffered, own, weight, losses, totals)
        predictions[0, i] = prediction


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
    experts,
    predictions,
):
    """Implicit NGVI on half the Poisson deviance, V full or diagonal.

    See `learn_natural`. Rows of negative counts are refused.
    predictions : (n_experts, n_rows), receives the logs of the rates; with several
    experts, row 0 the aggregate's.
    """
    if first_refused(X, y, sample_weight) >= 0:
        return False
    for i in range(y.shape[0]):
        if y[i] < 0.0:
            return False
    Z = np.empty((X.shape[0], models.shape[2]))
    standardize(X, sample_weight, moments, origin, stream, Z)
    if waves is not None:
        add_waves(Z, X.shape[1], *waves, stream)
    for k in range(models.shape[0]):
        model, counts, own = models[k], numbers[k], predictions[k]
        if covariances is None:
            _learn_counts(Z, y, sample_weight, model, counts, stream, own)
        else:
            _learn_counts_full(
                Z, y, sample_weight, origin, model, covariances, k, counts, stream, own
            )
    if experts is not None:
        _aggregate(y, sample_weight, predictions, experts[0][0], experts[1][0])
    return True
