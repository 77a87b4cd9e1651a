"""Loops of the mixtures over a tile of rows.

The innermost loops run over components or over rows and carry no reduction, so that
the compiler vectorises them; matrix products in between are NumPy's.
"""

import math

from . import kernel

HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
LARGE_TOTAL = 1e10  # above which differences of log Gamma functions lose digits

ZERO_BELOW = -745.2  # exponentials of smaller numbers are zero


@kernel
def quadratic_features(X, origin, first, second, features):
    """Write the columns (1, z, z_first * z_second), where z = x - origin.

    X : (n_rows, n_features); origin : (n_features,); first, second : (n_products,)
    indices of features; features : (1 + n_features + n_products, n_rows),
    overwritten.
    """
    n_rows, n_features = X.shape
    for i in range(n_rows):
        features[0, i] = 1.0
    for j in range(n_features):
        for i in range(n_rows):
            features[1 + j, i] = X[i, j] - origin[j]
    for product in range(first.shape[0]):
        row = 1 + n_features + product
        j, m = 1 + first[product], 1 + second[product]
        for i in range(n_rows):
            features[row, i] = features[j, i] * features[m, i]


@kernel
def diagonal_log_joint(X, constants, means, precisions, log_joint):
    """Write constants_k - 1/2 sum_j precisions_jk (x_ij - means_jk)^2.

    X : (n_rows, n_features); constants : (n_components,); means, precisions :
    (n_features, n_components); log_joint : (n_rows, n_components), overwritten.
    """
    n_features, n_components = means.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            log_joint[i, k] = constants[k]
        for j in range(n_features):
            x = X[i, j]
            for k in range(n_components):
                gap = x - means[j, k]
                log_joint[i, k] -= 0.5 * precisions[j, k] * gap * gap


@kernel
def add_diagonal_moments(X, responsibilities, origins, sums, squares):
    """Add the weighted first and second moments of X about each origin.

    X : (n_rows, n_features); responsibilities : (n_rows, n_components); origins,
    sums, squares : (n_features, n_components), the last two updated in place.
    """
    n_features, n_components = origins.shape
    for i in range(X.shape[0]):
        for j in range(n_features):
            x = X[i, j]
            for k in range(n_components):
                gap = x - origins[j, k]
                moment = responsibilities[i, k] * gap
                sums[j, k] += moment
                squares[j, k] += moment * gap


@kernel
def turn_into_shares(joint, weight, log_totals):
    """Turn log joint densities into responsibilities that sum to the weights, in place.

    joint : (n_rows, n_components); weight : (n_rows,); log_totals : (n_rows,),
    overwritten with the log-sums of the joint densities. Most components are far from
    most rows: an exponential that is zero is not computed, which would take long.
    """
    n_rows, n_components = joint.shape
    for i in range(n_rows):
        highest = joint[i, 0]
        for k in range(1, n_components):
            if joint[i, k] > highest:
                highest = joint[i, k]
        total = 0.0
        for k in range(n_components):
            gap = joint[i, k] - highest
            joint[i, k] = 0.0 if gap < ZERO_BELOW else math.exp(gap)
            total += joint[i, k]
        log_totals[i] = math.log(total) + highest
        scale = weight[i] / total
        for k in range(n_components):
            joint[i, k] *= scale


# Scores of rows: each row is computed by itself, with sums in a fixed order.


@kernel
def linear_log_densities(X, constants, coefficients, scores):
    """Write constants_k + sum_j x_ij coefficients_jk.

    X : (n_rows, n_features); constants : (n_components,); coefficients : (n_features,
    n_components); scores : (n_rows, n_components), overwritten.
    """
    n_components = constants.shape[0]
    for i in range(X.shape[0]):
        for k in range(n_components):
            scores[i, k] = constants[k]
        for j in range(X.shape[1]):
            x = X[i, j]
            if x != 0.0:
                for k in range(n_components):
                    scores[i, k] += x * coefficients[j, k]


@kernel
def full_log_densities(X, constants, means, factors, multipliers, tops, work, scores):
    """Write constants - s / 2, or constants - tops log(1 + s) where tops > 0.

    s is multipliers_k |A_k (x_i - mean_k)|^2. X : (n_rows, n_features); constants,
    multipliers, tops : (n_components,); means : (n_features, n_components); factors :
    (n_features (n_features + 1) / 2, n_components), the lower triangles of A_k row by
    row; work : (2 n_components,); scores : (n_rows, n_components), overwritten.
    """
    n_features, n_components = means.shape
    squares, scaled = work[:n_components], work[n_components:]
    for i in range(X.shape[0]):
        for k in range(n_components):
            squares[k] = 0.0
        entry = 0
        for j in range(n_features):
            for k in range(n_components):
                scaled[k] = 0.0
            for m in range(j + 1):
                x = X[i, m]
                for k in range(n_components):
                    scaled[k] += factors[entry, k] * (x - means[m, k])
                entry += 1
            for k in range(n_components):
                squares[k] += scaled[k] * scaled[k]
        for k in range(n_components):
            square = multipliers[k] * squares[k]
            if tops[k] > 0.0:
                scores[i, k] = constants[k] - tops[k] * math.log1p(square)
            else:
                scores[i, k] = constants[k] - 0.5 * square


@kernel
def student_log_densities(X, constants, means, scales, tops, pooled, scores):
    """Write constants_k - tops_k sum_j log(1 + (x_ij - means_jk)^2 / scales_jk).

    With `pooled`, the logarithm of one plus the sum. X : (n_rows, n_features);
    constants, tops : (n_components,); means, scales : (n_features, n_components);
    scores : (n_rows, n_components), overwritten.
    """
    n_features, n_components = means.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            total = 0.0
            for j in range(n_features):
                gap = X[i, j] - means[j, k]
                square = gap * gap / scales[j, k]
                total += square if pooled else math.log1p(square)
            if pooled:
                total = math.log1p(total)
            scores[i, k] = constants[k] - tops[k] * total


@kernel
def column_log_densities(X, constants, centers, spreads, means, scales, tops, scores):
    """Write sum_j constants_jk - tops_jk log(1 + (z_ij - means_jk)^2 / scales_jk).

    z_ij is (x_ij - centers_j) / spreads_j; values that are NaN are left out of the
    sum. X : (n_rows, n_features); centers, spreads : (n_features,); constants, means,
    scales, tops : (n_features, n_components); scores : (n_rows, n_components),
    overwritten.
    """
    n_features, n_components = means.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            scores[i, k] = 0.0
        for j in range(n_features):
            z = (X[i, j] - centers[j]) / spreads[j]
            if math.isnan(z):
                continue
            for k in range(n_components):
                gap = z - means[j, k]
                term = tops[j, k] * math.log1p(gap * gap / scales[j, k])
                scores[i, k] += constants[j, k] - term


@kernel
def tabulated_log_densities(X, constants, table, scores):
    """Write constants_k + sum_j table[j, x_ij, k], or NaN where x_ij is not in it.

    X : (n_rows, n_features); constants : (n_components,); table : (n_features,
    n_values, n_components); scores : (n_rows, n_components), overwritten.
    """
    n_features, n_values, n_components = table.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            scores[i, k] = constants[k]
        for j in range(n_features):
            x = X[i, j]
            if not (x >= 0.0 and x < n_values and math.floor(x) == x):
                scores[i, 0] = math.nan
                break
            for k in range(n_components):
                scores[i, k] += table[j, int(x), k]


@kernel
def line_log_densities(
    X, centers, spreads, coefficients, roots, constants, scales, tops, scores
):
    """Write log densities of the last column given the others, zero if it is NaN.

    With z = (x - centers) / spreads, but z_0 = 1 and the target t = z of the last
    column, and the gap g_k = t - coefficients_k z and s_k = |roots_k z|^2, they are
    constants_k - (log r + tops_k log(1 + g^2 / r)), r = scales_k (1 + s), where tops_k
    is positive, and constants_k - (g^2 / scales_k + s) / 2 elsewhere.

    X : (n_rows, n_features); centers, spreads : (n_features,); coefficients :
    (n_components, n_features); roots : (n_components, n_features, n_features);
    constants, scales, tops : (n_components,); scores : (n_rows, n_components),
    overwritten.
    """
    n_components, d = coefficients.shape
    for i in range(X.shape[0]):
        target = (X[i, d - 1] - centers[d - 1]) / spreads[d - 1]
        for k in range(n_components):
            if math.isnan(target):
                scores[i, k] = 0.0
                continue
            gap, square = target - coefficients[k, 0], 0.0
            for j in range(1, d):
                z = (X[i, j - 1] - centers[j - 1]) / spreads[j - 1]
                gap -= coefficients[k, j] * z
            for m in range(d):
                part = roots[k, m, 0]
                for j in range(1, d):
                    z = (X[i, j - 1] - centers[j - 1]) / spreads[j - 1]
                    part += roots[k, m, j] * z
                square += part * part
            if tops[k] > 0.0:
                scale = scales[k] * (1.0 + square)
                tail = tops[k] * math.log1p(gap * gap / scale)
                scores[i, k] = constants[k] - 0.5 * math.log(scale) - tail
            else:
                scores[i, k] = constants[k] - 0.5 * (gap * gap / scales[k] + square)


@kernel
def log_sums_of_polynomials(X, sums, lengths, coefficients, slopes, work, scores):
    """Write log sum_g exp(slopes_g t + sum_m coefficients_kmg t^m).

    t is |x_i + sums_k| - lengths_k, where lengths_k is |sums_k|. X : (n_rows,
    n_features); sums : (n_components, n_features); lengths : (n_components,);
    coefficients : (n_components, n_powers, n_terms); slopes, work : (n_terms,);
    scores : (n_rows, n_components), overwritten.
    """
    n_components, n_powers, n_terms = coefficients.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            square, rise = 0.0, 0.0
            for j in range(X.shape[1]):
                x, total = X[i, j], sums[k, j]
                square += (x + total) * (x + total)
                rise += x * (x + 2.0 * total)
            t = rise / (math.sqrt(square) + lengths[k])
            for g in range(n_terms):
                work[g] = coefficients[k, n_powers - 1, g]
            for m in range(n_powers - 2, -1, -1):
                for g in range(n_terms):
                    work[g] = work[g] * t + coefficients[k, m, g]
            highest = -math.inf
            for g in range(n_terms):
                work[g] += slopes[g] * t
                highest = max(highest, work[g])
            total = 0.0
            for g in range(n_terms):
                total += math.exp(work[g] - highest)
            scores[i, k] = highest + math.log(total)


@kernel
def log_sums_of_powers(
    X, columns, starts, firsts, powers, constants, tops, scales, least, work, scores
):
    """Write log sum_g exp(powers_g log x + constants_g - tops_g log(1 + x / scales_g)).

    One sum for each m, over the g from starts_m to starts_(m + 1), of x = X[i,
    columns_m]. The first `firsts_m` terms suffice, unless their sum times x is less
    than exp(least). X : (n_rows, n_features), none negative; log x of zero is zero;
    columns, firsts : (n_sums,); starts : (n_sums + 1,); powers, constants, tops,
    scales : (n_terms,); work : (largest number of terms of a sum,); scores : (n_rows,
    n_sums), overwritten.
    """
    for i in range(X.shape[0]):
        for m in range(columns.shape[0]):
            x, start = X[i, columns[m]], starts[m]
            n_terms = starts[m + 1] - start
            n_first, log_x = firsts[m], math.log(x) if x > 0.0 else 0.0
            done, highest = 0, -math.inf
            while done < n_terms:
                for g in range(done, n_first):
                    term = constants[start + g] + powers[start + g] * log_x
                    term -= tops[start + g] * math.log1p(x / scales[start + g])
                    work[g] = term
                    highest = max(highest, term)
                total = 0.0
                for g in range(n_first):
                    total += math.exp(work[g] - highest)
                scores[i, m] = highest + math.log(total)
                if scores[i, m] + log_x > least:
                    break
                done, n_first = n_first, n_terms


@kernel
def count_log_probabilities(
    data, indices, starts, topics, log_gamma, totals, log_gamma_totals, scores
):
    """Write log probabilities of counts under Dirichlet-multinomial distributions.

    data, indices, starts : the counts as compressed sparse rows; topics, log_gamma :
    (n_features, n_components), concentrations and their log Gamma; totals,
    log_gamma_totals : (n_components,), those of their sums; scores : (n_rows,
    n_components), overwritten.
    """
    n_components = totals.shape[0]
    for i in range(starts.shape[0] - 1):
        tokens = 0.0
        coefficient = 0.0
        for k in range(n_components):
            scores[i, k] = 0.0
        for entry in range(starts[i], starts[i + 1]):
            count = data[entry]
            if count == 0.0:
                continue
            v = indices[entry]
            tokens += count
            coefficient -= math.lgamma(count + 1.0)
            for k in range(n_components):
                scores[i, k] += math.lgamma(topics[v, k] + count) - log_gamma[v, k]
        coefficient += math.lgamma(tokens + 1.0)
        for k in range(n_components):
            scores[i, k] += coefficient + log_gamma_totals[k]
            scores[i, k] -= math.lgamma(totals[k] + tokens)
            if totals[k] + tokens > LARGE_TOTAL:
                scores[i, k] = log_probability_of_large_counts(
                    data, indices, starts[i], starts[i + 1], topics, k
                )


@kernel
def log_probability_of_large_counts(data, indices, start, stop, topics, k):
    """Return a log probability as `count_log_probabilities` does, without cancellation.

    With a the concentrations, c the counts, m = a + c, and A, N and M their sums, the
    large terms of Stirling's formula are minus the sum of the deviances of a from m A /
    M and of c from m N / M. The indices of a row increase.
    """
    n_features = topics.shape[0]
    A, N = 0.0, 0.0
    for v in range(n_features):
        A += topics[v, k]
    for entry in range(start, stop):
        N += data[entry]
    if N == 0.0:
        return 0.0
    M, rest, entry = A + N, 0.0, start
    score = -log_rising_rest(A, N)
    for v in range(n_features):
        count, a = 0.0, topics[v, k]
        if entry < stop and indices[entry] == v:
            count = data[entry]
            entry += 1
        if count == 0.0:
            rest += a
            continue
        m = a + count
        score -= deviance(a, m * (A / M)) + deviance(count, m * (N / M))
        score += log_rising_rest(a, count)
    return score - rest * math.log1p(N / A)


@kernel
def log_rising_rest(a, c):
    """Return log Gamma(a + c) / (Gamma(a) Gamma(c + 1)) without the largest terms.

    Those are (a + c) log(a + c) - a log(a) - c log(c).
    """
    logs = 0.5 * (math.log(a) - math.log(a + c) - math.log(c)) - HALF_LOG_2_PI
    return logs + stirling_error(a + c) - stirling_error(a) - stirling_error(c)


@kernel
def stirling_error(x):
    """Return log Gamma(x) minus Stirling's formula for it."""
    if x < 16.0:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_2_PI
    inverse = 1.0 / x
    square = inverse * inverse
    tail = 1 / 360 - square * (1 / 1260 - square / 1680)
    return inverse * (1 / 12 - square * tail)


@kernel
def deviance(x, mean):
    """Return x log(x / mean) + mean - x, accurately where x is near the mean.

    Loader's series, as in the binomial probabilities of R.
    """
    gap = x - mean
    if abs(gap) >= 0.1 * (x + mean):
        return x * math.log(x / mean) - gap
    ratio = gap / (x + mean)
    total, term, square = gap * ratio, 2.0 * x * ratio, ratio * ratio
    for j in range(1, 20):  # squares are below .01
        term *= square
        total += term / (2 * j + 1)
    return total


@kernel
def normalise_exponentials(scores, shares):
    """Write exp(scores) / their sum, row by row; both (n_rows, n_components)."""
    n_rows, n_components = scores.shape
    for i in range(n_rows):
        highest = scores[i, 0]
        for k in range(1, n_components):
            highest = max(highest, scores[i, k])
        total = 0.0
        for k in range(n_components):
            shares[i, k] = math.exp(scores[i, k] - highest)
            total += shares[i, k]
        for k in range(n_components):
            shares[i, k] /= total


@kernel
def log_sums_of_rows(scores, log_weights, result):
    """Write log sum_k exp(scores_ik + log_weights_k); result : (n_rows,)."""
    n_rows, n_components = scores.shape
    for i in range(n_rows):
        highest = scores[i, 0] + log_weights[0]
        for k in range(1, n_components):
            highest = max(highest, scores[i, k] + log_weights[k])
        if math.isinf(highest):
            result[i] = highest
            continue
        total = 0.0
        for k in range(n_components):
            total += math.exp(scores[i, k] + log_weights[k] - highest)
        result[i] = highest + math.log(total)
