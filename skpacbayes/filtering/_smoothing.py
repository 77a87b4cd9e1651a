"""Smoothing: distributions of the states given all rows of a run.

A run is a list of `Step`, one for each row.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from ._cloud import moments
from ._density import (
    are_added,
    check_log_transition,
    is_singular,
    transition_density,
)
from ._step import ENOUGH, named

N_MOVES = 4  # number of Metropolis moves per state of a trajectory
FEWEST_ANCESTORS = 30  # least effective number of ancestors at a row
# Least effective number of particles in the paths at a row: with fewer, the mean is
# often more than one deviation off, or the deviation below half of the true one.
FEWEST_IN_PATHS = 3
N_CHECKED = 200  # particles at which a transition is checked to add its noise
ROWS_CHECKED = 8  # rows at which a density of the model is checked, besides row 1
# Why the density of a transition is unknown, and what to do.
FEWER_NORMALS = (
    "fewer normals than states, so that its transition has no density",
    "Smooth fewer rows or more particles, or give each state noise of its own.",
)
SINGULAR = (
    "its noise moves states in fewer directions than they have, so that its transition "
    "has no density",
    "Smooth fewer rows or more particles, or give each state noise of its own.",
)
EXACT = " For a linear Gaussian model, kalman_smooth(X) is exact."
NOT_ADDITIVE = (
    "its noise is not added to a function of the state",
    "Give the model log_transition(x, x_next, t), or smooth fewer rows or more "
    "particles.",
)


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

    At rows into which the density of moves is unknown, the ancestors are used instead,
    if enough of them are distinct.

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
    densities, few = _densities_of_moves(run, rows, model), []
    for t in range(len(run) - 2, -1, -1):
        cloud, following = run[t].cloud, run[t + 1].ancestors
        density = densities[t]
        if following is not None:
            places = following[places]
        if density is not None:
            sums, states = np.cumsum(cloud.weights), paths[:, t + 1]
            current = density(places, states, are_ancestors=True)
            if "log_transition" in model.asks and np.isnan(current).any():
                past, time = {"y_prev": cloud.row}, run[t + 1].cloud.time
                model.refuse_non_finite(current, "log_transition", time, past)
            for _ in range(N_MOVES):
                candidates = _at(sums, generator.random(n_trajectories))
                found = density(candidates, states)
                with np.errstate(invalid="ignore"):
                    accepted = (
                        np.log(generator.random(n_trajectories)) < found - current
                    )
                places = np.where(accepted, candidates, places)
                current = np.where(accepted, found, current)
        paths[:, t] = cloud.particles[places]
        if _effective_number(places) < FEWEST_IN_PATHS:
            few.append(cloud.time)
    if few and min(n_trajectories, len(last.weights)) >= ENOUGH:
        warn_user(
            f"The paths go through fewer than {FEWEST_IN_PATHS} particles (effective) "
            f"at {named(few[::-1])}: the states given all rows are not reliable there. "
            "Later rows say more about these states than the particles can resolve: "
            "use more particles, a proposal, or an initial distribution that is nearer "
            "to the state.",
            ConvergenceWarning,
        )
    return paths


def _effective_number(places):
    """Return the inverse of the share of pairs of paths with the same particle."""
    counts = np.bincount(places)
    n_equal, n_pairs = counts @ (counts - 1), len(places) * (len(places) - 1)
    return n_pairs / n_equal if n_equal else np.inf


def _at(sums, positions):
    """Return the particles at quantiles in [0, 1) of the weights."""
    found = np.searchsorted(sums, positions * sums[-1], side="right")
    return np.minimum(found, np.searchsorted(sums, sums[-1]))


def _densities_of_moves(run, rows, model):
    """Return the log density of moves from particles of each row but the last.

    It is a function of the particles' indices and the states at the next row, and
    includes the likelihood of that row if it depends on the state before; None for rows
    where it is unknown. It is NaN for ancestors whose move is known not to have this
    density, and which are therefore kept.
    """
    # at random: rows at equal distances would miss what depends on the season
    checked = np.random.default_rng(0).permutation(len(run) - 1)[:ROWS_CHECKED]
    densities = [
        _density_of_moves(step.cloud, row, model, i in checked)
        for i, (step, row) in enumerate(zip(run[:-1], rows[1:], strict=True))
    ]
    _refuse_few_ancestors(run, rows, densities, model)
    return densities


def _density_of_moves(cloud, row, model, checked):
    """Return the log density of moves of particles into the next row, or None."""
    past, time = {"y_prev": cloud.row, "u": row.inputs}, cloud.time + 1
    n = min(N_CHECKED, len(cloud.weights))
    some = cloud.particles[_at(np.cumsum(cloud.weights), (np.arange(n) + 0.5) / n)]
    if checked:
        check_log_transition(model, some, time, past)
    transition = transition_density(model, some, time, past)
    if transition is None:
        return None
    weighs_moves = "x_prev" in model.asks["log_likelihood"] and not row.silent

    def density(places, states, are_ancestors=False):
        before = cloud.particles[places]
        found = transition(before.copy(), states.copy(), time, past)
        if are_ancestors and "log_transition" not in model.asks:
            found[~are_added(model, before, states, time, past)] = np.nan
        if weighs_moves:
            given = {**past, "x_prev": before}
            found = found + model.log_likelihood(states.copy(), row.values, time, given)
        return found

    return density


def _reason(model, cloud, row):
    """Say why the density of the moves of a cloud into a row is unknown."""
    particles = cloud.particles
    if model.n_noise < particles.shape[1]:
        return FEWER_NORMALS
    if model.n_noise == particles.shape[1]:
        past = {"y_prev": cloud.row, "u": row.inputs}
        if is_singular(model, particles[:N_CHECKED], cloud.time + 1, past):
            exact = EXACT if hasattr(model.model, "kalman_smooth") else ""
            return SINGULAR[0], SINGULAR[1] + exact
    return NOT_ADDITIVE


def _refuse_few_ancestors(run, rows, densities, model):
    """Raise ValueError if ancestors are needed, and too few are distinct."""
    for t in range(len(densities) - 1, -1, -1):
        if densities[t] is not None:
            continue
        if t == len(densities) - 1 or densities[t + 1] is not None:
            stop, weights = t + 2, run[t + 1].cloud.weights
            places = np.arange(len(weights))
        if run[t + 1].ancestors is not None:
            places = run[t + 1].ancestors[places]
        size = 1.0 / np.square(np.bincount(places, weights)).sum()
        if size < FEWEST_ANCESTORS:
            reason, advice = _reason(model, run[t].cloud, rows[t + 1])
            raise ValueError(
                f"{model.name} has no log_transition, {reason}, and only {size:.0f} "
                f"particles (effective) of the first of {stop - t} rows have "
                f"descendants: too few to smooth by. {advice}"
            )
