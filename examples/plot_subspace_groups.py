"""
=============================================================
Groups that two of ten features show: SubspaceMixture
=============================================================

The extreme example of the appendix of [1]_: nine groups of 100 rows in ten features.
Group j is narrow in features j and j + 1, and uniform in all others. Distances over all
features do not show the groups, and no two directions show all of them.
:class:`SubspaceMixture` finds the groups and their features.

.. [1] K. Fan and K. Heller, "k-means: Fighting against Degeneracy in Sequential Monte
   Carlo with an Application to Tracking", 2018, Appendix 6.
"""

# %%
# Four methods, with the number of groups given
# ---------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from skpacbayes.cluster import SubspaceMixture
from skpacbayes.datasets import make_subspace_groups

X, y = make_subspace_groups(10, spread=0.04, random_state=0)
mixture = SubspaceMixture(9, random_state=0)
methods = {
    "k-means": KMeans(9, n_init=10, random_state=0),
    "2 principal components, k-means": make_pipeline(
        PCA(2), KMeans(9, n_init=10, random_state=0)
    ),
    "diagonal Gaussian mixture": GaussianMixture(
        9, covariance_type="diag", n_init=5, random_state=0
    ),
    "SubspaceMixture": mixture,
}
print("adjusted Rand index (1: all right, 0: chance)")
for name, method in methods.items():
    print(f"   {name:33} {adjusted_rand_score(y, method.fit_predict(X)):.2f}")

# %%
# Which features show which group?
# --------------------------------
# Left: the rows in two of the features; only the group in black is narrow there. Right:
# the posterior probability that a feature is relevant to a cluster. Some rows lie by
# chance among the rows of another group, in the features of that group. No method can
# label these.

probability = mixture.relevant_features_
order = np.argsort(probability @ np.arange(10))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.scatter(X[:, 4], X[:, 5], s=4, c="lightgray")
own = mixture.labels_ == order[4]
left.scatter(X[own, 4], X[own, 5], s=5, c="black")
left.set(xlabel="feature 4", ylabel="feature 5", title="one group of nine")
image = right.imshow(probability[order], vmin=0, vmax=1, cmap="Blues")
right.set(xlabel="feature", ylabel="cluster", xticks=range(10), yticks=range(9))
right.set_title("which features show which group?")
figure.colorbar(image, label="probability of relevance")
figure.tight_layout()

# %%
# Are there enough chains?
# ------------------------
# A chain that starts badly stays near its start. So there are several chains. The worse
# half stops after ten iterations, and again after ten more. If several chains come near
# the best log density, there are enough.

print("log density of the ten chains when they stopped, best first:")
print(np.sort(mixture.log_joints_)[::-1].round())
plt.show()
