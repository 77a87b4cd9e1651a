"""Every private name of scikit-learn that the package uses, and nothing else.

A release of scikit-learn that moves one of them breaks this file alone.
"""

from sklearn.base import _fit_context
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_params,
)
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:
        """Callbacks are there from scikit-learn 1.9 on."""


# Attributes that scikit-learn keeps on an instance beside its parameters: the requests
# of metadata routing, `set_output`, and callbacks.
OWN_ATTRIBUTES = frozenset(
    {
        "_metadata_request",
        "_sklearn_output_config",
        "_skl_callbacks",
        "_parent_callback_ctx",
    }
)

# Validates the parameters against `_parameter_constraints`, tears callbacks down.
validated = _fit_context(prefer_skip_nested_validation=True)
