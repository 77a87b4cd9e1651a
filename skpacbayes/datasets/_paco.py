"""The simulated models of the paper on PAC-Bayesian online clustering."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from .._compat import Interval, StrOptions, validate_params

_FIVE = np.array([(1.0, 1.0, 1.0), (6.0, 5.0, 7.0), (10.0, 9.0, 11.0)])
_MEANS = {
    2: np.array([(0.0, 0.0), (-2.0, -1.0), (0.0, 4.0), (3.0, 1.0)]),
    3: np.array([(0.0, 0.0), (-4.0, -1.0), (0.0, 7.0), (5.0, 2.0)]),
    5: _FIVE,
    "5a": _FIVE,
    "5b": _FIVE,
    "5d": _FIVE,
}


@validate_params(
    {
        "model": [
            Interval(Integral, 1, 6, closed="both"),
            StrOptions({"5a", "5b", "5d"}),
        ],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_paco_model(model, n_samples=200, random_state=None):
    """Draw rows from one of the six simulated models of Li, Guedj and Loustau.

    ===== ======== ========== ====================================================
    model groups   features   rows
    ===== ======== ========== ====================================================
    1     1        5          uniform on the unit hypercube
    2     4        2          unit Gaussians, weakly separated
    3     4        2          unit Gaussians, strongly separated
    4     7        50         unit Gaussians, means uniform on [-10, 10]^50
    5     3        3          lognormal, heavy tails (see Notes)
    6     10       2          a stream: groups appear one after the other along a
                              sine, the first five uniform on unit squares, the
                              others unit Gaussians
    ===== ======== ========== ====================================================

    In Models 2 to 5 each row comes from a group drawn uniformly.

    Parameters
    ----------
    model : int from 1 to 6, or {"5a", "5b", "5d"}
        The model. 5 is the reading "5b" of Model 5 (see Notes).

    n_samples : int, default=200
        The number of rows. Model 6 is defined for 200 rows, 20 for each group; for
        another length each group keeps a tenth of the rows (group
        `10 * i // n_samples` for row i), and so the ten means stay where they are.

    random_state : int, RandomState instance or None, default=None
        Seed of the rows and, for Model 4, the means.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows; for Model 6 in the order of time.

    y : ndarray of shape (n_samples,)
        The group of each row, from 0.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of its range.

    Notes
    -----
    Model 5 is printed as "multivariate lognormal with identity covariance matrix, whose
    mean vectors are" mu = (1, 1, 1), (6, 5, 7), (10, 9, 11), which can be read in three
    ways. With Z a standard normal vector,

    - ``"5b"``, the default: x = mu + exp(Z), a lognormal cloud moved by mu;
    - ``"5a"``: x = mu exp(Z), where log(mu) is the mean of log(x), and its covariance
      is the identity;
    - ``"5d"``: independent lognormal coordinates whose means are mu and whose variances
      are one.

    The paper reports that most methods fail on Model 5 and that its own, with the
    absolute loss, succeeds. Only 5b behaves so: under 5a the spread of a group grows
    with mu, which no common scale of the loss can follow, and under 5d the groups are
    so compact that the usual indices of the number of clusters find them too.

    References
    ----------
    .. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016,
       section 5.

    Examples
    --------
    In Model 6 the number of groups grows by one every 20 rows:

    >>> import numpy as np
    >>> from skpacbayes.datasets import make_paco_model
    >>> X, y = make_paco_model(6, random_state=0)
    >>> X.shape
    (200, 2)
    >>> [len(np.unique(y[:t])) for t in (20, 21, 100, 200)]
    [1, 2, 5, 10]
    """
    rng = check_random_state(random_state)
    if model == 1:
        return rng.uniform(size=(n_samples, 5)), np.zeros(n_samples, dtype=np.int64)
    if model == 6:
        return _appearing_groups(n_samples, rng)
    means = rng.uniform(-10, 10, size=(7, 50)) if model == 4 else _MEANS[model]
    y = rng.randint(len(means), size=n_samples).astype(np.int64)
    mean, noise = means[y], rng.normal(size=(n_samples, means.shape[1]))
    if model == "5a":
        return mean * np.exp(noise), y
    if model in (5, "5b"):
        return mean + np.exp(noise), y
    if model == "5d":
        log_variance = np.log1p(1 / mean**2)
        log_mean = np.log(mean) - log_variance / 2
        return np.exp(log_mean + np.sqrt(log_variance) * noise), y
    return mean + noise, y


def _appearing_groups(n_samples, rng):
    """Model 6: ten groups along a sine, one after the other."""
    y = 10 * np.arange(n_samples) // n_samples
    abscissa = 20 / 9 * y
    mean = np.column_stack([abscissa, 10 * np.sin(abscissa * np.pi / 10)])
    square = rng.uniform(-0.5, 0.5, size=(n_samples, 2))
    gaussian = rng.normal(size=(n_samples, 2))
    return mean + np.where(y[:, None] < 5, square, gaussian), y
