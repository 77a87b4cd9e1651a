"""The noise of the clusters: distances, densities and tails of rows."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2
from scipy.stats import f as fisher

from ._paco_mixture import log_components
from ._paco_path import log_normaliser
from ._units import CenterDistances


@dataclass(frozen=True)
class ClusterNoise:
    """Noise about the centres, in coordinates in which all clusters are round.

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
    """

    centers: np.ndarray
    scales: np.ndarray
    shares: np.ndarray
    scale: float
    coordinates: np.ndarray | None
    dof: float
    manhattan: bool

    @property
    def is_plain(self):
        """Whether one normal noise describes all clusters."""
        return math.isinf(self.dof) and np.ptp(self.scales) == 0

    def distances(self, X):
        """Distances (n_rows, n_clusters) of rows to the centres."""
        centers = self.centers
        if self.coordinates is not None:
            middle = centers.mean(axis=0)
            X = (X - middle) @ self.coordinates
            centers = (centers - middle) @ self.coordinates
        metric = "cityblock" if self.manhattan else "euclidean"
        return CenterDistances(centers, metric).to(X)

    def likeliest(self, X):
        """Return the cluster whose noise makes each row likeliest."""
        distances = self.distances(X)
        if self.is_plain:
            return distances.argmin(axis=1)
        return self._log_noise(distances).argmax(axis=1)

    def log_joint(self, X):
        """Log of share and density of each cluster at the rows."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.shares)
        return log_shares + self._log_noise(self.distances(X))

    def log_density(self, X):
        """Log density of rows: the normalised quasi-likelihood, or of the mixture.

        The former where one normal noise describes all clusters.
        """
        if not self.is_plain:
            return logsumexp(self.log_joint(X), axis=1)
        distances = self.distances(X)
        nearest = distances.argmin(axis=1)
        weights = len(self.shares) * self.shares
        with np.errstate(over="ignore", under="ignore"):
            ratios = distances[np.arange(len(distances)), nearest] / self.scale
            losses = ratios if self.manhattan else 0.5 * ratios**2
        centers = self.centers
        if self.coordinates is not None:
            centers = centers @ self.coordinates
        log_z = log_normaliser(centers, self.scale, weights, self.manhattan)
        return np.log(weights)[nearest] - losses - log_z

    def tails(self, X):
        """Probability of a row of its cluster that is as far away, or farther."""
        distances, d = self.distances(X), self.centers.shape[1]
        with np.errstate(over="ignore"):
            squares = (distances / self.scales) ** 2
        if self.manhattan:
            squares = squares / d
        if math.isinf(self.dof):
            return chi2.sf(squares, d).max(axis=1)
        return fisher.sf(squares / d, d, self.dof).max(axis=1)

    def inertia(self, points, weights):
        """Sum of the losses of weighted points at their nearest centre."""
        distances = self.distances(points).min(axis=1)
        with np.errstate(over="ignore"):
            losses = distances if self.manhattan else distances**2
            return float(weights @ losses)

    def _log_noise(self, distances):
        """Log density of each cluster's noise at rows at these distances."""
        scales, d = self.scales, self.centers.shape[1]
        with np.errstate(over="ignore", under="ignore"):
            ratios = distances / scales
            if self.manhattan:
                return -ratios - d * np.log(2 * scales)
            return log_components(ratios**2, 1.0, self.dof, d) - d * np.log(scales)
