"""The noise variance integrated out, against enumeration and quadrature."""

import numpy as np
import pytest
from additive_reference import (
    columns_of,
    every_model,
    log_binomial,
    run,
    small_problem,
    total_variation,
)
from scipy.integrate import quad
from scipy.special import logsumexp

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._chain import Chain, Prior
from skpacbayes.additive._posterior import Posterior

VARIANCE, BETA = 8.0, 0.5
# Over 20,000 moves total variations over 27 models have a mean of .021 and a deviation
# of .005 over 40 seeds.
DISTANCE = 0.045
pytestmark = [  # short chains
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:Another seed may select"),
]


def log_weight(problem, model):
    """Log of prior times density of y, by quadrature over the log noise variance.

    Given the variance y is normal, with covariance s^2 (I + variance A A'). The
    constant of the density less one degree of freedom, that of the mean, is kept.
    """
    values, _, y = problem
    p, max_order, n = values.shape
    design = values.reshape(-1, n)[columns_of(model, max_order)]
    covariance = np.eye(n) + VARIANCE * design.T @ design
    half_log = np.linalg.slogdet(covariance)[1] / 2
    square = y @ np.linalg.solve(covariance, y)
    center = np.log(square / (n - 1))

    def density(log_variance):
        log_value = -(n - 1) / 2 * (log_variance - center)
        return np.exp(log_value - square / 2 * np.exp(-log_variance) + (n - 1) / 2)

    integral = quad(density, center - 5, center + 5)[0]
    size, total = np.count_nonzero(model), sum(model)
    log_prior = total * np.log(BETA) - log_binomial(p, size)
    return log_prior - half_log + np.log(integral) - (n - 1) / 2 * center


def made(problem, seed=0):
    _, gram, y = problem
    p = len(gram.ranks)
    prior = Prior.of(gram.ranks, BETA, p, variance=VARIANCE)
    prior = prior.integrating(len(y) - 1.0, y @ y)
    return Chain(gram.reader(), gram.against(y), prior, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def problem():
    return small_problem(n=12, noise=0.4, correlation=0.4)


@pytest.fixture(scope="module")
def exact(problem):
    """Probability of each model."""
    models = list(every_model(3, 2))
    logs = np.array([log_weight(problem, model) for model in models])
    return dict(zip(models, np.exp(logs - logsumexp(logs)), strict=True))


@pytest.fixture(scope="module")
def chain(problem):
    """Cut in two."""
    chain = made(problem)
    chain.expect(20_000)
    chain.advance(7_013)
    chain.advance(12_987)
    return chain


def test_models_have_the_exact_distribution(exact, chain):
    path, columns, *_ = chain.recorded()
    shares = dict.fromkeys(exact, 0.0)
    counts = np.bincount(path, minlength=len(columns))
    for count, model in zip(counts, columns, strict=True):
        orders = np.bincount(model[model >= 0] // 2, minlength=3)
        shares[tuple(orders)] += count / len(path)
    assert total_variation(shares, exact) < DISTANCE
    assert max(exact.values()) < 0.5  # no model is nearly certain


def test_log_weights_are_those_of_the_density(exact, chain):
    """Of the models visited, but for one constant."""
    _, columns, _, log_weights = chain.recorded()
    some = np.arange(0, len(columns), 50)
    known = []
    for i in some:
        orders = np.bincount(columns[i][columns[i] >= 0] // 2, minlength=3)
        known.append(np.log(exact[tuple(orders)]))
    differences = log_weights[some] - known
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def test_cutting_the_run_changes_nothing(problem):
    whole, parts = made(problem), made(problem)
    run(whole, 300)
    parts.expect(300)
    for count in (1, 19, 20, 33, 227):
        parts.advance(count)
    for one, other in zip(whole.recorded(), parts.recorded(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_moments_are_those_of_students_t(problem, exact, chain):
    """Noise variance and effects: exact means; draws have the stated variance."""
    values, gram, y = problem
    posterior = Posterior([chain], (3, 2), unit=1.0, among=gram.among)
    noise, mean = 0.0, np.zeros(6)
    for model, weight in exact.items():
        columns = columns_of(model, 2)
        among, linear = gram.among(columns), gram.against(y)[columns]
        precision = among + np.eye(len(columns)) / VARIANCE
        coefficients = np.linalg.solve(precision, linear)
        mean[columns] += weight * coefficients
        noise += weight * (y @ y - linear @ coefficients) / (len(y) - 3)
    assert posterior.noise_variance == pytest.approx(noise, rel=0.03)
    np.testing.assert_allclose(posterior.mean().ravel(), mean, atol=0.06)
    rng = np.random.default_rng(1)
    draws = np.array([posterior.draw(rng) for _ in range(6_000)])
    effects = np.einsum("ijk,jkn->in", draws, values)
    variance = posterior.variance(values, np.arange(3))
    np.testing.assert_allclose(effects.var(axis=0), variance, rtol=0.2)


def few_rows(seed, n=15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)


def test_noise_and_temperature_say_the_same():
    X, y = few_rows(0)
    model = SparseAdditiveGibbsRegressor(random_state=0, n_iter=500).fit(X, y)
    expected = len(y) / (2 * model.noise_variance_)
    assert model.inverse_temperature_ == pytest.approx(expected)
    assert model.slab_scale_ == pytest.approx(y.std())
    known = SparseAdditiveGibbsRegressor(noise_variance=0.3, random_state=0).fit(X, y)
    assert known.noise_variance_ == 0.3


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_fewest_rows(n):
    """Few degrees of freedom give finite answers, in every unit of y."""
    X, y = few_rows(1, n)
    model = SparseAdditiveGibbsRegressor(random_state=0, n_iter=100, burn_in=20)
    with np.errstate(all="raise"):
        mean, std = model.fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    far = model.fit(X, 1e8 * y)
    np.testing.assert_allclose(far.predict(X), 1e8 * mean, rtol=1e-6)


# Intervals where the variance of the noise is estimated.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of few rows: not what is tested
@pytest.mark.parametrize(("n_rows", "n_features"), [(5, 4), (15, 30)])
def test_intervals_of_few_rows_allow_for_the_estimate_of_the_noise(n_rows, n_features):
    """Of new rows, mean -+ 1.645 std contain .95 and .90; without it .83 to .87.

    The mean over 60 fits has a standard error of about .02: it is below .86 by chance
    once in 40 times at worst, in other data.
    """
    covered = []
    for seed in range(60):
        rng = np.random.default_rng([seed, n_rows, n_features])
        X = rng.uniform(-1, 1, size=(n_rows + 200, n_features))
        effect = (0.0 * X[:, 0], 2.0 * X[:, 0], np.cos(3 * X[:, 0]))[seed % 3]
        y = effect + 0.4 * rng.normal(size=len(X))
        model = SparseAdditiveGibbsRegressor(
            n_iter=200, burn_in=50, n_chains=1, random_state=0
        )
        model.fit(X[:n_rows], y[:n_rows])
        mean, std = model.predict(X[n_rows:], return_std=True)
        errors = abs(y[n_rows:] - mean) / (1.645 * std)
        factor = model._answer().variance_factor
        assert factor > 1
        covered.append([(errors < 1).mean(), (errors * np.sqrt(factor) < 1).mean()])
    with_allowance, without = np.mean(covered, axis=0)
    assert 0.86 < with_allowance < 0.98
    assert without < 0.88


@pytest.mark.filterwarnings("ignore")
def test_a_variance_that_is_known_or_integrated_out_is_no_estimate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 4)), rng.normal(size=9)

    def factor(n_features, **parameters):
        model = SparseAdditiveGibbsRegressor(n_iter=100, random_state=0, **parameters)
        return model.fit(X[:, :n_features], y)._answer().variance_factor

    assert factor(4) > 1
    assert factor(3) == factor(4, noise_variance=1.0) == 1
    assert factor(4, inverse_temperature="pac") == 1
