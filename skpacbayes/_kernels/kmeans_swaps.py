"""k-means by swap moves: a point replaces a centre if the inertia falls.

The columns of arrays are those of `kmeans.py`.
"""

import math

import numpy as np

from . import allocating, kernel
from .kmeans import draw_centers, draw_index, losses_at, remember, total_of


class TwoNearest:
    """Centres, and the two of them nearest to each point: the state of swap moves.

    The loss is the squared Euclidean distance.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_points)
        The points, as columns.
    weights : ndarray of shape (n_points,)
        Their weights.
    n_clusters : int
        Number of centres.

    Attributes
    ----------
    centers : ndarray of shape (n_features, n_clusters)
        The centres, as columns.
    labels : ndarray of shape (n_points,)
        Nearest centre of each point.
    losses : ndarray of shape (n_points,)
        Squared distance of each point to that centre, not weighted.
    """

    def __init__(self, columns, weights, n_clusters):
        n_features, n_points = columns.shape
        self.columns, self.weights = columns, weights
        self.centers = np.empty((n_features, n_clusters))
        self.labels, self._second = np.zeros((2, n_points), dtype=np.int64)
        self.losses, self._second_losses = np.empty((2, n_points))
        # All distances, if they take no more memory than the points.
        few = n_clusters <= n_features
        self._memory = np.empty((n_clusters, n_points) if few else (0, 0))

    @property
    def _nearest(self):
        return self._memory, self.labels, self._second, self.losses, self._second_losses

    def draw_centers(self, uniforms):
        """Draw points as centres by D^2 seeding; `uniforms` (n_clusters,) in [0, 1)."""
        drawn = np.empty(len(uniforms), dtype=np.int64)
        draw_centers(
            self.columns,
            self.weights,
            uniforms,
            drawn,
            self.losses,
            np.empty(len(self.losses)),
            self.labels,
            self._second,
            self._second_losses,
            self._memory,
        )
        self.centers[:] = self.columns[:, drawn]

    def place_centers(self, centers):
        """Set the centres to those given, (n_clusters, n_features)."""
        self.centers[:] = centers.T
        find_nearest(self.columns, self.centers, *self._nearest)

    def swap_moves(self, uniforms):
        """Make one swap move for each of `uniforms`; return how many were accepted."""
        if self.centers.shape[1] == 1:  # no second centre to take over the points
            return 0
        return swap_moves(
            self.columns, self.weights, uniforms, self.centers, *self._nearest
        )


@kernel
def _insert(i, j, square, first, second, near, next_near):
    """Update the two nearest centres of point i by centre j at this distance."""
    if square < near[i]:
        second[i] = first[i]
        next_near[i] = near[i]
        first[i] = j
        near[i] = square
    elif square < next_near[i]:
        second[i] = j
        next_near[i] = square


@kernel
def _find_two(i, squares, first, second, near, next_near):
    """Find the two nearest centres of point i, given squared distances to all."""
    best = 0
    next_best = 0
    least = math.inf
    next_least = math.inf
    for j in range(squares.shape[0]):
        square = squares[j]
        if square < next_least:
            if square < least:
                next_best = best
                next_least = least
                best = j
                least = square
            else:
                next_best = j
                next_least = square
    first[i] = best
    second[i] = next_best
    near[i] = least
    next_near[i] = next_least


@allocating
def find_nearest(columns, centers, memory, first, second, near, next_near):
    """Find the two nearest of `centers` (n_features, n_clusters) for each point.

    Fills `first` and `second` (n_points,), the numbers of the two nearest centres;
    `near` and `next_near` (n_points,), the squared distances to them; and `memory`
    (n_clusters, n_points), the squared distances to all centres, unless its shape is
    (0, 0): then `swap_moves` computes them again where it needs them.
    """
    squares = np.empty(centers.shape[1])
    for i in range(columns.shape[1]):
        losses_at(centers, columns, i, squares)
        _find_two(i, squares, first, second, near, next_near)
        if memory.shape[0] > 0:
            for j in range(centers.shape[1]):
                memory[j, i] = squares[j]


@allocating
def swap_moves(
    columns, weights, uniforms, centers, memory, first, second, near, next_near
):
    """Replace one centre by a point, once for each of `uniforms`, if inertia falls.

    The point is drawn in proportion to weight times `near`; the centre that leaves is
    the one whose loss raises the inertia least (local search k-means++ of Lattanzi and
    Sohler, 2019). Updates the arrays of `find_nearest`; returns the number of moves
    accepted.
    """
    n_features, n_points = columns.shape
    n_clusters = centers.shape[1]
    without = np.empty(n_clusters)  # by how much inertia rises without each centre
    price = np.empty(n_clusters)
    squares = np.empty(n_points)
    closer = np.empty(n_points, dtype=np.int64)  # points nearer to it than to `second`
    to_centers = np.empty(n_clusters)
    n_accepted = 0
    total = 0.0
    changed = True
    for move in range(uniforms.shape[0]):
        if changed:
            total = total_of(weights, near)
            for j in range(n_clusters):
                without[j] = 0.0
            for i in range(n_points):
                without[first[i]] += weights[i] * (next_near[i] - near[i])
            changed = False
        if not total > 0.0:
            break
        drawn = draw_index(weights, near, total, uniforms[move])
        losses_at(columns, columns, drawn, squares)
        for j in range(n_clusters):
            price[j] = without[j]
        gain = 0.0
        n_closer = 0
        for i in range(n_points):  # without a branch that would be mispredicted
            closer[n_closer] = i
            n_closer += squares[i] < next_near[i]
        for rank in range(n_closer):
            i = closer[rank]
            gain += weights[i] * (near[i] - min(squares[i], near[i]))
            price[first[i]] -= weights[i] * (next_near[i] - max(squares[i], near[i]))
        leaving = 0
        for j in range(1, n_clusters):
            if price[j] < price[leaving]:
                leaving = j
        if not price[leaving] < gain:
            continue
        changed = True
        n_accepted += 1
        for f in range(n_features):
            centers[f, leaving] = columns[f, drawn]
        remember(leaving, squares, memory)
        for i in range(n_points):
            if first[i] == leaving or second[i] == leaving:
                if memory.shape[0] > 0:
                    for j in range(n_clusters):
                        to_centers[j] = memory[j, i]
                else:
                    losses_at(centers, columns, i, to_centers)
                _find_two(i, to_centers, first, second, near, next_near)
            elif squares[i] < next_near[i]:
                _insert(i, leaving, squares[i], first, second, near, next_near)
    return n_accepted
