"""The logistic likelihood of scores along a line."""

import math

from . import kernel

LARGEST = 1e290  # product of factors of at most 2 whose logarithm is taken


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
