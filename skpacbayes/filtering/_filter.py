"""A particle filter that resamples within clusters of its particles."""

import copy
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from .._base import fit_context, partial_fit_context
from ._cloud import moments, weigh
from ._run import ParticleRun
from ._smoothing import smoothed


class ClusteredParticleFilter(ParticleRun):
    """Particle filter that keeps every mode alive, or integrates by quasi-Monte Carlo.

    A hidden state moves by a model from one row to the next, and each row of X is a
    noisy look at it. A cloud of weighted particles stands for the law of the state
    given the rows so far. Resampling within clusters of particles, from [1]_, lets
    unlikely modes survive until the rows decide; ``method="sqmc"`` is the sequential
    quasi-Monte Carlo of [2]_, whose errors are many times smaller in few dimensions.

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
    underflow : {"warn", "raise"}, default="warn"
        What to do with a row whose likelihood vanishes at every particle: warn, and go
        on as if it were missing, with a log-likelihood of -inf; or raise.
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
    coordinates. Its points are one scrambled Sobol set, with a new random digital
    shift at every row.

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
        "resampling": [
            StrOptions({"multinomial", "stratified", "systematic", "residual"})
        ],
        "ess_threshold": [Interval(Real, 0, 1, closed="both")],
        "underflow": [StrOptions({"warn", "raise"})],
        "random_state": ["random_state"],
    }

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
        self.underflow = underflow
        self.random_state = random_state

    @fit_context
    def fit(self, X, y=None):
        """Forget everything, then filter the rows once, in the order given.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        self : ClusteredParticleFilter
            The fitted filter.

        Raises
        ------
        ValueError
            If the model returns an array of the wrong shape, or NaN.
        FloatingPointError
            If ``underflow="raise"`` and a row's likelihood vanishes at every particle.
        """
        for _ in self._fitting(X):
            pass
        return self

    @fit_context
    def fit_filter(self, X, y=None):
        """Fit, and return the filtered states of the same run.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given the rows up to it.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        return _filtered(self._fitting(X))

    @fit_context
    def fit_smooth(self, X, y=None):
        """Fit, and return the smoothed states of the same run.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given all rows of X.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        run = list(self._fitting(X))
        return smoothed(run, self.model_, copy.deepcopy(self._random))

    @partial_fit_context
    def partial_fit(self, X, y=None):
        """Filter more rows, in the order given.

        Any way of cutting the same rows into calls gives the same state. A call that
        raises has learnt nothing.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        self : ClusteredParticleFilter
            The filter.

        Raises
        ------
        ValueError
            If the model returns an array of the wrong shape, or NaN; if a parameter
            changed since the run began.
        FloatingPointError
            As `fit`.
        """
        if self._streaming() and self._recognises(X) and not np.isinf(X).any():
            self._refuse_change()
            return self._learn(X)
        with self._all_or_nothing():
            streaming = self._streaming()
            X = self._rows(X, reset=not streaming)
            if streaming:
                self._refuse_change()
            else:
                self._begin()
            return self._learn(X)

    def filter(self, X):
        """Filter rows that follow those learnt, and learn nothing.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given the rows up to it.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        return _filtered(self._run(X))

    def smooth(self, X):
        """Filter rows that follow those learnt, then look back; learn nothing.

        With a model that has `log_transition`, 200 trajectories are drawn backwards
        through the clouds [1]_; otherwise the ancestors of the last particles are
        traced, which are few far back. All clouds of the run are kept meanwhile.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows in the order of time; NaN is a missing value.

        Returns
        -------
        means : ndarray of shape (n_timesteps, n_states)
            Mean of the state at each row, given all of X and the rows learnt.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.

        References
        ----------
        .. [1] S. Godsill, A. Doucet and M. West, "Monte Carlo smoothing for nonlinear
           time series", JASA 2004.
        """
        return smoothed(list(self._run(X)), self.model_, copy.deepcopy(self._random))

    def log_likelihoods(self, X):
        """Log density of each row given the rows before it, and those learnt.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_timesteps,)
            Natural logarithms of the densities; 0 for a missing row.
        """
        return np.array([evidence for _, evidence, _ in self._run(X)])

    def predict(self, X):
        """Mean of the state at the next row, for each row of X that it could be.

        Rows are alternatives, not a sequence: see `filter` for that. The mean is what
        `mean_` would be after `partial_fit` of the row alone, to the last digit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each of which could be the next.

        Returns
        -------
        means : ndarray of shape (n_samples, n_states)
            Filtered means.
        """
        ahead, rows = self._next(X)
        means = [
            weigh(ahead, row, self.model_).weights @ ahead.particles for row in rows
        ]
        return np.array(means)

    def score_samples(self, X):
        """Log density of the next row given the rows learnt, at each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each of which could be the next.

        Returns
        -------
        log_densities : ndarray of shape (n_samples,)
            Natural logarithms; 0 for a missing row.
        """
        ahead, rows = self._next(X)
        return np.array([weigh(ahead, row, self.model_).evidence for row in rows])

    def score(self, X, y=None):
        """Mean of `log_likelihoods`, as `GridSearchCV` with `TimeSeriesSplit` wants it.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log density of a row given the rows before it.
        """
        return float(np.mean(self.log_likelihoods(X)))


def _filtered(run):
    """Means and standard deviations of the clouds of a run."""
    found = [moments(cloud.weights, cloud.particles) for cloud, *_ in run]
    means, stds = zip(*found, strict=True)
    return np.array(means), np.array(stds)
