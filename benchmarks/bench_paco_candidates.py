"""The numbers of clusters that PACOClusterer names, against those of parts of the rows.

Every table of `_paco_tables.py` is fitted, and so are random nine tenths of its rows:
`n_clusters_candidates_` should have the number of each part. Then single clusters that
are not normal: how often one cluster is found, and how often it is named.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from _paco_tables import all_tables
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer

N_PARTS, N_DRAWS = 6, 5
QUICK = {"15 groups", "wine, standardised", "anisotropic", "two moons"}


def fitted(X):
    """Fit without the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PACOClusterer(random_state=0, n_iter=50).fit(X)


def parts_of(X):
    """Fit random nine tenths of the rows; their numbers of clusters."""
    kept = len(X) * 9 // 10
    draws = (np.random.default_rng(seed).permutation(len(X)) for seed in range(N_PARTS))
    return [fitted(X[draw[:kept]]).n_clusters_ for draw in draws]


def single(kind, n_features, n_rows, seed):
    """One cluster of correlated features."""
    rng = np.random.default_rng([seed, n_features, n_rows])
    size = n_rows, n_features
    rows = {
        "normal": lambda: rng.normal(size=size),
        "Student, 3": lambda: _student(3, rng, size),
        "Student, 5": lambda: _student(5, rng, size),
        "gamma, 4": lambda: rng.gamma(4, size=size),
        "lognormal": lambda: np.exp(0.6 * rng.normal(size=size)),
        "exponential": lambda: rng.exponential(size=size),
    }[kind]()
    axes, _ = np.linalg.qr(rng.normal(size=(n_features, n_features)))
    return rows * np.sqrt(np.geomspace(1, 10, n_features)) @ axes


def _student(dof, rng, size):
    return rng.normal(size=size) * np.sqrt(dof / rng.chisquare(dof, (size[0], 1)))


def main():
    options = arguments(__doc__)
    report = Report("paco_candidates", quick=options.quick)
    rows, silent, told = [], np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for named in all_tables().values():
        for name, table in named.items():
            if options.quick and name not in QUICK:
                continue
            X, y = table(0)
            model, parts = fitted(X), parts_of(X)
            candidates = model.n_clusters_candidates_
            unnamed = sum(k not in candidates for k in parts)
            ari = adjusted_rand_score(y[y > 0], model.labels_[y > 0])
            tally = silent if len(candidates) == 1 else told
            tally += 1, unnamed, len(parts)
            said = ", ".join(map(str, candidates))
            found = ", ".join(map(str, sorted(parts)))
            n_groups = len(np.unique(y[y > 0]))
            rows.append([name, n_groups, said, f"{ari:.2f}", found, unnamed])
    report.table(
        "candidates of all rows, and numbers of nine tenths of them",
        ["table", "true", "candidates", "ARI", "parts", "not named"],
        rows,
    )
    report.table(
        "parts whose number was not named",
        ["", "tables", "parts", "not named"],
        [
            [what, n_tables, n_parts, unnamed]
            for what, (n_tables, unnamed, n_parts) in (
                ("silent", silent),
                ("warned", told),
            )
        ],
    )
    rows = []
    for kind in (
        "normal", "Student, 3", "Student, 5", "gamma, 4", "lognormal", "exponential",
    ):  # fmt: skip
        for n_features in (2, 10) if options.quick else (2, 5, 10, 30):
            found = [
                fitted(single(kind, n_features, 300, seed)).n_clusters_candidates_
                for seed in range(1 if options.quick else N_DRAWS)
            ]
            ones = sum(candidates[0] == 1 for candidates in found)
            named = sum(1 in candidates for candidates in found)
            rows.append([kind, n_features, len(found), ones, named])
    report.table(
        "one cluster of 300 rows",
        ["noise", "features", "draws", "one found", "one found or named"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
