"""Hidden Markov models with Dirichlet process emissions: what is found and answered.

That the sampler draws from the posterior is tested in `test_hmm_exact.py` and
`test_hmm_joint_law.py`.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from hmm_rows import agreement, both, every_covariance, markov, two_states
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import skpacbayes
from skpacbayes.hmm._dirichlet_process_atoms import Moments, draw_atoms
from skpacbayes.hmm._dirichlet_process_model import Model, Parameters
from skpacbayes.hmm._dirichlet_process_posterior import _log_student, medians
from skpacbayes.hmm._dirichlet_process_series import Rows, sequence_bounds

# Chains of a hundred sweeps are told that they are short.
pytestmark = pytest.mark.filterwarnings("ignore:The .* disagree")

# What is found.


@both
@every_covariance
@pytest.mark.parametrize("n_features", [1, 2])
def test_clear_states_are_found(emission, covariance_type, n_features):
    X, states = two_states(n_features=n_features)
    model = markov(emission=emission, covariance_type=covariance_type).fit(X)
    found, names = agreement(states, model.predict(X))
    assert found > 0.99
    assert_allclose(model.locations_[names, 0], [0, 6], atol=0.5)
    moves = np.zeros((2, 2))
    np.add.at(moves, (states[:-1], states[1:]), 1)
    expected = (moves + 1) / (moves + 1).sum(axis=1, keepdims=True)
    assert_allclose(model.transmat_[np.ix_(names, names)], expected, atol=0.02)
    assert_allclose(model.transmat_.sum(axis=1), 1)
    assert model.startprob_.shape == (2,)


def test_outliers_make_no_state_and_move_no_location():
    X, states = two_states(400)
    X[[30, 100, 250]] = [[1e6], [-1e6], [1e6]]
    model = markov().fit(X)
    found, names = agreement(states, model.predict(X))
    assert found > 0.98
    assert_allclose(model.locations_[names, 0], [0, 6], atol=0.5)
    assert np.isfinite(model.score_samples(X)).all()


def test_skewed_emissions_take_their_shape():
    """A normal law leaves a mean log density of -1.42, the exponential one of -1."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(1000, 1))
    model = markov(1, n_iter=300).fit(X)
    assert model.score(rng.exponential(size=(1000, 1))) > -1.2


def test_units_do_not_matter():
    X, _ = two_states()
    model = markov(n_iter=10, burn_in=10).fit(X)
    scaled = markov(n_iter=10, burn_in=10).fit(2**10 * X + 2**12)
    assert_allclose(scaled.transmat_, model.transmat_, rtol=1e-6)
    assert_allclose(scaled.locations_, 2**10 * model.locations_ + 2**12, rtol=1e-6)
    grid = np.linspace(-3, 9, 7)
    density = scaled.emission_density(2**10 * grid + 2**12)
    assert_allclose(density * 2**10, model.emission_density(grid), rtol=1e-6)
    likelihoods = scaled.log_likelihoods_ + len(X) * np.log(2**10)
    assert_allclose(likelihoods, model.log_likelihoods_, rtol=1e-6)


@pytest.mark.slow
def test_labels_are_kept_through_the_chains():
    """All draws of all chains call the same state by the same name."""
    X, _ = two_states()
    few = {"n_iter": 40, "burn_in": 40}
    given = {"emission": "auto", "random_state": 2}
    model = markov(n_chains=8, n_atoms=1, **given, **few).fit(X)
    locations = model._answer().draws.locations[..., 0]
    assert len(locations) == 320
    assert len(np.unique(np.sign(locations[:, 1] - locations[:, 0]))) == 1
    chains = model._answer().chains.states
    starts = [chain.locations[1] > chain.locations[0] for chain, *_ in chains]
    assert len(np.unique(starts)) == 2  # the chains themselves do not agree


# Parameters.


def test_start_of_its_own():
    """Sequences that all start in one state, and change to the other and back."""
    rng = np.random.default_rng(0)
    states = np.tile([0] * 5 + [1] * 15, 20)
    X = 6.0 * states[:, None] + rng.normal(size=(400, 1))
    own = markov(startprob="dirichlet").fit(X, lengths=[20] * 20)
    _, names = agreement(states, own.predict(X, lengths=[20] * 20))
    assert own.startprob_[names[0]] > 0.85
    with pytest.warns(ConvergenceWarning, match="use startprob='dirichlet'"):
        stationary = markov().fit(X, lengths=[20] * 20)
    _, names = agreement(states, stationary.predict(X, lengths=[20] * 20))
    transitions = stationary.transmat_samples_
    laws = np.array([np.linalg.matrix_power(Q, 999)[0] for Q in transitions])
    assert_allclose(stationary.startprob_, laws.mean(axis=0), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:States last too short")  # as they have to
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The order of the rows")  # where 0.5 forbids stays
@pytest.mark.filterwarnings("ignore:Rows depend on the rows before them")  # as 0.2 does
@pytest.mark.parametrize("least", [0.0, 0.01, 0.2, 0.5])
def test_transitions_are_not_below_the_least(least):
    X = 6.0 * (np.arange(300)[:, None] > 150) + np.random.default_rng(0).normal(
        size=(300, 1)
    )
    samples = markov(min_transition=least).fit(X).transmat_samples_
    assert samples.min() >= least - 1e-15
    assert samples.min() < least + 0.01
    assert_allclose(samples.sum(axis=2), 1)


def test_concentration_spreads_the_weights():
    X, _ = two_states()
    effective = []
    for concentration in (0.01, 10.0):
        model = markov(concentration=concentration, n_iter=150).fit(X)
        weights = np.exp(model._answer().draws.log_weights)
        effective.append((1 / (weights**2).sum(axis=-1)).mean())
    assert effective[0] < 1.5
    assert effective[1] > 2.5


@pytest.mark.slow
@pytest.mark.parametrize("duration", ["geometric", "negative_binomial"])
@pytest.mark.parametrize("n_states", [2, 3, 6])
def test_the_prior_is_of_one_move_from_each_state(n_states, duration):
    """States that rows show: their transitions are Dirichlet given their moves.

    Probabilities to leave are compared with their exact mean, by five standard errors
    of 400 draws. With stages, of which one each is likely here, they are as large.
    """
    rng = np.random.default_rng(n_states)
    moves = (rng.random(400) < 0.05) * rng.integers(1, n_states, 400)
    states = np.cumsum(moves) % n_states
    model = markov(n_states, n_atoms=1, n_iter=400, min_transition=1e-7)
    model.set_params(duration=duration).fit(rng.normal(9.0 * states)[:, None])
    names = agreement(
        states, model.predict(rng.normal(9.0 * states)[:, None]), n_states
    )
    assert names[0] == 1.0
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (names[1][states[:-1]], names[1][states[1:]]), 1)
    alphas = counts + 1 / (n_states - 1)
    stay, total = alphas.diagonal(), alphas.sum(axis=1)
    expected, variance = 1 - stay / total, stay * (total - stay) / total**3
    found = 1 - model.transmat_samples_.diagonal(axis1=1, axis2=2).mean(axis=0)
    if duration == "geometric":
        assert np.all(np.abs(found - expected) < 5 * np.sqrt(variance / 400) + 2e-3)
    else:
        assert 0.7 < found.mean() / expected.mean() < 1.8


@pytest.mark.filterwarnings("ignore:Rows depend")  # states that must not last
@pytest.mark.filterwarnings(
    "ignore:The order of the rows"
)  # where the prior forbids stays
def test_transition_prior_evens_the_rows():
    X, _ = two_states()
    stays = [
        np.diag(markov(transition_prior=prior).fit(X).transmat_).mean()
        for prior in (0.1, 1000.0)
    ]
    assert stays[0] > 0.88
    assert_allclose(stays[1], 0.5, atol=0.05)


def test_numbers_of_sweeps_and_draws():
    X, _ = two_states(50)
    model = markov(1, n_atoms=1, n_iter=30, burn_in=20, thin=7, n_chains=3).fit(X)
    assert model.n_iter_ == 30
    assert model.log_likelihoods_.shape == (3, 50)
    assert model.transmat_samples_.shape == (3 * 5, 1, 1)


@both
def test_one_atom_is_a_normal_law(emission):
    X, _ = two_states()
    model = markov(n_atoms=1, emission=emission).fit(X)
    grid = np.linspace(-4, 4, 81)
    state = int(model.locations_[:, 0].argmin())
    density = model.emission_density(grid, state)
    assert_allclose(density, norm.pdf(grid), atol=0.06)


def test_threads_change_nothing():
    X, _ = two_states()
    one, two = (markov(n_jobs=n_jobs).fit(X) for n_jobs in (1, 2))
    assert_array_equal(one.transmat_samples_, two.transmat_samples_)
    assert_array_equal(one.log_likelihoods_, two.log_likelihoods_)


def test_chains_share_memory_under_a_process_backend():
    """Moves made in another process would be lost."""
    X, _ = two_states()
    alone = markov().fit(X)
    with parallel_config(backend="loky", n_jobs=2):
        inside = markov(n_jobs=2).fit(X)
    assert_array_equal(inside.transmat_samples_, alone.transmat_samples_)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_one_compilation_serves_all_models():
    """Counted in a new process, where nothing else has called the kernels."""
    code = """
import numpy as np
from skpacbayes import DirichletProcessHMM
from skpacbayes._kernels import hmm, kernel

X = np.random.default_rng(0).normal(size=(40, 2))
gaps = X.copy()
gaps[::5, 0] = gaps[3] = np.nan
X.setflags(write=False)
for emission, covariance_type, rows in (  # each option meets each other one
    ("translated", "diag", X),
    ("translated", "full", gaps),
    ("per_state", "diag", gaps),
    ("per_state", "full", X),
):
    model = DirichletProcessHMM(
        emission=emission,
        covariance_type=covariance_type,
        n_iter=8,
        burn_in=1,
        n_chains=1,
    )
    model.fit(rows).predict(rows), model.decode(rows)
found = {
    name: len(value.dispatcher.signatures)
    for name, value in vars(hmm).items()
    if isinstance(value, kernel) and value.dispatcher.signatures
}
assert len(found) >= 6 and set(found.values()) == {1}, found
"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(skpacbayes.__file__).parents[1]),
    }
    python = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(python, env=environment, check=True)


# Answers.


@pytest.fixture(scope="module")
def fitted():
    X, _ = two_states()
    return markov().fit(X)


def test_answers_for_sequences_are_those_of_each(fitted):
    X, _ = two_states(40, seed=1)
    lengths = [7, 1, 32]
    parts = np.split(X, [7, 8])
    for method in (fitted.predict_proba, fitted.score_samples, fitted.predict):
        together = method(X, lengths=lengths)
        assert_allclose(together, np.concatenate([method(part) for part in parts]))
        groups = np.repeat([5, 2, 5], lengths)
        assert_array_equal(method(X, groups=groups), together)
    total, path = fitted.decode(X, lengths)
    each = [fitted.decode(part) for part in parts]
    assert_allclose(total, sum(one for one, _ in each))
    assert_array_equal(path, np.concatenate([one for _, one in each]))
    assert_allclose(fitted.score(X), fitted.score_samples(X).mean())


def test_the_predictive_density_integrates_to_one(fitted):
    X, _ = two_states(5, seed=1)
    grid = np.linspace(-30, 40, 4001)
    sequences = np.array([np.vstack([X, [[x]]]) for x in grid[::40]])
    found = fitted.score_samples(sequences.reshape(-1, 1), [6] * len(sequences))
    assert_allclose(trapezoid(np.exp(found[5::6]), grid[::40]), 1, atol=0.02)
    of_states = fitted.emission_density(grid)
    assert of_states.shape == (4001, 2)
    assert_allclose(trapezoid(of_states, grid, axis=0), 1, atol=0.01)
    assert_array_equal(fitted.emission_density(grid, 1), of_states[:, 1])
    assert_allclose(fitted.emission_density(grid[:, None]), of_states)


def test_quantiles_of_the_density(fitted):
    grid = np.linspace(-3, 9, 50)
    low, middle, high = fitted.emission_density(grid, 0, quantiles=[0.05, 0.5, 0.95])
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (low < high).any()
    mean = fitted.emission_density(grid, 0)
    assert np.mean((low <= mean) & (mean <= high)) > 0.9


def test_decode_agrees_with_predict_where_states_are_clear(fitted):
    X, _ = two_states(60, seed=3)
    assert_array_equal(fitted.decode(X)[1], fitted.predict(X))
    proba = fitted.predict_proba(X)
    assert_array_equal(proba.argmax(axis=1), fitted.predict(X))
    assert_allclose(proba.sum(axis=1), 1)


def test_sample_resembles_the_rows(fitted):
    X, states = fitted.sample(2000)
    assert X.shape == (2000, 1)
    stays = np.mean(states[1:] == states[:-1])
    assert 0.85 < stays < 1.0
    assert_array_equal(fitted.sample(2000)[0], X)
    assert np.mean(fitted.predict(X) == states) > 0.98
    for state, location in enumerate(fitted.locations_[:, 0]):
        assert_allclose(np.median(X[states == state]), location, atol=0.5)


def test_a_row_far_away_is_improbable_not_impossible(fitted):
    """Its density falls as the fifth power of the distance: Student's, 4 degrees."""
    near, far = fitted.score_samples([[1e6]])[0], fitted.score_samples([[1e7]])[0]
    assert_allclose(far - near, -5 * np.log(10), rtol=1e-3)


@every_covariance
def test_the_law_of_an_atom_without_rows(covariance_type):
    """The mean density of atoms drawn from the prior, but for the error of a mean."""
    point = np.array([[0.7, -2.0, np.nan], [0.7, -2.0, 1.0]])
    rows = Rows(point, sequence_bounds(2))
    model = Model(1, 2000, 3, True, covariance_type == "full", 1.0, 1.0, 0.0, True)
    rng = np.random.default_rng(0)
    no_rows = np.empty((0, 3)), *np.empty((2, 0), dtype=np.int64), np.zeros((1, 3))
    _, nothing = Moments.of_rows(*no_rows, model)
    origins, scales = np.zeros((1, 3)), np.array([[0.25, 1.0, 0.01]])
    means, factors = draw_atoms(
        nothing, np.zeros((1, 2000, 3)), origins, scales, model, rng
    )
    draw = Parameters(
        np.ones((1, 1)),
        np.ones(1),
        np.zeros((1, 2000)),
        means,
        factors,
        means[0, :1],
        origins,
        scales,
    )
    gaps = (point[:, None] - draw.locations) - means[0]
    gaps = np.nan_to_num(gaps, nan=0.0)
    for row, seen in enumerate(([0, 1], [0, 1, 2])):
        inverse = np.swapaxes(factors[0], 1, 2) @ factors[0]
        covariances = np.linalg.inv(inverse)[:, seen][:, :, seen]
        gap = gaps[row][:, seen]
        squares = np.einsum("lf,lfg,lg->l", gap, np.linalg.inv(covariances), gap)
        determinants = np.linalg.det(2 * np.pi * covariances)
        densities = np.exp(-0.5 * squares) / np.sqrt(determinants)
        error = densities.std() / np.sqrt(2000)
        expected = np.exp(_log_student(rows.values, draw, model)[0, row])
        assert abs(densities.mean() - expected) < 4 * error


def test_medians():
    """Of a draw whose shape is normal, and of one of two atoms."""
    X, _ = two_states(30)
    model = markov(n_iter=1, burn_in=1, n_chains=1, n_atoms=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        draws = model.fit(X)._answer().draws
    draws = draws._replace(
        log_weights=np.log([[[0.75, 0.25]]]),
        means=np.array([[[[1.0], [50.0]]]]),
        factors=np.array([[[[[2.0]], [[1.0]]]]]),
        locations=np.array([[[0.0], [10.0]]]),
    )
    expected = 1.0 + 0.5 * norm.ppf(0.5 / 0.75)
    assert_allclose(medians(draws), [[[expected], [10 + expected]]], rtol=1e-9)
