"""Running standardisation of the features of a stream."""

import math

from . import kernel

CENTRE, SCATTER, TOTAL = range(3)
LARGEST = 1e150  # of what is learnt: its square, times many rows, is a number
SMALLEST = 1e-300  # of a scatter that is not 0: one over it is a number


@kernel
def standardise(X, y, sample_weight, moments, clip, origin, start, Z):
    """Write the rows of X to Z, each in units of the rows so far, itself included.

    Where `origin` (n_features,) is not None, the row is only clipped in these units,
    and written in its own units from there. What None excludes is not compiled.

    moments : (3, n_features), the weighted means, the weighted sums of squares about
    them, and the sum of the weights; or None to leave the units alone.
    A column that has not yet varied, its scatter at most SMALLEST, gives 0; a last
    step clips to [-clip, clip].
    The columns of X go to those of Z from `start` on; the one before, if any, is set
    to 1, those after them to 0. A row of zero weight is passed over. Returns the index
    of the first row that is not finite or beyond LARGEST, in which case nothing has
    been written, or -1. `sample_weight` may be empty.
    """
    d = X.shape[1]
    weighted = sample_weight.shape[0] > 0
    for i in range(X.shape[0]):
        bad = not abs(y[i]) <= LARGEST
        for j in range(d):
            bad |= not abs(X[i, j]) <= LARGEST
        if weighted:
            bad |= not 0.0 <= sample_weight[i] < math.inf
        if bad:
            return i
    if moments is not None:
        centre, scatter = moments[CENTRE], moments[SCATTER]
    for i in range(X.shape[0]):
        weight = sample_weight[i] if weighted else 1.0
        if weight == 0.0:
            continue
        x, z = X[i], Z[i, start : start + d]
        if start == 1:
            Z[i, 0] = 1.0
        for j in range(start + d, Z.shape[1]):
            Z[i, j] = 0.0
        if moments is None:
            for j in range(d):
                value = x[j] if x[j] < clip else clip
                value = value if value > -clip else -clip
                z[j] = value if origin is None else value - origin[j]
        else:
            moments[TOTAL, 0] += weight
            share = weight / moments[TOTAL, 0]
            root = math.sqrt(moments[TOTAL, 0])
            for j in range(d):  # written for the processor: no branch, one pass
                before = x[j] - centre[j]
                centre[j] += share * before
                after = x[j] - centre[j]
                spread = scatter[j] + weight * before * after
                scatter[j] = spread
                spread = spread if spread > SMALLEST else math.inf
                scaled = root * after / math.sqrt(spread)
                scaled = scaled if scaled < clip else clip
                z[j] = scaled if scaled > -clip else -clip
            if origin is not None:
                for j in range(d):
                    value, scaled = x[j], z[j]
                    if abs(scaled) == clip:
                        value = centre[j] + scaled * math.sqrt(scatter[j]) / root
                    z[j] = value - origin[j]
    return -1
