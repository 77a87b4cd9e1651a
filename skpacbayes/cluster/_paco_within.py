"""Narrow clusters that are near each other, beside much wider ones."""

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_mixture import STUDENT_DOF
from ._paco_tree import Tree

# Least number of points of a cluster in which clusters are looked for, and largest
# number that are tried.
_FEWEST_POINTS, _MOST = 10, 20
# Least number of points of each of them: fewer may be noise.
_FEWEST_OF_PIECE = 5


def look_within_clusters(search):
    """Add mixtures that have clusters within the clusters of the best one.

    Where spreads differ, Ward's tree of all points merges narrow clusters before it
    joins two rows of a wide one. A tree of the points of one cluster separates them.

    Parameters
    ----------
    search : Search
    """
    best = search.best()
    if not best.own:
        return
    start = _with_clusters_within(search.problem, best)
    if start.n_clusters == best.n_clusters:
        return
    for dof in (STUDENT_DOF, math.inf):
        _descend(search, start, best, (best.shape, True, dof))


def _descend(search, start, best, kind):
    """Merge the clusters of `start`; keep the mixtures if one is better than `best`.

    Otherwise pieces of heavy tails would be its rivals.
    """
    found = []
    for mixture in search.problem.state(start, *kind).merged():
        if mixture.n_clusters <= best.n_clusters:
            break
        found.append(mixture)
    if not found:
        return
    top = max(found, key=search.value)
    top = search.problem.fit(top, *kind, 15) or top
    if search.value(top) > search.value(best):
        for mixture in [top, *found]:
            if mixture.n_clusters <= top.n_clusters + 1:
                search.keep(mixture)
        search.polish(kind)


def _with_clusters_within(problem, mixture):
    """Return clusters of trees of the points of single clusters, as a start of EM."""
    labels, k = mixture.labels.copy(), mixture.n_clusters
    for j in range(mixture.n_clusters):
        members = np.flatnonzero(mixture.labels == j)
        if len(members) < max(_FEWEST_POINTS, 2 * problem.d):
            continue
        inside = _pieces(Tree(problem.part(members), mixture.shape))
        labels[members] = np.where(inside == 0, j, k + inside - 1)
        k += inside.max()
    if k == mixture.n_clusters:  # of which the last may have no labels
        return mixture
    start = problem.cut(mixture, labels)
    gaps = problem.points @ mixture.coordinates - start.centers[labels]
    squares = (gaps**2).sum(axis=1) + problem.widths_in(mixture.coordinates)
    sums = np.bincount(labels, problem.weights * squares, minlength=k)
    least = 1e-12 * problem.variance_in(mixture.coordinates)
    return replace(start, scales=np.maximum(sums / start.masses / problem.d, least))


def _pieces(tree):
    """Return the labels of the points in pieces of enough points.

    Scattered points, in pieces of fewer, are of the nearest piece. All are of one piece
    if at most one has enough.
    """
    labels = tree.labels(tree.n_clusters(min(_MOST, len(tree.points) // 2)))
    large = np.bincount(labels) >= _FEWEST_OF_PIECE
    if large.sum() < 2:
        return np.zeros_like(labels)
    means = [tree.points[labels == j].mean(axis=0) for j in np.flatnonzero(large)]
    nearest = cdist(tree.points, means).argmin(axis=1)
    return np.where(large[labels], (large.cumsum() - 1)[labels], nearest)
