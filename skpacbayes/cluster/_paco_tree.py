"""Ward's tree of mergers of points, from which the search for mixtures starts."""

import math

import numpy as np
from scipy.spatial.distance import cdist

from .._kernels import paco_tree as kernels
from ._paco_mixture import Mixture, completed_evidence


class Tree:
    """Ward's tree of mergers of points: a partition of every size.

    Parameters
    ----------
    problem : MixtureProblem
    shape : str
        Points are whitened for "tied", and scaled along the axes for "diagonal".
    columns : ndarray of int, default=None
        Columns that the distances use; None: all.
    """

    def __init__(self, problem, shape, columns=None):
        self.problem, self.shape = problem, shape
        self.coordinates = problem.whitened(shape)
        self.variance = problem.variance_in(self.coordinates)
        self.points = problem.points @ self.coordinates
        self.columns = slice(None) if columns is None else columns
        seen = self.points[:, self.columns]
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
        costs = costs[order]
        self.parents, self.entropies = _nodes(merges[order], problem.weights)
        scatter = self.coordinates.T @ problem.scatter @ self.coordinates
        within = np.diag(scatter)[self.columns].sum()
        # Sums of squares, by number of clusters minus one.
        self.squares = within + np.append(0.0, np.cumsum(costs))[::-1]

    def labels(self, n_clusters):
        """Return the labels of the points in the partition of `n_clusters`."""
        n_points = len(self.points)
        n_nodes = 2 * n_points - n_clusters  # nodes that exist at that size
        tops = np.arange(n_nodes)
        inner = self.parents[:n_nodes] < n_nodes
        tops[inner] = self.parents[:n_nodes][inner]
        while (tops != tops[tops]).any():
            tops = tops[tops]
        _, first, clusters = np.unique(
            tops[:n_points], return_index=True, return_inverse=True
        )
        return np.argsort(np.argsort(first))[clusters]

    def n_clusters(self, most, others=None):
        """Return the number of clusters of largest evidence, at most `most`.

        Where points were drawn, and each stands for several rows, noise is cut into
        pieces; if each counts as one row, groups of few points are lost. Then the
        number is that of the two that describes `others`, a problem of points drawn
        beside these, better.
        """
        found = self._n_clusters(most)
        if others is not None:
            numbers = {found, self._n_clusters(most, self.problem.row_weight)}
            found = max(sorted(numbers), key=lambda k: self._fit_of(others, k))
        return found

    def _n_clusters(self, most, row_weight=1.0):
        """Return the number of clusters of largest evidence if rows weigh less."""
        entropies = self.entropies[:most]
        n_rows, d, k = self.problem.n_rows, self.d, np.arange(1, most + 1)
        variances = np.maximum(self.squares[:most] / (n_rows * d), 1e-300)
        variances = np.maximum(variances, 1e-12 * self.variance)
        fits = entropies - n_rows * math.log(n_rows)
        fits -= n_rows * d / 2 * (np.log(2 * np.pi * variances) + 1)
        shares = entropies / n_rows - math.log(n_rows)
        fits, n_rows = fits / row_weight, n_rows / row_weight
        return 1 + int(
            np.argmax(completed_evidence(fits, shares, k, n_rows, d, 1, 1.0))
        )

    def _fit_of(self, others, n_clusters):
        """Return the log-likelihood of a row of `others` and its cluster."""
        mixture = self.mixture(n_clusters)
        points = (others.points @ self.coordinates)[:, self.columns]
        squares = cdist(points, mixture.centers[:, self.columns], "sqeuclidean")
        weights = others.weights / others.n_rows
        scale = max(weights @ squares.min(axis=1) / self.d, 1e-12 * self.variance)
        joint = (np.log(mixture.shares) - squares / (2 * scale)).max(axis=1)
        return weights @ joint - self.d / 2 * math.log(scale)

    def mixture(self, n_clusters):
        """Return round components of one variance, from the partition of that size."""
        n_clusters = min(n_clusters, len(self.points))
        problem, labels = self.problem, self.labels(n_clusters)
        masses = np.bincount(labels, problem.weights, minlength=n_clusters)
        centers = np.empty((n_clusters, problem.d))
        for f in range(problem.d):
            moments = np.bincount(labels, problem.weights * self.points[:, f])
            centers[:, f] = moments / masses
        squares = self.squares[n_clusters - 1]
        if self.d < problem.d:  # of all columns
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


def _nodes(merges, masses):
    """Return the parents of a tree's nodes, and the entropies of its partitions.

    `merges` (n_points - 1, 2): a point of each of the clusters that merge. The nodes
    are the points, then the mergers in order. `parents` (2 n_points - 1,): the parent
    of each node; the root is its own. `entropies` (n_points,): the sum of m log m over
    the clusters' masses m, by number of clusters minus one.
    """
    n_points = len(masses)
    parents = np.arange(2 * n_points - 1)
    tops = parents.tolist()  # an ancestor of each node, for most of them the root
    sizes = np.append(masses, np.zeros(n_points - 1))

    def top_of(node):
        while tops[node] != node:
            tops[node] = tops[tops[node]]
            node = tops[node]
        return node

    children = np.empty((n_points - 1, 2), dtype=np.int64)
    for node, merged in enumerate(merges.tolist(), n_points):
        both = [top_of(point) for point in merged]
        tops[both[0]] = tops[both[1]] = node
        children[node - n_points] = both
        sizes[node] = sizes[both[0]] + sizes[both[1]]
    parents[children] = np.arange(n_points, len(parents))[:, None]
    terms = sizes * np.log(sizes)
    gains = terms[n_points:] - terms[children].sum(axis=1)
    entropies = np.cumsum(np.append(terms[:n_points].sum(), gains))[::-1]
    return parents, entropies
