"""What a model may ask for and what it may add: inputs, the past, proposals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from designs import every_two
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson, uniform
from scipy.stats import t as t_distribution
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
)
from skpacbayes.filtering.models import (
    LinearGaussian,
    LinearObservations,
    LocalLevel,
    StochasticVolatility,
    TerrainNavigation,
)

METHODS = [{}, {"n_clusters": None}, {"method": "sqmc"}]
each_method = pytest.mark.parametrize("parameters", METHODS, ids=str)


def tracker(model, **parameters):
    parameters = {"n_particles": 256, "random_state": 0} | parameters
    return ClusteredParticleFilter(model, **parameters)


def line(covariance=1.0):
    """A state that returns to 0, seen with noise."""
    return LinearGaussian([[0.9]], [[1.0]], [[1.0]], [[covariance]])


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)).cumsum(axis=0) * 0.5


def within_four_errors(samples, expected):
    samples = np.asarray(samples)
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert abs(samples.mean() - expected) <= 4 * error + 1e-12


# Proposals.


class Shifted(LinearGaussian):
    """A linear model whose proposal is no good, or goes wrong."""

    def __init__(self, location=0.5, scale=1.5):
        super().__init__([[0.9]], [[1.0]], [[1.0]], [[1.0]])
        self.location = location
        self.scale = scale

    def proposal(self, x, y, t):
        return self.location, self.scale


@pytest.mark.parametrize(
    ("model", "parameters", "proposal"),
    every_two(
        [line(), line(0.01), Shifted(), Shifted(-0.3, 1.2)],
        METHODS,
        ["auto", "prior", "auxiliary"],
    ),
    ids=str,
)
def test_the_likelihood_is_unbiased_whatever_the_proposal(model, parameters, proposal):
    X = rows(8)
    exact = model.kalman(X)[2].sum()
    found = [
        tracker(model, random_state=seed, proposal=proposal, **parameters)
        .fit(X)
        .log_likelihood_
        for seed in range(60)
    ]
    within_four_errors(np.exp(np.array(found) - exact), 1.0)


def log_likelihood_errors(model, X, exact, **parameters):
    found = [
        tracker(model, random_state=seed, **parameters).fit(X).log_likelihood_
        for seed in range(20)
    ]
    return np.mean(np.square(np.array(found) - exact))


@pytest.mark.parametrize("parameters", METHODS, ids=str)
def test_rows_that_say_much_guide_the_particles(parameters):
    """Ratios of mean squares of 20 runs exceed 3 by chance with probability 1e-2."""
    model, X = line(0.01), rows(20)
    exact = model.kalman(X)[2].sum()
    errors = {
        proposal: log_likelihood_errors(
            model, X, exact, proposal=proposal, **parameters
        )
        for proposal in ("prior", "auto", "auxiliary")
    }
    assert errors["auto"] < errors["prior"] / 10
    assert errors["auxiliary"] < errors["prior"] / 10


class Bent(LinearObservations):
    """Dynamics that no matrix gives, of which the first coordinate is seen."""

    n_noise = 2
    observation_matrix = [[1.0, 0.0]]
    observation_covariance = [[0.01]]

    def initial(self, z):
        return z

    def transition(self, x, z, t):
        return np.column_stack([x[:, 1], np.sin(x[:, 0])]) + [0.5, 0.8] * z


def simulated(model, n_rows):
    """Rows that show the first of two states, with noise of deviation 0.1."""
    rng = np.random.default_rng(0)
    x, X = rng.normal(size=(1, 2)), []
    for t in range(n_rows):
        x = model.transition(x, rng.normal(size=(1, 2)), t)
        X.append(x[0, :1] + 0.1 * rng.normal())
    return X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:One or a few of 256 particles")  # the blind ones
@pytest.mark.filterwarnings("ignore:The log-likelihood has an estimated")
def test_linear_observations_of_any_dynamics():
    X = simulated(Bent(), 30)
    many = tracker(Bent(), n_particles=2**15, method="sqmc").fit(X)
    blind = log_likelihood_errors(Bent(), X, many.log_likelihood_, proposal="prior")
    for proposal in ("auto", "auxiliary"):
        guided = log_likelihood_errors(
            Bent(), X, many.log_likelihood_, proposal=proposal
        )
        assert guided < blind / 10


class Growing(Bent):
    """Noise that grows with the distance of the state from zero."""

    def transition(self, x, z, t):
        center = 0.8 * x @ [[0.6, 0.8], [-0.8, 0.6]]
        spread = 0.1 + 0.5 * np.linalg.norm(x, axis=1, keepdims=True)
        return center + spread * z @ [[1.0, 0.5], [0.0, 1.0]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:One or a few of 256 particles")  # the blind ones
@pytest.mark.filterwarnings("ignore:The log-likelihood has an estimated")
def test_linear_observations_of_states_with_noise_of_their_own():
    """The proposal of one state, for all, was five nats off on average."""
    X = simulated(Growing(), 20)
    many = tracker(Growing(), n_particles=2**16, method="sqmc", proposal="prior")
    exact = many.fit(X).log_likelihood_
    blind = log_likelihood_errors(Growing(), X, exact, proposal="prior")
    for proposal in ("auto", "auxiliary"):
        guided = log_likelihood_errors(Growing(), X, exact, proposal=proposal)
        assert guided < blind / 3


@pytest.mark.parametrize("variance", [1e-8, 1e-16, 1e-20, 1e-30])
def test_rows_nearly_without_noise(variance):
    """Their proposal is exact, as far as rounding allows."""
    shift, spread = [[0.9, 0.1], [0.0, 0.8]], np.eye(2)
    X = np.random.default_rng(0).normal(size=(20, 1))
    first, model = (
        LinearGaussian(shift, [[1.0, 0.5]], spread, [[noise]])
        for noise in (1e-6, variance)
    )
    runs = [tracker(each, n_particles=1000).fit(X) for each in (first, model)]
    assert_allclose(runs[1].log_likelihood_, runs[0].log_likelihood_, atol=0.02)
    assert_allclose(runs[1].mean_, runs[0].mean_, atol=0.02)


@pytest.mark.parametrize(
    ("location", "scale"),
    [(np.nan, 1.0), (np.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, [[[-1.0]]])],
)
def test_a_proposal_that_is_no_density(location, scale):
    with pytest.raises(ValueError, match=r"Shifted.proposal is not a density at row 1"):
        tracker(Shifted(location, scale)).fit(rows())


@pytest.mark.parametrize("value", [None, (0.0,), (np.zeros(7), 1.0), (0.0, "wide")])
def test_a_proposal_of_the_wrong_form(value):
    class Wrong(Shifted):
        def proposal(self, x, y, t):
            return value

    with pytest.raises(ValueError, match="should return the location and the scale"):
        tracker(Wrong()).fit(rows())


def test_the_auxiliary_filter_needs_a_look_ahead():
    with pytest.raises(ValueError, match="needs a model with log_lookahead"):
        tracker(StochasticVolatility(), proposal="auxiliary").fit(rows())


@each_method
@pytest.mark.parametrize("proposal", ["auto", "auxiliary"])
def test_a_guided_filter_looks_as_it_learns(parameters, proposal):
    fitted = tracker(line(), proposal=proposal, **parameters).fit(rows())
    means, _ = fitted.filter(rows(5, 1))
    assert_array_equal(fitted.predict(rows(5, 1)[:1])[0], means[0])
    densities = fitted.log_likelihoods(rows(5, 1))
    assert_allclose(fitted.score_samples(rows(5, 1)[:1])[0], densities[0])
    before = fitted.log_likelihood_
    fitted.partial_fit(rows(5, 1))
    assert_array_equal(fitted.mean_, means[-1])
    assert_allclose(fitted.log_likelihood_ - before, densities.sum())


# What a function asks for.


class Driven(BaseEstimator):
    """A walk pushed by known inputs, whose noise depends on the move."""

    n_noise = 1

    def __init__(self, gain=1.0):
        self.gain = gain

    def initial(self, z, u):
        return self.gain * u + z

    def transition(self, x, z, t, *, u):
        return x + self.gain * u + z

    def log_likelihood(self, x, y, t, u):
        return norm.logpdf(y[0], x[:, 0] + u[0], 1.0)

    def observation(self, x, z, t, u):
        return x + u + z


def driven_exactly(X, u):
    """Kalman's answer: the row less the inputs so far is a walk seen with noise."""
    shift = np.cumsum(u, axis=0)
    model = LinearGaussian(*[[[1.0]]] * 4)
    means, covariances, log_densities = model.kalman(X - shift - u)
    return means + shift, covariances, log_densities


@each_method
def test_inputs(parameters):
    u = 3.0 * np.random.default_rng(1).normal(size=(30, 1)) + 2.0
    X = rows() + np.cumsum(u, axis=0) + u
    means, _, log_densities = driven_exactly(X, u)
    fitted = tracker(Driven(), n_particles=4000, **parameters)
    fitted.fit(X[:20], inputs=u[:20])
    assert_allclose(fitted.mean_, means[19], atol=0.4)
    assert_allclose(fitted.filter(X[20:], inputs=u[20:])[0], means[20:], atol=0.4)
    assert_allclose(
        fitted.log_likelihoods(X[20:], inputs=u[20:]), log_densities[20:], atol=0.4
    )
    assert_allclose(fitted.predict(X[20:21], inputs=u[20:21])[0], means[20], atol=0.4)
    ahead = fitted.forecast(10, inputs=u[20:])
    assert_allclose(
        ahead.means - means[19], np.cumsum(u[20:], axis=0) + u[20:], atol=0.6
    )
    fitted.partial_fit(X[20:], inputs=u[20:])
    assert_allclose(fitted.mean_, means[-1], atol=0.4)


def test_inputs_of_the_wrong_form():
    X, u = rows(), np.ones((30, 1))
    with pytest.raises(
        ValueError, match=r"Driven.initial has an argument `u`: pass in"
    ):
        tracker(Driven()).fit(X)
    with pytest.raises(ValueError, match="inputs has 29 rows, but X has 30"):
        tracker(Driven()).fit(X, inputs=u[1:])
    with pytest.raises(ValueError, match="Input inputs contains NaN"):
        tracker(Driven()).fit(X, inputs=np.nan * u)
    with pytest.raises(ValueError, match="no function of StochasticVolatility has"):
        tracker(StochasticVolatility()).fit(X, inputs=u)
    fitted = tracker(Driven()).fit(X, inputs=u)
    with pytest.raises(ValueError, match="inputs has 0 columns, but the estimator was"):
        fitted.partial_fit(X)
    with pytest.raises(ValueError, match="inputs has 2 columns, but the estimator was"):
        fitted.filter(X, inputs=np.ones((30, 2)))
    with pytest.raises(ValueError, match="inputs has 30 rows, but h is 3"):
        fitted.forecast(3, inputs=u)


def test_columns_of_inputs_are_those_learnt():
    """In their order, where both are tables with names."""
    X, table = rows(), pd.DataFrame(np.ones((30, 2)), columns=["heat", "price"])
    fitted = tracker(Driven()).fit(X, inputs=table)
    swapped = {"inputs": table[["price", "heat"]]}
    with pytest.raises(ValueError, match=r"\['price', 'heat'\], but the estimator was"):
        fitted.filter(X, **swapped)
    with pytest.raises(ValueError, match="in this order"):
        fitted.partial_fit(X, **swapped)
    expected = fitted.filter(-X, inputs=table)[0]
    assert_array_equal(fitted.filter(-X, inputs=table.to_numpy())[0], expected)
    fitted.fit(X, inputs=table.to_numpy()).filter(-X, **swapped)


class Two(StochasticVolatility):
    def transition(self, x, z):
        return x


class Unknown(StochasticVolatility):
    def log_likelihood(self, x, y, t, weather):
        return x[:, 0]


def test_signatures_that_are_wrong():
    with pytest.raises(
        TypeError, match=r"Two.transition takes 2 .* transition\(x, z, t"
    ):
        tracker(Two()).fit(rows())
    with pytest.raises(
        TypeError, match=r"'weather'; besides \(x, y, t\) it may have: x"
    ):
        tracker(Unknown()).fit(rows())


class WithoutNoise:
    """A model that forgot to say how many normals move a particle."""

    initial = StochasticVolatility.initial
    transition = StochasticVolatility.transition
    log_likelihood = StochasticVolatility.log_likelihood


def test_a_model_without_the_number_of_its_normals():
    with pytest.raises(ValueError, match="WithoutNoise has no n_noise: give it"):
        tracker(WithoutNoise()).fit(rows())


def leveraged(n, model, seed=0):
    rng = np.random.default_rng(seed)
    x, X = model.initial(rng.normal(size=(1, 1))), []
    for t in range(n):
        X.append(model.observation(x, rng.normal(size=(1, 1)), t)[0])
        x = model.transition(x, rng.normal(size=(1, 1)), t, y_prev=X[-1])
    return np.array(X)


class ByMoves(StochasticVolatility):
    """The same model, with the correlation in the density of the row instead.

    Given the move, the normal of the row before the move is known in part; here the
    normal of row t is correlated with the move from row t - 1 to row t.
    """

    def transition(self, x, z, t):
        return self.phi * x + self.sigma * z

    def log_transition(self, x, x_next, t):
        return norm.logpdf(x_next[:, 0], self.phi * x[:, 0], self.sigma)

    def log_likelihood(self, x, y, t, x_prev=None):
        if x_prev is None:
            return super().log_likelihood(x, y, t)
        innovation = (x[:, 0] - self.phi * x_prev[:, 0]) / self.sigma
        scale = self.beta * np.exp(x[:, 0] / 2)
        rest = np.sqrt(1 - self.leverage**2)
        return norm.logpdf(y[0], scale * self.leverage * innovation, scale * rest)


def grid_log_likelihood(X, model, moves=None):
    """Log densities of the rows, by quadrature; `moves` weighs pairs of states."""
    grid = np.linspace(-6, 6, 601)
    step = grid[1] - grid[0]
    pairs = np.repeat(grid, len(grid))[:, None], np.tile(grid, len(grid))[:, None]
    density = norm.pdf(grid, 0, model.sigma / np.sqrt(1 - model.phi**2)) * step
    found = []
    for t, y in enumerate(X):
        if t and moves is None:
            log_moves = model.log_transition(*pairs, t, y_prev=X[t - 1])
            table = np.exp(log_moves.reshape(len(grid), -1)) / np.sqrt(2 * np.pi)
            density = density @ table * step
        if t and moves is not None:
            log_moves = model.log_transition(*pairs, t)
            log_moves += model.log_likelihood(pairs[1], y, t, x_prev=pairs[0])
            density = density @ np.exp(log_moves.reshape(len(grid), -1)) * step
        else:
            density = density * np.exp(model.log_likelihood(grid[:, None], y, t))
        found.append(np.log(density.sum()))
        density = density / density.sum()
    return np.array(found)


def test_the_row_before_moves_the_state():
    """Leverage, with a missing row, against quadrature."""
    model = StochasticVolatility(0.9, 0.4, 0.7, leverage=-0.7)
    X = leveraged(12, model)
    exact = grid_log_likelihood(X, model)
    found = tracker(model, n_particles=2**13, method="sqmc").fit(X)
    assert_allclose(found.log_likelihood_, exact.sum(), atol=0.01)
    flat = tracker(StochasticVolatility(0.9, 0.4, 0.7), n_particles=2**13).fit(X)
    assert abs(flat.log_likelihood_ - exact.sum()) > 0.1
    X[5] = np.nan
    assert np.isfinite(tracker(model).fit(X).log_likelihood_)
    assert tracker(model).fit(X).forecast(4).means.shape == (4, 1)


def test_the_state_before_weighs_the_row():
    """A row whose noise is correlated with the move, against quadrature."""
    model = ByMoves(0.9, 0.4, 0.7, leverage=-0.7)
    X = leveraged(12, StochasticVolatility(0.9, 0.4, 0.7))
    exact = grid_log_likelihood(X, model, moves=True)
    found = tracker(model, n_particles=2**13, method="sqmc").fit(X)
    assert_allclose(found.log_likelihood_, exact.sum(), atol=0.01)


# The density of a move.


class Wider(StochasticVolatility):
    """Its log_transition has another spread than its transition."""

    def log_transition(self, x, x_next, t):
        return -0.5 * np.square((x_next - self.phi * x) / (2 * self.sigma))[..., 0]


class OneRow(StochasticVolatility):
    """Its log_transition takes one next state for all."""

    def log_transition(self, x, x_next, t):
        return -0.5 * np.square((x_next[0] - self.phi * x[:, 0]) / self.sigma)


@pytest.mark.parametrize("model", [Wider(), OneRow()])
def test_a_log_transition_that_is_not_that_of_transition(model):
    with pytest.raises(ValueError, match="log_transition is not the log density"):
        tracker(model).fit(rows())
    begun = tracker(model).partial_fit(rows()[:1])
    with pytest.raises(ValueError, match="log_transition is not the log density"):
        begun.partial_fit(rows()[1:2])
    assert begun.n_samples_seen_ == 1


class Folded(StochasticVolatility):
    """Two noises move to one state: the check by one branch does not hold."""

    one_to_one = False

    def transition(self, x, z, t):
        return np.abs(0.5 * x + z)

    def log_transition(self, x, x_next, t):
        return np.logaddexp(
            norm.logpdf(x_next, 0.5 * x), norm.logpdf(-x_next, 0.5 * x)
        )[:, 0]


def test_a_transition_that_folds_is_not_checked():
    tracker(Folded()).fit(rows())


@pytest.mark.parametrize(
    "model",
    [
        line(),
        LinearGaussian(
            [[0.7, 0.3], [-0.2, 0.6]],
            np.eye(2),
            [[1.0, 0.3], [0.3, 0.5]],
            np.eye(2),
        ),
        LocalLevel(),
        StochasticVolatility(leverage=-0.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_densities_of_the_library_are_those_of_its_transitions(model):
    n_features = len(getattr(model, "transition_matrix", [0]))
    X = np.random.default_rng(0).normal(size=(5, n_features))
    tracker(model).fit(X)


@pytest.mark.parametrize("proposal", ["prior", "auto", "auxiliary"])
def test_rows_that_are_partly_observed(proposal):
    """Against the Kalman filter of the features that were seen."""
    model = LinearGaussian(
        [[0.9, 0.1], [0.0, 0.8]],
        [[1.0, 0.0], [0.5, 1.0]],
        np.diag([0.3, 0.2]),
        [[0.4, 0.1], [0.1, 0.5]],
    )
    X = np.random.default_rng(0).standard_normal((30, 2))
    X[5:15, 0] = X[12:20, 1] = X[25, 0] = np.nan
    means, covariances, log_densities = model.kalman(X)
    tracker = ClusteredParticleFilter(
        model, method="sqmc", n_particles=1024, proposal=proposal, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tracker.fit(X)
    assert abs(tracker.log_likelihood_ - log_densities.sum()) < 0.05
    gaps = (tracker.mean_ - means[-1]) / np.sqrt(np.diag(covariances[-1]))
    assert np.abs(gaps).max() < 0.05
    # Kalman's own: features that are seen alone, of a model that has no other.
    alone = LinearGaussian(
        model.transition_matrix, [[1.0, 0.0]], model.transition_covariance, [[0.4]]
    )
    X[:, 1] = np.nan
    assert_allclose(model.kalman(X)[2], alone.kalman(X[:, :1])[2])


class Guided(LinearGaussian):
    """Guides the noise by all features of a row: it needs them all."""

    def proposal(self, x, y, t):
        return np.broadcast_to(0.1 * (y - y.mean()), x.shape), np.ones(2)


@pytest.mark.parametrize("own", ["log_likelihood", "log_lookahead", "proposal"])
def test_rows_partly_observed_are_shown_to_no_function_that_knows_no_gaps(own):
    """Unless the class, or one derived from it, says that it does."""
    told = {own: getattr(LinearGaussian, own)}
    Silent = type("Silent", (LinearGaussian,), told)
    assert LinearGaussian.handles_missing
    assert not Silent.handles_missing
    assert not type("Derived", (Silent,), {}).handles_missing
    assert type("Knows", (Silent,), {"handles_missing": True}).handles_missing
    identities = [np.eye(2)] * 4
    X = np.random.default_rng(0).standard_normal((6, 2))
    X[2, 0] = np.nan
    with pytest.warns(ConvergenceWarning, match="1 rows with some NaN are treated"):
        assert np.isfinite(tracker(Guided(*identities)).fit(X).log_likelihood_)
    shown = type("Shown", (Guided,), {"handles_missing": True})
    with pytest.raises(ValueError, match="proposal is not a density at row 2"):
        tracker(shown(*identities)).fit(X)


class SeenTwice(BaseEstimator):
    """A random walk, seen by two sensors; knows nothing of missing values."""

    n_noise = 1

    def __init__(self, scale=1.0):
        self.scale = scale

    def initial(self, z):
        return z

    def transition(self, x, z, t):
        return x + self.scale * z

    def log_likelihood(self, x, y, t):
        return -0.5 * np.square(y - x).sum(axis=1)


@pytest.mark.parametrize("kind", ["filter", "PMMH", "SMC2"])
@pytest.mark.filterwarnings("ignore:The .* disagree")
def test_a_row_partly_observed_is_not_dropped_in_silence(kind):
    X = np.random.default_rng(0).standard_normal((6, 2))
    X[2, 0] = np.nan
    own = tracker(SeenTwice(), n_particles=20)
    priors = {"model__scale": uniform(0.5, 1.0)}
    few = {
        "filter": own,
        "PMMH": ParticleMarginalMetropolis(own, priors, n_iter=4, burn_in=2),
        "SMC2": SMC2(own, priors, n_draws=10),
    }[kind]
    with pytest.warns(ConvergenceWarning, match="1 rows with some NaN are treated"):
        few.fit(X)
    X[2] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".* are treated as missing as a whole")
        few.fit(X)
        tracker(line()).fit(X[:, :1])


# A likelihood that is no logarithm.


class Seen(LinearGaussian):
    """The line of `line()`, seen as a function of the state says."""

    def __init__(self, function=None):
        super().__init__([[0.9]], [[1.0]], [[1.0]], [[1.0]])
        self.function = function

    proposal = initial_proposal = log_lookahead = None

    def log_likelihood(self, x, y, t):
        return self.function(x[:, 0], y[0])


class DensityOfTwo(Seen):
    def log_likelihood(self, x, y, t):
        return norm.pdf(y, x, 0.3).prod(axis=1)


def logistic(x):
    return 1 / (1 + np.exp(-x))


DENSITIES = {
    "normal": lambda x, y: norm.pdf(y, x, 0.3),
    "volatility": lambda x, y: norm.pdf(y, 0, np.exp(x / 2)),
    "heavy tails": lambda x, y: t_distribution.pdf(y, 3, x, 0.3),
    "two places": lambda x, y: (norm.pdf(y, x, 0.1) + norm.pdf(y, -x, 0.1)) / 2,
    "counts": lambda x, y: poisson.pmf(y, np.exp(x)),
    "coin": lambda x, y: np.where(y == 1, logistic(x), logistic(-x)),
}
LOSSES = {
    "squares": lambda x, y: (y - x) ** 2,
    "normal": lambda x, y: -norm.logpdf(y, x, 0.3),
    "heavy tails": lambda x, y: -t_distribution.logpdf(y, 3, x, 0.3),
}
LOGARITHMS = {
    "narrow": lambda x, y: norm.logpdf(y, x, 0.05),
    "raised": lambda x, y: 50 - (y - x) ** 2,
    "bounded loss": lambda x, y: np.exp(-((y - x) ** 2)),
    "clutter": lambda x, y: np.log1p(5 * norm.pdf(y, x, 0.3)),
    "without squares": lambda x, y: x * y - x**2 / 2,
    "no row": lambda x, y: np.abs(x),
    "chance": lambda x, y: logistic(x - y),
    "counts": lambda x, y: poisson.logpmf(y, np.exp(x)),
    "coin": lambda x, y: np.log(np.where(y == 1, logistic(x), logistic(-x))),
}


def seen_by(name, function, factor=1.0):
    X = rows(12)
    if name in ("counts", "coin"):
        most = 1 if name == "coin" else 5
        X = np.abs(X).round().clip(0, most)
    return tracker(Seen(function)).fit(X * factor)


@pytest.mark.slow
def test_densities_of_two_features_after_a_gap():
    X = np.hstack([rows(5), rows(5, seed=1)])
    X[0] = np.nan
    with pytest.warns(UserWarning, match="returns densities, not their logarithms"):
        tracker(DensityOfTwo()).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LOSSES)
def test_losses_in_place_of_logarithms(name):
    with pytest.warns(UserWarning, match="farther from the state, as a loss does"):
        seen_by(name, LOSSES[name])


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_in_place_of_logarithms(name):
    with pytest.warns(UserWarning, match="returns densities, not their logarithms"):
        seen_by(name, DENSITIES[name])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error:.*log_likelihood returns")
@pytest.mark.parametrize("factor", [1.0, 1e-3])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_likelihood_may_be_above_one_or_without_a_norm(name, factor):
    seen_by(name, LOGARITHMS[name], 1.0 if name in ("counts", "coin") else factor)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error:.*log_likelihood returns")
@pytest.mark.parametrize("width", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("period", [2 * np.pi, 24.0, 360.0])
def test_functions_of_an_angle_are_no_losses(period, width):
    """Far rows are at no distance from an angle: their values go up and down."""

    def log_density(x, y):
        return np.cos(2 * np.pi / period * (y - x)) / width**2

    for seed in range(8):
        X = np.random.default_rng(seed).uniform(0, period, size=(1, 1))
        tracker(Seen(log_density)).fit(X)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        (
            "observation_covariance",
            [[0.0]],
            "observation_covariance should be positive",
        ),
        ("transition_covariance", [[-1.0]], "transition_covariance should be positive"),
        ("transition_matrix", [[0.9, 0.0]], "transition_matrix has shape"),
        ("initial_mean", [0.0, 0.0], "initial_mean has shape"),
    ],
)
def test_a_linear_model_of_the_wrong_form(name, value, complaint):
    for proposal in ("prior", "auto"):
        with pytest.raises(ValueError, match=complaint):
            tracker(line().set_params(**{name: value}), proposal=proposal).fit(rows(4))


def masked(values):
    """Hide one value."""
    found = np.ma.array(values)
    found[0] = np.ma.masked
    return found


@pytest.mark.parametrize(
    "name", ["initial", "transition", "log_likelihood", "proposal"]
)
@pytest.mark.parametrize(
    ("of", "what"),
    [
        (lambda x: 1j * x, "complex numbers"),
        (np.isfinite, "truth values"),
        (masked, "an array with masked values"),
        (lambda x: np.asarray(x).astype(str), "text"),
        (lambda x: np.zeros(np.shape(x), "M8[s]"), "dates"),
        (lambda x: np.zeros(np.shape(x), "m8[s]"), "spans of time"),
        (lambda x: {"values": x}, "dict, no numbers"),
        (lambda x: None, "an array of shape|is not a density"),
        (lambda x: np.full(np.shape(x), "a", object), "ndarray, no numbers"),
    ],
)
def test_a_model_that_returns_what_is_no_number(name, of, what):
    right = getattr(LocalLevel, name)

    def wrong(self, *given):
        found = right(self, *given)
        return (of(found[0]), found[1]) if name == "proposal" else of(found)

    kind = type("Wrong", (LocalLevel,), {name: wrong})
    kind.__init__ = LocalLevel.__init__
    model = kind(0.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=rf"Wrong.{name} (.* )?({what})"):
        tracker(model, proposal="auto").fit(rows(4))


@pytest.mark.parametrize("unit", [1e-155, 1e-160, 1e-200, 1e-300])
@pytest.mark.parametrize("streams", [False, True])
def test_squares_that_are_no_numbers_are_named(unit, streams):
    """What else is filtered is so to the last digit: it has the same noise."""
    X = np.column_stack([rows(20), rows(20)])
    there, nowhere = X * [unit, 1.0], X * [0.0, 1.0]

    def fitted(X):
        model = tracker(None, n_clusters=None)  # clusters would look at all features
        for part in np.split(X, 4) if streams else [X]:
            model.partial_fit(part)
        return model

    with pytest.warns(ConvergenceWarning, match=r"The features \[0\] change"):
        found = fitted(there)
    assert_array_equal(found.mean_[1], fitted(nowhere).mean_[1])
    assert np.isfinite(found.mean_).all()
    assert found.log_likelihood_ == fitted(nowhere).log_likelihood_


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [0.0, 1e-145, 1e-100, 1e100])
def test_squares_that_are_numbers_are_not(unit):
    tracker(None).fit(rows(20) * unit)


MAP = np.zeros((3, 3))
SPREADS = [
    *((LocalLevel, {}, f"{name}_variance") for name in ("initial", "transition")),
    (LocalLevel, {}, "observation_variance"),
    *((StochasticVolatility, {}, name) for name in ("sigma", "beta")),
    *(
        (TerrainNavigation, {"heights": MAP, "velocity": [0.0, 0.0]}, name)
        for name in ("position_std", "height_std")
    ),
]


@pytest.mark.filterwarnings("ignore:One or a few of 256 particles")
@pytest.mark.filterwarnings("ignore:Column 0 of the state hardly moves")
@pytest.mark.filterwarnings("ignore:The log-likelihood and the states are not")
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 0.0])
@pytest.mark.parametrize(("model", "given", "name"), SPREADS)
def test_what_is_no_spread_is_refused(model, given, name, value):
    spread = tracker(model(**given, **{name: value}))
    if value == 0.0 and name in ("initial_variance", "transition_variance"):
        spread.fit(rows())  # a level that is known, or that stays
        return
    with pytest.raises(ValueError, match=f"{name}=.* must be finite and"):
        spread.fit(rows())
    assert not hasattr(spread, "log_likelihood_")


@pytest.mark.parametrize("seed", [3, 8, 14])
def test_leverage_keeps_states_finite(seed):
    """Particles without weight do not run away, whatever the row before."""
    rng = np.random.default_rng(seed)
    model, state, X = StochasticVolatility(0.95, 0.3, 0.7, -0.7), 0.0, []
    for shock, other in rng.normal(size=(300, 2)):
        X.append([0.7 * np.exp(state / 2) * shock])
        state = 0.95 * state + 0.3 * (-0.7 * shock + np.sqrt(0.51) * other)
    X[100] = [1e3]
    tracking = ClusteredParticleFilter(model, n_particles=300, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        tracking.fit(X)
    assert np.isfinite(tracking.particles_).all()
    assert np.isfinite(tracking.log_likelihood_)
    moved = model.transition(np.array([[-200.0], [5.0]]), np.zeros((2, 1)), 1, X[0])
    assert np.abs(moved).max() < 200.0
