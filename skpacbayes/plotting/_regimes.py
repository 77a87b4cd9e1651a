"""Display of the regimes of a sequence."""

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._extras import style_of
from ._base import (
    axes_of,
    columns_of,
    feature_name,
    needs_matplotlib,
    refuse_others,
    short_dates,
)


class RegimesDisplay:
    """A sequence over the probabilities of its regimes.

    Use :meth:`from_estimator` to make one from a fitted estimator and rows.

    Parameters
    ----------
    values : ndarray of shape (n_timesteps,)
        One feature of the rows.
    probabilities : ndarray of shape (n_timesteps, n_states)
        Probabilities of the states.
    times : ndarray of shape (n_timesteps,), default=None
        Times of the rows; None for their numbers.
    name : str, default="x0"
        Name of the feature.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    FilterDisplay : The state of a particle filter, with a band.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import DirichletProcessHMM, RegimesDisplay
    >>> rng = np.random.default_rng(0)
    >>> speed = np.repeat([0.0, 3.0, 0.0], 40)
    >>> X = (speed + 0.3 * rng.normal(size=120))[:, None]
    >>> model = DirichletProcessHMM(2, n_iter=60, burn_in=40, random_state=0).fit(X)
    >>> display = RegimesDisplay.from_estimator(model, X)
    >>> display.probabilities.shape
    (120, 2)
    """

    def __init__(self, values, probabilities, *, times=None, name="x0"):
        self.values, self.probabilities = values, probabilities
        self.times, self.name = times, name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        feature=0,
        times=None,
        inputs=None,
        ax=None,
        line_kwargs=None,
    ):
        """Compute the probabilities of the regimes, and plot.

        Parameters
        ----------
        estimator : DirichletProcessHMM
            Fitted estimator.
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time.
        feature : int or str, default=0
            The column that is drawn, or the name of its feature.
        times : array-like of shape (n_timesteps,), default=None
            Times of the rows, in ascending order; None for their numbers.
        inputs : array-like of shape (n_timesteps, n_inputs), default=None
            Inputs of each row. Needed if the model was fitted with some.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line of the values, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RegimesDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        refuse_others(cls, estimator, "predict_proba", such_as="DirichletProcessHMM")
        if np.ndim(X) == 2:  # the estimator refuses others
            (feature,) = columns_of(estimator, "feature", [feature], np.shape(X)[1])
        check_consistent_length(X, times)
        given = {} if inputs is None else {"inputs": inputs}
        probabilities = estimator.predict_proba(X, **given)
        return cls(
            np.asarray(X)[:, feature],
            probabilities,
            times=None if times is None else np.asarray(times),
            name=feature_name(estimator, feature),
        ).plot(ax=ax, line_kwargs=line_kwargs)

    def plot(self, *, ax=None, line_kwargs=None):
        """Plot the values; behind them each state has a color, mixed where unsure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line of the values, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RegimesDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        from matplotlib import colormaps
        from matplotlib.patches import Patch

        n_rows, n_states = self.probabilities.shape
        times = np.arange(n_rows) if self.times is None else self.times
        usual = {"color": "black", "lw": 0.8, "marker": ".", "ms": 2}
        ax.plot(times, self.values, **style_of("lines.Line2D", line_kwargs, **usual))
        short_dates(ax)
        limits = ax.get_ylim()
        # The extremes of this map differ in lightness, too.
        colors = colormaps["viridis"](np.linspace(1.0, 0.25, n_states))[:, :3]
        shades = 1 - 0.55 * (1 - self.probabilities @ colors)
        where = np.asarray(ax.convert_xunits(times), dtype=float)
        middle = (where[1:] + where[:-1]) / 2
        edges = np.concatenate([where[:1], middle, where[-1:]])
        if n_rows == 1:
            edges = where[0] + np.array([-0.5, 0.5])
        ax.pcolormesh(
            edges,
            [0, 1],
            shades[None],
            transform=ax.get_xaxis_transform(),
            zorder=0,
        )
        key = 1 - 0.55 * (1 - colors)
        ax.legend(
            handles=[
                Patch(color=color, label=f"state {j}") for j, color in enumerate(key)
            ]
        )
        ax.set(xlabel="time", ylabel=self.name)
        ax.set_ylim(limits)  # limits of the values, without the shading
        ax.margins(x=0)
        return self
