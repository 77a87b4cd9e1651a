"""Ward's tree of merges of points: where the search for mixtures begins."""

import math

import numpy as np

from .._kernels import paco_tree as kernels
from ._paco_mixture import Mixture, completed_evidence


class Tree:
    """Ward's tree of merges of points: a round partition of every size.

    Parameters
    ----------
    problem : MixtureProblem
    shape : str
        Points are as wide in all directions (of the axes) for "tied" ("diagonal").
    columns : ndarray of int, default=None
        The columns, all by default, in whose coordinates the partitions are round.
    """

    def __init__(self, problem, shape, columns=None):
        self.problem, self.shape = problem, shape
        self.coordinates = problem.whitened(shape)
        self.variance = problem.variance_in(self.coordinates)
        self.points = problem.points @ self.coordinates
        seen = self.points if columns is None else self.points[:, columns]
        self.d, n_points = seen.shape[1], len(seen)
        merges = np.empty((max(n_points - 1, 0), 2), dtype=np.int64)
        costs = np.empty(len(merges))
        kernels.ward(
            np.array(seen.T, order="C"),
            problem.weights.copy(),
            merges,
            costs,
            np.empty(n_points),
            np.empty(n_points + 1, dtype=np.int64),
        )
        order = np.argsort(costs, kind="stable")
        self.merges, costs = merges[order], costs[order]
        scatter = self.coordinates.T @ problem.scatter @ self.coordinates
        within = np.diag(scatter)[slice(None) if columns is None else columns].sum()
        # Sums of squares, by number of clusters less one.
        self.squares = within + np.append(0.0, np.cumsum(costs))[::-1]

    def _cut(self, n_clusters):
        labels = np.empty(len(self.points), dtype=np.int64)
        entropies = np.empty(len(self.points))
        weights = self.problem.weights
        kernels.cut_tree(self.merges, weights, n_clusters, labels, entropies)
        return labels, entropies

    def n_clusters(self, most):
        """Return the number of clusters of largest evidence, at most `most`."""
        entropies = self._cut(1)[1][:most]
        n_rows, d, k = self.problem.n_rows, self.d, np.arange(1, most + 1)
        variances = np.maximum(self.squares[:most] / (n_rows * d), 1e-300)
        variances = np.maximum(variances, 1e-12 * self.variance)
        fits = entropies - n_rows * math.log(n_rows)
        fits -= n_rows * d / 2 * (np.log(2 * np.pi * variances) + 1)
        shares = entropies / n_rows - math.log(n_rows)
        return 1 + int(
            np.argmax(completed_evidence(fits, shares, k, n_rows, d, 1, 1.0))
        )

    def mixture(self, n_clusters):
        """Round components of one variance, from the partition of that size."""
        n_clusters = min(n_clusters, len(self.points))
        problem, labels = self.problem, self._cut(n_clusters)[0]
        masses = np.bincount(labels, problem.weights, minlength=n_clusters)
        centers = np.empty((n_clusters, problem.d))
        for f in range(problem.d):
            moments = np.bincount(labels, problem.weights * self.points[:, f])
            centers[:, f] = moments / masses
        squares = self.squares[n_clusters - 1]
        if self.d < problem.d:  # those of all columns
            gaps = self.points - centers[labels]
            squares = problem.weights @ (gaps**2).sum(axis=1)
            squares += problem.scatter_in(self.coordinates)
        scale = squares / (problem.n_rows * problem.d)
        scale = max(scale, 1e-12 * self.variance)
        return Mixture(
            self.shape,
            False,
            math.inf,
            self.coordinates,
            centers,
            np.full(n_clusters, scale),
            masses / problem.n_rows,
            masses,
        )
