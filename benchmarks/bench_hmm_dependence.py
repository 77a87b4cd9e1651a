"""Warnings of hidden Markov models where rows depend on the rows before them.

Series that are no mixture of regimes, or more than one, should have a warning; true
hidden Markov models should not. Half of the fits choose the number of states. The
bounds of the warning were chosen on other seeds.

    python benchmarks/bench_hmm_dependence.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_families import (
    CONFIRMING,
    DURATIONS,
    FAMILIES,
    LATER,
    MIXED,
    Mixed,
    confirming_series,
    markov_chain,
    real_series,
)

from skpacbayes.datasets import make_hidden_markov
from skpacbayes.hmm import DirichletProcessHMM

FIRST_SEED = 400
AUTOREGRESSIVE = "autoregressions", "noise of four scales"
SAID = "Rows depend on the rows before", "Rows have a trend"


def autoregression(rng, n, d, phi):
    rows = rng.normal(size=(n + 200, d))
    for i in range(1, len(rows)):
        rows[i] += phi * rows[i - 1]
    return rows[200:]


def wave(rng, n, d):
    angle = 2 * np.pi * np.arange(n)[:, None] / rng.integers(12, 60)
    return np.sin(angle + rng.uniform(0, 2 * np.pi, d))


def two_levels(rng, n):
    return 3.0 * markov_chain(rng, 2, n, 0.97)[:, None]


def trend(rng, n):
    return rng.uniform(4, 12) * np.arange(n)[:, None] / n


def drift(rng, n, d):
    level = autoregression(rng, n, d, 0.995) / 10
    return rng.uniform(1.5, 4) * level + rng.normal(size=(n, d))


def count_walk(rng, n, d):
    return rng.poisson(np.exp(1.5 + 0.2 * autoregression(rng, n, d, 0.97)))


SERIES = {
    "trend": lambda rng, n, d: trend(rng, n) + rng.normal(size=(n, d)),
    "autoregression, .80 to .98": lambda rng, n, d: autoregression(
        rng, n, d, rng.uniform(0.8, 0.98)
    ),
    "season": lambda rng, n, d: (
        rng.uniform(1.5, 4) * wave(rng, n, d) + rng.normal(size=(n, d))
    ),
    "random walk": lambda rng, n, d: rng.normal(size=(n, d)).cumsum(axis=0),
    "slow drift": drift,
    "regimes and autoregression": lambda rng, n, d: (
        rng.uniform(1, 2) * two_levels(rng, n)
        + autoregression(rng, n, d, rng.uniform(0.7, 0.95))
    ),
    "regimes and trend": lambda rng, n, d: (
        two_levels(rng, n) + trend(rng, n) + rng.normal(size=(n, d))
    ),
    "counts with a season": lambda rng, n, d: rng.poisson(
        np.exp(1.5 + rng.uniform(0.5, 1) * wave(rng, n, d))
    ),
    "counts of a drifting rate": count_walk,
}


def fitted(X, n_states, seed, emission="auto"):
    """Return a fit, and what it said of dependence: a list."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DirichletProcessHMM(
            n_states, emission=emission, n_iter=100, burn_in=100, random_state=seed
        ).fit(np.asarray(X, dtype=float))
    messages = [str(warning.message) for warning in caught]
    return model, [message for message in messages if message.startswith(SAID)]


def dependent(count):
    """Count warnings by series, number of rows and choice of states."""
    found = {}
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        rng = np.random.default_rng((seed, 1))
        n, d = (200, 400, 800, 1500)[seed // 2 % 4], int(rng.integers(1, 4))
        for title, draw in SERIES.items():
            chosen = seed % 2 == 0
            model, said = fitted(draw(rng, n, d), "auto" if chosen else 2, seed)
            found.setdefault(title, []).append((n, bool(said), model.n_states_, chosen))
    table = []
    for title, rows in found.items():
        n, warned, k, chosen = np.transpose(rows)
        short = n == 200
        states = k[chosen > 0]
        table.append(
            [
                title,
                f"{warned[short].sum()} of {short.sum()}",
                f"{warned[~short].sum()} of {(~short).sum()}",
                f"{states.min()} to {states.max()}",
            ]
        )
        print(*table[-1], flush=True)
    return table


def independent(count):
    """Count warnings of true models, by number of states: given, chosen, too few."""
    found = {}
    families = FAMILIES | CONFIRMING | LATER | DURATIONS
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        rng = np.random.default_rng((seed, 2))
        sets = []
        for title, (draw, k) in families.items():
            if title not in AUTOREGRESSIVE:
                n = int(rng.choice([300, 600, 1200]))
                sets.append((title, draw(rng, n)[0].reshape(n, -1), k, "auto"))
        for shape in ("gaussian", "bimodal", "heavy-tailed"):
            for d in (1, 3):
                X, _ = make_hidden_markov(shape, 600, n_features=d, random_state=seed)
                sets.append((f"{shape}, d = {d}", X, 3, "auto"))
        for title in MIXED:
            mixed = Mixed(title)
            sets.append(
                (title, mixed.draw(600, seed)[0], len(mixed.states), mixed.kinds)
            )
        for place, (title, X, k, emission) in enumerate(sets):
            given = (seed + place) % 2 == 0
            model, said = fitted(X, k if given else "auto", seed, emission)
            kind = "number given" if given else "number chosen"
            if model.n_states_ < k:
                kind = "fewer states chosen than the truth has"
            found.setdefault(kind, []).append(bool(said))
            if said:
                print(title, kind, model.n_states_, k, said, flush=True)
    return [[kind, f"{sum(said)} of {len(said)}"] for kind, said in found.items()]


def real(quick):
    """Say what is said of real series."""
    table = []
    for series in (real_series, confirming_series):
        for title, X, k in series():
            cells = []
            for n_states in (k, "auto"):
                rows = X[: 300 if quick else 1000]
                model, said = fitted(rows, n_states, 0)
                what = said[0].split(" (")[0].split(". ")[0] if said else "nothing"
                cells += [model.n_states_, what.split(": ")[-1]]
            table.append([title, *cells])
            print(*table[-1], sep=" | ", flush=True)
    return table


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_dependence", quick=quick)
    names = ["series", "warned, 200 rows", "warned, 400 to 1,500 rows"]
    report.table(
        "Series that are no mixture of regimes",
        [*names, "states chosen"],
        dependent(2 if quick else 8),
    )
    report.save()
    report.table(
        "True hidden Markov models",
        ["number of states", "warned"],
        independent(1 if quick else 4),
    )
    report.save()
    names = ["series", "states", "said", "states chosen", "said of these"]
    report.table("Real series, at most 1,000 rows", names, real(quick))
    report.save()


if __name__ == "__main__":
    main()
