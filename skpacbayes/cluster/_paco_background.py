"""Mixtures of clusters and a uniform background, for rows of no cluster."""

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from .._kernels import paco_mixture as kernels
from ._paco_chain import log_ball
from ._paco_fitting import PULL, EMState
from ._paco_mixture import (
    LEAST_GAIN,
    STUDENT_DOF,
    log_components,
    student_weights,
)

# Initial share of the background in EM, and the largest number of its iterations.
_FIRST_SHARE, _MAX_ITER = 0.05, 30
# EM stops when an iteration gains less log-likelihood than this.
_TOLERANCE = 0.05


def with_background(search, best, shapes):
    """Return the mixture of largest evidence: `best`, or one with a background.

    Heavy tails, or a wide cluster, may be rows that belong to no cluster. Mixtures of
    as many clusters and fewer are therefore fitted with a component that is uniform on
    the region of the rows; its share is one more parameter.

    Parameters
    ----------
    search : Search
    best : Mixture
    shapes : tuple of str
        Those that clusters may have; that of `best` first.

    Returns
    -------
    mixture : Mixture
    """
    fits = {}
    if not _hides_noise(search.problem, best, fits):
        return best
    chosen = best
    for shape in sorted(shapes, key=best.shape.__ne__):
        highest = -math.inf
        for k in range(chosen.n_clusters, 0, -1):
            mixture = _likeliest(search, k, shape, best.own, fits)
            value = -math.inf if mixture is None else search.value(mixture)
            if value > search.value(chosen):
                chosen = mixture
            if value < highest:
                break
            highest = value
    return chosen


def _hides_noise(problem, mixture, fits):
    """Return whether the tails, or a wide cluster, may be rows of no cluster."""
    if mixture.own and not mixture.apart.all():
        return True
    if math.isinf(mixture.dof):
        return _heavy(problem, mixture)
    share = problem.n_evidence / problem.n_rows
    for dof in (mixture.dof, math.inf):
        fitted = _fitted(problem, mixture, mixture.shape, mixture.own, dof, fits)
        if fitted is not None:
            gain = fitted.log_likelihoods[1] - mixture.log_likelihoods[1]
            if share * gain > LEAST_GAIN:
                return True
    return False


def _fitted(problem, start, shape, own, dof, fits):
    """Call `fit_with_background`, unless `fits` holds the result already."""
    key = start, shape, own, dof
    if key not in fits:
        fits[key] = fit_with_background(problem, start, shape, own, dof)
    return fits[key]


def _heavy(problem, mixture):
    """Return whether the rows have heavier tails than normal clusters.

    This is so if Mardia's kurtosis about the clusters exceeds its expectation by two
    standard errors.
    """
    d, weights = problem.d, problem.weights
    gaps = problem.points @ mixture.coordinates - mixture.centers[mixture.labels]
    squares = (gaps**2).sum(axis=1) + problem.widths_in(mixture.coordinates)
    squares = squares / mixture.scales[mixture.labels]
    kurtosis = weights @ squares**2 / problem.n_rows
    return kurtosis > d * (d + 2) + 2 * math.sqrt(8 * d * (d + 2) / problem.n_rows)


def _likeliest(search, n_clusters, shape, own, fits):
    """Return the best mixture of `n_clusters` clusters and a background, or None."""
    starts = [one for one in search.mixtures if one.n_clusters == n_clusters]
    if not starts:
        return None
    start = max(starts, key=search.value)
    found = [
        _fitted(search.problem, start, shape, one, dof, fits)
        for one in sorted({False, own})
        for dof in (math.inf, STUDENT_DOF)
    ]
    found = [one for one in found if one is not None]
    if search.skewed.any:
        search.let_best_be_skewed(found)
    return max(found, key=search.value, default=None)


def fit_with_background(problem, start, shape, own, dof):
    """EM from a `start`, with a background; None if a component lost its rows."""
    if shape != start.shape:
        start = replace(start, coordinates=problem.whitened(shape))
        parts = np.eye(start.n_clusters)[start.labels] * problem.weights[:, None]
        masses = np.maximum(parts.sum(axis=0), 1e-300)
        centers = parts.T @ problem.points @ start.coordinates / masses[:, None]
        scales = problem.variances(replace(start, centers=centers))
        start = replace(start, centers=centers, scales=scales)
    state = _State(problem, start, shape, own, dof)
    state.run(_MAX_ITER, _TOLERANCE)
    sound = math.isfinite(state.log_likelihoods[0])
    return state.mixture() if sound and state.keep_alive() == 0 else None


def log_volume(problem, shape):
    """Return the log volume of the region of the rows: a box, or an ellipsoid.

    The sides of the box are the ranges of the features. Where clusters have any
    covariance matrix, the ellipsoid has that of all rows, so that it is equivariant
    under linear maps. A subset has the region of the whole, as a feature may be
    constant in the subset.
    """
    problem = problem.whole or problem
    gaps = problem.points - problem.weights @ problem.points / problem.n_rows
    if shape != "tied":
        sides = np.maximum(np.ptp(gaps, axis=0), 1e-300)
        return float(np.log(sides).sum())
    squares = ((gaps @ problem.whitened("tied")) ** 2).sum(axis=1)
    return log_ball(math.sqrt(max(squares.max(), 1e-300)), problem.d)


class _State(EMState):
    """State of EM, with a background."""

    def __init__(self, problem, start, shape, own, dof):
        super().__init__(problem, start, shape, own, dof)
        self.log_uniform = -log_volume(problem, shape)
        self.background = start.background or _FIRST_SHARE

    def run(self, max_iter, tolerance):
        """Run EM; unless the shape is round, update the coordinates at times."""
        previous = -math.inf
        for iteration in range(max_iter + 1):
            parts, ratios, mixture = self._expect()
            if iteration == max_iter or not mixture - previous >= tolerance:
                return
            previous = mixture
            changing = self.shape != "round" and iteration % kernels.EVERY == 1
            within = self._maximise(parts, ratios)
            if changing:
                self._whiten(self._covariance(within))

    def _expect(self):
        """E-step: return responsibilities of the clusters, and squared distances."""
        weights, d, k = self.problem.weights, self.problem.d, self.k
        scales = self.scales[:k]
        squares = cdist(self.points, self.centers[:, :k].T, "sqeuclidean")
        squares += self.spreads[:, None]
        logs = log_components(squares, scales, self.dof, d)
        logs += np.log(np.maximum(self.shares[:k], 1e-100))
        self.labels = logs.argmax(axis=1)
        alone = math.log(self.background) + self.log_uniform
        highest = np.maximum(logs.max(axis=1), alone)
        parts = np.exp(logs - highest[:, None])
        others = np.exp(alone - highest)
        totals = parts.sum(axis=1) + others
        parts /= totals[:, None]
        ratios = squares / scales
        explained = 1.0 - others / totals
        self.robust = explained * student_weights(ratios.min(axis=1), self.dof, d)
        mixture = float(weights @ (highest + np.log(totals)))
        self.log_likelihoods = mixture, float(weights @ highest)
        self.background = max(weights @ (1.0 - explained) / weights.sum(), 1e-9)
        return parts * weights[:, None], ratios, mixture

    def _maximise(self, parts, ratios):
        """M-step of the clusters: return the points' weights over the old variances."""
        d, k = self.problem.d, self.k
        thick = parts * student_weights(ratios, self.dof, d)
        masses, total = parts.sum(axis=0), thick.sum(axis=0)
        scales, before = self.scales[:k].copy(), self.centers[:, :k].copy()
        safe = np.maximum(total, 1e-300)
        steps = (self.points.T @ thick - before * total) / safe
        squares = (thick * ratios).sum(axis=0) * scales
        squares = np.maximum(squares - total * (steps**2).sum(axis=0), 0.0)
        self.centers[:, :k], self.sums[:, :k] = before + steps, steps
        self.masses[:k], self.shares[:k] = masses, masses / self.problem.n_rows
        self.moments[2, :k], self.moments[7, :k] = 1.0 / scales, total
        harmonic = (1.0 / scales).mean()
        if self.own:
            new = (squares / d + PULL / harmonic) / (masses + PULL)
        else:
            new = squares.sum() / (d * max(masses.sum(), 1e-300))
        self.scales[:k] = np.maximum(new, 1e-15 * self.variance)
        return thick / scales

    def mixture(self):
        """Return the state as a mixture."""
        return replace(
            super().mixture(),
            background=float(self.background),
            log_uniform=self.log_uniform,
        )
