"""The origin and the unit of the rows change nothing but the origin and the unit.

Every answer after `fit`, and after rows that follow it, is compared with Kalman's.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import (
    LinearGaussian,
    LocalLevel,
    StochasticVolatility,
    TerrainNavigation,
)

N_PARTICLES = 4096
ORIGINS = [(0.0, 1.0), (50.0, 1.0), (1e4, 1e-3), (1e4, 1e3)]
each_origin = pytest.mark.parametrize(("offset", "unit"), ORIGINS)
METHODS = [{}, {"n_clusters": None}, {"method": "sqmc"}]
each_method = pytest.mark.parametrize("parameters", METHODS, ids=str)


def walk(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)).cumsum(axis=0) + rng.normal(size=(n, 2))


def tracker(model=None, **parameters):
    parameters = {"n_particles": N_PARTICLES, "random_state": 0} | parameters
    return ClusteredParticleFilter(model, **parameters)


class Level:
    """Kalman's answer for independent random walks, one row at a time."""

    def __init__(self):
        self.mean = None

    def step(self, model, y):
        """Learn a row under a model; its log density where the model weighs it."""
        if self.mean is None:
            self.mean, self.variance = model.mean_ + 0.0, model.scale_**2
        else:
            self.variance = self.variance + model.step_**2
        here = model.weighed_ & ~np.isnan(y)
        spread = self.variance + model.noise_
        gain = np.where(here, self.variance / np.where(here, spread, 1.0), 0.0)
        gap = np.where(here, y - self.mean, 0.0)
        log_density = norm.logpdf(gap[here], 0, np.sqrt(spread[here])).sum()
        self.mean = self.mean + gain * gap
        self.variance = (1 - gain) * self.variance
        return log_density


def assert_near(found, exact, std):
    """Seven standard errors with an effective size of a twentieth of the particles."""
    assert_allclose((found - exact) / std, 0.0, atol=7 / np.sqrt(N_PARTICLES / 20))


@each_origin
@each_method
def test_the_default_model_after_fit(parameters, offset, unit):
    X = offset + unit * walk()
    X[60, 1] = X[65] = np.nan
    fitted = tracker(**parameters).fit(X[:50])
    level, model = Level(), fitted.model_
    first = sum(level.step(model, y) for y in X[:50])
    assert_allclose(fitted.log_likelihood_, first, atol=1.0)
    means, variances, log_densities = [], [], []
    for y in X[50:]:
        log_densities.append(level.step(model, y))
        means.append(level.mean)
        variances.append(level.variance)
    stds = np.sqrt(variances)
    found_means, found_stds = fitted.filter(X[50:])
    assert_near(found_means, means, stds)
    assert_allclose(found_stds, stds, rtol=7 / np.sqrt(2 * N_PARTICLES / 20))
    assert_allclose(fitted.log_likelihoods(X[50:]), log_densities, atol=0.4)
    assert_allclose(fitted.score(X[50:]), np.mean(log_densities), atol=0.05)
    assert_near(fitted.predict(X[50:51]), means[0], stds[0])
    assert_allclose(fitted.score_samples(X[50:51]), log_densities[0], atol=0.4)
    smoothed, _ = fitted.smooth(X[50:55])
    assert_near(smoothed[-1], means[4], stds[4])


@each_origin
@each_method
@pytest.mark.parametrize("n_fitted", [0, 50])
def test_the_default_model_in_a_stream(parameters, offset, unit, n_fitted):
    """The model learns each row after its step; Kalman is given the same models.

    Seven standard errors with the smallest effective size of the last three rows,
    halved for what it loses at resampling; the first ten rows give the scale.
    """
    X = offset + unit * walk()
    X[2, 0] = X[60, 1] = X[65] = np.nan
    stream, level = tracker(**parameters), Level()
    if n_fitted:
        stream.fit(X[:n_fitted])
        for y in X[:n_fitted]:
            level.step(stream.model_, y)
    sizes = []
    for t, y in enumerate(X[n_fitted:], n_fitted):
        model = getattr(stream, "model_", None)
        before = getattr(stream, "log_likelihood_", 0.0)
        stream.partial_fit(y[None])
        log_density = level.step(stream.model_ if model is None else model, y)
        sizes.append(stream.ess_)
        if t >= 10:
            atol = 7 / np.sqrt(min(sizes[-3:]) / 2)
            gap = (stream.mean_ - level.mean) / np.sqrt(level.variance)
            assert_allclose(gap, 0.0, atol=atol)
            evidence = stream.log_likelihood_ - before
            assert_allclose(evidence, log_density, atol=atol)


@each_origin
def test_log_densities_are_in_the_unit_of_the_rows(offset, unit):
    """Those of a scaled stream differ by the logarithm of the scale, once a value."""
    X = walk(40)
    plain, moved = tracker(), tracker()
    plain.partial_fit(X)
    moved.partial_fit(offset + unit * X)
    # the first value of a feature gives its level, the second its scale
    expected = plain.log_likelihood_ - 38 * 2 * np.log(unit)
    assert_allclose(moved.log_likelihood_, expected, atol=1.5)
    assert_allclose((moved.mean_ - offset) / unit, plain.mean_, atol=0.3)


@pytest.mark.parametrize("offset", [0.0, 50.0, 1e4])
def test_a_stream_that_starts_with_a_gap(offset):
    """The level moves to the first value, and not again."""
    X = offset + walk(30)
    X[:3] = np.nan
    X[:10, 1] = np.nan
    stream = tracker(n_particles=2000)
    for t, y in enumerate(X):
        stream.partial_fit(y[None])
        if t > 4:
            assert abs(stream.mean_[0] - y[0]) < 5
        if t > 11:
            assert abs(stream.mean_[1] - y[1]) < 5
    after_gap = tracker(n_particles=2000).fit(X[:8])  # never saw the second feature
    for t in range(8, 30):
        after_gap.partial_fit(X[t : t + 1])
        if t > 11:
            assert np.all(np.abs(after_gap.mean_ - X[t]) < 5)


def test_a_mean_that_is_given_is_not_moved():
    """Neither in fit nor in a stream, not even one that starts with a gap."""
    model = LocalLevel(2.0, 1.0, 1.0, 1.0)
    X = 2.0 + walk(20)
    X[:3] = np.nan
    exact = LinearGaussian(*[np.eye(2)] * 4, [2.0, 2.0], np.eye(2))
    means, _, log_densities = exact.kalman(X)
    for learn in ("fit", "partial_fit"):
        found = getattr(tracker(model), learn)(X)
        assert_near(found.mean_, means[-1], 0.5)
        assert_allclose(found.log_likelihood_, log_densities.sum(), atol=0.5)


@each_origin
def test_a_linear_model_after_fit(offset, unit):
    """A walk that starts at the offset: fit, then filter, score and partial_fit."""
    model = LinearGaussian(
        np.eye(2),
        np.eye(2),
        unit**2 * np.eye(2),
        unit**2 * np.eye(2),
        [offset, offset],
        unit**2 * np.eye(2),
    )
    X = offset + unit * walk()
    means, covariances, log_densities = model.kalman(X)
    stds = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    fitted = tracker(model).fit(X[:50])
    assert_near(fitted.filter(X[50:])[0], means[50:], stds[50:])
    assert_near(fitted.predict(X[50:51]), means[50], stds[50])
    assert_allclose(fitted.log_likelihoods(X[50:]), log_densities[50:], atol=0.2)
    assert_near(fitted.partial_fit(X[50:]).mean_, means[-1], stds[-1])
    assert_allclose(fitted.log_likelihood_, log_densities.sum(), atol=1.0)


MODELS = {
    "LocalLevel": LocalLevel(),
    "LocalLevel, given": LocalLevel(0.0, 1.0, 1.0, 1.0),
    "LinearGaussian": LinearGaussian(*[np.eye(1)] * 4),
    "StochasticVolatility": StochasticVolatility(),
    "TerrainNavigation": TerrainNavigation(
        np.add.outer(np.arange(30.0), np.arange(40.0) ** 2), [0.1, 0.2], height_std=9.0
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_after_fit_are_weighed_as_rows_of_one_fit(name):
    """`fit` of all rows, or of the first and `filter` of the rest: the same run."""
    X = walk(40)[:, :1]
    if name == "TerrainNavigation":
        X = X - 100.0
    cut = tracker(MODELS[name], n_particles=256).fit(X[:25])
    one = tracker(MODELS[name], n_particles=256)
    if name == "LocalLevel":  # whose variances come from all rows of `fit`
        model = cut.model_
        one.model = LocalLevel(model.mean_, model.scale_**2, model.step_**2)
        one.model.observation_variance = model.noise_
    means, _ = one.fit_filter(X)
    assert_allclose(cut.filter(X[25:])[0], means[25:], rtol=1e-9, atol=1e-9)
