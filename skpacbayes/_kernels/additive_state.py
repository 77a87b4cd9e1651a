"""State of a chain on sparse additive models, and the record of its moves."""

from typing import NamedTuple

import numpy as np

from .additive import (
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
from .state import named

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
