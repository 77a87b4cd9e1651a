"""Estimated variance of the log-likelihood, from the ancestors of the particles.

A particle whose descendants have more of the weight than the particle had explained the
rows since then better than others. The sum of the squared differences of these weights
is the relative variance of the likelihood of the rows between (H. P. Chan and T. L.
Lai, "A general theory of particle filters in hidden Markov models and some
applications", Annals of Statistics 41, 2013). As all particles have the same ancestor
in the end, rows are cut into blocks, which end while there are several ancestors. The
variances of the blocks are added. What is lost at the end of a block, as the
descendants of the few ancestors do not cover the distribution of the state, cannot be
seen from later weights, and is estimated apart.
"""

import math
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._kernels.filtering import sum_by_root
from ._coverage import uncovered
from ._resampling import one_cell

MOST_CONCENTRATED = 0.1  # sum of squared weights of ancestors at which a block ends
# A log-likelihood is noisy if its variance is above LARGE, and above PER_ROOT times the
# square root of the number of rows: an average over many rows is precise. Larger
# variances are usually underestimated.
LARGE, PER_ROOT = 2.0, 0.2
ENOUGH = 100  # least number of particles for a warning: with fewer, all are noisy
# Blocks at whose ends the loss is computed; later only one in EACH, for all of these.
ALL_BLOCKS, EACH = 8, 8
EVEN = 3.0  # the estimate is of independent noise, and evenly spread noise has less

FEW = (
    "all particles descended from a few, which the noise of the transition hardly "
    "spreads in some directions of the state, such as constants or a season."
)


class Lineage(NamedTuple):
    """Ancestors of the particles at the start of a block of rows."""

    roots: np.ndarray  # (n_particles,), the ancestor of each particle
    start: np.ndarray  # (n_particles,), weights of the ancestors at the start
    variance: float  # of the log-likelihood, by the blocks before
    lost: float = 0.0  # nats, at the ends of the blocks before
    n_blocks: int = 0  # before


def new_block(weights, variance=0.0, lost=0.0, n_blocks=0):
    """Return the lineage at the start of a block, after those of a given variance."""
    return Lineage(one_cell(len(weights)).order, weights, variance, lost, n_blocks)


def traced_lineage(lineage, weights, ahead):
    """Return the lineage of offspring drawn by weights, and moved to the next row."""
    concentration, change = _block(lineage, weights)
    if concentration > MOST_CONCENTRATED:
        n_blocks, lost = lineage.n_blocks + 1, lineage.lost
        looks = 1 if n_blocks <= ALL_BLOCKS else EACH if n_blocks % EACH == 0 else 0
        if looks and len(weights) >= ENOUGH:
            roots = lineage.roots.take(ahead.ancestors)
            drawn = np.exp(ahead.log_weights)
            drawn /= drawn.sum()
            lost += looks * uncovered(ahead.moved.particles, drawn, roots)
        lineage = new_block(weights, lineage.variance + change, lost, n_blocks)
    return lineage._replace(roots=lineage.roots.take(ahead.ancestors))


def log_likelihood_variance(cloud):
    """Return the estimated variance of the log-likelihood of a cloud."""
    return cloud.lineage.variance + _block(cloud.lineage, cloud.weights)[1]


def warn_of_noise(run, has_warned=False):
    """Warn, once per stream, if the log-likelihood is too low by more than chance.

    Parameters
    ----------
    run : Run
        The filter after the last row.
    has_warned : bool, default=False
        Whether there was a warning earlier in the stream.

    Returns
    -------
    has_warned : bool
        Whether there has been a warning now.
    """
    cloud, sampling = run.cloud, run.sampling
    if has_warned or len(cloud.weights) < ENOUGH:
        return has_warned
    limit = max(LARGE, PER_ROOT * math.sqrt(cloud.time + 1))
    lost = cloud.lineage.lost
    few = lost > limit / 2  # the bias if the variance is at the limit
    # What is lost of constants does not come back: more rows do not make it smaller.
    few |= lost > LARGE / 2 and run.model.has_constants()
    if cloud.particles.shape[1] <= sampling.even_up_to:
        limit *= EVEN
    variance = log_likelihood_variance(cloud)
    if variance > limit:
        also = f"are often wrong, too: {FEW}" if few else "may be right."
        warn_user(
            "The log-likelihood has an estimated standard deviation of "
            f"{variance**0.5:.1f} between seeds, and is on average too low by half the "
            f"variance or more: do not compare models by it. The states {also} Use "
            "more particles, a proposal, or, if the state has few coordinates, "
            'method="sqmc".',
            ConvergenceWarning,
        )
    elif few:
        warn_user(
            f"The log-likelihood and the states are not reliable: {FEW} Use many more "
            "particles, tempering, an initial distribution that is nearer to the "
            "state, or, if the model is linear and Gaussian, a Kalman filter.",
            ConvergenceWarning,
        )
    return few or variance > limit


def _block(lineage, weights):
    """Return the sum of squared weights of ancestors, and of their changes."""
    return sum_by_root(lineage.roots, weights, lineage.start, np.empty(len(weights)))
