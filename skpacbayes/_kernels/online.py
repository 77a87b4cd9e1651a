"""Online variational inference for linear models, one row after another.

The posterior of a model is Gaussian. Its state is a few rows of one array:

models : (n_models, N_VECTORS, n_parameters), the rows MEAN, ..., AVERAGE;
scalars : (n_models, N_SCALARS), the numbers WEIGHT, ..., PREDICTION;
factors : (n_models, n_parameters, n_parameters), for a full covariance only: column j
    of the unit upper triangular U in U diag(VARIANCE) U' is factors[k, j, :j].

Z are rows in the coordinates of the parameters; where there is an intercept, it is
parameter 0 and the first column of Z is 1. An output has one model, or one for each
forgetting rate, whose predictions are averaged by Algorithm 1.
"""

import math

import numpy as np

from . import kernel

# Methods and losses, by number.
NGVI, NGVI_EXPLICIT, SVA, SVB, OGA, OGA_EL = range(6)
SQUARED, ABSOLUTE, HINGE, LOG = range(4)
# Step sizes: a constant, 1 / sqrt(t), and prior scale / sqrt(sum of squared gradients).
CONSTANT, INVSQRT, ADAGRAD = range(3)

N_VECTORS = 6
MEAN, VARIANCE, PRIOR, GRADIENT_MEAN, GRADIENT_SCALE, AVERAGE = range(N_VECTORS)
N_SCALARS = 10
(
    WEIGHT,  # sum of the weights of the rows, in model 0
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions, in the first model of each output
    SQUARES,  # sum of |g_t|^2
    SCALED_SQUARES,  # sum of |g_t|^2 / sqrt(t)
    RESIDUALS,  # weighted sum of the scaled squared (or absolute) residuals
    COUNT,  # sum of the weights behind RESIDUALS
    OWN_LOSS,  # cumulative loss of this model's predictions
    FORGETTING,
    PREDICTION,  # of the current row
) = range(N_SCALARS)
N_SETTINGS = 8
(
    TEMPERATURE,  # inverse temperature, or 0 where the noise is estimated
    PRIOR_SCALE,
    MEAN_BOUND,
    SCALE_BOUND,
    RATE_KIND,
    RATE,
    FLAT,  # whether the intercept's prior is flat
    AVERAGING,
) = range(N_SETTINGS)

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@kernel
def normal_cdf(u):
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-u * 0.7071067811865476)


@kernel
def normal_pdf(u):
    """Return the standard normal density."""
    return 0.3989422804014327 * math.exp(-0.5 * u * u)


@kernel
def point_loss(loss, y, a):
    """Loss of the prediction a; y is -1 or 1 for the hinge and the log loss."""
    if loss == SQUARED:
        return (y - a) ** 2
    if loss == ABSOLUTE:
        return abs(y - a)
    if loss == HINGE:
        return max(0.0, 1.0 - y * a)
    return max(0.0, -y * a) + math.log1p(math.exp(-abs(a)))


@kernel
def expected_gradients(loss, y, a, v):
    """Return the derivatives of the loss expected under f ~ N(a, v), in a and v."""
    if loss == SQUARED:
        return -2.0 * (y - a), 1.0
    if loss == LOG:
        sd = math.sqrt(v)
        slope = 0.0
        curvature = 0.0
        for k in range(_NODES.shape[0]):
            p = 1.0 / (1.0 + math.exp(y * (a + sd * _NODES[k])))
            slope += _WEIGHTS[k] * p
            curvature += _WEIGHTS[k] * p * (1.0 - p)
        return -y * slope, 0.5 * curvature
    margin = 1.0 - y * a if loss == HINGE else y - a
    if v > 0.0:
        sd = math.sqrt(v)
        cdf = normal_cdf(margin / sd)
        pdf = normal_pdf(margin / sd) / sd
    else:
        cdf = 1.0 if margin > 0.0 else 0.0
        if loss == ABSOLUTE and margin == 0.0:
            cdf = 0.5
        pdf = 0.0
    if loss == HINGE:
        return -y * cdf, 0.5 * pdf
    return 1.0 - 2.0 * cdf, pdf


@kernel
def _solve_probit(target, slope):
    """Root q of q + slope * Phi(q) = target, by Halley's method kept in a bracket."""
    low, high = target - slope, target
    if high < -9.0:  # Phi(q) < 2e-19
        return high
    q = target
    for _ in range(60):
        pdf = slope * normal_pdf(q)
        excess = q - target + slope * normal_cdf(q)
        if excess > 0.0:
            high = q
        else:
            low = q
        first = 1.0 + pdf
        step = excess / (first + 0.5 * excess * q * pdf / first)
        if not low <= q - step <= high:
            step = q - 0.5 * (low + high)
        q -= step
        if abs(step) <= 1e-5 * (1.0 + abs(q)) and abs(step) < 1e-4:
            # the next step would be of the order of its cube
            break
    return q


@kernel
def implicit_gradients(loss, y, a, v, strength):
    """`expected_gradients` at the root a' of a' = a - strength * v * dL(a', v)/da."""
    if loss == SQUARED:
        return -2.0 * (y - a) / (1.0 + 2.0 * strength * v), 1.0
    if loss == LOG:
        low, high = a - strength * v, a + strength * v
        point = a
        for _ in range(60):
            slope, half_curvature = expected_gradients(loss, y, point, v)
            excess = point - a + strength * v * slope
            if excess > 0.0:
                high = point
            else:
                low = point
            step = excess / (1.0 + 2.0 * strength * v * half_curvature)
            if not low <= point - step <= high:
                step = point - 0.5 * (low + high)
            point -= step
            if abs(step) <= 1e-12 * (1.0 + abs(point)):
                break
        return slope, half_curvature
    sd = math.sqrt(v)
    if loss == HINGE:
        q = _solve_probit((1.0 - y * a) / sd, strength * sd)
        return -y * normal_cdf(q), 0.5 * normal_pdf(q) / sd
    q = _solve_probit((y - a) / sd + strength * sd, 2.0 * strength * sd)
    return 1.0 - 2.0 * normal_cdf(q), normal_pdf(q) / sd


@kernel
def dot(a, b):
    """Scalar product, in four sums that the processor adds side by side."""
    n = a.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    for j in range(whole, n):
        s0 += a[j] * b[j]
    return (s0 + s1) + (s2 + s3)


@kernel
def spread_along(variance, z):
    """sum_j variance_j z_j^2: the variance of <theta, z>."""
    n = z.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        s0 += variance[j] * z[j] * z[j]
        s1 += variance[j + 1] * z[j + 1] * z[j + 1]
        s2 += variance[j + 2] * z[j + 2] * z[j + 2]
        s3 += variance[j + 3] * z[j + 3] * z[j + 3]
    for j in range(whole, n):
        s0 += variance[j] * z[j] * z[j]
    return (s0 + s1) + (s2 + s3)


@kernel
def project(model, settings):
    """Project means on [-mean_bound, mean_bound], deviations on [0, scale_bound]."""
    bound = settings[MEAN_BOUND]
    highest = settings[SCALE_BOUND] ** 2
    if bound < math.inf or highest < math.inf:
        for j in range(model.shape[1]):
            model[MEAN, j] = min(max(model[MEAN, j], -bound), bound)
            model[VARIANCE, j] = min(model[VARIANCE, j], highest)


@kernel
def forget(model, rate):
    """Discount what was learnt: the posterior moves towards the prior."""
    keep = 1.0 - rate
    for j in range(model.shape[1]):
        total = keep + rate * model[PRIOR, j] * model[VARIANCE, j]
        model[MEAN, j] *= keep / total
        model[VARIANCE, j] /= total


@kernel
def factored_update(factor, variance, x, precision, gain):
    """Condition U diag(variance) U' on a measurement along x; return x'Vx.

    Bierman's algorithm: the covariance stays positive whatever the rounding. Writes
    Vx, V being the covariance before, to `gain`.
    """
    alpha = 1.0 / precision
    explained = 0.0
    for j in range(x.shape[0]):
        column = factor[j, :j]
        f = x[j] + dot(column, x[:j])
        b = variance[j] * f
        before = alpha
        explained += f * b
        alpha = 1.0 / precision + explained
        variance[j] *= before / alpha
        shift = -f / before
        for i in range(j):
            u = column[i]
            column[i] = u + shift * gain[i]
            gain[i] += b * u
        gain[j] = b
    return explained


@kernel
def forget_full(model, factor, scratch, scalars, settings):
    """`forget` for a full covariance: the prior returns one coordinate at a time."""
    gain, direction = scratch[0], scratch[1]
    rate = scalars[FORGETTING]
    for j in range(model.shape[1]):
        model[VARIANCE, j] /= 1.0 - rate
        direction[j] = 0.0
    start = int(settings[FLAT])
    n_features = model.shape[1] - start
    j = start + int(scalars[STEPS]) % n_features
    direction[j] = 1.0
    precision = rate * n_features * model[PRIOR, j]
    v = factored_update(factor, model[VARIANCE], direction, precision, gain)
    shift = -model[MEAN, j] / (1.0 / precision + v)
    for i in range(model.shape[1]):
        model[MEAN, i] += shift * gain[i]


@kernel
def observe_residual(loss, y, a, v, weight, scalars):
    """Count a residual in the estimate of the noise."""
    keep = 1.0 - scalars[FORGETTING]
    scaled = abs(y - a)
    if loss == SQUARED:
        scaled *= scaled / (1.0 + weight * v)
    scalars[RESIDUALS] = keep * scalars[RESIDUALS] + weight * scaled
    scalars[COUNT] = keep * scalars[COUNT] + weight


@kernel
def ngvi(model, z, y, weight, a, loss, scalars, settings):
    """Implicit natural-gradient step: the loss exact in the mean (diagonal V)."""
    mean = model[MEAN]
    variance = model[VARIANCE]
    if scalars[FORGETTING] > 0.0:
        forget(model, scalars[FORGETTING])
        a = dot(mean, z)
    v = spread_along(variance, z)
    observe_residual(loss, y, a, v, weight, scalars)
    if v == 0.0:
        return
    unit, temperature = unit_and_temperature(loss, scalars, settings)
    strength = temperature * weight
    da, dv = implicit_gradients(loss, y / unit, a / unit, v, strength)
    shift = -unit * strength * da
    curve = 2.0 * strength * dv
    for j in range(z.shape[0]):
        spread = variance[j] * z[j]
        mean[j] += shift * spread
        variance[j] /= 1.0 + curve * spread * z[j]
    project(model, settings)


@kernel
def unit_and_temperature(loss, scalars, settings):
    """Return the unit of y and the inverse temperature in that unit.

    Where the noise is estimated the posterior variance is held relative to it: the
    squared loss then needs no unit, the absolute loss that of the mean residual.
    """
    if settings[TEMPERATURE] > 0.0:
        return 1.0, settings[TEMPERATURE]
    if loss == SQUARED:
        return 1.0, 0.5
    mean_residual = scalars[RESIDUALS] / scalars[COUNT]
    return (mean_residual if mean_residual > 0.0 else 1.0), 1.0


@kernel
def ngvi_full(model, factor, scratch, z, y, weight, scalars, settings):
    """Implicit natural-gradient step on the squared loss with a full covariance."""
    mean = model[MEAN]
    gain = scratch[0]
    if scalars[FORGETTING] > 0.0:
        forget_full(model, factor, scratch, scalars, settings)
    a = dot(mean, z)
    _, temperature = unit_and_temperature(SQUARED, scalars, settings)
    precision = 2.0 * temperature * weight
    v = factored_update(factor, model[VARIANCE], z, precision, gain)
    shift = (y - a) / (1.0 / precision + v)
    for j in range(z.shape[0]):
        mean[j] += shift * gain[j]
    observe_residual(SQUARED, y, a, v, weight, scalars)


@kernel
def ngvi_explicit(model, z, y, weight, a, loss, scalars, settings):
    """Equation (8), solved exactly: the loss linearised at the current posterior."""
    rate = scalars[FORGETTING]
    v = spread_along(model[VARIANCE], z)
    observe_residual(loss, y, a, v, weight, scalars)
    unit, temperature = unit_and_temperature(loss, scalars, settings)
    strength = temperature * weight
    da, dv = expected_gradients(loss, y / unit, a / unit, v)
    for j in range(z.shape[0]):
        prior = model[PRIOR, j]
        curve = 2.0 * strength * dv * z[j] * z[j]
        precision = (1.0 - rate) / model[VARIANCE, j] + rate * prior + curve
        slope = strength * unit * da * z[j] + rate * prior * model[MEAN, j]
        model[MEAN, j] -= slope / precision
        model[VARIANCE, j] = 1.0 / precision


@kernel
def step_size(squares, scalars, settings):
    """Count a gradient of squared norm `squares`; return the size of the step."""
    scalars[SQUARES] += squares
    scalars[SCALED_SQUARES] += squares / math.sqrt(scalars[STEPS])
    if settings[RATE_KIND] == CONSTANT:
        return settings[RATE]
    if settings[RATE_KIND] == INVSQRT:
        return 1.0 / math.sqrt(scalars[STEPS])
    if scalars[SQUARES] == 0.0:
        return 0.0
    return settings[PRIOR_SCALE] / math.sqrt(scalars[SQUARES])


@kernel
def squared_norm(model, z, da, dv):
    """Squared norm of the gradient of the expected loss in (m, sigma)."""
    total = 0.0
    for j in range(z.shape[0]):
        square = z[j] * z[j]
        total += da * da * square
        total += 4.0 * dv * dv * model[VARIANCE, j] * square * square
    return total


@kernel
def sva(model, z, da, dv, rate, settings):
    """Sequential variational approximation, equations (6) and (9), in dual form."""
    scale = settings[PRIOR_SCALE]
    if settings[RATE_KIND] == ADAGRAD:  # the step of the mean is rate * scale^2
        rate /= scale * scale
    for j in range(z.shape[0]):
        model[GRADIENT_MEAN, j] += da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        model[GRADIENT_SCALE, j] += 2.0 * dv * sd * z[j] * z[j]
        model[MEAN, j] = -rate * scale * scale * model[GRADIENT_MEAN, j]
        u = 0.5 * rate * scale * model[GRADIENT_SCALE, j]
        model[VARIANCE, j] = (scale / (math.sqrt(1.0 + u * u) + u)) ** 2


@kernel
def svb(model, z, da, dv, rate, settings):
    """Streaming variational Bayes, equations (7) and (10).

    Where the step varies it is that of Theorem 3, divided by the variance.
    """
    natural = settings[RATE_KIND] == CONSTANT
    for j in range(z.shape[0]):
        variance = model[VARIANCE, j]
        step = rate * variance if natural else rate
        u = step * dv * math.sqrt(variance) * z[j] * z[j]
        model[MEAN, j] -= step * da * z[j]
        root = math.sqrt(variance + u * u) + u
        model[VARIANCE, j] = (variance / root) ** 2 if root > 0.0 else 0.0


@kernel
def gradient_descent(model, z, da, dv, rate):
    """Gradient descent in (m, sigma): OGA-EL, or OGA where dv is 0."""
    for j in range(z.shape[0]):
        model[MEAN, j] -= rate * da * z[j]
        sd = math.sqrt(model[VARIANCE, j])
        sd = max(0.0, sd - rate * 2.0 * dv * sd * z[j] * z[j])
        model[VARIANCE, j] = sd * sd


@kernel
def aggregation_rate(loss, scalars, settings):
    """Inverse temperature of the weights: that of the loss, or the noise's."""
    if settings[TEMPERATURE] > 0.0:
        return settings[TEMPERATURE]
    if scalars[LOSS] == 0.0:
        return 0.0
    rate = scalars[WEIGHT] / scalars[LOSS]
    return 0.5 * rate if loss == SQUARED else rate


@kernel
def start_flat(model, z, y, weight, settings):
    """First row under a flat prior of the intercept: it takes the intercept there."""
    temperature = settings[TEMPERATURE]
    model[MEAN, 0] = y
    model[VARIANCE, 0] = 1.0 / (weight * (2.0 * temperature if temperature else 1.0))


@kernel
def suffer(models, scalars, z, y, weight, first, last, loss, settings):
    """Predict by the weighted mean of the models first, ..., last - 1; add the loss."""
    lowest = math.inf
    for k in range(first, last):
        scalars[k, STEPS] += 1.0
        scalars[k, PREDICTION] = dot(models[k, MEAN], z)
        lowest = min(lowest, scalars[k, OWN_LOSS])
        if settings[AVERAGING] == 1.0:
            for j in range(z.shape[0]):
                models[k, AVERAGE, j] += weight * models[k, MEAN, j]
    prediction = scalars[first, PREDICTION]
    if last > first + 1:
        rate = aggregation_rate(loss, scalars[first], settings)
        prediction = total = 0.0
        for k in range(first, last):
            share = math.exp(-rate * (scalars[k, OWN_LOSS] - lowest))
            prediction += share * scalars[k, PREDICTION]
            total += share
            own = point_loss(loss, y, scalars[k, PREDICTION])
            scalars[k, OWN_LOSS] += weight * own
        prediction /= total
    scalars[first, WEIGHT] += weight
    scalars[first, LOSS] += weight * point_loss(loss, y, prediction)


@kernel
def target_of(y, output, n_outputs, loss):
    """Return y, or -1 or 1 where y is the number of a class."""
    if loss in (SQUARED, ABSOLUTE):
        return y
    return 1.0 if y == (output if n_outputs > 1 else 1) else -1.0


@kernel
def learn_natural(Z, y, sample_weight, models, scalars, settings, loss, n_outputs):
    """Implicit NGVI with diagonal covariances over the rows of Z, in order."""
    n_experts = models.shape[0] // n_outputs
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        for output in range(n_outputs):
            target = target_of(y[i], output, n_outputs, loss)
            first = output * n_experts
            last = first + n_experts
            suffer(models, scalars, Z[i], target, weight, first, last, loss, settings)
            for k in range(first, last):
                if settings[FLAT] == 1.0 and scalars[k, STEPS] == 1.0:
                    start_flat(models[k], Z[i], target, weight, settings)
                else:
                    a = scalars[k, PREDICTION]
                    ngvi(models[k], Z[i], target, weight, a, loss, scalars[k], settings)


@kernel
def learn_full(Z, y, sample_weight, models, scalars, settings, factors, scratch):
    """Implicit NGVI with full covariances on the squared loss."""
    n_models = models.shape[0]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        suffer(models, scalars, Z[i], y[i], weight, 0, n_models, SQUARED, settings)
        for k in range(n_models):
            if settings[FLAT] == 1.0 and scalars[k, STEPS] == 1.0:
                start_flat(models[k], Z[i], y[i], weight, settings)
                for j in range(1, Z.shape[1]):
                    factors[k, j, 0] = -Z[i, j]
            else:
                ngvi_full(
                    models[k],
                    factors[k],
                    scratch,
                    Z[i],
                    y[i],
                    weight,
                    scalars[k],
                    settings,
                )


@kernel
def learn_published(
    Z, y, sample_weight, models, scalars, settings, loss, n_outputs, method
):
    """Learn by the paper's methods as published, or by gradient descent."""
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z = Z[i]
        for k in range(n_outputs):
            target = target_of(y[i], k, n_outputs, loss)
            model = models[k]
            own = scalars[k]
            suffer(models, scalars, z, target, weight, k, k + 1, loss, settings)
            a = own[PREDICTION]
            if settings[FLAT] == 1.0 and own[STEPS] == 1.0:
                start_flat(model, z, target, weight, settings)
            elif method == NGVI_EXPLICIT:
                ngvi_explicit(model, z, target, weight, a, loss, own, settings)
            else:
                v = 0.0 if method == OGA else spread_along(model[VARIANCE], z)
                da, dv = expected_gradients(loss, target, a, v)
                da, dv = weight * da, weight * dv if method != OGA else 0.0
                rate = step_size(squared_norm(model, z, da, dv), own, settings)
                if method == SVA:
                    sva(model, z, da, dv, rate, settings)
                elif method == SVB:
                    svb(model, z, da, dv, rate, settings)
                else:
                    gradient_descent(model, z, da, dv, rate)
            project(model, settings)
