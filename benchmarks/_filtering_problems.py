"""Problems with several modes, and exact answers to compare with."""

import math

import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.ndimage import gaussian_filter, shift
from scipy.special import logsumexp
from scipy.stats import norm

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import TerrainNavigation

PLAIN = {"n_clusters": None}
CLUSTERED = {
    "plain": PLAIN,
    "conservation=0.5": {"conservation": 0.5},
    "conservation=1 (the paper)": {"conservation": 1.0},
}
BLOCK = 16  # cells of the map on a side, for masses of modes
ALTITUDE, POSITION_STD, HEIGHT_STD = 2000.0, 1.0, 25.0


def tracker(model, n_particles, seed=0, proposal="prior", **parameters):
    """Return a filter that moves particles by the transition, as the peers do."""
    return ClusteredParticleFilter(
        model,
        n_particles=n_particles,
        random_state=seed,
        proposal=proposal,
        **parameters,
    )


def volatility_log_likelihood(model, X, n_grid=2000):
    """Log p(X) of a stochastic volatility model, on a grid."""
    spread = model.sigma / math.sqrt(1 - model.phi**2)
    grid = np.linspace(-8 * spread, 8 * spread, n_grid)
    step = grid[1] - grid[0]
    moves = norm.pdf(grid, model.phi * grid[:, None], model.sigma) * step
    law, total = norm.pdf(grid, 0, spread) * step, 0.0
    for t, row in enumerate(X):
        before = law @ moves if t else law
        with np.errstate(divide="ignore"):
            joint = np.log(before) + model.log_likelihood(grid[:, None], row, t)
        evidence = logsumexp(joint)
        law, total = np.exp(joint - evidence), total + evidence
    return total


class Folded:
    """A walk in space of which only absolute values are seen: eight modes."""

    n_noise = 3

    def initial(self, z):
        return 3.0 * z

    def transition(self, x, z, t):
        return x + 0.1 * z

    def log_likelihood(self, x, y, t):
        return -0.5 * np.square(np.abs(x) - y).sum(axis=1)

    def rows(self, n_rows, seed):
        rng = np.random.default_rng(seed)
        path = 3.0 + np.cumsum(0.1 * rng.normal(size=(n_rows, 3)), axis=0)
        return np.abs(path) + rng.normal(size=path.shape)


def elevation():
    """Read the elevation model that matplotlib ships, smoothed over three cells."""
    with get_sample_data("jacksboro_fault_dem.npz") as file:
        return gaussian_filter(file["elevation"].astype(float), 3.0)


def flight(heights, seed, n_rows=40, speed=4.0):
    """Draw a flight that stays on the map: its model, its rows, and its path."""
    rng = np.random.default_rng(seed)
    while True:
        heading = rng.uniform(0, 2 * np.pi) + np.cumsum(0.1 * rng.normal(size=n_rows))
        velocity = speed * np.column_stack([np.cos(heading), np.sin(heading)])
        velocity[0] = 0.0
        drift = POSITION_STD * rng.normal(size=velocity.shape)
        drift[0] = 0.0
        start = rng.uniform(0, np.array(heights.shape) - 1.0)
        path = start + np.cumsum(velocity + drift, axis=0)
        if np.all((path > 0) & (path < np.array(heights.shape) - 1)):
            break
    model = TerrainNavigation(heights, velocity, ALTITUDE, POSITION_STD, HEIGHT_STD)
    seen = ALTITUDE - model.height_at(path) + HEIGHT_STD * rng.normal(size=n_rows)
    return model, seen[:, None], path


def blocks_of(positions, shape):
    """Index of the block of the map at each position."""
    n_columns = -(-shape[1] // BLOCK)
    cells = np.rint(positions).astype(int) // BLOCK
    return cells[:, 0] * n_columns + cells[:, 1]


def block_masses(law):
    """Mass of each block of the map."""
    rows = np.add.reduceat(law, np.arange(0, law.shape[0], BLOCK), axis=0)
    return np.add.reduceat(rows, np.arange(0, law.shape[1], BLOCK), axis=1).ravel()


def exact_flight(model, X):
    """Yield the masses of the blocks given the rows so far, by a filter on the map."""
    heights = model.heights
    law = np.full(heights.shape, 1.0 / heights.size)
    for t, (seen,) in enumerate(X):
        if t:
            law = shift(law, model.velocity[t], order=1, mode="constant")
            law = gaussian_filter(law, model.position_std, mode="constant", truncate=4)
        scores = (model.altitude - heights - seen) / model.height_std
        law = law * np.exp(-0.5 * scores**2)
        law /= law.sum()
        yield block_masses(law)
