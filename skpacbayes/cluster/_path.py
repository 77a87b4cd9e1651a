"""k-means (or k-medians) solutions for every number of clusters, and their noise."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

from .._kernels.kmeans import describe_cells, kmeans_path
from .._kernels.paco import cumulative_loss

_N_DRAWS = 128
# Evidence of at most so many rows counts: beyond, the noise law is what is refuted.
LARGEST_EVIDENCE = 1000


@dataclass(frozen=True)
class Path:
    """The best solutions found for 1, ..., max_clusters clusters.

    `centers` (max_clusters, max_clusters, n_features); `n_found`: the solutions after
    this one repeat it, since every point is a centre; `losses` (max_clusters,);
    `cell_weights`, `cell_losses` (max_clusters, max_clusters).
    """

    centers: np.ndarray
    n_found: int
    losses: np.ndarray
    cell_weights: np.ndarray
    cell_losses: np.ndarray

    @classmethod
    def find(cls, points, weights, max_clusters, manhattan, rng, starts=()):
        """Grow a path over weighted points; `starts`: further solutions to try."""
        n_features = points.shape[1]
        extra = np.zeros((len(starts), max_clusters, n_features))
        sizes = np.array([len(start) for start in starts], dtype=np.int64)
        for row, start in zip(extra, starts, strict=True):
            row[: len(start)] = start[:max_clusters]
        order = np.empty((0, 0), dtype=np.int64)
        if manhattan:
            order = np.ascontiguousarray(np.argsort(points, axis=0).T)
        centers = np.zeros((max_clusters, max_clusters, n_features))
        losses = np.zeros(max_clusters)
        found = kmeans_path(
            points, weights, order, manhattan, extra, sizes, centers, losses, rng
        )
        centers[found:, :found] = centers[found - 1, :found]
        centers[found:, found:] = centers[0, 0]
        losses[found:] = losses[found - 1]
        cell_weights = np.zeros((max_clusters, max_clusters))
        cell_losses = np.zeros((max_clusters, max_clusters))
        describe_cells(points, weights, centers, manhattan, cell_weights, cell_losses)
        return cls(centers, found, losses, cell_weights, cell_losses)

    def solution(self, n_clusters):
        """Centres of the solution with `n_clusters` clusters, each owning a point."""
        owning = self.cell_weights[n_clusters - 1, :n_clusters] > 0
        return self.centers[n_clusters - 1, :n_clusters][owning].copy()

    def deviations(self, manhattan):
        """Mean absolute deviation a feature of each cell; None for squared loss."""
        if not manhattan:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.cell_losses / self.cell_weights / self.centers.shape[2]
        return np.where(self.cell_weights > 0, mean, 0.0)


class NoiseCells:
    """log Z(c, s): log of the integral over rows of exp(-loss / unit).

    The cells of the centres c truncate the laws of the noise about each other; what is
    cut off is counted on a fixed set of draws. A draw that stays in the cell of its
    centre at one scale stays there at every smaller one.
    """

    def __init__(self, centers, manhattan):
        self.centers, self.manhattan = centers, manhattan
        size = (_N_DRAWS, centers.shape[1])
        draws = np.random.default_rng(0)
        self.noise = draws.laplace(size=size) if manhattan else draws.normal(size=size)
        if not manhattan:
            # s z stays at c_j while 2 s z'(c_i - c_j) <= |c_i - c_j|^2 for all i.
            along = self.noise @ centers.T
            steps = along[:, None, :] - along[:, :, None]
            gaps = cdist(centers, centers, "sqeuclidean")
            np.fill_diagonal(gaps, np.inf)
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = 2 * steps / gaps
            self.steepest = np.nan_to_num(slopes, nan=0.0).max(axis=2)

    def stay(self, scale):
        """Sum over the centres of the share of draws that stay in their cell."""
        if not self.manhattan:
            return (self.steepest * scale <= 1).sum() / _N_DRAWS
        n_clusters = len(self.centers)
        copies = (self.centers[:, None] + scale * self.noise).reshape(
            -1, self.noise.shape[1]
        )
        nearest = cdist(copies, self.centers, "cityblock").argmin(axis=1)
        return (nearest == np.repeat(np.arange(n_clusters), _N_DRAWS)).sum() / _N_DRAWS

    def log_normaliser(self, scale):
        """Return log Z at a noise scale."""
        log_one = math.log(2 * scale)
        if not self.manhattan:
            log_one = 0.5 * math.log(2 * math.pi) + math.log(scale)
        share = max(self.stay(scale), 0.5 / _N_DRAWS)
        return self.centers.shape[1] * log_one + math.log(share)


def unit(scale, manhattan):
    """Return the loss unit of a noise scale: 2 s^2, or s for the Manhattan loss."""
    return scale if manhattan else 2 * scale**2


def scale_of(centers, loss, n_rows, manhattan, floor):
    """Noise scale that makes rows likeliest round `centers`, and their log-likelihood.

    `loss`: cumulative loss of the `n_rows` rows at the centres. The quasi-likelihood
    exp(-loss / unit) / Z(c, s) is maximised over s >= floor.
    """
    n_features = centers.shape[1]
    start = loss / (n_rows * n_features)
    start = max(start if manhattan else math.sqrt(start), floor)

    cells = NoiseCells(centers, manhattan)

    def cost(log_ratio):
        scale = start * math.exp(log_ratio)
        return loss / unit(scale, manhattan) + n_rows * cells.log_normaliser(scale)

    if cells.stay(1.2 * start) == len(centers):  # nothing is cut off nearby
        return start, -cost(0.0)
    best = minimize_scalar(cost, bounds=(0.0, 1.5), options={"xatol": 5e-3})
    return start * math.exp(best.x), -best.fun


def noise_scale(path, rows, manhattan, scale=None):
    """Noise scale (unless given) and number of clusters that describe the rows best.

    Maximises, over the solutions of the path, the normalised quasi-likelihood less
    half a log of the number of rows per parameter. The evidence of many rows is
    reduced to that of 1,000: real noise is not exactly normal, and with enough rows
    any cell would be split to mend its shape.
    """
    n_rows = float(rows.weights.sum())
    evidence = min(n_rows, LARGEST_EVIDENCE)
    n_features = path.centers.shape[2]
    single = rows_loss(rows, path.centers[0, :1], manhattan)
    floor = floor_scale(single, n_rows, n_features, manhattan)
    best = (-math.inf, floor, 1)
    for k in range(1, min(path.n_found, max(1, int(n_rows) // 2)) + 1):
        centers = path.centers[k - 1, :k]
        loss = rows_loss(rows, centers, manhattan)
        if scale is None:
            likeliest, fit = scale_of(centers, loss, n_rows, manhattan, floor)
        else:
            likeliest = scale
            fit = -loss / unit(scale, manhattan)
            fit -= n_rows * NoiseCells(centers, manhattan).log_normaliser(scale)
        penalty = (k * n_features + 1) / 2 * math.log(evidence)
        value = fit * evidence / n_rows - penalty
        best = max(best, (value, likeliest, k))
    return best[1], best[2]


def rows_loss(rows, centers, manhattan):
    """Cumulative loss of `rows` at `centers`."""
    return cumulative_loss(
        np.ascontiguousarray(rows.points.T),
        rows.weights,
        rows.spreads,
        np.zeros((0, 3)),
        np.ascontiguousarray(centers),
        len(centers),
        manhattan,
    )[0]


def floor_scale(loss, n_rows, n_features, manhattan):
    """Smallest scale told apart from zero: a millionth of the overall one."""
    overall = loss / (n_rows * n_features)
    overall = overall if manhattan else math.sqrt(overall)
    return 1e-6 * overall if overall > 0 else 1.0
