"""Variables of inclusion probability above .5, selected with different seeds.

Each estimator is fitted with many seeds. The promise is kept on a table if at least
95 % of the seeds select the same set, or if other sets come with a ConvergenceWarning.
Ranges map the variables to [-1, 1], so that standardising changes nothing.
"""

from pathlib import Path

import numpy as np
from _harness import Report, arguments
from _seeds import COLUMNS, repeated, row
from sklearn import datasets

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
)

DATA = Path(__file__).parents[2] / "shared" / "data"


def with_header(name):
    """Return rows and targets, the last column, of a table on this machine."""
    table = np.loadtxt(DATA / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def two_of(load, first):
    """Return a loader of all classes from `first` on, against the first of these."""

    def loader():
        X, y = load(return_X_y=True)
        return X[y >= first], y[y >= first] == first

    return loader


def linnerud():
    X, targets = datasets.load_linnerud(return_X_y=True)
    return X, targets[:, 0]


NUMBERS = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "linnerud": linnerud,
    "Boston": lambda: with_header("boston"),
    "iris, as a number": lambda: datasets.load_iris(return_X_y=True),
}
CLASSES = {
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "Pima": lambda: with_header("pima"),
    "two irises": two_of(datasets.load_iris, 1),
    "first wine": two_of(datasets.load_wine, 0),
}


def selected(model):
    """Variables above one half."""
    return tuple(model.get_support(indices=True).tolist())


def main():
    options = arguments(__doc__)
    report = Report("additive_seeds", quick=options.quick)
    n_seeds = 3 if options.quick else 100

    def study(kind, tables):
        rows = []
        for name, load in tables.items():
            make = lambda seed: kind(random_state=seed)  # noqa: E731
            answers, warned = repeated(make, *load(), selected, n_seeds)
            *most, _ = row(name, answers, warned)
            sizes = sorted({len(answer) for answer in answers})
            rows.append(
                [*most, f"{len(set(answers))} sets of {sizes[0]} to {sizes[-1]}"]
            )
        report.table(f"{kind.__name__}, {n_seeds} seeds", COLUMNS, rows)

    study(SparseAdditiveGibbsRegressor, NUMBERS)
    study(SparseAdditiveGibbsClassifier, CLASSES)
    few = {name: CLASSES[name] for name in ("Pima", "two irises")}
    study(SparseAdditiveGibbsRanker, few)
    report.save()


if __name__ == "__main__":
    main()
