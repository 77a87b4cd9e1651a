"""Guesses at the states that a chain starts from."""

import itertools
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .._kernels.hmm import draw_states, forward_filter
from ._conditionals import draw_dirichlet

_CLIPPED = 0.05, 0.95  # quantiles within which k-means sees the rows
_REACH = 2  # rows before and after one that are averaged with it
_N_SYMBOLS, _LEAST_ROWS = 40, 10  # symbols at most, and rows of one on average
_N_RANDOM = 3  # starts of the symbols' chain that are random
_N_SWEEPS, _N_COUNTED = 60, 10  # sweeps of each, of which the last are compared


def groups(values, n_groups, rng):
    """Label rows by k-means that sees outliers as near as the bulk's ends."""
    if len(values) <= n_groups:
        return np.arange(len(values))
    clipped = values.clip(*np.quantile(values, _CLIPPED, axis=0))
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():  # fewer distinct rows than groups
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(n_groups, n_init=1, random_state=seed).fit_predict(clipped)
    return found.astype(np.int64)


def guesses(values, bounds, n_states, rng):
    """Return the states of rows, by their values alone and by their order too.

    `values` (n_rows, n_features), `bounds` (n_sequences + 1,). The first guess is by
    k-means. Where emissions are not single lumps that finds the lumps, not the states.
    The second takes the lumps for symbols, many more than states, and asks which states
    explain in what order these come: a hidden Markov model whose emissions are tables,
    a chain of which costs little. Of several the likeliest counts, begun at the first
    guess, at the same for means of neighbours (few moves between states blur them
    less than noise), and at random.
    """
    first = groups(values, n_states, rng)
    n_symbols = min(_N_SYMBOLS, len(values) // _LEAST_ROWS)
    if n_states == 1 or n_symbols <= n_states:
        return [first]
    symbols = groups(values, n_symbols, rng)
    starts = [first, groups(means_of_neighbours(values, bounds), n_states, rng)]
    starts += list(rng.integers(n_states, size=(_N_RANDOM, len(values))))
    trials = [
        sampled_states(symbols, bounds, start, n_states, n_symbols, rng)
        for start in starts
    ]
    return [first, max(trials, key=lambda trial: trial[0])[1]]


def means_of_neighbours(values, bounds):
    """Mean of each row and its neighbours in the sequence; the ends count again."""
    rows, lengths = np.arange(len(values)), np.diff(bounds)
    firsts, lasts = np.repeat([bounds[:-1], bounds[1:] - 1], lengths, axis=1)
    steps = range(-_REACH, _REACH + 1)
    return np.mean([values[(rows + s).clip(firsts, lasts)] for s in steps], axis=0)


def sampled_states(symbols, bounds, states, n_states, n_symbols, rng):
    """Gibbs sampler of states given symbols: mean log-likelihood, and the last states.

    The law of the symbols in a state has Jeffreys' prior, that of the moves from it
    the uniform one; a sequence starts in any state.
    """
    states, n_cells = states.copy(), n_states * n_symbols
    moves, firsts = np.zeros((n_states, n_states)), np.zeros(n_states)
    for start, stop in itertools.pairwise(bounds):
        np.add.at(moves, (states[start : stop - 1], states[start + 1 : stop]), 1.0)
    uniform, evidence = np.full(n_states, 1.0 / n_states), np.empty(len(states))
    log_likelihoods = []
    for _ in range(_N_SWEEPS):
        counts = np.bincount(states * n_symbols + symbols, minlength=n_cells)
        emissions = draw_dirichlet(0.5 + counts.reshape(n_states, n_symbols), rng)
        transitions = draw_dirichlet(1.0 + moves, rng)
        laws = emissions.take(symbols, axis=1)
        forward_filter(laws, transitions, uniform, bounds, evidence)
        log_likelihoods.append(np.log(evidence).sum())
        uniforms = rng.random(len(states))
        draw_states(laws, transitions, bounds, uniforms, states, moves, firsts)
    return np.mean(log_likelihoods[-_N_COUNTED:]), states
