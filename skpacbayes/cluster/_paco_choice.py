"""Choice among the mixtures found: the best, or another that describes rows better."""

import math
from dataclasses import replace

from ._paco_alike import decided_by_noise
from ._paco_background import with_background
from ._paco_covariances import (
    covariance_gain,
    fit_with_covariances,
    with_covariances,
)
from ._paco_dense import with_dense_groups
from ._paco_mixture import LEAST_GAIN
from ._paco_pieces import all_apart, cut_at_modes
from ._paco_rivals import FAR_BEHIND

# Number of clusters that are cut in two, and the least number of rows per cluster then.
_SPLITS, _ROWS_TO_SPLIT = 4, 30
# Least number of points for each column where gaps count as evidence: of fewer points,
# almost any partition has gaps in the coordinates that are fitted to it.
POINTS_OF_COLUMN = 3


def choose(search, shapes, all_kinds):
    """Return the mixture of largest evidence, or what describes the rows better.

    Instead of heavy tails, of small or wide clusters, of clusters of one shape, of
    fewer clusters, of one, and of clusters with two modes, others are tried in turn.

    Parameters
    ----------
    search : Search
    shapes : tuple of str
    all_kinds : bool
        Whether mixtures of all kinds were fitted, or of one.

    Returns
    -------
    best : Mixture
    kind : tuple
        That of the best mixture of one shape without a background.
    several : bool
        Whether it has several clusters instead of heavy tails.
    n_modes : int
        The number of halves if clusters have two modes and no other mixture is
        better, else 0.
    """
    best, several = search.best(), None
    kind = best.kind
    if best.n_clusters == 1 and math.isfinite(best.dof):
        if (best.shape, True, best.dof) not in search.solutions:
            search.vary()
        several = _instead_of_heavy_tails(search, best)
    # Groups beyond the largest number searched must not become background.
    if several is None and best.n_clusters < search.most_clusters:
        allowed = shapes if all_kinds else (best.shape,)
        best = with_background(search, best, allowed)
        best = with_dense_groups(search, best, allowed)
    best = several or best
    if "tied" in shapes:  # not only "round" or "diagonal"
        search.covariances = with_covariances(search, best)
    best = max([best, *search.covariances.values()], key=search.value)
    best = _instead_of_fewer(search, best)
    best = _instead_of_one(search, best)
    more, n_modes = _instead_of_two_modes(search, best)
    if more is not best:
        best, kind = more, more.kind
    best = decided_by_noise(search, best)
    return best, kind, several is not None, n_modes


def _instead_of_heavy_tails(search, single):
    """Return the best mixture of clusters whose covariances differ, or None.

    One elliptical cluster with heavy tails has the same covariance in its core and its
    tails. If covariances of their own gain evidence, there are several clusters.
    """
    differing = []
    for mixture in search.mixtures:
        gap = search.value(single) - search.value(mixture)
        if mixture.n_clusters == 1 or gap >= FAR_BEHIND:
            continue
        if covariance_gain(search.problem, mixture, "tied", 1.0) > gap:
            differing.append(mixture)
    return max(differing, key=search.value, default=None)


def _instead_of_fewer(search, best):
    """Return normal clusters of one shape that overlap in place of `best`, or it.

    The integrated completed likelihood penalises overlap: with many rows it takes
    overlapping normal groups for fewer clusters of another shape. They are known by two
    facts. As a density of the rows they are better than `best`, also if the clusters of
    `best` have a covariance each; and their noise has the kurtosis of a normal one,
    unlike that of pieces of clusters that are not normal.
    """
    problem, k = search.problem, best.n_clusters
    enough = problem.n_rows >= _ROWS_TO_SPLIT * (k + 1)
    if enough and not best.background:  # else far rows would be cut off
        same = [one for one in search.mixtures if one.n_clusters == k > 1]
        for mixture in [one for one in same if one.alike]:
            for start in problem.halved(mixture, _SPLITS):
                search.keep(problem.fit(start, *mixture.kind, 40))
    more = [one for one in search.mixtures if one.alike and one.n_clusters > k > 1]
    if not more:
        return best
    densest = max(more, key=search.normal_density)
    least = search.normal_density(densest) - LEAST_GAIN
    if search.density(best) >= least or not problem.normal(densest):
        return best
    several = fit_with_covariances(problem, best, best.labels)
    return best if search.density(several) >= least else densest


def _instead_of_one(search, best):
    """Return clusters with gaps between all of them in place of one cluster, or it.

    Only a share of the log-likelihood is evidence, as clusters are not normal. With
    many columns, groups far apart gain less than the penalty of their centres by that
    share. Where there is a gap between each two clusters, whatever the shape of one,
    all of the log-likelihood counts.
    """
    few = len(search.problem.points) < POINTS_OF_COLUMN * search.problem.d
    if best.n_clusters > 1 or best.background or few:
        return best
    enough = search.whole_evidence(best) + LEAST_GAIN
    several = [one for one in search.mixtures if one.n_clusters > 1]
    for mixture in sorted(several, key=search.whole_evidence, reverse=True):
        if search.whole_evidence(mixture) <= enough:
            break
        if all_apart(search.problem, mixture):
            search.apart = True
            return mixture
    return best


def _instead_of_two_modes(search, best):
    """Return clusters found from halves of those of `best` with two modes each.

    Only a share of the log-likelihood is evidence, as clusters are not normal. Pairs of
    many small clusters gain less than their penalties by that share. Where the clusters
    together clearly have two modes each, whatever the shape of one, all of the
    log-likelihood counts. Clusters with covariances of their own, or with a background,
    are not tested.

    Returns
    -------
    mixture : Mixture
        `best` if no other is better.
    n_modes : int
        As in `choose`.
    """
    problem = search.problem
    if best.background or best.log_joint is not None:
        return best, 0
    labels = cut_at_modes(problem, best)
    if labels is None:
        return best, 0
    for shape in dict.fromkeys([best.shape, "round"]):
        start = best
        if shape != best.shape:
            start = replace(best, coordinates=problem.whitened(shape))
        start = problem.cut(start, labels)
        for own, dof in dict.fromkeys([(best.own, best.dof), (False, math.inf)]):
            search.merge_down(start, (shape, own, dof), best.n_clusters)
    more = [one for one in search.mixtures if one.n_clusters > best.n_clusters]
    if more:
        densest = max(more, key=search.whole_evidence)
        densest = problem.fit(densest, *densest.kind, 40) or densest
        search.keep(densest)
        enough = search.whole_evidence(best) + LEAST_GAIN
        if search.whole_evidence(densest) > enough:
            return densest, 0
    return best, int(labels.max()) + 1
