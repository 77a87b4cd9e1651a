"""Durations of states: each state is a series of stages with the same emission.

The probability of staying in a stage is the diagonal entry of the transitions. The last
stage is left for another state, other stages for the next stage. With one stage the
duration is geometric; with r stages it is the sum of r geometric numbers: r plus a
negative binomial number [1]_. The stages form a Markov chain, over whose paths sums are
exact.

References
----------
.. [1] R. Langrock and W. Zucchini, "Hidden Markov models with arbitrary state
   dwell-time distributions", Computational Statistics & Data Analysis 55, 2011.
"""

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from .._kernels.hmm import forward_filter, stationary_distribution

# Numbers of stages, with a uniform prior.
STAGES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32])
_FEW_STATES = 3  # number of states up to which Python is faster than compiling a kernel


class Steps(NamedTuple):
    """The chain of the stages.

    `matrix` (n_stages, n_stages): its transitions; `ways`: the same, of `ways_into`;
    `start` (n_stages,): where a sequence begins; `states` (n_stages,): the state of
    each stage, in ascending order.
    """

    matrix: np.ndarray
    ways: tuple
    start: np.ndarray
    states: np.ndarray

    @classmethod
    def of(cls, parameters, model):
        """Return the stages of all states, first to last of each in turn."""
        transitions, start = parameters.transitions, parameters.start
        stages, k = parameters.stages, len(start)
        if not model.staged:
            return cls(transitions, ways_into(transitions), start, np.arange(k))
        states = np.repeat(np.arange(k), stages)
        last = stages.cumsum() - 1
        first = last - stages + 1
        stay = transitions.diagonal()
        matrix = np.zeros((len(states), len(states)))
        matrix[last[:, None], first] = transitions
        matrix[last, first] = 0.0
        np.einsum("ii->i", matrix)[:] = stay[states]
        inner = np.setdiff1d(np.arange(len(states)), last)
        matrix[inner, inner + 1] = 1.0 - stay[states[inner]]
        begin = (start / stages)[states]  # all stages of a state have equal durations
        if not model.stationary:
            begin[:], begin[first] = 0.0, start
        return cls(matrix, ways_into(matrix), begin, states)

    @property
    def one_each(self):
        """Return whether each state has a single stage."""
        return len(self.states) == 1 + self.states[-1]

    def of_states(self, probabilities):
        """Sum an array over the stages, its first axis, of each state."""
        if self.one_each:
            return probabilities
        first = np.flatnonzero(np.diff(self.states, prepend=-1))
        return np.add.reduceat(probabilities, first, axis=0)

    def moved(self, moves, firsts):
        """Count the moves of states, given those of stages and the first stages."""
        k = 1 + self.states[-1]
        if self.one_each:
            return Moved(moves, firsts, np.zeros(k))
        of_states = self.of_states(self.of_states(moves).T).T
        on = np.zeros(k)
        inner = np.flatnonzero(np.diff(self.states) == 0)
        np.add.at(on, self.states[inner], moves[inner, inner + 1])
        np.einsum("ii->i", of_states)[:] -= on
        return Moved(of_states, self.of_states(firsts), on)


class Moved(NamedTuple):
    """Counts of transitions in all sequences.

    `moves` (n_states, n_states): transitions between states, on the diagonal from a
    stage to itself; `firsts` (n_states,): first states; `onward` (n_states,):
    transitions to the next stage of a state. `rates` and `pulls` (n_states, n_states),
    where there are inputs: of `draw_divisors`.
    """

    moves: np.ndarray
    firsts: np.ndarray
    onward: np.ndarray
    rates: np.ndarray | None = None
    pulls: np.ndarray | None = None


def ways_into(matrix):
    """Return the possible transitions of a chain for the kernels, by target.

    Returns
    -------
    ends, sources, chances : ndarray
        State j is reached from ``sources[p]`` with probability ``chances[p]``, for p
        from ``ends[j]`` to ``ends[j + 1] - 1``. State n, of n, is the end of a
        sequence, which follows any state: with chances of 1.
    """
    n = len(matrix)
    if np.logical_and.reduce(matrix, axis=None):
        ends, sources = _all_ways(n)
        chances = np.empty(n * n + n)
        chances[: n * n].reshape(n, n)[:] = matrix.T
        chances[n * n :] = 1.0
        return ends, sources, chances
    end, every = np.full(n, n), np.arange(n)
    sinks, sources = np.nonzero(matrix.T)
    chances = np.concatenate([matrix[sources, sinks], np.ones(n)])
    sinks, sources = np.append(sinks, end), np.append(sources, every)
    ends = np.searchsorted(sinks, np.arange(n + 2))
    return ends.astype(np.uintp), sources.astype(np.uintp), chances


@functools.cache
def _all_ways(n):
    """Return `ends` and `sources` of n fully connected states."""
    numbers = np.arange(n + 2, dtype=np.uintp)
    return numbers * np.uintp(n), np.tile(numbers[:n], n + 1)


def filtered_stages(densities, steps, bounds):
    """Return filtered probabilities of stages, and the evidence of each row.

    `densities` (n_states, n_rows) are not changed. See `forward_filter`.
    """
    probabilities = densities.copy() if steps.one_each else densities[steps.states]
    evidence = np.empty(probabilities.shape[1])
    forward_filter(probabilities, *steps.ways, steps.start, bounds, evidence)
    return probabilities, evidence


def of_rows(transitions, stages):
    """Return the long-run frequencies of the next state, for rows of each state.

    `transitions` (..., n_states, n_states); `stages` (..., n_states). A state with r
    stages is left r times less often.
    """
    means = transitions / stages[..., None]
    stay = np.einsum("...ii->...i", transitions)
    np.einsum("...ii->...i", means)[:] = 1.0 - (1.0 - stay) / stages
    return means


def stationary_of(transitions, stages, model):
    """Return the stationary distribution of the states, (n_states,)."""
    found = np.empty(len(transitions))
    of_states = of_rows(transitions, stages) if model.staged else transitions.copy()
    few = len(found) <= _FEW_STATES
    (stationary_distribution.py_func if few else stationary_distribution)(
        of_states, found
    )
    return found


def proposed_stages(parameters, model, rng):
    """Propose another number of stages of a state with the same mean duration.

    Returns
    -------
    proposed : Parameters or None
        None if a transition would be below `min_transition`.
    log_ratio : float
        Log of the ratio of prior densities and of the change of volume.
    """
    j, up = rng.integers(model.n_states), rng.random() < 0.5
    place = np.searchsorted(STAGES, parameters.stages[j]) + (1 if up else -1)
    if not 0 <= place < len(STAGES):
        return None, 0.0
    stages = parameters.stages.copy()
    stages[j] = STAGES[place]
    factor = stages[j] / parameters.stages[j]
    transitions, stay = parameters.transitions.copy(), parameters.transitions[j, j]
    transitions[j] *= factor
    transitions[j, j] = 1.0 - factor * (1.0 - stay)
    if transitions[j].min() < max(model.min_transition, np.finfo(float).tiny):
        return None, 0.0
    a, k = model.transition_prior, model.n_states
    log_ratio = (k - 1) * a * np.log(factor)
    log_ratio += (a - 1) * np.log(transitions[j, j] / stay)
    return parameters._replace(transitions=transitions, stages=stages), log_ratio


def log_durations(draws, n_steps):
    """Return log probabilities of durations of 1, 2, ..., `n_steps` rows.

    `draws`: parameters whose arrays have an axis for draws before their own; the result
    has the shape (n_draws, n_states, n_steps).
    """
    rows = np.arange(1.0, n_steps + 1)
    stay = np.einsum("...ii->...i", draws.transitions)[..., None]
    stages = draws.stages[..., None]
    more = np.maximum(rows - stages, 0.0)
    logs = gammaln(rows) - gammaln(stages) - gammaln(more + 1.0)
    logs += xlogy(stages, 1.0 - stay) + xlogy(more, stay)
    return np.where(rows < stages, -np.inf, logs)
