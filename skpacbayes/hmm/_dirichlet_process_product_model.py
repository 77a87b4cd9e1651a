"""Emissions whose columns are of several kinds: their prior, rows and parameters.

Given its atom, features are independent: each is normal, a count or a category. The log
probability of counts and categories is linear in what is known of the atom: ``design @
natural + base``. For a count y the design is y and 1, the natural parameters are
log(mean) and -mean; for a category the design is its indicator, and the natural
parameters are log probabilities. Entries of missing values are 0. Natural parameters
come in the order of `parts`: log means, negative means, and the tables one after the
other. Normal features have the prior, and the parameters, of states with shapes of
their own and diagonal covariances.
"""

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._base import first_named, shown
from ._dirichlet_process_model import (
    LOCATION_VARIANCE,
    MEAN_COUNT,
    SCALE_RATE,
    SCALE_SHAPE,
    SHAPE,
    Model,
    Parameters,
)
from ._dirichlet_process_random import draw_dirichlet, draw_standard_gamma
from ._dirichlet_process_series import Rows, Units, units_of

# The mean of a count is gamma(COUNT_SHAPE) with a rate that each state learns for each
# feature: gamma(RATE_SHAPE), its own rate the mean of the feature over all rows. The
# probabilities of categories have Jeffreys' prior.
COUNT_SHAPE, RATE_SHAPE = 1.0, 1.0
CATEGORY_WEIGHT = 0.5
LARGEST_COUNT = 1e9  # its log probability has six digits
KINDS = "normal", "poisson", "categorical"
NAMED = 10  # largest number of categories that a message names
_TINY = np.finfo(float).tiny


class UnknownValues(ValueError):
    """Values without a probability in a model."""


def kinds_of(emission, n_features):
    """Return the kind of each feature; None if `emission` is a mixture of normals."""
    if isinstance(emission, str):
        return (emission,) * n_features if emission in KINDS else None
    kinds = tuple(emission)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(
            f"emission has {unknown[0]!r} for a feature: choose of {list(KINDS)}."
        )
    if len(kinds) != n_features:
        raise ValueError(
            f"emission={list(kinds)} is a kind for each of {len(kinds)} features, but "
            f"X has {n_features}."
        )
    return kinds


def columns_of(kinds):
    """Return the indices of the features of each of `KINDS`."""
    return [np.flatnonzero([own == kind for own in kinds]) for kind in KINDS]


def not_counts(X):
    """Return a value that is no count, and its column; None if there is none."""
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(X) & ((X < 0) | (np.floor(X) != X) | (X > LARGEST_COUNT))
    if not wrong.any():
        return None
    row, column = np.argwhere(wrong)[0]
    return X[row, column], column


def check_counts(X, kinds):
    """Raise ValueError if features that should be counts are not."""
    columns = columns_of(kinds)[1]
    wrong = not_counts(X[:, columns])
    if wrong is not None:
        value, column = wrong
        raise UnknownValues(
            f"emission='poisson' needs whole numbers from 0 to {LARGEST_COUNT:g}, but "
            f"X has {shown(value)} in column {columns[column]}."
        )


class ProductUnits(NamedTuple):
    """Units and values of the features.

    `kinds`: of each feature; `normal`: zeros and units of normal features; `means` of
    counts; `values`: of each categorical feature its sorted categories.
    """

    kinds: tuple
    normal: Units
    means: np.ndarray
    values: tuple

    @classmethod
    def of(cls, X, kinds):
        """Return those of rows; of missing features a mean is 1, a category 0."""
        normal, counts, categories = (X[:, columns] for columns in columns_of(kinds))
        seen = ~np.isnan(counts)
        totals = np.where(seen, counts, 0.0).sum(axis=0)
        means = totals / np.maximum(seen.sum(axis=0), 1)
        found = (np.unique(column[~np.isnan(column)]) for column in categories.T)
        values = tuple(own if len(own) else np.zeros(1) for own in found)
        return cls(kinds, units_of(normal), np.where(means > 0, means, 1.0), values)

    def rows(self, X, bounds, rounding=0.0):
        """Return the rows for a chain; ValueError for bad counts or new categories."""
        check_counts(X, self.kinds)
        normal, counts, categories = columns_of(self.kinds)
        values, indicators = X.copy(), []
        values[:, normal] = self.normal.standard(X[:, normal])
        for f, known in zip(categories, self.values, strict=True):
            codes = codes_of(X[:, f], known, f)
            values[:, f] = codes
            indicators.append(codes[:, None] == np.arange(len(known)))
        seen = ~np.isnan(X[:, counts])
        filled = np.where(seen, X[:, counts], 0.0)
        # Square roots of counts have about the same variance everywhere.
        roots = (np.sqrt(X[:, counts]) - np.sqrt(self.means)) / 0.5
        return ProductRows(
            values,
            bounds,
            np.hstack([filled, seen, *indicators]),
            -gammaln(filled + 1.0).sum(axis=1),
            np.hstack([values[:, normal], roots, *indicators]),
            self.means,
            Rows(np.ascontiguousarray(values[:, normal]), bounds, rounding),
            values[:, np.union1d(normal, counts)],
        )

    def learning_rows(self, X, bounds):
        """Return the rows, with what rounding adds to squares of normal features."""
        return self.rows(X, bounds, self.normal.rounding)

    def categories(self):
        """Categories of each feature, sorted; none of numbers, [] without any."""
        if not self.values:
            return []
        found = [np.empty(0)] * len(self.kinds)
        for f, known in zip(columns_of(self.kinds)[2], self.values, strict=True):
            found[f] = known.copy()
        return found

    def log_volume(self, X):
        """Return the log of the product of the units of observed values, per row."""
        return self.normal.log_volume(X[:, columns_of(self.kinds)[0]])

    def restored(self, values):
        """Values of rows as they were given; NaN stays."""
        normal, _, categories = columns_of(self.kinds)
        restored = values.copy()
        restored[..., normal] = self.normal.restored(values[..., normal])
        for f, known in zip(categories, self.values, strict=True):
            codes = np.nan_to_num(values[..., f]).astype(int)
            restored[..., f] = np.where(np.isnan(values[..., f]), np.nan, known[codes])
        return restored


def codes_of(column, known, f):
    """Places of values of feature f among those known, NaN where missing."""
    place = np.searchsorted(known, column).clip(max=len(known) - 1)
    seen = ~np.isnan(column)
    unknown = np.unique(column[seen & (known[place] != column)])
    if len(unknown):
        new = first_named(unknown.tolist(), (), NAMED)
        learnt = first_named(known.tolist(), (), NAMED)
        raise UnknownValues(
            f"Found unknown categories {new} in column {f}; emission='categorical' has "
            f"learnt {learnt}. Give NaN in their place, or learn rows that have them."
        )
    return np.where(seen, place, np.nan)


class ProductRows:
    """Sequences of rows whose columns are of several kinds.

    `values` (n_rows, n_features), NaN where missing, in standard units or codes of
    categories; `bounds` (n_sequences + 1,); `design` (n_rows, n_natural) and `base`
    (n_rows,) as in the module's docstring; `coordinates`: where starts are looked for,
    normal features first; `means` of counts; `normal`: Rows of the normal features;
    `numbers`: the values that are no categories; `missing`: indices of rows
    without values.
    """

    inputs = None  # to the transitions, of each row

    def __init__(
        self, values, bounds, design, base, coordinates, means, normal, numbers
    ):
        self.values, self.bounds = values, np.asarray(bounds, dtype=np.int64)
        self.design = np.ascontiguousarray(design, dtype=float)
        self.base, self.coordinates, self.means = base, coordinates, means
        self.normal, self.numbers = normal, numbers
        self.missing = np.flatnonzero(np.isnan(values).all(axis=1))

    def __len__(self):
        return len(self.values)


class ProductModel(NamedTuple):
    """The prior of a hidden Markov model whose features are of several kinds.

    `kinds`: of each feature; `n_categories`: of each categorical one. The last five are
    the prior of normal features, as in `Model`.
    """

    n_states: int
    n_atoms: int
    kinds: tuple
    n_categories: tuple
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

    shared = False
    full = False

    @property
    def emission(self):
        """Corresponding value of the parameter `emission`."""
        return self.kinds[0] if len(set(self.kinds)) == 1 else list(self.kinds)

    @property
    def n_shapes(self):
        """Number of mixtures."""
        return self.n_states

    @property
    def n_features(self):
        """Number of features."""
        return len(self.kinds)

    @property
    def n_counts(self):
        """Number of features that are counts."""
        return self.kinds.count("poisson")

    @property
    def normals(self):
        """The model of the normal features alone."""
        return Model(
            self.n_states,
            self.n_atoms,
            self.kinds.count("normal"),
            *(self.shared, self.full),
            *self[4:],
        )

    def units(self, X):
        """Return the units of rows."""
        return ProductUnits.of(X, self.kinds)

    def parts(self, natural):
        """Split natural parameters, or a design, by what they belong to."""
        n, twice = self.n_counts, 2 * self.n_counts
        return natural[..., :n], natural[..., n:twice], natural[..., twice:]

    def means(self, natural):
        """Means of counts in atoms."""
        return -self.parts(natural)[1]

    def tables(self, natural):
        """Split the parameters of categories by feature."""
        of_categories, stops = self.parts(natural)[2], accumulate(self.n_categories)
        return [
            of_categories[..., stop - n : stop]
            for n, stop in zip(self.n_categories, stops, strict=True)
        ]

    def draw_natural(self, sums, rates, rng):
        """Natural parameters of atoms given sums of their design.

        `sums` (n_states, n_atoms, n_natural); `rates` (n_states, n_counts).
        """
        totals, counts, _ = self.parts(sums)
        means = draw_standard_gamma(COUNT_SHAPE + totals, rng)
        means /= rates[:, None] + counts
        means = np.maximum(means, _TINY)
        tables = [
            np.log(draw_dirichlet(own + CATEGORY_WEIGHT, rng).clip(_TINY))
            for own in self.tables(sums)
        ]
        return np.concatenate([np.log(means), -means, *tables], axis=-1)

    def draw_rates(self, natural, occupied, means, rng):
        """Rates of the prior of the means of counts given atoms with rows.

        `natural` (n_states, n_atoms, n_natural); `occupied` (n_states, n_atoms);
        `means` (n_counts,) of all rows.
        """
        total = np.add.reduce(self.means(natural) * occupied[..., None], axis=1)
        n_known = np.add.reduce(occupied, axis=1, keepdims=True)
        shapes = np.repeat(RATE_SHAPE + COUNT_SHAPE * n_known, total.shape[1], axis=1)
        return draw_standard_gamma(shapes, rng) / (means + total)

    def log_new(self, rows, rates):
        """Return the prior predictive log probability of counts and categories.

        Counts are negative binomial, categories uniform. `rates` (n_states, n_counts);
        returns (n_states, n_rows).
        """
        counts, seen, indicators = self.parts(rows.design)
        constant = (gammaln(counts + COUNT_SHAPE) - gammaln(COUNT_SHAPE) * seen).sum(1)
        logs = seen @ (COUNT_SHAPE * (np.log(rates) - np.log1p(rates))).T
        logs = logs - counts @ np.log1p(rates).T
        logs = logs + (constant + rows.base)[:, None]
        sizes = np.repeat(self.n_categories, self.n_categories).astype(float)
        return (logs - (indicators @ np.log(sizes))[:, None]).T


class ProductParameters(NamedTuple):
    """A point of the parameter space.

    `transitions` (n_states, n_states); `start` (n_states,); `log_weights` (n_states,
    n_atoms); `natural` (n_states, n_atoms, n_natural); `rates` (n_states, n_counts);
    `occupied` (n_states, n_atoms); `stages` (n_states,); `means`, `factors`, `origins`
    and `scales` of the normal features, and `effects`, as in `Parameters`.
    """

    transitions: np.ndarray
    start: np.ndarray
    log_weights: np.ndarray
    natural: np.ndarray
    rates: np.ndarray
    occupied: np.ndarray
    stages: np.ndarray
    means: np.ndarray
    factors: np.ndarray
    origins: np.ndarray
    scales: np.ndarray
    effects: np.ndarray | None = None

    def normals(self):
        """Parameters of the model of the normal features alone."""
        return Parameters(
            *self[:3],
            self.means,
            self.factors,
            np.zeros_like(self.origins),
            self.origins,
            self.scales,
            self.occupied,
            self.stages,
        )

    def reordered(self, order):
        """Relabel state ``order[j]`` as j, for all j."""
        transitions = self.transitions[np.ix_(order, order)]
        others = (None if part is None else part[order] for part in self[1:])
        return ProductParameters(transitions, *others)

    def follow(self, before, units):
        """Return the parameters in other units, given the current ones."""
        moved = self.normals().follow(before.normal, units.normal)
        return self._replace(
            means=moved.means,
            factors=moved.factors,
            origins=moved.origins,
            scales=moved.scales,
        )
