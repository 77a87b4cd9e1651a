"""What interactions of pairs gain, and what they cost where there are none.

The default, "detect", and `interactions="auto"` against the additive model, boosting,
and LassoCV on all products of two columns. Simulated tables are scored against the truth on 2,000 new rows, real
ones on the quarter of the rows that is left out.
"""

import warnings
from pathlib import Path

import numpy as np
from _additive_problems import Quiet, smooth
from _harness import Report, arguments, cpu_seconds
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsRegressor

DATA = Path(__file__).parents[2] / "shared" / "data"
METHODS = {
    "additive": lambda: SparseAdditiveGibbsRegressor(
        interactions=None, random_state=0
    ),
    "detected": lambda: SparseAdditiveGibbsRegressor(random_state=0),
    "interactions": lambda: SparseAdditiveGibbsRegressor(
        interactions="auto", random_state=0
    ),
    "LassoCV, products": lambda: Quiet(
        make_pipeline(
            StandardScaler(), PolynomialFeatures(2), StandardScaler(), LassoCV(cv=5)
        )
    ),
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
}


def friedman(n, p):
    """Friedman's first table: one pair of five variables interacts."""

    def table(seed):
        X, y = make_friedman1(n, p, noise=1.0, random_state=seed)
        return X, y, *make_friedman1(2000, p, random_state=1000 + seed)

    return table, {(0, 1)}


def simulated(function, n, p, noise, pairs, rounded=False):
    """Uniform columns; `rounded`, the first is 0 or 1."""

    def table(seed):
        rng = np.random.default_rng(seed)
        X, new = rng.uniform(-1, 1, (n, p)), rng.uniform(-1, 1, (2000, p))
        if rounded:
            X[:, 0], new[:, 0] = X[:, 0] > 0, new[:, 0] > 0
        return X, function(X) + noise * rng.standard_normal(n), new, function(new)

    return table, pairs


def real(X, y):
    """Parts of a real table."""

    def table(seed):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, random_state=seed
        )
        return X_train, y_train, X_test, y_test

    return table, None


def tables():
    """Return the tables by name, each with its true pairs."""
    found = {
        "Friedman 1, n = 200, p = 10": friedman(200, 10),
        "Friedman 1, n = 500, p = 10": friedman(500, 10),
        "Friedman 1, n = 300, p = 50": friedman(300, 50),
        "x1 x2 alone, n = 200, p = 10": simulated(
            lambda X: X[:, 0] * X[:, 1], 200, 10, 0.2, {(0, 1)}
        ),
        "wave in one of two groups, n = 200, p = 10": simulated(
            lambda X: X[:, 0] * np.sin(3 * X[:, 1]) + X[:, 2],
            *(200, 10, 0.3, {(0, 1)}, True),
        ),
        "additive, n = 200, p = 10": simulated(smooth, 200, 10, 0.32, set()),
        "additive, n = 200, p = 50": simulated(smooth, 200, 50, 1.0, set()),
        "diabetes": real(*load_diabetes(return_X_y=True)),
    }
    if not (DATA / "boston.csv.gz").exists():
        print("../shared/data is absent: Boston is left out.")
        return found
    boston = np.loadtxt(DATA / "boston.csv.gz", delimiter=",", skiprows=1)
    return {**found, "Boston": real(boston[:, :-1], boston[:, -1])}


def main():
    quick = arguments(__doc__).quick
    report = Report("additive_interactions", quick=quick)
    n_seeds = 1 if quick else 5
    errors, spent, found = [], [], []
    for name, (table, truth) in tables().items():
        scores = {method: [] for method in METHODS}
        seconds = {method: [] for method in METHODS}
        pairs, warned = [], 0
        for seed in range(n_seeds):
            X, y, new, target = table(seed)
            for method, make in METHODS.items():
                model = make()
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", ConvergenceWarning)
                    elapsed = cpu_seconds(lambda: model.fit(X, y))  # noqa: B023
                seconds[method].append(elapsed)
                error = np.mean((model.predict(new) - target) ** 2)
                scores[method].append(error / target.var())
                if method == "interactions":
                    likely = model.pairs_[model.pair_probabilities_ >= 0.5]
                    pairs.append({tuple(pair) for pair in likely.tolist()})
                    warned += len(caught) > 0
        errors.append([name, *(f"{np.mean(s):.4f}" for s in scores.values())])
        spent.append([name, *(f"{np.median(s):.2f}" for s in seconds.values())])
        right = "-" if truth is None else sum(len(p & truth) for p in pairs)
        wanted = "-" if truth is None else len(truth) * n_seeds
        others = sum(len(p - (truth or set())) for p in pairs)
        found.append([name, right, wanted, others, warned])
    report.table(
        f"Squared error over the variance, mean of {n_seeds}",
        ["table", *METHODS],
        errors,
    )
    report.table(
        f"Pairs of probability 1/2 or more, in {n_seeds} fits",
        ["table", "true ones", "of", "others", "fits that warn"],
        found,
    )
    report.table("CPU seconds of a fit, median", ["table", *METHODS], spent)
    report.save()


if __name__ == "__main__":
    main()
