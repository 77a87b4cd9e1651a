"""Coverage of the true parameters by intervals of maximum likelihood, beside PMMH.

Models, priors and rows are those of `bench_filtering_parameters.py`, with more rows, as
the intervals are asymptotic. Maximum likelihood searches where the priors are, and has
no other use of them. For the local level, the exact maximum is that of statsmodels,
with Wald intervals on logarithms. Each data set and method that is done is noted in
`results/filtering_likelihood_stages.json`, so that a run that was stopped goes on; the
file is removed at the end.

    python benchmarks/bench_filtering_likelihood.py [--quick]
"""

import time
import warnings

import numpy as np
from _harness import Report, arguments
from bench_filtering_parameters import LEVEL, PROBLEMS, rows_of
from scipy.stats import norm

from skpacbayes import (
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
    ParticleMaximumLikelihood,
)

try:
    from statsmodels.tsa.statespace.structural import UnobservedComponents
except ImportError:
    UnobservedComponents = None
    print("statsmodels is not installed: it is left out.")

OURS, CHAIN, EXACT = "maximum likelihood", "PMMH", "statsmodels"


def exact_intervals(X):
    """Exact maximum of the local level, started at N(0, 1): Wald on logarithms."""
    model = UnobservedComponents(X[:, 0], "local level")
    model.ssm.initialize_known(np.zeros(1), np.eye(1))
    names = {
        "model__transition_variance": "sigma2.level",
        "model__observation_variance": "sigma2.irregular",
    }
    found = model.fit(disp=0)
    places = [found.param_names.index(name) for name in names.values()]
    best, errors = found.params[places], found.bse[places]
    reach = norm.ppf((1 + LEVEL) / 2) * errors / best
    low, high = best * np.exp(-reach), best * np.exp(reach)
    return dict(zip(names, zip(low, high, strict=True), strict=True))


def answers(problem, seed, n_rows, burn_in, n_iter):
    """Yield each method, and a function that judges its intervals."""
    model, priors = PROBLEMS[problem]
    rng = np.random.default_rng([seed, n_rows])
    truth = {n: float(prior.rvs(random_state=rng)) for n, prior in priors.items()}
    tracker = ClusteredParticleFilter(
        model, method="sqmc", n_particles=64, proposal="prior"
    )
    tracker.set_params(**truth)
    X = rows_of(tracker.model, n_rows, rng)
    methods = {
        OURS: lambda: (
            ParticleMaximumLikelihood(tracker, priors, random_state=seed)
            .fit(X)
            .intervals(LEVEL)
        ),
        CHAIN: lambda: (
            ParticleMarginalMetropolis(
                *(tracker, priors),
                **{"n_chains": 1, "burn_in": burn_in, "n_iter": n_iter},
                random_state=seed,
            )
            .fit(X)
            .intervals(LEVEL)
        ),
    }
    if problem == "level" and UnobservedComponents is not None:
        methods[EXACT] = lambda: exact_intervals(X)
    for method, ask in methods.items():
        yield method, lambda ask=ask: judged(ask, truth, priors)


def judged(ask, truth, priors):
    """Whether each parameter is covered, by an interval with ends, and CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():  # of estimates at a bound: counted in the table
        warnings.simplefilter("ignore")
        found = ask()
    seconds = time.process_time() - start
    covered, known = [], []
    for name, (low, high) in found.items():
        support = priors[name].support()
        known.append(bool(np.isfinite([low, high]).all() and low > support[0]))
        covered.append(bool(low <= truth[name] <= high))
    return [covered, known, seconds]


def coverage(report, n_sets, *sizes):
    """Share of data sets covered, one stage for each data set and method."""
    found = {}
    for seed in range(n_sets):
        for problem in PROBLEMS:
            for method, ask in answers(problem, seed, *sizes):
                one = report.stage(f"{problem}, {method}, {seed}, {sizes}", ask)
                found.setdefault((problem, method), []).append(one)
    table = []
    for problem, (_, priors) in PROBLEMS.items():
        for method in (OURS, CHAIN, EXACT):
            if (problem, method) not in found:
                continue
            covered, known, seconds = zip(*found[problem, method], strict=True)
            covered, known = np.array(covered), np.array(known)
            for j, name in enumerate(priors):
                within = covered[known[:, j], j]
                table.append(
                    [
                        *(problem, name.removeprefix("model__"), method),
                        f"{int(known[:, j].sum())}",
                        f"{100 * within.mean():.0f} %" if len(within) else "-",
                        f"{100 * covered[:, j].mean():.0f} %",
                        f"{np.median(seconds):.2f}",
                    ]
                )
    n_rows, burn_in, n_iter = sizes
    report.table(
        f"Intervals of 90 % on {n_sets} data sets of {n_rows} rows. An interval of "
        "maximum likelihood is the whole range where an estimate lies at a bound, "
        "which for phi counts as one; PMMH is one chain of "
        f"{n_iter} iterations after {burn_in}",
        [
            *("problem", "parameter", "method", "sets with an interval"),
            *("of these covered", "of all covered", "CPU s, median"),
        ],
        table,
    )
    report.save()


def main():
    quick = arguments(__doc__).quick
    report = Report("filtering_likelihood", quick=quick)
    coverage(report, *((2, 20, 20, 20) if quick else (50, 60, 100, 300)))


if __name__ == "__main__":
    main()
