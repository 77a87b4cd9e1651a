"""Certificates of the additive models: divergences of their posteriors."""

import math

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import gammaln

from ..certificates import Certificate, additive_risk_terms
from ..certificates.additive import log_prior_mass, logistic_normal
from ._chain import log_binomial
from ._gram import precision_factor
from ._rated_chain import INTERCEPT_VARIANCE

N_DRAWS = 400  # draws of the coefficients of each model
MOST_MODELS = 100  # largest number of models of two classes in the evidence


def logistic_divergence(problem, posterior, prior, beta, inverse_temperature, loss):
    """Return an upper bound on the divergence of the classifier's posterior.

    The Gibbs posterior minimises expected loss + divergence / lambda, and the minimum
    is -log(evidence) / lambda. A lower bound on the evidence, from the models visited
    most, gives an upper bound on the divergence.

    Parameters
    ----------
    problem : Problem
        The rows.
    posterior : Posterior
        The draws.
    prior : Prior
        The prior.
    beta : float
        Each function multiplies the prior by beta.
    inverse_temperature : float
        lambda.
    loss : float
        Mean log loss, expected under the posterior.
    """
    n_samples = len(problem.targets)
    exponents = np.full(n_samples, inverse_temperature / n_samples)
    log_evidence = -math.inf
    for orders in most_visited(posterior, MOST_MODELS):
        design, variances = design_of(problem, orders, 1 / prior.ridge)
        evidence, _, _ = logistic_normal(design, problem.targets, exponents, variances)
        log_prior = log_model_prior(orders, problem.functions.orders, beta)
        log_evidence = np.logaddexp(log_evidence, log_prior + evidence)
    log_evidence -= log_prior_mass(problem.functions.orders, beta, prior.most)
    return float(-log_evidence - inverse_temperature * loss)


def ranking_divergence(
    problem, posterior, prior, beta, inverse_temperature, risk, target, exponents
):
    """Return an upper bound on the divergence of the ranker's posterior.

    As for the classifier; the evidence of a model is the mean of the weights of draws
    from a normal approximation to its logistic posterior.

    Parameters
    ----------
    problem, posterior, prior, beta, inverse_temperature
        As for the classifier.
    risk : float
        Mean risk, expected under the posterior.
    target : RankingTarget
        Computes the risks.
    exponents : ndarray of shape (n_samples,)
        Exponents of the rows in the logistic likelihood.
    """
    rng = np.random.default_rng(0)
    log_evidence = -math.inf
    for orders in most_visited(posterior, MOST_MODELS // 2):
        design, variances = design_of(problem, orders, target.variance)
        _, mean, factor = logistic_normal(design, problem.targets, exponents, variances)
        # Of the coefficients alone: the intercept, in the first row, is integrated out.
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
    """Return the orders of the models that were visited most."""
    models, group = np.unique(posterior.orders(), axis=0, return_inverse=True)
    visits = np.bincount(group.ravel(), weights=posterior.weights)
    return models[np.argsort(-visits, kind="stable")[:count]]


def design_of(problem, orders, variance):
    """Return the design of a model, with an intercept, and the prior variances."""
    inside = problem.values[np.arange(problem.values.shape[1]) < orders[:, None]]
    variances = np.full(len(inside) + 1, variance)
    variances[0] = INTERCEPT_VARIANCE
    return np.vstack([np.ones(problem.values.shape[2]), inside]), variances


def log_model_prior(orders, ranks, beta):
    """Return the unnormalised log prior of a model."""
    size = np.count_nonzero(orders)
    return orders.sum() * math.log(beta) - log_binomial(np.count_nonzero(ranks), size)


# Squared error of a regression.


def certify_regression(estimator, found, problem, confidence):
    """Return the certificate of the posterior, as normals truncated to the ball.

    The posterior is a mixture over the models visited, an approximation of the Gibbs
    posterior. This is allowed, as the bound holds for all posteriors simultaneously.
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
    """Return risk and divergence of a normal distribution truncated to the ball.

    The divergence is from the uniform distribution. None if hardly any of the normal is
    in the ball.
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
