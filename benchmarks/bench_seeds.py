"""How often do seeds agree: is the answer the posterior's.

Each estimator is fitted with many seeds to the tables that scikit-learn ships, as they
are and standardised. The promise is kept on a table if at least 95 % of the seeds give
the same answer, or if other answers come with a ConvergenceWarning. The answer is the
number of clusters or of components, or the states of the rows up to their names; for
the sets of variables that are selected see `bench_additive_seeds.py`.
"""

import numpy as np
from _harness import Report, arguments
from _seeds import COLUMNS, SAME, repeated, row
from scipy.optimize import linear_sum_assignment
from sklearn import datasets
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import scale

from skpacbayes import (
    DirichletProcessHMM,
    PACOClusterer,
    TemperedVBGaussianMixture,
)


def tables():
    """Rows and targets by name: as shipped, and standardised."""
    loaders = {
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast cancer": datasets.load_breast_cancer,
        "diabetes": datasets.load_diabetes,
    }
    for name, load in loaders.items():
        X, y = load(return_X_y=True)
        yield name, X, y
        yield f"{name}, standardised", scale(X), y


def aligned(states, reference):
    """Share of the rows with the same state, under the best renaming."""
    counts = confusion_matrix(reference, states)
    return counts[linear_sum_assignment(counts, maximize=True)].sum() / len(states)


def main():
    options = arguments(__doc__)
    n_seeds = 5 if options.quick else 20
    report = Report("seeds", quick=options.quick)

    def study(title, make, answer, names=None):
        rows = [
            row(name, *repeated(make, X, y, answer, n_seeds))
            for name, X, y in tables()
            if names is None or name.startswith(names)
        ]
        report.table(f"{title}, {n_seeds} seeds", COLUMNS, rows)

    study(
        "PACOClusterer: number of clusters",
        lambda seed: PACOClusterer(random_state=seed),
        lambda model: model.n_clusters_,
    )
    study(
        'TemperedVBGaussianMixture("auto"): number of components',
        lambda seed: TemperedVBGaussianMixture("auto", random_state=seed),
        lambda model: model.n_components_,
    )
    reference = {}

    def states(model, name):
        found = model.predict(model_rows[name])
        agreement = aligned(found, reference.setdefault(name, found))
        return "same" if agreement >= SAME else f"{agreement:.2f}"

    rng = np.random.default_rng(0)
    path = np.cumsum(rng.random(600) < 0.03) % 2
    model_rows = {
        "spreads": (1.0 + 3.0 * path)[:, None] * rng.standard_t(5, (600, 1)),
        "levels": 3.0 * path[:, None] + rng.standard_t(3, (600, 1)),
    }
    rows = [
        row(
            name,
            *repeated(
                lambda seed: DirichletProcessHMM(2, random_state=seed),
                X,
                None,
                lambda model, name=name: states(model, name),
                max(3, n_seeds // 4),
            ),
        )
        for name, X in model_rows.items()
    ]
    report.table("DirichletProcessHMM: states of the rows, aligned", COLUMNS, rows)
    report.save()


if __name__ == "__main__":
    main()
