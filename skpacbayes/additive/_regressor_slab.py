"""Whether the effects are few and clear or many and weak, by evidence."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from ..certificates.additive import log_prior_mass

MARGIN = 8.0  # of the log evidence, beyond that for what has been fitted
DOUBT = 1.0  # of the log evidence, from which few and many are both told of
LARGEST = 1000  # of the smaller of the numbers of rows and variables, whose cube counts
RATIOS = np.geomspace(1e-6, 10.0, 60)  # of the variances of coefficients and noise


class Weak(NamedTuple):
    """Many weak effects: the regression on all variables, along lines."""

    slab_variance: float  # of a coefficient
    noise_variance: float
    log_evidence: float
    gain: float = math.nan  # of the log evidence, above that of few effects


def weak_effects(problem, recorded, noise, beta, most, least):
    """Return the variances of many weak effects, and how evidence prefers them to few.

    Few effects have the evidence of the models that a chain visited. Many weak ones
    have that of the regression on the first function of every variable, whose variances
    of coefficients and noise are fitted: each costs half the logarithm of the rows.
    Many are to be preferred if they are exp(8) times as probable: exp(5) is called
    "very strong" evidence [1]_, and a chain has not visited all models.

    Parameters
    ----------
    problem : Problem
        The regression.
    recorded : tuple of ndarray
        What a chain under the usual prior has recorded.
    noise : float
        Variance of the noise under which it moved.
    beta : float
        Each function divides the prior by 1 / beta.
    most : int
        Largest number of variables of a model.
    least : float
        Smallest noise variance that is told from none.

    Returns
    -------
    found : Weak or None
        The variances, and their gain; None where there is nothing to compare.

    References
    ----------
    .. [1] R. E. Kass and A. E. Raftery (1995). Bayes factors. JASA 90.
    """
    spectrum = explained_squares(problem)
    if spectrum is None or problem.square <= problem.weight * least:
        return None
    _, columns, _, log_weights = recorded
    _, first = np.unique(columns, axis=0, return_index=True)
    few = logsumexp(log_weights[first]) - problem.square / (2 * noise)
    few -= (problem.weight - 1) / 2 * math.log(noise)
    ranks = problem.functions.orders
    few -= log_prior_mass(ranks, beta, min(most, np.count_nonzero(ranks)))
    many = linear_evidence(problem, *spectrum, least)
    gain = float(many.log_evidence - math.log(problem.weight) - few)
    return many._replace(gain=gain)


def explained_squares(problem):
    """Eigenvalues of the first functions' G, and of what each direction explains of y.

    None where there are too many rows and variables, or fewer than two variables.
    """
    width = problem.gram.diagonal.shape[1]
    columns = np.flatnonzero(problem.functions.orders) * width
    values = getattr(problem.gram, "values", None)
    n_rows = len(columns) if values is None else values.shape[2]
    if not 2 <= min(len(columns), n_rows) <= LARGEST:
        return None
    linear = problem.against[columns]
    if n_rows >= len(columns):
        squares, directions = eigh(problem.gram.among(columns))
        shares = directions.T @ linear
        some = squares > 1e-10 * squares[-1]
        return squares[some], shares[some] ** 2 / squares[some]
    design = values[columns // width, 0] * np.sqrt(problem.gram.weights)
    squares, directions = eigh(design.T @ design)
    some = squares > 1e-10 * squares[-1]
    shares = directions[:, some].T @ (design.T @ linear)
    return squares[some], (shares / squares[some]) ** 2


def linear_evidence(problem, squares, explained, least=1e-300):
    """Fit the variances of a regression on all variables, by its evidence.

    The variance of the noise is at least `least`.
    """
    n = problem.weight - 1
    rest = max(problem.square - explained.sum(), 0.0)
    damped = 1 + RATIOS[:, None] * squares
    residuals = (explained / damped).sum(axis=1) + rest
    noises = np.maximum(residuals / n, least)
    logs = -n / 2 * np.log(noises) - residuals / (2 * noises)
    logs -= np.log(damped).sum(axis=1) / 2
    best = logs.argmax()
    return Weak(RATIOS[best] * noises[best], float(noises[best]), float(logs[best]))
