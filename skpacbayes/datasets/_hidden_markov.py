"""Simulated hidden Markov models with translated emissions."""

from numbers import Integral, Real

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from .._compat import Interval, StrOptions, validate_params
from .._validation import as_numbers

_STAY = 0.9
_TOLERANCE = 1e-8


@validate_params(
    {
        "shape": [StrOptions({"gaussian", "bimodal", "heavy-tailed"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "transition_matrix": ["array-like", None],
        "separation": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_hidden_markov(
    shape="gaussian",
    n_samples=1500,
    *,
    n_states=3,
    n_features=1,
    transition_matrix=None,
    separation=2.0,
    random_state=None,
):
    """Draw a sequence of noisy observations of a hidden Markov chain.

    ============== ================================================================
    shape          noise
    ============== ================================================================
    "gaussian"     Gaussian of standard deviation 0.8
    "bimodal"      Gaussian about -0.6 (standard deviation 0.4) with probability
                   0.7, else about 1.4 (0.6): of mean 0 and skewed. At the default
                   separation the second mode of a state lies on the first mode of
                   the next
    "heavy-tailed" 0.6 times a Student variable with 2 degrees of freedom, whose
                   variance is infinite
    ============== ================================================================

    Parameters
    ----------
    shape : {"gaussian", "bimodal", "heavy-tailed"}, default="gaussian"
        Distribution of the noise, the same in every state.

    n_samples : int, default=1500
        The number of rows, in the order of time.

    n_states : int, default=3
        The number of hidden states.

    n_features : int, default=1
        The number of features.

    transition_matrix : array-like of shape (n_states, n_states), default=None
        Entry (i, j) is the probability that state j follows state i; each state must be
        reachable from each. By default a chain stays with probability 0.9 and else
        moves to any other state.

    separation : float, default=2.0
        Distance between the locations of neighbouring states: 0, `separation`, 2
        `separation`, ... along the axis or, with several features, along a random
        direction.

    random_state : int, RandomState instance or None, default=None
        Seed of the path and of the noise.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.

    y : ndarray of shape (n_samples,)
        The hidden state at each row, from 0. The first is drawn from the stationary
        distribution.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of its range.

    ValueError
        If `transition_matrix` is not square of size `n_states`, has a negative entry
        or a row that does not sum to 1, or if a state is not reachable from another.

    Notes
    -----
    With a state ``x_t``, ``y_t = location[x_t] + mixing @ noise_t``: translated
    emissions, as in section 4.4 of [1]_. The noise has independent coordinates with
    the distribution in the table. `mixing` is 1 with one feature; with more it is the
    Cholesky factor of a random correlation matrix: covariances are full, and the
    variances of the features are those in one dimension.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet, "On some recent
       advances on high dimensional Bayesian statistics", 2015, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skpacbayes.datasets import make_hidden_markov
    >>> X, y = make_hidden_markov("bimodal", 20_000, random_state=0)
    >>> X.shape
    (20000, 1)
    >>> bool(np.isclose(np.mean(y[1:] == y[:-1]), 0.9, atol=0.01))
    True
    """
    transitions = _transitions(transition_matrix, n_states)
    generator = np.random.default_rng(
        check_random_state(random_state).randint(2**31 - 1)
    )
    direction, mixing = _geometry(generator, n_features)
    y = _chain(generator, transitions, n_samples)
    noise = _noise(generator, shape, (n_samples, n_features))
    return separation * y[:, None] * direction + noise @ mixing.T, y


def _transitions(given, n_states):
    """Return the validated transition matrix."""
    if given is None:
        if n_states == 1:
            return np.ones((1, 1))
        leave = (1 - _STAY) / (n_states - 1)
        return np.full((n_states, n_states), leave) + (_STAY - leave) * np.eye(n_states)
    matrix = as_numbers("transition_matrix", given, ensure_2d=True)
    if matrix.shape != (n_states, n_states):
        raise ValueError(
            f"transition_matrix has shape {matrix.shape}, but n_states={n_states}."
        )
    sums = matrix.sum(axis=1)
    if matrix.min() < 0 or np.abs(sums - 1).max() > _TOLERANCE:
        raise ValueError(
            "Each row of transition_matrix must be a probability vector; the smallest "
            f"entry is {matrix.min():g} and the rows sum to {sums}."
        )
    number, _ = connected_components(matrix > 0, connection="strong")
    if number > 1:
        raise ValueError(
            "Each state of transition_matrix must be reachable from each, so that the "
            f"stationary distribution is positive; got {number} groups of states that "
            "reach each other."
        )
    return matrix


def _geometry(generator, n_features):
    """Draw the direction of the locations, and a factor of a correlation matrix."""
    if n_features == 1:
        return np.ones(1), np.ones((1, 1))
    direction = generator.normal(size=n_features)
    axes = generator.normal(size=(n_features, 2 * n_features))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return direction / np.linalg.norm(direction), np.linalg.cholesky(axes @ axes.T)


def _chain(generator, transitions, n_samples):
    """Draw a path that starts from the stationary distribution."""
    n_states = len(transitions)
    balance = np.vstack([transitions.T - np.eye(n_states), np.ones(n_states)])
    sums = np.append(np.zeros(n_states), 1.0)
    stationary = np.linalg.lstsq(balance, sums, rcond=None)[0]
    steps = np.cumsum(np.vstack([stationary.clip(0), transitions]), axis=1)
    steps /= steps[:, -1:]
    uniforms = generator.random(n_samples)
    path = np.empty(n_samples, dtype=np.int64)
    row = 0  # the stationary distribution; the rows of the states follow
    for t, uniform in enumerate(uniforms):
        path[t] = np.searchsorted(steps[row], uniform, side="right")
        row = 1 + path[t]
    return path


def _noise(generator, shape, size):
    if shape == "gaussian":
        return 0.8 * generator.standard_normal(size)
    if shape == "heavy-tailed":
        return 0.6 * generator.standard_t(2, size)
    first = generator.random(size) < 0.7
    mean, deviation = np.where(first, -0.6, 1.4), np.where(first, 0.4, 0.6)
    return mean + deviation * generator.standard_normal(size)
