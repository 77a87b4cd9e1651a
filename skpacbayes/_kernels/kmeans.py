"""k-means and k-medians over weighted points, and how stable their cells are."""

import math

from . import kernel

# Just below a half: the lower of two medians, however the sums are rounded.
HALF = 0.5 * (1.0 - 1e-12)


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
def lloyd(
    points, columns, weights, n_clusters, max_iter, centers, labels, losses, masses
):
    """Lloyd's iterations on the first `n_clusters` of `centers`, in place; the loss.

    `columns` are the points transposed, so that the loops over them vectorise.
    `labels` (n_points,) and `losses` (2, n_points) receive each point's centre and, in
    the first row, its loss there. `masses` (max_clusters,) is work space. A centre
    whose cell has no weight stays where it is.
    """
    n_features, n_points = columns.shape
    nearest, current = losses[0], losses[1]
    total = math.inf
    for iteration in range(max_iter + 1):
        for j in range(n_clusters):
            masses[j] = 0.0
        if iteration > 0:
            move_to_means(points, weights, labels, masses, centers)
        for i in range(n_points):
            nearest[i] = math.inf
        for j in range(n_clusters):
            for i in range(n_points):
                current[i] = 0.0
            for f in range(n_features):
                place = centers[j, f]
                for i in range(n_points):
                    gap = columns[f, i] - place
                    current[i] += gap * gap
            for i in range(n_points):  # without a branch: LLVM vectorises it
                closer = current[i] < nearest[i]
                labels[i] = j if closer else labels[i]
                nearest[i] = current[i] if closer else nearest[i]
        previous = total
        total = 0.0
        for i in range(n_points):
            total += weights[i] * nearest[i]
        if total >= previous * (1.0 - 1e-12):
            break
    return total


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


@kernel
def leaving_scales(noise, centers, gaps, largest, scales):
    """Scale at which the noisy copies of each centre leave its cell, Manhattan loss.

    `noise` (n_draws, n_features) times a scale is added to each centre in turn, and
    `scales` (n_draws, n_clusters) receives the smallest scale, if below `largest`, at
    which another centre is nearer. `gaps` (n_clusters, n_clusters): the distances
    between centres.
    """
    n_clusters, n_features = centers.shape
    for draw in range(noise.shape[0]):
        length = 0.0
        for f in range(n_features):
            length += abs(noise[draw, f])
        for j in range(n_clusters):
            lowest = largest
            for other in range(n_clusters):
                # The lead of centre j is convex and decreasing in the scale: Newton's
                # method comes from the left, and the first bound often is enough.
                scale = gaps[j, other] / (2.0 * length)
                while scale < lowest and gaps[j, other] > 0.0:
                    lead = 0.0
                    slope = 0.0
                    for f in range(n_features):
                        step = scale * noise[draw, f]
                        gap = centers[j, f] - centers[other, f] + step
                        lead += abs(gap) - abs(step)
                        if gap * step < 0.0:
                            slope += 2.0 * abs(noise[draw, f])
                    if not lead > 1e-12 * gaps[j, other]:
                        lowest = scale
                    elif slope > 0.0:
                        scale += lead / slope
                    else:
                        scale = math.inf
            scales[draw, j] = lowest
