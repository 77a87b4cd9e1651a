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
    CENTER_OF,
    CLIP,
    COUNT,
    HIGH,
    LANES,
    LOW,
    MEAN,
    METHOD,
    OGA,
    PANEL,
    PRIOR,
    RESIDUALS,
    SCATTER_OF,
    SEEN,
    SMALLEST,
    START,
    TEMPERATURE,
    VARIANCE,
    WEIGHT,
)
from .standardize import add_waves


@kernel
def _place(x, moments, origin, waves, model, stream, extrapolates, Z):
    """Write a row to Z[0], in the coordinates of the parameters.

    With a diagonal covariance the row is in units of the stream that would have ended
    with it, as when it is learnt. A full covariance on standardized columns does not
    extrapolate, unless asked to: a feature beyond the range of the rows so far is taken
    at the end of that range.
    """
    z, start, clip, seen = Z[0], np.int64(stream[START]), stream[CLIP], stream[SEEN]
    if start == 1:
        z[0] = 1.0
    for j in range(x.shape[0]):
        p = start + j
        low, high = -clip, clip
        if moments is not None:
            center, scatter = moments[CENTER_OF, j], moments[SCATTER_OF, j]
            if origin is None:
                share = seen / (seen + 1.0)
                before = x[j] - center
                spread = math.sqrt(scatter + share * before * before)
                spread = spread if spread > math.sqrt(SMALLEST) else math.inf
                value = share * math.sqrt(seen + 1.0) * before / spread
                z[p] = min(max(value, low), high)
                continue
            reach = clip * math.sqrt(scatter / seen)
            low, high = center - reach, center + reach
        z[p] = min(max(x[j], low), high)
        if origin is not None:
            z[p] -= origin[j]
            if model[PRIOR, p] == 0.0:  # it has never varied
                z[p] = 0.0
            elif not extrapolates:
                z[p] = min(max(z[p], model[LOW, p]), model[HIGH, p])
    if waves is not None:
        add_waves(Z, x.shape[0], *waves, stream)


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
def _deviation_along(model, covariances, k, z, scaled, product):
    """Posterior standard deviation of <theta, z>; `scaled`, `product` are scratch.

    z is divided by its largest entry first, as its square may overflow.
    """
    width, size = z.shape[0], 1.0
    for j in range(width):
        size = max(size, abs(z[j]))
    for j in range(width):
        scaled[j] = z[j] / size
        product[j] = model[VARIANCE, j] * scaled[j]
    if covariances is not None:
        for j in range(width):
            product[j] = 0.0
        for p in range(covariances.shape[1]):
            first = PANEL * p
            for j in range(width):
                for c in range(min(PANEL, width - first)):
                    entry = covariances[k, p, PANEL * j + c]
                    product[first + c] += scaled[j] * entry
    return size * math.sqrt(max(0.0, _inner_product(product, scaled)))


@kernel
def _scores(z, models, numbers, stream, experts, output, shares, scores):
    """Write the score of each expert of an output; return their weighted mean.

    `shares` receives the weights of the experts.
    """
    n_experts = scores.shape[0]
    shares[0] = 1.0
    if experts is not None:
        own = output if experts[0].shape[0] > 1 else 0
        weigh(experts[0][own], experts[1][own], shares)
    mean = 0.0
    for e in range(n_experts):
        k = output * n_experts + e
        if stream[AVERAGING] == 1.0:
            score = _inner_product(models[k, AVERAGE], z) / numbers[k, WEIGHT]
        else:
            score = _inner_product(models[k, MEAN], z)
        if experts is not None:
            totals = experts[1][output if experts[0].shape[0] > 1 else 0]
            low, high = totals[LOWEST_TARGET], totals[HIGHEST_TARGET]
            if totals[IN_RANGE] == 1.0 and low <= high:
                score = min(max(score, low), high)
        scores[e] = score
        mean += shares[e] * score
    return mean


@kernel
def predict_scores(
    X, moments, origin, waves, models, covariances, numbers, stream, experts, scores
):
    """Write the score of each row for each output; scores : (n_rows, n_outputs).

    moments, ..., experts : see `online_state`.
    """
    n_outputs, width = scores.shape[1], models.shape[2]
    n_experts = models.shape[0] // n_outputs
    Z, shares, own = np.zeros((1, width)), np.empty(n_experts), np.empty(n_experts)
    z = Z[0]
    for i in range(X.shape[0]):
        _place(X[i], moments, origin, waves, models[0], stream, False, Z)
        for output in range(n_outputs):
            scores[i, output] = _scores(
                z, models, numbers, stream, experts, output, shares, own
            )


@kernel
def predict_deviations(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    experts,
    scores,
    deviations,
):
    """`predict_scores`, and the standard deviation of each row, noise included.

    deviations : (n_rows,). The experts' distributions are mixed. Returns the weighted
    mean of their degrees of freedom, the weights of the rows behind the noise.
    """
    n_experts, width = models.shape[0], models.shape[2]
    Z, work = np.zeros((1, width)), np.empty((2, width))
    z = Z[0]
    shares, own = np.empty(n_experts), np.empty(n_experts)
    for i in range(X.shape[0]):
        _place(X[i], moments, origin, waves, models[0], stream, False, Z)
        mean = _scores(z, models, numbers, stream, experts, 0, shares, own)
        _place(X[i], moments, origin, waves, models[0], stream, True, Z)
        total = 0.0
        for k in range(n_experts):
            along = _deviation_along(models[k], covariances, k, z, work[0], work[1])
            noise = math.inf  # before the first residual
            if numbers[k, TEMPERATURE] > 0.0:
                noise = math.sqrt(0.5 / numbers[k, TEMPERATURE])
                deviation = math.hypot(noise, along)
            else:  # the posterior is relative to the noise
                if numbers[k, COUNT] > 0.0:
                    noise = math.sqrt(numbers[k, RESIDUALS] / numbers[k, COUNT])
                deviation = noise * math.hypot(1.0, along)
            deviation = math.hypot(deviation, own[k] - mean)
            total = math.hypot(total, math.sqrt(shares[k]) * deviation)
        scores[i, 0], deviations[i] = mean, total
    degrees = 0.0
    for k in range(n_experts):
        degrees += shares[k] * numbers[k, COUNT]
    return degrees


@kernel
def predict_probabilities(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    experts,
    probabilities,
):
    """Write the probability of each class; probabilities : (n_rows, n_classes).

    The sigmoid averaged over a score of mean a and variance v is taken for
    sigmoid(a / sqrt(1 + pi v / 8)). Those of more than two classes are divided by their
    sum.
    """
    n_classes, width = probabilities.shape[1], models.shape[2]
    n_outputs = n_classes if n_classes > 2 else 1
    n_experts = models.shape[0] // n_outputs
    Z, work = np.zeros((1, width)), np.empty((2, width))
    z = Z[0]
    shares, own = np.empty(n_experts), np.empty(n_experts)
    for i in range(X.shape[0]):
        _place(X[i], moments, origin, waves, models[0], stream, False, Z)
        total = 0.0
        for output in range(n_outputs):
            _scores(z, models, numbers, stream, experts, output, shares, own)
            positive = 0.0
            for e in range(n_experts):
                k = output * n_experts + e
                along = _deviation_along(models[k], covariances, k, z, work[0], work[1])
                if stream[METHOD] == OGA:  # no posterior
                    along = 0.0
                score = own[e] / math.sqrt(1.0 + math.pi / 8.0 * along * along)
                small = math.exp(-abs(score))
                above = 1.0 / (1.0 + small) if score >= 0.0 else small / (1.0 + small)
                positive += shares[e] * above
            probabilities[i, output] = positive
            total += positive
        if n_outputs == 1:
            probabilities[i, 1] = total
            probabilities[i, 0] = 1.0 - total
            continue
        for output in range(n_outputs):
            if total > 0.0:
                probabilities[i, output] /= total
            else:
                probabilities[i, output] = 1.0 / n_outputs
