"""Terrain navigation on a real map: what clusters gain, also at equal time.

Flights of 40 rows whose start is unknown (section 4.2 of Fan and Heller), over the
elevation model that matplotlib ships. The exact answer is a filter on the map itself. A
mode is a block of 16 x 16 cells with more than 1 % of the exact mass; it is covered if
a particle is in it.

    python benchmarks/bench_filtering_terrain.py [--quick]
"""

import warnings

import numpy as np
from _filtering_problems import (
    CLUSTERED,
    PLAIN,
    blocks_of,
    elevation,
    exact_flight,
    flight,
    tracker,
)
from _harness import Report, arguments, interleaved
from sklearn.exceptions import ConvergenceWarning

warnings.filterwarnings("ignore", category=ConvergenceWarning)  # off the map: lost
MANY = {"conservation": 0.5, "n_clusters": 100}


def score_flight(found, X, path, masses):
    """Coverage of the modes, total variation, and whether the truth is lost."""
    limits = np.array(found.model.heights.shape) - 1
    coverages, variations = [], []
    for t, row in enumerate(X):
        found.partial_fit(row[None])
        if t % 5 == 4:
            alive = found.weights_ > 0
            inside = found.particles_[alive].clip(0, limits)
            blocks = blocks_of(inside, limits + 1)
            mass = np.bincount(blocks, found.weights_[alive], len(masses[t]))
            coverages.append(np.mean(mass[masses[t] > 0.01] > 0))
            variations.append(0.5 * np.abs(mass - masses[t]).sum())
    gaps = np.linalg.norm(found.particles_ - path[-1], axis=1)
    return np.mean(coverages), np.mean(variations), gaps.min() > 10


def cells(runs, reference):
    """Means over flights, and differences of pairs with their standard errors."""
    gaps = runs - reference
    errors = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    shown = []
    for k in range(2):
        shown += [
            f"{runs[:, k].mean():.3f}",
            f"{gaps[:, k].mean():+.3f} ± {errors[k]:.3f}",
        ]
    return [*shown, f"{100 * runs[:, 2].mean():.0f} %"]


def main():
    options = arguments(__doc__)
    n_flights, n_runs = (3, 1) if options.quick else (96, 4)
    report = Report("filtering_terrain", quick=options.quick)
    heights = elevation()
    flights = [flight(heights, seed) for seed in range(n_flights)]
    exact = [list(exact_flight(model, X)) for model, X, _ in flights]

    def mean_scores(n, parameters):
        scores = np.empty((n_flights, n_runs, 3))
        for number, ((model, X, path), masses) in enumerate(
            zip(flights, exact, strict=True)
        ):
            for run in range(n_runs):
                found = tracker(model, n, n_runs * number + run, **parameters)
                scores[number, run] = score_flight(found, X, path, masses)
        return scores.mean(axis=1)

    def costs(settings):
        actions = {
            (name, n): lambda n=n, p=parameters: [
                tracker(model, n, **p).fit(X) for model, X, _ in flights[:6]
            ]
            for name, n, parameters in settings
        }
        rows = sum(len(X) for _, X, _ in flights[:6])
        seconds = interleaved(actions, 3 if options.quick else 7)
        return {key: 1e6 * np.median(s) / rows for key, s in seconds.items()}

    settings = [(name, 1000, parameters) for name, parameters in CLUSTERED.items()]
    settings.append(("conservation=0.5, n_clusters=100", 1000, MANY))
    spent = costs(settings)
    share = spent["conservation=0.5", 1000] / spent["plain", 1000]
    settings.append(("plain, equal time", int(round(1000 * share, -2)), PLAIN))
    settings += [("plain", n, PLAIN) for n in (2000, 4000)]
    settings.append(("conservation=0.5", 2000, CLUSTERED["conservation=0.5"]))
    spent = costs(settings)
    table, reference = [], None
    for name, n, parameters in settings:
        scores = mean_scores(n, parameters)
        reference = scores if reference is None else reference
        cost = f"{spent[name, n]:.0f}"
        table.append([name, f"{n:,}", *cells(scores, reference), cost])
    report.table(
        f"{n_flights} flights, {n_runs} runs of each; means over rows 5, 10, ..., 40; "
        "differences from the plain filter of 1,000 particles",
        [
            *("filter", "particles", "coverage of modes", "difference"),
            *("total variation", "difference", "truth lost at the end", "us a row"),
        ],
        table,
    )
    report.save()


if __name__ == "__main__":
    main()
