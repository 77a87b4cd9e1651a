"""Units in which squares do not overflow, and distances of rows to centres."""

import math

import numpy as np
from scipy.spatial.distance import cdist

# Rows whose sizes differ by less than a factor of 2^256 share a unit.
_UNIT_STEP = 256


def exponent_of(values):
    """Return the exponent of the power of two above the largest value; 0 if zero."""
    largest = np.abs(values).max(initial=0.0)
    return min(max(math.frexp(largest)[1], -1000), 1000) if largest > 0 else 0


def scaled(value, exponent):
    """Return `value` times 2^`exponent`, which may overflow to infinity or 0."""
    if isinstance(exponent, int) and -500 < exponent < 500:
        return value * 2.0**exponent  # exact, and faster than ldexp
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(value, exponent)


class Scaled:
    """Base class of objects that keep lengths in units of 2^`exponent`.

    power : of the lengths in a value; 2 for squares.
    """

    def into(self, value, power=1):
        """Convert from data units to internal units."""
        return scaled(value, -power * self.exponent)

    def out(self, value, power=1):
        """Convert from internal units to data units."""
        return scaled(value, power * self.exponent)


class CenterDistances:
    """Distances of rows to centres, computed without overflow.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        The centers.
    metric : {"euclidean", "cityblock"}
        The distance.
    """

    def __init__(self, centers, metric="euclidean"):
        self.centers, self._metric = centers, metric
        self._middle = centers.mean(axis=0)
        self._about_middle = centers - self._middle
        self._largest = np.abs(self._about_middle).max()

    def to(self, X):
        """Return the distances of the rows of X, of shape (n_samples, n_clusters)."""
        X = X - self._middle
        low, high = 2.0 ** -(_UNIT_STEP // 2 - 1), 2.0 ** (_UNIT_STEP // 2 - 1)
        if low < self._largest and max(X.max(), -X.min(), self._largest) < high:
            return cdist(X, self._about_middle, self._metric)
        largest = np.maximum(np.abs(X).max(axis=1), self._largest)
        units = _UNIT_STEP * np.round(np.frexp(largest)[1] / _UNIT_STEP).astype(int)
        distances = np.empty((len(X), len(self.centers)))
        for unit in np.unique(units):
            rows, centers = units == unit, scaled(self._about_middle, -unit)
            own = cdist(scaled(X[rows], -unit), centers, self._metric)
            distances[rows] = scaled(own, unit)
        return distances
