"""Rows of no cluster: mixtures with a uniform background, and rows far from all."""

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammainc

from ._paco_chain import log_ball
from ._paco_mixture import LEAST_GAIN, STUDENT_DOF, squared_radius

# Initial share of the background in EM, and the largest number of its iterations.
_FIRST_SHARE, _MAX_ITER = 0.05, 30
# Least initial share of a background with more clusters.
_LEAST_SHARE = 1e-6
# EM stops when an iteration gains less log-likelihood than this.
_TOLERANCE = 0.05
# Largest expected number of chance groups in a background, for a group to be a cluster.
CHANCE = 0.01
# Share of the rows of a cluster that are outside the ball whose rows are counted.
OUTSIDE = 0.01
# Deficit in log evidence, with the shape of the best mixture, from which no background
# is tried with other shapes.
_FAR_BEHIND = 10.0
# Largest share of a background that does not need significant evidence.
MOST = 0.5
# Expected number of rows of the clusters that are far from all of them.
EXPECTED_FAR = 0.01
# Largest number of far rows that are compared, and least number of rows of a cluster.
MOST_FAR, FEWEST = 1000, 3
# Largest number of new clusters, and of iterations of EM with each.
_MOST_MORE, _MAX_ITER_OF_MORE = 20, 12


def with_background(search, best, shapes):
    """Return the mixture of largest evidence: `best`, or one with a background.

    Small clusters that a background would have by chance are rows of no cluster. Heavy
    tails, or a cluster that covers all others, may be such rows too. In that case
    mixtures of as many clusters and fewer are fitted with a component that is uniform
    on the region of the rows; its share is one more parameter. Other shapes than that
    of `best` are tried if a background nearly pays with it, and as long as they gain.
    A background of most rows is no answer where `best` describes them almost as well.

    Parameters
    ----------
    search : Search
    best : Mixture
    shapes : tuple of str
        Those that clusters may have; that of `best` first.

    Returns
    -------
    mixture : Mixture
    """
    fits, chosen, least = {}, _instead_of_some_clusters(search, best), -math.inf
    tried = sorted(shapes, key=best.shape.__ne__)
    for shape in tried if _hides_noise(search.problem, best, fits) else ():
        highest = -math.inf
        for k in range(chosen.n_clusters, 0, -1):
            mixture = _likeliest(search, k, shape, best.own, fits)
            value = -math.inf if mixture is None else search.value(mixture)
            if value > search.value(chosen):
                chosen = mixture
            if value < max(highest, least):
                break
            highest = value
        least = search.value(chosen)
        if shape == best.shape and highest <= least - _FAR_BEHIND:
            break
    if chosen.background > MOST and search.rivals(chosen, [best]):
        return best
    return chosen


def chance_groups(n_rows, stray, scales, dof, log_uniform, n_features):
    """Return how many groups like each cluster a background would have by chance.

    The expected number of background rows with as many others near them as the cluster
    has, if its rows are of the background too: the scan statistic of a Poisson process
    [1]_. Where far rows are many, two of them are near each other by chance.

    Parameters
    ----------
    n_rows : ndarray of shape (n_clusters,)
        Rows of the cluster within its radius.
    stray : ndarray of shape (n_clusters,)
        Rows of the background and of the cluster.
    scales : ndarray of shape (n_clusters,)
        Variances of the clusters.
    dof, log_uniform : float
        Degrees of freedom of the clusters, and log density of a row of the background.
    n_features : int

    References
    ----------
    .. [1] J. Glaz, J. Naus and S. Wallenstein (2001). Scan Statistics. Springer.
    """
    radii = np.sqrt(squared_radius(OUTSIDE, n_features, dof) * scales)
    log_volumes = log_ball(1.0, n_features) + n_features * np.log(radii)
    rates = stray * np.exp(log_volumes + log_uniform)
    return stray * gammainc(np.maximum(n_rows - 1.0, 1e-9), rates)


def _by_chance(problem, mixture, stray):
    """Return which clusters a background of so many rows would have by chance.

    Rows are counted as they were drawn, without the weight of those that were not.
    """
    limit = squared_radius(OUTSIDE, problem.d, mixture.dof)
    inside = problem.weights * (_squared_ratios(problem, mixture) <= limit)
    n_rows = np.bincount(mixture.labels, inside, minlength=mixture.n_clusters)
    sizes = n_rows / problem.row_weight, stray / problem.row_weight
    of_each = mixture.scales, mixture.dof, mixture.log_uniform, problem.d
    return chance_groups(*sizes, *of_each) > CHANCE


def _squared_ratios(problem, mixture):
    """Return squared distances of points from their centres, over the scales."""
    gaps = problem.points @ mixture.coordinates - mixture.centers[mixture.labels]
    squares = (gaps**2).sum(axis=1) + problem.widths_in(mixture.coordinates)
    return squares / mixture.scales[mixture.labels]


def _small_clusters(problem, mixture):
    """Return which small clusters a uniform background would have by chance.

    Its rows are those of the cluster and of all smaller ones. Clusters that hold half
    of the rows together with all smaller ones are kept.
    """
    masses = mixture.masses
    stray = (masses * (masses <= masses[:, None])).sum(axis=1)
    few = stray < masses.sum() / 2
    return few & _by_chance(problem, mixture, stray) if few.any() else few


def no_chance_clusters(problem, mixture):
    """Return whether no cluster may be noise or the tail of a larger one.

    Each is apart from all larger clusters, and has more rows than a uniform background
    of its rows and those of all smaller clusters has by chance.
    """
    region = replace(mixture, log_uniform=-log_volume(problem, mixture.shape))
    return bool(mixture.apart.all()) and not _small_clusters(problem, region).any()


def without_chance_groups(problem, mixture):
    """Return the mixture fitted without clusters that its background has by chance.

    The largest cluster is kept; None if the background has all of them by chance.
    """
    while mixture is not None:
        stray = mixture.background * problem.n_rows + mixture.masses
        gone = _by_chance(problem, mixture, stray)
        if gone.all():
            return None
        gone[mixture.masses.argmax()] = False
        if not gone.any():
            break
        mixture = _without(problem, mixture, gone)
    return mixture


def _without(problem, mixture, gone):
    """Return the mixture fitted with a background instead of some clusters, or None."""
    start = replace(
        mixture,
        centers=mixture.centers[~gone],
        scales=mixture.scales[~gone],
        shares=mixture.shares[~gone] / mixture.shares[~gone].sum(),
        masses=mixture.masses[~gone],
    )
    return fit_with_background(problem, start, *mixture.kind)


def _without_small(problem, mixture, share):
    """Return the mixture fitted with a background instead of small clusters, or None.

    These are the clusters that a background would have by chance, if there are any.
    `share`: of the background, as a start.
    """
    uniform = -log_volume(problem, mixture.shape)
    region = replace(mixture, background=share, log_uniform=uniform)
    fitted = _without(problem, region, _small_clusters(problem, region))
    return without_chance_groups(problem, fitted)


def _instead_of_some_clusters(search, best):
    """Return `best`, or a background instead of some of its clusters if it is better.

    These are small clusters, or one that covers all others. With many features the
    region of the rows is so large that each far row is better described by a cluster of
    its own than by a background of few clusters; and many far rows are described by one
    wide cluster. In place of the latter, the best background is a rival.

    Few rows do not decide between a background and clusters that it has by chance: then
    these are no clusters.
    """
    problem, found, by_chance = search.problem, [best], []
    region = replace(best, log_uniform=-log_volume(problem, best.shape))
    small, wide = _small_clusters(problem, region), best.covering
    for gone, several in ((small, [best.own]), (wide, {False, best.own})):
        if not gone.any() or gone.all():
            continue
        for own, dof in itertools.product(sorted(several), (math.inf, STUDENT_DOF)):
            fitted = _without(problem, replace(region, own=own, dof=dof), gone)
            fitted = without_chance_groups(problem, fitted)
            if fitted is not None:
                found.append(fitted)
                if gone is small:
                    by_chance.append(fitted)
    if len(found) > 1:
        search.let_best_have_other_noise(found)
    if wide.any():
        search.others = found[1:]
    chosen = max(found, key=search.value)
    if chosen is best:
        rivals = [one for one in by_chance if search.rivals(best, [one])]
        chosen = max(rivals, key=search.value, default=best)
    return chosen


def _hides_noise(problem, mixture, fits):
    """Return whether the tails, or a wide cluster, may be rows of no cluster."""
    if mixture.own and not mixture.apart.all():
        return True
    if math.isinf(mixture.dof):
        return _heavy(problem, mixture)
    share = problem.n_evidence / problem.n_rows
    for dof in (mixture.dof, math.inf):
        fitted = _fitted(problem, mixture, mixture.shape, mixture.own, dof, fits)
        if fitted is not None:
            gain = fitted.log_likelihoods[1] - mixture.log_likelihoods[1]
            if share * gain > LEAST_GAIN:
                return True
    return False


def _fitted(problem, start, shape, own, dof, fits):
    """Call `fit_with_background`, unless `fits` holds the result already."""
    key = start, shape, own, dof
    if key not in fits:
        fits[key] = fit_with_background(problem, start, shape, own, dof)
    return fits[key]


def _heavy(problem, mixture):
    """Return whether the rows have heavier tails than normal clusters.

    This is so if Mardia's kurtosis about the clusters exceeds its expectation by two
    standard errors.
    """
    d, squares = problem.d, _squared_ratios(problem, mixture)
    kurtosis = problem.weights @ squares**2 / problem.n_rows
    return kurtosis > d * (d + 2) + 2 * math.sqrt(8 * d * (d + 2) / problem.n_rows)


def _likeliest(search, n_clusters, shape, own, fits):
    """Return the best mixture of `n_clusters` clusters and a background, or None."""
    starts = [one for one in search.mixtures if one.n_clusters == n_clusters]
    if not starts:
        return None
    start = max(starts, key=search.value)
    found = [
        _fitted(search.problem, start, shape, one, dof, fits)
        for one in sorted({False, own})
        for dof in (math.inf, STUDENT_DOF)
    ]
    found = [without_chance_groups(search.problem, one) for one in found]
    found = [one for one in found if one is not None]
    search.let_best_have_other_noise(found)
    return max(found, key=search.value, default=None)


def fit_with_background(problem, start, shape, own, dof):
    """EM from a `start`, with a background; None if a component lost its rows."""
    if shape != start.shape:
        start = replace(start, coordinates=problem.whitened(shape))
        masses, sums = problem.sums(problem.points, start.labels, start.n_clusters)
        centers = sums @ start.coordinates / masses[:, None]
        scales = problem.variances(replace(start, centers=centers))
        start = replace(start, centers=centers, scales=scales)
    background = start.background or _FIRST_SHARE, -log_volume(problem, shape)
    return problem.fit(start, shape, own, dof, _MAX_ITER, _TOLERANCE, *background)


def log_volume(problem, shape):
    """Return the log volume of the region of the rows: a box, or an ellipsoid.

    The sides of the box are the ranges of the features. Where clusters have any
    covariance matrix, the ellipsoid has that of all rows, so that it is equivariant
    under linear maps; if other shapes are allowed too, the smaller of the two counts.
    A subset has the region of the whole, as a feature may be constant in the subset.
    """
    problem, of_box, of_ellipsoid = problem.whole or problem, math.inf, math.inf
    gaps = problem.points - problem.weights @ problem.points / problem.n_rows
    if shape != "tied" or problem.has_axes:
        of_box = float(np.log(np.maximum(np.ptp(gaps, axis=0), 1e-300)).sum())
    if shape == "tied":
        squares = ((gaps @ problem.whitened("tied")) ** 2).sum(axis=1)
        radius = math.sqrt(max(squares.max(), 1e-300))
        of_ellipsoid = log_ball(radius, problem.d)
    return min(of_box, of_ellipsoid)


def far_points(points, mixture):
    """Return the indices of points that are far from all clusters of a mixture.

    `points` (n_points, n_features): in the coordinates of the mixture.
    """
    squares = cdist(points, mixture.centers, "sqeuclidean") / mixture.scales
    share = EXPECTED_FAR / len(points)
    limit = squared_radius(share, points.shape[1], mixture.dof)
    return np.flatnonzero(squares.min(axis=1) > limit)


def explaining_far_rows(problem, mixture, gain):
    """Return the mixture, or a better one for rows that are far from its clusters.

    It has more clusters, of such rows, or a background.

    Parameters
    ----------
    problem : MixtureProblem
        All points.
    mixture : Mixture
        Fitted to all points, after a search of a part of them.
    gain : float
        Log evidence that its clusters gain by being skewed: a far row skews them.

    Returns
    -------
    mixture : Mixture
    """
    for _ in range(_MOST_MORE):
        far = far_points(problem.points @ mixture.coordinates, mixture)
        if mixture.background or len(far) < FEWEST:
            break
        share = problem.weights[far].sum() / problem.n_rows
        found = [
            _with_far_cluster(problem, mixture, far),
            _without_small(problem, mixture, share),
        ]
        found = [one for one in found if one is not None]
        best = max(found, key=lambda one: one.evidence, default=mixture)
        if best.evidence < mixture.evidence + gain + LEAST_GAIN:
            break
        mixture, gain = best, 0.0
    return mixture


def _with_far_cluster(problem, mixture, far):
    """Return the mixture with a cluster where far rows are densest, or None."""
    points, d = problem.points @ mixture.coordinates, problem.d
    far = far[:: math.ceil(len(far) / MOST_FAR)]
    scale = mixture.masses @ mixture.scales / mixture.masses.sum()
    reach = squared_radius(OUTSIDE, d, mixture.dof) * scale
    near = cdist(points[far], points[far], "sqeuclidean") <= reach
    inside = far[near[near.sum(axis=1).argmax()]]
    numbers = np.array([float(len(inside))]), np.array([float(len(far))])
    uniform = -log_volume(problem, mixture.shape)
    like = np.array([scale]), mixture.dof, uniform, d
    if len(inside) < FEWEST or chance_groups(*numbers, *like)[0] > CHANCE:
        return None
    start = with_more(problem, mixture, [inside], [scale])
    more = problem.fit(start, *mixture.kind, _MAX_ITER_OF_MORE)
    return more if more is not None and more.n_clusters > mixture.n_clusters else None


def with_more(problem, mixture, groups, variances):
    """Return the mixture with more clusters, of groups of points, as a start of EM."""
    points = problem.points @ mixture.coordinates
    masses = np.array([problem.weights[inside].sum() for inside in groups])
    shares = masses / problem.n_rows
    centers = [
        problem.weights[inside] @ points[inside] / mass
        for inside, mass in zip(groups, masses, strict=True)
    ]
    background = mixture.background
    if background:
        background = max(background - shares.sum(), _LEAST_SHARE)
    return replace(
        mixture,
        centers=np.vstack([mixture.centers, *centers]),
        scales=np.append(mixture.scales, variances),
        shares=np.append(mixture.shares * (1.0 - shares.sum()), shares),
        masses=np.append(mixture.masses, masses),
        background=background,
    )
