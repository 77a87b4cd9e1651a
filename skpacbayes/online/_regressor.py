"""Regression on a stream, by online variational inference."""

import math
from numbers import Real

import numpy as np
from scipy.special import ndtri, stdtrit
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._arguments import as_levels
from .._base import as_fitted, fit_context
from .._compat import Interval, StrOptions
from .._kernels.aggregation import HIGHEST_SCORE
from .._kernels.online_error_quantiles import move_to_observed
from .._kernels.online_parts import noise_of
from .._kernels.online_predict import (
    predict_deviations,
    predict_scores,
    write_quantiles,
)
from .._kernels.order import END
from .._sentinels import BEYOND
from .._stream import CheckedScoreMixin, partial_fit_context
from ._certificate import certify_linear
from ._doubts import LIGHT, warn_of_extrapolation, warn_of_growing_errors
from ._linear import OnlineLinearModel
from ._rough_rates import warn_of_rough_rates

LOOKED_AT = 1000  # largest number of new rows that are compared with the range


class OnlineVIRegressor(CheckedScoreMixin, RegressorMixin, OnlineLinearModel):
    """Regression on a stream, with uncertainty and without a learning rate.

    Rows are learnt one at a time or in blocks, in constant time and memory per row.
    Predictions are averages of a linear model and of a model with random Fourier
    features, weighted by their losses so far; the latter is dropped if it is of no use.
    The coefficients and the noise of a model have a normal-gamma posterior, updated by
    natural-gradient variational inference (NGVI) with the exact squared loss. Features
    are standardised by their running moments, and no parameter needs tuning:
    predictions do not depend on the units of the features or of the target.

    Parameters
    ----------
    method : {"ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"}, default="ngvi"
        - "ngvi": implicit NGVI, without linearising the loss in the mean.
        - "ngvi_explicit": NGVI as published, equation (8) of [1]_.
        - "sva": sequential variational approximation, equation (6).
        - "svb": streaming variational Bayes, equation (7).
        - "oga", "oga_el": online gradient descent on the loss, and on the expected
          loss, the paper's baselines.
    loss : {"squared_error", "absolute_error", "quantile", "poisson"}, \
            default="squared_error"
        Loss of a prediction:

        - "squared_error": not halved.
        - "absolute_error": predictions are medians.
        - "quantile": the pinball loss; predictions are quantiles of level `quantile`.
        - "poisson": half the deviance of counts, whose rate is the exponential of a
          linear function; targets must not be negative. Needs ``method="ngvi"``. For
          counts over unequal times, give ``y = count / time`` and
          ``sample_weight=time``.
    quantile : float in (0, 1), default=0.5
        Level of the quantile, with ``loss="quantile"``.
    covariance : {"auto", "full", "diagonal"}, default="auto"
        Covariance of the posterior. "full" takes a time of order ``n_features ** 2``
        per row, and needs `method="ngvi"` and the squared loss, for which it is the
        exact posterior, or the loss of counts. "auto": "full" if possible and there are
        at most 400 features, including Fourier features.
    inverse_temperature : "auto" or float, default="auto"
        Weight of the loss of a row in the posterior, for NGVI. With the squared loss, a
        float `b` means a noise variance of ``1 / (2 * b)``. "auto": the noise is
        estimated, and the prior of the coefficients is relative to it; for counts, 1.
    learning_rate : "auto", "invsqrt" or float, default="auto"
        Step size of methods other than "ngvi". A float is a constant step. "invsqrt":
        ``1 / sqrt(t)`` at row `t`. "auto": `prior_scale` over the root of the sum of
        squared norms of the gradients so far. For "svb" both are divided by the
        posterior variance; "invsqrt" is then the schedule of Theorem 3 with constant 1.
    prior_scale : "auto", float or None, default=None
        Standard deviation of the prior of a coefficient of a standardised feature,
        relative to that of the noise if the noise is estimated. "auto" averages models
        with the scales `prior_scales_` by exponential weights, in about twice the time;
        it is 1 for methods other than "ngvi". None: "auto" with more than 16 features
        and a diagonal covariance, or more than 64 and a full one, unless
        ``forgetting="auto"``; otherwise 1. With 17 to 64 features and a full covariance
        that forgets nothing, it is "auto" as long as there are few rows: up to about
        ten for each feature, where predictions with one scale would be worse. From then
        on the best scale is used alone. With more than 16 features one of the scales is
        ``n_features ** -0.5``, so that the first predictions are not too large.
        With None or "auto", the squared loss, an estimated noise, a full covariance,
        standardisation and no forgetting (nor `clip`, unless ``n_fourier=0``), the
        largest scale of the linear models grows to up to 1e5 where the rows ask for it,
        as small differences of nearly equal columns do: at 32 rows, whatever their
        weights, and each time their number has doubled, it becomes the one with the
        largest evidence, if that is 10 larger in the log.
    forgetting : "auto" or float in [0, 1), default=0.0
        Rate of forgetting, for NGVI: the posterior is moved towards the prior by this
        share at each row, a memory of about ``1 / forgetting`` rows. "auto" averages
        the predictions of models with the rates `forgetting_rates_`, clipped to the
        range of the targets so far, by exponential weights. (For counts the upper bound
        is the largest count plus 1, and there is no lower bound.) With a float,
        the squared loss and a full covariance, a warning is given if errors of recent
        rows predict the next error, as when the relation changes faster than that.
    standardize : bool, default=True
        Whether to centre and scale features by the moments of the rows so far.
    clip : float or None, default=None
        Bound on the absolute value of a feature, after standardisation. Use about 5 for
        heavy tails; predictions are then not linear for clipped values.
    fit_intercept : bool, default=True
        Whether there is an intercept. Its prior is flat for NGVI; for counts, normal
        with a standard deviation of 10 in the log of the rate.
    mean_bound, scale_bound : float or None, default=None
        Projection of the posterior means on ``[-mean_bound, mean_bound]`` and of
        the posterior standard deviations on ``[0, scale_bound]``, after each row.
    average : bool, default=False
        Whether to predict with the average of the posterior means over the rows, as in
        equation (12) of [1]_, instead of the last mean.
    n_fourier : "auto" or int, default="auto"
        Number of random Fourier features that are added to the standardised features:
        cosines of random projections, with three length scales, which make the model
        about as flexible as a kernel machine. "auto" averages the predictions of the
        linear model, which is that of 0, and of a model with 120 Fourier features and a
        full covariance, or with 240 and a diagonal one, by exponential weights. The
        latter is dropped, and predictions are from then on those of 0 (with `clip`,
        nearly), when the number of rows is a power of two: from 64 on if rows are
        sorted by target, and from 2048 on if its weight is below 1e-6 and it is further
        behind than at half as many rows, by more than a tenth. "auto" is 0 for methods
        other than "ngvi"; for more than 280 features where ``covariance="auto"`` is
        full; and with a full covariance for a rate of `forgetting` of 1/120 or more,
        which leaves fewer rows than Fourier features; there, with
        ``forgetting="auto"``, they are used with the rates 0 and 0.003. Use 0 if you
        need coefficients only, or if time matters more than the loss. With linear
        models alone and without `forgetting`, a warning is given if a smooth function
        of the features predicts a quarter of the squared error.
    random_state : int, RandomState instance or None, default=None
        Seed of the random Fourier features. Pass an int for predictions that can be
        reproduced, unless ``n_fourier=0``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior mean of the coefficients, in units of y over units of X, of the linear
        models: `predict` is linear if `fourier_weight_` is 0. Not available for a
        positive number `n_fourier`.
    intercept_ : float
        Posterior mean of the intercept, in units of y.
    coef_std_ : ndarray of shape (n_features,)
        Posterior standard deviations of the coefficients; infinite until the noise can
        be estimated, 0 for a constant feature.
    noise_variance_ : float
        Variance of the noise, in squared units of y: estimated, or implied by
        `inverse_temperature`. Squared loss and NGVI only.
    cumulative_loss_ : float
        Sum over rows of the loss of the prediction made before the row was learnt; with
        ``average=True`` that of the last mean. With a full covariance, a row that
        increases the scale of a feature first changes the unit of the prior: its loss
        then differs from that of `predict`.
    forgetting_rates_ : ndarray of shape (n_rates,)
        Forgetting rates; several with `forgetting="auto"`.
    forgetting_weights_ : ndarray of shape (n_rates,)
        Weights of the forgetting rates.
    prior_scales_ : ndarray of shape (n_scales,)
        Scales of the prior; several while they are averaged. That of the models with
        Fourier features is three times that of linear ones (of 1 if they are averaged
        until they differ little).
    prior_scale_weights_ : ndarray of shape (n_scales,)
        Weights of the prior scales.
    fourier_weight_ : float
        Weight of the models with Fourier features: near 1 if the relation is curved,
        near 0 if it is linear; 0 from when they are dropped.
    n_samples_seen_ : int
        Number of rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    OnlineVIClassifier : The same for labels.
    OnlineVIMLPRegressor : A network of one hidden layer.
    EWARegressor : Exponentially weighted aggregation of any regressors.

    Notes
    -----
    With `v = z'Vz` for a standardised row `z`, residual `r = y - m'z` and weight `w`,
    the default update is `m += r Vz / (1/w + v)` and `V^-1 += w zz'` (its diagonal
    only, for a diagonal posterior). The sum of ``w r^2 / (1 + w v)`` over the rows is
    the sum of squared residuals of the final `m` plus the penalty of its coefficients.
    With a full covariance and without forgetting, the noise variance is the former sum
    alone, over the number of rows less the effective number of coefficients. These are
    the degrees of freedom of the intervals, at least a third of the rows and 1.5.
    Intervals are then not too narrow where coefficients are smaller than the prior
    expects. Otherwise the noise variance is the whole sum over the number of rows. The
    update is equation (8) of [1]_ with the quadratic loss kept exact, its inverse
    temperature one over twice the noise variance. With a full covariance and
    `standardize=False` the mean is that of ridge regression with
    ``alpha = prior_scale ** -2`` and an intercept that is not penalised.

    For counts the rate of a row is the exponential of a score N(a, v), with expectation
    exp(a + v / 2), which a row changes strongly if v is large. The step is therefore
    implicit in the variance too: the new posterior is the Gaussian that minimises b
    times the expected loss of the row plus the divergence from the posterior before.

    With a full covariance the scale of the prior follows the running standard
    deviations of the columns, and the posterior is otherwise exact: after one pass, it
    is that of batch Bayesian ridge regression on standardised features. Predictions do
    not extrapolate: a feature is clipped to the range of the rows so far. With one
    prior scale of 10 or more, all features are moved towards their means by the same
    share instead, if that changes the prediction less: differences of features are then
    kept. The standard deviation of a prediction includes what the line would add there.
    The covariance is kept positive definite by adding a bound on the rounding error to
    its diagonal at each row.

    With a diagonal covariance each row is standardised by moments that include the row
    itself, in ``cumulative_loss_`` and in `predict`, which does not change the moments.
    A standardised feature is then at most the root of the number of rows; near the data
    predictions are linear. If the variance of a feature has grown by a factor of
    sqrt(5), the earlier evidence is reduced by the new unit, and the means do not
    change.

    A single NGVI model has no regret bound: `certificate` exists for averages of
    several models, as by default, for "sva" and for "svb". With heavy-tailed features,
    a fixed rate of forgetting needs `clip`: see the user guide.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    Two features of very different scales, one row at a time:

    >>> import numpy as np
    >>> from skpacbayes import OnlineVIRegressor
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineVIRegressor(random_state=0)
    >>> for t in range(1000):
    ...     x = np.array([[rng.normal(20, 0.1), rng.normal(0, 5000)]])
    ...     y = np.array([3 * x[0, 0] + 0.001 * x[0, 1] + rng.normal(0, 0.5)])
    ...     model = model.partial_fit(x, y)
    >>> mean, std = model.predict([[20.1, 10_000.0]], return_std=True)
    >>> float(mean[0]), float(std[0])
    (70.2..., 0.5...)
    >>> model.predict_quantiles([[20.1, 10_000.0]], [0.05, 0.95]).round(1)
    array([[69.4, 71.1]])

    Poisson regression, with a rate that grows by half per unit of the feature:

    >>> X = rng.normal(15, 2, size=(2000, 1))
    >>> calls = rng.poisson(np.exp(0.4 * (X[:, 0] - 15)))
    >>> model = OnlineVIRegressor(loss="poisson", random_state=0).fit(X, calls)
    >>> model.predict([[14.0], [18.0]])
    array([0.6..., 3.3...])
    """

    _parameter_constraints: dict = {
        **OnlineLinearModel._parameter_constraints,
        "loss": [
            StrOptions({"squared_error", "absolute_error", "quantile", "poisson"})
        ],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "covariance": [StrOptions({"auto", "full", "diagonal"})],
        "prior_scale": [None, *OnlineLinearModel._parameter_constraints["prior_scale"]],
    }

    def __init__(
        self,
        method="ngvi",
        *,
        loss="squared_error",
        quantile=0.5,
        covariance="auto",
        inverse_temperature="auto",
        learning_rate="auto",
        prior_scale=None,
        forgetting=0.0,
        standardize=True,
        clip=None,
        fit_intercept=True,
        mean_bound=None,
        scale_bound=None,
        average=False,
        n_fourier="auto",
        random_state=None,
    ):
        self.method = method
        self.loss = loss
        self.quantile = quantile
        self.covariance = covariance
        self.inverse_temperature = inverse_temperature
        self.learning_rate = learning_rate
        self.prior_scale = prior_scale
        self.forgetting = forgetting
        self.standardize = standardize
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.mean_bound = mean_bound
        self.scale_bound = scale_bound
        self.average = average
        self.n_fourier = n_fourier
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
        self : OnlineVIRegressor
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
        self : OnlineVIRegressor
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150, or a parameter changed since the
            stream began.
        """
        return self._learn_more(X, y, sample_weight)

    def predict(self, X, return_std=False):
        """Predict the target, and optionally its standard deviation.

        The prediction is the mean, or a quantile with the absolute or the pinball loss.
        With ``loss="poisson"`` it is the exponential of the posterior mean of the log
        rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation, including noise. If the
            noise is estimated, this is the scale of the Student distribution of
            `predict_quantiles`, which is infinite until the noise can be estimated.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predicted means, in the units of y.
        std : ndarray of shape (n_samples,)
            Predictive standard deviations, in the units of y. Only returned if
            `return_std` is True.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        NotImplementedError
            If `return_std` without NGVI and the squared loss.
        """
        if return_std:
            means, deviations, _, _ = self._distributions(X)
            return means[:, 0], deviations
        X = self._rows(X)
        self._doubt_rows(X)
        means = np.empty((len(X), 1))
        predict_scores(X, *self._state.arguments, means)
        means = means[:, 0]
        return (
            np.exp(np.minimum(means, HIGHEST_SCORE))
            if self._learner == "counts"
            else means
        )

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Predict quantiles of the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        quantiles : float or array-like of shape (n_quantiles,), \
                default=(0.05, 0.5, 0.95)
            Levels in (0, 1). If the noise is given, the predictive distribution is
            Gaussian. If it is estimated, this is a Student distribution, unless the
            errors so far contradict it: then their own quantiles, relative to the
            standard deviations that were predicted, count the more, the more they do,
            but not for what a line would add beyond the range of the features.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Predicted quantiles, in the units of y.

        Raises
        ------
        NotImplementedError
            As in `predict` with `return_std=True`.
        ValueError
            If a level is not in (0, 1), or X is not finite or beyond 1e150.
        """
        levels = as_levels(quantiles, ends=False)
        means, deviations, clipped, degrees = self._distributions(X)
        standard, student = self._standard_quantiles(levels, degrees)
        found = np.empty((len(means), len(levels)))
        write_quantiles(means, deviations, clipped, standard, student, found)
        return found

    @as_fitted
    def certificate(self, X=None, y=None, sample_weight=None):
        """Bound the cumulative loss by the theorem for the method.

        For averages of several models, as by default: Theorem 1, a bound on the regret
        against the best of those that were not dropped.
        For "sva": Theorem 2 with the observed gradients instead of their bound, at the
        posterior with the smallest bound. For "svb" with `learning_rate="invsqrt"` and
        both bounds: the regret of the paper's schedule against the best fixed
        parameter, with Theorem 3 as published. The last two need all rows again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            All rows since the last `fit`, in order. Not needed for Theorem 1.
        y : array-like of shape (n_samples,), default=None
            Targets of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights with which the rows were learnt. Theorem 1 does not need them: its
            losses were multiplied by the weights while they were added up.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.

        Raises
        ------
        NotImplementedError
            If there is no theorem for the method, its learning rate or its bounds.
        ValueError
            If the rows are needed but not given, if they are not the rows that were
            learnt, in their order and with their weights, or if X is not finite or
            exceeds 1e150 in size.
        """
        check_is_fitted(self)
        return certify_linear(self, X, y, sample_weight)

    @property
    def cumulative_loss_(self):
        """Sum of the losses of predictions made before each row was learnt."""
        return self._cumulative_loss()

    @property
    def coef_(self):
        """Posterior mean of the coefficients, in units of y over units of X."""
        return self._raw_coefficients()[0][0]

    @property
    def intercept_(self):
        """Posterior mean of the intercept, in units of y."""
        return float(self._raw_coefficients()[1][0])

    @property
    def coef_std_(self):
        """Posterior standard deviations of the coefficients, in their units."""
        return self._raw_deviations()[0]

    @property
    @as_fitted
    def noise_variance_(self):
        """Variance of the noise, in squared units of y."""
        self._check_distribution(AttributeError)
        if not self._estimates_noise():
            return 0.5 / self.inverse_temperature
        return float(self._state.shares()[0] @ self._noise_variances())

    @as_fitted
    def _distributions(self, X):
        """Return means, standard deviations, shares of clipping, degrees of freedom.

        See `predict_deviations`; the means have shape (n_samples, 1). The degrees of
        freedom are 0 if Gaussian.
        """
        X = self._rows(X)
        self._check_distribution()
        self._doubt_rows(X)
        found = np.empty((len(X), 1)), np.empty(len(X)), np.empty(len(X))
        degrees = predict_deviations(X, *self._state.arguments, *found)
        return *found, degrees if self._estimates_noise() else 0.0

    def _standard_quantiles(self, levels, degrees):
        """Return quantiles of errors over their deviations, and those of a Student.

        They are computed anew if the levels differ from those last asked for, or a row
        was learnt since.
        """
        state = self._state
        asked, known = (state.n_steps, levels.tobytes()), state.kept_quantiles
        if known is None or known[0] != asked:
            with self._locks().changing:  # no row is half learnt
                asked = state.n_steps, levels.tobytes()
                found = self._quantiles_of_errors(state, levels, degrees)
                known = state.kept_quantiles = asked, found
        return known[1]

    def _quantiles_of_errors(self, state, levels, degrees):
        """Compute `_standard_quantiles`."""
        if degrees == 0.0:
            return (ndtri(levels),) * 2
        student = stdtrit(degrees, levels)
        standard = student.copy()
        best = state.best_expert
        numbers = state.numbers[best]
        noise, _ = noise_of(state.models[best], numbers, state.full)
        move_to_observed(numbers, noise, levels, standard)
        return standard, student

    def _has_unit(self):
        return self.loss != "poisson"

    def _most_weight(self):
        """Return the largest mean weight; none of counts, with weights of up to 1e10.

        Their weights are exposures, and implicit steps weigh rows as all rows together.
        """
        return math.inf if self.loss == "poisson" else super()._most_weight()

    def _information(self):
        """Return the information of the rows; of counts, at least their sum."""
        events = self._state.events[0] if self.loss == "poisson" else 0.0
        return max(self._total_weight(), events)

    def _target_matters(self):
        """Return whether an extreme rate may matter: not over a very short time."""
        state = self._state
        if self.loss != "poisson" or state.n_steps == 0:
            return True
        highest = -state.ends[-1, 1, END]
        ordinary = self._total_weight() / state.n_steps * highest
        return state.most_events[0] >= LIGHT * ordinary

    def _doubt_change(self):
        """Warn also of errors that grow."""
        found, state = super()._doubt_change(), self._state
        if not found and state.error_counts.size:
            best = state.best_expert
            alike = state.curved == state.curved[best]
            growth = state.error_growth[alike].max()  # 0 of a model that forgets
            size = state.own.stop if state.curved[best] else state.n_linear
            rate = state.forgetting_rates[best]
            warn_of_growing_errors(growth, state.n_steps, rate, size)
        return found

    def _doubt_fit(self, X, y, sample_weight):
        """Warn also of rates that are rougher than the noise of the counts."""
        if super()._doubt_fit(X, y, sample_weight):
            return True
        if self.loss != "poisson" or self._state.full or not self._doubts_fit():
            return False
        scores = np.empty((len(X), 1))
        predict_scores(X, *self._state.arguments, scores)
        weights = sample_weight if len(sample_weight) else np.ones(len(X))
        return warn_of_rough_rates(X, y, scores[:, 0], weights)

    def _responses(self, y):
        """Return the targets; with a loss of absolute errors, which are large ones."""
        if self._level() is None:
            return y[:, None]
        return (y > np.quantile(y, self._level()))[:, None].astype(float)

    def _unexplained(self, X, y):
        errors = super()._unexplained(X, y)
        return errors if self._level() is None else (errors > 0.0).astype(float)

    def _level(self):
        """Return the level of the quantile that is predicted; None for a mean."""
        return {"quantile": self.quantile, "absolute_error": 0.5}.get(self.loss)

    def _doubt_rows(self, X):
        """Warn if many rows are beyond the range of a feature, and that matters.

        It matters if a line would leave the interval of 95 % of the prediction, or
        double the rate of a count. Features that `clip` clips are not checked.
        """
        state = self._state
        bounded = state.full and state.shifts and self.clip is None
        if len(X) < BEYOND or not bounded:
            return
        X, own = X[:: -(-len(X) // LOOKED_AT)], self._of_features()
        low, high = state.ranges[:, own] + state.origin
        if (X.max(axis=0) <= high).all() and (X.min(axis=0) >= low).all():
            return
        best = state.best_expert
        if self.loss == "poisson":
            change = math.log(2.0)
        elif self._estimates_noise():
            change = 2.0 * math.sqrt(self._noise_variances()[best])
        else:
            change = 2.0 * math.sqrt(0.5 / self.inverse_temperature)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            reach = change / np.abs(self._means()[0, best, own])
        warn_of_extrapolation(X, low, high, reach, state.n_steps, self._columns())

    def _check_distribution(self, error=NotImplementedError):
        """Raise an error if there is no predictive distribution."""
        if not (self._natural() and self.loss == "squared_error"):
            raise error(
                "A predictive distribution needs method='ngvi' or 'ngvi_explicit' and "
                f"loss='squared_error', got method={self.method!r} and "
                f"loss={self.loss!r}. With loss='quantile' a model predicts a quantile."
            )

    def _checked(self, X, y, sample_weight, **options):
        """Return validated rows, targets and weights for the kernels."""
        X, y, weights = super()._checked(X, y, sample_weight, **options)
        if self.loss == "poisson" and y.min(initial=0.0) < 0.0:
            raise ValueError(f"loss='poisson' needs y >= 0, got {y.min():g}.")
        return X, y, weights

    def _check_options(self):
        super()._check_options()
        if self.loss != "quantile" and self.quantile != 0.5:
            raise ValueError(
                f"quantile={self.quantile!r} has no effect with loss={self.loss!r}: it "
                "needs loss='quantile'."
            )

    def _target_of_labels(self, y, sample_weight):
        return y
