"""How often the tempered mixture finds the number of components, and BIC does.

Simulated mixtures (`make_mixture`) of 1 to 8 components in 1 to 10 features and 200 to
3000 rows, drawn so that the rows, times the inverse temperature of the line, are at
least a multiple of the number of parameters. K is looked for up to three above the
truth. The misspecified shapes show where tempering helps, and where it does not. A
second table says of the sets where the number was missed whether the search or the
criterion did: both methods start again from the true labels.
"""

import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture
from skpacbayes.mixture._search import hard_statistics

MOST_ROWS = 3000
LINES = [  # title, shape, separation, temperatures, rows a parameter, number of sets
    ("separated", "gaussian", 6.0, [0.9], 5, 100),
    ("overlapping", "gaussian", 3.0, [0.9], 10, 50),
    ("overlapping, few rows", "gaussian", 3.0, [0.9], 3, 20),
    ("skewed", "skewed", 6.0, [0.1, 0.3, 0.9], 5, 100),
    ("heavy tails", "heavy-tailed", 6.0, [0.1, 0.9], 5, 20),
    ("3 % outliers", "outliers", 6.0, [0.1, 0.9], 5, 20),
]


def data(seed, shape, separation, alpha, rows_a_parameter):
    """Rows to fit with their components, as many new rows, and the number."""
    rng = np.random.default_rng(seed)
    while True:
        K, d = int(rng.integers(1, 9)), int(rng.integers(1, 11))
        fewest = rows_a_parameter * K * d * (d + 3) / 2 / alpha
        if fewest <= MOST_ROWS:
            break
    n = int(np.exp(rng.uniform(np.log(max(200, fewest)), np.log(MOST_ROWS))))
    options = {"n_components": K, "n_features": d, "separation": separation}
    X, y = make_mixture(shape, 2 * n, random_state=seed, **options)
    return X[:n], y[:n], X[n:], K


def tempered(X, K, alpha):
    """Our mixture, which chooses among 1 to K + 3 components."""
    return TemperedVBGaussianMixture(
        "auto",
        max_components=K + 3,
        inverse_temperature=alpha,
        n_init=2,
        random_state=0,
    ).fit(X)


def from_truth(model, X, y, K):
    """Criterion of K components for an ascent from the true labels."""
    mixture = model._stream.learned.mixture
    blank = mixture.blank(K, X.mean(axis=0))
    density, weight = mixture.density(blank), (y >= 0).astype(float)
    statistics = hard_statistics(density, X, weight, np.maximum(y, 0))
    state = mixture.m_step(statistics, blank)
    fit = mixture.ascend(state, X, None, max_iter=1000, tol=1e-7)
    return fit.bound - K * np.log(2)


def bic_from(model, X):
    """BIC of a maximum of the likelihood near our mixture."""
    return (
        GaussianMixture(
            len(model.weights_),
            weights_init=model.weights_,
            means_init=model.means_,
            precisions_init=model.precisions_,
            max_iter=1000,
        )
        .fit(X)
        .bic(X)
    )


def line(title, shape, separation, temperatures, rows_a_parameter, count):
    """Rows of both tables for one kind of data."""
    names = [*(f"alpha = {alpha}" for alpha in temperatures), "BIC"]
    errors, scores = ({name: [] for name in names} for _ in range(2))
    missed = {name: [] for name in names[:-1]}
    spared = []
    for seed in range(count):
        train, y, test, K = data(
            seed, shape, separation, min(temperatures), rows_a_parameter
        )
        plain = [
            GaussianMixture(k, n_init=3, random_state=0).fit(train)
            for k in range(1, K + 4)
        ]
        bic = [model.bic(train) for model in plain]
        found = {name: None for name in names}
        found["BIC"] = plain[np.argmin(bic)]
        for name, alpha in zip(names, temperatures, strict=False):
            found[name] = tempered(train, K, alpha)
        for name, model in found.items():
            errors[name].append(len(model.weights_) - K)
            scores[name].append(model.score(test))
            if name != "BIC" and errors[name][-1]:
                best = model.elbo_path_[model.n_components_]
                missed[name].append(from_truth(model, train, y, K) - best)
                if np.argmin(bic) + 1 == K:
                    spared.append((name, bic_from(model, train) < min(bic)))
    wrong = np.array(errors["BIC"]) != 0
    choice, search = [], []
    for name in names:
        error, gain = np.array(errors[name]), np.subtract(scores[name], scores["BIC"])
        choice.append(
            [
                f"{title}, {count} sets",
                name,
                f"{100 * (error == 0).mean():.0f} %",
                f"{error.mean():+.2f}",
                f"{(~wrong & (error != 0)).sum()} / {(wrong & (error == 0)).sum()}",
                f"{gain.mean():+.3f}",
            ]
        )
        if name != "BIC" and missed[name]:
            lower = [hidden for of, hidden in spared if of == name]
            search.append(
                [
                    f"{title}, {name}",
                    len(missed[name]),
                    sum(gap > 0.01 for gap in missed[name]),
                    f"{max(missed[name]):+.1f}",
                    f"{sum(lower)} of {len(lower)}",
                ]
            )
    return choice, search


def main():
    quick = arguments(__doc__).quick
    report = Report("mixture_choice", quick=quick)
    rows, misses = [], []
    for *description, count in LINES:
        choice, search = line(*description, max(2, count // 15) if quick else count)
        rows += choice
        misses += search
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
    report.table(
        "Sets whose number was missed: does the truth have a better criterion?",
        [
            "data and method",
            "missed",
            "better from the truth",
            "best gap, nats",
            "BIC, from our mixture, misses too",
        ],
        misses,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
