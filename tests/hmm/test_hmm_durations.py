"""Negative binomial durations: exact by renewal theory, found, and answered with."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
from hmm_points import model_of
from hmm_reference import invariant_law
from hmm_rows import agreement
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import chisquare, nbinom
from sklearn.exceptions import ConvergenceWarning

from skpacbayes._kernels.hmm import draw_states, smooth, viterbi
from skpacbayes.hmm import DirichletProcessHMM
from skpacbayes.hmm import _dirichlet_process_durations as _durations
from skpacbayes.hmm._dirichlet_process_chain import Chain
from skpacbayes.hmm._dirichlet_process_durations import Steps
from skpacbayes.hmm._dirichlet_process_model import Parameters
from skpacbayes.hmm._dirichlet_process_posterior import filtered_states
from skpacbayes.hmm._dirichlet_process_series import Rows


def chances_of(stay, stages, n):
    """P(D = 1), ..., P(D = n) of a sum of geometric variables, by convolution."""
    one = np.append(0.0, (1 - stay) * stay ** np.arange(n))
    total = np.eye(n + 1)[0]
    for _ in range(stages):
        total = np.convolve(total, one)[: n + 1]
    return total[1:]


def durations_of(parameters, n):
    """P(D = 1), P(D = 2), ... and P(D >= 1), P(D >= 2), ... of each state."""
    stay = np.diag(parameters.transitions)
    pairs = zip(stay, parameters.stages, strict=True)
    chances = np.array([chances_of(*pair, n) for pair in pairs])
    return chances, np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]


def semi_markov_log_chance(path, transitions, stages, durations, start=None):
    """Log probability of states by their durations; the first run may be cut.

    Without `start` the sequence is cut out of a long run. The time that the first state
    then has before it is over has the survival function of its duration as its density;
    a state holds as often as it is entered, times its mean duration.
    """
    stay = np.diag(transitions)
    jumps = (transitions - np.diag(stay)) / (1 - stay)[:, None]
    chances, survival = durations
    runs = [(state, len(list(own))) for state, own in itertools.groupby(path)]
    (first, length), *others = runs
    if start is None:
        entered = invariant_law(jumps)
        rate = entered[first] / (entered * stages / (1 - stay)).sum()
        whole = rate * survival[first, length - 1]
        cut = rate * survival[first, length - 1 :].sum()
    else:
        whole = start[first] * chances[first, length - 1]
        cut = start[first] * survival[first, length - 1]
    total = math.log(max(whole if others else cut, 1e-300))
    before = first
    for number, (state, length) in enumerate(others):
        last = number == len(others) - 1
        of_length = (survival if last else chances)[state, length - 1]
        total += math.log(max(jumps[before, state] * of_length, 1e-300))
        before = state
    return total


# Chains are short here on purpose, and are told so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
K, STAGES = 3, np.array([1, 3, 2])


def point(stationary, seed=0):
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(K), K)
    model = model_of(K, staged=True, stationary=stationary)
    start = rng.dirichlet(np.ones(K))
    if stationary:
        start = _durations.stationary_of(transitions, STAGES, model)
    return Parameters(transitions, start, *[None] * 6, stages=STAGES), model


def paths_of(parameters, model, densities):
    """All paths of states, and the logarithms of their chances with the rows."""
    n = densities.shape[1]
    paths = np.array(list(itertools.product(range(K), repeat=n)))
    start = None if model.stationary else parameters.start
    durations = durations_of(parameters, 500)
    given = parameters.transitions, parameters.stages, durations, start
    logs = [semi_markov_log_chance(path, *given) for path in paths]
    return paths, logs + np.log(densities[paths, np.arange(n)]).sum(axis=1)


@pytest.mark.parametrize("stationary", [True, False])
def test_every_path(stationary):
    """Filter, smoother and evidence are those of all paths of states."""
    parameters, model = point(stationary)
    bounds = np.array([0, 1, 7, 9])
    densities = np.random.default_rng(1).uniform(0.1, 1.0, (K, 9))
    steps = Steps.of(parameters, model)
    assert_allclose(steps.matrix.sum(axis=1), 1.0)
    found, evidence = _durations.filtered_stages(densities, steps, bounds)
    filtered = steps.of_states(found)
    back = _durations.ways_into(steps.matrix.T)
    smooth(found, *steps.ways, *back, bounds)
    smoothed = steps.of_states(found)
    for a, b in itertools.pairwise(bounds):
        known = 0.0
        for stop in range(a + 1, b + 1):
            paths, logs = paths_of(parameters, model, densities[:, a:stop])
            total = logsumexp(logs)
            assert_allclose(np.log(evidence[stop - 1]), total - known, atol=1e-10)
            known = total
            posterior = np.exp(logs - total)
            last = np.bincount(paths[:, -1], posterior, K)
            assert_allclose(filtered[:, stop - 1], last, atol=1e-10)
        for t, column in enumerate(paths.T):
            expected = np.bincount(column, posterior, K)
            assert_allclose(smoothed[:, a + t], expected, atol=1e-10)


def test_moves_are_counted():
    """Moves, stays in a stage and steps to the next one, from a path of stages."""
    parameters, model = point(True)
    steps = Steps.of(parameters, model)
    rng, n = np.random.default_rng(2), 4000
    found, _ = _durations.filtered_stages(np.ones((K, n)), steps, np.array([0, n]))
    size = len(steps.states)
    path, moves, firsts = np.empty(n, int), np.empty((size, size)), np.empty(size)
    bounds, uniforms = np.array([0, n]), rng.random(n)
    draw_states(found, *steps.ways, bounds, uniforms, path, moves, firsts)
    moved = steps.moved(moves, firsts)
    expected, onward = np.zeros((K, K)), np.zeros(K)
    for before, after in itertools.pairwise(path):
        i, j = steps.states[[before, after]]
        if i == j and before != after:
            onward[i] += 1
        else:
            expected[i, j] += 1
    assert_array_equal(moved.moves, expected)
    assert_array_equal(moved.onward, onward)
    assert moved.firsts[steps.states[path[0]]] == moved.firsts.sum() == 1
    # rows of no content: the path has the distribution of the chain
    share = np.bincount(steps.states[path], minlength=K) / n
    assert_allclose(share, parameters.start, atol=0.06)


def test_the_most_probable_path_of_stages():
    parameters, model = point(True)
    steps = Steps.of(parameters, model)
    densities = np.random.default_rng(3).uniform(0.1, 1.0, (K, 5))[steps.states]
    size, scores = len(steps.states), {}
    with np.errstate(divide="ignore"):
        logs = np.log(steps.matrix), np.log(steps.start)
        for path in itertools.product(range(size), repeat=5):
            scores[path] = logs[1][path[0]] + np.log(densities[path, range(5)]).sum()
            scores[path] += sum(logs[0][pair] for pair in itertools.pairwise(path))
        ends, sources, chances = steps.ways
        found = np.empty(5, int)
        total = viterbi(
            np.log(densities),
            *(ends, sources, np.log(chances), logs[1], np.array([0, 5])),
            *(np.empty((size, 5), int), found),
        )
    # stages of a state may tie
    assert_allclose([total, scores[tuple(found)]], max(scores.values()), rtol=1e-12)


def test_other_stages_keep_the_mean_duration(monkeypatch):
    """And the stationary distribution, so that the first states say nothing of them."""
    parameters, model = point(True)
    model = model._replace(min_transition=0.0)
    rng, seen = np.random.default_rng(4), 0
    expected = _durations.of_rows(parameters.transitions, parameters.stages)
    for _ in range(60):
        proposed, _ = _durations.proposed_stages(parameters, model, rng)
        if proposed is None:
            continue
        found = _durations.of_rows(proposed.transitions, proposed.stages)
        assert_allclose(found, expected, atol=1e-12)
        assert_allclose(proposed.transitions.sum(axis=1), 1.0)
        seen += (proposed.stages != parameters.stages).sum() == 1
    assert seen > 10


@pytest.mark.slow
def test_steps_between_numbers_of_stages(monkeypatch):
    """A step leaves the distribution of the numbers as it is, one stage each included.

    Numbers are drawn from their exact distribution, given the mean durations and the
    densities of rows. After a step they must have it again: a chi-square test, which
    fails on correct code with a probability of 1e-4 were the seed new.
    """
    numbers = np.array([1, 2, 3, 4])
    monkeypatch.setattr(_durations, "STAGES", numbers)
    k, n, a, n_draws = 2, 12, 0.7, 6000
    rng = np.random.default_rng(0)
    model = model_of(k, staged=True, transition_prior=a)
    rows = Rows(np.zeros((n, 1)), np.array([0, n]))
    leave, start = np.array([0.2, 0.15]), np.full(k, 0.5)
    path = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0])  # geometric, it seems
    densities = rng.uniform(0.5, 1.0, (k, n))
    densities[path, np.arange(n)] *= 3.0
    points, logs = [], []
    for stages in itertools.product(numbers, repeat=k):
        moves = leave * np.array(stages)
        transitions = np.array([[1 - moves[0], moves[0]], [moves[1], 1 - moves[1]]])
        point = Parameters(
            transitions, start, *[None] * 6, stages=np.array(stages, dtype=np.int64)
        )
        points.append(point)
        _, evidence = _durations.filtered_stages(
            densities.copy(), Steps.of(point, model), rows.bounds
        )
        # Dirichlet density, and the change of volume to the mean durations
        log_prior = (a - 1) * np.log(transitions).sum() + np.log(stages).sum()
        logs.append(np.log(evidence).sum() + log_prior)
    exact = np.exp(logs - logsumexp(logs))
    assert exact[0] > 0.02
    places = {tuple(point.stages): i for i, point in enumerate(points)}
    chain = Chain(rows, model, rng, points[0])
    found = np.zeros(len(points))
    for place in rng.choice(len(points), n_draws, p=exact):
        chain.parameters = points[place]
        chain._filtered(densities.copy())
        found[places[tuple(chain.parameters.stages)]] += 1
    assert chisquare(found, n_draws * exact).pvalue > 1e-4


# What is found, and answered.


def lasting(n=900, seed=0, k=2):
    """States that last 8 to 12 rows each time, and their rows, which overlap."""
    rng = np.random.default_rng(seed)
    runs = np.cumsum(1 + (k > 2) * (rng.random(n) < 0.5)) % k
    states = runs.repeat(rng.integers(8, 13, n))[:n]
    return (2.5 * states + rng.normal(size=n))[:, None], states


FEW = {"n_iter": 120, "burn_in": 120, "random_state": 0, "emission": "translated"}


@pytest.fixture(scope="module")
def fitted():
    X, _ = lasting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DirichletProcessHMM(2, duration="negative_binomial", **FEW).fit(X)


@pytest.mark.slow
def test_durations_are_learnt(fitted):
    """The truth is 10 rows on average, with a deviation of 1.4; geometric has 9.5."""
    X, states = lasting(1500, seed=1)
    assert agreement(states, fitted.predict(X))[0] > 0.95
    assert fitted.n_stages_samples_.min() >= 4
    chances, rows = fitted.duration_probabilities(200), np.arange(1, 201)
    assert_allclose(chances.sum(axis=1), 1.0, atol=1e-6)
    means = chances @ rows
    deviations = np.sqrt(chances @ rows**2 - means**2)
    assert np.all(np.abs(means - 10) < 1.5)
    assert deviations.max() < 5
    stays = 1 / (1 - fitted.transmat_samples_[:, [0, 1], [0, 1]])
    assert_allclose(stays.mean(axis=0), means, rtol=1e-6)
    plain = DirichletProcessHMM(2, **FEW).fit(lasting()[0])
    assert_array_equal(plain.n_stages_samples_, 1)
    assert fitted.score(X) > plain.score(X) + 0.02
    of_plain = plain.duration_probabilities(5)
    stay = plain.transmat_samples_[:, [0, 1], [0, 1]]
    expected = np.mean([(1 - stay) * stay**d for d in range(5)], axis=1).T
    assert_allclose(of_plain, expected, rtol=1e-9)


@pytest.mark.slow
def test_geometric_durations_are_found_too():
    rng = np.random.default_rng(5)
    states = (rng.random(900) > 0.9).cumsum() % 2
    X = (5.0 * states + rng.normal(size=900))[:, None]
    model = DirichletProcessHMM(2, duration="negative_binomial", **FEW).fit(X)
    assert np.mean(model.n_stages_samples_ == 1) > 0.8
    assert agreement(states, model.predict(X))[0] > 0.98


def test_samples_last_as_long(fitted):
    _, states = fitted.sample(6000)
    draws = fitted.duration_probabilities(60)
    for state in range(2):
        lengths = [len(list(own)) for j, own in itertools.groupby(states) if j == state]
        assert abs(np.mean(lengths) - draws[state] @ np.arange(1, 61)) < 1.5
        assert min(lengths[1:-1]) >= fitted.n_stages_samples_[:, state].min()


def test_forecasts_are_predictions_of_missing_rows(fitted):
    X, _ = lasting(100, seed=6)
    nothing = np.full((15, 1), np.nan)
    (rows, _), run = fitted._new_rows(np.vstack([X, nothing])), fitted._answer()
    ahead, logs = [], []
    for draw in run.used_draws():
        probabilities, log_densities, steps = filtered_states(rows, draw, run.model)
        ahead.append(steps.of_states(probabilities[:, -15:]))
        logs.append(log_densities[:100] @ 0.98 ** np.arange(100)[::-1])
    expected = np.tensordot(np.exp(logs - logsumexp(logs)), ahead, 1).T
    found = fitted.forecast(15, X)
    assert_allclose(found.state_probabilities, expected, atol=1e-9)
    # a state that has just begun goes on, then ends
    assert np.ptp(found.state_probabilities[:, 0]) > 0.3


@pytest.mark.parametrize("emission", ["poisson", "translated"])
def test_a_window_weighs_draws_of_other_numbers_of_stages(emission):
    X, states = lasting(200, seed=7)
    if emission == "poisson":
        X = np.random.default_rng(0).poisson([[2], [12]], (2, 200))[states, range(200)]
        X = X[:, None]
    model = DirichletProcessHMM(
        2,
        duration="negative_binomial",
        window=180,
        **(FEW | {"emission": emission, "n_chains": 1, "n_iter": 40}),
    )
    run = model.partial_fit(X[:150])._answer()
    draws = run.used_draws()
    assert len({tuple(draw.stages) for draw in draws}) > 1
    now = model.partial_fit(X[150:170]).state_probabilities_
    again = pickle.loads(pickle.dumps(model))
    rows = run.units.rows(X[:170], [0, 170])
    found = [filtered_states(rows, draw, run.model) for draw in draws]
    logs = np.array([log_densities[150:].sum() for _, log_densities, _ in found])
    last = [steps.of_states(p[:, -1]) for p, _, steps in found]
    expected = np.exp(logs - logsumexp(logs)) @ np.array(last)
    assert_allclose(now, expected, atol=1e-8)
    ahead = np.vstack([X[:170], np.full((3, 1), np.nan)])
    expected = model.predict_proba(ahead)[-3:]
    assert_allclose(model.forecast(3).state_probabilities, expected, atol=1e-8)
    for one in (model, again):
        one.partial_fit(X[170:])
    assert_array_equal(again.state_probabilities_, model.state_probabilities_)


def test_one_state_has_no_durations():
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = DirichletProcessHMM(1, duration="negative_binomial", **FEW).fit(X)
    assert_array_equal(model.n_stages_samples_, 1)
    assert_array_equal(model.duration_probabilities(3), 0.0)  # it never ends


def test_durations_asked_for_wrongly(fitted):
    with pytest.raises(ValueError, match=r"n_steps=0 should be an integer of at least"):
        fitted.duration_probabilities(0)


def test_shifted_negative_binomial():
    """Convolutions of geometric variables against the formula."""
    rows = np.arange(1, 30)
    expected = nbinom.pmf(rows - 4, 4, 0.3)
    assert_allclose(chances_of(0.7, 4, 29), expected, atol=1e-12)
