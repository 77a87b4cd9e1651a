"""Display of the traces of chains."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._chains import r_hat
from ._base import figure_of, needs_matplotlib, refuse_others


class TraceDisplay:
    """Traces of chains, with R-hat.

    Chains that have converged overlap; if a chain is separate or drifts, more
    iterations are needed. Use :meth:`from_estimator` to create a display from a fitted
    sampler.

    Parameters
    ----------
    series : dict of str to ndarray of shape (n_chains, n_draws)
        Draws of each variable.

    Attributes
    ----------
    r_hat_ : dict of str to float
        R-hat of each variable, rank-normalised and split.
    axes_ : ndarray of shape (n_variables,)
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    PosteriorDisplay : Marginals and pairs of a simulator's posterior.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import SparseAdditiveGibbsRegressor, TraceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100, 5))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> model = SparseAdditiveGibbsRegressor(n_iter=400, random_state=0).fit(X, y)
    >>> display = TraceDisplay.from_estimator(model, n_variables=2)
    >>> len(display.axes_)
    2
    """

    def __init__(self, series):
        self.series = series
        self.r_hat_ = {name: float(r_hat(drawn)) for name, drawn in series.items()}

    @classmethod
    def from_estimator(cls, estimator, *, n_variables=4, figure=None):
        """Plot the variables with the largest R-hat.

        Parameters
        ----------
        estimator : estimator
            Fitted sampler, whose `to_arviz` needs no arguments.
        n_variables : int, default=4
            Largest number of variables.
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.

        Returns
        -------
        display : TraceDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        refuse_others(
            cls,
            estimator,
            "_chain_draws",
            such_as="DirichletProcessHMM",
            kind="samples by Markov chains",
        )
        draws = estimator._chain_draws()
        every = cls(dict(_series({**draws.sample_stats, **draws.posterior})))
        worst = sorted(every.r_hat_, key=lambda name: -every.r_hat_[name])
        chosen = worst[:n_variables]
        return cls({name: every.series[name] for name in chosen}).plot(figure=figure)

    def plot(self, *, figure=None):
        """Plot each variable on its axes.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.

        Returns
        -------
        display : TraceDisplay
            The display, with `axes_` and `figure_`.
        """
        count = len(self.series)
        figure = figure_of(self, figure, (8, 0.6 + 1.5 * count))
        self.axes_ = figure.subplots(count, 1, squeeze=False)[:, 0]
        for ax, (name, chains) in zip(self.axes_, self.series.items(), strict=True):
            for chain in chains:
                ax.plot(chain, lw=0.7)
            ax.set_title(f"{name}: R-hat {self.r_hat_[name]:.3f}", fontsize="medium")
            ax.margins(x=0)
        self.axes_[-1].set_xlabel("draw")
        return self


def _series(variables):
    """Yield the name and the chains of each scalar variable."""
    for name, drawn in variables.items():
        drawn = np.asarray(drawn, dtype=float)
        flat = drawn.reshape(*drawn.shape[:2], -1)
        for j, place in enumerate(np.ndindex(drawn.shape[2:])):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            yield label, flat[:, :, j]
