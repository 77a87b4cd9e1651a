"""
A million rows, a few thousand at a time: TemperedVBGaussianMixture
===================================================================

``partial_fit`` divides the stream into blocks of its own, whatever the calls. It keeps
a window of rows, and the statistics of all earlier rows. The bound is that of all rows
read.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture

K, n_rows, call = 6, 1_000_000, 20_000
X, _ = make_mixture(
    n_samples=n_rows, n_components=K, n_features=3, separation=4, random_state=0
)
test, X = X[:20_000], X[20_000:]
stream = TemperedVBGaussianMixture(K, random_state=0)
seen, scores, start = [], [], time.perf_counter()
for first in range(0, len(X), call):
    stream.partial_fit(X[first : first + call])
    seen.append(stream.n_samples_seen_)
    scores.append(stream.score(test))
print(f"{seen[-1]:,} rows in {time.perf_counter() - start:.0f} s, scores included")

# %%
# Batch fits of the first rows, for comparison. The stream is as good as a fit of all
# rows read, and keeps only the number of rows printed here.

kept = len(stream._stream.window) + len(stream._stream.pending)
print(f"raw rows kept: {kept:,}, state: {stream.statistics_.size} numbers")
sizes = np.geomspace(1000, len(X), 6).astype(int)
batch = [
    TemperedVBGaussianMixture(K, random_state=0).fit(X[:n]).score(test) for n in sizes
]
plt.semilogx(seen, scores, label="stream, one pass")
plt.semilogx(sizes, batch, "o", label="batch fits")
plt.xlabel("rows")
plt.ylabel("log-density of new rows, nats")
plt.title("one pass over the rows, and fits of all rows so far")
plt.legend()
plt.show()
