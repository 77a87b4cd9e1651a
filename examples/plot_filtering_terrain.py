"""
Where is this flight? Terrain navigation with ClusteredParticleFilter
=====================================================================

A flight over a known map measures its height above the ground and its own velocity. It
does not know where it started. Many paths fit the first measurements, and later
measurements exclude one path after the other. If a particle filter loses the true path
early, it does not find it again.

The map is a real elevation model of the Jacksboro fault in Tennessee, which ships with
matplotlib. Resampling within clusters of particles (section 4.2 of [1]_) keeps modes
that the plain filter loses. The plain filter with four times the particles is better
still: here a particle is cheap, so more particles are the better choice.

.. [1] K. Fan and K. Heller, "k-means: fighting against
   degeneracy in sequential Monte Carlo with an application to tracking", 2018.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import ClusteredParticleFilter, ParticlesDisplay
from skpacbayes.filtering.models import TerrainNavigation

with get_sample_data("jacksboro_fault_dem.npz") as file:
    heights = gaussian_filter(file["elevation"].astype(float), 3)
size = np.array(heights.shape)
print(f"a map of {size[0]} x {size[1]} cells, {np.ptp(heights):.0f} m high")


def flight(seed, n_steps=40):
    """Fly a smooth course within the map: the model, the measurements, the path."""
    rng = np.random.default_rng(seed)
    while True:
        heading = rng.uniform(0, 2 * np.pi) + np.cumsum(0.1 * rng.normal(size=n_steps))
        velocity = 4 * np.column_stack([np.cos(heading), np.sin(heading)])
        moves = velocity + rng.normal(size=velocity.shape)
        path = rng.uniform(0, size - 1) + np.cumsum(moves, axis=0)
        if np.all((path > 0) & (path < size - 1)):
            break
    model = TerrainNavigation(heights, velocity, altitude=2000.0)
    clearance = 2000 - model.height_at(path) + 25 * rng.normal(size=n_steps)
    return model, clearance[:, None], path


filters = {
    "plain, 1,000": {"n_clusters": None},
    "clusters, 1,000": {},
    "plain, 4,000": {"n_clusters": None, "n_particles": 4000},
}

# %%
# One flight, chosen because it shows the difference: after 12 measurements no particle
# of the plain filter is near the true position. Particles are black, the true position
# is red.
model, X, path = flight(seed=24)
figure, axes = plt.subplots(
    2, 3, figsize=(11, 7), sharex=True, sharey=True, layout="constrained"
)
for (name, parameters), column in zip(filters.items(), axes.T, strict=True):
    tracker = ClusteredParticleFilter(model, random_state=0, **parameters)
    for axis, stop in zip(column, (5, 12), strict=True):
        tracker.partial_fit(X[5 * (stop > 5) : stop])
        axis.imshow(heights, cmap="terrain", origin="lower", alpha=0.6)
        ParticlesDisplay.from_estimator(tracker, states=(1, 0), ax=axis)
        axis.plot(*path[:stop, ::-1].T, color="red")
        axis.plot(*path[stop - 1, ::-1], "o", color="red", ms=9, mfc="none", mew=2)
        axis.set_title(f"{name}: {stop} measurements")
        axis.set_axis_off()
plt.show()

# %%
# A hundred flights: how often is no particle within ten cells of the true position? If
# all particles leave the map, the filter warns.
warnings.simplefilter("ignore", ConvergenceWarning)
print("no particle near the truth, in % of 100 flights:")
print(f"{'':18}" + "".join(f"{f'row {t}':>9}" for t in (5, 10, 20, 40)))
for name, parameters in filters.items():
    lost = []
    for seed in range(100):
        model, X, path = flight(seed)
        tracker = ClusteredParticleFilter(model, random_state=seed, **parameters)
        gaps = []
        for row, position in zip(X, path, strict=True):
            tracker.partial_fit(row[None])
            gaps.append(np.linalg.norm(tracker.particles_ - position, axis=1).min())
        lost.append(np.array(gaps)[[4, 9, 19, 39]] > 10)
    shown = "".join(f"{100 * share:9.0f}" for share in np.mean(lost, axis=0))
    print(f"{name:18}{shown}")
