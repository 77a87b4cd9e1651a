"""Heavy tails: rows weighted as under Student's t noise, if that fits better."""

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
MARGIN = math.log(20)  # least gain in log-likelihood
N_ROUNDS, N_STEPS = 6, 50  # iterations over models and weights; over weights and scale
FAR = 2.5  # in scales; residuals beyond it are in the tails
DOUBTFUL = 10.0  # in scales; rows with larger residuals may be wrong
MOST_LEVELS = 20  # distinct values of y up to which it is not continuous
FEW = 5  # least excess of such rows on one side, by weight
# Slopes of the log variance per standard deviation of predictions, which are clipped at
# FARTHEST.
SLOPES, FARTHEST = np.linspace(-2, 2, 17), 3.0
CONSTANT = 1e-12  # relative deviation of predictions that counts as rounding
LEVEL = 0.05  # of the test for bias of predictions


class Tails(NamedTuple):
    """Student's t distribution, fitted to residuals."""

    freedom: float  # degrees of freedom
    variance: float  # of the residuals
    far_rows: tuple = ()  # weights of far rows above and below, if most are on one side


NORMAL = Tails(math.inf, 0.0)


class Fit(NamedTuple):
    """A greedy model, fitted to weighted rows."""

    residuals: np.ndarray  # of all rows
    variance: float  # mean square of the residuals
    price: float  # penalty of the model, in log-likelihood


def heavy_tailed(rows, problem, rebuild, most):
    """Weight rows as under Student's t noise, if that is clearly more probable.

    A greedy model is fitted with the current weights, and Student's t distribution to
    its residuals r. The weight of a row is its expected precision, (v + 1) / (v + (r /
    s)^2), with v degrees of freedom and scale s [1]_. The two steps alternate, starting
    from the weights for the empty model: a model fitted with equal weights may include
    variables to explain outliers.

    The weights are used if three conditions hold: the log-likelihood minus the BIC
    penalty of the model exceeds that under normal noise by log 20 ("strong" evidence)
    plus log(n_rows) / 2; the residuals are not biased, as under symmetric noise; and
    the same residuals are less likely under normal noise whose variance depends on the
    prediction, as for counts.

    Parameters
    ----------
    rows : Rows
        The rows.
    problem : Problem
        The regression on the rows.
    rebuild : callable
        Returns the regression on reweighted rows.
    most : int
        Largest number of variables in a model.

    Returns
    -------
    problem : Problem
        The regression on the rows, reweighted or not.
    tails : Tails
        The fitted tails; `NORMAL` if the rows are not reweighted.

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
    """Fit a greedy model; return its residuals in units of `unit`."""
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
    """Return the gain in log-likelihood of Student's t over a normal distribution."""
    return fit_student(residuals, weights)[0] - normal_log_likelihood(
        residuals, weights
    )


def normal_log_likelihood(residuals, weights):
    """Return the largest log-likelihood of normal distributions of mean 0."""
    total = weights.sum()
    variance = max(weights @ residuals**2 / total, 1e-300)
    return -total / 2 * (math.log(2 * math.pi * variance) + 1)


def sloped_log_likelihood(residuals, predictions, weights):
    """Return the largest log-likelihood of normal noise with log-linear variance."""
    total = weights.sum()
    mean = weights @ predictions / total
    places = predictions - mean
    deviation = math.sqrt(weights @ places**2 / total)
    if not deviation > CONSTANT * (1 + abs(mean)):
        return normal_log_likelihood(residuals, weights)
    places = (places / deviation).clip(-FARTHEST, FARTHEST)
    places -= weights @ places / total  # the factors then have geometric mean 1
    return max(
        normal_log_likelihood(residuals * np.exp(-slope / 2 * places), weights)
        for slope in SLOPES
    )


def fit_student(residuals, weights):
    """Fit Student's t of mean 0: log-likelihood, freedom, scale, relative weights."""
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
    """Return whether predictions of the mean of y are significantly biased.

    The test uses three sums: of the residuals, of their products with the predictions,
    and of the signs of residuals beyond 2.5 scales. Each, divided by the root of its
    sum of squares, is nearly standard normal without bias, however heavy the tails.
    """
    predictions = predictions - weights @ predictions / weights.sum()
    far = np.sign(residuals) * (abs(residuals) > FAR * scale)
    terms = np.array([residuals, residuals * predictions, far])
    squares = terms**2 @ weights
    scores = (terms @ weights) ** 2 / np.where(squares > 0, squares, 1.0)
    return scores.sum() > chi2.ppf(1 - LEVEL, 3)
