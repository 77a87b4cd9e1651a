"""`SubspaceMixture`: rows and parameters drawn in turns have the law of the model.

A chain that alternates a sweep given the rows with a draw of rows given the parameters
has the joint law of both for its stationary law, if the sweep is right (J. Geweke,
2004, Getting it right, JASA 99). It is started there, and compared to draws from the
prior.
"""

import functools

import numpy as np
import pytest

from skpacbayes._kernels.subspace import PRIOR_COUNT, PRIOR_SCALE, PRIOR_SHAPE
from skpacbayes.cluster import _subspace_chain
from skpacbayes.cluster._subspace_chain import (
    BACKGROUND_SCALE,
    BACKGROUND_SHAPE,
    FACTOR_SCALE,
    FACTOR_SHAPE,
    Chain,
)

N_SAMPLES, N_FEATURES, N_CLUSTERS, CONCENTRATION = 6, 2, 2, 0.8
N_CHAINS, N_SWEEPS, N_PRIOR = 16, 300, 8_000


def draw_parameters(chain):
    """Give the chain labels, background and hyperparameters drawn from the prior."""
    rng = chain.rng
    weights = rng.dirichlet(np.full(N_CLUSTERS, CONCENTRATION))
    chain.labels[:] = rng.choice(N_CLUSTERS, N_SAMPLES, p=weights)
    chain.variance = BACKGROUND_SCALE / rng.gamma(BACKGROUND_SHAPE, size=N_FEATURES)
    chain.mean = np.sqrt(chain.variance) * rng.normal(size=N_FEATURES)
    chain.probability = rng.random()
    if chain.shared:
        chain.factor = FACTOR_SCALE / rng.gamma(FACTOR_SHAPE)


def draw_rows(chain):
    """Draw rows given the parameters: relevance and own moments anew."""
    rng, shape = chain.rng, (N_CLUSTERS, N_FEATURES)
    relevant = rng.random(shape) < chain.probability
    if chain.shared:
        shifts = np.sqrt(chain.factor * chain.variance) * rng.normal(size=shape)
        means, variances = (
            chain.mean + relevant * shifts,
            chain.variance + np.zeros(shape),
        )
    else:
        own = PRIOR_SCALE / rng.gamma(PRIOR_SHAPE, size=shape)
        centers = np.sqrt(own / PRIOR_COUNT) * rng.normal(size=shape)
        means = np.where(relevant, centers, chain.mean)
        variances = np.where(relevant, own, chain.variance)
    noise = rng.normal(size=(N_SAMPLES, N_FEATURES))
    chain.X[:] = means[chain.labels] + np.sqrt(variances)[chain.labels] * noise


def summary(chain):
    """Return numbers whose means are compared; they have moments in either law."""
    same = (chain.labels[:, None] == chain.labels).mean()
    log_variance = np.log(chain.variance).mean()
    standard = chain.mean / np.sqrt(chain.variance)
    rows = np.tanh(chain.X)
    return [
        same,
        chain.probability,
        chain.probability**2,
        log_variance,
        (1 / chain.variance).mean(),
        (standard**2).mean(),
        np.log(chain.factor),
        (rows**2).mean(),
        (rows[:, 0] * rows[:, 1]).mean(),
        np.abs(rows[0] - rows[1]).mean(),
        same * log_variance,
        same * chain.probability,
    ]


def new_chain(shared, rng):
    rows = np.zeros((N_SAMPLES, N_FEATURES))
    chain = Chain(rows, N_CLUSTERS, shared, CONCENTRATION, rng)
    draw_parameters(chain)
    draw_rows(chain)
    return chain


@functools.cache
def prior_moments(shared):
    """Means of the summaries of draws from the prior, and their variances."""
    chain, prior = new_chain(shared, np.random.default_rng(1)), []
    for _ in range(N_PRIOR):
        draw_parameters(chain)
        draw_rows(chain)
        prior.append(summary(chain))
    return np.mean(prior, axis=0), np.var(prior, axis=0, ddof=1) / N_PRIOR


def largest_deviation(shared):
    """Difference of the two simulations in standard errors, the largest."""
    prior_mean, variance = prior_moments(shared)
    means = []
    for rng in np.random.default_rng(0).spawn(N_CHAINS):
        chain, found = new_chain(shared, rng), []
        for _ in range(N_SWEEPS):
            chain.sweep()
            draw_rows(chain)
            found.append(summary(chain))
        means.append(np.mean(found, axis=0))
    variance = variance + np.var(means, axis=0, ddof=1) / N_CHAINS
    difference = np.mean(means, axis=0) - prior_mean
    return np.max(np.abs(difference) / np.sqrt(np.maximum(variance, 1e-12)))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_rows_and_parameters_have_the_joint_law(shared):
    """Student's law with 15 degrees of freedom, 12 times, beyond 7: 5e-5."""
    assert largest_deviation(shared) < 7


@pytest.mark.slow
def test_an_error_in_the_sweep_would_show(monkeypatch):
    """A prior scale of the background that is off by a fifth."""
    scale = 1.2 * BACKGROUND_SCALE
    monkeypatch.setattr(_subspace_chain, "BACKGROUND_SCALE", scale)
    assert largest_deviation(shared=True) > 7
