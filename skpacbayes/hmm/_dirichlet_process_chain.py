"""The Gibbs sampler for emissions that are mixtures of normals."""

import numpy as np
from scipy.special import gammaln, ndtri
from scipy.stats import rankdata

from .._kernels.hmm_atoms import update_mixture
from ._dirichlet_process_atoms import (
    Moments,
    draw_atoms,
    draw_base,
    draw_locations,
    draw_log_weights,
    sizes_of,
    split_or_merge,
    swap_neighbors,
)
from ._dirichlet_process_gibbs import GibbsChain
from ._dirichlet_process_model import BLOCK, Parameters, densities_of, hidden_first
from ._dirichlet_process_random import state_of
from ._dirichlet_process_start import groups
from ._dirichlet_process_transitions import draw_transitions, mean_transitions

_SPLIT_RATE = 0.5  # share of sweeps with a split-merge proposal, which is expensive
_N_UPDATES = 4  # draws of the atoms and their parameters for one of the states
_N_SHAPES = 5  # largest number of groups of residuals per feature, for initial atoms


def scores_of_states(values, states):
    """Return the normal scores of each feature among the rows of each state.

    Groups of them are narrow where rows are dense, as in a spike.
    """
    scores = np.empty_like(values)
    for j in np.unique(states):
        own = np.flatnonzero(states == j)
        ranks = rankdata(values[own], axis=0)
        scores[own] = ndtri((ranks - 0.5) / len(own))
    return scores


class Chain(GibbsChain):
    """Gibbs sampler for emissions that are mixtures of normals."""

    def _prepare(self):
        model, rows = self.model, self.rows
        groups = rows.groups
        self._partly = any(len(group.features) < model.n_features for group in groups)
        self._complete = rows.values.copy() if model.full else rows.values
        self._zeros = np.zeros(len(rows), dtype=np.int64)
        # All rows of mixtures with covariances are complete: their values are drawn.
        self._complete_mixtures = model.full or not self._partly
        halves = model.shape + 0.5 * np.arange(len(rows) + 1)
        more = 0.5 * (model.n_features if model.full else 1)
        self._table = gammaln(halves + more) - gammaln(halves)

    def densities_given(self, uniforms):
        return densities_of(self.rows, self.parameters, self.model, uniforms)

    def _draw_parameters(self, atoms):
        """Draw the parameters given states and atoms.

        Atoms mix more slowly than states, and cost less: if no values are missing, or
        with full covariances, which complete rows, they are drawn several times.
        """
        old, model, rng = self.parameters, self.model, self.rng
        if model.full:
            self._complete_rows(atoms)
        sizes = sizes_of(self.states, atoms, model)
        base = old.origins, old.scales
        if not self._complete_mixtures:
            base = draw_base(sizes > 0, old, model, rng)
        if model.n_atoms > 1:
            self._move_between_atoms(atoms, sizes, base)
        transitions = draw_transitions(self._moved, old, model, rng)
        mixtures = None
        if self._complete_mixtures:
            mixtures = self._draw_mixtures(atoms, sizes, *base)
        if model.shared or mixtures is None:
            near, moments = self._moments(atoms)
        if mixtures is None:
            of_shapes = moments.of_shapes(model.shared)
            log_weights = draw_log_weights(of_shapes.sizes, model.concentration, rng)
            means, factors = draw_atoms(of_shapes, near, *base, model, rng)
            mixtures = log_weights, factors, means, *base
        log_weights, factors, means, *base = mixtures
        new = Parameters(
            *transitions,
            log_weights,
            means,
            factors,
            old.locations,
            *base,
            sizes > 0,
            old.stages,
            old.effects,
        )
        if model.shared:
            moved = means[0] - near[0]
            new = new._replace(
                locations=draw_locations(moments, moved, new, model, rng)
            )
        self.parameters = new

    def _moments(self, atoms):
        """Return the means of atoms, and the moments about them."""
        locations = self.parameters.locations
        near, moments = Moments.of_rows(
            self._complete, self.states, atoms, locations, self.model
        )
        hidden = moments.counts * self.rows.rounding
        np.einsum("...ff->...f", moments.products)[:] += hidden
        return near, moments

    def _draw_mixtures(self, atoms, sizes, origins, scales):
        """Draw log weights, factors, means, origins and scales.

        `atoms` and `sizes` are changed.
        """
        model, rng, old = self.model, self.rng, self.parameters
        n_shapes, n_atoms, d = old.means.shape
        n_updates = _N_UPDATES if n_atoms > 1 else 1
        prior = (
            *(model.mean_count, model.shape, model.scale_shape, model.scale_rate),
            float(model.concentration),
            0.0 if model.shared else 1.0 / model.location_variance,
        )
        mixtures = old.log_weights, old.factors, old.means, origins, scales
        mixtures = tuple(part.copy() for part in mixtures)
        overwritten = sizes, *mixtures
        uniforms = rng.random((n_updates - 1, len(atoms)))
        noise = rng.standard_normal((n_shapes, n_updates, 1, n_atoms + 1, d))
        size = (n_atoms, d, d) if model.full else (0, 0, 0)
        triangles = rng.standard_normal((n_shapes, n_updates, *size))
        state, start, n = state_of(rng), 0, max(len(atoms), n_atoms)
        moments = (*np.empty((2, 1, n_atoms, d)), np.empty((1, n_atoms, d, d)))
        work = (
            np.empty((1, n), dtype=np.int64),
            np.empty((2, n), dtype=np.int64),
            np.empty((d + 4, n)),
            np.empty((1, n)),
            moments,
            np.empty((d + 3, d)),
            np.zeros((1, d)),
            np.empty((n_atoms + 2, BLOCK)),
        )
        for g in range(n_shapes):
            start += update_mixture(
                self._complete,
                self.states,
                g if n_shapes > 1 else -1,
                atoms,
                old.locations,
                self.rows.rounding,
                prior,
                model.full,
                (uniforms, noise[g], triangles[g]),
                start,
                tuple(part[g : g + 1] for part in overwritten),
                state,
                work,
            )
        return mixtures

    def _move_between_atoms(self, atoms, sizes, base):
        """Split or merge atoms, and exchange them in the stick-breaking order."""
        model, rng, n_rows = self.model, self.rng, len(self.rows)
        values, shapes = self._complete, self.states
        if model.shared:
            shapes = self._zeros
        if rng.random() < _SPLIT_RATE:
            if model.shared:
                values = values - self.parameters.locations[self.states]
            split_or_merge(
                values,
                shapes,
                atoms,
                sizes,
                base,
                model,
                self.rows.rounding,
                self._table,
                rng.permutation(n_rows),
                rng.random(n_rows + 2),
            )
        swap_neighbors(shapes, atoms, sizes, model.concentration, rng)

    def _complete_rows(self, atoms):
        """Draw the missing values of partly observed rows, given their atoms."""
        groups = [group for group in self.rows.groups if group.index is not None]
        if not groups:
            return
        centers = self.parameters.centers()
        everything = np.arange(self.model.n_features)
        for index, seen, columns in groups:
            hidden = np.delete(everything, seen)
            if not len(hidden):
                continue
            states = self.states[index]
            own = atoms[index]
            shapes = np.zeros_like(states) if self.model.shared else states
            n = len(hidden)
            factors = hidden_first(self.parameters.factors, seen)[..., :n, :]
            roots = np.linalg.inv(factors[..., :n])
            slopes = -roots @ factors[..., : n - 1 : -1]
            noise = self.rng.standard_normal((len(index), n, 1))
            gaps = columns.T - centers[states, own][:, seen]
            draws = slopes[shapes, own] @ gaps[..., None] + roots[shapes, own] @ noise
            filled = centers[states, own][:, hidden] + draws[..., 0]
            self._complete[index[:, None], hidden] = filled

    def _begin(self, start, values):
        """Set initial parameters given states; return the atoms of observed rows."""
        model, states = self.model, start.states
        k, d = model.n_states, model.n_features
        locations = np.zeros((k, d))
        for j in np.unique(states):
            locations[j] = np.median(values[states == j], axis=0)
        atoms = np.zeros(len(values), dtype=np.int64)
        if start.several:
            n_groups = min(_N_SHAPES * d, model.n_atoms)
            if model.full:  # an atom has as many rows as parameters, on average
                most = len(values) // (model.n_shapes * d * (d + 3) // 2)
                n_groups = max(1, min(n_groups, most))
            atoms = groups(scores_of_states(values, states), n_groups, self.rng)
        means = np.zeros((model.n_shapes, model.n_atoms, d))
        if not model.shared:
            means, locations = means + locations[:, None], np.zeros((k, d))
        self.parameters = Parameters(
            *mean_transitions(self._moved.moves, model),
            np.zeros(means.shape[:2]),
            means,
            np.broadcast_to(np.eye(d), (*means.shape, d)).copy(),
            locations,
            np.zeros((model.n_shapes, d)),
            np.full((model.n_shapes, d), model.scale_shape / model.scale_rate),
            stages=np.ones(k, dtype=np.int64),
            effects=self._no_effects(),
        )
        return atoms
