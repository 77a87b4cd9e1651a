"""The posterior of parameters by PMMH, against quadrature and against misuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
    ParticleMaximumLikelihood,
)
from skpacbayes.filtering._priors import from_line, to_line
from skpacbayes.filtering.models import LocalLevel, StochasticVolatility

PRIOR = {"model__transition_variance": stats.gamma(2, scale=0.5)}


def tracker(**parameters):
    model = LocalLevel(0.0, 1.0, observation_variance=0.5)
    parameters = {"n_particles": 32, "n_clusters": None} | parameters
    return ClusteredParticleFilter(model, **parameters)


def sampler(estimator=None, priors=PRIOR, **parameters):
    parameters = {"n_chains": 2, "burn_in": 50, "n_iter": 50} | parameters
    return ParticleMarginalMetropolis(
        estimator or tracker(), priors, random_state=0, **parameters
    )


def rows(n=25, seed=0):
    rng = np.random.default_rng(seed)
    return (0.8 * rng.normal(size=n).cumsum() + 0.7 * rng.normal(size=n))[:, None]


def exact_log_likelihood(X, variance):
    """Of rows of the local level, by their joint normal distribution."""
    n = len(X)
    times = np.minimum.outer(np.arange(n), np.arange(n))
    covariance = 1.0 + variance * times + 0.5 * np.eye(n)
    return stats.multivariate_normal(np.zeros(n), covariance).logpdf(X[:, 0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_the_posterior_is_exact_whatever_the_number_of_particles():
    """Mean and quantiles against quadrature; errors of at least 60 effective draws.

    Four standard errors of a mean, and of the share below a quantile.
    """
    X = rows(4)
    grid = np.linspace(1e-3, 8, 200)  # 0.04 apart
    prior = PRIOR["model__transition_variance"]
    log_density = prior.logpdf(grid) + [exact_log_likelihood(X, v) for v in grid]
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    # few particles, and the prior's own moves: noisy likelihoods
    noisy = tracker(n_particles=5, proposal="prior")
    found = sampler(noisy, burn_in=100, n_iter=500).fit(X)
    draws = found.posterior_["model__transition_variance"]
    assert draws.shape == (2, 500)
    assert_allclose(draws.mean(), mean, atol=4 * std / np.sqrt(60))
    for level in (0.1, 0.5, 0.9):
        quantile = grid[np.searchsorted(np.cumsum(weights), level)]
        assert_allclose((draws < quantile).mean(), level, atol=4 * 0.5 / np.sqrt(60))
    assert 0.1 < found.acceptance_rate_ < 0.5
    assert_allclose(
        found.estimator_.get_params()["model__transition_variance"], draws.mean()
    )
    assert np.isfinite(found.score(rows(10, 1)))
    low, high = found.intervals(0.8)["model__transition_variance"]
    assert_allclose([(draws < low).mean(), (draws > high).mean()], 0.1, atol=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_chains_are_the_same_in_threads():
    few = {"burn_in": 10, "n_iter": 10}
    found = [sampler(**few, n_jobs=n_jobs).fit(rows()) for n_jobs in (None, 2)]
    assert_array_equal(*(f.posterior_["model__transition_variance"] for f in found))


def test_chains_that_disagree_warn():
    with pytest.warns(UserWarning, match=r"R-hat of the parameters is"):
        sampler(burn_in=0, n_iter=6, n_chains=3).fit(rows())


@pytest.mark.parametrize(
    ("low", "high"), [(-np.inf, np.inf), (0, np.inf), (-np.inf, 2), (-1, 3)]
)
def test_maps_to_the_line(low, high):
    """They invert each other, and the slope is the derivative."""
    u = np.linspace(-3, 3, 13)
    values, log_slopes = from_line(u, low, high)
    assert np.all((values > low) & (values < high))
    assert_allclose(to_line(values, low, high), u, atol=1e-12)
    nudged = from_line(u + 1e-6, low, high)[0]
    assert_allclose(np.exp(log_slopes), (nudged - values) / 1e-6, rtol=1e-4)


def test_a_likelihood_that_vanishes_everywhere():
    class Nowhere(StochasticVolatility):
        def log_likelihood(self, x, y, t):
            return np.full(len(x), -np.inf)

    blind = ClusteredParticleFilter(Nowhere(), n_particles=10)
    with pytest.raises(ValueError, match="The likelihood is zero at each of 10 param"):
        sampler(blind, {"model__phi": stats.uniform(0, 1)}).fit(rows())


@pytest.mark.parametrize("learner", [ParticleMarginalMetropolis, SMC2])
@pytest.mark.parametrize(
    ("model", "name", "said"),
    [
        (StochasticVolatility(), "phi", "must lie between -1 and 1"),
        (StochasticVolatility(), "sigma", "must be finite and positive"),
        (StochasticVolatility(), "beta", "must be finite and positive"),
        (LocalLevel(), "observation_variance", "must be finite and positive"),
        (LocalLevel(), "transition_variance", "must be finite and at least 0"),
    ],
)
def test_a_prior_beyond_what_the_model_allows(learner, model, name, said):
    tracker = ClusteredParticleFilter(model, n_particles=10)
    priors = {f"model__{name}": stats.uniform(-3.0, 1.5)}
    said = rf"cannot run at model__{name}=-[0-9.]+, which the distributions .*{said}"
    with pytest.raises(ValueError, match=said):
        learner(tracker, priors, random_state=0).fit(rows())


@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_levels():
    with pytest.raises(ValueError, match=r"level=90 should lie between 0 and 1"):
        sampler(n_iter=5, n_chains=1, burn_in=5).fit(rows()).intervals(90)


@pytest.mark.parametrize("learner", [ParticleMarginalMetropolis, SMC2])
def test_a_filter_without_a_model_has_no_parameters(learner):
    priors = {"model__transition_variance": stats.gamma(2)}
    with pytest.raises(ValueError, match="model=None: give the estimator a model"):
        learner(ClusteredParticleFilter(), priors).fit(rows())


class Thermostat:
    """As on the page of the guide, without arguments of __init__."""

    n_noise, rate = 1, 0.2

    def initial(self, z):
        return 20 + 5 * z

    def transition(self, x, z, t):
        return x + self.rate * (21 - x) + 0.3 * z

    def log_likelihood(self, x, y, t):
        return stats.laplace.logpdf(y[0], x[:, 0])


@pytest.mark.parametrize("learner", [ParticleMarginalMetropolis, SMC2])
def test_a_model_without_an_init_is_told_how_to_have_parameters(learner):
    estimator = ClusteredParticleFilter(Thermostat())
    with pytest.raises(ValueError, match=r"'model__rate', .* give it an __init__"):
        learner(estimator, {"model__rate": stats.beta(2, 2)}).fit(rows())


@pytest.mark.parametrize(
    "learner",
    [
        sampler(),
        SMC2(tracker(), PRIOR),
        ParticleMaximumLikelihood(tracker(), {"model__transition_variance": (0.1, 1)}),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_inputs_of_the_wrong_form(learner):
    """The error is about the inputs, not about a value of the parameters."""
    X, inputs = rows(), np.ones((25, 1))
    with pytest.raises(ValueError, match=r"^inputs has 24 rows, but X has 25"):
        learner.fit(X, inputs=inputs[1:])
    with pytest.raises(ValueError, match=r"^Input inputs contains NaN"):
        learner.fit(X, inputs=np.nan * inputs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")
@pytest.mark.parametrize(
    "prior",
    [stats.norm(0, 1e3), stats.norm(0, 1e5), stats.t(1, scale=100.0)],
    ids=["normal 1e3", "normal 1e5", "t scale 1e2"],
)
def test_chains_move_under_priors_far_wider_than_the_posterior(prior):
    """Beside a parameter whose prior is not: the posterior of a known mean is exact."""
    X = rows(6) + 3.0
    n, times = len(X), np.minimum.outer(np.arange(len(X)), np.arange(len(X)))
    precision = np.linalg.inv(1.0 + 0.64 * times + 0.5 * np.eye(n))
    std = precision.sum() ** -0.5
    mean = std**2 * (precision @ X).sum()
    model = LocalLevel(0.0, 1.0, transition_variance=0.64, observation_variance=0.5)
    priors = {"model__initial_mean": prior}
    filters = ClusteredParticleFilter(model, n_particles=32, n_clusters=None)
    found = sampler(filters, priors, burn_in=300, n_iter=300).fit(X)
    draws = found.posterior_["model__initial_mean"]
    assert 0.1 < found.acceptance_rate_ < 0.5
    assert_allclose(draws.mean(), mean, atol=4 * std / np.sqrt(40))
    assert_allclose(draws.std(), std, rtol=0.4)
    priors["model__transition_variance"] = stats.gamma(2, scale=0.5)
    found = sampler(filters, priors, burn_in=250, n_iter=250).fit(X)
    assert found.acceptance_rate_ > 0.1
    assert found.posterior_["model__initial_mean"].std() < 10 * std
