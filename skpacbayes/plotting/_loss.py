"""Display of the average loss of rows that are predicted before they are learnt."""

import inspect
from numbers import Integral

import numpy as np
from sklearn.utils import check_scalar

from .._extras import style_of
from ._base import along_stream, axes_of, needs_matplotlib, refuse_others


class ProgressiveLossDisplay:
    """Average loss of rows that were predicted before they were learnt.

    Use :meth:`from_estimator` to let an estimator learn a stream, and draw it.

    Parameters
    ----------
    n_rows : ndarray of shape (n_points,)
        Numbers of rows learnt.
    losses : ndarray of shape (n_points,)
        Average loss of these rows.
    certificate : Certificate, default=None
        The guarantee after all rows.
    name : str, default="average loss so far"
        What the losses are.

    Attributes
    ----------
    estimator_ : estimator
        The estimator after all rows, if made by `from_estimator`.
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    StreamDisplay : Any fitted attribute along a stream.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import OnlineVIRegressor, ProgressiveLossDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=500)
    >>> model = OnlineVIRegressor(n_fourier=0)
    >>> display = ProgressiveLossDisplay.from_estimator(model, X, y)
    >>> bool(display.losses[-1] < display.losses[0])
    True
    """

    def __init__(self, n_rows, losses, *, certificate=None, name="average loss so far"):
        self.n_rows, self.losses = n_rows, losses
        self.certificate, self.name = certificate, name

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, n_points=60, ax=None, line_kwargs=None
    ):
        """Let a clone of the estimator learn a stream, and plot.

        Parameters
        ----------
        estimator : estimator
            Has `partial_fit` and `cumulative_loss_`; fitted or not.
        X : array-like of shape (n_samples, n_features)
            Rows, in their order.
        y : array-like of shape (n_samples,), default=None
            Targets, if the estimator takes them.
        n_points : int, default=60
            Points of the curve, at most; closer together where the stream begins.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curve, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : ProgressiveLossDisplay
            The display, plotted. It has the certificate where the estimator has one
            for these parameters.
        """
        needs_matplotlib(cls)
        check_scalar(n_points, "n_points", Integral, min_val=2)
        refuse_others(cls, estimator, "partial_fit", such_as="OnlineVIRegressor")
        first = min(10, len(X))
        ends = np.unique(np.geomspace(first, len(X), n_points).astype(int))
        losses = []
        for end, model in zip(ends, along_stream(estimator, X, y, ends), strict=True):
            refuse_others(cls, model, "cumulative_loss_", such_as="OnlineVIRegressor")
            losses.append(model.cumulative_loss_ / end)
        display = cls(ends, np.array(losses), certificate=_certificate(model, X, y))
        display.estimator_ = model
        return display.plot(ax=ax, line_kwargs=line_kwargs)

    def plot(self, *, ax=None, line_kwargs=None):
        """Plot the average loss, and the bound of the certificate.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curve, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : ProgressiveLossDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        style = style_of("lines.Line2D", line_kwargs, label="observed")
        ax.semilogx(self.n_rows, self.losses, **style)
        if self.certificate is not None:
            bound = self.certificate.bound / self.n_rows[-1]
            label = "bound for all rows"
            if False in self.certificate.assumptions.values():
                label += " (assumptions fail)"
            ax.axhline(bound, color="0.3", linestyle="--", label=label)
            ax.legend()
        ax.set(xlabel="rows learnt", ylabel=self.name)
        return self


def _certificate(model, X, y):
    """Return the certificate of the cumulative loss, or None where there is none."""
    if not hasattr(model, "certificate"):
        return None
    takes = inspect.signature(model.certificate).parameters
    rows = {name: given for name, given in {"X": X, "y": y}.items() if name in takes}
    try:
        found = model.certificate(**rows)
    except (NotImplementedError, ValueError):
        return None
    return found if np.isclose(found.observed, model.cumulative_loss_) else None
