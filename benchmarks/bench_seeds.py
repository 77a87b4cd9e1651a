"""How often do seeds agree: is the answer the posterior's.

Each estimator is fitted with many seeds to the tables that scikit-learn ships, as they
are and standardised. The promise is kept on a table if at least 95 % of the seeds give
the same answer, or if other answers come with a ConvergenceWarning. The answer is the
number of clusters or of components, the set of selected variables, or the states of the
rows up to their names.
"""

import warnings
from collections import Counter

import numpy as np
from _harness import Report, arguments
from _hmm_families import simulated
from scipy.optimize import linear_sum_assignment
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import scale

from skpacbayes import (
    DirichletProcessHMM,
    PACOClusterer,
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRegressor,
    TemperedVBGaussianMixture,
)

SAME = 0.95


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


def repeated(make, X, y, answer, n_seeds):
    """Return the answer of each seed, and whether it came with a warning."""
    answers, warned = [], []
    for seed in range(n_seeds):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers.append(answer(make(seed).fit(X, y)))
        kinds = [warning.category for warning in caught]
        warned.append(any(issubclass(kind, ConvergenceWarning) for kind in kinds))
    return answers, warned


def row(name, answers, warned):
    """Share of the commonest answer, and of other answers without a warning."""
    (commonest, count), *others = Counter(answers).most_common()
    silent = [a for a, w in zip(answers, warned, strict=True) if not w]
    silent_others = sum(a != commonest for a in silent)
    kept = 1 - silent_others / len(answers) >= SAME
    shown = ", ".join(f"{a} x{n}" for a, n in [(commonest, count), *others][:4])
    return [
        name,
        f"{100 * count / len(answers):.0f}",
        f"{100 * np.mean(warned):.0f}",
        "yes" if kept else "no",
        shown,
    ]


def selected(model):
    return tuple(np.flatnonzero(model.inclusion_probabilities_ > 0.5).tolist())


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
    n_seeds = 5 if options.quick else 20
    report = Report("seeds", quick=options.quick)
    columns = ["table", "same, %", "warned, %", "kept", "answers"]

    def study(title, make, answer, names=None):
        rows = [
            row(name, *repeated(make, X, y, answer, n_seeds))
            for name, X, y in tables()
            if names is None or name.startswith(names)
        ]
        report.table(f"{title}, {n_seeds} seeds", columns, rows)

    study(
        "PACOClusterer: number of clusters",
        lambda seed: PACOClusterer(random_state=seed),
        lambda model: model.n_clusters_,
    )
    study(
        'TemperedVBGaussianMixture("auto"): number of components',
        lambda seed: TemperedVBGaussianMixture("auto", random_state=seed),
        lambda model: model.n_components_,
        ("iris", "wine", "diabetes"),
    )
    study(
        "SparseAdditiveGibbsRegressor: variables of probability above .5",
        lambda seed: SparseAdditiveGibbsRegressor(random_state=seed),
        selected,
        ("iris", "diabetes", "wine"),
    )
    study(
        "SparseAdditiveGibbsClassifier: variables of probability above .5",
        lambda seed: SparseAdditiveGibbsClassifier(random_state=seed),
        selected,
        ("breast cancer",),
    )
    report.table(
        f"DirichletProcessHMM: states of the rows, aligned, {n_seeds} seeds",
        columns,
        [states_row(name, X, k, n_seeds) for name, X, k in series()],
    )
    report.save()


if __name__ == "__main__":
    main()
