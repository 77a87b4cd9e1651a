"""Series with known inputs of each row."""

import numpy as np
from sklearn.utils import check_array

from .._base import SeriesEstimator
from .._kernels.standardize import LARGEST
from .._validation import refuse_large


class DrivenSeriesEstimator(SeriesEstimator):
    """An estimator of series whose rows may have inputs, such as controls.

    Rows beyond LARGEST are refused: their squares would make NaN of a forecast.
    """

    def _acceptable(self, X):
        return not (np.abs(X) > LARGEST).any()

    def _rows(self, X, *, reset=False):
        """Rows of X as a C-contiguous float64 array, NaN where they are missing."""
        X = super()._rows(X, reset=reset)
        if not self._acceptable(X):
            refuse_large("X", X)
        return X

    def _checked_inputs(self, inputs, n_rows, *, begin=False, rows="X"):
        """Check inputs: an array with a row for each row of X, or None."""
        if inputs is not None:
            inputs = check_array(inputs, dtype=np.float64, input_name="inputs")
            if len(inputs) != n_rows:
                there = f"{rows} has {n_rows}" if rows == "X" else f"{rows} is {n_rows}"
                raise ValueError(f"inputs has {len(inputs)} rows, yet {there}.")
        n_inputs = None if inputs is None else inputs.shape[1]
        if begin:
            self._n_inputs = n_inputs
        elif n_inputs != self._n_inputs:
            raise ValueError(
                f"inputs has {n_inputs or 0} columns, yet the filter was fitted with "
                f"{self._n_inputs or 0}."
            )
        return inputs
