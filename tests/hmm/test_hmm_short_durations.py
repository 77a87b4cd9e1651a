"""Warnings that the prior of the transitions decides how long states last."""

import re
import warnings

import numpy as np
import pytest
from hmm_rows import markov, short_runs
from sklearn.exceptions import ConvergenceWarning

pytestmark = short_runs

TOO_SHORT = "States last too short in the transitions"
N_STATES, N_VISITS, N_ROWS = 6, 3, 30


def visits(n_states=N_STATES, n_visits=N_VISITS, n_rows=N_ROWS, seed=0):
    """States that are visited a few times each, for many rows, in random order."""
    rng = np.random.default_rng(seed)
    order = [rng.permutation(n_states) for _ in range(n_visits)]
    path = np.concatenate(order)
    path = path[np.append(True, np.diff(path) != 0)]  # a visit is a move
    return np.repeat(path, n_rows), rng


def advice_of(caught):
    """Return the parameters that the warning names, or None without the warning."""
    for message in (str(warning.message) for warning in caught):
        if message.startswith(TOO_SHORT):
            return {k: float(v) for k, v in re.findall(r"(\w+)=([\d.e-]*\d)", message)}
    return None


def advice_for(model, X, **given):
    """Fit, and return the parameters that the warning names, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **given)
    return advice_of(caught)


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["per_state", "translated", "poisson", "mixed"])
@pytest.mark.parametrize("with_inputs", [False, True])
def test_few_moves_between_many_states(emission, with_inputs):
    states, rng = visits()
    X = rng.normal(6.0 * states)[:, None]
    if emission != "per_state":
        counts = rng.poisson((4.0 * states) ** 1.5 + 0.5)[:, None].astype(float)
        X = {"translated": X, "poisson": counts, "mixed": np.hstack([X, counts])}[
            emission
        ]
    kinds = ["normal", "poisson"] if emission == "mixed" else emission
    model = markov(N_STATES, emission=kinds, n_atoms=2, transition_prior=1.0)
    given = {"inputs": rng.normal(size=(len(X), 1))} if with_inputs else {}
    assert advice_for(model, X, **given)["transition_prior"] < 0.5


@pytest.mark.slow
def test_the_advice_makes_the_durations_right():
    states, rng = visits()
    X = rng.normal(6.0 * states)[:, None]
    lasts = []
    advice = {"transition_prior": 1.0}
    for _ in range(2):
        model = markov(N_STATES, n_atoms=1, **advice)
        advice = advice_for(model, X)
        lasts.append(1 / (1 - model.transmat_.diagonal()).mean())
    assert lasts[0] < 0.5 * N_ROWS < 0.6 * N_ROWS < lasts[1] < 1.5 * N_ROWS
    assert advice is None


@pytest.mark.slow
def test_states_that_are_visited_once():
    """Fewer moves than states: the default prior, of one move from each, weighs."""
    states = np.repeat(np.arange(N_STATES), 60)
    X = np.random.default_rng(0).normal(6.0 * states)[:, None]
    advice = advice_for(markov(N_STATES, n_atoms=1), X)
    assert advice["transition_prior"] < 1 / (N_STATES - 1)
    assert advice_for(markov(N_STATES, n_atoms=1, **advice), X) is None


@pytest.mark.slow
def test_a_bound_of_the_transitions_that_the_rows_contradict():
    states, rng = visits(2, 12, 200)
    X = rng.normal(6.0 * states)[:, None]
    bounded = {"min_transition": 0.02, "n_atoms": 1}
    advice = advice_for(markov(2, **bounded), X)
    assert set(advice) == {"min_transition"}
    assert advice_for(markov(2, **bounded | advice), X) is None


def test_a_stream_is_checked():
    states, rng = visits()
    X = rng.normal(6.0 * states)[:, None]
    model = markov(N_STATES, n_atoms=1, window=len(X), transition_prior=1.0)
    with pytest.warns(ConvergenceWarning, match=TOO_SHORT):
        model.partial_fit(X).predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [2, 3, 6])
@pytest.mark.parametrize("n_sequences", [1, 10])
def test_transitions_from_the_prior_are_not_contradicted(n_states, n_sequences):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matrix, states = rng.dirichlet(np.ones(n_states), n_states), [0]
        for _ in range(299):
            states.append(rng.choice(n_states, p=matrix[states[-1]]))
        X = rng.normal(6.0 * np.array(states))[:, None]
        lengths = [300 // n_sequences] * n_sequences
        model = markov(n_states, n_atoms=1, burn_in=30)
        assert advice_for(model, X, lengths=lengths) is None


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [2, 3])
def test_durations_that_are_learnt_are_not_contradicted(n_states):
    states, rng = visits(n_states, 12, 10)
    X = rng.normal(6.0 * states)[:, None]
    model = markov(n_states, n_atoms=1, duration="negative_binomial")
    assert advice_for(model, X) is None


def test_states_that_the_rows_hardly_tell_apart():
    states, rng = visits(3, 5, 30)
    X = rng.normal(0.7 * states)[:, None]
    assert advice_for(markov(3), X) is None
