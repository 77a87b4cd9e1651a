"""Display of the traces of chains."""

import itertools
from numbers import Integral

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .._chains import r_hat
from .._extras import style_of
from ._base import figure_of, needs_matplotlib, refuse_others, whole_ticks


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
    def from_estimator(cls, estimator, *, n_variables=4, figure=None, line_kwargs=None):
        """Plot the variables with the largest R-hat.

        Parameters
        ----------
        estimator : estimator
            Fitted sampler, whose `to_arviz` needs no arguments.
        n_variables : int, default=4
            Largest number of variables.
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the chains, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : TraceDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        check_scalar(n_variables, "n_variables", Integral, min_val=1)
        refuse_others(
            cls,
            estimator,
            "_chain_draws",
            such_as="DirichletProcessHMM",
            kind="samples by Markov chains",
        )
        draws = estimator._chain_draws()
        every = cls(dict(_series(draws)))
        worst = sorted(every.r_hat_, key=lambda name: -every.r_hat_[name])
        chosen = worst[:n_variables]
        return cls({name: every.series[name] for name in chosen}).plot(
            figure=figure, line_kwargs=line_kwargs
        )

    def plot(self, *, figure=None, line_kwargs=None):
        """Plot each variable on its axes.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the chains, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : TraceDisplay
            The display, with `axes_` and `figure_`.
        """
        count = len(self.series)
        figure = figure_of(self, figure, (8, 0.6 + 1.5 * count))
        self.axes_ = figure.subplots(count, 1, squeeze=False, sharex=True)[:, 0]
        for ax, (name, chains) in zip(self.axes_, self.series.items(), strict=True):
            for chain in chains:
                ax.plot(chain, **style_of("lines.Line2D", line_kwargs, lw=0.7))
            ax.set_title(f"{name}: R-hat {self.r_hat_[name]:.3f}", fontsize="medium")
            ax.margins(x=0)
            if np.array_equal(chains, np.round(chains)):
                whole_ticks(ax.yaxis)
        label = "draw" if len(chains) == 1 else f"draw of each of {len(chains)} chains"
        self.axes_[-1].set_xlabel(label)
        return self


def _series(draws):
    """Yield the name and the chains of each scalar variable."""
    for name, drawn in {**draws.sample_stats, **draws.posterior}.items():
        drawn = np.asarray(drawn, dtype=float)
        flat = drawn.reshape(*drawn.shape[:2], -1)
        sizes = drawn.shape[2:]
        axes = draws.dims.get(name, [None] * len(sizes))
        labels = [
            draws.coords.get(axis, range(size))
            for axis, size in zip(axes, sizes, strict=True)
        ]
        for j, place in enumerate(itertools.product(*labels)):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            yield label, flat[:, :, j]
