"""Stochastic sequential Monte Carlo for k-means, after Fan and Heller (2018)."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import fit_context, warn_user
from .._compat import Interval, StrOptions
from .._sentinels import warn_of_sentinels
from .._stream import StreamingEstimator, partial_fit_context
from .._validation import validate_data
from ._ssmc_stream import Setting, TupleStream
from ._units import CenterDistances

# Attributes about the rows of `fit`, which a stream does not keep.
_OF_FIT = ("labels_", "inertia_")


class SSMCKMeansInit(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, StreamingEstimator
):
    """Starting centres for k-means, by swap moves or sequential Monte Carlo.

    A particle is a tuple of `n_clusters` centres. The particles are weighted by the
    likelihood of k-means on batches of rows, and resampled until all are equal
    (Algorithm 2 of [1]_). The surviving tuple then makes swap moves: a row replaces one
    centre if that lowers the inertia. The swap is the move of local search k-means++
    [2]_, and the gain over k-means++ comes from it: by default there is one particle,
    drawn by k-means++ without trials, and 4 swap moves for each cluster, at least 100.

    An instance can be passed as `init` to :class:`sklearn.cluster.KMeans` and
    :class:`sklearn.cluster.MiniBatchKMeans`. It is also a clusterer whose centres are
    rows of X.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres. As `init`, the number that k-means passes is used instead.
    n_particles : int, default=1
        Number of particles: tuples of centres that batches of rows weight and resample.
        1: one tuple, improved by swap moves alone.
    n_moves : "auto" or int, default="auto"
        Number of swap moves of the surviving tuple, and of swap moves after each
        further batch of a stream. "auto": 4 for each cluster, and at least 100. Each
        move takes one pass over the rows.
    batch_size : "auto" or int, default="auto"
        Number of rows by which the particles are weighted at a time. "auto": a tenth of
        the rows in `fit`; in a stream, 50 for each cluster and at least 500. A batch
        should have several rows for each cluster, as a tuple of the rows of the batch
        has inertia 0. In a stream it is at least `n_clusters`.
    noise_variance : float or None, default=None
        Variance of a feature about its centre, in squared units of the data. None:
        unknown, and integrated out.
    proposal : {"d2", "data", "sobol"}, default="d2"
        Distribution of the first tuples. "d2": rows drawn one by one in proportion to
        the squared distance from those drawn before; "data": rows drawn uniformly;
        "sobol": scrambled Sobol points in the box that the rows span.
    max_passes : int, default=20
        Largest number of passes over all rows in `fit`, if the particles do not become
        equal; then the most frequent tuple is used.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. As `init`, that of k-means is used instead.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres. In a stream with fewer rows than `n_clusters`, there is one for
        each row.
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest centre of each row given to `fit`. Not available after
        `partial_fit`, which does not keep the rows.
    inertia_ : float
        Sum of the squared distances of the rows given to `fit` to their nearest centre.
        Not available after `partial_fit`.
    n_batches_ : int
        Number of batches that weighted the particles.
    n_swaps_ : int
        Number of swap moves that were accepted.
    n_samples_seen_ : int
        Number of rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had some.

    See Also
    --------
    sklearn.cluster.kmeans_plusplus : Draws each centre from a few candidates.
    PACOClusterer : Finds the number of clusters.

    Notes
    -----
    With cost_m(c) the inertia of the tuple c on m rows of d features, its likelihood
    is exp(-cost_m(c) / (2 sigma^2)); with sigma integrated out under d sigma / sigma
    it is cost_m(c)^(-m d / 2). A batch multiplies the weight of a particle by the ratio
    of its likelihoods after and before. Passes after the first count rows again, as
    the paper does, which sharpens the posterior beyond Bayes' rule.

    The method of the paper is ``SSMCKMeansInit(n_particles=100, n_moves=0,
    proposal="data")``; that of its figure 2 has ``proposal="sobol"``. Uniform tuples
    rarely hit every cluster when there are many.

    A swap move draws the new row with probability proportional to its squared distance,
    and removes the centre whose removal raises the inertia least. A Metropolis step
    with target cost^(-n d / 2) would accept the same moves, and also some that hardly
    raise the inertia.

    KMeans runs a callable `init` ten times by default: pass ``n_init=1``. It does not
    pass `sample_weight` to it.

    References
    ----------
    .. [1] K. Fan and K. Heller (2018). k-means: Fighting against Degeneracy in
       Sequential Monte Carlo with an Application to Tracking. Algorithms 2 and 3.
    .. [2] S. Lattanzi and C. Sohler (2019). A Better k-means++ Algorithm via Local
       Search. International Conference on Machine Learning.

    Examples
    --------
    Twenty groups, ten starts. k-means++ often leaves a group without a centre, and
    Lloyd's iterations cannot move one there:

    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from skpacbayes.cluster import SSMCKMeansInit
    >>> rng = np.random.default_rng(0)
    >>> means = rng.uniform(-20, 20, size=(20, 5))
    >>> X = means[rng.integers(20, size=1000)] + rng.normal(size=(1000, 5))
    >>> def n_good_starts(init):
    ...     found = [
    ...         KMeans(20, init=init, n_init=1, random_state=seed).fit(X).inertia_
    ...         for seed in range(10)
    ...     ]
    ...     return sum(inertia < 5000 for inertia in found)
    >>> n_good_starts("k-means++"), n_good_starts(SSMCKMeansInit())
    (7, 10)

    In a stream, in bounded memory:

    >>> stream = SSMCKMeansInit(20, random_state=0)
    >>> for batch in np.split(X, 10):
    ...     stream = stream.partial_fit(batch)
    >>> len(np.unique(stream.predict(means)))
    20
    """

    _changed_in_place = ("_stream",)

    _parameter_constraints: dict = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_particles": [Interval(Integral, 1, None, closed="left")],
        "n_moves": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "batch_size": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
        "proposal": [StrOptions({"d2", "data", "sobol"})],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_particles=1,
        n_moves="auto",
        batch_size="auto",
        noise_variance=None,
        proposal="d2",
        max_passes=20,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_particles = n_particles
        self.n_moves = n_moves
        self.batch_size = batch_size
        self.noise_variance = noise_variance
        self.proposal = proposal
        self.max_passes = max_passes
        self.random_state = random_state

    def __call__(self, X, n_clusters, random_state=None):
        """Return starting centres, for `init` of scikit-learn's k-means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        n_clusters : int
            Number of centres.
        random_state : int, RandomState instance or None, default=None
            Seed of the random numbers.

        Returns
        -------
        centers : ndarray of shape (n_clusters, n_features)
            The centres.

        Raises
        ------
        ValueError
            If X is not valid or has fewer rows than `n_clusters`.
        """
        self._validate_params()
        X = validate_data(clone(self), X, dtype=np.float64, order="C")
        _check_enough(X, n_clusters)
        seed = check_random_state(random_state).randint(2**31 - 1)
        setting = self._setting(n_clusters)
        return setting.find_centers(X, np.random.default_rng(seed))[0].centers

    @fit_context
    def fit(self, X, y=None):
        """Find centres for all rows at once: Algorithm 2, then swap moves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        self : SSMCKMeansInit
            The fitted estimator.

        Raises
        ------
        ValueError
            If X is not valid or has fewer rows than `n_clusters`.

        Warns
        -----
        ConvergenceWarning
            If X has fewer distinct rows than `n_clusters`.
        UserWarning
            If several rows have a value such as -999, far from all others.
        """
        X = self._rows(X, reset=True)
        _check_enough(X, self.n_clusters)
        warn_of_sentinels(X, vars(self).get("feature_names_in_", ()))
        rng, setting = self._generator(), self._setting(self.n_clusters)
        passes = self._tasks(self.max_passes, "pass", X)
        found, n_batches, n_swaps = setting.find_centers(X, rng, passes)
        self.labels_, self.inertia_ = found.labels, found.inertia
        self._stream = TupleStream(setting, X.shape[1], rng)
        self._stream.begin_with(X, found.centers, n_batches, n_swaps)
        self._computed = self._compute()
        n_found = len(np.unique(self.labels_))
        if n_found < self.n_clusters:
            warn_user(
                f"Number of distinct clusters ({n_found}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points "
                "in X.",
                ConvergenceWarning,
            )
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None):
        """Update the centres with the next rows of a stream.

        Rows are collected into batches of `batch_size`, however they are split into
        calls. The particles are drawn from the first batch, and weighted by it and the
        next ones until all are equal. From then on, `n_moves` swap moves follow each
        batch, on a uniform sample, of the size of a batch, of all rows so far. Before
        the first batch is complete the centres are those that `fit` finds for the rows
        so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows; after `fit`, further rows.
        y : None
            Not used.

        Returns
        -------
        self : SSMCKMeansInit
            The estimator after these rows.

        Raises
        ------
        ValueError
            If X is not valid. The estimator is then unchanged.
        """
        begun = self._streaming()
        X = self._rows(X, reset=not begun)
        if not begun:
            setting = self._setting(self.n_clusters)
            self._stream = TupleStream(setting, X.shape[1], self._generator())
        self._stream.read(X)
        for name in _OF_FIT:
            vars(self).pop(name, None)
        return self

    def predict(self, X):
        """Predict the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Indices of the rows of `cluster_centers_`.
        """
        return self._answer().to(self._rows(X)).argmin(axis=1)

    def transform(self, X):
        """Return the Euclidean distances of the rows to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            The distances.
        """
        return self._answer().to(self._rows(X))

    def score(self, X, y=None):
        """Return minus the inertia of rows, as :class:`sklearn.cluster.KMeans` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        score : float
            Minus the sum of their squared distances to the nearest centre.
        """
        distances = self._answer().to(self._rows(X))
        return -float((distances.min(axis=1) ** 2).sum())

    @property
    def cluster_centers_(self):
        """The centers, of shape (n_clusters, n_features)."""
        return self._answer().centers

    @property
    def n_batches_(self):
        """Number of batches that weighted the particles."""
        check_is_fitted(self)
        return self._stream.n_batches

    @property
    def n_swaps_(self):
        """Number of swap moves that were accepted."""
        check_is_fitted(self)
        return self._stream.n_swaps

    @property
    def n_samples_seen_(self):
        """Number of rows."""
        check_is_fitted(self)
        return self._stream.n_rows

    @property
    def _n_features_out(self):
        check_is_fitted(self)
        return self._stream.n_centers

    def _learn_at_once(self, X, y=None):
        """Append rows that do not complete a batch, in one compiled call."""
        X = self._plain(X)
        if X is None or not self._stream.keeps(len(X)) or "labels_" in vars(self):
            return False
        with self._state_locks.changing:
            vars(self).pop("_computed", None)
            self._stream.append(X)
        return True

    def _compute(self):
        """Find the centres of a stream, when they are first asked for."""
        return CenterDistances(self._stream.centers)

    def _setting(self, n_clusters):
        """Resolve the parameters."""
        return Setting(
            n_clusters,
            self.n_particles,
            self.n_moves,
            self.batch_size,
            self.noise_variance,
            self.proposal,
            self.max_passes,
        )


def _check_enough(X, n_clusters):
    if len(X) < n_clusters:
        raise ValueError(f"n_samples={len(X)} should be >= n_clusters={n_clusters}.")
