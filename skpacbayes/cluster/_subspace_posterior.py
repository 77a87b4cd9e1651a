"""What a chain on partitions says: labels, relevance, and the law of a new row."""

import math

import numpy as np
from scipy.special import gammaln

from .._kernels import subspace as kernels
from ._subspace_chain import Chain

_LOG_2_PI = math.log(2 * math.pi)


class Run:
    """A chain and averages over those of its sweeps that are kept.

    `from_centers`: the chain starts from the cells of centres such as k-means starts
    from, not from groups that few features show.
    """

    def __init__(self, X, n_clusters, variance, concentration, rng, from_centers):
        self._from_centers = from_centers
        self.chain = Chain(X, n_clusters, variance == "shared", concentration, rng)
        self.n_sweeps = self.n_kept = 0
        self._sums = np.zeros(2), np.zeros((2, X.shape[1])), 0.0, 0.0

    def advance(self, keep):
        """Make a sweep for each of `keep`, and count those that are true."""
        if self.n_sweeps == 0:
            self.chain.start(self._from_centers)
        for kept in keep:
            self.chain.sweep()
            self.n_sweeps += 1
            if kept:
                self._count()

    def _count(self):
        chain = self.chain
        self.n_kept += 1
        now = (
            np.array([chain.log_joint(), chain.factor]),
            np.array([chain.mean, chain.variance]),
            chain.relevance(),
            chain.chances,
        )
        self._sums = [total + part for total, part in zip(self._sums, now, strict=True)]

    @property
    def log_joint(self):
        """Mean log density of rows and labels."""
        return float(self._sums[0][0] / self.n_kept)

    @property
    def factor(self):
        """Mean factor of the variance of shifts."""
        return float(self._sums[0][1] / self.n_kept)

    @property
    def background(self):
        """Mean of the mean and of the variance of each feature's background."""
        return self._sums[1] / self.n_kept

    @property
    def relevance(self):
        """Posterior probability that each feature is relevant to each cluster."""
        return self._sums[2] / self.n_kept

    @property
    def chances(self):
        """Posterior probability of each label of each row.

        The mean of the law of a label given all else, which says more than the label
        that was drawn from it.
        """
        return self._sums[3] / self.n_kept


class Predictive:
    """Law of a new row of a cluster, given its rows and the averages of a run.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Rows of the cluster, in standard units.
    weight : float
        Probability of the cluster.
    run : Run
        Where background and factor come from.
    relevance : ndarray of shape (n_features,)
        Probability that each feature is relevant.
    """

    def __init__(self, rows, weight, run, relevance):
        self._log_weight = math.log(weight)
        with np.errstate(divide="ignore"):
            self._log_odds = np.log([1 - relevance, relevance])
        self._mean, self._variance = run.background
        count, total = len(rows), rows.sum(axis=0)
        if run.chain.shared:
            discount = 1 + run.factor * count
            self._degrees = math.inf
            shift = run.factor * (total - count * self._mean) / discount
            self._center = self._mean + shift
            self._scale = self._variance * (1 + run.factor / discount)
        else:
            prior = kernels
            weight = prior.PRIOR_COUNT + count
            self._center = total / weight
            spread = ((rows - self._center) ** 2).sum(axis=0)
            spread += prior.PRIOR_COUNT * self._center**2
            self._degrees = 2 * prior.PRIOR_SHAPE + count
            scale = (2 * prior.PRIOR_SCALE + spread) / self._degrees
            self._scale = scale * (1 + 1 / weight)

    def log_density(self, X):
        """Log density of rows, times the probability of the cluster."""
        about = (X - self._mean) ** 2 / self._variance
        background = -0.5 * (_LOG_2_PI + np.log(self._variance) + about)
        without, relevant = self._log_odds
        both = np.logaddexp(without + background, relevant + self._own(X))
        return self._log_weight + both.sum(axis=1)

    def _own(self, X):
        """Log density of each value, if the feature is relevant: Student or normal."""
        about = (X - self._center) ** 2 / self._scale
        degrees = self._degrees
        if math.isinf(degrees):
            return -0.5 * (_LOG_2_PI + np.log(self._scale) + about)
        halves = 0.5 * (degrees + 1)
        constant = gammaln(halves) - gammaln(0.5 * degrees)
        constant -= 0.5 * np.log(degrees * math.pi * self._scale)
        return constant - halves * np.log1p(about / degrees)
