"""SMC^2: sequential inference on the parameters of a model."""

import warnings
from contextlib import contextmanager
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._arguments import as_levels, check_count, check_share
from .._arviz import ArviZMixin, ChainDraws
from .._base import fit_context, warn_user
from .._compat import Interval
from .._stream import StreamingEstimator, has_doubled, partial_fit_context
from ._bounded_series import BoundedSeriesEstimator
from ._cloud import moments, small_is_zero, warn_of_dropped_rows
from ._filter import ClusteredParticleFilter
from ._forecast import forecast_shaped, summarised
from ._generators import continued, seeded
from ._priors import Priors, check_priors
from ._resampling import draw, one_cell
from ._sampling import even_log_weights
from ._seen_rows import first_and_last, warn_of_seen_rows
from ._smc2_population import (
    MOST_GROWTH,
    MOST_NOISE,
    Population,
    Series,
    Target,
    learn_row,
)
from ._step import LEAST_LOG_LIKELIHOOD, warn_of_rounding

N_FUTURES = 2000  # number of simulated paths of a forecast


class SMC2(ArviZMixin, BoundedSeriesEstimator, StreamingEstimator):
    """Sequential posterior of the parameters and states of a state-space model.

    Memory, and the time of a move, grow with the length of the stream: all rows are
    kept, as the likelihood of new parameters is that of all rows.

    Each weighted draw of the parameters has its own particle filter. A row multiplies
    the weight of a draw by the filter's estimate of the density of the row. If the
    weights become uneven, the draws are resampled and moved by Metropolis steps, whose
    likelihoods are estimated by new filters over all rows (SMC^2 [1]_). As these
    estimates are unbiased, the draws converge to the exact posterior as their number
    grows, whatever the number of particles.

    Parameters
    ----------
    estimator : ClusteredParticleFilter
        A filter with a model. ``method="sqmc"`` with 64 to 256 particles suits states
        of one or two dimensions. The filters of the draws are copies of it with
        ``underflow="warn"``, seeds drawn from the `random_state` of SMC2, and more than
        `n_particles` particles if these are too few.
    priors : dict of str to distribution
        Prior of each parameter to be learnt, by its name in ``estimator.get_params()``
        such as "model__phi": continuous frozen distributions of `scipy.stats`.
    n_draws : int, default=200
        Number of draws of the parameters.
    n_moves : int, default=3
        Number of Metropolis steps of each draw after resampling. More steps take time,
        and leave fewer equal draws.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws and of the filters.

    Attributes
    ----------
    posterior_ : dict of str to ndarray of shape (n_draws,)
        Draws of each parameter. `to_arviz` converts equally weighted draws for ArviZ.
    weights_ : ndarray of shape (n_draws,)
        Weights of the draws, which sum to 1.
    log_evidence_ : float
        Log evidence of all rows learnt, with parameters and states integrated out.
        Differences between models are log Bayes factors.
    mean_ : ndarray of shape (n_states,)
        Filtered mean of the state at the last row, with parameters integrated out.
    covariance_ : ndarray of shape (n_states, n_states)
        Filtered covariance at the last row.
    ess_ : float
        Effective sample size of the weights, from 1 to `n_draws`.
    acceptance_rate_ : float
        Share of the Metropolis steps that were accepted; 1 before the first.
    n_particles_ : int
        Current number of particles of each filter, see Notes.
    n_samples_seen_ : int
        Number of rows since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    Notes
    -----
    Let theta_i be the draws, W_i their weights, and p_i(y_t) the estimate of the
    density of row t by filter i. ``log_evidence_`` is the sum over rows of ``log sum_i
    W_i p_i(y_t)``, and W_i becomes proportional to ``W_i p_i(y_t)``. If the effective
    sample size would fall below half of `n_draws`, the row is weighted in stages, each
    by a power of its density that keeps this half, and the draws are resampled and
    moved after each stage but the last. The steps, on the logarithms and logits of
    bounded parameters, alternate between independent proposals from a Student
    distribution with 5 degrees of freedom, with the mean and the covariance of the
    draws, and a random walk with ``2.38 ** 2 / n_parameters`` times this covariance.

    The filters start with the `n_particles` of `estimator`. Long series need more: if
    fewer than a quarter of the steps were accepted, and the variance of the estimated
    log-likelihood at fixed parameters is above 1, the number is doubled (the exchange
    step of [1]_), up to a factor of 16. A warning is given if that is not enough.

    A row costs `n_draws` steps of the filter, and a stage ``n_draws * n_moves`` runs of
    the filter over all rows so far. The total number of stages grows about as the
    logarithm of the number of rows.

    `fit` equals `partial_fit` on a new estimator. A model that observes rows does so
    after each row was filtered, also in `fit`; the evidence is then not a density of
    the first rows.

    References
    ----------
    .. [1] N. Chopin, P. E. Jacob and O. Papaspiliopoulos, "SMC^2: an efficient
       algorithm for sequential analysis of state space models", JRSS B 75, 2013.

    Examples
    --------
    Posterior interval for the variance of a random walk observed with noise of variance
    1, updated with new rows:

    >>> import numpy as np
    >>> from scipy import stats
    >>> from skpacbayes.filtering import SMC2, ClusteredParticleFilter
    >>> from skpacbayes.filtering.models import LocalLevel
    >>> rng = np.random.default_rng(3)
    >>> level = np.cumsum(0.5 * rng.normal(size=30))
    >>> X = (level + rng.normal(size=30))[:, None]
    >>> tracker = ClusteredParticleFilter(
    ...     LocalLevel(0.0, 1.0, observation_variance=1.0),
    ...     n_particles=30,
    ...     n_clusters=None,
    ... )
    >>> priors = {"model__transition_variance": stats.gamma(1)}
    >>> sampler = SMC2(tracker, priors, n_draws=50, random_state=0)
    >>> widths = []
    >>> for day in (slice(15), slice(15, 30)):
    ...     low, high = sampler.partial_fit(X[day]).intervals(0.9)[
    ...         "model__transition_variance"
    ...     ]
    ...     widths.append(high - low)
    >>> bool(low < 0.25 < high), widths[1] < widths[0]
    (True, True)

    Log Bayes factor of an observation variance of 1 against 9:

    >>> noisier = ClusteredParticleFilter(
    ...     LocalLevel(0.0, 1.0, observation_variance=9.0),
    ...     n_particles=30,
    ...     n_clusters=None,
    ... )
    >>> other = SMC2(noisier, priors, n_draws=50, random_state=0).fit(X)
    >>> sampler.log_evidence_ - other.log_evidence_ > 3
    True
    """

    _parameter_constraints: dict = {
        "estimator": [ClusteredParticleFilter],
        "priors": [dict],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "n_moves": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, estimator, priors, *, n_draws=200, n_moves=3, random_state=None):
        self.estimator = estimator
        self.priors = priors
        self.n_draws = n_draws
        self.n_moves = n_moves
        self.random_state = random_state

    @fit_context
    def fit(self, X, y=None, *, inputs=None):
        """Learn the rows in order, starting a new run.

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
        self : SMC2
            The fitted sampler.

        Raises
        ------
        ValueError
            If a name is not a parameter of the model, or a prior is not a continuous
            distribution; also as in `ClusteredParticleFilter.fit`.
        FloatingPointError
            If the likelihood of a row is zero at all draws.
        """
        return self._learn(X, inputs, lambda X: self._tasks(len(X), "row", X))

    @partial_fit_context
    def partial_fit(self, X, y=None, *, inputs=None):
        """Learn more rows, in the order given.

        The result does not depend on how rows are split into calls. A call that raises
        leaves the sampler unchanged.

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
        self : SMC2
            The sampler.

        Raises
        ------
        ValueError, FloatingPointError
            As in `fit`; also if a parameter changed since the stream started.
        """
        return self._learn(X, inputs, lambda X: range(len(X)))

    def intervals(self, level=0.9):
        """Return credible intervals of the parameters.

        Parameters
        ----------
        level : float, default=0.9
            Posterior probability of the central intervals.

        Returns
        -------
        intervals : dict of str to tuple of float
            Lower and upper end for each parameter.
        """
        check_is_fitted(self)
        check_share("level", level)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        return {
            name: tuple(map(float, _quantiles(draws, self.weights_, tails)))
            for name, draws in self.posterior_.items()
        }

    def filter(self, X, *, inputs=None, random_state=None):
        """Filter rows that follow those learnt, without learning them.

        Each row changes the weights of the draws; the draws are not moved.

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
            Mean of the state at each row, given the rows up to it, with parameters
            integrated out.
        stds : ndarray of shape (n_timesteps, n_states)
            Standard deviations.
        """
        trackers, X, inputs, seeds = self._asked(X, inputs, random_state)
        with _silent_underflow():
            found = [
                zip(*_evidences_and_moments(tracker, X, inputs, seed), strict=True)
                for tracker, seed in zip(trackers, seeds, strict=True)
            ]
        evidences, means, stds = map(np.array, zip(*found, strict=True))
        weights = self._weights_after(evidences)[1][:, 1:, None]
        mean = (weights * means).sum(axis=0)
        variances = (weights * (stds**2 + (means - mean) ** 2)).sum(axis=0)
        return mean, np.sqrt(variances)

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
            (n_quantiles, h, k) and `samples` of shape (2000, h, k), for k features or
            states. Parameters are drawn from their posterior.

        Raises
        ------
        ValueError
            As in `ClusteredParticleFilter.forecast`.
        """
        check_is_fitted(self)
        h = check_count("h", h)
        levels = as_levels(quantiles, ends=True)
        generator, seeds = self._answering(random_state)
        counts = generator.multinomial(N_FUTURES, self.weights_)
        filters, stop = self._population.filters, 0
        samples = forecast_shaped(filters[0], h, of, N_FUTURES)
        for i in np.flatnonzero(counts):
            ahead = filters[i].forecast(
                h, of=of, quantiles=quantiles, inputs=inputs, random_state=seeds[i]
            )
            some = generator.integers(len(ahead.samples), size=counts[i])
            start, stop = stop, stop + counts[i]
            samples[start:stop] = ahead.samples[some]
        return summarised(samples, levels)

    def log_likelihoods(self, X, *, inputs=None, random_state=None):
        """Return the log density of each row given the rows before it.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_timesteps,)
            Log densities, with parameters integrated out; 0 for a missing row, and -inf
            from the first row of zero likelihood at all draws, with a
            `ConvergenceWarning`.
        """
        trackers, X, inputs, seeds = self._asked(X, inputs, random_state)
        with _silent_underflow():
            evidences = np.array(
                [
                    tracker.log_likelihoods(X, inputs=inputs, random_state=seed)
                    for tracker, seed in zip(trackers, seeds, strict=True)
                ]
            )
        return self._weights_after(evidences)[0]

    def score(self, X, y=None, *, inputs=None, random_state=None):
        """Return the mean of `log_likelihoods`.

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
    def posterior_(self):
        """Draws of each parameter."""
        priors = self._learnt_priors
        values = [priors.values(u) for u in self._population.positions]
        return {name: np.array([v[name] for v in values]) for name in priors.names}

    @property
    @small_is_zero
    def weights_(self):
        """Weights of the draws."""
        weights = np.exp(self._population.log_weights)
        return weights / weights.sum()

    @property
    def log_evidence_(self):
        """Log evidence of the rows learnt."""
        return float(self._population.log_evidence)

    @property
    def mean_(self):
        """Filtered mean at the last row."""
        means = [tracker.mean_ for tracker in self._population.filters]
        return self.weights_ @ np.array(means)

    @property
    def covariance_(self):
        """Filtered covariance at the last row: within the filters, and between."""
        filters, weights = self._population.filters, self.weights_
        within = np.array([tracker.covariance_ for tracker in filters])
        gaps = np.array([tracker.mean_ for tracker in filters]) - self.mean_
        return np.einsum("i,ijk->jk", weights, within) + (gaps.T * weights) @ gaps

    @property
    def ess_(self):
        """Effective sample size of the weights."""
        return float(1.0 / np.square(self.weights_).sum())

    @property
    def acceptance_rate_(self):
        """Share of the Metropolis steps that were accepted."""
        population = self._population
        if not population.n_moves:
            return 1.0
        return population.n_accepted / population.n_moves

    @property
    def n_particles_(self):
        """Current number of particles of each filter."""
        return self._population.n_particles

    @property
    def n_samples_seen_(self):
        """Number of rows since the last `fit`."""
        return len(self._series.X)

    # The steps of `fit` and of `partial_fit`.

    def _learn_at_once(self, X, y=None, *, inputs=None):
        return False  # a row costs far more than its validation

    def _learn(self, X, inputs, steps):
        """Learn rows in order, one for each of `steps`."""
        begun = self._streaming() and "_population" in vars(self)
        X = self._rows(X, reset=not begun)
        inputs = self._checked_inputs(inputs, len(X), begin=not begun)
        if not begun:
            check_priors(self.estimator, self.priors)
            generator = seeded(self._draw_seed())
            priors = Priors(self.priors)
            population = self._drawn_from(priors, generator)
            seen, series = 0, Series(X, inputs)
        else:
            generator = continued(self._random_state)
            priors = self._learnt_priors
            population, seen = self._population, len(self._series.X)
            series = self._series.followed_by(X, inputs)
        n_noisy, before = population.n_noisy, population.log_evidence
        target, n_rows = Target(self.estimator, priors), seen
        with _silent_underflow():
            for step in steps(X):
                n_rows = seen + step + 1
                so_far = series.rows(0, n_rows)
                population = learn_row(
                    population, target, so_far, self.n_moves, generator
                )
        warn_of_dropped_rows(X, self.estimator.model)
        if population.n_noisy > n_noisy:
            warn_user(
                f"The log-likelihood has a variance above {MOST_NOISE:g} between runs "
                f"of the filter at the same parameters, with {population.n_particles} "
                f"particles, {MOST_GROWTH} times those of the estimator: the draws "
                "hardly move. Try more particles, or a model that fits better.",
                ConvergenceWarning,
            )
        if population.log_evidence - before < LEAST_LOG_LIKELIHOOD:
            warn_of_rounding(f"rows {seen} to {n_rows - 1}", "each prior")
        self._population, self._series = population, series.rows(0, n_rows).copied()
        self._random_state = generator.bit_generator.state
        self._learnt_priors = priors  # `self.priors` may be changed after the fit
        if has_doubled(seen, n_rows):
            priors.warn_of_ends(self.posterior_, self.weights_)
        return self

    def _drawn_from(self, priors, generator):
        """Draw the parameters from the prior."""
        positions = priors.draw(self.n_draws, generator)
        even = even_log_weights(self.n_draws)
        return Population(positions, even, (), 0.0, self.estimator.n_particles)

    # Methods that do not learn.

    def _asked(self, X, inputs, random_state):
        """Return filters, validated rows and inputs, and a seed for each filter."""
        check_is_fitted(self)
        X = self._rows(X)
        inputs = self._checked_inputs(inputs, len(X))
        warn_of_seen_rows(first_and_last(self._series.X), X, AS_FOLLOWING)
        return self._population.filters, X, inputs, self._answering(random_state)[1]

    def _answering(self, random_state):
        """Return a generator and a seed for each filter; None: the current ones."""
        n_draws = len(self._population.filters)
        if random_state is None:
            return continued(self._random_state), [None] * n_draws
        seeds = check_random_state(random_state).randint(2**31 - 1, size=n_draws)
        return seeded(int(seeds[0])), [int(seed) for seed in seeds]

    @small_is_zero
    def _weights_after(self, evidences):
        """Return log densities of rows, and the weights of the draws around them.

        From the first row of zero likelihood at all draws, the log densities are -inf
        and the weights do not change.

        Parameters
        ----------
        evidences : ndarray of shape (n_draws, n_rows)
            Log density of each row by each draw.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_rows,)
        weights : ndarray of shape (n_draws, n_rows + 1)
        """
        start = self._population.log_weights[:, None]
        logs = np.cumsum(np.concatenate([start, evidences], axis=1), axis=1)
        totals = np.logaddexp.reduce(logs, axis=0)
        n_possible = int((totals > -np.inf).sum()) - 1  # rows
        found = np.full(evidences.shape[1], -np.inf)
        found[:n_possible] = np.diff(totals[: n_possible + 1])
        if n_possible < len(found):
            warn_user(
                f"The likelihood of row {n_possible} (0 is the first given) is zero "
                f"at each of {len(logs)} draws of the parameters: from this row on "
                "the log density is -inf, and the weights of the draws do not change.",
                ConvergenceWarning,
            )
        places = np.minimum(np.arange(len(totals)), n_possible)
        return found, np.exp(logs[:, places] - totals[places])

    def _chain_draws(self):
        generator = continued(self._random_state)
        cells = one_cell(len(self.weights_))
        places = draw(self.weights_, cells, "systematic", generator)
        return ChainDraws(
            {name: draws[None, places] for name, draws in self.posterior_.items()}
        )


AS_FOLLOWING = (
    "is taken as rows after the stream: fit_filter of a ClusteredParticleFilter "
    "with the means of posterior_ returns the states at the rows that it learns."
)


@contextmanager
def _silent_underflow():
    """Silence the filters' warnings of a zero likelihood, which is allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _evidences_and_moments(tracker, X, inputs, seed):
    """Yield the log density, means and standard deviations at each row."""
    for step, _ in tracker._run(X, inputs, seed):
        yield step.evidence, *moments(step.cloud.weights, step.cloud.particles)


def _quantiles(values, weights, levels):
    """Return weighted quantiles, the smallest values that reach the levels."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, levels * reached[-1])
    return values[order[np.minimum(places, len(values) - 1)]]
