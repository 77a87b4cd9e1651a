"""The additive regressor: noise that is not normal, few rows, many columns.

Errors to the truth against LassoCV and Huber's regression, on tables that chose
nothing, but for the number of rows from which noise is integrated out: that it is at
least three for each variable was chosen after a look at n = 50. Four of twenty
variables matter, linearly; of counts three of ten, by the logarithm of the mean.
On diabetes a twentieth of the targets of the training rows is multiplied by 10 or by
0.1, as mistyped.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive import SparseAdditiveGibbsRegressor

EFFECTS = np.array([1.5, -1.0, 1.0, 0.7])
METHODS = {
    "ours": lambda: SparseAdditiveGibbsRegressor(random_state=0),
    "LassoCV": lambda: make_pipeline(StandardScaler(), LassoCV()),
    "Huber": lambda: make_pipeline(StandardScaler(), HuberRegressor(max_iter=1000)),
}
NOISES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "Laplace": lambda rng, n: rng.laplace(size=n),
    "Student's t, 3": lambda rng, n: rng.standard_t(3, size=n),
    "Student's t, 2": lambda rng, n: rng.standard_t(2, size=n),
    "7 % of deviation 15": lambda rng, n: (
        rng.normal(size=n) * np.where(rng.random(n) < 0.07, 15, 1)
    ),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
}


def linear(rng, n, p, noise):
    """Rows, targets, new rows and what is true of them."""
    X = rng.normal(size=(n + 500, p))
    truth = X[:, : len(EFFECTS)] @ EFFECTS
    return X[:n], truth[:n] + noise(rng, n), X[n:], truth[n:]


def counts(rng, n):
    """Poisson targets, whose variance is their mean, an exponential function."""
    X = rng.normal(size=(n + 500, 10))
    mean = np.exp(1 + X[:, :3] @ np.array([0.6, 0.5, 0.4]))
    return X[:n], rng.poisson(mean[:n]).astype(float), X[n:], mean[n:]


def mistyped(rng):
    """Two thirds of diabetes, some targets wrong, and the rest as it is."""
    X, y = datasets.load_diabetes(return_X_y=True)
    order = rng.permutation(len(y))
    train, test = np.split(order, [2 * len(y) // 3])
    wrong = rng.random(len(train)) < 0.05
    factors = np.where(wrong, rng.choice([0.1, 10.0], len(train)), 1.0)
    return X[train], y[train] * factors, X[test], y[test]


def study(make_data, seeds):
    """Errors in units of the variance, of all methods and seeds; variables of ours."""
    errors, sizes, heavy = [], [], 0
    for seed in seeds:
        X, y, new, truth = make_data(np.random.default_rng(seed))
        row = []
        for name, make in METHODS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = make().fit(X, y)
            row.append(np.mean((model.predict(new) - truth) ** 2) / truth.var())
            if name == "ours":
                sizes.append(model.get_support().sum())
                heavy += np.isfinite(model.noise_freedom_)
        errors.append(row)
    return np.array(errors), np.mean(sizes), heavy


def summary(name, errors, size, heavy):
    better = (errors[:, 0] < errors[:, 1]).mean()
    means = [f"{mean:.3f}" for mean in errors.mean(axis=0)]
    return [name, *means, f"{better:.2f}", f"{size:.1f}", f"{heavy} of {len(errors)}"]


def noise(report, quick):
    rows, count = [], 2 if quick else 20
    for n in (100,) if quick else (15, 50, 100, 300):
        for name, draw in NOISES.items():
            if n == 15 and name != "normal":
                continue
            p = 5 if n == 15 else 20
            found = study(
                lambda rng: linear(rng, n, p, draw),  # noqa: B023
                range(300, 300 + count),
            )
            rows.append(summary(f"n = {n}, {name}", *found))
    for n in (100,) if quick else (100, 200):
        found = study(lambda rng: counts(rng, n), range(300, 300 + count))  # noqa: B023
        rows.append(summary(f"n = {n}, Poisson, 10 variables", *found))
    rows.append(
        summary("diabetes, mistyped", *study(mistyped, range(2 if quick else 8)))
    )
    report.table(
        "Squared error in units of the variance of what is predicted (5 variables at "
        "n = 15, else 20), the share of tables with an error below LassoCV's, the "
        "number of variables selected, tables whose noise was taken for heavy-tailed",
        ["table", *METHODS, "below LassoCV", "variables", "heavy tails"],
        rows,
    )


def many_columns(report, quick):
    rows = []
    for p in (500,) if quick else (500, 2000):
        for correlation in (0.0, 0.7):
            found = []
            for seed in range(1 if quick else 3):
                rng = np.random.default_rng([seed, p])
                X, y, new, truth = neighbors(rng, 100, p, correlation)
                values = []
                for make in (METHODS["ours"], METHODS["LassoCV"]):
                    model = make()
                    values.append(cpu_seconds(lambda: model.fit(X, y)))  # noqa: B023
                    values.append(np.mean((model.predict(new) - truth) ** 2))
                    if hasattr(model, "inclusion_probabilities_"):
                        used = set(model.get_support(indices=True).tolist())
                values.append(len(used & PLACES))
                values.append(len(used - PLACES))
                found.append(values)
            spent, error, theirs, lasso, right, false = np.mean(found, axis=0)
            rows.append(
                [
                    *(p, correlation, f"{spent:.1f}", f"{theirs:.1f}"),
                    *(f"{error:.3f}", f"{lasso:.3f}", f"{right:.1f}", f"{false:.1f}"),
                ]
            )
    report.table(
        "n = 100, normal noise of deviation 1, five effects, neighbouring columns "
        "correlated: CPU seconds, errors, variables of 5 and false ones",
        [
            "p",
            "correlation",
            "ours, s",
            "LassoCV, s",
            "ours",
            "LassoCV",
            "of 5",
            "false",
        ],
        rows,
    )


PLACES = {0, 3, 6, 9, 12}


def neighbors(rng, n, p, correlation):
    """Linear effects of columns, each correlated with the one before."""
    X = rng.normal(size=(n + 500, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    truth = X[:, sorted(PLACES)] @ np.array([2, -1.5, 1.5, 1, -1])
    return X[:n], truth[:n] + rng.normal(size=n), X[n:], truth[n:]


def main():
    quick = arguments(__doc__).quick
    report = Report("additive_noise", quick=quick)
    noise(report, quick)
    many_columns(report, quick)
    report.save()


if __name__ == "__main__":
    main()
