"""What a regression chooses before its chains run: models, noise, tails, effects."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, eigh, solve_triangular
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from ..certificates.additive import log_binomial, log_prior_mass, precision_factor
from ._basis import weighted_quantiles
from ._chain import Chain, Prior
from ._posterior import conditional_means

NEGLIGIBLE = 1e-8  # share of the variance of y below which noise is zero
RIDGE = 1e-8  # of the greedy search, relative to the functions' squares
# Of heavy tails.
FREEDOMS = 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0  # degrees of freedom that are tried
MARGIN = math.log(20)  # least gain in log-likelihood
N_ROUNDS, N_STEPS = 6, 50  # iterations over models and weights; over weights and scale
LEAST_SQUARE = 1e-200  # of a scale: most of the weight is on residuals that are 0
FAR = 2.5  # in scales; residuals beyond it are in the tails
DOUBTFUL = 10.0  # in scales; rows with larger residuals may be wrong
MOST_LEVELS = 20  # distinct values of y up to which it is not continuous
FEW = 5  # least excess of such rows on one side, by weight
# Slopes of the log variance per standard deviation of predictions, which are clipped at
# FARTHEST.
SLOPES, FARTHEST = np.linspace(-2, 2, 17), 3.0
CONSTANT = 1e-12  # relative deviation of predictions that counts as rounding
LEVEL = 0.05  # of the test for bias of predictions
N_PILOTS, PILOT_MOVES = 3, 200  # short runs that estimate the noise
# Of weak effects.
# Least gain in log evidence, beyond the penalty of fitted variances.
WEAK_MARGIN = 8.0
DOUBT = 1.0  # log evidence from which `fit` warns that the choice is uncertain
MOST_COMPARED = 50  # visited models that are compared with the empty one
LARGEST = 1000  # largest min(n_rows, n_variables), as the cost is cubic
RATIOS = np.geomspace(1e-6, 10.0, 60)  # of variances, coefficients over noise


# First models and the noise.


def first_state(setup, starts):
    """Choose initial models, the variance of the noise, and few or many effects.

    Parameters
    ----------
    setup : Setup
        Makes the chains.
    starts : Starts or None
        Initial models, and a first estimate of the noise; None: from a greedy model.

    Returns
    -------
    models : list
        A model for each chain.
    noise_variance : float
        The variance, given or estimated.
    effects : Effects
        Few effects, or many where these are chosen.
    """
    estimator, effects = setup.estimator, setup.effects
    models, noise = first_models(setup) if starts is None else starts
    if estimator.noise_variance != "auto":
        return models, float(estimator.noise_variance), effects
    pilot, before, noise = estimated_noise(setup, models[0], noise)
    models = [pilot.model, *models[1:]]
    given = estimator.slab_scale, estimator.slab, estimator.inverse_temperature
    if given == ("auto", "gaussian", "likelihood"):
        effects = few_or_many(
            setup.problem, pilot.recorded(), before, estimator.beta, setup.most
        )
    if effects.noise_variance is not None:
        noise = effects.noise_variance
        if starts is None:
            every = np.arange(len(setup.problem.functions.orders))
            models[1:] = [first_orders(setup, every)] * (len(models) - 1)
    return models, noise, effects


def first_models(setup):
    """Return initial models, greedy for the first chain, and the noise of this model.

    The other models are empty. With pairs, they have all variables of these, as a pair
    can be added only to a model with both of its variables.
    """
    *first, noise, _ = greedy_model(setup.problem, setup.readers[0], setup.most)
    other = first_orders(setup, np.unique(setup.problem.gram.pairs))
    return [first] + [other] * (len(setup.readers) - 1), noise


def first_orders(setup, features):
    """Return the model of some variables, each of order 1."""
    features = features[setup.ranks[features] > 0]
    return features, np.ones_like(features)


def estimated_noise(setup, model, noise):
    """Estimate the noise by short runs from a model.

    Returns
    -------
    pilot : Chain
        The chain, with the record of the last run.
    before, noise : float
        The variance of the noise in the last run, and that estimated by it.
    """
    temperature = setup.temperature(noise)
    pilot = setup.chain(setup.kind, 0, model, temperature)
    setup.choose_among([pilot], model, temperature)
    for number in range(N_PILOTS):
        if number:
            temperature = setup.temperature(noise)
            pilot.change(*setup.form(0, temperature.unit))
        pilot.expect(PILOT_MOVES)
        pilot.advance(PILOT_MOVES)
        noise = expected_noise(pilot, setup.problem, temperature.unit)
    return pilot, temperature.noise_variance, noise


def greedy_model(problem, reader, most):
    """Add the variable and order that lower the BIC most, as long as any does.

    The criterion adds 2 log(n_features) for each variable, for the choice among all. A
    pair counts as one variable; those of its variables that are not in the model are
    added with it, of order 1.

    Parameters
    ----------
    problem : Problem
        The regression.
    reader : Reader
        The rows of its Gram matrix.
    most : int
        Largest number of variables.

    Returns
    -------
    features, orders : ndarray of shape (n_variables,)
        The model.
    noise_variance : float
        Mean squared residual, over the degrees of freedom.
    criterion : float
        The criterion, minus twice the log evidence up to bounded terms.
    """
    ranks, weight, pairs = problem.gram.ranks, problem.weight, problem.gram.pairs
    if len(pairs):
        reader = reader.without_pairs()
    prior = Prior.flat(ranks, most, RIDGE * weight)
    chain = Chain(reader, problem.against, prior, np.random.default_rng(0))
    order = np.arange(1, problem.gram.diagonal.shape[1] + 1)
    parents = [set()] * (len(ranks) - len(pairs)) + [set(map(int, p)) for p in pairs]
    least = least_noise(problem) * weight
    fit, used = 0.0, 0
    features, orders = [], []
    best = weight * np.log(max(problem.square, least))
    while len(features) < prior.most:
        chain.start(features, orders)
        chain.weigh_neighbors()
        gains = chain.state.fits.reshape(len(ranks), len(order))
        residual = np.maximum(problem.square - 2 * (fit + gains), least)
        lacking = np.array([len(own.difference(features)) for own in parents])[:, None]
        functions = used + order + lacking
        allowed = (order <= ranks[:, None]) & (5 * functions <= weight)
        allowed[features] = False
        allowed &= len(features) + lacking < prior.most
        if not allowed.any():
            break
        price = model_price(problem, functions, len(features) + 1 + lacking)
        criterion = np.where(allowed, weight * np.log(residual) + price, np.inf)
        j, a = np.unravel_index(criterion.argmin(), criterion.shape)
        if not criterion[j, a] < best:
            break
        best, fit, used = criterion[j, a], fit + gains[j, a], int(functions[j, a])
        first = sorted(parents[j].difference(features))
        features += [*first, int(j)]
        orders += [1] * len(first) + [int(order[a])]
        if first:
            fit = explained(chain, features, orders)
    noise = (problem.square - 2 * fit) / max(weight - 1 - used, 1.0)
    noise = max(noise, least_noise(problem))
    return np.array(features, dtype=int), np.array(orders, dtype=int), noise, best


def model_price(problem, n_functions, n_variables):
    """Return the penalty of a model in the criterion."""
    choice = 2 * np.log(len(problem.gram.ranks))
    return n_functions * np.log(problem.weight) + n_variables * choice


def explained(chain, features, orders):
    """Return the half sum of squares explained by a model."""
    chain.start(features, orders)
    chain.weigh_neighbors()
    return float(chain.state.solution @ chain.state.solution) / 2


def expected_noise(chain, problem, unit):
    """Return the mean over a run of residual squares over degrees of freedom."""
    path, columns, means, _ = chain.recorded()
    counts, totals = np.bincount(path), (columns >= 0).sum(axis=1)
    if not chain.draws:
        among, ridge = chain.reader.among, chain.prior.ridge
        means = conditional_means(columns, among, chain.linear, ridge)
    fits = unit * (means * np.append(problem.against, 0.0)[columns]).sum(axis=1)
    freedom = np.maximum(problem.weight - 1 - totals, 1.0)
    noise = np.average((problem.square - fits) / freedom, weights=counts)
    return max(float(noise), least_noise(problem))


def least_noise(problem):
    """Return the smallest noise variance that counts as positive."""
    variance = problem.square / problem.weight
    return max(NEGLIGIBLE * variance, 1e-24 * problem.mean**2, 1e-300)


# Heavy tails: rows weighted as under Student's t noise, if that fits better.


class Tails(NamedTuple):
    """Student's t distribution, fitted to residuals."""

    freedom: float  # degrees of freedom
    residual_variance: float
    far_rows: tuple = ()  # weights of far rows above and below, if most are on one side


NORMAL = Tails(math.inf, 0.0)


class Fit(NamedTuple):
    """A greedy model, fitted to weighted rows."""

    residuals: np.ndarray  # of all rows
    variance: float  # mean square of the residuals
    price: float  # penalty of the model, in log-likelihood


def heavy_tailed(rows, problem, most):
    """Weight rows as under Student's t noise, if that is clearly more probable.

    A greedy model is fitted with the current weights, and Student's t distribution to
    its residuals r. The weight of a row is its expected precision, (v + 1) / (v + (r /
    s)^2), with v degrees of freedom and scale s [1]_. The two steps alternate, starting
    from the weights for the empty model: a model fitted with equal weights may include
    variables to explain outliers.

    The weights are used if three conditions hold: the log-likelihood minus the BIC
    penalty of the model exceeds that under normal noise by log 20 ("strong" evidence)
    plus log(n_rows) / 2; the residuals are not biased, as under symmetric noise; and
    the same residuals are less likely under normal noise whose variance depends on the
    prediction, as for counts.

    Parameters
    ----------
    rows : Rows
        The rows.
    problem : Problem
        The regression on the rows.
    most : int
        Largest number of variables in a model.

    Returns
    -------
    problem : Problem
        The regression on the rows, with `tails` if they are reweighted or doubtful.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). Robust statistical
       modeling using the t distribution. JASA 84.
    """
    total, unit = rows.weights.sum(), problem.largest
    if not unit > 0:
        return problem
    price = MARGIN + 0.5 * math.log(total)
    usual = greedy_fit(rows, problem, most, unit)
    if usual.variance * unit**2 <= least_noise(problem):
        return problem
    (median,) = weighted_quantiles(rows.y[:, None], rows.weights[:, None], [0.5])
    alone = (rows.y - median) / unit
    if not any(gain(each, rows.weights) > price for each in (usual.residuals, alone)):
        return problem
    *_, factors = fit_student(alone, rows.weights)
    for _ in range(N_ROUNDS):
        weights = rows.weights * factors
        reweighted = rows.reweighted(weights * (total / weights.sum()))
        found = reweighted.problem(problem.dictionary, False, problem.gram.pairs)
        fit, before = greedy_fit(rows, found, most, unit), factors
        value, freedom, scale, factors = fit_student(fit.residuals, rows.weights)
        if np.allclose(factors, before, rtol=0.05):
            break
    least = normal_log_likelihood(usual.residuals, rows.weights) - usual.price + price
    predictions = rows.y / unit - fit.residuals
    if not value - fit.price > least:
        return problem
    if is_biased(fit.residuals, predictions, rows.weights, scale):
        above, below = (
            float(rows.weights[side * fit.residuals > DOUBTFUL * scale].sum())
            for side in (1, -1)
        )
        if abs(above - below) >= FEW and len(np.unique(rows.y)) > MOST_LEVELS:
            return problem._replace(tails=NORMAL._replace(far_rows=(above, below)))
        return problem
    if not value > sloped_log_likelihood(fit.residuals, predictions, rows.weights):
        return problem
    return found._replace(tails=Tails(freedom, fit.variance * unit**2))


def greedy_fit(rows, problem, most, unit):
    """Fit a greedy model; return its residuals in units of `unit`."""
    features, orders, *_ = greedy_model(problem, problem.gram.reader(), most)
    width = problem.gram.diagonal.shape[1]
    columns = [
        np.arange(j * width, j * width + k)
        for j, k in zip(features, orders, strict=True)
    ]
    columns = np.concatenate([np.zeros(0, dtype=int), *columns])
    factor = precision_factor(problem.gram.among(columns), RIDGE * problem.weight)
    means = cho_solve((factor, True), problem.against[columns])
    residuals = rows.y - problem.mean - means @ problem.gram.values_of(columns)
    residuals /= unit
    variance = float(rows.weights @ residuals**2 / rows.weights.sum())
    price = model_price(problem, orders.sum(), len(features)) / 2
    return Fit(residuals, variance, price)


def gain(residuals, weights):
    """Return the gain in log-likelihood of Student's t over a normal distribution."""
    return fit_student(residuals, weights)[0] - normal_log_likelihood(
        residuals, weights
    )


def normal_log_likelihood(residuals, weights):
    """Return the largest log-likelihood of normal distributions of mean 0."""
    total = weights.sum()
    variance = max(weights @ residuals**2 / total, 1e-300)
    return -total / 2 * (math.log(2 * math.pi * variance) + 1)


def sloped_log_likelihood(residuals, predictions, weights):
    """Return the largest log-likelihood of normal noise with log-linear variance."""
    total = weights.sum()
    mean = weights @ predictions / total
    places = predictions - mean
    deviation = math.sqrt(weights @ places**2 / total)
    if not deviation > CONSTANT * (1 + abs(mean)):
        return normal_log_likelihood(residuals, weights)
    places = (places / deviation).clip(-FARTHEST, FARTHEST)
    places -= weights @ places / total  # the factors then have geometric mean 1
    return max(
        normal_log_likelihood(residuals * np.exp(-slope / 2 * places), weights)
        for slope in SLOPES
    )


def fit_student(residuals, weights):
    """Fit Student's t of mean 0: log-likelihood, freedom, scale, relative weights."""
    best = (-math.inf, math.inf, 1.0, np.ones_like(residuals))
    total = weights.sum()
    start = (weights @ abs(residuals) / total) ** 2
    if not start > 0:
        return best
    for freedom in FREEDOMS:
        square = start
        for _ in range(N_STEPS):
            if square < LEAST_SQUARE:
                break
            factors = (freedom + 1) / (freedom + residuals**2 / square)
            square = (weights * factors) @ residuals**2 / total
        if square < LEAST_SQUARE:
            continue
        terms = np.log1p(residuals**2 / (freedom * square))
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
        constant -= math.log(freedom * math.pi * square) / 2
        value = total * constant - (freedom + 1) / 2 * (weights @ terms)
        if value > best[0]:
            best = float(value), freedom, math.sqrt(square), factors
    return best


def is_biased(residuals, predictions, weights, scale):
    """Return whether predictions of the mean of y are significantly biased.

    The test uses three sums: of the residuals, of their products with the predictions,
    and of the signs of residuals beyond 2.5 scales. Each, divided by the root of its
    sum of squares, is nearly standard normal without bias, however heavy the tails.
    """
    predictions = predictions - weights @ predictions / weights.sum()
    far = np.sign(residuals) * (abs(residuals) > FAR * scale)
    terms = np.array([residuals, residuals * predictions, far])
    squares = terms**2 @ weights
    scores = (terms @ weights) ** 2 / np.where(squares > 0, squares, 1.0)
    return scores.sum() > chi2.ppf(1 - LEVEL, 3)


# Few clear effects, or many weak ones, by their evidence.


class Effects(NamedTuple):
    """Whether effects are few and clear, or many and weak."""

    # Of many effects: the variances of a coefficient, and of the noise.
    slab_variance: float | None = None
    noise_variance: float | None = None
    n_variables_needed: int = 0  # for many effects, if a model cannot have all
    weak_gain: float = 0.0  # log evidence for many effects, if it is inconclusive


class Linear(NamedTuple):
    """The linear regression on all variables."""

    slab_variance: float  # of a coefficient
    noise_variance: float
    log_evidence: float


def few_or_many(problem, recorded, noise, beta, most):
    """Compare few clear effects with many weak ones.

    The evidence of few effects is that of the models that a chain visited. The evidence
    of many weak effects is that of the regression on the first function of every
    variable, with fitted variances of coefficients and noise, each penalised by log(n)
    / 2. Many effects are preferred if they are exp(8) times as probable: exp(5) is
    "very strong" evidence [1]_, and a chain does not visit all models.

    Parameters
    ----------
    problem : Problem
        The regression.
    recorded : tuple of ndarray
        Record of a chain under the default prior.
    noise : float
        Noise variance of that chain.
    beta : float
        Each function multiplies the prior by beta.
    most : int
        Largest number of variables in a model.

    Returns
    -------
    effects : Effects
        The effects; few, if there is nothing to compare.

    References
    ----------
    .. [1] R. E. Kass and A. E. Raftery (1995). Bayes factors. JASA 90.
    """
    spectrum, least = explained_squares(problem), least_noise(problem)
    if spectrum is None or problem.square <= problem.weight * least:
        return Effects()
    _, columns, _, log_weights = recorded
    _, first = np.unique(columns, axis=0, return_index=True)
    few = logsumexp(log_weights[first]) - problem.square / (2 * noise)
    few -= (problem.weight - 1) / 2 * math.log(noise)
    ranks = problem.functions.orders
    n_variables = np.count_nonzero(ranks)
    few -= log_prior_mass(ranks, beta, min(most, n_variables))
    many = linear_evidence(problem, *spectrum, least)
    gain = float(many.log_evidence - math.log(problem.weight) - few)
    if not gain > WEAK_MARGIN:
        return Effects(weak_gain=gain if gain > DOUBT else 0.0)
    if n_variables > most:
        return Effects(n_variables_needed=n_variables)
    return Effects(many.slab_variance, many.noise_variance)


def nothing_matters(problem, posterior, beta, ratio):
    """Return the probability of the empty model among it and the visited models.

    The variance of the noise has the prior 1 / s^2, and the log evidence of a model
    with q functions is, up to a constant,

        log prior - (n - 1) log(y'y - b' P^-1 b) / 2 - log|P| / 2 - q log(ratio) / 2.

    Parameters
    ----------
    problem : Problem
        The regression.
    posterior : Posterior
        The visited models; the `MOST_COMPARED` most probable ones are compared.
    beta : float
        Each function multiplies the prior by beta.
    ratio : float
        Variance of coefficients over that of the noise.
    """
    width, d = problem.gram.diagonal.shape[1], np.count_nonzero(problem.gram.ranks)
    logs, least = [0.0], 1e-10 * problem.square
    for model in posterior.columns[np.argsort(-posterior.weights)[:MOST_COMPARED]]:
        columns = model[model >= 0]
        n_functions, n_variables = len(columns), len(np.unique(columns // width))
        if not n_functions:
            continue
        factor = precision_factor(problem.gram.among(columns), 1 / ratio)
        fit = solve_triangular(factor, problem.against[columns], lower=True)
        share = 1.0  # of squares that remain; all, where y is constant
        if problem.square > 0.0:
            share = max(problem.square - fit @ fit, least) / problem.square
        logs.append(
            n_functions * math.log(beta)
            - log_binomial(d, n_variables)
            - (problem.weight - 1) / 2 * math.log(share)
            - np.log(np.diag(factor)).sum()
            - n_functions / 2 * math.log(ratio)
        )
    return math.exp(-logsumexp(logs))


def explained_squares(problem):
    """Return the eigenvalues of the first functions' G, and explained squares of y.

    None if there are too many rows and variables, or fewer than two variables.
    """
    width = problem.gram.diagonal.shape[1]
    columns = np.flatnonzero(problem.functions.orders) * width
    values = getattr(problem.gram, "values", None)
    n_rows = len(columns) if values is None else values.shape[2]
    if not 2 <= min(len(columns), n_rows) <= LARGEST:
        return None
    linear = problem.against[columns]
    if n_rows >= len(columns):
        squares, directions = eigh(problem.gram.among(columns))
        shares = directions.T @ linear
        some = squares > 1e-10 * squares[-1]
        return squares[some], shares[some] ** 2 / squares[some]
    design = values[columns // width, 0] * np.sqrt(problem.gram.weights)
    squares, directions = eigh(design.T @ design)
    some = squares > 1e-10 * squares[-1]
    shares = directions[:, some].T @ (design.T @ linear)
    return squares[some], (shares / squares[some]) ** 2


def linear_evidence(problem, squares, explained, least=1e-300):
    """Fit the variances of a regression on all variables by maximum evidence.

    The variance of the noise is at least `least`.
    """
    n = problem.weight - 1
    rest = max(problem.square - explained.sum(), 0.0)
    damped = 1 + RATIOS[:, None] * squares
    residuals = (explained / damped).sum(axis=1) + rest
    noises = np.maximum(residuals / n, least)
    logs = -n / 2 * np.log(noises) - residuals / (2 * noises)
    logs -= np.log(damped).sum(axis=1) / 2
    best = logs.argmax()
    return Linear(RATIOS[best] * noises[best], float(noises[best]), float(logs[best]))
