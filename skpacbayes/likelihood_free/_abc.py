"""A posterior from a table of simulations."""

from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._arguments import as_levels, check_count
from .._arviz import ChainDraws, inference_data
from .._base import as_fitted, fit_context, warn_user
from .._chains import in_threads
from .._compat import Interval, RealNotInt, StrOptions, n_samples_of
from .._kernels.standardize import LEAST_SPREAD
from .._sentinels import warn_of_sentinels
from .._stream import (
    StreamingEstimator,
    checked_weights,
    has_doubled,
    partial_fit_context,
)
from .._validation import are_finite, as_numbers, is_plain, refuse_large, validate_data
from ._abc_choice import Grid, held_out, held_out_pairs, validated
from ._abc_settings import Settings
from ._abc_support import Support, shares_beyond, warn_beyond
from ._abc_table import Table, refuse_counts, warn_of_impossible, within_reach
from ._abc_tails import FEWEST, MOST_AS_FAR, as_far, on_one_side, warn_of_tails
from ._abc_unrelated import MOST_PAIRS, related_summaries, warn_of_unrelated
from ._simulate import SimulationTable

FIRST_FIT = 1000  # number of simulations after which a stream fixes its settings
# Another metric than "mad" is tried with few held-out pairs, then with some.
FEW_PAIRS, SOME_PAIRS = 25, 75
LEAST_GAIN = 0.01  # of another metric, in nats


class ABCPosteriorKDE(MultiOutputMixin, RegressorMixin, StreamingEstimator):
    """Posterior of the parameters of a simulator, by approximate Bayesian computation.

    The estimator is fitted to a table of simulations: pairs of parameters drawn from a
    prior and summaries of data simulated with them. Given observed summaries, the
    posterior is the kernel density of the parameters of the k nearest simulations,
    adjusted to the observed summaries by local regression [1]_. The adjustment, the
    number of neighbors and the bandwidth are chosen by the log density of held-out
    pairs. The table is kept, so that memory grows with it.

    Parameters
    ----------
    n_neighbors : "cv", "rate", int or float, default="cv"
        Number of accepted simulations k. int: the number; float in (0, 1]: a fraction
        of the table; "cv": chosen by held-out pairs, from 10 to 30,000, and less for an
        observation at the edge of the simulations if a linear regression of k of them,
        or their mean without an adjustment, disagrees with those of fewer, or with up
        to two summaries the spread of the draws; "rate": of the order N^((p + 4) / (m +
        p + 4)) of Theorem 3.3, for N simulations, p parameters and m summaries (with
        the distance "regression", m = p). If the table has fewer simulations,
        predictions raise ValueError, as in `sklearn.neighbors`.
    bandwidth : "cv", "silverman", "rate" or float, default="cv"
        Multiple of Silverman's bandwidth for the accepted draws. "silverman": 1; "cv":
        chosen by held-out pairs, from 0.02 to 2 (at least 0.7 if a parameter has few
        distinct values); "rate": a bandwidth of the order of Theorem 3.3, whatever k
        is. The bandwidth of a parameter with few distinct values, such as a model
        index, is at least a sixth of the median gap between them.
    adjustment : {"cv", "linear", "heteroscedastic"} or None, default="cv"
        Local regression that adjusts the accepted parameters to the observed summaries.
        "linear": their mean; "heteroscedastic": their mean and standard deviation;
        None: no adjustment, equation (5) of [1]_; "cv": chosen by held-out pairs. If k
        is less than 3 (linear) or 20 (heteroscedastic) per coefficient, the next
        simpler adjustment is used.
    metric : {"cv", "mad", "whiten", "regression"} or None, default="cv"
        Distance between summaries. "mad": Euclidean, each summary divided by its median
        absolute deviation; "whiten": Mahalanobis; "regression": between the linear
        predictions of the parameters from the summaries; None: Euclidean; "cv": "mad",
        unless another of the first three is clearly better for held-out pairs; "mad" if
        there are fewer than 25 of them, or none because `n_neighbors`, `bandwidth` and
        `adjustment` are all given.
    parameter_transform : {"log", "logit"}, list of these or None, default=None
        Transform of the parameters for adjustment and smoothing. A list has one entry
        for each parameter.
    bounds : array-like of shape (n_parameters, 2) or (2,), default=None
        Support of the prior of each parameter, with infinite values for no bound. None:
        that of the :class:`SimulationTable` given to `fit`, if any. Adjusted draws
        beyond a bound are reflected at it, and kernels are truncated there. "log" needs
        (low, inf), by default (0, inf), and "logit" two finite bounds.
    algorithm : {"auto", "brute", "kd_tree"}, default="auto"
        Search for neighbors; all give the same result. "auto" scans the table, unless
        there are at least 100 observations and at most 6 summaries, or an index exists
        already. It may change within a stream.
    selection : {"local", "global"}, default="local"
        "global": "cv" chooses once for all observations. "local": another candidate is
        used for an observation if the 40 held-out pairs nearest to it favour that
        candidate by three standard errors.
    n_validation : int, default=300
        Number of held-out pairs of "cv" and of `loo_score`.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of the held-out pairs, and of `sample`.
    n_jobs : int, default=None
        Number of threads over observations. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors. It may change within
        a stream.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbors for the current table, unless `selection="local"` chooses
        another one for an observation.
    bandwidth_ : float
        Multiple of Silverman's bandwidth, with the same exception.
    adjustment_ : str or None
        Adjustment, with the same exception.
    metric_ : str or None
        Distance between summaries.
    scale_ : ndarray of shape (n_directions,)
        Units of the distance in each direction: of each summary, unless `metric_` is
        "whiten" or "regression".
    cv_table_ : dict of str to ndarray
        Columns `adjustment`, `n_neighbors`, `bandwidth`, `mean_score` (mean log density
        of held-out pairs) and `standard_error` (of the difference from the best mean).
        Empty if nothing was chosen by held-out pairs.
    n_simulations_ : int or float
        Number of simulations in the table, or their total weight.
    n_outputs_ : int
        Number of parameters.
    n_features_in_ : int
        Number of summaries.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the summaries, if X has feature names that are all strings.

    See Also
    --------
    simulate : Makes the table.
    PosteriorDisplay : Plots a posterior.

    Notes
    -----
    For an observation s, with A the k nearest simulations (theta_j, S_j),

        g(theta | s) = sum_A w_j K((theta - theta*_j) / h) / (h^p sum_A w_j).

    With ``adjustment=None``, w_j = 1 and theta*_j = theta_j. Otherwise w_j = 1 - (d_j /
    d_(k+1))^2, and theta*_j = m(s) + (theta_j - m(S_j)), with m the weighted linear
    regression of theta on S [2]_; if "heteroscedastic", the residual is multiplied by
    sigma(s) / sigma(S_j) [3]_. Residuals are divided by sqrt(1 - (m + 1) / n_eff), for
    the m + 1 coefficients of the regression, and multiplied by sqrt(1 + sum a_j^2),
    with a_j the weight of theta_j in m(s), for the error of m(s). With the metric
    "regression", whose m' slopes are fitted to all N simulations, residuals are also
    divided by 1 - (m' + 1) / N, and held-out pairs are placed by a regression without
    them; with N <= m' + 1 simulations, "mad" replaces it. The bandwidth of
    parameter l is h_l = c sd_l (4 / ((p + 2) n_eff))^(1 / (p + 4)), with n_eff = (sum
    w)^2 / sum w^2. If a parameter has bounds and no transform, theta*_j is reflected at
    a bound that it passes, and each kernel is truncated to the bounds and normalised. A
    normal distribution with the mean and the standard deviations of the whole table is
    mixed in with weight 1 / (k + 1), so that log densities are finite; `sample`,
    `predict` and `predict_quantiles` do not use it.

    "cv" compares the three adjustments, numbers of neighbors that grow by a factor of
    about three, and thirteen bandwidths, by the mean log density of held-out pairs.
    Copies of a pair are held out with it, unless parameters have few distinct values
    and summaries repeat too, so that pairs are equal by chance. For each adjustment and
    k, the bandwidth is the nearest to Silverman's within 1.5 standard errors of the
    best; then k is the largest within one standard error and 0.01 nats of the best.
    Candidates with at least 1000 neighbors that are far worse after 50 pairs are
    dropped. This is done with the distance "mad". Another one replaces it if 25 of the
    pairs are more probable with it by 0.01 nats and one standard error in the mean, and
    75 of them (or all, if there are fewer) by three. `fit` warns if the smallest or the
    largest bandwidth is best and one beyond it would be better. It also warns if pairs
    are clearly more probable without the summaries that show no relation to the
    parameters. Posteriors warn if the observation is farther from its ten nearest
    simulations than all but two or fewer simulations from theirs, and all of its
    neighbors lie on one side of it: they may then be far from the exact one.

    `score` is the mean log density, so that a grid search minimises the expected
    Kullback-Leibler divergence of the posterior; for R2 pass the result of `predict` to
    :func:`sklearn.metrics.r2_score`. On pairs of the table `score` is too optimistic,
    as each is its own neighbour: use `loo_score`.

    Theorem 3.3 gives the rates for m > 4 summaries of compact support and no
    adjustment. A simulation of integer weight w counts as w simulations.

    `partial_fit` adds simulations. The metric and the choices of "cv" stay those of the
    last `fit`, or of the first 1000 simulations of a stream; k grows with the table at
    the rate of Theorem 3.3. With fewer simulations, the choices are made again after
    each addition, when the posterior is next needed.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet, "On some recent
       advances on high dimensional Bayesian statistics", ESAIM: Proceedings and
       Surveys 51, 2015 (section 3).
    .. [2] M. A. Beaumont, W. Zhang and D. J. Balding, "Approximate Bayesian
       computation in population genetics", Genetics 162, 2002.
    .. [3] M. G. B. Blum and O. François, "Non-linear regression models for approximate
       Bayesian computation", Statistics and Computing 20, 2010.

    Examples
    --------
    Twenty normal observations with unknown mean and standard deviation. Instead of the
    likelihood, 5,000 simulations from the prior and their summaries are used:

    >>> import numpy as np
    >>> from skpacbayes.likelihood_free import ABCPosteriorKDE
    >>> rng = np.random.default_rng(0)
    >>> parameters = np.column_stack([rng.normal(size=5000), rng.uniform(0, 3, 5000)])
    >>> samples = parameters[:, :1] + parameters[:, 1:] * rng.normal(size=(5000, 20))
    >>> summaries = np.column_stack([samples.mean(axis=1), samples.std(axis=1)])
    >>> posterior = ABCPosteriorKDE(parameter_transform=[None, "log"], random_state=0)
    >>> posterior = posterior.fit(summaries, parameters)
    >>> observed = [[0.5, 1.0]]
    >>> posterior.predict(observed).round(1)
    array([[0.5, 1.1]])
    >>> mean, deviation = posterior.predict_quantiles(observed, [0.05, 0.95])[0].T
    >>> mean.round(1), deviation.round(1)
    (array([0.1, 0.8]), array([0.8, 1.6]))
    """

    _parameter_constraints: dict = {
        "n_neighbors": [
            StrOptions({"cv", "rate"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "bandwidth": [
            StrOptions({"cv", "silverman", "rate"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "adjustment": [StrOptions({"cv", "linear", "heteroscedastic"}), None],
        "metric": [StrOptions({"cv", "mad", "whiten", "regression"}), None],
        "parameter_transform": [StrOptions({"log", "logit"}), list, tuple, None],
        "bounds": ["array-like", None],
        "algorithm": [StrOptions({"auto", "brute", "kd_tree"})],
        "selection": [StrOptions({"global", "local"})],
        "n_validation": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    _may_change = ("algorithm", "n_jobs")  # they change the time, not the results
    _saves_computed = False

    def __init__(
        self,
        n_neighbors="cv",
        *,
        bandwidth="cv",
        adjustment="cv",
        metric="cv",
        parameter_transform=None,
        bounds=None,
        algorithm="auto",
        selection="local",
        n_validation=300,
        random_state=None,
        n_jobs=None,
    ):
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.adjustment = adjustment
        self.metric = metric
        self.parameter_transform = parameter_transform
        self.bounds = bounds
        self.algorithm = algorithm
        self.selection = selection
        self.n_validation = n_validation
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None, sample_weight=None):
        """Store a table of simulations, and make the choices of "cv".

        Parameters
        ----------
        X : array-like of shape (n_simulations, n_summaries) or SimulationTable
            Summaries of the simulations; or a :class:`SimulationTable` and no y.
        y : array-like of shape (n_simulations,) or (n_simulations, n_parameters), \
                default=None
            Parameters of the simulations.
        sample_weight : array-like of shape (n_simulations,), default=None
            Weights: a simulation of weight 2 counts as two simulations. None: 1 each.

        Returns
        -------
        self : ABCPosteriorKDE
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters are not within `bounds`, if `bounds` and `parameter_transform`
            conflict, or if the weights sum to less than 2, as normalised weights do.
        TypeError
            If `sample_weight` is an integer, as in ``fit(*table)``.
        """
        X, y, weights = self._simulations(X, y, sample_weight, reset=True, least=2)
        self._table = self._appended(self._empty_table(), X, y, weights)
        self._settings = self._learned(self._table, self._tasks)
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add simulations to the table.

        Parameters
        ----------
        X : array-like of shape (n_simulations, n_summaries) or SimulationTable
            Summaries of the simulations; or a :class:`SimulationTable` and no y.
        y : array-like of shape (n_simulations,) or (n_simulations, n_parameters), \
                default=None
            Parameters of the simulations.
        sample_weight : array-like of shape (n_simulations,), default=None
            Weights: a simulation of weight 2 counts as two simulations. None: 1 each.

        Returns
        -------
        self : ABCPosteriorKDE
            The estimator.
        """
        begun = self._streaming()
        X, y, weights = self._simulations(X, y, sample_weight, reset=not begun)
        if not begun:
            self._table, self._settings = self._empty_table(), None
        self._table = self._appended(self._table, X, y, weights)
        if self._settings is None and self._table.n_rows >= FIRST_FIT:
            self._settings = self._learned(self._table.head(FIRST_FIT), self._tasks)
        vars(self).pop("_computed", None)
        return self

    def predict(self, X, return_std=False):
        """Predict the posterior means of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        return_std : bool, default=False
            Whether to also return the posterior standard deviations.

        Returns
        -------
        mean : ndarray of shape (n_observations,) or (n_observations, n_parameters)
            Weighted means of the adjusted draws, in the shape of y in `fit`.
        std : ndarray of the same shape
            Standard deviations of the draws, only if `return_std`.
        """

        def moments(posterior, row):
            draws = self._support.backward(posterior.draws)
            mean = posterior.weights @ draws
            return mean, np.sqrt(posterior.weights @ np.square(draws - mean))

        both = np.array(self._for_each(X, moments))
        mean, std = self._like_y(both[:, 0]), self._like_y(both[:, 1])
        return (mean, std) if return_std else mean

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Predict posterior quantiles of each parameter.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        quantiles : float or array-like of shape (n_quantiles,), \
                default=(0.05, 0.5, 0.95)
            Levels in [0, 1]. At 0 and 1 the result is the bounds, infinite if there are
            none, unless all draws are equal.

        Returns
        -------
        values : ndarray of shape (n_observations, n_quantiles[, n_parameters])
            Quantiles of the adjusted draws; the i-th of `n` draws has level ``i / (n +
            1)``. The last axis exists if y had two dimensions.
        """
        levels = as_levels(quantiles, ends=True)

        def of_draws(posterior, row):
            return self._support.backward(posterior.quantiles(levels))

        return self._like_y(np.array(self._for_each(X, of_draws)))

    def log_density(self, X, grid):
        """Return the log posterior density on a grid of parameters.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        grid : array-like of shape (n_points,) or (n_points, n_parameters)
            Parameters, the same for all observations.

        Returns
        -------
        log_density : ndarray of shape (n_observations, n_points)
            Log densities; minus infinity outside of `bounds`.
        """
        check_is_fitted(self)
        grid = self._parameters(grid, "grid")
        inside = self._support.inside(grid)
        points = self._support.forward(grid[inside])

        def on_the_grid(posterior, row):
            log_density = np.full(len(grid), -np.inf)
            log_density[inside] = posterior.log_density(points)
            return log_density

        return np.array(self._for_each(X, on_the_grid))

    def score_samples(self, X, y=None):
        """Return the log posterior density at one parameter for each observation.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        y : array-like of shape (n_observations[, n_parameters]), default=None
            Parameters at which to evaluate the density. None: the posterior means.

        Returns
        -------
        log_density : ndarray of shape (n_observations,)
            Log densities, all finite.

        Raises
        ------
        ValueError
            If y is outside of `bounds`, or on one of them with a `parameter_transform`.
        """
        check_is_fitted(self)
        if y is None:
            y = self.predict(X)
        y = self._parameters(y, "y")
        check_consistent_length(X, y)
        self._support.check(y)
        points = self._support.forward(y)

        def at_its_point(posterior, row):
            return posterior.log_density(points[row : row + 1])[0]

        return np.array(self._for_each(X, at_its_point))

    def score(self, X, y, sample_weight=None):
        """Return the mean log posterior density of held-out pairs.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Summaries of simulations that are not in the table.
        y : array-like of shape (n_observations,) or (n_observations, n_parameters)
            Parameters of the simulations.
        sample_weight : array-like of shape (n_observations,), default=None
            Weights of the pairs in the mean.

        Returns
        -------
        score : float
            The mean, in nats.
        """
        scores = self.score_samples(X, y)
        weights = checked_weights(sample_weight, scores, some=True)
        return float(np.average(scores, weights=weights))

    @as_fitted
    def loo_score(self, random_state=None):
        """Return the mean leave-one-out log density of pairs of the table.

        Parameters
        ----------
        random_state : int, RandomState instance or None, default=None
            Seed of the choice of the pairs. None: the `random_state` of the estimator.

        Returns
        -------
        score : float
            Mean over `n_validation` pairs, in nats, comparable to `score`.
        """
        table, settings = self._table, self._ready()
        rng = self._generator_of(random_state)
        pairs, weights = held_out_pairs(table, self.n_validation, rng)
        scores = held_out(settings, table, pairs, Grid.of(self._choice()))
        return float(np.average([score[0, 0] for score in scores], weights=weights))

    def sample(self, X, n_samples=1, random_state=None):
        """Draw parameters from the posterior.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        n_samples : int, default=1
            Number of draws for each observation.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None: the `random_state` of the estimator.

        Returns
        -------
        draws : ndarray of shape (n_observations, n_samples[, n_parameters])
            Draws from the kernel density; the last axis exists if y had two dimensions.
        """
        check_is_fitted(self)
        n_samples = check_count("n_samples", n_samples)
        rng = self._generator_of(random_state)
        seeds = rng.integers(2**63, size=n_samples_of(X))

        def draw(posterior, row):
            draws = posterior.sample(n_samples, np.random.default_rng(seeds[row]))
            return self._support.backward(draws)

        return self._like_y(np.array(self._for_each(X, draw)))

    def to_arviz(self, X, n_samples=1000, random_state=None):
        """Draw from the posterior of one observation, for ArviZ.

        Parameters
        ----------
        X : array-like of shape (1, n_summaries)
            Observed summaries.
        n_samples : int, default=1000
            Number of draws. They are independent, and form one chain.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None: the `random_state` of the estimator.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            Its group `posterior` has `theta`, with the axes chain, draw and parameter;
            `InferenceData` before ArviZ 1.0.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        ValueError
            If X is not one observation.
        """
        draws = self.sample(X, n_samples, random_state)
        if len(draws) != 1:
            raise ValueError(f"X must be one observation, got {len(draws)}.")
        draws = draws.reshape(1, n_samples, -1)
        axes = {"theta": ["parameter"]}, {"parameter": np.arange(draws.shape[2])}
        return inference_data(
            ChainDraws({"theta": draws}, {}, *axes), f"{type(self).__name__}.to_arviz"
        )

    def kneighbors(self, X, n_neighbors=None, return_distance=True):
        """Return the simulations nearest to each observation.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        n_neighbors : int, default=None
            Number of simulations. None: `n_neighbors_`.
        return_distance : bool, default=True
            Whether to also return the distances.

        Returns
        -------
        distances : ndarray of shape (n_observations, n_neighbors)
            Distances in the metric, ascending, if `return_distance`.
        indices : ndarray of shape (n_observations, n_neighbors)
            Indices of their rows among those of positive weight; ties are broken by the
            lower index.
        """
        settings = self._ready()
        observations, _ = self._observed(self._rows(X))
        most = self._table.n_rows
        n_rows = min(self.n_neighbors_, most) if n_neighbors is None else n_neighbors
        check_scalar(n_rows, "n_neighbors", Integral)
        if not 1 <= n_rows <= most:
            raise ValueError(
                f"n_neighbors must be from 1 to the {most} rows of the table, got "
                f"{n_rows}."
            )
        n_rows, neighbors, table = int(n_rows), settings.neighbors, self._table
        algorithm = neighbors.prepared(table, len(X), n_rows, self.algorithm)
        found = list(neighbors.nearest(table, observations, n_rows, algorithm))
        indices = np.array([rows for rows, _, _ in found])
        distances = np.sqrt([squares for _, _, squares in found])
        return (distances, indices) if return_distance else indices

    @property
    def n_neighbors_(self):
        """Number of neighbors for the current table."""
        return self._choice().n_neighbors

    @property
    def bandwidth_(self):
        """Multiple of Silverman's bandwidth."""
        return self._choice().multiplier

    @property
    def adjustment_(self):
        """Adjustment by local regression."""
        return self._choice().adjustment

    @property
    def metric_(self):
        """Distance between summaries."""
        return self._ready().metric

    @property
    def scale_(self):
        """Units of the distance in each direction."""
        return self._ready().neighbors.metric.scale.copy()

    @property
    def cv_table_(self):
        """Candidates, with the log densities of held-out pairs."""
        return {name: column.copy() for name, column in self._ready().cv_table.items()}

    @property
    def n_simulations_(self):
        """Number of simulations in the table, or their total weight."""
        check_is_fitted(self)
        return self._table.total()

    def __sklearn_is_fitted__(self):
        return self._streaming() and self._table.n_rows > 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # `score` is a log-density, not R2
        return tags

    # Simulations.

    def _learn_at_once(self, X, y=None, sample_weight=None):
        """Append plain rows, unless the settings depend on them."""
        if sample_weight is not None or y is None or not self._recognizes_pairs(X, y):
            return False
        begins = self._settings is None
        if begins and self._table.n_rows + len(X) >= FIRST_FIT:
            return False
        self._publish(_table=self._appended(self._table, X, y, None))
        return True

    def _recognizes_pairs(self, X, y):
        """Return whether X and y are arrays that need no validation."""
        width = () if self._one_dimensional else (self.n_outputs_,)
        return (
            self._recognises(X)
            and is_plain(y, (len(X), *width))
            and are_finite(X)
            and are_finite(y)
        )

    def _simulations(self, X, y, sample_weight, *, reset=False, least=1):
        """Validate simulations: y with two dimensions, weights or None."""
        bounds = self.bounds
        if isinstance(X, SimulationTable):
            if y is not None:
                raise TypeError("X is a SimulationTable: give no y beside it.")
            if bounds is None:
                bounds = X.bounds
            X, y = X.summaries, X.parameters
        if y is None:
            raise ValueError(
                "This ABCPosteriorKDE estimator requires y to be passed, but the "
                "target y is None. y has the parameters of the simulations; only a "
                f"SimulationTable has them itself, and X is a {type(X).__name__}."
            )
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            reset=reset,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=least,
        )
        weights = None
        if sample_weight is not None:
            if isinstance(sample_weight, Integral):
                raise TypeError(
                    f"sample_weight={sample_weight} should be an array. If it is the "
                    "number of failed simulations, fit(*table), give fit(table)."
                )
            weights = checked_weights(sample_weight, X, some=least > 1)
            refuse_counts(weights, least)
        if reset:
            self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
            self._one_dimensional = y.ndim == 1
            self._support = Support.from_parameters(
                self.parameter_transform, bounds, self.n_outputs_
            )
        y = self._columns_of(y, "y")
        refuse_large("y", y)
        spread, size = np.ptp(y, axis=0), np.abs(y).max(axis=0)
        close = (spread > 1e-12 * size) & (spread < LEAST_SPREAD)
        if close.any():
            raise ValueError(
                f"The parameters of column {close.argmax()} of y must spread over "
                f"{LEAST_SPREAD:g} or more, as their variance must be a number above "
                f"0; they spread over {spread[close.argmax()]:g}: divide them by their "
                "scale."
            )
        return X, y, weights

    def _columns_of(self, y, name):
        """Return parameters as float64 rows, one for each simulation."""
        y = np.asarray(y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"{name} has a width of {y.shape[1]}, but {type(self).__name__} has "
                f"seen n_outputs_ = {self.n_outputs_}: one column for each parameter."
            )
        return y

    def _empty_table(self):
        return Table(self.n_features_in_, self.n_outputs_)

    def _appended(self, table, X, y, weights):
        """Return the table with these simulations.

        Each time their number has doubled, warn of codes for missing values.
        """
        y, before = y.reshape(len(X), -1), table.n_rows
        self._support.check(y)
        table = table.appended(X, self._support.forward(y), weights)
        if has_doubled(before, table.n_rows):
            names = vars(self).get("feature_names_in_", ())
            warn_of_sentinels(table.summaries[:, : table.n_rows].T, names)
        return table

    # Settings.

    def _learned(self, table, tasks=lambda steps, name: steps):
        """Learn the settings from a table."""
        if table.n_rows > 1 and (table.lowest == table.highest).all():
            warn_user(
                "All summaries are constant, and say nothing about the parameters: "
                "check the simulator."
            )
        equal = table.least == table.most
        if table.n_rows > 1 and equal.all():
            warn_user(
                "All parameters are equal, and so are those of the posterior: check "
                "the prior from which the simulations were drawn."
            )
        elif table.n_rows > 1 and equal.any():
            columns = ", ".join(map(str, np.flatnonzero(equal)))
            warn_user(
                f"The value of parameter {columns} is the same in all simulations, and "
                "in the posterior. The density and the scores are those of the other "
                "parameters: leave the parameter out, or check the prior."
            )
        metric = "mad" if self.metric == "cv" else self.metric
        settings = Settings(self, table, self._support, metric)
        if settings.compares and table.n_rows > 1:
            pairs, weights = held_out_pairs(table, self.n_validation, self._generator())
            found = validated(settings, table, pairs, weights, tasks)
            if self.metric == "cv" and (other := self._better_metric(table, found)):
                settings = other
                found = validated(settings, table, found.pairs, found.weights)
            settings.adopt(found)
            if self.bandwidth == "cv" and not equal.all():
                found.warn_at_the_end()
            self._warn_of_unrelated(table, settings, found)
        return settings

    def _better_metric(self, table, found):
        """Return settings with a metric that pairs clearly prefer to "mad", or None."""
        if len(table.summaries) == 1 or len(found.scores) < FEW_PAIRS:
            return None
        better, most = None, LEAST_GAIN
        for metric in ("whiten", "regression"):
            settings = Settings(self, table, self._support, metric)
            gain = found.gain_of(settings, table, FEW_PAIRS)
            if gain.exceeds(LEAST_GAIN, 1.0):
                gain = found.gain_of(settings, table, SOME_PAIRS)
                if gain.exceeds(most):
                    better, most = settings, gain.mean
        return better

    def _warn_of_unrelated(self, table, settings, found):
        """Warn if held-out pairs are more probable without unrelated summaries."""
        related = related_summaries(table)
        if related.all() or not related.any():
            return
        table = table.of_summaries(related)
        settings = Settings(self, table, self._support, settings.metric)
        names = vars(self).get("feature_names_in_", ())
        warn_of_unrelated(related, found.gain_of(settings, table, MOST_PAIRS), names)

    def _ready(self):
        """Return the current settings."""
        check_is_fitted(self)
        return self._answer() if self._settings is None else self._settings

    def _compute(self):
        """Learn the settings of a stream that has not fixed them."""
        return self._learned(self._table.head(FIRST_FIT))

    def _choice(self):
        """Return the choice for all observations."""
        settings, total = self._ready(), self._table.total()
        settings.check_neighbors(total)
        return settings.choice(total)

    def _generator_of(self, random_state):
        """Return a generator seeded by `random_state`, or by the estimator's."""
        if random_state is None:
            return self._generator()
        seed = check_random_state(random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    # Posteriors.

    def _rows(self, X, **checks):
        if isinstance(X, SimulationTable):
            raise TypeError(
                "X is a SimulationTable, and should be summaries that were observed: "
                "give table.summaries for those of its simulations."
            )
        return super()._rows(X, **checks)

    def _parameters(self, y, name):
        """Validate parameters at which a density is evaluated."""
        y = as_numbers(name, y, allow_nd=False, ensure_min_samples=1)
        return self._columns_of(y, name)

    def _observed(self, X):
        """Return observations in the metric, and whether each is far outside.

        Warns of those that are.
        """
        table, settings = self._table, self._ready()
        X, far = within_reach(X, table)
        axes = settings.neighbors.axes(table)
        if axes is not None:
            far = warn_of_impossible(X, far, axes)
        return np.ascontiguousarray(settings.neighbors.metric.project(X.T).T), far

    def _for_each(self, X, function):
        """Return `function(posterior, row)` for each observation, a row of X."""
        check_is_fitted(self)
        X = self._rows(X)
        settings, table, choice = self._ready(), self._table, self._choice()
        observations, far = self._observed(X)
        choices = [choice] * len(X)
        if settings.validation is not None:
            scaled = observations * settings.neighbors.metric.precisions
            near = map(settings.validation.best_near, scaled)
            choices = [settings.choice(table.total(), chosen) for chosen in near]
        numbers = np.array([choice.n_neighbors for choice in choices])
        algorithm = settings.neighbors.prepared(
            table, len(X), numbers.max() + 1, self.algorithm
        )

        least, most = self._support.unknown_range(table)
        width = table.most - table.least
        beyond = np.zeros((2, len(X), 2, self.n_outputs_))
        n_as_far = np.full(len(X), MOST_AS_FAR + 1)
        judged = ~far & (table.n_rows >= FEWEST)

        def answer(rows, k):
            found = settings.around(table, observations[rows], k + 1, algorithm)
            answers = []
            for row, nearest in zip(rows, found, strict=True):
                if judged[row] and on_one_side(nearest[1]):
                    n_as_far[row] = as_far(
                        table, settings.neighbors, nearest[0], nearest[2], algorithm
                    )
                posterior = settings.posterior(table, nearest, choices[row])
                beyond[0, row] = shares_beyond(posterior, least, most)
                beyond[1, row] = shares_beyond(posterior, least - width, most + width)
                answers.append(function(posterior, row))
            return answers

        jobs = effective_n_jobs(self.n_jobs)
        parts = [
            (part, k)
            for k in np.unique(numbers)
            for part in np.array_split(np.flatnonzero(numbers == k), jobs)
            if len(part)
        ]
        answers = in_threads(jobs, [(answer, *part) for part in parts])
        warn_of_tails(n_as_far, table)
        beyond[:, far | (n_as_far <= MOST_AS_FAR)] = 0.0  # a warning was given already
        warn_beyond(*beyond, table)
        results = dict(
            pair
            for (rows, _), some in zip(parts, answers, strict=True)
            for pair in zip(rows, some, strict=True)
        )
        return [results[row] for row in range(len(X))]

    def _like_y(self, values):
        """Drop the last axis if y had one dimension."""
        return values[..., 0] if self._one_dimensional else values
