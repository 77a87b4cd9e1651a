"""
Write a model of your own for ClusteredParticleFilter, compiled or not
======================================================================

A model has three functions, each for all particles at once, and the number of normals
that each particle needs. Here a population of fish grows by Ricker's model and is
counted with Poisson noise: the model is neither linear nor Gaussian. Numba may compile
the functions. The same model works with the bootstrap filter and with quasi-Monte
Carlo.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from numba import njit
from scipy.special import gammaln
from sklearn.base import BaseEstimator

from skpacbayes import ClusteredParticleFilter, FilterDisplay


class Ricker(BaseEstimator):
    """A population that overshoots: ``n' = n exp(growth - n + noise)``, in thousands.

    The state is its logarithm; X counts one in ten fish.
    """

    n_noise = 1

    def __init__(self, growth=2.5, noise=0.3):
        self.growth = growth
        self.noise = noise

    def initial(self, z):
        """Start near a thousand fish."""
        return 0.5 * z

    def transition(self, x, z, t):
        """Grow, and starve when there are many."""
        return x + self.growth - np.exp(x) + self.noise * z

    def log_likelihood(self, x, y, t):
        """Count one fish in ten."""
        log_rate = x[:, 0] + np.log(100)
        return y[0] * log_rate - np.exp(log_rate) - gammaln(y[0] + 1)


@njit
def overshoot(x, z, growth, noise):
    moved = np.empty_like(x)
    for i in range(len(x)):
        moved[i, 0] = x[i, 0] + growth - np.exp(x[i, 0]) + noise * z[i, 0]
    return moved


class CompiledRicker(Ricker):
    """The same, its dynamics compiled."""

    def transition(self, x, z, t):
        """Grow, and starve when there are many."""
        return overshoot(x, z, self.growth, self.noise)


# %%
# Sixty years, ten of them without a count. `initial` and `transition` also simulate.
rng = np.random.default_rng(0)
truth = Ricker()
states = [truth.initial(rng.normal(size=(1, 1)))]
for year in range(1, 60):
    states.append(truth.transition(states[-1], rng.normal(size=(1, 1)), year))
states = np.array(states)[:, 0]
X = rng.poisson(100 * np.exp(states)).astype(float)
X[30:40] = np.nan

# %%
for model in (Ricker(), CompiledRicker()):
    for method in ("bootstrap", "sqmc"):
        tracker = ClusteredParticleFilter(
            model, method=method, n_particles=1024, random_state=0
        ).fit(X)
        start = time.process_time()
        tracker.fit(X)
        spent = 1e6 * (time.process_time() - start) / len(X)
        print(
            f"{type(model).__name__:15} {method:10} {spent:4.0f} us a year, "
            f"log-likelihood {tracker.log_likelihood_:.2f}"
        )

# %%
# The model has no transition density, so the smoother traces the ancestors of the last
# particles. A method `log_transition` would make smoothing more accurate.
figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
FilterDisplay.from_estimator(tracker, X, function=np.exp, ax=axis)
axis.plot(np.exp(states), "k:", label="truth")
axis.plot(X / 100, "r.", label="counts")
axis.set(xlabel="year", ylabel="thousands of fish", ylim=(0, 8))
axis.set_title("the state given all counts, with ten years missing")
axis.legend()
plt.show()
