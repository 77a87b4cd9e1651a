"""A first model: variables added one by one, as long as a criterion falls."""

import numpy as np

from ._chain import Chain, Prior

NEGLIGIBLE = 1e-8  # share of the variance of y below which there is no noise
LEAST_DISTANCE = 1e-140  # of y from its mean: NEGLIGIBLE times its square is a number
RIDGE = 1e-8  # relative to the functions' own squares


def greedy_model(problem, reader, most):
    """Add the variable, and the order, that lower the BIC the most, while any does.

    The criterion counts each variable as 2 log(n_features) more: there are so many to
    choose from.

    Parameters
    ----------
    problem : Problem
        The regression.
    reader : Reader
        The rows of its Gram matrix.
    most : int
        Largest number of variables.

    Returns
    -------
    features, orders : ndarray of shape (n_variables,)
        The model.
    noise_variance : float
        Mean squared residual, for the degrees of freedom left.
    """
    ranks, weight = problem.functions.orders, problem.weight
    prior = Prior.flat(ranks, most, RIDGE * weight)
    chain = Chain(reader, problem.against, prior, np.random.default_rng(0))
    order = np.arange(1, problem.functions.means.shape[1] + 1)
    least = least_noise(problem) * weight
    fit, used = 0.0, 0
    features, orders = [], []
    best = weight * np.log(max(problem.square, least))
    while len(features) < prior.most:
        chain.start(features, orders)
        chain.neighbours()
        _, gains, _ = chain.gains()
        residual = np.maximum(problem.square - 2 * (fit + gains), least)
        allowed = (order <= ranks[:, None]) & (5 * (used + order) <= weight)
        allowed[features] = False
        if not allowed.any():
            break
        price = (used + order) * np.log(weight)
        price = price + 2 * (len(features) + 1) * np.log(len(ranks))
        criterion = np.where(allowed, weight * np.log(residual) + price, np.inf)
        j, a = np.unravel_index(criterion.argmin(), criterion.shape)
        if not criterion[j, a] < best:
            break
        best, fit, used = criterion[j, a], fit + gains[j, a], used + int(order[a])
        features.append(int(j))
        orders.append(int(order[a]))
    noise = (problem.square - 2 * fit) / max(weight - 1 - used, 1.0)
    noise = max(noise, least_noise(problem))
    return np.array(features, dtype=int), np.array(orders, dtype=int), noise


def least_noise(problem):
    """Smallest noise variance that is told from none."""
    variance = problem.square / problem.weight
    return max(NEGLIGIBLE * variance, 1e-24 * problem.mean**2, 1e-300)
