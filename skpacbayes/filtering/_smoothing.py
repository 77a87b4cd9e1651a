"""Smoothing: distributions of the states given all rows of a run.

A run is a list of `Step`, one for each row.
"""

import numpy as np

from ._cloud import moments
from ._density import transition_density

N_MOVES = 4  # number of Metropolis moves per state of a trajectory
FEWEST_ANCESTORS = 30  # least effective number of ancestors at the first row


def smoothed(run, rows, model, generator):
    """Return means and standard deviations of states, each (n_timesteps, n_states)."""
    paths = trajectories(run, rows, model, len(run[-1].cloud.weights), generator)
    means, stds = paths.mean(axis=0), paths.std(axis=0)
    last = run[-1].cloud
    means[-1], stds[-1] = moments(last.weights, last.particles)  # exact, without draws
    return means, stds


def trajectories(run, rows, model, n_trajectories, generator):
    """Draw trajectories of the states given all rows.

    Backward sampling by Metropolis moves [1]_: the predecessor of a state is initially
    its ancestor; candidates drawn by their weights then replace it, with the ratio of
    the transition densities as the acceptance ratio. This takes a few evaluations of
    the density for each state, whatever the number of particles.

    If the transition density is unknown, the ancestors are used instead, if enough of
    them are distinct.

    Parameters
    ----------
    run : list of Step
        The clouds of all rows.
    rows : list of Row
        The rows.
    model : CalledModel
        The state-space model.
    n_trajectories : int
        Number of trajectories.
    generator : numpy.random.Generator
        Random numbers.

    Returns
    -------
    trajectories : ndarray of shape (n_trajectories, n_timesteps, n_states)
        The trajectories, in arbitrary order.

    References
    ----------
    .. [1] H.-D. Dau and N. Chopin, "On backward smoothing algorithms", Annals of
       Statistics 51, 2023.
    """
    last = run[-1].cloud
    if last.recent is not None and len(last.recent.rows) > 1:
        raise ValueError(
            f"tempering updates the noise of the last {len(last.recent.rows)} rows, so "
            "that particles have no ancestors at the row before. Smooth with tempering="
            "1, which updates the noise of the last row only, or None."
        )
    paths = np.empty((n_trajectories, len(run), last.particles.shape[1]))
    positions = (np.arange(n_trajectories) + generator.random()) / n_trajectories
    places = _at(np.cumsum(last.weights), positions)
    paths[:, -1] = last.particles[places]
    density = _density_of_moves(run, rows, model)
    for t in range(len(run) - 2, -1, -1):
        cloud, following = run[t].cloud, run[t + 1].ancestors
        if following is not None:
            places = following[places]
        if density is not None:
            sums, states = np.cumsum(cloud.weights), paths[:, t + 1]
            current = density(t, places, states)
            for _ in range(N_MOVES):
                candidates = _at(sums, generator.random(n_trajectories))
                found = density(t, candidates, states)
                with np.errstate(invalid="ignore"):
                    accepted = (
                        np.log(generator.random(n_trajectories)) < found - current
                    )
                places = np.where(accepted, candidates, places)
                current = np.where(accepted, found, current)
        paths[:, t] = cloud.particles[places]
    return paths


def _at(sums, positions):
    """Return the particles at quantiles in [0, 1) of the weights."""
    found = np.searchsorted(sums, positions * sums[-1], side="right")
    return np.minimum(found, np.searchsorted(sums, sums[-1]))


def _density_of_moves(run, rows, model):
    """Return the log density of moves from particles of row t to a state.

    It includes the likelihood of row t + 1 if that depends on the state before.
    """
    if len(run) == 1:
        return None
    weighs_moves = "x_prev" in model.asks["log_likelihood"]

    def past_of(t):
        return {"y_prev": run[t].cloud.row, "u": rows[t + 1].inputs}

    first = run[0].cloud
    transition = transition_density(model, first.particles, first.time + 1, past_of(0))
    if transition is None:
        _refuse_few_ancestors(run, model)
        return None

    def density(t, places, states):
        cloud, row = run[t].cloud, rows[t + 1]
        before, time = cloud.particles[places], cloud.time + 1
        past = past_of(t)
        found = transition(before.copy(), states.copy(), time, past)
        if weighs_moves and not row.silent:
            past["x_prev"] = before
            found = found + model.log_likelihood(states.copy(), row.values, time, past)
        return found

    return density


def _refuse_few_ancestors(run, model):
    """Raise ValueError if there are too few distinct ancestors."""
    places, weights = np.arange(len(run[-1].cloud.weights)), run[-1].cloud.weights
    for step in run[:0:-1]:
        if step.ancestors is not None:
            places = step.ancestors[places]
    shares = np.bincount(places, weights)
    size = 1.0 / np.square(shares).sum()
    if size < FEWEST_ANCESTORS:
        raise ValueError(
            f"{model.name} has no log_transition, its noise is not added to a function "
            f"of the state, and only {size:.0f} particles (effective) of the first of "
            f"{len(run)} rows have descendants: too few to smooth by. Give the model "
            "log_transition(x, x_next, t), or smooth fewer rows or more particles."
        )
