"""Warnings about a fit that contradicts its model or has not converged."""

import numpy as np
from scipy.special import pdtr
from sklearn.exceptions import ConvergenceWarning

from .._base import named, warn_user
from .._sentinels import warn_of_empty_columns
from ._dirichlet_process_dependence import (
    strongest_dependence,
    strongest_memory,
    strongest_trend,
)
from ._dirichlet_process_inputs import stays_at
from ._dirichlet_process_regression import best_regression
from ._dirichlet_process_score import CHANCE, N_ORDERED, UNRELIABLE

_LEAST_SAME = 0.95  # least share of rows with the same state in all chains
# A value that so many rows share, where others are mostly distinct, as zero of rain.
_SHARED = 0.1  # least share of the rows
_FEWEST_SHARED = 20  # and least number of them
_DISTINCT = 0.5  # least number of distinct values among the others, per row
_FEWEST_OF_FLAG = 10  # least number of rows with either of the two values of a flag
_LEAST_TOLD = 0.2  # least separation of states, from 0 (guessing) to 1
# States last too short if the transitions expect so many times the moves of the paths,
# and chance explains it with a smaller probability.
_MORE_MOVES, _BY_CHANCE = 1.5, 5e-3
_MINOR = 0.25  # share of the moves that a prior may add
_N_DRAWS = 20  # draws of which the transitions given inputs are averaged


def warn_of_emission(best, rival):
    """Warn that an emission predicts clearly better than the best one allowed.

    Both arguments are of type `Candidate`.
    """
    chosen, other = best.model.emission, rival.model.emission
    reason = "The values are underdispersed counts; use"
    if other == "per_state":
        reason = "States differ in more than their location; use 'auto' or"
    _warn(
        f"The rows contradict emission={chosen!r}: with emission={other!r} the "
        f"predictive score is higher by {(rival.scores - best.scores).mean():.2f} nats "
        f"per row. {reason} emission={other!r}."
    )


def warn_of_number(chosen, rival):
    """Warn that another number of states may be better than the one chosen.

    Both arguments are of type `Candidate`.
    """
    lead, error = rival.lead_over(chosen)
    _warn(
        f"n_states='auto' chose {chosen.model.n_states}, the smallest number of states "
        f"that is not clearly worse than the best, but with {rival.model.n_states} "
        f"states the predictive score is higher by {lead:.3f} nats per row, "
        f"{lead / error:.1f} standard errors. Compare with "
        f"n_states={rival.model.n_states}."
    )


def warn_of_scores(n_states, correction):
    """Warn that predictive scores may have chosen a wrong number of states."""
    _warn(
        f"n_states='auto' chose {n_states} by predictive scores that are not reliable: "
        f"their correction for the fit is {correction:.2f} nats per row, more than "
        f"{UNRELIABLE:g}. There are too few rows for the features and atoms. Give "
        "n_states, or use n_atoms=1, covariance_type='diag' or fewer features."
    )


def share_of_same_states(runs):
    """Return the share of the rows with the same most probable state in all chains."""
    states = np.array([run.votes.argmax(axis=0) for run in runs])
    return (states == states[0]).all(axis=0).mean()


def difference_of(runs):
    """Say whether chains of different log-likelihoods differ in their states."""
    same = share_of_same_states(runs)
    said = f"for {same:.0%} of the rows the most probable state is the same in all."
    if same < _LEAST_SAME:
        return f"They differ in the states: {said}"
    n_atoms = [np.mean([draw.occupied.sum() for draw in run.draws]) for run in runs]
    numbers = ", ".join(f"{number:.1f}" for number in n_atoms)
    return (
        f"They agree about the states, and differ in the emissions: {said} The mean "
        f"number of atoms with rows is {numbers}."
    )


def warn_of_chains(runs):
    """Warn if chains of equal log-likelihood assign rows to different states."""
    same = share_of_same_states(runs)
    if same < _LEAST_SAME:
        _warn(
            "The chains disagree about the states: for "
            f"{same:.0%} of the rows the most probable state is the same in all "
            f"{len(runs)} chains. Increase n_iter and burn_in, or n_chains."
        )


def warn_of_states(votes):
    """Warn if the states are hardly separated."""
    shares = votes / votes.sum(axis=0)
    known, guessed = shares.max(axis=0).mean(), shares.mean(axis=1).max()
    if known - guessed < _LEAST_TOLD * (1 - guessed):
        _warn(
            f"The rows hardly tell {len(votes)} states apart: the most probable states "
            f"are expected to be right for {known:.0%} of the rows, and the most "
            f"frequent state for {guessed:.0%}. Try fewer states, or another emission."
        )


def warn_of_durations(runs):
    """Warn if states last much shorter by the transitions than in the rows.

    On average over the prior, the transitions expect as many moves between states as
    there are. Many more are those of the prior: each row of the transition matrix has
    `transition_prior` moves into each state, and at least `min_transition` for each of
    its rows.
    """
    model = runs[0].chain.model
    n_moves = np.mean([np.mean(run.n_moves) for run in runs])
    expected = np.mean([_expected_moves(run) for run in runs])
    if expected < _MORE_MOVES * n_moves or pdtr(n_moves, expected) > _BY_CHANCE:
        return
    k, a, least = model.n_states, model.transition_prior, model.min_transition
    n_rows, n_moves = len(runs[0].chain.rows), max(n_moves, 1.0)
    n_pairs, advice = k * (k - 1), []
    if a * n_pairs > _MINOR * n_moves:
        advice.append(f"transition_prior={_rounded(_MINOR * n_moves / n_pairs):g}")
    if least * n_rows * (k - 1) > _MINOR * n_moves:
        lower = _rounded(0.1 * _MINOR * n_moves / (n_rows * (k - 1)))
        advice.append(f"min_transition={lower:g}")
    _warn(
        f"States last too short in the transitions, which expect {expected:.0f} moves "
        f"between states, or their stages, where there are {n_moves:.0f}: the prior of "
        "the transitions decides, and forecasts leave a state too soon. Use "
        f"{' and '.join(advice) or 'fewer states'}."
    )


def _expected_moves(run):
    """Return the number of moves that the transitions of a run expect, on average."""
    rows, shares = run.chain.rows, run.votes / run.votes.sum(axis=0)
    followed = np.ones(len(rows), dtype=bool)
    followed[rows.bounds[1:] - 1] = False
    before = np.flatnonzero(followed)
    if rows.inputs is None:
        stay = np.mean([draw.transitions.diagonal() for draw in run.draws], axis=0)
        return ((1.0 - stay) * shares[:, before].sum(axis=1)).sum()
    stay = np.zeros((len(shares), len(before)))
    some = run.draws[:: -(-len(run.draws) // _N_DRAWS)]
    for draw in some:
        stay += stays_at(rows.inputs[before + 1], draw)
    return ((1.0 - stay / len(some)) * shares[:, before]).sum()


def _rounded(value):
    """Return a number rounded down to one digit."""
    unit = 10.0 ** np.floor(np.log10(value))
    return np.floor(value / unit) * unit


def warn_of_order(runs, settings, rng):
    """Warn if the order of rows is not informative, or first states not stationary."""
    model, rows = runs[0].chain.model, runs[0].chain.rows
    starts_matter = model.stationary and len(rows.bounds) > 2
    no_order, other_starts = settings.n_states is not None, starts_matter
    for run in runs:  # a single chain that disagrees suffices
        of_order, of_starts = run.chain.gains(N_ORDERED, rng)
        no_order &= of_order <= CHANCE
        other_starts &= of_starts > CHANCE + 0.5 * model.n_states
        if not no_order and not other_starts:
            return
    if no_order:
        _warn(
            f"The order of the rows gains {of_order:.1f} nats in all {len(rows)} rows "
            f"over a mixture of the {model.n_states} states, which may be chance. "
            "There may be no regimes, or too few rows to find them. Choose the number "
            "of states by n_states='auto'."
        )
    if other_starts:
        _warn(
            "The first states of sequences contradict startprob='stationary': a free "
            f"distribution of first states fits {of_starts:.0f} nats better. This "
            "distorts the transitions: use startprob='dirichlet'."
        )


def warn_of_gaps(X, bounds):
    """Warn if a feature is missing in all rows, or rows are observed at a step."""
    observed = np.flatnonzero(~np.isnan(X).all(axis=1))
    sequences = np.searchsorted(bounds, observed, side="right")
    gaps = np.diff(observed)[np.diff(sequences) == 0]
    step = int(np.gcd.reduce(gaps)) if len(gaps) > 1 else 1
    if step > 1:
        _warn(
            f"All observed rows of a sequence are {step} rows apart, or a multiple of "
            f"{step}: the transitions from a row to the next are not identified, as "
            f"different ones agree after {step} rows. Leave out the rows that are "
            "always missing."
        )
    warn_of_empty_columns(X)


def warn_of_shared_values(X, left_out, names):
    """Warn if many rows share a value of a number, and the other values hardly repeat.

    The density at the value is then as large as its atom is narrow.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows; NaN is ignored.
    left_out : sequence of int
        Columns that are not numbers.
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    for column in set(range(X.shape[1])).difference(left_out):
        known = X[~np.isnan(X[:, column]), column]
        values, counts = np.unique(known, return_counts=True)
        shared = counts.max(initial=0)
        if shared < max(_FEWEST_SHARED, _SHARED * len(known)) or len(values) == 1:
            continue
        whole = (values == np.rint(values)).all()  # counts, or rounded to units
        if not whole and len(values) - 1 >= _DISTINCT * (len(known) - shared):
            (name,) = named([column], names)
            warn_user(
                f"Column {name} has the value {values[counts.argmax()]:g} in {shared} "
                f"of {len(known)} rows, and other values hardly repeat: n_states="
                "'auto' may be wrong, as the density at this value is that of an atom "
                "without width. Give NaN in its place and, if where it comes tells of "
                "the state, a column of the kind 'categorical' that says so."
            )
            return


def warn_of_flags(X, names):
    """Warn if a column that is taken for a measurement has two values only.

    Its atoms have no width, so that states may describe this column alone.
    """
    for column in range(X.shape[1]):
        known = X[~np.isnan(X[:, column]), column]
        values, counts = np.unique(known, return_counts=True)
        if len(values) == 2 and counts.min() >= _FEWEST_OF_FLAG:
            (name,) = named([column], names)
            warn_user(
                f"Column {name} has two values only, {values[0]:g} and {values[1]:g}, "
                "and is taken for a measurement: states may be wrong. Give a list of "
                "kinds as emission, 'categorical' for this column and 'normal', "
                "'poisson' or 'categorical' for each other one."
            )
            return


def warn_of_names(X, units):
    """Warn if most categories of a feature occur once."""
    for f, known in enumerate(units.categories()):
        if len(known):
            seen = X[~np.isnan(X[:, f]), f]
            alone = (np.unique(seen, return_counts=True)[1] == 1).sum()
            if 2 * alone > len(seen):
                _warn(
                    f"{alone} of {len(seen)} values in column {f} are in one row only: "
                    "such categories are not informative about states. Use another "
                    "emission for numbers, or merge rare categories."
                )


def warn_of_dependence(states, paths, rows):
    """Warn if rows depend on the rows before them beyond their states.

    `states` (n_rows,): the most probable ones; `paths`: draws of them, one per chain.
    Returns whether there was a warning.
    """
    found, lag = strongest_dependence(rows.numbers, states, rows.bounds)
    if found and lag == 1:
        _warn(
            "Rows depend on the rows before them beyond their states: neighbours in a "
            f"state have a correlation of {found:.2f}. There may be more states, or an "
            "autoregression, with which states are missed or last too short. Try more "
            "states, or model differences or residuals."
        )
    elif found:
        _warn(
            "Rows depend on the rows before them beyond their states: rows that are "
            f"{lag} apart have a correlation of {found:.2f} about the medians of their "
            f"states. If {lag} rows are a season, states may be parts of the season: "
            "model differences to the season before, or residuals."
        )
    elif trend := strongest_trend(rows.numbers, states, rows.bounds):
        _warn(
            "Rows have a trend: about the medians of their states they have a "
            f"correlation of {trend:.2f} with time. States may be periods of the "
            "trend, which forecasts do not follow. Model differences, or residuals "
            "from the trend."
        )
    else:
        return _warn_of_memory(paths, rows)
    return True


def _warn_of_memory(paths, rows):
    """Warn if the residuals of rows predict the next row."""
    found, span = strongest_memory(rows.numbers, paths, rows.bounds)
    if found:
        before = "the row" if span == 1 else f"the {span} rows"
        _warn(
            "Rows depend on the rows before them beyond their states: a row has a "
            f"correlation of {found:.2f} with the residuals of {before} before it. "
            "The number of states may not be the number of regimes. Subtract a trend "
            "or a season, fit residuals of an autoregression, or try more states."
        )
    return bool(found)


def warn_of_regression(model, rows, log_likelihood):
    """Warn if a regression predicts the rows better than the states.

    `log_likelihood`: of the rows under the model.
    """
    kinds = getattr(model, "kinds", ("normal",) * model.n_features)
    if not len(kinds):
        return
    gain, period, on_rows = best_regression(rows, kinds, log_likelihood)
    if gain > CHANCE and set(kinds) == {"categorical"}:
        _warn(
            "Rows depend on the rows before them beyond their states: a Markov chain "
            f"of the categories predicts them better, by {gain:.0f} nats in all "
            f"{len(rows)} rows. Try more states."
        )
    elif gain > CHANCE:
        variables = "time"
        if period is not None:
            variables = f"a season of {period:.3g} rows"
        if on_rows:
            variables = f"{variables} and the rows before"
        _warn(
            "Rows depend on the rows before them beyond their states: a regression on "
            f"{variables} predicts them better, by {gain:.0f} nats in all {len(rows)} "
            "rows. The number of states may not be the number of regimes. Fit its "
            "residuals, or try more states."
        )


def _warn(message):
    warn_user(message, ConvergenceWarning)
