"""What displays share: axes, and an estimator that learns a stream anew."""

import inspect
from numbers import Integral

import numpy as np
from sklearn.base import clone

from .._extras import extra_module


def needs_matplotlib(cls):
    """Raise an error that names the extra, if matplotlib is not installed."""
    extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")


def refuse_others(cls, estimator, *needed, such_as, kind=None):
    """Raise TypeError unless the estimator has what a display reads of it.

    Parameters
    ----------
    cls : type
        The display.
    estimator : object
        What was passed.
    *needed : str
        Names of attributes, of a fitted estimator where they end with "_".
    such_as : str
        Name of an estimator that has them.
    kind : str, default=None
        What an estimator with them does, said in place of names that are private.
    """
    lacking = [name for name in needed if not hasattr(estimator, name)]
    if lacking:
        given = estimator if isinstance(estimator, type) else type(estimator)
        if kind is not None:
            raise TypeError(
                f"{cls.__name__} needs an estimator that {kind}, such as {such_as}; "
                f"got {given.__name__}."
            )
        raise TypeError(
            f"{cls.__name__} needs an estimator with {' and '.join(needed)}, such as "
            f"{such_as}; {given.__name__} has no {' and no '.join(lacking)}."
        )


def check_columns(name, columns, width):
    """Raise ValueError unless each number is that of one of so many columns."""
    for column in columns:
        if not (isinstance(column, Integral) and 0 <= column < width):
            raise ValueError(f"{name}={column!r} should be from 0 to {width - 1}.")


def axes_of(display, ax):
    """Return the axes to draw on; the display notes them, and their figure."""
    plt = extra_module("matplotlib.pyplot", "plot", f"{type(display).__name__}.plot")
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def feature_name(estimator, feature):
    """Return the name of a column that the estimator was fitted to, or "x" and j."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"x{feature}" if names is None else str(names[feature])


def along_stream(estimator, X, y, ends):
    """Yield a clone of the estimator after it has learnt the rows up to each end.

    Parameters
    ----------
    estimator : estimator
        Has `partial_fit`.
    X : array-like of shape (n_samples, n_features)
        Rows, in their order.
    y : array-like of shape (n_samples,) or None
        Targets.
    ends : iterable of int
        Numbers of rows, ascending.
    """
    model, start = clone(estimator), 0
    options = {}
    if "classes" in inspect.signature(model.partial_fit).parameters:
        options["classes"] = np.unique(y)
    for end in ends:
        targets = () if y is None else (_between(y, start, end),)
        model.partial_fit(_between(X, start, end), *targets, **options)
        start = end
        yield model


def _between(rows, start, end):
    """Rows by their places: before pandas 3, numbers in a float index are labels."""
    return getattr(rows, "iloc", rows)[start:end]
