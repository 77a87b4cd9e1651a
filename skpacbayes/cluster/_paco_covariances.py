"""Mixtures of clusters with a covariance matrix each."""

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.special import xlogy
from sklearn.utils import gen_batches

from ._paco_fitting import inverse_root, shaped
from ._paco_mixture import (
    LEAST_GAIN,
    inverse_wishart_evidence,
    log_components,
    share_of_evidence,
    student_weights,
)

# Largest number of iterations of EM, and its tolerance; then its number of iterations
# at each size, before the best mixtures are fitted to convergence.
_MAX_ITER, _TOLERANCE, _QUICK, _POLISHED = 60, 1e-2, 2, 3
# Largest number of differences of points and centres that are held at a time.
_BLOCK = 100_000
# Number of mixtures of each size that are tried.
_KINDS = 2
# Number of clusters from which mergers end early: at so many levels, one after the
# other, whose log evidence is so much lower than that of the best level.
_MANY, _LEVELS_BELOW, _FAR_BELOW = 50, 10, 100.0
# Deficit in log evidence, before EM, up to which a mixture is fitted.
_SHORT = 10.0


def with_covariances(search, best):
    """Return mixtures of fewer clusters with a covariance each, if one is better.

    A mixture of one common shape cuts clusters of different shapes into pieces. The
    candidates are therefore the mixtures of fewer clusters, and mergers of the clusters
    of `best`. They must also beat the clusters of `best` with a covariance each.

    Parameters
    ----------
    search : Search
    best : Mixture

    Returns
    -------
    found : dict
        Mixtures by number of clusters; empty if none has larger evidence than `best`.
    """
    problem, found, value = search.problem, {}, search.value(best)
    starts = []
    few = problem.d == 1 or problem.n_rows < 2 * problem.d  # rows for a covariance
    if few or not problem.noisy(best):
        return found
    for k in range(2, best.n_clusters):
        of_size = [one for one in search.mixtures if one.n_clusters == k]
        starts += sorted(of_size, key=search.value)[-_KINDS:]
    share = share_of_evidence(problem.n_rows)
    starts = [
        (one, one.labels)
        for one in starts
        if search.value(one) + covariance_gain(problem, one, one.shape, share)
        > value - _SHORT
    ]
    if not starts:
        return found

    def fit(mixture, labels, max_iter):
        mixture = fit_with_covariances(problem, mixture, labels, max_iter)
        other = found.get(mixture.n_clusters)
        if other is None or search.value(mixture) > search.value(other):
            found[mixture.n_clusters] = mixture
        return mixture

    for mixture, labels in starts:
        fit(mixture, labels, _QUICK)
    highest, n_below = -math.inf, 0
    for labels in itertools.chain([best.labels], _merged(problem, best)):
        merged = search.value(fit(best, labels, _QUICK))
        highest = max(highest, merged)
        n_below = n_below + 1 if merged < highest - _FAR_BELOW else 0
        if best.n_clusters > _MANY and n_below >= _LEVELS_BELOW:
            break  # each merger joins groups: more of them gain nothing
    done = set()
    while True:
        ranked = sorted(found.values(), key=search.value)[-_POLISHED:]
        todo = [one for one in ranked if one.n_clusters not in done]
        if not todo:
            break
        for mixture in todo:
            done.add(mixture.n_clusters)
            fit(mixture, mixture.labels, _MAX_ITER)
    winner = max(found.values(), key=search.value)
    fewer = winner.n_clusters < best.n_clusters
    return found if fewer and search.value(winner) > value else {}


def covariance_gain(problem, mixture, shape, share):
    """Return the log evidence that the clusters' covariances differ by more than size.

    Compares a covariance matrix for each cluster, with an inverse Wishart prior about
    the common one whose degrees of freedom maximise the evidence, to the common matrix
    times a size for each cluster. Parts of one elliptical cluster do not differ in this
    way, however heavy its tails. `share`: share of the log-likelihood that counts as
    evidence.
    """
    masses, _, covariances = _moments(problem, mixture, mixture.labels, mixture.robust)
    eigenvalues = _common_and_own(covariances, masses, shape)[2]
    evidence = inverse_wishart_evidence(eigenvalues, problem.d, share * masses)
    return float(evidence.sum(axis=0).max()) - LEAST_GAIN


def _moments(problem, mixture, labels, robust):
    """Return masses, means and covariances of clusters of weighted, merged rows."""
    points = problem.points @ mixture.coordinates
    order = np.argsort(labels, kind="stable")
    points, weights = points[order], problem.weights[order]
    thick, counts = weights * robust[order], np.bincount(labels)
    counts = counts[counts > 0]
    masses, centers = np.empty(len(counts)), np.empty((len(counts), problem.d))
    covariances = np.empty((len(counts), problem.d, problem.d))
    for j, end in enumerate(np.cumsum(counts)):
        rows = slice(end - counts[j], end)
        masses[j] = weights[rows].sum()
        centers[j] = thick[rows] @ points[rows] / thick[rows].sum()
        gaps = points[rows] - centers[j]
        covariances[j] = (gaps * thick[rows, None]).T @ gaps / masses[j]
    return masses, centers, covariances + problem.merged_in(mixture.coordinates)


def _common_and_own(covariances, masses, shape):
    """Return the common covariance, the clusters' sizes, and relative eigenvalues."""
    d = covariances.shape[-1]
    common, sizes = np.eye(d), np.trace(covariances, axis1=1, axis2=2) / d
    if shape != "round":
        common = np.tensordot(masses, covariances, 1) / masses.sum()
        common = shaped(common, shape)
        inverse = inverse_root(common)
        covariances = inverse @ covariances @ inverse.T
        sizes = np.trace(covariances, axis1=1, axis2=2) / d
    eigenvalues = np.linalg.eigvalsh(covariances / sizes[:, None, None])
    return common, sizes, np.maximum(eigenvalues, 0.0)


def _merged(problem, mixture):
    """Yield the labels of normal clusters that are merged one pair at a time.

    Each merger is the one that lowers the classification likelihood least [1]_.

    References
    ----------
    .. [1] C. Fraley (1998). Algorithms for model-based Gaussian hierarchical
       clustering. SIAM Journal on Scientific Computing 20.
    """
    d, ones = problem.d, np.ones(len(problem.points))
    labels = np.unique(mixture.labels, return_inverse=True)[1]
    masses, centers, scatters = _moments(problem, mixture, labels, ones)
    scatters = scatters * masses[:, None, None]

    def losses(n, scatters):
        sizes = np.trace(scatters, axis1=1, axis2=2) / n
        own = scatters + sizes[:, None, None] * np.eye(d)
        return n / 2 * (np.linalg.slogdet(own)[1] - d * np.log(n + d)) - xlogy(n, n)

    def both(j):
        n = masses[j] + masses
        gaps = centers - centers[j]
        between = (masses[j] * masses / n)[:, None, None]
        between = between * gaps[:, :, None] * gaps[:, None]
        return n, scatters + scatters[j] + between

    def prices(j):
        price = losses(*both(j)) - own - own[j]
        price[j] = math.inf
        return price

    own = losses(masses, scatters)
    table = np.array([prices(j) for j in range(len(masses))])
    while len(masses) > 2:
        a, b = sorted(np.unravel_index(table.argmin(), table.shape))
        n, together = both(a)
        centers[a] += masses[b] / n[b] * (centers[b] - centers[a])
        masses[a], scatters[a] = n[b], together[b]
        masses, centers, scatters = (
            np.delete(one, b, axis=0) for one in (masses, centers, scatters)
        )
        table = np.delete(np.delete(table, b, axis=0), b, axis=1)
        labels = np.where(labels == b, a, labels)
        labels = labels - (labels > b)
        own = losses(masses, scatters)
        table[a] = table[:, a] = prices(a)
        yield labels


def fit_with_covariances(problem, start, labels, max_iter=_MAX_ITER):
    """Run EM with a covariance for each component; drop components without rows.

    Covariances are shrunk to the common shape by as many pseudo-rows as features.

    Parameters
    ----------
    problem : MixtureProblem
    start : Mixture
        The result has its shape, coordinates, tails and background.
    labels : ndarray of shape (n_points,)
    max_iter : int

    Returns
    -------
    mixture : Mixture
    """
    d, weights, dof = problem.d, problem.weights, start.dof
    points = problem.points @ start.coordinates
    merged, widths = problem.merged_in(start.coordinates), problem.spreads
    widths = widths / (widths @ weights / problem.n_rows) if widths.any() else 1.0
    parts = np.eye(int(labels.max()) + 1)[labels] * weights[:, None]
    thick, background = parts * start.robust[:, None], start.background
    before, share = -math.inf, share_of_evidence(problem.n_rows)
    for _ in range(max_iter):
        alive = parts.sum(axis=0)
        alive = alive >= min(max(1.0, d / 2), alive.max())
        parts, thick = parts[:, alive], thick[:, alive]
        masses = parts.sum(axis=0)
        centers = (points.T @ thick / thick.sum(axis=0)).T
        blocks = list(gen_batches(len(masses), max(1, _BLOCK // points.size)))
        covariances = np.empty((len(masses), d, d))
        for block in blocks:
            gaps = points - centers[block, None]
            weighted = (gaps * thick.T[block, :, None]).transpose(0, 2, 1)
            covariances[block] = weighted @ gaps
        covariances = covariances / masses[:, None, None] + merged
        common, sizes, eigenvalues = _common_and_own(covariances, masses, start.shape)
        own = masses[:, None, None] * covariances + d * sizes[:, None, None] * common
        factors = np.linalg.cholesky(own / (masses + d)[:, None, None])
        inverses = np.linalg.inv(factors)
        squares = np.empty((len(points), len(masses)))
        for block in blocks:
            gaps = points - centers[block, None]
            white = gaps @ inverses[block].transpose(0, 2, 1)
            squares[:, block] = np.einsum("jnd,jnd->nj", white, white)
        widened = (inverses * (inverses @ merged)).sum(axis=(1, 2))
        squares += widened * np.reshape(widths, (-1, 1))
        log_joint = log_components(squares, 1.0, dof, d)
        log_joint -= np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        log_joint += np.log(masses / masses.sum() * (1.0 - background))
        highest, others = log_joint.max(axis=1), np.zeros(len(points))
        joint = np.exp(log_joint - highest[:, None])
        sums = joint.sum(axis=1)
        totals = highest + np.log(sums)
        if background:
            alone = math.log(background) + start.log_uniform
            totals = np.logaddexp(totals, alone)
            others = np.exp(alone - totals)
            background = max(float(weights @ others) / problem.n_rows, 1e-9)
        parts = joint * (weights * (1.0 - others) / sums)[:, None]
        thick = parts * student_weights(squares, dof, d)
        if not weights @ totals - before > _TOLERANCE:
            break
        before = weights @ totals
    labels = log_joint.argmax(axis=1)
    robust = student_weights(squares[np.arange(len(labels)), labels], dof, d)
    if background:
        highest = np.maximum(highest, alone)
    pulled = (masses[:, None] * eigenvalues + d) / (masses + d)[:, None]
    gains = d - np.log(pulled).sum(axis=1) - (eigenvalues / pulled).sum(axis=1)
    evidence = inverse_wishart_evidence(eigenvalues, d, share * masses).sum(axis=0)
    change = inverse_root(common)
    change /= math.exp(np.log(np.diag(change)).mean())
    return replace(
        start,
        own=True,
        coordinates=start.coordinates @ change.T,
        centers=centers @ change.T,
        scales=np.trace(change @ covariances @ change.T, axis1=1, axis2=2) / d,
        shares=masses / masses.sum() * (1.0 - background),
        masses=masses,
        labels=labels,
        robust=robust * (1.0 - others),
        log_likelihoods=(float(weights @ totals), float(weights @ highest)),
        background=background,
        log_joint=highest,
        price=LEAST_GAIN + share / 2 * masses @ gains - evidence.max(),
    )


def refit_with_covariances(problem, mixture):
    """Run EM on all points of a problem, from a mixture fitted to some of them."""
    points = problem.points @ mixture.coordinates
    spreads = problem.widths_in(mixture.coordinates)
    labels, robust = mixture.robust_weights(points, spreads)
    return fit_with_covariances(problem, replace(mixture, robust=robust), labels)
