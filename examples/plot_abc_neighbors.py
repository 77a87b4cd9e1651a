"""
What the number of neighbors and the adjustment do in ABCPosteriorKDE
=====================================================================

Approximate Bayesian computation accepts the parameters of the k simulations nearest to
the observation. A small k gives a noisy density. A large k gives a wide density,
because it includes simulations that are not near. Local regression moves the accepted
parameters to where they would be if their summaries were the observed ones, so a larger
k can be used. Here the exact posterior is known: one summary is the parameter plus
noise, and the other four are noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skpacbayes import ABCPosteriorKDE, ChoiceDisplay

N, NOISE = 20_000, 0.5
rng = np.random.default_rng(0)
y = rng.normal(size=N)
X = rng.normal(size=(N, 5))
X[:, 0] = y + NOISE * X[:, 0]
observed = np.array([[1.5, 0.3, -0.5, 0.8, 0.0]])
shrink = 1 / (1 + NOISE**2)
exact = norm(shrink * observed[0, 0], NOISE * np.sqrt(shrink))

grid = np.linspace(-1, 3, 300)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for axes, adjustment in zip(panels, [None, "linear"], strict=True):
    for k in (20, 200, 2000, 20_000):
        posterior = ABCPosteriorKDE(k, bandwidth=1.0, adjustment=adjustment).fit(X, y)
        density = np.exp(posterior.log_density(observed, grid)[0])
        axes.plot(grid, density, label=f"k = {k}")
    axes.plot(grid, exact.pdf(grid), "k--", label="exact")
    axes.set(title=f"adjustment={adjustment!r}", xlabel="parameter")
panels[0].set_ylabel("posterior density")
panels[1].legend()
plt.show()

# %%
# Which k, and which adjustment? Hold pairs of the table out, and compute the log
# density of their parameters given their summaries. This needs no exact posterior. The
# default, "cv", takes a large k among those that are as good as the best within the
# error of the scores.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
posterior = ABCPosteriorKDE(random_state=0).fit(X, y)
ChoiceDisplay.from_estimator(posterior, ax=axes)
print(
    f"adjustment={posterior.adjustment_!r}: k = {posterior.n_neighbors_}, held-out "
    f"log-density {posterior.loo_score():.3f}"
)
best = -0.5 * np.log(2 * np.pi * np.e * shrink * NOISE**2)
print(f"the exact posterior: {best:.3f} in expectation")
axes.axhline(best, color="black", linestyle="--", label="exact, expected")
axes.set(title="held-out score of each number of neighbors")
axes.legend()
plt.show()
