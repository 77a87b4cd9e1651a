"""
==============================================================
How many clusters? PACOClusterer and four peers on five models
==============================================================

The simulations of section 5 of [1]_ (Figures 2 and 3). Each panel shows how often a
method chose each number of clusters. There are only 8 draws of each model: a share of
90 % has a standard error of about 11 %. The benchmark ``bench_paco_batch.py`` has more
draws.

Every method may choose up to 12 clusters, HDBSCAN any number. PACO has its default
parameters, and the Manhattan loss on Model 5, whose tails are heavy. k-means has three
starts for each number of clusters.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%
# The methods
# -----------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import calinski_harabasz_score, silhouette_score
from sklearn.mixture import BayesianGaussianMixture

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

N_DRAWS, LARGEST = 8, 12
GROUPS = {1: 1, 2: 4, 3: 4, 4: 7, 5: 3}


def k_means_path(X):
    """Labels by k-means with 2, ..., LARGEST clusters, shared by two criteria."""
    return [
        KMeans(k, n_init=3, random_state=0).fit_predict(X)
        for k in range(2, LARGEST + 1)
    ]


def paco(X, path, model):
    loss = "manhattan" if model == 5 else "squared_euclidean"
    return PACOClusterer(LARGEST, loss=loss, random_state=0).fit(X).n_clusters_


def best_of_k_means(criterion):
    def choose(X, path, model):
        return 2 + int(np.argmax([criterion(X, labels) for labels in path]))

    return choose


def variational_mixture(X, path, model):
    mixture = BayesianGaussianMixture(n_components=LARGEST, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(X)
    return int((mixture.weights_ > 0.01).sum())


def hdbscan(X, path, model):
    return max(1, HDBSCAN(min_cluster_size=15, copy=True).fit_predict(X).max() + 1)


METHODS = {
    "PACO": paco,
    "silhouette": best_of_k_means(silhouette_score),
    "Calinski-Harabasz": best_of_k_means(calinski_harabasz_score),
    "variational mixture": variational_mixture,
    "HDBSCAN": hdbscan,
}

# %%
# What they choose
# ----------------
# Each table has 200 rows. The dashed line is the number of groups. The silhouette and
# the Calinski-Harabasz index are not defined for one cluster, so they are wrong on
# Model 1.

figure, axes = plt.subplots(
    len(GROUPS), len(METHODS), figsize=(11, 9), sharex=True, sharey=True
)
print(f"{'right, %':10}" + "".join(f"{name:>26}" for name in METHODS))
for model, row in zip(GROUPS, axes, strict=True):
    tables = [make_paco_model(model, 200, seed)[0] for seed in range(N_DRAWS)]
    paths = [k_means_path(X) for X in tables]
    shares = []
    for (name, method), ax in zip(METHODS.items(), row, strict=True):
        chosen = np.array(
            [method(X, path, model) for X, path in zip(tables, paths, strict=True)]
        )
        shares.append(100 * np.mean(chosen == GROUPS[model]))
        ax.hist(chosen, bins=np.arange(LARGEST + 1) + 0.5)
        ax.axvline(GROUPS[model], color="black", linestyle="--", linewidth=0.8)
        if model == 1:
            ax.set_title(name, fontsize="medium")
    row[0].set_ylabel(f"Model {model}: draws")
    print(f"Model {model:<4}" + "".join(f"{share:26.0f}" for share in shares))
for ax in axes[-1]:
    ax.set_xlabel("number of clusters")
figure.tight_layout()
plt.show()
