"""The logistic likelihood along lines of coefficients, and draws along them."""

import math

from . import kernel, part

LARGEST = 1e290  # product of factors of at most 2 whose logarithm is taken
MOST_STEPS = 200  # of an interval of slice sampling to each side


@kernel
def log_likelihood(start, direction, length, signs, weights):
    """Return the sum of weights x log expit(signs x scores), in one pass.

    The scores are start + length x direction. All are of shape (n,), signs are 1 or -1.
    The logarithm is taken of products of 1 + exp(-|score|) of rows of one weight, so
    that a row costs one exponential.
    """
    total, product, weight = 0.0, 1.0, 0.0
    for i in range(start.shape[0]):
        margin = signs[i] * (start[i] + length * direction[i])
        if weights[i] != weight or product > LARGEST:
            total -= weight * math.log(product)
            product, weight = 1.0, weights[i]
        if margin < 0.0:
            total += weight * margin
            product *= 1.0 + math.exp(margin)
        else:
            product *= 1.0 + math.exp(-margin)
    return total - weight * math.log(product)


@part
def _log_density(scores, change, t, prior, signs, weights):
    """Return the log density of a place on a line, up to a constant."""
    fit = log_likelihood(scores, change, t, signs, weights)
    return fit - (0.5 * prior[0] * t + prior[1]) * t


@kernel
def move_along_lines(turns, point, ridges, rows, scores, change, step, likelihood, rng):
    """Draw intercept and coefficients along lines, one line after the other.

    turns : (n_lines, n_coefficients), the directions; point : (n_coefficients,), the
    intercept and the coefficients, changed in place; ridges : the precisions of their
    prior; rows : (n_coefficients - 1, n), values of the functions; scores : (n,),
    changed in place; change : (n,), scratch; step : width of the first interval of
    slice sampling by stepping out and shrinking (Neal 2003); likelihood : signs and
    weights of the rows.
    """
    signs, weights = likelihood
    for line in range(turns.shape[0]):
        square = slope = 0.0
        for k in range(point.shape[0]):
            square += ridges[k] * turns[line, k] ** 2
            slope += ridges[k] * turns[line, k] * point[k]
        prior = square, slope
        for i in range(scores.shape[0]):
            change[i] = turns[line, 0]
        for k in range(rows.shape[0]):
            if turns[line, k + 1] != 0.0:
                for i in range(scores.shape[0]):
                    change[i] += turns[line, k + 1] * rows[k, i]
        level = _log_density(scores, change, 0.0, prior, signs, weights)
        level += math.log(1.0 - rng.random())
        low = -step * rng.random()
        high = low + step
        for _ in range(MOST_STEPS):
            if not _log_density(scores, change, low, prior, signs, weights) > level:
                break
            low -= step
        for _ in range(MOST_STEPS):
            if not _log_density(scores, change, high, prior, signs, weights) > level:
                break
            high += step
        t = low + (high - low) * rng.random()
        while t != 0.0 and not (
            _log_density(scores, change, t, prior, signs, weights) > level
        ):
            low, high = (t, high) if t < 0.0 else (low, t)
            t = low + (high - low) * rng.random()
        for k in range(point.shape[0]):
            point[k] += t * turns[line, k]
        for i in range(scores.shape[0]):
            scores[i] += t * change[i]
