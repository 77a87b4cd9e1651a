"""The noise variance integrated out."""

import math

import numpy as np

ROWS_EACH = 3.0  # rows of each variable from which the variance is integrated out
LEAST_FREEDOM = 3.0  # and degrees of freedom


def may_integrate(settings, problem):
    """Whether the noise variance is integrated out: it is in no other parameter.

    Where there are many variables for the rows, or pairs, it is not: a model that fits
    the noise would make its own variance small.
    """
    given = settings.noise_variance, settings.slab, settings.inverse_temperature
    usual = given == ("auto", "gaussian", "likelihood")
    n_variables = np.count_nonzero(problem.gram.ranks)
    least = max(LEAST_FREEDOM + 1, ROWS_EACH * n_variables)
    return usual and settings.sampler == "collapsed" and problem.weight >= least


def integrated(prior, freedom, square):
    """Return a prior under which a chain integrates the noise variance out.

    The variance s^2 has the prior 1 / s^2, and coefficients have s times the deviations
    of the prior. A model then weighs

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 + q log(ridge) / 2,

    b and P as in the kernel.

    Parameters
    ----------
    prior : Prior
        A normal one, in units of the noise.
    freedom : float
        Degrees of freedom, the number of rows less one.
    square : float
        Sum of squares of y less its mean, in these units.
    """
    return prior._replace(freedom=freedom, square=square)


def noise_factors(prior, fits):
    """Mean of the noise variance given each model, in units; 1 where it is known.

    `fits` are b' P^-1 b.
    """
    if prior.freedom == 0:
        return np.ones_like(fits)
    rest = np.maximum(prior.square - fits, math.ulp(prior.square))
    return rest / max(prior.freedom - 2, 1.0)
