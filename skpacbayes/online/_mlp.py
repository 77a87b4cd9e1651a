"""A network of one hidden layer on a stream, by online variational inference."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.base import RegressorMixin

from .._base import as_fitted, fit_context
from .._compat import Interval, StrOptions
from .._stream import CheckedScoreMixin, partial_fit_context
from ._network import OnlineNetwork

POSITIVE = Interval(Real, 0, None, closed="neither")


class OnlineVIMLPRegressor(CheckedScoreMixin, RegressorMixin, OnlineNetwork):
    """Regression on a stream by a network of one hidden ReLU layer.

    All weights have independent Gaussian posteriors. The mean and the variance of the
    output are computed exactly, without sampling, and the default update, implicit
    natural-gradient variational inference (NGVI), has no learning rate: it is an
    extended Kalman filter with a diagonal covariance and exact moments of the hidden
    units. Features and targets are standardised by their running moments.

    Parameters
    ----------
    hidden_units : int, default=20
        Number of hidden units.
    method : {"ngvi", "sva", "svb", "oga", "oga_el"}, default="ngvi"
        As in :class:`OnlineVIRegressor`. Methods other than "ngvi" are for comparison:
        they predict with the network at the posterior means, and are projected on the
        box of [1]_, means in [-20, 20] and standard deviations in [0, 1].
    learning_rate : "auto", "invsqrt" or float, default="auto"
        Step size of methods other than "ngvi", as in :class:`OnlineVIRegressor`.
    prior_scale : float, default=1.0
        Scale of the prior: the standard deviation of a weight is `prior_scale` over the
        root of the number of inputs of its unit, and 1 for the intercept of the output.
        For "sva", the standard deviation of the prior of every weight.
    forgetting : float in [0, 1), default=0.001
        Rate of forgetting, for `method="ngvi"`: the precision of a weight beyond that
        of the prior is reduced by this share at each row, a memory of about ``1 /
        forgetting`` rows; the means do not change. Increase it to 0.01 if the relation
        changes fast (a warning is given then), and set it to 0 if nothing may be
        forgotten.
    standardize : bool, default=True
        Whether to centre and scale features by the moments of the rows so far.
    clip : float or None, default=5.0
        Bound on the absolute value of a feature, after standardisation.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial means, which are drawn from the prior to break the symmetry
        of the hidden units.

    Attributes
    ----------
    noise_variance_ : float
        Estimate of the variance of the noise, in squared units of y; for
        `method="ngvi"`.
    cumulative_loss_ : float
        Sum of the squared errors of predictions made before each row was learnt.
    n_samples_seen_ : int
        Number of rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    OnlineVIRegressor : Linear in its features, so that the posterior may be exact.

    Notes
    -----
    For independent Gaussian weights the input of a hidden unit is N(mu, s^2) and with
    ``p = Phi(mu / s)`` and ``q = phi(mu / s)`` its output h has
    ``E h = mu p + s q`` and ``E h^2 = (mu^2 + s^2) p + mu s q``; from these follow the
    expected squared loss and its gradients. Of the second derivatives the positive
    part enters the posterior precisions, as in the Gauss-Newton method.

    The loss is not convex in the weights: no theorem of [1]_ applies, and different
    seeds give different results. The paper ran this model on the California housing
    data (Figure 1, last panel).

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    A nonlinear relation:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skpacbayes import OnlineVIMLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(3000, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=3000)
    >>> network = OnlineVIMLPRegressor(random_state=0).fit(X, y)
    >>> mean, std = network.predict([[2.0]], return_std=True)
    >>> float(mean[0]), float(std[0])
    (2.0..., 0.1...)
    >>> network.score(X, y) > 0.95 > 0.1 > LinearRegression().fit(X, y).score(X, y)
    True
    """

    _parameter_constraints: dict = {
        "hidden_units": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"ngvi", "sva", "svb", "oga", "oga_el"})],
        "learning_rate": [StrOptions({"auto", "invsqrt"}), POSITIVE],
        "prior_scale": [POSITIVE],
        "forgetting": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "clip": [None, POSITIVE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        hidden_units=20,
        *,
        method="ngvi",
        learning_rate="auto",
        prior_scale=1.0,
        forgetting=0.001,
        standardize=True,
        clip=5.0,
        random_state=None,
    ):
        self.hidden_units = hidden_units
        self.method = method
        self.learning_rate = learning_rate
        self.prior_scale = prior_scale
        self.forgetting = forgetting
        self.standardize = standardize
        self.clip = clip
        self.random_state = random_state

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Learn the rows once, in order, starting a new stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the order of the stream.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which multiply their losses. A row of weight 0 is
            ignored. None: 1 each. Weights that add up to one count as one row, which
            leaves the model near its prior.

        Returns
        -------
        self : OnlineVIMLPRegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150.
        """
        return self._learn_anew(X, y, sample_weight)

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows, in order.

        The result does not depend on how rows are split into calls. A call that raises
        leaves the estimator unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. A C-contiguous array of float64 avoids most of the cost of a call.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as in `fit`.

        Returns
        -------
        self : OnlineVIMLPRegressor
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150.
        """
        return self._learn_more(X, y, sample_weight)

    def predict(self, X, return_std=False):
        """Predict the mean of the target, and optionally its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation, including noise, for
            `method="ngvi"`.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predicted means, in the units of y.
        std : ndarray of shape (n_samples,)
            Predictive standard deviations, in the units of y; infinite until the noise
            can be estimated, from the second row on. Only returned if `return_std` is
            True.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        NotImplementedError
            If `return_std` and `method` is not "ngvi".
        """
        X = self._rows(X)
        if return_std:
            self._check_distribution()
        means, variances = self._moments(X)
        state = self._state
        means = self._in_units_of_y(means[:, 0])
        if not return_std:
            return means
        return means, self._unit_of_noise() * np.sqrt(state.noise + variances[:, 0])

    @property
    def cumulative_loss_(self):
        """Sum of the squared errors of predictions made before each row was learnt."""
        return self._state.cumulative_loss

    @property
    def noise_variance_(self):
        """Estimate of the variance of the noise, in squared units of y."""
        self._check_distribution(AttributeError)
        return self._state.noise * self._unit_of_noise() ** 2

    def _in_units_of_y(self, means):
        unit = self._state.target_unit
        if np.isinf(unit):  # no row of positive weight
            return np.zeros(len(means))
        return self._state.target_mean[0] + unit * means

    def _unexplained(self, X, y):
        return (y - self._in_units_of_y(self._moments(X)[0][:, 0]))[:, None]

    def _unit_of_noise(self):
        """Return the unit of deviations; infinite until two rows show one."""
        state = self._state
        return state.target_unit if state.n_steps > 1 else math.inf

    @as_fitted
    def _check_distribution(self, error=NotImplementedError):
        """Raise an error if there is no predictive distribution."""
        if self.method != "ngvi":
            raise error(
                "A predictive distribution needs method='ngvi', got "
                f"method={self.method!r}."
            )
