"""
Tutorial: how heavy are the tails of a share? ABCPosteriorKDE step by step
==========================================================================

Daily returns of a share, 2004 to 2008, which ship with matplotlib. The model is a
g-and-k distribution: a transformed normal variable, with four parameters for location,
scale, skewness and tails. It is easy to simulate, and its density has no closed form.
The steps of this page: simulate a table, compute the posterior, check the model and the
intervals, and see whether more simulations would help.
"""

# %%
# Summarise the observation
# -------------------------
# The posterior uses only summaries of the data. Here they are seven octiles, in
# percent.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.stats import uniform

from skpacbayes import ABCPosteriorKDE, PosteriorDisplay, simulate

with get_sample_data("goog.npz") as file:
    prices = file["price_data"]["adj_close"]
returns = 100 * np.diff(np.log(prices))[-250:]
OCTILES = np.arange(1, 8) / 8
observed = np.quantile(returns, OCTILES)[None]
print(f"{len(returns)} days; octiles in percent:", *observed[0].round(1))

# %%
# Simulate
# --------
# The prior is a list of distributions, one for each parameter. The simulator gets many
# rows of parameters at once. `simulate` also stores the bounds of the prior.

NAMES = ["location", "scale", "skewness g", "tails k"]
prior = [uniform(-2, 4), uniform(0.2, 4.8), uniform(-2, 4), uniform(0, 1)]


def g_and_k(theta, rng):
    """Octiles of as many samples as rows of parameters."""
    location, scale, g, k = theta.T[:, :, None]
    z = rng.normal(size=(len(theta), len(returns)))
    draws = location + scale * (1 + 0.8 * np.tanh(g * z / 2)) * (1 + z * z) ** k * z
    return np.quantile(draws, OCTILES, axis=1).T


table = simulate(prior, g_and_k, 10_000, random_state=0)

# %%
# Compute the posterior
# ---------------------
# `fit` learns the table. Then the posterior of any observation can be computed. The
# title of each panel is the interval of 90 %. Normal returns would have g = 0 and k =
# 0.

posterior = ABCPosteriorKDE(random_state=0).fit(table)
low, middle, high = posterior.predict_quantiles(observed, [0.05, 0.5, 0.95])[0]
for name, *values in zip(NAMES, middle, low, high, strict=True):
    print("{:12}{:6.2f} ({:.2f} to {:.2f})".format(name, *values))
PosteriorDisplay.from_estimator(posterior, observed, names=NAMES)
plt.show()

# %%
# Does the model describe the returns?
# ------------------------------------
# Draw parameters from the posterior, and simulate a year with each. The observed
# octiles should look like those of one of these years.

years = g_and_k(posterior.sample(observed, 200)[0], np.random.default_rng(1))
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(OCTILES, years.T, color="tab:blue", alpha=0.05)
axes.plot(OCTILES, observed[0], "ko-", label="observed")
axes.set(xlabel="level", ylabel="return of a day, %")
axes.set_title("octiles of 200 years drawn from the posterior")
axes.legend()
plt.show()

# %%
# Are the intervals right?
# ------------------------
# Draw new parameters from the prior, and simulate a year with each. Intervals of 90 %
# should contain nine in ten of the parameters.

X_new, y_new, _ = simulate(prior, g_and_k, 300, random_state=1)
edges = posterior.predict_quantiles(X_new, [0.05, 0.95])
inside = (edges[:, 0] < y_new) & (y_new < edges[:, 1])
error = np.sqrt(0.9 * 0.1 / len(y_new))
for name, share in zip(NAMES, inside.mean(axis=0), strict=True):
    print(f"{name:12}{share:.1%} within 90 % (standard error {error:.1%})")

# %%
# Would more simulations help?
# ----------------------------
# `loo_score` is the mean log density of held-out parameters of the table. While it
# clearly rises, simulate more, and add the simulations by `partial_fit`.

before = posterior.loo_score()
more = simulate(prior, g_and_k, 10_000, random_state=2)
after = posterior.partial_fit(more.summaries, more.parameters).loo_score()
print(f"held-out log density: {before:.2f} with 10,000, {after:.2f} with 20,000")

# %%
# What next
# ---------
# A decision from a posterior: :ref:`the epidemic
# <sphx_glr_auto_examples_plot_story_epidemic.py>`. Many summaries of which few matter:
# ``metric="regression"``. A slow simulator: ``simulate(..., n_jobs=-1)``. One
# observation, and a prior much wider than the posterior: rounds of simulations. All
# options: :ref:`likelihood_free`.
