"""A Markov chain on parameters, with likelihoods estimated by a particle filter."""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._base import widened
from ._cloud import LEAST_LOG_LIKELIHOOD
from ._priors import Priors, naming

ACCEPTANCE = 0.234  # to which the steps are adapted during the burn-in
N_STARTS = 10  # number of prior draws, of which the likeliest is the start
N_SPREAD = 200  # number of prior draws whose spread determines the first steps
# After STUCK iterations with acceptance probabilities below HOPELESS, the steps are
# multiplied by SHORTER: the prior is then much wider than the posterior.
HOPELESS, STUCK, SHORTER = 1e-3, 15, 0.25


class Target:
    """Estimated log posterior density of transformed parameters."""

    def __init__(self, estimator, priors, X, inputs):
        self.estimator = widened(estimator)
        self.priors = Priors(priors)
        self.X = X
        self.inputs = inputs
        self._checked = False  # whether a filter has checked the model

    def log_density(self, position, generator):
        """Return the log prior density plus an estimate of the log-likelihood."""
        log_prior = self.priors.log_density(position[None])[0]
        if log_prior == -np.inf:
            return -np.inf
        seed = int(generator.integers(2**31 - 1))
        return float(log_prior) + self.log_likelihood(position, seed)

    def log_likelihood(self, position, seed):
        """Return an estimate of the log-likelihood, which may be -inf."""
        values = self.priors.values(position)
        with np.errstate(all="ignore"):  # a model may overflow at extreme parameters
            found = self.fitted(values, seed, underflow="warn").log_likelihood_
        return found if found > LEAST_LOG_LIKELIHOOD else -np.inf

    def fitted(self, values, seed, **settings):
        """Return the filter with given parameters, run over the rows."""
        settings = {**values, **settings, "random_state": seed}
        tracker = clone(self.estimator).set_params(**settings)
        tracker._checks_moves = not self._checked
        given = {} if self.inputs is None else {"inputs": self.inputs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with naming(values):
                tracker.fit(self.X, **given)
        self._checked = True
        return tracker


class ParameterChain:
    """Random-walk Metropolis with estimated likelihoods.

    The estimate at the current parameters is kept until a proposal is accepted, so that
    the chain has the exact posterior as its stationary distribution, whatever the
    number of particles.
    """

    def __init__(self, target, generator):
        self.target = target
        self.generator = generator
        starts = target.priors.draw(N_STARTS, generator)
        densities = [target.log_density(start, generator) for start in starts]
        if not np.max(densities) > -np.inf:
            raise ValueError(
                f"The likelihood is zero at each of {N_STARTS} parameters drawn from "
                "the priors: check that the priors are in the units of the rows "
                "(variances in their squares), and try narrower priors, or more "
                "particles."
            )
        self.position = starts[np.argmax(densities)]
        self.density = np.max(densities)
        spread = target.priors.draw(N_SPREAD, generator).std(axis=0)
        self.factor = np.diag(spread) / np.sqrt(len(spread))
        self.n_adapted = 0
        self.n_hopeless = 0  # last iterations that could hardly be accepted
        self.n_accepted = 0
        self.kept = []

    @property
    def n_kept(self):
        """Number of draws kept."""
        return len(self.kept)

    def advance(self, n_iter, keep):
        """Make iterations; keep their draws, or adapt the proposal."""
        for _ in range(n_iter):
            normals = self.generator.standard_normal(len(self.position))
            proposed = self.position + self.factor @ normals
            density = self.target.log_density(proposed, self.generator)
            with np.errstate(under="ignore"):
                probability = float(np.exp(min(0.0, density - self.density)))
            accepted = self.generator.random() < probability
            if accepted:
                self.position, self.density = proposed, density
            if keep:
                self.n_accepted += accepted
                self.kept.append(self.position)
            else:
                self._adapt(normals, probability)

    def _adapt(self, normals, probability):
        """Adapt the steps to the acceptance probability (Vihola 2012)."""
        self.n_adapted += 1
        rate = min(1.0, len(normals) * self.n_adapted ** (-2 / 3))
        direction = self.factor @ (normals / np.linalg.norm(normals))
        change = rate * (probability - ACCEPTANCE) * np.outer(direction, direction)
        self.factor = np.linalg.cholesky(self.factor @ self.factor.T + change)
        self.n_hopeless = self.n_hopeless + 1 if probability < HOPELESS else 0
        if self.n_hopeless == STUCK:
            self.n_hopeless = 0
            self._shorten()

    def _shorten(self):
        """Shorten the steps of parameters that a step alone makes far too unlikely.

        The adaptation is slow: it would shorten steps by a factor of about 10 in all.
        """
        spreads = np.linalg.norm(self.factor, axis=1)
        sides = np.where(self.generator.random(len(spreads)) < 0.5, -1.0, 1.0)
        density = [
            self.target.log_density(self.position + step, self.generator)
            for step in np.diag(sides * spreads)
        ]
        long = np.array(density) - self.density < np.log(HOPELESS)
        self.factor[long if long.any() else slice(None)] *= SHORTER
