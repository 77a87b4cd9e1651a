"""What the online linear models share: state, standardisation, the stream."""

import math
from numbers import Real
from operator import attrgetter

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval, StrOptions

from .._base import refuse_changes
from .._kernels import online as kernels
from .._kernels import online_full as full_kernels
from .._kernels.aggregation import FIXED, N_TOTALS, NOISE, aggregation_rate
from .._kernels.aggregation import LOSS as AGGREGATE_LOSS
from .._kernels.standardise import SMALLEST, standardise
from ._aggregation import aggregate_block
from ._certificate import CertifiedModel
from ._panels import in_panels, whole
from ._rows import OnlineEstimator, inverse_scales

METHODS = ("ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el")
LOSSES = ("squared_error", "absolute_error", "hinge", "log_loss")
FULL_COVARIANCE_UP_TO = 64
FORGETTING_RATES = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
NOWHERE = np.empty(0)  # where predictions go that nobody reads
BLOCK = 2**15  # numbers that are standardised, then learnt, at a time
POSITIVE = Interval(Real, 0, None, closed="neither")

OPTIONS = (
    "method",
    "loss",
    "covariance",
    "inverse_temperature",
    "learning_rate",
    "prior_scale",
    "forgetting",
    "standardize",
    "clip",
    "fit_intercept",
    "mean_bound",
    "scale_bound",
    "average",
)
read_options = attrgetter(*OPTIONS)


class OnlineLinearModel(CertifiedModel, OnlineEstimator):
    """A linear model with a Gaussian posterior, learnt one row after another."""

    _parameter_constraints: dict = {
        "method": [StrOptions(set(METHODS))],
        "inverse_temperature": [StrOptions({"auto"}), POSITIVE],
        "learning_rate": [StrOptions({"auto", "invsqrt"}), POSITIVE],
        "prior_scale": [POSITIVE],
        "forgetting": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "clip": [None, POSITIVE],
        "fit_intercept": ["boolean"],
        "mean_bound": [None, POSITIVE],
        "scale_bound": [None, POSITIVE],
        "average": ["boolean"],
    }

    def _begin(self, n_features, n_outputs=1):
        """Start a stream: check that the options agree, and lay out the state.

        Model ``k * n_rates + r`` is that of output k with forgetting rate r.
        """
        self._check_options()
        rates = FORGETTING_RATES if self.forgetting == "auto" else [self.forgetting]
        n_models = n_outputs * len(rates)
        flat = self.fit_intercept and self._regression() and self._natural()

        settings = np.zeros(kernels.N_SETTINGS)
        if not self._estimates_noise():
            auto = self.inverse_temperature == "auto"
            settings[kernels.TEMPERATURE] = 1.0 if auto else self.inverse_temperature
        settings[kernels.PRIOR_SCALE] = self.prior_scale
        settings[kernels.MEAN_BOUND] = self.mean_bound or math.inf
        settings[kernels.SCALE_BOUND] = self.scale_bound or math.inf
        if self.learning_rate == "auto":
            settings[kernels.RATE_KIND] = kernels.ADAGRAD
        elif self.learning_rate == "invsqrt":
            settings[kernels.RATE_KIND] = kernels.INVSQRT
        else:
            settings[kernels.RATE] = self.learning_rate
        settings[kernels.FLAT] = flat
        settings[kernels.AVERAGING] = self.average
        self._settings = np.tile(settings, (n_models, 1))
        self._settings[:, kernels.FORGETTING] = np.tile(rates, n_outputs)

        self._lay_out(n_models, n_features, flat)
        self._totals = np.zeros((n_outputs, N_TOTALS))
        self._rate_losses = np.zeros(n_models)
        self._range = np.array([math.inf, -math.inf])  # of the targets
        self._clip = math.inf if self.clip is None else float(self.clip)
        self._numbers = METHODS.index(self.method), LOSSES.index(self.loss)
        self._begun_with = read_options(self)

    def _lay_out(self, n_models, n_features, flat):
        """Lay out the posteriors, at the prior, and the moments of the features."""
        full = self._full(n_features)
        n_parameters = n_features + self.fit_intercept
        self._features = slice(int(self.fit_intercept), n_parameters)
        width, n_vectors = n_parameters, kernels.N_VECTORS
        if full:
            width += -n_parameters % full_kernels.LANES
            n_vectors = full_kernels.N_VECTORS
        scale = min(self.prior_scale, self.scale_bound or math.inf)
        self._models = np.zeros((n_models, n_vectors, width))
        own = self._models[:, :, :n_parameters]
        own[:, kernels.VARIANCE] = scale**2
        own[:, kernels.PRIOR] = self.prior_scale**-2
        if flat:
            own[:, kernels.PRIOR, 0] = 0.0
        self._scalars = np.zeros((n_models, kernels.N_SCALARS))
        # of a full covariance the prior follows the features, not they their moments
        follows = full and self.standardize
        moments = self.standardize and not (full and self.clip is None)
        self._moments = np.zeros((3 if moments else 0, n_features))
        self._origin = None if follows else NOWHERE
        if follows:
            self._settings[:, kernels.RELATIVE] = 1.0
            own[:, [kernels.PRIOR, kernels.VARIANCE]] = 0.0
            own[:, full_kernels.LOW : full_kernels.HIGH + 1, : self._features.start] = 1
        variances = self._models[:, kernels.VARIANCE]
        self._covariances = in_panels(variances) if full else None

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
        if self.forgetting == "auto" and self.method != "ngvi":
            raise ValueError(
                f"forgetting='auto' needs method='ngvi', got method={self.method!r}."
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

    def _natural(self):
        return self.method in ("ngvi", "ngvi_explicit")

    def _regression(self):
        return self.loss in ("squared_error", "absolute_error")

    def _estimates_noise(self):
        auto = self.inverse_temperature == "auto"
        return auto and self._natural() and self._regression()

    def _full(self, n_features):
        possible = (
            self.method == "ngvi"
            and self.loss == "squared_error"
            and self.mean_bound is None
            and self.scale_bound is None
        )
        if self.covariance == "auto":
            return possible and n_features <= FULL_COVARIANCE_UP_TO
        return possible and self.covariance == "full"

    def _continues(self, X):
        """Whether X is a stream's next block, ready for the kernels."""
        options = read_options(self)
        if options != self._begun_with:
            refuse_changes(OPTIONS, self._begun_with, options)
        return self._recognises(X) and X.size <= BLOCK

    def _learn(self, X, y, sample_weight):
        """Learn a block of rows; False, and nothing learnt, if one is refused."""
        Z = np.empty((X.shape[0], self._models.shape[2]))
        origin = self._origin
        if origin is None:
            origin = X[np.argmax(sample_weight > 0) if len(sample_weight) else 0].copy()
        moments = self._moments if len(self._moments) else None
        place = origin if len(origin) else None
        units = moments, self._clip, place, self._features.start
        if standardise(X, y, sample_weight, *units, Z) >= 0:
            return False
        if self._origin is None and (not len(sample_weight) or sample_weight.any()):
            self._origin = origin
        n_outputs = len(self._totals)
        for output in range(n_outputs):
            target = self._target(y, output)
            if self.forgetting == "auto":
                self._learn_each_rate(Z, target, sample_weight, output)
            else:
                self._learn_one(Z, target, sample_weight, output, NOWHERE)
        self.n_samples_seen_ = int(self._scalars.item(kernels.STEPS))
        return True

    def _learn_one(self, Z, target, sample_weight, k, predictions):
        """Model k predicts, then learns, each row."""
        method, loss = self._numbers
        state = self._models[k], self._scalars[k], self._settings[k]
        if self._covariances is not None:
            covariance, work = self._covariances[k], np.zeros((4, Z.shape[1]))
            state += self._features.stop, work, predictions
            full_kernels.learn_full(Z, target, sample_weight, covariance, *state)
        elif method == kernels.NGVI:
            kernels.learn_natural(Z, target, sample_weight, *state, loss, predictions)
        else:
            kernels.learn_published(
                Z, target, sample_weight, *state, loss, method, predictions
            )

    def _learn_each_rate(self, Z, target, sample_weight, output):
        """Learn with each forgetting rate, and weigh the rates by Algorithm 1.

        For numbers, a rate predicts within the range of the targets before the row:
        Algorithm 1 is for losses that are bounded.
        """
        models = self._models_of(output)
        predictions = np.zeros((models.stop - models.start, len(Z)))
        for k, row in zip(range(models.start, models.stop), predictions, strict=True):
            self._learn_one(Z, target, sample_weight, k, row)
        if self._regression():
            self._keep_in_range(predictions, target, sample_weight)
        aggregate_block(
            self.loss,
            np.ascontiguousarray(predictions.T),
            target,
            sample_weight,
            self._rate_losses[models],
            self._totals[output],
            self._aggregation(),
        )

    def _keep_in_range(self, predictions, target, sample_weight):
        """Clip predictions to the range of the targets before each row, in place."""
        seen = np.append(self._range[0], target)
        if len(sample_weight):
            seen[1:][sample_weight == 0] = np.nan
        low = np.fmin.accumulate(seen)
        seen[0] = self._range[1]
        high = np.fmax.accumulate(seen)
        if low[0] > high[0]:  # before the first row there is no range
            low[0], high[0] = high[0], low[0]
        np.clip(predictions, low[:-1], high[:-1], out=predictions)
        self._range[:] = low[-1], high[-1]

    def _models_of(self, output):
        n_rates = len(self._models) // len(self._totals)
        return slice(output * n_rates, (output + 1) * n_rates)

    def _aggregation(self):
        """Kind and constant of the inverse temperature of the forgetting rates."""
        temperature = float(self._settings[0, kernels.TEMPERATURE])
        if temperature > 0.0:
            return FIXED, temperature
        return NOISE, 0.5 if self.loss == "squared_error" else 1.0

    def _learn_all(self, X, y, sample_weight):
        """Learn rows that have been checked, block after block."""
        n_rows = max(1, BLOCK // X.shape[1])
        for start in range(0, X.shape[0], n_rows):
            rows = slice(start, start + n_rows)
            self._learn(X[rows], y[rows], sample_weight[rows])

    def _standardised(self, X, *, extrapolate=False):
        """Rows of X in the coordinates of the posterior, the intercept's 1 first.

        With a diagonal covariance each row is in units of the stream that would
        have ended with it, as when it is learnt. A full covariance on standardised
        columns does not extrapolate: a feature beyond the range of the rows so far is
        taken at the end of that range.
        """
        Z = np.ones((X.shape[0], self._features.stop))
        rows = Z[:, self._features]
        if self._covariances is None and len(self._moments):
            centre, scatter, total = self._moments
            before, share = X - centre, total[0] / (total[0] + 1.0)
            spread = np.sqrt(scatter + share * before * before)
            scaled = share * np.sqrt(total[0] + 1.0) * before
            varies = spread > SMALLEST**0.5
            rows[:] = np.divide(scaled, spread, out=np.zeros_like(X), where=varies)
            np.clip(rows, -self._clip, self._clip, out=rows)
            return Z
        centre, inverse_scale = self._units()
        np.multiply(self._clipped(X) - centre, inverse_scale, out=rows)
        if self._follows() and not extrapolate:
            vectors = [full_kernels.LOW, full_kernels.HIGH]
            np.clip(rows, *self._models[0, vectors, self._features], out=rows)
        return Z

    def _follows(self):
        """Whether the features keep their units, and the prior follows them."""
        return bool(self._settings[0, kernels.RELATIVE])

    def _clipped(self, X):
        """Rows of X, their values clipped in units of the stream so far."""
        if self.clip is None:
            return X
        if not len(self._moments):
            return np.clip(X, -self.clip, self.clip)
        centre, scatter, total = self._moments
        reach = self.clip * np.sqrt(scatter / total[0])
        return np.clip(X, centre - reach, centre + reach)

    def _units(self):
        """Origin and one over the unit of each feature; 0 if it never varied."""
        if self._follows():
            prior = self._models[0, kernels.PRIOR, self._features]
            return self._origin, (prior > 0).astype(float)
        if not len(self._moments):
            return np.zeros(self.n_features_in_), np.ones(self.n_features_in_)
        return self._moments[0], inverse_scales(self._moments)

    def _means(self):
        """Posterior means, (n_outputs, n_rates, n_parameters), as they predict."""
        means = self._models[:, kernels.MEAN, : self._features.stop]
        if self.average:
            total = self._scalars[0, kernels.WEIGHT]
            means = self._models[:, kernels.AVERAGE, : self._features.stop] / total
        return means.reshape(len(self._totals), -1, means.shape[1])

    def _shares(self):
        """Weight of each forgetting rate, (n_outputs, n_rates)."""
        losses = self._rate_losses.reshape(len(self._totals), -1)
        rates = [
            aggregation_rate(own, totals, *self._aggregation())
            for own, totals in zip(losses, self._totals, strict=True)
        ]
        return softmax(-np.array(rates)[:, None] * losses, axis=1)

    def _mean(self):
        """Posterior mean, averaged over the forgetting rates, (n_outputs, -1)."""
        return np.einsum("oe,oep->op", self._shares(), self._means())

    def _variances_along(self, Z):
        """Posterior variance of <theta, z> for each model, (n_models, n_rows)."""
        n_parameters = self._features.stop
        if self._covariances is None:
            return self._models[:, kernels.VARIANCE] @ np.square(Z).T
        along = [
            ((Z @ whole(panels)[:n_parameters, :n_parameters]) * Z).sum(axis=1)
            for panels in self._covariances
        ]
        return np.maximum(0.0, along)

    def _deviations_along(self, Z):
        """Posterior standard deviation of <theta, z>, whose variance may overflow."""
        sizes = np.maximum(1.0, np.abs(Z).max(axis=1))
        return sizes * np.sqrt(self._variances_along(Z / sizes[:, None]))

    def _raw_coefficients(self):
        """Coefficients and intercepts of the mean in the units of X."""
        mean = self._mean()
        centre, inverse_scale = self._units()
        coefficients = mean[:, self._features] * inverse_scale
        intercepts = mean[:, 0] if self.fit_intercept else np.zeros(len(mean))
        return coefficients, intercepts - coefficients @ centre

    def _cumulative_loss(self):
        """Sum of the losses suffered: each row predicted, then learnt."""
        if self.forgetting == "auto":
            return float(self._totals[:, AGGREGATE_LOSS].sum())
        return float(self._scalars[:, kernels.LOSS].sum())

    @property
    def forgetting_rates_(self):
        """The forgetting rates: several with `forgetting="auto"`."""
        n_rates = len(self._models) // len(self._totals)
        return self._settings[:n_rates, kernels.FORGETTING].copy()

    @property
    def forgetting_weights_(self):
        """Weights of `forgetting_rates_`; one row an output where there are classes."""
        shares = self._shares()
        return shares[0] if self._regression() else shares
