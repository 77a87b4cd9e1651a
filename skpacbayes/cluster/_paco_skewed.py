"""Clusters with skewed noise, which symmetric components would cut into pieces."""

import math

import numpy as np
from scipy.special import gamma

from ._paco_fitting import PULL
from ._paco_mixture import LEAST_GAIN

# Exponents of the tails: from exponential (1) over normal (2) to lighter than normal.
_EXPONENTS = (1.0, 1.5, 2.0, 4.0)
# Quantiles of the rows along an axis that are tried as the mode.
_MODES = np.concatenate(
    [[0, 0.01, 0.03, 0.06], np.linspace(0.1, 0.9, 13), [0.94, 0.97, 0.99, 1]]
)
# Approximate gain in log evidence per row along an axis: 0.33 for exponential noise.
_MOST_GAIN = 0.35
# Least number of rows, as evidence, of a cluster that is tested for skewness.
_FEWEST_ROWS = 3.0
# Squared standard errors by which the two sides of an axis must differ to be tested.
_LEAST_DIFFERENCE = 5.0
# Number of directions per cluster, of rows they start from, and of iterations.
_MOST_DIRECTIONS, _N_STARTS, _MAX_ITER = 5, 4, 12


class NoiseGains:
    """Gains in evidence of mixtures whose clusters have other noise than components.

    `found`: for each mixture tested, the gain in log evidence, 0 if there is none, and
    the log ratios of the densities of the points (n_points,), other noise over that of
    the components.
    """

    def __init__(self, problem):
        self.problem = problem
        self.found = {}

    @property
    def any(self):
        """Whether any tested mixture gains."""
        return any(gain > 0 for gain, _ in self.found.values())

    def gain(self, mixture):
        """Return the gain in log evidence; 0 if not tested."""
        return self.found.get(mixture, (0.0, 0.0))[0]

    def log_ratios(self, mixture):
        """Return the log ratios of the densities of the points; 0 if not tested."""
        return self.found.get(mixture, (0.0, 0.0))[1]

    def learn(self, mixture, gain, log_ratios):
        """Keep the gain of a mixture, and the log ratios if there is one."""
        self.found[mixture] = (gain, log_ratios) if gain > 0 else (0.0, 0.0)


class SkewedClusters(NoiseGains):
    """Gains in evidence of mixtures whose clusters may be skewed along axes.

    Along an axis the noise of a skewed cluster has an asymmetric exponential power
    distribution [1]_: to each side of the mode the density falls as exp(-|x /
    width|^exponent), with a width for each side. The clusters keep their rows. An axis
    is skewed if this raises the share of the log-likelihood that counts as evidence,
    relative to one width for both sides, by more than log(n_rows) / 2 for each
    parameter. The axes are the features. With the shape "tied", whose coordinates mix
    the features, they are the directions of largest third moment in each cluster, which
    count as parameters.

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
        super().__init__(problem)
        self.share = problem.n_evidence / problem.n_rows
        self.clusters = {}

    @property
    def most(self):
        """Approximate largest gain of skewed clusters in log evidence."""
        return _MOST_GAIN * self.problem.n_evidence * self.problem.d

    def most_of(self, mixture):
        """Return an upper bound of the gain of skewed clusters in log evidence."""
        n_rows = np.bincount(mixture.labels, self.problem.weights)
        bounds = self._bound(n_rows)[:, None] - self._prices(mixture.shape)
        return float(np.maximum(bounds, 0.0).sum())

    def possible(self, shape):
        """Return whether a cluster of all rows may gain by skewness."""
        return self._bound(self.problem.n_rows) > self._prices(shape).min()

    def _bound(self, n_rows):
        """Return an upper bound of the gain along an axis of a cluster of `n_rows`.

        For any mode and exponent, the density without the mirror image of the narrower
        side is at most twice as large, and pseudo-rows count as rows.
        """
        return self.share * (n_rows + PULL) * math.log(2)

    def _prices(self, shape):
        """Return the penalties of the axes along which a cluster may be skewed.

        A feature counts as one parameter, plus the log of the number of features [1]_.
        A direction among m dimensions has m - 1 parameters more.

        References
        ----------
        .. [1] J. Chen and Z. Chen (2008). Extended Bayesian information criteria for
           model selection with large model spaces. Biometrika 95.
        """
        d, half_log = self.problem.d, math.log(self.problem.n_evidence) / 2
        if shape == "tied":
            return half_log * (d - np.arange(min(d, _MOST_DIRECTIONS)))
        return np.full(d, half_log + math.log(d))

    def look_at(self, mixture):
        """Test the clusters of a mixture for skewness."""
        if mixture in self.found:
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
        self.learn(mixture, gain, log_ratios)

    def _cluster(self, shape, points, widths, weights):
        """Return the gain in evidence of a cluster, and its rows' log ratios."""
        log_ratios, gain, n_rows = np.zeros(len(points)), 0.0, weights.sum()
        bound, prices = self._bound(n_rows), self._prices(shape)
        if self.share * n_rows < _FEWEST_ROWS or bound <= prices.min():
            return gain, log_ratios
        gaps = points - weights @ points / n_rows
        axes = _directions if shape == "tied" else _features
        for along, price in zip(axes(gaps, weights), prices, strict=False):
            if along is not None and bound > price:
                ratios = log_ratios_along(along, widths, weights)
                gained = self.share * weights @ ratios - price
                if gained > 0:
                    log_ratios += ratios
                    gain += gained
        return gain, log_ratios


def _features(gaps, weights):
    """Yield the rows along each feature; None if it is not skewed."""
    for axis, differ in enumerate(_sides_differ(gaps, weights)):
        yield gaps[:, axis] if differ else None


def _directions(gaps, weights):
    """Yield rows along orthogonal directions of large third moment; None as above.

    Each direction maximises the third moment among those orthogonal to the ones before,
    starting from the farthest rows.
    """
    for _ in range(min(gaps.shape[1], _MOST_DIRECTIONS)):
        squares = (gaps**2).sum(axis=1)
        directions = gaps[np.argsort(-squares, kind="stable")[:_N_STARTS]].T
        for _ in range(_MAX_ITER):
            sizes = np.sqrt((directions**2).sum(axis=0))
            directions = directions / np.maximum(sizes, 1e-300)
            directions = gaps.T @ (weights[:, None] * (gaps @ directions) ** 2)
        sizes = np.sqrt((directions**2).sum(axis=0))
        best = sizes.argmax()
        if not sizes[best] > 0:
            return
        best = directions[:, best] / sizes[best]
        along = gaps @ best
        yield along if _sides_differ(along[:, None], weights)[0] else None
        gaps = gaps - along[:, None] * best


def log_ratios_along(gaps, widths, weights):
    """Return log density ratios of rows along an axis, skewed over symmetric.

    Parameters
    ----------
    gaps, widths, weights : ndarray of shape (n_points,)
        Positions minus their mean; variances of the rows merged into the points;
        weights.

    Returns
    -------
    log_ratios : ndarray of shape (n_points,)
        At the likeliest parameters of each density, with widths shrunk to those of
        normal noise.
    """
    if widths.any():  # half of the merged rows to each side of their mean
        apart, halves = np.sqrt(widths), np.tile(weights / 2, 2)
        both = np.concatenate([gaps - apart, gaps + apart])
        log_ratios = log_ratios_along(both, np.zeros(len(both)), halves)
        return log_ratios.reshape(2, -1).mean(axis=0)
    symmetric, skewed = fits_along(gaps, weights)
    return skewed - symmetric


def fits_along(gaps, weights):
    """Return log densities of rows along an axis, symmetric and skewed.

    Parameters and likeliest densities as in `log_ratios_along`, without merged rows.
    """
    n_rows = weights.sum()
    variance = weights @ gaps**2 / n_rows
    gaps = gaps - quantile(gaps, _MODES, weights)[:, None]
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
    return symmetric[1], skewed[1]


def _first(pair):
    return pair[0]


def _likeliest(left, right, powers, on_the_right, sides, n_rows, p):
    """Return the largest log-likelihood over the modes, and the rows' log densities.

    `left`, `right` (n_modes,): widths; `sides` (2, n_modes): sums of the `powers`.
    """
    log_normalizers = np.log(left + right) + math.lgamma(1 + 1 / p)
    fits = -n_rows * log_normalizers - sides[0] / left**p - sides[1] / right**p
    mode = int(np.argmax(fits))
    width = np.where(on_the_right[mode], right[mode], left[mode])
    return fits[mode], -log_normalizers[mode] - powers[mode] / width**p


def quantile(gaps, levels, weights):
    """Return quantiles of weighted rows, interpolated if the weights are equal."""
    if np.ptp(weights) == 0:
        return np.quantile(gaps, levels, axis=0)
    method = "inverted_cdf"
    return np.quantile(gaps, levels, axis=0, weights=weights, method=method)


def _sides_differ(gaps, weights):
    """Return whether the two sides of axes differ in their mean (squared) distances."""
    n_rows, squares = weights.sum(), gaps**2
    by_square = (weights @ (squares * np.sign(gaps))) ** 2
    by_distance = (n_rows * quantile(gaps, 0.5, weights)) ** 2
    return (by_square > _LEAST_DIFFERENCE * (weights @ squares**2)) | (
        by_distance > _LEAST_DIFFERENCE * (weights @ squares)
    )
