"""Groups of rows that differ in which columns have their least value, such as zero.

Sparse counts and amounts of which many are zero are far from normal about a centre, so
that groups told apart by their zeros may count as one cluster.
"""

import math

import numpy as np
from scipy.special import expit, logsumexp, xlogy

# Least and largest share of the rows at the least value of a column, and least number
# of other values.
_SHARES, _OTHERS = (0.05, 0.95), 2
# Least number of such columns, as two are described by any two classes; and largest.
_FEWEST, _MOST_COLUMNS = 3, 60
# Least number of rows, and largest number of distinct ones that are used.
_FEWEST_ROWS, _MOST_ROWS = 50, 1000
# Largest number of classes, numbers of iterations of EM, and its least gain.
_MOST_CLASSES, _FEW, _MANY, _TOLERANCE = 12, 8, 40, 0.1
# Gain in log evidence from which more classes are clear.
_CLEAR = 10.0
# Values, in standard deviations, of a continuous trait that zeros may depend on.
_TRAIT = np.linspace(-3.0, 3.0, 13)
# Least information about an intercept and a slope, as if of a prior of scale 3.
_PRIOR = 0.1
# Share of the entropy of the classes below which clusters do not tell them apart.
_EXPLAINED = 0.5


def classes_by_zeros(points, weights, labels, n_clusters):
    """Return the number of classes of rows by the columns at their least value.

    A class is a set of independent probabilities that a column has its least value. The
    number of classes is that of largest integrated completed likelihood.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Rows in the coordinates of the columns.
    weights : ndarray of shape (n_points,)
    labels : ndarray of shape (n_points,)
        Their clusters.
    n_clusters : int

    Returns
    -------
    n_classes : int
        0 if there are not clearly several, or clusters tell them apart.
    columns : ndarray of int
        The columns in which zeros are neither rare nor the rule.
    """
    columns = _columns_with_zeros(points, weights)
    none = 0, columns
    enough = weights.sum() >= _FEWEST_ROWS
    if not (enough and _FEWEST <= len(columns) <= _MOST_COLUMNS):
        return none
    zeros = points[:, columns] == points[:, columns].min(axis=0)
    if len(points) > _MOST_ROWS:
        drawn = np.random.default_rng(0).permutation(len(points))[:_MOST_ROWS]
        zeros, weights, labels = zeros[drawn], weights[drawn], labels[drawn]
    patterns, where = np.unique(zeros, axis=0, return_inverse=True)
    masses = np.bincount(where.ravel(), weights)
    patterns = patterns.astype(float)
    classes, evidence = _classes(patterns, masses)
    n_classes = classes.max() + 1
    if n_classes == 1 or evidence < _evidence_of_trait(patterns, masses):
        return none
    counts = np.zeros((n_clusters, n_classes))
    np.add.at(counts, (labels, classes[where.ravel()]), weights)
    counts /= counts.sum()
    of_classes, of_labels = counts.sum(axis=0), counts.sum(axis=1)
    entropy = -xlogy(of_classes, of_classes).sum()
    remaining = xlogy(of_labels, of_labels).sum() - xlogy(counts, counts).sum()
    told = n_clusters >= n_classes and remaining <= (1 - _EXPLAINED) * entropy
    return none if told else (int(n_classes), columns)


def _columns_with_zeros(points, weights):
    """Return the columns with their least value in many rows, but not in all."""
    lowest = points.min(axis=0)
    shares = weights @ (points == lowest) / weights.sum()
    found = np.flatnonzero((shares >= _SHARES[0]) & (shares <= _SHARES[1]))
    return np.array(
        [j for j in found if len(np.unique(points[:, j])) > _OTHERS], dtype=np.int64
    )


def _classes(patterns, masses):
    """Return the class of each pattern, and the evidence of the classes.

    Their number is the largest that is clear.
    """
    responsibilities, score = np.ones((len(patterns), 1)), -math.inf
    while responsibilities.shape[1] < _MOST_CLASSES:
        responsibilities, fit, value = _fit(patterns, masses, responsibilities, _MANY)
        if value < score + _CLEAR:
            break
        best, score = responsibilities.argmax(axis=1), value
        n_parameters = responsibilities.shape[1] * (patterns.shape[1] + 1) - 1
        evidence = fit - n_parameters / 2 * math.log(masses.sum())
        starts = [
            _fit(patterns, masses, start, _FEW)
            for start in _halved(patterns, masses, responsibilities)
        ]
        if not starts:
            break
        responsibilities = max(starts, key=lambda one: one[1])[0]
    return np.unique(best, return_inverse=True)[1], evidence


def _fit(patterns, masses, responsibilities, n_iter):
    """Return responsibilities, log-likelihood and evidence after iterations of EM."""
    total, before = masses.sum(), -math.inf
    n_classes = responsibilities.shape[1]
    for _ in range(n_iter):
        parts = responsibilities * masses[:, None]
        rows = parts.sum(axis=0)
        shares = (rows + 0.5) / (total + 0.5 * n_classes)
        rates = (parts.T @ patterns + 0.5) / (rows[:, None] + 1.0)
        odds = np.log(rates) - np.log1p(-rates)
        log_joint = patterns @ odds.T + (np.log(shares) + np.log1p(-rates).sum(axis=1))
        log_rows = logsumexp(log_joint, axis=1)
        responsibilities = np.exp(log_joint - log_rows[:, None])
        fit = masses @ log_rows
        if fit - before < _TOLERANCE:
            break
        before = fit
    n_parameters = n_classes * (patterns.shape[1] + 1) - 1
    completed = masses @ log_joint.max(axis=1)
    return responsibilities, fit, completed - n_parameters / 2 * math.log(total)


def _evidence_of_trait(patterns, masses):
    """Return the evidence of one normal trait of the rows that zeros depend on [1]_.

    Groups along a gradient, as of rows that have more or less of everything, are not
    told apart by zeros.

    References
    ----------
    .. [1] R. D. Bock and M. Aitkin (1981). Marginal maximum likelihood estimation of
       item parameters. Psychometrika 46.
    """
    total, m = masses.sum(), patterns.shape[1]
    rates = (masses @ patterns + 0.5) / (total + 1.0)
    gaps = patterns - rates
    _, axes = np.linalg.eigh((gaps * masses[:, None]).T @ gaps)
    lines = np.array([np.log(rates) - np.log1p(-rates), 2 * math.sqrt(m) * axes[:, -1]])
    design = np.column_stack([np.ones(len(_TRAIT)), _TRAIT])
    log_shares = -0.5 * _TRAIT**2
    log_shares -= logsumexp(log_shares)
    fit = -math.inf
    for _ in range(_MANY):
        odds = design @ lines
        log_joint = patterns @ odds.T + (log_shares - np.logaddexp(0, odds).sum(axis=1))
        log_rows = logsumexp(log_joint, axis=1)
        before, fit = fit, masses @ log_rows
        if fit - before < _TOLERANCE:
            break
        parts = np.exp(log_joint - log_rows[:, None]) * masses[:, None]
        rates = expit(odds)
        slopes = design.T @ (parts.T @ patterns - parts.sum(axis=0)[:, None] * rates)
        heights = parts.sum(axis=0)[:, None] * rates * (1 - rates)
        curves = np.einsum("qa,qb,qj->jab", design, design, heights)
        curves += _PRIOR * np.eye(2)
        steps = (slopes - _PRIOR * lines).T[:, :, None]
        lines = lines + np.linalg.solve(curves, steps)[:, :, 0].T
    return max(fit, before) - m * math.log(total)


def _halved(patterns, masses, responsibilities):
    """Yield responsibilities with one class divided along its longest axis."""
    for j in range(responsibilities.shape[1]):
        parts = responsibilities[:, j] * masses
        n_rows = parts.sum()
        if n_rows < 2:
            continue
        gaps = patterns - parts @ patterns / n_rows
        _, axes = np.linalg.eigh((gaps * parts[:, None]).T @ gaps)
        along = gaps @ axes[:, -1]
        scale = math.sqrt(parts @ along**2 / n_rows)
        if scale > 0:
            upper = expit(2 * along / scale)
            of_class = responsibilities[:, j]
            halves = responsibilities.copy()
            halves[:, j] = of_class * upper
            yield np.column_stack([halves, of_class * (1 - upper)])
