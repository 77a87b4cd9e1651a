"""
Keep eight modes with ClusteredParticleFilter
=============================================

A point walks through space, and only the absolute values of its three coordinates are
observed. So eight positions fit equally well at all times. The plain particle filter
loses them one after the other, because resampling is random. With `conservation=1`, the
method of [1]_, every cluster of particles keeps its number of particles, and no mode is
lost. But the weights of the modes are still wrong: see the right panel.

.. [1] K. Fan and K. Heller, "k-means: fighting against
   degeneracy in sequential Monte Carlo with an application to tracking", 2018.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from skpacbayes.filtering import ClusteredParticleFilter


class Folded(BaseEstimator):
    """A walk in space, seen through absolute values."""

    n_noise = 3

    def initial(self, z):
        """Start around the origin."""
        return 3 * z

    def transition(self, x, z, t):
        """Take a small step."""
        return x + 0.1 * z

    def log_likelihood(self, x, y, t):
        """See absolute values, with noise."""
        return -0.5 * np.square(np.abs(x) - y).sum(axis=1)


# %%
# Ten walks of 200 steps, 500 particles.
settings = {
    "plain": {"n_clusters": None},
    "conservation=0.5, the default": {"conservation": 0.5},
    "conservation=1": {"conservation": 1.0},
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, parameters), style in zip(settings.items(), ["-", "--", ":"], strict=True):
    alive, distances = np.zeros((2, 200))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        path = 3 + np.cumsum(0.1 * rng.normal(size=(200, 3)), axis=0)
        X = np.abs(path) + rng.normal(size=path.shape)
        tracker = ClusteredParticleFilter(
            Folded(), n_particles=500, random_state=seed, **parameters
        )
        for t, row in enumerate(X):
            tracker.partial_fit(row[None])
            modes = (tracker.particles_ > 0) @ [1, 2, 4]
            masses = np.bincount(modes, tracker.weights_, 8)
            alive[t] += np.sum(masses > 0) / 10
            distances[t] += 0.5 * np.abs(masses - 1 / 8).sum() / 10
    axes[0].plot(alive, style, label=name)
    axes[1].plot(distances, style, label=name)
    print(f"{name:30} {alive[-1]:.1f} of 8 at the end, distance {distances[-1]:.2f}")
axes[0].set(xlabel="row", ylabel="modes that have particles", ylim=(0, 8.3))
axes[1].set(xlabel="row", ylabel="total variation from equal weights", ylim=(0, 1))
axes[0].legend()
figure.suptitle("Eight modes of equal weight: which survive, and how evenly")
plt.show()
