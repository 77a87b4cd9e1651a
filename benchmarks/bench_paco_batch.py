"""How often PACOClusterer finds the number of clusters in a table, and its time.

Models 1 to 5 of Li, Guedj and Loustau (2016), fresh draws. Every method meets the same
draws, one after the other within each draw. Exact 95% binomial intervals. Then groups
whose sizes or spreads differ: 2 to 8 in 2 to 10 features, each mean at 4 to 8 standard
deviations from its nearest other, in any unit. Last, what `GridSearchCV` chooses on
Models 2 to 4 when it is free to choose `inverse_temperature` or `cluster_penalty`.
"""

import time
from functools import partial

import numpy as np
from _harness import Report, arguments
from _paco_peers import BATCH, READS_PATH, kmeans_path
from _paco_streams import mixed_groups
from scipy.stats import binomtest
from sklearn.model_selection import GridSearchCV

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

GROUPS = {1: 1, 2: 4, 3: 4, 4: 7, 5: 3}
OURS = "PACOClusterer"
QUICK_PEERS = {"same, spherical, 1e-3", "HDBSCAN, 5 rows", "HDBSCAN, 15 rows"}
# Rows; draws for us and the quick peers, for the others, which take seconds a draw of
# 5,000 rows, and for the gap statistic, which takes five more paths a draw.
FULL = [(200, 50, 50, 10), (1000, 50, 20, 3), (5000, 20, 4, 0)]
QUICK = [(200, 5, 5, 2)]
UNEQUAL, UNEQUAL_QUICK = (500, 50, 50, 0), (500, 5, 5, 0)
# Largest ratio of two standard deviations, fewest rows expected of a group.
FAMILIES = {
    "equal": (1, None),
    "sizes differ": (1, 20),
    "spreads differ": (5, None),
    "both differ": (5, 20),
}
FACTORS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]  # of the automatic temperature
PENALTIES = [0.0, 0.3, 1.0, 3.0, 10.0]


def draws_by_peer(n_draws, n_slow_draws, n_gap_draws):
    """Count the draws that each peer meets; none: left out."""
    draws = {name: n_draws if name in QUICK_PEERS else n_slow_draws for name in BATCH}
    draws["gap"] = n_gap_draws
    return {name: number for name, number in draws.items() if number > 0}


def models(n_samples):
    """Return the models of the paper, by name: functions of the number of the draw."""

    def rows(model, draw):
        rng = np.random.RandomState([model, n_samples, draw])
        return make_paco_model(model, n_samples, random_state=rng)[0], GROUPS[model]

    return {f"Model {model}": partial(rows, model) for model in GROUPS}


def families(n_samples):
    """Return the families of groups that differ, as `models`."""

    def rows(ratio, fewest, draw):
        rng = np.random.default_rng([n_samples, draw])
        X, y = mixed_groups(rng, n_samples, largest_ratio=ratio, fewest=fewest)
        return X, len(np.unique(y))

    return {name: partial(rows, *differing) for name, differing in FAMILIES.items()}


def chosen_numbers(rows, loss, n_draws, peers):
    """Errors of the number of clusters chosen in each draw, and CPU seconds, by method.

    `rows`: a function of the draw, that returns X and the number of its groups.
    `peers`: the number of draws that each of them meets, by name.
    """
    numbers = {OURS: [], **{name: [] for name in peers}}
    seconds = dict.fromkeys(numbers, 0.0)
    for draw in range(n_draws):
        meeting = [name for name in peers if draw < peers[name]]
        X, n_groups = rows(draw)
        start = time.process_time()
        estimator = PACOClusterer(loss=loss, random_state=draw).fit(X)
        numbers[OURS].append(estimator.n_clusters_ - n_groups)
        seconds[OURS] += time.process_time() - start

        start = time.process_time()
        path = kmeans_path(X, draw) if READS_PATH.intersection(meeting) else None
        path_seconds = time.process_time() - start
        for name in meeting:
            choose = BATCH[name]
            start = time.process_time()
            if name in READS_PATH:
                numbers[name].append(choose(X, draw, path) - n_groups)
                seconds[name] += path_seconds
            else:
                numbers[name].append(choose(X, draw) - n_groups)
            seconds[name] += time.process_time() - start
    return numbers, seconds


def recovery(report, columns, n_samples, n_draws, n_slow_draws, n_gap_draws):
    """Table of the percentage of draws whose number of clusters is found.

    `columns`: `models` or `families`.
    """
    columns = columns(n_samples)
    peers = draws_by_peer(n_draws, n_slow_draws, n_gap_draws)
    percent, share, cost = {}, {}, {}
    for column, rows in columns.items():
        loss = "manhattan" if column == "Model 5" else "squared_euclidean"
        numbers, seconds = chosen_numbers(rows, loss, n_draws, peers)
        for name, errors in numbers.items():
            right = errors.count(0)
            interval = binomtest(right, len(errors)).proportion_ci()
            percent.setdefault(name, []).append(
                f"{100 * right / len(errors):.0f} "
                f"[{100 * interval.low:.0f}, {100 * interval.high:.0f}]"
            )
            share.setdefault(name, []).append(right / len(errors))
            cost.setdefault(name, []).append(seconds[name] / len(errors))
    rows = []
    for name in percent:
        seconds = np.mean(cost[name])
        rows.append(
            [
                name,
                *percent[name],
                f"{100 * np.mean(share[name]):.0f}",
                f"{1e3 * seconds:.0f}",
                f"{seconds / np.mean(cost[OURS]):.2f}",
            ]
        )
    fewer = {"gap": n_gap_draws} if n_gap_draws else {}
    if n_slow_draws < n_draws:
        fewer = {"all but ours, same and HDBSCAN": n_slow_draws} | fewer
    fewer = "; ".join(f"{who}: {number}" for who, number in fewer.items())
    fewer = f" ({fewer})" if fewer else ""
    report.table(
        f"Percent of draws with the right number of clusters, n = {n_samples}, "
        f"{n_draws} draws{fewer}, exact 95% interval; CPU ms a draw; ratio of CPU "
        "time to ours",
        ["method", *columns, "mean", "ms", "ratio"],
        rows,
    )


def selection(report, n_draws):
    """Table of what GridSearchCV chooses, by the held-out quasi-likelihood."""
    rows = []
    for model in (2, 3, 4):
        n_groups = GROUPS[model]
        for parameter in ("inverse_temperature", "cluster_penalty"):
            chosen, automatic, fitted, settings = [], [], [], []
            for draw in range(n_draws):
                rng = np.random.RandomState([model, 7, draw])
                X, _ = make_paco_model(model, 200, random_state=rng)
                estimator = PACOClusterer(random_state=draw).fit(X)
                automatic.append(estimator.n_clusters_)
                if parameter == "inverse_temperature":
                    grid = [f * estimator.inverse_temperature_ for f in FACTORS]
                else:
                    grid = PENALTIES
                search = GridSearchCV(estimator, {parameter: grid}, cv=5).fit(X)
                chosen.append(search.best_estimator_.n_clusters_)
                settings.append(search.best_index_)
                fitted.append(
                    [
                        PACOClusterer(random_state=draw, **{parameter: value})
                        .fit(X)
                        .n_clusters_
                        for value in grid
                    ]
                )
            highest = np.max(fitted, axis=1)
            lowest = np.min(fitted, axis=1)
            chosen = np.array(chosen)
            rows.append(
                [
                    f"Model {model} ({n_groups})",
                    parameter,
                    f"{lowest.min()} to {highest.max()}",
                    " ".join(f"{k:g}" for k in np.median(fitted, axis=0)),
                    np.bincount(settings, minlength=len(grid)).tolist(),
                    f"{100 * np.mean(np.equal(automatic, n_groups)):.0f}",
                    f"{100 * np.mean(chosen == n_groups):.0f}",
                    f"{np.median(chosen):g} ({chosen.min()} to {chosen.max()})",
                    f"{100 * np.mean((chosen == highest) & (chosen > n_groups)):.0f}",
                ]
            )
    report.table(
        "GridSearchCV (5 folds) by the held-out normalised quasi-likelihood, n = 200, "
        f"{n_draws} draws. inverse_temperature: {FACTORS} times the automatic one; "
        f"cluster_penalty: {PENALTIES}",
        [
            "model (groups)",
            "parameter",
            "clusters over the grid",
            "median at each value",
            "times chosen",
            "right, automatic %",
            "right, chosen %",
            "chosen",
            "largest of the grid, and too many, %",
        ],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("paco_batch", quick=options.quick)
    for size in QUICK if options.quick else FULL:
        recovery(report, models, *size)
        report.save()
    recovery(report, families, *(UNEQUAL_QUICK if options.quick else UNEQUAL))
    report.save()
    selection(report, 2 if options.quick else 20)
    report.save()


if __name__ == "__main__":
    main()
