"""A Gibbs sampler of partitions and of the features relevant to their clusters."""

import numpy as np
from scipy.special import gammaln

from .._kernels import subspace as kernels

# Prior of the background of a feature of unit variance: the mean has the weight of one
# row, the variance an inverse gamma distribution with this shape and scale.
BACKGROUND_SHAPE, BACKGROUND_SCALE = 2.0, 1.0
# Inverse gamma prior of the factor of the variance of shifts (variance="shared").
FACTOR_SHAPE, FACTOR_SCALE = 2.0, 10.0


class Chain:
    """Gibbs sampler of labels, relevance, background and hyperparameters.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows in standard units.
    n_clusters : int
        Number of clusters.
    shared : bool
        Whether a relevant feature has the variance of the background.
    concentration : float
        Concentration of the Dirichlet prior of the weights, for each cluster.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, X, n_clusters, shared, concentration, rng):
        self.X, self.shared = X, shared
        self.concentration, self.rng = concentration, rng
        n_samples, n_features = X.shape
        self.mean, self.variance = np.zeros(n_features), np.ones(n_features)
        # Initial probability that a feature is relevant: few are, where there are many.
        self.probability = min(0.3, max(n_features, 1) ** -0.5)
        self.factor = FACTOR_SCALE / FACTOR_SHAPE
        self.labels = np.zeros(n_samples, dtype=np.int64)
        self._resize(n_clusters)
        # A row may join a cluster that has all rows: n_samples + 1 is needed, too.
        n_rows = np.arange(n_samples + 2)
        self._own_table = (
            0.5 * np.log(kernels.PRIOR_COUNT / (kernels.PRIOR_COUNT + n_rows))
            + kernels.PRIOR_SHAPE * np.log(kernels.PRIOR_SCALE)
            + gammaln(kernels.PRIOR_SHAPE + 0.5 * n_rows)
            - gammaln(kernels.PRIOR_SHAPE)
        )

    @property
    def n_clusters(self):
        """Number of clusters, including empty ones."""
        return len(self._clusters)

    def sweep(self):
        """Draw each block of variables once, given all others."""
        n_samples = len(self.X)
        self.find_gains()
        kernels.sweep(
            self.X,
            self.rng.permutation(n_samples),
            self.rng.random(n_samples),
            self.concentration,
            self.labels,
            self.chances,
            self._clusters.state(),
        )
        relevance = self.relevance(self.find_gains())
        counts, sums = self._clusters.counts, self._clusters.sums
        relevant = self.rng.random(sums.shape) < relevance
        if self.shared:
            self._draw_shared_background(relevant, counts, sums)
        else:
            self._draw_own_background(relevant, counts, sums, self._clusters.squares)
        n_relevant = relevant.sum()
        self.probability = self.rng.beta(1 + n_relevant, 1 + relevant.size - n_relevant)

    def find_gains(self):
        """Return the log density gained by each feature of each cluster."""
        own = self._clusters
        kernels.count_rows(self.X, self.labels, own.counts, own.sums, own.squares)
        return self.described(own).find_gains()

    def described(self, clusters):
        """Set the current model in clusters, and return them."""
        probability = np.clip(self.probability, 1e-300, 1 - 1e-16)
        log_odds = np.log1p(-probability), np.log(probability)
        factor, table = None, self._own_table
        if self.shared:
            factor = self.factor
            table = -0.5 * np.log1p(factor * np.arange(len(self.X) + 2))
        clusters.use(self.mean, self.variance, log_odds, factor, table)
        return clusters

    def relevance(self, gains):
        """Return the probability that each feature is relevant to each cluster."""
        return 1 - (1 - self.probability) * np.exp(-gains)

    def log_joint(self, gains):
        """Return the log density of rows and labels, given the other variables."""
        deviations = (self.X - self.mean) ** 2 / self.variance
        rows = -0.5 * (deviations + np.log(2 * np.pi * self.variance)).sum()
        weights = gammaln(self._clusters.counts + self.concentration).sum()
        return gains.sum() + rows + weights

    def begin_at(self, labels):
        """Take over the labels of a partition, without its empty clusters."""
        values, self.labels = np.unique(labels, return_inverse=True)
        self._resize(len(values))

    def part(self, rows):
        """Return a chain of two clusters of some rows; they are its background."""
        chain = Chain(self.X[rows], 2, self.shared, self.concentration, self.rng)
        chain.mean, chain.variance = chain.X.mean(axis=0), chain.X.var(axis=0) + 1e-9
        chain.probability, chain.factor = self.probability, self.factor
        return chain

    def merge_clusters(self, n_clusters=None):
        """Merge pairs of clusters; drop empty ones.

        The density is the joint density of rows and partition, with a uniform prior on
        the number of clusters. Each time the pair is merged that raises it most: until
        there are `n_clusters` (of which some are empty if there were fewer), or while
        one does. In the latter case no cluster of the chain is empty afterwards.
        """
        self.begin_at(self.labels)
        while self.n_clusters > (n_clusters or 1):
            self.find_gains()
            own, (first, second) = self._clusters, np.triu_indices(self.n_clusters, 1)
            merged = kernels.Clusters(len(first), self.X.shape[1])
            for name in ("counts", "sums", "squares"):
                values = getattr(own, name)
                getattr(merged, name)[:] = values[first] + values[second]
            self.described(merged).find_gains()
            change = merged.gains - own.gains[first] - own.gains[second]
            change += gammaln(merged.counts + self.concentration)
            change -= gammaln(own.counts + self.concentration)[[first, second]].sum(
                axis=0
            )
            change += self._log_number_prior(self.n_clusters - 1)
            change -= self._log_number_prior(self.n_clusters)
            best = change.argmax()
            if n_clusters is None and not change[best] > 0:
                break
            self.labels[self.labels == second[best]] = first[best]
            self.labels[self.labels > second[best]] -= 1
            self._resize(self.n_clusters - 1)
        self._resize(max(self.n_clusters, n_clusters or 1))

    def _log_number_prior(self, k):
        """Return the part of the log prior of a partition that depends on k alone."""
        total, n_samples = k * self.concentration, len(self.X)
        log_prior = gammaln(total) - gammaln(total + n_samples) + gammaln(k + 1)
        return log_prior - k * gammaln(self.concentration)

    def _resize(self, n_clusters):
        n_samples, n_features = self.X.shape
        self.chances = np.empty((n_samples, n_clusters))
        self._clusters = kernels.Clusters(n_clusters, n_features)

    def _draw_own_background(self, relevant, counts, sums, squares):
        """Draw mean and variance of features, from rows where they are not relevant."""
        counts = counts[:, None]
        n_rows = np.where(relevant, 0, counts).sum(axis=0)
        total = np.where(relevant, 0, sums).sum(axis=0)
        square = np.where(relevant, 0, squares).sum(axis=0)
        weight = 1 + n_rows
        center = total / weight
        scale = BACKGROUND_SCALE + 0.5 * (square - weight * center**2).clip(0)
        self._draw_normal(center, weight, BACKGROUND_SHAPE + 0.5 * n_rows, scale)

    def _draw_shared_background(self, relevant, counts, sums):
        """Draw mean and variance of each feature, shifts integrated out; then eta."""
        n_samples = len(self.X)
        discount = 1 + self.factor * relevant * counts[:, None]
        weight = 1 + (counts[:, None] / discount).sum(axis=0)
        center = (sums / discount).sum(axis=0) / weight
        # Minimum over the mean of the quadratic form, which includes the prior mean 0.
        residuals = sums - counts[:, None] * center
        square = ((self.X - center) ** 2).sum(axis=0)
        square -= (self.factor * relevant / discount * residuals**2).sum(axis=0)
        scale = BACKGROUND_SCALE + 0.5 * (square + center**2).clip(0)
        self._draw_normal(center, weight, BACKGROUND_SHAPE + 0.5 * n_samples, scale)
        residuals = sums - counts[:, None] * self.mean
        spread = self.factor / discount * self.variance
        shifts = self.factor * residuals / discount
        shifts += np.sqrt(spread) * self.rng.normal(size=sums.shape)
        shape = FACTOR_SHAPE + 0.5 * relevant.sum()
        total = (relevant * shifts**2 / self.variance).sum()
        self.factor = (FACTOR_SCALE + 0.5 * total) / self.rng.gamma(shape)

    def _draw_normal(self, center, weight, shape, scale):
        self.variance = scale / self.rng.gamma(shape)
        noise = np.sqrt(self.variance / weight) * self.rng.normal(size=len(center))
        self.mean = center + noise
