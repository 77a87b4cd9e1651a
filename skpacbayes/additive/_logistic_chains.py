"""Chains of a logistic likelihood, and of a softmax likelihood, one class at a time."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtrs
from scipy.special import expit

from .._kernels.logistic import log_likelihood
from ..certificates.additive import log_binomial, precision_factor
from ._rated_chain import (
    INTERCEPT_VARIANCE,
    MOVES,
    STEP,
    Draw,
    DrawnChain,
    RatedChain,
    multiply,
    slice_draw,
)

LOG_2_PI = math.log(2 * math.pi)
# Of moves between models without rates: decrement of the log density at which Newton's
# ascent to a mode ends; number of further steps after a variable was added.
ARRIVED, MOST_STEPS, MORE_STEPS = 1e-8, 50, 2
# Power of the gain in the probability that a function is added, which is mixed with a
# uniform one.
SHARPNESS, SHARE_EVEN = 0.7, 0.1
SHARE_ONE = 0.7  # of the lines in the coefficients of one variable
# Of the prior of the slab's scale, of density tail / scale^(1 + tail): of the one that
# chains draw, whose mean is 2, and of the one that is found for two classes.
SLAB_TAIL, FOUND_TAIL = 2, 1
N_LINES = 4  # lines along which the coefficients are drawn in a sweep, without rates


class Normal(NamedTuple):
    """A normal approximation of intercept and coefficients, about a mode."""

    mean: np.ndarray
    factor: np.ndarray  # lower Cholesky factor of the precision
    slopes: np.ndarray  # derivatives of the log-likelihood in the scores, at the mean
    curvatures: np.ndarray  # minus the second derivatives
    value: float  # log posterior density at the mean, up to a constant
    step: np.ndarray  # Newton step from the mean
    decrement: float  # Newton decrement: twice the predicted gain of the step

    def log_density(self, whitened):
        """Return the log density at a whitened distance from the mean.

        The square and the constant, which a proposal does not change, are left out.
        """
        return np.log(self.factor.diagonal()).sum() - 0.5 * (whitened @ whitened)


class LogisticChain(RatedChain):
    """One chain of a logistic likelihood.

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
        """Set the exponents of the likelihood of the rows."""
        self.weights = self.shapes = weights
        self._signs = np.where(self.positive, 1.0, -1.0)
        self.pulls = 0.5 * self._signs * weights

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(self.scores)

    def _log_likelihood_of(self, scores):
        return self._along(scores, scores)(0.0)

    def _along(self, start, direction):
        """Return the log likelihood on a line of scores, a function of a number."""
        signs, weights = self._signs, self.weights
        return lambda length: log_likelihood(start, direction, length, signs, weights)

    def sweep(self, n_moves=MOVES):
        """Draw the norm, then all else, then along lines."""
        self.draw_length()
        self._move(n_moves)
        self.draw_along_lines(N_LINES)

    def draw_along_lines(self, n_lines):
        """Draw coefficients and intercept along random lines, given the model [1]_.

        The rates are not used: if classes are nearly separable, the likelihood is flat
        over a range of scores that is wide against steps given the rates. The direction
        of a line is normal in the intercept and in the coefficients of one variable, or
        of all, as the number drawn for it says. So it does not depend on the current
        draw, and slice sampling along the line leaves the posterior invariant.

        References
        ----------
        .. [1] M.-H. Chen and B. W. Schmeiser (1996). General hit-and-run Monte Carlo
           sampling for evaluating multidimensional integrals. Operations Research
           Letters 19.
        """
        draw, rng, scores = self.draw, self.rng, self.scores
        count, step = len(draw.columns), STEP * self.slab_scale
        if count == 0:
            return
        owners, rows = draw.columns // self.values.shape[1], self._flat[draw.columns]
        turns = rng.standard_normal((n_lines, 1 + count))
        of_one = owners == owners[rng.integers(count, size=n_lines)][:, None]
        turns[:, 1:] *= of_one | (rng.random(n_lines) > SHARE_ONE)[:, None]
        changes = turns[:, :1] + turns[:, 1:] @ rows
        ridges = np.full(1 + count, self.prior.ridge)
        ridges[0] = 1 / INTERCEPT_VARIANCE
        precisions = ridges * turns
        squares = np.einsum("ij,ij->i", precisions, turns).tolist()
        point = np.concatenate([[draw.intercept], draw.coefficients])
        for line in range(n_lines):
            slope = float(precisions[line] @ point)
            density = self._density_along(scores, changes[line], squares[line], slope)
            t = slice_draw(density, 0.0, step, rng)
            point += t * turns[line]
            scores = scores + t * changes[line]
        self.draw = draw._replace(intercept=point[0], coefficients=point[1:])
        self.effects = point[1:] @ rows

    def _density_along(self, scores, change, square, slope):
        """Return the log density on a line, with the prior's square and slope there."""
        likelihood = self._along(scores, change)
        return lambda t: likelihood(t) - (0.5 * square * t + slope) * t

    def change_model(self):
        """Propose to add, delete or exchange a variable, without the rates.

        If classes are separable, the likelihood is flat over a wide range of scores.
        Given the rates it is not, and the chain moves through this range in short steps
        [1]_. These moves therefore do not use the rates. The other coefficients are
        changed so that their whitened values, under the normal approximations of the
        posteriors of the two models, stay the same [2]_.

        The variable that is added, and its number of functions, are drawn by their
        second-order gains at the mode of the model without the variable, so that the
        reverse move has the same probabilities.

        References
        ----------
        .. [1] J. E. Johndrow, A. Smith, N. Pillai and D. B. Dunson (2019). MCMC for
           imbalanced categorical data. JASA 114.
        .. [2] S. P. Brooks, P. Giudici and G. O. Roberts (2003). Efficient construction
           of reversible jump Markov chain Monte Carlo proposal distributions. JRSS B.
        """
        draw, rng, width = self.draw, self.rng, self.values.shape[1]
        features, _ = self.model
        comes, goes = ((True, False), (False, True), (True, True))[rng.integers(3)]
        if goes and len(features) == 0:
            return
        chosen = self._choice(features)
        goner = features[rng.integers(len(features))] if goes else -1
        moving = draw.columns // width == goner
        old, kept = draw.columns[moving], draw.columns[~moving]
        point = np.concatenate(
            [[draw.intercept], draw.coefficients[~moving], draw.coefficients[moving]]
        )
        base = self._approximation(kept, point[: 1 + len(kept)])
        others = np.setdiff1d(chosen, kept // width)
        log_shares = self._log_shares(base, others)
        new, log_ratio = kept[:0], 0.0
        if comes:
            if log_shares.max(initial=-math.inf) == -math.inf:
                return
            picked = np.searchsorted(np.exp(log_shares).cumsum(), rng.random())
            picked = min(picked, log_shares.size - 1)
            number, last = divmod(picked, width)
            new = others[number] * width + np.arange(last + 1)
            log_ratio -= log_shares[picked]
        if goes:
            number = others.searchsorted(goner)
            log_ratio += log_shares[number * width + len(old) - 1]
        before, after = (self._with(base, kept, columns) for columns in (old, new))
        whitened = before.factor.T @ (point - before.mean)
        normal = rng.standard_normal(len(new))
        moved = np.concatenate([whitened[: 1 + len(kept)], normal])
        log_ratio += before.log_density(whitened) - after.log_density(moved)
        log_ratio += 0.5 * LOG_2_PI * (len(new) - len(old))
        step, _ = dtrtrs(after.factor, moved, lower=1, trans=1)
        proposed = after.mean + step
        log_ratio -= self._log_density()
        state, size = (draw, self.effects), len(features)
        columns = np.concatenate([kept, new])
        self.draw = Draw.of(columns, proposed[1:], proposed[0])
        self.effects = self.draw.coefficients @ self._flat[self.draw.columns]
        log_ratio += self._log_density()
        # Candidates are drawn given the variables; the variable deleted is uniform.
        after = size + comes - goes
        log_ratio += self._log_choices(size) - self._log_choices(after)
        log_ratio += (math.log(size) if goes else 0) - (math.log(after) if comes else 0)
        if not math.log1p(-rng.random()) < log_ratio:
            self.draw, self.effects = state

    def _log_density(self):
        """Return the log density of the current draw, up to a constant."""
        log_prior = self.log_prior() - 0.5 * self.draw.intercept**2 / INTERCEPT_VARIANCE
        return self.log_likelihood() + log_prior

    def _log_choices(self, size):
        """Return the log number of choices of candidates, given the model size."""
        return log_binomial(len(self.usable) - size, self.n_chosen - size)

    def _approximation(self, columns, start):
        """Return the normal approximation of intercept and coefficients at the mode."""
        functions = self._design(columns)
        best, share = self._newton(functions, start), 1.0
        for _ in range(MOST_STEPS):
            if best.decrement < ARRIVED:
                break
            found = self._newton(functions, best.mean + share * best.step)
            if found.value > best.value:
                best, share = found, 1.0
            else:
                share *= 0.5
        return best

    def _with(self, base, kept, columns):
        """Return the normal approximation of a model with further functions."""
        if len(columns) == 0:
            return base
        functions = self._design(np.concatenate([kept, columns]))
        point = np.concatenate([base.mean, np.zeros(len(columns))])
        for _ in range(MORE_STEPS):
            point = point + self._newton(functions, point).step
        return self._newton(functions, point)

    def _design(self, columns):
        return np.concatenate([np.ones((1, len(self.positive))), self._flat[columns]])

    def _newton(self, functions, point):
        """Return the curvature of the log posterior, and Newton step, at a point."""
        scores = point @ functions + self.offsets
        probabilities = expit(scores)
        slopes = self.weights * (self.positive - probabilities)
        curvatures = self.weights * probabilities * (1 - probabilities)
        ridge = np.full(len(point), self.prior.ridge)
        ridge[0] = 1 / INTERCEPT_VARIANCE
        gradient = functions @ slopes - ridge * point
        value = self._log_likelihood_of(scores) - 0.5 * (ridge * point) @ point
        factor = precision_factor((functions * curvatures) @ functions.T, ridge)
        step, _ = dpotrs(factor, gradient, lower=1)
        return Normal(point, factor, slopes, curvatures, value, step, gradient @ step)

    def _log_shares(self, base, features):
        """Return log probabilities of adding functions, by their gains."""
        values, width = self._values_of(features), self.values.shape[1]
        flat, ridge = values.reshape(-1, values.shape[2]), self.prior.ridge
        may = (np.arange(width) < self.ranks[features, None]).ravel()
        if not may.any():
            return np.full(len(may), -math.inf)
        precisions = np.square(flat) @ base.curvatures + ridge
        gains = (flat @ base.slopes) ** 2 / precisions - np.log(precisions / ridge)
        gains = 0.5 * gains + math.log(self.space.beta)
        gains = gains.reshape(-1, width).cumsum(axis=1)
        gains = np.where(may, SHARPNESS * gains.ravel(), -math.inf)
        shares = np.exp(gains - gains.max())
        shares = (1 - SHARE_EVEN) * shares / shares.sum() + SHARE_EVEN * may / may.sum()
        with np.errstate(divide="ignore"):
            return np.log(shares)

    def _along_length(self):
        scores = self.draw.intercept + self.effects
        return self._along(np.broadcast_to(self.offsets, scores.shape) + 0.0, scores)


class SoftmaxChain(DrawnChain):
    """One chain of a softmax likelihood, with a model and coefficients of each class.

    Given the other scores, the likelihood is logistic in the score of a class minus the
    log-sum-exp of the other scores: a :class:`LogisticChain` updates each class in
    turn.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_classes, n_samples)
        One-hot codes of the classes of the rows.
    space, weights, rng
        See :class:`LogisticChain`.
    """

    def __init__(self, space, positive, weights, rng):
        super().__init__()
        self._draws_slab = space.variance is None
        if self._draws_slab:
            space = space._replace(variance=4.0)  # initial value
        self.classes = [LogisticChain(space, own, weights, rng) for own in positive]
        self.codes = positive.argmax(axis=0)
        self.weights, self.rng = weights, rng

    @property
    def prior(self):
        """The prior of the models of a class."""
        return self.classes[0].prior

    @property
    def moves(self):
        """Number of moves tried, and accepted."""
        return tuple(np.sum([chain.moves for chain in self.classes], axis=0))

    def _record(self):
        """Return the draw of all classes, which has the functions of any of them.

        The draw of each class is kept by its chain, with intercepts of mean zero.
        """
        loss = -self.log_likelihood() / self.weights.sum()
        draws = [chain.draw for chain in self.classes]
        common = np.mean([draw.intercept for draw in draws])
        scale = self.classes[0].slab_scale
        for chain, draw in zip(self.classes, draws, strict=True):
            intercept = draw.intercept - common
            kept = draw._replace(intercept=intercept, loss=loss, slab_scale=scale)
            chain.kept.append(kept)
        columns = np.unique(np.concatenate([draw.columns for draw in draws]))
        return Draw(columns, np.zeros(len(columns)), 0.0, loss, scale)

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(log_softmax(self._scores()))

    def _log_likelihood_of(self, log_probabilities):
        return self.weights @ log_probabilities[self.codes, np.arange(len(self.codes))]

    def sweep(self):
        """Draw each class given the others, then the mean of the intercepts.

        One class, drawn at random, also changes its model without rates, which takes as
        long as all other updates of a class.
        """
        scores = self._scores()
        for k, chain in enumerate(self.classes):
            chain.offsets = -log_sum_exp(np.delete(scores, k, axis=0))
            chain.sweep()
            scores[k] = chain.draw.intercept + chain.effects
        if len(self.classes[0].space.pairs) == 0:
            k = self.rng.integers(len(self.classes))
            self.classes[k].offsets = -log_sum_exp(np.delete(scores, k, axis=0))
            self.classes[k].change_model()
            self._transfer()
        self._draw_common_intercept()
        if self._draws_slab:
            draw_slab(self.classes, self.rng)
            scores = self._scores()

            def along_length(factor):
                return self._log_likelihood_of(log_softmax(factor * scores))

            multiply(self.classes, along_length, self.rng, log_slab_prior)

    def _transfer(self):
        """Propose to move effects of variables to the scores without them.

        Subtracting a function from all scores changes no probability: an effect on one
        score is equivalent to its negative on all others. A chain that updates one
        class at a time hardly moves between the two models.

        A variable can be moved if some classes have it, all with the same number of
        functions, and others do not. Coefficients are proposed about minus the mean of
        the old ones, with the standard deviations of a posterior of independent
        functions.
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
        """Return the log density of the current draw, and the information of scores."""
        log_probabilities = log_softmax(self._scores())
        log_density = self._log_likelihood_of(log_probabilities)
        log_density += sum(chain.log_prior() for chain in self.classes)
        shares = np.exp(log_probabilities)
        return log_density, self.weights * shares * (1 - shares)

    def _deviations(self, state, rows):
        """Return standard deviations of coefficients, for the score of each class."""
        information = state[1] @ np.square(rows).T
        return (information + self.classes[0].prior.ridge) ** -0.5

    def _scores(self):
        """Return the scores (n_classes, n_samples) of the classes at the rows."""
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


def log_slab_prior(log_scale):
    """Return the log prior of the log slab scale: Pareto's, of density 2 / scale^3.

    The scale is at least 1: a smaller one would put variables without effects in the
    model. The tail must not be heavier: with separable classes, the posterior mean of
    the coefficients would not exist under a half-Cauchy scale.
    """
    return -SLAB_TAIL * log_scale if log_scale >= 0.0 else -math.inf


def draw_slab(chains, rng):
    """Draw the common slab scale of chains, given their coefficients.

    Parameters
    ----------
    chains : list of RatedChain
        The chains, whose scale is set.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    coefficients = np.concatenate([chain.draw.coefficients for chain in chains])
    square, count = 0.5 * (coefficients @ coefficients), len(coefficients)

    def log_density(log_scale):
        fit = square * math.exp(-2 * log_scale) + count * log_scale
        return log_slab_prior(log_scale) - fit

    start = math.log(chains[0].slab_scale)
    variance = math.exp(2 * slice_draw(log_density, start, STEP, rng))
    for chain in chains:
        chain.prior = chain.prior.rescaled(variance)


def most_probable_slab(chain, n_sweeps):
    """Return the most probable slab scale, by a short run of a chain.

    Stochastic EM [1]_: after each sweep, the log scale maximises its posterior given
    averages of the draws so far, recent ones mostly. It is 0 where the coefficients are
    smaller than that, or there are none. The tail of its prior is heavier than that of
    a scale that is drawn: with a single scale, the coefficients have a mean.

    Parameters
    ----------
    chain : RatedChain
        The chain, whose scale is changed.
    n_sweeps : int
        Number of sweeps.

    References
    ----------
    .. [1] B. Delyon, M. Lavielle and E. Moulines (1999). Convergence of a stochastic
       approximation version of the EM algorithm. Annals of Statistics 27.
    """
    averages = np.zeros(2)  # of the number of coefficients, and of their squares' sum
    for sweep in range(1, n_sweeps + 1):
        chain.sweep()
        coefficients = chain.draw.coefficients
        current = np.array([len(coefficients), coefficients @ coefficients])
        averages += (current - averages) * min(1.0, 2 / sweep)
        count, square = averages
        scale = max(1.0, math.sqrt(square / (count + FOUND_TAIL)))
        chain.prior = chain.prior.rescaled(scale**2)
    return float(scale)


def log_sum_exp(scores):
    """Return the log-sum-exp over the classes of finite scores.

    It takes a fifth of the time of SciPy's, which would be a fifth of the time of a
    sweep.
    """
    largest = scores.max(axis=0)
    return largest + np.log(np.exp(scores - largest).sum(axis=0))


def log_softmax(scores):
    """Return the log probabilities of the classes."""
    return scores - log_sum_exp(scores)
