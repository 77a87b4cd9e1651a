"""Online variational inference for two labels, where experts have joint posteriors.

As `online.learn_natural` does, but for the logistic loss alone, of labels -1 and 1,
without bounds and averaged means: the code of other losses is not compiled. The state
is that of `online_state`.
"""

import numpy as np

from . import kernel
from .aggregation import aggregate_labels, log_loss
from .online_joint import (
    _follow_columns,
    move_single,
    single_moments,
    single_rounding_of,
    solve_single,
    start_at,
    tell_marginals,
)
from .online_losses import implicit_logistic
from .online_parts import (
    enter,
    forget,
    is_to_forget,
    moderate,
    score_moments,
    suffer,
    take_units,
)
from .online_state import (
    COUNT,
    FORGETTING,
    MEAN,
    N_WORK,
    PRIOR_SCALE,
    RESIDUALS,
    SIZE,
    SMALLEST,
    TEMPERATURE,
    VARIANCE,
    WEIGHT,
)


@kernel
def _learn_diagonal(Z, kept, y, sample_weight, model, numbers, stream, predictions):
    """Predict, then learn each row with one model; add up its losses."""
    n_parameters = np.int64(numbers[SIZE])
    mean, variance = model[MEAN], model[VARIANCE]
    keep = 1.0 - numbers[FORGETTING]
    for i in range(Z.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        z, label = Z[i, :n_parameters], y[i]
        take_units(model, kept[i], stream)
        a, v = score_moments(mean, variance, z)
        predictions[i] = moderate(a, v)
        suffer(model, log_loss(label, predictions[i]), weight, numbers, stream)
        if is_to_forget(label, numbers):
            a, v = forget(model, z, numbers[FORGETTING])
        numbers[RESIDUALS] = keep * numbers[RESIDUALS] + weight * abs(label - a)
        numbers[COUNT] = keep * numbers[COUNT] + weight
        if v <= SMALLEST:
            continue
        strength = numbers[TEMPERATURE] * weight
        da, dv = implicit_logistic(label, a, v, strength)
        shift, curve = -strength * da, 2.0 * strength * dv
        for j in range(n_parameters):
            spread = variance[j] * z[j]
            mean[j] += shift * spread
            variance[j] /= 1.0 + curve * spread * z[j]


@kernel
def _learn_jointly(
    X,
    y,
    sample_weight,
    origin,
    follows,
    posterior,
    model,
    numbers,
    stream,
    work,
    predictions,
):
    """As `_learn_diagonal`, with the full covariance of `posterior`."""
    z, gains = work[0, : 1 + origin.shape[0]], work[1:]
    for i in range(X.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        a, v = single_moments(posterior, X[i], origin, z, gains)
        predictions[i] = moderate(a, v)
        if follows:
            before, scale = numbers[WEIGHT], numbers[PRIOR_SCALE]
            if _follow_columns(posterior, X[i], origin, weight, before, scale, gains):
                a, v = single_moments(posterior, X[i], origin, z, gains)
        suffer(model, log_loss(y[i], predictions[i]), weight, numbers, stream)
        rounding = single_rounding_of(posterior, z)
        strength = numbers[TEMPERATURE] * weight
        shift, B, C = solve_single(y[i], strength, rounding, a, v)
        move_single(posterior, gains, shift, B, C, rounding)


@kernel
def learn_labels(
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
    """Learn by implicit NGVI, the first experts with joint posteriors.

    As `online.learn_natural`; the covariances of the other experts are diagonal.
    """
    kept, Z = work[N_WORK:, : 1 + X.shape[1]], work[N_WORK + X.shape[0] :]
    if not enter(X, y, sample_weight, moments, None, waves, stream, Z, kept):
        return False
    n_experts, follows = models.shape[0], moments.shape[1] > 0
    start_at(X, sample_weight, origin, numbers, follows)
    for k in range(n_experts):
        own = predictions[k]
        if k < covariances.shape[0]:
            posterior, model, counts = covariances[k], models[k], numbers[k]
            _learn_jointly(
                *(X, y, sample_weight, origin, follows),
                *(posterior, model, counts, stream, work, own),
            )
            tell_marginals(posterior, origin, moments, k, models, stream)
        else:
            _learn_diagonal(
                Z, kept, y, sample_weight, models[k], numbers[k], stream, own
            )
    if losses is not None:
        aggregate_labels(y, sample_weight, predictions, losses[0], totals[0], work)
    return True
