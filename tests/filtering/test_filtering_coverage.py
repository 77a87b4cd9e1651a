"""Particles that descend from a few, where the noise does not spread the state.

A season of s rows has s - 1 directions of the state into which noise comes once in s
rows, or never. The warning must come where the log-likelihood is nats too low, whatever
the method and the coordinates of the state, and not where it is right.
"""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering._coverage import LEAST_SHARE, uncovered
from skpacbayes.filtering.models import LinearGaussian, LinearObservations

MESSAGE = "which the noise of the transition hardly spreads"
POINT = -0.5 * np.log(LEAST_SHARE)  # nats of a direction without noise


class Season(LinearObservations):
    """A level that moves, plus a season whose effects sum to zero.

    The state is `mix` times (level, effects of the last rows).
    """

    observation_covariance = ((0.25,),)

    def __init__(self, period=7, seasonal=0.0, level=0.1, mix=None):
        self.period, self.seasonal, self.level, self.mix = period, seasonal, level, mix

    @property
    def n_noise(self):
        return self.period

    @property
    def observation_matrix(self):
        seen = np.eye(1, self.period) + np.eye(1, self.period, 1)
        return seen @ np.linalg.inv(self._mixed())

    def _mixed(self):
        return np.eye(self.period) if self.mix is None else np.asarray(self.mix)

    def matrix(self):
        """Transition of the level and the effects."""
        matrix = np.eye(self.period, k=-1)
        matrix[0] = np.eye(1, self.period)
        matrix[1] = np.r_[0.0, -np.ones(self.period - 1)]
        return matrix

    def steps(self):
        """Deviations of the noise of the level and the effects."""
        return np.r_[self.level, self.seasonal, np.zeros(self.period - 2)]

    def initial(self, z):
        return 2.0 * z @ self._mixed().T

    def transition(self, x, z, t):
        mixed = self._mixed()
        moved = x @ np.linalg.inv(mixed).T @ self.matrix().T
        return (moved + self.steps() * z) @ mixed.T

    def rows(self, n, seed=0, start=1.0):
        rng, state, X = np.random.default_rng(seed), None, []
        for t in range(n):
            z = rng.normal(size=(1, self.period))
            state = self.transition(state, z, t) if t else self.initial(start * z)
            X.append(state @ self.observation_matrix[0] + 0.5 * rng.normal())
        return np.array(X)

    def exact(self, X):
        """Log-likelihood by the Kalman filter; without `mix`."""
        given = self.matrix(), self.observation_matrix, np.diag(self.steps() ** 2)
        start = np.zeros(self.period), 4.0 * np.eye(self.period)
        return LinearGaussian(*given, np.array([[0.25]]), *start).kalman(X)[2].sum()


def warned(tracker, X, method="fit"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(tracker, method)(X)
    return any(MESSAGE in str(warning.message) for warning in caught)


OPTIONS = {
    "clusters": {},
    "plain": {"n_clusters": None},
    "the paper": {"conservation": 1.0},
    "sqmc": {"method": "sqmc", "n_particles": 1024},
    "prior": {"proposal": "prior"},
    "auxiliary": {"proposal": "auxiliary"},
    "multinomial": {"resampling": "multinomial"},
    "tempering": {"tempering": 2, "n_particles": 200},
    "few": {"n_particles": 120},
}


@pytest.mark.slow
@pytest.mark.parametrize("seasonal", [0.0, 0.05])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_log_likelihood_that_is_too_low_is_warned_of(name, seasonal):
    model = Season(7, seasonal)
    X = model.rows(60, seed=1)
    tracker = ClusteredParticleFilter(model, random_state=0, **OPTIONS[name])
    assert warned(tracker, X)
    assert tracker.log_likelihood_ < model.exact(X) - 3.0


@pytest.mark.slow
@pytest.mark.parametrize("period", [4, 5, 12])
def test_a_season_of_any_length_is_warned_of(period):
    model = Season(period, 0.02)
    X = model.rows(120, seed=2)
    tracker = ClusteredParticleFilter(model, random_state=0)
    assert warned(tracker, X)
    assert tracker.log_likelihood_ < model.exact(X) - 3.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clusters", "plain", "sqmc", "auxiliary"])
@pytest.mark.parametrize(("period", "seasonal"), [(2, 0.05), (2, 0.5), (3, 0.5)])
def test_a_right_log_likelihood_is_not(name, period, seasonal):
    model = Season(period, seasonal)
    X = model.rows(100, seed=3, start=0.5)  # no prior outlier
    tracker = ClusteredParticleFilter(model, random_state=0, **OPTIONS[name])
    assert not warned(tracker, X)
    assert_allclose(tracker.log_likelihood_, model.exact(X), atol=2.5)


def test_the_coordinates_of_the_state_do_not_matter():
    """Also of units that differ by 1e6."""
    rng = np.random.default_rng(4)
    mix = 10.0 ** np.linspace(-3, 3, 5)[:, None] * rng.normal(size=(5, 5))
    X = Season(5).rows(60, seed=4)
    plain, mixed = (
        ClusteredParticleFilter(Season(5, mix=given), n_clusters=None, random_state=0)
        for given in (None, mix)
    )
    assert warned(plain, X)
    assert warned(mixed, X)
    assert_allclose(mixed._cloud.lineage.lost, plain._cloud.lineage.lost, rtol=1e-6)


def test_a_stream_warns_once():
    model = Season(7)
    X = model.rows(40, seed=5)
    tracker = ClusteredParticleFilter(model, random_state=0)
    told = [warned(tracker, row[None], "partial_fit") for row in X[:20]]
    tracker = pickle.loads(pickle.dumps(tracker))
    told += [warned(tracker, row[None], "partial_fit") for row in X[20:]]
    assert sum(told) == 1
    whole = ClusteredParticleFilter(model, random_state=0)
    assert warned(whole, X)
    assert tracker._cloud.lineage.lost == whole._cloud.lineage.lost


def clumps(number, n_states, spread, seed=0):
    """Particles about a number of distant centers, by their index."""
    rng = np.random.default_rng(seed)
    roots = np.arange(3000) % number
    centers = rng.normal(size=(number, n_states))
    particles = centers[roots] + spread * rng.normal(size=(3000, n_states))
    return particles, np.full(3000, 1 / 3000), roots


@pytest.mark.parametrize("number", [2, 8])
def test_points_cover_one_direction_and_no_more(number):
    particles, weights, roots = clumps(number, 7, 0.0)
    directions = min(7, number - 1)  # that differ between the points
    expected = directions * POINT - np.log(number)
    assert_allclose(uncovered(particles, weights, roots), max(0.0, expected))
    line = uncovered(particles[:, :1], weights, roots)
    assert_allclose(line, max(0.0, POINT - np.log(number)))


def test_clumps_that_overlap_cover_the_distribution():
    assert uncovered(*clumps(8, 7, 3.0)) == 0.0
    assert uncovered(*clumps(1, 7, 1.0)) == 0.0


def test_modes_are_not_taken_for_points():
    """The noise spreads them, in all directions alike."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    roots = np.arange(3200) % 16
    noise = np.random.default_rng(0).normal(size=(3200, 4))
    weights = np.full(3200, 1 / 3200)
    assert uncovered(5.0 * signs[roots] + 0.1 * noise, weights, roots) < 0.05
    assert uncovered(5.0 * signs[roots], weights, roots) > 1.0


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
def test_units_whose_squares_are_not_representable_do_not_matter(unit):
    particles, weights, roots = clumps(8, 5, 0.0)
    found = uncovered(particles, weights, roots)
    assert found > 1.0
    assert uncovered(unit * particles, weights, roots) == found
    particles[:, 0] *= unit
    assert uncovered(particles, weights, roots) == found


def test_columns_without_spread_do_not_count():
    particles, weights, roots = clumps(8, 5, 0.0)
    found = uncovered(particles, weights, roots)
    twice = np.column_stack([particles, particles @ np.ones(5), np.full(3000, 1e5)])
    assert_allclose(uncovered(twice, weights, roots), found)
    assert uncovered(np.ones((3000, 5)), weights, roots) == 0.0


def test_weights_are_repetitions():
    particles, _, roots = clumps(6, 5, 0.1)
    few, few_roots = particles[:600], roots[:600]
    times = np.random.default_rng(1).integers(0, 4, 600)
    repeated = np.repeat(np.arange(600), times)
    n = len(repeated)
    assert_allclose(
        uncovered(few, times / n, few_roots),
        uncovered(few[repeated], np.full(n, 1 / n), few_roots[repeated]),
    )
