"""The posterior distribution of the number of states."""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import softmax

from .._arguments import check_count
from .._base import warn_user
from .._chains import in_threads
from .._validation import refuse_hidden
from ._dirichlet_process_evidence import log_evidence, unpredicted_rows
from ._dirichlet_process_selection import CandidatesOf

_N_LOWER = 2  # successive improbable numbers that end the search
_IMPROBABLE = np.log(1000.0)  # nats below the most probable number
_CONFIDENCE = 0.95  # of the intervals of leads by which numbers are told apart
_TOLERATED = 2.0  # half widths of these, in nats, that need no warning


class NumberOfStates(NamedTuple):
    """Posterior distribution of the number of states, with a uniform prior.

    `n_states` (n_numbers,): the numbers compared; `probabilities` (n_numbers,);
    `log_evidence` (n_numbers,): logs of the marginal likelihoods of the rows but for
    the `isolated_rows`, which are given, in nats and in the units of X;
    `log_evidence_std` (n_numbers,): standard errors, by repetitions, of the differences
    of `log_evidence` from that of the most probable number, for which it is 0;
    `isolated_rows` (n_isolated,): indices, among the rows that are kept, of those that
    the rows revealed before them do not predict.
    """

    n_states: np.ndarray
    probabilities: np.ndarray
    log_evidence: np.ndarray
    log_evidence_std: np.ndarray
    isolated_rows: np.ndarray


def checked_numbers(n_states, largest):
    """Return numbers of states as a list, or raise ValueError."""
    refuse_hidden(n_states, "n_states")
    numbers = np.ravel(n_states).tolist()
    if not numbers:
        raise ValueError(f"n_states={n_states!r} should have at least one number.")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"n_states={n_states!r} should be different numbers.")
    for number in numbers:
        check_count("n_states", number)
        if number > largest:
            raise ValueError(
                f"n_states={number} should be at most 1 / min_transition = {largest}."
            )
    return numbers


class Numbers:
    """Estimates of the evidence of numbers of states, each repeated.

    Parameters
    ----------
    series : Series
        The rows.
    settings : Settings
        Models of each number.
    found : Posterior
        The fit, whose kind of emissions and covariances all numbers have.
    n_iter, n_repeats : int
        Draws given each set of rows, and estimates for each number.
    seed : int
        Seed of all random numbers.
    uniform : bool
        Whether the prior of the transitions is uniform, instead of that of the fit.
    """

    def __init__(self, series, settings, found, n_iter, n_repeats, seed, uniform):
        self.series, self.settings, self.found = series, settings, found
        self.n_iter, self.seed = n_iter, seed
        self.n_repeats, self.uniform = n_repeats, uniform
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(series))
        given = *self._fitted(found.model.n_states), order
        self.isolated = unpredicted_rows(series, *given, n_iter=n_iter, rng=rng)
        _warn_of_isolated_rows(series.rows, self.isolated)
        others = order[~np.isin(order, self.isolated)]
        self.order = np.concatenate([self.isolated, others])

    def model(self, n_states):
        """Return the model with a number of states, like the fitted one."""
        fitted, models = self.found.model, self.settings.models(n_states)
        alike = [model for model in models if model.full == fitted.full] or models
        same = [model for model in alike if model.emission == fitted.emission]
        model = (same or alike)[-1]
        return model._replace(transition_prior=1.0) if self.uniform else model

    def _fitted(self, n_states):
        """Return rows in the form of a model, the model, and parameters of a chain."""
        model, found = self.model(n_states), self.found
        # A generator for each number: results do not depend on the other numbers.
        rng = np.random.default_rng((self.seed, n_states))
        tried = CandidatesOf(self.series, rng)
        learnt = tried.learnt(model)
        if model != found.model._replace(transition_prior=model.transition_prior):
            return learnt, model, tried[model].chain.parameters
        start = found.chains.states[0][0]
        return learnt, model, start.follow(found.units, learnt.units)

    def estimates(self, n_states):
        """Return estimates of the log evidence, (n_repeats,)."""
        learnt, *model_and_start = self._fitted(n_states)

        def estimate(number):
            return log_evidence(
                *(self.series, learnt, *model_and_start, self.order),
                n_given=len(self.isolated),
                n_iter=self.n_iter,
                rng=np.random.default_rng((self.seed, n_states, number)),
            )

        # From 1: seeds (s, k) and (s, k, 0) are the same.
        calls = [(estimate, 1 + number) for number in range(self.n_repeats)]
        found = np.array(in_threads(self.settings.n_jobs, calls))
        return found - np.delete(learnt.log_volume, self.isolated).sum()


def number_of_states(numbers, given):
    """Return the posterior distribution of the number of states.

    `numbers`: a `Numbers`; `given`: the numbers of states to compare, or None for 1, 2,
    ... until two successive ones are improbable.
    """
    if given is None:
        given, estimates = _path(numbers)
    else:
        estimates = [numbers.estimates(number) for number in given]
    estimates = np.array(estimates)
    means = estimates.mean(axis=1)
    best, n_repeats = int(means.argmax()), estimates.shape[1]
    errors = (estimates - estimates[best]).std(axis=1, ddof=1) / np.sqrt(n_repeats)
    found = NumberOfStates(
        np.array(given), softmax(means), means, errors, numbers.isolated
    )
    _warn_of_errors(found, best, n_repeats)
    return found


def _path(numbers):
    """Return numbers of states, from one, and the estimates of their log evidence."""
    estimates, highest, n_lower = [], -np.inf, 0
    least = numbers.found.model.n_states
    for n_states in range(1, max(numbers.settings.largest, least) + 1):
        estimates.append(numbers.estimates(n_states))
        reached = estimates[-1].mean()
        highest = max(highest, reached)
        n_lower = n_lower + 1 if reached < highest - _IMPROBABLE else 0
        if n_lower >= _N_LOWER and n_states > least:
            break
    return range(1, n_states + 1), estimates


def _warn_of_isolated_rows(rows, isolated):
    """Warn if most rows that are not missing are given, and few are compared."""
    n_rows, n_given = int((~np.isnan(rows).all(axis=1)).sum()), len(isolated)
    if 2 * n_given > n_rows:
        warn_user(
            "The probabilities of the numbers of states depend on "
            f"{n_rows - n_given} of {n_rows} rows: the other {n_given} are given, "
            "because the rows revealed before them do not predict them. Use more rows "
            "or fewer features."
        )


def _warn_of_errors(found, best, n_repeats):
    """Warn if another number may be the most probable one, by the standard errors.

    Intervals are those of Student's distribution: few repetitions can be alike by
    chance.
    """
    leads = found.log_evidence[best] - found.log_evidence
    halves = found.log_evidence_std * stats.t.ppf((1 + _CONFIDENCE) / 2, n_repeats - 1)
    unclear = (leads < halves) & (halves > _TOLERATED)
    unclear[best] = False
    if unclear.any():
        rival = int(np.flatnonzero(unclear)[leads[unclear].argmin()])
        warn_user(
            f"The evidence of {found.n_states[best]} states is higher than that of "
            f"{found.n_states[rival]} by {leads[rival]:.1f} nats, with a standard "
            f"error of {found.log_evidence_std[rival]:.1f}: their probabilities are "
            "unreliable. Increase n_iter or n_repeats."
        )
