"""Bounds of additive models: the risk of a Gibbs posterior, and what it is made of."""

import math

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import gammaln, log_expit

MOST_STEPS = 100  # of the ascent to the best bound on an evidence
TOLERANCE = 1e-6  # on that bound, in nats
ROUNDING = 1e-12  # of a diagonal entry: functions may depend on each other


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
        If :math:`\lambda \ge n / (2 \sigma^2)`.

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
        factor = _precision_factor(gram, 1 / variances)
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


def _precision_factor(gram, ridge):
    """Cholesky factor of a Gram matrix plus a ridge; roundings do not matter."""
    precision = gram.copy()
    diagonal = np.diag_indices_from(precision)
    precision[diagonal] += ridge + ROUNDING * precision[diagonal]
    return cholesky(precision, lower=True, check_finite=False)
