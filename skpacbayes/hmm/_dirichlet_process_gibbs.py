"""The blocked Gibbs sampler of states and parameters, whatever the emissions."""

import itertools

import numpy as np

from .._kernels.hmm import draw_states
from ._dirichlet_process_score import PredictiveScore
from ._dirichlet_process_start import starts

_N_DROPPED, _N_TRIAL = 15, 15  # sweeps from each start: dropped, and then scored
_MARGIN = 15.0  # nats by which the score of another start must be higher


def observed_rows(rows):
    """Rows of which something was observed, with zeros for gaps, and their bounds."""
    observed = np.flatnonzero(~np.isnan(rows.values).all(axis=1))
    values = np.nan_to_num(rows.coordinates[observed], nan=0.0)
    return observed, values, np.searchsorted(observed, rows.bounds)


def starts_for(rows, model, rng):
    """Return starts for the rows of which something was observed."""
    _, values, bounds = observed_rows(rows)
    return starts(values, bounds, model.n_states, model.full, rng)


class GibbsChain:
    """Gibbs sampler of states, atoms and parameters, given rows.

    A class of emissions defines `_filtered`, `_draw_parameters`, `_begin` and, where
    needed, `_prepare`.

    Parameters
    ----------
    rows : Rows or DiscreteRows
        Sequences.
    model : Model or DiscreteModel
        The prior.
    rng : numpy.random.Generator
        Source of random numbers.
    parameters : Parameters, DiscreteParameters or None
        Where the chain is; None to start it.
    starts : list of Start, or None
        Where the chain may start; None to find starts.
    """

    def __init__(self, rows, model, rng, parameters=None, starts=None):
        self.rows, self.model, self.rng = rows, model, rng
        self.parameters = parameters
        self.states = np.zeros(len(rows), dtype=np.int64)
        self._moves = np.zeros((model.n_states, model.n_states))
        self._firsts = np.zeros(model.n_states)
        self._prepare()
        if parameters is None:
            self._start(starts_for(rows, model, rng) if starts is None else starts)

    def _prepare(self):
        """Compute what all sweeps use."""

    def sweep(self):
        """Draw everything once.

        Returns
        -------
        log_densities : ndarray of shape (n_rows,)
            Of each row given those before it, at the parameters before the sweep.
        """
        atoms, log_densities = self._draw_states()
        self._draw_parameters(atoms)
        return log_densities

    def _draw_states(self):
        """Draw states and atoms given the parameters, which are left as they are."""
        uniforms = self.rng.random((2, len(self.rows)))
        filtered, log_densities, atoms = self._filtered(uniforms[0])
        draw_states(
            filtered,
            self.parameters.transitions,
            self.rows.bounds,
            uniforms[1],
            self.states,
            self._moves,
            self._firsts,
        )
        return atoms[self.states, np.arange(len(atoms[0]))], log_densities

    def _start(self, starts):
        """Start from the first of `starts`, or from one that predicts much better.

        After a few sweeps from each, by the predictive score; better by so much that
        chance is excluded, for where the order of the rows says nothing all starts are
        about as good.
        """
        best = -np.inf
        for start in starts:
            self._start_from(start)
            for _ in range(_N_DROPPED):
                self.sweep()
            score = PredictiveScore(len(self.rows))
            for _ in range(_N_TRIAL):
                score.add(self.sweep())
            found = score.of_rows().sum()
            if found > best + _MARGIN:
                best, parameters = found, self.parameters
        self.parameters = parameters

    def _start_from(self, start):
        """Draw parameters given states, and one atom a shape or those of k-means."""
        observed, values, _ = observed_rows(self.rows)
        self.states[:], self.states[observed] = 0, start.states
        self._moves[:], self._firsts[:] = 0.0, 0.0
        for first, stop in itertools.pairwise(self.rows.bounds):
            path = self.states[first:stop]
            np.add.at(self._moves, (path[:-1], path[1:]), 1.0)
            self._firsts[path[:1]] += 1.0
        atoms = np.full(len(self.rows), -1)
        atoms[observed] = self._begin(start, values)
        self._draw_parameters(atoms)
