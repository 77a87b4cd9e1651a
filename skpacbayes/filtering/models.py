"""State-space models for :class:`ClusteredParticleFilter`, and how to write one.

A model is a scikit-learn estimator without `fit`: parameters in ``__init__``, and three
pure functions of all particles at once. The filter passes them the noise, and refuses
functions that return something else at a second call, or in which a particle depends on
other particles (except `initial`, which may place particles on a grid).

- ``n_noise``: number of standard normals that move one particle.
- ``initial(z)``: states at row 0, (n_particles, n_states), from the noise `z`,
  (n_particles, n_noise).
- ``transition(x, z, t)``: states at row `t` from the states `x` at row ``t - 1``.
- ``log_likelihood(x, y, t)``: log density of row `t`, `y` of shape (n_features,), in
  each state, (n_particles,).

A function may have these further arguments, passed by name:

- ``y_prev``, the row before, (n_features,), with NaN for missing values, which the
  function must replace; None at row 0. In a forecast each particle has its own row,
  (n_particles, n_features). Write ``y_prev[..., 0]``.
- ``x_prev`` (`log_likelihood`, `observation`): the states at the row before, of which
  each of `x` comes; None at row 0.
- ``u``: the inputs of the row, (n_inputs,), given to the filter as ``inputs=``.

Optional members of a model:

- ``observation(x, z, t)``: a row drawn in each state, (n_particles, n_features), from
  ``n_noise_observation`` normals (by default as many as features). Forecasts need it,
  and warn if rows are not drawn by the density of `log_likelihood`.
- ``log_transition(x, x_next, t)``: log density of moving from each row of `x` to that
  of `x_next`, up to a constant, for smoothing if the noise is not additive. It is
  checked against `transition` at row 1, and at a few rows that are smoothed.
- ``one_to_one = False``: several values of the noise lead to one state, as at a wall
  that reflects; `log_transition`, the sum of their densities, is not checked.
- ``proposal(x, y, t)``: location and scale of the noise given row `t`: particles move
  by ``location + scale * z`` and are weighted accordingly. Both are (n_noise,),
  (n_particles, n_noise), or the scale lower triangular matrices, (1 or n_particles,
  n_noise, n_noise). ``initial_proposal(y)`` is that of row 0.
- ``log_lookahead(x, y, t)``: log of an approximate density of row `t` given the states
  at row ``t - 1``, for ``proposal="auxiliary"``.
- ``handles_missing = True``: the model is called with rows with some NaN. By default a
  row with a NaN is treated as missing as a whole, with a warning if it is partly
  observed.
- ``observe(X)``: returns a model that has observed the rows `X`. It is called with the
  rows that the filter learns: in `fit` with all rows before filtering, in `partial_fit`
  with each row after its step.
"""

import copy
import inspect
import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from .._base import warn_user
from ._gaussian import (
    LOG_2_PI,
    factored,
    gain_of,
    gains_of,
    gaussian_log_densities,
    gaussian_log_density,
    matrix_of,
    noise_factor,
)
from ._kalman import (
    check_covariance,
    filtered,
    has_constants,
    n_features_of,
    rows_for,
    smoothed,
)

LARGEST = 40.0  # absolute value of a standard normal; its log density is -800


class LocalLevel(BaseEstimator):
    """A random walk in each feature, observed with noise.

    ``x_t = x_{t-1} + N(0, transition_variance)``, ``y_t = x_t + N(0,
    observation_variance)``, features independent. Parameters that are None are
    estimated by moments of the differences `d` between consecutive non-missing values
    of a feature. The observation variance is minus the mean product of neighbouring
    differences, at least 0.05 times their mean square. The transition variance is the
    remaining mean square, at least 0.01 times the mean square, over the mean number of
    rows between values.

    Parameters
    ----------
    initial_mean : float, array-like of shape (n_features,) or None, default=None
        Mean of the state at row 0. If None, the first value of the feature; in a stream
        that starts with a gap, 0 until the first value, which moves the state there.
    initial_variance : float, array-like or None, default=None
        Variance of the state at row 0. If None, the mean of ``d_t ** 2``.
    transition_variance, observation_variance : float, array-like or None, default=None
        Variances, in squared units of X.
    """

    handles_missing = True

    def __init__(
        self,
        initial_mean=None,
        initial_variance=None,
        transition_variance=None,
        observation_variance=None,
    ):
        self.initial_mean = initial_mean
        self.initial_variance = initial_variance
        self.transition_variance = transition_variance
        self.observation_variance = observation_variance

    @property
    def n_noise(self):
        """Number of features of the rows observed."""
        return len(self.first_)

    def observe(self, X):
        """Return the model after observing the rows of X."""
        begun = hasattr(self, "first_")
        if begun and all(getattr(self, name) is not None for name in PARAMETERS):
            return self  # nothing to estimate
        model, known = copy.copy(self), ~np.isnan(X)
        if not begun:
            model.n_rows_ = 0
            model.first_, model.seen_ = np.zeros(X.shape[1]), np.zeros(X.shape[1], bool)
            model.last_, model.last_step_ = np.full((2, X.shape[1]), np.nan)
            model.sums_ = np.zeros((5, X.shape[1]))
            model.age_ = np.zeros(X.shape[1])  # rows since the last value
        new = known.any(axis=0) & ~model.seen_
        first = np.where(new, X[known.argmax(axis=0), np.arange(X.shape[1])], 0.0)
        # Particles drawn before the first value are about 0 and must be moved. Before
        # any row there are no particles, and `initial` starts at the value.
        moves = begun and self.initial_mean is None
        model.jump_ = first if moves else np.zeros(X.shape[1])
        model.first_, model.seen_ = model.first_ + first, model.seen_ | new
        model.n_rows_ += len(X)
        vanish = model._add_steps(X)
        model._estimate()
        vanish &= model.noise_ <= SMALLEST
        if vanish.any():
            warn_user(
                f"The features {np.flatnonzero(vanish).tolist()} change by so little "
                "between rows that the squares of the changes underflow: LocalLevel "
                "does not filter these features. Divide X by its scale.",
                ConvergenceWarning,
            )
        return model

    def _add_steps(self, X):
        """Sum squares and products of steps in order, independently of the calls.

        Returns the mask (n_features,) of features whose squared steps underflow.
        """
        values = np.concatenate([self.last_[None], X])
        steps, latest, gaps = values[1:] - values[:-1], values, 1.0
        if np.isnan(steps).any() or self.age_.any():
            latest, ages = _latest(values, self.age_)
            steps, gaps = X - latest[:-1], ages[:-1] + 1.0
            self.age_ = ages[-1]
        steps = np.concatenate([self.last_step_[None], steps])
        latest_steps = _latest(steps, 0.0)[0] if np.isnan(steps).any() else steps
        parts = np.empty((5, *steps.shape))
        parts[:, 0] = self.sums_
        np.multiply(steps[1:], steps[1:], out=parts[0, 1:])
        np.multiply(steps[1:], latest_steps[:-1], out=parts[1, 1:])
        unknown = np.isnan(parts[:2, 1:])
        parts[:2, 1:][unknown] = 0.0
        np.logical_not(unknown, out=parts[2:4, 1:])
        np.multiply(parts[2, 1:], gaps, out=parts[4, 1:])
        self.sums_ = parts.cumsum(axis=1)[:, -1]
        self.last_, self.last_step_ = latest[-1].copy(), latest_steps[-1].copy()
        return ((parts[0, 1:] <= SMALLEST) & (np.abs(steps[1:]) > 0)).any(axis=0)

    def _estimate(self):
        squares, products, n_squares, n_products, n_rows = self.sums_
        square = squares / np.maximum(n_squares, 1)
        noise = np.maximum(-products / np.maximum(n_products, 1), 0.05 * square)
        drift = np.maximum(square - 2 * noise, 0.01 * square)
        drift = drift / np.maximum(n_rows / np.maximum(n_squares, 1), 1)
        self.mean_ = self._given("initial_mean", self.first_)
        self.scale_ = np.sqrt(self._given("initial_variance", square))
        self.step_ = np.sqrt(self._given("transition_variance", drift))
        self.noise_ = self._given("observation_variance", noise)
        placed = self.seen_ | (self.initial_mean is not None)
        self.weighed_ = placed & (self.noise_ > SMALLEST)
        with np.errstate(divide="ignore"):
            self.normaliser_ = -0.5 * (LOG_2_PI + np.log(self.noise_))

    def _features_without_noise(self):
        return np.flatnonzero(self.noise_ == 0).tolist()

    def _given(self, name, estimate):
        value = getattr(self, name)
        if value is None:
            return estimate
        if name.endswith("variance"):
            check_spreads(self, name, zero=name != "observation_variance")
        return np.broadcast_to(np.asarray(value, dtype=float), estimate.shape)

    def initial(self, z):
        """States at row 0."""
        return self.mean_ + self.scale_ * z

    def transition(self, x, z, t):
        """States at row t from those at the row before."""
        moved = x + self.step_ * z
        return moved + self.jump_ if t == self.n_rows_ else moved

    def log_likelihood(self, x, y, t):
        """Return the log density of the features of row t of known level and scale.

        A feature counts from its third value in a stream (the first gives the level,
        the second the scale), from its first after `fit`.
        """
        here = self.weighed_ & ~np.isnan(y)
        if not here.all():
            x, y = x[:, here], y[here]
        precision, normaliser = 0.5 / self.noise_[here], self.normaliser_[here].sum()
        return normaliser - np.square(x - y) @ precision

    def observation(self, x, z, t):
        """Rows drawn in the states x."""
        return x + np.sqrt(self.noise_) * z

    def initial_proposal(self, y):
        """Location and scale of the noise at row 0, given the row: exact."""
        return self._guide(self.mean_, self.scale_, y)

    def proposal(self, x, y, t):
        """Location and scale of the noise of each particle, given row t: exact."""
        return self._guide(self.transition(x, 0.0, t), self.step_, y)

    def log_lookahead(self, x, y, t):
        """Log density of row t given the states before it: exact."""
        here = self.weighed_ & ~np.isnan(y)
        spread = self.step_[here] ** 2 + self.noise_[here]
        gaps = (y - self.transition(x, 0.0, t))[:, here]
        constant = -0.5 * (LOG_2_PI + np.log(spread)).sum()
        return constant - 0.5 * (np.square(gaps) / spread).sum(axis=1)

    def _guide(self, center, step, y):
        """Location and scale of z given y = center + step * z + noise, by feature."""
        here = self.weighed_ & ~np.isnan(y)
        spread = np.where(here, step**2 + self.noise_, 1.0)
        location = np.where(here, (y - center) * (step / spread), 0.0)
        return location, np.sqrt(np.where(here, self.noise_ / spread, 1.0))

    def log_transition(self, x, x_next, t):
        """Log density of the step, up to a constant; minus infinity off a point."""
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = self.jump_ if t == self.n_rows_ else 0.0
            scores = (x_next - x - jump) / self.step_
        return -0.5 * np.square(np.where(x_next == x + jump, 0.0, scores)).sum(axis=-1)


def _latest(values, age):
    """Return the latest known value at each row, and how many rows ago it was.

    `age` is that of row 0.
    """
    rows = np.arange(len(values))[:, None]
    places = np.maximum.accumulate(np.where(np.isnan(values), 0, rows))
    ages = rows - places + np.where(places == 0, age, 0.0)
    return np.take_along_axis(values, places, axis=0), ages


SMALLEST = 1e-305  # variance: the inverse of a smaller one may be infinite
PARAMETERS = (
    "initial_mean",
    "initial_variance",
    "transition_variance",
    "observation_variance",
)


class LinearObservations(BaseEstimator):
    """Base class of models with additive noise and linear Gaussian observations.

    ``x_t = f(x_{t-1}, t) + L z``, ``y_t = G x_t + N(0, R)``, where L may depend on
    ``x_{t-1}`` and t. A subclass has `initial`, `transition`, `n_noise`, and the
    attributes `observation_matrix`, `G` of shape
    (n_features, n_states), and `observation_covariance`, `R`, positive definite.
    Particles are then moved by the optimal proposal given row t, and ancestors may be
    drawn by the density of row t (``proposal="auxiliary"``). Partly observed rows are
    used, unless a subclass has its own `log_likelihood` or proposal and does not set
    ``handles_missing = True``.

    Examples
    --------
    A pendulum whose angle is measured, but not its speed:

    >>> import numpy as np
    >>> from skpacbayes.filtering import ClusteredParticleFilter
    >>> from skpacbayes.filtering.models import LinearObservations
    >>> class Pendulum(LinearObservations):
    ...     n_noise, observation_matrix, observation_covariance = 2, [[1, 0]], [[0.01]]
    ...     def initial(self, z):
    ...         return 0.5 * z
    ...     def transition(self, x, z, t):
    ...         angle, speed = x.T
    ...         moved = [angle + 0.1 * speed, speed - 0.1 * np.sin(angle)]
    ...         return np.transpose(moved) + [0.01, 0.05] * z
    >>> angles = np.cos(0.1 * np.arange(50))[:, None]
    >>> tracker = ClusteredParticleFilter(Pendulum(), random_state=0).fit(angles)
    >>> tracker.forecast(3).means.shape
    (3, 1)
    """

    handles_missing = True

    def __init_subclass__(cls, **kwargs):
        """Set `handles_missing` unless a subclass overrides functions of a row."""
        super().__init_subclass__(**kwargs)
        readers = "log_likelihood", "log_lookahead", "proposal", "initial_proposal"
        if any(name in vars(cls) for name in readers):
            cls.handles_missing = vars(cls).get("handles_missing", False)

    def log_likelihood(self, x, y, t):
        """Return the log density of the observed features of row t."""
        y, matrix, covariance = self._observed(y)
        gaps = matrix @ x.T
        gaps -= y[:, None]
        return gaussian_log_density(gaps, covariance)

    def observation(self, x, z, t):
        """Rows drawn in the states x."""
        seen = x @ matrix_of(self.observation_matrix, float).T
        return seen + z @ factored(self.observation_covariance)[0]

    def initial_proposal(self, y):
        """Location and scale of the noise at row 0, given the row."""
        center, factor = self._parts(lambda x, z: self.initial(z), None)
        return self._guide(center, factor, y)

    def proposal(self, x, y, t, y_prev=None, u=None):
        """Location and scale of the noise of each particle, given row t."""
        return self._guide(*self._moves(x, t, y_prev, u), y)

    def log_lookahead(self, x, y, t, y_prev=None, u=None):
        """Log density of row t given the states before it."""
        center, factor = self._moves(x, t, y_prev, u)
        y, matrix, covariance = self._observed(y)
        seen = matrix @ factor
        spread = seen @ seen.swapaxes(-1, -2) + covariance
        gaps = y[:, None] - matrix @ center.T
        if spread.ndim == 3:
            return gaussian_log_densities(gaps, spread)
        return gaussian_log_density(gaps, spread)

    def _moves(self, x, t, y_prev, u):
        """Return f(x), (n_particles, n_states), and the factor L of the transition."""
        given = {"y_prev": y_prev, "u": u}
        asked = _names_of(type(self).transition)
        given = {name: value for name, value in given.items() if name in asked}
        return self._parts(lambda x, z: self.transition(x, z, t, **given), x)

    def _parts(self, move, x):
        """Return centre and factor of ``move(x, z)``.

        The factor is that of all states, (n_states, n_noise), or one for each state,
        (n_particles, n_states, n_noise), if a few of them differ.
        """
        n_noise = self.n_noise
        if x is None:
            center = move(None, np.zeros((1, n_noise)))
            return center, _factors(move, None, center, n_noise)[0]
        center = move(x.copy(), np.zeros((len(x), n_noise)))
        few = np.linspace(0, len(x) - 1, min(N_COMPARED, len(x))).astype(int)
        some = _factors(move, x[few], center[few], n_noise)
        rounding = 1e-9 * np.abs(some).max(initial=0) + 1e-12 * np.abs(center).max()
        if np.ptp(some, axis=0).max(initial=0) <= rounding:
            return center, some[0]
        return center, _factors(move, x, center, n_noise)

    def _guide(self, center, factor, y):
        """Location and scale of z given y = G (center + factor z) + N(0, R)."""
        y, matrix, covariance = self._observed(y)
        seen, gaps = np.ascontiguousarray(matrix @ factor), y - center @ matrix.T
        if seen.ndim == 3:
            gains, scales = gains_of(seen, covariance)
            return np.einsum("im,imk->ik", gaps, gains), scales
        gain, scale = gain_of(seen.tobytes(), covariance.tobytes(), seen.shape)
        return gaps @ gain, scale

    def _observed(self, y):
        """Return the observed features of a row, with their matrix and covariance."""
        matrix = np.ascontiguousarray(matrix_of(self.observation_matrix, float))
        covariance = matrix_of(self.observation_covariance, float)
        if len(matrix) != len(y):  # a single feature would be broadcast
            raise ValueError(
                f"observation_matrix has {len(matrix)} rows, but X has {len(y)} "
                "features."
            )
        known = ~np.isnan(y)
        if known.all():
            return y, matrix, covariance
        return y[known], matrix[known], covariance[np.ix_(known, known)]


N_COMPARED = 8  # states at which the factors of the noise are compared


def _factors(move, x, center, n_noise):
    """Return factors L of ``move(x, z) = center + L z``, (n, n_states, n_noise)."""
    factors = np.empty((*center.shape, n_noise))
    for j, unit in enumerate(np.eye(n_noise)):
        unit = np.tile(unit, (len(center), 1))
        moved = move(None if x is None else x.copy(), unit)
        factors[:, :, j] = moved - center
    return factors


def _has_density(model):
    """Whether the noise of a model moves all states in all directions."""
    if not noise_factor(model.transition_covariance)[1]:
        raise AttributeError(
            "transition_covariance is singular: the transition has no density."
        )
    return True


class LinearGaussian(LinearObservations):
    """Linear Gaussian state-space model, with an exact Kalman filter.

    ``x_t = F x_{t-1} + N(0, Q)``, ``y_t = G x_t + N(0, R)``, ``x_0 = N(m, P)``.

    A number stands for a matrix or vector of size one.

    Parameters
    ----------
    transition_matrix : float or array-like of shape (n_states, n_states)
        F.
    observation_matrix : float or array-like of shape (n_features, n_states)
        G. A vector of shape (n_states,) is that of one feature.
    transition_covariance : float or array-like of shape (n_states, n_states)
        Q, positive semi-definite. If it is singular, as for a season, the transition
        has no density: there is no `log_transition`, and `smooth` of a filter raises an
        error unless many particles have descendants. Use `kalman_smooth`.
    observation_covariance : float or array-like of shape (n_features, n_features)
        R, positive definite; for `kalman` and `kalman_smooth` semi-definite.
    initial_mean : float, array-like of shape (n_states,) or None, default=None
        m. None: zero.
    initial_covariance : float, array-like or None, default=None
        P, of shape (n_states, n_states), positive semi-definite. None: Q, which must
        then be positive definite.

    Examples
    --------
    A level whose slope does not change, measured with errors of deviation 1:

    >>> import numpy as np
    >>> from skpacbayes.filtering.models import LinearGaussian
    >>> trend = LinearGaussian(
    ...     [[1, 1], [0, 1]], [[1, 0]], np.diag([0.01, 0]), 1, [0, 0], 9 * np.eye(2)
    ... )
    >>> means, covariances, log_likelihoods = trend.kalman(2.0 * np.arange(40))
    >>> means[-1].round(1)
    array([78.,  2.])
    """

    def __init__(
        self,
        transition_matrix,
        observation_matrix,
        transition_covariance,
        observation_covariance,
        initial_mean=None,
        initial_covariance=None,
    ):
        self.transition_matrix = transition_matrix
        self.observation_matrix = observation_matrix
        self.transition_covariance = transition_covariance
        self.observation_covariance = observation_covariance
        self.initial_mean = initial_mean
        self.initial_covariance = initial_covariance

    @property
    def n_noise(self):
        """Number of states."""
        return len(self.transition_matrix) if np.ndim(self.transition_matrix) else 1

    def initial(self, z):
        """States at row 0."""
        self._check_form()
        mean, covariance = self._start()
        return mean + z @ noise_factor(covariance)[0]

    def transition(self, x, z, t):
        """States at row t from those at the row before."""
        moved = x @ matrix_of(self.transition_matrix).T.copy()  # a view is slower
        moved += z @ noise_factor(self.transition_covariance)[0]
        return moved

    def _parts(self, move, x):
        """Centers and factor of a move, from the matrices."""
        if x is None:
            self._check_form()
            mean, covariance = self._start()
            return mean[None], noise_factor(covariance)[0].T
        center = x @ matrix_of(self.transition_matrix).T.copy()
        return center, noise_factor(self.transition_covariance)[0].T

    @available_if(_has_density)
    def log_transition(self, x, x_next, t):
        """Log density of moving from the rows of x to those of x_next."""
        gaps = np.atleast_2d(x_next).T - matrix_of(self.transition_matrix) @ x.T
        return gaussian_log_density(gaps, self.transition_covariance)

    def _has_constants(self):
        """Whether the state has unknown directions that the noise never moves."""
        moves = matrix_of(self.transition_matrix), self.transition_covariance
        return has_constants(*moves, self._start()[1])

    def kalman(self, X):
        """Filter the rows exactly.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows from row 0 on; NaN is a missing value. A series of one feature may have
            the shape (n_timesteps,).

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Filtered means.
        covariances : ndarray of shape (n_timesteps, n_states, n_states)
            Filtered covariances.
        log_likelihoods : ndarray of shape (n_timesteps,)
            Log density of each row given those before; 0 where it is missing.
        """
        return self._filtered(X)[:3]

    def kalman_smooth(self, X):
        """Return the exact states given all rows.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows from row 0 on; NaN is a missing value. A series of one feature may have
            the shape (n_timesteps,).

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Smoothed means.
        covariances : ndarray of shape (n_timesteps, n_states, n_states)
            Smoothed covariances.
        """
        return smoothed(self._filtered(X)[3], matrix_of(self.transition_matrix))

    def _filtered(self, X):
        self._check_form(exact=True)
        rows = rows_for(X, n_features_of(self.observation_matrix))
        moves = matrix_of(self.transition_matrix), matrix_of(self.transition_covariance)
        return filtered(rows, moves, self._start(), self._observed)

    def _check_form(self, exact=False):
        """Raise ValueError for matrices of wrong shape or indefinite covariances.

        exact : whether the covariance of the rows may be singular.
        """
        n, m = self.n_noise, n_features_of(self.observation_matrix)
        shapes = {
            "transition_matrix": (n, n),
            "observation_matrix": (m, n),
            "transition_covariance": (n, n),
            "observation_covariance": (m, m),
            "initial_mean": (n,),
            "initial_covariance": (n, n),
        }
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None and name.startswith("initial"):
                continue
            found = np.shape(value)
            row = name == "observation_matrix" and found == (n,)
            number = found in ((), (1,)) and set(shape) == {1}
            if not (found == shape or row or number):
                raise ValueError(
                    f"{name} has shape {found}, expected {shape}: "
                    f"transition_matrix has {n} rows, observation_matrix {m}."
                )
            if not np.isfinite(np.asarray(value, dtype=float)).all():
                raise ValueError(f"{name} should be finite, got {value!r}.")
            if name.endswith("covariance"):
                definite = name == "observation_covariance" and not exact
                check_covariance(name, value, definite)
        full_rank = noise_factor(self.transition_covariance)[1]
        if self.initial_covariance is None and not full_rank:
            raise ValueError(
                "initial_covariance=None stands for the transition_covariance, which "
                f"is singular, {self.transition_covariance!r}: some states would be "
                "known exactly at row 0. Give initial_covariance."
            )

    def _start(self):
        mean, covariance = self.initial_mean, self.initial_covariance
        return (
            np.zeros(self.n_noise)
            if mean is None
            else np.atleast_1d(np.asarray(mean, dtype=float)),
            matrix_of(self.transition_covariance if covariance is None else covariance),
        )


class StochasticVolatility(BaseEstimator):
    """Stochastic volatility: the log-variance is an autoregression of order one.

    ``x_t = phi x_{t-1} + sigma e_t``, started in its stationary distribution, and ``y_t
    = beta exp(x_t / 2) N(0, 1)``: section 4.1 of Fan and Heller. The innovation `e_t`
    has the correlation `leverage` with the normal of ``y_{t-1}``.

    Parameters
    ----------
    phi : float in (-1, 1), default=0.8
        Persistence of the log-variance.
    sigma : float, default=0.9
        Standard deviation of its innovations.
    beta : float, default=0.7
        Standard deviation of y where the log-variance is 0.
    leverage : float in (-1, 1), default=0.0
        Correlation of a return with the next innovation; negative if losses are
        followed by a higher volatility than gains.
    """

    n_noise = 1

    def __init__(self, phi=0.8, sigma=0.9, beta=0.7, leverage=0.0):
        self.phi = phi
        self.sigma = sigma
        self.beta = beta
        self.leverage = leverage

    def initial(self, z):
        """States at row 0."""
        for name in ("phi", "leverage"):
            if not -1 < getattr(self, name) < 1:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must lie between -1 and 1"
                    + (
                        ": otherwise there is no stationary distribution to start in."
                        if name == "phi"
                        else ", as a correlation."
                    )
                )
        check_spreads(self, "sigma", "beta")
        return z * (self.sigma / math.sqrt(1 - self.phi**2))

    def transition(self, x, z, t, y_prev=None):
        """States at row t from those at the row before."""
        center, step = self._move(x, y_prev)
        return center + step * z

    def log_likelihood(self, x, y, t):
        """Log density of row t."""
        value = _only(y, self)
        x = x[:, 0]
        square = (value / self.beta) ** 2
        constant = -0.5 * LOG_2_PI - math.log(self.beta)
        return constant - 0.5 * (x + square * np.exp(-x))

    def observation(self, x, z, t):
        """Rows drawn in the states x."""
        return self.beta * np.exp(0.5 * x) * z

    def log_transition(self, x, x_next, t, y_prev=None):
        """Log density of moving from x to x_next, up to a constant."""
        center, step = self._move(x, y_prev)
        scores = (x_next - center) / step
        return (-0.5 * np.square(scores) - np.log(step))[..., 0]

    def _move(self, x, y_prev):
        """Mean and standard deviation of the next states."""
        center, whole = self.phi * x, np.full((1, 1), float(self.sigma))
        if self.leverage == 0 or y_prev is None:
            return center, whole
        # a common row, or one per particle; if missing, so is its normal
        before = np.asarray(y_prev, dtype=float)[..., :1]
        # Beyond LARGEST the row excludes the state, which would go to infinity.
        normal = before / self.beta * np.exp(-0.5 * x)
        normal = np.clip(normal, -LARGEST, LARGEST)
        known = ~np.isnan(normal)
        pull = np.where(known, self.leverage * self.sigma * normal, 0.0)
        rest = whole * math.sqrt(1 - self.leverage**2)
        return center + pull, np.where(known, rest, whole)


class TerrainNavigation(BaseEstimator):
    """Terrain navigation: an aircraft measures its height above the ground.

    ``x_t = x_{t-1} + velocity + N(0, position_std ** 2)`` in the cells of the map, and
    ``y_t = altitude - height(x_t) + N(0, height_std ** 2)``: section 4.2 of Fan and
    Heller. The start is uniform on the map; off the map the likelihood is 0.

    Parameters
    ----------
    heights : array-like of shape (n_rows, n_columns)
        Height of the ground, interpolated linearly between the cells.
    velocity : array-like of shape (2,) or (n_timesteps, 2)
        Displacement of a step, in cells: rows, then columns. If there are several, row
        `t` is the displacement from time ``t - 1`` to `t`.
    altitude : float, default=0.0
        Height of the flight, in the units of `heights`; 0 if X holds minus the height
        of the ground.
    position_std : float, default=1.0
        Standard deviation of the displacement, in cells.
    height_std : float, default=25.0
        Standard deviation of the measurements, in the units of `heights`.
    """

    n_noise = 2

    def __init__(
        self, heights, velocity, altitude=0.0, position_std=1.0, height_std=25.0
    ):
        self.heights = heights
        self.velocity = velocity
        self.altitude = altitude
        self.position_std = position_std
        self.height_std = height_std

    def initial(self, z):
        """Positions at row 0, uniform on the map."""
        check_spreads(self, "position_std", "height_std")
        return ndtr(z) * (np.shape(self.heights) - np.ones(2))

    def transition(self, x, z, t):
        """Positions at row t from those at the row before."""
        velocity = np.asarray(self.velocity, dtype=float)
        if velocity.ndim == 2:
            if t >= len(velocity):
                raise ValueError(
                    f"velocity has {len(velocity)} rows, but X has more: row {t}."
                )
            velocity = velocity[t]
        return x + velocity + self.position_std * z

    def log_likelihood(self, x, y, t):
        """Log density of row t; minus infinity off the map."""
        value = _only(y, self)
        scores = (self.altitude - self.height_at(x) - value) / self.height_std
        constant = -0.5 * LOG_2_PI - math.log(self.height_std)
        log_density = constant - 0.5 * scores**2
        inside = (x >= 0) & (x <= np.shape(self.heights) - np.ones(2))
        return np.where(inside.all(axis=1), log_density, -np.inf)

    def observation(self, x, z, t):
        """Rows drawn at the positions x."""
        return (self.altitude - self.height_at(x))[:, None] + self.height_std * z

    def height_at(self, x):
        """Height of the ground at positions x, (n, 2), in cells."""
        heights = np.asarray(self.heights, dtype=float)
        n_rows, n_columns = heights.shape
        rows = np.clip(x[:, 0], 0, n_rows - 1)
        columns = np.clip(x[:, 1], 0, n_columns - 1)
        i = np.minimum(rows.astype(np.int64), n_rows - 2)
        j = np.minimum(columns.astype(np.int64), n_columns - 2)
        rows, columns = rows - i, columns - j
        corner, flat = i * n_columns + j, heights.ravel()
        above = flat.take(corner) * (1 - columns) + flat.take(corner + 1) * columns
        corner += n_columns
        below = flat.take(corner) * (1 - columns) + flat.take(corner + 1) * columns
        return above * (1 - rows) + below * rows

    def log_transition(self, x, x_next, t):
        """Log density of moving from x to x_next, up to a constant."""
        moved = self.transition(x, 0.0, t)
        return -0.5 * np.square((x_next - moved) / self.position_std).sum(axis=-1)


def check_spreads(model, *names, zero=False):
    """Raise ValueError for negative or infinite spreads, or zero ones if not `zero`."""
    for name in names:
        values = np.asarray(getattr(model, name), dtype=float)
        sound = np.isfinite(values) & ((values >= 0) if zero else (values > 0))
        if not sound.all():
            raise ValueError(
                f"{name}={getattr(model, name)!r} of {type(model).__name__} must be "
                f"finite and {'at least 0' if zero else 'positive'}."
            )


def _only(y, model):
    """Value of a row of one feature."""
    if len(y) != 1:
        raise ValueError(f"{type(model).__name__} has one feature, but X has {len(y)}.")
    return y[0]


@lru_cache(maxsize=32)
def _names_of(function):
    """Names of the arguments of a function."""
    return frozenset(inspect.signature(function).parameters)
