"""Display of marginal and pairwise posteriors."""

import math
from numbers import Real

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.utils import check_scalar

from .._extras import extra_module, style_of
from .._validation import as_numbers

LEVELS = (0.001, 0.999)  # quantiles at the ends of an axis
CELLS = {1: 200, 2: 100}  # grid points per axis, by number of parameters


class PosteriorDisplay:
    """Marginal and pairwise posteriors of an observation, with credible intervals.

    Densities are kernel estimates with Scott's bandwidth, reflected at the ends of the
    axes so that they do not decrease at a bound of the prior. The central credible
    interval of a marginal is shaded; for a pair, the highest-density regions of
    probability 1/2 and of `probability` are drawn.

    Use :meth:`from_estimator` to create a display from a fitted estimator.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_parameters)
        Draws from the posterior.
    truth : ndarray of shape (n_parameters,), default=None
        True parameters, if known.
    names : list of str, default=None
        Names of the parameters.
    probability : float, default=0.9
        Posterior probability of the intervals and of the larger regions.

    Attributes
    ----------
    axes_ : ndarray of shape (n_parameters, n_parameters)
        Axes, after `plot`: marginals on the diagonal, pairs below it.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    ABCPosteriorKDE : Computes the posterior.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes.likelihood_free import ABCPosteriorKDE, PosteriorDisplay
    >>> rng = np.random.default_rng(0)
    >>> parameters = rng.normal(size=(1000, 2))
    >>> summaries = parameters + 0.3 * rng.normal(size=(1000, 2))
    >>> posterior = ABCPosteriorKDE(random_state=0).fit(summaries, parameters)
    >>> display = PosteriorDisplay.from_estimator(posterior, [[0.5, 0.0]])
    >>> display.axes_.shape
    (2, 2)
    """

    def __init__(self, draws, *, truth=None, names=None, probability=0.9):
        self.draws, self.truth, self.names = draws, truth, names
        self.probability = probability

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        truth=None,
        names=None,
        probability=0.9,
        n_samples=5000,
        random_state=None,
        figure=None,
        line_kwargs=None,
    ):
        """Draw from the posterior of one observation, and plot.

        Parameters
        ----------
        estimator : ABCPosteriorKDE
            Fitted estimator.
        X : array-like of shape (1, n_summaries)
            Observed summaries.
        truth : array-like of shape (n_parameters,), default=None
            True parameters, if known, which are marked in the plot.
        names : list of str, default=None
            Names of the parameters.
        probability : float, default=0.9
            Posterior probability of the intervals and of the larger regions; between
            0.5 and 1.
        n_samples : int, default=5000
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None: the `random_state` of the estimator.
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the marginals, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : PosteriorDisplay
            The display, plotted.
        """
        extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")
        _check_probability(probability)
        draws = estimator.sample(X, n_samples, random_state)
        if len(draws) != 1:
            raise ValueError(f"X must be one observation, got {len(draws)}.")
        draws = draws[0].reshape(n_samples, -1)
        if truth is not None:
            truth = np.atleast_1d(as_numbers("truth", truth))
        for name, given in {"truth": truth, "names": names}.items():
            if given is not None and len(given) != draws.shape[1]:
                raise ValueError(
                    f"{name} must have one entry for each of {draws.shape[1]} "
                    f"parameters, got {len(given)}."
                )
        display = cls(draws, truth=truth, names=names, probability=probability)
        return display.plot(figure=figure, line_kwargs=line_kwargs)

    def plot(self, *, figure=None, line_kwargs=None):
        """Plot the marginals on the diagonal and the pairs below it.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the marginals, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : PosteriorDisplay
            The display, with `axes_` and `figure_`.
        """
        what = f"{type(self).__name__}.plot"
        plt = extra_module("matplotlib.pyplot", "plot", what)
        _check_probability(self.probability)
        style = style_of("lines.Line2D", line_kwargs)
        p = self.draws.shape[1]
        if figure is None:
            figure = plt.figure(figsize=(1.5 + 2.2 * p,) * 2, layout="constrained")
        self.figure_ = figure
        self.axes_ = figure.subplots(p, p, squeeze=False, sharex="col")
        names = self.names or [f"parameter {column}" for column in range(p)]
        limits = np.quantile(self.draws, LEVELS, axis=0).T
        for row in range(p):
            for column in range(p):
                axes = self.axes_[row, column]
                if column > row:
                    axes.set_visible(False)
                elif column == row:
                    self._plot_marginal(axes, row, limits[row], style)
                else:
                    self._plot_pair(axes, row, column, limits)
                    axes.tick_params(labelleft=column == 0)  # shared limits
            self.axes_[row, 0].set_ylabel(names[row] if row else "density")
            self.axes_[p - 1, row].set_xlabel(names[row])
        return self

    def _plot_marginal(self, axes, column, limits, style):
        draws = self.draws[:, column]
        (grid,), density = _smooth(draws[:, None], [limits])
        tails = (1 - self.probability) / 2
        low, high = np.quantile(draws, [tails, 1 - tails])
        inside = (grid >= low) & (grid <= high)
        (line,) = axes.plot(grid, density, **style)
        color = line.get_color()
        axes.fill_between(grid, density, where=inside, color=color, alpha=0.3, lw=0)
        axes.set_title(_interval(low, high), fontsize="small")
        axes.set_yticks([])
        axes.set_ylim(0, None)
        if self.truth is not None:
            axes.axvline(self.truth[column], color="black", linestyle="--")

    def _plot_pair(self, axes, row, column, limits):
        pair = [column, row]
        (across, up), density = _smooth(self.draws[:, pair], limits[pair])
        ordered = np.sort(density, axis=None)[::-1]
        held = np.cumsum(ordered) / ordered.sum()
        # Density at the boundary of the highest-density region of each probability.
        edges = ordered[np.searchsorted(held, [self.probability, 0.5])]
        levels = np.unique([*edges, ordered[0] * (1 + 1e-9)])  # ascending
        axes.contourf(across, up, density.T, levels, cmap="Blues", vmin=0)
        if self.truth is not None:
            axes.plot(self.truth[column], self.truth[row], "k+", markersize=12)


def _smooth(draws, limits):
    """Return grids and the density of draws of one or two parameters."""
    n_draws, n_columns = draws.shape
    limits = [(low, high) if low < high else (low - 1, low + 1) for low, high in limits]
    counts, edges = np.histogramdd(draws, CELLS[n_columns], limits, density=True)
    middle = np.ptp(np.quantile(draws, [0.25, 0.75], axis=0), axis=0) / 1.349
    spread = draws.std(axis=0)
    spread = np.where(middle > 0, np.minimum(middle, spread), spread)
    cells = np.array([edge[1] - edge[0] for edge in edges])
    widths = spread * n_draws ** (-1 / (n_columns + 4)) / cells
    grids = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    return grids, gaussian_filter(counts, widths, mode="reflect")


def _interval(low, high):
    """Return an interval as text, rounded to about a hundredth of its length."""
    if not 1e-4 < high - low < 1e5:
        return f"{low:.3g} to {high:.3g}"
    decimals = max(0, 1 - math.floor(math.log10(high - low)))
    return f"{low:.{decimals}f} to {high:.{decimals}f}"


def _check_probability(probability):
    """Raise ValueError unless 1/2 < probability < 1; 1/2 is always drawn."""
    bounds = {"min_val": 0.5, "max_val": 1, "include_boundaries": "neither"}
    check_scalar(probability, "probability", Real, **bounds)
