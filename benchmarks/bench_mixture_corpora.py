"""Texts: mixtures of multinomials on corpora that are drawn from topics.

Topics are drawn about Zipf frequencies, documents have different lengths, and share a
background with the other topics; in those with "bursts", a word that has come comes
again; in "several topics a text", a fifth of a document is of another topic. The last
corpus are the digits, pixels as counts. The prior of the topics, the starts and the
search were chosen on the first four corpora with the seed 0; --full runs all with the
seed 1.

Adjusted Rand indices and numbers of topics, with the number given, with "auto" among 1
to 20, and with "auto" for the inverse temperature too; beside them a symmetric prior,
`topic_prior=1.0`, and k-means on tf-idf rows with the number given.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from scipy.sparse import csr_array, vstack
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import TemperedVBMultinomialMixture

FEWEST_ROWS = 3  # in which a word is, or it is left out
CORPORA = {  # documents, words, topics, tokens, log spread, background, options
    "long texts": (1200, 4000, 5, 110, 0.5, 0.5, {"bursts": 300}),
    "short texts": (8000, 2500, 10, 6, 0.3, 0.15, {}),
    "texts between": (1500, 3000, 10, 30, 0.6, 0.5, {"bursts": 100}),
    "bursts": (1000, 3000, 6, 150, 0.6, 0.5, {"bursts": 60}),
    "news": (2225, 9000, 5, 200, 0.5, 0.5, {"bursts": 250}),
    "several topics a text": (1500, 5000, 7, 80, 0.7, 0.4, {"others": 0.2}),
    "eight topics, few texts": (400, 3000, 8, 60, 0.5, 0.3, {}),
}


def corpus(seed, n, n_words, n_topics, length, spread, background, options):
    """Draw the counts of a corpus as sparse rows, and the topic of each document."""
    rng = np.random.default_rng(seed)
    zipf = 1 / (np.arange(n_words) + 3.0)
    zipf /= zipf.sum()
    topics = rng.dirichlet(0.1 * n_words * zipf + 1e-12, n_topics)
    topics = (1 - background) * topics + background * zipf
    labels = rng.choice(n_topics, n, p=rng.dirichlet(np.full(n_topics, 5.0)))
    lengths = length * np.exp(spread * rng.normal(size=n) - 0.5 * spread**2)
    rows = []
    for label, tokens in zip(labels, np.maximum(2, lengths).astype(int), strict=True):
        words = topics[label]
        if "others" in options:
            words = (1 - options["others"]) * words
            words = words + options["others"] * topics[rng.integers(n_topics)]
        if "bursts" in options:
            words = rng.gamma(options["bursts"] * words + 1e-12)
        rows.append(csr_array(rng.multinomial(tokens, words / words.sum())[None]))
    X = vstack(rows).tocsr().astype(float)
    X = X[:, np.flatnonzero((X > 0).sum(axis=0) >= FEWEST_ROWS)]
    there = np.flatnonzero(X.sum(axis=1) > 0)
    return X[there], labels[there]


def corpora(seed):
    """Yield names, rows and labels."""
    for name, description in CORPORA.items():
        yield name, *corpus(seed, *description)
    yield "digits", *load_digits(return_X_y=True)


def fits(X, K, seed):
    """Yield names and what returns the number of topics and labels."""
    options = {"max_components": 20, "random_state": seed}

    def ours(n_components, **others):
        mixture = TemperedVBMultinomialMixture(n_components, **options, **others)
        return mixture.fit(X).n_components_, mixture.predict(X)

    def k_means():
        rows = TfidfTransformer().fit_transform(X)
        return K, KMeans(K, n_init=3, random_state=seed).fit_predict(rows)

    yield "ours, number given", lambda: ours(K)
    yield "ours, auto", lambda: ours("auto")
    yield "ours, both auto", lambda: ours("auto", inverse_temperature="auto")
    yield "ours, auto, topic_prior=1.0", lambda: ours("auto", topic_prior=1.0)
    yield "k-means, number given", k_means


def main(full):
    """Print and save the table."""
    report, rows = Report("mixture_corpora", quick=not full), []
    for name, X, labels in corpora(1 if full else 0):
        if not full and name != "long texts":
            continue
        K = len(np.unique(labels))
        for method, fit in fits(X, K, seed=0):
            found = {}
            seconds = cpu_seconds(lambda: found.update(fit=fit()))  # noqa: B023
            number, groups = found["fit"]
            rand = adjusted_rand_score(labels, groups)
            cells = [f"{number} of {K}", f"{rand:.2f}", f"{seconds:.1f}"]
            rows.append([name, method, *cells])
            print(*rows[-1], flush=True)
    report.table(
        "Topics of corpora",
        ["corpus", "method", "topics", "adjusted Rand index", "CPU s"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main(arguments(__doc__, taste=True).full)
