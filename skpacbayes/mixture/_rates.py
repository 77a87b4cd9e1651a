"""Poisson counts and Gamma variables: columns whose rates have Gamma priors."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln

from .._base import warn_user
from .._compat import StrOptions
from .._kernels.mixture import log_sums_of_powers
from ._column_family import ColumnFamily
from ._divergences import gamma_divergence, log_rising
from ._family import POSITIVE

FEW = 100  # number of values below which no table of factorials is made
MOST_COUNTS = 256  # number of counts whose log densities are tabulated
ENDS = "smallest", "largest"
ADVICE = "take logarithms", 'the family "lognormal" or "normal" may fit better'
SHAPES, N_SHAPES = (0.02, 2000.0), 200  # grid of the shapes of Gamma distributions
NEGLIGIBLE = -50.0  # shapes with a smaller log probability are left out,
ENOUGH = -10.0  # if the log density of log x is larger than this


class GammaPosterior(NamedTuple):
    """Gamma distributions of the rates, (n_components, n_features) each."""

    shape: np.ndarray
    rate: np.ndarray


class Poisson(ColumnFamily):
    """Independent Poisson counts, with a rate for each component and column.

    Parameters
    ----------
    shape_prior : float, default=0.5
        Shape of the Gamma prior of each rate. Its mean is the mean of the column.
    """

    linear = counted = True

    _parameter_constraints: dict = {"shape_prior": [POSITIVE]}

    def __init__(self, shape_prior=0.5):
        self.shape_prior = shape_prior

    def check_rows(self, X):
        """Refuse what are not counts."""
        right = np.floor(np.abs(X)) == X
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
        return X, -log_factorials(X)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        return GammaPosterior(self.shape_prior + sums, self.rate_prior + counts)

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        return self.tabulated_density(posterior, MOST_COUNTS)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        prior = self.shape_prior, self.rate_prior
        return gamma_divergence(*posterior, *prior).sum()

    def coefficients(self, posterior):
        """Coefficients of one, the count, and the base measure."""
        shape, rate = posterior
        return -shape / rate, digamma(shape) - np.log(rate), np.ones(shape.shape)

    def marginals(self, posterior):
        """Return the log predictive probability of each value: negative binomial."""
        shape, rate = posterior
        of_zero, log_odds = -shape * np.log1p(1 / rate), np.log1p(rate)

        def log_marginals(X):
            return of_zero + log_rising(shape, X) - X * log_odds

        return log_marginals

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape, rate = posterior.shape[k], posterior.rate[k]
        rates = generator.gamma(shape, 1 / rate, (size, len(shape)))
        return generator.poisson(rates).astype(np.float64)

    def attributes(self, posterior):
        """Posterior means of the rates."""
        return {"rates": posterior.shape / posterior.rate}


def log_factorials(X):
    """Return log factorials of counts, from a table if the counts are small."""
    highest = X.max(initial=0.0)
    if X.size < FEW or highest > X.size:
        return gammaln(X + 1)
    table = gammaln(np.arange(highest + 1) + 1)
    return table[X.astype(np.intp)]


class GammaShapes(NamedTuple):
    """Distributions of the shapes, and of the rates for each shape of a grid.

    All are (n_components, n_features, n_grid): the rates are Gamma(shape, rate), and
    log_chances are the log probabilities of the shapes.
    """

    shape: np.ndarray
    rate: np.ndarray
    log_chances: np.ndarray


class Gamma(ColumnFamily):
    """Independent Gamma columns, exponential if the shape is one.

    The posterior is exact: a shape that is not known has a uniform prior on a grid of
    200 values whose logarithms are equally spaced, for each component and column.

    Parameters
    ----------
    shape : float or "auto", default=1.0
        Shape of the distribution of a value, if it is known. "auto" learns it.
    shape_prior : float, default=0.5
        Shape of the Gamma prior of each rate. Its mean is the mean of the components'
        rates, where the bound is largest.

    Examples
    --------
    >>> import numpy as np
    >>> from skpacbayes.mixture import Gamma, TemperedVBMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma([[0.3]] * 200 + [[8.0]] * 200, 1.0)
    >>> mixture = TemperedVBMixture(Gamma("auto"), "auto", random_state=0).fit(X)
    >>> np.sort(mixture.parameters_["shapes"][:, 0]).round(1)
    array([0.3, 8.7])
    """

    continuous = True

    _parameter_constraints: dict = {
        "shape": [StrOptions({"auto"}), POSITIVE],
        "shape_prior": [POSITIVE],
    }

    def __init__(self, shape=1.0, shape_prior=0.5):
        self.shape = shape
        self.shape_prior = shape_prior

    def check_rows(self, X):
        """Refuse values that are not positive."""
        self.check_values(X, X > 0, "numbers > 0")

    def set_prior(self, X, weight):
        """Let the prior mean of a rate be that at which the column has its mean."""
        if self.shape == "auto":
            self.grid = np.exp(np.linspace(*np.log(SHAPES), N_SHAPES))
        else:
            self.grid = np.array([float(self.shape)])
        self.unit_rate = self.shape_prior * self.centers

    @property
    def rate_prior(self):
        """Rates of the priors of the rates, for each shape: (n_features, n_grid)."""
        return self.unit_rate[:, None] / self.grid

    def adapted(self, posterior):
        """Return the family whose prior means of the rates maximise the bound.

        They are the components' mean rates, in units of the shapes: a rate that is many
        times the prior mean costs as many times half a nat, and one that is less costs
        its logarithm.
        """
        family = copy(self)
        shape, rate, log_chances = posterior
        means = (np.exp(log_chances) * shape / rate / self.grid).sum(axis=2)
        family.unit_rate = self.shape_prior / means.mean(axis=0)
        return family

    def warn_of(self, posterior):
        """Warn if a shape would be outside the grid."""
        if self.shape != "auto":
            return
        ends = np.exp(posterior.log_chances[:, :, [0, -1]]).max(axis=1)
        for end, word, advice in zip(ends.T, ENDS, ADVICE, strict=True):
            if end.max() > 0.5:
                warn_user(
                    f"The shape of a Gamma column of component {int(end.argmax())} is "
                    f"the {word} of those that are tried, from {SHAPES[0]:g} to "
                    f"{SHAPES[1]:g}, so that components may cut groups in parts: "
                    f"{advice}.",
                )

    def less_assuming(self):
        """Return the family that learns the shape; None if this one does."""
        if self.shape == "auto":
            return None
        family = copy(self)
        family.shape = "auto"
        unit_rate = self.unit_rate
        family.set_prior(None, None)
        family.unit_rate = unit_rate
        return family

    def profile(self, X, sample_weight=None):
        """Logarithms, of which the variance depends on the shape only."""
        return np.log(np.where(np.isnan(X), self.centers, X))

    def parts(self, X):
        """Value, and its logarithm."""
        return X, np.log(X)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        parts = self.split(statistics)
        counts, sums, logs = (part[:, :, None] for part in parts)
        shape, rate = self.shape_prior + self.grid * counts, self.rate_prior + sums
        log_chances = (
            (self.grid - 1) * logs
            - counts * gammaln(self.grid)
            + gammaln(shape)
            - shape * np.log(rate)
            + self.shape_prior * np.log(self.rate_prior)
        )
        log_chances -= np.logaddexp.reduce(log_chances, axis=2, keepdims=True)
        return GammaShapes(shape, rate, log_chances)

    def coefficients(self, posterior):
        """Coefficients of one, the value, and its logarithm."""
        shape, rate, log_chances = posterior
        terms = (
            self.grid * (digamma(shape) - np.log(rate)) - gammaln(self.grid),
            -shape / rate,
            self.grid - 1,
        )
        chances = np.exp(log_chances)
        return [(chances * term).sum(axis=2) for term in terms]

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        shape, rate, log_chances = posterior
        rates = gamma_divergence(shape, rate, self.shape_prior, self.rate_prior)
        shapes = log_chances + np.log(len(self.grid))
        return (np.exp(log_chances) * (rates + shapes)).sum()

    def marginals(self, posterior):
        """Return the log predictive density of each value: mixtures of beta primes.

        The sums begin with the shapes whose chance is not negligible. All others are
        added where the density is so low that they may matter: in log x, none exceeds
        the square root of the largest shape.
        """
        shape, rate, log_chances = posterior
        n_components, d, n_grid = shape.shape
        order = np.argsort(-log_chances, axis=2, kind="stable")
        constants = log_chances - betaln(self.grid, shape) - self.grid * np.log(rate)
        powers = np.broadcast_to(self.grid - 1, shape.shape)
        terms = [
            np.take_along_axis(each, order, axis=2).ravel()
            for each in (powers, constants, shape + self.grid, rate)
        ]
        columns = np.tile(np.arange(d), n_components)
        starts = np.arange(len(columns) + 1) * n_grid
        firsts = (log_chances > NEGLIGIBLE).sum(axis=2).ravel()
        parameters = columns, starts, firsts, *terms, ENOUGH

        def log_marginals(X):
            rows, work = np.ascontiguousarray(X[:, 0]), np.empty(n_grid)
            found = np.empty((len(rows), len(columns)))
            log_sums_of_powers(rows, *parameters, work, found)
            return found.reshape(len(rows), n_components, d)

        return log_marginals

    def draw(self, posterior, k, size, generator):
        """Rows of component k."""
        shape, rate, log_chances = (each[k] for each in posterior)
        columns, at = np.arange(len(shape)), np.zeros((size, len(shape)), dtype=int)
        if len(self.grid) > 1:
            ends = np.exp(log_chances).cumsum(axis=1)
            points = generator.random(at.shape) * ends[:, -1]
            at = (points[:, :, None] > ends).sum(axis=2)
        rates = generator.gamma(shape[columns, at], 1 / rate[columns, at])
        return generator.gamma(self.grid[at], 1 / rates)

    def attributes(self, posterior):
        """Posterior means of the shapes and of the rates."""
        shape, rate, log_chances = posterior
        chances = np.exp(log_chances)
        return {
            "shapes": (chances * self.grid).sum(axis=2),
            "rates": (chances * shape / rate).sum(axis=2),
        }
