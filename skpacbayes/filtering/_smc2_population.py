"""Weighted parameters, each with a particle filter, updated row by row.

The algorithm of N. Chopin, P. E. Jacob and O. Papaspiliopoulos, "SMC^2: an efficient
algorithm for sequential analysis of state space models", JRSS B 75, 2013.
"""

import itertools
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from .._base import widened
from ._cloud import weighed_by
from ._priors import naming
from ._resampling import draw, one_cell
from ._sampling import even_log_weights
from ._smc2_moves import fitted_proposals
from ._tempering import next_exponent

FEW_ACCEPTED = 0.25  # acceptance rate below which the filters' noise is estimated
MOST_NOISE = 1.0  # variance of a log-likelihood above which filters double
MOST_GROWTH = 16  # largest factor of the initial number of particles
MOST_STAGES = 100  # for a row; each keeps about half of the draws
N_PAIRS = 10  # of runs at the same parameters, to estimate the variance


class Population(NamedTuple):
    """The posterior of the parameters given the rows so far."""

    positions: np.ndarray  # (n_draws, n_parameters), on the line
    log_weights: np.ndarray  # (n_draws,), normalised
    filters: tuple  # of the ClusteredParticleFilter of each draw
    log_evidence: float
    n_particles: int  # of each filter
    n_moves: int = 0  # Metropolis steps, of all draws
    n_accepted: int = 0
    n_noisy: int = 0  # stages that would have needed more particles


class Draws(NamedTuple):
    """Unweighted draws within the stages of a row, with terms of their density."""

    positions: np.ndarray  # (n_draws, n_parameters)
    log_priors: np.ndarray  # (n_draws,)
    filters: np.ndarray  # (n_draws,) of objects
    before: np.ndarray  # (n_draws,), log-likelihood of the rows before the last
    gains: np.ndarray  # (n_draws,), log-likelihood of the last row

    def log_density(self, exponent):
        """Return the log density with the last row to the power `exponent`."""
        return self.log_priors + self.before + exponent * self.gains

    def take(self, places):
        """Return the draws at given indices."""
        return Draws(*(part[places] for part in self))

    def where(self, chosen, others):
        """Return the draws, replaced by `others` where `chosen`."""
        parts = zip(self, others, strict=True)
        return Draws(
            *(
                np.where(chosen if a.ndim == 1 else chosen[:, None], b, a)
                for a, b in parts
            )
        )


class Series(NamedTuple):
    """Rows, and their inputs."""

    X: np.ndarray  # (n_rows, n_features)
    inputs: np.ndarray | None  # (n_rows, n_inputs)

    def rows(self, start, stop):
        """Return the rows from `start` to before `stop`."""
        inputs = None if self.inputs is None else self.inputs[start:stop]
        return Series(self.X[start:stop], inputs)

    def followed_by(self, X, inputs):
        """Return the rows with more rows appended."""
        both = None if inputs is None else np.concatenate([self.inputs, inputs])
        return Series(np.concatenate([self.X, X]), both)

    def copied(self):
        """Return a copy of the rows."""
        return Series(*(None if part is None else part.copy() for part in self))


class Target:
    """The posterior of transformed parameters, with likelihoods by filters."""

    def __init__(self, estimator, priors):
        self.estimator = widened(estimator)
        self.priors = priors

    def run(self, positions, series, n_particles, generator):
        """Run a new filter over the rows at each position; return them as draws."""
        n = len(positions)
        log_priors = self.priors.log_density(positions)
        seeds = generator.integers(2**31 - 1, size=n)
        filters = np.full(n, None)
        before, after = np.zeros(n), np.full(n, -np.inf)
        last = len(series.X) - 1
        possible = np.flatnonzero(log_priors > -np.inf)
        for i in possible:
            values = self.priors.values(positions[i])
            tracker = clone(self.estimator).set_params(
                **values,
                n_particles=n_particles,
                random_state=int(seeds[i]),
                underflow="warn",  # a likelihood of 0 is allowed here
            )
            tracker._checks_moves = bool(i == possible[0])  # one check suffices
            with naming(values):
                if last:
                    tracker = tracker._started(*series.rows(0, last))
                    before[i] = tracker.log_likelihood_
                    filters[i] = tracker._advanced(*series.rows(last, last + 1))
                else:
                    filters[i] = tracker._started(*series)
            after[i] = filters[i].log_likelihood_
        return Draws(positions, log_priors, filters, before, differences(after, before))


def differences(after, before):
    """Return ``after - before``; minus infinity at zero likelihood."""
    with np.errstate(invalid="ignore"):
        return np.where(before > -np.inf, after - before, -np.inf)


def learn_row(population, target, series, n_moves, generator):
    """Weight the draws by the last row of a series, and move them if needed.

    A row that would halve the effective sample size is weighted in stages, each by a
    power of its likelihood. After each stage but the last the draws are resampled, and
    moved by particle marginal Metropolis-Hastings steps that leave the distribution of
    the stage invariant.

    Parameters
    ----------
    population : Population
        Draws that have learnt all rows but the last; without filters before any row.
    target : Target
        The posterior.
    series : Series
        All rows; the last one is learnt.
    n_moves : int
        Number of Metropolis steps of each draw in a stage.
    generator : numpy.random.Generator
        Random numbers.

    Returns
    -------
    population : Population
        Draws that have learnt all rows.
    """
    draws = _moved_on(population, target, series, generator)
    # A copy: arrays of a memory map are read-only, and a kernel would be compiled.
    log_weights, exponent = population.log_weights.copy(), 0.0
    for stage in itertools.count():
        if stage == MOST_STAGES:
            raise FloatingPointError(
                f"Row {len(series.X) - 1} (0 is the first) is likely for less than "
                "1e-30 of the draws from the prior: give priors in the units "
                "of the rows."
            )
        before = exponent
        exponent = next_exponent(log_weights, draws.gains, before)
        found = weighed_by(log_weights, (exponent - before) * draws.gains)
        if found.evidence == -np.inf:
            raise FloatingPointError(
                f"The likelihood of row {len(series.X) - 1} (0 is the first) is zero "
                f"at each of {len(log_weights)} draws of the parameters: check that "
                "the priors are in the units of the rows, try more particles or a "
                "wider model, or replace the row by NaN if it is wrong."
            )
        log_weights = found.log_weights
        evidence = population.log_evidence + found.evidence
        population = population._replace(log_evidence=evidence)
        if exponent == 1.0:
            return population._replace(
                positions=draws.positions,
                log_weights=log_weights,
                filters=tuple(draws.filters),
            )
        rejuvenate = partial(_rejuvenated, target, series, n_moves, generator)
        draws, log_weights, population = rejuvenate(
            population, draws, found.weights, exponent
        )


def _moved_on(population, target, series, generator):
    """Update each filter by the last row, or start it there."""
    if not population.filters:
        n_particles = population.n_particles
        return target.run(population.positions, series, n_particles, generator)
    last = series.rows(len(series.X) - 1, len(series.X))
    filters = np.full(len(population.filters), None)
    filters[:] = [tracker._advanced(*last) for tracker in population.filters]
    before, after = (
        np.array([tracker.log_likelihood_ for tracker in trackers])
        for trackers in (population.filters, filters)
    )
    log_priors = target.priors.log_density(population.positions)
    gains = differences(after, before)
    return Draws(population.positions, log_priors, filters, before, gains)


def _rejuvenated(
    target, series, n_moves, generator, population, draws, weights, exponent
):
    """Resample and move draws; double the number of particles if it is too small.

    Returns
    -------
    draws : Draws
    log_weights : ndarray of shape (n_draws,)
    population : Population
        With the counts of moves, and the number of particles.
    """
    n = len(weights)
    log_weights = even_log_weights(n)
    propose = fitted_proposals(draws.positions, weights)
    draws = draws.take(draw(weights, one_cell(n), "systematic", generator))
    seeds = generator.integers(2**31 - 1, size=n)
    draws.filters[:] = [
        tracker._reseeded(int(seed))
        for tracker, seed in zip(draws.filters, seeds, strict=True)
    ]
    n_particles, n_accepted, noisy = population.n_particles, 0, False
    for number in range(n_moves):
        positions, log_ratios = propose(number, draws.positions, generator)
        proposed = target.run(positions, series, n_particles, generator)
        gains = proposed.log_density(exponent) - draws.log_density(exponent)
        accepted = np.log(generator.random(n)) < gains + log_ratios
        draws = draws.where(accepted, proposed)
        n_accepted += int(accepted.sum())
    if n_accepted < FEW_ACCEPTED * n_moves * n:
        noise = _noise(draws, target, series, n_particles, generator)
        largest = MOST_GROWTH * target.estimator.n_particles
        noisy = noise > MOST_NOISE and n_particles >= largest
        if noise > MOST_NOISE and not noisy:  # the exchange step of section 3.6.1
            n_particles, old = 2 * n_particles, draws.log_density(exponent)
            draws = target.run(draws.positions, series, n_particles, generator)
            found = weighed_by(log_weights, draws.log_density(exponent) - old)
            log_weights = found.log_weights
    return (
        draws,
        log_weights,
        population._replace(
            n_particles=n_particles,
            n_moves=population.n_moves + n_moves * n,
            n_accepted=population.n_accepted + n_accepted,
            n_noisy=population.n_noisy + noisy,
        ),
    )


def _noise(draws, target, series, n_particles, generator):
    """Return the variance of the estimated log-likelihood, from pairs of runs."""
    n = len(draws.positions)
    places = np.linspace(0, n - 1, min(N_PAIRS, n)).astype(int)
    runs = [
        target.run(draws.positions[places], series, n_particles, generator)
        for _ in range(2)
    ]
    first, second = (run.before + run.gains for run in runs)
    gaps = differences(first, second)
    with np.errstate(over="ignore"):  # in other units than those of the rows
        return 0.5 * float(np.mean(np.square(gaps)))
