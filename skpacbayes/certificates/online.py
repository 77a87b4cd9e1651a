"""Regret bounds of online variational inference, term by term."""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, xlogy

from ._certificate import Certificate
from ._constraints import (
    ANY,
    COUNT,
    NOT_NEGATIVE,
    NOT_NEGATIVE_OR_INFINITE,
    POSITIVE,
    as_losses,
    as_vector,
    checked,
    refuse_not_positive,
)

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS /= _WEIGHTS.sum()
PAPER = "Chérief-Abdellatif, Alquier and Khan (2019)"
# Lipschitz constant of the expected loss in (m, sigma), over |x|: 2 for a loss that is
# 1-Lipschitz in the prediction (Proposition 2 of the paper).
PUBLISHED_LIPSCHITZ = 2.0


@checked(
    {
        "losses": ["array-like"],
        "last_inverse_temperature": NOT_NEGATIVE,
        "rate_sum": NOT_NEGATIVE,
        "loss_bound": NOT_NEGATIVE,
    }
)
def exponential_weights_terms(
    losses, *, last_inverse_temperature, rate_sum, loss_bound
):
    r"""Regret bound of exponentially weighted aggregation of finitely many experts.

    Theorem 1 of [1]_, whose infimum over all posteriors has a closed form:
    :math:`-\frac{1}{\eta} \log \frac1K \sum_k e^{-\eta S_k} + \frac{\eta B^2 T}{8}`.
    The losses must be convex in the prediction and in [0, B]. The proof allows rates
    that fall from row to row: the last one replaces eta in the first term, and their
    sum replaces :math:`\eta T` in the second.

    Parameters
    ----------
    losses : array-like of shape (n_experts,)
        Cumulative losses of the experts, whose prior weights are equal.
    last_inverse_temperature : float
        Inverse temperature of the last row.
    rate_sum : float
        Sum over the rows of the inverse temperature, times the squared weight of the
        row where rows have weights.
    loss_bound : float
        Bound on the loss of any expert on any row.

    Returns
    -------
    terms : dict of str to float
        The terms whose sum bounds the cumulative loss of the aggregate.

    Raises
    ------
    ValueError
        If a number is not in its range, or `losses` is not a vector of them.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    >>> from skpacbayes.certificates import exponential_weights_terms
    >>> terms = exponential_weights_terms(
    ...     [20.0, 30.0], last_inverse_temperature=0.5, rate_sum=50.0, loss_bound=1.0
    ... )
    >>> {name: round(value, 2) for name, value in terms.items()}
    {'loss of the best expert': 20.0, 'complexity': 1.37, 'rate': 6.25}
    """
    losses = as_losses("losses", losses)
    terms = split_soft_minimum(losses, last_inverse_temperature)
    return {**terms, "rate": float(rate_sum * loss_bound**2 / 8.0)}


def split_soft_minimum(losses, inverse_temperature):
    """Return the infimum of Theorem 1, by its part: the least loss, and the rest."""
    losses = np.asarray(losses, dtype=float)
    eta = inverse_temperature
    best = losses.min()
    excess = losses - best
    complexity = excess.mean()  # its limit as eta falls to 0
    if eta > 0:
        complexity = -math.log1p(np.expm1(-eta * excess).mean()) / eta
    return {"loss of the best expert": float(best), "complexity": float(complexity)}


@checked({"mean": ["array-like"], "scale": ["array-like"], "prior_scale": POSITIVE})
def gaussian_divergence(mean, scale, *, prior_scale):
    """Kullback-Leibler divergence of N(mean, diag(scale^2)) from N(0, prior_scale^2).

    Parameters
    ----------
    mean, scale : array-like of shape (n_parameters,)
        Means and standard deviations of the posterior.
    prior_scale : float
        Standard deviation of the prior of each parameter.

    Returns
    -------
    divergence : float
        The divergence, in nats.

    Raises
    ------
    ValueError
        If a number is not in its range, or `mean` and `scale` have not the same
        number of values.

    Examples
    --------
    >>> import numpy as np
    >>> from skpacbayes.certificates import gaussian_divergence
    >>> gaussian_divergence(np.array([1.0]), np.array([1.0]), prior_scale=1.0)
    0.5
    """
    mean = as_vector("mean", mean)
    scale = as_vector("scale", scale, like=("mean", mean))
    refuse_not_positive("scale", scale)
    return divergence_of_normal(mean, scale, prior_scale)


def divergence_of_normal(mean, scale, prior_scale):
    """Return `gaussian_divergence` of valid arrays."""
    ratio = np.square(scale / prior_scale)
    distance = np.square(mean / prior_scale)
    return float(0.5 * np.sum(ratio + distance - 1.0 - np.log(ratio)))


@checked(
    {
        "expected_loss": ANY,
        "divergence": NOT_NEGATIVE_OR_INFINITE,
        "learning_rate": POSITIVE,
        "squared_gradients": NOT_NEGATIVE_OR_INFINITE,
        "prior_scale": POSITIVE,
    }
)
def sequential_approximation_terms(
    expected_loss, divergence, *, learning_rate, squared_gradients, prior_scale
):
    r"""Regret bound of sequential variational approximation (SVA), term by term.

    Theorem 2 of [1]_ for a Gaussian mean-field posterior q and the prior
    N(0, s^2 I), in the form that its proof gives before the gradients are bounded:
    :math:`E_q \sum_t \ell_t + \eta s^2 \sum_t |g_t|^2 + KL(q, \pi) / \eta`.
    The divergence is strongly convex in (m, sigma) with constant
    :math:`\alpha = 1 / s^2`; the gradients are those that were seen, so that no
    Lipschitz constant is needed. Any q gives a valid bound.

    Parameters
    ----------
    expected_loss : float
        Cumulative loss of the rows, expected under q.
    divergence : float
        Kullback-Leibler divergence of q from the prior: see `gaussian_divergence`.
    learning_rate : float
        The constant learning rate eta of the run.
    squared_gradients : float
        Sum of the squared norms of the gradients in (m, sigma) along the run; or, for
        the published form, L^2 T with a Lipschitz constant L.
    prior_scale : float
        Standard deviation s of the prior.

    Returns
    -------
    terms : dict of str to float
        The terms whose sum bounds the cumulative loss.

    Raises
    ------
    ValueError
        If a number is not in its range.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    >>> from skpacbayes.certificates import sequential_approximation_terms
    >>> sequential_approximation_terms(
    ...     40.0, 2.0, learning_rate=0.1, squared_gradients=100.0, prior_scale=1.0
    ... )
    {'expected loss': 40.0, 'gradients': 10.0, 'divergence': 20.0}
    """
    return {
        "expected loss": float(expected_loss),
        "gradients": float(learning_rate * prior_scale**2 * squared_gradients),
        "divergence": float(divergence / learning_rate),
    }


@checked(
    {
        "best_loss": ANY,
        "n_samples": COUNT,
        "n_parameters": COUNT,
        "mean_bound": NOT_NEGATIVE_OR_INFINITE,
        "scale_bound": NOT_NEGATIVE_OR_INFINITE,
        "scaled_gradients": NOT_NEGATIVE_OR_INFINITE,
    }
)
def streaming_bayes_terms(
    best_loss, *, n_samples, n_parameters, mean_bound, scale_bound, scaled_gradients
):
    r"""Regret bound of streaming variational Bayes (SVB), term by term.

    For the steps :math:`\eta_t = 1 / (\sigma_t^2 \sqrt t)` of the experiments of [1]_,
    which Theorem 3 does not cover. By the argument of its proof, where
    :math:`g_t` is the gradient in (m, sigma) seen at row t, all means lie in [-M, M]
    and all deviations in [0, S], the regret against any fixed theta in the box is at
    most :math:`\sqrt T d (2 M^2 + S^2) + \sum_t |g_t|^2 / (2 \sqrt t)`.

    Parameters
    ----------
    best_loss : float
        Cumulative loss of the rows at a fixed parameter in the box.
    n_samples : int
        Number of rows T.
    n_parameters : int
        Number of parameters d.
    mean_bound, scale_bound : float
        The bounds M and S of the projection.
    scaled_gradients : float
        Sum of the squared norms of the gradients over the roots of the row numbers.

    Returns
    -------
    terms : dict of str to float
        The terms whose sum bounds the cumulative loss.

    Raises
    ------
    ValueError
        If a number is not in its range.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    >>> from skpacbayes.certificates import streaming_bayes_terms
    >>> streaming_bayes_terms(
    ...     40.0,
    ...     n_samples=100,
    ...     n_parameters=2,
    ...     mean_bound=1.0,
    ...     scale_bound=1.0,
    ...     scaled_gradients=30.0,
    ... )
    {'loss of the parameter': 40.0, 'diameter': 60.0, 'gradients': 15.0}
    """
    size = n_parameters * (2.0 * mean_bound**2 + scale_bound**2)
    return {
        "loss of the parameter": float(best_loss),
        "diameter": math.sqrt(n_samples) * size,
        "gradients": 0.5 * float(scaled_gradients),
    }


@checked(
    {
        "n_samples": COUNT,
        "n_parameters": COUNT,
        "mean_bound": NOT_NEGATIVE_OR_INFINITE,
        "scale_bound": NOT_NEGATIVE_OR_INFINITE,
        "lipschitz": NOT_NEGATIVE,
    }
)
def streaming_bayes_published_regret(
    *, n_samples, n_parameters, mean_bound, scale_bound, lipschitz
):
    r"""Regret :math:`D L \sqrt{2 T}` of Theorem 3 of [1]_, as published.

    It is claimed for the steps
    :math:`\eta_t = D \sqrt 2 / (L \sqrt t \sigma_t^2)`, with
    :math:`D^2 = d (4 M^2 + S^2)`, not for those of the experiments. Gradient descent
    with these steps is known to give the constant 1.77 in place of 1.41; the proof is
    in an appendix that is not part of the published text.

    Parameters
    ----------
    n_samples, n_parameters : int
        Number of rows T and of parameters d.
    mean_bound, scale_bound : float
        The bounds M and S of the projection.
    lipschitz : float
        Lipschitz constant L of the expected loss in (m, sigma).

    Returns
    -------
    regret : float
        The bound on the regret.

    Raises
    ------
    ValueError
        If a number is not in its range.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    >>> from skpacbayes.certificates import streaming_bayes_published_regret
    >>> streaming_bayes_published_regret(
    ...     n_samples=100, n_parameters=2, mean_bound=1, scale_bound=1, lipschitz=2
    ... )
    89.4...
    """
    size = n_parameters * (4.0 * mean_bound**2 + scale_bound**2)
    return lipschitz * math.sqrt(2.0 * size * n_samples)


# The best comparison that the data allow, for the linear models.


def point_losses(loss, y, predictions, quantile=0.5):
    """Loss of each prediction; labels are -1 and 1, predictions of rates their logs."""
    if loss == "poisson":  # half the deviance
        return np.exp(predictions) - y * (predictions + 1.0) + xlogy(y, y)
    if loss == "quantile":
        below = predictions - y
        return np.maximum(-quantile * below, (1.0 - quantile) * below)
    if loss == "squared_error":
        return np.square(y - predictions)
    if loss == "absolute_error":
        return np.abs(y - predictions)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - y * predictions)
    return np.logaddexp(0.0, -y * predictions)


def expected_losses(loss, y, a, v, quantile=0.5):
    """Loss expected under f ~ N(a, v), row by row, and its derivatives in a and v."""
    if loss == "quantile":  # half the absolute loss, and a line
        values, da, dv = expected_losses("absolute_error", y, a, v)
        tilt = quantile - 0.5
        return 0.5 * values + tilt * (y - a), 0.5 * da - tilt, 0.5 * dv
    if loss == "squared_error":
        return np.square(y - a) + v, -2.0 * (y - a), np.ones_like(a)
    sd = np.sqrt(v)
    if loss == "log_loss":
        scores = y[:, None] * (a[:, None] + sd[:, None] * _NODES)
        wrong = expit(-scores)
        return (
            np.logaddexp(0.0, -scores) @ _WEIGHTS,
            -y * (wrong @ _WEIGHTS),
            0.5 * (wrong * (1.0 - wrong)) @ _WEIGHTS,
        )
    margin = 1.0 - y * a if loss == "hinge" else y - a
    u = margin / sd
    below, density = ndtr(u), np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    if loss == "hinge":
        return margin * below + sd * density, -y * below, 0.5 * density / sd
    return (
        margin * (2.0 * below - 1.0) + 2.0 * sd * density,
        1.0 - 2.0 * below,
        density / sd,
    )


def best_gaussian(
    loss,
    Z,
    y,
    sample_weight,
    *,
    penalty,
    prior_scale,
    mean_bound,
    scale_bound,
    quantile=0.5,
):
    """Mean-field Gaussian of least expected loss plus `penalty` times divergence.

    The divergence is that from N(0, prior_scale^2). The problem is convex in (m,
    sigma); it is solved in (m, log sigma) within the bounds. Returns m, sigma and the
    expected loss.
    """
    n_parameters = Z.shape[1]
    squares = np.square(Z)

    def objective(parameters):
        mean, log_scale = np.split(parameters, 2)
        variance = np.exp(2.0 * log_scale)
        scores = Z @ mean, squares @ variance
        values, da, dv = expected_losses(loss, y, *scores, quantile)
        value = sample_weight @ values
        in_mean = Z.T @ (sample_weight * da)
        in_log = 2.0 * variance * (squares.T @ (sample_weight * dv))
        if penalty > 0:
            scale = np.sqrt(variance)
            value += penalty * divergence_of_normal(mean, scale, prior_scale)
            in_mean += penalty * mean / prior_scale**2
            in_log += penalty * (variance / prior_scale**2 - 1.0)
        return value, np.concatenate([in_mean, in_log])

    largest = math.log(min(scale_bound, 100.0 * prior_scale))
    start = min(math.log(prior_scale / math.sqrt(len(Z))), largest)
    solution = minimize(
        objective,
        np.concatenate([np.zeros(n_parameters), np.full(n_parameters, start)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-mean_bound, mean_bound)] * n_parameters
        + [(-30.0, largest)] * n_parameters,
        options={"maxiter": 300},
    )
    mean, log_scale = np.split(solution.x, 2)
    variance = np.exp(2.0 * log_scale)
    values, _, _ = expected_losses(loss, y, Z @ mean, squares @ variance, quantile)
    return mean, np.sqrt(variance), float(sample_weight @ values)


def certify_sva(problem, *, observed, learning_rate, squared_gradients, prior_scale):
    """Theorem 2 in the form of the gradients seen, for one output.

    problem : dict, the arguments `loss`, `Z`, `y`, `sample_weight` and the bounds of
    `best_gaussian`.
    """
    mean, scale, expected = best_gaussian(
        **problem, penalty=1.0 / learning_rate, prior_scale=prior_scale
    )
    divergence = divergence_of_normal(mean, scale, prior_scale)
    terms = sequential_approximation_terms(
        expected,
        divergence,
        learning_rate=learning_rate,
        squared_gradients=squared_gradients,
        prior_scale=prior_scale,
    )
    return Certificate(
        theorem=f"Theorem 2 of {PAPER}, gradients as observed",
        observed=observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions={
            "the loss is convex in the parameters": True,
            "the learning rate is constant": True,
            "the prior lies in the bounds": prior_scale <= problem["scale_bound"],
        },
    )


def certify_svb(problem, *, observed, scaled_gradients):
    """Regret of the paper's schedule, next to Theorem 3 as published."""
    mean, _, _ = best_gaussian(**problem, penalty=0.0, prior_scale=1.0)
    loss, Z, y = problem["loss"], problem["Z"], problem["y"]
    losses = point_losses(loss, y, Z @ mean, problem["quantile"])
    best = problem["sample_weight"] @ losses
    sizes = {
        "n_samples": len(Z),
        "n_parameters": Z.shape[1],
        "mean_bound": problem["mean_bound"],
        "scale_bound": problem["scale_bound"],
    }
    terms = streaming_bayes_terms(best, **sizes, scaled_gradients=scaled_gradients)
    assumptions = {
        "the loss is convex in the parameters": True,
        "the means and deviations are bounded": True,
    }
    theorem = f"Theorem 3 of {PAPER}, for the steps of its experiments"
    if loss != "squared_error":  # which is not Lipschitz
        longest = math.sqrt(np.square(Z).sum(axis=1).max())
        regret = streaming_bayes_published_regret(
            **sizes, lipschitz=PUBLISHED_LIPSCHITZ * longest
        )
        theorem += f" (as published, for other steps: {best + regret:.6g})"
    return Certificate(
        theorem=theorem,
        observed=observed,
        bound=sum(terms.values()),
        terms=terms,
        assumptions=assumptions,
    )
