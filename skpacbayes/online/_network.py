"""What the online networks share: their prior, and one update."""

import math

import numpy as np

from .._kernels import online_network as kernels
from .._kernels import online_state as names
from ._linear import LOSSES, METHODS
from ._rows import OnlineEstimator

RATES = {"auto": names.ADAGRAD, "invsqrt": names.INVSQRT}
PAPER_BOX = (20.0, 1.0)  # of the means and of the standard deviations


class OnlineNetwork(OnlineEstimator):
    """A network of one hidden ReLU layer, learnt one row after another."""

    loss = "squared_error"
    method = "ngvi"
    learning_rate = "auto"

    def _learn(self, X, y, sample_weight, predictions=None):
        """Learn a block of rows by one compiled call.

        False, and nothing learnt, if one is not finite or beyond LARGEST.
        predictions : (1, n_rows), receives the predictions made before the row was
        learnt.
        """
        if predictions is None:
            predictions = np.empty((1, len(X)))
        numbers = self.loss == "squared_error"
        learn = kernels.learn_numbers if numbers else kernels.learn_labels
        return learn(X, y, sample_weight, *self._state.arguments, predictions)

    def _n_experts(self):
        """Return the number of rows of predictions that `_learn` writes."""
        return 1

    def _begin(self, n_features, n_outputs=1):
        """Draw the means from the prior and lay out the state."""
        if self.method == "ngvi" and self.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={self.learning_rate!r} has no effect with "
                "method='ngvi': leave it at its default."
            )
        rng = self._generator()
        n_inputs, n_hidden = n_features + 1, self.hidden_units
        state = self._state = kernels.NetworkState(
            n_features, n_hidden, n_outputs, scales=self.standardize
        )
        hidden_scale = self.prior_scale / math.sqrt(n_inputs)
        output_scale = self.prior_scale / math.sqrt(n_hidden)
        for hidden, output in zip(state.hidden, state.output, strict=True):
            shape = n_hidden, n_inputs
            hidden[kernels.MEAN] = hidden_scale * rng.normal(size=shape)
            output[kernels.MEAN, :-1] = output_scale * rng.normal(size=n_hidden)
            hidden[kernels.VARIANCE] = hidden_scale**2
            output[kernels.VARIANCE] = output_scale**2
            output[kernels.VARIANCE, -1] = 1.0
            if self.method == "sva":  # its prior is one scale for all weights
                hidden[kernels.VARIANCE] = self.prior_scale**2
                output[kernels.VARIANCE] = self.prior_scale**2
        state.numbers[:, [kernels.RESIDUALS, kernels.COUNT]] = 1.0
        state.numbers[:, kernels.PRIOR_SCALE] = self.prior_scale
        self._set_stream(state.stream)

    def _set_stream(self, stream):
        """Write the settings."""
        stream[names.CLIP] = math.inf if self.clip is None else self.clip
        stream[names.LOSS_KIND] = LOSSES.index(self.loss)
        stream[names.METHOD] = METHODS.index(self.method)
        stream[names.RATE_KIND] = RATES.get(self.learning_rate, names.CONSTANT)
        if self.learning_rate not in RATES:
            stream[names.RATE] = self.learning_rate
        stream[names.MEAN_BOUND], stream[names.SCALE_BOUND] = PAPER_BOX

    def _moments(self, X):
        """Means and variances of the outputs on rows that have been checked."""
        means = np.empty((len(X), len(self._state.numbers)))
        variances = np.empty_like(means)
        kernels.predict_network(X, *self._state.arguments, means, variances)
        return means, variances
