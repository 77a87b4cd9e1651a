"""Numbers of successes and categories: columns of chances."""

from copy import copy
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from .._compat import Interval, StrOptions
from .._validation import as_numbers
from ._column_family import ColumnFamily, refuse_empty_columns
from ._divergences import dirichlet_divergence, log_rising
from ._family import POSITIVE, are_all, defines_last
from ._scorers import LinearScorer, tabulated

SPARSEST = 8  # largest ratio of table entries to categories


class BetaPosterior(NamedTuple):
    """Beta distributions of the chances, (n_components, n_features) each."""

    first: np.ndarray
    second: np.ndarray


class Binomial(ColumnFamily):
    """Independent numbers of successes, with a chance for each component and column.

    Parameters
    ----------
    n_trials : int, default=1
        Number of trials of each value; 1 for Bernoulli columns.
    concentration_prior : float, default=1.0
        Both parameters of the Beta prior of each chance.
    """

    linear = counted = True

    _parameter_constraints: dict = {
        "n_trials": [Interval(Integral, 1, None, closed="left")],
        "concentration_prior": [POSITIVE],
    }

    def __init__(self, n_trials=1, concentration_prior=1.0):
        self.n_trials = n_trials
        self.concentration_prior = concentration_prior

    def check_rows(self, X):
        """Refuse what are not numbers of successes."""
        right = np.minimum(np.floor(np.abs(X)), self.n_trials) == X
        self.check_values(X, right, f"whole numbers from 0 to n_trials={self.n_trials}")

    def common_statistics(self, width):
        """Return what all rows without missing values have; NaN where they differ."""
        common = super().common_statistics(width)
        if self.n_trials == 1:
            common[2 * self.n_features :] = 0.0
        return common

    def write_varying(self, X, out):
        """Write the other statistics of such rows, (n_others, n_rows)."""
        if self.n_trials == 1:
            out[:] = X.T
        else:
            super().write_varying(X, out)

    def parts(self, X):
        """Successes, and logarithm of the base measure."""
        if self.n_trials == 1:
            return X, np.zeros(X.shape)
        base = gammaln(self.n_trials + 1) - gammaln(X + 1)
        return X, base - gammaln(self.n_trials - X + 1)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        failures = self.n_trials * counts - sums
        prior = self.concentration_prior
        return BetaPosterior(prior + sums, prior + failures)

    def coefficients(self, posterior):
        """Coefficients of one, the successes, and the base measure."""
        first, second = posterior
        failure = digamma(second) - digamma(first + second)
        log_odds = digamma(first) - digamma(second)
        return self.n_trials * failure, log_odds, np.ones(first.shape)

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        return self.tabulated_density(posterior, self.n_trials + 1)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        distributions = np.stack(posterior, axis=-1)
        prior = np.full_like(distributions, self.concentration_prior)
        return dirichlet_divergence(distributions, prior).sum()

    def marginals(self, posterior):
        """Return the log predictive probability of each value: a beta-binomial one."""
        first, second = posterior
        if self.n_trials == 1:
            log_chances = np.log([second, first]) - np.log(first + second)
            failure, odds = log_chances[0], log_chances[1] - log_chances[0]
            return lambda X: failure + X * odds
        total = log_rising(first + second, self.n_trials)

        def log_marginals(X):
            failures = self.n_trials - X
            return log_rising(first, X) + log_rising(second, failures) - total

        return log_marginals

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        first, second = posterior.first[k], posterior.second[k]
        chances = generator.beta(first, second, (size, len(first)))
        return generator.binomial(self.n_trials, chances).astype(np.float64)

    def attributes(self, posterior):
        """Posterior means of the chances."""
        return {"chances": posterior.first / (posterior.first + posterior.second)}


class DirichletPosterior(NamedTuple):
    """Dirichlet posteriors of the categories, (n_components, n_categories)."""

    concentration: np.ndarray


class Categorical(ColumnFamily):
    """Independent categories, coded as numbers, in each column.

    Parameters
    ----------
    concentration_prior : float, default=1.0
        Concentration of the symmetric Dirichlet prior of the chances of a column.
    categories : "auto", int or list of array-like, default="auto"
        Categories of each column; other values are refused. "auto": those of the first
        rows (of `fit`, or of the first block). A number m: 0, 1, ..., m - 1 in each
        column. Give the categories if some are so rare that the first rows of a stream,
        or the training rows of a split, may not have them.

    Examples
    --------
    The first rows of a stream do not have the category 2:

    >>> from skpacbayes.mixture import Categorical, TemperedVBMixture
    >>> mixture = TemperedVBMixture(Categorical(categories=3))
    >>> mixture = mixture.fit([[0.0], [1.0], [1.0]]).partial_fit([[2.0]])
    >>> mixture.parameters_["chances"].round(2)
    array([[0.29, 0.42, 0.29]])
    """

    nominal = True
    numbers = None  # indices of the columns in the whole X, for error messages

    _parameter_constraints: dict = {
        "concentration_prior": [POSITIVE],
        "categories": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            list,
        ],
    }

    def __init__(self, concentration_prior=1.0, categories="auto"):
        self.concentration_prior = concentration_prior
        self.categories = categories

    def check_rows(self, X):
        """Refuse values that are not among the categories, if these are given."""
        given = self.given_values(X.shape[1])
        if given is None:
            return
        right = np.column_stack(
            [np.isin(x, own) for x, own in zip(X.T, given, strict=True)]
        )
        self.check_values(X, right, "values among its categories")

    def given_values(self, n_features):
        """Return the sorted categories of each column, or None if not given."""
        given = self.categories
        if isinstance(given, str):
            return None
        if not isinstance(given, list):
            return [np.arange(float(given))] * n_features
        if len(given) != n_features:
            raise ValueError(
                f"categories has {len(given)} lists, but the family Categorical has "
                f"{n_features} columns."
            )
        values = [as_numbers("categories", own) for own in given]
        for column, own in enumerate(values):
            if own.ndim != 1 or len(np.unique(own)) < max(1, len(own)):
                raise ValueError(
                    f"categories[{column}]={given[column]!r} should be a list of "
                    "different numbers."
                )
        return [np.sort(own) for own in values]

    def begin(self, X, sample_weight=None):
        """Return the family with the categories of the rows."""
        refuse_empty_columns(X)
        family = copy(self)
        family.n_features = X.shape[1]
        family.values = self.given_values(X.shape[1])
        if family.values is None:
            family.values = [np.unique(x[~np.isnan(x)]) for x in X.T]
        sizes = [len(values) for values in family.values]
        family.ends = np.cumsum([0, *sizes])
        family.places = [
            dict(zip(values.tolist(), range(start, start + len(values)), strict=True))
            for values, start in zip(family.values, family.ends, strict=False)
        ]
        family.centers = np.full(X.shape[1], np.nan)
        return family

    def profile(self, X, sample_weight=None):
        """Return the indicators of the categories."""
        return self.statistics(X)

    def statistics(self, X):
        """Return the indicators of the categories, zero where a value is missing."""
        result = np.zeros((len(X), self.ends[-1]))
        if len(X) == 1:
            pairs = zip(self.places, X[0].tolist(), strict=True)
            at = [places.get(value) for places, value in pairs]
            if None not in at:
                result[0, at] = 1.0
                return result
        for column, values in enumerate(self.values):
            known = ~np.isnan(X[:, column])
            at = np.searchsorted(values, X[known, column])
            right = at < len(values)
            right[right] = values[at[right]] == X[known, column][right]
            if not right.all():
                value = X[known, column][~right][0]
                number = column if self.numbers is None else self.numbers[column]
                raise ValueError(
                    f"Column {number} of X has the category {value:g}, which the first "
                    f"rows did not have: {values.tolist()}. Name all categories by "
                    "the family Categorical(categories=...)."
                )
            result[np.flatnonzero(known), self.ends[column] + at] = 1.0
        return result

    def check_new_rows(self, X):
        """Refuse categories that the first rows did not have."""
        self.statistics(X)

    def common_statistics(self, width):
        """Return NaN: rows have no statistic in common."""
        return np.full(width, np.nan)

    def write_varying(self, X, out):
        """Write the indicators of the categories, (n_categories, n_rows)."""
        out[:] = self.statistics(X).T

    def columns_of(self, values):
        """Return the parts of an array that belong to each column."""
        return np.split(values, self.ends[1:-1], axis=1)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        return DirichletPosterior(self.concentration_prior + statistics[:, 1:-1])

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        parts = [
            digamma(part) - digamma(part.sum(axis=1, keepdims=True))
            for part in self.columns_of(posterior.concentration)
        ]
        return np.zeros(len(parts[0])), np.hstack(parts)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        return sum(
            dirichlet_divergence(
                part, np.full_like(part, self.concentration_prior)
            ).sum()
            for part in self.columns_of(posterior.concentration)
        )

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        log_chances = np.log(np.hstack(self.chances(posterior)))
        return self.scorer_of(np.zeros(len(log_chances)), log_chances).of

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        constants, coefficients = self.expected(posterior)
        return self.scorer_of(log_weights + constants, coefficients)

    def scorer_of(self, constants, coefficients):
        """Return what writes c_k plus the coefficients of a row's categories.

        By a table where the categories are small whole numbers.
        """
        general = LinearScorer(constants, coefficients, self.statistics)
        known = np.concatenate(self.values)
        size = (1 + known.max()) * self.n_features
        whole = (known >= 0) & (np.floor(known) == known)
        small = are_all(whole) and size <= SPARSEST * (1 + len(known))
        if not (small and defines_last(self, "scorer_of", "statistics")):
            return general
        shape = self.n_features, int(known.max()) + 1, len(constants)
        table = np.full(shape, np.nan)
        columns = np.repeat(np.arange(self.n_features), np.diff(self.ends))
        table[columns, known.astype(int)] = coefficients.T
        return tabulated(constants, table, general.of)

    def chances(self, posterior):
        """Posterior means of the chances, for each column."""
        parts = self.columns_of(posterior.concentration)
        return [part / part.sum(axis=1, keepdims=True) for part in parts]

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        if (statistics[:, 1:-1] < 0).any():
            raise ValueError("The counts of categories in statistics must be >= 0.")

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        columns = []
        for part, values in zip(
            self.columns_of(posterior.concentration), self.values, strict=True
        ):
            chances = part[k] / part[k].sum()
            columns.append(generator.choice(values, size, p=chances))
        return np.column_stack(columns)

    def attributes(self, posterior):
        """Posterior means of the chances of the categories, side by side."""
        return {"chances": np.hstack(self.chances(posterior))}
