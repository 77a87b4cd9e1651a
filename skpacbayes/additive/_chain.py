"""A Markov chain on models: their quadratic form, their prior, and the moves."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._kernels import additive as kernels
from .._kernels.additive_state import EVERY, ChainRecord, ChainState
from .._kernels.state import named
from ..certificates.additive import log_binomial

MOST_VARIABLES = 50  # default of `max_active`
# Numbers of promising and of other variables that a move chooses among.
PROMISING, WINDOW = 128, 256
N_VIEWS = 20  # largest number of models whose neighbours define promising variables
CACHE_BYTES = 2**27  # memory for the rows that a chain caches
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class Gram:
    """The matrix G, given in full.

    Parameters
    ----------
    matrix : ndarray of shape (n_features * max_order, n_features * max_order)
        G.
    ranks : ndarray of shape (n_features,)
        Number of functions of each variable, then of each pair.
    pairs : ndarray of int of shape (n_pairs, 2), default=NO_PAIRS
        Pairs of variables, numbered after the variables.
    """

    def __init__(self, matrix, ranks, pairs=NO_PAIRS):
        p, n_columns = len(ranks), len(matrix)
        self.ranks, self.pairs = ranks, pairs
        self._rows = np.ascontiguousarray(matrix)
        blocks = matrix.reshape(p, n_columns // p, p, n_columns // p)
        every = np.arange(p)
        self.diagonal = np.ascontiguousarray(blocks[every, :, every, :])

    def among(self, columns):
        """Return G among some functions."""
        return self._rows[columns[:, None], columns]

    def reader(self):
        """Return a `Reader` for one chain, with all rows of G."""
        return Reader(self, self._rows, all_ready=True)


class WeightedRows:
    """The matrix G = V W V', given by the values of the functions at rows.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        V, the values of the functions.
    weights : ndarray of shape (n_samples,)
        The diagonal of W.
    ranks : ndarray of shape (n_features,)
        Number of functions of each variable, then of each pair.
    pairs : ndarray of int of shape (n_pairs, 2), default=NO_PAIRS
        Pairs of variables, numbered after the variables.
    """

    def __init__(self, values, weights, ranks, pairs=NO_PAIRS):
        p, width, n_samples = values.shape
        self.values, self.weights = values, weights
        self.ranks, self.pairs = ranks, pairs
        self._flat = values.reshape(p * width, n_samples)
        self.diagonal = np.empty((p, width, width))
        step = max(1, 2**20 // max(1, width * n_samples))
        for start in range(0, p, step):
            part = values[start : start + step]
            weighted = (part * weights) @ part.transpose(0, 2, 1)
            self.diagonal[start : start + step] = weighted

    def against(self, targets):
        """Return V W targets."""
        return self._flat @ (self.weights * targets)

    def among(self, columns):
        """Return G among some functions."""
        part = self._flat[columns]
        return (part * self.weights) @ part.T

    def values_of(self, columns):
        """Return the values of some functions, of shape (n_columns, n_samples)."""
        return self._flat[columns]

    def rows_of(self, columns):
        """Return the rows of G of some functions."""
        return (self._flat[columns] * self.weights) @ self._flat.T

    def reader(self):
        """Return a `Reader` for one chain, with an empty cache."""
        n_columns = len(self._flat)
        n_rows = max(1, min(n_columns, CACHE_BYTES // (8 * n_columns)))
        return Reader(self, np.empty((n_rows, n_columns)))


class Reader:
    """Cache of the rows of G that one chain uses.

    If the cache is full, rows of variables that are not in the model are dropped in
    turn. The cache grows only if the rows of the model do not fit.

    Parameters
    ----------
    source : Gram or WeightedRows
        G.
    rows : ndarray of shape (n_rows, n_functions)
        All rows, or an empty array for some.
    all_ready : bool, default=False
        Whether `rows` holds all rows of G.
    """

    def __init__(self, source, rows, all_ready=False):
        self.source, self.rows = source, rows
        p, width, _ = source.diagonal.shape
        parents = np.full((2, p), -1)
        parents[:, p - len(source.pairs) :] = source.pairs.T
        every = np.arange(p)
        ready = source.ranks if all_ready else np.zeros_like(every)
        self.index = np.array([source.ranks, ready, *parents, every, every])
        self._ready = self.index[kernels.READY]
        self.places = np.arange(p * width).reshape(p, width)
        self._free = [] if all_ready else list(range(len(rows)))[::-1]
        self._turn = 0

    def arrange(self, sequence):
        """Set the sequence of all variables, the most promising first."""
        self.index[kernels.SEQUENCE] = sequence
        self.index[kernels.POSITION, sequence] = np.arange(len(sequence))

    def without_pairs(self):
        """Return a reader for a chain that treats pairs as variables."""
        reader = self.source.reader()
        reader.index[[kernels.FIRST, kernels.SECOND]] = -1
        return reader

    def form(self, linear):
        """Return the quadratic form with the linear terms b; see the kernel."""
        return self.source.diagonal, linear, self.rows, self.index, self.places

    def among(self, columns):
        """Return G among some functions."""
        features, orders = np.divmod(columns, self.places.shape[1])
        if (orders < self._ready[features]).all():
            return self.rows[self.places[features, orders][:, None], columns]
        return self.source.among(columns)

    def fetch(self, features, orders):
        """Load the rows of a model into the cache."""
        missing = np.flatnonzero(self._ready[features] < orders)
        if len(missing) == 0:
            return
        counts = orders[missing] - self._ready[features[missing]]
        owners = np.repeat(features[missing], counts)
        own = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        own += self._ready[owners]
        rows = self.source.rows_of(owners * self.places.shape[1] + own)
        while len(self._free) < len(owners):
            self._make_room(features, len(owners) - len(self._free))
        places = [self._free.pop() for _ in owners]
        self.rows[places] = rows
        self.places[owners, own] = places
        self._ready[features[missing]] = orders[missing]

    def fetch_ahead(self, features):
        """Load a row of each variable of a sequence, as long as the cache has room.

        Rows that are cached already are kept.
        """
        counts = np.maximum(self._ready[features], 1).cumsum()
        first = features[counts <= len(self.rows)]
        self.fetch(first, np.minimum(self.source.ranks[first], 1))

    def _make_room(self, features, n_missing):
        """Drop the rows of a variable that is not in the model, or add missing rows."""
        kept = np.flatnonzero(self._ready)
        kept = kept[~np.isin(kept, features)]
        if len(kept) == 0:
            count = len(self.rows)
            more = np.empty((n_missing, self.rows.shape[1]))
            self.rows = np.concatenate([self.rows, more])
            self._free.extend(range(count, count + n_missing))
            return
        self._turn = int(kept[np.searchsorted(kept, self._turn) % len(kept)])
        self._free.extend(self.places[self._turn, : self._ready[self._turn]].tolist())
        self._ready[self._turn] = 0
        self._turn += 1


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

    def integrating(self, freedom, square):
        """Return the normal prior of a chain that integrates out the noise variance.

        The variance s^2 has the prior 1 / s^2, and the standard deviations of
        coefficients are s times those of the prior. The log weight of a model is then

            log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2
                + q log(ridge) / 2,

        b and P as in the kernel.

        Parameters
        ----------
        freedom : float
            Degrees of freedom, the number of rows minus one.
        square : float
            Sum of squares of y minus its mean, in units of the noise.
        """
        return self._replace(freedom=freedom, square=square)

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

    @property
    def moves(self):
        """Number of moves that add or delete a variable: tried, and accepted."""
        return self.state.tried[:2].sum(), self.state.accepted[:2].sum()

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
