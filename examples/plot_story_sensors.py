"""
A sensor that drifts: when to send a crew, with OnlineVIRegressor
=================================================================

A sensor in a water main reports the flow every hour. The two months of real readings
ship with river (``pip install river``). The flow depends on the hour of the day, and
drifts upwards. Four events require a crew. The operator wants an alarm for these four,
and for nothing else.
"""

# %%
# The model predicts each reading from the hour of the day, with a standard deviation.
# There is an alarm if the reading is more than five standard deviations away. Such
# readings are not learnt. One model does not forget, the other learns its rate of
# forgetting from the stream.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from river.datasets import WaterFlow

from skpacbayes import OnlineVIRegressor

# The model that forgets nothing warns that the stream changes; we want to see how much.
warnings.filterwarnings("ignore", message="The errors of recent rows")

DEVIATIONS, FIRST = 5, 48  # the first two days are learnt without an alarm
readings = list(WaterFlow())
hours = [row["Time"].hour for row, _ in readings]
flow = np.array([value for _, value in readings])
angle = 2 * np.pi * np.array(hours) / 24
X = np.column_stack([f(k * angle) for k in (1, 2) for f in (np.sin, np.cos)])


def watch(model):
    """Predictions, their deviations, and hours that ring."""
    model.partial_fit(X[:FIRST], flow[:FIRST])
    means, deviations = np.full((2, len(flow)), np.nan)
    rings = np.zeros(len(flow), dtype=bool)
    for t in range(FIRST, len(flow)):
        row, reading = X[t : t + 1], flow[t : t + 1]
        (means[t],), (deviations[t],) = model.predict(row, return_std=True)
        rings[t] = abs(flow[t] - means[t]) > DEVIATIONS * deviations[t]
        if not rings[t]:
            model.partial_fit(row, reading)
    return means, deviations, rings


def spells(rings, apart=24):
    """First and last hour of each spell of alarms, at least a day from the next."""
    found = np.flatnonzero(rings)
    cuts = np.flatnonzero(np.diff(found) > apart) + 1
    return [(int(spell[0]), int(spell[-1])) for spell in np.split(found, cuts)]


watched = {
    "remembers all": watch(OnlineVIRegressor(random_state=0)),
    "learns how fast to forget": watch(
        OnlineVIRegressor(forgetting="auto", random_state=0)
    ),
}
for name, (means, deviations, rings) in watched.items():
    quiet = ~rings & ~np.isnan(means)
    error = abs(flow - means)[quiet].mean()
    width = deviations[quiet].mean()
    print(f"{name}: mean error {error:.2f} l/s, mean deviation {width:.2f} l/s")
    print(
        f"  {rings.sum()} hours ring, in {len(spells(rings))} spells: {spells(rings)}"
    )

# %%
# Both models find the four events: three times the water is shut off or lost, once a
# pump sends more. The model that forgets follows the drift, so its band is narrower.

figure, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained", sharex=True)
for ax, (name, (means, deviations, rings)) in zip(axes, watched.items(), strict=True):
    time = np.arange(len(flow))
    low, high = means - DEVIATIONS * deviations, means + DEVIATIONS * deviations
    ax.fill_between(time, low, high, color="0.85", label="no alarm within")
    ax.plot(time, flow, linewidth=0.8, label="reading")
    ax.plot(time[rings], flow[rings], "v", color="C1", markersize=5, label="alarm")
    ax.set(title=name, ylabel="flow [l/s]", ylim=(90, 112))
axes[0].legend(loc="lower center")
axes[1].set_xlabel("hour")
plt.show()

# %%
# **The decision.** Send a crew at the first hour of each alarm, and let the model
# forget: without forgetting the errors are twice as large, because the level drifts.
# The shut-offs go down to 24 l/s, below the edge of the picture.
