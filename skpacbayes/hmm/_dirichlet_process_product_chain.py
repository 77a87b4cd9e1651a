"""The Gibbs sampler for columns of several kinds."""

import numpy as np

from .._kernels.hmm import LOWEST
from ._dirichlet_process_atoms import (
    Moments,
    draw_atoms,
    draw_base,
    draw_log_weights,
    sizes_of,
    swap_neighbors,
)
from ._dirichlet_process_gibbs import GibbsChain
from ._dirichlet_process_product_model import ProductParameters, columns_of
from ._dirichlet_process_start import groups
from ._dirichlet_process_transitions import draw_transitions, mean_transitions

_LOG_2_PI = np.log(2 * np.pi)
_N_GROUPS = 5  # largest number of groups of rows of a state, for initial atoms


def add_normals(logs, rows, parameters):
    """Add the log densities of normal features to `logs` (n_components, n_rows).

    A value that was rounded has the geometric mean of its density over the error.
    """
    for f, column in enumerate(rows.values.T):
        seen = ~np.isnan(column)
        factors = parameters.factors[..., f, f].ravel()
        constants = np.log(factors)
        constants -= 0.5 * (_LOG_2_PI + factors**2 * rows.rounding[f])
        gaps = np.multiply.outer(factors, column[seen])
        gaps -= (factors * parameters.means[..., f].ravel())[:, None]
        logs[:, seen] += constants[:, None] - 0.5 * gaps * gaps


def densities_of(rows, parameters, uniforms=None):
    """Return probabilities of rows in each state, and atoms drawn for each state.

    Returns
    -------
    highest : ndarray of shape (n_rows,)
        Logarithm of the unit of the probabilities of a row.
    densities : ndarray of shape (n_states, n_rows)
        Probabilities in these units; 1 for a row that is missing.
    atoms : ndarray of shape (n_states, n_rows), or None without `uniforms`
        Atom of each row given the state; -1 for a row that is missing.
    """
    (k, n_atoms, n_natural), n_rows = parameters.natural.shape, len(rows)
    logs = parameters.natural.reshape(-1, n_natural) @ rows.design.T
    logs += rows.base
    logs += parameters.log_weights.reshape(-1, 1)
    add_normals(logs, rows.normal, parameters)
    highest = np.maximum.reduce(logs, axis=0)
    logs -= highest
    np.exp(np.maximum(logs, LOWEST, out=logs), out=logs)
    passed = logs.reshape(k, n_atoms, n_rows)
    np.add.accumulate(passed, axis=1, out=passed)
    densities, missing = passed[:, -1].copy(), rows.missing
    if len(missing):
        highest[missing], densities[:, missing] = 0.0, 1.0
    if uniforms is None:
        return highest, densities, None
    thresholds = (uniforms * passed[:, -1])[:, None]
    atoms = np.add.reduce(passed[:, :-1] <= thresholds, axis=1)
    if len(missing):
        atoms[:, missing] = -1
    return highest, densities, atoms


def emissions(states, draw, model, rng):
    """Draw a row for each state: values in standard units, counts, and codes."""
    weights = np.exp(draw.log_weights).cumsum(axis=1)[states]
    thresholds = rng.random(len(states)) * weights[:, -1]
    atoms = (weights[:, :-1] <= thresholds[:, None]).sum(axis=1)
    natural = draw.natural[states, atoms]
    normal, counts, categories = columns_of(model.kinds)
    rows = np.empty((len(states), model.n_features))
    rows[:, counts] = rng.poisson(model.means(natural))
    for f, table in zip(categories, model.tables(natural), strict=True):
        passed = np.exp(table).cumsum(axis=1)
        thresholds = rng.random(len(states)) * passed[:, -1]
        rows[:, f] = (passed[:, :-1] <= thresholds[:, None]).sum(axis=1)
    deviations = 1.0 / np.einsum("...ff->...f", draw.factors[states, atoms])
    noise = rng.standard_normal((len(states), len(normal)))
    rows[:, normal] = draw.means[states, atoms] + deviations * noise
    return rows


class ProductChain(GibbsChain):
    """Gibbs sampler for columns of several kinds."""

    def densities_given(self, uniforms):
        return densities_of(self.rows, self.parameters, uniforms)

    def _draw_parameters(self, atoms):
        """Draw the parameters given states and atoms."""
        old, model, rng = self.parameters, self.model, self.rng
        sizes = sizes_of(self.states, atoms, model)
        rates = model.draw_rates(old.natural, sizes > 0, self.rows.means, rng)
        base = old.origins, old.scales
        if old.means.size:
            base = draw_base(sizes > 0, old, model.normals, rng)
        if model.n_atoms > 1:
            swap_neighbors(self.states, atoms, sizes, model.concentration, rng)
        sums = self._sums(atoms)
        self.parameters = ProductParameters(
            *draw_transitions(self._moved, old, model, rng),
            draw_log_weights(sizes, model.concentration, rng),
            model.draw_natural(sums, rates, rng),
            rates,
            sizes > 0,
            old.stages,
            *self._draw_normals(atoms, *base),
            old.effects,
        )

    def _draw_normals(self, atoms, origins, scales):
        """Draw means, factors, origins and scales of normal features given atoms."""
        model, rows, rng = self.model.normals, self.rows.normal, self.rng
        means, factors = self.parameters.means, self.parameters.factors
        if means.size:
            about = np.zeros(origins.shape)
            near, moments = Moments.of_rows(
                rows.values, self.states, atoms, about, model
            )
            hidden = moments.counts * rows.rounding
            np.einsum("...ff->...f", moments.products)[:] += hidden
            means, factors = draw_atoms(moments, near, origins, scales, model, rng)
        return means, factors, origins, scales

    def _sums(self, atoms):
        """Return sums of the design of each atom, (n_states, n_atoms, n_natural)."""
        k, n_atoms, n_natural = self.parameters.natural.shape
        # Rows that are missing add nothing to any atom: their design is zero.
        index = np.maximum(self.states * n_atoms + atoms, 0)
        sums = np.empty((k * n_atoms, n_natural))
        for i, column in enumerate(self.rows.design.T):
            sums[:, i] = np.bincount(index, column, len(sums))
        return sums.reshape(k, n_atoms, n_natural)

    def _begin(self, start, values):
        """Set initial parameters given states; return the atoms of observed rows."""
        model = self.model
        atoms = np.zeros(len(values), dtype=np.int64)
        if start.several:
            atoms = groups(values, min(_N_GROUPS, model.n_atoms), self.rng)
        shape = model.n_states, model.n_atoms
        natural = np.zeros((*shape, self.rows.design.shape[1]))
        natural[..., : 2 * model.n_counts] = np.hstack(
            [np.log(self.rows.means), -self.rows.means]
        )
        d = model.normals.n_features
        means = np.zeros((*shape, d))
        for j in np.unique(start.states):
            means[j] = np.median(values[start.states == j, :d], axis=0)
        self.parameters = ProductParameters(
            *mean_transitions(self._moved.moves, model),
            np.zeros(shape),
            natural,
            np.zeros((model.n_states, model.n_counts)),
            np.zeros(shape, dtype=bool),
            np.ones(model.n_states, dtype=np.int64),
            means,
            np.broadcast_to(np.eye(d), (*shape, d, d)).copy(),
            np.zeros((model.n_states, d)),
            np.full((model.n_states, d), model.scale_shape / model.scale_rate),
            self._no_effects(),
        )
        return atoms
