"""The mixtures against their definitions and against independent computations."""

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._search import hard_statistics

MODELS = {
    "full": {"covariance_type": "full"},
    "tied": {"covariance_type": "tied"},
    "diag": {"covariance_type": "diag"},
    "spherical": {"covariance_type": "spherical"},
    "known": {"covariance_type": "known", "known_covariance": 0.7},
    "factorized-diag": {"covariance_type": "diag", "prior": "factorized"},
    "factorized-spherical": {"covariance_type": "spherical", "prior": "factorized"},
}
TEMPERATURES = [0.3, 1.0]
every_model = pytest.mark.parametrize("name", MODELS)
every_temperature = pytest.mark.parametrize("inverse_temperature", TEMPERATURES)


def rows(n=45, seed=0):
    generator = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [3.0, 1.0], [0.0, 4.0]])
    X = centers[generator.integers(0, 3, n)] + generator.normal(size=(n, 2))
    return X @ np.array([[1.0, 0.4], [0.0, 0.8]])


def prior_of(name):
    """Explicit priors, so that the test knows them without the library."""
    covariance = {
        "full": [[0.9, 0.2], [0.2, 0.5]],
        "tied": [[0.9, 0.2], [0.2, 0.5]],
        "diag": [0.9, 0.5],
        "spherical": 0.7,
    }
    prior = {"mean_prior": [0.5, 1.0], "mean_precision_prior": 0.2}
    kind = MODELS[name]["covariance_type"]
    if kind != "known":
        prior["degrees_of_freedom_prior"] = 3.5
        prior["covariance_prior"] = covariance[kind]
    return prior


def mixture(name, inverse_temperature, **parameters):
    return TemperedVBGaussianMixture(
        **{
            "n_components": 3,
            "inverse_temperature": inverse_temperature,
            "n_init": 1,  # what holds at an optimum holds at every one
            "random_state": 0,
            **MODELS[name],
            **prior_of(name),
            **parameters,
        }
    )


def draws(fitted, name, size, generator):
    """Parameters of the components drawn from the posterior, and log(prior/law).

    Written from the public attributes and the definitions of the laws, with scipy.
    Returns means (size, K, d), covariances (size, K, d, d), log-ratios (size,).
    """
    prior = prior_of(name)
    m0, l0 = np.array(prior["mean_prior"]), prior["mean_precision_prior"]
    K, d = fitted.means_.shape
    means, covariances = np.empty((size, K, d)), np.empty((size, K, d, d))
    log_ratio = np.zeros(size)
    kind, factorized = MODELS[name]["covariance_type"], "factorized" in name
    if kind == "known":
        covariances[:] = MODELS[name]["known_covariance"] * np.eye(d)
    elif kind in ("full", "tied"):
        for k in range(1 if kind == "tied" else K):
            nu = np.atleast_1d(fitted.degrees_of_freedom_)[k]
            covariance = (
                fitted.covariances_ if kind == "tied" else fitted.covariances_[k]
            )
            law = stats.wishart(nu, np.linalg.inv(covariance * nu))
            start = stats.wishart(3.5, np.linalg.inv(prior["covariance_prior"]))
            precisions = law.rvs(size, random_state=generator)
            axes = np.moveaxis(precisions, 0, -1)
            log_ratio += start.logpdf(axes) - law.logpdf(axes)
            covariances[:, k] = np.linalg.inv(precisions)
        if kind == "tied":
            covariances[:] = covariances[:, :1]
    else:
        scale0 = np.broadcast_to(np.atleast_1d(prior["covariance_prior"]) / 2, d)
        for k in range(K):
            a = fitted.degrees_of_freedom_[k] / 2
            scale = np.broadcast_to(np.atleast_1d(fitted.covariances_[k]) * a, d)
            variances = np.empty((size, d))
            for j in range(1 if kind == "spherical" else d):
                law = stats.invgamma(a, scale=scale[j])
                start = stats.invgamma(1.75, scale=scale0[j])
                variances[:, j] = law.rvs(size, random_state=generator)
                log_ratio += start.logpdf(variances[:, j]) - law.logpdf(variances[:, j])
            if kind == "spherical":
                variances[:] = variances[:, :1]
            covariances[:, k] = variances[:, :, None] * np.eye(d)
    for k in range(K):
        if factorized:
            spread = np.atleast_1d(fitted.covariances_[k] / fitted.mean_precision_[k])
            scale0 = np.atleast_1d(prior["covariance_prior"]) / 2 / 1.75
            cov = np.broadcast_to(np.diag(np.broadcast_to(spread, d)), (size, d, d))
            cov0 = np.broadcast_to(
                np.diag(np.broadcast_to(scale0 / l0, d)), (size, d, d)
            )
        else:
            cov = covariances[:, k] / fitted.mean_precision_[k]
            cov0 = covariances[:, k] / l0
        factor = np.linalg.cholesky(cov)
        noise = generator.normal(size=(size, d, 1))
        means[:, k] = fitted.means_[k] + (factor @ noise)[..., 0]
        log_ratio += normal(means[:, k], m0, cov0)
        log_ratio -= normal(means[:, k], fitted.means_[k], cov)
    return means, covariances, log_ratio


def normal(x, mean, covariances):
    """Log-density of N(mean, covariance), row by row."""
    gaps = x - mean
    squares = np.einsum(
        "...i,...i", gaps, np.linalg.solve(covariances, gaps[..., None])[..., 0]
    )
    log_determinants = np.linalg.slogdet(covariances)[1]
    return -0.5 * (squares + log_determinants + gaps.shape[-1] * np.log(2 * np.pi))


@every_model
@every_temperature
def test_elbo_is_its_definition(name, inverse_temperature):
    """J by Monte Carlo from the definition: 4.5 standard errors, 7e-6 a case."""
    X, size, generator = rows(), 1500, np.random.default_rng(1)
    fitted = mixture(name, inverse_temperature).fit(X)
    w = fitted.predict_proba(X)
    means, covariances, log_ratio = draws(fitted, name, size, generator)
    law = stats.dirichlet(fitted.weight_concentration_)
    p = law.rvs(size, random_state=generator)
    log_ratio += stats.dirichlet([1.0] * 3).logpdf(p.T) - law.logpdf(p.T)
    log_likelihood = np.array(
        [[normal(x, means[:, k], covariances[:, k]) for x in X] for k in range(3)]
    ).T  # (size, n, K)
    joint = (w * (np.log(p)[:, None] + log_likelihood)).sum(axis=(1, 2))
    entropy = -(w * np.log(np.maximum(w, 1e-300))).sum()
    values = inverse_temperature * (joint + entropy) + log_ratio
    error = values.std() / np.sqrt(size)
    assert abs(values.mean() - fitted.elbo_) < 4.5 * error + 1e-9 * abs(fitted.elbo_)
    assert error < 0.2


@every_temperature
@pytest.mark.parametrize("weighted", [False, True])
def test_elbo_of_counts_is_its_definition(inverse_temperature, weighted):
    """J of the tokens in order, by Monte Carlo: 4.5 standard errors, 7e-6 a case."""
    generator, size, K = np.random.default_rng(1), 20_000, 3
    topics = generator.dirichlet(np.full(5, 0.5), K)
    X = generator.multinomial(8, topics[generator.integers(0, K, 40)])
    weight = generator.integers(1, 4, 40) if weighted else np.ones(40)
    fitted = TemperedVBMultinomialMixture(
        K,
        inverse_temperature=inverse_temperature,
        topic_prior=0.7,
        weight_concentration_prior=0.8,
        random_state=0,
    ).fit(X, sample_weight=weight)
    w = fitted.predict_proba(X)
    values = np.zeros(size)
    laws = [(fitted.weight_concentration_, 0.8, weight @ w)]
    counted = (weight[:, None] * w).T @ X
    for topic, counts in zip(fitted.topic_concentration_, counted, strict=True):
        laws.append((topic, 0.7, counts))
    for concentration, prior, counts in laws:
        law = stats.dirichlet(concentration)
        p = law.rvs(size, random_state=generator)
        start = stats.dirichlet(np.full(len(concentration), prior))
        values += start.logpdf(p.T) - law.logpdf(p.T)
        values += inverse_temperature * np.log(p) @ counts
    entropies = -(w * np.log(np.maximum(w, 1e-300))).sum(axis=1)
    values += inverse_temperature * weight @ entropies
    error = values.std() / np.sqrt(size)
    assert abs(values.mean() - fitted.elbo_) < 4.5 * error
    assert error < 0.2


@every_model
@every_temperature
def test_elbo_never_decreases(name, inverse_temperature):
    for seed in range(3):
        history = mixture(
            name, inverse_temperature, tol=0, max_iter=60, n_init=1, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            history = history.fit(rows(seed=seed)).elbo_history_
        assert np.diff(history).min() > -1e-9 * abs(history[-1])
        assert history[-1] > history[0] + 0.01


@every_model
def test_integer_weights_equal_repeated_rows(name):
    X = rows()
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    weighted = mixture(name, 0.6).fit(X, sample_weight=weight)
    repeated = mixture(name, 0.6).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-9)
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-7)
    assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-7)
    assert weighted.n_samples_seen_ == weight.sum()


@every_model
def test_the_bound_of_settled_statistics_is_that_of_the_rows(name):
    """Entropy and expected log-likelihood recovered from the statistics alone."""
    X, fitted = rows(), mixture(name, 0.6).fit(rows())
    engine, state = fitted._stream.learned.mixture, fitted._stream.state
    statistics = fitted.sufficient_statistics(X)
    assert_allclose(statistics, fitted.statistics_)
    assert_allclose(engine.bound(state, 0.0, statistics), fitted.elbo_, rtol=1e-11)
    before = fitted.elbo_
    assert fitted.absorb(statistics, memory=0).elbo_ >= before - 1e-9 * abs(before)


def mapped_to_scikit_learn(X, kind, K, n_iter):
    """Responsibilities of both libraries from the same start, after `n_iter` steps."""
    d = X.shape[1]
    covariance = {"full": np.cov(X.T).reshape(d, d), "spherical": X.var()}
    covariance["diag"] = X.var(axis=0)
    prior = {
        "mean_prior": X.mean(axis=0),
        "mean_precision_prior": 0.3,
        "degrees_of_freedom_prior": d + 1.5,
        "covariance_prior": covariance[kind],
        "weight_concentration_prior": 0.8,
    }
    theirs = BayesianGaussianMixture(
        n_components=K,
        covariance_type=kind,
        weight_concentration_prior_type="dirichlet_distribution",
        reg_covar=0,
        tol=0,
        max_iter=n_iter,
        random_state=0,
        **prior,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X)
    ours = TemperedVBGaussianMixture(
        K, covariance_type=kind, inverse_temperature=1, random_state=0, **prior
    ).fit(X)
    engine = ours._stream.learned.mixture
    labels = KMeans(K, n_init=1, random_state=np.random.RandomState(0)).fit(X).labels_
    blank = engine.blank(K, X.mean(axis=0))
    state = engine.m_step(
        hard_statistics(engine.density(blank), X, np.ones(len(X)), labels), blank
    )
    for _ in range(n_iter):
        state = engine.m_step(engine.e_step(state, X)[0], state)
    ours._stream.state = state
    return ours.predict_proba(X), theirs.predict_proba(X)


@pytest.mark.parametrize(
    ("kind", "X"),
    [
        ("full", load_iris().data[:, :1]),
        ("full", load_iris().data),
        ("full", load_wine().data[:, :5]),
        ("diag", load_iris().data[:, :1]),
        ("spherical", load_iris().data[:, :1]),
    ],
    ids=["full-1", "full-4", "full-5", "diag-1", "spherical-1"],
)
def test_scikit_learn_agrees_where_its_model_is_the_same(kind, X):
    ours, theirs = mapped_to_scikit_learn(X, kind, K=4, n_iter=60)
    assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_scikit_learn_differs_where_its_model_is_another(kind):
    ours, theirs = mapped_to_scikit_learn(load_iris().data, kind, K=4, n_iter=60)
    assert abs(ours - theirs).max() > 1e-2


@every_model
def test_predictive_density_is_a_density(name):
    """In one dimension, the predictive densities integrate to one."""
    X = rows()[:, :1]
    parameters = {**MODELS[name], "n_components": 4, "random_state": 0}
    fitted = TemperedVBGaussianMixture(**parameters).fit(X)
    t = np.linspace(-20, 20, 20_001)  # where the rule of trapezoids converges fast
    density = np.exp(fitted.score_samples(X.mean() + X.std() * np.sinh(t)[:, None]))
    total = np.trapezoid(density * X.std() * np.cosh(t), t)
    assert total == pytest.approx(1, abs=1e-6)


@every_model
def test_samples_follow_the_predictive_density(name):
    """Mean of the log-density of samples against its entropy by other samples.

    And a Kolmogorov-Smirnov test of a feature's marginal, at level 1e-4.
    """
    fitted = mixture(name, 0.8).fit(rows())
    X, labels = fitted.sample(4000)
    assert X.shape == (4000, 2)
    counts = np.bincount(labels, minlength=3) / 4000
    assert_allclose(counts, fitted.weights_, atol=4.5 * 0.5 / np.sqrt(4000))
    # The density must integrate to one against the sampling law: E[g/p] = int g.
    law = stats.multivariate_normal(X.mean(axis=0), 0.25 * np.cov(X.T))
    ratio = np.exp(law.logpdf(X) - fitted.score_samples(X))
    error = ratio.std() / np.sqrt(len(X))
    assert abs(ratio.mean() - 1) < 4.5 * error


@pytest.mark.parametrize("name", ["factorized-diag", "factorized-spherical"])
def test_factorized_predictive_against_monte_carlo(name):
    fitted = mixture(name, 0.8).fit(rows())
    means, covariances, _ = draws(fitted, name, 40_000, np.random.default_rng(3))
    for x in rows(5, seed=4):
        values = sum(
            weight * np.exp(normal(x, means[:, k], covariances[:, k]))
            for k, weight in enumerate(fitted.weights_)
        )
        error = values.std() / np.sqrt(len(values))
        density = np.exp(fitted.score_samples([x])[0])
        assert abs(values.mean() - density) < 4.5 * error


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.filterwarnings("ignore")
def test_fit_takes_as_much_memory_for_twice_the_rows(kind):
    """No array is made that has a row for each observation."""
    X = rows(40_000)
    fitted = TemperedVBGaussianMixture(
        2, covariance_type=kind, max_iter=2, n_init=1, random_state=0
    ).fit(X[:1000])
    peaks = []
    for n in (20_000, 40_000):
        tracemalloc.start()
        fitted.fit(X[:n])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.5 * X[20_000:].nbytes, peaks
