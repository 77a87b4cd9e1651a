"""Draws of the transitions, and of the distribution of the first states."""

import numpy as np
from scipy.special import xlog1py, xlogy

from .._kernels.hmm import accept_transitions
from ._dirichlet_process_bounds import bounded_row, update_bounded
from ._dirichlet_process_durations import stationary_of
from ._dirichlet_process_random import draw_dirichlet

_MANY_STATES = 50  # number above which one row's change is not solved anew
_N_COMPARED = 50  # number of draws that compare distributions of the first states


def draw_transitions(moved, parameters, model, rng):
    """Draw the transition matrix and the distribution of first states given states.

    A row is drawn from its Dirichlet distribution given the moves, restricted to
    entries of at least `min_transition`. If the first states have the stationary
    distribution, this is a proposal, accepted row by row with the ratio of the
    stationary probabilities of the first states.
    """
    proposed = _propose(parameters.transitions, moved, model, rng)
    firsts = moved.firsts
    if not model.stationary:
        return proposed, draw_dirichlet(firsts + model.transition_prior, rng)
    thresholds = -rng.standard_exponential(model.n_states)
    transitions, start = parameters.transitions.copy(), parameters.start.copy()
    if model.n_states > _MANY_STATES:
        return _accepted(
            proposed, parameters.stages, firsts, thresholds, transitions, start, model
        )
    work = np.empty_like(transitions), np.empty_like(start)
    accept_transitions(
        proposed,
        model.staged,
        parameters.stages,
        firsts,
        thresholds,
        transitions,
        start,
        *work,
    )
    return transitions, start


def _accepted(proposed, stages, firsts, thresholds, transitions, start, model):
    """Return transitions and stationary distribution after the Metropolis steps.

    Like `accept_transitions`, which takes a time of order k^4 for k states. Here the
    fundamental matrix is updated for each row, by the formula of Sherman and Morrison:
    order k^3. `transitions` is changed in place.
    """
    k, stages = len(start), stages if model.staged else np.ones(len(start))
    place = stationary_of(transitions, stages, model)
    leaving = (np.eye(k) - transitions) / stages[:, None]
    fundamental = np.linalg.inv(leaving + 1.0 / k)
    begun = firsts > 0.0
    for i in range(k):
        change = (proposed[i] - transitions[i]) / stages[i] @ fundamental
        scale = 1.0 - change[i]
        moved = place + place[i] / scale * change
        trial = None
        if not (scale > 0.0 and moved.min() > 0.0):  # rounding errors
            trial = transitions.copy()
            trial[i] = proposed[i]
            moved = stationary_of(trial, stages, model)
        gain = firsts[begun] @ np.log(moved[begun] / place[begun])
        if not gain > thresholds[i]:
            continue
        transitions[i], place = proposed[i], moved
        if trial is None:
            fundamental += np.outer(fundamental[:, i], change / scale)
        else:
            leaving = (np.eye(k) - transitions) / stages[:, None]
            fundamental = np.linalg.inv(leaving + 1.0 / k)
    return transitions, stationary_of(transitions, stages, model)


def gain_of_free_starts(moved, parameters, model, rng):
    """Return the gain, in nats, of a free distribution of the first states.

    This is the difference of the posterior means of the log probability of all states.
    If the first states are stationary, it is about half a centred chi-square variable
    with n_states - 1 degrees of freedom.
    """
    means = []
    for stationary in (False, True):
        place, of_model = parameters, model._replace(stationary=stationary)
        total = 0.0
        for _ in range(_N_COMPARED):
            transitions, start = draw_transitions(moved, place, of_model, rng)
            place = place._replace(transitions=transitions, start=start)
            total += xlogy(moved.moves, transitions).sum()
            total += xlogy(moved.firsts, start).sum()
            total += xlog1py(moved.onward, -transitions.diagonal()).sum()
        means.append(total / _N_COMPARED)
    return means[0] - means[1]


def mean_transitions(moves, model):
    """Return likely transitions given the states, and the first state's distribution.

    They are means with one more move of each kind, shrunk to the uniform matrix as far
    as `min_transition` requires.
    """
    k, least = model.n_states, model.min_transition
    shares = (moves + 1.0) / (moves + 1.0).sum(axis=1, keepdims=True)
    transitions, start = least + (1.0 - k * least) * shares, np.full(k, 1.0 / k)
    if model.stationary:
        start = stationary_of(transitions, np.ones(k), model)
    return transitions, start


def _propose(transitions, moved, model, rng):
    """Draw rows given the moves, with entries of at least `min_transition`.

    A row that is drawn without the bound is kept if it satisfies it. A row that does
    not is drawn anew with the bound, or updated by a reversible step.
    """
    alphas, least = moved.moves + model.transition_prior, model.min_transition
    onward, rates = moved.onward, moved.rates
    if model.staged:
        proposed = draw_rows(alphas, onward, rng)
    else:
        proposed = draw_dirichlet(alphas, rng, rates)
    if np.minimum.reduce(proposed, axis=None) >= least:
        return proposed
    for i in np.flatnonzero(proposed.min(axis=1) < least):
        if model.staged:
            proposed[i] = update_bounded(
                transitions[i], alphas[i], least, i, onward[i], rng
            )
        else:
            of_row = (None, None) if rates is None else (rates[i], moved.pulls[i])
            proposed[i] = bounded_row(transitions[i], alphas[i], least, rng, *of_row)
    return proposed


def draw_rows(alphas, onward, rng):
    """Draw rows of transitions without the restriction of their entries.

    Row i has the density of a Dirichlet distribution times the probability of leaving
    state i, to the power of ``onward[i]``, for transitions to the next stage.
    """
    rows = draw_dirichlet(alphas, rng)
    if np.logical_or.reduce(onward):
        away = ~np.eye(len(alphas), dtype=bool)
        others = alphas[away].reshape(len(alphas), -1)
        stay = rng.beta(alphas[~away], others.sum(axis=1) + onward)
        rows[away] = ((1.0 - stay)[:, None] * draw_dirichlet(others, rng)).ravel()
        rows[~away] = stay
    return rows
