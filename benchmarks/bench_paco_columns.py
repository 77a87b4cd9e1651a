"""Groups that differ in few of many columns: how often they are found.

Columns are standardised, as is usual, so that irrelevant columns are as wide as the
others. The peers choose the number by BIC. Nothing was chosen on these draws.

    python benchmarks/bench_paco_columns.py [--quick]
"""

import time
import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skpacbayes import PACOClusterer

N_DRAWS = 20
# Columns, columns that tell groups apart, groups, rows, least distance of two centres.
TABLES = [
    (12, 2, 3, 300, 5.0),
    (30, 2, 3, 400, 5.0),
    (30, 4, 2, 300, 4.0),
    (30, 3, 5, 800, 5.0),
    (60, 4, 4, 600, 6.0),
    (30, 2, 1, 400, 0.0),
]


def draw(n_features, n_telling, n_groups, n_rows, distance, seed):
    """Return groups that some columns tell apart, among correlated or heavy ones."""
    rng = np.random.default_rng([seed, n_features, n_groups])
    while True:
        centers = distance * rng.normal(size=(n_groups, n_telling))
        gaps = np.linalg.norm(centers[:, None] - centers, axis=2)
        if (gaps + 1e9 * np.eye(n_groups)).min() >= distance:
            break
    shares = rng.dirichlet(np.full(n_groups, 6.0))
    labels = rng.choice(n_groups, size=n_rows, p=shares)
    size = n_rows, n_features - n_telling
    others = rng.normal(size=size)
    if seed % 3 == 1:
        others = others @ (np.eye(size[1]) + 0.3 * rng.normal(size=(size[1], size[1])))
    elif seed % 3 == 2:
        others = rng.standard_t(5, size=size)
    telling = centers[labels] + rng.normal(size=(n_rows, n_telling))
    X = np.column_stack([telling, others])
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


def ours(X, n_groups):
    """Labels, and whether a warning casts doubt on their number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = PACOClusterer(random_state=0).fit(X).labels_
    return labels, bool(caught)


def by_bic(covariance_type):
    """Return a method that chooses the number of components by BIC."""

    def labels_of(X, n_groups):
        models = [
            GaussianMixture(
                k, covariance_type=covariance_type, n_init=3, random_state=0
            ).fit(X)
            for k in range(1, n_groups + 4)
        ]
        return min(models, key=lambda model: model.bic(X)).predict(X), False

    return labels_of


METHODS = {
    "PACOClusterer": ours,
    "BIC, diagonal": by_bic("diag"),
    "BIC, tied": by_bic("tied"),
}


def main():
    options = arguments(__doc__)
    report = Report("paco_columns", quick=options.quick)
    ours(np.random.default_rng(0).normal(size=(100, 3)), 1)  # to compile
    rows = []
    for table in TABLES:
        draws = [draw(*table, seed) for seed in range(2 if options.quick else N_DRAWS)]
        for name, method in METHODS.items():
            right = doubted = 0
            agreement, start = [], time.process_time()
            for X, labels in draws:
                found, warned = method(X, table[2])
                correct = len(np.unique(found)) == table[2]
                right, doubted = right + correct, doubted + (warned and not correct)
                agreement.append(adjusted_rand_score(labels, found))
            seconds = (time.process_time() - start) / len(draws)
            rows.append(
                [
                    *table,
                    name,
                    f"{right} of {len(draws)}",
                    doubted if name == "PACOClusterer" else "",
                    f"{np.mean(agreement):.2f}",
                    f"{seconds:.2f}",
                ]
            )
            print(rows[-1], flush=True)
    report.table(
        "Number of clusters, and adjusted Rand index",
        [
            *("columns", "of which tell", "groups", "rows", "distance", "method"),
            *("right", "wrong with a warning", "ARI", "CPU s"),
        ],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
