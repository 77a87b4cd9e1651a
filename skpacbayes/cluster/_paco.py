"""Online clustering by a Gibbs quasi-posterior, after Li, Guedj and Loustau (2016)."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._arviz import ArviZMixin, ChainDraws
from .._base import as_fitted, fit_context, updates_state, warn_user
from .._chains import r_hat, run_chains, warn_unmixed
from .._compat import Interval, StrOptions
from .._sentinels import (
    column_of,
    ends_of,
    warn_of_angles,
    warn_of_far_rows,
    warn_of_sentinels,
    warn_of_sentinels_in_stream,
)
from .._statistics import named_as
from .._stream import (
    StreamingEstimator,
    as_count,
    checked_weights,
    has_doubled,
    partial_fit_context,
)
from .._validation import validate_data
from ._paco_doubts import doubts_of_all_rows, doubts_of_light_rows
from ._paco_outcome import ClusterNoise, before_chains, read_chains
from ._paco_problem import GibbsProblem
from ._paco_regret import regret_certificate
from ._paco_rows import Rows
from ._paco_setting import Setting
from ._paco_stream import Stream
from ._paco_summary import StreamSummary, checked_statistics

# Distance of a row from all others, in their ranges, from which it hides clusters: one
# at 1e8 does not, and one at 1e9 does.
_HIDES = 2e8
_NO_WEIGHTS = np.empty(0)
# Largest number of distinct rows that the path and the chain of `fit` read.
_MOST_ROWS = 10_000
# Largest total weight of one call of `partial_fit`: a copy takes a few microseconds.
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
    prior on their number and positions. A reversible-jump Markov chain samples it; the
    number of clusters is the one that the chain visits most. `fit` takes all rows at
    once. `partial_fit` reads a stream in bounded memory: up to `summary_size` distinct
    rows are kept exactly; later rows are merged into that many points.

    Nothing needs tuning: by default, mixtures are compared to find the number and the
    shape of the clusters, and the inverse temperature is chosen to agree. The result
    does not depend on the origin and unit of the data.

    Parameters
    ----------
    max_clusters : int or None, default=None
        Largest number of clusters. None: no limit where mixtures choose the number; 20
        if the inverse temperature is given, with `calibration="regret"` or with the
        Manhattan loss. `fit` warns if more than `max_clusters` clusters describe the
        data better.
    shape : {"auto", "round", "diagonal", "tied"}, default="auto"
        The common shape of the clusters. Distances are taken in coordinates, of
        determinant 1, in which it is round. "round": the coordinates are those of the
        data. "diagonal": each feature has a scale. "tied": one covariance matrix for
        all clusters. "auto": the best of these three; "round" with the Manhattan loss,
        with `calibration="regret"`, or if `inverse_temperature` or `scale` is given.
        The clusters of `fit` do not depend on the units of the columns, unless they are
        round; "tied" clusters do not depend on any linear map of the columns, except
        for rounding.
    loss : {"squared_euclidean", "manhattan"}, default="squared_euclidean"
        Loss of a row at its nearest centre. "manhattan" is robust to heavy tails.
    calibration : {"clusters", "regret"}, default="clusters"
        "clusters": data are centred, the prior is on sets of centres, and the inverse
        temperature follows the noise. "regret": the setting of the paper, in which
        `certificate` holds: data as they are, prior on ordered tuples, the inverse
        temperature of Corollary 3 and the variance term of Algorithm 2.
    inverse_temperature : "auto", float or callable, default="auto"
        Weight of the loss against the prior, the paper's lambda, in units of 1 / loss:
        a larger value finds more clusters. A callable maps the number of rows t to
        it. "auto": see `calibration`.
    cluster_penalty : float, default=1.0
        Each additional cluster multiplies the prior probability by
        exp(-cluster_penalty): a larger value finds fewer clusters.
    prior : {"uniform", "student"}, default="uniform"
        Distribution of a centre on the ball of twice the `radius`: uniform (eq. 7), or
        Student with 3 degrees of freedom about the origin (eq. 22).
    prior_scale : float, default=1.0
        Scale of the Student prior, in units of the data.
    radius : "auto" or float, default="auto"
        R, in units of the data. "auto": 3 times the largest distance of a row from the
        mean; with `calibration="regret"`, the largest norm so far. The regret bound of
        a stream then does not hold; give a number for it.
    variance_term : "auto" or float, default="auto"
        Factor of the quadratic term of Algorithm 2; "auto": 1 with
        `calibration="regret"`, else 0.
    proposal : {"matched", "student"}, default="matched"
        "matched": proposals as wide as the quasi-posterior, symmetric in the labels,
        and births and deaths of centres. "student": Algorithm 3 as printed, which mixes
        slowly.
    n_iter : int, default=500
        Iterations of the chain in `fit` and at each refresh of a stream.
    n_chains : int, default=1
        Number of independent chains, whose draws are pooled. `fit` warns if the R-hat
        of the number of centres, or of the centres that own a row, is above 1.1.
    scale : "auto" or float, default="auto"
        Standard deviation of a feature within a cluster (Manhattan loss: mean absolute
        deviation), in units of the data. "auto": estimated, for each cluster where
        they differ.
    summary_size : int or None, default=400
        Largest number of points that a stream keeps in memory; None: all distinct rows.
    refresh : "auto" or int, default="auto"
        Number of rows of a stream between two runs of the chain. "auto": 1 for the
        first 200 rows, then 10 % of the number of rows after these. With 10 features or
        more, at least n_features / 10 rows, and at least 2; with 20 or more, 20 %
        instead of 10 %. Two exceptions hold unless `calibration="regret"`, or
        `inverse_temperature` or `forgetting` is given. A run is delayed while the
        latest row is within the central 95 % of a cluster (80 % if the rows do not come
        in random order), until the stream has grown by 25 %, by 5 rows from row 20 on,
        by 10 % from row 50 on, or by 20 rows from row 200 on. A run is early if the
        share of rows outside of the central 99.9 % of all clusters rises by more than a
        few rows: they may be a new group.
    forgetting : "auto" or float in [0, 1), default=0.0
        Rate at which `partial_fit` forgets: each row multiplies the weight of all
        earlier rows by ``1 - forgetting``, a memory of about ``1 / forgetting`` rows. A
        cluster whose rows are all forgotten is removed, and its label is free. "auto"
        chooses among the rates 0, 1/400, 1/100 and 1/30 by the log density that
        mixtures with these memories gave the last 100 rows in advance, which take
        account of a correlation of consecutive rows of a cluster, and removes a cluster
        that has had no row for so long that the probability is 1e-6: for rows
        in random order, or, if rows come in runs of one cluster, for its runs. `fit`
        does not forget. Needs `calibration="clusters"`.
    random_state : int, RandomState instance or None, default=None
        Seed of the chain.
    n_jobs : int or None, default=None
        Number of threads for the chains. None means 1 unless in a
        `joblib.parallel_config` context; -1 means all processors.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        Centres of the lowest loss found with `n_clusters_` clusters.
    n_clusters_ : int
        Number of clusters: that of the mixture to which the inverse temperature is
        calibrated. Without such a mixture, or if `cluster_penalty` is not 1: the number
        of centres owning a row that the chain visits most. `fit` warns if the chain
        prefers another number than the mixture, and if the rows do not exclude other
        numbers.
    cluster_labels_ : ndarray of shape (`n_clusters_`,)
        Label of each row of `cluster_centers_`. In a stream a cluster keeps its label
        as long as it exists, and a new cluster takes the lowest free label.
    cluster_scales_ : ndarray of shape (`n_clusters_`,)
        Noise scale of each cluster; all equal if one scale describes them.
    background_share_ : float
        Share of the rows that belong to no cluster; 0 if the tails of the clusters
        explain the far rows as well.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance matrix of the noise of a cluster of scale `scale_`. Not available
        with the Manhattan loss.
    shape_ : {"round", "diagonal", "tied"}
        The shape of the clusters.
    labels_ : ndarray of shape (n_samples,)
        Labels of the rows given to `fit`. Not available after `partial_fit`, as they
        would depend on how the stream is cut into calls: use `predict`.
    inertia_ : float
        Sum of the losses of the rows given to `fit` at their nearest centre.
    n_clusters_candidates_ : ndarray of shape (n_candidates,)
        `n_clusters_`, then the other numbers of clusters that the rows do not exclude,
        closest first: their evidence is less than two standard errors lower, where the
        standard error is that of a sum over rows [3]_. The evidence of more clusters is
        also less than 5 nats lower, or 1.5 for each further coordinate of a centre if
        that is more: larger differences are very strong evidence against them [8]_.
        `fit` warns if there are other candidates.
        `n_clusters_` alone where no mixture gives it: with the Manhattan loss, with
        `calibration="regret"`, or if `cluster_penalty` is not 1.
    n_clusters_posterior_ : ndarray of shape (max_clusters,)
        Frequencies of 1, 2, ... centres in the chain, including centres that own no
        row. If `max_clusters` is None, there are as many entries as the chain may have
        centres.
    draw_ : ndarray of shape (n_centers, n_features)
        Last state of the chain: the forecast for the next row.
    inverse_temperature_ : float
        Inverse temperature of the last chain; 0 before the first.
    radius_ : float
        R of the last chain.
    cluster_shares_ : ndarray of shape (`n_clusters_`,)
        Weights of the clusters in `score_samples`: their shares of the rows, or equal
        shares if the differences may be chance.
    scale_ : float
        Noise scale of the rows about `cluster_centers_`.
    acceptance_rate_ : float
        Accepted share of the moves of the chains.
    forgetting_rate_ : float
        Rate of forgetting at the last row of the stream.
    cumulative_loss_ : float
        Sum over the rows of a stream of their loss at the forecast made before each
        row. There is a forecast for the first row, a draw from the prior, only if
        `calibration="regret"` and `radius` is given. 0 after `fit`.
    n_samples_seen_ : int or float
        Number of rows seen, or their total weight.
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
    Let c be a tuple of k centres and S_t(c) the sum of the losses of t rows at their
    nearest centre. The quasi-posterior of [1]_ is exp(-lambda_t S_t(c)) q(k) prod_j
    pi(c_j), with q(k) prop. to exp(-eta k), divided by k! with
    `calibration="clusters"`. eta is `cluster_penalty`.

    Automatic calibration (squared Euclidean loss): mixtures of normal or Student
    components of one shape, with one scale or one for each, are fitted for every number
    of clusters, and compared by the integrated completed likelihood [2]_. This is 0.4
    times the log-likelihood of the rows and their clusters, minus log(n) / 2 for each
    parameter, where n is the number of rows. Where clusters have variances of their
    own, the penalty of a small cluster uses its own number of rows [5]_ if it is apart
    from all larger clusters: neither of the two is expected to have a row as far out as
    the centre of the other. Clusters may be skewed, with an asymmetric exponential
    power distribution [4]_ along an axis, where the evidence is larger: otherwise a
    skewed cluster would be cut into pieces. Clusters of the best mixture that have one
    centre are also compared with one cluster each, whose rows may have any distribution
    of the distances from the centre that is common to all clusters: for instance a
    dense core. Where tails are heavy, or clusters have variances of their own, a
    uniform background for rows that belong to no cluster is tried too, on the box of
    the rows ("tied": an ellipsoid); its share and its boundaries count as parameters. A
    column with three or more repeated values is taken as rounded to half of the least
    gap between them, so that the values of counts and ratings do not become clusters; a
    column of two values is taken as rounded so much that a cluster for each value gains
    nothing. In the coordinates in which the best mixture is round, the quasi-posterior
    is that of the paper, with rows weighted by the inverse variance of their cluster;
    rows in heavy tails or in the background weigh less. Where one normal noise
    describes all clusters and the evidence is close, the normalised quasi-likelihood of
    `score_samples` decides. One cluster with heavy tails is replaced by several if
    covariance matrices of their own, with an inverse Wishart prior about the pooled
    one, increase the evidence: parts of one elliptical cluster would have the same
    covariance. Clusters of one shape are replaced by fewer clusters with covariance
    matrices of their own [6]_, where these have the larger evidence with such a prior.
    lambda is the value at which splitting the noise of one cluster gains a third of the
    prior cost of one more centre, or the nearest value to it at which the
    quasi-posterior clearly prefers the number of clusters found. In a stream, mixtures
    are fitted after 20 rows if clusters are not round, otherwise after 50 rows in
    random order, or 200. Before that, and always with the Manhattan loss, the number of
    clusters is that of cells with scales of their own, tracked row by row. All of this
    depends on the data, so `certificate` reports that its assumptions do not hold; they
    can hold with `calibration="regret"`.

    If rows are copied or weigh more than 1, their number counts as (sum of the
    weights)^2 / (sum of their squares) [7]_ in the evidence and in lambda. Rows are
    copied if the values of two columns or more hardly repeat among the
    distinct rows; equal rows of ratings, counts or categories are rows of their own.
    Of the rows that a stream has merged, copies one after the other, and weights, count
    in this way.

    With more than 10,000 distinct rows, `fit` samples the quasi-posterior of 10,000 of
    them, drawn with a fixed seed and weighted up to the total weight.
    `cumulative_loss_` and the forecasts of a stream use the distance in the coordinates
    of the data, whatever the shape.

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
    .. [7] L. Kish (1965). Survey Sampling. Wiley.
    .. [8] R. E. Kass and A. E. Raftery (1995). Bayes factors. Journal of the American
       Statistical Association 90.

    Examples
    --------
    A stream whose third group appears after 200 rows, with default parameters:

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

    # Parameters that may change in a stream: each refresh starts new chains.
    _may_change = ("proposal", "n_iter", "n_chains", "n_jobs")
    _changed_in_place = ("_stream",)
    _saves_computed = False
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
            Weights of the rows: a row of weight 2 counts as two equal rows. Copies of
            a row are no evidence of more clusters: see Notes. None: 1 each.

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
            If other numbers of clusters describe the rows almost as well, the chains
            disagree, all of `max_clusters` are in use, clusters consist of a single row
            or of copies of it, half of the clusters have no gap in density between
            them, clusters have two modes, more clusters that overlap or two groups that
            cross describe the rows better, weights are too small or unequal to show
            clusters, all columns have two values, zeros tell groups apart that clusters
            do not, a mixture has another number of clusters than the Manhattan loss, or
            a few of more than 10,000 rows are near each other and far from all
            clusters.
        UserWarning
            If several rows share a value far from all others of its column, which may
            stand for a missing one, or one row has a value so far that it may hide
            clusters. If a column seems to be an angle whose jump, as from 360 to 0,
            cuts a group; a stream is not checked for these.
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
        learnt = X[weights > 0]
        for message in doubts_of_all_rows(problem, noise, learnt):
            warn_user(message, ConvergenceWarning)
        self.labels_ = self.cluster_labels_[noise.likeliest(X)]
        self.inertia_ = noise.inertia(rows.points, rows.weights)
        names = vars(self).get("feature_names_in_", ())
        warn_of_sentinels(learnt, names)
        warn_of_angles(learnt, names)
        self._warn_of_far_rows(ends_of(learnt), len(learnt), names)
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the clusters with the next rows of a stream: Algorithm 2.

        For each row, its loss at the current forecast is added to `cumulative_loss_`,
        and the row is added to the summary. Where a refresh is due, the chain runs on
        the summary and gives the next forecast; this does not depend on how the stream
        is cut into calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows of the stream.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight w counts as w copies, the last one fractional, and takes as
            long to read. At most 1e9 in total.

        Returns
        -------
        self : PACOClusterer
            The estimator after these rows.

        Raises
        ------
        ValueError
            If X or `sample_weight` is not valid, or if a parameter other than those of
            the chains was changed since the first call. The estimator is then
            unchanged.

        Warns
        -----
        ConvergenceWarning
            As in `fit`, about the last chain of the call, when the number of rows
            passes 100, 200, 400 and so on; and in between, after half as many rows
            again, if the number of clusters is not the one last checked. When the
            number of rows passes 20, 40 or 80: if other numbers of clusters may
            describe few rows better. At each of these: if `summary_size` is too small
            to show clusters; unless `forgetting` is given, if clusters move along the
            stream; with `forgetting="auto"`, if consecutive rows of a cluster are
            correlated.
        UserWarning
            As in `fit`, each time the number of rows has doubled.
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
        before, doubled, outcome = self._stream.summary.n_points, False, None
        for _ in self._tasks(self._stream.refreshes(X, weights), "refresh", X):
            outcome = self._refresh()
            doubled |= self._stream.doubled()
        self._warn_beyond_radius()
        if outcome is not None and self._stream.doubting():
            self._warn_of(outcome)
        if "cluster_centers_" not in vars(self) and self._stream.summary.n_points:
            self._before_first_refresh()
        n_points = self._stream.summary.n_points
        if len(weights) and has_doubled(before, n_points):
            total, n_clusters = self._stream.n_rows, len(self.cluster_centers_)
            for message in doubts_of_light_rows(n_clusters, n_points, total):
                warn_user(message, ConvergenceWarning)
        if doubled:
            names = vars(self).get("feature_names_in_", ())
            ends, n_rows = self._stream.summary.ends(), self._stream.n_rows
            warn_of_sentinels_in_stream(ends, n_rows, names)
            self._warn_of_far_rows(ends, n_rows, names)
        return self

    @as_fitted
    def sufficient_statistics(self, X, sample_weight=None):
        """Return a summary of rows for `absorb`, without changing the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, for instance one partition of a large table.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        statistics : ndarray of shape (n_points, n_features + 2)
            At most `summary_size` points (None: the distinct rows). The columns are the
            mean of the rows merged into the point, their weight, and the sum of their
            squared distances from that mean. Where rows were merged, at most
            `n_features` rows follow, of weight 0, whose outer products add to the
            scatter of the merged rows about their means. Arrays of several partitions
            may be stacked. Those of frames carry the names of the columns.
        """
        self._validate_params()
        known = hasattr(self, "n_features_in_")
        points = validate_data(
            self if known else clone(self),
            X,
            dtype=np.float64,
            order="C",
            reset=not known,
            ensure_min_samples=0,
        )
        weights = checked_weights(sample_weight, points)
        keep = weights > 0
        rows = np.column_stack([points, weights, np.zeros(len(points))])[keep]
        summary = StreamSummary(points.shape[1], self.summary_size, self._manhattan)
        if len(rows):
            summary.absorb(rows)
        return named_as(summary.statistics(), X)

    @updates_state
    def absorb(self, statistics):
        """Add summaries of other rows, and run the chain on the union.

        The rows count in `n_samples_seen_`, but not in `cumulative_loss_`, as there was
        no forecast for them. The summary of no rows changes nothing.

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
            If the shape does not fit the rows seen so far, a weight or a sum of squared
            distances is negative, all weights are 0 but the statistics are not, the
            squares of the rows of weight 0 exceed the sums of squared distances, the
            statistics are of columns with other names, or `forgetting` is not 0. A
            different order of columns without names cannot be detected, nor rows that
            were summarised twice.
        """
        if self.forgetting != 0.0:
            raise ValueError(
                "absorb needs forgetting=0.0, as summaries do not say how long ago "
                f"their rows came; got forgetting={self.forgetting!r}."
            )
        names = self._check_names_of(statistics)
        known = getattr(self, "n_features_in_", None)
        statistics = checked_statistics(statistics, known)
        if not statistics.any():
            return None
        if not self._streaming():
            self.n_features_in_ = statistics.shape[1] - 2
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            self._open_stream()
        self._stream.absorb(statistics)
        outcome = self._refresh()
        if self._stream.doubting():
            self._warn_of(outcome)
        return self

    def predict(self, X, *, false_alarm_rate=None):
        """Predict the cluster of each row.

        This is the cluster whose noise has the largest density at the row: that of the
        nearest centre if one noise scale describes all clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        false_alarm_rate : float, default=None
            From 0 to 1. Rows whose `outlier_scores` are below it get the label -1. This
            is the share of the rows of clusters that get this label if the clusters are
            normal or have the tails of a Student distribution with five degrees of
            freedom; the share is larger with heavier tails (three degrees of freedom:
            0.5 % at 0.001) or skewed clusters, and among new rows if the fit had few:
            the errors of centres and scales are neglected (10 rows in each of three
            clusters of two columns: 4 % at 0.01; 33 rows: 1.5 %). None: no row gets the
            label -1.

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
        """Predict the probability that each row belongs to each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, `n_clusters_`)
            Proportional to the share of the cluster times the density of its noise at
            the row, in the order of `cluster_centers_`.
        """
        return self._answer().probabilities(self._rows(X))

    def outlier_scores(self, X):
        """Return how rare rows as far from their cluster are; small for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Probability that a row of the cluster is as far from its centre or farther.
            The noise is that of the clusters alone, without the background, with normal
            or Student tails (Manhattan loss: as if it were normal). Centres and scales
            are taken as exact, so that new rows seem rarer than they are if the fit had
            few rows.
        """
        return self._answer().tails(self._rows(X))

    def transform(self, X):
        """Return the distances of the rows to the centres.

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
        """Return the log of the normalised quasi-likelihood of each row.

        The quasi-likelihood is w exp(-loss / u) / Z, where u is 2 `scale_`^2 (Manhattan
        loss: `scale_`), w the share of the nearest cluster (`cluster_shares_`), and Z
        the constant that makes it a density over rows. If the clusters have noise
        scales of their own or heavy tails, it is instead the density of the mixture of
        the clusters. A background adds a constant density, its share over the volume of
        the rows, also outside of that volume, so that no row has a density near zero.

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
    def certificate(self, X=None, y=None, *, confidence=0.95):
        """Return the regret bound of the stream so far: Corollaries 1 to 6.

        The infimum over centres in the bound is replaced by the loss of the best
        k-means solutions found on the rows seen, or on their summary.

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
            If `inverse_temperature="auto"` and the chain has not run yet.
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
                "The inverse temperature is not known yet: the chain first runs at row "
                f"{self._stream.summary.next_refresh:g} of the stream, and "
                f"{self.n_samples_seen_} were read."
            )
        return regret_certificate(
            Setting.of(self), self._stream, self.cumulative_loss_, self.radius_
        )

    # Attributes that every row changes.

    @property
    def n_samples_seen_(self):
        """Number of rows seen, or their total weight."""
        return as_count(self._begun_stream().n_rows)

    @property
    def forgetting_rate_(self):
        """Rate of forgetting at the last row of the stream."""
        return self._begun_stream().summary.forgetting_rate

    @property
    def cumulative_loss_(self):
        """Sum of the losses that the rows of the stream had at their forecasts."""
        return float(self._begun_stream().summary.cumulative_loss)

    @property
    @as_fitted
    def covariance_(self):
        """Covariance matrix of the noise of a cluster of scale `scale_`."""
        if self._manhattan:
            raise AttributeError("covariance_ is not available with loss='manhattan'.")
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
                f"{type(self).__name__} has no {name} before its first row."
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
            return False  # rows beyond the radius need a warning
        X = self._plain(X)
        if X is None:
            return False
        with self._state_locks.changing:
            return self._stream.summary.learn(X)

    def _open_stream(self):
        """Start a new stream: an empty summary and a random generator."""
        size, forgetting = self.summary_size, self.forgetting
        new = StreamSummary(self.n_features_in_, size, self._manhattan, forgetting)
        stream = Stream(Setting.of(self), new, self.refresh, self._generator())
        self._stream = stream
        return stream

    def _refresh(self):
        """Sample the quasi-posterior of the stream, which gives the next forecast."""
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
        """Run the chains, and set the fitted attributes from their draws.

        `tasks`: those of `fit`; None along a stream, where a callback is called once
        for each refresh.
        """
        n_iter, n_jobs = self.n_iter, self.n_jobs
        chains = problem.start_chains(self._stream.rng)
        run_chains(chains, burn_in=0, n_iter=n_iter, tasks=tasks, n_jobs=n_jobs)
        outcome = read_chains(problem, chains)
        self._traces = np.array([chain.trace for chain in chains])
        self._publish_outcome(outcome, self._stream.refreshed(outcome))
        return outcome

    def _publish_outcome(self, outcome, order):
        """Set the fitted attributes, with the clusters in the given `order`."""
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
        """Warn if the chains disagree, or the number of clusters is uncertain."""
        if self.n_chains > 1:
            warn_unmixed(
                r_hat(np.moveaxis(self._traces, 2, 0)).max(),
                self.n_chains,
                f"increase n_iter={self.n_iter}",
                of="the number of clusters",
                detail="n_clusters_posterior_ is not accurate.",
            )
        for message in outcome.doubts():
            warn_user(message, ConvergenceWarning)

    def _chain_draws(self):
        """Return the numbers of clusters that the chains visited."""
        if self._traces is None:
            raise ValueError("The chain has not run yet: learn more rows.")
        names = ("n_centers", "n_clusters")
        return ChainDraws(
            dict(zip(names, np.moveaxis(self._traces, 2, 0), strict=True))
        )

    def _before_first_refresh(self):
        """Publish one cluster, at the first row, and the prior on their number."""
        stream, self._traces = self._stream, None
        first = stream.summary.places_and_weights()[0][:1]
        self._publish_outcome(
            before_chains(Setting.of(self), first, stream.forecast), [0]
        )
        self.cluster_labels_ = np.zeros(1, dtype=np.int64)

    def _warn_of_far_rows(self, ends, n_rows, names):
        """Warn of a value beside whose square rounding hides all others."""
        called = [column_of(names, column) for column in range(self.n_features_in_)]
        effect = "hides clusters of the other rows"
        warn_of_far_rows(ends, n_rows, called, effect, _HIDES)

    def _warn_beyond_radius(self):
        """Warn once that rows are outside the ball that the regret bound assumes."""
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
        """Return the noise of the clusters, for the methods that score rows."""
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
