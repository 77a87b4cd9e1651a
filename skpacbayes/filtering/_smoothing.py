"""Smoothing: the law of every state given all rows of a run.

A run is a list of (cloud, evidence, ancestors), one for each row.
"""

import numpy as np

from ._cloud import moments
from ._resampling import draw, one_cell

N_TRAJECTORIES = 200


def smoothed(run, model, generator):
    """Means and standard deviations of the states, each (n_timesteps, n_states)."""
    if hasattr(model, "log_transition"):
        found = _by_backward_simulation(run, model, generator)
    else:
        found = _by_genealogy(run)
    means, stds = zip(*reversed(list(found)), strict=True)
    return np.array(means), np.array(stds)


def _by_genealogy(run):
    """Trace the last particles back, with their weights; the last row comes first."""
    weights = run[-1][0].weights
    traced = np.arange(len(weights))
    for cloud, _, ancestors in run[::-1]:
        yield moments(weights, cloud.particles[traced])
        if ancestors is not None:
            traced = ancestors[traced]


def _by_backward_simulation(run, model, generator):
    """Draw trajectories backwards by the transition density; the last row first."""
    last = run[-1][0]
    yield moments(last.weights, last.particles)  # as exact as it gets
    n_particles = len(last.weights)
    drawn = draw(last.weights, one_cell(n_particles), "systematic", generator)
    n_drawn = min(N_TRAJECTORIES, n_particles)
    states = last.particles[drawn[np.arange(n_drawn) * n_particles // n_drawn]]
    for cloud, *_ in run[-2::-1]:
        uniforms = generator.random(n_drawn)
        states = np.array(
            [
                _parent(cloud, state, uniform, model)
                for state, uniform in zip(states, uniforms, strict=True)
            ]
        )
        yield states.mean(axis=0), states.std(axis=0)


def _parent(cloud, state, uniform, model):
    """Draw the particle that a trajectory came from."""
    moves = model.log_transition(cloud.particles, state, cloud.time + 1)
    log_weights = cloud.log_weights + moves
    sums = np.cumsum(np.exp(log_weights - log_weights.max()))
    return cloud.particles[np.searchsorted(sums, uniform * sums[-1])]
