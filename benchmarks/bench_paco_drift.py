"""PACOClusterer on streams that drift: how often the number of clusters is right.

Four kinds of streams of Gaussian groups, 2 to 5 features, 3 to 6 groups, each 6
standard deviations or more from the others, in a unit between 1e-2 and 1e2: groups that
move by half a standard deviation every 200 rows; groups that leave, one every 400 rows;
all groups at other places every 500 rows; and no change at all. The number of clusters
is read every 50 rows, but not within 100 rows of a change, and compared with the number
of groups that are active. Nothing about the scale of the data is given to a method.
"""

import numpy as np
from _harness import Report, arguments, cpu_seconds
from _paco_peers import DBStream, DenStream, Standardised, kmeans_path, silhouette

from skpacbayes.cluster import PACOClusterer

EVERY, PAUSE = 50, 100
KINDS = {"moves": 200, "leaves": 400, "jumps": 500, "no change": 10_000}


class Ours:
    """PACOClusterer with a rate of forgetting."""

    def __init__(self, seed, forgetting):
        self.model = PACOClusterer(random_state=seed, forgetting=forgetting)

    def learn_block(self, X):
        """Update with rows; return the number of clusters."""
        return self.model.partial_fit(X).n_clusters_


class Window:
    """k-means of the last rows, their number by the silhouette."""

    def __init__(self, seed, size=200):
        self.seed, self.size, self.rows = seed, size, None

    def learn_block(self, X):
        """Update with rows; return the number of clusters."""
        rows = X if self.rows is None else np.vstack([self.rows, X])
        self.rows = rows[-self.size :]
        path = kmeans_path(self.rows, self.seed, 10, 2)
        return silhouette(self.rows, self.seed, path)


class RowByRow:
    """A peer that learns one row at a time."""

    def __init__(self, peer):
        self.peer = Standardised(peer)

    def learn_block(self, X):
        """Update with rows; return the number of clusters."""
        for row in X:
            self.peer.learn(row)
        return self.peer.n_clusters


METHODS = {
    "PACOClusterer": lambda seed: Ours(seed, 0.0),
    'same, forgetting="auto"': lambda seed: Ours(seed, "auto"),
    "same, forgetting=0.01": lambda seed: Ours(seed, 0.01),
    "KMeans + silhouette, 200 rows": Window,
    "DBSTREAM 1.0, standardised": lambda seed: RowByRow(DBStream(1.0)),
    "DenStream, standardised": lambda seed: RowByRow(DenStream()),
}


def drifting(kind, length, rng):
    """Draw rows, the number of active groups at each, and the positions of changes."""
    n_features, n_groups = rng.integers(2, 6), rng.integers(3, 7)
    places = _places(rng, n_features, n_groups)
    active = np.ones(n_groups, dtype=bool)
    X, n_active, changes = np.empty((length, n_features)), np.empty(length, int), []
    for t in range(length):
        if t and t % KINDS[kind] == 0:
            changes.append(t)
            if kind == "moves":
                steps = rng.normal(size=places.shape)
                places += 0.5 * steps / np.linalg.norm(steps, axis=1, keepdims=True)
            elif kind == "jumps":
                places = _places(rng, n_features, rng.integers(3, 7))
                active = np.ones(len(places), dtype=bool)
            elif active.sum() > 2:
                active[rng.choice(np.flatnonzero(active))] = False
        group = rng.choice(np.flatnonzero(active))
        X[t] = places[group] + rng.normal(size=n_features)
        n_active[t] = active.sum()
    return 10 ** rng.uniform(-2, 2) * X, n_active, changes


def _places(rng, n_features, n_groups):
    """Places that are 6 apart or more."""
    places = np.empty((0, n_features))
    while len(places) < n_groups:
        place = rng.normal(size=(1, n_features)) * (4 + len(places))
        if (np.linalg.norm(places - place, axis=1) >= 6).all():
            places = np.vstack([places, place])
    return places


def main():
    options = arguments(__doc__)
    report = Report("paco_drift", quick=options.quick)
    n_streams, length = (1, 800) if options.quick else (2, 1600)
    right = {name: {} for name in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for k, kind in enumerate(KINDS):
        for seed in range(n_streams):
            X, n_active, changes = drifting(
                kind, length, np.random.default_rng([k, seed])
            )
            methods = {name: start(seed) for name, start in METHODS.items()}
            for stop in range(EVERY, length + 1, EVERY):
                rows = X[stop - EVERY : stop]
                judged = all(not 0 <= stop - 1 - t < PAUSE for t in (0, *changes))
                for name, method in methods.items():
                    found = []
                    seconds[name] += cpu_seconds(
                        lambda method=method, found=found, rows=rows: found.append(
                            method.learn_block(rows)
                        )
                    )
                    if judged:
                        correct = found[0] == n_active[stop - 1]
                        right[name].setdefault(kind, []).append(correct)
    n_rows = length * n_streams * len(KINDS)
    rows = [
        [
            name,
            *(f"{100 * np.mean(right[name][kind]):.0f}" for kind in KINDS),
            f"{1e3 * seconds[name] / n_rows:.2f}",
        ]
        for name in METHODS
    ]
    report.table(
        f"{n_streams} streams of {length} rows of each kind: percent right, {PAUSE} "
        "rows or more after a change",
        ["method", *KINDS, "ms a row"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
