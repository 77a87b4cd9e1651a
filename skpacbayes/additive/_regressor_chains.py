"""The chains of a regression, and the posterior of its models."""

import math
from typing import NamedTuple

import numpy as np

from .._chains import run_chains
from .._kernels.standardize import LEAST_SPREAD
from ._chain import PROMISING, WINDOW, Chain, Prior
from ._posterior import (
    Fitted,
    Posterior,
    Run,
    conditional_means,
    distinct,
    padded,
)
from ._regressor_evidence import (
    greedy_model,
    least_noise,
    nothing_matters,
    weak_effects,
)
from ._regressor_samplers import BallChain, CarlinChibChain

N_PILOTS, PILOT_MOVES = 3, 200  # short runs that estimate the noise
# Least gain in log evidence of many weak effects, beyond the penalty of fitted
# variances.
MARGIN = 8.0
DOUBT = 1.0  # log evidence from which `fit` warns that the choice is uncertain
ROWS_EACH = 3.0  # least rows per variable for integrating out the noise variance
LEAST_FREEDOM = 3.0  # and least degrees of freedom
LEAST_EXCESS = 0.5  # of degrees of freedom over 2, in the variance of predictions


class Temperature(NamedTuple):
    """Inverse temperature lambda, and quantities derived from it."""

    noise_variance: float
    inverse_temperature: float
    unit: float  # noise standard deviation at which lambda is that of the likelihood


class Starts(NamedTuple):
    """Starts of the chains: a model for each, and the noise variance."""

    models: list
    noise_variance: float


def sample(estimator, problem, rng, starts, tasks):
    """Set the prior, run the chains, and return the posterior.

    Parameters
    ----------
    estimator : SparseAdditiveGibbsRegressor
        The estimator, whose parameters are used.
    problem : Problem
        The regression.
    rng : numpy.random.Generator
        Source of random numbers.
    starts : Starts or None
        Starts of the chains; None: a greedy model and empty models.
    tasks : callable
        Yields the parts of the run; may stop early.

    Returns
    -------
    found : Fitted
        The posterior, without the coefficients that predict.
    ends : Starts
        Where the chains ended.
    """
    if 1e-12 * abs(problem.mean) < problem.largest < LEAST_SPREAD:
        raise ValueError(
            f"y must be constant or differ from its mean by at least "
            f"{LEAST_SPREAD:g}, as its variance must not underflow; it differs "
            f"by at most {problem.largest:g}: divide it by its scale."
        )
    setup = Setup(estimator, problem, rng)
    models, noise = setup.first_state(starts)
    temperature = setup.temperature(noise)
    chains = setup.chains(models, temperature)
    run_chains(
        chains,
        burn_in=estimator.burn_in,
        n_iter=estimator.n_iter,
        tasks=tasks,
        n_jobs=estimator.n_jobs,
    )
    return summary(chains, setup, temperature)


class Setup:
    """The chains of one regression: what they share.

    Parameters
    ----------
    estimator : SparseAdditiveGibbsRegressor
        The estimator, whose parameters are used.
    problem : Problem
        The regression.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, estimator, problem, rng):
        self.estimator, self.problem = estimator, problem
        self.ranks, self.n_pairs = problem.gram.ranks, len(problem.gram.pairs)
        self.kind = BallChain if estimator.slab == "l1ball" else Chain
        self.radius = float(estimator.radius or problem.largest or 1.0)  # of the ball
        self.most = min(len(self.ranks), estimator._most_variables())
        self._readers = [problem.gram.reader() for _ in range(estimator.n_chains)]
        self._generators = rng.spawn(estimator.n_chains)
        # Effects: see `sees_weak_effects`.
        self.weak, self.n_variables_needed, self.weak_gain = None, 0, 0.0

    def first_state(self, starts):
        """Return initial models, and the variance of the noise, given or estimated."""
        models, noise = self.first_models() if starts is None else starts
        models, given = list(models), self.estimator.noise_variance
        if given != "auto":
            return models, float(given)
        models[0], noise = self.estimated_noise(models[0], noise)
        if self.sees_weak_effects():
            noise = self.weak.noise_variance
            if starts is None:
                models[1:] = [self.every_variable()] * (len(models) - 1)
        return models, noise

    def first_models(self):
        """Return initial models: greedy for the first chain, empty for the others.

        With pairs, the others start at all of their variables, as a pair can be added
        only to a model with both of its variables.
        """
        *first, noise, _ = greedy_model(self.problem, self._readers[0], self.most)
        other = self.every_variable(np.unique(self.problem.gram.pairs))
        return [first] + [other] * (self.estimator.n_chains - 1), noise

    def temperature(self, noise):
        """Return the inverse temperature for a noise variance."""
        n, kind = self.problem.weight, self.estimator.inverse_temperature
        if kind == "likelihood":
            value = n / (2 * noise)
        elif kind == "pac":
            value = n * self.estimator.gamma / (4 * noise + 4 * self.radius**2)
        else:
            value = float(kind)
        return Temperature(noise, value, math.sqrt(n / (2 * value)))

    def prior(self, unit):
        """Return the prior, in units of the noise."""
        estimator = self.estimator
        terms = self.ranks, estimator.beta, self.most
        if estimator.slab == "l1ball":
            return Prior.of(*terms, radius=self.radius / unit, n_pairs=self.n_pairs)
        variance = self.slab_variance(unit) / unit**2
        return Prior.of(*terms, variance=variance, n_pairs=self.n_pairs)

    def slab_variance(self, unit):
        """Return the prior variance of a coefficient."""
        if self.estimator.slab_scale != "auto":
            return self.estimator.slab_scale**2
        if self.weak is not None:
            return self.weak.slab_variance
        return self.problem.square / self.problem.weight or unit**2

    def chains(self, models, temperature):
        """Return the chains, to be recorded, each started at a model."""
        chains = [
            self.final_chain(number, model, temperature)
            for number, model in enumerate(models)
        ]
        if self.estimator.sampler == "collapsed":
            self.choose_among(chains, models[0], temperature)
        for chain in chains:
            chain.expect(self.estimator.n_iter)
        return chains

    def chain(self, kind, number, model, temperature, prior=None):
        """Return chain `number` of a class of chains, started at a model."""
        chain = kind(
            self._readers[number],
            self.problem.against / temperature.unit,
            self.prior(temperature.unit) if prior is None else prior,
            self._generators[number],
        )
        if self.estimator.slab == "gaussian":
            chain.start(*model)
        return chain

    def final_chain(self, number, model, temperature):
        """Return chain `number`, to be recorded, started at a model."""
        estimator, problem, unit = self.estimator, self.problem, temperature.unit
        if not self.integrates_noise():
            kind = CarlinChibChain if estimator.sampler == "carlin_chib" else self.kind
            return self.chain(kind, number, model, temperature)
        square = problem.square + problem.weight * least_noise(problem)
        prior = integrated(self.prior(unit), problem.weight - 1, square / unit**2)
        return self.chain(Chain, number, model, temperature, prior)

    def choose_among(self, chains, model, temperature):
        """Restrict moves of chains mostly to variables promising at a model."""
        if len(self.ranks) > PROMISING + WINDOW:
            sequence = self.chain(Chain, 0, model, temperature).promising()
            for chain in chains:
                chain.choose_among(sequence)

    def estimated_noise(self, model, noise):
        """Estimate the noise by short runs from a model; also return their ends."""
        temperature = self.temperature(noise)
        pilot = self.chain(self.kind, 0, model, temperature)
        self.choose_among([pilot], model, temperature)
        for _ in range(N_PILOTS):
            pilot.expect(PILOT_MOVES)
            pilot.advance(PILOT_MOVES)
            self._pilot = pilot.recorded(), temperature.noise_variance
            noise = expected_noise(pilot, self.problem, temperature.unit)
            temperature = self.temperature(noise)
            unit = temperature.unit
            linear = self.problem.against / unit
            pilot.change(self._readers[0], linear, self.prior(unit))
        return pilot.model, noise

    def sees_weak_effects(self):
        """Return whether many weak effects have larger evidence and fit in a model."""
        estimator = self.estimator
        usual = "auto", "gaussian", "likelihood"
        given = estimator.slab_scale, estimator.slab, estimator.inverse_temperature
        if given != usual:
            return False
        found = weak_effects(
            self.problem,
            *self._pilot,
            estimator.beta,
            self.most,
            least_noise(self.problem),
        )
        if found is None or not found.gain > MARGIN:
            if found is not None and found.gain > DOUBT:
                self.weak_gain = found.gain
            return False
        n_variables = np.count_nonzero(self.problem.functions.orders)
        self.n_variables_needed = n_variables if n_variables > self.most else 0
        self.weak = None if self.n_variables_needed else found
        return not self.n_variables_needed

    def probability_of_nothing(self, posterior, temperature):
        """Return the probability of the empty model if the noise variance is unknown.

        With few rows for each variable the variance is estimated by models that may fit
        the noise, and the posterior is then too sure of these models. The visited
        models are compared with the empty one with the variance integrated out. The
        result is 0 if the variance was not estimated, or with pairs.
        """
        if not self.estimates_noise() or self.n_pairs:
            return 0.0
        noise = temperature.noise_variance
        ratio = self.slab_variance(temperature.unit) / noise
        return nothing_matters(self.problem, posterior, self.estimator.beta, ratio)

    def variance_factor(self, posterior):
        """Return the factor of predictive variances for the error of the noise.

        A variance estimated with v degrees of freedom makes errors of new rows Student
        t; their variance is v / (v - 2) times as large. It is 1 if the variance was
        not estimated.
        """
        if not self.estimates_noise():
            return 1.0
        n_functions = posterior.weights @ (posterior.columns >= 0).sum(axis=1)
        freedom = self.problem.weight - 1 - n_functions
        return 1 + 2 / max(freedom - 2, LEAST_EXCESS)

    def estimates_noise(self):
        """Return whether the variance of the noise is an estimate of few effects."""
        free = self.estimator._learns_noise() and self.weak is None
        return free and not self.integrates_noise()

    def integrates_noise(self):
        """Return whether the noise variance is integrated out.

        There must be enough rows for the number of variables and pairs: otherwise a
        model that fits the noise would make its own variance small.
        """
        least = max(LEAST_FREEDOM + 1, ROWS_EACH * np.count_nonzero(self.ranks))
        return self.estimator._learns_noise() and self.problem.weight >= least

    def every_variable(self, among=None):
        """Return the model of all or some variables, each of order 1."""
        if among is None:
            among = np.arange(len(self.problem.functions.orders))
        among = among[self.ranks[among] > 0]
        return among, np.ones_like(among)


def integrated(prior, freedom, square):
    """Return the prior of a chain that integrates out the noise variance.

    The variance s^2 has the prior 1 / s^2, and the standard deviations of coefficients
    are s times those of the prior. The log weight of a model is then

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 + q log(ridge) / 2,

    b and P as in the kernel.

    Parameters
    ----------
    prior : Prior
        A normal prior, in units of the noise.
    freedom : float
        Degrees of freedom, the number of rows minus one.
    square : float
        Sum of squares of y minus its mean, in these units.
    """
    return prior._replace(freedom=freedom, square=square)


def expected_noise(chain, problem, unit):
    """Return the mean over a run of residual squares over degrees of freedom."""
    path, columns, means, _ = chain.recorded()
    counts, totals = np.bincount(path), (columns >= 0).sum(axis=1)
    if not chain.draws:
        among, ridge = chain.reader.among, chain.prior.ridge
        means = conditional_means(columns, among, chain.linear, ridge)
    fits = unit * (means * np.append(problem.against, 0.0)[columns]).sum(axis=1)
    freedom = np.maximum(problem.weight - 1 - totals, 1.0)
    noise = np.average((problem.square - fits) / freedom, weights=counts)
    return max(float(noise), least_noise(problem))


def summary(chains, setup, temperature):
    """Return the results of the chains, and their final models."""
    problem, prior = setup.problem, chains[0].prior
    shape = problem.gram.diagonal.shape[:2]
    among = problem.gram.among
    posterior = Posterior(chains, shape, unit=temperature.unit, among=among)
    known = temperature
    if prior.freedom:
        temperature = setup.temperature(posterior.noise_variance)
    found = Fitted.of_chains(
        problem,
        chains,
        posterior,
        runs_of([chain.recorded() for chain in chains]),
        intercept=problem.mean,
        inverse_temperature=temperature.inverse_temperature,
        n_variables_needed=setup.n_variables_needed,
        weak_gain=setup.weak_gain,
        nothing=setup.probability_of_nothing(posterior, temperature),
        noise_variance=temperature.noise_variance,
        intercept_variance=1 / (2 * temperature.inverse_temperature),
        variance_factor=setup.variance_factor(posterior),
        radius=setup.radius,
        slab_scale=math.sqrt(setup.slab_variance(known.unit)),
        most=prior.most,
        **problem.tails._asdict(),
    )
    return found, Starts([chain.model for chain in chains], known.noise_variance)


def runs_of(recorded):
    """Return the paths of chains, with exactly equal log weights of equal models.

    The last digits of a log weight depend on the sequence of the variables. R-hat uses
    ranks, and would treat them as a difference between chains.
    """
    counts = np.cumsum([len(columns) for _, columns, _, _ in recorded])[:-1]
    largest = max(columns.shape[1] for _, columns, _, _ in recorded)
    columns = np.concatenate([padded(each[1], largest, -1) for each in recorded])
    first, group = distinct(columns)
    log_weights = np.concatenate([each[3] for each in recorded])[first][group]
    return [
        Run(path, columns, own[path])
        for (path, columns, _, _), own in zip(
            recorded, np.split(log_weights, counts), strict=True
        )
    ]
