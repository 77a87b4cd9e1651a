"""What a regression needs to know of its rows: themselves, or sums of products."""

from typing import NamedTuple

import numpy as np

from ._basis import Dictionary, Orthonormal, weighted_moments
from ._quadratic import Gram, WeightedRows

BLOCK = 256  # rows whose products are summed at a time


class Problem(NamedTuple):
    """A regression on functions that are centred and orthogonal over the rows.

    The k-th of a variable has variance 1 / k^2; or, if they are `bounded`, functions
    have absolute value 1 at most.
    """

    dictionary: Dictionary
    functions: Orthonormal
    gram: Gram | WeightedRows
    against: np.ndarray  # products of the functions with y, summed
    mean: float  # of y
    square: float  # of y less its mean, summed
    weight: float  # of the rows
    largest: float  # absolute value of y less its mean


class Rows:
    """Rows with targets and weights, all positive.

    They are the first rows of a table that has room for more, so that a row can be
    added without copying all.
    """

    def __init__(self, table, count):
        self._table, self._count = table, count

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

    def part(self, start, stop):
        """Return some of the rows."""
        part = self._table[start : min(stop, self._count)]
        return Rows(part, len(part))

    def joined(self, rows):
        """Return these rows and more; these stay as they are."""
        count = len(self) + len(rows)
        table = self._table
        if count > len(table):  # the room depends on the number of rows alone
            table = np.zeros((1 << (count - 1).bit_length(), table.shape[1]))
            table[: len(self)] = self._table[: len(self)]
        table[len(self) : count] = rows._table[: len(rows)]
        return Rows(table, count)

    def problem(self, dictionary, bounded):
        """Return the regression."""
        values = dictionary(self.X)
        weight = self.weights.sum()
        moments = weighted_moments(values, self.weights)
        functions = Orthonormal(*moments, dictionary.along(), weight)
        if bounded:
            functions.rescaled(dictionary)
        else:
            functions.damped()
        values = functions(values)
        mean = float(self.weights @ self.y / weight)
        rest = self.y - mean
        gram = WeightedRows(values, self.weights, functions.orders)
        return Problem(
            dictionary,
            functions,
            gram,
            gram.against(rest),
            mean,
            float(self.weights @ rest**2),
            float(weight),
            float(abs(rest).max()),
        )


class Sums:
    """Sums of products of 1, y and the functions of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        The functions: they stay as they are.
    origin : float
        What is subtracted from y, so that its square keeps its digits.
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
        """Sum the products of some rows, block by block."""
        origin = float(rows.weights @ rows.y / rows.weights.sum())
        size = 2 + len(dictionary.low) * dictionary.max_order
        sums = cls(dictionary, origin, np.zeros((size, size)), (np.inf, -np.inf))
        for start in range(0, len(rows), BLOCK):
            sums = sums.joined(rows.part(start, start + BLOCK))
        return sums

    def products(self, rows):
        """Return the sums of products of some rows."""
        flat = self.dictionary(rows.X).reshape(-1, len(rows))
        design = np.vstack([np.ones(len(rows)), rows.y - self.origin, flat])
        return (design * rows.weights) @ design.T

    def joined(self, rows):
        """Return these sums and those of more rows."""
        low, high = self.extremes
        extremes = min(low, float(rows.y.min())), max(high, float(rows.y.max()))
        total = self.total + self.products(rows)
        return Sums(self.dictionary, self.origin, total, extremes)

    def replaced(self, total):
        """Return other sums of the same products."""
        return Sums(self.dictionary, self.origin, total, self.extremes)

    def problem(self, bounded):
        """Return the regression, as `Rows.problem`."""
        weight = self.total[0, 0]
        average = self.total[0] / weight
        covariance = self.total - np.outer(self.total[0], average)
        p, width = len(self.dictionary.low), self.dictionary.max_order
        every = np.arange(p)
        blocks = self.total[2:, 2:].reshape(p, width, p, width)[every, :, every, :]
        functions = Orthonormal(
            average[2:].reshape(p, width),
            blocks / weight,
            self.dictionary.along(),
            weight,
        )
        if bounded:
            functions.rescaled(self.dictionary)
        else:
            functions.damped()
        turn = functions.transform.transpose(0, 2, 1)
        gram = covariance[2:, 2:]
        for _ in range(2):  # from the left, then from the right
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
