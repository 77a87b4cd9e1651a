"""Number of clusters of one shape and one normal noise, where the evidence is close."""

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_calibration import UNDECIDED, close_sizes
from ._paco_covariances import covariance_gain
from ._paco_mixture import LEAST_GAIN
from ._paco_path import Path
from ._paco_pieces import axes_by_tails
from ._paco_rows import Rows

# Number of iterations of EM of a size that was not fitted to convergence.
_MAX_ITER = 40
# Exponents of the tails of other noise, from exponential to nearly uniform; and least
# squared distance from a centre, over the variance.
_EXPONENTS, _LEAST_SQUARE = (1.0, 1.5, 3.0, 4.0, 6.0, 10.0, 20.0), 1e-12


def decided_by_noise(search, best):
    """Return the mixture of largest evidence by the rows alone in place of `best`.

    The integrated completed likelihood penalises overlap. If one normal noise describes
    all clusters and the evidence of several numbers is close, the likelihood of the
    rows decides, less the usual penalties. Where clusters are round in the columns, the
    calibration decides by the normalised quasi-likelihood.

    Other numbers are chosen only if neither other noise of the clusters of `best`, nor
    covariances of their own, describe the rows better: otherwise pieces of clusters
    would be found.

    Parameters
    ----------
    search : Search
    best : Mixture

    Returns
    -------
    mixture : Mixture
        Of the kind of `best`.
    """
    if best.shape == "round" or not best.alike or search.noise_of(best).gain(best) > 0:
        return best
    if best.n_clusters > search.most_clusters:
        return best  # too few rows for each to tell the distribution of the noise
    problem, sizes = search.problem, dict(search.solutions[best.kind])
    near = close_sizes(sizes, UNDECIDED, best.n_clusters, search.most_clusters)
    near = range(near[0], min(near[-1] + 1, search.most_clusters) + 1)
    starts = [one for one in search.mixtures if one.shape == best.shape]
    for start in (*starts, *_of_path(problem, best, near)):
        k = start.n_clusters
        if k in near and k > 1:
            fitted = problem.fit(start, *best.kind, _MAX_ITER)
            if fitted is not None and fitted.n_clusters == k:
                sizes[k] = max(sizes.get(k, fitted), fitted, key=_log_likelihood)
    several = [sizes[k] for k in near if k in sizes]
    densest = max(several, key=lambda one: one.density_evidence)
    k = densest.n_clusters
    if k == best.n_clusters or not noise_is_normal(problem, best, densest):
        return best
    if k > 1 and covariance_gain(problem, densest, densest.shape, 1.0) > 0:
        return best
    for mixture in several:
        search.keep(mixture)
    search.by_density = k > 1 and problem.normal(densest)
    return densest


def noise_is_normal(problem, best, other):
    """Return whether rows of normal noise are likelier than `best` with other noise.

    The noise of `other` must have the kurtosis of a normal one.

    Along each coordinate, the noise of the clusters of `best` may fall as exp(-|x /
    width|^exponent); with the shape "tied", along axes that differ in their tails.
    Uniform clusters, for instance, are described as pieces by normal noise. All of the
    log-likelihood counts, as more normal clusters are found if the noise is
    exactly normal.

    Parameters
    ----------
    problem : MixtureProblem
    best, other : Mixture
        Of one normal noise each.

    Returns
    -------
    normal : bool
    """
    if not problem.normal(other):
        return False
    gaps = problem.points @ best.coordinates - best.centers[best.labels]
    widths = problem.widths_in(best.coordinates)[:, None] / problem.d
    if best.shape == "tied":
        axes = axes_by_tails(gaps, problem.weights)
        gaps = gaps @ (axes / np.linalg.norm(axes, axis=0))
    squares = np.maximum(gaps**2 + widths, _LEAST_SQUARE * best.scales.min())
    log_sizes, n_rows = np.log(squares) / 2, problem.n_rows

    def log_likelihoods(exponent):
        powers = problem.weights @ np.exp(exponent * log_sizes) / n_rows
        log_widths = np.log(exponent * powers) / exponent
        unit = 1 / exponent + math.log(2) + math.lgamma(1 + 1 / exponent)
        return -n_rows * (unit + log_widths)

    likeliest = np.max([log_likelihoods(p) for p in _EXPONENTS], axis=0)
    gains = likeliest - log_likelihoods(2.0) - math.log(n_rows) / 2
    gain = float(np.maximum(gains, 0.0).sum())
    enough = best.density_evidence + gain
    return gain < LEAST_GAIN or enough < other.density_evidence


def _log_likelihood(mixture):
    return mixture.log_likelihoods[0]


def _of_path(problem, best, near):
    """Yield the k-means solutions in the coordinates of a mixture as mixtures."""
    rows, centers = _rows_in(problem, best)
    rng, weights = np.random.default_rng(0), rows.weights
    path = Path.find(rows.points, weights, near[-1], False, rng, [centers], near)
    labels = np.empty(len(problem.points), dtype=np.int64)
    for k in near:
        squares = cdist(rows.points, path.centers[k - 1, :k], "sqeuclidean")
        labels[problem.order] = squares.argmin(axis=1)
        yield problem.cut(best, np.unique(labels, return_inverse=True)[1])


def _rows_in(problem, mixture):
    """Return the points in the coordinates of a mixture, and its centres.

    With the shape "tied", neither the order of the points nor the axes depend on the
    columns: the axes are those of the points' variance, to the side of the longer tail.
    """
    points, centers = problem.points @ mixture.coordinates, mixture.centers
    weights, spreads = problem.weights, problem.widths_in(mixture.coordinates)
    if mixture.shape == "tied":
        mean = weights @ points / problem.n_rows
        gaps = points - mean
        axes = np.linalg.eigh((gaps * weights[:, None]).T @ gaps)[1]
        axes = axes * np.where(weights @ (gaps @ axes) ** 3 < 0, -1.0, 1.0)
        points, centers = points @ axes, centers @ axes
    order = problem.order
    rows = Rows.single(np.ascontiguousarray(points[order]), weights[order])
    return replace(rows, spreads=spreads[order]), centers
