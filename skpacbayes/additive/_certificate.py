"""The bound of the risk, for the posterior that the chains found."""

import math

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import gammaln, logsumexp

from ..certificates import Certificate, additive_risk_terms
from ._chain import log_binomial
from ._quadratic import precision_factor

N_DRAWS = 400  # of the coefficients of each model


def certify(estimator, found, problem, confidence):
    """Certify the mixture, over the models visited, of normal laws cut to the ball.

    The bound holds for every posterior at once, so it does not matter that this is an
    approximation of the Gibbs posterior.
    """
    orders, weights = estimator.models_, estimator.model_weights_
    prior = _ModelPrior(problem.functions.orders, estimator.beta, found.most)
    rng = np.random.default_rng(0)
    unit = math.sqrt(problem.weight / (2 * found.inverse_temperature))
    parts = [_cut_normal(problem, model, found.radius, unit, rng) for model in orders]
    kept = np.array([part is not None for part in parts])
    weights = weights[kept] / weights[kept].sum()
    risks, divergences = np.array([part for part in parts if part is not None]).T
    log_prior = np.array([prior(model) for model in orders[kept]])
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
    known = {
        "noise_variance is known, not estimated": estimator.noise_variance != "auto",
        "radius is known, not estimated": estimator.radius is not None,
        "feature_range is known, not estimated": estimator.feature_range is not None,
    }
    return Certificate(
        theorem="Catoni's bound, in the setting of Theorem 5.2 of Chopin et al. (2015)",
        observed=terms["empirical_risk"],
        bound=float(sum(terms.values())),
        terms=terms,
        assumptions={
            "the rows are independent, of one law": None,
            "the noise is sub-Gaussian, its fourth moment at most that of a normal "
            "law": None,
            "the regression function, less its mean, is at most the radius": None,
            "the functions' means are those of the law of the rows": None,
            **known,
        },
    )


class _ModelPrior:
    """Log prior probability of a model, normalised."""

    def __init__(self, ranks, beta, most):
        self.beta, self.n_usable = beta, np.count_nonzero(ranks)
        of_orders = beta * (1 - beta**ranks) / (1 - beta)  # beta + ... + beta^rank
        sums = np.zeros(most + 1)  # over the sets of variables of each size
        sums[0] = 1.0
        for share in of_orders[ranks > 0]:
            sums[1:] += share * sums[:-1]
        log_sizes = np.log(sums) - log_binomial(self.n_usable, np.arange(most + 1.0))
        self.log_total = logsumexp(log_sizes)

    def __call__(self, model):
        size = np.count_nonzero(model)
        log_weight = model.sum() * math.log(self.beta)
        return log_weight - log_binomial(self.n_usable, size) - self.log_total


def _cut_normal(problem, model, radius, unit, rng):
    """Risk, and divergence from the uniform law, of a normal law cut to the ball.

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
