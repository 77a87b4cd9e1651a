"""Results of chains: the posterior as a mixture of the models visited, its errors."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from .._chains import r_hat
from ..certificates.additive import precision_factor
from ._basis import Dictionary, Orthonormal, Pairs

SELECTED = 0.5  # least inclusion probability of a variable that is selected
BLOCK = 2**20  # largest number of values in memory: of matrices, or of functions
N_BATCHES = 10  # batches of a chain, for Monte Carlo errors
UNCERTAIN = 0.05, 0.95  # inclusion probabilities between which R-hat is computed


class Posterior:
    """Weighted models, with the distribution of their coefficients.

    Given the model, the coefficients are normal; or Student's t, if the noise variance
    is integrated out; or known, if the chain draws them (`ridge` is None).

    Parameters
    ----------
    chains : list of Chain or of DrawnChain
        Chains with equal numbers of recorded moves.
    shape : tuple of int
        Number of variables, and of functions per variable.
    unit : float, default=1.0
        Unit of the coefficients.
    among : callable, default=None
        Returns G among some functions; not used if the chains draw coefficients.

    Attributes
    ----------
    counts : ndarray of shape (n_models,)
        Numbers of draws of the models, the largest first.
    weights : ndarray of shape (n_models,)
        Probabilities of the models.
    columns : ndarray of shape (n_models, largest)
        Functions of each model, ascending, padded with -1.
    means : ndarray of shape (n_models, largest)
        Conditional means of the coefficients, padded with 0.
    log_weights : ndarray of shape (n_models,)
        Log posterior weights, up to a constant.
    variances : ndarray of shape (n_models,)
        Mean of the noise variance given each model. The covariance of the coefficients
        is this times (G + ridge I)^-1.
    ridge : float or None
        Ridge of the prior; None if coefficients are known.
    freedom : float
        Degrees of freedom of Student's t distribution; 0: normal.
    visited : ndarray of int
        All functions of any model.
    """

    def __init__(self, chains, shape, *, unit=1.0, among=None):
        parts = [chain.recorded() for chain in chains]
        largest = max(columns.shape[1] for _, columns, _, _ in parts)
        counts = np.concatenate(
            [np.bincount(path, minlength=len(columns)) for path, columns, _, _ in parts]
        )
        columns = np.concatenate([padded(part[1], largest, -1) for part in parts])
        means = unit * np.concatenate([padded(part[2], largest, 0.0) for part in parts])
        log_weights = np.concatenate([part[3] for part in parts])
        prior = chains[0].prior
        self.ridge, self._gram, factors = None, None, np.ones(len(columns))
        self.visited = np.unique(columns[columns >= 0])
        if not chains[0].draws:
            first, group = distinct(columns)
            counts = np.bincount(group, weights=counts)
            columns, log_weights = columns[first], log_weights[first]
            self.ridge, linear = prior.ridge, chains[0].linear
            means = conditional_means(columns, among, linear, self.ridge)
            fits = (means * np.append(linear, 0.0)[columns]).sum(axis=1)
            factors, means = noise_factors(prior, fits), unit * means
            self._gram = among(self.visited)
        order = np.argsort(-counts, kind="stable")
        self.counts, self.columns = counts[order], columns[order]
        self.weights = self.counts / self.counts.sum()
        self.means, self.log_weights = means[order], log_weights[order]
        self.variances = (unit**2 * factors)[order]
        self.shape, self.freedom = shape, prior.freedom

    @property
    def noise_variance(self):
        """Posterior mean of the noise variance."""
        return float(self.weights @ self.variances)

    def inclusion(self):
        """Return inclusion probabilities of functions, (n_features, max_order)."""
        counts = np.broadcast_to(self.counts[:, None], self.columns.shape)
        return self._spread(counts) / self.counts.sum()  # exact: 1 if in all draws

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

    def variance(self, values, features):
        """Return the posterior variance of the sum of effects at rows.

        Parameters
        ----------
        values : ndarray of shape (n_chosen, max_order, n_samples)
            Values of the functions of the chosen variables.
        features : ndarray of shape (n_chosen,)
            The variables, ascending.
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


def runs_of(recorded):
    """Return the paths of chains, with exactly equal log weights of equal models.

    The last digits of a log weight depend on the sequence of the variables. R-hat uses
    ranks, and would treat them as a difference between chains.
    """
    counts = np.cumsum([len(columns) for _, columns, _, _ in recorded])[:-1]
    largest = max(columns.shape[1] for _, columns, _, _ in recorded)
    columns = np.concatenate([padded(each[1], largest, -1) for each in recorded])
    first, group = distinct(columns)
    log_weights = np.concatenate([each[3] for each in recorded])[first][group]
    return [
        Run(path, columns, own[path])
        for (path, columns, _, _), own in zip(
            recorded, np.split(log_weights, counts), strict=True
        )
    ]


def mixing(runs, inclusion, width):
    """Return the largest R-hat of chains, and errors of inclusion probabilities.

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
    largest : float
        The largest R-hat.
    errors : ndarray of shape (n_features,)
        Monte Carlo errors of the inclusion probabilities.
    """
    n_draws = min(len(run.path) for run in runs)
    low, high = UNCERTAIN
    present = [variables_of(run.columns, len(inclusion), width) for run in runs]
    series = [[run.values[:n_draws] for run in runs]]
    for feature in np.flatnonzero((inclusion > low) & (inclusion < high)):
        paths = zip(present, runs, strict=True)
        series.append([own[run.path[:n_draws], feature] for own, run in paths])
    errors = np.full(len(inclusion), np.inf)
    if n_draws >= N_BATCHES:
        means = map(batch_means, present, (run.path for run in runs))
        means = np.concatenate(list(means))
        errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return float(r_hat(np.array(series, dtype=float)).max()), errors


def batch_means(present, path):
    """Return batch means of the presence of variables, (n_batches, n_features).

    `present` is the mask of the variables of each model.
    """
    models, features = np.nonzero(present)
    means = np.zeros((N_BATCHES, present.shape[1]))
    for number, batch in enumerate(np.array_split(path, N_BATCHES)):
        counts = np.bincount(batch, minlength=len(present))
        shares = counts[models] / max(len(batch), 1)
        means[number] = np.bincount(features, shares, minlength=len(means[number]))
    return means


def variables_of(columns, n_features, width):
    """Return the mask (n_models, n_features) of the variables of each model."""
    models, places = np.nonzero((columns >= 0) & (columns % width == 0))
    present = np.zeros((len(columns), n_features), dtype=bool)
    present[models, columns[models, places] // width] = True
    return present


class Fitted(NamedTuple):
    """Results of the chains that predictions and fitted attributes use."""

    dictionary: Dictionary
    functions: Orthonormal
    posterior: Posterior
    inverse_temperature: float
    acceptance_rate: float
    r_hat: float
    errors: np.ndarray  # Monte Carlo errors of the inclusion probabilities
    coefficients: np.ndarray | None = None  # used by predictions
    intercept: float = 0.0
    n_variables_needed: int = 0  # for many weak effects, if larger than `most`
    weak_gain: float = 0.0  # log evidence for them, if inconclusive
    # Probability of no variable if the noise variance, which was estimated, is unknown;
    # 0 if it was not estimated.
    nothing: float = 0.0
    full: int = 0  # largest number of variables, if a chain reached it; else 0
    noise_variance: float = 0.0
    intercept_variance: float = 0.0
    variance_factor: float = 1.0  # of predictive variances, if the noise was estimated
    intercepts: np.ndarray | None = None  # of the draws, with two classes
    threshold: float = 0.0  # subtracted from the log odds of a ranker
    radius: float = np.inf
    slab_scale: float = 1.0
    most: int = 0  # largest number of variables in a model
    runs: tuple = ()  # `Run` of each chain
    pairs: Pairs | None = None  # pairs of variables, numbered after the variables
    freedom: float = np.inf  # degrees of freedom of the noise
    residual_variance: float = 0.0  # of all rows, if the noise has heavy tails
    far_rows: tuple = ()  # weights of far rows above and below, if most are on one side
    reach: np.ndarray | None = None  # (2, n_features): limits beyond which rows are far
    dispersion: float = 1.0  # of counts
    growth: float = 0.0  # of the dispersion with the mean
    total_weight: float = 0.0  # of the rows of counts
    classes: tuple = ()  # with several classes, a `Fitted` for each score

    @classmethod
    def of_chains(cls, problem, chains, posterior, runs, **others):
        """Return the results of chains.

        Parameters
        ----------
        problem : Problem
            Has the `dictionary`, the `functions`, the `ranks` and the `pairs`.
        chains : list of Chain or of DrawnChain
            The chains: their `prior`, and the numbers of `moves` tried and accepted.
        posterior : Posterior
            The posterior.
        runs : list of Run
            Paths of the chains.
        **others
            Further fields.
        """
        largest, errors = mixing(runs, posterior.inclusion()[:, 0], posterior.shape[1])
        tried, accepted = np.sum([chain.moves for chain in chains], axis=0)
        most = chains[0].prior.most
        full = most in (posterior.orders() > 0).sum(axis=1)
        found = cls(
            dictionary=problem.dictionary,
            functions=problem.functions,
            posterior=posterior,
            acceptance_rate=float(accepted / max(tried, 1)),
            r_hat=largest,
            errors=errors,
            runs=tuple(runs),
            full=most if full and most < np.count_nonzero(problem.ranks) else 0,
            pairs=problem.pairs,
            **others,
        )
        return found._replace(reach=found.dictionary.reach(found.selected))

    @property
    def selected(self):
        """Mask of the variables of inclusion probability 1/2 or more."""
        n_features = len(self.dictionary.low)
        return self.posterior.inclusion()[:n_features, 0] >= SELECTED

    @property
    def scores(self):
        """Results for each score: one, or one for each of several classes."""
        return self.classes or (self,)

    def predicting_by(self, draws):
        """Return a copy with the mean coefficients of some draws; None: all."""
        posterior = self.posterior
        if draws is None:
            coefficients, intercept = posterior.mean(), self.intercepts.mean()
        else:
            coefficients = posterior.mean_of(draws)
            intercept = self.intercepts[draws].mean()
        return self._replace(coefficients=coefficients, intercept=float(intercept))

    def values(self, X, terms):
        """Return values of the functions of terms: variables, then pairs, ascending.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        terms : sequence of int
            Columns of variables; n_features + j is pair j.

        Returns
        -------
        values : ndarray of shape (n_terms, n_functions, n_samples)
            The values.
        """
        terms, n_features = np.asarray(terms, dtype=int), X.shape[1]
        mains, pairs = terms[terms < n_features], terms[terms >= n_features]
        values = self.functions(self.dictionary(X, mains), mains)
        if len(pairs) == 0:
            return values
        return np.concatenate([values, self.pairs(X, pairs - n_features)])

    # Answers at validated rows.

    def decision(self, X):
        """Return intercept plus effects of each score."""
        return side_by_side([part._sum_of_effects(X) for part in self.scores])

    def _sum_of_effects(self, X):
        """Return intercept plus effects of the only score."""
        features = np.flatnonzero(self.coefficients.any(axis=1))
        result = np.full(len(X), float(self.intercept))
        for rows in self._blocks(X, features):
            values = self.values(X[rows], features)
            result[rows] += np.tensordot(self.coefficients[features], values, 2)
        return result

    def variance(self, X):
        """Return the posterior variance of the sum of effects."""
        features = np.unique(self.posterior.visited // self.posterior.shape[1])
        result = np.zeros(len(X))
        for rows in self._blocks(X, features):
            values = self.values(X[rows], features)
            result[rows] = self.posterior.variance(values, features)
        return result

    def effect(self, X, term):
        """Return the effect of a variable or pair on each score, and its deviation."""
        effects, deviations = [], []
        for part in self.scores:
            values = part.values(X, [term])
            effects.append(part.posterior.mean()[term] @ values[0])
            variance = part.posterior.variance(values, np.array([term]))
            deviations.append(np.sqrt(variance))
        return side_by_side(effects), side_by_side(deviations)

    def draw(self, rng):
        """Draw coefficients; with several classes, of all in one draw."""
        if not self.classes:
            return self.posterior.draw(rng)
        draw = [rng.integers(len(self.classes[0].posterior.weights))]
        return np.array([part.posterior.mean_of(draw) for part in self.classes])

    def scores_of_draws(self, X):
        """Yield slices of rows, and their scores for all draws.

        The shape is (n_draws, n_rows), with several classes (n_classes, n_draws,
        n_rows).
        """
        parts, width = self.scores, self.posterior.shape[1]
        visited = np.concatenate([part.posterior.visited for part in parts])
        features = np.unique(visited // width)
        tables = [_coefficients_of_draws(part.posterior, features) for part in parts]
        for rows in self._blocks(X, features, len(parts) * len(tables[0])):
            values = self.values(X[rows], features)
            flat = values.reshape(len(features) * width, values.shape[2])
            scores = [
                table @ flat + part.intercepts[:, None]
                for table, part in zip(tables, parts, strict=True)
            ]
            yield rows, np.array(scores) if self.classes else scores[0]

    def _blocks(self, X, features, n_others=0):
        """Return slices of rows whose values of functions fit into `BLOCK`.

        `n_others`: number of other values per row in memory.
        """
        n_values = len(features) * self.dictionary.width
        step = max(1, BLOCK // max(1, n_values, n_others // 4))
        return [slice(start, start + step) for start in range(0, len(X), step)]


def _coefficients_of_draws(posterior, features):
    """Return the coefficients of some features: a row for each draw."""
    columns, width = posterior.columns, posterior.shape[1]
    places = np.searchsorted(features, columns // width) * width + columns % width
    places[columns < 0] = len(features) * width  # padding goes to an extra column
    table = np.zeros((len(columns), len(features) * width + 1))
    np.put_along_axis(table, places, posterior.means, axis=1)
    return table[:, :-1]


def side_by_side(scores):
    """Return a column for each of several scores, or the only one."""
    return scores[0] if len(scores) == 1 else np.column_stack(scores)
