"""Groups that only a few features show."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from .._compat import Interval, validate_params


@validate_params(
    {
        "n_features": [Interval(Integral, 2, None, closed="left")],
        "n_samples_per_group": [Interval(Integral, 1, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_subspace_groups(
    n_features=6, n_samples_per_group=100, *, spread=0.03, random_state=None
):
    """Draw the extreme example of subspace clustering of Fan and Heller (2018).

    There are `n_features` - 1 groups. In features j and j + 1 group j is a narrow
    Gaussian, in all others it is uniform on [0, 1].

    Parameters
    ----------
    n_features : int, default=6
        The number of features.

    n_samples_per_group : int, default=100
        The number of rows of each group.

    spread : float, default=0.03
        Standard deviation of a group in its two features, about a mean that is
        uniform on [0.2, 0.8]. The paper gives no number.

    random_state : int, RandomState instance or None, default=None
        Seed of the means and the rows.

    Returns
    -------
    X : ndarray of shape ((n_features - 1) * n_samples_per_group, n_features)
        The rows, group after group.

    y : ndarray of shape ((n_features - 1) * n_samples_per_group,)
        The group of each row, from 0.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of its range.

    References
    ----------
    .. [1] K. Fan and K. Heller (2018). k-means: Fighting against Degeneracy in
       Sequential Monte Carlo with an Application to Tracking. Appendix 6.

    Examples
    --------
    >>> from skpacbayes.datasets import make_subspace_groups
    >>> X, y = make_subspace_groups(random_state=0)
    >>> X[y == 2].std(axis=0).round(2)
    array([0.3 , 0.31, 0.03, 0.03, 0.29, 0.3 ])
    """
    rng = check_random_state(random_state)
    n_groups = n_features - 1
    y = np.repeat(np.arange(n_groups), n_samples_per_group)
    X = rng.uniform(size=(len(y), n_features))
    for j in range(n_groups):
        mean = rng.uniform(0.2, 0.8, size=2)
        noise = rng.normal(size=(n_samples_per_group, 2))
        X[y == j, j : j + 2] = mean + spread * noise
    return X, y
