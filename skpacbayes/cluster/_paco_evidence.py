"""What a partition of rows gains and costs, in units of log-likelihood."""

import math

import numpy as np
from scipy.special import multigammaln

# Share of the log-likelihood that counts as evidence: real clusters are not quite of
# the shape that the mixture gives them.
EVIDENCE = 0.4
# Degrees of freedom of an inverse Wishart prior that are tried, beyond the fewest.
_PRIOR_DOF = np.geomspace(1e-1, 1e6, 80)
# Evidence of at most so many rows counts.
_MOST_EVIDENCE = 6000.0


def n_shape_parameters(shape, n_features):
    """Return the number of parameters of a shape of given volume."""
    d = n_features
    return {"round": 0, "diagonal": d - 1, "tied": d * (d + 1) // 2 - 1}[shape]


def n_region_parameters(shape, n_features):
    """Return the number of parameters of the region of a uniform background.

    The ends of a box; of an ellipsoid, if clusters are of any covariance matrix.
    """
    d = n_features
    return d + d * (d + 1) // 2 if shape == "tied" else 2 * d


def evidences_of_shape(covariance, shape, n_rows):
    """Return the log evidence of a shape over round components, in two parts.

    Of scales of the features over one scale, and of correlations over none. For the
    pooled `covariance` within the clusters of so many rows: with an inverse Wishart
    prior about equal variances, and then about no correlations, of the number of
    degrees of freedom that is likeliest; or the gain in log-likelihood less half a log
    of the number of rows for each parameter, if that is larger.
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
    """Return the log evidence of own blocks over the identity matrix, at least 0."""
    gain = -n_rows / 2 * np.log(eigenvalues).sum()
    charged = gain - n_parameters / 2 * math.log(n_rows)
    several = inverse_wishart_evidence(eigenvalues, size, n_rows)
    return max(float(charged), float(several.max()), 0.0)


def inverse_wishart_evidence(eigenvalues, size, n_rows):
    """Return the log evidence of own blocks over that of the identity matrix.

    The prior is an inverse Wishart distribution whose mean is the identity matrix; an
    entry for each of some numbers of degrees of freedom.

    Parameters
    ----------
    eigenvalues : ndarray of shape (..., n_features)
        Of covariances of so many rows, in blocks of `size` features.
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
    """Return the share of the log-likelihood of so many rows that is evidence."""
    return share * min(1.0, _MOST_EVIDENCE / n_rows)


def completed_evidence(
    fit, entropy, n_clusters, n_rows, n_features, n_others, share=EVIDENCE
):
    """Completed likelihood less half a log of the number of rows for each parameter.

    `fit`: log-likelihood of rows and clusters; `entropy`: the sum of p log p of the
    clusters' shares p; `n_others`: parameters that are not of centres or shares. The
    clusters' shares are free or equal, whichever is better. Arrays, for several
    numbers of clusters, or floats.
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
