"""Running standardization of the features of a stream."""

import math

import numpy as np

from . import kernel, part
from .online_state import CENTER_OF, CLIP, SCATTER_OF, SEEN, START, UNIT_OF

LARGEST = 1e150  # largest value, so that sums of squares do not overflow
LEAST_SPREAD = 1e-140  # least spread, so that variances do not underflow
SMALLEST = 1e-300  # least positive scatter, whose inverse is finite
# Growth of a variance at which its unit is renewed. Ratios of variances of integers are
# never sqrt(5), so that there are no ties.
GROWTH = math.sqrt(5.0)


@kernel
def first_refused(X, y, sample_weight):
    """Return the index of the first row that is not finite or beyond LARGEST, or -1."""
    weighted = sample_weight.shape[0] > 0
    for i in range(X.shape[0]):
        bad = not abs(y[i]) <= LARGEST
        for j in range(X.shape[1]):
            bad |= not abs(X[i, j]) <= LARGEST
        if weighted:
            bad |= not 0.0 <= sample_weight[i] < math.inf
        if bad:
            return i
    return -1


@part
def _take_units(moments, seen, kept):
    """Take new units where variances have grown: see `standardize`."""
    kept[0] = 1.0
    for j in range(moments.shape[1]):
        before, unit = moments[UNIT_OF, j], moments[SCATTER_OF, j] / seen
        grows = moments[SCATTER_OF, j] > SMALLEST and unit > GROWTH * before
        kept[1 + j] = before / unit if grows and before > 0.0 else 1.0
        moments[UNIT_OF, j] = unit if grows else before


@kernel
def standardize(X, sample_weight, moments, origin, n_shifted, stream, Z, kept):
    """Write the rows of X to Z, each in units of the rows so far, itself included.

    The first `n_shifted` features are only clipped in these units, and written in their
    own units from the origin; where there are no moments, no feature is scaled.

    moments, origin, stream : see `online_state`; the moments are updated, and the first
    row becomes the origin. Both may be None, or empty.
    n_shifted : 0 without an origin. A number, so that one function is compiled for all.
    kept : (n_rows, 1 + n_features). Each row receives 0; or, where the variance of a
    feature has grown by GROWTH since its unit was taken, 1, and for each feature the
    square of the unit before over that of the new one. A column that has not yet
    varied, its scatter at most SMALLEST, gives 0; a last step clips to [-clip, clip].
    The columns of X go to those of Z from START on; the one before, if any, is set to
    1, those after them to 0. A row of zero weight is ignored. `sample_weight` may be
    empty.
    """
    d = X.shape[1]
    start, clip = np.int64(stream[START]), stream[CLIP]
    for i in range(X.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        x, z = X[i], Z[i, start : start + d]
        if origin is not None and stream[SEEN] == 0.0:
            for j in range(origin.shape[0]):
                origin[j] = x[j]
        stream[SEEN] += weight
        if kept is not None:
            kept[i, 0] = 0.0
        if start == 1:
            Z[i, 0] = 1.0
        for j in range(start + d, Z.shape[1]):
            Z[i, j] = 0.0
        if moments is None or moments.shape[1] == 0:
            for j in range(d):
                value = x[j] if x[j] < clip else clip
                value = value if value > -clip else -clip
                z[j] = value
            if origin is not None:
                for j in range(n_shifted):
                    z[j] -= origin[j]
        else:
            center, scatter = moments[CENTER_OF], moments[SCATTER_OF]
            share = weight / stream[SEEN]
            root = math.sqrt(stream[SEEN])
            limit, grown = GROWTH * stream[SEEN], False
            for j in range(d):  # written for the processor: no branch, one pass
                before = x[j] - center[j]
                center[j] += share * before
                after = x[j] - center[j]
                spread = scatter[j] + weight * before * after
                scatter[j] = spread
                if kept is not None:
                    highest = limit * moments[UNIT_OF, j]
                    grown |= (spread > highest) & (spread > SMALLEST)
                spread = spread if spread > SMALLEST else math.inf
                scaled = root * after / math.sqrt(spread)
                scaled = scaled if scaled < clip else clip
                z[j] = scaled if scaled > -clip else -clip
            if kept is not None and grown:
                _take_units(moments, stream[SEEN], kept[i])
            if origin is not None:
                for j in range(n_shifted):
                    value, scaled = x[j], z[j]
                    if abs(scaled) == clip:
                        value = center[j] + scaled * math.sqrt(scatter[j]) / root
                    z[j] = value - origin[j]


@part
def _cosine(x):
    """Return the cosine of the root of x, at most (pi / 2) ** 2."""
    value = 1.0 - x * (1.0 / 306.0) * (1.0 - x * (1.0 / 380.0))
    value = 1.0 - x * (1.0 / 182.0) * (1.0 - x * (1.0 / 240.0) * value)
    value = 1.0 - x * (1.0 / 90.0) * (1.0 - x * (1.0 / 132.0) * value)
    value = 1.0 - x * (1.0 / 30.0) * (1.0 - x * (1.0 / 56.0) * value)
    return 1.0 - x * 0.5 * (1.0 - x * (1.0 / 12.0) * value)


@kernel
def add_waves(Z, n_features, waves, stream):
    """Write random Fourier features of the standardized rows after them, in Z.

    sqrt(2 / n) cos(frequencies' z + phases), n of them: their squares sum to about one.
    The cosine is a Taylor series about the nearest multiple of pi, which vectorises,
    unlike a call of the system's cosine. Its error is about 1e-15.
    waves : (n_features + 1, n), the frequencies, then the phases.
    """
    n_waves = waves.shape[1]
    start = np.int64(stream[START])
    scale = math.sqrt(2.0 / n_waves)
    for i in range(Z.shape[0]):
        row = Z[i, start + n_features : start + n_features + n_waves]
        for k in range(n_waves):
            row[k] = waves[n_features, k]
        for j in range(n_features):
            value = Z[i, start + j]
            for k in range(n_waves):
                row[k] += value * waves[j, k]
        for k in range(n_waves):
            turns = np.floor(row[k] * (1.0 / math.pi) + 0.5)
            x = row[k] - turns * math.pi
            sign = 1.0 - 2.0 * (turns - 2.0 * np.floor(0.5 * turns))
            x = min(x * x, 0.25 * math.pi * math.pi)  # if the turns were rounded
            row[k] = scale * sign * _cosine(x)
