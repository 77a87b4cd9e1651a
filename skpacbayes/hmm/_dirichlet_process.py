"""Hidden Markov models with Dirichlet process mixtures for emissions."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions

from .._base import fit_context, partial_fit_context
from . import _posterior
from ._sampling import SampledHMM
from ._series import sequence_bounds


class DirichletProcessHMM(DensityMixin, SampledHMM):
    """Hidden Markov model whose emissions are Dirichlet process mixtures.

    A hidden state moves by a Markov chain, and each row is a noisy look at it. What the
    rows of a state look like has no shape given beforehand: they may be skewed, have
    heavy tails or several modes, where normal emissions find states that are not there.
    A Gibbs sampler draws from the posterior of the states, the transitions and the
    shapes (Algorithm 6 of [1]_), in several chains.

    Parameters
    ----------
    n_states : int, default=2
        Number of states.
    emission : {"translated", "per_state"}, default="translated"
        "translated": all states have one shape, each at a location of its own, the
        model of [2]_. "per_state": each state has its own shape.
    n_atoms : int, default=10
        Normal laws that a shape mixes, at most: where its Dirichlet process is cut off.
    concentration : float, default=1.0
        Concentration of the Dirichlet process. The larger, the more atoms are used.
    transition_prior : float, default=1.0
        Parameter of the Dirichlet prior of the rows of the matrix of transitions.
    min_transition : float, default=1e-3
        Least probability of a transition, at most 1 / `n_states`. 0 allows transitions
        that never happen, for which the theorem of [1]_ does not hold.
    startprob : {"stationary", "dirichlet"}, default="stationary"
        Law of the first state: the invariant law of the transitions, or one of its own
        with a Dirichlet prior.
    covariance_type : {"diag", "full"}, default="diag"
        Covariances of the atoms.
    n_iter : int, default=500
        Sweeps of each chain after the burn-in.
    burn_in : int, default=500
        First sweeps of each chain, whose draws are dropped.
    thin : int, default=1
        Keep every `thin`-th sweep after the burn-in.
    n_chains : int, default=2
        Number of chains.
    random_state : int, RandomState instance or None, default=None
        Seeds the chains, and `sample`.
    n_jobs : int, default=None
        Threads for the chains.

    Attributes
    ----------
    transmat_ : ndarray of shape (n_states, n_states)
        Posterior mean of the probabilities of transitions, from row to column.
    transmat_samples_ : ndarray of shape (n_draws, n_states, n_states)
        The draws that it is the mean of.
    startprob_ : ndarray of shape (n_states,)
        Posterior mean of the law of the first state.
    locations_ : ndarray of shape (n_states, n_features)
        Posterior mean of the median of each feature in each state.
    log_likelihoods_ : ndarray of shape (n_chains, burn_in + n_iter)
        Log density of all rows at each sweep, states and atoms summed out.
    r_hat_ : float
        Split R-hat of the ranks of the log-likelihoods after `burn_in` [3]_: near 1
        where the chains agree, infinite where there are less than four sweeps.
    n_iter_ : int
        Sweeps of each chain, the last time.
    n_samples_seen_ : int
        Rows since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had string names.

    Notes
    -----
    With x_t the state and y_t the row, in units of the interquartile range of each
    feature about its median:

    - x_1 ~ f_0, x_t ~ Q[x_(t-1)]; rows of Q iid Dirichlet(a, ..., a), restricted to
      entries of at least q; f_0 the invariant law of Q, or Dirichlet(a, ..., a).
    - y_t ~ sum_l w_l N(m_x + mu_l, S_l): "translated"; sum_l w_xl N(mu_xl, S_xl):
      "per_state". w breaks a stick, with pieces Beta(1, `concentration`); variances
      are inverse gamma(2, 1/4), covariances inverse Wishart with these margins;
      mu_l ~ N(0, 20 S_l); m_j ~ N(0, 10 I).

    A sweep draws all x by a filter forwards and a pass backwards, atoms summed out;
    then the atoms; w, mu and S; m; and Q. Because x_1 depends on Q, step 4 of
    Algorithm 6 of [1]_ is not a draw from a Dirichlet law: that is the proposal of
    a Metropolis step, whose ratio is that of the invariant probabilities of the first
    states. The restriction to q is by rejection, or else by slice sampling [4]_.

    A row that is partly observed has the marginal law of the features that were seen.

    A chain starts with k-means that sees rows beyond the 5 % and 95 % quantiles there,
    so that outliers make no state. Lumps of rows need not be states: so with 40 such
    groups as symbols, the likeliest of five short chains of a hidden Markov model of
    these is another start, which is taken if after 20 sweeps from either its log-
    likelihood is higher by more than 10. States have no names: after each sweep those
    of the draw are assigned to the labels that the rows had before, and those of the
    chains to each other's. Where R-hat is above 1.2 the chains have found different
    laws: there is a warning, and only the chain with the largest mean log-likelihood
    has its draws kept. Answers for new rows are means over 100 of the draws at most;
    there an atom without rows has its prior predictive law, Student's with 4 degrees of
    freedom, so that a row far from all that was seen is improbable, not impossible.

    A sweep costs n_timesteps x n_states x n_atoms exponentials. Memory grows with the
    rows: they are kept, for `partial_fit`.

    References
    ----------
    .. [1] N. Chopin, S. Gadat, B. Guedj, A. Guyader and E. Vernet, "On some recent
       advances on high dimensional Bayesian statistics", ESAIM: Proceedings and
       Surveys 51, 2015 (section 4).
    .. [2] E. Vernet, "Posterior consistency for nonparametric hidden Markov models with
       finite state space", Electronic Journal of Statistics 9, 2015.
    .. [3] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner,
       "Rank-normalization, folding, and localization: an improved R-hat", Bayesian
       Analysis 16, 2021.
    .. [4] R. M. Neal, "Slice sampling", Annals of Statistics 31, 2003.

    Examples
    --------
    A machine runs at two speeds, and its sensor sometimes errs wildly:

    >>> import numpy as np
    >>> from skpacbayes.hmm import DirichletProcessHMM
    >>> rng = np.random.default_rng(0)
    >>> speed = np.repeat([0, 1, 0, 1, 0, 1], 50)
    >>> X = (3.0 * speed + 0.4 * rng.standard_t(1.5, 300))[:, None]
    >>> float(np.abs(X).max().round())
    14.0
    >>> model = DirichletProcessHMM(2, n_iter=200, burn_in=100, random_state=0).fit(X)
    >>> low, high = np.sort(model.locations_[:, 0])
    >>> round(high - low)
    3
    >>> states = model.predict(X)
    >>> float(max(np.mean(states == speed), np.mean(states != speed))) > 0.97
    True

    How long does it stay? Every draw has an answer:

    >>> stays = 1 / (1 - model.transmat_samples_[:, 0, 0])
    >>> low, high = np.quantile(stays, [0.05, 0.95])
    >>> bool(low < 50 < high)
    True

    A value that was not observed costs nothing but what it would have said:

    >>> X[120:123] = np.nan
    >>> bool(model.predict_proba(X)[121].max() > 0.9)
    True
    """

    _parameter_constraints: dict = {
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "emission": [StrOptions({"translated", "per_state"})],
        "n_atoms": [Interval(Integral, 1, None, closed="left")],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "transition_prior": [Interval(Real, 0, None, closed="neither")],
        "min_transition": [Interval(Real, 0, 1, closed="both")],
        "startprob": [StrOptions({"stationary", "dirichlet"})],
        "covariance_type": [StrOptions({"diag", "full"})],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_states=2,
        *,
        emission="translated",
        n_atoms=10,
        concentration=1.0,
        transition_prior=1.0,
        min_transition=1e-3,
        startprob="stationary",
        covariance_type="diag",
        n_iter=500,
        burn_in=500,
        thin=1,
        n_chains=2,
        random_state=None,
        n_jobs=None,
    ):
        self.n_states = n_states
        self.emission = emission
        self.n_atoms = n_atoms
        self.concentration = concentration
        self.transition_prior = transition_prior
        self.min_transition = min_transition
        self.startprob = startprob
        self.covariance_type = covariance_type
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None, lengths=None, groups=None):
        """Draw from the posterior given sequences of rows.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other, in the order of time; NaN is a missing value.
        y : None
            Ignored.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence; None for one sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`: neighbouring rows of equal
            value are a sequence. Metadata routing splits it as it splits X.

        Returns
        -------
        self : DirichletProcessHMM
            The fitted estimator.

        Raises
        ------
        ValueError
            If `min_transition` exceeds 1 / `n_states`, or `lengths` do not sum to the
            number of rows.
        """
        with self._all_or_nothing(keep=lambda replaced: replaced):
            X = self._rows(X, reset=True)
            self._begin(X, sequence_bounds(len(X), lengths, groups))
            for _ in self._sampling(self._tasks(self._blocks(), "sweeps", X)):
                pass
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None):
        """Continue the last sequence.

        The rows are kept, and the chains go on, from where they stand, when an answer
        is next asked for. That costs `burn_in` + `n_iter` sweeps over all rows, however
        many calls there were; and any way of cutting rows into calls gives the same
        state.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Rows that follow those learnt, in the order of time; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        self : DirichletProcessHMM
            The estimator.

        Raises
        ------
        ValueError
            If a parameter of the model changed since the stream began.
        """
        if self._streaming() and self._recognises(X) and not np.isinf(X).any():
            self._continue(X)
            return self
        with self._all_or_nothing(keep=lambda replaced: replaced):
            streaming = self._streaming()
            X = self._rows(X, reset=not streaming)
            if streaming:
                self._continue(X)
            else:
                self._begin(X, sequence_bounds(len(X)))
        return self

    def predict(self, X, lengths=None, groups=None):
        """Most probable state of each row given its whole sequence.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        states : ndarray of shape (n_timesteps,)
            States, from 0 to ``n_states - 1``.
        """
        return self.predict_proba(X, lengths, groups).argmax(axis=1)

    def predict_proba(self, X, lengths=None, groups=None):
        """Probabilities of the states of each row given its whole sequence.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        probabilities : ndarray of shape (n_timesteps, n_states)
            By forward-backward, the mean over draws.
        """
        rows, _ = self._new_rows(X, lengths, groups)
        return _posterior.state_laws(rows, self._used_draws(), self._model)

    def decode(self, X, lengths=None, groups=None):
        """Most probable path of states, at the posterior mean of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        log_probability : float
            Log density of the rows together with the path.
        states : ndarray of shape (n_timesteps,)
            The path, of Viterbi's algorithm.
        """
        rows, log_units = self._new_rows(X, lengths, groups)
        draws = self._used_draws()
        log_probability, states = _posterior.most_probable_path(
            rows, draws, self._model
        )
        return float(log_probability + log_units.sum()), states

    def score_samples(self, X, lengths=None, groups=None):
        """Log predictive density of each row given those before it in its sequence.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        log_densities : ndarray of shape (n_timesteps,)
            Natural logarithms of the mean density over draws; 0 for a row of which
            nothing was observed.
        """
        rows, log_units = self._new_rows(X, lengths, groups)
        draws = self._used_draws()
        return _posterior.log_predictives(rows, draws, self._model) + log_units

    def score(self, X, y=None, lengths=None, groups=None):
        """Mean of `score_samples`: the log predictive density per step.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        y : None
            Ignored.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            The sequence of each row, in place of `lengths`.

        Returns
        -------
        score : float
            The mean over rows.
        """
        return float(self.score_samples(X, lengths, groups).mean())

    def sample(self, n_samples=1):
        """Draw a sequence from the posterior predictive law.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, all with the parameters of one of the draws.
        states : ndarray of shape (n_samples,)
            Their states.
        """
        if not (isinstance(n_samples, Integral) and n_samples >= 1):
            raise ValueError(
                f"n_samples={n_samples!r} should be an integer of at least 1."
            )
        draws, generator = self._used_draws(), self._generator()
        draw = draws[generator.integers(len(draws))]
        rows, states = _posterior.simulate(n_samples, draw, generator)
        return rows * self._units.unit + self._units.offset, states

    def emission_density(self, grid, state=None, quantiles=None):
        """Density of the emissions: its posterior mean, or quantiles.

        Parameters
        ----------
        grid : array-like of shape (n_points,) or (n_points, n_features)
            Points; one dimension will do for one feature. NaN leaves a feature out.
        state : int or None, default=None
            Which state; None for all.
        quantiles : array-like of shape (n_quantiles,), default=None
            Levels, from 0 to 1, of the posterior law of the density at each point; None
            for its mean.

        Returns
        -------
        density : ndarray of shape ([n_quantiles,] n_points[, n_states])
            Density of the points in the state, or in each.
        """
        draws, k = self._used_draws(), self._model.n_states
        if state is not None and state not in range(k):
            raise ValueError(f"state={state!r} should be from 0 to {k - 1}.")
        rows, log_units = self._grid(grid)
        if quantiles is None:
            logs = _posterior.log_mean_emissions(rows, draws, self._model)
        else:
            logs = np.array(list(_posterior.log_emissions(rows, draws, self._model)))
            logs = np.quantile(logs, quantiles, axis=0)
        density = np.exp(np.swapaxes(logs + log_units, -1, -2))
        return density if state is None else density[..., state]
