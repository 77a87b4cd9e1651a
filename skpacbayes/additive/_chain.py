"""A chain on models: its prior, its state, and the record of where it has been."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from sklearn.utils.parallel import Parallel, delayed

from .._kernels import additive as kernels

N_ROWS = kernels.LOG_TOTAL + 1  # of the table of a prior
N_BLOCKS = 10  # parts of a run, after which callbacks are called


class Prior(NamedTuple):
    """Prior of models and of coefficients in units of the noise; see the kernel.

    With a finite `radius` the coefficients' prior is flat, in the l1 ball, and the
    ridge is that of a proposal.
    """

    table: np.ndarray
    ridge: float
    most: int
    radius: float

    @classmethod
    def of(cls, ranks, beta, most, *, variance=None, radius=None):
        """Prior of the paper, with a normal law or the l1 ball for the coefficients.

        Parameters
        ----------
        ranks : ndarray of shape (n_features,)
            Number of functions there are of each variable.
        beta : float
            Each function divides the prior by 1 / beta.
        most : int
            Largest number of variables of a model.
        variance : float, default=None
            Variance of a coefficient, in units of the variance of the noise.
        radius : float, default=None
            Radius of the l1 ball instead, in units of the noise's deviation.
        """
        prior = cls.flat(ranks, most, 1 / variance if radius is None else radius**-2)
        table, ridge, most, _ = prior
        sizes, q = np.arange(most + 1.0), np.arange(table.shape[1])
        table[kernels.LOG_SIZE, : most + 1] = -log_binomial(
            np.count_nonzero(ranks), sizes
        )
        table[kernels.LOG_TOTAL] = q * math.log(beta)
        if radius is None:
            table[kernels.LOG_TOTAL] += 0.5 * q * math.log(ridge)
            return prior
        table[kernels.LOG_TOTAL] += gammaln(q + 1) - q * math.log(2 * radius)
        table[kernels.LOG_TOTAL] += 0.5 * q * math.log(2 * math.pi)
        return prior._replace(radius=float(radius))

    @classmethod
    def flat(cls, ranks, most, ridge):
        """No prior but a ridge: what a search by an information criterion needs."""
        most = int(min(most, np.count_nonzero(ranks)))
        n_functions = np.sort(ranks)[len(ranks) - most :].sum()
        table = np.zeros((N_ROWS, n_functions + 1))
        size = np.arange(most + 1)
        add = np.where(size == 0, 1.0, np.where(size < most, 0.3, 0.0))
        delete = np.where(size == 0, 0.0, np.where(size < most, 0.3, 0.6))
        table[kernels.ADD, : most + 1] = add
        table[kernels.DELETE, : most + 1] = add + delete
        table[kernels.ORDER, : most + 1] = np.where(size == 0, 1.0, 0.9)
        table[kernels.SWAP] = 1.0
        table[kernels.LOG_RATIO + kernels.ADD, :most] = np.log(delete[1:] / add[:-1])
        table[kernels.LOG_RATIO + kernels.DELETE, 1 : most + 1] = np.log(
            add[:-1] / delete[1:]
        )
        return cls(table, float(ridge), most, math.inf)


def log_binomial(n, k):
    """Logarithm of a binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


class State(NamedTuple):
    """The current and the proposed model, and scratch; see the kernel."""

    model: np.ndarray
    numbers: np.ndarray
    factors: np.ndarray
    work: np.ndarray

    @classmethod
    def empty(cls, n_features, width, largest):
        """Room for two models of at most `largest` functions."""
        side = max(largest, width)
        return cls(
            model=np.zeros(
                (3, kernels.COUNTS + 1, max(largest, kernels.KNOWN) + 1), dtype=np.int64
            ),
            numbers=np.zeros(
                (2, kernels.SCALARS + 1, max(n_features * width, kernels.SCALARS + 1))
            ),
            factors=np.zeros((3, side + 1, side)),
            work=np.zeros((largest + 3, n_features * width)),
        )


class Record(NamedTuple):
    """Where a chain has been; see the kernel."""

    visits: np.ndarray
    weights: np.ndarray
    draws: np.ndarray  # of the coefficients, in chains that draw them

    @classmethod
    def empty(cls, n_steps, largest):
        """Room for `n_steps` moves."""
        visits = np.zeros((n_steps, 1 + largest), dtype=np.int64)
        return cls(visits, np.zeros(n_steps), np.zeros((n_steps, largest)))


class Chain:
    """One chain.

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

    draws = False  # whether it draws coefficients, or leaves them to be integrated out

    def __init__(self, reader, linear, prior, rng):
        self.rng = rng
        p, width, _ = reader.source.diagonal.shape
        self._largest = prior.table.shape[1] - 1
        self.state = State.empty(p, width, self._largest)
        self.record = self._no_record = Record.empty(0, self._largest)
        self.change(reader, linear, prior)

    def change(self, reader, linear, prior):
        """Take another quadratic form and prior, of the same functions."""
        self.reader, self.linear, self.prior = reader, linear, prior
        self.state.model[:, kernels.COUNTS, kernels.KNOWN] = 0

    @property
    def moves(self):
        """Number of moves tried, and accepted, of each kind."""
        return self.state.model[kernels.TALLY, : kernels.ACCEPTED + 1, : kernels.STAY]

    @property
    def others(self):
        """Which model is current; numbers of models and of moves recorded."""
        return self.state.model[kernels.TALLY, kernels.OTHER, : kernels.MOVES + 1]

    @property
    def model(self):
        """Variables and orders of the current model."""
        now = self.others[kernels.CURRENT]
        size = self.state.model[now, kernels.COUNTS, kernels.SIZE]
        features, orders = self.state.model[now, : kernels.ORDERS + 1, :size].copy()
        return features, orders

    @property
    def n_recorded(self):
        """Number of moves recorded."""
        return self.others[kernels.MOVES]

    def start(self, features, orders):
        """Take a model for the current one."""
        now, size = self.others[kernels.CURRENT], min(len(features), self.prior.most)
        self.state.model[now, kernels.COUNTS, kernels.SIZE] = size
        self.state.model[now, kernels.COUNTS, kernels.KNOWN] = 0
        self.state.model[now, kernels.FEATURES, :size] = features[:size]
        self.state.model[now, kernels.ORDERS, :size] = orders[:size]

    def remember(self, n_steps):
        """Have room to record the next `n_steps` moves; count moves anew."""
        self.record = Record.empty(n_steps, self._largest)
        self.moves[:] = 0
        self.others[kernels.MODELS :] = 0

    def recorded(self):
        """Return what was recorded.

        Returns
        -------
        path : ndarray of shape (n_moves,)
            Number of the model after each move.
        columns : ndarray of shape (n_models, largest)
            Functions of each model, ascending; -1 fills the rows.
        draws : ndarray of shape (n_models, largest)
            Their coefficients; 0 if the chain draws none.
        log_weights : ndarray of shape (n_models,)
            Log weights of the models.
        """
        _, n_models, n_moves = self.others
        columns = self.record.visits[:n_models, 1:]
        columns = columns[:, : (columns > 0).sum(axis=1).max(initial=0)] - 1
        order = np.argsort(np.where(columns < 0, columns.max(initial=0) + 1, columns))
        columns = np.take_along_axis(columns, order, axis=1)
        draws = np.take_along_axis(self.record.draws[:n_models], order, axis=1)
        path = self.record.visits[:n_moves, 0]
        return path, columns, draws, self.record.weights[:n_models]

    def advance(self, n_steps, *, recorded=True):
        """Move `n_steps` times."""
        if self.prior.most == 0:
            self._stay(n_steps if recorded else 0)
            return
        self._advance(n_steps, recorded)

    def _advance(self, n_steps, recorded):
        """Move `n_steps` times, where there is more than one model."""
        uniforms = self.rng.random((n_steps, 4))
        self._run(uniforms, self.record if recorded else self._no_record)

    def neighbours(self):
        """Weigh the neighbours of the current model; they are in `state`."""
        if self.prior.most > 0:
            self._run(np.array([[1.0, 0.0, 0.0, 0.0]]), self._no_record)

    def _run(self, uniforms, record):
        fixed = self.prior[:3], tuple(self.state), record[:2]
        while True:
            self.reader.fetch(*self.model)
            done = kernels.run(self.reader.form(self.linear), *fixed, uniforms)
            uniforms = uniforms[done:]
            if len(uniforms) == 0:
                return

    def gains(self):
        """Log weights of the larger neighbours against the current model's.

        Returns
        -------
        gains, fits, half_logs : ndarray of shape (n_features, max_order)
            The log weights, -inf for what is no neighbour, and their parts.
        """
        shape = self.reader.source.diagonal.shape[:2]
        numbers = self.state.numbers[self.others[kernels.CURRENT], kernels.LARGER]
        parts = self.state.work[[kernels.FITS, kernels.HALF_LOGS]]
        return np.vstack([numbers[: parts.shape[1]], parts]).reshape(3, *shape)

    def losses(self):
        """Log weights of the smaller neighbours against the current model's."""
        now = self.others[kernels.CURRENT]
        size = self.state.model[now, kernels.COUNTS, kernels.SIZE]
        return self.state.numbers[now, kernels.SMALLER, :size]

    def log_weight(self):
        """Log weight of the current model."""
        now = self.others[kernels.CURRENT]
        return self.state.numbers[now, kernels.SCALARS, kernels.WEIGHT]

    def columns(self):
        """Functions of the current model."""
        now, width = self.others[kernels.CURRENT], self.reader.rows.shape[1]
        model = self.state.model[now]
        places = slice(model[kernels.COUNTS, kernels.TOTAL])
        return model[kernels.OWNERS, places] * width + model[kernels.PLACES, places]

    def factor(self):
        """Cholesky factor L of the current model's P, and L^-1 b."""
        now = self.others[kernels.CURRENT]
        q = self.state.model[now, kernels.COUNTS, kernels.TOTAL]
        factor = self.state.factors[now]
        return np.tril(factor[:q, :q]), factor[q, :q]

    def _stay(self, n_steps):
        """Record the empty model, where there is no other."""
        if n_steps:
            self.others[kernels.MODELS] = 1
            self.others[kernels.MOVES] += n_steps


def advance_all(chains, n_burn_in, n_kept, tasks, n_jobs):
    """Move all chains, first unrecorded.

    Parameters
    ----------
    chains : list
        Chains with `advance` and `n_recorded`.
    n_burn_in, n_kept : int
        Moves of each, unrecorded and recorded.
    tasks : callable
        Yields the numbers of the parts of the run; may stop early: one move is then
        recorded all the same.
    n_jobs : int or None
        Threads.
    """
    moves = np.arange(n_burn_in + n_kept)
    parts = np.array_split(moves, min(N_BLOCKS, len(moves)))

    def advance(chain, part):
        unrecorded = int((part < n_burn_in).sum())
        if unrecorded:
            chain.advance(unrecorded, recorded=False)
        if unrecorded < len(part):
            chain.advance(len(part) - unrecorded)

    for number in tasks(len(parts)):
        Parallel(n_jobs, require="sharedmem")(
            delayed(advance)(chain, parts[number]) for chain in chains
        )
    for chain in chains:
        if not chain.n_recorded:
            chain.advance(1)
