"""
===============================================================
Detect a fault on a stream that drifts: PACOClusterer
===============================================================

Two sensors of a pump see three modes of operation. The sensors drift by half a standard
deviation every 200 rows. One mode ends, and later a new mode appears: a fault.
:class:`~skpacbayes.cluster.PACOClusterer` with ``forgetting="auto"`` follows the drift.
The signal to stop is a rise in the number of clusters.
"""

# %%
# The stream
# ----------
# Nothing in the stream says where the groups are, how fast they move, or when one
# appears or ends.

import matplotlib.pyplot as plt
import numpy as np

from skpacbayes import PACOClusterer, StreamDisplay

rng = np.random.default_rng(0)
places = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [10.0, 10.0]])
given_up, fault, n_rows = 600, 1100, 1300
group = rng.integers(3, size=n_rows)
group[given_up:] = rng.integers(2, size=n_rows - given_up)
faulty = rng.random(n_rows - fault) < 0.3
group[fault:][faulty] = 3
drift = 0.5 * np.arange(n_rows)[:, None] / 200 * [1.0, 0.6]
X = places[group] + drift + rng.normal(size=(n_rows, 2))

# %%
# With and without forgetting
# ---------------------------
# One clusterer chooses its rate of forgetting by the forecasts of recent rows, the
# other never forgets. Both learn ten rows at a time.

readers = {
    'forgetting="auto"': PACOClusterer(forgetting="auto", n_iter=100, random_state=0),
    "forgetting=0.0": PACOClusterer(n_iter=100, random_state=0),
}
seen = np.arange(10, n_rows + 1, 10)
found = {name: [] for name in readers}
for stop in seen:
    for name, reader in readers.items():
        reader.partial_fit(X[stop - 10 : stop])
        found[name].append(reader.n_clusters_)

active = np.where(seen <= given_up, 3, np.where(seen <= fault, 2, 3))
settled = (seen > 100) & ((seen - given_up) % n_rows > 100)
settled &= (seen - fault) % n_rows > 100
for name, numbers in found.items():
    share = np.mean(np.array(numbers)[settled] == active[settled])
    print(f"{name}: right in {share:.0%} of the rows, 100 rows after a change")

# %%
# The decision
# ------------
# After the first 200 rows, the pump is stopped when the number of clusters has been
# larger, twice in a row, than in the 100 rows before. The clusterer that forgets drops
# the mode that has ended, and detects the fault within a few dozen rows. The other one
# still counts the mode that has ended.

for name, numbers in found.items():
    more = [
        t
        for t in range(20, len(seen))
        if min(numbers[t - 1 : t + 1]) > max(numbers[t - 11 : t - 1])
    ]
    alarms = [int(seen[t]) for t in more]
    print(f"{name}: the number of clusters rises at rows {alarms}; fault at {fault}")

figure, (rows, curve) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
rows.scatter(*X.T, c=np.arange(n_rows), cmap="viridis", s=4)
for marker, (name, reader) in zip("xo", readers.items(), strict=True):
    options = {"facecolors": "none"} if marker == "o" else {}
    color = {"edgecolors": "tab:red"} if marker == "o" else {"color": "black"}
    centers = reader.cluster_centers_
    rows.scatter(*centers.T, marker=marker, s=80, label=name, **options, **color)
rows.set(title="rows, dark to light; the last centres")
rows.legend()
curve.step(seen, active, where="post", color="0.6", label="groups")
for name, numbers in found.items():
    StreamDisplay(seen, numbers).plot(label=name, ax=curve)
curve.set(title="number of clusters", ylim=(0, None))
curve.legend()
plt.show()
