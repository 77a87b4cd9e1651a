"""Bounds of additive models: the risk of a Gibbs posterior."""

import math


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
