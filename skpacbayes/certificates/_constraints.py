"""Constraints of the arguments of the bounds."""

import math
from functools import partial
from numbers import Integral, Real

import numpy as np

from .._compat import Interval, validate_params
from .._validation import as_numbers

COUNT = [Interval(Integral, 1, None, closed="left")]
POSITIVE = [Interval(Real, 0, None, closed="neither")]
NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
# Where an infinite value gives an infinite bound, which says nothing but is true.
ANY = [Interval(Real, -math.inf, math.inf, closed="both")]
NOT_NEGATIVE_OR_INFINITE = [Interval(Real, 0, math.inf, closed="both")]
SHARE = [Interval(Real, 0, 1, closed="neither")]

checked = partial(validate_params, prefer_skip_nested_validation=True)


def as_losses(name, values):
    """Return losses as `as_vector` does; some, but not all, may be infinite."""
    values = as_vector(name, values, ensure_all_finite=False)
    if np.isnan(values).any() or not np.isfinite(values.min()):
        raise ValueError(
            f"{name} should have no NaN and at least one finite value, and none may be "
            f"minus infinity, got {values}."
        )
    return values


def as_vector(name, values, like=None, ensure_all_finite=True):
    """Return finite numbers as an array of one axis, not empty.

    Parameters
    ----------
    name : str
        Name of the argument.
    values : array-like
        The argument.
    like : tuple of (str, ndarray), default=None
        Name and values of an argument that needs as many values.
    ensure_all_finite : bool, default=True
        Whether to refuse NaN and infinities.

    Raises
    ------
    ValueError
        If the argument is not of this kind.
    """
    values = as_numbers(name, values, ensure_all_finite=ensure_all_finite)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"{name} should have one axis and at least one value, got an array of "
            f"shape {values.shape}."
        )
    if like is not None and len(values) != len(like[1]):
        raise ValueError(
            f"{name} has {len(values)} values and {like[0]} has {len(like[1])}: they "
            "should have as many."
        )
    return values


def refuse_not_positive(name, values):
    """Raise ValueError unless all values of an array are positive."""
    if not (values > 0).all():
        raise ValueError(
            f"{name} should be positive, but one value is {np.min(values):g}."
        )
