"""
============================================================
Heavy tails on a stream: the Manhattan loss of PACOClusterer
============================================================

Three lognormal groups (Model 5 of [1]_). After some sixty rows `PACOClusterer` has
learnt that the noise is skewed with heavy tails, and both losses find three clusters.
Before, a far row costs the square of its distance with the squared loss, and may get a
cluster of its own. With the Manhattan loss it costs its distance.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%
# Six streams of 200 rows. The number of clusters is read after every tenth row.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

warnings.simplefilter("ignore")  # early answers are unsure, and say so
SEEDS, ENDS = range(10, 16), np.arange(10, 201, 10)


def numbers(loss, seed):
    """Numbers of clusters along one stream."""
    X, _ = make_paco_model(5, 200, random_state=seed)
    clusterer = PACOClusterer(loss=loss, random_state=0)
    return [clusterer.partial_fit(X[end - 10 : end]).n_clusters_ for end in ENDS]


figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
for loss, ax in zip(("squared_euclidean", "manhattan"), axes, strict=True):
    found = np.array([numbers(loss, seed) for seed in SEEDS])
    for end in (50, 100, 200):
        right = np.sum(found[:, end == ENDS] == 3)
        print(f"{loss:17} after {end:3} rows: three in {right} of {len(found)} streams")
    ax.plot(ENDS, found.T, color="tab:blue", alpha=0.6, lw=2, drawstyle="steps-post")
    ax.axhline(3, color="black", linestyle="--", label="groups")
    ax.set(title=f"loss={loss!r}", xlabel="rows learnt")
axes[0].plot([], [], color="tab:blue", label="found, a line for each stream")
axes[0].set_ylabel("number of clusters")
axes[0].legend()
plt.show()

# %%
# Neither loss helps with evenly spread rows that are far from all groups: on a stream
# they may become clusters at once. Use ``predict(X, false_alarm_rate=0.01)`` of a
# clusterer that was fitted to clean rows, or a mixture with ``outliers=True``.
