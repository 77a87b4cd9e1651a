"""ABCPosteriorKDE against posteriors that are known, and against its definition."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import binom, norm

from skpacbayes import ABCPosteriorKDE
from skpacbayes.likelihood_free._abc_local import Accepted

NOISE = 0.5  # deviation of a summary about its parameter, whose prior is N(0, 1)
SHRINK = 1 / (1 + NOISE**2)  # posterior N(SHRINK s, SHRINK NOISE^2)


def conjugate(n, n_summaries, generator, n_parameters=1):
    """Summaries, of which the first are parameters and noise, the others noise."""
    y = generator.normal(size=(n, n_parameters))
    X = generator.normal(size=(n, n_summaries))
    X[:, :n_parameters] = y + NOISE * X[:, :n_parameters]
    return X, y


def relative_error(estimator, observations, grid):
    """Integrated squared error over the integral of the squared density, mean."""
    exact = norm.pdf(grid, SHRINK * observations[:, :1], np.sqrt(SHRINK) * NOISE)
    found = np.exp(estimator.log_density(observations, grid))
    return np.mean(((found - exact) ** 2).sum(axis=1) / (exact**2).sum(axis=1))


@pytest.mark.parametrize("metric", ["mad", None])
@pytest.mark.parametrize("adjustment", [None, "linear", "heteroscedastic"])
def test_density_is_that_of_the_equations(adjustment, metric):
    """Equation (5), and its weighted and adjusted forms, written with matrices."""
    X, y = conjugate(400, 2, np.random.default_rng(0), n_parameters=2)
    X[:, 1] *= 7.0
    k, multiplier, s = 120, 0.8, np.array([[0.3, -2.0]])
    grid = np.random.default_rng(1).normal(size=(50, 2))
    estimator = ABCPosteriorKDE(
        k, bandwidth=multiplier, adjustment=adjustment, metric=metric
    )
    found = estimator.fit(X, y).log_density(s, grid)[0]

    scale = np.ones(2)
    if metric == "mad":
        scale = 1.4826022185056018 * np.median(abs(X - np.median(X, axis=0)), axis=0)
    assert_allclose(estimator.scale_, scale)
    distances = cdist(s / scale, X / scale)[0]
    order = np.argsort(distances, kind="stable")
    near, w = order[:k], np.ones(k)
    theta = y[near]
    if adjustment is not None:
        w = 1 - (distances[near] / distances[order[k]]) ** 2
        design = np.column_stack([np.ones(k), X[near] - s])
        root = np.sqrt(w)[:, None]
        coefficients = np.linalg.lstsq(root * design, root * theta)[0]
        residuals = theta - design @ coefficients
        residuals /= np.sqrt(1 - 3 * (w**2).sum() / w.sum() ** 2)  # 3 coefficients
        shares = np.linalg.inv(design.T @ (w[:, None] * design))[0] @ (design.T * w)
        residuals *= np.sqrt(1 + shares @ shares)  # the error of coefficients[0]
        if adjustment == "heteroscedastic":
            logs = np.linalg.lstsq(root * design, root * np.log(residuals**2))[0]
            residuals *= np.exp(-(design[:, 1:] @ logs[1:]) / 2)
        theta = coefficients[0] + residuals
    mean = np.average(theta, axis=0, weights=w)
    deviations = np.sqrt(np.average((theta - mean) ** 2, axis=0, weights=w))
    n_effective = w.sum() ** 2 / (w**2).sum()
    h = multiplier * deviations * (4 / (4 * n_effective)) ** (1 / 6)
    kernels = norm.logpdf(grid[:, None], theta, h).sum(axis=2)
    log_density = logsumexp(kernels, b=w / w.sum(), axis=1)
    wide = norm.logpdf(grid, y.mean(axis=0), y.std(axis=0)).sum(axis=1)
    expected = np.logaddexp(np.log(k / (k + 1)) + log_density, wide - np.log(k + 1))
    assert_allclose(found, expected, rtol=1e-8)
    assert_allclose(estimator.predict(s)[0], mean, rtol=1e-8)
    _, std = estimator.predict(s, return_std=True)
    assert_allclose(std[0], deviations, rtol=1e-7)


@pytest.mark.slow
def test_density_integrates_to_one():
    """Also in the user's parameters: the Jacobian is right."""
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.gamma(2, size=3000), rng.uniform(-1, 3, size=3000)])
    X = y + rng.normal(size=y.shape)
    estimator = ABCPosteriorKDE(
        300,
        bandwidth="silverman",
        parameter_transform=["log", "logit"],
        bounds=[(0, np.inf), (-1, 3)],
    ).fit(X, y)
    first, second = np.linspace(0, 20, 401), np.linspace(-1, 3, 101)
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    cell = (first[1] - first[0]) * (second[1] - second[0])
    density = np.exp(estimator.log_density([[2.0, 0.5]], grid))
    # The trapezoidal rule on a smooth density that is zero at the border.
    assert_allclose(density.sum() * cell, 1.0, atol=2e-3)


@pytest.mark.slow
def test_error_falls_with_the_table():
    """Default settings, five summaries: 0.0164 and 0.0048 were an oracle's errors.

    The errors at ten times the simulations are smaller by more than half, on average
    over 24 observations; two tables each time.
    """
    grid = np.linspace(-4, 4, 101)
    errors = []
    for n in (500, 5000):
        for seed in range(2):
            rng = np.random.default_rng([n, seed])
            X, y = conjugate(n, 5, rng)
            observations, _ = conjugate(24, 5, rng)
            estimator = ABCPosteriorKDE(random_state=seed, n_validation=100)
            errors.append(relative_error(estimator.fit(X, y), observations, grid))
    small, large = np.reshape(errors, (2, 2)).mean(axis=1)
    assert large < 0.5 * small


@pytest.mark.slow
@pytest.mark.parametrize("n_summaries", [1, 2, 5])
def test_rate_of_theorem_3_3(n_summaries):
    """The exponent of the error, without adjustment, for observations in the bulk.

    Means over 16 observations and over tables of 3,000 and 300,000 simulations. Other
    seeds moved the exponent by 0.03 at most.
    """
    grid = np.linspace(-4, 4, 51)
    errors = []
    for n, tables in ((3000, 24), (300_000, 5)):
        of_tables = []
        for seed in range(tables):
            rng = np.random.default_rng([n_summaries, n, seed])
            X, y = conjugate(n, n_summaries, rng)
            observations = rng.uniform(-1, 1, size=(16, n_summaries))
            estimator = ABCPosteriorKDE("rate", bandwidth="rate", adjustment=None)
            of_tables.append(relative_error(estimator.fit(X, y), observations, grid))
        errors.append(np.mean(of_tables))
    exponent = np.log(errors[0] / errors[1]) / np.log(100)
    assert abs(exponent - 4 / (n_summaries + 5)) < 0.08


@pytest.mark.parametrize("n_directions", [1, 4])
def test_error_of_the_mean_at_the_observation(n_directions):
    """By matrices: the mean at the observation is a'theta, with variance |a|^2.

    Rows that stand for two draws are their mean, of half the variance.
    """
    rng = np.random.default_rng(0)
    n, counts = 60, np.repeat([1.0, 2.0], 30)
    gaps = rng.normal(size=(n, n_directions)) + 0.5
    squares = np.square(gaps).sum(axis=1)
    gaps, squares = gaps[squares.argsort()], np.sort(squares)
    errors = []
    for _ in range(400):
        theta = rng.normal(size=(n, 1)) / np.sqrt(counts)[:, None]
        nearest = Accepted(gaps, squares, counts, theta, 80)
        nearest.adjusted("linear")
        own = nearest.counts * nearest.shares / (nearest.counts @ nearest.shares)
        Z = np.column_stack([np.ones(len(own)), nearest.gaps])
        a = np.linalg.solve(Z.T @ (own[:, None] * Z), Z.T * own)[0]
        assert_allclose(nearest._regression.shares_of_mean(), a, atol=1e-10)
        assert_allclose(nearest._mean, a @ nearest.draws)
        errors.append(nearest._mean[0] ** 2)
    expected = np.square(a / np.sqrt(nearest.counts)).sum()
    # Mean squared errors of 400 normals: five of their standard errors.
    assert abs(np.mean(errors) / expected - 1) < 5 * np.sqrt(2 / 400)


@pytest.mark.filterwarnings("ignore:All summaries are constant")
@pytest.mark.parametrize("n", [10, 20, 100])
@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential", "heavy"])
def test_intervals_of_few_draws_cover(n, shape):
    """Each of 4,000 columns is an experiment: n draws, and one more of the same.

    All draws are accepted and none is adjusted. The interval of 80 % ends within the
    draws, and covers whatever the distribution; the wider ones reach beyond them, as
    far as a normal distribution would. The standard error is at most 0.0064.
    """
    rng = np.random.default_rng(n)
    draw = {
        "normal": rng.normal,
        "uniform": rng.uniform,
        "exponential": rng.exponential,
        "heavy": lambda size: rng.standard_t(3, size=size),
    }[shape]
    y, new = draw(size=(n, 4000)), draw(size=4000)
    model = ABCPosteriorKDE(n, bandwidth="silverman", adjustment=None)
    model.fit(np.zeros((n, 1)), y)
    levels = [0.025, 0.05, 0.1, 0.9, 0.95, 0.975]
    ends = model.predict_quantiles([[0.0]], levels)[0]
    assert (np.diff(ends, axis=0) >= 0).all()
    inside = ((ends[:3] <= new) & (new <= ends[:2:-1])).mean(axis=1)
    assert_allclose(inside[2], 0.8, rtol=0, atol=0.025)
    wide = 0.025 if shape == "normal" else 0.04
    assert_allclose(inside[:2], [0.95, 0.9], rtol=0, atol=wide)


def test_quantiles_at_the_ends_are_the_bounds():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1)), rng.uniform(size=(30, 3))
    bounds = [[0.0, 1.0], [-np.inf, 1.0], [-np.inf, np.inf]]
    model = ABCPosteriorKDE(20, bandwidth="silverman", bounds=bounds)
    ends = model.fit(X, y).predict_quantiles([[0.0]], [0.0, 1e-9, 1 - 1e-9, 1.0])[0]
    assert_array_equal(ends[[0, 3]], np.transpose(bounds))
    assert (ends[[1, 2], 0] == [0.0, 1.0]).all()  # no further
    assert np.isfinite(ends[[1, 2]]).all()


@pytest.mark.parametrize("value", [3.0, 0.1, 1e9])
@pytest.mark.parametrize("away", [0.0, 1.0, -1e3])
def test_a_constant_summary_says_nothing(value, away):
    """Wherever the observation is: what rounding leaves of its variance is none."""
    for seed in range(6):
        X, y = conjugate(300, 2, np.random.default_rng(seed))
        model = ABCPosteriorKDE(299, bandwidth="silverman", adjustment="linear")
        as_it_is = model.fit(X, y).predict([[0.5, 0.5]])
        model.fit(np.column_stack([X, np.full(len(X), value)]), y)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*far outside the simulations")
            found = model.predict([[0.5, 0.5, value + away]])
        assert_allclose(found, as_it_is, rtol=0, atol=0.15)


@pytest.mark.parametrize("adjustment", [None, "linear"])
@pytest.mark.parametrize("k", [10, 30])
def test_intervals_from_small_tables_cover(k, adjustment):
    """Of 200 simulations of the conjugate Gaussian, 30 tables with 25 observations.

    The standard error is about 0.013: the observations of a table share its draws.
    """
    inside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = conjugate(225, 1, rng)
        model = ABCPosteriorKDE(k, bandwidth="silverman", adjustment=adjustment)
        ends = model.fit(X[:200], y[:200]).predict_quantiles(X[200:], [0.05, 0.95])
        inside.append((ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1]))
    assert 0.87 < np.mean(inside) < 0.96


@pytest.mark.filterwarnings("ignore:.*ends abruptly")  # of so few simulations
@pytest.mark.filterwarnings("ignore:.*no simulation has such summaries")
@pytest.mark.parametrize("adjustment", [None, "linear"])
def test_quantiles_of_weighted_simulations_are_those_of_repeated_ones(adjustment):
    """A simulation of no weight is not the last draw, beyond which they would reach."""
    levels = np.linspace(0.02, 0.98, 25)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = conjugate(60, 2, rng)
        counts = rng.integers(0, 4, size=60)
        model = ABCPosteriorKDE(10, bandwidth="silverman", adjustment=adjustment)
        found = model.fit(X, y, counts).predict_quantiles(X[:9], levels)
        model.fit(X.repeat(counts, axis=0), y.repeat(counts, axis=0))
        expected = model.predict_quantiles(X[:9], levels)
        assert_allclose(found, expected, rtol=0, atol=1e-9)


def two_models(n, generator, *, discrete):
    """Return which model made a summary, and the summary."""
    y = generator.integers(0, 2, n)
    if discrete:
        return generator.binomial(8, np.where(y, 0.5, 0.2))[:, None].astype(float), y
    return generator.normal(scale=np.where(y, 1.0, 2.0))[:, None], y


def probability_of_one(X, *, discrete):
    """Posterior probability of model 1, exactly."""
    of_one, of_zero = norm.pdf(X[:, 0]), norm.pdf(X[:, 0], scale=2.0)
    if discrete:
        of_one, of_zero = binom.pmf(X[:, 0], 8, 0.5), binom.pmf(X[:, 0], 8, 0.2)
    return of_one / (of_one + of_zero)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*values of parameter 0")
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
    ("way", "unit", "origin"),
    [("fit", 1.0, 0.0), ("weights", 1e-3, 1e4), ("stream", 1e3, -1e6)],
)
def test_the_number_of_a_model_has_its_probability(way, unit, origin, discrete):
    """A density of two values rewards the most neighbors, or the narrowest kernel.

    So do copies that are held out, where models make the same summaries by chance. The
    error is .02 to .05; that of the prior's probability .5 is .2 and .36.
    """
    generator, n = np.random.default_rng(0), 1000 if discrete else 3000
    X, y = two_models(n, generator, discrete=discrete)
    observed, _ = two_models(100, generator, discrete=discrete)
    exact = probability_of_one(observed, discrete=discrete)
    posterior, y = ABCPosteriorKDE(n_validation=100, random_state=0), y * unit + origin
    if way == "stream":
        posterior.partial_fit(X, y)
    else:
        weights = np.tile([1.0, 2.0], n // 2) if way == "weights" else None
        posterior.fit(X, y, weights)
    found = (posterior.predict(observed) - origin) / unit
    assert abs(found - exact).mean() < 0.08


@pytest.mark.parametrize("n_values", [2, 5, 9])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_draws_beyond_the_values_of_a_discrete_parameter_are_explained(n_values, unit):
    """Bounds would be no remedy; a parameter beside it is not meant."""
    rng = np.random.default_rng(n_values)
    values = rng.integers(0, n_values, 2000)
    y = np.column_stack([rng.normal(size=2000), unit * values])
    X = y / [1.0, unit] + 0.6 * rng.normal(size=(2000, 2))
    posterior = ABCPosteriorKDE(100, adjustment="linear").fit(X, y)
    match = f"largest of the {n_values} values of parameter 1: posteriors are densities"
    with pytest.warns(UserWarning, match=match):
        posterior.predict_quantiles([[0.0, n_values - 1.0]])


@pytest.mark.parametrize("origin", [0.0, 1e6, 1e12])
def test_the_origin_of_parameters_changes_nothing(origin):
    """Deviations of one at 1e12 were taken for rounding: kernels were too narrow."""
    X, y = conjugate(600, 1, np.random.default_rng(0))
    expected = ABCPosteriorKDE(n_validation=60, random_state=0).fit(X, y)
    moved = ABCPosteriorKDE(n_validation=60, random_state=0).fit(X, y + origin)
    grid, observed = np.linspace(-1.0, 2.0, 7), [[0.5]]
    assert_allclose(
        moved.log_density(observed, grid + origin),
        expected.log_density(observed, grid),
        atol=0.01,  # numbers near 1e12 have four digits of the deviation
    )
