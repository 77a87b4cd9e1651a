"""Confidence of networks of labels: the mean largest probability, and the accuracy.

Tables in random order: the first rows are learnt in one pass, and 400 others, or all
that remain, are new. Nothing was chosen on them.

    python benchmarks/bench_online_confidence.py [--quick]
"""

import numpy as np
from _harness import Report, arguments
from sklearn import datasets

from skpacbayes import OnlineVIClassifier, OnlineVIMLPClassifier

MODELS = {
    "network": OnlineVIMLPClassifier(random_state=0),
    "OnlineVIClassifier": OnlineVIClassifier(random_state=0),
}
TABLES = {
    "wine": (datasets.load_wine, [60, 120]),
    "iris": (datasets.load_iris, [60, 120]),
    "breast cancer": (datasets.load_breast_cancer, [60, 120, 480]),
    "digits": (datasets.load_digits, [120, 480, 1400]),
}
N_NEW = 400


def confidence_and_accuracy(model, X, y, n_learnt, seeds):
    """Return both, the means over random orders."""
    found = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        learnt, new = order[:n_learnt], order[n_learnt : n_learnt + N_NEW]
        model.fit(X[learnt], y[learnt])
        probabilities = model.predict_proba(X[new])
        right = model.classes_[probabilities.argmax(axis=1)] == y[new]
        found.append([probabilities.max(axis=1).mean(), right.mean()])
    return np.mean(found, axis=0)


def main():
    quick = arguments(__doc__).quick
    report = Report("online_confidence", quick=quick)
    seeds = range(1 if quick else 10)
    rows = []
    for name, (load, sizes) in TABLES.items():
        X, y = load(return_X_y=True)
        for n_learnt in sizes:
            cells = [f"{name}, {n_learnt} rows"]
            for model in MODELS.values():
                pair = confidence_and_accuracy(model, X, y, n_learnt, seeds)
                cells += [f"{value:.2f}" for value in pair]
            rows.append(cells)
    columns = [f"{name}, {what}" for name in MODELS for what in ("mean", "right")]
    report.table(
        f"Mean largest probability and share of right labels: new rows, {len(seeds)} "
        "orders",
        ["table", *columns],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
