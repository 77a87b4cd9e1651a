"""The streams of the online benchmarks: the paper's data, and two that drift.

Data that scikit-learn does not ship are read from ../shared/data where that is
present; a stream whose data are absent is left out, and said to be.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import (
    fetch_california_housing,
    fetch_covtype,
    load_breast_cancer,
)

DATA = Path(__file__).parents[2] / "shared" / "data"
HOME = DATA / "sklearn_data_home"


def present():
    if not DATA.exists():
        print("../shared/data is absent: only the streams that need no file are run.")
    return DATA.exists()


def california():
    return fetch_california_housing(
        data_home=HOME, download_if_missing=False, return_X_y=True
    )


def boston():
    frame = pd.read_csv(DATA / "boston.csv.gz")
    return frame.drop(columns="MEDV").to_numpy(float), frame["MEDV"].to_numpy(float)


def pima():
    frame = pd.read_csv(DATA / "pima.csv.gz")
    return frame.drop(columns="outcome").to_numpy(float), frame["outcome"].to_numpy()


def elec2():
    frame = pd.read_csv(DATA / "elec2.csv.gz")
    return frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy()


def covertype():
    """Class 2 against the rest."""
    X, y = fetch_covtype(data_home=HOME, download_if_missing=False, return_X_y=True)
    return X, (y == 2).astype(int)


def breast_cancer():
    return load_breast_cancer(return_X_y=True)


def toy(n=10_000):
    """Simulate the classification problem of the paper."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 2 / 3).astype(int)
    spread = np.linalg.cholesky([[1.0, 1.0], [1.0, 3.0]])
    noise = rng.normal(size=(n, 2))
    X = np.where(y[:, None] == 1, 1 + noise @ spread.T, -1 + noise)
    return X, y


def flipping(n=20_000, d=10, seed=0):
    """Simulate a line whose coefficients change sign half-way."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(n, d)), rng.normal(size=d)
    sign = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    return X, sign * (X @ theta) + rng.normal(size=n)


def simulated_labels(n, seed=101):
    """Streams of labels, each of which is hard in one way."""
    rng = np.random.default_rng(seed)

    def labels(scores):
        return (scores + rng.logistic(size=n) > 0).astype(int)

    def rows(d):
        return rng.normal(size=(n, d)), rng.normal(size=d)

    X, w = rows(8)
    first = np.arange(n) < n // 2
    streams = {"drift": (X, labels(np.where(first, X @ w, X @ np.roll(w, 3))))}
    X, w = rows(10)
    streams["5 % of one class"] = X, labels(X @ w - 5.5)
    X, w = rows(6)
    streams["20 % of labels wrong"] = (
        X,
        ((X @ w > 0) ^ (rng.random(n) < 0.2)).astype(int),
    )
    X, w = rows(5)
    streams["separable"] = X, (X @ w > 0.3).astype(int)
    X = (rng.random((n, 100)) < np.exp(rng.uniform(-6, -2, 100))).astype(float)
    scores = X @ (2 * rng.normal(size=100))
    streams["rare features"] = X, labels(scores - np.median(scores))
    X, w = rows(6)
    X[: n // 3, 3:] = 0.0
    streams["features begin late"] = X, labels(X @ (2 * w))
    X = rng.standard_t(2, size=(n, 6))
    streams["heavy tails"] = X, labels(X @ rng.normal(size=6))
    X, _ = rows(8)
    scores = X @ rng.normal(size=(8, 4)) + rng.gumbel(size=(n, 4))
    streams["four classes"] = X, scores.argmax(axis=1)
    return streams


# Predictions, each made before the row is learnt.


def predictions(model, X, y):
    """Predict each row, then learn it; 0 for the first."""
    answers = np.zeros(len(y))
    for t in range(len(y)):
        if t:
            answers[t] = model.predict(X[t : t + 1])[0]
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return answers


def probabilities(model, X, y):
    """Predict the classes of each row, then learn it; all alike for the first."""
    classes = np.unique(y)
    answers = np.full((len(y), len(classes)), 1.0 / len(classes))
    model.partial_fit(X[:1], y[:1], classes=classes)
    for t in range(1, len(y)):
        answers[t] = model.predict_proba(X[t : t + 1])[0]
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return answers


def permuted(X, y, seed, rows=None):
    """Return the rows in a random order."""
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    return np.ascontiguousarray(X[order]), np.ascontiguousarray(y[order])
