"""Whether there are gaps between the clusters of a mixture, or within each."""

import itertools
import math

import numpy as np
from scipy.special import betainc, chdtrc

# Half-width of the windows in which rows are counted, over the distance of the centres.
HALF = 0.15
# Least weight of a cluster that is tested.
_FEWEST = 8.0
# Largest p-value of one mode with which clusters have two; and least ratio of the
# depths along two axes: those of each cluster, chosen by few rows, or of all clusters.
_LARGEST_P, _DEEPER = 1e-3, (3.0, 2.0)
# Variance of the noise that hides rounding, over that of the rounding errors.
_SMOOTHING = 4.0
# Largest number of rows that are drawn for merged ones, and least share of the merged
# rows' variance that is not rounding.
_MOST_ROWS, _NEGLIGIBLE = 4000.0, 1e-6


def counts_between(places, weights, low, high):
    """Return the weights of the rows about two places of a line, and midway.

    The three windows have the same width.

    Returns
    -------
    left, middle, right : float
    """
    half = HALF * (high - low)
    return [
        float(weights[np.abs(places - place) < half].sum())
        for place in (low, (low + high) / 2, high)
    ]


def cut_at_modes(problem, mixture):
    """Return a partition with every cluster cut in two, if clusters have two modes.

    The longest axes of the clusters are tested, and then one axis of all clusters:
    where clusters are stretched alike, the coordinates make them round.

    Parameters
    ----------
    problem : MixtureProblem
    mixture : Mixture

    Returns
    -------
    labels : ndarray of shape (n_points,) or None
    """
    points, weights, which = rows_of_points(problem)
    points = points @ mixture.coordinates
    k, labels = mixture.n_clusters, mixture.labels
    for common in (False, True):
        these = points, weights, labels[which], k, common
        p_value, depth, above = pieces_of_clusters(*these)
        if p_value < _LARGEST_P:
            one_axis = points.shape[1] == 1
            other = math.inf if one_axis else pieces_of_clusters(*these, rank=1)[1]
            if other >= _DEEPER[common] * depth:  # else the clusters may be rings
                share = np.bincount(which, above) / np.bincount(which)
                labels = labels + k * (share > 0.5)
                return np.unique(labels, return_inverse=True)[1]
    return None


def all_apart(problem, mixture):
    """Return whether rows are sparser midway between any two centres than at both.

    Parameters
    ----------
    problem : MixtureProblem
    mixture : Mixture
        With components of one shape.

    Returns
    -------
    apart : bool
    """
    points, weights, which = rows_of_points(problem)
    points, labels = points @ mixture.coordinates, mixture.labels[which]
    return apart(points, weights, labels, mixture.centers)


def apart(points, weights, labels, centers):
    """Return whether points are sparser midway between any two centres than at both."""
    for pair in itertools.combinations(range(len(centers)), 2):
        start, end = centers[list(pair)]
        line = end - start
        rows = np.isin(labels, pair)
        places = (points[rows] - start) @ line / (line @ line)
        left, middle, right = counts_between(places, weights[rows], 0.0, 1.0)
        if _p_value(min(left, right), middle) >= _LARGEST_P:
            return False
    return True


def _p_value(fewer, middle):
    """Return the probability of so few rows midway if there is no gap.

    It is P(binomial(fewer + middle, 1 / 2) <= middle).
    """
    return float(betainc(fewer, middle + 1.0, 0.5)) if fewer > 0 else 1.0


def rows_of_points(problem):
    """Return a row for each point, and several where rows were merged.

    Merged rows are drawn about their point, normal, as far from it as they were: the
    points themselves, at about equal distances, have gaps between them. At most about
    `_MOST_ROWS` are drawn. Where values are rounded, noise hides the gaps between them.

    Parameters
    ----------
    problem : MixtureProblem

    Returns
    -------
    rows : ndarray of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,)
        Number of rows that count as evidence.
    which : ndarray of shape (n_rows,)
        The point of each row.
    """
    rounded = np.trace(problem.rounding)
    widths = problem.spreads - rounded
    merged = widths > _NEGLIGIBLE * problem.spreads
    share = min(1.0, _MOST_ROWS / problem.n_rows)
    numbers = np.ones(len(merged), dtype=int)
    weights = problem.weights.copy()
    if merged.any():
        weights[merged] *= share
        numbers[merged] = np.maximum(np.rint(weights[merged]), 1)
    if not merged.all():  # copies are no evidence
        weights[~merged] /= max(weights[~merged].mean(), 1.0)
    which = np.repeat(np.arange(len(merged)), numbers)
    rows, rng = problem.points[which], np.random.default_rng(0)
    scatter = problem.scatter - problem.n_rows * problem.rounding
    scatter = scatter / max(np.trace(scatter), 1e-300)
    for used, covariance, width in (
        (rounded > 0, _SMOOTHING * problem.rounding, np.ones(len(merged))),
        (merged.any(), scatter, np.where(merged, widths, 0.0)),
    ):
        if used:
            values, axes = np.linalg.eigh(covariance)
            noise = rng.normal(size=rows.shape) * np.sqrt(np.maximum(values, 0))
            rows = rows + np.sqrt(width)[which, None] * (noise @ axes.T)
    return rows, (weights / numbers)[which], which


def pieces_of_clusters(points, weights, labels, n_clusters, common, rank=0):
    """Test whether the clusters have one mode each, against two.

    Two-means cuts each cluster along an axis. A density with one mode is, in windows of
    one width, at least as large midway between two places as at one of the two. The
    numbers of rows there give a p-value for each cluster; Fisher's method combines
    them.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    weights : ndarray of shape (n_points,)
    labels : ndarray of shape (n_points,)
    n_clusters : int
    common : bool
        Whether the axis is the one along which the tails within all clusters are
        lightest, by fourth moments [1]_; else the longest axis of each cluster.
    rank : {0, 1}, default=0
        1 for the second axis in that order.

    Returns
    -------
    p_value : float
        Of the hypothesis that all clusters have one mode.
    depth : float
        Number of rows midway, over the mean of the numbers at the two centres. It is
        similar along both axes of a ring.
    above : ndarray of bool, shape (n_points,)
        The rows above the cut of their cluster.

    References
    ----------
    .. [1] J.-F. Cardoso (1989). Source separation using higher order moments. ICASSP.
    """
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n_clusters + 1))
    clusters = [order[begin:end] for begin, end in itertools.pairwise(ends)]
    clusters = [
        members
        for members in clusters
        if min(len(members), weights[members].sum()) >= _FEWEST
    ]
    gaps = np.zeros_like(points)
    for members in clusters:
        masses = weights[members]
        gaps[members] = points[members] - masses @ points[members] / masses.sum()
    axis = axes_by_tails(gaps, weights)[:, rank] if common else None
    above, sum_of_logs = np.zeros(len(points), dtype=bool), 0.0
    counts = np.zeros(3)
    for members in clusters:
        masses, inside = weights[members], gaps[members]
        if not common:
            axis = np.linalg.eigh((inside * masses[:, None]).T @ inside)[1][
                :, -1 - rank
            ]
        places = inside @ axis
        cut, *centers = _two_means(places, masses)
        left, middle, right = counts_between(places, masses, *centers)
        counts += left, middle, right
        above[members] = places > cut
        sum_of_logs += math.log(_p_value(min(left, right), middle))
    p_value = float(chdtrc(2 * max(len(clusters), 1), -2 * sum_of_logs))
    depth = 2 * counts[1] / max(counts[0] + counts[2], 1e-300)
    return p_value, depth, above


def axes_by_tails(gaps, weights):
    """Return axes in columns, in the order of their tails, lightest first.

    The rows, `gaps`, have mean 0. The axes are those of their fourth moments where the
    rows are white.
    """
    values, vectors = np.linalg.eigh((gaps * weights[:, None]).T @ gaps)
    white = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1] + 1e-300))
    rows = gaps @ white
    weighted = rows * (weights * (rows**2).sum(axis=1))[:, None]
    return white @ np.linalg.eigh(weighted.T @ rows)[1]


def _two_means(places, weights):
    """Return the best cut of weighted places of mean 0, and the centres beside it."""
    order = np.argsort(places, kind="stable")
    sums = np.cumsum((places * weights)[order])[:-1]
    below = np.cumsum(weights[order])
    below, over = below[:-1], np.maximum(below[-1] - below[:-1], 1e-300)
    cut = np.argmax(sums**2 / (below * over))
    return places[order[cut]], sums[cut] / below[cut], -sums[cut] / over[cut]
