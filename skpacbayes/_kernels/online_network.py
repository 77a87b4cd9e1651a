"""Online variational inference for networks of one hidden ReLU layer.

f(z) = c + sum_k w_k relu(sum_j W_kj z_j), z_0 = 1, and all weights independent
Gaussians: the mean and the variance of f(z) are exact, nothing is sampled.

The kernels take the state as these arguments:

moments, stream : as in `online_state`;
hidden : (n_outputs, N_VECTORS, n_hidden, n_inputs), the rows MEAN, ... of W;
output : (n_outputs, N_VECTORS, n_hidden + 1), those of w, then c;
numbers : (n_outputs, N_NUMBERS), counts of each network;
work : scratch, N_MOMENTS vectors of the hidden units, then the standardized rows.

A network of the squared loss learns targets standardized by the earlier targets;
the others learn labels -1 and 1.
"""

import math

import numpy as np

from . import allocating, kernel, part
from .aggregation import LOG, point_loss, target_of
from .online_change import note_standard_error
from .online_losses import expected_gradients, implicit_gradients
from .online_parts import admit, moderate
from .online_state import (
    ADAGRAD,
    CENTER_OF,
    CLIP,
    CONSTANT,
    INVSQRT,
    LOSS_KIND,
    MEAN_BOUND,
    METHOD,
    N_STREAM,
    NGVI,
    OGA,
    OGA_EL,
    RATE,
    RATE_KIND,
    SCALE_BOUND,
    SCATTER_OF,
    SEEN,
    SMALLEST,
    START,
    SVA,
    SVB,
)
from .order import NotedOrder, order_shape
from .standardize import LARGEST, standardize
from .state import KernelState, named

N_VECTORS = 4
MEAN, VARIANCE, GRADIENT_MEAN, GRADIENT_SCALE = range(N_VECTORS)
# Of NGVI, which has no sums of gradients: the first unit's are a decaying sum of the
# rows times their errors (see `online_change`).
SCORES = GRADIENT_MEAN
N_NUMBERS = 16
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LOSS,  # cumulative loss of the predictions, in squared units of y
    SQUARES,  # sum of the squared norms of the gradients
    TARGET_MEAN,
    TARGET_SCATTER,
    RESIDUALS,  # weighted sum of the scaled squared residuals
    COUNT,  # sum of the weights behind RESIDUALS
    PRIOR_SCALE,
    FORGETTING,
    PRODUCTS,  # see `online_change`, to SQUARED_ERRORS
    _,
    _,
    SQUARED_ERRORS,
    LATE_RESIDUALS,  # as RESIDUALS, a row in proportion to the weight up to it
    LATE_COUNT,
) = range(N_NUMBERS)
N_MOMENTS = 4
FIRST, SECOND, ACTIVE, DENSITY = range(N_MOMENTS)


class NetworkState(NotedOrder, KernelState):
    """State of the networks of a stream; its properties are views of the arrays."""

    def __init__(self, n_features, n_hidden, n_outputs=1, *, scales, n_labels=0):
        super().__init__(
            (2, n_features if scales else 0),
            (n_outputs, N_VECTORS, n_hidden, n_features + 1),
            (n_outputs, N_VECTORS, n_hidden + 1),
            (n_outputs, N_NUMBERS),
            (N_STREAM + order_shape(n_features, n_labels)[0],),
        )
        self.stream[START] = 1.0

    def _shape_of_work(self, n_rows):
        """Return the shape of `work`: moments of the hidden units, then the rows."""
        return N_MOMENTS + n_rows, max(self.hidden.shape[2:])

    def _name_arrays(self):
        self.moments, self.hidden, self.output, self.numbers, self.stream = self.arrays
        self.order = self.stream[N_STREAM:]
        self.n_features = self.hidden.shape[3] - 1
        self.arguments = self.arrays

    clip = named("stream", CLIP)
    loss_kind = named("stream", LOSS_KIND)
    method = named("stream", METHOD)
    rate_kind = named("stream", RATE_KIND)
    learning_rate = named("stream", RATE)
    mean_bound = named("stream", MEAN_BOUND)
    scale_bound = named("stream", SCALE_BOUND)
    residuals = named("numbers", RESIDUALS)
    counts = named("numbers", COUNT)
    late = named("numbers", slice(LATE_RESIDUALS, LATE_COUNT + 1))
    prior_scales = named("numbers", PRIOR_SCALE)
    forgetting = named("numbers", FORGETTING)
    target_mean = named("numbers", TARGET_MEAN)
    foretold = named("numbers", slice(PRODUCTS, SQUARED_ERRORS + 1))

    @property
    def total_weight(self):
        """Sum of the weights of the rows."""
        return self.numbers[0, WEIGHT]

    @property
    def n_steps(self):
        """Rows of positive weight."""
        return int(self.numbers[0, STEPS])

    @property
    def cumulative_loss(self):
        """Sum of the losses of the predictions."""
        return float(self.numbers[:, LOSS].sum())

    @property
    def noise(self):
        """Estimate of the variance of the noise, in units of standardized targets."""
        return float(self.numbers[0, LATE_RESIDUALS] / self.numbers[0, LATE_COUNT])

    @property
    def target_unit(self):
        """Standard deviation of the targets so far; infinite before the first."""
        numbers = self.numbers[0]
        if numbers[WEIGHT] == 0.0:
            return math.inf
        return math.sqrt(numbers[TARGET_SCATTER] / numbers[WEIGHT])

    def set_normal(self, rng, hidden_scale, output_scale):
        """Draw the means from independent normals, whose variances become the prior's.

        hidden_scale, output_scale : standard deviations of a hidden unit's weights and
        of an output's; the output's intercept begins at 0, with variance 1.
        """
        for hidden, output in zip(self.hidden, self.output, strict=True):
            hidden[MEAN] = hidden_scale * rng.normal(size=hidden.shape[1:])
            output[MEAN, :-1] = output_scale * rng.normal(size=output.shape[1] - 1)
        self.set_variances(hidden_scale**2, output_scale**2, 1.0)

    def set_variances(self, hidden, output, intercept):
        """Set the variances of the hidden weights, the output's and its intercept."""
        self.hidden[:, VARIANCE] = hidden
        self.output[:, VARIANCE] = output
        self.output[:, VARIANCE, -1] = intercept


@kernel
def _propagate(z, hidden, output, moments, certain):
    """Return mean and variance of f(z); write moments of the hidden units.

    moments : (N_MOMENTS, n_hidden), E relu, E relu^2, the probability that the unit is
    active, and the derivative of E relu in its variance. `certain` sets the variances
    to 0.
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
def _variance_along(z, hidden, output, moments):
    """Return the variance of f(z), linearised at the means."""
    n_hidden, n_inputs = hidden.shape[1:]
    along = output[VARIANCE, n_hidden]
    for k in range(n_hidden):
        first = moments[FIRST, k]
        along += output[VARIANCE, k] * (first * first)
        slope = output[MEAN, k] * moments[ACTIVE, k]
        var = 0.0
        for j in range(n_inputs):
            var += hidden[VARIANCE, k, j] * z[j] * z[j]
        along += slope * slope * var
    return along


@kernel
def _natural_step(z, hidden, output, moments, shift, strength, numbers):
    """Learn by implicit NGVI: the loss exact along the network's slope at the means.

    First, the precisions lose the share FORGETTING of their excess over those of the
    prior. The means do not return to those of the prior: 0 would switch the units off.

    shift : minus the implicit slope of the loss in f, times the inverse temperature;
    strength : twice its slope in the variance of f, times the inverse temperature.
    The loss is quadratic in the means except for the curvature of the hidden units. Of
    its second derivatives the positive (Gauss-Newton) part is kept.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    rate = numbers[FORGETTING]
    square = numbers[PRIOR_SCALE] * numbers[PRIOR_SCALE]
    keep, share = 1.0 - rate, rate / (square if square > SMALLEST else SMALLEST)
    for k in range(n_hidden):
        w, spread = output[MEAN, k], output[VARIANCE, k]
        first, second = moments[FIRST, k], moments[SECOND, k]
        slope = w * moments[ACTIVE, k]
        # the slope of Vf in the mean of the unit, and the curvature in its input
        uncertainty = first * (w * w * (1.0 - moments[ACTIVE, k]) + spread)
        curve = strength * (w * w + spread) * moments[ACTIVE, k]
        for j in range(n_inputs):
            gain = hidden[VARIANCE, k, j] * z[j]
            kept = keep + n_inputs * share * hidden[VARIANCE, k, j]
            after = hidden[VARIANCE, k, j] / (kept + curve * gain * z[j])
            hidden[MEAN, k, j] += shift * slope * gain
            hidden[MEAN, k, j] -= strength * uncertainty * after * z[j]
            hidden[VARIANCE, k, j] = after
        kept = keep + n_hidden * share * spread
        after = spread / (kept + strength * spread * second)
        output[MEAN, k] += shift * first * spread
        output[MEAN, k] -= strength * w * (second - first * first) * after
        output[VARIANCE, k] = after
    spread = output[VARIANCE, n_hidden]
    kept = keep + rate * spread  # the prior of the intercept has variance 1
    output[MEAN, n_hidden] += shift * spread
    output[VARIANCE, n_hidden] = spread / (kept + strength * spread)


@part
def _gradients(
    z, hidden, output, moments, certain, residual, hidden_slopes, output_slopes
):
    """Write gradients of the expected loss; return their squared norm.

    The norm is that in (m, sigma). Arrays of shapes (2, n_hidden, n_inputs) and
    (2, n_hidden + 1), in means then in variances. `certain` sets the variances to 0:
    the loss at the means, whose gradient in the variances is not wanted.
    """
    n_hidden, n_inputs = hidden.shape[1:]
    counts = 0.0 if certain else 1.0
    squares = 0.0
    for k in range(n_hidden):
        w, spread = output[MEAN, k], counts * output[VARIANCE, k]
        first, second = moments[FIRST, k], moments[SECOND, k]
        active, density = moments[ACTIVE, k], moments[DENSITY, k]
        both = w * w + spread
        pull = residual * w + w * w * first
        in_mean = 2.0 * (both * first - pull * active)
        in_variance = both * active - 2.0 * pull * density
        for j in range(n_inputs):
            slope = in_mean * z[j]
            curve = counts * in_variance * z[j] * z[j]
            hidden_slopes[0, k, j] = slope
            hidden_slopes[1, k, j] = curve
            squares += slope * slope + 4.0 * hidden[VARIANCE, k, j] * curve * curve
        slope = 2.0 * (w * (second - first * first) - residual * first)
        output_slopes[0, k] = slope
        output_slopes[1, k] = second
        squares += slope * slope + 4.0 * spread * second * second
    output_slopes[0, n_hidden] = -2.0 * residual
    output_slopes[1, n_hidden] = 1.0
    squares += 4.0 * residual * residual
    return squares + 4.0 * counts * output[VARIANCE, n_hidden]


@kernel
def _descend(state, slopes, weight, rate, scale, stream):
    """Make a step of SVA, SVB, OGA or OGA-EL on flat parameters, then project.

    state : (N_VECTORS, n), the rows MEAN, ...; slopes : (2, n); scale : of the prior.
    """
    method, kind = np.int64(stream[METHOD]), np.int64(stream[RATE_KIND])
    mean_bound, scale_bound = stream[MEAN_BOUND], stream[SCALE_BOUND]
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
def _step_size(squares, numbers, stream):
    """Add a gradient to the sum of squares; return the step size."""
    numbers[SQUARES] += squares
    if stream[RATE_KIND] == CONSTANT:
        return stream[RATE]
    if stream[RATE_KIND] == INVSQRT:
        return 1.0 / math.sqrt(numbers[STEPS])
    if numbers[SQUARES] == 0.0:
        return 0.0
    return numbers[PRIOR_SCALE] / math.sqrt(numbers[SQUARES])


@part
def _observe_target(y, weight, numbers):
    """Count a target in the running moments; return it standardised.

    Equal targets do not determine the unit. At the first different target it becomes
    half the distance to that target, as after a single row. After many equal targets it
    would otherwise be almost 0, and the weights too large when it then grows.
    """
    same = numbers[WEIGHT] if numbers[TARGET_SCATTER] <= SMALLEST else 0.0
    numbers[WEIGHT] += weight
    before = y - numbers[TARGET_MEAN]
    numbers[TARGET_MEAN] += weight / numbers[WEIGHT] * before
    after = y - numbers[TARGET_MEAN]
    numbers[TARGET_SCATTER] += weight * before * after
    if same > weight:
        numbers[TARGET_SCATTER] = 0.25 * numbers[WEIGHT] * before * before
    if numbers[TARGET_SCATTER] <= SMALLEST:
        return 0.0
    return after / math.sqrt(numbers[TARGET_SCATTER] / numbers[WEIGHT])


@part
def _meet_target(y, a, weight, numbers):
    """Count the row and its loss; return the prediction, and the standardised target.

    a : the prediction in the unit of the targets before, which is 0 before the first.
    """
    unit = 0.0
    if numbers[STEPS] > 0.0:
        unit = math.sqrt(numbers[TARGET_SCATTER] / numbers[WEIGHT])
    prediction = numbers[TARGET_MEAN] + unit * a
    numbers[STEPS] += 1.0
    error = y - numbers[TARGET_MEAN] - unit * a
    numbers[LOSS] += weight * (error * error)
    return prediction, _observe_target(y, weight, numbers)


@part
def _learn_by_gradient(z, target, weight, hidden, output, moments, numbers, stream):
    """Learn a standardized target by SVA, SVB, OGA or OGA-EL."""
    n_hidden, n_inputs = hidden.shape[1:]
    hidden_slopes = np.zeros((2, n_hidden, n_inputs))
    output_slopes = np.zeros((2, n_hidden + 1))
    certain = stream[METHOD] == OGA
    a, _ = _propagate(z, hidden, output, moments, certain)
    residual = target - a
    squares = _gradients(
        z, hidden, output, moments, certain, residual, hidden_slopes, output_slopes
    )
    rate = _step_size(weight * weight * squares, numbers, stream)
    size, scale = n_hidden * n_inputs, numbers[PRIOR_SCALE]
    flat_slopes = hidden_slopes.reshape((2, size))
    _descend(
        hidden.reshape((N_VECTORS, size)), flat_slopes, weight, rate, scale, stream
    )
    _descend(output, output_slopes, weight, rate, scale, stream)


@part
def _learn_number(z, y, weight, hidden, output, moments, numbers, stream):
    """Predict and learn a row by NGVI with the squared loss; return the prediction."""
    a, v = _propagate(z, hidden, output, moments, False)
    prediction, target = _meet_target(y, a, weight, numbers)
    if numbers[TARGET_SCATTER] <= SMALLEST:  # one value so far: the unit is unknown
        return prediction
    residual = target - a
    noise = numbers[RESIDUALS] / numbers[COUNT]
    strength = weight / noise
    if noise > SMALLEST:
        error = residual / math.sqrt(noise / weight + v)
        sums, scores = numbers[PRODUCTS : SQUARED_ERRORS + 1], hidden[SCORES, 0]
        note_standard_error(z, z, 1.0, error, numbers[STEPS], scores, sums)
    along = _variance_along(z, hidden, output, moments)
    shift = strength * residual / (1.0 + strength * along)
    _natural_step(z, hidden, output, moments, shift, strength, numbers)
    keep = 1.0 - numbers[FORGETTING]
    squared = weight * residual * residual / (1.0 + weight * v / noise)
    numbers[RESIDUALS] = keep * numbers[RESIDUALS] + squared
    numbers[COUNT] = keep * numbers[COUNT] + weight
    late = numbers[WEIGHT]
    numbers[LATE_RESIDUALS] = keep * numbers[LATE_RESIDUALS] + late * squared
    numbers[LATE_COUNT] = keep * numbers[LATE_COUNT] + late * weight
    return prediction


@part
def _learn_label(z, label, weight, hidden, output, moments, numbers, stream):
    """Predict and learn a label -1 or 1 by NGVI; return the score."""
    loss = np.int64(stream[LOSS_KIND])
    a, v = _propagate(z, hidden, output, moments, False)
    numbers[WEIGHT] += weight
    numbers[STEPS] += 1.0
    score = moderate(a, v) if loss == LOG else a
    numbers[LOSS] += weight * point_loss(loss, label, score)
    if loss == LOG:
        error = label / (1.0 + math.exp(label * moderate(a, v)))
        sums, scores = numbers[PRODUCTS : SQUARED_ERRORS + 1], hidden[SCORES, 0]
        note_standard_error(z, z, 1.0, error, numbers[STEPS], scores, sums)
    along = _variance_along(z, hidden, output, moments)
    if along > SMALLEST:
        da, _ = implicit_gradients(loss, label, a, along, weight)
        _, dv = expected_gradients(loss, label, a, v)
        strength = 2.0 * weight * dv
        _natural_step(z, hidden, output, moments, -weight * da, strength, numbers)
    return a


@kernel
def learn_numbers(
    X, y, sample_weight, moments, hidden, output, numbers, stream, work, predictions
):
    """Standardize each row; then the network predicts and learns it by NGVI.

    predictions : (1, n_rows), receives the predictions made before the row was learnt:
    expectations of f. Returns whether the rows were learnt. If a row is refused,
    returns False and changes nothing.
    """
    if not admit(X, y, sample_weight, stream):
        return False
    units, Z, n_inputs = work[:N_MOMENTS], work[N_MOMENTS:], hidden.shape[3]
    standardize(X, sample_weight, moments, None, 0, stream, Z, None)
    for i in range(X.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight > 0.0:
            z = Z[i, :n_inputs]
            predictions[0, i] = _learn_number(
                z, y[i], weight, hidden[0], output[0], units, numbers[0], stream
            )
    return True


@allocating
def learn_published(
    X, y, sample_weight, moments, hidden, output, numbers, stream, work, predictions
):
    """As `learn_numbers`, by SVA, SVB, OGA or OGA-EL, which predict f at the means."""
    if not admit(X, y, sample_weight, stream):
        return False
    units, Z, n_inputs = work[:N_MOMENTS], work[N_MOMENTS:], hidden.shape[3]
    standardize(X, sample_weight, moments, None, 0, stream, Z, None)
    for i in range(X.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight > 0.0:
            z, counts = Z[i, :n_inputs], numbers[0]
            a, _ = _propagate(z, hidden[0], output[0], units, True)
            predictions[0, i], target = _meet_target(y[i], a, weight, counts)
            if counts[TARGET_SCATTER] > SMALLEST:  # else the unit is unknown
                _learn_by_gradient(
                    z, target, weight, hidden[0], output[0], units, counts, stream
                )
    return True


@kernel
def learn_labels(
    X, y, sample_weight, moments, hidden, output, numbers, stream, work, predictions
):
    """Standardize each row; then each network predicts and learns it.

    As `learn_numbers`; with several networks, `predictions` are those of the last.
    """
    if not admit(X, y, sample_weight, stream):
        return False
    units, Z, n_inputs = work[:N_MOMENTS], work[N_MOMENTS:], hidden.shape[3]
    standardize(X, sample_weight, moments, None, 0, stream, Z, None)
    for k in range(hidden.shape[0]):
        one = k if hidden.shape[0] > 1 else -1
        for i in range(X.shape[0]):
            weight = sample_weight[i] if sample_weight.shape[0] else 1.0
            if weight > 0.0:
                z, label = Z[i, :n_inputs], target_of(y[i], one)
                predictions[0, i] = _learn_label(
                    z, label, weight, hidden[k], output[k], units, numbers[k], stream
                )
    return True


@allocating
def predict_network(X, moments, hidden, output, numbers, stream, means, variances):
    """Write mean and variance of each f on each row of X, (n_rows, n_outputs).

    A row is standardized by moments that include it, as when it is learnt; but a column
    that has not varied yet is 0, as its effect is not known. Means and variances of the
    squared loss are in units of standardized targets.
    """
    certain = stream[METHOD] != NGVI
    units = np.empty((N_MOMENTS, hidden.shape[2]))
    z = np.ones(hidden.shape[3])
    clip = min(stream[CLIP], LARGEST)
    share = stream[SEEN] / (stream[SEEN] + 1.0)
    root = math.sqrt(stream[SEEN] + 1.0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = X[i, j]
            if moments.shape[1] > 0:
                before, spread = value - moments[CENTER_OF, j], moments[SCATTER_OF, j]
                after = spread + share * before * before
                after = after if spread > SMALLEST else math.inf
                value = root * share * before / math.sqrt(after)
            z[1 + j] = min(max(value, -clip), clip)
        for k in range(hidden.shape[0]):
            means[i, k], variances[i, k] = _propagate(
                z, hidden[k], output[k], units, certain
            )
