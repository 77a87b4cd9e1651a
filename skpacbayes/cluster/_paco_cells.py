"""Cells and their own noise scales, tracked along a stream.

A group that has just appeared has few rows and a spread of its own, so one noise scale
for all rows either misses it or splits an old group. The number of cells is therefore
that of a spherical mixture with a scale for each cell (Gaussian cells for the squared
Euclidean loss, Laplace for Manhattan), and the weight of a row in the loss is one over
the scale of its cell.
"""

import math
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from .._kernels import paco_cells as kernels

# Number of pseudo-rows that shrink a scale to the common one, and largest number of
# rows whose evidence counts: with more, misspecification, not noise, would split the
# cells.
_PRIOR_SIZE = 5.0
_LARGEST_EVIDENCE = 150.0
# Standard errors by which the order of rows must differ from a random one.
_IN_TURN = 2.0


@dataclass
class Cells:
    """A spherical mixture: `centers` (n_cells, n_features), `scales`, `shares`.

    A scale is the variance per feature (squared loss) or the mean absolute deviation
    per feature (Manhattan loss).
    """

    centers: np.ndarray
    scales: np.ndarray
    shares: np.ndarray
    objective: float = -math.inf
    log_densities: np.ndarray | None = None

    def without_closest_pair(self):
        """Return the cells with the two closest ones merged."""
        gaps = cdist(self.centers, self.centers)
        np.fill_diagonal(gaps, np.inf)
        i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
        part = self.shares[[i, j]] / self.shares[[i, j]].sum()
        merged = Cells(self.centers.copy(), self.scales.copy(), self.shares.copy())
        merged.centers[i] = part @ self.centers[[i, j]]
        merged.scales[i] = part @ self.scales[[i, j]]
        merged.shares[i] += merged.shares[j]
        return Cells(
            np.delete(merged.centers, j, axis=0),
            np.delete(merged.scales, j),
            np.delete(merged.shares, j),
        )

    def with_cell(self, center, parent):
        """Return the cells and a new one at `center`, split off from its `parent`."""
        shares = np.append(self.shares, self.shares[parent] / 2)
        shares[parent] /= 2
        return Cells(
            np.vstack([self.centers, center]),
            np.append(self.scales, self.scales[parent]),
            shares,
        )


def largest_number(rows, max_cells):
    """Return the largest number of cells, with two rows each on average."""
    return max(1, min(max_cells, int(rows.weights.sum() / 2)))


class CellTracker:
    """Fits `Cells` to the summary of a stream, starting from the last fit."""

    def __init__(self, manhattan):
        self.manhattan = manhattan
        self.known, self.n_cells = {}, 1
        self.origin, self.exponent = None, 0
        self.kind, self.searched_at, self.searched_weight = None, 0.0, 0.0
        self.n_found = 1  # clusters of the best mixture of all kinds
        self.previous = None  # last mixture, its origin and the exponent of its unit

    def follow(self, rows, last_row, max_cells):
        """Return the best cells for `rows`, and store all solutions as next starts.

        `last_row`: None if the rows have no order.
        """
        max_cells = largest_number(rows, max_cells)
        problem = _Problem(rows, self.manhattan)
        latest, best = {}, None
        for n_cells in range(1, max_cells + 1):
            starts = list(self._starts(problem, latest, n_cells, last_row))
            if not starts:
                break
            latest[n_cells] = problem.best(starts)
            if best is None or latest[n_cells].objective > best.objective:
                best = latest[n_cells]
            if n_cells >= len(best.shares) + 2:
                break
        self.known, self.n_cells = latest, len(best.shares)
        return best

    def set_frame(self, origin, exponent):
        """From now on, take rows minus `origin`, in units of 2^exponent."""
        if np.shape(self.origin) != np.shape(origin):  # columns have changed
            self.known = {}
        step = self.exponent - exponent
        power = 1 if self.manhattan else 2
        self.known = {
            n_cells: replace(
                cells,
                centers=np.ldexp(cells.centers, step)
                + np.ldexp(self.origin - origin, -exponent),
                scales=np.ldexp(cells.scales, power * step),
            )
            for n_cells, cells in self.known.items()
        }
        self.origin, self.exponent = origin, exponent

    def __deepcopy__(self, memo):
        """Return a tracker with the same cells, which are replaced, never changed."""
        return copy(self)

    def _starts(self, problem, latest, n_cells, last_row):
        """Return the starts of EM with `n_cells` cells.

        For fewer cells than the last best number minus one, the only start is their
        last solution.
        """
        if n_cells == 1:
            yield problem.single_cell()
            return
        if n_cells in self.known:
            yield self.known[n_cells]
            if n_cells < self.n_cells - 1:
                return
        if n_cells + 1 in self.known:
            yield self.known[n_cells + 1].without_closest_pair()
        fewer = latest[n_cells - 1]
        nearest = cdist(problem.points, fewer.centers, problem.metric).argmin(axis=1)
        unlikely = int(np.argmin(fewer.log_densities))
        yield fewer.with_cell(problem.points[unlikely], nearest[unlikely])
        if last_row is not None:
            gap = cdist(last_row[None], fewer.centers, problem.metric)
            yield fewer.with_cell(last_row, int(gap.argmin()))
        for parent in np.argsort(-fewer.shares)[:3]:
            halves = problem.halves(nearest == parent, fewer.centers[parent])
            if halves is not None:
                split = fewer.with_cell(halves[1], parent)
                split.centers[parent] = halves[0]
                yield split


class _Problem:
    """Weighted points, and the penalised likelihood of cells on them."""

    def __init__(self, rows, manhattan):
        points, weights = rows.points, rows.weights
        self.points, self.weights, self.manhattan = points, weights, manhattan
        self.metric = metric_of(manhattan)
        n_features = points.shape[1]
        self.spreads = spread_losses(rows, manhattan)
        self.columns = np.ascontiguousarray(points.T)
        self.order = np.empty((0, 0), dtype=np.int64)
        if manhattan:
            self.order = np.argsort(self.columns, axis=1)
        n_rows = weights.sum()
        self.tempering = _LARGEST_EVIDENCE / (_LARGEST_EVIDENCE + n_rows)
        center = weights @ points / n_rows
        gap = cdist(points, center[None], self.metric)[:, 0]
        overall = weights @ (gap + self.spreads) / (n_rows * n_features)
        self.single = (center, max(overall, np.finfo(float).tiny))
        self.smallest = max(1e-10 * overall, np.finfo(float).tiny)

    def single_cell(self):
        """All rows in one cell."""
        center, scale = self.single
        return Cells(center[None].copy(), np.array([scale]), np.ones(1))

    def halves(self, members, center):
        """Means of the two halves of a cell along its longest direction."""
        rows = self.points[members]
        if len(rows) < 2:
            return None
        gaps = rows - center
        far = gaps[np.argmax((gaps**2).sum(axis=1))]
        upper = gaps @ far > 0
        if upper.all() or not upper.any():
            return None
        weights = self.weights[members]
        sides = (weights * upper, weights * ~upper)
        return [side @ rows / side.sum() for side in sides]

    def best(self, starts):
        """Run a few iterations from every start, then run the best to convergence."""
        best = starts[0]
        if len(starts) > 1:
            tried = [self._fit(start, 3) for start in starts]
            best = max(tried, key=lambda cells: cells.objective)
        return self._fit(best, 20)

    def _fit(self, start, max_iter):
        """EM from `start`; the result is a new object."""
        cells = Cells(
            np.ascontiguousarray(start.centers, dtype=float).copy(),
            start.scales.copy(),
            start.shares.copy(),
            log_densities=np.empty(len(self.points)),
        )
        shape = len(cells.shares), len(self.points)
        cells.objective = kernels.fit_cells(
            (self.points, self.columns, self.weights, self.spreads, self.order),
            self.manhattan or None,
            (_PRIOR_SIZE, self.tempering, self.smallest),
            max_iter,
            (cells.centers, cells.scales, cells.shares),
            cells.log_densities,
            (*np.empty((2, *shape)), *np.empty((2, shape[0]))),
        )
        return cells


def metric_of(manhattan):
    """Return SciPy's name of the distance in the loss."""
    return "cityblock" if manhattan else "sqeuclidean"


def spread_losses(rows, manhattan):
    """Return the mean loss of merged rows at their mean (Manhattan: if normal)."""
    if not manhattan:
        return rows.spreads
    return np.sqrt(2 / math.pi * rows.spreads * rows.points.shape[1])


@dataclass(frozen=True)
class CellNoise:
    """The noise of the rows, cell by cell.

    `labels` (n_points,): the cell of each point; `sizes` (n_cells,): numbers of rows;
    `scales` (n_cells,), and the `common` scale; `in_turn` (n_cells,): whether
    consecutive rows of a cell are closer than rows in random order, as when a cell
    contains two groups that came one after the other.
    """

    labels: np.ndarray
    sizes: np.ndarray
    scales: np.ndarray
    common: float
    in_turn: np.ndarray


def cell_noise(rows, cells, manhattan):
    """Estimate the noise scales of cells.

    The scale of a cell is the smaller of the scale of its rows about their mean and the
    scale from differences of consecutive rows (`rows.steps`: the loss between a row and
    the one before in the same cluster). So a cell over two groups that came one after
    the other has the scale of one group. Both are shrunk towards the common scale by
    two pseudo-rows. The standard error of their ratio (von Neumann's), for rows in
    random order, is one over the root of the number of steps times features.
    """
    n_features = rows.points.shape[1]
    n_cells = len(cells.shares)
    losses = cdist(rows.points, cells.centers, metric_of(manhattan))
    losses += spread_losses(rows, manhattan)[:, None]
    half = 1.0 if manhattan else 0.5
    log_joint = np.log(cells.shares) - half * (
        n_features * np.log(cells.scales) + losses / cells.scales
    )
    labels = log_joint.argmax(axis=1)

    def by_cell(values):
        return np.bincount(labels, values, minlength=n_cells)

    sizes = by_cell(rows.weights)
    own = losses[np.arange(len(labels)), labels]
    degrees = n_features * (sizes - 1)
    several = degrees > 0  # the step to a cell's only row comes from another cell
    about_mean = by_cell(rows.weights * own) / np.where(several, degrees, np.inf)
    scales = about_mean.copy()
    n_steps = by_cell(rows.step_weights)
    in_turn = np.zeros(n_cells, dtype=bool)
    if n_steps.sum() > 0:
        steps = by_cell(rows.steps) / (n_features * (1.5 if manhattan else 2.0))
        common = steps.sum() / n_steps.sum()
        deviation = 1 / np.sqrt(np.maximum(n_steps, 1) * n_features)
        in_turn = steps < (1 - _IN_TURN * deviation) * about_mean * n_steps
        scales = np.minimum(scales, (steps + 2 * common) / (n_steps + 2))
    scales[~several] = np.inf
    known = np.isfinite(scales)
    common = scales[known] @ sizes[known] / sizes[known].sum() if known.any() else 0.0
    if not common > 0:  # no noise: the least scale of a cell
        least = cells.scales.min() if n_cells > 1 else 1.0
        return CellNoise(labels, sizes, np.full(n_cells, least), least, in_turn)
    scales[~known] = common
    scales = (sizes * scales + 2 * common) / (sizes + 2)
    return CellNoise(labels, sizes, scales, common, in_turn)
