"""
Mixed columns and heavy tails: TemperedVBMixture
================================================

A row of a table is seldom one vector of numbers: it holds an amount, a number of
purchases, a region, and holes. :class:`~skpacbayes.mixture.TemperedVBMixture` takes a
family for each kind of column, leaves missing values out, and chooses the number of
groups by the evidence bound.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import TemperedVBGaussianMixture, TemperedVBMixture

rng = np.random.default_rng(0)
group = rng.integers(0, 3, 900)
amount = rng.normal(np.array([2.0, 5.0, 8.0])[group], 1.0)
purchases = rng.poisson(np.array([2.0, 2.0, 12.0])[group])
region = (rng.random(900) < np.array([0.1, 0.8, 0.5])[group]).astype(float)
X = np.column_stack([amount, purchases, region])
X[rng.random(X.shape) < 0.1] = np.nan

customers = TemperedVBMixture(
    [
        ("amount", "normal", [0]),
        ("purchases", "poisson", [1]),
        ("region", "categorical", [2]),
    ],
    "auto",
    max_components=6,
    random_state=0,
).fit(X)
print(f"{customers.n_components_} groups of customers")
for name, values in customers.parameters_.items():
    print(name, values.round(1).tolist())
print(f"agreement: {adjusted_rand_score(group, customers.predict(X)):.2f}")

# %%
# Groups with heavy tails: a Gaussian mixture needs broad components for the far rows,
# and warns; a Student component keeps its far rows, and they hardly pull it. The bound
# chooses its degrees of freedom.

centers = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
rows = centers[group] + rng.standard_t(3, (900, 2))
options = {"n_components": "auto", "max_components": 8, "random_state": 0}
mixtures = {
    "Gaussian": TemperedVBGaussianMixture(**options).fit(rows),
    "Student": TemperedVBMixture("student", **options).fit(rows),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
for axis, (name, mixture) in zip(axes, mixtures.items(), strict=True):
    print(f"{name}: {mixture.n_components_} components, J = {mixture.elbo_:.0f}")
    axis.scatter(*rows.T, c=mixture.predict(rows), s=5, cmap="tab10", vmax=9)
    axis.set_title(f"{name}: {mixture.n_components_} components")
axes[0].set_xlim(-10, 22)
axes[0].set_ylim(-10, 22)
figure.tight_layout()
plt.show()
