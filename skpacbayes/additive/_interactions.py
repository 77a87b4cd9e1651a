"""Interactions: the candidate pairs of variables, and the functions of a pair."""

from itertools import combinations

import numpy as np

from .._compat import StrOptions
from .._extras import extra_module
from ._chain import NO_PAIRS

MOST_PAIRED = 20  # largest number of variables whose pairs are candidates
NEGLIGIBLE = 1e-8  # share of a product's variance below which it is dropped


class _Interactions:
    """The parameter `interactions`, and the attributes of the pairs."""

    _parameter_constraints: dict = {
        "interactions": [None, StrOptions({"auto"}), "array-like"],
    }

    def interaction_frame(self):
        """Return the probabilities of interactions as a table, largest first.

        Returns
        -------
        table : pandas.DataFrame
            A row for each pair of `pairs_`: the `first` and the `second` variable, by
            name or column, the `probability` of the pair, its Monte Carlo `error`, and
            the `expected_order`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = extra_module(
            "pandas", "demo", f"{type(self).__name__}.interaction_frame"
        )
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        first, second = names[self.pairs_].T
        found, pairs = self._answer(), slice(self.n_features_in_, None)
        inclusion = found.posterior.inclusion()[pairs]
        columns = {
            "first": first,
            "second": second,
            "probability": inclusion[:, 0],
            "error": found.errors[pairs],
            "expected_order": inclusion.sum(axis=1),
        }
        return pandas.DataFrame(columns).sort_values(
            "probability", ascending=False, kind="stable", ignore_index=True
        )

    @property
    def pairs_(self):
        """Pairs of variables that may interact."""
        found = self._answer().pairs
        return NO_PAIRS.copy() if found is None else found.pairs.copy()

    @property
    def pair_probabilities_(self):
        """Probability that each pair is in the model."""
        return self._answer().posterior.inclusion()[self.n_features_in_ :, 0]

    def _candidates(self, orders, probabilities):
        """Return the given pairs, or those of the most probable variables.

        Parameters
        ----------
        orders : ndarray of shape (n_features,)
            Number of functions of each variable.
        probabilities : callable
            Returns inclusion probabilities without interactions.
        """
        if not isinstance(self.interactions, str):
            return given_pairs(self.interactions, self._column)
        usable = np.flatnonzero(orders)
        if len(usable) > MOST_PAIRED:
            best = np.argsort(-probabilities()[usable], kind="stable")
            usable = usable[best[:MOST_PAIRED]]
        return every_pair(usable)


def every_pair(features):
    """Return all pairs of some variables, of shape (n_pairs, 2)."""
    pairs = list(combinations(sorted(map(int, features)), 2))
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)


def given_pairs(given, column):
    """Return distinct pairs of variables, as columns.

    Parameters
    ----------
    given : array-like of shape (n_pairs, 2)
        The pairs, by column or name.
    column : callable
        Returns the column of a variable.
    """
    pairs = set()
    for pair in given:
        columns = []
        if not isinstance(pair, (str, bytes)) and np.ndim(pair) and len(pair) == 2:
            columns = sorted({column(each) for each in pair})
        if len(columns) != 2:
            raise ValueError(
                f"interactions must be pairs of two different variables, got {pair!r}."
            )
        pairs.add(tuple(columns))
    return np.array(sorted(pairs), dtype=np.int64).reshape(len(pairs), 2)


class Pairs:
    """The first products of the functions of two variables, for each of several pairs.

    The projections on functions of one of the two variables are subtracted, and the
    products are orthogonalised in order, over the rows. The product of the a-th
    function of one variable and the b-th of the other has standard deviation 1 / (a b).
    The first products are those of the smallest a + b. At new rows a function is
    clipped to the range of its values at the rows: if variables are correlated,
    products of polynomials explode far from all rows.

    Parameters
    ----------
    pairs : ndarray of int of shape (n_pairs, 2)
        The pairs.
    dictionary : Dictionary
        Functions of one variable.
    functions : Orthonormal
        Orthogonal functions of one variable, the k-th of standard deviation 1 / k.
    values : ndarray of shape (n_features, max_order, n_samples)
        Their values at the rows.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.

    Attributes
    ----------
    orders : ndarray of shape (n_pairs,)
        Number of functions of each pair.
    """

    def __init__(self, pairs, dictionary, functions, values, weights):
        self.pairs, self.dictionary, self.functions = pairs, dictionary, functions
        count, width = len(pairs), dictionary.max_order
        self.orders = np.zeros(count, dtype=np.int64)
        self.products = np.zeros((count, width, 2), dtype=np.int64)
        self.means = np.zeros((count, 3 * width))
        self.transform = np.zeros((count, width, 3 * width))
        self.limits = np.zeros((2, count, width))
        scales = np.sqrt(weights / weights.sum())
        for number, (first, second) in enumerate(pairs):
            orders = functions.orders[first], functions.orders[second]
            self.products[number] = smallest_products(*orders, width)
            parts = self._parts(number, values[first], values[second])
            self.means[number] = parts @ scales**2
            centered = (parts - self.means[number][:, None]) * scales
            self._orthogonalize(number, centered @ centered.T)
            found = self.transform[number] @ (parts - self.means[number][:, None])
            self.limits[:, number] = found.min(axis=1), found.max(axis=1)

    def _orthogonalize(self, number, covariance):
        """Compute the functions of a pair, as combinations of its parts."""
        width = len(self.transform[number])
        basis = np.zeros((0, 3 * width))
        own = np.diag(covariance)
        for part in range(3 * width):
            direction = np.zeros(3 * width)
            direction[part] = 1.0
            for _ in range(2):  # the second pass removes rounding errors
                direction = direction - (basis @ (covariance @ direction)) @ basis
            rest = direction @ covariance @ direction
            if not rest > NEGLIGIBLE * own[part]:
                continue
            if part >= 2 * width:
                a, b = self.products[number, part - 2 * width]
                place = self.orders[number]
                scale = (a + 1) * (b + 1) * np.sqrt(rest)
                self.transform[number, place] = direction / scale
                self.orders[number] += 1
            basis = np.vstack([basis, direction / np.sqrt(rest)])

    def _parts(self, number, first, second):
        """Return functions of both variables, and their products."""
        a, b = self.products[number].T
        products = np.where((a >= 0)[:, None], first[a] * second[b], 0.0)
        return np.concatenate([first, second, products])

    def __call__(self, X, numbers):
        """Evaluate the functions of some pairs, of shape (n_chosen, width, n_samples).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        numbers : sequence of int
            Numbers of the pairs.
        """
        used = np.unique(self.pairs[numbers])
        values = self.functions(self.dictionary(X, used), used)
        return self.of_values(values, numbers, used)

    def of_values(self, values, numbers=None, used=None):
        """Evaluate the functions, given those of the variables `used`."""
        numbers = range(len(self.pairs)) if numbers is None else numbers
        result = np.zeros((len(numbers), self.transform.shape[1], values.shape[2]))
        for row, number in enumerate(numbers):
            pair = self.pairs[number]
            places = pair if used is None else np.searchsorted(used, pair)
            parts = self._parts(number, *values[places])
            parts -= self.means[number][:, None]
            low, high = self.limits[:, number, :, None]
            result[row] = (self.transform[number] @ parts).clip(low, high)
        return result


def with_pairs(pairs, dictionary, functions, values, weights):
    """Return functions of pairs; values and numbers of functions of all terms.

    The terms are the variables, and then the pairs. See :class:`Pairs`.
    """
    found = Pairs(pairs, dictionary, functions, values, weights)
    values = np.concatenate([values, found.of_values(values)])
    return found, values, np.concatenate([functions.orders, found.orders])


def smallest_products(first, second, count):
    """Return the indices (count, 2) of the first products of functions.

    They are sorted by a + b, then by |a - b|, and padded with -1.
    """
    every = [(a, b) for a in range(first) for b in range(second)]
    every.sort(key=lambda pair: (sum(pair), abs(pair[0] - pair[1]), pair))
    every = every[:count] + [(-1, -1)] * (count - len(every))
    return np.array(every, dtype=np.int64).reshape(count, 2)
