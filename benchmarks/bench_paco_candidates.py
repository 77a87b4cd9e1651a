"""The numbers of clusters that PACOClusterer names, against those of parts of the rows.

Every table of `_paco_tables.py` is fitted, and so are random nine tenths of its rows:
`n_clusters_candidates_` should have the number of each part. Then single clusters that
are not normal, groups whose noise is skewed, and draws of Models 1 to 4 of the paper:
how often the number is right, and how often it is named. Last, streams: in random order
and sorted by group.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from _paco_tables import all_tables, scattered
from sklearn.metrics import adjusted_rand_score

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

N_PARTS, N_DRAWS, N_DRAWS_OF_MODELS = 6, 5, 100
STREAMS = (
    "iris, raw", "iris, standardised", "wine, raw", "wine, standardised",
    "breast_cancer, raw", "breast_cancer, standardised", "ecoli",
    "spreads differ", "2 groups, d=8", "anisotropic",
)  # fmt: skip
KINDS = (
    "normal", "Student, 3", "Student, 5", "gamma, 4", "lognormal", "exponential",
    "normal, a tenth 3 times as wide",
)  # fmt: skip
# Noise of standard deviation 1, and groups, features and rows. The criterion was chosen
# on exponential, gamma and lognormal noise with other sizes, distances and draws.
SKEWED = {
    "exponential": lambda rng, size: rng.exponential(size=size),
    "gamma, 2": lambda rng, size: rng.gamma(2, size=size) / 1.41,
    "lognormal, 0.6": lambda rng, size: np.exp(0.6 * rng.normal(size=size)) / 0.79,
    "lognormal, 0.8": lambda rng, size: np.exp(0.8 * rng.normal(size=size)) / 1.30,
    "half-normal": lambda rng, size: np.abs(rng.normal(size=size)) / 0.60,
    "inverse Gaussian": lambda rng, size: rng.wald(1, 1.5, size=size) / 0.82,
    "Weibull, 1.2": lambda rng, size: rng.weibull(1.2, size=size) / 0.79,
    "chi-squared, 1": lambda rng, size: rng.chisquare(1, size=size) / 1.41,
}  # fmt: skip
SKEWED_SIZES = ((1, 3, 1000), (2, 3, 600), (3, 2, 1500), (5, 4, 1200), (9, 2, 2500))
COUNTED = ["draws", "right", "right or named", "warned"]
QUICK = {"15 groups", "wine, standardised", "anisotropic", "two moons"}


def parts_of(X):
    """Fit random nine tenths of the rows; their numbers of clusters."""
    kept = len(X) * 9 // 10
    draws = (np.random.default_rng(seed).permutation(len(X)) for seed in range(N_PARTS))
    return [in_silence("fit", X[draw[:kept]]).n_clusters_ for draw in draws]


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
        "normal, a tenth 3 times as wide": lambda: _some_wide(0.1, 3.0, rng, size),
    }[kind]()
    axes, _ = np.linalg.qr(rng.normal(size=(n_features, n_features)))
    return rows * np.sqrt(np.geomspace(1, 10, n_features)) @ axes


def _student(dof, rng, size):
    return rng.normal(size=size) * np.sqrt(dof / rng.chisquare(dof, (size[0], 1)))


def _some_wide(share, factor, rng, size):
    return rng.normal(size=size) * np.where(rng.random((size[0], 1)) < share, factor, 1)


def skewed_groups(kind, n_groups, n_features, n_rows, seed):
    """Draw groups of unequal sizes, 6 standard deviations apart, skewed to any side."""
    rng = np.random.default_rng([seed, n_groups, n_features])
    X, y = scattered(n_groups, n_features, 6.0, n_rows, 0.0, seed)
    sides = np.where(rng.random((n_groups, n_features)) < 0.5, -1, 1)
    kept = rng.random(n_rows) < rng.uniform(0.4, 1, n_groups)[y - 1]
    return (X + sides[y - 1] * SKEWED[kind](rng, X.shape))[kept]


def in_silence(method, X):
    """Call a method of a new estimator without the warnings."""
    model = PACOClusterer(random_state=0, n_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(model, method)(X)


def parts_table(report, quick):
    """Compare the candidates of all rows with the numbers of nine tenths of them."""
    rows, tally = [], {"silent": [0, 0, 0], "warned": [0, 0, 0]}
    for named in all_tables().values():
        for name, table in named.items():
            if quick and name not in QUICK:
                continue
            X, y = table(0)
            model, parts = in_silence("fit", X), parts_of(X)
            candidates = model.n_clusters_candidates_
            unnamed = sum(k not in candidates for k in parts)
            counts = tally["silent" if len(candidates) == 1 else "warned"]
            for place, count in enumerate((1, len(parts), unnamed)):
                counts[place] += count
            ari = adjusted_rand_score(y[y > 0], model.labels_[y > 0])
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
        [[what, *counts] for what, counts in tally.items()],
    )


def single_table(report, quick):
    """Count how often one cluster is found where there is one."""
    rows = []
    for kind in KINDS:
        for n_features in (2, 10) if quick else (2, 5, 10, 30):
            found = [
                in_silence("fit", single(kind, n_features, 300, seed))
                for seed in range(1 if quick else N_DRAWS)
            ]
            rows.append([kind, n_features, *right_and_named(found, 1)])
    report.table("one cluster of 300 rows", ["noise", "features", *COUNTED], rows)


def skewed_table(report, quick):
    """Count how often the number of groups is right where their noise is skewed."""
    rows = []
    for kind in SKEWED:
        counts = np.zeros(4, dtype=int)
        for size in SKEWED_SIZES[: 1 if quick else None]:
            seeds = range(1 if quick else N_DRAWS)
            found = [in_silence("fit", skewed_groups(kind, *size, s)) for s in seeds]
            counts += right_and_named(found, size[0])
        rows.append([kind, *map(int, counts)])
    report.table("1 to 9 groups of skewed noise", ["noise", *COUNTED], rows)


def models_table(report, quick):
    """Count how often the number of groups of the paper's models is right."""
    rows = []
    for number, n_groups in ((1, 1), (2, 4), (3, 4), (4, 7)):
        draws = range(2 if quick else N_DRAWS_OF_MODELS)
        tables = (make_paco_model(number, 200, random_state=seed)[0] for seed in draws)
        found = [in_silence("fit", X) for X in tables]
        rows.append([number, n_groups, *right_and_named(found, n_groups)])
    report.table("models, 200 rows", ["model", "groups", *COUNTED], rows)


def streams_table(report, quick):
    """Compare streams in random order, and sorted by group, with the batch."""
    rows = []
    for named in all_tables().values():
        for name, table in named.items():
            if name not in STREAMS or (quick and name not in QUICK):
                continue
            X, y = table(0)
            by_chance = np.random.default_rng(0).permutation(len(X))
            by_group = by_chance[np.argsort(y[by_chance], kind="stable")]
            models = [
                in_silence("fit", X),
                in_silence("partial_fit", X[by_chance]),
                in_silence("partial_fit", X[by_group]),
            ]
            cells = [
                f"{m.n_clusters_} ({adjusted_rand_score(y, m.predict(X)):.2f})"
                for m in models
            ]
            rows.append([name, len(np.unique(y)), *cells])
    report.table(
        "number of clusters (ARI) of a batch and of streams",
        ["table", "true", "batch", "random order", "sorted by group"],
        rows,
    )


def right_and_named(found, n_groups):
    """Count draws, right numbers, right or named ones, and warnings."""
    candidates = [model.n_clusters_candidates_ for model in found]
    return (
        len(found),
        sum(one[0] == n_groups for one in candidates),
        sum(n_groups in one for one in candidates),
        sum(len(one) > 1 for one in candidates),
    )


def main():
    options = arguments(__doc__)
    report = Report("paco_candidates", quick=options.quick)
    for table in (
        models_table,
        single_table,
        skewed_table,
        streams_table,
        parts_table,
    ):
        table(report, options.quick)
    report.save()


if __name__ == "__main__":
    main()
