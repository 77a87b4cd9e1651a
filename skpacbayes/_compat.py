"""Private names of scikit-learn that the package uses.

If a release of scikit-learn moves one of them, only this file has to change.
"""

import contextlib
from inspect import signature

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    InvalidParameterError,
    Options,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    _num_samples,
)

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:
        """Replacement without callbacks, which scikit-learn 1.9 introduced."""

    def callback_management_context(estimator):
        """Return a context without callbacks."""
        return contextlib.nullcontext()


if "allow_all_zero_weights" in signature(_check_sample_weight).parameters:
    check_sample_weight = _check_sample_weight
else:  # before scikit-learn 1.9

    def check_sample_weight(weights, X, *, allow_all_zero_weights=False, **options):
        """Validate weights, as later versions do."""
        weights = _check_sample_weight(weights, X, **options)
        if not (allow_all_zero_weights or (weights != 0).any()):
            raise ValueError(
                "Sample weights must contain at least one non-zero number."
            )
        return weights


class Interval(_Interval):
    """Constraint of a number in an interval; True and False are not numbers."""

    def is_satisfied_by(self, val):
        """Return whether the value is a number in the interval."""
        return not isinstance(val, (bool, np.bool_)) and super().is_satisfied_by(val)


# Parameters of a list of named estimators.
BaseComposition = _BaseComposition
# Column names of a table; None if they are not strings.
feature_names = _get_feature_names
# Number of rows of a table, a list or an array.
n_samples_of = _num_samples
# Validates the parameters against `_parameter_constraints`, and closes callbacks.
validated = _fit_context(prefer_skip_nested_validation=True)
