"""The logistic loss: a chain whose tempered likelihood is of logistic form."""

import math

import numpy as np
from scipy.special import log_expit

from ._gram import NO_PAIRS
from ._rated_chain import RatedChain


class LogisticChain(RatedChain):
    """One chain.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_samples,)
        The labels.
    weights : ndarray of shape (n_samples,)
        Exponent of the likelihood of each row.
    values, ranks, beta, most, variance, rng, pairs
        See :class:`RatedChain`.
    """

    def __init__(
        self,
        values,
        positive,
        weights,
        ranks,
        beta,
        most,
        variance,
        rng,
        pairs=NO_PAIRS,
    ):
        self.positive = positive
        share = (weights @ positive + 1) / (weights.sum() + 2)
        intercept = math.log(share / (1 - share))
        super().__init__(values, ranks, beta, most, variance, intercept, rng, pairs)
        self.temper(weights)

    def temper(self, weights):
        """Take other exponents of the likelihood of the rows."""
        self.weights = self.shapes = weights
        self.pulls = np.where(self.positive, 0.5, -0.5) * weights

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        scores = self.scores
        return self.weights @ log_expit(np.where(self.positive, scores, -scores))

    def _along_length(self):
        scores = self.draw.intercept + self.effects
        margins = np.where(self.positive, scores, -scores)
        known = np.where(self.positive, self.offsets, -self.offsets)
        return lambda factor: self.weights @ log_expit(factor * margins + known)
