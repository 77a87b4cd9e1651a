"""Posterior of a chain on partitions, and the predictive distribution of a row."""

import math

import numpy as np
from scipy.special import gammaln

from .._kernels import subspace as kernels
from ._subspace_start import split_clusters

_LOG_2_PI = math.log(2 * math.pi)


class Run:
    """A chain, and averages over its kept iterations.

    Parameters
    ----------
    chain : Chain
        The chain.
    start : callable
        Chooses the first labels of the chain.
    """

    def __init__(self, chain, start):
        self.chain, self._start = chain, start
        self.n_iter = self.n_kept = 0
        self.trace = []  # log density, probability, factor of the kept iterations
        self._last = -math.inf
        n_features = chain.X.shape[1]
        self._sums = np.zeros(2), np.zeros((2, n_features)), 0.0, 0.0

    def advance(self, n_iter, keep):
        """Make sweeps, and keep all or none of them."""
        if self.n_iter == 0:
            self._start(self.chain)
        total = 0.0
        for _ in range(n_iter):
            self.chain.sweep()
            gains = self.chain.find_gains()
            log_joint = self.chain.log_joint(gains)
            total += log_joint
            if keep:
                self._count(log_joint, gains)
        self.n_iter += n_iter
        self._last = total / max(n_iter, 1)

    def settle_clusters(self, n_iter):
        """Merge clusters, and split each in two, until that leaves their number."""
        n_clusters = 0
        self._merge(n_iter)
        while self.chain.n_clusters != n_clusters:
            n_clusters = self.chain.n_clusters
            split_clusters(self.chain)
            self.advance(n_iter, keep=False)
            self._merge(n_iter)

    def _merge(self, n_iter):
        self.chain.merge_clusters()
        self.advance(n_iter, keep=False)
        self.chain.merge_clusters()

    def _count(self, log_joint, gains):
        chain = self.chain
        self.n_kept += 1
        self.trace.append((log_joint, chain.probability, chain.factor))
        now = (
            np.array([log_joint, chain.factor]),
            np.array([chain.mean, chain.variance]),
            chain.relevance(gains),
            chain.chances,
        )
        self._sums = [total + part for total, part in zip(self._sums, now, strict=True)]

    @property
    def log_joint(self):
        """Return the mean log density of rows and labels, of kept or last sweeps."""
        if not self.n_kept:
            return self._last
        return float(self._sums[0][0] / self.n_kept)

    @property
    def factor(self):
        """Posterior mean of the factor of the variance of shifts."""
        return float(self._sums[0][1] / self.n_kept)

    @property
    def background(self):
        """Posterior means of the mean and the variance of each feature's background."""
        return self._sums[1] / self.n_kept

    @property
    def relevance(self):
        """Posterior probability that each feature is relevant to each cluster."""
        return self._sums[2] / self.n_kept

    @property
    def chances(self):
        """Posterior probability of each label of each row.

        The mean of the conditional distribution of a label given all other variables,
        which is less noisy than the label that was drawn from it.
        """
        return self._sums[3] / self.n_kept


class Predictive:
    """Distribution of a new row and its label, given the averages of a run.

    Parameters
    ----------
    rows : list of ndarrays of shape (n_rows, n_features)
        Rows of each cluster, in standard units.
    weights : ndarray of shape (n_clusters,)
        Probability of each cluster.
    run : Run
        Source of the background and the factor.
    relevance : ndarray of shape (n_clusters, n_features)
        Probability that each feature is relevant.
    """

    def __init__(self, rows, weights, run, relevance):
        self._log_weights = np.log(weights)
        with np.errstate(divide="ignore"):
            self._log_odds = np.log([1 - relevance, relevance])
        self._mean, self._variance = run.background
        counts = np.array([[float(len(own))] for own in rows])
        totals = np.array([own.sum(axis=0) for own in rows])
        if run.chain.shared:
            discount = 1 + run.factor * counts
            shift = run.factor * (totals - counts * self._mean) / discount
            self._degrees = None
            self._center = self._mean + shift
            self._scale = self._variance * (1 + run.factor / discount)
            self._constant = -0.5 * (_LOG_2_PI + np.log(self._scale))
            return
        weight = kernels.PRIOR_COUNT + counts
        self._center = totals / weight
        spread = kernels.PRIOR_COUNT * self._center**2
        for own, center, total in zip(rows, self._center, spread, strict=True):
            total += ((own - center) ** 2).sum(axis=0)
        self._degrees = 2 * kernels.PRIOR_SHAPE + counts
        scale = (2 * kernels.PRIOR_SCALE + spread) / self._degrees
        self._scale = scale * (1 + 1 / weight)
        halves = 0.5 * (self._degrees + 1)
        self._constant = gammaln(halves) - gammaln(0.5 * self._degrees)
        self._constant = self._constant - 0.5 * np.log(
            self._degrees * math.pi * self._scale
        )

    @np.errstate(under="ignore")  # a share of zero
    def log_joint(self, X):
        """Return the log density of rows and labels, of shape (n_rows, n_clusters)."""
        about = (X - self._mean) ** 2 / self._variance
        background = -0.5 * (_LOG_2_PI + np.log(self._variance) + about)
        without, relevant = self._log_odds
        found = np.empty((len(X), len(self._log_weights)))
        for j in range(found.shape[1]):
            own = relevant[j] + self._own(X, j)
            found[:, j] = np.logaddexp(without[j] + background, own).sum(axis=1)
        return found + self._log_weights

    def _own(self, X, j):
        """Return the log density of values of relevant features: Student or normal."""
        about = (X - self._center[j]) ** 2 / self._scale[j]
        if self._degrees is None:
            return self._constant[j] - 0.5 * about
        halves = 0.5 * (self._degrees[j] + 1)
        return self._constant[j] - halves * np.log1p(about / self._degrees[j])
