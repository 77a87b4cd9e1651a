"""Mixtures whose clusters differ in subsets of the features."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from scipy.stats import rankdata
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_is_fitted

from .._arviz import ArviZMixin, ChainDraws
from .._base import PacBayesEstimator, as_fitted, first_named, fit_context, warn_user
from .._chains import in_threads, run_chains
from .._compat import Interval, StrOptions
from .._sentinels import warn_of_sentinels
from ._paco_constant_columns import (
    columns_between_alike_clusters,
    columns_constant_in_clusters,
    values_of_clusters,
)
from ._subspace_chain import Chain
from ._subspace_doubts import columns_of_a_path, n_groups_of_values, times_copied
from ._subspace_posterior import Predictive, Run
from ._subspace_skewed import n_skewed_groups
from ._subspace_start import start_from_centers, start_from_halves, start_in_boxes
from ._units import exponent_of, scaled

MOST_CLUSTERS = 20  # of n_clusters="auto", before clusters merge
_ROUND = 10  # iterations of each chain before the worse half of them stops
_N_SPLITS = 5  # times that the clusters of the last chain are split and merged, at most
_LEAST_AGREEMENT = 0.75  # share of the rows that the two best chains label alike
_LEAST_NOISE = 1e-6  # standard deviation within clusters, below which it is rounding
_MANY_FEATURES = 2000  # from which correlations are not computed
_FEWEST_ROWS = 3  # mean number of rows of a cluster, below which "auto" warns
_RELEVANT = 0.5  # probability from which a feature is relevant
_ROWS_A_CLUSTER = 10  # mean number of rows from which a single row is an outlier
_LEVELS = 10  # values of a column that is no measurement, at most
_NAMED = 4  # columns or rows that a warning names, at most
_FARTHEST = 1e100  # standard units, whose squares are numbers
# Values beyond these quantiles, by more than so many times the distance between them,
# have the value at this distance in the unit of their feature, which they would decide.
_TAILS, _REACH = (0.05, 0.95), 5.0
# Limits of rows of `fit`, in standard units: sums of squares are accurate, and a
# variance that all clusters share is not that of a few far rows. The second limit is
# for features in which at most this share of the rows, or so many, are beyond it: more
# may be groups.
_FARTHEST_LEARNT, _FARTHEST_OF_FEW, _FEW_SHARE, _FEW = 1e4, 20.0, 0.01, 3


class SubspaceMixture(ArviZMixin, ClusterMixin, PacBayesEstimator):
    """Subspace clustering: clusters of rows, each in a subset of the features.

    Each feature has a normal background distribution, common to all clusters. In the
    features relevant to a cluster its rows have their own mean and variance. A Gibbs
    sampler draws the labels and the relevant features from their posterior (appendix of
    [1]_, after [2]_). Several chains are started: the first from k-means, the others
    from groups found in random narrow boxes [3]_. The clusters of the chain with the
    most probable partitions are split in two and merged again, for as long as that
    gives more probable ones.

    This finds groups that differ in two of ten features, where k-means and mixtures
    that describe every feature in every component often fail.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of clusters. "auto": the chains start with at most 20 clusters, and
        clusters of the best chain are merged as long as that raises the joint density
        of rows and partition, with a uniform prior on the number of clusters.
    variance : {"cluster", "shared"}, default="cluster"
        "cluster": in a relevant feature a cluster has its own mean and variance.
        "shared": its own mean, and the variance of the background. This is the model of
        [1]_; it does not find groups that differ only in variance.
    weight_concentration : float, default=1.0
        Concentration of the Dirichlet prior of the weights, for each cluster. A larger
        value prefers clusters of equal size.
    n_init : int, default=10
        Number of chains that are started. After every 10 iterations the worse half of
        them is stopped, until one remains. A single chain starts in boxes.
    burn_in : int, default=15
        Number of iterations of the remaining chain that are dropped.
    n_iter : int, default=50
        Number of iterations of the remaining chain that are kept. Posterior
        probabilities are means over these.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable label of each row given to `fit`. Cluster 0 is the largest. Some
        of the `n_clusters_` labels may not occur.
    n_clusters_ : int
        Number of clusters of the model: `n_clusters`, or the number chosen.
    relevant_features_ : ndarray of shape (`n_clusters_`, n_features)
        Posterior probability that a feature is relevant to a cluster. 0 for a feature
        that does not vary.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        Mean of the rows of each cluster; the mean of all rows for a cluster without
        rows.
    weights_ : ndarray of shape (`n_clusters_`,)
        Posterior mean of the weight of each cluster.
    log_joints_ : ndarray of shape (`n_init`,)
        For each chain, the mean over its last 10 iterations before it was stopped, or
        was the only one, of the joint log density of rows, in standard units, and
        labels, given the background.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had some.

    See Also
    --------
    sklearn.mixture.GaussianMixture : Every component describes every feature.
    TemperedVBGaussianMixture : Chooses the number of components; has `partial_fit`.

    Notes
    -----
    Let x be a row in standard units (values far beyond the middle nine tenths of a
    feature do not decide its unit), z its cluster, and r_jm in {0, 1} whether feature
    m is relevant to cluster j (probability theta, uniform prior):

    - r_jm = 0: x_m ~ N(mu_m, sigma_m^2), with a normal-inverse-gamma prior;
    - r_jm = 1, "cluster": x_m ~ N(m_jm, v_jm), integrated out over the
      normal-inverse-gamma distribution of mean 0, weight 0.05, shape 1.5 and scale 0.3;
    - r_jm = 1, "shared": x_m ~ N(mu_m + b_jm, sigma_m^2), b_jm ~ N(0, eta sigma_m^2),
      eta ~ IG(2, 10).

    An iteration draws each z with r, the weights and the relevant moments integrated
    out, then r, then mu, sigma^2, eta (with b) and theta. The conditionals printed in
    [1]_ for lambda, sigma^2 and eta are misprinted (with n rows in the cluster and S
    the sum of their distances from mu, the exponent of lambda is
    eta S^2 / ((1 + eta n) 2 sigma^2)); those used are tested against enumeration.

    The probability of a label is the mean over the kept iterations of its conditional
    probability given all other variables: less noisy than the share of iterations that
    drew it.

    There is no `sample_weight`: copies of a row may have different labels, which a
    weighted row cannot. Repeat the rows instead.

    An iteration costs n_samples x n_clusters x n_features evaluations of a logarithm
    and an exponential.

    `score_samples` is the density over the features that vary, without constant
    features.

    References
    ----------
    .. [1] K. Fan and K. Heller (2018). k-means: Fighting against Degeneracy in
       Sequential Monte Carlo with an Application to Tracking. Appendix 6.
    .. [2] P. D. Hoff (2006). Model-based subspace clustering. Bayesian Analysis 1(2).
    .. [3] C. M. Procopiuc, M. Jones, P. K. Agarwal and T. M. Murali (2002). A Monte
       Carlo algorithm for fast projective clustering. SIGMOD.

    Examples
    --------
    Five groups, each narrow in two features of six and uniform in the others:

    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from skpacbayes.cluster import SubspaceMixture
    >>> from skpacbayes.datasets import make_subspace_groups
    >>> X, y = make_subspace_groups(n_features=6, random_state=0)
    >>> adjusted_rand_score(y, KMeans(5, random_state=0).fit_predict(X)) < 0.3
    True
    >>> mixture = SubspaceMixture(5, random_state=0).fit(X)
    >>> adjusted_rand_score(y, mixture.labels_) > 0.8
    True
    >>> sorted(np.flatnonzero(p > 0.5).tolist() for p in mixture.relevant_features_)
    [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    """

    _parameter_constraints: dict = {
        "n_clusters": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "variance": [StrOptions({"cluster", "shared"})],
        "weight_concentration": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_clusters=2,
        *,
        variance="cluster",
        weight_concentration=1.0,
        n_init=10,
        burn_in=15,
        n_iter=50,
        random_state=None,
        n_jobs=None,
    ):
        self.n_clusters = n_clusters
        self.variance = variance
        self.weight_concentration = weight_concentration
        self.n_init = n_init
        self.burn_in = burn_in
        self.n_iter = n_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None):
        """Run the Gibbs sampler.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        self : SubspaceMixture
            The fitted estimator.

        Raises
        ------
        ValueError
            If X is not valid or has fewer rows than `n_clusters`.

        Warns
        -----
        ConvergenceWarning
            If the two best chains put more than a quarter of the rows in different
            clusters, or if ``n_clusters="auto"`` leaves fewer than three rows for each
            cluster, finds several clusters within which features are correlated, or of
            which some have one value of a feature, such as a flag, or finds more
            clusters than there are groups of a mixture with skewed features, or with
            counts, that describes the rows better. If rows are copies of others, or
            consecutive rows of a cluster are close to each other, as on a path.
        UserWarning
            If several rows have a value such as -999, far from all others. If a few far
            rows may hide clusters, with ``variance="shared"``. If a cluster consists of
            one row, where clusters have ten rows or more in the mean.
        """
        X = self._rows(X, reset=True)
        warn_of_sentinels(X, vars(self).get("feature_names_in_", ()))
        auto = self.n_clusters == "auto"
        n_clusters = min(MOST_CLUSTERS, len(X)) if auto else self.n_clusters
        if len(X) < n_clusters:
            raise ValueError(
                f"n_samples={len(X)} should be >= n_clusters={n_clusters}."
            )
        Z = self._standardize(X)
        model = Z, n_clusters, self.variance == "shared", self.weight_concentration
        rngs = self._generator().spawn(self.n_init + _N_SPLITS)
        runs = [
            Run(
                Chain(*model, rng),
                start_from_centers if number == 0 < self.n_init - 1 else start_in_boxes,
            )
            for number, rng in enumerate(rngs[: self.n_init])
        ]
        best, *second = self._race(runs)
        self.log_joints_ = np.array([run.log_joint for run in runs])
        if auto:
            for run in best, *second:
                run.settle_clusters(_ROUND)
        else:
            best = self._split_and_merge(best, model, rngs[self.n_init :])
        run_chains(
            [best],
            burn_in=self.burn_in,
            n_iter=self.n_iter,
            tasks=lambda blocks: self._tasks(blocks, "iterations", X),
            n_jobs=1,
        )
        self._describe(X, Z, best)
        self._trace = np.array(best.trace)
        for run in second:
            self._compare(run.chain.labels)
        self._warn_of_single_rows()
        if auto and len(X) < _FEWEST_ROWS * self.n_clusters_ > _FEWEST_ROWS:
            warn_user(
                f"{self.n_clusters_} clusters were chosen for {len(X)} rows of "
                f"{X.shape[1]} features: with so few rows for each, they may be noise. "
                "Give n_clusters, or fewer features.",
                ConvergenceWarning,
            )
        elif auto and self.n_clusters_ > 1 and not self._warn_of_copies(Z):
            self._warn_of_pieces(Z)
            self._warn_of_order(Z)
        if auto and self.n_clusters_ > 1:
            self._warn_of_correlation(Z)
        return self

    def predict(self, X):
        """Predict the most probable cluster of each row.

        Rows given to `fit` are treated as new rows, so that rows near the border of
        clusters may differ from `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels, as in `labels_`.
        """
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X):
        """Predict the probability of each cluster for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, `n_clusters_`)
            Probabilities, in the order of the labels.
        """
        log_joint = self._log_joint(X)
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))

    def score_samples(self, X):
        """Return the log density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log densities over the features that vary, in the units of the rows.
        """
        log_density = logsumexp(self._log_joint(X), axis=1)
        units = np.log(self._unit[self._varies]) + self._exponent * np.log(2)
        return log_density - units.sum()

    def score(self, X, y=None):
        """Return the mean of `score_samples`, to choose parameters by cross-validation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        score : float
            Mean log density.
        """
        return float(self.score_samples(X).mean())

    @as_fitted
    def _chain_draws(self):
        log_joint, probability, factor = self._trace.T[:, None]
        posterior = {"relevance_probability": probability}
        if self.variance == "shared":  # otherwise the model has no such factor
            posterior["shift_variance"] = factor
        return ChainDraws(posterior, {"log_joint": log_joint})

    def _race(self, runs):
        """Advance the chains, stopping the worse half repeatedly.

        Chains stay near their start, so that a few iterations show which starts are
        good. Returns the last two, the better first.
        """
        ranked = remaining = runs
        while True:
            calls = [(run.advance, _ROUND, False) for run in remaining]
            in_threads(self.n_jobs, calls)
            if len(remaining) == 1:
                return ranked[:2]
            ranked = sorted(remaining, key=lambda run: -run.log_joint)
            remaining = ranked[: (len(ranked) + 1) // 2]

    def _split_and_merge(self, best, model, rngs):
        """Return the run, or a better one from its clusters, split and merged again."""
        for rng in rngs:
            labels = best.chain.labels
            start = partial(start_from_halves, labels=labels, n_iter=_ROUND)
            other = Run(Chain(*model, rng), start)
            other.advance(_ROUND, keep=False)
            if not other.log_joint > best.log_joint:
                break
            best = other
        return best

    def _warn_of_single_rows(self):
        """Warn of clusters that consist of one row each."""
        counts = np.bincount(self.labels_, minlength=self.n_clusters_)
        rows = np.flatnonzero(counts[self.labels_] == 1).tolist()
        if not rows or len(self.labels_) < _ROWS_A_CLUSTER * self.n_clusters_:
            return
        effect = f"n_clusters_={self.n_clusters_} counts them. Leave them out"
        if self.n_clusters != "auto":
            effect = "groups of other rows may share a cluster for this. Leave them out"
            effect += ", or raise n_clusters"
        warn_user(
            f"Outliers are clusters of one row each, {first_named(rows, (), _NAMED)}: "
            f"{effect}."
        )

    def _warn_of_correlation(self, Z):
        """Warn if features are correlated within the clusters."""
        used, labels = np.unique(self.labels_, return_inverse=True)
        centers = np.array([Z[labels == j].mean(axis=0) for j in range(len(used))])
        pair, correlation = most_correlated(Z - centers[labels], len(used))
        if pair is not None:
            first, second = np.flatnonzero(self._varies)[list(pair)]
            warn_user(
                f"columns {first} and {second} have correlation {correlation:.2f} "
                "within the clusters, but each counts as evidence of its own: "
                f"n_clusters_={self.n_clusters_} may be too many. Leave out columns "
                "that repeat others, or give n_clusters.",
                ConvergenceWarning,
            )

    def _warn_of_copies(self, Z):
        """Warn if rows are copies, and return whether they are."""
        if (times := times_copied(Z)) == 1.0:
            return False
        warn_user(
            f"n_clusters_={self.n_clusters_}, but nearly all rows are there twice or "
            f"more often, {times:.3g} times in the mean, and each copy counts as new "
            "evidence: there may be fewer groups. Fit each row once.",
            ConvergenceWarning,
        )
        return True

    def _warn_of_order(self, Z):
        """Warn if consecutive rows of clusters are much closer than others."""
        found, largest = columns_of_a_path(Z, self.labels_)
        if len(found):
            names = vars(self).get("feature_names_in_", ())
            columns = np.flatnonzero(self._varies)[found].tolist()
            warn_user(
                f"Rows depend on their order: within the {self.n_clusters_} clusters, "
                "consecutive rows are much closer than in random order in the columns "
                f"{first_named(columns, names, _NAMED)} (autocorrelation of ranks up "
                f"to {largest:.2g}). Ignore this if independent rows were sorted, by a "
                "group or a number. If they follow each other in time or space, "
                "clusters may be pieces of a path: fit differences of rows, use "
                "DirichletProcessHMM for regimes, or give n_clusters.",
                ConvergenceWarning,
            )

    def _warn_of_pieces(self, Z):
        """Warn if clusters are pieces of skewed groups, or set apart by one value."""
        columns = np.flatnonzero(self._varies)
        ranks = rankdata(Z, method="dense", axis=0)  # a far row makes all others alike
        values = values_of_clusters(ranks, self.labels_, self.n_clusters_)
        constant = columns_constant_in_clusters(ranks, self.labels_, values)
        if constant:
            named = ", ".join(map(str, columns[constant][:_NAMED]))
            more = ", ..." if len(constant) > _NAMED else ""
            warn_user(
                f"n_clusters_={self.n_clusters_}, and some clusters have one value "
                f"each in column {named}{more}, whose values hardly repeat elsewhere: "
                "a limit, zeros or a code for missing values may cut groups into "
                "pieces. Leave out these columns, or give n_clusters.",
                ConvergenceWarning,
            )
            return
        few = ranks.max(axis=0) <= _LEVELS
        cut = few & columns_between_alike_clusters(Z[:, ~few], self.labels_, values)
        if cut.any() and not few.all():
            names = vars(self).get("feature_names_in_", ())
            warn_user(
                f"n_clusters_={self.n_clusters_}, and clusters that are alike "
                "elsewhere have one value each of columns "
                f"{first_named(columns[cut].tolist(), names, _NAMED)}, of at most "
                f"{_LEVELS} values: such columns are not normal, and cut groups into "
                "pieces. Leave them out, or give n_clusters.",
                ConvergenceWarning,
            )
            return
        if few.all():
            n_groups = n_groups_of_values(ranks.astype(int) - 1, self.labels_)
            if n_groups is not None:
                warn_user(
                    f"n_clusters_={self.n_clusters_}, but {_describing(n_groups)} the "
                    f"rows better as counts or categories: no column has more than "
                    f"{_LEVELS} values, and clusters are cut at these. Use "
                    "TemperedVBMixture with family='poisson' or 'categorical', or give "
                    "n_clusters.",
                    ConvergenceWarning,
                )
                return
        relevant = self.relevant_features_[:, columns] > _RELEVANT
        n_groups = n_skewed_groups(Z, self.labels_, relevant)
        if n_groups is not None:
            groups = _describing(n_groups)
            warn_user(
                f"n_clusters_={self.n_clusters_}, but {groups} the rows better if "
                "features may be skewed or heavy-tailed: the clusters may be pieces of "
                "groups that are not normal. Transform such columns, for instance by "
                "logarithms or PowerTransformer, or give n_clusters.",
                ConvergenceWarning,
            )

    def _compare(self, labels):
        """Warn if the second best chain, with these labels, found other clusters."""
        pairs = contingency_matrix(self.labels_, labels)
        same = pairs[linear_sum_assignment(pairs, maximize=True)].sum() / len(labels)
        if self._varies.any() and same < _LEAST_AGREEMENT:
            warn_user(
                f"The two best of n_init={self.n_init} chains put {1 - same:.0%} of "
                "the rows in different clusters: another random_state may give other "
                "labels. Increase n_init, or try fewer clusters.",
                ConvergenceWarning,
            )

    def _standardize(self, X):
        """Set a unit for each feature that varies; return rows in these units."""
        self._exponent = exponent_of(X)
        X = scaled(X, -self._exponent)
        low, high = np.quantile(X, _TAILS, axis=0)
        reach = np.where(high > low, _REACH * (high - low), np.inf)
        within = X.clip(low - reach, high + reach)
        ranges = np.ptp(within, axis=0)
        self._varies = ranges > 0
        self._offset = within.mean(axis=0)
        deviation = (within - self._offset).std(axis=0)
        if (small := self._varies & ~(deviation > 0)).any():  # squares underflow
            ranges = np.where(small, ranges, 1.0)
            deviations = ranges * ((within - self._offset) / ranges).std(axis=0)
            deviation = np.where(small, deviations, deviation)
        self._varies &= deviation > 0
        self._unit = np.where(self._varies, deviation, 1.0)
        with np.errstate(over="ignore"):
            Z = ((X - self._offset) / self._unit)[:, self._varies]
        farthest = np.full(Z.shape[1], _FARTHEST_LEARNT)
        if self.variance == "shared":
            n_far = (np.abs(Z) > _FARTHEST_OF_FEW).sum(axis=0)
            few = n_far <= max(_FEW_SHARE * len(Z), _FEW)
            farthest[few] = _FARTHEST_OF_FEW
            self._warn_of_far_rows(few & (n_far > 0) & np.isfinite(reach)[self._varies])
        return np.ascontiguousarray(Z.clip(-farthest, farthest))

    def _warn_of_far_rows(self, far):
        """Warn of a few rows that are far in some of the features that vary."""
        columns = np.flatnonzero(self._varies)[far].tolist()
        if columns:
            names = vars(self).get("feature_names_in_", ())
            warn_user(
                "A few rows are very far from all others in columns "
                f"{first_named(columns, names, _NAMED)}: with variance='shared' they "
                "may hide clusters. Leave out these rows, or set variance='cluster'."
            )

    def _describe(self, X, Z, best):
        """Set the fitted attributes from the chain, the largest cluster first."""
        self.n_clusters_ = best.chain.n_clusters
        labels = best.chances.argmax(axis=1)
        counts = np.bincount(labels, minlength=self.n_clusters_)
        order = np.argsort(-counts, kind="stable")
        self.labels_ = np.argsort(order)[labels]
        counts = counts[order]
        self.relevant_features_ = np.zeros((self.n_clusters_, X.shape[1]))
        self.relevant_features_[:, self._varies] = best.relevance[order]
        weights = counts + self.weight_concentration
        self.weights_ = weights / weights.sum()
        self.cluster_centers_ = np.tile(X.mean(axis=0), (self.n_clusters_, 1))
        for j in np.flatnonzero(counts):
            self.cluster_centers_[j] = X[self.labels_ == j].mean(axis=0)
        rows = [Z[self.labels_ == j] for j in range(self.n_clusters_)]
        self._predictive = Predictive(rows, self.weights_, best, best.relevance[order])

    def _log_joint(self, X):
        """Return the joint log density of each row and label, in standard units."""
        check_is_fitted(self)
        Z = scaled(self._rows(X), -self._exponent)
        with np.errstate(over="ignore"):
            Z = ((Z - self._offset) / self._unit)[:, self._varies]
        return self._predictive.log_joint(Z.clip(-_FARTHEST, _FARTHEST))


def _describing(n_groups):
    """Return the subject and the verb of what describes the rows."""
    return "one group describes" if n_groups == 1 else f"{n_groups} groups describe"


def most_correlated(residuals, n_clusters):
    """Return the pair of columns of largest correlation, if it is no chance.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_features)
        Rows minus the means of their clusters, in units of their features.
    n_clusters : int

    Returns
    -------
    pair : tuple of int or None
        None if no correlation is above twice its largest value by chance: independent
        features have one with a probability of about d^-6.
    correlation : float
    """
    n_rows, d = residuals.shape
    if not 1 < d < _MANY_FEATURES:
        return None, 0.0
    freedom = len(np.unique(residuals, axis=0)) - n_clusters - 3  # copies do not count
    if freedom < 1:
        return None, 0.0
    lengths = np.sqrt((residuals**2).sum(axis=0))
    noisy = lengths > _LEAST_NOISE * np.sqrt(n_rows)  # not only by rounding
    units = np.where(noisy, residuals / np.where(noisy, lengths, 1.0), 0.0)
    correlations = np.abs(np.triu(units.T @ units, 1))
    pair = np.unravel_index(correlations.argmax(), correlations.shape)
    largest = min(correlations[pair], 1.0)
    by_chance = np.sqrt(4 * np.log(max(d, 10)) / freedom)  # of d^2 / 2 pairs
    if largest < np.tanh(2 * by_chance):
        return None, largest
    return tuple(map(int, pair)), largest
