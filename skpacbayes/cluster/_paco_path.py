"""k-means (or k-medians) solutions for every number of clusters, and their noise."""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import rel_entr

from .._kernels.kmeans import WeightedPoints
from .._kernels.paco_noise import leaving_scales
from ._paco_cells import metric_of
from ._paco_chain import kernel_points, loss_and_owners
from ._units import exponent_of

_N_DRAWS = 128
# Largest number of rows whose evidence counts: more rows would only refute the
# distribution of the noise.
LARGEST_EVIDENCE = 1000
EVIDENCE_OF_CLUSTER = 100
# Noise scales that are tried, over the scale that fits without truncation.
_FACTORS = np.exp(np.arange(0.0, 1.5, 1e-3))


@dataclass(frozen=True)
class Path:
    """The best solutions found for 1, ..., max_clusters clusters.

    `centers` (max_clusters, max_clusters, n_features); `n_found`: number of distinct
    solutions, as with more clusters every point is a centre; `losses` (max_clusters,);
    `cell_weights`, `cell_losses` (max_clusters, max_clusters).
    """

    centers: np.ndarray
    n_found: int
    losses: np.ndarray
    cell_weights: np.ndarray
    cell_losses: np.ndarray

    @classmethod
    def find(cls, points, weights, max_clusters, manhattan, rng, starts=(), near=None):
        """Find solutions for weighted points; `starts`: further starts to try.

        Each number of clusters tries the previous solution with one more centre: at the
        farthest point, and at a point of each of the two costliest cells drawn by its
        loss; the first of `max_clusters` seeds (D^2 seeding); and the `starts` of that
        size. The best after four iterations goes on until Lloyd's algorithm stops. The
        path ends early when every point is a centre. `near`: numbers of clusters
        searched in this way (None: all). The other numbers make two iterations from
        their first start, or from the farthest point. Numbers in `near` that have a
        start of their size try their starts only.
        """
        n_features = points.shape[1]
        path = cls(
            np.zeros((max_clusters, max_clusters, n_features)),
            max_clusters,
            np.zeros(max_clusters),
            np.zeros((max_clusters, max_clusters)),
            np.zeros((max_clusters, max_clusters)),
        )
        cells = Cells(points, weights, manhattan)
        seeds = cells.draw_centers(max_clusters, rng)
        best = np.zeros((1, n_features))
        for k in range(1, max_clusters + 1):
            if k > 1:
                if not cells.costs.max() > 0:
                    return path._ending_at(k - 1)
                trials = [start.copy() for start in starts if len(start) == k]
                if near is None or (k in near and not trials):
                    trials += [*cells.enlarged(best, rng), seeds[:k].copy()]
                elif not trials:
                    trials = [next(cells.enlarged(best, rng))]
                if len(trials) > 1:
                    best = min(trials, key=lambda trial: cells.run_lloyd(trial, 4))
                else:
                    best = trials[0]
            thorough = near is None or k in near
            n_iter = 1 if k == 1 else 50 if thorough else 2
            path.losses[k - 1] = cells.run_lloyd(best, n_iter)
            path.centers[k - 1, :k] = best
            path.cell_weights[k - 1, :k] = cells.by_cell(weights, k)
            path.cell_losses[k - 1, :k] = cells.by_cell(cells.costs, k)
        return path

    def _ending_at(self, n_found):
        """Return the path with the solutions after `n_found` clusters repeated."""
        last = n_found - 1
        self.centers[n_found:, :n_found] = self.centers[last, :n_found]
        self.centers[n_found:, n_found:] = self.centers[0, 0]
        for values in (self.losses, self.cell_weights, self.cell_losses):
            values[n_found:] = values[last]
        return replace(self, n_found=n_found)

    def solution(self, n_clusters):
        """Return the centres of the solution with `n_clusters`, each owning a point."""
        owning = self.cell_weights[n_clusters - 1, :n_clusters] > 0
        return self.centers[n_clusters - 1, :n_clusters][owning].copy()

    def deviations(self, manhattan):
        """Return the mean absolute deviation per feature by cell; None if squared."""
        if not manhattan:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.cell_losses / self.cell_weights / self.centers.shape[2]
        return np.where(self.cell_weights > 0, mean, 0.0)


class Cells(WeightedPoints):
    """Weighted points, and the cells of the last centres that were run."""

    @property
    def costs(self):
        """Weighted loss of each point."""
        return self.weights * self.losses

    def by_cell(self, values, n_clusters):
        """Sum `values` of the points over each cell."""
        return np.bincount(self.labels, values, minlength=n_clusters)

    def enlarged(self, centers, rng):
        """Yield starts with one more centre than `centers`, those of the last run."""
        costs = self.costs
        farthest = np.argmax(np.where(self.weights > 0, self.losses, 0))
        yield np.vstack([centers, self.points[farthest]])
        cell_costs = self.by_cell(costs, len(centers))
        for cell in np.argsort(-cell_costs, kind="stable")[:2]:
            drawn = _draw(np.where(self.labels == cell, costs, 0), rng)
            yield np.vstack([centers, self.points[drawn]])


def _draw(weights, rng):
    """Draw an index in proportion to `weights`; the last one if all are zero."""
    passed = np.cumsum(weights)
    place = np.searchsorted(passed, rng.random() * passed[-1], side="right")
    return min(place, len(weights) - 1)


@functools.lru_cache(maxsize=8)
def _noise(n_features, manhattan):
    """Return fixed draws of unit noise (n_draws, n_features)."""
    draws = np.random.default_rng(0)
    size = (_N_DRAWS, n_features)
    return draws.laplace(size=size) if manhattan else draws.normal(size=size)


class NoiseCells:
    """log Z(c, s): the log of the integral over rows of exp(-loss / unit).

    The cells of the centres c truncate the noise distributions. The truncated share is
    estimated on a fixed set of draws. A draw that stays in the cell of its centre at
    one scale stays there at every smaller scale: `leaving` holds the scales at which
    the draws leave, sorted. Scales above `largest` are not exact. `leaving_by_cell`
    (n_draws, n_centers) are the same, cell by cell.
    """

    def __init__(self, centers, manhattan, largest):
        self.manhattan = manhattan
        self.n_features = centers.shape[1]
        noise = _noise(self.n_features, manhattan)
        if manhattan:
            centers = np.ascontiguousarray(centers)
            gaps = cdist(centers, centers, "cityblock")
            leaving = np.empty((_N_DRAWS, len(centers)))
            leaving_scales(noise, centers, gaps, largest, leaving)
        else:
            # s z leaves c_j for c_i where s > |c_i - c_j|^2 / (2 z'(c_i - c_j)) > 0.
            along = noise @ centers.T
            gaps = cdist(centers, centers, "sqeuclidean")
            apart = gaps > 4 * np.finfo(float).tiny  # so that its inverse is finite
            nearness = np.divide(2, gaps, out=np.zeros_like(gaps), where=apart)
            rates = (along[:, None, :] - along[:, :, None]) * nearness
            with np.errstate(divide="ignore"):
                leaving = 1 / np.maximum(rates.max(axis=2), 0)
        self.leaving_by_cell = leaving
        self.leaving = np.sort(leaving, axis=None)

    def stay(self, scales):
        """Return the sum over centres of the share of draws that stay in their cell."""
        return (self.leaving.size - np.searchsorted(self.leaving, scales)) / _N_DRAWS

    def log_normaliser(self, scales):
        """Return log Z at noise scales."""
        return self._log_normaliser(scales, self.stay(scales))

    def weighted_log_normaliser(self, scale, weights):
        """Return log Z at one noise scale, with a weight for each cell."""
        stay = weights @ (self.leaving_by_cell >= scale).mean(axis=0)
        return self._log_normaliser(scale, stay)

    def _log_normaliser(self, scales, stay):
        unit = math.log(2) if self.manhattan else 0.5 * math.log(2 * math.pi)
        return self.n_features * (unit + np.log(scales)) + np.log(
            np.maximum(stay, 0.5 / _N_DRAWS)
        )


def unit(scale, manhattan):
    """Return the loss unit of a noise scale: 2 s^2, or s for the Manhattan loss."""
    return scale if manhattan else 2 * scale**2


def scale_of(centers, loss, n_rows, manhattan, floor):
    """Return the likeliest noise scale about `centers`, and its log-likelihood.

    `loss`: cumulative loss of the `n_rows` rows at the centres. The quasi-likelihood
    exp(-loss / unit) / Z(c, s) is maximised over s >= floor.
    """
    start = loss / (n_rows * centers.shape[1])
    start = max(start if manhattan else math.sqrt(start), floor)
    scales = start * _FACTORS
    cells = NoiseCells(centers, manhattan, scales[-1])
    fits = -loss / unit(scales, manhattan) - n_rows * cells.log_normaliser(scales)
    best = np.argmax(fits)
    return float(scales[best]), float(fits[best])


@dataclass(frozen=True)
class NoiseFit:
    """A solution of the path, with its likeliest noise scale.

    `evidence`: log evidence, of a limited number of rows; `shares`: of the clusters,
    times their number, or None if they are equal.
    """

    evidence: float
    scale: float
    n_clusters: int
    centers: np.ndarray
    shares: np.ndarray | None
    n_counting: float

    def of_rows(self, rows, manhattan):
        """Return the contribution of each row to the evidence, up to a constant."""
        losses = cdist(rows.points, self.centers, metric_of(manhattan))
        nearest = losses.argmin(axis=1)
        fits = -losses[np.arange(len(losses)), nearest] / unit(self.scale, manhattan)
        if self.shares is not None:
            fits += np.log(np.maximum(self.shares, 1e-300))[nearest]
        return self.n_counting / rows.weights.sum() * fits


def noise_scales(path, rows, splitting, scale=None, sizes=None):
    """Return noise scales and evidence for numbers of clusters, best first.

    The evidence is the normalised quasi-likelihood at the solution of the path minus
    `Splitting.evidence_cost`. Each cell has its own share of the rows where that gains
    more than its penalty. The evidence of many rows is scaled to that of 1,000: real
    noise is not exactly normal, and with enough rows any cell would be split. `scale`:
    the noise scale, if given; `sizes`: the numbers of clusters to compare (None: all).
    Returns a list of `NoiseFit`.
    """
    manhattan = splitting.manhattan
    n_rows = float(rows.weights.sum())
    evidence = min(n_rows, LARGEST_EVIDENCE)
    if sizes is not None:  # enough rows for each cluster
        evidence = min(n_rows, max(evidence, EVIDENCE_OF_CLUSTER * sizes[-1]))
    n_features = path.centers.shape[2]
    single = rows_loss(rows, path.centers[0, :1], manhattan)
    floor = floor_scale(single, n_rows, n_features, manhattan)
    largest = min(path.n_found, max(1, int(n_rows) // 2))
    fits = []
    for k in range(1, largest + 1) if sizes is None else sizes:
        if k > largest:
            break
        centers = path.centers[k - 1, :k]
        loss = rows_loss(rows, centers, manhattan)
        if scale is None:
            likeliest, fit = scale_of(centers, loss, n_rows, manhattan, floor)
        else:
            likeliest = scale
            fit = -loss / unit(scale, manhattan)
            cells = NoiseCells(centers, manhattan, scale)
            fit -= n_rows * cells.log_normaliser(scale)
        cost = splitting.evidence_cost(k, evidence, likeliest)
        shares = path.cell_weights[k - 1, :k] / n_rows
        with_shares = n_rows * rel_entr(shares, 1 / k).sum()
        with_shares -= loss / unit(likeliest, manhattan)
        normaliser = log_normaliser(centers, likeliest, k * shares, manhattan)
        with_shares -= n_rows * normaliser
        gain = (with_shares - fit) * evidence / n_rows
        gain = max(gain - 0.5 * (k - 1) * math.log(evidence), 0.0)
        value = fit * evidence / n_rows - cost + gain
        unequal = k * shares if gain > 0 else None
        fits.append(NoiseFit(value, likeliest, k, centers, unequal, evidence))
    if not fits:
        return [NoiseFit(-math.inf, floor, sizes[0], None, None, evidence)]
    return sorted(fits, key=lambda one: (-one.evidence, -one.scale, -one.n_clusters))


def gain_of_shares(shares, n_rows):
    """Return the log evidence of free `shares` of the clusters over equal ones.

    0 if the gain is below log(n_rows) / 2 per share. With equal shares, as in the
    quasi-likelihood, a large cell would be halved to make the shares equal.
    """
    gain = n_rows * rel_entr(shares, 1 / len(shares)).sum()
    return max(gain - 0.5 * (len(shares) - 1) * math.log(n_rows), 0.0)


def shares_of(rows, centers, manhattan):
    """Return the clusters' shares of the rows, or equal ones if these may be true."""
    owners = cdist(rows.points, centers, metric_of(manhattan)).argmin(axis=1)
    shares = np.bincount(owners, rows.weights, minlength=len(centers))
    shares /= shares.sum()
    n_rows = min(float(rows.weights.sum()), LARGEST_EVIDENCE)
    if (shares > 0).all() and gain_of_shares(shares, n_rows) > 0:
        return shares
    return np.full(len(centers), 1 / len(centers))


def rows_loss(rows, centers, manhattan):
    """Return the cumulative loss of `rows` at `centers`."""
    points = kernel_points(rows.points, rows.weights, rows.spreads)
    return loss_and_owners(points, centers, manhattan)[0]


def floor_scale(loss, n_rows, n_features, manhattan):
    """Return the smallest scale that counts as positive: 1e-6 of the overall one."""
    overall = loss / (n_rows * n_features)
    overall = overall if manhattan else math.sqrt(overall)
    return 1e-6 * overall if overall > 0 else 1.0


def log_normaliser(centers, scale, weights, manhattan):
    """Return log Z for centres and a noise scale in the units of the data."""
    centers = centers - centers.mean(axis=0)
    exponent = exponent_of(np.append(centers, scale))
    scale = np.ldexp(scale, -exponent)
    cells = NoiseCells(np.ldexp(centers, -exponent), manhattan, scale)
    log_z = cells.weighted_log_normaliser(scale, weights)
    return log_z + centers.shape[1] * exponent * math.log(2)
