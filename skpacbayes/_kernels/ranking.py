"""Ranking risks of scores, and the logistic regression on one score.

A scoring gives each row a score; those of the positives come first. `weights` is None
where all rows weigh the same: what None excludes is not compiled.
"""

import math

from . import kernel

MOST_STEPS = 200  # of Newton's ascent to a mode
STEP = 1e-9  # relative length of a step below which it has converged


@kernel
def misranked(positive, negative, weights, total, out):
    """Compute the share of misranked pairs, ties counted as one half: 1 - AUC.

    positive : (n_scorings, n_positive), negative : (n_scorings, n_negative), the
    scores, each row in increasing order; weights : None, or those of the rows in the
    order of their scores, of the positives as `positive`, of the negatives their
    cumulative sums from 0, (n_scorings, n_negative + 1); total : weight of all pairs;
    out : (n_scorings,).
    """
    n_positive = positive.shape[1]
    n_negative = negative.shape[1]
    for t in range(positive.shape[0]):
        below = 0  # negatives below this positive
        up_to = 0  # negatives below or equal
        right = 0.0
        for i in range(n_positive):
            score = positive[t, i]
            while below < n_negative and negative[t, below] < score:
                below += 1
            if up_to < below:
                up_to = below
            while up_to < n_negative and negative[t, up_to] <= score:
                up_to += 1
            if weights is None:
                right += below + up_to
            else:
                sums = weights[1][t, below] + weights[1][t, up_to]
                right += weights[0][t, i] * sums
        out[t] = 1.0 - 0.5 * right / total


@kernel
def pairwise_logistic(positive, negative, weights, total, n_factors, products, out):
    """Compute the mean over pairs of log(1 + exp(negative score - positive score)).

    positive : (n_scorings, n_positive), exponentials of minus the scores; negative :
    (n_scorings, n_negative), exponentials of the scores. The logarithm is taken of
    products of up to `n_factors` factors, so that a pair costs two multiplications; no
    such product may overflow. weights : None, or those of the positives and of the
    negatives, two vectors: a product is then of positives of one weight; total : weight
    of all pairs; products : (n_negative,), scratch.
    """
    n_positive = positive.shape[1]
    n_negative = negative.shape[1]
    for t in range(positive.shape[0]):
        row = negative[t]
        loss = 0.0
        first = 0
        while first < n_positive:
            last = min(first + n_factors, n_positive)
            if weights is not None:
                for i in range(first, last):
                    if weights[0][i] != weights[0][first]:
                        last = i
                        break
            for j in range(n_negative):
                products[j] = 1.0
            for i in range(first, last):
                factor = positive[t, i]
                for j in range(n_negative):
                    products[j] *= 1.0 + row[j] * factor
            for j in range(n_negative):
                if weights is None:
                    loss += math.log(products[j])
                else:
                    weight = weights[0][first] * weights[1][j]
                    loss += weight * math.log(products[j])
            first = last
        out[t] = loss / total


@kernel
def logistic_mode(scores, positive, weights, n_functions, variance, between, out):
    """Find the mode of slope and intercept of a logistic regression on one score.

    The log density is the log likelihood, rows to the powers `weights`, plus the log
    prior: the intercept is N(0, between), and the slope is the length of `n_functions`
    coefficients that are N(0, variance). Without functions the slope is 1 and known.

    scores, weights : (n,); positive : (n,) of bool; out : (6,), the slope and the
    intercept where the ascent begins, a slope of 1 without functions; then those of the
    mode, the entries (slope, slope), (slope, intercept), (intercept, intercept)
    of minus the Hessian there, and the log density without constants of the priors.
    """
    power = n_functions - 1.0
    slope, intercept = out[0], out[1]
    value = -math.inf
    step_slope, step_intercept, share = 0.0, 0.0, 1.0
    for _ in range(MOST_STEPS):
        while True:  # halve the step until the density does not fall
            r = slope + share * step_slope
            b = intercept + share * step_intercept
            new = -0.5 * b * b / between
            if n_functions > 0:
                new -= 0.5 * r * r / variance
            if n_functions > 1:
                new += power * math.log(r)
            first, second, g_r, g_b = 0.0, 0.0, 0.0, -b / between
            h_rr, h_rb, h_bb = 0.0, 0.0, 1.0 / between
            for i in range(scores.shape[0]):
                score = r * scores[i] + b
                margin = score if positive[i] else -score
                tail = math.exp(-abs(margin))
                new -= weights[i] * (math.log1p(tail) + max(-margin, 0.0))
                share_wrong = 1.0 / (1.0 + tail)
                if margin > 0.0:
                    share_wrong *= tail
                curvature = weights[i] * tail / (1.0 + tail) ** 2
                first = weights[i] * (share_wrong if positive[i] else -share_wrong)
                second = curvature * scores[i]
                g_r += first * scores[i]
                g_b += first
                h_rr += second * scores[i]
                h_rb += second
                h_bb += curvature
            if new >= value - 1e-12 * abs(value) or share < 1e-10:
                break
            share *= 0.5
        slope, intercept, value = r, b, new
        if n_functions > 0:
            g_r -= r / variance
            h_rr += 1.0 / variance
        if n_functions > 1:
            g_r += power / r
            h_rr += power / (r * r)
        if n_functions == 0:
            step_slope, step_intercept = 0.0, g_b / h_bb
        else:
            determinant = h_rr * h_bb - h_rb * h_rb
            step_slope = (h_bb * g_r - h_rb * g_b) / determinant
            step_intercept = (h_rr * g_b - h_rb * g_r) / determinant
        share = 1.0
        if n_functions > 1 and slope + step_slope <= 0.0:
            share = -0.9 * slope / step_slope
        size = max(abs(slope), 1.0) + abs(intercept)
        if share * max(abs(step_slope), abs(step_intercept)) < STEP * size:
            break
    out[0], out[1], out[5] = slope, intercept, value
    out[2], out[3], out[4] = h_rr, h_rb, h_bb
