"""The effects of the variables that matter, drawn."""

import numpy as np

from .._extras import extra_module

N_POINTS = 200


class PartialEffectsDisplay:
    """Effects of variables, with bands of two posterior standard deviations.

    Use :meth:`from_estimator` to make one from a fitted estimator.

    Parameters
    ----------
    features : list of int
        The variables.
    points : list of ndarray of shape (n_points,)
        Values of each variable.
    effects : list of ndarray of shape (n_points,)
        Posterior means of its effect there.
    stds : list of ndarray of shape (n_points,)
        Posterior standard deviations.
    probabilities : list of float
        Inclusion probability of each variable.
    names : list of str
        Name of each variable.
    marks : list of ndarray of shape (n_marks,), default=None
        Values of each variable in the data, drawn as a rug.

    Attributes
    ----------
    axes_ : ndarray of shape (n_features,)
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    SparseAdditiveGibbsRegressor : Finds the effects.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes.additive import (
    ...     PartialEffectsDisplay,
    ...     SparseAdditiveGibbsRegressor,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 10))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 7] ** 2 + 0.1 * rng.normal(size=200)
    >>> model = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
    >>> display = PartialEffectsDisplay.from_estimator(model, X)
    >>> display.features
    [0, 7]
    """

    def __init__(
        self, features, points, effects, stds, *, probabilities, names, marks=None
    ):
        self.features, self.points = features, points
        self.effects, self.stds = effects, stds
        self.probabilities, self.names, self.marks = probabilities, names, marks

    @classmethod
    def from_estimator(cls, estimator, X=None, *, features=None, figure=None):
        """Compute the effects of a fitted estimator, and plot them.

        Parameters
        ----------
        estimator : SparseAdditiveGibbsRegressor
            Fitted estimator, of any of the family.
        X : array-like of shape (n_samples, n_features), default=None
            Rows whose values are marked below the effects.
        features : list of int or str, default=None
            Variables; None for those with an inclusion probability of at least 0.5,
            the most probable one if there is none.
        figure : matplotlib Figure or SubFigure, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PartialEffectsDisplay
            The display, plotted.
        """
        extra_module("matplotlib", "plot", f"{cls.__name__}.from_estimator")
        probabilities = estimator.inclusion_probabilities_
        if features is None:
            features = estimator.get_support(indices=True)
            if len(features) == 0:
                features = [probabilities.argmax()]
        features = [estimator._column(feature) for feature in features]
        if not features:
            raise ValueError("features must name at least one variable, got [].")
        n_features = estimator.n_features_in_
        names = getattr(
            estimator, "feature_names_in_", [f"x{j}" for j in range(n_features)]
        )
        rows = None if X is None else estimator._rows(X)
        points, effects, stds = [], [], []
        for feature in features:
            grid = estimator._grid(feature, N_POINTS)
            table = np.zeros((len(grid), n_features))
            table[:, feature] = grid
            effect, std = estimator._effect(table, feature)
            points.append(grid)
            effects.append(effect)
            stds.append(std)
        return cls(
            features,
            points,
            effects,
            stds,
            probabilities=[float(probabilities[j]) for j in features],
            names=[str(names[j]) for j in features],
            marks=None if rows is None else [rows[:, j] for j in features],
        ).plot(figure=figure)

    def plot(self, *, figure=None):
        """Plot each effect on its axes.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PartialEffectsDisplay
            The display, with `axes_` and `figure_`.
        """
        what = f"{type(self).__name__}.plot"
        plt = extra_module("matplotlib.pyplot", "plot", what)

        count = len(self.features)
        columns = min(count, 4)
        rows = -(-count // columns)
        if figure is None:
            size = (3.0 * columns, 2.6 * rows)
            figure = plt.figure(figsize=size, layout="constrained")
        self.figure_ = figure
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes in grid.flat[count:]:
            axes.set_visible(False)
        self.axes_ = grid.ravel()[:count]
        for place, axes in enumerate(self.axes_):
            points, effect = self.points[place], self.effects[place]
            band = 2 * self.stds[place]
            axes.fill_between(points, effect - band, effect + band, alpha=0.3)
            axes.plot(points, effect)
            if self.marks is not None:
                low = np.full(len(self.marks[place]), 0.02)
                transform = axes.get_xaxis_transform()
                axes.plot(self.marks[place], low, "k|", alpha=0.3, transform=transform)
            axes.set_xlabel(self.names[place])
            axes.set_title(f"in with probability {self.probabilities[place]:.2f}")
        for row in grid:
            row[0].set_ylabel("effect")
        return self
