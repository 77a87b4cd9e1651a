"""Coefficients drawn for several models, and the risks of the scores they give.

A scoring gives each row a score; those of the positives come first. `weights` is None
where all rows weigh the same: what None excludes is not compiled.
"""

import math

from . import kernel

ROUNDING = 1e-12  # of a square: functions may depend on each other
FEW = 30.0  # t^2 q, up to which forward steps lose but five digits
FAR = 16.0  # so far out an error in the ratio does not count: exp(-2 FAR)


@kernel
def misranked(positive, negative, weights, total, out):
    """Share of the pairs that are ranked wrongly, a tie for one half: 1 - AUC.

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
    """Mean over the pairs of log(1 + exp(score of negative - score of positive)).

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
def propose(models, laplace, flat, options, drawn, factors, log_volumes, scores):
    """Draw coefficients for several models, each from its pseudo-prior; score the rows.

    models : (sizes, pairs, columns), the number of variables of each model, (variable,
    order) of all of them, and room for the functions of one. laplace : (gram,
    curvatures, linear), the Hessian and the gradient of what the pseudo-priors
    approximate; without a matrix, of no rows, its entries are products of functions by
    `curvatures`. flat : (n_functions, n_samples), values of the functions.
    options : (width, ridge, spread, unit), the number of functions of a variable; the
    precision is LL' = (gram + ridge I) / spread; with `unit` only the direction of the
    coefficients is kept, at length 1.
    drawn : (3, n_models, largest), the coefficients, L'm, and L' times the
    coefficients, in which standard normal numbers are given; factors : (n_models,
    largest, largest), zeros, L; log_volumes : (n_models,), log of the determinant of
    L; scores : (n_models, n_samples), zeros.
    """
    (sizes, pairs, columns), (gram, curvatures, linear) = models, laplace
    (width, ridge, spread, unit), place = options, 0
    for t in range(len(sizes)):
        q = 0
        for _ in range(sizes[t]):
            for a in range(pairs[place, 1]):
                columns[q] = pairs[place, 0] * width + a
                q += 1
            place += 1
        factor, center, whitened, row = factors[t], drawn[1, t], drawn[2, t], scores[t]
        log_volume, square = 0.0, 0.0
        for a in range(q):
            x = flat[columns[a]]
            center[a] = linear[columns[a]] / spread
            for b in range(a + 1):
                value = 0.0
                if len(gram) > 0:
                    value = gram[columns[a], columns[b]]
                else:
                    y = flat[columns[b]]
                    for i in range(len(x)):
                        value += x[i] * y[i] * curvatures[i]
                if a == b:
                    value += ridge + ROUNDING * value
                value /= spread
                for c in range(b):
                    value -= factor[a, c] * factor[b, c]
                factor[a, b] = math.sqrt(value) if a == b else value / factor[b, b]
            for b in range(a):
                center[a] -= factor[a, b] * center[b]
            center[a] /= factor[a, a]
            whitened[a] += center[a]
            log_volume += math.log(factor[a, a])
        log_volumes[t] = log_volume
        for a in range(q - 1, -1, -1):
            value = whitened[a]
            for b in range(a + 1, q):
                value -= factor[b, a] * drawn[0, t, b]
            value /= factor[a, a]
            drawn[0, t, a] = value
            square += value * value
        for a in range(len(whitened)):
            if a >= q:
                whitened[a] = 0.0
            elif unit:
                drawn[0, t, a] /= math.sqrt(square)
                whitened[a] /= math.sqrt(square)
        for a in range(q):
            x, value = flat[columns[a]], drawn[0, t, a]
            for i in range(len(x)):
                row[i] += value * x[i]


@kernel
def directions(totals, centers, whitened, log_volumes, out):
    """Log density of a uniform direction, over that of the direction of a normal law.

    totals : (n_models,), dimensions; centers : (n_models, largest), L'm, for a law of
    precision LL' and mean m; whitened : (n_models, largest), L' times the direction;
    log_volumes : (n_models,), log of the determinant of L.

    The density of a direction is I_q(t), the integral over r > 0 of r^(q - 1) exp(t r -
    r^2 / 2), but for factors. The integrals follow from I_(q + 1) = t I_q + (q - 1)
    I_(q - 1), in that direction where all terms are positive or few; else backwards,
    from a ratio so far out that it need not be exact.
    """
    for model in range(len(out)):
        q = totals[model]
        inner, square, distance = 0.0, 0.0, 0.0
        for a in range(q):
            along, center = whitened[model, a], centers[model, a]
            inner += along * center
            square += along * along
            distance += center * center
        log_ratio = 0.0
        if q > 0:
            log_ratio = math.lgamma(0.5 * q) + (0.5 * q - 1.0) * math.log(2.0)
            log_ratio += 0.5 * distance + 0.5 * q * math.log(square)
            log_ratio -= log_volumes[model]
            t = inner / math.sqrt(square)
            if t > 0.0 or t * t * q < FEW:
                first = 0.5 * t * t + 0.5 * math.log(0.5 * math.pi)
                first += math.log(math.erfc(-t / math.sqrt(2.0)))
                log_ratio -= first
                ratio = t + math.exp(-first)
                for i in range(1, q):
                    log_ratio -= math.log(ratio)
                    ratio = t + i / ratio
            else:
                reach = math.sqrt(q) - FAR / t
                last = 20 + int(reach * reach)
                ratio = 0.5 * (t + math.sqrt(t * t + 4.0 * last))
                for i in range(last - 1, 0, -1):
                    ratio = i / (ratio - t)
                    if i < q:
                        log_ratio -= math.log(ratio)
                log_ratio += math.log(ratio - t)
        out[model] = log_ratio
