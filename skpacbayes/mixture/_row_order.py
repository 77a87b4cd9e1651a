"""Rows that depend on their order: components are then pieces of a path."""

from itertools import chain

import numpy as np
from scipy.sparse import issparse

from .._base import first_named, named, warn_user
from .._repeated_rows import distinct_rows
from .._row_order import NEAR, are_sorted, autocorrelations, counts_rows, in_blocks
from .._sentinels import NAMED
from ._diagnostics import components_of
from ._product import ProductFamily
from ._regression import is_regression


def warn_of_order(fit, X, names, chosen):
    """Warn if consecutive rows of components are much closer than in random order.

    A column that counts the rows is named instead. With any other sorted column there
    is no warning: independent rows that were sorted by it cannot be told from rows with
    a column of times. Nor is there one for regressions, whose target follows inputs.

    Parameters
    ----------
    fit : Fit
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    names : sequence of str
        Names of the columns; empty if there are none.
    chosen : bool
        Whether the inverse temperature was chosen, which discounts some of such rows.
    """
    family = getattr(fit.mixture.family, "inner", fit.mixture.family)
    parts = [family]
    if isinstance(family, ProductFamily):
        parts = [part for _, part, _ in family.families]
    regression = any(map(is_regression, parts))
    if fit.n_components == 1 or issparse(X) or regression:
        return
    columns = range(X.shape[1])
    kinds = (family.columns_that_are(kind, columns) for kind in ("ordered", "nominal"))
    columns = np.array(sorted(chain(*kinds)))
    rows = in_blocks(X)
    rows = rows[np.r_[True, np.diff(distinct_rows(rows)) != 0]]  # copies come in turn
    values = rows[:, columns]
    in_order = columns[are_sorted(values)]
    counters = [column for column in in_order.tolist() if counts_rows(X[:, column])]
    if counters:
        called = named(counters, names)
        warn_user(
            f"Columns that count the rows, or tell their time: {called}. They increase "
            "or decrease by the same step from row to row, and components are "
            "intervals of them. Leave them out.",
        )
    if len(in_order):
        return
    near = autocorrelations(values, components_of(fit, rows))
    found = columns[near >= NEAR].tolist()
    if found:
        more = "" if chosen else "inverse_temperature='auto' if they return to a mean, "
        warn_user(
            f"Rows depend on their order: within the {fit.n_components} components, "
            "consecutive rows are much closer than in random order in the columns "
            f"{first_named(found, names, NAMED)} (autocorrelation of ranks up to "
            f"{near.max():.2g}). "
            "Ignore this if independent rows were sorted, by a group or a number. If "
            "they follow each other in time or space, or several are of the same unit, "
            "components may be pieces of a path or units, and n_components='auto' "
            "finds too many. Fit differences of rows if they are a walk or a trend, "
            f"use {more}DirichletProcessHMM for regimes, or one row for each unit.",
        )
