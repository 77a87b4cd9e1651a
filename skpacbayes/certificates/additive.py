"""Bounds of additive models: the risk of a Gibbs posterior, and what it is made of."""

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import gammaln, log_expit

from ._certificate import Certificate
from ._constraints import (
    NOT_NEGATIVE,
    NOT_NEGATIVE_OR_INFINITE,
    POSITIVE,
    SHARE,
    checked,
)
from .pac_bayes import catoni_terms

MOST_STEPS = 100  # of the ascent to the best bound on an evidence
TOLERANCE = 1e-6  # on that bound, in nats
N_DRAWS = 400  # draws of the coefficients of each model, for the certificate
LEAST_INSIDE = 0.05  # least share of the draws within the ball
UNLIKELY = 1e-6  # probability with which targets wrongly contradict the assumptions
ROUNDING = 1e-12  # of a diagonal entry: functions may depend on each other


@checked(
    {
        "empirical_risk": NOT_NEGATIVE,
        "divergence": NOT_NEGATIVE_OR_INFINITE,
        "n_samples": POSITIVE,
        "inverse_temperature": POSITIVE,
        "noise_variance": NOT_NEGATIVE,
        "radius": POSITIVE,
        "confidence": SHARE,
    }
)
def additive_risk_terms(
    empirical_risk,
    divergence,
    *,
    n_samples,
    inverse_temperature,
    noise_variance,
    radius,
    confidence=0.95,
):
    r"""Bound of the mean squared error of a posterior on new rows, term by term.

    Parameters
    ----------
    empirical_risk : float
        Mean squared error of coefficients drawn from the posterior, on the rows of the
        fit.
    divergence : float
        Kullback-Leibler divergence of the posterior from the prior.
    n_samples : float
        Number n of rows.
    inverse_temperature : float
        :math:`\lambda`.
    noise_variance : float
        :math:`\sigma^2`.
    radius : float
        C, which bounds the regression function, and all functions of the model.
    confidence : float, default=0.95
        Probability :math:`1 - \varepsilon` with which the bound holds.

    Returns
    -------
    terms : dict of str to float
        Their sum is the bound, in squared units of y: `empirical_risk`; `contraction`,
        the price of squares that are heavier on new rows; `divergence`; `noise`, by
        which the noise may be less than its variance on the rows; `confidence`.

    Raises
    ------
    ValueError
        If a number is not in its range, or :math:`\lambda \ge n / (2 \sigma^2)`.

    Notes
    -----
    A bound in Catoni's manner for the setting of Theorem 5.2 of [1]_, which is an
    oracle inequality: its right side needs the unknown regression function
    :math:`\psi`. Let :math:`t = \lambda / n`, :math:`W = Y - \psi(X)` and
    :math:`g = f - \psi`, so that :math:`(Y - f)^2 - W^2 = g^2 - 2 W g`. If
    :math:`E(e^{uW} | X) \le e^{u^2 \sigma^2 / 2}`, then for :math:`h = g^2 \le 4C^2`

    .. math:: E e^{t (2 W g - g^2)} \le E e^{-a h} \le e^{-\kappa t E h},
        \quad a = t (1 - 2 t \sigma^2),
        \quad \kappa = \frac{1 - e^{-4 a C^2}}{4 t C^2},

    the second inequality since the exponential is below its chord. By the variational
    formula, with probability :math:`1 - \varepsilon / 2`, for all :math:`\rho`:

    .. math:: \kappa \int E g^2 d\rho \le \int R_n d\rho - \frac1n \sum_i W_i^2
        + \frac{K(\rho, \pi) + \log(2 / \varepsilon)}{\lambda}.

    With :math:`E W^2 = \sigma^2` and :math:`E W^4 \le 3 \sigma^4`, the mean of the
    squared noise is at least :math:`\sigma^2 - \sigma^2 \sqrt{6 \log(2 / \varepsilon)
    / n}` with probability :math:`1 - \varepsilon / 2`, and the risk is
    :math:`\sigma^2 + E g^2`.

    The review prints :math:`\lambda = n \gamma / (4 \sigma^2 + 4 C^2)`; the bound holds
    for it at every :math:`\gamma < 1`.

    References
    ----------
    .. [1] Chopin, N., Gadat, S., Guedj, B., Guyader, A. and Vernet, E. (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys 51, Theorem 5.2.
    .. [2] Catoni, O. (2007). PAC-Bayesian supervised classification. IMS Lecture Notes
       56.

    Examples
    --------
    Ten thousand rows, noise of variance 0.1, functions of at most 1:

    >>> terms = additive_risk_terms(
    ...     0.11,
    ...     30.0,
    ...     n_samples=10_000,
    ...     inverse_temperature=10_000 * 0.5 / (4 * 0.1 + 4),
    ...     noise_variance=0.1,
    ...     radius=1.0,
    ... )
    >>> for name, value in terms.items():
    ...     print(f"{name:15} {value:.4f}")
    empirical_risk  0.1100
    contraction     0.0027
    divergence      0.0335
    noise           0.0060
    confidence      0.0041
    """
    t = inverse_temperature / n_samples
    if not 2 * t * noise_variance < 1:
        raise ValueError(
            f"inverse_temperature={inverse_temperature:.6g} must be below "
            f"n_samples / (2 noise_variance) = {n_samples / (2 * noise_variance):.6g}."
        )
    largest = 4 * radius**2
    kappa = -math.expm1(-t * (1 - 2 * t * noise_variance) * largest) / (t * largest)
    surprise = math.log(2 / (1 - confidence))
    price = 1 / (kappa * inverse_temperature)
    noise = noise_variance * math.sqrt(6 * surprise / n_samples)
    return {
        "empirical_risk": float(empirical_risk),
        "contraction": float((1 / kappa - 1) * (empirical_risk - noise_variance)),
        "divergence": float(divergence * price),
        "noise": noise / kappa,
        "confidence": surprise * price,
    }


def certify_regression(estimator, found, problem, unit_weights, confidence):
    """Return the certificate of the posterior, as normals truncated to the ball.

    The posterior is a mixture over the models visited, an approximation of the Gibbs
    posterior. This is allowed, as the bound holds for all posteriors simultaneously. It
    holds for the Gibbs posterior too, which has the smallest sum of risk and divergence
    / lambda.

    Parameters
    ----------
    estimator : SparseAdditiveGibbsRegressor
        The fitted estimator: its models and its parameters.
    found : Fitted
        Its results.
    problem : Problem
        The regression on the rows of the fit.
    unit_weights : bool or None
        Whether each row has weight 1; None if this is not known.
    confidence : float
        Probability with which the bound holds.
    """
    orders, weights = estimator.models_, estimator.model_weights_
    ranks, beta = problem.functions.orders, estimator.beta
    rng = np.random.default_rng(0)
    unit = math.sqrt(problem.weight / (2 * found.inverse_temperature))
    parts = [_cut_normal(problem, model, found.radius, unit, rng) for model in orders]
    risks, divergences = np.array(parts).T
    log_prior = log_model_prior(orders, ranks, beta)
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
    basis = isinstance(estimator.basis, str) or None
    given = estimator.categorical_features
    if estimator.basis == "auto" or (given is not None and len(given)):
        basis = False
    return Certificate(
        theorem="Catoni's bound, in the setting of Theorem 5.2 of Chopin et al. (2015)",
        observed=terms["empirical_risk"],
        bound=float(sum(terms.values())),
        terms=terms,
        assumptions={
            "the rows are independent, of one distribution": None,
            "the parameters were chosen without the rows": None,
            "the noise is sub-Gaussian, its fourth moment at most that of a normal": (
                None
            ),
            "the regression function, less its mean, is at most the radius": None,
            "y is within the radius and the noise of its mean": bool(
                problem.largest <= _largest_target(found, problem.weight)
            ),
            "the means of the functions, and of their products, are those of the "
            "distribution of the rows": None,
            "each row has weight 1": unit_weights,
            "the basis is known, not chosen by the rows": basis,
            "noise_variance is known, not estimated": (
                estimator.noise_variance != "auto"
            ),
            "radius is known, not estimated": estimator.radius is not None,
            "feature_range is known, not estimated": (
                estimator.feature_range is not None
            ),
        },
        largest=found.noise_variance + 4 * found.radius**2,
        statement=f"With probability {confidence:g}, the squared error on new rows",
    )


def _largest_target(found, n_samples):
    """Return what y, less its mean over rows, exceeds with probability `UNLIKELY`.

    By the tails of sub-Gaussian noise, and Hoeffding's inequality for the mean.
    """
    surprise = math.log(4 / UNLIKELY)
    noise, radius = math.sqrt(found.noise_variance), found.radius
    of_mean = (radius + noise) * math.sqrt(2 * surprise / n_samples)
    return radius + noise * math.sqrt(2 * (surprise + math.log(n_samples))) + of_mean


def _cut_normal(problem, model, radius, unit, rng):
    """Return risk and divergence of a normal distribution truncated to the ball.

    The divergence is from the uniform distribution. If hardly any of the normal is in
    the ball, it is scaled down until most of it is.
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
    sizes = abs(draws).sum(axis=0)
    if (sizes <= radius).mean() < LEAST_INSIDE:
        scale = radius / np.quantile(sizes, 1 - LEAST_INSIDE)
        draws, factor, sizes = scale * draws, factor / scale, scale * sizes
    inside = sizes <= radius
    draws, normal = draws[:, inside], normal[:, inside]
    squares = problem.square - 2 * problem.against[columns] @ draws
    squares = squares + (draws * (gram @ draws)).sum(axis=0)
    log_density = np.log(np.diag(factor)).sum() - q / 2 * math.log(2 * math.pi)
    log_density -= (normal**2).sum(axis=0).mean() / 2 + math.log(inside.mean())
    log_uniform = gammaln(q + 1) - q * math.log(2 * radius)
    return squares.mean() / problem.weight, log_density - log_uniform


def certify_classifier(estimator, risk, largest, confidence, observed=None):
    """Return the certificate of the posterior by Catoni's theorem.

    Parameters
    ----------
    estimator : SparseAdditiveGibbsClassifier or SparseAdditiveGibbsRanker
        The fitted estimator.
    risk : tuple of str
        The theorem; the name of the risk; what is assumed of the loss, and of the rows.
    largest : float
        The largest loss.
    confidence : float
        Probability with which the bound holds.
    observed : float, default=None
        Risk on new rows. None: on the rows of the fit.
    """
    theorem, name, loss, rows = risk
    terms = catoni_terms(
        **estimator._risk,
        inverse_temperature=estimator.inverse_temperature_,
        largest=largest,
        confidence=confidence,
    )
    basis = isinstance(estimator.basis, str) or None
    return Certificate(
        theorem=theorem,
        observed=terms["observed"] if observed is None else observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions={
            loss: True,
            "ranges of the features known before the rows": (
                estimator.feature_range is not None
            ),
            "basis known, not chosen by the rows": basis,
            "parameters chosen without the rows": None,
            rows: None,
        },
        largest=largest,
        statement=f"With probability {confidence:g}, the {name} on new rows",
    )


def divergence_of(
    problem,
    posterior,
    prior,
    beta,
    inverse_temperature,
    risk,
    log_evidence_of,
    most_models=100,
):
    """Return an upper bound on the divergence of a Gibbs posterior from the prior.

    The posterior minimises expected risk + divergence / lambda, and the minimum is
    -log(evidence) / lambda. A lower bound on the evidence, from the models visited
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
    risk : float
        Mean risk, expected under the posterior.
    log_evidence_of : callable
        Log evidence of a model, given its design with an intercept.
    most_models : int, default=100
        Largest number of models whose evidence is summed.
    """
    ranks, width = problem.functions.orders, problem.values.shape[1]
    models, group = np.unique(posterior.orders(), axis=0, return_inverse=True)
    visits = np.bincount(group.ravel(), weights=posterior.weights)
    log_evidence = -math.inf
    for orders in models[np.argsort(-visits, kind="stable")[:most_models]]:
        inside = problem.values[np.arange(width) < orders[:, None]]
        design = np.vstack([np.ones(problem.values.shape[2]), inside])
        own = log_model_prior(orders, ranks, beta) + log_evidence_of(design)
        log_evidence = np.logaddexp(log_evidence, own)
    log_evidence -= log_prior_mass(ranks, beta, prior.most)
    # Both are estimated, so that a small divergence may come out negative.
    return max(float(-log_evidence - inverse_temperature * risk), 0.0)


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


def log_model_prior(orders, ranks, beta):
    """Log prior of models, by the orders of the variables, without its constant."""
    sizes = np.count_nonzero(orders, axis=-1)
    log_sets = log_binomial(np.count_nonzero(ranks), sizes)
    return orders.sum(axis=-1) * math.log(beta) - log_sets


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


def log_binomial(n, k):
    """Logarithm of a binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def precision_factor(gram, ridge):
    """Return the Cholesky factor of P = G + ridge I, `gram` being G among functions.

    `ridge` may be an array, one for each function.
    """
    precision = gram.copy()
    diagonal = precision.diagonal()
    precision.flat[:: len(precision) + 1] = diagonal + (ridge + ROUNDING * diagonal)
    # Not scipy.linalg.cholesky: its checks take ten times as long as factorising the
    # few functions of a sweep.
    factor, info = dpotrf(precision, lower=1) if len(precision) else (precision, 0)
    if info > 0:
        raise LinAlgError(f"the leading minor of order {info} is not positive definite")
    return factor
