"""
=========================================================
The inverse temperature of PACOClusterer by held-out data
=========================================================

The default, ``"auto"``, takes the inverse temperature from the noise of the data.
`GridSearchCV` can choose it too, because
:meth:`~skpacbayes.cluster.PACOClusterer.score` is the held-out log density of the
*normalised* quasi-likelihood. Unlike the loss, it does not rise with each further
centre.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

X, _ = make_paco_model(3, 300, random_state=0)
automatic = PACOClusterer(random_state=0).fit(X)
grid = automatic.inverse_temperature_ * np.geomspace(0.01, 100, 13)
search = GridSearchCV(automatic, {"inverse_temperature": grid}, cv=5).fit(X)
n_clusters = [
    PACOClusterer(inverse_temperature=value, random_state=0).fit(X).n_clusters_
    for value in grid
]
print(
    f"automatic: {automatic.inverse_temperature_:.3g}, {automatic.n_clusters_} clusters"
)
print(
    f"chosen:    {search.best_params_['inverse_temperature']:.3g}, "
    f"{search.best_estimator_.n_clusters_} clusters; the data have 4 groups"
)

# %%
# The score falls on both sides. With too few clusters rows lie far from a centre, with
# too many their noise is cut into pieces. The lower panel has the number of clusters of
# a fit to all rows; a fold has four fifths of the rows, and may have another number.

figure, (upper, lower) = plt.subplots(
    2, 1, figsize=(7, 5.5), sharex=True, layout="constrained"
)
upper.errorbar(
    grid,
    search.cv_results_["mean_test_score"],
    search.cv_results_["std_test_score"] / np.sqrt(5),
    marker="o",
    capsize=3,
)
upper.set(ylabel="held-out score", title="five folds, standard errors")
lower.step(grid, n_clusters, where="mid", marker="o")
lower.axhline(4, color="0.6", linestyle="--", label="groups")
lower.set(xscale="log", xlabel="inverse temperature", ylabel="number of clusters")
lower.legend()
for ax in (upper, lower):
    ax.axvline(automatic.inverse_temperature_, color="C3", linewidth=1)
    ax.grid(alpha=0.3)
lower.annotate(
    "automatic",
    (automatic.inverse_temperature_, lower.get_ylim()[1]),
    xytext=(4, -12),
    textcoords="offset points",
    color="C3",
)
plt.show()
