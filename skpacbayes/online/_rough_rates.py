"""Whether the rates of counts are those of the rows, where their noise is small."""

import numpy as np

from .._base import warn_user

MOST_ROWS, ROWS_PER_COLUMN = 1000, 5
MOST_PRODUCTS = 1e9  # of the rows and the squared number of columns
STANDARD_ERRORS = 5.0
NOTABLE = 0.005  # of a rate
LARGE = 100.0  # mean count of a row


def rate_error(X, y, scores, weights):
    """Return how far the rates are from the best log-linear ones, and a standard error.

    The step of Fisher scoring from the rates tells the former. The latter is that of
    the best rates if errors may have any variance, so that it grows with overdispersion
    and with what a log-linear rate cannot express.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; of many, some that are evenly spread are used.
    y, scores, weights : ndarray of shape (n_samples,)
        Counts over exposures, logs of the predicted rates, and exposures.

    Returns
    -------
    error, standard_error : float
        Root mean squares of relative errors of rates, weighted by expected counts; 0 if
        there are too few rows, too many columns, or small counts.
    """
    width = 1 + X.shape[1]
    enough = ROWS_PER_COLUMN * width
    small = weights @ y < LARGE * len(X)
    if small or len(X) < enough or enough * width**2 > MOST_PRODUCTS:
        return 0.0, 0.0
    some = slice(None, None, max(1, len(X) // max(MOST_ROWS, enough)))
    X, y, scores, weights = X[some], y[some], scores[some], weights[some]
    spreads = X.std(axis=0)
    Z = np.column_stack(
        [np.ones(len(X)), (X - X.mean(axis=0))[:, spreads > 0] / spreads[spreads > 0]]
    )
    expected = weights * np.exp(scores)
    if not (0.0 < expected.sum() < np.inf and expected.min() > 0.0):
        return 0.0, 0.0
    expected, errors = expected / expected.sum(), weights * y - expected
    errors /= np.exp(scores) @ weights
    information = (Z.T * expected) @ Z
    information[np.diag_indices_from(information)] += 1e-10
    inverse = np.linalg.inv(information)
    relative = Z @ (inverse @ (Z.T @ errors))
    remaining = errors - expected * relative
    influences = inverse @ (Z.T * remaining)  # of the rows, on the coefficients
    variance = np.einsum("ij,ij->", influences, information @ influences)
    return np.sqrt(expected @ np.square(relative)), np.sqrt(variance)


def warn_of_rough_rates(X, y, scores, weights):
    """Warn if rates are further from the best ones than the noise explains.

    Returns whether they are.
    """
    error, standard_error = rate_error(X, y, scores, weights)
    if not max(NOTABLE, STANDARD_ERRORS * standard_error) < error < np.inf:
        return False
    ratio = error / max(standard_error, np.finfo(float).tiny)
    warn_user(
        f"The predicted rates are off by {error:.1%}, {ratio:.3g} times the "
        "standard error of the best log-linear rates: a diagonal covariance is too "
        "rough where counts are large. Use covariance='full', without bounds."
    )
    return True
