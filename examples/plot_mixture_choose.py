"""
How many components, if they are not Gaussian? TemperedVBGaussianMixture
========================================================================

A Gaussian mixture needs several Gaussians for each skewed group. With more rows there
is more evidence for the additional Gaussians: they describe the density, not the
groups. A smaller ``inverse_temperature`` gives the likelihood less weight, and requires
more evidence for each component.
"""

import matplotlib.pyplot as plt

from skpacbayes import ChoiceDisplay, EllipsesDisplay, TemperedVBGaussianMixture
from skpacbayes.datasets import make_mixture

rows, _ = make_mixture("skewed", 6000, n_components=3, random_state=1)
X, new_rows = rows[:2000], rows[2000:]
temperatures = [1.0, 0.3, 0.1]

mixtures = [
    TemperedVBGaussianMixture(
        "auto", max_components=8, inverse_temperature=alpha, random_state=0
    ).fit(X)
    for alpha in temperatures
]
for alpha, mixture in zip(temperatures, mixtures, strict=True):
    print(
        f"inverse temperature {alpha}: {mixture.n_components_} components, "
        f"log-density of new rows {mixture.score(new_rows):.3f}"
    )

# %%
# Above: the rows in the colour of their component. Below: the criterion, which is the
# evidence bound minus the penalty for the number of components. Tempering finds the
# groups. It does not give the better density, as the printed numbers show.

figure, axes = plt.subplots(2, len(mixtures), figsize=(11, 6), layout="constrained")
for column, alpha, mixture in zip(axes.T, temperatures, mixtures, strict=True):
    EllipsesDisplay.from_estimator(mixture, X, ax=column[0])
    column[0].set_title(f"inverse temperature {alpha}")
    curve = ChoiceDisplay.from_estimator(mixture, ax=column[1])
    sizes, bounds = curve.curves["bound"]
    column[1].set_ylim(bounds.max() - 600 * alpha, bounds.max() + 60 * alpha)
plt.show()
