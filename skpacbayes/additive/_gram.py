"""Quadratic forms of the coefficients, whose rows are computed on demand."""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf

from .._kernels import additive as kernels

CACHE_BYTES = 2**27  # memory for the rows that a chain caches
ROUNDING = 1e-12  # relative to a diagonal entry: functions may be linearly dependent


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
        return self._rows[np.ix_(columns, columns)]

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


def precision_factor(gram, ridge):
    """Return the Cholesky factor of P = G + ridge I, `gram` being G among functions.

    `ridge` may be an array, one for each function.
    """
    precision = gram.copy()
    diagonal = precision.diagonal()
    precision.flat[:: len(precision) + 1] = diagonal + (ridge + ROUNDING * diagonal)
    # Not scipy.linalg.cholesky: its checks take ten times as long as factorising the
    # few functions of a sweep.
    factor, info = dpotrf(precision, lower=1) if len(precision) else (precision, 0)
    if info > 0:
        raise LinAlgError(f"the leading minor of order {info} is not positive definite")
    return factor
