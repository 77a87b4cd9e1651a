"""Base class for series whose values can be squared without overflow."""

import numpy as np

from .._kernels.standardize import LARGEST
from .._series import SeriesEstimator
from .._validation import refuse_large


class BoundedSeriesEstimator(SeriesEstimator):
    """Base class of filters, whose forecasts use squares of the values.

    Values above LARGEST in absolute value raise ValueError: their squares would
    overflow, and the forecasts would be NaN.
    """

    def _acceptable(self, X):
        return not (np.abs(X) > LARGEST).any()

    def _rows(self, X, *, reset=False):
        """Return the rows of X as a C-contiguous float64 array, NaN if missing."""
        X = super()._rows(X, reset=reset)
        if not self._acceptable(X):
            refuse_large("X", X)
        return X
