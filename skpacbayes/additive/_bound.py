"""Parts of the guarantee of a Gibbs posterior whose loss is bounded."""

import math

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import log_expit

from ._chain import log_binomial
from ._quadratic import precision_factor

MOST_STEPS = 100  # of the ascent to the best bound on an evidence
TOLERANCE = 1e-6  # on that bound, in nats


def catoni_terms(
    observed, divergence, *, count, inverse_temperature, largest, confidence
):
    """Bound the risk of a randomised predictor, term by term.

    For a loss in [0, B] and `count` independent rows, with probability `confidence`,
    for all posteriors at once (Theorem 1.2.6 of [1]_, from losses in [0, 1] to others),

        risk <= B (1 - exp(-(lambda / n) T)) / (1 - exp(-lambda B / n)),
        T = observed + (divergence + log(1 / (1 - confidence))) / lambda.

    Parameters
    ----------
    observed : float
        Mean loss over the rows, expected under the posterior.
    divergence : float
        Kullback-Leibler divergence of the posterior from the prior.
    count : int
        n, the number of independent rows; for pairs of a positive and a negative row
        the smaller of the two numbers, by Hoeffding's decomposition.
    inverse_temperature : float
        lambda, which may not depend on the rows.
    largest : float
        B.
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    terms : dict of str to float
        Their sum is the bound. `deviation`, what the exponentials add to T, is at most
        Hoeffding's lambda B^2 / (8 n).

    References
    ----------
    .. [1] O. Catoni (2007). PAC-Bayesian supervised classification.
    """
    rate = inverse_temperature / count
    terms = {
        "observed": observed,
        "divergence": divergence / inverse_temperature,
        "confidence": -math.log1p(-confidence) / inverse_temperature,
    }
    total = sum(terms.values())
    bound = largest * math.expm1(-rate * total) / math.expm1(-rate * largest)
    return terms | {"deviation": bound - total}


def log_prior_mass(ranks, beta, most):
    """Log of what the prior of the models must be divided by.

    The sum, over models of at most `most` variables, of 1 / binomial(d, variables)
    times beta^functions: of elementary symmetric polynomials in the variables' sums of
    beta^order.
    """
    ranks = ranks[ranks > 0]
    each = beta * (1 - beta**ranks) / (1 - beta)  # sum of beta^k, k = 1, ..., rank
    symmetric = np.zeros(most + 1)
    symmetric[0] = 1.0
    for share in each / each.max(initial=1.0):
        symmetric[1:] += share * symmetric[:-1]
    sizes = np.arange(most + 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(symmetric) + sizes * math.log(each.max(initial=1.0))
    return float(np.logaddexp.reduce(logs - log_binomial(len(ranks), sizes)))


def log_logistic_evidence(values, positive, weights, variances):
    """Lower bound on the log evidence of a logistic regression with a normal prior.

    The quadratic bound of [1]_ on each logistic likelihood, the best one.

    Parameters
    ----------
    values : ndarray of shape (n_coefficients, n_samples)
        The design.
    positive : ndarray of bool of shape (n_samples,)
        The labels.
    weights : ndarray of shape (n_samples,)
        Exponents of the likelihoods.
    variances : ndarray of shape (n_coefficients,)
        Prior variances, of mean 0.

    Returns
    -------
    bound : float
        The lower bound.

    References
    ----------
    .. [1] T. Jaakkola and M. Jordan (2000). Bayesian parameter estimation via
       variational methods. Statistics and Computing 10.
    """
    linear = values @ (np.where(positive, 0.5, -0.5) * weights)
    points = np.full(values.shape[1], 1.0)
    best = -math.inf
    for _ in range(MOST_STEPS):
        rates = np.tanh(points / 2) / (2 * points)
        gram = (values * (weights * rates)) @ values.T
        factor = precision_factor(gram, 1 / variances)
        mean = cho_solve((factor, True), linear)
        bound = weights @ (log_expit(points) - points / 2 + rates * points**2 / 2)
        bound += 0.5 * linear @ mean - np.log(np.diag(factor)).sum()
        bound -= 0.5 * np.log(variances).sum()
        if bound < best + TOLERANCE:
            return max(best, float(bound))
        best = float(bound)
        spread = (values * cho_solve((factor, True), values)).sum(axis=0)
        points = np.sqrt(np.maximum((mean @ values) ** 2 + spread, 1e-12))
    return best
