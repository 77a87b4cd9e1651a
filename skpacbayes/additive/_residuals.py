"""Residuals: noise that is not independent, and rows that are left out of the fit.

The posterior takes the noise of each row as independent, and of equal variance, or of
the variance of the family. If rows share noise, variables that tell the groups of rows
apart are selected, and fit this noise. If the noise is larger where few rows decide,
effects follow these rows, which a fit without them predicts badly.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp
from scipy.stats import spearmanr

from .._base import warn_user
from .._chains import R_HAT_LIMIT
from ._further_functions import Further, further_functions
from ._missing_effects import (
    FEWEST_ROWS,
    N_NEIGHBORS,
    NOISELESS,
    Tested,
    warn_of_further,
    warn_of_missing,
)
from ._posterior import SELECTED

MOST_ROWS = 2000  # rows that are tested, at most
SMALLEST = 1e-12  # of variances and leverages
LIMIT = 4.0  # standard errors from which rows are dependent
ERRORS = 2.0  # standard errors by which losses of rows that are left out are smaller
LEAST_CORRELATION = 0.05  # of residuals of neighbors
SORTED = 0.9  # rank correlation of y with the row from which rows were sorted by y
# Of groups: least number; largest growth of it by a further variable; least mean size.
FEWEST_GROUPS, GROWTH, LEAST_SIZE = 5, 1.25, 2.0
LEAST_RATIO, LIMIT_RATIO = 2.5, 5.0  # of variances of effects; in standard errors
MANY_GROUPS = 10  # groups from which their variables are compared with none


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
    basis=None,
    beta=0.5,
):
    """Warn of residuals that are not independent noise; at most once.

    Effects are looked for in rows spread over the table, and only if the chains agree;
    noise that rows share in the first rows, which are neighbors. Such noise, and
    products, look like effects that need more functions, so these are told of last.

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
    basis : str, default=None
        Another basis, for rougher effects. None: there is none to try.
    beta : float, default=0.5
        Factor of the prior for each function.

    Returns
    -------
    missing : bool
        Whether there was a warning of effects that are missing.
    """
    y = np.atleast_2d(y).T.astype(float)
    further = Further()
    if found.r_hat <= R_HAT_LIMIT:
        rows = spread_rows(X, y, weights, predict, classes)
        if rows is not None:
            if not classes:
                how = {"noise": noise, "variances": variances, "beta": beta}
                further = needed_functions(rows, found, categorical, **how)
            if warn_of_missing(rows, found, categorical, additive, basis, further):
                return True
    part = X[:MOST_ROWS], y[:MOST_ROWS], weights[:MOST_ROWS]
    rows, of_noise = Tested.of(*part, predict, classes), False
    if rows is not None:
        share = min(1.0, MOST_ROWS / len(X))
        how = noise, variances, classes, bool(further)
        of_noise = warn_of_noise(rows, found, categorical, share, *how)
    if further and not of_noise:
        warn_of_further(further, found.dictionary.width)
        return True
    return False


def spread_rows(X, y, weights, predict, classes):
    """Return rows spread over the table, at most `MOST_ROWS`; None if not to be tested.

    Parameters
    ----------
    X, y, weights, predict, classes
        See :meth:`Tested.of`.
    """
    step = -(-len(X) // MOST_ROWS)
    return Tested.of(X[::step], y[::step], weights[::step], predict, classes)


def needed_functions(
    rows, found, categorical, *, noise, variances=None, beta, least=SELECTED
):
    """Return the variables that need more functions; none if residuals are not noise.

    Counts are replaced by the targets of a step of Newton's method; their weights are
    precisions, and not numbers of rows. If the noise has heavy tails, rows have
    the expected precisions of Student's t distribution.

    Parameters
    ----------
    rows : Tested
        The rows.
    found, categorical, noise, variances, beta
        See :func:`warn_of_residuals`.
    least : float, default=1/2
        See :func:`further_functions`.
    """
    X, y, weights, means = rows
    residuals = (y - means)[:, 0]
    if variances is None and np.square(residuals).mean() <= NOISELESS * y.var():
        return Further()  # residuals are errors of approximation
    precisions, weight = weights, weights.sum()
    if variances is not None:
        scales = np.maximum(variances(means)[:, 0], SMALLEST)
        residuals, precisions, weight = residuals / scales, weights * scales, len(X)
    elif np.isfinite(found.freedom):
        ratios = np.square(residuals) / noise
        precisions = weights * (found.freedom + 1) / (found.freedom + ratios)
    targets = found.decision(X) + residuals
    ridge = noise / found.slab_scale**2
    return further_functions(
        *(X, targets - targets.mean(), precisions, found, categorical),
        weight=weight,
        ridge=ridge,
        beta=beta,
        least=least,
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


def warn_of_noise(
    rows, found, categorical, share, noise, variances, classes, further=False
):
    """Warn of noise that rows share, or that is larger in rows of large influence.

    Parameters
    ----------
    rows : Tested
        The rows.
    share : float
        Share of the rows of the fit that are tested.
    found, categorical, noise, variances, classes
        See :func:`warn_of_residuals`.
    further : bool, default=False
        Whether variables need more functions, which may explain large residuals in
        rows of large influence: these are then not told of.

    Returns
    -------
    warned : bool
        Whether there was a warning.
    """
    X, y, weights, means = rows
    if variances is None and ((y - means) ** 2).mean() <= NOISELESS * y.var():
        return False  # residuals are errors of approximation
    scales = np.ones_like(means)
    if variances is not None:
        scales = np.sqrt(np.maximum(variances(means), SMALLEST))
    design, ridge = design_of(X, found), noise / found.slab_scale**2
    roots, parts = np.sqrt(weights), []
    for residuals, scale in zip((y - means).T, scales.T, strict=True):
        whitened = design * (roots * scale)[:, None]
        part = standardized(residuals * roots / scale, whitened, ridge, share)
        parts += [] if part is None else [part]
    if not (classes or further) and np.isinf(found.freedom):
        ratio = max((influence_ratio(part) for part in parts), default=0.0)
        if ratio > 0:
            warn_user(
                "Residuals are larger in rows with a large influence: effects vary "
                f"{ratio:.2g} times as much as with equal noise, and may follow few "
                "rows. Transform y, give smaller weights to rows with more noise, or "
                "use a smaller max_order."
            )
            return True
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
        return True
    if not is_sorted(y) and any(dependence(part, np.arange(len(X))) for part in parts):
        warn_user(
            "Consecutive rows seem to share noise, as rows of one unit, or in the "
            "order of time, do: variables without effect may be selected, and "
            "intervals are too narrow. Fit one row for each unit, or differences of "
            "rows."
        )
        return True
    return False


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
    factor = cholesky(precision_of(design, ridge, share), lower=True)
    root = solve_triangular(factor, design.T, lower=True).T
    squares = root.T @ root / share
    freedom = max(len(residuals) - share * np.trace(2 * squares - squares @ squares), 1)
    variance = residuals @ residuals / freedom
    if not variance > 0:
        return None
    return Residuals(residuals / np.sqrt(variance), root, squares)


def precision_of(design, ridge, share):
    """Return the precision of the coefficients of functions, whose noise is 1.

    Parameters
    ----------
    design, ridge, share
        See :func:`standardized`.
    """
    precision = design.T @ design / share
    added = np.full(len(precision), ridge + SMALLEST * precision.diagonal().max())
    added[0] = 0.0
    precision[np.diag_indices_from(precision)] += added
    return precision


def left_out_scores(X, scores, residuals, variances, weights, found, noise):
    """Return scores of rows, each of them left out of the fit.

    This is one step of Newton's method for the functions that are in the model, from
    the scores of all rows [1]_; it is exact for normal targets. Functions of pairs are
    clipped to their range at the other rows, as they are at new rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    scores, residuals : ndarray of shape (n_samples,)
        Their scores, and targets minus means.
    variances : ndarray of shape (n_samples,)
        Derivatives of the means with respect to the scores.
    weights : ndarray of shape (n_samples,)
        Their weights, or exponents.
    found : Fitted
        Results of the chains.
    noise : float
        Variance of the noise, or dispersion.

    References
    ----------
    .. [1] D. Pregibon (1981). Logistic regression diagnostics. Annals of Statistics 9.
    """
    variances = np.maximum(variances, SMALLEST)
    weights = weights * variances
    design, n_variables = design_of(X, found), X.shape[1]
    ridge = noise / found.slab_scale**2
    precision = precision_of(design * np.sqrt(weights)[:, None], ridge, 1.0)
    # The change of the coefficients by a row, for each unit of its working residual.
    changes = np.linalg.solve(precision, (design * weights[:, None]).T).T
    working = scores + residuals / variances
    coefficients = working @ changes
    errors = working - design @ coefficients
    leverages = np.minimum((design * changes).sum(axis=1), 1 - SMALLEST)
    inclusion = found.posterior.inclusion() >= SELECTED
    n_single = 1 + np.count_nonzero(inclusion[:n_variables])
    seen = np.sort(design[:, n_single:], axis=0)
    ends = design[:, n_single:].clip(seen[1], seen[-2])
    design = np.concatenate([design[:, :n_single], ends], axis=1)
    lost = (design * changes).sum(axis=1) * errors / (1 - leverages)
    return design @ coefficients - lost


def left_out_log_losses(logs, weights):
    """Return log losses of rows, each left out of the fit, from draws of all rows.

    Without a row, the density of a draw is divided by the likelihood of the row, raised
    to its weight: that is its importance weight [1]_.

    Parameters
    ----------
    logs : ndarray of shape (n_draws, n_samples)
        Log likelihoods of the rows at draws from the posterior of all rows.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.

    References
    ----------
    .. [1] A. E. Gelfand, D. K. Dey and H. Chang (1992). Model determination using
       predictive distributions with implementation via sampling-based methods. Bayesian
       Statistics 4.
    """
    ratios = -weights * logs
    return logsumexp(ratios, axis=0) - logsumexp(ratios + logs, axis=0)


def are_smaller(losses, before):
    """Return whether the losses of rows are smaller, by more than two standard errors.

    A decrease that is due to one row is one standard error.
    """
    decrease = before - losses
    largest = abs(decrease).max()
    if not largest > 0:
        return False
    decrease = decrease / largest  # whose squares are representable in any unit
    return bool(decrease.sum() > ERRORS * math.sqrt(len(decrease)) * decrease.std())


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
