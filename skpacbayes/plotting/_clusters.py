"""Displays of the number of clusters: its posterior, and its values in a stream."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._extras import style_of
from ._base import along_stream, axes_of, needs_matplotlib, refuse_others, whole_ticks


class ClusterCountDisplay:
    """Posterior of the number of clusters.

    Use :meth:`from_estimator` to create a display from a fitted estimator.

    Parameters
    ----------
    probabilities : ndarray of shape (max_clusters,)
        Posterior probabilities of 1, 2, ... clusters.
    n_clusters : int
        Number of clusters of the estimator.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    StreamDisplay : The number of clusters in the course of a stream.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_blobs
    >>> from skpacbayes import ClusterCountDisplay, PACOClusterer
    >>> X, _ = make_blobs(200, centers=3, cluster_std=0.5, random_state=0)
    >>> clusterer = PACOClusterer(random_state=0).fit(X)
    >>> display = ClusterCountDisplay.from_estimator(clusterer)
    >>> display.n_clusters
    3
    """

    def __init__(self, probabilities, n_clusters):
        self.probabilities, self.n_clusters = probabilities, n_clusters

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, bar_kwargs=None):
        """Plot the posterior of a fitted estimator.

        Parameters
        ----------
        estimator : PACOClusterer
            Fitted estimator.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        bar_kwargs : dict, default=None
            Style of the bars, as for `matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : ClusterCountDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        refuse_others(cls, estimator, "n_clusters_posterior_", such_as="PACOClusterer")
        posterior = estimator.n_clusters_posterior_
        return cls(posterior, estimator.n_clusters_).plot(ax=ax, bar_kwargs=bar_kwargs)

    def plot(self, *, ax=None, bar_kwargs=None):
        """Plot a bar for each number; the estimator's number is dark.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        bar_kwargs : dict, default=None
            Style of the bars, as for `matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : ClusterCountDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        last = max(int(np.flatnonzero(self.probabilities).max()) + 1, self.n_clusters)
        sizes = np.arange(1, last + 1)
        colors = np.where(sizes == self.n_clusters, "tab:blue", "lightsteelblue")
        shown = np.zeros(last)
        shown[: len(self.probabilities)] = self.probabilities[:last]
        style = style_of("patches.Rectangle", bar_kwargs, color=list(colors))
        ax.bar(sizes, shown, **style)
        ax.set(xlabel="clusters", ylabel="posterior probability", ylim=(0, 1))
        whole_ticks(ax.xaxis)
        return self


class StreamDisplay:
    """A fitted attribute in the course of a stream.

    Use :meth:`from_estimator` to fit an estimator to a stream, and plot.

    Parameters
    ----------
    n_rows : ndarray of shape (n_points,)
        Numbers of rows learnt.
    values : ndarray of shape (n_points,)
        Value of the attribute after these rows.
    name : str, default="clusters"
        Name of the values.
    truth : ndarray of shape (n_points,), default=None
        True values, if known.

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
    ClusterCountDisplay : The posterior of the number of clusters.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from skpacbayes import PACOClusterer, StreamDisplay, make_paco_model
    >>> X, _ = make_paco_model(6, random_state=0)  # a new group every 20 rows
    >>> clusterer = PACOClusterer(random_state=0)
    >>> display = StreamDisplay.from_estimator(clusterer, X[:120], every=40)
    >>> display.values
    array([2, 4, 6])
    """

    def __init__(self, n_rows, values, *, name="clusters", truth=None):
        self.n_rows, self.values = n_rows, values
        self.name, self.truth = name, truth

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y=None,
        *,
        attribute="n_clusters_",
        every=1,
        truth=None,
        ax=None,
        line_kwargs=None,
    ):
        """Fit a clone of the estimator to a stream, and plot.

        Parameters
        ----------
        estimator : estimator
            Has `partial_fit`; fitted or not.
        X : array-like of shape (n_samples, n_features)
            Rows, in their order.
        y : array-like of shape (n_samples,), default=None
            Targets, if the estimator takes them.
        attribute : str
            Fitted attribute to plot, a number.
        every : int, default=1
            Number of rows between two values.
        truth : array-like of shape (n_samples,), default=None
            True value after each row, if known.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line of the values, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : StreamDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `y` or `truth` has not the length of `X`, or the attribute is no number.
        """
        needs_matplotlib(cls)
        check_scalar(every, "every", Integral, min_val=1)
        refuse_others(cls, estimator, "partial_fit", such_as="PACOClusterer")
        check_consistent_length(X, y, truth)
        ends = np.append(np.arange(every, len(X), every), len(X))
        values = []
        for model in along_stream(estimator, X, y, ends):
            refuse_others(cls, model, attribute, such_as="PACOClusterer")
            values.append(getattr(model, attribute))
        if any(np.ndim(value) for value in values):
            raise ValueError(f"{attribute} must be a number, got {values[-1]!r}.")
        truth = None if truth is None else np.asarray(truth)[ends - 1]
        name = attribute.removesuffix("_").removeprefix("n_").replace("_", " ")
        display = cls(ends, np.array(values), name=name, truth=truth)
        display.estimator_ = model
        return display.plot(ax=ax, line_kwargs=line_kwargs)

    def plot(self, *, label=None, ax=None, line_kwargs=None):
        """Plot the values as steps.

        Parameters
        ----------
        label : str, default=None
            Name of the values in a legend. None: "found" if `truth` is given.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line of the values, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : StreamDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        if self.truth is not None:
            ax.step(self.n_rows, self.truth, where="post", color="0.6", label="truth")
        marker = "." if len(self.n_rows) == 1 else None  # a step of one point is empty
        usual = {"marker": marker, "label": label or "found"}
        style = style_of("lines.Line2D", line_kwargs, **usual)
        ax.step(self.n_rows, self.values, where="post", **style)
        if self.truth is not None or label is not None:
            ax.legend()
        ax.set(xlabel="rows learnt", ylabel=self.name)
        if np.asarray(self.values).dtype.kind in "iu":
            whole_ticks(ax.yaxis)
        return self
