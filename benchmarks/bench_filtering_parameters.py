"""Coverage of the true parameters by posterior intervals from PMMH.

Parameters are drawn from their priors, rows from the model with these parameters; 90 %
intervals of an exact posterior then cover in 90 % of data sets, for each parameter.
Each data set that is done is noted in `results/filtering_parameters_stages.json`, so
that a run that was stopped goes on; the file is removed at the end.

    python benchmarks/bench_filtering_parameters.py [--quick]
"""

import warnings
from functools import partial

import numpy as np
from _harness import Report, arguments
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import ClusteredParticleFilter, ParticleMarginalMetropolis
from skpacbayes.filtering.models import (
    LinearObservations,
    LocalLevel,
    StochasticVolatility,
)

LEVEL = 0.9


class Ricker(LinearObservations):
    """A population that overshoots, on the scale of logarithms, seen with noise."""

    n_noise, observation_matrix, observation_covariance = 1, [[1.0]], [[0.05]]

    def __init__(self, growth=1.0, noise=0.2):
        self.growth = growth
        self.noise = noise

    def initial(self, z):
        """States at row 0."""
        return 0.3 * z

    def transition(self, x, z, t):
        """States at row t."""
        return x + self.growth * (1 - np.exp(x)) + self.noise * z


PROBLEMS = {
    "level": (
        LocalLevel(0.0, 1.0),
        {
            "model__transition_variance": stats.invgamma(3, scale=0.5),
            "model__observation_variance": stats.invgamma(3, scale=2.0),
        },
    ),
    "volatility": (
        StochasticVolatility(),
        {
            "model__phi": stats.beta(10, 2),
            "model__sigma": stats.gamma(6, scale=0.1),
            "model__beta": stats.gamma(9, scale=0.1),
        },
    ),
    "population": (
        Ricker(),
        {
            "model__growth": stats.uniform(0.2, 2.3),
            "model__noise": stats.gamma(4, scale=0.05),
        },
    ),
}


def rows_of(model, n_rows, rng):
    """Rows drawn from a model."""
    if hasattr(model, "observe"):
        model = model.observe(np.zeros((1, 1)))
    x, X = model.initial(rng.normal(size=(1, 1))), []
    for t in range(n_rows):
        if t:
            x = model.transition(x, rng.normal(size=(1, 1)), t)
        X.append(model.observation(x, rng.normal(size=(1, 1)), t)[0])
    return np.array(X)


def one_set(problem, seed, n_rows, burn_in, n_iter):
    """Return which parameters are covered, the acceptance rate, and R-hat."""
    model, priors = PROBLEMS[problem]
    rng = np.random.default_rng([seed, n_rows])
    truth = {n: float(prior.rvs(random_state=rng)) for n, prior in priors.items()}
    tracker = ClusteredParticleFilter(
        model, method="sqmc", n_particles=64, proposal="prior"
    )
    tracker.set_params(**truth)
    X = rows_of(tracker.model, n_rows, rng)
    sampler = ParticleMarginalMetropolis(
        tracker, priors, n_chains=1, burn_in=burn_in, n_iter=n_iter, random_state=seed
    )
    with warnings.catch_warnings():  # one short chain: R-hat is in the table
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = sampler.fit(X).intervals(LEVEL)
    covered = [bool(low < truth[n] < high) for n, (low, high) in found.items()]
    return [covered, float(sampler.acceptance_rate_), float(sampler.r_hat_)]


def coverage(report, n_sets, *sizes):
    """Share of data sets whose intervals cover, one stage for each data set."""
    table = []
    for problem, (_, priors) in PROBLEMS.items():
        found = [
            report.stage(
                f"{problem} {seed} {sizes}",
                partial(one_set, problem, seed, *sizes),
            )
            for seed in range(n_sets)
        ]
        covered, rates, r_hats = zip(*found, strict=True)
        for name, share in zip(priors, np.mean(covered, axis=0), strict=True):
            table.append(
                [
                    *(problem, name.removeprefix("model__"), f"{100 * share:.0f} %"),
                    f"{np.mean(rates):.2f}",
                    f"{np.median(r_hats):.2f}",
                ]
            )
    n_rows, burn_in, n_iter = sizes
    report.table(
        f"Share of {n_sets} data sets of {n_rows} rows whose 90 % interval covers the "
        f"parameter; one chain of {n_iter} iterations after {burn_in}",
        ["problem", "parameter", "covered", "acceptance rate", "median R-hat"],
        table,
    )
    report.save()


def main():
    quick = arguments(__doc__).quick
    report = Report("filtering_parameters", quick=quick)
    coverage(report, *((3, 20, 50, 50) if quick else (50, 20, 150, 500)))


if __name__ == "__main__":
    main()
