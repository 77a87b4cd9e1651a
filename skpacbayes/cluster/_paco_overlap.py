"""Groups that overlap, each with a mode of its own, in place of one cluster."""

import math

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from ._paco_covariances import fit_with_covariances
from ._paco_fitting import MixtureProblem
from ._paco_mixture import LEAST_GAIN
from ._paco_pieces import rows_of_points
from ._paco_tree import Tree

# Largest p-value of a log-concave density with which groups are counted, and with which
# a warning names them.
_LARGEST_P, _DOUBTFUL_P = 1e-3, 0.05
# Largest number of rows that are cut in halves, and largest n_points^2 n_features of
# the tree of a half.
_MOST_ROWS, _TREE_COST = 6000, 3e7
# Widths of the windows along the line through two centres, and across it, over the
# scale of the noise.
_ALONG, _ACROSS = 0.5, 1.0
# Number of mixtures whose kurtosis is tested, and of iterations of EM of the best.
_TESTED, _MAX_ITER = 5, 40
# Least number of points per cluster: of fewer, a gap between two cannot be seen.
_POINTS_OF_CLUSTER = 30
# Least number of rows that a window counts.
_FEWEST = 4.0


def overlapping_groups(search, best):
    """Return a search for normal clusters that describe rows better than one.

    The integrated completed likelihood penalises overlap, so that it takes many groups
    whose centres are three standard deviations apart for one. The likelihood of the
    rows alone does not, but also cuts a flat group into normal pieces. So groups are
    counted only if their noise has the kurtosis of a normal one, and if the density of
    the rows is not log-concave, which that of a flat group is: see `p_value_of_fewer`.

    Parameters
    ----------
    search : Search
    best : Mixture
        Without a background, and of one shape.

    Returns
    -------
    search : Search
        Of more points, if several clusters are found.
    best : Mixture
        The same if no other is better.
    n_doubtful : int
        The number of groups if the test does not decide, else 0.
    """
    value, problem, k = search.log_evidence, search.problem, best.n_clusters
    several = [one for one in search.mixtures if one.alike and one.n_clusters > k]
    densest = max(several, key=value, default=best)
    enough = value(densest) - LEAST_GAIN
    if value(best) >= enough:
        return search, best, 0
    if k > 1 and value(fit_with_covariances(problem, best, best.labels)) >= enough:
        return search, best, 0
    wider = search.wider(densest.shape, best)
    densest = _densest(wider, densest.kind, k)
    if densest is None:
        return search, best, 0
    p_value = p_value_of_fewer(search.everything, densest, best)
    if p_value >= _LARGEST_P:
        return search, best, densest.n_clusters if p_value < _DOUBTFUL_P else 0
    wider.keep(densest)
    wider.by_density = True
    return wider, densest, 0


def _densest(search, kind, k):
    """Return the best mixture of several clusters of normal noise, or None.

    The search goes on from more components as long as the best has almost as many.
    """
    value, problem = search.log_evidence, search.problem
    enough = max(map(value, search.mixtures)) + LEAST_GAIN
    largest = len(problem.points) // _POINTS_OF_CLUSTER
    fewest = k
    while True:
        search.merge_down(search.tree.mixture(search.n_start), kind, fewest)
        more = [one for one in search.solutions[kind].values() if one.n_clusters > k]
        more = [one for one in more if value(one) > enough]
        more = sorted(more, key=value, reverse=True)[:_TESTED]
        densest = next(filter(problem.normal, more), None)
        sizes = [one.n_clusters for one in (more if densest is None else [densest])]
        most = max(sizes, default=0)
        if 3 * most + 12 <= 2 * search.n_start or search.n_start >= largest:
            break
        fewest = search.n_start // 2
        search.n_start = min(2 * search.n_start, largest)
    if densest is None:
        return None
    return problem.fit(densest, *kind, _MAX_ITER) or densest


def p_value_of_fewer(everything, mixture, fewer):
    """Return the p-value of the hypothesis that fewer clusters are log-concave each.

    Normal, uniform, exponential and Laplace densities are log-concave, and so are all
    sums of independent variables of such densities [1]_. Then a density, also if it is
    smoothed, is at least as large midway between two places as the geometric mean of
    both. This is tested between the centres of neighbouring clusters, fitted to one
    half of the rows, by the other half, and the other way round.

    References
    ----------
    .. [1] A. Prekopa (1973). On logarithmic concave measures and functions. Acta
       Scientiarum Mathematicarum 34.
    """
    most = min(_MOST_ROWS, 2 * int(math.sqrt(_TREE_COST / everything.d)))
    problem = everything.subset(most)
    rows, weights, which = rows_of_points(problem)
    order = np.argsort(np.argsort(problem.order)[which], kind="stable")
    order = order[np.random.default_rng(0).permutation(len(rows))[:most]]
    halves = [_problem(rows[one], weights[one]) for one in (order[::2], order[1::2])]
    total = 0.0
    for part, other in (halves, halves[::-1]):
        fitted = _fitted(part, mixture)
        if fitted is not None:
            total += standard_errors_above(other, fitted, fewer)
    return float(ndtr(-total / math.sqrt(2)))


def _problem(rows, weights):
    """Return the problem of weighted rows."""
    d = rows.shape[1]
    return MixtureProblem(rows, weights, np.zeros(len(rows)), np.zeros((d, d)))


def _fitted(part, mixture):
    """Return a mixture of the same kind and number of clusters, or None."""
    kind = mixture.kind
    start = Tree(part, mixture.shape).mixture(int(1.5 * mixture.n_clusters) + 6)
    for found in part.state(start, *kind).merged():
        if found.n_clusters <= mixture.n_clusters:
            return part.fit(found, *kind, _MAX_ITER)
    return None


def standard_errors_above(problem, mixture, fewer):
    """Return by how much the density of rows at centres is above that midway.

    In standard errors: the logs of the density at two neighbouring centres, less twice
    that midway, in the mean over all pairs, where the more certain ones count more. The
    densities are smoothed by normal windows.

    Parameters
    ----------
    problem : MixtureProblem
        Of other rows than those that the mixture was fitted to.
    mixture, fewer : Mixture
        Pairs of centres in one cluster of `fewer` are compared.

    Returns
    -------
    ratio : float
    """
    rows, weights = problem.points @ mixture.coordinates, problem.weights
    centers = mixture.centers
    scale = math.sqrt(mixture.scales.mean())
    sums, effects = 0.0, np.zeros(len(rows))
    change = np.linalg.inv(mixture.coordinates) @ fewer.coordinates
    owners = fewer.log_densities(centers @ change).argmax(axis=1)
    for first, second in neighbours(centers):
        if owners[first] != owners[second]:
            continue
        start, line = centers[first], centers[second] - centers[first]
        length = math.sqrt(line @ line)
        gaps = rows - start
        along = gaps @ line / length
        across = np.maximum((gaps**2).sum(axis=1) - along**2, 0.0)
        places = np.array([0.0, 0.5, 1.0])[:, None] * length
        windows = ((along - places) / (_ALONG * scale)) ** 2
        windows = np.exp(-(windows + across / (_ACROSS * scale) ** 2) / 2)
        masses = windows @ weights
        if not (masses**2 > _FEWEST * (windows**2 @ weights**2)).all():
            continue
        signs = np.array([1.0, -2.0, 1.0])
        effect = weights * ((signs / masses) @ windows)
        variance = effect @ effect
        sums += signs @ np.log(masses) / variance
        effects += effect / variance
    error = math.sqrt(effects @ effects)
    return sums / error if error > 0 else 0.0


def neighbours(centers):
    """Return pairs of centres with no other in the ball between them [1]_.

    References
    ----------
    .. [1] K. R. Gabriel and R. R. Sokal (1969). A new statistical approach to
       geographic variation analysis. Systematic Zoology 18.
    """
    squares = cdist(centers, centers, "sqeuclidean")
    others = squares[:, None, :] + squares[None, :, :]
    k = np.arange(len(centers))
    others[k, :, k] = others[:, k, k] = np.inf
    return np.argwhere(np.triu(squares <= others.min(axis=2), 1))
