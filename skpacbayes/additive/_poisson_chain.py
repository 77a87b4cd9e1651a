"""Counts: a chain on models whose Poisson likelihood is nearly of logistic form.

About a mean m_i the Poisson log likelihood of a row, y s - exp(s), agrees with

    a s - b log(1 + exp(s - log r)),

a negative binomial log likelihood to a power, up to the second derivative, if b p
(1 - p) = m and a = y - m + b p, with p = m / (m + r). Given Pólya-Gamma rates this is
Gaussian: a sweep under it is reversible, and proposes for the Poisson posterior, which
accepts or refuses it [1]_. The third derivatives differ by less than half, so that
nearly all sweeps are accepted.

References
----------
.. [1] L. D'Angelo and A. Canale (2023). Efficient posterior sampling for Bayesian
   Poisson regression. Journal of Computational and Graphical Statistics 32.
"""

import math

import numpy as np
from scipy.special import xlogy

from ._rated_chain import MOVES, RatedChain, polya_gamma

# r / m at least: the larger, the closer the two likelihoods, and the slower the chain,
# since rates of larger shapes tell more of the scores than the counts do.
LEAST_RATIO = 3.0
# Mean count of all rows together about which they are expanded at least: about less,
# the expansion would not see that larger means are improbable.
LEAST_TOTAL = 1.0
FEWEST, MOST = 0.25, 8.0  # shapes between which whole ones are drawn, which is quicker
LARGEST = 600.0  # log means whose exponential, times weights, does not overflow
N_SETTLING = 20  # sweeps that are not corrected, and find the means


class PoissonChain(RatedChain):
    """One chain; its intercepts are those of log means.

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
        means = np.exp(np.minimum(log_means, LARGEST))
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
        logs = np.minimum(log_means, LARGEST) + np.log(self.weights)
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
