"""What fitted centres say of rows."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from ._units import scaled

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
        """Distances to the centres."""
        return distances_to(X, self.cluster_centers_, self._manhattan)


def distances_to(X, centers, manhattan, coordinates=None):
    """Distances of rows to centres, each row in a unit fit for squares.

    `coordinates` (n_features, n_features) maps rows to where distances are taken.
    """
    center = centers.mean(axis=0)
    X, centers = X - center, centers - center
    if coordinates is not None:
        X, centers = X @ coordinates, centers @ coordinates
    metric = "cityblock" if manhattan else "euclidean"
    largest = np.maximum(np.abs(X).max(axis=1), np.abs(centers).max())
    units = _UNIT_STEP * np.round(np.frexp(largest)[1] / _UNIT_STEP).astype(int)
    distances = np.empty((len(X), len(centers)))
    for unit in np.unique(units):
        rows = units == unit
        own = cdist(scaled(X[rows], -unit), scaled(centers, -unit), metric)
        distances[rows] = scaled(own, unit)
    return distances
