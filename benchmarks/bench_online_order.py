"""Warnings of online learners of the order and change of rows: caught, and false.

A table is learnt in random orders, and in orders that have a meaning. An order has
spoilt a fit if the final model's mean loss on all rows exceeds the largest of five
random orders by a tenth. A warning of the order is right if the fit is spoilt.
Thresholds were chosen before, on other orders of some of scikit-learn's tables; the
generated tables are new. Then streams whose relation changes: the relation is worth
following if the loss with `forgetting="auto"` is lower by a tenth; how the errors are
remembered was chosen on streams of other seeds.

    python benchmarks/bench_online_order.py [--quick]
"""

import warnings
from collections import Counter

import numpy as np
from _harness import Report, arguments
from sklearn import datasets as tables
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.metrics import log_loss

from skpacbayes import EWARegressor, OnlineVIClassifier, OnlineVIRegressor

N_SHUFFLED = 5
WORSE = 1.1
BLOCK = 50
TOLD = (
    "Each row is learnt once",
    "in random order has",
    "errors of recent rows predict",
    "for a long run of rows",
)
LABELS = {
    "the default": OnlineVIClassifier(random_state=0),
    "forgetting=0.0": OnlineVIClassifier(forgetting=0.0, random_state=0),
    "n_fourier=0": OnlineVIClassifier(n_fourier=0),
}
NUMBERS = {
    "the default": OnlineVIRegressor(random_state=0),
    "diagonal": OnlineVIRegressor(covariance="diagonal", random_state=0),
    "absolute_error": OnlineVIRegressor(loss="absolute_error", random_state=0),
    "quantile, 0.9": OnlineVIRegressor(loss="quantile", quantile=0.9, random_state=0),
    "n_fourier=0": OnlineVIRegressor(n_fourier=0),
}


def label_tables():
    """Yield name, rows and labels."""
    rng = np.random.default_rng(11)
    for load in (tables.load_breast_cancer, tables.load_wine, tables.load_iris):
        yield load.__name__[5:], *load(return_X_y=True)
    X, y = tables.load_digits(return_X_y=True)
    yield "digits, 600 rows", X[:600], y[:600]
    X = rng.normal(size=(600, 5))
    yield "a line", X, (X @ [2, -1, 1, 0, 0] + rng.logistic(size=600) > 0).astype(int)
    yield "a bent line", X, (X[:, 0] ** 2 + X[:, 1] + rng.normal(size=600) > 1) * 1
    yield "two moons", *tables.make_moons(600, noise=0.3, random_state=11)
    yield (
        "four classes",
        *tables.make_classification(
            900, 10, n_informative=6, n_classes=4, random_state=11
        ),
    )


def number_tables():
    """Yield name, rows and targets."""
    rng = np.random.default_rng(12)
    yield "diabetes", *tables.load_diabetes(return_X_y=True)
    X, y = tables.load_linnerud(return_X_y=True)
    yield "linnerud, resampled", *resampled(X, y[:, 0], rng)
    yield "Friedman 1", *tables.make_friedman1(600, noise=1.0, random_state=12)
    yield "Friedman 2", *tables.make_friedman2(600, noise=50.0, random_state=12)
    X = rng.normal(size=(600, 5))
    yield "a line", X, X @ [2, -1, 1, 0, 0] + rng.normal(size=600)
    yield "a bent line", X, X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=600)
    yield "heavy tails", X, X @ [2, -1, 1, 0, 0] + 2 * rng.standard_t(2, size=600)
    skewed = np.exp(X)
    yield "skewed features", skewed, skewed @ [1, 1, 0, 0, 0] + rng.normal(size=600)


def resampled(X, y, rng):
    """Return 300 rows near those of a small table."""
    rows = rng.integers(len(X), size=300)
    X = X[rows] + 0.1 * X.std(axis=0) * rng.normal(size=(300, X.shape[1]))
    return X, y[rows] + 0.1 * y.std() * rng.normal(size=300)


def orders(X, y, rng):
    """Return orders of the rows, by name."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    along = Z @ rng.normal(size=X.shape[1])
    groups = KMeans(10, n_init=1, random_state=0).fit_predict(Z)
    target = "by target, with errors"
    rough = y + 0.5 * y.std() * rng.normal(size=len(y))
    found = {
        "by target": [np.argsort(y, kind="stable")],
        target: [np.argsort(rough, kind="stable")],
        "by a column": [np.argsort(z, kind="stable") for z in Z.T[:3]],
        "drifting": [
            np.argsort(along + 0.5 * along.std() * rng.normal(size=len(y)))
            for _ in range(2)
        ],
        "in groups": [np.argsort(groups, kind="stable")],
    }
    return {"random": [rng.permutation(len(y)) for _ in range(N_SHUFFLED)]} | found


def learnt(model, X, y, by_fit):
    """Learn rows in order; return the model and whether it warned of the order."""
    model = clone(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if by_fit:
            model.fit(X, y)
        else:
            known = {"classes": np.unique(y)} if is_classifier(model) else {}
            for start in range(0, len(y), BLOCK):
                rows = slice(start, start + BLOCK)
                model.partial_fit(X[rows], y[rows], **known)
    return model, any(text in str(one.message) for one in said for text in TOLD)


def final_loss(model, X, y):
    if is_classifier(model):
        return log_loss(y, model.predict_proba(X))
    errors = y - model.predict(X)
    if model.loss == "squared_error":
        return np.mean(errors**2)
    level = model.quantile if model.loss == "quantile" else 0.5
    return np.mean(np.maximum(level * errors, (level - 1.0) * errors))


def study(X, y, models, seed, counts):
    """Count fits, spoilt ones, and warnings, by order, model and way of learning."""
    arranged = orders(X, y, np.random.default_rng(seed))
    for name, model in models.items():
        for by_fit in (True, False):
            way = "fit" if by_fit else "partial_fit"
            highest = 0.0
            for order, examples in arranged.items():
                for rows in examples:
                    own, told = learnt(model, X[rows], y[rows], by_fit)
                    loss = final_loss(own, X, y)
                    if order == "random":
                        highest = max(highest, loss)
                    spoilt = order != "random" and loss > WORSE * highest
                    for key in ((way, "order", order), (way, "model", name)):
                        if key[1] == "model" and order == "random":
                            key = (way, "model, random", name)
                        counts[key, spoilt, told] += 1


def table_rows(counts, kind, names):
    rows = []
    for name in names:
        row = [name]
        for way in ("fit", "partial_fit"):
            key = (way, kind, name)
            caught, missed = counts[key, True, True], counts[key, True, False]
            false, silent = counts[key, False, True], counts[key, False, False]
            row += [f"{caught} of {caught + missed}", f"{false} of {false + silent}"]
        rows.append(row)
    return rows


# Streams whose relation changes.

KINDS = {
    "returns after 60 rows": lambda X, b, c, t: (X @ b) * np.sin(t / 60 * 2 * np.pi),
    "returns after 100 rows": lambda X, b, c, t: (X @ b) * np.sin(t / 100 * 2 * np.pi),
    "returns after 365 rows": lambda X, b, c, t: (X @ b) * np.sin(t / 365 * 2 * np.pi),
    "changes once": lambda X, b, c, t: np.where(t < 0.6 * len(t), X @ b, X @ c),
    "changes every 200 rows": lambda X, b, c, t: (X @ b) * ((t // 200) % 2),
    "stays, normal errors": lambda X, b, c, t: X @ c,
    "stays, heavy tails": lambda X, b, c, t: X @ c,
    "stays, a bent line": lambda X, b, c, t: np.abs(X @ b) * 2,
}
LEARNERS = {
    "OnlineVIRegressor()": OnlineVIRegressor(random_state=0),
    "forgetting=0.003": OnlineVIRegressor(forgetting=0.003, random_state=0),
    "EWARegressor()": EWARegressor(),
}


def changes(seeds, sizes):
    """Return rows of a table: warnings where a change is worth following, and else."""
    rows = []
    for kind, signal in KINDS.items():
        counts = Counter()
        for seed in seeds:
            for n in sizes:
                for d in (2, 10, 40):
                    for noise in (0.2, 1.0, 3.0):
                        rng = np.random.default_rng([seed, n, d, int(10 * noise)])
                        X, t = rng.normal(size=(n, d)), np.arange(n)
                        b, c, e = rng.normal(size=(3, d)) / np.sqrt(d)
                        heavy = kind == "stays, heavy tails"
                        errors = rng.standard_t(2, n) if heavy else rng.normal(size=n)
                        y = signal(X, b, c, t) + X @ e + noise * errors
                        best = OnlineVIRegressor(forgetting="auto", random_state=0)
                        best.fit(X, y)
                        for name, model in LEARNERS.items():
                            own, told = learnt(model, X, y, True)
                            ratio = best.cumulative_loss_ / own.cumulative_loss_
                            counts[name, ratio < 0.9, told] += 1
        row = [kind]
        for name in LEARNERS:
            for worth in (True, False):
                told = counts[name, worth, True]
                row.append(f"{told} of {told + counts[name, worth, False]}")
        rows.append(row)
    return rows


def main():
    quick = arguments(__doc__).quick
    report, counts = Report("online_order", quick=quick), Counter()
    seed = 0
    for found, models in ((label_tables(), LABELS), (number_tables(), NUMBERS)):
        kind = "labels" if models is LABELS else "numbers"
        own = Counter()
        for name, X, y in found:
            seed += 1
            if not quick or name == "a line":
                study(np.asarray(X, float), y, models, seed, own)
        names = ["random", "by target", "by target, with errors", "by a column"]
        names += ["drifting", "in groups"]
        columns = ["fit: spoilt, told", "fit: not spoilt, told"]
        columns += ["partial_fit: spoilt, told", "partial_fit: not spoilt, told"]
        report.table(
            f"Tables of {kind}: fits that the order spoilt and that warn of it, and "
            "fits that it did not spoil and that warn",
            ["order", *columns],
            table_rows(own, "order", names),
        )
        report.table(
            f"Tables of {kind}, by estimator, without random orders",
            ["parameters", *columns],
            table_rows(own, "model", models),
        )
        counts += own
    total = [["all fits in random order"], ["all fits in other orders"]]
    for row, random in zip(total, (True, False), strict=True):
        for way in ("fit", "partial_fit"):
            some = Counter()
            for ((at, kind, order), spoilt, told), count in counts.items():
                if (at, kind, order == "random") == (way, "order", random):
                    some[spoilt, told] += count
            for spoilt in (True, False):
                told = some[spoilt, True]
                row.append(f"{told} of {told + some[spoilt, False]}")
    report.table("Both kinds of tables together", ["order", *columns], total)
    report.table(
        "Streams whose relation changes: fits that warn where forgetting='auto' has a "
        "loss lower by a tenth, and where not",
        ["the relation", *(f"{n}: {w}" for n in LEARNERS for w in ("worth", "not"))],
        changes(range(20, 21 if quick else 22), (1000,) if quick else (1000, 2000)),
    )
    report.save()


if __name__ == "__main__":
    main()
