"""A posterior, drawn: each parameter by itself, and each pair."""

import numpy as np
from sklearn.utils import check_array

from .._extras import extra_module

LEVELS = (0.001, 0.999)  # quantiles between which a parameter is drawn


class PosteriorDisplay:
    """Marginal and pairwise posteriors of an observation.

    Use :meth:`from_estimator` to make one from a fitted estimator.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_parameters)
        Draws from the posterior.
    truth : ndarray of shape (n_parameters,), default=None
        The parameters, where they are known.
    names : list of str, default=None
        Names of the parameters.

    Attributes
    ----------
    axes_ : ndarray of shape (n_parameters, n_parameters)
        Axes, after `plot`: marginals on the diagonal, pairs below it.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    ABCPosteriorKDE : Makes the posterior.

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

    def __init__(self, draws, *, truth=None, names=None):
        self.draws, self.truth, self.names = draws, truth, names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        truth=None,
        names=None,
        n_samples=5000,
        random_state=None,
        figure=None,
    ):
        """Draw from the posterior of one observation, and plot.

        Parameters
        ----------
        estimator : ABCPosteriorKDE
            Fitted estimator.
        X : array-like of shape (1, n_summaries)
            Observed summaries.
        truth : array-like of shape (n_parameters,), default=None
            The parameters, where they are known: marked in the plot.
        names : list of str, default=None
            Names of the parameters.
        n_samples : int, default=5000
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None for the `random_state` of the estimator.
        figure : matplotlib Figure or SubFigure, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PosteriorDisplay
            The display, plotted.
        """
        extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")
        draws = estimator.sample(X, n_samples, random_state)
        if len(draws) != 1:
            raise ValueError(f"X must be one observation, got {len(draws)}.")
        draws = draws[0].reshape(n_samples, -1)
        if truth is not None:
            truth = check_array(np.atleast_1d(truth), ensure_2d=False)
        for name, given in {"truth": truth, "names": names}.items():
            if given is not None and len(given) != draws.shape[1]:
                raise ValueError(
                    f"{name} must have one entry for each of {draws.shape[1]} "
                    f"parameters, got {len(given)}."
                )
        return cls(draws, truth=truth, names=names).plot(figure=figure)

    def plot(self, *, figure=None):
        """Plot the marginals on the diagonal and the pairs below it.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PosteriorDisplay
            The display, with `axes_` and `figure_`.
        """
        what = f"{type(self).__name__}.plot"
        plt = extra_module("matplotlib.pyplot", "plot", what)

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
                    self._plot_marginal(axes, row, limits[row])
                else:
                    self._plot_pair(axes, row, column, limits)
            self.axes_[row, 0].set_ylabel(names[row] if row else "density")
            self.axes_[p - 1, row].set_xlabel(names[row])
        return self

    def _plot_marginal(self, axes, column, limits):
        axes.hist(
            self.draws[:, column], bins=40, range=tuple(limits), density=True, alpha=0.6
        )
        axes.set_yticks([])
        if self.truth is not None:
            axes.axvline(self.truth[column], color="black", linestyle="--")

    def _plot_pair(self, axes, row, column, limits):
        axes.hist2d(
            self.draws[:, column],
            self.draws[:, row],
            bins=40,
            range=[limits[column], limits[row]],
            cmap="Blues",
        )
        if self.truth is not None:
            axes.plot(self.truth[column], self.truth[row], "k+", markersize=12)
