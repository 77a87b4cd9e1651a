"""Linear regression on a stream, by online variational inference."""

import numpy as np
from scipy import stats
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import fit_context, partial_fit_context
from .._kernels import online as kernels
from ._linear import NO_WEIGHTS, OnlineLinearModel


class OnlineVIRegressor(RegressorMixin, OnlineLinearModel):
    """Linear regression."""

    _parameter_constraints: dict = {
        **OnlineLinearModel._parameter_constraints,
        "loss": [StrOptions({"squared_error", "absolute_error"})],
        "covariance": [StrOptions({"auto", "full", "diagonal"})],
    }

    def __init__(
        self,
        method="ngvi",
        *,
        loss="squared_error",
        covariance="auto",
        inverse_temperature="auto",
        learning_rate="auto",
        prior_scale=1.0,
        forgetting=0.0,
        standardize=True,
        clip=None,
        fit_intercept=True,
        mean_bound=None,
        scale_bound=None,
        average=False,
    ):
        self.method = method
        self.loss = loss
        self.covariance = covariance
        self.inverse_temperature = inverse_temperature
        self.learning_rate = learning_rate
        self.prior_scale = prior_scale
        self.forgetting = forgetting
        self.standardize = standardize
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.mean_bound = mean_bound
        self.scale_bound = scale_bound
        self.average = average

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Forget everything, then learn the rows once, in the order given."""
        return self._partial_fit(X, y, sample_weight, reset=True)

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows, in the order given."""
        if (
            sample_weight is None
            and self._streaming()
            and self._continues(X)
            and type(y) is np.ndarray
            and y.dtype == np.float64
            and y.shape == (X.shape[0],)
            and y.flags.c_contiguous
            and self._learn(X, y, NO_WEIGHTS)
        ):
            return self
        return self._partial_fit(X, y, sample_weight, reset=not self._streaming())

    def _partial_fit(self, X, y, sample_weight, reset):
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", reset=reset, y_numeric=True
        )
        y = np.ascontiguousarray(y, dtype=np.float64)
        weights = self._check_weights(sample_weight, X)
        if reset:
            self._begin(X.shape[1])
        self._learn_all(X, y, weights)
        return self

    def predict(self, X, return_std=False):
        """Predict the mean of the target, and optionally its scale."""
        check_is_fitted(self)
        Z = self._standardised(self._rows(X))
        mean = (self._mean() @ Z.T)[0]
        if not return_std:
            return mean
        self._check_predictive()
        shares = self._shares()[0]
        each = self._means()[0] @ Z.T
        variances = self._noises()[:, None] * self._relative_variances(Z)
        return mean, np.sqrt(shares @ (variances + (each - mean) ** 2))
