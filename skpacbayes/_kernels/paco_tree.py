"""Ward's tree of merges of weighted points."""

import math

from . import kernel


@kernel
def ward(centers, masses, merges, costs, gaps, chain):
    """Merge points into one cluster by Ward's criterion, by nearest-neighbour chains.

    `centers` (n_features, n_points) and `masses` (n_points,) are changed. Results:
    `merges` (n_points - 1, 2), a point of each of the two merged clusters, and `costs`
    (n_points - 1,), the increase of the sum of squares; in no order. `gaps`, `chain`
    (n_points,) are work space.
    """
    d, n_points = centers.shape
    length, begin = 0, 0
    for done in range(n_points - 1):
        if length == 0:
            while masses[begin] <= 0.0:
                begin += 1
            chain[0], length = begin, 1
        while True:
            a = chain[length - 1]
            for j in range(n_points):
                gaps[j] = 0.0
            for f in range(d):
                place = centers[f, a]
                for j in range(n_points):
                    gap = centers[f, j] - place
                    gaps[j] += gap * gap
            mass = masses[a]
            for j in range(n_points):
                gaps[j] *= mass * masses[j] / (mass + masses[j])
            b = chain[length - 2] if length > 1 else -1
            cost = gaps[b] if length > 1 else math.inf
            for j in range(n_points):
                if gaps[j] < cost and masses[j] > 0.0 and j != a:
                    b, cost = j, gaps[j]
            if length > 1 and b == chain[length - 2]:
                break
            chain[length] = b
            length += 1
        length -= 2
        merges[done, 0], merges[done, 1], costs[done] = a, b, cost
        share = masses[a] / (masses[a] + masses[b])
        for f in range(d):
            centers[f, b] += share * (centers[f, a] - centers[f, b])
        masses[b] += masses[a]
        masses[a] = 0.0
