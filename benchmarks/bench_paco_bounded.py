"""PACOClusterer with bounded memory: a million rows, and the error of the summary.

One pass over streams of Model 3 (d = 2) and of Model 4 (d = 50), in blocks made as
they are read, each length in a process of its own: CPU seconds of `partial_fit`,
peak memory of the process, size of the pickled estimator. Then the relative error of
the cumulative loss S(c) as the summary gives it, against the rows themselves, over
random sets c of 1 to 20 centres: rows, rows plus noise, uniform in the ball of the
prior, k-means.
"""

import itertools
import multiprocessing
import pickle
import resource
import time
from pathlib import Path

import numpy as np
from _harness import Report, arguments, cpu_seconds
from _paco_peers import BirchStream, DBStream
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs

from skpacbayes.cluster import PACOClusterer
from skpacbayes.cluster._paco_chain import QuasiPosterior
from skpacbayes.datasets import make_paco_model

BLOCK = 10_000
GROUPS = {3: 4, 4: 7}


def peak_megabytes():
    """Largest resident memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # there ru_maxrss starts from the parent's
        lines = status.read_text().splitlines()
        return int(next(v for v in lines if v.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_pass(job):
    """Read a stream of a model; runs in a process of its own."""
    n_model, length, parameters = job
    rng = np.random.RandomState(1)
    means = rng.uniform(-10, 10, size=(7, 50))  # of Model 4, for all blocks

    def rows(count):
        if n_model == 4:
            return make_blobs(count, centers=means, random_state=rng)[0]
        return make_paco_model(n_model, count, rng)[0]

    PACOClusterer(**parameters).partial_fit(rows(2000))
    model = PACOClusterer(random_state=0, **parameters)
    seconds = 0.0
    numbers = []
    for _ in range(length // BLOCK):
        X = rows(BLOCK)
        start = time.process_time()
        model.partial_fit(X)
        seconds += time.process_time() - start
        numbers.append(model.n_clusters_)
    right = np.mean(np.equal(numbers, GROUPS[n_model]))
    return seconds, peak_megabytes(), len(pickle.dumps(model)), right


def million(report, quick):
    """Table of one pass in bounded memory, for growing lengths."""
    lengths = (20_000, 100_000) if quick else (100_000, 300_000, 1_000_000)
    context = multiprocessing.get_context("spawn")
    rows = []
    for n_model, size in itertools.product(GROUPS, (None, 100)):
        parameters = {"summary_size": size} if size else {}
        for length in lengths:
            with context.Pool(1) as pool:
                seconds, peak, state, right = pool.apply(
                    one_pass, ((n_model, length, parameters),)
                )
            rows.append(
                [
                    f"Model {n_model} (d = {2 if n_model == 3 else 50})",
                    parameters.get("summary_size", "400 (default)"),
                    f"{length:,}",
                    f"{seconds:.2f}",
                    f"{length / seconds:,.0f}",
                    f"{peak:.1f}",
                    f"{state:,}",
                    f"{100 * right:.0f}",
                ]
            )
    report.table(
        f"One pass over a stream, blocks of {BLOCK:,} rows, one stream each",
        [
            "data",
            "summary_size",
            "rows",
            "CPU s",
            "rows per CPU s",
            "peak MB",
            "pickle bytes",
            "blocks after which K is right, %",
        ],
        rows,
    )


def throughput(report, quick):
    """Table of rows per CPU second, peers on the same rows."""
    rows = []
    for model, n_groups in GROUPS.items():
        n_rows = 20_000 if quick else 200_000
        X, _ = make_paco_model(model, n_rows, np.random.RandomState([model, 10]))
        ours = {
            "PACOClusterer": {},
            "same, summary_size=100": {"summary_size": 100},
            "same, refresh=5000 too": {"summary_size": 100, "refresh": 5000},
        }
        methods = {}
        for name, parameters in ours.items():
            learner = PACOClusterer(random_state=0, **parameters)
            PACOClusterer(**parameters).partial_fit(X[:2000])
            methods[name] = (learner.partial_fit, _n_clusters(learner), n_rows)
        minibatch = MiniBatchKMeans(20, random_state=0, n_init=1)
        birch, river = BirchStream(1.5), DBStream(1.0)
        methods["MiniBatchKMeans(20)"] = minibatch.partial_fit, lambda: "given", n_rows
        methods["Birch 1.5"] = birch.learn_block, _n_clusters(birch), 20_000
        methods["river DBSTREAM"] = river.learn_block, _n_clusters(river), 5000
        seconds = {}
        for name, (learn, _, rows_read) in methods.items():
            block = min(BLOCK, rows_read // 2)
            seconds[name] = [
                cpu_seconds(lambda b=begin: learn(X[b : b + block]))  # noqa: B023
                for begin in range(0, rows_read, block)
            ]
        reference = n_rows / np.sum(seconds["PACOClusterer"])
        for name, (_, found, rows_read) in methods.items():
            spent = seconds[name]
            speed = rows_read / np.sum(spent)
            late = rows_read / 2 / np.sum(spent[len(spent) // 2 :])
            rows.append(
                [
                    f"Model {model} (d = {X.shape[1]}, {n_groups} groups)",
                    name,
                    f"{rows_read:,}",
                    f"{speed:,.0f}",
                    f"{late:,.0f}",
                    f"{reference / speed:.3g}",
                    found(),
                ]
            )
    report.table(
        f"Rows per CPU second, blocks of {BLOCK:,} rows (river: halves of its stream)",
        [
            "data",
            "method",
            "rows",
            "rows per CPU s",
            "in the second half",
            "ours / its",
            "clusters",
        ],
        rows,
    )


def _n_clusters(learner):
    fitted = isinstance(learner, PACOClusterer)
    return lambda: learner.n_clusters_ if fitted else learner.n_clusters


def random_centers(X, radius, rng, n_sets):
    """Yield sets of 1 to 20 centres, of four kinds in turn."""
    n_features = X.shape[1]
    spread = X.std(axis=0)
    for i in range(n_sets):
        k = rng.integers(1, 21)
        if i % 4 == 0:
            yield X[rng.choice(len(X), k, replace=False)]
        elif i % 4 == 1:
            noise = rng.normal(size=(k, n_features))
            yield X[rng.choice(len(X), k, replace=False)] + 0.5 * spread * noise
        elif i % 4 == 2:
            direction = rng.normal(size=(k, n_features))
            direction /= np.linalg.norm(direction, axis=1)[:, None]
            length = 2 * radius * rng.uniform(size=(k, 1)) ** (1 / n_features)
            yield X.mean(axis=0) + length * direction
        else:
            rows = X[rng.choice(len(X), 2000, replace=False)]
            yield KMeans(k, n_init=1, random_state=i).fit(rows).cluster_centers_


def summary_error(report, quick):
    """Table of the relative error of S(c), read off the summary."""
    n_rows, n_sets = (5000, 24) if quick else (20_000, 160)
    rows = []
    for model, manhattan in (
        (2, False),
        (3, False),
        (5, False),
        (5, True),
        (1, False),
        (4, False),
    ):
        X, _ = make_paco_model(model, n_rows, np.random.RandomState([model, 11]))
        radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
        rng = np.random.default_rng(model)
        sets = list(random_centers(X, radius, rng, n_sets))
        exact = [_exact_loss(X, centers, manhattan) for centers in sets]
        for size in (100, 400, 800):
            model_loss = "manhattan" if manhattan else "squared_euclidean"
            statistics = PACOClusterer(
                loss=model_loss, summary_size=size
            ).sufficient_statistics(X)
            approximate = [
                _loss_from(statistics, X.shape[1], centers, manhattan)
                for centers in sets
            ]
            error = 100 * (np.array(approximate) / exact - 1)
            kinds = [f"{np.abs(error[kind::4]).max():.2f}" for kind in range(4)]
            rows.append(
                [
                    f"Model {model}",
                    X.shape[1],
                    model_loss,
                    size,
                    f"{np.median(np.abs(error)):.3f}",
                    f"{np.abs(error).max():.2f}",
                    *kinds,
                    f"{error.mean():+.3f}",
                ]
            )
    report.table(
        f"Error of S(c) in percent, {n_rows:,} rows, {n_sets} random c of 1 to 20 "
        "centres; the largest by kind of c",
        [
            "data",
            "d",
            "loss",
            "summary_size",
            "median",
            "largest",
            "rows",
            "rows + noise",
            "ball",
            "k-means",
            "mean, signed",
        ],
        rows,
    )


def _exact_loss(X, centers, manhattan):
    metric = "cityblock" if manhattan else "sqeuclidean"
    return cdist(X, centers, metric).min(axis=1).sum()


def _loss_from(statistics, n_features, centers, manhattan):
    """S(c), as the chain sees it through the summary."""
    statistics = statistics[statistics[:, n_features] > 0]  # points, no directions
    weights = statistics[:, n_features].copy()
    problem = QuasiPosterior(
        points=statistics[:, :n_features].copy(),
        weights=weights,
        spreads=statistics[:, n_features + 1] / weights,
        forecasts=np.empty((0, 3)),
        temperature=1.0,
        prior=None,
        manhattan=manhattan,
    )
    return problem.loss(centers)


def main():
    options = arguments(__doc__)
    report = Report("paco_bounded", quick=options.quick)
    million(report, options.quick)
    throughput(report, options.quick)
    summary_error(report, options.quick)
    report.save()


if __name__ == "__main__":
    main()
