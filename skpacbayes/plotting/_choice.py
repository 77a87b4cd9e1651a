"""Display of the scores of the candidates of an estimator."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._extras import style_of
from ._base import axes_of, needs_matplotlib, whole_ticks


class ChoiceDisplay:
    """Scores of the candidates of an estimator, and its choice.

    Use :meth:`from_estimator` to create a display from a fitted estimator.

    Parameters
    ----------
    curves : dict of str to tuple of ndarray
        Positions and scores of each curve, by name.
    chosen : float
        Position of the choice.
    xlabel : str
        Label of the positions.
    ylabel : str
        Label of the scores.
    xscale : {"linear", "log"}, default="linear"
        Scale of the positions.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    ClusterCountDisplay : The posterior of a number of clusters.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from skpacbayes import ChoiceDisplay, TemperedVBGaussianMixture
    >>> mixture = TemperedVBGaussianMixture("auto", max_components=5, random_state=0)
    >>> display = ChoiceDisplay.from_estimator(mixture.fit(load_iris().data))
    >>> display.chosen == mixture.n_components_
    True
    """

    def __init__(self, curves, chosen, *, xlabel, ylabel, xscale="linear"):
        self.curves, self.chosen = curves, chosen
        self.xlabel, self.ylabel, self.xscale = xlabel, ylabel, xscale

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, line_kwargs=None):
        """Plot `elbo_path_`, `n_states_scores_` or `cv_table_` of an estimator.

        Parameters
        ----------
        estimator : mixture, DirichletProcessHMM or ABCPosteriorKDE
            Fitted estimator with an automatic choice.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curves, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : ChoiceDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If the estimator has made no choice.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        for read in (_of_mixture, _of_states, _of_neighbors):
            found = read(estimator)
            if found is not None:
                return cls(**found).plot(ax=ax, line_kwargs=line_kwargs)
        raise ValueError(
            f"{type(estimator).__name__} has made no choice by scores: none of "
            "elbo_path_, n_states_scores_ and cv_table_ has at least two entries."
        )

    def plot(self, *, ax=None, line_kwargs=None):
        """Plot the curves, and a line at the choice.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the curves, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : ChoiceDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        styles = [("o", "-"), ("s", "--"), ("^", ":"), ("d", "-.")]
        for number, (name, (places, scores)) in enumerate(self.curves.items()):
            marker, dash = styles[number % len(styles)]
            usual = {"marker": marker, "ls": dash, "ms": 4, "label": name}
            ax.plot(places, scores, **style_of("lines.Line2D", line_kwargs, **usual))
        chosen = f"chosen: {self.chosen}"
        ax.axvline(self.chosen, color="0.4", linestyle=":", label=chosen)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, xscale=self.xscale)
        whole_ticks(ax.xaxis)
        ax.legend()
        return self


def _of_mixture(estimator):
    path = getattr(estimator, "elbo_path_", {})
    if len(path) < 2:
        return None
    sizes = sorted(path)
    scores = np.array([path[size] for size in sizes])
    return {
        "curves": {"bound": (np.array(sizes), scores)},
        "chosen": estimator.n_components_,
        "xlabel": "components",
        "ylabel": "evidence bound, nats",
    }


def _of_states(estimator):
    scores = getattr(estimator, "n_states_scores_", ())
    if len(scores) < 2:
        return None
    return {
        "curves": {"score": (np.arange(1, len(scores) + 1), np.asarray(scores))},
        "chosen": estimator.n_states_,
        "xlabel": "states",
        "ylabel": "predictive score, nats per row",
    }


def _of_neighbors(estimator):
    table = getattr(estimator, "cv_table_", {})
    if len(table.get("mean_score", ())) < 2:
        return None
    curves = {}
    for adjustment in dict.fromkeys(table["adjustment"]):
        rows = np.asarray(table["adjustment"]) == adjustment
        places = np.unique(np.asarray(table["n_neighbors"])[rows])
        best = [
            table["mean_score"][rows & (table["n_neighbors"] == place)].max()
            for place in places
        ]
        name = f"adjustment: {adjustment}"
        if adjustment == str(estimator.adjustment_):
            name += ", chosen"
        curves[name] = (places, np.array(best))
    return {
        "curves": curves,
        "chosen": estimator.n_neighbors_,
        "xlabel": "neighbors",
        "ylabel": "log density of held-out pairs, nats",
        "xscale": "log",  # as the candidates are spaced
    }
