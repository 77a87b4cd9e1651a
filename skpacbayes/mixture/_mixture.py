"""Mixtures of any family: fit, streams, number of components, predictions."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import DensityMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_count, check_share
from .._base import fit_context, updates_state
from .._compat import HasMethods, Interval, StrOptions
from .._statistics import named_as
from .._stream import (
    StreamingEstimator,
    as_count,
    checked_weights,
    counted,
    partial_fit_context,
)
from .._validation import are_small, as_numbers, refuse_large
from ._answers import Answer, answered
from ._covariance_types import warn_of_merged_columns
from ._learner import Learner
from ._outliers import OutlierFamily
from ._product import FAMILIES, ProductFamily, check_parameters, family_named
from ._regression import has_target, regression_of, warn_of_target
from ._stream import Stream
from ._window_sizes import warn_of_short_window, window_sizes

MOST_ROWS = 1e10  # largest total weight: log Gamma of more is inaccurate


def has_outliers(mixture):
    """Return whether a mixture has a uniform distribution for outliers."""
    return getattr(mixture._as_fitted(), "outliers", False)


class TemperedVBMixture(DensityMixin, StreamingEstimator):
    """Bayesian mixture of any family by tempered variational inference.

    The family of the components is chosen by name, combined from families of columns,
    or user-defined. The posterior is approximated by coordinate ascent on the exact
    evidence bound, on all rows (`fit`), on a stream (`partial_fit`) or on distributed
    data (`sufficient_statistics` and `absorb`).

    Parameters
    ----------
    family : str, Family, list of str or list of tuples, default="normal"
        Distribution of a row within a component: a name ("normal", "lognormal",
        "poisson", "exponential", "gamma", "bernoulli", "categorical", "student",
        "von_mises_fisher", "regression"), a :class:`Family`, or a list for columns of
        several kinds, independent within a component: a name for each column, as in
        ``["normal", "poisson"]``, or triples (name, family, columns) as in
        :class:`~sklearn.compose.ColumnTransformer`, with selectors by name or type.
    n_components : int or "auto", default=1
        Number of components; "auto" chooses it from 1, ..., `max_components` by the
        largest evidence bound minus log(1 / pi_K). Components may be empty.
    inverse_temperature : float in (0, 1] or "auto", default=0.9
        Power of the likelihood, the paper's alpha. The guarantees need a value below 1;
        1 gives the standard variational posterior. "auto" chooses from 0.9, 0.45,
        0.225, 0.1125 and 0.05625 by the log density of held-out rows, in five folds of
        blocks of consecutive rows (equal rows of real numbers are in one fold). Values
        other than 0.9 must gain more than a standard error. All values are first
        divided by the number of copies of each row, if nearly all rows are copies, and
        by the overdispersion of counts within rows, such as words in texts. In a stream
        it is chosen on the first rows. A fit takes two to three times as long.
    max_components : int, default=20
        Largest number of components that "auto" tries; numbers far above those that
        turn out well are left out.
    component_prior : {"geometric", "uniform"}, default="geometric"
        Prior on the number of components: pi_K = 2^-K, or 1 / `max_components`.
    weight_concentration_prior : float, default=1.0
        Concentration of the symmetric Dirichlet prior of the weights. The guarantees
        need a value in [2 / n_components, 1].
    outliers : bool, default=False
        Whether to add a uniform distribution over the box of the rows, for rows that
        fit no component; `predict` labels them -1. Rows must then be complete, and
        their columns real numbers or counts. On a stream the box grows with the rows.
    n_init : int, default=3
        Number of starts, of which the best is kept; with `n_components="auto"`, number
        of paths of mergers, of which the first begins with ten components, and the
        others with twice the best number and four more, up to `max_components`. If the
        first half, at least two, agree in the number and the criterion, the others are
        left out.
        Split-merge moves then try to improve the best solution.
    max_iter : int, default=300
        Largest number of iterations of a start, and of a split-merge move.
    tol : float, default=1e-5
        The ascent stops when the bound increases by less than `tol` nats per row, times
        `inverse_temperature`.
    block_size : int, "auto" or None, default="auto"
        Number of rows in a block of the stream. "auto": max(500, 20 K (n_features +
        1)), at most 10000. None: a single growing block, so that `partial_fit` equals
        `fit` on all rows, which are kept.
    window : int or "auto", default="auto"
        Number of the latest rows of the stream that are kept for sweeps. "auto": four
        blocks, and at least 20 K (n_features + 1) rows, at most 10000. If a block has
        fewer than these, and `n_components` is a number, up to four times as many as
        long as a component has hardly any rows. 0: only the current block.
        Overlapping groups are not separated if the window is too short to show both.
    n_sweeps : int, default=3
        Number of sweeps over the window after each block of the stream. Each time the
        number of blocks has doubled, split-merge moves are tried too. With
        `n_components="auto"`, a component may be split or two may be merged after each
        block.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of `sample`.
    warm_start : bool, default=False
        Whether `fit` starts from the last solution, by its responsibilities for the
        rows, instead of `n_init` starts. The rows must have the same columns, and no
        new categories. If `n_components` has changed, components are merged or split;
        "auto" starts from the last number only, and an inverse temperature of "auto" is
        kept. Not used by `partial_fit`.
    n_jobs : int, default=None
        Number of threads for the starts. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors. Only `n_jobs` and
        `warm_start` may change within a stream.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    weights_ : ndarray of shape (n_components,)
        Posterior means of the weights.
    weight_concentration_ : ndarray of shape (n_components,)
        Concentration of the Dirichlet posterior of the weights.
    parameters_ : dict of str to ndarray
        Posterior of the components: arrays named by the family, whose first axis is
        that of the components.
    inverse_temperature_ : float
        Power of the likelihood, given or chosen.
    elbo_ : float
        Evidence bound J of all rows, with all constants, in nats. It can be compared
        between numbers of components, families and priors.
    elbo_history_ : ndarray
        Bounds of the iterations of the best start and of the moves that improved it, or
        of the sweeps of the last block. With missing values it may decrease at a move,
        which is judged by a corrected bound.
    elbo_path_ : dict of int to float
        For each number of components tried, the bound minus log(1 / pi_K); in a stream,
        of the first rows. With missing values, a first-order correction of the bound
        is added.
    statistics_ : ndarray of shape (n_components, n_columns)
        Sufficient statistics of all rows: counts, sums of the family's statistics,
        entropies.
    converged_ : bool
        Whether the best start met `tol`; in a stream, on the first rows.
    n_iter_ : int
        Number of iterations of the best start and of the moves that improved it.
    n_samples_seen_ : int or float
        Total weight of the rows seen.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    TemperedVBGaussianMixture : Gaussians with full, tied, diagonal or spherical
        covariances.
    TemperedVBMultinomialMixture : Rows of counts, given their totals.

    Notes
    -----
    Algorithm 1 of [1]_: the variational posterior is a product q(p) q(theta_1) ...
    q(theta_K), and `elbo_` is

        J = alpha sum_i log sum_k exp(E log p_k + E log q_k(x_i)) - KL(q, prior).

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    Choose the number of components for counts from two groups:

    >>> import numpy as np
    >>> from skpacbayes.mixture import TemperedVBMixture
    >>> rng = np.random.default_rng(0)
    >>> rates = np.array([[2.0, 9.0], [8.0, 3.0]])
    >>> X = rng.poisson(rates[rng.integers(0, 2, 400)])
    >>> mixture = TemperedVBMixture("poisson", "auto", max_components=5, random_state=0)
    >>> mixture.fit(X).n_components_
    2
    >>> np.sort(mixture.parameters_["rates"][:, 0]).round()
    array([2., 8.])
    """

    _parameter_constraints: dict = {
        "family": [StrOptions(set(FAMILIES)), HasMethods(["begin", "update"]), list],
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "inverse_temperature": [
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"auto"}),
        ],
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "component_prior": [StrOptions({"geometric", "uniform"})],
        "weight_concentration_prior": [Interval(Real, 0, None, closed="neither")],
        "outliers": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "block_size": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "window": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
    }
    _may_change = ("warm_start", "n_jobs")
    _saves_computed = False

    def __init__(
        self,
        family="normal",
        n_components=1,
        *,
        inverse_temperature=0.9,
        max_components=20,
        component_prior="geometric",
        weight_concentration_prior=1.0,
        outliers=False,
        n_init=3,
        max_iter=300,
        tol=1e-5,
        block_size="auto",
        window="auto",
        n_sweeps=3,
        random_state=None,
        warm_start=False,
        n_jobs=None,
    ):
        self.family = family
        self.n_components = n_components
        self.inverse_temperature = inverse_temperature
        self.max_components = max_components
        self.component_prior = component_prior
        self.weight_concentration_prior = weight_concentration_prior
        self.outliers = outliers
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.block_size = block_size
        self.window = window
        self.n_sweeps = n_sweeps
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    # Learning.

    @fit_context
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture to rows, forgetting all earlier rows.

        With `warm_start=True`, the ascent starts from the last solution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. None: 1 each.

        Returns
        -------
        self : object
            The fitted mixture.

        Raises
        ------
        ValueError
            If X is not valid for the family, its squares overflow, or no row has a
            positive weight; if the weights sum to more than 1e10; if `warm_start=True`
            and the columns of X differ from those of the last solution.

        Warns
        -----
        ConvergenceWarning
            If the bound of the best start still increases after `max_iter` iterations.
        ConvergenceWarning
            If `n_components` is larger than the number of rows of positive weight.
        ConvergenceWarning
            If `n_components="auto"` and another `random_state` may choose another
            number: the starts find different numbers, or the criteria of the two best
            numbers are close.
        ConvergenceWarning
            If `n_components="auto"` chose `max_components`, and one more component has
            a larger criterion; in a stream, checked when the number of blocks has
            doubled.
        UserWarning
            If the mean of the positive weights is less than 0.1: weights are numbers of
            rows, not shares.
        UserWarning
            If one row has at least 30 times the weight of every other row, and a tenth
            of the total weight.
        UserWarning
            If `n_components="auto"` and nearly all rows are repeated, counting weights,
            or half of them, as in a bootstrap sample, and a component has fewer
            distinct rows than columns. For counts and categories, where rows may be
            equal by chance, if the numbers of repetitions are multiples of a prime up
            to 13.
        UserWarning
            If `n_components="auto"` and consecutive rows of components are much closer
            than in random order, as in a walk or a trend, or a column counts the rows.
        UserWarning
            If a repeated value is far from all others of its column, such as -999 for a
            missing value; in a stream, checked when the number of blocks has doubled.
        UserWarning
            If so many rows share a value of a column of real numbers that a density is
            not meaningful; in a stream, checked when the number of blocks has doubled.
            It is a ConvergenceWarning if `n_components="auto"`, whose number depends on
            the seed then.
        UserWarning
            If values of a column of categories are not integers, or nearly all of its
            rows have different values.
        UserWarning
            If the variance of a column underflows.
        UserWarning
            If columns that are modelled as independent within a component are nearly
            copies of each other there, or categories of one determine those of another:
            each counts as independent evidence, and `n_components="auto"` finds too
            many components.
        UserWarning
            If columns of a multinomial mixture with at least a tenth of all counts are
            multiples of others; if rows are shares instead of counts, with the sum 1,
            100, 10,000 or 1,000,000; if they have length 1, as those of
            `TfidfVectorizer`.
        UserWarning
            If y is given and the family is a regression, whose target is a column of X.
        UserWarning
            If a component seems to consist of outliers, unless there was a warning of
            repeated values. This is checked with at least two components, ten rows per
            component and complete rows of real numbers; not with `outliers=True`, and
            not with Gaussians of known covariance.
        UserWarning
            If `n_components="auto"` with Poisson or binomial columns, and fewer
            components with negative binomial, beta-binomial or zero-inflated columns
            would fit better: counts are overdispersed, and several components describe
            one group. Or if fewer components whose Poisson columns have a common factor
            for each row would: counts rise and fall together.
        UserWarning
            If `n_components="auto"` with independent columns of real numbers, and fewer
            components with full covariances would fit better: columns are correlated,
            and several components describe one group. This is checked with at most 50
            such columns, without missing values.
        UserWarning
            If `n_components="auto"`, the rows are positive shares with a common sum,
            and fewer components with Dirichlet distributions, or normal distributions
            of log-ratios, would fit better. This is checked with at most 50 columns.
        UserWarning
            If `n_components="auto"` with normal columns, "full" or "diag" covariances,
            and fewer components with shifted lognormal columns would fit better: groups
            are skewed, and several components describe one group. This is checked with
            at most 50 columns without missing values, five rows for each parameter of
            the components, and unless there was a warning of repeated values.
        UserWarning
            If Gamma columns with estimated shapes would fit better than those of known
            shape, including "exponential".
        UserWarning
            If a component of directional data has the largest concentration of its
            family.
        UserWarning
            If there are too few rows for "full" covariances: the same components with
            another covariance type have a bound that is larger by more than 0.3 nats
            per row. If there are too few for "full", "tied" or "diag" covariances, or
            for independent normal columns, with `n_components="auto"`: more components
            of a type with fewer parameters have a larger bound, and are apart. A stream
            checks its first rows, with `n_components="auto"` only.
        UserWarning
            If "diag" components have a bound larger than "spherical" ones by more than
            1 nat per row, or by more than 0.3 if the scales of features differ by a
            factor of ten.
        """
        last = vars(self).pop("_last", None)
        X, weight = self._present(X, sample_weight, reset=True, some=True)
        last = None if last is None else last._answer_for(self)
        self._seed = self._draw_seed()
        warn_of_target(self, y)
        learner = self._learner()
        learner.warn_if_more_than(X.shape[0], "rows")
        learned = learner.learn(X, weight, tasks=self._starts, last=last)
        fit = learned.fit
        self._stream = Stream.settled_at(
            learned,
            fit.state,
            fit.statistics,
            fit.bound,
            *window_sizes(self, X.shape[1])[:2],
        )
        self._stream.history = fit.history
        self.n_samples_seen_ = counted(0, ones_for(X, weight))
        self._computed = self._compute()
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the mixture with more rows; a row passed twice counts as two rows.

        Rows are collected into blocks of `block_size`, however they are split into
        calls. Until the first block is complete, the mixture is that of `fit` on the
        rows so far. Each later block is added to a window of the last `window` rows,
        and `n_sweeps` sweeps over the window follow, with the statistics of older rows
        fixed. Split-merge moves and, as long as the window holds all rows, `n_init` new
        starts are tried when the number of blocks has doubled, before the first row
        leaves a window of less than four blocks, and, if `n_components` is a number,
        after a block whose expected log density the sweeps raised by more than 0.1 nats
        per row, which indicates a new group. With `n_components="auto"`, a component is
        split, or two are merged, after a block in which that raises the criterion.

        A window of more than four blocks means that a block is short: until the first
        row leaves the window, the rows so far are instead fitted as by `fit` each time
        their number has grown by half. In between, when an eighth of them is new, the
        number of components may change, or components are exchanged if it is given; a
        component is later split or merged when a quarter of the window is new. If
        the block has fewer rows than the default, the window is "auto", `n_components`
        a number, and a component still has hardly any rows when the window is full, the
        window grows, up to the rows of four blocks of the default size, since groups
        whose rows have left it together are not separated later. The fitted attributes
        include all rows, also those of an incomplete block; they are computed when
        first needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows. Blocks count rows
            of positive weight. None: 1 each.

        Returns
        -------
        self : object
            The mixture.

        Raises
        ------
        ValueError
            If X is not valid for the family or has another number of features; if it
            has missing values and `covariance_type="auto"` chose a type that does not
            allow them. The mixture is then unchanged.

        Warns
        -----
        ConvergenceWarning
            At the first call, if `n_components` is larger than the number of rows of a
            block.
        UserWarning
            At the first call, if `window` is a number of rows that is too small for the
            components; for two if `n_components="auto"`.
        UserWarning
            At the first call, if y is given and the family is a regression.
        ConvergenceWarning, UserWarning
            When the first rows are fitted, as in `fit`, except about the number of
            rows, and about the covariance type of a given number of components. While
            the block is incomplete, these warnings are given when fitted attributes or
            predictions are computed.
        UserWarning
            Once, if a block shows a new group for Student components after rows have
            left the window, and the components do not describe it well: the weights of
            the rows that have left are fixed, so that components may not be rearranged
            as they should be.
        """
        begun = self._streaming()
        X, weight = self._present(X, sample_weight, reset=not begun)
        if not begun:
            self._seed = self._draw_seed()
            block_size, window, longest = window_sizes(self, X.shape[1])
            family = self._product_of_columns()
            self._stream = Stream(block_size, window, longest, family)
            warn_of_target(self, y)
            self._learner().warn_if_more_than(block_size, "rows of a block")
            warn_of_short_window(self, block_size, window, X.shape[1])
            self.n_samples_seen_ = 0
        vars(self).pop("_computed", None)
        if X.shape[0]:
            weight, learner = ones_for(X, weight), self._learner_of_stream()
            self._stream = self._stream.extended(X, weight, learner)
            self.n_samples_seen_ = counted(self.n_samples_seen_, weight)
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit the mixture and return the component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Most probable component of each row.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As in `fit`.
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    # Predictions.

    def predict(self, X):
        """Predict the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from 0 to `n_components_` - 1; with `outliers=True`, -1 for rows that
            are more probably outliers.
        """
        answer, X = self._answer(), self._check_rows(X)
        return answer.labels(X)

    @available_if(has_outliers)
    def outlier_proba(self, X):
        """Predict the probability that each row is an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples,)
            Variational probabilities.
        """
        answer, X = self._answer(), self._check_rows(X)
        return answer.outlier_probabilities(X)

    @available_if(has_target)
    def predict_target(self, X, return_std=False):
        """Predict the target of each row given its inputs, if a family is a regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows. Their targets are not used, and may be NaN unless `outliers=True`.
        return_std : bool, default=False
            Whether to also return standard deviations.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Means of the regressions, weighted by the predictive probabilities of the
            components given the inputs: the mean of the density of `score_samples`.
        std : ndarray of shape (n_samples,)
            Predictive standard deviations, only if `return_std`.
        """
        answer, X = self._answer(), self._check_rows(X).copy()
        line, posterior, columns = regression_of(*answer.usual, X.shape[1])
        X[:, columns[-1]] = np.nan
        shares = answer.predictive_shares(X)
        means, variances = line.predicted(posterior, X[:, columns])
        mean = (shares * means).sum(axis=1)
        if not return_std:
            return mean
        spread = variances + (means - mean[:, None]) ** 2
        return mean, np.sqrt((shares * spread).sum(axis=1))

    def predict_proba(self, X):
        """Predict the responsibilities, the variational probabilities of components.

        With `outliers=True`, these are conditional on the row not being an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components)
            Rows that sum to one.
        """
        answer, X = self._answer(), self._check_rows(X)
        return answer.responsibilities(X)

    def score_samples(self, X):
        """Return the log posterior-predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log of the posterior mean of the density, a mixture of the components'
            predictive distributions, in nats.
        """
        answer, X = self._answer(), self._check_rows(X)
        return answer.log_densities(X)

    def score(self, X, y=None):
        """Return the mean log posterior-predictive density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of `score_samples(X)`, in nats per row.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1, labels=None):
        """Draw rows from the posterior-predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; with a sequence of labels, their number.
        labels : int or array-like of shape (n_samples,), default=None
            Component of each row, as in `predict` (-1 for outliers): one for all rows
            or one for each. None: components are drawn too.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component, or in the order of `labels`.
        y : ndarray of shape (n_samples,)
            Components of the rows.
        """
        return self._draw_rows(n_samples, labels)

    # Distributed data.

    def sufficient_statistics(self, X, sample_weight=None):
        """Return the expected statistics of rows under the current posterior.

        The mixture is not changed. The sum of the statistics of several sets of rows
        can be passed to `absorb`, so that a sweep over distributed data is one sum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, whose feature names are checked.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        statistics : ndarray of shape (n_components, n_columns)
            Counts, sums and, in the last column, entropies of the responsibilities. The
            statistics of frames carry the names of the columns.
        """
        answer = self._answer()
        rows, weight = self._present(X, sample_weight, reset=False, least=0)
        if rows.shape[0] == 0:
            return named_as(np.zeros_like(answer.statistics), X)
        statistics, _ = answer.mixture.e_step(answer.state, rows, weight)
        return named_as(answer.mixture.rounded(statistics), X)

    @updates_state
    def absorb(self, statistics, memory=1.0):
        """Update the posterior by the result of `sufficient_statistics`.

        Parameters
        ----------
        statistics : ndarray of shape (n_components, n_columns)
            Statistics computed under the current posterior.
        memory : float in [0, 1], default=1.0
            Factor of the weight of the rows so far: 1 adds new rows, 0 replaces all
            rows (a sweep of a distributed fit), and values in between forget. With 1,
            the statistics of no rows change nothing.

        Returns
        -------
        self : object
            The mixture.

        Raises
        ------
        ValueError
            If the statistics have another shape, are not finite, or cannot be those of
            rows: negative counts, entropies or scatter, or entropies above
            log(n_components) per row (entropies are not checked with missing values or
            outliers); if they are of columns with other names; or if `memory` is
            outside [0, 1]. It cannot be detected that rows were counted twice, or that
            columns of an array were exchanged.
        """
        check_is_fitted(self)
        answer = self._answer()
        self._check_names_of(statistics)
        statistics = as_numbers("statistics", statistics, ensure_all_finite=False)
        check_share("memory", memory, ends=True)
        same_shape = statistics.shape == answer.statistics.shape
        if memory == 1 and same_shape and not statistics.any():
            return None
        self._stream = answer.absorbed(statistics, memory)
        self.n_samples_seen_ = as_count(
            memory * self.n_samples_seen_ + statistics[:, 0].sum()
        )
        self._computed = self._compute()
        return self

    # Fitted attributes.

    n_components_ = answered(lambda a: len(a.weights), "Number of components.")
    weights_ = answered(lambda a: a.weights, "Posterior means of the weights.")
    weight_concentration_ = answered(
        lambda a: a.state.concentration, "Dirichlet posterior of the weights."
    )
    parameters_ = answered(lambda a: a.parameters, "Posterior of the components.")
    inverse_temperature_ = answered(
        lambda a: float(a.mixture.inverse_temperature), "Power of the likelihood."
    )
    elbo_ = answered(lambda a: float(a.bound), "Evidence bound J of all rows.")
    elbo_history_ = answered(lambda a: np.array(a.history), "Bounds of the iterations.")
    elbo_path_ = answered(
        lambda a: a.stream.learned.path, "Criterion of each number of components."
    )
    statistics_ = answered(lambda a: a.statistics, "Statistics of all rows.")
    converged_ = answered(
        lambda a: a.stream.learned.fit.converged, "Whether the best start met `tol`."
    )
    n_iter_ = answered(
        lambda a: len(a.stream.learned.fit.history) - 1, "Iterations of the best start."
    )

    def __sklearn_tags__(self):
        """Say whether NaN is a missing value."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    # Steps of `fit`, in order.

    def _draft(self, *, forgets):
        draft = super()._draft(forgets=forgets)
        if forgets and self.warm_start and vars(self).get("n_samples_seen_"):
            draft._last = self
        return draft

    def _answer_for(self, other):
        """Return the last solution, for a fit to rows with the same columns."""
        names = [list(vars(m).get("feature_names_in_", ())) for m in (self, other)]
        widths = self.n_features_in_, other.n_features_in_
        if widths[0] != widths[1] or (all(names) and names[0] != names[1]):
            raise ValueError(
                f"X has {widths[1]} features{': ' * any(names)}{', '.join(names[1])}, "
                f"but the last solution has {widths[0]}{': ' * any(names)}"
                f"{', '.join(names[0])}: set warm_start=False to start again."
            )
        return self._answer()

    def _present(self, X, sample_weight, *, reset, some=False, least=1):
        """Return rows of positive weight, and their weights (None: 1 each)."""
        X = self._check_rows(X, reset=reset, least=least)
        if sample_weight is None:
            return X, None
        weight = checked_weights(sample_weight, X, some=some)
        if weight.sum() > MOST_ROWS:
            raise ValueError(
                f"sample_weight sums to {weight.sum():g}, but should sum to at most "
                f"{MOST_ROWS:g}: a weight says how many times a row counts, and more "
                "rows leave a double too few digits. Divide the weights by their mean."
            )
        present = weight > 0
        if present.all():
            return X, weight
        return X[present], weight[present]

    def _check_rows(self, X, *, reset=False, least=1):
        """Validate rows for the family, of which there must be at least `least`."""
        learned = None if reset else self._learned_family() or self._first_family()
        family = learned or self._family()
        if reset:
            check_parameters(family)
        rows = None if reset else self._plain(X)
        if rows is None:
            takes = self._takes_missing(reset=reset)
            finite = "allow-nan" if takes else True
            rows = self._rows(
                X, reset=reset, ensure_all_finite=finite, ensure_min_samples=least
            )
            if reset:
                self._select_columns(X)
            if not rows.shape[0]:
                return rows
            refuse_large("X", rows)
            family = learned or self._family()  # with indices of columns
        family.check_rows(rows)
        return rows

    def _rows(self, X, *, reset=False, **checks):
        try:
            return super()._rows(X, reset=reset, **checks)
        except ValueError as error:
            if str(error).startswith("Input X contains NaN"):
                error.add_note(self._why_no_missing())
            raise

    def _why_no_missing(self):
        """Return why missing values are refused, and what to do."""
        family = self._family()
        if family.allows_missing:
            refuses, others = "outliers=True", "set outliers=False"
        else:
            refuses = f"The family {type(family).__name__}"
            others = "choose a family that leaves them out, such as 'normal'"
        return f"{refuses} takes no missing values: leave out these rows, or {others}."

    def _acceptable(self, X):
        return are_small(X)

    def _select_columns(self, X):
        """Keep the columns that functions of the first rows select for families."""
        vars(self).pop("_selected", None)
        product = self._product()
        selected = product.selected(X) if product else None
        if selected:
            self._selected = selected

    def _product(self):
        """Return the families of columns of several kinds, as given; else None."""
        given = self.family
        if isinstance(given, list):
            given = ProductFamily(given)
        return given if isinstance(given, ProductFamily) else None

    def _family(self):
        """Return the family before any rows."""
        product = self._product()
        if product is None:
            return family_named(self.family)
        if "n_features_in_" in vars(self):
            names = vars(self).get("feature_names_in_", ())
            selected = vars(self).get("_selected", {})
            product = product.with_indices(names, self.n_features_in_, selected)
        return product

    def _takes_missing(self, *, reset=False):
        """Return whether NaN is allowed as a missing value."""
        learned = None if reset else self._learned_family()
        if learned is not None:
            return learned.allows_missing
        family = (self if reset else self._as_fitted())._family()
        return family.allows_missing and not has_outliers(self)

    def _learned_family(self):
        """Return the family of the fitted state, independently of the parameters.

        None before the first block was learnt, or a result was computed.
        """
        stream, answer = vars(self).get("_stream"), vars(self).get("_computed")
        if answer is None and (stream is None or stream.learned is None):
            return None
        return (stream.learned if answer is None else answer).mixture.family

    def _product_of_columns(self):
        """Return the validated families of columns of several kinds; else None."""
        product = self._family()
        if not isinstance(product, ProductFamily):
            return None
        product.checked = True
        return product

    def _first_family(self):
        """Return the product of families at the start of a stream, or None."""
        stream = vars(self).get("_stream")
        return None if stream is None else stream.family

    def _families_with_outliers(self, X, weight):
        """Return the families, with outliers if requested."""
        families = self._begin_families(X, weight)
        if not has_outliers(self):
            return families
        return [OutlierFamily.around(family, X) for family in families]

    def _begin_families(self, X, weight):
        """Return the families to compare, with priors that may depend on X."""
        return [self._family().begin(X, weight)]

    def _warn_of(self, fit, fits, X, weight, learner):
        """Warn if a fit suggests other parameters."""
        warn_of_merged_columns(fit, X, weight, learner)

    def _starts(self, count):
        """Yield a task for callbacks for each start."""
        return self._tasks(count, "start")

    def _learner(self, of_stream=False):
        """Return the learner for the parameters."""
        return Learner(
            self._families_with_outliers,
            self._seed,
            vars(self) | self.get_params(deep=False),
            of_stream,
            self._warn_of,
        )

    def _learner_of_stream(self):
        return self._learner(of_stream=self.block_size is not None)

    # Steps of a stream.

    def _learn_at_once(self, X, y=None, sample_weight=None):
        """Append plain rows that complete no block; return whether this was done."""
        if sample_weight is not None or "_computed" in vars(self):
            return False  # rows are checked by the stream's family, not the answer's
        rows = self._plain(X)
        if rows is None or not self._stream.has_room(len(rows)):
            return False
        rows = self._check_rows(rows)
        weight, seen = np.ones(len(rows)), self.n_samples_seen_
        whole = isinstance(seen, int)
        self._publish(
            _stream=self._stream.waiting(rows.copy() if rows is X else rows, weight),
            n_samples_seen_=seen + len(rows) if whole else counted(seen, weight),
        )
        return True

    def _rows_of_a_block(self, n_components, n_features):
        return 20 * n_components * (n_features + 1)

    # Results.

    def _compute(self):
        if self.n_samples_seen_ == 0:
            raise NotFittedError(
                f"This {type(self).__name__} instance has seen no row yet: call "
                "partial_fit with rows of positive weight."
            )
        learner = self._learner_of_stream()
        stream = self._stream.current(learner)
        stream.check(learner)
        statistics, bound = stream.summary()
        return Answer(stream, statistics, bound, stream.history or [bound])

    def _draw_rows(self, n_samples, labels, **how):
        """Draw rows and their labels, which may be given."""
        n_samples = check_count("n_samples", n_samples)
        answer, generator = self._answer(), self._generator()
        if labels is None:
            return answer.drawn(n_samples, generator, **how)
        labels = answer.checked_labels(labels, n_samples)
        return answer.drawn_of(labels, generator, **how), labels


def ones_for(X, weight):
    """Return the weights, or ones if they are None."""
    return np.ones(X.shape[0]) if weight is None else weight


def parameter(name, description):
    """Return a property of a mixture: one of its `parameters_`."""
    return answered(lambda answer: answer.parameters[name], description)
