"""PACOClusterer on streams: how often K is right, row after row.

Model 6 of Li, Guedj and Loustau (2016), two families of streams with appearing groups
of unequal spreads (`_paco_streams.py`). Each method reads every stream row by row;
nothing about the scale of the data is given to it. The right number is that of the
groups which have shown a row so far; it is compared with the number read after x_t, and
with the number read before. `bench_paco_stationary.py` has streams without change.
"""

import numpy as np
from _harness import Report, arguments
from _paco_streams import (
    active_groups,
    follow,
    followers,
    n_groups_seen,
    successive_groups,
)

from skpacbayes.datasets import make_paco_model

N_STREAMS = {"Model 6": 20, "family A": 16, "family B": 16}
FAMILIES = {
    "Model 6": lambda seed: make_paco_model(6, 200, np.random.RandomState([6, seed])),
    "family A": lambda seed: active_groups(np.random.default_rng([1, seed])),
    "family B": lambda seed: successive_groups(np.random.default_rng([2, seed])),
}


# The default keeps every row of these streams: as good as summary_size=None.
OURS = {
    "PACOClusterer": {},
    "same, summary_size=100": {"summary_size": 100},
    "same, refresh=10": {"refresh": 10},
}


def appearing(report, family, n_streams, every):
    """Tables of one family of appearing groups: the mean, and tenth by tenth."""
    results = {}
    for seed in range(n_streams):
        X, y = FAMILIES[family](seed)
        truth = n_groups_seen(y)
        for name, method in followers(seed, every, OURS).items():
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


def main():
    options = arguments(__doc__)
    report = Report("paco_stream", quick=options.quick)
    for family, n_streams in N_STREAMS.items():
        streams, every = (2, 50) if options.quick else (n_streams, 10)
        appearing(report, family, streams, every)
        report.save()


if __name__ == "__main__":
    main()
