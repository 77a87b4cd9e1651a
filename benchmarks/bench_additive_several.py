"""The additive classifier on tables of more than two classes.

Log loss and accuracy in three folds, and the share of rows on which the loss of the
additive classifier is the lower one, of the defaults, against one classifier for each
class, l2-penalised logistic regression, linear, whose penalty is cross-validated, and
boosted trees. The prior of the slab's scale was chosen among four on iris and wine;
nothing was chosen on the others.
"""

import warnings
from pathlib import Path

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsClassifier

DATA = Path(__file__).parents[2] / "shared" / "data"
MOST_ROWS = 400
LEAST_OF_A_CLASS = 10
N_FAR = 4  # rows without which losses are compared too


def ecoli():
    folder = DATA / "clustering" / "uci"
    return np.loadtxt(folder / "ecoli.data.gz"), np.loadtxt(folder / "ecoli.labels0.gz")


def california():
    """Three classes of the value of a district."""
    X, y = datasets.fetch_california_housing(
        return_X_y=True, data_home=DATA / "sklearn_data_home", download_if_missing=False
    )
    return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


def covertype():
    X, y = datasets.fetch_covtype(
        return_X_y=True, data_home=DATA / "sklearn_data_home", download_if_missing=False
    )
    return X[:, :10], y


def segments():
    """Images, by river."""
    from river.datasets import ImageSegments

    X, y = zip(*ImageSegments(), strict=True)
    return np.array([[float(value) for value in row.values()] for row in X]), np.array(
        y
    )


def waves():
    """Three classes, by smooth functions of three of thirty variables."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(MOST_ROWS, 30))
    scores = [3 * np.sin(3 * X[:, 0]), 6 * X[:, 1] ** 2 - 2, 3 * X[:, 2]]
    return X, (np.column_stack(scores) + rng.gumbel(size=(MOST_ROWS, 3))).argmax(axis=1)


TABLES = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "ecoli": ecoli,
    "California": california,
    "Covertype, 10 columns": covertype,
    "image segments": segments,
    "waves": waves,
}
METHODS = {
    "SparseAdditiveGibbsClassifier": lambda: SparseAdditiveGibbsClassifier(
        random_state=0
    ),
    "same, slab_scale=1": lambda: SparseAdditiveGibbsClassifier(
        slab_scale=1.0, random_state=0
    ),
    "same, one for each class": lambda: OneVsRestClassifier(
        SparseAdditiveGibbsClassifier(random_state=0)
    ),
    "l2-logistic, linear": lambda: make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
            Cs=10,
            cv=5,
            scoring="neg_log_loss",
            max_iter=2000,
        ),
    ),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
}


def some_rows(X, y):
    """At most so many rows, of classes that are not too rare."""
    chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    X, (_, codes) = X[chosen], np.unique(y[chosen], return_inverse=True)
    kept = np.bincount(codes)[codes] >= LEAST_OF_A_CLASS
    return X[kept], np.unique(codes[kept], return_inverse=True)[1]


def study(X, y, make):
    """Log losses, accuracies and CPU seconds of the folds; the log loss of each row."""
    found, of_rows = [], np.empty(len(y))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        model = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            seconds = cpu_seconds(lambda: model.fit(X[train], y[train]))  # noqa: B023
            probabilities = model.predict_proba(X[test])
        right = probabilities.argmax(axis=1) == y[test]
        loss = log_loss(y[test], probabilities, labels=np.unique(y))
        found.append([loss, right.mean(), seconds])
        of_rows[test] = -np.log(probabilities[np.arange(len(test)), y[test]])
    return np.array(found).T, of_rows


def main():
    options = arguments(__doc__)
    report = Report("additive_several", quick=options.quick)
    warm_up = datasets.load_iris(return_X_y=True)
    SparseAdditiveGibbsClassifier(n_iter=1, burn_in=0, random_state=0).fit(*warm_up)
    rows = []
    for name in ["iris"] if options.quick else TABLES:
        X, y = some_rows(*TABLES[name]())
        found = {method: study(X, y, make) for method, make in METHODS.items()}
        ours, our_rows = found["SparseAdditiveGibbsClassifier"]
        for method, ((losses, accuracies, seconds), of_rows) in found.items():
            difference = losses - ours[0]
            more = of_rows - our_rows
            far = np.sort(more)[N_FAR:].sum() / len(more)
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            rows.append(
                [
                    f"{name} ({len(y)} rows, {y.max() + 1} classes)",
                    method,
                    f"{losses.mean():.4f}",
                    f"{difference.mean():+.4f} ± {error:.4f}",
                    f"{far:+.4f}",
                    f"{(more > 0).mean():.2f}",
                    f"{accuracies.mean():.3f}",
                    f"{np.median(seconds):.1f}",
                ]
            )
    report.table(
        "Log loss in three folds, its difference from the additive classifier's with "
        "the standard error over folds, the same without the "
        f"{N_FAR} rows on which ours is highest above it, the share of rows on which "
        "ours is lower, accuracy, CPU seconds of a fit",
        [
            "table",
            "method",
            "log loss",
            "less ours",
            f"without {N_FAR} rows",
            "ours lower",
            "accuracy",
            "CPU s",
        ],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
