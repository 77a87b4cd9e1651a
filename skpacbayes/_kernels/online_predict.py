"""Predictions of the online linear models.

The state is that of `online_state`. A row gives the same numbers alone and in a block.
"""

import math

import numpy as np

from . import kernel
from .aggregation import HIGHEST_TARGET, IN_RANGE, LOWEST_TARGET, weigh
from .online_state import (
    AVERAGE,
    AVERAGING,
    CLIP,
    COUNT,
    FEATURE_CENTER,
    FEATURE_ORIGIN,
    FEATURE_SCATTER,
    FULL,
    HIGH,
    LANES,
    LOW,
    MEAN,
    METHOD,
    OGA,
    PANEL,
    PRIOR,
    RESIDUALS,
    SCALES,
    SEEN,
    SHIFTS,
    SMALLEST,
    START,
    TEMPERATURE,
    VARIANCE,
    WEIGHT,
)

# What is predicted: scores, means with deviations, or probabilities of classes.
SCORES, DEVIATIONS, PROBABILITIES = range(3)


@kernel
def _place(x, features, model, stream, extrapolates, z):
    """Write a row to z, in the coordinates of the parameters.

    With a diagonal covariance the row is in units of the stream that would have ended
    with it, as when it is learnt. A full covariance on standardized columns does not
    extrapolate, unless asked to: a feature beyond the range of the rows so far is taken
    at the end of that range.
    """
    center, scatter = features[FEATURE_CENTER], features[FEATURE_SCATTER]
    origin = features[FEATURE_ORIGIN]
    start, clip, seen = int(stream[START]), stream[CLIP], stream[SEEN]
    shifts = stream[SHIFTS] == 1.0
    if start == 1:
        z[0] = 1.0
    for j in range(x.shape[0]):
        p = start + j
        if stream[SCALES] == 1.0 and not shifts:
            share = seen / (seen + 1.0)
            before = x[j] - center[j]
            spread = math.sqrt(scatter[j] + share * before * before)
            varies = spread > math.sqrt(SMALLEST)
            value = share * math.sqrt(seen + 1.0) * before / spread if varies else 0.0
            z[p] = min(max(value, -clip), clip)
            continue
        low, high = -clip, clip
        if stream[SCALES] == 1.0:
            reach = clip * math.sqrt(scatter[j] / seen)
            low, high = center[j] - reach, center[j] + reach
        value = min(max(x[j], low), high)
        z[p] = value - origin[j]
        if shifts:
            if model[PRIOR, p] == 0.0:  # it has never varied
                z[p] = 0.0
            elif not extrapolates:
                z[p] = min(max(z[p], model[LOW, p]), model[HIGH, p])


@kernel
def _inner_product(x, y):
    """Inner product: four sums, which the processor adds side by side."""
    s0 = s1 = s2 = s3 = 0.0
    n = x.shape[0] // LANES * LANES
    for k in range(0, n, LANES):
        s0 += x[k] * y[k]
        s1 += x[k + 1] * y[k + 1]
        s2 += x[k + 2] * y[k + 2]
        s3 += x[k + 3] * y[k + 3]
    for k in range(n, x.shape[0]):
        s0 += x[k] * y[k]
    return (s0 + s1) + (s2 + s3)


@kernel
def _deviation_along(model, covariance, full, z, scaled, product):
    """Posterior standard deviation of <theta, z>; `scaled`, `product` are scratch.

    z is divided by its largest entry first, as its square may overflow.
    """
    size = 1.0
    for j in range(z.shape[0]):
        size = max(size, abs(z[j]))
    for j in range(z.shape[0]):
        scaled[j] = z[j] / size
        product[j] = 0.0
    if not full:
        for j in range(z.shape[0]):
            product[j] = model[VARIANCE, j] * scaled[j]
        return size * math.sqrt(_inner_product(product, scaled))
    width = z.shape[0]
    for p in range(covariance.shape[0]):
        panel, first = covariance[p], PANEL * p
        n_columns = min(PANEL, width - first)
        for j in range(width):
            for k in range(n_columns):
                product[first + k] += scaled[j] * panel[PANEL * j + k]
    return size * math.sqrt(max(0.0, _inner_product(product, scaled)))


@kernel
def _noise(numbers):
    """Standard deviation of the noise; infinite before the first residual."""
    if numbers[TEMPERATURE] > 0.0:
        return math.sqrt(0.5 / numbers[TEMPERATURE])
    if numbers[COUNT] > 0.0:
        return math.sqrt(numbers[RESIDUALS] / numbers[COUNT])
    return math.inf


@kernel
def _score(model, numbers, totals, averaging, z):
    """Prediction of one model for the row z."""
    if averaging:
        score = _inner_product(model[AVERAGE], z) / numbers[WEIGHT]
    else:
        score = _inner_product(model[MEAN], z)
    if totals[IN_RANGE] == 1.0:
        score = min(max(score, totals[LOWEST_TARGET]), totals[HIGHEST_TARGET])
    return score


@kernel
def _sigmoid(score):
    """Logistic function, without overflow."""
    small = math.exp(-abs(score))
    return 1.0 / (1.0 + small) if score >= 0.0 else small / (1.0 + small)


@kernel
def _normalize(probabilities, positive, n_outputs):
    """Write the probabilities of the classes from those of each against the others."""
    if n_outputs == 1:
        probabilities[0], probabilities[1] = 1.0 - positive[0], positive[0]
        return
    total = 0.0
    for k in range(n_outputs):
        total += positive[k]
    for k in range(n_outputs):
        probabilities[k] = positive[k] / total if total > 0.0 else 1.0 / n_outputs


@kernel
def predict_linear(X, state, what, answers, deviations):
    """Predict each row of X.

    what : SCORES or DEVIATIONS, answers (n_rows, n_outputs) receives the means; with
    DEVIATIONS, deviations (n_rows,) receives the standard deviations, noise included;
    PROBABILITIES, answers (n_rows, n_classes) receives them. The sigmoid averaged over
    a score of mean a and variance v is taken for sigmoid(a / sqrt(1 + pi v / 8)).
    """
    features, models, covariances, numbers, losses, totals, stream = state
    n_outputs, n_experts = losses.shape
    width = models.shape[2]
    full, averaging = stream[FULL] == 1.0, stream[AVERAGING] == 1.0
    shares, positive = np.empty((n_outputs, n_experts)), np.zeros(n_outputs)
    for output in range(n_outputs):
        weigh(losses[output], totals[output], shares[output])
    z, far, work = np.zeros(width), np.zeros(width), np.empty((2, width))
    scores = np.empty(n_experts)
    none = covariances[0] if full else np.empty((0, 0))
    for i in range(X.shape[0]):
        _place(X[i], features, models[0], stream, False, z)
        if what == DEVIATIONS:
            _place(X[i], features, models[0], stream, True, far)
        for output in range(n_outputs):
            mean = 0.0
            for e in range(n_experts):
                k = output * n_experts + e
                score = _score(models[k], numbers[k], totals[output], averaging, z)
                scores[e] = score
                mean += shares[output, e] * score
            if what != PROBABILITIES:
                answers[i, output] = mean
            if what == SCORES:
                continue
            spread = 0.0
            for e in range(n_experts):
                k = output * n_experts + e
                panels = covariances[k] if full else none
                row = far if what == DEVIATIONS else z
                along = _deviation_along(models[k], panels, full, row, work[0], work[1])
                share = shares[output, e]
                if what == PROBABILITIES:
                    if stream[METHOD] == OGA:  # no posterior
                        along = 0.0
                    scaled = scores[e] / math.sqrt(1.0 + math.pi / 8.0 * along * along)
                    spread += share * _sigmoid(scaled)
                    continue
                noise = _noise(numbers[k])
                if numbers[k, TEMPERATURE] > 0.0:
                    deviation = math.hypot(noise, along)
                else:  # the posterior is relative to the noise
                    deviation = noise * math.hypot(1.0, along)
                deviation = math.hypot(deviation, scores[e] - mean)
                spread = math.hypot(spread, math.sqrt(share) * deviation)
            if what == DEVIATIONS:
                deviations[i] = spread
            else:
                positive[output] = spread
        if what == PROBABILITIES:
            _normalize(answers[i], positive, n_outputs)
