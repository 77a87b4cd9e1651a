"""Sequences of rows, and their standard units."""

from typing import NamedTuple

import numpy as np

from .._base import warn_user
from .._validation import refuse_hidden, refuse_missing_labels

_IQR_OF_NORMAL = 1.3489795003921634  # interquartile range of a standard normal
_FARTHEST = 1e100  # from zero, in standard units
_LEAST_GAP = 1e-3  # least gap between neighbouring values, in standard units


def sequence_bounds(n_rows, lengths=None, groups=None):
    """Return the first row of each sequence, then the number of rows."""
    if lengths is not None and groups is not None:
        raise ValueError("Give lengths or groups, not both.")
    if groups is not None:
        refuse_missing_labels("groups", groups, numbers=True)
        groups = np.asarray(groups)
        if groups.shape != (n_rows,):
            raise ValueError(
                f"groups has shape {groups.shape}, but X has {n_rows} rows."
            )
        cuts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        bounds = np.concatenate([[0], cuts, [n_rows]]).astype(np.int64)
        _warn_of_scattered(groups, bounds)
        return bounds
    if lengths is None:
        return np.array([0, n_rows])
    refuse_hidden(lengths, "lengths")
    lengths = np.asarray(lengths)
    whole = lengths.ndim == 1 and lengths.dtype.kind in "iuf"
    advice = ""
    if lengths.shape == (n_rows,):
        advice = " Give the label of the sequence of each row as groups."
    if not (whole and (lengths >= 1).all() and (lengths == np.floor(lengths)).all()):
        given = lengths.tolist()
        if lengths.size > 10:  # those of a long series would fill the screen
            given = f"{lengths.ravel()[:10].tolist()} and {lengths.size - 10} more"
        raise ValueError(
            "lengths should be positive integers, one for each sequence as in "
            f"[{n_rows}], got {given}.{advice}"
        )
    if lengths.sum() != n_rows:
        raise ValueError(
            f"lengths sum to {int(lengths.sum())}, but X has {n_rows} rows.{advice}"
        )
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# What to do instead, in `fit` and in `partial_fit`.
BY_NAME = "give the lengths of sequences by their name, lengths="
ONE_SEQUENCE = "partial_fit continues the last sequence; fit takes several"


def refuse_lengths_as_target(y, n_rows, remedy=BY_NAME):
    """Raise ValueError for a target with another number of values than rows.

    In hmmlearn the second argument of `fit` and of `score` is `lengths`.
    """
    if y is not None and np.ndim(y) == 1 and len(y) != n_rows:
        raise ValueError(
            f"y has {len(y)} values, but X has {n_rows} rows, and y is ignored: "
            f"{remedy}."
        )


def _warn_of_scattered(groups, bounds):
    """Warn if most sequences are single rows whose label other sequences have too."""
    n_labels, n_sequences = len(set(groups.tolist())), len(bounds) - 1
    n_single = np.count_nonzero(np.diff(bounds) == 1)
    if 2 * n_single > n_sequences >= 2 * n_labels:
        warn_user(
            f"groups has {n_labels} labels in {n_sequences} sequences, of which "
            f"{n_single} are single rows: only consecutive rows with equal labels are "
            "a sequence. Sort the rows of X by groups, and by time within them."
        )


class Series:
    """Sequences of rows; a longer series shares the memory of the shorter one.

    `bounds` (n_sequences + 1,): first row of each sequence, and the number of rows;
    `n_dropped`: rows before these that were dropped; `inputs` (n_rows, n_inputs) to
    the transitions, in standard units, or None. A series with inputs cannot be
    extended.
    """

    def __init__(self, X, bounds, n_dropped=0, inputs=None):
        self._buffer = np.array(X)
        self._used = [len(X)]  # rows of the buffer that some series has
        self._first, self._stop = 0, len(X)
        self.bounds, self.n_dropped = bounds, n_dropped
        self.inputs = inputs

    def __len__(self):
        return self._stop - self._first

    @property
    def rows(self):
        """All rows that are kept, (n_rows, n_features)."""
        return self._buffer[self._first : self._stop]

    def last(self, units):
        """Return the rows of the last sequence in given units."""
        first = self.bounds[-2]
        rows = units.rows(self.rows[first:], [0, len(self) - first])
        if self.inputs is not None:
            rows.inputs = self.inputs[first:]
        return rows

    @property
    def n_seen(self):
        """Number of rows, dropped ones included."""
        return self.n_dropped + len(self)

    def extended(self, X, most=None):
        """Return the series with the rows X appended to the last sequence.

        `most`: number of rows to keep, the last ones; None for all.
        """
        total = len(self) + len(X)
        dropped = 0 if most is None else max(0, total - most)
        X = X[max(0, dropped - len(self)) :]
        first, start = self._first + min(dropped, len(self)), self._stop
        stop = start + len(X)
        longer = object.__new__(Series)
        longer._buffer, longer._used = self._buffer, self._used
        if stop > len(self._buffer) or self._used[0] != start:
            kept = self._buffer[first:start]
            first, start, stop = 0, len(kept), len(kept) + len(X)
            longer._buffer = np.empty((2 * stop, X.shape[1]))
            longer._buffer[:start] = kept
            longer._used = [start]
        longer._used[0] = stop
        longer._buffer[start:stop] = X
        longer._first, longer._stop = first, stop
        bounds = np.append(self.bounds[:-1], total) - dropped
        longer.bounds = bounds[np.append(bounds[1:] > 0, True)].clip(0)
        longer.n_dropped, longer.inputs = self.n_dropped + dropped, None
        return longer

    def __getstate__(self):
        return {
            "rows": self.rows.copy(),
            "bounds": self.bounds.copy(),
            "n_dropped": self.n_dropped,
            "inputs": self.inputs,
        }

    def __setstate__(self, state):
        self.__init__(*state.values())


class Units(NamedTuple):
    """Robust centre and scale of each feature.

    `rounding`: the variance of rounding errors, in standard units.
    """

    offset: np.ndarray
    unit: np.ndarray
    rounding: np.ndarray

    def standard(self, X):
        """Return rows in standard units, clipped so that squares do not overflow."""
        with np.errstate(over="ignore"):
            standard = (X - self.offset) / self.unit
        return np.ascontiguousarray(standard.clip(-_FARTHEST, _FARTHEST))

    def rows(self, X, bounds):
        """Sequences in standard units."""
        return Rows(self.standard(X), bounds)

    def learning_rows(self, X, bounds):
        """Return sequences in standard units, with variances of rounding errors."""
        return Rows(self.standard(X), bounds, self.rounding)

    def restored(self, rows):
        """Return rows in the units of X."""
        return rows * self.unit + self.offset

    def categories(self):
        """Return no categories, as features are numbers."""
        return []

    def log_volume(self, X):
        """Return the log of the product of the units of observed values, per row."""
        return ~np.isnan(X) @ np.log(self.unit)


def units_of(X):
    """Return median and scaled interquartile range of each feature.

    If the range is zero, the scale is the standard deviation, or 1 if that is zero or
    unknown. Repeated values count as rounded to the median gap between neighbours.
    """
    offset, unit = np.zeros(X.shape[1]), np.ones(X.shape[1])
    gap = np.zeros(X.shape[1])
    for f, column in enumerate(X.T):
        seen = column[~np.isnan(column)]
        if len(seen):
            low, offset[f], high = np.quantile(seen, [0.25, 0.5, 0.75])
            spread = (high - low) / _IQR_OF_NORMAL or (seen - offset[f]).std()
            unit[f] = spread if spread > 0 else 1.0
            values = np.unique(seen)
            if 1 < len(values) < len(seen):
                gap[f] = min(np.median(np.diff(values)) / unit[f], 1.0)
    return Units(offset, unit, gap.clip(_LEAST_GAP) ** 2 / 12)


class Group(NamedTuple):
    """Rows in which the same features are observed.

    `index`: which rows, None for all; `features`: which features; `columns`
    (n_observed, n_rows of the group).
    """

    index: np.ndarray | None
    features: np.ndarray
    columns: np.ndarray


class Rows:
    """Sequences in standard units, grouped by what is missing.

    `values` (n_rows, n_features), NaN where missing; `bounds` (n_sequences + 1,);
    `rounding` (n_features,): variances of rounding errors.
    """

    inputs = None  # to the transitions, of each row

    def __init__(self, values, bounds, rounding=0.0):
        self.rounding = np.broadcast_to(
            np.asarray(rounding, dtype=np.float64), values.shape[1:]
        ).copy()
        self.values, self.bounds = values, np.asarray(bounds, dtype=np.int64)
        self.groups = list(self._grouped(~np.isnan(values)))
        self.coordinates = values  # for the search of starts
        self.numbers = values  # no categories

    def __len__(self):
        return len(self.values)

    def _grouped(self, observed):
        everything = np.arange(observed.shape[1])
        if observed.all():
            yield Group(None, everything, np.ascontiguousarray(self.values.T))
            return
        patterns, members = np.unique(observed, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if pattern.any():
                index = np.flatnonzero(members.ravel() == number)
                features = everything[pattern]
                columns = self.values[index][:, features].T
                yield Group(index, features, np.ascontiguousarray(columns))
