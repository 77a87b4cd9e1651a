"""The guesses at the states that chains start from."""

import numpy as np
import pytest
from hmm_rows import agreement
from numpy.testing import assert_allclose, assert_array_equal

from skpacbayes import DirichletProcessHMM, make_hidden_markov
from skpacbayes.hmm._start import guesses, means_of_neighbours


def cyclic(k, stay):
    """Transitions to the same or, unless one stays, to the next state."""
    return stay * np.eye(k) + (1 - stay) * np.roll(np.eye(k), 1, axis=1)


@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.parametrize("transitions", [None, cyclic(3, 0.2)], ids=["stays", "moves"])
def test_order_tells_what_values_do_not(transitions, seed):
    """Eight lumps of rows in each state: k-means finds other groups than the states.

    In 156 series (13 settings, among them these) the second guess missed the states
    that the symbols' chain finds from the truth in none.
    """
    X, states = make_hidden_markov(
        "bimodal", n_features=3, transition_matrix=transitions, random_state=seed
    )
    rng = np.random.default_rng(seed)
    by_values, by_order = guesses(X, np.array([0, len(X)]), 3, rng)
    assert agreement(states, by_order, 3)[0] > 0.85
    assert agreement(states, by_values, 3)[0] < 0.75


@pytest.mark.parametrize("seed", range(4))
def test_rows_in_no_order_are_grouped_by_their_values(seed):
    """States that say nothing of the next: symbols tell nothing, and values count."""
    rng = np.random.default_rng(seed)
    states = rng.integers(2, size=300)
    X = rng.normal(size=(300, 1)) + 7.0 * states[:, None]
    model = DirichletProcessHMM(2, n_iter=100, burn_in=100, random_state=0).fit(X)
    assert agreement(states, model.predict(X))[0] > 0.98


def test_means_of_neighbours_stay_within_a_sequence():
    values = np.array([[0.0], [5.0], [10.0], [100.0], [200.0]])
    expected = [[3.0], [5.0], [7.0], [140.0], [160.0]]
    assert_allclose(means_of_neighbours(values, np.array([0, 3, 3, 5])), expected)


def test_few_rows_are_guessed_by_their_values_alone():
    states = np.repeat([0, 1], 10)
    X = np.random.default_rng(0).normal(size=(20, 1)) + 20.0 * states[:, None]
    (found,) = guesses(X, np.array([0, 20]), 2, np.random.default_rng(0))
    assert agreement(states, found)[0] == 1.0
    (found,) = guesses(X, np.array([0, 20]), 1, np.random.default_rng(0))
    assert_array_equal(found, 0)
