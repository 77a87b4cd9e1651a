"""Linear models whose noise moves the state in fewer directions than it has.

Such models are trends, seasons, autoregressions and constants. The exact answers come
from the joint distribution of all states and rows.
"""

import warnings

import numpy as np
import pytest
from kalman import kalman_smoother, plane, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_discrete_lyapunov
from sklearn.base import clone

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering._gaussian import noise_factor
from skpacbayes.filtering.models import LinearGaussian, LinearObservations


def trend(slope_variance=0.0):
    return LinearGaussian(
        [[1.0, 1.0], [0.0, 1.0]],
        [[1.0, 0.0]],
        np.diag([0.09, slope_variance]),
        [[1.0]],
        initial_covariance=np.diag([4.0, 1.0]),
    )


def season(variance=0.04):
    """A level and the effects of four rows, which sum to zero."""
    matrix = np.eye(4, k=-1)
    matrix[0] = np.eye(1, 4)
    matrix[1] = [0.0, -1.0, -1.0, -1.0]
    return LinearGaussian(
        matrix,
        [[1.0, 1.0, 0.0, 0.0]],
        np.diag([0.09, variance, 0.0, 0.0]),
        [[1.0]],
        initial_covariance=np.diag([4.0, 1.0, 1.0, 1.0]),
    )


def arma(noise=0.5):
    """ARMA(2, 1) that begins in its stationary distribution."""
    matrix, loading = np.array([[1.2, 1.0], [-0.5, 0.0]]), np.array([1.0, 0.4])
    covariance = np.outer(loading, loading)
    start = solve_discrete_lyapunov(matrix, covariance)
    return LinearGaussian(
        matrix, [[1.0, 0.0]], covariance, [[noise]], initial_covariance=start
    )


def constant():
    """A random walk from a known start, and a constant."""
    return LinearGaussian(
        np.eye(2),
        [[1.0, 1.0], [0.0, 1.0]],
        np.diag([0.3, 0.0]),
        np.diag([1.0, 0.5]),
        [2.0, 0.0],
        np.diag([0.0, 4.0]),
    )


MODELS = {
    "trend": trend(),
    "trend of random slope": trend(0.01),
    "season": season(),
    "fixed season": season(0.0),
    "arma": arma(),
    "constant": constant(),
}
SINGULAR = [name for name in MODELS if name != "trend of random slope"]
ONE = np.eye(2)
OPTIONS = {
    "clusters": {},
    "prior": {"proposal": "prior"},
    "auxiliary": {"proposal": "auxiliary"},
    "sqmc": {"method": "sqmc", "n_particles": 1024},
    "tempering": {"tempering": 1},
}


def start_of(model):
    n = len(model.transition_matrix)
    mean = np.zeros(n) if model.initial_mean is None else np.array(model.initial_mean)
    return mean, np.array(model.initial_covariance)


def drawn(model, n, seed=0):
    """Rows of a model, some of them missing."""
    rng, (state, start) = np.random.default_rng(seed), start_of(model)
    X = []
    for t in range(n):
        noise = model.transition_covariance if t else start
        state = np.array(model.transition_matrix) @ state if t else state
        state = state + noise_factor(noise)[0].T @ rng.standard_normal(len(state))
        root = np.linalg.cholesky(model.observation_covariance)
        seen = np.array(model.observation_matrix) @ state
        X.append(seen + root @ rng.standard_normal(len(root)))
    X = np.array(X)
    X[3] = X[5, 0] = np.nan
    return X


def joint(model, X):
    """States given all rows, and the log density of the rows, from their joint normal.

    Returns means, (n_timesteps, n_states), covariances of each row, log density.
    """
    F, Q = np.array(model.transition_matrix), np.array(model.transition_covariance)
    mean, start = start_of(model)
    n, d = len(X), len(F)
    powers = [np.linalg.matrix_power(F, k) for k in range(n)]
    moves = np.zeros((n * d, n * d))  # from the noises of all rows to the states
    for t in range(n):
        for s in range(t + 1):
            moves[t * d : (t + 1) * d, s * d : (s + 1) * d] = powers[t - s]
    noises = np.kron(np.eye(n), Q)
    noises[:d, :d] = start
    states = moves @ noises @ moves.T
    means = np.concatenate([power @ mean for power in powers])
    known = ~np.isnan(X).ravel()
    seen = np.kron(np.eye(n), model.observation_matrix)[known]
    errors = np.kron(np.eye(n), model.observation_covariance)[np.ix_(known, known)]
    spread = seen @ states @ seen.T + errors
    gaps = X.ravel()[known] - seen @ means
    gain = np.linalg.solve(spread, seen @ states).T
    given = states - gain @ seen @ states
    log_density = -0.5 * (
        gaps @ np.linalg.solve(spread, gaps) + np.linalg.slogdet(2 * np.pi * spread)[1]
    )
    blocks = [given[t * d : (t + 1) * d, t * d : (t + 1) * d] for t in range(n)]
    return (means + gain @ gaps).reshape(n, d), np.array(blocks), log_density


@pytest.mark.parametrize("name", MODELS)
def test_exact_states_are_those_of_the_joint_distribution(name):
    model = MODELS[name]
    X = drawn(model, 25)
    means, covariances, log_densities = model.kalman(X)
    smooth_means, smooth_covariances = model.kalman_smooth(X)
    expected_means, expected_covariances, log_density = joint(model, X)
    assert_allclose(smooth_means, expected_means, atol=1e-10)
    assert_allclose(smooth_covariances, expected_covariances, atol=1e-10)
    assert_allclose(log_densities.sum(), log_density, rtol=1e-10)
    for t in (0, 4, 24):
        expected_means, expected_covariances, _ = joint(model, X[: t + 1])
        assert_allclose(means[t], expected_means[-1], atol=1e-10)
        assert_allclose(covariances[t], expected_covariances[-1], atol=1e-10)


def test_exact_smoothing_with_noise_in_all_states():
    X = rows_of(plane(), 30)
    means, covariances = plane().kalman_smooth(X)
    expected, stds = kalman_smoother(plane(), X)
    assert_allclose(means, expected)
    assert_allclose(covariances.diagonal(axis1=1, axis2=2) ** 0.5, stds)


def test_rows_without_noise():
    """Kalman's answers exist without noise of the rows: the state is then known."""
    X = drawn(arma(), 20)[:, 0]
    means, covariances, _ = arma(0.0).kalman(X)
    known = ~np.isnan(X)
    assert_allclose(means[known, 0], X[known])
    for found in (covariances, arma(0.0).kalman_smooth(X)[1]):
        assert (found.diagonal(axis1=1, axis2=2) >= 0.0).all()
        assert_allclose(found[known, 0, 0], 0.0, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", SINGULAR)
def test_the_filter_agrees_with_kalman(name, options):
    model = MODELS[name]
    X = drawn(model, 20)
    means, covariances, log_densities = model.kalman(X)
    tracker = ClusteredParticleFilter(
        model, **{"n_particles": 1000, "random_state": 0, **OPTIONS[options]}
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.fit(X)
    error = tracker.log_likelihood_ - log_densities.sum()
    assert abs(error) < 4 * tracker.log_likelihood_std_ or caught
    gaps = (tracker.mean_ - means[-1]) / np.sqrt(covariances[-1].diagonal())
    assert np.abs(gaps).max() < 0.7 or caught
    ahead = tracker.forecast(2).means
    forecast = model.transition_matrix @ means[-1]
    limit = 0.7 * np.sqrt(covariances[-1].diagonal().sum())
    assert abs(ahead[0] - model.observation_matrix @ forecast).max() < limit or caught


@pytest.mark.parametrize("options", ["clusters", "prior", "sqmc"])
@pytest.mark.parametrize("n", [4, 12, 40])
@pytest.mark.parametrize("name", SINGULAR)
def test_smoothing_by_particles_is_right_or_refused(name, n, options):
    model = MODELS[name]
    X = drawn(model, max(n, 6))[:n]
    means, covariances = model.kalman_smooth(X)
    stds = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    tracker = ClusteredParticleFilter(
        model, **{"n_particles": 1000, "random_state": 0, **OPTIONS[options]}
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found, spreads = tracker.fit_smooth(X)
        except ValueError as error:
            message = str(error)
            assert "fewer directions" in message
            assert "kalman_smooth" in message
            assert n > 4
            return
    assert n < 40 or name == "arma"
    vary = stds > 1e-9
    assert_allclose(spreads[~vary], 0.0, atol=1e-9)
    gaps = np.abs(found - means)[vary] / stds[vary]
    ratios = spreads[vary] / stds[vary]
    assert gaps.max() < 0.7 or caught
    assert (ratios.min() > 0.6 and ratios.max() < 1.6) or caught


def test_a_singular_transition_has_no_density():
    assert hasattr(trend(0.01), "log_transition")
    assert not any(hasattr(MODELS[name], "log_transition") for name in SINGULAR)
    # singular but for rounding errors, which are not noise
    loading = np.array([1.0, 0.3, 0.7])
    spread = np.outer(loading, loading) / 3.0 + 1e-17 * np.eye(3)
    model = LinearGaussian(
        0.9 * np.eye(3), [1, 1, 0], spread, 1.0, initial_covariance=np.eye(3)
    )
    assert not hasattr(model, "log_transition")
    moved = model.transition(np.zeros((5, 3)), np.eye(5, 3), 1)
    assert np.linalg.matrix_rank(moved, tol=1e-12) == 1


def autoregression(persistence):
    """A random walk, and a state without noise that decays, or does not."""
    return LinearGaussian(
        np.diag([1.0, persistence]),
        [1.0, 1.0],
        np.diag([1.0, 0.0]),
        1.0,
        initial_covariance=np.eye(2),
    )


CONSTANTS = {
    "trend": (trend(), True),
    "trend of random slope": (trend(0.01), False),
    "season": (season(), False),
    "fixed season": (season(0.0), True),
    "arma": (arma(), False),
    "constant": (constant(), True),
    "known": (clone(trend()).set_params(initial_covariance=np.diag([1.0, 0])), False),
    "decays": (autoregression(0.5), False),
    "stays": (autoregression(1.0), True),
    "alternates": (autoregression(-1.0), True),
    "no noise": (clone(trend()).set_params(transition_covariance=0 * ONE), True),
}


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e5])
@pytest.mark.parametrize("name", CONSTANTS)
def test_models_with_constants_in_any_units(name, scale):
    model, expected = CONSTANTS[name]
    units = np.eye(len(model.transition_matrix))
    units[-1, -1] = scale
    back = np.linalg.inv(units)
    scaled = clone(model).set_params(
        transition_matrix=units @ model.transition_matrix @ back,
        transition_covariance=units @ model.transition_covariance @ units,
        initial_covariance=units @ model.initial_covariance @ units,
    )
    assert scaled._has_constants() == expected


@pytest.mark.slow
@pytest.mark.parametrize("options", ["clusters", "sqmc"])
def test_a_lost_season_is_warned_of_after_any_number_of_rows(options):
    """A loss in the first rows is not averaged away by those after it."""
    model, n_wrong = season(0.0), 0
    for seed in range(6):
        X = drawn(model, 400, seed)
        tracker = ClusteredParticleFilter(
            model, **{"n_particles": 1000, "random_state": 0, **OPTIONS[options]}
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tracker.fit(X)
        wrong = tracker.log_likelihood_ < model.kalman(X)[2].sum() - 3.0
        n_wrong += wrong
        assert caught or not wrong
    assert n_wrong


class OwnTrend(LinearObservations):
    """Has as many normals as states, and noise in one direction of them."""

    n_noise, observation_matrix, observation_covariance = 2, [1.0, 0.0], 1.0

    def __init__(self, loadings):
        self.loadings = loadings

    def initial(self, z):
        return 2.0 * z

    def transition(self, x, z, t):
        return x @ [[1.0, 0.0], [1.0, 1.0]] + z @ np.transpose(self.loadings)


@pytest.mark.filterwarnings("ignore:Column 1")
@pytest.mark.parametrize(
    "loadings",
    [
        [[0.3, 0.0], [0.0, 0.0]],
        [[0.2, 0.1], [0.0, 0.0]],
        [[0.3, 0.3], [0.3, 0.3]],
        [[0.1, 0.3], [0.2, 0.6]],
        [[1e-8, 3e-8], [0.2, 0.6]],
    ],
    ids=str,
)
def test_a_model_of_ones_own_is_told_why_it_cannot_be_smoothed(loadings):
    X = drawn(trend(), 40)
    tracker = ClusteredParticleFilter(
        OwnTrend(loadings), n_particles=200, random_state=0
    )
    with pytest.raises(ValueError, match="moves states in fewer directions") as caught:
        tracker.fit_smooth(X)
    assert "kalman" not in str(caught.value)


def test_a_nearly_singular_transition_has_a_density():
    """Against the exact states, with noise of 0.01 of the other in one direction."""
    covariance = np.array([[0.1, 0.3], [0.2, 0.59]])
    covariance = covariance @ covariance.T
    X = drawn(trend(), 12)
    model = OwnTrend([[0.1, 0.3], [0.2, 0.59]])
    found = ClusteredParticleFilter(model, random_state=0).fit_smooth(X)[0]
    exact = LinearGaussian(
        [[1.0, 1.0], [0.0, 1.0]], [1.0, 0.0], covariance, 1.0, None, 4.0 * np.eye(2)
    )
    means, covariances = exact.kalman_smooth(X)
    gaps = (found - means) / np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    assert np.abs(gaps).max() < 0.5


def test_factors_of_covariances():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 7))
        rank = int(rng.integers(0, n + 1))
        units = np.exp(5.0 * rng.normal(size=(n, 1)))
        loadings = rng.normal(size=(n, rank)) * units
        covariance = loadings @ loadings.T
        factor, full_rank = noise_factor(covariance)
        errors = np.abs(factor.T @ factor - covariance) / (units * units.T)
        assert errors.max(initial=0.0) < 1e-12
        assert np.count_nonzero(factor.any(axis=1)) == rank
        assert full_rank == (rank == n)
        if full_rank:
            assert_array_equal(factor, np.linalg.cholesky(covariance).T)


def test_variances_of_other_units_are_noise():
    """A variance is zero if it is zero, not if it is small beside others."""
    factor, full_rank = noise_factor(np.diag([1e8, 1e-12, 0.0]))
    assert not full_rank
    assert_allclose(sorted(np.abs(factor).max(axis=0)), [0.0, 1e-6, 1e4])


BAD = {
    "negative": ({"transition_covariance": np.diag([1.0, -1.0])}, "semi-definite, got"),
    "indefinite": (
        {"transition_covariance": [[1.0, 2.0], [2.0, 1.0]]},
        "transition_covariance should be positive semi-definite, got",
    ),
    "no variance": ({"transition_covariance": [[0.0, 0.1], [0.1, 1.0]]}, "semi-def"),
    "start": ({"initial_covariance": -ONE}, "initial_covariance should be positive"),
    "asymmetric": (
        {"transition_covariance": [[1.0, 0.5], [0.0, 1.0]]},
        "transition_covariance should be symmetric, got",
    ),
    "no start": (
        {"transition_covariance": np.diag([1.0, 0.0]), "initial_covariance": None},
        "initial_covariance=None stands for the transition_covariance, which is sing",
    ),
    "a number": (
        {"transition_covariance": 1.0},
        r"transition_covariance has shape \(\), expected \(2, 2\)",
    ),
    "a vector": (
        {"observation_matrix": [1.0, 0.0, 0.0]},
        r"observation_matrix has shape \(3,\), expected \(1, 2\)",
    ),
    "NaN": ({"transition_matrix": np.full((2, 2), np.nan)}, "matrix should be finite"),
    "nothing": ({"observation_covariance": None}, "covariance should be finite, got N"),
    "rows": ({"observation_covariance": -1.0}, "observation_covariance should be pos"),
}


@pytest.mark.parametrize("name", BAD)
def test_parameters_that_are_no_model(name):
    given, message = BAD[name]
    model = LinearGaussian(ONE, [1.0, 0.0], ONE, 1.0, initial_covariance=ONE)
    model.set_params(**given)
    tracker = ClusteredParticleFilter(model, n_particles=20)
    X = np.ones((5, 1))
    for call in (tracker.fit, model.kalman, model.kalman_smooth):
        with pytest.raises(ValueError, match=message):
            call(X)
    assert not hasattr(tracker, "particles_")


def test_a_filter_needs_noise_of_the_rows():
    model = LinearGaussian(1.0, 1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"definite, got 0\.0\. Only kalman and"):
        ClusteredParticleFilter(model).fit(np.ones((5, 1)))
    model.set_params(initial_covariance=0.0)
    with pytest.raises(ValueError, match=r"Row 0 has no density .* \[\[0\.0\]\]: give"):
        model.kalman(np.ones(5))


@pytest.mark.parametrize("wrap", [float, lambda x: [x]], ids=["numbers", "vectors"])
def test_numbers_are_matrices_of_size_one(wrap):
    X = np.random.default_rng(0).normal(size=(15, 1))
    parameters = 0.9, 2.0, 0.3, 0.5, 1.0, 4.0
    whole = [[[value]] for value in parameters]
    whole[4] = [1.0]
    same, model = LinearGaussian(*map(wrap, parameters)), LinearGaussian(*whole)
    for name in ("kalman", "kalman_smooth"):
        for found, expected in zip(
            getattr(same, name)(X[:, 0]), getattr(model, name)(X), strict=True
        ):
            assert_array_equal(found, expected)
    found, expected = (
        ClusteredParticleFilter(each, n_particles=50, random_state=0)
        for each in (same, model)
    )
    for states, others in zip(found.fit_smooth(X), expected.fit_smooth(X), strict=True):
        assert_array_equal(states, others)
    assert_array_equal(found.forecast(2).samples, expected.forecast(2).samples)


@pytest.mark.parametrize("shape", [(), (6,), (3, 3), (2, 2, 2)], ids=str)
@pytest.mark.parametrize("name", ["kalman", "kalman_smooth"])
def test_rows_of_another_shape(name, shape):
    with pytest.raises(ValueError, match=r"X has shape|Found array with dim 3"):
        getattr(plane(), name)(np.ones(shape))


def test_no_rows():
    means, covariances, log_densities = trend().kalman(np.empty((0, 1)))
    assert means.shape == (0, 2)
    assert covariances.shape == (0, 2, 2)
    assert log_densities.shape == (0,)
    assert trend().kalman_smooth([])[0].shape == (0, 2)
