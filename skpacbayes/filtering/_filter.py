"""A particle filter that resamples within clusters of its particles."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from .._base import PacBayesEstimator, fit_context
from .._compat import (
    HasMethods,
    Interval,
    StrOptions,
    callback_management_context,
)
from .._stream import StreamingEstimator, partial_fit_context
from ._bounded_series import BoundedSeriesEstimator
from ._cloud import forecast, moments, rows_of, weigh
from ._density import check_log_transition, check_logarithm, check_transition
from ._forecast import log_scores, simulated, summarised
from ._generators import continued, seeded
from ._model import CalledModel, asked_for
from ._resampling import SCHEMES, draw, one_cell
from ._sampling import Bootstrap, QuasiMonteCarlo
from ._smoothing import smoothed, trajectories
from ._step import Collapses, advance, look
from .models import LocalLevel


class ClusteredParticleFilter(BoundedSeriesEstimator, StreamingEstimator):
    """Particle filter that keeps every mode alive, or integrates by quasi-Monte Carlo.

    A hidden state moves by a model from one row to the next, and each row of X is a
    noisy look at it. A cloud of weighted particles stands for the distribution of the
    state given the rows so far. Resampling within clusters of particles, from [1]_,
    lets unlikely modes survive until the rows decide; ``method="sqmc"`` is the
    sequential quasi-Monte Carlo of [2]_, whose errors are many times smaller in few
    dimensions.

    Parameters
    ----------
    model : object or None, default=None
        State-space model: any object with `n_noise`, `initial`, `transition` and
        `log_likelihood`, as :mod:`skpacbayes.filtering.models` has them and says how
        to write. None is `LocalLevel()`, with moments estimated from X.
    n_particles : int, default=1000
        Number of particles. A power of two is best for "sqmc".
    n_clusters : int or None, default=30
        Clusters of particles within which the bootstrap resamples, at most a tenth of
        the particles. None is the plain filter.
    conservation : float in [0, 1], default=0.5
        How far clusters keep their number of particles: a cluster of `c` particles and
        weight `v` has about ``(1 - conservation) * n_particles * v + conservation * c``
        offspring, which share `v` evenly. 1 is the method of [1]_; 0 is plain
        resampling, stratified by cluster.
    clusterer : object or None, default=None
        Anything with `fit_predict`, which labels the particles instead of k-means; it
        is cloned, and a `random_state` of None in it is set. The label -1 is one
        more cluster.
    method : {"bootstrap", "sqmc"}, default="bootstrap"
        "bootstrap" moves particles by independent noise. "sqmc" resamples along a
        Hilbert curve and moves by one scrambled Sobol point set; it resamples at every
        row, and has no use for `n_clusters`, `conservation`, `clusterer`, `resampling`
        and `ess_threshold`.
    resampling : str, default="systematic"
        How offspring are drawn within a cluster: "systematic", "stratified",
        "multinomial" or "residual".
    ess_threshold : float in [0, 1], default=0.5
        The bootstrap resamples where the effective sample size is below this share of
        the particles.
    proposal : {"auto", "prior", "auxiliary"}, default="auto"
        How a row guides the particles that it weighs. "auto" moves them by the model's
        `proposal` where it has one, as the linear models have: where a row says much
        more than the transition this is many times as accurate. "auxiliary" also
        draws the ancestors by the model's `log_lookahead`. "prior" moves them by the
        transition alone.
    tempering : int or None, default=None
        Number of rows, the last included, whose noise is moved where a row surprises.
        None weighs each row at once, as filters do. With an integer, a row that would
        leave less than half the effective particles is weighed in stages, each by a
        power of its likelihood; between these, Metropolis steps move the noise of the
        last rows [3]_. Use about 5 where rows are precise, the transition is not, and
        more particles are expensive, such as for bearings. Not for "sqmc".
    underflow : {"warn", "raise"}, default="warn"
        What to do with a row whose likelihood vanishes at every particle: warn, and go
        on as if it were missing, with a log-likelihood of -inf; or raise. It may change
        within a stream.
    random_state : int, RandomState instance or None, default=None
        Seeds the noise of a run.

    Attributes
    ----------
    particles_ : ndarray of shape (n_particles, n_states)
        States of the particles at the last row.
    weights_ : ndarray of shape (n_particles,)
        Their weights, which sum to 1.
    mean_ : ndarray of shape (n_states,)
        Filtered mean at the last row.
    covariance_ : ndarray of shape (n_states, n_states)
        Filtered covariance at the last row.
    log_likelihood_ : float
        Log density of all rows learnt, in natural logarithms; its exponential is an
        unbiased estimate of the likelihood.
    ess_ : float
        Effective sample size of the weights, from 1 to `n_particles`.
    n_resamplings_ : int
        Number of rows before which the particles were resampled.
    ancestors_ : ndarray of int
        The particles of the first row that still have descendants.
    model_ : object
        The model as it is used: a clone, which has observed the rows if it learns.
    n_samples_seen_ : int
        Rows since the last `fit`.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    With labels `C_j` of the particles, weights `w_i` and `v_j` their sum in `C_j`, each
    of the `n_j` offspring of cluster j is drawn by ``w_i / v_j`` and weighs ``v_j /
    n_j`` (the weights in line 12 of Algorithm 4 of [1]_ sum to the number of
    particles). The weighted cloud keeps its expectation (Proposition 1), whatever the
    clusters and the `conservation`. The estimate of ``p(y_t | past)`` is ``sum(w_i *
    likelihood_i)`` with the weights that were carried.

    The clusters are found by k-means on standardised particles, when resampling only.
    They pay where modes must outlive long ambiguity or a likelihood is costly; where
    more particles are cheap, more particles do as well. With one mode,
    ``conservation=1`` costs accuracy.

    "sqmc" maps each coordinate to (0, 1) by ``1/2 + s / (2 + 2 |s|)`` of its standard
    score `s`, and orders particles by the Hilbert curve through the first eight
    coordinates. Its points at a row are one of up to 64 scrambled Sobol sets, chosen
    at random, with a new random digital shift.

    The exponents of the stages of a tempered row, each of which keeps half the
    effective particles, are chosen by a pilot of an eighth as many particles, which is
    then thrown away: so the estimate of the likelihood stays unbiased. Of each particle
    the noise of the last `tempering` rows is kept. The noise is moved by three steps
    whose sizes are drawn anew for each particle, from a fiftieth to the whole. A model
    that observes is moved at the last row only.

    The state does not grow with the stream. `fit` and `partial_fit` do the same, but
    for a model that observes, such as the default: before `fit` it sees all rows, in
    `partial_fit` each row after it was filtered.

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
    Daily returns swing more in some weeks than in others. How large is today's swing?

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

    The persistence that forecasts the last hundred days best is the true one:

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
        """Forget everything, then filter the rows once, in the order given.

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
            If a function of the model takes other arguments than it is called with.
        ValueError
            If X is infinite or beyond 1e150; if the model returns an array of the wrong
            shape, or NaN, a proposal that is no density, or a `log_transition` that is
            not that of `transition`; if inputs and rows differ in number.
        FloatingPointError
            If ``underflow="raise"`` and a row's likelihood vanishes at every particle.
        """
        for _ in self._fitting(X, inputs):
            pass
        return self

    @fit_context
    def fit_filter(self, X, y=None, *, inputs=None):
        """Fit, and return the filtered states of the same run.

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
        return _filtered(step for step, _ in self._fitting(X, inputs))

    @fit_context
    def fit_smooth(self, X, y=None, *, inputs=None):
        """Fit, and return the smoothed states of the same run.

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
        run, rows = zip(*self._fitting(X, inputs), strict=True)
        return smoothed(run, rows, self._called_model(), self._continued())

    @partial_fit_context
    def partial_fit(self, X, y=None, *, inputs=None):
        """Filter more rows, in the order given.

        Any way of cutting the same rows into calls gives the same state. A call that
        raises has learnt nothing.

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
            As `fit`; also if a parameter changed since the stream began.
        """
        begun = self._streaming()
        X = self._rows(X, reset=not begun)
        inputs = self._checked_inputs(inputs, len(X), begin=not begun)
        if not begun:
            self._begin()
        vars(self).update(self._learnt(X, inputs))
        return self

    def filter(self, X, *, inputs=None, random_state=None):
        """Filter rows that follow those learnt, and learn nothing.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise. With None it is that with which `partial_fit` would go on,
            here and in the methods below.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given the rows up to it.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        return _filtered(step for step, _ in self._run(X, inputs, random_state))

    def smooth(self, X, *, inputs=None, random_state=None):
        """Filter rows that follow those learnt, then look back; learn nothing.

        Moments of as many trajectories as there are particles: see
        `sample_trajectories`. All clouds of the run are kept meanwhile.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given all of X and the rows learnt.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.

        Raises
        ------
        ValueError
            As `sample_trajectories`.
        """
        run, rows = zip(*self._run(X, inputs, random_state), strict=True)
        generator = self._continued(random_state)
        return smoothed(run, rows, self._called_model(), generator)

    def sample_trajectories(
        self, X, n_trajectories=100, *, inputs=None, random_state=None
    ):
        """Draw trajectories of the state given rows that follow those learnt.

        Drawn backwards through the clouds by four Metropolis moves for each state [1]_,
        at a cost that does not depend on the number of particles. The density of a move
        is the model's `log_transition`; without one it is found where the noise is
        added, ``transition(x, z, t) = f(x, t) + L(x, t) z``. Otherwise the ancestors of
        the last particles are traced.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        n_trajectories : int, default=100
            Number of trajectories.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        trajectories : ndarray of shape (n_trajectories, n_timesteps, n_states)
            The trajectories.

        Raises
        ------
        ValueError
            If the density of a move is not known, and too few particles of the first
            row have descendants to trace; if `tempering` exceeds 1.

        References
        ----------
        .. [1] H.-D. Dau and N. Chopin, "On backward smoothing algorithms", Annals of
           Statistics 51, 2023.
        """
        check_scalar(n_trajectories, "n_trajectories", Integral, min_val=1)
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
        """Simulate the rows that come next, or the states behind them.

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
            Seeds the noise.

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
        check_scalar(h, "h", Integral, min_val=1)
        if of not in ("observations", "states"):
            raise ValueError(f'of should be "observations" or "states", got {of!r}.')
        levels = np.asarray(quantiles, dtype=float).reshape(-1)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"quantiles should lie in [0, 1], got {quantiles!r}.")
        inputs = self._checked_inputs(inputs, h, rows="h")
        generator, cloud = self._continued(random_state), self._cloud
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
        samples = [rows if of == "observations" else x for x, _, rows in ahead]
        return summarised(np.stack(samples, axis=1), levels)

    def log_likelihoods(self, X, *, horizon=1, inputs=None, random_state=None):
        """Log density of each row given the rows before it, and those learnt.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        horizon : int, default=1
            How many rows ahead each row is forecast: its density is that given the rows
            up to `horizon` before it.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_timesteps,)
            Natural logarithms of the densities; 0 for a missing row, NaN for the first
            ``horizon - 1``, which lie fewer rows ahead.
        """
        check_scalar(horizon, "horizon", Integral, min_val=1)
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
        """Mean of the state at the next row, for each row of X that it could be.

        Rows are alternatives, not a sequence: see `filter` for that. The mean is what
        `mean_` would be after `partial_fit` of the row alone, to the last digit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each of which could be the next.
        inputs : array-like of shape (n_samples, n_inputs) or None, default=None
            Inputs of each alternative.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        means : ndarray of shape (n_samples, n_states)
            Filtered means.
        """
        alternatives = self._alternatives(X, inputs, random_state)
        with np.errstate(under="ignore"):  # a weight of zero
            return np.array([w.weights @ a.moved.particles for a, w in alternatives])

    def score_samples(self, X, *, inputs=None, random_state=None):
        """Log density of the next row given the rows learnt, at each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each of which could be the next.
        inputs : array-like of shape (n_samples, n_inputs) or None, default=None
            Inputs of each alternative.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        log_densities : ndarray of shape (n_samples,)
            Natural logarithms; 0 for a missing row.
        """
        alternatives = self._alternatives(X, inputs, random_state)
        return np.array([weighting.evidence for _, weighting in alternatives])

    def score(self, X, y=None, *, inputs=None, random_state=None):
        """Mean of `log_likelihoods`, as `GridSearchCV` with `TimeSeriesSplit` wants it.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seeds the noise.

        Returns
        -------
        score : float
            Mean log density of a row given the rows before it.
        """
        found = self.log_likelihoods(X, inputs=inputs, random_state=random_state)
        return float(np.mean(found))

    # What is known after the last row.

    @property
    def particles_(self):
        """Particles of the last row, (n_particles, n_states)."""
        return self._cloud.particles

    @property
    def weights_(self):
        """Their weights."""
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
        """Log density of the rows learnt."""
        return float(self._cloud.log_likelihood)

    @property
    def ess_(self):
        """Effective sample size of the weights."""
        return float(self._cloud.effective_size)

    @property
    def n_resamplings_(self):
        """Number of rows before which the particles were resampled."""
        return self._cloud.n_resamplings

    @property
    def ancestors_(self):
        """Particles of row 0 that still have descendants."""
        return np.unique(self._cloud.roots)

    @property
    def n_samples_seen_(self):
        """Rows since the last `fit`."""
        return self._cloud.time + 1

    # The steps of `fit` and of `partial_fit`.

    def _fitting(self, X, inputs):
        """Begin, and yield the step of each row learnt, and the row."""
        X = self._rows(X, reset=True)
        inputs = self._checked_inputs(inputs, len(X), begin=True)
        self._begin()
        if hasattr(self.model_, "observe"):
            self.model_ = self.model_.observe(X)
        model, sampling = self._called_model(), self._sampling()
        cloud, generator = None, self._continued()
        rows = rows_of(X, inputs, self.model_)
        collapses = Collapses()
        for _, row in zip(self._tasks(len(X), "row", X), rows, strict=False):
            step = self._learn_row(cloud, row, model, sampling, generator)
            cloud = step.cloud
            collapses.note(step, row)
            yield step, row
        self._cloud, self._random_state = cloud, generator.bit_generator.state
        collapses.warn()

    def _begin(self):
        """Set the state before row 0."""
        model = LocalLevel() if self.model is None else self.model
        if isinstance(model, type):
            raise TypeError(f"model must be an instance: {model.__name__}(...).")
        self.model_ = clone(model, safe=False)
        self._clusterer = clone(self.clusterer, safe=False) if self.clusterer else None
        self._options = {name: getattr(self, name) for name in OPTIONS}
        self._asks = asked_for(self.model_, self._n_inputs is not None)
        if self.proposal == "auxiliary" and "log_lookahead" not in self._asks:
            raise ValueError(
                'proposal="auxiliary" needs a model with log_lookahead(x, y, t), which '
                f"{type(model).__name__} has not."
            )
        if self.tempering is not None and self.method == "sqmc":
            raise ValueError(
                f'tempering={self.tempering} needs method="bootstrap", got "sqmc": '
                "points of low discrepancy cannot be moved."
            )
        self._cloud = None
        self._random_state = seeded(self._draw_seed()).bit_generator.state

    def _learn_at_once(self, X, y=None, *, inputs=None):
        X = self._plain(X)
        if X is None:
            return False
        self._publish(**self._learnt(X, self._checked_inputs(inputs, len(X))))
        return True

    def _learnt(self, X, inputs):
        """Filter rows, showing each to a model that observes; return the new state."""
        model, sampling = self._called_model(), self._sampling()
        cloud, generator = self._cloud, self._continued()
        observes, collapses = hasattr(model.model, "observe"), Collapses()
        for i, row in enumerate(rows_of(X, inputs, model.model)):
            first = cloud is None  # nothing to forecast the row from
            if observes and first:
                model = self._called_model(model.model.observe(X[i : i + 1]))
            step = self._learn_row(cloud, row, model, sampling, generator)
            cloud = step.cloud
            collapses.note(step, row)
            if observes and not first:
                model = self._called_model(model.model.observe(X[i : i + 1]))
        collapses.warn()
        return {
            "_cloud": cloud,
            "model_": model.model,
            "_random_state": generator.bit_generator.state,
        }

    # How a sampler of parameters, which holds many filters, calls them.

    _checks_moves = True  # not where a filter with other parameters has done so

    def _started(self, X, inputs):
        """Learn the first rows of a stream, which were validated; return the filter."""
        self.n_features_in_ = X.shape[1]
        self._n_inputs = None if inputs is None else inputs.shape[1]
        self._begin()
        vars(self).update(self._learnt(X, inputs))
        self._before_publication()
        return self

    def _advanced(self, X, inputs):
        """Return a filter that has also learnt these rows, which were validated."""
        return self._with(**self._learnt(X, inputs))

    def _reseeded(self, seed):
        """Return a filter with the same particles, and random numbers of its own."""
        return self._with(_random_state=seeded(seed).bit_generator.state)

    def _with(self, **state):
        other = object.__new__(type(self))
        other.__dict__ = {**vars(self), **state}
        return other

    def _learn_row(self, cloud, row, model, sampling, generator):
        """Learn one row; of the first two check the likelihood and the moves."""
        if self._checks_moves and cloud is not None and cloud.time == 0:
            past = {"y_prev": cloud.row, "u": row.inputs}
            check_transition(model, cloud.particles, 1, past)
            check_log_transition(model, cloud.particles, 1, past)
        step = advance(cloud, row, model, sampling, generator, self.underflow)
        began = cloud is None or cloud.log_likelihood == 0.0  # no row was observed
        if self._checks_moves and began and not row.silent:
            self._check_likelihood(cloud, step.cloud, row, model)
        return step

    def _check_likelihood(self, before, cloud, row, model):
        """Check the first row that is observed, where the past is known."""
        if before is None or "x_prev" not in self._asks["log_likelihood"]:
            y_prev = None if before is None else before.row
            past = {"x_prev": None, "y_prev": y_prev, "u": row.inputs}
            check_logarithm(model, cloud.particles, row.values, cloud.time, past)

    # What the methods that learn nothing share.

    def _run(self, X, inputs, random_state):
        """Yield the step of each row, and the row; learn nothing."""
        check_is_fitted(self)
        X = self._rows(X)
        inputs = self._checked_inputs(inputs, len(X))
        model, sampling = self._called_model(), self._sampling()
        cloud, generator = self._cloud, self._continued(random_state)
        rows, collapses = rows_of(X, inputs, model.model), Collapses()
        for _, row in zip(self._looks(X), rows, strict=False):
            step = advance(cloud, row, model, sampling, generator, self.underflow)
            cloud = step.cloud
            collapses.note(step, row)
            yield step, row
        collapses.warn()

    def _looks(self, X):
        """Yield the number of each row, a task that callbacks see and may stop."""
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
        """Return a model, `model_` by default, as the filter calls it."""
        model = self.model_ if model is None else model
        return CalledModel(model, self._asks, self._options["proposal"] != "prior")

    def _sampling(self):
        """How ancestors and noise are drawn."""
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
        """Return a generator that goes on from the last row, or one that is seeded."""
        if random_state is not None:
            seed = check_random_state(random_state).randint(2**31 - 1)
            return seeded(seed)
        return continued(self._random_state)


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


def _filtered(steps):
    """Means and standard deviations of the clouds of a run."""
    found = [moments(step.cloud.weights, step.cloud.particles) for step in steps]
    means, stds = zip(*found, strict=True)
    return np.array(means), np.array(stds)
