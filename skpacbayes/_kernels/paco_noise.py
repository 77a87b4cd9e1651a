"""Distances of rows to the centres of PACO, and their densities under its noise.

A row gives the same numbers alone and in a block.
"""

import math

from . import kernel

# Sizes of rows and centres between which squares, and sums of them, are exact enough.
_LOW, _HIGH = 2.0**-127, 2.0**127


@kernel
def center_distances(
    X, origin, coordinates, places, size, manhattan, placed, distances
):
    """Write the distances of rows to centres to `distances` (n_rows, n_clusters).

    Rows are centred at `origin` (n_features,), and in `coordinates` (n_features,
    n_features) unless that is None. `places` (n_features, n_clusters): the centres
    there, up to `size` in absolute value; `placed` (n_features,): a work space. If the
    squares of a row are not exact enough, its first distance is -1. Returns the number
    of such rows.
    """
    n_features, n_clusters = places.shape
    n_refused = 0
    for i in range(X.shape[0]):
        for f in range(n_features):
            placed[f] = 0.0
        for f in range(n_features):
            gap = X[i, f] - origin[f]
            if coordinates is None:
                placed[f] = gap
            else:
                for g in range(n_features):
                    placed[g] += gap * coordinates[f, g]
        largest = size
        for f in range(n_features):
            largest = max(largest, abs(placed[f]))
        if not (_LOW < largest < _HIGH or largest == 0.0):
            distances[i, 0] = -1.0
            n_refused += 1
            continue
        for k in range(n_clusters):
            distances[i, k] = 0.0
        for f in range(n_features):
            for k in range(n_clusters):
                gap = placed[f] - places[f, k]
                distances[i, k] += abs(gap) if manhattan else gap * gap
        for k in range(0 if manhattan else n_clusters):
            distances[i, k] = math.sqrt(distances[i, k])
    return n_refused


@kernel
def log_densities(distances, heights, scales, n_features, dof, manhattan):
    """Turn distances (n_rows, n_clusters) into log densities of the clusters' noise.

    `heights` (n_clusters,): those at the centres; `scales` (n_clusters,); `dof`: the
    degrees of freedom of Student noise, or infinity.
    """
    power = 0.5 * (dof + n_features)
    for i in range(distances.shape[0]):
        for k in range(distances.shape[1]):
            ratio = distances[i, k] / scales[k]
            if manhattan:
                fall = ratio
            elif dof == math.inf:
                fall = 0.5 * ratio * ratio
            else:
                fall = power * math.log1p(ratio * ratio / dof)
            distances[i, k] = heights[k] - fall


@kernel
def add_up(heights, totals):
    """Write the logs of the sums of exponentials of each row to `totals` (n_rows,).

    `heights` (n_rows, n_clusters) becomes each exponential's share of the sum.
    """
    for i in range(heights.shape[0]):
        highest = -math.inf
        for k in range(heights.shape[1]):
            highest = max(highest, heights[i, k])
        total = 0.0
        for k in range(heights.shape[1]):
            gap = heights[i, k] - highest if highest > -math.inf else 0.0
            heights[i, k] = math.exp(gap)
            total += heights[i, k]
        for k in range(heights.shape[1]):
            heights[i, k] /= total
        totals[i] = highest + math.log(total)


@kernel
def leaving_scales(noise, centers, gaps, largest, scales):
    """Find the scales at which noisy copies of centres leave their cells (Manhattan).

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
                # method approaches from the left, and the first bound is often enough.
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
