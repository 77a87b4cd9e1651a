"""Running standardisation of the features of a stream."""

import math

from . import kernel

CENTRE, SCATTER, TOTAL = range(3)


@kernel
def standardise(X, y, sample_weight, moments, clip, Z):
    """Write the rows of X to Z, each in units of the rows so far, itself included.

    moments : (3, n_features), the weighted means, the weighted sums of squares about
    them, and the sum of the weights; or (0, n_features) to leave the units alone.
    A column that has not yet varied gives 0; a last step clips to [-clip, clip].
    Where Z has one column more than X its first is set to 1. A row of zero weight
    is passed over. Returns the index of the first row that is not finite, in which
    case nothing has been written, or -1. `sample_weight` may be empty.
    """
    weighted = sample_weight.shape[0] > 0
    for i in range(X.shape[0]):
        bad = y[i] - y[i] != 0.0
        for j in range(X.shape[1]):
            bad |= X[i, j] - X[i, j] != 0.0
        if weighted:
            bad |= not 0.0 <= sample_weight[i] < math.inf
        if bad:
            return i
    start = Z.shape[1] - X.shape[1]
    for i in range(X.shape[0]):
        weight = sample_weight[i] if weighted else 1.0
        if weight == 0.0:
            continue
        if start == 1:
            Z[i, 0] = 1.0
        if moments.shape[0] == 0:
            for j in range(X.shape[1]):
                Z[i, start + j] = min(max(X[i, j], -clip), clip)
            continue
        total = moments[TOTAL, 0] + weight
        moments[TOTAL, 0] = total
        share = weight / total
        for j in range(X.shape[1]):
            before = X[i, j] - moments[CENTRE, j]
            moments[CENTRE, j] += share * before
            after = X[i, j] - moments[CENTRE, j]
            moments[SCATTER, j] += weight * before * after
            spread = moments[SCATTER, j] / total
            z = after / math.sqrt(spread) if spread > 0.0 else 0.0
            Z[i, start + j] = min(max(z, -clip), clip)
    return -1
