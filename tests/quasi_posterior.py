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
