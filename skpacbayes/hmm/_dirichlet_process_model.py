"""Prior, parameters and densities of emissions that are mixtures of normals."""

from typing import NamedTuple

import numpy as np

from .._kernels.hmm import emission_densities
from ._dirichlet_process_series import units_of

# The prior, in units of the spread of each feature. The mean of an atom is normal
# about the origin of its shape, with its covariance divided by MEAN_COUNT. A variance
# is inverse gamma with SHAPE and the scale of its shape, which is gamma with
# SCALE_SHAPE and SCALE_RATE. Locations of states, and origins, are normal about 0.
MEAN_COUNT = 0.05
SHAPE = 2.0
SCALE_SHAPE, SCALE_RATE = 0.5, 2.0
LOCATION_VARIANCE = 10.0
BLOCK = 256  # rows whose densities are computed at a time, to fit in a cache


class Model(NamedTuple):
    """Settings and prior of a chain.

    `shared`: whether all states share a mixture, shifted by their locations.
    `stationary`: whether the first state has the stationary distribution of the
    transitions. `staged`: whether the numbers of stages are learnt. The rest is the
    prior of the atoms and of the locations, in standard units.
    """

    n_states: int
    n_atoms: int
    n_features: int
    shared: bool
    full: bool
    concentration: float
    transition_prior: float
    min_transition: float
    stationary: bool
    staged: bool = False
    mean_count: float = MEAN_COUNT
    shape: float = SHAPE
    scale_shape: float = SCALE_SHAPE
    scale_rate: float = SCALE_RATE
    location_variance: float = LOCATION_VARIANCE

    n_categories = ()  # no feature is categorical

    @staticmethod
    def units(X):
        """Return the centre and the scale of each feature of rows."""
        return units_of(X)

    @property
    def emission(self):
        """Corresponding value of the parameter `emission`."""
        return "translated" if self.shared else "per_state"

    @property
    def n_shapes(self):
        """Number of mixtures: one, or one for each state."""
        return 1 if self.shared else self.n_states


class Parameters(NamedTuple):
    """A point of the parameter space, in standard units.

    `transitions` (n_states, n_states); `start` (n_states,); `log_weights` (n_shapes,
    n_atoms); `means` (n_shapes, n_atoms, n_features); `factors` (n_shapes, n_atoms,
    n_features, n_features), lower triangular: transposed times itself each is the
    inverse of a covariance; `locations` (n_states, n_features), zero unless shared;
    `origins`, zero if shared, and `scales` (n_shapes, n_features): the prior of the
    atoms of each shape.
    `occupied` (n_shapes, n_atoms): whether an atom had rows when it was drawn; None if
    that is not known. `stages` (n_states,): the number of stages of each state.
    `effects` (n_states, n_inputs): of inputs on the log odds to enter a state.
    """

    transitions: np.ndarray
    start: np.ndarray
    log_weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    locations: np.ndarray
    origins: np.ndarray
    scales: np.ndarray
    occupied: np.ndarray | None = None
    stages: np.ndarray | None = None
    effects: np.ndarray | None = None

    def centers(self):
        """Means of the components, (n_states, n_atoms, n_features)."""
        return self.locations[:, None] + self.means

    def reordered(self, order):
        """Relabel state ``order[j]`` as j, for all j."""
        own = slice(None) if len(self.means) == 1 else order
        return Parameters(
            self.transitions[np.ix_(order, order)],
            self.start[order],
            self.log_weights[own],
            self.means[own],
            self.factors[own],
            self.locations[order],
            self.origins[own],
            self.scales[own],
            self.occupied[own],
            self.stages[order],
            None if self.effects is None else self.effects[order],
        )

    def follow(self, before, units):
        """Return the parameters in other units, given the current ones."""
        ratio = before.unit / units.unit
        return self.rescaled(ratio, (before.offset - units.offset) / units.unit)

    def rescaled(self, ratio, shift):
        """Return the parameters for rows transformed to ``rows * ratio + shift``."""
        means, locations = self.means * ratio, self.locations * ratio
        origins = self.origins * ratio
        if len(self.means) < len(self.start):
            locations = locations + shift
        else:
            means, origins = means + shift, origins + shift
        return self._replace(
            means=means,
            locations=locations,
            origins=origins,
            scales=self.scales * ratio**2,
            factors=self.factors / ratio,
        )


def covariances(factors):
    """Return covariances, the inverses of factor' factor."""
    inverses = np.linalg.inv(factors)
    return inverses @ inverses.swapaxes(-1, -2)


def precisions_of(factors, full):
    """Return the diagonals of factor' factor; factors are diagonal unless `full`."""
    if full:
        return np.einsum("...ef,...ef->...f", factors, factors)
    return factors.diagonal(axis1=-2, axis2=-1) ** 2


def hidden_first(factors, seen):
    """Return factors of the same precisions with the hidden features before those seen.

    They are upper triangular: the first rows are those of the hidden features given
    those seen, the last columns of the last rows those of the features seen, whose
    order is reversed. Orthogonal transformations are accurate for precisions that a
    matrix of covariances could not represent.
    """
    hidden = np.delete(np.arange(factors.shape[-1]), seen)
    return np.linalg.qr(factors[..., np.append(hidden, seen[::-1])], mode="r")


def mixture_of(parameters, model, features, rounding):
    """Return factors, means, locations, log weights and rounding in given features."""
    factors, means, locations = (
        parameters.factors,
        parameters.means,
        parameters.locations,
    )
    log_weights = parameters.log_weights
    if len(features) < model.n_features:
        of_features = np.ix_(features, features)
        if model.full:
            # Missing values are completed, so that all features have rounding errors.
            log_weights = log_weights - 0.5 * precisions_of(factors, True) @ rounding
            rounding = np.zeros_like(rounding)
            n = len(features)
            factors = hidden_first(factors, features)[..., : -n - 1 : -1, : -n - 1 : -1]
            signs = np.where(factors.diagonal(axis1=-2, axis2=-1) < 0, -1.0, 1.0)
            factors = np.ascontiguousarray(factors * signs[..., None])
        else:
            factors = np.ascontiguousarray(factors[(..., *of_features)])
        means = np.ascontiguousarray(means[..., features])
        locations = np.ascontiguousarray(locations[:, features])
        rounding = rounding[features]
    return factors, means, locations, log_weights, rounding, model.full


def densities_of(rows, parameters, model, uniforms=None):
    """Return densities of rows in each state, and atoms drawn for each state.

    Returns
    -------
    highest : ndarray of shape (n_rows,)
        Logarithm of the unit of the densities of a row.
    densities : ndarray of shape (n_states, n_rows)
        Densities in these units; 1 for a row that is missing.
    atoms : ndarray of shape (n_states, n_rows), or (n_states, 0) without `uniforms`
        Atom of each row given the state; -1 for a row that is missing.
    """
    k, n_rows = model.n_states, len(rows)
    highest, densities = np.empty(n_rows), np.empty((k, n_rows))
    atoms = np.empty((k, 0 if uniforms is None else n_rows), dtype=np.int64)
    if len(rows.groups) != 1 or rows.groups[0].index is not None:
        highest[:], densities[:], atoms[:] = 0.0, 1.0, -1
    uniforms = highest if uniforms is None else uniforms
    work = np.empty((k * model.n_atoms + 2, BLOCK))
    chosen = np.arange(model.n_atoms)
    for index, features, columns in rows.groups:
        mixture = mixture_of(parameters, model, features, rows.rounding)
        if index is None:
            found = highest, densities, atoms
            emission_densities(columns, *mixture, chosen, uniforms, *found, work)
            continue
        n = len(index)
        few = np.empty(n), np.empty((k, n)), np.empty((k, atoms.size and n), np.int64)
        emission_densities(columns, *mixture, chosen, uniforms[index], *few, work)
        highest[index], densities[:, index] = few[:2]
        if atoms.size:
            atoms[:, index] = few[2]
    return highest, densities, atoms
