"""The arrays of a chain on models, by name; the kernel says how they are laid out."""

from typing import NamedTuple

import numpy as np

from .._kernels import additive as kernels


class ChainState(NamedTuple):
    """The current and a proposed model of a chain, and scratch.

    Parameters
    ----------
    model : ndarray of int64 of shape (3, 5, n)
        Variables, orders and functions of the two models; then the tally of the moves.
    numbers : ndarray of shape (2, 3, n)
        Of each model the log weights of its neighbours against its own, and its own.
    factors : ndarray of shape (3, largest + 1, largest)
        Of each model the Cholesky factor L of P and, below it, L^-1 b; then scratch.
    work : ndarray of shape (largest + 3, n_features * max_order)
        Scratch; its last rows are parts of the log weights of the larger neighbours.
    """

    model: np.ndarray
    numbers: np.ndarray
    factors: np.ndarray
    work: np.ndarray

    @classmethod
    def empty(cls, n_features, max_order, largest):
        """Room for two models of at most `largest` functions; no variable is in."""
        side, n_columns = max(largest, max_order), n_features * max_order
        return cls(
            model=np.zeros(
                (3, kernels.COUNTS + 1, max(largest, kernels.KNOWN) + 1), dtype=np.int64
            ),
            numbers=np.zeros(
                (2, kernels.SCALARS + 1, max(n_columns, kernels.SCALARS + 1))
            ),
            factors=np.zeros((3, side + 1, side)),
            work=np.zeros((largest + 3, n_columns)),
        )

    @property
    def current(self):
        """Which of the two models is the current one."""
        return self.model[kernels.TALLY, kernels.OTHER, kernels.CURRENT]

    @property
    def n_variables(self):
        """Number of variables of the current model."""
        return self.model[self.current, kernels.COUNTS, kernels.SIZE]

    @property
    def n_functions(self):
        """Number of functions of the current model, once it is factorised."""
        return self.model[self.current, kernels.COUNTS, kernels.TOTAL]

    @property
    def features(self):
        """Variables of the current model."""
        return self.model[self.current, kernels.FEATURES, : self.n_variables]

    @property
    def orders(self):
        """Their orders."""
        return self.model[self.current, kernels.ORDERS, : self.n_variables]

    @property
    def owners(self):
        """Variable of each function of the current model."""
        return self.model[self.current, kernels.OWNERS, : self.n_functions]

    @property
    def places(self):
        """Place of each function of the current model among those of its variable."""
        return self.model[self.current, kernels.PLACES, : self.n_functions]

    @property
    def log_weight(self):
        """Log weight of the current model."""
        return self.numbers[self.current, kernels.SCALARS, kernels.WEIGHT]

    @property
    def larger(self):
        """Log weights of the larger neighbours against the current model's."""
        return self.numbers[self.current, kernels.LARGER, : self.work.shape[1]]

    @property
    def fits(self):
        """Of these what the functions explain of b."""
        return self.work[kernels.FITS]

    @property
    def half_logs(self):
        """Of these half the log determinants."""
        return self.work[kernels.HALF_LOGS]

    @property
    def smaller(self):
        """Log weights of the smaller neighbours against the current model's."""
        return self.numbers[self.current, kernels.SMALLER, : self.n_variables]

    @property
    def factor(self):
        """Cholesky factor L of the current model's P."""
        return np.tril(
            self.factors[self.current][: self.n_functions, : self.n_functions]
        )

    @property
    def solution(self):
        """L^-1 b of the current model."""
        return self.factors[self.current][self.n_functions, : self.n_functions]

    @property
    def tried(self):
        """Number of moves tried, of each kind."""
        return self.model[kernels.TALLY, kernels.TRIED, : kernels.STAY]

    @property
    def accepted(self):
        """Number of moves accepted, of each kind."""
        return self.model[kernels.TALLY, kernels.ACCEPTED, : kernels.STAY]

    @property
    def n_models(self):
        """Number of models recorded."""
        return self.model[kernels.TALLY, kernels.OTHER, kernels.MODELS]

    @property
    def n_moves(self):
        """Number of moves recorded."""
        return self.model[kernels.TALLY, kernels.OTHER, kernels.MOVES]

    def start(self, features, orders):
        """Take a model for the current one."""
        now, size = self.current, len(features)
        self.model[now, kernels.COUNTS, kernels.SIZE] = size
        self.model[now, kernels.COUNTS, kernels.KNOWN] = 0
        self.model[now, kernels.FEATURES, :size] = features
        self.model[now, kernels.ORDERS, :size] = orders

    def forget(self):
        """Forget what is known of the models: G, b or the prior has changed."""
        self.model[:, kernels.COUNTS, kernels.KNOWN] = 0

    def go_back(self, model, accepted):
        """Take back a move: the model that was current, the moves accepted before."""
        self.model[kernels.TALLY, kernels.OTHER, kernels.CURRENT] = model
        self.accepted[:] = accepted

    def count_anew(self):
        """Count moves and recorded models from zero."""
        self.tried[:] = self.accepted[:] = 0
        self.model[kernels.TALLY, kernels.OTHER, kernels.MODELS :] = 0

    def count(self, *, models=0, moves=0):
        """Count models and moves that were recorded elsewhere than in the kernel."""
        self.model[kernels.TALLY, kernels.OTHER, kernels.MODELS] += models
        self.model[kernels.TALLY, kernels.OTHER, kernels.MOVES] += moves


class ChainRecord(NamedTuple):
    """Where a chain has been.

    Parameters
    ----------
    visits : ndarray of int64 of shape (n_moves, 1 + largest)
        In row i the number of the model after move i, and the functions of model i: one
        more than their columns, 0 fills the row.
    weights : ndarray of shape (n_moves,)
        Log weight of model i.
    draws : ndarray of shape (n_moves, largest)
        Coefficients of model i, in chains that draw them.
    """

    visits: np.ndarray
    weights: np.ndarray
    draws: np.ndarray

    @classmethod
    def empty(cls, n_moves, largest):
        """Room for a number of moves."""
        visits = np.zeros((n_moves, 1 + largest), dtype=np.int64)
        return cls(visits, np.zeros(n_moves), np.zeros((n_moves, largest)))

    @property
    def path(self):
        """Number of the model after each move."""
        return self.visits[:, 0]

    @property
    def columns(self):
        """Functions of each model: one more than their columns."""
        return self.visits[:, 1:]
