"""Hidden Markov models: simulated families and real series, against all peers.

hmmlearn's, dynamax's and pomegranate's models have five starts and keep the likeliest;
ours is given the number of states, and nothing else. Needs `hmmlearn` (extra `bench`);
`dynamax` and `pomegranate` are left out where they are not installed. The seconds of
ours and pomegranate do not include compilation; dynamax compiles for each length.

    python benchmarks/bench_hmm_peers.py [--quick]
"""

import importlib.util
import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_families import real_series, simulated
from _hmm_more_peers import Dynamax, Hmmlearn, Pomegranate
from _hmm_problems import N_BATCHES, accuracy, error_of_mean
from bench_hmm import last_thirds, ours, spread_out

FAMILIES = [
    *("skew t", "interleaved mixtures", "correlations, d = 2", "calm and nervous t"),
    *("five levels", "overdispersed counts", "two modes, d = 3", "semi-Markov"),
]
N_WARM_UP = 150  # rows of an untimed fit
N_SEEDS = 3  # on real series: of ours, and of the spreading of counts, for densities


def peers(X):
    """Return what is installed: {name: a function of nothing that gives a model}."""
    kinds = "GaussianHMM", "GMMHMM"
    found = {f"hmmlearn {kind}": lambda kind=kind: Hmmlearn(kind) for kind in kinds}
    if importlib.util.find_spec("dynamax"):
        kinds = ["GaussianHMM", "GaussianMixtureHMM"]
        if (np.floor(X) == X).all():
            kinds.append("PoissonHMM")
        for kind in kinds:
            found[f"dynamax {kind}"] = lambda kind=kind: Dynamax(kind)
    if importlib.util.find_spec("pomegranate"):
        found["pomegranate"] = Pomegranate
    return found


def fitted(fit, given):
    """Return the fit to each that is given, and the mean of their CPU seconds."""
    start = time.process_time()
    found = [fit(each) for each in given]
    return found, (time.process_time() - start) / len(found)


def fits(X, k, seeds):
    """Yield names, lists of fits, seconds of one, and whether rows are not spread out.

    The first are fits of ours, one for each seed; peers have one for each spreading of
    counts. Instead of a list there is the name of the error if a fit has failed.
    """
    ours(X[:N_WARM_UP], k)
    yield "ours", *fitted(lambda seed: ours(X, k, seed), seeds), True
    for name, peer in peers(X).items():
        as_given = name.endswith("PoissonHMM")
        rows = [X] if as_given else spreadings(X, seeds)
        try:
            found, seconds = fitted(lambda X, peer=peer: peer().fit(X, k), rows)
        except (ValueError, ArithmeticError, RuntimeError) as error:
            found, seconds = type(error).__name__, np.nan
        yield name, found, seconds, as_given


def spreadings(X, seeds):
    """Return rows for densities: of counts one version for each seed."""
    first, *others = seeds
    rows = spread_out(X, first)
    return [rows] + [spread_out(X, seed) for seed in others if rows is not X]


def family(title, seed):
    """Return rows of the table: accuracy and log density of new rows, and seconds."""
    X, _, new, states, k = simulated(title, seed)
    table = []
    for name, found, seconds, as_given in fits(X, k, [seed]):
        if isinstance(found, str):
            table.append([title, name, found, "", ""])
            continue
        later = new if as_given else spread_out(new, seed)
        share, _ = accuracy(states, found[0].predict(later), k)
        nats = f"{found[0].score(later):.3f}"
        table.append([title, name, f"{share:.3f}", nats, f"{seconds:.1f}"])
    return table


def series(title, k, past, new, seeds):
    """Return rows of the table: log density of new rows, lead of ours, and seconds."""
    table, of_ours = [], None
    for name, found, seconds, as_given in fits(past, k, seeds):
        if isinstance(found, str):
            table.append([title, k, name, found, "", "", ""])
            continue
        later = [new] if as_given else spreadings(new, seeds)
        scores = [fit.score_samples(rows) for fit in found for rows in later]
        scores = np.mean(scores, axis=0)
        of_ours = scores if of_ours is None else of_ours
        gaps = of_ours - scores
        both = gaps.mean(), error_of_mean(gaps)
        lead = ["", ""] if name == "ours" else [f"{value:.3f}" for value in both]
        table.append([title, k, name, f"{scores.mean():.3f}", *lead, f"{seconds:.1f}"])
    return table


def compare(name, first_seed):
    """Save the tables under a name; seeds are those from the first one on."""
    quick, seeds = arguments(__doc__).quick, range(first_seed, first_seed + N_SEEDS)
    report = Report(name, quick=quick)
    titles = FAMILIES[:1] if quick else FAMILIES
    report.table(
        "1,500 rows learnt; states and nats a row of 3,000 new rows",
        ["family", "method", "accuracy", "nats a row", "CPU s"],
        [
            row
            for title in titles
            for row in report.stage(
                title, lambda title=title: family(title, first_seed)
            )
        ],
    )
    columns = ["series", "states", "method", "nats a row", "lead of ours"]
    report.table(
        f"Real series: the last third, given the others; ours is the mean of {N_SEEDS} "
        f"seeds, peers of counts of {N_SEEDS} spreadings; standard errors are of the "
        f"means of {N_BATCHES} batches of rows",
        [*columns, "standard error", "CPU s"],
        [
            row
            for one in list(last_thirds(real_series(), quick))[: 1 if quick else None]
            for row in report.stage(one[0], lambda one=one: series(*one, seeds))
        ],
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare("hmm_peers", first_seed=0)
