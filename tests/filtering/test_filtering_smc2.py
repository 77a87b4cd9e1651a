"""The posterior of parameters by SMC^2: quadrature, identities, and misuse."""

import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from test_filtering_pmmh import PRIOR, exact_log_likelihood, rows, tracker

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
)
from skpacbayes.filtering._smc2_moves import fitted_proposals
from skpacbayes.filtering.models import LocalLevel

NAME = "model__transition_variance"


def sampler(estimator=None, priors=PRIOR, **parameters):
    parameters = {"n_draws": 40, "random_state": 0} | parameters
    return SMC2(estimator or tracker(), priors, **parameters)


@pytest.fixture(scope="module")
def learnt():
    return sampler().fit(rows())


def by_quadrature(X, prior):
    """Log evidence, and mean and standard deviation of the logarithm of a variance."""
    grid = np.geomspace(1e-4, 1e5, 400)
    log_density = prior.logpdf(grid)
    log_density += [exact_log_likelihood(X, variance) for variance in grid]
    masses = np.exp(log_density - log_density.max()) * np.gradient(grid)
    evidence = np.log(masses.sum()) + log_density.max()
    masses /= masses.sum()
    mean = masses @ np.log(grid)
    return evidence, mean, np.sqrt(masses @ (np.log(grid) - mean) ** 2)


# The second has a noisy likelihood, and too few particles for it.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "prior", "n_rows"),
    [
        ({"n_particles": 16}, stats.lognorm(2.5, scale=20), 6),
        ({"n_particles": 4, "proposal": "prior"}, stats.gamma(2, scale=0.5), 5),
    ],
    ids=["exact", "noisy"],
)
def test_the_posterior_and_the_evidence_are_exact(parameters, prior, n_rows):
    """Against quadrature, as a mean over seeds, with their own standard error.

    The ratio of the estimated evidence to the true one has mean 1, whatever the number
    of draws; the ratio times the sum of weighted draws has the posterior mean. The
    first prior lies far from the rows: without the Jacobian or the prior, the moves go
    elsewhere, and the test fails.
    """
    X = rows(n_rows)
    evidence, mean, std = by_quadrature(X, prior)
    found = []
    for seed in range(20):
        sizes = {"n_draws": 20, "n_moves": 2, "random_state": seed}
        one = sampler(tracker(**parameters), {NAME: prior}, **sizes).fit(X)
        assert one.ess_ >= 10
        scores = (np.log(one.posterior_[NAME]) - mean) / std
        ratio = np.exp(one.log_evidence_ - evidence)
        found.append([ratio - 1, ratio * (one.weights_ @ scores)])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    tolerance = stats.t.ppf(1 - 1e-4 / 2, len(found) - 1) * error
    assert_array_less(np.abs(np.mean(found, axis=0)), tolerance)


@pytest.mark.slow
def test_intervals_are_quantiles_of_the_weighted_draws(learnt):
    draws, weights = learnt.posterior_[NAME], learnt.weights_
    low, high = learnt.intervals(0.8)[NAME]
    assert weights[draws < low].sum() < 0.1 <= weights[draws <= low].sum()
    assert weights[draws < high].sum() < 0.9 <= weights[draws <= high].sum()


@pytest.mark.slow
def test_noisy_filters_double_their_particles_and_others_do_not():
    noisy = tracker(n_particles=4, proposal="prior")
    assert sampler(noisy, n_moves=1, n_draws=20).fit(rows(20)).n_particles_ > 4
    quiet = sampler(n_moves=1).fit(rows(20))
    assert quiet._population.n_moves > 0
    assert quiet.n_particles_ == 32


def test_moves_leave_a_distribution_as_it_is():
    """Four thousand draws of a skewed density, after twenty moves of both kinds."""
    rng = np.random.default_rng(0)
    target = stats.gumbel_r(1.0, 0.5)
    positions = target.rvs(size=(4000, 1), random_state=rng)
    propose = fitted_proposals(positions[:500], np.full(500, 1 / 500))
    start = positions
    for number in range(20):
        proposed, log_ratios = propose(number, positions, rng)
        gains = (target.logpdf(proposed) - target.logpdf(positions))[:, 0]
        accepted = np.log(rng.random(4000)) < gains + log_ratios
        positions = np.where(accepted[:, None], proposed, positions)
    assert (positions == start).mean() < 0.01
    assert stats.kstest(positions[:, 0], target.cdf).pvalue > 1e-4


def test_questions_are_answered_as_learning_would(learnt):
    """Rows that move no draw: log densities, filtered moments and evidence agree."""
    X = rows(28)[25:]
    before = learnt.log_evidence_
    scores = learnt.log_likelihoods(X)
    means, stds = learnt.filter(X)
    assert learnt.score(X) == scores.mean()
    after = copy.deepcopy(learnt).partial_fit(X)
    assert after._population.n_moves == learnt._population.n_moves
    assert_allclose(scores.sum(), after.log_evidence_ - before)
    assert_allclose(means[-1], after.mean_)
    assert_allclose(stds[-1] ** 2, np.diag(after.covariance_))
    other = learnt.log_likelihoods(X, random_state=1)
    assert np.any(other != scores)
    assert_array_equal(other, learnt.log_likelihoods(X, random_state=1))


def test_forecasts_integrate_over_parameters(learnt):
    """The next state: its variance is that of now plus the mean of the steps'."""
    ahead = learnt.forecast(2, of="states", random_state=0)
    variance = learnt.covariance_[0, 0] + learnt.weights_ @ learnt.posterior_[NAME]
    n = len(ahead.samples)
    assert ahead.samples.shape == (n, 2, 1)
    assert_allclose(ahead.means[0], learnt.mean_, atol=4 * np.sqrt(variance / n))
    assert_allclose(ahead.stds[0] ** 2, variance, rtol=4 * np.sqrt(3 / n))
    observed = learnt.forecast(1, quantiles=[0.5], random_state=0)
    assert observed.quantiles.shape == (1, 1, 1)
    assert observed.stds[0] > ahead.stds[0]
    with pytest.raises(ValueError, match="should be one or more numbers from 0 to 1"):
        learnt.forecast(1, quantiles=[2.0])


def test_a_missing_row_says_nothing(learnt):
    after = copy.deepcopy(learnt).partial_fit([[np.nan]])
    assert after.log_evidence_ == pytest.approx(learnt.log_evidence_, abs=1e-12)
    assert_allclose(after.weights_, learnt.weights_)
    assert after.n_samples_seen_ == 26


class Driven(BaseEstimator):
    """A walk that is pushed by inputs, times a gain."""

    n_noise = 1

    def __init__(self, gain=1.0):
        self.gain = gain

    def initial(self, z):
        return z

    def transition(self, x, z, t, u):
        return x + self.gain * u + 0.1 * z

    def log_likelihood(self, x, y, t):
        return stats.norm.logpdf(x[:, 0], y[0], 0.5)


@pytest.mark.slow
def test_inputs():
    """The gain of inputs is found; a stream with inputs goes on with them."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(20, 1))
    X = np.cumsum(2.0 * inputs, axis=0) + 0.5 * rng.normal(size=(20, 1))
    driven = ClusteredParticleFilter(Driven(), n_particles=50, n_clusters=None)
    priors = {"model__gain": stats.norm(0, 3)}
    few = {"n_draws": 20, "n_moves": 1}
    found = sampler(driven, priors, **few).fit(X, inputs=inputs)
    low, high = found.intervals()["model__gain"]
    assert low < 2.0 < high < low + 1.0
    stream = sampler(driven, priors, **few)
    stream.partial_fit(X[:9], inputs=inputs[:9]).partial_fit(X[9:], inputs=inputs[9:])
    assert stream.log_evidence_ == found.log_evidence_
    with pytest.raises(ValueError, match="inputs has 2 rows, but X has 1"):
        stream.partial_fit(X[:1], inputs=inputs[:2])
    with pytest.raises(ValueError, match="inputs has 0 columns, but the estimator was"):
        stream.partial_fit(X[:1])


class Bounded(LocalLevel):
    """A level whose rows lie within 5 of it."""

    def log_likelihood(self, x, y, t):
        inside = np.abs(x[:, 0] - y[0]) < 5
        return np.where(inside, -np.log(10), -np.inf)


def test_a_row_that_is_impossible_is_refused():
    model = Bounded(0.0, 1.0, observation_variance=1.0)
    found = ClusteredParticleFilter(model, n_particles=16, proposal="prior")
    found = sampler(found, n_draws=10).fit(rows(5))
    before = found.log_evidence_
    with pytest.raises(FloatingPointError, match=r"likelihood of row 5 .* of 10 draws"):
        found.partial_fit([[1e6]])
    assert (found.n_samples_seen_, found.log_evidence_) == (5, before)
    assert found.partial_fit([[np.nan]]).n_samples_seen_ == 6


@pytest.mark.filterwarnings("ignore:The .* disagree")
@pytest.mark.parametrize("public", [SMC2, ParticleMarginalMetropolis])
def test_draws_of_likelihood_zero_are_dropped(public):
    """Also by a filter that raises where the likelihood vanishes."""
    model = Bounded(0.0, 1e-6, 1e-6, 1.0)
    strict = ClusteredParticleFilter(
        model, n_particles=16, proposal="prior", underflow="raise"
    )
    priors = {"model__initial_mean": stats.norm(0, 8)}
    sizes = (
        {"n_draws": 50}
        if public is SMC2
        else {"n_chains": 2, "burn_in": 20, "n_iter": 100}
    )
    found = public(strict, priors, random_state=3, **sizes).fit(np.zeros((2, 1)))
    low, high = found.intervals(0.99)["model__initial_mean"]
    assert -5.1 < low < -2 < 2 < high < 5.1


@pytest.mark.slow
def test_too_few_particles_warn():
    """Precise rows, whose likelihood two particles cannot estimate."""
    model = LocalLevel(0.0, 1.0, observation_variance=1e-4)
    blind = ClusteredParticleFilter(
        model, n_particles=2, n_clusters=None, proposal="prior"
    )
    with pytest.warns(UserWarning, match=r"with 32 particles, 16 times those of the"):
        found = sampler(blind, n_draws=10, n_moves=1).fit(rows(8))
    assert found.n_particles_ == 32
    with warnings.catch_warnings():  # a call without a stage says nothing
        warnings.simplefilter("error")
        found.partial_fit([[np.nan]])


@pytest.mark.parametrize("public", [SMC2, ParticleMarginalMetropolis])
@pytest.mark.parametrize(
    ("priors", "complaint"),
    [
        ({}, "priors is empty"),
        ({"model__phi": stats.norm()}, "'model__phi', which is not a parameter of the"),
        ({"n_particles": stats.gamma(2)}, "'n_particles', which is not a parameter of"),
        ({NAME: 0.3}, "should be a continuous distribution"),
        ({NAME: stats.poisson(3)}, "continuous .* got poisson, which is discrete: fit"),
        (
            {NAME: stats.multinomial(1, [0.5, 0.5])},
            "should be a continuous .* discrete",
        ),
        (
            {NAME: type("Normal", (), {"pdf": abs, "pmf": abs})},  # as of SciPy 1.15
            r"a continuous distribution such as scipy.stats.norm\(0, 1\), got <class",
        ),
        ({NAME: stats.uniform(0.5, 0)}, "of one number, with a positive scale, .* nan"),
        ({NAME: stats.norm(np.nan, 1)}, "of one number, with a positive scale, .* nan"),
        ({NAME: stats.expon([0, 1], 1)}, "of one number, with .* from .0.*, 1.*. to"),
        ({NAME: stats.gamma}, "should be a distribution with its parameters, such"),
    ],
)
def test_priors_that_are_none(public, priors, complaint):
    with pytest.raises(ValueError, match=complaint):
        public(tracker(), priors).fit(rows())


@pytest.mark.parametrize(
    ("name", "prior"),
    [
        ("model__initial_mean", stats.beta(0.1, 0.1)),  # some are exactly 1
        (NAME, stats.gamma(0.002)),  # a quarter are exactly 0
    ],
)
def test_draws_at_the_bounds_of_a_prior(name, prior):
    assert np.isin(prior.rvs(200, random_state=0), prior.support()).any()
    found = sampler(priors={name: prior}, n_draws=200, n_moves=1).fit(rows(3))
    assert np.isfinite(found.posterior_[name]).all()
    assert np.isfinite(found.log_evidence_)


@pytest.mark.filterwarnings("ignore:The .* disagree")
@pytest.mark.parametrize("public", [SMC2, ParticleMarginalMetropolis])
def test_steps_below_the_rounding_error_of_the_state_are_no_wrong_model(public):
    priors = {NAME: stats.loguniform(1e-27, 1e-20)}
    sizes = {"n_draws": 40} if public is SMC2 else {"burn_in": 0, "n_iter": 20}
    found = public(tracker(), priors, random_state=0, **sizes).fit(rows(3))
    assert 1e-27 < found.intervals()[NAME][0] < found.intervals()[NAME][1] < 1e-20


@pytest.mark.parametrize("public", [SMC2, ParticleMarginalMetropolis])
def test_a_prior_without_a_density_is_named(public):
    priors = {**PRIOR, "model__initial_mean": stats.beta(1e-5, 1e-5)}
    with pytest.raises(ValueError, match=r"prior of 'model__initial_mean' gave no fin"):
        public(tracker(), priors, random_state=0).fit(rows(3))


def test_the_posterior_is_that_of_the_priors_it_was_learnt_with():
    """Other priors, given after `fit` or by a change of the dict, do not alter it."""
    priors = {"model__initial_mean": stats.norm(0, 1)}
    found = sampler(priors=priors, n_draws=10).fit(rows(2))
    before = found.intervals()
    priors["model__initial_mean"] = stats.gamma(2)
    assert found.intervals() == before
    with pytest.raises(ValueError, match="priors changed"):
        found.partial_fit(rows(1))
    found.set_params(priors={NAME: stats.gamma(2)})
    assert found.intervals() == before
    assert list(found.fit(rows(2)).posterior_) == [NAME]


def test_after_an_impossible_row_log_densities_stay_minus_infinity():
    """There is one warning, not one of each draw; a possible row is silent."""
    model = Bounded(0.0, 1.0, observation_variance=1.0)
    bounded = ClusteredParticleFilter(model, n_particles=16, proposal="prior")
    found = sampler(bounded, n_draws=10).fit(rows(5))
    X = np.array([[0.0], [1e6], [0.0]])
    with pytest.warns(ConvergenceWarning, match=r"row 1 .* at each of 10 draws") as all:
        scores = found.log_likelihoods(X)
    assert len(all) == 1
    assert np.isfinite(scores[0])
    assert_array_equal(scores[1:], -np.inf)
    with pytest.warns(ConvergenceWarning) as all:
        assert found.score(X) == -np.inf
    assert len(all) == 1
    with pytest.warns(ConvergenceWarning) as all:
        means, stds = found.filter(X)
    assert len(all) == 1
    assert np.isfinite([means, stds]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.log_likelihoods(X[:1])


@pytest.mark.parametrize("public", [SMC2, ParticleMarginalMetropolis])
def test_an_estimator_that_is_no_filter(public):
    with pytest.raises(ValueError, match=r"'estimator' param.* must be an inst"):
        public(LocalLevel(), PRIOR).fit(rows())


def test_level(learnt):
    with pytest.raises(ValueError, match=r"level=90 should lie between 0 and 1"):
        learnt.intervals(90)


def test_draws_of_equal_weight_for_arviz(learnt):
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    draws = learnt.to_arviz().posterior[NAME]
    assert draws.dims == ("chain", "draw")
    mean = learnt.weights_ @ learnt.posterior_[NAME]
    spread = np.sqrt(learnt.weights_ @ (learnt.posterior_[NAME] - mean) ** 2)
    assert float(draws.mean()) == pytest.approx(mean, abs=spread / np.sqrt(10))
