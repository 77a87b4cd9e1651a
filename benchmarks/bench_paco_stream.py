"""PACOClusterer on streams: how often K is right, row after row.

Model 6 of Li, Guedj and Loustau (2016), two families of streams with appearing groups
of unequal spreads (`_paco_streams.py`), and stationary streams of Models 1 to 5. Each
method reads every stream row by row; nothing about the scale of the data is given to
it. The right number is that of the groups which have shown a row so far; it is
compared with the number read after x_t, and with the number read before.
"""

import time

import numpy as np
from _harness import Report, arguments
from _paco_peers import REFITTED, STREAMING, Refitted
from _paco_streams import active_groups, n_groups_seen, successive_groups

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

STATIONARY = {1: 1, 2: 4, 3: 4, 4: 7, 5: 3}
READ_AT = (100, 200, 500)
N_STREAMS = {"Model 6": 20, "family A": 12, "family B": 12}
N_STATIONARY = 6  # streams of each model
FAMILIES = {
    "Model 6": lambda seed: make_paco_model(6, 200, np.random.RandomState([6, seed])),
    "family A": lambda seed: active_groups(np.random.default_rng([1, seed])),
    "family B": lambda seed: successive_groups(np.random.default_rng([2, seed])),
}


class Paco:
    """PACOClusterer read row by row."""

    def __init__(self, seed, **parameters):
        self.model = PACOClusterer(random_state=seed, **parameters)
        self.n_clusters = 1

    def learn(self, row):
        """Update with one row."""
        self.model.partial_fit(row[None])
        self.n_clusters = self.model.n_clusters_


# The stationary streams are read by the first two.
OURS = {
    "PACOClusterer": {},
    "same, summary_size=100": {"summary_size": 100},
    "same, summary_size=None": {"summary_size": None},
    "same, refresh=10": {"refresh": 10},
}


def followers(seed, every, parameters=(), n_ours=None):
    """Every method, ours first; batch peers are refitted at every `every`-th row."""
    ours = {
        name: Paco(seed, **dict(parameters), **own)
        for name, own in list(OURS.items())[:n_ours]
    }
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


def appearing(report, family, n_streams, every):
    """Tables of one family of appearing groups: the mean, and tenth by tenth."""
    results = {}
    for seed in range(n_streams):
        X, y = FAMILIES[family](seed)
        truth = n_groups_seen(y)
        for name, method in followers(seed, every).items():
            before, after, seconds = follow(method, X)
            results.setdefault(name, []).append((before, after, truth, seconds))
    rows, intervals = [], []
    for name, runs in results.items():
        before, after, truth = (np.array([run[i] for run in runs]) for i in range(3))
        right = 100 * (after == truth)
        per_stream = right.mean(axis=1)
        milliseconds = 1e3 * np.mean([run[3] for run in runs]) / truth.shape[1]
        rows.append(
            [
                name,
                f"{right.mean():.1f} ± {_standard_error(per_stream):.1f}",
                f"{100 * (before == truth).mean():.1f}",
                f"{per_stream.min():.0f}",
                f"{np.abs(after - truth).mean():.2f}",
                f"{milliseconds:.2f}",
            ]
        )
        tenths = right.reshape(n_streams, 10, -1).mean(axis=(0, 2))
        intervals.append([name, *(f"{value:.0f}" for value in tenths)])
    report.table(
        f"{family}, {n_streams} streams of {truth.shape[1]} rows: percent of the rows "
        "with the right number of clusters (± standard error over streams); refitted: "
        f"every {every} rows",
        [
            "method",
            "after x_t",
            "before x_t",
            "worst stream",
            "mean |error|",
            "ms a row",
        ],
        rows,
    )
    report.table(
        f"{family}: percent right after x_t, by tenth of the stream",
        ["method", *(f"{tenth}" for tenth in range(1, 11))],
        intervals,
    )


def _standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def stationary(report, n_streams):
    """Table of the stationary streams, read at three times."""
    right = {}
    for m, (model, n_groups) in enumerate(STATIONARY.items()):
        for seed in range(n_streams):
            rng = np.random.RandomState([model, 500, seed])
            X, _ = make_paco_model(model, READ_AT[-1], rng)
            parameters = {"loss": "manhattan"} if model == 5 else {}
            methods = followers(seed, READ_AT[0], parameters, n_ours=2)
            for name, method in methods.items():
                after = follow(method, X)[1][np.subtract(READ_AT, 1)]
                counts = right.setdefault(name, np.zeros((len(STATIONARY), 3)))
                counts[m] += after == n_groups
    rows = []
    for name, counts in right.items():
        percent = 100 * counts / n_streams
        cells = [" ".join(f"{value:.0f}" for value in model) for model in percent]
        mean = " ".join(f"{value:.0f}" for value in percent.mean(axis=0))
        rows.append([name, *cells, mean])
    report.table(
        f"Stationary streams, {n_streams} for each model: percent right at t = "
        f"{', '.join(map(str, READ_AT))} (Model 5: manhattan for ours)",
        ["method", *(f"Model {model}" for model in STATIONARY), "mean"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("paco_stream", quick=options.quick)
    for family, n_streams in N_STREAMS.items():
        streams, every = (2, 50) if options.quick else (n_streams, 10)
        appearing(report, family, streams, every)
        report.save()
    stationary(report, 2 if options.quick else N_STATIONARY)
    report.save()


if __name__ == "__main__":
    main()
