"""The fewest variables that say what a posterior says: projections of predictions."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, xlogy

N_REFITTED = 3  # candidates that are fitted at each step, the best by their score tests
RIDGE = 1e-6  # relative to the number of rows: functions may depend on each other
N_NEWTON = 50


def projected_support(values, orders, targets, *, logistic, explained):
    """Choose variables, one after the other, until their projection explains enough.

    The projection of a posterior's predictions on some variables is the additive
    function of these alone whose predictions diverge least from them [1]_.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    orders : ndarray of shape (n_features,)
        Number of functions of each variable; 0 leaves a variable out.
    targets : ndarray of shape (n_samples,)
        The predictions: means, or probabilities where `logistic`.
    logistic : bool
        Whether predictions are probabilities, and diverge as Bernoulli distributions
        do; otherwise means, which diverge by their squared distance.
    explained : float
        Share of the divergence of a constant that the variables have to explain.

    Returns
    -------
    features : list of int
        The variables, the most important first.
    share : float
        Share of the divergence that they explain.

    References
    ----------
    .. [1] C. Goutis and C. P. Robert (1998). Model choice in generalised linear models:
       a Bayesian approach via Kullback-Leibler projections. Biometrika 85.
    """
    rows = [part[:order] for part, order in zip(values, orders, strict=True)]
    left, chosen = [j for j, order in enumerate(orders) if order], []
    total, scores = project(rows, chosen, targets, logistic)
    divergence = total
    while left and divergence > (1.0 - explained) * total:
        tests = [score_test(rows[j], targets, scores, logistic) for j in left]
        best = [left[k] for k in np.argsort(tests)[: -N_REFITTED - 1 : -1]]
        found = [project(rows, [*chosen, j], targets, logistic) for j in best]
        which = int(np.argmin([divergence for divergence, _ in found]))
        divergence, scores = found[which]
        chosen.append(best[which])
        left.remove(best[which])
    return chosen, 1.0 - divergence / total if total > 0 else 1.0


def project(rows, features, targets, logistic):
    """Divergence, and scores, of the projection on some variables and a constant."""
    n_samples = len(targets)
    design = np.vstack([np.ones((1, n_samples)), *(rows[j] for j in features)])
    ridge = RIDGE * n_samples * np.eye(len(design))
    ridge[0, 0] = 0.0
    beta = np.zeros(len(design))
    beta[0] = link(targets.mean()) if logistic else targets.mean()
    divergence = divergence_of(targets, beta @ design, logistic)
    for _ in range(N_NEWTON if logistic else 1):
        residuals, weights = residuals_of(targets, beta @ design, logistic)
        curvature = (design * weights) @ design.T + ridge
        step = cho_solve(cho_factor(curvature), design @ residuals - ridge @ beta)
        before = divergence
        for _ in range(30):
            divergence = divergence_of(targets, (beta + step) @ design, logistic)
            if divergence <= before:
                break
            step = 0.5 * step
        else:
            divergence = before
            break
        beta = beta + step
        if before - divergence <= 1e-9 * before:
            break
    return divergence, beta @ design


def score_test(rows, targets, scores, logistic):
    """How much the functions of one variable more could lower the divergence."""
    residuals, weights = residuals_of(targets, scores, logistic)
    slope = rows @ residuals
    curvature = (rows * weights) @ rows.T + RIDGE * len(targets) * np.eye(len(rows))
    return slope @ np.linalg.solve(curvature, slope)


def residuals_of(targets, scores, logistic):
    """Slopes of the log likelihood in the scores, and its curvatures."""
    if not logistic:
        return targets - scores, np.ones_like(scores)
    fitted = expit(scores)
    return targets - fitted, np.maximum(fitted * (1.0 - fitted), 1e-10)


def divergence_of(targets, scores, logistic):
    """Mean divergence of predictions by scores from the targets."""
    if not logistic:
        return 0.5 * np.mean(np.square(targets - scores))
    entropy = xlogy(targets, targets) + xlogy(1 - targets, 1 - targets)
    cross = np.logaddexp(0.0, scores) - targets * scores
    return max(0.0, float(np.mean(entropy + cross)))


def link(probability):
    """Log odds of a probability, kept from 0 and 1."""
    probability = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(probability / (1 - probability))
