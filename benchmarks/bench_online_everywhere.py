"""All rows of Covertype, and whether the network stays finite on every stream.

The hinge loss of one pass over all rows of Covertype, ours against Vowpal Wabbit; and
the network of `OnlineVIMLPRegressor` by each method on each stream of
`_online_data.py`, features as they are, labels as -1 and 1.

    python benchmarks/bench_online_everywhere.py [--quick]
"""

import numpy as np
from _harness import Report, arguments
from _online_data import (
    boston,
    breast_cancer,
    california,
    covertype,
    elec2,
    flipping,
    permuted,
    pima,
    present,
    toy,
)
from bench_online import CLASSIFIERS, NETWORK_METHODS, progressive, unit

from skpacbayes import OnlineVIMLPRegressor


def network_everywhere(report, largest):
    """Check that every number is finite: losses, predictions, deviations, state."""
    streams = {
        "toy": toy(),
        "breast cancer": breast_cancer(),
        "pima": pima(),
        "Boston": unit(*boston()),
        "California": unit(*california()),
        "elec2": elec2(),
        "flipping sign": flipping(),
        "Covertype": covertype(),
    }
    table = []
    for name, (X, y) in streams.items():
        if name not in ("elec2", "flipping sign"):  # whose order is the point
            X, y = permuted(X, y, 0)
        X, y = X[:largest], y[:largest]
        if y.dtype.kind == "i":
            y = 2.0 * y - 1.0
        for method in NETWORK_METHODS:
            cells = []
            for clip in (5.0, None):
                model = OnlineVIMLPRegressor(method=method, clip=clip, random_state=0)
                model.fit(X, y)
                arrays = [v for v in vars(model).values() if isinstance(v, np.ndarray)]
                numbers = [np.array([model.cumulative_loss_]), *map(np.ravel, arrays)]
                numbers.append(model.predict(X))
                if method == "ngvi":
                    numbers.append(model.predict(X, return_std=True)[1])
                cells.append(float(model.cumulative_loss_ / len(y)))
                cells.append(bool(np.isfinite(np.concatenate(numbers)).all()))
            cells[::2] = [f"{cell:.4g}" for cell in cells[::2]]
            table.append([name, len(y), method, *cells])
    columns = ["data", "rows", "method", "loss, clip 5", "finite", "no clip", "finite"]
    report.table("Network of 20 units, raw features: is it finite?", columns, table)


def main():
    quick = arguments(__doc__).quick
    report = Report("online_everywhere", quick=quick)
    if present():
        network_everywhere(report, 2_000 if quick else 100_000)
        stream = {"Covertype": (*covertype(), 5_000 if quick else None)}
        rows = "5,000" if quick else "all 581,012"
        for ours, permutations in ((True, 5), (False, 2)):
            methods = {
                name: run
                for name, run in CLASSIFIERS.items()
                if name.startswith("OnlineVI" if ours else "Vowpal")
            }
            title = f"Hinge loss on Covertype, {rows} rows, {permutations} permutations"
            progressive(report, title, methods, stream, permutations)
    report.save()


if __name__ == "__main__":
    main()
