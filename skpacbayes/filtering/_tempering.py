"""Tempering: surprising rows are weighted in stages, with moves in between.

A particle is a function of standard normal noise. The posterior of the noise is reached
in stages: stage `e` weights by the likelihood of the row to the power of `e`. After
each stage but the last the particles are resampled, and their noise of the last rows is
updated by Metropolis steps that leave the distribution of the stage invariant
(preconditioned Crank-Nicolson, Cotter et al. 2013). The likelihood estimate stays
unbiased, because the exponents are chosen on other particles.
"""

from typing import NamedTuple

import numpy as np

from ._cloud import forecast, move, small_is_zero, weigh, weighed_by
from ._resampling import draw, one_cell
from ._sampling import even_log_weights

N_MOVES = 3  # Metropolis steps after each stage
SMALLEST = 0.02  # smallest step size, relative to an independent draw
LEAST_SIZE = 0.5  # share of the effective sample size that each stage keeps
MOST_STAGES = 100
PILOT_SHARE, LEAST_PILOT = 8, 64  # particles per pilot particle; least number of these
N_HALVINGS = 30


class Recent(NamedTuple):
    """The last rows, with the noise of each particle."""

    time: int  # of the first of the rows
    before: np.ndarray | None  # (n_particles, n_states), one row earlier
    row_before: np.ndarray | None
    rows: tuple  # of Row
    noise: np.ndarray  # (n_rows, n_particles, n_noise)

    def take(self, ancestors):
        """Return the same for given ancestors."""
        before = None if self.before is None else self.before.take(ancestors, axis=0)
        return self._replace(before=before, noise=self.noise.take(ancestors, axis=1))

    def walk(self, noise, model):
        """Move the particles through the rows by given noise.

        Returns
        -------
        particles : ndarray of shape (n_particles, n_states)
            States at the last row.
        earlier : ndarray of shape (n_particles,)
            Log weights by the rows before the last.
        last : ndarray of shape (n_particles,)
            Log weights by the last row.
        """
        particles = None if self.before is None else self.before.copy()
        earlier, last = np.zeros((2, noise.shape[1]))
        row_before = self.row_before
        for i, row in enumerate(self.rows):
            moved = move(particles, noise[i], row, self.time + i, row_before, model)
            particles, row_before = moved.particles, row.values
            earlier = earlier + last
            last = _log_weights_by(moved, row, model)
        return particles, earlier, last

    def shortened(self, n_rows, model):
        """Return the same for the last `n_rows` rows."""
        recent = self
        while len(recent.rows) > n_rows:
            first = recent._replace(rows=recent.rows[:1])
            recent = Recent(
                recent.time + 1,
                first.walk(recent.noise[:1], model)[0],
                recent.rows[0].values,
                recent.rows[1:],
                recent.noise[1:],
            )
        return recent


def tempered(cloud, row, model, sampling, generator):
    """Move the cloud to the time of a row, and weight it in stages.

    Returns
    -------
    ahead : Ahead
        The cloud after all stages, with its recent noise.
    weighting : Weighting
        Its weights given the row.
    """
    n_rows = 1 if hasattr(model.model, "observe") else sampling.tempering
    exponents = _exponents(cloud, row, model, sampling, n_rows, generator)
    ahead = forecast(cloud, row, model, sampling, generator)
    recent = _recent(cloud, ahead.ancestors, ahead.noise, row, n_rows, model)
    if len(exponents) == 1:
        return ahead._replace(recent=recent), weigh(ahead, row, model)

    def resample(particles, weights):
        return sampling.resample(particles, weights, generator)

    stages = iter(exponents)
    recent, particles, weighting, ancestors = _anneal(
        recent,
        ahead.log_weights,
        lambda *_: next(stages),
        resample,
        model,
        generator,
    )
    if ahead.ancestors is not None:
        ancestors = ahead.ancestors[ancestors]
    moved = ahead.moved._replace(particles=particles)
    ahead = ahead._replace(moved=moved, ancestors=ancestors, recent=recent)
    return ahead, weighting._replace(n_stages=len(exponents))


def _log_weights_by(moved, row, model):
    """Return log weights of particles by one row, with ratios of a proposal."""
    log_weights = np.zeros(len(moved.particles))
    if row.silent:
        return log_weights
    found = model.log_likelihood(moved.particles, row.values, moved.time, moved.past)
    if not (found < np.inf).all():
        model.refuse_non_finite(found, "log_likelihood", moved.time, moved.past)
    return found if moved.log_ratios is None else found + moved.log_ratios


def _recent(cloud, ancestors, noise, row, n_rows, model):
    """Return the recent rows and noise of particles after another row.

    `ancestors` (n_particles,) are indices in the cloud; None: no resampling.
    """
    if cloud is None:
        return Recent(0, None, None, (row,), noise[None])
    recent = cloud.recent
    if recent is None or n_rows == 1:
        none = np.empty((0, len(cloud.weights), noise.shape[1]))
        recent = Recent(cloud.time + 1, cloud.particles, cloud.row, (), none)
    if ancestors is not None:
        recent = recent.take(ancestors)
    longer = recent._replace(
        rows=(*recent.rows, row), noise=np.concatenate([recent.noise, noise[None]])
    )
    return longer.shortened(n_rows, model)


def _exponents(cloud, row, model, sampling, n_rows, generator):
    """Choose the exponents of the stages, the last of which is 1, by a pilot run.

    The particles of the pilot run are drawn from the cloud, and not used otherwise.
    """
    n_all = sampling.n_particles
    n = min(n_all, max(LEAST_PILOT, n_all // PILOT_SHARE))
    chosen, cell, even = [], one_cell(n), even_log_weights(n)
    if row.silent:
        return [1.0]

    def choose(log_weights, last, before):
        most = len(chosen) == MOST_STAGES
        chosen.append(1.0 if most else next_exponent(log_weights, last, before))
        return chosen[-1]

    def resample(particles, weights):
        return draw(weights, cell, "systematic", generator), even

    ancestors = None
    if cloud is not None:
        positions = (np.arange(n) + generator.random()) / n
        sums = np.cumsum(cloud.weights)
        ancestors = np.searchsorted(sums, positions * sums[-1], side="right")
        ancestors = np.minimum(ancestors, np.searchsorted(sums, sums[-1]))
    noise = generator.standard_normal((n, model.n_noise))
    recent = _recent(cloud, ancestors, noise, row, 1, model)
    last = recent.walk(recent.noise, model)[2]
    if next_exponent(even, last, 0.0) == 1.0:
        return [1.0]
    recent = _recent(cloud, ancestors, noise, row, n_rows, model)
    _anneal(recent, even, choose, resample, model, generator)
    return chosen


@small_is_zero
def next_exponent(log_weights, last, before):
    """Return the largest exponent, at most 1, that keeps the effective size."""

    def size(exponent):
        logs = log_weights + (exponent - before) * last
        highest = logs.max()
        if highest == -np.inf:
            return len(logs)  # no exponent can help
        weights = np.exp(logs - highest)
        return weights.sum() ** 2 / (weights @ weights)

    least = LEAST_SIZE * len(last)
    low, high = before, 1.0
    if size(high) >= least:
        return high
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if size(middle) >= least else (low, middle)
    return high


def _anneal(recent, log_weights, choose, resample, model, generator):
    """Weight by the last row in stages, resampling and moving particles in between.

    `choose` maps log weights, log-likelihoods and the exponent before to the next
    exponent; `resample` maps particles and weights to ancestors and log weights.

    Returns
    -------
    recent : Recent
    particles : ndarray of shape (n_particles, n_states)
    weighting : Weighting
    ancestors : ndarray of shape (n_particles,)
        Indices of the particles before the stages; None with a single stage.
    """
    particles, earlier, last = recent.walk(recent.noise, model)
    exponent, evidence, ancestors = 0.0, 0.0, None
    while True:
        before, exponent = exponent, choose(log_weights, last, exponent)
        found = weighed_by(log_weights, (exponent - before) * last)
        evidence += found.evidence
        if exponent == 1.0 or evidence == -np.inf:
            return recent, particles, found._replace(evidence=evidence), ancestors
        drawn, log_weights = resample(particles, found.weights)
        ancestors = drawn if ancestors is None else ancestors[drawn]
        paths = (part[drawn] for part in (particles, earlier, last))
        recent, particles, earlier, last = _moved(
            recent.take(drawn), *paths, exponent, model, generator
        )


def _moved(recent, particles, earlier, last, exponent, model, generator):
    """Update the noise of the recent rows by invariant Metropolis steps."""
    n, noise = len(last), recent.noise
    for _ in range(N_MOVES):
        sizes = np.exp(generator.random(n) * np.log(SMALLEST))[:, None]
        normals = generator.standard_normal(noise.shape)
        proposed = np.sqrt(1.0 - sizes * sizes) * noise + sizes * normals
        new_particles, new_earlier, new_last = recent.walk(proposed, model)
        with np.errstate(invalid="ignore"):  # from one impossible state to another
            gain = new_earlier - earlier + exponent * (new_last - last)
        accepted = np.log(generator.random(n)) < gain
        noise = np.where(accepted[:, None], proposed, noise)
        particles = np.where(accepted[:, None], new_particles, particles)
        earlier = np.where(accepted, new_earlier, earlier)
        last = np.where(accepted, new_last, last)
    return recent._replace(noise=noise), particles, earlier, last
