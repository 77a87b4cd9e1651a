"""What a fit has to warn of: chains, selections, models that are too small."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._chains import R_HAT_LIMIT, warn_unmixed

SELECTED = 0.5  # least inclusion probability of a variable that is selected
N_ERRORS = 2.0  # Monte Carlo errors from SELECTED within which a selection is unsure
SAME = 0.95  # correlation from which on variables say the same
COPIES = 0.999  # and from which on they are copies
LEAST_SHARE, MOST_COMPARED = 0.01, 300  # probability and number of those compared
FEWEST, MOST = 0.1, 20.0  # mean weights beyond which weights are hardly numbers of rows
LEAST_EFFECTIVE = 0.1  # of the rows, whose number unequal weights leave
DISPERSED = 1.2  # times as much as Poisson's, from which on counts vary too much
N_ERRORS_OF_DISPERSION = 5.0  # standard errors of that, too
POOLED = 0.05  # share of the rows whose categories have one effect together
LEVEL = 1e-3  # of the test of all variables together
LEAST_GAIN = 0.01  # share of the variance of y that the dependence has at least
FEWEST_ROWS, MOST_ROWS = 50, 2000  # rows
N_NEIGHBORS = 5  # rows before a row, of each variable, that are compared with it
TELLS_APART = 0.9  # share of the rows that a row's variables, or its target, identify
PER_LEVEL = 3  # rows for each value of a variable that may be a category


def warn_of_doubts(found, n_features, products):
    """Warn if the chains disagree, or if another seed may find another model.

    Parameters
    ----------
    found : Fitted
        What the chains found.
    n_features : int
        Number of variables; the terms after these are pairs.
    products : callable
        Returns sums over the rows of products of the functions of the given columns.
    """
    warn_unmixed(
        found.r_hat,
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
                f"feature {feature} has {count} categories, of which the {own} most "
                f"frequent have an effect each; the others, {share:.0%} of the rows, "
                f"have one together: increase max_order to {count - 1}."
            )
    if found.n_variables_needed:
        _warn(
            f"Many weak effects explain y better than few clear ones, but a model "
            f"may have {found.most} of the {found.n_variables_needed} variables: "
            "increase max_active, or compare with ridge regression."
        )
    if found.weak_gain:
        warn_user(
            f"A linear regression on all variables is {np.exp(found.weak_gain):.3g} "
            "times as probable as few clear effects, which is too little evidence to "
            "use all variables. Compare with ridge regression."
        )
    if any(found.far_rows):
        above, below = found.far_rows
        warn_user(
            f"{above:.6g} targets lie far above a model of the other rows and "
            f"{below:.6g} far below it: they may hide effects, or bring in false ones. "
            "Check these targets; if the noise is skewed, transform y, for instance by "
            "its logarithm."
        )
    if found.full:
        _warn(
            f"A chain had {found.full} variables in its model, and may have "
            "no more: increase max_active."
        )


def is_settled(found):
    """Whether chains agree, and had room for the variables that they wanted."""
    return found.r_hat <= R_HAT_LIMIT and not (found.full or found.n_variables_needed)


def _warn_of_selection(found, n_features):
    """Warn if a probability is too near to that from which on terms are selected."""
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
        f"{found.errors[term]:.2f}, and is selected from {SELECTED} on. "
        f"Increase n_iter, or read {advice}."
    )


def _warn_of_sharing(found, n_features, products):
    """Warn if variables that say the same share a probability, and none is selected."""
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
            "and both are selected: the rows do not tell whether one of them would do. "
            "Keep one of them."
        )
        return


def _alike(found, some, products, least):
    """Whether variables have a correlation of `least` or more, as a matrix."""
    width, missing = found.posterior.shape[1], found.dictionary.missing[some]
    gram = products(some * width + missing)  # the first function is that of missing
    scales = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return abs(gram) >= least * np.outer(scales, scales)


def groups_of(alike):
    """Yield the groups, of two or more, that a matrix of who is like whom connects."""
    count, labels = connected_components(alike, directed=False)
    for label in range(count):
        group = np.flatnonzero(labels == label)
        if len(group) > 1:
            yield group


def warn_of_weights(sample_weight, weights):
    """Warn if weights, if any were given, are hardly numbers of rows.

    Parameters
    ----------
    sample_weight : array-like or None
        What was given.
    weights : ndarray of shape (n_samples,)
        The positive weights.

    Returns
    -------
    plausible : bool
        Whether nothing had to be warned of.
    """
    if sample_weight is None:
        return True
    count, total = len(weights), weights.sum()
    if not FEWEST <= total / count <= MOST:
        warn_user(
            f"sample_weight sums to {total:.6g} for {count} rows, and is read as how "
            "often each row was observed. If it is only relative, multiply it by "
            f"{count / total:.3g}."
        )
        return False
    effective = total**2 / (weights @ weights)
    if effective < LEAST_EFFECTIVE * min(count, total):
        warn_user(
            f"sample_weight sums to {total:.6g}, but is so unequal that a mean has "
            f"the precision of {effective:.0f} rows. Unless each weight is the number "
            "of times that a row was observed, too many variables are found: limit the "
            "largest weights."
        )
        return False
    return True


def warn_of_dispersion(dispersion, error):
    """Warn if counts vary clearly more than Poisson's.

    Parameters
    ----------
    dispersion : float
        How many times as much they vary.
    error : float
        Its standard error, if it is 1.
    """
    if dispersion > max(DISPERSED, 1.0 + N_ERRORS_OF_DISPERSION * error):
        warn_user(
            f"The counts vary {dispersion:.2g} times as much as Poisson's: variables "
            "without effect may be selected, and bands are too narrow. Set "
            "inverse_temperature='auto'."
        )


def warn_of_far_rows(X, reach):
    """Warn of rows far beyond the range of a variable that is in the model.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    reach : ndarray of shape (2, n_features)
        The ends, infinite where they do not matter.
    """
    far = (reach[0] > X) | (reach[1] < X)
    if far.any():
        feature = int(far.any(axis=0).argmax())
        warn_user(
            f"feature {feature} of {np.count_nonzero(far[:, feature])} rows lies "
            "further beyond its range in the fit than this range is long: its effect "
            "is constant there, and intervals do not account for that."
        )


def _warn(message):
    warn_user(message, ConvergenceWarning)


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
    step = -(-len(X) // MOST_ROWS)
    X, y = X[::step], y[::step]
    distinct = without_copies(X, y)
    X, y = X[distinct], y[distinct]
    if len(X) < FEWEST_ROWS:
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
    warn_user(
        f"Rows that are neighbors in feature {feature} have similar residuals: its "
        f"effect may be rougher than its functions are. Try a {advice}."
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
