"""Poisson counts and Gamma variables: columns whose rates have Gamma priors."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, digamma, gammaln

from ._column_family import ColumnFamily
from ._divergences import gamma_divergence


class GammaPosterior(NamedTuple):
    """Gamma distributions of the rates, (n_components, n_features) each."""

    shape: np.ndarray
    rate: np.ndarray


class RateFamily(ColumnFamily):
    """What families with a Gamma distribution of a rate share."""

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
        return GammaPosterior(self.shape_prior + sums, self.rate_prior + counts)

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
        Shape of the Gamma prior of each rate. Its mean is the mean of the components'
        rates, where the bound is largest.
    """

    continuous = True

    def __init__(self, shape=1.0, shape_prior=0.5):
        self.shape = shape
        self.shape_prior = shape_prior

    def check_rows(self, X):
        """Refuse values that are not positive."""
        self.check_values(X, X > 0, "numbers > 0")

    def set_prior(self, X, weight):
        """Let the prior mean of a rate be that at which the column has its mean."""
        self.rate_prior = self.shape_prior / self.shape * self.centers

    def adapted(self, posterior):
        """Return the family whose prior means of the rates maximise the bound.

        They are the components' mean rates: a rate that is many times the prior mean
        costs as many times half a nat, and one that is less costs its logarithm.
        """
        family = copy(self)
        rates = (posterior.shape / posterior.rate).mean(axis=0)
        family.rate_prior = self.shape_prior / rates
        return family

    def profile(self, X, sample_weight=None):
        """Logarithms, of which the variance depends on the shape only."""
        return np.log(np.where(np.isnan(X), self.centers, X))

    def parts(self, X):
        """Value, and logarithm of the base measure."""
        return X, (self.shape - 1) * np.log(X) - gammaln(self.shape)

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        counts, sums, _ = self.split(statistics)
        return GammaPosterior(
            self.shape_prior + self.shape * counts, self.rate_prior + sums
        )

    def coefficients(self, posterior):
        """Coefficients of one, the value, and the base measure."""
        shape, rate = posterior
        log_rates = self.shape * (digamma(shape) - np.log(rate))
        return log_rates, -shape / rate, np.ones(shape.shape)

    def log_marginals(self, posterior, X):
        """Log predictive density of each value: a beta prime distribution."""
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
