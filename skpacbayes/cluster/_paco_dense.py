"""Dense groups of few rows in a background of most rows."""

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from ._paco_background import (
    MOST,
    fit_with_background,
    log_volume,
    without_chance_groups,
)
from ._paco_chain import log_ball
from ._paco_fitting import EMState
from ._paco_mixture import STUDENT_DOF

# Numbers of neighbours of a point that are counted.
_NUMBERS = np.array([4, 8, 16, 32])
# Largest number of points whose neighbours are counted, and of groups.
_MOST_POINTS, _MOST_GROUPS = 500, 30
# Largest expected number of dense groups that a density has by chance.
_CHANCE = 0.01
# Number of iterations of EM between two mergers, and their tolerance.
_ITERATIONS, _TOLERANCE = 6, 0.05
# Initial values: least share of the background, and least variance of a group, relative
# to that of all rows.
_LEAST_BACKGROUND, _LEAST_SCALE = 0.05, 1e-9


def with_dense_groups(search, best, shapes):
    """Return the mixture of larger evidence: `best`, or dense groups in a background.

    Ward's tree cuts a background of most rows into large pieces, and dense groups of
    few rows are lost in these. Such groups are searched if more rows are near each
    other than `best` explains. If a uniform density is likelier than `best`, or `best`
    has a background of most rows, they are searched if more rows are near each other
    than the uniform density explains.

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
    explained, uniform = search.log_joint(best), _uniform(problem, best.shape)
    if best.background > MOST or problem.weights @ (explained - uniform) < 0:
        explained = uniform
    if not Balls(problem, best.shape).dense(explained):
        return best
    found = itertools.chain.from_iterable(_fits(search, shape) for shape in shapes)
    return max([best, *found], key=search.value)


def _uniform(problem, shape):
    """Return the log of a uniform density of the rows at each point."""
    return np.full(len(problem.points), -log_volume(problem, shape))


def _fits(search, shape):
    """Yield mixtures of dense groups and a uniform background of most rows.

    Nowhere are more rows near each other than such a mixture explains. The rows around
    the dense cores of wide clusters, for instance, are no uniform background.
    """
    problem = search.problem
    balls, uniform = Balls(problem, shape), _uniform(problem, shape)
    starts = list(_merged(problem, balls.dense(uniform), shape, uniform[0]))
    if not starts:
        return
    start = max(starts, key=search.value)
    for own, dof in itertools.product((False, True), (math.inf, STUDENT_DOF)):
        fitted = fit_with_background(problem, start, shape, own, dof)
        fitted = without_chance_groups(problem, fitted)
        if fitted is None or fitted.background <= MOST:
            continue
        if not balls.dense(search.log_joint(fitted)):
            yield fitted


class Balls:
    """Balls about points, each with several numbers of neighbours.

    Merged rows, and rounding, widen the balls. Rows of unequal weights count as their
    effective number.

    Parameters
    ----------
    problem : MixtureProblem
    shape : str
        Balls are round where the points are whitened for this shape.
    """

    def __init__(self, problem, shape):
        coordinates = problem.whitened(shape)
        points, weights, d = problem.points @ coordinates, problem.weights, problem.d
        centers = problem.order[:: math.ceil(len(points) / _MOST_POINTS)]
        self.numbers = _NUMBERS[len(points) > _NUMBERS]
        gaps, self.near = KDTree(points).query(points[centers], self.numbers[-1] + 1)
        widths, weights = problem.widths_in(coordinates), weights / problem.row_weight
        own = np.where(widths > 0, weights, weights**2)  # merged rows weigh 1 each
        self.masses = self._sums(weights)
        self.effective = self.masses**2 / np.maximum(self._sums(own), 1e-300)
        self.n_rows = problem.n_rows / problem.row_weight
        squares = gaps[:, self.numbers] ** 2 + self._largest(widths)
        log_squares = np.log(np.maximum(squares, 1e-300))
        self.log_volumes = log_ball(1.0, d) + d / 2 * log_squares

    def _sums(self, values):
        """Return the sums of the values of the neighbours in each ball."""
        return np.cumsum(values[self.near[:, 1:]], axis=1)[:, self.numbers - 1]

    def _largest(self, values):
        """Return the largest value of the points of each ball."""
        return np.maximum.accumulate(values[self.near], axis=1)[:, self.numbers]

    def dense(self, log_density):
        """Return disjoint balls with more rows than a density has there by chance.

        The probability of so many rows is at most Chernoff's bound for a Poisson
        distribution, here of the effective number of rows. The density in a ball is the
        largest one at its points.

        Parameters
        ----------
        log_density : ndarray of shape (n_points,)

        Returns
        -------
        groups : list of ndarray of int
            The points of each ball, the least probable ball first.
        """
        expected = self._largest(log_density) + self.log_volumes
        expected = self.n_rows * np.exp(np.clip(expected, -600.0, 600.0))
        ratios = np.maximum(self.masses / expected, 1.0)
        bounds = self.effective * (np.log(ratios) - 1.0 + 1.0 / ratios)
        numbers, bounds = self.numbers[bounds.argmax(axis=1)], bounds.max(axis=1)
        groups, taken = [], np.zeros(len(log_density), dtype=bool)
        for i in np.argsort(-bounds, kind="stable"):
            if bounds[i] <= math.log(self.n_rows / _CHANCE):
                break
            ball = self.near[i, : numbers[i] + 1]
            if not taken[ball].any():
                groups.append(ball)
            taken[ball] = True
        return groups[:_MOST_GROUPS]


def _merged(problem, groups, shape, log_uniform):
    """Yield mixtures of the groups and a background, each with one group fewer."""
    if not groups:
        return
    single = problem.single(shape)
    points, weights = problem.points @ single.coordinates, problem.weights
    widths = problem.widths_in(single.coordinates)
    masses, centers, scales = [], [], []
    for group in groups:
        mass = weights[group].sum()
        center = weights[group] @ points[group] / mass
        squares = ((points[group] - center) ** 2).sum(axis=1) + widths[group]
        masses.append(mass)
        centers.append(center)
        scales.append(weights[group] @ squares / mass / problem.d)
    masses = np.array(masses)
    start = replace(
        single,
        centers=np.array(centers),
        scales=np.maximum(scales, _LEAST_SCALE * problem.variance),
        shares=masses / problem.n_rows,
        masses=masses,
    )
    background = max(1.0 - start.shares.sum(), _LEAST_BACKGROUND)
    state = EMState(problem, start, shape, True, math.inf, background, log_uniform)
    yield from state.merged(max_iter=_ITERATIONS, tolerance=_TOLERANCE)
