"""Series whose rows are not beyond what can be squared."""

import numpy as np

from .._base import SeriesEstimator
from .._kernels.standardize import LARGEST
from .._validation import refuse_large


class BoundedSeriesEstimator(SeriesEstimator):
    """An estimator of series that forecasts their squares.

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
