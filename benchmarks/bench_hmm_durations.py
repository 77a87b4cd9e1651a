"""Hidden Markov models: durations, columns of several kinds, and later families.

States that last about equally long each time, by geometric and by negative binomial
durations, against hmmlearn's models; three families on which nothing was chosen; and
tables of measurements, counts and categories, whose kinds are given, found or ignored.
Ours is given the number of states; hmmlearn's models have five starts and keep the
likeliest. Needs `hmmlearn` (extra `bench`).

    python benchmarks/bench_hmm_durations.py [--quick]
"""

import itertools
import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_families import DURATIONS, LATER, MIXED, Mixed, simulated
from _hmm_problems import accuracy, best_of_starts
from bench_hmm import compared, fitted, log_density, spread_out
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.hmm import DirichletProcessHMM

STEPS = 5  # ahead, at which states are forecast


def forecast_error(fit, X, states, label_of, n_origins=20):
    """Mean Brier score of the states some steps after origins along a series."""
    origins = np.linspace(100, len(X) - STEPS - 1, n_origins).astype(int)
    errors = []
    for t in origins:
        ahead = fit.forecast(STEPS, X[max(0, t - 150) : t]).state_probabilities[-1]
        truth = np.eye(len(ahead))[label_of[states[t + STEPS - 1]]]
        errors.append(((ahead - truth) ** 2).sum())
    return np.mean(errors)


def durations(titles, seed):
    """Accuracy, log density and forecasts of states, by kind of duration."""
    table = []
    for title in titles:
        X, _, new, new_states, k = simulated(title, seed)
        for name in ("GaussianHMM", "geometric", "negative_binomial"):
            if name == "GaussianHMM":
                rows, ahead = spread_out(X, seed), spread_out(new, seed)
                fit, seconds, _ = fitted(name, rows, k, seed)
                cells = [f"{log_density(name, fit, ahead):.3f}", "-", "-", "-"]
                share, _ = accuracy(new_states, fit.predict(ahead), k)
            else:
                fit, seconds, warned = timed(X, k, seed, duration=name)
                share, label_of = accuracy(new_states, fit.predict(new), k)
                error = forecast_error(fit, new, new_states, label_of)
                least = fit.n_stages_samples_.mean(axis=0)
                cells = [f"{fit.score(new):.3f}", f"{error:.3f}"]
                cells.append(" ".join(f"{r:.1f}" for r in least))
                cells.append("yes" if warned else "no")
            table.append([title, name, f"{share:.3f}", *cells, f"{seconds:.1f}"])
    return table


def timed(X, k, seed, **parameters):
    """Return our fit, its CPU seconds, and whether it warned."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        fit = DirichletProcessHMM(k, random_state=seed, **parameters).fit(X)
    return fit, time.process_time() - start, bool(caught)


def mixed(seeds, n_test=3000):
    """Accuracy and log density of new rows, by what is known of the columns.

    The density of "auto" is left out: it takes categories for measurements, whose
    density is no probability.
    """
    table = []
    for title, seed in itertools.product(MIXED, seeds):
        family = Mixed(title)
        k = len(family.states)
        X, _ = family.draw(1500, (seed, 0))
        new, states = family.draw(n_test, (seed, 1))
        spread, ahead = of_columns(X, seed), of_columns(new, seed)
        given, seconds, warned = timed(X, k, seed, emission=family.kinds)
        auto, *_ = timed(X, k, seed)
        continuous, *_ = timed(spread, k, seed)
        peer = best_of_starts("GaussianHMM", spread, k, "full")
        nats, found = family.truth(new)
        paths = [found, *(fit.predict(new) for fit in (given, auto))]
        paths += [fit.predict(ahead) for fit in (continuous, peer)]
        scores = [nats, given.score(new), continuous.score(ahead)]
        scores.append(log_density("GaussianHMM", peer, ahead))
        shares = [accuracy(states, path, k)[0] for path in paths]
        cells = [f"{value:.3f}" for value in (*shares, *scores)]
        cells += [f"{given.r_hat_:.2f}", "yes" if warned else "no", f"{seconds:.1f}"]
        table.append([title, seed, *cells])
    return table


def of_columns(X, seed):
    """Columns of whole numbers spread out, as `spread_out` does."""
    columns = enumerate(X.T)
    return np.column_stack([spread_out(x, (seed, f)) for f, x in columns])


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_durations", quick=quick)
    report.table(
        "Durations: 1,500 rows learnt, states and density of 3,000 new rows, Brier "
        f"score of the state {STEPS} rows ahead",
        [
            *("states last", "durations", "accuracy", "nats a row", "Brier"),
            *("r", "warns", "CPU s"),
        ],
        durations(list(DURATIONS)[:2] if quick else DURATIONS, 0),
    )
    table = []
    for title in LATER:
        for seed in range(1 if quick else 2):
            X, states, new, _, k = simulated(title, seed)
            table.append([title, seed, *compared(X, new, k, seed, states)])
    three = ["Gaussian", "GMM", "ours"]
    report.table(
        "Families made after the model: 1,500 rows; nats a row of 3,000 new rows",
        [
            *("family", "seed", *(f"accuracy, {name}" for name in three)),
            *(f"nats, {name}" for name in three),
            *("R-hat", "warns", *(f"CPU s, {name}" for name in three)),
        ],
        table,
    )
    names = ["truth", "kinds given", "auto", "continuous", "GaussianHMM"]
    report.table(
        "Columns of several kinds: 1,500 rows learnt, states and density of 3,000 new "
        "rows; for continuous and GaussianHMM, whole numbers are spread out",
        [
            *("family", "seed", *(f"accuracy, {name}" for name in names)),
            *(f"nats, {name}" for name in names if name != "auto"),
            *("R-hat, kinds given", "warns", "CPU s"),
        ],
        mixed(range(1 if quick else 2)),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
