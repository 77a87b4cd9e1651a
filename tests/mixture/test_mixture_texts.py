"""Sparse texts: topics that are found, and the prior that follows the data."""

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import TemperedVBMultinomialMixture


def texts(seed, n, n_words, n_topics, tokens, background):
    """Counts of words about Zipf frequencies, and the topic of each row."""
    rng = np.random.default_rng(seed)
    zipf = 1 / (np.arange(n_words) + 3.0)
    zipf /= zipf.sum()
    topics = rng.dirichlet(0.1 * n_words * zipf + 1e-12, n_topics)
    topics = (1 - background) * topics + background * zipf
    labels = np.arange(n) % n_topics
    lengths = rng.integers(tokens // 2, 2 * tokens, n)
    rows = [
        rng.multinomial(length, words)
        for length, words in zip(lengths, topics[labels], strict=True)
    ]
    return sparse.csr_array(np.array(rows, dtype=float)), labels


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_components='auto' chose:UserWarning")
@pytest.mark.parametrize(
    ("n", "n_words", "n_topics", "tokens", "background", "least"),
    [(600, 2000, 5, 80, 0.5, 0.8), (2500, 1000, 10, 8, 0.1, 0.4)],
    ids=["long", "short"],
)
def test_topics_of_sparse_texts_are_found(
    n, n_words, n_topics, tokens, background, least
):
    """Never one cluster for ten topics, whose words are rare in every row.

    Bars of 0.8 and 0.4 for long and short texts; `bench_mixture_corpora.py` has more.
    """
    X, labels = texts(1, n, n_words, n_topics, tokens, background)
    mixture = TemperedVBMultinomialMixture("auto", n_init=1, random_state=0).fit(X)
    assert adjusted_rand_score(labels, mixture.predict(X)) > least
    assert abs(mixture.n_components_ - n_topics) <= 0.3 * n_topics


@pytest.mark.filterwarnings("ignore:n_components='auto' chose:UserWarning")
def test_rows_of_one_topic_are_one_cluster():
    """The prior that follows the data makes no topics of rare words."""
    X, _ = texts(0, 500, 1000, 1, 40, 0.5)
    mixture = TemperedVBMultinomialMixture(
        "auto", max_components=5, n_init=1, random_state=0
    ).fit(X)
    assert mixture.n_components_ == 1
    weights = X.sum(axis=0) / X.sum()
    assert np.abs(mixture.components_[0] - weights).sum() < 0.1


def test_the_bound_of_counts_is_exact_for_its_prior():
    """J with one component is the log evidence of the tokens under the prior found."""
    X, _ = texts(0, 100, 50, 1, 20, 0.5)
    mixture = TemperedVBMultinomialMixture(1, inverse_temperature=1.0).fit(X)
    counts, after = X.sum(axis=0), mixture.topic_concentration_[0]
    prior = after - counts
    frequencies = (1 + counts) / (1 + counts).sum()
    assert_allclose(prior / prior.sum(), frequencies, rtol=1e-9)

    def evidence(prior):
        terms = gammaln(prior + counts) - gammaln(prior)
        total = prior.sum()
        return terms.sum() + gammaln(total) - gammaln(total + counts.sum())

    assert_allclose(mixture.elbo_, evidence(prior), rtol=1e-8)


def test_the_bound_chooses_the_prior_of_the_topics():
    """Half and twice the total of the prior have no larger bound, but for `tol`."""
    X, _ = texts(0, 300, 100, 3, 20, 0.5)
    mixture = TemperedVBMultinomialMixture(3, random_state=0).fit(X)
    answer = mixture._answer()
    engine, statistics = answer.mixture, answer.statistics
    priors = engine.family.alternatives()
    assert len(priors) == 2
    for family in priors:
        other = engine.with_family(family)
        after = other.m_step(statistics, answer.state)
        bound = other.bound(after, 0.0, statistics)
        assert bound <= mixture.elbo_ + 20 * mixture.tol * X.shape[0]


def log_gamma(x):
    """Return log Gamma with 60 digits, by Stirling's series from 60 on."""
    x, shift = Decimal(x), Decimal(0)
    while x < 60:
        shift, x = shift - x.ln(), x + 1
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    series = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)]
    found = (x - Decimal("0.5")) * x.ln() - x + (2 * pi).ln() / 2 + shift
    for j, (top, bottom) in enumerate(series):
        found += Decimal(top) / Decimal(bottom) / x ** (2 * j + 1)
    return found


@pytest.mark.parametrize(
    "as_rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"]
)
@pytest.mark.parametrize("learnt", [1.0, 1e14])
def test_log_probabilities_of_large_counts_keep_their_digits(learnt, as_rows):
    """Of any size, by logarithms with 60 digits; after few counts, and after many."""
    X = np.array([[3.0, 0.0, 5.0, 1.0], [2.0, 1.0, 6.0, 0.0]])
    mixture = TemperedVBMultinomialMixture(1, topic_prior=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(np.tile(X, (5, 1)) * learnt)
    topics = [Decimal(float(a)) for a in mixture.topic_concentration_[0]]
    rows = np.vstack([np.rint(X * size) for size in (1, 1e8, 1e11, 1e14, 1e16)])
    with localcontext(prec=60):
        exact = []
        for row in rows:
            counts = [Decimal(float(c)) for c in row]
            N, A = sum(counts), sum(topics)
            found = log_gamma(N + 1) + log_gamma(A) - log_gamma(A + N)
            for a, c in zip(topics, counts, strict=True):
                found += log_gamma(a + c) - log_gamma(a) - log_gamma(c + 1)
            exact.append(float(found))
    assert_allclose(mixture.score_samples(as_rows(rows)), exact, rtol=1e-7, atol=1e-6)
