"""Online variational inference for labels of several classes: softmax, joint loss.

The scores of a row are f_k ~ N(a_k, v_k), independent, one for each class; the loss of
label y is logsumexp(f) - f_y. Its posterior expectation is replaced by the tilted bound
of Knowles and Minka (2011, section 5.2), which holds for any q and is minimised over q:

    E logsumexp(f) <= sum_k q_k^2 v_k / 2 + logsumexp(a + (1 - 2 q) v / 2).

There q = softmax(a + (1 - 2 q) v / 2), and the bound has the derivatives q_k in a_k and
q_k (1 - q_k) / 2 in v_k.

The state is that of `online_state`; the experts of all outputs are aggregated as one.
"""

import math

import numpy as np

from . import allocating, kernel, part
from .aggregation import RATE, count_losses, pool, weigh, weigh_next
from .online_joint import (
    SCORES,
    SPREAD,
    average_softmax,
    joint_moments,
    meet_columns,
    move,
    rounding_of,
    solve_step,
    start_at,
    tell_marginals,
    workspace,
)
from .online_parts import (
    deviation_along,
    enter,
    forget,
    is_to_forget,
    place,
    project,
    scale_row,
    score_moments,
    score_of,
    suffer,
    take_units,
)
from .online_state import (
    FORGETTING,
    MEAN,
    N_WORK,
    SIZE,
    SMALLEST,
    TEMPERATURE,
    VARIANCE,
)

PRECISION = 1e-13  # to which q sums to one
EPSILON = 2.0**-52
NEGLIGIBLE = 1e-160  # weight of an expert, as no probability is below 1e-140
WIDE = 4.0  # widths from which the faster method may not converge


@part
def _first_omega(z):
    """Return a first value for `_omega`."""
    if z < -1.0:
        omega = math.exp(z)
        return omega / (1.0 + omega)
    if z < 2.0:
        return 0.5 + 0.5 * z + (z - 1.0) * (z - 1.0) / 16.0
    return z - math.log(z) * (1.0 - 1.0 / z)


@part
def _omega(z, omega):
    """Return Wright's function, omega + log(omega) = z, from a value near it.

    Each step is of the fourth order.
    """
    for _ in range(20):
        residual = z - omega - math.log(omega)
        one = 1.0 + omega
        top = 2.0 * one * (one + 2.0 / 3.0 * residual)
        step = residual / one * (top - residual) / (top - 2.0 * residual)
        omega *= 1.0 + step
        if abs(step) <= 1e-4:
            break  # the next step would be of the order of its fourth power
    return omega


@kernel
def _climb(scores, widths, constant, lowest, q, log_widths):
    """Solve the equation of `solve_tilted` for the constant alone, from a first value.

    At a constant, widths_k q_k is omega(scores_k - constant + log(widths_k)). The sum
    of q is convex and falls in the constant: from where the sum is at least one, as at
    `lowest`, Newton's method climbs to the root without a bracket. From elsewhere its
    first step leads to such a value. After a small step q is solved from its last
    value.
    """
    n_classes, step = scores.shape[0], math.inf
    for k in range(n_classes):
        log_widths[k] = math.log(widths[k]) if widths[k] > SMALLEST else -math.inf
    for _ in range(100):
        near = abs(step) < 0.5
        factor = math.exp(-step) if near else 0.0
        excess, slope = -1.0, 0.0
        for k in range(n_classes):
            exponent = scores[k] - constant
            z = exponent + log_widths[k]
            if z < -30.0:  # omega is exp(z), but for a factor 1 - exp(-30)
                q[k] = q[k] * factor if near else math.exp(exponent)
            elif near:
                omega = widths[k] * q[k]
                q[k] = _omega(z, omega - omega * step / (1.0 + omega)) / widths[k]
            else:
                q[k] = _omega(z, _first_omega(z)) / widths[k]
            excess += q[k]
            slope += q[k] / (1.0 + widths[k] * q[k])
        after = constant + excess / slope
        after = after if after > lowest else lowest
        step = after - constant
        if abs(excess) <= PRECISION * n_classes or abs(step) <= EPSILON * abs(after):
            break
        constant = after
    return constant


@kernel
def solve_tilted(scores, widths, start, q, logs, log_widths):
    """Solve log(q_k) + widths_k q_k = scores_k - constant for q of sum one.

    Unless a width is large, Newton's method for the logs and the constant, from those
    of the softmax, converges in two to five steps. Else the constant alone is found.

    start : -inf; or the constant of a similar equation, whose solution is in q and
    logs, and is the first value instead of the softmax. Returns the constant.
    """
    n_classes = scores.shape[0]
    largest, lowest, widest = -math.inf, -math.inf, 0.0
    for k in range(n_classes):
        low = scores[k] - widths[k]
        largest = scores[k] if scores[k] > largest else largest
        lowest = low if low > lowest else lowest
        widest = widths[k] if widths[k] > widest else widest
    if start == -math.inf and widest < WIDE:
        total = 0.0
        for k in range(n_classes):
            q[k] = math.exp(scores[k] - largest)
            total += q[k]
        for k in range(n_classes):
            q[k] /= total
            logs[k] = scores[k] - (largest + math.log(total))
    for _ in range(10 if widest < WIDE else 0):
        top, slope, largest = -1.0, 0.0, 0.0
        for k in range(n_classes):
            excess = scores[k] - logs[k] - widths[k] * q[k]
            own = q[k] / (1.0 + widths[k] * q[k])
            top += q[k] + own * excess
            slope += own
        constant = top / slope
        for k in range(n_classes):
            excess = scores[k] - logs[k] - widths[k] * q[k] - constant
            step = excess / (1.0 + widths[k] * q[k])
            logs[k] += step
            largest = abs(step) if abs(step) > largest else largest
        for k in range(n_classes):
            q[k] = math.exp(logs[k])
        if largest < 1e-6:  # the next step would be of the order of its square
            return constant
    start = start if start > lowest else lowest
    constant = _climb(scores, widths, start, lowest, q, log_widths)
    for k in range(n_classes):
        logs[k] = scores[k] - constant - widths[k] * q[k]
    return constant


@part
def _score(z, models, e, n_experts, scores, variances, spread):
    """Write mean and variance of the score of each class, by expert e.

    spread : receives the variances as a diagonal matrix.
    """
    spread[:] = 0.0
    for k in range(scores.shape[0]):
        model = models[k * n_experts + e]
        scores[k], variances[k] = score_moments(model[MEAN], model[VARIANCE], z)
        spread[k, k] = variances[k]


@part
def _step(z, label, weight, models, numbers, e, n_experts, stream, work):
    """Learn a row with the models of expert e; work : (7, n_classes).

    The step of the means is implicit: q, the bound's derivative, is taken at the new
    scores a_k + s_k (1{k = y} - q_k), with s_k the strength times the variance. So q
    solves the equation of the bound with widths larger by s_k. The curvature is that
    before the step.
    """
    a, v, widths, before = work[0], work[1], work[2], work[3]
    q, logs, log_widths = work[4], work[5], work[6]
    strength = numbers[e, TEMPERATURE] * weight
    for k in range(a.shape[0]):
        m = k * n_experts + e
        if is_to_forget(label + 1.0, numbers[m]):
            a[k], v[k] = forget(models[m], z, numbers[m, FORGETTING])
        widths[k] = v[k]
        a[k] += 0.5 * v[k]
    constant = solve_tilted(a, widths, -math.inf, q, logs, log_widths)
    for k in range(a.shape[0]):
        before[k] = q[k]
        widths[k] += strength * v[k]
        a[k] += strength * v[k] if k == label else 0.0
    solve_tilted(a, widths, constant, q, logs, log_widths)
    for k in range(a.shape[0]):
        model = models[k * n_experts + e]
        shift = strength * ((1.0 if k == label else 0.0) - q[k])
        curve = strength * before[k] * (1.0 - before[k])
        for j in range(z.shape[0]):
            spread = model[VARIANCE, j] * z[j]
            model[MEAN, j] += shift * spread
            model[VARIANCE, j] /= 1.0 + curve * spread * z[j]
        project(model, stream)


@allocating
def learn_softmax(
    X,
    y,
    sample_weight,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    work,
    predictions,
):
    """Learn by implicit NGVI on the softmax loss: see `learn_natural`.

    y : numbers of classes. The first output counts the loss of an expert; nothing is
    written to `predictions`, (n_experts, n_rows).
    """
    kept, Z = work[N_WORK:, : 1 + X.shape[1]], work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, None, waves, stream, Z, kept):
        return False
    n_experts, n_joint = predictions.shape[0], 0
    n_classes = models.shape[0] // n_experts
    vectors, spread = np.empty((7, n_classes)), np.empty((n_classes, n_classes))
    own, shares = np.empty(n_experts), np.ones(n_experts)
    follows = moments.shape[1] > 0
    if covariances is not None:
        n_joint = covariances.shape[0]
        joint_work = workspace(n_classes, 1 + origin.shape[0])
        start_at(X, sample_weight, origin, numbers, follows)
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        label = np.int64(y[i])
        for m in range(models.shape[0]):
            if m % n_experts >= n_joint:
                take_units(models[m], kept[i], stream)
        if losses is not None:
            weigh_next(losses[0], totals[0], shares)
        for e in range(n_experts):
            z = Z[i, : np.int64(numbers[e, SIZE])]
            if covariances is not None and e < n_joint:
                posterior = covariances[e]
                joint_moments(posterior, X[i], origin, joint_work)
                scores, spreads = joint_work[0][SCORES], joint_work[1][SPREAD]
                average_softmax(scores, spreads, vectors[2])
                if follows:
                    counts = numbers[e]
                    meet_columns(X[i], weight, origin, posterior, counts, joint_work)
            else:
                _score(z, models, e, n_experts, vectors[0], vectors[1], spread)
                average_softmax(vectors[0], spread, vectors[2])
            own[e] = -math.log(vectors[2, label])
            for k in range(n_classes):
                m, suffered = k * n_experts + e, (own[e] if k == 0 else 0.0)
                suffer(models[m], suffered, weight, numbers[m], stream)
            if covariances is not None and e < n_joint:
                strength = numbers[e, TEMPERATURE] * weight
                rounding = rounding_of(covariances[e], joint_work)
                solve_step(label, strength, rounding, joint_work)
                move(covariances[e], rounding, joint_work)
            else:
                _step(z, label, weight, models, numbers, e, n_experts, stream, vectors)
        if losses is not None:
            suffered, gap = pool(own, weight, losses[0], shares, totals[0, RATE])
            count_losses(suffered, gap, own, weight, losses[0], totals[0])
    if covariances is not None:
        for e in range(n_joint):
            tell_marginals(covariances[e], origin, moments, e, models, stream)
    return True


@allocating
def predict_softmax(
    X,
    moments,
    origin,
    waves,
    models,
    covariances,
    numbers,
    stream,
    losses,
    totals,
    probabilities,
):
    """Write the probability of each class; probabilities : (n_rows, n_classes).

    Experts of weights that change no probability, not in the last bit, are left out.
    """
    n_classes, width = probabilities.shape[1], models.shape[2]
    n_experts = models.shape[0] // n_classes
    Z, work = np.empty((1, width)), np.empty((2, width))
    Z[:] = 0.0
    z = Z[0]
    scores, own, shares = np.empty(n_classes), np.empty(n_classes), np.ones(n_experts)
    spread, n_joint = np.zeros((n_classes, n_classes)), 0
    if covariances is not None:
        n_joint = covariances.shape[0]
        joint_work = workspace(n_classes, 1 + origin.shape[0])
    if losses is not None:
        weigh(losses[0], totals[0], shares)
    for i in range(X.shape[0]):
        place(X[i], moments, None, waves, models[0], stream, False, Z)
        size = scale_row(z, work[0])
        for k in range(n_classes):
            probabilities[i, k] = 0.0
        for e in range(n_experts):
            if shares[e] < NEGLIGIBLE:
                continue
            if covariances is not None and e < n_joint:
                joint_moments(covariances[e], X[i], origin, joint_work)
                average_softmax(joint_work[0][SCORES], joint_work[1][SPREAD], own)
                for k in range(n_classes):
                    probabilities[i, k] += shares[e] * own[k]
                continue
            scaled = work[0, : np.int64(numbers[e, SIZE])]
            for k in range(n_classes):
                m = k * n_experts + e
                scores[k] = score_of(z, models[m], numbers[m], stream)
                along = deviation_along(models[m], None, m, scaled, work[1])
                spread[k, k] = (size * along) * (size * along)
            average_softmax(scores, spread, own)
            for k in range(n_classes):
                probabilities[i, k] += shares[e] * own[k]
