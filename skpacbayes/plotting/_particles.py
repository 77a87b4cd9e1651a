"""Display of the particles of a filter at the last row."""

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._extras import style_of
from ._base import axes_of, needs_matplotlib, refuse_others


class ParticlesDisplay:
    """Particles of the current state, their areas in proportion to their weights.

    Use :meth:`from_estimator` to make one from a fitted particle filter.

    Parameters
    ----------
    particles : ndarray of shape (n_particles, 2)
        Two coordinates of each particle.
    weights : ndarray of shape (n_particles,)
        Their weights, which sum to 1.
    names : tuple of str, default=("state 0", "state 1")
        Names of the two coordinates.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes, after `plot`.
    figure_ : matplotlib Figure
        The figure, after `plot`.

    See Also
    --------
    FilterDisplay : One coordinate of the state along a sequence, with a band.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skpacbayes import ClusteredParticleFilter, ParticlesDisplay
    >>> from skpacbayes.filtering.models import LocalLevel
    >>> X = np.cumsum(np.random.default_rng(0).normal(size=(20, 2)), axis=0)
    >>> tracker = ClusteredParticleFilter(
    ...     LocalLevel(), n_particles=200, random_state=0
    ... )
    >>> display = ParticlesDisplay.from_estimator(tracker.fit(X))
    >>> display.particles.shape
    (200, 2)
    """

    def __init__(self, particles, weights, *, names=("state 0", "state 1")):
        self.particles, self.weights, self.names = particles, weights, names

    @classmethod
    def from_estimator(
        cls, estimator, *, states=(0, 1), names=None, ax=None, scatter_kwargs=None
    ):
        """Plot the particles of a fitted filter, at the last row that it has read.

        Parameters
        ----------
        estimator : ClusteredParticleFilter
            Fitted filter whose state has at least two coordinates.
        states : tuple of int, default=(0, 1)
            Coordinates of the horizontal and the vertical axis.
        names : tuple of str, default=None
            Names of these coordinates; None for "state" and their numbers.
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        scatter_kwargs : dict, default=None
            Style of the particles, as for `matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : ParticlesDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If the state has no such coordinate.
        """
        needs_matplotlib(cls)
        check_is_fitted(estimator)
        refuse_others(cls, estimator, "particles_", such_as="ClusteredParticleFilter")
        particles = estimator.particles_
        whole = all(isinstance(j, Integral) and j >= 0 for j in states)
        if not whole or len(set(states)) != 2 or len(states) != 2:
            raise ValueError(
                f"states={states} should be two different numbers, 0 or more."
            )
        if max(states) >= particles.shape[1]:
            raise ValueError(
                f"states={states} needs a state of at least {max(states) + 1} "
                f"coordinates, got {particles.shape[1]}; FilterDisplay draws one."
            )
        return cls(
            particles[:, list(states)],
            estimator.weights_,
            names=tuple(f"state {j}" for j in states) if names is None else names,
        ).plot(ax=ax, scatter_kwargs=scatter_kwargs)

    def plot(self, *, ax=None, scatter_kwargs=None):
        """Plot a dot for each particle.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None: a new figure.
        scatter_kwargs : dict, default=None
            Style of the particles, as for `matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : ParticlesDisplay
            The display, with `ax_` and `figure_`.
        """
        ax = axes_of(self, ax)
        # 10 points squared on average, if no particle has more than 300.
        scale = min(10 * len(self.weights), 300 / np.max(self.weights))
        usual = {"s": scale * self.weights, "c": "black", "alpha": 0.6, "lw": 0}
        style = style_of("collections.PathCollection", scatter_kwargs, **usual)
        ax.scatter(*self.particles.T, **style)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return self
