"""PACOClusterer on real and canonical tables, beside its peers.

Tables of `_paco_tables.py`: those that scikit-learn ships, raw and standardised;
generated as published benchmarks are, with noise, many groups, groups that are sheared
or not convex; and those of clustering-data-v1 (Gagolewski 2022) if they are in the
folder CLUSTERING_DATA. At most 1,000 rows of each (2,500 of many groups). Every method
meets the same rows, one after the other. Peers that need the number of clusters choose
among 1 or 2 to 20, or, where there are more than 15, among 9 from half to 1.3 times
the true number, the true one among them. ARI: adjusted Rand index of the rows that are
not noise; rows that a method calls noise are one cluster.
"""

import contextlib
import time
import warnings

import numpy as np
from _harness import Report, arguments
from _paco_tables import all_tables
from river import cluster as river_cluster
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.preprocessing import StandardScaler

from skpacbayes.cluster import PACOClusterer

QUICK = {"15 groups", "wine, standardised", "anisotropic", "two moons"}
SEED = 0
OURS, STREAM = "PACOClusterer", "PACOClusterer, stream"


def ours(X, sizes, seed):
    """Fit a batch."""
    return PACOClusterer(random_state=seed).fit(X).labels_


def our_stream(X, sizes, seed):
    """Read the rows in a random order, one after the other."""
    order = np.random.default_rng(seed).permutation(len(X))
    return PACOClusterer(random_state=seed).partial_fit(X[order]).predict(X)


def kmeans(X, sizes, seed):
    """Largest silhouette width, of at most 1,000 rows, two starts."""
    models = [KMeans(k, n_init=2, random_state=seed).fit(X) for k in sizes if k > 1]
    some = np.random.default_rng(seed).permutation(len(X))[:1000]
    widths = [
        silhouette_score(X[some], model.labels_[some])
        if len(np.unique(model.labels_[some])) > 1
        else -1.0
        for model in models
    ]
    return models[int(np.argmax(widths))].labels_


def gaussian(covariance_type):
    """Gaussian mixture of the lowest BIC."""

    def fit(X, sizes, seed):
        models = []
        for k in sizes:
            model = GaussianMixture(
                k, covariance_type=covariance_type, reg_covar=1e-6, random_state=seed
            )
            with contextlib.suppress(ValueError):  # a covariance that is not positive
                models.append(model.fit(X))
        best = min(models, key=lambda model: model.bic(X))
        return best.predict(X)

    return fit


def bayesian(X, sizes, seed):
    """Variational mixture of a Dirichlet process, as many components as the largest."""
    model = BayesianGaussianMixture(
        n_components=max(sizes), max_iter=200, random_state=seed
    )
    return model.fit_predict(X)


def hdbscan(X, sizes, seed):
    """Density clusters of at least 15 rows."""
    return HDBSCAN(min_cluster_size=15, copy=True).fit_predict(X)


def streaming(make):
    """Read the standardised rows in a random order with a clusterer of river."""

    def fit(X, sizes, seed):
        X = StandardScaler().fit_transform(X)
        model = make()
        for i in np.random.default_rng(seed).permutation(len(X)):
            model.learn_one(dict(enumerate(X[i])))
        return np.array([model.predict_one(dict(enumerate(row))) for row in X])

    return fit


METHODS = {
    OURS: ours,
    STREAM: our_stream,
    "KMeans, silhouette": kmeans,
    "GaussianMixture, tied, BIC": gaussian("tied"),
    "GaussianMixture, full, BIC": gaussian("full"),
    "BayesianGaussianMixture": bayesian,
    "HDBSCAN": hdbscan,
    "DBSTREAM": streaming(lambda: river_cluster.DBSTREAM(clustering_threshold=0.3)),
    "DenStream": streaming(
        lambda: river_cluster.DenStream(
            decaying_factor=1e-3, beta=0.5, mu=3, epsilon=0.1, n_samples_init=200
        )
    ),
}


def sizes_to_try(n_groups, n_rows):
    """Numbers of clusters among which the peers choose."""
    if n_groups <= 15:
        return range(1, min(20, n_rows // 2) + 1)
    around = np.geomspace(0.5 * n_groups, 1.3 * n_groups, 8).astype(int)
    return sorted({*around.tolist(), n_groups})


def measure(table, seed, results):
    """Let every method meet the table; results are (ARI, error of the number, s)."""
    X, y = table(seed)
    known, n_groups = y > 0, len(np.unique(y[y > 0]))
    sizes = sizes_to_try(n_groups, len(X))
    for name, method in METHODS.items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = method(X, sizes, seed)
        seconds = time.process_time() - start
        ari = adjusted_rand_score(y[known], labels[known])
        found = len(np.unique(labels[labels >= 0]))
        results.setdefault(name, []).append(
            (ari, abs(found - n_groups), found, seconds)
        )


def group_table(report, group, named):
    """Meet the tables of a group; a row for each, and the means."""
    rows, everything = [], {name: [] for name in METHODS}
    for title, table in named.items():
        results = {}
        measure(table, SEED, results)
        labels = table(SEED)[1]
        n_groups = len(np.unique(labels[labels > 0]))
        cells = [f"{found[0][2]} ({found[0][0]:.2f})" for found in results.values()]
        rows.append([title, n_groups, *cells])
        for name, found in results.items():
            everything[name] += found
    means = np.array([np.mean(found, axis=0) for found in everything.values()])
    for what, column, digits in (
        ("mean ARI", 0, 3),
        ("mean error of the number", 1, 1),
        ("CPU seconds a table", 3, 2),
    ):
        rows.append([what, "", *(f"{value:.{digits}f}" for value in means[:, column])])
    report.table(
        f"{group}: number of clusters found (ARI)", ["table", "true", *METHODS], rows
    )


def main():
    options = arguments(__doc__)
    report = Report("paco_real", quick=options.quick)
    for group, named in all_tables().items():
        if options.quick:
            named = {name: named[name] for name in named if name in QUICK}
        if named:
            group_table(report, group, named)
            report.save()


if __name__ == "__main__":
    main()
