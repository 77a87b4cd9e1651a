"""How rows come into an online estimator: numbers whose squares are numbers."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from .._base import PacBayesEstimator, refuse_beyond
from .._kernels.standardise import LARGEST, SMALLEST
from ._aggregation import checked_weights


class OnlineEstimator(PacBayesEstimator):
    """An estimator of rows, and targets, at most LARGEST in absolute value."""

    def _rows(self, X):
        """Rows of X as a C-contiguous float64 array, none beyond LARGEST."""
        if self._recognises(X) and are_small(X):
            return X
        X = super()._rows(X)
        refuse_beyond(LARGEST, "X", X)
        return X

    def _checked(self, X, y, sample_weight, *, reset):
        """Rows, targets (numbers, of a regressor) and weights for the kernels."""
        numbers = isinstance(self, RegressorMixin)
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", reset=reset, y_numeric=numbers
        )
        refuse_beyond(LARGEST, "X", X)
        if numbers:
            y = np.ascontiguousarray(y, dtype=np.float64)
            refuse_beyond(LARGEST, "y", y)
        return X, y, checked_weights(sample_weight, X)


def are_small(values):
    """Whether the sum of the squares shows that none is beyond LARGEST."""
    return np.vdot(values, values) <= LARGEST**2


def inverse_scales(moments):
    """One over the standard deviation of each column; 0 if it has not varied."""
    _, scatter, total = moments
    return 1.0 / np.sqrt(np.where(scatter > SMALLEST, scatter, np.inf) / total[0])
