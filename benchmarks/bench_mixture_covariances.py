"""Which covariances: by our bound, by BIC, or full ones without a choice.

Sets whose components have covariances of one type, drawn at random, and sets that are
no mixtures. Log densities of new rows, a third, of full covariances (the default), of
the type with the largest bound less log(1 / pi_K), and of the type and number with the
least BIC; one to ten components.

A taste by default; --full runs all of it.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from sklearn.datasets import make_classification, make_moons, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from skpacbayes.mixture import TemperedVBGaussianMixture

TYPES = "full", "tied", "diag", "spherical"
LARGEST = 10
SETS = [  # type, rows, columns, components
    ("full", 2000, 8, 6),
    ("tied", 700, 6, 5),
    ("diag", 900, 6, 5),
    ("diag", 300, 15, 3),
    ("spherical", 450, 10, 5),
    ("spherical", 600, 20, 4),
]
OTHERS = {
    "two moons": lambda: make_moons(900, noise=0.1, random_state=1)[0],
    "swiss roll": lambda: make_swiss_roll(1200, noise=0.5, random_state=1)[0],
    "classes in a cube": lambda: make_classification(
        1200, 8, n_informative=5, n_redundant=0, random_state=1
    )[0],
}


def drawn(kind, n, d, K, rng):
    """Draw rows of a mixture with covariances of one type."""
    shared = rng.normal(size=(d, d))
    labels = rng.choice(K, n, p=rng.dirichlet(np.full(K, 3.0)))
    X = rng.normal(size=(n, d))
    for k in range(K):
        factor = {
            "full": np.eye(d) + 0.5 * rng.normal(size=(d, d)),
            "tied": shared,
            "diag": np.diag(np.exp(0.7 * rng.normal(size=d))),
            "spherical": np.exp(0.5 * rng.normal()) * np.eye(d),
        }[kind]
        X[labels == k] = X[labels == k] @ factor + 2 * rng.normal(size=d)
    return X


def sets(full):
    """Yield titles and rows in random order."""
    for number, (kind, n, d, K) in enumerate(SETS if full else SETS[-1:]):
        rng = np.random.default_rng(number)
        yield f"{kind}, {n} rows, {d} columns", drawn(kind, n, d, K, rng)
    for name, draw in OTHERS.items() if full else ():
        X = draw()
        yield name, X[np.random.default_rng(0).permutation(len(X))]


def ours(X):
    """Return the default fit and the one with the largest criterion."""
    fits = [
        TemperedVBGaussianMixture(
            "auto", covariance_type=kind, max_components=LARGEST, random_state=0
        ).fit(X)
        for kind in TYPES
    ]
    return fits[0], max(fits, key=lambda fit: max(fit.elbo_path_.values()))


def by_bic(X):
    """Return the Gaussian mixture with the least BIC."""
    fits = [
        GaussianMixture(K, covariance_type=kind, n_init=3, random_state=0).fit(X)
        for kind in TYPES
        for K in range(1, LARGEST + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X))


def main(full):
    """Print and save the table."""
    report, rows = Report("mixture_covariances", quick=not full), []
    for name, X in sets(full):
        train, test = np.split(X, [2 * len(X) // 3])
        found = {}
        seconds = [
            cpu_seconds(lambda: found.update(ours=ours(train))),  # noqa: B023
            cpu_seconds(lambda: found.update(bic=by_bic(train))),  # noqa: B023
        ]
        models = [*found["ours"], found["bic"]]
        numbers = [f"{len(m.weights_)} {m.covariance_type}" for m in models]
        nats = [f"{model.score(test):.3f}" for model in models]
        cells = [cell for pair in zip(nats, numbers, strict=True) for cell in pair]
        rows.append([name, *cells, f"{seconds[0] / seconds[1]:.1f}"])
        print(*rows[-1], flush=True)
    names = ["rows", "full", "K", "by the bound", "it chose"]
    names += ["BIC", "BIC chose", "times the seconds"]
    report.table("Nats per new row, and what was chosen", names, rows)
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main(arguments(__doc__, taste=True).full)
