"""Online clustering by a Gibbs quasi-posterior, after Li, Guedj and Loustau (2016)."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._arviz import ArviZMixin, ChainDraws
from .._base import fit_context, updates_state, warn_user
from .._chains import r_hat, run_chains, warn_unmixed
from .._compat import Interval, StrOptions
from .._sentinels import warn_of_sentinels, warn_of_sentinels_in_stream
from .._stream import (
    StreamingEstimator,
    as_count,
    checked_weights,
    partial_fit_context,
)
from .._validation import validate_data
from ._paco_noise import ClusterNoise
from ._paco_outcome import before_chains, read_chains
from ._paco_problem import GibbsProblem
from ._paco_regret import regret_certificate
from ._paco_rows import Rows
from ._paco_setting import Setting
from ._paco_stream import Stream
from ._paco_summary import StreamSummary, checked_statistics

_NO_WEIGHTS = np.empty(0)
# Rows that the path and the chain of `fit` read, if there are more.
_MOST_ROWS = 10_000
# Copies of rows that one call reads, a few microseconds each.
_MOST_COPIES = 1e9


class PACOClusterer(
    ArviZMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    StreamingEstimator,
):
    """Clustering, batch and online, that finds the number of clusters.

    The centres follow a Gibbs quasi-posterior: exp(-inverse_temperature x loss) times a
    prior on their number and places. A reversible-jump Markov chain samples it; the
    number of clusters is the one that the chain visits most. `fit` takes all rows at
    once. `partial_fit` reads a stream in bounded memory: exactly until `summary_size`
    distinct rows, then rows are merged into that many points.

    Nothing needs tuning: by default a mixture says how many clusters describe the data
    best and which shape they have, the inverse temperature is chosen to agree, and the
    result does not depend on the origin and unit of the data.

    Parameters
    ----------
    max_clusters : int or None, default=None
        Largest number of clusters. None: as many as describe the data best; 20 where
        the inverse temperature does not follow the data, or the loss is Manhattan. A
        warning of `fit` says that more clusters than `max_clusters` would be better.
    shape : {"auto", "round", "diagonal", "tied"}, default="auto"
        The common shape of the clusters. Distances are taken in coordinates, of
        determinant 1, in which it is round. "round": the coordinates are those of the
        data. "diagonal": each feature has a scale. "tied": one covariance matrix for
        all clusters. "auto": the best of these three; "round" with the Manhattan loss,
        with `calibration="regret"`, or if `inverse_temperature` or `scale` is given.
        The units of the columns do not change the clusters of `fit`, unless these are
        round; with "tied" no linear map does, if the values are not rounded.
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
        Distribution of a centre on the ball of twice the `radius`: uniform (eq. 7), or
        Student with 3 degrees of freedom about the origin (eq. 22).
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
        Independent chains whose frequencies are pooled. `fit` warns if the R-hat of
        the number of centres, or of those that own a row, is above 1.1.
    scale : "auto" or float, default="auto"
        Standard deviation of a feature within a cluster (Manhattan loss: mean absolute
        deviation), in units of the data. "auto": estimated, for each cluster where
        they differ.
    summary_size : int or None, default=400
        Points that a stream leaves in memory; None: all distinct rows.
    refresh : "auto" or int, default="auto"
        The chain runs on a stream after every so many rows. "auto": after each of the
        first 200 rows, then whenever the stream has grown by 10 % of what came since
        (10 features or more: after every second row, 20 or more: after every
        n_features / 10 rows, then 20 %). After the first 20 rows it waits, until the
        stream has grown by 10 % or 20 rows, while the clusters explain the latest row,
        which lies where four of five of theirs do. It runs before its turn if more than
        a few rows lie outside of all clusters (where one of 1,000 of their rows do)
        beyond the share that did so before, as those of a new group do. Both not with
        `calibration="regret"`, a given `inverse_temperature` or `forgetting`.
    forgetting : "auto" or float in [0, 1), default=0.0
        Rate at which `partial_fit` forgets: after each row the weight of all earlier
        ones falls by this share, a memory of about ``1 / forgetting`` rows. A cluster
        that has no rows any more dies, and its label is free. "auto" chooses among
        the rates 0, 1/400, 1/100 and 1/30 by the forecasts that mixtures with these
        memories made of the last 100 rows, and drops a cluster whose last row is so
        long ago as rows in random order leave it in one of a million cases. `fit` takes
        its rows as present, all alike. Needs `calibration="clusters"`.
    random_state : int, RandomState instance or None, default=None
        Seed of the chain.
    n_jobs : int or None, default=None
        Threads for `n_chains` chains.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        The centres of least loss found for `n_clusters_` clusters.
    n_clusters_ : int
        The number of clusters: that of the mixture to which the inverse temperature is
        calibrated, and else, or if `cluster_penalty` is not 1, the number of centres
        owning a row that the chain visits most. `fit` warns if the chain prefers
        another number than the mixture, and if the rows do not exclude other numbers.
    cluster_labels_ : ndarray of shape (`n_clusters_`,)
        Labels of the rows of `cluster_centers_`. Along a stream a cluster keeps its
        label while it lives, and a new one takes the lowest label that is free.
    cluster_scales_ : ndarray of shape (`n_clusters_`,)
        Noise scale of each cluster; all equal if one describes them.
    background_share_ : float
        Share of the rows that belong to no cluster; 0 where heavy tails, or normal
        ones, explain the far rows as well.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the noise of a cluster of scale `scale_`. Not with the Manhattan
        loss.
    shape_ : {"round", "diagonal", "tied"}
        The shape of the clusters.
    labels_ : ndarray of shape (n_samples,)
        Labels of the rows given to `fit`. After `partial_fit` there are none, as they
        would depend on how the stream is cut into calls: `predict` gives the labels of
        rows at hand.
    inertia_ : float
        Sum of the losses of the rows given to `fit` at their nearest centre.
    n_clusters_candidates_ : ndarray of shape (n_candidates,)
        `n_clusters_`, then the numbers that the rows do not exclude: their evidence is
        less than two standard errors lower, by the spread of what each row adds to the
        difference [3]_; closest first. `fit` warns if there are some. `n_clusters_`
        alone where no mixture gives it: with the Manhattan loss, with
        `calibration="regret"`, or if `cluster_penalty` is not 1.
    n_clusters_posterior_ : ndarray of shape (max_clusters,)
        Frequencies of 1, 2, ... centres in the chain. Centres that own no row count
        here, as they do in the quasi-posterior. If `max_clusters` is None, as many
        entries as the chain may have centres.
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
    acceptance_rate_ : float
        Accepted share of the moves of the chains.
    forgetting_rate_ : float
        Rate at which the stream is forgotten at its last row.
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

    Automatic calibration (squared Euclidean loss): mixtures of normal or Student
    components of one shape, with one scale or one for each, are fitted for every number
    of clusters, and compared by the integrated completed likelihood [2]_: that of the
    rows and their clusters, of which 0.4 counts as evidence, less half a log of the
    number of rows for each parameter; less for the centre and the variance of a cluster
    of few rows, where clusters have variances of their own [5]_, if it is apart from
    all larger clusters: of neither of two, one row or more is expected as far out as
    the centre of the other. The clusters may be skewed, with an asymmetric
    exponential power distribution [4]_ along an axis, where this pays: the pieces of a
    skewed cluster are not clusters. Where tails are heavy, or clusters have variances
    of their own, a uniform background is tried too, in the box of the rows ("tied": an
    ellipsoid), for the price of its share and of its ends: it takes rows that belong
    to no cluster, and `background_share_` is their share. A column of three values or
    more, two rows or more for each, is known to within half of the least gap between
    them, so that the values of counts and ratings are not clusters; of two values, as
    well as makes a cluster for each gain nothing. In the coordinates in which the best
    mixture is round the quasi-posterior is that of the paper, with rows that weigh one
    over the variance of their cluster, and less far out where tails are heavy, or where
    they belong to no cluster. Where one normal
    noise describes all clusters and the evidence is close, the normalised
    quasi-likelihood of `score_samples` decides. One cluster with heavy tails gives way
    to several if these gain by covariances of their own, at an inverse Wishart prior
    about the pooled one: the parts of one elliptical cluster have the same. And several
    clusters give way to fewer, whose covariances differ by more than size, where these
    have the larger evidence at such a prior: clusters that are not of one shape are cut
    into pieces that are, and the pieces are merged by their covariances [6]_. lambda is
    such that splitting the noise of one cluster gains a third of what one more centre
    costs a priori, or the next value at which the quasi-posterior clearly prefers the
    number of clusters found. Along a stream this begins after 20 rows where clusters
    are not round, else after 50 that come in random order, or 200; before, cells with
    scales of their own, tracked row by row, say how many clusters there are. The
    Manhattan loss always has these. All of this is taken from the data, so
    `certificate` says that its assumptions do not hold; `calibration="regret"` is the
    setting in which they can.

    Of more than 10,000 distinct rows, `fit` samples the quasi-posterior of 10,000 drawn
    with a fixed seed, which weigh as much as all. `cumulative_loss_` and the forecasts
    of a stream keep the Euclidean distance whatever the shape.

    References
    ----------
    .. [1] L. Li, B. Guedj and S. Loustau (2016). PAC-Bayesian Online Clustering.
       https://hal.inria.fr/hal-01264233
    .. [2] C. Biernacki, G. Celeux and G. Govaert (2000). Assessing a mixture model for
       clustering with the integrated completed likelihood. IEEE Transactions on Pattern
       Analysis and Machine Intelligence 22.
    .. [3] Q. H. Vuong (1989). Likelihood ratio tests for model selection and non-nested
       hypotheses. Econometrica 57.
    .. [4] C. Fernandez, J. Osiewalski and M. F. J. Steel (1995). Modeling and inference
       with v-spherical distributions. Journal of the American Statistical Association
       90.
    .. [5] M. A. T. Figueiredo and A. K. Jain (2002). Unsupervised learning of finite
       mixture models. IEEE Transactions on Pattern Analysis and Machine Intelligence
       24.
    .. [6] C. Fraley (1998). Algorithms for model-based Gaussian hierarchical
       clustering. SIAM Journal on Scientific Computing 20.

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
    array([[ 8.,  8.],
           [ 0.,  0.],
           [16., -4.]])
    """

    # Parameters of the chains, which begin anew at each refresh.
    _may_change = ("proposal", "n_iter", "n_chains", "n_jobs")
    _changed_in_place = ("_stream",)
    _merge = "numpy.vstack"

    _parameter_constraints: dict = {
        "max_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "shape": [StrOptions({"auto", "round", "diagonal", "tied"})],
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
        "forgetting": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        max_clusters=None,
        *,
        shape="auto",
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
        forgetting=0.0,
        random_state=None,
        n_jobs=None,
    ):
        self.max_clusters = max_clusters
        self.shape = shape
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
        self.forgetting = forgetting
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

        Warns
        -----
        ConvergenceWarning
            If other numbers of clusters describe the rows almost as well, chains
            disagree, all of `max_clusters` are in use, clusters are one row each,
            repeated or not, half of the clusters have no gap in density between them,
            more clusters that overlap describe the rows better, or all columns have two
            values.
        UserWarning
            If several rows share a value far from all others of its column, which may
            stand for a missing one.
        """
        X = self._rows(X, reset=True)
        weights = checked_weights(sample_weight, X, some=True)
        rows = Rows.distinct(X, weights, _MOST_ROWS)
        stream = self._open_stream()
        problem = GibbsProblem(Setting.of(self), rows, stream.rng)
        problem.check_radius()
        self._warn_of(self._sample(problem, lambda n: self._tasks(n, "chain", X)))
        stream.begin_with(rows)
        noise = self._computed = self._compute()
        self.labels_ = self.cluster_labels_[noise.likeliest(X)]
        self.inertia_ = noise.inertia(rows.points, rows.weights)
        names = vars(self).get("feature_names_in_", ())
        warn_of_sentinels(X[weights > 0], names)
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Read rows in order: Algorithm 2.

        Each row meets the forecast, costs it its loss, and joins the summary; where a
        refresh is due (a position of the stream, however it is cut into calls) the
        chain runs on the summary and gives the next forecast.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows of the stream.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of w counts as w copies of the row, the last one fractional, and
            takes as long; at most 1e9 in total.

        Returns
        -------
        self : PACOClusterer
            The estimator after these rows.

        Raises
        ------
        ValueError
            If X or `sample_weight` is not valid, or, where the chain would run, if a
            parameter other than the chains' was changed since the first call; the
            estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            As `fit` does, of the last chain of the call, if the rows of the stream have
            passed 100, 200, 400 and so on.
        UserWarning
            As `fit` does, at the first chain after the rows are twice as many.
        """
        begun = self._streaming()
        X = self._rows(X, reset=not begun)
        weights = _NO_WEIGHTS
        if sample_weight is not None:
            weights = checked_weights(sample_weight, X)
            if weights.sum() > _MOST_COPIES:
                raise ValueError(
                    f"sample_weight sums to {weights.sum():g}, but should sum to at "
                    f"most {_MOST_COPIES:g}: partial_fit reads so many copies of the "
                    "rows, one after the other. Divide the weights by a constant."
                )
        if not begun:
            self._open_stream().draw_from_prior()
        for name in ("labels_", "inertia_"):  # of the rows given to fit
            vars(self).pop(name, None)
        doubled, outcome = False, None
        for _ in self._tasks(self._stream.refreshes(X, weights), "refresh", X):
            outcome = self._refresh()
            doubled |= self._stream.doubled()
        self._warn_beyond_radius()
        if outcome is not None and self._stream.doubting():
            self._warn_of(outcome)
        if "cluster_centers_" not in vars(self) and self._stream.summary.n_points:
            self._before_first_refresh()
        if doubled:
            names = vars(self).get("feature_names_in_", ())
            ends, n_rows = self._stream.summary.ends(), self._stream.n_rows
            warn_of_sentinels_in_stream(ends, n_rows, names)
        return self

    def sufficient_statistics(self, X, sample_weight=None):
        """Summary of rows, for `absorb`; nothing of the estimator is changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, for instance one partition of a large table.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        statistics : ndarray of shape (n_points, n_features + 2)
            At most `summary_size` points (None: the distinct rows). The columns: mean
            of the rows merged into the point; their weight; the sum of their squared
            distances from that mean. Where rows were merged, at most `n_features` rows
            follow, of weight 0, whose outer products add to the scatter of the merged
            rows about their means. Arrays of several partitions may be stacked.
        """
        self._validate_params()
        if hasattr(self, "n_features_in_"):
            X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        else:
            X = check_array(X, dtype=np.float64, order="C")
        weights = checked_weights(sample_weight, X)
        keep = weights > 0
        rows = np.column_stack([X, weights, np.zeros(len(X))])[keep]
        summary = StreamSummary(X.shape[1], self.summary_size, self._manhattan)
        if len(rows):
            summary.absorb(rows)
        return summary.statistics()

    @updates_state
    def absorb(self, statistics):
        """Add summaries of rows made elsewhere, and run the chain on the union.

        The rows behind them count in `n_samples_seen_`; they meet no forecast, so they
        cost nothing in `cumulative_loss_`.

        Parameters
        ----------
        statistics : array-like of shape (n_points, n_features + 2)
            From `sufficient_statistics`.

        Returns
        -------
        self : PACOClusterer
            The estimator after these rows.

        Raises
        ------
        ValueError
            If the shape does not fit the rows seen so far, no weight is positive, a
            weight or a sum of squared distances is negative, or `forgetting` is not 0.
        """
        if self.forgetting != 0.0:
            raise ValueError(
                "absorb needs forgetting=0.0, as summaries do not say how long ago "
                f"their rows came; got forgetting={self.forgetting!r}."
            )
        known = getattr(self, "n_features_in_", None)
        statistics = checked_statistics(statistics, known)
        if not self._streaming():
            self.n_features_in_ = statistics.shape[1] - 2
            self._open_stream()
        self._stream.absorb(statistics)
        outcome = self._refresh()
        if self._stream.doubting():
            self._warn_of(outcome)
        return self

    def predict(self, X, *, false_alarm_rate=None):
        """Label of the cluster of each row.

        The cluster whose noise makes the row likeliest: the nearest centre, where one
        noise scale describes all clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        false_alarm_rate : float, default=None
            If given, from 0 to 1: rows whose `outlier_scores` are below it have the
            label -1. This share of the rows of clusters has it, where these are normal
            or have the tails of a Student distribution with five degrees of freedom;
            more where tails are heavier (three degrees: 0.5 % at 0.001), or clusters
            are skewed.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            `cluster_labels_` of the clusters, or -1.
        """
        if false_alarm_rate is not None:
            check_share("false_alarm_rate", false_alarm_rate, ends=True)
        noise, X = self._answer(), self._rows(X)
        labels = self.cluster_labels_[noise.likeliest(X)]
        if false_alarm_rate is not None:
            labels[noise.tails(X) < false_alarm_rate] = -1
        return labels

    def predict_proba(self, X):
        """Probability that a row belongs to each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, `n_clusters_`)
            In proportion to a cluster's share and the density of its noise at the row;
            in the order of `cluster_centers_`.
        """
        return self._answer().probabilities(self._rows(X))

    def outlier_scores(self, X):
        """How rare rows so far from their cluster are; small for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Probability that a row of the cluster is as far from its centre or farther.
            The noise is that of the clusters alone, without the background, with normal
            or Student tails (Manhattan loss: as if it were normal).
        """
        return self._answer().tails(self._rows(X))

    def transform(self, X):
        """Distances of the rows to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, `n_clusters_`)
            Euclidean distances in the coordinates in which clusters are round, of
            determinant 1; Manhattan distances if that is the loss.
        """
        return self._answer().distances(self._rows(X))

    def score_samples(self, X):
        """Log of the normalised quasi-likelihood of each row.

        w exp(-loss / u) / Z, where u is 2 `scale_`^2 (Manhattan loss: `scale_`), w the
        share of the nearest cluster (`cluster_shares_`), and Z makes it a density over
        rows: more centres always fit closer, yet also cut the noise about each other
        off, which Z counts. Where the clusters have noise scales of their own or heavy
        tails, the density of the mixture that the clusters make. A background adds its
        share of the rows over the volume where rows were; beyond that volume too, so
        that no row has a density near zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log densities.
        """
        return self._answer().log_density(self._rows(X))

    def score(self, X, y=None):
        """Mean of `score_samples`, for the choice of parameters by cross-validation.

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

    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Regret bound of the stream read so far: Corollaries 1 to 6.

        The infimum over centres is bounded by the best k-means solutions found on the
        rows seen, or on their summary.

        Parameters
        ----------
        X, y : None
            Not used: the bound is about the rows of the stream.
        confidence : float, default=0.95
            Not used: the bound holds in expectation over the forecasts.

        Returns
        -------
        certificate : Certificate
            `observed` is `cumulative_loss_`.

        Raises
        ------
        NotImplementedError
            After `fit`: the theorem bounds the loss of forecasts, which only a stream
            read by `partial_fit` has.
        ValueError
            Before the chain has run, if it gives the inverse temperature.
        """
        check_is_fitted(self)
        check_share("confidence", confidence)
        if not self._stream.from_the_start:
            raise NotImplementedError(
                "fit and absorb have no certificate: the regret bound is about the "
                "forecasts of a stream read by partial_fit from its first row."
            )
        if self.n_iter_ == 0 and self._stream.temperature == 0:
            raise ValueError(
                "the inverse temperature is not known yet: the chain runs first at row "
                f"{self._stream.summary.next_refresh:g} of the stream, and "
                f"{self.n_samples_seen_} were read."
            )
        return regret_certificate(
            Setting.of(self), self._stream, self.cumulative_loss_, self.radius_
        )

    # What every row changes.

    @property
    def n_samples_seen_(self):
        """Number of rows, or their weight."""
        return as_count(self._begun_stream().n_rows)

    @property
    def forgetting_rate_(self):
        """Rate at which the stream is forgotten at its last row."""
        return self._begun_stream().summary.forgetting_rate

    @property
    def cumulative_loss_(self):
        """Sum of the losses that the rows of the stream had at their forecasts."""
        return float(self._begun_stream().summary.cumulative_loss)

    @property
    def covariance_(self):
        """Covariance of the noise of a cluster, `scale_` its scale."""
        if self._manhattan:
            raise AttributeError("covariance_ is not for loss='manhattan'.")
        inverse = np.linalg.inv(self._kept("_coordinates"))
        with np.errstate(over="ignore"):  # of a scale beyond 1e150
            return (self.scale_ * inverse.T) @ (self.scale_ * inverse)

    @property
    def n_clusters_(self):
        """Number of clusters."""
        return len(self._kept("cluster_centers_"))

    @property
    def _n_features_out(self):
        return self.n_clusters_

    def _kept(self, name):
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: it has read no row yet."
            ) from None

    def _begun_stream(self):
        return self._kept("_stream")

    def __sklearn_is_fitted__(self):
        return "cluster_centers_" in vars(self)

    # The stream.

    def _learn_at_once(self, X, y=None, sample_weight=None):
        if sample_weight is not None or "labels_" in vars(self):
            return False
        if self.calibration == "regret" and self.radius != "auto":
            return False  # rows beyond the radius are told
        X = self._plain(X)
        if X is None:
            return False
        with self._state_locks.changing:
            if self._stream.doubles_with(len(X)):
                return False  # what is noted is looked at
            return self._stream.summary.learn(X)

    def _open_stream(self):
        """Forget the past; start a summary and a source of random numbers."""
        size, forgetting = self.summary_size, self.forgetting
        new = StreamSummary(self.n_features_in_, size, self._manhattan, forgetting)
        stream = Stream(Setting.of(self), new, self.refresh, self._generator())
        self._stream = stream
        return stream

    def _refresh(self):
        """Sample the quasi-posterior of the stream: the next forecast."""
        stream, setting = self._stream, Setting.of(self)
        stream.forget()
        problem = GibbsProblem(setting, stream.summary.rows(), stream.rng, stream)
        if not setting.regret and problem.largest_norm > problem.radius:
            self._warn_once(
                f"rows are up to {problem.largest_norm:.6g} from their mean, more than "
                f"radius={problem.radius:.6g}: the prior may not reach their clusters."
            )
        return self._sample(problem)

    def _sample(self, problem, tasks=None):
        """Run the chains, and set the fitted attributes from what they found.

        `tasks`: those of `fit`; None along a stream.
        """
        n_iter, n_jobs, blocks = self.n_iter, self.n_jobs, tasks or range
        chains = problem.start_chains(self._stream.rng)
        run_chains(chains, burn_in=0, n_iter=n_iter, tasks=blocks, n_jobs=n_jobs)
        outcome = read_chains(problem, chains)
        self._traces = np.array([chain.trace for chain in chains])
        self._publish_outcome(outcome, self._stream.refreshed(outcome))
        return outcome

    def _publish_outcome(self, outcome, order):
        """Set the fitted attributes; `order`: that of the clusters by label."""
        self.cluster_centers_ = outcome.centers[order]
        self.cluster_labels_ = self._stream.labels.copy()
        self.cluster_shares_ = outcome.shares[order]
        self.cluster_scales_ = outcome.spreads[order]
        self.shape_ = outcome.shape
        self._coordinates, self._dof = outcome.coordinates, outcome.dof
        self.background_share_ = outcome.background
        self._log_uniform = outcome.log_uniform
        self.draw_ = outcome.draw
        self.n_clusters_posterior_ = outcome.frequencies
        self.n_clusters_candidates_ = outcome.candidates
        self.inverse_temperature_ = outcome.temperature
        self.radius_ = outcome.radius
        self.scale_ = outcome.scale
        self.acceptance_rate_ = outcome.acceptance_rate
        self.n_iter_ = outcome.n_iter

    def _warn_of(self, outcome):
        """Say that chains disagree, or that the data do not decide."""
        if self.n_chains > 1:
            warn_unmixed(
                r_hat(np.moveaxis(self._traces, 2, 0)).max(),
                f"increase n_iter={self.n_iter}",
                of="the number of clusters",
                detail="n_clusters_posterior_ is not accurate.",
            )
        for message in outcome.doubts():
            warn_user(message, ConvergenceWarning)

    def _chain_draws(self):
        """Numbers of clusters that the chains visited."""
        if self._traces is None:
            raise ValueError("The chain has not run yet: learn more rows.")
        names = ("n_centers", "n_clusters")
        return ChainDraws(
            dict(zip(names, np.moveaxis(self._traces, 2, 0), strict=True))
        )

    def _before_first_refresh(self):
        """One cluster, at the first row; the prior's number of clusters."""
        stream, self._traces = self._stream, None
        first = stream.summary.places_and_weights()[0][:1]
        self._publish_outcome(
            before_chains(Setting.of(self), first, stream.forecast), [0]
        )
        self.cluster_labels_ = np.zeros(1, dtype=np.int64)

    def _warn_beyond_radius(self):
        """Say once that rows have left the ball that the regret bound assumes."""
        if self.calibration != "regret" or self.radius == "auto":
            return
        norm = self._stream.summary.largest_norm
        if norm > self.radius:
            self._warn_once(
                f"a row has norm {norm:.6g}, more than radius={self.radius:.6g}: the "
                "assumption of certificate() that radius covers the rows is False now."
            )

    def _warn_once(self, message):
        """Warn about the radius, once in a stream."""
        if not self._stream.warned:
            self._stream.warned = True
            warn_user(message)

    # Parameters and distances.

    @property
    def _manhattan(self):
        return self.loss == "manhattan"

    def _compute(self):
        """Return the noise of the clusters, ready for the answers about rows."""
        return ClusterNoise(
            self.cluster_centers_,
            self.cluster_scales_,
            self.cluster_shares_,
            self.scale_,
            None if self.shape_ == "round" else self._coordinates,
            self._dof,
            self._stream.setting.manhattan,
            self.background_share_,
            self._log_uniform,
        )

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_computed", None)
        return state
