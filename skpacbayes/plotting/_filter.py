"""Display of the filtered or smoothed state of a sequence, with a band."""

from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_consistent_length

from .._extras import style_of
from ._base import axes_of, check_columns, needs_matplotlib, refuse_others, short_dates


class FilterDisplay:
    """Filtered or smoothed state of a sequence, with a band.

    Use :meth:`from_estimator` to make one from a particle filter and rows.

    Parameters
    ----------
    means : ndarray of shape (n_timesteps,)
        Means of the state.
    stds : ndarray of shape (n_timesteps,)
        Its standard deviations.
    times : ndarray of shape (n_timesteps,), default=None
        Times of the rows; None for their numbers.
    n_stds : float, default=2.0
        Half the width of the band, in standard deviations.
    rows : ndarray of shape (n_timesteps,), default=None
        Measurements, drawn as dots.
    name : str, default="state"
        What is drawn.
    function : callable, default=None
        Monotone function of the state, such as `numpy.exp`, through which the mean and
        the ends of the band are drawn; None for the state itself.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    RegimesDisplay : Regimes behind a sequence.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import ClusteredParticleFilter, FilterDisplay
    >>> rng = np.random.default_rng(0)
    >>> level = np.cumsum(rng.normal(size=80))
    >>> X = (level + rng.normal(size=80))[:, None]
    >>> tracker = ClusteredParticleFilter(n_particles=200, random_state=0)
    >>> display = FilterDisplay.from_estimator(tracker, X, rows=True)
    >>> covered = np.abs(level - display.means) < 2 * display.stds
    >>> bool(covered.mean() > 0.8)
    True
    """

    def __init__(
        self,
        means,
        stds,
        *,
        times=None,
        n_stds=2.0,
        rows=None,
        name="state",
        function=None,
    ):
        self.means, self.stds, self.times = means, stds, times
        self.n_stds, self.rows, self.name = n_stds, rows, name
        self.function = function

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        smooth=True,
        state=0,
        times=None,
        n_stds=2.0,
        rows=False,
        function=None,
        inputs=None,
        ax=None,
        line_kwargs=None,
    ):
        """Let a clone of the filter follow rows from the first, and plot.

        Parameters
        ----------
        estimator : ClusteredParticleFilter
            The filter; fitted or not.
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        smooth : bool, default=True
            Whether a state is that given all rows, or that given the rows up to it.
        state : int, default=0
            Which coordinate of the state.
        times : array-like of shape (n_timesteps,), default=None
            Times of the rows; None for their numbers.
        n_stds : float, default=2.0
            Half the width of the band, in standard deviations.
        rows : bool, default=False
            Whether to draw column `state` of X as dots: where the measurement is that
            of the state, or of its `function`.
        function : callable, default=None
            Monotone function of the state, such as `numpy.exp` where the state is a
            logarithm: the mean of the state and the ends of its band are drawn through
            it. None for the state itself.
        inputs : array-like of shape (n_timesteps, n_inputs), default=None
            Inputs of each row.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line, as for `matplotlib.axes.Axes.plot`. The band has its
            color.

        Returns
        -------
        display : FilterDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        method = "fit_smooth" if smooth else "fit_filter"
        refuse_others(cls, estimator, method, such_as="ClusteredParticleFilter")
        check_scalar(n_stds, "n_stds", Real, min_val=0)
        check_consistent_length(X, times)
        first = clone(estimator).fit(
            X[:1], inputs=None if inputs is None else inputs[:1]
        )
        n_states = first.particles_.shape[1]
        check_columns("state", [state], n_states)
        if rows:
            check_columns("rows=True with state", [state], np.shape(X)[1])
        means, stds = getattr(clone(estimator), method)(X, inputs=inputs)
        return cls(
            means[:, state],
            stds[:, state],
            times=None if times is None else np.asarray(times),
            n_stds=n_stds,
            rows=np.asarray(X)[:, state] if rows else None,
            name=f"{'smoothed' if smooth else 'filtered'} state"
            + (f" {state}" if n_states > 1 else ""),
            function=function,
        ).plot(ax=ax, line_kwargs=line_kwargs)

    def plot(self, *, ax=None, line_kwargs=None):
        """Plot the mean and the band, which the legend names.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the line, as for `matplotlib.axes.Axes.plot`. The band has its
            color.

        Returns
        -------
        display : FilterDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        times = np.arange(len(self.means)) if self.times is None else self.times
        shown = self.function or (lambda state: state)
        band = self.n_stds * self.stds
        low, high = shown(self.means - band), shown(self.means + band)
        if self.rows is not None:
            ax.plot(times, self.rows, ".", color="0.5", ms=4, label="measured")
        alone = len(times) == 1  # a line of one point is empty, and so is its band
        usual = {"marker": "o" if alone else None, "label": self.name}
        style = style_of("lines.Line2D", line_kwargs, **usual)
        (line,) = ax.plot(times, shown(self.means), **style)
        if self.n_stds > 0:
            ax.fill_between(
                times,
                low,
                high,
                color=line.get_color(),
                alpha=0.3,
                lw=4 if alone else 0,
                label=f"± {self.n_stds:g} standard deviations",
            )
        short_dates(ax)
        ax.set(xlabel="time", ylabel=self.name)
        if self.function is not None:
            what = getattr(self.function, "__name__", "")
            what = what if what.isidentifier() else "function"  # not "<lambda>"
            ax.set_ylabel(f"{what} of the state")
        ax.legend()
        return self
