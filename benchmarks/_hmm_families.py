"""Simulated families and real series on which hidden Markov models are compared.

The default model was chosen on other parameters of the same families.
"""

import csv
import importlib.util
from pathlib import Path

import numpy as np
from _hmm_problems import electricity, monthly_returns

from skpacbayes.datasets import make_hidden_markov

# Numbers of large earthquakes in the world, 1900 to 2006 (Zucchini and MacDonald 2009).
EARTHQUAKES = """13 14 8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14 8 11 14 23
18 17 19 20 22 19 13 26 13 14 22 24 21 22 26 21 23 24 27 41 31 27 35 26 28 36 39 21 17
22 17 19 15 34 10 15 22 18 15 20 15 22 19 16 30 27 29 23 20 16 21 21 25 16 18 15 18 14
10 15 8 15 6 11 8 7 18 16 13 12 13 20 15 16 12 18 15 16 13 15 16 11 11"""


def markov_chain(rng, k, n, stay):
    """States that stay with a probability, and else move to any other."""
    states = np.zeros(n, dtype=int)
    for i in range(1, n):
        moves = rng.random() > stay
        states[i] = (states[i - 1] + moves * (1 + rng.integers(k - 1))) % k
    return states


def calm_and_nervous(rng, n):
    states = markov_chain(rng, 2, n, 0.97)
    return np.array([1.0, 3.0])[states] * rng.standard_t(3, n), states


def spreads(rng, n):
    states = markov_chain(rng, 2, n, 0.97)
    return np.array([0.5, 2.0])[states] * rng.normal(size=n), states


def interleaved_mixtures(rng, n):
    states = markov_chain(rng, 2, n, 0.97)
    means = np.array([[0, 4, 8], [2, 6, 10]])[states, rng.integers(3, size=n)]
    return means + 0.5 * rng.normal(size=n), states


def correlations(rng, n):
    states = markov_chain(rng, 3, n, 0.97)
    r = np.array([0.8, 0.0, -0.8])[states]
    X = rng.normal(size=(n, 2))
    X[:, 1] = r * X[:, 0] + np.sqrt(1 - r * r) * X[:, 1]
    return X, states


def gamma_levels(rng, n):
    states = markov_chain(rng, 3, n, 0.95)
    return np.array([1.0, 4.0, 16.0])[states] * rng.gamma(2, size=n), states


def skew_t(rng, n):
    states = markov_chain(rng, 3, n, 0.93)
    skewed = -0.95 * np.abs(rng.normal(size=n)) + 0.31 * rng.normal(size=n)
    return 3.0 * states + skewed / np.sqrt(rng.chisquare(3, n) / 3), states


def two_modes(rng, n):
    seed = int(rng.integers(2**31 - 1))
    return make_hidden_markov("bimodal", n, n_features=2, random_state=seed)


def semi_markov(rng, n):
    lasts = rng.integers(15, 26, size=n)
    runs = (np.cumsum(1 + (rng.random(n) < 0.5)) % 3).repeat(lasts)
    return 2.0 * runs[:n] + 0.9 * rng.normal(size=n), runs[:n]


def five_levels(rng, n):
    states = markov_chain(rng, 5, n, 0.9)
    return 2.0 * states + 0.7 * rng.normal(size=n), states


def counts(rng, n):
    states = markov_chain(rng, 3, n, 0.94)
    means = np.array([1, 5, 12])[states]
    return rng.negative_binomial(4, 4 / (4 + means)).astype(float), states


def rotated(rng, n):
    """Four states about one point: an ellipse that turns."""
    states = markov_chain(rng, 4, n, 0.96)
    angles = np.array([0.0, 0.25, 0.5, 0.75])[states] * np.pi
    long, short = 2.0 * rng.normal(size=n), 0.4 * rng.normal(size=n)
    c, s = np.cos(angles), np.sin(angles)
    return np.column_stack([c * long - s * short, s * long + c * short]), states


def heavy_correlations(rng, n):
    """Two states that differ in a correlation; t(4) tails."""
    states = markov_chain(rng, 2, n, 0.95)
    r = np.array([0.9, -0.6])[states]
    X = rng.normal(size=(n, 2))
    X[:, 1] = r * X[:, 0] + np.sqrt(1 - r * r) * X[:, 1]
    return X / np.sqrt(rng.chisquare(4, size=(n, 1)) / 4), states


def factors(rng, n):
    """Three states in three dimensions: which two features move together."""
    states = markov_chain(rng, 3, n, 0.95)
    X = rng.normal(size=(n, 3))
    common = np.array([[1, 1, 0], [1, 0, 1], [0, 1, -1]])[states]
    return 0.6 * X + common * rng.normal(size=(n, 1)), states


def no_order(rng, n):
    """States that say nothing of the next one."""
    states = rng.integers(2, size=n)
    return rng.normal(size=n) + 5.0 * states, states


FAMILIES = {
    "calm and nervous t": (calm_and_nervous, 2),
    "spreads": (spreads, 2),
    "interleaved mixtures": (interleaved_mixtures, 2),
    "correlations, d = 2": (correlations, 3),
    "gamma levels": (gamma_levels, 3),
    "skew t": (skew_t, 3),
    "two modes, d = 2": (two_modes, 3),
    "semi-Markov": (semi_markov, 3),
    "five levels": (five_levels, 5),
    "overdispersed counts": (counts, 3),
    "rotated ellipses, d = 2": (rotated, 4),
    "correlations, t tails, d = 2": (heavy_correlations, 2),
    "common factors, d = 3": (factors, 3),
    "no order": (no_order, 2),
}


def simulated(name, seed, n_train=1500, n_test=3000):
    """Rows and states to learn, rows and states to forecast, number of states."""
    draw, k = FAMILIES[name]
    X, states = draw(np.random.default_rng(seed), n_train + n_test)
    X = X.reshape(len(X), -1)
    return X[:n_train], states[:n_train], X[n_train:], states[n_train:], k


def real_series():
    """Yield title, rows and number of states of series that are at hand."""
    yield "earthquakes a year", np.array(EARTHQUAKES.split(), dtype=float)[:, None], 2
    yield "S&P 500, IBM, Microsoft, monthly returns", monthly_returns(), 2
    rows = electricity()
    if rows is not None:
        yield "electricity, 4-hourly price and demand", rows[:2000], 4
    river = importlib.util.find_spec("river")
    if river is not None:
        path = Path(river.origin).parent / "datasets" / "water-flow.csv"
        with path.open() as file:
            flow = [float(row["Water flow [l/s]"]) for row in csv.DictReader(file)]
        yield "water flow, hourly changes", np.diff(flow)[:, None], 3
