"""A chain on models: its prior, its state, and the record of where it has been."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from sklearn.utils.parallel import Parallel, delayed

from .._kernels.additive import run

N_BLOCKS = 10  # parts of a run, after which callbacks are called


class Prior(NamedTuple):
    """Prior of models and of coefficients in units of the noise; see the kernel."""

    log_size: np.ndarray
    log_total: np.ndarray
    ridge: float
    radius: float
    most: int

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
        n_usable = np.count_nonzero(ranks)
        most = min(most, n_usable)
        sizes = np.arange(most + 1.0)
        log_size = -log_binomial(n_usable, sizes)
        q = np.arange(np.sort(ranks)[len(ranks) - most :].sum() + 1.0)
        log_total = q * math.log(beta)
        if radius is None:
            ridge, radius = 1 / variance, math.inf
            log_total += 0.5 * q * math.log(ridge)
        else:
            ridge = 1 / radius**2
            log_total += gammaln(q + 1) - q * math.log(2 * radius)
            log_total += 0.5 * q * math.log(2 * math.pi)
        return cls(log_size, log_total, float(ridge), float(radius), int(most))

    @classmethod
    def flat(cls, ranks, most, ridge):
        """No prior but a ridge: what a search by an information criterion needs."""
        most = min(most, np.count_nonzero(ranks))
        n_functions = np.sort(ranks)[len(ranks) - most :].sum()
        zeros = np.zeros(most + 1), np.zeros(n_functions + 1)
        return cls(*zeros, float(ridge), math.inf, int(most))


def log_binomial(n, k):
    """Logarithm of a binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


class State(NamedTuple):
    """The current and the proposed model; see the kernel."""

    model: np.ndarray
    counts: np.ndarray
    columns: np.ndarray
    factor: np.ndarray
    coefficients: np.ndarray
    scalars: np.ndarray
    gains: np.ndarray
    shares: np.ndarray
    losses: np.ndarray
    tally: np.ndarray

    @classmethod
    def empty(cls, n_features, width, most, largest):
        """Room for two models of at most `most` variables and `largest` functions."""
        return cls(
            model=np.zeros((2, 2, most), dtype=np.int64),
            counts=np.zeros((2, 4), dtype=np.int64),
            columns=np.zeros((2, largest), dtype=np.int64),
            factor=np.zeros((2, largest + 1, largest)),
            coefficients=np.zeros((2, largest)),
            scalars=np.zeros((2, 4)),
            gains=np.zeros((2, n_features, width)),
            shares=np.zeros((2, n_features)),
            losses=np.zeros((2, most)),
            tally=np.zeros((3, 4), dtype=np.int64),
        )


class Work(NamedTuple):
    """Scratch of the kernel, and the fits of the last models weighed."""

    projected: np.ndarray
    block: np.ndarray
    inverse: np.ndarray
    fits: np.ndarray

    @classmethod
    def empty(cls, n_features, width, largest):
        """Room for models of at most `largest` functions."""
        return cls(
            projected=np.empty((largest + 1, n_features * width)),
            block=np.empty((width + 1, width)),
            inverse=np.empty((largest, largest)),
            fits=np.zeros((2, n_features, width)),
        )


class Record(NamedTuple):
    """Where a chain has been; see the kernel."""

    counts: np.ndarray
    columns: np.ndarray
    coefficients: np.ndarray
    path: np.ndarray

    @classmethod
    def empty(cls, n_steps, largest):
        """Room for `n_steps` moves."""
        return cls(
            counts=np.zeros((n_steps, 2), dtype=np.int64),
            columns=np.empty((n_steps, largest), dtype=np.int64),
            coefficients=np.empty((n_steps, largest)),
            path=np.zeros((n_steps, 2)),
        )


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

    def __init__(self, reader, linear, prior, rng):
        self.rng = rng
        p, width, _ = reader.source.diagonal.shape
        self._largest = len(prior.log_total) - 1
        self.state = State.empty(p, width, prior.most, self._largest)
        self.work = Work.empty(p, width, self._largest)
        self.record = self._no_record = Record.empty(0, self._largest)
        self.change(reader, linear, prior)

    def change(self, reader, linear, prior):
        """Take another quadratic form and prior, of the same functions."""
        self.reader, self.linear, self.prior = reader, linear, prior

    @property
    def model(self):
        """Variables and orders of the current model."""
        now = self.state.tally[2, 0]
        size = self.state.counts[now, 0]
        features, orders = self.state.model[now, :, :size].copy()
        return features, orders

    @property
    def n_recorded(self):
        """Number of moves recorded."""
        return self.state.tally[2, 2]

    def start(self, features, orders):
        """Take a model for the current one."""
        now, size = self.state.tally[2, 0], min(len(features), self.prior.most)
        self.state.counts[now, 0] = size
        self.state.model[now, 0, :size] = features[:size]
        self.state.model[now, 1, :size] = orders[:size]

    def remember(self, n_steps):
        """Have room to record the next `n_steps` moves; count moves anew."""
        self.record = Record.empty(n_steps, self._largest)
        self.state.tally[:2] = 0
        self.state.tally[2, 1:] = 0

    def advance(self, n_steps, *, recorded=True):
        """Move `n_steps` times."""
        if self.prior.most == 0:
            self._stay(n_steps if recorded else 0)
            return
        self._run(n_steps, self.record if recorded else self._no_record)

    def neighbours(self):
        """Weigh the neighbours of the current model; they are in `state`."""
        if self.prior.most > 0:
            self._run(0, self._no_record)

    def _run(self, n_steps, record):
        while True:
            self.reader.fetch(*self.model)
            form = self.reader.form(self.linear)
            arguments = self.prior, self.state, self.work, record
            done = run(form, *arguments, n_steps, self.rng)
            n_steps -= done
            if n_steps == 0:
                return

    def _stay(self, n_steps):
        """Record the empty model, where there is no other."""
        if n_steps:
            self.state.tally[2, 1] = 1
            self.state.tally[2, 2] += n_steps
            self.record.counts[0, 0] += n_steps


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
        Parallel(n_jobs, prefer="threads")(
            delayed(advance)(chain, parts[number]) for chain in chains
        )
    for chain in chains:
        if not chain.n_recorded:
            chain.advance(1)
