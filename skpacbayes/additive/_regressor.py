"""Sparse additive regression by a Gibbs posterior."""

import math
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._base import as_fitted, fit_context, updates_state, warn_user
from .._chains import R_HAT_LIMIT
from .._compat import HasMethods, Interval, StrOptions
from .._kernels.standardize import LARGEST
from .._statistics import named_as
from .._stream import (
    CheckedScoreMixin,
    StreamingEstimator,
    as_count,
    checked_weights,
    counted,
    has_doubled,
    partial_fit_context,
)
from .._validation import as_numbers, is_plain, refuse_large
from ..certificates.additive import certify_regression
from ._base import POSITIVE, SCALE, _SparseAdditiveGibbs
from ._basis import AUTOMATIC, NAMED, usual_range, whole_range, widened
from ._doubts import warn_of_doubts, warn_of_fit, warn_of_weights
from ._missing_effects import pooled_copies
from ._regressor_chains import sample
from ._regressor_start import greedy_model, heavy_tailed
from ._regressor_stream import Rows, Stream, sums_of
from ._residuals import left_out_scores, needed_functions, spread_rows
from ._selection import DETECT, MOST_DETECTED, NO_STRUCTURE, PartsOfFit, _Interactions

FEW_ROWS = 1000  # a stream keeps this many rows, or one for each function, if more
FEW_FUNCTIONS = 512  # largest number for which `fit` sums products of many rows
# The whole range is used if the residual variance is a tenth smaller and the BIC
# smaller by 10.
MIN_LOG_GAIN, LEAST_GAIN = -math.log(0.9), 10.0
LEAST_TRIED = 0.1  # probability from which more functions are tried
MOST_VALUES = 2**24  # of functions at rows, of which more are tried
PAIRS_NEED = "gaussian", "collapsed"  # slab and sampler that allow interactions


class SparseAdditiveGibbsRegressor(
    CheckedScoreMixin,
    RegressorMixin,
    _Interactions,
    _SparseAdditiveGibbs,
    StreamingEstimator,
):
    """Additive regression that selects its variables, by a Gibbs posterior.

    The prediction is a sum of effects of a few variables. Each effect is a combination
    of the first functions of a basis. Markov chains draw the variables, and the number
    of functions of each, from their posterior [1]_, with the coefficients integrated
    out. The memory of a stream is bounded: up to max(1000, n_features x max_order) rows
    are kept, and then the matrix of the sums of their products, of (n_features x
    max_order)^2 numbers.

    Parameters
    ----------
    basis : str or transformer, default="legendre"
        Functions of a variable mapped to [-1, 1]: "legendre" (polynomials, for smooth
        effects), "cosine" (half frequencies, for rough effects), "fourier" (full
        frequencies, for periodic effects), "spline" (from smooth to rough), or a
        transformer of one column. "auto" chooses "legendre", "cosine" or "spline" by
        the BIC of a greedy model; `basis_` is its choice.
    max_order : int or "auto", default="auto"
        Largest number of functions of each variable, without the indicator of missing
        values. "auto": 8, and `fit` learns again with 16 or 32 where a selected
        variable may need them (see Notes). `fit` warns where more are needed.
    feature_range : tuple (low, high), default=None
        Range that is mapped to [-1, 1]: numbers, or arrays of shape (n_features,).
        None: the range of the rows of `fit`, or of the first rows of a stream, cut ten
        interquartile ranges beyond the quartiles; or the whole range, as in the paper,
        if the residual variance of a greedy model is then a tenth smaller and its BIC
        smaller by 10. With `slab="gaussian"` it is widened at both ends by its length
        divided by the number of rows. Outside of the range, effects are lines as far as
        half of the range, and then constant; under `slab="l1ball"`, and for functions
        of "fourier" and of transformers, they are constant.
    categorical_features : array-like of int, str or bool, default=None
        Columns or names of categorical features, or a mask; the values are codes of
        categories. Each of the `max_order` most frequent categories has its own effect,
        and all others share one; categories not seen in `fit` count as missing.
    beta : float, default=0.5
        Each function multiplies the prior of a model by beta: a smaller value selects
        fewer variables.
    slab : {"gaussian", "l1ball"}, default="gaussian"
        Prior of the coefficients: normal, or uniform on an l1 ball (the paper's).
    slab_scale : "auto" or float, default="auto"
        Prior standard deviation of a coefficient under "gaussian", in units of y; the
        k-th function of a variable has standard deviation 1 / k. "auto": the standard
        deviation of y, or a smaller value if there are many weak effects (see Notes).
        If the noise variance is integrated out, the slab is proportional to the
        standard deviation of the noise, and `slab_scale` is its value at the noise
        variance estimated by short runs.
    radius : float, default=None
        C, the radius of the ball, for functions of absolute value at most 1. None: the
        largest distance of y from its mean.
    inverse_temperature : "likelihood", "pac" or float, default="likelihood"
        lambda, the weight of the mean squared error. "likelihood": n / (2
        noise_variance), which gives the posterior under normal noise. "pac": n gamma /
        (4 noise_variance + 4 C^2), as in Theorem 5.2 of [1]_.
    gamma : float, default=0.5
        Factor of "pac"; see `inverse_temperature`.
    noise_variance : "auto" or float, default="auto"
        Variance of the noise. "auto" integrates it out if there are at least three rows
        for each variable, and estimates it by short runs if there are fewer, or with
        another `slab`, `sampler` or `inverse_temperature` than the default. It weights
        rows as under Student's t noise if that fits clearly better (see Notes).
    sampler : {"collapsed", "carlin_chib"}, default="collapsed"
        "carlin_chib" is the paper's sampler, corrected. It is far slower, and there for
        comparison.
    n_iter : int, default=3000
        Number of moves of each chain that are kept.
    burn_in : int, default=1000
        Number of moves of each chain that are dropped before `n_iter` are kept.
    n_chains : int, default=2
        Number of chains. The first starts at a greedy model, the others at the empty
        model, or, with many weak effects or `interactions`, at all variables.
    max_active : int, default=None
        Largest number of variables in a model, including pairs. None: 50.
    interactions : {"detect", "auto", None} or list of pairs of int or str, \
            default="detect"
        Pairs of variables whose joint effect may differ from the sum of their own, by
        column or name. A pair is in a model only if both variables are. "auto": all
        pairs of up to 20 variables; with more variables, the pairs of the 20 most
        probable ones in a run without interactions. "detect": the same, if residuals of
        a fit without interactions depend on two variables jointly, or if a random
        forest predicts them in rows that its trees have not seen, and if the fit with
        them then predicts rows that are left out clearly better; otherwise none.
        "detect" finds none with more than 20,000 rows, with a given `noise_variance`,
        `slab_scale` or `inverse_temperature`, and where chains disagree. Interactions
        need ``slab="gaussian"`` and ``sampler="collapsed"``. `partial_fit` detects
        none, and is not available with "auto" or a list; memory grows with the number
        of rows, variables and pairs.
    prediction : {"mean", "randomized", "map"}, default="mean"
        Predict by the posterior mean, by one draw from the posterior, or by the mean
        within the most probable model.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors. It is the only
        parameter that may change within a stream.

    Attributes
    ----------
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each variable is in the model; 0 for a constant variable.
    feature_importances_ : ndarray of shape (n_features,)
        Equal to `inclusion_probabilities_`; used by `SelectFromModel`.
    inclusion_errors_ : ndarray of shape (n_features,)
        Monte Carlo standard errors of these probabilities.
    expected_orders_ : ndarray of shape (n_features,)
        Posterior mean of the number of functions of each variable.
    coefficients_ : ndarray of shape (n_features, n_functions)
        Coefficients of the functions, as `prediction` says. The functions are
        orthogonal over the rows of the fit; the k-th has standard deviation 1 / k or,
        under "l1ball", largest absolute value 1. n_functions is `max_order`, or one
        more if a variable has missing values. With `interactions`, those of `pairs_`
        are in further rows.
    intercept_ : float
        Mean of y: the prediction where all effects are 0.
    models_ : ndarray of shape (n_models, n_features)
        Order (number of functions) of each variable in each model visited, the most
        frequent model first; with `interactions`, those of `pairs_` in further columns.
    model_weights_ : ndarray of shape (n_models,)
        Relative frequency of each model among the visits.
    pairs_ : ndarray of int of shape (n_pairs, 2)
        Pairs of variables that may interact; empty if there are none.
    pair_probabilities_ : ndarray of shape (n_pairs,)
        Probability that each of `pairs_` is in the model.
    slab_scale_ : float
        Prior standard deviation of a coefficient, given or chosen.
    noise_variance_ : float
        Variance of the noise: given, estimated, or its posterior mean if it is
        integrated out.
    noise_freedom_ : float
        Degrees of freedom of the noise; inf if it is normal.
    inverse_temperature_ : float
        lambda; with "likelihood", its value at `noise_variance_`.
    acceptance_rate_ : float
        Share of the accepted proposals to add or to delete a variable.
    r_hat_ : float
        Largest R-hat of the chains: of the log posterior, and of the presence of each
        term whose inclusion probability is between 0.05 and 0.95. Near 1 if the chains
        agree.
    basis_ : str or transformer
        The basis used.
    feature_ranges_ : ndarray of shape (n_features, 2)
        Ranges that are mapped to [-1, 1].
    n_samples_seen_ : int or float
        Number of rows, or their total weight, since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    skpacbayes.plotting.PartialEffectsDisplay : Plots the effects.
    sklearn.linear_model.LassoCV : Selects many irrelevant variables.
    sklearn.ensemble.HistGradientBoostingRegressor : Has no selection of variables.

    Notes
    -----
    Let R_n be the mean squared error, and m a model with orders m_1, ..., m_d, s of
    them positive. The posterior of m and of its coefficients theta is proportional to

        exp(-lambda R_n(theta)) binom(d, s)^-1 beta^(m_1 + ... + m_d) p(theta | m).

    The normal slab favours smooth effects: the contribution of the k-th function has a
    standard deviation proportional to 1 / k, as for a path of a Brownian motion. Given
    m, theta is normal, and is integrated out exactly. The moves add, delete or exchange
    a variable, chosen among all with the exact weights of all orders, or draw one order
    anew. With the l1 ball, coefficients are proposed from a normal distribution, and
    accepted or rejected. Algorithm 7 as printed in [1]_ does not leave the posterior
    invariant; "carlin_chib" uses an acceptance ratio that does.

    Where ``noise_variance`` is "auto", with the defaults of ``slab``, ``sampler`` and
    ``inverse_temperature`` and three rows or more for each variable (and pair), the
    variance s^2 of the noise has the prior 1 / s^2 and is integrated out: lambda is
    then random, and with S(m) the penalized residual sum of squares a model's
    likelihood is S(m)^(-(n - 1) / 2) rather than exp(-S(m) / (2 s^2)) [4]_. The prior
    standard deviation of coefficients is a multiple of s, set by short runs so that it
    equals `slab_scale_`.

    A wide slab suits few, clear effects. If ``slab_scale`` and ``noise_variance`` are
    "auto" under "likelihood", the evidence of the models that the short runs visit is
    compared with that of the linear regression on all variables with normal
    coefficients. If the latter is more than exp(8) n times as large, its variances of
    coefficients and noise are used, and most variables are in the model. With more than
    `max_active` variables, `fit` warns instead.

    Under normal noise a few outliers can hide all effects. If ``noise_variance`` is
    "auto", with the defaults of ``slab``, ``sampler`` and ``inverse_temperature``,
    greedy models with normal and with Student's t noise are compared by their BIC.
    Student's t noise is used if it is more than 20 sqrt(n) times as probable, its
    residuals show no bias, and they are not explained better by normal noise whose log
    variance is linear in the prediction, as for counts. Each row is then weighted by
    its expected precision under Student's t noise with `noise_freedom_` degrees of
    freedom [3]_, and the posterior is that of the weighted rows. If most outliers are
    on one side, `fit` warns instead. Rows that a stream does not keep are not weighted.

    A variable with missing values (NaN) has one more function, its first: the indicator
    that it is missing. If a variable is missing in new rows only, its effect there is
    0, the mean effect. The functions of a categorical variable are the indicators of
    its categories, the most frequent first.

    The functions of a pair are the first `max_order` products of the functions of its
    variables, minus their projections on functions of one of the two; the product of
    the a-th and the b-th has standard deviation 1 / (a b). The prior of a model with s
    variables and t pairs of them has a further factor binom(s (s - 1) / 2, t)^-1, and
    beta for each function. The greedy model adds a pair together with its variables,
    and the other chains start at all variables of the pairs, so that an interaction of
    two variables without single effects is found. At new rows a function of a pair is
    clipped to the range of its values at the rows of `fit`.

    With ``max_order="auto"``, if scales are not given, `fit` computes the posterior of
    the order of each selected variable with twice as many functions, given the
    functions of the others. If orders above 8 have a probability of 0.1 or more, and
    random signs of the residuals give less evidence, it learns again with twice or four
    times as many functions of all variables, and keeps these if chains agree and the
    squared errors of rows that are left out are not larger. A stream goes on with this
    number; one that begins with `partial_fit` has 8.

    The intercept has a flat prior. The time of a move is proportional to n_features x
    max_order and to the square of the number of functions in the model.

    References
    ----------
    .. [1] Chopin, N., Gadat, S., Guedj, B., Guyader, A. and Vernet, E. (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys 51, section 5.
    .. [2] Guedj, B. and Alquier, P. (2013). PAC-Bayesian estimation and prediction in
       sparse additive models. Electronic Journal of Statistics 7.
    .. [3] Lange, K. L., Little, R. J. A. and Taylor, J. M. G. (1989). Robust
       statistical modeling using the t distribution. JASA 84.
    .. [4] Smith, M. and Kohn, R. (1996). Nonparametric regression using Bayesian
       variable selection. Journal of Econometrics 75.

    Examples
    --------
    Three of a hundred variables matter, with two hundred rows:

    >>> import numpy as np
    >>> from skpacbayes.additive import SparseAdditiveGibbsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 100))
    >>> y = np.sin(3 * X[:, 5]) + X[:, 30] ** 2 + X[:, 70] + 0.3 * rng.normal(size=200)
    >>> model = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
    >>> model.get_support(indices=True)
    array([ 5, 30, 70])
    >>> model.models_[0][[5, 30, 70]]
    array([3, 2, 1], dtype=int16)
    >>> effect, std = model.partial_effects(X[:3], 70)
    >>> bool((abs(effect - X[:3, 70]) < 3 * std + 0.1).all())
    True

    Two of ten variables interact:

    >>> few = X[:, :10]
    >>> y = few[:, 1] + 2 * few[:, 1] * few[:, 4] + 0.3 * rng.normal(size=200)
    >>> model = SparseAdditiveGibbsRegressor(interactions="auto", random_state=0)
    >>> model.fit(few, y).pairs_[model.pair_probabilities_ > 0.5]
    array([[1, 4]])
    """

    _parameter_constraints: dict = {
        **_SparseAdditiveGibbs._parameter_constraints,
        "max_order": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "basis": [StrOptions({"auto", *NAMED}), HasMethods(["fit", "transform"])],
        "slab": [StrOptions({"gaussian", "l1ball"})],
        "slab_scale": [StrOptions({"auto"}), SCALE],
        "radius": [None, SCALE],
        "inverse_temperature": [StrOptions({"likelihood", "pac"}), POSITIVE],
        "gamma": [Interval(Real, 0, 1, closed="neither")],
        "noise_variance": [StrOptions({"auto"}), POSITIVE],
        "sampler": [StrOptions({"collapsed", "carlin_chib"})],
        **_Interactions._parameter_constraints,
    }
    _may_change = ("n_jobs",)

    def __init__(
        self,
        basis="legendre",
        *,
        max_order="auto",
        feature_range=None,
        categorical_features=None,
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
        interactions=DETECT,
        prediction="mean",
        random_state=None,
        n_jobs=None,
    ):
        self.basis = basis
        self.max_order = max_order
        self.feature_range = feature_range
        self.categorical_features = categorical_features
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
        self.interactions = interactions
        self.prediction = prediction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Fit the model to rows, forgetting all earlier ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. None: 1 each.

        Returns
        -------
        self : SparseAdditiveGibbsRegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If X has infinite values or y is not finite, if a target is larger than
            1e150 in size or y varies by less than 1e-140, if fewer than two rows have a
            positive weight, or if two parameters conflict.
        """
        rows = self._checked(X, y, sample_weight, reset=True, least=2)
        self._begin(rows)
        rng = np.random.default_rng(self._seed)
        problem = self._problem()  # the basis over the rows
        if self._has_given_pairs:
            pairs = self._pairs_of_short_run(problem, rng)
            problem = self._paired(problem, rows, pairs)
        parts = PartsOfFit(self._parts, self._detects or self.max_order == "auto")
        # The prior, the chains and the posterior.
        self._computed = self._learned(problem, None, rng, parts)
        another = parts.has_another()
        given = self.slab_scale, self.noise_variance, self.inverse_temperature
        usual = given == ("auto", "auto", "likelihood")
        predict = self._decision if usual else None
        learned = rows.X, rows.y, rows.weights
        if another and usual and self.max_order == "auto":
            problem = self._with_more_functions(problem, rows, rng)
        left = self._structure_left(learned, self._mean) if usual else NO_STRUCTURE
        few = self._detects and self._allows_pairs and len(rows) <= MOST_DETECTED
        if another and left.suggests_pairs and few:
            paired = self._better_with_pairs(problem, rows, left, rng)
            if paired is not None:
                problem, self._detected = paired, True
                left = self._structure_left(learned, self._mean)
        parts.end()
        found, products = self._computed, problem.gram.among
        noise = found.noise_variance
        warn_of_fit(
            self, learned, sample_weight, products, predict, noise=noise, left=left
        )
        return self

    @available_if(sums_of("partial_fit"))
    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Update the model with more rows; the chains run when results are needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. None: 1 each.

        Returns
        -------
        self : object
            The regressor.

        Raises
        ------
        ValueError
            If X has infinite values, y is not finite, X has another number of features,
            or a variable is missing that was never missing in the first rows. The
            regressor is then unchanged.
        """
        streaming = self._streaming()
        rows = self._checked(X, y, sample_weight, reset=not streaming, least=1)
        if streaming and not len(rows):
            return None
        self._drop_detected("partial_fit")
        if not streaming:
            self._begin(Rows.none(self.n_features_in_))
        vars(self).update(self._extended(rows))
        vars(self).pop("_computed", None)
        return self

    @available_if(sums_of("sufficient_statistics"))
    @as_fitted
    def sufficient_statistics(self, X, y, sample_weight=None):
        """Return sums of products of 1, y and all functions over rows.

        The sums of several sets of rows can be added and passed to `absorb`, if all of
        them come from copies of one regressor that has seen some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            The sums, with n_functions = n_features x max_order. The first entry is the
            total weight. The sums of frames carry the names of the columns.
        """
        check_is_fitted(self)
        rows = self._checked(X, y, sample_weight, reset=False, least=0)
        sums = self._stream.summed(self._dictionary).sums
        return named_as(sums.products(rows), X)

    @available_if(sums_of("absorb"))
    @updates_state
    def absorb(self, statistics, memory=1.0):
        """Update the model with sums of products of other rows.

        Parameters
        ----------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            Result of `sufficient_statistics`, or a sum of such results.
        memory : float in [0, 1], default=1.0
            Factor of the weight of all rows so far: 1 keeps them, 0 drops them. With
            1, the statistics of no rows change nothing.

        Returns
        -------
        self : object
            The regressor.

        Raises
        ------
        ValueError
            If the statistics have another shape, cannot be sums of products of rows,
            have no weight or are of columns with other names, or if `memory` is outside
            [0, 1]. A different order of columns without names cannot be detected.
        """
        check_is_fitted(self)
        self._check_names_of(statistics)
        stream = self._stream.summed(self._dictionary)
        statistics = as_numbers("statistics", statistics, ensure_all_finite=False)
        stream.sums.check(statistics)
        check_share("memory", memory, ends=True)
        if memory == 1 and not statistics.any():
            return None
        weight = memory * self.n_samples_seen_ + statistics[0, 0]
        if not weight > 0:
            raise ValueError("statistics and memory must leave a positive weight.")
        self._drop_detected("absorb")
        self._stream = stream.absorbed(statistics, memory)
        self.n_samples_seen_ = as_count(weight)
        vars(self).pop("_computed", None)
        return self

    def predict(self, X, return_std=False):
        """Predict the mean of y, and optionally its standard deviation.

        Outside of the range of a feature, its effect is a line as far as half of the
        range, and constant from there on; see `feature_range`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation of y: that of the
            posterior of the function and of the noise. If the noise variance was
            estimated by short runs, the standard deviation is multiplied by sqrt(v / (v
            - 2)) for its error, with v the number of rows minus 1 and minus the mean
            number of functions in the model (v - 2 is at least 0.5). Beyond the range
            of a selected variable, what the steepest of a few lines through the end of
            its effect would add counts as a deviation, and so does the distance of the
            effect from the line furthest from it. If a variable that was never missing
            in `fit` is missing, or has a new category, the standard deviation of its
            effect over the rows of `fit` is included.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Standard deviations, only if `return_std`.
        """
        X = self._new_rows(X)
        mean = self._decision(X)
        if not return_std:
            return mean
        found = self._answer()
        variance = self.noise_variance_ + found.intercept_variance + found.variance(X)
        within = np.sqrt(found.variance_factor * variance)
        return mean, np.hypot(within, np.hypot(self._beyond(X), self._unknown(X)))

    @as_fitted
    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Bound the risk, the mean squared error on new rows.

        The bound holds for coefficients drawn from the posterior, in the paper's
        setting: `inverse_temperature="pac"` and `slab="l1ball"`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows on which the risk is computed. None: the rows of the fit.
        y : array-like of shape (n_samples,), default=None
            Targets of the new rows.
        confidence : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        certificate : Certificate
            The observed risk, and the bound; see
            :func:`skpacbayes.certificates.additive_risk_terms`.

        Raises
        ------
        NotImplementedError
            In any other setting.
        """
        check_share("confidence", confidence)
        if self.inverse_temperature != "pac" or self.slab != "l1ball":
            raise NotImplementedError(
                "certificate needs inverse_temperature='pac' and slab='l1ball', got "
                f"inverse_temperature={self.inverse_temperature!r} and "
                f"slab={self.slab!r}."
            )
        found = self._answer()
        problem = self._stream.problem(self._dictionary, bounded=True)
        units = self._stream.unit_weights
        certificate = certify_regression(self, found, problem, units, confidence)
        if X is None:
            return certificate
        rows = self._checked(X, y, None, reset=False, least=1)
        errors = (rows.y - self._decision(rows.X)) ** 2 + found.variance(rows.X)
        return replace(certificate, observed=float(errors.mean()))

    @property
    def basis_(self):
        """The basis used."""
        return self._answer().dictionary.basis

    @property
    def slab_scale_(self):
        """Prior standard deviation of a coefficient, given or chosen."""
        return float(self._answer().slab_scale)

    @property
    def noise_variance_(self):
        """Variance of the noise, given or estimated."""
        found = self._answer()
        return float(max(found.noise_variance, found.residual_variance))

    @property
    def noise_freedom_(self):
        """Degrees of freedom of the noise; inf if it is normal."""
        return float(self._answer().freedom)

    # Validation of rows, and the stream.

    def _checked(self, X, y, sample_weight, *, reset, least):
        """Validate rows; return those of positive weight."""
        X, y = self._validated(X, y, reset=reset, least=least, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        refuse_large("y", y)
        weights = checked_weights(sample_weight, X, some=least > 1)
        present = weights > 0
        if np.count_nonzero(present) < least > 1:
            raise ValueError(
                "sample_weight is positive for "
                f"{np.count_nonzero(present)} rows, while {least} are required."
            )
        return Rows.of(X[present], y[present], weights[present])

    def _learn_at_once(self, X, y, sample_weight=None):
        rows = self._plain(X)
        detected = self._has_given_pairs or "_detected" in vars(self)
        if rows is None or sample_weight is not None or detected:
            return False
        if type(y) is list:
            y = np.array(y)
        if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "iuf":
            return False
        y = np.ascontiguousarray(y, dtype=np.float64)
        if not (is_plain(y, (len(rows),)) and np.abs(y).max() <= LARGEST):
            return False
        self._publish(**self._extended(Rows.of(rows, y, np.ones(len(y)))))
        return True

    def _begin(self, rows):
        """Start a new stream with rows."""
        if self.slab == "l1ball" and self.sampler == "carlin_chib":
            raise ValueError(
                f"sampler={self.sampler!r} needs slab='gaussian', got "
                f"slab={self.slab!r}."
            )
        if self._has_given_pairs and not self._allows_pairs:
            raise ValueError(
                f"interactions={self.interactions!r} needs slab='gaussian' and "
                f"sampler='collapsed', got slab={self.slab!r} and "
                f"sampler={self.sampler!r}."
            )
        self._check_range()
        self._seed = self._draw_seed()
        self.n_samples_seen_ = counted(0, rows.weights)
        self._start_stream(rows, self._first_order)

    def _start_stream(self, rows, order):
        """Start a stream whose variables have up to `order` functions."""
        self._order = order
        n_functions = rows.X.shape[1] * order
        self._stream = Stream(rows, max(FEW_ROWS, n_functions))
        many = len(rows) > self._stream.n_kept and n_functions <= FEW_FUNCTIONS
        if many and not self._has_given_pairs:
            self._stream = self._stream.summed(self._dictionary)

    def _extended(self, rows):
        """Return the attributes of the stream with more rows.

        The rows are checked for codes of missing values each time their number has
        doubled.
        """
        before = self.n_samples_seen_
        seen = counted(before, rows.weights)
        if before == 0 or has_doubled(before, seen):
            self._warn_of_sentinels(rows.X)
        return {
            "_stream": self._stream.extended(rows, self._dictionary, self._run),
            "n_samples_seen_": seen,
        }

    def _bounded(self):
        return self.slab == "l1ball"

    def _dictionary(self, rows):
        """Return functions on the usual range, or on the whole if clearly better."""
        given = self._given_range()
        if given is not None:
            return self._best(given, rows)
        usual = usual_range(rows.X, rows.weights)
        if self._bounded():
            return self._best(usual, rows)
        whole, weight = whole_range(rows.X), rows.weights.sum()
        usual, whole = widened(*usual, weight), widened(*whole, weight)
        if np.array_equal(usual, whole):
            return self._best(usual, rows)
        usual, whole = self._best(usual, rows), self._best(whole, rows)
        price = MIN_LOG_GAIN * weight + LEAST_GAIN
        gain = self._criterion(usual, rows) - self._criterion(whole, rows)
        return whole if gain > price else usual

    def _best(self, ends, rows):
        """Return functions on a range: of the basis whose criterion is smallest."""
        automatic = isinstance(self.basis, str) and self.basis == "auto"
        bases = AUTOMATIC if automatic else [self.basis]
        how = rows, self._bounded(), self._order
        found = [self._on(ends, basis, *how) for basis in bases]
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda each: self._criterion(each, rows))

    def _criterion(self, dictionary, rows):
        """Return the criterion of the greedy model with a dictionary."""
        problem = rows.problem(dictionary, self._bounded())
        reader = problem.gram.reader()
        return greedy_model(problem, reader, self._most_variables())[-1]

    def _with_more_functions(self, problem, rows, rng):
        """Learn with more functions where selected variables may need them.

        They are kept if chains agree, and if rows that are left out of the fit are not
        predicted worse: the posterior of the order is already that of all functions.
        Returns the problem of the fit that is kept.
        """
        found, learned = self._computed, (rows.X, rows.y[:, None], rows.weights)
        few = not (found.full or found.n_variables_needed or problem.dictionary.pooled)
        if not few or found.r_hat > R_HAT_LIMIT:
            return problem
        tested = spread_rows(*learned, self._mean, False)
        if tested is None:
            return problem
        order = needed_functions(
            *(tested, found, self._categorical()),
            noise=found.noise_variance,
            beta=self.beta,
            least=LEAST_TRIED,
        ).max_order
        if not 0 < rows.X.size * order <= MOST_VALUES:
            return problem
        before, start = self._left_out_squares(rows), (self._order, self._stream)
        self._start_stream(rows, order)
        larger = self._problem()
        if problem.pairs is not None:
            larger = self._paired(larger, rows, problem.pairs.pairs)
        self._computed = self._learned(larger, None, rng, range)
        agree = self._computed.r_hat <= R_HAT_LIMIT
        if agree and self._left_out_squares(rows).sum() <= before.sum():
            return larger
        self._computed, (self._order, self._stream) = found, start
        return problem

    def __sklearn_is_fitted__(self):
        return self._streaming() and self.n_samples_seen_ > 0

    # Computation of the posterior.

    def _compute(self):
        """Run the chains on all rows so far."""
        rng = np.random.default_rng(self._seed)
        problem = self._problem()
        found = self._learned(problem, self._stream.ends, rng, range)
        if self._stream.rows is not None:
            warn_of_weights(self._stream.rows.weights)
        warn_of_doubts(found, self.n_features_in_, problem.gram.among)
        return found

    def _problem(self):
        """Return the regression on all rows so far."""
        problem = self._stream.problem(self._dictionary, self._bounded())
        return self._weighed(problem, self._stream.rows)

    def _weighed(self, problem, rows):
        """Weight rows as under Student's t noise if the tails are heavy."""
        if rows is None or not self._learns_noise():
            return problem
        return heavy_tailed(rows, problem, self._most_variables())

    def _learns_noise(self):
        """Return whether the noise is unknown, and no other parameter depends on it."""
        given = self.noise_variance, self.slab, self.inverse_temperature, self.sampler
        return given == ("auto", "gaussian", "likelihood", "collapsed")

    def _run(self, sums, starts, n_rows):
        """Run the chains within a stream; return their final models."""
        rng = np.random.default_rng([self._seed, n_rows])
        problem = sums.problem(self._bounded())
        return sample(self, problem, rng, starts, range)[1]

    @property
    def _allows_pairs(self):
        """Whether the slab and the sampler allow interactions."""
        return (self.slab, self.sampler) == PAIRS_NEED

    def _drop_detected(self, method):
        """Warn if a stream goes on after a fit that detected interactions."""
        if vars(self).pop("_detected", False):
            warn_user(
                f"{method} drops the interactions that fit has detected: sums of "
                "products of functions of single variables do not determine them."
            )

    def _pairs_of_short_run(self, problem, rng):
        """Return the given pairs, or those of the most probable variables."""

        def probabilities():
            found, _ = sample(self, problem, rng.spawn(1)[0], None, range)
            return found.posterior.inclusion()[:, 0]

        return self._candidates(problem.functions.orders, probabilities)

    def _paired(self, problem, rows, pairs):
        """Add functions of pairs of variables, on the rows of the fit."""
        problem = rows.problem(problem.dictionary, False, pairs)
        return self._weighed(problem, rows)

    def _better_with_pairs(self, problem, rows, left, rng):
        """Learn interactions, too; keep them if they predict better, and chains agree.

        They do if the squares of errors of rows that are left out are smaller, by more
        than two standard errors. Returns the problem with pairs, or None.
        """
        alone, before = self._computed, self._left_out_squares(rows)
        orders = problem.functions.orders
        pairs = self._candidates(orders, lambda: self._ranking(left))
        paired = self._paired(problem, rows, pairs)
        self._computed = self._learned(paired, None, rng, range)
        if self._predicts_better(self._left_out_squares(rows), before):
            return paired
        self._computed = alone
        return None

    def _mean(self, X):
        """Return the posterior mean at validated rows, whatever `prediction` is."""
        found = self._computed
        return found._replace(coefficients=found.posterior.mean()).decision(X)

    def _left_out_squares(self, rows):
        """Return weights times squared errors of rows, each left out with its copies.

        Errors are divided by the largest target, as squares of large ones overflow.
        """
        kept, weights = pooled_copies(rows.X, rows.y[:, None], rows.weights)
        X, y, found = rows.X[kept], rows.y[kept], self._computed
        means = self._mean(X)
        means = left_out_scores(
            *(X, means, y - means),
            *(np.ones(len(X)), weights, found, found.noise_variance),
        )
        return weights * np.square((y - means) / abs(y).max())

    def _learned(self, problem, starts, rng, tasks):
        """Run the chains; return the results for predictions."""
        found, _ = sample(self, problem, rng, starts, tasks)
        return found._replace(coefficients=self._chosen(found.posterior, rng))

    def _chosen(self, posterior, rng):
        """Return the coefficients for predictions."""
        if self.prediction == "mean":
            return posterior.mean()
        if self.prediction == "map":
            return posterior.most_probable()
        return posterior.draw(rng)
