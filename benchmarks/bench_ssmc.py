"""Starts of k-means: SSMCKMeansInit against random rows and k-means++.

Table 1 of Fan and Heller, repeated; then the inertia after Lloyd's iterations from
each start, and the time of the start, against scikit-learn's k-means++ with its
trials ("greedy", the default of KMeans) and without ("plain").
"""

import numpy as np
from _harness import Report, arguments, interleaved, median_ratio
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_sample_image,
    load_wine,
)
from sklearn.preprocessing import scale

from skpacbayes.cluster import SSMCKMeansInit

TABLE_1 = np.array([(0.7, 3.5), (1.0, 1.5), (2.7, 1.0), (5.0, 3.5)])


def plain(X, n_clusters, random_state):
    """k-means++ as published: one candidate a centre."""
    seeded = kmeans_plusplus(X, n_clusters, n_local_trials=1, random_state=random_state)
    return seeded[0]


def lloyd(X, n_clusters, init, seed):
    return KMeans(n_clusters, init=init, n_init=1, random_state=seed).fit(X)


def failures(report, quick):
    """Table of how often each start of the paper's four groups ends badly."""
    n_repeats = 50 if quick else 1000
    hundred = {"n_particles": 100, "n_moves": 0}
    starts = {
        "random rows": "random",
        "k-means++, plain": plain,
        "k-means++, greedy": "k-means++",
        "SSMC, 100 uniform tuples (the paper's)": SSMCKMeansInit(
            proposal="data", **hundred
        ),
        "SSMC, 100 uniform tuples, batches of 10": SSMCKMeansInit(
            proposal="data", batch_size=10, **hundred
        ),
        "SSMC, 128 Sobol tuples": SSMCKMeansInit(
            n_particles=128, n_moves=0, proposal="sobol"
        ),
        "SSMC, 30 D^2 tuples": SSMCKMeansInit(n_particles=30, n_moves=0),
        "SSMC, default: one D^2 tuple, 100 moves": SSMCKMeansInit(),
    }
    failed = dict.fromkeys(starts, 0)
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        rows = np.repeat(TABLE_1, 100, axis=0)
        X = rows + np.sqrt(0.1) * rng.normal(size=rows.shape)
        found = {
            name: lloyd(X, 4, init, seed).inertia_ for name, init in starts.items()
        }
        best = min(lloyd(X, 4, TABLE_1, seed).inertia_, *found.values())
        for name, inertia in found.items():
            failed[name] += inertia > 1.05 * best
    report.table(
        f"Final inertia more than 5 % above the best, {n_repeats} repeats of Table 1",
        ["start", "failures, %", "standard error"],
        [
            [name, f"{100 * p:.1f}", f"{100 * np.sqrt(p * (1 - p) / n_repeats):.1f}"]
            for name, p in ((name, f / n_repeats) for name, f in failed.items())
        ],
    )


def groups(n_groups, n_features, seed, unbalanced=False, unequal=False):
    """Gaussian groups about uniform means, 60 rows for each group; and the means."""
    rng = np.random.default_rng([n_groups, n_features, seed])
    means = rng.uniform(-10, 10, size=(n_groups, n_features))
    shares = 1 / np.arange(1, n_groups + 1) if unbalanced else np.ones(n_groups)
    y = rng.choice(n_groups, 60 * n_groups, p=shares / shares.sum())
    spreads = rng.uniform(0.3, 2.0, n_groups) if unequal else np.ones(n_groups)
    noise = spreads[y, None] * rng.normal(size=(len(y), n_features))
    return means[y] + noise, means


def data_sets():
    """Name, number of clusters, and pairs of rows and good means or None."""
    for k in (10, 20, 50):
        for d in (2, 5, 20):
            yield f"groups, d={d}", k, [groups(k, d, seed) for seed in range(3)]
    sets = [groups(20, 2, seed, unbalanced=True) for seed in range(3)]
    yield "unbalanced groups, d=2", 20, sets
    sets = [groups(50, 5, seed, unbalanced=True, unequal=True) for seed in range(3)]
    yield "unbalanced, unequal groups, d=5", 50, sets
    digits = [(load_digits().data, None)]
    yield "digits", 10, digits
    yield "digits", 30, digits
    colours = load_sample_image("china.jpg").reshape(-1, 3) / 255
    colours = np.random.default_rng(0).permutation(colours)[:5000]
    yield "colours of china.jpg", 16, [(colours, None)]
    yield "colours of china.jpg", 64, [(colours, None)]
    yield "wine, standardised", 3, [(scale(load_wine().data), None)]
    cancer = scale(load_breast_cancer().data)
    yield "breast cancer, standardised", 8, [(cancer, None)]


def large_sets():
    """Tables of 20,000 rows, the last without structure."""
    for k, d in ((50, 20), (100, 2)):
        rng = np.random.default_rng(k)
        means = rng.uniform(-10, 10, size=(k, d))
        X = means[rng.integers(k, size=20_000)] + rng.normal(size=(20_000, d))
        yield f"groups, d={d}", k, [(X, means)]
    X = np.random.default_rng(0).normal(size=(20_000, 50))
    yield "one Gaussian, d=50", 50, [(X, None)]


STARTS = {"plain": plain, "greedy": "k-means++", "SSMC": SSMCKMeansInit()}


def row_of(name, k, sets, n_runs, n_turns):
    """Excess of each start over the best known, and the times of two starts."""
    excess, steps = {start: [] for start in STARTS}, {start: [] for start in STARTS}
    for X, means in sets:
        fits = {
            start: [lloyd(X, k, init, seed) for seed in range(n_runs // len(sets))]
            for start, init in STARTS.items()
        }
        inertias = {s: np.array([fit.inertia_ for fit in f]) for s, f in fits.items()}
        best = min(found.min() for found in inertias.values())
        if means is not None:
            best = min(best, lloyd(X, k, means, 0).inertia_)
        for start, found in inertias.items():
            excess[start] += list(100 * (found / best - 1))
            steps[start] += [fit.n_iter_ for fit in fits[start]]
    X, seeds = sets[0][0], iter(range(10**6))
    seconds = interleaved(
        {
            "greedy": lambda: kmeans_plusplus(X, k, random_state=next(seeds)),
            "SSMC": lambda: STARTS["SSMC"](X, k, next(seeds)),
        },
        n_turns,
        n_warm_up=2,
    )
    gain = np.array(excess["greedy"]) - excess["SSMC"]
    return [
        name,
        k,
        len(X),
        *(f"{np.mean(excess[start]):.2f}" for start in STARTS),
        f"{gain.mean():.2f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.2f}",
        f"{np.mean(steps['SSMC']) / np.mean(steps['greedy']):.2f}",
        f"{1e3 * np.median(seconds['SSMC']):.2f}",
        f"{median_ratio(seconds, 'SSMC', 'greedy'):.2f}",
    ]


COLUMNS = [
    "data",
    "k",
    "rows",
    "plain, %",
    "greedy, %",
    "SSMC, %",
    "greedy - SSMC",
    "Lloyd steps, SSMC / greedy",
    "start, ms",
    "start, SSMC / greedy",
]


def main():
    options = arguments(__doc__)
    report = Report("ssmc", quick=options.quick)
    n_runs, n_turns = (3, 5) if options.quick else (48, 25)
    sets = list(data_sets())[:: 4 if options.quick else 1]
    report.table(
        "Final inertia above the best known, in percent: mean of "
        f"{n_runs} runs (three tables where simulated); CPU time of the start, "
        f"median of {n_turns} turns",
        COLUMNS,
        [row_of(*data, n_runs, n_turns) for data in sets],
    )
    n_runs, n_turns = (2, 3) if options.quick else (24, 15)
    report.table(
        f"The same on 20,000 rows, {n_runs} runs",
        COLUMNS,
        [row_of(*data, n_runs, n_turns) for data in large_sets()],
    )
    failures(report, options.quick)
    report.save()


if __name__ == "__main__":
    main()
