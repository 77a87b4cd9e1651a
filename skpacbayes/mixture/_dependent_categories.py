"""Columns of categories that depend on each other within groups.

Components whose columns are independent divide a group along its dependent columns.
Here they are merged into groups whose columns form a forest: the pairs of columns that
are its edges have joint distributions (C. K. Chow and C. N. Liu, 1968). BIC compares
these groups with the components.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp, softmax
from scipy.stats import chi2

from .._sentinels import column_of
from ._categories import Binomial, Categorical
from ._groups import MOST_COLUMNS, Groups

MOST_VALUES = 100  # largest number of categories of all columns together
PRODUCTS = 2e7  # multiplications that limit the number of rows,
ROWS = 2000, 20000  # and its limits
FEWEST_COLUMNS = 4  # two classes of three yes-or-no columns fit any table
LEVEL = 0.05  # of the test that fewer groups fit the rows
MUCH = 5.0  # nats: very strong evidence (R. E. Kass and A. E. Raftery, 1995)
EM_STEPS = 10
NOTABLE = 0.2  # least association of some pair: overlapping groups cause weaker ones
NAMED = 3  # largest number of pairs of columns that are named


class Forest(NamedTuple):
    """Distribution of a group: chances, and log ratios of joint chances of pairs."""

    chances: np.ndarray
    edges: list
    log_ratios: np.ndarray
    joint: np.ndarray


class DependentCategories(Groups):
    """Groups of dependent categories, of components with independent columns."""

    dependent = True  # whether columns of a group may depend on each other

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        yes_or_no = isinstance(family, Binomial) and family.n_trials == 1
        return yes_or_no or isinstance(family, Categorical)

    @staticmethod
    def most_rows(parts):
        """Return the largest number of rows used, given the families."""
        n_values = sum(
            family.ends[-1] if isinstance(family, Categorical) else 2 * len(own)
            for family, own in parts
        )
        return int(np.clip(PRODUCTS / n_values**2, *ROWS))

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        if not FEWEST_COLUMNS <= X.shape[1] <= MOST_COLUMNS:
            return False
        n_values = [len(values_of(x)) for x in X.T]
        return min(n_values) > 0 and sum(n_values) <= MOST_VALUES

    def read(self, X, parts):
        """Keep the indicators of the categories, zero where a value is missing."""
        self.numbers = [column for _, own in parts for column in own]
        values = [values_of(x) for x in X.T]
        self.indicators = np.hstack(
            [x[:, None] == own for x, own in zip(X.T, values, strict=True)]
        ).astype(np.float64)
        ends = np.cumsum([0, *map(len, values)])
        self.places = [slice(*own) for own in pairwise(ends)]
        self.free = np.diff(ends) - 1  # parameters of each column
        self.owners = np.repeat(np.eye(len(values)), np.diff(ends), axis=0)

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        forest = self.forest(share, self.dependent and not component)
        log_densities = self.indicators @ np.log(forest.chances)
        for i, j in forest.edges:
            first, second = self.places[i], self.places[j]
            given = self.indicators[:, first] @ forest.log_ratios[first, second]
            log_densities += (given * self.indicators[:, second]).sum(axis=1)
        choice = len(forest.edges) * np.log(self.n_pairs()) / (0.5 * self.log_total())
        size = self.n_parameters(forest.edges) + choice
        point = 2 * np.arcsin(np.sqrt(forest.chances))
        return self.with_others(share, log_densities, size, point)

    def log_total(self):
        """Return the logarithm of the weight of all rows, at least that of 2."""
        return np.log(max(self.weight.sum(), 2.0))

    def n_pairs(self):
        """Return the number of pairs of columns."""
        return len(self.free) * (len(self.free) - 1) / 2

    def n_parameters(self, edges):
        """Return the number of parameters of a forest."""
        return self.free.sum() + sum(self.free[i] * self.free[j] for i, j in edges)

    def forest(self, share, dependent=True):
        """Return the forest of the weighted rows, without edges if not `dependent`.

        A pair may be an edge if its gain exceeds the price of its joint distribution,
        and of the choice among all pairs. Joint chances are shrunk by one row, which is
        spread as if the columns were independent.
        """
        counts = share @ self.indicators + 0.5
        chances = counts / (self.owners @ (counts @ self.owners))
        if not dependent:
            return Forest(chances, [], np.zeros(0), np.zeros(0))
        joint = (self.indicators * share[:, None]).T @ self.indicators
        totals = self.owners @ (self.owners.T @ joint @ self.owners) @ self.owners.T
        apart = np.outer(chances, chances)
        log_ratios = np.log((joint + apart) / (totals + 1) / apart)
        gains = self.owners.T @ (joint * log_ratios) @ self.owners
        prices = 0.5 * np.outer(self.free, self.free) * self.log_total()
        net = np.triu(gains - prices - np.log(self.n_pairs()), 1)
        tree = minimum_spanning_tree(-np.maximum(net, 0.0)).tocoo()
        edges = list(zip(tree.row.tolist(), tree.col.tolist(), strict=True))
        return Forest(chances, edges, log_ratios, joint)

    def forests(self):
        """Return the forests of all groups."""
        return [self.forest(share) for share in self.groups[0]]

    def best_merge(self):
        """Merge down to one group; return the best number, and its gain in BIC.

        The groups have to fit the rows as the components do, by a likelihood ratio
        test, since BIC prefers few groups if the rows are few. There is no gain if
        groups of independent columns are as good, or if all pairs are weakly dependent.
        """
        first, K = self.groups, len(self.groups[0])
        before, likelihood = self.criterion(*first[:3]), self.likelihood()
        # As many components as this fit any table: the test cannot refuse them.
        if np.log(K * (self.free.sum() + 1)) >= np.log(self.free + 1.0).sum():
            return K, 0.0
        self.dependent = False
        _, independent = super().best_merge()
        self.dependent, self.groups = True, first
        best, gain, kept = K, 0.0, first
        least = max(independent, 0.0) + MUCH
        for left in range(K - 1, 0, -1):
            if self.merge() - before <= 0:
                continue
            path = self.groups
            for _ in range(EM_STEPS):
                self.improve()
            own = self.criterion(*self.groups[:3]) - before
            if own > max(gain, least) and self.fits(first, likelihood):
                best, gain, kept = left, own, self.groups
            self.groups = path
        self.groups = kept
        return best, gain

    def likelihood(self):
        """Return the log likelihood of the groups."""
        shares, log_densities = self.groups[:2]
        masses = np.log([max(share.sum(), 1e-300) for share in shares])
        joint = np.column_stack(log_densities) + masses - np.log(self.weight.sum())
        return self.weight @ logsumexp(joint, axis=1)

    def fits(self, components, likelihood):
        """Return whether the groups fit the rows, and some pair depends clearly."""
        forests = self.forests()
        sizes = [1 + self.n_parameters(forest.edges) for forest in forests]
        freedom = max(len(components[0]) * (1 + self.free.sum()) - sum(sizes), 1)
        loss = likelihood - self.likelihood()
        strongest = max([value for _, value in self.pairs(forests)], default=0.0)
        return 2 * loss <= chi2.isf(LEVEL, freedom) and strongest >= NOTABLE

    def improve(self):
        """Take one step of the EM algorithm."""
        masses = np.log([max(share.sum(), 1e-300) for share in self.groups[0]])
        joint = np.column_stack(self.groups[1]) + masses
        shares = self.weight[:, None] * softmax(joint, axis=1)
        described = [self.described(own) for own in shares.T]
        self.groups = list(shares.T), *map(list, zip(*described, strict=True))

    def pairs(self, forests):
        """Return Cramer's V of the pairs that are edges, the largest first.

        The values are averaged over the groups.
        """
        found, masses = {}, [share.sum() for share in self.groups[0]]
        for forest, mass in zip(forests, masses, strict=True):
            for i, j in forest.edges:
                table = forest.joint[self.places[i], self.places[j]]
                value = cramers_v(table) * mass / sum(masses)
                found[i, j] = found.get((i, j), 0.0) + value
        return sorted(found.items(), key=lambda own: -own[1])

    def complaint(self, best, K, gain):
        """Return a warning of columns that depend on each other."""
        pairs = self.pairs(self.forests())
        text = ", ".join(
            f"{column_of(self.names, self.numbers[i])} with "
            f"{column_of(self.names, self.numbers[j])} ({value:.2f})"
            for (i, j), value in pairs[:NAMED]
        )
        more = len(pairs) - NAMED
        text += f", and {more} more pairs" if more > 0 else ""
        return (
            "Columns of categories depend on each other within groups, but the family "
            f"takes them as independent given the component (Cramer's V): {text}. "
            f"{best} component{'s' * (best > 1)} with dependent pairs of columns would "
            f"explain the rows better than the {K} that n_components='auto' chose, by "
            f"{gain:.3g} nats (BIC). Components then cut groups in parts: leave out "
            "one column of each pair, or make one column of the two, and fit again."
        )


def values_of(x):
    """Return the values of a column that are not missing."""
    return np.unique(x[~np.isnan(x)])


def cramers_v(table):
    """Return Cramer's V of a table of two columns, 0 for independent ones."""
    table = table[np.ix_(table.sum(axis=1) > 0, table.sum(axis=0) > 0)]
    if min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return np.sqrt(max((table**2 / expected).sum() - 1, 0.0) / (min(table.shape) - 1))
