"""Whether the clusters of a stream move: where a row lies tells when it came."""

import math

import numpy as np
from scipy.stats import chi2

# Probability in random order below which rows do depend on the time.
_UNLIKELY = 1e-4
# Least difference of the steps between rows from those in random order, in standard
# errors: a probability of 1e-3.
_LEAST_ERRORS = 3.09
# Least share of the squared deviations within clusters that the time explains.
_NOTABLE = 0.05


def share_of_drift(points, times, labels):
    """Return the share of the deviations that the time explains; 0 if it may be chance.

    The mean places of the rows of a cluster are compared between the intervals of the
    stream. If the rows of a cluster came in random order, their squared deviations
    between n intervals are n - 1 times the variance, whatever the distribution of the
    rows, and also if the cluster appeared late, or had no rows for some time.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
    times : ndarray of shape (n_points, n_intervals)
        Weights of the rows of each point in intervals of the stream.
    labels : ndarray of shape (n_points,)
        Clusters of the points.

    Returns
    -------
    share : float
    """
    between, expected, variance, total = 0.0, 0.0, 0.0, 0.0
    for j in np.unique(labels):
        rows, masses = points[labels == j], times[labels == j]
        masses = masses[:, masses.any(axis=0)]
        weights = masses.sum(axis=1)
        n_rows = weights.sum()
        if n_rows < 2:
            continue
        gaps = rows - weights @ rows / n_rows
        covariance = (gaps * weights[:, None]).T @ gaps / (n_rows - 1)
        sums, sizes = masses.T @ gaps, masses.sum(axis=0)
        n_more = len(sizes) - 1
        total += (n_rows - 1) * np.trace(covariance)
        between += ((sums**2).sum(axis=1) / sizes).sum()
        expected += n_more * np.trace(covariance)
        variance += 2 * n_more * (covariance**2).sum()
    if variance == 0:
        return 0.0
    scale = variance / (2 * expected)  # of a chi-squared variable with these moments
    if chi2.sf(between / scale, expected / scale) > _UNLIKELY:
        return 0.0
    share = (between - expected) / total
    return float(share) if share >= _NOTABLE else 0.0


def share_of_steps(rows, labels, steps, n_steps):
    """Return the share of the deviations that the row before explains, or 0.

    In random order, the squared distance of consecutive rows is on average twice the
    variance within their cluster, or more if they are of two clusters. The ratio of the
    two is that of von Neumann (1941); with n steps and normal rows, its standard error
    is one over the root of n times the number of features, here of directions in which
    the rows vary. It is larger if only some of the rows are in steps; and one far row
    may be in a single step. The pieces of a walk or of a slow curve fail the test after
    a few rows each. It is not made where distinct rows have weights: copies come in
    turn.

    Parameters
    ----------
    rows : Rows
        In the coordinates in which the steps were measured.
    labels : ndarray of shape (n_points,)
        Clusters of the points.
    steps, n_steps : float
        Sum of the squared distances of consecutive rows, and their number.

    Returns
    -------
    share : float
        0 if the order may be chance.
    """
    n_rows = rows.weights.sum()
    met = min(n_steps / n_rows, 1.0)
    if met == 0 or rows.weights[rows.spreads == 0].max(initial=1.0) > 1 + 1e-9:
        return 0.0
    expected, variance, farthest = 0.0, 0.0, 0.0
    merged = rows.scatter / max(np.trace(rows.scatter), 1e-300)
    for j in np.unique(labels):
        own = labels == j
        weights = rows.weights[own]
        n_own = weights.sum()
        if n_own < 2:
            continue
        gaps = rows.points[own] - weights @ rows.points[own] / n_own
        covariance = (gaps * weights[:, None]).T @ gaps
        covariance += weights @ rows.spreads[own] * merged
        covariance /= n_own - 1
        expected += 2 * met * n_own * np.trace(covariance)
        variance += 4 * met * n_own * (covariance**2).sum()
        squares = (gaps**2).sum(axis=1) + rows.spreads[own] - np.trace(covariance)
        variance += 2 * met * (1 - met) * (weights @ squares**2)
        farthest = max(farthest, (squares**2).max())
    if steps >= expected - _LEAST_ERRORS * math.sqrt(variance + farthest):
        return 0.0
    return float(1 - steps / expected)
