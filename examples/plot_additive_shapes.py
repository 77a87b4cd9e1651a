"""
Four effects among four hundred variables: SparseAdditiveGibbsRegressor
=======================================================================

There are two hundred rows, four hundred variables with correlated neighbours, and four
effects. The posterior finds the four variables and the shapes of their effects. The
Lasso on the same eight functions of each variable also predicts well, but keeps many
variables without effect.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LassoCV

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.plotting import PartialEffectsDisplay

rng = np.random.default_rng(0)
n, p = 200, 400
Z = rng.standard_normal((n, p))
for j in range(1, p):
    Z[:, j] = 0.5 * Z[:, j - 1] + np.sqrt(0.75) * Z[:, j]
X = 2 * norm.cdf(Z) - 1
effects = [
    lambda x: -np.sin(2 * x),
    lambda x: x**3,
    lambda x: x,
    lambda x: np.exp(-x) - np.sinh(1),
]
y = sum(effect(X[:, j]) for j, effect in enumerate(effects))
y = y + 0.6 * rng.standard_normal(n)

model = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
print("variables in:", model.get_support(indices=True))
print(
    f"noise variance {model.noise_variance_:.2f}, truth 0.36; R-hat {model.r_hat_:.3f}"
)

functions = np.polynomial.legendre.legvander(X, 8)[..., 1:].reshape(n, -1)
lasso = LassoCV(cv=3, alphas=30, tol=1e-2).fit(functions / functions.std(axis=0), y)
kept = np.flatnonzero(lasso.coef_.reshape(p, 8).any(axis=1))
print(f"the Lasso on the same functions keeps {len(kept)} variables")

# %%
# The effects with bands of two standard deviations, and the true effects minus their
# means over the rows (dashed).

display = PartialEffectsDisplay.from_estimator(model, X)
for j, axes, points in zip(
    display.features, display.axes_, display.points, strict=True
):
    if j < len(effects):
        truth = effects[j](points) - effects[j](X[:, j]).mean()
        axes.plot(points, truth, "k--", linewidth=1)
plt.show()
