"""Chains of the logistic loss of two classes, and of the softmax of several."""

import math

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from ._rated_chain import INTERCEPT_VARIANCE, Draw, RatedChain, draw_slab, multiply


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
        self._draws_slab = space.variance is None
        if self._draws_slab:
            space = space._replace(variance=4.0)  # to begin with
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
                scale = self.classes[0].slab_scale
                for chain, draw in zip(self.classes, draws, strict=True):
                    intercept = draw.intercept - common
                    kept = draw._replace(intercept=intercept, loss=loss)
                    chain.kept.append(kept._replace(slab_scale=scale))
                columns = np.unique(np.concatenate([draw.columns for draw in draws]))
                draw = Draw(columns, np.zeros(len(columns)), 0.0, loss, scale)
                self.kept.append(draw)

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(log_softmax(self._scores(), axis=0))

    def _log_likelihood_of(self, log_probabilities):
        return self.weights @ log_probabilities[self.codes, np.arange(len(self.codes))]

    def sweep(self):
        """Draw each class given the others, then what all intercepts have in common."""
        scores = self._scores()
        for k, chain in enumerate(self.classes):
            chain.offsets = -logsumexp(np.delete(scores, k, axis=0), axis=0)
            chain.sweep()
            scores[k] = chain.draw.intercept + chain.effects
        if len(self.classes[0].space.pairs) == 0:
            self._transfer()
        self._draw_common_intercept()
        if self._draws_slab:
            draw_slab(self.classes, self.rng)
            scores = self._scores()

            def along_length(factor):
                return self._log_likelihood_of(log_softmax(factor * scores, axis=0))

            multiply(self.classes, along_length, self.rng, with_slab=True)

    def _transfer(self):
        """Propose that variables change to the scores that do not have them.

        A function less in all scores changes no probability: an effect on the score of
        one class is nearly minus the same on those of all others. A chain that moves
        one class at a time hardly finds its way from the one model to the other.

        Each variable may change that some classes have, all with as many functions, and
        others do not. Coefficients are proposed about minus the mean of those that go,
        with the deviations of a posterior whose functions are independent.
        """
        chains, space = self.classes, self.classes[0].space
        orders = np.zeros((len(chains), len(space.ranks)), dtype=int)
        for own, chain in zip(orders, chains, strict=True):
            features, levels = chain.model
            own[features] = levels
        most = orders.max(axis=0)
        may = (most > 0) & (orders.min(axis=0) == 0)
        may &= ((orders == 0) | (orders == most)).all(axis=0)
        now = self._state()
        for feature in np.flatnonzero(may):
            columns = feature * space.values.shape[1] + np.arange(most[feature])
            rows = space.values[feature, : most[feature]]
            gone = orders[:, feature] > 0
            before = [(chain.draw, chain.effects) for chain in chains]
            own, others = (np.flatnonzero(mask) for mask in (gone, ~gone))
            old = np.array([chains[k].coefficients_of(columns) for k in own])
            deviations = self._deviations(now, rows)[others]
            normal = self.rng.standard_normal(deviations.shape)
            new = deviations * normal - old.mean(axis=0)
            log_ratio = 0.5 * (normal**2).sum() + np.log(deviations).sum()
            for k in own:
                chains[k].exchange(columns, None)
            for k, coefficients in zip(others, new, strict=True):
                chains[k].exchange(columns, coefficients)
            then = self._state()
            deviations = self._deviations(then, rows)[own]
            normal = (old + new.mean(axis=0)) / deviations
            log_ratio -= 0.5 * (normal**2).sum() + np.log(deviations).sum()
            log_ratio += 0.5 * math.log(2 * math.pi) * (new.size - old.size)
            log_ratio += then[0] - now[0]
            if math.log1p(-self.rng.random()) < log_ratio:
                now = then
                continue
            for chain, (draw, effects) in zip(chains, before, strict=True):
                chain.draw, chain.effects = draw, effects

    def _state(self):
        """Log density of the current draw, and the information of each score."""
        log_probabilities = log_softmax(self._scores(), axis=0)
        log_density = self._log_likelihood_of(log_probabilities)
        log_density += sum(chain.log_prior() for chain in self.classes)
        shares = np.exp(log_probabilities)
        return log_density, self.weights * shares * (1 - shares)

    def _deviations(self, state, rows):
        """Deviations of the coefficients of functions, in the score of each class."""
        information = state[1] @ np.square(rows).T
        return (information + self.classes[0].prior.ridge) ** -0.5

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
