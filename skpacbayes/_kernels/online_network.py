"""Online variational inference for a network of one hidden ReLU layer.

f(z) = c + sum_k w_k relu(sum_j W_kj z_j), z_0 = 1, and all weights independent
Gaussians: the mean and the variance of f(z) are exact, nothing is sampled.

hidden : (N_VECTORS, n_hidden, n_inputs), the rows MEAN, ... of W;
output : (N_VECTORS, n_hidden + 1), those of w, then c;
scalars : (N_SCALARS,), the numbers WEIGHT, ..., COUNT.

The network works on targets standardised by the targets before them.
"""

import math

import numpy as np

from . import kernel

NGVI, NGVI_EXPLICIT, SVA, SVB, OGA, OGA_EL = range(6)
CONSTANT, INVSQRT, ADAGRAD = range(3)
N_VECTORS = 4
MEAN, VARIANCE, GRADIENT_MEAN, GRADIENT_SCALE = range(N_VECTORS)
N_SCALARS = 8
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions, in squared units of y
    SQUARES,  # sum of the squared norms of the gradients
    TARGET_MEAN,
    TARGET_SCATTER,
    RESIDUALS,  # weighted sum of the scaled squared residuals
    COUNT,  # sum of the weights behind RESIDUALS
) = range(N_SCALARS)
N_MOMENTS = 4
FIRST, SECOND, ACTIVE, DENSITY = range(N_MOMENTS)
SMALLEST = 1e-300  # of a scatter that is not 0: one over it is a number


@kernel
def _propagate(z, hidden, output, moments, certain):
    """Mean and variance of f(z); the moments of the hidden units go to `moments`.

    moments : (N_MOMENTS, n_hidden), E relu, E relu^2, the probability that the unit is
    active, and the derivative of E relu in its variance. `certain` takes the variances
    for 0.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    mean = output[MEAN, n_hidden]
    variance = 0.0 if certain else output[VARIANCE, n_hidden]
    for k in range(n_hidden):
        mu = 0.0
        var = 0.0
        for j in range(n_inputs):
            mu += hidden[MEAN, k, j] * z[j]
            var += hidden[VARIANCE, k, j] * z[j] * z[j]
        if certain or var == 0.0:
            active = 1.0 if mu > 0.0 else 0.0
            density = 0.0
            first = active * mu
            second = active * mu * mu
        else:
            sd = math.sqrt(var)
            u = mu / sd
            active = 0.5 * math.erfc(-u * 0.7071067811865476)
            bump = 0.3989422804014327 * math.exp(-0.5 * u * u)
            density = 0.5 * bump / sd
            first = max(0.0, mu * active + sd * bump)
            second = max(first * first, (mu * mu + var) * active + mu * sd * bump)
        w = output[MEAN, k]
        spread = 0.0 if certain else output[VARIANCE, k]
        mean += w * first
        variance += w * w * (second - first * first) + spread * second
        moments[FIRST, k] = first
        moments[SECOND, k] = second
        moments[ACTIVE, k] = active
        moments[DENSITY, k] = density
    return mean, variance


@kernel
def _natural_step(z, hidden, output, moments, residual, weight, noise):
    """Implicit NGVI: the loss exact along the network's slope at the means.

    The expected loss (y - Ef)^2 + Vf is quadratic in the means but for the curvature
    of the hidden units. Of its second derivatives the positive (Gauss-Newton)
    part is kept. Returns the variance along the slope.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    along = output[VARIANCE, n_hidden]
    for k in range(n_hidden):
        along += output[VARIANCE, k] * moments[FIRST, k] ** 2
        slope = output[MEAN, k] * moments[ACTIVE, k]
        var = 0.0
        for j in range(n_inputs):
            var += hidden[VARIANCE, k, j] * z[j] * z[j]
        along += slope * slope * var
    strength = weight / noise
    shift = strength * residual / (1.0 + strength * along)
    for k in range(n_hidden):
        w, spread = output[MEAN, k], output[VARIANCE, k]
        first, second = moments[FIRST, k], moments[SECOND, k]
        slope = w * moments[ACTIVE, k]
        # the slope of Vf in the mean of the unit, and the curvature in its input
        uncertainty = first * (w * w * (1.0 - moments[ACTIVE, k]) + spread)
        curve = strength * (w * w + spread) * moments[ACTIVE, k]
        for j in range(n_inputs):
            gain = hidden[VARIANCE, k, j] * z[j]
            after = hidden[VARIANCE, k, j] / (1.0 + curve * gain * z[j])
            hidden[MEAN, k, j] += shift * slope * gain
            hidden[MEAN, k, j] -= strength * uncertainty * after * z[j]
            hidden[VARIANCE, k, j] = after
        after = spread / (1.0 + strength * spread * second)
        output[MEAN, k] += shift * first * spread
        output[MEAN, k] -= strength * w * (second - first * first) * after
        output[VARIANCE, k] = after
    spread = output[VARIANCE, n_hidden]
    output[MEAN, n_hidden] += shift * spread
    output[VARIANCE, n_hidden] = spread / (1.0 + strength * spread)
    return along


@kernel
def _gradients(z, hidden, output, moments, residual, hidden_slopes, output_slopes):
    """Gradients of the expected loss in means and variances; their squared norm.

    The norm is that in (m, sigma). Arrays of shapes (2, n_hidden, n_inputs) and
    (2, n_hidden + 1), in means then in variances.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    squares = 0.0
    for k in range(n_hidden):
        w, spread = output[MEAN, k], output[VARIANCE, k]
        first, second = moments[FIRST, k], moments[SECOND, k]
        active, density = moments[ACTIVE, k], moments[DENSITY, k]
        both = w * w + spread
        pull = residual * w + w * w * first
        in_mean = 2.0 * (both * first - pull * active)
        in_variance = both * active - 2.0 * pull * density
        for j in range(n_inputs):
            slope = in_mean * z[j]
            curve = in_variance * z[j] * z[j]
            hidden_slopes[0, k, j] = slope
            hidden_slopes[1, k, j] = curve
            squares += slope * slope + 4.0 * hidden[VARIANCE, k, j] * curve * curve
        slope = 2.0 * (w * (second - first * first) - residual * first)
        output_slopes[0, k] = slope
        output_slopes[1, k] = second
        squares += slope * slope + 4.0 * spread * second * second
    output_slopes[0, n_hidden] = -2.0 * residual
    output_slopes[1, n_hidden] = 1.0
    return squares + 4.0 * residual * residual + 4.0 * output[VARIANCE, n_hidden]


@kernel
def _descend(state, slopes, weight, method, rate, settings):
    """One step of SVA, SVB, OGA or OGA-EL on flat parameters, then the projection.

    state : (N_VECTORS, n), the rows MEAN, ...; slopes : (2, n); settings : (4,), the
    scale of the prior, the bounds of means and deviations, and the kind of the step.
    """
    scale, mean_bound, scale_bound, kind = settings
    for j in range(state.shape[1]):
        sd = math.sqrt(state[VARIANCE, j])
        in_mean = weight * slopes[0, j]
        in_sd = weight * 2.0 * slopes[1, j] * sd
        mean = state[MEAN, j] - rate * in_mean
        if method == SVA:
            eta = rate / (scale * scale) if kind == ADAGRAD else rate
            state[GRADIENT_MEAN, j] += in_mean
            state[GRADIENT_SCALE, j] += in_sd
            mean = -eta * scale * scale * state[GRADIENT_MEAN, j]
            u = 0.5 * eta * scale * state[GRADIENT_SCALE, j]
            sd = scale * (math.sqrt(1.0 + u * u) - u)
        elif method == SVB:
            step = rate * sd * sd if kind == CONSTANT else rate
            mean = state[MEAN, j] - step * in_mean
            u = 0.5 * step * in_sd
            sd = math.sqrt(sd * sd + u * u) - u
        elif method == OGA_EL:
            sd -= rate * in_sd
        state[MEAN, j] = min(max(mean, -mean_bound), mean_bound)
        state[VARIANCE, j] = min(max(sd, 0.0), scale_bound) ** 2


@kernel
def _step_size(squares, rate, scalars, settings):
    """Count a gradient; the size of the step, `rate` where it is constant."""
    scalars[SQUARES] += squares
    if settings[3] == CONSTANT:
        return rate
    if settings[3] == INVSQRT:
        return 1.0 / math.sqrt(scalars[STEPS])
    return settings[0] / math.sqrt(scalars[SQUARES]) if scalars[SQUARES] > 0 else 0.0


@kernel
def _observe_target(y, weight, scalars):
    """Count a target in the running moments; return it standardised."""
    scalars[WEIGHT] += weight
    before = y - scalars[TARGET_MEAN]
    scalars[TARGET_MEAN] += weight / scalars[WEIGHT] * before
    after = y - scalars[TARGET_MEAN]
    scalars[TARGET_SCATTER] += weight * before * after
    if scalars[TARGET_SCATTER] <= SMALLEST:
        return 0.0
    return after / math.sqrt(scalars[TARGET_SCATTER] / scalars[WEIGHT])


@kernel
def learn_network(Z, y, sample_weight, hidden, output, scalars, settings, method, rate):
    """Predict, suffer the squared loss and learn, row by row.

    NGVI predicts with the expectation of f, the others with f at the means.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    moments = np.empty((N_MOMENTS, n_hidden))
    hidden_slopes = np.zeros((2, n_hidden, n_inputs))
    output_slopes = np.zeros((2, n_hidden + 1))
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        a, v = _propagate(z, hidden, output, moments, method != NGVI)
        unit = 0.0
        if scalars[STEPS] > 0.0:
            unit = math.sqrt(scalars[TARGET_SCATTER] / scalars[WEIGHT])
        scalars[STEPS] += 1.0
        scalars[LOSS] += weight * (y[i] - scalars[TARGET_MEAN] - unit * a) ** 2
        target = _observe_target(y[i], weight, scalars)
        if scalars[TARGET_SCATTER] <= SMALLEST:  # one value so far: its unit is unknown
            continue
        residual = target - a
        if method == NGVI:
            noise = scalars[RESIDUALS] / scalars[COUNT]
            _natural_step(z, hidden, output, moments, residual, weight, noise)
            scalars[RESIDUALS] += (
                weight * residual * residual / (1.0 + weight * v / noise)
            )
            scalars[COUNT] += weight
            continue
        if method != OGA:
            a, v = _propagate(z, hidden, output, moments, method == OGA)
            residual = target - a
        squares = _gradients(
            z, hidden, output, moments, residual, hidden_slopes, output_slopes
        )
        step = _step_size(weight * weight * squares, rate, scalars, settings)
        shape = (N_VECTORS, n_hidden * n_inputs)
        _descend(
            hidden.reshape(shape),
            hidden_slopes.reshape((2, n_hidden * n_inputs)),
            weight,
            method,
            step,
            settings,
        )
        _descend(output, output_slopes, weight, method, step, settings)


@kernel
def predict_network(Z, hidden, output, certain, means, variances):
    """Mean and variance of f on each row of Z, in units of standardised targets."""
    moments = np.empty((N_MOMENTS, hidden.shape[1]))
    for i in range(Z.shape[0]):
        means[i], variances[i] = _propagate(Z[i], hidden, output, moments, certain)
