"""Risks of scores that rank: each of several scorings of the same rows."""

import math

from . import kernel

LARGEST = 1e150  # the product of two such numbers does not overflow


@kernel
def misranked(positive, negative, out):
    """Share of the pairs that are ranked wrongly, a tie for one half: 1 - AUC.

    positive : (n_scorings, n_positive), negative : (n_scorings, n_negative), the
    scores, each row in increasing order; out : (n_scorings,).
    """
    n_positive = positive.shape[1]
    n_negative = negative.shape[1]
    for t in range(positive.shape[0]):
        below = 0  # negatives below this positive
        up_to = 0  # negatives below or equal
        right = 0
        for i in range(n_positive):
            score = positive[t, i]
            while below < n_negative and negative[t, below] < score:
                below += 1
            up_to = max(up_to, below)
            while up_to < n_negative and negative[t, up_to] <= score:
                up_to += 1
            right += below + up_to
        out[t] = 1.0 - 0.5 * right / n_positive / n_negative


@kernel
def pairwise_logistic(positive, negative, out):
    """Mean over the pairs of log(1 + exp(score of negative - score of positive)).

    positive : (n_scorings, n_positive), exponentials of minus the scores; negative :
    (n_scorings, n_negative), exponentials of the scores; no product of two may exceed
    `LARGEST`. The logarithm is taken of products of many factors, so that a pair costs
    two multiplications.
    """
    n_positive = positive.shape[1]
    n_negative = negative.shape[1]
    for t in range(positive.shape[0]):
        total = 0.0
        for j in range(n_negative):
            product = 1.0
            for i in range(n_positive):
                product *= 1.0 + negative[t, j] * positive[t, i]
                if product > LARGEST:
                    total += math.log(product)
                    product = 1.0
            total += math.log(product)
        out[t] = total / n_positive / n_negative
