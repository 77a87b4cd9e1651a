"""k-means and k-medians on weighted points: D^2 seeding and Lloyd's algorithm.

This file and `kmeans_swaps.py` hold every k-means of the package. A family uses them
through two classes:

- `WeightedPoints`: points and weights, with `draw_centers` (D^2 seeding),
  `run_lloyd`, and the cells that the last run found (`labels`, `losses`).
- `TwoNearest` of `kmeans_swaps.py`: centres and the two centres nearest to each point,
  with `draw_centers`, `place_centers` and `swap_moves`.

For a single table, outside of a loop, `sklearn.cluster.KMeans` serves as well, and
takes sparse rows.

In the kernels, points are the columns of a C-contiguous array, `columns` (n_features,
n_points): a loop over columns has no reduction, so the compiler vectorises it.
"""

import math

import numpy as np

from . import allocating, kernel

# Just below a half: the lower of two medians, however the sums are rounded.
HALF = 0.5 * (1.0 - 1e-12)


class WeightedPoints:
    """Points to cluster by k-means, and the cells of the last run.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        The points.
    weights : ndarray of shape (n_points,) or None
        Their weights, not negative; None: ones.
    manhattan : bool, default=False
        Whether losses are Manhattan distances, and centres medians (k-medians); else
        squared Euclidean distances and means.

    Attributes
    ----------
    labels : ndarray of shape (n_points,)
        Nearest centre of each point, the first of several, after `run_lloyd`.
    losses : ndarray of shape (n_points,)
        Loss of each point at that centre, not weighted.
    """

    def __init__(self, points, weights=None, manhattan=False):
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        n_points = len(self.points)
        self.weights = np.ones(n_points) if weights is None else weights
        self.labels = np.zeros(n_points, dtype=np.int64)
        self._columns = np.ascontiguousarray(self.points.T)
        self._order = np.argsort(self._columns, axis=1) if manhattan else None
        self._losses = np.zeros((2, n_points))

    @property
    def losses(self):
        """Loss of each point at the nearest centre of the last run."""
        return self._losses[0]

    def draw_centers(self, n_clusters, rng):
        """Draw points as centres, in proportion to weight times loss (D^2 seeding).

        The loss is that at the centres drawn before. Uses `n_clusters` uniform numbers
        of `rng`. The first k of the centres are a seeding of k centres. Where all
        points with weight are centres already, point 0 is drawn. `losses` is
        overwritten.

        Returns
        -------
        centers : ndarray of shape (n_clusters, n_features)
            The centres.
        """
        drawn = np.empty(n_clusters, dtype=np.int64)
        draw_centers(
            self._columns,
            self.weights,
            rng.random(n_clusters),
            drawn,
            *self._losses,
            None,
            None,
            None,
            None,
            self._order,
        )
        return self.points[drawn]

    def run_lloyd(self, centers, max_iter):
        """Run Lloyd's algorithm from `centers`, in place, until the loss stops falling.

        `centers` (n_clusters, n_features) is C-contiguous. Fills `labels` and `losses`.
        A centre whose cell has no weight stays where it is. With `max_iter=0` points
        are only assigned.

        Returns
        -------
        loss : float
            Weighted sum of the losses.
        """
        return run_lloyd(
            self.points,
            self._columns,
            self.weights,
            max_iter,
            centers,
            self.labels,
            self._losses,
            np.empty((2, len(centers))),
            self._order,
        )


@kernel
def losses_at(columns, points, i, losses, manhattan=None):
    """Write squared distances between column i of `points` and all columns.

    Manhattan distances unless `manhattan` is None; each type of other values is
    compiled. Two features at a time, which halves the traffic to memory.
    """
    n_features, n_columns = columns.shape
    for j in range(n_columns):
        losses[j] = 0.0
    for f in range(n_features % 2):
        here = points[f, i]
        for j in range(n_columns):
            gap = columns[f, j] - here
            losses[j] = gap * gap if manhattan is None else abs(gap)
    for f in range(n_features % 2, n_features, 2):
        here = points[f, i]
        there = points[f + 1, i]
        for j in range(n_columns):
            gap = columns[f, j] - here
            other = columns[f + 1, j] - there
            if manhattan is None:
                losses[j] += gap * gap + other * other
            else:
                losses[j] += abs(gap) + abs(other)


@kernel
def total_of(weights, values):
    """Return the weighted sum of the values, as two partial sums that vectorise."""
    n_pairs = values.shape[0] // 2
    even = 0.0
    odd = 0.0
    for pair in range(n_pairs):
        even += weights[2 * pair] * values[2 * pair]
        odd += weights[2 * pair + 1] * values[2 * pair + 1]
    if values.shape[0] % 2 == 1:
        even += weights[2 * n_pairs] * values[2 * n_pairs]
    return even + odd


@kernel
def draw_index(weights, values, total, uniform):
    """Draw an index in proportion to weight times value; 0 if `total` is zero."""
    threshold = uniform * total
    chosen = 0
    passed = 0.0
    for i in range(values.shape[0]):
        share = weights[i] * values[i]
        if share > 0.0:
            chosen = i
            passed += share
            if passed > threshold:
                break
    return chosen


@kernel
def remember(j, squares, memory):
    """Store the squared distances of all points from centre j, if there is memory."""
    if memory.shape[0] > 0:
        for i in range(squares.shape[0]):
            memory[j, i] = squares[i]


@kernel
def draw_centers(
    columns,
    weights,
    uniforms,
    drawn,
    near,
    current,
    first,
    second,
    next_near,
    memory,
    manhattan=None,
):
    """Draw points as centres, in proportion to weight times loss (D^2 seeding).

    k-means++ without trials. `uniforms` (n_clusters,) lie in [0, 1). Where every point
    with weight is a centre already, point 0 is drawn. Fills `drawn` (n_clusters,), the
    indices, and `near` (n_points,), the losses; `current` (n_points,) is scratch.
    `manhattan`: as in `losses_at`.

    `first`, `second`, `next_near` and `memory`, if they are not None, are filled as
    `find_nearest` fills them.
    """
    n_points = columns.shape[1]
    for i in range(n_points):
        near[i] = 1.0
    total = total_of(weights, near)
    for j in range(drawn.shape[0]):
        drawn[j] = draw_index(weights, near, total, uniforms[j])
        if j == 0:
            for i in range(n_points):
                near[i] = math.inf
                if next_near is not None:
                    next_near[i] = math.inf
        losses_at(columns, columns, drawn[j], current, manhattan)
        if memory is not None:
            remember(j, current, memory)
        for i in range(n_points):  # two nearest, without a branch
            loss = current[i]
            if next_near is not None:
                nearest = loss < near[i]
                other = j if loss < next_near[i] else second[i]
                second[i] = first[i] if nearest else other
                first[i] = j if nearest else first[i]
                next_near[i] = min(next_near[i], max(near[i], loss))
            near[i] = min(near[i], loss)
        total = total_of(weights, near)


@kernel
def move_to_means(points, weights, labels, masses, centers):
    """Move `centers` to the means of their cells, in place.

    `labels` (n_points,) are the cells of the points; `masses` (n_clusters,), zeros,
    receive their weights. A centre whose cell has no weight stays where it is.
    """
    for i in range(points.shape[0]):
        j = labels[i]
        if weights[i] > 0.0:
            masses[j] += weights[i]
            share = weights[i] / masses[j]
            for f in range(points.shape[1]):  # running means
                centers[j, f] += share * (points[i, f] - centers[j, f])


@kernel
def move_to_medians(points, weights, labels, order, masses, passed, centers):
    """Move `centers` to the coordinatewise medians of their cells, in place.

    `labels` (n_points,) are the cells of the points, which weigh `masses`
    (n_clusters,); `order` (n_features, n_points) sorts the points along each feature.
    `passed` (n_clusters,) is work space. A centre whose cell has no weight stays where
    it is.
    """
    n_clusters, n_features = centers.shape
    for f in range(n_features):
        for j in range(n_clusters):
            passed[j] = 0.0
        for rank in range(points.shape[0]):
            i = order[f, rank]
            j = labels[i]
            below = passed[j]
            passed[j] += weights[i]
            if below < HALF * masses[j] <= passed[j]:
                centers[j, f] = points[i, f]


@allocating
def _assign(columns, weights, centers, labels, near, current, manhattan):
    """Label each point by its nearest centre, the first in ties; return the loss."""
    n_features, n_points = columns.shape
    place = np.empty((n_features, 1))
    for i in range(n_points):
        near[i] = math.inf
    for j in range(centers.shape[0]):
        for f in range(n_features):
            place[f, 0] = centers[j, f]
        losses_at(columns, place, 0, current, manhattan)
        for i in range(n_points):  # without a branch: LLVM vectorises it
            closer = current[i] < near[i]
            labels[i] = j if closer else labels[i]
            near[i] = current[i] if closer else near[i]
    return total_of(weights, near)


@kernel
def _move(points, weights, labels, order, masses, passed, centers):
    """Move `centers` to the means of their cells, or to the medians if in `order`."""
    for j in range(centers.shape[0]):
        masses[j] = 0.0
    if order is None:
        move_to_means(points, weights, labels, masses, centers)
    else:
        for i in range(points.shape[0]):
            masses[labels[i]] += weights[i]
        move_to_medians(points, weights, labels, order, masses, passed, centers)


@kernel
def run_lloyd(points, columns, weights, max_iter, centers, labels, losses, work, order):
    """Run Lloyd's algorithm on `centers` (n_clusters, n_features); return the loss.

    Ends after `max_iter` iterations, or when the loss does not fall. `labels`
    (n_points,) and `losses` (2, n_points) receive each point's centre and, in the first
    row, its loss there. `work` (2, n_clusters) is scratch. A centre whose cell has no
    weight stays where it is. `order` (n_features, n_points) sorts the points along each
    feature, for Manhattan distances and medians; None: squared distances and means.
    """
    near, current = losses[0], losses[1]
    loss = _assign(columns, weights, centers, labels, near, current, order)
    for _ in range(max_iter):
        _move(points, weights, labels, order, work[0], work[1], centers)
        previous = loss
        loss = _assign(columns, weights, centers, labels, near, current, order)
        if loss >= previous * (1.0 - 1e-12):
            break
    return loss


@kernel
def append_rows(X, batch, counts):
    """Append the rows of X to those of `batch` (n_rows, n_features).

    `counts`: the number of rows in the batch, and of all rows; both rise by that of X.
    """
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            batch[counts[0], f] = X[i, f]
        counts[0] += 1
        counts[1] += 1
