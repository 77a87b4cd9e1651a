"""
==============================================================
Clusters with heavy tails: the Manhattan loss of PACOClusterer
==============================================================

Three lognormal groups (Model 5 of [1]_). Under the squared loss a row far away costs
the square of its distance, and would pay for a cluster of its own if the noise were
taken to be normal; PACOClusterer lets it have heavy tails and be skewed. Under the
Manhattan loss a row costs its distance, and no such noise is needed.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

N_DRAWS = 20
LOSSES = ("squared_euclidean", "manhattan")

# The squared loss may take all the clusters that it may have, and says so.
warnings.filterwarnings("ignore", "all max_clusters", ConvergenceWarning)

found = {loss: [] for loss in LOSSES}
for seed in range(N_DRAWS):
    X, _ = make_paco_model(5, 200, random_state=seed)
    for loss in LOSSES:
        model = PACOClusterer(loss=loss, random_state=0).fit(X)
        found[loss].append(model.n_clusters_)
for loss in LOSSES:
    right = np.mean(np.equal(found[loss], 3))
    print(f"{loss}: three clusters in {right:.0%} of {N_DRAWS} tables")

# %%
# The first table, with the number of clusters in all of them below.

X, _ = make_paco_model(5, 200, random_state=0)
figure, axes = plt.subplots(
    2, 2, figsize=(9, 6), height_ratios=[2, 1], sharex="row", layout="constrained"
)
for loss, (upper, lower) in zip(LOSSES, axes.T, strict=True):
    model = PACOClusterer(loss=loss, random_state=0).fit(X)
    upper.scatter(X[:, 0], X[:, 1], c=model.labels_, cmap="tab20", vmax=19, s=12)
    upper.scatter(*model.cluster_centers_[:, :2].T, marker="x", color="black")
    upper.set_title(f'loss="{loss}": {model.n_clusters_} clusters')
    lower.hist(found[loss], bins=np.arange(21) + 0.5)
    lower.axvline(3, color="black", linestyle="--", linewidth=0.8)
    lower.set_ylim(0, N_DRAWS)
    lower.set_xticks(range(2, 21, 2))
    lower.set_xlabel("number of clusters")
axes[1, 0].set_ylabel(f"tables of {N_DRAWS}")
plt.show()
