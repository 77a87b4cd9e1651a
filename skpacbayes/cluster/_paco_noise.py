"""The noise of the clusters: distances, densities and tail probabilities."""

import math
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc, fdtri

from .._kernels import paco_noise as kernels
from .._validation import writeable
from ._paco_mixture import log_components
from ._paco_path import log_normaliser
from ._units import CenterDistances


class ClusterNoise:
    """Noise about the centres, in coordinates in which all clusters are round.

    The constants are computed once. The results for a row are the same, bit for bit,
    alone and among other rows.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        In the units of the data.
    scales, shares : ndarray of shape (n_clusters,)
        Noise scale and share of the rows, of each cluster.
    scale : float
        The noise scale of all rows.
    coordinates : ndarray of shape (n_features, n_features) or None
        Map from the features to these coordinates; None: they are the same.
    dof : float
        Degrees of freedom of the tails; infinity for normal noise.
    manhattan : bool
        The distance: Manhattan, else Euclidean.
    background, log_uniform : float, default=0.0 and minus infinity
        Share of the rows that belong to no cluster, and their log density.
    """

    def __init__(
        self,
        centers,
        scales,
        shares,
        scale,
        coordinates,
        dof,
        manhattan,
        background=0.0,
        log_uniform=-math.inf,
    ):
        self.n_clusters, self.n_features = centers.shape
        self.scales, self.shares, self.scale = scales, shares, scale
        self.dof, self.manhattan = dof, manhattan
        # All clusters have one normal noise.
        self.background, self.log_uniform = background, log_uniform
        self.is_plain = math.isinf(dof) and np.ptp(scales) == 0
        self.origin = centers.mean(axis=0)
        self.coordinates = coordinates
        self.centers = centers - self.origin
        if coordinates is not None:
            self.coordinates = np.ascontiguousarray(coordinates)
            self.centers = self.centers @ self.coordinates
        self._places = np.ascontiguousarray(self.centers.T)
        self._size = float(np.abs(self.centers).max())

    def distances(self, X):
        """Return the distances (n_rows, n_clusters) of rows to the centres."""
        distances = np.empty((len(X), self.n_clusters))
        n_refused = kernels.center_distances(
            writeable(X),
            self.origin,
            self.coordinates,
            self._places,
            self._size,
            self.manhattan,
            np.empty(self.n_features),
            distances,
        )
        for i in np.flatnonzero(distances[:, 0] < 0) if n_refused else ():
            row = X[i : i + 1] - self.origin
            if self.coordinates is not None:
                row = row @ self.coordinates
            distances[i] = self._in_units.to(row)
        return distances

    @cached_property
    def _in_units(self):
        """Distances that do not overflow for large rows."""
        metric = "cityblock" if self.manhattan else "euclidean"
        return CenterDistances(self.centers, metric)

    def likeliest(self, X):
        """Return the cluster of largest noise density at each row."""
        distances = self.distances(X)
        if self.is_plain:
            return distances.argmin(axis=1)
        return self._log_densities(distances, self._log_heights).argmax(axis=1)

    def log_joint(self, X):
        """Return the log of share times density of each cluster at the rows."""
        with np.errstate(divide="ignore"):
            heights = self._log_heights + np.log(self.shares)
        return self._log_densities(self.distances(X), heights)

    def probabilities(self, X):
        """Return the probabilities (n_rows, n_clusters) of the clusters for rows."""
        heights = self.log_joint(X)
        kernels.add_up(heights, np.empty(len(X)))
        return heights

    def log_density(self, X):
        """Return the log density of rows.

        This is the normalised quasi-likelihood if all clusters have one normal noise,
        and otherwise the density of the mixture.
        """
        if not self.is_plain:
            log_densities = np.empty(len(X))
            kernels.add_up(self.log_joint(X), log_densities)
            return self._before_background(log_densities)
        distances = self.distances(X)
        nearest = distances.argmin(axis=1)
        with np.errstate(over="ignore", under="ignore"):
            ratios = distances[np.arange(len(distances)), nearest] / self.scale
            losses = ratios if self.manhattan else 0.5 * ratios**2
        return self._before_background(self._log_quasi_shares[nearest] - losses)

    def _before_background(self, log_densities):
        """Add the density of the background."""
        if self.background == 0.0:
            return log_densities
        log_densities = log_densities + math.log1p(-self.background)
        return np.logaddexp(log_densities, math.log(self.background) + self.log_uniform)

    @cached_property
    def _log_quasi_shares(self):
        """Log of the share of each cluster, times their number, over Z."""
        weights = self.n_clusters * self.shares
        log_z = log_normaliser(self.centers, self.scale, weights, self.manhattan)
        return np.log(weights) - log_z

    def _log_densities(self, distances, heights):
        """Return log densities at distances, given log densities at the centres."""
        kernels.log_densities(
            distances,
            heights,
            self.scales,
            self.n_features,
            self.dof,
            self.manhattan,
        )
        return distances

    @cached_property
    def _log_heights(self):
        """Log densities of the clusters' noise at their centres."""
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            if self.manhattan:
                return -self.n_features * np.log(2 * self.scales)
            volumes = self.n_features * np.log(self.scales)
        return log_components(0.0, 1.0, self.dof, self.n_features) - volumes

    def tails(self, X):
        """Return the probability that a row of the cluster is at least as far away."""
        distances, d = self.distances(X), self.n_features
        with np.errstate(over="ignore"):
            squares = (distances / self.scales) ** 2
        if self.manhattan:
            squares = squares / d
        if math.isinf(self.dof):
            return chdtrc(d, squares).max(axis=1)
        return fdtrc(d, self.dof, squares / d).max(axis=1)

    def inertia(self, points, weights):
        """Return the sum of the losses of weighted points at their nearest centre."""
        distances = self.distances(points).min(axis=1)
        with np.errstate(over="ignore"):
            losses = distances if self.manhattan else distances**2
            return float(weights @ losses)


def squared_radius(share, n_features, dof):
    """Return the squared distance, over the scale, exceeded by a share of rows."""
    if math.isinf(dof):
        return chdtri(n_features, share)
    return n_features * fdtri(n_features, dof, 1 - share)
