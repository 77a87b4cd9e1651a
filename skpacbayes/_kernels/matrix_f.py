"""Loops over components and eigenvalues for Gaussian components and their prior.

The precisions L are Wishart; under the default prior, they have a matrix-F distribution
with nu and m degrees of freedom and a scale R. The arrays are small: with NumPy, the
time is that of its calls.
"""

import math

from . import kernel

NEWTON_STEPS = 30
NEWTON_STEP = 1e-3  # size of the last step: the error is about its square
LONGEST_STEP = 2.0
SERIES_FROM = 8.0  # the series of digamma has an error below 2e-15 from here
LOG_2_PI = math.log(2.0 * math.pi)
TINY = 2.3e-308
LEAST = 1e-30  # inverse scale, in units of R


@kernel
def digamma(x):
    """Return the derivative of log Gamma at a positive number."""
    result = 0.0
    while x < SERIES_FROM:
        result -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = 691.0 / 32760.0 - square / 12.0
    series = 1.0 / 132.0 - square * series
    series = 1.0 / 240.0 - square * series
    series = 1.0 / 252.0 - square * series
    series = 1.0 / 120.0 - square * series
    series = 1.0 / 12.0 - square * series
    return result + math.log(x) - 0.5 / x - square * series


@kernel
def shrink(statistics, origins, step, mean, priors, means, precisions, scatter):
    """Write the posterior of means, and scatter matrices about the prior mean.

    statistics : (n_components, n_columns), counts, sums and products about the rows
    `k * step` of `origins`; mean : (n_features,), the prior mean; priors :
    (n_components,), its numbers of pseudo-observations. Overwritten are means :
    (n_components, n_features), precisions : (n_components,) and scatter :
    (n_components, n_features, n_features).
    """
    n_features = mean.shape[0]
    for k in range(means.shape[0]):
        count, column = statistics[k, 0], 1 + n_features
        divisor = count if count > TINY else TINY
        precisions[k] = priors[k] + count
        share = count / precisions[k]
        for j in range(n_features):
            total = statistics[k, 1 + j]
            pull = total / divisor + (origins[k * step, j] - mean[j])
            means[k, j] = mean[j] + share * pull
            for m in range(j, n_features):
                average = statistics[k, 1 + m] / divisor
                other = average + (origins[k * step, m] - mean[m])
                within = statistics[k, column] - total * average
                moment = within + priors[k] * share * pull * other
                scatter[k, j, m] = scatter[k, m, j] = moment
                column += 1


@kernel
def inverse_scale(s, n_rows, nu, m):
    """Return s + b where B and the precision L are jointly optimal, as eigenvalues.

    With N rows, E B = (m + nu) (R^-1 + E L)^-1 and E L = (nu + N) (E B + S)^-1 hold at
    once: b is the positive root of b^2 + (s + N - m) b = (m + nu) s, or for no row m.
    """
    linear, product = s + n_rows - m, (m + nu) * s
    half = 0.5 * (math.sqrt(linear * linear + 4.0 * product) + abs(linear))
    if linear > 0.0:  # instead of the difference of numbers that are nearly equal
        half = product / half
    return s + (half if half > LEAST else LEAST)


@kernel
def inverse_scales(scatter, counts, nu, m, values):
    """Write `inverse_scale` of each value; all arrays are (n_values,)."""
    for i in range(scatter.shape[0]):
        values[i] = inverse_scale(scatter[i], counts[i], nu, m)


@kernel
def weigh_axes(eigenvalues, axes, counts, blurred, blur, nu, m, factor, weights):
    """Turn eigenvalues of scatter matrices into those of the optimal inverse scales.

    eigenvalues : (n_matrices, n_features), in units of R but for its factor, updated in
    place; axes : (n_matrices, n_features, n_features), their directions in the columns;
    weights : (n_matrices, n_features), overwritten with the lengths of the factors of
    E L in these directions; counts, blurred : (n_matrices,), numbers of rows, and of
    times that the scatter has the blur, (n_features,), which rounding may have lost.
    """
    n_features = blur.shape[0]
    for g in range(eigenvalues.shape[0]):
        for j in range(n_features):
            least = 0.0
            for i in range(n_features):
                least += blur[i] * axes[g, i, j] * axes[g, i, j]
            least *= blurred[g]
            scatter = eigenvalues[g, j] if eigenvalues[g, j] > least else least
            value = factor * inverse_scale(scatter / factor, counts[g], nu, m)
            eigenvalues[g, j] = value
            weights[g, j] = math.sqrt((nu + counts[g]) / value)


@kernel
def log_determinants(degrees, values, result):
    """Write E log |L| under Wishart distributions.

    degrees, result : (n_matrices,); values : (n_matrices, size), eigenvalues of the
    inverse scales.
    """
    for g in range(degrees.shape[0]):
        result[g] = 0.0
        for j in range(values.shape[1]):
            expected = digamma(0.5 * (degrees[g] - j))
            result[g] += expected - math.log(0.5 * values[g, j])


@kernel
def complete(
    gaps, precisions, blur, rows, log_determinants, shape, rate, constants, expected
):
    """Write the constants of E log q_k, and the expected precisions E l of the means.

    gaps : (n_components, n_features), of the means from the prior mean; precisions :
    (n_components, n_features, n_features), or (n_components, 1, n_features), diagonals;
    blur : (n_features,); rows, log_determinants : (n_components,), the precisions of
    the means in rows, and E log |L|; shape, rate : of the prior of l; constants,
    expected : (n_components,), overwritten.
    """
    n_components, n_features = gaps.shape
    full = precisions.shape[1] > 1
    for k in range(n_components):
        square, blurred = 0.0, 0.0
        for i in range(n_features):
            row = i if full else 0
            scaled = precisions[k, row, i] * gaps[k, i]
            if full:
                scaled = 0.0
                for j in range(n_features):
                    scaled += precisions[k, row, j] * gaps[k, j]
            square += gaps[k, i] * scaled
            blurred += precisions[k, row, i] * blur[i]
        uncertain = n_features / rows[k]
        lost = blurred + uncertain + n_features * LOG_2_PI
        constants[k] = 0.5 * (log_determinants[k] - lost)
        half = shape + 0.5 * n_features
        expected[k] = half / (rate + 0.5 * (square + uncertain))


@kernel
def divergences(degrees, spectrum, nu, m, constant, result):
    """Write sums of upper bounds on KL(Wishart, matrix-F), see `matrix_f_divergence`.

    degrees, result : (n_sums,); spectrum : (n_sums, n_matrices, size), eigenvalues of
    R E L.
    """
    size = spectrum.shape[2]
    for k in range(spectrum.shape[0]):
        result[k] = 0.0
        for g in range(spectrum.shape[1]):
            result[k] -= 0.5 * degrees[k] * size + constant
            for j in range(size):
                half, value = 0.5 * (degrees[k] - j), spectrum[k, g, j]
                log_scale = math.log(2.0 * value / degrees[k])
                expected = 0.5 * (degrees[k] - nu) * digamma(half)
                logs = 0.5 * (nu + m) * math.log1p(value) - 0.5 * nu * log_scale
                result[k] += expected + logs - math.lgamma(half)


@kernel
def best_log_factor(spectrum, target, log_factor):
    """Return u where the shares e^u s / (1 + e^u s) have the sum `target`.

    By Newton's method from `log_factor`, safeguarded. spectrum : (n_values,).
    """
    u = log_factor
    for _ in range(NEWTON_STEPS):
        gap, slope, factor = target, 0.0, math.exp(u)
        for j in range(spectrum.shape[0]):
            other = 1.0 / (1.0 + factor * spectrum[j])
            gap -= 1.0 - other
            slope += other * (1.0 - other)
        step = gap / slope
        if abs(step) > LONGEST_STEP:
            step = math.copysign(LONGEST_STEP, step)
        u += step
        if abs(step) < NEWTON_STEP:
            break
    return u
