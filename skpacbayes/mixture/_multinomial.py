"""Mixtures of multinomials fitted by tempered variational Bayes."""

from copy import copy
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import digamma
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_non_negative

from .._arguments import check_count
from .._compat import Interval, StrOptions
from .._validation import refuse_large
from ._divergences import dirichlet_divergence
from ._family import Family
from ._gaussian import WITHOUT_FAMILY
from ._inherited_docs import NotInherited, inherits_entries
from ._mixture import TemperedVBMixture, parameter
from ._rows import CountDensity
from ._scorers import DirichletMultinomialScorer, LinearScorer
from ._search import best_clusters

POWERS = 7  # power iterations of the randomized singular value decomposition
TOTAL_STEP = 2.0  # factor between prior totals that are compared,
TOTALS = 1e-3, 1e6  # and their range: log Gamma of more is inaccurate
OPEN = 10.0  # largest prior total of a stream, over the number of columns
CLEAR = 3.0  # standard errors by which repetitions must exceed independence
LARGEST = 16.0  # upper bound of the inflation


class TopicPosterior(NamedTuple):
    """Dirichlet distributions of the components, (n_components, n_features)."""

    concentration: np.ndarray


class MultinomialFamily(Family):
    """Rows of counts given their totals, with a conjugate Dirichlet(b0) prior.

    Parameters
    ----------
    topic_prior : float or ndarray of shape (n_features,)
        The concentrations b0.
    """

    may_repeat = True

    def __init__(self, topic_prior):
        self.topic_prior = topic_prior

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components without rows."""
        prior = np.empty((n_components, len(origin)))
        prior[:] = self.topic_prior
        return TopicPosterior(prior)

    def update(self, statistics, previous):
        """Return the posterior given tempered statistics."""
        return TopicPosterior(self.topic_prior + statistics[:, 1:-1])

    def expected_logs(self, posterior):
        """Return E log theta."""
        topics = posterior.concentration
        return digamma(topics) - digamma(topics.sum(axis=1, keepdims=True))

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        return CountDensity(log_weights, self.expected_logs(posterior))

    def expected_log_likelihood(self, posterior, statistics):
        """Return the sum over components of E log q_k, from statistics of rows."""
        return self.expected_log_likelihoods(posterior, statistics).sum()

    def expected_log_likelihoods(self, posterior, statistics):
        """Return E log q_k for each component, from statistics of rows."""
        return (statistics[:, 1:-1] * self.expected_logs(posterior)).sum(axis=1)

    def divergence(self, posterior):
        """Return the Kullback-Leibler divergence from the prior, over components."""
        return self.divergences(posterior).sum()

    def divergences(self, posterior):
        """Return the Kullback-Leibler divergence from the prior of each component."""
        prior = np.empty(posterior.concentration.shape[1])
        prior[:] = self.topic_prior
        return dirichlet_divergence(posterior.concentration, prior)

    def profile(self, X, sample_weight=None):
        """Return root frequencies, whose distances are Hellinger's."""
        totals = np.asarray(X.sum(axis=1)).reshape(-1, 1)
        scale = 1 / np.where(totals > 0, totals, 1)
        if issparse(X):
            return csr_array(X.multiply(scale)).sqrt()
        return np.sqrt(X * scale)

    def initial_labels(self, X, weight, n_components, seed):
        """Return clusters of the rows' directions in a correspondence analysis.

        The singular vectors of (x_iv - r_i c_v / N) / sqrt(r_i c_v), with the totals
        r_i of the rows and c_v of the columns: all entries have equal noise variances,
        so that short rows and rare columns do not hide the components.
        """
        if not 1 < n_components < min(X.shape):
            return None
        X = csr_array(X)
        rows, columns = X.sum(axis=1), weight @ X
        left = np.sqrt(weight / np.where(rows > 0, rows, np.inf))
        right = 1 / np.sqrt(np.where(columns > 0, columns, np.inf))
        scaled = X.multiply(left[:, None]).multiply(right).tocsr()
        points, values, _ = randomized_svd(
            scaled, n_components, n_iter=POWERS, random_state=seed
        )
        points = (points * values)[:, 1:]  # the first dimension is trivial
        lengths = np.sqrt((points**2).sum(axis=1, keepdims=True))
        points = np.ascontiguousarray(points / np.where(lengths > 0, lengths, 1.0))
        there = weight * (lengths[:, 0] > 0)
        if not there.any():
            return None
        return best_clusters(points, there, n_components, seed), there

    def inflation(self, X, labels, sample_weight):
        """Return the variance of counts over that of independent tokens."""
        return inflation_of_counts(X, labels, sample_weight)

    def check_statistics(self, statistics, posterior):
        """Raise ValueError if counts are negative."""
        if (statistics[:, 1:-1] < 0).any():
            raise ValueError("The sums of counts in statistics must be >= 0.")

    def scorer(self, posterior, log_weights):
        """Return the scorer of E log p_k + E log q_k(x)."""
        return LinearScorer(log_weights, self.expected_logs(posterior))

    def predictive_scorer(self, posterior):
        """Return the scorer of log Dirichlet-multinomial probabilities."""
        return DirichletMultinomialScorer(posterior.concentration)

    def attributes(self, posterior):
        """Return the fitted attributes, by name."""
        topics = posterior.concentration
        return {
            "topic_concentration_": topics,
            "components_": topics / topics.sum(axis=1, keepdims=True),
        }

    def draw(self, posterior, k, size, generator, n_tokens):
        """Draw rows of `n_tokens` counts from component k."""
        topics = generator.dirichlet(posterior.concentration[k], size)
        return generator.multinomial(n_tokens, topics).astype(np.float64)


class EmpiricalMultinomialFamily(MultinomialFamily):
    """The same with a prior Dirichlet(c f): f are frequencies, the bound chooses c.

    The frequencies are those of all rows, so that a component is only penalised for its
    difference from them.
    """

    def __init__(self):
        super().__init__(1.0)

    def begin(self, X, sample_weight=None):
        """Return the family with the frequencies of the rows, plus one count each."""
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        counts = 1.0 + weight @ X
        return self.with_total(counts / counts.sum(), float(len(counts)))

    def with_total(self, frequencies, total):
        """Return the family with given prior frequencies and total concentration."""
        family = copy(self)
        family.frequencies, family.total = frequencies, total
        family.topic_prior = total * frequencies
        return family

    @property
    def prior_choice(self):
        """The prior total, in which the alternatives differ."""
        return self.total

    def alternatives(self):
        """Return families with larger and with smaller prior totals."""
        totals = TOTAL_STEP * self.total, self.total / TOTAL_STEP
        low, high = TOTALS
        return [
            self.with_total(self.frequencies, total)
            for total in totals
            if low <= total <= high
        ]

    def opened(self):
        """Return the family with at most `OPEN` tokens per column in the prior.

        If the first rows of a stream are a single group, the bound chooses a huge
        total, which would not suit other groups.
        """
        most = OPEN * len(self.frequencies)
        return self.with_total(self.frequencies, most) if self.total > most else self


@inherits_entries
class TemperedVBMultinomialMixture(TemperedVBMixture):
    """Bayesian mixture of multinomials by tempered variational inference.

    Each row contains counts, for instance of words, and belongs to one component, a
    distribution over the columns. The likelihood is raised to the power
    `inverse_temperature`, and the evidence bound is maximised by coordinate ascent, on
    all rows (`fit`) or on a stream (`partial_fit`). Sparse matrices are not densified.

    Parameters
    ----------
    topic_prior : float or "auto", default="auto"
        Concentration of the symmetric Dirichlet prior of each component. "auto": an
        empirical prior, with the frequencies of all rows (of the first block of a
        stream) as its mean, and the sum of its concentrations chosen by the bound. The
        guarantees need a number in [2 / n_features, 1].
    block_size : int, "auto" or None, default="auto"
        Number of rows in a block of the stream. "auto": max(500, 100 n_components), at
        most 10000. None: a single growing block, so that `partial_fit` equals `fit` on
        all rows, which are kept.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior means of the distributions over the columns; rows sum to one.
    topic_concentration_ : ndarray of shape (n_components, n_features)
        Concentrations of the Dirichlet posteriors of the components.
    parameters_ : dict of str to ndarray
        The attributes of the components, by name.
    elbo_ : float
        Evidence bound J of all rows, in nats, without the multinomial coefficients,
        which depend neither on the parameters nor on K.
    statistics_ : ndarray of shape (n_components, n_features + 2)
        Sufficient statistics of all rows: numbers of rows, counts, entropies.

    See Also
    --------
    TemperedVBGaussianMixture : The same for real vectors.
    sklearn.decomposition.LatentDirichletAllocation : Allows several topics per row.

    Notes
    -----
    Algorithms 1 and 2 of [1]_. The paper's rows are single draws; here rows may have
    many counts, and fractions. With a single draw per row a mixture is not
    identifiable, as any mixture of categorical distributions is a categorical
    distribution, and "auto" then chooses 1. Rows without counts contribute to the
    weights only.

    `score_samples` includes the multinomial coefficient: it is the log probability of
    the counts of a row, given their total.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif and P. Alquier (2018). Consistency of variational
       Bayes inference for estimation and model selection in mixtures. Electronic
       Journal of Statistics 12, 2995-3035.

    Examples
    --------
    Two topics, in 300 rows of 20 words each:

    >>> import numpy as np
    >>> from skpacbayes.mixture import TemperedVBMultinomialMixture
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.1, 0.2, 0.6]])
    >>> X = rng.multinomial(20, topics[rng.integers(0, 2, 300)])
    >>> mixture = TemperedVBMultinomialMixture(
    ...     "auto", max_components=5, random_state=0
    ... ).fit(X)
    >>> mixture.n_components_
    2
    >>> mixture.components_[mixture.components_[:, 0].argsort()].round(1)
    array([[0.1, 0.1, 0.2, 0.6],
           [0.7, 0.2, 0.1, 0. ]])
    """

    _parameter_constraints: dict = {
        **{k: v for k, v in WITHOUT_FAMILY.items() if k != "outliers"},
        "topic_prior": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
    }

    def __init__(
        self,
        n_components=1,
        *,
        inverse_temperature=0.9,
        topic_prior="auto",
        max_components=20,
        component_prior="geometric",
        weight_concentration_prior=1.0,
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
        self.n_components = n_components
        self.inverse_temperature = inverse_temperature
        self.topic_prior = topic_prior
        self.max_components = max_components
        self.component_prior = component_prior
        self.weight_concentration_prior = weight_concentration_prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.block_size = block_size
        self.window = window
        self.n_sweeps = n_sweeps
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def sample(self, n_samples=1, n_tokens=100, labels=None):
        """Draw rows of counts from the posterior-predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; with a sequence of labels, their number.
        n_tokens : int, default=100
            Sum of the counts of each row.
        labels : int or array-like of shape (n_samples,), default=None
            Component of each row: one for all rows or one for each. None: components
            are drawn too.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component, or in the order of `labels`.
        y : ndarray of shape (n_samples,)
            Components of the rows.
        """
        n_tokens = check_count("n_tokens", n_tokens, least=0)
        return self._draw_rows(n_samples, labels, n_tokens=n_tokens)

    # Fitted attributes.

    components_ = parameter("components_", "Posterior means of the distributions.")
    topic_concentration_ = parameter("topic_concentration_", "Dirichlet posteriors.")

    # Not available for counts: outliers, and regressions.

    outlier_proba = NotInherited()
    predict_target = NotInherited()

    # Steps of `fit` that are specific to counts.

    def _family(self):
        if self.topic_prior == "auto":
            return EmpiricalMultinomialFamily()
        return MultinomialFamily(self.topic_prior)

    def _check_rows(self, X, *, reset=False, least=1):
        rows = None if reset else self._plain(X)
        if rows is None:
            rows = self._rows(
                X, reset=reset, accept_sparse="csr", ensure_min_samples=least
            )
        if rows.shape[0]:
            check_non_negative(rows, type(self).__name__)
            refuse_large("X", rows.data if issparse(rows) else rows)
        return rows

    def _rows_of_a_block(self, n_components, n_features):
        return 100 * n_components

    def __sklearn_tags__(self):
        """Declare that rows are non-negative, dense or sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def inflation_of_counts(X, labels, sample_weight):
    """Return the variance of counts over that of independent tokens.

    If the tokens of a row are dependent, such as words that repeat, rows of a component
    differ more than independent draws, and the bound would prefer several components.
    The likelihood to the power 1 / inflation corrects this.

    Two tokens of a row are the same word with a probability s + r (1 - s), where s is
    that of two tokens of different rows of the component. Under Dirichlet-multinomial
    rows of total concentration A, r is 1 / (1 + A) and counts of a row of N tokens have
    1 + r (N - 1) times the variance of a multinomial [1]_; N is here the mean over
    tokens.

    Parameters
    ----------
    X : {ndarray, sparse array} of shape (n_samples, n_features)
        Counts.
    labels : ndarray of shape (n_samples,)
        Component of each row.
    sample_weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    inflation : float
        From 1 to 16. It is 1 if there are not clearly more repetitions than for
        independent tokens, and if X has fractions.

    References
    ----------
    .. [1] J. E. Mosimann, "On the compound multinomial distribution, the multivariate
       beta-distribution, and correlations among proportions", Biometrika 49, 1962.
    """
    X = csr_array(X)
    if np.any(X.data != np.floor(X.data)):
        return 1.0
    repeated = expected = pairs = 0.0
    for k in np.unique(labels):
        rows, weight = X[labels == k], sample_weight[labels == k]
        totals, squares = rows.sum(axis=1), rows.multiply(rows).sum(axis=1)
        words = weight @ rows
        others = words.sum() ** 2 - weight**2 @ totals**2
        if others <= 0.0:  # a single row
            continue
        same = (words @ words - weight**2 @ squares) / others
        own_pairs = weight @ (totals * (totals - 1.0))
        repeated += weight @ (squares - totals)
        expected += same * own_pairs
        pairs += own_pairs
    tokens = sample_weight @ X.sum(axis=1)
    if not repeated - expected > CLEAR * np.sqrt(2.0 * max(expected, 1.0)):
        return 1.0  # a pair counts twice
    share = (repeated - expected) / (pairs - expected)
    return float(np.clip(1.0 + share * pairs / tokens, 1.0, LARGEST))
