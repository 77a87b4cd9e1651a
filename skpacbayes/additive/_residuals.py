"""Warnings of residuals: effects that are missing, noise that is not independent.

The model is additive, in functions of low order. If residuals depend on a variable, or
on a product of two, it lacks an effect. The posterior takes the noise of each row as
independent, and of equal variance, or of the variance of the family. If rows share
noise, variables that tell the groups of rows apart are selected, and fit this noise. If
the noise is larger where few rows decide, effects follow these rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import brentq
from scipy.stats import norm, rankdata, spearmanr
from scipy.stats import t as student
from sklearn.ensemble import RandomForestRegressor

from .._base import warn_user
from .._chains import R_HAT_LIMIT
from ._posterior import SELECTED

FEWEST_ROWS, MOST_ROWS = 20, 2000  # rows that are tested
N_NEIGHBORS = 5  # rows before each row that are compared
FEW_WRONG = 0.03  # share of rows of a wrong class up to which classes are separated
TELLS_APART = 0.9  # share of distinct rows or targets: equal rows are copies
SMALLEST = 1e-12  # of variances and leverages
# Of effects that are missing.
LEVEL = 1e-3  # of the joint test of all variables
MOST_TESTED = 300  # variables whose products are compared with residuals
PER_LEVEL = 3  # least rows per value of a variable that may be a category
LEAST_GAIN = 0.01  # least share of the variance of y explained by the dependence
ROWS_PER_NEIGHBOR = 20  # least rows of the table for each neighbor of a row
NORMAL_RATIO = 1.0  # of a sum of terms of random signs: below, nearly normal
FOREST_ROWS, FOREST_FEATURES = 1000, 20  # that are shown to a forest, at most
N_TREES, LEAST_LEAF = 60, 5  # of the forest, and rows of its leaves
# Standard errors of its gain, or level of a product, from which pairs are tried.
SUGGESTIVE, SUGGESTIVE_LEVEL = 2.0, 0.02
# Of noise.
NOISELESS = 1e-5  # share of the variance below which residuals are not noise
LIMIT = 4.0  # standard errors from which rows are dependent
LEAST_CORRELATION = 0.05  # of residuals of neighbors
SORTED = 0.9  # rank correlation of y with the row from which rows were sorted by y
# Of groups: least number; largest growth of it by a further variable; least mean size.
FEWEST_GROUPS, GROWTH, LEAST_SIZE = 5, 1.25, 2.0
LEAST_RATIO, LIMIT_RATIO = 2.5, 5.0  # of variances of effects; in standard errors
MANY_GROUPS = 10  # groups from which their variables are compared with none


class Tested(NamedTuple):
    """Distinct rows whose residuals are tested."""

    X: np.ndarray
    y: np.ndarray  # (n_samples, n_outputs)
    weights: np.ndarray
    means: np.ndarray  # predictions of y

    @classmethod
    def of(cls, X, y, weights, predict, classes):
        """Return the distinct rows; None if their residuals are not to be tested."""
        rows = without_copies(X, y)
        X, y, weights = X[rows], y[rows], weights[rows]
        if len(X) < FEWEST_ROWS or not np.ptp(y, axis=0).any():
            return None  # of a constant target, residuals are rounding
        means = predict(X).reshape(len(X), -1)
        if classes and (abs(y - means) > 0.5).any(axis=1).mean() <= FEW_WRONG:
            return None  # nearly all classes are right: residuals are shrinkage
        return cls(X, y, weights, means)


def warn_of_residuals(
    X,
    y,
    weights,
    predict,
    found,
    categorical,
    *,
    noise,
    variances=None,
    additive=True,
    classes=False,
):
    """Warn of residuals that are not independent noise; at most once.

    Effects are looked for in rows spread over the table, and only if the chains agree;
    noise that rows share in the first rows, which are neighbors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows of the fit.
    y : ndarray of shape (n_samples,) or (n_outputs, n_samples)
        Their targets, or a row for each class.
    weights : ndarray of shape (n_samples,)
        Their weights.
    predict : callable
        Returns the predictions at rows, (n_samples,) or (n_samples, n_outputs).
    found : Fitted
        Results of the chains.
    categorical : sequence of int
        Categorical variables, along which residuals are not compared.
    noise : float
        Variance of the noise, or dispersion.
    variances : callable, default=None
        Returns the variances of targets of given means, up to the dispersion, with the
        canonical link function. None: variances are equal.
    additive : bool, default=True
        Whether the model has no interactions; only then are products tested.
    classes : bool, default=False
        Whether y are indicators of classes.

    Returns
    -------
    missing : bool
        Whether there was a warning of effects that are missing.
    """
    y = np.atleast_2d(y).T.astype(float)
    step = -(-len(X) // MOST_ROWS)
    if found.r_hat <= R_HAT_LIMIT:
        part = X[::step], y[::step], weights[::step]
        rows = Tested.of(*part, predict, classes)
        if rows is not None and warn_of_missing(rows, found, categorical, additive):
            return True
    part = X[:MOST_ROWS], y[:MOST_ROWS], weights[:MOST_ROWS]
    rows = Tested.of(*part, predict, classes)
    if rows is not None:
        share = min(1.0, MOST_ROWS / len(X))
        warn_of_noise(rows, found, categorical, share, noise, variances, classes)
    return False


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


# Effects that are missing.


def warn_of_missing(rows, found, categorical, additive):
    """Warn of residuals that depend on a variable, or on a product of two.

    Parameters
    ----------
    rows : Tested
        The rows.
    found, categorical, additive
        See :func:`warn_of_residuals`.

    Returns
    -------
    warned : bool
        Whether there was a warning.
    """
    X, y = rows.X, rows.y
    level, widths = LEVEL / y.shape[1], y.std(axis=0)
    parts = list(zip((y - rows.means).T, widths, strict=True))
    feature = max(roughest(X, *part, level, categorical) for part in parts)
    if feature >= 0:
        _warn_of_roughness(X, feature)
        return True
    if additive and 2 <= X.shape[1] <= MOST_TESTED:
        pairs = (
            closest_product(X, *part, level, categorical, found.selected)
            for part in parts
        )
        pair = next(filter(None, pairs), None)
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


class Structure(NamedTuple):
    """What residuals depend on: nothing, unless the model lacks effects."""

    gain: float = 0.0  # of a forest: decrease of their squares, over its standard error
    share: float = 0.0  # this decrease as a share
    product: tuple | None = None  # two variables whose product they depend on

    @property
    def suggests_pairs(self):
        """Whether interactions are worth a second fit."""
        return self.gain > SUGGESTIVE or self.product is not None


def structure_left(X, y, weights, predict, found, categorical):
    """Return what residuals of classes depend on: on products, or what a forest finds.

    Residuals are multiplied by weights: their means are then 0 at all X if no effect is
    missing, also where weights depend on the class. Each tree of the forest predicts
    the rows that are not in its bootstrap sample. Where residuals are noise, these
    predictions only increase their squares. Ranks replace values, so that units do not
    matter. Products are tested with at most `MOST_TESTED` variables.

    Parameters
    ----------
    X, y, weights, predict, found, categorical
        See :func:`warn_of_residuals`.
    """
    y = np.atleast_2d(y).T.astype(float)
    step = -(-len(X) // FOREST_ROWS)
    part = X[::step], y[::step], weights[::step]
    rows = Tested.of(*part, predict, classes=True)
    if rows is None:
        return Structure()
    residuals, widths = rows.y - rows.means, rows.y.std(axis=0)
    level, product = SUGGESTIVE_LEVEL / len(widths), None
    weighted = residuals * (rows.weights / rows.weights.mean())[:, None]
    if X.shape[1] <= MOST_TESTED:
        products = (
            closest_product(rows.X, *one, level, categorical, found.selected)
            for one in zip(weighted.T, widths, strict=True)
        )
        product = next(filter(None, products), None)
    gain, share = gain_of_forest(rows.X, weighted, found)
    explained = share * np.square(residuals).mean(axis=0).sum()
    if not explained > LEAST_GAIN * widths @ widths:
        gain = share = 0.0
    return Structure(gain, share, product)


def gain_of_forest(X, residuals, found):
    """Return the decrease of squares by a forest: over its error, and as a share.

    The residuals are multiplied by weights, which the forest does not have: rows of a
    large weight would be in the bootstrap samples of all trees.
    """
    n_features = X.shape[1]
    inclusion = found.posterior.inclusion()[:n_features, 0]
    features = np.sort(np.argsort(-inclusion, kind="stable")[:FOREST_FEATURES])
    ranks = rankdata(X[:, features], axis=0, nan_policy="omit")
    largest = abs(residuals).max()
    if not largest > 0:
        return 0.0, 0.0
    residuals = residuals / largest
    forest = RandomForestRegressor(
        N_TREES, min_samples_leaf=LEAST_LEAF, oob_score=True, random_state=0
    )
    forest.fit(ranks, np.squeeze(residuals))
    predicted = forest.oob_prediction_.reshape(residuals.shape)
    before = np.square(residuals).sum(axis=1)
    decrease = before - np.square(residuals - predicted).sum(axis=1)
    error = decrease.std() / np.sqrt(len(decrease))
    gain = decrease.mean() / max(error, 1e-300)
    return float(gain), float(decrease.sum() / before.sum())


def warn_of_structure(left):
    """Warn if a forest clearly predicts residuals."""
    if left.gain > LIMIT:
        warn_user(
            f"A random forest predicts {left.share:.0%} of the squared residuals of "
            "rows that its trees have not seen: effects depend on more variables than "
            "the model allows, or are rougher than its functions. Compare with "
            "gradient boosting."
        )


# Noise that rows share, or that is larger in rows of large influence.


class Residuals(NamedTuple):
    """Residuals of unit variance, and the fit that they come from."""

    values: np.ndarray  # (n_samples,)
    root: np.ndarray  # (n_samples, n_functions): root @ root.T is the hat matrix H
    squares: np.ndarray  # (n_functions, n_functions): root.T @ root

    def expected(self, first, second):
        """Return the expected products of residuals of rows, if noise is independent.

        These are entries of H^2 - 2 H.
        """
        among = self.squares - 2 * np.eye(len(self.squares))
        return ((self.root[first] @ among) * self.root[second]).sum(axis=1)


def warn_of_noise(rows, found, categorical, share, noise, variances, classes):
    """Warn of noise that rows share, or that is larger in rows of large influence.

    Parameters
    ----------
    rows : Tested
        The rows.
    share : float
        Share of the rows of the fit that are tested.
    found, categorical, noise, variances, classes
        See :func:`warn_of_residuals`.
    """
    X, y, weights, means = rows
    if variances is None and ((y - means) ** 2).mean() <= NOISELESS * y.var():
        return  # residuals are errors of approximation
    scales = np.ones_like(means)
    if variances is not None:
        scales = np.sqrt(np.maximum(variances(means), SMALLEST))
    design, ridge = design_of(X, found), noise / found.slab_scale**2
    roots, parts = np.sqrt(weights), []
    for residuals, scale in zip((y - means).T, scales.T, strict=True):
        whitened = design * (roots * scale)[:, None]
        part = standardized(residuals * roots / scale, whitened, ridge, share)
        parts += [] if part is None else [part]
    if not classes and np.isinf(found.freedom):
        ratio = max((influence_ratio(part) for part in parts), default=0.0)
        if ratio > 0:
            warn_user(
                "Residuals are larger in rows with a large influence: effects vary "
                f"{ratio:.2g} times as much as with equal noise, and may follow few "
                "rows. Transform y, give smaller weights to rows with more noise, or "
                "use a smaller max_order."
            )
            return
    labels, features = groups_of_rows(X, categorical)
    dependent = len(features) > 1 and any(
        dependence(part, labels, labels) for part in parts
    )
    if len(features) > 1 and not dependent and not found.classes:
        working = (y - means)[:, 0] / scales[:, 0] ** 2
        roots = roots * scales[:, 0]
        dependent = rests_on_groups(X, working, roots, labels, features, found)
    if dependent:
        warn_user(
            f"Rows with equal values of features {features[0]} and {features[1]} seem "
            "to share noise, as rows of one unit do: variables without effect may be "
            "selected, and intervals are too narrow. Fit one row for each unit."
        )
    elif not is_sorted(y) and any(
        dependence(part, np.arange(len(X))) for part in parts
    ):
        warn_user(
            "Consecutive rows seem to share noise, as rows of one unit, or in the "
            "order of time, do: variables without effect may be selected, and "
            "intervals are too narrow. Fit one row for each unit, or differences of "
            "rows."
        )


def design_of(X, found):
    """Return 1 and the functions of inclusion probability 1/2 or more, at rows."""
    inclusion = found.posterior.inclusion() >= SELECTED
    terms = np.flatnonzero(inclusion[:, 0])
    ones = np.ones((len(X), 1))
    if len(terms) == 0:
        return ones
    values = found.values(X, terms)[inclusion[terms]]
    return np.concatenate([ones, values.T], axis=1)


def standardized(residuals, design, ridge, share):
    """Return residuals divided by their standard deviation; None if they are 0.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples,)
        Residuals, of equal variances.
    design : ndarray of shape (n_samples, n_functions)
        The functions, the first of them the intercept.
    ridge : float
        Precision of the coefficients over that of the noise.
    share : float
        Share of the rows of the fit that are tested.
    """
    precision = design.T @ design / share
    added = np.full(len(precision), ridge + SMALLEST * precision.diagonal().max())
    added[0] = 0.0
    precision[np.diag_indices_from(precision)] += added
    root = solve_triangular(cholesky(precision, lower=True), design.T, lower=True).T
    squares = root.T @ root / share
    freedom = max(len(residuals) - share * np.trace(2 * squares - squares @ squares), 1)
    variance = residuals @ residuals / freedom
    if not variance > 0:
        return None
    return Residuals(residuals / np.sqrt(variance), root, squares)


def influence_ratio(found):
    """Return how much more effects vary than with equal noise; 0 if not clearly.

    The variance of a prediction is the sum of the squares of the row of the hat matrix
    times the variances of the noise. Over all rows these sum to h'v, with the leverages
    h and the variances v, estimated without bias by squared residuals over 1 - h [1]_.

    References
    ----------
    .. [1] J. G. MacKinnon and H. White (1985). Some heteroskedasticity-consistent
       covariance matrix estimators with improved finite sample properties. Journal of
       Econometrics 29.
    """
    leverages = np.square(found.root).sum(axis=1)
    first = found.root[:, 0] ** 2
    shares = np.maximum(leverages - first, 0.0)  # without the intercept
    if not shares.sum() > 1e-6:
        return 0.0
    rest = 1 + found.expected(slice(None), slice(None))
    estimates = shares * found.values**2 / np.maximum(rest, SMALLEST)
    ratio = estimates.sum() / shares.sum()
    error = np.sqrt(2 * shares @ shares) / shares.sum()
    return ratio if ratio > max(LEAST_RATIO, 1 + LIMIT_RATIO * error) else 0.0


def groups_of_rows(X, categorical=()):
    """Return the group of each row, and the variables that are constant in groups.

    Rows of a group have equal values of the variable with most values, of those with at
    least two rows for each value, and of others that hardly divide these groups.
    """
    codes = [np.unique(column, return_inverse=True)[1] for column in X.T]
    counts = np.array([code.max() + 1 for code in codes])
    labels, features = np.zeros(len(X), dtype=int), []
    counts[list(categorical)] = 0
    for feature in np.argsort(-counts, kind="stable"):
        if not FEWEST_GROUPS <= counts[feature] <= len(X) / LEAST_SIZE:
            continue
        joint = labels * counts[feature] + codes[feature]
        joint = np.unique(joint, return_inverse=True)[1]
        limit = GROWTH * (labels.max() + 1) if features else np.inf
        if joint.max() + 1 <= min(limit, len(X) / LEAST_SIZE):
            labels, features = joint, [*features, int(feature)]
    return labels, sorted(features)


def rests_on_groups(X, residuals, roots, labels, features, found):
    """Return whether variables are selected that groups do not support.

    A fit may follow the noise of groups so closely that residuals show nothing. So the
    effects of variables that are constant in groups are compared with none, in a
    regression of one row for each group, by the BIC with its correction for few rows
    [1]_. The targets are means of the groups, without effects of other variables,
    estimated within groups.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    residuals : ndarray of shape (n_samples,)
        Residuals of the scores.
    roots : ndarray of shape (n_samples,)
        Roots of the precisions of the residuals.
    labels, features
        See :func:`groups_of_rows`.
    found : Fitted
        Results of the chains.

    References
    ----------
    .. [1] A. D. R. McQuarrie (1999). A small-sample correction for the Schwarz SIC
       model selection criterion. Statistics and Probability Letters 44.
    """
    inclusion = found.posterior.inclusion() >= SELECTED
    constant = np.zeros(len(inclusion), dtype=bool)
    constant[features] = True
    n_groups, n_variables = labels.max() + 1, np.count_nonzero(inclusion[constant, 0])
    if n_groups < MANY_GROUPS or n_variables == 0:
        return False
    terms = np.flatnonzero(inclusion[:, 0])
    functions = found.values(X, terms)[inclusion[terms]]
    of_groups = np.repeat(constant[terms], inclusion[terms].sum(axis=1))
    targets = residuals + found.coefficients[inclusion] @ functions
    weights = roots**2
    totals = np.bincount(labels, weights)

    def group_means(values):
        return np.bincount(labels, weights * values) / totals

    own = functions[~of_groups]
    if len(own):
        table = np.array([each - group_means(each)[labels] for each in own]).T
        within = targets - group_means(targets)[labels]
        effects = np.linalg.lstsq(table * roots[:, None], within * roots)[0]
        targets = targets - effects @ own
    table = np.array([np.ones(n_groups), *map(group_means, functions[of_groups])]).T
    scale = np.sqrt(totals)
    targets = group_means(targets) * scale
    table = table * scale[:, None]

    def square(columns):
        fit = columns @ np.linalg.lstsq(columns, targets)[0]
        return max(np.sum((targets - fit) ** 2), SMALLEST * targets @ targets)

    n_functions = np.count_nonzero(of_groups)
    if n_functions > n_groups - 4:
        return True

    def penalty(count):
        return count * np.log(n_groups) * n_groups / (n_groups - count - 2)

    price = penalty(1 + n_functions) - penalty(1)
    price += 2 * n_variables * np.log(X.shape[1])
    return n_groups * np.log(square(table[:, :1]) / square(table)) < price


def dependence(found, order, labels=None):
    """Return whether rows have residuals similar to those of their neighbors.

    The products of residuals of neighbors are compared with their expectation under
    independent noise, which is negative: the fit follows the noise of rows with equal
    values of the functions. The sum of the differences, over the root of the sum of
    their squares, is then nearly standard normal.

    Parameters
    ----------
    found : Residuals
        The residuals.
    order : ndarray of shape (n_samples,)
        Numbers that order the rows.
    labels : ndarray of shape (n_samples,), default=None
        Groups of rows: only rows of the same group are compared. None: all are.
    """
    order = np.argsort(order, kind="stable")
    terms, number = np.zeros(len(order)), 0
    for lag in range(1, N_NEIGHBORS + 1):
        first, second = order[lag:], order[:-lag]
        products = found.values[first] * found.values[second]
        products -= found.expected(first, second)
        if labels is not None:
            products = np.where(labels[first] == labels[second], products, 0.0)
            number += np.count_nonzero(labels[first] == labels[second])
        else:
            number += len(first)
        terms[lag:] += products
    spread = np.sqrt(terms @ terms)
    total = terms.sum()
    return total > max(LIMIT * spread, LEAST_CORRELATION * number)


def is_sorted(y):
    """Return whether rows are sorted by their targets, or by classes."""
    codes = y[:, 0] if y.shape[1] == 1 else y.argmax(axis=1)
    n_values = len(np.unique(codes))
    if n_values * FEWEST_ROWS < len(codes):  # classes, or few values
        return np.count_nonzero(np.diff(codes)) < 2 * n_values
    return abs(spearmanr(codes, np.arange(len(codes))).statistic) > SORTED
