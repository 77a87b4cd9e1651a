"""Maximum likelihood by particle filters, against the exact maximum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import gamma, multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.filtering import ClusteredParticleFilter, ParticleMaximumLikelihood
from skpacbayes.filtering._maximum_likelihood_ascent import Ascent
from skpacbayes.filtering._priors import Priors
from skpacbayes.filtering.models import LocalLevel

NAME = "model__transition_variance"


def learner(given=None, **parameters):
    tracker = ClusteredParticleFilter(
        LocalLevel(0.0, 1.0, observation_variance=0.5), method="sqmc", n_particles=64
    )
    given = {NAME: gamma(2, scale=0.5)} if given is None else given
    return ParticleMaximumLikelihood(tracker, given, random_state=0, **parameters)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return (0.8 * rng.normal(size=n).cumsum() + 0.7 * rng.normal(size=n))[:, None]


def exact_log_likelihood(X, variance, noise=0.5):
    times = np.minimum.outer(np.arange(len(X)), np.arange(len(X)))
    covariance = 1.0 + variance * times + noise * np.eye(len(X))
    return multivariate_normal(np.zeros(len(X)), covariance).logpdf(X[:, 0])


@pytest.mark.slow
def test_the_maximum_is_the_exact_one():
    """Four Monte Carlo errors, and a tenth of a standard error for third derivatives.

    The standard error is a curvature over two standard errors: within a tenth.
    """
    X = rows()
    best = minimize_scalar(
        lambda u: -exact_log_likelihood(X, np.exp(u)), bounds=(-4, 2), method="bounded"
    )
    step = 0.01
    around = [exact_log_likelihood(X, np.exp(best.x + s)) for s in (-step, 0, step)]
    error = np.exp(best.x) * step / np.sqrt(-np.diff(around, 2)[0])
    found = learner().fit(X)
    assert found.converged_
    atol = 4 * found.monte_carlo_errors_[NAME] + 0.1 * error
    assert atol < 0.5 * error
    assert_allclose(found.parameters_[NAME], np.exp(best.x), atol=atol)
    assert_allclose(found.standard_errors_[NAME], error, rtol=0.2)
    atol = 4 * found.log_likelihood_error_ + 0.01
    assert_allclose(found.log_likelihood_, -best.fun, atol=atol)


@pytest.mark.slow
def test_intervals_are_those_of_the_profile_likelihood():
    """Of two parameters, on rows where standard errors give others.

    Ends are exact to a tenth of a standard error, of quadratics and of noise.
    """
    X, other = rows(15, seed=7), "model__observation_variance"

    def log_likelihood(u, v):
        return exact_log_likelihood(X, np.exp(u), np.exp(v))

    def profile(u):
        found = minimize_scalar(
            lambda v: -log_likelihood(u, v), bounds=(-5, 2), method="bounded"
        )
        return -found.fun

    best = minimize_scalar(lambda u: -profile(u), bounds=(-4, 3), method="bounded")
    fall = norm.ppf(0.95) ** 2 / 2
    ends = [
        brentq(lambda u: profile(u) + best.fun + fall, best.x, best.x + d, xtol=1e-3)
        for d in (-4, 4)
    ]
    found = learner({NAME: gamma(2, scale=0.5), other: gamma(2, scale=0.5)}).fit(X)
    error = found.standard_errors_[NAME] / found.parameters_[NAME]
    wald = best.x + norm.ppf(0.95) * error * np.array([-1, 1])
    assert np.abs(wald - ends).max() > 0.2 * error
    assert_allclose(np.log(found.intervals(0.9)[NAME]), ends, atol=0.1 * error)


@pytest.mark.slow
def test_a_search_leaves_where_the_likelihood_is_flat():
    """Ranges whose distribution is a thousand times too small reach the maximum."""
    X = rows()
    best = minimize_scalar(
        lambda u: -exact_log_likelihood(X, np.exp(u)), bounds=(-4, 2), method="bounded"
    )
    found = learner({NAME: gamma(2, scale=5e-4)}, n_repeats=4).fit(X)
    assert found.converged_
    error = found.standard_errors_[NAME]
    assert_allclose(found.parameters_[NAME], np.exp(best.x), atol=0.2 * error)


def still_rows():
    """Rows of a level that does not move."""
    X = np.random.default_rng(1).permutation(np.linspace(-1, 1, 30))[:, None]
    return X * np.where(np.arange(30) % 2, 1, -1)[:, None] / 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_may_end_anywhere():
    """Also in the iteration that fixes one of two parameters at its bound."""
    ranges = {NAME: gamma(2, scale=0.5), "model__observation_variance": (0.0, 4.0)}
    found = learner(ranges, max_iter=1, n_repeats=4).fit(still_rows())
    assert found.standard_errors_[NAME] == np.inf
    for name, (low, high) in found.intervals().items():
        assert low <= found.parameters_[name] <= high


@pytest.mark.filterwarnings("ignore:The Monte Carlo error")
def test_few_particles_do_not_pass_in_silence():
    """The mean of ten likelihoods is then that of two, whose spread says little."""
    tracker = ClusteredParticleFilter(
        LocalLevel(0.0, 1.0, observation_variance=0.5),
        **{"method": "sqmc", "proposal": "prior", "n_particles": 2},
    )
    with pytest.warns(ConvergenceWarning, match="Few of the 10 runs"):
        ParticleMaximumLikelihood(
            tracker, {NAME: gamma(2, scale=0.5)}, random_state=0
        ).fit(rows(15))


@pytest.mark.slow
def test_a_level_that_does_not_move_is_a_bound():
    X = still_rows()
    with pytest.warns(UserWarning, match="does not decrease towards an end of the"):
        found = learner(n_repeats=4).fit(X)
    assert not found.converged_
    assert found.standard_errors_[NAME] == np.inf


@pytest.mark.slow
def test_a_range_of_which_the_model_takes_a_part():
    with pytest.warns(UserWarning, match="ended in an error .* likelihood 0"):
        found = learner({NAME: (-2.0, 4.0)}, n_repeats=4).fit(rows(20))
    assert 0 < found.parameters_[NAME] < 4
    with pytest.raises(ValueError, match="must be finite and at least 0"):
        learner({NAME: (-2.0, -1.0)}).fit(rows(5))


class Rough:
    """Quadratics of curvature 1 for two parameters, and noise that nothing smooths."""

    def __init__(self, noise):
        self.priors = Priors({"a": norm(0, 5), "b": norm(0, 5)})
        self.noise = noise

    def log_likelihood(self, position, seed):
        drawn = [seed, *np.abs(position).view(np.uint64) >> np.uint64(20)]
        normal = np.random.default_rng([int(x) for x in drawn]).normal()
        return self.noise * normal - 0.5 * np.sum((position - 1) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.5, 1.5])
def test_noise_is_no_curvature(noise):
    """No search ends with standard errors that noise has made: half of 1, or less."""
    errors = []
    for seed in range(8):
        ascent = Ascent(Rough(noise), 10, None, np.random.default_rng(seed))
        for found, _ in zip(ascent.iterate(0.2), range(20), strict=False):
            if found:
                break
        if found:
            errors += list(np.sqrt(np.diag(ascent.covariance)))
    assert len(errors) >= 8
    assert np.min(errors) > 0.5
    assert np.median(errors) == pytest.approx(1.0, abs=0.01 + 0.15 * noise)


@pytest.mark.parametrize(
    "ends",
    [(2.0, 1.0), [0.0], (0.0, np.inf), (np.nan, 1.0), ("0", "1"), (None, 1.0), (0j, 1)],
)
def test_ends_that_are_no_range(ends):
    with pytest.raises(ValueError, match="two finite numbers"):
        learner({NAME: ends}).fit(rows())


def test_no_parameters():
    with pytest.raises(ValueError, match="parameters is empty"):
        learner({}).fit(rows())
