"""Parts that the kernels of the online linear models share.

The state is that of `online_state`; `model` is the posterior of one model there, and
`numbers` its counts and settings. Z holds rows in the coordinates of the parameters;
where there is an intercept, it is parameter 0 and the first column of Z is 1.
`sample_weight` may be empty.
"""

import math

import numpy as np

from . import kernel, part
from .aggregation import HIGHEST_TARGET, IN_RANGE, LOWEST_TARGET, weigh
from .online_state import (
    AVERAGE,
    AVERAGING,
    CENTER,
    CENTER_OF,
    CLIP,
    COUNT,
    FORGETTING,
    HIGH,
    LANES,
    LAST_LABEL,
    LOSS,
    LOW,
    MEAN,
    MEAN_BOUND,
    MEMORY_SIZE,
    N_STREAM,
    PANEL,
    PRIOR,
    RESIDUALS,
    SCALE_BOUND,
    SCATTER_OF,
    SEEN,
    SIZE,
    SMALLEST,
    START,
    STEPS,
    TOGETHER,
    VARIANCE,
    WEIGHT,
)
from .order import note_order, remember
from .standardize import add_waves, first_refused, standardize

# Least share of the degrees of freedom that the coefficients leave to the noise, and
# of the squares that are not a penalty; smaller ones are mostly rounding.
LEAST_SHARE, LEAST_SQUARES = 1e-6, 1e-10
# Least degrees of freedom of the noise, and least share of the rows: intervals of fewer
# were needlessly wide.
LEAST_DEGREES, LEAST_OF_ROWS = 1.5, 1.0 / 3.0


@kernel
def admit(X, y, sample_weight, stream):
    """Update the notes on the order of the targets, and the memory of rows.

    Returns whether the rows were admitted. If a row is refused, returns False and
    changes nothing.
    """
    if first_refused(X, y, sample_weight) >= 0:
        return False
    stop = stream.shape[0] - np.int64(stream[MEMORY_SIZE])
    note_order(X, y, sample_weight, stream[N_STREAM:stop])
    if stop < stream.shape[0]:
        remember(X, y, sample_weight, stream[stop:])
    return True


@kernel
def enter(X, y, sample_weight, moments, origin, waves, stream, Z, kept):
    """Write rows to Z, in the coordinates of the parameters: see `standardize`.

    Fourier features are those of standardized rows, also where the features themselves
    are measured from the origin.
    Returns whether the rows were written, as `admit`.
    """
    if not admit(X, y, sample_weight, stream):
        return False
    n_shifted = 0
    if origin is not None and waves is None:
        n_shifted = origin.shape[0]
    standardize(X, sample_weight, moments, origin, n_shifted, stream, Z, kept)
    if waves is not None:
        add_waves(Z, X.shape[1], waves, stream)
        if origin is not None:
            start = np.int64(stream[START])
            for i in range(X.shape[0]):
                for j in range(origin.shape[0]):
                    Z[i, start + j] = X[i, j] - origin[j]
    return True


@kernel
def bring_within(model, z, stream):
    """Return what bringing row z within the range so far takes from its prediction.

    Columns are clipped one by one, which leaves large changes of one column without
    effect on the others. But where columns are nearly dependent and have large opposite
    coefficients, a clipped column changes a difference that has a large effect. With
    TOGETHER, the row is moved towards the centre as a whole if that changes the
    prediction less. Also returns the share of its distance that it keeps, 1 if columns
    are clipped one by one.
    """
    mean, center, low, high = model[MEAN], model[CENTER], model[LOW], model[HIGH]
    clipped = whole = 0.0
    share = 1.0
    for j in range(z.shape[0]):
        end = low[j] if z[j] < low[j] else high[j]
        whole += mean[j] * (z[j] - center[j])
        if z[j] < low[j] or z[j] > high[j]:
            clipped += mean[j] * (z[j] - end)
            kept = (end - center[j]) / (z[j] - center[j])
            share = kept if kept < share else share
    whole *= 1.0 - share
    if stream[TOGETHER] == 1.0 and abs(whole) < abs(clipped):
        return whole, share
    return clipped, 1.0


@kernel
def place(x, moments, origin, waves, model, stream, extrapolates, Z):
    """Write a row to Z[0], in the coordinates of the parameters.

    With a diagonal covariance the units are those after the row, as when it is learnt.
    A full covariance on standardized columns does not extrapolate unless asked to: it
    clips a feature to the range of the rows so far.
    """
    z, start, clip, seen = Z[0], np.int64(stream[START]), stream[CLIP], stream[SEEN]
    if start == 1:
        z[0] = 1.0
    for j in range(x.shape[0]):
        p = start + j
        low, high = -clip, clip
        if moments is not None and moments.shape[1] > 0:
            center, scatter = moments[CENTER_OF, j], moments[SCATTER_OF, j]
            if origin is None or waves is not None or origin.shape[0] == 0:
                share = seen / (seen + 1.0)
                before = x[j] - center
                spread = math.sqrt(scatter + share * before * before)
                spread = spread if spread > math.sqrt(SMALLEST) else math.inf
                value = share * math.sqrt(seen + 1.0) * before / spread
                value = value if value > low else low
                z[p] = value if value < high else high
                continue
            reach = clip * math.sqrt(scatter / seen)
            low, high = center - reach, center + reach
        value = x[j] if x[j] > low else low
        z[p] = value if value < high else high
    if waves is not None:
        add_waves(Z, x.shape[0], waves, stream)
    if origin is not None:
        outside = False
        for j in range(origin.shape[0]):
            p = start + j
            value = (z[p] if waves is None else x[j]) - origin[j]
            # without a prior, it has never varied
            z[p] = 0.0 if model[PRIOR, p] == 0.0 else value
            outside |= (z[p] < model[LOW, p]) | (z[p] > model[HIGH, p])
        if outside and not extrapolates:
            share = bring_within(model, z, stream)[1]
            for j in range(origin.shape[0]):
                p = start + j
                low, high = model[LOW, p], model[HIGH, p]
                value = z[p] + (1.0 - share) * (model[CENTER, p] - z[p])
                value = value if value > low else low
                z[p] = value if value < high else high


@part
def take_units(model, kept, stream):
    """Rescale the earlier evidence where the unit of a feature has grown.

    The evidence is in squares of the feature in the old unit. The means do not
    change: effects of small deviations are not extrapolated to large ones.
    """
    if kept[0] == 1.0:
        start = np.int64(stream[START])
        for j in range(kept.shape[0] - 1):
            share, p = kept[1 + j], start + j
            share += (1.0 - share) * model[PRIOR, p] * model[VARIANCE, p]
            model[VARIANCE, p] /= share


@part
def suffer(model, suffered, weight, numbers, stream):
    """Add the row, and the loss of its prediction, to the counts."""
    numbers[WEIGHT] += weight
    numbers[STEPS] += 1.0
    numbers[LOSS] += weight * suffered
    if stream[AVERAGING] == 1.0:
        for j in range(model.shape[1]):
            model[AVERAGE, j] += weight * model[MEAN, j]


@part
def moderate(a, v):
    """Return the score whose sigmoid approximates the mean sigmoid under N(a, v)."""
    return a / math.sqrt(1.0 + math.pi / 8.0 * v)


@part
def is_to_forget(code, numbers):
    """Return whether to forget at this row; `code` is its label, a nonzero number.

    Where LAST_LABEL is 0, each row forgets. Otherwise only a row forgets whose label
    differs from the previous one, so that a stream sorted by class forgets little.
    """
    if numbers[FORGETTING] == 0.0:
        return False
    last = numbers[LAST_LABEL]
    if last == 0.0:
        return True
    numbers[LAST_LABEL] = code
    return last != code


@part
def forget(model, z, rate):
    """Move the posterior towards the prior; return the prediction and variance."""
    keep = 1.0 - rate
    for j in range(z.shape[0]):
        total = keep + rate * model[PRIOR, j] * model[VARIANCE, j]
        model[MEAN, j] *= keep / total
        model[VARIANCE, j] /= total
    return score_moments(model[MEAN], model[VARIANCE], z)


@part
def project(model, stream):
    """Project means on [-mean_bound, mean_bound], deviations on [0, scale_bound]."""
    bound = stream[MEAN_BOUND]
    highest = stream[SCALE_BOUND] * stream[SCALE_BOUND]
    if bound < math.inf or highest < math.inf:
        for j in range(model.shape[1]):
            mean, variance = model[MEAN, j], model[VARIANCE, j]
            mean = -bound if mean < -bound else mean
            model[MEAN, j] = bound if mean > bound else mean
            model[VARIANCE, j] = highest if variance > highest else variance


@kernel
def inner_product(x, y):
    """Return the inner product, as four partial sums that vectorise."""
    s0 = s1 = s2 = s3 = 0.0
    n = x.shape[0] // LANES * LANES
    for k in range(0, n, LANES):
        s0 += x[k] * y[k]
        s1 += x[k + 1] * y[k + 1]
        s2 += x[k + 2] * y[k + 2]
        s3 += x[k + 3] * y[k + 3]
    for k in range(n, x.shape[0]):
        s0 += x[k] * y[k]
    return (s0 + s1) + (s2 + s3)


@kernel
def score_moments(mean, variance, z):
    """Return mean and variance of <theta, z>, for independent entries of theta.

    Each is four partial sums, which vectorise, as in `inner_product`.
    """
    a0 = a1 = a2 = a3 = v0 = v1 = v2 = v3 = 0.0
    n = z.shape[0] // LANES * LANES
    for k in range(0, n, LANES):
        a0 += mean[k] * z[k]
        a1 += mean[k + 1] * z[k + 1]
        a2 += mean[k + 2] * z[k + 2]
        a3 += mean[k + 3] * z[k + 3]
        v0 += variance[k] * z[k] * z[k]
        v1 += variance[k + 1] * z[k + 1] * z[k + 1]
        v2 += variance[k + 2] * z[k + 2] * z[k + 2]
        v3 += variance[k + 3] * z[k + 3] * z[k + 3]
    for k in range(n, z.shape[0]):
        a0 += mean[k] * z[k]
        v0 += variance[k] * z[k] * z[k]
    return (a0 + a1) + (a2 + a3), (v0 + v1) + (v2 + v3)


@kernel
def scale_row(z, scaled):
    """Write z / size; return size, its largest absolute entry, at least 1.

    The square of that entry may overflow.
    """
    size = 1.0
    for j in range(z.shape[0]):
        size = abs(z[j]) if abs(z[j]) > size else size
    for j in range(z.shape[0]):
        scaled[j] = z[j] / size
    return size


@kernel
def deviation_along(model, covariances, k, scaled, product):
    """Return the standard deviation of <theta, scaled>; `product` is scratch."""
    width = scaled.shape[0]
    if covariances is None:
        square = score_moments(model[MEAN], model[VARIANCE], scaled)[1]
    else:
        for j in range(width):
            product[j] = 0.0
        for p in range(covariances.shape[1]):
            first = PANEL * p
            for j in range(width):
                for c in range(PANEL if width - first > PANEL else width - first):
                    entry = covariances[k, p, PANEL * j + c]
                    product[first + c] += scaled[j] * entry
        square = inner_product(scaled, product)
    return math.sqrt(square if square > 0.0 else 0.0)


@kernel
def noise_of(model, numbers, full):
    """Return the estimated noise of a model, and its degrees of freedom.

    The noise is a variance, or the mean scaled residual of another loss; infinite
    before the first residual. RESIDUALS over COUNT is right only if the coefficients
    are about as large as the prior has them. With a full covariance and nothing
    forgotten, RESIDUALS is the squares of the residuals plus those of the coefficients
    times their precisions. The noise is then the squares of the residuals alone, over
    COUNT less the effective number of coefficients.
    """
    count, total = numbers[COUNT], numbers[RESIDUALS]
    if not count > 0.0:
        return math.inf, 0.0
    if not full or numbers[FORGETTING] > 0.0:
        return total / count, count
    penalty = used = 0.0
    for j in range(np.int64(numbers[SIZE])):
        precision, variance = model[PRIOR, j], model[VARIANCE, j]
        if precision > 0.0 and variance > 0.0:
            penalty += precision * model[MEAN, j] * model[MEAN, j]
            used += 1.0 - precision * variance
    # A row of a small weight also counts as one: it takes at most one coefficient.
    share = 1.0 - used / max(count, numbers[STEPS] - 1.0)
    least = max(LEAST_OF_ROWS * count, min(LEAST_DEGREES, count))
    if not share > LEAST_SHARE:
        return total / count, least
    squares = max(total - penalty, LEAST_SQUARES * total)
    return squares / (share * count), max(share * count, least)


@part
def score_of(z, model, numbers, stream):
    """Return the score of a row by the mean of a model."""
    own = z[: np.int64(numbers[SIZE])]
    if stream[AVERAGING] == 1.0:
        return inner_product(own, model[AVERAGE]) / max(numbers[WEIGHT], SMALLEST)
    return inner_product(own, model[MEAN])


@kernel
def weigh_scores(z, models, numbers, stream, losses, totals, output, shares, scores):
    """Write the score of each expert of an output; return their weighted mean.

    `shares` receives the weights of the experts.
    """
    n_experts = scores.shape[0]
    shares[0] = 1.0
    own = output if totals.shape[0] > 1 else 0
    if losses is not None:
        weigh(losses[own], totals[own], shares)
    mean = 0.0
    for e in range(n_experts):
        k = output * n_experts + e
        score = score_of(z, models[k], numbers[k], stream)
        if losses is not None:
            low, high = totals[own, LOWEST_TARGET], totals[own, HIGHEST_TARGET]
            if totals[own, IN_RANGE] == 1.0 and low <= high:
                score = score if score > low else low
                score = score if score < high else high
        scores[e] = score
        mean += shares[e] * score
    return mean
