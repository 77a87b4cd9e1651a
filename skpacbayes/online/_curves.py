"""Whether the errors of a linear model are a smooth function of the features."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from .._base import warn_user

MOST_ROWS, FEWEST_ROWS = 256, 64
ROWS_PER_FEATURE = 4
SCALE = 1.4  # of the projections in the kernel, over the root of the number of features
RIDGES = (0.1, 1.0, 10.0)  # variance of the noise over that of the function
# The share of the squared errors that the function predicts. For errors that do not
# depend on the features it is about zero, with a standard deviation below 1 / sqrt(n).
NOTABLE = 0.25
STANDARD_ERRORS = 3.5
LEAST_GAIN = 0.01  # the least share of the variance of the targets
LEAST_SEEN = 0.005  # the least mean squared error of the rows used, over that of all


def curved_share(X, errors):
    """Return the share of squared errors that a smooth function would avoid.

    Each error is predicted from the others by a Gaussian process, after their linear
    part was subtracted. Of rows that are equal in X, one is used: copies of a row would
    predict each other whatever their errors are.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; `MOST_ROWS` of them are used, evenly spread.
    errors : ndarray of shape (n_samples,)
        Targets less predictions.

    Returns
    -------
    share : float
        At most 1; 0 if it is not notable, or if rows are too few to tell.
    seen : float
        Mean squared error of the rows that were used.
    """
    X, errors = _spread(2 * MOST_ROWS, X, errors)
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    X, errors = _spread(MOST_ROWS, X[first], errors[first])
    X = X - X.mean(axis=0)
    spreads = X.std(axis=0)
    X = X[:, spreads > 0] / spreads[spreads > 0]
    n_rows, n_features = X.shape
    if n_rows < max(FEWEST_ROWS, ROWS_PER_FEATURE * n_features) or not n_features:
        return 0.0, 0.0
    errors = errors - errors.mean()
    errors = errors - X @ np.linalg.lstsq(X, errors)[0]
    total = errors @ errors
    if not 0.0 < total < np.inf:
        return 0.0, 0.0
    kernel = rbf_kernel(X, gamma=0.5 * SCALE**2 / n_features)
    variances, directions = np.linalg.eigh(kernel)
    along = directions.T @ errors
    least = total
    for ridge in RIDGES:
        inverse = 1.0 / (np.maximum(variances, 0.0) + ridge)
        left_out = (directions @ (inverse * along)) / (directions**2 @ inverse)
        least = min(least, left_out @ left_out)
    share = 1.0 - least / total
    if share <= max(NOTABLE, STANDARD_ERRORS / np.sqrt(n_rows)):
        return 0.0, 0.0
    return share, total / n_rows


def _spread(most, X, errors):
    """Return at most so many rows, evenly spread."""
    some = np.linspace(0, len(X) - 1, min(most, len(X))).astype(int)
    return X[some], errors[some]


def warn_of_curves(X, y, errors, remedy):
    """Warn if a smooth function of the features explains much of the errors of y.

    remedy : what to use for predictions, in words.
    """
    share, seen = curved_share(X, errors)
    # The rows that were used may lack the few that have most of the squared error, as
    # rare counts have: the errors of all others are then a function of the features.
    error, least = np.square(errors).mean(), LEAST_GAIN * y.var()
    typical = seen > LEAST_SEEN * error or share * seen > least
    if share * error > least and typical:
        warn_user(
            f"The model is linear, and a smooth function of the features predicts "
            f"{share:.0%} of its squared error. Use {remedy} for "
            "the predictions, SparseAdditiveGibbsRegressor for the effects of single "
            "features, or transform the features. It may also be noise that similar "
            "rows share, as in time series and repeated measurements."
        )
