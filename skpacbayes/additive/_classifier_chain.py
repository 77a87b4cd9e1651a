"""Chains of the logistic loss of two classes, and of the softmax of several."""

import math

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from ._rated_chain import INTERCEPT_VARIANCE, Draw, RatedChain


class LogisticChain(RatedChain):
    """One chain.

    Parameters
    ----------
    space, rng
        See :class:`RatedChain`.
    positive : ndarray of bool of shape (n_samples,)
        The labels.
    weights : ndarray of shape (n_samples,)
        Exponent of the likelihood of each row.
    """

    def __init__(self, space, positive, weights, rng):
        self.positive = positive
        share = (weights @ positive + 1) / (weights.sum() + 2)
        intercept = math.log(share / (1 - share))
        super().__init__(space, intercept, rng)
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


class SoftmaxChain:
    """One chain of a softmax likelihood, with a model and coefficients of each class.

    Given the scores of the other classes, the likelihood is logistic in the score of a
    class less the log of the sum of the others' exponentials: a :class:`LogisticChain`
    moves each class in turn.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_classes, n_samples)
        Of which class the rows are.
    space, weights, rng
        See :class:`LogisticChain`.
    """

    def __init__(self, space, positive, weights, rng):
        self.classes = [LogisticChain(space, own, weights, rng) for own in positive]
        self.codes = positive.argmax(axis=0)
        self.weights, self.rng = weights, rng
        self.kept = []

    @property
    def prior(self):
        """The prior of the models of a class."""
        return self.classes[0].prior

    @property
    def n_kept(self):
        """Number of draws kept."""
        return len(self.kept)

    @property
    def moves(self):
        """Number of moves tried, and accepted."""
        return tuple(np.sum([chain.moves for chain in self.classes], axis=0))

    def advance(self, n_iter, keep=True):
        """Sweep, and keep the draws or none of them.

        The draw of all classes has the functions that any of them has; those of each
        class are kept by its chain, with intercepts of mean zero.
        """
        for _ in range(n_iter):
            self.sweep()
            if keep:
                loss = -self.log_likelihood() / self.weights.sum()
                draws = [chain.draw for chain in self.classes]
                common = np.mean([draw.intercept for draw in draws])
                for chain, (columns, coefficients, intercept, _) in zip(
                    self.classes, draws, strict=True
                ):
                    chain.kept.append(
                        Draw(columns, coefficients, intercept - common, loss)
                    )
                columns = np.unique(np.concatenate([draw.columns for draw in draws]))
                self.kept.append(Draw(columns, np.zeros(len(columns)), 0.0, loss))

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        log_probabilities = log_softmax(self._scores(), axis=0)
        return (
            self.weights
            @ np.take_along_axis(log_probabilities, self.codes[None], axis=0)[0]
        )

    def sweep(self):
        """Draw each class given the others, then what all intercepts have in common."""
        scores = self._scores()
        for k, chain in enumerate(self.classes):
            chain.offsets = -logsumexp(np.delete(scores, k, axis=0), axis=0)
            chain.sweep()
            scores[k] = chain.draw.intercept + chain.effects
        self._draw_common_intercept()

    def _scores(self):
        """Scores of the classes at the rows: (n_classes, n_samples)."""
        return np.array(
            [chain.draw.intercept + chain.effects for chain in self.classes]
        )

    def _draw_common_intercept(self):
        """Draw the mean of the intercepts, on which the likelihood does not depend."""
        intercepts = np.array([chain.draw.intercept for chain in self.classes])
        deviation = math.sqrt(INTERCEPT_VARIANCE / len(intercepts))
        change = deviation * self.rng.standard_normal() - intercepts.mean()
        for chain in self.classes:
            chain.draw = chain.draw._replace(intercept=chain.draw.intercept + change)
