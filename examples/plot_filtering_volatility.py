"""
How nervous is a share? Choose a filter's model by its forecasts
================================================================

Daily returns of a share price, 2004 to 2008 (they ship with matplotlib). Their size
varies from week to week: a stochastic volatility model follows it. Its parameters are
chosen by `GridSearchCV` on the log density of the days to come, as for any other
estimator of scikit-learn; then the days are filtered as they came, and smoothed in
hindsight. Two weeks of the record are taken away: missing rows are no trouble.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from skpacbayes import ClusteredParticleFilter, FilterDisplay
from skpacbayes.filtering.models import StochasticVolatility

with get_sample_data("goog.npz") as file:
    prices = file["price_data"]
dates = prices["date"][1:]
returns = np.diff(np.log(prices["adj_close"]))[:, None]
returns[700:710] = np.nan

# %%
# Runs of a grid share their random numbers, and quasi-Monte Carlo has little noise: the
# scores are comparable with few particles.
search = GridSearchCV(
    ClusteredParticleFilter(
        StochasticVolatility(), method="sqmc", n_particles=256, random_state=0
    ),
    {
        "model__phi": [0.0, 0.5, 0.8, 0.9, 0.95, 0.99],
        "model__sigma": [0.1, 0.2, 0.4, 0.8],
        "model__beta": [0.015, 0.02, 0.025],
    },
    cv=TimeSeriesSplit(4),
)
search.fit(returns)
constant = np.nanstd(returns)
gaussian = -0.5 * np.log(2 * np.pi * constant**2 * np.e)
print("chosen:", search.best_params_)
print(f"log density of a day: {search.best_score_:.3f}; of one Gaussian {gaussian:.3f}")

# %%
# The standard deviation of a return is `beta * exp(state / 2)`.
best = search.best_estimator_.set_params(n_particles=2048)
beta = best.model.beta
options = {
    "times": dates,
    "function": lambda state: 100 * beta * np.exp(state / 2),
}
figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
axis.plot(dates, 100 * np.abs(returns), ".", ms=3, color="0.6", label="|return|")
FilterDisplay.from_estimator(best, returns, smooth=False, n_stds=0, ax=axis, **options)
FilterDisplay.from_estimator(best, returns, ax=axis, **options)
axis.set(xlabel="", ylabel="standard deviation of a day, %", ylim=(0, 9))
axis.legend()
plt.show()
