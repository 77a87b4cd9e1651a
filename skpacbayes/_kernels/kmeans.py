"""k-means and k-medians over weighted points: Lloyd and an incremental path.

`manhattan` chooses the loss: squared Euclidean distance and means, or Manhattan
distance and coordinatewise medians. `order` (n_features, n_points) sorts the points
along each feature; only the medians need it.
"""

import math

import numpy as np

from . import kernel


@kernel
def distance(points, i, centers, j, manhattan, enough):
    """Loss of point i at centre j; a lower bound above `enough` once it exceeds it."""
    n_features = points.shape[1]
    total = 0.0
    for start in range(0, n_features, 8):
        part = 0.0
        if manhattan:
            for f in range(start, min(start + 8, n_features)):
                part += abs(points[i, f] - centers[j, f])
        else:
            for f in range(start, min(start + 8, n_features)):
                gap = points[i, f] - centers[j, f]
                part += gap * gap
        total += part
        if total > enough:
            break
    return total


@kernel
def _copy(source, target, n_rows):
    """Copy the first rows; slices would take numba ten times as long to compile."""
    for j in range(n_rows):
        for f in range(target.shape[1]):
            target[j, f] = source[j, f]


@kernel
def assign(points, weights, centers, n_clusters, manhattan, labels, distances):
    """Nearest of the first `n_clusters` centres to each point; the weighted loss."""
    loss = 0.0
    for i in range(points.shape[0]):
        best = labels[i] if labels[i] < n_clusters else 0
        nearest = distance(points, i, centers, best, manhattan, math.inf)
        for j in range(n_clusters):
            if j != best:
                d = distance(points, i, centers, j, manhattan, nearest)
                if d < nearest:
                    best, nearest = j, d
        labels[i] = best
        distances[i] = nearest
        loss += weights[i] * nearest
    return loss


@kernel
def update_centers(points, weights, order, labels, n_clusters, manhattan, centers):
    """Move each centre to the mean or the median of its cell, if that has weight."""
    n_points, n_features = points.shape
    mass = np.zeros(n_clusters)
    for i in range(n_points):
        mass[labels[i]] += weights[i]
    if manhattan:
        passed = np.empty(n_clusters)
        for f in range(n_features):
            for j in range(n_clusters):
                passed[j] = 0.0
            for rank in range(n_points):
                i = order[f, rank]
                j = labels[i]
                half = 0.5 * mass[j]
                if passed[j] < half and passed[j] + weights[i] >= half:
                    centers[j, f] = points[i, f]
                passed[j] += weights[i]
    else:
        for j in range(n_clusters):
            if mass[j] > 0.0:
                for f in range(n_features):
                    centers[j, f] = 0.0
        for i in range(n_points):
            j = labels[i]
            if mass[j] > 0.0:
                share = weights[i] / mass[j]
                for f in range(n_features):
                    centers[j, f] += share * points[i, f]


@kernel
def lloyd(
    points,
    weights,
    order,
    n_clusters,
    manhattan,
    max_iter,
    centers,
    labels,
    distances,
):
    """Lloyd's iterations from `centers`, in place; returns the weighted loss."""
    loss = assign(points, weights, centers, n_clusters, manhattan, labels, distances)
    for _ in range(max_iter):
        update_centers(points, weights, order, labels, n_clusters, manhattan, centers)
        previous = loss
        loss = assign(
            points, weights, centers, n_clusters, manhattan, labels, distances
        )
        if loss >= previous * (1.0 - 1e-12):
            break
    return loss


@kernel
def _largest(values):
    """Index of the largest value."""
    best = 0
    for i in range(1, values.shape[0]):
        if values[i] > values[best]:
            best = i
    return best


@kernel
def _heaviest_cells(weights, labels, distances, n_clusters):
    """Return the cells with the largest and the second largest loss."""
    cell_loss = np.zeros(n_clusters)
    for i in range(weights.shape[0]):
        cell_loss[labels[i]] += weights[i] * distances[i]
    first = _largest(cell_loss)
    cell_loss[first] = -1.0
    return first, _largest(cell_loss)


@kernel
def _draw_by_loss(weights, labels, distances, cell, rng):
    """Draw a point with probability proportional to its loss; of `cell` if >= 0."""
    total = 0.0
    for i in range(weights.shape[0]):
        if cell < 0 or labels[i] == cell:
            total += weights[i] * distances[i]
    threshold = rng.random() * total
    passed = 0.0
    chosen = 0
    for i in range(weights.shape[0]):
        if (cell < 0 or labels[i] == cell) and weights[i] * distances[i] > 0.0:
            chosen = i
            passed += weights[i] * distances[i]
            if passed >= threshold:
                break
    return chosen


@kernel
def kmeans_plus_plus(
    points, weights, n_clusters, manhattan, centers, labels, distances, rng
):
    """Seed `centers` by draws proportional to weight and loss (D^2 seeding)."""
    n_points, n_features = points.shape
    for i in range(n_points):
        distances[i] = 1.0
    for j in range(n_clusters):
        drawn = _draw_by_loss(weights, labels, distances, -1, rng)
        for f in range(n_features):
            centers[j, f] = points[drawn, f]
        for i in range(n_points):
            enough = math.inf if j == 0 else distances[i]
            d = distance(points, i, centers, j, manhattan, enough)
            distances[i] = min(enough, d)


@kernel
def kmeans_path(
    points, weights, order, manhattan, starts, start_sizes, path, losses, rng
):
    """Best solutions found for 1, 2, ... clusters; returns how many there are.

    Each number of clusters tries the previous solution with one more centre: at the
    farthest point, and at a point of each of the two costliest cells drawn by its
    loss; a fresh D^2 seeding; and the rows of `starts` (n_starts, max_clusters,
    n_features) that have that many centres (`start_sizes`). The best after four
    iterations goes on until Lloyd's algorithm stops. The path ends early when every
    point is a centre. `path` (max_clusters, max_clusters, n_features) and `losses`
    (max_clusters,) are filled in place.
    """
    n_points = points.shape[0]
    labels = np.zeros(n_points, dtype=np.int64)
    distances = np.empty(n_points)
    trial_labels = np.zeros(n_points, dtype=np.int64)
    trial_distances = np.empty(n_points)
    trial = np.zeros((path.shape[1], path.shape[2]))
    losses[0] = lloyd(
        points, weights, order, 1, manhattan, 1, path[0], labels, distances
    )
    for k in range(1, path.shape[0]):
        for i in range(n_points):
            trial_distances[i] = distances[i] if weights[i] > 0.0 else 0.0
        farthest = _largest(trial_distances)
        if not trial_distances[farthest] > 0.0:
            return k
        first, second = _heaviest_cells(weights, labels, distances, k)
        losses[k] = math.inf
        # The last attempt goes on from the best.
        for attempt in range(5 + starts.shape[0]):
            last = attempt == 4 + starts.shape[0]
            if not last:
                for i in range(n_points):
                    trial_labels[i] = labels[i]
            added = farthest
            _copy(path[k - 1], trial, k)
            if attempt == 1 or attempt == 2:
                cell = first if attempt == 1 else second
                added = _draw_by_loss(weights, labels, distances, cell, rng)
            for f in range(points.shape[1]):
                trial[k, f] = points[added, f]
            if attempt == 3:
                kmeans_plus_plus(
                    points,
                    weights,
                    k + 1,
                    manhattan,
                    trial,
                    trial_labels,
                    trial_distances,
                    rng,
                )
            elif last:
                _copy(path[k], trial, k + 1)
            elif attempt > 3:
                if start_sizes[attempt - 4] != k + 1:
                    continue
                _copy(starts[attempt - 4], trial, k + 1)
            loss = lloyd(
                points,
                weights,
                order,
                k + 1,
                manhattan,
                50 if last else 4,
                trial,
                trial_labels,
                trial_distances,
            )
            if loss < losses[k] or last:
                losses[k] = loss
                _copy(trial, path[k], k + 1)
        for i in range(n_points):
            labels[i] = trial_labels[i]
            distances[i] = trial_distances[i]
    return path.shape[0]


@kernel
def describe_cells(points, weights, path, manhattan, masses, cell_losses):
    """Weight and loss of each cell of each solution of a path, filled in place."""
    labels = np.zeros(points.shape[0], dtype=np.int64)
    distances = np.empty(points.shape[0])
    for k in range(1, path.shape[0] + 1):
        assign(points, weights, path[k - 1], k, manhattan, labels, distances)
        for i in range(points.shape[0]):
            masses[k - 1, labels[i]] += weights[i]
            cell_losses[k - 1, labels[i]] += weights[i] * distances[i]
