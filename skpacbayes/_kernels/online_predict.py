"""Predictions of the online linear models.

The state is that of `online_state`. A row gives the same numbers alone and in a block.
"""

import math

import numpy as np

from . import allocating, kernel
from .online_joint import single_moments
from .online_parts import (
    deviation_along,
    moderate,
    noise_of,
    place,
    scale_row,
    score_of,
    weigh_scores,
)
from .online_state import METHOD, OGA, SIZE, TEMPERATURE

TINY_SHARE = 1e-100  # an expert of a smaller share adds nothing to a deviation


@allocating
def predict_scores(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    scores,
):
    """Write the score of each row for each output; scores : (n_rows, n_outputs).

    moments, ..., totals : see `online_state`.
    """
    n_outputs, width = scores.shape[1], models.shape[2]
    n_experts = models.shape[0] // n_outputs
    Z, shares, own = np.empty((1, width)), np.empty(n_experts), np.empty(n_experts)
    Z[:] = 0.0
    z = Z[0]
    for i in range(X.shape[0]):
        place(X[i], moments, origin, waves, models[0], stream, False, Z)
        for output in range(n_outputs):
            scores[i, output] = weigh_scores(
                z, models, numbers, stream, losses, totals, output, shares, own
            )


@allocating
def predict_deviations(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    scores,
    deviations,
    clipped,
):
    """Write what `predict_scores` does, and standard deviations, noise included.

    deviations : (n_rows,). The experts' distributions are mixed. Where a score is
    clipped, to the range of the rows or of the targets, its error may be what the line
    would add, which counts as a deviation. clipped : (n_rows,), the shares of the
    variances that are due to that. Returns the weighted mean of the degrees of freedom
    of their noises.
    """
    n_experts, width = models.shape[0], models.shape[2]
    Z, work = np.empty((1, width)), np.empty((2, width))
    Z[:] = 0.0
    z = Z[0]
    shares, own = np.empty(n_experts), np.empty(n_experts)
    noises, degrees = np.empty(n_experts), np.empty(n_experts)
    for k in range(n_experts):
        full = covariances is not None
        noises[k], degrees[k] = noise_of(models[k], numbers[k], full)
    for i in range(X.shape[0]):
        place(X[i], moments, origin, waves, models[0], stream, False, Z)
        mean = weigh_scores(z, models, numbers, stream, losses, totals, 0, shares, own)
        place(X[i], moments, origin, waves, models[0], stream, True, Z)
        total, part, size = 0.0, 0.0, scale_row(z, work[0])
        for k in range(n_experts):
            if shares[k] < TINY_SHARE:
                continue
            scaled = work[0, : np.int64(numbers[k, SIZE])]
            along = size * deviation_along(models[k], covariances, k, scaled, work[1])
            if numbers[k, TEMPERATURE] > 0.0:
                noise = math.sqrt(0.5 / numbers[k, TEMPERATURE])
                deviation = math.hypot(noise, along)
            else:  # the posterior is relative to the noise
                deviation = math.sqrt(noises[k]) * math.hypot(1.0, along)
            beyond = score_of(z, models[k], numbers[k], stream) - own[k]
            deviation = math.hypot(deviation, math.hypot(beyond, own[k] - mean))
            total = math.hypot(total, math.sqrt(shares[k]) * deviation)
            part = math.hypot(part, math.sqrt(shares[k]) * beyond)
        scores[i, 0], deviations[i], clipped[i] = mean, total, 0.0
        if 0.0 < part < math.inf:
            clipped[i] = (part / total) ** 2
    mixed = 0.0
    for k in range(n_experts):
        mixed += shares[k] * degrees[k]
    return mixed


@kernel
def write_quantiles(means, deviations, clipped, standard, student, quantiles):
    """Write quantiles from what `predict_deviations` wrote, and standard quantiles.

    standard, student : (n_levels,), those of errors, and of a Student distribution. No
    error tells what a line adds, hence `clipped` weights them. quantiles : (n_rows,
    n_levels). A deviation may be infinite; a standard quantile of 0 is the mean.
    """
    for i in range(means.shape[0]):
        for j in range(standard.shape[0]):
            quantile = standard[j]
            if clipped[i] != 0.0:
                quantile += clipped[i] * (student[j] - quantile)
            quantiles[i, j] = means[i, 0]
            if quantile != 0.0:
                quantiles[i, j] += deviations[i] * quantile


@allocating
def predict_probabilities(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    probabilities,
):
    """Write the probability of each class; probabilities : (n_rows, n_classes).

    The sigmoid averaged over a score of mean a and variance v is approximated by
    sigmoid(a / sqrt(1 + pi v / 8)). For more than two classes the results are divided
    by their sum.
    """
    n_classes, width = probabilities.shape[1], models.shape[2]
    n_outputs = n_classes if n_classes > 2 else 1
    n_experts = models.shape[0] // n_outputs
    Z, work = np.empty((1, width)), np.empty((2, width))
    Z[:] = 0.0
    z = Z[0]
    shares, own, n_joint = np.empty(n_experts), np.empty(n_experts), 0
    if covariances is not None:
        n_joint = covariances.shape[0]
        row, gains = np.empty(1 + origin.shape[0]), np.empty((1, 1 + origin.shape[0]))
    for i in range(X.shape[0]):
        place(X[i], moments, None, waves, models[0], stream, False, Z)
        total, size = 0.0, scale_row(z, work[0])
        for output in range(n_outputs):
            weigh_scores(
                z, models, numbers, stream, losses, totals, output, shares, own
            )
            positive = negative = 0.0
            for e in range(n_experts):
                k = output * n_experts + e
                if covariances is not None and e < n_joint:
                    a, v = single_moments(covariances[e], X[i], origin, row, gains)
                    score = moderate(a, v)
                else:
                    scaled = work[0, : np.int64(numbers[k, SIZE])]
                    along = size * deviation_along(models[k], None, k, scaled, work[1])
                    if stream[METHOD] == OGA:  # no posterior
                        along = 0.0
                    score = moderate(own[e], along * along)
                small = math.exp(-abs(score))
                likely, unlikely = 1.0 / (1.0 + small), small / (1.0 + small)
                positive += shares[e] * (likely if score >= 0.0 else unlikely)
                negative += shares[e] * (unlikely if score >= 0.0 else likely)
            probabilities[i, output] = positive
            total += positive
        if n_outputs == 1:
            probabilities[i, 0], probabilities[i, 1] = negative, positive
            continue
        for output in range(n_outputs):
            if total > 0.0:
                probabilities[i, output] /= total
            else:
                probabilities[i, output] = 1.0 / n_outputs
