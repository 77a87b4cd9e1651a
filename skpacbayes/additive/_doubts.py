"""Warnings of a fit: chains, selections, models that are too small."""

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm, rankdata
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._chains import R_HAT_LIMIT, warn_unmixed
from ._posterior import SELECTED

N_ERRORS = 2.0  # a selection is uncertain within this many errors of SELECTED
SAME = 0.95  # correlation from which variables are nearly equal
COPIES = 0.999  # correlation from which variables are copies
LEAST_SHARE, MOST_COMPARED = 0.01, 300  # limits of comparisons
FEWEST, MOST = 0.1, 20.0  # mean weights that may be numbers of rows
LEAST_EFFECTIVE = 0.1  # least effective number of rows, as a share
LEAST_NOTHING = 0.05  # probability of no variable from which selections are doubtful
POOLED = 0.05  # share of the rows in pooled categories
LEVEL = 1e-3  # of the joint test of all variables
LEAST_GAIN = 0.01  # least share of the variance of y explained by the dependence
FEWEST_ROWS, MOST_ROWS = 20, 2000  # rows whose residuals are tested
FEWEST_DISTINCT = 5  # distinct rows from which copies are looked for
MANY_DISTINCT = 50  # from here one column shows that equal rows are copies; else two
# Rows before each row, in the order of a variable, that are compared: one for each
# ROWS_PER_NEIGHBOR rows of the table, at most N_NEIGHBORS.
N_NEIGHBORS, ROWS_PER_NEIGHBOR = 5, 20
TELLS_APART = 0.9  # share of distinct rows or targets: equal rows are copies
MOST_TESTED = 300  # variables whose products are compared with residuals
FEW_DISTINCT = 0.4  # share of distinct rows below which most rows are copies
FEW_WRONG = 0.03  # share of rows of a wrong class up to which classes are separated
NORMAL_RATIO = 1.0  # of a sum of terms of random signs: below, nearly normal
PER_LEVEL = 3  # least rows per value of a variable that may be a category


def warn_of_doubts(found, n_features, products):
    """Warn if the chains disagree, or if another seed may select other variables.

    Parameters
    ----------
    found : Fitted
        Results of the chains.
    n_features : int
        Number of variables; terms after these are pairs.
    products : callable
        Returns sums over the rows of products of the functions of the given columns.
    """
    warn_unmixed(
        found.r_hat,
        len(found.runs),
        "increase n_iter or burn_in",
        of="the loss and of the variables in the model",
    )
    if found.r_hat <= R_HAT_LIMIT:
        _warn_of_selection(found, n_features)
    _warn_of_sharing(found, n_features, products)
    _warn_of_copies(found, n_features, products)
    for feature, (count, share) in found.dictionary.pooled.items():
        if share >= POOLED:
            own = found.dictionary.n_levels
            warn_user(
                f"feature {feature} has {count} categories. The {own} most frequent "
                f"have an effect each; the others, {share:.0%} of the rows, share "
                f"one: increase max_order to {count - 1}."
            )
    if found.n_variables_needed:
        _warn(
            f"Many weak effects explain y better than few clear ones, but a model can "
            f"have at most {found.most} of the {found.n_variables_needed} variables: "
            "increase max_active, or compare with ridge regression."
        )
    if found.weak_gain:
        warn_user(
            f"A linear regression on all variables is {np.exp(found.weak_gain):.3g} "
            "times as probable as few clear effects, which is too little evidence to "
            "use all variables. Compare with ridge regression."
        )
    inclusion = found.posterior.inclusion()[:n_features, 0]
    if found.nothing > LEAST_NOTHING and (inclusion >= SELECTED).any():
        warn_user(
            f"feature {inclusion.argmax()} may fit the noise: the noise variance, "
            f"{found.noise_variance:.3g}, was estimated by models with few rows for "
            "each variable. If it is unknown, no variable matters with probability "
            f"{found.nothing:.2f}. Give noise_variance, or more rows."
        )
    if any(found.far_rows):
        above, below = found.far_rows
        warn_user(
            f"{above:.6g} targets lie far above a model of the other rows and "
            f"{below:.6g} far below it: they may hide effects, or select irrelevant "
            "variables. Check these targets; if the noise is skewed, transform y, for "
            "instance by its logarithm."
        )
    if found.full:
        _warn(
            f"A chain reached the largest number of variables in a model, "
            f"{found.full}: increase max_active."
        )


def is_settled(found):
    """Return whether chains agree and did not reach the largest model size."""
    return found.r_hat <= R_HAT_LIMIT and not (found.full or found.n_variables_needed)


def _warn_of_selection(found, n_features):
    """Warn if an inclusion probability is too near to the selection threshold."""
    inclusion = found.posterior.inclusion()[:, 0]
    distances = abs(inclusion - SELECTED) / np.maximum(found.errors, 1e-12)
    term = distances.argmin()
    if not distances[term] < N_ERRORS:
        return
    which, kind = f"feature {term}", "variables"
    advice = "inclusion_probabilities_"
    if term >= n_features:
        pair = found.pairs.pairs[term - n_features]
        which, kind = f"the pair {tuple(pair.tolist())}", "interactions"
        advice = "pair_probabilities_"
    _warn(
        f"Another seed may select other {kind}: {which} is in the model "
        f"with probability {inclusion[term]:.2f}, with a Monte Carlo error of "
        f"{found.errors[term]:.2f}; the selection threshold is {SELECTED}. "
        f"Increase n_iter, or use {advice} instead of the selection."
    )


def _warn_of_sharing(found, n_features, products):
    """Warn if nearly equal variables share a probability, and none is selected."""
    inclusion = found.posterior.inclusion()[:n_features, 0]
    some = np.flatnonzero((inclusion >= LEAST_SHARE) & (inclusion < SELECTED))
    some = some[np.argsort(-inclusion[some], kind="stable")][:MOST_COMPARED]
    if inclusion[some].sum() < SELECTED:
        return
    orders = found.posterior.orders()
    for group in groups_of(_alike(found, some, products, SAME)):
        members = some[group]
        among = np.flatnonzero((orders[:, members] > 0).any(axis=1))
        probability = found.posterior.weights[among].sum()
        if probability >= SELECTED:
            first = ", ".join(str(each) for each in np.sort(members)[:4])
            more = f" and {len(members) - 4} more" if len(members) > 4 else ""
            warn_user(
                f"features {first}{more} are nearly the same and share their "
                f"probability: one or more of them are in the model with probability "
                f"{probability:.2f}, but none is selected. Keep one of them, or lower "
                "the threshold of get_support."
            )
            return


def _warn_of_copies(found, n_features, products):
    """Warn if variables that are copies of one another are selected together."""
    inclusion = found.posterior.inclusion()[:n_features, 0]
    some = np.flatnonzero(inclusion >= SELECTED)[:MOST_COMPARED]
    if len(some) < 2:
        return
    for group in groups_of(_alike(found, some, products, COPIES)):
        first, second = some[group[:2]]
        warn_user(
            f"features {first} and {second} are copies of one another, or nearly so, "
            "and both are selected: the rows do not show whether one of them suffices. "
            "Keep one of them."
        )
        return


def _alike(found, some, products, least):
    """Return the matrix of whether variables have a correlation of `least` or more."""
    width, missing = found.posterior.shape[1], found.dictionary.missing[some]
    gram = products(some * width + missing)  # skips the indicator
    scales = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return abs(gram) >= least * np.outer(scales, scales)


def groups_of(alike):
    """Yield the connected groups of two or more of a matrix of similarity."""
    count, labels = connected_components(alike, directed=False)
    for label in range(count):
        group = np.flatnonzero(labels == label)
        if len(group) > 1:
            yield group


def warn_of_weights(sample_weight, weights):
    """Warn if the given weights are hardly numbers of rows.

    Parameters
    ----------
    sample_weight : array-like or None
        Weights as given by the user.
    weights : ndarray of shape (n_samples,)
        The positive weights.

    Returns
    -------
    plausible : bool
        Whether there was no warning.
    """
    if sample_weight is None:
        return True
    count, total = len(weights), weights.sum()
    if not FEWEST <= total / count <= MOST:
        warn_user(
            f"sample_weight sums to {total:.6g} for {count} rows. Each weight counts "
            "as a number of rows: if the weights are only relative, multiply them by "
            f"{count / total:.3g}."
        )
        return False
    effective = total**2 / (weights @ weights)
    if effective < LEAST_EFFECTIVE * min(count, total):
        warn_user(
            f"sample_weight sums to {total:.6g}, but is so unequal that a mean has "
            f"the precision of {effective:.0f} rows. Unless each weight is a number of "
            "observations of the row, too many variables are selected: limit the "
            "largest weights."
        )
        return False
    return True


def warn_of_far_rows(X, reach):
    """Warn of rows far beyond the range of a variable that is in the model.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    reach : ndarray of shape (2, n_features)
        Limits beyond which rows are far; infinite for variables without an effect.
    """
    far = (reach[0] > X) | (reach[1] < X)
    if far.any():
        feature = int(far.any(axis=0).argmax())
        warn_user(
            f"feature {feature} of {np.count_nonzero(far[:, feature])} rows is outside "
            "of its range in the fit by more than the length of this range: its effect "
            "is constant there, and intervals do not account for that."
        )


def _warn(message):
    warn_user(message, ConvergenceWarning)


def warn_of_copied_rows(X, y):
    """Warn if most rows are copies of others.

    Bootstrap samples and doubled tables have fewer copies. Rows that are equal by
    chance, as with categories, are no copies: a column or the targets must tell most of
    them apart. Of few distinct rows, two must do so: a column of ten doses would
    otherwise be one of ten rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,) or (n_outputs, n_samples)
        Their targets.
    """
    rows = np.column_stack([X, y.T]).astype(float)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1])
    factors = 2 * factors.astype(np.uint64) + 1  # a hash, equal for equal rows only
    n_distinct = len(np.unique((rows.view(np.uint64) * factors).sum(axis=1)))
    if not FEWEST_DISTINCT <= n_distinct < FEW_DISTINCT * len(X):
        return
    least = TELLS_APART * n_distinct
    n_telling = sum(len(np.unique(each)) > least for each in rows.T)
    if n_telling >= (1 if n_distinct >= MANY_DISTINCT else 2):
        warn_user(
            f"Only {n_distinct} of {len(X)} rows are distinct: the copies count as "
            "independent rows, effects follow the noise, and intervals are too narrow. "
            "Remove the copies."
        )


def warn_of_residuals(
    X, y, predict, categorical, selected, *, additive=True, classes=False
):
    """Warn of residuals that depend on a variable, or on a product of two.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows of the fit.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Their targets, or a column for each class.
    predict : callable
        Returns the predictions at rows, in the shape of y.
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
    """
    step = -(-len(X) // MOST_ROWS)
    X, y = X[::step], y[::step]
    distinct = without_copies(X, y)
    X, y = X[distinct], y[distinct]
    if len(X) < FEWEST_ROWS:
        return
    residuals = (y - predict(X)).reshape(len(X), -1)
    if classes and (abs(residuals) > 0.5).any(axis=1).mean() <= FEW_WRONG:
        return
    widths = y.reshape(len(X), -1).std(axis=0)
    level, parts = LEVEL / len(widths), list(zip(residuals.T, widths, strict=True))
    feature = max(_roughest(X, *part, level, categorical) for part in parts)
    if feature >= 0:
        _warn_of_roughness(X, feature)
    elif additive and 2 <= X.shape[1] <= MOST_TESTED:
        found = (
            _closest_product(X, *part, level, categorical, selected) for part in parts
        )
        pair = next(filter(None, found), None)
        if pair:
            warn_user(
                f"Residuals depend on the product of features {pair[0]} and {pair[1]}: "
                "their effects are not additive. Set interactions='auto', or to a list "
                "of pairs."
            )


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


def _closest_product(X, residuals, width, level, categorical, selected):
    """Return the pair of variables whose product is closest to the residuals, or None.

    The sum of residuals times products is compared with its distribution under random
    signs of the terms, see `sign_level`. The product is that of ranks; parts of it that
    depend on one variable do not count. Half of the level is spent on products of two
    selected variables, which are few, and half on all products.
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


def _limit(level, n_rows):
    """Return the limit of a sum of independent terms over the root of their squares.

    The ratio never exceeds the root of `n_rows`. For normal terms it is a function of
    Student's t, and it is nearly standard normal for many rows.
    """
    quantile = student.isf(level, n_rows - 1)
    return quantile * np.sqrt(n_rows / (n_rows - 1 + quantile**2))


def _roughest(X, residuals, width, level, categorical):
    """Return the variable of most similar residuals; -1 if not significant.

    `width`: the standard deviation of the targets.
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
