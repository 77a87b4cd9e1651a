"""Ward's tree of merges of weighted points, and its partitions."""

import math

import numpy as np

from . import kernel


@kernel
def ward(centers, masses, merges, costs, gaps, chain):
    """Merge points into one cluster by Ward's criterion, by nearest-neighbour chains.

    `centers` (n_features, n_points) and `masses` (n_points,) are changed. Receive
    results: `merges` (n_points - 1, 2), a point of each of the two clusters that are
    merged, and `costs` (n_points - 1,), by how much that raises the sum of squares; in
    no order. `gaps`, `chain` (n_points,) are work space.
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


@kernel
def cut_tree(merges, masses, n_clusters, labels, entropies):
    """Apply merges, in their order, until `n_clusters` are left.

    Receive results: `labels` (n_points,), and `entropies` (n_points,): the sum of
    m log m over the clusters' masses m, by number of clusters less one.
    """
    n_points = len(masses)
    parents, sizes = np.arange(n_points), masses.copy()
    entropy = 0.0
    for i in range(n_points):
        entropy += masses[i] * math.log(masses[i])
    entropies[n_points - 1] = entropy
    for step in range(n_points - n_clusters):
        a, b = merges[step]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        both = sizes[a] + sizes[b]
        entropy += both * math.log(both)
        entropy -= sizes[a] * math.log(sizes[a]) + sizes[b] * math.log(sizes[b])
        parents[a], sizes[b] = b, both
        entropies[n_points - step - 2] = entropy
    used = 0
    for i in range(n_points):
        labels[i] = -1
    for i in range(n_points):
        a = i
        while parents[a] != a:
            a = parents[a]
        if labels[a] < 0:
            labels[a] = used
            used += 1
    for i in range(n_points):
        a = i
        while parents[a] != a:
            a = parents[a]
        if i != a:
            labels[i] = labels[a]
