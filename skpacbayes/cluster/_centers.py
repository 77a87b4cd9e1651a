"""What fitted centres say of rows."""

import math

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from ._path import NoiseCells
from ._summary import exponent_of, scaled

# Rows that differ by less than 2^256 in size have a unit in common.
_UNIT_STEP = 256


class NearestCenterMixin(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin
):
    """Labels of rows by the nearest of `cluster_centers_`, and distances.

    Needs `_rows` of the package's base.
    """

    _manhattan = False

    def predict(self, X):
        """Label of the nearest centre to each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Numbers of the rows of `cluster_centers_`, or their `cluster_labels_` where
            there are such.
        """
        check_is_fitted(self)
        return self._nearest_labels(self._rows(X))

    def transform(self, X):
        """Distances of the rows to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, `n_clusters_`)
            Euclidean distances, or Manhattan distances if that is the loss.
        """
        check_is_fitted(self)
        return self._distances(self._rows(X))

    def __sklearn_is_fitted__(self):
        return "cluster_centers_" in vars(self)

    def _nearest_labels(self, X):
        return self._distances(X).argmin(axis=1)

    def _distances(self, X):
        """Distances to the centres, each row in a unit fit for squares."""
        centers = self.cluster_centers_
        center = centers.mean(axis=0)
        X, centers = X - center, centers - center
        metric = "cityblock" if self._manhattan else "euclidean"
        largest = np.maximum(np.abs(X).max(axis=1), np.abs(centers).max())
        units = _UNIT_STEP * np.round(np.frexp(largest)[1] / _UNIT_STEP).astype(int)
        distances = np.empty((len(X), len(centers)))
        for unit in np.unique(units):
            rows = units == unit
            own = cdist(scaled(X[rows], -unit), scaled(centers, -unit), metric)
            distances[rows] = scaled(own, unit)
        return distances


class QuasiLikelihoodMixin(NearestCenterMixin):
    """Log densities of rows about `cluster_centers_`, and names of the clusters.

    Needs `cluster_labels_`, `cluster_shares_`, `scale_` and `loss`.
    """

    def score_samples(self, X):
        """Log of the normalised quasi-likelihood of each row.

        w exp(-loss / u) / Z, where u is 2 `scale_`^2 (Manhattan loss: `scale_`), w the
        share of the nearest cluster (`cluster_shares_`), and Z makes it a density over
        rows: more centres always fit closer, yet also cut the noise about each other
        off, which Z counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log densities.
        """
        check_is_fitted(self)
        distances = self._distances(self._rows(X))
        nearest = distances.argmin(axis=1)
        weights = len(self.cluster_shares_) * self.cluster_shares_
        with np.errstate(over="ignore", under="ignore"):
            ratios = distances[np.arange(len(distances)), nearest] / self.scale_
            losses = ratios if self._manhattan else 0.5 * ratios**2
        return np.log(weights)[nearest] - losses - self._log_normaliser(weights)

    def score(self, X, y=None):
        """Mean of `score_samples`, for the choice of parameters by cross-validation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        score : float
            Mean log density.
        """
        return float(self.score_samples(X).mean())

    @property
    def _manhattan(self):
        return self.loss == "manhattan"

    def _nearest_labels(self, X):
        return self.cluster_labels_[super()._nearest_labels(X)]

    def _log_normaliser(self, weights):
        """Log of Z for the fitted centres and scale, in data units."""
        centers = self.cluster_centers_ - self.cluster_centers_.mean(axis=0)
        exponent = exponent_of(np.append(centers, self.scale_))
        scale = np.ldexp(self.scale_, -exponent)
        cells = NoiseCells(np.ldexp(centers, -exponent), self._manhattan, scale)
        log_z = cells.weighted_log_normaliser(scale, weights)
        return log_z + self.n_features_in_ * exponent * math.log(2)
