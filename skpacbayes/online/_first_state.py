"""The state of an online linear model before the first row: its prior and options.

`model` is an `OnlineLinearModel`.
"""

import math

import numpy as np

from .._kernels import online_state as names
from .._kernels.aggregation import FIXED, NOISE
from ._expert_choice import experts_of, has_full_covariance, n_fourier_of, n_joint_of

METHODS = ("ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el")
LOSSES = ("squared_error", "absolute_error", "hinge", "log_loss", "poisson")
COUNT_INTERCEPT_SCALE = 10.0  # prior standard deviation of a log rate
FREQUENCY_SCALES = (0.7, 1.4, 2.8)  # over the root of the number of features


def first_state(model, n_features, n_outputs):
    """Return the state before the first row.

    The experts of an output differ in their forgetting rate, their prior scale, and in
    whether they have Fourier features.
    """
    experts = experts_of(model, n_features)
    full = has_full_covariance(model, n_features)
    n_waves = n_fourier_of(model, n_features)
    clips, waves = model.clip is not None, n_waves > 0
    follows = full and model.standardize and not (clips and waves)
    measures = model.standardize and (clips or waves or not follows)
    state = names.LinearState(
        n_features,
        n_features + n_waves + model.fit_intercept,
        n_outputs,
        len(experts),
        full=full,
        scales=measures,
        shifts=follows,
        n_waves=n_waves,
        joint=model._learner == "softmax",
        n_labels=model._n_labels(),
        room=model._room(n_features),
        counts_errors=model.loss == "squared_error" and model._estimates_noise(),
        n_joint=n_joint_of(model, n_features),
    )
    if n_waves:
        _draw_waves(model, state)
    _set_options(model, state)
    _set_models(model, state, np.array(experts * n_outputs, dtype=float))
    state.set_joint_priors()
    _set_aggregation(model, state)
    return state


def _draw_waves(model, state):
    """Draw random Fourier features of three length scales."""
    rng = model._generator()
    n_features, n_waves = state.frequencies.shape
    scales = np.resize(FREQUENCY_SCALES, n_waves) / math.sqrt(n_features)
    state.frequencies[:] = scales * rng.normal(size=(n_features, n_waves))
    state.phases[:] = rng.uniform(0.0, 2.0 * math.pi, n_waves)


def _set_options(model, state):
    """Set the common settings of all models."""
    state.clip = math.inf if model.clip is None else model.clip
    if model.loss == "quantile":  # an absolute loss with two slopes
        state.slopes = model.quantile, 1.0 - model.quantile
        state.loss_kind = LOSSES.index("absolute_error")
    else:
        state.loss_kind = LOSSES.index(model.loss)
    state.method = METHODS.index(model.method)
    if model.learning_rate == "auto":
        state.rate_kind = names.ADAGRAD
    elif model.learning_rate == "invsqrt":
        state.rate_kind = names.INVSQRT
    else:
        state.learning_rate = model.learning_rate
    state.mean_bound = model.mean_bound or math.inf
    state.scale_bound = model.scale_bound or math.inf
    state.flat_intercept = model._flat()
    state.averaging = model.average


def _set_models(model, state, experts):
    """Set each model to its prior; experts : (n_models, 3), see `experts_of`."""
    rates, scales, bends = experts.T
    state.forgetting, state.scales_of_prior = rates, scales
    if model.forgetting == "on_label_change":  # forget only when the label changes
        state.last_labels = math.nan
    state.temperatures = model._temperature()
    shape, n_waves, n_linear = state.means.shape, len(state.phases), state.n_linear
    padding = -n_linear % names.LANES if state.full else 0
    state.sizes = np.where(bends > 0.0, state.models.shape[2], n_linear + padding)
    state.choose_clipping()  # by the models that are linear, which `sizes` tell
    precisions = np.broadcast_to(scales[:, None] ** -2, shape).copy()
    bounded = np.minimum(scales, model.scale_bound or math.inf)
    variances = np.broadcast_to(bounded[:, None] ** 2, shape).copy()
    if state.shifts:  # the prior follows the spread of the features
        precisions[:, :n_linear] = variances[:, :n_linear] = 0.0
        state.set_ranges()
    if model._flat():
        precisions[:, 0] = 0.0
    if model.loss == "poisson" and model.fit_intercept:
        precisions[:, 0] = COUNT_INTERCEPT_SCALE**-2
        variances[:, 0] = min(COUNT_INTERCEPT_SCALE, model.scale_bound or math.inf) ** 2
    if n_waves:  # linear experts do not learn their coefficients
        variances[:, -n_waves:] *= bends[:, None]
    state.precisions[:] = precisions
    state.set_variances(variances)


def _set_aggregation(model, state):
    """Set the aggregation of the experts: by the noise, or the temperature."""
    temperature = model._temperature()
    if temperature > 0.0:
        state.temperature_kind = FIXED
    else:
        state.temperature_kind = NOISE
        temperature = 0.5 if model.loss == "squared_error" else 1.0
    state.aggregate_temperature = temperature
    # Exact posteriors that forget nothing do not extrapolate: they need no limit.
    exact = state.full and model.forgetting == 0.0 and model.loss == "squared_error"
    limited = not exact or np.count_nonzero(~state.curved) > 1
    state.within_range = limited and state.n_experts > 1 and model._regression()
    state.lowest_target = math.inf
    state.highest_target = -math.inf
