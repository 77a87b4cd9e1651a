"""The Gibbs sampler where emissions are mixtures of counts or of categories."""

import numpy as np

from ._dirichlet_process_atoms import swap_neighbors
from ._dirichlet_process_conditionals import (
    draw_log_weights,
    draw_transitions,
    mean_transitions,
)
from ._dirichlet_process_discrete_model import DiscreteParameters
from ._dirichlet_process_gibbs import GibbsChain
from ._dirichlet_process_start import groups

_N_GROUPS = 5  # groups of the rows of a state that atoms start from, at most


def log_components(rows, parameters):
    """Log probability of rows in each atom, its weight included: (n_rows, k, L)."""
    k, n_atoms, n_natural = parameters.natural.shape
    logs = rows.design @ parameters.natural.reshape(-1, n_natural).T
    logs += parameters.log_weights.ravel() + rows.base[:, None]
    return logs.reshape(len(rows), k, n_atoms)


def densities_of(rows, parameters, uniforms=None):
    """Probabilities of rows in each state, and atoms drawn for each state.

    Returns
    -------
    highest : ndarray of shape (n_rows,)
        Logarithm of the unit of the probabilities of a row.
    densities : ndarray of shape (n_states, n_rows)
        Probabilities in these units; 1 for a row of which nothing was observed.
    atoms : ndarray of shape (n_states, n_rows), or None without `uniforms`
        Atom of each row if its state is that, -1 where nothing was observed.
    """
    logs = log_components(rows, parameters)
    highest = logs.max(axis=(1, 2))
    passed = np.exp((logs - highest[:, None, None]).clip(-700.0)).cumsum(axis=2)
    densities = np.ascontiguousarray(passed[..., -1].T)
    missing = np.isnan(rows.values).all(axis=1)
    highest[missing], densities[:, missing] = 0.0, 1.0
    if uniforms is None:
        return highest, densities, None
    thresholds = uniforms[:, None] * passed[..., -1]
    atoms = (passed[..., :-1] <= thresholds[..., None]).sum(axis=2).T
    atoms[:, missing] = -1
    return highest, densities, atoms


class DiscreteChain(GibbsChain):
    """Gibbs sampler where emissions are mixtures of counts or of categories."""

    def _densities(self, uniforms):
        return densities_of(self.rows, self.parameters, uniforms)

    def _draw_parameters(self, atoms):
        """Draw the parameters given states and atoms."""
        old, model, rng = self.parameters, self.model, self.rng
        sizes = self._sums(atoms, np.ones((len(atoms), 1)))[..., 0]
        rates = model.draw_rates(old.natural, sizes > 0, self.rows.means, rng)
        if model.n_atoms > 1:
            swap_neighbors(self.states, atoms, sizes, model.concentration, rng)
        sums = self._sums(atoms, self.rows.design)
        self.parameters = DiscreteParameters(
            *draw_transitions(self._moved, old, model, rng),
            draw_log_weights(sizes, model.concentration, rng),
            model.draw_natural(sums, rates, rng),
            rates,
            sizes > 0,
            old.stages,
        )

    def _sums(self, atoms, columns):
        """Return sums over the rows of each atom, (n_states, n_atoms, n_columns)."""
        k, n_atoms = self.model.n_states, self.model.n_atoms
        known = atoms >= 0
        index = (self.states * n_atoms + atoms)[known]
        sums = [np.bincount(index, column[known], k * n_atoms) for column in columns.T]
        return np.array(sums).T.reshape(k, n_atoms, -1)

    def _begin(self, start, values):
        """Set parameters to draw from, given states; atoms of the rows observed."""
        model = self.model
        atoms = np.zeros(len(values), dtype=np.int64)
        if start.several:
            atoms = groups(values, min(_N_GROUPS, model.n_atoms), self.rng)
        shape = model.n_states, model.n_atoms
        natural = np.zeros((*shape, self.rows.design.shape[1]))
        if not model.n_categories:
            means = np.broadcast_to(self.rows.means, (*shape, model.n_features))
            natural = np.concatenate([np.log(means), -means], axis=-1)
        self.parameters = DiscreteParameters(
            *mean_transitions(self._moved.moves, model),
            np.zeros(shape),
            natural,
            np.zeros((model.n_states, 0)),
            np.zeros(shape, dtype=bool),
            np.ones(model.n_states, dtype=np.int64),
        )
        return atoms
