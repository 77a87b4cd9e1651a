"""Columns that copy each other, where the family assumes independent columns.

A copy of a column is counted as new evidence, so that responsibilities are too sharp
and n_components="auto" finds too many components. Within components, two columns are
copies if their ranks are nearly proportional, or if they have few values and are equal
up to a relabelling of these. Ranks ignore shifts, units, monotone transforms and
outliers. One categorical column may also predict another nearly without error, as the
town predicts the country.
"""

import numpy as np
from scipy.sparse import csc_array, issparse

from .._base import warn_user
from ._diagnostics import components_of
from ._gaussian_families import GaussianFamily
from ._normal_columns import Normal
from ._outliers import OutlierFamily
from ._search import seeding_part

LOOKED_AT = 200, 4000  # smallest and largest number of rows compared
PRODUCTS = 2e9  # multiplications that limit this number
AT_ONCE = 500  # columns that are compared with all others at a time
NEARLY = 0.95  # correlation of the ranks within components
FEWEST = 30  # least number of rows minus components: else correlations are by chance
VARIED = 10  # least number of rows without the modal value of their component
FEW_VALUES = 20  # most values of columns that are compared up to a relabelling
ROWS_OF_CODES = 100  # least number of rows for this
COPIED_COUNTS = 0.1  # share of all counts in copies of columns of counts
TOLD = 0.9  # least share of prediction errors that another category avoids
MOST_NAMED = 80  # largest number of categorical columns compared in this way
GROUPS = 10  # largest number of groups of columns that are hidden
NAMED = 3  # largest number of pairs in the message


def warn_of_copied_columns(fit, X, weight, names):
    """Warn of columns that copy each other within the components.

    Parameters
    ----------
    fit : Fit
    X, weight : rows and weights
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    family = fit.mixture.family
    columns = family.columns_that_are("independent", range(X.shape[1]))
    if issparse(X) or len(columns) < 2:
        return
    most = int(np.clip(PRODUCTS / len(columns) ** 2, *LOOKED_AT))
    rows, w = seeding_part(X, weight, 1, 0, most=most)
    kinds = [
        np.isin(columns, family.columns_that_are(kind, columns))
        for kind in ("nominal", "continuous")
    ]
    pairs = copies(fit, rows, w, np.array(columns), *kinds)
    if not pairs:
        return
    best = sorted(pairs, key=lambda pair: (-pairs[pair], pair))
    remarks = [
        " (equal)" if pairs[pair] > 1 else f" ({pairs[pair]:.3f})" for pair in best
    ]
    text = listed([(columns[i], columns[j]) for i, j in best], names, remarks)
    warn_user(
        "Columns are nearly copies within components (rank correlation, or the share "
        f"of errors about names that one avoids in telling the other): {text}. "
        "Given the component they are taken as independent, so that a copy counts as "
        "new evidence: the probabilities of components are too extreme, and "
        "n_components='auto' finds too many. Leave out one column of each pair"
        f"{advice(family)}, or use more components if the columns tell groups apart.",
    )


def warn_of_copied_counts(family, X, weight, names):
    """Warn of columns of counts that are proportional, with many of all counts.

    Draws are taken as independent given the component: a copy counts as new draws.

    Parameters
    ----------
    family : Family
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    weight : ndarray or None
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    if not family.may_repeat or X.shape[0] < FEWEST:
        return
    table = csc_array(X)
    weight = np.ones(X.shape[0]) if weight is None else weight
    totals, first, pairs, copied = weight @ table, {}, [], 0.0
    for column in range(X.shape[1]):
        part = slice(*table.indptr[column : column + 2])
        rows, counts = table.indices[part], table.data[part]
        rows, counts = rows[counts > 0], counts[counts > 0]
        if len(rows) < VARIED:
            continue
        key = rows.tobytes(), (counts / counts[0]).round(9).tobytes()
        one = first.setdefault(key, column)
        if one != column:
            pairs.append((one, column))
            copied += min(totals[one], totals[column])
    if not pairs or copied < COPIED_COUNTS * totals.sum():
        return
    text = listed(pairs, names, [""] * len(pairs))
    warn_user(
        f"Columns are equal, or multiples of each other: {text}, together "
        f"{100 * copied / totals.sum():.2g} % of all counts. A copy counts as new "
        "draws: the probabilities of components are too extreme, and "
        "n_components='auto' finds too many. Leave out one column of each pair.",
    )


def listed(pairs, names, remarks):
    """Return a text that names the first pairs of columns, each with its remark."""
    text = ", ".join(
        f"columns {called(i, names)} and {called(j, names)} of X{remark}"
        for (i, j), remark in list(zip(pairs, remarks, strict=True))[:NAMED]
    )
    return text + (f", and {len(pairs) - NAMED} more pairs" if pairs[NAMED:] else "")


def copies(fit, X, weight, columns, nominal, continuous):
    """Return the pairs of columns that copy each other within components.

    Components that formed on copied columns have hardly any variation in them. Columns
    that are copies among all rows are therefore compared again, within the components
    predicted from the other columns, without those that are as similar.

    Parameters
    ----------
    fit : Fit
    X, weight : rows and weights
    columns : ndarray of int
        Columns to be compared.
    nominal, continuous : ndarrays of bool
        Which of them are categorical, and which are real numbers.

    Returns
    -------
    pairs : dict of (int, int) to float
        Indices in `columns`, and the absolute value of the rank correlation; infinite
        where the values are equal up to a relabelling.
    """
    table = Table(X[:, columns], weight, nominal, continuous)
    found = table.pairs(components_of(fit, X))
    if not fit.mixture.family.allows_missing:
        return found
    alike, seen = table.pairs(np.zeros(len(X), dtype=np.intp)), set()
    for pair in sorted(alike, key=lambda pair: (-alike[pair], pair)):
        group = as_alike(pair, alike)
        whole = len(group) == len(columns) and np.isfinite(alike[pair])
        if pair in found or group in seen or whole or len(seen) == GROUPS:
            continue
        seen.add(group)
        others = X.copy()
        others[:, columns[sorted(group)]] = np.nan
        hidden = table.pairs(components_of(fit, others))
        found |= {each: r for each, r in hidden.items() if group.issuperset(each)}
    return found


def as_alike(pair, alike):
    """Return the pair, and the columns whose 1 - r is at most twice as large."""
    least = 2 * alike[pair] - 1
    near = [each for each, r in alike.items() if r >= least and {*each} & {*pair}]
    return frozenset(pair).union(*near)


class Table:
    """Columns to be compared within components.

    Parameters
    ----------
    X, weight : rows and weights
    nominal, continuous : ndarrays of bool
        Which columns are categorical, and which are real numbers: these are compared
        only if enough rows differ.
    """

    def __init__(self, X, weight, nominal, continuous):
        self.X, self.weight = X, weight
        self.there = ~np.isnan(X)
        sizes = n_values(X)
        differ = len(np.unique(X[:, continuous], axis=0)) >= FEWEST
        self.ordered = (~nominal | (sizes <= 2)) & (~continuous | differ)
        named = np.flatnonzero(nominal & (sizes > 1) & (sizes <= FEW_VALUES))
        self.names = {
            column: np.unique(X[:, column], return_inverse=True)[1].reshape(-1)
            for column in named[:MOST_NAMED]
        }
        coded = np.flatnonzero((sizes <= FEW_VALUES) & (~continuous | differ))
        enough = weight.sum() >= ROWS_OF_CODES
        self.equal = equal_pairs(X, coded) if enough else []

    def pairs(self, owners):
        """Return the pairs that copy each other, given the components of the rows."""
        ranks, varied = ranks_within(self.X, self.weight, owners)
        varied, pairs = varied >= VARIED, {}
        if self.weight.sum() - len(np.unique(owners)) >= FEWEST:
            looked_at = np.flatnonzero(self.ordered & varied)
            pairs = correlated_pairs(ranks, self.there, self.weight, looked_at)
        if self.weight.sum() >= ROWS_OF_CODES:
            names = {i: codes for i, codes in self.names.items() if varied[i]}
            pairs = told_pairs(names, owners, self.weight) | pairs
        return pairs | {pair: np.inf for pair in self.equal if varied[list(pair)].all()}


def advice(family):
    """Return advice on a mixture with covariances, or an empty text."""
    if isinstance(family, OutlierFamily):
        family = family.inner
    if isinstance(family, GaussianFamily):
        return ', or use covariance_type="full"'
    if type(family) is Normal:
        return ", or use TemperedVBGaussianMixture, whose covariances are full"
    return ""


def called(column, names):
    """Return the index of a column, and its name if it has one."""
    return f"{column} ({names[column]!r})" if len(names) else f"{column}"


def ranks_within(X, weight, owners):
    """Return the ranks of the values among those of their component.

    Returns
    -------
    ranks : ndarray like X
        Weighted mean ranks, centred, as shares of the component; zero where a value is
        missing.
    varied : ndarray of shape (n_features,)
        Weight of the values that are not the mode of their component.
    """
    ranks, varied = np.zeros(X.shape), np.zeros(X.shape[1])
    for k in np.unique(owners):
        members = np.flatnonzero(owners == k)
        values = X[members]
        order = np.argsort(values, axis=0)
        values = np.take_along_axis(values, order, axis=0)
        masses = np.where(np.isnan(values), 0.0, weight[members][order])
        through = masses.cumsum(axis=0)
        new = np.ones(values.shape, dtype=bool)
        new[1:] = values[1:] != values[:-1]
        at = np.arange(len(members))[:, None]
        first = np.maximum.accumulate(np.where(new, at, 0), axis=0)
        last = np.where(np.vstack([new[1:], new[:1] | True]), at, len(members))
        last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
        below = np.take_along_axis(through - masses, first, axis=0)
        above = np.take_along_axis(through, last, axis=0)
        total = np.maximum(through[-1], np.finfo(float).tiny)
        centered = 0.5 * (below + above - total) / total
        centered[masses == 0] = 0.0
        np.put_along_axis(ranks, members[order], centered, axis=0)
        varied += through[-1] - (above - below).max(axis=0)
    return ranks, varied


def n_values(X):
    """Return the number of distinct values of each column."""
    ordered = np.sort(X, axis=0)
    steps = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[1:])
    return steps.sum(axis=0) + ~np.isnan(ordered[0])


def correlated_pairs(ranks, there, weight, columns):
    """Return the pairs of columns whose ranks are nearly proportional.

    Missing values (not `there`) are left out, pair by pair.

    Returns
    -------
    pairs : dict of (int, int) to float
        Absolute values of the correlations.
    """
    pairs, ranks = {}, ranks[:, columns]
    there, squares = there[:, columns].astype(float), weight[:, None] * ranks**2
    weighted = weight[:, None] * ranks
    for start in range(0, len(columns), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        products = weighted[:, part].T @ ranks
        scale = (squares[:, part].T @ there) * (there[:, part].T @ squares)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.abs(products) / np.sqrt(scale)
        for i, j in np.argwhere(found >= NEARLY):
            if start + i < j:
                pair = int(columns[start + i]), int(columns[j])
                pairs[pair] = min(float(found[i, j]), 1.0)
    return pairs


def told_pairs(names, owners, weight):
    """Return the pairs of categorical columns of which one predicts the other.

    A prediction is right if it is the most frequent category among the other rows of
    the same component with the same category in the other column.

    Parameters
    ----------
    names : dict of int to ndarray of int
        Codes of the categories of columns; a missing value is a category too.
    owners : ndarray of int
        Components of the rows.
    weight : ndarray of shape (n_rows,)

    Returns
    -------
    pairs : dict of (int, int) to float
        Share of the prediction errors that knowing the other column avoids.
    """
    pairs, total = {}, weight.sum()
    alone = {i: told_right(owners, codes, weight) for i, codes in names.items()}
    for i, of_first in names.items():
        cells = owners * (of_first.max() + 1) + of_first
        for j, of_second in names.items():
            errors = total - alone[j]
            if i == j or errors < VARIED:
                continue
            told = (told_right(cells, of_second, weight) - alone[j]) / errors
            if told >= TOLD:
                pair = min(i, j), max(i, j)
                pairs[pair] = max(told, pairs.get(pair, 0.0))
    return pairs


def told_right(cells, codes, weight):
    """Return the weight of rows with the modal code of the other rows of their cell."""
    size = codes.max() + 1
    table = np.bincount(cells * size + codes, weight, (cells.max() + 1) * size)
    table = table.reshape(-1, size)
    top = table.argmax(axis=1)[:, None]
    most = np.take_along_axis(table, top, axis=1)
    np.put_along_axis(table, top, 0.0, axis=1)
    right = (most - 1 >= table.max(axis=1, keepdims=True)) & (most > 1)
    return most[right].sum()


def equal_pairs(X, columns):
    """Return the pairs of columns that are equal up to a relabelling of their values.

    Values are coded by their first appearance; a missing value is one too. Of several
    equal columns, each is paired with the first.
    """
    pairs, groups = [], {}
    for column in columns:
        _, first, codes = np.unique(
            X[:, column], return_index=True, return_inverse=True
        )
        codes = np.argsort(np.argsort(first))[codes.reshape(-1)]
        key = codes.astype(np.int8).tobytes()
        one = groups.setdefault(key, int(column))
        if one != column:
            pairs.append((one, int(column)))
    return pairs
