"""Components of a mixture as ellipses."""

from numbers import Real

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from .._extras import style_of
from ._base import axes_of, columns_of, feature_name, needs_matplotlib, refuse_others


class EllipsesDisplay:
    """Clusters or components as ellipses, over the rows.

    Use :meth:`from_estimator` to create a display from a fitted estimator.

    Parameters
    ----------
    means : ndarray of shape (n_components, 2)
        Centres.
    covariances : ndarray of shape (n_components, 2, 2)
        Covariances.
    weights : ndarray of shape (n_components,)
        Shares of the rows.
    n_stds : float, default=2.0
        Half axes of the ellipses, in standard deviations.
    rows : ndarray of shape (n_samples, 2), default=None
        Rows, drawn as dots.
    labels : ndarray of shape (n_samples,), default=None
        Labels of the rows.
    names : tuple of str, default=("x0", "x1")
        Names of the two features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    ClusterCountDisplay : The posterior of the number of clusters.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from skpacbayes import EllipsesDisplay, TemperedVBGaussianMixture
    >>> X = load_iris().data
    >>> mixture = TemperedVBGaussianMixture(3, random_state=0).fit(X)
    >>> display = EllipsesDisplay.from_estimator(mixture, X, features=(2, 3))
    >>> len(display.ax_.patches)
    3
    """

    def __init__(
        self,
        means,
        covariances,
        weights,
        *,
        n_stds=2.0,
        rows=None,
        labels=None,
        names=("x0", "x1"),
    ):
        self.means, self.covariances, self.weights = means, covariances, weights
        self.n_stds, self.rows, self.labels = n_stds, rows, labels
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        features=(0, 1),
        n_stds=2.0,
        ax=None,
        scatter_kwargs=None,
        ellipse_kwargs=None,
    ):
        """Plot the components of a fitted mixture, or the clusters of a clusterer.

        Parameters
        ----------
        estimator : TemperedVBGaussianMixture or PACOClusterer
            Fitted estimator with at least two features, or a Gaussian mixture of
            scikit-learn.
        X : array-like of shape (n_samples, n_features), default=None
            Rows to draw, in the colors of their labels.
        features : tuple of int or str, default=(0, 1)
            Columns, or names of the features, of the two axes.
        n_stds : float, default=2.0
            Half axes of the ellipses, in standard deviations.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        scatter_kwargs : dict, default=None
            Style of the rows, as for `matplotlib.axes.Axes.scatter`.
        ellipse_kwargs : dict, default=None
            Style of the ellipses, as for `matplotlib.patches.Ellipse`.

        Returns
        -------
        display : EllipsesDisplay
            The display, plotted.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        if not hasattr(estimator, "cluster_scales_"):
            mixture = ("means_", "covariances_", "weights_")
            refuse_others(cls, estimator, *mixture, such_as="TemperedVBGaussianMixture")
        check_scalar(n_stds, "n_stds", Real, min_val=0)
        means, covariances, weights = _components(estimator)
        pair = columns_of(estimator, "features", features, means.shape[1])
        return cls(
            means[:, pair],
            covariances[:, pair][:, :, pair],
            weights,
            n_stds=n_stds,
            rows=None if X is None else np.asarray(X)[:, pair],
            labels=None if X is None else estimator.predict(X),
            names=tuple(feature_name(estimator, j) for j in pair),
        ).plot(ax=ax, scatter_kwargs=scatter_kwargs, ellipse_kwargs=ellipse_kwargs)

    def plot(self, *, ax=None, scatter_kwargs=None, ellipse_kwargs=None):
        """Plot the rows and the ellipses; the heavier a component, the wider its line.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        scatter_kwargs : dict, default=None
            Style of the rows, as for `matplotlib.axes.Axes.scatter`.
        ellipse_kwargs : dict, default=None
            Style of the ellipses, as for `matplotlib.patches.Ellipse`.

        Returns
        -------
        display : EllipsesDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        from matplotlib import colormaps
        from matplotlib.patches import Ellipse

        if self.rows is not None:
            usual = {"s": 8, "alpha": 0.6, "c": colormaps["tab10"](self.labels % 10)}
            ax.scatter(
                *self.rows.T,
                **style_of("collections.PathCollection", scatter_kwargs, **usual),
            )
        for mean, covariance, weight in zip(
            self.means, self.covariances, self.weights, strict=True
        ):
            squares, axes = np.linalg.eigh(covariance)
            width, height = 2 * self.n_stds * np.sqrt(squares)
            angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
            usual = {"fill": False, "lw": 0.8 + 2 * float(weight)}
            style = style_of("patches.Ellipse", ellipse_kwargs, **usual)
            ax.add_patch(Ellipse(mean, width, height, angle=angle, **style))
        ax.plot(*self.means.T, "kx")
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.autoscale_view()
        return self


def _components(estimator):
    """Return means, covariances as matrices, and weights of the components."""
    if hasattr(estimator, "cluster_scales_"):
        means = estimator.cluster_centers_
        ratios = estimator.cluster_scales_ / estimator.scale_
        covariances = estimator.covariance_ * ratios[:, None, None] ** 2
        return means, covariances, estimator.cluster_shares_
    means = estimator.means_
    n_components, n_features = means.shape
    given = np.asarray(estimator.covariances_)
    if given.shape == (n_components, n_features, n_features):
        return means, given, estimator.weights_
    if hasattr(estimator, "covariance_type_"):
        kind = estimator.covariance_type_
    else:
        such_as = "TemperedVBGaussianMixture"
        refuse_others(EllipsesDisplay, estimator, "covariance_type", such_as=such_as)
        kind = estimator.covariance_type
    if kind == "diag":
        covariances = given[:, :, None] * np.eye(n_features)
    elif kind == "spherical":
        covariances = given[:, None, None] * np.eye(n_features)
    else:  # one covariance for all components
        covariances = np.broadcast_to(given, (n_components, n_features, n_features))
    return means, covariances, estimator.weights_
