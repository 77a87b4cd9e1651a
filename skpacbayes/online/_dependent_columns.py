"""Columns that are nearly dependent, whose small differences a model has not learnt.

Columns are standardised one by one, so that a difference of two nearly equal ones has a
small variance. If it has an effect, the coefficients are large: the prior holds them
back, and a diagonal covariance learns them slowly.
"""

import numpy as np

from .._base import warn_user

SMALL = 0.1  # variance of a principal component of the columns in their units
RANK = 1e-14  # variance below which it is rounding in the covariances
SURE = 5.0  # standard errors of the relation between errors and such a component
NOTABLE = 0.1  # share of the squared error that it explains, net of estimation
MATERIAL = 0.01  # the same share of the variance of the targets
FEWEST = 20  # rows more than components
MOST_COLUMNS = 500  # the time of principal components grows with their cube
# Rows that are looked at, at most: this number, or as many for each column.
MOST_ROWS, ROWS_PER_COLUMN = 1000, 5


def warn_of_dependent_columns(X, targets, errors_of, weights, columns):
    """Warn if errors are a function of small differences of the columns.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows that were learnt.
    targets : ndarray of shape (n_rows, n_outputs)
        Targets.
    errors_of : callable
        Takes no argument, and returns targets less their predictions by the final
        model, (n_rows, n_outputs). It is called only where such differences say
        something of the targets, as it may compile a kernel.
    weights : ndarray of shape (n_rows,)
        Weights of the rows; empty if each is 1.
    columns : list of str
        Names of the columns.
    """
    weights = weights if len(weights) else np.ones(len(X))
    total = weights.sum()
    n_columns = X.shape[1]
    if not 2 <= n_columns <= MOST_COLUMNS or min(len(X), total) < n_columns + FEWEST:
        return
    Z, varies = _standardized(X, weights)
    variances, axes = np.linalg.eigh((Z.T * weights) @ Z / total)
    kept = (variances > RANK) & (variances < SMALL)
    if not kept.any():
        return
    axes = axes[:, kept]
    components = Z @ axes / np.sqrt(variances[kept])
    spread, of_targets, _ = _explained(components, targets, weights)
    least = MATERIAL * spread
    if not of_targets.sum() > least:
        return
    squared, explained, clear = _explained(components, errors_of(), weights)
    if not (clear.any() and explained.sum() > max(least, NOTABLE * squared)):
        return
    largest = np.where(clear, explained, -np.inf).argmax()
    loadings = np.abs(axes[:, largest])
    pair = np.sort(np.argsort(-loadings, kind="stable")[:2])
    first, second = (columns[j] for j in np.flatnonzero(varies)[pair])
    # The text is the same each time that a stream is checked: it is then shown once.
    warn_user(
        "Columns of X are nearly dependent, and the model has not learnt the effect of "
        "their small differences: a linear function of such differences, mainly of "
        f"{first} and {second}, explains {NOTABLE:.0%} or more of the squared error. "
        "Give differences instead of nearly equal columns, or whiten "
        "the columns (StandardScaler, then PCA(whiten=True), of scikit-learn)."
    )


def _explained(components, values, weights):
    """Return the sum of squares of values, and what each component explains of it.

    It is net of what estimating the effect of the component costs. Also returns for
    which components the relation is clear, by standard errors that allow for values of
    unequal variances.
    """
    values = values - np.average(values, axis=0, weights=weights)
    products = (components * weights[:, None]).T @ values
    squares = (np.square(components) * weights[:, None]).T @ np.square(values)
    explained = np.square(products).sum(axis=1) / weights.sum()
    squared = float(weights @ np.square(values).sum(axis=1))
    noise = max(squared - explained.sum(), 0.0) / (weights.sum() - len(explained) - 1)
    clear = (np.square(products) > SURE**2 * squares).any(axis=1)
    return squared, explained - 2.0 * noise, clear


def _standardized(X, weights):
    """Return the columns that vary, centred and divided by their deviations.

    Also returns which they are, (n_features,).
    """
    largest = np.abs(X).max(axis=0, initial=0.0)
    Z = X / np.where(largest > 0.0, largest, 1.0)
    Z = Z - np.average(Z, axis=0, weights=weights)
    deviations = np.sqrt(np.average(np.square(Z), axis=0, weights=weights))
    varies = deviations > 1e-12  # of the largest value: not by rounding
    return Z[:, varies] / deviations[varies], varies
