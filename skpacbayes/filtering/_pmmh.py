"""Particle marginal Metropolis-Hastings for the parameters of a model."""

from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._arviz import ArviZMixin, ChainDraws
from .._base import fit_context
from .._chains import r_hat, run_chains, warn_unmixed
from .._compat import Interval
from .._series import SeriesEstimator
from ._cloud import warn_of_dropped_rows
from ._filter import ClusteredParticleFilter
from ._pmmh_chain import ParameterChain, Target
from ._priors import check_priors


class ParticleMarginalMetropolis(ArviZMixin, SeriesEstimator):
    """Posterior of the parameters of a state-space model, by particle MCMC.

    At each Metropolis step, a particle filter estimates the likelihood of all rows. As
    the estimate is unbiased, the chains sample the exact posterior, whatever the number
    of particles [1]_; with too few particles they mix slowly.

    Parameters
    ----------
    estimator : estimator
        A :class:`ClusteredParticleFilter` with a model. ``method="sqmc"`` with 128 to
        512 particles suits states of one or two dimensions.
    priors : dict of str to distribution
        Prior of each parameter to be learnt, by its name in ``estimator.get_params()``
        such as "model__phi": continuous frozen distributions of `scipy.stats`.
    n_chains : int, default=4
        Number of chains, each with its own start.
    burn_in : int, default=300
        Number of iterations of each chain that are dropped, in which its steps are
        adapted.
    n_iter : int, default=700
        Number of iterations of each chain that are kept. Each runs the filter over all
        rows.
    n_jobs : int or None, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains and of the filters.

    Attributes
    ----------
    posterior_ : dict of str to ndarray of shape (n_chains, n_iter)
        Draws of each parameter. `to_arviz` converts them for ArviZ.
    r_hat_ : float
        Largest R-hat of a parameter.
    acceptance_rate_ : float
        Share of the kept iterations whose proposal was accepted.
    estimator_ : estimator
        The filter with the posterior means as its parameters, fitted on the rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    Notes
    -----
    Each chain starts at the likeliest of ten draws from the prior, and makes a random
    walk on the logarithms and logits of bounded parameters. The covariance of its steps
    is adapted to an acceptance rate of 0.234 during `burn_in` [2]_, and then fixed.
    Until then, steps that can hardly be accepted are shortened, as under a prior that
    is much wider than the posterior.

    Choose the number of particles so that the filter's `log_likelihood_std_`, at
    central parameters, is about 1: with fewer particles chains mix slowly.

    Draws are dependent: 1,000 iterations of a chain are worth some tens of independent
    draws. Do not use the intervals of chains that disagree.

    References
    ----------
    .. [1] C. Andrieu, A. Doucet and R. Holenstein, "Particle Markov chain Monte Carlo
       methods", JRSS B 72, 2010.
    .. [2] M. Vihola, "Robust adaptive Metropolis algorithm with coerced acceptance
       rate", Statistics and Computing 22, 2012.

    Examples
    --------
    Posterior interval for the variance of a random walk observed with noise of variance
    1:

    >>> import numpy as np
    >>> from scipy import stats
    >>> from skpacbayes.filtering import (
    ...     ClusteredParticleFilter,
    ...     ParticleMarginalMetropolis,
    ... )
    >>> from skpacbayes.filtering.models import LocalLevel
    >>> rng = np.random.default_rng(1)
    >>> level = np.cumsum(0.5 * rng.normal(size=25))
    >>> X = (level + rng.normal(size=25))[:, None]
    >>> tracker = ClusteredParticleFilter(
    ...     LocalLevel(0.0, 1.0, observation_variance=1.0),
    ...     n_particles=30,
    ...     n_clusters=None,
    ... )
    >>> priors = {"model__transition_variance": stats.gamma(1)}
    >>> sampler = ParticleMarginalMetropolis(
    ...     tracker, priors, n_chains=2, burn_in=50, n_iter=100, random_state=0
    ... )
    >>> low, high = sampler.fit(X).intervals(0.9)["model__transition_variance"]
    >>> bool(low < 0.25 < high)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [ClusteredParticleFilter],
        "priors": [dict],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator,
        priors,
        *,
        n_chains=4,
        burn_in=300,
        n_iter=700,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.priors = priors
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.n_iter = n_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context
    def fit(self, X, y=None, *, inputs=None):
        """Sample the parameters from their posterior given the rows.

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
        self : ParticleMarginalMetropolis
            The fitted sampler.

        Raises
        ------
        ValueError
            If a name is not a parameter of the model, a prior is not a continuous
            distribution, or the likelihood is 0 at all starts.
        """
        check_priors(self.estimator, self.priors)
        X = self._rows(X, reset=True)
        self._checked_inputs(inputs, len(X), begin=True)
        generators = self._generator().spawn(self.n_chains)
        target = Target(self.estimator, self.priors, X, inputs)
        chains = [ParameterChain(target, generator) for generator in generators]
        run_chains(
            chains,
            burn_in=self.burn_in,
            n_iter=self.n_iter,
            tasks=lambda n_blocks: self._tasks(n_blocks, "block", X),
            n_jobs=self.n_jobs,
        )
        self._gather(chains, target)
        warn_of_dropped_rows(X, self.estimator.model)
        return self

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
        tails = [(1 - level) / 2, (1 + level) / 2]
        return {
            name: tuple(float(end) for end in np.quantile(draws, tails))
            for name, draws in self.posterior_.items()
        }

    def score(self, X, y=None, *, inputs=None):
        """Return the mean log density of following rows, at the posterior means.

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

    def _chain_draws(self):
        return ChainDraws(self.posterior_)

    def _gather(self, chains, target):
        """Set the fitted attributes."""
        shortest = min(chain.n_kept for chain in chains)
        draws = [
            [list(target.priors.values(position).values()) for position in chain.kept]
            for chain in chains
        ]
        draws = np.array([chain[:shortest] for chain in draws])
        self.posterior_ = {
            name: np.ascontiguousarray(draws[:, :, j])
            for j, name in enumerate(self.priors)
        }
        kept = sum(chain.n_kept for chain in chains)
        self.acceptance_rate_ = sum(chain.n_accepted for chain in chains) / kept
        self.r_hat_ = float(np.max(r_hat(np.moveaxis(draws, 2, 0))))
        means = {name: float(draws.mean()) for name, draws in self.posterior_.items()}
        self.estimator_ = target.fitted(means, self._draw_seed())
        advice = "increase n_iter or burn_in"
        warn_unmixed(self.r_hat_, len(chains), advice, of="the parameters")
        target.priors.warn_of_ends(self.posterior_)
