"""Clusters whose noise is skewed, so that they are not cut where they are long."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gamma

from ._paco_fitting import PULL
from ._paco_mixture import LEAST_GAIN

# Exponents of the tails: exponential, normal, between, and flatter than normal.
_EXPONENTS = (1.0, 1.5, 2.0, 4.0)
# Ranks, of the rows along an axis, at which the mode is looked for.
_MODES = np.concatenate(
    [[0, 0.01, 0.03, 0.06], np.linspace(0.1, 0.9, 13), [0.94, 0.97, 0.99, 1]]
)
# Log evidence that a row gains along an axis, about: exponential noise gains 0.33.
_MOST_GAIN = 0.35
# Rows' worth of evidence of a cluster, below which it is not looked at.
_FEWEST_ROWS = 3.0
# Squared standard errors by which the two sides of an axis must differ to be looked at.
_LEAST_DIFFERENCE = 5.0
# Directions of each cluster that are looked at, rows they start from, and iterations.
_MOST_DIRECTIONS, _N_STARTS, _MAX_ITER = 5, 4, 12


@dataclass(frozen=True)
class Skewness:
    """What skewed noise adds to a mixture.

    `gain`: to its evidence, 0 if no cluster is skewed; `log_ratios` (n_points,): of the
    densities of the points, skewed over symmetric.
    """

    gain: float
    log_ratios: np.ndarray


class SkewedClusters:
    """Mixtures whose clusters may be skewed along the axes where this pays.

    Along an axis the noise of a skewed cluster has an asymmetric exponential power
    distribution [1]_: to each side of the mode the density falls as
    exp(-|x / width|^exponent), with a width for each side. The clusters keep their
    rows. An axis is skewed if the log-likelihood of the rows, of which the usual share
    is evidence, is higher than with one width for both sides by more than half a log of
    the number of rows for each parameter. The axes are the features; with a covariance
    matrix for all clusters, whose coordinates are any, those of largest third moment in
    each cluster, which are parameters too.

    Parameters
    ----------
    problem : MixtureProblem

    References
    ----------
    .. [1] C. Fernandez, J. Osiewalski and M. F. J. Steel (1995). Modeling and inference
       with v-spherical distributions. Journal of the American Statistical Association
       90.
    """

    def __init__(self, problem):
        self.problem = problem
        self.share = problem.n_evidence / problem.n_rows
        self.mixtures, self.clusters = {}, {}

    @property
    def most(self):
        """About the largest evidence that skewed clusters gain."""
        return _MOST_GAIN * self.problem.n_evidence * self.problem.d

    @property
    def any(self):
        """Whether the clusters of a mixture looked at are skewed."""
        return any(skewed.gain > 0 for skewed in self.mixtures.values())

    def gain(self, mixture):
        """Return the evidence that skewed clusters gain; 0 if not looked at."""
        known = self.mixtures.get(mixture)
        return known.gain if known else 0.0

    def log_ratios(self, mixture):
        """Return the log densities of the points, over those of symmetric clusters."""
        known = self.mixtures.get(mixture)
        return known.log_ratios if known else 0.0

    def look_at(self, mixture):
        """Find the skewed clusters of a mixture fitted to the points of the problem."""
        if mixture in self.mixtures:
            return
        problem, coordinates = self.problem, mixture.coordinates
        points = problem.points @ coordinates
        widths = problem.widths_in(coordinates) / problem.d
        log_ratios, gain = np.zeros(len(points)), -LEAST_GAIN
        inside = problem.log_joint(mixture) > mixture.log_background
        for j in range(mixture.n_clusters):
            members = np.flatnonzero(inside & (mixture.labels == j))
            key = coordinates.tobytes(), members.tobytes()
            if key not in self.clusters:
                of_cluster = points[members], widths[members], problem.weights[members]
                self.clusters[key] = self._cluster(mixture.shape, *of_cluster)
            gained, log_ratios[members] = self.clusters[key]
            gain += gained
        if gain <= 0:
            gain, log_ratios = 0.0, 0.0 * log_ratios
        self.mixtures[mixture] = Skewness(gain, log_ratios)

    def _cluster(self, shape, points, widths, weights):
        """Gain in evidence of a cluster, and log ratios of its rows' densities."""
        log_ratios, gain = np.zeros(len(points)), 0.0
        if self.share * weights.sum() < _FEWEST_ROWS:
            return gain, log_ratios
        gaps = points - weights @ points / weights.sum()
        half_log = math.log(self.problem.n_evidence) / 2
        axes = _directions if shape == "tied" else _features
        for along, price in axes(gaps, weights, half_log):
            ratios = log_ratios_along(along, widths, weights)
            gained = self.share * weights @ ratios - price
            if gained > 0:
                log_ratios += ratios
                gain += gained
        return gain, log_ratios


def _features(gaps, weights, half_log):
    """Yield the rows along each feature that may be skewed, and the price of it.

    One parameter, and the log of the number of features that it might be [1]_.

    References
    ----------
    .. [1] J. Chen and Z. Chen (2008). Extended Bayesian information criteria for model
       selection with large model spaces. Biometrika 95.
    """
    for axis in np.flatnonzero(_sides_differ(gaps, weights)):
        yield gaps[:, axis], half_log + math.log(gaps.shape[1])


def _directions(gaps, weights, half_log):
    """Yield the rows along orthogonal directions of large third moment, and the price.

    Each maximises it among those orthogonal to the ones before, from the rows that are
    farthest away. A direction has so many parameters, less one, as it has dimensions.
    """
    d = gaps.shape[1]
    for n_before in range(min(d, _MOST_DIRECTIONS)):
        squares = (gaps**2).sum(axis=1)
        largest, best = 0.0, None
        for start in np.argsort(-squares, kind="stable")[:_N_STARTS]:
            direction = gaps[start]
            for _ in range(_MAX_ITER):
                direction = direction / max(np.linalg.norm(direction), 1e-300)
                direction = (weights * (gaps @ direction) ** 2) @ gaps
            size = np.linalg.norm(direction)
            if size > largest:
                largest, best = size, direction / size
        if best is None:
            return
        along = gaps @ best
        if _sides_differ(along[:, None], weights)[0]:
            yield along, (d - n_before) * half_log
        gaps = gaps - along[:, None] * best


def log_ratios_along(gaps, widths, weights):
    """Log densities of rows along an axis, skewed over symmetric.

    Parameters
    ----------
    gaps, widths, weights : ndarray of shape (n_points,)
        Places, less their mean; variances of the rows merged into them; weights.

    Returns
    -------
    log_ratios : ndarray of shape (n_points,)
        With the likeliest parameters of each, its widths pulled to those of normal
        noise.
    """
    if widths.any():  # half of the merged rows to each side of their mean
        apart, halves = np.sqrt(widths), np.tile(weights / 2, 2)
        both = np.concatenate([gaps - apart, gaps + apart])
        log_ratios = log_ratios_along(both, np.zeros(len(both)), halves)
        return log_ratios.reshape(2, -1).mean(axis=0)
    n_rows = weights.sum()
    variance = weights @ gaps**2 / n_rows
    gaps = gaps - _quantile(gaps, _MODES, weights)[:, None]
    distances, right = np.abs(gaps), gaps > 0
    symmetric, skewed = (-math.inf, None), (-math.inf, None)
    for p in _EXPONENTS:
        powers = distances**p
        sides = np.array([~right, right]) * powers @ weights
        normal = (2 * variance) ** (p / 2) * gamma((p + 1) / 2) / math.sqrt(math.pi)
        pulled = sides + PULL / 2 * normal
        factor = p / (n_rows + PULL)
        same = (factor * pulled.sum(axis=0)) ** (1 / p)
        ratio = (pulled[1] / pulled[0]) ** (1 / (p + 1))
        left = (factor * pulled[0] * (1 + ratio)) ** (1 / p)
        of_this = powers, right, sides, n_rows, p
        symmetric = max(symmetric, _likeliest(same, same, *of_this), key=_first)
        skewed = max(skewed, _likeliest(left, ratio * left, *of_this), key=_first)
    return skewed[1] - symmetric[1]


def _first(pair):
    return pair[0]


def _likeliest(left, right, powers, on_the_right, sides, n_rows, p):
    """Largest log-likelihood over the modes, and the log densities of the rows there.

    `left`, `right` (n_modes,): widths; `sides` (2, n_modes): sums of the `powers`.
    """
    log_normalizers = np.log(left + right) + math.lgamma(1 + 1 / p)
    fits = -n_rows * log_normalizers - sides[0] / left**p - sides[1] / right**p
    mode = int(np.argmax(fits))
    width = np.where(on_the_right[mode], right[mode], left[mode])
    return fits[mode], -log_normalizers[mode] - powers[mode] / width**p


def _quantile(gaps, levels, weights):
    """Quantiles of rows: of points of equal weights, between the two next to each."""
    if np.ptp(weights) == 0:
        return np.quantile(gaps, levels, axis=0)
    method = "inverted_cdf"
    return np.quantile(gaps, levels, axis=0, weights=weights, method=method)


def _sides_differ(gaps, weights):
    """Whether squares or distances from the mean differ between the sides of axes."""
    n_rows, squares = weights.sum(), gaps**2
    by_square = (weights @ (squares * np.sign(gaps))) ** 2
    by_distance = (n_rows * _quantile(gaps, 0.5, weights)) ** 2
    return (by_square > _LEAST_DIFFERENCE * (weights @ squares**2)) | (
        by_distance > _LEAST_DIFFERENCE * (weights @ squares)
    )
