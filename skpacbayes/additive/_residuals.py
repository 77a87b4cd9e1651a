"""Residuals of a fit: whether they depend on a variable, or on a product of two."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from .._base import warn_user

LEVEL = 1e-3  # of the joint test of all variables
FEWEST_ROWS, MOST_ROWS = 20, 2000  # rows whose residuals are tested
MOST_TESTED = 300  # variables whose products are compared with residuals
FEW_WRONG = 0.03  # share of rows of a wrong class up to which classes are separated
PER_LEVEL = 3  # least rows per value of a variable that may be a category
LEAST_GAIN = 0.01  # least share of the variance of y explained by the dependence
# Rows before each row, in the order of a variable, that are compared: one for each
# ROWS_PER_NEIGHBOR rows of the table, at most N_NEIGHBORS.
N_NEIGHBORS, ROWS_PER_NEIGHBOR = 5, 20
TELLS_APART = 0.9  # share of distinct rows or targets: equal rows are copies
NORMAL_RATIO = 1.0  # of a sum of terms of random signs: below, nearly normal


def warn_of_residuals(
    X, y, predict, categorical, selected, *, additive=True, classes=False
):
    """Warn of residuals that depend on a variable, or on a product of two.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows of the fit.
    y : ndarray of shape (n_samples,) or (n_outputs, n_samples)
        Their targets, or a row for each class.
    predict : callable
        Returns the predictions at rows, (n_samples,) or (n_samples, n_outputs).
    categorical : sequence of int
        Categorical variables, which are not tested.
    selected : ndarray of bool of shape (n_features,)
        Variables in the model. Half of the level of the test of products is that of
        products of two of them, which are few.
    additive : bool, default=True
        Whether the model has no interactions; only then are products tested.
    classes : bool, default=False
        Whether y are indicators of classes. If nearly all rows are on the right side of
        one half, residuals are those of shrinkage, and nothing is tested.

    Returns
    -------
    warned : bool
        Whether there was a warning.
    """
    step, y = -(-len(X) // MOST_ROWS), np.atleast_2d(y).T.astype(float)
    X, y = X[::step], y[::step]
    distinct = without_copies(X, y)
    X, y = X[distinct], y[distinct]
    if len(X) < FEWEST_ROWS or not np.ptp(y, axis=0).any():
        return False  # of a constant target, residuals are rounding
    residuals = y - predict(X).reshape(len(X), -1)
    if classes and (abs(residuals) > 0.5).any(axis=1).mean() <= FEW_WRONG:
        return False
    level, widths = LEVEL / y.shape[1], y.std(axis=0)
    parts = list(zip(residuals.T, widths, strict=True))
    feature = max(roughest(X, *part, level, categorical) for part in parts)
    if feature >= 0:
        _warn_of_roughness(X, feature)
        return True
    if additive and 2 <= X.shape[1] <= MOST_TESTED:
        found = (
            closest_product(X, *part, level, categorical, selected) for part in parts
        )
        pair = next(filter(None, found), None)
        if pair:
            warn_user(
                f"Residuals depend on the product of features {pair[0]} and {pair[1]}: "
                "their effects are not additive. Set interactions='auto', or to a list "
                "of pairs."
            )
            return True
    return False


def _warn_of_roughness(X, feature):
    """Warn of the variable along which residuals are most similar."""
    column = X[:, feature][~np.isnan(X[:, feature])]
    advice = "larger max_order, basis='auto', or its ranks in its place"
    if PER_LEVEL * len(np.unique(column)) <= len(column):
        advice += ", or categorical_features if its numbers stand for categories"
    warn_user(
        f"Rows that are neighbors in feature {feature} have similar residuals: its "
        f"effect may be rougher than its functions. Try a {advice}."
    )


def without_copies(X, y):
    """Return the indices of distinct rows.

    Copies, as in a bootstrap sample, have equal residuals whatever the effects are. If
    there are few distinct rows and targets, as with categories and classes alone, rows
    are equal by chance, and all of them are kept.
    """
    first = {}
    for i, row in enumerate(np.column_stack([X, y])):
        first.setdefault(row.tobytes(), i)
    most = max(len({row.tobytes() for row in part}) for part in (X, y))
    if most < TELLS_APART * len(first):
        return np.arange(len(X))
    return np.array(list(first.values()))


def roughest(X, residuals, width, level, categorical):
    """Return the variable along which residuals are most similar.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    residuals : ndarray of shape (n_samples,)
        Their residuals.
    width : float
        Standard deviation of the targets.
    level : float
        Level of the joint test of all variables.
    categorical : sequence of int
        Variables that are not tested.

    Returns
    -------
    feature : int
        The variable; -1 if the similarity is not significant, or explains little.
    """
    largest = abs(residuals).max()
    if not largest > 0:
        return -1
    scores, shares = similarity(X, residuals / largest)
    scores[list(categorical)] = -np.inf
    feature = int(scores.argmax())
    if not scores[feature] > _limit(level / len(scores), len(X)):
        return -1
    rough = shares[feature] > LEAST_GAIN * (width / residuals.std()) ** 2
    return feature if rough else -1


def similarity(X, residuals):
    """Compare each residual with those of the rows before it, along each variable.

    Let e be the residuals in the order of a variable, and s_i the sum of up to
    `N_NEIGHBORS` residuals before e_i; of fewer in small tables, whose rows are far
    apart. The sum of e_i s_i over the root of the sum of their squares is nearly
    standard normal if residuals are independent, whatever their variances. Residuals
    are centred; equal and missing values are in random order.

    Returns
    -------
    scores, shares : ndarray of shape (n_features,)
        This ratio, and the approximate share of the squared residuals that depends on
        the variable.
    """
    shuffled = np.random.default_rng(0).permutation(len(X))
    X, residuals = X[shuffled], (residuals - residuals.mean())[shuffled]
    ordered = residuals[np.argsort(X, axis=0, kind="stable")]
    before = np.zeros_like(ordered)
    n_neighbors = max(1, min(N_NEIGHBORS, len(X) // ROWS_PER_NEIGHBOR))
    for lag in range(1, n_neighbors + 1):
        before[lag:] += ordered[:-lag]
    products = ordered * before
    total = products.sum(axis=0)
    spread = np.sqrt(np.square(products).sum(axis=0))
    squares = n_neighbors * np.square(residuals).sum()
    return total / np.maximum(spread, 1e-300), total / max(squares, 1e-300)


def _limit(level, n_rows):
    """Return the limit of a sum of independent terms over the root of their squares.

    The ratio never exceeds the root of `n_rows`. For normal terms it is a function of
    Student's t, and it is nearly standard normal for many rows.
    """
    quantile = student.isf(level, n_rows - 1)
    return quantile * np.sqrt(n_rows / (n_rows - 1 + quantile**2))


def closest_product(X, residuals, width, level, categorical, selected):
    """Return the pair of variables whose product is closest to the residuals.

    The sum of residuals times products is compared with its distribution under random
    signs of the terms, see `sign_level`. The product is that of ranks; parts of it that
    depend on one variable do not count. Half of the level is spent on products of two
    selected variables, which are few, and half on all products.

    Parameters
    ----------
    X, residuals, width, level, categorical
        See :func:`roughest`.
    selected : ndarray of bool of shape (n_features,)
        Selected variables.

    Returns
    -------
    pair : tuple of int or None
        The variables; None if no product is significant, or explains much.
    """
    largest = abs(residuals).max()
    if not largest > 0:
        return None
    residuals = (residuals - residuals.mean()) / largest
    ranks = rankdata(X, axis=0, nan_policy="omit")
    counts = np.maximum(np.count_nonzero(~np.isnan(ranks), axis=0), 1)
    ranks = np.nan_to_num(ranks - np.nansum(ranks, axis=0) / counts) / len(X)
    ranks[:, list(categorical)] = 0.0
    scores = (ranks * residuals[:, None]).T @ ranks
    squares = np.square(ranks)
    spread = np.sqrt((squares * np.square(residuals)[:, None]).T @ squares)
    scores = np.triu(abs(scores) / np.maximum(spread, 1e-300), 1)
    for among in (selected, np.ones(X.shape[1], dtype=bool)):
        count = np.count_nonzero(among)
        if count < 2:
            continue
        each = level / (count * (count - 1))
        some = np.where(np.outer(among, among), scores, 0.0)
        i, j = np.unravel_index(some.argmax(), some.shape)
        if sign_level(residuals * ranks[:, i] * ranks[:, j]) < each:
            gain = _gain(residuals, ranks[:, i], ranks[:, j], each)
            if gain * (largest / width) ** 2 > LEAST_GAIN:
                return int(i), int(j)
    return None


def _gain(residuals, first, second, level):
    """Return the variance of the residuals along the product of two variables.

    Parts of the product that depend on one variable are removed. The result is 0 if the
    rest is not significant.
    """
    mains = np.column_stack(
        [np.ones(len(first)), first, second, np.square(first), np.square(second)]
    )
    product = first * second
    product = product - mains @ np.linalg.lstsq(mains, product, rcond=None)[0]
    if not sign_level(residuals * product) < level:
        return 0.0
    return (residuals @ product) ** 2 / (product @ product) / len(first)


def sign_level(terms):
    """Return the probability that random signs of terms give a larger absolute sum.

    The approximation is by the saddlepoint method [1]_. Where few rows are nearly
    explained by a product, this probability is far smaller than that of a normal
    distribution: the ratio of the sum to the root of the sum of squares has a bound.

    Parameters
    ----------
    terms : ndarray of shape (n_terms,)
        Terms whose signs are random, given their sizes.

    Returns
    -------
    level : float
        The probability, of both tails.

    References
    ----------
    .. [1] R. Lugannani and S. O. Rice (1980). Saddlepoint approximation for the
       distribution of the sum of independent random variables. Advances in Applied
       Probability 12.
    """
    size = np.sqrt(terms @ terms)
    if not size > 0:
        return 1.0
    sizes, total = abs(terms) / size, abs(terms.sum()) / size
    if total < NORMAL_RATIO:
        return float(2 * norm.sf(total))
    if total > sizes.sum() - sizes[sizes > 0].min():  # all signs are equal
        return 2.0 ** (1 - np.count_nonzero(sizes))

    def excess(point):
        return sizes @ np.tanh(point * sizes) - total

    high = 1.0
    while excess(high) < 0:
        high *= 2
    point = brentq(excess, 0.0, high)
    logs = np.logaddexp(point * sizes, -point * sizes).sum() - len(sizes) * np.log(2)
    root = np.sqrt(2 * max(point * total - logs, 0.0))
    spread = np.square(sizes) @ (1 - np.tanh(point * sizes) ** 2)
    inverse = 1 / (point * np.sqrt(max(spread, 1e-300))) - 1 / root
    tail = norm.sf(root) + norm.pdf(root) * inverse
    return float(2 * max(tail, 0.0))
