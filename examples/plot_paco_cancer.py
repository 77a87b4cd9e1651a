"""
==============================================================
Clusters that are not round: PACOClusterer on cells of tumours
==============================================================

There are 569 tumours, with 30 standardised measurements of the cells of each. The
measurements are correlated, so benign and malignant tumours are two elongated clouds.
:class:`~skpacbayes.PACOClusterer` learns the common shape of the clusters, and their
number. For comparison: k-means with the silhouette, and a Gaussian mixture with BIC.
"""

# %%
# Only the rows are given.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from skpacbayes import PACOClusterer

cancer = load_breast_cancer()
X = StandardScaler().fit_transform(cancer.data)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    clusterer = PACOClusterer(random_state=0).fit(X)
print(*(str(one.message) for one in said))

balls = [KMeans(k, n_init=10, random_state=0).fit_predict(X) for k in range(2, 11)]
mixtures = [
    GaussianMixture(k, covariance_type=kind, n_init=3, random_state=0).fit(X)
    for k in range(1, 11)
    for kind in ("tied", "full")
]
found = {
    "diagnosis": cancer.target,
    "PACOClusterer": clusterer.labels_,
    "k-means, silhouette": max(balls, key=lambda labels: silhouette_score(X, labels)),
    "Gaussian mixture, BIC": min(mixtures, key=lambda one: one.bic(X)).predict(X),
}
for name, labels in found.items():
    agreement = adjusted_rand_score(cancer.target, labels)
    print(f"{name}: {len(np.unique(labels))} clusters, adjusted Rand {agreement:.2f}")

# %%
# The plane of the first two principal components. Colours go from left to right.

plane = PCA(2).fit_transform(X)


def colors(labels):
    """Return numbers of clusters from left to right, so that colours agree."""
    values = np.unique(labels)
    left = np.argsort([plane[labels == value, 0].mean() for value in values])
    return np.argsort(left)[np.searchsorted(values, labels)]


figure, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained", sharey=True)
for ax, (name, labels) in zip(axes.flat, found.items(), strict=True):
    ax.scatter(*plane.T, c=colors(labels), cmap="tab10", vmax=9, s=12)
    ax.set_title(f"{name}: {len(np.unique(labels))}")
plt.show()
