"""Certificates of the additive models, and what their bounds are made of."""

import math

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import gammaln, log_expit

from ..certificates import Certificate, additive_risk_terms
from ._chain import log_binomial
from ._classifier_chain import INTERCEPT_VARIANCE
from ._gram import precision_factor

MOST_STEPS = 100  # of the ascent to the best bound on an evidence
TOLERANCE = 1e-6  # on that bound, in nats
N_DRAWS = 400  # of the coefficients of each model
MOST_MODELS = 100  # of two classes, whose evidence goes into the divergence


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


def logistic_normal(values, positive, weights, variances):
    """Approximate a logistic regression with a normal prior by a normal.

    By the quadratic bound of [1]_ on each logistic likelihood, the best one; the
    evidence under it is below the true one.

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
        Lower bound on the log evidence.
    mean : ndarray of shape (n_coefficients,)
        Mean of the coefficients.
    factor : ndarray of shape (n_coefficients, n_coefficients)
        Lower Cholesky factor of their precision.

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
            return max(best, float(bound)), mean, factor
        best = float(bound)
        spread = (values * cho_solve((factor, True), values)).sum(axis=0)
        points = np.sqrt(np.maximum((mean @ values) ** 2 + spread, 1e-12))
    return best, mean, factor


def logistic_divergence(problem, posterior, prior, beta, inverse_temperature, loss):
    """Upper bound on the divergence of the classifier's posterior from the prior.

    The Gibbs posterior has the least sum of expected loss and divergence over lambda:
    minus the log evidence over lambda. A lower bound on the evidence, of the models
    visited most, gives an upper bound on the divergence.

    Parameters
    ----------
    problem : Problem
        The rows.
    posterior : Posterior
        The draws.
    prior : Prior
        The prior.
    beta : float
        Each function divides the prior by 1 / beta.
    inverse_temperature : float
        lambda.
    loss : float
        Mean log loss, expected under the posterior.
    """
    n_samples = len(problem.positive)
    exponents = np.full(n_samples, inverse_temperature / n_samples)
    log_evidence = -math.inf
    for orders in most_visited(posterior, MOST_MODELS):
        design, variances = design_of(problem, orders, 1 / prior.ridge)
        evidence, _, _ = logistic_normal(design, problem.positive, exponents, variances)
        log_prior = log_model_prior(orders, problem.functions.orders, beta)
        log_evidence = np.logaddexp(log_evidence, log_prior + evidence)
    log_evidence -= log_prior_mass(problem.functions.orders, beta, prior.most)
    return float(-log_evidence - inverse_temperature * loss)


def ranking_divergence(
    problem, posterior, prior, beta, inverse_temperature, risk, target, exponents
):
    """Upper bound on the divergence of the ranker's posterior from the prior.

    As for the classifier; the evidence of a model is the mean of the weights of draws
    from a normal approximation to its logistic posterior.

    Parameters
    ----------
    problem, posterior, prior, beta, inverse_temperature
        As for the classifier.
    risk : float
        Mean risk, expected under the posterior.
    target : RankingTarget
        Gives risks.
    exponents : ndarray of shape (n_samples,)
        Exponents of the rows in the logistic likelihood.
    """
    rng = np.random.default_rng(0)
    log_evidence = -math.inf
    for orders in most_visited(posterior, MOST_MODELS // 2):
        design, variances = design_of(problem, orders, target.variance)
        _, mean, factor = logistic_normal(
            design, problem.positive, exponents, variances
        )
        # Of the coefficients alone: the intercept, the first, is integrated out.
        design, mean, factor = design[1:], mean[1:], factor[1:, 1:]
        normal = rng.standard_normal((len(mean), N_DRAWS))
        drawn = mean[:, None] + solve_triangular(factor, normal, lower=True, trans=1)
        log_weights = -inverse_temperature * target.risk(drawn.T @ design)
        log_weights += 0.5 * (normal**2).sum(axis=0) - np.log(np.diag(factor)).sum()
        log_weights -= 0.5 * (drawn**2).sum(axis=0) / target.variance
        log_weights -= 0.5 * len(mean) * math.log(target.variance)
        log_mean = np.logaddexp.reduce(log_weights) - math.log(N_DRAWS)
        log_prior = log_model_prior(orders, problem.functions.orders, beta)
        log_evidence = np.logaddexp(log_evidence, log_prior + log_mean)
    log_evidence -= log_prior_mass(problem.functions.orders, beta, prior.most)
    return float(-log_evidence - inverse_temperature * risk)


def most_visited(posterior, count):
    """Orders of the models that were visited most."""
    models, group = np.unique(posterior.orders(), axis=0, return_inverse=True)
    visits = np.bincount(group.ravel(), weights=posterior.weights)
    return models[np.argsort(-visits, kind="stable")[:count]]


def design_of(problem, orders, variance):
    """Design of a model, an intercept first, and the prior variances."""
    inside = problem.values[np.arange(problem.values.shape[1]) < orders[:, None]]
    variances = np.full(len(inside) + 1, variance)
    variances[0] = INTERCEPT_VARIANCE
    return np.vstack([np.ones(problem.values.shape[2]), inside]), variances


def log_model_prior(orders, ranks, beta):
    """Log prior of a model, not normalised."""
    size = np.count_nonzero(orders)
    return orders.sum() * math.log(beta) - log_binomial(np.count_nonzero(ranks), size)


# The squared error of a regression.


def certify_regression(estimator, found, problem, confidence):
    """Certify the mixture, over the models visited, of normals cut to the ball.

    The bound holds for every posterior at once, so it does not matter that this is an
    approximation of the Gibbs posterior.
    """
    orders, weights = estimator.models_, estimator.model_weights_
    ranks, beta = problem.functions.orders, estimator.beta
    rng = np.random.default_rng(0)
    unit = math.sqrt(problem.weight / (2 * found.inverse_temperature))
    parts = [_cut_normal(problem, model, found.radius, unit, rng) for model in orders]
    kept = np.array([part is not None for part in parts])
    weights = weights[kept] / weights[kept].sum()
    risks, divergences = np.array([part for part in parts if part is not None]).T
    sizes = np.count_nonzero(orders[kept], axis=1)
    log_prior = orders[kept].sum(axis=1) * math.log(beta)
    log_prior -= log_binomial(np.count_nonzero(ranks), sizes)
    log_prior -= log_prior_mass(ranks, beta, found.most)
    divergence = weights @ (np.log(weights) - log_prior + divergences)
    terms = additive_risk_terms(
        weights @ risks,
        divergence,
        n_samples=problem.weight,
        inverse_temperature=found.inverse_temperature,
        noise_variance=found.noise_variance,
        radius=found.radius,
        confidence=confidence,
    )
    return Certificate(
        theorem="Catoni's bound, in the setting of Theorem 5.2 of Chopin et al. (2015)",
        observed=terms["empirical_risk"],
        bound=float(sum(terms.values())),
        terms=terms,
        assumptions={
            "the rows are independent, of one distribution": None,
            "the noise is sub-Gaussian, its fourth moment at most that of a normal": (
                None
            ),
            "the regression function, less its mean, is at most the radius": None,
            "the functions' means are those of the distribution of the rows": None,
            "noise_variance is known, not estimated": (
                estimator.noise_variance != "auto"
            ),
            "radius is known, not estimated": estimator.radius is not None,
            "feature_range is known, not estimated": (
                estimator.feature_range is not None
            ),
        },
    )


def _cut_normal(problem, model, radius, unit, rng):
    """Risk, and divergence from the uniform distribution, of a normal cut to the ball.

    None if hardly any of it is in the ball.
    """
    width = problem.functions.means.shape[1]
    columns = np.concatenate(
        [j * width + np.arange(model[j]) for j in np.flatnonzero(model)] or [[]]
    ).astype(int)
    q = len(columns)
    if q == 0:
        return problem.square / problem.weight, 0.0
    gram = problem.gram.among(columns)
    factor = precision_factor(gram, (unit / radius) ** 2)
    mean = cho_solve((factor, True), problem.against[columns])
    factor /= unit
    normal = rng.standard_normal((q, N_DRAWS))
    draws = mean[:, None] + solve_triangular(factor, normal, lower=True, trans=1)
    inside = abs(draws).sum(axis=0) <= radius
    if np.count_nonzero(inside) < N_DRAWS // 20:
        return None
    draws, normal = draws[:, inside], normal[:, inside]
    squares = problem.square - 2 * problem.against[columns] @ draws
    squares = squares + (draws * (gram @ draws)).sum(axis=0)
    log_density = np.log(np.diag(factor)).sum() - q / 2 * math.log(2 * math.pi)
    log_density -= (normal**2).sum(axis=0).mean() / 2 + math.log(inside.mean())
    log_uniform = gammaln(q + 1) - q * math.log(2 * radius)
    return squares.mean() / problem.weight, log_density - log_uniform
