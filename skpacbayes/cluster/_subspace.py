"""Mixtures whose clusters have relevant features of their own."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._base import PacBayesEstimator, fit_context
from ._subspace_posterior import Predictive, Run
from ._units import exponent_of, scaled

_N_BLOCKS = 10


class SubspaceMixture(ClusterMixin, PacBayesEstimator):
    """Clusters of rows, each in features of its own.

    Each feature has a background, common to all clusters: a normal law. To each cluster
    some features are relevant: there its rows have a mean, and a variance, of their
    own. Which features these are has a posterior, as have the labels; a Gibbs sampler
    draws from it (appendix of [1]_, after [2]_), in several chains. The first starts as
    k-means does, the others look for groups in random narrow boxes [3]_. The labels are
    those of the chain that found the most probable partitions.

    Groups that two features show and eight hide are invisible to k-means, and to
    mixtures that must describe every feature of every component.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    variance : {"cluster", "shared"}, default="cluster"
        "cluster": in a relevant feature a cluster has its own mean and variance.
        "shared": its own mean, and the variance of the background: the model of [1]_,
        blind to groups that differ in spread alone.
    weight_concentration : float, default=1.0
        Concentration of the Dirichlet prior of the weights, for each cluster.
    n_init : int, default=10
        Number of chains. If there is but one, it starts in boxes.
    max_iter : int, default=100
        Sweeps of each chain. The second half of them counts.
    random_state : int, RandomState instance or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Threads for the chains.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable label of each row given to `fit`, in the best chain. Cluster 0 is
        the largest; there may be fewer than `n_clusters`.
    relevant_features_ : ndarray of shape (n_clusters, n_features)
        Posterior probability that a feature is relevant to a cluster, in the best
        chain. 0 for a feature that does not vary.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of the rows of each cluster; that of all rows if it has none.
    weights_ : ndarray of shape (n_clusters,)
        Posterior mean of the weight of each cluster.
    log_joints_ : ndarray of shape (`n_init`,)
        For each chain, mean of the log density of the rows, in standard units, and
        labels given the background. The largest is that of the best chain: if few come
        near it, ask for more chains.
    n_iter_ : int
        Sweeps of each chain.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had some.

    See Also
    --------
    sklearn.mixture.GaussianMixture : Every component describes every feature.
    TemperedVBGaussianMixture : Chooses the number of components, and has streams.

    Notes
    -----
    With x a row in standard units, z its cluster and r_jm in {0, 1} whether feature m
    is relevant to cluster j (probability theta, uniform prior):

    - r_jm = 0: x_m ~ N(mu_m, sigma_m^2), with a normal-inverse-gamma prior;
    - r_jm = 1, "cluster": x_m ~ N(m_jm, v_jm), integrated out over the
      normal-inverse-gamma law of mean 0, weight 0.05, shape 1.5 and scale 0.3;
    - r_jm = 1, "shared": x_m ~ N(mu_m + b_jm, sigma_m^2), b_jm ~ N(0, eta sigma_m^2),
      eta ~ IG(2, 10).

    A sweep draws each z with r, the weights and the relevant moments integrated out,
    then r, then mu, sigma^2, eta (with b) and theta. The conditionals printed in [1]_
    for lambda, sigma^2 and eta are misprinted (with n rows in the cluster and S the
    sum of their distances from mu, the exponent of lambda is
    eta S^2 / ((1 + eta n) 2 sigma^2)); those used are tested against enumeration.

    The probability of a label is the mean, over the sweeps that count, of its law given
    all else: less noisy than the share of the sweeps that drew it.

    There is no `sample_weight`: copies of a row have labels of their own, which may
    differ, and no weight of one row with one label stands for that. Repeat the rows.

    A sweep costs n_samples x n_clusters x n_features evaluations of a logarithm and an
    exponential.

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
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "variance": [StrOptions({"cluster", "shared"})],
        "weight_concentration": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
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
        max_iter=100,
        random_state=None,
        n_jobs=None,
    ):
        self.n_clusters = n_clusters
        self.variance = variance
        self.weight_concentration = weight_concentration
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None):
        """Run the chains.

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
        """
        with self._all_or_nothing():
            X = self._rows(X, reset=True)
            if len(X) < self.n_clusters:
                raise ValueError(
                    f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}."
                )
            Z = self._standardise(X)
            model = Z, self.n_clusters, self.variance, self.weight_concentration
            runs = [
                Run(*model, rng, from_centers=number == 0 and self.n_init > 1)
                for number, rng in enumerate(self._generator().spawn(self.n_init))
            ]
            sweeps = np.arange(self.max_iter)
            blocks = np.array_split(sweeps, min(_N_BLOCKS, self.max_iter))
            for number in self._tasks(len(blocks), "sweeps", X):
                keep = blocks[number] >= self.max_iter // 2
                Parallel(self.n_jobs, prefer="threads")(
                    delayed(run.advance)(keep) for run in runs
                )
            self.n_iter_ = max(run.n_sweeps for run in runs)
            self._publish(X, Z, runs)
        return self

    def predict(self, X):
        """Most probable cluster of each row, given what `fit` found.

        Rows of `fit` are judged as new ones, so some on a border may differ from
        `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels, as in `labels_`.
        """
        check_is_fitted(self)
        Z = self._in_standard_units(self._rows(X))
        scores = np.empty((len(Z), self.n_clusters))
        with np.errstate(over="ignore", invalid="ignore"):
            for j, predictive in enumerate(self._predictives):
                scores[:, j] = predictive.log_density(Z)
        return np.nan_to_num(scores, nan=-np.inf).argmax(axis=1)

    def _standardise(self, X):
        """Choose a unit for each feature that varies; rows in these units."""
        self._exponent = exponent_of(X)
        X = scaled(X, -self._exponent)
        self._varies = np.ptp(X, axis=0) > 0
        self._offset = X.mean(axis=0)
        deviation = (X - self._offset).std(axis=0)
        self._varies &= deviation > 0
        self._unit = np.where(self._varies, deviation, 1.0)
        return self._in_standard_units(X, already_scaled=True)

    def _in_standard_units(self, X, already_scaled=False):
        if not already_scaled:
            X = scaled(X, -self._exponent)
        Z = ((X - self._offset) / self._unit)[:, self._varies]
        return np.ascontiguousarray(Z)

    def _publish(self, X, Z, runs):
        """Describe the best chain; its largest cluster comes first."""
        self.log_joints_ = np.array([run.log_joint for run in runs])
        best = runs[self.log_joints_.argmax()]
        labels = best.chances.argmax(axis=1)
        counts = np.bincount(labels, minlength=self.n_clusters)
        order = np.argsort(-counts, kind="stable")
        self.labels_ = np.argsort(order)[labels]
        counts = counts[order]
        self.relevant_features_ = np.zeros((self.n_clusters, X.shape[1]))
        self.relevant_features_[:, self._varies] = best.relevance[order]
        weights = counts + self.weight_concentration
        self.weights_ = weights / weights.sum()
        self.cluster_centers_ = np.tile(X.mean(axis=0), (self.n_clusters, 1))
        for j in np.flatnonzero(counts):
            self.cluster_centers_[j] = X[self.labels_ == j].mean(axis=0)
        self._predictives = [
            Predictive(Z[self.labels_ == j], weight, best, relevance)
            for j, (weight, relevance) in enumerate(
                zip(self.weights_, best.relevance[order], strict=True)
            )
        ]
