"""
Tutorial: how many kinds of wine are there? PACOClusterer step by step
======================================================================

Thirteen chemical measurements of 178 wines of three growers, which ship with
scikit-learn. The growers are not given to the clusterer. The steps of this page: fit,
see how sure the number of clusters is, describe the clusters, find unusual wines, and
learn the same wines as a stream.
"""

# %%
# Fit
# ---
# The units differ (percent, milligrams, ratios), so the columns are standardised. No
# number of clusters is given. A warning names the numbers that the rows do not exclude;
# read it before the answer.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skpacbayes import (
    ClusterCountDisplay,
    EllipsesDisplay,
    PACOClusterer,
    StreamDisplay,
)

wine = load_wine(as_frame=True)
scaler = StandardScaler().set_output(transform="pandas")
X = scaler.fit_transform(wine.data)
with warnings.catch_warnings(record=True) as messages:
    warnings.simplefilter("always")
    clusterer = PACOClusterer(random_state=0).fit(X)
for message in messages:
    print("warning:", message.message)
agreement = adjusted_rand_score(wine.target, clusterer.labels_)
print(f"{clusterer.n_clusters_} clusters; adjusted Rand index with the growers:")
print(f"{agreement:.2f} (1: the same groups, 0: chance)")

# %%
# How sure is the number?
# -----------------------
# ``n_clusters_candidates_`` lists the numbers that the rows do not exclude, the best
# first. The bars are the frequencies of the numbers in the chain, given the inverse
# temperature that was found.

print("not excluded:", *clusterer.n_clusters_candidates_)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ClusterCountDisplay.from_estimator(clusterer, ax=left)
pair = [X.columns.get_loc(name) for name in ("flavanoids", "color_intensity")]
EllipsesDisplay.from_estimator(clusterer, X, features=pair, ax=right)
right.set_title("two of thirteen columns, standardised")
plt.show()

# %%
# What are the clusters?
# ----------------------
# Centres in the units of the measurements, for the columns in which they differ most.

centers = pd.DataFrame(
    scaler.inverse_transform(clusterer.cluster_centers_), columns=wine.feature_names
)
spread = clusterer.cluster_centers_.std(axis=0)
differ_most = [wine.feature_names[j] for j in np.argsort(-spread)[:5]]
print(centers[differ_most].round(1).to_string())

# %%
# Which wines are unusual?
# ------------------------
# The false alarm rate sets the threshold of the distance: one wine in a hundred that
# belongs to a cluster is labelled an outlier by mistake. `predict` labels outliers -1.

labels = clusterer.predict(X, false_alarm_rate=0.01)
print(f"{np.sum(labels == -1)} of {len(X)} wines lie outside of all clusters")

# %%
# As a stream
# -----------
# The same wines, one by one, in random order. The number of clusters is read after
# every tenth row. After the first few dozen rows it is uncertain.

order = np.random.default_rng(0).permutation(len(X))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # early answers are unsure, as shown above
    display = StreamDisplay.from_estimator(
        PACOClusterer(random_state=0), X.to_numpy()[order], every=10
    )
display.ax_.set(
    ylim=(0, None), yticks=range(5), title="number of clusters after each wine"
)
plt.show()
print(f"after all rows: {display.values[-1]} clusters")

# %%
# What next
# ---------
# Fewer clusters: raise `cluster_penalty`. Heavy tails: ``loss="manhattan"``. A stream
# that changes: ``forgetting="auto"``, see :ref:`the pump
# <sphx_glr_auto_examples_plot_paco_drift.py>`. All options: :ref:`clustering`.
