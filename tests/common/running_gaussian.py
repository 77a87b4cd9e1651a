"""A streaming estimator, as `CONTRIBUTING.md` tells a newcomer to write one."""

from numbers import Real

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from skpacbayes import _stream as stream
from skpacbayes._base import as_fitted, fit_context
from skpacbayes._compat import Interval


class RunningGaussian(DensityMixin, stream.StreamingEstimator):
    """Independent Gaussians, one a column, learnt one row after another."""

    _parameter_constraints: dict = {
        "smallest_variance": [Interval(Real, 0, None, closed="neither")]
    }
    _refuses_large = True  # rows that have no squares

    def __init__(self, smallest_variance=1e-7):
        self.smallest_variance = smallest_variance

    @fit_context
    def fit(self, X, y=None, sample_weight=None):
        """Forget everything, then learn the rows."""
        return self._learn(X, sample_weight, some=True)

    @stream.partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn more rows."""
        return self._learn(X, sample_weight)

    def score_samples(self, X):
        """Log density of each row."""
        check_is_fitted(self)
        squares = (self._rows(X) - self.mean_) ** 2 / self.variance_
        return -0.5 * (squares + np.log(2 * np.pi * self.variance_)).sum(axis=1)

    def score(self, X, y=None):
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    n_samples_seen_ = property(lambda self: stream.as_count(self._moments[0, 0]))
    mean_ = property(lambda self: self._moments[1])

    @property
    @as_fitted
    def variance_(self):
        """Variance of each column."""
        total, _, scatter = self._moments
        return np.maximum(scatter / np.maximum(total, 1), self.smallest_variance)

    def _learn(self, X, sample_weight, some=False):
        begun = self._streaming()  # False in `fit`, whose draft has no state
        X = self._rows(X, reset=not begun)
        weights = stream.checked_weights(sample_weight, X, some=some)
        moments = self._moments if begun else np.zeros((3, X.shape[1]))
        self._moments = updated(moments, X, weights)
        return self

    def _learn_at_once(self, X, y=None, sample_weight=None):
        X = self._plain(X)
        if X is None or sample_weight is not None:
            return False
        self._moments = updated(self._moments, X, np.ones(len(X)))
        return True


def updated(moments, X, weights):
    """Add rows to totals, means and scatters (Welford); a new array."""
    total, mean, scatter = moments
    for row, weight in zip(X, weights, strict=True):
        if weight > 0:
            total, step = total + weight, row - mean
            mean = mean + weight / total * step
            scatter = scatter + weight * step * (row - mean)
    return np.array([total, mean, scatter])
