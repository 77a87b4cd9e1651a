"""Warnings of columns of the state that hardly move, which a filter cannot learn."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.filtering import ClusteredParticleFilter


class Trend(BaseEstimator):
    """A level that rises by a slope, of which `noise` is the noise in each row."""

    n_noise = 2

    def __init__(self, noise=0.0, unit=1.0):
        self.noise = noise
        self.unit = unit

    def initial(self, z):
        return self.unit * z * [10.0, 1.0]

    def transition(self, x, z, t):
        z = self.unit * z
        level = x[:, 0] + x[:, 1] + 0.5 * z[:, 0]
        return np.column_stack([level, x[:, 1] + self.noise * z[:, 1]])

    def log_likelihood(self, x, y, t):
        return stats.norm.logpdf(y[0], x[:, 0] / self.unit, 1.0)


class Regimes(BaseEstimator):
    """Two means, of which each stays for about two hundred rows."""

    n_noise = 2

    def initial(self, z):
        return np.column_stack([z[:, 0] > 0, z[:, 1]]).astype(float)

    def transition(self, x, z, t):
        regime = np.where(z[:, 0] > 2.6, 1.0 - x[:, 0], x[:, 0])
        return np.column_stack([regime, 0.9 * x[:, 1] + z[:, 1]])

    def log_likelihood(self, x, y, t):
        return stats.norm.logpdf(y[0], x[:, 1] + 3.0 * x[:, 0], 1.0)


class TwoModes(BaseEstimator):
    """A random walk, of which the absolute value is observed."""

    n_noise = 1

    def initial(self, z):
        return 20.0 * z

    def transition(self, x, z, t):
        return x + 0.5 * z

    def log_likelihood(self, x, y, t):
        return stats.norm.logpdf(y[0], np.abs(x[:, 0]), 0.5)


def rows(noise=0.0, n=200, seed=0):
    rng = np.random.default_rng(seed)
    slope = 0.3 + np.cumsum(noise * rng.normal(size=n))
    level = np.cumsum(slope + 0.5 * rng.normal(size=n))
    return (level + rng.normal(size=n))[:, None]


OPTIONS = [{}, {"n_clusters": None}, {"method": "sqmc", "n_particles": 256}]


@pytest.mark.parametrize("noise", [0.0, 1e-4])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_slope_that_hardly_moves_is_warned_of(noise, options):
    tracker = ClusteredParticleFilter(Trend(noise), random_state=0, **options)
    with pytest.warns(ConvergenceWarning, match="Column 1 of the state hardly moves"):
        tracker.fit(rows())


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**600])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_units_whose_squares_are_not_representable_do_not_matter(noise, unit):
    model = Trend(noise, unit)
    tracker = ClusteredParticleFilter(model, n_clusters=None, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.fit(rows(noise))
    assert any("hardly moves" in str(w.message) for w in caught) == (noise == 0.0)


def learn(tracker, X):
    for row in X:
        tracker = tracker.partial_fit(row[None])


def test_a_stream_and_new_rows_are_warned_of():
    X = rows()
    tracker = ClusteredParticleFilter(Trend(), random_state=0)
    with pytest.warns(ConvergenceWarning, match="hardly moves"):
        learn(tracker, X[:40])
    tracker = ClusteredParticleFilter(Trend(), random_state=0).fit(X[:12])
    with pytest.warns(ConvergenceWarning, match="hardly moves"):
        tracker.filter(X[12:])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("model", [Trend(0.05), Trend(0.5), Regimes(), TwoModes()])
def test_states_that_move_are_not_warned_of(model, options):
    rng = np.random.default_rng(1)
    X = {
        "Trend": rows(getattr(model, "noise", 0.0)),
        "Regimes": 2.0 * rng.normal(size=(200, 1))
        + 3.0 * (np.arange(200) > 99)[:, None],
        "TwoModes": np.abs(5.0 + np.cumsum(0.5 * rng.normal(size=(200, 1)), axis=0)),
    }[type(model).__name__]
    tracker = ClusteredParticleFilter(model, random_state=0, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.fit(X)
    assert not [w for w in caught if "hardly moves" in str(w.message)]


def test_few_rows_and_few_particles_are_not_warned_of():
    ClusteredParticleFilter(Trend(), random_state=0).fit(rows(n=7))
    few = ClusteredParticleFilter(Trend(), n_particles=40, n_clusters=None)
    few.set_params(random_state=0).fit(rows(n=40))
