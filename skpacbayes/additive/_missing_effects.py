"""Effects that a model lacks, as its residuals show: of one variable, or of more.

The model is additive, in functions of low order. If residuals depend on a variable, or
on a product of two, it lacks an effect.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.optimize import brentq
from scipy.stats import chi2, norm, rankdata
from scipy.stats import t as student
from sklearn.ensemble import RandomForestRegressor

from .._base import warn_user

FEWEST_ROWS = 20  # rows that are tested
N_NEIGHBORS = 5  # rows before each row that are compared
FEW_WRONG = 0.03  # share of rows of a wrong class up to which classes are separated
TELLS_APART = 0.9  # share of distinct rows or targets: equal rows are copies
NOISELESS = 1e-5  # share of the variance below which residuals are not noise
LEVEL = 1e-3  # of the joint test of all variables
MOST_TESTED = 300  # variables whose products are compared with residuals
PER_LEVEL = 3  # least rows per value of a variable that may be a category
LEAST_GAIN = 0.01  # least share of the variance of y explained by the dependence
ROWS_PER_NEIGHBOR = 20  # least rows of the table for each neighbor of a row
NORMAL_RATIO = 1.0  # of a sum of terms of random signs: below, nearly normal
FOREST_ROWS, FOREST_FEATURES = 1000, 20  # that are shown to a forest, at most
N_TREES, LEAST_LEAF = 60, 5  # of the forest, and rows of its leaves
# Standard errors of its gain, or level of a test, from which pairs are tried.
SUGGESTIVE, SUGGESTIVE_LEVEL = 2.0, 0.02
N_FUNCTIONS = 3  # of a variable, whose products with those of another are tested
NEGLIGIBLE = 1e-6  # deviation of a function of a variable that is constant
CLEAR = 4.0  # standard errors of its gain from which there is a warning


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


def first_copies(X, y):
    """Return for each row the index of the first row that is equal to it.

    Copies, as in a bootstrap sample, have equal residuals whatever the effects are. If
    there are few distinct rows and targets, as with categories and classes alone, rows
    are equal by chance, and each of them counts as the first.
    """
    seen, rows = {}, np.column_stack([X, y])
    first = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(rows)]
    most = max(len({row.tobytes() for row in part}) for part in (X, y))
    if most < TELLS_APART * len(seen):
        return np.arange(len(X))
    return np.array(first)


def without_copies(X, y):
    """Return the indices of distinct rows; of the rows of `first_copies`."""
    return np.unique(first_copies(X, y))


def pooled_copies(X, y, *weights):
    """Return the indices of distinct rows, and the sums of the weights of their copies.

    A row must be left out of a fit with its copies, those of `first_copies`.
    """
    kept, places = np.unique(first_copies(X, y), return_inverse=True)
    return kept, *(np.bincount(places, own) for own in weights)


def warn_of_missing(rows, found, categorical, additive, basis, further):
    """Warn of residuals that depend on a variable, or on a product of two.

    Parameters
    ----------
    rows : Tested
        The rows.
    found, categorical, additive, basis
        See :func:`warn_of_residuals`.
    further : Further
        Variables that need more functions.

    Returns
    -------
    warned : bool
        Whether there was a warning.
    """
    X, y = rows.X, rows.y
    level, widths = LEVEL / y.shape[1], y.std(axis=0)
    parts = list(zip((y - rows.means).T, widths, strict=True))
    feature = roughest_of(X, parts, level, categorical)
    if feature >= 0:
        enough = further.max_order if feature in further.features else None
        _warn_of_roughness(X, feature, basis, enough)
        return True
    if additive and 2 <= X.shape[1] <= MOST_TESTED:
        pair = closest_product_of(X, parts, level, categorical, found.selected)
        if pair:
            warn_user(
                f"Residuals depend on the product of features {pair[0]} and {pair[1]}: "
                "their effects are not additive. Set interactions='auto', or to a list "
                "of pairs."
            )
            return True
    return False


def warn_of_further(further, order):
    """Warn of variables that need more than `order` functions."""
    several = len(further.features) > 1
    names = " and ".join(map(str, further.features))
    warn_user(
        f"The effect{'s' * several} of feature{'s' * several} {names} "
        f"need{'s' * (not several)} more than {order} functions, and bands "
        "and standard deviations leave out what the others would add. Use "
        f"max_order={further.max_order}."
    )


def _warn_of_roughness(X, feature, basis, enough=None):
    """Warn of the variable along which residuals are most similar.

    `enough`: number of functions that explain this. None: it is not known.
    """
    column = X[:, feature][~np.isnan(X[:, feature])]
    other = "" if basis is None else f" basis={basis!r},"
    such = "" if enough is None else f" such as {enough},"
    advice = f"larger max_order,{such}{other} or its ranks in its place"
    if PER_LEVEL * len(np.unique(column)) <= len(column):
        advice += ", or categorical_features if its numbers stand for categories"
    warn_user(
        f"Rows that are neighbors in feature {feature} have similar residuals: its "
        f"effect may be rougher than its functions. Try a {advice}."
    )


def roughest_of(X, parts, level, categorical):
    """Return a variable along which some residuals are similar; -1 if there is none.

    parts : list of (residuals, width), of which each is tested as by `roughest`.
    """
    return max(roughest(X, *part, level, categorical) for part in parts)


def closest_product_of(X, parts, level, categorical, selected):
    """Return two variables on whose product some residuals depend, or None.

    parts : list of (residuals, width), of which each is tested as by `closest_product`.
    """
    pairs = (closest_product(X, *part, level, categorical, selected) for part in parts)
    return next(filter(None, pairs), None)


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
    large: bool = False  # whether it is a large share of the variance of y
    pair: tuple | None = None  # two variables on whose products they depend
    rough: bool = False  # whether they are similar along a variable

    @property
    def suggests_pairs(self):
        """Whether interactions are worth a second fit."""
        return self.gain > SUGGESTIVE or self.pair is not None

    @property
    def suggests_rough(self):
        """Whether rougher functions are worth a second fit."""
        return self.suggests_pairs or self.rough


def structure_left(X, y, weights, predict, found, categorical, classes):
    """Return what residuals depend on: a pair, or what a forest finds.

    Residuals are multiplied by weights: their means are then 0 at all X if no effect is
    missing, also where weights depend on the class. Each tree of the forest predicts
    the rows that are not in its bootstrap sample. Where residuals are noise, these
    predictions only increase their squares. Ranks replace values, so that units do not
    matter. Pairs are tested with at most `MOST_TESTED` variables; with classes, which
    say less about each row, also the products of ranks alone. Where y is a number, a
    small share of its variance counts, as its noise may be smaller.

    Parameters
    ----------
    X, y, weights, predict, found, categorical, classes
        See :func:`warn_of_residuals`.
    """
    y = np.atleast_2d(y).T.astype(float)
    step = -(-len(X) // FOREST_ROWS)
    part = X[::step], y[::step], weights[::step]
    rows = Tested.of(*part, predict, classes)
    if rows is None:
        return Structure()
    residuals, widths = rows.y - rows.means, rows.y.std(axis=0)
    square, variance = np.square(residuals).mean(axis=0).sum(), widths @ widths
    if not classes and square <= NOISELESS * variance:
        return Structure()
    level, pair = SUGGESTIVE_LEVEL / len(widths), None
    weighted = residuals * (rows.weights / rows.weights.mean())[:, None]
    parts = list(zip(weighted.T, widths, strict=True))
    if X.shape[1] <= MOST_TESTED:
        pairs = (most_joint_pair(rows.X, one, level, categorical) for one in weighted.T)
        pair = next(filter(None, pairs), None)
        if classes and pair is None:
            pair = closest_product_of(rows.X, parts, level, categorical, found.selected)
    gain, share = gain_of_forest(rows.X, weighted, found)
    large = share * square > LEAST_GAIN * variance
    rough = classes and roughest_of(rows.X, parts, level, categorical) >= 0
    return Structure(gain if large or not classes else 0.0, share, large, pair, rough)


def most_joint_pair(X, residuals, level, categorical):
    """Return the pair of variables on whose products of functions residuals depend.

    The functions are the first `N_FUNCTIONS` Legendre polynomials of ranks. The sums of
    residuals times products are nearly normal, with variances that are estimated by
    their squares [1]_, whatever the variances of the residuals are. Their chi-squared
    statistic is compared for all pairs, and that of the best one, of the parts of the
    products that do not depend on one variable, is tested at `level` over the number of
    pairs.

    Parameters
    ----------
    X, residuals, level, categorical
        See :func:`roughest`.

    Returns
    -------
    pair : tuple of int or None
        The variables; None if the dependence is not significant.

    References
    ----------
    .. [1] H. White (1980). A heteroskedasticity-consistent covariance matrix estimator
       and a direct test for heteroskedasticity. Econometrica 48.
    """
    largest = abs(residuals).max()
    if not largest > 0 or X.shape[1] < 2:
        return None
    residuals = residuals / largest
    functions = polynomials_of_ranks(X)
    functions[:, list(categorical)] = 0.0
    (n_rows, d, _), k = functions.shape, N_FUNCTIONS
    some = functions[:, :, :k].reshape(n_rows, d * k)
    squares = np.square(some)
    sums = (some * residuals[:, None]).T @ some
    variances = (squares * np.square(residuals)[:, None]).T @ squares
    scores = np.square(sums) / np.maximum(variances, 1e-300)
    scores = np.triu(scores.reshape(d, k, d, k).sum(axis=(1, 3)), 1)
    pair = np.unravel_index(scores.argmax(), scores.shape)
    first, second = functions[:, pair].transpose(1, 0, 2)
    products = (first[:, :k, None] * second[:, None, :k]).reshape(n_rows, k * k)
    single = np.concatenate([np.ones((n_rows, 1)), first, second], axis=1)
    products = products - single @ np.linalg.lstsq(single, products)[0]
    terms = products * residuals[:, None]
    total, inverse = terms.sum(axis=0), np.linalg.pinv(terms.T @ terms, hermitian=True)
    each = 2 * level / (d * (d - 1))
    if not chi2.sf(total @ inverse @ total, k * k) < each:
        return None
    return tuple(map(int, pair))


def polynomials_of_ranks(X):
    """Return Legendre polynomials of ranks, of mean 0 and variance 1.

    Missing values are 0. The result has shape (n_samples, n_features, N_FUNCTIONS + 1).
    """
    ranks = rankdata(X, axis=0, nan_policy="omit")
    counts = np.maximum(np.count_nonzero(~np.isnan(ranks), axis=0), 1)
    values = legvander((2 * ranks - counts - 1) / counts, N_FUNCTIONS + 1)[:, :, 1:]
    present = ~np.isnan(ranks)[:, :, None]
    values = np.where(present, values, 0.0)
    values -= present * (values.sum(axis=0) / counts[:, None])
    widths = np.sqrt(np.square(values).sum(axis=0) / counts[:, None])
    return values / np.where(widths > NEGLIGIBLE, widths, np.inf)


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
    if left.gain > CLEAR and left.large:
        warn_user(
            f"A random forest predicts {left.share:.0%} of the squared residuals of "
            "rows that its trees have not seen: effects depend on more variables than "
            "the model allows, or are rougher than its functions. Compare with "
            "gradient boosting."
        )
