"""Validation of rows and targets."""

import datetime
import math
import sys

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, validation

from ._kernels.standardize import LARGEST

# Types of dates, times of day and time spans.
TIMES = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    np.datetime64,
    np.timedelta64,
)


def are_finite(values):
    """Return whether the sum of squares is finite, a fast test for finite values.

    The sum may overflow although all values are finite.
    """
    return math.isfinite(np.vdot(values, values))


def writeable(array):
    """Return the array, or a copy of one that is read-only, such as a memory map.

    Numba would compile each kernel again for read-only arrays.
    """
    return array if array.flags.writeable else array.copy()


def are_small(values):
    """Return whether the sum of squares shows that no value is NaN or too large."""
    return np.vdot(values, values) <= LARGEST**2


def refuse_large(name, values):
    """Raise ValueError for values whose sums of squares may overflow.

    NaN is a missing value, and allowed.
    """
    if are_small(values):
        return
    low = np.fmin.reduce(values, axis=None, initial=0.0)
    high = np.fmax.reduce(values, axis=None, initial=0.0)
    if max(high, -low) > LARGEST:
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in absolute value, as its squares "
            f"must not overflow; got {high if high > -low else low:g}: divide it by "
            "its scale."
        )


def is_plain(values, shape, dtype=np.float64):
    """Return whether values are a valid array for kernels, except for finiteness."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype
        and values.shape == shape
        and values.flags.c_contiguous
    )


def refuse_hidden(values, asked):
    """Raise for lazy tables, for masked arrays, and for arrays NumPy cannot read.

    scikit-learn ignores masks. Those of rows in a list count, too.
    """
    if type(values).__name__ == "LazyFrame":
        raise TypeError(
            f"{asked} got a lazy table of type {type(values).__module__}.LazyFrame, "
            "which has no values yet: call its method collect first."
        )
    if n_masked := _n_masked(values):
        raise ValueError(
            f"{asked} got an array with {n_masked} masked values, "
            "but masks are not supported: replace missing values by NaN, "
            "values.filled(numpy.nan), for an estimator that accepts NaN, or remove "
            "these rows."
        )
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        _refuse_foreign(values, asked)


def has_masked_rows(values):
    """Return whether a list or tuple has masked arrays among its items."""
    return any(isinstance(row, np.ma.MaskedArray) for row in values)


def _n_masked(values):
    """Return the number of masked values in an array, or in the arrays of a list."""
    if type(values) in (list, tuple) and has_masked_rows(values):
        return sum(map(_n_masked, values))
    if not isinstance(values, np.ma.MaskedArray):
        return 0
    return int(np.ma.count_masked(values))


def _refuse_foreign(values, asked):
    """Raise TypeError for an array of another library that NumPy does not read.

    It is in the memory of another device, or scikit-learn would use its library.
    """
    kind = f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"
    if get_config()["array_api_dispatch"]:
        raise TypeError(
            f"{asked} got an array of type {kind} while array_api_dispatch is on, but "
            "computes with NumPy: pass numpy.asarray of it, or turn "
            "array_api_dispatch off."
        )
    try:
        np.asarray(values)
    except (TypeError, RuntimeError) as error:
        device = getattr(values, "device", "unknown")
        raise TypeError(
            f"{asked} got an array of type {kind} on device {device}, which NumPy "
            "cannot read: copy it to the CPU and pass a NumPy array."
        ) from error


def refuse_missing_labels(name, labels, *, numbers=False):
    """Raise ValueError for masked labels, or labels that are None, NaN, NaT or NA.

    Strings beside other labels raise it, too: of a list, NumPy would make strings of
    all, and "nan" a label.

    numbers : whether NaN among numbers raises it, too, as in scikit-learn.
    """
    refuse_hidden(labels, name)
    listed = isinstance(labels, (list, tuple))
    words = listed and any(isinstance(label, (str, bytes)) for label in labels)
    labels = np.asarray(labels, dtype=object if words else None)
    if labels.dtype.kind not in ("mMOfc" if numbers else "mMO") or not labels.ndim:
        return
    for label in labels.ravel():
        if label is None or type(label).__name__ == "NAType" or label != label:
            raise ValueError(
                f"{name} contains {label!r}, which is not a label: remove the row, or "
                "use a label such as 'missing'."
            )
    if labels.ndim == 1 and labels.dtype.kind == "O":
        kinds = [(isinstance(v, str), isinstance(v, bytes)) for v in labels]
        if len(set(kinds)) > 1:
            other = next(
                v for v, kind in zip(labels, kinds, strict=True) if kind != kinds[0]
            )
            raise ValueError(
                f"{name} has the labels {labels[0]!r} and {other!r}: make all labels "
                "strings, or all numbers."
            )


# A decorator: one NaN would spoil a stream for good, and a check costs little.
always_checks_finiteness = config_context(assume_finite=False)


@always_checks_finiteness
def validate_data(estimator, X, *others, **checks):
    """Validate rows as scikit-learn does, with errors that name bad columns.

    The setting `assume_finite` has no effect. Masked arrays, missing labels and targets
    that are None raise errors, too: scikit-learn checks for NaN and infinities before
    it converts objects to numbers.

    Parameters
    ----------
    estimator : estimator
        Estimator that validates the rows.
    X : array-like of shape (n_samples, n_features)
        Rows.
    *others, **checks
        See `sklearn.utils.validation.validate_data`.

    Returns
    -------
    validated : ndarray, or tuple of ndarray
        X, or X and y.
    """
    asked = type(estimator).__name__
    for values in (X, *others):
        refuse_hidden(values, asked)
    if others and isinstance(estimator, ClassifierMixin):
        refuse_missing_labels("y", others[0])
    needs, of_numbers = f"{asked} needs numbers", checks.get("y_numeric")
    if of_numbers:
        refuse_strange("y", others[0], needs)
        others = (with_na_as_none(others[0]),)
    validated = _with_columns_named(
        "X",
        X,
        needs,
        lambda X: validation.validate_data(estimator, X, *others, **checks),
    )
    if of_numbers:  # None becomes NaN only after the check of y
        validation.assert_all_finite(validated[1], estimator_name=asked, input_name="y")
    return validated


@always_checks_finiteness
def as_numbers(name, values, **checks):
    """Return an argument other than rows and targets as a float64 array.

    NumPy would ignore masks and imaginary parts, and read dates and time spans as
    their ticks.

    Parameters
    ----------
    name : str
        Name of the argument.
    values : array-like
        The argument.
    **checks
        See `sklearn.utils.check_array`; here the default is any number of dimensions
        and of rows.

    Returns
    -------
    array : ndarray
        C-contiguous.

    Raises
    ------
    ValueError
        If the argument is masked, or has dates, words, complex numbers or, by default,
        NaN or infinities.
    """
    refuse_hidden(values, name)
    if np.ndim(values) < 2:
        refuse_strange(name, values)
    checks = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0} | checks
    return _with_columns_named(
        name,
        values,
        "numbers are needed",
        lambda values: check_array(
            values, dtype=np.float64, order="C", input_name=name, **checks
        ),
    )


def _with_columns_named(name, values, needs, validate):
    """Return `validate(values)`; errors name the first column without numbers."""
    error, found = None, _first_date(values)
    if getattr(getattr(values, "dtype", None), "kind", "") == "O":
        found = _first_words(values)  # NumPy may convert time spans among objects
    if found is None:
        try:
            return validate(values)
        # TypeError: dates among objects; OverflowError: integers above 1.8e308.
        except (ValueError, TypeError, OverflowError) as refusal:
            _refuse_dictionaries(name, values, needs)
            error, found = refusal, _first_words(values)
            if found is None:
                plain = with_na_as_none(values)
                if plain is values:
                    raise
                return validate(plain)
    column, value = found
    raise ValueError(
        f"Column {column!r} of {name} has {_shown(value)}, but {needs}: drop the "
        f"column or {_remedy(value)}."
    ) from error


def _shown(value):
    """Return how a message shows a value that is no number."""
    if isinstance(value, np.datetime64):
        return str(value)
    huge = "an integer above 1.8e308 in absolute value"
    return huge if _is_huge(value) else repr(value)


def _remedy(value):
    """Return how to make a number of a value."""
    if isinstance(value, (str, bytes)):
        return (
            "encode it, for instance by OneHotEncoder(sparse_output=False) of "
            "sklearn.preprocessing, or by OrdinalEncoder for an estimator that accepts "
            "codes of categories"
        )
    if _is_huge(value):
        return "divide it by a constant"
    return "convert it to numbers, such as the days since a date, or the hour"


def _is_huge(value):
    """Return whether an integer is larger than every float."""
    return isinstance(value, int) and abs(value) > sys.float_info.max


def _refuse_dictionaries(name, values, needs):
    """Raise TypeError for a list of dictionaries."""
    if isinstance(values, list) and values and isinstance(values[0], dict):
        raise TypeError(
            f"{name} is a list of dictionaries, but {needs} in rows and columns: "
            "convert it, for instance by sklearn.feature_extraction.DictVectorizer or "
            "pandas.DataFrame."
        )


def with_na_as_none(values):
    """Return objects with None instead of pandas' NA, and all others as they are.

    scikit-learn reads None as NaN, and raises an unclear error for NA.
    """
    if issparse(values):
        return values
    if hasattr(values, "columns") and hasattr(values, "mask"):
        objects = any(kind.kind == "O" for kind in values.dtypes)
        return values.mask(values.isna(), None) if objects else values
    objects = np.asarray(values)
    if objects.dtype.kind != "O":
        return values
    missing = [type(value).__name__ == "NAType" for value in objects.ravel()]
    if not any(missing):
        return values
    objects = objects.copy()
    objects[np.reshape(missing, objects.shape)] = None
    return objects


def refuse_strange(name, values, needs="numbers are needed"):
    """Raise ValueError for dates, time spans, strings and huge integers."""
    strange = _first_strange(values)
    if strange is not None:
        raise ValueError(
            f"{name} has {_shown(strange)}, but {needs}: convert strings of digits to "
            "float, encode other strings, convert dates and time spans to numbers, and "
            "divide large integers by a constant."
        )


def _column_names(X):
    """Return the column names of a data frame or an Arrow table, else None.

    A column of a data frame may have the name of an attribute of an Arrow table.
    """
    own = "column_names" if hasattr(type(X), "column_names") else "columns"
    return getattr(X, own, None)


def _first_date(X):
    """Return the name of the first column of dates or time spans, and its first value.

    scikit-learn would convert them to their ticks, of about 1e18.
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
    """Return the first column with a date, string or huge integer, and this value."""
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
            if isinstance(value, (str, bytes)):
                try:
                    float(value)
                except ValueError:
                    return name, value
            elif isinstance(value, TIMES) or _is_huge(value):
                return name, value
    return None


def _first_strange(y):
    """Return the first date, time span, string or huge integer, or None.

    This includes strings of digits, which scikit-learn may convert.
    """
    y = np.asarray(y).ravel()
    if y.dtype.kind in "mMSU":
        first = next(iter(y), None)
        return first.item() if y.dtype.kind in "SU" and y.size else first
    if y.dtype.kind != "O":
        return None
    kinds = str, bytes, *TIMES
    strange = (value for value in y if isinstance(value, kinds) or _is_huge(value))
    return next(strange, None)
