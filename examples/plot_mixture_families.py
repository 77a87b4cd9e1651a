"""
Mixed columns and heavy tails: TemperedVBMixture
================================================

The columns of a table are often of several kinds: an amount, a number of purchases, a
region, with missing values. :class:`~skpacbayes.mixture.TemperedVBMixture` takes a
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
# Groups with heavy tails. A Gaussian mixture adds broad components for the far rows,
# and warns. A Student component keeps its far rows, which have little influence on its
# mean. The bound chooses the degrees of freedom.

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

# %%
# Two groups of each family, in the colour of the component found. Families of one
# column are shown as histograms.

first = np.arange(400) < 200


def two(low, high):
    """Return the parameter of each row of two groups, as a column."""
    return np.where(first, low, high)[:, None]


angles = rng.vonmises(two(0.3, 2.5), 8.0)
inputs = rng.uniform(-1, 1, (400, 1))
samples = {
    "normal": rng.normal(two(-2, 2), 0.8, (400, 2)),
    "lognormal": rng.lognormal(two(0, 2), 0.5, (400, 2)),
    "student": two(-6, 6) + rng.standard_t(2, (400, 2)),
    "gamma": rng.gamma(two(0.7, 9), 1.0, (400, 1)),
    "poisson": rng.poisson(two(3, 15), (400, 1)),
    "categorical": (rng.random((400, 6)) < two(0.2, 0.8)).astype(float),
    "von_mises_fisher": np.hstack([np.cos(angles), np.sin(angles)]),
    "regression": np.hstack([inputs, two(-1, 1) * inputs + two(1, 0)]),
}
samples["regression"][:, 1] += rng.normal(0, 0.1, 400)
figure, axes = plt.subplots(2, 4, figsize=(10, 5))
for axis, (name, rows) in zip(axes.flat, samples.items(), strict=True):
    mixture = TemperedVBMixture(name, 2, random_state=0).fit(rows)
    found = mixture.predict(rows)
    share = max(np.mean(found == first), np.mean(found != first))
    print(f"{name}: {share:.0%} of the rows in their own group")
    if name == "categorical":  # six columns are shown as one count
        rows = rows.sum(axis=1, keepdims=True)
        axis.set_xlabel("columns with category 1")
    if rows.shape[1] == 1:
        parts = [rows[found == k, 0] for k in range(2)]
        axis.hist(parts, bins=20, stacked=True, color=["C0", "C1"])
    else:
        axis.scatter(*rows.T, c=found, s=5, cmap="tab10", vmax=9)
    axis.set_title(name)
figure.tight_layout()
plt.show()
