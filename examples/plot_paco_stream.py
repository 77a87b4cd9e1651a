"""
=============================================
Clusters appearing on a stream: PACOClusterer
=============================================

Ten groups appear one after the other, one every 20 rows (Model 6 of [1]_).
:class:`~skpacbayes.cluster.PACOClusterer` reads the rows once, in order. The number of
groups, their spread and the moments at which they appear are not given.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%
# Learn the stream
# ----------------
# `partial_fit` takes any number of rows in a call. Here each call has one row, to read
# the number of clusters after every row.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model
from skpacbayes.plotting import StreamDisplay

X, group = make_paco_model(6, random_state=0)
clusterer = PACOClusterer(random_state=0)
n_clusters, pictures = [], {}
for t, row in enumerate(X, start=1):
    clusterer.partial_fit(row[None])
    n_clusters.append(clusterer.n_clusters_)
    if t in (50, 100, 200):
        pictures[t] = clusterer.predict(X[:t]), clusterer.cluster_centers_

truth = group + 1
print(f"right after {np.mean(n_clusters == truth):.0%} of the rows")

# %%
# A cluster keeps its label, and so its colour, as long as it exists.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, (t, (labels, centers)) in zip(axes.flat, pictures.items(), strict=False):
    ax.scatter(*X[:t].T, c=labels, cmap="tab10", vmin=0, vmax=9, s=12)
    ax.scatter(*centers.T, marker="x", color="black", s=40)
    ax.set(xlim=(-3, 23), ylim=(-13, 13), title=f"{t} rows: {len(centers)} clusters")
rows = np.arange(1, len(X) + 1)
StreamDisplay(rows, n_clusters, truth=truth).plot(ax=axes[1, 1])
axes[1, 1].set_title("after every row")
plt.show()

# %%
# Compare with k-means that is fitted again and again
# ---------------------------------------------------
# After every twenty rows k-means is fitted to all rows so far, with up to twelve
# clusters. The number with the best silhouette is chosen. There are three streams. Both
# methods are judged after every twentieth row.

EVERY, LARGEST = 20, 12


def one_pass(X):
    """Return the number of clusters after every twentieth row, by one pass."""
    clusterer = PACOClusterer(random_state=0)
    parts = np.split(X, len(X) // EVERY)
    return [clusterer.partial_fit(part).n_clusters_ for part in parts]


def best_silhouette(X):
    """Return the same by k-means, fitted to all rows so far each time."""
    found = []
    for end in range(EVERY, len(X) + 1, EVERY):
        models = [
            KMeans(k, n_init=2, random_state=0).fit(X[:end])
            for k in range(2, LARGEST + 1)
        ]
        scores = [silhouette_score(X[:end], model.labels_) for model in models]
        found.append(models[int(np.argmax(scores))].n_clusters)
    return found


streams = [make_paco_model(6, random_state=seed)[0] for seed in range(3)]
ends = np.arange(EVERY, len(X) + 1, EVERY)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, method, title in (
    (axes[0], one_pass, "PACOClusterer, one pass"),
    (axes[1], best_silhouette, "k-means, best silhouette"),
):
    read = np.array([method(rows) for rows in streams])
    right = np.mean(read == truth[ends - 1])
    print(f"{title}: right at {right:.0%}")
    ax.plot(ends, truth[ends - 1], color="black", lw=4, alpha=0.3, label="groups")
    for number, style in enumerate(["o-", "s--", "^:"]):
        ax.plot(ends, read[number], style, ms=4, label=f"found, stream {number + 1}")
    ax.set(title=f"{title}: right at {right:.0%}", xlabel="rows learnt")
axes[0].set_ylabel("number of clusters")
axes[0].legend()
plt.show()
