"""Error of the posterior of ABCPosteriorKDE, and the rate at which it falls.

Errors are relative integrated squared errors (ISE), the integral of the squared
difference from the exact posterior over that of its square, on problems where the
exact posterior is known. The comparison is a common choice by hand: the nearest 1 % of
the simulations, and Silverman's bandwidth.
"""

import warnings

import numpy as np
from _abc_problems import (
    LINE,
    PROBLEMS,
    conjugate,
    conjugate_density,
    conjugate_prior,
    g_and_k,
    g_and_k_prior,
)
from _harness import Report, arguments, cpu_seconds

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate


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


def main():
    quick = arguments(__doc__).quick
    report = Report("abc", quick=quick)
    if quick:
        against_one_percent(report, 8, 1, 10_000)
        rate(report, 16, 8, (1000, 10_000))
        held_out_density(report, (10_000,), 100)
    else:
        against_one_percent(report, 16, 3, 100_000)
        rate(report, 32, 30, (3000, 30_000, 300_000))
        held_out_density(report, (10_000, 100_000), 300)
    report.save()


if __name__ == "__main__":
    main()
