"""Warnings of the additive regressor: how often they are right, and how often false.

There are warnings of effects rougher than the functions, of many weak effects, of
copies selected together, of products of two variables, and of copied rows. Thresholds
were chosen on other tables and seeds. Errors to the truth on 500 new rows, beside those
of LassoCV and ridge regression.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsRegressor

TOLD = {
    "rough": "have similar residuals",
    "weak": "too little evidence to use all",
    "copies": "are copies of one another",
    "products": "depend on the product",
    "rows": "rows are distinct",
}
STRONG = np.array([1.5, -1.0, 1.0, 0.7])


def normal(rng, n, p):
    return rng.normal(size=(n, p))


def linear(effects):
    return lambda X: X[:, : len(effects)] @ effects


def smooth(X):
    return np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] ** 2 - 0.7 * X[:, 2]


def coded(n_codes):
    """Rows whose first column is a category in no order, and its levels' effect."""
    levels = np.random.default_rng(n_codes).normal(size=n_codes)

    def draw(rng, n, p):
        X = rng.normal(size=(n, p))
        X[:, 0] = rng.integers(n_codes, size=n)
        return X

    return draw, lambda X: levels[X[:, 0].astype(int)] + X[:, 1]


def doubled(rng, n, p):
    X = rng.normal(size=(n, p - 3))
    return np.column_stack([X, X[:, :3]])


def correlated(rng, n, p):
    return 0.9 * rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, p))


def product(X):
    return 2 * X[:, 0] * X[:, 1] + X[:, 2]


def exponential(X):
    return np.exp(0.7 * X[:, 0] + 0.7 * X[:, 1])


def skewed(rng, X):
    """Noise whose deviation depends on a variable without effect."""
    return (rng.exponential(size=len(X)) - 1) * np.exp(X[:, -1])


TABLES = {  # rows, variables, how they are drawn, the truth, its noise if not normal
    "linear, 4 of 5": (15, 5, normal, linear(STRONG)),
    "linear, 4 of 10": (15, 10, normal, linear(STRONG)),
    "linear, 4 of 5, more rows": (25, 5, normal, linear(STRONG)),
    "linear, 4 of 20": (50, 20, normal, linear(STRONG)),
    "weak, 20 of 20": (100, 20, normal, linear(np.full(20, 0.2))),
    "nothing, 50 variables": (100, 50, normal, linear(np.zeros(1))),
    "nothing, 20 variables": (30, 20, normal, linear(np.zeros(1))),
    "smooth, 3 of 10": (200, 10, normal, smooth),
    "smooth, skewed noise": (200, 10, normal, smooth, skewed),
    "a wave, 1 of 10": (200, 10, normal, lambda X: np.sin(6 * X[:, 0]) + X[:, 1]),
    "5 codes": (300, 6, *coded(5)),
    "15 codes": (300, 6, *coded(15)),
    "25 codes": (300, 6, *coded(25)),
    "copies of 3 of 10": (200, 10, doubled, smooth),
    "correlated, 1 of 10": (200, 10, correlated, lambda X: np.abs(X[:, 0])),
    "a product, 3 of 10": (200, 10, normal, product),
    "exponential, 2 of 10": (200, 10, normal, exponential),
}


# With copies: drawn from a fifth of the rows, or from all.
TABLES["copied rows"] = 400, 10, normal, smooth, None, 5
TABLES["a bootstrap sample"] = 200, 10, normal, smooth, None, 1
# Small tables. Of 60 drawn rows, copies of 12.
TABLES["a wave, 1 of 3"] = 45, 3, normal, lambda X: 3 * np.sin(6 * X[:, 0]) + X[:, 1]
TABLES["a product, 3 of 4"] = 45, 4, normal, lambda X: 2 * product(X)
TABLES["smooth, 3 of 5"] = 45, 5, normal, smooth
TABLES["lines, 2 of 5"] = 30, 5, normal, linear(STRONG[:2])
TABLES["copied rows, few"] = 60, 5, normal, smooth, None, 5


def drawn(rng, n, p, draw, truth, noise=None, copied=None):
    X = draw(rng, n + 500, p)
    value = truth(X)
    rows = X[:n]
    added = rng.normal(size=n) if noise is None else noise(rng, rows)
    y = value[:n] + added
    if copied is not None:
        chosen = rng.integers(n // copied, size=n)
        rows, y = rows[chosen], y[chosen]
    return rows, y, X[n:], value[n:]


def study(seeds, *table):
    told, errors = [], []
    for seed in seeds:
        X, y, new, value = drawn(np.random.default_rng(seed), *table)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = SparseAdditiveGibbsRegressor(random_state=0).fit(X, y)
        messages = [str(w.message) for w in caught]
        told.append([any(m in text for text in messages) for m in TOLD.values()])
        row = [ours]
        for peer in (LassoCV(), RidgeCV(np.geomspace(0.01, 1e4, 25))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                row.append(make_pipeline(StandardScaler(), peer).fit(X, y))
        scale = value.var() or 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors.append([np.mean((m.predict(new) - value) ** 2) / scale for m in row])
    return np.array(told), np.array(errors)


def main():
    quick = arguments(__doc__).quick
    report, rows = Report("additive_doubts", quick=quick), []
    for number, (name, table) in enumerate(TABLES.items()):
        count = 2 if quick else 20
        first = 8000 + 100 * number
        told, errors = study(range(first, first + count), *table)
        counts = [f"{each.sum()}" for each in told.T]
        weak = told[:, 1]
        among = f"{np.sum(errors[weak, 2] < errors[weak, 0])} of {weak.sum()}"
        means = [f"{mean:.3f}" for mean in errors.mean(axis=0)]
        rows.append([f"n = {table[0]}, {name}", *counts, *means, among])
    report.table(
        f"Of {count} tables of each kind, those whose fit warns of rough effects, of "
        "weak ones, of copies, of products, of copied rows; errors in units of the "
        "variance of the truth (of the noise where there is none); how often ridge is "
        "better where weak effects were warned of",
        ["table", *TOLD, "ours", "LassoCV", "ridge", "ridge better"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
