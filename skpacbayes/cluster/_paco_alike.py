"""Number of clusters of one shape and one normal noise, where the evidence is close."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ._paco_calibration import UNDECIDED, Splitting, close_sizes
from ._paco_covariances import covariance_gain
from ._paco_path import Path, noise_scales
from ._paco_rows import Rows

# Number of iterations of EM of a size that was not fitted to convergence.
_MAX_ITER = 40


def decided_by_noise(search, best):
    """Return the mixture of largest normalised quasi-likelihood in place of `best`.

    The integrated completed likelihood penalises overlap. If one normal noise describes
    all clusters and the evidence of several numbers is close, the normalised
    quasi-likelihood decides, in the coordinates in which the clusters of each number
    are round. The calibration does the same where clusters are round in the columns.

    Other numbers are chosen only if the noise has the kurtosis of a normal one, and
    covariances of their own do not describe the clusters better: otherwise pieces of
    clusters would be found.

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
    problem, sizes = search.problem, dict(search.solutions[best.kind])
    near = close_sizes(sizes, UNDECIDED, best.n_clusters, search.most_clusters)
    near = range(near[0], min(near[-1] + 1, search.most_clusters) + 1)
    for start in search.mixtures:
        k = start.n_clusters
        if start.shape == best.shape and k in near and k > 1:
            fitted = problem.fit(start, *best.kind, _MAX_ITER)
            if fitted is not None:
                sizes[k] = max(sizes.get(k, fitted), fitted, key=_log_likelihood)
    several = [sizes[k] for k in near if k in sizes]
    densest = max(several, key=partial(_log_quasi_likelihood, problem))
    k = densest.n_clusters
    if k == best.n_clusters or not problem.normal(densest):
        return best
    if k > 1 and covariance_gain(problem, densest, densest.shape, 1.0) > 0:
        return best
    search.keep(densest)
    return densest


def _log_likelihood(mixture):
    return mixture.log_likelihoods[0]


def _log_quasi_likelihood(problem, mixture):
    """Return the log evidence of the normalised quasi-likelihood."""
    k, points = mixture.n_clusters, problem.points @ mixture.coordinates
    rows = Rows.single(np.ascontiguousarray(points), problem.weights)
    rows = replace(rows, spreads=problem.widths_in(mixture.coordinates))
    rng = np.random.default_rng(0)
    path = Path.find(
        rows.points, rows.weights, k, False, rng, [mixture.centers], near=[k]
    )
    splitting = Splitting(problem.d, math.nan, manhattan=False)
    return noise_scales(path, rows, splitting, sizes=[k])[0].evidence
