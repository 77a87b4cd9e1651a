"""Dense groups of few rows in a background of most rows."""

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from ._paco_background import fit_with_background, log_volume, without_chance_groups
from ._paco_chain import log_ball
from ._paco_fitting import EMState
from ._paco_mixture import STUDENT_DOF

# Numbers of neighbours of a point that are counted.
_NUMBERS = np.array([4, 8, 16, 32])
# Largest number of points whose neighbours are counted, and of groups.
_MOST_POINTS, _MOST_GROUPS = 500, 30
# Largest expected number of groups, found by chance, of as many rows.
_CHANCE = 0.01
# Number of iterations of EM between two mergers, and its tolerance.
_ITERATIONS, _TOLERANCE = 6, 0.05
# Least share of a background, and least scale of a group relative to all rows, at first.
_LEAST_BACKGROUND, _LEAST_SCALE = 0.05, 1e-9


def with_dense_groups(search, best, shapes):
    """Return the mixture of larger evidence: `best`, or one of dense groups.

    Ward's tree cuts a background of most rows into large pieces, in which dense groups
    of few rows are lost. They are the places where more rows are near each other than
    `best` explains. Mixtures of such groups and of a background are merged one pair at
    a time, for each shape.

    Parameters
    ----------
    search : Search
    best : Mixture
    shapes : tuple of str

    Returns
    -------
    mixture : Mixture
    """
    problem = search.problem
    if len(problem.points) <= _NUMBERS[0]:
        return best
    balls = Balls(problem, best.coordinates)
    if not balls.dense(search.log_joint(best)):
        return best
    found = [best]
    for shape in shapes:
        uniform = -log_volume(problem, shape)
        groups = balls.dense(np.full(len(problem.points), uniform))
        sizes = _merged(problem, groups, (shape, True, math.inf), uniform)
        start = max(sizes, key=search.value, default=None)
        for own, dof in itertools.product((False, True), (math.inf, STUDENT_DOF)):
            if start is not None:
                fitted = fit_with_background(problem, start, shape, own, dof)
                found.append(without_chance_groups(problem, fitted))
    return max([one for one in found if one is not None], key=search.value)


class Balls:
    """Balls about points, with several numbers of neighbours.

    Merged rows, and rounding, widen the balls.

    Parameters
    ----------
    problem : MixtureProblem
    coordinates : ndarray of shape (n_features, n_features)
        Those of determinant 1 in which the balls are round.
    """

    def __init__(self, problem, coordinates):
        points, weights, d = problem.points @ coordinates, problem.weights, problem.d
        chosen = problem.order[:: math.ceil(len(points) / _MOST_POINTS)]
        self.numbers = _NUMBERS[_NUMBERS < len(points)]
        most = self.numbers[-1] + 1
        gaps, self.near = KDTree(points).query(points[chosen], np.arange(1, most + 1))
        masses = np.cumsum(weights[self.near], axis=1) - weights[chosen, None]
        self.masses = masses[:, self.numbers] / problem.row_weight
        self.n_rows = problem.n_rows / problem.row_weight
        widths = self._largest(problem.widths_in(coordinates))
        squares = np.maximum(gaps[:, self.numbers] ** 2 + widths, 1e-300)
        self.log_volumes = log_ball(1.0, d) + d / 2 * np.log(squares)

    def _largest(self, values):
        """Return the largest value of the points of each ball."""
        return np.maximum.accumulate(values[self.near], axis=1)[:, self.numbers]

    def dense(self, log_density):
        """Return the points of balls with more rows than a density explains.

        The balls do not overlap. The probability of so many rows is bounded as by
        Chernoff; the density is the largest of the points of the ball.

        Parameters
        ----------
        log_density : ndarray of shape (n_points,)

        Returns
        -------
        groups : list of ndarray of int
            The balls of lowest probability first.
        """
        expected = math.log(self.n_rows) + self._largest(log_density) + self.log_volumes
        expected = np.exp(np.clip(expected, -700.0, 700.0))
        excess = np.log(np.maximum(self.masses / expected, 1.0))
        bounds = np.where(excess > 0, self.masses * (excess - 1) + expected, 0.0)
        numbers, bounds = self.numbers[bounds.argmax(axis=1)], bounds.max(axis=1)
        groups, taken = [], np.zeros(len(log_density), dtype=bool)
        few = np.flatnonzero(bounds > math.log(self.n_rows / _CHANCE))
        for i in few[np.argsort(-bounds[few], kind="stable")]:
            ball = self.near[i, : numbers[i] + 1]
            if not taken[ball].any():
                groups.append(ball)
            taken[ball] = True
        return groups[:_MOST_GROUPS]


def _merged(problem, groups, kind, log_uniform):
    """Yield mixtures of groups of points and a background, of fewer groups each time."""
    if not groups:
        return
    single, weights = problem.single(kind[0]), problem.weights
    points, widths = (
        problem.points @ single.coordinates,
        problem.widths_in(single.coordinates),
    )
    masses = np.array([weights[one].sum() for one in groups])
    centers = np.array([weights[one] @ points[one] for one in groups])
    centers /= masses[:, None]
    squares = [
        ((points[one] - center) ** 2).sum(axis=1) + widths[one]
        for one, center in zip(groups, centers, strict=True)
    ]
    sums = [weights[one] @ of_group for one, of_group in zip(groups, squares, strict=True)]
    shares = masses / problem.n_rows
    start = replace(
        single,
        centers=centers,
        scales=np.maximum(sums / masses / problem.d, _LEAST_SCALE * problem.variance),
        shares=shares,
        masses=masses,
    )
    background = max(1.0 - shares.sum(), _LEAST_BACKGROUND)
    state = EMState(problem, start, *kind, background, log_uniform)
    while state.k:
        state.run(_ITERATIONS, _TOLERANCE)
        if not math.isfinite(state.log_likelihoods[0]):
            return
        if state.keep_alive():
            continue
        yield state.mixture()
        if state.k == 1:
            return
        state.merge(1)
