"""Quadratic forms of the coefficients, whose rows are computed when a chain asks."""

import numpy as np
from scipy.linalg import cholesky

from .._kernels import additive as kernels

# A chain keeps the rows of as many variables as fit into this number of bytes.
CACHE_BYTES = 2**27
ROUNDING = 1e-12  # of a diagonal entry: functions may depend on each other


NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


class Gram:
    """G, given as a matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n_features * max_order, n_features * max_order)
        G.
    ranks : ndarray of shape (n_features,)
        Number of functions there are of each variable, then of each pair.
    pairs : ndarray of int of shape (n_pairs, 2), default=NO_PAIRS
        Pairs of variables, the last that count as one.
    """

    def __init__(self, matrix, ranks, pairs=NO_PAIRS):
        p, n_columns = len(ranks), len(matrix)
        self.ranks, self.pairs = ranks, pairs
        self._rows = np.ascontiguousarray(matrix).reshape(p, n_columns // p, n_columns)
        blocks = matrix.reshape(p, n_columns // p, p, n_columns // p)
        every = np.arange(p)
        self.diagonal = np.ascontiguousarray(blocks[every, :, every, :])

    def among(self, columns):
        """Return G among some functions."""
        return self._rows.reshape(-1, self._rows.shape[2])[np.ix_(columns, columns)]

    def reader(self):
        """Return rows of G for one chain: all of them are there."""
        every = np.arange(len(self.ranks))
        return Reader(self, self._rows, slots=every, ready=self.ranks)


class WeightedRows:
    """G = V W V', by the values of the functions at rows.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        V, the values of the functions.
    weights : ndarray of shape (n_samples,)
        The diagonal of W.
    ranks : ndarray of shape (n_features,)
        Number of functions there are of each variable, then of each pair.
    pairs : ndarray of int of shape (n_pairs, 2), default=NO_PAIRS
        Pairs of variables, the last that count as one.
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

    def rows_of(self, columns):
        """Return the rows of G of some functions."""
        return (self._flat[columns] * self.weights) @ self._flat.T

    def reader(self):
        """Return rows of G for one chain: none is there yet."""
        p, width, _ = self.values.shape
        n_slots = int(max(1, min(p, CACHE_BYTES // (8 * p * width**2))))
        rows = np.empty((n_slots, width, p * width))
        # With room for all variables each has a slot of its own from the start.
        slots = np.arange(p) if n_slots == p else np.full(p, -1)
        return Reader(self, rows, slots=slots, ready=np.zeros_like(slots))


class Reader:
    """Rows of G that one chain has asked for, as many as there is room for.

    A variable that asks for a slot when all are taken gets that of a variable that is
    not in the model, in turn.
    """

    def __init__(self, source, rows, slots, ready):
        self.source, self.rows = source, rows
        parents = np.full((2, len(slots)), -1)
        parents[:, len(slots) - len(source.pairs) :] = source.pairs.T
        self.index = np.array([source.ranks, slots, ready, *parents])
        _, self._slots, self._ready = self.index[:3]
        self._turn = 0

    def without_pairs(self):
        """Return rows for a chain to which a pair is like any variable."""
        reader = self.source.reader()
        reader.index[kernels.FIRST :] = -1
        return reader

    def form(self, linear):
        """Return the quadratic form with the linear terms b; see the kernel."""
        return self.source.diagonal, linear, self.rows, self.index

    def among(self, columns):
        """Return G among some functions."""
        width = self.rows.shape[1]
        features, places = np.divmod(columns, width)
        if (places < self._ready[features]).all():
            slots = self._slots[features]
            return self.rows[slots[:, None], places[:, None], columns]
        return self.source.among(columns)

    def fetch(self, features, orders):
        """Have the rows of a model ready, in the forms asked for from now on."""
        missing = np.flatnonzero(self._ready[features] < orders)
        if len(missing) == 0:
            return
        for i in missing:
            if self._slots[features[i]] < 0:
                self._slots[features[i]] = self._free_slot(features)
        counts = orders[missing] - self._ready[features[missing]]
        owners = np.repeat(features[missing], counts)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        places += self._ready[owners]
        rows = self.source.rows_of(owners * self.rows.shape[1] + places)
        self.rows[self._slots[owners], places] = rows
        self._ready[features[missing]] = orders[missing]

    def _free_slot(self, features):
        holder = np.full(len(self.rows), -1)
        taken = np.flatnonzero(self._slots >= 0)
        holder[self._slots[taken]] = taken
        in_model = np.isin(holder, features)
        if in_model.all():
            more = np.empty((2 * len(holder), *self.rows.shape[1:]))
            more[: len(holder)] = self.rows
            self.rows = more
            return len(holder)
        while in_model[self._turn]:
            self._turn = (self._turn + 1) % len(holder)
        slot = self._turn
        self._turn = (slot + 1) % len(holder)
        if holder[slot] >= 0:
            self._slots[holder[slot]], self._ready[holder[slot]] = -1, 0
        return slot


def precision_factor(gram, ridge):
    """Cholesky factor of P = G + ridge I, where `gram` is G among some functions.

    `ridge` may be an array, one for each function.
    """
    precision = gram.copy()
    diagonal = np.diag_indices_from(precision)
    precision[diagonal] += ridge + ROUNDING * precision[diagonal]
    return cholesky(precision, lower=True, check_finite=False)
