"""Rows weighed in stages: exact in expectation, and right where a plain filter is lost.

A mean over runs is compared within four of its standard errors, as in
`test_filtering_exact`.
"""

import pickle

import numpy as np
import pytest
from kalman import rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest
from sklearn.exceptions import ConvergenceWarning

import skpacbayes
from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering._cloud import Row
from skpacbayes.filtering._model import CalledModel, asked_for
from skpacbayes.filtering._tempering import Recent, _moved
from skpacbayes.filtering.models import LinearGaussian, LocalLevel


def precise():
    """A plane in which rows say much more than the transition."""
    return LinearGaussian(
        [[0.7, 0.3], [-0.2, 0.6]],
        [[1.0, 0.0], [0.5, 1.0]],
        [[1.0, 0.3], [0.3, 0.5]],
        [[0.01, 0.0], [0.0, 0.02]],
        initial_mean=[1.0, -1.0],
        initial_covariance=[[2.0, 0.5], [0.5, 1.0]],
    )


class Bearings:
    """A ship seen from one place, by its direction only (Gordon et al. 1993)."""

    n_noise = 4
    std = 0.005

    def initial(self, z):
        return np.array([0.0, 0.0, 0.4, -0.05]) + z * [0.5, 0.005, 0.3, 0.01]

    def transition(self, x, z, t):
        push = 0.001 * z[:, :2]
        moved = x.copy()
        moved[:, ::2] += x[:, 1::2] + 0.5 * push
        moved[:, 1::2] += push
        return moved

    def log_likelihood(self, x, y, t):
        gap = np.arctan2(x[:, 2], x[:, 0]) - y[0]
        gap = (gap + np.pi) % (2 * np.pi) - np.pi
        return -0.5 * (gap / self.std) ** 2

    def rows(self, seed, n_rows=24):
        rng = np.random.default_rng(seed)
        x, X = np.array([[-0.05, 0.001, 0.7, -0.055]]), []
        for t in range(n_rows):
            x = self.transition(x, rng.normal(size=(1, 4)), t) if t else x
            X.append(np.arctan2(x[:, 2], x[:, 0]) + self.std * rng.normal(size=1))
        return np.array(X)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The log-likelihood has an estimated"
)  # 64 particles
@pytest.mark.parametrize(
    "parameters",
    [
        {"tempering": 1, "n_clusters": None},
        {"tempering": 3, "conservation": 1.0},
        {"tempering": 2, "proposal": "auxiliary", "resampling": "multinomial"},
    ],
    ids=str,
)
def test_the_likelihood_stays_unbiased(parameters):
    model = precise()
    X = rows_of(model, 8)[3:]  # two of them missing, three precise
    exact = model.kalman(X)[2].sum()
    options = {"proposal": "prior", "n_particles": 64} | parameters
    estimates = [
        ClusteredParticleFilter(model, random_state=seed, **options)
        .fit(X)
        .log_likelihood_
        for seed in range(60)
    ]
    ratios = np.exp(np.array(estimates) - exact)
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert abs(ratios.mean() - 1.0) < 4 * error
    assert error < 0.25  # not a mean of one lucky run


def test_means_and_spreads_are_those_of_kalman():
    """Of one run; seven standard errors with a tenth of the particles effective."""
    model = precise()
    X = rows_of(model, 8)
    means, covariances, log_likelihoods = model.kalman(X)
    tracker = ClusteredParticleFilter(
        model, n_particles=4000, proposal="prior", tempering=3, random_state=0
    )
    found, spreads = tracker.fit_filter(X)
    stds = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    assert np.all(np.abs(found - means) < 7 * stds / np.sqrt(400))
    assert_allclose(spreads, stds, rtol=7 / np.sqrt(2 * 400))
    assert_allclose(tracker.log_likelihood_, log_likelihoods.sum(), atol=0.5)


def test_moves_leave_the_distribution_as_it_is():
    """At exponent e the noise of a level seen once has the precision 1 + e / R."""
    model = LinearGaussian([[1.0]], [[1.0]], [[1.0]], [[0.1]])
    called, rng = CalledModel(model, asked_for(model, False)), np.random.default_rng(0)
    exponent, y, n = 0.3, 1.0, 4000
    precision = 1.0 + exponent / 0.1
    mean = exponent * y / 0.1 / precision
    noise = (mean + rng.normal(size=(1, n, 1)) / np.sqrt(precision)).copy()
    recent = Recent(0, None, None, (Row(np.array([y]), False),), noise)
    walked = recent.walk(noise, called)
    moved, particles, earlier, last = _moved(recent, *walked, exponent, called, rng)
    assert np.mean(moved.noise != noise) > 0.7  # three steps, most are short
    scores = (moved.noise[0, :, 0] - mean) * np.sqrt(precision)
    assert kstest(scores, "norm").pvalue > 1e-4
    assert_array_equal(particles, moved.noise[0])
    for part, again in zip(
        (particles, earlier, last), recent.walk(moved.noise, called), strict=True
    ):
        assert_array_equal(part, again)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:One or a few of 1000 particles")
@pytest.mark.filterwarnings("ignore:The log-likelihood has an estimated")
@pytest.mark.filterwarnings("ignore:The log-likelihood and the states are not")
def test_bearings_that_a_plain_filter_loses():
    """The reference is the mean of runs with 200,000 particles, 71.2 and 64.8."""
    model = Bearings()
    constant = -24 * (np.log(model.std) + 0.5 * np.log(2 * np.pi))
    for seed, reference in ((0, 71.2), (2, 64.8)):
        X = model.rows(seed)
        gaps = {
            tempering: [
                ClusteredParticleFilter(
                    model, tempering=tempering, n_clusters=None, random_state=run
                )
                .fit(X)
                .log_likelihood_
                + constant
                - reference
                for run in range(5)
            ]
            for tempering in (None, 5)
        }
        assert np.min(gaps[5]) > -6
        assert np.max(gaps[5]) < 4
        assert np.median(gaps[None]) < -50  # lost


class Heard(Bearings):
    """Bearings whose functions ask for the state and row before, and for inputs."""

    def transition(self, x, z, t, y_prev, u):
        return super().transition(x + 0.01 * u[0] * np.nan_to_num(y_prev[0]), z, t)

    def log_likelihood(self, x, y, t, x_prev=None):
        slow = 0.0 if x_prev is None else np.abs(x - x_prev).sum(axis=1)
        return super().log_likelihood(x, y, t) - 0.1 * slow


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:More than 8 stages of tempering")  # other bearings
def test_the_streaming_contract():
    """In pieces, after a pickle, and asked in between: the same state."""
    model = Heard()
    X, inputs = Bearings().rows(1, 14), np.linspace(-1, 1, 14)[:, None]
    X[9] = np.nan
    whole, parts = (
        ClusteredParticleFilter(model, n_particles=40, tempering=3, random_state=0)
        for _ in range(2)
    )
    whole.fit(X, inputs=inputs)
    parts.fit(X[:7], inputs=inputs[:7])
    for t in range(7, 14):
        asked = parts.predict(X[t : t + 1], inputs=inputs[t : t + 1])
        parts = pickle.loads(pickle.dumps(parts))
        parts.partial_fit(X[t : t + 1], inputs=inputs[t : t + 1])
        assert_allclose(asked[0], parts.mean_, rtol=1e-10)
    assert_array_equal(whole.particles_, parts.particles_)
    assert whole.log_likelihood_ == parts.log_likelihood_


@pytest.mark.filterwarnings("ignore:More than 8 stages of tempering")  # other bearings
@pytest.mark.filterwarnings("ignore:The log-likelihood and the states are not")
def test_the_noise_that_is_kept_leads_to_the_particles():
    model = Bearings()
    X = model.rows(3)
    tracker = ClusteredParticleFilter(
        model, n_particles=300, tempering=4, random_state=0
    )
    for t in range(len(X)):
        recent = tracker.partial_fit(X[t : t + 1])._cloud.recent
        assert len(recent.rows) == min(t + 1, 4)
        called = CalledModel(model, asked_for(model, False))
        assert_allclose(recent.walk(recent.noise, called)[0], tracker.particles_)


def test_what_cannot_be_tempered():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match='tempering=2 needs method="bootstrap"'):
        ClusteredParticleFilter(tempering=2, method="sqmc").fit(X)
    model = precise()
    rows = rows_of(model, 9)
    tracker = ClusteredParticleFilter(model, tempering=3, random_state=0)
    with pytest.raises(ValueError, match="Smooth with tempering=1"):
        tracker.fit_smooth(rows)
    smoothed = tracker.set_params(tempering=1).fit_smooth(rows)[0]
    assert np.isfinite(smoothed).all()


def test_a_row_that_no_particle_explains():
    class Impossible(LocalLevel):
        def log_likelihood(self, x, y, t):
            return np.where(np.abs(x[:, 0]) < 1e3, -np.abs(x[:, 0]), -np.inf) + (
                -np.inf if y[0] > 50 else 0.0
            )

    X = np.array([[0.0], [1.0], [100.0], [1.0]])
    tracker = ClusteredParticleFilter(
        Impossible(), proposal="prior", tempering=1, random_state=0
    )
    with pytest.warns(UserWarning, match="row 2"):
        tracker.fit(X)
    assert tracker.log_likelihood_ == -np.inf
    assert np.isfinite(tracker.mean_).all()


def test_a_stream_goes_on_from_skops():
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    model = precise()
    X = rows_of(model, 10)
    tracker = ClusteredParticleFilter(model, n_particles=50, tempering=3).fit(X[:8])
    trusted = [
        *skpacbayes.TRUSTED_TYPES,
        "skpacbayes.filtering.models.LinearGaussian",
    ]
    loaded = io.loads(io.dumps(tracker), trusted=trusted)
    for one in (tracker, loaded):
        one.partial_fit(X[8:])
    assert_array_equal(loaded.particles_, tracker.particles_)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_row_that_tempering_does_not_reach(scale):
    """A warning names it; none for a row that is reached."""
    model = LocalLevel(0.0, *[scale**2] * 3)
    tracker = ClusteredParticleFilter(
        model, tempering=3, proposal="prior", n_particles=500, random_state=0
    )
    X = scale * np.random.default_rng(0).normal(size=(8, 1))
    for far in (6.0, -6.0):
        X[5] = far * scale
        tracker.fit(X)
    for far in (60.0, -60.0):
        X[5] = far * scale
        with pytest.warns(ConvergenceWarning, match="stages of tempering .* row 5 "):
            tracker.fit(X)
