"""Weighted rows, or the means of merged rows."""

from dataclasses import dataclass, replace

import numpy as np

from ._units import scaled


@dataclass(frozen=True)
class Rows:
    """Weighted points: rows, or the means of merged rows.

    `points` (n_points, n_features), `weights`, `spreads` (mean squared distance of the
    merged rows from their mean), `forecasts` (n_points, 3) (sums of lambda, lambda h,
    lambda h^2), `steps` and `step_weights` (losses between consecutive rows that fell
    in one cluster, summed, and how many there are). `scatter` (n_features, n_features):
    sum over all merged rows of the outer products of their differences from their mean.
    """

    points: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    forecasts: np.ndarray
    steps: np.ndarray
    step_weights: np.ndarray
    scatter: np.ndarray

    @classmethod
    def single(cls, points, weights):
        """Return rows that have not been merged and had no forecast."""
        n_points, d = points.shape
        zeros = np.zeros(n_points)
        forecasts, scatter = np.zeros((n_points, 3)), np.zeros((d, d))
        return cls(points, weights, zeros, forecasts, zeros, zeros, scatter)

    @classmethod
    def distinct(cls, X, weights, most):
        """Return the distinct rows of positive weight, sorted; at most `most` of them.

        A subset is drawn with a fixed seed, and weighted up to the total weight.
        """
        points, where = np.unique(X[weights > 0], axis=0, return_inverse=True)
        merged = np.bincount(where.ravel(), weights[weights > 0])
        if len(points) > most:
            drawn = np.random.default_rng(0).permutation(len(points))[:most]
            drawn.sort()
            share = merged[drawn].sum() / merged.sum()
            points, merged = points[drawn], merged[drawn] / share
        return cls.single(np.ascontiguousarray(points), merged)

    @property
    def mean(self):
        """Weighted mean of the rows."""
        return self.weights @ self.points / self.weights.sum()

    def about(self, offset, exponent, power):
        """Return rows minus `offset`, in units of 2^exponent; losses in unit^power."""
        loss = -power * exponent
        return replace(
            self,
            points=scaled(self.points - offset, -exponent),
            spreads=scaled(self.spreads, -2 * exponent),
            forecasts=scaled(self.forecasts, np.array([-loss, 0, loss])),
            steps=scaled(self.steps, loss),
            scatter=scaled(self.scatter, -2 * exponent),
        )
