"""
====================================================================
Rows on several machines, one clustering: PACOClusterer
====================================================================

The rows need not be brought together. Each machine summarises its rows in a small
array, by :meth:`~skpacbayes.cluster.PACOClusterer.sufficient_statistics`. One machine
stacks the arrays and runs one chain on all of them. Here processes of joblib take the
place of machines; with Dask or Spark use their own `map`.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

N_PARTITIONS = 4
X, _ = make_paco_model(3, 40_000, random_state=0)
# Sorted, so that no partition is like the others: a partition may lack a whole group.
partitions = np.array_split(X[np.argsort(X[:, 1])], N_PARTITIONS)

clusterer = PACOClusterer(summary_size=200, random_state=0)
summaries = Parallel(n_jobs=2)(
    delayed(clusterer.sufficient_statistics)(rows) for rows in partitions
)
clusterer.absorb(np.vstack(summaries))
print(f"{X.nbytes:,} bytes of rows, {sum(s.nbytes for s in summaries):,} of summaries")
print(f"{clusterer.n_clusters_} clusters in {clusterer.n_samples_seen_:,} rows, at")
print(clusterer.cluster_centers_.round(2))

# %%
# The loss of the centres, compared with centres that were found with all rows in one
# place.

together = PACOClusterer(random_state=0).fit(X[:2_000])


def loss(model):
    return np.mean(model.transform(X).min(axis=1) ** 2)


print(f"mean loss of all rows: {loss(clusterer):.4f}, from the summaries")
print(f"                       {loss(together):.4f}, from 2,000 of the rows in a batch")

# %%
# Each partition has a colour. The size of a point is the number of rows that it
# summarises.

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for number, summary in enumerate(summaries, start=1):
    points, weights = summary[:, :2], summary[:, 2]
    ax.scatter(*points.T, s=weights / 10, alpha=0.6, label=f"partition {number}")
ax.scatter(*clusterer.cluster_centers_.T, marker="x", color="black", s=80)
ax.legend(markerscale=1)
ax.set_title("summaries of four partitions, and the centres found")
plt.show()
