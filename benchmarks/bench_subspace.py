"""SubspaceMixture on groups that a few features show, against three peers.

The extreme example of the appendix of Fan and Heller (groups that are narrow in two
features and uniform in all others), at three spreads, since the paper gives none; and
groups that are shifted in two features each, five of them among 200 features too. All
are given the number of groups, except SubspaceMixture with n_clusters="auto". The last
column cannot be reached: it gives each row the group that most probably drew it, given
the distribution of each group. There are twice as many tables of six features as of
ten, which take four times as long; the number after ± is the standard error of the mean
over them.
"""

import numpy as np
from _harness import Report, arguments, cpu_seconds
from scipy.stats import norm, sem, uniform
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from skpacbayes.cluster import SubspaceMixture
from skpacbayes.datasets import make_subspace_groups

TRUTH = "the law of each group, given"
AUTO = "SubspaceMixture, auto"


def methods(k, seed):
    return {
        "k-means, 10 starts": KMeans(k, n_init=10, random_state=seed),
        "PCA(2), k-means": make_pipeline(
            PCA(2), KMeans(k, n_init=10, random_state=seed)
        ),
        "diagonal GaussianMixture, 10 starts": GaussianMixture(
            k, covariance_type="diag", n_init=10, max_iter=500, random_state=seed
        ),
        "SubspaceMixture, shared": SubspaceMixture(
            k, variance="shared", random_state=seed
        ),
        AUTO: SubspaceMixture("auto", random_state=seed),
        "SubspaceMixture": SubspaceMixture(k, random_state=seed),
    }


def shifted_groups(n_features, seed, n_groups=None):
    """Draw unit Gaussians whose means differ in two features each, by 4."""
    rng = np.random.default_rng([n_features, seed])
    n_groups = n_groups or n_features - 1
    y = np.repeat(np.arange(n_groups), 100)
    X = rng.normal(size=(len(y), n_features))
    for j in range(n_groups):
        X[y == j, j : j + 2] += 4
    return X, y


def most_probable(X, y):
    """Labels of most posterior probability, given the law of each group.

    Two features of a group are normal, its others uniform on [0, 1] or, if groups are
    shifted, standard normal. Means and spreads are those of the true group.
    """
    n_groups = y.max() + 1
    shifted = X.min() < -1
    scores = np.empty((len(X), n_groups))
    for j in range(n_groups):
        narrow = X[y == j, j : j + 2]
        center = narrow.mean(axis=0)
        law = norm(center, 1.0 if shifted else (narrow - center).std())
        rest = norm() if shifted else uniform()
        others = np.delete(X, [j, j + 1], axis=1)
        scores[:, j] = law.logpdf(X[:, j : j + 2]).sum(axis=1)
        scores[:, j] += rest.logpdf(others).sum(axis=1)
    return scores.argmax(axis=1)


def data_sets(n_sets):
    """Name, number of features, and draws, by the number of features."""
    for d, n in n_sets.items():
        yield "shifted means", d, [shifted_groups(d, seed) for seed in range(n)]
    n = n_sets[10]
    yield "shifted means", 200, [shifted_groups(200, seed, 5) for seed in range(n)]
    for spread in (0.03, 0.04, 0.05):
        for d, n in n_sets.items():
            sets = [
                make_subspace_groups(d, spread=spread, random_state=seed)
                for seed in range(n)
            ]
            yield f"extreme example, spread {spread}", d, sets


def main():
    options = arguments(__doc__)
    report = Report("subspace", quick=options.quick)
    n_sets = {6: 2, 10: 2} if options.quick else {6: 20, 10: 10}
    SubspaceMixture(2, n_iter=1).fit(make_subspace_groups()[0])  # compiles
    rows, seconds, features, numbers = [], [], [], []
    for name, d, sets in data_sets(n_sets):
        found, spent, right, chosen_numbers = {}, {}, [], []
        n_groups = sets[0][1].max() + 1
        for seed, (X, y) in enumerate(sets):
            for method, model in methods(n_groups, seed).items():
                labels = []
                time = cpu_seconds(lambda: labels.append(model.fit_predict(X)))  # noqa: B023
                spent.setdefault(method, []).append(time)
                score = adjusted_rand_score(y, labels[0])
                found.setdefault(method, []).append(score)
                if method == AUTO:
                    chosen_numbers.append(len(np.unique(labels[0])))
            score = adjusted_rand_score(y, most_probable(X, y))
            found.setdefault(TRUTH, []).append(score)
            chosen = model.relevant_features_ > 0.5
            truth = np.array([X[y == j].std(axis=0) < 0.1 for j in range(n_groups)])
            right.append(
                sorted(map(tuple, chosen.tolist()))
                == sorted(map(tuple, truth.tolist()))
            )
        rows.append(
            [
                name,
                d,
                len(sets),
                *(
                    f"{np.mean(s):.3f} ± {sem(s):.3f} ({np.min(s):.2f} to "
                    f"{np.max(s):.2f})"
                    for s in found.values()
                ),
            ]
        )
        seconds.append([name, d, *(f"{np.median(s):.2f}" for s in spent.values())])
        if "extreme" in name:
            features.append([name, d, f"{sum(right)} of {len(sets)}"])
        values, counts = np.unique(chosen_numbers, return_counts=True)
        times = (f"{v}: {c}" for v, c in zip(values, counts, strict=True))
        numbers.append([name, d, n_groups, ", ".join(times)])
    columns = ["data", "features", *methods(2, 0)]
    report.table(
        "Adjusted Rand index: mean ± standard error (least to largest) over tables of "
        "100 rows a group",
        [*columns[:2], "tables", *columns[2:], TRUTH],
        rows,
    )
    report.table("CPU seconds of a fit, median", columns, seconds)
    report.table(
        "Tables on which SubspaceMixture found the relevant features of all groups",
        ["data", "features", "all right"],
        features,
    )
    report.table(
        f"Number of groups that {AUTO} found, and on how many tables",
        ["data", "features", "groups", "found: tables"],
        numbers,
    )
    report.save()


if __name__ == "__main__":
    main()
