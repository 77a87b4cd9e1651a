"""Hidden Markov models with Dirichlet process mixtures for emissions."""

from contextlib import suppress
from numbers import Integral, Real

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._arguments import as_levels, check_count, check_share
from .._arviz import ArviZMixin, ChainDraws
from .._base import fit_context, warn_user
from .._chains import R_HAT_LIMIT
from .._compat import Interval, StrOptions
from .._sentinels import (
    ends_of,
    warn_of_angles,
    warn_of_far_rows,
    warn_of_sentinels,
)
from .._series import SeriesEstimator
from .._stream import StreamingEstimator, has_doubled, partial_fit_context
from .._validation import as_numbers, refuse_large
from . import _dirichlet_process_posterior as _posterior
from ._dirichlet_process_durations import log_durations, of_rows
from ._dirichlet_process_forecast import (
    Forecast,
    forecast_quantiles,
    n_unsettled,
    state_forecasts,
    states_now,
)
from ._dirichlet_process_inputs import InputUnits
from ._dirichlet_process_number import Numbers, checked_numbers, number_of_states
from ._dirichlet_process_online import Online
from ._dirichlet_process_product_answers import (
    category_probabilities,
    medians,
    number_quantiles,
)
from ._dirichlet_process_product_model import (
    ProductModel,
    UnknownValues,
    check_counts,
    kinds_of,
)
from ._dirichlet_process_sampling import sample_posterior
from ._dirichlet_process_series import (
    ONE_SEQUENCE,
    Series,
    refuse_lengths_as_target,
    sequence_bounds,
)
from ._dirichlet_process_settings import Models, Settings
from ._dirichlet_process_warnings import warn_of_flags, warn_of_shared_values

# Exponentials may underflow to zero, also after `np.seterr`.
_small_is_zero = np.errstate(under="ignore")


class DirichletProcessHMM(
    ArviZMixin, DensityMixin, SeriesEstimator, StreamingEstimator
):
    """Hidden Markov model whose emissions are Dirichlet process mixtures.

    `partial_fit` keeps all rows unless `window` is given: memory, and the time of the
    next result, grow with the length of the stream.

    The hidden states form a Markov chain, and each row is a noisy observation of its
    state. The distribution of the rows of a state is nonparametric: it may be skewed,
    heavy-tailed or multimodal, where a model with normal emissions would find spurious
    states. A Gibbs sampler draws the states, the transitions and the emission
    distributions from their posterior (Algorithm 6 of [1]_), in several chains.

    Parameters
    ----------
    n_states : int or "auto", default=2
        Number of states. "auto" compares up to 12 states, and chooses the smallest
        number that is not clearly worse than the best (see Notes). `n_states_posterior`
        gives the posterior distribution of the number.
    emission : {"auto", "translated", "per_state", "poisson", "categorical"} or \
            list of str, default="auto"
        Emission distributions. "per_state": each state has its own mixture of normals.
        "translated": all states have the same mixture, shifted to the location of the
        state, the model of [2]_; use it only if states do not differ in spread or
        shape. "poisson": for counts; each state has a mixture of Poisson distributions,
        which may be overdispersed. "categorical": each distinct value of a feature is a
        category; encode names by `sklearn.preprocessing.OrdinalEncoder`. A list has the
        kind of each feature: "normal" (as "per_state"), "poisson" or "categorical".
        "auto" chooses, by predictive score, among the first two and, for features of
        non-negative integers, "poisson"; if these vary little, it is "poisson".
        Integers above 1 whose variance is clearly below their mean are normal, as
        rounded measurements. Beside normal features, all underdispersed integers, and
        those of two values, are normal.
    n_atoms : int, default=10
        Number of atoms (normals, Poisson distributions or tables) in each mixture: the
        truncation level of the Dirichlet process.
    concentration : float, default=1.0
        Concentration of the Dirichlet process. A larger value uses more atoms.
    transition_prior : "auto" or float, default="auto"
        Parameter a of the Dirichlet prior of the rows of the transition matrix. It acts
        like a moves from each state into each other one. "auto" is one move from each
        state in all, ``1 / (n_states - 1)``. With ``startprob="dirichlet"`` it is also
        that of the distribution of the first state.
    min_transition : float, default=1e-3
        Smallest probability of a transition, at most 1 / `n_states`. The theorem of
        [1]_ does not hold for 0.
    startprob : {"stationary", "dirichlet"}, default="stationary"
        Distribution of the first state: the stationary distribution of the transition
        matrix, or a free distribution with a Dirichlet prior.
    duration : {"geometric", "negative_binomial"}, default="geometric"
        Distribution of the durations of states. "geometric": that of a Markov chain,
        with mode 1. "negative_binomial": r rows, with r learnt for each state, plus a
        negative binomial number (a hidden semi-Markov model, see Notes). Use it if each
        visit to a state lasts about equally long.
    covariance_type : {"auto", "diag", "full"}, default="auto"
        Covariances of the atoms. "auto" chooses by predictive score; with more than 20
        features it is "diag". With counts or categories, all features are independent
        given the atom.
    n_iter : int or "auto", default="auto"
        Number of sweeps of each chain after the burn-in. "auto": as many as the chains
        need to agree, 200 to 800, or 400 if 800 are not expected to suffice (see
        Notes).
    burn_in : int, default=200
        Number of first sweeps of each chain that are dropped. They include those that
        choose its start and, in the first chain, the model.
    thin : int, default=1
        Keep every `thin`-th sweep after the burn-in.
    n_chains : int, default=2
        Number of chains.
    window : int or None, default=None
        Number of the latest rows that `partial_fit` keeps; None: all. With a window the
        cost of a row is bounded, and earlier rows are forgotten (see Notes).
    random_state : int, RandomState instance or None, default=None
        Seed of the chains and, by default, of `sample`.
    n_jobs : int, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.

    Attributes
    ----------
    n_states_ : int
        Number of states.
    n_states_scores_ : ndarray of shape (n_tried,)
        With ``n_states="auto"``, the predictive scores of 1, 2, ... states, in nats per
        row (see Notes); otherwise empty.
    emission_ : {"translated", "per_state", "poisson", "categorical"} or list of str
        Emission distributions, given or chosen.
    covariance_type_ : {"diag", "full"}
        Covariances of the atoms, given or chosen.
    transmat_ : ndarray of shape (n_states, n_states)
        Posterior mean of the transition probabilities, from row to column. With
        negative binomial durations these are long-run frequencies, so that in each of
        `transmat_samples_` state j lasts 1 / (1 - p[j, j]) rows on average.
    transmat_samples_ : ndarray of shape (n_draws, n_states, n_states)
        Draws of the transition probabilities.
    n_stages_samples_ : ndarray of shape (n_draws, n_states)
        Draws of r, the least duration of each state; 1 with geometric durations.
    input_effects_ : ndarray of shape (n_states, n_inputs)
        Posterior mean of the effects of inputs: change per unit of an input in the log
        odds of moving to a state, relative to the mean over the states. `transmat_` is
        for the mean inputs. Without inputs the shape is (n_states, 0).
    input_effects_samples_ : ndarray of shape (n_draws, n_states, n_inputs)
        The draws that it is the mean of.
    startprob_ : ndarray of shape (n_states,)
        Posterior mean of the distribution of the first state.
    locations_ : ndarray of shape (n_states, n_features)
        Posterior mean of the median of each feature in each state; NaN for categories.
        Not available if all features are categories.
    state_probabilities_ : ndarray of shape (n_states,)
        Probabilities of the current state, at the last row that was learnt, given the
        rows up to it.
    categories_ : list of ndarray of shape (n_categories,)
        Sorted values of each categorical feature, with empty arrays for other features.
        The list is empty if no feature is categorical.
    log_likelihoods_ : ndarray of shape (n_chains, burn_in + `n_iter_`)
        Log-likelihood of all rows at each sweep, with states and atoms summed out.
    r_hat_ : float
        Rank-normalised split R-hat of the log-likelihoods after `burn_in` [3]_: near 1
        if the chains agree, infinite with fewer than four sweeps.
    n_iter_ : int
        Number of sweeps of each chain after the burn-in, in the last run.
    n_samples_seen_ : int
        Number of rows since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    Notes
    -----
    Let x_t be the state and y_t the row, with each feature centred at its median and
    scaled by its interquartile range:

    - x_1 ~ f_0, x_t ~ Q[x_(t-1)]; rows of Q iid Dirichlet(a, ..., a), restricted to
      entries of at least q; f_0 the stationary distribution of Q, or Dirichlet(a, ...).
    - Negative binomial durations: a state passes through r stages in series. In each
      it stays with probability Q_jj; it leaves the last one for another state, the
      others for the next stage [9]_. The prior of r is uniform on 1, 2, 3, 4, 5, 6, 8,
      10, 12, 16, 20, 24 and 32; f_0 is the stationary distribution of the stages.
    - With inputs u_t, in units of their deviation about their mean: from i to j with a
      probability proportional to Q_ij exp(u_t' b_j), a multinomial logit [10]_. The
      effects b_j of an input are iid Student with 4 degrees of freedom and a common
      scale; centred, they are `input_effects_`. f_0 ~ Dirichlet(a, ...), as no
      distribution is stationary.
    - y_t ~ sum_l w_l N(m_x + mu_l, S_l): "translated"; sum_l w_xl N(mu_xl, S_xl):
      "per_state". The prior of w is stick-breaking with Beta(1, `concentration`).
    - Variances are inverse gamma(2, b), covariances inverse Wishart with these margins;
      mu_l ~ N(c, 20 S_l). Each mixture has its own scale b ~ gamma(1/2, 2) for each
      feature, and with "per_state" its origin c ~ N(0, 10 I); with "translated", c = 0
      and m_j ~ N(0, 10 I).
    - Counts: y_t ~ sum_l w_xl prod_f Poisson(lambda_xlf), lambda ~ gamma(1, rho_xf) and
      rho ~ gamma(1, mean of the feature over all rows). Categories: probability tables
      with Jeffreys' prior instead of Poisson distributions. Features of several kinds:
      the product is over the features, each with its kind of distribution.

    A sweep draws all x by forward filtering and backward sampling, with atoms summed
    out; then the atoms; b and c; w, mu and S; m; and Q. Atoms mix more slowly than x:
    normal features have four draws of the atoms, b, c, w, mu and S in a sweep, unless
    values are missing and covariances are diagonal. Before Q is drawn, a Metropolis
    step proposes another r for a state with the same mean duration, with all x summed
    out. In every second sweep, at random, a Metropolis step splits an atom or merges
    two, with their parameters integrated out [5]_ (only if all features are normal); in
    each sweep neighbouring atoms may be exchanged in the stick-breaking order [6]_.
    Without these moves chains need thousands of sweeps to forget their initial number
    of atoms.

    As x_1 depends on Q, step 4 of Algorithm 6 of [1]_ is not a draw from a Dirichlet
    distribution: that is the proposal of a Metropolis step, whose ratio is that of the
    stationary probabilities of the first states. The restriction to q is by rejection
    sampling, or by slice sampling [4]_.

    "auto" chooses the model with the highest predictive score: the mean over rows of
    the log predictive density given the rows before, minus its variance over draws
    (WAIC [7]_), from 50 sweeps of a short chain. The number of states is the smallest
    within three standard errors of the best, with a warning if the best is better by
    two; numbers are tried until two successive ones do not improve the score. It is 1
    if the order of the rows gains at most 5 nats in total over a mixture of the states,
    as there are then no regimes.

    Given the states, effects of inputs are updated by a Metropolis step with the normal
    approximation at a Newton step as the proposal or, in one sweep of four, by
    elliptical slice sampling; given one auxiliary gamma variable per move, the rows of
    Q are normalised gamma variables.

    A partly observed row has the marginal distribution of its observed features.
    Repeated values are treated as rounded to the median gap between distinct values,
    and the variance of the rounding error is added to the squares of an atom, so that
    no atom degenerates to a point.

    A chain has up to five starts: (1) k-means on rows clipped to the 5 % and 95 %
    quantiles, so that outliers do not make a state; (2) the likeliest of five short
    chains of a hidden Markov model whose symbols are 40 groups of k-means, as groups
    need not be states; (3) the likeliest of five short chains of a hidden Markov model
    with one normal per state, for states that differ in spread or correlation alone;
    (4, 5) as (2), with the twelve states of a normal hidden Markov model as symbols, if
    there are at least 120 rows. The first atoms of normal features are groups of
    k-means of their normal scores within a state, except in (3), which has one atom for
    each state. After 15 sweeps from each start, the next 15 sweeps from the three
    likeliest are scored; a start other than the first is used if its predictive score
    is higher by more than 15 nats in total. If "auto" compares models, those after the
    first have three starts: (1), (3) and the states of the best model so far; a model
    whose predictive score is then lower than that of another, by more than 100 nats in
    total and 0.01 nats per row, is not compared further. In the burn-in, a chain whose
    predictive score is more than 15 nats in total below that of the best chain
    continues from the state of the best chain: R-hat then measures mixing about the
    best mode found, not whether there are other modes. Labels of states are matched
    after each sweep to those of the draw before, and between chains.

    With ``n_iter="auto"`` R-hat is computed after each block of sweeps, by default of
    100. After the burn-in, the chains stop from 200 sweeps on if it is at most 1.02 and
    the state probabilities of a row differ between the chains by at most 0.03 on
    average; from 400 on if R-hat is at most 1.1, or if it would be above 1.1 at 800
    sweeps although its excess, the square minus 1, fell with the number of sweeps; and
    at 800.

    `fit` warns in these cases:

    - Another number of states than the one that "auto" chose may be better.
    - R-hat is above 1.1. Only the draws of the chain with the largest mean
      log-likelihood are then kept. The warning says whether the chains differ in the
      states, or only in the emissions.
    - Less than 95 % of the rows have the same most probable state in all chains, or the
      states are hardly separated.
    - "translated" predicts clearly worse than "per_state" would, or "poisson" than
      "categorical".
    - Rows depend on earlier rows beyond their states, as with an autoregression, a
      season or a drift: neighbouring rows of a state have a correlation above 1/2, rows
      up to 400 apart one above 0.4, or rows one above 0.1 with the residuals of the 1,
      5 or 20 rows before. Or a linear or Poisson regression on time, a season and the
      rows before has a log evidence that is above the mean log-likelihood of the model
      by more than 5 nats in total.
    - Rows have a correlation above 0.15 with time beyond their states, a trend.
    - The order of the rows gains at most 5 nats in total over a mixture of the states.
    - The first states of sequences contradict the stationary distribution, which
      distorts the transitions.
    - Observed rows are a number of rows apart, or multiples of it, so that different
      transition matrices have the same likelihood.

    Results for new rows are means over at most 100 draws. An atom without rows has its
    prior predictive distribution, Student's with 4 degrees of freedom, so that the
    density of a row far from all others is small but positive.

    In `score_samples` and `score`, the weight of a draw at a row is its density of the
    rows before in the sequence, where the exponent of a row is 1 for the last one, 0.98
    for the one before, 0.98^2, and so on; rows that are missing as a whole do not
    count. This is importance sampling of the posterior given the training rows and the
    recent ones [8]_, as in dynamic model averaging [12]_: a series that drifts is
    predicted better. `forecast` has the same weights after rows that it is given, and
    so the same densities. Rows that were learnt would count twice. All else has equal
    weights: `predict_proba`, `decode`, and forecasts after the rows learnt.

    With a `window`, the chains run again, on the rows of the window, only if half a
    window of rows has come since their last run. Otherwise the 100 draws are reweighted
    by their predictive densities of the rows since (importance sampling [8]_), and
    resampled; the states are filtered with each draw: a row costs 100 x n_states x
    n_atoms exponentials.

    `n_states_posterior` estimates the marginal likelihood of each number of states. The
    rows are revealed in a random order, in sets that grow by a factor of 1.4; the
    others are missing values. A chain draws given each set, and the ratio of the
    marginal likelihoods of two successive sets is estimated by Bennett's method [11]_
    from likelihoods at the draws of both, with states and atoms summed out. A far row
    would dominate the error of the estimate. So the evidence is that of the rows given
    those that the rows revealed before them do not predict, in a first run with the
    fitted number: the variance of their log density over the draws is above 9. These
    `isolated_rows` come first in the order. With many features, the first rows of a set
    are among them. All repetitions start from the same chain: their standard error does
    not show a mode that the chain has missed.

    Within a stream `n_iter`, `burn_in`, `thin` and `n_jobs` may change; they take
    effect when the chains are next run.

    A sweep costs n_timesteps x n_states x n_atoms exponentials, and with negative
    binomial durations n_timesteps x (stages + n_states^2) products more. Without a
    window memory grows with the rows: they are kept, for `partial_fit`.

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
    .. [5] D. B. Dahl and S. Newcomb, "Sequentially allocated merge-split samplers for
       conjugate Bayesian nonparametric models", Journal of Statistical Computation and
       Simulation 92, 2022.
    .. [6] O. Papaspiliopoulos and G. O. Roberts, "Retrospective Markov chain Monte
       Carlo methods for Dirichlet process hierarchical models", Biometrika 95, 2008.
    .. [7] S. Watanabe, "Asymptotic equivalence of Bayes cross validation and widely
       applicable information criterion in singular learning theory", Journal of
       Machine Learning Research 11, 2010.
    .. [8] N. Chopin, "A sequential particle filter method for static models",
       Biometrika 89, 2002.
    .. [9] R. Langrock and W. Zucchini, "Hidden Markov models with arbitrary state
       dwell-time distributions", Computational Statistics & Data Analysis 55, 2011.
    .. [10] T. Holsclaw, A. M. Greene, A. W. Robertson and P. Smyth, "Bayesian
       nonhomogeneous Markov models via Pólya-Gamma data augmentation with applications
       to rainfall modeling", Annals of Applied Statistics 11, 2017.
    .. [11] C. H. Bennett, "Efficient estimation of free energy differences from Monte
       Carlo data", Journal of Computational Physics 22, 1976.
    .. [12] A. E. Raftery, M. Kárný and P. Ettler, "Online prediction under model
       uncertainty via dynamic model averaging: application to a cold rolling mill",
       Technometrics 52, 2010.

    Examples
    --------
    A machine runs at two speeds, and its sensor has heavy-tailed errors:

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

    Posterior interval of the mean duration of a state:

    >>> stays = 1 / (1 - model.transmat_samples_[:, 0, 0])
    >>> low, high = np.quantile(stays, [0.05, 0.95])
    >>> bool(low < 50 < high)
    True

    Missing values are allowed:

    >>> X[120:123] = np.nan
    >>> bool(model.predict_proba(X)[121].max() > 0.9)
    True

    Columns may be of several kinds. Here parts fail more often at the higher speed, and
    a lamp has another color more often:

    >>> failed, color = rng.poisson(1 + 2 * speed), rng.binomial(1, 0.2 + 0.6 * speed)
    >>> X = np.column_stack([X, failed, color])
    >>> kinds = ["normal", "poisson", "categorical"]
    >>> model = DirichletProcessHMM(2, emission=kinds, n_iter=200, random_state=0)
    >>> forecast = model.fit(X).forecast(n_steps=1, quantiles=[0.95])
    >>> float(forecast.quantiles[0, 0, 1])  # parts that fail in the next row
    6.0
    >>> forecast.category_probabilities[2][0].round(1)
    array([0.2, 0.8])
    """

    _parameter_constraints: dict = {
        "n_states": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "emission": [
            StrOptions({"auto", "translated", "per_state", "poisson", "categorical"}),
            list,
            tuple,
        ],
        "n_atoms": [Interval(Integral, 1, None, closed="left")],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "transition_prior": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "min_transition": [Interval(Real, 0, 1, closed="both")],
        "startprob": [StrOptions({"stationary", "dirichlet"})],
        "duration": [StrOptions({"geometric", "negative_binomial"})],
        "covariance_type": [StrOptions({"auto", "diag", "full"})],
        "n_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "window": [None, Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _may_change = ("n_iter", "burn_in", "thin", "n_jobs")

    def __init__(
        self,
        n_states=2,
        *,
        emission="auto",
        n_atoms=10,
        concentration=1.0,
        transition_prior="auto",
        min_transition=1e-3,
        startprob="stationary",
        duration="geometric",
        covariance_type="auto",
        n_iter="auto",
        burn_in=200,
        thin=1,
        n_chains=2,
        window=None,
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
        self.duration = duration
        self.covariance_type = covariance_type
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.window = window
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None, lengths=None, groups=None, *, inputs=None):
        """Sample the posterior given sequences of rows.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other, in the order of time; NaN is a missing value.
        y : None
            Ignored.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence; None for one sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`: consecutive rows
            with equal labels are a sequence. Metadata routing splits it with X.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Known covariates of each row that may change the probabilities of the
            transition into it, such as controls, the hour or the weather (see Notes).
            The inputs of the first row of a sequence are not used.

        Returns
        -------
        self : DirichletProcessHMM
            The fitted estimator.

        Raises
        ------
        ValueError
            If `min_transition` exceeds 1 / `n_states`, `lengths` do not sum to the
            number of rows, inputs and rows differ in number, inputs are combined with
            negative binomial durations, `emission` is a list of the wrong length, or a
            count is negative, not an integer, or above 1e9. Other methods also raise it
            for new categories; replace them by NaN.
        """
        X = self._rows(X, reset=True)
        refuse_lengths_as_target(y, len(X))
        inputs = self._begin_inputs(inputs, X)
        self._warn_of_sentinels(X)
        bounds = sequence_bounds(len(X), lengths, groups)
        self._series = Series(X, bounds, inputs=inputs)
        self._seed, self._before, self._online = self._draw_seed(), None, None
        self._computed = self._sample(lambda count: self._tasks(count, "sweeps", X))
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None):
        """Continue the last sequence.

        The rows are kept, and the chains continue from their current states when a
        result is next needed. That costs `burn_in` + `n_iter` sweeps over all rows that
        are kept, whatever the number of calls; the result does not depend on how rows
        are split into calls. With a `window` most results need no sweep.

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
            If a parameter of the model changed since the stream started, a count is not
            valid, or the model was fitted with inputs.
        """
        if self._streaming():
            if self._series.inputs is not None:
                raise ValueError(
                    "partial_fit takes no inputs, and the model was fitted with "
                    f"{self._n_inputs}: fit it again with all rows and their inputs."
                )
            X = self._rows(X)
            refuse_lengths_as_target(y, len(X), ONE_SEQUENCE)
            self._check_counts(X)
            self._extend(X)
        else:
            X = self._rows(X, reset=True)
            refuse_lengths_as_target(y, len(X), ONE_SEQUENCE)
            self._begin_inputs(None, X)
            self._check_counts(X)
            Settings.of(self, X)
            series = Series(X[:1], sequence_bounds(1))
            self._series = series.extended(X[1:], self.window)
            self._warn_of_sentinels(self._series.rows)
            self._seed, self._before, self._online = self._draw_seed(), None, None
        return self

    def predict(self, X, lengths=None, groups=None, *, inputs=None):
        """Predict the most probable state of each row given its whole sequence.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row, as in `fit`.

        Returns
        -------
        states : ndarray of shape (n_timesteps,)
            States, from 0 to ``n_states - 1``.
        """
        return self.predict_proba(X, lengths, groups, inputs=inputs).argmax(axis=1)

    @_small_is_zero
    def predict_proba(self, X, lengths=None, groups=None, *, inputs=None):
        """Predict the probabilities of the states of each row given its sequence.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row, as in `fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_timesteps, n_states)
            Smoothed probabilities (forward-backward), averaged over draws.
        """
        rows, _ = self._new_rows(X, lengths, groups, inputs)
        found = self._answer()
        return _posterior.state_probabilities(rows, found.used_draws(), found.model)

    @_small_is_zero
    def decode(self, X, lengths=None, groups=None, *, inputs=None):
        """Return the most probable path at the posterior mean of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row, as in `fit`.

        Returns
        -------
        log_probability : float
            Joint log density of the rows and the path.
        states : ndarray of shape (n_timesteps,)
            The path, by Viterbi's algorithm. With negative binomial durations, the
            states of the most probable path of stages.
        """
        rows, log_volume = self._new_rows(X, lengths, groups, inputs)
        found = self._answer()
        log_probability, states = _posterior.most_probable_path(
            rows, found.used_draws(), found.model
        )
        return float(log_probability - log_volume.sum()), states

    @_small_is_zero
    def score_samples(self, X, lengths=None, groups=None, *, inputs=None):
        """Return the log predictive density of each row given those before it.

        Draws that predicted the rows before well have larger weights (see Notes).

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row, as in `fit`.

        Returns
        -------
        log_densities : ndarray of shape (n_timesteps,)
            Log of the density (for counts and categories, the probability), a weighted
            mean over draws; 0 for a row that is missing as a whole.
        """
        rows, log_volume = self._new_rows(X, lengths, groups, inputs)
        found = self._answer()
        log_densities = _posterior.log_predictives(
            rows, found.used_draws(), found.model
        )
        return log_densities - log_volume

    def score(self, X, y=None, lengths=None, groups=None, *, inputs=None):
        """Return the mean of `score_samples`, the log predictive density per row.

        Parameters
        ----------
        X : array-like of shape (n_timesteps, n_features)
            Sequences one after the other; NaN is a missing value.
        y : None
            Ignored.
        lengths : array-like of shape (n_sequences,), default=None
            Number of rows of each sequence.
        groups : array-like of shape (n_timesteps,), default=None
            Label of the sequence of each row, instead of `lengths`.
        inputs : array-like of shape (n_timesteps, n_inputs) or None, default=None
            Inputs of each row, as in `fit`.

        Returns
        -------
        score : float
            The mean over rows.
        """
        scores = self.score_samples(X, lengths, groups, inputs=inputs)
        refuse_lengths_as_target(y, len(scores))
        return float(scores.mean())

    @_small_is_zero
    def forecast(self, n_steps=1, X=None, quantiles=(0.05, 0.5, 0.95), *, inputs=None):
        """Forecast the rows and states that follow a sequence.

        Parameters
        ----------
        n_steps : int, default=1
            Number of steps ahead.
        X : array-like of shape (n_timesteps, n_features), default=None
            A single sequence, in the order of time; NaN is a missing value. Draws that
            predicted it well have larger weights (see Notes). None: the last sequence
            that was learnt, and equal weights.
        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Levels of the quantiles, between 0 and 1.
        inputs : array-like of shape (n_steps, n_inputs) or None, default=None
            Inputs of the steps ahead; if X is given, preceded by those of its rows, of
            shape (n_timesteps + n_steps, n_inputs). Needed if the model was fitted with
            inputs.

        Returns
        -------
        forecast : Forecast
            A named tuple: `quantiles` (n_quantiles, n_steps, n_features) of each
            feature at each step; `state_probabilities` (n_steps, n_states). Both are of
            the posterior predictive distribution, a mean over draws. With categories,
            `category_probabilities` has, for each feature, an array (n_steps,
            n_categories) in the order of `categories_`; the quantiles of categories are
            NaN, and `quantiles` is None if all features are categories.
        """
        n_steps = check_count("n_steps", n_steps)
        levels = as_levels(quantiles, ends=False)
        found = self._answer()
        draws = found.used_draws()
        X = None if X is None else self._rows(X)
        before, ahead = self._inputs_ahead(inputs, X, n_steps)
        weights = np.ones(len(draws))
        if X is None and found.online is not None:
            now = found.online.states_now()
        elif X is None:
            now, _ = states_now(self._series.last(found.units), draws, found.model)
        else:
            rows = found.units.rows(X, sequence_bounds(len(X)))
            rows.inputs = before
            now, weights = states_now(rows, draws, found.model)
        states = state_forecasts(now, draws, found.model, n_steps, ahead)
        states *= weights[:, None, None]
        means = states.mean(axis=0)
        shares, sizes = None, found.model.n_categories
        if sizes:
            shares = category_probabilities(states, draws, found.model)
        if len(sizes) == self.n_features_in_:
            return Forecast(None, means, shares)
        product = isinstance(found.model, ProductModel)
        quantiles_of = number_quantiles if product else forecast_quantiles
        unsettled = states[:, : n_unsettled(states)]
        values = quantiles_of(unsettled, draws, found.model, levels)
        values = values[:, np.arange(n_steps).clip(max=values.shape[1] - 1)]
        return Forecast(found.units.restored(values), means, shares)

    @_small_is_zero
    def sample(self, n_samples=1, random_state=None, *, inputs=None):
        """Draw a sequence from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw. None: the `random_state` of the estimator.
        inputs : array-like of shape (n_samples, n_inputs) or None, default=None
            Inputs of the rows. Needed if the model was fitted with inputs.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, all drawn with the parameters of one posterior draw.
        states : ndarray of shape (n_samples,)
            States of the rows.
        """
        n_samples = check_count("n_samples", n_samples)
        seed = self.random_state if random_state is None else random_state
        generator = np.random.default_rng(check_random_state(seed).randint(2**31 - 1))
        found = self._answer()
        inputs = self._standard_inputs(inputs, n_samples, "n_samples")
        draws = found.used_draws()
        draw = draws[generator.integers(len(draws))]
        rows, states = _posterior.simulate(
            n_samples, draw, found.model, generator, inputs
        )
        return found.units.restored(rows), states

    @_small_is_zero
    def emission_density(self, grid, state=None, quantiles=None):
        """Return the density of the emissions: its posterior mean, or quantiles.

        Parameters
        ----------
        grid : array-like of shape (n_points,) or (n_points, n_features)
            Points. NaN marginalises a feature out.
        state : int or None, default=None
            The state; None: all states.
        quantiles : array-like of shape (n_quantiles,), default=None
            Levels in [0, 1] of quantiles of the posterior distribution of the density
            at each point. None: its mean.

        Returns
        -------
        density : ndarray of shape ([n_quantiles,] n_points[, n_states])
            Density of the points in the state, or in each state.
        """
        found = self._answer()
        draws, k = found.used_draws(), found.model.n_states
        if state is not None and state not in range(k):
            raise ValueError(f"state={state!r} should be from 0 to {k - 1}.")
        for level in () if quantiles is None else np.ravel(quantiles).tolist():
            check_share("quantiles", level, ends=True)
        rows, log_volume = self._grid(grid)
        if quantiles is None:
            logs = _posterior.log_mean_emissions(rows, draws, found.model)
        else:
            logs = np.array(list(_posterior.log_emissions(rows, draws, found.model)))
            logs = np.quantile(logs, quantiles, axis=0)
        density = np.exp(np.swapaxes(logs - log_volume, -1, -2))
        return density if state is None else density[..., state]

    @_small_is_zero
    def n_states_posterior(
        self, n_states=None, *, n_iter=100, n_repeats=4, random_state=None
    ):
        """Return the posterior distribution of the number of states.

        The prior is uniform on the numbers compared; emissions and covariances are of
        the kind of the fit. With ``transition_prior="auto"``, the prior of each row of
        transitions is uniform, too: under that of the fit, numbers whose additional
        states have no rows would be nearly as probable. With the defaults, the time is
        that of 5 to 44 fits of 600 rows with ``n_states="auto"`` (see Notes of the
        class).

        Parameters
        ----------
        n_states : array-like of shape (n_numbers,) or None, default=None
            Numbers to compare. None: 1, 2, ..., until two successive numbers are less
            than 1/1000 as probable as the most probable one, or up to 12.
        n_iter : int, default=100
            Number of draws given each set of rows.
        n_repeats : int, default=4
            Number of estimates of each evidence, which are averaged.
        random_state : int, RandomState instance or None, default=None
            Seed. None: the `random_state` of the estimator.

        Returns
        -------
        posterior : NumberOfStates
            A named tuple: `n_states`, `probabilities`, `log_evidence` and
            `log_evidence_std`, each of shape (n_numbers,), and `isolated_rows`. The
            evidence is the marginal likelihood, in nats and the units of X, of all rows
            but these, given these; the standard errors are of its differences from that
            of the most probable number, by the repetitions.

        Raises
        ------
        ValueError
            If a number is not an integer from 1 to 1 / `min_transition`, or is given
            twice.

        Examples
        --------
        Two levels that last about twenty rows each:

        >>> import numpy as np
        >>> from skpacbayes.hmm import DirichletProcessHMM
        >>> rng = np.random.default_rng(0)
        >>> X = 4.0 * (np.arange(120) // 20 % 2) + rng.normal(size=120)
        >>> model = DirichletProcessHMM(2, random_state=0).fit(X[:, None])
        >>> found = model.n_states_posterior([1, 2], n_iter=20)
        >>> bool(found.probabilities[1] > 0.99)
        True
        """
        n_iter = check_count("n_iter", n_iter)
        n_repeats = check_count("n_repeats", n_repeats, least=2)
        found, series, fitted = self._answer(), self._series, self._as_fitted()
        least = fitted.min_transition
        most = int((1 + 1e-12) / least) if least else np.inf
        if n_states is not None:
            n_states = checked_numbers(n_states, most)
        seed = self.random_state if random_state is None else random_state
        seed = int(check_random_state(seed).randint(2**31 - 1))
        settings = Settings.of(fitted, series.rows, series.inputs is not None)
        uniform = fitted.transition_prior == "auto"
        numbers = Numbers(series, settings, found, n_iter, n_repeats, seed, uniform)
        return number_of_states(numbers, n_states)

    @_small_is_zero
    def duration_probabilities(self, n_steps):
        """Return the distribution of the duration of each state.

        Parameters
        ----------
        n_steps : int
            Longest duration.

        Returns
        -------
        probabilities : ndarray of shape (n_states, n_steps)
            Probabilities of durations of 1, 2, ..., `n_steps` rows, averaged over
            draws. After a fit with inputs, these are for the mean inputs.
        """
        n_steps = check_count("n_steps", n_steps)
        found = self._answer()
        logs = log_durations(found.draws, n_steps)
        return np.exp(logs).mean(axis=0)

    @property
    def n_samples_seen_(self):
        """Rows since the last `fit`."""
        check_is_fitted(self)
        return self._series.n_seen

    @property
    def n_states_(self):
        """Number of states."""
        return self._answer().model.n_states

    @property
    def n_states_scores_(self):
        """Predictive scores of 1, 2, ... states."""
        return self._answer().chains.scores

    @property
    def emission_(self):
        """Emission distributions, given or chosen."""
        return self._answer().model.emission

    @property
    def covariance_type_(self):
        """Covariances of the atoms, given or chosen."""
        return "full" if self._answer().model.full else "diag"

    @property
    def transmat_samples_(self):
        """Transition matrix of each draw."""
        found = self._answer()
        if not found.model.staged:
            return found.draws.transitions
        return of_rows(found.draws.transitions, found.draws.stages)

    @property
    def n_stages_samples_(self):
        """Number of stages of each state in each draw."""
        return self._answer().draws.stages

    @property
    def transmat_(self):
        """Posterior mean of the transition matrix."""
        return self.transmat_samples_.mean(axis=0)

    @property
    def input_effects_samples_(self):
        """Effects of inputs in each draw, centred over the states."""
        effects = self._answer().draws.effects
        if self._series.inputs is not None:
            effects = effects / self._input_units.deviation
        return effects - effects.mean(axis=1, keepdims=True)

    @property
    def input_effects_(self):
        """Posterior mean of the effects of inputs."""
        return self.input_effects_samples_.mean(axis=0)

    @property
    def startprob_(self):
        """Posterior mean of the distribution of the first state."""
        return self._answer().draws.start.mean(axis=0)

    @property
    @_small_is_zero
    def locations_(self):
        """Posterior mean of the median of each feature in each state."""
        found = self._answer()
        if found.model.emission == "categorical":
            raise AttributeError("locations_ is not available for categories.")
        if isinstance(found.model, ProductModel):
            of_draws = medians(found.used_draws(), found.model)
            return found.units.restored(of_draws.mean(axis=0))
        used = type(found.draws)(*(part[found.used] for part in found.draws))
        return found.units.restored(_posterior.medians(used).mean(axis=0))

    @property
    @_small_is_zero
    def state_probabilities_(self):
        """Probabilities of the state at the last row, given the rows up to it."""
        found = self._answer()
        online = found.online or Online.after_run(found, self._series)
        return online.state_probabilities()

    @property
    def categories_(self):
        """Sorted categories of each feature; empty for other features."""
        return self._answer().units.categories()

    @property
    def log_likelihoods_(self):
        """Log-likelihood of the rows at each sweep of each chain."""
        return self._answer().log_likelihoods

    @property
    def r_hat_(self):
        """Rank-normalised split R-hat of the log-likelihoods after `burn_in`."""
        return self._answer().r_hat

    @property
    def n_iter_(self):
        """Number of sweeps of each chain after the burn-in, in the last run."""
        return self._answer().n_iter

    # Steps of `fit` and `partial_fit`.

    @_small_is_zero
    def _compute(self):
        online, series = self._online, self._series
        if online is not None and series.n_seen - online.n_run < self.window // 2:
            n_new = series.n_seen - online.n_seen
            new = series.rows[len(series) - n_new :]
            with suppress(UnknownValues):  # learnt by a new run of the chains only
                rows = online.posterior.units.rows(new, [0, n_new])
                return online.after(rows).answers()
        return self._sample(range)

    @_small_is_zero
    def _sample(self, tasks):
        """Sample from the posterior, continuing existing chains."""
        series = self._series
        settings = Settings.of(self, series.rows, series.inputs is not None)
        found = sample_posterior(series, settings, self._seed, self._before, tasks)
        if self.window is None:
            return found
        return found._replace(online=Online.after_run(found, series))

    def _begin_inputs(self, inputs, X):
        """Validate inputs of `fit`, and return them in standard units."""
        inputs = self._checked_inputs(inputs, len(X), begin=True)
        if inputs is None:
            return None
        if self.duration != "geometric":
            raise ValueError(
                f"inputs do not combine with duration={self.duration!r}: use "
                "duration='geometric'."
            )
        refuse_large("inputs", inputs)
        if constant := np.flatnonzero((inputs == inputs[0]).all(axis=0)).tolist():
            warn_user(
                f"The inputs {constant} are constant: their effects are unknown. Leave "
                "them out.",
                UserWarning,
            )
        names = self._input_names or range(inputs.shape[1])
        names = [f"the input {name!r}" for name in names]
        effect = "determines the unit of the input, whose effect may be lost"
        warn_of_far_rows(ends_of(inputs), len(inputs), names, effect)
        self._input_units = InputUnits.of(inputs)
        return self._input_units.standard(inputs)

    def _standard_inputs(self, inputs, n_rows, given="X"):
        """Validate inputs of new rows, and return them in standard units."""
        inputs = self._checked_inputs(inputs, n_rows, rows=given)
        if inputs is None:
            return None
        refuse_large("inputs", inputs)
        return self._input_units.standard(inputs)

    def _inputs_ahead(self, inputs, X, n_steps):
        """Validate inputs of rows, if any, and of the steps ahead."""
        n_rows = 0 if X is None else len(X)
        given = "n_steps" if X is None else "len(X) + n_steps"
        inputs = self._standard_inputs(inputs, n_rows + n_steps, given)
        return (None, None) if inputs is None else (inputs[:n_rows], inputs[n_rows:])

    def _check_counts(self, X):
        """Raise ValueError if features that should be counts are not."""
        check_counts(X, kinds_of(self.emission, X.shape[1]) or ())

    def _warn_of_sentinels(self, X):
        """Warn of codes for missing values, and of a value that many rows share."""
        kinds = kinds_of(self.emission, X.shape[1]) or ()
        left_out = [i for i, kind in enumerate(kinds) if kind == "categorical"]
        names = vars(self).get("feature_names_in_", ())
        if not warn_of_sentinels(X, names, left_out, allows_missing=True):
            left_out = [i for i, kind in enumerate(kinds) if kind != "normal"]
            warn_of_shared_values(X, left_out, names)
            warn_of_angles(X, names, left_out)
        found = Models(self, X).recognised if self.emission == "auto" else ()
        if not kinds and set(found) != {"poisson"}:
            warn_of_flags(X, names)

    def _learn_at_once(self, X, y=None):
        if not self._recognises(X) or np.isinf(X).any():
            return False
        if self._series.inputs is not None:
            return False
        refuse_lengths_as_target(y, len(X), ONE_SEQUENCE)
        self._check_counts(X)
        self._extend(X)
        return True

    def _extend(self, X):
        """Append rows to the last sequence.

        The rows that are kept are checked for codes of missing values each time the
        number of rows has doubled.
        """
        series = self._series.extended(X, self.window)
        if has_doubled(self._series.n_seen, series.n_seen):
            self._warn_of_sentinels(series.rows)
        self._publish(_series=series, **self._last_run())

    def _last_run(self):
        """Return the chains' states, and what was learnt since their run."""
        found = vars(self).get("_computed")
        if found is None:
            return {"_before": self._before, "_online": self._online}
        return {"_before": found.chains, "_online": found.online}

    def _draft(self, *, forgets):
        draft = super()._draft(forgets=forgets)
        if not forgets and self._streaming():
            vars(draft).update(self._last_run())
        return draft

    def _chain_draws(self):
        """Return the kept draws, and the log-likelihoods of all chains."""
        found = self._answer()
        n_chains = len(found.log_likelihoods)
        weighed = found.online is not None and found.online.n_seen > found.online.n_run
        if weighed or found.r_hat > R_HAT_LIMIT:
            n_chains = 1
        posterior = {
            name: part.reshape(n_chains, -1, *part.shape[1:])
            for name, part in (
                ("transmat", self.transmat_samples_),
                ("startprob", found.draws.start),
                ("input_effects", self.input_effects_samples_),
            )
            if part.size
        }
        sweeps = found.log_likelihoods[:, -found.n_iter :]
        states = np.arange(found.model.n_states)
        return ChainDraws(
            posterior,
            {"log_likelihood": sweeps},
            {
                "transmat": ["state", "next_state"],
                "startprob": ["state"],
                "input_effects": ["next_state", "input"],
            },
            {"state": states, "next_state": states},
        )

    # New rows.

    def _new_rows(self, X, lengths=None, groups=None, inputs=None):
        """Return sequences in standard units, and the log unit volume of each row."""
        units, X = self._answer().units, self._rows(X)
        rows = units.rows(X, sequence_bounds(len(X), lengths, groups))
        rows.inputs = self._standard_inputs(inputs, len(X))
        return rows, units.log_volume(X)

    def _grid(self, grid):
        """Return points in the form of `_new_rows`."""
        grid = as_numbers("grid", grid, ensure_all_finite="allow-nan")
        if grid.ndim == 1 and self.n_features_in_ == 1:
            grid = grid[:, None]
        if grid.ndim != 2 or grid.shape[1] != self.n_features_in_:
            raise ValueError(
                f"grid has shape {grid.shape}, but X had {self.n_features_in_} "
                "features."
            )
        units = self._answer().units
        return units.rows(grid, sequence_bounds(len(grid))), units.log_volume(grid)
