"""Whether the clusters of a stream move: where a row lies tells when it came."""

import numpy as np
from scipy.stats import chi2

# Probability in random order below which rows do depend on the time.
_UNLIKELY = 1e-4
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
