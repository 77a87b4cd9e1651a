"""Calibration of the posteriors of ABCPosteriorKDE, also on new tasks.

1. Simulation-based calibration (Talts et al., 2018): parameters are drawn from the
   prior, data simulated, and 99 draws taken from the posterior. The rank of the
   parameter among its draws is uniform if the posteriors are calibrated. 300 ranks a
   parameter; the p-value is that of the chi-squared statistic of ten bins, the
   smallest of the parameters times their number.
2. Two tasks that were not looked at while the rules of "cv" were chosen: the Gaussian
   with a uniform prior (Lueckmann et al., 2021), and the moving average of order 2
   (Marin et al., 2012) by its first two autocovariances.
3. Rounds: one of 4,000 simulations against two of 2,000, of which the second is drawn
   from the prior where the posterior of the first is.
"""

import warnings

import numpy as np
from _abc_tasks import TASKS, Task, uniform
from _harness import Report, arguments
from scipy.stats import chi2

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate

N_DRAWS, N_BINS = 99, 10


def gaussian_uniform(theta, rng):
    """Ten means, each seen once with variance 0.1."""
    return theta + rng.normal(0, np.sqrt(0.1), size=theta.shape)


def triangle(n, rng):
    """Draw coefficients of invertible moving averages, uniformly."""
    draws = np.empty((0, 2))
    while len(draws) < n:
        theta = rng.uniform([-2, -1], [2, 1], size=(4 * n, 2))
        inside = (theta.sum(axis=1) > -1) & (theta[:, 0] - theta[:, 1] < 1)
        draws = np.concatenate([draws, theta[inside]])
    return draws[:n]


def moving_average(theta, rng, length=100):
    """Return the autocovariances of lags 1 and 2, over the variance."""
    noise = rng.normal(size=(len(theta), length + 2))
    series = noise[:, 2:] + theta[:, :1] * noise[:, 1:-1] + theta[:, 1:] * noise[:, :-2]
    square = np.square(series).mean(axis=1)
    lags = [(series[:, k:] * series[:, :-k]).sum(axis=1) / length for k in (1, 2)]
    return np.column_stack([lags[0], lags[1], square])


PRIOR, BOUNDS = uniform(-1, 1, 10)
NEW = {
    "Gaussian, uniform prior": Task(PRIOR, gaussian_uniform, BOUNDS),
    "moving average": Task(triangle, moving_average, np.array([[-2, 2], [-1, 1.0]])),
}


def p_value(ranks):
    """Bonferroni's p-value of uniform ranks, of shape (n_pairs, n_parameters)."""
    n_pairs, width = ranks.shape
    counts = [np.histogram(r, N_BINS, (-0.5, N_DRAWS + 0.5))[0] for r in ranks.T]
    expected = n_pairs / N_BINS
    statistics = np.square(np.array(counts) - expected).sum(axis=1) / expected
    return min(1.0, width * chi2.sf(statistics, N_BINS - 1).min())


def coverage(ranks, level=0.9):
    """Share of the parameters within their central interval."""
    low = (1 - level) / 2 * (N_DRAWS + 1)
    inside = (ranks >= low) & (ranks <= N_DRAWS - low)
    return inside.mean()


def calibration(report, tasks, n, n_pairs):
    rows = []
    for name, task in tasks.items():
        rng = np.random.default_rng(7)
        y = task.prior(n, rng)
        X = task.simulator(y, rng)
        y_new = task.prior(n_pairs, rng)
        X_new = task.simulator(y_new, rng)
        for method, parameters in {
            "default": {},
            "linear, Silverman": {"adjustment": "linear", "bandwidth": "silverman"},
        }.items():
            model = ABCPosteriorKDE(bounds=task.bounds, random_state=0, **parameters)
            with warnings.catch_warnings():  # heavy tails: some are far outside
                warnings.simplefilter("ignore", UserWarning)
                model.fit(X, y)
                draws = model.sample(X_new, N_DRAWS, random_state=0)
                score = model.score_samples(X_new, y_new)
            ranks = (draws < y_new[:, None]).sum(axis=1)
            rows.append(
                [
                    name,
                    "new" if name in NEW else "seen before",
                    method,
                    f"{p_value(ranks):.3f}",
                    f"{coverage(ranks):.3f}",
                    f"{score.mean():.2f} ± {score.std() / np.sqrt(n_pairs):.2f}",
                ]
            )
    report.table(
        f"{n:,} simulations, {n_pairs} new pairs: uniformity of the ranks, coverage of "
        "the central 90 % intervals, log-density of the true parameters",
        ["task", "", "method", "p-value", "coverage", "nats"],
        rows,
    )


def rounds(report, tasks, n, n_observed):
    rows = []
    for name, task in tasks.items():
        rng = np.random.default_rng(8)
        one, two = [], []
        for seed in range(n_observed):
            theta = task.prior(1, rng)
            observed = task.simulator(theta, rng)
            table = simulate(
                task.prior, task.simulator, n, random_state=seed, bounds=task.bounds
            )
            model = ABCPosteriorKDE(random_state=0).fit(table)
            one.append(model.log_density(observed, theta)[0, 0])
            half = simulate(
                task.prior,
                task.simulator,
                n // 2,
                random_state=seed,
                bounds=task.bounds,
            )
            first = ABCPosteriorKDE(random_state=0).fit(half)
            table = simulate(
                task.prior,
                task.simulator,
                n // 2,
                random_state=seed + 1000,
                bounds=task.bounds,
                proposal=first,
                observed=observed,
            )
            second = ABCPosteriorKDE(random_state=0).fit(table)
            two.append(second.log_density(observed, theta)[0, 0])
        gain = np.subtract(two, one)
        rows.append(
            [
                name,
                f"{np.mean(one):.2f}",
                f"{np.mean(two):.2f}",
                f"{gain.mean():+.2f} ± {gain.std(ddof=1) / np.sqrt(n_observed):.2f}",
            ]
        )
    report.table(
        f"Log-density of the true parameters, {n_observed} observations: one round of "
        f"{n:,} simulations, two of {n // 2:,}",
        ["task", "one round", "two rounds", "difference"],
        rows,
    )


def main():
    quick = arguments(__doc__).quick
    report = Report("abc_calibration", quick=quick)
    seen = {name: TASKS[name] for name in ("two moons", "Gaussian mixture")}
    if quick:
        calibration(report, {"two moons": seen["two moons"]}, 2_000, 100)
        rounds(report, {"two moons": seen["two moons"]}, 1_000, 2)
    else:
        calibration(report, {**NEW, **seen}, 10_000, 300)
        rounds(report, {**NEW, **seen}, 4_000, 10)
    report.save()


if __name__ == "__main__":
    main()
