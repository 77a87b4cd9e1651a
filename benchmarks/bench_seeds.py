"""How often fits with different seeds agree.

Each estimator is fitted with many seeds to the tables that scikit-learn ships, as they
are and standardised. The promise is kept on a table if at least 95 % of the seeds give
the same answer, or if other answers come with a ConvergenceWarning. The answer is the
number of clusters or of components, or the states of the rows up to their names; for
the sets of variables that are selected see `bench_additive_seeds.py`.
"""

import numpy as np
from _harness import Report, arguments
from _hmm_families import simulated
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


def series():
    """Rows in the order of time and their number of states: tables and simulations.

    Tables as they are: the sampler has units of its own.
    """
    states_of = {"iris": 3, "wine": 3, "breast cancer": 2, "diabetes": 2}
    for name, X, _ in tables():
        if name in states_of:
            yield name, X, states_of[name]
    for name in ("calm and nervous t", "skew t", "correlations, d = 2"):
        yield name, *simulated_rows(name)
    X, _ = simulated_rows("semi-Markov")
    yield "semi-Markov, auto", X, "auto"


def simulated_rows(name):
    X, *_, k = simulated(name, seed=50, n_train=600, n_test=0)
    return X, k


def states_row(name, X, n_states, n_seeds):
    """Row of the table: how many seeds agree with the seed that most agree with.

    Two seeds agree if they have the same number of states, and 95 % of the rows have
    the same state under the best renaming.
    """
    found, warned = repeated(
        lambda seed: DirichletProcessHMM(n_states, random_state=seed),
        X,
        None,
        lambda model: (model.n_states_, model.predict(X)),
        n_seeds,
    )
    agree = np.array(
        [
            [k == j and aligned(one, other) >= SAME for j, other in found]
            for k, one in found
        ]
    )
    with_most = agree[agree.sum(axis=1).argmax()]
    names = ["the same" if same else f"other {i}" for i, same in enumerate(with_most)]
    return row(name, names, warned)


def main():
    options = arguments(__doc__)
    n_seeds = 5 if options.quick else 100
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
    report.table(
        f"DirichletProcessHMM: states of the rows, aligned, {n_seeds} seeds",
        COLUMNS,
        [states_row(name, X, k, n_seeds) for name, X, k in series()],
    )
    report.save()


if __name__ == "__main__":
    main()
