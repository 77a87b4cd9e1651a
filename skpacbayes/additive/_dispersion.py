"""How much more counts vary than those of a Poisson distribution."""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from .._base import warn_user

WHOLE = 1e-6  # relative tolerance within which a count is an integer
DISPERSED = 1.2  # dispersion from which counts are overdispersed
N_ERRORS = 5.0  # and standard errors of the dispersion above 1
# Least gain of log likelihood, twice, of a dispersion that grows with the mean.
LEAST_GAIN = 5.0
LEAST_GROWTH, MOST_GROWTH = 1e-6, 1e4  # of the dispersion, for each unit of the mean


def are_counts(rows):
    """Return whether weighted targets are integers, so that weights are exposures."""
    return are_whole(rows.weights * rows.targets)


def are_whole(values):
    """Return whether numbers are integers up to rounding."""
    return bool((abs(values - np.round(values)) <= WHOLE * np.maximum(values, 1)).all())


def repetitions(rows):
    """Return the observations per row: the weight if all are integers, else 1."""
    if are_whole(rows.weights) and are_whole(rows.targets):
        return rows.weights
    return np.ones(len(rows.weights))


def exposures(rows):
    """Return the exposure of each observation: its weight, unless weights repeat it."""
    return rows.weights / repetitions(rows)


def growth_of_dispersion(rows, means, n_functions):
    """Return a, if variances m (1 + a m) fit counts of means m better; otherwise 0.

    These are the variances of negative binomial counts, of Poisson counts with a share
    of further zeros, and of Poisson counts whose rates are random factors times their
    means. The alternative is a constant dispersion. Compared is the normal
    log likelihood of Pearson's residuals, the pseudo-likelihood [1]_.

    Parameters
    ----------
    rows : Rows or Problem
        Targets and weights.
    means : ndarray of shape (n_samples,)
        Means of the targets.
    n_functions : float
        Number of fitted functions, without the intercept.

    References
    ----------
    .. [1] M. Davidian and R. J. Carroll (1987). Variance function estimation. Journal
       of the American Statistical Association 82.
    """
    repeated, counts = repetitions(rows), exposures(rows) * means
    freedom = repeated.sum() - 1 - n_functions
    if freedom < 1 or not rows.targets.any():
        return 0.0
    squares = counts * (rows.targets / means - 1) ** 2 * (repeated.sum() / freedom)

    def misfit(dispersions):
        return repeated @ (np.log(dispersions) + squares / dispersions)

    constant = max(1.0, repeated @ squares / repeated.sum())
    found = minimize_scalar(
        lambda log_growth: misfit(1.0 + math.exp(log_growth) * counts),
        bounds=(math.log(LEAST_GROWTH), math.log(MOST_GROWTH)),
        method="bounded",
    )
    gain = misfit(np.full(len(counts), constant)) - found.fun
    return math.exp(found.x) if gain > LEAST_GAIN else 0.0


def dispersion_of(rows, means, n_functions):
    """Estimate the dispersion of counts [1]_.

    This is Pearson's statistic over its degrees of freedom, divided by a statistic of
    mean 1 under any dispersion that is correlated with it if means are small.

    Parameters
    ----------
    rows : Rows or Problem
        Targets and weights.
    means : ndarray of shape (n_samples,)
        Means of the targets.
    n_functions : float
        Number of fitted functions, without the intercept.

    References
    ----------
    .. [1] D. J. Fletcher (2012). Estimating overdispersion when fitting a generalized
       linear model to sparse data. Biometrika 99.
    """
    repeated = repetitions(rows)
    ratios = rows.targets / means
    if rows.weights @ rows.targets < 0.5:  # no counts: ratios near 0
        return 1.0
    freedom = max(repeated.sum() - 1 - n_functions, 1.0)
    pearson = rows.weights @ (means * (ratios - 1) ** 2) / freedom
    return float(pearson * repeated.sum() / (repeated @ ratios))


def error_of_dispersion(rows, means):
    """Bound the standard error of the dispersion of Poisson counts.

    The variance of a squared Pearson residual is 2 + 1 / mean.
    """
    repeated = repetitions(rows)
    variance = repeated @ (2.0 + repeated / (rows.weights * means))
    return float(np.sqrt(variance) / repeated.sum())


def warn_of_dispersion(dispersion, error):
    """Warn if counts are clearly overdispersed.

    Parameters
    ----------
    dispersion : float
        Their estimated dispersion.
    error : float
        Its standard error for Poisson counts.
    """
    if dispersion > max(DISPERSED, 1.0 + N_ERRORS * error):
        warn_user(
            f"The counts vary {dispersion:.2g} times as much as Poisson's: variables "
            "without effect may be selected, and intervals are too narrow. Set "
            "inverse_temperature='auto'."
        )
