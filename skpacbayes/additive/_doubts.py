"""Warnings of a fit: of its weights, chains and selection, residuals and rows."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._chains import R_HAT_LIMIT, warn_unmixed
from .._sentinels import beyond_the_range, warn_of_empty_columns
from ._missing_effects import TELLS_APART, warn_of_structure
from ._posterior import SELECTED
from ._residuals import warn_of_residuals

N_ERRORS = 2.0  # a selection is uncertain within this many errors of SELECTED
SAME = 0.95  # correlation from which variables are nearly equal
COPIES = 0.999  # correlation from which variables are copies
LEAST_SHARE, MOST_COMPARED = 0.01, 300  # limits of comparisons
FEWEST, MOST = 0.1, 20.0  # mean weights that may be numbers of rows
LEAST_EFFECTIVE = 0.1  # least effective number of rows, as a share
LEAST_NOTHING = 0.05  # probability of no variable from which selections are doubtful
POOLED = 0.05  # share of the rows in pooled categories
FEWEST_DISTINCT = 5  # distinct rows from which copies are looked for
MANY_DISTINCT = 50  # from here one column shows that equal rows are copies; else two
FEW_DISTINCT = 0.4  # share of distinct rows below which most rows are copies
DISPERSED = 1.2  # dispersion from which counts are overdispersed
N_DISPERSED = 5.0  # and its standard errors above 1
MOST_OF_ONE = 0.8  # share of one count in the squared residuals from which it is far
NEAR_RANGE = 0.9  # lengths of a range, from the limits of far rows back to it


def warn_of_fit(
    estimator,
    rows,
    sample_weight,
    products,
    predict=None,
    variances=None,
    *,
    noise=1.0,
    exponents=None,
    left=None,
):
    """Warn of what makes a fit doubtful.

    Parameters
    ----------
    estimator : estimator of the family
        The fitted estimator.
    rows : tuple of ndarray
        Rows of positive weight, their targets, of shape (n_samples,) or (n_outputs,
        n_samples), and their weights.
    sample_weight : array-like or None
        Weights as given by the user.
    products : callable
        Returns sums over the rows of products of the functions of the given columns.
    predict : callable, default=None
        Returns predictions at rows. None: residuals are not tested, as structure in
        them may come from given scales or temperatures.
    variances : callable, default=None
        Variances of targets of given means, see :func:`warn_of_residuals`.
    noise : float, default=1.0
        Variance of the noise.
    exponents : ndarray of shape (n_samples,), default=None
        Weights of the rows over their dispersions. None: their weights.
    left : Structure, default=None
        What the residuals depend on, see :func:`structure_left`.
    """
    (X, y, weights), found = rows, estimator._answer()
    plausible = sample_weight is None or warn_of_weights(weights)
    if estimator.feature_range is not None:
        categorical = estimator._categorical()
        plausible &= warn_of_clipped_rows(X, estimator.feature_ranges_, categorical)
    warn_of_doubts(found, estimator.n_features_in_, products)
    # A linear model of weak effects may leave structure, too, and so do unmixed chains.
    few = not (found.full or found.n_variables_needed)
    tested = predict is not None and plausible and few and estimator._first_order > 1
    if tested:
        missing = warn_of_residuals(
            X,
            y,
            weights if exponents is None else exponents,
            predict,
            found,
            estimator._categorical(),
            noise=noise,
            variances=variances,
            additive=found.pairs is None,
            classes=isinstance(estimator, ClassifierMixin),
            basis=_rougher_basis(estimator),
            beta=estimator.beta,
        )
        if left is not None and not missing:
            warn_of_structure(left)
    warn_of_copied_rows(X, y)
    warn_of_empty_columns(X, getattr(estimator, "feature_names_in_", ()))
    estimator._warn_of_sentinels(X)


def _rougher_basis(estimator):
    """Return the parameter `basis` for rough effects; None if it is that already."""
    options = estimator._parameter_constraints["basis"][0].options
    rougher = "auto" if "auto" in options else "cosine"
    own = isinstance(estimator.basis, str) and estimator.basis == rougher
    return None if own else rougher


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
            own = found.dictionary.width
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


def warn_of_weights(weights):
    """Warn if the given weights are hardly numbers of rows.

    Parameters
    ----------
    weights : ndarray of shape (n_samples,)
        The positive weights.

    Returns
    -------
    plausible : bool
        Whether there was no warning.
    """
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


def warn_of_clipped_rows(X, ranges, categorical):
    """Warn if most rows are outside of the given range of a variable; return if not.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows of the fit.
    ranges : ndarray of shape (n_features, 2)
        Ends of the given ranges.
    categorical : sequence of int
        Categorical features, whose ranges are not used.
    """
    low, high = ranges.T
    outside = ((low > X) | (high < X)).sum(axis=0)
    inside = ((low <= X) & (high >= X)).sum(axis=0)  # NaN is neither
    clipped = (outside > inside) & (np.fmin.reduce(X) < np.fmax.reduce(X))
    clipped[list(categorical)] = False
    if clipped.any():
        feature = int((clipped * outside).argmax())
        warn_user(
            f"{outside[feature]} of {len(X)} rows are outside of the feature_range of "
            f"feature {feature}, {low[feature]:.6g} to {high[feature]:.6g}: its effect "
            "is at most a line there, as far as half of the range. Give a range of the "
            "values of the feature, in its unit."
        )
    return not clipped.any()


def warn_of_far_rows(X, reach, n_rows, deviates):
    """Warn of rows beyond the range of a variable that is in the model.

    One row is enough if it is further from the range than the range is long. Of rows
    that are further than a tenth of its length there must be more than rows in random
    order have: time, for instance, goes on.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    reach : ndarray of shape (2, n_features)
        Ends of the ranges, moved outwards by their lengths; infinite for variables
        without an effect.
    n_rows : int
        Number of rows that the ranges are known from.
    deviates : bool
        Whether standard deviations include what lines would add.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        near = NEAR_RANGE * (reach[1] / 3 - reach[0] / 3)
        below, above = near + reach[0] > X, reach[1] - near < X
        far = (reach[0] > X) | (reach[1] < X)
    if far.any():
        feature, rows, most = int(far.any(axis=0).argmax()), far, ""
    else:
        most = "a tenth of "
        for rows in (below, above):
            feature = beyond_the_range(np.count_nonzero(rows, axis=0), len(X), n_rows)
            if feature is not None:
                break
        else:
            return
    more = ""
    if deviates:
        more = " Beyond it, standard deviations include only what lines would add."
    warn_user(
        f"feature {feature} of {np.count_nonzero(rows[:, feature])} rows is outside "
        f"of its range in the fit by more than {most}the length of this range: its "
        f"effect is at most a line there, as far as half of the range.{more}"
    )


def warn_of_newly_absent(absent, features, consequence):
    """Warn of rows without a value of a variable that was never missing in the fit.

    Parameters
    ----------
    absent : ndarray of bool of shape (n_selected, n_samples)
        Where values of the selected variables are missing or new categories.
    features : ndarray of shape (n_selected,)
        Their columns.
    consequence : str
        What is wrong with predictions at the mean effect.
    """
    if not absent.any():
        return
    counts = np.count_nonzero(absent, axis=1)
    warn_user(
        f"feature {features[counts.argmax()]} is missing or has a new category in "
        f"{counts.max()} rows, and had neither in the fit. Its mean effect is used, so "
        f"that {consequence}. Average the predictions over values of the feature, or "
        "fit rows in which it is missing."
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


def warn_of_dispersion(repeated, counts, means, dispersion, growth=None):
    """Warn if counts are clearly overdispersed, in a way that the posterior ignores.

    Parameters
    ----------
    repeated : ndarray of shape (n_samples,)
        Number of observations of each row.
    counts, means : ndarray of shape (n_samples,)
        Their counts, and expected counts.
    dispersion : float
        The estimated dispersion. The variance of a squared Pearson residual of a
        Poisson count is 2 + 1 / mean.
    growth : float, default=None
        Increase of the dispersion with the mean, if the posterior knows of the
        dispersion: it then ignores that nearly all of it may be that of one count.
    """
    error = np.sqrt(repeated @ (2.0 + 1.0 / means)) / repeated.sum()
    if not dispersion > max(DISPERSED, 1.0 + N_DISPERSED * error):
        return
    if growth is None:
        warn_user(
            f"The counts vary {dispersion:.2g} times as much as Poisson's: variables "
            "without effect may be selected, and intervals are too narrow. Set "
            "inverse_temperature='auto'."
        )
        return
    squares = (counts - means) ** 2 / means / (1.0 + growth * means)
    far = squares.argmax()
    share = squares[far] / (repeated @ squares)
    if share > MOST_OF_ONE:
        warn_user(
            f"One count, {counts[far]:.6g} where {means[far]:.2g} is expected, "
            f"makes up {share:.0%} of the dispersion: effects may be hidden, or follow "
            "this count. Check it, or leave out its row."
        )
