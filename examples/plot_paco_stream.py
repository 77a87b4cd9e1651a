"""
=============================================
Clusters appearing on a stream: PACOClusterer
=============================================

Ten groups appear one after the other, one every 20 rows (Model 6 of [1]_).
:class:`~skpacbayes.cluster.PACOClusterer` reads the rows once, in order, and is told
nothing: neither how many groups there will be, nor their spread, nor when one begins.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%
# Reading the stream
# ------------------
# `partial_fit` takes rows in any cut; here one at a time, to look at the number of
# clusters after each.

import matplotlib.pyplot as plt
import numpy as np

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
# A cluster keeps its label, and so its colour, while it lives.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, (t, (labels, centers)) in zip(axes.flat, pictures.items(), strict=False):
    ax.scatter(*X[:t].T, c=labels, cmap="tab10", vmin=0, vmax=9, s=12)
    ax.scatter(*centers.T, marker="x", color="black", s=40)
    ax.set(xlim=(-3, 23), ylim=(-13, 13), title=f"{t} rows: {len(centers)} clusters")
rows = np.arange(1, len(X) + 1)
StreamDisplay(rows, n_clusters, truth=truth).plot(ax=axes[1, 1])
axes[1, 1].set_title("after every row")
plt.show()
