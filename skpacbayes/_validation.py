"""What rows and targets may contain."""

import datetime
import math

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import validation

from ._kernels.standardize import LARGEST

# Types of dates, times of day and spans of time, none of which is a number.
TIMES = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
)


def are_finite(values):
    """Whether the sum of their squares, the quickest to get, shows no NaN or infinity.

    It may be infinite without one.
    """
    return math.isfinite(np.vdot(values, values))


def writeable(array):
    """Return the array, or a copy of one that is read-only, such as a memory map.

    Numba would compile each kernel anew for it.
    """
    return array if array.flags.writeable else array.copy()


def are_small(values):
    """Whether the sum of the squares shows that none is NaN or beyond LARGEST."""
    return np.vdot(values, values) <= LARGEST**2


def refuse_large(name, values):
    """Refuse numbers whose squares, and the sums of these, are no numbers.

    NaN is a missing value, which is not refused.
    """
    if are_small(values):
        return
    low = np.fmin.reduce(values, axis=None, initial=0.0)
    high = np.fmax.reduce(values, axis=None, initial=0.0)
    if max(high, -low) > LARGEST:
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in absolute value, as its variance "
            f"must be a number; got {high if high > -low else low:g}: divide it by its "
            "scale."
        )


def is_plain(values, shape, dtype=np.float64):
    """Whether values are an array such as kernels take, but for its finiteness."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype
        and values.shape == shape
        and values.flags.c_contiguous
    )


def refuse_masked(values, asked):
    """Refuse an array that hides values: scikit-learn would read what is hidden."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{asked} got an array of which {np.ma.count_masked(values)} values are "
            "masked, and a mask is not read: give what is missing as NaN, "
            "values.filled(numpy.nan), to an estimator that takes it, or leave these "
            "rows out."
        )


def refuse_missing_labels(name, labels):
    """Refuse labels that are None, NaN, NaT or NA: they are no class, and in no order.

    scikit-learn names NaN among numbers.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind not in "mMO" or not labels.ndim:
        return
    for label in labels.ravel():
        if label is None or type(label).__name__ == "NAType" or label != label:
            raise ValueError(
                f"{name} has {label!r}, which is no label: leave the row out, or give "
                "what is missing a name, such as 'missing'."
            )


def validate_data(estimator, X, *others, **checks):
    """Validate rows as scikit-learn does; an error names a column of words or dates.

    Arrays with masked values are refused, missing labels, and targets that are None:
    scikit-learn looks for NaN and infinities before it converts objects to numbers.

    Parameters
    ----------
    estimator : estimator
        What the rows are for.
    X : array-like of shape (n_samples, n_features)
        Rows.
    *others, **checks
        See `sklearn.utils.validation.validate_data`.

    Returns
    -------
    validated : ndarray, or tuple of ndarray
        X, or X and y.
    """
    for values in (X, *others):
        refuse_masked(values, type(estimator).__name__)
    if others and isinstance(estimator, ClassifierMixin):
        refuse_missing_labels("y", others[0])
    error = strange = None
    found = _first_date(X)
    if found is None:
        try:
            validated = validation.validate_data(estimator, X, *others, **checks)
        except (ValueError, TypeError) as refusal:  # the latter of dates among objects
            error, found = refusal, _first_words(X)
    if found is None and checks.get("y_numeric"):
        strange = _first_strange(others[0])
    if found is not None:
        name, value = found
        raise ValueError(
            f"Column {name!r} of X has {value!r}, and {type(estimator).__name__} needs "
            "numbers: drop the column or encode it, for instance by "
            "sklearn.preprocessing.OneHotEncoder, or by OrdinalEncoder for an "
            "estimator that takes codes of categories."
        ) from error
    if strange is not None:
        raise ValueError(
            f"y has {strange!r}, and {type(estimator).__name__} needs numbers: convert "
            "strings of digits to float, encode words, and give dates and spans of "
            "time as numbers of a unit that you choose."
        ) from error
    if error is not None:
        raise error
    if checks.get("y_numeric"):  # None among objects becomes NaN after the check of y
        validation.assert_all_finite(
            validated[1], estimator_name=type(estimator).__name__, input_name="y"
        )
    return validated


def _column_names(X):
    """Names of the columns of a data frame or an Arrow table, else None.

    A column of a data frame may have the name of an attribute of an Arrow table.
    """
    own = "column_names" if hasattr(type(X), "column_names") else "columns"
    return getattr(X, own, None)


def _first_date(X):
    """Name of the first column of dates or spans of time, and its first value.

    scikit-learn takes their ticks, some 1e18, for numbers.
    """
    names = _column_names(X)
    if names is None:
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        return (0, np.ravel(X)[0]) if kind in ("m", "M") and np.size(X) else None
    for name in names:
        kind = str(getattr(X[name], "dtype", getattr(X[name], "type", ""))).lower()
        dates = ("date", "time", "duration", "period")
        if kind.startswith(dates) and len(X[name]):
            return name, np.asarray(X[name])[0]
    return None


def _first_words(X):
    """Name of the first column with a date or a word, and this value."""
    names = _column_names(X)
    if names is None:
        if issparse(X):
            return None
        X = np.array(X, dtype=object)
        if X.ndim != 2:
            return None
        names, columns = range(X.shape[1]), X.T
    else:
        columns = (np.asarray(X[name], dtype=object) for name in names)
    for name, column in zip(names, columns, strict=True):
        for value in column:
            if isinstance(value, str):
                try:
                    float(value)
                except ValueError:
                    return name, value
            elif isinstance(value, TIMES):
                return name, value
    return None


def _first_strange(y):
    """Return the first target that is a date, a span of time or a string, or None.

    A string of digits is one, too: scikit-learn would convert it, or leave it.
    """
    y = np.asarray(y)
    if not y.ndim:
        return None
    if y.dtype.kind in "mMSU":
        first = next(iter(np.ravel(y)), None)
        return first.item() if y.dtype.kind in "SU" and y.size else first
    if y.dtype.kind != "O":
        return None
    strange = (
        value for value in np.ravel(y) if isinstance(value, (str, bytes, *TIMES))
    )
    return next(strange, None)
