"""Sparse additive Poisson regression by a Gibbs posterior."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_consistent_length

from .._base import as_fitted, fit_context, warn_user
from .._compat import StrOptions
from .._stream import checked_weights
from .._validation import as_numbers
from ._base import LARGEST_TOTAL, SCALE, Rows, _DrawnAdditiveGibbs, check_total
from ._doubts import warn_of_dispersion, warn_of_fit
from ._missing_effects import pooled_copies
from ._rated_chain import MOVES, RatedChain, polya_gamma
from ._residuals import left_out_scores
from ._selection import DETECT, MOST_DETECTED, NO_STRUCTURE, PartsOfFit, _Interactions

# Largest number of short runs that estimate the dispersion, and of sweeps of each, at
# most those of the chains; change of the log inverse temperature that ends the runs.
MOST_PILOTS, PILOT_SWEEPS, SETTLED = 6, 100, 0.1
# Of the chain.
# Least r / m. A larger value makes the two likelihoods closer, but the chain slower,
# since rates of larger shapes depend more strongly on the scores.
LEAST_RATIO = 3.0
# Least total mean count about which the likelihood is expanded: about a smaller one,
# the expansion would not make larger means improbable.
LEAST_TOTAL = 1.0
FEWEST, MOST = 0.25, 8.0  # range of shapes drawn as integers, which is faster
LARGEST_LOG = 600.0  # log means up to this do not overflow, times weights
N_SETTLING = 20  # uncorrected sweeps that find the means to expand about
# Of the dispersion.
WHOLE = 1e-6  # relative tolerance within which a count is an integer
LEAST_GAIN = 5.0  # of log likelihood, of a dispersion that grows with the mean
# Of the dispersion minus 1 of a mean count, the largest relative to one plus this mean.
LEAST_EXCESS, MOST_EXCESS = 1e-3, 1e4
SMALLEST_MEAN = 1e-290  # whose inverse is finite


class SparseAdditiveGibbsPoissonRegressor(
    RegressorMixin, _Interactions, _DrawnAdditiveGibbs
):
    """Additive Poisson regression that selects its variables, by a Gibbs posterior.

    The logarithm of the mean count is a sum of functions of a few variables. Markov
    chains draw the variables, the order of each function and its coefficients from
    their posterior. Predictions are averages over these draws, and each variable has a
    probability of being in the model.

    Counts of different exposures (years, inhabitants, tries) are given as in
    scikit-learn: `y` is the count divided by the exposure, and `sample_weight` is the
    exposure.

    Parameters
    ----------
    basis : {"legendre", "cosine", "fourier", "spline"} or transformer, \
            default="legendre"
        Functions of one variable, from smooth to rough. A model of order k in a
        variable uses its first k functions. Legendre polynomials fit smooth effects
        best, cosines rough ones. A transformer of one column may be given instead.
    max_order : int, default=8
        Largest number of functions of each variable.
    feature_range : tuple of two floats or of two array-likes, default=None
        Ends of the range of each feature, mapped to [-1, 1]; None: those of the rows of
        `fit`, at most ten interquartile ranges beyond the quartiles. Outside of the
        range, effects are lines as far as half of the range, and then constant;
        functions of "fourier" and of transformers are constant.
    categorical_features : array-like of int, str or bool, default=None
        Columns or names of categorical features, or a mask; the values are codes of
        categories. Each of the `max_order` most frequent categories has its own effect,
        and all others share one; categories not seen in `fit` count as missing.
    beta : float in (0, 1), default=0.5
        Each function multiplies the prior of a model by beta: a smaller value selects
        fewer variables.
    slab_scale : float, default=1.0
        Prior standard deviation of a coefficient, on the scale of the log mean. The
        k-th function of a variable has standard deviation 1 / k.
    inverse_temperature : {"auto", "likelihood"} or float, default="auto"
        lambda, the weight of the mean of half the Poisson deviance. "likelihood": the
        total weight of the rows, which gives the posterior of Poisson regression.
        "auto": the total weight over the dispersion, if that is above 1, or a weight
        for each row, if the dispersion grows with the mean (see Notes).
    n_iter : int, default=500
        Number of iterations of each chain that are kept. Each makes twenty moves
        between models, and then draws coefficients.
    burn_in : int, default=100
        Number of iterations of each chain that are dropped before `n_iter` are kept.
    n_chains : int, default=2
        Number of chains, each with its own start.
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
        them then predicts rows that are left out clearly better; otherwise none. All
        chains start at the pairs with the largest gains. "detect" finds none with more
        than 20,000 rows, with a given `inverse_temperature` or `slab_scale` (but 1),
        and where chains disagree.
    prediction : {"mean", "randomized", "map"}, default="mean"
        Predict by the posterior mean, by one draw from the posterior, or by the mean
        coefficients within the model that was drawn most often.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.

    Attributes
    ----------
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each variable is in the model.
    feature_importances_ : ndarray of shape (n_features,)
        Equal to `inclusion_probabilities_`; used by `SelectFromModel`.
    inclusion_errors_ : ndarray of shape (n_features,)
        Monte Carlo standard errors of these probabilities.
    expected_orders_ : ndarray of shape (n_features,)
        Posterior mean of the number of functions of each variable.
    coefficients_ : ndarray of shape (n_features, n_functions)
        Coefficients of the functions, as `prediction` says. The k-th function of a
        variable has standard deviation 1 / k over the rows. With `interactions`, those
        of `pairs_` are in further rows.
    intercept_ : float
        Logarithm of the mean where all effects are 0, as `prediction` says.
    models_ : ndarray of shape (n_models, n_features)
        Order (number of functions) of each variable in each model that was drawn, the
        most frequent model first; with `interactions`, those of `pairs_` in further
        columns.
    model_weights_ : ndarray of shape (n_models,)
        Relative frequency of each model among the draws.
    dispersion_ : float
        Estimate of the dispersion: the variance of the counts over that of Poisson
        counts.
    dispersion_growth_ : float
        a, if with ``inverse_temperature="auto"`` the variance of counts of mean m is
        taken as m (1 + a m), as that of negative binomial counts is; 0 if the
        dispersion is taken as constant.
    pairs_ : ndarray of int of shape (n_pairs, 2)
        Pairs of variables that may interact; empty if there are none.
    pair_probabilities_ : ndarray of shape (n_pairs,)
        Probability that each of `pairs_` is in the model.
    inverse_temperature_ : float
        Inverse temperature.
    acceptance_rate_ : float
        Share of the proposed sweeps that were accepted.
    r_hat_ : float
        Largest R-hat of the chains: of the deviance, and of the presence of each term
        whose inclusion probability is between 0.05 and 0.95.
    feature_ranges_ : ndarray of shape (n_features, 2)
        Range of each feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    SparseAdditiveGibbsRegressor : The same for targets with noise of one variance.
    sklearn.linear_model.PoissonRegressor : Linear, without selection.
    skpacbayes.online.OnlineVIRegressor : With ``loss="poisson"`` learns a stream.

    Notes
    -----
    The posterior is proportional to exp(-lambda R(f)) pi(f), with R the weighted mean
    of half the Poisson deviance, exp(f(x)) - y f(x) but for a constant, and pi(m)
    proportional to beta^functions / binomial(d, variables) on models m [1]_. The
    functions are orthogonal over the rows. The k-th function of a variable has standard
    deviation 1 / k, so that the prior favours smooth effects. The coefficients are N(0,
    v), with v the square of `slab_scale` (in the paper they are uniform on an l1 ball),
    and the intercept is N(log of the mean of y, 100). Targets need not be integers.

    About its mean the Poisson likelihood is nearly a negative binomial one to a power,
    a mixture of Gaussian ones over Pólya-Gamma rates. A chain draws the rates, moves
    between models with coefficients and intercept integrated out, as in regression, and
    draws these; a Metropolis step corrects for the approximation, so that the chain
    samples the Poisson posterior [2]_. Nearly all proposals are accepted
    (`acceptance_rate_`). The norm of all coefficients is updated directly, before and
    after.

    Most counts are overdispersed, as some relevant variables are not among the
    features. The Poisson posterior is then too narrow, and includes variables without
    effect. "auto" divides lambda by the dispersion, as quasi-Poisson regression
    multiplies its variances by it [3]_. The dispersion is Pearson's statistic over its
    degrees of freedom, corrected for small means [4]_, at least 1, from short runs, at
    most six, which end when it hardly changes.
    If negative binomial counts with variances m (1 + a m) are likelier in these runs
    than those with m (1 + a), the weight of each row is divided by its own 1 + a m, and
    `inverse_temperature_` is the sum: else rows of large means would select variables
    by their noise. Then a maximises a pseudo-likelihood [5]_. "likelihood" warns if the
    dispersion is clearly above 1.

    If all targets are equal, no variable is in the model.

    Each weight multiplies a row's loss: rows repeated have the same posterior as rows
    of weight two, though not the same random numbers. Unless all weights and targets
    are integers, weights are exposures: a row is then one observation, whatever its
    weight, and the unit of exposure changes the unit of the predictions alone.

    The functions of a pair are the first `max_order` products of the functions of its
    variables, minus their projections on functions of one of the two; the product of
    the a-th and the b-th has standard deviation 1 / (a b). The prior of a model with s
    variables and t pairs of them has a further factor binom(s (s - 1) / 2, t)^-1, and
    beta for each function. At new rows a function of a pair is clipped to the range of
    its values at the rows of `fit`.

    A variable with missing values (NaN) has one more function, its first: the indicator
    that it is missing.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet (2015). On some
       recent advances on high dimensional Bayesian statistics. ESAIM: Proceedings and
       Surveys, Section 5.
    .. [2] L. D'Angelo and A. Canale (2023). Efficient posterior sampling for Bayesian
       Poisson regression. Journal of Computational and Graphical Statistics 32.
    .. [3] R. W. M. Wedderburn (1974). Quasi-likelihood functions, generalized linear
       models, and the Gauss-Newton method. Biometrika 61.
    .. [4] D. J. Fletcher (2012). Estimating overdispersion when fitting a generalized
       linear model to sparse data. Biometrika 99.

    .. [5] M. Davidian and R. J. Carroll (1987). Variance function estimation. Journal
       of the American Statistical Association 82.

    Examples
    --------
    Two of ten variables matter, one of them only through its absolute value:

    >>> import numpy as np
    >>> from skpacbayes.additive import SparseAdditiveGibbsPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 10))
    >>> y = rng.poisson(np.exp(X[:, 0] + 2 * X[:, 1] ** 2))
    >>> model = SparseAdditiveGibbsPoissonRegressor(random_state=0).fit(X, y)
    >>> model.get_support(indices=True)
    array([0, 1])
    >>> rows = np.zeros((3, 10))
    >>> rows[:, 1] = [-0.9, 0, 0.9]  # means 5.1, 1, 5.1
    >>> model.predict(rows).round()
    array([5., 1., 5.])

    The same with unequal exposures:

    >>> years = rng.uniform(0.5, 2, size=200)
    >>> claims = rng.poisson(years * np.exp(X[:, 0] + 2 * X[:, 1] ** 2))
    >>> model.fit(X, claims / years, sample_weight=years).get_support(indices=True)
    array([0, 1])
    """

    _what_mean_effects_miss = "predicted means are too small on average"
    _parameter_constraints: dict = {
        **_DrawnAdditiveGibbs._parameter_constraints,
        **_Interactions._parameter_constraints,
        "slab_scale": [SCALE],
        "inverse_temperature": [StrOptions({"auto", "likelihood"}), SCALE],
    }

    def __init__(
        self,
        basis="legendre",
        *,
        max_order=8,
        feature_range=None,
        categorical_features=None,
        beta=0.5,
        slab_scale=1.0,
        inverse_temperature="auto",
        n_iter=500,
        burn_in=100,
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
        self.slab_scale = slab_scale
        self.inverse_temperature = inverse_temperature
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
        """Run the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Non-negative counts, or counts per unit of exposure.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for instance their exposures: a row of weight 2 counts
            as two rows. None: 1 each.

        Returns
        -------
        self : SparseAdditiveGibbsPoissonRegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If y is negative or not finite, or X or a weight is not valid.
        """
        rows = self._counted(X, y, sample_weight)
        problem = self._problem(rows)
        rng = self._generator()

        def first(problem):
            return self._chain(problem, problem.weights, rng.spawn(1)[0])

        problem = self._paired(problem, first)
        if not np.ptp(rows.targets):  # else the prior alone would select, from zeros
            problem = problem._replace(ranks=np.zeros_like(problem.ranks))
        parts = PartsOfFit(self._parts, self._detects)
        means, exponents = self._learn(problem, rows, parts, rng)
        another = parts.has_another()
        usual = isinstance(self.inverse_temperature, str) and self.slab_scale == 1.0
        predict = self._predicted if usual else None
        left = self._left(rows, means) if usual else NO_STRUCTURE
        few = len(rows.X) <= MOST_DETECTED
        if another and left.suggests_pairs and few:
            alone = self._computed, problem, means, exponents
            before = self._left_out_losses(rows, means, exponents)
            problem = self._with_candidates(problem, lambda: self._ranking(left))
            means, exponents = self._learn(problem, rows, None, rng)
            losses = self._left_out_losses(rows, means, exponents)
            if self._predicts_better(losses, before):
                left = self._left(rows, means)
            else:
                self._computed, problem, means, exponents = alone
        parts.end()
        found = self._computed
        ignored = self.inverse_temperature == "likelihood"
        observed = observations(rows, means)
        growth = None if ignored else found.growth
        warn_of_dispersion(*observed, found.dispersion, growth)
        if not rows.targets.any():
            warn_user(
                f"All of the {len(rows.X)} counts are zero: no variable is selected, "
                "and how small the predicted rates are depends on their prior."
            )
        warn_of_fit(
            self,
            rows,
            None if are_counts(rows) else sample_weight,
            problem.among,
            predict,
            np.positive,  # variances of counts are their means
            exponents=exponents,
            left=left,
        )
        return self

    def predict(self, X, return_std=False):
        """Predict the mean of y, and optionally its scale.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation of y for a row of weight
            1: that of the posterior of the mean and of a count with this mean. Beyond
            the range of a selected variable, it includes what lines would add to the
            effect, and how far the effect leads from them, times the mean. If a
            variable that was never missing in `fit` is missing, or has a new category,
            the standard deviation of its effect over the rows of `fit`, times the mean,
            is included.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predicted means. With `prediction="mean"` they are averaged over the
            posterior.
        std : ndarray of shape (n_samples,)
            Standard deviations, only if `return_std`.
        """
        X = self._new_rows(X)
        mean = self._predicted(X)
        if not return_std:
            return mean
        average, variance = self._means_and_variances(X)
        within = np.sqrt(self._variation(average) * average + variance)
        more = np.hypot(self._beyond(X), self._unknown(X))
        return mean, np.hypot(within, average * more)

    def score(self, X, y, sample_weight=None):
        """Return D^2, the share of the Poisson deviance explained.

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
        score : float
            1 - deviance / (deviance of the mean of y); 0 if all targets are equal.
        """
        means, y = self.predict(X), as_numbers("y", y)
        check_consistent_length(means, y)
        weights = checked_weights(sample_weight, means, some=True)
        present = weights > 0.0
        y, means, weights = y[present], means[present], weights[present]
        if np.ptp(y) == 0:
            return 0.0
        return d2_tweedie_score(y, means, sample_weight=weights, power=1)

    @property
    def dispersion_(self):
        """Estimate of the dispersion of the counts."""
        return float(self._answer().dispersion)

    @property
    def dispersion_growth_(self):
        """Increase of the dispersion with the mean; 0 if it is constant."""
        return float(self._answer().growth)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _counted(self, X, y, sample_weight):
        """Validate rows; return those of positive weight."""
        X, y = self._validated(X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        if y.min() < 0:
            raise ValueError(f"y must be non-negative counts, got {y.min():g}.")
        rows = Rows.of(X, y, sample_weight)
        check_total(rows.weights)
        if not rows.weights @ np.minimum(rows.targets, LARGEST_TOTAL) < LARGEST_TOTAL:
            raise ValueError(
                f"y times its weights must sum to less than {LARGEST_TOTAL:g}: "
                "divide y by a constant, or model its logarithm by "
                "SparseAdditiveGibbsRegressor."
            )
        return rows

    def _n_observed(self, rows):
        """Return the number of observations, in whatever unit exposures are."""
        return repetitions(rows).sum()

    def _learn(self, problem, rows, parts, rng):
        """Run the chains; return the means of the rows, and the rows' exponents."""
        temperature, exponents, growth = self._temperature(problem, rng)
        seeds = rng.spawn(self.n_chains)
        chains = [self._chain(problem, exponents, seed) for seed in seeds]
        self._run(chains, parts)
        found = self._fitted(problem, chains, temperature, rng)
        self._computed = found
        means = self._means_and_variances(rows.X)[0]
        n_functions = found.posterior.inclusion().sum()
        self._computed = found._replace(
            dispersion=dispersion_of(rows, means, n_functions),
            total_weight=float(rows.weights.sum()),
            growth=growth,
        )
        return means, exponents

    def _left(self, rows, means):
        """Return what effects leave in the residuals over their deviations."""
        scales = np.sqrt(rows.weights / np.maximum(means, SMALLEST_MEAN))
        scaled = rows.X, rows.targets, scales
        return self._structure_left(scaled, lambda X: self._means_and_variances(X)[0])

    def _left_out_losses(self, rows, means, exponents):
        """Return weights times losses of rows, each left out with its copies."""
        kept, weights, exponents = pooled_copies(
            rows.X, rows.targets[:, None], rows.weights, exponents
        )
        X, y, means = rows.X[kept], rows.targets[kept], means[kept]
        found = self._computed
        logs = np.log(np.maximum(means, SMALLEST_MEAN))
        logs = left_out_scores(X, logs, y - means, means, exponents, found, 1.0)
        return weights * (means_of(logs) - y * logs)

    def _chain(self, problem, exponents, rng):
        """Return a chain for likelihoods of the rows raised to exponents."""
        variance = self.slab_scale**2
        chain = self._chain_of(PoissonChain, problem, exponents, variance, rng)
        chain.settle()
        return chain

    def _temperature(self, problem, rng):
        """Return the inverse temperature, and what it is the sum of.

        Returns
        -------
        inverse_temperature : float
        exponents : ndarray of shape (n_samples,)
            Exponents of the likelihoods of the rows.
        growth : float
            See `dispersion_growth_`.
        """
        weights = problem.weights
        total = weights.sum()
        if self.inverse_temperature == "likelihood":
            return float(total), weights, 0.0
        if self.inverse_temperature != "auto":
            temperature = float(self.inverse_temperature)
            return temperature, weights * (temperature / total), 0.0
        pilot = self._chain(problem, weights, rng)
        exponents, growth = weights, 0.0
        n_sweeps = min(PILOT_SWEEPS, self.n_iter)
        for number in range(MOST_PILOTS):
            before, grew = exponents.sum(), growth > 0
            if number:
                pilot.temper(exponents)
                pilot.settle()
            means, n_functions = 0.0, 0.0
            for _ in range(n_sweeps):
                pilot.sweep()
                means = means + means_of(pilot.log_means) / n_sweeps
                n_functions += len(pilot.draw.columns) / n_sweeps
            dispersions = max(1.0, dispersion_of(problem, means, n_functions))
            growth = growth_of_dispersion(problem, means, n_functions)
            if growth:
                dispersions = 1.0 + growth * exposures(problem) * means
            exponents = weights / dispersions
            change = abs(math.log(exponents.sum() / before))
            if change < SETTLED and grew == (growth > 0):
                break
        return float(exponents.sum()), exponents, growth

    def _variation(self, means):
        """Return the variances of counts of these means, over the means."""
        found = self._answer()
        if found.growth:
            return 1.0 + found.growth * means
        return found.total_weight / found.inverse_temperature

    @as_fitted
    def _predicted(self, X):
        """Return the predicted means at validated rows."""
        if self.prediction == "mean":
            return self._means_and_variances(X)[0]
        return means_of(self._decision(X))

    def _means_and_variances(self, X):
        """Return mean and variance over the draws of the mean, at validated rows."""
        average, variance = np.empty((2, len(X)))
        for rows, scores in self._answer().scores_of_draws(X):
            means = means_of(scores)
            average[rows] = means.mean(axis=0)
            spread = (means / average[rows] - 1).std(axis=0)
            variance[rows] = (average[rows] * spread) ** 2
        return average, variance


class PoissonChain(RatedChain):
    """One chain of a Poisson likelihood of log means.

    About a mean m_i the Poisson log likelihood of a row, y s - exp(s), agrees with

        a s - b log(1 + exp(s - log r)),

    a negative binomial log likelihood to a power, up to the second derivative, if b p
    (1 - p) = m and a = y - m + b p, with p = m / (m + r). Given Pólya-Gamma rates this
    is Gaussian: a sweep under it is reversible, and is a proposal for the Poisson
    posterior, accepted or rejected by a Metropolis step [1]_. The third derivatives
    differ by less than half, so that nearly all sweeps are accepted.

    Parameters
    ----------
    space, rng
        See :class:`RatedChain`.
    targets : ndarray of shape (n_samples,)
        The counts.
    weights : ndarray of shape (n_samples,)
        Exponent of the likelihood of each row.

    Attributes
    ----------
    base : float
        Logarithm of the mean of the counts, the prior mean of the intercept.

    References
    ----------
    .. [1] L. D'Angelo and A. Canale (2023). Efficient posterior sampling for Bayesian
       Poisson regression. Journal of Computational and Graphical Statistics 32.
    """

    def __init__(self, space, targets, weights, rng):
        self.targets = targets
        self.base = log_mean(targets, weights)
        super().__init__(space, 0.0, rng)
        self._n_until = N_SETTLING
        self.temper(weights)

    def temper(self, weights):
        """Set the exponents of the likelihood of the rows."""
        self.weights = weights
        self._begin_again(self.log_means)

    @property
    def log_means(self):
        """Log means of the current draw at the rows."""
        return self.draw.intercept + self.effects + self.base

    @property
    def moves(self):
        """Number of sweeps proposed, and accepted."""
        return self._tried, self._accepted

    def settle(self):
        """Find means to expand about, starting from the current draw."""
        total = 0.0
        for number in range(N_SETTLING):
            self.draw_length()
            self._expand(self.log_means)
            super()._move(MOVES)
            if 2 * number >= N_SETTLING:
                total = total + self.log_means
        self._begin_again(total / (N_SETTLING - N_SETTLING // 2))

    def _record(self):
        loss = self.half_deviance()
        intercept = self.draw.intercept + self.base
        scale = self.slab_scale
        return self.draw._replace(loss=loss, intercept=intercept, slab_scale=scale)

    def _adapt(self):
        """Expand the likelihood again, if the sweeps since the last time have doubled.

        It is expanded about the mean of their log means.
        """
        self._n_since += 1
        self._total_since += self.log_means
        if self._n_since == self._n_until:
            self._begin_again(self._total_since / self._n_since)
            self._n_until *= 2

    def half_deviance(self):
        """Mean half deviance of the current draw."""
        saturated = self.weights @ (xlogy(self.targets, self.targets) - self.targets)
        return float(saturated - self.log_likelihood()) / self.weights.sum()

    def log_likelihood(self):
        """Tempered log likelihood of the current draw."""
        return self._log_likelihood_of(self.log_means)

    def _log_likelihood_of(self, log_means):
        return self.weights @ (self.targets * log_means - means_of(log_means))

    def _along_length(self):
        scores, base = self.draw.intercept + self.effects, self.base
        return lambda factor: self._log_likelihood_of(factor * scores + base)

    def _move(self, n_moves):
        """Propose a sweep, and undo it if it is rejected."""
        before = self.draw, self.effects
        log_ratio = -self._log_correction()
        super()._move(n_moves)
        log_ratio += self._log_correction()
        self._tried += 1
        if math.log1p(-self.rng.random()) < log_ratio:
            self._accepted += 1
        else:
            self.draw, self.effects = before

    def _log_correction(self):
        """Return the log ratio of the Poisson likelihood to that of the proposal."""
        scores = self.scores
        proposing = (self.pulls + 0.5 * self.shapes) @ scores
        proposing -= self.shapes @ np.logaddexp(0.0, scores)
        return self.log_likelihood() - proposing

    def draw_rates(self):
        return polya_gamma(self.shapes, self.scores, self.rng, MOST)

    def _expand(self, log_means):
        """Set the likelihood of the proposal, the expansion about log means."""
        logs = np.minimum(log_means, LARGEST_LOG) + np.log(self.weights)
        logs = np.maximum(logs, math.log(LEAST_TOTAL / len(logs)))
        means = np.exp(logs)
        counts = self.weights * self.targets
        # For a count far above its mean, the likelihood must decrease beyond it.
        ratios = np.maximum(LEAST_RATIO, counts / means)
        shapes = means * (1 + ratios) ** 2 / ratios
        whole = (shapes >= FEWEST) & (shapes <= MOST)
        shapes[whole] = np.ceil(shapes[whole])
        share = 2 * means / shapes / (1 + np.sqrt(1 - 4 * means / shapes))
        self.shapes = shapes
        self.pulls = counts - means + shapes * (share - 0.5)
        self.offsets = self.base + np.log(self.weights * share / (1 - share)) - logs

    def _begin_again(self, log_means):
        self._expand(log_means)
        self._tried = self._accepted = 0
        self._n_since, self._total_since = 0, np.zeros(len(log_means))


def means_of(log_means):
    """Return the means of counts, of logarithms that may be too large."""
    return np.exp(np.minimum(log_means, LARGEST_LOG))


def log_mean(targets, weights):
    """Return the log of the mean of counts, or of half a count if all are zero."""
    return math.log(max(weights @ targets, 0.5) / weights.sum())


# How much more counts vary than those of a Poisson distribution.


def are_counts(rows):
    """Return whether weighted targets are integers, so that weights are exposures."""
    return are_whole(rows.weights * rows.targets)


def are_whole(values):
    """Return whether numbers, not negative, are integers up to rounding."""
    return bool((abs(values - np.round(values)) <= WHOLE * values).all())


def repetitions(rows):
    """Return the observations per row: the weight if all are integers, else 1."""
    if are_whole(rows.weights) and are_whole(rows.targets):
        return rows.weights
    return np.ones(len(rows.weights))


def exposures(rows):
    """Return the exposure of each observation: its weight, unless weights repeat it."""
    return rows.weights / repetitions(rows)


def observations(rows, means):
    """Return the repetitions, the counts and the expected counts of the rows."""
    exposed = exposures(rows)
    return repetitions(rows), exposed * rows.targets, exposed * means


def dispersion_of(rows, means, n_functions):
    """Estimate the dispersion of counts [1]_.

    This is Pearson's statistic over its degrees of freedom, divided by a statistic of
    mean 1 under any dispersion that is correlated with it if means are small.

    Parameters
    ----------
    rows : Rows or Problem
        Targets and weights.
    means : ndarray of shape (n_samples,)
        Means of the targets.
    n_functions : float
        Number of fitted functions, without the intercept.

    References
    ----------
    .. [1] D. J. Fletcher (2012). Estimating overdispersion when fitting a generalized
       linear model to sparse data. Biometrika 99.
    """
    repeated = repetitions(rows)
    ratios = rows.targets / means
    if rows.weights @ rows.targets < 0.5:  # no counts: ratios near 0
        return 1.0
    freedom = max(repeated.sum() - 1 - n_functions, 1.0)
    pearson = rows.weights @ (means * (ratios - 1) ** 2) / freedom
    return float(pearson * repeated.sum() / (repeated @ ratios))


def growth_of_dispersion(rows, means, n_functions):
    """Return a, if the variance of counts of mean m grows as m (1 + a m); otherwise 0.

    That is the variance of negative binomial counts, of Poisson counts with a share of
    further zeros, and of Poisson counts whose rates are random factors times their
    means. The alternative is a constant dispersion. The more likely of two negative
    binomial distributions, with these variances, decides. Then a maximises the normal
    likelihood of Pearson's residuals, the pseudo-likelihood [1]_, which is right for
    variances of counts of any distribution.

    The parameters are those of :func:`dispersion_of`.

    References
    ----------
    .. [1] M. Davidian and R. J. Carroll (1987). Variance function estimation. Journal
       of the American Statistical Association 82.
    """
    repeated, counts, expected = observations(rows, means)
    freedom = repeated.sum() - 1 - n_functions
    if freedom < 1 or not rows.targets.any():
        return 0.0
    mean = repeated @ expected / repeated.sum()

    def least(misfit):
        """Return the dispersion minus 1 of a mean count of least misfit, and that."""
        found = minimize_scalar(
            lambda log_excess: misfit(math.exp(log_excess)),
            bounds=(math.log(LEAST_EXCESS), math.log(MOST_EXCESS * (1 + mean))),
            method="bounded",
        )
        return math.exp(found.x), found.fun

    def unlikely(unit):
        """Return minus the largest log likelihood, for shapes of unit / excess."""
        return least(
            lambda excess: (
                -(repeated @ negative_binomial(counts, expected, unit / excess))
            )
        )[1]

    if not unlikely(expected) - unlikely(mean) > LEAST_GAIN:  # constant, growing
        return 0.0
    squares = (counts - expected) ** 2 / expected * (repeated.sum() / freedom)

    def misfit(excess):
        dispersions = 1.0 + excess * (expected / mean)
        return repeated @ (np.log(dispersions) + squares / dispersions)

    return least(misfit)[0] / mean


def negative_binomial(counts, means, shapes):
    """Return log probabilities of counts, without the terms of the counts alone."""
    log_ratios = np.log1p(shapes / means)
    rising = gammaln(counts + shapes) - gammaln(shapes)
    return rising - counts * log_ratios - shapes * np.log1p(means / shapes)
