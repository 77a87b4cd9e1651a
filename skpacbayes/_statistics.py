"""Statistics of rows that carry the names of the columns of these rows.

A frame may have its columns in another order on another machine. Sums and stacks of
statistics keep the names, and differences between names are errors. NumPy turns a list
of arrays into a plain array before `numpy.sum` sees their names.
"""

import numpy as np

from ._compat import feature_names


class NamedStatistics(np.ndarray):
    """Array with `feature_names`, those of the columns of the rows; None: unknown."""

    feature_names = None

    def __array_finalize__(self, other):
        self.feature_names = getattr(other, "feature_names", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        names = common_names(inputs)
        options = {key: _plain(option) for key, option in options.items()}
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        found = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if out is None:
            return _named(found, names)
        for array in out:
            if isinstance(array, NamedStatistics):
                array.feature_names = names
        return found if len(out) > 1 else out[0]

    def __array_function__(self, function, types, args, kwargs):
        found = super().__array_function__(function, types, args, kwargs)
        if function is not np.concatenate:  # which all functions that stack call
            return found
        return _named(found, common_names(args[0]))

    def __reduce__(self):
        return _named, (np.array(self), self.feature_names)


def named_as(statistics, X):
    """Return statistics of rows X with the names of their columns, if X has names."""
    return _named(statistics, feature_names(X))


def common_names(arrays):
    """Return the names that arrays carry, or None; raise ValueError if they differ."""
    found = None
    for array in arrays:
        names = getattr(array, "feature_names", None)
        if names is None:
            continue
        if found is not None:
            check_names(names, found, "other statistics")
        found = names
    return found


def check_names(names, known, of="the rows that were learnt"):
    """Raise ValueError if names differ from known ones; both may be None."""
    if names is None or known is None or list(names) == list(known):
        return
    names, known = list(names), list(known)
    if sorted(names) == sorted(known):
        raise ValueError(
            f"statistics are of the columns {names}, but {of} have them in the order "
            f"{known}."
        )
    raise ValueError(f"statistics are of the columns {names}, but {of} have {known}.")


def _named(found, names):
    if names is None or not isinstance(found, np.ndarray) or found.ndim < 2:
        return found
    named = found if isinstance(found, NamedStatistics) else found.view(NamedStatistics)
    named.feature_names = names
    return named


def _plain(array):
    return array.view(np.ndarray) if isinstance(array, NamedStatistics) else array
