"""Families of independent columns, of directions, and of columns of several kinds.

All are exponential families with conjugate priors; `Normal` has the default prior of
the Gaussian mixtures. The default priors follow the columns' means and variances.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln, ive

from ._default_priors import BLUR, MEAN_SHAPE, SCALES, half_scales
from ._divergences import dirichlet_divergence, gamma_divergence, matrix_f_divergence
from ._family import ExponentialFamily
from ._gaussian_families import LOG_2_PI, variances
from ._student import Student

DEGREES = 3  # of freedom, of the prior precisions of normal columns


class ColumnFamily(ExponentialFamily):
    """A family whose columns are independent; a missing value, NaN, is left out.

    A subclass writes `parts(X)`: arrays like X, the statistics of each value; the
    first statistic, before them, is one for a value that is there.
    """

    allows_missing = True

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which may depend on the rows."""
        family = copy(self)
        family.n_features = X.shape[1]
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        there = ~np.isnan(X)
        counts = np.maximum(weight @ there, np.finfo(float).tiny)
        family.centers = weight @ np.where(there, X, 0.0) / counts
        filled = np.where(there, X, family.centers)
        family.spreads = np.sqrt(variances(filled, sample_weight))
        family.set_prior(filled, weight)
        return family

    def set_prior(self, X, weight):
        """Set the parameters of the prior; missing values are the columns' means."""

    def origin(self, X, sample_weight=None):
        """Means of the first rows."""
        return self.centers

    def profile(self, X, sample_weight=None):
        """Standardise the features; a missing value is the mean."""
        return np.nan_to_num((X - self.centers) / self.spreads)

    def statistics(self, X):
        """Statistics of each value, zero where it is missing."""
        there = ~np.isnan(X)
        if there.all():
            return np.hstack([np.ones(X.shape), *self.parts(X)])
        filled = np.where(there, X, self.centers)
        return np.hstack([there, *(part * there for part in self.parts(filled))])

    def split(self, statistics):
        """Return the sums of each statistic, (n_components, n_features) each."""
        n_parts = (statistics.shape[1] - 2) // self.n_features
        return np.split(statistics[:, 1:-1], n_parts, axis=1)

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        coefficients = np.hstack(self.coefficients(posterior))
        return np.zeros(len(coefficients)), coefficients

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        there = ~np.isnan(X)
        filled = np.where(there, X, self.centers)[:, None]
        return (self.log_marginals(posterior, filled) * there[:, None]).sum(axis=2)

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        counts = self.split(statistics)[0]
        slack = 1e-9 * (1 + statistics[:, :1])
        if (counts < -slack).any() or (counts > statistics[:, :1] + slack).any():
            raise ValueError(
                "The numbers of values in statistics must be between 0 and the count."
            )

    def check_values(self, X, right, needed):
        """Raise a ValueError that names a column where values are not `right`."""
        wrong = ~(right | np.isnan(X)).all(axis=0)
        if wrong.any():
            column = int(wrong.argmax())
            value = X[~(right | np.isnan(X))[:, column], column][0]
            raise ValueError(
                f"The family {type(self).__name__} needs {needed}, but column {column} "
                f"of X has the value {value:g}."
            )


class NormalColumns(NamedTuple):
    """Laws of means and precisions of the standardised columns, (K, d) each."""

    means: np.ndarray
    precision: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    prior_precision: np.ndarray


class Normal(ColumnFamily):
    """Independent normal columns, with a mean and a variance for each component.

    Parameters
    ----------
    mean_precision_prior : float, default=0.05
        Prior mean of the pseudo-observations of a mean.

    Notes
    -----
    The prior is that of :class:`TemperedVBGaussianMixture` with
    ``covariance_type="diag"``, but for the prior precision of the means, which each
    column has for its own; missing values are left out. The moments are about
    the mean of the first rows: components should lie within some million of their
    widths from it.
    """

    def __init__(self, mean_precision_prior=0.05):
        self.mean_precision_prior = mean_precision_prior

    def set_prior(self, X, weight):
        """Begin with components as wide as the rows."""
        self.factor = np.ones(self.n_features)

    def parts(self, X):
        """Value and square, standardised."""
        z = (X - self.centers) / self.spreads
        return z, z**2

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, squares = self.split(statistics)
        if previous is None:
            prior = np.full(counts.shape, float(self.mean_precision_prior))
        else:
            prior = previous.prior_precision
        precision = prior + counts
        means = sums / precision
        averages = sums / np.maximum(counts, np.finfo(float).tiny)
        scatter = np.maximum(squares - sums * averages, 0.0) + BLUR * counts
        scatter += prior * counts / precision * averages**2
        scaled = scatter / self.factor
        values = scaled + half_scales(scaled, counts, DEGREES, 1)
        shape, scale = 0.5 * (DEGREES + counts), 0.5 * self.factor * values
        rate = MEAN_SHAPE / self.mean_precision_prior
        rate = rate + 0.5 * (shape / scale * means**2 + 1 / precision)
        prior = (MEAN_SHAPE + 0.5) / rate
        return NormalColumns(means, precision, shape, scale, prior)

    def coefficients(self, posterior):
        """Coefficients of one, the value and its square."""
        means, precision, shape, scale, _ = posterior
        expected = shape / scale
        constants = digamma(shape) - np.log(scale) - LOG_2_PI - 1 / precision
        constants -= expected * (means**2 + BLUR)
        return (
            0.5 * constants - np.log(self.spreads),
            expected * means,
            -0.5 * expected,
        )

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        means, precision, shape, scale, prior = posterior
        expected, top = shape / scale, MEAN_SHAPE + 0.5
        rate = top / prior
        log_ratio = digamma(top) - np.log(rate * precision)
        squares = prior * expected * means**2
        spectrum = (self.factor * expected)[:, :, None]
        return (
            0.5 * (prior / precision - 1 - log_ratio + squares)
            + gamma_divergence(
                top, rate, MEAN_SHAPE, MEAN_SHAPE / self.mean_precision_prior
            )
            + matrix_f_divergence(2 * shape, spectrum, DEGREES, 1)
        ).sum()

    def adapted(self, posterior):
        """Return the family with prior scales that raise the bound."""
        halves = (1 + DEGREES) / (1 + self.factor * posterior.shape / posterior.scale)
        family = copy(self)
        family.factor = np.clip(self.factor * halves.mean(axis=0), *SCALES)
        return family

    def log_marginals(self, posterior, X):
        """Log predictive density of each value, (n_rows, n_components, n_features)."""
        z = (X - self.centers) / self.spreads
        shape = posterior.shape
        scale = 2 * posterior.scale * (1 + 1 / posterior.precision)
        constants = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(np.pi * scale)
        squares = (z - posterior.means) ** 2 / scale
        return constants - np.log(self.spreads) - (shape + 0.5) * np.log1p(squares)

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape = posterior.shape[k]
        variances_ = posterior.scale[k] / generator.gamma(shape, 1, (size, len(shape)))
        variances_ *= 1 + 1 / posterior.precision[k]
        z = posterior.means[k] + np.sqrt(variances_) * generator.normal(
            size=variances_.shape
        )
        return self.centers + self.spreads * z

    def attributes(self, posterior):
        """Means and variances, in the units of the rows."""
        return {
            "means": self.centers + self.spreads * posterior.means,
            "variances": self.spreads**2 * posterior.scale / posterior.shape,
        }


class GammaLaws(NamedTuple):
    """Gamma laws of the rates, (n_components, n_features) each."""

    shape: np.ndarray
    rate: np.ndarray


class RateFamily(ColumnFamily):
    """What families with a Gamma law of a rate share."""

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        prior = self.shape_prior, self.rate_prior
        return gamma_divergence(*posterior, *prior).sum()


class Poisson(RateFamily):
    """Independent Poisson counts, with a rate for each component and column.

    Parameters
    ----------
    shape_prior : float, default=0.5
        Shape of the Gamma prior of each rate. Its mean is the mean of the column.
    """

    def __init__(self, shape_prior=0.5):
        self.shape_prior = shape_prior

    def check_rows(self, X):
        """Refuse what are not counts."""
        right = (X >= 0) & (np.floor(X) == X)
        self.check_values(X, right, "whole numbers >= 0")

    def set_prior(self, X, weight):
        """Let the prior mean of a rate be the mean of the column."""
        means = np.where(self.centers > 0, self.centers, 1.0)
        self.rate_prior = self.shape_prior / means

    def profile(self, X, sample_weight=None):
        """Twice the square roots, of which the variance is one within a component."""
        return 2 * np.sqrt(np.where(np.isnan(X), self.centers, X))

    def parts(self, X):
        """Count, and logarithm of the base measure."""
        return X, -gammaln(X + 1)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        return GammaLaws(self.shape_prior + sums, self.rate_prior + counts)

    def coefficients(self, posterior):
        """Coefficients of one, the count, and the base measure."""
        shape, rate = posterior
        return -shape / rate, digamma(shape) - np.log(rate), np.ones(shape.shape)

    def log_marginals(self, posterior, X):
        """Log predictive probability of each value: negative binomial."""
        shape, rate = posterior
        return (
            gammaln(shape + X)
            - gammaln(shape)
            - gammaln(X + 1)
            + shape * np.log(rate)
            - (shape + X) * np.log1p(rate)
        )

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape, rate = posterior.shape[k], posterior.rate[k]
        rates = generator.gamma(shape, 1 / rate, (size, len(shape)))
        return generator.poisson(rates).astype(np.float64)

    def attributes(self, posterior):
        """Posterior means of the rates."""
        return {"rates": posterior.shape / posterior.rate}


class Gamma(RateFamily):
    """Independent Gamma columns of known shape, exponential if it is one.

    Parameters
    ----------
    shape : float, default=1.0
        Shape of the distribution of a value, known.
    shape_prior : float, default=0.5
        Shape of the Gamma prior of each rate; the prior is such that values as large
        as the column's mean are typical.
    """

    def __init__(self, shape=1.0, shape_prior=0.5):
        self.shape = shape
        self.shape_prior = shape_prior

    def check_rows(self, X):
        """Refuse values that are not positive."""
        self.check_values(X, X > 0, "numbers > 0")

    def set_prior(self, X, weight):
        """Let the prior mean of a rate be that at which the column has its mean."""
        self.rate_prior = self.shape_prior / self.shape * self.centers

    def profile(self, X, sample_weight=None):
        """Logarithms, of which the variance depends on the shape only."""
        return np.log(np.where(np.isnan(X), self.centers, X))

    def parts(self, X):
        """Value, and logarithm of the base measure."""
        return X, (self.shape - 1) * np.log(X) - gammaln(self.shape)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        return GammaLaws(self.shape_prior + self.shape * counts, self.rate_prior + sums)

    def coefficients(self, posterior):
        """Coefficients of one, the value, and the base measure."""
        shape, rate = posterior
        log_rates = self.shape * (digamma(shape) - np.log(rate))
        return log_rates, -shape / rate, np.ones(shape.shape)

    def log_marginals(self, posterior, X):
        """Log predictive density of each value: a beta prime law."""
        shape, rate = posterior
        return (
            (self.shape - 1) * np.log(X)
            - betaln(self.shape, shape)
            + shape * np.log(rate)
            - (self.shape + shape) * np.log(rate + X)
        )

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape, rate = posterior.shape[k], posterior.rate[k]
        rates = generator.gamma(shape, 1 / rate, (size, len(shape)))
        return generator.gamma(self.shape, 1 / rates)

    def attributes(self, posterior):
        """Posterior means of the rates."""
        return {"rates": posterior.shape / posterior.rate}


class BetaLaws(NamedTuple):
    """Beta laws of the chances, (n_components, n_features) each."""

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

    def __init__(self, n_trials=1, concentration_prior=1.0):
        self.n_trials = n_trials
        self.concentration_prior = concentration_prior

    def check_rows(self, X):
        """Refuse what are not numbers of successes."""
        right = (X >= 0) & (self.n_trials >= X) & (np.floor(X) == X)
        self.check_values(X, right, f"whole numbers from 0 to n_trials={self.n_trials}")

    def parts(self, X):
        """Successes, and logarithm of the base measure."""
        base = gammaln(self.n_trials + 1) - gammaln(X + 1)
        return X, base - gammaln(self.n_trials - X + 1)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        failures = self.n_trials * counts - sums
        prior = self.concentration_prior
        return BetaLaws(prior + sums, prior + failures)

    def coefficients(self, posterior):
        """Coefficients of one, the successes, and the base measure."""
        first, second = posterior
        failure = digamma(second) - digamma(first + second)
        log_odds = digamma(first) - digamma(second)
        return self.n_trials * failure, log_odds, np.ones(first.shape)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        laws = np.stack(posterior, axis=-1)
        prior = np.full_like(laws, self.concentration_prior)
        return dirichlet_divergence(laws, prior).sum()

    def log_marginals(self, posterior, X):
        """Log predictive probability of each value: a beta-binomial law."""
        first, second = posterior
        base = gammaln(self.n_trials + 1) - gammaln(X + 1)
        base = base - gammaln(self.n_trials - X + 1)
        rise = betaln(first + X, second + self.n_trials - X)
        return base + rise - betaln(first, second)

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        first, second = posterior.first[k], posterior.second[k]
        chances = generator.beta(first, second, (size, len(first)))
        return generator.binomial(self.n_trials, chances).astype(np.float64)

    def attributes(self, posterior):
        """Posterior means of the chances."""
        return {"chances": posterior.first / (posterior.first + posterior.second)}


class DirichletLaws(NamedTuple):
    """Dirichlet laws of the categories, side by side (n_components, n_categories)."""

    concentration: np.ndarray


class Categorical(ColumnFamily):
    """Independent categories, coded as numbers, in each column.

    The categories are those of the first rows (of `fit`, or of the first block);
    others are refused later.

    Parameters
    ----------
    concentration_prior : float, default=1.0
        Concentration of the symmetric Dirichlet prior of the chances of a column.
    """

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def begin(self, X, sample_weight=None):
        """Return the family with the categories of the rows."""
        family = copy(self)
        family.n_features = X.shape[1]
        family.categories = [np.unique(x[~np.isnan(x)]) for x in X.T]
        sizes = [len(values) for values in family.categories]
        family.ends = np.cumsum([0, *sizes])
        family.centers = np.full(X.shape[1], np.nan)
        return family

    def profile(self, X, sample_weight=None):
        """Return the indicators of the categories."""
        return self.statistics(X)

    def statistics(self, X):
        """Return the indicators of the categories, zero where a value is missing."""
        result = np.zeros((len(X), self.ends[-1]))
        for column, values in enumerate(self.categories):
            known = ~np.isnan(X[:, column])
            at = np.searchsorted(values, X[known, column])
            right = at < len(values)
            right[right] = values[at[right]] == X[known, column][right]
            if not right.all():
                value = X[known, column][~right][0]
                raise ValueError(
                    f"Column {column} of X has the category {value:g}, which the first "
                    f"rows did not have: {values.tolist()}."
                )
            result[np.flatnonzero(known), self.ends[column] + at] = 1.0
        return result

    def columns_of(self, values):
        """Return the parts of an array that belong to each column."""
        return np.split(values, self.ends[1:-1], axis=1)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        return DirichletLaws(self.concentration_prior + statistics[:, 1:-1])

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

    def log_predictive(self, posterior, X):
        """Log-probability of each row under each component, (n_rows, n_components)."""
        return self.statistics(X) @ np.log(np.hstack(self.chances(posterior))).T

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
            self.columns_of(posterior.concentration), self.categories, strict=True
        ):
            if len(values) == 0:
                columns.append(np.full(size, np.nan))
                continue
            chances = part[k] / part[k].sum()
            columns.append(generator.choice(values, size, p=chances))
        return np.column_stack(columns)

    def attributes(self, posterior):
        """Posterior means of the chances of the categories, side by side."""
        return {"chances": np.hstack(self.chances(posterior))}


class Directions(NamedTuple):
    """Laws of the directions for each concentration of a grid.

    resultants : (n_components, n_features), sums of the directions
    log_grid : (n_components, n_grid), logarithms of the chances of the grid
    """

    resultants: np.ndarray
    log_grid: np.ndarray


class VonMisesFisher(ExponentialFamily):
    """Directions: rows of length one about a mean direction.

    The mean direction has a uniform prior and the concentration a uniform prior on a
    grid of 60 values whose logarithms are equally spaced: the posterior is exact.

    Parameters
    ----------
    min_concentration, max_concentration : float, default=0.1 and 10000.0
        Ends of the grid.
    """

    def __init__(self, min_concentration=0.1, max_concentration=1e4):
        self.min_concentration = min_concentration
        self.max_concentration = max_concentration

    def check_rows(self, X):
        """Refuse rows that are not directions."""
        lengths = np.sqrt((X**2).sum(axis=1))
        wrong = np.abs(lengths - 1) > 1e-6
        if X.shape[1] < 2 or wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                "The family VonMisesFisher needs rows of length 1 with at least 2 "
                f"columns, but row {row} of X has the length {lengths[row]:g}: use "
                "sklearn.preprocessing.normalize, and leave out rows of zeros."
            )

    def begin(self, X, sample_weight=None):
        """Return the family with its grid."""
        family = copy(self)
        family.n_features = X.shape[1]
        ends = np.log([self.min_concentration, self.max_concentration])
        family.grid = np.exp(np.linspace(*ends, 60))
        family.log_constants = family.log_constant(family.grid)
        return family

    def log_constant(self, concentration):
        """Logarithm of the normalising constant of the density on the sphere."""
        half = 0.5 * self.n_features
        safe = np.maximum(concentration, 1e-10)
        bessel = np.log(ive(half - 1, safe)) + safe
        return (half - 1) * np.log(safe) - half * LOG_2_PI - bessel

    def statistics(self, X):
        """Return the direction."""
        return X

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        sums = statistics[:, 1:-1]
        lengths = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        log_grid = statistics[:, :1] * self.log_constants
        log_grid = log_grid - self.log_constant(self.grid * lengths)
        log_grid = log_grid - np.logaddexp.reduce(log_grid, axis=1, keepdims=True)
        return Directions(sums, log_grid)

    def moments(self, posterior):
        """Concentrations of the directions, their mean lengths, and the chances."""
        sums, log_grid = posterior
        lengths = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        concentrations = np.maximum(self.grid * lengths, 1e-10)
        half = 0.5 * self.n_features
        means = ive(half, concentrations) / ive(half - 1, concentrations)
        return lengths, concentrations, means, np.exp(log_grid)

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        lengths, _, means, chances = self.moments(posterior)
        natural = (chances * self.grid * means).sum(axis=1, keepdims=True)
        directions = posterior.resultants / np.maximum(lengths, 1e-300)
        return chances @ self.log_constants, natural * directions

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        _, concentrations, means, chances = self.moments(posterior)
        inner = concentrations * means + self.log_constant(concentrations)
        inner = inner - self.log_constant(np.zeros(1))
        grid = posterior.log_grid + np.log(len(self.grid))
        return (chances * (inner + grid)).sum()

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        sums, log_grid = posterior
        lengths = np.sqrt((sums**2).sum(axis=1))[None, :, None]
        after = np.sqrt(((X[:, None] + sums) ** 2).sum(axis=2))[:, :, None]
        terms = log_grid + self.log_constants + self.log_constant(self.grid * lengths)
        terms = terms - self.log_constant(self.grid * after)
        return np.logaddexp.reduce(terms, axis=2)

    def draw(self, posterior, k, size, generator):
        """Rows of component k: a direction, then a row about it."""
        sums, chances = posterior.resultants[k], np.exp(posterior.log_grid[k])
        grid = generator.choice(self.grid, size, p=chances / chances.sum())
        length = np.sqrt((sums**2).sum())
        axis = sums / length if length > 0 else np.eye(len(sums))[0]
        means = draw_directions(np.tile(axis, (size, 1)), grid * length, generator)
        return draw_directions(means, grid, generator)

    def attributes(self, posterior):
        """Mean directions and posterior means of the concentrations."""
        lengths, _, _, chances = self.moments(posterior)
        return {
            "directions": posterior.resultants / np.maximum(lengths, 1e-300),
            "concentrations": chances @ self.grid,
        }


def draw_directions(means, concentrations, generator):
    """Draw one von Mises-Fisher direction about each mean, by Wood's rejections."""
    size, d = means.shape
    twice = 2 * np.maximum(concentrations, 1e-10)
    b = (d - 1) / (np.sqrt(twice**2 + (d - 1) ** 2) + twice)
    x = (1 - b) / (1 + b)
    peak = 0.5 * twice * x + (d - 1) * np.log(4 * b / (1 + b) ** 2)
    cosines, waiting = np.empty(size), np.arange(size)
    while len(waiting):
        z = generator.beta(0.5 * (d - 1), 0.5 * (d - 1), len(waiting))
        own = b[waiting]
        w = (1 - (1 + own) * z) / (1 - (1 - own) * z)
        log_ratio = 0.5 * twice[waiting] * w - peak[waiting]
        log_ratio += (d - 1) * np.log1p(-x[waiting] * w)
        accepted = log_ratio >= np.log(generator.random(len(waiting)))
        cosines[waiting[accepted]] = w[accepted]
        waiting = waiting[~accepted]
    sides = generator.normal(size=(size, d))
    sides -= (sides * means).sum(axis=1, keepdims=True) * means
    sides /= np.sqrt((sides**2).sum(axis=1, keepdims=True))
    sines = np.sqrt(np.maximum(1 - cosines**2, 0.0))
    return cosines[:, None] * means + sines[:, None] * sides


class ProductFamily(ExponentialFamily):
    """Columns of several kinds, independent within a component.

    Parameters
    ----------
    families : list of (name, family, columns)
        A name, a family (or its name) with linear statistics, and the indices of its
        columns. Columns of no family are ignored.
    """

    def __init__(self, families):
        self.families = families

    @property
    def allows_missing(self):
        """Whether one of the families leaves out missing values."""
        return any(family.allows_missing for _, family, _ in self.parts())

    def parts(self):
        """Return the families; a name stands for the family with its defaults."""
        return [
            (name, FAMILIES[family]() if isinstance(family, str) else family, columns)
            for name, family, columns in self.families
        ]

    def check_rows(self, X):
        """Let each family check its columns."""
        taken = np.zeros(X.shape[1], dtype=int)
        for name, family, columns in self.parts():
            if not isinstance(family, ExponentialFamily):
                raise ValueError(
                    f"{type(family).__name__} cannot be part of a product: it is no "
                    "ExponentialFamily."
                )
            rows = X[:, columns]
            taken[columns] += 1
            if not family.allows_missing and np.isnan(rows).any():
                raise ValueError(
                    f"The columns of {name!r} contain NaN, which the family "
                    f"{type(family).__name__} does not leave out."
                )
            try:
                family.check_rows(rows)
            except ValueError as error:
                raise ValueError(f"In the columns of {name!r}: {error}") from None
        if (taken > 1).any():
            raise ValueError(
                f"Column {int(taken.argmax())} of X is in more than one family."
            )

    def begin(self, X, sample_weight=None):
        """Return the families with their priors."""
        product = copy(self)
        product.n_features = X.shape[1]
        product.families = [
            (name, family.begin(X[:, columns], sample_weight), columns)
            for name, family, columns in self.parts()
        ]
        widths = [
            family.statistics(X[:1, columns]).shape[1]
            for _, family, columns in product.families
        ]
        product.ends = np.cumsum(widths)
        return product

    def blank(self, n_components, origin):
        """Posterior of `n_components` components that have seen no row."""
        return self.update(np.zeros((n_components, 2 + self.ends[-1])), None)

    def profile(self, X, sample_weight=None):
        """Side by side, each family's points with a total variance of one a column."""
        points = []
        for _, family, columns in self.families:
            part = family.profile(X[:, columns], sample_weight)
            spread = np.sqrt(part.var(axis=0).sum() / len(columns))
            points.append(part / (spread if spread > 0 else 1.0))
        return np.hstack(points)

    def statistics(self, X):
        """Statistics of all families."""
        return np.hstack(
            [family.statistics(X[:, columns]) for _, family, columns in self.families]
        )

    def each(self, statistics):
        """Return each family's part of the statistics."""
        parts = np.split(statistics[:, 1:-1], self.ends[:-1], axis=1)
        return [
            np.column_stack([statistics[:, 0], part, statistics[:, -1]])
            for part in parts
        ]

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        previous = [None] * len(self.ends) if previous is None else previous
        return tuple(
            family.update(part, before)
            for (_, family, _), part, before in zip(
                self.families, self.each(statistics), previous, strict=True
            )
        )

    def pairs(self, posterior):
        """Return each family with its part of the posterior."""
        families = [family for _, family, _ in self.families]
        return list(zip(families, posterior, strict=True))

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        parts = [family.expected(part) for family, part in self.pairs(posterior)]
        constants, coefficients = zip(*parts, strict=True)
        return sum(constants), np.hstack(coefficients)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        return sum(family.divergence(part) for family, part in self.pairs(posterior))

    def adapted(self, posterior):
        """Return the families with the priors that the bound chooses."""
        product = copy(self)
        product.families = [
            (name, family.adapted(part), columns)
            for (name, family, columns), part in zip(
                self.families, posterior, strict=True
            )
        ]
        return product

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        return sum(
            family.log_predictive(part, X[:, columns])
            for (_, family, columns), part in zip(self.families, posterior, strict=True)
        )

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        for (family, part), own in zip(
            self.pairs(posterior), self.each(statistics), strict=True
        ):
            family.check_statistics(own, part)

    def draw(self, posterior, k, size, generator):
        """Rows of component k; ignored columns are NaN."""
        rows = np.full((size, self.n_features), np.nan)
        for (_, family, columns), part in zip(self.families, posterior, strict=True):
            rows[:, columns] = family.draw(part, k, size, generator)
        return rows

    def attributes(self, posterior):
        """Return the families' arrays, as name__key."""
        return {
            f"{name}__{key}": value
            for (name, family, _), part in zip(self.families, posterior, strict=True)
            for key, value in family.attributes(part).items()
        }


FAMILIES = {
    "normal": Normal,
    "poisson": Poisson,
    "exponential": Gamma,
    "bernoulli": Binomial,
    "categorical": Categorical,
    "student": Student,
    "von_mises_fisher": VonMisesFisher,
}
