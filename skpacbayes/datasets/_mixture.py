"""Simulated mixtures with a known number of components."""

from numbers import Integral, Real

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from .._compat import Interval, StrOptions, validate_params

_OUTLIERS = 0.03


@validate_params(
    {
        "shape": [StrOptions({"gaussian", "heavy-tailed", "skewed", "outliers"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "separation": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_mixture(
    shape="gaussian",
    n_samples=500,
    *,
    n_components=4,
    n_features=2,
    separation=6.0,
    random_state=None,
):
    """Draw rows from a mixture with random centres, axes and weights.

    ============== ================================================================
    shape          components
    ============== ================================================================
    "gaussian"     Gaussian
    "heavy-tailed" Student with 3 degrees of freedom along each axis: the scales are
                   those of the others, and the variances three times as large
    "skewed"       Gamma of shape 4, of skewness 1, along each axis
    "outliers"     Gaussian, with 3 % of the rows uniform on the box of the others
    ============== ================================================================

    Parameters
    ----------
    shape : {"gaussian", "heavy-tailed", "skewed", "outliers"}, default="gaussian"
        The shape of the components.

    n_samples : int, default=500
        The number of rows.

    n_components : int, default=4
        The number of components.

    n_features : int, default=2
        The number of features.

    separation : float, default=6.0
        Smallest distance between two centres, where the scales along the axes of a
        component (standard deviations unless "heavy-tailed") lie between 0.7 and 1.
        From 6 on the components are well separated; at 3 they overlap.

    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.

    y : ndarray of shape (n_samples,)
        The component of each row, from 0; -1 for an outlier.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of its range.

    Notes
    -----
    Weights are drawn from Dirichlet(8, ..., 8), squared scales along the axes uniformly
    on [0.5, 1], axes uniformly, and centres uniformly on a cube. If the components are
    not Gaussian, the mixture of Gaussians that fits best has more components the larger
    n_samples is; only a robust method then finds `n_components`.

    Examples
    --------
    >>> from skpacbayes.datasets import make_mixture
    >>> X, y = make_mixture(n_components=3, random_state=0)
    >>> X.shape
    (500, 2)
    >>> sorted(set(y.tolist()))
    [0, 1, 2]
    """
    generator = np.random.default_rng(
        check_random_state(random_state).randint(2**31 - 1)
    )
    centres = _centres(generator, n_components, n_features, separation)
    weights = generator.dirichlet(np.full(n_components, 8.0))
    y = generator.choice(n_components, n_samples, p=weights)
    noise = {
        "heavy-tailed": lambda size: generator.standard_t(3, size),
        "skewed": lambda size: generator.standard_gamma(4, size) / 2 - 2,
    }.get(shape, generator.standard_normal)((n_samples, n_features))
    X = np.empty((n_samples, n_features))
    for k, centre in enumerate(centres):
        axes = np.linalg.qr(generator.normal(size=(n_features, n_features)))[0]
        deviations = np.sqrt(generator.uniform(0.5, 1, n_features))
        X[y == k] = centre + (noise[y == k] * deviations) @ axes
    if shape == "outliers":
        y[generator.random(n_samples) < _OUTLIERS] = -1
        inside = X if (y < 0).all() else X[y >= 0]
        low, high = inside.min(axis=0), inside.max(axis=0)
        X[y < 0] = generator.uniform(low, high, ((y < 0).sum(), n_features))
    return X, y


def _centres(generator, n_components, n_features, separation):
    """Centres uniform on a cube that grows until they are far enough apart."""
    side = separation
    while True:
        centres = generator.uniform(0, side, (n_components, n_features))
        if n_components == 1 or pdist(centres).min() >= separation:
            return centres
        side *= 1.05
