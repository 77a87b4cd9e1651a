"""Online clustering by a Gibbs quasi-posterior, after Li, Guedj and Loustau (2016)."""

import math
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from .._base import PacBayesEstimator, fit_context, user_stack_level
from ._centers import QuasiLikelihoodMixin
from ._gibbs import GibbsProblem, Setting
from ._paco_stream import QuasiPosteriorStreamMixin
from ._summary import Rows

_N_BLOCKS = 10


def _distinct_rows(X, weights):
    """Rows of positive weight, sorted, equal ones merged."""
    points, where = np.unique(X[weights > 0], axis=0, return_inverse=True)
    merged = np.bincount(where.ravel(), weights[weights > 0])
    return Rows.single(np.ascontiguousarray(points), merged)


class PACOClusterer(QuasiPosteriorStreamMixin, QuasiLikelihoodMixin, PacBayesEstimator):
    """Clustering, batch and online, that finds the number of clusters.

    The centres follow a Gibbs quasi-posterior: exp(-inverse_temperature x loss) times a
    prior on their number and places. A reversible-jump Markov chain samples it; the
    number of clusters is the one that the chain visits most. `fit` takes all rows at
    once. `partial_fit` reads a stream in bounded memory: exactly until `summary_size`
    distinct rows, then rows are merged into that many points.

    Nothing needs tuning: by default the inverse temperature follows the noise in the
    data, and the result does not depend on their origin and unit.

    Parameters
    ----------
    max_clusters : int, default=20
        Largest number of clusters.
    loss : {"squared_euclidean", "manhattan"}, default="squared_euclidean"
        Distance of a row to its nearest centre. Manhattan withstands heavy tails.
    calibration : {"clusters", "regret"}, default="clusters"
        "clusters": data are centred, the prior is on sets of centres, and the inverse
        temperature follows the noise. "regret": the setting of the paper, in which
        `certificate` holds: data as they are, prior on ordered tuples, the inverse
        temperature of Corollary 3 and the variance term of Algorithm 2.
    inverse_temperature : "auto", float or callable, default="auto"
        In units of 1 / loss. A callable gets the number of rows t. "auto": as said
        under `calibration`.
    cluster_penalty : float, default=1.0
        Each further cluster has e^-cluster_penalty times the prior probability.
    prior : {"uniform", "student"}, default="uniform"
        Law of a centre on the ball of twice the `radius`: uniform (eq. 7), or Student
        with 3 degrees of freedom about the origin (eq. 22).
    prior_scale : float, default=1.0
        Scale of the Student prior, in units of the data.
    radius : "auto" or float, default="auto"
        R, in units of the data. "auto": 3 times the largest distance of a row from the
        mean; with `calibration="regret"`, the largest norm so far, which voids the
        bound on a stream: give it.
    variance_term : "auto" or float, default="auto"
        Factor of the quadratic term of Algorithm 2; "auto": 1 with
        `calibration="regret"`, else 0.
    proposal : {"matched", "student"}, default="matched"
        "matched": moves as wide as the quasi-posterior, any labelling, and births and
        deaths of centres. "student": Algorithm 3 as printed, which mixes slowly.
    n_iter : int, default=500
        Iterations of the chain in `fit` and at each refresh of a stream.
    n_chains : int, default=1
        Independent chains whose frequencies are pooled; a warning says if they
        disagree.
    scale : "auto" or float, default="auto"
        Standard deviation of a feature within a cluster (Manhattan loss: mean absolute
        deviation), in units of the data. "auto": estimated, for each cell where they
        differ.
    summary_size : int or None, default=400
        Points that a stream leaves in memory; None: all distinct rows.
    refresh : "auto" or int, default="auto"
        The chain runs on a stream after every so many rows. "auto": after each of the
        first 200 rows, then whenever the stream has grown by 10 % of what came since
        (20 features or more: after every n_features / 10 rows, then 20 %).
    random_state : int, RandomState instance or None, default=None
        Seed of the chain.
    n_jobs : int or None, default=None
        Threads for `n_chains` chains.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        The centres of least loss found for `n_clusters_` clusters.
    n_clusters_ : int
        The number of centres owning a row that the chain visits most.
    cluster_labels_ : ndarray of shape (`n_clusters_`,)
        Labels of the rows of `cluster_centers_`. Along a stream a cluster keeps its
        label while it lives, and a new one takes the lowest label that is free.
    labels_ : ndarray of shape (n_samples,)
        Labels of the rows given to `fit`.
    n_clusters_posterior_ : ndarray of shape (max_clusters,)
        Frequencies of 1, 2, ... centres in the chain. Centres that own no row count
        here, as they do in the quasi-posterior.
    draw_ : ndarray of shape (n_centers, n_features)
        Last state of the chain: the forecast that the next row meets.
    inverse_temperature_ : float
        Inverse temperature of the last chain; 0 before the first.
    radius_ : float
        R of the last chain.
    cluster_shares_ : ndarray of shape (`n_clusters_`,)
        What the clusters count for in `score_samples`: their shares of the rows, or
        equal ones if these do not differ by more than chance explains.
    scale_ : float
        Noise scale of the rows about `cluster_centers_`.
    acceptance_rate_ : ndarray of shape (2,)
        Accepted share of the moves within and between numbers of centres.
    cumulative_loss_ : float
        Sum over the rows of a stream of the loss each had at the forecast that it met.
        The first row meets none unless `calibration="regret"` and `radius` is given:
        then it meets a draw from the prior. 0 after `fit`.
    n_samples_seen_ : int or float
        Number of rows, or their weight.
    n_iter_ : int
        Iterations of the last chain.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had some.

    See Also
    --------
    sklearn.cluster.KMeans : Needs the number of clusters.
    sklearn.mixture.BayesianGaussianMixture : Prunes components of a mixture; batch.

    Notes
    -----
    With c a tuple of k centres and S_t(c) the sum of the losses of t rows at their
    nearest centre, the quasi-posterior of [1]_ is
    exp(-lambda_t S_t(c)) q(k) prod_j pi(c_j), with q(k) prop. to exp(-eta k), divided
    by k! with `calibration="clusters"`. eta is `cluster_penalty`.

    Automatic calibration: with the noise scale s and the number k of clusters that
    maximise the normalised quasi-likelihood of `score_samples`, penalised, lambda is
    such that splitting the noise of one of k clusters gains a third of what one more
    centre costs a priori. It assumes round clusters. Where their spreads differ the
    cells of a spherical mixture have noise scales of their own, and rows weigh one over
    the scale of their cell; on a stream this is so unless one scale is shown to
    describe all. The rows of a cell of more than one and a half times the mean number
    weigh less, or noise would pay there. This lambda is taken from the data, so
    `certificate` says that its assumptions do not hold.

    References
    ----------
    .. [1] L. Li, B. Guedj and S. Loustau (2016). PAC-Bayesian Online Clustering.
       https://hal.inria.fr/hal-01264233

    Examples
    --------
    A stream whose third group appears after 200 rows; nothing is given:

    >>> import numpy as np
    >>> from skpacbayes.cluster import PACOClusterer
    >>> rng = np.random.default_rng(0)
    >>> early = rng.normal(size=(200, 2)) + rng.choice([0, 8], size=(200, 1))
    >>> late = rng.normal(size=(60, 2)) + [16, -4]
    >>> clusterer = PACOClusterer(random_state=0)
    >>> clusterer.partial_fit(early).n_clusters_
    2
    >>> clusterer.partial_fit(late).n_clusters_
    3
    >>> clusterer.cluster_centers_.round() + 0.0
    array([[ 0.,  0.],
           [ 8.,  8.],
           [16., -4.]])
    """

    _parameter_constraints: dict = {
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"squared_euclidean", "manhattan"})],
        "calibration": [StrOptions({"clusters", "regret"})],
        "inverse_temperature": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
            callable,
        ],
        "cluster_penalty": [Interval(Real, 0, None, closed="left")],
        "prior": [StrOptions({"uniform", "student"})],
        "prior_scale": [Interval(Real, 0, None, closed="neither")],
        "radius": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "variance_term": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "proposal": [StrOptions({"matched", "student"})],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "summary_size": [Interval(Integral, 2, None, closed="left"), None],
        "refresh": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        max_clusters=20,
        *,
        loss="squared_euclidean",
        calibration="clusters",
        inverse_temperature="auto",
        cluster_penalty=1.0,
        prior="uniform",
        prior_scale=1.0,
        radius="auto",
        variance_term="auto",
        proposal="matched",
        n_iter=500,
        n_chains=1,
        scale="auto",
        summary_size=400,
        refresh="auto",
        random_state=None,
        n_jobs=None,
    ):
        self.max_clusters = max_clusters
        self.loss = loss
        self.calibration = calibration
        self.inverse_temperature = inverse_temperature
        self.cluster_penalty = cluster_penalty
        self.prior = prior
        self.prior_scale = prior_scale
        self.radius = radius
        self.variance_term = variance_term
        self.proposal = proposal
        self.n_iter = n_iter
        self.n_chains = n_chains
        self.scale = scale
        self.summary_size = summary_size
        self.refresh = refresh
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context
    def fit(self, X, y=None, sample_weight=None):
        """Sample the quasi-posterior of all rows at once.

        The order of the rows does not matter, and equal rows count as one row with
        their weights added.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the loss, and in the number of rows; None: 1 each.

        Returns
        -------
        self : PACOClusterer
            The fitted estimator.

        Raises
        ------
        ValueError
            If X or `sample_weight` is not valid, or a row is farther than `radius`
            from the origin of the prior.
        """
        with self._all_or_nothing():
            X = self._rows(X, reset=True)
            rows = _distinct_rows(X, self._weights(sample_weight, X, some=True))
            stream = self._open_stream()
            problem = GibbsProblem(self._setting(), rows, stream.rng)
            problem.check_radius()
            chains = problem.start_chains(stream.rng)
            blocks = np.array_split(np.arange(self.n_iter), min(_N_BLOCKS, self.n_iter))
            for block in self._tasks(len(blocks), "chain", X):
                problem.run(chains, len(blocks[block]), self.n_jobs)
            stream.begin_with(rows)
            self._publish(problem.outcome(chains))
            self.labels_ = self._nearest_labels(X)
        self._warn_at_the_largest(len(rows.points))
        return self

    def _warn_at_the_largest(self, n_points):
        """Say that the data wanted as many clusters as they may have."""
        if (
            self.inverse_temperature == "auto"
            and 1 < self.max_clusters == self.n_clusters_ < n_points
        ):
            warnings.warn(
                f"all max_clusters={self.max_clusters} clusters are in use: there may "
                "be more, or groups that are not round are cut into pieces.",
                ConvergenceWarning,
                stacklevel=user_stack_level(),
            )

    def _setting(self):
        """Resolve the parameters."""
        regret = self.calibration == "regret"
        variance_term = self.variance_term
        if variance_term == "auto":
            variance_term = 1.0 if regret else 0.0
        return Setting(
            self.max_clusters,
            self._manhattan,
            regret,
            self.inverse_temperature,
            self.cluster_penalty,
            self.prior_scale if self.prior == "student" else math.inf,
            self.radius,
            float(variance_term),
            self.proposal == "matched",
            self.n_iter,
            self.n_chains,
            self.scale,
        )

    def _weights(self, sample_weight, X, *, some=False):
        weights = _check_sample_weight(
            sample_weight,
            X,
            dtype=np.float64,
            ensure_non_negative=True,
            allow_all_zero_weights=not some,
        )
        return np.ascontiguousarray(weights)
