"""Which mixture describes rows best: shape, spreads, tails and number of clusters."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from .._kernels import paco_mixture as kernels

SHAPES = {
    "round": kernels.ROUND,
    "diagonal": kernels.DIAGONAL,
    "tied": kernels.TIED,
}
# Degrees of freedom of the Student components, the alternative to normal ones.
STUDENT_DOF = 5.0
# Least variance of a direction, in units of the mean variance.
_RIDGE = 1e-10
# Share of the log-likelihood that counts as evidence: real clusters are not quite of
# the shape that the mixture gives them.
_EVIDENCE = 0.4
# Log evidence that unequal spreads or tails, and a shape, each must gain to be taken.
_LEAST_GAIN = 3.0
# Rows' worth of pull of a component's own variance to the common one.
_PULL = 5.0
# Components that the merging begins with, at most one for so many rows.
_FEWEST_ROWS = 5
_FIRST_START = 30
# Points that are looked at, and where clusters are many.
_MOST_POINTS, _COARSE_POINTS = 2500, 6000
# Points for each cluster that are looked at.
_POINTS_OF_CLUSTER = 60
# Evidence of at most so many rows counts.
_MOST_EVIDENCE = 6000.0
# From so many components on, a twentieth of them is merged at a time.
_MANY = 40
# So many points may be merged rows, each a component at first.
_FEW_POINTS = 500
# Sizes about the best at which other tails and scales are tried.
_NEAR = 7


@dataclass(frozen=True)
class Mixture:
    """A mixture that was fitted, and what it says of the points.

    `coordinates` (n_features, n_features), of determinant 1, maps rows to coordinates
    in which clusters are round; `centers` (n_clusters, n_features) are in these, and
    `scales` (n_clusters,) are variances there. `labels` and `robust` (n_points,): the
    cluster of each point, and its Student weight (1 if normal). `log_likelihoods`: of
    the mixture, and of the classification.
    """

    shape: str
    own: bool
    dof: float
    coordinates: np.ndarray
    centers: np.ndarray
    scales: np.ndarray
    shares: np.ndarray
    masses: np.ndarray
    labels: np.ndarray
    robust: np.ndarray
    log_likelihoods: tuple

    @property
    def n_clusters(self):
        """Number of clusters."""
        return len(self.centers)

    @property
    def simple(self):
        """Whether one normal noise of one scale describes all clusters."""
        return self.shape == "round" and not self.own and math.isinf(self.dof)

    def evidence(self, *, classified=True, share=_EVIDENCE):
        """Log-likelihood less half a log of the number of rows for each parameter.

        With the likelihood of the classification this is the integrated completed
        likelihood. The clusters' shares are free or equal, whichever is better.
        """
        k, d = self.centers.shape
        total = self.masses.sum()
        share = share * min(1.0, _MOST_EVIDENCE / total)
        n_rows = share * total
        fit = share * self.log_likelihoods[int(classified)]
        parts = self.masses / total
        parts = parts[parts > 0]
        unequal = n_rows * (parts @ np.log(parts) + math.log(k))
        fit -= min(unequal, (k - 1) / 2 * math.log(n_rows))
        n_parameters = k * d + (k if self.own else 1)
        n_parameters += {"round": 0, "diagonal": d - 1, "tied": d * (d + 1) // 2 - 1}[
            self.shape
        ]
        alternatives = (self.shape != "round") + self.own + math.isfinite(self.dof)
        fit -= _LEAST_GAIN * alternatives
        return fit - n_parameters / 2 * math.log(n_rows)

    def log_densities(self, points):
        """Log of share and density of each component at points, in its coordinates."""
        d = points.shape[1]
        return np.log(self.shares) + log_components(
            cdist(points, self.centers, "sqeuclidean"), self.scales, self.dof, d
        )

    def robust_weights(self, points, spreads):
        """Return the component of each point, and its weight in the Student law."""
        labels = self.log_densities(points).argmax(axis=1)
        if math.isinf(self.dof):
            return labels, np.ones(len(points))
        squares = ((points - self.centers[labels]) ** 2).sum(axis=1) + spreads
        d = points.shape[1]
        return labels, (self.dof + d) / (self.dof + squares / self.scales[labels])


def log_components(squares, scales, dof, n_features):
    """Log densities of round components of variances `scales` at squared distances."""
    ratios = squares / scales
    volumes = -0.5 * n_features * np.log(scales)
    if math.isinf(dof):
        return volumes - 0.5 * (n_features * math.log(2 * math.pi) + ratios)
    constant = math.lgamma((dof + n_features) / 2) - math.lgamma(dof / 2)
    constant -= n_features / 2 * math.log(dof * math.pi)
    return volumes + constant - (dof + n_features) / 2 * np.log1p(ratios / dof)


class MixtureProblem:
    """Weighted points, and mixtures fitted to them.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        About their mean.
    weights, spreads : ndarray of shape (n_points,)
    scatter : ndarray of shape (n_features, n_features)
        Sum of the outer products of the rows about the points they were merged into.
    """

    @classmethod
    def of(cls, rows, scatter):
        """All points of `Rows`."""
        return cls(rows.points, rows.weights, rows.spreads, scatter)

    def subset(self, n_points):
        """Return the problem of at most so many points, drawn with a fixed seed."""
        if len(self.points) <= n_points:
            return self
        drawn = np.random.default_rng(0).permutation(len(self.points))[:n_points]
        kept = np.sort(self.order[drawn])
        share = self.weights[kept].sum() / self.n_rows
        return MixtureProblem(
            self.points[kept],
            self.weights[kept],
            self.spreads[kept],
            share * self.scatter,
        )

    def __init__(self, points, weights, spreads, scatter):
        self.points, self.weights = points, weights
        self.spreads, self.scatter = spreads, scatter
        self.n_rows = float(weights.sum())
        self.d = points.shape[1]
        gaps = points - weights @ points / self.n_rows
        self.total = (gaps * weights[:, None]).T @ gaps + scatter
        self.total /= self.n_rows
        self.variance = max(np.trace(self.total) / self.d, 1e-300)
        self.total += _RIDGE * self.variance * np.eye(self.d)  # it may be singular
        self.order = self._invariant_order(gaps)
        self.solutions = {}

    def _invariant_order(self, gaps):
        """Order of the points by distance from the mean, the covariance the unit."""
        inverse = np.linalg.pinv(self.total, hermitian=True)
        squares = np.einsum("ij,jk,ik->i", gaps, inverse, gaps)
        return np.argsort(squares, kind="stable")

    def whitened(self, shape):
        """Coordinates of determinant 1 in which the points are as wide everywhere."""
        if shape == "round":
            return np.eye(self.d)
        if shape == "diagonal":
            roots = np.sqrt(np.maximum(np.diag(self.total), 1e-12 * self.variance))
            return np.diag(math.exp(np.log(roots).mean()) / roots)
        values, vectors = np.linalg.eigh(self.total)
        values = np.maximum(values, 1e-12 * values[-1])
        roots = np.exp(0.5 * (np.log(values).mean() - np.log(values)))
        return vectors * roots @ vectors.T

    def fit(self, start, shape, own, dof, max_iter, tolerance=1e-2):
        """EM from a `start`; a new mixture, or None if a component lost its rows."""
        state = _State(self, start, shape, own, dof)
        state.run(max_iter, tolerance)
        sound = math.isfinite(state.log_likelihoods[0])
        return state.mixture() if sound and state.keep_alive() == 0 else None

    def best(self, kind=None):
        """Return the mixture of largest evidence, of all kinds or of one."""
        kinds = self.solutions.values() if kind is None else [self.solutions[kind]]
        return max(
            (mixture for found in kinds for mixture in found.values()),
            key=lambda mixture: mixture.evidence(),
        )

    def single(self, shape):
        """All points in one normal component."""
        n_points = len(self.points)
        return Mixture(
            shape,
            False,
            math.inf,
            self.whitened(shape),
            np.zeros((1, self.d)),
            np.full(1, self.variance),
            np.ones(1),
            np.full(1, self.n_rows),
            np.zeros(n_points, dtype=np.int64),
            np.ones(n_points),
            (0.0, 0.0),
        )

    def continue_from(self, kind, shape):
        """Give the mixtures of one kind another shape."""
        for start in list(self.solutions.get(kind, {}).values()):
            if start.n_clusters <= _MANY:
                self._keep(self.fit(start, shape, *kind[1:], 12))

    def vary(self, kind):
        """Give mixtures near the best of one kind the other tails and scales."""
        shape, own, dof = kind
        if math.isinf(dof):
            return
        top = self.best(kind).n_clusters
        found = self.solutions[kind].values()
        near = sorted(found, key=lambda m: abs(math.log(m.n_clusters / top)))[:_NEAR]
        for start in near:
            for other in {own, True}:
                for tails in (STUDENT_DOF, math.inf):
                    if (other, tails) != (own, dof):
                        self._keep(self.fit(start, shape, other, tails, 12))

    def _keep(self, mixture):
        """Keep a mixture if it is the likeliest of its kind and size."""
        if mixture is None:
            return
        kind = mixture.shape, mixture.own, mixture.dof
        found = self.solutions.setdefault(kind, {})
        best = found.get(mixture.n_clusters)
        if best is None or mixture.log_likelihoods[0] > best.log_likelihoods[0]:
            found[mixture.n_clusters] = mixture

    def descend(self, shape, own, dof, n_start, fewest=1, hasty=False):
        """Fit n_start, ..., fewest components, merging from each to the next.

        Keeps the best of each size in `solutions`.
        """
        begin = self._seeded(shape, n_start)
        state = _State(self, begin, shape, False, math.inf)
        state.run(4, 0.0)
        state.own, state.dof = own, dof
        while True:
            state.run(3 if hasty else 6 if state.k > 15 else 12, 0.02)
            if not math.isfinite(state.log_likelihoods[0]):
                return
            if state.keep_alive():
                continue
            self._keep(state.mixture())
            if state.k <= max(fewest, 1):
                return
            at_once = state.k // (10 if hasty else 20) if state.k > _MANY else 1
            state.merge(min(max(1, at_once), state.k - max(fewest, 1)))

    def _seeded(self, shape, n_start):
        """Round components at points drawn by D^2 seeding."""
        coordinates = self.whitened(shape)
        points = self.points @ coordinates
        uniforms = np.random.default_rng(0).random(n_start)
        losses = np.ones(len(points))
        centers = np.empty((n_start, self.d))
        for j, uniform in enumerate(uniforms):
            passed = np.cumsum((self.weights * losses)[self.order])
            place = np.searchsorted(passed, uniform * passed[-1], side="right")
            centers[j] = points[self.order[min(place, len(points) - 1)]]
            squares = ((points - centers[j]) ** 2).sum(axis=1)
            losses = np.minimum(losses, squares) if j else squares
        scale = max(self.weights @ (losses + self.spreads) / self.n_rows / self.d, 0)
        scale = max(scale, 1e-12 * self.variance)
        return Mixture(
            shape, False, math.inf, coordinates, centers, np.full(n_start, scale),
            np.full(n_start, 1 / n_start), np.full(n_start, self.n_rows / n_start),
            None, None, None,
        )  # fmt: skip


class _State:
    """Arrays that the kernels change."""

    def __init__(self, problem, start, shape, own, dof):
        self.problem, self.shape, self.own, self.dof = problem, shape, own, dof
        d, n_points = problem.d, len(problem.points)
        self.k = k = len(start.centers)
        self.coordinates = np.ascontiguousarray(start.coordinates).copy()
        self.points = np.ascontiguousarray(problem.points @ self.coordinates)
        self.scatter = self.coordinates.T @ problem.scatter @ self.coordinates
        self.overall = self.coordinates.T @ problem.total @ self.coordinates
        traces = np.trace(problem.scatter), np.trace(self.scatter)
        self.spreads = problem.spreads * (traces[1] / traces[0] if traces[0] else 1.0)
        self.centers = np.array(start.centers.T, order="C")
        self.scales = start.scales.copy()
        if not own:
            self.scales[:] = start.masses @ start.scales / start.masses.sum()
        self.shares = start.shares.copy()
        self.masses = start.masses.copy()
        self.labels = np.zeros(n_points, dtype=np.int64)
        self.robust = np.ones(n_points)
        self.work = np.empty((d, k)), np.empty((6, k)), np.empty((2, d, d))
        self.log_likelihoods = (-math.inf, -math.inf)

    def run(self, max_iter, tolerance):
        """Run EM."""
        problem = self.problem
        self.log_likelihoods = kernels.fit_mixture(
            self.points,
            problem.weights,
            self.spreads,
            self.scatter,
            self.overall,
            self.coordinates,
            SHAPES[self.shape],
            self.own,
            self.dof,
            _PULL,
            1e-15 * problem.variance,
            max_iter,
            tolerance,
            self.k,
            self.centers,
            self.scales,
            self.shares,
            self.masses,
            self.labels,
            self.robust,
            *self.work,
        )

    def keep_alive(self):
        """Drop the components that have lost their rows; how many."""
        alive = self.masses[: self.k] >= min(1.0, 0.5 * self.problem.n_rows)
        lost = self.k - int(alive.sum())
        if lost:
            k, self.k = self.k, self.k - lost
            for values in (self.centers, self.scales, self.shares, self.masses):
                values[..., : self.k] = values[..., :k][..., alive]
        return lost

    def merge(self, times):
        """Merge the two closest components, so many times."""
        table = np.full((2, self.k), -1.0)
        for _ in range(min(times, self.k - 1)):
            self.k = kernels.merge_once(
                self.problem.d,
                self.k,
                self.own,
                SHAPES[self.shape],
                self.problem.n_rows,
                self.masses,
                self.centers,
                self.scales,
                self.shares,
                table,
            )

    def mixture(self):
        """Return the state as a mixture."""
        k = self.k
        return Mixture(
            self.shape,
            self.own,
            self.dof,
            self.coordinates.copy(),
            np.ascontiguousarray(self.centers[:, :k].T),
            self.scales[:k].copy(),
            self.shares[:k].copy(),
            self.masses[:k].copy(),
            self.labels.copy(),
            self.robust.copy(),
            self.log_likelihoods,
        )


def find_mixture(everything, shapes, kind=None):
    """Return the mixture of largest evidence, on all points.

    Looks at `_MOST_POINTS` of the points, drawn in an order that does not depend on
    their coordinates, or at more where there are many clusters. Merging begins with
    one component for a few points, to see how many clusters there are, and then again
    with few more components than clusters, for every shape.

    Parameters
    ----------
    everything : MixtureProblem
    shapes : tuple of str
    kind : tuple or None
        Shape, own and dof, if only this kind of mixture is to be looked at.

    Returns
    -------
    mixture : Mixture
    sizes : dict
        The mixtures of its kind by number of clusters, on the points looked at.
    n_clusters : int
        The largest number of clusters that the likelihood of the mixture, rather than
        that of the classification, would have.
    """
    coarse = everything.subset(_COARSE_POINTS)
    if coarse.n_rows < 2 * coarse.d:  # no rows to learn a covariance from
        shapes = tuple(shape for shape in shapes if shape != "tied") or shapes
    n_points = len(coarse.points)
    fewest_points = 1 if n_points <= _FEW_POINTS else _FEWEST_ROWS
    most = min(int(coarse.n_rows // _FEWEST_ROWS), n_points // fewest_points)
    most = max(most, 1)
    n_start, wanted = min(_FIRST_START, most), _MOST_POINTS
    if most > _FIRST_START:
        coarse.descend("round", False, STUDENT_DOF, most // 2, n_start, hasty=True)
        n_clusters = coarse.best().n_clusters
        if n_clusters > 0.6 * n_start:
            n_start = min(int(1.6 * n_clusters) + 1, most)
        wanted = max(wanted, _POINTS_OF_CLUSTER * n_clusters)
        coarse.solutions.clear()
    problem = everything.subset(min(wanted, _COARSE_POINTS))
    fewest = 1 if n_start <= 2 * _FIRST_START else n_start // 3
    if kind is None:
        for shape in shapes:
            problem.descend(shape, False, STUDENT_DOF, n_start, fewest)
            if shape != "round" and "round" in shapes:
                problem.continue_from(("round", False, STUDENT_DOF), shape)
        if any(problem.solutions.values()):
            best = problem.best()
        else:
            best = problem.single(shapes[0])
        lowest = max(1, best.n_clusters // 3)
        problem.descend(best.shape, True, STUDENT_DOF, n_start, lowest)
        for tried in list(problem.solutions):
            problem.vary(tried)
    else:
        problem.descend(*kind, n_start, fewest)
    if not any(problem.solutions.values()):
        problem.solutions[shapes[0], False, math.inf] = {1: problem.single(shapes[0])}
    best = problem.best()
    sizes = dict(problem.solutions[best.shape, best.own, best.dof])
    likeliest = max(
        sizes.values(), key=lambda one: one.evidence(classified=False, share=1.0)
    )
    if problem is not everything:
        best = everything.fit(best, best.shape, best.own, best.dof, 12) or best
    return best, sizes, likeliest.n_clusters
