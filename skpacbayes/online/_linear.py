"""What the online linear models share: their options, their state, and one update."""

import itertools
import math
from numbers import Real

import numpy as np

from .._compat import Interval, StrOptions
from .._kernels import online as kernels
from .._kernels import online_state as names
from .._kernels.aggregation import (
    FIXED,
    HIGHEST_TARGET,
    IN_RANGE,
    KIND,
    LOSS,
    LOWEST_TARGET,
    NOISE,
)
from .._kernels.aggregation import TEMPERATURE as AGGREGATE_TEMPERATURE
from .._kernels.online_full import learn_full
from ._rows import OnlineEstimator

METHODS = ("ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el")
LOSSES = ("squared_error", "absolute_error", "hinge", "log_loss")
FULL_COVARIANCE_UP_TO = 64
FORGETTING_RATES = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
PRIOR_SCALES = (1.0, 10.0)
POSITIVE = Interval(Real, 0, None, closed="neither")


class OnlineLinearModel(OnlineEstimator):
    """A linear model with a Gaussian posterior, learnt one row after another."""

    _parameter_constraints: dict = {
        "method": [StrOptions(set(METHODS))],
        "inverse_temperature": [StrOptions({"auto"}), POSITIVE],
        "learning_rate": [StrOptions({"auto", "invsqrt"}), POSITIVE],
        "prior_scale": [StrOptions({"auto"}), POSITIVE],
        "forgetting": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "clip": [None, POSITIVE],
        "fit_intercept": ["boolean"],
        "mean_bound": [None, POSITIVE],
        "scale_bound": [None, POSITIVE],
        "average": ["boolean"],
    }

    # The update.

    def _learn(self, X, y, sample_weight, predictions=None):
        """Learn a block of rows by one compiled call.

        False, and nothing learnt, if one is not finite or beyond LARGEST.
        predictions : (n_experts, n_rows), receives the predictions made before the row
        was learnt; row 0 those of the model.
        """
        if predictions is None:
            predictions = np.empty((self._state.n_experts, len(X)))
        return _LEARNERS[self._learner](
            X, y, sample_weight, *self._state.arguments, predictions
        )

    def _n_experts(self):
        """Return the number of rows of predictions that `_learn` writes."""
        return self._state.n_experts

    def _begin(self, n_features, n_outputs=1):
        """Start a stream: check that the options agree, and lay out the prior.

        The experts of an output differ in their forgetting rate and prior scale.
        """
        self._check_options()
        rates = FORGETTING_RATES if self.forgetting == "auto" else (self.forgetting,)
        scales = PRIOR_SCALES if self.prior_scale == "auto" else (self.prior_scale,)
        self._grid = rates, scales
        experts = list(itertools.product(rates, scales))
        n_parameters = n_features + self.fit_intercept
        full = self._full(n_features)
        natural = "natural" if self.method == "ngvi" else "published"
        self._learner = "full" if full else natural
        self._state = names.LinearState(
            n_features,
            n_parameters,
            n_outputs,
            len(experts),
            full=full,
            scales=self.standardize and not (full and self.clip is None),
            shifts=self.standardize and full,
        )
        self._set_stream(self._state.stream)
        self._set_models(self._state, np.array(experts * n_outputs, dtype=float))
        self._set_aggregation(self._state)

    def _set_stream(self, stream):
        """Write the settings that all models share."""
        stream[names.CLIP] = math.inf if self.clip is None else self.clip
        stream[names.LOSS_KIND] = LOSSES.index(self.loss)
        stream[names.METHOD] = METHODS.index(self.method)
        if self.learning_rate == "auto":
            stream[names.RATE_KIND] = names.ADAGRAD
        elif self.learning_rate == "invsqrt":
            stream[names.RATE_KIND] = names.INVSQRT
        else:
            stream[names.RATE] = self.learning_rate
        stream[names.MEAN_BOUND] = self.mean_bound or math.inf
        stream[names.SCALE_BOUND] = self.scale_bound or math.inf
        stream[names.FLAT] = self._flat()
        stream[names.AVERAGING] = self.average

    def _set_models(self, state, experts):
        """Set each model to its prior; experts : (n_models, 2), rates and scales."""
        rates, scales = experts.T
        state.numbers[:, names.FORGETTING] = rates
        state.numbers[:, names.PRIOR_SCALE] = scales
        state.numbers[:, names.TEMPERATURE] = self._temperature()
        shape = state.means.shape
        precisions = np.broadcast_to(scales[:, None] ** -2, shape).copy()
        bounded = np.minimum(scales, self.scale_bound or math.inf)
        variances = np.broadcast_to(bounded[:, None] ** 2, shape).copy()
        if state.shifts:  # the prior follows the spread of the features
            precisions[:] = variances[:] = 0.0
            state.models[:, names.LOW : names.HIGH + 1, : state.coefficients.start] = 1
        if self._flat():
            precisions[:, 0] = 0.0
        state.precisions[:] = precisions
        state.set_variances(variances)

    def _set_aggregation(self, state):
        """Write how the experts are aggregated: by the noise, or the temperature."""
        temperature = self._temperature()
        if temperature > 0.0:
            state.totals[:, KIND] = FIXED
        else:
            state.totals[:, KIND] = NOISE
            temperature = 0.5 if self.loss == "squared_error" else 1.0
        state.totals[:, AGGREGATE_TEMPERATURE] = temperature
        state.totals[:, IN_RANGE] = state.n_experts > 1 and self._regression()
        state.totals[:, LOWEST_TARGET] = math.inf
        state.totals[:, HIGHEST_TARGET] = -math.inf

    # Options.

    def _natural(self):
        return self.method in ("ngvi", "ngvi_explicit")

    def _regression(self):
        return self.loss in ("squared_error", "absolute_error")

    def _estimates_noise(self):
        auto = self.inverse_temperature == "auto"
        return auto and self._natural() and self._regression()

    def _temperature(self):
        """Inverse temperature of a row's loss; 0 where the noise is estimated."""
        if self._estimates_noise():
            return 0.0
        auto = self.inverse_temperature == "auto"
        return 1.0 if auto else self.inverse_temperature

    def _flat(self):
        """Whether the prior of the intercept is flat."""
        return self.fit_intercept and self._regression() and self._natural()

    def _full(self, n_features):
        """Whether the covariance is full for that many features."""
        possible = (
            self.method == "ngvi"
            and self.loss == "squared_error"
            and self.mean_bound is None
            and self.scale_bound is None
        )
        if self.covariance == "auto":
            return possible and n_features <= FULL_COVARIANCE_UP_TO
        return possible and self.covariance == "full"

    def _check_options(self):
        """Refuse parameters that would have no effect on the chosen method."""
        natural = self._natural()
        idle = []
        if natural and self.learning_rate != "auto":
            idle.append("learning_rate")
        if not natural and self.inverse_temperature != "auto":
            idle.append("inverse_temperature")
        if not natural and self.forgetting != 0.0:
            idle.append("forgetting")
        if idle:
            raise ValueError(
                f"{idle[0]}={getattr(self, idle[0])!r} has no effect with "
                f"method={self.method!r}: leave it at its default."
            )
        for name in ("forgetting", "prior_scale"):
            if getattr(self, name) == "auto" and self.method != "ngvi":
                raise ValueError(
                    f"{name}='auto' needs method='ngvi', got method={self.method!r}."
                )
        if self.scale_bound is not None and self._estimates_noise():
            raise ValueError(
                "scale_bound needs a fixed inverse_temperature: the posterior variance "
                f"is relative to the noise with {self.inverse_temperature!r}."
            )
        if self.covariance == "full" and not self._full(0):
            raise ValueError(
                "covariance='full' needs method='ngvi', loss='squared_error' and no "
                f"bounds, got method={self.method!r}, loss={self.loss!r}, "
                f"mean_bound={self.mean_bound!r}, scale_bound={self.scale_bound!r}."
            )

    # Answers.

    def _means(self):
        """Posterior means, as they predict, (n_outputs, n_experts, n_parameters)."""
        state = self._state
        means = state.averaged_means if self.average else state.means
        return means.reshape(*state.losses.shape, -1)

    def _raw_coefficients(self):
        """Coefficients and intercepts of the mean in the units of X."""
        state = self._state
        mean = np.einsum("oe,oep->op", state.shares(), self._means())
        center, inverse_scale = state.feature_units()
        coefficients = mean[:, state.coefficients] * inverse_scale
        intercepts = mean[:, 0] if self.fit_intercept else np.zeros(len(mean))
        return coefficients, intercepts - coefficients @ center

    def _raw_deviations(self):
        """Posterior standard deviations of the coefficients, in their units."""
        if self.method == "oga":
            raise AttributeError("method='oga' has no posterior: no coef_std_.")
        state = self._state
        deviations = np.sqrt(state.variances[:, state.coefficients])
        if self._estimates_noise():  # the posterior is relative to the noise
            noise = self._noise_variances()
            noise = np.sqrt(noise) if self.loss == "squared_error" else noise
            own = np.zeros_like(deviations)
            deviations = np.multiply(
                noise[:, None], deviations, out=own, where=deviations > 0
            )
        means, shares = self._means()[:, :, state.coefficients], state.shares()
        apart = means - np.einsum("oe,oep->op", shares, means)[:, None]
        each = np.hypot(deviations.reshape(means.shape), apart)
        mixed = np.hypot.reduce(np.sqrt(shares)[:, :, None] * each, axis=1)
        units = np.broadcast_to(state.feature_units()[1], mixed.shape)
        return np.multiply(mixed, units, out=np.zeros_like(mixed), where=units > 0)

    def _noise_variances(self):
        """Mean scaled residual of each model; infinite before the first."""
        counts = self._state.counts
        unknown = np.full(len(counts), np.inf)
        return np.divide(self._state.residuals, counts, out=unknown, where=counts > 0)

    def _cumulative_loss(self):
        """Sum of the losses suffered: each row predicted, then learnt."""
        if self._state.n_experts > 1:
            return float(self._state.totals[:, LOSS].sum())
        return float(self._state.cumulative_losses.sum())

    def _expert_weights(self, axis):
        """Weights of the experts, summed over scales (2) or rates (1)."""
        shape = -1, *map(len, self._grid)
        weights = self._state.shares().reshape(shape).sum(axis=axis)
        return weights[0] if self._regression() else weights

    @property
    def forgetting_rates_(self):
        """The forgetting rates: several with `forgetting="auto"`."""
        return np.array(self._grid[0])

    @property
    def forgetting_weights_(self):
        """Weights of `forgetting_rates_`; one row an output where there are classes."""
        return self._expert_weights(axis=2)

    @property
    def prior_scales_(self):
        """The scales of the prior: several with `prior_scale="auto"`."""
        return np.array(self._grid[1])

    @property
    def prior_scale_weights_(self):
        """Weights of `prior_scales_`; one row an output where there are classes."""
        return self._expert_weights(axis=1)


_LEARNERS = {
    "full": learn_full,
    "natural": kernels.learn_natural,
    "published": kernels.learn_published,
}
