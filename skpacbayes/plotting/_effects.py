"""Display of the effects of the most probable variables."""

import numpy as np

from .._extras import style_of
from ._base import feature_name, figure_of, needs_matplotlib, refuse_others

FEW_CATEGORIES = 8  # that have a tick each


class PartialEffectsDisplay:
    """Effects of variables, with bands of two posterior standard deviations.

    Those of categories are points with bars of two standard deviations. The interaction
    of a pair of variables is drawn as a colour map. Use :meth:`from_estimator` to
    create a display from a fitted estimator.

    Parameters
    ----------
    features : list of int or tuple of int
        The variables, and pairs of them.
    points : list of ndarray of shape (n_points,)
        Values of each variable; for a pair, a tuple of two such arrays.
    effects : list of ndarray of shape (n_points,)
        Posterior means of the effect at these values; for a pair, of shape (n_points,
        n_points), a row for each value of the second variable.
    stds : list of ndarray of shape (n_points,)
        Posterior standard deviations.
    probabilities : list of float
        Inclusion probability of each variable.
    names : list of str or tuple of str
        Name of each variable; for a pair, both names.
    marks : list of ndarray of shape (n_marks,), default=None
        Values of each variable in the data, drawn as a rug; for a pair, of shape (2,
        n_marks), drawn as points.
    categorical : list of bool, default=None
        Whether the values of each variable are categories: their effects are drawn as
        points with bars. None: there are no categories.

    Attributes
    ----------
    axes_ : ndarray of shape (n_features,)
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    skpacbayes.additive.SparseAdditiveGibbsRegressor : Finds the effects.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import PartialEffectsDisplay, SparseAdditiveGibbsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 10))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 7] ** 2 + 0.1 * rng.normal(size=200)
    >>> model = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
    >>> display = PartialEffectsDisplay.from_estimator(model, X)
    >>> display.features
    [0, 7]
    """

    def __init__(
        self,
        features,
        points,
        effects,
        stds,
        *,
        probabilities,
        names,
        marks=None,
        categorical=None,
    ):
        self.features, self.points = features, points
        self.effects, self.stds = effects, stds
        self.probabilities, self.names, self.marks = probabilities, names, marks
        self.categorical = categorical

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        features=None,
        target=None,
        figure=None,
        line_kwargs=None,
    ):
        """Compute the effects of a fitted estimator, and plot them.

        Parameters
        ----------
        estimator : SparseAdditiveGibbsRegressor
            Fitted estimator, or another one of the family.
        X : array-like of shape (n_samples, n_features), default=None
            Rows whose values are marked on the axes.
        features : list of int or str, or of pairs of these, default=None
            Variables, and pairs of them. None: those with an inclusion probability of
            at least 0.5, or the most probable variable if there are none.
        target : label, default=None
            Class whose score is shown, for a classifier of more than two classes.
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the effects, except of pairs, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : PartialEffectsDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If there is no variable, or a target is missing, unknown, or not asked for.
        """
        needs_matplotlib(cls)
        usual = "SparseAdditiveGibbsRegressor"
        refuse_others(cls, estimator, "partial_effects", such_as=usual)
        found = estimator._effects_along(features, target)
        rows = None if X is None else estimator._rows(X)
        columns, points, effects, stds, probabilities = zip(*found, strict=True)
        categorical = estimator._categorical()
        return cls(
            [alone(own) for own in columns],
            [alone(own) for own in points],
            list(effects),
            list(stds),
            probabilities=list(probabilities),
            names=[alone([feature_name(estimator, j) for j in own]) for own in columns],
            marks=None if rows is None else [alone(rows.T[[*own]]) for own in columns],
            categorical=[own[0] in categorical for own in columns],
        ).plot(figure=figure, line_kwargs=line_kwargs)

    def plot(self, *, figure=None, line_kwargs=None):
        """Plot each effect on its axes.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Figure to plot on. None: a new figure.
        line_kwargs : dict, default=None
            Style of the effects, except of pairs, as for `matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : PartialEffectsDisplay
            The display, with `axes_` and `figure_`.
        """
        count = len(self.features)
        columns = min(count, 4)
        rows = -(-count // columns)
        figure = figure_of(self, figure, (3.0 * columns, 2.6 * rows))
        self.axes_ = np.empty(count, dtype=object)
        single, last = None, None
        for place, feature in enumerate(self.features):
            pair = isinstance(feature, tuple)
            axes = figure.add_subplot(
                rows, columns, place + 1, sharey=None if pair else single
            )
            self.axes_[place] = axes
            if pair:
                self._draw_pair(axes, place)
            else:
                self._draw_effect(axes, place, line_kwargs)
                if place // columns != last:
                    axes.set_ylabel("effect")
                else:
                    axes.tick_params(labelleft=False)
                single, last = axes, place // columns
            axes.set_title(f"in with probability {self.probabilities[place]:.2f}")
        return self

    def _draw_effect(self, axes, place, line_kwargs):
        """Plot the effect of a variable, with its band."""
        style = style_of("lines.Line2D", line_kwargs)
        points, effect = self.points[place], self.effects[place]
        band = 2 * self.stds[place]
        if self.categorical is not None and self.categorical[place]:
            style = {"marker": "o", "linestyle": "None"} | style
            axes.errorbar(points, effect, yerr=band, **style)
            if len(points) <= FEW_CATEGORIES:
                axes.set_xticks(points)
        else:
            (line,) = axes.plot(points, effect, **style)
            color = line.get_color()
            axes.fill_between(
                points, effect - band, effect + band, color=color, alpha=0.3
            )
            axes.xaxis.get_major_locator().set_params(nbins=4)  # labels are wide
        if self.marks is not None:
            low = np.full(len(self.marks[place]), 0.02)
            transform = axes.get_xaxis_transform()
            axes.plot(self.marks[place], low, "k|", alpha=0.3, transform=transform)
        axes.set_xlabel(self.names[place])

    def _draw_pair(self, axes, place):
        """Plot the interaction of a pair, as a colour map."""
        effect = self.effects[place]
        largest = abs(effect).max()
        colors = axes.pcolormesh(
            *self.points[place],
            effect,
            cmap="RdBu_r",
            vmin=-largest,
            vmax=largest,
            shading="nearest",
        )
        axes.figure.colorbar(colors, ax=axes)
        if self.marks is not None:
            axes.plot(*self.marks[place], "k.", markersize=1, alpha=0.3)
        axes.set_xlabel(self.names[place][0])
        axes.set_ylabel(self.names[place][1])


def alone(parts):
    """Return the only element, or all if there are several."""
    if len(parts) == 1:
        return parts[0]
    return parts if isinstance(parts, np.ndarray) else tuple(parts)
