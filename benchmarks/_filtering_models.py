"""State-space models of the benchmark: ours, the same compiled, and the peer's."""

import math

import numpy as np
from numba import njit

from skpacbayes.filtering.models import LinearGaussian, StochasticVolatility

PHI, SIGMA, BETA = 0.8, math.sqrt(0.9), 0.7  # section 4.1 of the paper


try:
    import particles
    from particles import distributions, kalman, state_space_models
except ImportError:
    particles = None
    print("particles is not installed: it is left out.")


def peer_volatility(X):
    """Write the volatility model in the peer's words; None without it."""
    if particles is None:
        return None

    class Volatility(state_space_models.StateSpaceModel):
        def PX0(self):
            return distributions.Normal(scale=SIGMA / math.sqrt(1 - PHI**2))

        def PX(self, t, xp):
            return distributions.Normal(loc=PHI * xp, scale=SIGMA)

        def PY(self, t, xp, x):
            return distributions.Normal(scale=BETA * np.exp(x / 2))

    return state_space_models.Bootstrap(ssm=Volatility(), data=X)


def peer_linear(X, matrix, one, noise):
    """Write the linear model in the peer's words; None without it."""
    if particles is None:
        return None
    peer = kalman.MVLinearGauss(F=matrix, G=one, covX=one, covY=noise * one, cov0=one)
    return state_space_models.Bootstrap(ssm=peer, data=X)


@njit
def volatility_moves(x, z, phi, sigma):
    moved = np.empty_like(x)
    for i in range(len(x)):
        moved[i, 0] = phi * x[i, 0] + sigma * z[i, 0]
    return moved


@njit
def volatility_weighs(x, y, beta):
    log_densities = np.empty(len(x))
    constant = -0.5 * math.log(2 * math.pi) - math.log(beta)
    square = (y / beta) ** 2
    for i in range(len(x)):
        log_densities[i] = constant - 0.5 * (x[i, 0] + square * math.exp(-x[i, 0]))
    return log_densities


class CompiledVolatility(StochasticVolatility):
    def transition(self, x, z, t):
        return volatility_moves(x, z, self.phi, self.sigma)

    def log_likelihood(self, x, y, t):
        return volatility_weighs(x, y[0], self.beta)


@njit
def linear_moves(x, z, matrix, noise_std):
    moved = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total = noise_std * z[i, j]
            for k in range(x.shape[1]):
                total += matrix[j, k] * x[i, k]
            moved[i, j] = total
    return moved


@njit
def linear_weighs(x, y, variance):
    log_densities = np.empty(len(x))
    constant = -0.5 * x.shape[1] * math.log(2 * math.pi * variance)
    for i in range(x.shape[0]):
        square = 0.0
        for j in range(x.shape[1]):
            square += (y[j] - x[i, j]) ** 2
        log_densities[i] = constant - 0.5 * square / variance
    return log_densities


class CompiledLinear(LinearGaussian):
    """For covariances that are multiples of the identity."""

    def transition(self, x, z, t):
        std = math.sqrt(self.transition_covariance[0, 0])
        return linear_moves(x, z, self.transition_matrix, std)

    def log_likelihood(self, x, y, t):
        return linear_weighs(x, y, self.observation_covariance[0, 0])


def volatility(n_rows, seed=0):
    """Rows, the model, the same compiled, and the peer's Feynman-Kac model."""
    rng = np.random.default_rng(seed)
    state, X = SIGMA / math.sqrt(1 - PHI**2) * rng.normal(), []
    for _ in range(n_rows):
        X.append(BETA * math.exp(state / 2) * rng.normal())
        state = PHI * state + SIGMA * rng.normal()
    X = np.array(X)
    parameters = PHI, SIGMA, BETA
    ours = StochasticVolatility(*parameters), CompiledVolatility(*parameters)
    return X[:, None], *ours, peer_volatility(X)


def linear(n_rows, d, seed=0, noise=0.5):
    """Return the same for linear dynamics in d dimensions."""
    rng = np.random.default_rng(seed)
    matrix, one = 0.4 * np.eye(d) + 0.1, np.eye(d)
    state, X = rng.normal(size=d), []
    for _ in range(n_rows):
        X.append(state + math.sqrt(noise) * rng.normal(size=d))
        state = matrix @ state + rng.normal(size=d)
    X = np.array(X)
    parameters = matrix, one, one, noise * one
    ours = LinearGaussian(*parameters), CompiledLinear(*parameters)
    return X, *ours, peer_linear(X, matrix, one, noise)


def run_peer(model, n_particles, qmc=False):
    """Run the peer with its default, systematic resampling; its log-likelihood."""
    run = particles.SMC(fk=model, N=n_particles, qmc=qmc, collect="off")
    run.run()
    return run.logLt
