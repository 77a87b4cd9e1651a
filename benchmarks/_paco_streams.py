"""Streams whose number of groups grows, beside Model 6 of the paper; their readers.

Two families, 200 rows each, drawn fresh for every stream: 2 to 10 features, 2 to 8
groups, standard deviations that differ by up to a factor of 5, each mean at 4 to 8
times the larger deviation of its nearest other group, and a unit between 1e-3 and 1e3.
A method that needs to know the scale of its data cannot do well on them. `mixed_groups`
is a table of such groups. `followers` are the methods that read streams row by row.
"""

import time

import numpy as np
from _paco_peers import REFITTED, STREAMING, Refitted

from skpacbayes.cluster import PACOClusterer

LENGTH = 200
SHORTEST_RUN = 10  # rows of the shortest group of `successive_groups`


def active_groups(rng, length=LENGTH):
    """Family A: groups born at random times and active ever after, in random order.

    Returns X of shape (length, n_features), and y, the group of each row.
    """
    means, deviations, unit = _geometry(rng)
    n_groups = len(means)
    births = rng.choice(np.arange(1, int(0.8 * length)), n_groups - 1, replace=False)
    births = np.concatenate([[0], np.sort(births)])
    y = np.empty(length, dtype=int)
    for t in range(length):
        alive = np.searchsorted(births, t, side="right")
        y[t] = alive - 1 if t in births else rng.integers(alive)
    noise = rng.standard_normal((length, means.shape[1]))
    return unit * (means[y] + deviations[y, None] * noise), y


def successive_groups(rng, length=LENGTH):
    """Family B: one group at a time, of random length, shape and drift.

    The shape is Gaussian, uniform or Laplace; the mean moves in a random direction by
    half a standard deviation every 50 rows. Returns X and y as `active_groups`.
    """
    means, deviations, unit = _geometry(rng)
    n_groups, n_features = means.shape
    spare = length - n_groups * SHORTEST_RUN
    cuts = np.sort(rng.integers(0, spare + 1, size=n_groups - 1))
    lengths = SHORTEST_RUN + np.diff(np.concatenate([[0], cuts, [spare]]))
    rows = []
    for mean, deviation, run in zip(means, deviations, lengths, strict=True):
        noise = _SHAPES[rng.integers(len(_SHAPES))](rng, (run, n_features))
        direction = _direction(rng, n_features)
        drift = 0.5 / 50 * np.arange(run)[:, None] * direction
        rows.append(mean + deviation * (noise + drift))
    return unit * np.concatenate(rows), np.repeat(np.arange(n_groups), lengths)


def mixed_groups(rng, length, *, largest_ratio, fewest):
    """Draw groups in random order, whose standard deviations differ by up to a ratio.

    The groups' shares are uniform on the simplex, with at least `fewest` rows expected
    of each; None for equal shares. Returns X and y as `active_groups`.
    """
    means, deviations, unit = _geometry(rng, largest_ratio)
    shares = np.ones(len(means))
    if fewest is not None:
        shares = np.maximum(rng.dirichlet(shares), fewest / length)
    y = rng.choice(len(means), size=length, p=shares / shares.sum())
    noise = rng.standard_normal((length, means.shape[1]))
    return unit * (means[y] + deviations[y, None] * noise), y


def n_groups_seen(y):
    """Return the number of groups among y[:t], for t = 1, ..., len(y)."""
    first = np.zeros(len(y), dtype=int)
    first[np.unique(y, return_index=True)[1]] = 1
    return np.cumsum(first)


_SHAPES = (  # of unit variance
    lambda rng, shape: rng.standard_normal(shape),
    lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
    lambda rng, shape: rng.laplace(scale=np.sqrt(0.5), size=shape),
)


def _geometry(rng, largest_ratio=5):
    """Means, standard deviations and the unit of one stream."""
    n_features, n_groups = rng.integers(2, 11), rng.integers(2, 9)
    deviations = largest_ratio ** rng.uniform(size=n_groups)
    means = np.zeros((1, n_features))
    while len(means) < n_groups:  # put the next mean beside one that is there
        larger = np.maximum(deviations[: len(means)], deviations[len(means)])
        neighbour, separation = rng.integers(len(means)), rng.uniform(4, 8)
        step = separation * larger[neighbour] * _direction(rng, n_features)
        mean = means[neighbour] + step
        distances = np.linalg.norm(means - mean, axis=1)
        distances[neighbour] = np.inf
        if (distances >= 4 * larger).all():
            means = np.vstack([means, mean])
    return means, deviations, 10 ** rng.uniform(-3, 3)


def _direction(rng, n_features):
    vector = rng.standard_normal(n_features)
    return vector / np.linalg.norm(vector)


class Paco:
    """PACOClusterer read row by row."""

    def __init__(self, seed, **parameters):
        self.model = PACOClusterer(random_state=seed, **parameters)
        self.n_clusters = 1

    def learn(self, row):
        """Update with one row."""
        self.model.partial_fit(row[None])
        self.n_clusters = self.model.n_clusters_


def followers(seed, every, ours):
    """Every method, ours first; batch peers are refitted at every `every`-th row.

    `ours`: parameters of `PACOClusterer`, by name.
    """
    ours = {name: Paco(seed, **parameters) for name, parameters in ours.items()}
    refitted = {
        name: Refitted(choose, seed, every) for name, choose in REFITTED.items()
    }
    return ours | refitted | {name: start() for name, start in STREAMING.items()}


def follow(method, X):
    """Read the number of clusters before and after each row, and the CPU seconds."""
    before, after = np.empty((2, len(X)), dtype=int)
    start = time.process_time()
    for t, row in enumerate(X):
        before[t] = method.n_clusters
        method.learn(row)
        after[t] = method.n_clusters
    return before, after, time.process_time() - start
