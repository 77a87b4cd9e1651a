"""PACOClusterer on streams without change: how often K is right after 100 rows or more.

Models 1 to 5 of Li, Guedj and Loustau (2016), rows in random order. Each method reads
every stream row by row, the batch peers are refitted when K is read; nothing about the
scale of the data is given to it.
"""

import numpy as np
from _harness import Report, arguments
from _paco_streams import follow, followers

from skpacbayes.datasets import make_paco_model

GROUPS = {1: 1, 2: 4, 3: 4, 4: 7, 5: 3}
READ_AT = (100, 200, 500)
N_STREAMS = 10  # of each model
LOSS = {model: "manhattan" if model == 5 else "squared_euclidean" for model in GROUPS}
OURS = {
    model: {
        "PACOClusterer": {"loss": loss},
        "same, summary_size=100": {"loss": loss, "summary_size": 100},
    }
    for model, loss in LOSS.items()
}


def main():
    options = arguments(__doc__)
    report = Report("paco_stationary", quick=options.quick)
    n_streams = 2 if options.quick else N_STREAMS
    right = {}
    for m, (model, n_groups) in enumerate(GROUPS.items()):
        for seed in range(n_streams):
            rng = np.random.RandomState([model, 500, seed])
            X, _ = make_paco_model(model, READ_AT[-1], rng)
            methods = followers(seed, READ_AT[0], OURS[model])
            for name, method in methods.items():
                after = follow(method, X)[1][np.subtract(READ_AT, 1)]
                counts = right.setdefault(name, np.zeros((len(GROUPS), 3)))
                counts[m] += after == n_groups
    rows = []
    for name, counts in right.items():
        percent = 100 * counts / n_streams
        cells = [" ".join(f"{value:.0f}" for value in model) for model in percent]
        mean = " ".join(f"{value:.0f}" for value in percent.mean(axis=0))
        rows.append([name, *cells, mean])
    report.table(
        f"Stationary streams, {n_streams} for each model: percent right at t = "
        f"{', '.join(map(str, READ_AT))} (Model 5: manhattan for ours)",
        ["method", *(f"Model {model}" for model in GROUPS), "mean"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
