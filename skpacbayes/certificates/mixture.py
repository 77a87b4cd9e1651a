"""Risk bounds of tempered variational mixtures, for the truth that is assumed."""

from numbers import Integral, Real

import numpy as np

from .._compat import Interval, StrOptions, validate_params
from .._validation import as_numbers
from ._constraints import as_vector, refuse_not_positive

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_COUNT = Interval(Integral, 1, None, closed="left")
_TEMPERATURE = [Interval(Real, 0, 1, closed="neither")]


def _check_by_number(name, values, interval):
    """Raise ValueError unless keys are numbers of components, and values allowed."""
    for key, value in values.items():
        if not (_COUNT.is_satisfied_by(key) and interval.is_satisfied_by(value)):
            raise ValueError(
                f"{name} has {key!r}: {value!r}, but each key should be {_COUNT} and "
                f"each value {interval}."
            )


def _with_weights(n_samples, n_components, component_rate):
    """Return the larger of the rates of the weights (Lemma 3.2) and the components."""
    if n_components == 1:  # Remark 3.1: there is no weight to estimate
        return component_rate
    return max(4 * np.log(n_samples * n_components) / n_samples, component_rate)


@validate_params(
    {
        "means": ["array-like"],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "mean_variance": [_POSITIVE],
        "variances": ["array-like", _POSITIVE],
        "scale": [None, _POSITIVE],
        "prior": [StrOptions({"known", "conjugate", "factorized"})],
    },
    prefer_skip_nested_validation=True,
)
def gaussian_mixture_rate(
    means, *, n_samples, mean_variance, variances=1.0, scale=None, prior="known"
):
    r"""Rate r of the risk bound of a Gaussian mixture, given the true parameters.

    To be passed to `mixture_risk_bound` or `mixture_selection_bound`. The priors are
    centered at zero, and the weights have a Dirichlet prior with concentrations in
    [2 / K, 1].

    Parameters
    ----------
    means : array-like of shape (n_components,) or (n_components, n_features)
        The true means. For the misspecified case, Corollary 3.7, pass the largest
        absolute value L that the means of the mixtures compared with may take, once
        for each component.
    n_samples : int
        Number of rows n, at least 2.
    mean_variance : float
        Prior variance :math:`\mathcal V^2` of the means; under the conjugate prior, of
        a mean whose component has variance one.
    variances : array-like of shape (n_components,) or float, default=1.0
        The true variances; one number if they are known to the model.
    scale : float, default=None
        Scale :math:`\gamma^2` of the prior IG(1, :math:`\gamma^2`) of the variances.
    prior : {"known", "conjugate", "factorized"}, default="known"
        Known variance (Corollary 3.4), conjugate prior or independent priors of the
        mean and the variance (Corollary 3.5, one feature).

    Returns
    -------
    rate : float
        The rate r, with :math:`4 \log(nK) / n` for the weights included.

    Raises
    ------
    ValueError
        If `scale` is missing where it is needed, or given where it is not; if the
        means have several features and the variances are unknown; if an argument is not
        in its range, or `variances` has not one value for each of `means`.

    Notes
    -----
    Corollaries 3.4, 3.5 and 3.7 of [1]_, where the sign printed like a root is a
    maximum. The maximum with 1/n in the components, which the proofs have, is kept: it
    matters for one component. Several features with known variance are our extension.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    With 1000 rows and three components, the weights are what costs most:

    >>> from skpacbayes.certificates import gaussian_mixture_rate
    >>> rate = gaussian_mixture_rate([-2, 0, 2], n_samples=1000, mean_variance=10)
    >>> round(rate, 4)
    0.032
    """
    means = as_numbers("means", means)
    means = means[:, None] if means.ndim == 1 else means
    if means.ndim != 2 or not means.size:
        raise ValueError(
            "means should have the shape (n_components,) or (n_components, "
            f"n_features), not empty, got an array of shape {means.shape}."
        )
    n_components, d = means.shape
    if isinstance(variances, Real):
        variances = np.full(n_components, float(variances))
    variances = as_vector("variances", variances, like=("means", means))
    refuse_not_positive("variances", variances)
    if (prior == "known") != (scale is None):
        raise ValueError(
            "scale must be given unless prior='known', and only then; got "
            f"prior={prior!r} and scale={scale!r}."
        )
    if prior != "known" and d > 1:
        raise ValueError(
            f"The bounds for unknown variances are for one feature; means have {d}."
        )
    n, v2 = n_samples, mean_variance
    squares = (means**2).sum(axis=1)
    if prior == "known":
        each = 0.5 * np.log(n / 2) + variances / (n * v2) - 0.5
        costs = d * (each + 0.5 * np.log(v2 / variances)) + squares / (2 * v2)
    else:
        ratio = scale / variances
        costs = 2 * np.log(n) + 0.5 * np.log(v2) + ratio - 0.5 * np.log(2 * np.pi)
        if prior == "conjugate":
            costs += 1 / (2 * n * v2) + squares / (2 * variances * v2) - np.log(ratio)
        else:
            costs += (variances / n + squares) / (2 * v2)
            costs += 0.5 * np.log(variances / scale**2)
    return float(_with_weights(n, n_components, max(d, costs.max()) / n))


@validate_params(
    {
        "n_components": [_COUNT],
        "n_features": [Interval(Integral, 2, None, closed="left")],
        "n_samples": [_COUNT],
        "n_tokens": [_COUNT],
    },
    prefer_skip_nested_validation=True,
)
def multinomial_mixture_rate(n_components, n_features, *, n_samples, n_tokens=1):
    """Rate r of the risk bound of a multinomial mixture.

    To be passed to `mixture_risk_bound` or `mixture_selection_bound`. The weights have
    a Dirichlet prior with concentrations in [2 / K, 1], the components one with
    concentrations in [2 / n_features, 1].

    Parameters
    ----------
    n_components : int
        Number of components K.
    n_features : int
        Number of categories, at least 2.
    n_samples : int
        Number of rows n.
    n_tokens : int, default=1
        Sum of the counts of each row.

    Returns
    -------
    rate : float
        The rate r; it does not depend on the true parameters.

    Notes
    -----
    Corollary 3.3 of [1]_ for one token a row; more are our extension.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    >>> from skpacbayes.certificates import multinomial_mixture_rate
    >>> round(multinomial_mixture_rate(3, 10, n_samples=1000), 3)
    0.368
    """
    tokens = n_samples * n_tokens
    component_rate = 4 * n_features * np.log(tokens * n_features) / n_samples
    return float(_with_weights(n_samples, n_components, component_rate))


@validate_params(
    {
        "rate": [_POSITIVE],
        "n_components": [_COUNT],
        "inverse_temperature": _TEMPERATURE,
        "divergence": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def mixture_risk_bound(rate, n_components, *, inverse_temperature, divergence=0.0):
    r"""Bound of the expected Rényi divergence between the mixture and the truth.

    The expectation is over the rows and over the posterior, and :math:`\alpha`, the
    inverse temperature, is also the order of the divergence.

    Parameters
    ----------
    rate : float
        The rate r, from `gaussian_mixture_rate` or `multinomial_mixture_rate`.
    n_components : int
        Number of components K of the model.
    inverse_temperature : float in (0, 1)
        :math:`\alpha`.
    divergence : float, default=0.0
        Kullback-Leibler divergence of the truth from the nearest mixture of the model,
        zero if the model is right.

    Returns
    -------
    bound : float
        In nats.

    Notes
    -----
    .. math::

        \frac{\alpha}{1-\alpha} \mathrm{KL}(P^0, P_{\theta^*})
        + \frac{1+\alpha}{1-\alpha} 2 K r,

    the second part of Theorem 3.1 and Theorem 3.6 of [1]_. It holds for the global
    maximum of the paper's bound, and of the library's J, under priors that do not look
    at the data.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    >>> from skpacbayes.certificates import gaussian_mixture_rate, mixture_risk_bound
    >>> rate = gaussian_mixture_rate([-2, 0, 2], n_samples=1000, mean_variance=10)
    >>> round(mixture_risk_bound(rate, 3, inverse_temperature=0.5), 2)
    0.58
    """
    alpha = inverse_temperature
    variance = (1 + alpha) / (1 - alpha) * 2 * n_components * rate
    return float(alpha / (1 - alpha) * divergence + variance)


@validate_params(
    {
        "rates": [dict],
        "n_samples": [_COUNT],
        "inverse_temperature": _TEMPERATURE,
        "divergences": [dict, None],
        "component_prior": [StrOptions({"geometric", "uniform"})],
    },
    prefer_skip_nested_validation=True,
)
def mixture_selection_bound(
    rates,
    *,
    n_samples,
    inverse_temperature,
    divergences=None,
    component_prior="geometric",
):
    r"""Bound of the expected Rényi divergence when the bound J chooses K.

    Parameters
    ----------
    rates : dict of int to float
        The rate r of each number of components, for parameters that reach its
        divergence. For the uniform prior on K: of every K that is tried.
    n_samples : int
        Number of rows n.
    inverse_temperature : float in (0, 1)
        :math:`\alpha`, also the order of the divergence.
    divergences : dict of int to float, default=None
        Kullback-Leibler divergence of the truth from the nearest mixture of each K;
        None where every K of `rates` contains the truth.
    component_prior : {"geometric", "uniform"}, default="geometric"
        Prior on K: 2^-K, or uniform on the keys of `rates`.

    Returns
    -------
    bound : float
        In nats: the least over K, known in advance or not.

    Raises
    ------
    ValueError
        If `rates` is empty or `divergences` lacks one of its keys; if a key is not a
        number of components, a rate not positive or a divergence negative.

    Notes
    -----
    Theorem 4.1 of [1]_. It bounds a divergence, and does not say that the number of
    components is found.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    >>> from skpacbayes.certificates import mixture_selection_bound
    >>> bound = mixture_selection_bound(
    ...     {1: 0.01, 2: 0.03, 3: 0.032},
    ...     n_samples=1000,
    ...     inverse_temperature=0.5,
    ...     divergences={1: 0.9, 2: 0.1, 3: 0.0},
    ... )
    >>> round(bound, 3)
    0.463
    """
    _check_by_number("rates", rates, _POSITIVE)
    _check_by_number("divergences", divergences or {}, _NOT_NEGATIVE)
    if not rates or (
        divergences is not None and not rates.keys() <= divergences.keys()
    ):
        raise ValueError(
            "rates must not be empty and divergences, if given, must have all its "
            f"keys; got rates={rates!r} and divergences={divergences!r}."
        )
    prices = {K: K * np.log(2) for K in rates}
    if component_prior == "uniform":
        prices = dict.fromkeys(rates, np.log(len(rates)))
    return float(
        min(
            mixture_risk_bound(
                rate,
                K,
                inverse_temperature=inverse_temperature,
                divergence=0.0 if divergences is None else divergences[K],
            )
            + prices[K] / (n_samples * (1 - inverse_temperature))
            for K, rate in rates.items()
        )
    )


@validate_params(
    {
        "risk": [Interval(Real, 0, None, closed="left")],
        "prior_divergence": [Interval(Real, 0, None, closed="left")],
        "n_samples": [_COUNT],
        "inverse_temperature": _TEMPERATURE,
    },
    prefer_skip_nested_validation=True,
)
def variational_risk_bound(risk, prior_divergence, *, n_samples, inverse_temperature):
    r"""Bound of the expected Rényi divergence, by any distribution of parameters.

    The first part of Theorem 3.1: each product distribution :math:`\rho` gives a
    bound; use the smallest.

    Parameters
    ----------
    risk : float
        :math:`\int \mathrm{KL}(p^0, p) \rho(dp) + \sum_j \int \mathrm{KL}(q_j^0, q_j)
        \rho(d\theta_j)`: how far the weights and components drawn from :math:`\rho` are
        from the true ones.
    prior_divergence : float
        :math:`\mathrm{KL}(\rho, \pi)`, summed over the weights and the components.
    n_samples : int
        Number of rows n.
    inverse_temperature : float in (0, 1)
        :math:`\alpha`, also the order of the divergence.

    Returns
    -------
    bound : float
        In nats.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035, Theorem 3.1.

    Examples
    --------
    >>> from skpacbayes.certificates import variational_risk_bound
    >>> bound = variational_risk_bound(
    ...     0.004, 12.0, n_samples=1000, inverse_temperature=0.5
    ... )
    >>> round(bound, 3)
    0.028
    """
    alpha = inverse_temperature
    return float(
        alpha / (1 - alpha) * risk + prior_divergence / (n_samples * (1 - alpha))
    )
