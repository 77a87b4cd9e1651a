"""Helpers of displays: axes, checks, and estimators along a stream."""

import inspect
from numbers import Integral

import numpy as np
from sklearn.base import clone

from .._extras import extra_module


def needs_matplotlib(cls):
    """Raise ImportError with the name of the extra if matplotlib is not installed."""
    extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")


def refuse_others(cls, estimator, *needed, such_as, kind=None):
    """Raise TypeError unless the estimator has the attributes that a display needs.

    Parameters
    ----------
    cls : type
        The display.
    estimator : object
        The argument.
    *needed : str
        Names of attributes; those that end with "_" are of fitted estimators.
    such_as : str
        Name of an estimator that has them.
    kind : str, default=None
        Description of such an estimator, for the message, instead of private names.
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
    """Raise ValueError unless each number is a valid column."""
    for column in columns:
        if not (isinstance(column, Integral) and 0 <= column < width):
            raise ValueError(f"{name}={column!r} should be from 0 to {width - 1}.")


def columns_of(estimator, argument, features, width):
    """Return the columns of features, given by column or by name in the fit."""
    names = list(getattr(estimator, "feature_names_in_", []))
    columns = []
    for feature in features:
        if isinstance(feature, str) and feature not in names:
            known = f"one of {names}" if names else "known: features had no names"
            raise ValueError(f"{argument}={feature!r} is not {known}.")
        columns.append(names.index(feature) if isinstance(feature, str) else feature)
    check_columns(argument, columns, width)
    return columns


def axes_of(display, ax):
    """Return the axes to plot on, and set `ax_` and `figure_` of the display."""
    plt = extra_module("matplotlib.pyplot", "plot", f"{type(display).__name__}.plot")
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def figure_of(display, figure, size):
    """Return the figure to plot on, and set `figure_` of the display.

    size : width and height of a new figure, in inches.
    """
    plt = extra_module("matplotlib.pyplot", "plot", f"{type(display).__name__}.plot")
    if figure is None:
        figure = plt.figure(figsize=size, layout="constrained")
    display.figure_ = figure
    return figure


def short_dates(ax):
    """Write dates on the horizontal axis so that they do not overlap."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if isinstance(ax.xaxis.get_major_locator(), AutoDateLocator):
        locator = AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def whole_ticks(axis):
    """Put ticks at whole numbers only, unless the axis has ticks of another kind."""
    locator = axis.get_major_locator()
    if "integer" in getattr(locator, "default_params", {}):
        locator.set_params(integer=True, min_n_ticks=1)


def feature_name(estimator, feature):
    """Return the name of a column in the fit, or "x" and its index."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"x{feature}" if names is None else str(names[feature])


def along_stream(estimator, X, y, ends):
    """Yield a clone of the estimator after it has learnt the rows before each end.

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
    """Return rows by position: before pandas 3, slices of a float index are labels."""
    return getattr(rows, "iloc", rows)[start:end]
