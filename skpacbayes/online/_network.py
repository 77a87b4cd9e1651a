"""Base class of the online networks."""

import math

import numpy as np

from .._kernels import online_network as kernels
from .._kernels import online_state as names
from ._doubts import SHUFFLED, depend_on_order, warn_of_change, warn_of_fit
from ._first_state import LOSSES, METHODS
from ._rows import OnlineEstimator

RATES = {"auto": names.ADAGRAD, "invsqrt": names.INVSQRT}
PAPER_BOX = (20.0, 1.0)  # of the means and of the standard deviations
# With a mean weight of 100 the networks of the squared loss lose up to 0.11 of R2, and
# with 300 up to 1.5.
MOST_WEIGHT = 100.0
FORGETTING = 1e-3  # default, of least loss over stationary and changing streams


class OnlineNetwork(OnlineEstimator):
    """Base class of networks of one hidden ReLU layer, learnt row by row."""

    loss = "squared_error"
    method = "ngvi"
    learning_rate = "auto"

    def _learn(self, X, y, sample_weight, predictions=None):
        """Learn a block of rows by one compiled call.

        Returns False, without learning, if a row is not finite or beyond LARGEST.
        predictions : (1, n_rows), receives the predictions made before the row was
        learnt.
        """
        if predictions is None:
            predictions = np.empty((1, len(X)))
        state = self._state
        return self._learner_of_rows()(
            X, y, sample_weight, *state.arguments, state.work_for(len(X)), predictions
        )

    def _most_weight(self):
        return MOST_WEIGHT

    def _doubt_change(self):
        """Warn if a stream changes faster than `forgetting` allows; return whether."""
        remedy = f"faster than forgetting={self.forgetting:g} forgets: increase it"
        found, n_steps = self._state.foretold, self._state.n_steps
        return any([warn_of_change(each, n_steps, remedy) for each in found])

    def _doubt_fit(self, X, y, sample_weight):
        """Warn if rows in random order would improve the fit; return whether so.

        Squared errors are compared, also of labels. It is checked only if the errors
        depend on the order, and no forgetting was chosen.
        """
        if self.method != "ngvi" or self.forgetting not in (0.0, FORGETTING):
            return False
        some = slice(None, None, -(-len(X) // SHUFFLED))
        errors = self._unexplained(X[some], y[some])
        found = [np.square(errors).sum(axis=1), *errors.T]
        if not any(map(depend_on_order, found)):
            return False
        weights = sample_weight if len(sample_weight) else None
        shuffled = max(
            twin._mean_loss(X, y, weights)
            for twin in self._shuffled_twins(
                X, y, sample_weight, len(self._state.numbers)
            )
        )
        loss = self._mean_loss(X, y, weights)
        return warn_of_fit(loss, shuffled, min(len(X), SHUFFLED))

    def _mean_loss(self, X, y, weights):
        """Return the weighted mean of the squared errors of rows."""
        losses = np.square(self._unexplained(X, y)).sum(axis=1)
        return np.average(losses, weights=weights)

    def _learner_of_rows(self):
        """Return the kernel that learns a block of rows."""
        if self.loss != "squared_error":
            return kernels.learn_labels
        natural = self.method == "ngvi"
        return kernels.learn_numbers if natural else kernels.learn_published

    def _n_experts(self):
        """Return the number of rows of predictions that `_learn` writes."""
        return 1

    def _begin(self, n_features, n_outputs=1):
        """Draw the means from the prior and allocate the state."""
        if self.method == "ngvi" and self.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={self.learning_rate!r} has no effect with "
                "method='ngvi': leave it at its default."
            )
        if self.method != "ngvi" and self.forgetting not in (0.0, FORGETTING):
            raise ValueError(
                f"forgetting={self.forgetting!r} has no effect with "
                f"method={self.method!r}: leave it at its default."
            )
        rng = self._generator()
        n_inputs, n_hidden = n_features + 1, self.hidden_units
        state = self._state = kernels.NetworkState(
            n_features,
            n_hidden,
            n_outputs,
            scales=self.standardize,
            n_labels=self._n_labels(),
        )
        hidden_scale = self.prior_scale / math.sqrt(n_inputs)
        output_scale = self.prior_scale / math.sqrt(n_hidden)
        state.set_normal(rng, hidden_scale, output_scale)
        if self.method == "sva":  # its prior is one scale for all weights
            state.set_variances(*[self.prior_scale**2] * 3)
        state.residuals = state.counts = state.late = 1.0
        state.prior_scales = self.prior_scale
        state.forgetting = self.forgetting
        self._set_stream(state)

    def _set_stream(self, state):
        """Write the settings."""
        state.clip = math.inf if self.clip is None else self.clip
        state.loss_kind = LOSSES.index(self.loss)
        state.method = METHODS.index(self.method)
        state.rate_kind = RATES.get(self.learning_rate, names.CONSTANT)
        if self.learning_rate not in RATES:
            state.learning_rate = self.learning_rate
        state.mean_bound, state.scale_bound = PAPER_BOX

    def _moments(self, X):
        """Return means and variances of the outputs at validated rows."""
        means = np.empty((len(X), len(self._state.numbers)))
        variances = np.empty_like(means)
        kernels.predict_network(X, *self._state.arguments, means, variances)
        return means, variances
