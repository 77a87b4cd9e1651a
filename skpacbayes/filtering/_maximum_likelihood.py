"""Maximum likelihood estimates of a model's parameters, by particle filters."""

from numbers import Integral, Real

import numpy as np
from scipy.special import ndtri
from scipy.stats import uniform
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._base import fit_context, warn_user
from .._compat import Interval
from .._series import SeriesEstimator
from ._cloud import warn_of_dropped_rows
from ._filter import ClusteredParticleFilter
from ._maximum_likelihood_ascent import Ascent, distance
from ._pmmh_chain import Target
from ._priors import check_priors

MOST_NOISE = 0.5  # error of the log-likelihood at which three runs of ten count


class ParticleMaximumLikelihood(SeriesEstimator):
    """Maximum likelihood estimates of a state-space model's parameters.

    A particle filter estimates the log-likelihood with noise, which an optimiser with
    small steps would follow. Instead, quadratics are fitted to log-likelihoods at
    points about one standard error apart; they give the maximum, the standard errors,
    and the Monte Carlo errors of both [1]_.

    Parameters
    ----------
    estimator : estimator
        A :class:`ClusteredParticleFilter` with a model. ``method="sqmc"`` with 128 to
        512 particles suits states of one or two dimensions.
    parameters : dict of str to distribution or tuple
        Search range of each parameter, by its name in ``estimator.get_params()`` such
        as "model__phi": a continuous frozen distribution of `scipy.stats`, or bounds
        ``(low, high)``. A distribution determines starts and bounds only.
    n_repeats : int, default=10
        Number of seeds with which the filter runs at each point.
    max_iter : int, default=20
        Largest number of iterations, each of which fits a quadratic.
    tol : float, default=0.2
        Largest last step, and largest Monte Carlo error, in standard errors. At 0.2 the
        Monte Carlo error widens intervals by 2 %.
    n_jobs : int or None, default=None
        Number of threads over runs of the filter. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the filters.

    Attributes
    ----------
    parameters_ : dict of str to float
        Maximum likelihood estimates.
    covariance_ : ndarray of shape (n_parameters, n_parameters)
        Covariance of the estimates: the inverse of the observed information. Variances
        are infinite if there is no inverse, as at a bound.
    standard_errors_ : dict of str to float
        Standard errors of the estimates: square roots of the variances.
    monte_carlo_errors_ : dict of str to float
        Monte Carlo standard errors of the estimates, over `random_state`; 0 for an
        estimate at a bound.
    log_likelihood_ : float
        Log-likelihood of all rows at the estimates.
    log_likelihood_error_ : float
        Monte Carlo standard error of `log_likelihood_`.
    converged_ : bool
        Whether the last step was shorter than `tol`, within the bounds.
    n_iter_ : int
        Number of iterations.
    estimator_ : estimator
        The filter with the estimates as its parameters, fitted on the rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    Warns
    -----
    ConvergenceWarning
        If an estimate is at a bound, the information has no inverse, the last step or a
        Monte Carlo error is larger than `tol`, few runs of the filter dominate the
        likelihood, or runs of the model ended in errors.

    Notes
    -----
    The search uses logarithms and logits of bounded parameters. A simplex search starts
    from the likeliest of ten draws per parameter. Then each quadratic is fitted to ``1
    + d + d ** 2`` points for d parameters, about a standard error from the last
    maximum, with the same seeds at all points. The likelihoods of the seeds are
    averaged, as the mean of their logarithms is biased; the standard error of the
    gradients over seeds gives the Monte Carlo error. If there are several maxima, one
    of them is found. If the likelihood is skewed within a standard error, the maximum
    of a quadratic differs by some tenths of it from that of the likelihood, which the
    Monte Carlo error does not include. At the ends of intervals, quadratics maximise
    over the other parameters, too.

    Fisher's identity is not used, as it needs the normalised density of a transition,
    which models need not have.

    References
    ----------
    .. [1] E. L. Ionides, C. Breto, J. Park, R. A. Smith and A. A. King, "Monte Carlo
       profile confidence intervals for dynamic systems", Journal of the Royal Society
       Interface 14, 2017.

    Examples
    --------
    Confidence interval for the variance of a random walk observed with noise of
    variance 1:

    >>> import numpy as np
    >>> from skpacbayes.filtering import (
    ...     ClusteredParticleFilter,
    ...     ParticleMaximumLikelihood,
    ... )
    >>> from skpacbayes.filtering.models import LocalLevel
    >>> rng = np.random.default_rng(1)
    >>> level = np.cumsum(0.5 * rng.normal(size=40))
    >>> X = (level + rng.normal(size=40))[:, None]
    >>> tracker = ClusteredParticleFilter(
    ...     LocalLevel(0.0, 1.0, observation_variance=1.0),
    ...     n_particles=64,
    ...     method="sqmc",
    ... )
    >>> learner = ParticleMaximumLikelihood(
    ...     tracker, {"model__transition_variance": (0.0, 4.0)}, random_state=0
    ... )
    >>> low, high = learner.fit(X).intervals(0.9)["model__transition_variance"]
    >>> bool(low < 0.25 < high)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [ClusteredParticleFilter],
        "parameters": [dict],
        "n_repeats": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator,
        parameters,
        *,
        n_repeats=10,
        max_iter=20,
        tol=0.2,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.parameters = parameters
        self.n_repeats = n_repeats
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context
    def fit(self, X, y=None, *, inputs=None):
        """Maximise the likelihood of the rows.

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
        self : ParticleMaximumLikelihood
            The fitted estimator.

        Raises
        ------
        ValueError
            If a name is not a parameter of the model, a distribution is not continuous,
            bounds are not increasing, or the likelihood is 0 at all starts. An error of
            the model is raised if it occurs at all starts.
        """
        ranges = {name: _distribution(name, x) for name, x in self.parameters.items()}
        check_priors(self.estimator, ranges, "parameters")
        X = self._rows(X, reset=True)
        self._checked_inputs(inputs, len(X), begin=True)
        target = Target(self.estimator, ranges, X, inputs)
        ascent = Ascent(target, self.n_repeats, self.n_jobs, self._generator())
        iterations = zip(
            self._tasks(self.max_iter, "iteration", X),
            ascent.iterate(self.tol),
            strict=False,
        )
        for iteration, found in iterations:
            self.n_iter_ = iteration + 1
            self.converged_ = found and bool(ascent.free.all())
            if found:
                break
        self._gather(ascent)
        warn_of_dropped_rows(X, self.estimator.model)
        self._warn(ascent, found)
        return self

    def intervals(self, level=0.9):
        """Return confidence intervals of the parameters.

        Profile likelihood intervals: all values at which the likelihood, maximised
        over the other parameters, is close enough to the maximum. The profile is
        computed near both ends of the 90 % intervals. The intervals lie within the
        bounds, and include the Monte Carlo error.

        Parameters
        ----------
        level : float, default=0.9
            Coverage of the central intervals.

        Returns
        -------
        intervals : dict of str to tuple of float
            Lower and upper end for each parameter.
        """
        check_is_fitted(self)
        check_share("level", level)
        root = ndtri((1 + level) / 2) * self._widening
        reach = distance(root, *self._profiles)
        reach[np.isnan(reach)] = np.inf  # at a bound, or without a peak
        ends = self._position + np.array([[-1], [1]]) * reach
        low, high = map(self._priors.values, ends)
        return {name: (low[name], high[name]) for name in low}

    def score(self, X, y=None, *, inputs=None):
        """Return the mean log density of following rows, at the estimates.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time.
        y : None
            Ignored.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row.

        Returns
        -------
        score : float
            Mean log density of a row given the rows before it.
        """
        check_is_fitted(self)
        given = {} if inputs is None else {"inputs": inputs}
        return self.estimator_.score(self._rows(X), **given)

    def _gather(self, ascent):
        """Set the fitted attributes, transformed to the scale of the parameters."""
        priors = self._priors = ascent.target.priors
        self._position = ascent.position
        self.parameters_ = priors.values(ascent.position)
        slopes, free = priors.slopes(ascent.position), ascent.free
        within, noise = np.diag(np.full(len(free), np.inf)), np.zeros(len(free))
        if ascent.covariance is not None:
            within[np.ix_(free, free)] = ascent.covariance
        noise[free] = np.diag(ascent.noise)
        spreads = np.sqrt(np.diag(within))
        self._widening = np.sqrt(1.0 + noise / np.diag(within))
        self._profiles = np.stack([np.array([spreads, spreads]), *ascent.profiles()])
        finite = np.isfinite(within)
        with np.errstate(over="ignore", under="ignore"):  # squares of extreme units
            sizes = np.outer(slopes, slopes)
            self.covariance_ = np.multiply(
                within, sizes, out=within.copy(), where=finite
            )
        errors = (
            spreads * np.where(finite.diagonal(), slopes, 1),
            slopes * np.sqrt(noise),
        )
        self.standard_errors_, self.monte_carlo_errors_ = (
            dict(zip(priors.names, map(float, found), strict=True)) for found in errors
        )
        heights = ascent.heights
        self.log_likelihood_ = float(heights.mean())
        self.log_likelihood_error_ = float(heights.std(ddof=1) / np.sqrt(len(heights)))
        self.estimator_ = ascent.target.fitted(self.parameters_, ascent.seeds[0])

    def _warn(self, ascent, found):
        """Warn if the estimates or their standard errors are not reliable."""
        for name, free in zip(self.parameters_, ascent.free, strict=True):
            if not free:
                warn_user(
                    f"The likelihood does not decrease towards an end of the range of "
                    f"{name!r}: the estimate {self.parameters_[name]:g} is at this "
                    "end, without standard error. Try a simpler model or wider range.",
                    ConvergenceWarning,
                )
        if ascent.covariance is None:
            warn_user(
                "The log-likelihood has no peak where the search ended, and there are "
                f"no standard errors. {list(self.parameters_)} may not be identified, "
                "or Monte Carlo noise is too large: try more particles, a larger "
                "max_iter or n_repeats, or narrower ranges.",
                ConvergenceWarning,
            )
        elif not found:
            warn_user(
                f"The maximum was not reached within tol={self.tol:g} standard errors "
                f"by {self.n_iter_} iterations: increase max_iter.",
                ConvergenceWarning,
            )
        if ascent.refusals:
            warn_user(
                f"{len(ascent.refusals)} runs of the filter ended in an error and were "
                f"counted as likelihood 0. The first: {ascent.refusals[0]}",
                ConvergenceWarning,
            )
        if ascent.covariance is not None and self.log_likelihood_error_ > MOST_NOISE:
            warn_user(
                f"Few of the {self.n_repeats} runs of the filter make up the mean of "
                "the likelihood: estimates and their errors may be wrong. Increase "
                "n_particles.",
                ConvergenceWarning,
            )
        share = ascent.noise_share
        if self.tol < share < np.inf:
            warn_user(
                f"The Monte Carlo error of an estimate is {share:.2g} of its standard "
                f"error, above tol={self.tol:g}: increase n_repeats or n_particles.",
                ConvergenceWarning,
            )


def _distribution(name, given):
    """Return a distribution: the given one, or uniform between given bounds."""
    if not isinstance(given, (tuple, list)):
        return given
    numbers = all(isinstance(end, Real) and not isinstance(end, bool) for end in given)
    if len(given) != 2 or not numbers or not -np.inf < given[0] < given[1] < np.inf:
        raise ValueError(
            f"parameters[{name!r}] should be a distribution or two finite numbers "
            f"(low, high) with low < high, got {given!r}."
        )
    return uniform(given[0], given[1] - given[0])
