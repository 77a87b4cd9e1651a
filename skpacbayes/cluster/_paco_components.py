"""Groups of correlated columns, found along one axis or by principal components."""

import math
from functools import partial

import numpy as np

from .._kernels.kmeans import WeightedPoints
from ._paco_mixture import STUDENT_DOF, completed_evidence
from ._paco_pieces import apart, axes_by_tails

# Numbers of principal components that are tried, and least number of columns, and of
# rows, for each of them.
_COMPONENTS, _COLUMNS, _ROWS = (5, 10, 20), 2, 4
# Numbers of clusters that are tried, at least and at most; and of starts of k-means.
_FEWEST, _MOST, _STARTS = 4, 12, 5
# Least number of rows for each component where gaps count, and most groups with gaps:
# between more groups, of fewer rows each, no gap is significant.
_ROWS_OF_GAPS, _MOST_WITH_GAPS = 12, 5
# Number of clusters that are cut in two.
_HALVED = 4
# Number of times that EM starts, from a partition or that which it found; its number of
# iterations; and the deficit in log evidence from which it does not start again.
_ROUNDS, _MAX_ITER, _HOPELESS = 3, 15, 100.0
# Variance of groups along one axis, over that of all rows, that counts as none.
_NO_VARIANCE = 1e-12


def fit_groups_of_axis(search):
    """Fit clusters of one covariance that start from groups along one axis.

    Long groups side by side, once the rows are white, are longer than their distance,
    so that distances between rows do not show them. They lower the kurtosis of the
    axis across them: where it is below a normal one by two standard errors, k-means
    finds groups along this axis, and EM in all columns starts there.

    Parameters
    ----------
    search : Search
        Keeps the mixtures.
    """
    problem, rng = search.problem, np.random.default_rng(0)
    weights, n_rows = problem.weights, problem.n_rows
    if problem.d == 1:
        return
    gaps = problem.points - weights @ problem.points / n_rows
    axis = axes_by_tails(gaps, weights)[:, 0]
    places = gaps @ axis
    # In this unit fourth powers do not overflow; a power of 2 changes no digit.
    unit = math.ldexp(1.0, math.frexp(np.abs(places).max())[1])
    places /= unit
    merged = axis @ (problem.scatter / unit) @ axis / unit / n_rows
    squares = weights @ places**2
    if not squares:  # no more rows than columns
        return
    kurtosis = n_rows * (weights @ places**4) / squares**2
    if kurtosis >= 3 - 2 * math.sqrt(24 / n_rows):
        return
    order, evidences, found = problem.order, {}, {}  # the order of no coordinates
    rows = WeightedPoints(np.ascontiguousarray(places[order, None]), weights[order])
    for k in range(2, _MOST + 1):
        labels = found[k] = np.empty(len(places), dtype=np.int64)
        labels[order] = np.unique(_labels(rows, rng, k), return_inverse=True)[1]
        evidences[k] = _evidence_along(places, weights, labels, merged)
    best = max(evidences, key=evidences.get)
    for k in (best - 1, best, best + 1):
        if k in found:
            kind = "tied", False, search.best().dof
            search.keep(fit_groups(search, found[k], kind))


def _evidence_along(places, weights, labels, merged):
    """Return the log evidence of a partition of places of one normal noise.

    `merged`: variance of the rows about the places.
    """
    masses, n_rows = np.bincount(labels, weights), weights.sum()
    centers = np.bincount(labels, weights * places) / masses
    variance = weights @ (places - centers[labels]) ** 2 / n_rows + merged
    variance = max(variance, _NO_VARIANCE * (weights @ places**2) / n_rows)
    entropy = float((masses / n_rows) @ np.log(masses / n_rows))
    fit = n_rows * (entropy - (math.log(2 * math.pi * variance) + 1) / 2)
    return completed_evidence(fit, entropy, len(masses), n_rows, 1, 1, 1.0)


def fit_groups_of_components(search, n_clusters=1):
    """Fit clusters of one covariance that start from groups of principal components.

    Where many columns are correlated, distances between rows do not show groups: a few
    directions of large variance dominate them and, once the rows are white, as many
    directions without groups as there are columns. Among leading components, white,
    k-means finds the groups; EM on all columns starts there. Normal clusters start from
    Student ones too, which single rows attract less.

    Parameters
    ----------
    search : Search
        Keeps the mixtures.
    n_clusters : int
        Number of clusters found before; only larger numbers are tried.
    """
    problem, rng = search.problem, np.random.default_rng(0)
    if problem.d < _COLUMNS * _COMPONENTS[0]:
        return
    kind = "tied", False, search.best().dof
    if math.isinf(kind[2]):
        found = search.solutions.get(("tied", False, STUDENT_DOF), {})
        others = {k: mixture.labels for k, mixture in found.items()}
        _fit_sizes(search, kind, others.get, n_clusters + 1)
    for n_components in _COMPONENTS:
        few = problem.n_rows < _ROWS * n_components
        if few or problem.d < _COLUMNS * n_components:
            break
        rows = WeightedPoints(problem.leading_components(n_components), problem.weights)
        _fit_sizes(search, kind, partial(_labels, rows, rng), n_clusters + 1)
    _fit_halves(search, kind, search.whole_evidence)
    if n_clusters > 1:
        _fit_halves(search, kind, search.value)


def n_groups_of_components(problem):
    """Return the largest number of groups of principal components with gaps, or 1.

    Of fewer than three points for each column, almost any partition has gaps in the
    coordinates that are fitted to it. A few leading components do not depend on a
    partition.

    Parameters
    ----------
    problem : MixtureProblem

    Returns
    -------
    n_groups : int
    """
    rng, weights, n_groups = np.random.default_rng(0), problem.weights, 1
    for n_components in _COMPONENTS:
        few = len(problem.points) < _ROWS_OF_GAPS * n_components
        if few or problem.d < _COLUMNS * n_components:
            break
        points = problem.leading_components(n_components)
        rows = WeightedPoints(points, weights)
        for k in range(n_groups + 1, _MOST_WITH_GAPS + 1):
            labels = np.unique(_labels(rows, rng, k), return_inverse=True)[1]
            members = weights * (labels == np.arange(labels.max() + 1)[:, None])
            centers = members @ points / members.sum(axis=1, keepdims=True)
            if apart(points, weights, labels, centers):
                n_groups = len(centers)
    return n_groups


def _fit_sizes(search, kind, labels_of, fewest):
    """Fit mixtures of `fewest` clusters and more, as long as the evidence increases."""
    highest = -math.inf
    for k in range(fewest, _MOST + 1):
        labels = labels_of(k)
        mixture = None if labels is None else fit_groups(search, labels, kind)
        value = -math.inf
        if mixture is not None:
            search.keep(mixture)
            value = search.whole_evidence(mixture)
        if k >= _FEWEST and value < highest:
            break
        highest = max(value, highest)


def _fit_halves(search, kind, value):
    """Fit mixtures with a cluster of the best cut in two, as long as one is better."""
    problem = search.problem
    best, before = max(search.mixtures, key=value), None
    while best is not before and best.n_clusters > 1:
        before = best
        for start in problem.halved(before, _HALVED):
            mixture = fit_groups(search, start.labels, kind)
            if mixture is not None:
                search.keep(mixture)
                best = max(best, mixture, key=value)


def _labels(rows, rng, n_clusters):
    """Return the labels of the best of several solutions of k-means."""
    best = math.inf
    for _ in range(_STARTS):
        loss = rows.run_lloyd(rows.draw_centers(n_clusters, rng), 50)
        if loss < best:
            best, labels = loss, rows.labels.copy()
    return labels


def fit_groups(search, labels, kind):
    """Return the mixture of all columns that EM finds from a partition, or None.

    EM is slow where clusters overlap: starting again, from the partition that it found,
    is faster.
    """
    problem = search.problem
    least = search.whole_evidence(search.best()) - _HOPELESS
    for _ in range(_ROUNDS):
        labels = np.unique(labels, return_inverse=True)[1]
        start = problem.partition(labels)
        mixture = None if start is None else problem.fit(start, *kind, _MAX_ITER)
        if mixture is None or (mixture.labels == labels).all():
            break
        if search.whole_evidence(mixture) < least:
            break
        labels = mixture.labels
    return mixture
