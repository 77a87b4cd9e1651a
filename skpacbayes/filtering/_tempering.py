"""Rows that surprise are weighed in stages, with moves of the particles in between.

A particle is a function of standard normals. The distribution of these is reached from
the standard normal one in stages: stage `e` weighs by the likelihood of the row to the
power of `e`. After each stage but the last the particles are resampled, and their
normals of the last rows are moved by Metropolis steps that leave the distribution of
the stage as it is (preconditioned Crank-Nicolson, Cotter et al. 2013). The likelihood
of all rows stays unbiased, because the exponents are chosen on other particles.
"""

from typing import NamedTuple

import numpy as np

from ._cloud import forecast, move, small_is_zero, weigh, weighed_by
from ._resampling import draw, one_cell
from ._sampling import even_log_weights

N_MOVES = 3  # Metropolis steps after each stage
SMALLEST = 0.02  # step, as a share of a normal drawn anew; the largest is 1
LEAST_SIZE = 0.5  # effective share of the particles that each stage keeps
MOST_STAGES = 100
PILOT_SHARE, LEAST_PILOT = 8, 64  # one in so many particles, and at least so many
N_HALVINGS = 30


class Recent(NamedTuple):
    """The last rows, and the noise that moved each particle through them."""

    time: int  # of the first of the rows
    before: np.ndarray | None  # (n_particles, n_states), one row earlier
    row_before: np.ndarray | None
    rows: tuple  # of Row
    noise: np.ndarray  # (n_rows, n_particles, n_noise)

    def take(self, ancestors):
        """Return the same of other particles."""
        before = None if self.before is None else self.before.take(ancestors, axis=0)
        return self._replace(before=before, noise=self.noise.take(ancestors, axis=1))

    def walk(self, noise, model):
        """Move the particles through the rows by some noise.

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
        """Forget all rows but the last `n_rows`."""
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
    """Move the cloud to the time of a row, and weigh it in stages.

    Returns
    -------
    ahead : Ahead
        The cloud after all stages, with its recent noise.
    weighting : Weighting
        What the row says of it.
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
    return ahead._replace(moved=moved, ancestors=ancestors, recent=recent), weighting


def _log_weights_by(moved, row, model):
    """Log weights of particles by one row, the ratios of a proposal included."""
    log_weights = np.zeros(len(moved.particles))
    if row.silent:
        return log_weights
    found = model.log_likelihood(moved.particles, row.values, moved.time, moved.past)
    if not (found < np.inf).all():
        model.refuse_non_finite(found, "log_likelihood", moved.time)
    return found if moved.log_ratios is None else found + moved.log_ratios


def _recent(cloud, ancestors, noise, row, n_rows, model):
    """Return the recent rows and noise of particles after one more row.

    `ancestors` (n_particles,) are places in the cloud, None where all stay.
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
    """Choose the exponents of the stages, the last of which is 1, on a few particles.

    These are drawn from the cloud, and then thrown away.
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
    """Largest exponent that keeps enough effective particles, at most 1."""

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
    """Weigh by the last row in stages; resample and move the particles in between.

    `choose` gives the next exponent for log-weights, log-likelihoods and the exponent
    before; `resample` gives ancestors and log-weights for particles and weights.

    Returns
    -------
    recent : Recent
    particles : ndarray of shape (n_particles, n_states)
    weighting : Weighting
    ancestors : ndarray of shape (n_particles,)
        Places of the particles before the stages; None where there was one stage.
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
    """Move the noise of the recent rows; the distribution stays as it is."""
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
