"""What a fitted state answers, computed when it is first asked for."""

from functools import cached_property

import numpy as np
from scipy.special import expit, logsumexp

SCORED_ROWS = 4096  # rows whose predictive densities are in memory at once


class Answer:
    """The mixture that a state describes, with the rows of its unfinished block.

    Parameters
    ----------
    stream : Stream
        The stream with its pending rows used.
    statistics : ndarray of shape (n_components, n_columns)
        Those of all rows.
    bound : float
        The bound J of all rows.
    history : list of float
        Bounds of the last iterations.
    """

    def __init__(self, stream, statistics, bound, history):
        self.stream = stream
        self.statistics = statistics
        self.bound = bound
        self.history = history

    @property
    def mixture(self):
        """The prior and the temperature."""
        return self.stream.learned.mixture

    @property
    def state(self):
        """The distribution of the weights and of the components."""
        return self.stream.state

    # What follows is found when it is first asked for.

    @cached_property
    def responsibilities(self):
        """Scorer of E log p_k + E log q_k(x)."""
        state = self.state
        return self.mixture.family.scorer(state.components, state.log_weights)

    def outlier_probabilities(self, scores):
        """Probabilities that rows with these responsibilities are outliers."""
        log_outlier = self.mixture.family.log_outlier(self.state.components)
        log_outlier += logsumexp(self.state.log_weights)
        return expit(log_outlier - logsumexp(scores, axis=1))

    @cached_property
    def predictive(self):
        """Scorer of the log predictive densities of the components."""
        return self.mixture.family.predictive_scorer(self.state.components)

    @cached_property
    def log_weights(self):
        """Logarithms of the posterior means of the weights."""
        concentration = self.state.concentration
        return np.log(concentration / concentration.sum())

    @cached_property
    def parameters(self):
        """Posterior of the components, by name."""
        return self.mixture.family.attributes(self.state.components)


def tiles(scorer, X):
    """Yield slices of the rows, and their scores in an array used again and again."""
    n_rows = X.shape[0]
    scores = np.empty((min(n_rows, SCORED_ROWS), scorer.n_components))
    for start in range(0, n_rows, SCORED_ROWS):
        part = X if n_rows <= SCORED_ROWS else X[start : start + SCORED_ROWS]
        out = scores[: part.shape[0]]
        scorer.write(part, out)
        yield slice(start, start + SCORED_ROWS), out
