"""
Tutorial: how volatile is a share today, and next week? ClusteredParticleFilter
===============================================================================

Daily returns of a share, 2004 to 2008, which ship with matplotlib. Their standard
deviation changes from week to week, and a stochastic volatility model follows it. The
steps of this page: choose the parameters of the model, filter and smooth, check the
number of particles, and forecast.
"""

# %%
# The rows
# --------
# Two weeks of the record are removed: NaN is a missing row.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from skpacbayes import ClusteredParticleFilter, FilterDisplay
from skpacbayes.filtering.models import StochasticVolatility

with get_sample_data("goog.npz") as file:
    prices = file["price_data"]
dates = prices["date"][1:]
returns = 100 * np.diff(np.log(prices["adj_close"]))[:, None]
returns[700:710] = np.nan
print(f"{len(returns)} days, {int(np.isnan(returns).sum())} of them missing")

# %%
# Choose the parameters
# ---------------------
# `GridSearchCV` takes the parameters under which later days have the highest density.
# All runs share their random numbers, and quasi-Monte Carlo has little noise, so 256
# particles are enough to compare parameters. Is the model better than one Gaussian for
# all days?

search = GridSearchCV(
    ClusteredParticleFilter(
        StochasticVolatility(beta=2.0), method="sqmc", n_particles=256, random_state=0
    ),
    {
        "model__phi": [0.8, 0.9, 0.95, 0.99],
        "model__sigma": [0.2, 0.4, 0.8],
        "model__beta": [1.5, 2.0],
    },
    cv=TimeSeriesSplit(3),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # two crashes surprise the 256 particles
    search.fit(returns)
gaussian = -0.5 * np.log(2 * np.pi * np.e * np.nanvar(returns))
print("chosen:", search.best_params_)
print(f"log density of a day: {search.best_score_:.3f}; of one Gaussian {gaussian:.3f}")

# %%
# Filter and smooth
# -----------------
# The standard deviation of a return is `beta * exp(state / 2)`. The filter uses the
# days so far, the smoother all days. So the smoother is more certain, except at the
# end.

best = search.best_estimator_.set_params(n_particles=2048)
beta = best.model.beta
options = {"times": dates, "function": lambda state: beta * np.exp(state / 2)}
figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
axis.plot(dates, np.abs(returns), ".", ms=3, color="0.6", label="|return|")
FilterDisplay.from_estimator(best, returns, smooth=False, n_stds=0, ax=axis, **options)
FilterDisplay.from_estimator(best, returns, ax=axis, **options)
axis.set(xlabel="", ylabel="standard deviation of a day, %", ylim=(0, 9))
axis.set_title("standard deviation of the returns")
axis.legend()
plt.show()

# %%
# Are there enough particles?
# ---------------------------
# Fit with several seeds: the spread of the log-likelihood is the error of a run.

values = [
    best.set_params(random_state=s).fit(returns).log_likelihood_ for s in range(5)
]
print(f"log-likelihood {np.mean(values):.2f}, over seeds +- {np.std(values):.2f}")

# %%
# Forecast
# --------
# The next five days: a band of 90 % for each return, and the probability that the share
# loses more than 5 % in the week, which needs whole paths.

ahead = best.forecast(5, quantiles=[0.05, 0.95])
for day, (low, high) in enumerate(ahead.quantiles[..., 0].T, start=1):
    print(f"day {day}: {low:5.1f} to {high:4.1f} %")
week = ahead.samples[:, :, 0].sum(axis=1)
print(f"a loss of more than 5 % in the week: {np.mean(week < -5):.0%}")

# %%
# What next
# ---------
# A model of your own: :ref:`sphx_glr_auto_examples_plot_filtering_own_model.py`.
# Intervals for the parameters:
# :class:`~skpacbayes.filtering.ParticleMarginalMetropolis`, and on a stream
# :class:`~skpacbayes.filtering.SMC2`. Several modes: `n_clusters`, `conservation`. All
# options: :ref:`filtering`.
