"""A chain that integrates the noise variance out, and draws the slab's scale."""

import math

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from ._chain import Chain
from ._chain_state import ChainRecord

PERIOD = 20  # moves between draws of the scale
HALVINGS = 0, 1, 2  # levels of the slab: the deviation of y, and so often half of it
ROWS_EACH = 3.0  # rows of each variable from which the variance is integrated out
LEAST_FREEDOM = 3.0  # and degrees of freedom


def may_integrate(settings, problem):
    """Whether the noise variance is integrated out: it is in no other parameter.

    Where there are many variables for the rows, or pairs, it is not: a model that fits
    the noise would make its own variance small.
    """
    given = settings.noise_variance, settings.slab, settings.inverse_temperature
    usual = given == ("auto", "gaussian", "likelihood")
    n_variables = np.count_nonzero(problem.gram.ranks)
    least = max(LEAST_FREEDOM + 1, ROWS_EACH * n_variables)
    return usual and settings.sampler == "collapsed" and problem.weight >= least


def levels_of(settings, problem):
    """Return levels of the slab that are drawn.

    One, if its scale is given or if there are pairs, whose variables are in the model
    whatever their own effects are.
    """
    several = settings.slab_scale == "auto" and not len(problem.gram.pairs)
    return HALVINGS if several else (0,)


class ScaledChain(Chain):
    """A chain on models and scales of the slab, without coefficients and noise.

    The variance s^2 of the noise has the prior 1 / s^2, and coefficients have standard
    deviation s times that of a level. With the variance integrated out a model at a
    level weighs

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 + q log(ridge) / 2,

    b and P as in the kernel. Every 20 moves the level is drawn from its distribution
    given the model. Both leave the joint posterior invariant.

    Parameters
    ----------
    reader : Reader
        The rows of G.
    linear : ndarray of shape (n_features * max_order,)
        b.
    priors : list of Prior
        The prior at each level.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, reader, linear, priors, rng):
        super().__init__(reader, linear, priors[0], rng)
        self._priors, self._level = priors, 0
        self._ridges = np.array([prior.ridge for prior in priors])
        self._moves = 0  # since the level was drawn
        self._begun = []  # number of the first model recorded at a level, and its ridge

    def expect(self, n_steps):
        """Have room to record the next `n_steps` moves; count moves anew."""
        super().expect(n_steps)
        n_models = n_steps + n_steps // PERIOD + 1
        self.record = ChainRecord.empty(n_models, self._largest)

    def _advance(self, n_iter, keep):
        if keep and self.state.n_models == 0:
            self._begun = [(0, self.prior.ridge)]
        while n_iter > 0:
            count = min(n_iter, PERIOD - self._moves)
            super()._advance(count, keep)
            n_iter -= count
            self._moves = (self._moves + count) % PERIOD
            if self._moves == 0 and len(self._priors) > 1:
                self._draw_level(keep)

    def _draw_level(self, keep):
        """Draw the level given the current model; a new one is recorded."""
        logs = self._log_levels()
        shares = np.exp(logs - logsumexp(logs)).cumsum()
        level = int(np.searchsorted(shares, self.rng.random() * shares[-1], "right"))
        if level == self._level:
            return
        change = logs[level] - logs[self._level]
        self._level, self.prior = level, self._priors[level]
        if keep:
            self._begun.append((self.state.n_models, self.prior.ridge))
            place, columns = self.state.n_models, self.columns()
            self.record.columns[place, : len(columns)] = columns + 1
            self.record.weights[place] = self.state.log_weight + change
            self.state.count(models=1)
        self.state.forget()

    def _log_levels(self):
        """Log weights of the current model at all levels, but for a constant."""
        columns = self.columns()
        logs = np.array([p.log_totals[len(columns)] for p in self._priors])
        if len(columns) == 0:
            return logs
        squares, directions = eigh(self.reader.among(columns), check_finite=False)
        damped = np.maximum(squares, 0.0) + self._ridges[:, None]
        shares = (directions.T @ self.linear[columns]) ** 2
        fits = (shares / damped).sum(axis=1)
        logs -= self.prior.freedom / 2 * np.log1p(-fits / self.prior.square)
        return logs - np.log(damped).sum(axis=1) / 2

    def _model_ridges(self, n_models):
        first, ridges = np.array(self._begun or [(0, self.prior.ridge)]).T
        number = np.searchsorted(first, np.arange(n_models), side="right") - 1
        return ridges[number]


def scaled_priors(prior, variance, levels, rarer, freedom, square):
    """Priors at several levels of the slab, the noise variance integrated out.

    With a narrower slab a variable without effect costs less. Where y is noise, the
    evidence of a level has expectation 1 relative to that of no effect: with p
    variables, of which each halving makes a level p times less probable, fewer than one
    is expected to come in by it.

    Parameters
    ----------
    prior : callable
        Returns the prior for a variance of the coefficients.
    variance : float
        The largest, in units of the variance of the noise.
    levels : sequence of int
        How often the standard deviation is halved.
    rarer : float
        Each halving divides the probability of a level by this number.
    freedom : float
        Degrees of freedom, the number of rows less one.
    square : float
        Sum of squares of y less its mean, in these units.
    """
    priors = []
    for level in levels:
        one = prior(variance / 4**level)._replace(freedom=freedom, square=square)
        one.log_totals[:] -= level * math.log(rarer)
        priors.append(one)
    return priors


def noise_factors(prior, fits):
    """Mean of the noise variance given each model, in units; 1 where it is known.

    `fits` are b' P^-1 b.
    """
    if prior.freedom == 0:
        return np.ones_like(fits)
    rest = np.maximum(prior.square - fits, math.ulp(prior.square))
    return rest / max(prior.freedom - 2, 1.0)
