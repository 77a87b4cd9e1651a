"""ABCPosteriorKDE: errors, their rate, and speed, against R's abc.

Errors are relative integrated squared errors (ISE), the integral of the squared
difference from the exact posterior over that of its square, on problems where the
exact posterior is known. The rival is what is done by hand, "accept 1 %, Silverman",
and R's package abc where `Rscript` finds it; where it does not, the figures are those
measured earlier, with R 4.2 on a shared machine of two cores.
"""

import subprocess
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from shutil import which

import numpy as np
from _abc_problems import (
    LINE,
    PROBLEMS,
    conjugate,
    conjugate_density,
    conjugate_prior,
    g_and_k,
    g_and_k_prior,
    noisy,
    two_parameters,
)
from _harness import Report, arguments, cpu_seconds, interleaved
from sklearn.neighbors import NearestNeighbors

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate

R_SCRIPT = Path(__file__).with_name("_abc.R")
# CPU ms an observation of abc(method = "loclinear") at N = 1e6, 2,000 accepted.
STORED_R = {2: 700, 5: 1560}


def by_hand(**parameters):
    """Return equation (5) with 1 % of the table and Silverman's bandwidth."""
    return ABCPosteriorKDE(
        0.01, bandwidth="silverman", adjustment=None, random_state=0, **parameters
    )


def default(**parameters):
    return ABCPosteriorKDE(random_state=0, **parameters)


def relative_errors(estimator, observations, density, grid):
    """Relative ISE for each observation."""
    errors = []
    for s in observations:
        found = np.exp(estimator.log_density(s[None], grid)[0])
        exact = density(s, grid)
        errors.append(((found - exact) ** 2).sum() / (exact**2).sum())
    return np.array(errors)


def against_one_percent(report, n_observations, tables, largest):
    rows = []
    for name, (prior, simulator, density, grid, sizes) in PROBLEMS.items():
        for n in [n for n in sizes if n <= largest]:
            errors = {"1 %": [], "default": [], "heteroscedastic": []}
            chosen = []
            for seed in range(tables):
                X, y, _ = simulate(prior, simulator, n, random_state=seed)
                new, _, _ = simulate(
                    prior, simulator, n_observations, random_state=1000 + seed
                )
                estimators = {
                    "1 %": by_hand(),
                    "default": default(),
                    "heteroscedastic": default(adjustment="heteroscedastic"),
                }
                for key, estimator in estimators.items():
                    estimator.fit(X, y)
                    errors[key].append(relative_errors(estimator, new, density, grid))
                chosen.append(estimators["default"].n_neighbors_)
            means = {key: np.mean(values) for key, values in errors.items()}
            rows.append(
                [
                    name,
                    f"{n:,}",
                    *(f"{means[key]:.4f}" for key in errors),
                    f"{means['1 %'] / means['default']:.1f}",
                    "/".join(map(str, chosen)),
                ]
            )
    report.table(
        f"Relative ISE, mean over {n_observations} observations from the prior "
        f"predictive, {tables} tables",
        [
            "problem",
            "N",
            "1 %, Silverman",
            "default",
            "heteroscedastic",
            "1 % / default",
            "k chosen",
        ],
        rows,
    )


def rate(report, n_observations, tables, sizes):
    """Theorem 3.3: no adjustment, k and h of the rate, observations in the bulk."""
    rows = []
    for m in (1, 2, 5):
        means = []
        for n in sizes:
            errors = []
            for seed in range(max(2, tables * sizes[0] // n)):
                X, y, _ = simulate(conjugate_prior, conjugate(m), n, random_state=seed)
                rng = np.random.default_rng([m, n, seed])
                bulk = rng.uniform(-1, 1, size=(n_observations, m))
                estimator = ABCPosteriorKDE("rate", bandwidth="rate", adjustment=None)
                estimator.fit(X, y)
                errors.append(
                    relative_errors(estimator, bulk, conjugate_density, LINE).mean()
                )
            means.append((np.mean(errors), np.std(errors) / np.sqrt(len(errors))))
        (first, e1), (last, e2) = means[0], means[-1]
        span = np.log(sizes[-1] / sizes[0])
        rows.append(
            [
                m,
                *(f"{mean:.5f}" for mean, _ in means),
                f"{np.log(first / last) / span:.3f}",
                f"{np.hypot(e1 / first, e2 / last) / span:.3f}",
                f"{4 / (m + 5):.3f}",
            ]
        )
    report.table(
        "Rate of Theorem 3.3, adjustment=None: relative ISE",
        ["m", *(f"N = {n:,}" for n in sizes), "exponent", "s.e.", "4 / (m + p + 4)"],
        rows,
    )


def held_out_density(report, sizes, n_new):
    rows = []
    methods = {
        "1 %, Silverman": by_hand(),
        "default": default(),
        "heteroscedastic": default(adjustment="heteroscedastic"),
        "default, metric='whiten'": default(metric="whiten"),
        "default, metric='regression'": default(metric="regression"),
        "default, transformed": default(
            parameter_transform="logit", bounds=[(0, 5), (0, 5), (-5, 5), (0, 1)]
        ),
    }
    X_new, y_new, _ = simulate(g_and_k_prior, g_and_k, n_new, random_state=1)
    for n in sizes:
        X, y, _ = simulate(g_and_k_prior, g_and_k, n, random_state=0)
        for name, estimator in methods.items():
            seconds = cpu_seconds(lambda e=estimator: e.fit(X, y))  # noqa: B023
            with warnings.catch_warnings():  # heavy tails: some are far outside
                warnings.simplefilter("ignore", UserWarning)
                scores = estimator.score_samples(X_new, y_new)
            rows.append(
                [
                    f"{n:,}",
                    name,
                    f"{scores.mean():.3f}",
                    f"{scores.std() / np.sqrt(n_new):.3f}",
                    estimator.n_neighbors_,
                    f"{seconds:.1f}",
                ]
            )
    report.table(
        f"g-and-k, 4 parameters, 7 octiles of 200: log-density of {n_new} new pairs",
        ["N", "method", "mean, nats", "s.e.", "k", "fit, CPU s"],
        rows,
    )


# Speed.


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
    report = Report("abc", quick=quick)
    n = 100_000 if quick else 1_000_000
    if quick:
        against_one_percent(report, 8, 1, 10_000)
        rate(report, 16, 8, (1000, 10_000))
        held_out_density(report, (10_000,), 100)
    else:
        against_one_percent(report, 16, 3, 100_000)
        rate(report, 32, 30, (3000, 30_000, 300_000))
        held_out_density(report, (10_000, 100_000), 300)
    speed(report, n, n // 500, turns=3 if quick else 9)
    many_observations(report, n, n // 500, 100 if quick else 1000)
    memory(report, n)
    report.save()


if __name__ == "__main__":
    main()
