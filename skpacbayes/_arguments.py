"""Checks of arguments of methods."""

import math
from numbers import Integral, Real

import numpy as np

from ._validation import as_numbers

MOST = 2**48  # elements that the addresses of a process suffice for


def check_share(name, value, *, ends=False):
    """Raise ValueError unless the value is a number between 0 and 1.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
        The argument.
    ends : bool, default=False
        Whether 0 and 1 are allowed.
    """
    inside = isinstance(value, Real) and 0 <= value <= 1
    if not inside or (not ends and value in (0, 1)):
        needed = "be a number from 0 to 1" if ends else "lie between 0 and 1"
        raise ValueError(f"{name}={value!r} should {needed}.")


def as_levels(quantiles, *, ends):
    """Return levels of quantiles as a vector; raise ValueError for other values.

    Parameters
    ----------
    quantiles : float or array-like of shape (n_quantiles,)
        The argument.
    ends : bool
        Whether 0 and 1 are allowed.
    """
    plain = type(quantiles) in (list, tuple) and len(quantiles) > 0
    if plain and all(type(q) is float and 0.0 < q < 1.0 for q in quantiles):
        return np.array(quantiles)  # faster
    levels = as_numbers("quantiles", quantiles, ensure_all_finite=False)
    levels = np.atleast_1d(levels)
    inside = (levels >= 0) & (levels <= 1)
    if not ends:
        inside &= (levels > 0) & (levels < 1)
    if levels.ndim != 1 or not levels.size or not inside.all():
        needed = "from 0 to 1" if ends else "between 0 and 1"
        raise ValueError(
            f"quantiles={quantiles!r} should be one or more numbers {needed}."
        )
    return levels


def check_count(name, value, least=1):
    """Return a count as an int; raise ValueError for less than `least`, or no integer.

    A NumPy integer of 8 bits would overflow in sums. For counts above MOST, the size of
    an array would overflow; for others NumPy raises MemoryError.
    """
    counts = isinstance(value, Integral) and not isinstance(value, bool)
    if not counts or not least <= value <= MOST:
        limit = "and at most 2**48" if counts and value > MOST else ""
        needed = f"an integer of at least {least} {limit}".rstrip()
        raise ValueError(f"{name}={value!r} should be {needed}.")
    return int(value)


def empty_answer(shape, name, count):
    """Return an empty array; raise MemoryError that says which argument is too large.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    name : str
        Name of the argument that makes it large.
    count : int
        The argument.
    """
    try:
        return np.empty(shape)
    except MemoryError:
        size = 8 * math.prod(shape) / 2**30
        raise MemoryError(
            f"{name}={count} needs {size:,.0f} GiB, more than the free memory: "
            f"decrease {name}."
        ) from None
