"""Softmax, counts and quantiles on a stream, against SGD and river.

Every method sees the same rows in the same order and predicts each row before it learns
it. Features are raw: ours standardise themselves; the others get a running
standardisation. The default of `multi_class` was chosen on iris, wine and digits, and
is confirmed on the others.

    python benchmarks/bench_online_losses.py [--quick]
"""

import numpy as np
from _harness import Report, arguments
from _online_data import (
    HOME,
    boston,
    california,
    permuted,
    predictions,
    present,
    probabilities,
)
from bench_online import standardised
from river import linear_model, optim
from sklearn.datasets import (
    fetch_covtype,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.linear_model import PoissonRegressor, QuantileRegressor, SGDClassifier
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

from skpacbayes import OnlineVIClassifier, OnlineVIRegressor

LEVELS = (0.05, 0.5, 0.9)


# Several classes: log loss and error of the predictions.


def ours(multi_class):
    def run(X, y):
        return probabilities(
            OnlineVIClassifier(multi_class=multi_class, random_state=0), X, y
        )

    return run


def sgd(X, y):
    model = SGDClassifier(loss="log_loss", random_state=0)
    return probabilities(model, standardised(X), y)


def river_softmax(X, y):
    model, n_classes = linear_model.SoftmaxRegression(), y.max() + 1
    answers = np.full((len(y), n_classes), 1.0 / n_classes)
    for t, (row, label) in enumerate(zip(standardised(X).tolist(), y, strict=True)):
        row = dict(enumerate(row))
        found = model.predict_proba_one(row)
        for k, probability in found.items():
            answers[t, k] = probability
        model.learn_one(row, int(label))
    return answers


CLASSIFIERS = {
    "OnlineVIClassifier, softmax": ours("softmax"),
    "OnlineVIClassifier, one_vs_rest": ours("one_vs_rest"),
    "SGDClassifier('log_loss')": sgd,
    "river SoftmaxRegression": river_softmax,
}


def classes(report, quick):
    streams = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "simulated, 5 classes": make_classification(
            3000,
            n_features=20,
            n_informative=8,
            n_classes=5,
            n_clusters_per_class=1,
            random_state=0,
        ),
        "simulated, 10 classes, noise": make_classification(
            3000,
            n_features=30,
            n_informative=10,
            n_classes=10,
            n_clusters_per_class=1,
            flip_y=0.3,
            random_state=1,
        ),
    }
    if present():
        X, y = fetch_covtype(data_home=HOME, download_if_missing=False, return_X_y=True)
        streams["Covertype, 7 classes"] = X, y.astype(int) - 1
    rows, n_orders = (300, 1) if quick else (6000, 2)
    table = []
    for name, (X, y) in streams.items():
        found = {method: [] for method in CLASSIFIERS}
        for seed in range(n_orders):
            own, labels = permuted(X, y, seed, rows)
            labels = np.unique(labels, return_inverse=True)[1]
            for method, run in CLASSIFIERS.items():
                answers = np.clip(run(own, labels), 1e-15, 1.0)
                answers /= answers.sum(axis=1, keepdims=True)
                loss = -np.log(answers[np.arange(len(labels)), labels]).mean()
                error = np.mean(answers.argmax(axis=1) != labels)
                found[method].append((loss, error))
        means = [np.mean(found[method], axis=0) for method in CLASSIFIERS]
        table.append([name, *(f"{a:.3f} / {b:.3f}" for a, b in means)])
    title = (
        f"Log loss / error of a pass, mean of {n_orders} orders, {rows} rows at most"
    )
    report.table(title, ["data", *CLASSIFIERS], table)


# Numbers: the loss of the predictions.


def river_predictions(loss, X, y):
    model = linear_model.LinearRegression(optim.SGD(0.01), loss=loss)
    answers = np.zeros(len(y))
    for t, row in enumerate(standardised(X).tolist()):
        row = dict(enumerate(row))
        try:
            answers[t] = model.predict_one(row)
            model.learn_one(row, y[t])
        except OverflowError:  # of the exponential of a score
            answers[t:] = np.inf
            break
    return answers


def rates(n, d, intercept, seed=0):
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, d)), rng.normal(size=d) / np.sqrt(d)
    return X, rng.poisson(np.exp(intercept + 0.7 * X @ theta)).astype(float)


def counts(report, quick):
    n = 300 if quick else 3000
    streams = {
        f"simulated, {d} features, mean about {mean}": rates(n, d, np.log(mean))
        for d in (5, 30)
        for mean in (0.15, 2, 400)
    }
    X, y = load_diabetes(return_X_y=True)
    streams["diabetes, disease score"] = permuted(X, y, 0)
    table = []
    for name, (X, y) in streams.items():
        best = PoissonRegressor(alpha=0.0, max_iter=2000).fit(X, y).predict(X)
        cells = [mean_poisson_deviance(y[1:], best[1:])]
        for options in ({}, {"prior_scale": "auto"}):
            own = predictions(
                OnlineVIRegressor(loss="poisson", random_state=0, **options), X, y
            )
            cells.append(mean_poisson_deviance(y[1:], own[1:]))
        own = river_predictions(optim.losses.Poisson(), X, y)[1:]
        usable = np.isfinite(own).all() and np.all(own > 0)
        cells.append(mean_poisson_deviance(y[1:], own) if usable else np.inf)
        table.append([name, *(f"{cell:.4g}" for cell in cells)])
    columns = ["data", "batch, in hindsight", "ours", "ours, prior 'auto'", "river"]
    report.table("Poisson deviance of a pass, row 1 left out", columns, table)


def quantiles(report, quick):
    rng = np.random.default_rng(0)
    n = 300 if quick else 5000
    X = rng.normal(size=(n, 5))
    tailed = rng.standard_t(3, size=n) * np.exp(0.3 * X[:, 0])
    streams = {
        "simulated, t noise": (X, X.sum(axis=1) + tailed),
        "simulated, exponential noise": (X, X.sum(axis=1) + rng.exponential(size=n)),
    }
    if present():
        streams["Boston"] = permuted(*boston(), 0)
        streams["California"] = permuted(*california(), 0, n)
    table = []
    for name, (X, y) in streams.items():
        y = y / y.std()
        for level in LEVELS:
            best = QuantileRegressor(quantile=level, alpha=0).fit(X, y).predict(X)
            answers = [best]
            for options in ({}, {"forgetting": "auto"}):
                model = OnlineVIRegressor(
                    loss="quantile", quantile=level, random_state=0, **options
                )
                answers.append(predictions(model, X, y))
            loss = optim.losses.Quantile(level)
            answers.append(river_predictions(loss, X, y))
            cells = [
                f"{mean_pinball_loss(y[1:], own[1:], alpha=level):.4f} / "
                f"{np.mean(y[1:] < own[1:]):.3f}"
                for own in answers
            ]
            table.append([name, level, *cells])
    columns = ["data", "level", "batch, in hindsight", "ours"]
    columns += ["ours, forgetting 'auto'", "river"]
    title = "Pinball loss of a pass / share of rows below the prediction"
    report.table(title, columns, table)


def main():
    quick = arguments(__doc__).quick
    report = Report("online_losses", quick=quick)
    classes(report, quick)
    counts(report, quick)
    quantiles(report, quick)
    report.save()


if __name__ == "__main__":
    main()
