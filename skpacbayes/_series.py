"""Base class for time series: rows in the order of time, and inputs beside them."""

import numpy as np

from ._base import MissingValuesEstimator, warn_user
from ._compat import feature_names
from ._validation import as_numbers

# Kinds of an index whose values have the order of time.
_ORDERED = {
    *("datetime64", "datetime", "date", "period", "timedelta64", "timedelta"),
    *("integer", "floating"),
}


class SeriesEstimator(MissingValuesEstimator):
    """Base class for time series, where NaN is a missing value."""

    _input_names = None  # column names of inputs, if they were a table

    def _rows(self, X, *, reset=False):
        """Return the rows of X; warn if its index is not in the order of time."""
        _warn_of_index(X)
        return super()._rows(X, reset=reset)

    def _checked_inputs(self, inputs, n_rows, *, begin=False, rows="X"):
        """Validate inputs: an array with a row for each row of X, or None."""
        names = None
        if inputs is not None:
            names = feature_names(inputs)
            names = None if names is None else names.tolist()
            inputs = as_numbers("inputs", inputs, ensure_2d=True, ensure_min_samples=1)
            if len(inputs) != n_rows:
                there = f"{rows} has {n_rows}" if rows == "X" else f"{rows} is {n_rows}"
                raise ValueError(f"inputs has {len(inputs)} rows, but {there}.")
        n_inputs = None if inputs is None else inputs.shape[1]
        if begin:
            self._n_inputs, self._input_names = n_inputs, names
        elif n_inputs != self._n_inputs:
            advice = ": pass `inputs`" if inputs is None else ""
            raise ValueError(
                f"inputs has {n_inputs or 0} columns, but the estimator was fitted "
                f"with {self._n_inputs or 0}{advice}."
            )
        elif None not in (names, self._input_names) and names != self._input_names:
            raise ValueError(
                f"inputs has the columns {names}, but the estimator was fitted with "
                f"{self._input_names}, in this order."
            )
        return inputs


def _warn_of_index(X):
    """Warn of a frame whose index of times or numbers mostly falls, or is shuffled."""
    index = getattr(X, "index", None)
    if getattr(index, "is_monotonic_increasing", True):
        return
    if index.nlevels > 1 or index.inferred_type not in _ORDERED:
        return
    n_steps = len(index) - 1
    n_back = np.count_nonzero(index[1:] < index[:-1])
    if n_back > n_steps / 4:
        warn_user(
            f"{n_back} of {n_steps} steps of the index of X go back, but the rows of a "
            "series should be in the order of time: use X.sort_index(), or "
            "X.reset_index(drop=True) if the index is not a time."
        )
