"""Heavy tails: rows weighed as under Student's t noise, where evidence prefers it."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import gammaln
from scipy.stats import chi2

from ._basis import weighted_quantiles
from ._gram import precision_factor
from ._regressor_chains import RIDGE, greedy_model, least_noise, model_price

FREEDOMS = 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0  # degrees of freedom that are tried
MARGIN = math.log(20)  # of the log likelihood
N_ROUNDS, N_STEPS = 6, 50  # of models and weights; of weights and scale
FAR = 2.5  # scales from 0, where the tails begin
DOUBTFUL = 10.0  # scales from 0, where a row may be wrong
MOST_LEVELS = 20  # of a y that is no measurement
FEW = 5  # such rows, by weight, more on one side than on the other, that are no chance
# Slopes of the log variance, in standard deviations of predictions, which are cut at
# FARTHEST of them.
SLOPES, FARTHEST = np.linspace(-2, 2, 17), 3.0
CONSTANT = 1e-12  # relative deviation of predictions that is rounding
LEVEL = 0.05  # of the test that predictions are not biased


class Tails(NamedTuple):
    """Student's t, fitted to residuals."""

    freedom: float  # degrees of freedom
    variance: float  # of the residuals
    far_rows: tuple = ()  # their weights above and below, if most are on one side


NORMAL = Tails(math.inf, 0.0)


class Fit(NamedTuple):
    """A greedy model, fitted to weighted rows."""

    residuals: np.ndarray  # of all rows
    variance: float  # their mean square
    price: float  # of the model, in log likelihood


def heavy_tailed(rows, problem, rebuild, most):
    """Weigh rows as under Student's t noise, if it is clearly more probable.

    A greedy model, fitted with the current weights, leaves residuals; Student's t,
    fitted to these, weighs a row by its expected precision: (v + 1) / (v + (r / s)^2),
    with v degrees of freedom and scale s [1]_. Both steps alternate, from weights for
    the model without variables: a model that was fitted with equal weights may have
    taken variables in to explain far rows.

    The weights are used if the log likelihood, less the price of the model by the BIC,
    exceeds that under normal noise by log 20, "strong" evidence, and half the logarithm
    of the number of rows; if the mean of y is where the weights put it, as under
    symmetric noise; and if the same residuals are less likely under normal noise whose
    variance depends on the prediction, as that of counts does.

    Parameters
    ----------
    rows : Rows
        The rows.
    problem : Problem
        Their regression.
    rebuild : callable
        Returns the regression of reweighted rows.
    most : int
        Largest number of variables of a model.

    Returns
    -------
    problem : Problem
        The regression of the rows, reweighted or as they are.
    tails : Tails
        What was found; `NORMAL` where the rows stay as they are.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). Robust statistical
       modeling using the t distribution. JASA 84.
    """
    total, unit = rows.weights.sum(), problem.largest
    if not unit > 0:
        return problem, NORMAL
    price = MARGIN + 0.5 * math.log(total)
    usual = greedy_fit(rows, problem, most, unit)
    if usual.variance * unit**2 <= least_noise(problem):
        return problem, NORMAL
    (median,) = weighted_quantiles(rows.y[:, None], rows.weights[:, None], [0.5])
    alone = (rows.y - median) / unit
    if not any(gain(each, rows.weights) > price for each in (usual.residuals, alone)):
        return problem, NORMAL
    *_, factors = fit_student(alone, rows.weights)
    for _ in range(N_ROUNDS):
        weights = rows.weights * factors
        found = rebuild(rows.reweighted(weights * (total / weights.sum())))
        fit, before = greedy_fit(rows, found, most, unit), factors
        value, freedom, scale, factors = fit_student(fit.residuals, rows.weights)
        if np.allclose(factors, before, rtol=0.05):
            break
    least = normal_log_likelihood(usual.residuals, rows.weights) - usual.price + price
    predictions = rows.y / unit - fit.residuals
    if not value - fit.price > least:
        return problem, NORMAL
    if is_biased(fit.residuals, predictions, rows.weights, scale):
        above, below = (
            float(rows.weights[side * fit.residuals > DOUBTFUL * scale].sum())
            for side in (1, -1)
        )
        if abs(above - below) >= FEW and len(np.unique(rows.y)) > MOST_LEVELS:
            return problem, NORMAL._replace(far_rows=(above, below))
        return problem, NORMAL
    if not value > sloped_log_likelihood(fit.residuals, predictions, rows.weights):
        return problem, NORMAL
    return found, Tails(freedom, fit.variance * unit**2)


def greedy_fit(rows, problem, most, unit):
    """Fit a greedy model; its residuals are given in a unit."""
    features, orders, *_ = greedy_model(problem, problem.gram.reader(), most)
    width = problem.gram.diagonal.shape[1]
    columns = [
        np.arange(j * width, j * width + k)
        for j, k in zip(features, orders, strict=True)
    ]
    columns = np.concatenate([np.zeros(0, dtype=int), *columns])
    factor = precision_factor(problem.gram.among(columns), RIDGE * problem.weight)
    means = cho_solve((factor, True), problem.against[columns])
    residuals = rows.y - problem.mean - means @ problem.gram.values_of(columns)
    residuals /= unit
    variance = float(rows.weights @ residuals**2 / rows.weights.sum())
    price = model_price(problem, orders.sum(), len(features)) / 2
    return Fit(residuals, variance, price)


def gain(residuals, weights):
    """Return by how much Student's t is more likely than a normal distribution."""
    return fit_student(residuals, weights)[0] - normal_log_likelihood(
        residuals, weights
    )


def normal_log_likelihood(residuals, weights):
    """Log likelihood of a normal distribution with mean 0, its variance fitted."""
    total = weights.sum()
    variance = max(weights @ residuals**2 / total, 1e-300)
    return -total / 2 * (math.log(2 * math.pi * variance) + 1)


def sloped_log_likelihood(residuals, predictions, weights):
    """Log likelihood of normal noise whose log variance is linear in predictions."""
    total = weights.sum()
    mean = weights @ predictions / total
    places = predictions - mean
    deviation = math.sqrt(weights @ places**2 / total)
    if not deviation > CONSTANT * (1 + abs(mean)):
        return normal_log_likelihood(residuals, weights)
    places = (places / deviation).clip(-FARTHEST, FARTHEST)
    places -= weights @ places / total  # the factors below then have log mean 0
    return max(
        normal_log_likelihood(residuals * np.exp(-slope / 2 * places), weights)
        for slope in SLOPES
    )


def fit_student(residuals, weights):
    """Fit Student's t with mean 0: log likelihood, freedom, scale, relative weights."""
    best = (-math.inf, math.inf, 1.0, np.ones_like(residuals))
    total = weights.sum()
    start = (weights @ abs(residuals) / total) ** 2
    if not start > 0:
        return best
    for freedom in FREEDOMS:
        square = start
        for _ in range(N_STEPS):
            factors = (freedom + 1) / (freedom + residuals**2 / square)
            square = (weights * factors) @ residuals**2 / total
        terms = np.log1p(residuals**2 / (freedom * square))
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
        constant -= math.log(freedom * math.pi * square) / 2
        value = total * constant - (freedom + 1) / 2 * (weights @ terms)
        if value > best[0]:
            best = float(value), freedom, math.sqrt(square), factors
    return best


def is_biased(residuals, predictions, weights, scale):
    """Whether the mean of y is elsewhere than predicted, by more than chance.

    By three sums, of the residuals, of their products with the predictions, and of the
    signs of those beyond 2.5 scales, each divided by the root of the sum of squares:
    they are nearly standard normal if the expectations are 0, however heavy the tails.
    """
    predictions = predictions - weights @ predictions / weights.sum()
    far = np.sign(residuals) * (abs(residuals) > FAR * scale)
    terms = np.array([residuals, residuals * predictions, far])
    squares = terms**2 @ weights
    scores = (terms @ weights) ** 2 / np.where(squares > 0, squares, 1.0)
    return scores.sum() > chi2.ppf(1 - LEVEL, 3)
