"""Clusters with cores and halos, which would be taken for two clusters each."""

import math

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from ._paco_mixture import LEAST_GAIN, log_components
from ._paco_skewed import NoiseGains, quantile

# Number of normal parts in the distribution of the log distances, and of iterations of
# EM.
_PARTS, _MAX_ITER = 3, 50
# Quantiles of the log distances from which the means of the parts start, and share of
# the rows nearest to their centres, whose density is constant.
_STARTS, _NEAREST = (0.1, 0.5, 0.9), 0.01
# Least variance of a part, over the variance of the log distances or, if larger, about
# that of normal noise: pairs of rows have equal distances from their centres.
_LEAST_VARIANCE = 0.01
# Distance below which two clusters have one centre, over the root mean square distance
# of the rows of the narrower one from its centre; standard errors that are added to it.
_SAME_CENTER, _STANDARD_ERRORS = 0.5, 2.0


class RadialNoise(NoiseGains):
    """Gains in evidence of mixtures whose clusters have a core and a halo.

    Student noise does not describe all noise that depends on the distance from the
    centre alone: rows may be dense near the centre and have no heavy tails. Each such
    cluster is cut into components with one centre. One cluster in their place gains if
    the distances of the rows of all clusters, over the scale of the cluster, have one
    distribution, here of any form: their logs have a mixture of normal distributions.
    One cluster alone cannot be told from two with one centre.

    Parameters
    ----------
    problem : MixtureProblem
    """

    def look_at(self, mixture):
        """Test the noise of the clusters of a mixture."""
        if mixture in self.found:
            return
        problem, d, n_evidence = self.problem, self.problem.d, self.problem.n_evidence
        coordinates, labels = mixture.coordinates, mixture.labels
        gaps = problem.points @ coordinates - mixture.centers[labels]
        squares = (gaps**2).sum(axis=1) + problem.widths_in(coordinates)
        least = np.trace(problem.merged_in(coordinates))  # smaller ones are not known
        squares = np.maximum(squares, least) / mixture.scales[labels]
        inside = problem.log_joint(mixture) > mixture.log_background
        if not inside.any():
            return
        squares, weights = squares[inside], problem.weights[inside]
        ratios = np.zeros(len(inside))
        ratios[inside] = log_densities_at(np.sqrt(squares), weights, d)
        ratios[inside] -= log_components(squares, 1.0, mixture.dof, d)
        gain = n_evidence / problem.n_rows * float(problem.weights @ ratios)
        gain -= (3 * _PARTS - 1) / 2 * math.log(n_evidence) + LEAST_GAIN
        self.learn(mixture, gain, ratios)


def labels_of_centers(mixture):
    """Return a label for each cluster, the same for clusters with one centre."""
    d, scales = mixture.centers.shape[1], mixture.scales
    squares = cdist(mixture.centers, mixture.centers, "sqeuclidean") / d
    errors = scales / mixture.masses
    errors = errors + errors[:, None]
    least = np.minimum(scales, scales[:, None])
    near = squares < _SAME_CENTER**2 * least + _STANDARD_ERRORS**2 * errors
    return connected_components(near, directed=False)[1]


def log_densities_at(distances, weights, n_features):
    """Return log densities of rows at distances from their centres.

    The density is round, with the distribution of the distances that maximises the
    likelihood of the weighted rows, if their logs are a mixture of normal ones.
    """
    logs, total = np.log(distances), weights.sum()
    nearest, *means = quantile(logs, (_NEAREST, *_STARTS), weights)
    logs = np.maximum(logs, nearest)
    variance = weights @ (logs - weights @ logs / total) ** 2 / total
    variance = max(variance, 1 / (2 * n_features))
    variances, shares = np.full(_PARTS, variance), np.full(_PARTS, 1.0 / _PARTS)
    for _ in range(_MAX_ITER):
        parts = log_components((logs[:, None] - means) ** 2, variances, math.inf, 1)
        parts += np.log(shares)
        densities = np.logaddexp.reduce(parts, axis=1)
        parts = np.exp(parts - densities[:, None]) * weights[:, None]
        masses = np.maximum(parts.sum(axis=0), 1e-300)
        shares, means = masses / total, logs @ parts / masses
        variances = ((logs[:, None] - means) ** 2 * parts).sum(axis=0) / masses
        variances = np.maximum(variances, _LEAST_VARIANCE * variance)
    half = n_features / 2
    log_area = math.log(2) + half * math.log(math.pi) - math.lgamma(half)
    return densities - log_area - n_features * logs
