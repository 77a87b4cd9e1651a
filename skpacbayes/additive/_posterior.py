"""The posterior as a mixture of the models visited, its Monte Carlo errors.

Also its projection on a small set of variables.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, xlogy

from .._chains import r_hat
from ._chain import precision_factor

BLOCK = 2**20  # largest number of entries of the matrices solved at a time
ROWS_EACH = 3.0  # least rows per variable for integrating out the noise variance
LEAST_FREEDOM = 3.0  # and least degrees of freedom
N_BATCHES = 10  # batches of a chain, for Monte Carlo errors
UNCERTAIN = 0.05, 0.95  # inclusion probabilities between which R-hat is computed
# Of a projection: number of candidates fitted at each step, the best by score tests.
N_REFITTED = 3
RIDGE = 1e-6  # relative to the number of rows: functions may be linearly dependent
N_NEWTON = 50


class Posterior:
    """Weighted models, with the distribution of their coefficients.

    Given the model, the coefficients are normal; or Student's t, if the noise variance
    is integrated out; or known, if the chain draws them (`ridge` is None).

    Parameters
    ----------
    weights : ndarray of shape (n_models,)
        Probabilities of the models.
    columns : ndarray of shape (n_models, largest)
        Functions of each model, ascending, padded with -1.
    means : ndarray of shape (n_models, largest)
                Conditional means of the coefficients, padded with 0.
    log_weights : ndarray of shape (n_models,)
        Log posterior weights, up to a constant.
    shape : tuple of int
        Number of variables, and of functions per variable.
    variances : ndarray of shape (n_models,)
        Mean of the noise variance given each model. The covariance of the coefficients
        is this times (G + ridge I)^-1.
    ridge : float or None
        Ridge of the prior; None if coefficients are known.
    among : callable
        Returns G among some functions.
    freedom : float, default=0.0
        Degrees of freedom of Student's t distribution; 0: normal.
    """

    def __init__(
        self,
        weights,
        columns,
        means,
        log_weights,
        shape,
        *,
        variances,
        ridge,
        among,
        freedom=0.0,
    ):
        order = np.argsort(-weights, kind="stable")
        self.weights, self.columns = weights[order], columns[order]
        self.means, self.log_weights = means[order], log_weights[order]
        self.shape, self.freedom = shape, freedom
        self.variances, self.ridge = variances[order], ridge
        self.visited = np.unique(columns[columns >= 0])
        self._gram = None if ridge is None else among(self.visited)

    @classmethod
    def of_chains(cls, chains, shape, *, unit, among):
        """Return the posterior from the records of chains.

        Parameters
        ----------
        chains : list of Chain
            Chains with equal numbers of recorded moves.
        shape, among
            See the class.
        unit : float
            Unit of the coefficients.
        """
        parts = [chain.recorded() for chain in chains]
        largest = max(columns.shape[1] for _, columns, _, _ in parts)
        counts = np.concatenate(
            [np.bincount(path, minlength=len(columns)) for path, columns, _, _ in parts]
        )
        columns = np.concatenate([padded(part[1], largest, -1) for part in parts])
        means = unit * np.concatenate([padded(part[2], largest, 0.0) for part in parts])
        log_weights = np.concatenate([part[3] for part in parts])
        prior, linear = chains[0].prior, chains[0].linear
        if chains[0].draws:
            ridge, factors = None, np.ones(len(columns))
        else:
            first, group = distinct(columns)
            counts = np.bincount(group, weights=counts)
            columns, log_weights = columns[first], log_weights[first]
            ridge = prior.ridge
            means = conditional_means(columns, among, linear, ridge)
            fits = (means * np.append(linear, 0.0)[columns]).sum(axis=1)
            factors, means = noise_factors(prior, fits), unit * means
        return cls(
            counts / counts.sum(),
            columns,
            means,
            log_weights,
            shape,
            variances=unit**2 * factors,
            ridge=ridge,
            among=among,
            freedom=prior.freedom,
        )

    @classmethod
    def of_draws(cls, draws, shape):
        """Return the posterior of equally weighted draws, with known coefficients.

        Parameters
        ----------
        draws : list of Draw
            Functions of the models, with their coefficients.
        shape
            See the class.
        """
        largest = max(len(draw.columns) for draw in draws)
        columns = np.full((len(draws), largest), -1)
        means = np.zeros((len(draws), largest))
        for row, draw in enumerate(draws):
            columns[row, : len(draw.columns)] = draw.columns
            means[row, : len(draw.columns)] = draw.coefficients
        return cls(
            np.full(len(draws), 1 / len(draws)),
            columns,
            means,
            np.zeros(len(draws)),
            shape,
            variances=np.ones(len(draws)),
            ridge=None,
            among=None,
        )

    @property
    def noise_variance(self):
        """Posterior mean of the noise variance."""
        return float(self.weights @ self.variances)

    def inclusion(self):
        """Return inclusion probabilities of functions, (n_features, max_order)."""
        return self._spread(np.broadcast_to(self.weights[:, None], self.columns.shape))

    def mean(self):
        """Return the posterior mean of the coefficients, (n_features, max_order)."""
        return self._spread(self.weights[:, None] * self.means)

    def most_probable(self):
        """Return the conditional mean of the most probable model visited."""
        best = self.log_weights.argmax()
        return self._of_model(best, self.means[best])

    def draw(self, rng):
        """Draw coefficients, (n_features, max_order)."""
        model = rng.choice(len(self.weights), p=self.weights)
        columns = self._functions(model)
        values = self.means[model, : len(columns)].copy()
        if self.ridge is not None and len(columns):
            factor = self._factor(columns)
            normal = rng.standard_normal(len(columns))
            variance = self.variances[model]
            if self.freedom > 2:
                variance *= (self.freedom - 2) / rng.chisquare(self.freedom)
            scale = np.sqrt(variance)
            values += scale * solve_triangular(factor, normal, lower=True, trans=1)
        return self._of_model(model, values)

    def mean_of(self, draws):
        """Return the mean coefficients of some draws of one model."""
        columns = self._functions(draws[0])
        return self._of_model(draws[0], self.means[draws, : len(columns)].mean(axis=0))

    def variance(self, values, features=None):
        """Return the posterior variance of the sum of effects at rows.

        Parameters
        ----------
        values : ndarray of shape (n_chosen, max_order, n_samples)
            Values of the functions of the chosen variables.
        features : ndarray of shape (n_chosen,)
            The variables, ascending; None: all.
        """
        width = self.shape[1]
        flat = values.reshape(-1, values.shape[2])
        position = np.full(np.prod(self.shape), -1)
        chosen = (np.asarray(features)[:, None] * width + np.arange(width)).ravel()
        position[chosen] = np.arange(len(chosen))
        mean = np.zeros(flat.shape[1])
        second = np.zeros(flat.shape[1])
        for model, weight in enumerate(self.weights):
            columns = self._functions(model)
            rows = position[columns]
            here = rows >= 0
            if not here.any():
                continue
            part = flat[rows[here]]
            effect = self.means[model, : len(columns)][here] @ part
            mean += weight * effect
            second += weight * effect**2
            if self.ridge is not None:
                inner = np.zeros((len(columns), flat.shape[1]))
                inner[here] = part
                factor = self._factor(columns)
                inner = solve_triangular(factor, inner, lower=True)
                second += weight * self.variances[model] * (inner**2).sum(axis=0)
        return (second - mean**2).clip(0)

    def orders(self):
        """Return the orders of the models, (n_models, n_features)."""
        orders = np.zeros((len(self.weights), self.shape[0]), dtype=np.int16)
        rows, places = np.nonzero(self.columns >= 0)
        features = self.columns[rows, places] // self.shape[1]
        np.add.at(orders, (rows, features), 1)
        return orders

    def _functions(self, model):
        columns = self.columns[model]
        return columns[columns >= 0]

    def _factor(self, columns):
        """Return the Cholesky factor of a model's precision, in units of the noise."""
        place = np.searchsorted(self.visited, columns)
        return precision_factor(self._gram[np.ix_(place, place)], self.ridge)

    def _of_model(self, model, values):
        coefficients = np.zeros(self.shape)
        columns = self._functions(model)
        coefficients.flat[columns] = values[: len(columns)]
        return coefficients

    def _spread(self, values):
        """Sum values over the models, function by function."""
        inside = self.columns >= 0
        total = np.zeros(self.shape)
        np.add.at(total.reshape(-1), self.columns[inside], values[inside])
        return total


def distinct(columns):
    """Return the first index of each distinct model, and the index of each row's."""
    _, first, group = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def conditional_means(columns, among, linear, ridge):
    """Return the means P^-1 b of the coefficients of several models.

    Parameters
    ----------
    columns : ndarray of shape (n_models, largest)
        Functions of each model, padded with -1.
    among : callable
        Returns G among some functions.
    linear : ndarray of shape (n_functions,)
        b.
    ridge : float
        P = G + ridge I.

    Returns
    -------
    means : ndarray of shape (n_models, largest)
        The means, padded with 0.
    """
    visited = np.unique(columns[columns >= 0])
    q, largest = len(visited), columns.shape[1]
    gram = np.zeros((q + 1, q + 1))  # the last row is padding
    gram[:q, :q] = among(visited)
    linear = np.append(linear[visited], 0.0)
    places = np.where(columns < 0, q, np.searchsorted(visited, columns))
    means = np.zeros(columns.shape)
    step = max(1, BLOCK // max(1, largest**2))
    for start in range(0, len(columns), step):
        part = places[start : start + step]
        precision = gram[part[:, :, None], part[:, None]] + ridge * np.eye(largest)
        solved = np.linalg.solve(precision, linear[part][:, :, None])
        means[start : start + step] = solved[:, :, 0]
    return means


def padded(table, width, value):
    """Return a table padded to a width."""
    result = np.full((len(table), width), value, dtype=table.dtype)
    result[:, : table.shape[1]] = table
    return result


def may_integrate(settings, problem):
    """Return whether the noise variance can be integrated out.

    No other parameter may depend on it, and there must be enough rows for the number of
    variables and pairs: otherwise a model that fits the noise would make its own
    variance small.
    """
    given = settings.noise_variance, settings.slab, settings.inverse_temperature
    usual = given == ("auto", "gaussian", "likelihood")
    n_variables = np.count_nonzero(problem.gram.ranks)
    least = max(LEAST_FREEDOM + 1, ROWS_EACH * n_variables)
    return usual and settings.sampler == "collapsed" and problem.weight >= least


def integrated(prior, freedom, square):
    """Return the prior of a chain that integrates out the noise variance.

    The variance s^2 has the prior 1 / s^2, and the standard deviations of coefficients
    are s times those of the prior. The log weight of a model is then

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 + q log(ridge) / 2,

    b and P as in the kernel.

    Parameters
    ----------
    prior : Prior
        A normal prior, in units of the noise.
    freedom : float
        Degrees of freedom, the number of rows minus one.
    square : float
        Sum of squares of y minus its mean, in these units.
    """
    return prior._replace(freedom=freedom, square=square)


def noise_factors(prior, fits):
    """Return the mean noise variance given each model, in its unit; 1 if known.

    `fits` are b' P^-1 b.
    """
    if prior.freedom == 0:
        return np.ones_like(fits)
    rest = np.maximum(prior.square - fits, math.ulp(prior.square))
    return rest / max(prior.freedom - 2, 1.0)


class Run(NamedTuple):
    """Path of one chain through the models."""

    path: np.ndarray  # (n_draws,): number of the model of each draw
    columns: np.ndarray  # (n_models, largest): functions of each model, padded with -1
    values: np.ndarray  # (n_draws,): a quantity whose R-hat is reported


class Mixing(NamedTuple):
    """Diagnostics of chains."""

    r_hat: float  # largest R-hat
    errors: np.ndarray  # (n_features,): Monte Carlo errors of inclusion probabilities
    runs: tuple  # `Run` of each chain


def mixing(runs, inclusion, width):
    """Return the diagnostics of chains.

    R-hat is that of the values, and of the presence of each variable whose inclusion
    probability is between .05 and .95. The Monte Carlo errors are those of the means of
    ten batches of each chain; infinite where there are fewer draws than batches.

    Parameters
    ----------
    runs : list of Run
        Paths of the chains.
    inclusion : ndarray of shape (n_features,)
        Inclusion probabilities.
    width : int
        Number of functions of a variable.

    Returns
    -------
    found : Mixing
        The largest R-hat, the errors and the paths.
    """
    n_draws = min(len(run.path) for run in runs)
    low, high = UNCERTAIN
    series = [[run.values[:n_draws] for run in runs]]
    for feature in np.flatnonzero((inclusion > low) & (inclusion < high)):
        first = feature * width  # first function of the variable
        series.append(
            [
                (run.columns == first).any(axis=1)[run.path[:n_draws]].astype(float)
                for run in runs
            ]
        )
    means = [batch_means(run, len(inclusion), width) for run in runs]
    errors = np.full(len(inclusion), np.inf)
    if n_draws >= N_BATCHES:
        means = np.concatenate(means)
        errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return Mixing(float(r_hat(np.array(series)).max()), errors, tuple(runs))


def batch_means(run, n_features, width):
    """Return batch means of the presence of variables, (n_batches, n_features)."""
    features, places = np.divmod(run.columns, width)
    firsts = (run.columns >= 0) & (places == 0)
    models = np.nonzero(firsts)[0]
    means = np.zeros((N_BATCHES, n_features))
    for number, batch in enumerate(np.array_split(run.path, N_BATCHES)):
        counts = np.bincount(batch, minlength=len(run.columns))
        shares = counts[models] / max(len(batch), 1)
        means[number] = np.bincount(features[firsts], shares, minlength=n_features)
    return means


def variables_of(columns, n_features, width):
    """Return the mask (n_models, n_features) of the variables of each model."""
    models, places = np.nonzero((columns >= 0) & (columns % width == 0))
    present = np.zeros((len(columns), n_features), dtype=bool)
    present[models, columns[models, places] // width] = True
    return present


def projected_support(values, orders, targets, *, logistic, explained):
    """Select variables one at a time until their projection explains enough.

    The projection of a posterior's predictions on some variables is the additive
    function of these with the least divergence from the predictions [1]_.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    orders : ndarray of shape (n_features,)
        Number of functions of each variable; 0 leaves a variable out.
    targets : ndarray of shape (n_samples,)
        The predictions: means, or probabilities where `logistic`.
    logistic : bool
        Whether predictions are probabilities, with the divergence of Bernoulli
        distributions. Otherwise they are means, with the squared distance.
    explained : float
        Share of the divergence of a constant to be explained.

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
    """Return divergence and scores of the projection on some variables."""
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
    """Return the predicted decrease of the divergence by each further variable."""
    residuals, weights = residuals_of(targets, scores, logistic)
    slope = rows @ residuals
    curvature = (rows * weights) @ rows.T + RIDGE * len(targets) * np.eye(len(rows))
    return slope @ np.linalg.solve(curvature, slope)


def residuals_of(targets, scores, logistic):
    """Return slopes and curvatures of the log-likelihood in the scores."""
    if not logistic:
        return targets - scores, np.ones_like(scores)
    fitted = expit(scores)
    return targets - fitted, np.maximum(fitted * (1.0 - fitted), 1e-10)


def divergence_of(targets, scores, logistic):
    """Return the mean divergence of predictions by scores from the targets."""
    if not logistic:
        return 0.5 * np.mean(np.square(targets - scores))
    entropy = xlogy(targets, targets) + xlogy(1 - targets, 1 - targets)
    cross = np.logaddexp(0.0, scores) - targets * scores
    return max(0.0, float(np.mean(entropy + cross)))


def link(probability):
    """Return the log odds of a probability, clipped away from 0 and 1."""
    probability = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(probability / (1 - probability))
