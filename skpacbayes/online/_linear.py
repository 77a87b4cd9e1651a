"""Base class of the online linear models."""

import math
from numbers import Integral, Real

import numpy as np
from scipy.special import softmax

from .._base import as_fitted
from .._compat import Interval, StrOptions
from .._kernels import online as kernels
from .._kernels.online_counts import learn_counts
from .._kernels.online_full import learn_full
from .._kernels.online_labels import learn_labels
from .._kernels.online_parts import noise_of
from .._kernels.online_predict import predict_scores
from .._kernels.online_softmax import learn_softmax
from .._stream import has_doubled
from ..certificates.online import point_losses
from ._curves import curved_share, warn_of_curves
from ._doubts import (
    SHUFFLED,
    depend_on_order,
    order_found,
    warn_of_change,
    warn_of_fit,
    warn_of_level,
    warn_of_long_steps,
    warn_of_standstill,
)
from ._expert_choice import (
    N_FOURIER,
    WITH_NOISE,
    has_full_covariance,
    may_leave_out,
    n_joint_of,
    n_rows_until_choice,
    prior_settles,
    superfluous,
    widens_prior,
)
from ._first_state import METHODS, first_state
from ._prior_by_evidence import FEWEST_ROWS, choose_prior_scale
from ._rows import NO_WEIGHTS, OnlineEstimator

# Rows of a stream that are remembered, evenly spread over it, and checked when their
# number has doubled, from FIRST_CHECK on; of rows left out, the model has learnt more.
REMEMBERED = 512
REMEMBERED_VALUES = 2**17
FIRST_CHECK = 128
ROWS_PER_FEATURE = 10
# Mean weight from which the approximate posteriors are worse: with 1e8 the accuracy of
# labels falls from 0.85 to 0.80.
MOST_WEIGHT = 1e6
POSITIVE = Interval(Real, 0, None, closed="neither")


class OnlineLinearModel(OnlineEstimator):
    """Base class of linear models with a Gaussian posterior, learnt row by row."""

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
        "n_fourier": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    # The update.

    def _learn(self, X, y, sample_weight, predictions=None):
        """Learn a block of rows by one compiled call.

        Returns False, without learning, if a row is not finite or beyond LARGEST.
        predictions : (n_experts, n_rows), receives the predictions made before the row
        was learnt; row 0 those of the model. Experts are not left out then.
        """
        state = self._state
        if predictions is None:
            if may_leave_out(state) and (not len(sample_weight) or sample_weight.any()):
                left_out = superfluous(self, state)
                state = state.without(left_out) if left_out.any() else state.copy()
                state.note_losses()
            predictions = np.empty((state.n_experts, len(X)))
        learn = self._learner_of_rows()
        work = state.work_for(len(X))
        learnt = learn(X, y, sample_weight, *state.arguments, work, predictions)
        if learnt and state is not self._state:
            self._state = state
        return learnt

    def _learn_block(self, X, y, sample_weight):
        """Learn a block of rows, at whose end the scale of the prior may change."""
        before = self._state.n_steps
        self._learn(X, y, sample_weight)
        now = self._state.n_steps
        if now >= FEWEST_ROWS and has_doubled(before, now) and widens_prior(self):
            choose_prior_scale(self._state)

    def _n_at_once(self):
        return n_rows_until_choice(self)

    def _depends_on_order(self):
        """Return whether the posterior depends on the order of the rows."""
        exact = self._state.full and not self._state.phases.size
        exact = exact and self.loss == "squared_error"
        several = self._state.n_experts > 1
        several = several and not prior_settles(self, self.n_features_in_)
        return not exact or several or self.forgetting > 0.0

    def _most_weight(self):
        return math.inf if self._foretells() else MOST_WEIGHT  # inf: exact

    def _doubt_change(self):
        """Warn if a stream changes and too little is forgotten; return whether so."""
        if self.forgetting == "auto" or not self._regression():
            return False
        if self._foretells():
            remedy = "and nothing is forgotten"
            if self.forgetting > 0.0:
                remedy = f"faster than forgetting={self.forgetting:g} forgets"
            remedy += ": use forgetting='auto'"
            return self._warn_of_change(remedy)
        return self.forgetting == 0.0 and warn_of_standstill(self._state)

    def _remembers_rows(self):
        """Return whether a model is flexible enough to remember single rows."""
        return self._state.phases.size > 0

    def _foretells(self):
        """Return whether it is noted what errors tell of the next ones."""
        return self._state.full and self.loss == "squared_error"

    def _warn_of_change(self, remedy):
        """Warn where the errors of the best model foretell each other."""
        state = self._state
        best, n_rows = state.best_expert, state.n_steps
        share = None
        if state.curved[best] and self.prior_scale != "auto":
            rows, share = self._remembered(), 0.0
            if rows is not None:
                share, _ = curved_share(rows[0], self._unexplained(*rows[:2])[:, 0])
        return warn_of_change(state.foretold[best], n_rows, remedy, share)

    def _doubt_fit(self, X, y, sample_weight):
        """Warn if rows in random order would improve the fit; return whether so.

        It is checked only if the losses or the errors depend on the order, and no
        forgetting was chosen. The scores are computed from the coefficients, without a
        kernel that would have to be compiled.
        """
        if not self._doubts_fit():
            return False
        some = slice(None, None, -(-len(X) // SHUFFLED))
        scores = self._linear_scores(X[some])
        with np.errstate(over="ignore"):  # of steps that diverged
            losses = self._losses(y[some], scores)
        if not self._natural():
            at_zero = self._losses(y[some], np.zeros_like(scores)).mean()
            if warn_of_long_steps(losses.mean(), at_zero, self.learning_rate):
                return True
        found = [losses, *self._errors(y[some], scores).T]
        weights = sample_weight if len(sample_weight) else None
        if not any(map(depend_on_order, found)):
            if self.loss == "quantile":
                own = None if weights is None else weights[some]
                warn_of_level(self.quantile, y[some] - scores[:, 0], own)
            return False
        loss = np.average(self._losses_of(X, y), weights=weights)
        shuffled = max(
            np.average(twin._losses_of(X, y), weights=weights)
            for twin in self._shuffled_twins(X, y, sample_weight, scores.shape[1])
        )
        return warn_of_fit(loss, shuffled, min(len(X), SHUFFLED))

    def _doubt_shape(self, X, y):
        linear = self._regression() and not self._state.curved.any()
        if linear and self._doubts_fit():
            errors = self._errors(y, self._linear_scores(X))[:, 0]
            remedy = "n_fourier='auto'"
            if self.n_fourier == "auto" or self.method != "ngvi":
                remedy = f"n_fourier={N_FOURIER['full']}"
                if order_found(self._state):
                    remedy = "shuffled rows (sklearn.utils.shuffle)"
            warn_of_curves(X, y, errors, remedy)

    def _linear_scores(self, X):
        """Return the linear predictions of rows, (n_rows, n_outputs)."""
        coefficients, intercepts = self._raw_coefficients()
        return X @ coefficients.T + intercepts

    def _losses_of(self, X, y):
        """Return the losses of the predictions of rows."""
        scores = np.empty((len(X), len(self._state.shares())))
        predict_scores(X, *self._state.arguments, scores)
        return self._losses(y, scores)

    def _doubts_fit(self):
        """Return whether a fit that forgets early rows is a fault, and can be found."""
        linear = self.n_fourier in (0, "auto")
        simple = linear and self.clip is None and not self.average
        return simple and self.forgetting in (0.0, "on_label_change")

    def _doubt_labels(self):
        """Warn of a label that stays the same, where the fit is not checked."""
        if not self._doubts_fit():
            super()._doubt_labels()

    def _room(self, n_features):
        """Return how many rows are remembered, to check the fit of a stream."""
        if not self._doubts_fit():
            return 0
        return min(REMEMBERED, REMEMBERED_VALUES // n_features // 2 * 2)

    def _remembered(self):
        """Return remembered rows that suffice to check the fit, or None."""
        state = self._state
        if not state.room or state.n_noted < FIRST_CHECK:
            return None
        X, y, weights = state.remembered()
        if len(X) < state.n_noted and len(X) < ROWS_PER_FEATURE * X.shape[1]:
            return None  # a model of these rows alone would fit them too well
        return X, y, weights if (weights != 1.0).any() else NO_WEIGHTS

    def _losses(self, y, scores):
        """Return the loss of each row, given scores (n_rows, n_outputs)."""
        if self._learner == "softmax":
            own = np.take_along_axis(scores, y.astype(int)[:, None], axis=1)
            return np.logaddexp.reduce(scores, axis=1) - own[:, 0]
        quantile = getattr(self, "quantile", 0.5)
        targets = self._targets(y, scores)
        return point_losses(self.loss, targets, scores, quantile).sum(axis=1)

    def _errors(self, y, scores):
        """Return targets less their expectations; for the hinge, those it counts."""
        targets = self._targets(y, scores)
        if self.loss == "hinge":
            return np.where(targets * scores < 1.0, targets, 0.0)
        if self._learner == "softmax":
            return targets - 2.0 * softmax(scores, axis=1)
        expected = {"log_loss": lambda a: np.tanh(0.5 * a), "poisson": np.exp}
        return targets - expected.get(self.loss, np.positive)(scores)

    def _unexplained(self, X, y):
        scores = np.empty((len(X), len(self._state.shares())))
        predict_scores(X, *self._state.arguments, scores)
        return self._errors(y, scores)

    def _targets(self, y, scores):
        """Return the targets of each output; labels are -1 or 1."""
        labels = np.where(y[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        return labels if scores.shape[1] > 1 else y[:, None]

    def _learner_of_rows(self):
        """Return the kernel that learns a block of rows."""
        return _LEARNERS[self._learner]

    def _n_experts(self):
        """Return the number of rows of predictions that `_learn` writes."""
        return self._state.n_experts

    def _begin(self, n_features, n_outputs=1):
        """Start a stream: check the parameters, and set the prior."""
        self._check_options()
        n_joint = n_joint_of(self, n_features)
        full = has_full_covariance(self, n_features)
        self._learner = self._learner_for(full, n_joint)
        self._state = first_state(self, n_features, n_outputs)

    def _learner_for(self, full, n_joint):
        """Return the name of the kernel that learns rows."""
        if self.loss == "poisson":
            return "counts"
        if full:
            return "full"
        if n_joint:
            return "labels"
        return "natural" if self.method == "ngvi" else "published"

    # Parameters.

    def _natural(self):
        return self.method in ("ngvi", "ngvi_explicit")

    def _regression(self):
        return self.loss not in ("hinge", "log_loss")

    def _estimates_noise(self):
        auto = self.inverse_temperature == "auto"
        return auto and self._natural() and self.loss in WITH_NOISE

    def _temperature(self):
        """Return the inverse temperature of a row's loss; 0 if noise is estimated."""
        if self._estimates_noise():
            return 0.0
        auto = self.inverse_temperature == "auto"
        return 1.0 if auto else self.inverse_temperature

    def _flat(self):
        """Whether the prior of the intercept is flat."""
        return self.fit_intercept and self.loss in WITH_NOISE and self._natural()

    def _check_options(self):
        """Raise ValueError for parameters without effect, or in conflict."""
        natural = self._natural()
        idle = []
        if natural and self.learning_rate != "auto":
            idle.append("learning_rate")
        if not natural and self.inverse_temperature != "auto":
            idle.append("inverse_temperature")
        if not natural and self.forgetting not in (0.0, "on_label_change"):
            idle.append("forgetting")
        if idle:
            raise ValueError(
                f"{idle[0]}={getattr(self, idle[0])!r} has no effect with "
                f"method={self.method!r}: leave it at its default."
            )
        if self.loss == "poisson" and self.method != "ngvi":
            raise ValueError(
                f"loss='poisson' needs method='ngvi', got method={self.method!r}."
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
        if self.covariance == "full" and not has_full_covariance(self, 0):
            raise ValueError(
                "covariance='full' needs method='ngvi', loss='squared_error' or "
                f"'poisson', and no bounds, got method={self.method!r}, "
                f"loss={self.loss!r}, mean_bound={self.mean_bound!r}, "
                f"scale_bound={self.scale_bound!r}."
            )

    # Results.

    def _means(self):
        """Return posterior means, (n_outputs, n_experts, n_parameters)."""
        state = self._state
        means = state.averaged_means if self.average else state.means
        return means.reshape(-1, state.n_experts, means.shape[1])

    @as_fitted
    def _raw_coefficients(self):
        """Return coefficients and intercepts of the mean, in the units of X."""
        state, linear = self._state, self._linear()
        means = self._means()[:, linear]
        mean = np.einsum("oe,oep->op", state.shares(linear), means)
        center, inverse_scale = state.feature_units()
        coefficients = mean[:, self._of_features()] * inverse_scale
        intercepts = mean[:, 0] if self.fit_intercept else np.zeros(len(mean))
        return coefficients, intercepts - coefficients @ center

    def _linear(self):
        """Return which experts are linear; raise AttributeError if there are none."""
        linear = ~self._state.curved
        if not linear.any():
            raise AttributeError(
                f"n_fourier={self.n_fourier!r}: the model is not linear in the "
                "features, it has no coef_, intercept_ and coef_std_."
            )
        return linear

    def _of_features(self):
        """Return the slice of the coefficients of features in the parameters."""
        start = self._state.coefficients.start
        return slice(start, start + self._state.n_features)

    @as_fitted
    def _raw_deviations(self):
        """Return posterior standard deviations of the coefficients, in their units."""
        linear = self._linear()
        if self.method == "oga":
            raise AttributeError("method='oga' has no posterior: no coef_std_.")
        state, own = self._state, self._of_features()
        deviations = np.sqrt(state.variances[:, own])
        if self._estimates_noise():  # the posterior is relative to the noise
            noise = self._noise_variances()
            if self.loss == "squared_error":
                noise = np.sqrt(noise)
            else:  # the mean residual is the mean loss at slopes of one
                noise = 2.0 / state.slopes.sum() * noise
            deviations = np.multiply(
                noise[:, None],
                deviations,
                out=np.zeros_like(deviations),
                where=deviations > 0,
            )
        means, shares = self._means()[:, :, own], state.shares(linear)
        deviations = deviations.reshape(means.shape)[:, linear]
        means = means[:, linear]
        apart = means - np.einsum("oe,oep->op", shares, means)[:, None]
        each = np.hypot(deviations, apart)
        mixed = np.hypot.reduce(np.sqrt(shares)[:, :, None] * each, axis=1)
        units = np.broadcast_to(state.feature_units()[1], mixed.shape)
        return np.multiply(mixed, units, out=np.zeros_like(mixed), where=units > 0)

    def _noise_variances(self):
        """Return the estimated noise of each model; infinite before the first residual.

        It is a variance, or the mean scaled residual of another loss.
        """
        state = self._state
        pairs = zip(state.models, state.numbers, strict=True)
        return np.array([noise_of(*pair, state.full)[0] for pair in pairs])

    def _cumulative_loss(self):
        """Return the sum of losses of predictions made before learning each row."""
        if self._state.aggregates:
            return float(self._state.aggregate_loss.sum())
        return float(self._state.cumulative_losses.sum())

    def _weights_of(self, attribute):
        """Return the weights of each distinct value of the experts, by output."""
        state = self._state  # read once: an update may replace it
        distinct, which = np.unique(getattr(state, attribute), return_inverse=True)
        weights = state.shares() @ np.eye(len(distinct))[which]
        return weights[0] if self._regression() else weights

    @property
    def forgetting_rates_(self):
        """Forgetting rates; several with "auto".

        For classifiers also with "on_label_change".
        """
        return np.unique(self._state.forgetting_rates)

    @property
    def forgetting_weights_(self):
        """Weights of `forgetting_rates_`; for classifiers, one row per output."""
        return self._weights_of("forgetting_rates")

    @property
    def prior_scales_(self):
        """Scales of the prior; several if they are averaged.

        With `n_fourier="auto"` also three times each, for models with Fourier features.
        """
        return np.unique(self._state.prior_scales)

    @property
    def prior_scale_weights_(self):
        """Weights of `prior_scales_`; for classifiers, one row per output."""
        return self._weights_of("prior_scales")

    @property
    @as_fitted
    def fourier_weight_(self):
        """Weight of the experts with Fourier features, in [0, 1].

        For classifiers there is one for each output.
        """
        state = self._state  # read once: an update may replace it
        weights = state.shares()[:, state.curved].sum(axis=1)
        return float(weights[0]) if self._regression() else weights


_LEARNERS = {
    "counts": learn_counts,
    "full": learn_full,
    "natural": kernels.learn_natural,
    "labels": learn_labels,
    "published": kernels.learn_published,
    "softmax": learn_softmax,
}
