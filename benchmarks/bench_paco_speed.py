"""Speed of PACOClusterer: an iteration of the chain, a million rows, a single row.

All times are CPU times of one thread. The time of an iteration is the difference
between fits with few and with many iterations, without the k-means path and the
calibration, which run once a fit; their time is printed too. The authors' R package
PACBO runs k-means anew within its iterations, and is compared when `Rscript` finds it.
"""

import subprocess
import tempfile
import time
from pathlib import Path
from shutil import which

import numpy as np
from _harness import Report, arguments, cpu_seconds
from _paco_peers import DBStream
from sklearn.cluster import Birch, KMeans, MiniBatchKMeans

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

# CPU ms per iteration of PACBO 0.1.0 under R 4.2 where it was last measured.
STORED_R_MILLISECONDS = {3: "4.5 to 5.1", 4: "9.5 to 10.9"}
R_SCRIPT = Path(__file__).with_name("_pacbo.R")


def r_is_there():
    """Whether Rscript is on the path and finds the package PACBO."""
    if which("Rscript") is None:
        return False
    test = ["Rscript", "-e", "quit(status = !requireNamespace('PACBO', quietly = T))"]
    return subprocess.run(test, capture_output=True, check=False).returncode == 0


def r_seconds(X, n_iter, seed):
    """CPU seconds of PACBO on X, inside R, without R's own start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        np.savetxt(path, X, delimiter=",")
        command = ["Rscript", str(R_SCRIPT), str(path), str(n_iter), str(seed)]
        answer = subprocess.run(command, capture_output=True, check=True, text=True)
    return float(answer.stdout.split()[0])


def iterations(report, quick):
    """Table of the CPU time of one iteration of the chain."""
    repeats, few, many, r_iterations = (
        (2, 500, 5500, 50) if quick else (7, 500, 20500, 500)
    )
    has_r = r_is_there()
    rows = []
    for model in (3, 4):
        for proposal in ("matched", "student"):
            slopes, fits, paths, authors = [], [], [], []
            for seed in range(repeats):
                rng = np.random.RandomState([model, 8, seed])
                X, _ = make_paco_model(model, 200, rng)
                short = PACOClusterer(n_iter=few, proposal=proposal, random_state=seed)
                long = PACOClusterer(n_iter=many, proposal=proposal, random_state=seed)
                if seed == 0:
                    short.fit(X)  # compiles
                fits.append(cpu_seconds(lambda: short.fit(X)))  # noqa: B023
                slopes.append(cpu_seconds(lambda: long.fit(X)) - fits[-1])  # noqa: B023
                paths.append(cpu_seconds(lambda: _kmeans_path(X, seed)))  # noqa: B023
                if has_r:
                    authors.append(r_seconds(X, r_iterations, seed) / r_iterations)
            ours = np.median(slopes) / (many - few)
            if has_r:
                measured = np.median(authors)
                r_text = f"{1e3 * measured:.2f} (measured)"
                ratio = f"{measured / ours:.0f}"
                whole = f"{500 * measured / np.median(fits):.0f}"
            else:
                lowest, highest = map(float, STORED_R_MILLISECONDS[model].split(" to "))
                r_text = f"{STORED_R_MILLISECONDS[model]} (stored)"
                ratio = f"{1e-3 * lowest / ours:.0f} to {1e-3 * highest / ours:.0f}"
                whole = f"{500e-3 * lowest / np.median(fits):.0f}"
            rows.append(
                [
                    f"Model {model} (d = {X.shape[1]})",
                    proposal,
                    f"{1e6 * ours:.1f}",
                    f"{1e3 * np.median(fits):.1f}",
                    f"{1e3 * np.median(paths):.1f}",
                    r_text,
                    ratio,
                    whole,
                ]
            )
    report.table(
        f"One iteration of the chain, n = 200, max_clusters = 20, median of {repeats} "
        "runs" + ("" if has_r else "; R with PACBO was absent, stored figures instead"),
        [
            "data",
            "proposal",
            "us an iteration",
            "fit, 500 it., ms",
            "KMeans 1..20, ms",
            "PACBO ms an iteration",
            "PACBO / ours, iteration",
            "PACBO / ours, fit",
        ],
        rows,
    )


def _kmeans_path(X, seed):
    for k in range(1, 21):
        KMeans(k, n_init=1, random_state=seed).fit(X)


def latency(report, quick):
    """Table of the time of partial_fit on one row, between refreshes and at them."""
    n_rows = 20_000 if quick else 100_000
    rows = []
    for model in (3, 4):
        X, _ = make_paco_model(model, n_rows, np.random.RandomState([model, 9]))
        for name, learner, rows_read in (
            ("PACOClusterer", _paco_learner(), n_rows),
            ("PACOClusterer, summary_size=100", _paco_learner(100), n_rows),
            ("river DBSTREAM", DBStream(1.0).model.learn_one, 2000),
            ("Birch", _birch_learner(), 2000),
            ("MiniBatchKMeans(20)", _minibatch_learner(X[:1000]), 2000),
        ):
            times = _row_times(learner, X[:rows_read], as_dict="river" in name)
            late = np.sort(times[len(times) // 2 :])
            rows.append(
                [
                    f"Model {model} (d = {X.shape[1]})",
                    name,
                    f"{rows_read:,}",
                    *(f"{1e6 * np.quantile(late, q):.1f}" for q in (0.5, 0.99)),
                    f"{1e6 * late.mean():.1f}",
                    f"{1e3 * late[-1]:.1f}",
                ]
            )
    report.table(
        "partial_fit of a single row, the second half of the stream (for ours the 99% "
        "quantile lies between refreshes, the mean and the largest include them)",
        ["data", "method", "rows", "median us", "99% us", "mean us", "largest ms"],
        rows,
    )


def _paco_learner(summary_size=400):
    model = PACOClusterer(summary_size=summary_size, random_state=0)
    return model.partial_fit


def _birch_learner():
    return Birch(n_clusters=None, threshold=1.5).partial_fit


def _minibatch_learner(X):
    return MiniBatchKMeans(20, random_state=0, n_init=1).partial_fit(X).partial_fit


def _row_times(learn, X, as_dict):
    times = np.empty(len(X))
    for i in range(len(X)):
        row = dict(enumerate(X[i])) if as_dict else X[i : i + 1]
        start = time.process_time()
        learn(row)
        times[i] = time.process_time() - start
    return times


def main():
    options = arguments(__doc__)
    report = Report("paco_speed", quick=options.quick)
    iterations(report, options.quick)
    latency(report, options.quick)
    report.save()


if __name__ == "__main__":
    main()
