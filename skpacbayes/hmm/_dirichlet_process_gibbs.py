"""The blocked Gibbs sampler of states and parameters, for all emissions."""

import copy
import itertools

import numpy as np

from .._kernels.hmm import draw_states
from ._dirichlet_process_durations import (
    Moved,
    Steps,
    filtered_stages,
    proposed_stages,
)
from ._dirichlet_process_inputs import (
    Moves,
    draw_divisors,
    draw_effects,
    filtered_rows,
)
from ._dirichlet_process_score import MARGIN, PredictiveScore
from ._dirichlet_process_start import starts, starts_after
from ._dirichlet_process_transitions import gain_of_free_starts

_N_FIRST, _N_COMPARED = 15, 5  # sweeps from each start, the last of which are compared
_N_FINALISTS, _N_SCORED = 3, 15  # continued starts, and their sweeps


def observed_rows(rows):
    """Return rows that are not missing, with zeros for missing values, and bounds."""
    observed = np.flatnonzero(~np.isnan(rows.values).all(axis=1))
    values = np.nan_to_num(rows.coordinates[observed], nan=0.0)
    return observed, values, np.searchsorted(observed, rows.bounds)


def starts_for(rows, model, rng):
    """Return starts for the rows that are not missing."""
    _, values, bounds = observed_rows(rows)
    return starts(values, bounds, model.n_states, model.full, rng)


def more_starts_for(rows, model, others, states, rng):
    """Return starts given those of another model, and the states of its chain."""
    observed, values, bounds = observed_rows(rows)
    own = states[observed]
    return starts_after(others, own, values, bounds, model.n_states, model.full, rng)


class GibbsChain:
    """Gibbs sampler of states, atoms and parameters, given rows.

    A class of emissions defines `densities_given`, `_draw_parameters`, `_begin` and,
    where needed, `_prepare`.

    Parameters
    ----------
    rows : Rows or ProductRows
        Sequences.
    model : Model or ProductModel
        The prior.
    rng : numpy.random.Generator
        Source of random numbers.
    parameters : Parameters, ProductParameters or None
        Current state of the chain; None to start it.
    starts : list of Start, or None
        Possible starts; None to find them.

    Attributes
    ----------
    log_likelihoods : list of float
        Log-likelihood of all rows at each sweep since the chosen start.
    first_score : PredictiveScore or None
        Score of the first sweeps from the chosen start, if there were several.
    """

    def __init__(self, rows, model, rng, parameters=None, starts=None):
        self.rows, self.model, self.rng = rows, model, rng
        self.parameters = parameters
        self.states = np.zeros(len(rows), dtype=np.int64)
        self.log_likelihoods, self.first_score = [], None
        self._prepare()
        if parameters is None:
            self._start(starts_for(rows, model, rng) if starts is None else starts)

    def _prepare(self):
        """Compute constants of the sweeps."""

    def sweep(self):
        """Draw each block of variables once.

        Returns
        -------
        log_densities : ndarray of shape (n_rows,)
            Of each row given those before it, at the parameters before the sweep.
        """
        atoms, log_densities = self._draw_states()
        self._draw_effects()
        self._draw_parameters(atoms)
        self.log_likelihoods.append(log_densities.sum())
        return log_densities

    def gains(self, n_sweeps, rng):
        """Return the gains, in nats, of the order of the rows and of free first states.

        The gain of the order is the difference of the predictive score to that of
        mixtures with the emissions of the draws and the shares of their states. The
        sweeps are made by a copy of the chain.
        """
        chain = copy.copy(self)
        chain.rng, chain.states, chain.log_likelihoods = rng, self.states.copy(), []
        of_mixtures, scores = (PredictiveScore(len(self.rows)) for _ in range(2))
        k = self.model.n_states
        for _ in range(n_sweeps):
            shares = np.bincount(chain.states, minlength=k) + 1.0
            highest, densities, _ = chain.densities_given(None)
            densities = (shares / shares.sum()) @ densities
            of_mixtures.add(highest + np.log(densities))
            scores.add(chain.sweep())
        of_order = (scores.of_rows() - of_mixtures.of_rows()).sum()
        if not self.model.stationary:
            return of_order, 0.0
        return of_order, gain_of_free_starts(
            chain._moved, chain.parameters, self.model, rng
        )

    def n_moves(self):
        """Return the number of moves to other states, or stages, of the last path."""
        moved = self._moved
        return moved.moves.sum() - moved.moves.trace() + moved.onward.sum()

    def _draw_states(self):
        """Draw the numbers of stages, then states and atoms given the parameters."""
        uniforms = self.rng.random((2, len(self.rows)))
        highest, densities, atoms = self.densities_given(uniforms[0])
        steps, filtered, evidence = self._filtered(densities)
        n = len(steps.states)
        moves, firsts = np.empty((n, n)), np.empty(n)
        draw_states(
            filtered,
            *steps.ways,
            self.rows.bounds,
            uniforms[1],
            self.states,
            moves,
            firsts,
        )
        self._moved = steps.moved(moves, firsts)
        if not steps.one_each:
            self.states = steps.states[self.states]
        log_densities = highest + np.log(evidence)
        n_rows = len(self.states)
        return atoms.take(self.states * n_rows + np.arange(n_rows)), log_densities

    def _draw_effects(self):
        """Draw the effects of inputs, and auxiliary variables for the transitions."""
        if self.rows.inputs is None:
            return
        moves, rng = Moves(self.states, self.rows, self.parameters), self.rng
        effects = draw_effects(moves, self.parameters.effects, rng)
        self.parameters = self.parameters._replace(effects=effects)
        prior = self.model.transition_prior
        rates, pulls = draw_divisors(moves, effects, prior, rng)
        self._moved = self._moved._replace(rates=rates, pulls=pulls)

    def _no_effects(self):
        """Return initial effects, (n_states, n_inputs)."""
        n_inputs = 0 if self.rows.inputs is None else self.rows.inputs.shape[1]
        return np.zeros((self.model.n_states, n_inputs))

    def _filtered(self, densities):
        """Return stages with filtered probabilities, and the evidence of the rows.

        If durations are learnt, a Metropolis step proposes another number of stages of
        a state, with the states summed out.
        """
        model, bounds = self.model, self.rows.bounds
        steps = Steps.of(self.parameters, model)
        found = filtered_rows(densities, steps, self.rows, self.parameters)
        probabilities, evidence = found
        if not model.staged:
            return steps, probabilities, evidence
        proposed, log_ratio = proposed_stages(self.parameters, model, self.rng)
        threshold = -self.rng.standard_exponential()
        if proposed is not None:
            other = Steps.of(proposed, model)
            found = filtered_stages(densities, other, bounds)
            if threshold < log_ratio + np.log(found[1] / evidence).sum():
                self.parameters = proposed
                return other, *found
        return steps, probabilities, evidence

    def _start(self, starts):
        """Start from the first of `starts`, or from one that predicts much better.

        A few sweeps are made from each; then a few more from the three likeliest, which
        are scored. Another start than the first must be better by a clear margin, as
        all starts are about equally good if the order of the rows is not informative.
        """
        if len(starts) == 1:
            self._start_from(starts[0])
            return
        trials = []
        for start in starts:
            self._start_from(start)
            self.log_likelihoods = []
            for _ in range(_N_FIRST):
                self.sweep()
            reached = np.mean(self.log_likelihoods[-_N_COMPARED:])
            lead = 0.0 if trials else MARGIN
            trials.append((reached + lead, lead, self.parameters, self.log_likelihoods))
        enough = sorted(trial[0] for trial in trials)[-_N_FINALISTS]
        best = -np.inf
        for reached, lead, *place in trials:
            if reached < enough:
                continue
            self.parameters, self.log_likelihoods = place
            score = PredictiveScore(len(self.rows))
            for _ in range(_N_SCORED):
                score.add(self.sweep())
            found = lead + score.of_rows().sum()
            if found > best:
                best, self.first_score = found, score
                parameters, log_likelihoods = self.parameters, self.log_likelihoods
        self.parameters, self.log_likelihoods = parameters, log_likelihoods

    def _start_from(self, start):
        """Draw parameters given states, with one atom each or those of k-means."""
        observed, values, _ = observed_rows(self.rows)
        self.states[:], self.states[observed] = 0, start.states
        k = self.model.n_states
        self._moved = moved = Moved(np.zeros((k, k)), np.zeros(k), np.zeros(k))
        for first, stop in itertools.pairwise(self.rows.bounds):
            path = self.states[first:stop]
            np.add.at(moved.moves, (path[:-1], path[1:]), 1.0)
            moved.firsts[path[:1]] += 1.0
        atoms = np.full(len(self.rows), -1)
        atoms[observed] = self._begin(start, values)
        self._draw_effects()
        self._draw_parameters(atoms)
