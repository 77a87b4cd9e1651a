"""The chains of a regression: their priors, samplers and posterior."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import logsumexp

from .._chains import run_chains
from .._kernels.additive import ADD, DELETE, ORDER
from .._kernels.standardize import LEAST_SPREAD
from ._chain import PROMISING, WINDOW, Chain, Prior
from ._posterior import Fitted, Posterior, runs_of
from ._regressor_start import Effects, first_state, least_noise, nothing_matters

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
    models, noise, setup.effects = first_state(setup, starts)
    temperature = setup.temperature(noise)
    chains = setup.chains(models, temperature)
    run_chains(
        chains,
        burn_in=estimator.burn_in,
        n_iter=estimator.n_iter,
        tasks=tasks,
        n_jobs=estimator.n_jobs,
    )
    return setup.results(chains, temperature)


class Setup:
    """What the chains of one regression share.

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
        # With few rows for the number of variables and pairs, a model that fits the
        # noise would make its own variance small.
        least = max(LEAST_FREEDOM + 1, ROWS_EACH * np.count_nonzero(self.ranks))
        self.integrates_noise = estimator._learns_noise() and problem.weight >= least
        self.readers = [problem.gram.reader() for _ in range(estimator.n_chains)]
        self._generators = rng.spawn(estimator.n_chains)
        self.effects = Effects()  # few, until they are chosen

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

    def slab_variance(self, unit):
        """Return the prior variance of a coefficient."""
        if self.estimator.slab_scale != "auto":
            return self.estimator.slab_scale**2
        if self.effects.slab_variance is not None:
            return self.effects.slab_variance
        return self.problem.square / self.problem.weight or unit**2

    def form(self, number, unit):
        """Return rows, linear terms and prior of chain `number`, by unit of noise."""
        beta, slab = self.estimator.beta, {"radius": self.radius / unit}
        if self.estimator.slab == "gaussian":
            slab = {"variance": self.slab_variance(unit) / unit**2}
        prior = Prior.of(self.ranks, beta, self.most, n_pairs=self.n_pairs, **slab)
        return self.readers[number], self.problem.against / unit, prior

    def chain(self, kind, number, model, temperature):
        """Return chain `number` of a class of chains, started at a model."""
        form = self.form(number, temperature.unit)
        chain = kind(*form, self._generators[number])
        if self.estimator.slab == "gaussian":
            chain.start(*model)
        return chain

    def chains(self, models, temperature):
        """Return the chains, to be recorded, each started at a model."""
        problem, kind = self.problem, self.kind
        if self.estimator.sampler == "carlin_chib":
            kind = CarlinChibChain
        chains = [
            self.chain(kind, number, model, temperature)
            for number, model in enumerate(models)
        ]
        if self.integrates_noise:
            square = problem.square + problem.weight * least_noise(problem)
            square /= temperature.unit**2
            for chain in chains:
                chain.prior = chain.prior.integrating(problem.weight - 1, square)
        if kind is not CarlinChibChain:
            self.choose_among(chains, models[0], temperature)
        for chain in chains:
            chain.expect(self.estimator.n_iter)
        return chains

    def choose_among(self, chains, model, temperature):
        """Restrict moves of chains mostly to variables promising at a model."""
        if len(self.ranks) > PROMISING + WINDOW:
            sequence = self.chain(Chain, 0, model, temperature).promising()
            for chain in chains:
                chain.choose_among(sequence)

    # Results.

    def results(self, chains, temperature):
        """Return the posterior, and where the chains ended."""
        problem, prior = self.problem, chains[0].prior
        gram, slab = problem.gram, self.slab_variance(temperature.unit)
        posterior = Posterior(
            chains, gram.diagonal.shape[:2], unit=temperature.unit, among=gram.among
        )
        ends = Starts([chain.model for chain in chains], temperature.noise_variance)
        if self.integrates_noise:
            temperature = self.temperature(posterior.noise_variance)
        factor, nothing = 1.0, 0.0
        few = self.effects.slab_variance is None
        if self.estimator._learns_noise() and few and not self.integrates_noise:
            factor = variance_factor(problem, posterior)
            if not self.n_pairs:
                ratio = slab / temperature.noise_variance
                nothing = nothing_matters(
                    problem, posterior, self.estimator.beta, ratio
                )
        found = Fitted.of_chains(
            problem,
            chains,
            posterior,
            runs_of([chain.recorded() for chain in chains]),
            intercept=problem.mean,
            inverse_temperature=temperature.inverse_temperature,
            n_variables_needed=self.effects.n_variables_needed,
            weak_gain=self.effects.weak_gain,
            nothing=nothing,
            noise_variance=temperature.noise_variance,
            intercept_variance=1 / (2 * temperature.inverse_temperature),
            variance_factor=factor,
            radius=self.radius,
            slab_scale=math.sqrt(slab),
            most=prior.most,
            **problem.tails._asdict(),
        )
        return found, ends


def variance_factor(problem, posterior):
    """Return the factor of predictive variances for the error of the noise.

    A variance estimated with v degrees of freedom makes errors of new rows Student t;
    their variance is v / (v - 2) times as large.
    """
    n_functions = posterior.weights @ (posterior.columns >= 0).sum(axis=1)
    freedom = problem.weight - 1 - n_functions
    return 1 + 2 / max(freedom - 2, LEAST_EXCESS)


# Chains that draw coefficients: for the l1 ball, and the paper's.


class DrawingChain(Chain):
    """A chain on models and coefficients.

    A subclass defines `_begin`, which draws the initial coefficients, `_move`, which
    makes one move and returns whether it was accepted, and `_coefficients`, which
    returns the current ones.
    """

    draws = True

    def change(self, reader, linear, prior):
        """Set another quadratic form and prior of the same functions."""
        super().change(reader, linear, prior)
        self._draws = None

    def _advance(self, n_iter, keep):
        if self._draws is None:
            self._begin()
        for _ in range(n_iter):
            moved = self._move()
            if keep:
                self._record(moved)

    def _record(self, moved):
        """Record the current model and coefficients, as new ones if they changed."""
        state, record = self.state, self.record
        if moved or state.n_models == 0:
            place, columns = state.n_models, self.columns()
            record.columns[place, : len(columns)] = columns + 1
            record.draws[place, : len(columns)] = self._coefficients()
            record.weights[place] = state.log_weight
            state.count(models=1)
        record.path[state.n_moves] = state.n_models - 1
        state.count(moves=1)


class BallChain(DrawingChain):
    """A chain on models and coefficients, in the ball of a prior's radius.

    The proposal is a move of the chain with coefficients integrated out over the whole
    space, with a ridge, and then a draw of the coefficients. The acceptance ratio is
    that of the target to the stationary distribution of these moves: 0 outside of the
    ball, exp(ridge |coefficients|^2 / 2) within it.
    """

    def _begin(self):
        """Start at the empty model, without coefficients."""
        self.start([], [])
        self._draws, self._log_density = np.zeros(0), 0.0

    def _move(self):
        """Make a Metropolis move; return whether it was accepted."""
        state = self.state
        before, accepted = int(state.current), state.accepted.copy()
        self._run(self.rng.random((1, 4)), self._no_record, self.windows)
        draws = state.solution + self.rng.standard_normal(state.n_functions)
        if len(draws):  # L' draws
            draws = dtrtrs(state.factor.T, draws)[0]
        log_density = -math.inf
        if abs(draws).sum() <= self.prior.radius:
            log_density = 0.5 * self.prior.ridge * (draws @ draws)
        if not math.log1p(-self.rng.random()) < log_density - self._log_density:
            state.go_back(before, accepted)
            return False
        self._draws, self._log_density = draws, log_density
        return True

    def _coefficients(self):
        return self._draws


class CarlinChibChain(DrawingChain):
    """Algorithm 7 of the review: models weighted by draws of their coefficients.

    For each model of a neighbourhood, coefficients are drawn from its pseudo-prior,
    normal about the conditional mean with one standard deviation s for all first
    functions, one for all second functions and so on. Its weight w is their posterior
    density over that of the pseudo-prior. A model is chosen with probability
    proportional to w, and accepted with probability

        min(1, q(back) W(forth) / (q(forth) W(back))),

    where W is the sum of the weights over the neighbourhood of the current or of the
    chosen model; the latter has new draws for all but the current model. The paper
    prints w' / w instead, which does not leave the posterior invariant, as it omits the
    probability w' / W of the choice.

    A neighbourhood holds the models with one variable more, those with one less or,
    where the paper stays, those in which one variable has another order, or its own.
    """

    def change(self, reader, linear, prior):
        """Set another quadratic form and prior of the same functions."""
        super().change(reader, linear, prior)
        squares = np.einsum("jkk->jk", reader.source.diagonal)
        self._scales = 1 / np.sqrt(np.maximum(squares.max(axis=0), prior.ridge))

    def _begin(self):
        """Draw the coefficients of the initial model."""
        self.weigh_neighbors()
        self._take(self.rng.standard_normal(len(self.columns())))

    def _move(self):
        """Make one step of the algorithm; return whether it was accepted."""
        features, orders = self.model
        kind = self._kind(len(features))
        self.state.tried[kind] += 1
        only = None
        if kind == ORDER:
            if len(features) == 0:
                return False
            only = self.rng.integers(len(features))
            self._go(np.delete(features, only), np.delete(orders, only))
            only = features[only]
        models, weights, draws = self._neighbourhood(kind, only)
        forth = logsumexp(weights)
        chosen = self.rng.choice(len(weights), p=np.exp(weights - forth))
        model, weight, drawn = models(chosen), weights[chosen], draws(chosen)
        if kind != ORDER:
            self._go(*model)
        back_kind = ORDER if kind == ORDER else ADD + DELETE - kind
        models, weights, _ = self._neighbourhood(back_kind, only)
        current = set(zip(features, orders, strict=True))
        weights[self._place(models, weights, current)] = self._weight
        log_ratio = self._log_ratio(
            self._log_share(kind, len(features)) - forth,
            self._log_share(back_kind, len(model[0])) - logsumexp(weights),
            weight,
        )
        accepted = math.log(1 - self.rng.random()) < log_ratio
        self._go(*(model if accepted else (features, orders)))
        if accepted:
            self.state.accepted[kind] += 1
            self._take(drawn)
        return accepted

    def _log_ratio(self, forth, back, weight):
        """Return the log acceptance ratio of a model.

        `forth` and `back` are log(q / W) of the two directions, `weight` is log w'.
        """
        return back - forth

    def _go(self, features, orders):
        """Set the current model, and compute the weights of its neighbours."""
        self.start(features, orders)
        self.weigh_neighbors()

    def _kind(self, size):
        left = self.rng.random()
        for kind in (ADD, DELETE):
            left -= math.exp(self._log_share(kind, size))
            if left < 0:
                return kind
        return ORDER

    def _log_share(self, kind, size):
        """Return the log probability of a kind of move."""
        possible = size < self.prior.most if kind == ADD else size > 0
        return math.log(0.4) if possible else -math.inf

    def _take(self, draws):
        """Set the coefficients of the current model."""
        self._draws, self._weight = draws, self._log_weight(draws)

    def _log_weight(self, draws):
        """Return log w of the current model."""
        factor, scales = self.state.factor, self._own_scales()
        square = ((scales * draws @ factor) ** 2).sum()
        return (
            self.state.log_weight
            + np.log(np.diag(factor)).sum()
            + self._noise(draws, square, scales)
        )

    def _own_scales(self):
        """Return the standard deviations s of the current model's functions."""
        return self._scales[self.columns() % len(self._scales)]

    def _noise(self, draws, square, scales):
        """Return the term of log w in draws d; `square` is (s d)' P (s d)."""
        return np.log(scales).sum() + ((draws**2).sum(axis=-1) - square) / 2

    def _neighbourhood(self, kind, only):
        """Return the models of a neighbourhood, their log weights and draws."""
        return self._smaller() if kind == DELETE else self._larger(only)

    def _larger(self, only):
        """Return all models with one more variable, or a given one, of any order."""
        source, factor = self.reader.source, self.state.factor
        width, q = source.diagonal.shape[1], len(factor)
        gains = self.state.larger.reshape(-1, width)
        half_logs = self.state.half_logs.reshape(-1, width)
        new = np.flatnonzero(gains[:, 0] > -np.inf)
        new = new if only is None else np.array([only])
        collapsed = self.state.log_weight + np.log(np.diag(factor)).sum()
        rows = self._rows().reshape(q, len(source.ranks), width)[:, new]
        weights = np.full((len(new), width), -np.inf)
        draws = self.rng.standard_normal((width, len(new), q + width))
        every = np.append(self._own_scales(), self._scales)
        for a in range(width):
            both, scales = draws[a, :, : q + a + 1], every[: q + a + 1]
            inner, own = np.split(scales * both, [q], axis=1)
            block = source.diagonal[new, : a + 1, : a + 1]
            square = ((inner @ factor) ** 2).sum(axis=1)
            square += 2 * np.einsum("jq,qjb,jb->j", inner, rows[..., : a + 1], own)
            square += np.einsum("ja,jab,jb->j", own, block, own)
            square += self.prior.ridge * (own**2).sum(axis=1)
            weights[:, a] = self._noise(both, square, scales)
            weights[:, a] += gains[new, a] + half_logs[new, a]
        weights += collapsed
        weights[np.arange(width) >= source.ranks[new, None]] = -np.inf
        features, orders = self.model

        def models(place):
            j, a = divmod(int(place), width)
            return np.append(features, new[j]), np.append(orders, a + 1)

        def chosen(place):
            j, a = divmod(int(place), width)
            return draws[a, j, : q + a + 1]

        return models, weights.ravel(), chosen

    def _smaller(self):
        """Return all models with one variable removed."""
        features, orders = self.model
        factor, losses = self.state.factor, self.state.smaller
        precision, scales = factor @ factor.T, self._own_scales()
        owner = np.repeat(np.arange(len(features)), orders)
        weights, draws = np.empty(len(features)), []
        for i in range(len(features)):
            keep = owner != i
            part = precision[np.ix_(keep, keep)]
            draw = self.rng.standard_normal(len(part))
            scaled = scales[keep] * draw
            weights[i] = (
                self.state.log_weight
                + losses[i]
                + np.linalg.slogdet(part)[1] / 2
                + self._noise(draw, scaled @ part @ scaled, scales[keep])
            )
            draws.append(draw)

        def models(place):
            return np.delete(features, place), np.delete(orders, place)

        return models, weights, draws.__getitem__

    def _place(self, models, weights, wanted):
        """Return the index of the model `wanted` in a neighbourhood."""
        for place in np.flatnonzero(weights > -np.inf):
            if set(zip(*models(place), strict=True)) == wanted:
                return place
        raise AssertionError("a model is a neighbour of its neighbours")

    def _rows(self):
        """Return the rows of G of the current model's functions."""
        places = self.reader.places[self.state.owners, self.state.places]
        return self.reader.rows[places]

    def _coefficients(self):
        factor, solution = self.state.factor, self.state.solution
        mean = np.linalg.solve(factor.T, solution) if len(solution) else solution
        return mean + self._own_scales() * self._draws
