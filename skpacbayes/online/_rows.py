"""Base class of the online estimators: validation of rows, and warnings."""

import math

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._sentinels import (
    FAR_IN_SUMS,
    warn_of_far_rows,
    warn_of_sentinels_in_stream,
)
from .._stream import (
    LEAST_WEIGHT,
    StreamingEstimator,
    checked_weights,
    has_doubled,
)
from .._validation import are_small, refuse_large, validate_data, writeable
from ._changed_units import warn_of_changed_units
from ._dependent_columns import (
    MOST_ROWS,
    ROWS_PER_COLUMN,
    warn_of_dependent_columns,
)
from ._doubts import (
    HEAVY,
    SHUFFLED,
    order_found,
    warn_of_copies,
    warn_of_heavy_rows,
    warn_of_light_rows,
    warn_of_long_run,
    warn_of_narrow_columns,
    warn_of_order,
    warn_of_passes,
    warn_of_weights,
)

NO_WEIGHTS = np.empty(0)  # weights argument of kernels if every row has weight 1
NUMBERS = (float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_)
BLOCK = 2**15  # largest number of values learnt between possible interrupts


_LAST = {}  # cache: the last pandas index of columns, with its names


def names_of(columns):
    """Return the names of the columns of a data frame, as a list.

    The list is cached, as the rows of a pandas frame share one index, and its
    conversion takes longer than learning a row.
    """
    if isinstance(columns, list):
        return columns
    known, names = _LAST.get("index", (None, None))
    if known is None or not columns.is_(known):
        names = columns.tolist()
        if hasattr(columns, "is_"):
            _LAST["index"] = columns, names
    return names


def as_plain_numbers(values, count):
    """Return `count` numbers as an array if one conversion suffices, or None."""
    if type(values) is not np.ndarray:
        if type(values) in (list, tuple) and all(type(v) in NUMBERS for v in values):
            values = np.array(values)
        elif hasattr(values, "to_numpy") and not hasattr(type(values), "columns"):
            values = values.to_numpy()
        else:
            return None
    if values.shape != (count,) or values.dtype.kind not in "iufb":
        return None
    return writeable(np.ascontiguousarray(values, dtype=np.float64))


class OnlineEstimator(StreamingEstimator):
    """Base class for rows and targets of absolute value at most LARGEST.

    `_state` holds the arrays that its kernels change in place.
    """

    _changed_in_place = ("_state",)

    @property
    def n_samples_seen_(self):
        """Number of rows of positive weight since the last `fit`."""
        return self._state.n_steps

    # Rows that need no validation.

    def _learn_at_once(self, X, y=None, sample_weight=None):
        """Learn plain rows by one compiled call; return whether they were learnt."""
        rows = self._convert(X)
        if rows is None:
            return False
        n_rows = len(rows)
        if n_rows > 1 and (rows.size > BLOCK or n_rows > self._n_at_once()):
            return False
        targets = self._convert_targets(y, n_rows)
        if targets is None or self._doubles_with(n_rows):
            return False
        weights = self._convert_weights(sample_weight, n_rows)
        if weights is None:
            return False
        with self._state_locks.changing:
            return self._learn(rows, targets, weights)

    def _doubles_with(self, n_new):
        """Return whether new rows need `_doubt`: its warnings may be errors."""
        n_rows = self._state.n_noted
        return has_doubled(n_rows, n_rows + n_new)

    def _convert(self, X):
        """Return X as an array for a kernel if one conversion suffices, or None."""
        if self._recognises(X):
            return writeable(X)
        names = vars(self).get("feature_names_in_")
        if names is None:
            rows = self._plain(X)
            return None if rows is None else writeable(rows)
        columns = getattr(X, "columns", None)
        if columns is None or not hasattr(X, "to_numpy"):
            return None
        if names_of(columns) != names.tolist():
            return None
        if hasattr(type(X), "rows") and len(X) == 1:
            # A polars row, whose own conversion to an array is slow.
            (row,) = X.rows()
            if not all(type(value) is float for value in row):
                return None
            return np.array([row])
        X = X.to_numpy()
        if X.dtype.kind not in "iuf" or not len(X):
            return None
        return writeable(np.ascontiguousarray(X, dtype=np.float64))

    def _convert_targets(self, y, count):
        """Return targets as an array if one conversion suffices, or None."""
        return as_plain_numbers(y, count)

    def _convert_weights(self, sample_weight, count):
        """Return weights as an array if one conversion suffices, or None.

        None for weights that are not valid, or of which a warning would be given.
        """
        if sample_weight is None:
            return NO_WEIGHTS
        weights = as_plain_numbers(sample_weight, count)
        if weights is None:
            return None
        least = weights.min()
        if not least >= 0.0:
            return None
        if least < LEAST_WEIGHT and weights[weights < LEAST_WEIGHT].any():
            return None  # subnormal: these count as zero
        return weights if weights.max() <= HEAVY * self._total_weight() else None

    # All other rows.

    def _rows(self, X):
        """Return X as a C-contiguous float64 array, with no value beyond LARGEST."""
        if "_state" not in vars(self):
            check_is_fitted(self)
        rows = self._convert(X)
        if rows is not None and are_small(rows):
            return rows
        X = super()._rows(X)
        refuse_large("X", X)
        return writeable(X)

    def _checked(self, X, y, sample_weight, *, reset, some=False):
        """Return validated rows, targets (for regressors, numbers) and weights.

        some : whether at least one weight must be positive.
        """
        numbers = isinstance(self, RegressorMixin)
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", reset=reset, y_numeric=numbers
        )
        refuse_large("X", X)
        if numbers:
            y = np.ascontiguousarray(y, dtype=np.float64)
            refuse_large("y", y)
        if sample_weight is None:
            return X, y, NO_WEIGHTS
        return X, y, checked_weights(sample_weight, X, some=some)

    def _learn_anew(self, X, y, sample_weight):
        """Start a new stream, and learn the rows."""
        rows = self._checked(X, y, sample_weight, reset=True, some=True)
        self._begin(self.n_features_in_)
        return self._learn_blocks(*rows)._doubt(rows[2], rows=rows)

    def _learn_more(self, X, y, sample_weight):
        """Learn more rows of a stream."""
        begins = not self._streaming()
        rows = self._checked(X, y, sample_weight, reset=begins)
        if begins:
            self._begin(self.n_features_in_)
        return self._learn_blocks(*rows)._doubt(rows[2], len(rows[0]))

    def _learn_blocks(self, X, y, sample_weight):
        """Learn validated rows block by block."""
        stop = 0
        while stop < len(X):
            start, most = stop, self._n_at_once()
            stop += max(1, BLOCK // X.shape[1])
            if len(sample_weight) and most < math.inf:
                most = np.searchsorted(np.cumsum(sample_weight[start:] > 0.0), most) + 1
            stop = min(stop, start + most)
            rows = slice(start, stop)
            self._learn_block(*map(writeable, (X[rows], y[rows], sample_weight[rows])))
        if len(sample_weight):
            total, n_rows = self._total_weight(), self.n_samples_seen_
            warn_of_weights(sample_weight, total, n_rows)
        return self

    def _doubt(self, sample_weight, n_new=None, *, rows=None):
        """Warn of doubtful results.

        Warns of rows sorted by their targets, if the order matters, or otherwise of a
        stream that changes if nothing is forgotten. Also warns of codes for missing
        values, and of rows far from all others.

        sample_weight : of the rows of this call.
        n_new : number of rows of this call of `partial_fit`; the stream is checked each
        time the number of its rows has doubled. None after `fit`.
        rows : all rows, targets and weights, after `fit`.
        """
        state = self._state
        n_rows = state.n_noted
        before = 0 if n_new is None else max(0, n_rows - n_new)  # no weight: not noted
        if has_doubled(before, n_rows):
            names, ends = vars(self).get("feature_names_in_", ()), state.ends
            warn_of_sentinels_in_stream(ends[:-1], n_rows, names)
            columns = self._columns()
            some = ends if self._target_matters() else ends[:-1]
            effect = "determines the scale and the coefficients"
            warn_of_far_rows(some, n_rows, [*columns, "y"], effect, FAR_IN_SUMS)
            warn_of_narrow_columns(some, [*columns, "y"])
            total, most = self._total_weight(), self._most_weight()
            warn_of_light_rows(total, n_rows, self._information())
            rows = self._remembered() if rows is None else _without_zeros(*rows)
            found = order_found(state)
            matters = self._depends_on_order()
            if warn_of_heavy_rows(sample_weight, total, n_rows, most):
                pass  # what follows would be due to the weights
            elif found is not None and matters:
                warn_of_order(found)
            elif (matters and warn_of_copies(state)) or (
                self._remembers_rows() and warn_of_passes(state)
            ):
                pass  # what follows would be due to the copies
            elif found is None and self._doubt_change():
                pass  # errors depend on time, and so on features that do
            else:
                if rows is not None and not (matters and self._doubt_fit(*rows)):
                    self._doubt_shape(*rows[:2])
                if matters and self._n_labels():
                    self._doubt_labels()
            if rows is not None:
                self._doubt_columns(*rows)
                X = rows[0]
                if found is None and self._has_unit():
                    X, columns = np.column_stack(rows[:2]), [*columns, "y"]
                warn_of_changed_units(X, columns)
        return self

    def _columns(self):
        """Return how messages name the columns."""
        names = vars(self).get("feature_names_in_")
        if names is None:
            return [f"column {j} of X" for j in range(self._state.n_features)]
        return [f"the column {name!r}" for name in names]

    def _remembers_rows(self):
        """Return whether a model is flexible enough to remember single rows."""
        return False

    def _doubt_change(self):
        """Warn if a stream changes and nothing is forgotten; return whether it did."""

    def _remembered(self):
        """Return rows, targets and weights that span the stream, or None."""

    def _doubt_fit(self, X, y, sample_weight):
        """Warn if rows in random order would improve the fit; return whether so."""

    def _shuffled_twins(self, X, y, sample_weight, n_outputs):
        """Yield two models that have learnt rows, at most SHUFFLED, in random orders.

        Of few rows, one random order may be a lucky one.
        """
        rng = np.random.default_rng(0)
        for seed in range(2):
            order = rng.permutation(len(X))[:SHUFFLED]
            twin = self._draft(forgets=False)
            twin.random_state = seed
            twin._begin(self.n_features_in_, n_outputs)
            own = order[: len(sample_weight)]
            yield twin._learn_blocks(X[order], y[order], sample_weight[own])

    def _doubt_shape(self, X, y):
        """Warn if errors are a smooth function of the features."""

    def _doubt_columns(self, X, y, sample_weight):
        """Warn if the effects of small differences of columns have not been learnt."""
        most = max(MOST_ROWS, ROWS_PER_COLUMN * X.shape[1])
        some = slice(None, None, -(-len(X) // most))
        X, y, weights = X[some], y[some], sample_weight[some]
        targets = self._responses(y)
        warn_of_dependent_columns(
            X, targets, lambda: self._unexplained(X, y), weights, self._columns()
        )

    def _has_unit(self):
        """Return whether the target has a unit, as numbers have, but no counts."""
        return not self._n_labels()

    def _responses(self, y):
        """Return the targets of the outputs, (n_rows, n_outputs)."""
        if not self._n_labels():
            return y[:, None]
        if self._n_outputs() == 1:
            return (y > 0.0).astype(float)[:, None]
        return np.eye(len(self.classes_))[y.astype(int)]

    def _unexplained(self, X, y):
        """Return `_responses` less their predictions by the model."""
        raise NotImplementedError

    def _doubt_labels(self):
        """Warn of a label that stays the same for long."""
        warn_of_long_run(self._state)

    def _depends_on_order(self):
        """Return whether the posterior depends on the order of the rows."""
        return True

    def _target_matters(self):
        """Return whether a row with an extreme target may determine the model."""
        return not self._n_labels()

    def _information(self):
        """Return the information of the rows, in rows of weight 1."""
        return self._total_weight()

    def _most_weight(self):
        """Return the largest mean weight of the rows that is not too large."""
        return math.inf

    def _n_labels(self):
        """Return the number of labels of the stream; 0 for regressors."""
        return 0

    def _n_at_once(self):
        """Return how many rows of positive weight may be learnt by one call."""
        return math.inf

    def _total_weight(self):
        """Total weight of the rows since the last `fit`."""
        return self._state.total_weight

    def _learn_block(self, X, y, sample_weight):
        """Learn validated rows that need not be learnt with those around them."""
        self._learn(X, y, sample_weight)

    def _learn(self, X, y, sample_weight):
        """Learn a block of rows by one compiled call.

        Returns False, without learning, if a row is not finite or beyond LARGEST.
        """
        raise NotImplementedError


def _without_zeros(X, y, sample_weight):
    """Return the rows of positive weight."""
    if not len(sample_weight):
        return X, y, sample_weight
    kept = sample_weight > 0.0
    return X[kept], y[kept], sample_weight[kept]
