"""How often the tempered mixture finds the number of components, and BIC does.

Simulated mixtures (`make_mixture`) of 1 to 8 components in 1 to 10 features and 200 to
3000 rows, drawn so that the rows, times the inverse temperature of the line, are at
least a multiple of the number of parameters. K is looked for up to three above the
truth. The misspecified shapes show where tempering helps, and where it does not.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture

MOST_ROWS = 3000
LINES = [  # title, shape, separation, temperatures, rows a parameter, number of sets
    ("separated", "gaussian", 6.0, [0.9], 5, 100),
    ("overlapping", "gaussian", 3.0, [0.9], 10, 50),
    ("overlapping, few rows", "gaussian", 3.0, [0.9], 3, 20),
    ("skewed", "skewed", 6.0, [0.1, 0.3, 0.9], 5, 30),
    ("heavy tails", "heavy-tailed", 6.0, [0.1, 0.9], 5, 20),
    ("3 % outliers", "outliers", 6.0, [0.1, 0.9], 5, 20),
]


def data(seed, shape, separation, alpha, rows_a_parameter):
    """Rows to fit, as many new ones, and the number of components."""
    rng = np.random.default_rng(seed)
    while True:
        K, d = int(rng.integers(1, 9)), int(rng.integers(1, 11))
        fewest = rows_a_parameter * K * d * (d + 3) / 2 / alpha
        if fewest <= MOST_ROWS:
            break
    n = int(np.exp(rng.uniform(np.log(max(200, fewest)), np.log(MOST_ROWS))))
    options = {"n_components": K, "n_features": d, "separation": separation}
    X, _ = make_mixture(shape, 2 * n, random_state=seed, **options)
    return X[:n], X[n:], K


def line(title, shape, separation, temperatures, rows_a_parameter, count):
    """Rows of the table for one kind of data."""
    errors = {name: [] for name in (*temperatures, "BIC")}
    scores = {name: [] for name in errors}
    for seed in range(count):
        train, test, K = data(
            seed, shape, separation, min(temperatures), rows_a_parameter
        )
        plain = [
            GaussianMixture(k, n_init=3, random_state=0).fit(train)
            for k in range(1, K + 4)
        ]
        found = {"BIC": min(plain, key=lambda model: model.bic(train))}
        for alpha in temperatures:
            found[alpha] = TemperedVBGaussianMixture(
                "auto",
                max_components=K + 3,
                inverse_temperature=alpha,
                n_init=2,
                random_state=0,
            ).fit(train)
        for name, model in found.items():
            errors[name].append(len(model.weights_) - K)
            scores[name].append(model.score(test))
    missed = np.array(errors["BIC"]) != 0
    for name in errors:
        error, gain = np.array(errors[name]), np.subtract(scores[name], scores["BIC"])
        yield [
            f"{title}, {count} sets",
            name if name == "BIC" else f"alpha = {name}",
            f"{100 * (error == 0).mean():.0f} %",
            f"{error.mean():+.2f}",
            f"{(~missed & (error != 0)).sum()} / {(missed & (error == 0)).sum()}",
            f"{gain.mean():+.3f}",
        ]


def main():
    quick = arguments(__doc__).quick
    report = Report("mixture_choice", quick=quick)
    rows = []
    for *description, count in LINES:
        rows += line(*description, max(2, count // 15) if quick else count)
        print(*rows[-1], flush=True)
    report.table(
        "The number of components, and the log-density of new rows",
        [
            "data",
            "method",
            "found",
            "mean error",
            "worse / better than BIC, sets",
            "new rows, nats above BIC",
        ],
        rows,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
