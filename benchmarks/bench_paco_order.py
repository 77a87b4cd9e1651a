"""PACOClusterer on streams beside the same rows in a batch: in random order, by label.

The round and noisy tables of `_paco_tables.py`, without noise and with 1, 5 and 10 %
of uniform noise. Streams are read in blocks of 100 rows. By label, all rows of a group
come before the next group, and noise comes at random places. ARI: adjusted Rand index
of all rows that are not noise, by `predict` after the last row.
"""

import warnings
from functools import partial

import numpy as np
from _harness import Report, arguments
from _paco_tables import all_tables, noisy
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer

BLOCK = 100
NOISE = (0.0, 0.01, 0.05, 0.1)
SEEDS = (0, 1)
# Largest loss of ARI by a stream, against the batch.
BARS = {"random order": 0.03, "by label": 0.10}
QUICK = {"15 groups", "grid of 4"}


def tables(quick):
    """Return the round tables with each share of noise, and grids with noise."""
    groups = all_tables()
    bases = {
        **groups["round"],
        "grid of 9": groups["noisy"]["grid of 9, 1 % noise"].args[0],
    }
    return {
        f"{name}, {share:.0%} noise": partial(noisy, table, share)
        for name, table in bases.items()
        for share in NOISE
        if not quick or (name in QUICK and share < NOISE[2])
    }


def orders(y, rng):
    """Return the rows in random order, and by label in a random order of the groups."""
    shuffled = rng.permutation(len(y))
    ranks = rng.permutation(y.max() + 1).astype(float)
    places = ranks[y]
    places[y == 0] = rng.uniform(-1, y.max() + 1, (y == 0).sum())
    by_label = shuffled[np.argsort(places[shuffled], kind="stable")]
    return {"random order": shuffled, "by label": by_label}


def streamed(X, order):
    """Read the rows in that order."""
    model = PACOClusterer(random_state=0)
    for first in range(0, len(X), BLOCK):
        model.partial_fit(X[order[first : first + BLOCK]])
    return model


def result(model, X, y):
    """Return the number of clusters and the ARI."""
    known = y > 0
    ari = adjusted_rand_score(y[known], model.predict(X[known]))
    return model.n_clusters_, float(ari)


def measured(table, seed):
    """Return the true number, and the results of a batch and of each stream."""
    X, y = table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = {"batch": result(PACOClusterer(random_state=0).fit(X), X, y)}
        for name, order in orders(y, np.random.default_rng(seed)).items():
            results[name] = result(streamed(X, order), X, y)
    return {"true": len(np.unique(y[y > 0])), **results}


def main():
    options = arguments(__doc__)
    report = Report("paco_order", quick=options.quick)
    rows, losses = [], {name: [] for name in BARS}
    for seed in SEEDS[: 1 if options.quick else None]:
        for name, table in tables(options.quick).items():
            found = report.stage(f"{name}, {seed}", partial(measured, table, seed))
            true = found.pop("true")
            cells = [f"{k} ({ari:.2f})" for k, ari in found.values()]
            rows.append([name, seed, true, *cells])
            print(*rows[-1], sep=" | ", flush=True)
            for order, lost in losses.items():
                lost.append(found["batch"][1] - found[order][1])
    report.table(
        "Number of clusters (ARI)",
        ["table", "seed", "true", "batch", *BARS],
        rows,
    )
    report.table(
        "ARI of a batch less ARI of a stream",
        ["order", "tables", "mean", "largest", "bar", "above the bar"],
        [
            [
                order,
                len(lost),
                f"{np.mean(lost):.3f}",
                f"{np.max(lost):.3f}",
                BARS[order],
                sum(value > BARS[order] for value in lost),
            ]
            for order, lost in losses.items()
        ],
    )
    report.save()


if __name__ == "__main__":
    main()
