"""Coverage of exact intervals for the population model, and of chains beside them.

Intervals of `bench_filtering_likelihood.py` cover the growth rate less often than they
should. Here the likelihood of the same data sets is computed on a grid of states and
parameters, without particles. If exact intervals cover as rarely, the data sets are the
cause, or that maximum likelihood intervals are asymptotic; if not, the chains are too
short.

    python benchmarks/bench_filtering_exact.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments
from bench_filtering_parameters import LEVEL, PROBLEMS, rows_of
from scipy.stats import chi2, norm

from skpacbayes import ClusteredParticleFilter, ParticleMarginalMetropolis

MODEL, PRIORS = PROBLEMS["population"]
STATES = np.linspace(-5.6, 2.4, 267)
TAILS = (1 - LEVEL) / 2, (1 + LEVEL) / 2


def data_set(seed, n_rows):
    """Return true parameters and rows, those of `bench_filtering_likelihood.py`."""
    rng = np.random.default_rng([seed, n_rows])
    truth = {n: float(prior.rvs(random_state=rng)) for n, prior in PRIORS.items()}
    tracker = ClusteredParticleFilter(
        MODEL, method="sqmc", n_particles=64, proposal="prior"
    )
    tracker.set_params(**truth)
    return truth, tracker, rows_of(tracker.model, n_rows, rng)


def log_likelihoods(densities, growth, noise):
    """Return log-likelihoods of data sets, by a filter on a grid.

    `densities` (n_rows, n_sets, n_states): of the rows at each state of the grid.
    """
    width = STATES[1] - STATES[0]
    gaps = STATES - (STATES + growth * (1 - np.exp(STATES)))[:, None]
    ends = (gaps[..., None] + [-width / 2, width / 2]) / noise
    moves = np.diff(norm.cdf(ends), axis=-1)[..., 0]
    now, total = norm.pdf(STATES, scale=0.3) * width, 0.0
    for t, density in enumerate(densities):
        now = (now @ moves if t else now) * density
        sums = now.sum(axis=1)
        total = total + np.log(sums)
        now = now / sums[:, None]
    return total


class Exact:
    """Posteriors on a grid of parameters, whose cells have the same prior mass."""

    def __init__(self, X, n_cells):
        places = (np.arange(n_cells) + 0.5) / n_cells
        self.axes = [prior.ppf(places) for prior in PRIORS.values()]
        growths, noises = self.axes
        spread = np.sqrt(MODEL.observation_covariance[0][0])
        densities = norm.pdf(X.T[..., None], STATES, spread)
        self.logs = np.array(
            [[log_likelihoods(densities, g, s) for s in noises] for g in growths]
        )

    def below(self, number, axis, value):
        """Return the posterior probability of values below that of a parameter."""
        logs = self.logs[..., number]
        masses = np.exp(logs - logs.max()).sum(axis=1 - axis)
        sums = np.append(0.0, masses.cumsum()) / masses.sum()
        place = list(PRIORS.values())[axis].cdf(value)
        return float(np.interp(place, np.linspace(0, 1, len(sums)), sums))

    def in_profile(self, number, axis, value):
        """Return whether the profile likelihood interval covers a value."""
        logs = self.logs[..., number]
        here = np.interp(value, self.axes[axis], logs.max(axis=1 - axis))
        return 2 * (logs.max() - here) < chi2(1).ppf(LEVEL)


def exact_coverage(report, exact, truths, n_first):
    """Report coverage of exact intervals: the first data sets, and all."""
    table = []
    for axis, name in enumerate(PRIORS):
        found = np.array(
            [
                (
                    TAILS[0] < exact.below(i, axis, truth[name]) < TAILS[1],
                    exact.in_profile(i, axis, truth[name]),
                )
                for i, truth in enumerate(truths)
            ]
        )
        shares = [
            f"{100 * share:.0f} %"
            for some in (found[:n_first], found)
            for share in some.mean(axis=0)
        ]
        table.append([name.removeprefix("model__"), *shares])
    report.table(
        "Exact intervals of 90 %, share of data sets covered",
        [
            "parameter",
            f"posterior, first {n_first}",
            f"profile, first {n_first}",
            f"posterior, {len(truths)} data sets",
            f"profile, {len(truths)} data sets",
        ],
        table,
    )
    report.save()


def one_chain(seed, n_rows, burn_in, n_iter):
    """Return the chain's probability below each truth, its R-hat, and warnings."""
    truth, tracker, X = data_set(seed, n_rows)
    sampler = ParticleMarginalMetropolis(
        tracker, PRIORS, n_chains=1, burn_in=burn_in, n_iter=n_iter, random_state=seed
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draws = sampler.fit(X).posterior_
    below = [float((draws[name] < truth[name]).mean()) for name in PRIORS]
    return [below, sampler.r_hat_, len(caught) > 0]


def chains(report, exact, truths, n_sets, n_rows, sizes):
    """Report how far the posteriors of chains are from the exact ones."""
    table = []
    for burn_in, n_iter in sizes:
        found = [
            report.stage(
                f"{seed}, {n_rows}, {burn_in}, {n_iter}",
                lambda seed=seed, sizes=(burn_in, n_iter): one_chain(
                    seed, n_rows, *sizes
                ),
            )
            for seed in range(n_sets)
        ]
        below, r_hats, warned = map(np.array, zip(*found, strict=True))
        for axis, name in enumerate(PRIORS):
            known = np.array(
                [exact.below(i, axis, truths[i][name]) for i in range(n_sets)]
            )
            error = np.mean((below[:, axis] - known) ** 2)
            covered = [
                np.mean((TAILS[0] < own) & (own < TAILS[1]))
                for own in (known, below[:, axis])
            ]
            table.append(
                [
                    f"{n_iter} after {burn_in}",
                    name.removeprefix("model__"),
                    f"{np.mean(known * (1 - known)) / error:.0f}",
                    *(f"{100 * share:.0f} %" for share in covered),
                    f"{np.median(r_hats):.2f}",
                    f"{warned.sum()} of {n_sets}",
                ]
            )
    report.table(
        f"One chain beside the exact posterior, the first {n_sets} data sets; as many "
        "independent draws as the effective ones would have the same error",
        [
            *("iterations", "parameter", "effective draws", "exact covers"),
            *("chain covers", "median R-hat", "warned"),
        ],
        table,
    )
    report.save()


def main():
    quick = arguments(__doc__).quick
    report = Report("filtering_exact", quick=quick)
    n_all, n_first, n_chains, n_rows = (4, 2, 2, 20) if quick else (120, 50, 20, 60)
    sets = [data_set(seed, n_rows) for seed in range(n_all)]
    truths = [truth for truth, _, _ in sets]
    exact = Exact(np.array([X[:, 0] for _, _, X in sets]), 6 if quick else 32)
    exact_coverage(report, exact, truths, n_first)
    sizes = [(10, 20)] if quick else [(100, 300), (300, 1000)]
    chains(report, exact, truths, n_chains, n_rows, sizes)


if __name__ == "__main__":
    main()
