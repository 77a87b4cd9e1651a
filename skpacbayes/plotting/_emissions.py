"""Display of the densities of rows in each regime."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._extras import style_of
from ._base import axes_of, columns_of, feature_name, needs_matplotlib, refuse_others


class EmissionsDisplay:
    """Densities of one feature in each regime, with credible bands.

    Use :meth:`from_estimator` to make one from a fitted estimator and rows.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the feature.
    densities : ndarray of shape (n_points, n_states)
        Posterior mean of the density of each state.
    bands : ndarray of shape (2, n_points, n_states), default=None
        Lower and upper ends of the credible intervals of the densities.
    rows : ndarray of shape (n_samples,), default=None
        Values of the rows, drawn as a histogram; as the share of each value of the grid
        where they are all of these.
    names : list of str, default=None
        Names of the states; None for "state 0", "state 1" and so on.
    name : str, default="x0"
        Name of the feature.
    categorical : bool, default=False
        Whether the values are categories, whose probabilities are drawn as points.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    RegimesDisplay : When each regime holds.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import DirichletProcessHMM, EmissionsDisplay
    >>> rng = np.random.default_rng(0)
    >>> speed = np.repeat([0.0, 3.0, 0.0], 40)
    >>> X = (speed + 0.3 * rng.normal(size=120))[:, None]
    >>> model = DirichletProcessHMM(2, n_iter=60, burn_in=40, random_state=0).fit(X)
    >>> display = EmissionsDisplay.from_estimator(model, X)
    >>> np.sort(display.grid[display.densities.argmax(axis=0)]).round()
    array([0., 3.])
    """

    def __init__(
        self,
        grid,
        densities,
        *,
        bands=None,
        rows=None,
        names=None,
        name="x0",
        categorical=False,
    ):
        self.categorical = categorical
        self.grid, self.densities, self.bands = grid, densities, bands
        self.rows, self.names, self.name = rows, names, name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        feature=0,
        states=None,
        names=None,
        probability=0.9,
        grid=None,
        rows=False,
        ax=None,
        line_kwargs=None,
    ):
        """Compute the densities over the range of some rows, and plot.

        Parameters
        ----------
        estimator : DirichletProcessHMM
            Fitted estimator. Counts and categories have probabilities as densities.
        X : array-like of shape (n_timesteps, n_features)
            Rows, which give the range of the values; NaN is a missing value.
        feature : int or str, default=0
            The column, or the name of the feature, whose density is drawn; the others
            are integrated out.
        states : list of int, default=None
            States in the order in which they are drawn; None for all.
        names : list of str, default=None
            Names of these states; None for "state 0", "state 1" and so on.
        probability : float, default=0.9
            Posterior probability of the band, at each value; between 0 and 1.
        grid : array-like of shape (n_points,), default=None
            Values at which the density is computed; None for 200 from the least to the
            largest value in X, for at most 200 whole numbers in between where the
            feature is of counts, or for all categories.
        rows : bool, default=False
            Whether to draw a histogram of the column of X behind the densities.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curves, or of the points, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : EmissionsDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        refuse_others(cls, estimator, "emission_density", such_as="DirichletProcessHMM")
        check_share("probability", probability)
        X = np.asarray(X, dtype=float)
        (feature,) = columns_of(estimator, "feature", [feature], X.shape[1])
        values = X[np.isfinite(X[:, feature]), feature]
        if grid is None and len(values) == 0:
            raise ValueError(
                f"X has no finite value in feature={feature}: give a grid."
            )
        if grid is None:
            grid = _grid_of(estimator, feature, values.min(), values.max())
        grid = np.asarray(grid, dtype=float)
        points = np.full((len(grid), X.shape[1]), np.nan)  # NaN leaves a feature out
        points[:, feature] = grid
        tails = [(1 - probability) / 2, (1 + probability) / 2]
        densities = estimator.emission_density(points)
        chosen = list(range(densities.shape[1])) if states is None else list(states)
        if names is not None and len(names) != len(chosen):
            raise ValueError(
                f"names={names} should be one for each of {len(chosen)} states."
            )
        return cls(
            grid,
            densities[:, chosen],
            bands=estimator.emission_density(points, quantiles=tails)[:, :, chosen],
            rows=values if rows else None,
            names=[f"state {j}" for j in chosen] if names is None else list(names),
            name=feature_name(estimator, feature),
            categorical=_kind_of(estimator, feature) == "categorical",
        ).plot(ax=ax, line_kwargs=line_kwargs)

    def plot(self, *, ax=None, line_kwargs=None):
        """Plot a curve for each state, and the bands; states differ in style, too.

        Probabilities of categories, or of one value, are points with bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curves, or of the points, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : EmissionsDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        n_states = self.densities.shape[1]
        names = self.names or [f"state {j}" for j in range(n_states)]
        marker, bars = "", {"bins": 40, "density": True}
        if self.rows is not None and np.isin(self.rows, self.grid).all():
            marker = "."
            bars = {"bins": _cells_of(self.grid), "rwidth": 0.8}
            bars["weights"] = np.full(len(self.rows), 1 / len(self.rows))
        if self.rows is not None:
            ax.hist(self.rows, color="0.85", label="rows", **bars)
        styles = ["-", "--", "-.", ":"]
        alone = self.categorical or len(self.grid) == 1  # no line between values
        step = np.diff(np.unique(self.grid)).min(initial=1.0) if alone else 0.0
        for j in range(n_states):
            if alone:
                shift = 0.3 * step * ((j + 0.5) / n_states - 0.5)
                usual = {"marker": "o", "ls": "None", "label": names[j]}
                self._draw_points(
                    ax, j, shift, style_of("lines.Line2D", line_kwargs, **usual)
                )
                continue
            dash = styles[j % len(styles)]
            usual = {"marker": marker, "ls": dash, "label": names[j]}
            style = style_of("lines.Line2D", line_kwargs, **usual)
            (line,) = ax.plot(self.grid, self.densities[:, j], **style)
            if self.bands is not None:
                low, high = self.bands[:, :, j]
                color = line.get_color()
                ax.fill_between(self.grid, low, high, color=color, alpha=0.25, lw=0)
        ax.set(xlabel=self.name, ylabel="density", ylim=(0, None))
        ax.legend()
        return self

    def _draw_points(self, ax, j, shift, style):
        """Plot the probabilities of a state as points, the band as bars."""
        points = self.grid + shift
        (drawn,) = ax.plot(points, self.densities[:, j], **style)
        if self.bands is not None:
            ax.vlines(points, *self.bands[:, :, j], color=drawn.get_color())


def _kind_of(estimator, feature):
    """Return the emission of a feature."""
    kind = estimator.emission_
    return kind if isinstance(kind, str) else kind[feature]


def _grid_of(estimator, feature, low, high):
    """Return values from `low` to `high` of a feature that have a density."""
    kind = _kind_of(estimator, feature)
    if kind == "categorical":
        return estimator.categories_[feature]
    if kind == "poisson":
        return np.unique(np.linspace(low, high, 200).round())
    return np.linspace(low, high, 200)


def _cells_of(grid):
    """Return ends of intervals with one value of a grid each."""
    grid = np.unique(grid)
    halves = np.diff(grid) / 2 if len(grid) > 1 else np.array([0.5])
    middle = grid[:-1] + np.diff(grid) / 2
    return np.concatenate([grid[:1] - halves[0], middle, grid[-1:] + halves[-1]])
