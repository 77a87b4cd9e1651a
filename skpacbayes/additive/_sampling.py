"""From a regression to the posterior of its models."""

import math
from typing import NamedTuple

import numpy as np

from .._convergence import split_r_hat
from ._ball import BallChain
from ._carlin_chib import CarlinChib
from ._chain import Chain, Prior, advance_all
from ._greedy import greedy_model, least_noise
from ._posterior import Posterior, conditional_means
from ._statistics import Problem

MOST_VARIABLES = 50  # of a model, unless `max_active` says otherwise
N_PILOTS, PILOT_MOVES = 3, 200  # short runs that estimate the noise


class Settings(NamedTuple):
    """Parameters of the estimator that the chains read."""

    beta: float
    slab: str
    slab_scale: object
    radius: object
    inverse_temperature: object
    gamma: float
    noise_variance: object
    sampler: str
    n_iter: int
    burn_in: int
    n_chains: int
    max_active: object
    n_jobs: object


class Sample(NamedTuple):
    """A posterior, and how it was found."""

    problem: Problem
    posterior: Posterior
    noise_variance: float
    inverse_temperature: float
    radius: float
    prior: Prior
    acceptance_rate: float
    r_hat: float
    full: bool  # whether a chain was at the largest number of variables
    models: list  # where the chains stand


class Temperature(NamedTuple):
    """Inverse temperature lambda, and what follows from it and from the noise."""

    noise_variance: float
    inverse_temperature: float
    unit: float  # deviation of the noise for which lambda is the likelihood's


def largest_size(settings, n_features):
    """Largest number of variables of a model."""
    most = MOST_VARIABLES if settings.max_active is None else settings.max_active
    return min(n_features, most)


def temperature(settings, problem, noise, radius):
    """Inverse temperature for a noise variance."""
    n, kind = problem.weight, settings.inverse_temperature
    if kind == "likelihood":
        value = n / (2 * noise)
    elif kind == "pac":
        value = n * settings.gamma / (4 * noise + 4 * radius**2)
    else:
        value = float(kind)
    return Temperature(noise, value, math.sqrt(n / (2 * value)))


def ball_radius(settings, largest):
    """Radius of the l1 ball: the largest |y - mean| if it is not given."""
    if settings.radius is not None:
        return float(settings.radius)
    return largest if largest > 0 else 1.0


def prior_for(settings, problem, unit, radius):
    """Prior, in units of the noise."""
    ranks = problem.functions.orders
    most = largest_size(settings, len(ranks))
    if settings.slab == "l1ball":
        return Prior.of(ranks, settings.beta, most, radius=radius / unit)
    variance = problem.square / problem.weight or unit**2
    if settings.slab_scale != "auto":
        variance = settings.slab_scale**2
    return Prior.of(ranks, settings.beta, most, variance=variance / unit**2)


def sample(settings, problem, rng, standing, tasks):
    """Run the chains.

    Parameters
    ----------
    settings : Settings
        Parameters of the estimator.
    problem : Problem
        The regression.
    rng : numpy.random.Generator
        Source of random numbers.
    standing : list or None
        Models from which the chains go on, and the noise variance there.
    tasks : callable
        Yields the numbers of the parts of the run; may stop early.

    Returns
    -------
    found : Sample
        The posterior.
    """
    radius = ball_radius(settings, problem.largest)
    readers = [problem.gram.reader() for _ in range(settings.n_chains)]
    seeds = rng.spawn(settings.n_chains)
    nothing = np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    if standing is None:
        most = largest_size(settings, len(problem.functions.orders))
        *first, noise = greedy_model(problem, readers[0], most)
        starts = [first] + [nothing] * (settings.n_chains - 1)
    else:
        starts, noise = standing
    if settings.noise_variance != "auto":
        noise = float(settings.noise_variance)

    usual = BallChain if settings.slab == "l1ball" else Chain

    def chain(number, heat, kind=usual):
        prior = prior_for(settings, problem, heat.unit, radius)
        made = kind(readers[number], problem.against / heat.unit, prior, seeds[number])
        if settings.slab == "gaussian":
            made.start(*starts[number])
        return made

    heat = temperature(settings, problem, noise, radius)
    if settings.noise_variance == "auto":
        pilot = chain(0, heat)
        for _ in range(N_PILOTS):
            pilot.remember(PILOT_MOVES)
            pilot.advance(PILOT_MOVES)
            noise = expected_noise(pilot, problem, heat.unit)
            heat = temperature(settings, problem, noise, radius)
            prior = prior_for(settings, problem, heat.unit, radius)
            pilot.change(readers[0], problem.against / heat.unit, prior)
        starts = [pilot.model, *starts[1:]]
    kind = CarlinChib if settings.sampler == "carlin_chib" else usual
    chains = [chain(number, heat, kind) for number in range(settings.n_chains)]
    for made in chains:
        made.remember(settings.n_iter)
    advance_all(chains, settings.burn_in, settings.n_iter, tasks, settings.n_jobs)
    return summary(chains, problem, heat, radius, settings)


def expected_noise(chain, problem, unit):
    """Mean over a run of the squared residuals for the degrees of freedom left."""
    path, columns, means, _ = chain.recorded()
    counts, totals = np.bincount(path), (columns >= 0).sum(axis=1)
    if not chain.draws:
        among, ridge = chain.reader.among, chain.prior.ridge
        means = conditional_means(columns, among, chain.linear, ridge)
    fits = unit * (means * np.append(problem.against, 0.0)[columns]).sum(axis=1)
    freedom = np.maximum(problem.weight - 1 - totals, 1.0)
    noise = np.average((problem.square - fits) / freedom, weights=counts)
    return max(float(noise), least_noise(problem))


def summary(chains, problem, heat, radius, settings):
    """Put the chains together."""
    shape = problem.functions.means.shape
    posterior = Posterior.of_chains(
        chains,
        shape,
        unit=heat.unit,
        ridge=chains[0].prior.ridge,
        among=problem.gram.among,
    )
    tried, accepted = np.sum([chain.moves[:, :2] for chain in chains], axis=0)
    most = chains[0].prior.most
    usable = np.count_nonzero(problem.functions.orders)
    orders = posterior.orders()
    return Sample(
        problem=problem,
        posterior=posterior,
        noise_variance=heat.noise_variance,
        inverse_temperature=heat.inverse_temperature,
        radius=radius,
        prior=chains[0].prior,
        acceptance_rate=float(accepted.sum() / max(tried.sum(), 1)),
        r_hat=disagreement(chains, posterior),
        full=bool(most < usable and ((orders > 0).sum(axis=1) == most).any()),
        models=[chain.model for chain in chains],
    )


def disagreement(chains, posterior):
    """Largest R-hat: of the log weight, and of what is in with a probability between.

    Those variables count that are in with probability .05 to .95.
    """
    width = posterior.shape[1]
    inclusion = posterior.inclusion()[:, 0]
    features = np.flatnonzero((inclusion > 0.05) & (inclusion < 0.95))
    series = np.empty((1 + len(features), len(chains), chains[0].n_recorded))
    for number, chain in enumerate(chains):
        path, columns, _, log_weights = chain.recorded()
        series[0, number] = log_weights[path]
        inside = np.zeros((len(columns), posterior.shape[0] + 1), dtype=bool)
        np.put_along_axis(inside, columns // width, True, axis=1)
        series[1:, number] = inside[path][:, features].T
    return float(split_r_hat(series).max())
