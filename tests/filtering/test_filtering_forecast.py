"""Forecasts and trajectories, against Kalman."""

import warnings

import numpy as np
import pytest
from kalman import kalman_smoother, plane, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import (
    LinearGaussian,
    LocalLevel,
    StochasticVolatility,
)

METHODS = [{"proposal": "prior"}, {}, {"method": "sqmc"}]
each_method = pytest.mark.parametrize("parameters", METHODS, ids=str)
N_PARTICLES = 8000


def tracker(model, **parameters):
    parameters = {"n_particles": N_PARTICLES, "random_state": 0} | parameters
    return ClusteredParticleFilter(model, **parameters)


def kalman_forecast(model, mean, covariance, h):
    """Means and covariances of the states ahead."""
    F, Q = np.array(model.transition_matrix), np.array(model.transition_covariance)
    for _ in range(h):
        mean, covariance = F @ mean, F @ covariance @ F.T + Q
        yield mean, covariance


@each_method
def test_forecasts(parameters):
    """Means within seven errors of an effective tenth; quantiles of a normal."""
    model = plane()
    X = rows_of(model, 12)
    means, covariances, _ = model.kalman(X)
    fitted = tracker(model, **parameters).fit(X)
    levels = [0.05, 0.5, 0.9]
    G, R = np.array(model.observation_matrix), np.array(model.observation_covariance)
    found = {
        of: fitted.forecast(6, of=of, quantiles=levels)
        for of in ("states", "observations")
    }
    rtol = 7 / np.sqrt(2 * N_PARTICLES / 10)
    ahead = kalman_forecast(model, means[-1], covariances[-1], 6)
    for k, (mean, covariance) in enumerate(ahead):
        expected = {
            "states": (mean, covariance),
            "observations": (G @ mean, G @ covariance @ G.T + R),
        }
        for of, (center, spread) in expected.items():
            std = np.sqrt(np.diag(spread))
            atol = 7 * std.max() / np.sqrt(N_PARTICLES / 10)
            assert_allclose(found[of].means[k], center, atol=atol)
            assert_allclose(found[of].stds[k], std, rtol=rtol)
            quantiles = center + np.multiply.outer(norm.ppf(levels), std)
            assert_allclose(found[of].quantiles[:, k], quantiles, atol=2 * atol)
    assert found["states"].samples.shape == (N_PARTICLES, 6, 2)


@each_method
@pytest.mark.parametrize("horizon", [1, 3])
def test_log_predictive_scores(parameters, horizon):
    model = plane()
    X = rows_of(model, 25)
    X[16] = np.nan
    means, covariances, _ = model.kalman(X)
    fitted = tracker(model, **parameters).fit(X[:10])
    found = fitted.log_likelihoods(X[10:], horizon=horizon)
    G, R = np.array(model.observation_matrix), np.array(model.observation_covariance)
    assert np.isnan(found[: horizon - 1]).all()
    for t in range(10 + horizon - 1, 25):
        start = t - horizon
        *_, (mean, covariance) = kalman_forecast(
            model, means[start], covariances[start], horizon
        )
        gap, spread = X[t] - G @ mean, G @ covariance @ G.T + R
        expected = -0.5 * gap @ np.linalg.solve(spread, gap)
        expected -= 0.5 * np.linalg.slogdet(2 * np.pi * spread)[1]
        assert_allclose(found[t - 10], 0.0 if t == 16 else expected, atol=0.25)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_default_model_forecasts(offset):
    rng = np.random.default_rng(0)
    X = offset + rng.normal(size=(60, 2)).cumsum(axis=0)
    fitted = ClusteredParticleFilter(random_state=0).fit(X)
    found = fitted.forecast(20)
    assert np.all(np.abs(found.means - X[-1]) < 2)
    growth = np.sqrt(20 * fitted.model_.step_**2 + fitted.model_.noise_)
    assert_allclose(found.stds[-1], growth, rtol=0.2)


@pytest.mark.parametrize("of", ["observations", "states"])
def test_features_that_have_not_varied_are_named(of):
    """The default model knows no scale of theirs, and says so whatever is forecast."""
    X = np.column_stack([np.full(20, 5.0), np.arange(20.0), np.full(20, -1.0)])
    some, one = tracker(None).fit(X), tracker(None).partial_fit(X[:1])
    with pytest.warns(UserWarning, match=r"features \[0, 2\] have not varied, or"):
        found = some.forecast(2, of=of)
    assert_array_equal(found.stds[:, [0, 2]], 0)
    assert found.stds[:, 1].min() > 0
    with pytest.warns(UserWarning, match=r"features \[0, 1, 2\] have not varied"):
        one.forecast(2, of=of)
    X[:, 0] = np.nan
    with pytest.warns(UserWarning, match=r"features \[0, 2\] .* values are missing"):
        tracker(None).fit(X).forecast(2, of=of)
    known = LocalLevel(observation_variance=1, transition_variance=1)
    known.set_params(initial_variance=1)
    tracker(known).fit(X[:1]).forecast(2, of=of)


def test_what_is_no_forecast():
    fitted = tracker(plane(), n_particles=50).fit(rows_of(plane(), 12))
    with pytest.raises(ValueError, match="h=0 should be an integer of"):
        fitted.forecast(0)
    with pytest.raises(ValueError, match=r"h=2\.5 should be an integer of"):
        fitted.forecast(2.5)
    with pytest.raises(ValueError, match="horizon=0 should be an integer of"):
        fitted.log_likelihoods(rows_of(plane(), 12), horizon=0)
    with pytest.raises(ValueError, match="should be one or more numbers from 0 to 1"):
        fitted.forecast(1, quantiles=[5, 95])
    with pytest.raises(ValueError, match=r'of should be "observations" or "states"'):
        fitted.forecast(1, of="rows")
    with pytest.raises(ValueError, match="n_trajectories=0 should be an integer of"):
        fitted.sample_trajectories(rows_of(plane(), 12), 0)


class Bare(BaseEstimator):
    """Three functions and no more."""

    n_noise = 1
    like = StochasticVolatility()

    def initial(self, z):
        return self.like.initial(z)

    def transition(self, x, z, t):
        return self.like.transition(x, z, t)

    def log_likelihood(self, x, y, t):
        return self.like.log_likelihood(x, y, t)


def test_a_model_that_draws_no_rows():
    fitted = tracker(Bare(), n_particles=50).fit(np.ones((9, 1)))
    assert fitted.forecast(2, of="states").means.shape == (2, 1)
    with pytest.raises(ValueError, match="Bare has no observation"):
        fitted.forecast(2)


def watched(level, log_density, draw):
    """A random walk whose rows have a log density, and are drawn in some way."""

    class Watched(LocalLevel):
        def log_likelihood(self, x, y, t):
            return log_density(y - level(x)).sum(axis=1)

        def observation(self, x, z, t):
            return level(x) + draw(z)

    return Watched(0.0, 1.0, 1.0, 1.0)


def forecast_of(model, n_features):
    X = np.random.default_rng(0).normal(size=(4, n_features))
    return tracker(model, n_particles=64, proposal="prior").fit(X).forecast(2)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("level", [lambda x: x, lambda x: 0.5 * x - 1])
def test_rows_of_forecasts_have_the_density_of_the_rows_learnt(level, n_features):
    """A warning where they have not, for any numbers that have a smooth density."""
    logistic = (
        lambda e: -e - 2 * np.log1p(np.exp(-e)),
        lambda z: np.log(norm.cdf(z) / norm.sf(z)),
    )
    normal = norm.logpdf, lambda z: z
    for log_density, draw in (normal, logistic):
        forecast_of(watched(level, log_density, draw), n_features)
        for wrong in (lambda z, draw=draw: 2 * draw(z), lambda z: z**3 / 2 + z):
            with pytest.warns(UserWarning, match="not draw rows by the density of"):
                forecast_of(watched(level, log_density, wrong), n_features)
        with pytest.warns(UserWarning, match="the same rows for different noise"):
            forecast_of(watched(level, log_density, lambda z: 0 * z), n_features)


def test_rows_without_a_smooth_density_are_not_checked():
    """Counts, and rows that several values of the noise give."""

    class Calls(LocalLevel):
        def log_likelihood(self, x, y, t):
            return poisson.logpmf(y[0], np.exp(x[:, 0]))

        def observation(self, x, z, t):
            return poisson.ppf(norm.cdf(z), np.exp(x))

    for mean in (0.0, -8.0):  # in the latter nearly all counts are 0
        calls = tracker(Calls(mean, 1.0, 1.0, 1.0), n_particles=64, proposal="prior")
        assert (calls.fit([[0.0], [0.0]]).forecast(2).samples % 1 == 0).all()
    folded = watched(lambda x: 0 * x, lambda e: np.log(2) + norm.logpdf(e), np.abs)
    forecast_of(folded, 2)


@each_method
def test_random_state_of_answers(parameters):
    """The same without a seed and with one; another with another."""
    rows = rows_of(plane(), 24)
    fitted = tracker(plane(), n_particles=300, **parameters).fit(rows[:12])
    X = rows[12:]
    asks = {
        "filter": lambda **seed: fitted.filter(X, **seed)[0],
        "smooth": lambda **seed: fitted.smooth(X, **seed)[0],
        "sample_trajectories": lambda **seed: fitted.sample_trajectories(X, **seed),
        "forecast": lambda **seed: fitted.forecast(3, **seed).samples,
        "log_likelihoods": lambda **seed: fitted.log_likelihoods(X, **seed),
        "predict": lambda **seed: fitted.predict(X, **seed),
        "score_samples": lambda **seed: fitted.score_samples(X, **seed),
        "score": lambda **seed: fitted.score(X, **seed),
    }
    for ask in asks.values():
        assert_array_equal(ask(), ask())
        assert_array_equal(ask(random_state=3), ask(random_state=3))
        assert np.any(ask() != ask(random_state=3))


# Trajectories.


@each_method
def test_trajectories(parameters):
    """Their moments, and how they move, against Kalman's smoother."""
    model = plane()
    X = rows_of(model, 12)
    means, stds = kalman_smoother(model, X)
    fitted = tracker(model, n_particles=2000, **parameters)
    fitted.fit(X[:1])
    found = fitted.sample_trajectories(X[1:], 3000)
    assert found.shape == (3000, 11, 2)
    atol = 7 * stds.max() / np.sqrt(200)
    assert_allclose(found.mean(axis=0), means[1:], atol=atol)
    assert_allclose(found.std(axis=0), stds[1:], rtol=7 / np.sqrt(2 * 200))
    # the innovations of smoothed paths have a smaller spread than those of the prior
    moves = found[:, 1:] - found[:, :-1] @ np.transpose(model.transition_matrix)
    assert np.all(moves.std(axis=0) < np.sqrt(np.diag(model.transition_covariance)))


def test_smoothing_with_leverage_and_inputs_that_weigh_moves():
    """Trajectories by the density found where noise is added, with and without."""

    class Quiet(StochasticVolatility):
        log_transition = None

    X = np.random.default_rng(0).standard_t(4, size=(20, 1))
    found = [
        tracker(kind(0.9, 0.5, 0.7, -0.6), n_particles=1000).fit_smooth(X)
        for kind in (StochasticVolatility, Quiet)
    ]
    assert_allclose(found[0], found[1], rtol=1e-6)


class Multiplied(Bare):
    """Noise that is not added."""

    def transition(self, x, z, t):
        return x * np.exp(z)


@pytest.mark.filterwarnings("ignore:One or a few of 200 particles")  # of other rows
def test_smoothing_without_a_density_is_right_or_refused():
    X = 0.7 * np.random.default_rng(0).standard_t(3, size=(300, 1))
    fitted = tracker(Multiplied(), n_particles=200).fit(X[:5])
    assert np.isfinite(fitted.smooth(X[5:8])[0]).all()
    with pytest.raises(
        ValueError, match=r"Multiplied has no log_transition, its noise"
    ):
        fitted.smooth(X[5:])


class Autoregression(BaseEstimator):
    """Of order two: the second state is the first at the row before."""

    n_noise = 1

    def initial(self, z):
        return np.hstack([z, z])

    def transition(self, x, z, t):
        return np.column_stack([1.2 * x[:, :1] - 0.5 * x[:, 1:] + z, x[:, :1]])

    def log_likelihood(self, x, y, t):
        return norm.logpdf(y[0], x[:, 0], 0.7)


def test_a_transition_without_a_density_is_named():
    X = np.random.default_rng(0).normal(size=(60, 1))
    with pytest.raises(ValueError, match="fewer normals than states"):
        tracker(Autoregression(), n_particles=500).fit_smooth(X)


class Driven(BaseEstimator):
    """A level moved by the time, the row before and an input, from row 2 on."""

    n_noise = 1

    def __init__(self, forgets=None):
        self.forgets = forgets  # what log_transition leaves out, or None

    def initial(self, z):
        return z

    def transition(self, x, z, t, y_prev, u):
        return 0.8 * x + np.sin(t - 1) + 0.5 * y_prev[0] + u[0] + 0.5 * z

    def log_transition(self, x, x_next, t, y_prev, u):
        given = {"t": t, "y_prev": y_prev, "u": u}
        if self.forgets is not None:
            given[self.forgets] = {"t": 1, "y_prev": [0.0], "u": [0.0]}[self.forgets]
        centers = self.transition(x, 0.0, **given)
        return norm.logpdf(x_next, centers, 0.5)[:, 0]

    def log_likelihood(self, x, y, t):
        return norm.logpdf(y[0], x[:, 0], 3.0)


@pytest.mark.parametrize("forgets", [None, "t", "y_prev", "u"])
def test_a_log_transition_that_is_right_at_row_1_only(forgets):
    rng = np.random.default_rng(0)
    X, inputs = rng.normal(size=(2, 40, 1))
    X[0] = inputs[:2] = 0.0
    fitted = tracker(Driven(forgets), n_particles=200).fit(X[:2], inputs=inputs[:2])
    if forgets is None:
        assert np.isfinite(fitted.smooth(X[2:], inputs=inputs[2:])[0]).all()
        return
    with pytest.raises(ValueError, match="log_transition is not the log density"):
        fitted.smooth(X[2:], inputs=inputs[2:])
    with pytest.raises(ValueError, match="log_transition is not the log density"):
        fitted.fit_smooth(X, inputs=inputs)


class Turning(BaseEstimator):
    """An angle, of which the cosine and the sine are observed."""

    n_noise = 1

    def __init__(self, whole=None):
        self.whole = whole  # at which the angle begins anew, or None

    def initial(self, z):
        return 1 + 0.2 * z

    def transition(self, x, z, t):
        moved = x + 0.1 + 0.4 * z
        return moved if self.whole is None else moved % self.whole

    def log_likelihood(self, x, y, t):
        seen = np.hstack([np.cos(x), np.sin(x)])
        return norm.logpdf(y, seen, 0.5).sum(axis=1)


@pytest.mark.slow
def test_smoothing_where_an_angle_begins_anew():
    """As without a jump: the noise is added at the first row, not at all of them."""
    rng = np.random.default_rng(1)
    angles = 1 + np.append(0, 0.1 + 0.4 * rng.normal(size=119)).cumsum()
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    X += 0.5 * rng.normal(size=X.shape)
    found = []
    for whole in (None, 2 * np.pi):
        fitted = tracker(Turning(whole), n_particles=2000, n_clusters=None).fit(X[:1])
        found.append(np.exp(1j * fitted.sample_trajectories(X[1:], 2000)).mean(axis=0))
    assert np.abs(found[0] - found[1]).max() < 0.15


class Tank(BaseEstimator):
    """A level that stops at zero, and is filled up every tenth row."""

    n_noise = 1

    def initial(self, z):
        return 3 + 0.3 * z

    def transition(self, x, z, t):
        return np.maximum(x - 0.5 + 0.3 * z + 2.0 * (t % 10 == 0), 0.0)

    def log_likelihood(self, x, y, t):
        return norm.logpdf(y[0], x[:, 0], 0.4)


def test_smoothing_where_states_stop_at_a_bound():
    """Against a grid, whose first point has the probability of the bound."""
    rng, model = np.random.default_rng(3), Tank()
    x, X = np.full((1, 1), 3.0), []
    for t in range(31):
        x = model.transition(x, rng.normal(size=(1, 1)), t) if t else x
        X.append(x[0] + 0.4 * rng.normal())
    grid, step = np.linspace(0, 6, 601, retstep=True)
    seen = [norm.pdf(y, grid, 0.4) for y in X]
    forward, moves = [norm.pdf(grid, 3, 0.3) * seen[0]], []
    for t in range(1, 31):
        center = grid[:, None] - 0.5 + 2.0 * (t % 10 == 0)
        moves.append(step * norm.pdf(grid, center, 0.3))
        moves[-1][:, 0] = norm.cdf(step / 2, center[:, 0], 0.3)
        forward.append(forward[-1] @ moves[-1] * seen[t])
    backward, means, stds = np.ones(601), np.empty(31), np.empty(31)
    for t in range(30, -1, -1):
        shares = forward[t] * backward / (forward[t] @ backward)
        means[t] = shares @ grid
        stds[t] = np.sqrt(shares @ (grid - means[t]) ** 2)
        backward = moves[t - 1] @ (backward * seen[t]) if t else backward
    found, _ = tracker(model, n_particles=2000, n_clusters=None).fit_smooth(X)
    gaps = (found[:, 0] - means) / np.maximum(stds, 0.1)
    assert np.abs(gaps).max() < 0.3


def test_smoothing_stays_right_over_many_rows():
    """Where tracing ancestors would have one left; a tenth of the spread off."""
    model = LinearGaussian([[0.9]], [[1.0]], [[1.0]], [[1.0]])
    rng = np.random.default_rng(1)
    x, X = 0.0, []
    for _ in range(300):
        x = 0.9 * x + rng.normal()
        X.append([x + rng.normal()])
    model.initial_mean, model.initial_covariance = [0.0], [[1.0]]
    means, stds = kalman_smoother(model, np.array(X))
    found_means, found_stds = tracker(model, n_particles=1000).fit_smooth(X)
    gaps = (found_means - means) / stds
    assert np.sqrt(np.mean(gaps**2)) < 0.1
    assert_allclose(found_stds, stds, rtol=0.25)


def slow(n_states, step):
    """States that hardly move, of an unknown level, seen through neighbouring sums."""
    seen = np.eye(n_states) + np.eye(n_states, k=-1)
    return LinearGaussian(
        *(np.eye(n_states), seen, step**2 * np.eye(n_states), np.eye(n_states)),
        initial_covariance=100.0 * np.eye(n_states),
    )


FEW_PATHS = "The paths go through fewer than"


@each_method
@pytest.mark.parametrize("n_states", [1, 2, 3])
@pytest.mark.parametrize("step", [0.02, 0.1, 1.0])
def test_few_particles_in_the_paths_are_reported(step, n_states, parameters):
    """The moments are near the exact ones where they are not."""
    model = slow(n_states, step)
    rng = np.random.default_rng(n_states)
    state = 3 * rng.normal(size=n_states)
    moves = step * rng.normal(size=(30, n_states)).cumsum(axis=0)
    X = (state + moves) @ model.observation_matrix.T + rng.normal(size=moves.shape)
    exact_means, exact_stds = kalman_smoother(model, X)
    fitted = tracker(model, n_particles=500, **parameters)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        means, stds = fitted.fit_smooth(X)
    if not any(FEW_PATHS in str(each.message) for each in found):
        assert np.abs((means - exact_means) / exact_stds).max() < 1
        assert (stds / exact_stds).min() > 0.5


@pytest.mark.filterwarnings("ignore:One or a few of 500 particles")
@pytest.mark.filterwarnings("ignore:The log-likelihood and the states are not")
def test_few_particles_in_a_few_paths_are_not_reported():
    """Two paths that meet tell nothing; a hundred do."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    fitted = tracker(slow(3, 0.02), n_particles=500, proposal="prior").fit(X[:1])
    assert fitted.sample_trajectories(X[1:], 2).shape == (2, 29, 3)
    with pytest.warns(ConvergenceWarning, match=FEW_PATHS):
        fitted.sample_trajectories(X[1:], 100)


def test_a_local_level_smooths():
    X = np.random.default_rng(0).normal(size=(50, 1)).cumsum(axis=0)
    means, stds = ClusteredParticleFilter(LocalLevel(), random_state=0).fit_smooth(X)
    assert np.isfinite(means).all()
    assert np.all(stds > 0)
