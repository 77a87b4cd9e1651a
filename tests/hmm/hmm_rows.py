"""Rows of two clear states, for the tests of hidden Markov models."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from skpacbayes import DirichletProcessHMM

both = pytest.mark.parametrize("emission", ["translated", "per_state"])
every_covariance = pytest.mark.parametrize("covariance_type", ["diag", "full"])


def markov(n_states=2, **parameters):
    """Return a cheap model whose emissions are given: their choice takes longest."""
    cheap = {"n_iter": 60, "burn_in": 50, "n_chains": 1, "random_state": 0}
    given = {"emission": "per_state"}
    return DirichletProcessHMM(n_states, **(given | cheap | parameters))


def choosing(n_states=2, **parameters):
    """Return a cheap model that chooses its emissions, as by default."""
    return markov(n_states, **({"emission": "auto"} | parameters))


def two_states(n_samples=200, distance=6.0, stay=0.95, n_features=1, seed=0):
    """Normal rows about 0 or `distance`, and the states."""
    rng = np.random.default_rng(seed)
    states = (rng.random(n_samples) > stay).cumsum() % 2
    X = rng.normal(size=(n_samples, n_features)) + distance * states[:, None]
    return X, states


def agreement(states, predicted, k=2):
    """Share of equal states under the best names, and these names."""
    table = np.zeros((k, k))
    np.add.at(table, (states, predicted), 1)
    rows, names = linear_sum_assignment(-table)
    return table[rows, names].sum() / len(states), names


short_runs = pytest.mark.filterwarnings("ignore:The .* disagree")
