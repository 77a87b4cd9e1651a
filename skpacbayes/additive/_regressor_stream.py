"""State of a stream of a regression: first its rows, then sums of products."""

import copy
from typing import NamedTuple

import numpy as np

from ._basis import Dictionary, Orthonormal, Pairs, weighted_moments, with_pairs
from ._chain import NO_PAIRS, Gram, WeightedRows
from ._regressor_start import NORMAL, Tails

BLOCK = 256  # number of rows whose products are summed at a time
SCALE = 1e-9  # relative size of rounding errors
MOST_CHECKED = 2002  # largest number of rows of statistics for computing eigenvalues


def sums_of(method):
    """Return the check that a method that sums products is available."""

    def check(estimator):
        if estimator._has_given_pairs:
            raise AttributeError(
                f"{method} needs interactions=None or 'detect', got "
                f"interactions={estimator.interactions!r}: sums of products of "
                "functions of single variables do not determine interactions."
            )
        return True

    return check


class Problem(NamedTuple):
    """A regression on functions that are centred and orthogonal over the rows.

    The k-th function of a variable has variance 1 / k^2; or, if they are `bounded`,
    functions have absolute value at most 1.
    """

    dictionary: Dictionary
    functions: Orthonormal
    gram: Gram | WeightedRows
    against: np.ndarray  # sums of products of the functions with y
    mean: float  # of y
    square: float  # sum of squares of y minus its mean
    weight: float  # of the rows
    largest: float  # largest absolute value of y minus its mean
    pairs: Pairs | None = None  # pairs of variables, numbered after the variables
    tails: Tails = NORMAL  # of the noise

    @property
    def ranks(self):
        """Number of functions of each variable, then of each pair."""
        return self.gram.ranks


class Rows:
    """Rows with targets and positive weights.

    They are the first rows of a larger table, so that a row can be added without a
    copy. The table is shared with the `Rows` made by adding rows. The shared list
    `used` holds the number of rows in use by any of them; only the `Rows` that has all
    of them may add to the table in place.
    """

    def __init__(self, table, count, used=None):
        self._table, self._count = table, count
        self._used = [count] if used is None else used

    @classmethod
    def of(cls, X, y, weights):
        """Return these rows."""
        return cls(np.column_stack([X, y, weights]), len(y))

    @classmethod
    def none(cls, n_features):
        """Return no rows."""
        return cls(np.zeros((0, n_features + 2)), 0)

    def __len__(self):
        return self._count

    def __getstate__(self):
        return {"_table": self._table[: self._count], "_count": self._count}

    def __setstate__(self, state):
        self.__init__(**{name[1:]: value for name, value in state.items()})

    @property
    def X(self):
        """Rows."""
        return self._table[: self._count, :-2]

    @property
    def y(self):
        """Targets."""
        return self._table[: self._count, -2]

    @property
    def weights(self):
        """Weights."""
        return self._table[: self._count, -1]

    def reweighted(self, weights):
        """Return these rows with other weights."""
        return Rows.of(self.X, self.y, weights)

    def mean(self):
        """Return the mean of y; if y is constant, this constant without rounding."""
        mean = self.weights @ self.y / self.weights.sum()
        return float(min(max(mean, self.y.min()), self.y.max()))

    def part(self, start, stop):
        """Return a slice of the rows."""
        part = self._table[start : min(stop, self._count)]
        return Rows(part, len(part))

    def joined(self, rows):
        """Return these rows and more, without changing these."""
        count = len(self) + len(rows)
        table, used = self._table, self._used
        if count > len(table) or used[0] > len(self):
            table = np.zeros((1 << (count - 1).bit_length(), table.shape[1]))
            table[: len(self)] = self._table[: len(self)]
            used = [count]
        used[0] = count
        table[len(self) : count] = rows._table[: len(rows)]
        return Rows(table, count, used)

    def problem(self, dictionary, bounded, pairs=NO_PAIRS):
        """Return the regression, with functions of pairs of variables too."""
        values = dictionary(self.X)
        weight = self.weights.sum()
        moments = weighted_moments(values, self.weights)
        functions = dictionary.orthogonal(*moments, weight, bounded=bounded)
        values = functions(values)
        mean = self.mean()
        rest = self.y - mean
        ranks, found = functions.orders, None
        if len(pairs):
            found, values, ranks = with_pairs(
                pairs, dictionary, functions, values, self.weights
            )
        gram = WeightedRows(values, self.weights, ranks, pairs)
        return Problem(
            dictionary,
            functions,
            gram,
            gram.against(rest),
            mean,
            float(self.weights @ rest**2),
            float(weight),
            float(abs(rest).max()),
            found,
        )


class Sums:
    """Sums of products of 1, y and the functions of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        The functions, which do not change.
    origin : float
        Constant that is subtracted from y, for accuracy.
    total : ndarray of shape (n_functions + 2, n_functions + 2)
        The sums; those of 1 and y come first.
    extremes : tuple of float
        The smallest and the largest y.
    """

    def __init__(self, dictionary, origin, total, extremes):
        self.dictionary, self.origin = dictionary, origin
        self.total, self.extremes = total, extremes

    @classmethod
    def of_rows(cls, rows, dictionary):
        """Sum the products of rows, block by block."""
        origin = rows.mean()
        size = 2 + len(dictionary.low) * dictionary.max_order
        sums = cls(dictionary, origin, np.zeros((size, size)), (np.inf, -np.inf))
        for start in range(0, len(rows), BLOCK):
            sums = sums.joined(rows.part(start, start + BLOCK))
        return sums

    def products(self, rows):
        """Return the sums of products of rows."""
        if not len(rows):
            return np.zeros_like(self.total)
        self.dictionary.check_missing(rows.X)
        flat = self.dictionary(rows.X).reshape(-1, len(rows))
        design = np.vstack([np.ones(len(rows)), rows.y - self.origin, flat])
        return (design * rows.weights) @ design.T

    def joined(self, rows):
        """Return these sums plus those of more rows."""
        low, high = self.extremes
        extremes = min(low, float(rows.y.min())), max(high, float(rows.y.max()))
        total = self.total + self.products(rows)
        return Sums(self.dictionary, self.origin, total, extremes)

    def replaced(self, total):
        """Return a copy with other sums of the same products."""
        return Sums(self.dictionary, self.origin, total, self.extremes)

    def check(self, statistics):
        """Raise ValueError unless statistics can be sums of products of rows.

        Such sums are finite and symmetric, with non-negative weight and no negative
        eigenvalue up to rounding. With more than 2000 functions, only the eigenvalues
        of 2 x 2 blocks are checked. Another order of columns, or a factor of all
        weights, cannot be detected.
        """
        if statistics.shape != self.total.shape:
            raise ValueError(
                f"statistics have shape {statistics.shape}, but this regressor's have "
                f"shape {self.total.shape}."
            )
        if not np.isfinite(statistics).all() or statistics[0, 0] < 0:
            raise ValueError("statistics must be finite, with non-negative weight.")
        squares = statistics.diagonal()
        scales = np.sqrt(np.maximum(squares, 0.0))
        limits = np.outer(scales, scales) * (1 + SCALE)
        wrong = None
        if (squares < 0).any():
            wrong = "sums of squares are negative"
        elif (abs(statistics - statistics.T) > SCALE * limits).any():
            wrong = "they are not symmetric"
        elif (abs(statistics) > limits).any():
            wrong = "a product violates the Cauchy-Schwarz inequality"
        elif len(statistics) <= MOST_CHECKED:
            scales[scales == 0] = 1.0
            values = np.linalg.eigvalsh(statistics / np.outer(scales, scales))
            if values[0] < -SCALE * len(values):
                wrong = f"they have a negative eigenvalue, {values[0]:.3g} when scaled"
        if wrong is not None:
            raise ValueError(f"statistics are not sums of products of rows: {wrong}.")

    def problem(self, bounded):
        """Return the regression, as `Rows.problem`."""
        weight = self.total[0, 0]
        average = self.total[0] / weight
        covariance = self.total - np.outer(self.total[0], average)
        p, width = len(self.dictionary.low), self.dictionary.max_order
        every = np.arange(p)
        blocks = self.total[2:, 2:].reshape(p, width, p, width)[every, :, every, :]
        means = average[2:].reshape(p, width)
        functions = self.dictionary.orthogonal(
            means, blocks / weight, weight, bounded=bounded
        )
        turn = functions.transform.transpose(0, 2, 1)
        gram = covariance[2:, 2:]
        for _ in range(2):  # first from the left, then from the right
            gram = (turn @ gram.reshape(p, width, -1)).reshape(p * width, -1).T
        against = (turn @ covariance[2:, 1].reshape(p, width, 1)).ravel()
        mean = float(self.origin + average[1])
        return Problem(
            self.dictionary,
            functions,
            Gram(np.ascontiguousarray(gram), functions.orders),
            against,
            mean,
            max(float(covariance[1, 1]), 0.0),
            float(weight),
            max(self.extremes[1] - mean, mean - self.extremes[0]),
        )


class Stream:
    """The first rows of a stream, then sums of products, and the chains' states.

    The first `n_kept` rows determine the functions. Later rows are collected into
    blocks, however they are split into calls, and their products are added. Each time
    the number of rows has doubled, the chains continue from their last states.

    Parameters
    ----------
    rows : Rows
        The first rows, possibly none.
    n_kept : int
        Number of rows that are kept.

    Attributes
    ----------
    ends : Starts or None
        Last states of the chains.
    unit_weights : bool or None
        Whether each row has weight 1; None if sums of other rows were added.
    """

    def __init__(self, rows, n_kept):
        self.rows, self.n_kept = rows, n_kept
        self.unit_weights = bool((rows.weights == 1).all())
        self.sums = self.pending = self.ends = None
        self.n_summed = self.n_run = 0  # number of rows in `sums`, and at the last run

    def extended(self, rows, dictionary_of, run):
        """Return the stream with more rows, without changing this one.

        Parameters
        ----------
        rows : Rows
            The rows.
        dictionary_of : callable
            Maps the first rows to the functions.
        run : callable
            `run(sums, ends, n_rows)` runs the chains and returns their last states.
        """
        stream = copy.copy(self)
        if (rows.weights != 1).any():
            stream.unit_weights = False
        start = 0
        while start < len(rows):
            if stream.sums is None and len(stream.rows) >= stream.n_kept:
                stream._sum_up(dictionary_of(stream.rows))
                stream._run(run)
            start += stream._take(rows, start)
            block_is_full = stream.sums is not None and not len(stream.pending)
            if block_is_full and stream.n_summed >= 2 * stream.n_run:
                stream._run(run)
        return stream

    def _take(self, rows, start):
        """Add rows up to the end of a block; return their number."""
        if self.sums is None:
            part = rows.part(start, start + self.n_kept - len(self.rows))
            self.rows = self.rows.joined(part)
            return len(part)
        part = rows.part(start, start + BLOCK - len(self.pending))
        self.sums.dictionary.check_missing(part.X)
        self.pending = self.pending.joined(part)
        if len(self.pending) == BLOCK:
            self._add_pending()
        return len(part)

    def _sum_up(self, dictionary):
        """Fix the functions, and sum rows from now on."""
        self.sums = Sums.of_rows(self.rows, dictionary)
        self.n_summed = len(self.rows)
        self.rows, self.pending = None, Rows.none(self.rows.X.shape[1])

    def _add_pending(self):
        self.sums = self.sums.joined(self.pending)
        self.n_summed += len(self.pending)
        self.pending = Rows.none(self.pending.X.shape[1])

    def _run(self, run):
        self.ends = run(self.sums, self.ends, self.n_summed)
        self.n_run = self.n_summed

    def summed(self, dictionary_of):
        """Return the stream with its rows summed, whatever their number."""
        stream = copy.copy(self)
        if stream.sums is None:
            stream._sum_up(dictionary_of(stream.rows))
        if len(stream.pending):
            stream._add_pending()
        return stream

    def absorbed(self, statistics, memory):
        """Return the stream with sums of other rows added."""
        stream = copy.copy(self)
        if 0 < memory < 1:
            stream.unit_weights = False
        elif memory == 0 or stream.unit_weights:
            stream.unit_weights = None
        stream.sums = stream.sums.replaced(memory * stream.sums.total + statistics)
        return stream

    def problem(self, dictionary_of, bounded):
        """Return the regression on all rows so far."""
        if self.sums is None:
            return self.rows.problem(dictionary_of(self.rows), bounded)
        sums = self.sums.joined(self.pending) if len(self.pending) else self.sums
        return sums.problem(bounded)
