"""Speed and memory of ABCPosteriorKDE against NumPy, NearestNeighbors and R's abc.

R's package abc runs if `Rscript` finds it. Otherwise the table has figures measured
earlier ("stored"), with R 4.2 on a shared machine of two cores.
"""

import subprocess
import tempfile
import tracemalloc
from pathlib import Path
from shutil import which

import numpy as np
from _abc_problems import noisy, two_parameters
from _harness import Report, arguments, cpu_seconds, interleaved
from sklearn.neighbors import NearestNeighbors

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate

R_SCRIPT = Path(__file__).with_name("_abc.R")
# CPU ms an observation of abc(method = "loclinear") at N = 1e6, 2,000 accepted.
STORED_R = {2: 700, 5: 1560}


def r_is_there():
    """Whether Rscript is on the path and finds the package abc."""
    if which("Rscript") is None:
        return False
    test = ["Rscript", "-e", "quit(status = !requireNamespace('abc', quietly = T))"]
    return subprocess.run(test, capture_output=True, check=False).returncode == 0


def r_milliseconds(X, y, s, n_accepted):
    """CPU ms of abc(method = "loclinear") for one observation, inside R."""
    with tempfile.TemporaryDirectory() as folder:
        for name, part in {"X": X, "y": y, "s": s}.items():
            np.asfortranarray(part).T.tofile(Path(folder) / name)
        command = ["Rscript", str(R_SCRIPT), folder, *map(str, X.shape)]
        command += [str(y.shape[1]), str(n_accepted / len(X))]
        answer = subprocess.run(command, capture_output=True, check=True, text=True)
    return 1e3 * float(answer.stdout.split()[0])


def by_numpy(X, scale, k):
    """Return a search as one writes it with NumPy."""

    def search(s):
        squares = (((X - s) / scale) ** 2).sum(axis=1)
        return np.argpartition(squares, k)[: k + 1]

    return search


def speed(report, n, k, turns):
    has_r = r_is_there()
    rows = []
    rng = np.random.default_rng(0)
    for m in (2, 5, 10):
        X, y, _ = simulate(two_parameters, noisy(m), n, random_state=0)
        s, truth = rng.uniform(-1, 1, size=(1, m)), np.zeros((1, 2))
        estimator = ABCPosteriorKDE(k, bandwidth="silverman", algorithm="brute")
        estimator.fit(X, y)
        search = by_numpy(X, estimator.scale_, k)
        seconds = interleaved(
            {
                "density": lambda e=estimator, s=s: e.score_samples(s, truth),  # noqa: B023
                "mean": lambda e=estimator, s=s: e.predict(s),
                "numpy": lambda f=search, s=s: f(s[0]),
            },
            turns,
        )
        row = cpu_seconds(  # one after the other: the table stays in the cache
            lambda e=estimator, s=s: [e.score_samples(s, truth) for _ in range(20)]  # noqa: B023
        )
        ms = {name: 1e3 * np.median(values) for name, values in seconds.items()}
        if has_r:
            r_ms = r_milliseconds(X, y, s, k)
            r_text = f"{r_ms:.0f} (measured)"
        else:
            r_ms = STORED_R.get(m, np.nan) if n == 1_000_000 else np.nan
            r_text = f"{r_ms:.0f} (stored)"
        rows.append(
            [
                m,
                f"{ms['density']:.2f}",
                f"{1e3 * row / 20:.2f}",
                f"{ms['mean']:.2f}",
                f"{ms['numpy']:.1f}",
                f"{ms['numpy'] / ms['density']:.1f}",
                r_text,
                f"{r_ms / ms['density']:.0f}",
            ]
        )
    report.table(
        f"One observation, N = {n:,}, k = {k:,}, p = 2, no index: CPU ms",
        [
            "m",
            "density",
            "same, twenty in a row",
            "mean",
            "NumPy, search only",
            "NumPy / ours",
            "R abc, loclinear",
            "R / ours",
        ],
        rows,
    )


def many_observations(report, n, k, n_observations):
    rows = []
    rng = np.random.default_rng(0)
    for m in (2, 5, 6, 10):
        X, y, _ = simulate(two_parameters, noisy(m), n, random_state=0)
        count = n_observations if m <= 6 else n_observations // 10
        new = rng.uniform(-1, 1, size=(count, m))
        estimator = ABCPosteriorKDE(k, bandwidth="silverman").fit(X, y)
        scan = ABCPosteriorKDE(k, bandwidth="silverman", algorithm="brute").fit(X, y)
        index = np.nan
        if m <= 6:
            estimator.set_params(algorithm="kd_tree").predict(new[:1])  # warm
            estimator.fit(X, y)
            index = cpu_seconds(lambda e=estimator: e.predict(new[:1]))  # noqa: B023
        seconds = cpu_seconds(lambda e=estimator: e.predict(new))  # noqa: B023
        few = new[: max(1, count // 10)]
        scanned = cpu_seconds(lambda: scan.predict(few)) / len(few)  # noqa: B023
        peer = NearestNeighbors(n_neighbors=k, algorithm="kd_tree")
        peer.fit(X / estimator.scale_)
        theirs = cpu_seconds(lambda: peer.kneighbors(few / estimator.scale_))  # noqa: B023
        rows.append(
            [
                m,
                count,
                f"{index:.2f}",
                f"{seconds:.2f}",
                f"{1e3 * seconds / count:.2f}",
                f"{1e3 * scanned:.2f}",
                f"{1e3 * theirs / len(few):.2f}",
            ]
        )
    report.table(
        f"Many observations, N = {n:,}, k = {k:,}, p = 2: posterior means; "
        "NearestNeighbors is the search only, in ms each",
        [
            "m",
            "observations",
            "index, s",
            "all, s",
            "ms each",
            "ms each, scan",
            "NearestNeighbors",
        ],
        rows,
    )


def memory(report, n):
    rows = []
    for m, p in ((2, 1), (5, 2), (10, 2)):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(n, m)), rng.normal(size=(n, p))
        table = X.nbytes + y.nbytes
        sizes = [m, p, f"{table / 2**20:.0f}"]
        for metric in ("mad", "whiten"):
            estimator = ABCPosteriorKDE(0.002, bandwidth=1.0, metric=metric)
            for algorithm in ("brute", "kd_tree"):
                estimator.set_params(algorithm=algorithm)
                tracemalloc.start()
                estimator.fit(X, y).predict(X[:1])
                kept, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                sizes.append(f"{kept / table:.2f} ({peak / table:.2f})")
                del estimator._table, estimator._settings
        rows.append(sizes)
    report.table(
        f"Memory in units of the table, N = {n:,}: kept (peak of fit and predict)",
        [
            "m",
            "p",
            "table, MiB",
            "mad, scan",
            "mad, index",
            "whiten, scan",
            "whiten, index",
        ],
        rows,
    )


def main():
    quick = arguments(__doc__).quick
    report = Report("abc_speed", quick=quick)
    n = 100_000 if quick else 1_000_000
    speed(report, n, n // 500, turns=3 if quick else 9)
    many_observations(report, n, n // 500, 100 if quick else 1000)
    memory(report, n)
    report.save()


if __name__ == "__main__":
    main()
