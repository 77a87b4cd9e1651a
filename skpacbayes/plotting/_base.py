"""What displays share: axes, and an estimator that learns a stream anew."""

import inspect

import numpy as np
from sklearn.base import clone

from .._extras import extra_module


def needs_matplotlib(cls):
    """Raise an error that names the extra, if matplotlib is not installed."""
    extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")


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
        rows = slice(start, end)
        targets = () if y is None else (y[rows],)
        model.partial_fit(X[rows], *targets, **options)
        start = end
        yield model
