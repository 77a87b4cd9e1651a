"""Groups with one centre that differ in their correlations."""

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from ._paco_covariances import fit_with_covariances
from ._paco_mixture import (
    LEAST_GAIN,
    STUDENT_DOF,
    log_components,
    n_shape_parameters,
    student_weights,
)

# Number of points that mixtures are fitted to, least number of rows for each parameter
# of one normal group, and largest number of columns, as directions have its square.
_POINTS, _ROWS_OF_PARAMETER, _MOST_COLUMNS = 2000, 5, 20
# Least gain in log evidence, largest distance of the centres in standard deviations,
# and least share of the rows of the smaller group.
_LEAST_GAIN, _SAME_CENTER, _LEAST_SHARE = 5.0, 1.0, 0.1
# Degrees of freedom of one group with heavy tails, the alternative to two groups.
_TAILS = (2.0, 3.0, 5.0, 10.0)
# Numbers of iterations of EM: of mixtures, of two groups before they are compared with
# one normal group, and of a Student scale.
_MAX_ITER, _FIRST_ITER, _SCALE_ITER = 60, 3, 30


def shares_of_crossing_groups(problem):
    """Return the shares of two normal groups that cross, or None if one is as likely.

    Two groups with one centre and different correlations have no gap between them, and
    overlap, so that no criterion on clusters tells them apart. Their density does: two
    normal components with a covariance each, about the same centre, are compared by the
    Bayesian information criterion with one normal or Student component, with two
    components of one shape, with two Student components with a covariance each, and
    with independent noise of heavy tails in the directions in which the two differ.

    Parameters
    ----------
    problem : MixtureProblem

    Returns
    -------
    shares : ndarray of shape (2,) or None
        In increasing order.
    """
    n_drawn = problem.n_rows / problem.row_weight
    share = min(1.0, _POINTS / len(problem.points))
    problem, d = problem.subset(_POINTS, share * n_drawn), problem.d
    of_center_and_shape = d + n_shape_parameters("tied", d) + 1
    few_rows = problem.n_rows < _ROWS_OF_PARAMETER * of_center_and_shape
    if d == 1 or d > _MOST_COLUMNS or few_rows:
        return None
    single = problem.single("tied")

    def value(mixture, n_parameters):
        if mixture is None:
            return -math.inf
        return mixture.log_likelihoods[0] - n_parameters * math.log(problem.n_rows) / 2

    def one(dof):
        mixture = problem.fit(single, "tied", False, dof, _MAX_ITER)
        return value(mixture, of_center_and_shape + math.isfinite(dof))

    labels = _crossing_labels(problem)
    if labels.min() == labels.max():
        return None
    start = problem.cut(single, labels)
    of_two, of_normal = 2 * of_center_and_shape + 1, one(math.inf)
    crossing = fit_with_covariances(problem, start, labels, _FIRST_ITER)
    if value(crossing, of_two) < of_normal:
        return None  # of most single groups, which saves time
    crossing = fit_with_covariances(problem, start, labels, _MAX_ITER)
    least = value(crossing, of_two) - _LEAST_GAIN
    if (
        crossing.n_clusters < 2
        or crossing.shares.min() < _LEAST_SHARE
        or _distance_of_centers(crossing) > _SAME_CENTER
        or of_normal > least
    ):
        return None
    others = [*map(one, _TAILS)]
    for begin in (start, _inner_and_outer(problem, single)):
        for dof in (math.inf, STUDENT_DOF):
            mixture = problem.fit(begin, "tied", True, dof, _MAX_ITER)
            others.append(value(mixture, of_center_and_shape + d + 2))
    several = replace(start, dof=STUDENT_DOF)
    tails = value(fit_with_covariances(problem, several, labels), of_two)
    independent = _independent(problem, crossing.labels)
    independent -= d * (d + 2) * math.log(problem.n_rows) / 2
    own = least + _LEAST_GAIN
    if max(others) > least or tails > own or independent > own + LEAST_GAIN:
        return None
    return np.sort(crossing.shares)


def _inner_and_outer(problem, single):
    """Return a mixture of two clusters of one shape about the centre of one cluster."""
    squares = ((problem.points @ single.coordinates) ** 2).sum(axis=1)
    outer = (squares > np.median(squares)).astype(np.int64)
    masses = np.bincount(outer, problem.weights, minlength=2)
    sums = np.bincount(outer, problem.weights * squares, minlength=2)
    widths = problem.widths_in(single.coordinates).mean()
    scales = (sums / np.maximum(masses, 1e-300) + widths) / problem.d
    return replace(problem.cut(single, outer), scales=scales)


def _independent(problem, labels):
    """Return the log-likelihood of independent Student or Laplace noise.

    It is independent in the directions in which the covariances of two groups differ.
    """
    weights, n_rows = problem.weights, problem.n_rows
    covariances = []
    for j in (0, 1):
        rows = labels == j
        mass = max(weights[rows].sum(), 1e-300)
        gaps = problem.points[rows] - weights[rows] @ problem.points[rows] / mass
        covariances.append((gaps * weights[rows, None]).T @ gaps / mass)
    ridge = problem.merged_in(np.eye(problem.d))
    basis = eigh(covariances[0] + ridge, sum(covariances) + 2 * ridge)[1]
    merged = np.diag(problem.merged_in(basis))
    squares = (problem.points @ basis) ** 2 + merged
    best = np.full(problem.d, -math.inf)
    for dof in (*_TAILS, math.inf):
        scales = weights @ squares / n_rows
        for _ in range(_SCALE_ITER):
            tails = student_weights(squares / scales, dof, 1)
            scales = weights @ (squares * tails) / n_rows
        best = np.maximum(best, weights @ log_components(squares, scales, dof, 1))
    widths = weights @ np.sqrt(squares) / n_rows
    laplace = -n_rows * (1.0 + np.log(2 * widths))
    log_volume = np.linalg.slogdet(basis)[1]
    return float(np.maximum(best, laplace).sum() + n_rows * log_volume)


def _distance_of_centers(mixture):
    """Return the distance of two centres in standard deviations."""
    first, second = mixture.centers
    return float(np.linalg.norm(first - second)) / math.sqrt(mixture.scales.mean())


def _crossing_labels(problem):
    """Return labels of points by their direction from the centre.

    In white coordinates, the products of the entries of a direction vary most along the
    difference of the covariances of two groups.
    """
    points, weights = problem.points @ problem.whitened("tied"), problem.weights
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    directions = points / np.maximum(norms, 1e-300)
    first, second = np.triu_indices(problem.d)
    products = directions[:, first] * directions[:, second]
    products *= np.where(first == second, 1.0, math.sqrt(2.0))
    products -= weights @ products / problem.n_rows
    axis = np.linalg.eigh((products * weights[:, None]).T @ products)[1][:, -1]
    return (products @ axis > 0).astype(np.int64)
