"""Evidence of partitions: log-likelihood and penalties."""

import math

import numpy as np
from scipy.special import multigammaln

# Share of the log-likelihood that counts as evidence: real clusters do not have exactly
# the shape of the mixture's components.
EVIDENCE = 0.4
# Degrees of freedom of an inverse Wishart prior that are tried, beyond the least.
_PRIOR_DOF = np.geomspace(1e-1, 1e6, 80)
# Largest number of rows whose evidence counts.
_MOST_EVIDENCE = 6000.0


def n_shape_parameters(shape, n_features):
    """Return the number of parameters of a shape of given volume."""
    d = n_features
    return {"round": 0, "diagonal": d - 1, "tied": d * (d + 1) // 2 - 1}[shape]


def n_region_parameters(shape, n_features):
    """Return the number of parameters of the region of a uniform background.

    A box has two ends per feature; for the shape "tied" the region is an ellipsoid.
    """
    d = n_features
    return d + d * (d + 1) // 2 if shape == "tied" else 2 * d


def evidences_of_shape(covariance, shape, n_rows):
    """Return the log evidence of a shape relative to round components, in two parts.

    The first part compares a scale for each feature with one common scale, the second
    correlations with none, for the pooled `covariance` within the clusters. Each is the
    larger of two values: the evidence with an inverse Wishart prior, about equal
    variances or no correlations, whose degrees of freedom maximise it; and the gain in
    log-likelihood minus log(n_rows) / 2 for each parameter.
    """
    if shape == "round":
        return 0.0, 0.0
    d = len(covariance)
    variances = np.diag(covariance)
    scales = _evidence_of_blocks(variances / variances.mean(), 1, d - 1, n_rows)
    if shape == "diagonal":
        return scales, 0.0
    roots = np.sqrt(variances)
    values = np.linalg.eigvalsh(covariance / roots / roots[:, None])
    values = np.maximum(values, 1e-14)
    return scales, _evidence_of_blocks(values, d, d * (d - 1) / 2, n_rows)


def _evidence_of_blocks(eigenvalues, size, n_parameters, n_rows):
    """Return the log evidence of free blocks over the identity matrix, at least 0."""
    gain = -n_rows / 2 * np.log(eigenvalues).sum()
    charged = gain - n_parameters / 2 * math.log(n_rows)
    several = inverse_wishart_evidence(eigenvalues, size, n_rows)
    return max(float(charged), float(several.max()), 0.0)


def inverse_wishart_evidence(eigenvalues, size, n_rows):
    """Return the log evidence of free blocks over the identity matrix.

    The prior is an inverse Wishart distribution with the identity matrix as its mean.
    There is an entry for each of the degrees of freedom tried.

    Parameters
    ----------
    eigenvalues : ndarray of shape (..., n_features)
        Eigenvalues of the covariances, in blocks of `size` features.
    size : int
    n_rows : float or ndarray of shape (...,)

    Returns
    -------
    evidence : ndarray of shape (..., n_dof)
    """
    n_rows = np.asarray(n_rows)[..., None]
    d, dof = eigenvalues.shape[-1], size + 1 + _PRIOR_DOF
    value = multigammaln((dof + n_rows) / 2, size) - multigammaln(dof / 2, size)
    value = d // size * (value + dof / 2 * size * np.log(_PRIOR_DOF))
    sums = _PRIOR_DOF[:, None] + (n_rows * eigenvalues)[..., None, :]
    value -= (dof + n_rows) / 2 * np.log(sums).sum(axis=-1)
    squares = eigenvalues.sum(axis=-1, keepdims=True) + d * math.log(2)
    return value + n_rows / 2 * squares


def share_of_evidence(n_rows, share=EVIDENCE):
    """Return the share of the log-likelihood of `n_rows` rows that is evidence."""
    return share * min(1.0, _MOST_EVIDENCE / n_rows)


def completed_evidence(
    fit, entropy, n_clusters, n_rows, n_features, n_others, share=EVIDENCE
):
    """Return the completed log-likelihood minus log(n_rows) / 2 per parameter.

    `fit`: log-likelihood of rows and clusters; `entropy`: the sum of p log p of the
    clusters' shares p; `n_others`: number of parameters other than centres and shares.
    The clusters' shares are free or equal, whichever is better. The arguments are
    floats, or arrays with an entry for each number of clusters.
    """
    share = share_of_evidence(n_rows, share)
    half_log = math.log(share * n_rows) / 2
    unequal = share * n_rows * (entropy + np.log(n_clusters))
    fit = share * fit - np.minimum(unequal, (n_clusters - 1) * half_log)
    return fit - (n_clusters * n_features + n_others) * half_log


def rebate_of_small(ratios, n_evidence, n_clusters, n_features):
    """Return the reduction of the penalty for clusters smaller than average.

    The penalty of a cluster with its own variance is half a log of its own rows [1]_
    for each feature of its centre and for its variance, instead of half a log of the
    rows of a cluster of average size. The rows count as at least the number of
    parameters of a covariance matrix, n_features (n_features + 1) / 2: fewer rows may
    be the tail of another cluster.

    Parameters
    ----------
    ratios : ndarray of shape (n_apart,)
        Rows of the clusters that are apart from all larger ones, over the mean number
        of rows of all clusters.
    n_evidence : float
        Rows whose likelihood counts.
    n_clusters, n_features : int

    Returns
    -------
    rebate : float
        Log evidence, at least 0.

    References
    ----------
    .. [1] M. A. T. Figueiredo and A. K. Jain (2002). Unsupervised learning of finite
       mixture models. IEEE Transactions on Pattern Analysis and Machine Intelligence
       24.
    """
    fewest = n_features * (n_features + 1) / 2
    ratios = np.maximum(ratios, fewest * n_clusters / n_evidence)
    return -(n_features + 1) / 2 * float(np.minimum(np.log(ratios), 0).sum())
