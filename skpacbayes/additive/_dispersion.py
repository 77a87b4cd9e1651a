"""How much more counts vary than those of a Poisson distribution."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from .._base import warn_user

WHOLE = 1e-6  # relative tolerance within which a count is an integer
DISPERSED = 1.2  # dispersion from which counts are overdispersed
N_ERRORS = 5.0  # and standard errors of the dispersion above 1
MOST_OF_ONE = 0.8  # share of one count in the squared residuals from which it is far
LEAST_GAIN = 5.0  # of log likelihood, of a dispersion that grows with the mean
# Of the dispersion minus 1 of a mean count, the largest relative to one plus this mean.
LEAST, MOST = 1e-3, 1e4


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


def observations(rows, means):
    """Return the repetitions, the counts and the expected counts of the rows."""
    exposed = exposures(rows)
    return repetitions(rows), exposed * rows.targets, exposed * means


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


def growth_of_dispersion(rows, means, n_functions):
    """Return a, if the variance of counts of mean m grows as m (1 + a m); otherwise 0.

    That is the variance of negative binomial counts, of Poisson counts with a share of
    further zeros, and of Poisson counts whose rates are random factors times their
    means. The alternative is a constant dispersion. The more likely of two negative
    binomial distributions, with these variances, decides. Then a maximises the normal
    likelihood of Pearson's residuals, the pseudo-likelihood [1]_, which is right for
    variances of counts of any distribution.

    The parameters are those of :func:`dispersion_of`.

    References
    ----------
    .. [1] M. Davidian and R. J. Carroll (1987). Variance function estimation. Journal
       of the American Statistical Association 82.
    """
    repeated, counts, expected = observations(rows, means)
    freedom = repeated.sum() - 1 - n_functions
    if freedom < 1 or not rows.targets.any():
        return 0.0
    mean = repeated @ expected / repeated.sum()

    def least(misfit):
        """Return the dispersion minus 1 of a mean count of least misfit, and that."""
        found = minimize_scalar(
            lambda log_excess: misfit(math.exp(log_excess)),
            bounds=(math.log(LEAST), math.log(MOST * (1 + mean))),
            method="bounded",
        )
        return math.exp(found.x), found.fun

    def unlikely(unit):
        """Return minus the largest log likelihood, for shapes of unit / excess."""
        return least(
            lambda excess: (
                -(repeated @ negative_binomial(counts, expected, unit / excess))
            )
        )[1]

    if not unlikely(expected) - unlikely(mean) > LEAST_GAIN:  # constant, growing
        return 0.0
    squares = (counts - expected) ** 2 / expected * (repeated.sum() / freedom)

    def misfit(excess):
        dispersions = 1.0 + excess * (expected / mean)
        return repeated @ (np.log(dispersions) + squares / dispersions)

    return least(misfit)[0] / mean


def negative_binomial(counts, means, shapes):
    """Return log probabilities of counts, without the terms of the counts alone."""
    log_ratios = np.log1p(shapes / means)
    rising = gammaln(counts + shapes) - gammaln(shapes)
    return rising - counts * log_ratios - shapes * np.log1p(means / shapes)


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
    if _is_clear(dispersion, error):
        warn_user(
            f"The counts vary {dispersion:.2g} times as much as Poisson's: variables "
            "without effect may be selected, and intervals are too narrow. Set "
            "inverse_temperature='auto'."
        )


def warn_of_far_count(rows, means, growth, dispersion):
    """Warn if the counts are clearly overdispersed, but nearly all by one of them.

    Parameters
    ----------
    rows, means
        See :func:`dispersion_of`.
    growth : float
        See :func:`growth_of_dispersion`.
    dispersion : float
        The estimated dispersion.
    """
    repeated, counts, expected = observations(rows, means)
    squares = (counts - expected) ** 2 / expected / (1.0 + growth * expected)
    far = squares.argmax()
    share = squares[far] / (repeated @ squares)
    if share > MOST_OF_ONE and _is_clear(dispersion, error_of_dispersion(rows, means)):
        warn_user(
            f"One count, {counts[far]:.6g} where {expected[far]:.2g} is expected, "
            f"makes up {share:.0%} of the dispersion: effects may be hidden, or follow "
            "this count. Check it, or leave out its row."
        )


def _is_clear(dispersion, error):
    """Return whether counts are clearly overdispersed."""
    return dispersion > max(DISPERSED, 1.0 + N_ERRORS * error)
