"""Mixtures fitted to weighted points: EM, changes of coordinates, mergers."""

import math
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.spatial.distance import cdist
from scipy.special import softmax, xlogy

from .._kernels import paco_mixture as kernels
from ._paco_mixture import Mixture, log_components, share_of_evidence
from ._paco_rows import spread_by

# Least variance of a direction, relative to the variances of the features.
_RIDGE = 1e-10
# Least variance of a feature, relative to the mean variance.
_LEAST_WIDTH = 1e-30
# Share of the overall variance up to which noise may be rounding.
_LEAST_NOISE = 1e-6
# Largest excess kurtosis of normal noise, in standard errors.
_NORMAL = 3.0
# Least statistic of a cluster that is cut in two; one normal cluster in seven has it.
_LEAST_DEPARTURE = 4.0
# Number of pseudo-rows that shrink a component's variance to the common one.
PULL = 5.0


def _hidden_by_rounding(covariance, widths):
    """Return the covariance of rounding errors, where the rows do not vary.

    Where columns depend on each other linearly, the variation in that direction is
    rounding. There, the error of a row is the root of `_RIDGE` times the widths of the
    columns, whatever its cluster, so that no partition explains it.
    """
    roots = np.sqrt(widths)
    values, vectors = np.linalg.eigh(covariance / roots / roots[:, None])
    vectors = vectors[:, values < _RIDGE * values[-1]] * roots[:, None]
    return _RIDGE * vectors @ vectors.T


def _departure(places, weights):
    """Return the statistic of Jarque and Bera (1980), about 2 for normal places."""
    n_rows = weights.sum()
    ratios = places / math.sqrt(max(weights @ places**2 / n_rows, 1e-300))
    skewness, excess = weights @ ratios**3, weights @ (ratios**4 - 3)
    return (skewness**2 / 6 + excess**2 / 24) / n_rows


class MixtureProblem:
    """Weighted points, and mixtures fitted to them.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Points minus their mean.
    weights, spreads : ndarray of shape (n_points,)
    scatter : ndarray of shape (n_features, n_features)
        Sum of the outer products of the rows about the points they were merged into.
    rounding : ndarray of shape (n_features, n_features), default=0
        Covariance of rounding errors, which `spreads` and `scatter` contain.
    """

    @classmethod
    def of(cls, rows, rounding):
        """Return the problem of all points of `Rows`, with rounding errors added."""
        spread = spread_by(rows, rounding)
        of_rows = rows.points, rows.weights, spread.spreads, spread.scatter
        problem = cls(*of_rows, rounding)
        problem.row_weight = rows.row_weight
        return problem

    def subset(self, n_points, n_rows=None, skipped=0):
        """Return the problem of at most `n_points` points, drawn with a fixed seed.

        `n_rows`: their total weight; None: the sum of their weights. `skipped`: number
        of the points drawn first that are left out.
        """
        if len(self.points) <= n_points:
            return self
        drawn = np.random.default_rng(0).permutation(len(self.points))[skipped:]
        kept = np.sort(self.order[drawn[:n_points]])
        weights = self.weights[kept]
        factor = 1.0 if n_rows is None else n_rows / weights.sum()
        weights = factor * weights
        part = MixtureProblem(
            self.points[kept],
            weights,
            self.spreads[kept],
            weights.sum() / self.n_rows * self.scatter,
            self.rounding,
        )
        part.whole, part.row_weight = self.whole or self, factor * self.row_weight
        return part

    def part(self, points):
        """Return the problem of some points, with their share of the scatter."""
        weights, spreads = self.weights[points], self.spreads[points]
        squares = self.weights @ self.spreads
        share = weights @ spreads / squares if squares else 0.0
        of_points = self.points[points], weights, spreads, share * self.scatter
        return MixtureProblem(*of_points, self.rounding)

    def __init__(self, points, weights, spreads, scatter, rounding=0.0):
        self.points, self.weights = points, weights
        self.rounding = rounding + np.zeros_like(scatter)
        self.spreads, self.scatter = spreads, scatter
        self.whole = None  # the problem of which this one is a subset
        self.has_axes = False  # whether other shapes than "tied" are allowed
        self.row_weight = 1.0  # of one row; larger if it stands for rows left out
        self.n_rows = float(weights.sum())
        self.d = points.shape[1]
        gaps = points - weights @ points / self.n_rows
        self.total = (gaps * weights[:, None]).T @ gaps + scatter
        self.total /= self.n_rows
        self.variance = max(np.trace(self.total) / self.d, 1e-300)
        least = max(_LEAST_WIDTH * self.variance, np.finfo(float).tiny)
        widths = np.maximum(np.diag(self.total), least)
        self.hidden = _hidden_by_rounding(self.total, widths)
        self.total += _RIDGE * np.diag(widths)  # it may be singular
        squares = ((gaps @ self.whitened("tied")) ** 2).sum(axis=1)
        self.order = np.argsort(squares, kind="stable")

    def whitened(self, shape):
        """Return coordinates of determinant 1 in which the points are white."""
        if shape == "round":
            return np.eye(self.d)
        log_roots = 0.5 * np.log(np.diag(self.total))
        roots = np.exp(log_roots - log_roots.mean())
        if shape == "diagonal":
            return np.diag(1 / roots)
        correlations = self.total / roots / roots[:, None] / self.variance
        values, vectors = np.linalg.eigh(correlations)
        log_values = np.log(np.maximum(values, 1e-12 * values[-1]))
        return vectors * np.exp(0.5 * (log_values.mean() - log_values)) / roots[:, None]

    def leading_components(self, n_components):
        """Return the leading principal components of the scaled columns, white."""
        scaled = self.whitened("diagonal")
        values, axes = np.linalg.eigh(scaled.T @ self.total @ scaled)
        axes = axes[:, -n_components:] / np.sqrt(values[-n_components:])
        return self.points @ (scaled @ axes)

    def flat_columns(self):
        """Return the columns of kurtosis below a normal one's by two standard errors.

        Groups of about equal size, far apart, lower the kurtosis of a column.
        """
        gaps = self.points - self.weights @ self.points / self.n_rows
        gaps /= np.sqrt(np.diag(self.total))
        kurtosis = self.weights @ gaps**4 / self.n_rows
        return np.flatnonzero(kurtosis < 3 - 2 * math.sqrt(24 / self.n_rows))

    def pooled(self, mixture):
        """Return the covariance of the points within the clusters."""
        weights = self.weights * mixture.robust
        centers = mixture.centers @ np.linalg.inv(mixture.coordinates)
        gaps = self.points - centers[mixture.labels]
        covariance = (gaps * weights[:, None]).T @ gaps + self.scatter
        return covariance / self.n_rows + _LEAST_NOISE**2 * self.total + self.hidden

    def log_joint(self, mixture):
        """Return the log of share times density of the best component at each point."""
        if mixture.log_joint is not None:
            return mixture.log_joint
        points = self.points @ mixture.coordinates
        squares = cdist(points, mixture.centers, "sqeuclidean")
        squares += self.widths_in(mixture.coordinates)[:, None]
        densities = log_components(squares, mixture.scales, mixture.dof, self.d)
        log_joint = (np.log(np.maximum(mixture.shares, 1e-300)) + densities).max(axis=1)
        return np.maximum(log_joint, mixture.log_background)

    def widths_in(self, coordinates):
        """Return the spreads of the merged rows in some coordinates."""
        traces = np.trace(self.scatter), self.scatter_in(coordinates)
        return self.spreads * (traces[1] / traces[0] if traces[0] else 1.0)

    def scatter_in(self, coordinates):
        """Return the trace of the scatter in some coordinates."""
        return np.vdot(coordinates, self.scatter @ coordinates)

    def merged_in(self, coordinates):
        """Return the covariance of merged rows, and of rounding, in coordinates."""
        merged = self.scatter / self.n_rows + self.hidden + 1e-9 * self.total
        return coordinates.T @ merged @ coordinates

    def noisy(self, mixture):
        """Return whether the components' variances are larger than rounding."""
        overall = self.variance_in(mixture.coordinates)
        return mixture.scales.max() > _LEAST_NOISE * overall

    def normal(self, mixture):
        """Return whether the noise of normal clusters has the kurtosis of a normal one.

        Rows count in each cluster by their probability of belonging to it, so that
        overlap does not matter. Uniform clusters and most of their pieces fail this
        test, by 4 to 12 standard errors with 1,000 rows.
        """
        points, d = self.points @ mixture.coordinates, self.d
        parts = softmax(mixture.log_densities(points), axis=1)
        squares = cdist(points, mixture.centers, "sqeuclidean")
        squares += self.widths_in(mixture.coordinates)[:, None]
        halves = squares / mixture.scales / 2
        excess = halves**2 / 2 - (d / 2 + 1) * halves + d * (d + 2) / 8
        excess = (parts * excess).sum(axis=1)
        error = math.sqrt(self.weights**2 @ excess**2)
        return bool(abs(self.weights @ excess) <= _NORMAL * error)

    def sums(self, points, labels, n_clusters):
        """Return the masses of clusters, positive, and the sums of their points."""
        parts = np.eye(n_clusters)[labels] * self.weights[:, None]
        return np.maximum(parts.sum(axis=0), 1e-300), parts.T @ points

    def variance_in(self, coordinates):
        """Return the mean variance of the points in some coordinates."""
        return np.vdot(coordinates, self.total @ coordinates) / self.d

    @property
    def n_evidence(self):
        """Rows whose likelihood counts as evidence."""
        return share_of_evidence(self.n_rows) * self.n_rows

    def variances(self, mixture):
        """Return the variance of each component, shrunk to the common one."""
        gaps = self.points @ mixture.coordinates - mixture.centers[mixture.labels]
        weights = self.weights * mixture.robust
        squares = (gaps**2).mean(axis=1) + self.spreads / self.d
        k = mixture.n_clusters
        sums = np.bincount(mixture.labels, weights * squares, minlength=k)
        pulled = sums + PULL * sums.sum() / self.n_rows
        return pulled / (mixture.masses + PULL)

    def fit(self, start, shape, own, dof, max_iter, tolerance=1e-2, *background):
        """Run EM; return a new mixture, or None if a component lost its rows.

        `background`: initial share, and log density, of a background, if there is one.
        """
        state = EMState(self, start, shape, own, dof, *background)
        state.run(max_iter, tolerance)
        sound = math.isfinite(state.log_likelihoods[0])
        return state.mixture() if sound and state.keep_alive() == 0 else None

    def surviving(self, start, shape, own, dof):
        """Run EM, drop the components that lose their rows, and repeat; or None."""
        state = self.state(start, shape, own, dof)
        alive = True
        while alive:
            state.run(15, 0.02)
            alive = state.keep_alive()
        return state.mixture() if math.isfinite(state.log_likelihoods[0]) else None

    def halved(self, mixture, n_clusters):
        """Yield mixtures with one of the `n_clusters` longest clusters cut in two.

        The cut is at the mean, across the longest axis. Clusters that are normal along
        that axis are not cut.
        """
        points, k = self.points @ mixture.coordinates, mixture.n_clusters
        longest = []
        for j in range(k):
            members = np.flatnonzero(mixture.labels == j)
            weights = self.weights[members]
            if len(members) > self.d:
                gaps = points[members] - weights @ points[members] / weights.sum()
                values, axes = np.linalg.eigh((gaps * weights[:, None]).T @ gaps)
                length, places = values[-1] / weights.sum(), gaps @ axes[:, -1]
                cut = _departure(places, weights) > _LEAST_DEPARTURE
                longest.append((length, members[places > 0], cut))
        longest.sort(key=lambda one: -one[0])
        for _, moved, cut in longest[:n_clusters]:
            if not cut:
                continue
            labels = mixture.labels.copy()
            labels[moved] = k
            yield self.cut(mixture, labels)

    def cut(self, mixture, labels):
        """Return a mixture with clusters of these labels, of one variance."""
        k = labels.max() + 1
        masses, sums = self.sums(self.points @ mixture.coordinates, labels, k)
        return replace(
            mixture,
            labels=labels,
            centers=sums / masses[:, None],
            masses=masses,
            shares=masses / masses.sum(),
            scales=np.full(k, mixture.scales.mean()),
        )

    def partition(self, labels):
        """Return normal clusters of these labels, round in the mixture's coordinates.

        The coordinates whiten the covariance within the clusters; None if it is flat.
        """
        whole = self.single("tied")
        inverse = inverse_root(self.pooled(self.cut(whole, labels)))
        if inverse is None:
            return None
        root = math.exp(np.log(np.diag(inverse)).mean())
        coordinates, scales = (inverse / root).T, np.full(1, root**-2)
        return self.cut(replace(whole, coordinates=coordinates, scales=scales), labels)

    def state(self, start, shape, own, dof):
        """Return the state of EM at a `start`."""
        return EMState(self, start, shape, own, dof)

    def single(self, shape):
        """Return the mixture of one normal component."""
        n_points = len(self.points)
        return Mixture(
            shape,
            False,
            math.inf,
            self.whitened(shape),
            np.zeros((1, self.d)),
            np.full(1, self.variance_in(self.whitened(shape))),
            np.ones(1),
            np.full(1, self.n_rows),
            np.zeros(n_points, dtype=np.int64),
            np.ones(n_points),
            (0.0, 0.0),
        )


class EMState:
    """State of EM: arrays that it changes in place."""

    def __init__(
        self, problem, start, shape, own, dof, background=0.0, log_uniform=-math.inf
    ):
        self.problem, self.shape, self.own, self.dof = problem, shape, own, dof
        self.background, self.log_uniform = float(background), log_uniform
        d, n_points = problem.d, len(problem.points)
        self.k = k = len(start.centers)
        self.coordinates = np.ascontiguousarray(start.coordinates).copy()
        self.points = np.ascontiguousarray(problem.points @ self.coordinates)
        self.scatter = self.coordinates.T @ problem.scatter @ self.coordinates
        hidden = self.coordinates.T @ problem.hidden @ self.coordinates
        self.overall = self.coordinates.T @ problem.total @ self.coordinates
        self.variance = problem.variance_in(self.coordinates)
        traces = np.trace(problem.scatter), np.trace(self.scatter)
        self.spreads = problem.spreads * (traces[1] / traces[0] if traces[0] else 1.0)
        self.scatter += problem.n_rows * hidden  # coordinates may be of another shape
        self.spreads += np.trace(hidden)
        self.centers = np.array(start.centers.T, order="C")
        self.scales = start.scales.copy()
        if not own:
            self.scales[:] = start.masses @ start.scales / start.masses.sum()
        self.shares = start.shares.copy()
        self.masses = start.masses.copy()
        self.labels = np.zeros(n_points, dtype=np.int64)
        self.robust = np.ones(n_points)
        self.sums, self.moments = np.empty((k, d)), np.empty((8, k))
        self.log_likelihoods = (-math.inf, -math.inf)

    def run(self, max_iter, tolerance):
        """Run EM; unless the shape is round, update the coordinates at times."""
        changing, mixture, n_done, change = self.shape != "round", -math.inf, 0, True
        within = np.zeros((len(self.points), self.k if changing else 0))
        kind = kernels.Kind(
            changing,
            self.own,
            int(self.dof) if math.isfinite(self.dof) else 0,
            PULL,
            float(self.problem.row_weight),
            1e-15 * self.variance,
            self.log_uniform,
        )
        components = kernels.Components(
            self.centers, self.scales, self.shares, self.masses
        )
        origins = np.empty_like(self.sums)
        found = kernels.Found(
            self.labels, self.robust, self.sums, self.moments, within, origins
        )
        while change:
            problem = self.problem
            cloud = kernels.Cloud(
                self.points, problem.weights, self.spreads, problem.n_rows
            )
            mixture, classified, n_done, change, self.background = kernels.run_em(
                cloud,
                kind,
                n_done,
                max_iter,
                mixture,
                tolerance,
                self.k,
                self.background,
                components,
                found,
            )
            if change:
                self._whiten(self._covariance(within))
                within[:] = 0.0
        self.log_likelihoods = mixture, classified

    def _covariance(self, within):
        """Return the scatter within the components, relative to their variances.

        It is computed about the centres before the last M-step, and corrected for the
        step.
        """
        points, clusters = np.nonzero(within)
        steps = self.sums[: self.k]
        centers = self.centers[:, : self.k].T - steps
        gaps = self.points[points] - centers[clusters]
        weighted = gaps * within[points, clusters][:, None]
        moved = steps * (self.moments[7] * self.moments[2])[: self.k, None]
        if self.shape == "tied":
            return weighted.T @ gaps - moved.T @ steps
        return np.diag((weighted * gaps).sum(axis=0) - (moved * steps).sum(axis=0))

    def _whiten(self, covariance):
        """Change to coordinates in which the components are round.

        The determinant is kept, so that densities in different coordinates compare.
        """
        n_rows, d, k = self.problem.n_rows, self.problem.d, self.k
        merged = self.masses[:k] @ self.moments[2, :k] / n_rows
        covariance += merged * shaped(self.scatter, self.shape)
        if not np.trace(covariance) > 1e-3 * n_rows:
            return
        overall = shaped(self.overall, self.shape)
        inverse = inverse_root(overall)
        if inverse is not None:  # shrunk by n_features rows' worth of all rows'
            ratio = np.vdot(inverse, inverse @ covariance) / d
            covariance += ratio * (d / n_rows + 1e-9) * overall
        change = inverse_root(covariance)
        if change is None:
            return
        change /= math.exp(np.log(np.diag(change)).mean())
        before = np.trace(self.scatter)
        self.scatter = change @ self.scatter @ change.T
        self.overall = change @ self.overall @ change.T
        self.points = self.points @ change.T
        self.coordinates = self.coordinates @ change.T
        self.centers[:, :k] = change @ self.centers[:, :k]
        if before > 0:
            self.spreads *= np.trace(self.scatter) / before

    def merged(self, n_mergers=lambda k: 1, max_iter=3, tolerance=0.02):
        """Yield mixtures with fewer and fewer components, with EM between mergers.

        `n_mergers`: the number of pairs that are merged at once, of k components.
        """
        while self.k:
            self.run(max_iter, tolerance)
            if not math.isfinite(self.log_likelihoods[0]):
                return
            if self.keep_alive():
                continue
            yield self.mixture()
            if self.k == 1:
                return
            self.merge(n_mergers(self.k))

    def keep_alive(self):
        """Drop the components without rows; return how many were dropped."""
        alive = self.masses[: self.k] >= min(1.0, 0.5 * self.problem.n_rows)
        lost = self.k - int(alive.sum())
        if lost:
            k, self.k = self.k, self.k - lost
            for values in (self.centers, self.scales, self.shares, self.masses):
                values[..., : self.k] = values[..., :k][..., alive]
        return lost

    def merge(self, times):
        """Merge the pair of components whose merger costs least, `times` times."""
        gains = self._gains(np.arange(self.k))
        for _ in range(min(times, self.k - 1)):
            a, b = sorted(np.unravel_index(gains.argmax(), gains.shape))
            self._merge(a, b)
            last = self.k - 1  # takes the place of the second
            for values in (self.centers, self.scales, self.shares, self.masses):
                values[..., b] = values[..., last]
            gains[b], gains[:, b] = gains[last], gains[:, last]
            self.k, gains = last, gains[:last, :last]
            gains[a] = gains[:, a] = self._gains(np.array([a]))[0]
            np.fill_diagonal(gains, -math.inf)

    def _gains(self, components):
        """Return the log-likelihood gained by merging components with others."""
        n_rows, d, k = self.problem.n_rows, self.problem.d, self.k
        masses, scales = np.maximum(self.masses[:k], 1e-9), self.scales[:k]
        first, second = masses[components, None], masses
        both, centers = first + second, self.centers[:, :k].T
        added = cdist(centers[components], centers, "sqeuclidean")
        added *= first * second / both
        gains = xlogy(both, both) - xlogy(first, first) - xlogy(second, second)
        if self.own:
            theirs = scales[components, None]
            scale = (first * theirs + second * scales + added / d) / both
            fits = both * np.log(scale) - first * np.log(theirs)
            gains -= d / 2 * (fits - second * np.log(scales))
        else:
            n_widened = n_rows * (1 if self.shape == "tied" else d)  # directions
            gains -= n_widened / 2 * np.log1p(added / (scales[0] * n_widened))
        gains[np.arange(len(components)), components] = -math.inf
        return gains

    def _merge(self, a, b):
        """Give component a the moments of both."""
        first, second = np.maximum(self.masses[[a, b]], 1e-9)
        both = first + second
        gap = self.centers[:, b] - self.centers[:, a]
        self.centers[:, a] += second / both * gap
        if self.own:
            spread = first * second / both * (gap @ gap) / self.problem.d
            scale = first * self.scales[a] + second * self.scales[b] + spread
            self.scales[a] = scale / both
        self.shares[a] += self.shares[b]
        self.masses[a] = both

    def mixture(self):
        """Return the state as a mixture."""
        k = self.k
        return Mixture(
            self.shape,
            self.own,
            self.dof,
            self.coordinates.copy(),
            np.array(self.centers[:, :k].T, order="C"),
            self.scales[:k].copy(),
            self.shares[:k].copy(),
            self.masses[:k].copy(),
            self.labels.copy(),
            self.robust.copy(),
            self.log_likelihoods,
            self.background,
            self.log_uniform,
        )


def shaped(matrix, shape):
    """Return a symmetric matrix, or its diagonal alone."""
    if shape == "tied":
        return np.tril(matrix) + np.tril(matrix, -1).T  # exactly symmetric
    return np.diag(np.diag(matrix))


def inverse_root(matrix):
    """Return the inverse of the Cholesky factor of a covariance, or None.

    The variance of a direction is at least a small ridge.
    """
    widths = np.diag(matrix)
    least = np.maximum(1e-12 * widths, 1e-30 * widths.sum())
    try:
        factor = np.linalg.cholesky(matrix + np.diag(least))
    except np.linalg.LinAlgError:
        return None
    return np.asfortranarray(dtrtri(factor.T)[0].T)
