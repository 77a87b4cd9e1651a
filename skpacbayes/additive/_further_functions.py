"""Evidence for more functions of a variable than a fit has.

The posterior is over combinations of the first `max_order` functions of each variable.
If an effect needs the next ones, its bands leave out what only these can express.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

from ._basis import AUTOMATIC, Dictionary, weighted_moments
from ._posterior import SELECTED

TIMES = 2  # as many functions as before, in each comparison
MOST_TIMES = 4  # as many functions as the fit has, at most
FEWEST_FREE = 10  # least rows minus number of functions
N_SIGNS = 99  # random signs of residuals, that give less evidence each
SMALLEST = 1e-12  # of penalized squares and of a ridge, as shares


class Further(NamedTuple):
    """Selected variables that need more functions than the fit has."""

    features: tuple = ()
    max_order: int = 0  # a number that is enough, or the largest that was compared

    def __bool__(self):
        return bool(self.features)


def further_functions(
    X, targets, weights, found, categorical, *, weight, ridge, beta, least=SELECTED
):
    """Return the selected variables that need more functions than the fit has.

    For each of them, given the functions of all other variables that are in the model,
    the posterior of its order is computed with twice as many functions. The prior goes
    on: a factor `beta` for each function, and a normal coefficient of the k-th function
    of standard deviation proportional to 1 / k. The noise variance is integrated out.
    The variable needs more functions if orders above those of the fit have a
    probability of `least` or more, and a larger one than with random signs of the
    residuals.

    The signs show what noise of unequal variance does, and products that the model
    lacks: a posterior of equal variances takes few large residuals for an effect.

    A test of the next functions alone, given all before, has less power: where few
    functions do not follow an effect, the posterior of the fit has small orders, and
    those up to `max_order` are of little use without the next ones.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Distinct rows.
    targets, weights : ndarray of shape (n_samples,)
        Targets on the scale of the scores, and their precisions.
    found : Fitted
        Results of the chains.
    categorical : sequence of int
        Categorical variables, which are not compared.
    weight : float
        Number of observations, whose squared errors tell the noise variance.
    ridge : float
        Precision of the coefficients over that of the noise.
    beta : float
        Factor of the prior for each function.
    least : float, default=1/2
        Probability of more functions from which they are needed.

    Returns
    -------
    further : Further
        The variables, and the number of functions to use.
    """
    dictionary = found.dictionary
    named = isinstance(dictionary.basis, str) and dictionary.basis in AUTOMATIC
    features = np.flatnonzero(found.selected)
    features = features[~np.isin(features, list(categorical))]
    if not named or len(features) == 0:
        return Further()
    inclusion = found.posterior.inclusion() >= SELECTED
    terms = np.flatnonzero(inclusion[:, 0])
    values = found.values(X, terms)
    owners = np.repeat(terms, inclusion[terms].sum(axis=1))
    fitted = values[inclusion[terms]]
    own = values[np.searchsorted(terms, features)]
    roots = np.sqrt(weights)
    setting = targets * roots, weight, ridge, beta
    threshold = np.log(least / (1 - least))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (N_SIGNS, len(X)))
    order, lacking = dictionary.width, set()
    most = MOST_TIMES * order
    while order < most:
        more = values_of(dictionary, X, weights, features, TIMES * order)
        some = set()
        for feature, few, many in zip(features.tolist(), own, more, strict=True):
            others = np.vstack([np.ones(len(X)), fitted[owners != feature]])
            parts = others * roots, few * roots, many * roots
            odds = log_odds(*parts, *setting)
            if odds >= threshold:
                mirrored = with_signs(signs, *parts[:2], *setting)
                if odds > log_odds(*parts, mirrored, *setting[1:]).max():
                    some.add(feature)
        if not some:
            break
        lacking |= some
        own, order = more, TIMES * order
    return Further(tuple(sorted(lacking)), order) if lacking else Further()


def values_of(dictionary, X, weights, features, order):
    """Return functions of some variables at rows: the first `order` of the basis."""
    low, high = dictionary.low[features], dictionary.high[features]
    larger = Dictionary(dictionary.basis, order, low, high, X[:, features])
    values = larger(X[:, features])
    moments = weighted_moments(np.nan_to_num(values), weights)
    return larger.orthogonal(*moments, weights.sum())(values)


def log_odds(others, few, many, targets, *setting):
    """Return log odds of the orders that only `many` functions have.

    Parameters
    ----------
    others, few, many : ndarray of shape (n_functions, n_samples)
        Functions of the model without the variable, the intercept first, and of the
        variable, times roots of the precisions.
    targets : ndarray of shape (n_samples,) or (n_tables, n_samples)
        Targets, times these roots.
    *setting
        Further parameters of :func:`log_weights`.
    """
    before = log_weights(others, few, targets, *setting)
    after = log_weights(others, many, targets, *setting)[..., len(few) :]
    if after.shape[-1] == 0:
        return np.full(targets.shape[:-1], -np.inf)
    return logsumexp(after, axis=-1) - logsumexp(before, axis=-1)


def with_signs(signs, others, few, targets, *setting):
    """Return targets whose residuals are given other signs.

    The effects are those of the most probable order of `few` functions. The residuals
    are divided by the share of their standard deviation that the fit leaves [1]_.

    Parameters
    ----------
    signs : ndarray of shape (n_tables, n_samples)
        Signs of the residuals.
    others, few, targets, *setting
        See :func:`log_odds`.

    References
    ----------
    .. [1] R. Davidson and E. Flachaire (2008). The wild bootstrap, tamed at last.
       Journal of Econometrics 146.
    """
    few = few[few.any(axis=1)]
    order = 1 + log_weights(others, few, targets, *setting).argmax()
    design = np.vstack([others, few[:order]])
    factor = cholesky(precision_of(design, setting[1]), lower=True)
    root = solve_triangular(factor, design, lower=True)
    fitted = (root @ targets) @ root
    leverages = np.minimum(np.square(root).sum(axis=0), 1 - SMALLEST)
    return fitted + signs * ((targets - fitted) / np.sqrt(1 - leverages))


def precision_of(design, ridge):
    """Return the precision of coefficients, of which the intercept is the first."""
    precision = design @ design.T
    added = np.full(len(design), ridge + SMALLEST * precision.diagonal().max())
    added[0] = 0.0
    precision[np.diag_indices_from(precision)] += added
    return precision


def log_weights(others, own, targets, weight, ridge, beta):
    """Return log posterior weights of the orders 1, 2, ... of a variable.

    Parameters
    ----------
    others, own : ndarray of shape (n_functions, n_samples)
        Functions of the model without the variable, the intercept first, and of the
        variable, times roots of the precisions.
    targets : ndarray of shape (n_samples,) or (n_tables, n_samples)
        Targets, times these roots.
    weight, ridge, beta
        See :func:`further_functions`.

    Returns
    -------
    logs : ndarray of shape (n_functions,) or (n_tables, n_functions)
        Log weights, up to one term; of fewer orders if there are few rows.
    """
    own = own[own.any(axis=1)]
    count = min(len(own), targets.shape[-1] - len(others) - FEWEST_FREE)
    if count < 1:
        return np.zeros((*targets.shape[:-1], 0))
    design = np.vstack([others, own[:count]])
    factor = cholesky(precision_of(design, ridge), lower=True)
    solution = solve_triangular(factor, design @ targets.T, lower=True).T
    square = np.square(targets).sum(axis=-1, keepdims=True)
    rest = square - np.cumsum(np.square(solution), axis=-1)
    rest = np.log(np.maximum(rest, SMALLEST * square))
    logs = -np.cumsum(np.log(factor.diagonal())) - (weight - 1) / 2 * rest
    orders = np.arange(1, count + 1)
    return logs[..., len(others) :] + orders * (np.log(beta) + np.log(ridge) / 2)
