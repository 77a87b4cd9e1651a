"""Tokens of a row that depend on each other: words that come again once they came.

A mixture takes the tokens of a row for independent draws from its component. Where they
are not, the same component gives rows that differ more than such draws, and the bound
is larger with several components in its place. The likelihood to the power of one over
the inflation of the variance counts a row for what it says.
"""

import numpy as np
from scipy.sparse import csr_array

CLEAR = 3.0  # standard errors by which repetitions must exceed those of independence
LARGEST = 16.0  # inflation that is told from a larger one


def inflation_of_counts(X, labels, sample_weight):
    """Variance of the counts of a row, in units of that of independent tokens.

    Two tokens of a row are the same word with a probability s + r (1 - s), where s is
    that of two tokens of different rows of the component. Under Dirichlet-multinomial
    rows of total concentration A, r is 1 / (1 + A) and counts of a row of N tokens have
    1 + r (N - 1) times the variance of a multinomial [1]_; N is here the mean over
    tokens.

    Parameters
    ----------
    X : {ndarray, sparse array} of shape (n_samples, n_features)
        Counts.
    labels : ndarray of shape (n_samples,)
        Component of each row.
    sample_weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    inflation : float
        From 1 to 16. It is 1 where the repetitions are not clearly more than those of
        independent tokens, and where X has fractions.

    References
    ----------
    .. [1] J. E. Mosimann, "On the compound multinomial distribution, the multivariate
       beta-distribution, and correlations among proportions", Biometrika 49, 1962.
    """
    X = csr_array(X)
    if np.any(X.data != np.floor(X.data)):
        return 1.0
    repeated = expected = pairs = 0.0
    for k in np.unique(labels):
        rows, weight = X[labels == k], sample_weight[labels == k]
        totals, squares = rows.sum(axis=1), rows.multiply(rows).sum(axis=1)
        words = weight @ rows
        others = words.sum() ** 2 - weight**2 @ totals**2
        if others <= 0.0:  # one row
            continue
        same = (words @ words - weight**2 @ squares) / others
        own_pairs = weight @ (totals * (totals - 1.0))
        repeated += weight @ (squares - totals)
        expected += same * own_pairs
        pairs += own_pairs
    tokens = sample_weight @ X.sum(axis=1)
    if not repeated - expected > CLEAR * np.sqrt(2.0 * max(expected, 1.0)):
        return 1.0  # a pair counts twice
    share = (repeated - expected) / (pairs - expected)
    return float(np.clip(1.0 + share * pairs / tokens, 1.0, LARGEST))
