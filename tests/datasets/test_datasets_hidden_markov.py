"""`make_hidden_markov` draws from the law that it documents.

Each comparison fails on correct code with probability below 1e-5, were the seeds new.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.utils._param_validation import InvalidParameterError

from skpacbayes.datasets import make_hidden_markov

LEAST_P = 1e-6
Z_FALSE = 5.0  # two-sided probability below 1e-6
MATRIX = np.array([[0.5, 0.5, 0.0], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])


def bimodal(values):
    return 0.7 * stats.norm(-0.6, 0.4).cdf(values) + 0.3 * stats.norm(1.4, 0.6).cdf(
        values
    )


LAWS = {
    "gaussian": stats.norm(scale=0.8).cdf,
    "bimodal": bimodal,
    "heavy-tailed": stats.t(2, scale=0.6).cdf,
}


@pytest.mark.parametrize("shape", LAWS)
def test_noise_in_one_dimension(shape):
    X, y = make_hidden_markov(shape, 30_000, n_states=4, separation=1.5, random_state=1)
    assert X.shape == (30_000, 1)
    for state in range(4):
        noise = X[y == state, 0] - 1.5 * state
        assert stats.kstest(noise, LAWS[shape]).pvalue > LEAST_P


def z_of_transitions(y, matrix):
    """Standard scores of the transitions that are neither sure nor excluded."""
    counts = np.zeros(matrix.shape)
    np.add.at(counts, (y[:-1], y[1:]), 1)
    visits = counts.sum(axis=1, keepdims=True)
    random = (matrix > 0) & (matrix < 1)
    assert not counts[matrix == 0].any()
    spread = np.sqrt(visits * matrix * (1 - matrix))
    return ((counts - visits * matrix) / np.where(random, spread, 1))[random]


def test_the_chain_moves_by_its_matrix():
    for seed in range(3):
        _, y = make_hidden_markov(
            n_samples=20_000, transition_matrix=MATRIX, random_state=seed
        )
        assert np.abs(z_of_transitions(y, MATRIX)).max() < Z_FALSE
    _, y = make_hidden_markov(n_samples=20_000, random_state=0)
    default = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    assert np.abs(z_of_transitions(y, default)).max() < Z_FALSE


@pytest.mark.slow
def test_the_first_state_is_drawn_from_the_invariant_law():
    n_draws = 1500
    first = [
        make_hidden_markov(n_samples=1, transition_matrix=MATRIX, random_state=seed)[1]
        for seed in range(n_draws)
    ]
    law = np.linalg.matrix_power(MATRIX, 200)[0]
    shares = np.bincount(np.ravel(first), minlength=3) / n_draws
    assert np.all(np.abs(shares - law) < Z_FALSE * np.sqrt(law * (1 - law) / n_draws))


def test_several_features():
    """States on a line; unit-scaled features that are correlated, alike in all."""
    correlations = []
    for seed in range(4):
        X, y = make_hidden_markov(
            n_samples=30_000, n_features=3, separation=7.0, random_state=seed
        )
        means = np.array([X[y == state].mean(axis=0) for state in range(3)])
        steps = np.diff(means, axis=0)
        assert np.linalg.norm(steps, axis=1) == pytest.approx(7.0, abs=0.1)
        assert np.abs(steps[0] - steps[1]).max() < 0.15
        for state in range(3):
            noise = X[y == state] - 7 / np.linalg.norm(steps[0]) * state * steps[0]
            assert noise.std(axis=0) == pytest.approx(0.8, abs=0.05)
            correlation = np.corrcoef(noise.T)
            correlations.append(correlation[np.triu_indices(3, 1)])
        assert np.ptp(correlations[-3:], axis=0).max() < 0.12
    assert np.abs(correlations).max() > 0.3
    assert np.ptp(correlations, axis=0).min() > 0.1


def test_one_state_and_one_row():
    X, y = make_hidden_markov(n_samples=50, n_states=1, random_state=0)
    assert not y.any()
    X, y = make_hidden_markov(n_samples=1, random_state=0)
    assert X.shape == (1, 1)
    assert y.shape == (1,)


def test_the_seed_is_everything():
    X, y = make_hidden_markov("bimodal", random_state=3, n_features=2)
    again, y_again = make_hidden_markov("bimodal", random_state=3, n_features=2)
    assert np.array_equal(X, again)
    assert np.array_equal(y, y_again)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert X.flags.c_contiguous
    other, _ = make_hidden_markov("bimodal", random_state=4, n_features=2)
    assert not np.isin(X, other).any()


@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": "student"},
        {"n_samples": 0},
        {"n_states": 0},
        {"separation": -1.0},
        {"random_state": "seed"},
    ],
)
def test_bad_parameters_are_named(arguments):
    with pytest.raises(InvalidParameterError, match="parameter of make_hidden_markov"):
        make_hidden_markov(**arguments)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(2), r"shape \(2, 2\), but n_states=3"),
        ([[0.5, 0.6, -0.1]] * 3, "smallest entry is -0.1"),
        ([[0.5, 0.5, 0.5]] * 3, r"rows sum to \[1.5 1.5 1.5\]"),
        ([[0.5, 0.5, np.nan]] * 3, "transition_matrix contains NaN"),
        (np.eye(3), "must be reachable from each, .* got 3 groups"),
        ([[0.9, 0.1, 0], [0, 0.9, 0.1], [0, 0, 1]], "must be reachable from each"),
        ([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.1, 0, 0.9]], "got 2 groups"),
    ],
)
def test_bad_matrices_are_explained(matrix, message):
    with pytest.raises(ValueError, match=message):
        make_hidden_markov(transition_matrix=matrix)


def test_a_chain_may_be_periodic():
    _, y = make_hidden_markov(transition_matrix=np.eye(3)[[1, 2, 0]], random_state=0)
    assert np.array_equal(np.diff(y) % 3, np.ones(len(y) - 1))
