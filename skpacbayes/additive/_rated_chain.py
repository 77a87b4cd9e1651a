"""A Gibbs sampler of models, coefficients and Pólya-Gamma rates.

Given a rate for each row, a likelihood of logistic form is Gaussian in the scores: the
chain then moves between models as in regression, with weighted rows, coefficients and
intercept integrated out. Given the scores, the rates are Pólya-Gamma.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from ..certificates.additive import precision_factor
from ._chain import NO_PAIRS, Chain, Gram, Prior, WeightedRows, log_binomial
from ._conditional_draws import INTERCEPT_VARIANCE, multiply, polya_gamma

MOVES = 20  # moves between models per draw of the rates
N_CANDIDATES = 128  # number of variables that a sweep chooses among
# All rows of G are computed at once up to this number of functions, or this multiple of
# the functions in the model: one product is faster than one for each model.
AT_ONCE, TIMES = 128, 4


class Draw(NamedTuple):
    """One draw of a chain: a model and its coefficients."""

    columns: np.ndarray  # functions of the model, ascending
    coefficients: np.ndarray
    intercept: float
    loss: float = math.nan  # of the rows
    slab_scale: float = math.nan  # prior standard deviation of a coefficient

    @classmethod
    def of(cls, columns, coefficients, intercept):
        """Return a draw, with its functions sorted."""
        order = columns.argsort()
        return cls(columns[order], coefficients[order], intercept)

    def multiplied(self, factor):
        """Return a draw with multiplied coefficients and intercept."""
        coefficients, intercept = factor * self.coefficients, factor * self.intercept
        return Draw(self.columns, coefficients, intercept)


class DrawnChain:
    """A chain that keeps its draws, see :func:`skpacbayes._chains.run_chains`.

    A subclass defines `sweep`, one iteration; `_record`, which returns the current
    draw; `_adapt`, if it adapts itself after each sweep of the burn-in; and the `prior`
    and the number of `moves` tried and accepted.

    Attributes
    ----------
    kept : list of Draw
        The draws kept.
    """

    draws = True  # coefficients, which are not integrated out

    def __init__(self):
        self.kept = []

    @property
    def n_kept(self):
        """Number of draws kept."""
        return len(self.kept)

    def recorded(self):
        """Return the draws kept, as :meth:`Chain.recorded`; each counts as a model."""
        count = len(self.kept)
        columns = np.full((count, max(len(draw.columns) for draw in self.kept)), -1)
        coefficients = np.zeros(columns.shape)
        for row, draw in enumerate(self.kept):
            columns[row, : len(draw.columns)] = draw.columns
            coefficients[row, : len(draw.columns)] = draw.coefficients
        return np.arange(count), columns, coefficients, np.zeros(count)

    def advance(self, n_iter, keep=True):
        """Make sweeps, and keep all or none of the draws."""
        for _ in range(n_iter):
            self.sweep()
            if keep:
                self.kept.append(self._record())
            else:
                self._adapt()

    def _adapt(self):
        """Do nothing, by default."""


class ModelSpace(NamedTuple):
    """Functions of the variables, and the prior of models and coefficients."""

    values: np.ndarray  # (n_features, max_order, n_samples), at the rows
    ranks: np.ndarray  # (n_features,): functions of each variable, then of each pair
    beta: float  # each function multiplies the prior by beta
    most: int  # largest number of variables in a model
    # Prior variance of a coefficient; None: drawn (several classes).
    variance: float | None
    pairs: np.ndarray = NO_PAIRS  # (n_pairs, 2), numbered after the variables

    def prior(self, ranks, **counts):
        """Prior of the models of some variables; see :meth:`Prior.of`."""
        return Prior.of(ranks, self.beta, self.most, variance=self.variance, **counts)


class CenteredRows(WeightedRows):
    """The matrix G = V W V' - s s' / precision, with the sums s = V W 1."""

    def __init__(self, values, weights, ranks, pairs, precision, sums):
        super().__init__(values, weights, ranks, pairs)
        self._precision, self._sums = precision, sums
        sums = sums.reshape(values.shape[:2])
        self.diagonal -= sums[:, :, None] * sums[:, None, :] / precision

    def among(self, columns):
        """Return G among some functions."""
        sums = self._sums[columns]
        return super().among(columns) - np.outer(sums, sums / self._precision)

    def rows_of(self, columns):
        """Return the rows of G of some functions."""
        rows = super().rows_of(columns)
        rows -= np.outer(self._sums[columns], self._sums / self._precision)
        return rows


class RatedRows:
    """The quadratic form of the scores, its intercept integrated out.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    rates : ndarray of shape (n_samples,)
        Pólya-Gamma rates.
    pulls : ndarray of shape (n_samples,)
        Linear terms of the log-likelihood: half the weight of a row, with the sign of
        the label.
    ranks : ndarray of shape (n_features,)
        Number of functions of each variable, then of each pair.
    pairs : ndarray of int of shape (n_pairs, 2), default=NO_PAIRS
        Pairs of variables, numbered after the variables.
    room : ndarray of shape (n_functions, n_samples), default=None
        Work array for computing all rows of G at once; None: rows are computed on
        demand.

    Attributes
    ----------
    gram : Gram or CenteredRows
        G.
    linear : ndarray of shape (n_functions,)
        The linear terms b.
    """

    def __init__(self, values, rates, pulls, ranks, pairs=NO_PAIRS, room=None):
        flat = values.reshape(-1, values.shape[2])
        self.rates, self._pull = rates, pulls.sum()
        self._precision = rates.sum() + 1 / INTERCEPT_VARIANCE
        sums = flat @ rates
        self.linear = flat @ pulls - sums * (self._pull / self._precision)
        if room is None:
            self.gram = CenteredRows(values, rates, ranks, pairs, self._precision, sums)
            return
        np.multiply(flat, np.sqrt(rates), out=room)
        matrix = room @ room.T
        matrix -= np.outer(sums, sums / self._precision)
        self.gram = Gram(matrix, ranks, pairs)

    def draw_intercept(self, scores, rng):
        """Draw the intercept, given the sum of the effects at each row."""
        mean = (self._pull - self.rates @ scores) / self._precision
        return mean + rng.standard_normal() / math.sqrt(self._precision)


class RatedChain(DrawnChain):
    """One chain of a likelihood of logistic form, which a subclass defines.

    The log-likelihood is, exactly or nearly, the sum over rows of (pulls + shapes / 2)
    x scores - shapes x log(1 + exp(scores)).

    With many variables, each sweep is restricted to K of them: those in the model, and
    others drawn at random. Given these, the posterior of the models has the prior for K
    variables instead of d, as C(d, s) C(d - s, K - s) = C(d, K) C(K, s). So the chain
    leaves the posterior over all variables invariant, and the cost of a sweep is that
    of K variables. With pairs, each sweep uses all variables.

    Parameters
    ----------
    space : ModelSpace
        Functions, and the prior.
    intercept : float
        Intercept of the initial model, which is empty.
    rng : numpy.random.Generator
        Source of random numbers.

    Attributes
    ----------
    shapes, pulls : ndarray of shape (n_samples,)
        See above.
    offsets : ndarray of shape (n_samples,) or float
        Known parts of the scores: 0, unless a caller sets them.
    usable : ndarray of int
        Variables with functions.
    n_chosen : int
        Number of variables K of a sweep.
    """

    def __init__(self, space, intercept, rng):
        super().__init__()
        self.space, self.rng = space, rng
        self.values, self.ranks = values, ranks = space.values, space.ranks
        self._pairs = pairs = space.pairs
        self._priors = {}  # see _prior_given
        if len(pairs):
            self.usable = np.arange(len(ranks))
            self.n_chosen = len(ranks)
            self.prior = space.prior(ranks, n_pairs=len(pairs))
        else:
            self.usable = np.flatnonzero(ranks) if ranks.any() else np.array([0])
            self.n_chosen = min(len(self.usable), max(N_CANDIDATES, 2 * space.most))
            self.prior = space.prior(ranks, n_variables=self.n_chosen)
        self._flat = values.reshape(-1, values.shape[2])
        self.draw = Draw(np.empty(0, dtype=np.int64), np.empty(0), intercept)
        self.effects = np.zeros(values.shape[2])  # sums of the effects, at the rows
        self.offsets = 0.0
        self._usable_values = self._values_of(self.usable)
        self._room = np.empty((0, values.shape[2]))
        self._chain = None

    @property
    def model(self):
        """Return variables and orders of the current model, variables ascending."""
        return np.unique(self.draw.columns // self.values.shape[1], return_counts=True)

    @property
    def moves(self):
        """Number of proposed and of accepted moves."""
        state = self._chain.state
        return int(state.tried.sum()), int(state.accepted.sum())

    def _record(self):
        loss = -self.log_likelihood() / self.weights.sum()
        return self.draw._replace(loss=loss, slab_scale=self.slab_scale)

    @property
    def slab_scale(self):
        """Prior standard deviation of a coefficient."""
        return self.prior.ridge**-0.5

    @property
    def scores(self):
        """Scores of the current draw at the rows."""
        return self.draw.intercept + self.effects + self.offsets

    def sweep(self, n_moves=MOVES):
        """Draw the norm of the coefficients, then all else, then the norm again.

        The order is symmetric, so that a sweep is reversible.
        """
        self.draw_length()
        self._move(n_moves)
        self.draw_length()

    def draw_length(self):
        """Multiply coefficients and intercept by a factor drawn given all else.

        Given the rates, the norm of the coefficients hardly changes: with nearly
        separable classes it would be the slowest quantity of the chain. The factor is
        drawn without the rates, by slice sampling of its logarithm, a generalised Gibbs
        move [1]_.

        References
        ----------
        .. [1] J. S. Liu and C. Sabatti (2000). Generalised Gibbs sampler and multigrid
           Monte Carlo for Bayesian computation. Biometrika 87.
        """
        if self.draw.coefficients.any():
            multiply([self], self._along_length(), self.rng)

    def _move(self, n_moves):
        """Draw the rates, move between models, and draw the coefficients."""
        rates = self.draw_rates()
        features, orders = self.model
        chosen = self._choice(features)
        form = self._form(chosen, rates, self.offsets)
        reader = form.gram.reader()
        places = chosen.searchsorted(features)
        if self._chain is None:
            self._chain = Chain(reader, form.linear, self.prior, self.rng)
            if len(self._pairs):
                places, orders = self._first_model(form)
        else:
            self._chain.change(reader, form.linear, self.prior)
        self._chain.start(places, orders)
        self._chain.advance(n_moves, keep=False)
        self._draw_coefficients(form, chosen, self._chain)

    def blocks(self, n_blocks):
        """Divide the variables of a sweep into random blocks."""
        chosen = self.rng.permutation(self._choice(self.model[0]))
        return [np.sort(block) for block in np.array_split(chosen, n_blocks)]

    def move_among(self, block, rates, n_moves):
        """Move between models that differ in a block of variables, and draw these.

        The rates and the coefficients of the other variables are given.
        """
        features, orders = self.model
        own = np.isin(features, block)
        held = np.repeat(~own, orders)
        columns, coefficients = self.draw.columns[held], self.draw.coefficients[held]
        effects = coefficients @ self._flat[columns]
        form = self._form(block, rates, self.offsets + effects)
        prior = self._prior_given(np.count_nonzero(~own), self.ranks[block])
        chain = Chain(form.gram.reader(), form.linear, prior, self.rng)
        chain.start(block.searchsorted(features[own]), orders[own])
        chain.advance(n_moves, keep=False)
        self._draw_coefficients(form, block, chain)
        columns = np.concatenate([columns, self.draw.columns])
        coefficients = np.concatenate([coefficients, self.draw.coefficients])
        self.draw = Draw.of(columns, coefficients, self.draw.intercept)
        self.effects = self.effects + effects

    def _prior_given(self, n_held, ranks):
        """Return the prior of models of some variables, given the number of others."""
        key = n_held, np.sort(ranks).tobytes()  # the prior is symmetric
        if key not in self._priors:
            self._priors[key] = self.space.prior(
                ranks, n_variables=self.n_chosen, n_held=n_held
            )
        return self._priors[key]

    def _form(self, chosen, rates, offsets):
        """Return the quadratic form of variables, given rates and offsets."""
        values = self._usable_values
        if len(chosen) < len(self.usable):
            values = self._values_of(chosen)
        pulls = self.pulls - rates * offsets
        n_functions = len(chosen) * values.shape[1]
        room = None
        if n_functions <= max(AT_ONCE, TIMES * len(self.draw.columns)):
            if len(self._room) < n_functions:
                self._room = np.empty((n_functions, values.shape[2]))
            room = self._room[:n_functions]
        return RatedRows(values, rates, pulls, self.ranks[chosen], self._pairs, room)

    def _first_model(self, form):
        """Return an initial model of the pairs with the largest gains.

        A pair can be added only to a model with both of its variables, which may have
        no effects of their own. The chain therefore starts with the largest possible
        number of pairs, with their variables.
        """
        n_variables = len(self.ranks) - len(self._pairs)
        slopes = form.linear.reshape(len(self.ranks), -1)[n_variables:, 0]
        gains = slopes**2 / (form.gram.diagonal[n_variables:, 0, 0] + self.prior.ridge)
        chosen = set()
        for number in np.argsort(-gains, kind="stable"):
            together = {*self._pairs[number].tolist(), n_variables + int(number)}
            if (self.ranks[list(together)] > 0).all():
                together |= chosen
                chosen = together if len(together) <= self.prior.most else chosen
        return np.array(sorted(chosen), dtype=np.int64), np.ones(len(chosen), dtype=int)

    def coefficients_of(self, columns):
        """Return the coefficients of some functions of the current model."""
        return self.draw.coefficients[self.draw.columns.searchsorted(columns)]

    def exchange(self, columns, coefficients):
        """Add functions with coefficients to the model; None: remove the functions."""
        draw, flat = self.draw, self._flat
        if coefficients is None:
            kept = ~np.isin(draw.columns, columns)
            self.effects = self.effects - self.coefficients_of(columns) @ flat[columns]
            columns, coefficients = draw.columns[kept], draw.coefficients[kept]
        else:
            self.effects = self.effects + coefficients @ flat[columns]
            columns = np.concatenate([draw.columns, columns])
            coefficients = np.concatenate([draw.coefficients, coefficients])
        self.draw = Draw.of(columns, coefficients, draw.intercept)

    def log_prior(self, draw=None):
        """Return the log prior of a draw without pairs; None: of the current one."""
        draw = self.draw if draw is None else draw
        columns = draw.columns
        size = np.count_nonzero(columns % self.values.shape[1] == 0)
        count = len(columns)
        if size > self.prior.most:
            return -math.inf
        square = self.prior.ridge * (draw.coefficients @ draw.coefficients)
        log_prior = self.prior.log_totals[count] - log_binomial(len(self.usable), size)
        return log_prior - 0.5 * square - 0.5 * count * math.log(2 * math.pi)

    def draw_rates(self):
        """Draw the rates of the rows given all else."""
        return polya_gamma(self.shapes, self.scores, self.rng)

    def _choice(self, features):
        """Return the variables of a sweep: the model's, and others at random."""
        if self.n_chosen == len(self.usable):
            return self.usable
        others = np.setdiff1d(self.usable, features, assume_unique=True)
        n_others = self.n_chosen - len(features)
        others = self.rng.choice(others, n_others, replace=False, shuffle=False)
        return np.sort(np.concatenate([features, others]))

    def _values_of(self, features):
        return (
            self.values if len(features) == len(self.ranks) else self.values[features]
        )

    def _draw_coefficients(self, form, chosen, chain):
        """Draw coefficients and intercept of the model, normal given the rates."""
        width = self.values.shape[1]
        features, orders = chain.model
        places = np.arange(width) < orders[:, None]
        columns = np.sort((features[:, None] * width + np.arange(width))[places])
        coefficients = np.empty(0)
        if len(columns):
            factor = precision_factor(form.gram.among(columns), self.prior.ridge)
            whitened, _ = dtrtrs(factor, form.linear[columns], lower=1)
            whitened += self.rng.standard_normal(len(whitened))
            coefficients, _ = dtrtrs(factor, whitened, lower=1, trans=1)
        columns = chosen[columns // width] * width + columns % width
        self.effects = coefficients @ self._flat[columns]
        intercept = form.draw_intercept(self.effects, self.rng)
        self.draw = Draw(columns, coefficients, intercept)
