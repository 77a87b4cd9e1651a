"""Groups of few rows that a background has taken."""

import math

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from ._paco_background import (
    CHANCE,
    FEWEST,
    MOST_FAR,
    OUTSIDE,
    chance_groups,
    fit_with_background,
    with_more,
    without_chance_groups,
)
from ._paco_mixture import LEAST_GAIN, squared_radius

# Ratio of successive variances of the groups that are searched, from the mean variance
# of the clusters on.
_STEP = 2.0
# Number of these variances. A second search has all up to the variance of the rows, as
# later groups may be wide. It does not replace the first, as one wide ball may hold
# several groups.
_N_NARROW = 5
# Largest number of groups.
_MOST = 20


def with_groups_of_background(problem, mixture):
    """Return the mixture, or one with clusters of rows of its background.

    Only a share of the log-likelihood is evidence, as clusters are not normal. By that
    share, groups of few rows gain less than their penalty, and a part of all rows has
    fewer of them. All of the log-likelihood counts where each group has more rows than
    a background has by chance, and is apart from all larger clusters.

    Parameters
    ----------
    problem : MixtureProblem
        All points.
    mixture : Mixture
        With a background, fitted to all points.

    Returns
    -------
    mixture : Mixture
    """
    best, least = mixture, mixture.density_evidence + LEAST_GAIN
    mean = mixture.masses @ mixture.scales / mixture.masses.sum()
    ratio = max(problem.variance_in(mixture.coordinates) / mean, 1.0)
    widest = 1 + int(math.log(ratio, _STEP))
    searches = [
        _dense_balls(problem, mixture, mean * _STEP ** np.arange(n_variances))
        for n_variances in sorted({_N_NARROW, max(widest, _N_NARROW)})
    ]
    if len(searches) > 1 and _are_equal(*searches):
        searches.pop()
    starts = [
        (groups[:n], variances[:n])
        for groups, variances in searches
        for n in range(len(groups), 0, -1)
    ]
    for groups, variances in starts:
        start = with_more(problem, mixture, groups, variances)
        more = fit_with_background(problem, start, mixture.shape, True, mixture.dof)
        more = without_chance_groups(problem, more)
        if more is None or not more.apart.all():
            continue
        several = more.background and more.n_clusters > mixture.n_clusters
        if several and (density := more.density_evidence) > least:
            best, least = more, density
    return best


def _are_equal(search, other):
    """Return whether two searches found the same balls, of the same variances."""
    (balls, variances), (other_balls, other_variances) = search, other
    same = variances == other_variances
    return same and all(map(np.array_equal, balls, other_balls))


def _dense_balls(problem, mixture, variances):
    """Return disjoint balls of more rows than the background has by chance.

    `variances`: of the groups that may fill them.

    Returns
    -------
    balls : list of ndarray of int
        Points of each ball. The ball that is least expected comes first.
    filling : list of float
        Variance of a group that fills each ball.
    """
    densities = mixture.log_densities(problem.points @ mixture.coordinates)
    stray = np.flatnonzero(logsumexp(densities, axis=1) < mixture.log_background)
    stray = stray[:: math.ceil(max(len(stray), 1) / MOST_FAR)]
    points = problem.points[stray] @ mixture.coordinates
    squares, d = cdist(points, points, "sqeuclidean"), problem.d
    reaches = squared_radius(OUTSIDE, d, math.inf) * variances
    balls, filling, free = [], [], np.ones(len(stray), dtype=bool)
    while len(balls) < _MOST and free.sum() >= FEWEST:
        numbers = np.array([(squares[:, free] <= one).sum(axis=1) for one in reaches])
        numbers *= free
        sizes = numbers.max(axis=1).astype(float), np.full(len(reaches), free.sum())
        like = variances, math.inf, mixture.log_uniform, d
        chances = chance_groups(*sizes, *like)
        i = chances.argmin()
        if chances[i] > CHANCE:
            break
        inside = free & (squares[numbers[i].argmax()] <= reaches[i])
        free &= ~inside
        balls.append(stray[inside])
        filling.append(variances[i])
    return balls, filling
