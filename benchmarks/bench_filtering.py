"""Particle filters: speed and accuracy against `particles`, and what clusters gain.

The peer is left out if it is not installed. `particles` 0.4 requires numpy < 2, but
runs with 2: use ``pip install --no-deps particles``. Both libraries resample
systematically below half the effective size.

    python benchmarks/bench_filtering.py [--quick]
"""

import warnings

import numpy as np
from _filtering_models import linear, run_peer, volatility
from _filtering_problems import (
    CLUSTERED,
    PLAIN,
    Folded,
    tracker,
    volatility_log_likelihood,
)
from _harness import Report, arguments, interleaved, median_ratio

warnings.filterwarnings("ignore", module="particles")  # NumPy's deprecations

SQMC = {"method": "sqmc"}


def problems(n_rows):
    return {
        "volatility, d = 1": volatility(n_rows),
        "linear, d = 2": linear(n_rows, 2),
        "linear, d = 4": linear(n_rows, 4),
    }


def speed(report, sizes, n_turns):
    """CPU time for a row, with models in NumPy and compiled by numba."""
    table = []
    for method, n, n_rows in sizes:
        for problem, (X, model, compiled, peer) in problems(n_rows).items():
            qmc = method == "sqmc"
            ours = [
                tracker(m, n, **(SQMC if qmc else PLAIN)) for m in (model, compiled)
            ]
            actions = {
                "numpy": lambda f=ours[0], X=X: f.fit(X),
                "compiled": lambda f=ours[1], X=X: f.fit(X),
            }
            if peer is not None:
                actions["particles"] = lambda p=peer, n=n, q=qmc: run_peer(p, n, q)
            seconds = interleaved(actions, n_turns)
            row = [method, f"{n:,}", problem]
            row += [f"{1e6 * np.median(s) / n_rows:.0f}" for s in seconds.values()]
            row += (
                [
                    f"{median_ratio(seconds, 'particles', name):.1f}"
                    for name in ("numpy", "compiled")
                ]
                if peer is not None
                else ["-"] * 3
            )
            table.append(row)
    report.table(
        "CPU time for a row, us; the peer's time in units of ours",
        [
            *("method", "particles", "problem", "NumPy model", "compiled model"),
            *("particles 0.4", "ratio, NumPy", "ratio, compiled"),
        ],
        table,
    )


def accuracy(report, n_rows, sizes):
    """Squared errors of the log-likelihood, whose exponential is unbiased."""
    table = []
    for problem, (X, model, _, peer) in problems(n_rows).items():
        if hasattr(model, "kalman"):
            exact = model.kalman(X)[2].sum()
        else:
            exact = volatility_log_likelihood(model, X)
        for n, (n_runs, n_peer_runs) in sizes.items():
            errors = {
                name: log_likelihoods(model, X, n, n_runs, **parameters) - exact
                for name, parameters in {"bootstrap": PLAIN, "sqmc": SQMC}.items()
            }
            errors["particles"] = np.array([np.nan])
            if peer is not None:
                np.random.seed(0)  # noqa: NPY002 (the peer uses the global state)
                found = [run_peer(peer, n, qmc=True) for _ in range(n_peer_runs)]
                errors["particles"] = np.array(found) - exact
            squares = {name: np.mean(e**2) for name, e in errors.items()}
            ratios = np.exp(errors["sqmc"])
            error = ratios.std() / np.sqrt(n_runs)
            table.append(
                [
                    *(problem, f"{n:,}", f"{n_runs}, {n_peer_runs}"),
                    *(f"{square:.2e}" for square in squares.values()),
                    f"{squares['bootstrap'] / squares['sqmc']:.0f}",
                    ratio_of_squares(errors["sqmc"], errors["particles"]),
                    f"{ratios.mean():.4f} ± {error:.4f}",
                ]
            )
    report.table(
        f"Mean squared error of the log-likelihood of {n_rows} rows; runs of ours, and "
        "of the peer",
        [
            *(
                "problem",
                "particles",
                "runs",
                "bootstrap",
                "sqmc",
                "particles 0.4, qmc",
            ),
            *("bootstrap / sqmc", "sqmc / particles", "likelihood / exact, sqmc"),
        ],
        table,
    )


def ratio_of_squares(ours, theirs):
    """Ratio of mean squares, and its standard error by the delta method."""
    squares = [ours**2, theirs**2]
    ratio = np.mean(squares[0]) / np.mean(squares[1])
    shares = [np.std(s) / np.sqrt(len(s)) / np.mean(s) for s in squares]
    return f"{ratio:.2f} ± {ratio * np.hypot(*shares):.2f}"


def log_likelihoods(model, X, n_particles, n_runs, **parameters):
    found = [
        tracker(model, n_particles, seed, **parameters).fit(X).log_likelihood_
        for seed in range(n_runs)
    ]
    return np.array(found)


def one_mode(report, n_sets, n_runs):
    """Stochastic volatility of section 4.1, where clusters have nothing to keep."""
    table, variances = [], {}
    for name, parameters in CLUSTERED.items():
        ratios, spreads, ancestors, sizes, resamplings = [], [], [], [], []
        for data in range(n_sets):
            X, model, *_ = volatility(40, seed=data)
            exact = volatility_log_likelihood(model, X)
            found = [
                tracker(model, 1000, seed, **parameters).fit(X)
                for seed in range(n_runs)
            ]
            logs = np.array([f.log_likelihood_ for f in found])
            spreads.append(logs.var(ddof=1))
            ratios += list(np.exp(logs - exact))
            ancestors += [len(f.ancestors_) for f in found]
            sizes += [f.ess_ for f in found]
            resamplings += [f.n_resamplings_ for f in found]
        variances[name] = np.array(spreads)
        against = np.exp(np.mean(np.log(variances[name] / variances["plain"])))
        error = np.std(ratios) / np.sqrt(len(ratios))
        table.append(
            [
                *(name, f"{np.mean(spreads):.4f}", f"{against:.2f}"),
                f"{np.mean(ratios):.3f} ± {error:.3f}",
                *(f"{np.mean(v):.1f}" for v in (ancestors, sizes, resamplings)),
            ]
        )
    report.table(
        f"One mode: volatility, 1,000 particles, 40 rows, {n_sets} series of {n_runs} "
        "runs",
        [
            *("filter", "variance of log-likelihood", "ratio to plain"),
            *("likelihood / exact", "ancestors", "ess", "resamplings"),
        ],
        table,
    )


def eight_modes(report, n_runs):
    """Count the modes that are alive, of eight symmetric ones."""
    model, table = Folded(), []
    for n in (500, 100):
        for name, parameters in CLUSTERED.items():
            alive, masses = [], []
            for seed in range(n_runs):
                found = tracker(model, n, seed, **parameters)
                counts = []
                for row in model.rows(200, seed):
                    found.partial_fit(row[None])
                    octants = (found.particles_ > 0) @ [1, 2, 4]
                    counts.append(len(np.unique(octants)))
                alive.append([counts[50], counts[-1], np.sum(np.array(counts) == 8)])
                mass = np.bincount(octants, found.weights_, 8)
                masses.append(0.5 * np.abs(mass - 1 / 8).sum())
            quarter, end, steps = np.mean(alive, axis=0)
            table.append(
                [
                    *(name, n, f"{quarter:.1f}", f"{end:.1f}", f"{steps:.0f}"),
                    f"{np.mean(masses):.2f}",
                ]
            )
    report.table(
        f"Eight symmetric modes over 200 rows, {n_runs} runs",
        [
            *("filter", "particles", "modes at row 50", "modes at the end"),
            *("rows with all eight", "total variation at the end"),
        ],
        table,
    )


def main():
    options = arguments(__doc__)
    report = Report("filtering", quick=options.quick)
    quick = options.quick
    share = 10 if quick else 1
    sizes = [
        ("bootstrap", 1000, 1000 // share),
        ("bootstrap", 10_000, 200 // share),
        ("sqmc", 1024, 500 // share),
        ("sqmc", 16_384, 50 // share),
    ]
    speed(report, sizes, n_turns=3 if quick else 7)
    accuracy(
        report, 40, {1024: (12, 3)} if quick else {1024: (400, 400), 4096: (150, 50)}
    )
    one_mode(report, 2 if quick else 8, 20 if quick else 150)
    eight_modes(report, 2 if quick else 20)
    report.save()


if __name__ == "__main__":
    main()
