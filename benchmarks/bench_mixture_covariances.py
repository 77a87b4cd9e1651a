"""Which covariances: chosen by our bound, by BIC, or full ones without a choice.

Sets whose components have covariances of one type, drawn at random; sets that are no
mixtures; and real tables, standardised, without rounding. Log densities of new rows, a
third, of full covariances (the default), of `covariance_type="auto"`, and of the type
and number with the least BIC, of three starts each; one to ten components. CPU seconds
are compared also with those of BIC and one start each. `NEARLY` and `MORE` of the
package were chosen on the first nine sets; the others were looked at afterwards. A
title ends with the number of components that were drawn. Of the sets with many columns,
none was looked at when the price of similar components was chosen.

By default the run is short; --full runs everything.
"""

import warnings

import numpy as np
from _harness import Report, arguments, cpu_seconds
from bench_mixture_tables import continuous_tables, without_rounding
from sklearn.datasets import make_classification, make_moons, make_swiss_roll
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
CONFIRMING = [
    ("full", 400, 6, 2),
    ("full", 3000, 4, 8),
    ("tied", 300, 10, 3),
    ("tied", 1500, 5, 7),
    ("diag", 240, 12, 2),
    ("diag", 2000, 4, 8),
    ("spherical", 150, 8, 4),
    ("spherical", 1200, 3, 7),
]
MANY_COLUMNS = [
    ("full", 450, 30, 3),
    ("full", 450, 30, 2),
    ("full", 450, 30, 1),
    ("full", 300, 20, 2),
    ("full", 600, 30, 5),
    ("full", 900, 40, 3),
    ("full", 450, 15, 4),
    ("diag", 600, 40, 4),
    ("spherical", 900, 60, 5),
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
    yield from numbered(SETS if full else SETS[-1:], 0)
    if not full:
        return
    for name, draw in OTHERS.items():
        X = draw()
        yield name, X[np.random.default_rng(0).permutation(len(X))]


def numbered(kinds, first):
    """Yield titles and rows of sets that are drawn, with seeds from `first` on."""
    for seed, (kind, n, d, K) in enumerate(kinds, first):
        rng = np.random.default_rng(seed)
        yield f"{kind}, {n} rows, {d} columns, {K}", drawn(kind, n, d, K, rng)


def confirming_sets():
    """Yield titles and rows in random order."""
    yield from numbered(CONFIRMING, 100)
    for name, X in continuous_tables():
        X = without_rounding(X, np.random.default_rng(0))
        yield name, X / X.std(axis=0)


def ours(X, kind):
    """Return our fit with covariances of a type."""
    return TemperedVBGaussianMixture(
        "auto", covariance_type=kind, max_components=LARGEST, random_state=0
    ).fit(X)


def by_bic(X, n_init=3):
    """Return the Gaussian mixture with the least BIC."""
    fits = [
        GaussianMixture(K, covariance_type=kind, n_init=n_init, random_state=0).fit(X)
        for kind in TYPES
        for K in range(1, LARGEST + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X))


def compared(named):
    """Return the rows of a table, for titles and sets."""
    rows = []
    for name, X in named:
        train, test = np.split(X, [2 * len(X) // 3])
        calls = {
            "full": lambda: ours(train, "full"),  # noqa: B023
            "auto": lambda: ours(train, "auto"),  # noqa: B023
            "bic": lambda: by_bic(train),  # noqa: B023
        }
        found, seconds = {}, {}
        for key, call in calls.items():
            seconds[key] = cpu_seconds(
                lambda: found.update({key: call()})  # noqa: B023
            )
        one_start = cpu_seconds(lambda: by_bic(train, n_init=1))  # noqa: B023
        found["auto"].covariance_type = found["auto"].covariance_type_
        nats = [model.score(test) for model in found.values()]
        kinds = [f"{len(m.weights_)} {m.covariance_type}" for m in found.values()]
        cells = [cell for pair in zip(nats, kinds, strict=True) for cell in pair]
        rows.append(
            [
                name,
                *(f"{cell:.3f}" if isinstance(cell, float) else cell for cell in cells),
                f"{nats[1] - max(nats[0], nats[2]):+.3f}",
                f"{seconds['auto'] / seconds['full']:.2f}",
                f"{seconds['auto'] / seconds['bic']:.2f}",
                f"{seconds['auto'] / one_start:.2f}",
            ]
        )
        print(*rows[-1], flush=True)
    return rows


def main(full):
    """Print and save the tables."""
    report = Report("mixture_covariances", quick=not full)
    names = ["rows", "full", "K", "auto", "it chose", "BIC", "BIC chose"]
    names += ["auto - better", "seconds, of full", "of BIC", "of one start's"]
    title = "Nats per new row, and what was chosen"
    report.table(f"{title}: sets that chose", names, compared(sets(full)))
    if full:
        confirming = compared(confirming_sets())
        report.table(f"{title}: sets and tables that confirm", names, confirming)
        many = compared(numbered(MANY_COLUMNS, 200))
        report.table(f"{title}: many columns", names, many)
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        main(arguments(__doc__, taste=True).full)
