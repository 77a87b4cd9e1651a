"""The Gibbs quasi-posterior of PACO on a line, by numerical integration.

The judge of `test_paco_law.py`: it imports nothing of the library and shares no idea
with its samplers. On a line, sorted centers make the loss a chain: a row between two
neighbouring centers is nearest to one of the two, whatever the others are. So the
integral over k sorted centers is a product of k - 1 matrices on a grid, and the
integral over all of them is k! times that.
"""

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import t as student_t


def cluster_number_law(x, *, max_clusters, cluster_penalty, ordered=True, **setting):
    """P(K = k), k = 1, ..., max_clusters.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        The rows, on a line.
    max_clusters : int
        Largest number of centers.
    cluster_penalty : float
        eta in the prior of k.
    ordered : bool, default=True
        Whether q(k) is proportional to exp(-eta k), or to exp(-eta k) / k!.
    **setting
        See `log_evidences`.

    Returns
    -------
    law : array of shape (max_clusters,)
    """
    k = np.arange(1, max_clusters + 1)
    log_prior = -cluster_penalty * k - (0 if ordered else gammaln(k + 1))
    joint = log_prior + log_evidences(x, max_clusters=max_clusters, **setting)
    return np.exp(joint - logsumexp(joint))


def log_evidences(
    x,
    *,
    max_clusters,
    inverse_temperature,
    radius,
    prior="uniform",
    prior_scale=1.0,
    loss="squared_euclidean",
    sample_weight=None,
    step_temperatures=None,
    forecast_losses=None,
    n_cells=1000,
):
    """Log of the mean of exp(-lambda S(c)) under the prior of k centers.

    S(c) is the sum over rows of w_i (l_i + (lambda_i / 2) (l_i - h_i)^2), where l_i is
    the loss of row i at the centers c, all between -2 radius and 2 radius.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        The rows, on a line.
    max_clusters : int
        Largest number of centers.
    inverse_temperature : float
        lambda.
    radius : float
        R, half of the half-width of the prior's support.
    prior : {"uniform", "student"}, default="uniform"
        Uniform, or Student with 3 degrees of freedom cut to the support.
    prior_scale : float, default=1.0
        tau_0: the Student's scale is sqrt(2) tau_0.
    loss : {"squared_euclidean", "manhattan"}, default="squared_euclidean"
        Square or absolute value of the distance to the nearest center.
    sample_weight : array-like of shape (n_samples,), default=None
        w_i, by default 1.
    step_temperatures, forecast_losses : array-like of shape (n_samples,), default=None
        lambda_i and h_i; by default there is no quadratic term.
    n_cells : int, default=1000
        Cells of the midpoint rule, whose error is of order n_cells^-2.

    Returns
    -------
    log_evidences : array of shape (max_clusters,)
    """
    x = np.asarray(x, dtype=float)
    ones = np.ones_like(x)
    weights = ones if sample_weight is None else np.asarray(sample_weight, dtype=float)
    steps = 0 * ones if step_temperatures is None else np.asarray(step_temperatures)
    forecasts = 0 * ones if forecast_losses is None else np.asarray(forecast_losses)

    width = 4 * radius / n_cells
    grid = -2 * radius + width * (np.arange(n_cells) + 0.5)
    if prior == "uniform":
        mass = np.full(n_cells, 1 / n_cells)
    else:
        law = student_t(3, scale=np.sqrt(2) * prior_scale)
        mass = law.pdf(grid) * width / (law.cdf(2 * radius) - law.cdf(-2 * radius))

    distances = np.abs(grid[:, None] - x)  # (n_cells, n_samples)
    losses = distances**2 if loss == "squared_euclidean" else distances

    def energy(losses, i):
        total = losses + steps[i] / 2 * (losses - forecasts[i]) ** 2
        return inverse_temperature * weights[i] * total

    below = np.zeros(n_cells)  # rows left of the first center
    above = np.zeros(n_cells)  # rows right of the last center
    between = np.zeros((n_cells, n_cells))  # rows between neighbouring centers
    for i, row in enumerate(x):
        own = energy(losses[:, i], i)
        below[grid > row] += own[grid > row]
        above[grid <= row] += own[grid <= row]
        left, right = np.flatnonzero(grid <= row), np.flatnonzero(grid > row)
        nearest = np.minimum(losses[left, i][:, None], losses[None, right, i])
        between[np.ix_(left, right)] += energy(nearest, i)

    step = np.triu(np.exp(-between), 1) * mass
    np.fill_diagonal(step, mass / 2)  # half of each cell of the diagonal is sorted
    front = mass * np.exp(-below)
    evidences = []
    for k in range(1, max_clusters + 1):
        total = np.log(front @ np.exp(-above))
        evidences.append(total + gammaln(k + 1))  # the k! orders of the same centers
        front = front @ step
    return np.array(evidences)


def mean_loss(x, *, max_clusters, cluster_penalty, ordered=True, **setting):
    """Mean of S(c) under the quasi-posterior: minus the slope of its free energy."""
    k = np.arange(1, max_clusters + 1)
    log_prior = -cluster_penalty * k - (0 if ordered else gammaln(k + 1))
    temperature = setting.pop("inverse_temperature")
    step = 1e-3 * temperature

    def free_energy(temperature):
        evidences = log_evidences(
            x, max_clusters=max_clusters, inverse_temperature=temperature, **setting
        )
        return logsumexp(log_prior + evidences)

    gain = free_energy(temperature + step) - free_energy(temperature - step)
    return -gain / (2 * step)


def law_by_draws(
    X,
    rng,
    *,
    max_clusters,
    inverse_temperature,
    cluster_penalty,
    radius,
    ordered=True,
    prior="uniform",
    prior_scale=1.0,
    loss="squared_euclidean",
    n_draws=200_000,
):
    """P(K = k and m centers own a row) in any dimension, by draws from the prior.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    rng : numpy.random.Generator
        Source of the draws.
    n_draws : int, default=200_000
        Draws for each k.

    The others are those of `cluster_number_law`.

    Returns
    -------
    law : array of shape (max_clusters, max_clusters)
        Probability of (k, m) = (i + 1, j + 1).
    standard_error : array of shape (max_clusters, max_clusters)
        Of the law, by the delta method.
    """
    X = np.asarray(X, dtype=float)
    n_features = X.shape[1]
    cells = (max_clusters, max_clusters)
    means, seconds, priors = np.zeros(cells), np.zeros(cells), np.zeros(max_clusters)
    for k in range(1, max_clusters + 1):
        centers = _prior_draws(
            rng, n_draws * k, n_features, 2 * radius, prior, prior_scale
        ).reshape(n_draws, k, n_features)
        total, owners = np.zeros(n_draws), np.zeros((n_draws, k), dtype=bool)
        for row in X:
            gaps = centers - row
            gaps = gaps**2 if loss == "squared_euclidean" else np.abs(gaps)
            distances = gaps.sum(axis=2)
            total += distances.min(axis=1)
            owners[np.arange(n_draws), distances.argmin(axis=1)] = True
        values, owned = np.exp(-inverse_temperature * total), owners.sum(axis=1)
        for m in range(1, k + 1):
            means[k - 1, m - 1] = np.where(owned == m, values, 0).mean()
            seconds[k - 1, m - 1] = np.where(owned == m, values**2, 0).mean()
        priors[k - 1] = np.exp(
            -cluster_penalty * k - (0 if ordered else gammaln(k + 1))
        )
    joint = priors[:, None] * means
    law = joint / joint.sum()
    # P_a = J_a / sum J: the error of each k's mean of (1{a} - P_a) value, summed.
    totals, squares = means.sum(axis=1), seconds.sum(axis=1)
    variance = np.zeros(cells)
    for i, j in np.ndindex(cells):
        own = np.arange(max_clusters) == i
        mean = own * means[i, j] - law[i, j] * totals
        second = own * (1 - 2 * law[i, j]) * seconds[i, j] + law[i, j] ** 2 * squares
        variance[i, j] = (priors**2 * (second - mean**2)).sum()
    return law, np.sqrt(variance / n_draws) / joint.sum()


def _prior_draws(rng, n_draws, n_features, half_width, prior, prior_scale):
    """Independent centers from the prior, on the ball of radius `half_width`."""
    if prior == "uniform":
        normal = rng.standard_normal((n_draws, n_features))
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        return half_width * rng.random((n_draws, 1)) ** (1 / n_features) * normal
    kept = np.empty((0, n_features))
    while len(kept) < n_draws:
        normal = rng.standard_normal((n_draws, n_features))
        student = normal * np.sqrt(3 / rng.chisquare(3, size=(n_draws, 1)))
        student *= np.sqrt(2) * prior_scale
        inside = np.linalg.norm(student, axis=1) <= half_width
        kept = np.concatenate([kept, student[inside]])
    return kept[:n_draws]
