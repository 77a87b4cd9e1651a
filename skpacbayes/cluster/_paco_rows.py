"""Weighted rows, or the means of merged rows, and the rounding of their values."""

import math
from dataclasses import dataclass, replace

import numpy as np

from .._kernels.paco_points import EQUAL, LEAST_GAP, N_VALUES, REPEATED, ROWS
from ._units import scaled

# Variance of a rounding error, in squares of the least gap: that of a uniform
# distribution. For a column of two values, it is the least variance with which a cut
# between the values gains no likelihood, whatever their shares p, q: 1/2 log(1 + p q /
# variance) <= -p log p - q log q. The same holds for one-hot columns: m categories have
# entropy log m at most, and (m - 1) / 2 log(1 + 1 / (m variance)) is less.
_OF_ROUNDING, _OF_TWO_VALUES, _OF_CATEGORY = 1 / 12, 1 / 10, 1 / 5
# Number of distinct rows of two-valued columns up to which each may be a cluster.
FEW_PLACES = 4
# Weight from which a row may be several copies.
_SINGLE = 1.0 + 1e-9
# Share of distinct values in a column from which values hardly repeat.
_NO_REPEATS = 0.9
# Number of distinct rows from which copies do not matter: evidence has an upper limit.
_MANY_ROWS = 6000
# Least mean number of rows for each value.
_ROWS_OF_VALUE = 2.0
# Largest difference of shares that counts as rounding.
_ROUGHLY = 1e-6
# Least number of values whose gaps shrink steadily, least and largest ratio of two such
# gaps, and share of the rows from which a value is common. The largest ratio is 1.7 for
# log(1 + count), 2.4 for the square root of a count, and 3 for 1 / (1 + count).
_STEADY, _SHRINK, _COMMON = 4, (1.001, 3.2), 0.02
# Share of a column's variance below which rounding errors are neglected.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Rows:
    """Weighted points: rows, or the means of merged rows.

    `points` (n_points, n_features), `weights`, `spreads` (mean squared distance of the
    merged rows from their mean), `forecasts` (n_points, 3) (sums of lambda, lambda h,
    lambda h^2), `steps` and `step_weights` (losses between consecutive rows that fell
    in one cluster, summed, and how many there are). `scatter` (n_features, n_features):
    sum over all merged rows of the outer products of their differences from their mean.
    `times` (n_points, n_intervals): weight of the rows in each interval of the stream;
    none if there is no stream. `row_weight`: above 1 if rows were drawn. `run_squares`:
    sum of the squared weights of the runs of equal rows of a stream; 0 if unknown.
    """

    points: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    forecasts: np.ndarray
    steps: np.ndarray
    step_weights: np.ndarray
    scatter: np.ndarray
    times: np.ndarray
    row_weight: float = 1.0
    run_squares: float = 0.0

    @classmethod
    def single(cls, points, weights):
        """Return rows that have not been merged and had no forecast."""
        n_points, d = points.shape
        zeros = np.zeros(n_points)
        forecasts, scatter = np.zeros((n_points, 3)), np.zeros((d, d))
        times = np.zeros((n_points, 0))
        return cls(points, weights, zeros, forecasts, zeros, zeros, scatter, times)

    @classmethod
    def distinct(cls, X, weights, most):
        """Return the distinct rows of positive weight, sorted; at most `most` of them.

        A subset is drawn with a fixed seed, and weighted up to the total weight.
        """
        points, where = np.unique(X[weights > 0], axis=0, return_inverse=True)
        share = 1.0
        merged = np.bincount(where.ravel(), weights[weights > 0])
        if len(points) > most:
            drawn = np.random.default_rng(0).permutation(len(points))[:most]
            drawn.sort()
            share = merged[drawn].sum() / merged.sum()
            points, merged = points[drawn], merged[drawn] / share
        rows = cls.single(np.ascontiguousarray(points), merged)
        return replace(rows, row_weight=1.0 / share)

    @property
    def mean(self):
        """Weighted mean of the rows."""
        return self.weights @ self.points / self.weights.sum()

    def weighing_less(self, factor):
        """Return rows whose weights are divided by `factor`."""
        return replace(
            self,
            weights=self.weights / factor,
            steps=self.steps / factor,
            step_weights=self.step_weights / factor,
            times=self.times / factor,
            scatter=self.scatter / factor,
        )

    def about(self, offset, exponent, power):
        """Return rows minus `offset`, in units of 2^exponent; losses in unit^power."""
        loss = -power * exponent
        return replace(
            self,
            points=scaled(self.points - offset, -exponent),
            spreads=scaled(self.spreads, -2 * exponent),
            forecasts=scaled(self.forecasts, np.array([-loss, 0, loss])),
            steps=scaled(self.steps, loss),
            scatter=scaled(self.scatter, -2 * exponent),
        )


@dataclass(frozen=True)
class ColumnValues:
    """Least value, least gap and number of the values of each column.

    `lowest` (n_features,); `gaps` (n_features,): the least gap between two values, 0
    where values do not repeat; `counts` (n_features,): numbers of distinct values;
    `sorted` (n_features,): arrays of the values that are known, none where they do not
    repeat.
    """

    lowest: np.ndarray
    gaps: np.ndarray
    counts: np.ndarray
    sorted: tuple

    @classmethod
    def of(cls, rows):
        """Return the values of `Rows` that have not been merged."""
        points = rows.points
        n_rows, ranges = rows.weights.sum(), np.ptp(points, axis=0)
        gaps, counts = np.zeros((2, points.shape[1]))
        known = [np.zeros(0)] * points.shape[1]
        for j in np.flatnonzero(ranges > 0):
            column = points[:, j]
            values = np.unique(np.rint((column - column.min()) / (EQUAL * ranges[j])))
            counts[j] = len(values)
            if 2 <= len(values) <= n_rows / _ROWS_OF_VALUE:
                known[j] = column.min() + values * (EQUAL * ranges[j])
                gaps[j] = np.diff(values).min() * EQUAL * ranges[j]
        return cls(points.min(axis=0), gaps, counts, tuple(known))

    @classmethod
    def noted(cls, values, notes, n_rows):
        """Return the values recorded by `paco_points.note_values` in a stream.

        They are unknown if fewer than half of the `n_rows` were read as rows.
        """
        gaps, counts = np.zeros((2, len(values)))
        several = [np.zeros(0)] * len(values)
        read, repeated = notes[:, ROWS], notes[:, REPEATED]
        known = (read >= n_rows / 2) & (repeated >= (1 - 1 / _ROWS_OF_VALUE) * read)
        for j in np.flatnonzero(known & (notes[:, N_VALUES] > 1)):
            column = values[j, : int(notes[j, N_VALUES])]
            steps = np.diff(column)
            steps = steps[steps > EQUAL * (column[-1] - column[0])]
            if not len(steps):  # gaps too small for the unit of the summary
                continue
            counts[j] = len(steps) + 1 + math.isfinite(notes[j, LEAST_GAP])
            gaps[j] = min(steps.min(), notes[j, LEAST_GAP])
            several[j] = column.copy()
        return cls(values[:, 0].copy(), gaps, counts, tuple(several))

    def about(self, offset, exponent, columns):
        """Return the values of some columns, minus `offset`, in units of 2^exponent."""
        origins = np.broadcast_to(offset, self.counts.shape)
        return ColumnValues(
            scaled(self.lowest - offset, -exponent)[columns],
            scaled(self.gaps, -exponent)[columns],
            self.counts[columns],
            tuple(
                scaled(self.sorted[j] - origins[j], -exponent)
                for j in np.arange(len(self.counts))[columns]
            ),
        )


def mean_copies(rows):
    """Return how often rows were copied or how much they weigh, on average; at least 1.

    Copies of rows, and rows of large weight, are no evidence of clusters. Rows are
    copied if the values of two or more columns hardly repeat among the distinct rows:
    in tables of ratings, counts and categories, equal rows are rows of their own. The
    mean is that over all rows (Kish 1965), so that equal weights above 1 do not count.
    Of merged rows of a stream, only copies one after the other are known.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    n_copies : float
    """
    alone = rows.spreads == 0
    points, weights = rows.points[alone], rows.weights[alone]
    if not FEW_PLACES < len(points) < _MANY_ROWS or weights.max() <= _SINGLE:
        return 1.0
    n_unique = [len(np.unique(column)) for column in points.T]
    if np.count_nonzero(np.array(n_unique) >= _NO_REPEATS * len(points)) < 2:
        return 1.0
    n_rows = rows.weights.sum()
    n_effective = weights.sum() ** 2 / (weights @ weights) + rows.weights[~alone].sum()
    if rows.run_squares > 0:
        n_effective = min(n_effective, n_rows**2 / rows.run_squares)
    return max(n_rows / n_effective, 1.0)


def rounding_of(rows, values):
    """Return the variance of the rounding error of each column.

    If the values of a column repeat, the rounding error is uniform within half of the
    least gap between them. Without it, a cluster for each value, or each cell of a
    grid, would explain rounded rows without error. Of logs or roots of counts, whose
    gaps shrink steadily, the gap is that of the coarsest value of many rows. A column
    of two values is a category: it makes no clusters alone, but can with others.

    Parameters
    ----------
    rows : Rows
    values : ColumnValues

    Returns
    -------
    variances : ndarray of shape (n_features,)
        Zero where values do not repeat, or rounding is too fine to matter.
    """
    two = (values.counts == 2) & (values.gaps > 0)
    if len(rows.points) <= FEW_PLACES:
        two, values = np.zeros_like(two), replace(values, gaps=~two * values.gaps)
    total = rows.weights @ ((rows.points - rows.mean) ** 2 + rows.spreads[:, None])
    gaps = [
        max(gap, _coarsest_gap(known, column, rows.weights))
        for gap, known, column in zip(
            values.gaps, values.sorted, rows.points.T, strict=True
        )
    ]
    hidden = np.square(gaps) * np.where(two, _OF_TWO_VALUES, _OF_ROUNDING)
    variances = np.where(hidden > _NEGLIGIBLE * total / rows.weights.sum(), hidden, 0.0)
    variances[_codes_of_categories(rows.points, values, two)] *= (
        _OF_CATEGORY / _OF_TWO_VALUES
    )
    return variances


def _coarsest_gap(values, column, weights):
    """Return the largest gap at a common value where gaps shrink from an end, or 0."""
    largest = 0.0
    for places, known in ((column, values), (-column, -values[::-1])):
        gaps = np.diff(known)
        with np.errstate(divide="ignore", invalid="ignore"):  # gaps may underflow
            ratios = gaps[:-1] / gaps[1:]
        steady = np.append((_SHRINK[0] < ratios) & (ratios < _SHRINK[1]), False)
        n_steady = int(steady.argmin()) + 1 if len(gaps) else 0
        if n_steady + 1 < _STEADY:
            continue
        middles = known[:n_steady] + gaps[:n_steady] / 2
        rows_of = np.bincount(
            np.searchsorted(middles, places), weights, minlength=n_steady + 1
        )
        common = np.flatnonzero(rows_of[:n_steady] >= _COMMON * weights.sum())
        if len(common):
            largest = max(largest, gaps[common[0]])
    return largest


def _codes_of_categories(points, values, two):
    """Return the one-hot columns: of two values, the larger in one column per row.

    In merged rows, the shares of the rows with the larger value add up to one.
    """
    free, coded = list(np.flatnonzero(two)), []
    while len(free) > 1:
        group, covered = [], np.zeros(len(points))
        for j in free:
            ones = (points[:, j] - values.lowest[j]) / values.gaps[j]
            if not group or (covered + ones).max() < 1 + _ROUGHLY:
                group.append(j)
                covered += ones
        free = [j for j in free if j not in group[:1]]
        if covered.min() > 1 - _ROUGHLY:
            coded += group
            free = [j for j in free if j not in group]
    return coded


def only_two_values(rows, values):
    """Return whether all columns have two values, and there are many distinct rows."""
    return len(rows.points) > FEW_PLACES and bool((values.counts == 2).all())


def spread_by(rows, covariance):
    """Return rows with a covariance of their rounding errors added."""
    return replace(
        rows,
        spreads=rows.spreads + np.trace(covariance),
        scatter=rows.scatter + rows.weights.sum() * covariance,
    )
