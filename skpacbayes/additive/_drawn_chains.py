"""Chains that draw coefficients, by likelihood: logistic, softmax and Poisson."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtrs
from scipy.special import expit, log_expit, xlogy

from ._chain import log_binomial
from ._gram import precision_factor
from ._rated_chain import (
    INTERCEPT_VARIANCE,
    MOVES,
    Draw,
    RatedChain,
    draw_slab,
    multiply,
    polya_gamma,
)

# r / m at least: the larger, the closer the two likelihoods, and the slower the chain,
# since rates of larger shapes tell more of the scores than the counts do.
LEAST_RATIO = 3.0
# Mean count of all rows together about which they are expanded at least: about less,
# the expansion would not see that larger means are improbable.
LEAST_TOTAL = 1.0
FEWEST, MOST = 0.25, 8.0  # shapes between which whole ones are drawn, which is quicker
LARGEST_LOG = 600.0  # log means whose exponential, times weights, does not overflow
N_SETTLING = 20  # sweeps that are not corrected, and find the means

LOG_2_PI = math.log(2 * math.pi)
# Of moves between models without rates. Newton's ascent to a mode ends at a decrement
# of the log density; where a variable comes in, so many steps are made beyond it.
ARRIVED, MOST_STEPS, MORE_STEPS = 1e-8, 50, 2
# What comes in is drawn by its gain to this power, or else with equal probabilities.
SHARPNESS, SHARE_EVEN = 0.7, 0.1


class Normal(NamedTuple):
    """A normal approximation of intercept and coefficients, about a mode."""

    mean: np.ndarray
    factor: np.ndarray  # lower Cholesky factor of the precision
    slopes: np.ndarray  # of the log likelihood in the score of each row, at the mean
    curvatures: np.ndarray  # minus its second derivatives
    value: float  # log posterior density at the mean, up to a constant
    step: np.ndarray  # Newton's, from the mean
    decrement: float  # Newton's: twice what the step would gain

    def log_density(self, whitened):
        """Log density of a point that is so far from the mean, in units of the factor.

        Without the square, and the constant, which a proposal keeps.
        """
        return np.log(self.factor.diagonal()).sum() - 0.5 * (whitened @ whitened)


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
        """Take other exponents of the likelihood of the rows, and `positive` anew."""
        self.weights = self.shapes = weights
        self._signs = np.where(self.positive, 1.0, -1.0)
        self.pulls = 0.5 * self._signs * weights

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(self.scores)

    def _log_likelihood_of(self, scores):
        return self.weights @ log_expit(self._signs * scores)

    def change_model(self):
        """Propose that a variable comes in, goes, or makes way for another one.

        Where classes are separable, the likelihood is flat over a wide range of scores.
        Given the rates it is not, and the chain walks through this range in short steps
        [1]_. So these moves do without the rates. All other coefficients move along:
        relative to the normal approximations of the posteriors of the two models, whose
        modes and precisions differ, they stay where they were [2]_.

        Which variable comes in, and with how many functions, is drawn by what they gain
        to the second order at the mode of the model without it; so the draw has the
        same probabilities on the way back.

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
        # The candidates are drawn given the variables, and of these goes any one.
        after = size + comes - goes
        log_ratio += self._log_choices(size) - self._log_choices(after)
        log_ratio += (math.log(size) if goes else 0) - (math.log(after) if comes else 0)
        if not math.log1p(-rng.random()) < log_ratio:
            self.draw, self.effects = state

    def _log_density(self):
        """Log density of the current draw, up to a constant."""
        log_prior = self.log_prior() - 0.5 * self.draw.intercept**2 / INTERCEPT_VARIANCE
        return self.log_likelihood() + log_prior

    def _log_choices(self, size):
        """Log number of choices of candidates, given a model of so many variables."""
        return log_binomial(len(self._usable) - size, self.n_chosen - size)

    def _approximation(self, columns, start):
        """Approximate the posterior of intercept and coefficients about its mode."""
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
        """Approximate the posterior of a model with some functions more."""
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
        """Curvature of the log posterior at a point, and Newton's step from there."""
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
        """Log probabilities of the functions that may come in, by their gains."""
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
        scores, known = self.draw.intercept + self.effects, self.offsets
        return lambda factor: self._log_likelihood_of(factor * scores + known)


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
        return self._log_likelihood_of(log_softmax(self._scores()))

    def _log_likelihood_of(self, log_probabilities):
        return self.weights @ log_probabilities[self.codes, np.arange(len(self.codes))]

    def sweep(self):
        """Draw each class given the others, then what all intercepts have in common.

        One class, drawn at random, changes its model without rates, too: this takes as
        long as all else that is drawn of a class.
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
        log_probabilities = log_softmax(self._scores())
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


class PoissonChain(RatedChain):
    """One chain; its intercepts are those of log means.

    About a mean m_i the Poisson log likelihood of a row, y s - exp(s), agrees with

        a s - b log(1 + exp(s - log r)),

    a negative binomial log likelihood to a power, up to the second derivative, if b p
    (1 - p) = m and a = y - m + b p, with p = m / (m + r). Given Pólya-Gamma rates this
    is Gaussian: a sweep under it is reversible, and proposes for the Poisson posterior,
    which accepts or refuses it [1]_. The third derivatives differ by less than half, so
    that nearly all sweeps are accepted.

    Parameters
    ----------
    space, rng
        See :class:`RatedChain`.
    targets : ndarray of shape (n_samples,)
        The counts.
    weights : ndarray of shape (n_samples,)
        Exponent of the likelihood of each row.

    Attributes
    ----------
    base : float
        Logarithm of the mean of the counts: the intercept's prior is centered there.

    References
    ----------
    .. [1] L. D'Angelo and A. Canale (2023). Efficient posterior sampling for Bayesian
       Poisson regression. Journal of Computational and Graphical Statistics 32.
    """

    def __init__(self, space, targets, weights, rng):
        self.targets = targets
        self.base = log_mean(targets, weights)
        super().__init__(space, 0.0, rng)
        self._n_until = N_SETTLING
        self.temper(weights)

    def temper(self, weights):
        """Take other exponents of the likelihood of the rows."""
        self.weights = weights
        self._begin_again(self.log_means)

    @property
    def log_means(self):
        """Logarithms of the means of the current draw, at the rows."""
        return self.draw.intercept + self.effects + self.base

    @property
    def moves(self):
        """Number of sweeps proposed, and accepted."""
        return self._tried, self._accepted

    def settle(self):
        """Find means about which to expand, from where the chain is."""
        total = 0.0
        for number in range(N_SETTLING):
            self.draw_length()
            self._expand(self.log_means)
            super()._move(MOVES)
            if 2 * number >= N_SETTLING:
                total = total + self.log_means
        self._begin_again(total / (N_SETTLING - N_SETTLING // 2))

    def advance(self, n_iter, keep=True):
        """Sweep, and keep the draws or none of them.

        While none are kept, the likelihood is expanded anew whenever the sweeps since
        have doubled, about the mean of their log means.
        """
        for _ in range(n_iter):
            self.sweep()
            if keep:
                loss = self.half_deviance()
                intercept = self.draw.intercept + self.base
                self.kept.append(self.draw._replace(loss=loss, intercept=intercept))
                continue
            self._n_since += 1
            self._total_since += self.log_means
            if self._n_since == self._n_until:
                self._begin_again(self._total_since / self._n_since)
                self._n_until *= 2

    def half_deviance(self):
        """Mean half deviance of the current draw."""
        saturated = self.weights @ (xlogy(self.targets, self.targets) - self.targets)
        return float(saturated - self.log_likelihood()) / self.weights.sum()

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(self.log_means)

    def _log_likelihood_of(self, log_means):
        means = np.exp(np.minimum(log_means, LARGEST_LOG))
        return self.weights @ (self.targets * log_means - means)

    def _along_length(self):
        scores, base = self.draw.intercept + self.effects, self.base
        return lambda factor: self._log_likelihood_of(factor * scores + base)

    def _move(self, n_moves):
        """Propose a sweep, and take it back if it is refused."""
        before = self.draw, self.effects
        log_ratio = -self._log_correction()
        super()._move(n_moves)
        log_ratio += self._log_correction()
        self._tried += 1
        if math.log1p(-self.rng.random()) < log_ratio:
            self._accepted += 1
        else:
            self.draw, self.effects = before

    def _log_correction(self):
        """Log of the Poisson likelihood over that which proposes."""
        scores = self.scores
        proposing = (self.pulls + 0.5 * self.shapes) @ scores
        proposing -= self.shapes @ np.logaddexp(0.0, scores)
        return self.log_likelihood() - proposing

    def draw_rates(self):
        return polya_gamma(self.shapes, self.scores, self.rng, MOST)

    def _expand(self, log_means):
        """Take the likelihood that proposes: the expansion about some log means."""
        logs = np.minimum(log_means, LARGEST_LOG) + np.log(self.weights)
        logs = np.maximum(logs, math.log(LEAST_TOTAL / len(logs)))
        means = np.exp(logs)
        counts = self.weights * self.targets
        # A count far above its mean: the likelihood has to fall beyond it.
        ratios = np.maximum(LEAST_RATIO, counts / means)
        shapes = means * (1 + ratios) ** 2 / ratios
        whole = (shapes >= FEWEST) & (shapes <= MOST)
        shapes[whole] = np.ceil(shapes[whole])
        share = 2 * means / shapes / (1 + np.sqrt(1 - 4 * means / shapes))
        self.shapes = shapes
        self.pulls = counts - means + shapes * (share - 0.5)
        self.offsets = self.base + np.log(self.weights * share / (1 - share)) - logs

    def _begin_again(self, log_means):
        self._expand(log_means)
        self._tried = self._accepted = 0
        self._n_since, self._total_since = 0, np.zeros(len(log_means))


def log_mean(targets, weights):
    """Logarithm of the mean of counts; of half a count, if all are zero."""
    return math.log(max(weights @ targets, 0.5) / weights.sum())


def log_sum_exp(scores):
    """Logarithms of the sums over the classes of exponentials of finite scores.

    In a fifth of the time of SciPy's, which a sweep would spend a fifth of its own on.
    """
    largest = scores.max(axis=0)
    return largest + np.log(np.exp(scores - largest).sum(axis=0))


def log_softmax(scores):
    """Log probabilities of the classes: (n_classes, n_samples)."""
    return scores - log_sum_exp(scores)
