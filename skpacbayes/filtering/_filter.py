"""A particle filter that resamples within clusters of its particles."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._arguments import as_levels, check_count
from .._base import PacBayesEstimator, fit_context, widened
from .._compat import (
    HasMethods,
    Interval,
    StrOptions,
    callback_management_context,
)
from .._sentinels import (
    FAR_IN_SUMS,
    column_of,
    ends_of,
    warn_of_far_rows,
    warn_of_sentinels,
)
from .._stream import StreamingEstimator, partial_fit_context
from ._bounded_series import BoundedSeriesEstimator
from ._cloud import forecast, moments, rows_of, weigh
from ._density import (
    check_initial,
    check_log_likelihood,
    check_log_transition,
    check_logarithm,
    check_transition,
)
from ._forecast import (
    forecast_shaped,
    log_scores,
    simulated,
    summarised,
    warn_of_features_without_noise,
)
from ._generators import continued, seeded
from ._likelihood_noise import log_likelihood_variance, warn_of_noise
from ._model import CalledModel, asked_for
from ._resampling import SCHEMES, draw, one_cell
from ._sampling import Bootstrap, QuasiMonteCarlo
from ._seen_rows import first_and_last, warn_of_seen_rows
from ._smoothing import smoothed, trajectories
from ._step import Collapses, advance, look
from .models import LocalLevel


class ClusteredParticleFilter(BoundedSeriesEstimator, StreamingEstimator):
    """Particle filter of any state-space model, clustered or by quasi-Monte Carlo.

    A hidden state evolves by a model from one row to the next, and each row of X is a
    noisy observation of it. Weighted particles approximate the distribution of the
    state given the rows so far. Resampling within clusters of particles [1]_ preserves
    improbable modes until further rows decide between them. ``method="sqmc"`` is
    sequential quasi-Monte Carlo [2]_, whose errors are many times smaller in few
    dimensions.

    Parameters
    ----------
    model : object or None, default=None
        State-space model: any object with `n_noise`, `initial`, `transition` and
        `log_likelihood`, as described in :mod:`skpacbayes.filtering.models`. None:
        `LocalLevel()`, with moments estimated from X.
    n_particles : int, default=1000
        Number of particles. A power of two is best for "sqmc".
    n_clusters : int or None, default=30
        Number of clusters within which the bootstrap filter resamples, at most a tenth
        of the number of particles. None: the plain bootstrap filter.
    conservation : float in [0, 1], default=0.5
        Degree to which clusters keep their number of particles: a cluster of `c`
        particles and weight `v` has about ``(1 - conservation) * n_particles * v +
        conservation * c`` offspring of equal weights, which sum to `v`. 1: the method
        of [1]_; 0: plain resampling, stratified by cluster.
    clusterer : object or None, default=None
        Clusterer with `fit_predict`, used instead of k-means. It is cloned, and its
        `random_state` is set if it is None. The label -1 counts as a cluster.
    method : {"bootstrap", "sqmc"}, default="bootstrap"
        "bootstrap": particles are moved by independent noise. "sqmc": particles are
        resampled along a Hilbert curve and moved by a scrambled Sobol point set, at
        every row; `n_clusters`, `conservation`, `clusterer`, `resampling` and
        `ess_threshold` are not used.
    resampling : str, default="systematic"
        Resampling scheme within a cluster: "systematic", "stratified", "multinomial" or
        "residual".
    ess_threshold : float in [0, 1], default=0.5
        The bootstrap filter resamples if the effective sample size is below this share
        of the number of particles.
    proposal : {"auto", "prior", "auxiliary"}, default="auto"
        Proposal of the particles at a row. "prior": the transition. "auto": the model's
        `proposal` given the row, if it has one, as the linear models do; it is far more
        accurate if a row is much more informative than the transition. "auxiliary": the
        same, with ancestors drawn by the model's `log_lookahead`.
    tempering : int or None, default=None
        Number of latest rows, including the current one, whose noise is updated if a
        row is surprising. None: no tempering. With an integer, a row that would halve
        the effective sample size is weighted in stages, each by a power of its
        likelihood; between stages, Metropolis steps update the noise of the latest rows
        [3]_. Use about 5 if rows are precise, the transition is not, and more particles
        are expensive, as for bearings. Not for "sqmc".
    underflow : {"warn", "raise"}, default="warn"
        What to do if the likelihood of a row is zero at every particle: warn, and
        continue as if it were missing, with a log-likelihood of -inf; or raise
        FloatingPointError. It may change within a stream.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.

    Attributes
    ----------
    particles_ : ndarray of shape (n_particles, n_states)
        Particles at the last row.
    weights_ : ndarray of shape (n_particles,)
        Weights of the particles, which sum to 1.
    mean_ : ndarray of shape (n_states,)
        Filtered mean at the last row.
    covariance_ : ndarray of shape (n_states, n_states)
        Filtered covariance at the last row.
    log_likelihood_ : float
        Log-likelihood of all rows learnt; its exponential is an unbiased estimate of
        the likelihood.
    log_likelihood_std_ : float
        Estimated standard deviation of `log_likelihood_` between seeds. With at least
        100 particles it is within a factor of about two up to 1; otherwise it is
        usually a lower bound. For "sqmc" and a state of one or two dimensions it is
        that of "bootstrap", and too large.
    ess_ : float
        Effective sample size of the weights, from 1 to `n_particles`.
    n_resamplings_ : int
        Number of times that the particles were resampled.
    ancestors_ : ndarray of int
        Indices of the particles of the first row that have descendants.
    model_ : object
        Clone of the model that is used; if the model learns, it has observed the rows.
    n_samples_seen_ : int
        Number of rows since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    Notes
    -----
    Let `C_j` be the clusters, `w_i` the weights of the particles, and `v_j` their sum
    in `C_j`. Each of the `n_j` offspring of cluster j is drawn with probabilities ``w_i
    / v_j``, and has weight ``v_j / n_j`` (the weights in line 12 of Algorithm 4 of [1]_
    sum to the number of particles). Resampling is unbiased (Proposition 1), whatever
    the clusters and the `conservation`. The estimate of ``p(y_t | past)`` is ``sum(w_i
    * likelihood_i)``.

    The clusters are found by k-means on standardised particles, when resampling. They
    help if modes have to survive long ambiguity, or if a likelihood is expensive; more
    particles have the same effect. With a single mode, ``conservation=1`` reduces the
    accuracy.

    "sqmc" maps each coordinate to (0, 1) by ``1/2 + s / (2 + 2 |s|)`` of its standard
    score `s`, and orders particles by the Hilbert curve through the first eight
    coordinates. Its points at a row are one of up to 64 scrambled Sobol sets, chosen
    at random, with a new random digital shift.

    The exponents of the stages of a tempered row, each of which keeps half the
    effective sample size, are chosen by a separate pilot run with an eighth of the
    particles, so that the estimate of the likelihood stays unbiased. The noise of the
    last `tempering` rows is kept for each particle. It is updated by three Metropolis
    steps with random step sizes for each particle, from 1/50 to 1. For a model that
    observes rows, only the noise of the last row is updated.

    Memory does not grow with the stream. `fit` and `partial_fit` give the same result,
    except for a model that observes rows, such as the default: in `fit` it observes all
    rows before filtering, in `partial_fit` each row after it was filtered.

    References
    ----------
    .. [1] K. Fan and K. Heller, "k-means: Fighting against Degeneracy in Sequential
       Monte Carlo with an Application to Tracking", 2018 (Algorithms 4 and 5).
    .. [2] M. Gerber and N. Chopin, "Sequential quasi-Monte Carlo", JRSS B 77, 2015;
       section 2.3 of N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet, "On some
       recent advances on high dimensional Bayesian statistics", 2015.
    .. [3] W. R. Gilks and C. Berzuini, "Following a moving target: Monte Carlo
       inference for dynamic Bayesian models", JRSS B 63, 2001; the steps are those of
       S. L. Cotter, G. O. Roberts, A. M. Stuart and D. White, "MCMC methods for
       functions", Statistical Science 28, 2013.

    Examples
    --------
    Stochastic volatility of daily returns, and its current value:

    >>> import numpy as np
    >>> from skpacbayes.filtering import ClusteredParticleFilter
    >>> from skpacbayes.filtering.models import StochasticVolatility
    >>> rng = np.random.default_rng(0)
    >>> log_variance, returns = 0.0, []
    >>> for day in range(300):
    ...     log_variance = 0.9 * log_variance + 0.5 * rng.normal()
    ...     returns.append([0.01 * np.exp(log_variance / 2) * rng.normal()])
    >>> tracker = ClusteredParticleFilter(
    ...     StochasticVolatility(phi=0.9, sigma=0.5, beta=0.01),
    ...     method="sqmc",
    ...     n_particles=1024,
    ...     random_state=0,
    ... )
    >>> tracker = tracker.fit(returns[:200])
    >>> 0.01 * np.exp(tracker.mean_ / 2)
    array([0.007...])

    Choose the persistence by forecasts of the last hundred days; the true value is 0.9:

    >>> def forecasts(phi):
    ...     return tracker.set_params(model__phi=phi).fit(returns[:200])
    >>> max([0.0, 0.3, 0.6, 0.9, 0.99], key=lambda p: forecasts(p).score(returns[200:]))
    0.9
    """

    _parameter_constraints: dict = {
        "model": [None, HasMethods(["initial", "transition", "log_likelihood"])],
        "n_particles": [Interval(Integral, 2, None, closed="left")],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "conservation": [Interval(Real, 0, 1, closed="both")],
        "clusterer": [None, HasMethods("fit_predict")],
        "method": [StrOptions({"bootstrap", "sqmc"})],
        "resampling": [StrOptions(set(SCHEMES))],
        "ess_threshold": [Interval(Real, 0, 1, closed="both")],
        "proposal": [StrOptions({"auto", "prior", "auxiliary"})],
        "tempering": [None, Interval(Integral, 1, None, closed="left")],
        "underflow": [StrOptions({"warn", "raise"})],
        "random_state": ["random_state"],
    }

    _may_change = ("underflow",)

    _ends = None  # ends of the stream; None if a sampler of parameters learns its rows

    def __init__(
        self,
        model=None,
        *,
        n_particles=1000,
        n_clusters=30,
        conservation=0.5,
        clusterer=None,
        method="bootstrap",
        resampling="systematic",
        ess_threshold=0.5,
        proposal="auto",
        tempering=None,
        underflow="warn",
        random_state=None,
    ):
        self.model = model
        self.n_particles = n_particles
        self.n_clusters = n_clusters
        self.conservation = conservation
        self.clusterer = clusterer
        self.method = method
        self.resampling = resampling
        self.ess_threshold = ess_threshold
        self.proposal = proposal
        self.tempering = tempering
        self.underflow = underflow
        self.random_state = random_state

    @fit_context
    def fit(self, X, y=None, *, inputs=None):
        """Filter the rows in order, starting a new run.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Known inputs of each row, such as controls: the argument `u` of the model's
            functions.

        Returns
        -------
        self : ClusteredParticleFilter
            The fitted filter.

        Raises
        ------
        TypeError
            If a function of the model has unexpected arguments.
        ValueError
            If X exceeds 1e150 in size; if the model returns an array of the wrong
            shape, NaN, a proposal that is not a density, or a `log_transition` that is
            not that of `transition`; if inputs and rows differ in number.
        FloatingPointError
            If ``underflow="raise"`` and the likelihood of a row is zero at every
            particle.

        Warns
        -----
        UserWarning
            If several rows share a value far from all others of its column, such as
            -999, or a model that estimates its noise from X has one such row; a stream
            is not checked.
        """
        X, rows, run = self._started_run(X, inputs)
        for _, row in zip(self._tasks(len(X), "row", X), rows, strict=False):
            run.learn(row)
        return self._with_cloud_of(run, X)

    @fit_context
    def fit_filter(self, X, y=None, *, inputs=None):
        """Fit, and return the filtered moments of the same run.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given the rows up to it.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        X, rows, run = self._started_run(X, inputs)
        clouds = []
        for _, row in zip(self._tasks(len(X), "row", X), rows, strict=False):
            cloud = run.learn(row).cloud
            clouds.append(moments(cloud.weights, cloud.particles))
        self._with_cloud_of(run, X)
        means, stds = map(np.array, zip(*clouds, strict=True))
        return means, stds

    @fit_context
    def fit_smooth(self, X, y=None, *, inputs=None):
        """Fit, and return the smoothed moments of the same run.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given all rows of X.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        X, rows, run = self._started_run(X, inputs)
        steps, learnt = [], []
        for _, row in zip(self._tasks(len(X), "row", X), rows, strict=False):
            steps.append(run.learn(row))
            learnt.append(row)
        self._with_cloud_of(run, X)
        return smoothed(steps, learnt, self._called_model(), self._continued())

    @partial_fit_context
    def partial_fit(self, X, y=None, *, inputs=None):
        """Filter more rows, in the order given.

        The result does not depend on how rows are split into calls. A call that raises
        leaves the filter unchanged.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.

        Returns
        -------
        self : ClusteredParticleFilter
            The filter.

        Raises
        ------
        TypeError, ValueError, FloatingPointError
            As in `fit`; also if a parameter changed since the stream started.
        """
        begun = self._streaming()
        X = self._rows(X, reset=not begun)
        inputs = self._checked_inputs(inputs, len(X), begin=not begun)
        if not begun:
            self._begin()
        vars(self).update(self._learnt(X, inputs), _ends=first_and_last(X, self._ends))
        return self

    def filter(self, X, *, inputs=None, random_state=None):
        """Filter rows that follow those learnt, without learning them.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise. None: the same noise as in `partial_fit`, here and in the
            methods below.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given the rows up to it.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        return _filtered(step for step, _ in self._run(X, inputs, random_state))

    def smooth(self, X, *, inputs=None, random_state=None):
        """Smooth rows that follow those learnt, without learning them.

        The moments are those of `n_particles` trajectories, see `sample_trajectories`.
        All particles of the run are in memory.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given all of X and the rows learnt.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.

        Raises
        ------
        ValueError
            As in `sample_trajectories`.
        """
        run, rows = zip(*self._run(X, inputs, random_state), strict=True)
        generator = self._continued(random_state)
        return smoothed(run, rows, self._called_model(), generator)

    def sample_trajectories(
        self, X, n_trajectories=100, *, inputs=None, random_state=None
    ):
        """Draw trajectories of the state given rows that follow those learnt.

        Trajectories are drawn backwards by four Metropolis moves for each state [1]_,
        in a time per trajectory that does not depend on the number of particles. The
        density of a move is the model's `log_transition`, or is derived if noise is
        additive, ``transition(x, z, t) = f(x, t) + L(x, t) z``. Otherwise, and at rows
        into which it is not, as where states reach a bound, ancestors are used.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        n_trajectories : int, default=100
            Number of trajectories.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        trajectories : ndarray of shape (n_trajectories, n_timesteps, n_states)
            The trajectories.

        Raises
        ------
        ValueError
            If the density of moves is unknown, at all rows or at some, and too few
            particles before these have descendants; if `tempering` exceeds 1, except
            with a model that observes rows (see Notes).

        References
        ----------
        .. [1] H.-D. Dau and N. Chopin, "On backward smoothing algorithms", Annals of
           Statistics 51, 2023.
        """
        n_trajectories = check_count("n_trajectories", n_trajectories)
        run, rows = zip(*self._run(X, inputs, random_state), strict=True)
        generator = self._continued(random_state)
        return trajectories(run, rows, self._called_model(), n_trajectories, generator)

    def forecast(
        self,
        h,
        *,
        of="observations",
        quantiles=(0.05, 0.5, 0.95),
        inputs=None,
        random_state=None,
    ):
        """Forecast the next rows, or their states, by simulation.

        Parameters
        ----------
        h : int
            Number of rows ahead.
        of : {"observations", "states"}, default="observations"
            What to forecast. Observations are drawn by the model's `observation`.
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Levels of the quantiles.
        inputs : array-like of shape (h, n_inputs) or None, default=None
            Inputs of the rows ahead.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        forecast : Forecast
            A named tuple: `means` and `stds` of shape (h, k), `quantiles` of shape
            (n_quantiles, h, k) and `samples` of shape (n_particles, h, k), for k
            features or states.

        Raises
        ------
        ValueError
            If h is less than 1, if a level lies outside [0, 1], or if the model has no
            `observation` and needs it.
        """
        check_is_fitted(self)
        h = check_count("h", h)
        if of not in ("observations", "states"):
            raise ValueError(f'of should be "observations" or "states", got {of!r}.')
        levels = as_levels(quantiles, ends=True)
        inputs = self._checked_inputs(inputs, h, rows="h")
        generator, cloud = self._continued(random_state), self._cloud
        samples = forecast_shaped(self, h, of, len(cloud.weights))
        warn_of_features_without_noise(self.model_)
        chosen = draw(
            cloud.weights, one_cell(len(cloud.weights)), "systematic", generator
        )
        ahead = simulated(
            cloud.particles[chosen],
            cloud.time,
            cloud.row,
            [None] * h if inputs is None else inputs,
            self._called_model(),
            generator,
            of == "observations",
        )
        for step, (states, _, rows) in enumerate(ahead):
            samples[:, step] = rows if of == "observations" else states
        return summarised(samples, levels)

    def log_likelihoods(self, X, *, horizon=1, inputs=None, random_state=None):
        """Return the log density of each row given the rows before it.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        horizon : int, default=1
            Number of rows ahead: the density of a row is conditional on the rows up to
            `horizon` before it.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_timesteps,)
            Log densities; 0 for a missing row, NaN for the first ``horizon - 1`` rows.
        """
        horizon = check_count("horizon", horizon)
        run = self._run(X, inputs, random_state)
        if horizon == 1:
            return np.array([step.evidence for step, _ in run])
        run = list(run)
        X = np.array([row.values for _, row in run])
        inputs = self._checked_inputs(inputs, len(X))
        clouds = [self._cloud, *(step.cloud for step, _ in run)]
        generator = self._continued(random_state)
        return log_scores(clouds, X, inputs, horizon, self._called_model(), generator)

    def predict(self, X, *, inputs=None, random_state=None):
        """Predict the filtered mean after each of several alternative next rows.

        Rows are alternatives, not a sequence (use `filter` for a sequence). The mean is
        exactly `mean_` after `partial_fit` of the single row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Alternative next rows.
        inputs : array-like of shape (n_samples, n_inputs) or None, default=None
            Inputs of each alternative.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        means : ndarray of shape (n_samples, n_states)
            Filtered means.
        """
        alternatives = self._alternatives(X, inputs, random_state)
        with np.errstate(under="ignore"):  # a weight of zero
            return np.array([w.weights @ a.moved.particles for a, w in alternatives])

    def score_samples(self, X, *, inputs=None, random_state=None):
        """Return the log density of alternative next rows given the rows learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Alternative next rows.
        inputs : array-like of shape (n_samples, n_inputs) or None, default=None
            Inputs of each alternative.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        log_densities : ndarray of shape (n_samples,)
            Log densities; 0 for a missing row.
        """
        alternatives = self._alternatives(X, inputs, random_state)
        return np.array([weighting.evidence for _, weighting in alternatives])

    def score(self, X, y=None, *, inputs=None, random_state=None):
        """Return the mean of `log_likelihoods`, for search with `TimeSeriesSplit`.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        score : float
            Mean log density of a row given the rows before it.
        """
        found = self.log_likelihoods(X, inputs=inputs, random_state=random_state)
        return float(np.mean(found))

    # State after the last row.

    @property
    def particles_(self):
        """Particles at the last row, (n_particles, n_states)."""
        return self._cloud.particles

    @property
    def weights_(self):
        """Weights of the particles."""
        return self._cloud.weights

    @property
    def mean_(self):
        """Filtered mean at the last row."""
        return moments(self._cloud.weights, self._cloud.particles)[0]

    @property
    def covariance_(self):
        """Filtered covariance at the last row."""
        cloud = self._cloud
        centred = cloud.particles - moments(cloud.weights, cloud.particles)[0]
        return (centred.T * cloud.weights) @ centred

    @property
    def log_likelihood_(self):
        """Log-likelihood of the rows learnt."""
        return float(self._cloud.log_likelihood)

    @property
    def log_likelihood_std_(self):
        """Estimated standard deviation of the log-likelihood between seeds."""
        return log_likelihood_variance(self._cloud) ** 0.5

    @property
    def ess_(self):
        """Effective sample size of the weights."""
        return float(self._cloud.effective_size)

    @property
    def n_resamplings_(self):
        """Number of times that the particles were resampled."""
        return self._cloud.n_resamplings

    @property
    def ancestors_(self):
        """Indices of the particles of row 0 that have descendants."""
        return np.unique(self._cloud.roots)

    @property
    def n_samples_seen_(self):
        """Number of rows since the last `fit`."""
        return self._cloud.time + 1

    # The steps of `fit` and of `partial_fit`.

    def _started_run(self, X, inputs):
        """Start a run; return the validated X, its rows, and the run."""
        X = self._rows(X, reset=True)
        inputs = self._checked_inputs(inputs, len(X), begin=True)
        self._begin()
        if self._checks_moves:
            self._warn_of_far_values(X)
        if hasattr(self.model_, "observe"):
            self.model_ = self.model_.observe(X.copy())
        return X, rows_of(X, inputs, self.model_), Run(self)

    def _with_cloud_of(self, run, X):
        """Take the cloud after a run over the first rows of X, or all; return self."""
        self._cloud, self._random_state = run.cloud, run.generator.bit_generator.state
        self._ends = first_and_last(X[: self.n_samples_seen_])  # a callback may stop it
        run.collapses.warn()
        self._has_warned_of_noise = warn_of_noise(run)
        return self

    def _warn_of_far_values(self, X):
        """Warn of codes for missing values, and of a row that decides the noise."""
        names = vars(self).get("feature_names_in_", ())
        warned = warn_of_sentinels(X, names, allows_missing=True)
        given = getattr(self.model_, "get_params", dict)().values()
        estimates = hasattr(self.model_, "observe") and any(v is None for v in given)
        if estimates and not warned:
            called = [column_of(names, column) for column in range(X.shape[1])]
            effect = "decides the noise that the model estimates"
            warn_of_far_rows(ends_of(X), len(X), called, effect, FAR_IN_SUMS)

    def _begin(self):
        """Return the initial state, before any row."""
        model = LocalLevel() if self.model is None else self.model
        self.model_ = clone(widened(model), safe=False)
        self._clusterer = clone(self.clusterer, safe=False) if self.clusterer else None
        self._options = {name: getattr(self, name) for name in OPTIONS}
        self._asks = asked_for(self.model_, self._n_inputs is not None)
        if self.proposal == "auxiliary" and "log_lookahead" not in self._asks:
            raise ValueError(
                'proposal="auxiliary" needs a model with log_lookahead(x, y, t), which '
                f"{type(model).__name__} does not have."
            )
        if self.tempering is not None and self.method == "sqmc":
            raise ValueError(
                f'tempering={self.tempering} needs method="bootstrap", got "sqmc".'
            )
        self._cloud = self._ends = None
        self._has_warned_of_noise = False
        self._random_state = seeded(self._draw_seed()).bit_generator.state

    def _learn_at_once(self, X, y=None, *, inputs=None):
        X = self._plain(X)
        if X is None:
            return False
        learnt = self._learnt(X, self._checked_inputs(inputs, len(X)))
        self._publish(**learnt, _ends=first_and_last(X, self._ends))
        return True

    def _learnt(self, X, inputs):
        """Filter rows, which the model may observe; return the new state."""
        run = Run(self)
        observes = hasattr(run.model.model, "observe")
        for i, row in enumerate(rows_of(X, inputs, run.model.model)):
            first = run.cloud is None  # nothing to forecast the row from
            if observes and first:
                run.model = self._observing(run.model.model, X[i : i + 1])
            run.learn(row)
            if observes and not first:
                run.model = self._observing(run.model.model, X[i : i + 1])
        run.collapses.warn()
        warned = warn_of_noise(run, self._has_warned_of_noise)
        return {
            "_has_warned_of_noise": warned,
            "_cloud": run.cloud,
            "model_": run.model.model,
            "_random_state": run.generator.bit_generator.state,
        }

    def _observing(self, model, X):
        """Return a model that has observed rows, of which it gets a copy."""
        return self._called_model(model.observe(X.copy()))

    # Interface for samplers of parameters, which have many filters.

    _checks_moves = True  # False if a filter with other parameters was checked

    def _started(self, X, inputs):
        """Learn validated first rows of a stream; return the filter."""
        self.n_features_in_ = X.shape[1]
        self._n_inputs = None if inputs is None else inputs.shape[1]
        self._begin()
        vars(self).update(self._learnt(X, inputs))
        self._before_publication()
        return self

    def _advanced(self, X, inputs):
        """Return a filter that has also learnt these validated rows."""
        return self._with(**self._learnt(X, inputs))

    def _reseeded(self, seed):
        """Return a filter with the same particles and another random generator."""
        return self._with(_random_state=seeded(seed).bit_generator.state)

    def _with(self, **state):
        other = object.__new__(type(self))
        other.__dict__ = {**vars(self), **state}
        return other

    def _check_before(self, cloud, row, model):
        """Check the model before the first two rows."""
        if cloud is None:
            check_initial(model, self._options["n_particles"], {"u": row.inputs})
        elif cloud.time == 0:
            past = {"y_prev": cloud.row, "u": row.inputs}
            check_transition(model, cloud.particles, 1, past)
            check_log_transition(model, cloud.particles, 1, past)

    def _check_likelihood(self, before, cloud, row, model):
        """Check the likelihood at the first observed row, `row`, after its step."""
        y_prev = None if before is None else before.row
        x_prev = None if before is None else cloud.particles
        past = {"x_prev": x_prev, "y_prev": y_prev, "u": row.inputs}
        check_log_likelihood(model, cloud.particles, row.values, cloud.time, past)
        if before is None or "x_prev" not in self._asks["log_likelihood"]:
            past["x_prev"] = None
            check_logarithm(model, cloud.particles, row.values, cloud.time, past)

    # Methods that do not learn.

    def _run(self, X, inputs, random_state):
        """Yield the step of each row, and the row, without learning."""
        check_is_fitted(self)
        X = self._rows(X)
        inputs = self._checked_inputs(inputs, len(X))
        warn_of_seen_rows(self._ends, X, AS_FOLLOWING)
        run = Run(self, random_state)
        rows = rows_of(X, inputs, run.model.model)
        for _, row in zip(self._looks(X), rows, strict=False):
            yield run.advance(row), row
        run.collapses.warn()
        warn_of_noise(run, self._has_warned_of_noise)

    def _looks(self, X):
        """Yield the index of each row, as a task for callbacks."""
        if not self._watched():
            yield from range(len(X))
            return
        draft = PacBayesEstimator._draft(self, forgets=False)
        with callback_management_context(draft):
            yield from draft._tasks(len(X), "row", X)

    def _alternatives(self, X, inputs, random_state):
        """Yield the cloud moved to the next row, and its weighting by each row of X."""
        check_is_fitted(self)
        X = self._rows(X)
        inputs = self._checked_inputs(inputs, len(X))
        warn_of_seen_rows(self._ends, X, AS_ALTERNATIVES)
        model, sampling = self._called_model(), self._sampling()
        generator = self._continued(random_state)
        start, ahead = generator.bit_generator.state, None
        tempered = sampling.tempering is not None
        depends = model.guides() or sampling.auxiliary or inputs is not None
        for row in rows_of(X, inputs, model.model):
            if tempered or depends or ahead is None:
                generator.bit_generator.state = start
            if tempered:
                yield look(self._cloud, row, model, sampling, generator)
                continue
            if depends or ahead is None:
                ahead = forecast(self._cloud, row, model, sampling, generator)
            yield ahead, weigh(ahead, row, model)

    def _called_model(self, model=None):
        """Return a model, `model_` by default, as a `CalledModel`."""
        model = self.model_ if model is None else model
        return CalledModel(model, self._asks, self._options["proposal"] != "prior")

    def _sampling(self):
        """Return the sampling scheme of ancestors and noise."""
        options = self._options
        auxiliary = options["proposal"] == "auxiliary"
        if options["method"] == "sqmc":
            return QuasiMonteCarlo(options["n_particles"], auxiliary)
        return Bootstrap(
            options["n_particles"],
            options["n_clusters"],
            options["conservation"],
            self._clusterer,
            options["resampling"],
            options["ess_threshold"],
            auxiliary,
            options["tempering"],
        )

    def _continued(self, random_state=None):
        """Return the generator after the last row, or a seeded one."""
        if random_state is not None:
            seed = check_random_state(random_state).randint(2**31 - 1)
            return seeded(seed)
        return continued(self._random_state)


class Run:
    """The cloud of a filter as it moves from row to row, and what to warn of.

    Parameters
    ----------
    tracker : ClusteredParticleFilter
        The filter, which is not changed.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise. None: that of the filter.
    """

    def __init__(self, tracker, random_state=None):
        self.tracker = tracker
        self.model, self.sampling = tracker._called_model(), tracker._sampling()
        self.cloud, self.generator = tracker._cloud, tracker._continued(random_state)
        self.collapses = Collapses()

    def learn(self, row):
        """Advance by one row; check the model at the first two rows."""
        tracker, before = self.tracker, self.cloud
        if not tracker._checks_moves:
            return self.advance(row)
        tracker._check_before(before, row, self.model)
        step = self.advance(row)
        unseen = before is None or before.log_likelihood == 0.0  # no row observed
        if unseen and not row.silent:
            tracker._check_likelihood(before, step.cloud, row, self.model)
        return step

    def advance(self, row):
        """Resample, move and weight the particles; return the `Step`."""
        step = advance(
            self.cloud,
            row,
            self.model,
            self.sampling,
            self.generator,
            self.tracker.underflow,
        )
        self.collapses.note(step, row, self.cloud)
        self.cloud = step.cloud
        return step


OPTIONS = (
    "n_particles",
    "n_clusters",
    "conservation",
    "method",
    "resampling",
    "ess_threshold",
    "proposal",
    "tempering",
)

INSTEAD = "fit_filter and fit_smooth return the states at the rows that they learn."
AS_FOLLOWING = f"is taken as rows after the stream: {INSTEAD}"
AS_ALTERNATIVES = f"is taken as alternatives for the next row: {INSTEAD}"


def _filtered(steps):
    """Return means and standard deviations of the clouds of a run."""
    found = [moments(step.cloud.weights, step.cloud.particles) for step in steps]
    means, stds = zip(*found, strict=True)
    return np.array(means), np.array(stds)
