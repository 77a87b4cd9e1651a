"""Hidden Markov models: eight simulated families, against all peers that are installed.

hmmlearn's, dynamax's and pomegranate's models have five starts and keep the likeliest;
ours is given the number of states, and nothing else. Needs `hmmlearn` (extra `bench`);
`dynamax` and `pomegranate` are left out where they are not installed.

    python benchmarks/bench_hmm_peers.py [--quick]
"""

import importlib.util
import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_families import simulated
from _hmm_more_peers import Dynamax, Pomegranate
from _hmm_problems import accuracy
from bench_hmm import fitted, log_density, spread_out

FAMILIES = [
    *("skew t", "interleaved mixtures", "correlations, d = 2", "calm and nervous t"),
    *("five levels", "overdispersed counts", "two modes, d = 3", "semi-Markov"),
]


def more_peers(X):
    """Return what is installed: {name: a function of nothing that gives a model}."""
    found = {}
    if importlib.util.find_spec("dynamax"):
        kinds = ["GaussianHMM", "GaussianMixtureHMM"]
        if (np.floor(X) == X).all():
            kinds.append("PoissonHMM")
        for kind in kinds:
            found[f"dynamax {kind}"] = lambda kind=kind: Dynamax(kind)
    if importlib.util.find_spec("pomegranate"):
        found["pomegranate"] = Pomegranate
    return found


def family(title, seed=0):
    """Return rows of the table: accuracy and log density of new rows, and seconds."""
    X, _, new, states, k = simulated(title, seed)
    spread, ahead, table = spread_out(X, seed), spread_out(new, seed), []

    def add(name, path, nats, seconds):
        share, _ = accuracy(states, path, k)
        table.append([title, name, f"{share:.3f}", f"{nats:.3f}", f"{seconds:.1f}"])

    for name in ("ours", "GaussianHMM", "GMMHMM"):
        rows, later = (X, new) if name == "ours" else (spread, ahead)
        fit, seconds, _ = fitted(name, rows, k, seed)
        path = np.zeros(len(new), int) if fit is None else fit.predict(later)
        nats = np.nan if fit is None else log_density(name, fit, later)
        label = name if name == "ours" else f"hmmlearn {name}"
        add(label, path, nats, seconds)
    for name, peer in more_peers(X).items():
        counts = name.endswith("PoissonHMM")
        rows, later = (X, new) if counts else (spread, ahead)
        start = time.process_time()
        fit = peer().fit(rows, k)
        seconds = time.process_time() - start
        add(name, fit.predict(later), fit.score(later), seconds)
    return table


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_peers", quick=quick)
    titles = FAMILIES[:1] if quick else FAMILIES
    report.table(
        "1,500 rows learnt; states and nats a row of 3,000 new rows",
        ["family", "method", "accuracy", "nats a row", "CPU s"],
        [row for title in titles for row in family(title)],
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
