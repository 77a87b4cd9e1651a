"""A Markov chain on partitions whose clusters choose their features."""

import numpy as np
from scipy.special import gammaln
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin_min

from .._kernels import subspace as kernels

# Prior of the background of a feature of unit variance: its mean has the weight of one
# row, its variance an inverse gamma law of this shape and scale.
BACKGROUND_SHAPE, BACKGROUND_SCALE = 2.0, 1.0
# Inverse gamma prior of the factor of the variance of shifts (variance="shared").
FACTOR_SHAPE, FACTOR_SCALE = 2.0, 10.0
# Boxes tried for each cluster of the start, how many of them grow, for how long.
_N_BOXES, _N_GROWN, _N_SWEEPS = 500, 10, 20
# Draws of centres, for the start from them.
_N_DRAWS = 10


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
        Of the Dirichlet prior of the weights, for each cluster.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, X, n_clusters, shared, concentration, rng):
        self.X, self.shared = X, shared
        self.concentration, self.rng = concentration, rng
        n_samples, n_features = X.shape
        self.mean, self.variance = np.zeros(n_features), np.ones(n_features)
        self.probability = 0.3  # of a feature to be relevant, until it is drawn
        self.factor = FACTOR_SCALE / FACTOR_SHAPE
        self.labels = np.zeros(n_samples, dtype=np.int64)
        self.chances = np.empty((n_samples, n_clusters))
        self._n_clusters = n_clusters
        n_rows = np.arange(n_samples + 1)
        self._own_table = (
            0.5 * np.log(kernels.PRIOR_COUNT / (kernels.PRIOR_COUNT + n_rows))
            + kernels.PRIOR_SHAPE * np.log(kernels.PRIOR_SCALE)
            + gammaln(kernels.PRIOR_SHAPE + 0.5 * n_rows)
            - gammaln(kernels.PRIOR_SHAPE)
        )

    def start(self, from_centers):
        """Choose the first labels."""
        if from_centers and self.X.size:
            self._start_from_centers()
        else:
            self._start_in_boxes()

    def _start_from_centers(self):
        """Label rows by the nearest of centres, the best of several draws."""
        least = np.inf
        for seed in self.rng.integers(2**31 - 1, size=_N_DRAWS):
            drawn, _ = kmeans_plusplus(self.X, self._n_clusters, random_state=int(seed))
            labels, distances = pairwise_distances_argmin_min(self.X, drawn)
            inertia = distances @ distances
            if inertia < least:
                least = inertia
                self.labels[:] = labels

    def _start_in_boxes(self):
        """Give each cluster in turn the best group that a random box leads to.

        A box that is narrow in a few features finds a group that all features together
        hide. A row that joins pays log(n_clusters), the price of a label.
        """
        n_samples = len(self.X)
        free = np.arange(n_samples)
        price = np.log(self._n_clusters)
        self.labels[:] = self._n_clusters - 1
        for j in range(self._n_clusters - 1):
            if len(free) < 3:
                break
            triples = self.rng.integers(len(free), size=(_N_BOXES, 3))
            triples[::2, 2] = triples[::2, 1]  # half the boxes from two rows
            widths = np.exp(self.rng.uniform(np.log(0.1), 0.0, _N_BOXES))
            boxes = np.zeros((_N_BOXES, n_samples), dtype=np.bool_)
            bounded = np.empty(self.X.shape[1], dtype=np.int64)
            kernels.fill_boxes(self.X, free, free[triples], widths, bounded, boxes)
            counts, _, _, known = self._described(boxes)
            best = np.argsort(price * counts - known)[:_N_GROWN]
            groups = boxes[best]
            described = self._described(groups)
            kernels.grow(
                self.X, free, _N_SWEEPS, price, *self._model(), groups, *described
            )
            counts, _, _, known = described
            chosen = groups[np.argmin(price * counts - known)]
            self.labels[chosen] = j
            free = free[~chosen[free]]

    def _described(self, groups):
        """Compute counts, sums, sums of squares and summed gains of groups of rows."""
        own = groups.astype(np.float64)
        statistics = groups.sum(axis=1), own @ self.X, own @ self.X**2
        return *statistics, self._gains(statistics).sum(axis=1)

    def sweep(self):
        """Draw everything once, each given the rest."""
        n_samples = len(self.X)
        statistics, model = self.statistics(), self._model()
        kernels.sweep(
            self.X,
            self.rng.permutation(n_samples),
            self.rng.random(n_samples),
            self.concentration,
            model[0],
            self.labels,
            *statistics,
            *model[1:],
            self._gains(statistics).sum(axis=1),
            np.empty(self._n_clusters),
            self.chances,
        )
        counts, sums, squares = self.statistics()  # without the sweep's roundings
        relevant = self.rng.random(sums.shape) < self.relevance()
        if self.shared:
            self._draw_shared_background(relevant, counts, sums)
        else:
            self._draw_own_background(relevant, counts, sums, squares)
        n_relevant = relevant.sum()
        self.probability = self.rng.beta(1 + n_relevant, 1 + relevant.size - n_relevant)

    def statistics(self):
        """Count rows, sum them and their squares, for each cluster."""
        one_hot = np.zeros((self._n_clusters, len(self.X)))
        one_hot[self.labels, np.arange(len(self.X))] = 1.0
        counts = np.bincount(self.labels, minlength=self._n_clusters)
        return counts, one_hot @ self.X, one_hot @ self.X**2

    def relevance(self):
        """Probability that each feature is relevant to each cluster."""
        gains = self._gains(self.statistics())
        return 1 - (1 - self.probability) * np.exp(-gains)

    def log_joint(self):
        """Log density of the rows and labels, given background, theta and eta."""
        statistics = self.statistics()
        deviations = (self.X - self.mean) ** 2 / self.variance
        rows = -0.5 * (deviations + np.log(2 * np.pi * self.variance)).sum()
        weights = gammaln(statistics[0] + self.concentration).sum()
        return self._gains(statistics).sum() + rows + weights

    def _gains(self, statistics):
        """Log evidence of each feature of each cluster over the background."""
        model, found = self._model(), np.empty(statistics[1].shape)
        kernels.gains(model[0], *statistics, *model[1:], found)
        return found

    def _draw_own_background(self, relevant, counts, sums, squares):
        """Draw mean and variance of each feature from rows to which it says nothing."""
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
        # The quadratic form at its minimum over the mean, one of the means at 0.
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

    def _model(self):
        """Arguments of the kernels that describe the model."""
        background = np.array([self.mean, self.variance, np.log(self.variance)])
        probability = np.clip(self.probability, 1e-300, 1 - 1e-16)
        numbers = np.array([np.log1p(-probability), np.log(probability), self.factor])
        table = self._own_table
        if self.shared:
            table = -0.5 * np.log1p(self.factor * np.arange(len(self.X) + 1))
        return self.shared, background, numbers, table
