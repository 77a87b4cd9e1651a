"""Tuples of k-means centres as particles: weighted by batches, moved by swaps."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from .._kernels.kmeans_swaps import TwoNearest
from ._units import exponent_of, scaled

_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, np.finfo(np.float64).max
# Largest number of distances in memory at a time.
_BLOCK = 2**21


class CenterTuple:
    """One tuple of centres, and the losses of each row at its two nearest.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    n_clusters : int
        Number of centres.
    """

    def __init__(self, X, n_clusters):
        # In units of 2^exponent squares do not overflow.
        self._exponent = exponent_of([X.max(), X.min()])
        columns = np.ascontiguousarray(scaled(X.T, -self._exponent))
        self._state = TwoNearest(columns, np.ones(len(X)), n_clusters)

    @classmethod
    def drawn(cls, X, n_clusters, rng):
        """Draw rows one by one in proportion to the squared distance (D^2)."""
        new = cls(X, n_clusters)
        new._state.draw_centers(rng.random(n_clusters))
        return new

    @classmethod
    def at(cls, X, centers):
        """Use given centres."""
        new = cls(X, len(centers))
        new._state.place_centers(scaled(centers, -new._exponent))
        return new

    def swap(self, n_moves, rng):
        """Make swap moves; return how many were accepted."""
        return self._state.swap_moves(rng.random(n_moves))

    @property
    def centers(self):
        """The centres, of shape (n_clusters, n_features)."""
        return np.ascontiguousarray(scaled(self._state.centers.T, self._exponent))

    @property
    def labels(self):
        """Nearest centre of each row."""
        return self._state.labels

    @property
    def inertia(self):
        """Sum of the squared distances of the rows to their nearest centre."""
        return float(scaled(self._state.losses.sum(), 2 * self._exponent))


def propose(X, n_clusters, n_particles, proposal, rng):
    """Draw tuples of centres, of shape (n_particles, n_clusters, n_features).

    "d2": rows drawn in proportion to the squared distance; "data": rows drawn
    uniformly, without replacement; "sobol": points of a scrambled Sobol sequence in
    the box that the rows span.
    """
    if proposal == "d2":
        tuples = [CenterTuple.drawn(X, n_clusters, rng) for _ in range(n_particles)]
        return np.array([drawn.centers for drawn in tuples])
    if proposal == "data":
        rows = [
            np.sort(rng.choice(len(X), n_clusters, replace=False))
            for _ in range(n_particles)
        ]
        return X[np.array(rows)]
    # SciPy 1.14 has no parameter `rng`; later versions accept both names.
    sequence = qmc.Sobol(n_clusters * X.shape[1], seed=rng)
    points = sequence.random_base2(int(n_particles - 1).bit_length())[:n_particles]
    points = points.reshape(n_particles, n_clusters, X.shape[1])
    low, high = X.min(axis=0), X.max(axis=0)
    return points * high + (1 - points) * low


class Population:
    """Distinct tuples and how many particles each has: Algorithm 2's state.

    Parameters
    ----------
    tuples : ndarray of shape (n_particles, n_clusters, n_features)
        The particles.
    noise_variance : float or None
        Variance of a feature about its centre; None: integrated out.

    Notes
    -----
    The posterior of a tuple is that of k-means: its inertia `cost` on m rows of d
    features has the likelihood exp(-cost / (2 sigma^2)), or cost^(-m d / 2) with sigma
    integrated out under the prior d sigma / sigma.
    """

    def __init__(self, tuples, noise_variance=None):
        self.tuples, self.counts = np.unique(tuples, axis=0, return_counts=True)
        self.costs = np.zeros(len(self.tuples))
        self.n_values = 0
        self.noise_variance = noise_variance
        self._exponent = exponent_of(tuples)

    @property
    def collapsed(self):
        """Whether all particles are equal."""
        return len(self.tuples) == 1

    @property
    def best(self):
        """Return the most frequent tuple; in case of ties, that of lowest cost."""
        return self.tuples[np.lexsort((self.costs, -self.counts))[0]]

    def absorb(self, batch, rng):
        """Weight the particles by a batch, and resample them."""
        added = self._losses(batch)
        costs = np.clip(self.costs + added, _SMALLEST, _LARGEST)
        n_values = self.n_values + batch.size
        if self.noise_variance is None:
            log_weights = -0.5 * n_values * np.log(costs)
            if self.n_values:
                log_weights += 0.5 * self.n_values * np.log(self.costs)
        else:
            variance = scaled(self.noise_variance, -2 * self._exponent)
            variance = np.clip(variance, _SMALLEST, _LARGEST)
            with np.errstate(over="ignore"):
                halves = 0.5 * np.minimum(added, _LARGEST) / variance
            log_weights = -np.minimum(halves, _LARGEST)
        weights = self.counts * np.exp(log_weights - log_weights.max())
        counts = rng.multinomial(self.counts.sum(), weights / weights.sum())
        alive = counts > 0
        self.tuples, self.counts = self.tuples[alive], counts[alive]
        self.costs, self.n_values = costs[alive], n_values

    def _losses(self, batch):
        """Return the inertia of each tuple on the batch, in units of 4^exponent."""
        n_tuples, n_clusters, n_features = self.tuples.shape
        batch = scaled(batch, -self._exponent)
        centers = scaled(self.tuples, -self._exponent).reshape(-1, n_features)
        losses = np.zeros(n_tuples)
        for block in np.array_split(batch, 1 + batch.shape[0] * len(centers) // _BLOCK):
            squares = cdist(block, centers, "sqeuclidean")
            squares = squares.reshape(len(block), n_tuples, n_clusters)
            losses += squares.min(axis=2).sum(axis=0)
        return losses
