"""The estimated error of the log-likelihood, against its spread and against Kalman."""

import pickle
import warnings

import numpy as np
import pytest
from kalman import plane, rows_of
from numpy.testing import assert_allclose

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import (
    LinearGaussian,
    LocalLevel,
    StochasticVolatility,
)

MESSAGE = "The log-likelihood has an estimated standard deviation"


def independent(n_states, noise=1.0):
    """Independent autoregressive states, each observed with noise."""
    unit = np.eye(n_states)
    zero = np.zeros(n_states)
    return LinearGaussian(0.9 * unit, 0.5 * unit, unit, noise * unit, initial_mean=zero)


def simulated(model, n, seed=0):
    rng = np.random.default_rng(seed)
    n_states = len(model.initial_mean)
    state, rows = rng.normal(size=n_states), []
    for _ in range(n):
        state = 0.9 * state + np.sqrt(0.5) * rng.normal(size=n_states)
        scale = np.sqrt(np.asarray(model.observation_covariance)[0, 0])
        rows.append(state + scale * rng.normal(size=n_states))
    return np.array(rows)


def warned(tracker, X, method="fit"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(tracker, method)(X)
    return any(MESSAGE in str(warning.message) for warning in caught)


CASES = {
    "plain": (plane(), {"n_clusters": None}),
    "clusters": (plane(), {}),
    "multinomial": (plane(), {"n_clusters": None, "resampling": "multinomial"}),
    "prior": (plane(), {"proposal": "prior"}),
    "every row": (plane(), {"ess_threshold": 1.0}),
    "tempering": (plane(), {"tempering": 1}),
    "volatility": (StochasticVolatility(phi=0.95, sigma=0.3, beta=1.0), {}),
    "level": (LocalLevel(0.0, 1.0, 0.3, 1.0), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_deviation_is_that_between_seeds(name):
    """Of 40 runs, within a factor of two."""
    model, parameters = CASES[name]
    X = rows_of(plane(), 30, seed=3)
    X = X if name not in ("volatility", "level") else X[:, :1]
    parameters = {"n_particles": 120, **parameters}
    runs = [
        ClusteredParticleFilter(model, random_state=seed, **parameters).fit(X)
        for seed in range(40)
    ]
    spread = np.std([run.log_likelihood_ for run in runs], ddof=1)
    found = np.sqrt(np.mean([run.log_likelihood_std_**2 for run in runs]))
    assert spread / 2 < found < 2 * spread


def test_the_deviation_falls_with_the_number_of_particles():
    X = simulated(independent(1), 50)
    few, many = (
        ClusteredParticleFilter(independent(1), n_particles=n, random_state=0).fit(X)
        for n in (100, 6400)
    )
    ratio = few.log_likelihood_std_ / many.log_likelihood_std_
    assert 4 < ratio < 16  # 8, the square root of the ratio of numbers


@pytest.mark.parametrize(("n_states", "n"), [(7, 150), (12, 60), (20, 40)])
def test_a_log_likelihood_that_is_nats_too_low_is_warned_of(n_states, n):
    model = independent(n_states)
    X = simulated(model, n)
    tracker = ClusteredParticleFilter(model, random_state=0)
    assert warned(tracker, X)
    assert tracker.log_likelihood_ < model.kalman(X)[2].sum() - 2.0


@pytest.mark.parametrize(("n_states", "n"), [(1, 1000), (2, 300), (4, 60)])
@pytest.mark.parametrize("method", ["bootstrap", "sqmc"])
def test_a_right_log_likelihood_is_not(n_states, n, method):
    model = independent(n_states)
    X = simulated(model, n)
    tracker = ClusteredParticleFilter(model, method=method, random_state=0)
    assert not warned(tracker, X)
    assert_allclose(tracker.log_likelihood_, model.kalman(X)[2].sum(), atol=2.5)


def test_a_stream_warns_once():
    model = independent(15)
    X = simulated(model, 60)
    tracker = ClusteredParticleFilter(model, random_state=0)
    assert sum(warned(tracker, row[None], "partial_fit") for row in X) == 1
    whole = ClusteredParticleFilter(model, random_state=0)
    assert warned(whole, X)
    assert tracker.log_likelihood_std_ == whole.log_likelihood_std_
    assert not warned(tracker, simulated(model, 5, seed=1), "score")


@pytest.mark.parametrize("seed", [0, 3])
def test_a_stream_near_the_limit_warns_once(seed):
    """The estimate crosses the limit, which grows with the rows, several times."""
    model = independent(2)
    X = simulated(model, 230, seed)
    tracker = ClusteredParticleFilter(model, n_particles=100, random_state=seed)
    told = [warned(tracker, row[None], "partial_fit") for row in X]
    assert sum(told) == 1
    again = pickle.loads(pickle.dumps(tracker))
    assert not warned(again, simulated(model, 20, seed=9), "partial_fit")
    assert not warned(again, simulated(model, 20, seed=8), "score")
    assert warned(tracker, X)  # `fit` forgets that it has warned


def test_missing_rows_add_nothing():
    model = independent(2)
    X = simulated(model, 30)
    tracker = ClusteredParticleFilter(model, ess_threshold=0.0, random_state=0).fit(X)
    before = tracker.log_likelihood_std_
    tracker.partial_fit(np.full((20, 2), np.nan))
    assert_allclose(tracker.log_likelihood_std_, before)
