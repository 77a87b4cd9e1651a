"""Joint posterior of all linear coefficients of an expert, in the kernels of labels.

Its coefficients are those of the features, measured from the first row, and of an
intercept; each class has a score with coefficients of its own, and two classes have one
score, that of the second class. Their joint covariance is full. The state is that of
`online_state`; `posterior` is an entry of `covariances`, of shape (N_ROWS_BEFORE +
size, size), `size` the number of coefficients of all scores.

The probability of a class, averaged over scores f ~ N(a, V), is approximated by

    p_k(a, V) ~ 1 / sum_j exp((a_j - a_k) / s_jk),  s_jk^2 = 1 + pi var(f_j - f_k) / 8,

the right-hand sides divided by their sum. The derivative of p in a is the Laplacian
L of the graph with the weights p_j p_k / s_jk, up to terms that vanish for two classes
and for V = 0. A step of strength b solves, for the new moments a' and V',

    a' = a + b V (e_y - p(a', V')),  V'^-1 = V^-1 + b L(a', V'):

the Gaussian with the least expected loss of the row, times b, plus the divergence from
the previous posterior, for the loss whose expectation has these derivatives.
"""

import math

import numpy as np

from . import kernel, part
from .online_state import (
    CENTER_OF,
    CENTERS,
    MEAN,
    MEANS,
    N_ROWS_BEFORE,
    PRIOR_SCALE,
    SCATTER_OF,
    SCATTERS,
    SEEN,
    SMALLEST,
    STEPS,
    UNITS,
    VARIANCE,
    WEIGHT,
)

# Scratch, a tuple: vectors and matrices for the scores, the gains, (n_scores, size), by
# which the coefficients change with each score, and a row from the origin.
N_VECTORS, N_MATRICES = 4, 5
SCORES, SHIFT, AFTER, CHANCES = range(N_VECTORS)
SPREAD, CHANGED, CURVATURE, MIXED, SOLVED = range(N_MATRICES)

EPSILON = 2.0**-52
# Factor of the mean square of a column from which the prior follows it, and the least
# in one row, as a precision that is nearly the whole cannot be subtracted.
CHANGE, SLOWEST = 1.2, 0.5
MOST_STEPS, UNDAMPED_STEPS = 100, 20
PRECISION = 1e-6  # of the slopes of the loss, and of the variances


@part
def workspace(n_scores, n_own):
    """Return scratch; see above."""
    return (
        np.empty((N_VECTORS, n_scores)),
        np.empty((N_MATRICES, n_scores, n_scores)),
        np.empty((n_scores, n_scores * n_own)),
        np.empty(n_own),
    )


@part
def start_at(X, sample_weight, origin, numbers, follows):
    """Make the first row of a stream the origin, where the prior follows the rows."""
    if follows and numbers[0, STEPS] == 0.0:
        for i in range(X.shape[0]):
            if sample_weight.shape[0] == 0 or sample_weight[i] > 0.0:
                for j in range(origin.shape[0]):
                    origin[j] = X[i, j]
                break


@part
def _spread(covariance, j, k):
    """Return s_jk of the module's docstring."""
    apart = covariance[j, j] + covariance[k, k] - 2.0 * covariance[j, k]
    return math.sqrt(1.0 + math.pi / 8.0 * (apart if apart > 0.0 else 0.0))


@kernel
def average_softmax(scores, covariance, probabilities):
    """Write p(a, V) of the module's docstring: the softmax averaged over N(a, V)."""
    probabilities[:] = 1.0
    for k in range(scores.shape[0]):
        for j in range(k):
            shift = (scores[j] - scores[k]) / _spread(covariance, j, k)
            shift = shift if shift < 300.0 else 300.0
            ratio = math.exp(shift if shift > -300.0 else -300.0)
            probabilities[k] += ratio
            probabilities[j] += 1.0 / ratio
    total = 0.0
    for k in range(scores.shape[0]):
        probabilities[k] = 1.0 / probabilities[k]
        total += probabilities[k]
    for k in range(scores.shape[0]):
        probabilities[k] /= total


@kernel
def _solve(A, B):
    """Solve A X = B by elimination with pivots; B receives X, A is overwritten."""
    n = A.shape[0]
    for c in range(n):
        pivot = c
        for i in range(c + 1, n):
            pivot = i if abs(A[i, c]) > abs(A[pivot, c]) else pivot
        for j in range(n):
            A[c, j], A[pivot, j] = A[pivot, j], A[c, j]
            B[c, j], B[pivot, j] = B[pivot, j], B[c, j]
        for i in range(c + 1, n):
            factor = A[i, c] / A[c, c]
            for j in range(c, n):
                A[i, j] -= factor * A[c, j]
            for j in range(n):
                B[i, j] -= factor * B[c, j]
    for i in range(n - 1, -1, -1):
        for j in range(n):
            total = B[i, j]
            for c in range(i + 1, n):
                total -= A[i, c] * B[c, j]
            B[i, j] = total / A[i, i]


@kernel
def _subtract(covariance, gains, n_gains, sign, slack):
    """Subtract sign times gains' gains, where the first `n_gains` of the gains count.

    The result is symmetric to the last bit. slack : a share of the diagonal that is
    added to it; where it is at least the error of a row, relative to the deviations of
    the coefficients, times their number, the covariance stays positive.
    """
    size = covariance.shape[0]
    for i in range(size):
        row, kept = covariance[i], covariance[i, i]
        for k in range(n_gains):
            own = sign * gains[k, i]
            for j in range(size):
                row[j] -= own * gains[k, j]
        row[i] += slack * kept


@kernel
def _factor(matrix):
    """Replace a matrix, of which the lower triangle counts, by its Cholesky factor.

    A column is 0 where the matrix is singular.
    """
    n = matrix.shape[0]
    for k in range(n):
        pivot = matrix[k, k]
        root = math.sqrt(pivot) if pivot > 0.0 else 0.0
        for i in range(k, n):
            matrix[i, k] = matrix[i, k] / root if root > 0.0 else 0.0
        for j in range(k):
            matrix[j, k] = 0.0
        for j in range(k + 1, n):
            for i in range(j, n):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]


@kernel
def _transform(rows, B, C):
    """Replace the rows by C^-1 B' rows; B and C are lower triangular."""
    n, size = rows.shape
    for k in range(n):
        for i in range(size):
            rows[k, i] *= B[k, k]
        for j in range(k + 1, n):
            for i in range(size):
                rows[k, i] += B[j, k] * rows[j, i]
    for k in range(n):
        for j in range(k):
            for i in range(size):
                rows[k, i] -= C[k, j] * rows[j, i]
        for i in range(size):
            rows[k, i] /= C[k, k]


@kernel
def _change_prior(posterior, k, change, gains):
    """Add `change`, which may be negative, to the precision of coefficient k."""
    mean, covariance = posterior[MEANS], posterior[N_ROWS_BEFORE:]
    size = covariance.shape[0]
    share = 1.0 / (1.0 + change * covariance[k, k])
    sign, root = math.copysign(1.0, change), math.sqrt(abs(change) * share)
    shift, new_mean = change * share * mean[k], share * mean[k]
    for i in range(size):
        mean[i] -= shift * covariance[k, i]
        gains[0, i] = root * covariance[k, i]
    _subtract(covariance, gains, 1, sign, 4.0 * EPSILON * size)
    mean[k] = new_mean  # and its covariances, without the rounding of a difference
    for i in range(size):
        covariance[i, k] = covariance[k, i] = share / root * gains[0, i]


@kernel
def _follow_columns(posterior, x, origin, weight, before, scale, gains):
    """Update the mean squares of the columns, the units of the prior, by row x.

    The precision of a coefficient is the mean square of its column over scale^2. Where
    the mean square has changed by a factor of CHANGE, so does the prior, which a row of
    large weight reduces by SLOWEST at most; a column that begins to vary gets its
    prior, and is without variance until then.
    gains : its first row is scratch, of `size` numbers or more.
    before : the weight of the rows before. Returns whether the prior has changed.
    """
    covariance = posterior[N_ROWS_BEFORE:]
    unit, center, scatter = posterior[UNITS], posterior[CENTERS], posterior[SCATTERS]
    n_own, size = 1 + origin.shape[0], covariance.shape[0]
    total, changes = before + weight, False
    for j in range(1, n_own):
        value = x[j - 1] - origin[j - 1]
        apart = value - center[j]
        center[j] += weight / total * apart
        scatter[j] += weight * apart * (value - center[j])
        square, least = scatter[j] / total, SLOWEST * unit[j]
        square = least if least > square else square
        if not square > SMALLEST or CHANGE * square > unit[j] > square / CHANGE:
            continue
        changes, change = True, (square - unit[j]) / (scale * scale)
        for k in range(j, size, n_own):
            if unit[j] == 0.0:
                covariance[k, k] = 1.0 / change
            else:
                _change_prior(posterior, k, change, gains)
        unit[j] = square
    return changes


@kernel
def joint_moments(posterior, x, origin, work):
    """Write a row from the origin, and mean, covariance and gains of its scores.

    They are SCORES, SPREAD and the gains of `work`.
    """
    vectors, matrices, gains, z = work
    mean, covariance = posterior[MEANS], posterior[N_ROWS_BEFORE:]
    n_own, size, spread = z.shape[0], covariance.shape[0], matrices[SPREAD]
    z[0] = 1.0
    for j in range(1, n_own):
        # without a prior, it has never varied
        z[j] = x[j - 1] - origin[j - 1] if posterior[UNITS, j] > 0.0 else 0.0
    for k in range(size // n_own):
        gain, first = gains[k], k * n_own
        for i in range(size):
            gain[i] = 0.0
        score = 0.0
        for j in range(n_own):
            score += mean[first + j] * z[j]
            for i in range(size):
                gain[i] += z[j] * covariance[first + j, i]
        vectors[SCORES, k] = score
        for i in range(k + 1):
            along = 0.0
            for j in range(n_own):
                along += gain[i * n_own + j] * z[j]
            spread[k, i] = spread[i, k] = along
        spread[k, k] = max(spread[k, k], 0.0)


@kernel
def _steepen(p, covariance, strength, curvature):
    """Write the strength times the Laplacian L of the module's docstring."""
    for k in range(p.shape[0]):
        curvature[k, k] = 0.0
    for k in range(p.shape[0]):
        for j in range(k):
            weight = strength * p[j] * p[k] / _spread(covariance, j, k)
            curvature[j, k] = curvature[k, j] = -weight
            curvature[j, j] += weight
            curvature[k, k] += weight


@part
def _copy(matrix, result):
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            result[i, j] = matrix[i, j]


@kernel
def _plus_identity(A, B, result):
    """Write I + A B."""
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            total = 1.0 if i == j else 0.0
            for k in range(A.shape[0]):
                total += A[i, k] * B[k, j]
            result[i, j] = total


@kernel
def solve_step(label, strength, rounding, work):
    """Find the new moments of several scores; see the module's docstring.

    Writes b (e_y - p), by which the mean shifts along the gains, to SHIFT, a factor B
    of b L = B B' to CURVATURE, and one C of I + B' V B = C C' to MIXED: the covariance
    is reduced by the squares of C^-1 B' times the gains.
    Newton's method for the shift, with the variances of the step before. With wide
    priors these go to and fro, so that later steps are shorter and shorter.
    """
    vectors, matrices, _, _ = work
    scores, shift = vectors[SCORES], vectors[SHIFT]
    after, p = vectors[AFTER], vectors[CHANCES]
    V, changed, curvature = matrices[SPREAD], matrices[CHANGED], matrices[CURVATURE]
    mixed, solved = matrices[MIXED], matrices[SOLVED]
    n_scores, tolerance = scores.shape[0], PRECISION * strength
    _copy(V, changed)
    shift[:] = 0.0
    for step in range(MOST_STEPS):
        for k in range(n_scores):
            after[k] = scores[k]
            for j in range(n_scores):
                after[k] += V[k, j] * shift[j]
        average_softmax(after, changed, p)
        _steepen(p, changed, strength, curvature)
        _plus_identity(V, curvature, mixed)
        _copy(V, solved)
        _solve(mixed, solved)
        change = largest = 0.0
        for k in range(n_scores):
            change = max(change, abs(solved[k, k] - changed[k, k]))
            largest = max(largest, solved[k, k])
        # (I + b L V)^-1 is I - b L V', and V' is in `solved`
        error, share = 0.0, min(1.0, UNDAMPED_STEPS / (1.0 + step))
        for k in range(n_scores):
            own = strength * ((1.0 if k == label else 0.0) - p[k]) - shift[k]
            error = max(error, abs(own))
            after[k] = own
        for k in range(n_scores):
            own = 0.0
            for j in range(n_scores):
                own += solved[k, j] * after[j]
            mixed[0, k] = own
        for k in range(n_scores):
            own = after[k]
            for j in range(n_scores):
                own -= curvature[k, j] * mixed[0, j]
            shift[k] += share * own
        for k in range(n_scores):
            for j in range(n_scores):
                changed[k, j] += share * (solved[k, j] - changed[k, j])
        if error <= tolerance and change <= PRECISION * largest:
            break
    _factor(curvature)
    for k in range(n_scores):
        V[k, k] += rounding
    for i in range(n_scores):
        for k in range(n_scores):
            total = 0.0
            for j in range(n_scores):
                total += V[i, j] * curvature[j, k]
            solved[i, k] = total
    for i in range(n_scores):
        for k in range(i + 1):
            total = 1.0 if i == k else 0.0
            for j in range(n_scores):
                total += curvature[j, i] * solved[j, k]
            mixed[i, k] = total
    _factor(mixed)


@kernel
def single_moments(posterior, x, origin, z, gains):
    """As `joint_moments`, for the one score of two classes; return mean and variance.

    z : (size,), receives the row from the origin; gains : its first row receives the
    gains, and may be longer than they are.
    """
    mean, covariance, gain = posterior[MEANS], posterior[N_ROWS_BEFORE:], gains[0]
    score = along = 0.0
    z[0] = 1.0
    for j in range(1, z.shape[0]):
        # without a prior, it has never varied
        z[j] = x[j - 1] - origin[j - 1] if posterior[UNITS, j] > 0.0 else 0.0
    for i in range(z.shape[0]):
        gain[i] = 0.0
    for j in range(z.shape[0]):
        score += mean[j] * z[j]
        for i in range(z.shape[0]):
            gain[i] += z[j] * covariance[j, i]
    for j in range(z.shape[0]):
        along += gain[j] * z[j]
    return score, (0.0 if along < 0.0 else along)


@part
def single_rounding_of(posterior, z):
    """As `rounding_of`, for the one score of two classes."""
    size, total = z.shape[0], 0.0
    for j in range(size):
        total += z[j] * posterior[N_ROWS_BEFORE + j, j] * z[j]
    return EPSILON * size * size * (total if total > 0.0 else 0.0)


@part
def solve_single(label, strength, rounding, a, v):
    """As `solve_step`, for the one score of two classes; label : -1 or 1.

    a, v : its mean and variance. Returns the shift and the factors B and C.
    """
    changed, shift, curvature = v, 0.0, 0.0
    for step in range(MOST_STEPS):
        spread = math.sqrt(1.0 + math.pi / 8.0 * changed)
        margin = label * (a + v * shift) / spread
        p = 1.0 / (1.0 + math.exp(margin if margin < 300.0 else 300.0))
        curvature = strength * p * (1.0 - p) / spread
        share = UNDAMPED_STEPS / (1.0 + step)
        share = share if share < 1.0 else 1.0
        error = strength * label * p - shift
        shift += share * error / (1.0 + curvature * v)
        change = v / (1.0 + curvature * v) - changed
        changed += share * change
        if abs(error) <= PRECISION * strength and abs(change) <= PRECISION * changed:
            break
    return shift, math.sqrt(curvature), math.sqrt(1.0 + curvature * (v + rounding))


@part
def move_single(posterior, gains, shift, B, C, rounding):
    """As `move`, for the one score of two classes; see `solve_single`."""
    size = posterior.shape[1]
    for i in range(size):
        posterior[MEANS, i] += shift * gains[0, i]
        gains[0, i] = gains[0, i] * B / C
    scaled = B / C
    errors = math.sqrt(rounding / (EPSILON * size) * (scaled * scaled))
    slack = EPSILON * size * (4.0 + 2.0 * errors)
    _subtract(posterior[N_ROWS_BEFORE:], gains, 1, 1.0, slack)


@part
def meet_columns(x, weight, origin, posterior, numbers, work):
    """Let the prior follow the columns of a row, and write the moments of its scores.

    numbers : those of the expert's first score, before they count the row.
    """
    before, scale = numbers[WEIGHT], numbers[PRIOR_SCALE]
    if _follow_columns(posterior, x, origin, weight, before, scale, work[2]):
        joint_moments(posterior, x, origin, work)


@kernel
def rounding_of(posterior, work):
    """Return a bound on the error of the variances of the scores.

    A variance is a sum of terms of at most the squared sum of |z_j| times deviations.
    """
    z, n_own, size = work[3], work[3].shape[0], work[2].shape[1]
    largest = 0.0
    for first in range(0, size, n_own):
        total = 0.0
        for j in range(n_own):
            k = first + j
            total += z[j] * posterior[N_ROWS_BEFORE + k, k] * z[j]
        largest = max(largest, total)
    return EPSILON * size * n_own * largest


@kernel
def move(posterior, rounding, work):
    """Make the step that was found: move the means, and reduce the covariance.

    rounding : bound on the error of the variances of the scores.
    """
    vectors, matrices, gains, _ = work
    B, C, scaled = matrices[CURVATURE], matrices[MIXED], matrices[SOLVED]
    n_scores, size = gains.shape
    for k in range(n_scores):
        for i in range(size):
            posterior[MEANS, i] += vectors[SHIFT, k] * gains[k, i]
        for j in range(n_scores):
            scaled[k, j] = 1.0 if k == j else 0.0
    _transform(scaled, B, C)
    _transform(gains, B, C)
    total = 0.0
    for k in range(n_scores):
        for j in range(n_scores):
            total += scaled[k, j] * scaled[k, j]
    errors = math.sqrt(rounding / (EPSILON * size) * total)
    slack = EPSILON * size * (4.0 + 2.0 * n_scores * errors)
    _subtract(posterior[N_ROWS_BEFORE:], gains, n_scores, 1.0, slack)


@kernel
def tell_marginals(posterior, origin, moments, e, models, stream):
    """Write means and variances of expert e to its models, in units of the moments.

    Before the first row of positive weight the units are 0.
    """
    covariance, n_own = posterior[N_ROWS_BEFORE:], 1 + origin.shape[0]
    n_scores = covariance.shape[0] // n_own
    n_experts = models.shape[0] // n_scores
    for k in range(n_scores):
        model, first = models[k * n_experts + e], k * n_own
        model[MEAN, 0] = posterior[MEANS, first]
        model[VARIANCE, 0] = covariance[first, first]  # of the score of the first row
        for j in range(origin.shape[0]):
            mean, center, unit = posterior[MEANS, first + 1 + j], 0.0, 1.0
            if moments.shape[1] > 0:
                center = moments[CENTER_OF, j]
                seen = stream[SEEN] if stream[SEEN] > 0.0 else 1.0
                unit = math.sqrt(moments[SCATTER_OF, j] / seen)
            model[MEAN, 0] += (center - origin[j]) * mean
            model[MEAN, 1 + j] = unit * mean
            own = covariance[first + 1 + j, first + 1 + j]
            model[VARIANCE, 1 + j] = unit * own * unit
