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


def permuted(X, y, seed, rows=None):
    """Return the rows in a random order."""
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    return np.ascontiguousarray(X[order]), np.ascontiguousarray(y[order])
