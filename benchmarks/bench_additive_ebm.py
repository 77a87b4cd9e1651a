"""The additive classifier against an explainable boosting machine, on small tables.

The machine (EBM, of the library `interpret`: `pip install interpret-core`) boosts
effects of single variables and of pairs. With its defaults it averages fourteen fits,
which take minutes on the tables of `bench_additive_tables.py`. Here it has one
(`outer_bags=1`), with and without pairs, and all other defaults. Log loss and AUC in
the five folds of that benchmark, on its two smallest tables, on which nothing was
chosen.
"""

from _harness import Report, arguments
from bench_additive_tables import (
    ExplainableBoostingClassifier,
    compared,
    diabetes,
    study,
    wine,
)

from skpacbayes.additive import SparseAdditiveGibbsClassifier

OPTIONS = {"outer_bags": 1, "n_jobs": 1, "random_state": 0}
METHODS = {
    "SparseAdditiveGibbsClassifier": lambda: SparseAdditiveGibbsClassifier(
        random_state=0
    ),
}
if ExplainableBoostingClassifier is not None:
    METHODS["EBM, one bag"] = lambda: ExplainableBoostingClassifier(**OPTIONS)
    METHODS["EBM, one bag, no pairs"] = lambda: ExplainableBoostingClassifier(
        interactions=0, **OPTIONS
    )


def main():
    options = arguments(__doc__)
    report = Report("additive_ebm", quick=options.quick)
    study(*wine(), METHODS["SparseAdditiveGibbsClassifier"], 2)  # compiles
    rows = []
    for name, load in {"wine": wine, "diabetes": diabetes}.items():
        X, y = load()
        title = f"{name} ({len(y)} rows, {X.shape[1]} columns)"
        for *cells, _, seconds in compared(report, title, X, y, METHODS):
            rows.append([*cells, seconds])
    report.table(
        "Log loss in five folds, its difference from the additive classifier's with "
        "the standard error over folds, AUC, CPU seconds of a fit",
        ["table", "method", "log loss", "less ours", "AUC", "CPU s"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
