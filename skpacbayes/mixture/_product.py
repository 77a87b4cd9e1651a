"""Columns of several kinds, and the names of the families."""

import re
from copy import copy
from functools import partial

import numpy as np

from .._base import widened
from .._compat import validate_parameter_constraints
from ._categories import Binomial, Categorical
from ._directions import VonMisesFisher
from ._family import ExponentialFamily, PreparedFamily, defines_last
from ._normal_columns import LogNormal, Normal
from ._rates import Gamma, Poisson
from ._regression import Regression
from ._rows import as_slice, column_indices, variances_of
from ._scorers import SumScorer
from ._student import Student


class ProductFamily(PreparedFamily):
    """Columns of several kinds, independent within a component.

    Parameters
    ----------
    families : list of (name, family, columns), or list of str
        A name, a family (or its name) with linear statistics, and the indices of its
        columns; or their names, or a function of the rows that returns these, where the
        mixture is fitted to a data frame. Columns of no family are ignored, but must be
        numbers too. A list of names has one for each column; the columns of one name
        are described by one family of that name.
    """

    checked = False  # whether the families are valid parts without common columns

    def __init__(self, families):
        self.families = families

    def selected(self, X):
        """Return the columns of each family whose columns are a function of the rows.

        The function is as in :class:`~sklearn.compose.ColumnTransformer`.
        """
        found = {
            name: columns(X) for name, _, columns in self.parts() if callable(columns)
        }
        return {
            name: columns if isinstance(columns, slice) else np.ravel(columns).tolist()
            for name, columns in found.items()
        }

    def with_indices(self, names, n_features, selected):
        """Return the product with the indices of columns.

        They are given by name, or were `selected` by functions of the rows.
        """
        if self._has_one_for_each_column and len(self.families) != n_features:
            raise ValueError(
                f"family={self.families!r} is a family for each of "
                f"{len(self.families)} columns, but X has {n_features}."
            )
        families = []
        for name, family, columns in self.parts():
            asked = f"The family {name!r} has"
            chosen = selected.get(name, columns)
            own = column_indices(chosen, names, n_features, asked)
            if not own:
                raise ValueError(f"{asked} no column: name some, or leave it out.")
            if len(set(own)) < len(own):  # it would count twice
                raise ValueError(f"{asked} a column more than once: {chosen!r}.")
            families.append((name, family, own))
        product = copy(self)
        product.families = families
        product.slices = [as_slice(columns) for _, _, columns in families]
        return product

    @property
    def _has_one_for_each_column(self):
        """Whether the families are a list of names, one for each column."""
        names = [isinstance(each, str) for each in self.families]
        return bool(names) and all(names)

    @property
    def allows_missing(self):
        """Whether one of the families leaves out missing values."""
        return any(family.allows_missing for _, family, _ in self.parts())

    def columns_that_are(self, kind, columns):
        """Return those of the columns that are of a kind; ignored ones are of none."""
        parts = [part.columns_that_are(kind, own) for _, part, own in self.parts()]
        return [column for part in parts for column in part]

    def parts(self):
        """Return the families; a name is a family with its defaults."""
        triples = self.families
        if self._has_one_for_each_column:
            triples = [
                (name, name, [i for i, own in enumerate(self.families) if own == name])
                for name in dict.fromkeys(self.families)
            ]
        names = {
            each[0]
            for each in triples
            if isinstance(each, (tuple, list)) and len(each) == 3
        }
        if len(names) < max(1, len(triples)):
            raise ValueError(
                "A list of families needs a name for each column, or triples (name, "
                "family, columns) with different names, such as "
                '[("sizes", "normal", [0, 1]), ("visits", "poisson", [2])], but got '
                f"{self.families!r}."
            )
        return [
            (name, family_named(family), columns) for name, family, columns in triples
        ]

    def check_rows(self, X):
        """Let each family check its columns."""
        if self.checked:
            for (name, family, _), columns in zip(
                self.families, self.slices, strict=True
            ):
                self.check_part(name, family, columns, X)
            return
        taken = np.zeros(X.shape[1], dtype=int)
        for name, family, columns in self.parts():
            if not isinstance(family, ExponentialFamily):
                raise ValueError(
                    f"{type(family).__name__} cannot be part of a product: it is no "
                    "ExponentialFamily."
                )
            taken[family.described(columns)] += 1
            self.check_part(name, family, columns, X)
        if (taken > 1).any():
            raise ValueError(
                f"Column {int(taken.argmax())} of X is in more than one family."
            )

    def check_part(self, name, family, columns, X):
        """Let one family check its columns."""
        rows = X[:, columns]
        if not family.allows_missing and np.isnan(rows).any():
            raise ValueError(
                f"The columns of {name!r} contain NaN, which the family "
                f"{type(family).__name__} does not leave out."
            )
        try:
            family.check_rows(rows)
        except ValueError as error:
            raise refused(error, name, np.arange(X.shape[1])[columns]) from None

    def check_new_rows(self, X):
        """Let each family that has begun check its columns."""
        for (_, family, _), columns in zip(self.families, self.slices, strict=True):
            family.check_new_rows(X[:, columns])

    def begin(self, X, sample_weight=None):
        """Return the families with their priors."""
        product = copy(self)
        product.checked = True
        product.n_features = X.shape[1]
        families, widths = [], []
        for name, family, columns in self.parts():
            try:
                begun = family.begin(X[:, columns], sample_weight)
            except ValueError as error:
                raise refused(error, name, columns) from None
            begun.numbers = columns
            families.append((name, begun, columns))
            widths.append(begun.statistics(X[:1, columns]).shape[1])
        return product.with_families(families, widths)

    def with_families(self, families, widths):
        """Return the product of families that have begun, with so many statistics."""
        product = copy(self)
        product.families = families
        product.slices = [as_slice(columns) for _, _, columns in families]
        product.ends = np.cumsum(widths).tolist()
        return product

    def of(self, families):
        """Return the product of some of the families."""
        widths = np.diff(self.ends, prepend=0).tolist()
        known = zip(self.families, widths, strict=True)
        widths = [width for family, width in known if family in families]
        return self.with_families(families, widths)

    def blank(self, n_components, origin):
        """Posterior of `n_components` components that have seen no row."""
        return self.update(np.zeros((n_components, 2 + self.ends[-1])), None)

    def profile(self, X, sample_weight=None):
        """Side by side, each family's points with a total variance of one a column."""
        points = []
        for _, family, columns in self.families:
            part = family.profile(X[:, columns], sample_weight)
            spread = np.sqrt(variances_of(part, sample_weight).sum() / len(columns))
            points.append(part / (spread if spread > 0 else 1.0))
        return np.hstack(points)

    def initial_labels(self, X, weight, n_components, seed):
        """Return those of the first family that has some."""
        for _, family, columns in self.families:
            found = family.initial_labels(X[:, columns], weight, n_components, seed)
            if found is not None:
                return found
        return None

    def statistics(self, X):
        """Statistics of all families."""
        result, start = np.empty((len(X), self.ends[-1])), 0
        for (_, family, _), columns, end in zip(
            self.families, self.slices, self.ends, strict=True
        ):
            result[:, start:end] = family.statistics(X[:, columns])
            start = end
        return result

    def common_statistics(self, width):
        """Return what all rows without missing values have; NaN where they differ."""
        return np.concatenate([common for common, _ in self.of_complete_rows()])

    def write_varying(self, X, out):
        """Write the other statistics of such rows, (n_others, n_rows)."""
        start = 0
        for (common, write), columns in zip(
            self.of_complete_rows(), self.slices, strict=True
        ):
            end = start + np.count_nonzero(np.isnan(common))
            write(X[:, columns], out[start:end])
            start = end

    def of_complete_rows(self):
        """Return each family's `statistics_of_complete_rows`."""
        widths = np.diff(self.ends, prepend=0).tolist()
        return [
            family.statistics_of_complete_rows(width)
            for (_, family, _), width in zip(self.families, widths, strict=True)
        ]

    def each(self, statistics):
        """Return each family's part of the statistics."""
        parts = np.split(statistics[:, 1:-1], self.ends[:-1], axis=1)
        return [
            np.column_stack([statistics[:, 0], part, statistics[:, -1]])
            for part in parts
        ]

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        previous = [None] * len(self.ends) if previous is None else previous
        return tuple(
            family.update(part, before)
            for (_, family, _), part, before in zip(
                self.families, self.each(statistics), previous, strict=True
            )
        )

    def pairs(self, posterior):
        """Return each family with its part of the posterior."""
        families = [family for _, family, _ in self.families]
        return list(zip(families, posterior, strict=True))

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        parts = [family.expected(part) for family, part in self.pairs(posterior)]
        constants, coefficients = zip(*parts, strict=True)
        return sum(constants), np.hstack(coefficients)

    def warn_of(self, posterior):
        """Let each family look at its part."""
        for family, part in self.pairs(posterior):
            family.warn_of(part)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        return sum(family.divergence(part) for family, part in self.pairs(posterior))

    def adapted(self, posterior):
        """Return the families with the priors that the bound chooses."""
        product = copy(self)
        product.families = [
            (name, family.adapted(part), columns)
            for (name, family, columns), part in zip(
                self.families, posterior, strict=True
            )
        ]
        return product

    def less_assuming(self):
        """Return the families that assume less; None if there is none."""
        others = [family.less_assuming() for _, family, _ in self.families]
        if all(other is None for other in others):
            return None
        product = copy(self)
        product.families = [
            (name, other or family, columns)
            for (name, family, columns), other in zip(
                self.families, others, strict=True
            )
        ]
        return product

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        if not defines_last(self, "scorer", "statistics", "expected"):
            return super().scorer(posterior, log_weights)
        nothing = np.zeros(len(log_weights))
        scorers = [
            family.scorer(part, log_weights if i == 0 else nothing)
            for i, (family, part) in enumerate(self.pairs(posterior))
        ]
        return SumScorer(list(zip(scorers, self.slices, strict=True)))

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        densities = [
            family.prepared_density(part) for family, part in self.pairs(posterior)
        ]
        parts = list(zip(densities, self.slices, strict=True))
        return lambda X: sum(density(X[:, columns]) for density, columns in parts)

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        for (family, part), own in zip(
            self.pairs(posterior), self.each(statistics), strict=True
        ):
            family.check_statistics(own, part)

    def draw(self, posterior, k, size, generator):
        """Rows of component k; ignored columns are NaN."""
        rows = np.full((size, self.n_features), np.nan)
        parts = list(zip(self.families, posterior, strict=True))
        parts.sort(key=lambda part: is_conditional(*part[0]))
        for (_, family, columns), part in parts:
            given = rows[:, columns]
            rows[:, columns] = family.completed(part, k, given, generator)
        return rows

    def attributes(self, posterior):
        """Return the families' arrays, as name__key."""
        return {
            f"{name}__{key}": value
            for (name, family, _), part in zip(self.families, posterior, strict=True)
            for key, value in family.attributes(part).items()
        }


def refused(error, name, columns):
    """Return the error of a part, with its column numbers replaced by those of X."""
    words = re.sub(
        r"(?i)\b(column )(\d+)(?= of X)",
        lambda found: f"{found[1]}{columns[int(found[2])]}",
        str(error),
    )
    return ValueError(f"In the columns of {name!r}: {words}")


def check_parameters(family):
    """Raise a ValueError that names a parameter of the family with a wrong value."""
    if isinstance(family, ProductFamily):
        for _, part, _ in family.parts():
            check_parameters(part)
        return
    if isinstance(family, type):
        name = family.__name__
        raise ValueError(f"The family is the class {name}: give an object, {name}().")
    constraints = getattr(family, "_parameter_constraints", None)  # users' have none
    if constraints:
        given = family.get_params(deep=False)
        validate_parameter_constraints(constraints, given, type(family).__name__)


def family_named(family):
    """Return a family; a name gives the family with its default parameters."""
    if not isinstance(family, str):
        return widened(family)
    if family not in FAMILIES:
        raise ValueError(
            f"There is no family {family!r}: choose one of {', '.join(FAMILIES)}."
        )
    return FAMILIES[family]()


def is_conditional(name, family, columns):
    """Return whether the density of a family is conditional on some columns."""
    return len(family.described(columns)) < len(columns)


FAMILIES = {
    "normal": Normal,
    "lognormal": LogNormal,
    "poisson": Poisson,
    "regression": Regression,
    "exponential": Gamma,
    "gamma": partial(Gamma, "auto"),
    "bernoulli": Binomial,
    "categorical": Categorical,
    "student": Student,
    "von_mises_fisher": VonMisesFisher,
}
