"""Sparse additive regression by a Gibbs posterior."""

import math
from numbers import Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._base import fit_context, partial_fit_context
from ._base import POSITIVE, Fitted, _SparseAdditiveGibbs

from ._certificate import certify
from ._sampling import Settings, sample
from ._statistics import Rows
from ._stream import Stream

FEW_ROWS = 1000  # a stream keeps so many rows, or one for each function, if more
FEW_FUNCTIONS = 512  # up to which `fit` sums the products of many rows


class SparseAdditiveGibbsRegressor(RegressorMixin, _SparseAdditiveGibbs):
    """XXX."""

    _parameter_constraints: dict = {
        **_SparseAdditiveGibbs._parameter_constraints,
        "slab": [StrOptions({"gaussian", "l1ball"})],
        "slab_scale": [StrOptions({"auto"}), POSITIVE],
        "radius": [None, POSITIVE],
        "inverse_temperature": [StrOptions({"likelihood", "pac"}), POSITIVE],
        "gamma": [Interval(Real, 0, 1, closed="neither")],
        "noise_variance": [StrOptions({"auto"}), POSITIVE],
        "sampler": [StrOptions({"collapsed", "carlin_chib"})],
    }

    def __init__(
        self,
        basis="legendre",
        *,
        max_order=8,
        feature_range=None,
        beta=0.5,
        slab="gaussian",
        slab_scale="auto",
        radius=None,
        inverse_temperature="likelihood",
        gamma=0.5,
        noise_variance="auto",
        sampler="collapsed",
        n_iter=3000,
        burn_in=1000,
        n_chains=2,
        max_active=None,
        prediction="mean",
        random_state=None,
        n_jobs=None,
    ):
        self.basis = basis
        self.max_order = max_order
        self.feature_range = feature_range
        self.beta = beta
        self.slab = slab
        self.slab_scale = slab_scale
        self.radius = radius
        self.inverse_temperature = inverse_temperature
        self.gamma = gamma
        self.noise_variance = noise_variance
        self.sampler = sampler
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.max_active = max_active
        self.prediction = prediction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Run the chains on these rows alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; an integer weight equals repeating the row.

        Returns
        -------
        self : SparseAdditiveGibbsRegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If X or y is not finite, if fewer than two rows have a positive weight, or
            if two parameters do not agree.
        """
        with self._all_or_nothing(keep=as_it_is):
            rows = self._checked(X, y, sample_weight, reset=True, least=2)
            self._begin(rows)
            if len(rows) > self._stream.n_kept and self._few_functions():
                self._stream = self._stream.settled(self._dictionary(rows))
            rng = np.random.default_rng(self._seed)
            self._result = self._learn(
                self._stream.problem(self, self._bounded()), None, rng, self._parts
            )
            self._warn_of(self._result)
        return self

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows; the chains run when something is asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; rows of weight zero are left out.

        Returns
        -------
        self : SparseAdditiveGibbsRegressor
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or has another width; nothing is then changed.
        """
        streaming = self._streaming()
        if streaming and sample_weight is None and self._recognises_pair(X, y):
            return self._extend(Rows.of(X, y, np.ones(len(y))))
        with self._all_or_nothing(keep=as_it_is):
            rows = self._checked(X, y, sample_weight, reset=not streaming, least=1)
            if not streaming:
                self._begin(Rows.none(self.n_features_in_))
            return self._extend(rows)

    def sufficient_statistics(self, X, y, sample_weight=None):
        """Sums of products of 1, y and all functions, over some rows.

        They add over sets of rows, and their sum is what `absorb` takes, provided that
        all come from copies of one regressor, which has seen some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            The sums, n_functions = n_features x max_order. The first is that of the
            weights.
        """
        check_is_fitted(self)
        rows = self._checked(X, y, sample_weight, reset=False, least=1)
        return self._settled().sums.products(rows)

    def absorb(self, statistics, memory=1.0):
        """Learn from sums of products, computed elsewhere or before.

        Parameters
        ----------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            What `sufficient_statistics` returns, or sums of it.
        memory : float in [0, 1], default=1.0
            Weight of all rows so far: 1 adds to them, 0 replaces them.

        Returns
        -------
        self : SparseAdditiveGibbsRegressor
            The regressor.

        Raises
        ------
        ValueError
            If the statistics have another shape, are not finite or count no row; or if
            `memory` is outside [0, 1].
        """
        check_is_fitted(self)
        stream = self._settled()
        statistics = np.asarray(statistics, dtype=np.float64)
        if statistics.shape != stream.sums.total.shape:
            raise ValueError(
                f"statistics have shape {statistics.shape}, but this regressor's have "
                f"shape {stream.sums.total.shape}."
            )
        if not np.isfinite(statistics).all() or statistics[0, 0] < 0:
            raise ValueError("statistics must be finite, with a weight >= 0.")
        if not 0 <= memory <= 1:
            raise ValueError(f"memory must be in [0, 1], got {memory!r}.")
        weight = memory * self.n_samples_seen_ + statistics[0, 0]
        if not weight > 0:
            raise ValueError("statistics and memory leave no row.")
        self._stream = stream.absorbed(statistics, memory)
        self._result = None
        self.__dict__.pop("_provisional", None)
        self.n_samples_seen_ = round(float(weight))
        return self

    def predict(self, X, return_std=False):
        """Predict the mean of y, and optionally its scale.

        A variable outside its range of `fit` counts as at its end.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of y too: of the posterior of the
            function, and of the noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Standard deviations, only if `return_std`.
        """
        check_is_fitted(self)
        X = self._rows(X)
        mean = self._decision(X)
        if not return_std:
            return mean
        found = self._ready()
        variance = found.noise_variance + found.intercept_variance
        return mean, np.sqrt(variance + self._variance(X))

    def certificate(self, confidence=0.95):
        """Bound of the risk: of the mean squared error on new rows.

        It holds for coefficients drawn from the posterior, those that the chains drew,
        and exists for the paper's setting: `inverse_temperature="pac"` and
        `slab="l1ball"`.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        certificate : Certificate
            The empirical risk, and the bound; see
            :func:`skpacbayes.certificates.additive_risk_terms`.

        Raises
        ------
        NotImplementedError
            In any other setting.
        """
        if self.inverse_temperature != "pac" or self.slab != "l1ball":
            raise NotImplementedError(
                "certificate needs inverse_temperature='pac' and slab='l1ball', got "
                f"inverse_temperature={self.inverse_temperature!r} and "
                f"slab={self.slab!r}."
            )
        found = self._ready()
        problem = self._stream.problem(self, bounded=True)
        return certify(self, found, problem, confidence)

    @property
    def noise_variance_(self):
        """Variance of the noise, given or estimated."""
        return float(self._ready().noise_variance)

    # How rows come in.

    def _checked(self, X, y, sample_weight, *, reset, least):
        """Validate rows; return those of positive weight."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            reset=reset,
            y_numeric=True,
            ensure_min_samples=least,
        )
        y = np.asarray(y, dtype=np.float64)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight,
                X,
                dtype=np.float64,
                ensure_non_negative=True,
                allow_all_zero_weights=least == 1,
            )
        present = weights > 0
        if np.count_nonzero(present) < least > 1:
            raise ValueError(
                f"sample_weight is zero for all rows but "
                f"{np.count_nonzero(present)}, while {least} are required."
            )
        return Rows.of(X[present], y[present], weights[present])

    def _recognises_pair(self, X, y):
        """Whether X and y are arrays that need no validation."""
        return (
            self._recognises(X)
            and type(y) is np.ndarray
            and y.dtype == np.float64
            and y.shape == (len(X),)
            and math.isfinite(X.sum())
            and math.isfinite(y.sum())
        )

    def _begin(self, rows):
        """Forget everything but these rows."""
        self._check_parameters()
        n_features = rows.X.shape[1]
        self._stream = Stream(rows, max(FEW_ROWS, n_features * self.max_order))
        self._seed = self._draw_seed()
        self.n_samples_seen_ = len(rows)
        self._result = None
        self.__dict__.pop("_provisional", None)

    def _extend(self, rows):
        """Take more rows; what was found is out of date."""
        self._stream = self._stream.extended(rows, self)
        self.n_samples_seen_ += len(rows)
        self._result = None
        self.__dict__.pop("_provisional", None)
        return self

    def _check_parameters(self):
        if self.slab == "l1ball" and self.sampler == "carlin_chib":
            raise ValueError(
                f"sampler={self.sampler!r} needs slab='gaussian', got "
                f"slab={self.slab!r}."
            )
        self._check_range()

    def _few_functions(self):
        return self.n_features_in_ * self.max_order <= FEW_FUNCTIONS

    def _bounded(self):
        return self.slab == "l1ball"

    def _settled(self):
        """Return the stream with all rows summed."""
        stream = self._stream
        dictionary = None if stream.rows is None else self._dictionary(stream.rows)
        return stream.settled(dictionary)

    # How the posterior is found.

    def _learn(self, problem, standing, rng, tasks):
        """Run the chains, and keep what predictions need."""
        found = sample(self._settings(), problem, rng, standing, tasks)
        return Fitted(
            dictionary=problem.dictionary,
            functions=problem.functions,
            posterior=found.posterior,
            coefficients=self._chosen(found.posterior, rng),
            intercept=problem.mean,
            inverse_temperature=found.inverse_temperature,
            acceptance_rate=found.acceptance_rate,
            r_hat=found.r_hat,
            full=found.prior.most if found.full else 0,
            noise_variance=found.noise_variance,
            intercept_variance=1 / (2 * found.inverse_temperature),
            radius=found.radius,
            standing=(found.models, found.noise_variance),
        )

    def _stand(self, sums, standing, n_rows):
        """Run the chains within a stream; return where they stand."""
        rng = np.random.default_rng([self._seed, n_rows])
        problem = sums.problem(self._bounded())
        return self._learn(problem, standing, rng, range).standing

    def _ready(self):
        """Return what was found, for all rows so far."""
        check_is_fitted(self)
        if self._result is not None:
            return self._result
        if "_provisional" not in self.__dict__:
            rng = np.random.default_rng(self._seed)
            problem = self._stream.problem(self, self._bounded())
            found = self._learn(problem, self._stream.standing, rng, range)
            self._warn_of(found)
            self._provisional = found
        return self._provisional

    def _settings(self):
        return Settings(**{name: getattr(self, name) for name in Settings._fields})

    def __sklearn_is_fitted__(self):
        return self._streaming() and self.n_samples_seen_ > 0

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_provisional", None)
        return state


def as_it_is(value):
    """Keep what is never changed in place."""
    return value
