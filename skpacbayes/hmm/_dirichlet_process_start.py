"""Initial states of chains."""

import itertools
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .._kernels.hmm import (
    LOWEST,
    add_moments,
    draw_states,
    emission_densities,
    forward_filter,
)
from .._kernels.hmm_atoms import draw_gaussians
from ._dirichlet_process_durations import ways_into
from ._dirichlet_process_model import BLOCK, MEAN_COUNT, SCALE_RATE, SCALE_SHAPE, SHAPE
from ._dirichlet_process_random import draw_dirichlet

_CLIPPED = 0.05, 0.95  # quantiles to which rows are clipped in k-means
_REACH = 2  # number of neighbours on each side that are averaged
_N_SYMBOLS, _LEAST_ROWS = 40, 10  # most symbols; mean rows of each
_N_LUMPS = 12  # normals whose order of appearance determines the states
_PIECES = 5, 20, 80  # lengths of the random pieces from which short chains start
# Sweeps of all short chains and then of the likelier half; the last sweeps of each are
# compared.
_N_SWEEPS, _N_COUNTED = (20, 40), 10
_ROUNDING = 1e-12  # share of the squares of a feature that keeps variances positive
_N_FOR_LUMPS = 40  # sweeps of the chain that finds the normals


def groups(values, n_groups, rng):
    """Label rows by k-means, with outliers clipped."""
    if len(values) <= n_groups:
        return np.arange(len(values))
    clipped = values.clip(*np.quantile(values, _CLIPPED, axis=0))
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():  # fewer distinct rows than groups
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(n_groups, n_init=1, random_state=seed).fit_predict(clipped)
    return found.astype(np.int64)


class Start(NamedTuple):
    """A start of a chain: states of the rows, and whether there are several atoms.

    `several`: the rows of a mixture are assigned to atoms by k-means; otherwise they
    have one atom, which later sweeps may split.
    """

    states: np.ndarray
    several: bool


def starts(values, bounds, n_states, full, rng):
    """Return starts, by the values of the rows and by their order.

    `values` (n_rows, n_features), `bounds` (n_sequences + 1,); `full`: whether the
    atoms have covariances. The first start is by k-means, whose groups need not be
    states if emissions are multimodal. The second fits a discrete hidden Markov model,
    which is fast, with many groups of k-means as symbols. The third fits a hidden
    Markov model with one normal per state, for states that differ in spread or
    correlation. The last two are as the second, with the states of a larger model of
    the third kind as symbols: this finds a narrow mode within a wide one if its rows
    are consecutive. The likeliest of several chains of each model is used.
    """
    first = groups(values, n_states, rng)
    n_symbols = min(_N_SYMBOLS, len(values) // _LEAST_ROWS)
    if n_states == 1 or n_symbols <= n_states:
        return [Start(first, True)]
    guesses = guesses_from(first, values, bounds, n_states, rng)
    symbols = groups(values, n_symbols, rng)
    tables = Tables(symbols, n_states, n_symbols)
    by_order = likeliest(tables, bounds, guesses, n_states, rng)
    by_both = by_normals(guesses, values, bounds, n_states, full, rng)
    found = [Start(first, True), Start(by_order, True), by_both]
    if not n_states < _N_LUMPS <= n_symbols:
        return found
    gaussians = normals_of(values, _N_LUMPS, full)
    pieces = random_pieces(len(values), _PIECES[0], _N_LUMPS, rng)
    for guess in groups(values, _N_LUMPS, rng), pieces:
        lumps = ShortChain(gaussians, bounds, guess, _N_LUMPS, rng)
        lumps.advance(_N_FOR_LUMPS)
        tables = Tables(lumps.states, n_states, _N_LUMPS)
        by_lumps = likeliest(tables, bounds, guesses[2:], n_states, rng)
        found.append(Start(by_lumps, True))
    return found


def starts_after(others, states, values, bounds, n_states, full, rng):
    """Return starts of a model, given those of a model with other emissions.

    These are the first of the `others`, the final `states` of the best chain that began
    with them, and the third, by normals of the model.
    """
    if len(others) == 1:
        return others
    guesses = guesses_from(others[0].states, values, bounds, n_states, rng)
    by_both = by_normals(guesses, values, bounds, n_states, full, rng)
    return [others[0], Start(states, True), by_both]


def guesses_from(first, values, bounds, n_states, rng):
    """Return states from which short chains start, of which `first` is one."""
    smooth = groups(means_of_neighbours(values, bounds), n_states, rng)
    pieces = [random_pieces(len(values), n, n_states, rng) for n in _PIECES]
    return [first, smooth, *pieces]


def by_normals(guesses, values, bounds, n_states, full, rng):
    """Return the start by a hidden Markov model with one normal per state."""
    gaussians = normals_of(values, n_states, full)
    return Start(likeliest(gaussians, bounds, guesses, n_states, rng), False)


def random_pieces(n_rows, length, n_states, rng):
    """Cut the rows into pieces of `length`, each of one random state."""
    states = rng.integers(n_states, size=1 + n_rows // length)
    return np.repeat(states, length)[:n_rows]


def likeliest(emissions, bounds, guesses, n_states, rng):
    """Return the states of the likeliest of short chains from each guess.

    The less likely half of them ends early.
    """
    chains = [ShortChain(emissions, bounds, guess, n_states, rng) for guess in guesses]
    for n_sweeps in _N_SWEEPS:
        for chain in chains:
            chain.advance(n_sweeps)
        chains.sort(key=ShortChain.mean_log_likelihood, reverse=True)
        chains = chains[: (len(chains) + 1) // 2]
    return chains[0].states


def means_of_neighbours(values, bounds):
    """Return means of each row and its neighbours, with repeated ends."""
    rows, lengths = np.arange(len(values)), np.diff(bounds)
    firsts, lasts = np.repeat([bounds[:-1], bounds[1:] - 1], lengths, axis=1)
    steps = range(-_REACH, _REACH + 1)
    return np.mean([values[(rows + s).clip(firsts, lasts)] for s in steps], axis=0)


class ShortChain:
    """Gibbs sampler of states given emissions.

    The rows of transitions have uniform priors; a sequence starts in any state.
    """

    def __init__(self, emissions, bounds, states, n_states, rng):
        self.emissions, self.bounds, self.rng = emissions, bounds, rng
        self.states = states.copy()
        self._moves, self._firsts = np.zeros((n_states, n_states)), np.zeros(n_states)
        for start, stop in itertools.pairwise(bounds):
            path = states[start:stop]
            np.add.at(self._moves, (path[:-1], path[1:]), 1.0)
        self._uniform = np.full(n_states, 1.0 / n_states)
        self._log_likelihoods = []

    def mean_log_likelihood(self):
        """Mean over the latest sweeps."""
        return np.mean(self._log_likelihoods[-_N_COUNTED:])

    def advance(self, n_sweeps):
        """Make sweeps."""
        rng, evidence = self.rng, np.empty(len(self.states))
        for number in range(n_sweeps):
            ways = ways_into(draw_dirichlet(1.0 + self._moves, rng))
            log_units, probabilities = self.emissions.drawn(self.states, rng)
            forward_filter(probabilities, *ways, self._uniform, self.bounds, evidence)
            if number >= n_sweeps - _N_COUNTED:
                self._log_likelihoods.append((np.log(evidence) + log_units).sum())
            counted = self.states, self._moves, self._firsts
            uniforms = rng.random(len(self.states))
            draw_states(probabilities, *ways, self.bounds, uniforms, *counted)


class Tables:
    """Emissions that are symbols: a table for each state, with Jeffreys' prior."""

    def __init__(self, symbols, n_states, n_symbols):
        self.symbols, self.shape = symbols, (n_states, n_symbols)

    def drawn(self, states, rng):
        """Log unit, and densities of the rows in each state at a draw of the tables."""
        n_states, n_symbols = self.shape
        cells = states * n_symbols + self.symbols
        counts = np.bincount(cells, minlength=n_states * n_symbols)
        emissions = draw_dirichlet(0.5 + counts.reshape(self.shape), rng)
        return 0.0, emissions.take(self.symbols, axis=1)


def normals_of(values, n_states, full):
    """Return emissions with one normal distribution for each state."""
    return (Covariances if full else Variances)(values, n_states)


class Variances:
    """Emissions with one normal distribution for each state, features independent.

    Log densities are linear in values and their squares: two products of matrices take
    the time of the kernels for covariances, and these need not be compiled.
    """

    def __init__(self, values, n_states):
        ones = np.ones((len(values), 1))
        self._design = np.hstack([values, values**2, ones]).T.copy()
        self._labels = np.arange(n_states)[:, None]

    def drawn(self, states, rng):
        """Log units (n_rows,), and densities in each state at the posterior modes."""
        d = len(self._design) // 2
        moments = (states == self._labels).astype(float) @ self._design.T
        squares, counts = moments[:, d:-1], moments[:, -1:]
        totals = counts + MEAN_COUNT
        means = moments[:, :d] / totals
        # Differences of nearly equal numbers are raised to their rounding errors.
        gaps = np.maximum(squares - totals * means**2, _ROUNDING * squares)
        precisions = counts + (2 * SHAPE + d - 1)
        precisions = precisions / (gaps + 2 * SCALE_SHAPE / SCALE_RATE)
        pulls = precisions * means
        constants = np.log(precisions) - pulls * means
        constants = 0.5 * np.add.reduce(constants, axis=1, keepdims=True)
        logs = np.hstack([pulls, -0.5 * precisions, constants]) @ self._design
        highest = np.maximum.reduce(logs, axis=0)
        logs -= highest
        return highest, np.exp(np.maximum(logs, LOWEST, out=logs), out=logs)


class Covariances:
    """Emissions with one normal distribution for each state, with covariances."""

    def __init__(self, values, n_states):
        self.values = values
        n, d = values.shape
        self._columns = np.ascontiguousarray(values.T)
        self._one, self._zeros = np.zeros(n, dtype=np.int64), np.zeros((n_states, d))
        self._only = np.zeros(1, dtype=np.int64)  # each state has one atom
        self._neutral = np.zeros((n_states, 1)), np.zeros(d)  # log weights, rounding
        # Outputs of the emission kernel, without atoms.
        self._highest, self._densities = np.empty(n), np.empty((n_states, n))
        self._atoms = np.empty((n_states, 0), dtype=np.int64)
        self._work = np.empty((n_states + 2, BLOCK))
        scales = np.full(self._zeros.shape, SCALE_SHAPE / SCALE_RATE)
        self._prior = self._zeros, scales, MEAN_COUNT, True
        self._no_noise = np.zeros((n_states, 1, d))  # for posterior modes
        self._of_factors = np.empty((d + 3, d))

    def drawn(self, states, rng):
        """Log units (n_rows,), and densities in each state at the posterior modes."""
        k, d = self._zeros.shape
        sizes, means = np.zeros((k, 1)), np.zeros((k, 1, d))
        (counts, sums), products = np.zeros((2, k, 1, d)), np.zeros((k, 1, d, d))
        places, moments = (states, self._one, self._zeros), (counts, sums, products)
        add_moments(self.values, *places, means, True, sizes, *moments)
        factors = np.zeros(products.shape)
        roots = np.sqrt(counts + (2 * SHAPE + d - 1))
        np.einsum("kaff->kaf", factors)[:] = roots
        drawn = self._no_noise, means, factors, self._of_factors
        draw_gaussians(*moments, *self._prior, *drawn)
        mixture = factors, means, self._zeros, *self._neutral
        found = self._highest, self._densities, self._atoms
        given = *mixture, True, self._only, self._highest
        emission_densities(self._columns, *given, *found, self._work)
        return self._highest, self._densities
