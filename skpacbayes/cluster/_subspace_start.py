"""First labels of a chain on partitions: cells of centers, groups in narrow boxes."""

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin_min

from .._kernels import subspace as kernels

# Boxes tried for each cluster; how many of them grow, in one pass or two, and how many
# of these grow on, for how many passes at most.
_N_BOXES, _N_GROWN, _N_CHOSEN, _N_PASSES = 500, 10, 3, 20
_N_DRAWS = 10  # of centers


def start_from_centers(chain):
    """Label rows by the nearest of centers, the best of several draws."""
    if not chain.X.size:
        return
    least = np.inf
    for seed in chain.rng.integers(2**31 - 1, size=_N_DRAWS):
        drawn, _ = kmeans_plusplus(chain.X, chain.n_clusters, random_state=int(seed))
        labels, distances = pairwise_distances_argmin_min(chain.X, drawn)
        inertia = distances @ distances
        if inertia < least:
            least = inertia
            chain.labels[:] = labels


def start_in_boxes(chain):
    """Give each cluster in turn the best group that a random box leads to.

    A box that is narrow in a few features finds a group that all features together
    hide. A row that joins pays log(n_clusters), the price of a label.
    """
    price = np.log(chain.n_clusters)
    free = np.arange(len(chain.X))
    chain.labels[:] = chain.n_clusters - 1
    for j in range(chain.n_clusters - 1):
        if len(free) < 3:
            break
        chosen = find_group(chain, chain.X[free], price)
        chain.labels[free[chosen]] = j
        free = free[~chosen]


def find_group(chain, X, price):
    """Find the best group of rows, each of which pays `price`: whether each joins."""
    rng, shared, model = chain.rng, chain.shared or None, chain.model()
    n_rows, n_features = X.shape
    columns, inside = np.ascontiguousarray(X.T), np.empty(n_rows, dtype=np.bool_)
    triples = rng.integers(n_rows, size=(_N_BOXES, 3))
    triples[::2, 2] = triples[::2, 1]  # half the boxes from two rows
    widths = np.exp(rng.uniform(np.log(0.1), 0.0, _N_BOXES))

    boxes = kernels.Clusters.empty(_N_BOXES, n_features)
    kernels.fill_boxes(columns, triples, widths, inside, boxes, None)
    best = _best(boxes, _N_GROWN, price, shared, model)
    groups = kernels.Clusters.empty(_N_GROWN, n_features)
    members = np.zeros((_N_GROWN, n_rows), dtype=np.bool_)
    kernels.fill_boxes(columns, triples[best], widths[best], inside, groups, members)
    for n_chosen, n_passes in ((_N_CHOSEN, 2), (1, _N_PASSES)):
        _best(groups, len(members), price, shared, model)  # for the gains
        work = groups.work_space()
        kernels.grow(X, n_passes, price, shared, model, groups, work, members)
        best = np.argsort(price * groups.counts - groups.gains)[:n_chosen]
        members = members[best]
        groups = kernels.Clusters(*(field[best] for field in groups))
    return members[0]


def _best(groups, n_best, price, shared, model):
    """Find the gains of groups of rows; the numbers of the best groups."""
    found = np.empty(groups.sums.shape)
    kernels.find_gains(shared, model, groups, groups.work_space(), found)
    return np.argsort(price * groups.counts - groups.gains)[:n_best]
