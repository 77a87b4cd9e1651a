"""Smoothing of models whose noise is added, except for rare jumps."""

import numpy as np
import pytest
from scipy.stats import norm

from skpacbayes.filtering import ClusteredParticleFilter

JUMPS_FROM, JUMP, STEP, STAYS = 2.6, 5.0, 0.1, 0.98


class RareJumps:
    """A level that jumps when its noise is large, in each of its coordinates."""

    def __init__(self, n_states=1):
        self.n_states = n_states

    @property
    def n_noise(self):
        return self.n_states

    def initial(self, z):
        return z

    def transition(self, x, z, t):
        return STAYS * x + STEP * z + JUMP * (z > JUMPS_FROM)

    def log_likelihood(self, x, y, t):
        return norm.logpdf(y, x, 0.5).sum(axis=1)


@pytest.mark.parametrize("n_states", [1, 2])
@pytest.mark.parametrize("tempering", [None, 1])
def test_paths_jump_as_the_model_does(n_states, tempering):
    """Not from the particles that are nearest to the state after the jump."""
    rng, level = np.random.default_rng(0), np.zeros(30)
    level[15:] = JUMP * STAYS ** np.arange(15)
    X = rng.normal(level[:, None], 0.5, size=(30, n_states))
    X[:, 1:] = rng.normal(0.0, 0.5, size=(30, n_states - 1))
    tracker = ClusteredParticleFilter(
        RareJumps(n_states), n_clusters=None, tempering=tempering, n_particles=10_000
    )
    tracker.set_params(random_state=0).fit(X[:1])
    paths = tracker.sample_trajectories(X[1:], 200)
    noise = (paths[:, 1:] - STAYS * paths[:, :-1]) / STEP
    jumps = noise - JUMP / STEP > JUMPS_FROM
    assert (jumps | (noise < 6.0)).all()  # a step without a jump is not so large
    assert jumps[:, 10:18, 0].any(axis=1).mean() > 0.99
