"""Prior of a hidden Markov model with Dirichlet process mixture emissions."""

from typing import NamedTuple

import numpy as np

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
