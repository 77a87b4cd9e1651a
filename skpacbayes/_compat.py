"""Every private name of scikit-learn that the package uses, and nothing else.

A release of scikit-learn that moves one of them breaks this file alone.
"""

import contextlib
from inspect import signature

from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:
        """Callbacks are there from scikit-learn 1.9 on."""

    def callback_management_context(estimator):
        """Manage the callbacks of an estimator, which has none."""
        return contextlib.nullcontext()


if "allow_all_zero_weights" in signature(_check_sample_weight).parameters:
    check_sample_weight = _check_sample_weight
else:  # before scikit-learn 1.9

    def check_sample_weight(weights, X, *, allow_all_zero_weights=False, **options):
        """Validate weights, of which one must be positive unless it is said."""
        weights = _check_sample_weight(weights, X, **options)
        if not (allow_all_zero_weights or (weights != 0).any()):
            raise ValueError(
                "Sample weights must contain at least one non-zero number."
            )
        return weights


# Names of the columns of a table, None where they are no strings.
feature_names = _get_feature_names
# Validates the parameters against `_parameter_constraints`, tears callbacks down.
validated = _fit_context(prefer_skip_nested_validation=True)
