"""A Markov chain on models: its prior, its state, and the record of its moves."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._kernels import additive as kernels
from .._kernels.additive import (
    ABSENT,
    ACCEPTED,
    COUNTS,
    CURRENT,
    FEATURES,
    FIT,
    FITS,
    HALF_LOGS,
    KNOWN,
    LARGER,
    MODELS,
    MOVES,
    ORDERS,
    OTHER,
    OWNERS,
    PLACES,
    SCALARS,
    SIZE,
    SMALLER,
    STATUS,
    STAY,
    TALLY,
    TOTAL,
    TRIED,
    WEIGHT,
)
from .._kernels.state import named
from ..certificates.additive import log_binomial

MOST_VARIABLES = 50  # default of `max_active`
# Numbers of promising and of other variables that a move chooses among.
PROMISING, WINDOW = 128, 256
N_VIEWS = 20  # largest number of models whose neighbours define promising variables
EVERY = slice(None)
KINDS = slice(STAY)  # of moves


class ModelState(NamedTuple):
    """One of the two models of a chain: views of its arrays.

    Parameters
    ----------
    rows : ndarray of int64 of shape (6, n)
        Variables, orders and functions, their numbers, and indices of pairs.
    numbers : ndarray of shape (3, n)
        Log weights of its neighbours relative to its own, and its own.
    triangle : ndarray of shape (largest + 1, largest)
        Cholesky factor L of P and, below it, L^-1 b.
    """

    rows: np.ndarray
    numbers: np.ndarray
    triangle: np.ndarray

    n_variables = named("rows", COUNTS, SIZE)
    n_functions = named("rows", COUNTS, TOTAL)  # once it is factorised
    known = named("rows", COUNTS, KNOWN)
    log_weight = named("numbers", SCALARS, WEIGHT)
    fit = named("numbers", SCALARS, FIT)
    # Allocated for more entries than are used: see the properties of `ChainState`.
    features = named("rows", FEATURES, EVERY)
    orders = named("rows", ORDERS, EVERY)
    owners = named("rows", OWNERS, EVERY)
    places = named("rows", PLACES, EVERY)
    larger = named("numbers", LARGER, EVERY)
    smaller = named("numbers", SMALLER, EVERY)


class ChainState(NamedTuple):
    """The current and a proposed model of a chain, and scratch.

    Parameters
    ----------
    model : ndarray of int64 of shape (3, 6, n)
        Variables, orders and functions of the two models; then the tally of the moves.
    numbers : ndarray of shape (2, 3, n)
        For each model, the log weights of its neighbours relative to its own, and its
        own.
    factors : ndarray of shape (3, largest + 1, largest)
        For each model, the Cholesky factor L of P and, below it, L^-1 b; then scratch.
    work : ndarray of shape (largest + 3, n_features * max_order)
        Scratch; the last rows are parts of the log weights of the larger neighbours.
    """

    model: np.ndarray
    numbers: np.ndarray
    factors: np.ndarray
    work: np.ndarray

    both_known = named("model", COUNTS, KNOWN)  # whether models are factorised
    current = named("model", TALLY, OTHER, CURRENT)  # which of the two models
    n_models = named("model", TALLY, OTHER, MODELS)  # recorded
    n_moves = named("model", TALLY, OTHER, MOVES)  # recorded
    tried = named("model", TALLY, TRIED, KINDS)  # number of moves, of each kind
    accepted = named("model", TALLY, ACCEPTED, KINDS)
    fits = named("work", FITS, EVERY)  # of larger models: explained part of b
    half_logs = named("work", HALF_LOGS, EVERY)  # and half log determinants

    @classmethod
    def empty(cls, n_features, max_order, largest):
        """Return a state for models of at most `largest` functions, without any."""
        side, n_columns = max(largest, max_order), n_features * max_order
        counts, scalars = max(largest, ABSENT, n_features), max(n_columns, FIT + 1)
        return cls(
            model=np.zeros((TALLY + 1, STATUS + 1, counts + 1), dtype=np.int64),
            numbers=np.zeros((TALLY, SCALARS + 1, scalars)),
            factors=np.zeros((TALLY + 1, side + 1, side)),
            work=np.zeros((largest + 3, n_columns)),
        )

    @property
    def now(self):
        """The current model."""
        current = self.current
        return ModelState(
            self.model[current], self.numbers[current], self.factors[current]
        )

    @property
    def n_functions(self):
        """Number of functions of the current model, once it is factorised."""
        return self.now.n_functions

    @property
    def features(self):
        """Variables of the current model."""
        now = self.now
        return now.features[: now.n_variables]

    @property
    def orders(self):
        """Their orders."""
        now = self.now
        return now.orders[: now.n_variables]

    @property
    def owners(self):
        """Variable of each function of the current model."""
        now = self.now
        return now.owners[: now.n_functions]

    @property
    def places(self):
        """Place of each function of the current model among those of its variable."""
        now = self.now
        return now.places[: now.n_functions]

    @property
    def log_weight(self):
        """Log weight of the current model."""
        return self.now.log_weight

    @property
    def larger(self):
        """Log weights of the larger neighbours relative to the current model's."""
        return self.now.larger[: self.work.shape[1]]

    @property
    def smaller(self):
        """Log weights of the smaller neighbours relative to the current model's."""
        now = self.now
        return now.smaller[: now.n_variables]

    @property
    def factor(self):
        """Cholesky factor L of the current model's P."""
        now = self.now
        q = now.n_functions
        return np.tril(now.triangle[:q, :q])

    @property
    def solution(self):
        """L^-1 b of the current model."""
        now = self.now
        q = now.n_functions
        return now.triangle[q, :q]

    def start(self, features, orders):
        """Set the current model."""
        now, size = self.now, len(features)
        now.n_variables, now.known = size, 0
        now.features[:size], now.orders[:size] = features, orders

    def forget(self):
        """Mark the models as not factorised, as G, b or the prior has changed."""
        self.both_known = 0

    def go_back(self, model, accepted):
        """Undo a move, given the former model and number of accepted moves."""
        self.current, self.accepted = model, accepted

    def reset_counts(self):
        """Reset the counts of moves and recorded models."""
        self.tried = self.accepted = self.n_models = self.n_moves = 0

    def count(self, *, models=0, moves=0):
        """Count models and moves that were recorded outside of the kernel."""
        self.n_models += models
        self.n_moves += moves


class ChainRecord(NamedTuple):
    """Record of the models that a chain has visited.

    Parameters
    ----------
    visits : ndarray of int64 of shape (n_moves, 1 + largest)
        Row i holds the number of the model after move i, then the columns of the
        functions of model i plus 1, padded with 0.
    weights : ndarray of shape (n_moves,)
        Log weight of model i.
    draws : ndarray of shape (n_moves, largest)
        Coefficients of model i, in chains that draw them.
    """

    visits: np.ndarray
    weights: np.ndarray
    draws: np.ndarray

    path = named("visits", 0)  # number of the model after each move
    columns = named("visits", slice(1, None))  # one more than those of its functions

    @classmethod
    def empty(cls, n_moves, largest):
        """Return an empty record for a number of moves."""
        visits = np.zeros((n_moves, 1 + largest), dtype=np.int64)
        return cls(visits, np.zeros(n_moves), np.zeros((n_moves, largest)))


class Prior(NamedTuple):
    """Prior of models and of coefficients in units of the noise; see the kernel.

    With a finite `radius` the coefficients' prior is flat, in the l1 ball, and the
    ridge is that of a proposal.
    """

    table: np.ndarray
    ridge: float
    most: int
    freedom: float = 0.0
    square: float = 1.0
    radius: float = math.inf

    # Rows of the table, by the number of variables: cumulative probabilities of the
    # kinds of moves; log ratios of reverse to forward probabilities; log priors of
    # sizes, a row for each number of pairs. Also log priors by the number of functions.
    adds = named("table", kernels.ADD, EVERY)
    deletes = named("table", kernels.DELETE, EVERY)
    orders = named("table", kernels.ORDER, EVERY)
    swaps = named("table", kernels.SWAP, EVERY)
    added = named("table", kernels.LOG_RATIO + kernels.ADD, EVERY)
    deleted = named("table", kernels.LOG_RATIO + kernels.DELETE, EVERY)
    log_sizes = named("table", slice(kernels.LOG_SIZE, None), EVERY)
    log_totals = named("table", kernels.LOG_TOTAL, EVERY)

    @classmethod
    def of(
        cls,
        ranks,
        beta,
        most,
        *,
        variance=None,
        radius=None,
        n_variables=None,
        n_pairs=0,
        n_held=0,
    ):
        """Return the paper's prior, with normal coefficients or those in the l1 ball.

        All sets of s variables are equally probable, as are all sets of k pairs of
        these: the prior has the factors 1 / binomial(n_variables, s) and 1 / binomial(s
        (s - 1) / 2, k).

        Parameters
        ----------
        ranks : ndarray of shape (n_features,)
            Number of functions of each variable, then of each pair.
        beta : float
            Each function multiplies the prior by beta.
        most : int
            Largest number of variables in a model, including pairs.
        variance : float, default=None
            Variance of a coefficient, in units of the variance of the noise.
        radius : float, default=None
            Radius of the l1 ball, in units of the noise's standard deviation, instead
            of `variance`.
        n_variables : int, default=None
            Number of variables to choose from; None for those that have a function.
        n_pairs : int, default=0
            Number of pairs, the last of `ranks`.
        n_held : int, default=0
            Number of other variables in the model, on which the prior is conditional.
        """
        ridge = 1 / variance if radius is None else radius**-2
        prior = cls.flat(ranks, most - n_held, ridge, n_pairs)
        most, ridge = prior.most, prior.ridge
        sizes, q = np.arange(most + 1.0), np.arange(prior.table.shape[1])
        if n_variables is None:
            n_variables = np.count_nonzero(ranks[: len(ranks) - n_pairs])
        n_possible = sizes * (sizes - 1) / 2
        log_sizes = -log_binomial(n_variables, np.minimum(sizes + n_held, n_variables))
        for k, row in enumerate(prior.log_sizes):
            log_sets = log_binomial(np.maximum(n_possible, k), k)
            row[: most + 1] = log_sizes - log_sets
        prior.log_totals[:] = q * math.log(beta)
        if radius is None:
            prior.log_totals[:] += 0.5 * q * math.log(ridge)
            return prior
        prior.log_totals[:] += gammaln(q + 1) - q * math.log(2 * radius)
        prior.log_totals[:] += 0.5 * q * math.log(2 * math.pi)
        return prior._replace(radius=float(radius))

    def rescaled(self, variance):
        """Return the prior with another variance of a normal coefficient."""
        ridge, table = 1 / variance, self.table.copy()
        prior = self._replace(table=table, ridge=ridge)
        prior.log_totals[:] += (
            0.5 * math.log(ridge / self.ridge) * np.arange(table.shape[1])
        )
        return prior

    @classmethod
    def flat(cls, ranks, most, ridge, n_pairs=0):
        """Return a flat prior with a ridge, for searches by a criterion."""
        most = int(min(most, np.count_nonzero(ranks)))
        n_functions = np.sort(ranks)[len(ranks) - most :].sum()
        n_rows = kernels.LOG_SIZE + 1 + min(n_pairs, most)
        prior = cls(np.zeros((n_rows, n_functions + 1)), float(ridge), most)
        size = np.arange(most + 1)
        add = np.where(size == 0, 1.0, np.where(size < most, 0.3, 0.0))
        delete = np.where(size == 0, 0.0, np.where(size < most, 0.3, 0.6))
        prior.adds[: most + 1] = add
        prior.deletes[: most + 1] = add + delete
        prior.orders[: most + 1] = np.where(size == 0, 1.0, 0.9)
        prior.swaps[:] = 1.0
        prior.added[:most] = np.log(delete[1:] / add[:-1])
        prior.deleted[1 : most + 1] = np.log(add[:-1] / delete[1:])
        return prior


class Chain:
    """One chain on models, their coefficients integrated out.

    Parameters
    ----------
    reader : Reader
        The rows of G.
    linear : ndarray of shape (n_features * max_order,)
        b.
    prior : Prior
        The prior.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    draws = False  # whether coefficients are drawn, not integrated out

    def __init__(self, reader, linear, prior, rng):
        self.rng = rng
        p, width, _ = reader.source.diagonal.shape
        self._largest = prior.table.shape[1] - 1
        self._all = self.windows = p, 0  # all variables are promising
        self.state = ChainState.empty(p, width, self._largest)
        self.record = self._no_record = ChainRecord.empty(0, self._largest)
        self.change(reader, linear, prior)

    def change(self, reader, linear, prior):
        """Set another quadratic form and prior, with the same number of functions."""
        self.reader, self.linear, self.prior = reader, linear, prior
        self.state.forget()

    def start(self, features, orders):
        """Set the current model; if it is too large, its first variables."""
        self.state.start(features[: self.prior.most], orders[: self.prior.most])

    @property
    def model(self):
        """Return variables and orders of the current model."""
        return self.state.features.copy(), self.state.orders.copy()

    # Moves.

    def expect(self, n_steps):
        """Allocate a record of the next `n_steps` moves, and reset the counts."""
        self.record = ChainRecord.empty(n_steps, self._largest)
        self.state.reset_counts()

    def advance(self, n_iter, keep=True):
        """Make `n_iter` moves, and record them if `keep`."""
        if self.prior.most > 0:
            self._advance(n_iter, keep)
        elif keep:  # the empty model is the only one
            self.state.count(models=not self.state.n_models, moves=n_iter)

    def _advance(self, n_iter, keep):
        """Make `n_iter` moves, if there is more than one model."""
        uniforms = self.rng.random((n_iter, 4))
        self._run(uniforms, self.record if keep else self._no_record, self.windows)

    def weigh_neighbors(self):
        """Compute the weights of the neighbours of the current model, in the state."""
        if self.prior.most > 0:
            stay = np.array([[1.0, 0.0, 0.0, 0.0]])
            self._run(stay, self._no_record, self._all)

    def promising(self):
        """Return all variables, sorted by how likely they are to enter the model.

        A variable is ranked by its best rank among the neighbours of the current model,
        of this model without one of its variables, and of the empty model.
        """
        features, orders = self.model
        views = [(features, orders), (features[:0], orders[:0])]
        for i in range(min(len(features), N_VIEWS)):
            views.append((np.delete(features, i), np.delete(orders, i)))
        best = np.full(len(self.reader.source.ranks), len(self.linear))
        best[features] = -1
        for view in views:
            self.start(*view)
            self.weigh_neighbors()
            weights = self.state.larger.reshape(len(best), -1).max(axis=1)
            places = np.empty_like(best)
            places[np.argsort(-weights, kind="stable")] = np.arange(len(best))
            best = np.minimum(best, places)
        self.start(features, orders)
        return np.argsort(best, kind="stable")

    def choose_among(self, sequence):
        """Restrict moves to the first variables of a sequence, and a few others."""
        n_others = len(sequence) - PROMISING
        self.reader.arrange(sequence)
        self.reader.fetch_ahead(sequence[:PROMISING])
        self.windows = PROMISING, -(-n_others // WINDOW)
        self.state.forget()

    def _run(self, uniforms, record, windows):
        fixed = self.prior[:5], tuple(self.state), record[:2]
        while True:
            self.reader.fetch(self.state.features, self.state.orders)
            form = self.reader.form(self.linear)
            done = kernels.run(form, *fixed, uniforms, windows)
            uniforms = uniforms[done:]
            if len(uniforms) == 0:
                return

    # Results.

    @property
    def n_kept(self):
        """Number of moves recorded."""
        return self.state.n_moves

    def recorded(self):
        """Return the record of the chain.

        Returns
        -------
        path : ndarray of shape (n_moves,)
            Number of the model after each move.
        columns : ndarray of shape (n_models, largest)
            Functions of each model, ascending, padded with -1.
        draws : ndarray of shape (n_models, largest)
            Their coefficients; 0 if the chain does not draw them.
        log_weights : ndarray of shape (n_models,)
            Log weights of the models.
        """
        n_models, n_moves = self.state.n_models, self.state.n_moves
        columns = self.record.columns[:n_models]
        columns = columns[:, : (columns > 0).sum(axis=1).max(initial=0)] - 1
        order = np.argsort(np.where(columns < 0, columns.max(initial=0) + 1, columns))
        columns = np.take_along_axis(columns, order, axis=1)
        draws = np.take_along_axis(self.record.draws[:n_models], order, axis=1)
        path = self.record.path[:n_moves]
        return path, columns, draws, self.record.weights[:n_models]

    def columns(self):
        """Return the functions of the current model, as columns of G."""
        return self.state.owners * self.reader.places.shape[1] + self.state.places
