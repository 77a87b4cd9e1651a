"""Parameters by SMC2 and by ParticleMarginalMetropolis, at equal CPU time.

Parameters are drawn from their priors, rows from the model with these parameters. For
the local level the posterior and the evidence are known, by quadrature over a grid and
the Kalman filter.

    python benchmarks/bench_filtering_smc2.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from bench_filtering_parameters import PROBLEMS, rows_of
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import SMC2, ClusteredParticleFilter, ParticleMarginalMetropolis

LEVEL = 0.9
GRID = np.geomspace(2e-3, 60.0, 300)
METHODS = "SMC2", "PMMH"


def exact_level(X, priors):
    """Return means and standard deviations of both variances, and the evidence."""
    steps, noises = np.meshgrid(GRID, GRID, indexing="ij")
    mean, variance, total = np.zeros_like(steps), np.ones_like(steps), 0.0
    for t, y in enumerate(X[:, 0]):
        variance = variance + steps * (t > 0)
        spread = variance + noises
        total = total - 0.5 * (np.log(2 * np.pi * spread) + (y - mean) ** 2 / spread)
        gain = variance / spread
        mean, variance = mean + gain * (y - mean), (1 - gain) * variance
    step, noise = priors.values()
    total = total + step.logpdf(GRID)[:, None] + noise.logpdf(GRID)
    widths = np.gradient(GRID)
    masses = np.exp(total - total.max()) * np.outer(widths, widths)
    evidence = np.log(masses.sum()) + total.max()
    masses /= masses.sum()
    moments = []
    for values in (steps, noises):
        center = (masses * values).sum()
        moments.append((center, np.sqrt((masses * (values - center) ** 2).sum())))
    return moments, evidence


def samplers(problem, X, seed, n_draws):
    """Fit both for the same CPU time; return them, and the time."""
    model, priors = PROBLEMS[problem]
    tracker = ClusteredParticleFilter(
        model, method="sqmc", n_particles=64, proposal="prior"
    )
    first = SMC2(tracker, priors, n_draws=n_draws, random_state=seed)
    seconds = cpu_seconds(lambda: first.fit(X))
    settings = {"n_chains": 1, "random_state": seed}
    trial = ParticleMarginalMetropolis(
        tracker, priors, burn_in=0, n_iter=20, **settings
    )
    n_iter = int(30 * seconds / cpu_seconds(lambda: trial.fit(X)))  # 10 are its starts
    second = ParticleMarginalMetropolis(
        tracker, priors, burn_in=n_iter // 4, n_iter=n_iter - n_iter // 4, **settings
    )
    return (first, second.fit(X)), seconds


def one_problem(problem, n_sets, n_rows, n_draws):
    """Return coverage, widths, errors of means, of the evidence, and times."""
    _, priors = PROBLEMS[problem]
    covered, widths, errors, evidence, times = ([] for _ in range(5))
    for seed in range(n_sets):
        rng = np.random.default_rng([100, seed, n_rows])
        truth = {n: float(prior.rvs(random_state=rng)) for n, prior in priors.items()}
        tracker = ClusteredParticleFilter(PROBLEMS[problem][0]).set_params(**truth)
        X = rows_of(tracker.model, n_rows, rng)
        fitted, seconds = samplers(problem, X, seed, n_draws)
        times.append(seconds)
        intervals = [sampler.intervals(LEVEL) for sampler in fitted]
        covered.append(
            [[low < truth[n] < high for n, (low, high) in f.items()] for f in intervals]
        )
        widths.append([[high - low for low, high in f.values()] for f in intervals])
        if problem == "level":
            moments, exact = exact_level(X, priors)
            found = [
                [fitted[0].weights_ @ draws for draws in fitted[0].posterior_.values()],
                [draws.mean() for draws in fitted[1].posterior_.values()],
            ]
            centers, stds = np.transpose(moments)
            errors.append((np.array(found) - centers) / stds)
            evidence.append(fitted[0].log_evidence_ - exact)
    return covered, widths, errors, evidence, times


def compare(report, n_sets, n_rows, n_draws):
    """Both methods on each problem, a row for each method."""
    table = []
    for problem in PROBLEMS:
        covered, widths, errors, evidence, times = one_problem(
            problem, n_sets, n_rows, n_draws
        )
        ratios = np.array(widths)[:, 0] / np.array(widths)[:, 1]
        for i, method in enumerate(METHODS):
            error, gap = "", ""
            if errors:
                error = f"{np.sqrt(np.mean(np.square(errors)[:, i])):.2f}"
                gap = f"{np.mean(evidence):.2f} +- {np.std(evidence):.2f}"
            table.append(
                [
                    *(problem, method, f"{np.median(times):.1f}"),
                    f"{100 * np.mean(np.array(covered)[:, i]):.0f} %",
                    f"{np.median(ratios):.2f}" if i == 0 else "1",
                    *(error, gap if i == 0 else "none"),
                ]
            )
    report.table(
        f"{n_sets} data sets of {n_rows} rows; SMC2 with {n_draws} draws, one chain of "
        "PMMH of the same CPU time; 90 % intervals over all parameters; error of the "
        "posterior means against quadrature in posterior standard deviations (root "
        "mean square)",
        [
            *("problem", "method", "CPU s", "covered", "width / PMMH's"),
            *("error of the mean", "error of the log evidence"),
        ],
        table,
    )
    report.save()


def main():
    quick = arguments(__doc__).quick
    report = Report("filtering_smc2", quick=quick)
    with warnings.catch_warnings():  # one short chain: its R-hat
        warnings.simplefilter("ignore", ConvergenceWarning)
        compare(report, *((2, 15, 20) if quick else (8, 40, 60)))


if __name__ == "__main__":
    main()
