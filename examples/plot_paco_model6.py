"""
==============================================================
The number of clusters over time: PACOClusterer against a peer
==============================================================

Model 6 of [1]_ and its Figure 5: the number of clusters read after every row, on
several streams, against k-means with the number of clusters of the best silhouette,
which sees all rows so far again every twenty rows.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from skpacbayes import PACOClusterer, StreamDisplay
from skpacbayes.datasets import make_paco_model

N_STREAMS, EVERY, LARGEST = 3, 20, 12


def paco(X):
    clusterer = PACOClusterer(random_state=0)
    return [clusterer.partial_fit(row[None]).n_clusters_ for row in X]


def best_silhouette(X):
    n_clusters = np.ones(len(X), dtype=int)
    for t in range(EVERY, len(X) + 1, EVERY):
        seen = X[:t]
        candidates = range(2, min(LARGEST, t - 1) + 1)
        models = [KMeans(k, n_init=2, random_state=0).fit(seen) for k in candidates]
        scores = [silhouette_score(seen, model.labels_) for model in models]
        n_clusters[t - 1 :] = candidates[int(np.argmax(scores))]
    return n_clusters


# %%
# Each thin line is a stream, the black steps the number of groups so far. k-means is
# silent between its fits, so the shares in the titles count every twentieth row only,
# where both have just read all rows.

streams = [make_paco_model(6, random_state=seed)[0] for seed in range(N_STREAMS)]
truth = make_paco_model(6, random_state=0)[1] + 1
figure, axes = plt.subplots(
    1, 2, figsize=(10, 4), sharex=True, sharey=True, layout="constrained"
)
for ax, method, title in (
    (axes[0], paco, "PACO, one pass"),
    (axes[1], best_silhouette, "k-means, best silhouette, refitted"),
):
    read = np.array([method(X) for X in streams])
    at_fits = np.arange(EVERY - 1, len(truth), EVERY)
    right = np.mean(read[:, at_fits] == truth[at_fits])
    print(f"{title}: right at {right:.0%}")
    print(f"  after every row, held between fits: {np.mean(read == truth):.0%}")
    steps = np.arange(1, len(truth) + 1)
    ax.step(steps, truth, where="post", color="black")
    for n_clusters in read:
        StreamDisplay(steps, n_clusters).plot(ax=ax)
    ax.set_title(f"{title}: right at {right:.0%}")
axes[1].set_ylabel("")
plt.show()
