"""Emissions of counts and of categories: their prior, rows and parameters.

Given its atom, features are independent, and the log probability of a row is linear in
what is known of the atom: ``design @ natural + base``. For a count y the design is y
and 1, the natural parameters are log(mean) and -mean; for a category the design is its
indicator, and the natural parameters are log probabilities. What is missing is 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ._dirichlet_process_conditionals import draw_dirichlet

# The mean of a count is gamma(COUNT_SHAPE) with a rate that each state learns for each
# feature: gamma(RATE_SHAPE), its own rate the mean of the feature over all rows. The
# probabilities of categories have Jeffreys' prior.
COUNT_SHAPE, RATE_SHAPE = 1.0, 1.0
CATEGORY_WEIGHT = 0.5
LARGEST_COUNT = 1e9  # its log probability has six digits
_TINY = np.finfo(float).tiny


def not_counts(X):
    """Return a value that is no count, and its column; None if there is none."""
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(X) & ((X < 0) | (np.floor(X) != X) | (X > LARGEST_COUNT))
    if not wrong.any():
        return None
    row, column = np.argwhere(wrong)[0]
    return X[row, column], column


class Counts(NamedTuple):
    """Rows of counts: `means` (n_features,) of the rows that are learnt."""

    means: np.ndarray

    @classmethod
    def of(cls, X):
        """Means of the features; 1 where all is zero or missing."""
        seen = ~np.isnan(X)
        means = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return cls(np.where(means > 0, means, 1.0))

    def rows(self, X, bounds):
        """Return the rows as a chain takes them; ValueError if they are no counts."""
        wrong = not_counts(X)
        if wrong is not None:
            raise ValueError(
                "emission='poisson' needs whole numbers from 0 to "
                f"{LARGEST_COUNT:g}, but X has {wrong[0]:g} in column {wrong[1]}."
            )
        seen = ~np.isnan(X)
        filled = np.where(seen, X, 0.0)
        base = -gammaln(filled + 1.0).sum(axis=1)
        # Square roots of counts have about the same variance everywhere.
        roots = (np.sqrt(X) - np.sqrt(self.means)) / 0.5
        design = np.hstack([filled, seen])
        return DiscreteRows(X, bounds, design, base, roots, self.means)

    learning_rows = rows

    def log_volume(self, X):
        """Zero for each row: probabilities have no unit."""
        return np.zeros(len(X))

    def restored(self, values):
        """Values of rows as they were given."""
        return values


class Categories(NamedTuple):
    """Rows of categories: `values`, sorted, of each feature."""

    values: tuple

    @classmethod
    def of(cls, X):
        """Return the distinct values of each feature; 0 where all are missing."""
        found = (np.unique(column[~np.isnan(column)]) for column in X.T)
        return cls(tuple(values if len(values) else np.zeros(1) for values in found))

    def rows(self, X, bounds):
        """Return the rows as a chain takes them; ValueError if a category is new."""
        codes, design = np.full(X.shape, np.nan), []
        for f, (column, values) in enumerate(zip(X.T, self.values, strict=True)):
            seen = ~np.isnan(column)
            place = np.searchsorted(values, column).clip(max=len(values) - 1)
            unknown = np.unique(column[seen & (values[place] != column)])
            if len(unknown):
                raise ValueError(
                    f"Found unknown categories {unknown.tolist()} in column {f}; "
                    f"emission='categorical' has learnt {values.tolist()}."
                )
            codes[seen, f] = place[seen]
            design.append((place[:, None] == np.arange(len(values))) & seen[:, None])
        design = np.hstack(design).astype(float)
        return DiscreteRows(codes, bounds, design, np.zeros(len(X)), design)

    learning_rows = rows

    def log_volume(self, X):
        """Zero for each row: probabilities have no unit."""
        return np.zeros(len(X))

    def restored(self, codes):
        """Values of rows as they were given."""
        columns = zip(codes.T, self.values, strict=True)
        return np.column_stack([values[code.astype(int)] for code, values in columns])


class DiscreteRows:
    """Sequences of counts or of codes of categories.

    `values` (n_rows, n_features), NaN where missing; `bounds` (n_sequences + 1,);
    `design` (n_rows, n_natural) and `base` (n_rows,) as in the module's docstring;
    `coordinates`: where starts are looked for; `means` of counts, (n_features,).
    """

    def __init__(self, values, bounds, design, base, coordinates, means=None):
        self.values, self.bounds = values, np.asarray(bounds, dtype=np.int64)
        self.design = np.ascontiguousarray(design, dtype=float)
        self.base, self.coordinates, self.means = base, coordinates, means

    def __len__(self):
        return len(self.values)


class DiscreteModel(NamedTuple):
    """The prior of a hidden Markov model of counts or categories.

    `n_categories`: of each feature; empty for counts. `means`: of counts; empty for
    categories.
    """

    n_states: int
    n_atoms: int
    n_features: int
    n_categories: tuple
    concentration: float
    transition_prior: float
    min_transition: float
    stationary: bool
    staged: bool = False

    shared = False
    full = False

    @property
    def emission(self):
        """The parameter `emission` that asks for it."""
        return "categorical" if self.n_categories else "poisson"

    @property
    def n_shapes(self):
        """Number of mixtures."""
        return self.n_states

    def units(self, X):
        """Return what rows are read with."""
        return Categories.of(X) if self.n_categories else Counts.of(X)

    def blocks(self):
        """Slice of the natural parameters of each feature of categories."""
        ends = np.cumsum(self.n_categories)
        return [slice(b - n, b) for n, b in zip(self.n_categories, ends, strict=True)]

    def draw_natural(self, sums, rates, rng):
        """Natural parameters of atoms given sums of their design.

        `sums` (n_states, n_atoms, n_natural); `rates` (n_states, n_features).
        """
        if self.n_categories:
            blocks = [
                draw_dirichlet(sums[..., block] + CATEGORY_WEIGHT, rng)
                for block in self.blocks()
            ]
            return np.log(np.concatenate(blocks, axis=-1).clip(_TINY))
        totals, counts = np.split(sums, 2, axis=-1)
        means = rng.standard_gamma(COUNT_SHAPE + totals) / (rates[:, None] + counts)
        means = means.clip(_TINY)
        return np.concatenate([np.log(means), -means], axis=-1)

    def draw_rates(self, natural, occupied, means, rng):
        """Rates of the prior of the means of counts given atoms with rows.

        `natural` (n_states, n_atoms, n_natural); `occupied` (n_states, n_atoms);
        `means` (n_features,) of all rows.
        """
        if self.n_categories:
            return np.zeros((self.n_states, 0))
        own = -natural[..., self.n_features :] * occupied[..., None]
        shape = RATE_SHAPE + COUNT_SHAPE * occupied.sum(axis=1, keepdims=True)
        drawn = rng.standard_gamma(np.broadcast_to(shape, own.sum(axis=1).shape))
        return drawn / (means + own.sum(axis=1))

    def log_new(self, rows, rates):
        """Log probability of rows in an atom of which nothing is known.

        Counts are negative binomial, categories uniform. `rates` (n_states,
        n_features); returns (n_states, n_rows).
        """
        if self.n_categories:
            sizes = np.concatenate([np.full(n, float(n)) for n in self.n_categories])
            log_probability = -(rows.design @ np.log(sizes))
            return np.tile(log_probability, (self.n_states, 1))
        counts, seen = np.split(rows.design, 2, axis=1)
        constant = (gammaln(counts + COUNT_SHAPE) - gammaln(COUNT_SHAPE) * seen).sum(1)
        logs = seen @ (COUNT_SHAPE * (np.log(rates) - np.log1p(rates))).T
        logs = logs - counts @ np.log1p(rates).T
        return (logs + (constant + rows.base)[:, None]).T

    def means(self, natural):
        """Means of counts in atoms."""
        return -natural[..., self.n_features :]


class DiscreteParameters(NamedTuple):
    """A point of the parameter space.

    `transitions` (n_states, n_states); `start` (n_states,); `log_weights` (n_states,
    n_atoms); `natural` (n_states, n_atoms, n_natural); `rates` (n_states, n_features),
    empty for categories; `occupied` (n_states, n_atoms); `stages` (n_states,).
    """

    transitions: np.ndarray
    start: np.ndarray
    log_weights: np.ndarray
    natural: np.ndarray
    rates: np.ndarray
    occupied: np.ndarray
    stages: np.ndarray | None = None

    def reordered(self, order):
        """Call state ``order[j]`` j, for all j."""
        transitions = self.transitions[np.ix_(order, order)]
        return DiscreteParameters(transitions, *(part[order] for part in self[1:]))

    def follow(self, before, units):
        """Return the same parameters: they are in no units of the rows."""
        return self
