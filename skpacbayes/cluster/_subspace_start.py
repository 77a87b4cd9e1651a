"""Initial labels of a chain on partitions: k-means, or narrow boxes."""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .._kernels import subspace as kernels

# Number of boxes tried for each cluster; number of them that grow, in one pass or two;
# number of these that continue to grow, and their largest number of passes.
_N_BOXES, _N_GROWN, _N_CHOSEN, _N_PASSES = 500, 10, 3, 20
_N_DRAWS = 10  # of the first centres of k-means


def start_from_centers(chain):
    """Label rows by k-means in all features."""
    if chain.X.size:
        seed = int(chain.rng.integers(2**31 - 1))
        centers = KMeans(chain.n_clusters, n_init=_N_DRAWS, random_state=seed)
        with warnings.catch_warnings():  # fewer distinct rows than clusters
            warnings.simplefilter("ignore", ConvergenceWarning)
            chain.labels[:] = centers.fit_predict(chain.X)


def start_in_boxes(chain):
    """Label each cluster in turn as the best group found from random boxes.

    A box that is narrow in a few features finds a group that distances in all features
    do not show. How many features bound a box is drawn from 1 to all, evenly on a
    logarithmic scale: in hundreds of features two rows are near each other in dozens by
    chance, and a box bounded by all these holds no other row. A row that joins costs
    log(n_clusters), the log prior of a label.
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


def start_from_halves(chain, labels, n_iter):
    """Split each cluster of a partition in two, make sweeps, and merge pairs."""
    n_clusters = chain.n_clusters
    chain.begin_at(labels)
    split_clusters(chain)
    for _ in range(n_iter):
        chain.sweep()
    chain.merge_clusters(n_clusters)


def split_clusters(chain):
    """Split each cluster in the best group found in its rows, and the others.

    If no group is found, k-means splits the cluster.
    """
    labels = chain.labels.copy()
    for j in range(chain.n_clusters):
        rows = np.flatnonzero(labels == j)
        if len(rows) < 3:
            continue
        own = chain.part(rows)
        chosen = find_group(own, own.X, np.log(2))
        if chosen.all() or not chosen.any():
            start_from_centers(own)
            chosen = own.labels == 1
        labels[rows[chosen]] = chain.n_clusters + j
    chain.begin_at(labels)


def find_group(chain, X, price):
    """Return the mask of the best group of rows, each of which costs `price`."""
    n_rows, n_features = X.shape
    columns, rng = np.ascontiguousarray(X.T), chain.rng
    triples = rng.integers(n_rows, size=(_N_BOXES, 3))
    triples[::2, 2] = triples[::2, 1]  # half the boxes from two rows
    widths = np.exp(rng.uniform(np.log(0.1), 0.0, _N_BOXES))
    limits = np.exp(rng.uniform(0.0, np.log(n_features + 1), _N_BOXES)).astype(int)
    orders = rng.permuted(np.tile(np.arange(n_features), (_N_BOXES, 1)), axis=1)
    groups = chain.described(kernels.Clusters(_N_BOXES, n_features))
    members = np.zeros((_N_BOXES, n_rows), dtype=np.bool_)
    statistics = groups.counts, groups.sums, groups.squares
    boxes = triples, widths, limits, orders
    kernels.fill_boxes(columns, *boxes, members, *statistics)
    for n_groups, n_passes in ((_N_GROWN, 2), (_N_CHOSEN, _N_PASSES), (1, 0)):
        groups.find_gains()
        best = np.argsort(price * groups.counts - groups.gains)[:n_groups]
        groups, members = groups.select(best), members[best]
        kernels.grow(X, n_passes, price, members, groups.state())
    return members[0]
