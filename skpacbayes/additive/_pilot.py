"""Log odds without random numbers: what a walk over models sets out from."""

import math

import numpy as np

from ._logistic import INTERCEPT_VARIANCE
from ._polya_gamma import polya_gamma_moments
from ._quadratic import ROUNDING, WeightedRows

BETA = 0.5  # each function multiplies the prior of a model by it
MOST_SWEEPS = 40
TOLERANCE = 0.01  # on a log odds, from one sweep to the next


def logistic_pilot(problem, prior):
    """Average log odds over sparse additive models, by variational inference.

    The posterior of the classifier, but for a prior that favours functions more, is
    approximated by a product over the variables: each has probabilities of its orders,
    and normal coefficients given its order [1]_. The log likelihood is bounded from
    below by a quadratic form, whose weights are the means of the Pólya-Gamma rates;
    then each variable in turn is fitted to what the means of the others leave, those
    first that promise most. This is repeated.

    Parameters
    ----------
    problem : Problem
        The rows.
    prior : Prior
        Gives the ridge, and the largest number of variables.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
        Posterior means of the log odds.
    orders : ndarray of shape (n_features,)
        A model: the functions of a posterior probability above one half.

    References
    ----------
    .. [1] P. Carbonetto and M. Stephens (2012). Scalable variational inference for
       Bayesian variable selection in regression, and its accuracy in genetic
       association studies. Bayesian Analysis 7.
    """
    values, weights, ranks = problem.values, problem.weights, problem.functions.orders
    n_usable, places = np.count_nonzero(ranks), np.arange(values.shape[1])
    positive = problem.positive
    pulls = np.where(positive, 0.5, -0.5) * weights
    intercept = math.log((weights @ positive + 1) / (weights @ ~positive + 1))
    scores = np.full(len(weights), intercept)
    # Coefficients, and the probability that each function is in.
    means, tails = np.zeros((2, *values.shape[:2]))
    price = math.log(BETA) + 0.5 * math.log(prior.ridge)
    for _ in range(MOST_SWEEPS):
        rates, _ = polya_gamma_moments(weights, scores)
        blocks = WeightedRows(values, rates, ranks).diagonal
        blocks[:, places, places] *= 1 + ROUNDING
        precisions = blocks.copy()
        precisions[:, places, places] += prior.ridge
        inverses = np.linalg.inv(np.linalg.cholesky(precisions))
        prices = price + np.log(inverses[:, places, places])

        before, rest = scores, pulls - rates * scores
        precision = rates.sum() + 1 / INTERCEPT_VARIANCE
        shift = (rest.sum() - intercept / INTERCEPT_VARIANCE) / precision
        intercept, scores = intercept + shift, scores + shift
        rest -= shift * rates

        linear = values @ rest + (blocks @ means[:, :, None])[:, :, 0]
        pulled = (inverses @ linear[:, :, None])[:, :, 0]
        promises = np.cumsum(0.5 * pulled**2 + prices, axis=1).max(axis=1)
        turns = np.argsort(-promises, kind="stable")
        for j in turns[ranks[turns] > 0]:
            others = tails[:, 0].sum() - tails[j, 0]
            size = min(others, prior.most - 1)
            pulled = inverses[j] @ (values[j] @ rest + blocks[j] @ means[j])
            gains = np.cumsum(0.5 * pulled**2 + prices[j])[: ranks[j]]
            gains += math.log((size + 1) / (n_usable - size))
            tails[j, : ranks[j]] = at_least(gains)
            mean = inverses[j].T @ (pulled * tails[j])
            change = (mean - means[j]) @ values[j]
            means[j], scores, rest = mean, scores + change, rest - change * rates
        if abs(scores - before).max() < TOLERANCE:
            break
    orders = (tails > 0.5).sum(axis=1)
    orders[np.argsort(-tails[:, 0], kind="stable")[prior.most :]] = 0
    return scores, orders


def at_least(gains):
    """Probability that an order is at least 1, 2, ...

    Of orders whose probabilities, over that of 0, have the logs `gains`.
    """
    largest = gains.max(initial=0.0)
    shares = np.exp(gains - largest)
    shares /= shares.sum() + math.exp(-largest)
    return shares[::-1].cumsum()[::-1]
