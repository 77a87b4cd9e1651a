"""Whether residuals still depend on a variable: its effect is rougher than the basis.

A smooth basis leaves out, in silence, what it cannot say: a wave of many periods, steps
between categories given as numbers, an effect in the narrow middle of a wide range.
"""

from warnings import warn

import numpy as np
from scipy.stats import norm

from .._base import user_stack_level

LEVEL = 1e-3  # of the test of all variables together
LEAST_GAIN = 0.01  # share of the variance of y that the dependence has at least
FEWEST, MOST = 50, 2000  # rows
N_NEIGHBORS = 5  # rows before a row, of each variable, that are compared with it
TELLS_APART = 0.9  # share of the rows that a row's variables, or its target, identify
PER_LEVEL = 3  # rows for each value of a variable that may be a category


def warn_of_roughness(X, y, predict, categorical):
    """Warn of the variable whose neighboring rows have the most similar residuals.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows of the fit.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Their targets, or a column for each class.
    predict : callable
        Returns the predictions of the fit at some rows, of the shape of y.
    categorical : sequence of int
        Categorical variables, which have no neighbors.
    """
    step = -(-len(X) // MOST)
    X, y = X[::step], y[::step]
    distinct = without_copies(X, y)
    X, y = X[distinct], y[distinct]
    if len(X) < FEWEST:
        return
    residuals = (y - predict(X)).reshape(len(X), -1)
    widths = y.reshape(len(X), -1).std(axis=0)
    found = [
        _roughest(X, own, width, LEVEL / residuals.shape[1], categorical)
        for own, width in zip(residuals.T, widths, strict=True)
    ]
    feature = max(found)
    if feature < 0:
        return
    column = X[:, feature][~np.isnan(X[:, feature])]
    advice = "larger max_order, basis='auto', or its ranks in its place"
    if PER_LEVEL * len(np.unique(column)) <= len(column):
        advice += ", or categorical_features if its numbers stand for categories"
    warn(
        f"Rows that are neighbors in feature {feature} have similar residuals: its "
        f"effect may be rougher than its functions are. Try a {advice}.",
        UserWarning,
        stacklevel=user_stack_level(),
    )


def _roughest(X, residuals, width, level, categorical):
    """Return the variable of most similar residuals; -1 if that may be chance.

    `width`: the standard deviation of the targets.
    """
    largest = abs(residuals).max()
    if not largest > 0:
        return -1
    scores, shares = similarity(X, residuals / largest)
    scores[list(categorical)] = -np.inf
    feature = int(scores.argmax())
    if not scores[feature] > norm.isf(level / len(scores)):
        return -1
    rough = shares[feature] > LEAST_GAIN * (width / residuals.std()) ** 2
    return feature if rough else -1


def without_copies(X, y):
    """Return the indices of rows, each of which is there once.

    Copies, as in a bootstrap sample, have the same residual, whatever the effects are.
    Where neither the variables nor the targets tell rows apart, as with categories and
    classes alone, rows are equal by chance, and all of them are kept.
    """
    first = {}
    for i, row in enumerate(np.column_stack([X, y])):
        first.setdefault(row.tobytes(), i)
    most = max(len({row.tobytes() for row in part}) for part in (X, y))
    if most < TELLS_APART * len(first):
        return np.arange(len(X))
    return np.array(list(first.values()))


def similarity(X, residuals):
    """Compare each residual with those of the rows before it, along each variable.

    With e the residuals in the order of a variable, and s_i the sum of the
    `N_NEIGHBORS` before e_i, the sum of e_i s_i over the root of that of their squares
    is nearly standard normal if residuals are independent, whatever their variances.
    Residuals are centered; equal values, and missing ones, are in random order.

    Returns
    -------
    scores, shares : ndarray of shape (n_features,)
        This ratio, and about which share of the squares of the residuals depends on
        the variable.
    """
    shuffled = np.random.default_rng(0).permutation(len(X))
    X, residuals = X[shuffled], (residuals - residuals.mean())[shuffled]
    ordered = residuals[np.argsort(X, axis=0, kind="stable")]
    before = np.zeros_like(ordered)
    for lag in range(1, N_NEIGHBORS + 1):
        before[lag:] += ordered[:-lag]
    products = ordered * before
    total = products.sum(axis=0)
    spread = np.sqrt(np.square(products).sum(axis=0))
    squares = N_NEIGHBORS * np.square(residuals).sum()
    return total / np.maximum(spread, 1e-300), total / max(squares, 1e-300)
