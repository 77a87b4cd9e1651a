"""The chains of a regression, and the posterior of its models."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.special import logsumexp

from .._chains import run_chains
from ..certificates.additive import log_prior_mass
from ._base import Fitted
from ._chain import MOST_VARIABLES, PROMISING, WINDOW, Chain, Prior, log_binomial
from ._gram import precision_factor
from ._posterior import (
    Posterior,
    Run,
    conditional_means,
    distinct,
    integrated,
    may_integrate,
    mixing,
    padded,
)
from ._regressor_drawing import BallChain, CarlinChibChain

N_PILOTS, PILOT_MOVES = 3, 200  # short runs that estimate the noise
NEGLIGIBLE = 1e-8  # share of the variance of y below which noise is zero
RIDGE = 1e-8  # of the greedy search, relative to the functions' squares
# Least gain in log evidence of many weak effects, beyond the penalty of fitted
# variances.
MARGIN = 8.0
DOUBT = 1.0  # log evidence from which `fit` warns that the choice is uncertain
MOST_COMPARED = 50  # visited models that are compared with the empty one
LARGEST = 1000  # largest min(n_rows, n_variables), as the cost is cubic
RATIOS = np.geomspace(1e-6, 10.0, 60)  # of variances, coefficients over noise


class Settings(NamedTuple):
    """Parameters of the estimator that the chains use."""

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


class Temperature(NamedTuple):
    """Inverse temperature lambda, and quantities derived from it."""

    noise_variance: float
    inverse_temperature: float
    unit: float  # noise standard deviation at which lambda is that of the likelihood


class Starts(NamedTuple):
    """Starts of the chains: a model for each, and the noise variance."""

    models: list
    noise_variance: float


def sample(settings, problem, rng, starts, tasks):
    """Run the chains.

    Parameters
    ----------
    settings : Settings
        Parameters of the estimator.
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
    setup = Setup(settings, problem, rng)
    models, noise = setup.first_models() if starts is None else starts
    models = list(models)
    if settings.noise_variance == "auto":
        models[0], noise = setup.estimated_noise(models[0], noise)
        if setup.sees_weak_effects():
            noise = setup.weak.noise_variance
            if starts is None:
                models[1:] = [setup.every_variable()] * (len(models) - 1)
    else:
        noise = float(settings.noise_variance)
    temperature = setup.temperature(noise)
    chains = [
        setup.final_chain(number, model, temperature)
        for number, model in enumerate(models)
    ]
    if settings.sampler == "collapsed":
        setup.choose_among(chains, models[0], temperature)
    for chain in chains:
        chain.expect(settings.n_iter)
    run_chains(
        chains,
        burn_in=settings.burn_in,
        n_iter=settings.n_iter,
        tasks=tasks,
        n_jobs=settings.n_jobs,
    )
    return summary(chains, setup, temperature)


class Setup:
    """Common settings of the chains of one regression.

    Parameters
    ----------
    settings : Settings
        Parameters of the estimator.
    problem : Problem
        The regression.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, settings, problem, rng):
        self.settings, self.problem = settings, problem
        self.ranks, self.n_pairs = problem.gram.ranks, len(problem.gram.pairs)
        self.kind = BallChain if settings.slab == "l1ball" else Chain
        self.radius = ball_radius(settings, problem.largest)
        most = MOST_VARIABLES if settings.max_active is None else settings.max_active
        self.most = min(len(self.ranks), most)
        self._readers = [problem.gram.reader() for _ in range(settings.n_chains)]
        self._generators = rng.spawn(settings.n_chains)
        # Effects: see `sees_weak_effects`.
        self.weak, self.n_variables_needed, self.weak_gain = None, 0, 0.0

    def first_models(self):
        """Return initial models: greedy for the first chain, empty for the others.

        With pairs, the others start at all of their variables, as a pair can be added
        only to a model with both of its variables.
        """
        *first, noise, _ = greedy_model(self.problem, self._readers[0], self.most)
        other = self.every_variable(np.unique(self.problem.gram.pairs))
        return [first] + [other] * (self.settings.n_chains - 1), noise

    def temperature(self, noise):
        """Return the inverse temperature for a noise variance."""
        n, kind = self.problem.weight, self.settings.inverse_temperature
        if kind == "likelihood":
            value = n / (2 * noise)
        elif kind == "pac":
            value = n * self.settings.gamma / (4 * noise + 4 * self.radius**2)
        else:
            value = float(kind)
        return Temperature(noise, value, math.sqrt(n / (2 * value)))

    def prior(self, unit):
        """Return the prior, in units of the noise."""
        settings = self.settings
        terms = self.ranks, settings.beta, self.most
        if settings.slab == "l1ball":
            return Prior.of(*terms, radius=self.radius / unit, n_pairs=self.n_pairs)
        variance = self.slab_variance(unit) / unit**2
        return Prior.of(*terms, variance=variance, n_pairs=self.n_pairs)

    def slab_variance(self, unit):
        """Return the prior variance of a coefficient."""
        if self.settings.slab_scale != "auto":
            return self.settings.slab_scale**2
        if self.weak is not None:
            return self.weak.slab_variance
        return self.problem.square / self.problem.weight or unit**2

    def chain(self, kind, number, model, temperature, prior=None):
        """Return chain `number` of a class of chains, started at a model."""
        chain = kind(
            self._readers[number],
            self.problem.against / temperature.unit,
            self.prior(temperature.unit) if prior is None else prior,
            self._generators[number],
        )
        if self.settings.slab == "gaussian":
            chain.start(*model)
        return chain

    def final_chain(self, number, model, temperature):
        """Return chain `number`, to be recorded, started at a model."""
        settings, problem, unit = self.settings, self.problem, temperature.unit
        if not may_integrate(settings, problem):
            kind = CarlinChibChain if settings.sampler == "carlin_chib" else self.kind
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
        settings = self.settings
        usual = "auto", "gaussian", "likelihood"
        if (settings.slab_scale, settings.slab, settings.inverse_temperature) != usual:
            return False
        found = weak_effects(
            self.problem,
            *self._pilot,
            settings.beta,
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
        settings, problem = self.settings, self.problem
        given = settings.noise_variance, settings.slab, settings.inverse_temperature
        if (
            given != ("auto", "gaussian", "likelihood")
            or settings.sampler != "collapsed"
            or may_integrate(settings, problem)
            or self.weak is not None
            or self.n_pairs
        ):
            return 0.0
        noise = temperature.noise_variance
        ratio = self.slab_variance(temperature.unit) / noise
        return nothing_matters(problem, posterior, settings.beta, ratio)

    def every_variable(self, among=None):
        """Return the model of all or some variables, each of order 1."""
        among = (
            np.arange(len(self.problem.functions.orders)) if among is None else among
        )
        among = among[self.ranks[among] > 0]
        return among, np.ones_like(among)


def ball_radius(settings, largest):
    """Return the radius of the l1 ball: given, or the largest |y - mean|."""
    if settings.radius is not None:
        return float(settings.radius)
    return largest if largest > 0 else 1.0


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
    posterior = Posterior.of_chains(
        chains,
        shape,
        unit=temperature.unit,
        among=problem.gram.among,
    )
    known = temperature
    if prior.freedom:
        temperature = setup.temperature(posterior.noise_variance)
    runs = runs_of([chain.recorded() for chain in chains])
    agreement = mixing(runs, posterior.inclusion()[:, 0], shape[1])
    # Moves that add or delete variables: the first two kinds.
    tried = sum(chain.state.tried[:2].sum() for chain in chains)
    accepted = sum(chain.state.accepted[:2].sum() for chain in chains)
    n_usable = np.count_nonzero(setup.ranks)
    sizes = (posterior.orders() > 0).sum(axis=1)
    found = Fitted(
        dictionary=problem.dictionary,
        functions=problem.functions,
        posterior=posterior,
        intercept=problem.mean,
        inverse_temperature=temperature.inverse_temperature,
        acceptance_rate=float(accepted / max(tried, 1)),
        r_hat=agreement.r_hat,
        errors=agreement.errors,
        runs=agreement.runs,
        n_variables_needed=setup.n_variables_needed,
        weak_gain=setup.weak_gain,
        nothing=setup.probability_of_nothing(posterior, temperature),
        full=prior.most if prior.most < n_usable and prior.most in sizes else 0,
        noise_variance=temperature.noise_variance,
        intercept_variance=1 / (2 * temperature.inverse_temperature),
        radius=setup.radius,
        slab_scale=math.sqrt(setup.slab_variance(known.unit)),
        most=prior.most,
        pairs=problem.pairs,
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


# The first model.


def greedy_model(problem, reader, most):
    """Add the variable and order that lower the BIC most, as long as any does.

    The criterion adds 2 log(n_features) for each variable, for the choice among all. A
    pair counts as one variable; those of its variables that are not in the model are
    added with it, of order 1.

    Parameters
    ----------
    problem : Problem
        The regression.
    reader : Reader
        The rows of its Gram matrix.
    most : int
        Largest number of variables.

    Returns
    -------
    features, orders : ndarray of shape (n_variables,)
        The model.
    noise_variance : float
        Mean squared residual, over the degrees of freedom.
    criterion : float
        The criterion, minus twice the log evidence up to bounded terms.
    """
    ranks, weight, pairs = problem.gram.ranks, problem.weight, problem.gram.pairs
    if len(pairs):
        reader = reader.without_pairs()
    prior = Prior.flat(ranks, most, RIDGE * weight)
    chain = Chain(reader, problem.against, prior, np.random.default_rng(0))
    order = np.arange(1, problem.gram.diagonal.shape[1] + 1)
    parents = [set()] * (len(ranks) - len(pairs)) + [set(map(int, p)) for p in pairs]
    least = least_noise(problem) * weight
    fit, used = 0.0, 0
    features, orders = [], []
    best = weight * np.log(max(problem.square, least))
    while len(features) < prior.most:
        chain.start(features, orders)
        chain.weigh_neighbors()
        gains = chain.state.fits.reshape(len(ranks), len(order))
        residual = np.maximum(problem.square - 2 * (fit + gains), least)
        lacking = np.array([len(own.difference(features)) for own in parents])[:, None]
        functions = used + order + lacking
        allowed = (order <= ranks[:, None]) & (5 * functions <= weight)
        allowed[features] = False
        allowed &= len(features) + lacking < prior.most
        if not allowed.any():
            break
        price = model_price(problem, functions, len(features) + 1 + lacking)
        criterion = np.where(allowed, weight * np.log(residual) + price, np.inf)
        j, a = np.unravel_index(criterion.argmin(), criterion.shape)
        if not criterion[j, a] < best:
            break
        best, fit, used = criterion[j, a], fit + gains[j, a], int(functions[j, a])
        first = sorted(parents[j].difference(features))
        features += [*first, int(j)]
        orders += [1] * len(first) + [int(order[a])]
        if first:
            fit = explained(chain, features, orders)
    noise = (problem.square - 2 * fit) / max(weight - 1 - used, 1.0)
    noise = max(noise, least_noise(problem))
    return np.array(features, dtype=int), np.array(orders, dtype=int), noise, best


def model_price(problem, n_functions, n_variables):
    """Return the penalty of a model in the criterion."""
    choice = 2 * np.log(len(problem.gram.ranks))
    return n_functions * np.log(problem.weight) + n_variables * choice


def explained(chain, features, orders):
    """Return the half sum of squares explained by a model."""
    chain.start(features, orders)
    chain.weigh_neighbors()
    return float(chain.state.solution @ chain.state.solution) / 2


def least_noise(problem):
    """Return the smallest noise variance that counts as positive."""
    variance = problem.square / problem.weight
    return max(NEGLIGIBLE * variance, 1e-24 * problem.mean**2, 1e-300)


# Few clear effects, or many weak ones, by their evidence.


class Weak(NamedTuple):
    """Many weak effects: the linear regression on all variables."""

    slab_variance: float  # of a coefficient
    noise_variance: float
    log_evidence: float
    gain: float = math.nan  # in log evidence, relative to few effects


def weak_effects(problem, recorded, noise, beta, most, least):
    """Return the variances of many weak effects, and their gain in log evidence.

    The evidence of few effects is that of the models that a chain visited. The evidence
    of many weak effects is that of the regression on the first function of every
    variable, with fitted variances of coefficients and noise, each penalised by log(n)
    / 2. Many effects are preferred if they are exp(8) times as probable: exp(5) is
    "very strong" evidence [1]_, and a chain does not visit all models.

    Parameters
    ----------
    problem : Problem
        The regression.
    recorded : tuple of ndarray
        Record of a chain under the default prior.
    noise : float
        Noise variance of that chain.
    beta : float
        Each function multiplies the prior by beta.
    most : int
        Largest number of variables in a model.
    least : float
                Smallest noise variance that counts as positive.

    Returns
    -------
    found : Weak or None
        The variances and the gain; None if there is nothing to compare.

    References
    ----------
    .. [1] R. E. Kass and A. E. Raftery (1995). Bayes factors. JASA 90.
    """
    spectrum = explained_squares(problem)
    if spectrum is None or problem.square <= problem.weight * least:
        return None
    _, columns, _, log_weights = recorded
    _, first = np.unique(columns, axis=0, return_index=True)
    few = logsumexp(log_weights[first]) - problem.square / (2 * noise)
    few -= (problem.weight - 1) / 2 * math.log(noise)
    ranks = problem.functions.orders
    few -= log_prior_mass(ranks, beta, min(most, np.count_nonzero(ranks)))
    many = linear_evidence(problem, *spectrum, least)
    gain = float(many.log_evidence - math.log(problem.weight) - few)
    return many._replace(gain=gain)


def nothing_matters(problem, posterior, beta, ratio):
    """Return the probability of the empty model among it and the visited models.

    The variance of the noise has the prior 1 / s^2, and the log evidence of a model
    with q functions is, up to a constant,

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 - q log(ratio) / 2.

    Parameters
    ----------
    problem : Problem
        The regression.
    posterior : Posterior
        The visited models; the `MOST_COMPARED` most probable ones are compared.
    beta : float
        Each function multiplies the prior by beta.
    ratio : float
        Variance of coefficients over that of the noise.
    """
    width, d = problem.gram.diagonal.shape[1], np.count_nonzero(problem.gram.ranks)
    logs, least = [0.0], 1e-10 * problem.square
    for model in posterior.columns[np.argsort(-posterior.weights)[:MOST_COMPARED]]:
        columns = model[model >= 0]
        n_functions, n_variables = len(columns), len(np.unique(columns // width))
        if not n_functions:
            continue
        factor = precision_factor(problem.gram.among(columns), 1 / ratio)
        fit = solve_triangular(factor, problem.against[columns], lower=True)
        share = max(problem.square - fit @ fit, least) / problem.square
        logs.append(
            n_functions * math.log(beta)
            - log_binomial(d, n_variables)
            - (problem.weight - 1) / 2 * math.log(share)
            - np.log(np.diag(factor)).sum()
            - n_functions / 2 * math.log(ratio)
        )
    return math.exp(-logsumexp(logs))


def explained_squares(problem):
    """Return the eigenvalues of the first functions' G, and explained squares of y.

    None if there are too many rows and variables, or fewer than two variables.
    """
    width = problem.gram.diagonal.shape[1]
    columns = np.flatnonzero(problem.functions.orders) * width
    values = getattr(problem.gram, "values", None)
    n_rows = len(columns) if values is None else values.shape[2]
    if not 2 <= min(len(columns), n_rows) <= LARGEST:
        return None
    linear = problem.against[columns]
    if n_rows >= len(columns):
        squares, directions = eigh(problem.gram.among(columns))
        shares = directions.T @ linear
        some = squares > 1e-10 * squares[-1]
        return squares[some], shares[some] ** 2 / squares[some]
    design = values[columns // width, 0] * np.sqrt(problem.gram.weights)
    squares, directions = eigh(design.T @ design)
    some = squares > 1e-10 * squares[-1]
    shares = directions[:, some].T @ (design.T @ linear)
    return squares[some], (shares / squares[some]) ** 2


def linear_evidence(problem, squares, explained, least=1e-300):
    """Fit the variances of a regression on all variables by maximum evidence.

    The variance of the noise is at least `least`.
    """
    n = problem.weight - 1
    rest = max(problem.square - explained.sum(), 0.0)
    damped = 1 + RATIOS[:, None] * squares
    residuals = (explained / damped).sum(axis=1) + rest
    noises = np.maximum(residuals / n, least)
    logs = -n / 2 * np.log(noises) - residuals / (2 * noises)
    logs -= np.log(damped).sum(axis=1) / 2
    best = logs.argmax()
    return Weak(RATIOS[best] * noises[best], float(noises[best]), float(logs[best]))
