"""Chains of the chosen model, from their starts to their draws."""

import copy
from typing import NamedTuple

import numpy as np

from .._chains import R_HAT_LIMIT, r_hat, run_chains, warn_unmixed
from ._dirichlet_process_run import (
    Run,
    difference_of_probabilities,
    leave_lower_modes,
    stacked,
)
from ._dirichlet_process_selection import (
    CandidatesOf,
    Choice,
    Learnt,
    chain_of,
    choose_model,
)
from ._dirichlet_process_warnings import (
    difference_of,
    warn_of_chains,
    warn_of_dependence,
    warn_of_durations,
    warn_of_gaps,
    warn_of_names,
    warn_of_order,
    warn_of_regression,
    warn_of_states,
)

N_USED = 100  # largest number of draws used for new rows
_GROWTH = 1.5  # growth of the number of rows after which the model is chosen again
_LEAST_SWEEPS = 50  # least sweeps after the burn-in for checks of likelihoods
_GRID = 2.0**-20  # of log-likelihoods, in nats
# Sweeps after the burn-in with n_iter="auto": chains that agree clearly make the first
# number, others the second, and those that disagree up to the third.
_LEAST_ITER, _USUAL_ITER, _MOST_ITER = 200, 400, 800
# Chains agree clearly up to this R-hat and this difference of state probabilities.
_CLEAR_R_HAT, _CLEAR_DIFFERENCE = 1.02, 0.03


class Chains(NamedTuple):
    """States of the chains after a run, from which the next run continues.

    `states`: of each chain its parameters, its generator and its votes. `n_chosen`:
    rows when the model was chosen; `scores`: of the numbers of states that were tried;
    `n_dropped`: rows that the series had dropped before the first of the votes.
    """

    model: object
    units: object
    states: list
    n_chosen: int
    scores: np.ndarray
    n_dropped: int = 0

    def votes_for(self, series):
        """Return the votes of each chain for the rows that a series still has."""
        dropped = series.n_dropped - self.n_dropped
        return [votes[:, dropped:] for *_, votes in self.states]


class Posterior(NamedTuple):
    """Draws of a run.

    `draws`: Parameters whose arrays have an axis for draws before their own; `used`:
    the draws used for new rows. `log_likelihoods` (n_chains, n_sweeps), of rows
    in the units of X; `n_iter`: sweeps after the burn-in. `online`: the updates by
    rows after the run, or None.
    """

    model: object
    units: object
    draws: object
    used: np.ndarray
    log_likelihoods: np.ndarray
    r_hat: float
    n_iter: int
    chains: Chains
    online: object = None

    def used_draws(self):
        """Return the draws used for new rows, each as Parameters."""
        kind = type(self.draws)
        return [kind(*(part[i] for part in self.draws)) for i in self.used]


def sample_posterior(series, settings, seed, before, tasks):
    """Sample from the posterior of the model with the best predictive score.

    Parameters
    ----------
    series : Series
        The rows.
    settings : Settings
        Candidate models, and numbers of sweeps.
    seed : int
        Seed of all but continued chains.
    before : Chains or None
        Chains of fewer rows of the same series.
    tasks : callable
        Given the number of blocks of sweeps, yields the number of each.

    Returns
    -------
    posterior : Posterior
        The draws; the arguments are not changed.
    """
    rng, n_chosen = np.random.default_rng(seed), len(series)
    if before is not None and not _outgrown(before, settings, len(series)):
        choice = Choice(before.model, None, before.scores)
        learnt = Learnt.of(series, choice.model)
        runs = _continued(before, series, learnt, settings)
        n_chosen = before.n_chosen
    else:
        tried = CandidatesOf(series, rng)
        choice = choose_model(tried, settings, seed)
        learnt = tried.learnt(choice.model)
        runs = _begun(choice, before, series, learnt.rows, settings, rng)
    log_volume = learnt.log_volume.sum()
    run_chains(
        runs,
        burn_in=settings.burn_in,
        n_iter=settings.n_iter or _MOST_ITER,
        tasks=tasks,
        n_jobs=settings.n_jobs,
        after_block=lambda: leave_lower_modes(runs),
        enough=None if settings.n_iter else lambda: agree(runs, log_volume),
    )
    for run in runs[1:]:
        run.relabel(runs[0].votes)
    states = [(run.chain.parameters, run.chain.rng, run.votes) for run in runs]
    chains = Chains(
        choice.model, learnt.units, states, n_chosen, choice.scores, series.n_dropped
    )
    found = _posterior(runs, chains, log_volume)
    warn_of_gaps(series.rows, series.bounds)
    warn_of_names(series.rows, learnt.units)
    if choice.model.n_states > 1 and runs[0].n_after >= _LEAST_SWEEPS:
        warn_of_order(runs, settings, np.random.default_rng((seed, 1)))
    return found


def _outgrown(before, settings, n_rows):
    """Return whether a choice was made with so few rows that it must be repeated."""
    of_emission = settings.n_states and len(settings.models(settings.n_states)) > 1
    chosen = settings.n_states is None or of_emission
    if before.model not in settings.models(before.model.n_states):
        return True  # invalid counts, or a new category
    return bool(chosen) and n_rows >= _GROWTH * before.n_chosen


def agree(runs, log_volume):
    """Return whether the chains agree well enough for their number of sweeps.

    Fewer sweeps than usual need a smaller R-hat than that of the warning, and like
    probabilities of the states. Chains also stop if the largest number of sweeps is
    not expected to suffice. `log_volume`: of the units of all rows.
    """
    n_iter = runs[0].n_after
    if n_iter < _LEAST_ITER:
        return False
    of_chains = r_hat(_log_likelihoods(runs, log_volume)[:, -n_iter:])
    if n_iter >= _USUAL_ITER:
        # Further draws divide the excess of the squared R-hat, if the chains mix.
        excess = (of_chains**2 - 1.0) * n_iter / _MOST_ITER
        hopeless = excess > R_HAT_LIMIT**2 - 1.0
        return bool(of_chains <= R_HAT_LIMIT or hopeless)
    difference = difference_of_probabilities(runs)
    return bool(of_chains <= _CLEAR_R_HAT and difference <= _CLEAR_DIFFERENCE)


def _log_likelihoods(runs, log_volume):
    """Return the log-likelihoods of all sweeps, in the units of X, on a grid.

    On a grid, the two middle values have exactly equal distances from the median;
    otherwise their order would depend on rounding, and so on the units.
    """
    found = np.array([run.log_likelihoods for run in runs]) - log_volume
    return np.round(found / _GRID) * _GRID


def _begun(choice, before, series, rows, settings, rng):
    """Return new chains, the first of which continues the chain of the choice."""
    runs, votes = [], [None] * settings.n_chains
    if before is not None and before.model.n_states == choice.model.n_states:
        votes = before.votes_for(series)
    for number, own in enumerate(rng.spawn(settings.n_chains)):
        chain = choice.chain
        if number or chain is None:
            chain = chain_of(rows, choice.model, own)
        runs.append(Run(chain, votes[number], settings.thin))
    return runs


def _continued(before, series, learnt, settings):
    """Return continued chains, in the units of the current rows."""
    runs, votes_of = [], before.votes_for(series)
    for (parameters, rng, _), votes in zip(before.states, votes_of, strict=True):
        parameters = parameters.follow(before.units, learnt.units)
        chain = chain_of(learnt.rows, before.model, copy.deepcopy(rng), parameters)
        runs.append(Run(chain, votes, settings.thin))
    return runs


def _posterior(runs, chains, log_volume):
    """Return the draws of all chains, or of the best one if they disagree."""
    log_likelihoods = _log_likelihoods(runs, log_volume)
    n_iter = runs[0].n_after
    kept = log_likelihoods[:, -n_iter:]
    of_chains = float(r_hat(kept))
    best = int(kept.mean(axis=1).argmax())
    several, detail = len(runs) > 1, ""
    if several and of_chains > R_HAT_LIMIT:
        one = f"Only the draws of chain {best}, of highest likelihood, are kept."
        detail = f"{difference_of(runs)} {one}"
    warn_unmixed(
        of_chains,
        len(runs),
        f"increase n_iter, which was {n_iter}, and burn_in"
        f"{', or n_chains' if several else ''}",
        of="the log-likelihoods",
        detail=detail,
    )
    if of_chains > R_HAT_LIMIT:
        runs = runs[best : best + 1]
    warn_of_chains(runs)
    votes = sum(run.votes for run in runs)
    warn_of_states(votes)
    if len(votes) > 1:
        paths, rows = [run.chain.states for run in runs], runs[0].chain.rows
        found = warn_of_dependence(votes.argmax(axis=0), paths, rows)
        if not found and n_iter >= _LEAST_SWEEPS:
            log_likelihood = kept.mean(axis=1).max() + log_volume
            warn_of_regression(chains.model, rows, log_likelihood)
        if n_iter >= _LEAST_SWEEPS:
            warn_of_durations(runs)
    draws = stacked([draw for run in runs for draw in run.draws])
    n_draws = len(draws.start)
    used = np.linspace(0, n_draws - 1, min(N_USED, n_draws)).astype(int)
    return Posterior(
        chains.model,
        chains.units,
        draws,
        used,
        log_likelihoods,
        of_chains,
        n_iter,
        chains,
    )
