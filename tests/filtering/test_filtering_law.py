"""Filters of any rows of a linear model, against the Kalman filter."""

import numpy as np
import pytest
from kalman import plane
from scipy.stats import norm

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import LinearGaussian

LEVELS = (0.05, 0.5, 0.95)
OPTIONS = {
    "default": {},
    "plain": {"n_clusters": None},
    "auxiliary": {"proposal": "auxiliary"},
    "sqmc": {"method": "sqmc", "n_particles": 1024},
    "tempered": {"proposal": "prior", "tempering": 1},
}


def walk(noise=1.0, start=0.0):
    """A random walk from `start`, observed with noise."""
    return LinearGaussian(1.0, 1.0, 1.0, noise, start, 1.0)


def line():
    """A level and its slope, of which the level is observed."""
    return LinearGaussian(
        [[1, 1], [0, 1]], [[1, 0]], 0.1 * np.eye(2), 0.5, [0, 0], np.eye(2)
    )


def drawn(model, n=24):
    """Rows of a model."""
    rng = np.random.default_rng(0)
    particles = model.initial(rng.normal(size=(1, model.n_noise)))
    X = []
    for t in range(n):
        if t:
            particles = model.transition(
                particles, rng.normal(size=(1, model.n_noise)), t
            )
        width = len(np.atleast_2d(model.observation_covariance))
        X.append(model.observation(particles, rng.normal(size=(1, width)), t)[0])
    return np.array(X)


def without(X, *missing):
    """Rows of which some are missing."""
    X = X.copy()
    X[slice(*missing)] = np.nan
    return X


CASES = {
    "rows": (walk(), drawn(walk())),
    "one row": (walk(), drawn(walk(), 1)),
    "two rows": (walk(), drawn(walk(), 2)),
    "missing at the start": (walk(), without(drawn(walk()), 0, 5)),
    "missing in the middle": (walk(), without(drawn(walk()), 8, 14)),
    "missing at the end": (walk(), without(drawn(walk()), 20, 24)),
    "no row observed": (walk(), without(drawn(walk()), 0, 24)),
    "list": (walk(), drawn(walk()).tolist()),
    "float32": (walk(), drawn(walk()).astype(np.float32)),
    "informative": (walk(1e-4), drawn(walk(1e-4))),
    "far from 0": (walk(start=1e6), drawn(walk(start=1e6))),
    "two states": (line(), drawn(line())),
    "two features": (plane(), drawn(plane())),
}


@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("case", list(CASES))
def test_filter_and_forecast_are_those_of_kalman(case, options):
    """Of fixed rows and seeds, to a quarter of a standard deviation.

    The standard errors of a mean and of a quantile of 5 % of 1,000 particles are 0.03
    and 0.07 deviations; those after resampling, and of tempering, are up to twice that.
    """
    model, X = CASES[case]
    tracker = ClusteredParticleFilter(model, random_state=0, **OPTIONS[options])
    tracker.fit(X)
    means, covariances, log_likelihoods = model.kalman(np.asarray(X, dtype=float))
    mean, covariance = means[-1], covariances[-1]
    deviations = np.sqrt(covariance.diagonal())
    assert np.all(abs(tracker.mean_ - mean) < 0.25 * deviations)
    found = np.sqrt(tracker.covariance_.diagonal()) / deviations
    assert np.all((found > 0.85) & (found < 1.15))
    noise = tracker.log_likelihood_std_
    error = tracker.log_likelihood_ - log_likelihoods.sum()
    assert abs(error + 0.5 * noise**2) < 0.01 + 4.0 * noise
    forecast = tracker.forecast(3, quantiles=LEVELS)
    F, G, Q, R = (
        np.atleast_2d(np.asarray(matrix, dtype=float))
        for matrix in (
            model.transition_matrix,
            model.observation_matrix,
            model.transition_covariance,
            model.observation_covariance,
        )
    )
    for ahead in range(3):
        mean, covariance = F @ mean, F @ covariance @ F.T + Q
        spreads = np.sqrt((G @ covariance @ G.T + R).diagonal())
        scores = (forecast.quantiles[:, ahead] - G @ mean) / spreads
        assert np.all(abs(scores - norm.ppf(LEVELS)[:, None]) < 0.3)


@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("case", list(CASES))
def test_rows_one_by_one_are_rows_at_once(case, options):
    model, X = CASES[case]
    X = np.asarray(X, dtype=float)
    tracker = ClusteredParticleFilter(model, random_state=0, **OPTIONS[options])
    for row in X:
        tracker.partial_fit(row[None])
    again = ClusteredParticleFilter(model, random_state=0, **OPTIONS[options]).fit(X)
    assert np.array_equal(tracker.particles_, again.particles_)
    assert tracker.log_likelihood_ == again.log_likelihood_
