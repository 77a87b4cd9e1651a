"""The peers of PACOClusterer: other ways to find the number of clusters.

Each batch peer is a function of (X, seed) that returns a number of clusters. The three
criteria that read a path of k-means solutions share one path, ten starts for each
number of clusters, so that none of them loses for want of a good k-means.
"""

import warnings

import numpy as np
from river import cluster as river_cluster
from sklearn.cluster import HDBSCAN, Birch, KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import calinski_harabasz_score, silhouette_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

MAX_CLUSTERS = 20
SILHOUETTE_ROWS = 2000  # a larger X is subsampled by the silhouette, and by it alone


def kmeans_path(X, seed, max_clusters=MAX_CLUSTERS, n_init=10):
    """K-means solutions with 1, ..., max_clusters centres."""
    largest = min(max_clusters, len(np.unique(X, axis=0)))
    return [
        KMeans(k, n_init=n_init, random_state=seed).fit(X)
        for k in range(1, largest + 1)
    ]


def silhouette(X, seed, path=None):
    """K >= 2 with the highest mean silhouette width."""
    path = kmeans_path(X, seed) if path is None else path
    sample_size = SILHOUETTE_ROWS if len(X) > SILHOUETTE_ROWS else None
    return _best(
        path,
        lambda labels: silhouette_score(
            X, labels, sample_size=sample_size, random_state=seed
        ),
        len(X),
    )


def calinski_harabasz(X, seed, path=None):
    """K >= 2 with the highest ratio of the variance between to that within."""
    path = kmeans_path(X, seed) if path is None else path
    return _best(path, lambda labels: calinski_harabasz_score(X, labels), len(X))


def _best(path, score, n_samples):
    scored = [model for model in path[1:] if model.n_clusters < n_samples]
    if not scored:
        return 1
    scores = [score(model.labels_) for model in scored]
    return scored[int(np.argmax(scores))].n_clusters


def gap(X, seed, path=None, n_references=5):
    """Gap statistic, references uniform in the box of the principal axes.

    Tibshirani, Walther and Hastie (2001): the first k whose gap is not lower than the
    next one's minus its standard error.
    """
    path = kmeans_path(X, seed) if path is None else path
    rng = np.random.default_rng(seed)
    axes = PCA().fit(X)
    scores = axes.transform(X)
    low, high = scores.min(axis=0), scores.max(axis=0)
    references = []
    for _ in range(n_references):
        reference = rng.uniform(low, high, size=scores.shape)
        models = kmeans_path(reference, seed, len(path))
        references.append([np.log(model.inertia_) for model in models])
    observed = np.log([max(model.inertia_, 1e-300) for model in path])
    statistic = np.mean(references, axis=0) - observed
    error = np.std(references, axis=0) * np.sqrt(1 + 1 / n_references)
    stops = np.flatnonzero(statistic[:-1] >= statistic[1:] - error[1:])
    return int(stops[0]) + 1 if len(stops) else len(path)


def bayesian_mixture(X, seed, **parameters):
    """Components of weight above 1% among 20, the default Dirichlet process."""
    model = BayesianGaussianMixture(
        n_components=min(MAX_CLUSTERS, len(X)),
        max_iter=300,
        random_state=seed,
        **parameters,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return int((model.weights_ > 0.01).sum())


def spherical_bayesian_mixture(X, seed):
    """Count them likewise, for spherical components and a sparse prior."""
    return bayesian_mixture(
        X, seed, covariance_type="spherical", weight_concentration_prior=1e-3
    )


def spherical_mixture_bic(X, seed):
    """K of the spherical Gaussian mixture with the lowest BIC."""
    criteria = []
    for k in range(1, min(MAX_CLUSTERS, len(X)) + 1):
        model = GaussianMixture(k, covariance_type="spherical", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            criteria.append(model.fit(X).bic(X))
    return int(np.argmin(criteria)) + 1


def hdbscan(X, seed, min_cluster_size=15):
    """Clusters found by HDBSCAN; none found is read as one."""
    if len(X) < min_cluster_size:
        return 1
    labels = HDBSCAN(min_cluster_size=min_cluster_size, copy=True).fit_predict(X)
    return max(1, int(labels.max()) + 1)


def hdbscan_small(X, seed):
    """HDBSCAN with its default smallest cluster, 5 rows."""
    return hdbscan(X, seed, min_cluster_size=5)


class Refitted:
    """A batch peer refitted on all the rows so far, at every `every`-th row."""

    def __init__(self, choose, seed, every=10):
        self.choose, self.seed, self.every = choose, seed, every
        self.rows, self.n_clusters = [], 1

    def learn(self, row):
        self.rows.append(row)
        if len(self.rows) % self.every == 0:
            self.n_clusters = self.choose(np.array(self.rows), self.seed)


class Standardised:
    """A streaming peer whose unit is the spread of the first 20 rows."""

    def __init__(self, peer, warm_up=20):
        self.peer, self.warm_up = peer, warm_up
        self.rows, self.n_clusters = [], 1

    def learn(self, row):
        if len(self.rows) < self.warm_up:
            self.rows.append(row)
            if len(self.rows) == self.warm_up:
                self.centre = np.mean(self.rows, axis=0)
                self.spread = np.std(self.rows, axis=0)
                for past in self.rows:
                    self._pass_on(past)
        else:
            self._pass_on(row)

    def _pass_on(self, row):
        self.peer.learn((row - self.centre) / self.spread)
        self.n_clusters = self.peer.n_clusters


class BirchStream:
    """Subclusters of scikit-learn's Birch."""

    def __init__(self, threshold):
        self.model = Birch(threshold=threshold, n_clusters=None)
        self.n_clusters = 1

    def learn(self, row):
        self.learn_block(row[None])

    def learn_block(self, X):
        self.model.partial_fit(X)
        self.n_clusters = len(self.model.subcluster_centers_)


class DBStream:
    """River's DBSTREAM."""

    def __init__(self, threshold=1.0):
        self.model = river_cluster.DBSTREAM(clustering_threshold=threshold)
        self.n_clusters = 1

    def learn(self, row):
        self.model.learn_one(dict(enumerate(row)))
        self.n_clusters = max(1, self.model.n_clusters)

    def learn_block(self, X):
        for row in X:
            self.model.learn_one(dict(enumerate(row)))
        self.n_clusters = max(1, self.model.n_clusters)


class DenStream:
    """River's DenStream, with a memory of about 100 rows."""

    def __init__(self, epsilon=0.3):
        self.model = river_cluster.DenStream(
            decaying_factor=0.01, beta=0.5, mu=3, epsilon=epsilon, n_samples_init=100
        )
        self.n_clusters = 1

    def learn(self, row):
        named = dict(enumerate(row))
        self.model.learn_one(named)
        self.model.predict_one(named)  # where it counts its clusters
        self.n_clusters = max(1, self.model.n_clusters)


BATCH = {
    "silhouette": silhouette,
    "Calinski-Harabasz": calinski_harabasz,
    "gap": gap,
    "BayesianGaussianMixture": bayesian_mixture,
    "same, spherical, 1e-3": spherical_bayesian_mixture,
    "GaussianMixture, spherical, BIC": spherical_mixture_bic,
    "HDBSCAN, 5 rows": hdbscan_small,
    "HDBSCAN, 15 rows": hdbscan,
}
READS_PATH = {"silhouette", "Calinski-Harabasz", "gap"}

REFITTED = {
    "silhouette, refitted": silhouette,
    "BayesianGaussianMixture, refitted": bayesian_mixture,
    "same, spherical, 1e-3": spherical_bayesian_mixture,
    "HDBSCAN, 15 rows, refitted": hdbscan,
}
STREAMING = {
    "Birch 1.5": lambda: BirchStream(1.5),
    "Birch 1.5, standardised": lambda: Standardised(BirchStream(1.5)),
    "DBSTREAM 1.0": lambda: DBStream(1.0),
    "DBSTREAM 1.0, standardised": lambda: Standardised(DBStream(1.0)),
}
